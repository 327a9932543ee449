"""Functions and classes that change while a program runs: the next call sees it, as in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest

from myia_relay import relay
from tests.programs.cases import EXECUTORS


def scaled(x, *, k=2.0):
    return x * k


def picked(x, *, ks=[1.0, 2.0]):  # noqa: B006
    return x * ks[0]


@dataclass(frozen=True)
class Base:
    x: float

    def m(self):
        return self.x


@dataclass(frozen=True)
class Record(Base):
    y: float = 1.0

    @property
    def p(self):
        return self.x * 2

    @staticmethod
    def s(x):
        return x

    @classmethod
    def c(cls, x):
        return x

    def __add__(self, other):
        return self.x + other.x


class Pair(NamedTuple):
    a: int
    b: float

    def first(self):
        return self.a


@dataclass(frozen=True)
class Leaf:
    v: float

    def w(self):
        return self.v


@dataclass(frozen=True)
class Node:
    l: Tree
    r: Tree

    def w(self):
        return self.l.w() + self.r.w()


Tree = Leaf | Node
record = Record(3.0)


class Plain:
    def __call__(self, x):
        return x


plain = Plain()


def attribute_of(cls, name, new):
    """(change, undo) of a class's attribute."""
    missing = object()
    old = vars(cls).get(name, missing)
    return lambda: setattr(cls, name, new), lambda: delattr(cls, name) if old is missing else setattr(cls, name, old)


def default_of(function, name, new):
    """(change, undo) of a keyword-only default, in place."""
    old = function.__kwdefaults__[name]
    return lambda: function.__kwdefaults__.update({name: new}), lambda: function.__kwdefaults__.update({name: old})


def defaults_of(function, new):
    """(change, undo) of all keyword-only defaults."""
    old = function.__kwdefaults__
    return lambda: setattr(function, "__kwdefaults__", new), lambda: setattr(function, "__kwdefaults__", old)


def entry_of(entries, new):
    """(change, undo) of a list's first entry."""
    old = entries[0]
    return lambda: entries.__setitem__(0, new), lambda: entries.__setitem__(0, old)


CASES = {
    "keyword default": (lambda x: scaled(x), (3.0,), default_of(scaled, "k", 5.0)),
    "keyword default of another kind": (lambda x: scaled(x), (3.0,), default_of(scaled, "k", 5)),
    "keyword defaults": (lambda x: scaled(x), (3.0,), defaults_of(scaled, {"k": 7.0})),
    "list as a keyword default": (lambda x: picked(x), (3.0,), entry_of(picked.__kwdefaults__["ks"], 5.0)),
    "method": (lambda x: Record(x).m(), (3.0,), attribute_of(Record, "m", lambda self: 9.0)),
    "inherited method": (lambda r: r.m(), (record,), attribute_of(Base, "m", lambda self: 9.0)),
    "property": (lambda r: r.p, (record,), attribute_of(Record, "p", property(lambda self: 9.0))),
    "static method": (lambda r: r.s(1.0), (record,), attribute_of(Record, "s", staticmethod(lambda x: 9.0))),
    "class method": (lambda r: r.c(1.0), (record,), attribute_of(Record, "c", classmethod(lambda cls, x: 9.0))),
    "operator": (lambda r: r + r, (record,), attribute_of(Record, "__add__", lambda self, other: 9.0)),
    "property of a global": (lambda x: record.p + x, (3.0,), attribute_of(Record, "p", property(lambda self: 9.0))),
    "length": (lambda r: 1.0 if r else 2.0, (record,), attribute_of(Record, "__len__", lambda self: 0)),
    "method of a NamedTuple": (lambda p: p.first(), (Pair(1, 2.0),), attribute_of(Pair, "first", lambda self: 9)),
    "truth of a NamedTuple": (
        lambda p: 1 if p else 2,
        (Pair(1, 2.0),),
        attribute_of(Pair, "__bool__", lambda self: False),
    ),
    "method of a tree": (lambda t: t.w(), (Node(Leaf(1.0), Leaf(2.0)),), attribute_of(Leaf, "w", lambda self: 9.0)),
    "method of a tree made here": (
        lambda x: Node(Leaf(x), Leaf(x)).w(),
        (1.0,),
        attribute_of(Leaf, "w", lambda self: 9.0),
    ),
    "call of an object": (lambda x: plain(x), (1.0,), attribute_of(Plain, "__call__", lambda self, x: 9.0)),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", CASES)
def test_a_change_is_seen_by_the_next_call(name, executor):
    function, args, (change, undo) = CASES[name]
    compiled = relay(executor=executor)(function)
    before = function(*args)
    assert [compiled(*args), compiled(*args)] == [before, before]
    change()
    try:
        after = function(*args)
        assert after != before
        got = [compiled(*args), compiled(*args)]
        assert got == [after, after] and type(got[0]) is type(after)
    finally:
        undo()
    assert compiled(*args) == before


def test_nothing_changes_and_nothing_is_compiled_again():
    compiled = relay(lambda x: record.p + Pair(1, x).b + scaled(x))
    assert compiled(1.0) == compiled(1.0) == 9.0
    assert compiled.cache_info().misses == 1
