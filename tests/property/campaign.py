"""A campaign of random programs: `python -m tests.property.campaign --programs 20000 --seed 0`.

Programs run in worker processes, so that a crash or a hang ends a worker and not the campaign. Whatever fails is written to a
folder as a source file with its arguments; `--shrink FILE` makes one smaller, `--show SEED` prints a program, and
`--only SEED` runs one here. A seed gives the same program everywhere.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from queue import Empty, Queue

ROOT = Path(__file__).resolve().parents[2]
LOW = 4  # every so manieth program is compiled as if it were large
DERIVATIVES = 64  # every so manieth program is differentiated
PER_WORKER = 250  # programs after which a worker is replaced: compiled code stays in memory


def run_one(seed: int) -> dict:
    """The verdict on the program of a seed, as JSON can hold it."""
    from .execute import check, program_of
    from .thresholds import low

    if seed % DERIVATIVES == DERIVATIVES - 1:
        return differentiate(seed)
    text = ""
    try:
        text, calls = program_of(random.Random(seed).randrange)
        with low() if seed % LOW == 1 else nullcontext():
            verdict = check(text, calls, f"<random program {seed}>", thorough=seed % 8 == 0)
    except Exception as error:
        import traceback

        return {
            "seed": seed,
            "kind": "failed",
            "detail": f"the harness: {error!r}\n{traceback.format_exc()}",
            "text": text,
        }
    out = {"seed": seed, "kind": verdict.kind, "detail": verdict.detail, "seen": dict(verdict.seen)}
    if verdict.kind in ("failed", "invalid"):
        out |= {"executor": verdict.executor, "text": text, "args": repr(verdict.args)}
    return out


def differentiate(seed: int) -> dict:
    """The verdict on the derivatives of the smooth program of a seed: in every mode and executor, and by differences."""
    from myia_relay import CompileError

    from .random_smooth import Writer
    from .test_random_derivatives import problems

    out = {"seed": seed, "kind": "same", "detail": "", "seen": {"derivatives": 1}}
    for executor in ("interpreter", "python", "native"):
        try:
            wrong = problems(seed, 2 if executor == "interpreter" and seed % 32 < DERIVATIVES else 1, executor)
        except CompileError as error:
            wrong = [] if getattr(error, "loc", None) and "internal" not in str(error) else [str(error)]
            out |= {"kind": "refused", "detail": f"{error.message}\n{error}"}
        except Exception as error:
            wrong = [repr(error)]
        if wrong:
            found = {"executor": executor, "detail": "; ".join(wrong), "text": Writer(seed).text(), "args": ""}
            return out | found | {"kind": "failed"}
    return out


def work() -> None:
    """Answer seeds from standard input with verdicts on standard output, one a line."""
    warnings.simplefilter("ignore")
    gc.set_threshold(50_000, 20, 20)  # graphs are many small objects that live for one program
    out = sys.stdout
    sys.stdout = sys.stderr
    for line in sys.stdin:
        out.write(json.dumps(run_one(int(line))) + "\n")
        out.flush()


class Worker:
    """A process that runs programs; `ask(seed)` waits for a verdict, and replaces the process where it crashed or hung."""

    def __init__(self, timeout: float):
        self.timeout, self.process, self.done = timeout, None, 0

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.property.campaign", "--worker"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.lines: Queue = Queue()
        threading.Thread(target=self.listen, args=(self.process, self.lines), daemon=True).start()
        self.done = 0

    @staticmethod
    def listen(process, lines) -> None:
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, seed: int) -> dict:
        if self.process is None or self.done >= PER_WORKER:
            self.stop()
            self.start()
        self.done += 1
        self.process.stdin.write(f"{seed}\n")
        self.process.stdin.flush()
        try:
            line = self.lines.get(timeout=self.timeout)
        except Empty:
            self.stop()
            return self.lost(seed, f"no answer in {self.timeout:.0f} s")
        if line is None:
            code = self.process.wait()
            self.stop()
            return self.lost(seed, f"the process ended with status {code}")
        return json.loads(line)

    @staticmethod
    def lost(seed: int, what: str) -> dict:
        from .execute import program_of

        text, calls = program_of(random.Random(seed).randrange)
        return {
            "seed": seed,
            "kind": "failed",
            "detail": what,
            "text": text,
            "args": repr(calls),
            "executor": "process",
        }


def generic(message: str) -> str:
    """A message without names and numbers, to count by."""
    message = re.sub(r"'[^']*'", "'_'", message.splitlines()[0] if message else "")
    message = re.sub(r"\b[a-z]+\d+\b", "_", message)
    return re.sub(r"-?\d[\d.e+-]*", "#", message)[:130]


class Campaign:
    """Runs seeds in workers and keeps count."""

    def __init__(self, seeds, jobs: int, folder: Path, timeout: float):
        self.seeds, self.jobs, self.folder, self.timeout = iter(seeds), jobs, folder, timeout
        self.kinds, self.refusals, self.seen, self.examples = Counter(), Counter(), Counter(), {}
        self.lock = threading.Lock()
        self.start = time.monotonic()

    def run(self) -> None:
        """Run until the seeds end, or Ctrl-C."""
        threads = [threading.Thread(target=self.serve, daemon=True) for _ in range(self.jobs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def serve(self) -> None:
        worker = Worker(self.timeout)
        while True:
            with self.lock:
                seed = next(self.seeds, None)
            if seed is None:
                return worker.stop()
            answer = worker.ask(seed)
            with self.lock:
                self.count(answer)

    def count(self, answer: dict) -> None:
        kind = answer["kind"]
        self.kinds[kind] += 1
        self.seen.update(answer.get("seen", {}))
        if kind == "refused":
            message = generic(answer["detail"])
            self.refusals[message] += 1
            self.examples.setdefault(message, answer["seed"])
        if kind in ("failed", "invalid"):
            self.folder.mkdir(parents=True, exist_ok=True)
            name = self.folder / f"{kind}_{answer['seed']}.txt"
            head = "".join(f"# {line}\n" for line in f"{answer.get('executor')}: {answer['detail']}".splitlines()[:40])
            name.write_text(f"{head}# arguments: {' '.join(answer.get('args', '').split())}\n{answer['text']}")
            print(
                f"{answer['seed']} {kind} {answer.get('executor', '')}: {' '.join(answer['detail'].split())[:300]}",
                flush=True,
            )
        if sum(self.kinds.values()) % 200 == 0:
            print(self.summary(), flush=True)
        if sum(self.kinds.values()) % 1000 == 0:
            print(self.table(), flush=True)

    def summary(self) -> str:
        """Counts so far."""
        total = sum(self.kinds.values())
        rate = total / (time.monotonic() - self.start)
        return f"{total} programs, {rate:.1f}/s: " + ", ".join(f"{n} {k}" for k, n in self.kinds.most_common())

    def table(self) -> str:
        """Refusals by message, with a seed each, and what the programs did under CPython."""
        lines = [f"{n:6} {message}   (seed {self.examples[message]})" for message, n in self.refusals.most_common(60)]
        return "\n".join(
            [*lines, "calls under CPython: " + ", ".join(f"{n} {k}" for k, n in self.seen.most_common(12))]
        )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=20000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one program")
    parser.add_argument(
        "--failures", type=Path, default=Path("campaign_failures"), help="folder for programs that fail"
    )
    parser.add_argument("--checked", action="store_true", help="native code checks its accesses to memory")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", type=int, nargs="+", help="run the programs of these seeds in this process")
    parser.add_argument("--show", type=int, nargs="+", help="print the programs of these seeds")
    parser.add_argument("--shrink", type=int, nargs="+", help="make the failing programs of these seeds smaller")
    options = parser.parse_args()
    if options.checked:
        os.environ["MYIA_RELAY_CHECKED"] = "1"  # of workers too
    if options.worker:
        return work()
    warnings.simplefilter("ignore")
    if options.show:
        from .execute import program_of

        for seed in options.show:
            text, calls = program_of(random.Random(seed).randrange)
            print(f"# {seed}\n{text}" + "\n".join(f"program{args!r}" for args in calls))
        return None
    if options.only:
        for seed in options.only:
            answer = run_one(seed)
            print(seed, answer["kind"], answer.get("executor", ""), answer["detail"], answer.get("args", ""))
        return None
    if options.shrink:
        from .shrink import shrink_seed

        for seed in options.shrink:
            print(shrink_seed(seed))
        return None
    campaign = Campaign(
        range(options.seed, options.seed + options.programs), options.jobs, options.failures, options.timeout
    )
    campaign.run()
    print(f"{campaign.summary()}\n{campaign.table()}")
    return None


if __name__ == "__main__":
    main()
