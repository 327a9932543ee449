"""What a worker of any system does: builds a row, writes its output, and measures seconds and memory. Needs NumPy only."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..adbench.measure import seconds_of
from ..workers import peak_memory, reset_peak_memory, serve
from .cases import Problem, flat, load

Builder = Callable[[Problem], Callable[[], Any]]
"""Of a problem, a function that runs it once and returns when the result is there: arrays in a tree, in `cases.flat`'s order."""


class Measurer:
    """The answers of a worker.

    Args:
        builders: row -> its program.
    """

    def __init__(self, builders: dict[str, Builder]):
        self.builders = builders
        self.program: Callable[[], Any] | None = None
        self.imported = peak_memory() if reset_peak_memory() else 0

    def prepare(self, row: str, tiny: bool, data: str | None, out: str) -> dict[str, float]:
        """Compile the program of a row and write its output.

        Args:
            row, tiny, data: as in `cases.load`.
            out: a file for the output.

        Returns:
            Seconds of the first call over a later one.
        """
        self.program = None
        program = self.builders[row](load(row, tiny, data))
        started = time.perf_counter()
        program()
        first = time.perf_counter() - started
        started = time.perf_counter()
        result = program()
        later = time.perf_counter() - started
        with Path(out).open("wb") as file:
            np.savez(file, *flat(result))
        self.program = program
        return {"compile": max(0.0, first - later)}

    def memory(self, row: str, tiny: bool, data: str | None) -> dict[str, int]:
        """The memory that calls take, in a process that has done nothing else.

        Args:
            row, tiny, data: as in `cases.load`.

        Returns:
            Bytes: the peak of the process during three calls after the first one, and how much of it came after the
            imports: weights, inputs, results, and what is between. Nothing where the system does not tell.
        """
        program = self.builders[row](load(row, tiny, data))
        program()
        gc.collect()
        if not reset_peak_memory():
            return {}
        for _ in range(3):
            program()
        peak = peak_memory()
        return {"peak": peak, "growth": peak - self.imported}

    def measure(self, seconds: float) -> float:
        """Seconds of a call."""
        assert self.program is not None
        return seconds_of(self.program, seconds)


def serve_builders(builders: dict[str, Builder]) -> None:
    """The main program of a worker; its command line is for `prepare_process` and `variant`."""
    measurer = Measurer(builders)
    serve({"prepare": measurer.prepare, "measure": measurer.measure, "memory": measurer.memory})
