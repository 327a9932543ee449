"""`docs/random.md`: its programs run, in order."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import numpy as np

from myia_relay import grad, relay, vmap

PAGE = Path(__file__).resolve().parents[2] / "docs" / "random.md"


def test_the_programs_of_the_page_run():
    names = {"np": np, "relay": relay, "grad": grad, "vmap": vmap}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 2
    for number, block in enumerate(blocks):
        name = f"<random.md, program {number}>"
        linecache.cache[name] = (len(block), None, block.splitlines(True), name)
        exec(compile(block, name, "exec"), names)


def test_every_function_is_on_the_page():
    table = set(re.findall(r"^\| `(\w+)\(", PAGE.read_text("utf-8"), re.MULTILINE))
    assert table == set(relay.random.__all__) - {"Key"}
