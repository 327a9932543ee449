"""Systems in processes of their own, measured in turn.

Each system has its own thread pool, BLAS and allocator, and some cannot share a process at all. A worker is a Python
process, perhaps of another environment, that answers requests, one JSON document a line:
`{"call": name, "args": {...}}` gets `{"result": ...}` or `{"error": text}`. Workers wait for the next request in a
read, so that only one system computes at any time. Needs nothing beyond the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS")


class WorkerError(RuntimeError):
    """A worker that failed or ended; the message has what it said."""


class Worker:
    """A running worker.

    Args:
        module: what to run, such as `benchmarks.peers.torch_lenet`.
        arguments: its command line.
        python: in which environment; by default the running one.
        threads: how many threads, and so how many cores, it may use.
        env: further environment variables.
    """

    def __init__(
        self,
        module: str,
        arguments: list[str],
        python: str | None = None,
        threads: int = 2,
        env: dict[str, str] | None = None,
    ):
        self.module = module
        # A file, not a pipe, which a talkative compiler would fill.
        self._log = tempfile.TemporaryFile("w+", errors="replace")
        self._process = subprocess.Popen(
            [python or sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=ROOT,
            env={**os.environ, **dict.fromkeys(_THREAD_VARIABLES, str(threads)), **(env or {})},
        )

    def __call__(self, name: str, **arguments: Any) -> Any:
        """Let it run one of its functions and wait for the result.

        Raises:
            WorkerError: the function failed, or the process ended.
        """
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.write(json.dumps({"call": name, "args": arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise WorkerError(f"{self.module} ended with status {self._process.wait()}:\n{self._said()}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.module}: {answer['error']}")
        return answer["result"]

    def _said(self, lines: int = 15) -> str:
        self._log.seek(0)
        return "\n".join(self._log.read().splitlines()[-lines:])

    def close(self) -> None:
        """End it."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class System(NamedTuple):
    """How a system is started that has a worker for some of the cases.

    Attributes:
        package: what it needs; None: this compiler's environment.
        module: of its worker, in `benchmarks.peers`.
        variant: for the worker.
        cases: which ones it has; None: all.
        without: an optimisation of ours that is left out.
    """

    package: str | None
    module: str
    variant: str = ""
    cases: tuple[str, ...] | None = None
    without: str = ""

    def has(self, case: str) -> bool:
        """Whether it has a case."""
        return self.cases is None or case in self.cases

    def start(self, threads: int, python: str | None, cache: Path) -> Worker:
        """A fresh worker.

        Args:
            threads: how many it may use.
            python: its environment; None for the running one.
            cache: where ours keeps its compiled programs.
        """
        from myia_relay.utils.switches import VARIABLE

        words = ["--threads", str(threads), "--variant", self.variant]
        env = {"MYIA_RELAY_CACHE": str(cache)} | ({VARIABLE: self.without} if self.without else {})
        return Worker(f"benchmarks.peers.{self.module}", words, python, threads, env)


@contextlib.contextmanager
def opened(
    systems: Mapping[str, tuple[str, str | None]], words: Callable[[str], list[str]], threads: int
) -> Iterator[dict[str, Worker]]:
    """The workers of several systems, which are closed at the end.

    Args:
        systems: name -> the module of its worker, and its environment.
        words: name -> the command line of its worker.
        threads: how many each may use.
    """
    with contextlib.ExitStack() as stack:
        yield {
            name: stack.enter_context(Worker(module, words(name), python, threads))
            for name, (module, python) in systems.items()
        }


def serve(functions: dict[str, Callable[..., Any]]) -> None:
    """Answer requests until the other side goes: what a worker's main program calls.

    Args:
        functions: name -> what runs; arguments and results are JSON.
    """
    # Whatever a library prints goes to the log; only answers go to the other side.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"result": functions[request["call"]](**request["args"])}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def limit_cores(threads: int) -> None:
    """Keep this process to as many cores as it may use threads: some libraries start one for every core they see."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:threads])


def peak_memory() -> int:
    """The most memory this process ever had resident, in bytes."""
    try:
        # Not getrusage: on Linux its maximum begins with that of the process that started this one.
        status = Path("/proc/self/status").read_text("utf-8")
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        import resource

        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return size if sys.platform == "darwin" else size * 1024


def reset_peak_memory() -> bool:
    """Let `peak_memory` begin anew, with what is resident now.

    Returns:
        Whether the system can: Linux does.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5", "utf-8")
    except OSError:
        return False
    return True


def find_peer(package: str, python: str | None) -> str | None:
    """The Python that has a package.

    Args:
        package: an import name, such as `torch`.
        python: the interpreter the user named, if any.

    Returns:
        The path of an interpreter, or None where the package is in neither.
    """
    for candidate in (python, sys.executable):
        if candidate is None:
            continue
        # Found is not enough: a package for another processor is found and cannot be imported.
        found = subprocess.run([candidate, "-c", f"import {package}"], capture_output=True, check=False)
        if found.returncode == 0:
            return candidate
    return None
