"""What `f.ir(...)` returns: a graph that prints as text, and is a picture in a notebook.

Graphs are boxes inside of boxes: a loop's body is inside of the loop, a closure inside of the function that makes it. What
one kernel computes has one colour. The pointer over a box shows its type, its source line, and what made it. The picture is
plain SVG, made here: it needs neither programs such as Graphviz' `dot`, nor scripts, nor a network; `to_dot` is for those who
have that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from ..abstract.types import Array, Ref
from ..ir.exact import exact_text, read_graph
from ..ir.node import Apply, Constant, Graph, Node, applies
from ..ir.prim import Primitive
from ..ir.rewrite import inner_graphs
from ..ir.text import Printer, to_text
from ..ir.walk import operands
from ..opt.analysis.fusion import fuse
from ..utils.source import cell_name
from .layout import MARGIN, DrawnBox, arrange
from .work import place_of

MOST = 1500  # nodes that are drawn; larger graphs are text
LETTER, LINE = 6.7, 15.0  # the size of text
LABEL = 42  # characters of a label
KERNELS = (
    "#cfe3f7", "#fbdcc4", "#d5efd0", "#f3d3e6", "#fdf1bd", "#dcd6f2", "#cdeeee", "#f7cfcf", "#e3e8c4", "#d9d9d9",
    "#bcd7c9", "#f0c9a6", "#c5cdf0", "#ead9c2", "#c7e6f7", "#e9c6ee",
)  # fmt: skip
PLAIN, PARAMETER, EFFECT = "#ffffff", "#eeeeee", "#f5b5b5"


class GraphView:
    """A graph for inspection: `print` it, show it in a notebook, or take it elsewhere.

    Attributes:
        graph: the graph.
    """

    def __init__(self, graph: Graph):
        self.graph = graph

    def __str__(self) -> str:
        return to_text(self.graph)

    __repr__ = __str__

    def exact(self) -> str:
        """The graph as text with all constants, attributes and types, which `from_text` reads back; of all stages but "parsed".

        It runs from line to line as what `print` shows. Objects that no text can hold are names in it: `symbols` has them.

        Raises:
            ValueError_: the graph is a parsed one, which says what the function's source says.
        """
        return exact_text(self.graph)[0]

    @property
    def symbols(self) -> dict[str, Any]:
        """The objects that `$names` stand for in the exact text: models, classes, functions, families of data types.

        Raises:
            ValueError_: the graph is a parsed one.
        """
        return exact_text(self.graph)[1]

    @classmethod
    def from_text(cls, text: str, symbols: Mapping[str, Any] | None = None) -> GraphView:
        """The graph of an exact text, which is checked as the compiler checks its own graphs.

        Args:
            text: as `exact` writes it.
            symbols: the objects that `$names` stand for.

        Raises:
            ParseError: it is no such text, or no graph that could be compiled; at its line.
        """
        return cls(read_graph(text, symbols))

    def to_dot(self) -> str:
        """The graph in the language of Graphviz, with nested graphs as clusters."""
        return _Contents(self.graph).dot()

    def to_json(self) -> str:
        """The graph as JSON: graphs, each with its parameters, applications and output.

        An operand is the name of a node, `{"constant": text}` or `{"graph": name}`.
        """
        return json.dumps(_Contents(self.graph).description(), indent=1)

    def to_svg(self) -> str:
        """The graph as a picture."""
        return _Contents(self.graph).svg()

    def _repr_html_(self) -> str:
        """The picture; the text where it would be too large."""
        contents = _Contents(self.graph)
        if sum(len(g.nodes) for g in contents.names.reachable) > MOST:
            return f"<pre>{escape(str(self))}</pre>"
        return f'<div style="overflow:auto;max-height:900px">{contents.svg()}</div>'


class _Contents:
    """A graph's contents, named: which boxes there are, what is in which, and what is connected."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.names = Printer(graph)
        self.names.text()
        self.kernels = _kernels(self.names.reachable)
        self.inside: dict[object, list[Graph]] = {}  # node -> graphs that are drawn in its box; None -> at the top
        self._nest()

    def _nest(self) -> None:
        """Find where each graph is drawn: in the node that alone runs or makes it, else in the outermost box."""
        users: dict[Graph, list[Node]] = {}
        for g in self.names.reachable:
            for node in g.nodes:
                for inner in dict.fromkeys((*inner_graphs(node), *_mentioned(node))):
                    users.setdefault(inner, []).append(node)
        around: dict[Graph, Graph] = {}
        for g in self.names.reachable:
            nodes = users.get(g, [])
            home = nodes[0].graph if len(nodes) == 1 and isinstance(nodes[0], Apply) else None
            outer = home
            while outer is not None and outer is not g:
                outer = around.get(outer)
            if g is self.graph or home is None or outer is g:
                self.inside.setdefault(None, []).append(g)
            else:
                around[g] = home
                self.inside.setdefault(nodes[0], []).append(g)

    def label(self, node: Node) -> str:
        """What is written in a node's box."""
        if not isinstance(node, Apply):
            return self.names.node_names[node]
        text = self.names.apply(node) if any(isinstance(a, Constant) for a in node.args) else ""
        fn = node.fn
        if isinstance(fn, Graph):
            head = f"@{self.names.graph_names.get(fn, fn.name)}"
        elif isinstance(fn, Apply):
            head = "call"  # of the function that another box has found
        else:
            head = self.names.ref(fn) if isinstance(fn, Node) else getattr(fn, "name", str(fn))
        if applies(node, "ref_read", "ref_write"):
            head = f"{head} {node.args[0].type.names[node.attrs['index']]}"
        constants = [self.names.ref(a) for a in node.args if isinstance(a, Constant) and not isinstance(a.value, Graph)]
        text = f"{head}({', '.join(constants)})" if text and constants else head
        return text if len(text) <= LABEL else text[: LABEL - 1] + "…"

    def second(self, node: Node) -> str:
        """The second line in a node's box: its type."""
        if node.type is None:
            return node.name or "" if isinstance(node, Apply) else ""
        text = str(node.type)
        return text if len(text) <= LABEL else text[: LABEL - 1] + "…"

    def hint(self, node: Node) -> str:
        """What the pointer over a node's box shows."""
        place = place_of(node.origin)
        lines = [f"%{self.names.node_names[node]}" + (f": {node.type}" if node.type is not None else "")]
        if isinstance(node, Apply):
            lines.append(self.names.apply(node)[:300])
        for loc in reversed(place.stack):
            lines.append(f"{cell_name(loc.file) or loc.file}:{loc.line} in {loc.function}:  {loc.text().strip()}")
        if place.part != "forward":
            lines.append(f"{place.part} pass")
        if node in self.kernels:
            lines.append(f"kernel {self.kernels[node]}")
        return "\n".join(lines)

    def colour(self, node: Node) -> str:
        """The colour of a node's box."""
        if not isinstance(node, Apply):
            return PARAMETER
        if isinstance(node.fn, Primitive) and node.fn.effect is not None:
            return EFFECT
        return KERNELS[self.kernels[node] % len(KERNELS)] if node in self.kernels else PLAIN

    def edges(self) -> list[tuple[Node, Node]]:
        """What each application uses; models apart, which are named where they are read and written."""
        return [
            (arg, node)
            for g in self.names.reachable
            for node in g.nodes
            for arg in dict.fromkeys(operands(node))
            if arg in self.names.node_names and not isinstance(arg.type, Ref)  # everything that reads or writes a model
        ]

    # Outputs.

    def description(self) -> dict[str, Any]:
        """See `GraphView.to_json`."""
        names = self.names

        def operand(node: Node) -> Any:
            if isinstance(node, Constant):
                return (
                    {"graph": names.ref(node)[1:]} if isinstance(node.value, Graph) else {"constant": names.ref(node)}
                )
            return names.node_names.get(node)

        def typed(node: Node) -> dict[str, Any]:
            return {"name": names.node_names[node], "type": None if node.type is None else str(node.type)}

        def application(node: Apply) -> dict[str, Any]:
            place = place_of(node.origin)
            fn = node.fn
            made = operand(fn) if isinstance(fn, Node) else None
            return {
                **typed(node),
                "function": made
                if made is not None
                else {"graph": names.graph_names[fn]}
                if isinstance(fn, Graph)
                else fn.name,
                "arguments": [operand(a) for a in node.args],
                "keywords": list(node.keywords),
                "attributes": {k: names.attr(v) for k, v in node.attrs.items()},
                "graphs": [names.graph_names[g] for g in inner_graphs(node) if g in names.graph_names],
                "file": place.line[0] or None,
                "line": place.line[1] or None,
                "part": place.part,
                "kernel": self.kernels.get(node),
            }

        return {
            "graphs": [
                {
                    "name": names.graph_names[g],
                    "inside": names.graph_names[g.parent] if g.parent in names.graph_names else None,
                    "parameters": [typed(p) for p in g.params],
                    "applications": [application(n) for n in g.nodes],
                    "output": operand(g.output),
                }
                for g in dict.fromkeys((self.graph, *names.reachable))
            ]
        }

    def dot(self) -> str:
        """See `GraphView.to_dot`."""
        ids = {node: f"n{k}" for k, node in enumerate(self.names.node_names)}
        lines = [
            "digraph {",
            "compound=true; rankdir=TB;",
            'node [shape=box style="rounded,filled" fontname="Helvetica" fontsize=10 fillcolor=white];',
            "edge [color=gray40 arrowsize=0.6];",
        ]
        stack: list[Any] = [("open", g) for g in reversed(self.inside.get(None, []))]
        count = 0
        while stack:
            kind, item = stack.pop()
            if kind == "close":
                lines.append("}")
            elif kind == "open":
                count += 1
                lines.append(f"subgraph cluster_{count} {{ label={_quoted('@' + self.names.graph_names[item])};")
                lines.append("fontname=Helvetica; fontsize=10; color=gray60; style=rounded;")
                stack.append(("close", None))
                stack.extend(("node", n) for n in reversed([*item.params, *item.nodes]))
            else:
                text = f"{self.label(item)}\n{self.second(item)}".strip()
                lines.append(
                    f"{ids[item]} [label={_quoted(text)} tooltip={_quoted(self.hint(item))} "
                    f"fillcolor={_quoted(self.colour(item))}{' penwidth=2' if item is item_output(item) else ''}];"
                )
                stack.extend(("open", g) for g in reversed(self.inside.get(item, [])))
        lines += [f"{ids[a]} -> {ids[b]};" for a, b in self.edges()]
        return "\n".join([*lines, "}"])

    def svg(self) -> str:
        """See `GraphView.to_svg`."""
        root = DrawnBox(None)
        self._fill(root)
        edges = self.edges()
        routes = arrange(root, edges)
        boxes: dict[object, DrawnBox] = {b.key: b for b in root.walk()}
        shapes: list[str] = []
        for box in root.walk():
            if isinstance(box.key, Graph):
                shapes.append(_rectangle(box, "#ffffff", "#8a8a8a", 6, "@" + self.names.graph_names[box.key], "", ""))
            elif isinstance(box.key, Node):
                node = box.key
                outline = "#222222" if node is item_output(node) else "#7a7a7a"
                shapes.append(
                    _rectangle(box, self.colour(node), outline, 4, self.label(node), self.second(node), self.hint(node))
                )
        for a, b in edges:
            shapes.append(_curve(boxes[a], boxes[b], routes.get((a, b), [])))
        body = "\n".join(shapes)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {root.width:.0f} {root.height:.0f}" '
            f'width="{root.width:.0f}" font-family="DejaVu Sans, Helvetica, sans-serif" font-size="11">'
            '<defs><marker id="end" viewBox="0 0 6 6" refX="5.5" refY="3" markerWidth="5" markerHeight="5" orient="auto">'
            f'<path d="M0,0 L6,3 L0,6 z" fill="#666"/></marker></defs>\n{body}\n</svg>'
        )

    def _fill(self, root: DrawnBox) -> None:
        """Make the boxes, from the outermost inwards."""
        todo: list[DrawnBox] = [root]
        while todo:
            box = todo.pop()
            if isinstance(box.key, Graph):
                box.width = (len(self.names.graph_names[box.key]) + 3) * LETTER
                box.head, box.height = LINE + 3, LINE + 20
                items: list[Any] = [*box.key.params, *box.key.nodes]
            else:
                items = self.inside.get(box.key, [])
                if isinstance(box.key, Node):
                    box.width = (max(len(self.label(box.key)), len(self.second(box.key))) + 2) * LETTER
                    box.height = 2 * LINE + 6 if self.second(box.key) else LINE + 8
                    box.head = box.height - MARGIN / 2
            box.inside = [DrawnBox(item) for item in items]
            todo.extend(box.inside)


