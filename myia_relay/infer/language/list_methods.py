"""Operators, methods and builtins on lists, where they take more than one primitive: many are calls of `library.lists`.

A method that changes a list is a `list_change` of the parsed graph: it gives the list as it is afterwards, and what the method
returns. The front end binds the variable anew; whether something else can see the list is decided there, and here where that
depends on types.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

from ...abstract.types import FLOAT, Array, List, Scalar
from ...ir import syntax as S
from ...ir.build import as_type
from ...ir.node import Apply, Constant
from ...ir.prim import REGISTRY
from ...library import lists as prelude
from ...prims.ops.control import undef
from ...prims.ops.effects import check
from ...utils.errors import CompileError, ParseError, TypeError_
from ..engine.conform import entry_node, entry_type, has_entry_type, promoted
from ..engine.engine import Engine
from ..engine.frames import Frame, emit, located, reach
from ..values.kinds import is_list, is_run_time
from ..values.sharing import require_own
from ..values.treedef import describe
from ..values.values import NEVER, NONE_VAL, ClosureVal, Dyn, Seq, SliceVal, Static, Val
from .calls import call_value
from .iterables import walk
from .lists import (
    as_index,
    bounds,
    concatenated,
    entry,
    failing,
    get,
    length,
    mark_entries,
    operate,
    position,
    pushed,
    repeated,
)
from .structures import to_python
from .syntax import branch, meaning, truth


async def call(engine: Engine, frame: Frame, function: Callable, *args: Val, site: Apply | None = None) -> Val:
    """Call a function of the library. A list that it returns is a new one, or, of a method that changes a list, that list."""
    result = await call_value(engine, frame, Static(function), list(args), {}, frame.builder.origin, site)
    if isinstance(result, Dyn) and isinstance(result.type, List):
        engine.shared.discard(result.node)
    return result


def require(frame: Frame, ok: Dyn, exception: type, *parts: Any, operands: tuple = ()) -> None:
    """Raise unless `ok`."""
    frame.builder.emit(check, (ok.node, *operands), {"exception": exception, "parts": parts})


def not_(frame: Frame, value: Dyn) -> Dyn:
    """`not value` of a bool."""
    return emit(frame, "logical_not", value)


# Operators.


async def list_operator(engine: Engine, frame: Frame, op: Any, args: list[Val]) -> Val | None:
    """A Python operator with a run-time list among its operands; None where another meaning is to be looked for."""
    a, *rest = args
    b = rest[0] if rest else None
    if op is operator.getitem:
        return get(engine, frame, a, b) if is_run_time(a) else None
    if op is operator.not_:
        decided = await truth(engine, frame, a)
        return frame.constant(not decided) if isinstance(decided, bool) else not_(frame, decided)
    if op in (operator.eq, operator.ne):
        if not (is_list(a) and is_list(b)):
            return frame.constant(op is operator.ne)
        same = await equal(engine, frame, a, b)
        return same if op is operator.eq else not_(frame, same)
    if op in (operator.lt, operator.le, operator.gt, operator.ge) and _is_ordered(frame, a) and _is_ordered(frame, b):
        less = operator.lt if op in (operator.lt, operator.le) else operator.gt
        if any(isinstance(x, Seq) and not x.elems for x in (a, b)):
            return operate(engine, frame, op, *[length(engine, frame, x) for x in (a, b)])
        a, b = (promoted(frame, x) if isinstance(x, Seq) else x for x in (a, b))
        place = await call(engine, frame, prelude.first_difference, a, b)
        counts = [length(engine, frame, x) for x in (a, b)]

        async def by_entries(region: Frame) -> Val:
            x, y = (entry(engine, region, reach(frame, region, v), reach(frame, region, place)) for v in (a, b))
            return operate(engine, region, less, x, y)

        async def by_lengths(region: Frame) -> Val:
            return operate(engine, region, op, *[reach(frame, region, c) for c in counts])

        differ = operate(engine, frame, operator.ge, place, frame.constant(0))
        return await branch(
            engine, frame, differ, [by_entries, by_lengths], Apply(frame.graph, undef, origin=frame.builder.origin)
        )
    if op is operator.contains:
        if not is_run_time(a):
            return None
        return operate(engine, frame, operator.ge, await place_of(engine, frame, a, b), frame.constant(0))
    if op in (operator.add, operator.iadd) and is_list(a) and (is_list(b) or op is operator.iadd):
        return concatenated(engine, frame, a, b) if is_list(b) else await extended(engine, frame, a, b)
    if op in (operator.mul, operator.imul):
        xs, count = (a, b) if is_list(a) else (b, a)
        if isinstance(count, Dyn) and not is_list(count):
            return repeated(engine, frame, xs, as_index(engine, frame, count, "a list is multiplied by an int"))
    return None


def _is_ordered(frame: Frame, value: Val) -> bool:
    """Whether a value is a list of Python numbers."""
    if not is_list(value) or not has_entry_type(frame, value):
        return False
    elem = entry_type(frame, value)
    return isinstance(elem, Scalar) and elem.weak


async def equal(engine: Engine, frame: Frame, a: Val, b: Val) -> Dyn:
    """`a == b` of two lists."""
    if any(isinstance(x, Seq) and not x.elems for x in (a, b)):
        return operate(engine, frame, operator.eq, length(engine, frame, a), length(engine, frame, b))
    return await call(engine, frame, prelude.equal, a, b)


async def place_of(engine: Engine, frame: Frame, xs: Val, x: Val) -> Dyn:
    """Where an entry is first, or -1."""
    return await call(engine, frame, prelude.place_of, xs, x)


async def extended(engine: Engine, frame: Frame, xs: Val, more: Val) -> Val:
    """`xs.extend(more)`, of any iterable."""
    if isinstance(more, Seq) and more.kind == "tuple":
        more = Seq("list", more.elems)
    if is_list(more):
        return concatenated(engine, frame, xs, more)
    return await call(engine, frame, prelude.extended, xs, more)


# Unpacking.


def unpacked(engine: Engine, frame: Frame, value: Val, before: int, starred: bool, after: int) -> Val:
    """`a, *b, c = xs`, with CPython's errors where the length does not fit."""
    n, need = length(engine, frame, value), before + after
    count = frame.constant(need)
    few = (f"not enough values to unpack (expected {'at least ' if starred else ''}{need}, got ", (0, "", ""), ")")
    require(frame, operate(engine, frame, operator.ge, n, count), ValueError, *few, operands=(n.node,))
    if not starred:
        require(
            frame,
            operate(engine, frame, operator.le, n, count),
            ValueError,
            f"too many values to unpack (expected {need})",
        )
    parts = [entry(engine, frame, value, frame.constant(i)) for i in range(before)]
    if starred:
        rest = operate(engine, frame, operator.sub, n, count)
        bounds_ = (frame.constant(before), rest, frame.constant(1))
        parts.append(emit(frame, "list_slice", promoted(frame, value), *bounds_))
        first = operate(engine, frame, operator.sub, n, frame.constant(after))
        for i in range(after):
            parts.append(entry(engine, frame, value, operate(engine, frame, operator.add, first, frame.constant(i))))
    return Seq("tuple", tuple(parts))


