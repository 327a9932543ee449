"""The operators of Relay: name, attributes, relation and implementation of each, by family.

`declare.py` says how one is declared, `rules.py` holds relations that many share. `OPERATORS` has all of them, by name.
"""

from __future__ import annotations

from . import elementwise
from .declare import CALLABLES, OPERATORS, Attr, RelayOperator, find

FAMILIES = (elementwise,)

__all__ = ["CALLABLES", "FAMILIES", "OPERATORS", "Attr", "RelayOperator", "find"]
