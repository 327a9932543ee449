"""`docs/adding-an-operator.md`, followed: its blocks are applied to a copy of the package, and what they add runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-an-operator.md"
BLOCK = re.compile(r"```python\n# (\S+\.py)(?:, in (\w+))?\n(.*?)```", re.DOTALL)
PROGRAM = """
import numpy as np

from myia_relay import absmax, grad, jvp, relay, softsign, squared_distances, vmap

x, y = np.linspace(-1.5, 2, 12).reshape(4, 3), np.linspace(0, 1, 15).reshape(5, 3)
np.testing.assert_allclose(softsign(x), x / (1 + np.abs(x)), rtol=1e-15)
np.testing.assert_allclose(absmax(x, axis=1), np.abs(x).max(1))
np.testing.assert_allclose(squared_distances(x, y), ((x[:, None] - y) ** 2).sum(2), rtol=1e-14)


def loss(x):
    return np.sum(relay.softsign(x) * x) + relay.absmax(x) + np.sum(relay.squared_distances(x, x[:2] + 1.0) ** 2)


def check(executor):
    derivative = relay(grad(loss), executor=executor)(x)
    value = relay(loss, executor=executor)
    each = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[index] = 1e-6
        each[index] = (value(x + step) - value(x - step)) / 2e-6
    np.testing.assert_allclose(derivative, each, rtol=1e-6, atol=1e-6)
    forward = relay(lambda x, t: jvp(loss, (x,), (t,))[1], executor=executor)(x, y[:4])
    np.testing.assert_allclose(forward, np.sum(derivative * y[:4]), rtol=1e-9)
    examples = np.stack([x, 2 * x, x - 1])
    batched = relay(vmap(grad(loss)), executor=executor)(examples)
    np.testing.assert_allclose(batched, [relay(grad(loss), executor=executor)(e) for e in examples], rtol=1e-9)


for executor in ("interpreter", "python", "native"):
    check(executor)
print("all executors agree")
"""


def blocks(page: str) -> list[tuple[str, str | None, str]]:
    """The file, the table in it (or None for its end) and the text of each block."""
    return [(path, table, text) for path, table, text in BLOCK.findall(page)]


def apply(root: Path, path: str, table: str | None, text: str) -> None:
    """Add a block to a file of a copy."""
    file = root / path
    old = file.read_text()
    if table:
        start = re.search(rf"^{table} = \(\n", old, re.MULTILINE)
        file.write_text(old[: start.end()] + text + old[start.end() :])
    else:
        file.write_text(f"{old.rstrip()}\n\n\n{text}")


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The package and the registry tests, with the page's operators."""
    root = tmp_path_factory.mktemp("copy")
    for folder in ("myia_relay", "tests/prims"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for block in blocks(PAGE.read_text()):
        apply(root, *block)
    return root


def run(copy: Path, *command: str) -> str:
    """The output of Python in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(
        [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_elementwise_operator_is_one_file_and_a_name():
    page = PAGE.read_text()
    section = page[page.index("## An elementwise operator") : page.index("## A reduction")]
    package = [(path, table) for path, table, _ in blocks(section) if path.startswith("myia_relay")]
    assert [(path, table or None) for path, table in package] == [
        ("myia_relay/prims/ops/special.py", None),
        ("myia_relay/utils/names.py", "OPERATORS"),
    ]


def test_every_block_of_the_page_is_applied():
    page = PAGE.read_text()
    assert len(blocks(page)) == page.count("```python")


def test_the_operators_run_in_every_executor(copy):
    (copy / "program.py").write_text(PROGRAM)  # in a file, since the compiler reads source text
    assert "all executors agree" in run(copy, "program.py")


def test_the_registry_accepts_them(copy):
    files = [f"tests/prims/test_{name}.py" for name in ("registry", "axes", "native", "forward")]
    names = "softsign or reduce_absmax or squared_distances or missing or declares or moves"
    out = run(copy, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files, "-k", names)
    assert int(re.search(r"(\d+) passed", out)[1]) > 40
