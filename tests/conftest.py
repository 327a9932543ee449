"""Fixtures and settings for all tests.

- Compiled code and downloads go to a temporary cache, shared by the workers of one run and removed after it.
- `data_dir` is the folder of datasets, `executor` runs a test once in each executor.
- A test that sends itself Ctrl-C has the argument `interruptible`, one of the form of native code `unchecked`.
- Of tests marked `sampled(n)` the default run takes one in n cases; `--all-cases` takes all.
- Tests marked `serial` run while no other worker runs anything.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import re
import shutil
import signal
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXECUTORS = ("interpreter", "python", "native")

_RUN_FOLDER = "MYIA_RELAY_TEST_RUN"
_MAX_WORKERS = 4
_NATIVE = re.compile(r"\bnative\b")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update-golden` writes anew what tests hold results against: golden texts, and lists of what is refused. `--all-cases` runs
    what `sampled` tests leave out.
    """
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")
    parser.addoption("--all-cases", action="store_true", help="run all cases of tests that are marked `sampled`")


def pytest_configure(config: pytest.Config) -> None:
    """Point the cache at a temporary folder, before anything is imported that could read it."""
    if _RUN_FOLDER not in os.environ:  # the workers of pytest-xdist inherit it
        folder = os.environ[_RUN_FOLDER] = tempfile.mkdtemp(prefix="myia_relay_tests.")
        os.environ["MYIA_RELAY_CACHE"] = os.path.join(folder, "cache")
        os.environ.setdefault("MYIA_RELAY_CACHE_SIZE", "0")  # tests compile, except those of the cache of programs
        os.environ.setdefault(
            "MYIA_RELAY_PATIENCE", "0"
        )  # a busy machine would put words on standard error that no test expects
        config.add_cleanup(lambda: _clean_up(folder))
    with contextlib.suppress(ImportError):
        import hypothesis

        # A first call compiles, so no deadline; CI repeats the same examples, other runs look for new ones.
        hypothesis.settings.register_profile(
            "myia_relay", deadline=None, derandomize=bool(os.environ.get("CI")), print_blob=True
        )
        hypothesis.settings.load_profile("myia_relay")


def _clean_up(folder: str) -> None:
    for name in (_RUN_FOLDER, "MYIA_RELAY_CACHE"):
        os.environ.pop(name, None)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test with parameters that is marked `sampled(n)` one in n cases is run by default, but one at least, and one in native
    code where there are such; which ones follows from their names. The others are a campaign.
    """
    if config.getoption("--all-cases"):
        return
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") is not None:
            cases.setdefault((item.path, item.nodeid.partition("[")[0]), []).append(item)
    for those in cases.values():
        mark = those[0].get_closest_marker("sampled")
        assert mark is not None
        those.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        native = (item for item in those if _NATIVE.search(item.nodeid.partition("[")[2]))
        first = next(native, those[0])
        others = [item for item in those if item is not first]
        for item in others[-(-len(those) // mark.args[0]) - 1 :]:
            item.add_marker(pytest.mark.campaign)


def pytest_collection_finish() -> None:
    """From here on the garbage collector leaves the tests themselves alone."""
    _settle()


@pytest.fixture(scope="module", autouse=True)
def _settled() -> Iterator[None]:
    """The same for the programs of a file of tests, which live as long as the process."""
    yield
    _settle()


def _settle() -> None:
    gc.collect()
    gc.freeze()  # full collections of a worker that has run thousands of tests took a seventh of the time


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`-n auto`: a worker for each core we may use, but each takes some 400 MB, so not very many."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _MAX_WORKERS))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test marked `serial` have the machine to itself, and the others share it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    with _iteration(alone=item.get_closest_marker("serial") is not None):
        return (yield)


@contextlib.contextmanager
def _iteration(alone: bool) -> Iterator[None]:
    """Hold the run's lock, shared or exclusively; the queue before it keeps sharers from starving the others."""
    import fcntl

    folder = Path(os.environ[_RUN_FOLDER])
    with open(folder / "queue.lock", "w") as queue, open(folder / "machine.lock", "w") as machine:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield


def find_data_dir() -> Path | None:
    """`$MYIA_RELAY_DATA`, or `shared/data` beside the checkout."""
    if chosen := os.environ.get("MYIA_RELAY_DATA"):
        return Path(chosen).expanduser()
    beside = ROOT.parent / "shared" / "data"
    return beside if beside.is_dir() else None


@pytest.fixture
def data_dir(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of datasets, which `MYIA_RELAY_DATA` then names; the test is skipped where there is none."""
    folder = find_data_dir()
    if folder is None or not folder.is_dir():
        pytest.skip(f"no datasets: MYIA_RELAY_DATA is not set to a folder, and there is no {ROOT.parent}/shared/data")
    monkeypatch.setenv("MYIA_RELAY_DATA", str(folder))
    return folder


@pytest.fixture
def mnist_dir(data_dir: Path) -> Path:
    """The folder of MNIST's files; the test is skipped where they are not there."""
    folder = data_dir / "mnist"
    if not folder.is_dir():
        pytest.skip(f"no MNIST: {folder} does not exist")
    return folder


@pytest.fixture
def sst_dir(data_dir: Path) -> Path:
    """The folder of the sentiment trees; the test is skipped where they are not there."""
    folder = data_dir / "sst"
    if not folder.is_dir():
        pytest.skip(f"no sentiment trees: {folder} does not exist")
    return folder


@pytest.fixture(params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> str:
    """The name of an executor: a test with this argument runs once in each."""
    return request.param


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of SIGINT, even where this process was started with SIGINT ignored (`nohup`, some CI runners).

    These tests run programs that would take years: where the interrupt is not heard in minutes, the process ends.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    faulthandler.dump_traceback_later(300, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code as it is without checks of memory, even where the run asks for them (`MYIA_RELAY_CHECKED`).

    For tests of the form of native code: its text, its functions, its threads, its files.
    """
    monkeypatch.delenv("MYIA_RELAY_CHECKED", raising=False)


@pytest.fixture(scope="session")
def updating(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are being written anew."""
    return request.config.getoption("--update-golden")
