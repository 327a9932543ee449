"""The registry's jvp rules: against central differences, as transposes of the vjp rules, and differentiated once more."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.types import Array
from myia_relay.ad.forward.forward import Forward
from myia_relay.ir.build import as_type, type_of_constant
from myia_relay.ir.prim import REGISTRY
from myia_relay.prims.rules.broadcast import reduce_sum, zeros_like

from .staged import evaluate, reverse, stage
from .test_registry import DIFFERENTIABLE, compute, quiet  # noqa: F401  a fixture


def directions(args, rng):
    """A random tangent for each float argument, None for the others."""
    types = [type_of_constant(a) for a in args]
    return [
        as_type(rng.uniform(0.5, 1.5, np.shape(a)), t) if t.is_float else None for a, t in zip(args, types, strict=True)
    ]


def pushed(prim, xs, attrs, tangents):
    """The staged result and its tangent, as `ad.forward.forward` fits it."""
    builder = xs[0].builder
    full = {**prim.attr_defaults, **attrs}
    out = prim(*xs, **full)
    staged = tuple(None if t is None else x.const(t, x.type) for x, t in zip(xs, tangents, strict=True))
    t = prim.jvp_rule(*xs, out, staged, **full)
    return out, zeros_like(out) if t is None else builder.var(Forward().fitted(builder, t.node, out.node))


def dot(w, x):
    product = w * x
    whole = isinstance(product.type, Array) and product.shape
    return reduce_sum(product, axes=tuple(range(product.ndim))) if whole else product


def moved(args, tangents, by):
    out = []
    for a, t in zip(args, tangents, strict=True):
        out.append(a if t is None else as_type(np.asarray(a) + by * np.asarray(t), type_of_constant(a)))
    return out


def check_first(prim, args, attrs, tangents):
    """One direction: against differences; returns the tangent."""
    builder, xs = stage(args)
    _, t = pushed(prim, xs, attrs, tangents)
    (got,) = evaluate(builder.graph, args, t)
    step = 1e-6
    ends = [np.asarray(compute(prim, moved(args, tangents, s * step), attrs)) for s in (1, -1)]
    np.testing.assert_allclose(got, (ends[0] - ends[1]) / (2 * step), rtol=2e-6, atol=2e-7)


@pytest.mark.parametrize("prim, args, attrs", DIFFERENTIABLE)
def test_jvp_is_the_central_difference(prim, args, attrs):
    every = directions(args, np.random.default_rng(3))
    check_first(prim, args, attrs, every)
    moving = [i for i, t in enumerate(every) if t is not None]
    for i in moving if len(moving) > 1 else ():  # and along each argument alone, the others' tangents being None
        check_first(prim, args, attrs, [t if k == i else None for k, t in enumerate(every)])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("prim, args, attrs", DIFFERENTIABLE)
def test_jvp_is_the_transposed_vjp_and_has_a_gradient(prim, args, attrs):
    """<w, J v> == <J^T w, v>; and the gradient of <w, J(x) v> by x is its central difference."""
    rng = np.random.default_rng(4)
    tangents = directions(args, rng)
    builder, xs = stage(args)
    out, t = pushed(prim, xs, attrs, tangents)
    w = out.const(as_type(rng.uniform(0.5, 1.5, out.shape), out.type), out.type)
    scalar = dot(w, t)
    floats = [i for i, d in enumerate(tangents) if d is not None]
    cotangents = reverse(out, w, [xs[i] for i in floats])
    second = reverse(scalar, scalar.const(as_type(np.float64(1.0), scalar.type), scalar.type), [xs[i] for i in floats])
    (left,) = evaluate(builder.graph, args, scalar)
    right = 0.0
    for i, g in zip(floats, cotangents, strict=True):
        right += 0.0 if g is None else np.sum(np.asarray(evaluate(builder.graph, args, g)[0]) * tangents[i])
    np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)
    step, change = 1e-6, 0.0
    direction = directions(args, rng)
    for i, g in zip(floats, second, strict=True):
        change += 0.0 if g is None else np.sum(np.asarray(evaluate(builder.graph, args, g)[0]) * direction[i])
    ends = [evaluate(builder.graph, moved(args, direction, s * step), scalar)[0] for s in (1, -1)]
    np.testing.assert_allclose(change, (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-6)


def test_these_tests_fail_on_a_wrong_rule(monkeypatch):
    prim = REGISTRY["tanh"]
    monkeypatch.setattr(prim, "jvp_rule", lambda x, out, tangents: tangents[0] * out)
    with pytest.raises(AssertionError):
        test_jvp_is_the_central_difference(prim, (0.7,), {})
    with pytest.raises(AssertionError):
        test_jvp_is_the_transposed_vjp_and_has_a_gradient(prim, (0.7,), {})


def test_an_argument_without_a_tangent_costs_nothing():
    builder, (a, b) = stage((np.ones((2, 3)), np.ones((3, 2))))
    out = REGISTRY["dot"](a, b)
    REGISTRY["dot"].jvp_rule(a, b, out, (a, None), transpose_a=False, transpose_b=False)
    assert [n.fn.name for n in builder.graph.nodes] == ["dot", "dot"]
