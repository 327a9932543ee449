"""Programs of other kinds: dynamic programming, histograms, simulations, networks."""

from __future__ import annotations

import numpy as np

from .case import case


@case(S=(60,), M=(140,), make=lambda rng, n: (rng.integers(0, 4, n),))
def nussinov(seq):
    """The largest number of base pairs of a folded RNA sequence."""
    n = seq.shape[0]
    table = np.zeros((n, n), np.int64)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


@case(S=(100,), M=(250,), make=lambda rng, n: (rng.integers(0, 4, n),))
def nussinov_slices(seq):
    """The same, with the inner loop as a maximum over slices."""
    n = seq.shape[0]
    table = np.zeros((n, n), np.int64)
    for i in range(n - 2, -1, -1):
        for j in range(i + 1, n):
            best = max(table[i, j - 1], table[i + 1, j])
            if i < j - 1:
                pair = table[i + 1, j - 1] + (1 if seq[i] + seq[j] == 3 else 0)
                best = max(best, pair, np.max(table[i, i + 1 : j] + table[i + 2 : j + 1, j]))
            table[i, j] = best
    return table


@case(S=(200,), M=(400,), make=lambda rng, n: (rng.random((n, n)) * 100.0,))
def floyd_warshall(path):
    """All shortest paths."""
    n = path.shape[0]
    for k in range(n):
        for i in range(n):
            path[i, :] = np.minimum(path[i, :], path[i, k] + path[k, :])
    return path


@case(S=(200,), M=(400,), make=lambda rng, n: (rng.random((n, n)) * 100.0,), numba=False)
def floyd_warshall_outer(path):
    """All shortest paths, a whole matrix at a time."""
    n = path.shape[0]
    for k in range(n):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))
    return path


@case(S=(1600,), M=(16000,), make=lambda rng, n: (rng.integers(0, 256, n).astype(np.uint8), 0x8408))
def crc16(data, poly):
    """A cyclic redundancy check, bit by bit."""
    crc = 0xFFFF
    for b in data:
        cur = 0xFF & b
        for _ in range(8):
            if (crc & 1) ^ (cur & 1):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            cur >>= 1
    crc = ~crc & 0xFFFF
    return ((crc << 8) | ((crc >> 8) & 0xFF)) & 0xFFFF


@case(S=(100000, 100), M=(1000000, 400), make=lambda rng, n, bins: (rng.random(n), rng.random(n), bins), tiny=(100, 5))
def azimint_naive(data, radius, bins):
    """Means over rings, each by a mask."""
    top = radius.max()
    out = np.zeros(bins)
    for i in range(bins):
        inside = (top * i / bins <= radius) & (radius < top * (i + 1) / bins)
        out[i] = data[inside].mean()
    return out


@case(
    S=(400000, 1000), M=(1000000, 1000), make=lambda rng, n, bins: (rng.random(n), rng.random(n), bins), tiny=(100, 5)
)
def azimint_hist(data, radius, bins):
    """Means over rings, by two histograms."""
    low, high = radius.min(), radius.max()
    count = np.zeros(bins, np.int64)
    total = np.zeros(bins)
    scale = bins / (high - low)
    for k in range(len(radius)):
        at = min(int((radius[k] - low) * scale), bins - 1)
        count[at] += 1
        total[at] += data[k]
    return total / count


@case(
    S=(250, 250, 100),
    M=(500, 500, 200),
    make=lambda rng, nx, ny, limit: (nx, ny, limit),
    tiny=(5, 5, 5),
)
def mandelbrot(nx, ny, limit):
    """Escape times, point by point."""
    out = np.zeros((ny, nx), np.int64)
    for j in range(ny):
        for i in range(nx):
            cx = -2.0 + 2.5 * i / nx
            cy = -1.25 + 2.5 * j / ny
            x = 0.0
            y = 0.0
            n = 0
            while n < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + cx, 2.0 * x * y + cy
                n += 1
            out[j, i] = n
    return out


