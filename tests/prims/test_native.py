"""The registry once more, through the native executor: what a primitive means is what its machine code computes.

Every example, with the values it has and, for element-wise primitives of floats, with NaN, infinities and signed zeros; and
the adjoint that its vjp rule writes, compiled.
"""

from __future__ import annotations

import numpy as np
import pytest

import myia_relay.prims  # noqa: F401  registers the primitives
from myia_relay.abstract.types import Array
from myia_relay.ir.build import type_of_constant
from myia_relay.ir.prim import REGISTRY

from .examples import EXAMPLES
from .staged import coerce, evaluate, reverse, stage

pytestmark = pytest.mark.sampled(2)

# Largest error of an array kernel in units of the last place of the result, where it is not exact: vectorised
# transcendental functions, and the order of summation.
ULPS = 8
NAMES = sorted(EXAMPLES)
EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.25, 1e-310, -1e300, 0.1, 3.0]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def assert_close(got, want, what):
    """Same kind, dtype and shape; same special values; floats within a few units of the last place."""
    assert type(got) is type(want), (what, type(got), type(want))
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape, (what, got.dtype, got.shape, want.dtype, want.shape)
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    eps = np.finfo(got.dtype).eps
    scale = np.max(np.abs(want[np.isfinite(want)]), initial=0.0) if got.ndim else 0.0
    np.testing.assert_allclose(got, want, rtol=ULPS * eps, atol=ULPS * eps * min(scale, 1e300), err_msg=what)


def native(graph):
    from myia_relay.backend.tvm.program import compile_program

    return compile_program(graph)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(49)
def test_machine_code_is_the_meaning(name):
    prim = REGISTRY[name]
    for number, (args, attrs) in enumerate(EXAMPLES[name]):
        builder, xs = stage(args)
        out = builder.emit(prim, tuple(x.node for x in xs), attrs)
        builder.graph.output = out
        want = coerce(prim.reference(*args, **attrs), out.type, name)
        assert_close(native(builder.graph)(*args), want, f"{name}-{number}")


def of_floats(a):
    t = type_of_constant(a)
    return np.ndim(a) > 0 and t.is_float and t.dtype != "bfloat16"


FLOAT_NAMES = [
    n
    for n in NAMES
    if REGISTRY[n].kind == "elementwise" and any(all(map(of_floats, args)) and not attrs for args, attrs in EXAMPLES[n])
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "name, dtype",
    [(n, d) for n in FLOAT_NAMES for d in ("float64", "float32") if (n, d) != ("gamma_slope", "float32")],
)
def test_special_values(name, dtype):
    prim = REGISTRY[name]
    count = next(len(args) for args, _ in EXAMPLES[name])
    columns = np.meshgrid(*[np.array(EDGES)] * count, indexing="ij")
    args = tuple(np.ascontiguousarray(c.ravel()).astype(dtype) for c in columns)
    builder, xs = stage(args)
    out = builder.emit(prim, tuple(x.node for x in xs), {})
    builder.graph.output = out
    got, want = native(builder.graph)(*args), coerce(prim.reference(*args), out.type, name)
    if got.dtype.kind == "f":
        assert np.array_equal(np.isnan(got), np.isnan(want)), name
        zeros = want == 0
        tiny = np.abs(want[zeros] - got[zeros]) <= np.finfo(dtype).tiny
        assert tiny.all(), name
        # A NaN's sign means nothing; a zero's does.
        exact = zeros & (got == 0)
        if name in ("maximum", "minimum"):  # of zeros of both signs NumPy returns the one its vector unit prefers
            exact &= np.signbit(args[0]) == np.signbit(args[1])
        assert np.array_equal(np.signbit(got[exact]), np.signbit(want[exact])), name
        np.testing.assert_allclose(got, want, rtol=ULPS * np.finfo(dtype).eps, atol=float(np.finfo(dtype).tiny))
    else:
        np.testing.assert_array_equal(got, want)


NO_ADJOINT = ("stop_gradient", "operator_kernel", "gamma_slope")
DIFFERENTIABLE = [n for n in NAMES if REGISTRY[n].differentiable and n not in NO_ADJOINT]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.sampled(30)
def test_machine_code_of_the_adjoint(name):
    prim = REGISTRY[name]
    for number, (args, attrs) in enumerate(EXAMPLES[name]):
        builder, xs = stage(args)
        value = prim(*xs, **attrs)
        if not getattr(value.type, "is_float", False) or not isinstance(value.type, Array):
            continue
        wrt = [x for x in xs if x.type.is_float]
        rng = np.random.default_rng(number)
        weights = value.const(rng.uniform(0.5, 1.5, value.shape).astype(value.dtype))
        gradients = [g for g in reverse(value, weights, wrt) if g is not None]
        for gradient in gradients:
            want = evaluate(builder.graph, args, gradient)[0]
            builder.graph.output = gradient.node
            assert_close(native(builder.graph)(*args), want, f"{name}-{number}")
