"""The mutation campaign: how many small faults in dangerous code do its own fast tests see?

    python -m tests.mutation.campaign --area ranges --count 30 --seed 0        look at some
    python -m tests.mutation.campaign --again REPORT                           what had survived, with new tests
    pytest -m campaign tests/mutation                                          500, and every survivor must be listed

A process that has imported what is slow to import, and nothing of the package, is forked for each mutant. The child imports the
package with the faulty module in it, and runs the tests that reach the faulty function, quickest first, until one fails. Which
tests reach what is recorded once, by a run without faults. An error at import, a crash, and tests that take several times their
usual processor time count as seen.

Survivors that change nothing anybody could see are listed in `equivalent.json`, each with the reason. The key is the place by
names and the faulty statement, so that it survives moves.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib.abc
import importlib.machinery
import itertools
import json
import os
import pickle
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutation.areas import AREAS, PACKAGE, ROOT, Area
from tests.mutation.operators import Mutant, mutants, mutated

EQUIVALENT = Path(__file__).with_name("equivalent.json")
SLOW = 4.0  # seconds: longer tests judge no mutants
BUDGET = 15.0  # seconds that the tests of one mutant take together while they are recorded; without, about half
QUICK = 5.0  # seconds that the quickest of them take, which are run in any case
SLACK = 15  # seconds of processor time beyond what the tests usually take
WALL = 600  # seconds: a process that waits for ever
MEMORY = 6 << 30
FOREIGN = -1  # the number of all functions that are not of the package


@dataclass(frozen=True)
class Case:
    """A mutant of a module, with its area."""

    area: Area
    path: Path
    mutant: Mutant

    @property
    def key(self) -> str:
        return f"{self.path.stem}.{self.mutant}"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: by what it was seen ("" if by nothing), and what that took."""

    case: Case
    killer: str
    seconds: float


# --- one process for each run ------------------------------------------------------------------------------------------


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a mutated tree."""

    def __init__(self, path: Path, tree: Any):
        self.path, self.tree = path, tree

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if not name.startswith("myia_relay.") or name.rpartition(".")[2] != self.path.stem:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin != str(self.path):
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=spec.origin)

    def exec_module(self, module: Any) -> None:
        module.__file__ = str(self.path)
        exec(compile(self.tree, str(self.path), "exec"), module.__dict__)


class _Recorder:
    """A plugin that notes which functions of the package each test runs, and the processor time that it takes.

    Attributes:
        numbers: (file, first line) of a function -> its number.
        seen: test -> numbers of functions.
    """

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, int], int] = {}
        self.seen: dict[str, set[int]] = {}
        self.times: dict[str, float] = {}
        self.known: dict[int, tuple[Any, int]] = {}  # by identity, as most calls are of what was called before

    def number(self, code: Any) -> int:
        """The number of a function that has not been called before; `FOREIGN` for those that are not of the package."""
        number = FOREIGN
        if code.co_filename.startswith(str(PACKAGE)):
            number = self.numbers.setdefault((code.co_filename, code.co_firstlineno), len(self.numbers))
        self.known[id(code)] = code, number
        return number

    def pytest_runtest_protocol(self, item: Any) -> None:
        codes = self.seen[item.nodeid] = set()
        self.times[item.nodeid] = -time.process_time()
        known = self.known

        def note(frame: Any, event: str, arg: Any) -> None:
            if event == "call":
                code = frame.f_code
                found = known.get(id(code))
                codes.add(self.number(code) if found is None else found[1])

        threading.setprofile(note)
        sys.setprofile(note)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.times[nodeid] += time.process_time()

    def pytest_sessionfinish(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)


class _Killer:
    """A plugin that notes the first test that fails."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = f"import ({report.nodeid})"


def _pytest(arguments: list[str], plugin: Any) -> int:
    import pytest

    options = [
        "-q",
        "-x",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--no-header",
        "--all-cases",
        "-m",
        "not campaign",
    ]
    return int(pytest.main([*options, *arguments], plugins=[plugin]))