def item_output(node: Node) -> Node | None:
    """The output of the graph that a node is in."""
    graph = getattr(node, "graph", None)
    return graph.output if graph is not None else None


def _mentioned(node: Apply) -> list[Graph]:
    """The graphs among a node's operands."""
    return [n.value for n in operands(node) if isinstance(n, Constant) and isinstance(n.value, Graph)]


def _kernels(graphs: list[Graph]) -> dict[Node, int]:
    """The kernel that computes each application, by number, in typed graphs."""
    out: dict[Node, int] = {}
    numbers: dict[Node, int] = {}
    for g in graphs:
        if any(n.type is None for n in g.nodes):
            continue
        fusion = fuse(g)
        for node in g.nodes:
            kernel = fusion.kernel.get(node)
            if isinstance(node.fn, Primitive) and node.fn.kind == "opaque":
                kernel = node
            if kernel is not None and isinstance(node.type, Array):
                out[node] = numbers.setdefault(kernel, len(numbers))
    return out


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _rectangle(box: DrawnBox, fill: str, outline: str, round_: int, first: str, second: str, hint: str) -> str:
    middle = box.x + box.width / 2
    title = f"<title>{escape(hint)}</title>" if hint else ""
    lines = [(first, "#000000"), (second, "#555555")]
    text = "".join(
        f'<text x="{middle:.1f}" y="{box.y + 14 + k * LINE:.1f}" text-anchor="middle" fill="{colour}">{escape(line)}</text>'
        for k, (line, colour) in enumerate(lines)
        if line
    )
    return (
        f'<g>{title}<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{round_}" '
        f'fill="{fill}" stroke="{outline}"/>{text}</g>'
    )


def _curve(a: DrawnBox, b: DrawnBox, lanes: list[DrawnBox]) -> str:
    """The line from one box to another, through lanes between others."""
    x, y = a.x + a.width / 2, a.y + a.height
    path = f"M{x:.1f},{y:.1f}"
    for box in (*lanes, b):
        to_x, to_y = box.x + box.width / 2, box.y
        bend = max(12.0, min(60.0, abs(to_y - y) / 2))
        path += f" C{x:.1f},{y + bend:.1f} {to_x:.1f},{to_y - bend:.1f} {to_x:.1f},{to_y:.1f}"
        if box is not b:
            x, y = to_x, box.y + box.height
            path += f" L{x:.1f},{y:.1f}"
    return f'<path d="{path}" fill="none" stroke="#666" stroke-opacity="0.55" marker-end="url(#end)"/>'
