"""What a worker of any system does: prepares an instance, checks its output, and measures seconds and memory.

Every system gives, for each workload, the variants of its program that are worth trying (`Work`); the quickest is
measured. Needs NumPy only: workers run in environments without this compiler.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..workers import serve
from . import cases
from .data import Record


@dataclass(frozen=True)
class Work:
    """A program for an instance. Its functions take nothing, and return when the result is there.

    Attributes:
        objective: the function without derivatives.
        gradient: what the workload asks for.
        flat: `gradient`'s result as arrays in the order of `cases`; None where `gradient` does a part of the work.
        into: `gradient` writing into arrays that exist; None where the system has no such thing.
        compile: compiles `gradient` without running it; None where that cannot be told apart.
        scale: how often `gradient` would have to run for the whole result.
        note: which variant it is.
    """

    objective: Callable[[], Any]
    gradient: Callable[[], Any]
    flat: Callable[[Any], list[np.ndarray]] | None
    into: Callable[[], Any] | None = None
    compile: Callable[[], Any] | None = None
    scale: float = 1.0
    note: str = ""


Builder = Callable[[Record], list[Work]]


class Measurer:
    """The answers of a worker.

    Args:
        builders: workload -> the variants for an instance.
    """

    def __init__(self, builders: dict[str, Builder]):
        self.builders = builders
        self.work: Work | None = None

    def _load(self, case: dict) -> tuple[cases.Case, Record]:
        sizes = tuple((name, size) for name, size in case["sizes"])
        spec = cases.Case(case["workload"], case["name"], case["folder"], sizes)
        return spec, cases.load(spec)

    def prepare(self, case: dict, check: bool = True) -> dict[str, Any]:
        """Compile the gradient of an instance and choose the quickest variant.

        Returns:
            Seconds of compiling (the first run over a later one), the error of the output (None: unknown), the variant.
        """
        self.work = None
        spec, record = self._load(case)
        trials = []
        failed: Exception | None = None
        for work in self.builders[spec.workload](record):
            try:
                started = time.perf_counter()
                work.gradient()
                first = time.perf_counter() - started
                later = seconds_of(work.gradient, 0.05)
            except Exception as error:  # a variant may not fit in memory, or be refused: another may do
                failed = error
                continue
            trials.append((later, max(0.0, first - later), work))
        if not trials:
            raise failed or RuntimeError(f"no program for {spec.workload}")
        _, compiling, self.work = min(trials, key=lambda trial: trial[0])
        del trials
        work, error = self.work, None
        if check and work.flat is not None:
            results = [work.gradient] if work.into is None else [work.gradient, work.into]
            errors = [cases.output_error(spec, record, [np.asarray(a) for a in work.flat(run())]) for run in results]
            error = None if errors[0] is None else max(errors)
        return {
            "compile": compiling,
            "error": error,
            "note": work.note,
            "elements": cases.elements(record),
            "into": work.into is not None,
            "scale": work.scale,
        }

    def measure(self, what: str, seconds: float) -> float:
        """Seconds of the objective, of the gradient, or of the gradient `into` arrays that exist."""
        assert self.work is not None
        function = getattr(self.work, what)
        function()  # may compile
        return (1.0 if what == "objective" else self.work.scale) * seconds_of(function, seconds)

    def memory(self, case: dict, warm: dict) -> dict[str, int]:
        """Peak memory of a gradient above the inputs and the result, in bytes. Only once in a process.

        Args:
            case: of which the gradient is run.
            warm: a small case of the same workload that is run before, so that what is loaded once does not count.
        """
        spec, record = self._load(warm)
        for _ in range(2):
            self.builders[spec.workload](record)[0].gradient()
        spec, record = self._load(case)
        work = self.builders[spec.workload](record)[0]
        if work.compile is not None:
            work.compile()
        base = reset_peak()
        size = result_bytes(work.gradient())
        work.gradient()
        return {"bytes": max(0, peak_memory() - base - size), "result": size}


def result_bytes(result: Any) -> int:
    """Of all arrays in a tree of tuples and lists."""
    if isinstance(result, (tuple, list)):
        return sum(map(result_bytes, result))
    return int(getattr(result, "nbytes", 0))


def reset_peak() -> int:
    """Let the peak of resident memory begin anew; the bytes resident now. Linux only; elsewhere an OSError."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    return _status("VmRSS")


def peak_memory() -> int:
    """The most bytes resident since `reset_peak`."""
    return _status("VmHWM")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def seconds_of(function: Callable[[], Any], budget: float) -> float:
    """Seconds of one call: the median of single calls (of a few, where one is too short for the clock).

    Calls are shorter than what a busy machine interrupts, so that most of them are undisturbed.
    """
    clock = time.perf_counter
    started = clock()
    function()
    once = clock() - started
    count = 1 if once > BLOCK else max(1, int(BLOCK / max(once, 1e-7)))
    blocks = [] if count > 1 else [once]
    stop = started + budget
    while not blocks or (len(blocks) < MOST_BLOCKS and clock() < stop):
        started = clock()
        for _ in range(count):
            function()
        blocks.append((clock() - started) / count)
    return statistics.median(blocks)


BLOCK = 5e-5
MOST_BLOCKS = 5000


def variant() -> str:
    """What a worker's command line has as `--variant`, which it needs before anything else; empty elsewhere."""
    return sys.argv[sys.argv.index("--variant") + 1] if "--variant" in sys.argv else ""


def serve_builders(builders: dict[str, Builder]) -> None:
    """The main program of a worker; its command line is for `prepare_process`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--variant", default="")
    parser.parse_args(sys.argv[1:])
    measurer = Measurer(builders)
    serve({name: getattr(measurer, name) for name in ("prepare", "measure", "memory")})
