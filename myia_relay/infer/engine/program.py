"""The result of inference: a typed program, and what calling it needs besides its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..values.treedef import TreeDef
from .dependencies import Dependency, Hidden


@dataclass
class Program:
    """The result of inferring an entry function.

    Attributes:
        graph: the typed entry graph; parameters are the argument leaves, then the hidden arguments. None in a loaded program.
        result: the treedef of the result, from which Python values are rebuilt.
        hidden: what to pass as hidden arguments.
        dependencies: the free names it read.
    """

    graph: Any  # a `Graph`; None where only the code was loaded, which is never compiled again
    result: TreeDef
    hidden: list[Hidden]
    dependencies: list[Dependency]


__all__ = ["Program"]
