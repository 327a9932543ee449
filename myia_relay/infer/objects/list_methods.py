"""Operators, methods and builtins on lists that take more than one primitive; many are calls of `library.lists`.

A method that changes a list is a `list_change` of the parsed graph: it returns the list afterwards, and the method's
result. The front end binds the variable again. Whether something else can see the list is decided there, and here where
it depends on types.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections.abc import Callable
from typing import Any

from ...abstract.types import FLOAT, List, Scalar, Struct, Type
from ...ir.build import as_type
from ...ir.node import Apply
from ...ir.prim import REGISTRY
from ...library import lists as prelude
from ...prims.ops.control import undef
from ...utils.errors import TypeError_
from ..engine.branches import branch
from ..engine.conform import LONG, entry_node, entry_type, has_entry_type, promoted
from ..engine.engine import Engine
from ..engine.frames import Frame, emit, raising, reach
from ..values.kinds import is_list, is_run_time, is_text
from ..values.protocols import items
from ..values.values import NEVER, NONE_VAL, Dyn, Seq, SliceVal, Static, Val, elements
from .arithmetic import arithmetic
from .iterables import walk
from .leaves import to_node, to_python
from .lists import (
    as_index,
    bounds,
    call,
    call_leaf,
    concatenated,
    entry,
    get,
    length,
    mark_entries,
    position,
    pushed,
    repeated,
    require,
)
from .structures import compared_by_elements, equality
from .truth import truth

# Operators.


async def list_operator(engine: Engine, frame: Frame, op: Any, args: list[Val]) -> Val | None:
    """A Python operator with a run-time list among its operands; None if another handler is to be used."""
    if op is operator.not_:
        decided = await truth(engine, frame, args[0])
        return frame.constant(not decided) if isinstance(decided, bool) else emit(frame, "logical_not", decided)
    if len(args) != 2:
        return None
    a, b = args
    if op is operator.getitem:
        return get(engine, frame, a, b) if is_run_time(a) else None
    if op in (operator.eq, operator.ne):
        if not (is_list(a) and is_list(b)):
            found = compared_by_elements(engine, frame, op, a, b)
            return frame.constant(op is operator.ne) if found is None else found
        same = await equal(engine, frame, a, b)
        return same if op is operator.eq else emit(frame, "logical_not", same)
    if op in (operator.lt, operator.le, operator.gt, operator.ge) and _is_ordered(frame, a) and _is_ordered(frame, b):
        return await _compared(engine, frame, op, a, b)
    if op is operator.contains:
        if not is_run_time(a):
            return None
        return arithmetic(frame, operator.ge, await place_of(engine, frame, a, b), frame.constant(0))
    if op in (operator.add, operator.iadd) and is_list(a) and (is_list(b) or op is operator.iadd):
        return concatenated(engine, frame, a, b) if is_list(b) else await extended(engine, frame, a, b)
    if op in (operator.mul, operator.imul):
        xs, count = (a, b) if is_list(a) else (b, a)
        if isinstance(count, Dyn) and not is_list(count):
            return repeated(engine, frame, xs, as_index(engine, frame, count, "a list is multiplied by an int"))
    return None


async def _compared(engine: Engine, frame: Frame, op: Callable, a: Val, b: Val) -> Val:
    """`a < b` of lists of Python numbers, and the other comparisons."""
    less = operator.lt if op in (operator.lt, operator.le) else operator.gt
    if any(isinstance(x, Seq) and not x.elems for x in (a, b)):
        return arithmetic(frame, op, *[length(engine, frame, x) for x in (a, b)])
    pair = [promoted(frame, x) if isinstance(x, Seq) else x for x in (a, b)]
    place = await call_leaf(engine, frame, prelude.first_difference, *pair)
    counts = [length(engine, frame, x) for x in pair]

    async def by_entries(region: Frame) -> Val:
        x, y = (entry(engine, region, reach(frame, region, v), reach(frame, region, place)) for v in pair)
        return arithmetic(region, less, x, y)

    async def by_lengths(region: Frame) -> Val:
        return arithmetic(region, op, *[reach(frame, region, c) for c in counts])

    differ = arithmetic(frame, operator.ge, place, frame.constant(0))
    site = Apply(frame.graph, undef, origin=frame.builder.origin)
    return await branch(engine, frame, differ, [by_entries, by_lengths], site)


def _is_ordered(frame: Frame, value: Val) -> bool:
    """Whether a value is a list of Python numbers."""
    if not is_list(value) or not has_entry_type(frame, value):
        return False
    elem = entry_type(frame, value)
    return isinstance(elem, Scalar) and elem.weak


async def equal(engine: Engine, frame: Frame, a: Val, b: Val) -> Dyn:
    """`a == b` of two lists."""
    if any(isinstance(x, Seq) and not x.elems for x in (a, b)):
        return arithmetic(frame, operator.eq, length(engine, frame, a), length(engine, frame, b))
    return await call_leaf(engine, frame, prelude.equal, a, b)


async def place_of(engine: Engine, frame: Frame, xs: Val, x: Val) -> Dyn:
    """The first position of an entry, or -1."""
    return await call_leaf(engine, frame, prelude.place_of, xs, x)


async def extended(engine: Engine, frame: Frame, xs: Val, more: Val) -> Val:
    """`xs.extend(more)`, of any iterable."""
    if isinstance(more, Seq) and more.kind == "tuple":
        more = Seq("list", more.elems)
    if is_list(more):
        return concatenated(engine, frame, xs, more)
    return await call(engine, frame, prelude.extended, xs, more)


# Builtins.


async def copied(engine: Engine, frame: Frame, value: Val) -> Val:
    """A new list of the same entries: `list(xs)`, `xs.copy()`, `xs[:]`."""
    if isinstance(value, Seq) and isinstance(entries := walk(engine, frame, value), list):
        return Seq("list", tuple(entries))
    if is_run_time(value):
        return get(engine, frame, value, SliceVal(NONE_VAL, NONE_VAL, NONE_VAL))
    return await call(engine, frame, prelude.listed, value)


async def as_list(engine: Engine, frame: Frame, value: Val) -> Val:
    """Any iterable as a list."""
    return value if is_list(value) else await copied(engine, frame, value)


async def summed(engine: Engine, frame: Frame, value: Val, start: Val, compensated: bool) -> Val:
    """`sum(xs, start)`; `compensated` adds Python floats as Python 3.12 does."""
    xs = await as_list(engine, frame, value)
    if isinstance(xs, Seq) and not xs.elems:
        return start
    first = _sample(engine, frame, xs)
    if isinstance(start, Dyn) and isinstance(first, Dyn) and isinstance(first.type, Scalar):
        better = arithmetic(frame, operator.add, start, first).type
        if better != start.type and start.known:
            # The sum of no entries is `start` itself, of another type.
            some = arithmetic(frame, operator.gt, length(engine, frame, xs), frame.constant(0))

            async def total(region: Frame) -> Val:
                zero = region.constant(_zero(start.known_value, better), better)
                return await totalled(engine, region, reach(frame, region, xs), zero, compensated)

            async def nothing(region: Frame) -> Val:
                return start

            return await branch(
                engine, frame, some, [total, nothing], Apply(frame.graph, undef, origin=frame.builder.origin)
            )
    return await totalled(engine, frame, xs, start, compensated)


async def totalled(engine: Engine, frame: Frame, xs: Val, start: Val, compensated: bool) -> Val:
    """The sum of a list whose type is that of `start`."""
    first = _first(engine, frame, xs)
    floats = compensated and isinstance(first, Dyn) and first.type == FLOAT == getattr(start, "type", None)
    return await call(engine, frame, prelude.total_compensated if floats else prelude.total, xs, start)


def _first(engine: Engine, frame: Frame, xs: Val) -> Val:
    """The first entry of a list that has one."""
    return entry(engine, frame, xs, frame.constant(0)) if is_run_time(xs) else elements(xs)[0]


def _sample(engine: Engine, frame: Frame, xs: Val) -> Val:
    """A value of the type of a list's entries, whose sum with another may be computed: a run-time list may have no entry."""
    first = _first(engine, frame, xs)
    if is_run_time(xs) and isinstance(first, Dyn) and isinstance(first.type, Scalar):
        return frame.constant(_zero(0, first.type))
    return first


