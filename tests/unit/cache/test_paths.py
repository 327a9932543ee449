"""The way from a function to the places of its dependencies: each is found, and found again."""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import pytest

from myia_relay import grad, relay
from myia_relay.cache.paths import Paths, parts

MARK = {"mark": 1}


@dataclasses.dataclass
class Holder:
    inner: object
    missing: object = dataclasses.field(init=False)


class Pair(NamedTuple):
    first: object
    second: object


class Base:
    def method(self):
        return MARK


class Derived(Base):
    @property
    def value(self):
        return MARK

    @staticmethod
    def fixed():
        return MARK

    @classmethod
    def own(cls):
        return MARK

    ours = relay(Base.method)


class Slotted:
    __slots__ = ()


def around(inner):
    def function():
        return inner

    return function


def plain(x):
    return x


PLACES = [
    (around(MARK), MARK),
    (Holder(MARK), MARK),
    (Holder(MARK), Holder),
    (Pair(1, MARK), MARK),
    (Pair(1, 2), Pair),
    ([1, (MARK,)], MARK),
    ({"a": {"b": MARK}}, MARK),
    (functools.partial(plain, MARK), MARK),
    (functools.partial(plain, MARK), plain),
    (functools.partial(plain, x=MARK), MARK),
    (functools.lru_cache(plain), plain),
    (Holder(MARK).__eq__, Holder.__eq__),
    (Derived, Base),
    (Derived, Base.method),
    (Derived, vars(Derived)["value"].fget),
    (Derived, vars(Derived)["fixed"].__func__),
    (Derived, vars(Derived)["own"].__func__),
    (Derived, Derived.ours),
    (relay(plain), plain),
    (relay(grad(plain)), plain),
    (plain, globals()),
    (pytest, vars(pytest)),
]


@pytest.mark.parametrize("k", range(len(PLACES)))
def test_places_are_found_again(k):
    root, place = PLACES[k]
    path = Paths([None, root]).path(place)
    assert path[0] == 1 and len(path) > 1
    assert Paths.of_values([None, root]).place(path) is place
    steps = [value for _, value in parts(root)]
    assert len(steps) == len({id(s) for s in steps})
