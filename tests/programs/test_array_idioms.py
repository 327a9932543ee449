"""Idioms of array programs: complex arrays, grids by indexing, methods of universal functions, arrays for results, new
shapes: `x.shape = ...`.
"""

import warnings

import numpy as np
import pytest

from myia_relay import ShapeError, TypeError_, grad, relay

EXECUTORS = ("native", "python", "interpreter")
Z = np.array([1 + 2j, -0.5 + 0.25j, 3 - 1j, -2 - 0.75j, 0.1j, -1.5 + 0j])
W = np.array([0.5 - 1j, 2 + 0.5j, -1 + 1j, 0.25 + 0.125j, 1 + 0j, -3j])
X = np.linspace(-1.5, 2.0, 6)
M = (Z[:, None] * W[None, :])[:3, :3] + 4 * np.eye(3)
A = np.arange(12.0).reshape(3, 4)
K = np.array([[3, -1, 4], [1, -5, 9]])


def same(value, expected, rtol=1e-12):
    if isinstance(expected, tuple | list):
        assert type(value) is type(expected) and len(value) == len(expected)
        for v, e in zip(value, expected, strict=True):
            same(v, e, rtol)
        return
    assert type(value) is type(expected), (type(value), type(expected))
    assert np.asarray(value).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(value, expected, rtol=rtol, atol=1e-13)


