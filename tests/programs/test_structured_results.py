"""Lists of tuples, records, dicts, rows and arrays as results: equal to CPython's in value and type, however many there are.

Native code reads few lists one by one and many lists at once, so lengths on both sides of that limit are compared.
"""

import gc
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.backend.native import lists

EXECUTORS = ("native", "python", "interpreter")
LENGTHS = (0, 1, 7, lists.FEW + 5, 3 * lists.LONG)


class Entry(NamedTuple):
    price: float
    count: int


@dataclass(frozen=True)
class Particle:
    mass: float
    fixed: bool


@dataclass(frozen=True)
class Pair:
    first: Entry
    second: tuple[float, Particle]


def floats(n):
    return [0.5 * i for i in range(n)]


def flags(n):
    out = []
    for i in range(n):
        out.append(i % 3 == 0)
    return out


def of_numpy(n):
    out = []
    for i in range(n):
        out.append((np.float32(i) * 0.5, np.int8(i % 100), i))
    return out


def entries(n):
    out = []
    for i in range(n):
        out.append(Entry(i * 0.25, -i))
    return out


def particles(n):
    out = []
    for i in range(n):
        out.append(Particle(i * 1.0, i % 2 == 0))
    return out


def pairs_of_records(n):
    out = []
    for i in range(n):
        out.append(Pair(Entry(1.0 * i, i), (0.5 * i, Particle(2.0, i > 3))))
    return out


def dicts(n):
    out = []
    for i in range(n):
        out.append({"x": i * 0.5, "tags": (i, i > 2), "none": None})
    return out


def squares(n):
    out = []
    for i in range(n):
        out.append([[i, i + 1], [2 * i, 3 * i]])
    return out


def ragged(n):
    out = []
    for i in range(n):
        row = []
        for j in range(i % 4):
            row.append(i * 0.5 + j)
        out.append(row)
    return out


def long_rows(n):
    out = []
    for i in range(n):
        row = []
        for j in range(2 * i):
            row.append(j)
        out.append(row)
    return out


def small_numbers(n):
    out = []
    for i in range(n):
        row = []
        for j in range(i % 3):
            row.append(np.int16(i + j))
        out.append(row)
    return out


def three_deep(n):
    out = []
    for i in range(n):
        rows = []
        for j in range(i % 3):
            row = []
            for k in range(j + 1):
                row.append((i * 0.5, k, j > 0))
            rows.append(row)
        out.append((i, rows))
    return out


def nothing_in_rows(n):
    out = []
    for i in range(n):
        row = []
        for _ in range(i % 3):
            row.append(None)
        out.append(row)
    return out


def arrays(n):
    out = []
    for i in range(n):
        out.append((np.array([i * 1.0, 2.0]), np.array([[i], [2]])))
    return out


PROGRAMS = [
    floats, flags, of_numpy, entries, particles, pairs_of_records, dicts, squares, ragged, long_rows, small_numbers, three_deep,
    nothing_in_rows, arrays,
]  # fmt: skip


def shown(value):
    """A value with the types of all its parts."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tolist()
    if hasattr(value, "__dataclass_fields__"):
        return type(value), [shown(getattr(value, f)) for f in value.__dataclass_fields__]
    if isinstance(value, dict):
        return [(k, shown(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [shown(v) for v in value]
    return type(value), value


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_are_cpythons(program, executor):
    compiled = relay(program, executor=executor)
    for n in LENGTHS:
        assert shown(compiled(n)) == shown(program(n)), n


def test_results_are_objects_of_their_own():
    compiled = relay(ragged)
    rows = compiled(50)
    rows[3].append(1.0)
    rows[7][0] = -1.0
    assert compiled(50) == ragged(50)
    arrays_ = relay(arrays)(50)
    arrays_[3][0][0] = 7.0
    assert arrays_[4][0][0] == 4.0
    assert arrays_[3][0].flags.owndata


def test_one_row_in_many_places():
    def repeated(n):
        row = []
        for i in range(3):
            row.append(i * n)
        out = []
        for _ in range(n):
            out.append(row.copy())
        return out, [row, row]

    for n in LENGTHS[:4]:
        assert relay(repeated)(n) == repeated(n)


def test_the_collector_is_as_it_was():
    compiled = relay(entries)
    assert gc.isenabled()
    compiled(2 * lists.FROM)
    assert gc.isenabled()
    gc.disable()
    try:
        compiled(2 * lists.FROM)
        assert not gc.isenabled()
    finally:
        gc.enable()
