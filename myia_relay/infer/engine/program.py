"""What inference hands on: a typed program, and what calling it needs beside its arguments."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.node import Graph
from ..values.treedef import TreeDef
from .dependencies import Dependency, Hidden


@dataclass
class Program:
    """What inference makes of an entry function.

    Attributes:
        graph: the typed entry graph; parameters are the argument leaves, then the hidden arguments.
        result: the treedef of the result, from which Python values are rebuilt.
        hidden: what to pass as hidden arguments.
        dependencies: the free names it read.
    """

    graph: Graph
    result: TreeDef
    hidden: list[Hidden]
    dependencies: list[Dependency]


__all__ = ["Program"]
