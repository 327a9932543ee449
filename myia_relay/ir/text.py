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

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from ..abstract.types import Type
from .node import Apply, Constant, Graph, Node
from .walk import graphs_reachable, operands

_INDENT = "  "


def to_text(graph: Graph) -> str:
    """The text of a graph, parsed or typed, with everything that it refers to."""
    return Printer(graph).text()


class Printer:
    """Names nodes and graphs uniquely, and prints. How constants, attributes and types are written is for subclasses to say.

    Attributes:
        reachable: the graph and what it refers to.
        graph_names, node_names: the names, once `text` was asked for.
    """

    def __init__(self, graph: Graph):
        self.top = graph
        self.reachable = graphs_reachable(graph)
        self.graph_names: dict[Graph, str] = {}
        self.node_names: dict[Node, str] = {}
        taken = Names()
        for g in self.reachable:
            self.graph_names[g] = taken.unique(g.name)
        self.taken_nodes = Names()
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
            mark = "" if depth == 0 else "@"
            self.lines.append(f"{_INDENT * depth}{mark}{self.head(item)}:")
            todo: list[tuple] = []
            for node in item.nodes:
                todo.append(
                    ("line", f"%{self.node_names[node]} = {self.apply(node)}{self.typed(node, '  # ')}", depth + 1)
                )
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
                    self.node_names[node] = self.taken_nodes.unique(node.name)
                else:
                    self.node_names[node] = str(self.count)
                    self.count += 1

    def head(self, graph: Graph) -> str:
        """A graph's name and parameters."""
        params = (f"%{self.node_names[x]}{self.typed(x, ': ')}" for x in graph.params)
        return f"{self.graph(graph)}({', '.join(params)})"

    def graph(self, graph: Graph) -> str:
        """The name of a graph."""
        return self.graph_names.get(graph, graph.name)

    def typed(self, node: Node, mark: str) -> str:
        """A mark and the type of a node; empty where it has none."""
        return f"{mark}{self.type(node.type)}" if node.type is not None else ""

    def ref(self, node: Node) -> str:
        """A node as an operand."""
        if isinstance(node, Constant):
            return self.constant(node)
        if node in self.node_names:
            return f"%{self.node_names[node]}"
        return f"%?{node.name or ''}"

    def apply(self, node: Apply) -> str:
        """An application without its result."""
        fn = node.fn
        if isinstance(fn, Graph):
            head = f"@{self.graph(fn)}"
        elif isinstance(fn, Node):
            head = self.ref(fn)
        else:
            head = self.primitive(fn)
        plain = len(node.args) - len(node.keywords)
        args = [self.ref(a) for a in node.args[:plain]]
        args += [f"{k}={self.ref(a)}" for k, a in zip(node.keywords, node.args[plain:], strict=True)]
        return f"{head}{self.attrs(node.attrs)}({', '.join(args)})"

    def attrs(self, attrs: Mapping[str, Any]) -> str:
        """Attributes in braces; empty where there are none. What the front end wants to be called is not shown."""
        shown = [f"{k}={self.attr(v)}" for k, v in attrs.items() if not isinstance(v, FunctionType)]
        return "{" + ", ".join(shown) + "}" if shown else ""

    # ------------------------------------------------ what says more in an exact text

    def primitive(self, fn: Any) -> str:
        """What is applied, if it is neither a graph nor a node."""
        return getattr(fn, "name", str(fn))

    def constant(self, node: Constant) -> str:
        """A constant; a large one by its class alone."""
        value = node.value
        if isinstance(value, Graph):
            return f"@{self.graph(value)}"
        if type(value).__name__ in ("FreeName", "Syntax", "Primitive"):
            return value.name
        if callable(value) and hasattr(value, "__name__"):
            return value.__name__
        text = repr(value)
        return text if len(text) <= 60 else f"<{type(value).__name__}>"

    def attr(self, value: Any) -> str:
        """The value of an attribute."""
        if isinstance(value, Graph):
            return f"@{self.graph(value)}"
        if isinstance(value, list):
            return "[" + ", ".join(self.attr(v[0] if isinstance(v, tuple) else v) for v in value) + "]"
        return str(value) if isinstance(value, Type) else repr(value)

    def type(self, t: Any) -> str:
        """A type."""
        return str(t)


class Names:
    """Names that are taken."""

    def __init__(self):
        self._last: dict[str, int] = {}  # name -> the last number that was added to it

    def unique(self, name: str) -> str:
        """A name, with a number added where it is taken; it is taken then."""
        found, number = name, self._last.get(name, 1)
        while found in self._last:
            number += 1
            found = f"{name}.{number}"
        self._last[name] = number
        self._last.setdefault(found, 1)
        return found
