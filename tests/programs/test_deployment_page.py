"""`docs/deployment.md`: its programs run, in order, and the C program compiles."""

from __future__ import annotations

import linecache
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from myia_relay import Float, Float64, Tensor, cli, relay, relay_model
from myia_relay.backend.native import library

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "deployment.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(not library.supported(), reason="code is not linked here")
def test_the_programs_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = types.ModuleType("deployment_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # pickles name it
    names = vars(page)
    names |= {
        "relay": relay,
        "relay_model": relay_model,
        "Tensor": Tensor,
        "Float": Float,
        "Float64": Float64,
        "np": np,
    }
    for number, block in enumerate(blocks("python")):
        name = f"<deployment.md, program {number}>"
        linecache.cache[name] = (len(block), None, block.splitlines(True), name)
        exec(compile(block, name, "exec"), names)
    x = np.linspace(0, 1, 144, dtype=np.float32).reshape(1, 12, 12)
    expected = names["model"](x)
    for f in (names["again"], names["independent"], names["classify"]):
        assert np.array_equal(f(x), expected)
    assert (tmp_path / "scaled.a").read_bytes().startswith(b"!<arch>\n")

    assert cli.main(["include"]) == 0
    include = capsys.readouterr().out.strip()
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    (block,) = blocks("c")
    head, body = block.split("\n\n", 1)
    values = ", ".join(f"{v}f" for v in x.ravel().tolist())
    show = 'for (int k = 0; k < 5; k++) printf("%.9g\\n", scores[k]);'
    program = f"{head}\nint main(void) {{ float image[] = {{{values}}}, scores[5];\n{body}\n{show}\nreturn 0; }}\n"
    (tmp_path / "app.c").write_text(program)
    subprocess.run(["gcc", "app.c", f"-I{include}", "-o", "app", "-lm", "-ldl"], check=True)
    out = subprocess.run(["./app"], capture_output=True, text=True, check=True).stdout
    assert np.allclose([float(line) for line in out.splitlines()], expected, rtol=1e-5, atol=1e-6)