@case(
    S=(25, 50),
    M=(100, 50),
    make=lambda rng, n, steps: (rng.random(n) + 0.5, rng.random((n, 3)), rng.random((n, 3)), 0.01, 0.1, steps),
    tiny=(5, 3),
)
def nbody(mass, pos, vel, dt, softening, steps):
    """Gravity among all pairs, with leapfrog steps."""
    for _ in range(steps):
        x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inv = (dx**2 + dy**2 + dz**2 + softening**2) ** (-1.5)
        acc = np.empty(pos.shape)
        acc[:, 0] = (dx * inv) @ mass
        acc[:, 1] = (dy * inv) @ mass
        acc[:, 2] = (dz * inv) @ mass
        vel += acc * dt
        pos += vel * dt
    return pos, vel


@case(
    S=(16, 16, 128),
    M=(32, 16, 256),
    make=lambda rng, n, h, m: (rng.random((n, h, m, m)).astype(np.float32),),
    tiny=(2, 2, 5),
    numba=False,
)
def softmax(x):
    """A softmax over the last axis."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@case(
    S=(8, 32, 32, 3, 8, 5),
    M=(8, 64, 64, 3, 16, 10),
    make=lambda rng, n, h, w, c, d, k: (rng.random((n, h, w, c)), rng.random((k, k, c, d)), rng.random(d)),
    tiny=(1, 8, 8, 2, 2, 3),
    numba=False,
)
def convolution(image, weights, bias):
    """A convolution with bias, one position of the result after the other."""
    k = weights.shape[0]
    n, h, w, _ = image.shape
    out = np.empty((n, h - k + 1, w - k + 1, weights.shape[3]))
    for i in range(h - k + 1):
        for j in range(w - k + 1):
            part = image[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(part * weights[np.newaxis, :, :, :], axis=(1, 2, 3))
    return out + bias


@case(S=(20000, 40), M=(100000, 60), make=lambda rng, n, k: _sparse(rng, n, k), tiny=(20, 3))
def spmv(rows, cols, vals, x):
    """A sparse matrix, in compressed rows, times a vector."""
    y = np.empty(rows.size - 1)
    for i in range(rows.size - 1):
        y[i] = vals[rows[i] : rows[i + 1]] @ x[cols[rows[i] : rows[i + 1]]]
    return y


def _sparse(rng, n, each):
    counts = rng.integers(0, 2 * each, n)
    rows = np.concatenate([[0], np.cumsum(counts)])
    return rows, rng.integers(0, n, rows[-1]), rng.random(rows[-1]), rng.random(n)


@case(S=(2000,), M=(4000,), make=lambda rng, n: (rng.random((n, n)),))
def go_fast(a):
    """A trace of tanh, added to everything."""
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


@case(S=(500, 600), M=(1500, 1500), make=lambda rng, n, m: (rng.random((n, m)), rng.random((n, m))))
def arc_distance(a, b):
    """An angle between points, element by element."""
    temp = np.sin((b - a) / 2.0) ** 2 + np.cos(a) * np.cos(b) * np.sin((b + a) / 2.0) ** 2
    return 2.0 * np.arctan2(np.sqrt(temp), np.sqrt(1.0 - temp))


@case(
    S=(1000, 1000),
    M=(2500, 2500),
    make=lambda rng, n, m: (rng.integers(0, 256, (n, m)), rng.integers(0, 256, (n, m)), 4, 3, 9),
)
def compute(a, b, p, q, r):
    """Clipped integers."""
    return np.minimum(np.maximum(a, 2), 10) * p + b * q + r


@case(S=(12,), M=(16,), make=lambda rng, k: (rng.random(1 << k), rng.random(1 << k)), tiny=(4,))
def fft_radix2(re, im):
    """A fast Fourier transform (Stockham), on real and imaginary parts."""
    n = len(re)
    half, stride = n // 2, 1
    while half >= 1:
        new_re, new_im = np.empty(n), np.empty(n)
        for p in range(half):
            angle = -np.pi * p / half
            c, s = np.cos(angle), np.sin(angle)
            a_re, a_im = re[stride * p : stride * (p + 1)], im[stride * p : stride * (p + 1)]
            b_re = re[stride * (p + half) : stride * (p + half + 1)]
            b_im = im[stride * (p + half) : stride * (p + half + 1)]
            d_re, d_im = a_re - b_re, a_im - b_im
            new_re[stride * 2 * p : stride * (2 * p + 1)] = a_re + b_re
            new_im[stride * 2 * p : stride * (2 * p + 1)] = a_im + b_im
            new_re[stride * (2 * p + 1) : stride * (2 * p + 2)] = d_re * c - d_im * s
            new_im[stride * (2 * p + 1) : stride * (2 * p + 2)] = d_re * s + d_im * c
        re, im = new_re, new_im
        half, stride = half // 2, stride * 2
    return re, im


@case(S=(200, 300), M=(600, 800), make=lambda rng, n, m: (rng.random(n), rng.random(m)))
def longest_path(x, y):
    """Dynamic time warping: each row follows from the one above."""
    n, m = len(x), len(y)
    cost = np.full((n + 1, m + 1), 1e30)
    cost[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost[i, j] = abs(x[i - 1] - y[j - 1]) + min(cost[i - 1, j], cost[i, j - 1], cost[i - 1, j - 1])
    return cost[n, m]


@case(S=(1000,), M=(4000,), make=lambda rng, n: (rng.random((n, 8)), rng.random((20, 8))))
def nearest(points, centres):
    """For each point the nearest of some centres, row by row."""
    out = np.empty(len(points), np.int64)
    for i in range(len(points)):
        out[i] = np.argmin(np.sum((centres - points[i]) ** 2, axis=1))
    return out


@case(S=(20000, 50), M=(100000, 100), make=lambda rng, n, w: (rng.random(n), w), tiny=(30, 4))
def moving_maximum(x, w):
    """The maximum and the mean of a moving window."""
    n = len(x) - w + 1
    top, mean = np.empty(n), np.empty(n)
    for i in range(n):
        top[i] = np.max(x[i : i + w])
        mean[i] = np.sum(x[i : i + w]) / w
    return top, mean


@case(
    S=(400000, 1000),
    M=(1000000, 1000),
    make=lambda rng, n, bins: (rng.random(n), rng.random(n), bins),
    tiny=(100, 5),
    numba=False,
)
def azimint_library(data, radius, bins):
    """Means over rings, by the library's histograms."""
    return np.histogram(radius, bins, weights=data)[0] / np.histogram(radius, bins)[0]


