"""The parser of `ir.exact`: text as a typed graph.

Each line is parsed by Python's own parser, with `N["x"]`, `G["f"]`, `S["s"]` for `%x`, `@f`, `$s`, and evaluated by
cases: nothing but the forms that are written is read.

Input: text, and the objects that its symbols stand for. Output: a typed graph.
"""

from __future__ import annotations

import ast
import base64
import binascii
import builtins
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..abstract.dims import DimLike, divide, symbol
from ..abstract.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    Array,
    Data,
    List,
    Scalar,
    Str,
    Struct,
    Tape,
    Type,
    Undefined,
    numpy_dtype,
)
from ..utils.errors import ParseError
from .node import Constant, Graph, Node
from .prim import REGISTRY

_SIGILS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|([%@$])([\w.<>$]+)""")
_HEADER = re.compile(r"([\w.<>$]+)\((.*)\):")
_TABLES = {"%": "N", "@": "G", "$": "S"}
_SCALARS: dict[str, Type] = {"int": INT, "float": FLOAT, "bool": BOOL, "str": Str(), "unbound": Undefined()}


def read_graph(text: str, symbols: Mapping[str, Any] | None = None) -> Graph:
    """The typed graph that a text says.

    Args:
        text: as `ir.exact.exact_text` writes it.
        symbols: what its symbols stand for.

    Raises:
        ParseError: it is no such text; at its line.
    """
    return GraphReader(text, symbols or {}).graph()


class GraphReader:
    """Reads a text line by line.

    Args:
        text: the text.
        symbols: what its symbols stand for.
    """

    def __init__(self, text: str, symbols: Mapping[str, Any]):
        self.lines = text.splitlines()
        self.symbols = symbols
        self.graphs: dict[str, Graph] = {}
        self.nodes: dict[str, Node] = {}
        self.arrays: list[np.ndarray] = []
        self.line = 0

    def fail(self, problem: str) -> ParseError:
        """The error for the present line."""
        shown = self.lines[self.line] if self.line < len(self.lines) else ""
        return ParseError(f"line {self.line + 1} of the graph: {problem}: {shown.strip()[:100]}")

    def graph(self) -> Graph:
        """The first graph of the text.

        Raises:
            ParseError: there is none.
        """
        headers: dict[int, tuple[Graph, str]] = {}
        for number, line in enumerate(self.lines):
            self.line = number
            found = _HEADER.fullmatch(line)
            if found is not None:
                if found[1] in self.graphs:
                    raise self.fail(f"there are two graphs {found[1]}")
                graph = self.graphs[found[1]] = Graph(found[1])
                headers[self.line] = graph, found[2]
            elif line.startswith("array["):
                self.arrays.append(self.value(self.parsed(line.partition(" = ")[2])))
        if not headers:
            self.line = 0
            raise self.fail("there is no graph")
        graph, done = None, True
        for number, line in enumerate(self.lines):
            self.line = number
            if self.line in headers:
                graph, params = headers[self.line]
                self.nodes, done = {}, False
                self.parameters(graph, params)
            elif line.startswith("  return ") and graph is not None:
                graph.output, done = self.operand(self.parsed(line[9:])), True
            elif line.startswith("  %") and graph is not None and not done:
                self.application(graph, line)
            elif line.strip() and not line.startswith(("array[", "#")):
                raise self.fail("this is no line of a graph")
        if not done:
            raise self.fail("the last graph returns nothing")
        return next(iter(self.graphs.values()))

    def parsed(self, text: str) -> ast.expr:
        """An expression of the text.

        Raises:
            ParseError: it is none.
        """

        def plain(found: re.Match) -> str:
            return f'{_TABLES[found[1]]}["{found[2]}"]' if found[1] else found[0]

        try:
            return ast.parse(_SIGILS.sub(plain, text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            raise self.fail("this is no expression") from None

    def parameters(self, graph: Graph, text: str) -> None:
        """The parameters of a graph."""
        if not text:
            return
        call = self.parsed(f"dict({{{text}}})")
        given = call.args[0] if isinstance(call, ast.Call) and len(call.args) == 1 else None
        if not isinstance(given, ast.Dict):
            raise self.fail("these are no parameters")
        for key, t in zip(given.keys, given.values, strict=True):
            name = self.name(key, "N")
            self.bind(name, graph.add_parameter(name, self.type(t)))

    def bind(self, name: str, node: Node) -> None:
        """Give a node its name."""
        if name in self.nodes:
            raise self.fail(f"%{name} is bound twice")
        self.nodes[name] = node

    def application(self, graph: Graph, line: str) -> None:
        """A line that applies something."""
        left, equals, rest = line.strip().partition(" = ")
        right, mark, t = rest.rpartition("  # ")
        call = self.parsed(right)
        if not equals or not mark or not isinstance(call, ast.Call):
            raise self.fail("this is no application with its type")
        if isinstance(call.func, ast.Name):
            fn: Any = REGISTRY.get("raise" if call.func.id == "raise_" else call.func.id)
            if fn is None:
                raise self.fail(f"there is no primitive {call.func.id}")
        else:
            fn = self.value(call.func)
        attrs = {k.arg: self.value(k.value) for k in call.keywords if k.arg is not None}
        name = left[1:]
        shown = None if name.isdigit() else name
        args = [self.operand(a) for a in call.args]
        self.bind(name, graph.apply(fn, *args, attrs=attrs, type=self.type(self.parsed(t)), name=shown))

    # ------------------------------------------------ expressions

    def name(self, e: ast.expr | None, table: str) -> str:
        """The name behind a sigil."""
        if (
            isinstance(e, ast.Subscript)
            and isinstance(e.value, ast.Name)
            and e.value.id == table
            and isinstance(e.slice, ast.Constant)
        ):
            return str(e.slice.value)
        raise self.fail("a name is missing")

    def operand(self, e: ast.expr) -> Node:
        """An operand: a node, or a constant with its type."""
        if isinstance(e, ast.Subscript) and isinstance(e.value, ast.Name) and e.value.id == "N":
            name = self.name(e, "N")
            if name not in self.nodes:
                raise self.fail(f"%{name} is not bound here")
            return self.nodes[name]
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id == "constant" and len(e.args) == 2:
            return Constant(self.value(e.args[0]), self.type(e.args[1]))
        value = self.value(e)
        if isinstance(value, np.ndarray):
            return Constant(value, Array(value.dtype.name, value.shape))
        if isinstance(value, np.generic):
            return Constant(value, Scalar(value.dtype.name))
        if value is None:
            return Constant(None, NONE)
        weak = {int: INT, float: FLOAT, bool: BOOL}.get(type(value))
        if weak is None:
            raise self.fail("a constant has no type")
        return Constant(value, weak)

    def value(self, e: ast.expr) -> Any:
        """An attribute, or a constant."""
        match e:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub()):
                return -self.value(e.operand)
            case ast.Tuple():
                return tuple(map(self.value, e.elts))
            case ast.List():
                return list(map(self.value, e.elts))
            case ast.Dict():
                return {self.value(k): self.value(v) for k, v in zip(e.keys, e.values, strict=True) if k is not None}
            case ast.Subscript(value=ast.Name(id="G")):
                return self._known(self.graphs, self.name(e, "G"), "@")
            case ast.Subscript(value=ast.Name(id="S")):
                return self._known(self.symbols, self.name(e, "S"), "$")
            case ast.Subscript(value=ast.Name(id="array"), slice=ast.Constant(value=int() as k)):
                if not 0 <= k < len(self.arrays):
                    raise self.fail(f"there is no array {k}")
                return self.arrays[k]
            case ast.Name(id=name):
                found = getattr(builtins, name, None)
                if isinstance(found, type):
                    return found
            case ast.Call(func=ast.Name(id="type"), args=[t]):
                return self.type(t)
            case ast.Call(func=ast.Name(id="dim"), args=[d]):
                return self.size(d)
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)]):
                return float(text)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=dtype), args=[number]):
                return self._dtype(dtype).type(self.value(number))
            case ast.Call(func=ast.Subscript(), args=[data]):
                return self._array(self.type(e.func), self.value(data))
        raise self.fail("this is no value")

    def _known(self, table: Mapping[str, Any], name: str, sigil: str) -> Any:
        if name not in table:
            raise self.fail(f"nothing is known of {sigil}{name}")
        return table[name]

    def _dtype(self, name: str) -> np.dtype:
        try:
            return numpy_dtype(name)
        except TypeError:
            raise self.fail(f"there is no dtype {name}") from None

    def _array(self, t: Type, data: Any) -> np.ndarray:
        if not isinstance(t, Array):
            raise self.fail("this is no array")
        dtype = self._dtype(t.dtype)
        try:
            if isinstance(data, str):
                return np.frombuffer(base64.b64decode(data, validate=True), dtype).reshape(t.shape).copy()  # type: ignore
            return np.array(data, dtype).reshape(t.shape)  # type: ignore
        except (ValueError, TypeError, OverflowError, binascii.Error):
            raise self.fail("the data are not those of the type") from None

    def type(self, e: ast.expr) -> Any:
        """A type."""
        match e:
            case ast.Constant(value=None):
                return NONE
            case ast.Name(id=name) if name in _SCALARS:
                return _SCALARS[name]
            case ast.Attribute(value=ast.Name(id="np" | "weak" as kind), attr=dtype):
                return Scalar(self._dtype(dtype).name, kind == "weak")
            case ast.Tuple():
                return Struct("tuple", tuple(map(self.type, e.elts)))
            case ast.Subscript(value=ast.Name(id="S")):
                return self.value(e)
            case ast.Subscript(value=ast.Name(id="list"), slice=elem):
                return List(self.type(elem))
            case ast.Subscript(
                value=ast.Name(id="tape"), slice=ast.Tuple(elts=[elem, ast.Constant(value=str() as owner)])
            ):
                return Tape(self.type(elem), owner)
            case ast.Subscript(value=ast.Name(id="tape"), slice=elem):
                return Tape(self.type(elem))
            case ast.Subscript(value=ast.Name(id=dtype), slice=shape):
                sizes = shape.elts if isinstance(shape, ast.Tuple) else [shape]
                return Array(self._dtype(dtype).name, tuple(map(self.size, sizes)))
            case ast.Call(func=ast.Name(id="struct"), args=[kind, fields, cls, *elems]):
                parts = tuple(map(self.type, elems))
                return Struct(self.value(kind), parts, self.value(fields), self.value(cls))
            case ast.Call(func=ast.Name(id="data"), args=[family]):
                return Data(self.value(family))
            case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
                t = self.type(left)
                if isinstance(t, Data):
                    return Data(t.family, True)
        raise self.fail("this is no type")

    def size(self, e: ast.expr) -> DimLike:
        """A size."""
        match e:
            case ast.Constant(value=int() as number) if not isinstance(number, bool):
                return number
            case ast.Name(id=name):
                return symbol(name)
            case ast.UnaryOp(op=ast.USub()):
                return -self.size(e.operand)
            case ast.BinOp():
                a, b = self.size(e.left), self.size(e.right)
                match e.op:
                    case ast.Add():
                        return a + b
                    case ast.Sub():
                        return a - b
                    case ast.Mult():
                        return a * b
                    case ast.FloorDiv():
                        return divide(a, b)
        raise self.fail("this is no size")


__all__ = ["GraphReader", "read_graph"]
