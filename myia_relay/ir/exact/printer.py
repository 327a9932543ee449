"""Typed graphs as text that is read back: what `ir.text` shows, with all of every constant, attribute and type.

    f(%x: float64[n, 3], %y: float):
      %0 = mul(%x, float64[3]([0.1, 0.2, 0.3]))  # float64[n, 3]
      %1 = reduce_sum{axes=(0, 1), keepdims=False}(%0)  # np.float64
      %2 = make_struct{type=type((np.float64, float))}(%1, %y)  # (np.float64, float)
      return %2

Sigils tell names apart: `%` nodes, `@` graphs, `$` symbols. Names that are no identifiers stand in quotes. Numbers are the shortest
that are read as the same; a NaN with other than the usual bits is written by its bits. Larger arrays stand at the end, in base64:
`array[0] = ...`.

*Symbols* are objects of the process that no text can hold: models, classes, functions, members of enumerations, families of data
types. The text names them; the reader is given them.

What a derivative has made says so behind its type: `# float by vjp`. Such sums may be reordered, and do not raise.

Places in the source are not written, nor what is computed again (the effects of a graph). Parsed graphs have no such text: what
they say is Python's source.

Input: a typed graph. Output: text and symbols; `ir.reading` reads them.
"""

from __future__ import annotations

import base64
import builtins
import re
from typing import Any

import numpy as np

from ...abstract.dims import Dim, DimLike
from ...abstract.types import Array, Data, List, NoneT, Scalar, Str, Struct, Tape, Type, Undefined, numpy_dtype
from ...utils.errors import ValueError_
from ..node import Apply, Constant, Graph, Node
from ..prim import REGISTRY, Primitive
from ..text import Names, Printer

FEW = 8
"""An array of at most so many elements is written where it stands."""

PYTHON: dict[str, tuple[str, type]] = {"int64": ("int", int), "float64": ("float", float), "bool": ("bool", bool)}
"""Dtypes of Python's numbers: what the weak types of them are called, and their classes."""

DERIVED = ("jvp", "vjp")
"""What makes applications of which the text says so."""

NAME = re.compile(r"[\w.$]+")
"""Names that need no quotes."""


def exact_text(graph: Graph) -> tuple[str, dict[str, Any]]:
    """The text of a typed graph with all that it refers to, and its symbols by name.

    Raises:
        ValueError_: the graph is a parsed one.
    """
    printer = ExactPrinter(graph)
    return printer.text(), printer.symbols


