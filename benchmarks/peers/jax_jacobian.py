"""The Jacobian of the banded function in JAX: jitted, the quicker of forward and reverse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import common
from benchmarks.workers import serve

jax.config.update("jax_enable_x64", True)


def banded(x):
    """R^n -> R^n, each entry of three neighbours."""
    zero = jnp.zeros(1)
    left = jnp.concatenate([zero, x[:-1]])
    right = jnp.concatenate([x[1:], zero])
    return jnp.sin(x) * right + left * left * x


MODES = {name: jax.jit(make(banded)) for name, make in (("jacfwd", jax.jacfwd), ("jacrev", jax.jacrev))}


@jax.jit
def compressed(x):
    """The entries by hand: three passes, since neighbours of neighbours do not meet. Shape (3, n)."""
    seeds = (jnp.arange(len(x)) % 3 == jnp.arange(3)[:, None]).astype(x.dtype)
    return jax.vmap(lambda v: jax.jvp(banded, (x,), (v,))[1])(seeds)


def measure(size: int, seconds: float, entries: bool) -> float:
    """Seconds of a Jacobian, or of its entries alone."""
    x = np.linspace(0.1, 1.0, size)
    if entries:
        return common.median_seconds(lambda: jax.block_until_ready(compressed(x)), seconds, 3)
    return min(common.median_seconds(lambda f=f: jax.block_until_ready(f(x)), seconds, 3) for f in MODES.values())


def column_sums(size: int, entries: bool) -> list[float]:
    """What the other system's Jacobian is compared with."""
    if entries:
        passes = np.asarray(compressed(np.linspace(0.1, 1.0, size)))
        rows = np.arange(size)
        inside = [(passes[j % 3, max(j - 1, 0) : j + 2]).sum() for j in rows]
        return [float(v) for v in inside]
    return np.asarray(MODES["jacfwd"](np.linspace(0.1, 1.0, size))).sum(axis=0).tolist()


if __name__ == "__main__":
    serve({"measure": measure, "column_sums": column_sums})