# Builtins.


async def copied(engine: Engine, frame: Frame, value: Val) -> Val:
    """A new list of the same entries: `list(xs)`, `xs.copy()`, `xs[:]`."""
    if isinstance(value, Seq) and (entries := walk(engine, frame, value).items) is not None:
        return Seq("list", tuple(entries))
    if is_run_time(value):
        return get(engine, frame, value, SliceVal(NONE_VAL, NONE_VAL, NONE_VAL))
    return await call(engine, frame, prelude.listed, value)


async def as_list(engine: Engine, frame: Frame, value: Val) -> Val:
    """Any iterable as a list."""
    return value if is_list(value) else await copied(engine, frame, value)


async def summed(engine: Engine, frame: Frame, value: Val, start: Val, compensated: bool) -> Val:
    """`sum(xs, start)`; `compensated` as Python floats are added from Python 3.12 on."""
    xs = await as_list(engine, frame, value)
    if isinstance(xs, Seq) and not xs.elems:
        return start
    first = entry(engine, frame, xs, frame.constant(0)) if is_run_time(xs) else xs.elems[0]
    if isinstance(start, Dyn) and isinstance(first, Dyn) and isinstance(first.type, Scalar):
        better = operate(engine, frame, operator.add, start, first).type
        if better != start.type and start.known:
            # The sum of no entries is `start` itself, of another type.
            some = operate(engine, frame, operator.gt, length(engine, frame, xs), frame.constant(0))

            async def total(region: Frame) -> Val:
                zero = region.constant(_zero(start.node.value, better), better)
                return await totalled(engine, region, reach(frame, region, xs), zero, compensated)

            async def nothing(region: Frame) -> Val:
                return start

            return await branch(
                engine, frame, some, [total, nothing], Apply(frame.graph, undef, origin=frame.builder.origin)
            )
    return await totalled(engine, frame, xs, start, compensated)


