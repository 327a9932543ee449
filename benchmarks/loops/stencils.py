"""Stencils and partial differential equations on grids."""

from __future__ import annotations

import numpy as np

from .case import case


def _grids(count):
    return lambda rng, steps, *shape: (steps, *(rng.random(shape) for _ in range(count)))


@case(S=(800, 3200), M=(2000, 12000), make=_grids(2), tiny=(3, 20))
def jacobi_1d(steps, A, B):
    """Averages of three neighbours."""
    for _ in range(1, steps):
        B[1:-1] = 0.33333 * (A[:-2] + A[1:-1] + A[2:])
        A[1:-1] = 0.33333 * (B[:-2] + B[1:-1] + B[2:])
    return A, B


@case(S=(50, 150, 150), M=(80, 350, 350), make=_grids(2), tiny=(3, 10, 10))
def jacobi_2d(steps, A, B):
    """Averages of five neighbours."""
    for _ in range(1, steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])
    return A, B


@case(S=(25, 25, 25, 25), M=(50, 40, 40, 40), make=_grids(2), tiny=(3, 6, 6, 6))
def heat_3d(steps, A, B):
    """The heat equation in three dimensions."""
    for _ in range(1, steps):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, 0:-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[1:-1, 1:-1, 1:-1] = (
            0.125 * (B[2:, 1:-1, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[:-2, 1:-1, 1:-1])
            + 0.125 * (B[1:-1, 2:, 1:-1] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, :-2, 1:-1])
            + 0.125 * (B[1:-1, 1:-1, 2:] - 2.0 * B[1:-1, 1:-1, 1:-1] + B[1:-1, 1:-1, 0:-2])
            + B[1:-1, 1:-1, 1:-1]
        )
    return A, B


@case(
    S=(20, 200, 220),
    M=(60, 400, 450),
    make=lambda rng, t, n, m: (t, rng.random((n, m)), rng.random((n, m)), rng.random((n, m)), rng.random(t)),
    tiny=(3, 10, 12),
)
def fdtd_2d(steps, ex, ey, hz, source):
    """Maxwell's equations by finite differences in time."""
    for t in range(steps):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


