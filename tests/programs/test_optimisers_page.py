"""`docs/optimisers.md`: its table is what there is. `tests/docs/test_pages.py` runs its programs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from myia_relay import relay
from myia_relay.model.optim import rule

PAGE = Path(__file__).resolve().parents[2] / "docs" / "optimisers.md"


def test_the_table_is_what_there_is():
    rows = dict(re.findall(r"^\| `(\w+)` \| `(.*)` \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    assert list(rows) == list(rule.RULES)
    for name, row in rows.items():
        want = eval(f"dict({row})")
        assert rule.RULES[name].defaults == want
        assert list(inspect.signature(getattr(relay.optim, name)).parameters) == ["model", *want, "mask"]
