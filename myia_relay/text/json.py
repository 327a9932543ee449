"""Trees as JSON, and back.

    {"relay": 1, "types": [..], "functions": [..], "nodes": [[kind, field, ..], ..], "constants": [..]}

`nodes` is in post-order: whatever a node holds stands before it, and is named by its index. Types and names that occur more than
once are one entry; so are binders (a `Local`, a `TypeParam`), which their uses name. `types` and `functions` are indices, in the
order of the module. `constants` are as in `#[metadata]`: dtype, shape, bytes by base64. The fields of each kind are those of the
class in `tree.py`, in the order of `LAYOUT`. Floats are texts as `float.hex` writes them. Spans are not kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..utils.errors import ParseError
from . import tree as T
from .dtypes import DTYPES, integer_range, is_float, rounded
from .pool import ConstantPool, decoded
from .syntax.attributes import DEEPEST_LIST

VERSION = 1

LAYOUT: dict[str, tuple[type[T.TreeNode], tuple[tuple[str, str, Any], ...]]] = {
    # kind: its class; its fields: name, sort, and of nodes the class
    "TypeParam": (T.TypeParam, (("name", "text", str), ("kind", "text", str), ("implicit", "truth", bool))),
    "TypeVar": (T.TypeVar, (("param", "node", T.TypeParam),)),
    "Tensor": (T.TensorType_, (("shape", "shape", T.TypeVar), ("dtype", "dtype", T.TypeVar))),
    "TupleType": (T.TupleType, (("fields", "nodes", T.TypeExpr),)),
    "Relation": (T.RelationClause, (("relation", "text", str), ("args", "nodes?", T.TypeExpr))),
    "FunctionType": (
        T.FunctionType,
        (
            ("type_params", "nodes", T.TypeParam),
            ("params", "nodes", T.TypeExpr),
            ("result", "node", T.TypeExpr),
            ("relations", "nodes", T.RelationClause),
        ),
    ),
    "RefType": (T.RefType, (("content", "node", T.TypeExpr),)),
    "DataType": (T.DataType, (("name", "text", str), ("args", "nodes", T.TypeExpr))),
    "Shape": (T.ShapeExpr, (("sizes", "sizes", T.TypeVar),)),
    "Blank": (T.Blank, ()),
    "Local": (T.Local, (("name", "text", str),)),
    "Literal": (T.Literal, (("dtype", "text", str), ("value", "number", object))),
    "Constant": (T.TensorConstant, (("value", "constant", object),)),
    "LocalVar": (T.LocalVar, (("local", "node", T.Local),)),
    "GlobalVar": (T.GlobalVar, (("name", "text", str),)),
    "Operator": (T.OperatorName, (("name", "text", str),)),
    "Constructor": (T.ConstructorName, (("name", "text", str),)),
    "Call": (
        T.CallExpr,
        (
            ("callee", "node", T.Expression),
            ("type_args", "nodes", T.TypeExpr),
            ("args", "nodes", T.Expression),
            ("attributes", "attributes", object),
        ),
    ),
    "Tuple": (T.TupleExpr, (("fields", "nodes", T.Expression),)),
    "Projection": (T.Projection, (("tuple", "node", T.Expression), ("index", "count", int))),
    "If": (
        T.IfExpr,
        (("condition", "node", T.Expression), ("then", "node", T.Expression), ("otherwise", "node", T.Expression)),
    ),
    "Wildcard": (T.WildcardPattern, ()),
    "VariablePattern": (T.VariablePattern, (("local", "node", T.Local), ("annotation", "node?", T.TypeExpr))),
    "ConstructorPattern": (T.ConstructorPattern, (("constructor", "text", str), ("fields", "nodes", T.PatternExpr))),
    "TuplePattern": (T.TuplePattern, (("fields", "nodes", T.PatternExpr),)),
    "Arm": (T.Arm, (("pattern", "node", T.PatternExpr), ("body", "node", T.Expression))),
    "Match": (T.MatchExpr, (("value", "node", T.Expression), ("arms", "nodes", T.Arm), ("complete", "truth", bool))),
    "Ref": (T.RefNew, (("value", "node", T.Expression),)),
    "RefRead": (T.RefRead, (("ref", "node", T.Expression),)),
    "RefWrite": (T.RefWrite, (("ref", "node", T.Expression), ("value", "node", T.Expression))),
    "Param": (T.Param, (("local", "node", T.Local), ("annotation", "node?", T.TypeExpr))),
    "Function": (
        T.Function,
        (
            ("type_params", "nodes", T.TypeParam),
            ("params", "nodes", T.Param),
            ("attributes", "attributes", object),
            ("result", "node?", T.TypeExpr),
            ("relations", "nodes", T.RelationClause),
            ("body", "node", T.Expression),
        ),
    ),
    "Let": (T.Let, (("local", "node", T.Local), ("annotation", "node?", T.TypeExpr), ("value", "node", T.Expression))),
    "GraphBinding": (T.GraphBinding, (("local", "node", T.Local), ("value", "node", T.Expression))),
    "Body": (T.Body, (("statements", "nodes", (T.Let, T.GraphBinding)), ("result", "node", T.Expression))),
    "ConstructorDef": (T.ConstructorDef, (("name", "text", str), ("fields", "nodes", T.TypeExpr))),
    "TypeDef": (
        T.TypeDef,
        (("name", "text", str), ("type_params", "nodes", T.TypeParam), ("constructors", "nodes", T.ConstructorDef)),
    ),
    "ExternType": (T.ExternType, (("name", "text", str), ("type_params", "nodes", T.TypeParam))),
    "Definition": (T.Definition, (("name", "text", str), ("function", "node", T.Function))),
}
_KINDS = {cls: (kind, fields) for kind, (cls, fields) in LAYOUT.items()}
_BINDERS = (T.Local, T.TypeParam)
_NAMES = (T.LocalVar, T.GlobalVar, T.OperatorName, T.ConstructorName, T.Literal, T.TensorConstant)


# ---------------------------------------------------------------- to JSON


def to_json(tree: T.ModuleTree) -> str:
    """A module as JSON."""
    writer = _JsonWriter()
    types = [writer.index(t) for t in tree.types.values()]
    functions = [writer.index(d) for d in tree.definitions.values()]
    parts = {"types": types, "functions": functions, "nodes": writer.nodes, "constants": writer.pool.entries}
    return json.dumps({"relay": VERSION, **parts}, separators=(",", ":"))


class _JsonWriter:
    """Numbers the nodes of a module."""

    def __init__(self):
        self.nodes: list[list[Any]] = []
        self.pool = ConstantPool()
        self._binders: dict[T.TreeNode, int] = {}
        self._known: dict[str, int] = {}

    def index(self, root: T.TreeNode) -> int:
        """The index of a node, which is written together with what it holds."""
        done: dict[T.TreeNode, int] = {}
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if node in done:
                continue
            if ready:
                done[node] = self._written(node, done)
                continue
            stack.append((node, True))
            stack.extend((inner, False) for inner in reversed(list(_held(node))))
        return done[root]

    def _written(self, node: T.TreeNode, done: dict[T.TreeNode, int]) -> int:
        if node in self._binders:
            return self._binders[node]
        kind, fields = _KINDS[type(node)]
        entry = [kind, *(self._field(getattr(node, name), sort, done) for name, sort, _ in fields)]
        if isinstance(node, _BINDERS):
            self._binders[node] = len(self.nodes)
        elif isinstance(node, (T.TypeExpr, *_NAMES)):
            key = json.dumps(entry)
            if key in self._known:
                return self._known[key]
            self._known[key] = len(self.nodes)
        self.nodes.append(entry)
        return len(self.nodes) - 1

    def _field(self, value: Any, sort: str, done: dict[T.TreeNode, int]) -> Any:
        if value is None:
            return None
        match sort:
            case "node" | "node?":
                return done[value]
            case "nodes" | "nodes?":
                return [done[v] for v in value]
            case "number":
                return value.hex() if isinstance(value, float) else value
            case "constant":
                return self.pool.index(value)
            case "attributes":
                return [[name, _attribute_out(v)] for name, v in value]
            case "shape" | "sizes" if isinstance(value, tuple):
                return [self._field(v, sort, done) for v in value]
            case "shape" | "dtype" if isinstance(value, T.TypeVar):
                return {"var": done[value]}
            case "shape" | "sizes" if isinstance(value, T.AnySize):
                return "?"
        return value


def _held(node: T.TreeNode) -> Iterable[T.TreeNode]:
    """The nodes that a node holds, in the order of its layout."""
    for name, _, _ in _KINDS[type(node)][1]:
        value = getattr(node, name)
        for v in value if isinstance(value, tuple) else (value,):
            if isinstance(v, T.TreeNode):
                yield v


def _attribute_out(value: T.Attribute) -> Any:
    if isinstance(value, tuple):
        return [_attribute_out(v) for v in value]
    return {"float": value.hex()} if isinstance(value, float) else value


# ---------------------------------------------------------------- from JSON


def from_json(text: str | bytes) -> T.ModuleTree:
    """The module that `to_json` wrote. That its names mean something is left to be checked.

    Raises:
        ParseError: the text is no such JSON.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"this is no JSON: {error}") from None
    if not isinstance(data, dict) or "relay" not in data:
        raise ParseError(
            'this is no module as JSON: {"relay": 1, "types": .., "functions": .., "nodes": .., "constants": ..}'
        )
    if data["relay"] != VERSION:
        raise ParseError(f"this is a module of version {data['relay']!r}; version {VERSION} can be read")
    for name in ("types", "functions", "nodes", "constants"):
        if not isinstance(data.get(name), list):
            raise ParseError(f"the JSON of the module lacks a list '{name}'")
    return _JsonReader(data).module()


