"""Declared axes against NumPy: what every primitive says of its axes (`ir.axes`) is what its meaning does.

Mapped axes: one position at a time and put together is all at once. Contracted ones: the results of two parts, combined. Located
ones: what changes at one position of the operand changes the result there alone. Repeated ones are part of this: an operand
without the axis is given whole.
"""

from __future__ import annotations

import numpy as np
import pytest

import myia_relay.prims  # noqa: F401  which registers them
from myia_relay.abstract.types import Array
from myia_relay.ir.axes import ORDER, Axes, Relation
from myia_relay.ir.build import type_of_constant
from myia_relay.ir.prim import REGISTRY, Primitive

from .examples import EXAMPLES

CASES = [
    pytest.param(REGISTRY[name], args, attrs, id=f"{name}-{i}")
    for name, examples in EXAMPLES.items()
    for i, (args, attrs) in enumerate(examples)
    if REGISTRY[name].axes is not None
]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def compute(prim: Primitive, args, attrs) -> np.ndarray:
    return np.asarray(prim.reference(*args, **attrs))


def taken(args, relation: Relation, label, positions) -> list:
    """The operands at some positions of an axis: those that have it."""
    return [
        a if (at := relation.axis_of(label, k)) is None else np.take(np.asarray(a), positions, at)
        for k, a in enumerate(args)
    ]


def extent(args, relation: Relation, label) -> int:
    """How long an axis is; it is as long in all operands."""
    (n,) = {np.shape(a)[at] for k, a in enumerate(args) if (at := relation.axis_of(label, k)) is not None}
    return n


