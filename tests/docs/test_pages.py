"""Every example of the pages and of the docstrings runs, and prints what is written below it.

The `python` blocks of a page are one program, in order. A `text` block right after one is what it prints, up to the last digits
of floats; it ends with the error where the block raises one. A block that says `python no-run` is part of something larger.
"""

from __future__ import annotations

import doctest
import linecache
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from myia_relay import cli, relay
from myia_relay.backend.native import library
from tests.docs.public import EXAMPLES, NAMESPACE

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<out>.*?)^```)?", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"docs/adding-an-operator.md": "tests/unit/test_adding_an_operator.py"}
"""Pages whose blocks are no program -> the test that applies them."""
LINKS = {"docs/deployment.md", "docs/reference/compile.md", "docs/quick-start.md"}
"""Pages that write libraries for Python."""


def few_digits():
    """In place of MNIST, which takes long."""
    train, test = relay.datasets.digits()
    return train[:64], test[:16]


def pages() -> list:
    """The pages with examples. That of the README trains twice; `tests/test_tiny.py` runs its parts each time."""
    files = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    found = [path.relative_to(ROOT).as_posix() for path in files if BLOCK.search(path.read_text("utf-8"))]
    slow = pytest.mark.campaign
    return [pytest.param(p, marks=slow if p == "README.md" else ()) for p in found if p not in ELSEWHERE]


NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")


def same_output(wanted: str, got: str) -> bool:
    """Whether two outputs are equal but for the last digits of floats, how they are padded, and names of files."""
    wanted, got = (re.sub(r'File "[^"]*"', "File", text) for text in (wanted, got))
    if NUMBER.sub("#", wanted).split() != NUMBER.sub("#", got).split():
        return False
    one, other = ([float(v) for v in NUMBER.findall(text)] for text in (wanted, got))
    return np.allclose(one, other, rtol=1e-5, atol=1e-7)


def run(page: str, folder: Path, capsys: pytest.CaptureFixture) -> dict:
    """Run the program of a page.

    Returns:
        Its names, and what it printed as "out".
    """
    module = types.ModuleType(Path(page).stem.replace("-", "_") + "_page")
    sys.modules[module.__name__] = module  # pickles name it
    names, printed = vars(module), ""
    try:
        for number, match in enumerate(BLOCK.finditer((ROOT / page).read_text("utf-8"))):
            name = f"<{page}, program {number}>"
            linecache.cache[name] = (len(match["code"]), None, match["code"].splitlines(True), name)
            try:
                exec(compile(match["code"], name, "exec"), names)
            except ModuleNotFoundError as error:
                if str(error.name).startswith("myia_relay"):
                    raise
                pytest.skip(f"{error.name} is not installed")
            except Exception as error:
                if match["out"] is None or type(error).__name__ not in match["out"]:
                    raise
                text, kind = str(error).strip(), type(error).__name__
                print(text if kind in text else f"{kind}: {text}")
            out = capsys.readouterr().out
            if match["out"] is not None:
                assert same_output(match["out"], out), f"{name} prints\n{out}"
            printed += out
    finally:
        del sys.modules[module.__name__]
    return {**names, "out": printed}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", pages())
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    if page in LINKS and not library.supported():
        pytest.skip("code is not linked here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(relay.datasets, "mnist", few_digits)
    names = run(page, tmp_path, capsys)
    if page in CHECKS:
        CHECKS[page](names, tmp_path, capsys)


def training(names, folder, capsys):
    """What docs/training.md says of its run."""
    assert names["history"]["val_accuracy"][-1] > 0.7
    assert (folder / "runs" / "first" / "state.safetensors").exists()
    assert names["out"].count("(32, 4) (32, 3)") == 3


def looking_inside(names, folder, capsys):
    """What docs/looking-inside.md says is printed and written."""
    assert "hidden = np.tanh(w @ x)" in names["out"] and "backward" in names["out"]
    assert (folder / "trace.json").exists()


def deployment(names, folder, capsys):
    """What was pickled and saved computes the same; the C program of the page compiles and does, too."""
    x = np.linspace(0, 1, 144, dtype=np.float32).reshape(1, 12, 12)
    expected = names["model"](x)
    for f in (names["again"], names["independent"], names["classify"]):
        assert np.array_equal(f(x), expected)
    assert (folder / "scaled.a").read_bytes().startswith(b"!<arch>\n")
    assert cli.main(["include"]) == 0
    include = capsys.readouterr().out.strip()
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (block,) = re.findall(r"^```c\n(.*?)^```", (DOCS / "deployment.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    head, body = block.split("\n\n", 1)
    values = ", ".join(f"{v}f" for v in x.ravel().tolist())
    show = 'for (int k = 0; k < 5; k++) printf("%.9g\\n", scores[k]);'
    program = f"{head}\nint main(void) {{ float image[] = {{{values}}}, scores[5];\n{body}\n{show}\nreturn 0; }}\n"
    (folder / "app.c").write_text(program)
    subprocess.run(["gcc", "app.c", f"-I{include}", "-o", "app", "-lm", "-ldl"], check=True)
    out = subprocess.run(["./app"], capture_output=True, text=True, check=True).stdout
    assert np.allclose([float(line) for line in out.splitlines()], expected, rtol=1e-5, atol=1e-6)


CHECKS = {
    "docs/training.md": training,
    "docs/looking-inside.md": looking_inside,
    "docs/deployment.md": deployment,
}
"""Page -> what else is to hold after its program."""


class Checker(doctest.OutputChecker):
    """Takes outputs for equal that differ in the last digits."""

    def check_output(self, want, got, optionflags):
        """Whether the output is the one that is written."""
        return same_output(want.replace("<BLANKLINE>", ""), got)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_runs(name):
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], dict(NAMESPACE), name, None, 0)
    report: list[str] = []
    result = doctest.DocTestRunner(Checker(), verbose=False).run(test, out=report.append)
    assert result.attempted and not result.failed, "".join(report)


def test_outputs_are_compared():
    assert same_output("[1. 2.5]  x", "[1.  2.500001] x")
    assert not same_output("[1. 2.5]", "[1. 2.6]") and not same_output("1.0 x", "1.0 y") and not same_output("2", "3")


def test_the_table_of_random_numbers_has_every_function():
    text = (DOCS / "random.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)\(", text, re.MULTILINE)) == set(relay.random.__all__) - {"Key"}
