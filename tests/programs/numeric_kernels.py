"""Numerical kernels in the style in which people write them for NumPy: stencils, linear algebra, statistics, physics, networks.

Each is a program with a function that draws small arguments for it. The names are those that the literature has for these
algorithms (PolyBench, the Python benchmarks for high-performance computing); the texts are our own.
"""

import numpy as np

draw = np.random.default_rng(7)
KERNELS = {}


def kernel(*make):
    """A kernel, and what makes its arguments."""

    def register(f):
        KERNELS[f.__name__] = f, make
        return f

    return register


def uniform(*shape):
    return lambda: draw.uniform(0.1, 1.0, shape)


def same(value):
    return lambda: value


def positive_definite(n):
    def make():
        a = draw.uniform(-1.0, 1.0, (n, n))
        return a @ a.T + n * np.eye(n)

    return make


# --- stencils and partial differential equations --------------------------------------------------------------------


@kernel(same(3), same(8), lambda: np.fromfunction(lambda i, j: (i + 8 - j) / 8, (8, 8)))
def adi(steps, n, u):
    v, p, q = np.empty(u.shape, u.dtype), np.empty(u.shape, u.dtype), np.empty(u.shape, u.dtype)
    dx, dt = 1.0 / n, 1.0 / steps
    mul1, mul2 = 2.0 * dt / dx**2, 1.0 * dt / dx**2
    a = -mul1 / 2.0
    b = 1.0 + mul1
    c = a
    d = -mul2 / 2.0
    e = 1.0 + mul2
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


def build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1 / dt * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )


def pressure_poisson(nit, p, dx, dy, b):
    pn = np.empty_like(p)
    pn = p.copy()
    for _ in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = ((pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2) / (
            2 * (dx**2 + dy**2)
        ) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0


@kernel(
    same(7),
    same(6),
    same(2),
    same(3),
    uniform(6, 7),
    uniform(6, 7),
    same(0.1),
    same(0.2),
    same(0.3),
    uniform(6, 7),
    same(1.0),
    same(0.1),
)
def cavity_flow(nx, ny, nt, nit, u, v, dt, dx, dy, p, rho, nu):
    un = np.empty_like(u)
    vn = np.empty_like(v)
    b = np.zeros((ny, nx))
    for _ in range(nt):
        un = u.copy()
        vn = v.copy()
        build_up_b(b, rho, dt, u, v, dx, dy)
        pressure_poisson(nit, p, dx, dy, b)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu
            * (
                dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
                + dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
            )
        )
        v[1:-1, 1:-1] = vn[1:-1, 1:-1] - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1  # the lid
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


@kernel(same(4), uniform(6, 7), uniform(6, 7), same(0.1), same(0.3), uniform(6, 7), same(1.0), same(0.1), same(1.0))
def channel_flow(nit, u, v, dt, dx, p, rho, nu, force):
    udiff = 1
    stepcount = 0
    while udiff > 0.01 and stepcount < 8:
        un = u.copy()
        vn = v.copy()
        for _ in range(nit):
            pn = p.copy()
            p[1:-1, 1:-1] = (pn[1:-1, 2:] + pn[1:-1, 0:-2] + pn[2:, 1:-1] + pn[0:-2, 1:-1]) / 4
            p[1:-1, -1] = (pn[1:-1, 0] + pn[1:-1, -2] + pn[2:, -1] + pn[0:-2, -1]) / 4
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
            + force * dt
        )
        u[1:-1, -1] = un[1:-1, -1] - un[1:-1, -1] * dt / dx * (un[1:-1, -1] - un[1:-1, -2]) + force * dt
        u[0, :] = 0
        u[-1, :] = 0
        v[0, :] = 0
        udiff = (np.sum(u) - np.sum(un)) / np.sum(u)
        stepcount += 1
    return stepcount


