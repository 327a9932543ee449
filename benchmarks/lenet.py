"""`python -m benchmarks lenet`: LeNet's training steps a second, beside PyTorch and JAX in one run.

All systems start from the same parameters and see the same images in the same order, with the same number of threads:

- `batch1`: the loop of Figure 4 of the Relay paper, gradient descent an image at a time;
- `batch64`: batches of 64 with Adam, what `relay.fit` does.

Shown: whether the losses agree over the first steps, steps a second (interleaved rounds, compiling and warming up
apart), this compiler's first call in a fresh process with an empty cache, and its peak memory for once and for ten
times the steps.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import common
from .workers import Worker, WorkerError, find_peer
from .workload import BATCH, CASES, FLOPS, make_workload

OURS = "myia_relay"
TOLERANCE = 1e-4
"""How much the losses of two systems may differ over the first steps."""
NOISE = 2.0
"""The same, as a multiple of what the peers differ among each other: Adam divides small gradients by their own size, so a
difference in the last bit of a float32 grows with the steps, in any two programs that sum in different orders."""


class Peer(NamedTuple):
    """A system to compare with.

    Attributes:
        package: what it needs.
        runs: name in the tables -> worker module and variant.
    """

    package: str
    runs: dict[str, tuple[str, str]]


PEERS = {
    "torch": Peer("torch", {"torch eager": ("torch_lenet", ""), "torch nhwc": ("torch_lenet", "channels_last")}),
    "jax": Peer("jax", {"jax jit": ("jax_lenet", ""), "jax scan": ("jax_lenet", "scan")}),
    "torch_compile": Peer("torch", {"torch.compile": ("torch_lenet", "compile")}),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where a system's losses differ or ours failed.
    """
    options = parse(argv)
    info = common.begin()
    results: dict[str, Any] = {"benchmark": "lenet", "environment": info, "options": describe(options)}
    longest = max(BATCH[case] * max(options.agree, 2 * steps_of(options, case)) for case in options.cases)
    with tempfile.TemporaryDirectory(prefix="myia_relay_bench.") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        make_workload(options.data, longest).save(folder)
        print(f"{options.data}: {longest:,} images; {options.threads} threads for each system")
        workers = start_workers(options, folder, stack)
        good = OURS in workers
        results["versions"] = {name: worker("versions") for name, worker in workers.items()}
        for case in options.cases:
            print(f"\n{title(case)}", flush=True)
            results[case], agreed = run_case(workers, case, options)
            good &= agreed and OURS in workers
        if not options.speed_only:
            print(flush=True)
            results["cold"] = cold_start(options, folder)
            results["memory"] = memory_growth(options, folder)
    common.write_json(options.json, results)
    return 0 if good else 1


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks lenet", description=__doc__.partition("\n")[0])
    common.add_common_options(parser, tuple(PEERS))
    parser.add_argument(
        "--data", choices=("mnist", "digits", "synthetic"), default="mnist", help="default: %(default)s"
    )
    parser.add_argument(
        "--case", dest="cases", action="append", choices=CASES, help="only this one (may be repeated; default: both)"
    )
    parser.add_argument(
        "--steps", type=common.positive, default=500, help="of batch1, for each round (default: %(default)s)"
    )
    parser.add_argument(
        "--batches", type=common.positive, default=30, help="steps of batch64, for each round (default: %(default)s)"
    )
    parser.add_argument(
        "--agree",
        type=common.positive,
        default=100,
        help="first steps whose losses are compared (default: %(default)s)",
    )
    parser.add_argument("--speed-only", action="store_true", help="leave out the cold start and the memory")
    options = parser.parse_args(argv)
    options.cases = options.cases or list(CASES)
    return options


def describe(options: argparse.Namespace) -> dict[str, Any]:
    """The options as JSON, without the user's paths."""
    return {name: value for name, value in vars(options).items() if name not in ("json", "peer_python")}


def steps_of(options: argparse.Namespace, case: str) -> int:
    """How many steps a round of a case has."""
    return options.steps if case == "batch1" else options.batches


def title(case: str) -> str:
    """What a case is, for the reader."""
    return {
        "batch1": "batch1: Figure 4's loop, an image at a time, gradient descent 0.01",
        "batch64": "batch64: relay.fit, 64 images at a time, Adam 0.001",
    }[case]


def start_workers(options: argparse.Namespace, folder: Path, stack: contextlib.ExitStack) -> dict[str, Worker]:
    """A worker for this compiler and for every peer that is there; says which are not."""
    workers = {}

    def start(name: str, module: str, variant: str, python: str | None) -> None:
        words = [str(folder), "--threads", str(options.threads), "--variant", variant]
        workers[name] = stack.enter_context(Worker(f"benchmarks.peers.{module}", words, python, options.threads))

    start(OURS, "relay_lenet", options.executor, None)
    for name in options.peers:
        peer = PEERS[name]
        python = find_peer(peer.package, options.peer_python)
        if python is None:
            print(f"{name}: {peer.package} is not installed here; pip install -e '.[bench]', or --peer-python PATH")
            continue
        for run, (module, variant) in peer.runs.items():
            start(run, module, variant, python)
    return workers


