"""Typed graphs as text that is read back: `ir.text` shows a graph, this says all of it. `ir.reading` is the parser.

    f(%a0: float64[3], %a1: float):
      %0 = mul(%a0, float64[3]([0.1, 0.2, 0.3]))  # float64[3]
      %1 = reduce_sum(%0, axes=(0,), keepdims=False)  # np.float64
      return %1

Each line is an expression of Python but for the sigils: `%` nodes, `@` graphs, `$` symbols. Attributes follow the operands. Floats
are the shortest that are read as the same; larger arrays stand at the end, by base64.
*Symbols* are the objects of the process that no
text can hold: models, classes, families of data types, registered operators. The text names them, the reader is given them.

Places in the source are not written.
"""

from __future__ import annotations

import base64
import builtins
import re
from typing import Any

import numpy as np

from ..abstract.dims import Dim
from ..abstract.types import (
    Array,
    Data,
    List,
    NoneT,
    Scalar,
    Str,
    Struct,
    Tape,
    Type,
    Undefined,
)
from .node import Apply, Constant, Graph, Node
from .text import Printer

FEW = 8
"""An array of at most so many elements is written where it stands."""


def exact_text(graph: Graph) -> tuple[str, dict[str, Any]]:
    """The text of a typed graph with all that it refers to, and its symbols by name."""
    writer = ExactWriter(graph)
    return writer.text(), writer.symbols