@kernel(uniform(5), uniform(6, 7), uniform(6, 7), uniform(6, 7))
def fdtd_2d(fict, ex, ey, hz):
    for t in range(fict.shape[0]):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@kernel(uniform(9, 8, 3), uniform(5, 4, 3))
def hdiff(in_field, coeff):
    i, j, k = coeff.shape[0], coeff.shape[1], coeff.shape[2]
    lap = 4.0 * in_field[1 : i + 3, 1 : j + 3, :] - (
        in_field[2 : i + 4, 1 : j + 3, :]
        + in_field[0 : i + 2, 1 : j + 3, :]
        + in_field[1 : i + 3, 2 : j + 4, :]
        + in_field[1 : i + 3, 0 : j + 2, :]
    )
    res = lap[1:, 1 : j + 1, :] - lap[:-1, 1 : j + 1, :]
    flx = np.where((res * (in_field[2 : i + 3, 2 : j + 2, :] - in_field[1 : i + 2, 2 : j + 2, :])) > 0, 0, res)
    res = lap[1 : i + 1, 1:, :] - lap[1 : i + 1, :-1, :]
    fly = np.where((res * (in_field[2 : i + 2, 2 : j + 3, :] - in_field[2 : i + 2, 1 : j + 2, :])) > 0, 0, res)
    out = np.empty((i, j, k), in_field.dtype)
    out[:, :, :] = in_field[2 : i + 2, 2 : j + 2, :] - coeff[:, :, :] * (
        flx[1:, :, :] - flx[:-1, :, :] + fly[:, 1:, :] - fly[:, :-1, :]
    )
    return out


@kernel(same(3), uniform(6, 6, 6), uniform(6, 6, 6))
def heat_3d(steps, a, b):
    for _ in range(1, steps):
        b[1:-1, 1:-1, 1:-1] = (
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, 0:-2])
            + a[1:-1, 1:-1, 1:-1]
        )
        a[1:-1, 1:-1, 1:-1] = b[1:-1, 1:-1, 1:-1] * 0.5 + 0.1 * b[2:, 1:-1, 1:-1]


@kernel(same(4), uniform(12), uniform(12))
def jacobi_1d(steps, a, b):
    for _ in range(1, steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


@kernel(same(4), uniform(7, 7), uniform(7, 7))
def jacobi_2d(steps, a, b):
    for _ in range(1, steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])


