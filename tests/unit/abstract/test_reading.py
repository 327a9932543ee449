"""Lists of Python objects read by machine code: the columns that `disassembly` takes out, and nothing where anything differs."""

import random
import sys
import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.abstract import disassembly, reading, words
from myia_relay.abstract.types import List, NoneT, Struct
from myia_relay.backend.native import library
from myia_relay.infer.arguments import columns
from myia_relay.utils.errors import InternalError


class Edge(NamedTuple):
    to: int
    weight: float


@dataclass(frozen=True)
class Point:
    x: float
    here: bool


@dataclass(frozen=True, slots=True)
class Slim:
    n: int
    rest: None


@dataclass(frozen=True)
class Computed:
    x: float

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


@pytest.fixture(scope="module", autouse=True)
def reader():
    """Machine code reads lists, whatever other tests compiled before."""
    if not (library.supported() and reading.supported()):
        pytest.skip("objects are not read by machine code on this system")
    if not reading.in_use():
        from myia_relay.backend.tvm.host.objects import compiled

        code = library.Library(compiled(), [])
        assert reading.use(code.address(reading.FUNCTION), code)


def taken(values: list) -> tuple | None:
    """The type and the columns that functions of CPython find."""
    column = disassembly.take_apart([values])
    found: list[np.ndarray] = []
    return (column.type, found) if columns._flatten(column, found) else None  # pyright: ignore[reportArgumentType]


SAMPLES = {
    "pairs": [(k, k / 3) for k in range(-50, 50)],
    "one": [(1, 2.0)],
    "nested tuples": [(k, (float(k), (k % 2 == 0, None))) for k in range(30)],
    "rows": [[0.5, 1.5, k / 7] for k in range(40)],
    "ragged rows": [[2**k] * (k % 4) for k in range(63)],
    "three levels": [[[k] * i for i in range(k % 3)] for k in range(40)],
    "adjacency": [[(i, i / 2) for i in range(k % 5)] for k in range(33)],
    "dicts": [{"a": k, "b": -0.0, "c": k > 3} for k in range(20)],
    "dicts of lists": [{"xs": [float(k)] * (k % 3), "n": k} for k in range(20)],
    "named tuples": [Edge(k, k * 1.5) for k in range(20)],
    "dataclasses": [Point(k / 9, k % 3 == 1) for k in range(20)],
    "slots": [Slim(k, None) for k in range(20)],
    "rows of records": [[Edge(i, 0.5)] * (i % 3) for i in range(20)],
    "ints of all sizes": [(sign * ((1 << k) - d),) for k in range(63) for d in (0, 1) for sign in (1, -1)],
    "floats of all kinds": [(v,) for v in (0.0, -0.0, float("inf"), 5e-324, sys.float_info.max, -1.5)],
}


@pytest.mark.parametrize("values", SAMPLES.values(), ids=SAMPLES)
def test_the_columns_are_those_of_the_other_way(values):
    wanted = taken(values)
    assert wanted is not None
    reading.note(wanted[0], values)
    found = reading.read(values)
    assert found is not None
    assert found[0] == wanted[0]
    assert [c.dtype for c in found[1]] == [c.dtype for c in wanted[1]]
    for have, want in zip(found[1], wanted[1], strict=True):
        assert have.tobytes() == np.ascontiguousarray(want).tobytes()


MIXED = {
    "numbers of two classes": [k if k % 3 else k / 7 for k in range(40)],
    "numbers of three classes": [(k, k / 7, k % 2 == 0)[k % 3] for k in range(40)],
    "None": [{"a": None if k % 3 else k * 1.5, "b": (k, None if k % 2 else 2**40)} for k in range(40)],
    "a tuple or None": [None if k % 3 else (k, k > 5, f"word {k}") for k in range(40)],
    "a list or None": [None if k % 4 == 1 else [k * 1.5] * (k % 3) for k in range(40)],
    "a record or None": [(k, None if k % 2 else Edge(k, 0.5)) for k in range(40)],
    "strings or None": [None if k % 2 else f"w{k}" for k in range(40)],
    "rows of mixed entries": [[(1, 2.5, None)[(k + i) % 3] for i in range(k % 5)] for k in range(40)],
}


def differences(t, mine, theirs, rows):
    """Where columns differ, except where a value is another option: what stands there is not looked at."""
    if isinstance(t, Struct) and t.kind == "union":
        which = next(mine)
        assert which[rows].tolist() == next(theirs)[rows].tolist()
        for k, option in enumerate(t.elems[1:]):
            differences(option, mine, theirs, rows & (which == k))
    elif isinstance(t, Struct):
        for part in t.elems:
            differences(part, mine, theirs, rows)
    elif isinstance(t, List):
        lengths = next(mine)
        assert lengths[rows].tolist() == next(theirs)[rows].tolist()
        differences(t.elem, mine, theirs, np.repeat(rows, lengths))
    elif not isinstance(t, NoneT):
        assert next(mine)[rows].tolist() == next(theirs)[rows].tolist()


