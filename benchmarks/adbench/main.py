"""`python -m benchmarks.adbench`: gradients and Jacobians of six workloads, beside JAX, PyTorch and hand-written C++.

Every instance of ADBench under a folder, and LAGrad's sizes of its two workloads. All outputs are checked by ADBench's
rule. Times of the objective and of the derivative, returned afresh and `into` arrays that exist, are measured in
interleaved rounds, one system at a time, with each number of threads; compile times in an empty cache; peak memory above
inputs and outputs in processes of their own. At the end the ratios, and the time for each element as sizes grow.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import re
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from myia_relay.utils.switches import OPTIMISATIONS

from .. import common
from ..workers import System, Worker, WorkerError, find_peer
from . import cases, limit, report
from .cases import WORKLOADS, Case

OURS = "myia_relay"
ALL = tuple(WORKLOADS)


PEERS = {
    "jax": {"jax": System("jax", "jax_adbench")},
    "torch": {
        "torch": System("torch", "torch_adbench"),
        "torch rows": System("torch", "torch_adbench", "rows", ("ba", "hand")),
    },
    "torch_compile": {"torch.compile": System("torch", "torch_adbench", "compile")},
    "limit": {},
}
SGEMM = System(None, "sgemm_adbench", "", ("mlp",))
"""What the products of the perceptron cost alone; measured with `limit`, which has no perceptron."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Args:
        argv: the options; by default the process's own.

    Returns:
        0, or 1 where an output of ours is wrong or missing.
    """
    options = parse(argv)
    info = common.begin()
    try:
        found = cases.find_cases(options.data, options.only)
    except FileNotFoundError as error:
        print(error)
        return 2
    found = [case for case in found if re.search(options.cases, f"{case.workload}/{case.name}")]
    rows: list[dict[str, Any]] = []
    scaling: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="myia_relay_adbench.") as name:
        bench = Bench(options, Path(name))
        for threads in options.threads:
            print(f"\n{threads} thread{'s' * (threads > 1)}", flush=True)
            rows += bench.all_cases(found, threads)
        if not options.check:
            if not options.no_memory:
                bench.memory(found, [row for row in rows if row["threads"] == options.threads[0]])
            if not options.no_scaling:
                scaling = bench.scaling(options.only)
    print()
    report.show(rows, scaling, options.check)
    common.write_json(options.json, {"benchmark": "adbench", "environment": info, "rows": rows, "scaling": scaling})
    return int(report.failures(rows) > 0)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.adbench", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, metavar="DIR", help="ADBench's instances: folders gmm, ba, hand, lstm, and ref")
    add("--only", type=lambda t: common.choose(t, ALL), default=list(ALL), metavar="NAMES", help=f"of {','.join(ALL)}")
    add("--cases", default="", metavar="REGEX", help="only instances whose workload/name has it")
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
        default=["jax", "torch", "limit"],
        metavar="NAMES",
        help=f"of {','.join(PEERS)}, or none (default: jax,torch,limit)",
    )
    add("--peer-python", metavar="PATH", help="the Python that has the peers, where it is not the running one")
    add("--limit-source", type=Path, metavar="PATH", help="the C++ reference, which is not part of this repository")
    add("--json", type=Path, metavar="OUT", help="write all figures to a file")
    add("--check", action="store_true", help="outputs only: no times, no memory")
    add("--rounds", type=common.positive, default=3, help="how often each system is measured (default: %(default)s)")
    add("--seconds", type=float, default=0.15, help="for each figure of each round (default: %(default)s)")
    add("--executor", choices=("native", "python", "interpreter"), default="native", help="default: %(default)s")
    add(
        "--ablate",
        type=lambda text: list(OPTIMISATIONS) if text == "all" else common.choose(text, tuple(OPTIMISATIONS)),
        default=[],
        metavar="NAMES",
        help=f"measure ours without each of these too: all, or of {','.join(OPTIMISATIONS)}",
    )
    add("--no-memory", action="store_true", help="leave out the peak memory")
    add("--no-scaling", action="store_true", help="leave out the scaling table")
    options = parser.parse_args(argv)
    if options.data is None and set(options.only) - {"trmv", "mlp"}:
        print("no --data: ADBench's workloads are left out")
        options.only = [name for name in options.only if name in ("trmv", "mlp")]
    return options


class Bench:
    """A run of the benchmark.

    Args:
        options: of the command line.
        folder: for files, empty.
    """

    def __init__(self, options: argparse.Namespace, folder: Path):
        self.options = options
        self.folder = folder
        self.cache = folder / "cache"
        self.runs = {OURS: System(None, "relay_adbench", options.executor)}
        self.pythons: dict[str, str | None] = {OURS: None}
        for name in options.ablate:
            system = report.WITHOUT + name
            self.runs[system], self.pythons[system] = self.runs[OURS]._replace(without=name), None
        self.program: Path | None = None
        for name in options.peers:
            if name == "limit":
                self._start_limit()
                continue
            for run_name, run in PEERS[name].items():
                python = find_peer(run.package, options.peer_python)
                if python is None:
                    print(
                        f"{name}: {run.package} is not installed here; pip install -e '.[bench]', or --peer-python PATH"
                    )
                    break
                self.runs[run_name], self.pythons[run_name] = run, python
        if "limit" in options.peers and not options.check:
            self.runs["sgemm"], self.pythons["sgemm"] = SGEMM, None

    def _start_limit(self) -> None:
        source = self.options.limit_source
        if source is None or not source.is_file():
            print(f"limit: skipped, {'--limit-source names no file' if source else 'its --limit-source is not given'}")
            return
        try:
            self.program = limit.build(source, self.folder)
        except limit.LimitError as error:
            print(f"limit: skipped, {error}")

    def worker(self, name: str, threads: int) -> Worker:
        """A fresh worker of a system; all of ours in this run share a cache that begins empty."""
        return self.runs[name].start(threads, self.pythons.get(name), self.cache)

    def all_cases(self, found: list[Case], threads: int) -> list[dict[str, Any]]:
        """The rows of all cases, printed as they come."""
        rows = []
        # The cache is not shared between numbers of threads, so that each compiles.
        self.cache = self.folder / f"cache{threads}"
        with contextlib.ExitStack() as stack:
            workers: dict[str, Worker] = {}
            for case in found:
                new = self.one_case(case, threads, workers, stack)
                rows += new
                print(report.case_lines(new), flush=True)
        return rows

    def one_case(
        self, case: Case, threads: int, workers: dict[str, Worker], stack: contextlib.ExitStack
    ) -> list[dict[str, Any]]:
        """The rows of a case, one for each system that has its workload.

        Args:
            case: which.
            threads: how many each system may use.
            workers: by system; missing ones are started.
            stack: closes them.
        """
        options = self.options
        spec = dataclasses.asdict(case)
        rows: dict[str, dict[str, Any]] = {}
        measures: dict[str, Callable[[], float]] = {}
        for name, run in self.runs.items():
            if not run.has(case.workload):
                continue
            row = rows[name] = {"workload": case.workload, "case": case.name, "system": name, "threads": threads}
            try:
                if name not in workers:
                    workers[name] = stack.enter_context(self.worker(name, threads))
                worker = workers[name]
                prepared = worker("prepare", case=spec)
                row |= {key: prepared[key] for key in ("compile", "error", "note", "elements")}
                if options.check:
                    continue
                if prepared["into"]:
                    measures[f"{name}/into"] = _measure(worker, "into", options.seconds)
                measures[f"{name}/gradient"] = _measure(worker, "gradient", options.seconds)
                row["objective"] = worker("measure", what="objective", seconds=options.seconds)
            except WorkerError as error:
                row["failed"] = str(error)
                workers.pop(name, None)
        if self.program is not None and case.workload != "mlp":
            row = rows["limit"] = {"workload": case.workload, "case": case.name, "system": "limit", "threads": threads}
            try:
                self._limit_measures(case, threads, row, measures)
            except (limit.LimitError, OSError, ValueError) as error:
                row["failed"] = str(error)
        if not options.check:
            try:
                figures = common.interleave(measures, options.rounds, rest=0.02)
            except (WorkerError, limit.LimitError) as error:
                return [{**row, "failed": row.get("failed", str(error))} for row in rows.values()]
            for key, values in figures.items():
                name, _, what = key.partition("/")
                rows[name][what] = statistics.median(values)
                rows[name][f"{what} rounds"] = values
        return list(rows.values())

    def _limit_measures(self, case: Case, threads: int, row: dict[str, Any], measures: dict) -> None:
        assert self.program is not None
        program = self.program
        record = cases.load(case)
        path, out = self.folder / "limit.bin", self.folder / "limit.out"
        kind = limit.write_input(record, path)
        figures = limit.run(program, kind, path, threads, out)
        row |= {"objective": figures["objective"], "error": limit.error(out, case, record)}
        out.unlink()
        if not self.options.check:
            measures["limit/gradient"] = lambda: limit.run(program, kind, path, threads)["gradient"]

    def memory(self, found: list[Case], rows: list[dict[str, Any]]) -> None:
        """Add the peak memory of each system to its rows; ours without compiling, from the cache."""
        warmed: set[tuple[str, int]] = set()
        for case in found:
            small = dataclasses.asdict(cases.generated(case.workload, **cases.SCALING[case.workload][0]))
            for row in rows:
                name = row["system"]
                # One row of a Jacobian after the other needs little; it is compared in time only.
                if (row["workload"], row["case"]) != (case.workload, case.name) or name not in (OURS, "jax", "torch"):
                    continue
                if "failed" in row:
                    continue
                self.cache = self.folder / f"cache{row['threads']}"
                try:
                    if name == OURS and (case.workload, row["threads"]) not in warmed:
                        with self.worker(name, row["threads"]) as worker:
                            worker("prepare", case=small, check=False)  # into the cache
                        warmed.add((case.workload, row["threads"]))
                    with self.worker(name, row["threads"]) as worker:
                        row["peak"] = worker("memory", case=dataclasses.asdict(case), warm=small)["bytes"]
                except WorkerError as error:
                    print(f"memory of {name}, {case.workload}/{case.name}: {error}")

    def scaling(self, workloads: list[str]) -> list[dict[str, Any]]:
        """Seconds of ours, and of the reference where there is one, as sizes grow over three decades; one thread."""
        rows = []
        self.cache = self.folder / "cache_scaling"
        for workload in workloads:
            for sizes in cases.SCALING[workload]:
                case = cases.generated(workload, **sizes)
                row = {"workload": workload, "case": case.name, "system": OURS}
                try:
                    with self.worker(OURS, 1) as worker:
                        row |= worker("prepare", case=dataclasses.asdict(case), check=False)
                        values = [worker("measure", what="into", seconds=self.options.seconds) for _ in range(3)]
                    row["seconds"] = statistics.median(values)
                    if self.program is not None and workload != "mlp":
                        path = self.folder / "limit.bin"
                        kind = limit.write_input(cases.load(case), path)
                        row["limit"] = statistics.median(
                            limit.run(self.program, kind, path, 1)["gradient"] for _ in range(3)
                        )
                except (WorkerError, limit.LimitError, OSError, ValueError) as error:
                    row["failed"] = str(error)
                rows.append(row)
        return rows


def _measure(worker: Worker, what: str, seconds: float) -> Callable[[], float]:
    return lambda: worker("measure", what=what, seconds=seconds)
