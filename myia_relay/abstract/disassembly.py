"""Lists of many Python values of one type, taken apart into columns at the speed at which CPython copies them.

Idea: `marshal` writes what lists, tuples and numbers consist of in one walk in C, with a byte for the exact class of each value. An
entry of known classes takes a known number of bytes, so NumPy checks all classes at once, and takes the numbers out of the records.
Induction makes this exact: if the first record has the bytes that it must have where these are known, the second one begins where
it must. `marshal` refuses everything that is not exactly of Python's own classes. Where records differ in size (long ints, rows of
different lengths) or hold what `marshal` does not know, the entries are transposed or joined by C functions of Python, and the
columns are taken apart in turn.

Input: a list. Output: a `ListColumn`; `Uneven` where entries differ in type. `assembly` is the way back.
"""

from __future__ import annotations

import functools
import marshal
import operator
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from ..utils.collector import resting
from .reading import FEW_MIXED, read_numbers
from .types import INT, NONE, List, Scalar, Struct, Type, Undefined, array_entry, tuple_of, union_of
from .words import STRING, codes_of

VERSION = 2  # of marshal's format: floats in eight bytes, and nothing refers to what was before
HEADER = 5  # bytes of a list or tuple: the class, and how many entries
FEW = 64  # numbers that are looked at one by one
WIDEST = 64  # leaves of an entry that are taken out of records; more have columns of their own
NUMBERS: dict[Any, Scalar] = {float: Scalar("float64", True), int: Scalar("int64", True), bool: Scalar("bool", True)}
_CODES = {float: "d", int: "q"}  # of `array.array`
_TAGS = {float: b"g", int: b"i"}
_SIZES = {float: 8, int: 4}


class Uneven(Exception):
    """The entries of a list do not have one type.

    Attributes:
        position: of the first entry that differs from the first one, or has no type.
        why: what is wrong with it.
        big: whether it is an int that does not fit into 64 bits.
    """

    def __init__(self, position: int, why: str, big: bool = False):
        super().__init__(f"entry {position} {why}")
        self.position, self.why, self.big = position, why, big


@dataclass(frozen=True, eq=False)
class ListColumn:
    """The values of one type in a list.

    Attributes:
        type: their common type.
        data: of numbers an array (n,); of a `Struct` the columns of its parts; of a `List` the array of all lengths and the column
            of all entries, one list behind the other (its type is `Undefined` where there is none); of arrays the columns of the
            parts of their type (`types.array_entry`); of strings the column of their codes (`words`); of None nothing.
    """

    type: Type
    data: Any


def take_apart(values: Sequence) -> ListColumn:
    """The column of a list.

    Args:
        values: Python's and NumPy's numbers, strings, None, arrays of one dtype and rank, and tuples, lists, dicts with equal
            keys in one order, NamedTuples and frozen dataclasses of these; at least one.

    Raises:
        Uneven: they do not have one type. `True` is no int, 1 no float, and `np.float64(1.0)` is of another type than 1.0.
    """
    with resting():  # nothing that is made here is garbage
        return _column(values if type(values) is list else list(values))


def numbers(values: list) -> np.ndarray:
    """A list of Python's floats, ints or bools as an array; about 30 ns an entry on a slow machine, three times a copy.

    Raises:
        Uneven: it has others.
    """  # noqa: DOC501
    kind = type(values[0])
    if kind not in NUMBERS:
        raise Uneven(0, f"is a {kind.__name__}")
    if len(values) > FEW:
        found = read_numbers(values, kind)
        if found is None:
            found = _from_records(values, kind)
        if found is not None:
            return found
    _same_class(values, kind)
    if kind is bool:
        return np.frombuffer(bytearray(values), np.bool_)
    try:
        return np.frombuffer(array(_CODES[kind], values), NUMBERS[kind].dtype)
    except OverflowError:
        position = next(k for k, v in enumerate(values) if not -(2**63) <= v < 2**63)
        raise _too_big(position, values[position]) from None


def _too_big(position: int, value: int) -> Uneven:
    return Uneven(position, f"is the int {value}, which does not fit into 64 bits", True)


