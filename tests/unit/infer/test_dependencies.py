"""Free names that compiled code rests on: what is a change of each, and what is none."""

from __future__ import annotations

import abc
import tempfile
import types
import warnings
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pytest

from myia_relay import Float, Tensor, create_model, linear, relay_model
from myia_relay.abstract.types import Array
from myia_relay.infer.engine.dependencies import (
    Dependency,
    Hidden,
    checker,
    classes_of,
    code_of,
    content,
    members,
    refuse_nesting,
    same,
    type_of_hidden,
)
from myia_relay.utils.errors import TypeError_


def test_what_is_the_same():
    nan = float("nan")
    assert same(1, 1) and same("a", "a") and same(nan, float("nan")) and same(np.float32(1), np.float32(1))
    assert same((1, (2.0,)), (1, (2.0,))) and same(None, None) and same(True, True)
    for a, b in [
        (0.0, -0.0),
        (1, True),
        (1, 1.0),
        (1, 2),
        ("a", "b"),
        ((1,), (1, 2)),
        ((1,), (2,)),
        ((1, 2), (1, 3)),
        ((1, 2), (3, 2)),
        ([1], [1]),
        (1.0, np.float64(1)),
    ]:
        assert not same(a, b)
    f = types.MethodType(len, [])
    assert same(f, f) and not same([].append, [].append)

    class A:
        def m(self):
            pass

        def n(self):
            pass

    a = A()
    assert same(a.m, a.m) and not same(a.m, A().m) and not same(a.m, a.n)


@dataclass
class Record:
    a: int
    b: float = 2.0


def test_contents():
    assert content([1, 2]) == (1, 2) and content({"a": 1}) == ("a", 1) and content(Record(1)) == (1, 2.0)
    assert content((1, 2)) is None and content(3) is None and content({"a": 1}) != content({"b": 1})


def test_code():
    def f(x, y=1, *, z=2):
        return x

    before = code_of(f)
    assert same(before, code_of(f))
    f.__defaults__ = (5,)
    assert not same(before, code_of(f))
    f.__defaults__ = before[1]
    f.__kwdefaults__ = dict(f.__kwdefaults__)
    assert same(before, code_of(f))
    f.__kwdefaults__["z"] = 7
    assert not same(before, code_of(f))
    f.__kwdefaults__ = {"w": 2}
    assert not same(before, code_of(f))


T = TypeVar("T")


class Base(abc.ABC, Generic[T]):
    @abc.abstractmethod
    def area(self): ...


class Square(Base[int]):
    """A class of records, with a base."""

    side = 2

    def area(self):
        return self.side**2


class Point(NamedTuple):
    x: int


def test_members_are_what_is_written_in_a_class():
    assert classes_of(Square) == [Square, Base] and classes_of(Point) == [Point]
    before = members(Square)
    assert same(before, members(Square))
    Square.__doc__, Square._abc_note, Square.__relay_note__ = "", 1, 2
    assert Square.__annotations__ == {}
    abc.update_abstractmethods(Square)
    assert same(before, members(Square))
    for name, value in (("side", 3), ("other", 3), ("area", lambda self: 0)):
        old = vars(Square).get(name)
        setattr(Square, name, value)
        assert not same(before, members(Square))
        delattr(Square, name) if old is None else setattr(Square, name, old)


@pytest.mark.parametrize("when", ["before the checker", "after"])
def test_a_class_that_is_changed(when):
    class Record:
        def area(self):
            return 1

    dependency = Dependency("members", Record, "", members(Record))
    if when == "after":
        run = checker([dependency], 0, lambda: "run", lambda: "again", [])
        assert run() == "run" and dependency.holds()
    Record.area = lambda self: 2
    if when != "after":
        run = checker([dependency], 0, lambda: "run", lambda: "again", [])
    assert run() == "again" and not dependency.holds()


def test_defaults_by_keyword():
    def f(*, k=1):
        return k

    def g():
        return 1

    for function, name in ((f, "k"), (g, "unused")):
        dependency = Dependency("code", function, "", code_of(function))
        run = checker([dependency], 0, lambda: "run", lambda: "again", [])
        assert run() == "run"
        function.__kwdefaults__ = {name: 2}
        assert run() == ("again" if function is f else "run")


def test_a_call_whose_names_are_as_they_were_asks_no_dependency(monkeypatch):
    """Of a call that takes a microsecond: each name is compared by itself."""
    place, cell = make(), types.CellType(1)
    place["a b"], place["d"] = 1, 2
    setattr(place["record"], "a b", 3)

    def f(x=1):
        return 1

    f.__kwdefaults__ = {"unused": 1}
    quick = [
        *(d for k, d in dependencies_of(place).items() if k not in ("content", "array")),
        *(Dependency("cell", cell, "", 1), Dependency("members", Record, "", members(Record))),
        *(Dependency("dict", place, "a b", 1), Dependency("code", f, "", code_of(f))),
    ]
    slow = Dependency("attribute", place["record"], "a b", 3)
    runs = [checker(found, 1, lambda x: "run", lambda x: "again", []) for found in (quick, [slow])]
    asked = []
    monkeypatch.setattr(Dependency, "holds", lambda self: asked.append(self) or True)
    assert runs[0](1) == runs[1](1) == "run" and asked == [slow]


def test_one_that_does_not_hold_is_enough():
    place = {"x": 2.5, "y": 3.5}
    for changed in place:
        found = [Dependency("dict", place, name, value) for name, value in place.items()]
        run = checker(found, 0, lambda: "run", lambda: "again", [])
        assert run() == "run"
        place[changed] += 1
        assert run() == "again"


