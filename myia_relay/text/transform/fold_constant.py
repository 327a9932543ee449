"""Constant folding.

    2 * 3 + 4   =>   10        (%a, %b).0   =>   %a        if (True) { e1 } else { e2 }   =>   e1

An operator applied to constants is computed (`folding.py`), a part of a tuple that is made in view is that part, and a
branch that is decided by a constant, or a match on a value that is made in view, is the branch or the arm. One walk.

The native pipeline folds primitives while it builds typed graphs (`ir.build.fold`); both use the reference implementations.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..tree import (
    CallExpr,
    ConstructorName,
    ConstructorPattern,
    Expression,
    IfExpr,
    Literal,
    Local,
    LocalVar,
    MatchExpr,
    ModuleTree,
    PatternExpr,
    Projection,
    Statement,
    TensorConstant,
    TupleExpr,
    TuplePattern,
    VariablePattern,
)
from .common.folding import fold
from .common.normal import temporary
from .common.passes import TreePass
from .common.rewriting import TreeRewriter, operator_of


@dataclass(frozen=True)
class FoldConstant(TreePass):
    """Computes what depends on constants alone."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with constants folded."""
        return tree.mapped(lambda name, function: _Folding().function(function))


class _Folding(TreeRewriter):
    """Attributes:
    made: local -> the tuple or the constructor's application that it is bound to.
    """

    def __init__(self):
        super().__init__()
        self.made: dict[Local, Expression] = {}

    def bind(self, s: Statement, value: Expression, out: list[Statement]) -> None:
        super().bind(s, value, out)
        if isinstance(value, TupleExpr) or (isinstance(value, CallExpr) and isinstance(value.callee, ConstructorName)):
            self.made[s.local] = value

    def operation(self, op: Expression, local: Local | None, out: list[Statement]) -> Expression:
        match op:
            case CallExpr():
                return self.folded(op, out) or op
            case Projection():
                made = self.view(op.tuple)
                return made.fields[op.index] if isinstance(made, TupleExpr) else op
            case IfExpr(condition=Literal(value=value)):
                return self.block(op.then if value else op.otherwise)
            case MatchExpr():
                arm = self.arm(op)
                return self.with_inner(op) if arm is None else self.block(arm)
        return self.with_inner(op)

    def folded(self, op: CallExpr, out: list[Statement]) -> Expression | None:
        """The value of an application of an operator to constants."""
        name = operator_of(op)
        args = [self.constant(a) for a in op.args]
        if name is None or any(a is None for a in args):
            return None
        value = fold(name, tuple(args), op.attributes, op.span)  # type: ignore[arg-type]
        return _with_atoms(value, out) if isinstance(value, TupleExpr) else value

    def constant(self, x: Expression) -> Expression | None:
        """An atom as a constant, or a tuple of constants."""
        x = self.view(x)
        if isinstance(x, TupleExpr):
            fields = tuple(self.constant(f) for f in x.fields)
            return None if None in fields else TupleExpr(fields)  # type: ignore[arg-type]
        return x if isinstance(x, Literal | TensorConstant) else None

    def view(self, x: Expression) -> Expression:
        """The operation that an atom is bound to, where that is known."""
        return self.made.get(x.local, x) if isinstance(x, LocalVar) else x

    def arm(self, op: MatchExpr) -> Expression | None:
        """The body of the arm that is taken, if that is known; the variables of its pattern stand for parts of the value."""
        for arm in op.arms:
            bound: dict[Local, Expression] = {}
            fits = self.fits(arm.pattern, op.value, bound)
            if fits:
                self.replaced.update(bound)
                return arm.body
            if fits is None:
                return None
        return None

    def fits(self, pattern: PatternExpr, x: Expression, bound: dict[Local, Expression]) -> bool | None:
        """Whether a pattern fits an atom; None where that is not known."""
        made = self.view(x)
        match pattern:
            case VariablePattern():
                bound[pattern.local] = x
                return True
            case TuplePattern() if isinstance(made, TupleExpr):
                parts = made.fields
            case ConstructorPattern() if isinstance(made, CallExpr | ConstructorName):
                callee = made.callee if isinstance(made, CallExpr) else made
                if not isinstance(callee, ConstructorName):
                    return None
                if callee.name != pattern.constructor:
                    return False
                parts = made.args if isinstance(made, CallExpr) else ()
            case TuplePattern() | ConstructorPattern():
                return None
            case _:
                return True
        found = [self.fits(p, part, bound) for p, part in zip(pattern.fields, parts, strict=True)]
        return False if False in found else None if None in found else True


def _with_atoms(value: TupleExpr, out: list[Statement]) -> Expression:
    """A constant tuple with atoms as fields."""
    fields = (_with_atoms(f, out) if isinstance(f, TupleExpr) else f for f in value.fields)
    return TupleExpr(tuple(temporary(f, out) for f in fields), span=value.span)
