"""The examples of docs/sources.md run."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sources.md"


def test_the_example(capsys):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == "9.0\n"