def _zero(value: Any, t: Any) -> Any:
    return as_type(float(value) if t.is_float else int(value), t)


async def extreme(engine: Engine, frame: Frame, name: str, value: Val) -> Val:
    """`min(xs)` and `max(xs)`."""
    xs = await as_list(engine, frame, value)
    empty = (
        f"{name}() arg is an empty sequence" if sys.version_info < (3, 12) else f"{name}() iterable argument is empty"
    )
    if isinstance(xs, Seq) and not xs.elems:
        return raising(frame, ValueError, empty)
    require(frame, arithmetic(frame, operator.gt, length(engine, frame, xs), frame.constant(0)), ValueError, empty)
    found = await call(engine, frame, prelude.smallest if name == "min" else prelude.largest, xs)
    mark_entries(engine, found)
    return found


async def ordered(engine: Engine, frame: Frame, value: Val, kwargs: dict[str, Val]) -> Val:
    """`sorted(xs, key=None, reverse=False)`.

    Raises:
        TypeError_: there is an unknown keyword argument, or the entries or keys have no order.
    """
    key, reverse = kwargs.pop("key", NONE_VAL), kwargs.pop("reverse", frame.constant(False))
    if kwargs:
        raise TypeError_(f"sorted() got an unexpected keyword argument '{next(iter(kwargs))}'")
    decided = await truth(engine, frame, arithmetic(frame, operator.index, reverse))
    xs = await as_list(engine, frame, value)
    if isinstance(xs, Seq) and not xs.elems:
        return xs
    plain = isinstance(key, Static) and key.value is None
    if isinstance(xs, Seq) and isinstance(decided, bool) and all(map(_never_changes, xs.elems)):
        # A key only where no run-time list has such entries: its function shall not be called again, for that list.
        if any(map(_has_text, xs.elems)) or plain and len(xs.elems) <= LONG:
            known = _known_order(xs if plain else await call(engine, frame, prelude.mapped, key, xs), decided)
            if known is not None:
                return Seq("list", tuple(xs.elems[k] for k in known))
    xs = promoted(frame, xs)
    reverse = frame.constant(decided) if isinstance(decided, bool) else decided
    keys = xs if plain else await call(engine, frame, prelude.mapped, key, xs)
    if isinstance(keys, Seq):
        keys = promoted(frame, keys)
    assert isinstance(keys, Dyn)
    if not _has_order(keys.type.elem):
        what = "entries" if plain else "keys"
        raise TypeError_(
            f"compiled code sorts by numbers and by tuples and lists of them, and these {what} are {keys.type.elem}; "
            "give a key= that is one"
        )
    if _holds_floats(keys.type.elem):
        nan = await call_leaf(engine, frame, prelude.has_nan, keys)
        message = "NaN among the numbers to sort by: their order would depend on how sort() works"
        require(frame, emit(frame, "logical_not", nan), ValueError, message)
    if plain and isinstance(keys.type.elem, Scalar):
        by = prelude.sorted_numbers if keys.type.elem.weak else prelude.sorted_numpy_numbers
        return await call(engine, frame, by, xs, reverse)
    columns = await _columns(engine, frame, keys)
    if columns is not None:
        return await call(engine, frame, prelude.ordered_by_numbers, xs, Seq("tuple", tuple(columns)), reverse)
    return await call(engine, frame, prelude.ordered, xs, keys, reverse)


