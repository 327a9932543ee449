"""Graphs as text: one line per application, nested graphs indented below the line that mentions them.

f(%x):
  %0 = lt(%x, 0)
  %1 = if_(%0, @f.if.then, @f.if.else)
    @f.if.then():
      %2 = neg(%x)
      return %2
  ...
  return %1
"""

from __future__ import annotations

from typing import Any

from ..abstract.types import Type
from .node import Apply, Constant, Graph, Node, Parameter
from .walk import graphs_reachable, operands

_INDENT = "  "


def to_text(graph: Graph) -> str:
    """The text of a graph, parsed or typed, with everything that it refers to."""
    return Printer(graph).text()


class Printer:
    """Names nodes and graphs uniquely, and prints.

    Attributes:
        reachable: the graph and what it refers to.
        graph_names, node_names: the names, once `text` was asked for.
    """

    def __init__(self, graph: Graph):
        self.top = graph
        self.reachable = graphs_reachable(graph)
        self.graph_names: dict[Graph, str] = {}
        self.node_names: dict[Node, str] = {}
        taken: dict[str, int] = {}
        for g in self.reachable:
            self.graph_names[g] = _unique(g.name, taken)
        self.taken_nodes: dict[str, int] = {}
        self.count = 0
        self.printed: set[Graph] = set()
        self.lines: list[str] = []

    def text(self) -> str:
        """Everything reachable: nested graphs where they are first mentioned, others after the graph."""
        # A stack of lines still to be printed and graphs still to be opened, so that nesting needs no recursion.
        self._name_nodes()
        for g in [self.top, *self.reachable]:
            if g not in self.printed and (g is self.top or g.parent is None or g.parent not in self.graph_names):
                if self.lines:
                    self.lines.append("")
                self._graph(g)
        for g in self.reachable:
            if g not in self.printed:
                self._graph(g)
        return "\n".join(self.lines)

    def _graph(self, first: Graph) -> None:
        stack: list[tuple] = [("graph", first, 0)]
        while stack:
            kind, item, depth = stack.pop()
            if kind == "line":
                self.lines.append(_INDENT * depth + item)
                continue
            if item in self.printed:
                continue
            self.printed.add(item)
            head = ", ".join(f"%{self.node_names[x]}{_typed(x)}" for x in item.params)
            mark = "" if depth == 0 else "@"
            self.lines.append(f"{_INDENT * depth}{mark}{self.graph_names[item]}({head}):")
            todo: list[tuple] = []
            for node in item.nodes:
                todo.append(("line", f"%{self.node_names[node]} = {self.apply(node)}{_comment(node)}", depth + 1))
                todo.extend(("graph", g, depth + 2) for g in self._nested(node, item))
            todo.append(("line", f"return {self.ref(item.output)}", depth + 1))
            todo[-1:-1] = [("graph", g, depth + 2) for g in self._nested(item.output, item)]
            stack.extend(reversed(todo))

    def _nested(self, node: Node, within: Graph) -> list[Graph]:
        """Graphs that belong to this one and that a node mentions."""
        nodes = [*operands(node)] if isinstance(node, Apply) else [node]
        graphs = [n.value for n in nodes if isinstance(n, Constant) and isinstance(n.value, Graph)]
        return [g for g in dict.fromkeys(graphs) if g.parent is within]

    def _name_nodes(self) -> None:
        for g in self.reachable:
            for node in [*g.params, *g.nodes]:
                if node.name and node.name.replace("$", "").replace(".", "").isidentifier():
                    self.node_names[node] = _unique(node.name, self.taken_nodes)
                else:
                    self.node_names[node] = str(self.count)
                    self.count += 1

    def ref(self, node: Node) -> str:
        """A node as an operand."""
        if isinstance(node, Constant):
            return self._constant(node.value)
        if node in self.node_names:
            return f"%{self.node_names[node]}"
        return f"%?{node.name or ''}"

    def _constant(self, value: Any) -> str:
        if isinstance(value, Graph):
            return f"@{self.graph_names.get(value, value.name)}"
        if type(value).__name__ in ("FreeName", "Syntax", "Primitive"):
            return value.name
        if callable(value) and hasattr(value, "__name__"):
            return value.__name__
        text = repr(value)
        return text if len(text) <= 60 else f"<{type(value).__name__}>"

    def apply(self, node: Apply) -> str:
        """An application without its result."""
        fn = node.fn
        if isinstance(fn, Graph):
            head = f"@{self.graph_names.get(fn, fn.name)}"
        elif isinstance(fn, Node):
            head = self.ref(fn)
        else:
            head = getattr(fn, "name", str(fn))
        plain = len(node.args) - len(node.keywords)
        args = [self.ref(a) for a in node.args[:plain]]
        args += [f"{k}={self.ref(a)}" for k, a in zip(node.keywords, node.args[plain:], strict=True)]
        attrs = ""
        if node.attrs:
            attrs = "{" + ", ".join(f"{k}={self._attr(v)}" for k, v in node.attrs.items()) + "}"
        return f"{head}{attrs}({', '.join(args)})"

    def _attr(self, value) -> str:
        if isinstance(value, Graph):
            return f"@{self.graph_names.get(value, value.name)}"
        if isinstance(value, list):
            return "[" + ", ".join(self._attr(v[0] if isinstance(v, tuple) else v) for v in value) + "]"
        return str(value) if isinstance(value, Type) else repr(value)


def _unique(name: str, taken: dict[str, int]) -> str:
    taken[name] = taken.get(name, 0) + 1
    return name if taken[name] == 1 else f"{name}.{taken[name]}"


def _typed(node: Parameter) -> str:
    return f": {node.type}" if node.type is not None else ""


def _comment(node: Node) -> str:
    return f"  # {node.type}" if node.type is not None else ""
