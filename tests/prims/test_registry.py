"""One test over the registry: meaning == inference == lowering == batching; gradients against central differences."""

from __future__ import annotations

import numpy as np
import pytest

import myia_relay.prims as prims
from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import Array, Scalar, numpy_dtype
from myia_relay.ir.build import Builder, as_type, type_of_constant
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY
from myia_relay.prims.ops.shape import stack
from myia_relay.prims.rules.broadcast import match_kind, reduce_sum

from .examples import EXAMPLES, NO_GRADIENT, UNTESTED
from .lowering import lower
from .staged import assert_has_type, coerce, evaluate, execute, reverse, stage

CASES = [
    pytest.param(REGISTRY[name], args, attrs, id=f"{name}-{i}")
    for name, examples in EXAMPLES.items()
    for i, (args, attrs) in enumerate(examples)
]
DIFFERENTIABLE = [
    pytest.param(REGISTRY[name], args, attrs, id=f"{name}-{i}")
    for name, examples in EXAMPLES.items()
    for i, (args, attrs) in enumerate(examples)
    if REGISTRY[name].differentiable
    and (name, i) not in NO_GRADIENT
    and name != "stop_gradient"
    and attrs.get("dtype", "float64") == "float64"
    and any(type_of_constant(a).dtype == "float64" for a in args)
]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def infer(prim, args, attrs):
    return prim.infer_rule(*[type_of_constant(a) for a in args], **{**prim.attr_defaults, **attrs})


def compute(prim, args, attrs):
    type = infer(prim, args, attrs)
    return coerce(prim.reference(*args, **attrs), type, prim.name)


def test_no_rule_is_missing():
    assert prims.missing_rules() == []


def test_every_primitive_has_an_example():
    computed = {name for name, prim in REGISTRY.items() if prim.kind not in UNTESTED} - {
        "flat_nonzero"
    }  # sizes by values
    assert computed - set(EXAMPLES) == set()


@pytest.mark.parametrize("prim, args, attrs", CASES)
def test_inference_is_the_meaning(prim, args, attrs):
    assert_has_type(compute(prim, args, attrs), infer(prim, args, attrs), prim.name)


@pytest.mark.parametrize("prim, args, attrs", [c for c in CASES if c.values[0].kind != "opaque"])
def test_lowering_is_the_meaning(prim, args, attrs):
    types = [type_of_constant(a) for a in args]
    out = infer(prim, args, attrs)
    if (prim.kind == "reduce" or prim.name == "pow") and "float" in out.dtype:  # NumPy's vector code is an ulp off C's
        np.testing.assert_allclose(lower(prim, args, attrs, types, out), compute(prim, args, attrs), rtol=1e-12)
    else:
        np.testing.assert_array_equal(lower(prim, args, attrs, types, out), compute(prim, args, attrs))


def _functional(prim, args, attrs, order):
    """A graph of sum(w * out), differentiated `order` times along a fixed direction; with the gradient of the last."""
    rng = np.random.default_rng(11)
    builder, xs = stage(args)
    value = prim(*xs, **attrs)
    wrt = [x for x in xs if x.type.is_float]
    for _ in range(order + 1):
        weights = value.const(as_type(rng.uniform(0.5, 1.5, value.shape), value.type), value.type)
        scalar = value * weights
        if isinstance(scalar.type, Array) and scalar.shape:
            scalar = reduce_sum(scalar, axes=tuple(range(scalar.ndim)))
        gradient = reverse(scalar, scalar.const(as_type(np.float64(1.0), scalar.type), scalar.type), wrt)
        last = scalar
        value = None
        for x, g in zip(wrt, gradient, strict=True):
            if g is None:
                continue
            direction = x.const(as_type(rng.uniform(0.5, 1.5, x.shape), x.type), x.type)
            term = g * direction
            if isinstance(term.type, Array) and term.shape:
                term = reduce_sum(term, axes=tuple(range(term.ndim)))
            value = term if value is None else value + term
        if value is None:
            break
    return builder.graph, last, gradient


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("prim, args, attrs", DIFFERENTIABLE)
def test_gradient_is_the_central_difference(prim, args, attrs, order):
    _check_gradient(prim, args, attrs, order)


def _check_gradient(prim, args, attrs, order):
    graph, scalar, gradient = _functional(prim, args, attrs, order - 1)
    floats = [i for i, a in enumerate(args) if type_of_constant(a).is_float]
    analytic = [0.0 if g is None else evaluate(graph, args, g)[0] for g in gradient]
    step = 1e-6
    for i, g in zip(floats, analytic, strict=True):
        numeric = np.zeros(np.shape(args[i]))
        for index in np.ndindex(*numeric.shape):
            ends = []
            for sign in (1, -1):
                moved = np.array(args[i], dtype=np.float64)
                moved[index] += sign * step
                changed = [*args]
                changed[i] = as_type(moved if moved.shape else moved[()], type_of_constant(args[i]))
                ends.append(evaluate(graph, changed, scalar)[0])
            numeric[index] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(np.broadcast_to(g, numeric.shape), numeric, rtol=2e-6, atol=2e-7)


