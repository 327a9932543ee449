"""Lists taken apart into columns and put together again: nothing of another class goes unnoticed."""

import enum
import math
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myia_relay import TypeError_, relay
from myia_relay.abstract.assembly import assembler
from myia_relay.abstract.disassembly import FEW, NUMBERS, ListColumn, Uneven, numbers, take_apart
from myia_relay.abstract.types import List, NoneT, Scalar, Struct, holds_unions, is_array_entry

MANY = 3 * FEW


class Entry(NamedTuple):
    price: float
    count: int


@dataclass(frozen=True)
class Point:
    x: float
    name: str


@dataclass(frozen=True)
class Single:
    rows: list


class Level(enum.IntEnum):
    LOW = 1


class Float(float):
    pass


def entries(column: ListColumn, count: int) -> list:
    """The list of which a column was made."""
    if is_array_entry(column.type):
        return [array for (array,) in rows_of(column, count)]
    if isinstance(t := column.type, Struct):
        return assembler(t)(rows_of(column, count))
    return values_of(column, count)


def rows_of(column: ListColumn, count: int):
    """The leaves of each entry."""
    leaves, stack = [], [column]
    while stack:
        top = stack.pop()
        if is_array_entry(top.type):
            elements, *sizes = top.data
            parts = np.split(elements.data[1].data, elements.data[0].cumsum())[:-1]
            shapes = zip(*(s.data for s in sizes)) if sizes else elements.data[0]
            leaves.append([part.reshape(shape) for part, shape in zip(parts, shapes)])
        elif isinstance(top.type, Struct):
            stack.extend(reversed(top.data))
        elif not isinstance(top.type, NoneT):
            leaves.append(values_of(top, count))
    return zip(*leaves, strict=True) if leaves else repeat((), count)


def values_of(column: ListColumn, count: int) -> list:
    t, data = column.type, column.data
    if isinstance(t, NoneT):
        return [None] * count
    if isinstance(t, List):
        counts, inner = data
        flat = entries(inner, int(counts.sum())) if counts.sum() else []
        ends = counts.cumsum().tolist()
        return [flat[j - n : j] for j, n in zip(ends, counts.tolist(), strict=True)]
    if isinstance(t, Scalar) and t.weak:
        return data.tolist()
    return list(data)


