"""Dimensions that values decide, in typed graphs: where they are bound, who mentions them, and other names for them.

`bind_dim` gives a dimension its size. Types and attributes of later applications in that graph, and in the branches and bodies
inside of it, mention it without being its users: passes that move applications, or put a graph in the place of a call, ask here.
A function mentions no dimension but those that it binds, and those of the program's arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..abstract.dims import Dim, DimLike, evaluate, fresh_size, run_time_symbols, symbol, symbols
from ..abstract.types import Array, List, Ref, Struct, Tape, Type, type_symbols
from ..utils.errors import InternalError, ShapeError
from .node import Apply, Graph, Node, applies
from .prim import REGISTRY


def is_binding(node: Node) -> bool:
    """Whether an application binds a dimension."""
    return isinstance(node, Apply) and getattr(node.fn, "name", "") == "bind_dim" and not isinstance(node.fn, Graph)


def bound_in(graph: Graph) -> set[str]:
    """The names of the dimensions that a graph binds, but for the graphs inside it."""
    return {name for n in graph.nodes if is_binding(n) for name in symbols(n.attrs["dim"])}


def mentioned(node: Apply) -> set[str]:
    """The names of dimensions that values decide in the type, the attributes and the operands of an application."""
    types = (node.type, *(a.type for a in node.args))
    return run_time_symbols(set().union(*(type_symbols(t) for t in types), *map(_in_attribute, node.attrs.values())))


def mentioned_in(graph: Graph) -> set[str]:
    """The names of dimensions that values decide in a graph and the branches and bodies inside it, bound there or not."""
    found = run_time_symbols(set().union(set(), *(type_symbols(p.type) for p in graph.params)))
    return found.union(*map(mentioned, graph.nodes))


def _in_attribute(value: Any) -> set[str]:
    if isinstance(value, Dim):
        return symbols(value)
    if isinstance(value, Type):
        return type_symbols(value)
    if isinstance(value, Graph):
        return mentioned_in(value)
    return set().union(*map(_in_attribute, value)) if isinstance(value, tuple) and value else set()


def with_own_sizes(graph: Graph) -> Graph:
    """The graph with new names for the dimensions that it binds, so that it may stand twice in another."""
    names = _bound_inside(graph)
    if not names:
        return graph
    return Renaming({name: fresh_size() for name in sorted(names)}).graph(graph)


def _bound_inside(graph: Graph) -> set[str]:
    """The names that a graph, or a branch or body inside of it, binds."""
    names, stack = set(), [graph]
    while stack:
        top = stack.pop()
        for node in top.nodes:
            if node.attrs:
                if is_binding(node):
                    names |= symbols(node.attrs["dim"])
                for value in node.attrs.values():
                    stack += [v for v in (value if isinstance(value, tuple) else (value,)) if isinstance(v, Graph)]
    return names


class Renaming:
    """Other dimensions in place of some names, in graphs and all branches and bodies inside of them.

    Args:
        sizes: name -> what takes its place; may grow between graphs.
    """

    def __init__(self, sizes: Mapping[str, DimLike]):
        self.sizes = sizes
        self.graphs: dict[Graph, Graph] = {}

    def dim(self, dim: DimLike) -> DimLike:
        """A dimension."""
        if not isinstance(dim, Dim) or dim.symbols().isdisjoint(self.sizes):
            return dim
        return evaluate(dim, lambda name: self.sizes.get(name, symbol(name)))

    def type(self, t: Any) -> Any:
        """A type."""
        if isinstance(t, Array):
            return Array(t.dtype, tuple(map(self.dim, t.shape)))
        if isinstance(t, Struct):
            return Struct(t.kind, tuple(map(self.type, t.elems)), t.fields, t.cls)
        if isinstance(t, List):
            return List(self.type(t.elem))
        if isinstance(t, Tape):
            return Tape(self.type(t.elem), t.owner)
        return Ref(t.spec, t.names, tuple(map(self.type, t.elems))) if isinstance(t, Ref) else t

    def attribute(self, value: Any) -> Any:
        """A static attribute."""
        if isinstance(value, Dim):
            return self.dim(value)
        if isinstance(value, Type):
            return self.type(value)
        if isinstance(value, Graph):
            found = mentioned_in(value) | _bound_inside(value)
            return value if found.isdisjoint(self.sizes) else self.graph(value)
        return tuple(map(self.attribute, value)) if type(value) is tuple else value

    def graph(self, graph: Graph) -> Graph:
        """A graph."""
        if graph in self.graphs:
            return self.graphs[graph]
        new = self.graphs[graph] = Graph(graph.name, graph.parent, graph.origin)
        new.flags = dict(graph.flags)
        env: dict[Node, Node] = {p: new.add_parameter(p.name, self.type(p.type), p.origin) for p in graph.params}
        for node in graph.nodes:
            attrs = {k: self.attribute(v) for k, v in node.attrs.items()}
            args = [env[a] if a in env else a for a in node.args]
            env[node] = apply_renamed(new, node, node.fn, args, attrs, self.type(node.type))
        new.output = env.get(graph.output, graph.output)
        return new


def apply_renamed(graph: Graph, node: Apply, fn: Any, args: Sequence[Node], attrs: dict[str, Any], type: Any) -> Node:
    """An application with other names for dimensions; a placeholder where it takes what is not there.

    Args:
        graph: where it goes.
        node: the application as it was.
        fn, args, attrs, type: what it is now.
    """
    if takes_beyond(node, args, attrs):
        fn, args, attrs = REGISTRY["undef"], (), {"type": type}
    return graph.apply(fn, *args, attrs=attrs, type=type, origin=node.origin, name=node.name)


def takes_beyond(node: Apply, args: Sequence[Node], attrs: Mapping[str, Any]) -> bool:
    """Whether an application takes what an array has not, as other dimensions say: a part beyond its end, another size.

    A check before it fails, so nobody sees its value; but the graph must have its types.

    Args:
        node: an application whose dimensions are renamed.
        args, attrs: its operands and attributes after that.
    """
    if not applies(node, "slice", "dynamic_slice", "reshape"):
        return False
    try:
        node.fn.infer_rule(*(a.type for a in args), **attrs)
    except (InternalError, ShapeError):
        return True
    return False
