"""Derivatives of orders 1 to 3 where rules may be right to the first order only: at 0, at ties, at equal and opposite arguments.

Functions are of one number, and smooth at these points, whatever they are made of. What they must be follows from mpmath's Taylor
polynomials; in reverse mode, forward mode and forward over reverse.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import grad, jvp, relay, vmap

mp = pytest.importorskip("mpmath")
A = np.array


def _elu(x, alpha=1.0):
    return x if x > 0 else alpha * mp.expm1(x)


def _softplus(x):
    return mp.log(1 + mp.exp(x))


def _norm(*xs, p=2):
    return mp.root(sum(mp.fabs(x) ** p for x in xs), p)


def _layer_norm(xs, eps=1e-5):
    mean = sum(xs) / len(xs)
    return (xs[0] - mean) / mp.sqrt(sum((x - mean) ** 2 for x in xs) / len(xs) + eps)


def _rms_norm(xs, eps=1e-5):
    return xs[0] / mp.sqrt(sum(x * x for x in xs) / len(xs) + eps)


def _softmax(*xs):
    return mp.exp(xs[0]) / sum(map(mp.exp, xs))


def _gelu(x):
    return x * (1 + mp.erf(x / mp.sqrt(2))) / 2


def _gelu_tanh(x):
    return x / 2 * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (x + mp.mpf(0.044715) * x**3)))


def _cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / (_norm(*a) * _norm(*b))


def _logistic(x):
    return 1 / (1 + mp.exp(-x))


def _logsumexp(*xs):
    return mp.log(sum(map(mp.exp, xs)))


def _erf(x):
    return mp.erf(x)


def _call(function):
    return lambda x: function(x)


ROWS = np.array([[1.0, -2.0], [0.5, 1.5], [-1.0, 0.25]])
LABELS = np.array([1.0, 0.0, 1.0])

# (function, the same for mpmath, points)
SMOOTH = {
    **{
        name: (_call(getattr(np, name)), getattr(mp, other or name), points)
        for name, other, points in (
            ("exp", "", (0.0, -1.0)),
            ("expm1", "", (0.0, 1e-9)),
            ("log", "", (1.0, 0.5)),
            ("log1p", "", (0.0, 1e-9)),
            ("sqrt", "", (1.0, 0.25)),
            ("sin", "", (0.0, math.pi)),
            ("cos", "", (0.0, math.pi / 2)),
            ("tan", "", (0.0, 1.0)),
            ("arcsin", "asin", (0.0, 0.5)),
            ("arccos", "acos", (0.0, -0.5)),
            ("arctan", "atan", (0.0, 1.0)),
            ("sinh", "", (0.0,)),
            ("cosh", "", (0.0,)),
            ("tanh", "", (0.0, 3.0)),
            ("arcsinh", "asinh", (0.0, -1.0)),
            ("arccosh", "acosh", (1.5,)),
            ("arctanh", "atanh", (0.0, 0.5)),
            ("cbrt", "", (1.0,)),
            ("sinc", "sincpi", (0.0, 1e-6, -1e-6, 1e-3, 0.25, 0.318, 0.319, 1.0, -1.0, 2.5)),
        )
    },
    "cbrt of a negative": (lambda x: np.cbrt(x), lambda x: -mp.cbrt(-x), (-1.0,)),
    "log2": (lambda x: np.log2(x), lambda x: mp.log(x, 2), (1.0,)),
    "log10": (lambda x: np.log10(x), lambda x: mp.log(x, 10), (1.0,)),
    "exp2": (lambda x: np.exp2(x), lambda x: mp.mpf(2) ** x, (0.0,)),
    "square": (lambda x: np.square(x), lambda x: x * x, (0.0,)),
    "reciprocal": (lambda x: np.reciprocal(x), lambda x: 1 / x, (1.0, -0.5)),
    "erf": (lambda x: math.erf(x), _erf, (0.0, 1.0)),
    "erfc": (lambda x: math.erfc(x), lambda x: 1 - mp.erf(x), (0.0, 2.0)),
    "gamma": (lambda x: math.gamma(x), mp.gamma, (1.0, 0.5, -0.5)),
    "lgamma": (lambda x: math.lgamma(x), mp.loggamma, (1.0, 2.0)),
    "powers": (lambda x: x**0 + x**1 * 2 + x**2 * 3 + x**3 * 4, lambda x: 1 + 2 * x + 3 * x**2 + 4 * x**3, (0.0, -1.0)),
    "float powers": (lambda x: x**2.0 + x**3.0, lambda x: x**2 + x**3, (0.0, -1.0)),
    "float_power": (lambda x: np.float_power(x, 3), lambda x: x**3, (0.0, -1.0)),
    "root": (lambda x: np.power(x, 0.5), mp.sqrt, (1.0,)),
    "exponents": (lambda x: 2.0**x, lambda x: mp.mpf(2) ** x, (0.0,)),
    "an exponent of 0": (lambda x: (x + 2.0) ** x, lambda x: (x + 2) ** x, (0.0, 1.0, 2.0, -1.0)),
    "an exponent of 1": (
        lambda x: 3.0 ** (x * x) * (x + 1.5) ** (1.0 - x),
        lambda x: mp.mpf(3) ** (x * x) * (x + mp.mpf(1.5)) ** (1 - x),
        (0.0, 1.0),
    ),
    "x to the x": (lambda x: x**x, lambda x: x**x, (1.0,)),
    "quotient at 0": (lambda x: x / (x + 1.0), lambda x: x / (x + 1), (0.0,)),
    "product with zeros": (
        lambda x: np.prod(np.stack([x, x * 2, x + 1.0, x - 1.0])),
        lambda x: 2 * x * x * (x * x - 1),
        (0.0, 1.0),
    ),
    "running product": (
        lambda x: np.sum(np.cumprod(np.stack([x, x, x + 1.0]))),
        lambda x: x + x * x + x * x * (x + 1),
        (0.0, -1.0),
    ),
    "hypot at an axis": (lambda x: np.hypot(x, 2.0), lambda x: mp.hypot(x, 2), (0.0, 2.0, -2.0)),
    "hypot at the other axis": (lambda x: np.hypot(-3.0, x), lambda x: mp.hypot(3, x), (0.0, 3.0, -3.0)),
    "hypot at a tie": (lambda x: np.hypot(x, 1.0 - x), lambda x: mp.hypot(x, 1 - x), (0.5, 0.0, 1.0)),
    "math.hypot": (lambda x: math.hypot(x, 1.0), lambda x: mp.hypot(x, 1), (0.0, 1.0, -1.0)),
    "math.hypot of three": (lambda x: math.hypot(x, -x, 1.0), lambda x: mp.sqrt(2 * x * x + 1), (0.0, 1.0, -1.0)),
    "math.dist": (
        lambda x: math.dist((x, 1.0, x), (0.0, x, x)),
        lambda x: mp.hypot(x, 1 - x),
        (0.0, 0.5, 1.0),
    ),
    "complex abs": (lambda x: abs((1 + 1j) * x + 1j), lambda x: mp.hypot(x, 1 + x), (0.0, -0.5)),
    "complex roots beside the axes": (
        lambda x: np.real(np.sqrt(x + 1j)) + np.imag(np.sqrt(1.0 + 1j * x)) + np.real(np.sqrt(x - 2j)),
        lambda x: mp.re(mp.sqrt(mp.mpc(x, 1))) + mp.im(mp.sqrt(mp.mpc(1, x))) + mp.re(mp.sqrt(mp.mpc(x, -2))),
        (0.0, 1.0, -1.0),
    ),
    "complex logarithms": (
        lambda x: np.real(np.log(x + 1j)) + np.real(np.log(x - 1j)) + np.imag(np.log(1.0 + 1j * x)),
        lambda x: mp.log(1 + x * x) + mp.atan(x),
        (0.0, 1.0, -1.0),
    ),
    "complex quotients": (
        lambda x: np.real(1.0 / (np.stack([x, x]) + 1j))[0] + np.imag((x + 1j) / (1.0 - 1j * x)),
        lambda x: x / (1 + x * x) + mp.im(mp.mpc(x, 1) / mp.mpc(1, -x)),
        (0.0, 1.0, -1.0),
    ),
    "norm": (lambda x: np.linalg.norm(np.stack([x, x + 1.0])), lambda x: _norm(x, x + 1), (0.0, -1.0, -0.5)),
    "norm of order 3": (
        lambda x: np.linalg.norm(np.stack([x, x * 0.0 + 1.0]), 3),
        lambda x: _norm(x, 1, p=3),
        (1.0, 0.5),
    ),
    "norm of order 4": (
        lambda x: np.linalg.norm(np.stack([x, x * 0.0 + 1.0]), 4),
        lambda x: (x**4 + 1) ** mp.mpf(0.25),
        (0.0, 1.0, -1.0),
    ),
    "norms along an axis": (
        lambda x: np.sum(np.linalg.norm(np.stack([np.stack([x, x + 1.0]), np.stack([x + 2.0, x])]), axis=1)),
        lambda x: _norm(x, x + 1) + _norm(x + 2, x),
        (0.0, -1.0),
    ),
    "arctan2 at the axis": (lambda x: np.arctan2(x, 2.0), lambda x: mp.atan2(x, 2), (0.0, 2.0, -2.0)),
    "arctan2 at the other": (lambda x: np.arctan2(2.0, x), lambda x: mp.atan2(2, x), (0.0, 2.0, -2.0)),
    "logaddexp at a tie": (lambda x: np.logaddexp(x, 0.5), lambda x: _logsumexp(x, mp.mpf(0.5)), (0.5, 0.0)),
    "logaddexp of opposites": (lambda x: np.logaddexp(x, -x), lambda x: _logsumexp(x, -x), (0.0, 1.0)),
    "logaddexp of equals": (lambda x: np.logaddexp(x, x), lambda x: x + mp.log(2), (0.0, 3.0)),
    "logaddexp2": (
        lambda x: np.logaddexp2(x, -x),
        lambda x: mp.log(mp.mpf(2) ** x + mp.mpf(2) ** -x, 2),
        (0.0, 1.0),
    ),
    "logsumexp": (
        lambda x: relay.logsumexp(np.stack([x, -x, x * 2])),
        lambda x: _logsumexp(x, -x, 2 * x),
        (0.0, 1.0),
    ),
    "softplus": (lambda x: relay.softplus(x), _softplus, (0.0, 1e-9, -1e-9, 20.0, -20.0)),
    "sigmoid": (lambda x: relay.sigmoid(x), _logistic, (0.0, 5.0)),
    "silu": (lambda x: relay.silu(x), lambda x: x * _logistic(x), (0.0,)),
    "mish": (lambda x: relay.mish(x), lambda x: x * mp.tanh(_softplus(x)), (0.0, 1.0)),
    "gelu": (lambda x: relay.gelu(x), _gelu, (0.0, 1.0)),
    "gelu by tanh": (lambda x: relay.gelu(x, approximate=True), _gelu_tanh, (0.0,)),
    "elu beside 0": (lambda x: relay.elu(x), _elu, (0.5, -0.5)),
    "glu": (lambda x: relay.glu(np.stack([x, x]))[0], lambda x: x * _logistic(x), (0.0,)),
    "hard_swish": (lambda x: relay.hard_swish(x), lambda x: x * (x + 3) / 6, (0.0, 1.0)),
    "huber at 0": (
        lambda x: relay.huber_loss(np.stack([x, x * 2]), np.zeros(2)),
        lambda x: (x * x + 4 * x * x) / 4,
        (0.0, 0.25),
    ),
    "cross entropy of two": (
        lambda x: relay.sigmoid_cross_entropy(ROWS @ np.stack([x, -x]), LABELS),
        lambda x: sum(_softplus(z) - y * z for z, y in zip([3 * x, -x, -1.25 * x], LABELS)) / 3,
        (0.0, 0.5),
    ),
    "cross entropy": (
        lambda x: relay.softmax_cross_entropy(np.stack([x, -x, x * 0.0]), np.array([0.0, 1.0, 0.0])),
        lambda x: _logsumexp(x, -x, mp.mpf(0)) + x,
        (0.0, 0.5),
    ),
    "softmax": (lambda x: relay.softmax(np.stack([x, -x, x * 0.0]))[0], lambda x: _softmax(x, -x, 0 * x), (0.0,)),
    "log_softmax": (
        lambda x: relay.log_softmax(np.stack([x, -x]))[1],
        lambda x: -x - _logsumexp(x, -x),
        (0.0,),
    ),
    "cosine of equals": (
        lambda x: relay.cosine_similarity(np.stack([x, x * 0.0 + 1.0]), np.stack([x * 0.0 + 1.0, x])),
        lambda x: _cosine((x, mp.mpf(1)), (mp.mpf(1), x)),
        (1.0, 0.0, -1.0),
    ),
    "layer_norm of equals": (
        lambda x: relay.layer_norm(np.stack([x, x * 0.0, x * 0.0]), np.ones(3), np.zeros(3), eps=1e-5)[0],
        lambda x: _layer_norm([x, 0 * x, 0 * x]),
        (0.0,),
    ),
    "rms_norm of zeros": (
        lambda x: relay.rms_norm(np.stack([x, x * 2]), np.ones(2), eps=1e-5)[0],
        lambda x: _rms_norm([x, 2 * x]),
        (0.0, 1.0),
    ),
    "variance of equals": (
        lambda x: np.var(np.stack([x, x * 0.0 + 1.0, x * 0.0 + 1.0])),
        lambda x: 2 * (x - 1) ** 2 / 9,
        (1.0, 0.0),
    ),
    "standard deviation": (
        lambda x: np.std(np.stack([x, x * 0.0 + 1.0, x * 0.0 + 3.0])),
        lambda x: mp.sqrt((2 * x * x - 8 * x + 14) / 9),
        (1.0, 0.0, 2.0),
    ),
    "determinant": (
        lambda x: np.linalg.det(np.stack([np.stack([x + 1.0, x]), np.stack([x, x + 1.0])])),
        lambda x: 2 * x + 1,
        (0.0, 1.0),
    ),
    "inverse": (
        lambda x: np.linalg.inv(np.stack([np.stack([x + 1.0, x]), np.stack([x, x + 1.0])]))[0, 1],
        lambda x: -x / (2 * x + 1),
        (0.0,),
    ),
    "power of a matrix": (
        lambda x: np.linalg.matrix_power(np.stack([np.stack([x, x + 1.0]), np.stack([x * 0.0, x])]), 3)[0, 1],
        lambda x: 3 * x * x * (x + 1),
        (0.0,),
    ),
    "interpolation": (lambda x: np.interp(x * x, A([0.0, 1.0]), A([1.0, 3.0])), lambda x: 1 + 2 * x * x, (0.5, 0.25)),
    "vmapped softplus": (
        lambda x: np.sum(vmap(relay.softplus)(np.stack([x, -x]))),
        lambda x: _softplus(x) + _softplus(-x),
        (0.0, 0.5),
    ),
    "vmapped hypot": (
        lambda x: np.sum(vmap(lambda y: np.hypot(y, 1.0))(np.stack([x, -x]))),
        lambda x: 2 * mp.hypot(x, 1),
        (0.0, 1.0),
    ),
}  # fmt: skip


def reverse(f):
    """The first three derivatives, each by reverse mode of the one before."""
    one = grad(f)
    two = grad(one)
    return lambda x: (one(x), two(x), grad(two)(x))


def forward(f):
    """The same by forward mode of forward mode."""

    def one(x):
        return jvp(f, (x,), (1.0,))[1]

    def two(x):
        return jvp(one, (x,), (1.0,))[1]

    return lambda x: (one(x), two(x), jvp(two, (x,), (1.0,))[1])


def mixed(f):
    """By forward mode of reverse mode of forward mode."""

    def two(x):
        return grad(lambda y: jvp(f, (y,), (1.0,))[1])(x)

    return lambda x: (grad(f)(x), two(x), jvp(two, (x,), (1.0,))[1])


def wanted(f, x: float) -> list[float]:
    """The first three derivatives at a point."""
    with mp.workdps(60):
        return [float(mp.re(c) * math.factorial(k)) for k, c in enumerate(mp.taylor(f, mp.mpf(x), 3))][1:]


def check(name: str, mode, executor: str) -> None:
    """Compare the derivatives of a function.

    Raises:
        AssertionError: one is wrong.
    """
    f, same, points = SMOOTH[name]
    got = relay(mode(lambda x: np.float64(1.0) * f(x)), executor=executor)
    for x in points:
        np.testing.assert_allclose(got(x), wanted(same, x), rtol=2e-8, atol=2e-8, err_msg=f"{name} at {x}")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mode", [reverse, forward, mixed])
@pytest.mark.parametrize("name", SMOOTH)
def test_orders_one_to_three(name, mode):
    check(name, mode, "interpreter")


@pytest.mark.parametrize("name", ["hypot at a tie", "softplus", "sinc", "logaddexp of opposites", "math.dist"])
@pytest.mark.sampled(3)
def test_in_every_executor(name, executor):
    check(name, reverse, executor)


@pytest.mark.campaign
@pytest.mark.parametrize("executor", ["python", "native"])
@pytest.mark.parametrize("name", SMOOTH)
def test_all_in_other_executors(name, executor):
    check(name, reverse, executor)


def test_slopes_at_the_kinks_of_activations(executor):
    def slope(f):
        return relay(grad(f), executor=executor)(0.0)

    assert slope(relay.elu) == 1.0
    assert 1.0507 <= slope(relay.selu) <= 1.7582
    assert slope(relay.relu) == 0.0


def test_the_hessian_of_logistic_regression_at_zero_weights(executor):
    def loss(w):
        return relay.sigmoid_cross_entropy(ROWS @ w, LABELS)

    hessian = relay(relay.hessian(loss), executor=executor)(np.zeros(2))
    np.testing.assert_allclose(hessian, ROWS.T @ ROWS / 12, rtol=1e-12)