def _spread(args, mask, size):
    """Each masked argument `size` times, a little different each time, and the arguments of each example."""
    rng = np.random.default_rng(5)
    stacked, examples = [], [list(args) for _ in range(size)]
    for k, (a, flag) in enumerate(zip(args, mask, strict=True)):
        if not flag:
            stacked.append(a)
            continue
        dtype = numpy_dtype(type_of_constant(a).dtype)
        array = np.asarray(a, dtype=dtype)
        copies = [array]
        for _ in range(size - 1):
            noise = rng.uniform(0.9, 1.1, array.shape) if dtype.kind == "f" else 1
            shuffled = np.roll(array.ravel(), 1).reshape(array.shape) if dtype.kind != "f" else array
            copies.append((shuffled * noise).astype(dtype))
        if dtype.kind == "i" and array.shape == ():
            copies = [np.asarray(array + n, dtype=dtype) for n in range(size)]
        stacked.append(np.stack(copies))
        for n in range(size):
            examples[n][k] = as_type(copies[n] if copies[n].shape else copies[n][()], type_of_constant(a))
    return stacked, examples


def _masks(count):
    return [m for m in np.ndindex(*(2,) * count) if any(m)]


LATE = ("triangular_dot", "pack_columns", "packed_dot", "pack_words", "conv2d_words", "depthwise_words", "dot_shifted")
"""Passes make them, where all is staged."""


@pytest.mark.parametrize("prim, args, attrs", [c for c in CASES if c.values[1] and not c.values[2].get("weak")])
def test_batching_is_a_loop(prim, args, attrs):
    size = 3
    for mask in _masks(len(args)):
        stacked, examples = _spread(args, mask, size)
        builder, xs = stage(stacked)
        out = prim.batch_rule(size, tuple(map(bool, mask)), *xs, **{**prim.attr_defaults, **attrs})
        batched = evaluate(builder.graph, stacked, out)[0]
        loop = np.stack([np.asarray(compute(prim, e, attrs)) for e in examples])
        np.testing.assert_allclose(batched, loop, rtol=1e-10, atol=1e-12, err_msg=f"batched {mask}")
        if prim.name not in LATE:
            out = prim.batch_rule(size, tuple(map(bool, mask)), *stacked, **{**prim.attr_defaults, **attrs})
            np.testing.assert_allclose(out, loop, rtol=1e-10, atol=1e-12, err_msg=f"batched {mask}, on values")


SIZES = symbol("size")
OF_KNOWN_SIZE = (
    "broadcast_to",
    "conv2d",
    "conv2d_grad_input",
    "conv2d_integer",
    "dot_integer",
    "qr",
)  # attributes of the examples are numbers that must fit
FIXED = {"dft": (2,)}  # what is not any size: a complex number has two parts


def named(t, sizes, prim):
    """A type with names for sizes, which are noted with what they are."""
    fixed = (1, *FIXED.get(prim.name, ()))
    if not isinstance(t, Array):
        return t
    sizes.update({f"n{d}": d for d in t.shape})
    return Array(t.dtype, tuple(d if d in fixed else symbol(f"n{d}") for d in t.shape))