def _from_records(values: list, kind: Any) -> np.ndarray | None:
    """Numbers of one class out of marshal's records; None where they do not fit."""
    raw = _written(values)
    if raw is None:
        return None
    if kind is bool:
        if len(raw) != HEADER + len(values):
            return None
        tags = np.frombuffer(raw, np.uint8, offset=HEADER)
        found = tags == ord("T")
        return found if (found | (tags == ord("F"))).all() else None
    size = 1 + _SIZES[kind]
    if len(raw) != HEADER + size * len(values):
        return None
    records = np.frombuffer(raw, [("tag", "S1"), ("value", f"<{'f8' if kind is float else 'i4'}")], offset=HEADER)
    if not (records["tag"] == _TAGS[kind]).all():
        return None
    return records["value"].astype(NUMBERS[kind].dtype)


def _written(values: list) -> bytes | None:
    """What marshal writes; None where it does not know something, or one object is in another too deep."""
    try:
        return marshal.dumps(values, VERSION)
    except ValueError:
        return None


def _same_class(values: Sequence, kind: type) -> None:
    """Check that all values are exactly of a class.

    Raises:
        Uneven: one is not.
    """
    if len(set(map(type, values))) > 1:
        position = next(k for k, v in enumerate(values) if type(v) is not kind)
        raise Uneven(position, f"is a {type(values[position]).__name__}, and the first one a {kind.__name__}")


def _column(values: list) -> ListColumn:
    """The column of a list that is not empty.

    Raises:
        Uneven: its entries do not have one type.
    """
    first = values[0]
    kind = type(first)
    if kind in NUMBERS:
        try:
            return ListColumn(NUMBERS[kind], numbers(values))
        except Uneven as error:
            if error.big or _several_classes(values) is None:
                raise
    if kind is tuple or kind is list:
        form = _form(first)
        if form is not None and (found := _of_records(values, form)) is not None:
            return found
    if (classes := _several_classes(values)) is not None:
        return _options(values, classes)
    _same_class(values, kind)
    if first is None:
        return ListColumn(NONE, None)
    if kind is str:
        return ListColumn(STRING, (ListColumn(INT, codes_of(values)),))
    if kind is list:
        return _rows(values)
    if kind is np.ndarray:
        return _arrays(values)
    if isinstance(first, np.generic):
        return ListColumn(Scalar(first.dtype.name), np.fromiter(values, first.dtype, len(values)))
    if kind is tuple:
        if len(set(map(len, values))) > 1:
            position = next(k for k, v in enumerate(values) if len(v) != len(first))
            raise Uneven(position, f"has {len(values[position])} entries, and the first one {len(first)}")
        return _structures("tuple", (), None, values, len(first))
    if kind is dict:
        names = tuple(first)
        if not all(type(name) is str for name in names):
            raise Uneven(0, "has keys that are no strings")
        if len(set(map(tuple, values))) > 1:
            position = next(k for k, v in enumerate(values) if tuple(v) != names)
            raise Uneven(position, f"has the keys {list(values[position])}, and the first one {list(names)}")
        return _structures("dict", names, None, _taken(operator.itemgetter, names, values), len(names))
    names = getattr(kind, "_fields", None) if isinstance(first, tuple) else None
    if names is not None:
        return _structures("record", names, kind, list(map(tuple, values)), len(names))
    if getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
        names = tuple(getattr(kind, "__dataclass_fields__"))  # noqa: B009
        return _structures("record", names, kind, _taken(operator.attrgetter, names, values), len(names))
    raise Uneven(0, f"is a {kind.__name__}")


def _several_classes(values: list) -> list[type] | None:
    """The classes of values of which each may be an option: many numbers of several classes, or None among others.

    Few numbers of several classes are what a program names one by one.
    """
    classes = set(map(type, values))
    proper = classes - {type(None)}
    mixed = len(proper) > 1
    if len(classes) < 2 or mixed and (len(values) <= FEW_MIXED or not proper <= NUMBERS.keys()):
        return None
    return sorted(classes, key=lambda c: (c is type(None), -len(c.__mro__), c.__name__))


