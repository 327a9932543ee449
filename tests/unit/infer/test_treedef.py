"""Values without their nodes: taken apart and put together, and what two of them have in common."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from myia_relay.abstract.types import BOOL, FLOAT, INT, Array, List, Scalar, Struct, tuple_of, union_of
from myia_relay.abstract.words import STRING
from myia_relay.infer.values.treedef import (
    MAX_OPTIONS,
    Mismatch,
    TreeDef,
    alike,
    describe,
    entries_of,
    from_type,
    join,
    rebuild,
    tree_structure,
    type_of,
    unknown,
)
from myia_relay.infer.values.values import (
    NEVER,
    UNBOUND_VAL,
    Dyn,
    Iter,
    Listed,
    Raised,
    Seq,
    SliceVal,
    Static,
    TaggedUnion,
    Text,
)
from myia_relay.ir.node import Constant, Graph

G = Graph("g")
V3, V4, M = Array("float64", (3,)), Array("float64", (4,)), Array("float64", (3, 4))


def dyn(t=INT):
    return Dyn(G.add_parameter("x", t))


def const(value, t=None):
    return Dyn(Constant(value, t or {int: INT, float: FLOAT, bool: BOOL}[type(value)]))


def seq(*parts, kind="tuple", fields=(), cls=None):
    return Seq(kind, parts, fields, cls)


def listed(*parts):
    return seq(*parts, kind="list")


@dataclass
class Record:
    a: int
    b: float


VALUES = [
    dyn(), dyn(FLOAT), dyn(V3), const(3), const(-0.0), const(True), Static(None), Static("text"), seq(), seq(dyn(), const(2)),
    listed(dyn(FLOAT), seq(const(1), dyn(V3))), seq(dyn(), dyn(FLOAT), kind="dict", fields=("a", "b")),
    seq(dyn(), dyn(FLOAT), kind="record", fields=("a", "b"), cls=Record), Listed(dyn(Array("int64", (5,)))),
    Text(("a", (0, -1, "")), (dyn(),)), Raised(ValueError, Static("no")), Raised(KeyError, None),
    SliceVal(dyn(), Static(None), const(2)), Iter("zip", (listed(dyn()), listed(dyn(FLOAT)))), UNBOUND_VAL, NEVER,
    TaggedUnion(dyn(), (dyn(FLOAT), Static(None), seq(dyn()))),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("keep", [True, False])
def test_taken_apart_and_put_together(value, keep):
    nodes = []
    treedef = tree_structure(value, nodes, keep_constants=keep)
    assert [leaf.info for leaf in treedef.leaves()] == [n.type for n in nodes]
    again, same = [], rebuild(treedef, iter(nodes))
    assert tree_structure(same, again, keep_constants=keep) == treedef and again == nodes and type(same) is type(value)
    assert hash(tree_structure(value, keep_constants=keep)) == hash(treedef)
    # The same twice is the same; with nothing, and with what does not return, it is itself.
    assert join(treedef, treedef) == treedef
    never, unbound = tree_structure(NEVER), tree_structure(UNBOUND_VAL)
    assert join(treedef, never) == treedef == join(never, treedef)
    if treedef != never:
        assert join(treedef, unbound) == unknown(treedef) == join(unbound, treedef)


def test_known_numbers_are_told_apart():
    differ = [const(0.0), const(-0.0), const(0), const(False), const(1), const(1, Scalar("int64")), const(1.0)]
    for a, b in itertools.combinations(differ, 2):
        assert tree_structure(a) != tree_structure(b)
    nan = float("nan")
    assert tree_structure(const(nan)) == tree_structure(const(nan)) and tree_structure(Static("a")) == tree_structure(
        Static("a")
    )
    assert tree_structure(Static([1])) != tree_structure(Static([1]))  # by identity, where a value may change
    assert tree_structure(const(3), keep_constants=False) == tree_structure(dyn())


def joined(a, b, **options):
    return str(join(tree_structure(a), tree_structure(b), **options))


def refused(a, b, **options):
    with pytest.raises(Mismatch) as error:
        join(tree_structure(a), tree_structure(b), **options)
    return error.value


def test_numbers():
    assert join(tree_structure(const(1)), tree_structure(const(2))) == tree_structure(dyn())
    assert join(tree_structure(const(1)), tree_structure(dyn())) == tree_structure(dyn())
    assert joined(const(1), const(2.0)) == "int | float" and joined(const(2.0), dyn()) == "float | int"
    assert joined(dyn(V3), dyn(M)) == f"{V3} | {M}"
    refused(dyn(V3), dyn(V4))  # two sizes are nearly always a mistake
    assert joined(dyn(V3), dyn(Array("float32", (4,)))).count("|") == 1
    refused(const(1), const(2.0), wide=False)


def test_structures():
    assert joined(seq(const(1), dyn(FLOAT)), seq(const(2), dyn(FLOAT))) == "(int, float)"
    assert joined(seq(const(1)), seq(const(2.0))) == "(int | float,)"
    assert joined(seq(dyn()), seq(dyn(), dyn())) == "(int,) | (int, int)"
    refused(seq(dyn()), seq(dyn(), dyn()), wide=False)
    a, b = (seq(dyn(), kind="dict", fields=(name,)) for name in "ab")
    assert joined(a, a) == "{a: int}" and joined(a, b) == "{a: int} | {b: int}"
    assert joined(Static(None), dyn()) == "None | int"
    assert joined(Static("x"), Static("x")) == "'x'" and joined(Static("x"), Static(None)) == "'x' | None"


def test_lists_of_several_lengths_are_run_time_lists():
    assert joined(listed(const(1)), listed(const(2), const(3))) == str(List(INT))
    assert joined(listed(), listed(dyn(FLOAT))) == str(List(FLOAT)) == joined(listed(dyn(FLOAT)), listed())
    assert joined(dyn(List(INT)), listed(const(1))) == str(List(INT)) == joined(listed(const(1)), dyn(List(INT)))
    assert joined(Listed(dyn(Array("int64", (5,)))), listed(const(1))) == str(List(INT))
    assert joined(listed(const(1)), listed(const(2))) == "[int]"
    refused(listed(const(1)), listed(const(2.0), const(3.0)))
    refused(dyn(List(FLOAT)), listed(const(1)))
    refused(listed(), listed(Static(len)))
    assert joined(listed(), listed(Static("a"))) == "list[str]"
    pair = listed(seq(const(1), dyn(V3))), listed(seq(const(2), dyn(V3)), seq(const(3), dyn(V3)))
    assert joined(*pair) == str(List(tuple_of(INT, V3)))
    assert (
        str(entries_of(tree_structure(listed(const(1), const(2))))) == "int"
        and entries_of(tree_structure(listed())) is None
    )
    assert str(entries_of(tree_structure(dyn(List(FLOAT))))) == "float"
    with pytest.raises(Mismatch):
        entries_of(tree_structure(listed(const(1), const(2.0))))


def test_choices():
    two = join(tree_structure(dyn()), tree_structure(dyn(FLOAT)))
    assert two.tag == "choice" and two.parts[0] == TreeDef("dyn", INT)
    assert str(join(two, tree_structure(Static(None)))) == "int | float | None"
    assert join(two, tree_structure(const(5))) == two == join(two, two)
    assert str(join(tree_structure(Static(None)), two)) == "None | int | float"
    assert join(two, join(tree_structure(dyn(FLOAT)), tree_structure(dyn()))) == two  # the first one's order
    assert str(join(two, tree_structure(listed(dyn())))) == "int | float | [int]"
    lists = join(join(two, tree_structure(listed(dyn()))), tree_structure(listed(dyn(), dyn())))
    assert str(lists) == f"int | float | {List(INT)}"
    many = [dyn(Array("float64", (2,) * k)) for k in range(1, MAX_OPTIONS + 2)]
    total = tree_structure(many[0])
    for value in many[1:-1]:
        total = join(total, tree_structure(value))
    assert len(total.parts) == MAX_OPTIONS + 1
    with pytest.raises(Mismatch) as error:
        join(total, tree_structure(many[-1]))
    assert f"{MAX_OPTIONS} types" in error.value.why


def test_types_that_grow():
    inner = seq(dyn(), seq(dyn(), Static(None)))
    error = refused(seq(dyn()), seq(seq(dyn()), dyn()))
    assert "grows without bound" in error.why
    assert joined(seq(dyn(), dyn()), inner)  # another form, but no part of the other


def test_alike_is_an_equivalence():
    treedefs = [tree_structure(v) for v in VALUES]
    for a, b, c in itertools.product(treedefs, repeat=3):
        assert alike(a, b) == alike(b, a)
        if alike(a, b) and alike(b, c):
            assert alike(a, c)


def test_joins_do_not_depend_on_the_order_of_arms_but_for_options():
    for a, b in itertools.product([tree_structure(v) for v in VALUES], repeat=2):
        try:
            one = join(a, b)
        except Mismatch:
            with pytest.raises(Mismatch):
                join(b, a)
            continue
        other = join(b, a)
        assert (
            one == other or one.tag == other.tag == "choice" and set(one.parts) == set(other.parts) or "|" in str(one)
        )
        # It is an upper bound: nothing is added by joining with one of the two again.
        assert join(one, a) == one and join(one, b) == one


def test_types_of_entries():
    for t in (INT, V3, List(INT), tuple_of(INT, tuple_of(FLOAT, V3)), Struct("dict", (INT,), ("a",))):
        assert type_of(from_type(t)) == t
    assert type_of(tree_structure(Static("a"))) == STRING and str(from_type(STRING)) == "str"
    union = type_of(tree_structure(TaggedUnion(dyn(), (dyn(), dyn(FLOAT)))))
    assert union == union_of(INT, FLOAT) and str(union) == "int | float" and type_of(from_type(union)) == union
    for value in (const(1), Iter("range", (const(1),))):
        with pytest.raises(Mismatch):
            type_of(tree_structure(value))


def test_words_for_users():
    assert [describe(v) for v in (dyn(), dyn(V3), dyn(M), Static(None), Static("a"), Static(len))] == [
        "int", "array of float64 with shape (3,)", "array of float64 with shape (3, 4)", "None", "'a'", "len",
    ]  # fmt: skip
    record = seq(dyn(), dyn(FLOAT), kind="record", fields=("a", "b"), cls=Record)
    assert describe(record) == "Record(a: int, b: float)" and describe(listed(dyn())) == "[int]"
    assert describe(seq(dyn())) == "(int,)" and describe(Text((), ())) == "str made at run time"
