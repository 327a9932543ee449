"""`python -m benchmarks compile`: what compiling costs, stage by stage, for programs of growing size.

Every measurement is one cold compilation in a process of its own: modules are imported (which is measured apart: the package,
TVM, the rest of the compiler, all from bytecode, as an installed package has it), then a function is called for the first time.
All that this call does is counted; no cache of programs is read. Shown are wall and processor time, the time by stage as
`f.explain()` has it, and milliseconds for each statement, which stay the same where compiling is linear. Results are compared
with CPython's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import common
from .compile_programs import FAMILIES
from .workers import Worker, WorkerError

SIZES = {
    "scalar": (10, 500, 1000, 2000, 4000),
    "arrays": (100, 200, 400, 800),
    "records": (500, 1000, 2000),
    "ifs": (10, 25, 50, 95),
    "elifs": (50, 100, 200, 400),
    "calls": (50, 100, 200, 400),
    "loop": (100, 300, 600),
    "nested_loops": (3, 6, 10),
    "expression": (100, 300, 1000),
    "display": (100, 300, 1000),
    "closures": (50, 100, 200),
    "sharing": (25, 50, 100),
    "parameters": (50, 100, 200),
    "derivative": (0, 1, 2, 3),
    "mlp": (3, 6),
    "hessian": (8,),
}
"""What each family is measured at; Python itself allows no more than some 95 ifs within each other."""
STAGES = ("inferred", "simplified", "differentiated", "optimized", "lowered", "generated", "linked")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where a program failed or its result is not CPython's.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks compile", description=__doc__.partition("\n")[0])
    common.add_common_options(parser)
    parser.add_argument(
        "--rounds", type=common.positive, default=3, help="compilations of each program (default: %(default)s)"
    )
    parser.add_argument(
        "--only", type=lambda text: common.choose(text, tuple(FAMILIES)), metavar="NAMES", help="commas between them"
    )
    parser.add_argument("--sizes", metavar="N,...", help="instead of each family's own")
    options = parser.parse_args(argv)
    info = common.begin()
    results: dict[str, Any] = {"benchmark": "compile", "environment": info, "families": {}}
    rows = [["ms", "size", "wall", "cpu", "a statement", *STAGES]]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="myia_relay_bench.") as folder:
        measure("scalar", 10, 1, options.executor, Path(folder))  # the first process of all writes the bytecode
        results["imports"] = imports(options.rounds, Path(folder))
        for name, spent in results["imports"].items():
            print(f"{name}: {1e3 * spent['wall']:,.0f} ms, {1e3 * spent['cpu']:,.0f} of the processor")
        for family in options.only or FAMILIES:
            sizes = [int(n) for n in options.sizes.split(",")] if options.sizes else SIZES[family]
            for size in sizes:
                try:
                    figures = measure(family, size, options.rounds, options.executor, Path(folder))
                except WorkerError as error:
                    wrong.append(f"{family} {size}: {error}")
                    continue
                results["families"].setdefault(family, {})[size] = figures
                if figures["wrong"]:
                    wrong.append(f"{family} {size}: {figures['wrong']}")
                rows.append(row(family, size, figures))
                print(common.table([rows[0], rows[-1]]).splitlines()[1], file=sys.stderr, flush=True)
    print(common.table(rows))
    print(f"medians of {options.rounds} cold compilations, each in a process of its own")
    for line in wrong:
        print(f"FAILED: {line}")
    common.write_json(options.json, results)
    return 1 if wrong else 0


def start(folder: Path) -> Worker:
    """A fresh process that keeps bytecode in a folder."""
    env = {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONDONTWRITEBYTECODE": "", "MYIA_RELAY_CACHE_SIZE": "0"}
    return Worker("benchmarks.peers.relay_compile", [], env=env)


def imports(rounds: int, folder: Path) -> dict[str, dict[str, float]]:
    """What importing takes, in fresh processes."""
    figures = []
    for _ in range(rounds):
        with start(folder) as worker:
            figures.append(worker("imports"))
    return {name: median([f[name] for f in figures]) for name in figures[0]}


def measure(family: str, size: int, rounds: int, executor: str, folder: Path) -> dict[str, Any]:
    """Compile one program, cold, as often as asked for."""
    program = FAMILIES[family](size)
    path = folder / f"{family}_{size}.py"
    path.write_text(program.source, "utf-8")
    figures = []
    for _ in range(rounds):
        with start(folder) as worker:
            worker("imports")
            figures.append(worker("compile_module", path=str(path), executor=executor))
    return {
        "statements": program.lines,
        "first": median([f["first"] for f in figures]),
        "second": median([f["second"] for f in figures]),
        "stages": median([f["stages"] for f in figures]),
        "wrong": figures[0]["wrong"],
    }


def median(figures: list[dict[str, float]]) -> dict[str, float]:
    """The median of each figure of several measurements."""
    return {name: statistics.median(f[name] for f in figures) for name in figures[0]}


def row(family: str, size: int, figures: dict[str, Any]) -> list[str]:
    """One line of the table, in milliseconds."""
    first, stages = figures["first"], figures["stages"]
    each = f"{1e3 * first['cpu'] / figures['statements']:,.2f}"
    times = [first["wall"], first["cpu"]]
    shown = [f"{1e3 * seconds:,.0f}" for seconds in times]
    return [family, str(size), *shown, each, *(f"{1e3 * stages[s]:,.0f}" if s in stages else "" for s in STAGES)]


if __name__ == "__main__":
    sys.exit(main())
