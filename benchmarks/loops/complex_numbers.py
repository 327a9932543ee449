"""Loops over arrays of complex numbers: fractals, a Fourier transform, physics of electrons."""

from __future__ import annotations

import numpy as np

from .case import case


def _complex(rng, *shape):
    return rng.random(shape) + 1j * rng.random(shape)


@case(S=(125, 125, 60), M=(250, 250, 150), make=lambda rng, nx, ny, limit: (nx, ny, limit), tiny=(7, 6, 5), numba=False)
def escape_masked(nx, ny, limit):
    """Escape times of the Mandelbrot set: masks of all points choose those that go on."""
    x = np.linspace(-1.75, 0.25, nx)
    y = np.linspace(-1.0, 1.0, ny)
    c = x + y[:, None] * 1j
    steps = np.zeros(c.shape, dtype=np.int64)
    z = np.zeros(c.shape, dtype=np.complex128)
    for n in range(limit):
        inside = np.less(abs(z), 2.0)
        steps[inside] = n
        z[inside] = z[inside] ** 2 + c[inside]
    steps[steps == limit - 1] = 0
    return z, steps


@case(S=(125, 125, 60), M=(250, 250, 150), make=lambda rng, nx, ny, limit: (nx, ny, limit), tiny=(7, 6, 5), numba=False)
def escape_compressed(nx, ny, limit):
    """Escape times of the Mandelbrot set: arrays of the points that have not escaped, which become shorter."""
    xi, yi = np.mgrid[0:nx, 0:ny]
    c = np.linspace(-2.25, 0.75, nx)[xi] + np.linspace(-1.25, 1.25, ny)[yi] * 1j
    steps = np.zeros(c.shape, dtype=np.int64)
    last = np.zeros(c.shape, dtype=np.complex128)
    xi.shape = yi.shape = c.shape = nx * ny
    z = np.zeros(c.shape, np.complex128)
    for i in range(limit):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        out = abs(z) > 2.0
        steps[xi[out], yi[out]] = i + 1
        last[xi[out], yi[out]] = z[out]
        np.logical_not(out, out)
        z = z[out]
        xi, yi = xi[out], yi[out]
        c = c[out]
    return last.T, steps.T


@case(
    S=(40, 40, 2),
    M=(120, 120, 2),
    make=lambda rng, n, m, slabs: (slabs, _complex(rng, slabs + 1, n, n), 1.3 * _complex(rng, 16), m),
    tiny=(5, 5, 2),
    numba=False,
)
def contour_integral(slabs, hamiltonian, points, m):
    """Moments of the resolvent of a polynomial of matrices along a contour."""
    n = hamiltonian.shape[1]
    p0 = np.zeros((n, m), dtype=np.complex128)
    p1 = np.zeros((n, m), dtype=np.complex128)
    for z in points:
        t = np.zeros((n, n), dtype=np.complex128)
        for k in range(slabs + 1):
            t += np.power(z, slabs / 2 - k) * hamiltonian[k]
        x = np.linalg.inv(t)
        if abs(z) < 1.0:
            x = -x
        p0 += x
        p1 += z * x
    return p0, p1


@case(
    S=(2, 14),
    M=(4, 8),
    make=lambda rng, r, k: (r, k, _complex(rng, r**k), np.zeros(r**k, complex)),
    tiny=(2, 4),
    numba=False,
)
def stockham_fft(r, k, x, y):
    """A fast Fourier transform by reshapes and products with a small matrix."""
    n = r**k
    a, b = np.mgrid[0:r, 0:r]
    butterfly = np.exp(-2.0j * np.pi * a * b / r)
    y[:] = x[:]
    rows, cols = np.mgrid[0:r, 0:n]
    for i in range(k):
        view = np.reshape(y, (r**i, r, r ** (k - i - 1)))
        angles = np.exp(-2.0j * np.pi * rows[:, : r**i] * cols[:, : r**i] / r ** (i + 1))
        factors = np.repeat(np.reshape(angles, (r, r**i, 1)), r ** (k - i - 1), axis=2)
        turned = np.reshape(np.transpose(view, axes=(1, 0, 2)) * factors, (r, n // r))
        y[:] = np.reshape(butterfly @ turned, (n,))
    return y


def _self_energies(rng, points, energies, phonons, atoms, orbitals):
    neighbours = rng.integers(0, atoms, (atoms, 2)).astype(np.int32)
    return (
        neighbours,
        _complex(rng, atoms, 2, 2, orbitals, orbitals),
        _complex(rng, points, energies, atoms, orbitals, orbitals),
        _complex(rng, points, phonons, atoms, 2, 2, 2),
        np.zeros((points, energies, atoms, orbitals, orbitals), np.complex128),
    )


@case(S=(2, 4, 2, 6, 3), M=(3, 6, 3, 8, 4), make=_self_energies, tiny=(1, 2, 2, 3, 2))
def self_energies(neighbours, dH, G, D, sigma):
    """Scattering of electrons: small complex products, eight loops deep."""
    for k in range(G.shape[0]):
        for e in range(G.shape[1]):
            for q in range(D.shape[0]):
                for w in range(D.shape[1]):
                    for i in range(D.shape[-2]):
                        for j in range(D.shape[-1]):
                            for a in range(neighbours.shape[0]):
                                for b in range(neighbours.shape[1]):
                                    if e - w >= 0:
                                        left = G[k, e - w, neighbours[a, b]] @ dH[a, b, i]
                                        sigma[k, e, a] += left @ (dH[a, b, j] * D[q, w, a, b, i, j])
    return sigma
