"""Reverse mode by references, on trees (Relay: 2019 paper, section 4.2, after B. Pearlmutter and J. Siskind).

    D[float tensor] = (tensor, ref(tensor))     D[other tensor] = itself
    D[A -> B] = D[A] -> D[B]     D[(A, B)] = (D[A], D[B])     D[List[A]] = List[D[A]] ..

A float tensor becomes a pair of its value and a reference to its cotangent. An operator computes its value, and puts what it has to
do in the backward pass in front of the backpropagator, a function in a reference:

    y = op(x)   =>   let %v = op(x.0); let %y = (%v, ref(zeros_like(%v)));
                     let %before = !%bp; %bp := fn () { x.1 := !x.1 + (d op)(!%y.1); %before() }

All else keeps its form: control flow, closures, recursion, data types and references need no rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ....utils.errors import TypeError_
from ...span import loc
from ...terms.terms import ArrowTerm, TensorTerm, TupleTerm, prune
from ...tree import (
    Arm,
    CallExpr,
    ConstructorDef,
    ConstructorName,
    ConstructorPattern,
    DataType,
    Expression,
    Function,
    FunctionType,
    GlobalVar,
    Let,
    Literal,
    Local,
    LocalVar,
    MatchExpr,
    ModuleTree,
    OperatorName,
    Param,
    PatternExpr,
    Projection,
    RefNew,
    RefRead,
    RefType,
    RefWrite,
    Statement,
    TensorConstant,
    TensorType_,
    TupleExpr,
    TuplePattern,
    TupleType,
    TypeDef,
    TypeExpr,
    VariablePattern,
    apply,
    body,
)
from ..common.normal import is_atom, operands, result, scopes, statements, with_operands, with_scopes
from ..common.rewriting import operator_of
from ..common.type_expressions import all_types, mapped_type
from ..common.types_known import Types
from .rules import NOT_DIFFERENTIABLE, RULES


def is_active(dtype: Any) -> bool:
    """Whether tensors of a dtype have cotangents; of one that is not known, they have."""
    return not isinstance(dtype, str) or dtype.startswith(("float", "bfloat"))


BACK = FunctionType((), TupleType(()))
"""The type of backpropagators."""


class DualTypes:
    """Types of a module as the backward pass has them.

    Attributes:
        names: data type with floats in its fields -> what it is called with duals in their place.
        defs: the definitions of these.
    """

    def __init__(self, tree: ModuleTree):
        self.tree = tree
        names = {
            n for n, t in tree.types.items() if isinstance(t, TypeDef) and any(map(self._has_floats, self._fields(t)))
        }
        grown = True
        while grown:
            more = {
                n
                for n, t in tree.types.items()
                if isinstance(t, TypeDef)
                for f in self._fields(t)
                for x in all_types(f)
                if isinstance(x, DataType) and x.name in names
            }
            grown = not more <= names
            names |= more
        self.names = {n: f"{n}_dual" for n in names}
        self.constructors = {c.name: f"{c.name}_dual" for n in names for c in tree.types[n].constructors}  # type: ignore[union-attr]
        self.defs: dict[str, TypeDef] = {}
        for n, new in self.names.items():
            t = tree.types[n]
            assert isinstance(t, TypeDef)
            constructors = tuple(
                ConstructorDef(self.constructors[c.name], tuple(map(self.type, c.fields))) for c in t.constructors
            )
            self.defs[new] = replace(t, name=new, constructors=constructors)

    @staticmethod
    def _fields(t: TypeDef) -> list[TypeExpr]:
        return [f for c in t.constructors for f in c.fields]

    @staticmethod
    def _has_floats(t: TypeExpr) -> bool:
        return any(isinstance(x, TensorType_) and isinstance(x.dtype, str) and is_active(x.dtype) for x in all_types(t))

    def type(self, t: TypeExpr) -> TypeExpr:
        """A type with pairs in place of float tensors."""
        return mapped_type(t, self._changed)

    def _changed(self, t: TypeExpr) -> TypeExpr:
        if isinstance(t, TensorType_) and is_active(t.dtype):
            return TupleType((t, RefType(t)), span=t.span)
        if isinstance(t, DataType) and t.name in self.names:
            return replace(t, name=self.names[t.name])
        return t


class Duals:
    """Makes a definition one on duals.

    Args:
        types: the types of the module.
        duals: the same for its declarations.
        names: definition -> its name on duals.
        back: the reference to the backpropagator.
    """

    def __init__(self, types: Types, duals: DualTypes, names: dict[str, str], back: Local):
        self.types, self.duals, self.names = types, duals, names
        self.back = LocalVar(back)
        self.locals: dict[Local, Expression] = {}
        self.order: list[str] = []

    # ------------------------------------------------------------ structure

    def function(self, f: Function) -> Function:
        """A function on duals."""
        params = []
        for p in f.params:
            params.append(Param(self.fresh(p.local), self.annotation(p.annotation), span=p.span))
        return Function(
            tuple(params),
            self.block(f.body),
            self.annotation(f.result),
            f.type_params,
            tuple((n, v) for n, v in f.attributes if n != "Primitive"),
            span=f.span,
        )

    def fresh(self, local: Local) -> Local:
        new = Local(local.name, span=local.span)
        self.locals[local] = LocalVar(new)
        return new

    def annotation(self, t: TypeExpr | None) -> TypeExpr | None:
        return None if t is None else self.duals.type(t)

    def block(self, block: Expression) -> Expression:
        """A block on duals."""
        out: list[Statement] = []
        for s in statements(block):
            if isinstance(s.value, Function):
                local = self.fresh(s.local)
                value: Expression = self.function(s.value)
            else:
                value = self.operation(s.value, out)
                local = self.fresh(s.local)
            annotation = self.annotation(s.annotation) if isinstance(s, Let) else None
            out.append(Let(local, value, annotation, span=s.span))
        return body(out, self.operation(result(block), out), block.span)

    def operation(self, op: Expression, out: list[Statement]) -> Expression:
        """An operation on duals."""
        match op:
            case Function():
                return self.function(op)
            case CallExpr(callee=OperatorName()):
                return self.operator(
                    op,
                    tuple(self.atom(a, out) for a in op.args),
                    [self.types.of(a) for a in op.args],
                    self.types.of(op),
                    out,
                )
            case CallExpr(callee=ConstructorName() as callee):
                args = tuple(self.atom(a, out) for a in op.args)
                return CallExpr(self.constructor(callee), args, span=op.span)
            case CallExpr(callee=GlobalVar(name=name)):
                args = tuple(self.atom(a, out) for a in op.args)
                return CallExpr(GlobalVar(self.definition(name), span=op.span), (*args, self.back), span=op.span)
            case CallExpr():
                args = tuple(self.atom(a, out) for a in op.args)
                return CallExpr(self.atom(op.callee, out), args, span=op.span)
            case MatchExpr():
                arms = tuple(Arm(self.pattern(a.pattern), self.block(a.body), span=a.span) for a in op.arms)
                return replace(op, value=self.atom(op.value, out), arms=arms)
        if is_atom(op):
            return self.atom(op, out)
        op = with_operands(op, tuple(self.atom(x, out) for x in operands(op)))
        return with_scopes(op, tuple(map(self.block, scopes(op)))) if scopes(op) else op

    def definition(self, name: str) -> str:
        """The name of a definition on duals, which is asked for."""
        if name not in self.names:
            self.names[name] = f"{name}_dual"
        return self.names[name]

    def constructor(self, c: ConstructorName) -> ConstructorName:
        return replace(c, name=self.duals.constructors.get(c.name, c.name))

    def pattern(self, p: PatternExpr) -> PatternExpr:
        match p:
            case VariablePattern():
                return replace(p, local=self.fresh(p.local), annotation=self.annotation(p.annotation))
            case ConstructorPattern():
                name = self.duals.constructors.get(p.constructor, p.constructor)
                return replace(p, constructor=name, fields=tuple(map(self.pattern, p.fields)))
            case TuplePattern():
                return replace(p, fields=tuple(map(self.pattern, p.fields)))
        return p

    def atom(self, x: Expression, out: list[Statement]) -> Expression:
        """An atom as a dual."""
        match x:
            case LocalVar():
                return self.locals[x.local]
            case Literal() | TensorConstant():
                return self.dual(x, out) if is_active(self.types.dtype(x)) else x
            case ConstructorName():
                return self.constructor(x)
            case GlobalVar():
                arrow = self.arrow(x)
                params = [Param(Local("x")) for _ in arrow.params]
                call = CallExpr(GlobalVar(self.definition(x.name)), (*(LocalVar(p.local) for p in params), self.back))
                return _bound(Function(tuple(params), call, span=x.span), out)
            case OperatorName():
                arrow = self.arrow(x)
                params = [Param(Local("x")) for _ in arrow.params]
                inner: list[Statement] = []
                args = tuple(LocalVar(p.local) for p in params)
                made = self.operator(CallExpr(x, args, span=x.span), args, list(arrow.params), arrow.result, inner)
                return _bound(Function(tuple(params), body(inner, made), span=x.span), out)
        return x

    def arrow(self, x: Expression) -> ArrowTerm:
        """The type of a function.

        Raises:
            TypeError_: it is not known.
        """
        t = prune(self.types.of(x))
        if not isinstance(t, ArrowTerm):
            raise TypeError_("Gradient: the type of this function is not known here", loc(x.span))
        return t

    # ------------------------------------------------------------ operators

    def dual(self, value: Expression, out: list[Statement]) -> Expression:
        """A pair of a value and a new reference to its cotangent."""
        zero = _bound(apply("zeros_like", value), out)
        return _bound(TupleExpr((value, _bound(RefNew(zero), out))), out)

    def primal(self, x: Expression, t: Any, out: list[Statement]) -> Expression:
        """The value of a dual of a type."""
        t = prune(t)
        if isinstance(t, TupleTerm):
            parts = (_bound(Projection(x, k), out) for k in range(len(t.elems)))
            return _bound(TupleExpr(tuple(self.primal(p, e, out) for p, e in zip(parts, t.elems, strict=True))), out)
        return _bound(Projection(x, 0), out) if is_active(_dtype(t)) else x

    def with_cotangents(self, value: Expression, t: Any, out: list[Statement]) -> Expression:
        """A computed value of a type as a dual."""
        t = prune(t)
        if isinstance(t, TupleTerm):
            parts = (_bound(Projection(value, k), out) for k in range(len(t.elems)))
            return _bound(
                TupleExpr(tuple(self.with_cotangents(p, e, out) for p, e in zip(parts, t.elems, strict=True))), out
            )
        return self.dual(value, out) if is_active(_dtype(t)) else value

    def cotangent(self, x: Expression, primal: Expression, t: Any, out: list[Statement]) -> Expression:
        """What the cotangent of a dual is by now, structured as its value; zero for what has none."""
        t = prune(t)
        if isinstance(t, TupleTerm):
            fields = []
            for k, e in enumerate(t.elems):
                part, value = _bound(Projection(x, k), out), _bound(Projection(primal, k), out)
                fields.append(self.cotangent(part, value, e, out))
            return _bound(TupleExpr(tuple(fields)), out)
        if is_active(_dtype(t)):
            return _bound(RefRead(_bound(Projection(x, 1), out)), out)
        return _bound(apply("zeros_like", primal), out)

    def accumulate(self, x: Expression, t: Any, more: Expression, out: list[Statement]) -> None:
        """Add to the cotangent of a dual."""
        t = prune(t)
        if isinstance(t, TupleTerm):
            for k, e in enumerate(t.elems):
                self.accumulate(_bound(Projection(x, k), out), e, _bound(Projection(more, k), out), out)
        elif is_active(_dtype(t)):
            ref = _bound(Projection(x, 1), out)
            total = _bound(apply("add", _bound(RefRead(ref), out), more), out)
            out.append(Let(Local("_"), RefWrite(ref, total)))

    def operator(
        self, op: CallExpr, args: tuple[Expression, ...], types: list[Any], t: Any, out: list[Statement]
    ) -> Expression:
        """An application of an operator to duals."""
        name = operator_of(op)
        assert name is not None
        # A number has no cotangent that anybody could read.
        constants = [isinstance(a, Literal | TensorConstant) for a in op.args]
        primals = [
            a if constant else self.primal(x, s, out)
            for a, constant, x, s in zip(op.args, constants, args, types, strict=True)
        ]
        value = _bound(replace(op, args=tuple(primals)), out)
        active = [not constant and _holds_active(s) for constant, s in zip(constants, types, strict=True)]
        if not _holds_active(t):
            return value
        dual = self.with_cotangents(value, t, out)
        if name in NOT_DIFFERENTIABLE or not any(active):
            return dual
        before = _bound(RefRead(self.back), out)
        inner: list[Statement] = []
        d = self.cotangent(dual, value, t, inner)
        rule = RULES.get(name)
        found = rule(op, tuple(primals), value, d) if rule is not None else None
        if found is None:
            derived = CallExpr(OperatorName(f"grad.{name}", span=op.span), (*primals, d), op.attributes, span=op.span)
            whole = _bound(derived, inner)
            found = tuple(Projection(whole, k) for k in range(len(primals)))
        for x, s, is_one, more in zip(args, types, active, found, strict=True):
            if is_one and more is not None:
                self.accumulate(x, s, _flat(more, inner), inner)
        back = _bound(Function((), body(inner, CallExpr(before, ())), span=op.span), out)
        out.append(Let(Local("_"), RefWrite(self.back, back)))
        return dual


def _dtype(t: Any) -> Any:
    t = prune(t)
    return prune(t.dtype) if isinstance(t, TensorTerm) else None


def _holds_active(t: Any) -> bool:
    t = prune(t)
    return any(map(_holds_active, t.elems)) if isinstance(t, TupleTerm) else is_active(_dtype(t))


def _bound(value: Expression, out: list[Statement]) -> Expression:
    if is_atom(value):
        return value
    local = Local("t", span=value.span)
    out.append(Let(local, value, span=value.span))
    return LocalVar(local, span=value.span)


def _flat(e: Expression, out: list[Statement]) -> Expression:
    """A small expression as an atom."""
    if is_atom(e):
        return e
    if isinstance(e, CallExpr):
        e = replace(e, args=tuple(_flat(a, out) for a in e.args))
    return _bound(e, out)
