"""The way from a function to the places of its dependencies: each is found, and found again."""

from __future__ import annotations

import builtins
import collections
import dataclasses
import functools
from typing import NamedTuple

import pytest

from myia_relay import grad, relay
from myia_relay.backend.native.format import Unportable
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
    data = [MARK]


class Slotted:
    __slots__ = ()


def around(inner):
    def function():
        return inner

    return function


def plain(x):
    return x


def unbound():
    def function():
        return later

    return function
    later = 1


@relay.register_op(infer=lambda x: x, vjp=lambda x, y, g: g, batch=lambda flags, x: x, lower=lambda te, x: x)
def operator_(x):
    return x


@relay.register_op(elementwise=True, dtype=lambda x: x)
def with_dtype(x):
    return x


@relay.relay_model
def model(x):
    return x


CIRCLE: list = [1]
CIRCLE += [CIRCLE, MARK]

PLACES = [
    (CIRCLE, MARK),
    (model, model.__relay_model__),
    (operator_, operator_.function),
    (operator_, operator_.relation),
    (operator_, operator_.vjp_rule),
    (operator_, operator_.batch),
    (operator_, operator_.lower),
    (with_dtype, with_dtype.dtype),
    (unbound(), unbound.__globals__),
    (around(lambda: MARK), globals()),
    (relay(grad(plain)), plain),
    (grad(relay(plain)), plain),
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
    steps = [value for _, value in parts(root) if value is not None]
    assert len(steps) == len({id(s) for s in steps})


# What names and keys a path cannot have, or what is read by a dependency of its own.
NO_PLACES = [
    (plain, MARK),
    (pytest, pytest.mark),
    ({("a",): MARK}, MARK),
    ({1: MARK}, MARK),
    (Derived, Derived.data),
    (collections.OrderedDict(a=MARK), MARK),
    (unbound(), MARK),
]


@pytest.mark.parametrize("k", range(len(NO_PLACES)))
def test_there_is_no_path(k):
    root, place = NO_PLACES[k]
    with pytest.raises(Unportable):
        Paths([None, root]).path(place)


def test_builtins_are_found_everywhere():
    path = Paths([]).path(vars(builtins))
    assert Paths.of_values([]).place(path) is vars(builtins)


def test_what_is_found_on_the_way_leads_on():
    roots = [plain]
    found, again = Paths(roots), Paths.of_values(roots)
    for paths in (found, again):
        paths.path(globals()) if paths is found else None
        paths.add(around(MARK)) if paths is found else paths.values.append(around(MARK))
    path = found.path(MARK)
    assert path[0] == 1 and again.place(path) is MARK
    assert roots == [plain]
