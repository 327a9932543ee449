"""Calls of programs, also of those that change their arguments in place: what they compute is written into the caller's objects.

The program is given copies, or memory of its own, and returns the final values; the caller's objects change after it has ended
(`ArgumentChange.plan`); lists that are data are written by machine code (`written_lists`). If it raises, nothing has changed, and
the Python function itself is run instead, which leaves the arguments and raises as CPython does: the program has no other effects
then (`pipeline.refuse_effects`). Python also runs it where an array is read-only. Objects that the program took for different ones,
and that are one, are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from .abstract.families import Misfit
from .backend.native.writing import shared
from .infer.arguments.arguments import share_memory
from .infer.engine.program import ArgumentChange
from .infer.values.treedef import TreeDef
from .pipeline import Compiled, assembled, finish
from .utils.errors import SliceBeyond, TypeError_, ValueError_
from .utils.source import Origin
from .written_lists import put, written_lists


def call_program(relay: Any, compiled: Compiled, leaves: list, args: tuple, kwargs: dict) -> Any:
    """Call a program.

    Args:
        relay: the decorated function.
        compiled: the program.
        leaves: what the arguments consist of.
        args, kwargs: the arguments, which it may change.

    Returns:
        Its result.

    Raises:
        TypeError_: an argument cannot be written.
        Misfit: an argument does not fit its annotations.
        SliceBeyond: a slice reaches beyond its axis.
        MemoryError: there is too little memory.
    """
    if not compiled.program.changes:
        return finish(compiled, leaves)
    function, options, place = relay.__relay_function__, relay.options, relay._place
    program = compiled.program
    given = [*args, *kwargs.values()]
    changed = {c.position: c for c in program.changes}
    names = {k: c.name for k, c in changed.items()}
    lists = written_lists(compiled) if options["executor"] == "native" else None
    plans = {c.position: c.plan for c in program.changes}
    if lists is not None:
        plans |= {c.position: plan for c, plan in zip(program.written, lists.plans, strict=True)}
    for k, change in changed.items():
        if not _fits(given[k], plans[k]):
            raise TypeError_(
                f"'{change.name}' is changed in place, and is a {type(given[k]).__name__}: give a NumPy array, a list or a dict",
                place(),
            )
    outside = [h.fetch(leaves) for h in program.hidden if h.make is None]
    outside += [d.place for d in program.dependencies if d.kind == "content"]
    if outside or not _stand_alone(given, program.changes[0]):
        treedefs: Any = compiled.arguments or [None] * len(given)
        objects = [(names.get(k), _objects(value, treedefs[k])) for k, value in enumerate(given)]
        _refuse_shared([*objects, *(("", _objects(value)) for value in outside)], place)
    if not all(o.flags.writeable for k in changed for o in _written(given[k], plans[k])):
        return function(*args, **kwargs)
    outcome: Any = _RAISED
    try:
        own = leaves
        if options["executor"] != "native":  # whose results may be arguments
            own = [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        hidden = []
        for h in program.hidden:
            hidden.append(h.fetch([*own, *hidden]))
        found = compiled.run(*own, *hidden) if lists is None else lists.call(given, leaves, hidden)
        outcome = assembled(compiled, [*leaves, *hidden], found)
    except (Misfit, SliceBeyond, MemoryError):  # at the last of which changes may have been written in part
        raise
    except Exception as error:
        if options["debug_nans"] and isinstance(error, FloatingPointError):
            raise
    if outcome is _RAISED:
        return function(*args, **kwargs)
    written = program.written
    result, *finals = outcome if written else (outcome,)
    for change, final in zip(written, finals, strict=True):
        target, plan = given[change.position], plans[change.position]
        if plan is not None:
            _write(target, final, plan)
        for path in change.results:
            result = put(result, path, target)
    return result


_RAISED = object()


def _stand_alone(given: list[Any], change: ArgumentChange) -> bool:
    """Whether an argument is a list of numbers or a contiguous array, and all others are numbers: nothing can be shared."""
    if change.plan != "set" or sum(type(v) not in _NUMBERS for v in given) != 1:
        return False
    target = given[change.position]
    return not isinstance(target, np.ndarray) or target.flags.forc


def _fits(target: Any, plan: Any) -> bool:
    """Whether an object of the caller's can be written by a plan."""
    if plan == "set":
        return isinstance(target, np.ndarray | list)
    if not isinstance(plan, list):
        return True
    if plan[0] == "dict":
        return all(k not in target or _fits(target[k], p) for k, p in plan[1].items())
    if plan[0] == "every":
        if plan[1] == "set" and (_only(list, target) or _only(np.ndarray, target)):
            return True
        return all(_fits(part, plan[1]) for part in target)
    if plan[0] == "parts":
        return all(map(_fits, _parts(target, plan), plan[2]))
    return all(map(_fits, target, plan[1]))


def _only(kind: type, entries: list) -> bool:
    """Whether all entries of a list are of a class; a function of CPython looks at them."""
    return {kind}.issuperset(map(type, entries))


def _objects(value: Any, treedef: TreeDef | None = None) -> list[Any]:
    """The lists, dicts and arrays in a value; if its treedef is known, without those that are in nothing but it."""
    out: list[Any] = []
    if treedef is not None and treedef.tag == "columns" and (find := shared(treedef.info)) is not None:
        return [value, *find(value)]
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, np.ndarray):
            out.append(top)
        elif isinstance(top, list | dict):
            out.append(top)
            entries = top.values() if isinstance(top, dict) else top
            others = set(map(type, entries)) - _NUMBERS
            if others == {list} and type(top) is list and _NUMBERS.issuperset(map(type, chain.from_iterable(top))):
                out += (e for e in top if type(e) is list)
            elif others == {np.ndarray}:
                out += (e for e in entries if type(e) is np.ndarray)
            elif others:
                stack.extend(e for e in entries if type(e) not in _NUMBERS)
        elif isinstance(top, tuple):
            if not _NUMBERS.issuperset(map(type, top)):
                stack.extend(e for e in top if type(e) not in _NUMBERS)
        elif hasattr(type(top), "__relay_ref__"):
            stack.extend(top.arrays)
        elif hasattr(type(top), "__dataclass_fields__"):
            stack.extend(getattr(top, f) for f in type(top).__dataclass_fields__)
    return out


