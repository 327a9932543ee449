"""The language as the engine takes it: every construct, every builtin, and what a call means."""

from __future__ import annotations

from ..engine.protocol import Language
from . import builtins, comprehensions, formatting, item_changes, loops, ranges, sums  # noqa: F401  register theirs
from .calls import call_value
from .list_methods import refuse_in_place
from .syntax import SYNTAX

LANGUAGE = Language(SYNTAX, call_value, refuse_in_place)
