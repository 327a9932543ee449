"""What a worker of the benchmark of ONNX models does: imports a model, runs it, and measures seconds and memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .adbench.measure import seconds_of
from .workers import peak_memory, reset_peak_memory, serve

Importer = Callable[[str, dict[str, np.ndarray]], Callable[[], Any]]
"""Of a model's path and its inputs by name, a function that runs it once."""


def arrays(path: str) -> dict[str, np.ndarray]:
    """The arrays of a file, in order."""
    with np.load(path) as stored:
        return dict(stored)


class ModelMeasurer:
    """The answers of a worker.

    Args:
        importer: of the system.
    """

    def __init__(self, importer: Importer):
        self.importer = importer
        self.program: Callable[[], Any] | None = None
        self.imported = peak_memory() if reset_peak_memory() else 0

    def prepare(self, model: str, inputs: str, out: str) -> dict[str, float]:
        """Import a model, run it once, and write its outputs.

        Args:
            model: its path.
            inputs: of a file with them.
            out: of a file for the outputs.

        Returns:
            Seconds until the first result, and the peak of memory by then; after three more calls, too. Bytes are those after
            the imports; there are none where the system does not tell.
        """
        given = arrays(inputs)
        started = time.perf_counter()
        program = self.importer(model, given)
        result = program()
        first = time.perf_counter() - started
        found = {"first": first, "preparing": float(peak_memory() - self.imported)}
        gc.collect()
        told = reset_peak_memory()
        for _ in range(3):
            program()
        found["running"] = float(peak_memory() - self.imported)
        with Path(out).open("wb") as file:
            np.savez(file, *(result if isinstance(result, list | tuple) else [result]))
        self.program = program
        return found if told and self.imported else {"first": first}

    def measure(self, seconds: float) -> float:
        """Seconds of a call."""
        assert self.program is not None
        return seconds_of(self.program, seconds)


def serve_importer(importer: Importer) -> None:
    """The main program of a worker; its command line is for `prepare_process`."""
    measurer = ModelMeasurer(importer)
    serve({"prepare": measurer.prepare, "measure": measurer.measure})