def _options(values: list, classes: list[type]) -> ListColumn:
    """The column of values of several classes: which one each has, and a column of each class, filled up with values of it.

    Raises:
        Uneven: those of one class have not one type.
    """  # noqa: DOC501
    places = {c: k for k, c in enumerate(classes)}
    which = np.fromiter((places[type(v)] for v in values), np.int64, len(values))
    parts = []
    for c in classes:
        filling = [] if c is list else next(v for v in values if type(v) is c)
        try:
            parts.append(_column([v if type(v) is c else filling for v in values]))
        except Uneven as error:
            if not error.big or c is not int:
                raise
            position = next(k for k, v in enumerate(values) if type(v) is int and not -(2**63) <= v < 2**63)
            raise _too_big(position, values[position]) from None
    return ListColumn(union_of(*(p.type for p in parts)), (ListColumn(INT, which), *parts))


def _taken(getter: Callable, names: tuple[str, ...], values: list) -> list[tuple]:
    """The fields of all values, as tuples."""
    if len(names) > 1:
        return list(map(getter(*names), values))
    return list(zip(map(getter(*names), values))) if names else [()] * len(values)


def _structures(kind: str, fields: tuple[str, ...], cls: Any, rows: list[tuple], count: int) -> ListColumn:
    """The column of structures, from the tuples of their parts.

    Raises:
        Uneven: a part has not one type.
    """
    if not count:
        return ListColumn(Struct(kind, (), fields, cls), ())
    form = _form(rows[0])
    found = _of_records(rows, form) if form is not None else None
    parts = found.data if found is not None else tuple(_column(list(column)) for column in zip(*rows))
    return ListColumn(Struct(kind, tuple(p.type for p in parts), fields, cls), parts)


def _rows(values: list[list]) -> ListColumn:
    """The column of lists of any lengths.

    Raises:
        Uneven: their entries have not one type.
    """
    counts = np.fromiter(map(len, values), np.int64, len(values))
    flat = list(chain.from_iterable(values))
    if not flat:
        return ListColumn(List(Undefined()), (counts, ListColumn(Undefined(), None)))
    try:
        inner = _column(flat)
    except Uneven as error:
        row = int(np.searchsorted(counts.cumsum(), error.position, side="right"))
        raise Uneven(row, f"is a list of which an entry {error.why}", error.big) from None
    return ListColumn(List(inner.type), (counts, inner))


def _arrays(values: list[np.ndarray]) -> ListColumn:
    """The column of arrays of one dtype and rank, whatever their sizes and strides: their elements are copied.

    Raises:
        Uneven: they differ, or have no axes.
    """
    first = values[0]
    rank = first.ndim
    if not rank:
        raise Uneven(0, "is an array without axes")
    shapes = list(map(_shape, values))
    if len(set(map(_dtype, values))) > 1 or len(set(map(len, shapes))) > 1:
        k = next(k for k, a in enumerate(values) if a.dtype != first.dtype or a.ndim != rank)
        text = f"is an array of {values[k].dtype} with {values[k].ndim} axes, and the first one of {first.dtype} with {rank}"
        raise Uneven(k, text)
    t = array_entry(dtype_name(first.dtype), rank)
    if rank == 1:
        counts, flat, sizes = np.fromiter(map(len, values), np.int64, len(values)), np.concatenate(values), []
    else:
        every = np.array(shapes, np.int64)
        counts, flat = every.prod(axis=1), np.concatenate([a.ravel() for a in values])
        sizes = [ListColumn(INT, column) for column in np.ascontiguousarray(every.T)]
    elements = t.elems[0]
    assert isinstance(elements, List)
    return ListColumn(t, (ListColumn(elements, (counts, ListColumn(elements.elem, flat))), *sizes))


_shape, _dtype = operator.attrgetter("shape"), operator.attrgetter("dtype")


@functools.cache
def dtype_name(dtype: np.dtype) -> str:
    """The name of a dtype, which NumPy makes anew each time."""
    return dtype.name


# --- records ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RecordForm:
    """How marshal writes a value.

    Attributes:
        kind: its class.
        parts: the forms of the parts of a tuple.
        count: of a list of numbers, their number; such lists are rows.
    """

    kind: Any
    parts: tuple[_RecordForm, ...] = ()
    count: int = 0