class Child:
    """A forked process that sends one pickled answer and ends."""

    def __init__(self, work: Any, cpu: float):
        self.began = time.monotonic()
        reader, writer = os.pipe()
        self.log = tempfile.TemporaryFile()
        self.pid = os.fork()
        if not self.pid:
            os.close(reader)
            self._run(work, cpu, writer)
        os.close(writer)
        self.reader = os.fdopen(reader, "rb")

    def _run(self, work: Any, cpu: float, writer: int) -> None:
        status = 1
        try:
            os.setsid()
            for stream in (1, 2):
                os.dup2(self.log.fileno(), stream)
            used = time.process_time()
            resource.setrlimit(resource.RLIMIT_CPU, (int(used + cpu) + 1, int(used + cpu) + 3))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            answer = work()
            with os.fdopen(writer, "wb") as out:
                pickle.dump(answer, out)
            status = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    def end(self, wall: float) -> tuple[Any, int, float]:
        """The answer (None without one), the status, and the processor time."""
        timer = threading.Timer(wall, lambda: os.killpg(self.pid, signal.SIGKILL))
        timer.start()
        data = self.reader.read()
        _, status, usage = os.wait4(self.pid, 0)
        timer.cancel()
        self.reader.close()
        return (pickle.loads(data) if data else None), status, usage.ru_utime + usage.ru_stime

    def text(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")


def prepare() -> None:
    """Import what is slow to import and none of the package; settings that all runs share."""
    os.environ.update(
        MYIA_RELAY_CACHE_SIZE="0", CI="1", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", TVM_NUM_THREADS="1",
        MYIA_RELAY_CACHE=tempfile.mkdtemp(prefix="myia_relay_mutants."),
    )  # fmt: skip
    os.environ["MYIA_RELAY_TEST_RUN"] = os.environ["MYIA_RELAY_CACHE"]
    import hypothesis  # noqa: F401
    import ml_dtypes  # noqa: F401
    import numpy  # noqa: F401
    import pytest  # noqa: F401
    import tvm  # noqa: F401

    assert not any(name.partition(".")[0] == "myia_relay" for name in sys.modules), "the package is imported already"
    os.chdir(ROOT)
    gc.freeze()


# --- tests -------------------------------------------------------------------------------------------------------------


class Judge:
    """The tests of an area, and what each of them reaches."""

    def __init__(self, area: Area):
        self.area = area
        recorder = _Recorder()

        def work() -> Any:
            status = _pytest([str(p) for p in area.test_paths()], recorder)
            return status, recorder.numbers, recorder.seen, recorder.times

        child = Child(work, 3600)
        answer, status, _ = child.end(3600)
        if answer is None or answer[0]:
            raise RuntimeError(f"the tests of {area.name!r} fail without a fault ({status}):\n{child.text()[-4000:]}")
        _, self.numbers, self.seen, self.times = answer

    def tests_of(self, case: Case) -> list[str]:
        """The tests that reach a mutant, the quickest first.

        Where these are too many, those that run a function that none of the quicker ones runs go before the others. What is at
        the top of a module, such as a table, is seen also by tests that run no function of the package.
        """
        lines = _function_lines(case.path, case.mutant.line)  # none at the top of a module: all of its functions
        wanted = {
            number
            for (path, line), number in self.numbers.items()
            if path == str(case.path) and (not lines or line in lines)
        }
        found = [t for t, functions in self.seen.items() if functions & wanted or not lines and functions <= {FOREIGN}]
        known = [t for t in found or self.seen if self.times[t] <= SLOW]
        known.sort(key=lambda t: (self.times[t], t))
        reached: set[int] = set()
        first, rest = [], []
        for t in known:
            (rest if self.seen[t] <= reached else first).append(t)
            reached |= self.seen[t]
        ends = itertools.accumulate(self.times[t] for t in first + rest)
        chosen = {t for t, end in zip(first + rest, ends) if end <= BUDGET}
        ends = itertools.accumulate(self.times[t] for t in known)
        chosen |= {t for t, end in zip(known, ends) if end <= QUICK}
        return [t for t in known if t in chosen]

    def judge(self, case: Case) -> tuple[str, float, str]:
        """By what a mutant is seen, the processor time that took, and what was printed."""
        tests = self.tests_of(case)
        killer = _Killer()

        def work() -> str:
            source = case.path.read_text()
            sys.meta_path.insert(0, _Finder(case.path, mutated(source, case.mutant)))
            status = _pytest(tests, killer)
            return killer.name or (f"pytest ends with {status}" if status else "")

        usual = sum(self.times.get(t, 0.0) for t in tests)
        child = Child(work, 4 * usual + SLACK)
        answer, status, seconds = child.end(WALL)
        if answer is None:
            limit = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
            answer = "time" if limit else f"crash ({status})"
        return answer, seconds, child.text()


def _function_lines(path: Path, line: int) -> list[int]:
    """The first lines of the functions around a line, as code objects have them; none at the top of a module."""
    import ast

    lines = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.Lambda) and node.lineno <= line <= (node.end_lineno or 0):
            decorators = getattr(node, "decorator_list", [])
            lines.append((node.lineno, min([node.lineno, *(d.lineno for d in decorators)])))
    return [max(lines)[1]] if lines else []