@kernel(same(3), same(7), uniform(7, 7))
def seidel_2d(steps, n, a):
    for _ in range(steps - 1):
        for i in range(1, n - 1):
            a[i, 1:-1] += (
                a[i - 1, :-2] + a[i - 1, 1:-1] + a[i - 1, 2:] + a[i, 2:] + a[i + 1, :-2] + a[i + 1, 1:-1] + a[i + 1, 2:]
            )
            for j in range(1, n - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


@kernel(uniform(4, 3, 6), uniform(5, 3, 6), uniform(4, 3, 6), uniform(4, 3, 6), uniform(4, 3, 6), same(3.0 / 20.0))
def vadv(utens_stage, wcon, u_stage, u_pos, utens, dtr_stage):
    i, j, k = utens_stage.shape[0], utens_stage.shape[1], utens_stage.shape[2]
    ccol = np.ndarray((i, j, k), dtype=utens_stage.dtype)
    dcol = np.ndarray((i, j, k), dtype=utens_stage.dtype)
    data_col = np.ndarray((i, j), dtype=utens_stage.dtype)
    bet_m, bet_p = 0.5 * (1.0 - 0.1), 0.5 * (1.0 + 0.1)
    for k in range(1):
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        cs = gcv * bet_m
        ccol[:, :, k] = gcv * bet_p
        bcol = dtr_stage - ccol[:, :, k]
        correction = -cs * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction
        divided = 1.0 / bcol
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = dcol[:, :, k] * divided
    for k in range(1, utens_stage.shape[2] - 1):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        as_ = gav * bet_m
        cs = gcv * bet_m
        acol = gav * bet_p
        ccol[:, :, k] = gcv * bet_p
        bcol = dtr_stage - acol - ccol[:, :, k]
        correction = -as_ * (u_stage[:, :, k - 1] - u_stage[:, :, k]) - cs * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        dcol[:, :, k] = dtr_stage * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction
        divided = 1.0 / (bcol - ccol[:, :, k - 1] * acol)
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = (dcol[:, :, k] - dcol[:, :, k - 1] * acol) * divided
    for k in range(utens_stage.shape[2] - 2, utens_stage.shape[2] - 1):
        dcol[:, :, k + 1] = dcol[:, :, k] * 0.5
    for k in range(utens_stage.shape[2] - 1, utens_stage.shape[2] - 2, -1):
        data_col[:] = dcol[:, :, k]
        utens_stage[:, :, k] = dtr_stage * (data_col - u_pos[:, :, k])
    for k in range(utens_stage.shape[2] - 2, -1, -1):
        data_col[:] = dcol[:, :, k] - ccol[:, :, k] * data_col[:, :]
        utens_stage[:, :, k] = dtr_stage * (data_col - u_pos[:, :, k])


# --- linear algebra --------------------------------------------------------------------------------------------------


@kernel(uniform(5, 6), uniform(6))
def atax(a, x):
    return (a @ x) @ a


@kernel(uniform(5, 6), uniform(6), uniform(5))
def bicg(a, p, r):
    return r @ a, a @ p


@kernel(positive_definite(6))
def cholesky(a):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] -= np.dot(a[i, :i], a[i, :i])
        a[i, i] = np.sqrt(a[i, i])


@kernel(positive_definite(6))
def cholesky2(a):
    a[:] = np.linalg.cholesky(a) + np.triu(a, k=1)


@kernel(uniform(3, 4, 5), uniform(5, 5))
def doitgen(a, c4):
    nr, nq, np_ = a.shape
    a[:] = np.reshape(np.reshape(a, (nr, nq, 1, np_)) @ c4, (nr, nq, np_))


@kernel(uniform(7))
def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


@kernel(lambda: draw.integers(1, 50, (6, 6)))
def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


@kernel(same(1.5), same(1.2), uniform(4, 6), uniform(4, 5), uniform(5, 6))
def gemm(alpha, beta, c, a, b):
    c[:] = alpha * a @ b + beta * c


@kernel(
    same(1.5),
    same(1.2),
    uniform(5, 5),
    uniform(5),
    uniform(5),
    uniform(5),
    uniform(5),
    uniform(5),
    uniform(5),
    uniform(5),
    uniform(5),
)
def gemver(alpha, beta, a, u1, v1, u2, v2, w, x, y, z):
    a += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ a + z
    w += alpha * a @ x


@kernel(same(1.5), same(1.2), uniform(5, 5), uniform(5, 5), uniform(5))
def gesummv(alpha, beta, a, b, x):
    return alpha * a @ x + beta * b @ x