@pytest.mark.parametrize("values", MIXED.values(), ids=MIXED)
def test_entries_of_several_types(values):
    wanted = taken(values)
    assert wanted is not None
    reading._known.clear()
    reading.note(wanted[0], values)
    found = reading.read(values)
    assert found is not None and found[0] == wanted[0]
    differences(wanted[0], iter(found[1]), iter(wanted[1]), np.array([True]))
    assert reading.read([*values, b"something else"]) is None
    for plain in ([v for v in values if v is not None], [None] * 20, [values[0]] * 40, values[:5]):
        try:
            other = taken(plain)  # where an option is missing, the type is another one
        except disassembly.Uneven:
            other = None
        have = reading.read(plain)
        assert have is None or other is not None and have[0] == other[0]


def test_strings_have_the_codes_that_python_gives_them():
    texts = [
        "",
        *("a" * k for k in range(1, 40)),
        *(chr(200 + 90 * k) * (k % 11) for k in range(300)),
        "\0",
        "a\0",
        "\U0001f600",
    ]
    values = [("known", 1)]
    wanted = taken(values)
    assert wanted is not None
    reading.note(wanted[0], values)
    for text in texts:
        words.CODES.pop(text, None)
    found = reading.read([(text, 1) for text in texts])
    assert found is not None
    assert found[1][1].tolist() == [words.code_of(text) for text in texts] == [words.CODES[text] for text in texts]
    assert [words.text_of(code) for code in found[1][1]] == texts


def test_strings_that_the_other_way_must_look_at(monkeypatch):
    values = [("known", 1)]
    wanted = taken(values)
    assert wanted is not None
    reading.note(wanted[0], values)
    words.CODES.pop("\ud800", None)
    assert reading.read([("\ud800", 1)]) is None  # which has no UTF-8
    assert reading.read([("one of a kind", 1)]) is not None
    monkeypatch.setitem(words.TEXTS, words.code_of("another of its kind"), "one of a kind")
    assert reading.read([("another of its kind", 1)]) is None
    with pytest.raises(InternalError, match="have the same code"):
        taken([("another of its kind", 1)])


def test_columns_that_are_not_read():
    values = [{"name": f"n{k}", "x": k * 0.5, "row": [k] * (k % 3)} for k in range(40)]
    wanted = taken(values)
    assert wanted is not None
    reading._known.clear()
    reading.note(wanted[0], values)
    recipe = reading.reader(values)
    assert recipe is not None
    read = recipe.without({0, 1, 3})
    fresh = [{**row, "name": "never seen " + row["name"]} for row in values]
    found = read(fresh)
    assert [len(c) for c in found] == [1, 40, 40, 40, sum(k % 3 for k in range(40))]
    assert [c.tolist() for c in found[2:]] == [c.tolist() for c in wanted[1][2:]]
    assert not any(row["name"] in words.CODES for row in fresh)
    assert read([*fresh, {**values[0], "name": 3}]) is None


DIFFERENT = {
    "a float among ints": ([(1, 2.0)] * 9, [(1, 2.0)] * 9 + [(1.0, 2.0)]),
    "a bool among ints": ([(1, 2.0)] * 9, [(1, 2.0)] * 9 + [(True, 2.0)]),
    "an int beyond 64 bits": ([(1,)] * 9, [(1,)] * 9 + [(2**63,)]),
    "the least int": ([(1,)] * 9, [(1,)] * 9 + [(-(2**63),)]),
    "an int of four digits": ([(1,)] * 9, [(2**100,)]),
    "a longer tuple": ([(1, 2)] * 9, [(1, 2)] * 9 + [(1, 2, 3)]),
    "a shorter tuple": ([(1, 2)] * 9, [(1, 2)] * 9 + [(1,)]),
    "a list for a tuple": ([(1, 2)] * 9, [(1, 2), [1, 2]]),
    "another named tuple": ([Edge(1, 2.0)] * 9, [Edge(1, 2.0), (1, 2.0)]),
    "other keys": ([{"a": 1, "b": 2}] * 9, [{"a": 1, "b": 2}, {"a": 1, "c": 2}]),
    "keys in another order": ([{"a": 1, "b": 2}] * 9, [{"a": 1, "b": 2}, {"b": 2, "a": 1}]),
    "a key more": ([{"a": 1}] * 9, [{"a": 1}, {"a": 1, "b": 2}]),
    "no keys": ([{"a": 1}] * 9, [{"a": 1}, {}]),
    "a key that is no string": ([{"a": 1}] * 9, [{"a": 1}, {1: 1}]),
    "something for None": ([(None, 1)] * 9, [(None, 1), (0, 1)]),
    "None for something": ([(1, 1)] * 9, [(1, 1), (None, 1)]),
    "empty rows only": ([[1.0]] * 9, [[], []]),
    "a NumPy number": ([(1.0,)] * 9, [(1.0,), (np.float64(1.0),)]),
    "a string": ([(1,)] * 9, [(1,), ("1",)]),
}


