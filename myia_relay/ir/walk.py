"""Walking graphs: uses, nested graphs, free variables. All are computed on demand; none is maintained."""

from __future__ import annotations

from collections.abc import Iterator

from .node import Apply, Constant, Graph, Node, Parameter


def operands(node: Apply) -> Iterator[Node]:
    """The nodes that an application refers to: its function, where that is a node, and its arguments."""
    if isinstance(node.fn, Node):
        yield node.fn
    yield from node.args


def sub_graphs(node: Node | Graph) -> list[Graph]:
    """Graphs that a node refers to directly: constants among its operands, its callee, its attributes."""
    if isinstance(node, Graph):
        return [node]
    if isinstance(node, Constant):
        return [node.value] if isinstance(node.value, Graph) else []
    if not isinstance(node, Apply):
        return []
    found = [node.fn] if isinstance(node.fn, Graph) else []
    found += [o.value for o in operands(node) if isinstance(o, Constant) and isinstance(o.value, Graph)]
    for value in node.attrs.values():
        # Only typed graphs have graphs in attributes; what `recapture` lists are no operands.
        if isinstance(value, Graph):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(v for v in value if isinstance(v, Graph))
    return found


def references(graph: Graph) -> list[Graph]:
    """Graphs that a graph refers to directly, in program order, each once."""
    found: dict[Graph, None] = {}
    for node in graph.nodes:
        found.update(dict.fromkeys(sub_graphs(node)))
    found.update(dict.fromkeys(sub_graphs(graph.output) if isinstance(graph.output, Constant) else ()))
    return list(found)


def graphs_reachable(graph: Graph) -> list[Graph]:
    """The graph itself and all that it refers to, transitively, each once, in order of discovery."""
    seen: dict[Graph, None] = {graph: None}
    stack = [graph]
    while stack:
        top = stack.pop()
        for other in reversed(references(top) + _default_graphs(top)):
            if other not in seen:
                seen[other] = None
                stack.append(other)
    return list(seen)


def _defaults(graph: Graph) -> list[Node]:
    return list(graph.signature.defaults.values()) if graph.signature is not None else []


def _default_graphs(graph: Graph) -> list[Graph]:
    return [d.value for d in _defaults(graph) if isinstance(d, Constant) and isinstance(d.value, Graph)]


def uses(graph: Graph) -> dict[Node, list[Apply]]:
    """The users of each node: the applications of this graph and of all graphs reachable from it, in program order."""
    found: dict[Node, list[Apply]] = {}
    for g in graphs_reachable(graph):
        for node in g.nodes:
            for operand in dict.fromkeys(operands(node)):
                found.setdefault(operand, []).append(node)
    return found


def users(graph: Graph) -> dict[Node, list[Apply]]:
    """The users of each node of one graph: its applications, each once, in program order; not those of inner graphs."""
    found: dict[Node, list[Apply]] = {}
    for node in graph.nodes:
        for arg in dict.fromkeys(node.args):
            found.setdefault(arg, []).append(node)
    return found


def free_variables(graph: Graph, memo: dict[Graph, list[Node]] | None = None) -> list[Node]:
    """Nodes of enclosing graphs that a parsed graph needs, in order of first use.

    They are used directly, or by the graphs it refers to: nested ones, and siblings that it calls. The defaults of an
    inner function count as used by whoever refers to it.

    Args:
        graph: the graph.
        memo: results by graph, read and filled: to be shared between calls while the graphs do not change.
    """
    if memo is not None and graph in memo:
        return memo[graph]
    reachable = graphs_reachable(graph)
    refers = {g: references(g) + _default_graphs(g) for g in reachable}
    free: dict[Graph, dict[Apply | Parameter, None]] = {g: {} for g in reachable}
    for g in reachable:
        for node in [*(o for n in g.nodes for o in operands(n)), g.output, *_defaults(g)]:
            if isinstance(node, (Apply, Parameter)) and node.graph is not g:
                free[g][node] = None
    changed = True
    while changed:
        changed = False
        for g in reversed(reachable):
            for other in refers[g]:
                for node in free[other]:
                    if node.graph is not g and node not in free[g]:
                        free[g][node] = None
                        changed = True
    result: dict[Graph, list[Node]] = {g: list(nodes) for g, nodes in free.items()}
    if memo is not None:
        memo.update(result)
    return result[graph]
