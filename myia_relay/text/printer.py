"""Trees as text, in the format 0.0.5 that TVM printed.

The printer does not recurse: what is still to be written stands on a stack, as texts, nodes, and changes of the indentation.
Names are given where they are bound, in the order of the text, and each once in a definition, so nothing is shadowed and the
text of what is read again is the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from .comments import Comments, CommentSpot
from .dtypes import DTYPES, shortest, spelled
from .naming import UniqueNames
from .pool import POOL, ConstantPool
from .tree import (
    AnySize,
    Arm,
    Attribute,
    Attributes,
    Blank,
    Body,
    CallExpr,
    ConstructorDef,
    ConstructorName,
    ConstructorPattern,
    DataType,
    Definition,
    ExternType,
    Function,
    FunctionType,
    GlobalVar,
    GraphBinding,
    IfExpr,
    Let,
    Literal,
    Local,
    LocalVar,
    MatchExpr,
    ModuleTree,
    OperatorName,
    Param,
    Projection,
    RefNew,
    RefRead,
    RefType,
    RefWrite,
    RelationClause,
    ShapeExpr,
    TensorConstant,
    TensorType_,
    TreeNode,
    TupleExpr,
    TuplePattern,
    TupleType,
    TypeDef,
    TypeParam,
    TypeVar,
    VariablePattern,
    WildcardPattern,
)
from .walk import walk

VERSION = '#[version = "0.0.5"]'
INDENT = "  "
DEEPEST_INDENT = 40  # levels: behind that, lines would be longer than what stands on them


class Marker:
    """A change of the printer's state, among what is still to be written."""


NEWLINE, DEEPER, BACK, LEAVE = Marker(), Marker(), Marker(), Marker()


def print_module(tree: ModuleTree, comments: Sequence[tuple[int, int]] = (), text: str = "") -> str:
    """The text of a module.

    Args:
        tree: the module.
        comments: where comments begin and end in the text that the tree is of; they are kept.
        text: that text.
    """
    pool = ConstantPool()
    printer = TreePrinter(pool, frozenset(tree.types), Comments(comments, text))
    items = [VERSION + "\n"]
    previous = None
    for item in (*tree.types.values(), *tree.definitions.values()):
        short = isinstance(item, ExternType) and isinstance(previous, ExternType)
        if previous is not None and not short:
            items.append("\n")
        items.append(printer.item(item))
        previous = item
    items.append(printer.comments.rest())
    if pool.entries:
        items.append(f"\n#[metadata]\n{json.dumps({POOL: pool.entries}, indent=1)}\n")
    return "".join(items)


def print_node(node: TreeNode) -> str:
    """The text of a part of a module; constants are numbered from 0."""
    return TreePrinter(ConstantPool(), frozenset(), Comments()).item(node).rstrip("\n")