async def totalled(engine: Engine, frame: Frame, xs: Val, start: Val, compensated: bool) -> Val:
    """The sum of a list whose type is that of `start`."""
    first = entry(engine, frame, xs, frame.constant(0)) if is_run_time(xs) else xs.elems[0]
    floats = compensated and isinstance(first, Dyn) and first.type == FLOAT == getattr(start, "type", None)
    return await call(engine, frame, prelude.total_compensated if floats else prelude.total, xs, start)


def _zero(value: Any, t: Any) -> Any:
    return as_type(float(value) if t.is_float else int(value), t)


async def extreme(engine: Engine, frame: Frame, name: str, value: Val) -> Val:
    """`min(xs)` and `max(xs)`."""
    xs = await as_list(engine, frame, value)
    empty = (
        f"{name}() arg is an empty sequence" if sys.version_info < (3, 12) else f"{name}() iterable argument is empty"
    )
    if isinstance(xs, Seq) and not xs.elems:
        return failing(frame, ValueError, empty)
    require(frame, operate(engine, frame, operator.gt, length(engine, frame, xs), frame.constant(0)), ValueError, empty)
    found = await call(engine, frame, prelude.smallest if name == "min" else prelude.largest, xs)
    mark_entries(engine, found)
    return found


async def ordered(engine: Engine, frame: Frame, value: Val, kwargs: dict[str, Val]) -> Val:
    """`sorted(xs, key=None, reverse=False)`."""
    key, reverse = kwargs.pop("key", NONE_VAL), kwargs.pop("reverse", frame.constant(False))
    if kwargs:
        raise TypeError_(f"sorted() got an unexpected keyword argument '{next(iter(kwargs))}'")
    decided = await truth(engine, frame, operate(engine, frame, operator.index, reverse))
    xs = await as_list(engine, frame, value)
    if isinstance(xs, Seq) and not xs.elems:
        return xs
    texts = isinstance(xs, Seq) and all(isinstance(e, Static) and isinstance(e.value, str) for e in xs.elems)
    plain = isinstance(key, Static) and key.value is None
    if texts and isinstance(decided, bool) and plain:
        return Seq("list", tuple(sorted(xs.elems, key=lambda e: e.value, reverse=decided)))
    xs = promoted(frame, xs)
    reverse = frame.constant(decided) if isinstance(decided, bool) else decided
    keys = xs if plain else await call(engine, frame, prelude.mapped, key, xs)
    if isinstance(keys, Seq):
        keys = promoted(frame, keys)
    if not isinstance(keys.type.elem, Scalar):
        what = "entries" if plain else "keys"
        raise TypeError_(
            f"compiled code sorts by numbers, and these {what} are {keys.type.elem}; give a key= that is a number"
        )
    if keys.type.elem.is_float:
        nan = await call(engine, frame, prelude.has_nan, keys)
        message = "NaN among the numbers to sort by: their order would depend on how sort() works"
        require(frame, not_(frame, nan), ValueError, message)
    return await call(engine, frame, prelude.ordered, xs, keys, reverse)


