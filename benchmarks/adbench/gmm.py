"""Gaussian mixture: the log likelihood of points, with a Wishart prior, and its gradient. ADBench's objective GMM."""

import math

import numpy as np

from myia_relay import relay


def unpack(icf, d):
    """The lower-triangular factor of one component: logarithms of the diagonal, then the rest column by column."""
    factor = np.zeros((d, d))
    at = d
    for j in range(d):
        factor[j, j] = np.exp(icf[j])
        for i in range(j + 1, d):
            factor[i, j] = icf[at]
            at += 1
    return factor


def log_gamma_distribution(a, d):
    """Logarithm of the multivariate gamma function."""
    total = 0.25 * d * (d - 1) * math.log(math.pi)
    for j in range(1, d + 1):
        total += math.lgamma(a + 0.5 * (1 - j))
    return total


def log_wishart_prior(icf, d, gamma, m):
    """Of all components together."""
    k = icf.shape[0]
    nu = d + m + 1
    constant = nu * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma_distribution(0.5 * nu, d)
    diagonal = icf[:, :d]
    lower = icf[:, d:]
    squares = np.sum(np.exp(diagonal) ** 2) + np.sum(lower**2)
    return 0.5 * gamma * gamma * squares - m * np.sum(diagonal) - k * constant


def logsumexp(x):
    """Over the first axis."""
    top = np.max(x, axis=0)
    return top + np.log(np.sum(np.exp(x - top), axis=0))


@relay
def objective(alphas, means, icf, x, gamma, m):
    """Log likelihood of the points `x` (n, d) with prior.

    Args:
        alphas: (K,).
        means: (K, d).
        icf: (K, d (d + 1) / 2).
        x: (n, d).
        gamma, m: a float and an int.
    """
    k, d = means.shape
    n = x.shape[0]
    terms = np.zeros((k, n))
    for c in range(k):
        y = (x - means[c]) @ unpack(icf[c], d).T
        terms[c] = alphas[c] + np.sum(icf[c, :d]) - 0.5 * np.sum(y * y, axis=1)
    likelihood = np.sum(logsumexp(terms)) - n * logsumexp(alphas) - 0.5 * n * d * math.log(2 * math.pi)
    return likelihood + log_wishart_prior(icf, d, gamma, m)


gradient = relay.value_and_grad(objective, ("alphas", "means", "icf"))
