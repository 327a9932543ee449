"""Values as expressions of Python syntax: exact numbers, arrays, attributes, structures, source places."""

from __future__ import annotations

import ast
import builtins
import importlib
import keyword
import math
import re
from typing import Any

import numpy as np

from ...abstract.dims import Dim, run_time_symbols
from ...abstract.types import Scalar, Struct, Type
from ...utils.raising import DESCRIBED, ITSELF
from ...utils.source import Origin
from .runtime import pack

SMALL = 16  # elements: a larger constant array is written as compressed bytes


def name(text: str) -> ast.Name:
    """A name that is read."""
    return ast.Name(text, ast.Load())


def attribute(value: ast.expr, text: str) -> ast.Attribute:
    """`value.text`."""
    return ast.Attribute(value, text, ast.Load())


def numpy(text: str) -> ast.Attribute:
    """`np.text`."""
    return attribute(name("np"), text)


def call(function: ast.expr | str, *args: ast.expr, **keywords: ast.expr) -> ast.Call:
    """A call."""
    function = name(function) if isinstance(function, str) else function
    return ast.Call(function, list(args), [ast.keyword(k, v) for k, v in keywords.items()])


def subscript(value: ast.expr, index: Any) -> ast.Subscript:
    """`value[index]`."""
    return ast.Subscript(value, ast.Constant(index), ast.Load())


def display(parts: list[ast.expr]) -> ast.Tuple:
    """A tuple."""
    return ast.Tuple(parts, ast.Load())


def identifier(text: str | None, default: str) -> str:
    """A readable identifier near a name; names that the generated source uses itself are changed."""
    text = re.sub(r"\W+", "_", text or "").strip("_") or default
    if text[0].isdigit() or keyword.iskeyword(text) or text in RESERVED:
        text = f"{text}_" if not text[0].isdigit() else f"v{text}"
    return text


RESERVED = {
    *(
        "np",
        "ops",
        "wrap",
        "scalar",
        "as_array",
        "packed",
        "at",
        "record",
        "raise_at",
        "described",
        "call_registered",
        "sizes",
        "range",
        "print",
        "float",
        "int",
    ),
    *("bool", "type", "len", "abs", "objects", "None", "True", "False"),
}


def number(value: Any) -> ast.expr:
    """A Python number."""
    if isinstance(value, float) and not math.isfinite(value):
        return call("float", ast.Constant(str(value)))
    if isinstance(value, int | float) and not isinstance(value, bool) and math.copysign(1, value) < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def constant(value: Any, t: Type, objects: Objects) -> ast.expr:
    """A constant of a graph as exactly the kind of value that its type says."""
    if isinstance(value, np.ndarray):
        return objects.array(value)
    if isinstance(t, Scalar) and not t.weak:
        item = value.item() if isinstance(value, np.generic) else value
        return np_scalar(t.dtype, number(float(item) if t.is_float else item))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(t, Scalar) and t.weak:
        value = {"float64": float, "int64": int, "bool": bool}[t.dtype](value)
    if isinstance(value, bool | int | float):
        return number(value)
    if isinstance(value, str | None):
        return ast.Constant(value)
    return objects.refer(value)


def array(value: np.ndarray) -> ast.expr:
    """An array."""
    nothing_nested = not value.size and value.ndim > 1  # whose nested list does not determine its shape
    if value.size > SMALL or value.dtype.kind not in "fiub" or nothing_nested:
        shape = display([ast.Constant(d) for d in value.shape])
        return call("packed", ast.Constant(pack(value)), ast.Constant(value.dtype.name), shape)
    return call(numpy("array"), nested(value.tolist()), dtype=ast.Constant(value.dtype.name))


def np_scalar(dtype: str, value: ast.expr) -> ast.expr:
    """A NumPy scalar."""
    if dtype == "bfloat16":
        return call("scalar", ast.Constant(dtype), value)
    return call(numpy("bool_" if dtype == "bool" else dtype), value)


def nested(value: Any) -> ast.expr:
    """A nested list of numbers."""
    if isinstance(value, list):
        return ast.List([nested(v) for v in value], ast.Load())
    return number(value)


def static(value: Any, objects: Objects) -> ast.expr:
    """A static attribute; symbolic dimensions become expressions over `sizes`, and over local variables that hold sizes
    which values decide."""
    if isinstance(value, Dim):
        return dimension(value)
    if isinstance(value, tuple):
        return display([static(v, objects) for v in value])
    if isinstance(value, bool | int | float):
        return number(value)
    if isinstance(value, str | None):
        return ast.Constant(value)
    return objects.refer(value)


