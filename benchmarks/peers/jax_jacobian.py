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


def measure(size: int, seconds: float) -> float:
    """Seconds of a Jacobian."""
    x = np.linspace(0.1, 1.0, size)
    return min(common.median_seconds(lambda f=f: jax.block_until_ready(f(x)), seconds, 3) for f in MODES.values())


def column_sums(size: int) -> list[float]:
    """What the other system's Jacobian is compared with."""
    return np.asarray(MODES["jacfwd"](np.linspace(0.1, 1.0, size))).sum(axis=0).tolist()


if __name__ == "__main__":
    serve({"measure": measure, "column_sums": column_sums})
