"""Lists of Python objects that machine code makes of blocks: the objects that Python makes of them, each held once."""

import gc
import sys
from typing import NamedTuple

import pytest

from myia_relay import relay
from myia_relay.abstract import reading, words
from myia_relay.backend.native import building, library, lists
from tests.programs.compare import differences


class Edge(NamedTuple):
    to: int
    weight: float


@pytest.fixture(scope="module", autouse=True)
def builder():
    """Machine code makes lists, whatever other tests compiled before."""
    if not (library.supported() and reading.supported()):
        pytest.skip("objects are not made by machine code on this system")
    if not building.in_use():
        from myia_relay.backend.tvm.host.objects import compiled

        code = library.Library(compiled(), [])
        assert building.use(code.address(building.FUNCTION), code.address(building.RELEASE), code)


def numbers(n):
    return [k * 0.5 for k in range(n)], [-(2**62) * k for k in range(min(n, 3))], [k % 3 == 0 for k in range(n)]


def pairs(n):
    return [(k, k / 3) for k in range(n)]


def nested(n):
    return [((k, None), (k > 2, (k / 7,))) for k in range(n)]


def edges(n):
    return [Edge(k + 1, 2.0 * k) for k in range(n)]


def dicts(n):
    return [{"b": k, "a": {"x": k > 1, "y": None}} for k in range(n)]


def ragged(n):
    return [[float(i) for i in range(k % 4)] for k in range(n)]


def adjacent(n):
    return [[(i, [k * 1.0] * i) for i in range(k % 3)] for k in range(n)]


def fixed(n):
    return [[k, k + 1] for k in range(n)], [[[k], [0]] for k in range(n)]


def nothing(n):
    return [None for _ in range(n)]


PROGRAMS = [numbers, pairs, nested, edges, dicts, ragged, adjacent, fixed, nothing]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_what_is_made_is_what_python_makes(program):
    f = relay(program)
    for n in (0, 1, 40):
        assert not differences(f(n), program(n)) and not differences(f(n), program(n))


def test_each_object_is_held_once():
    f = relay(lambda n: [({"key": k > 3, "other": None}, Edge(k, k * 1.5), [k * 1000.5]) for k in range(n)])
    f(20)
    key = next(iter(f(1)[0][0]))
    assert sys.getrefcount(f(20)) == sys.getrefcount([])
    row = f(20)[7]
    assert [sys.getrefcount(x) for x in row] == [sys.getrefcount(x) for x in ({}, Edge(1, 2.0), [])]
    before = [sys.getrefcount(x) for x in (True, False, None, Edge, key)]
    gc.collect()
    objects = len(gc.get_objects())
    for _ in range(500):
        f(20)
    gc.collect()
    after = [sys.getrefcount(x) for x in (True, False, None, Edge, key)]
    assert all(abs(a - b) < 1000 for a, b in zip(before, after, strict=True))  # of 10,000 that were made
    assert len(gc.get_objects()) - objects < 1000


def test_both_ways_make_the_same(monkeypatch):
    found = [relay(program)(20) for program in PROGRAMS]
    monkeypatch.setattr(lists.ListReader, "__call__", lists.ListReader.made)
    for program, one in zip(PROGRAMS, found, strict=True):
        assert not differences(relay(program)(20), one)


def test_strings_that_were_forgotten_are_asked_for(monkeypatch):
    """Codes that are no longer in the table that machine code looks into, but remembered otherwise."""
    f = relay(lambda names: [name for name in names if name != "b"])
    f(["a", "b"])
    for text in ("a constant elsewhere", "another"):
        monkeypatch.setitem(words.constants, words.code_of(text), text)
        words.CODES[text] = words.code_of(text)
        words.TEXTS.pop(words.CODES[text], None)
    for _ in range(3):
        assert f(["a constant elsewhere", "b", "another"]) == ["a constant elsewhere", "another"]