def escaped(text: str) -> str:
    """A text in quotes."""
    out = ['"']
    plain = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    for char in text:
        if char in plain:
            out.append(plain[char])
        elif char.isprintable():
            out.append(char)
        else:
            code = ord(char)
            out.append(f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")
    return "".join(out) + '"'


def attribute_text(value: Attribute) -> str:
    """The value of an attribute as text."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(attribute_text, value))}]"
    if isinstance(value, float):
        return f"{shortest(value)}f"
    return str(value)


class TreePrinter:
    """Prints definitions one after the other.

    Args:
        pool: the constants of the module.
        types: the names of its types.
        comments: those of the text that is formatted.
    """

    def __init__(self, pool: ConstantPool, types: frozenset[str], comments: Comments):
        self.pool, self.types, self.comments = pool, types, comments
        self._start(frozenset())

    def _start(self, declared: frozenset[TypeParam]) -> None:
        self._names: dict[Local, str] = {}
        self._unique = UniqueNames({"_"})
        self._params: dict[TypeParam, str] = {}
        self._unique_params = UniqueNames({*self.types, *DTYPES, "Tensor", "ref", "_", "Ref", "RefType", "forall"})
        self._numbers = 0
        self._used: set[Local] = set()
        self._declared = declared  # implicit shape variables that are written among the type parameters
        self._functions: list[Function] = []
        self._owner: dict[TypeParam, Function] = {}
        self._misplaced: set[TypeParam] = set()
        self._depth = 0
        self._out: list[str] = []
        self._todo: list[Any] = []

    def item(self, node: TreeNode) -> str:
        """The text of a definition or another node, with the comments around it, and a line break."""
        first_comment = self.comments.next
        self._print(node, frozenset())
        if self._misplaced:  # shape variables that an inner function would be the outermost to name, read again
            self.comments.next = first_comment
            self._print(node, frozenset(self._misplaced))
        return "".join(self._out)

    def _print(self, node: TreeNode, declared: frozenset[TypeParam]) -> None:
        self._start(declared)
        self._used = {e.local for e in walk(node) if isinstance(e, LocalVar)}
        self._push([*self._comments_before(node), node, *self._comments_behind(node), "\n"])
        out, todo = self._out, self._todo
        while todo:
            top = todo.pop()
            if type(top) is str:
                out.append(top)
            elif top is NEWLINE:
                out.append("\n" + INDENT * min(self._depth, DEEPEST_INDENT))
            elif top is DEEPER:
                self._depth += 1
            elif top is BACK:
                self._depth -= 1
            elif top is LEAVE:
                self._functions.pop()
            else:
                _WRITERS[type(top)](self, top)

    def _push(self, parts: list[Any]) -> None:
        """What is written next, in this order."""
        parts.reverse()
        self._todo.extend(parts)

    # ------------------------------------------------ comments

    def _comments_before(self, node: TreeNode) -> list[Any]:
        return [CommentSpot(node.span.start)] if self.comments.places and node.span is not None else []

    def _comments_behind(self, node: TreeNode) -> list[Any]:
        return [CommentSpot(node.span.end, behind=True)] if self.comments.places and node.span is not None else []

    def comment(self, spot: CommentSpot) -> None:
        """Write the comments of a place."""
        if spot.behind:
            self._out.extend(f"  {comment}" for comment in self.comments.behind(spot.offset))
            return
        line_break = "\n" + INDENT * min(self._depth, DEEPEST_INDENT)
        for comment in self.comments.before(spot.offset):
            self._out.append(line_break + comment if spot.last else comment + line_break)

    # ------------------------------------------------ names

    def _bound(self, local: Local) -> str:
        if local.name == "_" and local not in self._used:
            return "%_"
        name = self._names.get(local)
        if name is None:
            name = self._names[local] = "%" + self._unique.give(local.name)
        return name

    def _param(self, param: TypeParam) -> str:
        name = self._params.get(param)
        if name is None:
            if param.implicit and param not in self._declared and self._functions:
                if self._owner.get(param) is not self._functions[-1]:
                    self._misplaced.add(param)
            name = self._params[param] = self._unique_params.give(param.name, sizes=True)
        return name

    # ------------------------------------------------ items

    def definition(self, node: Definition) -> None:
        """`def @f(..) { .. }`."""
        self._function(f"def @{node.name}", node.function)

    def type_def(self, node: TypeDef) -> None:
        """`type List[A] { .. }`."""
        parts: list[Any] = [f"type {node.name}", self._type_params(node.type_params), " {", DEEPER]
        for constructor in node.constructors:
            parts += [
                NEWLINE,
                *self._comments_before(constructor),
                constructor,
                ",",
                *self._comments_behind(constructor),
            ]
        self._push([*parts, BACK, NEWLINE, "}"])

    def extern_type(self, node: ExternType) -> None:
        """`extern type Handle`."""
        self._push([f"extern type {node.name}", self._type_params(node.type_params)])

    def constructor_def(self, node: ConstructorDef) -> None:
        """`Cons(A, List[A])`."""
        self._push([node.name, *(["(", *separated(node.fields), ")"] if node.fields else [])])

    # ------------------------------------------------ types

    def _type_params(self, params: Sequence[TypeParam]) -> str:
        shown = [p for p in params if not p.implicit or p in self._declared]
        if not shown:
            return ""
        return f"[{', '.join(self._param(p) + ('' if p.kind == 'Type' else f': {p.kind}') for p in shown)}]"

    def _size(self, size: int | AnySize | TypeVar) -> str:
        return self._param(size.param) if isinstance(size, TypeVar) else str(size)

    def _shape(self, sizes: tuple[int | AnySize | TypeVar, ...]) -> str:
        return f"({', '.join(map(self._size, sizes))})"

    def type_var(self, node: TypeVar) -> None:
        """`A`."""
        self._out.append(self._param(node.param))

    def tensor_type(self, node: TensorType_) -> None:
        """`Tensor[(2, n, ?), float32]`, or `float32`."""
        if node.shape == () and isinstance(node.dtype, str):
            self._out.append(node.dtype)
            return
        shape = self._param(node.shape.param) if isinstance(node.shape, TypeVar) else self._shape(node.shape)
        dtype = self._param(node.dtype.param) if isinstance(node.dtype, TypeVar) else node.dtype
        self._out.append(f"Tensor[{shape}, {dtype}]")

    def tuple_type(self, node: TupleType) -> None:
        """`(A, B)`."""
        self._push(["(", *separated(node.fields), ",)" if len(node.fields) == 1 else ")"])

    def function_type(self, node: FunctionType) -> None:
        """`fn [A](A) -> A`; in parentheses where relations follow, which would be taken for those of what is around."""
        around = ("(", ")") if node.relations else ("", "")
        head = f"{around[0]}fn {self._type_params(node.type_params)}("
        within = node.relations and isinstance(node.result, FunctionType) and not node.result.relations
        result = ["(", node.result, ")"] if within else [node.result]
        self._push([head, *separated(node.params), ") -> ", *result, *self._where(node.relations), around[1]])

    def ref_type(self, node: RefType) -> None:
        """`ref(A)`."""
        self._push(["ref(", node.content, ")"])

    def data_type(self, node: DataType) -> None:
        """`List[A]`."""
        self._push([f"{node.name}[", *separated(node.args), "]"])

    def shape_expr(self, node: ShapeExpr) -> None:
        """`(2, 3)` or `3`."""
        self._out.append(self._shape(node.sizes) if isinstance(node.sizes, tuple) else str(node.sizes))

    def blank(self, node: Blank) -> None:
        """`_`."""
        self._out.append("_")

    def _where(self, relations: Sequence[RelationClause]) -> list[Any]:
        parts: list[Any] = []
        for r in relations:
            parts += [", " if parts else " where ", r.relation]
            if r.args is not None:
                parts += ["(", *separated(r.args), ")"]
        return parts

    # ------------------------------------------------ expressions

    def literal(self, node: Literal) -> None:
        """`1`, `2.5f`."""
        self._out.append(spelled(node.value, node.dtype))

    def tensor_constant(self, node: TensorConstant) -> None:
        """`meta[relay.Constant][0]`."""
        self._out.append(f"meta[{POOL}][{self.pool.index(node.value)}]")

    def local_var(self, node: LocalVar) -> None:
        """`%x`."""
        self._out.append(self._names.get(node.local) or self._bound(node.local))

    def global_var(self, node: GlobalVar) -> None:
        """`@f`."""
        self._out.append(f"@{node.name}")

    def named(self, node: OperatorName | ConstructorName) -> None:
        """An operator or a constructor."""
        self._out.append(node.name)

    def call(self, node: CallExpr) -> None:
        """`f(a, b, axis=1)`."""
        parts = self._callee(node.callee)
        if node.type_args:
            parts += ["<", *separated(node.type_args), ">"]
        parts += ["(", *separated(node.args)]
        if node.attributes:
            parts.append((", " if node.args else "") + attributes_text(node.attributes))
        parts.append(")")
        self._push(parts)

    def _callee(self, node: Any) -> list[Any]:
        """An expression before `(` or `.0`."""
        return ["(", node, ")"] if isinstance(node, BRACKETED) else [node]

    def tuple_expr(self, node: TupleExpr) -> None:
        """`(a, b)`."""
        self._push(["(", *separated(node.fields), ",)" if len(node.fields) == 1 else ")"])

    def projection(self, node: Projection) -> None:
        """`t.0`."""
        self._push([*self._callee(node.tuple), f".{node.index}"])

    def ref_new(self, node: RefNew) -> None:
        """`ref(a)`."""
        self._push(["ref(", node.value, ")"])

    def ref_read(self, node: RefRead) -> None:
        """`ref_read(r)`."""
        self._push(["ref_read(", node.ref, ")"])

    def ref_write(self, node: RefWrite) -> None:
        """`ref_write(r, a)`."""
        self._push(["ref_write(", node.ref, ", ", node.value, ")"])

    # ------------------------------------------------ blocks

    def if_expr(self, node: IfExpr) -> None:
        """`if (c) { .. } else { .. }`."""
        self._push(["if (", node.condition, ") ", *self._block(node.then), " else ", *self._block(node.otherwise)])

    def match_expr(self, node: MatchExpr) -> None:
        """`match (e) { pattern => { .. }, .. }`."""
        around = ("", "") if isinstance(node.value, TupleExpr) else ("(", ")")
        word = "match " if node.complete else "match? "
        parts: list[Any] = [word + around[0], node.value, around[1] + " {", DEEPER]
        for arm in node.arms:
            parts += [NEWLINE, *self._comments_before(arm), arm, ",", *self._comments_behind(arm)]
        self._push([*parts, BACK, NEWLINE, "}"])

    def arm(self, node: Arm) -> None:
        """`pattern => { .. }`."""
        self._push([node.pattern, " => ", *self._block(node.body)])

    def wildcard(self, node: WildcardPattern) -> None:
        """`_`."""
        self._out.append("_")

    def variable_pattern(self, node: VariablePattern) -> None:
        """`%x: A`."""
        self._push([self._bound(node.local), *([": ", node.annotation] if node.annotation is not None else [])])

    def constructor_pattern(self, node: ConstructorPattern) -> None:
        """`Cons(%h, _)`."""
        self._push([node.constructor, *(["(", *separated(node.fields), ")"] if node.fields else [])])

    def tuple_pattern(self, node: TuplePattern) -> None:
        """`(%a, %b)`."""
        self._push(["(", *separated(node.fields), ",)" if len(node.fields) == 1 else ")"])

    def function(self, node: Function) -> None:
        """`fn (%x) { .. }`."""
        self._function("fn ", node)

    def _function(self, head: str, node: Function) -> None:
        self._functions.append(node)
        self._owner.update((p, node) for p in node.type_params if p.implicit)
        parts: list[Any] = [f"{head}{self._type_params(node.type_params)}("]
        parts += separated(node.params)
        if node.attributes:
            parts.append((", " if node.params else "") + attributes_text(node.attributes))
        parts.append(")")
        if node.result is not None:
            parts += [" -> ", node.result]
        self._push([*parts, *self._where(node.relations), " ", *self._block(node.body, node), LEAVE])

    def param(self, node: Param) -> None:
        """`%x: A`."""
        self._push([self._bound(node.local), *([": ", node.annotation] if node.annotation is not None else [])])

    def _block(self, node: Any, around: Function | None = None) -> list[Any]:
        """A block in braces; comments at the end of a function stay within."""
        last: list[Any] = []
        if self.comments.places and around is not None and around.span is not None:
            last = [CommentSpot(around.span.end - 1, last=True)]
        if isinstance(node, Body):
            return [*self._lines(node), *last, BACK, NEWLINE, "}"]
        return [
            "{",
            DEEPER,
            NEWLINE,
            *self._comments_before(node),
            node,
            *self._comments_behind(node),
            BACK,
            NEWLINE,
            "}",
        ]

    def _lines(self, node: Body) -> list[Any]:
        parts: list[Any] = ["{", DEEPER]
        for s in (*node.statements, node.result):
            parts += [NEWLINE, *self._comments_before(s), s, *self._comments_behind(s)]
        return parts

    def body(self, node: Body) -> None:
        """`{ statements; result }`."""
        self._push([*self._lines(node), BACK, NEWLINE, "}"])

    def let(self, node: Let) -> None:
        """`let %x: A = value;`."""
        annotation = [": ", node.annotation] if node.annotation is not None else []
        self._push([f"let {self._bound(node.local)}", *annotation, " = ", node.value, ";"])

    def graph_binding(self, node: GraphBinding) -> None:
        """`%0 = value;`."""
        name = f"%{self._numbers}"
        self._numbers += 1
        self._names[node.local] = name
        self._push([name, " = ", node.value, ";"])


BRACKETED = (Function, IfExpr, MatchExpr, Body, Literal)
"""Expressions that stand in parentheses where something is called or a part is taken."""

_WRITERS: dict[type, Callable[[TreePrinter, Any], None]] = {
    CommentSpot: TreePrinter.comment,
    Definition: TreePrinter.definition,
    TypeDef: TreePrinter.type_def,
    ExternType: TreePrinter.extern_type,
    ConstructorDef: TreePrinter.constructor_def,
    TypeVar: TreePrinter.type_var,
    TensorType_: TreePrinter.tensor_type,
    TupleType: TreePrinter.tuple_type,
    FunctionType: TreePrinter.function_type,
    RefType: TreePrinter.ref_type,
    DataType: TreePrinter.data_type,
    ShapeExpr: TreePrinter.shape_expr,
    Blank: TreePrinter.blank,
    Literal: TreePrinter.literal,
    TensorConstant: TreePrinter.tensor_constant,
    LocalVar: TreePrinter.local_var,
    GlobalVar: TreePrinter.global_var,
    OperatorName: TreePrinter.named,
    ConstructorName: TreePrinter.named,
    CallExpr: TreePrinter.call,
    TupleExpr: TreePrinter.tuple_expr,
    Projection: TreePrinter.projection,
    RefNew: TreePrinter.ref_new,
    RefRead: TreePrinter.ref_read,
    RefWrite: TreePrinter.ref_write,
    IfExpr: TreePrinter.if_expr,
    MatchExpr: TreePrinter.match_expr,
    Arm: TreePrinter.arm,
    WildcardPattern: TreePrinter.wildcard,
    VariablePattern: TreePrinter.variable_pattern,
    ConstructorPattern: TreePrinter.constructor_pattern,
    TuplePattern: TreePrinter.tuple_pattern,
    Function: TreePrinter.function,
    Param: TreePrinter.param,
    Body: TreePrinter.body,
    Let: TreePrinter.let,
    GraphBinding: TreePrinter.graph_binding,
}


def separated(parts: Sequence[Any]) -> list[Any]:
    """Parts with commas between them."""
    found: list[Any] = []
    for part in parts:
        if found:
            found.append(", ")
        found.append(part)
    return found


def attributes_text(attributes: Attributes) -> str:
    """`axis=1, keepdims=True`."""
    return ", ".join(f"{name}={attribute_text(value)}" for name, value in attributes)
