"""`docs/optimisers.md`: its programs run, in order, and its table is what there is."""

from __future__ import annotations

import inspect
import linecache
import re
from pathlib import Path

import numpy as np

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.model.optim import rule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "optimisers.md"


@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(x, num_hidden=3)


@relay
def model_loss(x, y):
    return relay.softmax_cross_entropy(net(x), y)


@relay
def tree_loss(params, x, y):
    return np.sum((params["w"] * x - y) ** 2)


def test_the_programs_of_the_page_run():
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 3
    x, y = np.ones((64, 4), np.float32), np.eye(3, dtype=np.float32)[np.arange(64) % 3]
    names = {"relay": relay, "model": relay.create_model(net), "data": (x, y), "x": x[0], "y": y[0], "loss": model_loss}
    for number, block in enumerate(blocks):
        name = f"<optimisers.md, program {number}>"
        linecache.cache[name] = (len(block), None, block.splitlines(True), name)
        exec(compile(block, name, "exec"), names)
        if number == 0:
            names["loss"] = tree_loss
    trained = names["train"]({"w": np.zeros(2)}, np.ones(2), np.array([0.5, -0.5]))
    np.testing.assert_allclose(trained["w"], [0.5, -0.5], atol=1e-2)


def test_the_table_is_what_there_is():
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*)` \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    assert list(rows) == list(rule.RULES)
    for name, row in rows.items():
        want = eval(f"dict({row})")
        assert rule.RULES[name].defaults == want
        assert list(inspect.signature(getattr(relay.optim, name)).parameters) == ["model", *want, "mask"]
