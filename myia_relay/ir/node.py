"""Nodes and graphs of the A-normal form.

There is one IR for two stages, which differ in their invariants:

- *parsed* graphs come from the front end and are untyped. A nested function is a `Constant` that holds a `Graph`. A
  free variable is a direct pointer to a node of an enclosing graph, so a closure needs no node of its own (Myia, van
  Merriënboer et al., NeurIPS 2018, section 3).
- *typed* graphs come from inference. Every node has a type, every graph is closed (captured values are parameters), and
  `Apply.fn` is a `Primitive` or a `Graph`.

`Graph.nodes` lists the applications in program order, as let-bindings would. Effects (printing, raising, updating a
model) happen in this order, and it makes every pass one linear walk without recursion. Uses are computed when a pass
needs them (`ir.walk.uses`), never maintained.

Nodes are compared by identity, types by equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

from ..utils.source import NOWHERE, Origin
from .prim import Primitive


class Node:
    """A value in a graph.

    Attributes:
        type: the abstract value (`abstract.types.Type`), or None in a parsed graph.
        origin: where it comes from.
        name: the user's name for it, for printing and for error messages; None where it has none.
    """

    __slots__ = ("name", "origin", "type")

    # In typed graphs an `abstract.types.Type`. Which one follows from the relation of the primitive that made the node;
    # this is too dynamic for a type checker. Code that has tested the primitive uses the attributes of that type
    # (`dtype`, `shape`, `elems`).
    type: Any
    origin: Origin
    name: str | None

    def __init__(self, type: Any = None, origin: Origin = NOWHERE, name: str | None = None):
        self.type = type
        self.origin = origin
        self.name = name


class Constant(Node):
    """A value known at compile time: a number, a string, an array, a function, a `Graph`, ..."""

    __slots__ = ("value",)

    value: Any

    def __init__(self, value: Any, type: Any = None, origin: Origin = NOWHERE, name: str | None = None):
        super().__init__(type, origin, name)
        self.value = value

    def __repr__(self) -> str:
        return f"Constant({self.value!r})"


class Parameter(Node):
    """A parameter of a graph."""

    __slots__ = ("graph",)

    name: str
    graph: Graph

    def __init__(self, graph: Graph, name: str, type: Any = None, origin: Origin = NOWHERE):
        super().__init__(type, origin, name)
        self.graph = graph

    def __repr__(self) -> str:
        return f"Parameter({self.name})"


class Apply(Node):
    """An application of a function to arguments.

    Attributes:
        fn: parsed: a `Node`; typed: a `Primitive` or a `Graph`.
        args: positional arguments, nodes. In a parsed graph the trailing `len(keywords)` of them are keyword arguments.
        attrs: typed graphs: the primitive's static attributes. Never mutated in place.
        keywords: parsed graphs: names of the trailing arguments.
        graph: the graph that lists this node.
    """

    __slots__ = ("args", "attrs", "fn", "graph", "keywords")

    # A `Node` in parsed graphs, a `Primitive` or a `Graph` in typed ones. The class does not say in which stage a graph is.
    fn: Any
    args: tuple[Any, ...]
    attrs: dict[str, Any]
    graph: Graph
    keywords: tuple[str, ...]

    def __init__(
        self,
        graph: Graph,
        fn: Node | Primitive | Graph,
        args: Iterable[Node] = (),
        attrs: Mapping[str, Any] | None = None,
        keywords: tuple[str, ...] = (),
        type: Any = None,
        origin: Origin = NOWHERE,
        name: str | None = None,
    ):
        super().__init__(type, origin, name)
        self.graph = graph
        self.fn = fn
        self.args = tuple(args)
        self.attrs = dict(attrs) if attrs else {}
        self.keywords = keywords

    def __repr__(self) -> str:
        fn = getattr(self.fn, "name", None) or self.fn
        return f"Apply({fn}, {len(self.args)} args)"


class Graph:
    """A function: parameters, applications in program order, an output.

    Attributes:
        name: the user's name of the function, or a name made for a branch or a loop body ("f.then", "f.body").
        params: parameters. In a typed graph they include what the function captures.
        nodes: applications in program order.
        output: the node that is returned.
        parent: the enclosing graph of a nested function in a parsed graph; None at top level and in typed graphs.
        origin: where the function is written.
        signature: parsed graphs of `def` and `lambda`: an `ir.syntax.Signature` (defaults, keyword-only, stars).
        flags: facts that passes leave for each other, by name.
        settled: passes that leave this graph, and all that it runs, as they are -> the functions that these call (see
            `ir.rewrite.Rewriter`).
    """

    __slots__ = ("flags", "name", "nodes", "origin", "output", "params", "parent", "settled", "signature")

    def __init__(self, name: str, parent: Graph | None = None, origin: Origin = NOWHERE):
        self.name = name
        self.params: list[Parameter] = []
        self.nodes: list[Apply] = []
        self.output: Any = Constant(None)
        self.parent = parent
        self.origin = origin
        self.signature: Any = None
        self.flags: dict[str, Any] = {}
        self.settled: dict[Any, frozenset[Graph]] = {}

    def add_parameter(self, name: str, type: Any = None, origin: Origin = NOWHERE) -> Parameter:
        """Append a parameter and return it."""
        param = Parameter(self, name, type, origin)
        self.params.append(param)
        return param

    def apply(self, fn, *args: Node, attrs=None, keywords=(), type=None, origin=NOWHERE, name=None) -> Apply:
        """Append an application at the end of the program order and return it."""
        node = Apply(self, fn, args, attrs, keywords, type, origin, name)
        self.nodes.append(node)
        return node

    def __repr__(self) -> str:
        return f"Graph({self.name}, {len(self.params)} params, {len(self.nodes)} nodes)"


def applied(node: Node | None) -> str:
    """The name of the primitive that a node applies; empty for any other node."""
    return node.fn.name if isinstance(node, Apply) and isinstance(node.fn, Primitive) else ""


def applies(node: Node | None, *names: str) -> TypeGuard[Apply]:
    """Whether a node applies one of the given primitives."""
    return isinstance(node, Apply) and isinstance(node.fn, Primitive) and node.fn.name in names
