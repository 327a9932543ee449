"""Both sides of each rewrite rule, by the interpreter: to the bit, or, where the rule is not exact, but for rounding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import FLOAT, INT, Array, Scalar, Struct, tuple_of
from myia_relay.backend.interpreter import run
from myia_relay.ir.build import Builder
from myia_relay.ir.verify import verify
from myia_relay.opt.rewrite.algebra import FINAL, OFFSETS, sink_units, unbroadcast_operand, unit_axes, whole_struct
from myia_relay.opt.rewrite.like_terms import collect_terms
from myia_relay.opt.rewrite.rules import Table
from tests.typed_graphs import P, apply, build

F32, F64 = Scalar("float32"), Scalar("float64")
V, M, T = Array("float64", (4,)), Array("float64", (3, 4)), Array("float64", (2, 3, 4))
V32, M32 = Array("float32", (4,)), Array("float32", (3, 4))
SQUARE = Array("float64", (4, 4))


def array(*shape):
    return Array("float64", shape)


def zeros(*shape, dtype="float64"):
    return np.zeros(shape, dtype)


def batched(x, y):
    return apply("batched_dot", x, y, transpose_a=False, transpose_b=False)


def dot(x, y, a=False, b=False):
    return apply("dot", x, y, transpose_a=a, transpose_b=b)


def total(x, *axes, keepdims=False):
    return apply("reduce_sum", x, axes=axes, keepdims=keepdims)


def repeated(x, *shape):
    return apply("broadcast_to", x, shape=shape)


FLOATS = [(FLOAT, FLOAT), (F32, F32), (V, V), (M32, V32), (V, FLOAT)]
EXAMPLES = {
    "drop_add_zero": [(lambda x, y: x + 0, t) for t in FLOATS] + [(lambda x, y: 0.0 + x, (M, V))],
    "fold_mul_zero": [(lambda x, y: x * 0, t) for t in FLOATS] + [(lambda x, y: 0.0 * x, (M, V))],
    "square_pow_two": [(lambda x: apply("pow", x, x.const(2)), (t,)) for t in (FLOAT, F32, V, M32)],
    "cube_pow_three": [(lambda x: apply("pow", x, x.const(3)), (t,)) for t in (FLOAT, F32, V, M32)],
    "join_div": [(lambda x, y: (1 / y) * x, t) for t in FLOATS] + [(lambda x, y: x * (1 / y), t) for t in FLOATS],
    "reshape_sum_of_units": [
        (lambda x: total(x, 0), (array(1, 4),)),
        (lambda x: total(x, 0, 2), (Array("float32", (1, 4, 1)),)),
        (lambda x: total(x, 0, 1), (array(1, 1),)),
        (lambda x: total(x, 1, keepdims=True), (array(4, 1),)),
    ],
    "scale_sum_of_broadcast": [
        (lambda x: total(repeated(x, 5, 4), 0), (V,)),
        (lambda x: total(repeated(x, 5, 4), 0, 1), (V,)),
        (lambda x: total(repeated(x, 2, 5, 4), 0, 2), (V,)),
        (lambda x: total(repeated(x, 5, 4), 1, keepdims=True), (array(5, 1),)),
        (lambda x: total(repeated(x, 2, 5, 4), 0, 2), (Array("float32", (5, 1)),)),
        (lambda x: total(repeated(x, 2, 3, 4), 1), (array(2, 1, 4),)),
        (lambda x: total(repeated(x, 6), 0), (FLOAT,)),
        (lambda x: total(repeated(x, 6, 2), 1), (F32,)),
    ],
    "negate_sum": [
        (lambda x: total(-x, 0), (M,)),
        (lambda x: total(-x, 0, 1), (M32,)),
        (lambda x: total(-x, 1, keepdims=True), (M,)),
    ],
    "sum_dot": [
        (lambda x, y, a=a, b=b, k=k, kd=kd: total(dot(x, y, a, b), k, keepdims=kd), (
            Array("float64", (3, 4) if not a else (4, 3)), Array("float64", (4, 5) if not b else (5, 4))))
        for a, b, k, kd in itertools.product((False, True), (False, True), (0, 1), (False, True))
    ],
    "merge_index_add": [
        (lambda w, v, i: w + apply("index_add", zeros(3, 4), v, i, axis=0), (M, V, INT)),
        (lambda w, v, i: apply("index_add", zeros(3, 4), v, i, axis=1) + w, (M, array(3), INT)),
        (lambda w, v, i: w + apply("index_add", zeros(4), v, i, axis=0), (V, Scalar("float64"), INT)),
    ],
    "merge_slice_add": [
        (lambda w, v, i: w + apply("slice_add", zeros(3, 4), v, i, axis=1), (M, array(3, 2), INT)),
        (lambda w, v, i: apply("slice_add", zeros(4), v, i, axis=0) + w, (V, array(2), INT)),
    ],
    "restore_slice_add": [
        (
            lambda x, i: apply("slice_add", apply("dynamic_update_slice", x, zeros(2), i, axis=0),
                               apply("dynamic_slice", x, i, axis=0, length=2), i, axis=0),
            (V, INT),
        ),
    ],
    "fill_index_add": [
        (lambda x, y, i: apply("index_add", apply("dynamic_update", x, zeros(4), i, axis=0), y, i, axis=0), (M, V, INT)),
        (lambda x, y, i: apply("index_add", apply("dynamic_update", x, np.float64(0), i, axis=0), y, i, axis=0),
            (V, Scalar("float64"), INT)),
    ],
    "join_updates": [
        (
            lambda x, w, y, i: apply("dynamic_update", apply("dynamic_update", x, w, i, axis=0), y, i, axis=0),
            (M, V, V, INT),
        ),
        (
            lambda x, w, y, i: apply("dynamic_update", apply("dynamic_update", x, w, i, axis=1), y, i, axis=1),
            (SQUARE, V, V, INT),
        ),
    ],
}  # fmt: skip


def cast(x, dtype, weak=False):
    return apply("cast", x, dtype=dtype, weak=weak)


def transposed(x, *perm):
    return apply("transpose", x, perm=perm)


def part(x, starts, sizes, steps):
    return apply("slice", x, starts=starts, sizes=sizes, steps=steps)


I32, U8, NO_PADS = Scalar("int32"), Scalar("uint8"), [((0, 0), M), ((), array())]
EXACT = {
    "drop_cast": [(lambda x: cast(x, "float32"), (F32,)), (lambda x: cast(x, "float64"), (M,))],
    "cancel_cast": [
        (lambda x: cast(cast(x, "float64"), "float32"), (V32,)),
        (lambda x: cast(cast(x, "int64"), "int32"), (I32,)),
        (lambda x: cast(cast(x, "int16"), "bool"), (Array("bool", (3,)),)),
    ],
    "join_cast": [
        (lambda x: cast(cast(x, "int64"), "float64"), (I32,)),
        (lambda x: cast(cast(x, "float64"), "int32"), (V32,)),
        (lambda x: cast(cast(x, "uint8"), "float32"), (Array("bool", (3,)),)),
    ],
    "cancel_as_scalar": [(lambda x: apply("as_scalar", apply("as_array", x)), (F32,))],
    "cancel_as_array": [(lambda x: apply("as_array", apply("as_scalar", x)), (array(),))],
    "drop_as_scalar": [(lambda x: apply("as_scalar", x), (F32,))],
    "drop_as_array": [(lambda x: apply("as_array", x), (M,))],
    "drop_transpose": [(lambda x: transposed(x, 0, 1), (M,)), (lambda x: transposed(x, 0, 1, 2), (T,))],
    "join_transpose": [
        (lambda x: transposed(transposed(x, 1, 2, 0), 1, 0, 2), (T,)),
        (lambda x: transposed(transposed(x, 2, 0, 1), 2, 0, 1), (T,)),
    ],
    "reshape_transpose": [
        (lambda x: transposed(x, 1, 0), (array(1, 4),)),
        (lambda x: transposed(x, 1, 2, 0), (array(1, 3, 4),)),
        (lambda x: transposed(x, 0, 2, 1), (array(3, 4, 1),)),
    ],
    "drop_reshape": [(lambda x: apply("reshape", x, shape=(3, 4)), (M,))],
    "join_reshape": [(lambda x: apply("reshape", apply("reshape", x, shape=(6, 2)), shape=(4, 3)), (M,))],
    "drop_broadcast": [(lambda x: repeated(x, 3, 4), (M,))],
    "join_broadcast": [(lambda x: repeated(repeated(x, 3, 4), 2, 3, 4), (V,))],
    "drop_reshape_as_array": [(lambda x: apply("reshape", apply("as_array", x), shape=(1, 1)), (F32,))],
    "drop_broadcast_as_array": [(lambda x: repeated(apply("as_array", x), 2, 2), (F32,))],
    "add_sum_of_units": [
        (lambda x: total(x, 0), (array(1, 4),)),
        (lambda x: total(x, 0, 1, keepdims=True), (array(1, 1),)),
        (lambda x: total(x, 0), (Array("int64", (1, 4)),)),
    ],
    "row_of_slice": [
        (lambda x, i: apply("dynamic_index", part(x, (0, 1), (3, 2), (1, 2)), i, axis=0), (M, INT)),
        (lambda x, i: apply("dynamic_index", part(x, (1, 0, 0), (1, 3, 4), (1, 1, 1)), i, axis=1), (T, INT)),
        (lambda x, i: apply("dynamic_index", part(x, (1, 0, 1), (1, 3, 2), (1, 1, -1)), i, axis=1), (T, INT)),
    ],
    "drop_concatenate": [(lambda x: apply("concatenate", x, axis=0), (M,))],
    "drop_slice": [(lambda x: part(x, (0, 0), (3, 4), (1, 1)), (M,))],
    "drop_pad": [(lambda x, n=n: apply("pad", x, np.float64(7), low=n, high=n, interior=n), (t,)) for n, t in NO_PADS],
    "absorb_dot_a": [(lambda x, y: dot(transposed(x, 1, 0), y), (M, array(3, 5))),
                     (lambda x, y: dot(transposed(x, 1, 0), y, True), (M, array(4, 5)))],
    "absorb_dot_b": [(lambda x, y: dot(x, transposed(y, 1, 0)), (M, array(5, 4))),
                     (lambda x, y: dot(x, transposed(y, 1, 0), False, True), (M, array(4, 5)))],
    "absorb_matvec": [
        (lambda x, y: apply("matvec", transposed(x, 1, 0), y, transpose=False), (M, array(3))),
        (lambda x, y: apply("matvec", transposed(x, 1, 0), y, transpose=True), (M, V)),
    ],
    "absorb_batched_a": [
        (lambda x, y: batched(transposed(x, 0, 2, 1), y), (T, array(2, 3, 5))),
    ],
    "absorb_batched_b": [
        (lambda x, y: batched(x, transposed(y, 0, 2, 1)), (T, array(2, 5, 4))),
    ],
    "drop_update_same": [
        (lambda x, i: apply("dynamic_update", x, apply("dynamic_index", x, i, axis=1), i, axis=1), (SQUARE, INT)),
    ],
    "mask_mod": [
        (lambda x: apply("mod", x, x.const(8)), (INT,)),
        (lambda x: apply("mod", x, x.const(1)), (INT,)),
        (lambda x: apply("mod", x, x.const(64)), (Array("int8", (3,)),)),
    ],
    "shift_floordiv": [
        (lambda x: apply("floordiv", x, x.const(8)), (INT,)),
        (lambda x: apply("floordiv", x, x.const(1)), (INT,)),
        (lambda x: apply("floordiv", x, x.const(64)), (Array("int8", (3,)),)),
    ],
    **{
        f"join_{a}_{b}": [
            (lambda x, a=a, b=b, m=m, n=n: apply(a, apply(b, x, m), n), (INT,))
            for m, n in ((3, 5), (5, 3), (-3, 5), (3, -5), (2**62, 2**62), (-(2**62), 2**62 + 7), (4, 4), (4, -4))
        ]
        for a in ("add", "sub") for b in ("add", "sub")
    },
}  # fmt: skip

REFUSED = {
    "drop_concatenate": [(lambda x, y: apply("concatenate", x, y, axis=0), (M, M))],
    "cancel_cast": [(lambda x: cast(cast(x, "float32"), "float64"), (V,)), (lambda x: cast(cast(x, "float64"), "int64"), (INT,))],
    "join_cast": [
        (lambda x: cast(cast(x, "int8"), "int64"), (I32,)), (lambda x: cast(cast(x, "float32"), "float64"), (I32,)),
        (lambda x: cast(cast(x, "bool"), "float64"), (V,)),
    ],
    "drop_cast": [(lambda x: cast(x, "float64"), (F32,))],
    "drop_transpose": [(lambda x: transposed(x, 1, 0), (SQUARE,))],
    "reshape_transpose": [
        (lambda x: transposed(x, 1, 0), (M,)),
        (lambda x: transposed(x, 2, 1, 0), (array(3, 1, 4),))
    ],
    "drop_reshape": [(lambda x: apply("reshape", x, shape=(4, 3)), (M,))],
    "drop_broadcast": [(lambda x: repeated(x, 3, 4), (V,))],
    "reshape_sum_of_units": [(lambda x: total(x, 0, 1), (array(1, 4),))],
    "add_sum_of_units": [(lambda x: total(x, 0, 1), (array(1, 4),))],
    "scale_sum_of_broadcast": [
        (lambda x: total(repeated(x, 5, 4), 1), (V,)), (lambda x: total(repeated(x, 5), 0), (INT,)),
        (lambda x: total(repeated(x, symbol("n"), 4), 0), (V,)),
    ],
    "sum_dot": [(lambda x, y: total(dot(x, y), 0, 1), (M, array(4, 5)))],
    "row_of_slice": [
        (lambda x, i: apply("dynamic_index", part(x, (1, 0), (2, 4), (1, 1)), i, axis=0), (M, INT)),
        (lambda x, i: apply("dynamic_index", part(x, (0, 0), (2, 4), (1, 1)), i, axis=0), (M, INT)),
        (lambda x, i: apply("dynamic_index", part(x, (0, 0), (2, 4), (2, 1)), i, axis=0), (M, INT)),
        (lambda x, i: apply("dynamic_index", part(x, (0,), (4,), (1,)), i, axis=0), (V, INT)),
    ],
    "drop_slice": [
        (lambda x: part(x, (0, 0), (3, 3), (1, 1)), (M,)), (lambda x: part(x, (2, 3), (3, 4), (-1, -1)), (M,)),
    ],
    "drop_pad": [
        (lambda x, k=k: apply("pad", x, np.float64(7), **{"low": (0,), "high": (0,), "interior": (0,), k: (1,)}), (V,))
        for k in ("low", "high", "interior")
    ],
    "absorb_batched_a": [
        (lambda x, y: batched(transposed(x, 1, 0, 2), y), (array(3, 2, 4), array(2, 4, 5))),
    ],
    "absorb_batched_b": [
        (lambda x, y: batched(x, transposed(y, 1, 0, 2)), (T, array(4, 2, 5))),
    ],
    "drop_update_same": [
        (lambda x, i: apply("dynamic_update", x, apply("dynamic_index", x, i, axis=0), i, axis=1), (SQUARE, INT)),
    ],
    "restore_slice_add": [
        (
            lambda x, i, a=a, b=b, c=c: apply(
                "slice_add", apply("dynamic_update_slice", x, zeros(4, 4), i, axis=b),
                apply("dynamic_slice", x, i, axis=c, length=4), i, axis=a),
            (SQUARE, INT),
        )
        for a, b, c in ((0, 0, 1), (0, 1, 0), (0, 1, 1))
    ],
    "join_updates": [
        (lambda x, v, i: apply("dynamic_update", apply("dynamic_update", x, v, i, axis=0), v, i, axis=1), (SQUARE, V, INT)),
        (lambda x, v, i: apply("dynamic_update", apply("dynamic_update", x, v, i, axis=0), v, i + 1, axis=0), (SQUARE, V, INT)),
    ],
    "fill_index_add": [
        (lambda x, v, i: apply("index_add", apply("dynamic_update", x, zeros(4), i, axis=0), v, i, axis=1), (SQUARE, V, INT)),
        (lambda x, v, i: apply("index_add", apply("dynamic_update", x, v, i, axis=0), v, i, axis=0), (SQUARE, V, INT)),
    ],
    "merge_index_add": [
        (lambda w, v, i: w + apply("index_add", w, v, i, axis=0), (M, V, INT)),
        (lambda w, v, i: w + apply("index_add", zeros(3, 4), v, i, axis=0), (V, V, INT)),
    ],
    "mask_mod": [
        (lambda x: apply("mod", x, x.const(6)), (INT,)),
        (lambda x: apply("mod", x, x.const(-8)), (INT,)),
        (lambda x: apply("mod", x, x.const(8.0)), (FLOAT,)),
        (lambda x: apply("mod", x, x.const(8)), (U8,))
    ],
    "shift_floordiv": [
        (lambda x: apply("floordiv", x, x.const(6)), (INT,)),
        (lambda x: apply("floordiv", x, x.const(-8)), (INT,)),
        (lambda x: apply("floordiv", x, x.const(8.0)), (FLOAT,)),
        (lambda x: apply("floordiv", x, x.const(8)), (U8,))
    ],
    "join_add_add": [
        (lambda x: (x + x.const(1)) + x.const(2), (I32,)),
        (lambda x: (x + x) + 2, (INT,)),
        (lambda x: (x + 1) + x, (INT,))
    ],
}  # fmt: skip


RULES = {rule.name: rule for rule in (*FINAL.rules, *OFFSETS)}


def cases(table):
    return [
        pytest.param(RULES[name], *case, id=f"{name}-{k}")
        for name, found in table.items()
        for k, case in enumerate(found)
    ]


def replaced(rule, f, types):
    """A graph, and the same graph with its last application replaced by a rule; None where the rule does not apply."""
    left, right = build(f, *types), build(f, *types)
    head = right.output
    found = Table(rule).apply(Builder(right), head.fn, head.args, head.attrs, head.type, True)
    if found is None:
        return left, None
    assert found.type == head.type
    right.output = found
    verify(right, rule.name)
    return left, right


def value(t, draw):
    """A random value of a type: floats with both signs, away from zero, where quotients and powers are not singular."""
    if isinstance(t, Struct):
        return tuple(value(e, draw) for e in t.elems)
    shape = t.shape if isinstance(t, Array) else ()
    if t.is_float:
        found = (draw.uniform(0.5, 2.0, shape) * draw.choice((-1.0, 1.0), shape)).astype(t.dtype)
    elif t.dtype == "bool":
        found = draw.integers(0, 2, shape).astype(bool)
    else:
        found = draw.integers(0 if t.dtype[0] == "u" else -100, 100, shape).astype(t.dtype)
    if isinstance(t, Array):
        return np.asarray(found)
    return np.asarray(found)[()] if not t.weak else np.asarray(found).item()


def points(types, uses_index):
    draw = np.random.default_rng(0)
    for k in range(4):
        values = [value(t, draw) for t in types]
        yield [k % 3 if t == INT and uses_index else v for t, v in zip(types, values)]


def uses_index(graph):
    return any(n.fn.name.startswith(("dynamic", "index", "slice_add")) for n in graph.nodes)


def test_every_rule_that_is_not_exact_has_examples():
    assert {r.name for r in RULES.values() if not r.exact} - {"merge_scatter_add"} == set(EXAMPLES)


@pytest.mark.parametrize(("rule", "f", "types"), cases(EXAMPLES))
def test_both_sides_are_the_same_but_for_rounding(rule, f, types):
    assert not rule.exact
    left, right = replaced(rule, f, types)
    assert right is not None, "the rule does not apply"
    single = any(getattr(t, "dtype", "") == "float32" for t in types)
    for args in points(types, uses_index(left)):
        a, b = run(left, args), run(right, args)
        assert type(a) is type(b) and np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=2e-6 if single else 4e-15, atol=1e-6 if single else 1e-14)


@pytest.mark.parametrize(("rule", "f", "types"), cases(EXACT))
def test_both_sides_are_the_same_to_the_bit(rule, f, types):
    assert rule.exact
    left, right = replaced(rule, f, types)
    assert right is not None, "the rule does not apply"
    extra = [[e] for e in (2**63 - 1, -(2**63), 0, -1)] if types == (INT,) else []
    for args in [*points(types, uses_index(left)), *extra]:
        a, b = run(left, args), run(right, args)
        assert type(a) is type(b) and np.shape(a) == np.shape(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("rule", "f", "types"), cases(REFUSED))
def test_where_a_rule_does_not_hold_it_does_not_apply(rule, f, types):
    assert replaced(rule, f, types)[1] is None


def test_a_sum_of_minus_zero_is_zero():
    for graph in replaced(RULES["add_sum_of_units"], lambda x: total(x, 0), (array(1, 2),)):
        assert np.signbit(run(graph, [np.array([[-0.0, -1.0]])])).tolist() == [False, True]


def test_scattered_sums_are_added_to_what_is_there():
    indices = np.array([[0], [2], [0]])

    def f(w, u):
        return w + apply("scatter_add", zeros(4), indices, u, axis=0)

    left, right = replaced(RULES["merge_scatter_add"], f, (V, array(3, 1)))
    assert right is not None and P["scatter_add"] is right.output.fn
    for args in points((V, array(3, 1)), False):
        np.testing.assert_allclose(run(left, args), run(right, args), rtol=1e-15)


# --- what is done beside the tables ---------------------------------------------------------------------------------------


def operands(f, *types):
    """The operands of the last application of a staged function, without broadcasting that it does by itself."""
    graph = build(f, *types)
    head = graph.output
    found = unbroadcast_operand(Builder(graph), head.fn, head.args, head.type)
    return [a is not b for a, b in zip(found, head.args)], [str(a.type) for a in found]


def test_operands_are_broadcast_by_the_operation():
    assert operands(lambda x, y: x + repeated(y, 3, 4), M, V) == ([False, True], [str(M), str(V)])
    assert operands(lambda x, y: repeated(y, 3, 4) * x, M, V) == ([True, False], [str(V), str(M)])
    # Where all of them are, one has to stay.
    assert operands(lambda x, y: repeated(x, 3, 4) + repeated(y, 3, 4), V, V)[0] == [True, False]
    column = array(3, 1)
    assert operands(lambda x, y: repeated(x, 3, 4) + repeated(y, 3, 4), V, column)[0] == [True, True]
    assert operands(lambda x, y: x + repeated(y, 3, 4), M, Scalar("float64"))[0] == [False, True]
    # A Python number that is made an array is one: beside a scalar it would have another kind.
    assert operands(lambda x, y: x + repeated(y, 3, 4), M, FLOAT)[0] == [False, False]
    assert operands(lambda x: x + np.full((3, 4), 2.0), M) == ([False, True], [str(M), str(Scalar("float64"))])
    assert operands(lambda x: x + np.arange(12.0).reshape(3, 4), M)[0] == [False, False]
    assert operands(lambda x: x + np.full((1,), 2.0), V)[0] == [False, False]
    assert operands(lambda x: apply("sin", repeated(x, 3, 4)), V)[0] == [False]
    assert operands(lambda x, y: x + y, FLOAT, FLOAT)[0] == [False, False]


def test_axes_of_size_one():
    assert unit_axes((1, 3, 1, 4), (3, 4)) == [0, 2] and unit_axes((3, 1), (3,)) == [1]
    assert unit_axes((3, 4), (3, 4)) is None and unit_axes((3, 4), (3,)) is None and unit_axes((3,), (3, 4)) is None
    assert unit_axes((1, 1), (1,)) == [1] and unit_axes((2, 1), (1,)) is None


def sunk(f, *types):
    """A graph, and the same one with axes of size 1 added after its last application; None where that is not done."""
    left, right = build(f, *types), build(f, *types)
    head = right.output
    found = sink_units(Builder(right), head.fn, head.args, head.attrs, head.type)
    if found is None:
        return None
    assert found.type == head.type
    right.output = found
    for args in points(types, False):
        np.testing.assert_array_equal(run(left, args), run(right, args))
    return found.args[0] if found.fn.name == "reshape" else found


def column(x, *shape):
    return apply("reshape", x, shape=shape)


@pytest.mark.parametrize(
    ("f", "types", "shape"),
    [
        (lambda x, y: column(x, 4, 1) + y, (V, array(4, 1)), (4,)),
        (lambda x, y: y + column(x, 4, 1), (V, array(4, 1)), (4,)),
        (lambda x, y: column(x, 1, 3, 1, 4) * column(y, 1, 3, 1, 1), (M, array(3)), (3, 4)),
        (lambda x, y: column(x, 3, 1, 4) * y, (M, V), (3, 4)),
        (lambda x, y: column(x, 3, 1, 4) * y, (M, F64), (3, 4)),
        (lambda x: total(column(x, 3, 1, 4), 2), (M,), (3,)),
        (lambda x: total(column(x, 3, 1, 4), 1, 2), (M,), (3,)),
        (lambda x: total(column(x, 3, 1, 4), 0, keepdims=True), (M,), (4,)),
        (lambda x, y: column(x, 4, 1) + y, (V, array(4, 3)), None),
        (lambda x, y: column(x, 2, 2) + y, (V, array(2, 2)), None),
        (lambda x, y: x + y, (V, V), None),
        (lambda x: total(column(x, 3, 1, 4), 1), (M,), None),
        (lambda x: total(x, 0), (M,), None),
        (lambda x: transposed(column(x, 4, 1), 1, 0), (V,), None),
    ],
)
def test_axes_of_size_one_are_added_behind(f, types, shape):
    found = sunk(f, *types)
    assert (found is None) == (shape is None)
    if shape is not None:
        assert tuple(found.type.shape) == shape


def test_a_structure_put_together_again():
    pair = tuple_of(FLOAT, V)

    def again(order, rest=()):
        graph = build(lambda s, t: tuple([s[k] for k in order] + [t[k] for k in rest]), pair, pair)
        head = graph.output
        found = whole_struct(head.args, head.type)
        return found and graph.params.index(found)

    assert again((0, 1)) == 0 and again((), (0, 1)) == 1
    assert again((1, 0)) is None and again((0,)) is None and again((0,), (1,)) is None and again((0, 0)) is None
    assert whole_struct((), tuple_of()) is None
    other = build(lambda s: (s[0], s[1] * 1.5), pair).output
    assert whole_struct(other.args, other.type) is None


# --- like terms ------------------------------------------------------------------------------------------------------------


def collected(f, *types, loose=lambda node: True):
    """The applications of the last one of a staged function with its like terms collected; None where nothing is."""
    left, right = build(f, *types), build(f, *types)
    head = right.output
    before = len(right.nodes)
    found = collect_terms(Builder(right), head.fn, head.args, head.type, loose)
    if found is None:
        return None
    assert found.type == head.type
    right.output = found
    for args in points(types, False):
        np.testing.assert_allclose(run(left, args), run(right, args), rtol=1e-5 if F32 in types else 1e-13, atol=1e-13)
    return [
        " ".join([n.fn.name, *(f"{a.value:g}" for a in n.args if hasattr(a, "value"))]) for n in right.nodes[before:]
    ]


@pytest.mark.parametrize(
    ("f", "types", "want"),
    [
        (lambda x: x + x, (FLOAT,), ["mul 2"]),
        (lambda x: x - x, (FLOAT,), []),
        (lambda x: x - x, (V,), None),
        (lambda x: 3.0 * x + x * 3.0, (V,), ["mul 6"]),
        (lambda x: 3.0 * x - x, (F32,), ["mul 2"]),
        (lambda x: -x - x, (FLOAT,), ["mul -2"]),
        (lambda x: x - 2.0 * x, (FLOAT,), ["neg"]),
        (lambda x, y: (y + x) - x, (FLOAT, FLOAT), []),
        (lambda x, y: (y - x) + x, (V, V), []),
        (lambda x, y: (y - x) - x, (V, V), ["mul 2", "sub"]),
        (lambda x, y: x - (y - x), (V, V), ["mul 2", "sub"]),
        (lambda x, y: x * y + y * x, (V, V), ["mul 2"]),
        (lambda x, y: (2.0 * x) * y - y * x, (V, V), []),
        (lambda x, y: x * (y * x) + (x * x) * y, (FLOAT, FLOAT), ["mul 2"]),
        (lambda x, y: (2.0 * x) * y + (3.0 * y) * x, (FLOAT, FLOAT), ["mul", "mul 5"]),
        (lambda x, y: x + y, (FLOAT, FLOAT), None),
        (lambda x, y: x + y, (V, FLOAT), None),
        (lambda x: -(3.0 * x), (FLOAT,), ["mul -3"]),
        (lambda x: apply("neg", -x), (V,), []),
        (lambda x: -x, (V,), None),
        (lambda x: 2.0 * (0.5 * x), (FLOAT,), []),
        (lambda x: 2.0 * (3.0 * x), (FLOAT,), ["mul 6"]),
        (lambda x: (3.0 * x) * -2.0, (V,), ["mul -6"]),
        (lambda x: 2.0 * x, (FLOAT,), None),
        (lambda x: (-x) * -1.0, (FLOAT,), []),
        (lambda x, y: (3.0 * x) * y, (V, V), ["mul", "mul 3"]),
        (lambda x, y: x * (y * 3.0), (F32, F32), ["mul", "mul 3"]),
        (lambda x, y: (2.0 * x) * (0.5 * y), (V, V), None),
        (lambda x, y: x * y, (V, V), None),
        (lambda x, y: (3.0 * x) * y, (V, M), ["mul", "mul 3"]),
        (lambda x, y: 3.0 * ((2.0 / y) * x), (V, V), ["div 6", "mul"]),
        (lambda x, y: (x * (2.0 / y)) * 3.0, (FLOAT, FLOAT), ["div 6", "mul"]),
        (lambda x, y: 3.0 * ((y / 2.0) * x), (V, V), None),
        (lambda x: x + x, (INT,), None),
        (lambda x: apply("sin", x), (FLOAT,), None),
        (lambda x: 2.0 * x + np.inf * x, (FLOAT,), None),
    ],
)
def test_like_terms(f, types, want):
    assert collected(f, *types) == want


def test_sums_of_users_are_not_taken_apart():
    def f(x, y):
        return (y + x) - x

    assert collected(f, V, V, loose=lambda node: False) is None
    assert collected(lambda x, y: (3.0 * x) * y, V, V, loose=lambda node: False) is None


# --- casts that lose nothing ------------------------------------------------------------------------------------------------

DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)


def holds_all(inner: str, outer: str) -> bool:
    """Whether a dtype is known to hold all values of another: the wider one of its kind, and any number those of a bool."""
    kinds = np.dtype(inner).kind, np.dtype(outer).kind
    if inner == outer or inner == "bool":
        return True
    return kinds in (("i", "i"), ("f", "f")) and np.dtype(inner).itemsize < np.dtype(outer).itemsize


@pytest.mark.parametrize("inner", DTYPES)
def test_casts_that_lose_nothing(inner):
    for outer in DTYPES:
        if inner == outer:
            continue
        found = replaced(RULES["cancel_cast"], lambda x: cast(cast(x, outer), inner), (Array(inner, (3,)),))[1]  # noqa: B023
        assert (found is not None) == holds_all(inner, outer), (inner, outer)
        assert found is None or np.can_cast(inner, outer, "safe")
        third = "int64" if "int64" not in (inner, outer) else "float32" if "float32" not in (inner, outer) else "int8"
        found = replaced(RULES["join_cast"], lambda x: cast(cast(x, outer), third), (Array(inner, (3,)),))[1]  # noqa: B023
        assert (found is not None) == holds_all(inner, outer), (inner, outer)
