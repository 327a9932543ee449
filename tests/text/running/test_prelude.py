"""Every function of the prelude, called with values, beside plain Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from myia_relay import relay

from .program import Value, agree, made, values

TEXT = """
def @t_id(%x: int32) { (@id(%x), @id(Some(%x))) }
def @t_compose(%x: int32) { @compose(fn (%y: int32) { %y * 2 }, fn (%y: int32) { %y + 3 })(%x) }
def @t_flip(%x: int32, %y: int32) { @flip(fn (%a: int32, %b: int32) { %a - %b })(%x, %y) }
def @t_iterate(%x: int32, %n: int32) { @iterate(fn (%y: int32) { %y * 3 + 1 }, %n)(%x) }

def @t_is_some(%o: Option[int32]) { @is_some(%o) }
def @t_get_or(%o: Option[int32], %x: int32) { @get_or(%o, %x) }
def @t_map_option(%o: Option[int32]) { @map_option(fn (%x: int32) { cast(%x, dtype="float32") / 2f }, %o) }

def @t_hd(%l: List[int32]) { @hd(%l) }
def @t_tl(%l: List[int32]) { @tl(%l) }
def @t_nth(%l: List[int32], %n: int32) { @nth(%l, %n) }
def @t_length(%l: List[int32]) { @length(%l) }
def @t_update(%l: List[int32], %n: int32, %v: int32) { @update(%l, %n, %v) }
def @t_map(%l: List[int32], %k: int32) { @map(fn (%x: int32) { %x * %k > 2 }, %l) }
def @t_foldl(%l: List[int32]) { @foldl(fn (%s: int32, %x: int32) { %s * 10 - %x }, 1, %l) }
def @t_foldr(%l: List[int32]) { @foldr(fn (%x: int32, %s: int32) { %s * 10 - %x }, 1, %l) }
def @t_foldr1(%l: List[int32]) { @foldr1(fn (%x: int32, %s: int32) { %x - %s }, %l) }
def @t_sum(%l: List[int32]) { @sum(%l) }
def @t_concat(%a: List[int32], %b: List[int32]) { @concat(%a, %b) }
def @t_append(%a: List[int32], %b: List[int32]) { @append(%a, %b) }
def @t_filter(%l: List[int32], %k: int32) { @filter(fn (%x: int32) { %x > %k }, %l) }
def @t_zip(%a: List[int32], %b: List[int32]) { @zip(%a, %b) }
def @t_unzip(%l: List[(int32, int32)]) { @unzip(%l) }
def @t_rev(%l: List[int32]) { @rev(%l) }
def @t_reverse(%l: List[int32]) { @reverse(%l) }
def @t_map_accuml(%l: List[int32]) { @map_accuml(fn (%s: int32, %x: int32) { (%s * 2 + %x, %s - %x) }, 1, %l) }
def @t_map_accumr(%l: List[int32]) { @map_accumr(fn (%s: int32, %x: int32) { (%s * 2 + %x, %s - %x) }, 1, %l) }
def @count(%s: int32) -> Option[(int32, int32)] { if (%s > 0) { Some((%s - 1, %s * %s)) } else { None } }
def @t_unfoldr(%s: int32) { @unfoldr(@count, %s) }
def @t_unfoldl(%s: int32) { @unfoldl(@count, %s) }

def @t_tmap(%t: Tree[int32], %k: int32) { @tmap(fn (%x: int32) { %x * %k }, %t) }
def @t_tfold(%t: Tree[int32]) { @tfold(fn (%x: int32, %l: List[int32]) { %x - 2 * @sum(%l) }, %t) }
def @t_size(%t: Tree[int32]) { @size(%t) }