@pytest.mark.parametrize("seen, values", DIFFERENT.values(), ids=DIFFERENT)
def test_what_differs_is_left_to_the_other_way(seen, values):
    reading._known.clear()
    wanted = taken(seen)
    assert wanted is not None
    reading.note(wanted[0], seen)
    assert reading.read(seen) is not None
    assert reading.read(values) is None


def test_equal_keys_that_are_other_objects():
    values = [{"".join(("first", " key")): k, "b": 1.0} for k in range(20)]
    wanted = taken(values)
    assert wanted is not None
    reading.note(wanted[0], values)
    other = [{"".join(("first", " ", "key")): k, "b": 2.0} for k in range(5)]
    found = reading.read(other)
    assert found is not None and [c.tolist() for c in found[1]] == [[5], [0, 1, 2, 3, 4], [2.0] * 5]


def test_a_missing_attribute():
    values = [Point(1.0, True) for _ in range(4)]
    wanted = taken(values)
    assert wanted is not None
    reading._known.clear()
    reading.note(wanted[0], values)
    object.__delattr__(values[2], "x")
    assert reading.read(values) is None
    assert reading.read(values[:2]) is not None


def test_fields_that_run_code_are_left_to_the_other_way():
    values = [Computed(1.0)] * 3
    wanted = taken(values)
    assert wanted is not None
    reading._known.clear()
    reading.note(wanted[0], values)
    assert reading.read(values) is None


def test_references_are_given_back():
    values = [{"a": 1.5, "b": [Point(2.5, True)]} for _ in range(10)]
    wanted = taken(values)
    assert wanted is not None
    reading.note(wanted[0], values)
    point = values[3]["b"][0]
    before = [sys.getrefcount(x) for x in (values, values[3], point, Point, 1.5)]
    for _ in range(1000):
        assert reading.read(values) is not None
    after = [sys.getrefcount(x) for x in (values, values[3], point, Point, 1.5)]
    assert all(abs(a - b) < 100 for a, b in zip(after, before, strict=True))


@pytest.mark.parametrize("kind", [int, float, bool])
def test_numbers(kind):
    values = [kind(random.Random(k).randrange(-5, 5)) for k in range(1000)]
    found = reading.read_numbers(values, kind)
    assert found is not None and found.tolist() == values
    for other in (None, "x", 2.5 if kind is not float else 2, np.float64(1.0), 2**70):
        assert reading.read_numbers([*values, other], kind) is None


def test_lists_that_another_thread_changes():
    values = [[1.0] * 5 for _ in range(200)]
    wanted = taken(values)
    assert wanted is not None
    reading.note(wanted[0], values)
    ends = threading.Event()

    def change():
        draw = random.Random(1)
        while not ends.is_set():
            values[draw.randrange(200)] = [2.0] * draw.randrange(1, 12)
            if len(values) > 190:
                values.pop()
            values.append([3.0])

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(3000):
            found = reading.read(values)
            if found is not None:
                _, lengths, numbers = found[1]
                assert lengths.sum() == len(numbers)
                assert np.isin(numbers, [1.0, 2.0, 3.0]).all()
    finally:
        ends.set()
        thread.join()


def test_numbers_of_numpy():
    """Objects of np.float64 and np.int64 are read as Python's, and are of their own types."""
    rows = [(np.float64(k) / 3, np.int64(-k), 0.5 * k) for k in range(40)]

    def f(rows):
        return rows[3][0], rows[3][1], sum(a * b for a, b, _ in rows), [c for _, _, c in rows][5]

    compiled = relay(f)
    for given in (rows, rows[:7], [(float(a), int(b), c) for a, b, c in rows], rows[:9] + [(0.5, np.int64(1), 1.0)]):
        got, expected = compiled(given), f(given)
        assert [type(v) for v in got] == [type(v) for v in expected] and list(got) == pytest.approx(list(expected))
