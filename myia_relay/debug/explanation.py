"""What `f.explain(...)` returns: what the compiler did, and what its program costs, without running it.

How long a kernel takes at best follows from its operations, its bytes, and what this machine can do (`debug.machine`): the
"roofline" of S. Williams, A. Waterman and D. Patterson (CACM 2009). `f.profile(...)` says how near to that it comes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from html import escape
from typing import Any

from ..ir.node import Graph
from ..ir.rewrite import all_graphs
from ..utils.source import short_name
from . import machine
from .tables import html_table, show_bytes, show_count, show_time, text_table
from .work import flops_of, runs_of, size_of, sizes, spread

ARRAYS = 12  # of the memory plan that are shown: the largest
RIGHT = ("time", "nodes", "before", "graphs", "runs", "flops", "bytes", "at best", "of peak", "share", "offset", "ran")


@dataclass
class PassRun:
    """A pass or a stage, each time that it changed the program.

    Attributes:
        name: of the pass, or of the stage if `stage` is empty.
        stage: in which it ran.
        seconds: since the step before it: passes that changed nothing included.
        before, after: the number of applications.
    """

    name: str
    stage: str
    seconds: float
    before: int
    after: int


class Passes:
    """Watches a compilation: see `utils.debugging.observed`.

    Attributes:
        steps: the passes that changed something, in order.
        stages: after each stage, how many applications and graphs there are.
    """

    def __init__(self) -> None:
        self.steps: list[PassRun] = []
        self.stages: dict[str, tuple[int, int]] = {}
        self._nodes, self._since = 0, time.perf_counter()

    def __call__(self, name: str, graph: Graph, step: Any) -> None:
        seconds = time.perf_counter() - self._since
        if name == "inferred":  # the compilation begins, perhaps anew
            self.steps, self.stages, self._nodes = [], {}, 0
        graphs = all_graphs(graph)
        nodes = sum(len(g.nodes) for g in graphs)
        if step is None:
            for s in self.steps:
                s.stage = s.stage or name
            self.stages[name] = nodes, len(graphs)
        else:
            self.steps.append(PassRun(name, "", seconds, self._nodes, nodes))
        self._nodes, self._since = nodes, time.perf_counter()

    def by_name(self) -> list[list[str]]:
        """A table: the passes of each stage."""
        rows = [["stage", "pass", "ran", "time", "before", "nodes"]]
        groups: dict[tuple[str, str], list[PassRun]] = {}
        for step in self.steps:
            groups.setdefault((step.stage, step.name), []).append(step)
        for (stage, name), steps in groups.items():
            spent = show_time(sum(s.seconds for s in steps))
            rows.append([stage, name, str(len(steps)), spent, str(steps[0].before), str(steps[-1].after)])
        return rows


class Explanation(str):
    """The text, with the tables that it consists of.

    Attributes:
        sections: (title, rows with their head); without rows a line of text.
    """

    sections: list[tuple[str, list[list[str]]]]

    def __new__(cls, sections: list[tuple[str, list[list[str]]]]) -> Explanation:
        lines: list[str] = []
        for title, rows in sections:
            lines += [title, *(text_table(rows, RIGHT) if len(rows) > 1 else ())]
        out = super().__new__(cls, "\n".join(lines))
        out.sections = sections
        return out

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The tables."""
        return "".join(
            f"<p><b>{escape(title)}</b></p>" + (html_table(rows) if len(rows) > 1 else "")
            for title, rows in self.sections
        )


def explanation(
    name: str, program: Any, seconds: dict[str, float], passes: Passes, values: list, arguments: list[list[str]]
) -> Explanation:
    """The explanation of a program.

    Args:
        name: of the function.
        program: a native program, compiled with the option "inspect".
        seconds: the times of the stages.
        passes: what watched its compilation.
        values: its arguments, whose sizes count.
        arguments: a table of them.
    """
    lookup = sizes(program.graph, values).__getitem__
    stages = [["stage", "time", "nodes", "graphs"]]
    executed = all_graphs(program.graph)
    sized = {**passes.stages, "lowered": (sum(len(g.nodes) for g in executed), len(executed))}
    for stage, spent in seconds.items():
        nodes, graphs = map(str, sized.get(stage, ("", "")))
        stages.append([stage, show_time(spent), nodes, graphs])
    for part, spent in zip(("native code", "TVM and LLVM"), program.times):
        stages.append([f"  {part}", show_time(spent), "", ""])
    kernels, lines = _kernels(program, lookup)
    calls = f"native program {program.graph.name}: {len(program.kernels)} kernel calls of {program.functions} kernels"
    return Explanation(
        [
            (f"{name}: compiled in {show_time(sum(seconds.values()))}", stages),
            *([("arguments", arguments)] if len(arguments) > 1 else []),
            ("passes that changed the program", passes.by_name()),
            (calls, kernels),
            ("source lines, by the time that their kernels take at best", lines),
            *_memory(program, lookup),
            *((f"  row blocks: {rows} of {n} rows at a time", []) for n, rows in program.row_blocks()),
        ]
    )