# --- the campaign ------------------------------------------------------------------------------------------------------


def cases(area: Area) -> list[Case]:
    """All mutants of an area."""
    return [Case(area, path, m) for path in area.module_paths() for m in mutants(path.read_text())]


def draw(areas: Iterable[Area], count: int, seed: int, match: str = "") -> list[Case]:
    """Mutants of some areas, an equal number of each where it has as many.

    Each has a random place in line that only its own key and the seed decide: a change of the code changes no more of the draw
    than the mutants of the statements that it changes.
    """
    areas, chosen = list(areas), []

    def place(case: Case) -> bytes:
        return hashlib.sha256(f"{seed} {case.area.name} {case.key}".encode()).digest()

    for k, area in enumerate(areas):
        share = count // len(areas) + (k < count % len(areas))
        found = [c for c in cases(area) if match in c.key]
        chosen += sorted(found, key=place)[:share]
    return chosen


def survivors(areas: Iterable[Area], report: Path) -> list[Case]:
    """The mutants that survived according to a report."""
    entries = map(json.loads, report.read_text().splitlines())
    keys = {entry["key"] for entry in entries if not entry["killer"]}
    return [c for area in areas for c in cases(area) if c.key in keys]


def run(chosen: list[Case], verbose: bool = False) -> Iterator[Verdict]:
    """Judge mutants, area by area."""
    judges: dict[str, Judge] = {}
    for case in chosen:
        judge = judges.get(case.area.name)
        if judge is None:
            judge = judges[case.area.name] = Judge(case.area)
        killer, seconds, text = judge.judge(case)
        if verbose:
            print(text)
        yield Verdict(case, killer, seconds)


def equivalents() -> dict[str, str]:
    """Mutants that nobody could see -> why."""
    return json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--area", action="append", help="some areas only")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--match", default="", help="only mutants whose key contains this")
    parser.add_argument("--verbose", action="store_true", help="what the tests print")
    parser.add_argument("--report", type=Path, help="append one line of JSON for each mutant")
    parser.add_argument("--again", type=Path, help="judge again what survived according to a report, and nothing else")
    options = parser.parse_args(arguments)
    prepare()
    listed = equivalents()
    areas = [a for a in AREAS if not options.area or a.name in options.area]
    verdicts, unlisted = [], 0
    chosen = (
        survivors(areas, options.again) if options.again else draw(areas, options.count, options.seed, options.match)
    )
    for verdict in run(chosen, options.verbose):
        verdicts.append(verdict)
        case, m = verdict.case, verdict.case.mutant
        if options.report:
            entry = {"area": case.area.name, "key": case.key, "killer": verdict.killer, "seconds": verdict.seconds,
                     "listed": case.key in listed}  # fmt: skip
            with options.report.open("a") as out:
                out.write(json.dumps(entry) + "\n")
        if not verdict.killer:
            unlisted += case.key not in listed
            mark = "equivalent" if case.key in listed else "SURVIVED"
            print(f"{mark} {case.path.relative_to(PACKAGE)}:{m.line} {m}\n    was {m.before}", flush=True)
        elif options.match or options.again:
            print(f"killed {m}  by {verdict.killer} ({verdict.seconds:.1f} s)")
    print(summary(verdicts))
    return int(bool(unlisted))


def summary(verdicts: list[Verdict]) -> str:
    """The score, by area."""
    lines, listed = [], equivalents()
    for name in [*dict.fromkeys(v.case.area.name for v in verdicts), ""]:
        some = [v for v in verdicts if name in ("", v.case.area.name)]
        killed = sum(bool(v.killer) for v in some)
        same = sum(not v.killer and v.case.key in listed for v in some)
        seconds = sum(v.seconds for v in some) / max(1, len(some))
        lines.append(
            f"{name or 'all':12} {len(some):4} mutants, {killed:4} killed ({killed / max(1, len(some)):.1%}), "
            f"{same} equivalent, {len(some) - killed - same} survived, {seconds:.1f} s each"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
