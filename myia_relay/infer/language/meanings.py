"""The language as the engine takes it: every construct, every builtin, and what a call means."""

from __future__ import annotations

from ..engine.protocol import Language
from ..objects import ranges  # noqa: F401  register theirs
from . import builtins, comprehensions, formatting, item_changes, loops, sums  # noqa: F401  register theirs
from .calls import call_value
from .registry import SYNTAX

LANGUAGE = Language(SYNTAX, call_value)