async def _columns(engine: Engine, frame: Frame, keys: Dyn) -> list[Val] | None:
    """The entries of keys, the last first, where these are numbers, or tuples of some; else None."""
    elem = keys.type.elem
    if isinstance(elem, Scalar):
        return [keys]
    if not isinstance(elem, Struct) or not elem.elems or not all(isinstance(t, Scalar) for t in elem.elems):
        return None
    picks = [Static(functools.partial(prelude.entry, k)) for k in reversed(range(len(elem.elems)))]
    return [await call(engine, frame, prelude.mapped, pick, keys) for pick in picks]


def _has_order(t: Type) -> bool:
    """Whether values of a type are numbers, or tuples or lists of what has an order."""
    if isinstance(t, Struct):
        return (t.kind == "tuple" or t.kind == "record" and issubclass(t.cls, tuple)) and all(map(_has_order, t.elems))
    return isinstance(t, Scalar) or isinstance(t, List) and _has_order(t.elem)


def _holds_floats(t: Type) -> bool:
    """Whether there are floats in values of a type, of which one may be NaN."""
    if isinstance(t, Struct):
        return any(map(_holds_floats, t.elems))
    return _holds_floats(t.elem) if isinstance(t, List) else isinstance(t, Scalar) and t.is_float


def _never_changes(value: Val) -> bool:
    """Whether a value is a number, a text, or a tuple of these: one that nobody changes in place."""
    if isinstance(value, Seq):
        return value.kind == "tuple" and all(map(_never_changes, value.elems))
    return isinstance(value, Static) or isinstance(value, Dyn) and isinstance(value.type, Scalar)


