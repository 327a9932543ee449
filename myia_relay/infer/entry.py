"""The entry to inference: makes an engine for one compilation and gives it the language and the transforms."""

from __future__ import annotations

import types
from collections.abc import Callable

from ..ir.node import Graph
from .engine.engine import Engine
from .language.language import LANGUAGE
from .transforms import transforms  # noqa: F401  registers grad and its kin


def new_engine(parse: Callable[[types.FunctionType], Graph], compress: Callable, structural: bool = False) -> Engine:
    """An engine for one compilation; the arguments are those of `Engine`."""
    return Engine(LANGUAGE, parse, compress, structural)
