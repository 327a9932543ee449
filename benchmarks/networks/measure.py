"""What a worker of any system does: builds a row's program, writes its output, and measures seconds. Needs NumPy only."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..adbench.measure import seconds_of
from ..workers import serve
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

    def measure(self, seconds: float) -> float:
        """Seconds of a call."""
        assert self.program is not None
        return seconds_of(self.program, seconds)


def serve_builders(builders: dict[str, Builder]) -> None:
    """The main program of a worker; its command line is for `prepare_process` and `variant`."""
    measurer = Measurer(builders)
    serve({"prepare": measurer.prepare, "measure": measurer.measure})