@case(S=(8, 50), M=(15, 100), make=lambda rng, t, n: (t, rng.random((n, n))), tiny=(2, 8))
def seidel_2d(steps, A):
    """Gauss-Seidel sweeps with nine neighbours: what can be added ahead of a row is."""
    n = A.shape[0]
    for _ in range(steps - 1):
        for i in range(1, n - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2] + A[i - 1, 1:-1] + A[i - 1, 2:] + A[i, 2:] + A[i + 1, :-2] + A[i + 1, 1:-1] + A[i + 1, 2:]
            )
            for j in range(1, n - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0
    return A


@case(S=(5, 100), M=(20, 200), make=lambda rng, t, n: (t, n, rng.random((n, n))), tiny=(2, 8))
def adi(steps, n, u):
    """Alternating direction implicit integration of the heat equation."""
    v = np.empty(u.shape)
    p = np.empty(u.shape)
    q = np.empty(u.shape)
    dx = 1.0 / n
    dt = 1.0 / steps
    a = -2.0 * dt / (dx * dx) / 2.0
    b = 1.0 + 2.0 * dt / (dx * dx)
    c = a
    d = -dt / (dx * dx) / 2.0
    e = 1.0 + dt / (dx * dx)
    f = d
    for _ in range(1, steps + 1):
        v[0, 1 : n - 1] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = v[0, 1 : n - 1]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -c / (a * p[1 : n - 1, j - 1] + b)
            q[1 : n - 1, j] = (
                -d * u[j, 0 : n - 2] + (1.0 + 2.0 * d) * u[j, 1 : n - 1] - f * u[j, 2:n] - a * q[1 : n - 1, j - 1]
            ) / (a * p[1 : n - 1, j - 1] + b)
        v[n - 1, 1 : n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1 : n - 1] = p[1 : n - 1, j] * v[j + 1, 1 : n - 1] + q[1 : n - 1, j]
        u[1 : n - 1, 0] = 1.0
        p[1 : n - 1, 0] = 0.0
        q[1 : n - 1, 0] = u[1 : n - 1, 0]
        for j in range(1, n - 1):
            p[1 : n - 1, j] = -f / (d * p[1 : n - 1, j - 1] + e)
            q[1 : n - 1, j] = (
                -a * v[0 : n - 2, j] + (1.0 + 2.0 * a) * v[1 : n - 1, j] - c * v[2:n, j] - d * q[1 : n - 1, j - 1]
            ) / (d * p[1 : n - 1, j - 1] + e)
        u[1 : n - 1, n - 1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1 : n - 1, j] = p[1 : n - 1, j] * u[1 : n - 1, j + 1] + q[1 : n - 1, j]
    return u


@case(S=(400, 800), M=(720, 1280), make=lambda rng, w, h: (-0.25, rng.random((w, h))), tiny=(9, 12))
def deriche(alpha, image):
    """A recursive edge filter along rows, then along columns."""
    w, h = image.shape
    k = (1.0 - np.exp(-alpha)) * (1.0 - np.exp(-alpha)) / (1.0 + alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a1 = k
    a2 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    y1 = np.empty((w, h))
    y2 = np.empty((w, h))
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0]
    for j in range(2, h):
        y1[:, j] = a1 * image[:, j] + a2 * image[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2[:, h - 1] = 0.0
    y2[:, h - 2] = a3 * image[:, h - 1]
    for j in range(h - 3, -1, -1):
        y2[:, j] = a3 * image[:, j + 1] + a4 * image[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    out = y1 + y2
    y1[0, :] = a1 * out[0, :]
    y1[1, :] = a1 * out[1, :] + a2 * out[0, :] + b1 * y1[0, :]
    for i in range(2, w):
        y1[i, :] = a1 * out[i, :] + a2 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[w - 1, :] = 0.0
    y2[w - 2, :] = a3 * out[w - 1, :]
    for i in range(w - 3, -1, -1):
        y2[i, :] = a3 * out[i + 1, :] + a4 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return y1 + y2


@case(
    S=(64, 64, 60),
    M=(128, 128, 100),
    make=lambda rng, i, j, k: (rng.random((i + 4, j + 4, k)), rng.random((i, j, k))),
    tiny=(5, 6, 3),
)
def hdiff(field, coeff):
    """Horizontal diffusion of a weather model, with flux limiters."""
    i, j = coeff.shape[0], coeff.shape[1]
    lap = 4.0 * field[1 : i + 3, 1 : j + 3, :] - (
        field[2 : i + 4, 1 : j + 3, :]
        + field[0 : i + 2, 1 : j + 3, :]
        + field[1 : i + 3, 2 : j + 4, :]
        + field[1 : i + 3, 0 : j + 2, :]
    )
    res = lap[1:, 1 : j + 1, :] - lap[:-1, 1 : j + 1, :]
    flx = np.where(res * (field[2 : i + 3, 2 : j + 2, :] - field[1 : i + 2, 2 : j + 2, :]) > 0, 0.0, res)
    res = lap[1 : i + 1, 1:, :] - lap[1 : i + 1, :-1, :]
    fly = np.where(res * (field[2 : i + 2, 2 : j + 3, :] - field[2 : i + 2, 1 : j + 2, :]) > 0, 0.0, res)
    return field[2 : i + 2, 2 : j + 2, :] - coeff * (flx[1:, :, :] - flx[:-1, :, :] + fly[:, 1:, :] - fly[:, :-1, :])


@case(
    S=(60, 60, 40),
    M=(112, 112, 80),
    make=lambda rng, i, j, k: (
        *(rng.random((i, j, k)) for _ in range(2)),
        rng.random((i + 1, j, k)),
        *(rng.random((i, j, k)) for _ in range(2)),
        3.0 / 20.0,
    ),
    tiny=(5, 6, 5),
)
def vadv(utens, u_stage, wcon, u_pos, utens_stage, dtr):
    """Vertical advection: a tridiagonal system in each column of the atmosphere."""
    n = u_stage.shape[2]
    ccol = np.empty_like(u_stage)
    dcol = np.empty_like(u_stage)
    for k in range(1):
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        cs = gcv * 0.5
        ccol[:, :, k] = gcv * 0.5
        bcol = dtr - ccol[:, :, k]
        correction = -cs * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction
        ccol[:, :, k] = ccol[:, :, k] / bcol
        dcol[:, :, k] = dcol[:, :, k] / bcol
    for k in range(1, n - 1):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        as_ = gav * 0.5
        cs = gcv * 0.5
        acol = gav * 0.5
        ccol[:, :, k] = gcv * 0.5
        bcol = dtr - acol - ccol[:, :, k]
        correction = -as_ * (u_stage[:, :, k - 1] - u_stage[:, :, k]) - cs * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction
        divided = 1.0 / (bcol - ccol[:, :, k - 1] * acol)
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = (dcol[:, :, k] - dcol[:, :, k - 1] * acol) * divided
    data = np.empty((u_stage.shape[0], u_stage.shape[1]))
    for k in range(n - 1, n):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        as_ = gav * 0.5
        acol = gav * 0.5
        bcol = dtr - acol
        correction = -as_ * (u_stage[:, :, k - 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction
        divided = 1.0 / (bcol - ccol[:, :, k - 1] * acol)
        dcol[:, :, k] = (dcol[:, :, k] - dcol[:, :, k - 1] * acol) * divided
        data[:] = dcol[:, :, k]
        utens_stage[:, :, k] = dtr * (data - u_pos[:, :, k])
    for k in range(n - 2, -1, -1):
        data[:] = dcol[:, :, k] - ccol[:, :, k] * data
        utens_stage[:, :, k] = dtr * (data - u_pos[:, :, k])
    return utens_stage


@case(S=(21, 21, 10, 10), M=(61, 61, 25, 10), make=lambda rng, ny, nx, nt, nit: (ny, nx, nt, nit), tiny=(7, 7, 2, 2))
def cavity_flow(ny, nx, nt, nit):
    """A lid-driven cavity by the pressure-correction method."""
    u = np.zeros((ny, nx))
    v = np.zeros((ny, nx))
    p = np.zeros((ny, nx))
    b = np.zeros((ny, nx))
    dx = 2.0 / (nx - 1)
    dy = 2.0 / (ny - 1)
    dt = 0.1 / nt
    rho = 1.0
    nu = 0.1
    for _ in range(nt):
        un = u.copy()
        vn = v.copy()
        b[1:-1, 1:-1] = rho * (
            1.0 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
            - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
            - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
            - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
        )
        for _ in range(nit):
            pn = p.copy()
            p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2) / (
                2 * (dx**2 + dy**2)
            ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0.0
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (vn[1:-1, 1:-1] - vn[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[0:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
            + nu * dt / dx**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, 0:-2])
            + nu * dt / dy**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[0:-2, 1:-1])
        )
        u[0, :] = 0.0
        u[:, 0] = 0.0
        u[:, -1] = 0.0
        u[-1, :] = 1.0
        v[0, :] = 0.0
        v[-1, :] = 0.0
        v[:, 0] = 0.0
        v[:, -1] = 0.0
    return u, v, p


def _divergence(east, west, north, south, dx, dy):
    """The source of the pressure, from velocities (u, v) at the neighbours of some points."""
    du, dv = (east[0] - west[0]) / (2 * dx), (north[1] - south[1]) / (2 * dy)
    return du + dv, du**2 + 2 * ((north[0] - south[0]) / (2 * dy) * (east[1] - west[1]) / (2 * dx)) + dv**2


@case(S=(41, 10), M=(101, 20), make=lambda rng, n, nit: (n, nit), tiny=(7, 2), numba=False)
def channel_flow(n, nit):
    """A flow between walls that is driven by a force, periodic along the channel, until it is steady."""
    u = np.zeros((n, n))
    v = np.zeros((n, n))
    p = np.ones((n, n))
    dx = dy = 2.0 / (n - 1)
    dt, rho, nu, force = 0.01, 1.0, 0.1, 1.0
    change, steps = 1.0, 0
    while change > 0.001:
        un = np.hstack((u[:, -1:], u, u[:, :1]))
        vn = np.hstack((v[:, -1:], v, v[:, :1]))
        east, west = (un[1:-1, 2:], vn[1:-1, 2:]), (un[1:-1, :-2], vn[1:-1, :-2])
        north, south = (un[2:, 1:-1], vn[2:, 1:-1]), (un[:-2, 1:-1], vn[:-2, 1:-1])
        flow, squares = _divergence(east, west, north, south, dx, dy)
        b = rho * (flow / dt - squares)
        for _ in range(nit):
            pn = np.hstack((p[:, -1:], p, p[:, :1]))
            p[1:-1, :] = ((pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2) / (
                2 * (dx**2 + dy**2)
            ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        pn = np.hstack((p[:, -1:], p, p[:, :1]))
        uc, vc = un[1:-1, 1:-1], vn[1:-1, 1:-1]
        u[1:-1, :] = (
            uc
            - uc * dt / dx * (uc - un[1:-1, :-2])
            - vc * dt / dy * (uc - un[:-2, 1:-1])
            - dt / (2 * rho * dx) * (pn[1:-1, 2:] - pn[1:-1, :-2])
            + nu
            * (
                dt / dx**2 * (un[1:-1, 2:] - 2 * uc + un[1:-1, :-2])
                + dt / dy**2 * (un[2:, 1:-1] - 2 * uc + un[:-2, 1:-1])
            )
            + force * dt
        )
        v[1:-1, :] = (
            vc
            - uc * dt / dx * (vc - vn[1:-1, :-2])
            - vc * dt / dy * (vc - vn[:-2, 1:-1])
            - dt / (2 * rho * dy) * (pn[2:, 1:-1] - pn[:-2, 1:-1])
            + nu
            * (
                dt / dx**2 * (vn[1:-1, 2:] - 2 * vc + vn[1:-1, :-2])
                + dt / dy**2 * (vn[2:, 1:-1] - 2 * vc + vn[:-2, 1:-1])
            )
        )
        total = np.sum(u)
        change = (total - np.sum(un[:, 1:-1])) / total
        steps += 1
    return u, v, p, steps
