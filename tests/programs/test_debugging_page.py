"""The examples of docs/debugging.md run as they are written, one after the other."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "debugging.md"


def test_the_examples_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    source = tmp_path / "example.py"  # decorated functions are read from a file
    source.write_text("\n".join(blocks), "utf-8")
    exec(compile(source.read_text("utf-8"), str(source), "exec"), {"__name__": "example"})
