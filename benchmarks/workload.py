"""The work of the LeNet benchmark, the same for every system: parameters, images and their order.

The parent writes it into a folder once; each worker reads it from there. Needs NumPy only.
"""

from __future__ import annotations

import abc
import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .workers import limit_cores, peak_memory, serve

CASES = ("batch1", "batch64")
"""Figure 4's loop (an image at a time, gradient descent) and what `relay.fit` does (batches of 64, Adam)."""

BATCH = {"batch1": 1, "batch64": 64}
SGD_RATE, ADAM_RATE = 0.01, 1e-3
INIT_STD = 0.01
SHAPES = {
    "conv2d_0.weight": (20, 1, 5, 5),
    "conv2d_0.bias": (20,),
    "conv2d_1.weight": (50, 20, 5, 5),
    "conv2d_1.bias": (50,),
    "linear_0.weight": (500, 800),
    "linear_0.bias": (500,),
    "linear_1.weight": (10, 500),
    "linear_1.bias": (10,),
}
FLOPS = 2 * 3 * (20 * 24 * 24 * 25 + 50 * 8 * 8 * 500 + 500 * 800 + 10 * 500) - 2 * 20 * 24 * 24 * 25
"""Of one image's gradient: two for a multiply-add, three products for each layer, but none back into the image."""


class Workload(NamedTuple):
    """What every system starts from.

    Attributes:
        params: name -> float32 array, named and shaped as `model.params`.
        images: float32 (n, 1, 28, 28), in the order in which they are used.
        labels: int64 (n,).
    """

    params: dict[str, np.ndarray]
    images: np.ndarray
    labels: np.ndarray

    def save(self, folder: Path) -> None:
        """Write it for the workers."""
        np.savez(folder / "params.npz", **self.params)
        np.save(folder / "images.npy", self.images)
        np.save(folder / "labels.npy", self.labels)

    @classmethod
    def load(cls, folder: Path) -> Workload:
        """Read what `save` wrote."""
        with np.load(folder / "params.npz") as stored:
            params = {name: stored[name] for name in SHAPES}
        return cls(params, np.load(folder / "images.npy"), np.load(folder / "labels.npy"))


def initial_params(seed: int = 0) -> dict[str, np.ndarray]:
    """Parameters as `relay.create_model` draws them: normal, mean 0, standard deviation 0.01, biases too."""
    rng = np.random.default_rng(seed)
    return {name: (rng.standard_normal(shape) * INIT_STD).astype(np.float32) for name, shape in SHAPES.items()}


def make_workload(data: str, count: int, seed: int = 0) -> Workload:
    """The first `count` images of a dataset, shuffled; the dataset repeats where it has fewer.

    Args:
        data: "mnist", "digits" or "synthetic" (random images and labels).
        count: how many.
        seed: of the parameters, the order, and synthetic data.
    """
    rng = np.random.default_rng(seed)
    if data == "synthetic":
        images = rng.random((count, 1, 28, 28), dtype=np.float32)
        labels = rng.integers(0, 10, count)
    else:
        from myia_relay import relay

        train, _ = getattr(relay.datasets, data)()
        rows = np.concatenate([rng.permutation(len(train)) for _ in range(math.ceil(count / len(train)))])[:count]
        images, labels = train.images[rows], train.labels[rows]
    return Workload(initial_params(seed), images, labels)


class System(abc.ABC):
    """One system at the work. A worker makes one, and it keeps its parameters from call to call.

    Args:
        work: parameters, images, labels.
        options: the worker's command line.
    """

    def __init__(self, work: Workload, options: argparse.Namespace):
        self.work = work
        self.options = options
        self.place = dict.fromkeys(CASES, 0)

    @abc.abstractmethod
    def reset(self, case: str) -> None:
        """Go back to the initial parameters, and a fresh optimiser."""

    @abc.abstractmethod
    def run(self, case: str, rows: slice, record: bool) -> Any:
        """Train on consecutive images, `BATCH[case]` for each step.

        Args:
            case: one of `CASES`.
            rows: which images.
            record: whether the losses are wanted; else nothing needs to come back.

        Returns:
            The losses of the steps as anything that NumPy takes, or a sequence of scalars; ready, not pending.
        """

    def versions(self) -> dict[str, str]:
        """Of what the figures depend on."""
        return {}

    # What a worker answers.

    def first(self, case: str, steps: int) -> float:
        """Seconds of the very first chunk of steps: compiling and warming up."""
        self.reset(case)
        started = time.perf_counter()
        self.run(case, slice(0, BATCH[case] * steps), False)
        return time.perf_counter() - started

    def measure(self, case: str, steps: int) -> float:
        """Steps a second, going on from where the last call left the parameters and the images."""
        count = BATCH[case] * steps
        if self.place[case] + count > len(self.work.images):
            self.place[case] = 0
        rows = slice(self.place[case], self.place[case] + count)
        self.place[case] += count
        started = time.perf_counter()
        self.run(case, rows, False)
        return steps / (time.perf_counter() - started)

    def losses(self, case: str, steps: int) -> list[float]:
        """The losses of the first steps from the initial parameters."""
        self.reset(case)
        values = self.run(case, slice(0, BATCH[case] * steps), True)
        return [float(v) for v in values]

    def memory(self, case: str, steps: int) -> int:
        """Train for some steps in one go, then the peak memory of the process so far, in bytes."""
        self.run(case, slice(0, BATCH[case] * steps), False)
        return peak_memory()


def batches(rows: slice, size: int) -> Iterator[slice]:
    """The consecutive batches of a range of rows."""
    return (slice(i, i + size) for i in range(rows.start, rows.stop, size))


def serve_system(make: type[System], argv: Sequence[str] | None = None) -> None:
    """The main program of a worker.

    Args:
        make: the system's class; made after the process is limited to its cores.
        argv: by default the process's own command line.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--variant", default="")
    options = parser.parse_args(argv if argv is not None else sys.argv[1:])
    system = make(Workload.load(options.folder), options)
    serve({name: getattr(system, name) for name in ("versions", "first", "measure", "losses", "memory")})


def prepare_process(argv: Sequence[str]) -> None:
    """Limit this process to the cores that its command line allows, before a library looks at them."""
    if "--threads" in argv:
        limit_cores(int(argv[list(argv).index("--threads") + 1]))
