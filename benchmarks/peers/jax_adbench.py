"""ADBench's workloads in JAX: vectorised, jitted, double precision, the quickest of several ways of writing each."""

from __future__ import annotations

import math
import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from benchmarks.adbench.measure import Work, serve_builders

jax.config.update("jax_enable_x64", True)


def work(objective, gradient, args, flat, note="", static=()):
    """Jitted functions, their arguments on the device."""
    args = jax.tree.map(jnp.asarray, args)
    value, derivative = jax.jit(objective), jax.jit(gradient)
    return Work(
        lambda: jax.block_until_ready(value(*args)),
        lambda: jax.block_until_ready(derivative(*args)),
        flat,
        compile=lambda: derivative.lower(*args).compile(),
        note=note,
    )


# Gaussian mixture.


def factors(icf, d):
    """The lower-triangular matrices of all components, (K, d, d)."""
    columns, rows = np.triu_indices(d, 1)
    lower = jnp.zeros((len(icf), d, d)).at[:, rows, columns].set(icf[:, d:])
    return lower + jax.vmap(jnp.diag)(jnp.exp(icf[:, :d]))


def centred(factor, means, x):
    """Every component's matrix times every point's distance from its mean: (K, n, d), as one batched product."""
    return jnp.einsum("kij,knj->kni", factor, x - means[:, None])


def expanded(factor, means, x):
    """The same as one product with all points, less the products with the means."""
    return jnp.einsum("kij,nj->kni", factor, x) - jnp.einsum("kij,kj->ki", factor, means)[:, None]


def mixture(record):
    """`gmm`"""
    args = (record.alphas, record.means, record.icf, record.x, record.gamma, float(record.m))

    def make(product):
        def objective(alphas, means, icf, x, gamma, m):
            (k, d), n = means.shape, len(x)
            y = product(factors(icf, d), means, x)
            terms = (alphas + icf[:, :d].sum(1))[:, None] - 0.5 * jnp.sum(y * y, axis=2)
            nu = d + m + 1
            gammas = 0.25 * d * (d - 1) * math.log(math.pi) + jnp.sum(gammaln(0.5 * (nu + 1 - jnp.arange(1, d + 1))))
            constant = nu * d * (jnp.log(gamma) - 0.5 * math.log(2)) - gammas
            squares = jnp.sum(jnp.exp(2 * icf[:, :d])) + jnp.sum(icf[:, d:] ** 2)
            prior = 0.5 * gamma**2 * squares - m * jnp.sum(icf[:, :d]) - k * constant
            likelihood = jnp.sum(logsumexp(terms, axis=0)) - n * logsumexp(alphas)
            return likelihood - 0.5 * n * d * math.log(2 * math.pi) + prior

        gradient = jax.value_and_grad(objective, (0, 1, 2))
        return work(objective, gradient, args, lambda result: [result[0], *result[1]], product.__name__)

    return [make(centred), make(expanded)]


BUILDERS = {"gmm": mixture}

if __name__ == "__main__":
    jax.block_until_ready(jax.jit(lambda x: x * 2.0)(jnp.ones(3)))
    serve_builders(BUILDERS)