def @g_iterate(%x: float32) { @iterate(fn (%y: float32) { %y * %y }, 3)(%x) }
def @g_foldl(%x: float32, %a: float32, %b: float32) {
  @foldl(fn (%s: float32, %w: float32) { %s * %w + %x }, %x, Cons(%a, Cons(%b, Nil)))
}
def @g_map(%x: float32) {
  @foldr(fn (%a: float32, %b: float32) { %a * %b }, 1f,
    @map(fn (%y: float32) { %y * %x }, Cons(%x, Cons(2f, Nil))))
}
def @g_tree(%x: float32) {
  @tfold(fn (%a: float32, %l: List[float32]) { @foldl(fn (%s: float32, %y: float32) { %s * %y }, %a, %l) },
    @tmap(fn (%y: float32) { %y + %x }, Rose(%x, Cons(Rose(1f, Nil), Cons(Rose(%x, Nil), Nil)))))
}
"""

LISTS = ((), (4,), (3, -1, 4, 1, -5))
FULL = LISTS[1:]
TREES = ((5, ()), (2, ((3, ((7, ()),)), (-4, ()), (1, ((6, ()), (8, ()))))))


def rose(tree: tuple, f: Callable[[int], int] = lambda x: x) -> Value:
    """A `Tree` of nested pairs, with a function applied to its values."""
    return Value("Rose", f(tree[0]), values(*[rose(child, f) for child in tree[1]]))


def fold(tree: tuple, f: Callable[[int, list], Any]) -> Any:
    """The results of a function from the leaves of nested pairs up."""
    return f(tree[0], [fold(child, f) for child in tree[1]])


def accumulated(entries: tuple, *, right: bool) -> tuple:
    """What `map_accuml` and `map_accumr` give for the function of the test."""
    state, out = 1, []
    for x in reversed(entries) if right else entries:
        out.append(state - x)
        state = state * 2 + x
    return state, values(*(reversed(out) if right else out))


def option(x: Any) -> Value:
    """An `Option`."""
    return Value("None") if x is None else Value("Some", x)


def replaced(entries: tuple, n: int, v: int) -> tuple:
    """A tuple with another element at a position."""
    return (*entries[:n], v, *entries[n + 1 :])


CASES: dict[str, list[tuple[tuple, Any]]] = {
    "id": [((7,), (7, option(7)))],
    "compose": [((5,), (5 + 3) * 2)],
    "flip": [((5, 3), 3 - 5)],
    "iterate": [((2, n), functools.reduce(lambda x, _: x * 3 + 1, range(n), 2)) for n in (0, 1, 4)],
    "is_some": [((option(x),), x is not None) for x in (3, None)],
    "get_or": [((option(x), 9), 9 if x is None else x) for x in (3, None)],
    "map_option": [((option(x),), option(None if x is None else x / 2)) for x in (3, None)],
    "hd": [((values(*e),), e[0]) for e in FULL],
    "tl": [((values(*e),), values(*e[1:])) for e in FULL],
    "nth": [((values(*e), n), e[n]) for e in FULL for n in (0, len(e) - 1)],
    "length": [((values(*e),), len(e)) for e in LISTS],
    "update": [((values(*e), n, 9), values(*replaced(e, n, 9))) for e in FULL for n in (0, len(e) - 1)],
    "map": [((values(*e), 2), values(*[x * 2 > 2 for x in e])) for e in LISTS],
    "foldl": [((values(*e),), functools.reduce(lambda s, x: s * 10 - x, e, 1)) for e in LISTS],
    "foldr": [((values(*e),), functools.reduce(lambda s, x: s * 10 - x, e[::-1], 1)) for e in LISTS],
    "foldr1": [((values(*e),), functools.reduce(lambda s, x: x - s, e[::-1])) for e in FULL],
    "sum": [((values(*e),), sum(e)) for e in LISTS],
    "concat": [((values(*a), values(*b)), values(*a, *b)) for a, b in zip(LISTS, LISTS[::-1], strict=True)],
    "append": [((values(*a), values(*b)), values(*a, *b)) for a, b in zip(LISTS, LISTS[::-1], strict=True)],
    "filter": [((values(*e), 2), values(*[x for x in e if x > 2])) for e in LISTS],
    "zip": [((values(*a), values(*b)), values(*zip(a, b, strict=False))) for a in LISTS for b in LISTS[1:]],
    "unzip": [((values(*zip(e, e[::-1], strict=True)),), (values(*e), values(*e[::-1]))) for e in LISTS],
    "rev": [((values(*e),), values(*e[::-1])) for e in LISTS],
    "reverse": [((values(*e),), values(*e[::-1])) for e in LISTS],
    "map_accuml": [((values(*e),), accumulated(e, right=False)) for e in LISTS],
    "map_accumr": [((values(*e),), accumulated(e, right=True)) for e in LISTS],
    "unfoldr": [((n,), values(*[s * s for s in range(n, 0, -1)])) for n in (0, 4)],
    "unfoldl": [((n,), values(*[s * s for s in range(1, n + 1)])) for n in (0, 4)],
    "tmap": [((rose(t), 3), rose(t, lambda x: x * 3)) for t in TREES],
    "tfold": [((rose(t),), fold(t, lambda x, e: x - 2 * sum(e))) for t in TREES],
    "size": [((rose(t),), fold(t, lambda _, e: 1 + sum(e))) for t in TREES],
}
# By the argument x; the values of the functions stand beside them.
GRADIENTS = {
    "g_iterate": ((1.1,), 8 * 1.1**7),  # x ** 8
    "g_foldl": ((0.5, 2.0, 3.0), 2.0 * 3.0 + 3.0 + 1.0),  # x a b + x b + x
    "g_map": ((1.5,), 6 * 1.5**2),  # 2 x ** 3
    "g_tree": ((1.5,), 12 * 1.5**2 + 8 * 1.5),  # 2 x (1 + x) 2 x
}
EXECUTORS = ("interpreter", "native")


@pytest.fixture(scope="module", params=EXECUTORS)
def module(request: pytest.FixtureRequest) -> Any:
    """The prelude and the functions of this test."""
    return relay.parse_text(TEXT, prelude=True).with_executor(request.param)


def test_leaves_out_no_function():
    prelude = relay.parse_text("", prelude=True)
    defined = {line.partition("[")[0].partition("(")[0][5:] for line in str(prelude).splitlines() if line[:4] == "def "}
    assert len(defined) > 25
    assert defined == set(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sampled(5)
def test_gives_what_python_gives(module, name):
    for args, want in CASES[name]:
        got = module[f"t_{name}"](*[made(module, a) for a in args])
        assert agree(got, want), (args, got, want)


@pytest.mark.parametrize("name", ["hd", "tl", "foldr1"])
def test_refuses_the_empty_list(module, name):
    with pytest.raises(ValueError, match=r"match"):
        module[f"t_{name}"](made(module, values()))


@pytest.mark.parametrize("name", ["nth", "update"])
def test_refuses_a_position_behind_the_end(module, name):
    args = (made(module, values(1, 2)), 2, 9)[: 2 if name == "nth" else 3]
    with pytest.raises(ValueError, match=r"match"):
        module[f"t_{name}"](*args)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", GRADIENTS)
def test_is_differentiated(module, name):
    args, want = GRADIENTS[name]
    got = relay.grad(module[name], 0)(*[np.float32(a) for a in args])
    assert agree(got, float(want)), (got, want)