def _has_text(value: Val) -> bool:
    return any(map(_has_text, value.elems)) if isinstance(value, Seq) else is_text(value)


def _known_order(keys: Val, reverse: bool) -> list[int] | None:
    """The positions of a sorted list, where what is known of its keys decides that: all of them, or of tuples the first entries, if
    these all differ. None where it does not, or they cannot be compared, or one is NaN.
    """
    if not isinstance(keys, Seq) or len({isinstance(key, Seq) for key in keys.elems}) > 1:
        return None
    starts = [_known_start(key) for key in keys.elems]
    values = [tuple(to_python(x, "a key") for x in start) for start, _ in starts]
    if not all(whole for _, whole in starts):
        shortest = min(map(len, values))
        values = [value[:shortest] for value in values]
        if len(set(values)) < len(values):
            return None
    if any(x != x for value in values for x in value):
        return None
    try:
        return sorted(range(len(values)), key=values.__getitem__, reverse=reverse)
    except TypeError:
        return None


def _known_start(key: Val) -> tuple[list[Val], bool]:
    """The entries of a key as far as they are known, and whether that is all of it; a number or a text is its only entry."""
    entries = list(key.elems) if isinstance(key, Seq) and key.kind == "tuple" else [key]
    known = list(itertools.takewhile(_is_known, entries))
    return known, len(known) == len(entries)


def _is_known(value: Val) -> bool:
    if isinstance(value, Static):
        return isinstance(value.value, str)
    return isinstance(value, Dyn) and isinstance(value.type, Scalar) and value.known


# Methods that change nothing.


async def list_method(engine: Engine, frame: Frame, value: Val, name: str, args: list[Val], kwargs: dict) -> Val:
    """A method of a list that changes nothing.

    Raises:
        TypeError_: the method changes the list, or is not part of the language.
    """
    if name == "copy" and not args and not kwargs:
        return await copied(engine, frame, value)
    if name == "count" and len(args) == 1 and not kwargs:
        if isinstance(value, Seq) and not value.elems:
            return frame.constant(0)
        return await call(engine, frame, prelude.count_of, value, args[0])
    if name == "index" and len(args) == 1 and not kwargs:
        return await _found(engine, frame, value, args[0], None)
    if name in CHANGES:
        raise TypeError_(
            f".{name}() changes the list, which compiled code does for a local variable that no inner function captures, in a "
            "statement or expression outside of comprehensions and lambdas"
        )
    raise TypeError_(f"the method '{name}' of lists is not part of the language")


async def _found(engine: Engine, frame: Frame, value: Val, x: Val, message: str | None) -> Dyn:
    """The position of an entry; ValueError at run time if there is none."""
    i = frame.constant(-1)
    if isinstance(value, Seq):
        tests = [equality(engine, frame, e, x) for e in value.elems]
        if all(t.known for t in tests):
            i = next((frame.constant(k) for k, t in enumerate(tests) if t.known_value), i)
            if i.known_value >= 0:
                return i
    if not isinstance(value, Seq) or value.elems:
        i = await place_of(engine, frame, value, x)
    there = arithmetic(frame, operator.ge, i, frame.constant(0))
    if message is not None:
        require(frame, there, ValueError, message)
    else:
        require(frame, there, ValueError, (0, "r", ""), " is not in list", operands=(to_node(frame, x),))
    return i


# Methods that change the list: `(engine, frame, list, args, kwargs) -> (list afterwards, result)`.


async def _append(engine, frame, xs, args, kwargs):
    (x,) = args
    return pushed(engine, frame, xs, x), NONE_VAL


async def _extend(engine, frame, xs, args, kwargs):
    (more,) = args
    if isinstance(more, Seq) and more.kind == "dict":
        more = Seq("tuple", tuple(Static(f) for f in more.fields))
    if not isinstance(more, Seq):
        return await extended(engine, frame, xs, more), NONE_VAL
    for x in items(more):
        xs = pushed(engine, frame, xs, x)
    return xs, NONE_VAL


async def _insert(engine, frame, xs, args, kwargs):
    at, x = args
    at = as_index(engine, frame, at, "list.insert: the index is an int")
    if isinstance(xs, Seq) and at.known:
        elems = list(xs.elems)
        elems.insert(at.known_value, x)
        return Seq("list", tuple(elems)), NONE_VAL
    if isinstance(xs, Seq) and not xs.elems:
        return Seq("list", (x,)), NONE_VAL
    i, n = frame.var(at), frame.var(length(engine, frame, xs))
    where, least, most = REGISTRY["where"], REGISTRY["minimum"], REGISTRY["maximum"]
    i = least(most(where(i < 0, REGISTRY["add"](i, n), i), 0), n)
    xs = promoted(frame, xs)
    new = frame.builder.emit(REGISTRY["list_insert"], (xs.node, i.node, entry_node(frame, x, xs.type.elem)))
    return Dyn(new), NONE_VAL