@pytest.mark.parametrize("prim, args, attrs", [c for c in CASES if c.values[1] and not c.values[2].get("weak")])
def test_batching_by_a_size_that_is_not_known_yet(prim, args, attrs):
    stacked, examples = _spread(args, (1,) * len(args), 3)
    graph = Graph("test")
    builder = Builder(graph)
    types, sizes = [type_of_constant(a) for a in stacked], {"size": 3}
    if prim.name not in (*OF_KNOWN_SIZE, "reshape", *LATE):
        types = [named(t, sizes, prim) for t in types]
    xs = [builder.var(graph.add_parameter("x", Array(t.dtype, (SIZES, *t.shape[1:])))) for t in types]
    out = prim.batch_rule(SIZES, (True,) * len(args), *xs, **{**prim.attr_defaults, **attrs})
    loop = np.stack([np.asarray(compute(prim, e, attrs)) for e in examples])
    np.testing.assert_allclose(execute(graph, stacked, out, sizes), loop, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "prim, args, attrs",
    # With `full`, svd has a derivative only for what is seen to be a square.
    [c for c in DIFFERENTIABLE if c.values[0].name not in OF_KNOWN_SIZE and not c.values[2].get("full")],
)
def test_derivatives_of_arrays_of_any_size(prim, args, attrs):
    """The rules with names for sizes give what they give with numbers."""
    attrs = {**prim.attr_defaults, **attrs}
    t = infer(prim, args, attrs)
    dout = as_type(np.random.default_rng(3).uniform(0.5, 1.5, t.shape), t)
    results = []
    for symbolic in (False, True):
        graph, sizes, xs = Graph("test"), {}, []
        builder = Builder(graph)
        for a in args:
            t = type_of_constant(a)
            xs.append(builder.var(graph.add_parameter("x", named(t, sizes, prim) if symbolic else t)))
        out = prim(*xs, **attrs)
        grads = prim.vjp_rule(*xs, out, builder.var(graph.add_parameter("d", out.type)), **attrs)
        results.append([g if g is None else execute(graph, [*args, dout], g, sizes) for g in grads])
    for one, other in zip(*results, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("flags", list(np.ndindex(2, 2)), ids=str)
def test_batches_of_many_or_large_products(flags):
    """One product of all instead of many, where one of the matrices is the same for all examples."""
    rng, dot = np.random.default_rng(0), REGISTRY["dot"]
    for size, m, n in ((40, 2, 3), (3, 9, 8), (31, 8, 8)):
        a = rng.normal(size=(4, m) if flags[0] else (m, 4))
        bs = rng.normal(size=(size, *((n, 4) if flags[1] else (4, n))))
        attrs = {"transpose_a": bool(flags[0]), "transpose_b": bool(flags[1])}
        builder, xs = stage([a, bs])
        out = dot.batch_rule(size, (False, True), *xs, **attrs)
        want = np.stack([dot.reference(a, b, **attrs) for b in bs])
        np.testing.assert_allclose(evaluate(builder.graph, [a, bs], out)[0], want, rtol=1e-12, atol=1e-14)
        few = size <= 31 and m * n <= 64
        names = [n.fn.name for n in builder.graph.nodes]
        assert names.count("batched_dot") == few and names.count("dot") == 1 - few


def test_a_matrix_times_many_whose_number_is_not_known_yet():
    """It is not copied for each, as a few are: by then one knows too little."""
    rng, dot = np.random.default_rng(0), REGISTRY["dot"]
    a, bs = rng.normal(size=(2, 4)), rng.normal(size=(3, 4, 3))
    graph = Graph("test")
    builder = Builder(graph)
    types = [Array("float64", (2, 4)), Array("float64", (SIZES, 4, 3))]
    xs = [builder.var(graph.add_parameter("x", t)) for t in types]
    out = dot.batch_rule(SIZES, (False, True), *xs, transpose_a=False, transpose_b=False)
    np.testing.assert_allclose(execute(graph, [a, bs], out, {"size": 3}), a @ bs, rtol=1e-12, atol=1e-14)
    assert "batched_dot" not in [n.fn.name for n in graph.nodes]


def test_kinds_are_matched_by_as_little_as_possible():
    array, number, python = Array("float64", ()), Scalar("float64"), Scalar("float64", True)
    needed = {
        (array, array): [], (array, number): ["as_scalar"], (array, python): ["as_scalar", "cast"],
        (number, number): [], (number, array): ["as_array"], (number, python): ["cast"],
        (python, python): [], (python, array): ["as_array"], (python, number): ["cast"],
    }  # fmt: skip
    for (have, want), names in needed.items():
        builder, (x,) = stage([as_type(1.5, have)])
        out = match_kind(x, want)
        assert out.type == want and [n.fn.name for n in builder.graph.nodes] == names


def test_a_stack_of_one_is_not_put_together():
    for count in (1, 2):
        builder, xs = stage([np.arange(3.0)] * count)
        out = stack(*xs, axis=0)
        assert out.shape == (count, 3)
        assert [n.fn.name for n in builder.graph.nodes].count("concatenate") == count - 1


def test_the_gradient_test_fails_on_a_wrong_gradient(monkeypatch):
    prim = REGISTRY["tanh"]
    monkeypatch.setattr(prim, "vjp_rule", lambda x, out, dout: (dout * out,))
    with pytest.raises(AssertionError):
        _check_gradient(prim, (0.7,), {}, 1)


def test_a_missing_rule_is_reported(monkeypatch):
    monkeypatch.setattr(REGISTRY["tanh"], "vjp_rule", None)
    monkeypatch.setattr(REGISTRY["pad"], "lower_rule", None)
    assert prims.missing_rules() == ["tanh: no vjp rule", "pad: no lower rule"]
