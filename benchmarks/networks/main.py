"""`python -m benchmarks.networks`: inference and training steps of networks, beside PyTorch, ONNX Runtime and JAX.

All systems start from the same weights and inputs, each in a process of its own; their outputs are compared, and their times
are measured in interleaved rounds, one system at a time, with each number of threads. Shown: median milliseconds, and the
best peer's time over ours, the median of the ratios of the rounds. Of training steps also the peak of resident memory, each
in a further process that only runs steps (ours finds its compiled program in a file): of the whole process, and of what came
after the imports.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from myia_relay.utils.switches import OPTIMISATIONS

from .. import common
from ..workers import System, Worker, find_peer
from .cases import ROWS, VISION

OURS = "myia_relay"
WITHOUT = "without "
TOLERANCE = 1e-4
"""How much outputs may differ, each array by its own largest entry."""
RECURRENT = ("rnn", "gru", "lstm")


PEERS = {
    "torch": System("torch", "torch_networks"),
    "compile": System("torch", "torch_networks", "compile"),
    "ort": System("onnxruntime, onnx", "ort_networks", "", (*VISION, *RECURRENT)),
    "jax": System("jax", "jax_networks", "", tuple(row for row in ROWS if not row.startswith("treelstm"))),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where ours failed or an output differs.
    """
    options = parse(argv)
    info = common.begin()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="myia_relay_networks.") as name:
        bench = Bench(options, Path(name))
        for threads in options.threads:
            print(f"\n{threads} thread{'s' * (threads > 1)}", flush=True)
            for row in options.only:
                found = bench.row(row, threads)
                rows += found
                print(lines(found), flush=True)
    for threads in options.threads:
        some = [r for r in rows if r["threads"] == threads]
        print(f"\n== {threads} thread{'s' * (threads > 1)} ==\n\n{table(some)}\n\n{memory_table(some)}")
    common.write_json(options.json, {"benchmark": "networks", "environment": info, "rows": rows})
    return int(any(not right(row) for row in rows))


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networks", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add(
        "--only",
        type=lambda text: common.choose(text, tuple(ROWS)),
        default=list(ROWS),
        metavar="NAMES",
        help=f"of {','.join(ROWS)}",
    )
    add(
        "--threads",
        type=common.several,
        default=[1, 2],
        metavar="N",
        help="or several, commas between them (default: 1,2)",
    )
    add(
        "--peers",
        type=lambda text: common.choose(text, tuple(PEERS)),
        default=list(PEERS),
        metavar="NAMES",
        help=f"of {','.join(PEERS)}, or none (default: all)",
    )
    add("--peer-python", metavar="PATH", help="the Python that has the peers, where it is not the running one")
    add("--data", metavar="DIR", help="has sst/dev.txt.gz, the trees of treelstm; else they are drawn")
    add("--json", type=Path, metavar="OUT", help="write all figures to a file")
    add("--rounds", type=common.positive, default=5, help="how often each system is measured (default: %(default)s)")
    add("--seconds", type=float, default=0.5, help="for each system in each round (default: %(default)s)")
    add("--executor", choices=("native", "python", "interpreter"), default="native", help="default: %(default)s")
    add("--tiny", action="store_true", help="small sizes, to see that it runs")
    add(
        "--ablate",
        type=lambda text: common.choose(text, tuple(OPTIMISATIONS)),
        default=[],
        metavar="NAMES",
        help=f"measure ours without each of these too, of {','.join(OPTIMISATIONS)}",
    )
    return parser.parse_args(argv)


