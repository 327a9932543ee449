"""What `f.profile(...)` returns: where the time of a program goes, by source line and by kernel.

A compiled program that times itself (`backend.native.timing`) says how long each of its regions took. The time of a region is
divided among the source lines that its applications come from, by their estimated costs (`debug.work`). What a call takes
beside its native code is a line of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..abstract.types import Ref
from ..backend.native.timing import TimedRegion, Timing
from ..ir.node import Graph
from ..ir.rewrite import all_graphs
from ..utils.files import write_atomically
from ..utils.source import Loc, short_name
from . import flame, machine
from .tables import html_table, show_bytes, show_count, show_time, text_table
from .work import SourcePlace, flops_of, size_of, sizes, spread

SECONDS = 0.3  # how long a program runs to be measured
CALLS = 10_000  # how often at most
SHOWN = 0.001  # the share of the time from which tables name a kernel
PARTS = ("forward", "backward", "tangent")
CALL = "(the call from Python)"
OWN = "(made by the compiler)"


@dataclass
class Line:
    """The time of a source line in one call.

    Attributes:
        file, line, function: which one; of what no line has made, the line is 0.
        seconds: in all.
        parts: the seconds of the forward pass, the backward pass, and of tangents.
        text: the source.
    """

    file: str
    line: int
    function: str
    seconds: float
    parts: dict[str, float]
    text: str

    @property
    def place(self) -> str:
        """How tables name it."""
        return f"{short_name(self.file)}:{self.line}" if self.line else self.file


@dataclass
class KernelTime:
    """The time of a kernel in one call.

    Attributes:
        name: of the kernel; of what is no kernel, what it is.
        kind: "kernel", "loop", "call" or "host"; see `backend.native.timing.TimedRegion`.
        seconds: in all.
        count: how often it ran.
        flops, nbytes: of one run; None where they are not known.
        share: of what the machine can do at best.
        library: whether a library (BLAS, LAPACK) does it.
        places: the shares of source lines in it.
    """

    name: str
    kind: str
    seconds: float
    count: float
    flops: int | None
    nbytes: int | None
    share: machine.Peak | None
    library: bool
    places: dict[SourcePlace, float]

    @property
    def part(self) -> str:
        """The part of the program that most of it belongs to."""
        return max(self.places, key=lambda p: self.places[p]).part if self.places else "forward"


class Profile:
    """Where the time of a call goes.

    Attributes:
        name: of the function.
        seconds: of one call, the mean.
        calls: how many were measured.
        lines: the source lines, most expensive first; their times add up to `seconds`.
        kernels: the kernels, most expensive first, and what else native code does.
        forward, backward: the seconds of the two passes.
    """

    def __init__(self, name: str, graph: Graph, values: list, timing: Timing, seconds: float, calls: int):
        self.name, self.seconds, self.calls = name, seconds, calls
        self.ticks = machine.ticks_per_second()
        lookup = sizes(graph, values).__getitem__
        self._timing = timing
        self._of: dict[int, KernelTime] = {}
        rest = seconds
        for number, (region, cycles, count) in enumerate(timing.totals()):
            spent = cycles / self.ticks / calls
            rest -= spent
            if count:
                self._of[number] = _kernel_time(region, spent, count / calls, lookup)
        self.outside = max(rest, 0.0)
        self.kernels = sorted((k for k in self._of.values() if k.kind != "host"), key=lambda k: -k.seconds)
        self.lines = self._lines()
        self.forward, self.backward = (sum(line.parts.get(p, 0.0) for line in self.lines) for p in PARTS[:2])
        self._events = timing.events()

    def _lines(self) -> list[Line]:
        found: dict[tuple, Line] = {}
        for kernel in self._of.values():
            for place, share in (kernel.places or {SourcePlace("forward", ()): 1.0}).items():
                key = place.line
                if key not in found:
                    text = place.stack[-1].text().strip() if place.stack else ""
                    found[key] = Line(key[0] or OWN, *key[1:], 0.0, {}, text)
                line, spent = found[key], kernel.seconds * share
                line.seconds += spent
                line.parts[place.part] = line.parts.get(place.part, 0.0) + spent
        if self.outside:
            found["call", 0, ""] = Line(CALL, 0, "", self.outside, {}, "")
        return sorted(found.values(), key=lambda line: -line.seconds)

    def _rows(self) -> list[list[str]]:
        parts = [p for p in PARTS if p != "tangent" or any(p in line.parts for line in self.lines)]
        rows = [["time", "share", *parts, "line", "in", "source"]]
        for line in self.lines:
            each = [show_time(line.parts[p]) if line.parts.get(p) else "" for p in parts]
            rows.append(
                [
                    show_time(line.seconds),
                    f"{line.seconds / self.seconds:.1%}",
                    *each,
                    line.place,
                    line.function,
                    line.text,
                ]
            )
        return rows

    def _kernel_rows(self) -> list[list[str]]:
        rows = [["time", "share", "runs", "flops", "GF/s", "bytes", "of peak", "kernel", "lines"]]
        shown = [k for k in self.kernels if k.seconds >= SHOWN * self.seconds]
        for k in shown:
            each = k.seconds / k.count
            rate = f"{k.flops / each / 1e9:.3g}" if k.flops and each else ""
            share = f"{k.share.share:.0%} {k.share.of}" if k.share else ""
            name = k.name + (" (library)" if k.library else "") + ("" if k.kind == "kernel" else f" ({k.kind})")
            lines = dict.fromkeys(
                (f"{short_name(p.line[0])}:{p.line[1]}" if p.stack else OWN)
                for p in sorted(k.places, key=lambda p: -k.places[p])
            )
            known = [show_count(k.flops) if k.flops else "", rate, show_bytes(k.nbytes), share]
            rows.append(
                [show_time(k.seconds), f"{k.seconds / self.seconds:.1%}", f"{k.count:g}", *known, name, " ".join(lines)]
            )
        if others := self.kernels[len(shown) :]:
            spent = sum(k.seconds for k in others)
            rows.append([show_time(spent), f"{spent / self.seconds:.1%}", *[""] * 5, f"({len(others)} others)", ""])
        return rows

    def _title(self) -> str:
        passes = ", ".join(
            f"{p} {show_time(s)} ({s / self.seconds:.0%})"
            for p, s in (("forward", self.forward), ("backward", self.backward))
            if s
        )
        calls = "1 call" if self.calls == 1 else f"the mean of {self.calls:,} calls"
        return f"{self.name}: {show_time(self.seconds)} a call, {calls}; {passes}"

    def __str__(self) -> str:
        right = "time", "share", "runs", "flops", "GF/s", "bytes", "of peak", *PARTS
        return "\n".join(
            [
                self._title(), "", "source lines", *text_table(self._rows(), right),
                "", "kernels", *text_table(self._kernel_rows(), right),
            ]
        )  # fmt: skip

    __repr__ = __str__

    def to_svg(self) -> str:
        """A flame picture: calls, source lines and kernels, each as wide as its time; blue is forward, orange backward."""
        return flame.draw(flame.tree(self.name, self._stacks()), show_time)

    def _stacks(self):
        for kernel in self._of.values():
            for place, share in (kernel.places or {SourcePlace("forward", ()): 1.0}).items():
                yield (
                    (place.part, *_names(place.stack), kernel.name or "between kernels"),
                    place.part,
                    kernel.seconds * share,
                )
        if self.outside:
            yield (CALL,), "", self.outside

    def _repr_html_(self) -> str:
        """The picture over the two tables."""
        from html import escape

        return (
            f"<p><b>{escape(self._title())}</b></p>{self.to_svg()}"
            f"{html_table(self._rows())}{html_table(self._kernel_rows())}"
        )

    def to_chrome_trace(self, path: Any) -> None:
        """Write when each kernel ran in the last call, for chrome://tracing or https://ui.perfetto.dev.

        Calls and source lines are around the kernels, as in the flame picture.

        Args:
            path: a JSON file.

        Raises:
            OSError: it cannot be written.
        """
        write_atomically(path, json.dumps({"traceEvents": self.trace_events(), "displayTimeUnit": "ns"}).encode())

    def trace_events(self) -> list[dict[str, Any]]:
        """The events of the trace, in the format that Chrome and Perfetto read."""
        (recorded, more), scale = self._events, 1e6 / self.ticks
        head = [
            {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": self.name}},
            {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "native code"}},
        ]
        if not recorded:
            return head
        out: list[dict[str, Any]] = []
        open_: list[tuple[str, int]] = []  # the calls that are in progress, and where their events are
        origin = at = self._timing.begin
        for number, end in recorded:
            kernel = self._of[number]
            place = max(kernel.places, key=lambda p: kernel.places[p]) if kernel.places else SourcePlace("forward", ())
            names = (place.part, *_names(place.stack)) if kernel.kind != "host" else tuple(n for n, _ in open_)
            same = 0
            while same < min(len(names), len(open_)) and names[same] == open_[same][0]:
                same += 1
            del open_[same:]
            start = (at - origin) * scale
            for name in names[same:]:
                open_.append((name, len(out)))
                out.append({"ph": "X", "pid": 1, "tid": 1, "name": name, "cat": place.part, "ts": start, "dur": 0.0})
            if kernel.kind != "host":
                for _, index in open_:
                    out[index]["dur"] = (end - origin) * scale - out[index]["ts"]
                details = {"flops": kernel.flops, "bytes": kernel.nbytes, "library": kernel.library}
                out.append(
                    {"ph": "X", "pid": 1, "tid": 1, "name": kernel.name, "cat": place.part, "ts": start,
                     "dur": (end - at) * scale, "args": details}
                )  # fmt: skip
            at = end
        if more:
            head.append(
                {
                    "ph": "i",
                    "s": "p",
                    "pid": 1,
                    "tid": 1,
                    "ts": (at - origin) * scale,
                    "name": f"{more} readings are not recorded",
                }
            )
        return head + out


def measure(name: str, graph: Graph, timing: Timing, values: list, run: Callable[[], Any]) -> Profile:
    """Run a program that times itself, and say where its time goes.

    Args:
        name: of the function.
        graph: the program's.
        timing: where the program writes its times.
        values: its arguments. References among them are left as they were.
        run: one call.
    """
    saved = [[a.copy() for a in v.arrays] if isinstance(p.type, Ref) else None for p, v in zip(graph.params, values)]
    try:
        if not _talks(graph):
            run()  # the first call allocates memory
        timing.clear()
        spent, calls = 0.0, 0
        while not calls or (spent < SECONDS and calls < CALLS and not _talks(graph)):
            timing.restart()
            begin = time.perf_counter()
            run()
            spent += time.perf_counter() - begin
            calls += 1
    finally:
        for arrays, value in zip(saved, values):
            for array, old in zip(value.arrays if arrays is not None else (), arrays or ()):
                array[...] = old
    return Profile(name, graph, values, timing, spent / calls, calls)


def _talks(graph: Graph) -> bool:
    """Whether a program does something outside of it, which it should not do again and again."""
    return any(getattr(node.fn, "effect", None) == "io" for g in all_graphs(graph) for node in g.nodes)


def _kernel_time(region: TimedRegion, seconds: float, count: float, lookup: Any) -> KernelTime:
    flops = nbytes = share = None
    if region.kind == "kernel":
        flops = flops_of(region.nodes, lookup)
        each = [size_of(n, lookup) for _, n in region.arrays]
        nbytes = None if any(n is None for n in each) else sum(n for n in each if n is not None)
        share = machine.share_of_peak(seconds / count, flops, nbytes, machine.float_of(region.nodes))
    places = spread(region.nodes, lookup, region.loops)
    return KernelTime(region.name, region.kind, seconds, count, flops, nbytes, share, region.library, places)


def _names(stack: tuple[Loc, ...]) -> tuple[str, ...]:
    """How pictures name the calls of a stack."""
    return tuple(f"{loc.function}:{loc.line}  {loc.text().strip()}" for loc in stack)