def _acceleration(pos, mass, softening):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    dx, dy, dz = x.T - x, y.T - y, z.T - z
    inv = dx**2 + dy**2 + dz**2 + softening**2
    inv[inv > 0] = inv[inv > 0] ** (-1.5)
    return np.hstack(((dx * inv) @ mass, (dy * inv) @ mass, (dz * inv) @ mass))


def _energy(pos, vel, mass):
    x, y, z = pos[:, 0:1], pos[:, 1:2], pos[:, 2:3]
    inv = np.sqrt((x.T - x) ** 2 + (y.T - y) ** 2 + (z.T - z) ** 2)
    inv[inv > 0] = 1.0 / inv[inv > 0]
    return 0.5 * np.sum(mass * vel**2), np.sum(np.triu(-(mass * mass.T) * inv, 1))


@case(
    S=(25, 50),
    M=(100, 50),
    make=lambda rng, n, steps: (rng.random((n, 1)) + 0.5, rng.random((n, 3)), rng.random((n, 3)), 0.01, 0.1, steps),
    tiny=(5, 3),
    numba=False,
)
def nbody_energies(mass, pos, vel, dt, softening, steps):
    """Gravity among all pairs, with the energies after each step; masks leave out what would be divided by zero."""
    vel -= np.mean(mass * vel, axis=0) / np.mean(mass)
    acc = _acceleration(pos, mass, softening)
    kinetic, potential = np.ndarray(steps + 1), np.ndarray(steps + 1)
    kinetic[0], potential[0] = _energy(pos, vel, mass)
    for i in range(steps):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = _acceleration(pos, mass, softening)
        vel += acc * dt / 2.0
        kinetic[i + 1], potential[i + 1] = _energy(pos, vel, mass)
    return kinetic, potential