class ExactPrinter(Printer):
    """Prints a typed graph so that it can be read.

    Attributes:
        symbols: name -> object.
        arrays: lines of the larger arrays.
    """

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.symbols: dict[str, Any] = {}
        self.arrays: dict[str, int] = {}
        self._symbol_names: dict[int, str] = {}
        self._taken_symbols = Names()

    def text(self) -> str:
        """The graphs, the larger arrays, and, as comments, what the symbols are.

        Raises:
            ValueError_: the graph is a parsed one.
        """
        for graph in self.reachable:
            if any(n.type is None for n in [*graph.params, *graph.nodes, graph.output]):
                raise ValueError_(
                    "a parsed graph has no exact text: it says what the function's source says; take a later stage, such as "
                    'f.ir(..., stage="inferred")'
                )
        parts = [super().text()]
        if self.arrays:
            parts.append("\n".join(f"array[{k}] = {line}" for line, k in self.arrays.items()))
        if self.symbols:
            parts.append("\n".join(f"# ${_quoted(name)}: {_described(x)}" for name, x in self.symbols.items()))
        return "\n\n".join(parts) + "\n"

    def head(self, graph: Graph) -> str:
        """The name with the marks that passes have left on the graph, and the parameters."""
        name = self.graph(graph)
        marks = {k: v for k, v in graph.flags.items() if _plain(v)}
        return f"{name}{self.attrs(marks)}{super().head(graph).removeprefix(name)}"

    def graph(self, graph: Graph) -> str:
        """The name of a graph."""
        return _quoted(self.graph_names[graph])

    def typed(self, node: Node, mark: str) -> str:
        """A mark and the type of a node; and which derivative has made it, as that follows other rules than what users write."""
        text, origin = super().typed(node, mark), node.origin
        if not isinstance(node, Apply) or origin.made_by not in DERIVED:
            return text
        made = origin.before_inlining
        of = f" of {_quoted(made.of)}" if made.of else ""
        return f"{text} by {'inlined ' if origin is not made else ''}{made.via}{of}"

    def primitive(self, fn: Any) -> str:
        """A primitive's name; a symbol where another one has that name now."""
        return fn.name if REGISTRY.get(fn.name) is fn and NAME.fullmatch(fn.name) else self.symbol(fn)

    # ------------------------------------------------ constants

    def constant(self, node: Constant) -> str:
        """A constant with its type: as a number, as an array, or with both written out."""
        t, value = node.type, node.value
        if isinstance(t, NoneT) and value is None:
            return "None"
        if isinstance(t, Scalar) and t.weak and type(value) is PYTHON.get(t.dtype, ("", None))[1]:
            return number(value)
        if isinstance(t, Scalar) and not t.weak and isinstance(value, np.generic) and value.dtype.name == t.dtype:
            return self.attr(value)
        if isinstance(t, Array) and type(value) is np.ndarray and (value.dtype.name, value.shape) == (t.dtype, t.shape):
            return self._array(value)
        return f"constant({self.attr(value)}, {self.type(t)})"

    def attr(self, value: Any) -> str:
        """The value of an attribute, or a part of one."""
        if value is None or type(value) in (str, bytes):
            return repr(value)
        if type(value) in (bool, int, float):
            return number(value)
        if type(value) is tuple:
            return f"({', '.join(map(self.attr, value))}{',' if len(value) == 1 else ''})"
        if type(value) is list:
            return f"[{', '.join(map(self.attr, value))}]"
        if type(value) is dict:
            return "{" + ", ".join(f"{self.attr(k)}: {self.attr(v)}" for k, v in value.items()) + "}"
        if isinstance(value, Graph):
            return f"@{self.graph(value)}"
        if isinstance(value, Type):
            return f"type({self.type(value)})"
        if isinstance(value, Dim):
            return f"size({self.size(value)})"
        if type(value) is np.ndarray and _known(value):
            return self._array(value)
        if isinstance(value, np.generic) and _known(value):
            return f"np.{value.dtype.name}({element(value)})"
        if isinstance(value, type) and getattr(builtins, value.__name__, None) is value:
            return value.__name__
        return self.symbol(value)

    def _array(self, value: np.ndarray) -> str:
        t = self.type(Array(value.dtype.name, value.shape))
        if value.size <= FEW:
            few = [element(v) for v in value.reshape(-1)]
            if not any("bits" in v for v in few):
                return f"{t}([{', '.join(few)}])"
        data = np.ascontiguousarray(value, numpy_dtype(value.dtype.name))
        line = f'{t}("{base64.b64encode(data.tobytes()).decode("ascii")}")'
        return f"array[{self.arrays.setdefault(line, len(self.arrays))}]"

    def symbol(self, value: Any) -> str:
        """The name of an object of the process."""
        name = self._symbol_names.get(id(value))
        if name is None:
            wanted = getattr(value, "__name__", None) or getattr(value, "name", None) or type(value).__name__
            stem = re.sub(r"\W+", "_", str(wanted)).strip("_") or "object"
            name = self._symbol_names[id(value)] = self._taken_symbols.unique(stem)
            self.symbols[name] = value
        return f"${_quoted(name)}"

    # ------------------------------------------------ types

    def type(self, t: Any) -> str:
        """A type."""
        match t:
            case Scalar(dtype=dtype, weak=True):
                return PYTHON[dtype][0] if dtype in PYTHON else f"weak.{dtype}"
            case Scalar():
                return f"np.{t.dtype}"
            case Array():
                return f"{t.dtype}[{', '.join(map(self.size, t.shape))}]"
            case Struct():
                return self._struct(t)
            case NoneT() | Str() | Undefined():
                return str(t)
            case Tape():
                return f"tape[{self.type(t.elem)}{f', {t.owner!r}' if t.owner else ''}]"
            case List():
                return f"list[{self.type(t.elem)}]"
            case Data():
                return f"data({self.symbol(t.family)}){' | None' if t.nullable else ''}"
        return self.symbol(t)

    def _struct(self, t: Struct) -> str:
        parts = list(map(self.type, t.elems))
        if t.kind in ("tuple", "list") and t.cls is None and not t.fields:
            opening, closing = "()" if t.kind == "tuple" else "[]"
            return f"{opening}{', '.join(parts)}{',' if t.kind == 'tuple' and len(parts) == 1 else ''}{closing}"
        if len(t.fields) == len(parts):
            if t.kind == "dict" and t.cls is None:
                return "{" + ", ".join(f"{self.attr(k)}: {p}" for k, p in zip(t.fields, parts, strict=True)) + "}"
            if t.kind == "record" and all(type(k) is str and k.isidentifier() for k in t.fields):
                return f"{self.symbol(t.cls)}({', '.join(f'{k}: {p}' for k, p in zip(t.fields, parts, strict=True))})"
        return f"struct({', '.join([repr(t.kind), self.attr(t.fields), self.attr(t.cls), *parts])})"

    def size(self, dim: DimLike) -> str:
        """A size: a polynomial of names and of quotients in parentheses."""
        if not isinstance(dim, Dim):
            return str(dim)
        terms = []
        for monomial, coefficient in sorted(dim.terms.items(), key=lambda item: (-len(item[0]), item[0])):
            factors = [self._factor(name, dim) for name in monomial]
            factors = factors if abs(coefficient) == 1 and factors else [str(abs(coefficient)), *factors]
            sign = "-" if coefficient < 0 else "+" if terms else ""
            terms.append(f"{sign} {'*'.join(factors)}" if terms else sign + "*".join(factors))
        return " ".join(terms)

    def _factor(self, name: str, dim: Dim) -> str:
        if name not in dim.atoms:
            return name
        _, (a, b) = dim.atoms[name]
        return f"(({self.size(a)})//({self.size(b)}))"


