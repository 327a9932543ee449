"""The parser of exact texts (`ir.exact`): a text as a typed graph, checked as `ir.verify` checks it.

Lines are read in two rounds: the first gives the graphs their names, as each may refer to all others; the second reads the
applications. What the primitives' relations say of each is checked last, when the results of all graphs are known.

Input: a text, and the objects that its symbols stand for. Output: a typed graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...utils.errors import nearest
from ...utils.source import NOWHERE, Origin
from ..node import Apply, Constant, Graph, Node
from ..prim import REGISTRY, Primitive
from ..verify import problem_of
from .printer import DERIVED
from .scanner import LineScanner, ReadText
from .values import ValueReader, fits, type_of

_HEADER = re.compile(r"""([\w.$]+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")[({].*:""")
_ARRAY = re.compile(r"array\[(\d+)\] = ")


def read_graph(text: str, symbols: Mapping[str, Any] | None = None) -> Graph:
    """The typed graph that a text says.

    Args:
        text: as `ir.exact.exact_text` writes it.
        symbols: what its symbols stand for.

    Raises:
        ParseError: it is no such text, or what it says is no typed graph; at its line.
    """
    return GraphReader(text, symbols or {}).graph()


class GraphReader(ValueReader):
    """Reads a text line by line.

    Args:
        text: the text.
        symbols: what its symbols stand for.
    """

    def __init__(self, text: str, symbols: Mapping[str, Any]):
        self.source = ReadText(text)
        self.symbols = symbols
        self.graphs: dict[str, Graph] = {}
        self.nodes: dict[str, Node] = {}
        self.arrays: dict[str, np.ndarray] = {}
        self.lines: dict[Apply, int] = {}

    def graph(self) -> Graph:
        """The first graph of the text.

        Raises:
            ParseError: there is none, or something else is wrong.
        """
        headers = self._headers()
        if not headers:
            raise self.source.fail("there is no graph here, such as f(%x: float): in a line of its own", 0)
        graph: Graph | None = None
        for number, line in enumerate(self.source.lines):
            text = line.strip()
            if number in headers:
                self._returned(graph, number)
                graph, scanner = headers[number]
                self.nodes = {}
                self._head(graph, scanner)
            elif not text or text.startswith("#") or _ARRAY.match(line):
                continue
            elif graph is None:
                raise self.source.fail("this belongs to no graph", number)
            elif text.startswith("return ") and line.startswith("  "):
                scanner = LineScanner(self.source, number, line.index("return ") + len("return "))
                graph.output = self.operand(scanner)
                scanner.end()
                graph = None
            elif text.startswith("%") and line.startswith("  "):
                self._application(graph, number)
            else:
                raise self.source.fail(
                    "this is neither an application, such as %0 = sin(%x)  # float, nor a result", number
                )
        self._returned(graph, len(self.source.lines) - 1)
        self._check()
        return next(iter(self.graphs.values()))

    def _headers(self) -> dict[int, tuple[Graph, LineScanner]]:
        """The lines that begin graphs, with what follows the name; arrays are read on the way."""
        headers: dict[int, tuple[Graph, LineScanner]] = {}
        for number, line in enumerate(self.source.lines):
            array, found = _ARRAY.match(line), _HEADER.match(line)
            if array is not None:
                scanner = LineScanner(self.source, number, array.end())
                self.arrays[array[1]] = self.array(scanner)
                scanner.end()
            elif found is not None:
                scanner = LineScanner(self.source, number, found.end(1))
                name = scanner.unquoted(found[1])
                if name in self.graphs:
                    raise self.source.fail(f"there is another graph {name}", number, 0, found.end(1))
                self.graphs[name] = Graph(name)
                headers[number] = self.graphs[name], scanner
        return headers

    def _returned(self, graph: Graph | None, number: int) -> None:
        if graph is not None:
            raise self.source.fail(
                f"the graph {graph.name} returns nothing before this line: return %... is missing", number
            )

    def _head(self, graph: Graph, scanner: LineScanner) -> None:
        graph.flags.update(self._attrs(scanner))
        scanner.expect("(")

        def parameter() -> None:
            name = scanner.name("%", "a parameter such as %x: float")
            scanner.expect(":")
            self._bind(name, graph.add_parameter(name, self.type(scanner)), scanner)

        self.series(scanner, ")", parameter)
        scanner.expect(":")
        scanner.end()

    def _bind(self, name: str, node: Node, scanner: LineScanner) -> None:
        if name in self.nodes:
            raise self.source.fail(f"%{name} is bound above already", scanner.line)
        self.nodes[name] = node

    def _application(self, graph: Graph, number: int) -> None:
        """A line that applies something: `%0 = mul(%x, 2.0)  # float`."""
        scanner = LineScanner(self.source, number)
        name = scanner.name("%", "a name such as %0")
        scanner.expect("=")
        fn = self._applied(scanner)
        attrs = self._attrs(scanner)
        scanner.expect("(")
        args = self.series(scanner, ")", lambda: self.operand(scanner))
        if not scanner.accept("#"):
            raise scanner.expected("the type of the result, such as # float,")
        type, origin = self.type(scanner), self._origin(scanner)
        scanner.end()
        shown = None if name.isdigit() else name
        node = graph.apply(fn, *args, attrs=attrs, type=type, origin=origin, name=shown)
        self._bind(name, node, scanner)
        self.lines[node] = number

    def _applied(self, scanner: LineScanner) -> Primitive | Graph:
        token = scanner.token
        if token.kind == "sigil":
            fn = self.referred(scanner)
            if not isinstance(fn, Graph | Primitive):
                raise scanner.fail("this is neither a graph nor a primitive", token)
            return fn
        if token.kind != "name":
            raise scanner.expected("what is applied, such as mul or @f,")
        if token.text not in REGISTRY:
            raise scanner.fail(f"there is no primitive {token.text}{nearest(token.text, REGISTRY)}")
        return REGISTRY[scanner.take().text]

    def _origin(self, scanner: LineScanner) -> Origin:
        """What made a node: nothing, or a derivative: `by inlined vjp of mul`."""
        if not scanner.accept("by"):
            return NOWHERE
        inlined = scanner.accept("inlined")
        via = scanner.take()
        if via.text not in DERIVED:
            raise scanner.fail(f"{' or '.join(DERIVED)} is needed here", via)
        of = scanner.take() if scanner.accept("of") else None
        origin = NOWHERE.derive(via.text, scanner.unquoted(of.text) if of is not None else "")
        return origin.inlined_at(None) if inlined else origin

    def _attrs(self, scanner: LineScanner) -> dict[str, Any]:
        attrs: dict[str, Any] = {}

        def attribute() -> None:
            token = scanner.take()
            if token.kind != "name" or token.text in attrs:
                raise scanner.fail("an attribute of another name is needed here", token)
            scanner.expect("=")
            attrs[token.text] = self.value(scanner)

        if scanner.accept("{"):
            self.series(scanner, "}", attribute)
        return attrs

    # ------------------------------------------------ operands and values

    def operand(self, scanner: LineScanner) -> Node:
        """An operand: a node, or a constant with its type.

        Raises:
            ParseError: it is neither.
        """
        token = scanner.token
        if token.kind == "sigil" and token.text[0] == "%":
            name = scanner.name("%", "a node")
            if name not in self.nodes:
                advice = "" if name.isdigit() else nearest(name, self.nodes)
                raise scanner.fail(f"nothing above binds %{name} in this graph{advice}", token)
            return self.nodes[name]
        if token.text == "constant":
            scanner.take()
            scanner.expect("(")
            value = self.value(scanner)
            scanner.expect(",")
            t = self.type(scanner)
            scanner.expect(")")
        else:
            value = self.value(scanner)
            t = type_of(value)
        if t is None or not fits(value, t):
            raise scanner.fail(
                "this is no constant of its type" if t is not None else "constant(VALUE, TYPE) is needed", token
            )
        return Constant(value, t)

    # ------------------------------------------------ what the graph says

    def _check(self) -> None:
        """Compare each application with what its primitive says of it."""
        for node, number in self.lines.items():
            try:
                problem = problem_of(node)
            except Exception:  # relations take the operands and attributes that inference makes, and rely on that
                given = ", ".join(str(a.type) for a in node.args)
                problem = f"cannot be applied to ({given}) with these attributes"
            if problem:
                raise self.source.fail(f"{node.fn.name} {problem}", number)


__all__ = ["GraphReader", "read_graph"]