class _JsonReader:
    """Makes the nodes of a module, each when those that it holds are made."""

    def __init__(self, data: dict[str, Any]):
        self.data = data
        self.constants: list[Any] = []
        self.made: list[T.TreeNode] = []
        self.used: set[int] = set()
        self.where = ""

    def module(self) -> T.ModuleTree:
        """The module.

        Raises:
            ParseError: it is none.
        """
        try:
            for i, entry in enumerate(self.data["constants"]):
                self.where = f"constant {i}"
                self.constants.append(T.constant(decoded(entry)))
            for i, entry in enumerate(self.data["nodes"]):
                self.where = f"node {i}"
                self.made.append(self._node(entry))
            self.where = "the list of types"
            types: list[Any] = self._nodes(self.data["types"], (T.TypeDef, T.ExternType))
            self.where = "the list of functions"
            definitions: list[Any] = self._nodes(self.data["functions"], T.Definition)
        except ValueError as error:
            raise ParseError(f"the JSON of the module is wrong at {self.where}: {error}") from None
        return T.ModuleTree({t.name: t for t in types}, {d.name: d for d in definitions})

    def _node(self, entry: Any) -> T.TreeNode:
        if not isinstance(entry, list) or not entry or not isinstance(entry[0], str) or entry[0] not in LAYOUT:
            raise ValueError("a node is a list that begins with its kind")
        cls, fields = LAYOUT[entry[0]]
        if len(entry) != len(fields) + 1:
            raise ValueError(f"{entry[0]} has {len(fields)} fields")
        values: dict[str, Any] = {
            name: self._field(value, sort, due) for (name, sort, due), value in zip(fields, entry[1:], strict=True)
        }
        if cls is T.Literal:
            values["value"] = _literal(values["value"], values["dtype"])
        if cls is T.TensorConstant:
            index: Any = values["value"]
            return self.constants[index]
        if cls is T.Body and (not values["statements"] or isinstance(values["result"], T.Body)):
            raise ValueError("a body has statements, and its result is no body")
        if cls is T.TypeParam and values["kind"] not in T.KINDS:
            raise ValueError(f"there is no kind {values['kind']}")
        return cls(**values)

    def _one(self, index: Any, due: Any) -> Any:
        """The node of an index. What has a place of its own is used once; names are made anew.

        Raises:
            ValueError: there is no such node.
        """
        if type(index) is not int or not 0 <= index < len(self.made):
            raise ValueError(f"{index!r} is no index of a node before it")
        node = self.made[index]
        if not isinstance(node, due):
            raise ValueError(f"node {index} is of the kind {_KINDS[type(node)][0]}")
        if isinstance(node, _NAMES):
            return replace(node)
        if not isinstance(node, (T.TypeExpr, *_BINDERS)):
            if index in self.used:
                raise ValueError(f"node {index} is in two places")
            self.used.add(index)
        return node

    def _nodes(self, indices: Any, due: Any) -> list[Any]:
        if not isinstance(indices, list):
            raise ValueError("a list of indices is due")
        return [self._one(i, due) for i in indices]

    def _field(self, value: Any, sort: str, due: Any) -> Any:
        if sort.endswith("?") and value is None:
            return None
        match sort.rstrip("?"):
            case "node":
                return self._one(value, due)
            case "nodes":
                return tuple(self._nodes(value, due))
            case "dtype":
                return self._dtype(value)
            case "shape" | "sizes":
                return self._shape(value, sort)
            case "attributes":
                return _attributes_in(value)
            case "constant" if type(value) is int and 0 <= value < len(self.constants):
                return value
            case "count" if type(value) is int and value >= 0:
                return value
            case "text" if isinstance(value, str):
                return value
            case "truth" if isinstance(value, bool):
                return value
            case "number" if isinstance(value, bool | int | str):
                return value
        raise ValueError(f"{value!r} is no {sort}")

    def _dtype(self, value: Any) -> Any:
        if isinstance(value, str) and value in DTYPES:
            return value
        if isinstance(value, dict) and set(value) == {"var"}:
            return self._one(value["var"], T.TypeVar)
        raise ValueError(f"{value!r} is no dtype")

    def _shape(self, value: Any, sort: str) -> Any:
        if isinstance(value, list):
            return tuple(map(self._size, value))
        if sort == "sizes":
            size = self._size(value)
            if not isinstance(size, T.TypeVar):
                return size
        elif isinstance(value, dict):
            return self._size(value)
        raise ValueError(f"{value!r} is no shape")

    def _size(self, value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"var"}:
            return self._one(value["var"], T.TypeVar)
        if type(value) is int and value >= 0:
            return value
        if value == "?":
            return T.ANY_SIZE
        raise ValueError(f"{value!r} is no size")