def shown(value):
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if hasattr(value, "__dataclass_fields__"):
        return type(value), [shown(getattr(value, f)) for f in value.__dataclass_fields__]
    if isinstance(value, dict):
        return [(k, shown(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [shown(v) for v in value]
    return type(value), repr(value)


LISTS = {
    "floats": [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.5],
    "ints": [0, -1, 2**31 - 1, -(2**31)],
    "long ints": [0, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)],
    "bools": [True, False, True],
    "strings": ["a", "", "\ud800", "a"],
    "none": [None, None],
    "pairs": [(1.0, 2), (-0.0, 3)],
    "pairs of long ints": [(1.0, 2), (2.0, 2**40)],
    "nested": [(1.0, (True, None), (3,)), (2.0, (False, None), (4,))],
    "empty tuples": [(), ()],
    "named": [Entry(1.0, 2), Entry(2.0, -5)],
    "dataclasses": [Point(1.0, "a"), Point(2.0, "b")],
    "a field": [Single([1, 2]), Single([])],
    "dicts": [{"a": 1.0, "b": [1, 2]}, {"a": 2.0, "b": []}],
    "a key": [{"a": 1.0}, {"a": 2.0}],
    "no keys": [{}, {}],
    "rows": [[1.0, 2.0], [3.0, 4.0]],
    "rows of ints": [[1, 2**20], [-3, 4]],
    "rows of bools": [[True, False], [False, True]],
    "ragged": [[1.0, 2.0], [], [3.0]],
    "empty rows": [[], []],
    "deep": [[[(1, 2.0)], []], [], [[(3, 4.0), (5, 6.0)]]],
    "rows of one length but for one": [[1.0, 2.0], [3.0, 4.0], [5.0]],
    "numpy": [np.float32(1.5), np.float32(2.5)],
    "arrays": [np.arange(3.0), np.ones(3)],
    "ragged arrays": [np.ones(0, np.float32), np.arange(3, dtype=np.float32), np.ones(1, np.float32)],
    "matrices": [np.ones((2, 3)), np.arange(4.0).reshape(1, 4), np.ones((0, 2))],
    "words": [np.array([0, 2**64 - 1], np.uint64), np.ones(3, np.uint64)],
    "in a pair": [(np.arange(3), np.int8(1)), (np.ones(3, int), np.int8(2))],
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("times", [1, MANY])
def test_there_and_back(name, times):
    values = LISTS[name] * times
    assert shown(entries(take_apart(values), len(values))) == shown(values)


OTHERS = [
    True,
    1,
    1.0,
    np.float64(1.0),
    np.int64(1),
    Level.LOW,
    Float(1.0),
    None,
    "1",
    (1.0,),
    [1.0],
    2**70,
    1j,
    {"a": 1.0},
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("first", [1.0, 1, True], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("count", [2, MANY])
@pytest.mark.parametrize("place", ["alone", "pair", "row", "ragged", "dict", "named"])
def test_another_class_is_noticed(first, other, count, place):
    if type(other) is type(first) and other != 2**70:
        return
    position = count - 1
    plain = [first] * count
    plain[position] = other
    wrapped = {
        "alone": plain,
        "pair": [(2.0, v) for v in plain],
        "row": [[first, v] for v in plain],
        "ragged": [[first, v][: 1 + (k > 0)] for k, v in enumerate(plain)],
        "dict": [{"x": v, "y": 1} for v in plain],
        "named": [Entry(v, 1) for v in plain],
    }[place]
    if (
        other is None or count == MANY and type(other) in NUMBERS and other != 2**70
    ):  # an entry is one of two things then
        found = take_apart(wrapped)
        assert holds_unions(List(found.type)) and shown(entries(found, count)) == shown(wrapped)
        return
    with pytest.raises(Uneven) as error:
        take_apart(wrapped)
    assert error.value.position == position
    assert error.value.big == (other == 2**70 and (type(first) is int or count == MANY))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([(1, 2), (1, 2, 3)], "entry 1 has 3 entries, and the first one 2"),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], r"entry 1 has the keys \['b', 'a'\]"),
        ([{"a": 1}, {"a": 1, "b": 2}], "entry 1 has the keys"),
        ([{1: 2}], "entry 0 has keys that are no strings"),
        (
            [np.ones(2), np.ones((3, 1))],
            "entry 1 is an array of float64 with 2 axes, and the first one of float64 with 1",
        ),
        (
            [np.ones(2), np.ones(3, int)],
            "entry 1 is an array of int64 with 1 axes, and the first one of float64 with 1",
        ),
        ([np.array(1.0)], "entry 0 is an array without axes"),
        ([[1], [2, 1.0]], "entry 1 is a list of which an entry is a float"),
        ([Entry(1, 2), (1, 2)], "entry 1 is a tuple, and the first one a Entry"),
        ([(1.0, 2), [1.0, 2]], "entry 1 is a list"),
        ([{1}], "entry 0 is a set"),
        ([0, 2**63], "entry 1 is the int 9223372036854775808, which does not fit"),
    ],
)
def test_what_is_wrong_is_said(values, text):
    with pytest.raises(Uneven, match=text):
        take_apart(values)


def test_bytes_that_look_like_records():
    """A float may hold any bytes, those of another record too; and a shorter entry may make up for a longer one."""
    value = np.frombuffer(b"gggg(\x02\0\0", np.float64)[0].item()
    assert numbers([value] * MANY).tolist() == [value] * MANY
    with pytest.raises(Uneven):
        take_apart([1.0] * MANY + [(1.0,), None, None])
    with pytest.raises(Uneven):
        take_apart([(1.0, 2.0)] * MANY + [(1.0, 2.0, None), (1.0,), None])


number = st.floats(allow_nan=False) | st.integers(-(2**65), 2**65) | st.booleans() | st.none()
value = st.recursive(
    number, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.tuples(inner), max_leaves=6
)


@given(st.lists(value, min_size=1, max_size=4), st.integers(1, 40))
@settings(max_examples=200, deadline=None)
def test_any_list_comes_back_or_is_refused(values, times):
    values = values * times
    try:
        column = take_apart(values)
    except Uneven:
        return
    assert shown(entries(column, len(values))) == shown(values)


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_arguments(executor):
    @relay(executor=executor)
    def total(xs):
        s = 0
        for x in xs:
            s += x
        return s

    for values in ([0.5] * MANY, [2**40] * MANY, [True, False] * MANY, [3] * MANY):
        assert shown(total(values)) == shown(total.__wrapped__(values))
    with pytest.raises((OverflowError, TypeError_)):
        total([1] * MANY + [2**64])
