"""Elimination of common subexpressions: what was computed already is not computed again.

    let %a = f(%x); .. let %b = f(%x); e   =>   let %a = f(%x); .. e[%b := %a]

An operation is in reach of another if the other's block holds its block: scopes form the dominator tree. One walk, with a
table that inner blocks extend and leave as they found it. Only what is pure is merged: an application of an operator, a
tuple, a projection, a call of a function that neither reads nor writes references nor makes new ones.

The native pipeline merges equal nodes while it builds typed graphs (`ir.build`), where all functions are specialised and
there are no polymorphic values; this pass keeps text as text, and sees calls that the other has long inlined.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from ..tree import (
    Blank,
    CallExpr,
    ConstructorName,
    Expression,
    Function,
    GlobalVar,
    Local,
    LocalVar,
    ModuleTree,
    OperatorName,
    Statement,
    TupleExpr,
)
from .common.effects import EffectAnalysis
from .common.keys import operation_key
from .common.normal import is_atom, operands
from .common.passes import TreePass, effects_of
from .common.rewriting import TreeRewriter, is_marked
from .common.type_expressions import type_params_in


@dataclass(frozen=True)
class EliminateCommonSubexpr(TreePass):
    """Computes equal pure expressions once, where one of them stands in a scope around the other."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with equal expressions merged."""
        effects = effects_of(tree)
        return tree.mapped(lambda name, function: _Merge(tree, effects).function(function))


class _Merge(TreeRewriter):
    def __init__(self, tree: ModuleTree, effects: EffectAnalysis):
        super().__init__()
        self.tree, self.effects = tree, effects
        self.table: dict[Hashable, Expression] = {}
        self.added: list[Hashable] = []

    def block(self, block: Expression) -> Expression:
        start = len(self.added)
        out = super().block(block)
        for key in self.added[start:]:
            del self.table[key]
        del self.added[start:]
        return out

    def operation(self, op: Expression, local: Local | None, out: list[Statement]) -> Expression:
        if isinstance(op, Function) and is_marked(op, "Primitive"):
            return _Merge(self.tree, self.effects).function(op)  # what it computes stays in it
        key = operation_key(op) if self.is_shareable(op) else None
        if key is None:
            return self.with_inner(op)
        found = self.table.get(key)
        if found is not None:
            return found
        if local is not None:
            self.table[key] = LocalVar(local, span=op.span)
            self.added.append(key)
        return op

    def with_replaced(self, op: Expression) -> Expression:
        new = super().with_replaced(op)
        if new is not op:
            self.effects.copy(op, new)
        return new

    def is_shareable(self, op: Expression) -> bool:
        """Whether two of an operation may be one: it is pure, and its type follows from its operands."""
        if is_atom(op) or not self.effects.of(op).mergeable:
            return False
        if isinstance(op, CallExpr) and isinstance(op.callee, OperatorName):
            return True
        if any(map(self.is_polymorphic, op.args if isinstance(op, CallExpr) else operands(op))):
            return False
        if isinstance(op, CallExpr):
            if isinstance(op.callee, ConstructorName):
                data, constructor = self.tree.constructors[op.callee.name]
                named = {p for t in constructor.fields for p in type_params_in(t)}
                return set(data.type_params) <= named
            function = self.effects.resolve(op.callee)
            return function is not None and not op.type_args and _result_follows(function)
        return True

    def is_polymorphic(self, x: Expression) -> bool:
        """Whether uses of an atom may differ in type."""
        match x:
            case ConstructorName() | GlobalVar() | OperatorName():
                return True
            case LocalVar():
                return x.local in self.effects.known
            case TupleExpr():
                return any(map(self.is_polymorphic, x.fields))
        return False


def _result_follows(function: Function) -> bool:
    """Whether the types of arguments alone decide the type of a function's result, as far as annotations tell."""
    if function.result is None or isinstance(function.result, Blank):
        return False
    named = {p for param in function.params if param.annotation is not None for p in type_params_in(param.annotation)}
    return set(type_params_in(function.result)) <= named