_NUMBERS = frozenset((int, float, bool, str, type(None)))


def _refuse_shared(objects: list[tuple[str | None, list]], place: Callable[[], Origin | None]) -> None:
    """Refuse objects of which a changed argument may be a part, or that may be a part of one: the program takes them for different.

    Args:
        objects: for each argument, its name if it is changed, and the objects in it; "" for what comes from outside.
        place: where the function is defined.

    Raises:
        ValueError_: there are some.
    """
    every = [o for _, found in objects for o in found]
    if len(set(map(id, every))) == len(every) and not any(
        issubclass(kind, np.ndarray) for kind in set(map(type, every))
    ):
        return
    owners: dict[int, str | None] = {}
    arrays: list[tuple[str | None, np.ndarray]] = []
    for name, found in objects:
        for o in found:
            if isinstance(o, np.ndarray):
                arrays.append((name, o))
            elif id(o) in owners and (name or owners[id(o)]):
                _refuse(name or owners[id(o)], "the same list or dict", place)
            else:
                owners[id(o)] = name or owners.get(id(o))
    if len({id(one) for _, one in arrays}) == len(arrays) and all(one.flags.owndata for _, one in arrays):
        return
    before: list[tuple[int, str | None, np.ndarray]] = []  # arrays that may reach to what follows, and where they end
    for low, high, name, one in sorted(
        ((*_bounds(one), name, one) for name, one in arrays), key=lambda found: found[:2]
    ):
        if name and _overlaps_itself(one):
            _refuse(name, "elements of it share memory", place)
        before = [found for found in before if found[0] > low]
        for _, other, two in before:
            if (name or other) and share_memory(one, two):
                _refuse(name or other, "arrays that share memory", place)
        before.append((high, name, one))


def _bounds(x: np.ndarray) -> tuple[int, int]:
    """The addresses of the first byte of an array and behind its last one."""
    first = x.__array_interface__["data"][0]
    reach = [stride * (size - 1) for stride, size in zip(x.strides, x.shape, strict=True) if x.size]
    return first + sum(r for r in reach if r < 0), first + sum(r for r in reach if r > 0) + x.itemsize


def _refuse(name: str | None, what: str, place: Callable[[], Origin | None]) -> None:
    raise ValueError_(
        f"'{name}' is changed in place, and this call gives it an object that is in its arguments, or in what the function reads, "
        f"more than once ({what}); give it a copy",
        place(),
    )


def _overlaps_itself(x: np.ndarray) -> bool:
    """Whether two elements of an array may be one place in memory."""
    if x.flags.forc:
        return False
    reach = x.itemsize
    for stride, size in sorted((abs(s), n) for s, n in zip(x.strides, x.shape, strict=True) if n > 1):
        if stride < reach:
            return x.size > 0
        reach = stride * (size - 1) + reach
    return False


def _parts(value: Any, plan: Any) -> list[Any]:
    """The parts of a tuple, or of an instance of a dataclass."""
    return list(value) if plan[1] is None else [getattr(value, name) for name in plan[1]]


def _written(target: Any, plan: Any) -> Iterator[np.ndarray]:
    """The arrays that a plan writes."""
    if plan == "set":
        if isinstance(target, np.ndarray):
            yield target
    elif isinstance(plan, list) and plan[0] == "every":
        if plan[1] == "set" and _only(np.ndarray, target):
            yield from target
        elif plan[1] != "set" or not _only(list, target):
            for part in target:
                yield from _written(part, plan[1])
    elif isinstance(plan, list) and plan[0] == "parts":
        for part, inner in zip(_parts(target, plan), plan[2], strict=True):
            yield from _written(part, inner)
    elif isinstance(plan, list):
        pairs = (
            [(target[k], p) for k, p in plan[1].items() if k in target]
            if plan[0] == "dict"
            else zip(target, plan[1], strict=False)
        )
        for part, inner in pairs:
            yield from _written(part, inner)


def _write(target: Any, final: Any, plan: Any) -> None:
    """Write a final value into an object of the caller's."""
    if plan == "set":
        target[... if isinstance(target, np.ndarray) else slice(None)] = final
        return
    if plan[0] == "dict":
        for key, inner in plan[1].items():
            if inner == "new":
                target[key] = final[key]
            elif inner is not None:
                _write(target[key], final[key], inner)
        return
    if plan[0] == "parts":
        for part, value, inner in zip(_parts(target, plan), _parts(final, plan), plan[2], strict=True):
            if inner is not None:
                _write(part, value, inner)
        return
    if plan[0] == "every":
        if plan[1] == "set" and _only(list, target):
            for part, value in zip(target, final, strict=False):
                part[:] = value
        elif plan[1] == "set" and _only(np.ndarray, target):
            for part, value in zip(target, final, strict=False):
                part[...] = value
        else:
            for part, value in zip(target, final, strict=False):
                _write(part, value, plan[1])
        target[len(target) :] = final[len(target) :]
        return
    count = len(plan[1])
    for k, inner in enumerate(plan[1]):
        if inner == "new":
            target[k] = final[k]
        elif inner is not None:
            _write(target[k], final[k], inner)
    target[count:] = final[count:]
