"""`python -m benchmarks notebooks`: training steps of the notebooks' programs, beside PyTorch and JAX.

Ours are the very cells of the notebooks (those with the tag "program"). Peers start from the same weights and data, and
are written as their users write them: PyTorch eagerly, with its own layers and optimisers; JAX jitted. Measured in
interleaved rounds. With `--steps N`, the programs that write text and the one that reads trees train for N steps on the
same batches; then the losses on unseen text and the labels of unseen trees are compared.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import common
from .workers import Worker, WorkerError, find_peer, serve

FILES = {
    "char_rnn": "05_char_rnn",
    "tree_lstm": "06_tree_lstm",
    "gpt": "07_gpt",
    "pendulum": "08_physics",
    "kalman": "08_physics",
    "vae": "09_vae",
}
"""row -> its notebook."""

TESTED = {"char_rnn": "loss of unseen text", "gpt": "loss of unseen text", "tree_lstm": "% right of unseen sentences"}
"""row -> what `--steps` compares."""

PEERS = {"torch": tuple(FILES), "jax": ("pendulum", "kalman")}
"""peer -> the rows that it has."""


@dataclass
class Measured:
    """A program that is measured.

    Attributes:
        run: trains for a number of steps, or for its own number; returns losses, or what is found.
        steps: how many it takes in a call without an argument.
        weights, data: arrays that the peers start from.
        validate: what `TESTED` says.
        sizes: numbers that the peers need.
    """

    run: Callable[..., list[float]]
    steps: int
    weights: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    validate: Callable[[], float] | None = None
    sizes: dict[str, int] = field(default_factory=dict)

    def seconds(self) -> float:
        """Seconds of a step."""
        started = time.perf_counter()
        self.run()
        return (time.perf_counter() - started) / self.steps


class Peer:
    """The answers of a worker.

    Args:
        builders: row -> its program, of weights, data and sizes.
    """

    def __init__(self, builders: dict):
        self.builders = builders

    def _built(self, row: str, path: str) -> Measured:
        import numpy as np

        with np.load(path) as stored:
            arrays = dict(stored)
        sizes = json.loads(str(arrays.pop("sizes")))
        weights = {name[7:]: arrays.pop(name) for name in list(arrays) if name.startswith("weight:")}
        return self.builders[row](weights, arrays, sizes)

    def prepare(self, row: str, path: str) -> list[float]:
        """Build a row; returns what the first call gives."""
        self.measured = self._built(row, path)
        return self.measured.run()

    def measure(self) -> float:
        """Seconds of a step."""
        return self.measured.seconds()

    def train(self, row: str, path: str, count: int) -> float:
        """What `TESTED` says, after so many steps from the beginning."""
        measured = self._built(row, path)
        measured.run(count)
        assert measured.validate
        return measured.validate()


def serve_peer(builders: dict) -> None:
    """The main program of a worker."""
    peer = Peer(builders)
    serve({"prepare": peer.prepare, "measure": peer.measure, "train": peer.train})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where ours failed.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks notebooks", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    some = f"of {','.join(FILES)}"
    add("--only", type=lambda text: common.choose(text, tuple(FILES)), default=list(FILES), metavar="NAMES", help=some)
    add("--threads", type=common.positive, default=1, help="default: %(default)s")
    add("--rounds", type=common.positive, default=5, help="how often each system is measured (default: %(default)s)")
    add("--peer-python", metavar="PATH", help="the Python that has the peers, where it is not the running one")
    add("--steps", type=int, default=0, help="train for so many steps, and compare on unseen data (default: do not)")
    add("--json", type=Path, metavar="OUT", help="write all figures to a file")
    options = parser.parse_args(argv)
    info = common.begin()
    pythons = {name: find_peer(name, options.peer_python) for name in PEERS}
    for name, python in pythons.items():
        if python is None:
            print(f"{name} is not installed here; --peer-python PATH names the Python that has it")
    rows, shown, good = [], [["", "system", "ms a step", "over ours", "first loss", "unseen data"]], True
    with tempfile.TemporaryDirectory(prefix="myia_relay_notebooks.") as folder:
        for row in options.only:
            found = measure(row, options, pythons, Path(folder) / f"{row}.npz")
            good &= "failed" not in found[0]
            rows += found
            for figure in found:
                if "failed" in figure:
                    print(f"{row}, {figure['system']}: {figure['failed']}")
                    continue
                cells = [row, figure["system"], f"{1000 * figure['seconds']:.3f}"]
                ours = found[0].get("rounds", ())
                over = statistics.median(b / a for a, b in zip(ours, figure["rounds"])) if ours else math.nan
                unseen = f"{figure['unseen']:.4f} ({TESTED[row]})" if "unseen" in figure else ""
                shown.append([*cells, f"{over:.2f}", f"{figure['first'][0]:.4f}", unseen])
    print(common.table(shown))
    common.write_json(options.json, {"benchmark": "notebooks", "environment": info, "rows": rows})
    return 0 if good else 1


def measure(row: str, options: argparse.Namespace, pythons: dict[str, str | None], path: Path) -> list[dict[str, Any]]:
    """The figures of all systems that have a row, ours first."""
    systems: dict[str, str | None] = {"relay": None}
    systems |= {name: python for name, python in pythons.items() if python is not None and row in PEERS[name]}
    figures: dict[str, dict[str, Any]] = {}
    with contextlib.ExitStack() as stack:
        workers = {}
        for name, python in systems.items():
            figure = figures[name] = {"row": row, "system": name, "threads": options.threads}
            words = ["--threads", str(options.threads)]
            try:
                worker = stack.enter_context(
                    Worker(f"benchmarks.peers.{name}_notebooks", words, python, options.threads)
                )
                if options.steps and row in TESTED and name != "jax":
                    if name != "relay":
                        figure["unseen"] = worker("train", row=row, path=str(path), count=options.steps)
                    figure["first"] = worker("prepare", row=row, path=str(path))
                    if name == "relay":
                        figure["unseen"] = worker("train", row=row, path=str(path), count=options.steps)
                else:
                    figure["first"] = worker("prepare", row=row, path=str(path))
                workers[name] = worker
            except WorkerError as error:
                figure["failed"] = str(error)
        for name, values in common.interleave(
            {name: _seconds(worker) for name, worker in workers.items()}, options.rounds
        ).items():
            figures[name] |= {"seconds": statistics.median(values), "rounds": values}
    return list(figures.values())


def _seconds(worker: Worker) -> Callable[[], float]:
    return lambda: worker("measure")