# Methods that change nothing.


async def list_method(engine: Engine, frame: Frame, value: Val, name: str, args: list[Val], kwargs: dict) -> Val:
    """A method of a list that changes nothing."""
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
    """Where an entry is; ValueError where it is not."""
    from .structures import equality, to_node

    i = frame.constant(-1)
    if isinstance(value, Seq):
        tests = [equality(engine, frame, e, x) for e in value.elems]
        if all(t.known for t in tests):
            i = next((frame.constant(k) for k, t in enumerate(tests) if t.node.value), i)
            if i.node.value >= 0:
                return i
    if is_run_time(value) or value.elems:
        i = await place_of(engine, frame, value, x)
    there = operate(engine, frame, operator.ge, i, frame.constant(0))
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
    if not isinstance(more, Seq):
        return await extended(engine, frame, xs, more), NONE_VAL
    for x in more.elems:
        xs = pushed(engine, frame, xs, x)
    return xs, NONE_VAL


async def _insert(engine, frame, xs, args, kwargs):
    at, x = args
    at = as_index(engine, frame, at, "list.insert: the index is an int")
    if isinstance(xs, Seq) and at.known:
        elems = list(xs.elems)
        elems.insert(at.node.value, x)
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
    if isinstance(xs, Seq):
        if not xs.elems:
            return failing(frame, IndexError, "pop from empty list"), NEVER
        if not args or args[0].known:
            elems = list(xs.elems)
            try:
                x = elems.pop(*[a.node.value for a in args])
            except IndexError:
                return failing(frame, IndexError, "pop index out of range"), NEVER
            return Seq("list", tuple(elems)), x
        xs = promoted(frame, xs)
    n = length(engine, frame, xs)
    require(frame, operate(engine, frame, operator.gt, n, frame.constant(0)), IndexError, "pop from empty list")
    if not args or args[0].known and args[0].node.value == -1:
        last = Dyn(REGISTRY["sub"](frame.var(n), 1).node)
        x = entry(engine, frame, xs, last)
        return emit(frame, "list_truncate", promoted(frame, xs), last), x
    i = position(engine, frame, xs, args[0], "pop index out of range")
    x = entry(engine, frame, xs, i)
    return emit(frame, "list_delete", promoted(frame, xs), i), x


async def _remove(engine, frame, xs, args, kwargs):
    if isinstance(xs, Seq) and not xs.elems:
        return failing(frame, ValueError, "list.remove(x): x not in list"), NEVER
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
        if not (step.known and step.node.value == 1):
            raise TypeError_("del xs[a:b:c] with a step is not part of the language; write a comprehension")
        n = length(engine, frame, xs)
        count = Dyn(REGISTRY["maximum"](frame.var(count), 0).node)
        end = operate(engine, frame, operator.add, start, count)
        left = operate(engine, frame, operator.sub, n, end)
        run_time = promoted(frame, xs)
        tail = emit(frame, "list_slice", run_time, end, left, frame.constant(1))
        return emit(frame, "list_concat", emit(frame, "list_truncate", run_time, start), tail), NONE_VAL
    if isinstance(xs, Seq):
        if not xs.elems:
            return failing(frame, IndexError, "list assignment index out of range"), NEVER
        if at.known:
            elems = list(xs.elems)
            try:
                del elems[at.node.value]
            except IndexError:
                return failing(frame, IndexError, "list assignment index out of range"), NEVER
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
COUNTS = {"insert": (2,), "pop": (0, 1), "clear": (0,), "reverse": (0,), "sort": (0,)}  # arguments; of the others, one


