"""Calls with lists like those of an earlier call: from the objects to machine code, without a key of their types.

Idea: what finds a program looks at every argument, to tell what it is. Most calls of a function get what the call before got. So
the function that reads a list of that type is tried at once: it finds out anyway whether the list is one.

Input: the arguments of a call, and what runs its program. Output: a function of such arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ...abstract.reading import reader
from ...abstract.types import List
from .arguments import PLAIN
from .columns import ListsAsData


def direct(
    args: tuple,
    listed: ListsAsData,
    result: Callable[..., Any],
    again: Callable,
    unread: Collection[int] = (),
    changes: Sequence[int] = (),
    shared: Callable[[List], Callable[[list], list] | None] = lambda t: None,
) -> Callable | None:
    """What makes a call with numbers and lists of the types that these have.

    Args:
        args: of the call.
        listed: which lists are data.
        result: `(leaves) -> result`, with a program for these types; if it changes lists, `([list, columns, ...], leaves) ->
            result`.
        again: called with the arguments where a list is of another type, where one object may be in the arguments twice of which
            some are changed, and where there was an exception. Ints are not looked at.
        unread: the leaves that the program does not read.
        changes: which arguments are changed, in the order in which `result` takes them.
        shared: gives what looks for lists and dicts in a list that others have too.

    Returns:
        None where there is something else among the arguments, or no list that machine code reads.
    """
    names: dict[str, Any] = {"result": result, "again": again, "apart": _apart}
    given = ", ".join(f"a{k}" for k in range(len(args)))
    lines: list[str] = []
    leaves: list[str] = []
    lists: dict[int, str] = {}  # argument -> itself and its columns
    count = 0  # leaves so far
    inside: list[int] = []  # arguments that hold what others may hold
    for k, arg in enumerate(args):
        kind = type(arg)
        if kind in PLAIN:
            count += 1
            leaves.append(f"a{k}")
            continue
        found = reader(arg) if kind is list and listed and arg else None
        if found is None or not found.alone and listed < ListsAsData.NO_ARRAYS:
            return None
        names[f"read{k}"] = found.without({leaf - count for leaf in unread})
        count += 1 if found.alone else len(found.places)
        tests = [f"(c{k} := read{k}(a{k})) is None"]
        if changes and not found.alone:
            names[f"shared{k}"] = shared(found.type)
            if names[f"shared{k}"] is None:
                return None
            inside.append(k)
        if changes:
            tests += [f"a{k} is a{other}" for other in lists if k in changes or other in changes]
        lines += [f"    if {' or '.join(tests)}:", f"        return again({given})"]
        leaves.append(f"c{k}" if found.alone else f"*c{k}")
        lists[k] = f"a{k}, (c{k}, c{k})" if found.alone else f"a{k}, c{k}"
    if not lists:
        return None
    values = f"[{', '.join(leaves)}]"
    if inside:
        lines += [f"    s{k} = shared{k}(a{k})" for k in inside]
        objects = ", ".join([*(f"a{k}" for k in lists), *(f"*s{k}" for k in inside)])
        lines += [
            f"    if ({' or '.join(f's{k}' for k in inside)}) and not apart([{objects}]):",
            f"        return again({given})",
        ]
    if changes:
        changed = ", ".join(lists[k] for k in changes)
        lines += ["    try:", f"        return result([{changed}], {values})"]
        lines += ["    except MemoryError:", "        raise", "    except Exception:", f"        return again({given})"]
    else:
        lines.append(f"    return result({values})")
    source = "\n".join([f"def call({given}):", *lines, ""])
    exec(compile(source, "<myia_relay call with lists>", "exec"), names)
    return names["call"]


def _apart(objects: list) -> bool:
    """Whether no object is there twice."""
    return len(set(map(id, objects))) == len(objects)