class ExactWriter:
    """Writes a typed graph.

    Attributes:
        symbols: name -> object.
    """

    def __init__(self, graph: Graph):
        self.names = Printer(graph)
        self.names.text()  # gives the names
        self.graphs = {g: re.sub(r"[^\w.<>$]", "_", name) for g, name in self.names.graph_names.items()}
        self.symbols: dict[str, Any] = {}
        self._symbol_names: dict[int, str] = {}
        self.arrays: list[str] = []
        self._array_names: dict[str, str] = {}

    def text(self) -> str:
        """The text."""
        parts = [self._graph(g) for g in self.names.reachable]
        if self.arrays:
            parts.append("\n".join(self.arrays))
        if self.symbols:
            parts.append("\n".join(f"# ${name}: {_described(value)}" for name, value in self.symbols.items()))
        return "\n\n".join(parts) + "\n"

    def _graph(self, graph: Graph) -> str:
        params = ", ".join(f"%{self.names.node_names[p]}: {self.type(p.type)}" for p in graph.params)
        lines = [f"{self.graphs[graph]}({params}):"]
        for node in graph.nodes:
            lines.append(f"  %{self.names.node_names[node]} = {self._apply(node)}  # {self.type(node.type)}")
        lines.append(f"  return {self._ref(graph.output)}")
        return "\n".join(lines)

    def _apply(self, node: Apply) -> str:
        head = f"@{self.graphs[node.fn]}" if isinstance(node.fn, Graph) else node.fn.name
        args = [self._ref(a) for a in node.args] + [f"{k}={self.value(v)}" for k, v in node.attrs.items()]
        return f"{'raise_' if head == 'raise' else head}({', '.join(args)})"

    def _ref(self, node: Node) -> str:
        if not isinstance(node, Constant):
            return f"%{self.names.node_names[node]}"
        t, value = node.type, node.value
        if isinstance(t, Scalar) and t.weak and t.dtype in PYTHON and type(value) is PYTHON[t.dtype]:
            return _number(value)
        if isinstance(t, Scalar) and not t.weak and isinstance(value, np.generic) and value.dtype.name == t.dtype:
            return f"np.{t.dtype}({_number(value.item() if value.dtype.kind in 'biuf' else float(value))})"
        if (
            isinstance(t, Array)
            and isinstance(value, np.ndarray)
            and (value.dtype.name, value.shape) == (t.dtype, t.shape)
        ):
            return self._array(value)
        if isinstance(t, NoneT) and value is None:
            return "None"
        return f"constant({self.value(value)}, {self.type(t)})"

    def _array(self, value: np.ndarray) -> str:
        t = self.type(Array(value.dtype.name, value.shape))
        plain = value.dtype.kind in "biuf" and bool(np.all(np.isfinite(value)))
        if value.size <= FEW and plain:
            return f"{t}([{', '.join(_number(v) for v in value.ravel().tolist())}])"
        data = np.ascontiguousarray(value)
        data = data.astype(data.dtype.newbyteorder("<")) if data.dtype.byteorder == ">" else data
        line = f'{t}("{base64.b64encode(data.tobytes()).decode("ascii")}")'
        if line not in self._array_names:
            self._array_names[line] = f"array[{len(self.arrays)}]"
            self.arrays.append(f"{self._array_names[line]} = {line}")
        return self._array_names[line]

    def value(self, value: Any) -> str:
        """An attribute, or a part of one."""
        match value:
            case None | str():
                return repr(value)
            case Graph():
                return f"@{self.graphs[value]}"
            case Type():
                return f"type({self.type(value)})"
            case Dim():
                return f"dim({value!r})"
            case np.ndarray() if value.dtype.kind in "biuf" or value.dtype.name == "bfloat16":
                return self._array(value)
            case np.generic() if value.dtype.kind in "biuf":
                return f"np.{value.dtype.name}({_number(value.item())})"
            case list():
                return f"[{', '.join(map(self.value, value))}]"
            case dict():
                return "{" + ", ".join(f"{self.value(k)}: {self.value(v)}" for k, v in value.items()) + "}"
        if type(value) is tuple:
            return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        if type(value) in (bool, int, float):
            return _number(value)
        if isinstance(value, type) and getattr(builtins, value.__name__, None) is value:
            return value.__name__
        return self._symbol(value)

    def _symbol(self, value: Any) -> str:
        name = self._symbol_names.get(id(value))
        if name is None:
            wanted = getattr(value, "__name__", None) or getattr(value, "name", None) or type(value).__name__
            plain = stem = re.sub(r"\W+", "_", str(wanted)).strip("_") or "object"
            number = 1
            while name is None or name in self.symbols:
                name, number = plain, number + 1
                plain = f"{stem}_{number}"
            self._symbol_names[id(value)] = name
            self.symbols[name] = value
        return f"${name}"

    def type(self, t: Any) -> str:
        """A type."""
        match t:
            case Scalar() if t.weak:
                return WEAK.get(t.dtype) or f"weak.{t.dtype}"
            case Scalar():
                return f"np.{t.dtype}"
            case Array():
                return f"{t.dtype}[{', '.join(map(str, t.shape)) or '()'}]"
            case Struct() if t.kind == "tuple" and t.cls is None and not t.fields:
                return f"({', '.join(map(self.type, t.elems))}{',' if len(t.elems) == 1 else ''})"
            case Struct():
                head = [repr(t.kind), self.value(t.fields), self.value(t.cls)]
                return f"struct({', '.join([*head, *map(self.type, t.elems)])})"
            case NoneT():
                return "None"
            case Str():
                return "str"
            case Undefined():
                return "unbound"
            case Tape():
                return f"tape[{self.type(t.elem)}, {t.owner!r}]" if t.owner else f"tape[{self.type(t.elem)}]"
            case List():
                return f"list[{self.type(t.elem)}]"
            case Data():
                return f"data({self._symbol(t.family)}){' | None' if t.nullable else ''}"
        return self._symbol(t)


PYTHON = {"int64": int, "float64": float, "bool": bool}
WEAK = {"int64": "int", "float64": "float", "bool": "bool"}


def _number(value: Any) -> str:
    """A Python number as an expression of it."""
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return f"float('{value}')"
    return repr(value)


def _described(value: Any) -> str:
    text = str(value) if isinstance(value, Type) else repr(value)
    return re.sub(r"\s+", " ", re.sub(r" at 0x[0-9a-f]+", "", text))[:120]


__all__ = ["ExactWriter", "exact_text"]
