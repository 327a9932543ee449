"""Derivatives of orders 1 to 3 of every smooth function of arrays at special points: zeros, ties, opposites, one zero.

An expression of a vector `v` becomes a function of one number along a line through such a point. What its derivatives must be
follows from a Chebyshev polynomial through values of NumPy's own; where that does not fit, the function has a kink or a pole there,
and nothing is compared. Left out are functions that are smooth there only along some lines, and by convention (docs/derivatives.md)
have another derivative: `copysign` at 0, `std` and `median` of equals, single ones of equal eigenvalues; and those that are NaN: of
`det` of singular matrices, and second ones by equal singular values. `test_special_points` compares numbers with mpmath.

`python -m tests.property.test_special_sweep FIRST COUNT [PROCESSES]` runs a campaign: all expressions at all points, in turn.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from numpy.polynomial import chebyshev

from myia_relay import grad, jvp, relay
from tests.property.oracle import function_of
from tests.property.searches import campaign, checking

POINTS = {
    "zeros": (0.0, 0.0, 0.0, 0.0),
    "ties": (1.0, 1.0, 1.0, 1.0),
    "opposites": (0.5, -0.5, 0.25, -0.25),
    "one zero": (0.0, 1.0, 2.0, 0.5),
    "two equal": (1.0, 2.0, 1.0, 3.0),
}
LINES = ((1.0, -0.5, 2.0, 0.25), (1.0, 1.0, 1.0, 1.0))

UNARY = """abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh deg2rad degrees exp exp2 expm1 fabs floor log log10
log1p log2 negative positive rad2deg radians reciprocal rint sign sin sinc sinh sqrt square tan tanh trunc""".split()
BINARY = """add arctan2 divide float_power floor_divide fmax fmin hypot logaddexp logaddexp2 maximum minimum mod multiply
power remainder subtract true_divide heaviside""".split()
REDUCTIONS = """sum prod mean var max min ptp nansum nanmean nanprod nanvar nanmax nanmin cumsum cumprod diff ediff1d
gradient sort flip unwrap average linalg.norm corrcoef cov trapezoid""".split()
RELAY = """elu erf gelu glu hard_sigmoid hard_swish leaky_relu log_softmax logsumexp mish relu selu sigmoid silu softmax
softplus""".split()

WHOLE = """
np.std(v + np.arange(4.0) * 9.0)
np.nanstd(v + np.arange(4.0) * 9.0)
np.median(v + np.arange(4.0) * 9.0)
np.copysign(v * v + 1.0, v + 9.0)
np.copysign(v + 9.0, -1.0)
v ** 2
v ** 3.0
v ** 1
v ** 0
v ** 2.5
2.0 ** v
v ** v
(v * v) ** 0.5
v % 3.0
v // 0.7
-v
abs(v) ** 3
v / (1.0 + v * v)
1.0 / v
v @ v
np.dot(v, v[::-1])
np.inner(v, v)
np.outer(v, v)
np.vdot(v, v)
np.kron(v, v)
np.cross(v[:3], v[1:])
np.convolve(v, v)
np.correlate(v, v[:2])
np.einsum('i,j,i->j', v, v, v)
np.tensordot(v, v, 1)
np.clip(v, -1.5, 1.7)
np.where(v > 0.1, v * v, v)
np.select([v > 3.0, v > -3.0], [v, v ** 3], 0.0)
np.nan_to_num(v) ** 2
np.interp(v, np.array([-3.0, 4.0]), np.array([0.0, 7.0]))
np.polyval(v, 0.5)
np.polyval(np.array([1.0, 2.0, 3.0]), v)
np.vander(v)
np.quantile(v, 0.3)
np.percentile(v, 60.0)
np.prod(np.stack([v, v]), axis=0)
np.cumprod(np.stack([v, v]), axis=1)
np.linalg.norm(v, 1)
np.linalg.norm(v, 3)
np.linalg.norm(v, 4)
np.linalg.norm(v, np.inf)
np.linalg.norm(v + 1j)
abs(v + 1j)
np.linalg.norm(v.reshape(2, 2))
np.linalg.norm(v.reshape(2, 2), 'nuc')
np.linalg.norm(v.reshape(2, 2), 2)
np.linalg.det(np.outer(v, v) + np.eye(4))
np.linalg.inv(np.outer(v, v) + np.eye(4))
np.linalg.solve(np.outer(v, v) + np.eye(4), v)
np.linalg.slogdet(np.outer(v, v) + np.eye(4))[1]
np.linalg.cholesky(np.outer(v, v) + np.eye(4))
np.linalg.qr(np.outer(v, v) + np.eye(4))[1]
np.linalg.pinv(np.outer(v, v) + np.eye(4))
np.linalg.matrix_power(np.outer(v, v), 3)
np.sum(np.exp(np.linalg.eigvalsh(np.outer(v, v))))
np.linalg.multi_dot([np.outer(v, v), np.diag(v), np.outer(v, v)])
np.linalg.lstsq(np.stack([v + 1.0, v - 2.0], axis=1), v, rcond=None)[0]
np.linalg.cond(np.diag(v) * 0.1 + np.diag(np.array([1.0, 2.0, 3.0, 5.0])))
np.trace(np.outer(v, v))
np.linalg.svdvals(np.diag(v + np.arange(4.0) * 9.0 + 3.0))[:1]
np.real(np.fft.fft(v)) ** 2
abs(np.fft.rfft(v + np.arange(4.0))) ** 2
np.fft.irfft(np.fft.rfft(v) * np.fft.rfft(v))
np.angle(v + 2j)
np.real(np.exp(1j * v))
np.imag((v + 1j) ** 3)
np.real(1.0 / (v + 1j))
np.real(np.sqrt(v + 1j))
np.real(np.log(v + 1j))
relay.softmax(np.stack([v, v]))
relay.mse_loss(v, np.ones(4))
relay.l1_loss(v, np.ones(4) * 9.0)
relay.huber_loss(v, v * 0.5)
relay.cosine_similarity(v + 1.0, v * 2.0 + 3.0)
relay.kl_divergence(relay.log_softmax(v), relay.softmax(v[::-1]))
relay.sigmoid_cross_entropy(v, np.array([0.0, 1.0, 0.5, 1.0]))
relay.softmax_cross_entropy(v, np.array([0.1, 0.2, 0.3, 0.4]))
relay.layer_norm(v, np.ones(4), np.zeros(4))
relay.rms_norm(v, np.ones(4))
relay.log_softmax(v * 100.0)
relay.logsumexp(v * 50.0)
relay.attention(v.reshape(1, 2, 2), v.reshape(1, 2, 2), v.reshape(1, 2, 2))
relay.gelu(v, approximate=True)
relay.leaky_relu(v, 0.3)
relay.group_norm(v.reshape(1, 4, 1, 1), np.ones(4), np.zeros(4), 2)
relay.avg_pool(v.reshape(1, 1, 2, 2), 2)
relay.max_pool(v.reshape(1, 1, 2, 2), 2)
relay.conv1d(v.reshape(1, 1, 4), v[:2].reshape(1, 1, 2))
relay.upsample(v.reshape(1, 1, 2, 2), 2) ** 2
relay.linear(v, np.outer(v, v))
math.hypot(v[0], v[1], 1.0)
math.dist((v[0], v[1]), (v[1] + 2.0, v[2]))
math.sqrt(v[0] * v[0] + v[1] * v[1] + 1e-3)
math.sin(v[0]) / (1.0 + abs(v[1]) ** 3)
math.erf(v[0]) * math.erfc(v[1])
math.gamma(v[0] + 2.0) + math.lgamma(v[1] + 3.0)
math.expm1(v[0]) * math.log1p(v[1] + 0.5)
math.atan2(v[0], v[1] + 2.5)
math.prod([v[0], v[1], v[2]])
math.pow(v[0] + 1.5, v[1])
math.exp2(v[0]) + math.cbrt(v[1] + 3.0)
sum([x * x * x for x in v])
max(v[0], 9.0) + min(v[1], -9.0)
np.add.reduce(v * v)
np.multiply.reduce(v)
np.multiply.accumulate(v)
np.logaddexp.reduce(v)
np.maximum.accumulate(v)
np.hypot.reduce(v + 1.0)
np.add.outer(v, v * v)
np.hypot.outer(v + 1.0, v[:2])
np.take(v * v, np.array([0, 0, 3]))
np.repeat(v ** 3, 2)
np.roll(v, 1) * v
np.append(v, v) ** 2
np.insert(v, 1, v[0] ** 2)
np.delete(v * v, 1)
np.tril(np.outer(v, v))
np.histogram(np.arange(4.0), 3, weights=v * v)[0]
np.bincount(np.array([0, 1, 1, 3]), v ** 3)
np.apply_along_axis(lambda r: r * np.sum(r), 0, np.stack([v, v]))
np.geomspace(v[1] + 2.0, 9.0, 4)
np.logspace(v[0], v[1], 3)
np.linspace(v[0], v[1] ** 2, 4)
np.polyfit(np.arange(4.0), v * v, 1)
"""

EXPRESSIONS = [
    *(f"np.{name}(v)" for name in UNARY),
    *(f"np.{name}(v, v[::-1])" for name in BINARY),
    *(f"np.{name}(v, 0.5)" for name in BINARY),
    *(f"np.{name}(v, v)" for name in BINARY),
    *(f"np.{name}(2.0, v)" for name in BINARY),
    *(f"np.{name}(v)" for name in REDUCTIONS),
    *(f"relay.{name}(v)" for name in RELAY),
    *WHOLE.strip().splitlines(),
]

SUM = """
def program(x):
    v = np.array({point}) + x * np.array({line})
    r = np.asarray({expression})
    return np.sum(r * np.cos(np.arange(r.size)).reshape(r.shape))
