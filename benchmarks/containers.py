"""`python -m benchmarks containers`: what compiling costs for containers of growing length, as arguments and inside of programs.

Each kind of container has a process of its own, which compiles a small program for each length, cold: no cache of programs is
read, and TVM is loaded before. Shown is the processor time of the first call. A compilation that takes more than the limit ends the
process, and longer ones of its kind are not tried. Results are compared with CPython's. `--plot FILE` draws the figures, also
beside those of another version (`--before FILE`, what `--json` wrote there).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import common

LENGTHS = (10, 100, 1000, 10_000)
SUM = "s = 0.0\n    for {item} in {over}:\n        s += {what}\n    return s"
HEAD = """
import collections, math
import numpy as np
Pair = collections.namedtuple("Pair", "a b")
"""


def summed(item: str, what: str, over: str = "xs") -> str:
    """The body of a function that sums over a container."""
    return SUM.format(item=item, what=what, over=over)


KINDS = {
    # name: what it is, the argument, the body of `f(xs)`
    "floats": ("list of floats", "[0.5 * k for k in range(n)]", summed("x", "x")),
    "tuple": ("tuple of floats", "tuple(0.5 * k for k in range(n))", summed("x", "x")),
    "rows": ("list of lists of three", "[[0.5 * k, 1.0, 2.0] for k in range(n)]", summed("x", "x[0] * x[2]")),
    "ragged": ("ragged list of lists", "[[0.5] * (k % 7) for k in range(n)]", summed("x", "sum(x)")),
    "pairs": ("list of tuples", "[(k, 0.5 * k) for k in range(n)]", summed("(a, b)", "a * b")),
    "records": ("list of NamedTuples", "[Pair(k, 0.5 * k) for k in range(n)]", summed("x", "x.a * x.b")),
    "dicts": ("list of dicts", "[{'a': k, 'b': 0.5 * k} for k in range(n)]", summed("x", "x['a'] * x['b']")),
    "arrays": ("list of arrays", "[np.full(3, 0.5 * k) for k in range(n)]", summed("x", "float(x[0])")),
    "table": ("global list of numbers", "n", summed("x", "x", "[0.5 * k for k in range(LENGTH)]")),
    "comprehension": (
        "rows of a comprehension",
        "n",
        "d = [[0.0] * xs for _ in range(8)]\n    d[3][xs - 1] = 1.0\n    return sum(d[3])",
    ),
    "appended": (
        "rows that are appended",
        "n",
        "d = []\n    for k in range(xs):\n        d.append([k, k + 1])\n    return len(d)",
    ),
    "display": ("display of numbers", "n", summed("x", "x", "[DISPLAY]")),
}


def program(kind: str, length: int) -> str:
    """The source of a module with `f` and `argument`."""
    _, argument, body = KINDS[kind]
    display = ", ".join(f"0.5 * xs + {k}" for k in range(length))
    body = body.replace("DISPLAY", display).replace("[0.5 * k for k in range(LENGTH)]", "TABLE")
    return f"{HEAD}n = {length}\nTABLE = [0.5 * k for k in range(n)]\nargument = {argument}\n\ndef f(xs):\n    {body}\n"


def child(kind: str, lengths: Sequence[int], limit: float) -> None:
    """Compile the programs of a kind, and print a line of JSON for each."""
    os.environ["MYIA_RELAY_CACHE_SIZE"] = "0"
    os.environ["MYIA_RELAY_PATIENCE"] = "0"
    from myia_relay import relay

    relay(lambda x: x + 1.0)(1.0)
    print(json.dumps("ready"), flush=True)
    with tempfile.TemporaryDirectory(prefix="myia_relay_bench.") as folder:
        for length in lengths:
            path = Path(folder) / f"{kind}_{length}.py"
            path.write_text(program(kind, length), "utf-8")
            module = common.module_of(path)
            want = module.f(module.argument)
            begin = time.process_time()
            resource.setrlimit(resource.RLIMIT_CPU, (int(begin + limit) + 1, resource.RLIM_INFINITY))
            try:
                got: Any = relay(module.f)(module.argument)
                problem = None if abs(got - want) <= 1e-9 * abs(want) else f"{got!r} is not {want!r}"
            except Exception as error:  # a refusal is a result too
                problem = f"{type(error).__name__}: {str(error).splitlines()[-1]}"
            print(json.dumps([length, time.process_time() - begin, problem]), flush=True)


def measure(kind: str, lengths: Sequence[int], limit: float) -> tuple[dict[int, float | None], str | None]:
    """Seconds for each length of a kind, None where the limit was reached, and what went wrong."""
    figures: dict[int, float | None] = {}
    words = [sys.executable, "-m", "benchmarks.containers", "--child", kind, "--lengths", ",".join(map(str, lengths))]
    words += ["--limit", str(limit)]
    for length, line in common.lines_of_child(words, lengths):
        if line is None:
            figures[length] = None
            break
        _, seconds, problem = line
        if problem:
            return figures, f"{kind} {length}: {problem}"
        figures[length] = seconds
    return figures, None


def cell(figures: dict[int, float | None], length: int, limit: float) -> str:
    """A figure for the table."""
    if length not in figures:
        return "-"
    seconds = figures[length]
    return f"> {limit:g}" if seconds is None else f"{seconds:.2f}"


def draw(path: Path, now: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Draw seconds over lengths for each kind; dashed what another version took."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 4, figsize=(12, 8), sharex=True, sharey=True)
    for kind, axis in zip(KINDS, axes.flat, strict=True):
        for found, style, label in ((before, "C1--", "before"), (now, "C0-", "now")):
            points = sorted((int(n), s) for n, s in ((found or {}).get(kind) or {}).items())
            known = [(n, s) for n, s in points if s is not None]
            if known:
                axis.loglog(*zip(*known, strict=True), style, marker=".", label=label)
            if points and points[-1][1] is None:
                axis.annotate("longer", (points[-1][0], 20.0), color=style[:2], ha="right", fontsize=8)
        axis.set_title(KINDS[kind][0], fontsize=10)
        axis.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=8)
    for axis in axes[-1]:
        axis.set_xlabel("length")
    for axis in axes[:, 0]:
        axis.set_ylabel("seconds to compile")
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where a program was refused or its result is not CPython's.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks containers", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)), metavar="N,...", help="default: %(default)s")
    parser.add_argument(
        "--only", type=lambda text: common.choose(text, tuple(KINDS)), metavar="NAMES", help="commas between them"
    )
    parser.add_argument(
        "--limit", type=float, default=20.0, help="seconds of the processor for a compilation (default: %(default)s)"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    parser.add_argument("--before", metavar="FILE", help="figures of another version, for the plot")
    parser.add_argument("--plot", metavar="FILE", help="draw them")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    lengths = [int(n) for n in options.lengths.split(",")]
    if options.child:
        child(options.child, lengths, options.limit)
        return 0
    found: dict[str, dict[int, float | None]] = {}
    wrong: list[str] = []
    rows = [["seconds", *(f"{n:,}" for n in lengths)]]
    for kind in options.only or KINDS:
        found[kind], problem = measure(kind, lengths, options.limit)
        wrong += [problem] if problem else []
        rows.append([KINDS[kind][0], *(cell(found[kind], n, options.limit) for n in lengths)])
        print(common.table([rows[0], rows[-1]]).splitlines()[1], file=sys.stderr, flush=True)
    print(common.table(rows))
    for line in wrong:
        print(f"FAILED: {line}")
    if options.json:
        Path(options.json).write_text(json.dumps(found), "utf-8")
    if options.plot:
        before = None
        with contextlib.suppress(TypeError):
            before = json.loads(Path(options.before).read_text("utf-8"))
        draw(Path(options.plot), found, before)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
