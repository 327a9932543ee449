"""What makes a program long to compile: loops that are written out, functions of many specialisations, arguments of many parts.

Input: an engine at work. Output: sentences for `utils.patience`, the most telling first.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

from ...ir.node import Apply, Graph
from ...utils.source import Origin
from .frames import Specialisation

MANY_ITERATIONS = 30
MANY_VERSIONS = 8
MANY_LEAVES = 100
SHOWN = 3  # of a kind


def reasons(
    written_out: Counter[Apply], specs: Iterable[Specialisation], leaves: int, place: Origin | None, applied: int
) -> list[str]:
    """What makes the program long, as far as it has got.

    Args:
        written_out: loops, and how many of their iterations are written one by one.
        specs: the specialisations.
        leaves: how many the arguments have.
        place: where inference is.
        applied: how many operations it has evaluated.
    """
    found: list[str] = []
    loops = [(n, node) for node, n in written_out.most_common(SHOWN) if n >= MANY_ITERATIONS]
    for count, node in loops:
        found.append(f"{line_of(node.origin)}: this loop is written out, {count:,} iterations so far")
    if loops:
        found.append(
            "a loop over entries of several types, or strings, is written out, and so is one whose index has to be known (it "
            "chooses among values of several types or shapes) or whose variables change their types: loop over a range or array, "
            "and keep a variable of one type"
        )
    versions = Counter(spec.source for spec in specs if isinstance(spec.source, Graph))
    functions = [(g, n) for g, n in versions.most_common(SHOWN) if n >= MANY_VERSIONS and isinstance(g, Graph)]
    for graph, count in functions:
        found.append(
            f"{line_of(graph.origin)}: {graph.name} has {count:,} versions so far, one for each type of its arguments"
        )
    if functions:
        found.append(
            "the number of entries of a list or tuple, a string, and a function are parts of a type; "
            "give such a function arrays, numbers, or lists of numbers"
        )
    if leaves >= MANY_LEAVES:
        found.append(
            f"the arguments have {leaves:,} numbers and arrays in lists, tuples and dicts, and each is compiled by itself; "
            "give arrays where there are many of a kind"
        )
    if not found:
        found.append(f"{line_of(place)}: {applied:,} operations so far; a long program takes time in proportion")
    return found


def line_of(origin: Origin | None) -> str:
    """A place for a sentence."""
    return (
        "somewhere"
        if origin is None or origin.loc is None
        else f"{os.path.basename(origin.loc.file)}, line {origin.loc.line}"
    )