async def _pop(engine, frame, xs, args, kwargs):
    args = [as_index(engine, frame, a, "list.pop: the index is an int") for a in args]
    if isinstance(xs, Seq):
        if not xs.elems:
            return raising(frame, IndexError, "pop from empty list"), NEVER
        if not args or args[0].known:
            elems = list(xs.elems)
            try:
                x = elems.pop(*[a.known_value for a in args])
            except IndexError:
                return raising(frame, IndexError, "pop index out of range"), NEVER
            return Seq("list", tuple(elems)), x
        xs = promoted(frame, xs)
    n = length(engine, frame, xs)
    require(frame, arithmetic(frame, operator.gt, n, frame.constant(0)), IndexError, "pop from empty list")
    if not args or args[0].known and args[0].known_value == -1:
        last = Dyn(REGISTRY["sub"](frame.var(n), 1).node)
        x = entry(engine, frame, xs, last)
        return emit(frame, "list_truncate", promoted(frame, xs), last), x
    i = position(engine, frame, xs, args[0], "pop index out of range")
    x = entry(engine, frame, xs, i)
    return emit(frame, "list_delete", promoted(frame, xs), i), x


async def _remove(engine, frame, xs, args, kwargs):
    if isinstance(xs, Seq) and not xs.elems:
        return raising(frame, ValueError, "list.remove(x): x not in list"), NEVER
    i = await _found(engine, frame, xs, args[0], "list.remove(x): x not in list")
    return emit(frame, "list_delete", promoted(frame, xs), i), NONE_VAL


async def _clear(engine, frame, xs, args, kwargs):
    if isinstance(xs, Seq):
        return Seq("list", ()), NONE_VAL
    return emit(frame, "list_truncate", promoted(frame, xs), frame.constant(0)), NONE_VAL


async def _reverse(engine, frame, xs, args, kwargs):
    if isinstance(xs, Seq):
        return Seq("list", xs.elems[::-1]), NONE_VAL
    return get(engine, frame, xs, SliceVal(NONE_VAL, NONE_VAL, frame.constant(-1))), NONE_VAL


async def _sort(engine, frame, xs, args, kwargs):
    return await ordered(engine, frame, xs, kwargs), NONE_VAL


async def _delete(engine, frame, xs, args, kwargs):
    (at,) = args
    if isinstance(at, SliceVal):
        if isinstance(xs, Seq):
            elems = list(xs.elems)
            del elems[to_python(at, "the bounds of a slice of a list display")]
            return Seq("list", tuple(elems)), NONE_VAL
        start, count, step = bounds(engine, frame, xs, at)
        if not (step.known and step.known_value == 1):
            raise TypeError_("del xs[a:b:c] with a step is not part of the language; write a comprehension")
        n = length(engine, frame, xs)
        count = Dyn(REGISTRY["maximum"](frame.var(count), 0).node)
        end = arithmetic(frame, operator.add, start, count)
        left = arithmetic(frame, operator.sub, n, end)
        run_time = promoted(frame, xs)
        tail = emit(frame, "list_slice", run_time, end, left, frame.constant(1))
        return emit(frame, "list_concat", emit(frame, "list_truncate", run_time, start), tail), NONE_VAL
    if isinstance(xs, Seq):
        if not xs.elems:
            return raising(frame, IndexError, "list assignment index out of range"), NEVER
        if at.known:
            elems = list(xs.elems)
            try:
                del elems[at.known_value]
            except IndexError:
                return raising(frame, IndexError, "list assignment index out of range"), NEVER
            return Seq("list", tuple(elems)), NONE_VAL
    i = position(engine, frame, xs, at, "list assignment index out of range")
    return emit(frame, "list_delete", promoted(frame, xs), i), NONE_VAL


CHANGES: dict[str, Callable] = {
    "append": _append,
    "extend": _extend,
    "insert": _insert,
    "pop": _pop,
    "remove": _remove,
    "clear": _clear,
    "reverse": _reverse,
    "sort": _sort,
    "__delitem__": _delete,
}