"""
RADIUS, DEGREE = 0.08, 16
CASES = [(e, p, k) for e in EXPRESSIONS for p in POINTS for k in range(len(LINES))]


def derivatives(f) -> list[float] | None:
    """The first three derivatives at 0; None where the function is not smooth there."""
    nodes = chebyshev.chebpts1(2 * DEGREE + 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values = np.array([float(f(RADIUS * t)) for t in nodes])
        at = float(f(0.0))
    if not np.all(np.isfinite(values)) or not np.isfinite(at):
        return None
    fit = chebyshev.chebfit(nodes, values, DEGREE)
    scale = 1 + np.max(np.abs(values))
    if (
        np.max(np.abs(chebyshev.chebval(nodes, fit) - values)) > 1e-12 * scale
        or abs(chebyshev.chebval(0, fit) - at) > 1e-12 * scale
    ):
        return None
    return [float(chebyshev.chebval(0, chebyshev.chebder(fit, k)) / RADIUS**k) for k in (1, 2, 3)]


def reverse(f):
    return lambda x: (grad(f)(x), grad(grad(f))(x), grad(grad(grad(f)))(x))


def forward(f):
    def one(x):
        return jvp(f, (x,), (1.0,))[1]

    def two(x):
        return jvp(one, (x,), (1.0,))[1]

    return lambda x: (one(x), grad(one)(x), jvp(two, (x,), (1.0,))[1])


def check(seed: int) -> None:
    """Compare the derivatives of one case, by reverse mode or forward mode.

    Raises:
        AssertionError: one is wrong.
    """
    expression, point, line = CASES[seed % len(CASES)]
    text = SUM.format(expression=expression, point=list(POINTS[point]), line=list(LINES[line]))
    f = function_of(text, f"<special {seed}>", {"relay": relay})
    executor = "native" if seed % 23 == 22 else "python" if seed % 23 == 21 else "interpreter"
    value = relay(f, executor="interpreter") if "relay." in expression else f
    wanted = derivatives(value)
    if wanted is None:
        return
    got = relay((forward if seed // 10 % 2 else reverse)(f), executor=executor)(0.0)
    scale = 1 + np.max(np.abs(wanted))
    assert np.all(np.abs(np.array(got) - wanted) <= np.array([1e-7, 1e-5, 1e-3]) * scale), (
        f"{expression} at {point}, line {line}: {[float(g) for g in got]} where {wanted} belongs"
    )


@pytest.mark.sampled(40)
@pytest.mark.parametrize("seed", range(0, len(CASES), 9))
def test_orders_one_to_three(seed):
    check(seed)


@pytest.mark.campaign
def test_campaign():
    assert campaign(checking(check), 0, len(CASES)) == 0


if __name__ == "__main__":
    sys.exit(campaign(checking(check), *map(int, sys.argv[1:])) > 0)
