"""What `f.ir(...)` returns: a graph that prints as text, and as a picture in a notebook."""

from __future__ import annotations

from ..ir.node import Graph
from ..ir.text import to_text


class GraphView:
    """A graph for inspection.

    Attributes:
        graph: the graph.
    """

    def __init__(self, graph: Graph):
        self.graph = graph

    def __str__(self) -> str:
        return to_text(self.graph)

    __repr__ = __str__