COMPLEX = {
    "elementary": (lambda z, w: (np.log(z), np.sqrt(z), np.sin(z), np.cos(z), np.tan(z), np.exp(1j * w)), Z, W),
    "hyperbolic": (lambda z: (np.sinh(z), np.cosh(z), np.tanh(z), np.tanh(30 * z), np.log2(z), np.log10(z)), Z),
    "powers": (lambda z, w: (z**2, z**-1, z**0.5, z**w, 2.0**z, np.power(z, 1.5), np.square(z)), Z, W),
    "powers of zero": (lambda z: (z**2.5, z**0, np.sqrt(z), z ** (1 + 1j)), np.zeros(3, complex)),
    "roots near the axes": (
        lambda z: np.sqrt(z),
        np.array([1, -1, 4 + 1e-9j, -4 + 1e-9j, -4 - 1e-9j, complex(-1.0, -0.0), 1e-160 + 1e-160j]),
    ),
    "logarithms near 1": (lambda z: np.log(z), np.exp(1j * X) * (1 + 1e-9)),
    "quotients": (lambda z, w: (z / w, 1 / z, z / 2, 2j / z, np.reciprocal(z), np.negative(z), +z), Z, W),
    "single precision": (lambda z: (np.exp(z), z * 2.0, z + 1j, np.sqrt(z), z.real, z.dtype == np.complex64), Z.astype("c8")),
    "tests": (lambda z, w: (z == w, z != z, np.isnan(z), np.isfinite(z), np.allclose(z, z + 1e-12), np.iscomplexobj(z)), Z, W),
    "reductions": (
        lambda m: (m.sum(), m.sum(axis=0), np.mean(m, axis=1), np.prod(m), np.prod(m, axis=1), np.cumsum(m), m.trace()), M,
    ),
    "products": (
        lambda m, z, w: (m @ m, m @ z[:3], z[:3] @ m, np.dot(z, w), np.vdot(z, w), np.inner(z, w), np.outer(z, w), m @ m.T.conj()),
        M, Z, W,
    ),
    "mixed products": (lambda m, x: (m @ x[:3], x[:3] @ m, np.dot(x[:3], m), x[:3] * m, x[:3, None] + 1j * x), M, X),
    "solutions": (lambda m, z, x: (np.linalg.inv(m), np.linalg.solve(m, z[:3]), np.linalg.solve(m, m), np.linalg.norm(z)), M, Z, X),
    "made": (
        lambda x: (
            np.zeros(3, complex), np.ones((2, 2), dtype=np.complex64), np.full(2, 1 - 2j), np.full((2,), 3.0, dtype=complex),
            np.eye(2, dtype=complex), x.astype(complex), np.array([1 + 2j, 3, 0.5]), np.array([[1j, 2], [3, 4]]),
            np.asarray(x, dtype=np.complex128), np.array([1, 2], dtype=complex),
        ),
        X,
    ),
    "like others": (
        lambda z, x: (
            np.zeros_like(z), np.ones_like(z), np.full_like(z, 2j), np.zeros_like(z, dtype=float), np.zeros(3, dtype=z.dtype),
            np.zeros_like(x, dtype=complex), np.empty(0, z.dtype),
        ),
        Z, X,
    ),
    "converted": (lambda z: (z.astype(np.complex64), z.astype(complex).real, np.array(z, dtype=np.complex64)), Z),
    "joined": (
        lambda z, x: (
            np.concatenate([z, 1j * x]), np.stack([z, x]), np.hstack([z, x]), np.vstack((z, z)), np.column_stack((z, x)),
            np.concatenate([x, z]),
        ),
        Z, X,
    ),
    "shapes": (
        lambda z, m: (
            z.reshape(2, 3), z[None, :], np.expand_dims(z, 1), m.T, m.swapaxes(0, 1), np.flip(z), np.repeat(z, 2), np.tile(z, 2),
            m.ravel(), np.diag(z), np.diag(m), np.tril(m), np.roll(z, 2), np.broadcast_to(z, (2, 6)), z.shape,
            m.ndim, z.size, len(z),
        ),
        Z, M,
    ),
    "numbers": (
        lambda a: (a**0.5, a**2.0, 2.0**a, abs(a), a.conjugate(), complex(1, 2) * a, complex(2.0), complex(a.real, 1), a == 1 + 2j),
        1 + 2j,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.sampled(3)
def test_complex_arrays(name, executor):
    function, *args = COMPLEX[name]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        same(
            relay(function, executor=executor)(*args), function(*args), 5e-6 if name in ("single precision",) else 1e-12
        )


def phases(zs):
    total, angles = 0j, np.zeros(len(zs))
    for k, z in enumerate(zs):
        total += z / abs(z)
        angles[k] = np.angle(z)
    return total, angles


def julia(re, im, n):
    z = re[:, None] + 1j * im
    count = np.zeros(z.shape, dtype=np.int64)
    alive = np.ones(z.shape, dtype=bool)
    for _ in range(n):
        alive &= np.abs(z) < 2.0
        count[alive] += 1
        z[alive] = z[alive] ** 2 + (-0.4 + 0.6j)
    return count


def transform(x):
    n = len(x)
    if n == 1:
        return x
    even, odd = transform(x[::2]), transform(x[1::2])
    turned = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
    return np.concatenate([even + turned, even - turned])


def propagated(x, n):
    psi = x.astype(complex)
    psi /= np.sqrt(np.sum(np.abs(psi) ** 2))
    turn = np.exp(-0.1j * np.arange(len(x)))
    for _ in range(n):
        psi *= turn
        psi = np.fft.ifft(turn * np.fft.fft(psi))
    return np.abs(psi) ** 2, x[0].astype(np.complex64)


def residues(a, b):
    out = np.empty((2, len(a)), dtype=complex)
    out[0] = a / b
    out[1, 1:] = a[1:] * b[:-1]
    out[1, 0] = 3.0
    out[:, -1] *= 2j
    out[0, 0] += 1
    return out


@pytest.mark.parametrize("executor", EXECUTORS)
def test_complex_loops(executor):
    for function, args in (
        (phases, (Z,)), (julia, (X, X[:4], 12)), (transform, (np.arange(8) + 0j,)), (residues, (Z, W)), (propagated, (X, 3)),
    ):  # fmt: skip
        same(relay(function, executor=executor)(*args), function(*args))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients_through_complex_arrays(executor):
    def energy(x):
        z = np.exp(1j * x) * (1 + 0.5j)
        w = np.sqrt(z * z + 2.0) + np.log(z + 3.0) + z**0.5
        return np.sum(np.abs(w) ** 2) + np.vdot(w, w).real

    step = 1e-6
    wanted = [(energy(X + step * e) - energy(X - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(grad(relay(energy, executor=executor))(X), wanted, rtol=1e-6)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_numbers_that_have_no_power(executor):
    power = relay(lambda a, b: a**b, executor=executor)
    with pytest.raises(ZeroDivisionError):
        power(0j, -1.5)
    assert power(0j, 1.5) == 0j


OTHERS = {
    "unwrap": (
        lambda a: (np.unwrap(a[0] * 2.5), np.unwrap(a, axis=0), np.unwrap(a[1], period=3.0), np.unwrap(a[0], discont=4.0)),
        A * 1.7,
    ),
    "polyfit": (lambda a: (np.polyfit(a[0], a[1] ** 2, 2), np.polyfit(np.arange(4), a.T, 1)), A),
    "percentile": (
        lambda a, k: (np.percentile(a, [5, 50.0, 95]), np.quantile(a, (0.1, 0.9), axis=1), np.percentile(k, [25, 75], axis=0)),
        A, K,
    ),
    "apply_along_axis": (
        lambda a: (
            np.apply_along_axis(np.sum, 0, a), np.apply_along_axis(lambda r: r - r.mean(), 1, a),
            np.apply_along_axis(lambda r, s: np.convolve(r, s), 0, a, np.ones(2)),
        ),
        A,
    ),
    "gcd": (lambda k: (np.gcd(k, 12), np.lcm(k[0], k[1]), np.gcd.reduce(k, axis=1), np.gcd(np.int32(12), 18)), K),
    "mgrid": (lambda a: (np.mgrid[0:3], np.mgrid[0:3, 1:4], np.mgrid[0:1:0.25, -1:1], np.mgrid[0:1:5j]), A),
    "mgrid of three axes": (lambda a: np.mgrid[:2, 0:1:3j, 2:0:-1], A),
    "mgrid unpacked": (lambda a: [i * 10 + j for i, j in [np.mgrid[0 : a.shape[0], 0 : a.shape[1]]]][0], A),
    "ogrid": (lambda a: (np.ogrid[0:3], np.ogrid[0:3, 0:4], np.ogrid[0:1:3j, 0:2]), A),
    "r_": (lambda a: (np.r_[0:3, 5, a[0]], np.r_[a[0], a[1]], np.r_[1.5:3.0:4j], np.r_[a, a]), A),
    "c_": (lambda a: (np.c_[a[0], a[1]], np.c_[a, a[:, 0]], np.c_[0:3, 4:7]), A),
    "outer": (lambda a, k: (np.add.outer(a[0], a[1]), np.multiply.outer(a, k), np.subtract.outer(1, a[0]),
        np.less.outer(k[0], k[1])), A, K),
    "minimum.outer": (lambda a: (np.minimum.outer(a[:, 0], a[0, :]), np.hypot.outer(a[0], a[0])), A),
    "reduce": (
        lambda a, k: (
            np.add.reduce(a), np.add.reduce(a, axis=None), np.multiply.reduce(k, axis=1), np.maximum.reduce(a,
                axis=1, keepdims=True),
            np.minimum.reduce(a[0]), np.logical_and.reduce(k > 0), np.logical_or.reduce(k > 5, axis=1), np.subtract.reduce(a),
            np.bitwise_xor.reduce(k, axis=None), np.hypot.reduce(a, axis=1), np.logaddexp.reduce(a[0]), np.gcd.reduce(k, axis=1),
        ),
        A, K,
    ),
    "accumulate": (
        lambda a, k: (
            np.add.accumulate(a), np.multiply.accumulate(k, axis=1), np.maximum.accumulate(k, axis=1),
                np.minimum.accumulate(a[::-1]),
            np.subtract.accumulate(a[0]), np.bitwise_or.accumulate(k[1]),
        ),
        A, K,
    ),
    "reduceat": (lambda a: np.add.reduceat(a[0], np.array([0, 2, 1])), A),
    "ndarray": (lambda a: [np.ndarray((2, 3), dtype=a.dtype).shape, np.ndarray(4).dtype == np.float64,
        np.ndarray(shape=(2,), dtype=int).dtype == int][0], A),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.sampled(3)
def test_other_idioms(name, executor):
    function, *args = OTHERS[name]
    same(relay(function, executor=executor)(*args), function(*args))


def into_arrays(x, y):
    z = np.empty_like(x)
    np.multiply(x, y, z)
    np.add(z, 1.0, out=z)
    np.exp(z, z)
    np.divide(z, y, out=z)
    rows = np.zeros((2, len(x)))
    np.sqrt(np.abs(x), out=rows[0])
    np.cumsum(y, out=rows[1])
    flags = np.zeros(len(x), bool)
    np.greater(x, y, out=flags)
    np.logical_not(flags, flags)
    return z, rows, flags


def narrowed(x):
    out = np.zeros(len(x), np.float32)
    np.add(x, x, out=out)
    return out


def in_loop(c, n):
    z = np.zeros(c.shape, complex)
    for _ in range(n):
        np.multiply(z, z, out=z)
        np.add(z, c, z)
    return z


def of_caller(x, y):
    np.maximum(x, y, out=x)


def reshaped(n):
    x = np.arange(2 * n)
    x.shape = (2, n)
    y = x * 2
    x.shape = y.shape = 2 * n
    x[0] = 7
    x.shape = (-1, 2)
    return x, y


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_into_arrays_and_shapes(executor):
    for function, args in (
        (into_arrays, (X, X + 2.5)), (narrowed, (X,)), (in_loop, (Z * 0.1, 5)), (reshaped, (3,)),
    ):  # fmt: skip
        same(relay(function, executor=executor)(*args), function(*args), 1e-6 if function is narrowed else 1e-12)
    x, y = X.copy(), np.zeros(6)
    relay(of_caller, executor=executor)(x, y)
    np.testing.assert_array_equal(x, np.maximum(X, 0))


def own_function(x, out):
    out[0] = x[0]
    return x


class Namespace:
    add = staticmethod(own_function)


def test_out_of_functions_that_are_not_numpys():
    def f(x):
        y = np.zeros(2)
        own_function(x, out=y)
        return y

    same(relay(f)(X), f(X))


@pytest.mark.parametrize(
    ("function", "args", "kind", "text"),
    [
        (lambda x: np.add(x, 1.0, x), (K,), TypeError_, None),
        (lambda z: z.astype(float), (Z,), TypeError_, "x.real.astype"),
        (lambda m, n: np.mgrid[0 : 1 : n * 1j], (A, 3), TypeError_, "np.linspace"),
        (lambda s: np.r_["r", s], (A[0],), TypeError_, "np.r_ with a string"),
    ],
)
def test_what_is_refused(function, args, kind, text):
    with pytest.raises(kind, match=text):
        relay(function)(*args)


def test_shapes_that_others_see_are_refused():
    def of_argument(x):
        x.shape = (3, 2)
        return x

    def of_alias(n):
        x = np.arange(6)
        y = x if n > 0 else np.arange(6)
        x.shape = (2, 3)
        return y

    def wrong(n):
        x = np.arange(6)
        x.shape = (4, 2)
        return x

    def does_not_fit(x):
        y = np.zeros(3)
        np.add(x, x, out=y)
        return y

    def complex_into_real(z):
        y = np.zeros(6)
        np.add(z, z, out=y)
        return y

    with pytest.raises(Exception, match="belongs to the caller"):
        relay(of_argument)(X.copy())
    with pytest.raises(Exception, match="'y' may be, or hold, the same object"):
        relay(of_alias)(6)
    with pytest.raises(ValueError, match="reshape"):
        relay(wrong)(6)
    with pytest.raises(ShapeError, match=r"np.add\(out=...\) writes its result into the array of shape"):
        relay(does_not_fit)(X)
    with pytest.raises(TypeError_, match="has a complex result"):
        relay(complex_into_real)(Z)
