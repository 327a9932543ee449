"""What the passes share: rebuilding code in A-normal form, statement by statement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...tree import (
    Arm,
    Body,
    CallExpr,
    ConstructorPattern,
    Expression,
    Function,
    GraphBinding,
    Let,
    Local,
    LocalVar,
    MatchExpr,
    OperatorName,
    Param,
    PatternExpr,
    Statement,
    TuplePattern,
    TypeExpr,
    VariablePattern,
    body,
)
from .normal import is_atom, operands, result, scopes, statements, with_operands, with_scopes


class TreeRewriter:
    """Rebuilds blocks in A-normal form, in the order of evaluation.

    A pass overrides `operation`, which says what an operation becomes. What becomes an atom is put in the place of its local.

    Attributes:
        replaced: local -> the atom that stands for it from now on.
    """

    def __init__(self):
        self.replaced: dict[Local, Expression] = {}

    def function(self, function: Function) -> Function:
        """A function with its body rebuilt."""
        return replace(function, body=self.block(function.body))

    def block(self, block: Expression) -> Expression:
        """A block rebuilt."""
        out: list[Statement] = []
        for s in statements(block):
            self.bind(s, self.operation(self.with_replaced(s.value), s.local, out), out)
        last = self.operation(self.with_replaced(result(block)), None, out)
        return body(out, last, block.span)

    def bind(self, s: Statement, value: Expression, out: list[Statement]) -> None:
        """Bind a local to what its operation has become: a statement, or an atom in its place."""
        if isinstance(value, Body):
            out.extend(value.statements)
            value = value.result
        if is_atom(value):
            self.replaced[s.local] = value
        else:
            out.append(s if value is s.value else replace(s, value=value))

    def operation(self, op: Expression, local: Local | None, out: list[Statement]) -> Expression:
        """What an operation becomes: an operation, an atom, or a block of which the result takes its place.

        Args:
            op: with its operands replaced, and not yet its scopes.
            local: what it is bound to; None for the result of a block.
            out: the statements before it; more may be appended.
        """
        del local, out
        return self.with_inner(op)

    def with_inner(self, op: Expression) -> Expression:
        """An operation with its scopes rebuilt."""
        inner = scopes(op)
        return with_scopes(op, tuple(map(self.block, inner))) if inner else op

    def with_replaced(self, op: Expression) -> Expression:
        """An operation with atoms in place of the locals that they stand for."""
        old = operands(op)
        new = tuple(self.atom(x) for x in old)
        return op if all(a is b for a, b in zip(old, new, strict=True)) else with_operands(op, new)

    def atom(self, x: Expression) -> Expression:
        """What stands for an atom."""
        while isinstance(x, LocalVar) and x.local in self.replaced:
            x = self.replaced[x.local]
        return x


def operator_of(e: Expression) -> str | None:
    """The name of the operator that an expression applies."""
    return e.callee.name if isinstance(e, CallExpr) and isinstance(e.callee, OperatorName) else None


def attribute(e: CallExpr | Function, name: str, default=None):
    """An attribute of a call or of a function."""
    return dict(e.attributes).get(name, default)


def is_marked(function: Function, name: str) -> bool:
    """Whether a function has an attribute that is 1 or True."""
    return attribute(function, name) in (1, True)


# ---------------------------------------------------------------- copies


class Copier:
    """Copies expressions with binders of their own, as no binder occurs twice in a module.

    Args:
        values: local -> what stands for it in the copy.
        annotations: whether annotations are kept; those of a polymorphic function mean nothing elsewhere.
    """

    def __init__(self, values: dict[Local, Expression] | None = None, annotations: bool = True):
        self.values = dict(values or {})
        self.annotations = annotations

    def fresh(self, local: Local) -> Local:
        """A local of the same name for the copy."""
        new = replace(local)
        self.values[local] = LocalVar(new, span=local.span)
        return new

    def annotation(self, t: TypeExpr | None) -> TypeExpr | None:
        """An annotation as the copy has it."""
        return t if self.annotations else None

    def block(self, block: Expression) -> Expression:
        """A copy of a block."""
        out: list[Statement] = []
        for s in statements(block):
            if isinstance(s.value, Function):
                local = self.fresh(s.local)
                value = self.operation(s.value)
            else:
                value = self.operation(s.value)
                local = self.fresh(s.local)
            if isinstance(s, Let):
                out.append(replace(s, local=local, value=value, annotation=self.annotation(s.annotation)))
            else:
                out.append(GraphBinding(local, value, span=s.span))
        return body(out, self.operation(result(block)), block.span)

    def operation(self, op: Expression) -> Expression:
        """A copy of an operation."""
        if isinstance(op, Function):
            return self.function(op)
        if operands(op):
            op = with_operands(op, tuple(self.atom(x) for x in operands(op)))
        if isinstance(op, CallExpr) and op.type_args and not self.annotations:
            op = replace(op, type_args=())
        if isinstance(op, MatchExpr):
            return replace(
                op, arms=tuple(Arm(self.pattern(a.pattern), self.block(a.body), span=a.span) for a in op.arms)
            )
        return with_scopes(op, tuple(map(self.block, scopes(op)))) if scopes(op) else op

    def function(self, f: Function) -> Function:
        """A copy of a function."""
        params = tuple(Param(self.fresh(p.local), self.annotation(p.annotation), span=p.span) for p in f.params)
        if self.annotations:
            return replace(f, params=params, body=self.block(f.body))
        return replace(f, params=params, body=self.block(f.body), result=None, type_params=(), relations=())

    def pattern(self, p: PatternExpr) -> PatternExpr:
        """A copy of a pattern."""
        match p:
            case VariablePattern():
                return replace(p, local=self.fresh(p.local), annotation=self.annotation(p.annotation))
            case ConstructorPattern() | TuplePattern():
                return replace(p, fields=tuple(map(self.pattern, p.fields)))
        return p

    def atom(self, x: Expression) -> Expression:
        """What stands for an atom in the copy."""
        return self.values.get(x.local, x) if isinstance(x, LocalVar) else x


def pattern_locals(p: PatternExpr) -> Iterable[Local]:
    """The locals that a pattern binds, from left to right."""
    match p:
        case VariablePattern():
            yield p.local
        case ConstructorPattern() | TuplePattern():
            for f in p.fields:
                yield from pattern_locals(f)
