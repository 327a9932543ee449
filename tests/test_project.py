"""The project's own promises: the README's commands and programs, the changelog, what is packaged."""

from __future__ import annotations

import ast
import importlib.resources
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def blocks(language: str) -> list[str]:
    """The README's code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_two_commands_stand_alone():
    commands = [block.strip() for block in blocks("bash")]
    assert len(commands) == 2
    for command in commands:
        assert "\n" not in command and "activate" not in command
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q -e ")
        assert re.fullmatch(r"\.venv/bin/python -m (myia_relay train lenet|pytest -n auto)", command.split(" && ")[-1])


def test_ci_runs_the_second_command():
    script = ROOT / ".ci" / "run"
    assert blocks("bash")[1].strip() == script.read_text("utf-8").strip().splitlines()[-1]
    assert script.stat().st_mode & 0o111, "not executable"
    subprocess.run(["bash", "-n", str(script)], check=True)


def functions(source: str) -> dict[str, str]:
    """Name -> a function's text in a normal form, without its docstring."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            if ast.get_docstring(node):
                node.body = node.body[1:]
            found[node.name] = ast.unparse(node)
    return found


def test_the_packaged_lenet_is_the_one_of_the_readme():
    shown = functions(next(block for block in blocks("python") if "def train_lenet" in block))
    packaged = functions((ROOT / "myia_relay" / "model" / "lenet.py").read_text("utf-8"))
    assert set(shown) == {"lenet", "loss", "train_lenet"}
    assert shown == {name: packaged[name] for name in shown}


def test_what_the_readme_points_to_exists():
    text = (ROOT / "README.md").read_text("utf-8")
    for name in re.findall(r"`((?:docs|myia_relay|notebooks|benchmarks|tests)/[^`]*)`", text):
        assert (ROOT / name).exists(), name


def test_the_changelog_knows_the_version():
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)[1]
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert "## Unreleased" in text or f"## {version}" in text


def test_data_files_are_part_of_the_package():
    folder = importlib.resources.files("myia_relay.model") / "data"
    assert {"digits.npz", "README.md"} <= {entry.name for entry in folder.iterdir()}