@meaning(S.list_change)
async def list_change(engine: Engine, frame: Frame, node: Apply) -> Val:
    """A method that changes a list: the list afterwards, and the method's result."""
    name = node.attrs["method"]
    _, xs, *args = [None, *[engine.value(frame, a) for a in node.args]]
    count = len(args) - len(node.keywords)
    args, kwargs = args[:count], dict(zip(node.keywords, args[count:], strict=True))
    if not is_list(xs):
        if name == "__delitem__":
            raise TypeError_(f"del x[i] is for lists, and this is {describe(xs)}")
        method = await call_value(engine, frame, Static(getattr), [xs, Static(name)], {}, node.origin, node)
        return Seq("tuple", (xs, await call_value(engine, frame, method, args, kwargs, node.origin, node)))
    refuse_shared(engine, frame, node, xs)
    if len(args) not in COUNTS.get(name, (1,)) or kwargs and name != "sort":
        raise TypeError_(f"list.{name}() is given {len(args) + len(kwargs)} arguments")
    after, result = await CHANGES[name](engine, frame, xs, args, kwargs)
    return NEVER if after is NEVER or result is NEVER else Seq("tuple", (after, result))


# What else may see a list or an array that is changed.


def refuse_shared(engine: Engine, frame: Frame, node: Apply, value: Val) -> None:
    """Refuse a change that another variable would show.

    The front end notes what may be the same object as far as names tell. Whether it can be is a question of types: an entry of a
    list of numbers is no list.

    Raises:
        ParseError: with the front end's words.
    """
    refuse_conflicts(engine, frame, node, not is_list(value), lambda reason: ParseError(reason, node.origin))
    require_own(engine.shared, value)


def refuse_in_place(engine: Engine, frame: Frame, node: Apply, value: Val) -> None:
    """Refuse `x += y` of an array, a list or a dict that something else may see.

    Raises:
        TypeError_: with advice.
    """
    kind = "array" if isinstance(value, Dyn) and isinstance(value.type, Array) else "list"
    if isinstance(value, Seq) and value.kind == "dict":
        kind = "dict"

    def error(reason: str) -> CompileError:
        return TypeError_(f"this changes the {kind} in place, and {reason}; write x = x + y, which makes a new {kind}")

    if kind != "list" or is_list(value):
        refuse_conflicts(engine, frame, node, kind != "list", error, whatever=kind == "dict")
    require_own(engine.shared, value)


def refuse_conflicts(
    engine: Engine,
    frame: Frame,
    node: Apply,
    arrays: bool,
    error: Callable[[str], CompileError],
    whatever: bool = False,
) -> None:
    """Refuse a change that the front end's conflicts at a node say is seen: now, or, if calls decide, when all are known.

    Args:
        engine: the engine.
        frame: where.
        node: the change.
        arrays: whether an array is changed, or else a list.
        error: makes the error of a reason.
        whatever: whether it is one whatever the other variable's type.

    Raises:
        CompileError: `error`.
    """
    for conflict in node.attrs.get("shared", ()):
        if not arrays and conflict.arrays or not (whatever or other_may_hold(engine, frame, conflict, arrays)):
            continue
        problem = error(conflict.reason)
        if conflict.confirm is None:
            raise problem
        engine.suspected.append((frame.spec, conflict, arrays, problem.at(located(node.origin, frame.spec))))


def other_may_hold(engine: Engine, frame: Frame, conflict, arrays: bool) -> bool:
    """Whether the other variable of a conflict may be, or hold, an array (`arrays`) or a list."""
    other = conflict.other
    held = (
        engine.value(frame, other) if isinstance(other, Constant) else frame.find(other) if other is not None else None
    )
    return held is None or may_hold(held, arrays)


def may_hold(value: Val, arrays: bool) -> bool:
    """Whether a value may be, or hold, an array (`arrays`) or a list."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, Dyn):
            if isinstance(value.type, Array) and value.type.shape or isinstance(value.type, List):
                if arrays or isinstance(value.type, List):
                    return True
        elif isinstance(value, Static):
            continue
        elif isinstance(value, ClosureVal) or is_list(value) and not arrays:
            return True
        elif isinstance(value, Seq):
            stack.extend(value.elems)
        else:
            return True
    return False
