"""`python -m benchmarks calls`: what a warm call from Python costs over the kernel itself, beside JAX.

Three calls: a function of two numbers, one of three arrays, one of a dict of 20 arrays. The kernel's own time is that
of one iteration of a compiled loop over the same function, which calls nothing in Python and allocates nothing; the rest of
a call is overhead: finding the compiled program, taking the arguments apart, allocating and wrapping the result.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from . import common
from .workers import Worker, WorkerError, find_peer, opened, serve

OURS = "myia_relay"
SIZE = 256
"""Elements of each of the three arrays."""
TREE_SIZE = 16
"""Elements of each array of the dict."""
TREE_KEYS = tuple(f"part{i:02}" for i in range(20))
CASES = {"scalar": "two numbers", "arrays": f"three arrays of {SIZE}", "tree": f"a dict of {len(TREE_KEYS)} arrays"}
ITERATIONS = 2000


class Work(NamedTuple):
    """What a worker measures for one case.

    Attributes:
        call: the compiled function.
        loop: `(*args, iterations)`: iterations of it in compiled code, each using the result of the last.
        args: its arguments.
    """

    call: Callable[..., Any]
    loop: Callable[..., Any]
    args: tuple


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where ours failed.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks calls", description=__doc__.partition("\n")[0])
    common.add_common_options(parser, ("jax",))
    parser.add_argument(
        "--seconds", type=float, default=0.1, help="to spend on each figure of each round (default: %(default)s)"
    )
    options = parser.parse_args(argv)
    info = common.begin()
    results: dict[str, Any] = {"benchmark": "calls", "environment": info}
    systems = {OURS: ("benchmarks.peers.relay_calls", None)}
    if "jax" in options.peers:
        python = find_peer("jax", options.peer_python)
        if python is None:
            print("jax: not installed here; pip install -e '.[bench]', or --peer-python PATH")
        else:
            systems["jax"] = ("benchmarks.peers.jax_calls", python)
    try:
        with opened(
            systems, lambda name: ["--variant", options.executor if name == OURS else ""], options.threads
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
    rows = [["us", "", "call", "kernel", "overhead", "best overhead"]]
    for case, what in CASES.items():
        for worker in workers.values():
            worker("warm", case=case)
        figures: dict[str, list[dict[str, float]]] = {name: [] for name in workers}
        # One request measures a call and the kernel, so that both come from the same moment.
        for _ in range(options.rounds):
            for name, worker in workers.items():
                time.sleep(common.REST_SECONDS)
                figures[name].append(worker("measure", case=case, seconds=options.seconds))
        for name, values in figures.items():
            calls = common.spread([v["call"] for v in values], higher_is_better=False)
            kernels = common.spread([v["kernel"] for v in values], higher_is_better=False)
            overheads = common.spread([v["call"] - v["kernel"] for v in values], higher_is_better=False)
            results.setdefault(case, {})[name] = {"call": calls, "kernel": kernels, "overhead": overheads}
            shown = [calls["median"], kernels["median"], overheads["median"], overheads["best"]]
            rows.append([what if name == OURS else "", name, *(f"{1e6 * seconds:,.2f}" for seconds in shown)])
    print(common.table(rows))
    print(f"medians of {options.rounds} rounds; the kernel is one of {ITERATIONS} iterations of a compiled loop")
    return results


def serve_work(make: Callable[[argparse.Namespace], dict[str, Work]]) -> None:
    """The main program of a worker.

    Args:
        make: the work of all cases, from the command line.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", default="")
    works = make(parser.parse_args())

    def warm(case: str) -> None:
        work = works[case]
        work.call(*work.args)
        work.loop(*work.args, ITERATIONS)

    def measure(case: str, seconds: float) -> dict[str, float]:
        call, loop, args = works[case]
        if len(args) == 2:
            first, second = args
            called = common.median_seconds(lambda: call(first, second), seconds)
        else:
            first, second, third = args
            called = common.median_seconds(lambda: call(first, second, third), seconds)
        # The price of the lambda is not the system's.
        called -= common.median_seconds(lambda: None, seconds / 10)
        looped = common.median_seconds(lambda: loop(*args, ITERATIONS), seconds, repeats=3) / ITERATIONS
        return {"call": called, "kernel": looped}

    serve({"warm": warm, "measure": measure})


if __name__ == "__main__":
    sys.exit(main())
