"""What the benchmarks share: interleaved rounds, medians and ratios, tables, and a record of the machine.

A figure on a shared machine says little by itself. So every system is measured once in every round, round after round
(A B C A B C), and systems are compared within a round: a slow minute of the machine hits all of them alike. Reported
are the median over the rounds, the best round, and the median of the ratios of each round.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .workers import Worker, WorkerError

REST_SECONDS = 0.1
"""Pause before each measurement, so that the threads of the system before have stopped spinning."""

KERNEL_VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS")
"""What makes a BLAS take the kernels, or sizes of pieces, of another processor than the one that it runs on."""


def interleave(
    systems: dict[str, Callable[[], float]], rounds: int, rest: float = REST_SECONDS
) -> dict[str, list[float]]:
    """Measure every system once in each round.

    Args:
        systems: name -> a function that does the work once and returns what it measured; warmed up by the caller.
        rounds: how often.
        rest: seconds to wait before each measurement.

    Returns:
        name -> the figure of every round.
    """
    figures: dict[str, list[float]] = {name: [] for name in systems}
    for iteration in range(rounds):
        names = list(systems)
        # Every round begins with another system: none is always the one after the slowest.
        for name in names[iteration % len(names) :] + names[: iteration % len(names)]:
            time.sleep(rest)
            figures[name].append(systems[name]())
    return figures


def module_of(path: Path) -> Any:
    """The module of a file, run anew."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines_of_child(words: Sequence[str], lengths: Sequence[int]) -> Iterator[tuple[int, list | None]]:
    """What a process prints for each length, lines of JSON behind a first one that says that it is ready.

    Yields:
        (length, line); None in place of the line if the process ended before, and nothing more.
    """
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for length in lengths:
            line = process.stdout.readline()
            yield length, json.loads(line) if line else None
            if not line:
                return


def side_by_side(
    starts: Mapping[str, Callable[[], Worker]],
    request: Mapping[str, Any],
    out: Path,
    rounds: int,
    seconds: float,
    prepared: Callable[[str, dict[str, Any]], None] | None = None,
) -> dict[str, dict[str, Any]]:
    """Prepare one case in several systems, compare their outputs, and measure them in interleaved rounds.

    Args:
        starts: name -> a function that starts a worker, which answers `prepare` and `measure`; ours is the first.
        request: the arguments of `prepare`, but for `out`.
        out: a file for the outputs of one system at a time.
        rounds: how often each system is measured.
        seconds: for each system in each round.
        prepared: called with a name and its figures when it is prepared, to add what other processes tell of it.

    Returns:
        name -> what `prepare` answered, `difference` from our outputs, `seconds` (the median) and `rounds`; `failed` with a text
        where the worker failed.
    """
    figures: dict[str, dict[str, Any]] = {name: {} for name in starts}
    measures: dict[str, Callable[[], float]] = {}
    ours = next(iter(starts))
    reference: list[np.ndarray] | None = None
    with contextlib.ExitStack() as stack:
        for name, start in starts.items():
            figure = figures[name]
            try:
                worker = stack.enter_context(start())
                figure |= worker("prepare", **request, out=str(out))
                if prepared is not None:
                    prepared(name, figure)
            except WorkerError as error:
                figure["failed"] = str(error)
                continue
            with np.load(out) as stored:
                outputs = list(stored.values())
            if name == ours:
                reference = outputs
            elif reference is not None:
                figure["difference"] = difference(reference, outputs)
            measures[name] = measure_of(worker, seconds)
        try:
            for name, values in interleave(measures, rounds, rest=0.05).items():
                figures[name] |= {"seconds": statistics.median(values), "rounds": values}
        except WorkerError as error:
            figures[ours]["failed"] = str(error)
    return figures


def measure_of(worker: Worker, seconds: float) -> Callable[[], float]:
    """A function that asks a worker for the seconds of a call."""
    return lambda: worker("measure", seconds=seconds)


def difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference of two outputs, each array by its own largest entry."""
    if [a.shape for a in ours] != [a.shape for a in theirs]:
        return float("inf")
    pairs = zip(ours, theirs)
    return max(
        float(np.max(np.abs(a.astype(np.result_type(a, float)) - b)) / max(np.max(np.abs(b)), 1e-30)) for a, b in pairs
    )


def spread(figures: Sequence[float], higher_is_better: bool = True) -> dict[str, float]:
    """Median, best and worst of the figures of several rounds."""
    best, worst = (max, min) if higher_is_better else (min, max)
    return {"median": statistics.median(figures), "best": best(figures), "worst": worst(figures)}


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over the rounds of `ours / theirs`, each round compared with itself."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def median_seconds(function: Callable[[], Any], budget: float = 0.2, repeats: int = 7) -> float:
    """Seconds of one call of a quick function: the median of several blocks of many calls.

    Args:
        function: called without arguments; called once before the clock runs.
        budget: about how many seconds to spend in all.
        repeats: blocks.
    """
    function()
    clock = time.perf_counter
    count = 1
    while True:
        started = clock()
        for _ in range(count):
            function()
        spent = clock() - started
        if spent > budget / repeats / 4 or count >= 1 << 22:
            break
        count *= 4
    count = max(1, int(count * budget / repeats / max(spent, 1e-9)))
    blocks = []
    for _ in range(repeats):
        started = clock()
        for _ in range(count):
            function()
        blocks.append((clock() - started) / count)
    return statistics.median(blocks)


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Rows of cells as text: the first column to the left, the others to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(w) if i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def begin() -> dict[str, Any]:
    """What every benchmark does first: set variables aside, and print and return what the machine is."""
    info = {**environment(), "set aside": set_aside()}
    print_environment(info)
    return info


def set_aside() -> dict[str, str]:
    """Take variables out of the environment, so that BLAS libraries choose their kernels by the processor.

    That holds for those loaded from here on, and for workers'. What is forced on one of them would make an unlike
    comparison, for the others do not heed it.

    Returns:
        What they were.
    """
    return {name: os.environ.pop(name) for name in KERNEL_VARIABLES if name in os.environ}


def environment() -> dict[str, Any]:
    """The machine, as far as a figure depends on it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = {}
    for package in ("myia_relay", "numpy", "apache-tvm", "scipy-openblas32"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return {
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "cpu": cpu_name(),
        "cores": cores,
        "load": load(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "versions": versions,
    }


def cpu_name() -> str:
    """What the processor calls itself."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def load() -> float | None:
    """How many processes want to run, over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def print_environment(info: dict[str, Any]) -> None:
    """One line about the machine, and a warning where it is busy."""
    versions = ", ".join(f"{name} {version}" for name, version in info["versions"].items())
    print(f"{info['cpu']}, {info['cores']} cores; Python {info['python']}, {versions}")
    if info["load"] is not None and info["load"] > 0.5 * info["cores"]:
        print(f"warning: the machine is busy (load {info['load']}); only the ratios of a round mean something")
    for name, value in info["set aside"].items():
        print(f"note: {name}={value} is set aside, so that every BLAS chooses its kernels by the processor")
    sys.stdout.flush()


def add_common_options(parser: argparse.ArgumentParser, peers: Sequence[str] = ()) -> None:
    """The options that every benchmark has.

    Args:
        parser: of the benchmark.
        peers: the systems that it can be compared with.
    """
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all figures to a file")
    parser.add_argument(
        "--executor",
        choices=("native", "python", "interpreter"),
        default="native",
        help="of this compiler (default: %(default)s)",
    )
    if not peers:
        return
    parser.add_argument("--threads", type=positive, default=2, help="for each system (default: %(default)s)")
    parser.add_argument(
        "--rounds", type=positive, default=7, help="how often each system is measured (default: %(default)s)"
    )
    parser.add_argument(
        "--peers",
        type=lambda text: choose(text, peers),
        default=list(peers),
        metavar="NAMES",
        help=f"commas between them, or none (default: {','.join(peers)})",
    )
    parser.add_argument(
        "--peer-python",
        metavar="PATH",
        help="the Python in whose environment the peers are installed, where it is not the running one",
    )


def several(text: str) -> list[int]:
    """Positive numbers with commas between them, for argparse."""
    return [positive(word) for word in text.split(",")]


def positive(text: str) -> int:
    """A whole number from 1, for argparse.

    Raises:
        argparse.ArgumentTypeError: it is less than 1.
    """
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def choose(text: str, known: Sequence[str]) -> list[str]:
    """Names separated by commas, for argparse; `none` for none of them.

    Raises:
        argparse.ArgumentTypeError: one of them is not known.
    """
    names = [n.strip() for n in text.split(",") if n.strip() and n.strip() != "none"]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r}: choose from {', '.join(known)}, none")
    return names


def write_json(path: Path | None, results: dict[str, Any]) -> None:
    """Write the figures of a run, if the user asked for them."""
    if path is not None:
        path.write_text(json.dumps(results, indent=2) + "\n", "utf-8")
        print(f"written to {path}")
