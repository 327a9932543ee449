"""`python -m benchmarks language`: small programs of loops, recursion and elements of arrays, beside CPython, C and Numba.

Every program (`programs.py`) is one text, which CPython, `@relay` and Numba run. C has twins of them (`twins.c`), one that checks
integers for overflow as Python's meaning demands, and one that wrap. Ours and C run in this process in alternation, and
the clock is that of the processor's time, so that a busy machine disturbs little; Numba runs in a process of its own between.
All results are compared before anything is timed. CPython is measured at a small size, and scaled by the work that
the program does there. Compile times and memory are stated apart: they are in none of the times.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import common
from ..workers import Worker, WorkerError, find_peer
from .programs import CASES, equal
from .twins import KINDS, call, compile_twins

OURS = "myia_relay"
GROWTH = {"fib": (1 + 5**0.5) / 2, "binary_trees": 2.0}  # by which the work grows from size to size
PEERS = ("cpython", "c", "numba")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where results differ.
    """
    options = parse(argv)
    info = common.begin()
    results: dict[str, Any] = {"benchmark": "language", "environment": info, "programs": {}}
    numba = _numba(options) if "numba" in options.peers else None
    same = True
    try:
        with tempfile.TemporaryDirectory() as scratch:
            libraries = compile_twins(Path(scratch)) if "c" in options.peers else {}
            if "c" in options.peers and not libraries:
                print("c: no C compiler is found here (CC, gcc)")
            for name in options.programs:
                figures = results["programs"][name] = measure(name, options, libraries, numba)
                same &= not figures["differ"]
    except WorkerError as error:
        print(f"failed: {error}")
        return 1
    finally:
        if numba is not None:
            numba.close()
    report(results["programs"])
    common.write_json(options.json, results)
    return 0 if same else 1


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks language", description=__doc__.partition("\n")[0])
    common.add_common_options(parser, PEERS)
    parser.add_argument(
        "--programs",
        type=lambda text: common.choose(text, tuple(CASES)),
        default=list(CASES),
        metavar="NAMES",
        help=f"commas between them (default: {','.join(CASES)})",
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of the work, 1 for the sizes of the benchmark (default: %(default)s)"
    )
    return parser.parse_args(argv)


def _numba(options: argparse.Namespace) -> Worker | None:
    python = find_peer("numba", options.peer_python)
    if python is None:
        print("numba: not installed here; pip install numba, or --peer-python PATH")
        return None
    return Worker("benchmarks.peers.numba_language", [], python, options.threads)


def size_of(name: str, scale: float, which: int) -> int:
    """The size of a program at a scale of its work."""
    size = CASES[name].sizes[which]
    if name in GROWTH:
        return max(6, size + round(math.log(scale, GROWTH[name])))
    return max(16, round(size * scale ** (0.5 if name in ("mandelbrot", "edit_distance") else 1)))


def clocked(function: Callable[[], Any]) -> float:
    """Seconds of the processor that a call takes."""
    started = time.process_time()
    function()
    return time.process_time() - started


def measure(name: str, options: argparse.Namespace, libraries: dict[str, Any], numba: Worker | None) -> dict[str, Any]:
    """All figures of one program."""
    case, size = CASES[name], size_of(name, options.scale, 0)
    arguments = case.arguments(size)
    ours = _decorated(name, options.executor)
    started = time.process_time()
    expected = ours(*arguments)
    first = time.process_time() - started
    systems: dict[str, Callable[[], float]] = {OURS: lambda: clocked(lambda: ours(*arguments))}
    differ = []
    for kind, library in libraries.items():
        run = call(library, name, arguments)
        if not equal(run(), expected):
            differ.append(kind)
        systems[kind] = lambda run=run: clocked(run)
    out: dict[str, Any] = {"size": size, "work": case.work(size, expected), "what": case.what, "differ": differ}
    out["compile"] = {OURS: max(0.0, first - systems[OURS]())}
    if numba is not None and case.numba:
        answer = numba("warm", program=name, size=size, result=_plain(expected))
        out["compile"]["numba"] = answer["compile"]
        if not answer["same"]:
            differ.append("numba")
        systems["numba"] = lambda: numba("measure", program=name, size=size)
    figures = common.interleave(systems, options.rounds, rest=0)
    out["seconds"] = {k: common.spread(v, higher_is_better=False) for k, v in figures.items()}
    out["ratio"] = {
        k: statistics.median(a / b for a, b in zip(figures[OURS], v)) for k, v in figures.items() if k != OURS
    }
    if "cpython" in options.peers:
        small = size_of(name, options.scale, 1)
        arguments = case.arguments(small)
        result = case.function(*arguments)
        if not equal(result, ours(*arguments)):
            differ.append("cpython")
        seconds = min(clocked(lambda: case.function(*arguments)) for _ in range(3))
        scaled = seconds * out["work"] / case.work(small, result)
        out["cpython"] = {"size": small, "seconds": seconds, "scaled": scaled}
        out["ratio"]["cpython"] = scaled / out["seconds"][OURS]["median"]
    with Worker("benchmarks.peers.relay_language", ["--executor", options.executor]) as worker:
        out["memory"] = worker("memory", program=name, size=size)
    for peer in differ:
        print(f"{name}: the result of {peer} is NOT ours")
    return out


def _decorated(name: str, executor: str) -> Callable[..., Any]:
    from ..peers.relay_language import decorated

    return decorated(name, executor)


def _plain(value: Any) -> Any:
    """A result as JSON has it; floats survive to the last bit."""
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def report(programs: dict[str, Any]) -> None:
    """Print the tables."""
    kinds = [k for k in (*KINDS, "numba") if any(k in p["ratio"] for p in programs.values())]
    rows = [["ms", "size", OURS, *kinds, "CPython (scaled)", "x CPython", *(f"/ {k}" for k in kinds)]]
    for name, p in programs.items():
        cells = [f"{1e3 * p['seconds'][k]['median']:,.2f}" if k in p["seconds"] else "" for k in (OURS, *kinds)]
        cells.append(f"{1e3 * p['cpython']['scaled']:,.0f}" if "cpython" in p else "")
        cells.append(f"{p['ratio']['cpython']:,.0f}" if "cpython" in p else "")
        cells += [f"{p['ratio'][k]:.2f}" if k in p["ratio"] else "" for k in kinds]
        rows.append([name, p["size"], *cells])
    print(common.table(rows))
    print(
        "medians of processor time, compiling apart; `/ c_checked`: our time over that of C, the median over the rounds"
    )
    rows = [["apart", "compile ms", "numba's", "peak MiB", "of that ours"]]
    for name, p in programs.items():
        numba = f"{1e3 * p['compile']['numba']:,.0f}" if "numba" in p["compile"] else ""
        memory = [f"{p['memory'][k] / 2**20:,.1f}" for k in ("peak", "growth")]
        rows.append([name, f"{1e3 * p['compile'][OURS]:,.0f}", numba, *memory])
    print(common.table(rows))


if __name__ == "__main__":
    sys.exit(main())
