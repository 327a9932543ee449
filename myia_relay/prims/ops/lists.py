"""Run-time lists: sequences of one element type whose length is known at run time only.

In typed graphs a list is a value like any other: `list_push` gives a new list, and the old one is unchanged. The user's
program only changes lists in local variables that nothing else can see. The old value is therefore usually dead, and
every executor changes memory in place then. Indices are in range and not negative: inference emits the checks.

In Python a list is an `Items` (`abstract.structures`).

Input: entries of one type, as Python values (a tuple or record where the element type is a structure).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.structures import Items, inside, part
from ...abstract.types import INT, Array, List, NoneT, Scalar, Struct, Type
from ...ir.build import as_type, placeholder
from ...ir.prim import primitive
from ...utils.errors import InternalError
from ..rules.relations import ANY, require


def _list(t: Type, what: str) -> List:
    if not isinstance(t, List):
        raise InternalError(what, f"{t} is no list")
    return t


def _entry(t: Type, entry: Type, what: str) -> List:
    found = _list(t, what)
    if found.elem != entry:
        raise InternalError(what, f"an entry of type {entry} for {t}")
    return found


@primitive("struct")
def list_new(*entries, elem=None):
    """A list of these entries; `elem` is their type."""
    return Items(list(entries))


@list_new.infer
def _(*entries, elem):
    for entry in entries:
        _entry(List(elem), entry, "list_new")
    return List(elem)


@primitive("struct")
def list_from_array(array, *, same=False):
    """The entries of an array with one axis, as Python numbers. Linear time.

    `same` tells that this is the array itself, in the form in which it leaves a graph (`infer.values.sizes`), and no copy.
    """
    return Items(array.tolist())


@list_from_array.infer
def _(array, *, same=False):
    if not isinstance(array, Array) or len(array.shape) != 1:
        raise InternalError("list_from_array", f"{array} has not one axis")
    return List(Scalar(array.dtype, True))


@primitive("struct", differentiable=False)
def list_of_records(*columns, elem):
    """A list of records of type `elem`, from a list for each of their parts that is not None; all are of one length.

    Only arguments are made so (`infer.arguments.columns`), which is outside of everything that is differentiated.
    """
    rows = zip(*(column.read() for column in columns), strict=True)
    places = iter(range(len(columns)))
    at = [None if isinstance(t, NoneT) else next(places) for t in elem.elems]
    return Items([inside(elem, [None if k is None else row[k] for k in at]) for row in rows])


@list_of_records.infer
def _(*columns, elem):
    kept = [t for t in elem.elems if not isinstance(t, NoneT)]
    for column, t in zip(columns, kept, strict=True):
        _entry(column, t, "list_of_records")
    return List(elem)


@primitive("struct", differentiable=False)
def list_of_rows(lengths, entries):
    """A list of lists of these lengths, to which the entries belong in their order. Made of arguments, as `list_of_records` is."""
    rows, values, start = [], entries.read(), 0
    for count in lengths.read():
        rows.append(Items(values[start : start + count]))
        start += count
    return Items(rows)


@list_of_rows.infer
def _(lengths, entries):
    _entry(lengths, INT, "list_of_rows")
    return List(_list(entries, "list_of_rows"))


@primitive("struct", differentiable=False)
def list_len(xs):
    """How many entries."""
    return len(xs)


@list_len.infer
def _(xs):
    _list(xs, "list_len")
    return INT


@primitive("struct")
def list_get(xs, index):
    """Entry `index`, which is in range; an arbitrary value if it is not and the result is unused."""
    entries = xs.read()
    return entries[index] if 0 <= index < len(entries) else 0


@list_get.infer
def _(xs, index):
    return _list(xs, "list_get").elem


@primitive("struct")
def list_set(xs, index, entry):
    """The list with another entry at `index`."""
    if not 0 <= index < len(xs):
        return xs
    old = xs.read()[index]
    return xs.change(lambda e: e.__setitem__(index, entry), lambda e: e.__setitem__(index, old))


@list_set.infer
def _(xs, index, entry):
    return _entry(xs, entry, "list_set")


@primitive("struct")
def list_push(xs, entry):
    """The list with one more entry at its end. Amortised constant time."""
    return xs.change(lambda e: e.append(entry), lambda e: e.pop())


@list_push.infer
def _(xs, entry):
    return _entry(xs, entry, "list_push")


@primitive("struct")
def list_truncate(xs, count):
    """The first `count` entries, all of them where there are fewer."""
    rest = xs.read()[count:]
    return xs.change(lambda e: e.__delitem__(slice(count, None)), lambda e: e.extend(rest))


@list_truncate.infer
def _(xs, count):
    return _list(xs, "list_truncate")


@primitive("struct")
def list_insert(xs, index, entry):
    """The list with a new entry before `index`, which is at most its length. Linear time."""
    return xs.change(lambda e: e.insert(index, entry), lambda e: e.__delitem__(index))


@list_insert.infer
def _(xs, index, entry):
    return _entry(xs, entry, "list_insert")


@primitive("struct")
def list_delete(xs, index):
    """The list without entry `index`. Linear time."""
    if not 0 <= index < len(xs):
        return xs
    old = xs.read()[index]
    return xs.change(lambda e: e.__delitem__(index), lambda e: e.insert(index, old))


@list_delete.infer
def _(xs, index):
    return _list(xs, "list_delete")


@primitive("struct")
def list_concat(xs, ys):
    """The entries of both. Takes time for those of `ys` only, if `xs` is dead."""
    more, count = list(ys.read()), len(xs)
    return xs.change(lambda e: e.extend(more), lambda e: e.__delitem__(slice(count, None)))


@list_concat.infer
def _(xs, ys):
    if xs != ys:
        raise InternalError("list_concat", f"{xs} and {ys}")
    return _list(xs, "list_concat")


@primitive("struct")
def list_slice(xs, start, count, step):
    """A new list of `count` entries: those at `start`, `start + step`, ..., all in range; empty where count is negative."""
    entries = xs.read()
    return Items([entries[start + k * step] for k in range(max(0, count))])


@list_slice.infer
def _(xs, start, count, step):
    return _list(xs, "list_slice")


@primitive("struct")
def list_repeat(xs, count):
    """`xs * count`, a new list."""
    return Items(xs.read() * count)


@list_repeat.infer
def _(xs, count):
    return _list(xs, "list_repeat")


# Of derivatives. The tangent or cotangent of a list is a list that may be shorter: entries that it lacks are zero.


def zero(t: Type) -> Any:
    """The zero of an entry's type; of an array of unknown size a number, which is added alike."""
    if isinstance(t, Struct):
        return inside(t, [zero(e) for e in t.elems])
    if isinstance(t, List):
        return Items([])
    value = placeholder(t)
    return 0.0 if value is None and isinstance(t, Array) else value


