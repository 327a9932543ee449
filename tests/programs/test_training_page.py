"""`docs/training.md`: its programs run, in order."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import numpy as np

from myia_relay import Float, Tensor, relay, relay_model

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def test_the_programs_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 4)).astype(np.float32)
    y = np.eye(3, dtype=np.float32)[np.argmax(x[:, :3], axis=1)]
    names = {"relay": relay, "relay_model": relay_model, "Tensor": Tensor, "Float": Float, "np": np}
    names |= {"x": x[:150], "y": y[:150], "x_val": x[150:], "y_val": y[150:]}
    for number, block in enumerate(blocks):
        name = f"<training.md, program {number}>"
        linecache.cache[name] = (len(block), None, block.splitlines(True), name)
        exec(compile(block, name, "exec"), names)
    assert names["history"]["val_accuracy"][-1] > 0.7
    assert (tmp_path / "runs" / "first" / "state.safetensors").exists()
    assert capsys.readouterr().out.count("(32, 4) (32, 3)") == 3
