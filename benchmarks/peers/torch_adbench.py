"""ADBench's workloads in PyTorch: vectorised; compiled too (`--variant compile`); or as ADBench does (`--variant rows`).

ADBench's own module calls `backward` for one row of a Jacobian after the other; gradients of scalars are the same in both
styles. Where all rows take too long, some of them are measured.
"""

from __future__ import annotations

import math
import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import numpy as np
import torch

from benchmarks.adbench.measure import Work, serve_builders, variant

VARIANT = variant()
if "--threads" in sys.argv:
    torch.set_num_threads(int(sys.argv[sys.argv.index("--threads") + 1]))


def compiled(function):
    """The function, through torch.compile in that variant."""
    return torch.compile(function, dynamic=False) if VARIANT == "compile" else function


def scalar_work(objective, parameters, args, note=""):
    """A function with one result, and its gradient.

    Args:
        objective: `(*parameters, *args)`.
        parameters, args: arrays.
        note: which variant.
    """
    parameters = [torch.tensor(p, requires_grad=True) for p in parameters]
    args = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    function = compiled(objective)

    def value():
        with torch.no_grad():
            return function(*parameters, *args)

    def gradient():
        result = function(*parameters, *args)
        return result.detach(), *torch.autograd.grad(result, parameters)

    return Work(value, gradient, list, note=note)


# Gaussian mixture.


def factors(icf, d):
    """The lower-triangular matrices of all components, (K, d, d)."""
    columns, rows = np.triu_indices(d, 1)
    lower = torch.zeros(len(icf), d, d, dtype=icf.dtype)
    lower[:, torch.from_numpy(rows), torch.from_numpy(columns)] = icf[:, d:]
    return lower + torch.diag_embed(torch.exp(icf[:, :d]))


def centred(factor, means, x):
    """Every component's matrix times every point's distance from its mean: (K, n, d), as one batched product."""
    return (x - means[:, None]) @ factor.mT


def expanded(factor, means, x):
    """The same as one product with all points, less the products with the means."""
    return x @ factor.mT - (factor @ means[:, :, None]).mT


def mixture(record):
    """`gmm`"""

    def make(product):
        def objective(alphas, means, icf, x, gamma, m):
            (k, d), n = means.shape, len(x)
            y = product(factors(icf, d), means, x)
            terms = (alphas + icf[:, :d].sum(1))[:, None] - 0.5 * torch.sum(y * y, dim=2)
            nu = d + m + 1
            gammas = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (nu + 1 - j)) for j in range(1, d + 1))
            constant = nu * d * (math.log(gamma) - 0.5 * math.log(2)) - gammas
            squares = torch.sum(torch.exp(2 * icf[:, :d])) + torch.sum(icf[:, d:] ** 2)
            prior = 0.5 * gamma**2 * squares - m * torch.sum(icf[:, :d]) - k * constant
            likelihood = torch.sum(torch.logsumexp(terms, dim=0)) - n * torch.logsumexp(alphas, dim=0)
            return likelihood - 0.5 * n * d * math.log(2 * math.pi) + prior

        parameters = (record.alphas, record.means, record.icf)
        return scalar_work(objective, parameters, (record.x, record.gamma, record.m), product.__name__)

    return [make(centred), make(expanded)]


BUILDERS = {"gmm": mixture}

if __name__ == "__main__":
    torch.ones(3, requires_grad=True).sum().backward()
    serve_builders(BUILDERS)
