"""The algebra of declared axes; that declarations are true is in `tests/prims/test_axes.py`."""

from __future__ import annotations

import pytest

import myia_relay.prims  # noqa: F401  which registers them
from myia_relay.abstract.dims import symbol
from myia_relay.ir.axes import POINTWISE, Axes, Relation, labels
from myia_relay.ir.prim import REGISTRY


def relation(name, shapes, out, /, **attrs) -> Relation:
    prim = REGISTRY[name]
    return prim.axes.relation(shapes, out, {**prim.attr_defaults, **attrs})


def test_a_product_in_letters():
    product = Axes("mk,kn->mn", swapped={"transpose_a": 0}).relation([(2, 3), (2, 4)], (3, 4), {"transpose_a": True})
    assert product.operands == (("k", "m"), ("k", "n"))
    assert product.mapped() == ["m", "n"] and product.contracted() == ["k"] and product.combine == "add"
    assert product.axis_of("m", 0) == 1 and product.axis_of("m", 1) is None and product.axis_of("n") == 1
    assert product.repeats(0) and product.repeats(1)


def test_dots_are_opaque():
    assert labels("nc..") == ("n", "c", None, None)
    assert Relation((labels("n."),), labels("n.")).mapped() == ["n"]
    assert Relation((labels("n."),), labels("n.")).axis_of(None) is None


def test_broadcasting_goes_from_the_last_axis():
    n = symbol("n")
    found = POINTWISE.relation([(n, 1), (5,), ()], (n, 5), {})
    assert found.operands == ((0, None), (1,), ()) and found.result == (0, 1)
    assert [found.repeats(k) for k in range(3)] == [True, True, True]
    assert not POINTWISE.relation([(n, 5)], (n, 5), {}).repeats(0)
    assert POINTWISE.relation([(1, 5)], (1, 5), {}).operands == ((0, 1),)


@pytest.mark.parametrize(
    "have, want, mapped",
    [
        ((2, 3, 4), (2, 12), [(0, 0)]),
        ((6, 4), (2, 3, 4), [(1, 2)]),
        ((1, 5), (5,), [(1, 0)]),
        ((5,), (5, 1), [(0, 0)]),
        ((2, 2), (2, 2), [(0, 0), (1, 1)]),
        ((0, 3), (3, 0), []),
        ((2, 6), (6, 2), []),
        ((symbol("n"), 2, 3), (symbol("n"), 6), [(0, 0)]),
    ],
)
def test_reshape_keeps_axes_with_as_many_elements_before_them(have, want, mapped):
    found = relation("reshape", [have], want, shape=want)
    assert [(found.axis_of(x, 0), found.axis_of(x)) for x in found.mapped()] == mapped


def test_a_slice_keeps_the_axes_that_it_takes_whole():
    found = relation("slice", [(5, 6)], (5, 2), starts=(0, 1), sizes=(5, 2), steps=(1, 1))
    assert found.operands == ((0, None),) and found.result == (0, None)


def test_a_gather_puts_the_axes_of_its_indices_in_the_place_of_one():
    found = relation("take", [(5, 6, 7), (2, 3)], (5, 2, 3, 7), axis=1)
    assert found.axis_of(2, 0) == 2 and found.axis_of(2) == 3
    assert found.repeats(0) and [found.axis_of(x) for x in found.operands[1]] == [1, 2]


def test_attributes_for_one_more_axis_and_for_a_block():
    slice_ = REGISTRY["slice"].axes
    attrs = {"starts": (0, 1), "sizes": (5, 2), "steps": (1, 1)}
    assert slice_.grown(attrs, 9) == {"starts": (0, 0, 1), "sizes": (9, 5, 2), "steps": (1, 1, 1)}
    assert slice_.resized(attrs, (3, 2)) == {**attrs, "sizes": (3, 2)}
    assert REGISTRY["transpose"].axes.grown({"perm": (1, 0)}, 9) == {"perm": (0, 2, 1)}
    assert REGISTRY["reduce_sum"].axes.grown({"axes": (0, 1), "keepdims": True}, 9) == {
        "axes": (1, 2),
        "keepdims": True,
    }
