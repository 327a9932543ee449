"""Properties of branches and loops that follow from their graphs: trip counts, which parts are assembled, taken and read."""

from __future__ import annotations

from ...ir.node import Apply, Constant, Graph, Node, Parameter, applies
from ...ir.prim import Primitive


def iterations(node: Node) -> range | None:
    """The iterations of a counted loop; None if they are not known, or if it is not a counted loop."""
    if not applies(node, "for_loop") or not all(isinstance(a, Constant) for a in node.args[:3]):
        return None
    start, stop, step = (int(a.value) for a in node.args[:3])
    return range(start, stop, step) if step else None


def taken_parts(graph: Graph) -> dict[Node, set[int] | None]:
    """For each control application, the parts of its result that are taken; None if it is used as a whole."""
    used: dict[Node, set[int] | None] = {}
    for node in graph.nodes:
        part = node.attrs["index"] if isinstance(node.fn, Primitive) and node.fn.name == "get_item" else None
        for arg in node.args:
            if part is None or (known := used.setdefault(arg, set())) is None:
                used[arg] = None
            else:
                known.add(part)
    used[graph.output] = None
    return used


def read_parameters(graph: Graph, but: Node | None = None) -> set[Node]:
    """The parameters that the applications of a graph use, except the application `but`."""
    read: set[Node] = {a for node in graph.nodes if node is not but for a in node.args if isinstance(a, Parameter)}
    if isinstance(graph.output, Parameter):
        read.add(graph.output)
    return read


def returned_parts(graph: Graph) -> list[Node]:
    """The parts of the tuple that a graph assembles and returns."""
    parts = output_parts(graph)
    assert parts is not None
    return parts


def output_parts(graph: Graph) -> list[Node] | None:
    """The parts of the tuple that a graph returns, if it is assembled there."""
    out = graph.output
    if isinstance(out, Apply) and isinstance(out.fn, Primitive) and out.fn.name == "make_struct":
        return list(out.args)
    return None