def _float(text: str) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no float") from None


def _literal(value: Any, dtype: str) -> bool | int | float:
    if dtype == "bool" and isinstance(value, bool):
        return value
    if dtype in DTYPES and is_float(dtype) and isinstance(value, str):
        number = _float(value)
        if repr(rounded(number, dtype)) == repr(number):
            return number
    elif dtype in DTYPES and dtype != "bool" and not is_float(dtype) and type(value) is int:
        least, largest = integer_range(dtype)
        if least <= value <= largest:
            return value
    raise ValueError(f"{value!r} is no {dtype}")


def _attributes_in(value: Any) -> T.Attributes:
    pairs: list[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(p, list) and len(p) == 2 and isinstance(p[0], str) for p in pairs):
        raise ValueError("attributes are pairs of names and values")
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("an attribute is given twice")
    return tuple((name, _attribute_in(v)) for name, v in pairs)


def _attribute_in(value: Any, depth: int = 0) -> T.Attribute:
    if isinstance(value, list) and depth < DEEPEST_LIST:
        return tuple(_attribute_in(v, depth + 1) for v in value)
    if isinstance(value, dict) and set(value) == {"float"} and isinstance(value["float"], str):
        return _float(value["float"])
    if value is None or isinstance(value, bool | int | str):
        return value
    raise ValueError(f"{value!r} is no attribute")