def run_case(workers: dict[str, Worker], case: str, options: argparse.Namespace) -> tuple[dict[str, Any], bool]:
    """Agreement and speed of all systems in one case.

    Args:
        workers: by name; a system that fails is taken out, with a line that says why.
        case: one of `CASES`.
        options: of the command line.

    Returns:
        The figures, and whether all losses agree.
    """
    steps = steps_of(options, case)
    first: dict[str, float] = {}
    losses: dict[str, list[float]] = {}
    for name, worker in list(workers.items()):
        try:
            first[name] = worker("first", case=case, steps=steps)
            losses[name] = worker("losses", case=case, steps=options.agree)
            worker("measure", case=case, steps=steps)
        except WorkerError as error:
            print(f"{name}: failed and is left out: {error}")
            workers.pop(name)
    reference = OURS if OURS in losses else next(iter(losses), None)
    if reference is None:
        return {}, False
    apart = {name: largest_difference(losses[name], losses[reference]) for name in losses if name in workers}

    def measure(worker: Worker):
        return lambda: worker("measure", case=case, steps=steps)

    rounds = common.interleave({name: measure(worker) for name, worker in workers.items()}, options.rounds)
    rows = [["", "steps/s", "best", "images/s", "GF/s", f"{reference} is", "first chunk s", "losses differ"]]
    figures: dict[str, Any] = {}
    for name, values in rounds.items():
        speed = common.spread(values)
        images = speed["median"] * BATCH[case]
        ahead = common.ratio(rounds[reference], values)
        figures[name] = {
            **speed,
            "rounds": values,
            "first_chunk_seconds": first[name],
            "ahead": ahead,
            "loss_difference": apart[name],
            "losses": losses[name],
        }
        rows.append(
            [
                name,
                f"{speed['median']:,.1f}",
                f"{speed['best']:,.1f}",
                f"{images:,.0f}",
                f"{images * FLOPS / 1e9:.1f}",
                "" if name == reference else f"{ahead:.2f}x",
                f"{first[name]:.2f}",
                "" if name == reference else f"{apart[name]:.1e}",
            ]
        )
    print(common.table(rows))
    last = losses[reference][-1]
    print(
        f"median of {options.rounds} rounds of {steps} steps; losses compared over {options.agree} steps "
        f"({losses[reference][0]:.4f} ... {last:.4f})"
    )
    among = disagreement([losses[name] for name in apart if name != reference])
    limit = max(TOLERANCE, NOISE * among)
    beyond = [name for name, value in apart.items() if not value <= TOLERANCE]
    wrong = [name for name in beyond if not apart[name] <= limit]
    if beyond:
        print(
            f"beyond {TOLERANCE:g}: {', '.join(beyond)}; the other systems differ among each other by up to {among:.1e}, "
            f"and {NOISE:g} times that is taken for rounding"
        )
    if wrong:
        print(f"NOT WITHIN {limit:.1e}: {', '.join(wrong)}")
    sys.stdout.flush()
    return figures, not wrong


def largest_difference(a: Sequence[float], b: Sequence[float]) -> float:
    """The largest difference of two curves; infinite where they differ in length."""
    return float(np.max(np.abs(np.subtract(a, b)))) if len(a) == len(b) else math.inf


def disagreement(curves: Sequence[Sequence[float]]) -> float:
    """The largest difference between any two of several curves; 0 for fewer than two, or where one has NaN."""
    pairs = (largest_difference(a, b) for i, a in enumerate(curves) for b in curves[:i])
    return max((value for value in pairs if not math.isnan(value)), default=0.0)


def cold_start(options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Seconds of the first step of each case in a fresh process with an empty cache: compiling included."""
    seconds = {}
    for case in options.cases:
        with tempfile.TemporaryDirectory(prefix="myia_relay_cold.") as cache:
            words = [str(folder), "--threads", str(options.threads), "--variant", options.executor]
            try:
                with Worker(
                    "benchmarks.peers.relay_lenet", words, threads=options.threads, env={"MYIA_RELAY_CACHE": cache}
                ) as worker:
                    seconds[case] = worker("first", case=case, steps=1)
            except WorkerError as error:
                print(f"cold {case} failed: {error}")
    for case, value in seconds.items():
        print(f"{OURS}, cold: first call of the {case} step to its result {value:.2f} s")
    return seconds


def memory_growth(options: argparse.Namespace, folder: Path) -> dict[str, int]:
    """Peak memory of the batch-1 loop after some steps, and after ten times as many in one call."""
    words = [str(folder), "--threads", str(options.threads), "--variant", options.executor]
    count = BATCH["batch1"] * max(1, steps_of(options, "batch1") // 10)
    try:
        with Worker("benchmarks.peers.relay_lenet", words, threads=options.threads) as worker:
            worker("first", case="batch1", steps=count)
            once = worker("memory", case="batch1", steps=count)
            ten = worker("memory", case="batch1", steps=10 * count)
    except WorkerError as error:
        print(f"memory failed: {error}")
        return {}
    growth = (ten - once) / 2**10
    print(
        f"{OURS}, batch1: peak memory {once / 2**20:.1f} MiB after {count} steps, "
        f"{ten / 2**20:.1f} MiB after {10 * count} more ({growth:+.0f} KiB)"
    )
    return {"steps": count, "bytes": once, "bytes_after_10x": ten}


if __name__ == "__main__":
    sys.exit(main())