def _form(value: Any) -> _RecordForm | None:
    """The form of an entry whose record has a size that its classes tell; None for others."""
    kind = type(value)
    if kind is tuple and 0 < len(value) <= WIDEST:
        parts = tuple(_form(v) for v in value)
        return None if any(p is None or p.kind is list for p in parts) else _RecordForm(tuple, parts)  # pyright: ignore[reportArgumentType]
    if kind is list and value and type(value[0]) in _SIZES:
        return _RecordForm(list, (_RecordForm(type(value[0])),), len(value))
    return _RecordForm(kind) if kind in NUMBERS or value is None else None


@functools.lru_cache(maxsize=256)
def _record(form: _RecordForm) -> tuple[np.dtype, bytes, tuple[int, ...], tuple[int, ...]]:
    """The record of a tuple: its dtype with a field for each number, a pattern of its bytes, which of these are known, and which
    are those of bools.
    """
    pattern, known, bools = bytearray(), [], []
    offsets: list[int] = []
    formats: list[str] = []

    def fixed(data: bytes) -> None:
        known.extend(range(len(pattern), len(pattern) + len(data)))
        pattern.extend(data)

    def write(f: _RecordForm) -> None:
        if f.kind is tuple:
            fixed(b"(" + len(f.parts).to_bytes(4, "little"))
            for part in f.parts:
                write(part)
        elif f.kind is bool:
            bools.append(len(pattern))
            pattern.append(0)
        elif f.kind in _SIZES:
            fixed(_TAGS[f.kind])
            offsets.append(len(pattern))
            formats.append("<f8" if f.kind is float else "<i4")
            pattern.extend(bytes(_SIZES[f.kind]))
        else:
            fixed(b"N")

    write(form)
    names = [f"f{k}" for k in range(len(offsets))]
    dtype = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": len(pattern)})
    return dtype, bytes(pattern), tuple(known), tuple(bools)


def _of_records(values: list, form: _RecordForm) -> ListColumn | None:
    """The column of tuples or rows of one form, out of marshal's records; None where one has another form."""
    raw = _written(values)
    if raw is None:
        return None
    if form.kind is list:
        return _of_equal_rows(raw, len(values), form)
    dtype, pattern, known, bools = _record(form)
    if len(raw) != HEADER + len(values) * len(pattern):
        return None
    octets = np.frombuffer(raw, np.uint8, offset=HEADER).reshape(len(values), len(pattern))
    if not all((octets[:, k] == pattern[k]).all() for k in known):
        return None
    truths = [octets[:, k] == ord("T") for k in bools]
    if not all((t | (octets[:, k] == ord("F"))).all() for t, k in zip(truths, bools)):
        return None
    records = np.frombuffer(raw, dtype, offset=HEADER)
    fields = iter([records[name] for name in dtype.names or ()])
    bits = iter(truths)

    def column(f: _RecordForm) -> ListColumn:
        if f.kind is tuple:
            parts = tuple(map(column, f.parts))
            return ListColumn(tuple_of(*(p.type for p in parts)), parts)
        if f.kind not in NUMBERS:
            return ListColumn(NONE, None)
        data = next(bits) if f.kind is bool else next(fields).astype(NUMBERS[f.kind].dtype)
        return ListColumn(NUMBERS[f.kind], data)

    return column(form)


def _of_equal_rows(raw: bytes, rows: int, form: _RecordForm) -> ListColumn | None:
    """The column of lists of numbers of one length; None where one is of another length or class."""
    (number,), count = form.parts, form.count
    size = 1 + _SIZES[number.kind]
    if len(raw) != HEADER + rows * (HEADER + count * size):
        return None
    octets = np.frombuffer(raw, np.uint8, offset=HEADER).reshape(rows, HEADER + count * size)
    if not (octets[:, :HEADER] == np.frombuffer(b"[" + count.to_bytes(4, "little"), np.uint8)).all():
        return None
    entries = octets[:, HEADER:].reshape(rows, count, size) if rows else octets
    if not (entries[:, :, 0] == ord(_TAGS[number.kind])).all():
        return None
    values = np.ndarray(
        (rows, count),
        "<f8" if number.kind is float else "<i4",
        raw,
        2 * HEADER + 1,
        (HEADER + count * size, size),
    )
    t = NUMBERS[number.kind]
    inner = ListColumn(t, values.astype(t.dtype).reshape(-1))
    return ListColumn(List(t), (np.full(rows, count, np.int64), inner))


__all__ = ["ListColumn", "Uneven", "numbers", "take_apart"]
