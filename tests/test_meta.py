"""The testers, tested: what should fail does fail, and the fixtures and markers do what they say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def run_tests(tmp_path):
    """Run a test file under this project's settings and conftest, in a process of its own; gives its output."""

    def run(source: str, *options: str) -> str:
        folder = tmp_path / "checkout" / "tests"
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "pyproject.toml", folder.parent)
        shutil.copy(ROOT / "tests" / "conftest.py", folder)
        (folder / "test_it.py").write_text(textwrap.dedent(source))
        inherited = ("PYTEST_", "MYIA_RELAY_", "COV_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(inherited)}
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
        done = subprocess.run(
            command, cwd=folder.parent, env={**environment, "OUT": str(tmp_path)}, capture_output=True, text=True
        )
        return done.stdout + done.stderr

    return run


def test_a_warning_is_a_failure(run_tests):
    out = run_tests(
        """
        import warnings
        def test_ours(): warnings.warn("old", DeprecationWarning)
        def test_numpy():
            import numpy as np
            np.float32(1e38) * np.float32(10)
        def test_astor():
            warnings.warn("ast.Num is deprecated and will be removed in Python 3.14; use ast.Constant instead",
                          DeprecationWarning)
        """
    )
    assert "2 failed, 1 passed" in out


def test_an_unknown_marker_is_an_error(run_tests):
    assert "'campain' not found in `markers`" in run_tests("import pytest\n@pytest.mark.campain\ndef test(): pass\n")


def test_campaigns_run_only_when_asked_for(run_tests):
    source = "import pytest\n@pytest.mark.campaign\ndef test_long(): pass\ndef test_short(): pass\n"
    assert "1 passed, 1 deselected" in run_tests(source)


def test_an_expected_failure_that_passes_is_a_failure(run_tests):
    assert "1 failed" in run_tests("import pytest\n@pytest.mark.xfail(reason='x')\ndef test(): pass\n")


def test_each_executor_gets_its_turn(run_tests):
    out = run_tests("def test(executor): assert executor == 'native'\n")
    assert "2 failed, 1 passed" in out and "test[interpreter]" in out and "test[python]" in out


def test_the_data_is_skipped_with_a_reason(run_tests):
    out = run_tests("def test(data_dir): assert False\n")
    assert "1 skipped" in out and "no datasets: MYIA_RELAY_DATA is not set" in out


def test_the_cache_is_temporary(run_tests, tmp_path):
    out = run_tests(
        """
        import os, pathlib
        def test():
            cache = pathlib.Path(os.environ["MYIA_RELAY_CACHE"])
            cache.mkdir()
            (cache / "kernel").write_text("")
            pathlib.Path(os.environ["OUT"], "where").write_text(str(cache))
        """
    )
    assert "1 passed" in out
    cache = Path((tmp_path / "where").read_text())
    assert not cache.parent.exists() and str(Path.home()) not in str(cache)


def test_serial_tests_have_the_machine_to_themselves(run_tests, tmp_path):
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    out = run_tests(
        """
        import json, os, time, pytest
        def work(name):
            start = time.monotonic()
            time.sleep(0.05)
            with open(os.path.join(os.environ["OUT"], "log"), "a") as log:
                log.write(json.dumps([name, start, time.monotonic()]) + "\\n")
        @pytest.mark.parametrize("n", range(12))
        def test_shared(n): work("shared")
        @pytest.mark.serial
        @pytest.mark.parametrize("n", range(4))
        def test_alone(n): work("alone")
        """,
        "-n",
        "3",
    )
    assert "16 passed" in out
    spans = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    overlaps = {
        tuple(sorted((a[0], b[0]))) for i, a in enumerate(spans) for b in spans[:i] if a[1] < b[2] and b[1] < a[2]
    }
    assert overlaps == {("shared", "shared")}
