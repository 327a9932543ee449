"""Rules that hold to the bit, of arithmetic and logic: each applies where it should, and both sides are the same."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import BOOL, FLOAT, INT, Array, Scalar
from myia_relay.backend.interpreter import run
from tests.typed_graphs import apply, staged
from tests.unit.opt.test_rule_values import EXACT, F32, RULES, M, V, points, repeated, replaced

SIZE = symbol("n")
ANY = Array("float64", (SIZE,))
FLAGS = Array("bool", (4,))
U8 = Array("uint8", (4,))
NUMBERS = [(FLOAT,), (F32,), (INT,), (V,), (Array("int32", (4,)),)]
FLOATS = [(FLOAT,), (F32,), (V,)]
PAIRS = [(FLOAT, FLOAT), (V, V), (M, V)]
TRUTHS = [(BOOL,), (FLAGS,)]
OTHERS = {
    "cancel_list_from_array",
    "drop_determinant",
    "drop_stop_gradient",
    "length_of_array",
    "own_count",
    "own_nonzero",
}


def op(name, *args):
    return apply(name, *args)


def both(name, number):
    """An operation with a number on the right, and on the left."""
    return [lambda x: op(name, x, x.const(number)), lambda x: op(name, x.const(number), x)]


def filled(number):
    """A product with an array of one number, which is broadcast when the program runs."""
    return lambda x: x * repeated(x.const(number), SIZE)


def each(functions, types):
    return [(f, t) for f in functions for t in types]


EXAMPLES = {
    "drop_mul_one": each(both("mul", 1), NUMBERS) + each([filled(1.0)], [(ANY,)]),
    "drop_div_one": each([lambda x: x / 1], FLOATS),
    "drop_sub_zero": each([lambda x: x - 0], NUMBERS),
    "drop_add_minus_zero": each(both("add", -0.0), FLOATS),
    "drop_add_zero_int": each(both("add", 0), [(INT,), (U8,)]),
    "fold_mul_zero_int": each(both("mul", 0), [(INT,), (U8,)]),
    "make_neg": each(both("mul", -1), NUMBERS) + each([filled(-1.0)], [(ANY,)]),
    "cancel_neg": each([lambda x: op("neg", op("neg", x))], NUMBERS),
    "turn_sub_neg": each([lambda x, y: x - op("neg", y)], PAIRS),
    "turn_add_neg": each([lambda x, y: x + op("neg", y), lambda x, y: op("neg", y) + x], PAIRS),
    "cancel_neg_mul": each([lambda x, y: op("neg", x) * op("neg", y)], PAIRS),
    "cancel_neg_div": each([lambda x, y: op("neg", x) / op("neg", y)], PAIRS),
    "drop_pow_one": each([lambda x: op("pow", x, x.const(1))], FLOATS),
    "fold_pow_zero": each([lambda x: op("pow", x, x.const(0))], FLOATS),
    "drop_floordiv_one": each([lambda x: op("floordiv", x, x.const(1))], [(INT,), (U8,)]),
    "fold_abs_abs": each([lambda x: op("abs", op("abs", x))], NUMBERS),
    "drop_abs_neg": each([lambda x: op("abs", op("neg", x))], NUMBERS),
    "cancel_not": each([lambda x: op("logical_not", op("logical_not", x))], TRUTHS),
    "drop_and_true": each(both("logical_and", True), TRUTHS),
    "fold_and_false": each(both("logical_and", False), TRUTHS),
    "drop_or_false": each(both("logical_or", False), TRUTHS),
    "fold_or_true": each(both("logical_or", True), TRUTHS),
    "drop_and_same": each([lambda x: op("logical_and", x, x)], TRUTHS),
    "drop_or_same": each([lambda x: op("logical_or", x, x)], TRUTHS),
    "take_where_true": each([lambda x, y: op("where", staged(x.builder, True), x, y)], PAIRS[:2]),
    "take_where_false": each([lambda x, y: op("where", staged(x.builder, False), x, y)], PAIRS[:2]),
    "drop_where_same": each([lambda c, x: op("where", c, x, x)], [(BOOL, FLOAT), (FLAGS, V)]),
    "swap_where_not": each(
        [lambda c, x, y: op("where", op("logical_not", c), x, y)], [(BOOL, FLOAT, FLOAT), (FLAGS, V, V)]
    ),
}
REFUSED = {
    "drop_add_zero_int": [(FLOAT,), (V,)],
    "fold_mul_zero_int": [(FLOAT,), (V,)],
    "drop_floordiv_one": [(FLOAT,)],
    "drop_abs_neg": [(Scalar("uint8"),), (U8,)],
}


def cases(table):
    return [
        pytest.param(RULES[name], *c, id=f"{name}-{k}") for name, found in table.items() for k, c in enumerate(found)
    ]


def test_every_rule_that_is_exact_has_examples():
    assert {r.name for r in RULES.values() if r.exact} - OTHERS == {*EXACT, *EXAMPLES}


@pytest.mark.parametrize(("rule", "f", "types"), cases(EXAMPLES))
def test_both_sides_are_the_same_to_the_bit(rule, f, types):
    left, right = replaced(rule, f, types)
    assert right is not None, "the rule does not apply"
    special = [(e,) for e in (np.inf, -np.inf, np.nan, -0.0)] if types == (FLOAT,) else []
    known = [V if t == ANY else t for t in types]
    for args in [*points(known, False), *special]:
        a, b = np.asarray(run(left, args)), np.asarray(run(right, args))
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a)[~np.isnan(a)], np.signbit(b)[~np.isnan(b)])


@pytest.mark.parametrize(("rule", "types"), [(RULES[name], t) for name, found in REFUSED.items() for t in found])
def test_where_a_rule_does_not_hold_it_does_not_apply(rule, types):
    f = EXAMPLES[rule.name][0][0]
    assert replaced(rule, f, types)[1] is None