def test_a_call_that_rests_on_nothing():
    assert checker([], 1, lambda x: ("run", x), lambda x: "again", [])(3) == ("run", 3)


def test_arrays_that_are_passed_in():
    array = np.zeros((2, 3))
    assert type_of_hidden(array) == Array("float64", (2, 3)) and type_of_hidden(3) is None
    assert type_of_hidden(np.ma.array(array)) is None
    with tempfile.NamedTemporaryFile() as file:
        mapped = np.memmap(file.name, np.float32, "w+", shape=(3,))
        assert type_of_hidden(mapped) == Array("float32", (3,))
    dependency = Dependency("dict", {"a": array}, "a", array, type_of_hidden(array))
    run = checker([dependency], 0, lambda: "run", lambda: "again", [])
    assert dependency.holds() and run() == "run"
    with warnings.catch_warnings():  # NumPy 2.5 deprecates it
        warnings.simplefilter("ignore", DeprecationWarning)
        array.shape = (3, 2)  # the same object
    assert not dependency.holds() and run() == "again"


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


def test_trees_and_models_are_passed_in_too():
    tree = Node(Leaf(1.0), Leaf(2.0))
    assert type_of_hidden(tree) == type_of_hidden(Leaf(3.0)) and type_of_hidden(tree) is not None

    @relay_model
    def model(x: Tensor[Float, (1, 2)]):
        return linear(x, num_hidden=3)

    made = create_model(model)
    assert type_of_hidden(made) == made.__relay_ref__() and type_of_hidden(made) is not None


def test_containers_that_contain_themselves():
    place: dict = {"xs": [1]}
    dependency = Dependency("dict", place, "xs", place["xs"])
    refuse_nesting(place["xs"], dependency)
    place["xs"].append(place["xs"])
    with pytest.raises(TypeError_, match="'xs' cannot be used"):
        refuse_nesting(place["xs"], dependency)
    refuse_nesting(place["xs"], None)  # what is inside of one has been looked at


def dependencies_of(place):
    return {
        "dict": Dependency("dict", place, "x", place["x"]),
        "content": Dependency("content", place["xs"], "", content(place["xs"])),
        "absent": Dependency("absent", place, "nothing", True),
        "attribute": Dependency("attribute", place["record"], "a", place["record"].a),
        "code": Dependency("code", place["f"], "", code_of(place["f"])),
        "array": Dependency("dict", place, "array", place["array"], type_of_hidden(place["array"])),
    }


def make():
    def f():
        return 1

    return {"x": 3, "xs": [1, 2], "record": Record(1), "f": f, "array": np.zeros(3)}


def _replace_code(place):
    place["f"].__code__ = (lambda: 2).__code__


CHANGES = {
    "dict": lambda p: p.update(x=4),
    "content": lambda p: p["xs"].append(3),
    "absent": lambda p: p.update(nothing=1),
    "attribute": lambda p: setattr(p["record"], "a", 5),
    "code": _replace_code,
    "array": lambda p: p.update(array=np.zeros(4)),
}
NO_CHANGES = {
    "dict": lambda p: p.update(y=4),
    "content": lambda p: p.update(xs=[9]),  # the list that was read is as it was
    "absent": lambda p: p.update(other=1),
    "attribute": lambda p: setattr(p["record"], "b", 5),
    "code": lambda p: p.update(f=None),
    "array": lambda p: p.update(array=np.ones(3)),  # passed in anew
}


@pytest.mark.parametrize("kind", CHANGES)
def test_each_kind(kind):
    for change, holds in ((NO_CHANGES[kind], True), (CHANGES[kind], False)):
        place = make()
        dependency = dependencies_of(place)[kind]
        run = checker([dependency], 1, lambda x: ("run", x), lambda x: ("again", x), [])
        assert dependency.holds() and run(1) == ("run", 1)
        change(place)
        assert dependency.holds() == holds and run(2) == ("run" if holds else "again", 2)


def test_a_name_that_is_gone():
    place = make()
    for kind in ("dict", "array"):
        dependency = dependencies_of(place)[kind]
        run = checker([dependency], 0, lambda: "run", lambda: "again", [])
        kept = place.pop(dependency.name)
        assert not dependency.holds() and run() == "again"
        place[dependency.name] = kept

    empty = Dependency("cell", types.CellType(), "", 1)
    assert not empty.holds() and checker([empty], 0, lambda: "run", lambda: "again", [])() == "again"


def test_an_equal_value_will_do():
    place = {"x": 2.5, "y": (1, 2)}
    found = [Dependency("dict", place, "x", 2.5), Dependency("dict", place, "y", (1, 2))]
    run = checker(found, 2, lambda a, b: a + b, lambda a, b: None, [])
    place.update(x=float("2.5"), y=(1, int("2")))
    assert run(1, 2) == 3


def test_ints_beyond_64_bits_go_the_other_way():
    run = checker([], 2, lambda a, b: "run", lambda a, b: "again", [1])
    assert run(2**70, 2**63 - 1) == "run" and run(0, -(2**63)) == "run"
    assert run(0, 2**63) == "again" and run(0, -(2**63) - 1) == "again"


def test_hidden_arguments():
    place = {"array": np.zeros(3)}
    free = Hidden(Dependency("dict", place, "array", place["array"], Array("float64", (3,))), None)
    assert free.fetch([]) is place["array"]
    place["array"] = np.ones(3)
    assert free.fetch([]) is place["array"]
    assert Hidden(None, "the object").fetch([1]) == "the object" and Hidden(None, None, len).fetch([1, 2]) == 2
