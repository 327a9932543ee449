"""Sizes that annotations leave open: which symbol or number each becomes."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import FLOAT, Array
from myia_relay.infer.arguments.open_sizes import exact, open_size, settle
from myia_relay.infer.values.treedef import TreeDef
from myia_relay.utils.errors import ShapeError


def array(*shape):
    """An argument: its treedef, in which a str is a named size and a list [n] an open one; and its value."""
    dims = tuple(open_size(d[0]) if isinstance(d, list) else symbol(d[0]) if isinstance(d, tuple) else d for d in shape)
    sizes = tuple(d[0] if isinstance(d, list) else d[1] if isinstance(d, tuple) else d for d in shape)
    return TreeDef("dyn", Array("float64", dims)), np.zeros(sizes)


def settled(*arguments, names=None):
    treedefs, values = zip(*arguments)
    found = settle(list(treedefs), names or list(range(len(treedefs))), list(values))
    return [tuple(str(d) for d in s.info.shape) for s in found]


def test_equal_sizes_share_a_symbol():
    assert settled(array([4], [5]), array([5], [7])) == [("any0", "any1"), ("any1", "any2")]
    assert settled(array([4], [4])) == [("any0", "any0")]


def test_a_named_or_fixed_size_goes_first():
    assert settled(array([4], [5]), array(("n", 4))) == [("n", "any0"), ("n",)]
    assert settled(array([4], [5]), array(5)) == [("any0", "5"), ("5",)]
    assert settled(array([4]), array(("n", 4), ("m", 4))) == [("n",), ("n", "m")]  # the first name
    assert settled(array([4]), array(("n", 4)), array(4)) == [("n",), ("n",), ("4",)]
    assert settled(array([4]), array(("any0", 7))) == [("any1",), ("any0",)]  # no symbol of the user's is taken


def test_a_size_of_one_may_broadcast():
    assert settled(array([1], [5]), array([5])) == [("1", "any0"), ("any0",)]
    assert settled(array([1], [5])) == [("any0", "any1")]  # nothing to broadcast with
    assert settled(array([1]), array([1])) == [("any0",), ("any0",)]


def test_named_sizes_agree():
    with pytest.raises(ShapeError, match="'n' is 4 in axis 0 of argument 'a', but 5 in axis 1 of argument 1"):
        settled(array(("n", 4)), array(3, ("n", 5)), names=["a", 1])
    assert settled(array(("n", 4)), array(3, ("n", 4))) == [("n",), ("3", "n")]


def test_structures_and_numbers():
    (a, x), (b, y) = array([4], 2), array([4])
    pair = TreeDef("seq", ("tuple", (), None), (a, TreeDef("dyn", FLOAT), b))
    (found,) = settle([pair], ["p"], [x, 1.0, y])
    size = symbol("any0")
    assert [leaf.info for leaf in found.leaves()] == [Array("float64", (size, 2)), FLOAT, Array("float64", (size,))]
    (found,) = exact([pair])
    assert [leaf.info.shape for leaf in found.leaves() if leaf.info != FLOAT] == [(4, 2), (4,)]
    (same,) = exact([array(("n", 4))[0]])
    assert str(same.info.shape[0]) == "n"
