"""Calls with lists like those of an earlier call: from the objects to machine code, without a key of their types.

Idea: what finds a program looks at every argument, to tell what it is. Most calls of a function get what the call before got. So
the function that reads a list of that type is tried at once: it finds out anyway whether the list is one.

Input: the arguments of a call, and what runs its program. Output: a function of such arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...abstract.reading import reader
from .arguments import PLAIN
from .columns import ListsAsData


def direct(args: tuple, listed: ListsAsData, result: Callable[[list], Any], again: Callable) -> Callable | None:
    """What makes a call with numbers and lists of the types that these have.

    Args:
        args: of the call.
        listed: which lists are data.
        result: `(leaves) -> result`, with a program for these types.
        again: called with the arguments where a list is of another type. Ints are not looked at.

    Returns:
        None where there is something else among the arguments, or no list that machine code reads.
    """
    names: dict[str, Any] = {"result": result, "again": again}
    given = ", ".join(f"a{k}" for k in range(len(args)))
    lines, leaves = [], []
    for k, arg in enumerate(args):
        kind = type(arg)
        if kind in PLAIN:
            leaves.append(f"a{k}")
            continue
        found = reader(arg) if kind is list and listed and arg else None
        if found is None or not found.alone and listed < ListsAsData.NO_ARRAYS:
            return None
        names[f"read{k}"] = found.columns
        lines += [f"    c{k} = read{k}(a{k})", f"    if c{k} is None:", f"        return again({given})"]
        leaves.append(f"c{k}" if found.alone else f"*c{k}")
    if not lines:
        return None
    source = "\n".join([f"def call({given}):", *lines, f"    return result([{', '.join(leaves)}])", ""])
    exec(compile(source, "<myia_relay call with lists>", "exec"), names)
    return names["call"]