def _kernels(program: Any, lookup: Any) -> tuple[list[list[str]], list[list[str]]]:
    """The tables of kernels and of source lines."""
    kernels = [["kernel", "runs", "flops", "bytes", "at best", "of peak", "limit", "lines"]]
    spent: dict[tuple, float] = {}
    parts: dict[tuple, set[str]] = {}
    texts: dict[tuple, str] = {}
    for region in program.regions:
        flops = flops_of(region.nodes, lookup)
        each = [size_of(n, lookup) for _, n in region.arrays]
        nbytes = None if any(n is None for n in each) else sum(n for n in each if n is not None)
        dtype = machine.float_of(region.nodes)
        best = machine.time_at_best(flops, nbytes, dtype)
        runs = runs_of(region.loops, lookup)
        seen: dict[str, None] = {}
        places = spread(region.nodes, lookup, region.loops)
        for place in sorted(places, key=lambda p: -places[p]):
            key = place.line
            seen[line_name(key)] = None
            spent[key] = spent.get(key, 0.0) + places[place] * (best[0] if best else 0.0) * (runs or 1)
            parts.setdefault(key, set()).add(place.part)
            texts[key] = place.stack[-1].text().strip() if place.stack else ""
        share = flops / best[0] / machine.flops_per_second(dtype) if best and flops else 0.0
        kernels.append(
            [
                region.name + (" (library)" if region.library else ""),
                "?" if runs is None else str(runs),
                show_count(flops) if flops else "",
                show_bytes(nbytes),
                show_time(best[0]) if best else "",
                f"{share:.0%}" if share else "",
                best[1] if best else "",
                " ".join(seen),
            ]
        )
    total = sum(spent.values()) or 1.0
    lines = [["share", "at best", "line", "in", "passes", "source"]]
    for key in sorted(spent, key=lambda k: -spent[k]):
        row = [f"{spent[key] / total:.1%}", show_time(spent[key]), line_name(key), key[2]]
        lines.append([*row, ", ".join(sorted(parts[key], reverse=True)), texts[key]])
    return kernels, lines


def line_name(line: tuple[str, int, str]) -> str:
    """How tables name a line."""
    return f"{short_name(line[0])}:{line[1]}" if line[1] else "(made by the compiler)"


def _memory(program: Any, lookup: Any) -> list[tuple[str, list[list[str]]]]:
    """The memory plan: what calls keep, and the largest arrays of the arena."""
    placed = [s for s in program.storages if s.kind == "arena" and s.first >= 0 and s.offset is not None]
    size = {s: size_of(s.nbytes, lookup) or 0 for s in placed}
    changes = sorted(
        [(s.first, 1, size[s]) for s in placed if s.place is None]
        + [(s.last + 1, 0, -size[s]) for s in placed if s.place is None]
    )
    live = peak = 0
    for _, _, change in changes:
        live += change
        peak = max(peak, live)
    made: dict[Any, list[str]] = {}
    for region in program.regions:
        for storage, _ in region.arrays:
            made.setdefault(storage, []).append(region.name)
    rows = [["array", "bytes", "offset", "from", "to"]]
    for s in sorted(placed, key=lambda s: -size[s])[:ARRAYS]:
        users = made.get(s, [""])
        note = f"{'array' if s.name == 'm' else s.name}{' (in the place of another)' if s.place is not None else ''}"
        rows.append([note, show_bytes(size[s]), str(size_of(s.offset, lookup)), users[0], users[-1]])
    kinds = [
        f"{show_bytes(sum(size_of(s.nbytes, lookup) or 0 for s in program.storages if s.kind == kind))} of {what}"
        for kind, what in (("input", "arguments and constants"), ("ref", "models"), ("out", "results"))
        if any(s.kind == kind for s in program.storages)
    ]
    arena = size_of(program.arena, lookup)
    title = (
        f"memory: an arena of {show_bytes(arena) if arena is not None else program.arena}, for {len(placed)} arrays of "
        f"{show_bytes(sum(size.values()))}, of which at most {show_bytes(peak)} are in use at once"
    )
    return [(title + "".join(f"; {k}" for k in kinds), rows if placed else [])]


__all__ = ["Explanation", "Passes", "explanation"]