def check_axes(prim: Primitive, axes: Axes, args, attrs) -> int:
    """Compare a declaration with the meaning; returns how many axes were looked at."""
    attrs = {**prim.attr_defaults, **attrs}
    whole = compute(prim, args, attrs)
    relation = axes.relation([np.shape(a) for a in args], whole.shape, attrs)
    assert [len(x) for x in relation.operands] == [np.ndim(a) for a in args]
    assert len(relation.result) == whole.ndim
    looked_at = 0
    for label in relation.mapped():
        at, n = relation.axis_of(label), extent(args, relation, label)
        assert whole.shape[at] == n
        if label in relation.located:
            check_located(prim, args, attrs, whole, relation, label)
        elif n:
            block = (*whole.shape[:at], 1, *whole.shape[at + 1 :])
            resized = axes.resized(attrs, block)
            parts = [compute(prim, taken(args, relation, label, [p]), resized) for p in range(n)]
            assert all(part.shape == block for part in parts)
            np.testing.assert_allclose(np.concatenate(parts, at), whole, rtol=1e-6, atol=1e-12, err_msg=f"axis {label}")
        looked_at += 1
    for label in relation.contracted():
        n = extent(args, relation, label)
        if label not in relation.located:
            parts = [compute(prim, taken(args, relation, label, p), attrs) for p in (range(n // 2), range(n // 2, n))]
            combined = REGISTRY[relation.combine].reference(*parts)
            if relation.base is not None:
                combined = combined - np.asarray(args[relation.base])
            np.testing.assert_allclose(combined, whole, rtol=1e-5, atol=1e-12, err_msg=f"axis {label}")
        looked_at += 1
    return looked_at


def check_located(prim, args, attrs, whole, relation: Relation, label) -> None:
    """Another value at one position of the operands that have the axis, and not of the others, changes the result there alone."""
    at, n = relation.axis_of(label), extent(args, relation, label)
    for p in range(n):
        changed = []
        for k, a in enumerate(args):
            a = np.array(a)
            if relation.axis_of(label, k) is not None:
                a[(slice(None),) * relation.axis_of(label, k) + (p,)] += 1
            changed.append(a)
        differs = compute(prim, changed, attrs) != whole
        assert not np.delete(differs, p, at).any()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("prim, args, attrs", CASES)
def test_declared_axes_are_those_of_the_meaning(prim, args, attrs):
    check_axes(prim, prim.axes, args, attrs)


def test_every_primitive_on_arrays_declares_its_axes():
    kinds = ("elementwise", "injective", "reduce", "opaque")
    silent = [p.name for p in REGISTRY.values() if p.kind in kinds and p.axes is None]
    # The first puts every element elsewhere; what the second does differs from operator to operator.
    assert silent == ["pack_columns", "operator_kernel"]


@pytest.mark.parametrize(
    "name", sorted({c.values[0].name for c in CASES} - {"iota", "tri_mask", "as_scalar", "as_array"})
)
def test_each_declaration_says_something(name):
    """A declaration of which everything is opaque would be true of everything."""
    prim = REGISTRY[name]
    assert any(check_axes(prim, prim.axes, args, attrs) for args, attrs in EXAMPLES[name])


def _same(shapes, out, **attrs):
    """All axes as they are."""
    return Relation((tuple(range(len(shapes[0]))),), tuple(range(len(out))))


def _added(shapes, out, *, axes, keepdims):
    """A sum over `axes`."""
    every = tuple(range(len(shapes[0])))
    return Relation((every,), tuple(None if k in axes else k for k in every if keepdims or k not in axes), "add")


def _anywhere(shapes, out, *, axis):
    """An update of all positions."""
    return Relation((tuple(range(len(out))), (None,) * len(shapes[1]), ()), tuple(range(len(out))))


LINEAR = [c for c in CASES if c.values[0].linear_in is not None or c.values[0].bilinear]


@pytest.mark.parametrize("prim, args, attrs", LINEAR)
def test_what_is_declared_linear_is_linear(prim, args, attrs):
    """f(a + b) = f(a) + f(b) in all of the operands in which it is linear together, or in one of two."""
    if not all(type_of_constant(a).is_float or type_of_constant(a).dtype == "int64" for a in args):
        pytest.skip("of numbers that do not round much")
    attrs = {**prim.attr_defaults, **attrs}
    for together in ((0,), (1,)) if prim.bilinear else (prim.linear_in or range(len(args)),):
        more = [a if k not in together else np.asarray(a) * 3 + 1 for k, a in enumerate(args)]
        both = [a if k not in together else np.asarray(a) + b for k, (a, b) in enumerate(zip(args, more))]
        expected = compute(prim, args, attrs) + compute(prim, more, attrs)
        np.testing.assert_allclose(compute(prim, both, attrs), expected, rtol=1e-5, atol=1e-6)


MOVERS = [p.name for p in REGISTRY.values() if p.kind == "injective" and p.differentiable]


def test_what_moves_elements_is_linear():
    assert [name for name in MOVERS if REGISTRY[name].linear_in is None] == []


WRONG = {
    "dot": Axes("mk,kn->nm", swapped={"transpose_a": 0, "transpose_b": 1}),
    "batched_dot": Axes("bmk,bkn->bm.", swapped={"transpose_a": 0}),
    "matvec": Axes("mk,k->m", swapped={"transpose": 0}, combine="maximum"),
    "cumsum": Axes(_same),
    "flip": Axes(_same),
    "reduce_max": Axes(_added),
    "transpose": Axes(lambda shapes, out, perm: Relation((tuple(perm),), tuple(range(len(perm)))), perm=ORDER),
    "conv2d": Axes("nchw,oc..->nohw"),
    "max_pool": Axes("nc..->cn.."),
    "dynamic_update": Axes(_anywhere),
}
"""Declarations that say too much, or the wrong thing."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_declaration_is_found(name):
    def is_found(args, attrs):
        try:
            check_axes(REGISTRY[name], WRONG[name], args, attrs)
        except (AssertionError, ValueError, IndexError):
            return True
        return False

    assert any(is_found(args, attrs) for args, attrs in EXAMPLES[name])


GROWN = ("transpose", "slice", "pad", "flip", "concatenate", "reduce_sum", "cumsum", "dynamic_index", "take", "reshape")


@pytest.mark.parametrize("name", GROWN)
def test_grown_attributes_leave_the_other_axes_alone(name):
    prim = REGISTRY[name]
    for args, attrs in EXAMPLES[name]:
        attrs = {**prim.attr_defaults, **attrs}
        leading = range(len(args)) if prim.axes.leading is None else prim.axes.leading
        more = [np.stack([a, a, a]) if k in leading else a for k, a in enumerate(args)]
        out = prim.reference(*more, **prim.axes.grown(attrs, 3))
        np.testing.assert_array_equal(out, np.stack([prim.reference(*args, **attrs)] * 3))
        inferred = prim.infer_rule(*map(type_of_constant, more), **prim.axes.grown(attrs, 3))
        assert isinstance(inferred, Array) and inferred.shape == np.shape(out)
