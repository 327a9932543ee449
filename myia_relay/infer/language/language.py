"""The implementation of the engine's `Language` protocol: every construct, every builtin, and calls."""

from __future__ import annotations

from ..engine.protocol import Language
from . import (  # noqa: F401  register theirs
    builtins,
    comprehensions,
    formatting,
    item_changes,
    loops,
    marks,
    sums,
    syntax,
    variables,
)
from .calls import call_value
from .registry import SYNTAX

LANGUAGE = Language(SYNTAX, call_value)