def dimension(dim: Any) -> ast.expr:
    """A dimension as an integer expression: `sizes.n * 2 + 1`."""
    if not isinstance(dim, Dim):
        return number(int(dim))
    total: ast.expr | None = None
    for monomial, coefficient in dim.terms.items():
        factors: list[ast.expr] = [number(coefficient)] if coefficient != 1 or not monomial else []
        for symbol in monomial:
            if symbol in dim.atoms:
                _, (a, b) = dim.atoms[symbol]
                factors.append(ast.BinOp(dimension(a), ast.FloorDiv(), dimension(b)))
            else:
                factors.append(name(symbol) if run_time_symbols([symbol]) else attribute(name("sizes"), symbol))
        term = factors[0]
        for factor in factors[1:]:
            term = ast.BinOp(term, ast.Mult(), factor)
        total = term if total is None else ast.BinOp(total, ast.Add(), term)
    return total if total is not None else ast.Constant(0)


def place(origin: Origin) -> ast.expr:
    """A place in the user's source, as a call of `at`."""
    locs = [
        display([number(x) if isinstance(x, int) else ast.Constant(x) for x in
                 (loc.file, loc.line, loc.col, loc.end_line, loc.end_col, loc.function)])
        for loc in origin.call_stack()
    ]  # fmt: skip
    return call("at", *locs)


def message(parts: tuple, values: list[ast.expr]) -> ast.expr:
    """An f-string's text: a constant, or `"... {!r}".format(...)`; for an exception also nothing, or a value as it is."""
    if len(parts) == 1 and not isinstance(parts[0], str) and parts[0][1] == ITSELF:
        return values[parts[0][0]]
    if all(isinstance(p, str) for p in parts):
        return ast.Constant("".join(parts))
    text, used = "", []
    for part in parts:
        if isinstance(part, str):
            text += part.replace("{", "{{").replace("}", "}}")
            continue
        index, conversion, spec = part
        if isinstance(conversion, int):
            conversion = chr(conversion) if conversion > 0 else ""
        if conversion == DESCRIBED:
            conversion, value = "", call("described", values[index])
        else:
            value = values[index]
        text += "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
        used.append(value)
    return call(attribute(ast.Constant(text), "format"), *used)


def structure(t: Struct, parts: list[ast.expr], objects: Objects) -> ast.expr:
    """A structure from its parts, as `abstract.structures.rebuild` makes it."""
    if t.kind == "list":
        return ast.List(parts, ast.Load())
    if t.kind == "dict":
        return ast.Dict([ast.Constant(f) for f in t.fields], parts)
    if t.kind == "record":
        cls = objects.refer(t.cls)
        if issubclass(t.cls, tuple):
            return call(cls, *parts)
        return call("record", cls, **dict(zip(t.fields, parts, strict=True)))
    return display(parts)


def part(t: Struct, value: ast.expr, index: int) -> ast.expr:
    """Part `index` of a structure, as `abstract.structures.part` takes it."""
    if t.kind == "dict":
        return subscript(value, t.fields[index])
    if t.kind == "record":
        return attribute(value, t.fields[index])
    return subscript(value, index)


class Objects:
    """Objects that the source refers to: classes by import where that finds them, else by name from the caller.

    Attributes:
        imports: (module, name) to import.
        given: name -> object that has no importable name.
        arrays: names of constant arrays, computed once.
    """

    def __init__(self):
        self.arrays: dict[str, ast.expr] = {}
        self.known: dict[tuple, str] = {}
        self.imports: dict[tuple[str, str], Any] = {}
        self.given: dict[str, Any] = {}

    def array(self, value: np.ndarray) -> ast.expr:
        """The name of a constant array."""
        key = (value.dtype.name, value.shape, value.tobytes())
        if key not in self.known:
            self.known[key] = f"CONSTANT_{len(self.known)}"
            self.arrays[self.known[key]] = array(value)
        return name(self.known[key])

    def refer(self, value: Any) -> ast.expr:
        """An expression for an object."""
        module, text = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if module == "builtins" and text and getattr(builtins, text, None) is value:
            return name(text)
        if module and text and text.isidentifier() and module != "__main__":
            try:
                if getattr(importlib.import_module(module), text, None) is value:
                    self.imports[module, text] = value
                    return name(text)
            except ImportError:
                pass
        for known, other in self.given.items():
            if other is value:
                return subscript(name("objects"), known)
        key = f"{text or type(value).__name__}_{len(self.given)}"
        self.given[key] = value
        return subscript(name("objects"), key)
