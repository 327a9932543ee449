"""Which lists among a program's arguments machine code writes (`backend.native.writing`), and calls of programs with such lists.

Idea: a list that is data arrives as columns, and its final value is a leaf of the result. Which list and which columns belong to
the leaf is the same for all calls, as it follows from the treedefs and the plan. What else changes, arrays and the keys of dicts
that are structure, is left to `changing`.

Input: a compiled program and the treedefs of its arguments. Output: `WrittenLists`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .abstract.types import List, Scalar, Struct
from .backend.native import writing
from .infer.values.treedef import TreeDef
from .pipeline import Compiled, assembled


@dataclass(frozen=True)
class _Target:
    """A list of the caller's.

    Attributes:
        position: of the argument that it is in.
        path: keys and indices that lead to it from there.
        leaves: of the arguments that are its columns.
    """

    position: int
    path: tuple[Any, ...]
    leaves: slice

    def columns(self, leaves: list) -> tuple[np.ndarray, ...]:
        """Its columns; a list of numbers has the one of its length no more."""
        found = tuple(map(np.ascontiguousarray, leaves[self.leaves]))
        return found if len(found) > 1 else (*found, *found)


@dataclass
class WrittenLists:
    """How a program's lists are written.

    Attributes:
        run: `(changed, *leaf values)`: the program; `changed` has for each list itself and its columns.
        targets: the lists.
        plans: for each change with a final value what remains of its plan.
    """

    run: Callable
    targets: list[_Target]
    plans: list[Any]

    def call(self, given: list, leaves: list, hidden: list) -> Any:
        """What the program returns, with the lists written."""
        changed = []
        for target in self.targets:
            found = given[target.position]
            for key in target.path:
                found = getattr(found, key.name) if isinstance(key, _FieldOf) else found[key]
            changed += found, target.columns(leaves)
        return self.run(changed, *leaves, *hidden)


@dataclass(frozen=True)
class _FieldOf:
    """A field of a dataclass."""

    name: str


def written_lists(compiled: Compiled) -> WrittenLists | None:
    """How the lists of a program are written by machine code; None where there are none."""
    if compiled.in_place is None:
        found = _find(compiled)
        if found is None and not writing.in_use():
            return None  # at a later call there may be machine code
        compiled.in_place = found or False
    return compiled.in_place or None


def _find(compiled: Compiled) -> WrittenLists | None:
    entry, program = getattr(compiled.run, "entry", None), compiled.program
    if not writing.in_use() or compiled.arguments is None or entry is None or not program.written:
        return None
    output = entry.signature.output
    if isinstance(output, Struct) and any(isinstance(e, Struct) for e in output.elems):
        return None
    ends = _ends(compiled.arguments)
    finals = _ends(program.result.parts)
    search = _ListSearch(compiled)
    for part, first, change in zip(program.result.parts[1:], finals[:-1], program.written, strict=True):
        position = change.position
        before = ends[position - 1] if position else 0
        search.position = position
        search.plans.append(search.rest(compiled.arguments[position], part, change.plan, before, first, ()))
    if not search.writers:
        return None
    return WrittenLists(entry.changing(search.writers), search.targets, search.plans)


def _ends(treedefs: Any) -> list[int]:
    """How many leaves there are up to the end of each treedef."""
    out: list[int] = []
    for treedef in treedefs:
        out.append((out[-1] if out else 0) + sum(1 for _ in treedef.leaves()))
    return out


@dataclass
class _ListSearch:
    """Looks for lists that can be written."""

    compiled: Compiled
    position: int = 0
    writers: dict[int, Callable] = field(default_factory=dict)
    targets: list[_Target] = field(default_factory=list)
    plans: list[Any] = field(default_factory=list)

    def rest(self, given: TreeDef, final: TreeDef, plan: Any, before: int, after: int, path: tuple) -> Any:
        """What remains of a plan without the lists in it that machine code writes.

        Args:
            given: the treedef of an object of the caller's, and
            final: of its final value.
            plan: of its change.
            before: the first leaf of the object among the arguments, and
            after: of its final value in the result.
            path: to the object from the argument that it is in.
        """
        if plan is None:
            return None
        if final.tag == "dyn" and isinstance(final.info, List) and given.tag in ("columns", "listed"):
            return None if self.writes(given, final.info, plan, before, after, path) else plan
        if given.tag != "seq" or final.tag != "seq" or plan == "set" or plan[0] == "every":
            return plan
        left = list(plan)
        if plan[0] == "dict":
            left[1] = dict(plan[1])
        else:
            left[-1] = list(plan[-1])
        for key, name, k, inside in _parts(given, plan):
            if k < len(given.parts) and k < len(final.parts) and inside != "new":
                starts = before + [0, *_ends(given.parts)][k], after + [0, *_ends(final.parts)][k]
                left[-1][key] = self.rest(given.parts[k], final.parts[k], inside, *starts, (*path, name))
        return left

    def writes(self, given: TreeDef, t: List, plan: Any, before: int, after: int, path: tuple) -> bool:
        """Whether machine code writes a list, which is noted then."""
        kind, leaf = self.compiled.returned[after]
        wanted = given.info if given.tag == "columns" else List(Scalar(given.parts[0].info.dtype, True))
        if kind != "out" or wanted != t or leaf in self.writers or self.compiled.returned.count((kind, leaf)) > 1:
            return False
        write = writing.writer(t, plan)
        if write is None:
            return False
        self.writers[leaf] = write
        self.targets.append(_Target(self.position, path, slice(before, before + len(given.parts))))
        return True


def _parts(given: TreeDef, plan: Any) -> Iterator[tuple[Any, Any, int, Any]]:
    """The parts of a structure that a plan may change: the key in the plan, what leads to the part, its number, its plan."""
    if plan[0] == "dict":
        for key, inner in plan[1].items():
            if key in given.info[1] and inner is not None:
                yield key, key, given.info[1].index(key), inner
    else:
        names = plan[1] if plan[0] == "parts" else None
        for k, inner in enumerate(plan[-1]):
            if inner is not None:
                yield k, k if names is None else _FieldOf(names[k]), k, inner


def direct_result(compiled: Compiled) -> Callable[[list, list], Any] | None:
    """What makes the result of a program that changes lists alone, of which each is an argument.

    Returns:
        `(changed, leaves) -> result`, as `WrittenLists.run` and without other arguments; None where there is more to do.
    """
    program = compiled.program
    lists = None if program.hidden else written_lists(compiled)
    if lists is None or any(p is not None for p in lists.plans) or len(program.changes) != len(lists.targets):
        return None
    if any(target.path for target in lists.targets) or any(d.kind == "content" for d in program.dependencies):
        return None
    run, own = lists.run, program.result.parts[0]
    if own.tag == "static" and own.info.value is None and not any(change.results for change in program.changes):
        return lambda changed, leaves: run(changed, *leaves) and None
    paths = [(path, 2 * k) for k, change in enumerate(program.changes) for path in change.results]

    def result(changed: list, leaves: list) -> Any:
        found = assembled(compiled, leaves, run(changed, *leaves))[0]
        for path, k in paths:
            found = put(found, path, changed[k])
        return found

    return result


def put(result: Any, path: tuple[int, ...], value: Any) -> Any:
    """A result in which an argument is returned, given that."""
    return tuple(value if k == path[0] else v for k, v in enumerate(result)) if path else value


__all__ = ["WrittenLists", "direct_result", "put", "written_lists"]