@kernel(uniform(6, 5))
def gramschmidt(a):
    q = np.zeros_like(a)
    r = np.zeros((a.shape[1], a.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        nrm = np.dot(a[:, k], a[:, k])
        r[k, k] = np.sqrt(nrm)
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


@kernel(same(1.5), same(1.2), uniform(4, 5), uniform(5, 6), uniform(6, 7), uniform(4, 7))
def k2mm(alpha, beta, a, b, c, d):
    d[:] = alpha * a @ b @ c + beta * d


@kernel(uniform(4, 5), uniform(5, 6), uniform(6, 7), uniform(7, 3))
def k3mm(a, b, c, d):
    return a @ b @ c @ d


@kernel(positive_definite(6))
def lu(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]


@kernel(positive_definite(6), uniform(6))
def ludcmp(a, b):
    x = np.zeros_like(b)
    y = np.zeros_like(b)
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]
    for i in range(a.shape[0]):
        y[i] = b[i] - a[i, :i] @ y[:i]
    for i in range(a.shape[0] - 1, -1, -1):
        x[i] = (y[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x, y


@kernel(uniform(5), uniform(5), uniform(5), uniform(5), uniform(5, 5))
def mvt(x1, x2, y_1, y_2, a):
    x1 += a @ y_1
    x2 += y_2 @ a


@kernel(lambda: np.array([0, 2, 3, 6]), lambda: np.array([1, 3, 0, 2, 3, 1]), uniform(6), uniform(4))
def spmv(row, col, val, x):
    y = np.empty(row.size - 1, val.dtype)
    for i in range(row.size - 1):
        cols = col[row[i] : row[i + 1]]
        vals = val[row[i] : row[i + 1]]
        y[i] = vals @ x[cols]
    return y


@kernel(same(1.5), same(1.2), uniform(5, 6), uniform(5, 5), uniform(5, 6))
def symm(alpha, beta, c, a, b):
    temp2 = np.empty((c.shape[1],), dtype=c.dtype)
    c *= beta
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            c[:i, j] += alpha * b[i, j] * a[i, :i]
            temp2[j] = b[:i, j] @ a[i, :i]
        c[i, :] += alpha * b[i, :] * a[i, i] + alpha * temp2


@kernel(same(1.5), same(1.2), uniform(5, 5), uniform(5, 4), uniform(5, 4))
def syr2k(alpha, beta, c, a, b):
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[: i + 1, k] * alpha * b[i, k] + b[: i + 1, k] * alpha * a[i, k]


@kernel(same(1.5), same(1.2), uniform(5, 5), uniform(5, 4))
def syrk(alpha, beta, c, a):
    for i in range(a.shape[0]):
        c[i, : i + 1] *= beta
        for k in range(a.shape[1]):
            c[i, : i + 1] += alpha * a[i, k] * a[: i + 1, k]


@kernel(positive_definite(6), uniform(6), uniform(6))
def trisolv(lower, x, b):
    for i in range(x.shape[0]):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]


@kernel(same(1.5), uniform(5, 5), uniform(5, 6))
def trmm(alpha, a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    b *= alpha


# --- statistics and data ---------------------------------------------------------------------------------------------


@kernel(uniform(6), uniform(6), uniform(6), uniform(6))
def arc_distance(theta_1, phi_1, theta_2, phi_2):
    temp = np.sin((theta_2 - theta_1) / 2) ** 2 + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(temp), np.sqrt(1 - temp))


@kernel(uniform(40), uniform(40), same(5))
def azimint_naive(data, radius, npt):
    rmax = radius.max()
    res = np.zeros(npt, dtype=np.float64)
    for i in range(npt):
        r1 = rmax * i / npt
        r2 = rmax * (i + 1) / npt
        mask_r12 = np.logical_and((r1 <= radius), (radius < r2))
        values_r12 = data[mask_r12]
        res[i] = values_r12.mean()
    return res


def get_bin_edges(a, bins):
    bin_edges = np.zeros((bins + 1,), dtype=np.float64)
    a_min = a.min()
    a_max = a.max()
    delta = (a_max - a_min) / bins
    for i in range(bin_edges.shape[0]):
        bin_edges[i] = a_min + i * delta
    bin_edges[-1] = a_max
    return bin_edges


def compute_bin(x, bin_edges):
    n = bin_edges.shape[0] - 1
    a_min = bin_edges[0]
    a_max = bin_edges[-1]
    if x == a_max:
        return n - 1
    return int(n * (x - a_min) / (a_max - a_min))


def histogram(a, bins, weights):
    hist = np.zeros((bins,), dtype=a.dtype)
    bin_edges = get_bin_edges(a, bins)
    for i in range(a.shape[0]):
        at = compute_bin(a[i], bin_edges)
        hist[at] += weights[i]
    return hist, bin_edges


@kernel(uniform(40), uniform(40), same(5))
def azimint_hist(data, radius, npt):
    histu = np.histogram(radius, npt)[0]
    histw = np.histogram(radius, npt, weights=data)[0]
    own = histogram(radius, npt, data)[0]
    return histw / histu, own / histu


@kernel(lambda: draw.integers(0, 1000, (5, 6)), lambda: draw.integers(0, 1000, (5, 6)), same(4), same(3), same(9))
def compute(array_1, array_2, a, b, c):
    return np.clip(array_1, 2, 10) * a + array_2 * b + c


@kernel(lambda: draw.integers(-20, 20, (5, 6)), same(-7), same(9))
def clipping(x, low, high):
    y = x.copy()
    y[y < low] = low
    y[y > high] = high
    return y


@kernel(same(5.0), uniform(8, 5))
def correlation(float_n, data):
    m = data.shape[1]
    mean = np.mean(data, axis=0)
    stddev = np.std(data, axis=0)
    stddev[stddev <= 0.1] = 1.0
    data -= mean
    data /= np.sqrt(float_n) * stddev
    corr = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        corr[i + 1 : m, i] = corr[i, i + 1 : m] = data[:, i] @ data[:, i + 1 : m]
    return corr


@kernel(same(5.0), uniform(8, 5))
def covariance(float_n, data):
    m = data.shape[1]
    mean = np.mean(data, axis=0)
    data -= mean
    cov = np.zeros((m, m), dtype=data.dtype)
    for i in range(m):
        cov[i:m, i] = cov[i, i:m] = data[:, i] @ data[:, i:m] / (float_n - 1.0)
    return cov


@kernel(same(5.0), uniform(8, 5))
def covariance2(float_n, data):
    return np.cov(np.transpose(data)) * float_n


@kernel(lambda: draw.integers(0, 256, 20, dtype=np.uint8))
def crc16(data):
    poly = 0x8408
    crc = 0xFFFF
    for b in data:
        cur_byte = 0xFF & b
        for _ in range(8):
            if (crc & 0x0001) ^ (cur_byte & 0x0001):
                crc = (crc >> 1) ^ poly
            else:
                crc >>= 1
            cur_byte >>= 1
    crc = ~crc & 0xFFFF
    crc = (crc << 8) | ((crc >> 8) & 0xFF)
    return crc & 0xFFFF


@kernel(same(0.25), uniform(7, 6))
def deriche(alpha, img_in):
    k = (1.0 - np.exp(-alpha)) * (1.0 - np.exp(-alpha)) / (1.0 + alpha * np.exp(-alpha) - np.exp(2.0 * alpha))
    a1 = a5 = k
    a2 = a6 = k * np.exp(-alpha) * (alpha - 1.0)
    a3 = a7 = k * np.exp(-alpha) * (alpha + 1.0)
    a4 = a8 = -k * np.exp(-2.0 * alpha)
    b1 = 2.0 ** (-alpha)
    b2 = -np.exp(-2.0 * alpha)
    c1 = c2 = 1
    y1 = np.empty_like(img_in)
    y1[:, 0] = a1 * img_in[:, 0]
    y1[:, 1] = a1 * img_in[:, 1] + a2 * img_in[:, 0] + b1 * y1[:, 0]
    for j in range(2, img_in.shape[1]):
        y1[:, j] = a1 * img_in[:, j] + a2 * img_in[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2 = np.empty_like(img_in)
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * img_in[:, -1]
    for j in range(img_in.shape[1] - 3, -1, -1):
        y2[:, j] = a3 * img_in[:, j + 1] + a4 * img_in[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
    out = c1 * (y1 + y2)
    y1[0, :] = a5 * out[0, :]
    y1[1, :] = a5 * out[1, :] + a6 * out[0, :] + b1 * y1[0, :]
    for i in range(2, img_in.shape[0]):
        y1[i, :] = a5 * out[i, :] + a6 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[-1, :] = 0.0
    y2[-2, :] = a7 * out[-1, :]
    for i in range(img_in.shape[0] - 3, -1, -1):
        y2[i, :] = a7 * out[i + 1, :] + a8 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return c2 * (y1 + y2)


@kernel(uniform(7, 7))
def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


def match(b1, b2):
    if b1 + b2 == 3:
        return 1
    return 0


@kernel(same(9), lambda: draw.integers(0, 4, 9))
def nussinov(n, seq):
    table = np.zeros((n, n), np.int32)
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            if j - 1 >= 0:
                table[i, j] = max(table[i, j], table[i, j - 1])
            if i + 1 < n:
                table[i, j] = max(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < n:
                if i < j - 1:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1] + match(seq[i], seq[j]))
                else:
                    table[i, j] = max(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = max(table[i, j], table[i, k] + table[k + 1, j])
    return table


def safe(board, row, col):
    for r in range(row):
        if board[r] == col or abs(board[r] - col) == row - r:
            return False
    return True


def place(board, row, n):
    if row == n:
        return 1
    count = 0
    for col in range(n):
        if safe(board, row, col):
            board[row] = col
            count += place(board, row + 1, n)
    return count


@kernel(same(5))
def nqueens(n):
    board = np.zeros(n, np.int64)
    return place(board, 0, n)


# --- physics ---------------------------------------------------------------------------------------------------------


def get_acc(pos, mass, g, softening):
    x = pos[:, 0:1]
    y = pos[:, 1:2]
    z = pos[:, 2:3]
    dx = x.T - x
    dy = y.T - y
    dz = z.T - z
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)
    ax = g * (dx * inv_r3) @ mass
    ay = g * (dy * inv_r3) @ mass
    az = g * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


def get_energy(pos, vel, mass, g):
    ke = 0.5 * np.sum(mass * vel**2)
    x = pos[:, 0:1]
    y = pos[:, 1:2]
    dx = x.T - x
    dy = y.T - y
    inv_r = np.sqrt(dx**2 + dy**2)
    inv_r[inv_r > 0] = 1.0 / inv_r[inv_r > 0]
    pe = g * np.sum(np.sum(np.triu(-(mass * mass.T) * inv_r, 1)))
    return ke, pe


@kernel(uniform(5, 1), uniform(5, 3), uniform(5, 3), same(5), same(4), same(0.01), same(1.0), same(0.1))
def nbody(mass, pos, vel, n, nt, dt, g, softening):
    vel -= np.mean(mass * vel, axis=0) / np.mean(mass)
    acc = get_acc(pos, mass, g, softening)
    ke = np.ndarray(nt + 1, dtype=np.float64)
    pe = np.ndarray(nt + 1, dtype=np.float64)
    ke[0], pe[0] = get_energy(pos, vel, mass, g)
    t = 0.0
    for i in range(nt):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc[:] = get_acc(pos, mass, g, softening)
        vel += acc * dt / 2.0
        t += dt
        ke[i + 1], pe[i + 1] = get_energy(pos, vel, mass, g)
    return ke, pe


@kernel(same(-2.0), same(0.5), same(-1.2), same(1.2), same(7), same(6), same(9), same(2.0))
def mandelbrot1(xmin, xmax, ymin, ymax, xn, yn, maxiter, horizon):
    x = np.linspace(xmin, xmax, xn, dtype=np.float64)
    y = np.linspace(ymin, ymax, yn, dtype=np.float64)
    c = x + y[:, None] * 1j
    n = np.zeros(c.shape, dtype=np.int64)
    z = np.zeros(c.shape, dtype=np.complex128)
    for k in range(maxiter):
        keep = np.less(abs(z), horizon)
        n[keep] = k
        z[keep] = z[keep] ** 2 + c[keep]
    n[n == maxiter - 1] = 0
    return z, n


@kernel(same(-2.0), same(0.5), same(-1.2), same(1.2), same(7), same(6), same(9), same(2.0))
def mandelbrot2(xmin, xmax, ymin, ymax, xn, yn, itermax, horizon):
    xi, yi = np.mgrid[0:xn, 0:yn]
    x = np.linspace(xmin, xmax, xn, dtype=np.float64)[xi]
    y = np.linspace(ymin, ymax, yn, dtype=np.float64)[yi]
    c = x + y * 1j
    n_ = np.zeros(c.shape, dtype=np.int64)
    z_ = np.zeros(c.shape, dtype=np.complex128)
    xi.shape = yi.shape = c.shape = xn * yn
    z = np.zeros(c.shape, np.complex128)
    for i in range(itermax):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        rem = abs(z) > horizon
        n_[xi[rem], yi[rem]] = i + 1
        z_[xi[rem], yi[rem]] = z[rem]
        rem = ~rem
        z = z[rem]
        xi, yi = xi[rem], yi[rem]
        c = c[rem]
    return z_.T, n_.T


def random_complex(*shape):
    return lambda: draw.uniform(-1, 1, shape) + 1j * draw.uniform(-1, 1, shape)


@kernel(
    same(4),
    same(2),
    same(3),
    random_complex(3, 4, 4),
    lambda: draw.uniform(0, 1, 3) * np.exp(1j * draw.uniform(0, 6, 3)),
    random_complex(4, 4),
)
def contour_integral(nr, nm, slab, ham, int_pts, y):
    p0 = np.zeros((nr, nm + 2), dtype=np.complex128)
    p1 = np.zeros((nr, nm + 2), dtype=np.complex128)
    for z in int_pts:
        tz = np.zeros((nr, nr), dtype=np.complex128)
        for n in range(slab):
            zz = np.power(z, slab / 2 - n)
            tz += zz * ham[n]
        if nr == nm:
            x = np.linalg.inv(tz)
        else:
            x = np.linalg.solve(tz, y)
        if abs(z) < 1.0:
            x = -x
        p0 += x
        p1 += z * x
    return p0, p1


@kernel(same(2), same(4), random_complex(16))
def stockham_fft(r, k, x):
    n = r**k
    i_coord, j_coord = np.mgrid[0:r, 0:r]
    dft_mat = np.empty((r, r), dtype=np.complex128)
    dft_mat = np.exp(-2.0j * np.pi * i_coord * j_coord / r)
    y = np.empty_like(x)
    y[:] = x[:]
    ii_coord, jj_coord = np.mgrid[0:r, 0 : r**k]
    for i in range(k):
        yv = np.reshape(y, (r**i, r, r ** (k - i - 1)))
        tmp_perm = np.transpose(yv, axes=(1, 0, 2))
        d = np.empty((r, r**i, r ** (k - i - 1)), dtype=np.complex128)
        tmp = np.exp(-2.0j * np.pi * ii_coord[:, : r**i] * jj_coord[:, : r**i] / r ** (i + 1))
        d[:] = np.repeat(np.reshape(tmp, (r, r**i, 1)), r ** (k - i - 1), axis=2)
        tmp_twid = np.reshape(tmp_perm, (r, r**i, r ** (k - i - 1))) * d
        y[:] = np.reshape(dft_mat @ np.reshape(tmp_twid, (r, r ** (k - 1))), (n,))
    return y


@kernel(
    lambda: draw.integers(0, 2, (3, 2)),
    random_complex(2, 3, 3, 2),
    random_complex(2, 3, 2, 2),
    random_complex(2, 2, 2),
    random_complex(2, 2, 2),
)
def scattering_self_energies(neigh, dh, g, d, sigma):
    for a in range(neigh.shape[0]):
        for b in range(neigh.shape[1]):
            for i in range(d.shape[0]):
                for e in range(g.shape[1]):
                    f = neigh[a, b]
                    dhg = g[f, e] @ dh[i, a, b]
                    dhd = dh[i, a, b] * d[i, 0, 1]
                    sigma[i] += dhg @ dhd[:, None] @ np.ones((1, 2)) * 0.1
    return sigma


# --- neural networks -------------------------------------------------------------------------------------------------


def relu2(x):
    return np.maximum(x, 0)


def softmax(x):
    tmp_max = np.max(x, axis=-1, keepdims=True)
    tmp_out = np.exp(x - tmp_max)
    tmp_sum = np.sum(tmp_out, axis=-1, keepdims=True)
    return tmp_out / tmp_sum


KERNELS["softmax"] = softmax, (lambda: draw.uniform(0.1, 1.0, (2, 3, 4, 5)).astype(np.float32),)


@kernel(uniform(3, 5), uniform(5, 6), uniform(6), uniform(6, 4), uniform(4), uniform(4, 3), uniform(3))
def mlp(x, w1, b1, w2, b2, w3, b3):
    x = relu2(x @ w1 + b1)
    x = relu2(x @ w2 + b2)
    return softmax(x @ w3 + b3)


def conv2d(x, weights):
    k = weights.shape[0]
    n = x.shape[0]
    h_out = x.shape[1] - k + 1
    w_out = x.shape[2] - k + 1
    c_out = weights.shape[3]
    output = np.empty((n, h_out, w_out, c_out), dtype=np.float32)
    for i in range(h_out):
        for j in range(w_out):
            output[:, i, j, :] = np.sum(
                x[:, i : i + k, j : j + k, :, np.newaxis] * weights[np.newaxis, :, :, :], axis=(1, 2, 3)
            )
    return output


def single(*shape):
    return lambda: draw.uniform(0.1, 1.0, shape).astype(np.float32)


@kernel(single(2, 6, 6, 3), single(3, 3, 3, 4), single(4))
def conv2d_bias(x, weights, bias):
    return conv2d(x, weights) + bias


def maxpool2d(x):
    output = np.empty([x.shape[0], x.shape[1] // 2, x.shape[2] // 2, x.shape[3]], dtype=x.dtype)
    for i in range(x.shape[1] // 2):
        for j in range(x.shape[2] // 2):
            output[:, i, j, :] = np.max(x[:, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2, :], axis=(1, 2))
    return output


@kernel(
    single(2, 10, 10, 1),
    single(3, 3, 1, 2),
    single(2),
    single(3, 3, 2, 3),
    single(3),
    single(3, 4),
    single(4),
    same(2),
    same(3),
)
def lenet(x, conv1, conv1bias, conv2, conv2bias, fc1w, fc1b, n, c_before_fc1):
    x = relu2(conv2d(x, conv1) + conv1bias)
    x = maxpool2d(x)
    x = relu2(conv2d(x, conv2) + conv2bias)
    x = maxpool2d(x)
    x = np.reshape(x, (n, c_before_fc1))
    return relu2(x @ fc1w + fc1b)


def batchnorm2d(x, eps=1e-5):
    mean = np.mean(x, axis=0, keepdims=True)
    std = np.std(x, axis=0, keepdims=True)
    return (x - mean) / np.sqrt(std + eps)


@kernel(single(2, 5, 5, 4), single(1, 1, 4, 3), single(3, 3, 3, 3), single(1, 1, 3, 4))
def resnet_basicblock(x, conv1, conv2, conv3):
    padded = np.zeros((x.shape[0], x.shape[1] + 2, x.shape[2] + 2, conv1.shape[3]), dtype=np.float32)
    padded[:, 1:-1, 1:-1, :] = conv2d(x, conv1)
    y = batchnorm2d(padded)
    y = relu2(y)
    y = conv2d(y, conv2)
    y = batchnorm2d(y)
    y = relu2(y)
    y = conv2d(y, conv3)
    y = batchnorm2d(y)
    return relu2(y + x)
