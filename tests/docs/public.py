"""The public names, what they are, and the examples in their docstrings."""

from __future__ import annotations

import inspect
import types
from typing import Any

import numpy as np

import myia_relay
from myia_relay import relay


def _names() -> dict[str, Any]:
    found: dict[str, Any] = {}

    def add(prefix: str, owner: Any, names: list[str]) -> None:
        for name in names:
            value = found[prefix + name] = getattr(owner, name)
            if isinstance(value, types.ModuleType):
                add(f"{prefix}{name}.", value, list(value.__all__))

    add("", myia_relay, myia_relay.__all__)
    for name in ("Model", "History", "Callback", "Dataset"):
        for method in vars(found[name]):
            if not method.startswith("_") and not isinstance(vars(found[name])[method], types.MemberDescriptorType):
                found[f"{name}.{method}"] = vars(found[name])[method]
    return found


PUBLIC = _names()
"""Name, as `relay.NAME` has it -> what it is; methods of the public classes too."""

NAMESPACE = {"np": np, **{name: getattr(myia_relay, name) for name in myia_relay.__all__}}
"""What examples in docstrings can use."""

EXAMPLES = {name: text for name, value in PUBLIC.items() if ">>>" in (text := inspect.getdoc(value) or "")}
"""Name -> a docstring with an example."""

__all__ = ["EXAMPLES", "NAMESPACE", "PUBLIC", "relay"]
