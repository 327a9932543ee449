"""Special methods of records, and NaN in containers: what random programs found to be answered differently from CPython."""

from __future__ import annotations

import linecache
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import TypeError_, relay
from tests.property.generator.records import Leaf, Node, Tree


@dataclass(frozen=True)
class Plain:
    x: float
    y: float


@dataclass(frozen=True)
class Rich:
    x: float
    y: float

    def __len__(self):
        return int(self.x)

    def __bool__(self):
        return self.x > 5

    def __getitem__(self, k):
        return self.y + k

    def __eq__(self, other):
        return self.x == other.x

    def __radd__(self, other):
        return self.x + other


@dataclass(frozen=True)
class Compared:
    x: float

    def __gt__(self, other):
        return self.x > other

    def __radd__(self, other):
        return other


@dataclass(frozen=True)
class Iterated(Plain):
    def __iter__(self):
        return iter((self.y, self.x, 1.0))


class Named(NamedTuple):
    x: float
    y: float

    def __len__(self):
        return 5

    def __getitem__(self, k):
        return 17


@dataclass(frozen=True, eq=False)
class Same:
    x: float


@dataclass(frozen=True)
class Partly:
    x: float
    y: float = field(compare=False)


def function(text: str, name: str):
    """A function of `v` that returns an expression, with a source."""
    source = f"def h(v):\n    return {text}\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = dict(globals())
    exec(compile(source, name, "exec"), space)
    return space["h"]


@pytest.mark.parametrize("text", [
    *(f"{use.format(c + '(v, 2.0)')}" for c in ("Rich", "Named") for use in (
        "len({})", "bool({})", "1 if {} else 2", "not {}", "{} and 1", "[] or {}", "{}[1]",
    )),
    "bool(Plain(v, 2.0))", "not Plain(0.0, 0.0)", "Rich(v, 1.0) == Rich(v, 2.0)", "Rich(v, 1.0) != Rich(v, 2.0)",
    "1.0 + Rich(v, 2.0)", "np.float64(v) + Compared(v)", "np.int32(v) + Compared(v)", "v + Compared(v)",
    "Named(v, 2.0) + (1,)", "(1,) + Named(v, 2.0)", "Named(v, 2.0) * 2", "Named(v, 2.0) + Named(v, 1.0)",
    "[q for q in Named(v, 2.0)]", "2.0 in Named(v, 2.0)", "Plain(v, 1.0) == Plain(v, 1.0)",
    "(Plain(v, 1.0), 1) == (Plain(v, 2.0), 1)",
])  # fmt: skip
def test_special_methods(text, executor):
    h = function(text, f"<special {text}>")
    got = relay(executor=executor)(h)(3.0)
    assert got == h(3.0) and type(got) is type(h(3.0))


@pytest.mark.parametrize("text, message", [
    ("len(Plain(v, 2.0))", "no len"),
    *((use.format("Plain(v, 2.0)"), "not a sequence") for use in (
        "{}[0]", "[q for q in {}]", "2.0 in {}", "tuple({})", "sum({})", "list(reversed({}))", "list(zip({}, [1]))", "max(*{})",
    )),
    ("[q for q in Iterated(v, 2.0)]", "__iter__ of its own"),
    ("(Rich(v, 1.0),) == (Rich(v, 2.0),)", "__eq__ of its own"),
    ("Rich(v, 1.0) in [Rich(v, 2.0)]", "__eq__ of its own"),
    ("Rich(v, 1.0) + Rich(v, 1.0)", "unsupported operand"),
    ("list(reversed(Named(v, 2.0)))", "of its own"),
    ("Same(v) == Same(v)", "identity"),
    ("Partly(v, 1.0) == Partly(v, 2.0)", "compare=False"),
    ("np.ones(2) + Rich(v, 1.0)", "elements one by one"),
    ("np.float64(v) < Compared(v)", "as an array would"),
    ("np.float64(v) + Rich(v, 1.0)", "as an array would"),
])  # fmt: skip
def test_what_a_record_is_not(text, message):
    with pytest.raises(TypeError_, match=message):
        relay(executor="interpreter")(function(text, f"<refused {text}>"))(3.0)


@pytest.mark.parametrize("text, same", [
    ("max(v, 1.0) in (v,)", False),
    ("(v, 1.0) == (max(v, 1.0), 1.0)", False),
    ("(2.0, v) == (1.0, v * 2)", True),
    ("(2.0, v) < (1.0, v * 2)", True),
    ("v in (1.0, 2.0)", True),
    ("(v, 1) == (v, 1)", True),
    ("[q * v for q in range(int(abs(1.0)) + 1)].count(v)", False),
    ("[q * v for q in range(3)] == [v, v, v]", False),
    ("[1.0, v][:] == [2.0, v * 1]", True),
    ("Leaf(v) == Leaf(v * 2 / 2)", False),
    ("Node(Leaf(v), Leaf(1.0), 1) == Node(Leaf(abs(v)), Leaf(1.0), 1)", False),
    ("Leaf(v) == Leaf(2.0)", True),
])  # fmt: skip
def test_nan_in_containers(text, same, executor):
    """Where objects decide, a ValueError says so; where they do not, CPython's answer."""
    h = function(text, f"<nan {text}>")
    compiled = relay(executor=executor)(h)
    assert compiled(1.5) == h(1.5)
    if same:
        assert compiled(math.nan) == h(math.nan)
    else:
        with pytest.raises(ValueError, match="NaN met NaN"):
            compiled(math.nan)


def text_of_a_union(n):
    u = 1
    for _ in range(n):
        u = 1.5
    text = str(u)
    print(text, f"{u}|{u!r}")
    return u


@pytest.mark.parametrize("n", [0, 1])
def test_text_of_a_union(n, executor, capsys):
    assert relay(executor=executor)(text_of_a_union)(n) == text_of_a_union(n)
    out = capsys.readouterr().out
    assert out and out[: len(out) // 2] * 2 == out


def without_a_result(t: Tree, s):
    match t:
        case Node(left=left):
            return without_a_result(left, 1.5)


def captured_late(x, n, p, y):
    """Branches that wait for a recursion are completed after those around them."""
    if x:
        without_a_result(Leaf(0.0), y)
    elif p[0]:
        pass
    elif n:
        pass
    elif sum([x for _ in (without_a_result(Leaf(x), y),)], 0.0):
        pass
    else:
        return p[1]
    return None


@pytest.mark.parametrize("args", [(3.0, 5, (False, np.float32(-1.25)), 0.1), (0.0, 0, (False, np.float32(-1.25)), 0.1)])
def test_captured_late(args, executor):
    assert relay(executor=executor)(captured_late)(*args) == captured_late(*args)