def number(value: bool | int | float) -> str:
    """A Python number."""
    return element(np.float64(value)) if isinstance(value, float) else repr(value)


def element(value: Any) -> str:
    """A NumPy scalar as a number; a NaN with other than the usual bits as `bits(0x...)`."""
    if value.dtype.kind in "biu":
        return repr(value.item())
    if value != value:
        bits = value.tobytes()
        return "nan" if bits == value.dtype.type("nan").tobytes() else f"bits(0x{int.from_bytes(bits, 'little'):x})"
    short = str(value)
    if value.dtype.type(float(short)) != value:
        short = repr(float(value))
    return short if set(short) & set(".ef") else f"{short}.0"


def _known(value: Any) -> bool:
    return value.dtype.kind in "biuf" or value.dtype.name == "bfloat16"


def _plain(value: Any) -> bool:
    """Whether a mark on a graph is a number, or a sequence of numbers."""
    return type(value) in (bool, int) or type(value) in (tuple, list) and all(map(_plain, value))


def _quoted(name: str) -> str:
    return name if NAME.fullmatch(name) else repr(name)


def _described(value: Any) -> str:
    """An object in a line of a comment: what it prints, without where in memory it is."""
    text = str(value) if isinstance(value, Type | Primitive) else repr(value)
    return re.sub(r"\s+", " ", re.sub(r" at 0x[0-9a-f]+", "", text))[:120]


__all__ = ["ExactPrinter", "exact_text", "number"]