class Bench:
    """A run of the benchmark.

    Args:
        options: of the command line.
        folder: for files, empty.
    """

    def __init__(self, options: argparse.Namespace, folder: Path):
        self.options, self.folder = options, folder
        self.runs = {OURS: System(None, "relay_networks", options.executor)}
        self.pythons: dict[str, str | None] = {OURS: None}
        for name in options.ablate:
            self.runs[WITHOUT + name] = self.runs[OURS]._replace(without=name)
        for name in options.peers:
            run = PEERS[name]
            assert run.package is not None
            python = find_peer(run.package, options.peer_python)
            if python is None:
                print(f"{name}: {run.package} is not installed here; --peer-python PATH names the Python that has it")
            else:
                self.runs[name], self.pythons[name] = run, python

    def worker(self, name: str, threads: int) -> Worker:
        """A fresh worker of a system; ours compile anew for each number of threads."""
        return self.runs[name].start(threads, self.pythons.get(name), self.folder / f"cache{threads}")

    def row(self, row: str, threads: int) -> list[dict[str, Any]]:
        """The figures of all systems that have a row, ours first; each in a process that has seen no other row."""
        options = self.options
        request = {"row": row, "tiny": options.tiny, "data": options.data}
        starts = {
            name: functools.partial(self.worker, name, threads) for name, run in self.runs.items() if run.has(row)
        }
        found = common.side_by_side(starts, request, self.folder / f"{row}.npz", options.rounds, options.seconds)
        figures = {name: {"row": row, "system": name, "threads": threads, **figure} for name, figure in found.items()}
        if row.endswith("_step"):
            for name, figure in figures.items():
                if (
                    name != "compile" and "failed" not in figure
                ):  # compiling, which is done in the process, has its own peak
                    with self.worker(name, threads) as worker:
                        figure["memory"] = worker("memory", **request)
        return list(figures.values())


def right(row: dict[str, Any]) -> bool:
    """Whether a system's output is ours, and ours is there; peers that fail are only shown."""
    if row["system"] == OURS or row["system"].startswith(WITHOUT):
        return "failed" not in row and row.get("difference", 0.0) <= TOLERANCE
    return row.get("difference", 0.0) <= TOLERANCE


def lines(rows: list[dict[str, Any]]) -> str:
    """The figures of one row, a line for each system."""
    found = []
    for row in rows:
        where = f"{row['row']:<14}{row['system']:<24}"
        if "failed" in row:
            found.append(f"{where}failed: {row['failed'].strip()}")
            continue
        differs = f"differs by {row['difference']:.1e}" if "difference" in row else ""
        wrong = "" if right(row) else "WRONG"
        times = f"{1e3 * row['seconds']:10.3f} ms (least {1e3 * min(row['rounds']):.3f})"
        found.append(f"{where}{times}  first call {row['compile']:6.2f} s more  {differs} {wrong}".rstrip())
    return "\n".join(found)


def memory_table(rows: list[dict[str, Any]]) -> str:
    """Megabytes by system: of the whole process, and what came after the imports."""
    measured = [row for row in rows if row.get("memory")]
    systems = list(dict.fromkeys(row["system"] for row in measured))
    if not systems:
        return "no memory measured"
    shown = [["MB, whole process / after the imports", *systems]]
    for name in dict.fromkeys(row["row"] for row in measured):
        found = {row["system"]: row["memory"] for row in measured if row["row"] == name}
        cells = [
            f"{found[s]['peak'] / 1e6:.0f} / {found[s]['growth'] / 1e6:.0f}" if s in found else "" for s in systems
        ]
        shown.append([name, *cells])
    return common.table(shown)


def table(rows: list[dict[str, Any]]) -> str:
    """Milliseconds by system; the best peer's time over ours, by rounds."""
    systems = [s for s in dict.fromkeys(row["system"] for row in rows) if s != OURS]
    peers = [s for s in systems if not s.startswith(WITHOUT)]
    shown = [["ms", OURS, *systems, "best peer / ours"]]
    ahead = []
    for name in dict.fromkeys(row["row"] for row in rows):
        found = {r["system"]: r for r in rows if r["row"] == name and "seconds" in r}
        cells = [f"{1e3 * found[s]['seconds']:,.3f}" if s in found else "" for s in (OURS, *systems)]
        ratios = [
            common.ratio(found[p]["rounds"], found[OURS]["rounds"]) for p in peers if p in found and OURS in found
        ]
        if ratios:
            ahead.append(min(ratios))
        shown.append([name, *cells, f"{min(ratios):.2f}" if ratios else ""])
    mean = f"\n\ngeometric mean {statistics.geometric_mean(ahead):.2f}, least {min(ahead):.2f}" if ahead else ""
    return common.table(shown) + mean