def plus(a: Any, b: Any, t: Type) -> Any:
    """The sum of two entries of a type."""
    if isinstance(t, Struct):
        return inside(t, [plus(part(a, t, i), part(b, t, i), e) for i, e in enumerate(t.elems)])
    return None if isinstance(t, NoneT) else as_type(a + b, t)


@primitive("struct")
def list_at(xs, index, *, elem):
    """Entry `index`, or zero where the list is too short; `elem` is the type of an entry."""
    entries = xs.read()
    return entries[index] if index < len(entries) else zero(elem)


@list_at.infer
def _(xs, index, *, elem):
    return _list(xs, "list_at").elem


@primitive("struct")
def list_resize(xs, count, *, elem):
    """A list of `count` entries: the first ones, then zeros."""
    entries = xs.read()
    return Items(entries[: max(0, count)] + [zero(elem) for _ in range(count - len(entries))])


@list_resize.infer
def _(xs, count, *, elem):
    return _list(xs, "list_resize")


@primitive("struct")
def list_accumulate(xs, index, entry, *, elem):
    """The list with something added to entry `index`; longer by zeros where it is too short."""
    if index >= len(xs):
        xs = list_resize.reference(xs, index + 1, elem=elem)
    return list_set.reference(xs, index, plus(xs.read()[index], entry, elem))


@list_accumulate.infer
def _(xs, index, entry, *, elem):
    return _entry(xs, entry, "list_accumulate")


@primitive("struct")
def list_to_array(xs, *, size, same=False):
    """An array with `size` elements: the entries of a list of numbers, then zeros. `same` as in `list_from_array`."""
    entries = xs.read()[:size]
    dtype = np.asarray(entries).dtype if entries else np.dtype(np.float64)
    if dtype == np.float64 and entries and all(isinstance(entry, int) for entry in entries):
        dtype = np.dtype(np.uint64)  # NumPy takes ints on both sides of 2**63 for floats
    out = np.zeros(size, dtype)
    out[: len(entries)] = entries
    return out


@list_to_array.infer
def _(xs, *, size, same=False):
    elem = require("list_to_array", _list(xs, "list_to_array").elem, ANY)
    return Array(elem.dtype, (size,))
