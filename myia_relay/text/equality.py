"""Whether two trees mean the same text: equal up to bound names, and of modules up to the order of definitions.

Attributes, dtypes of literals and annotations count. Both trees are walked at once; what is bound in the one corresponds to
what is bound in its place in the other.
"""

from __future__ import annotations

from typing import Any

from .tree import (
    Arm,
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

FIELDS: dict[type, tuple[str, ...]] = {
    TensorType_: ("shape", "dtype"),
    TupleType: ("fields",),
    FunctionType: ("type_params", "params", "result", "relations"),
    RefType: ("content",),
    DataType: ("name", "args"),
    ShapeExpr: ("sizes",),
    Blank: (),
    RelationClause: ("relation", "args"),
    GlobalVar: ("name",),
    OperatorName: ("name",),
    ConstructorName: ("name",),
    CallExpr: ("callee", "type_args", "args"),
    TupleExpr: ("fields",),
    Projection: ("tuple", "index"),
    IfExpr: ("condition", "then", "otherwise"),
    MatchExpr: ("value", "arms", "complete"),
    RefNew: ("value",),
    RefRead: ("ref",),
    RefWrite: ("ref", "value"),
    Body: ("statements", "result"),
    WildcardPattern: (),
    ConstructorPattern: ("constructor", "fields"),
    TuplePattern: ("fields",),
    Arm: ("pattern", "body"),
    ConstructorDef: ("name", "fields"),
    TypeDef: ("name", "type_params", "constructors"),
    ExternType: ("name", "type_params"),
    Definition: ("name", "function"),
}
"""What of a node is compared, in the order of the text: binders before their uses."""


def equal(a: ModuleTree | TreeNode, b: ModuleTree | TreeNode) -> bool:
    """Whether two modules, or two nodes of a class without free locals, are equal."""
    if isinstance(a, ModuleTree) or isinstance(b, ModuleTree):
        if not isinstance(a, ModuleTree) or not isinstance(b, ModuleTree):
            return False
        if a.types.keys() != b.types.keys() or a.definitions.keys() != b.definitions.keys():
            return False
        pairs = [(a.types[n], b.types[n]) for n in a.types] + [
            (a.definitions[n], b.definitions[n]) for n in a.definitions
        ]
        return all(x is y or equal(x, y) for x, y in pairs)
    return _Comparison().equal(a, b)


def fingerprint(tree: ModuleTree) -> int:
    """A hash that equal modules share."""
    sizes = {n: sum(1 for _ in walk(d)) for n, d in tree.definitions.items()}
    return hash((frozenset(tree.types), frozenset(sizes.items())))


class _Comparison:
    """One comparison: pairs still to be compared, and which binders correspond."""

    def __init__(self):
        self._there: dict[TreeNode, TreeNode] = {}
        self._back: dict[TreeNode, TreeNode] = {}
        self._todo: list[tuple[Any, Any]] = []

    def equal(self, a: Any, b: Any) -> bool:
        todo = self._todo
        todo.append((a, b))
        while todo:
            x, y = todo.pop()
            if isinstance(x, tuple):
                if not isinstance(y, tuple) or len(x) != len(y):
                    return False
                todo.extend(zip(reversed(x), reversed(y)))
            elif type(x) is not type(y):
                return False
            elif isinstance(x, TreeNode):
                if not self._nodes(x, y):
                    return False
            elif x != y:
                return False
        return True

    def _pair(self, x: TreeNode, y: TreeNode) -> bool:
        """Let two binders correspond. Each has one place, so a second partner is a difference."""
        return self._there.setdefault(x, y) is y and self._back.setdefault(y, x) is x

    def _nodes(self, x: Any, y: Any) -> bool:
        fields = FIELDS.get(type(x))
        if fields is not None:
            self._todo.extend((getattr(x, name), getattr(y, name)) for name in reversed(fields))
            return type(x) is not CallExpr or _same_attributes(x.attributes, y.attributes)
        match x:
            case LocalVar():
                return self._pair(x.local, y.local)
            case TypeVar():
                return self._pair(x.param, y.param) and _same_param(x.param, y.param)
            case TypeParam():
                return self._pair(x, y) and _same_param(x, y)
            case Literal():
                return x.dtype == y.dtype and repr(x.value) == repr(y.value)
            case TensorConstant():
                u, v = x.value, y.value
                return u.dtype == v.dtype and u.shape == v.shape and u.tobytes() == v.tobytes()
            case Param() | VariablePattern():
                self._todo.append((x.annotation, y.annotation))
                return self._pair(x.local, y.local)
            case Let():
                self._todo += [(x.value, y.value), (x.annotation, y.annotation)]
                return self._pair(x.local, y.local)
            case GraphBinding():
                self._todo.append((x.value, y.value))
                return self._pair(x.local, y.local)
            case Function():
                declared = [tuple(p for p in f.type_params if not p.implicit) for f in (x, y)]
                self._todo += [(x.body, y.body), (x.relations, y.relations), (x.result, y.result), (x.params, y.params)]
                self._todo.append((declared[0], declared[1]))
                return _same_attributes(x.attributes, y.attributes)
        raise TypeError(f"no tree: {type(x).__name__}")


def _same_param(x: TypeParam, y: TypeParam) -> bool:
    return x.kind == y.kind and x.implicit == y.implicit


def _same_attributes(x: tuple, y: tuple) -> bool:
    """Whether attributes are equal, in whatever order; 1, 1.0 and True are three values."""
    return {n: repr(v) for n, v in x} == {n: repr(v) for n, v in y}
