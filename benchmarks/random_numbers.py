"""`python -m benchmarks random_numbers`: a million random numbers of several distributions, beside NumPy and JAX.

NumPy draws with its fastest generator, SFC64, into an array that it is given. One program beside the draws: a Metropolis sampler, a
loop of as many steps that draws two numbers in each. NumPy's is a loop of CPython over numbers that were drawn before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import common
from .workers import Worker, WorkerError, find_peer, opened, serve

OURS, NUMPY = "myia_relay", "numpy"
CASES = (
    "uniform float64",
    "uniform float32",
    "normal float64",
    "normal float32",
    "exponential float64",
    "gumbel float64",
    "gamma float64",
    "randint",
    "bernoulli",
    "permutation",
    "metropolis",
)
GAMMA_SHAPE = 2.5
PROBABILITY = 0.3
SIDES = 6
STEP = 2.4
PEERS = {"numpy": "benchmarks.peers.numpy_random", "jax": "benchmarks.peers.jax_random"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where a system failed.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks random_numbers", description=__doc__.partition("\n")[0])
    common.add_common_options(parser, tuple(PEERS))
    parser.set_defaults(threads=1)
    parser.add_argument(
        "--count", type=common.positive, default=1_000_000, help="how many numbers (default: %(default)s)"
    )
    parser.add_argument(
        "--only",
        type=lambda text: common.choose(text, CASES),
        default=list(CASES),
        metavar="CASES",
        help="commas between",
    )
    parser.add_argument(
        "--seconds", type=float, default=0.1, help="to spend on each figure of each round (default: %(default)s)"
    )
    options = parser.parse_args(argv)
    results: dict[str, Any] = {"benchmark": "random_numbers", "environment": common.begin(), "count": options.count}
    systems: dict[str, tuple[str, str | None]] = {OURS: ("benchmarks.peers.relay_random", None)}
    for peer in options.peers:
        python = find_peer(peer, options.peer_python if peer != NUMPY else None)
        if python is None:
            print(f"{peer}: not installed here; pip install -e '.[bench]', or --peer-python PATH")
        else:
            systems[peer] = (PEERS[peer], python)
    try:
        with opened(
            systems, lambda name: ["--count", str(options.count), "--executor", options.executor], options.threads
        ) as workers:
            results["cases"] = measure(workers, options)
    except WorkerError as error:
        print(f"failed: {error}")
        return 1
    common.write_json(options.json, results)
    return 0


def measure(workers: dict[str, Worker], options: argparse.Namespace) -> dict[str, Any]:
    """Measure all cases in interleaved rounds and print the table."""
    results: dict[str, Any] = {}
    rows = [["ns each", *workers, *(f"{OURS}'s speed / {name}'s" for name in workers if name != OURS)]]
    for case in options.only:
        able = {name: worker for name, worker in workers.items() if worker("warm", case=case)}
        figures: dict[str, list[float]] = {name: [] for name in able}
        for _ in range(options.rounds):
            for name, worker in able.items():
                time.sleep(common.REST_SECONDS)
                figures[name].append(1e9 * worker("measure", case=case, seconds=options.seconds) / options.count)
        spreads = {name: common.spread(values, higher_is_better=False) for name, values in figures.items()}
        ratios = {name: common.ratio(figures[name], figures[OURS]) for name in able if name != OURS}
        results[case] = {"ns": spreads, "ratio": ratios}
        rows.append(
            [
                case,
                *(f"{spreads[name]['median']:.2f}" if name in spreads else "-" for name in workers),
                *(f"{ratios[name]:.2f}" if name in ratios else "-" for name in workers if name != OURS),
            ]
        )
    print(common.table(rows))
    print(f"medians of {options.rounds} rounds, {options.count} numbers, {options.threads} threads")
    return results


def serve_draws(make: Callable[[argparse.Namespace], dict[str, Callable[[int], Any]]]) -> None:
    """The main program of a worker.

    Args:
        make: from the command line: case -> a function of a seed that draws all numbers.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--executor", default="native")
    draws = make(parser.parse_args())

    def warm(case: str) -> bool:
        if case in draws:
            draws[case](0)
        return case in draws

    def seconds_of(case: str, seconds: float) -> float:
        draw, seed, spent, least = draws[case], 0, 0.0, float("inf")
        while spent < seconds:
            seed += 1
            started = time.perf_counter()
            draw(seed)
            took = time.perf_counter() - started
            spent, least = spent + took, min(least, took)
        return least

    serve({"warm": warm, "measure": seconds_of})


if __name__ == "__main__":
    sys.exit(main())
