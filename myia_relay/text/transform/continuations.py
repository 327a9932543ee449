"""Conversion to continuation-passing style: a call is the last thing that its caller does.

    def @f(%n) { @g(%n) + 1 }
    =>  def @f_cps(%n, %k) { @g_cps(%n, fn (%t) { %k(%t + 1) }) }
        def @f(%n) { @f_cps(%n, fn (%r) { %r }) }

Every definition `@f` gets a worker `@f_cps` that takes what is to be done with its result, and calls its worker. Functions within
are converted too, and with them their types: fn (A) -> B becomes fn (A, fn (B) -> R) -> R, where R is the type of what the whole
computation gives, a type parameter of the worker. What calls no function stays in direct style (as in A. Appel, "Compiling with
continuations", 1992, for primitives); a branch in the middle of a block passes its result to a function for the rest, so no code is
duplicated. Functions of the outside that `@f` is given are wrapped.

A worker whose result holds functions has no wrapper: R would have to be two types. Such a definition keeps its body beside the
worker, and so does one whose arguments hold functions within data.

There is no such pass on typed graphs: they have loops in place of tail calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from ...utils.errors import TypeError_
from ..binders import renamed
from ..check.checked import Checked
from ..check.module import check
from ..operators import OPERATORS
from ..span import loc
from ..terms.terms import ArrowTerm, Rigid, children, prune
from ..tree import (
    Arm,
    Blank,
    CallExpr,
    ConstructorName,
    ConstructorPattern,
    Definition,
    Expression,
    Function,
    FunctionType,
    GlobalVar,
    IfExpr,
    Let,
    Local,
    LocalVar,
    MatchExpr,
    ModuleTree,
    OperatorName,
    Param,
    PatternExpr,
    RelationClause,
    Statement,
    TuplePattern,
    TypeDef,
    TypeExpr,
    TypeParam,
    TypeVar,
    VariablePattern,
    body,
)
from ..walk import bound_locals
from .common.normal import (
    Temporary,
    all_operations,
    is_atom,
    operands,
    result,
    scopes,
    statements,
    with_operands,
    with_scopes,
)
from .common.passes import TreePass
from .common.rewriting import is_marked
from .common.type_expressions import holds_functions, mapped_type


@dataclass(frozen=True)
class ToCPS(TreePass):
    """Gives each definition a worker in continuation-passing style."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with workers.

        Raises:
            TypeError_: a data type has functions in its fields, whose types would depend on who calls them.
        """
        for t in tree.types.values():
            fields = [f for c in t.constructors for f in c.fields] if isinstance(t, TypeDef) else []
            if any(map(holds_functions, fields)):
                message = f"ToCPS: the data type {t.name} has functions in its fields; make their type a type parameter"
                raise TypeError_(message, loc(t.span))
        checked = check(tree)
        taken = set(tree.definitions)
        workers = {}
        for name in tree.definitions:
            workers[name] = next(n for n in _numbered(f"{name}_cps") if n not in taken)
            taken.add(workers[name])
        found: dict[str, Definition] = {}
        for name, definition in tree.definitions.items():
            conversion = _Conversion(tree, workers, definition.function)
            found[workers[name]] = Definition(workers[name], conversion.worker(), span=definition.span)
            wrapper = conversion.wrapper(workers[name], checked, name)
            found[name] = definition if wrapper is None else replace(definition, function=wrapper)
        return tree.with_definitions(found)


def _numbered(name: str) -> Iterator[str]:
    yield name
    for n in count(1):
        yield f"{name}{n}"


class _Conversion:
    """Converts one definition.

    Attributes:
        answer: the parameter that stands for what the whole computation gives.
        kernels: local -> the number of arguments of the function marked `Primitive=1` that it is bound to, which calls nothing.
    """

    def __init__(self, tree: ModuleTree, workers: dict[str, str], function: Function):
        self.tree, self.workers, self.function = tree, workers, function
        taken = {p.name for p in function.type_params} | set(tree.types)
        self.answer = TypeParam(next(n for n in _numbered("R") if n not in taken))
        self.calls: dict[Expression, bool] = {}
        self.kernels: dict[Local, int] = {}

    # ------------------------------------------------------------ definitions

    def worker(self) -> Function:
        """The definition in continuation-passing style."""
        copy = _renewed(self.function)
        for local, op in all_operations(copy.body):
            if local is not None and isinstance(op, Function) and is_marked(op, "Primitive"):
                self.kernels[local] = len(op.params)
        declared = [p for p in copy.type_params if not p.implicit]
        implicit = [p for p in copy.type_params if p.implicit]
        return replace(self.converted(copy), type_params=(*declared, self.answer, *implicit))

    def wrapper(self, worker: str, checked: Checked, name: str) -> Function | None:
        """The definition that calls the worker; None where it cannot."""
        arrow = prune(checked.schemes[name].type)
        if not isinstance(arrow, ArrowTerm) or _has_functions(arrow.result):
            return None
        out: list[Statement] = []
        args: list[Expression] = []
        for p, t in zip(self.function.params, arrow.params, strict=True):
            t = prune(t)
            if isinstance(t, ArrowTerm) and not any(map(_has_functions, children(t))):
                args.append(_bound(Temporary(p.local.name), self.waiting(LocalVar(p.local), len(t.params)), out))
            elif _has_functions(t):
                return None
            else:
                args.append(LocalVar(p.local))
        local = Local("r")
        last = Function((Param(local),), LocalVar(local))
        args.append(_bound(Temporary("k"), last, out))
        return replace(self.function, body=body(out, CallExpr(GlobalVar(worker), tuple(args)), self.function.span))

    def waiting(self, f: Expression, arity: int) -> Function:
        """A function of the outside, which returns, as one that passes on its result."""
        params = [Param(Local("x")) for _ in range(arity)]
        k, r = Local("k"), Local("y")
        call = CallExpr(f, tuple(LocalVar(p.local) for p in params))
        return Function((*params, Param(k)), body([Let(r, call)], CallExpr(LocalVar(k), (LocalVar(r),))))

    # ------------------------------------------------------------ types

    def type(self, t: TypeExpr | None) -> TypeExpr | None:
        """A type with functions that pass on their results."""
        return None if t is None else mapped_type(t, self._function_type)

    def _function_type(self, t: TypeExpr) -> TypeExpr:
        if not isinstance(t, FunctionType):
            return t
        answer = TypeVar(self.answer)
        return replace(t, params=(*t.params, FunctionType((t.result,), answer)), result=answer, relations=())

    # ------------------------------------------------------------ functions and blocks

    def converted(self, f: Function) -> Function:
        """A function that passes on its result."""
        k = Local("k")
        params = tuple(replace(p, annotation=self.type(p.annotation)) for p in f.params)
        returned = self.type(f.result)
        known = returned is not None and not isinstance(returned, Blank)
        annotation = FunctionType((returned,), TypeVar(self.answer)) if known and returned is not None else None
        return replace(
            f,
            params=(*params, Param(k, annotation)),
            body=self.block(f.body, LocalVar(k)),
            result=TypeVar(self.answer) if known else None,
            relations=_spelled(f, [p.annotation for p in params], returned),
        )

    def block(self, block: Expression, k: Expression) -> Expression:
        """A block that passes its result on to `k`."""
        # What is done so far: the statements before each call, the call, and the parameter of the function for the rest.
        done: list[tuple[list[Statement], Statement]] = []
        out: list[Statement] = []
        for s in statements(block):
            if self.has_calls(s.value):
                done.append((out, s))
                out = []
            else:
                value = self.direct(s.value, out)
                if isinstance(s, Let):
                    s = replace(s, annotation=self.type(s.annotation))
                out.append(replace(s, value=value))
        rest = body(out, self.last(result(block), k, out), block.span)
        while done:
            out, s = done.pop()
            rest = body(out, self.step(s, rest, out), s.span)
        return rest

    def step(self, s: Statement, rest: Expression, out: list[Statement]) -> Expression:
        """The operation of a statement, which passes its result on to the rest of the block."""
        annotation = self.type(s.annotation) if isinstance(s, Let) else None
        function = Function((Param(s.local, annotation),), rest, span=s.span)
        return self.last(s.value, _bound(Temporary("k"), function, out), out)

    def last(self, op: Expression, k: Expression, out: list[Statement]) -> Expression:
        """The operation at the end of a block, which passes its result on to `k`."""
        if not self.has_calls(op):
            if scopes(op) and not isinstance(op, Function):
                return self.branches(op, k, out)
            return CallExpr(k, (_bound(Temporary("t"), self.direct(op, out), out),), span=op.span)
        if isinstance(op, CallExpr):
            args = tuple(self.value(a, out) for a in op.args)
            callee = self.value(op.callee, out)
            return replace(op, callee=callee, args=(*args, k), type_args=())
        return self.branches(op, k, out)

    def branches(self, op: Expression, k: Expression, out: list[Statement]) -> Expression:
        """A branch whose alternatives pass on their results."""
        op = with_operands(op, tuple(self.value(x, out) for x in operands(op)))
        if isinstance(op, MatchExpr):
            arms = tuple(Arm(self.pattern(a.pattern), self.block(a.body, k), span=a.span) for a in op.arms)
            return replace(op, arms=arms)
        assert isinstance(op, IfExpr)
        return replace(op, then=self.block(op.then, k), otherwise=self.block(op.otherwise, k))

    def direct(self, op: Expression, out: list[Statement]) -> Expression:
        """An operation that calls no function."""
        if isinstance(op, Function):
            return op if is_marked(op, "Primitive") else self.converted(op)
        if is_atom(op):
            return self.value(op, out)
        if isinstance(op, CallExpr):
            return replace(op, args=tuple(self.value(a, out) for a in op.args))
        op = with_operands(op, tuple(self.value(x, out) for x in operands(op)))
        if isinstance(op, MatchExpr):
            op = replace(op, arms=tuple(replace(a, pattern=self.pattern(a.pattern)) for a in op.arms))
        return with_scopes(op, tuple(map(self.direct_block, scopes(op)))) if scopes(op) else op

    def direct_block(self, block: Expression) -> Expression:
        """A block that calls no function."""
        out: list[Statement] = []
        for s in statements(block):
            value = self.direct(s.value, out)
            if isinstance(s, Let):
                s = replace(s, annotation=self.type(s.annotation))
            out.append(replace(s, value=value))
        return body(out, self.direct(result(block), out), block.span)

    def pattern(self, p: PatternExpr) -> PatternExpr:
        """A pattern with converted types."""
        match p:
            case VariablePattern():
                return replace(p, annotation=self.type(p.annotation))
            case ConstructorPattern() | TuplePattern():
                return replace(p, fields=tuple(map(self.pattern, p.fields)))
        return p

    def value(self, x: Expression, out: list[Statement]) -> Expression:
        """An atom as a value: a function passes on its result."""
        if isinstance(x, GlobalVar):
            return replace(x, name=self.workers[x.name])
        arity = None
        if isinstance(x, OperatorName):
            operator = OPERATORS[x.name]
            arity = len(operator.args) - operator.optional
        elif isinstance(x, ConstructorName):
            arity = len(self.tree.constructors[x.name][1].fields) or None
        elif isinstance(x, LocalVar) and x.local in self.kernels:
            arity = self.kernels[x.local]
        if arity is None:
            return x
        params = [Param(Local("x")) for _ in range(arity)]
        k, t = Local("k"), Temporary("t")
        call = CallExpr(x, tuple(LocalVar(p.local) for p in params), span=x.span)
        wrapped = Function(
            (*params, Param(k)), body([Let(t, call)], CallExpr(LocalVar(k), (LocalVar(t),))), span=x.span
        )
        return _bound(Temporary("f"), wrapped, out)

    def has_calls(self, op: Expression) -> bool:
        """Whether an operation calls functions itself, or in its branches."""
        if op not in self.calls:
            if isinstance(op, CallExpr):
                kernel = isinstance(op.callee, LocalVar) and op.callee.local in self.kernels
                self.calls[op] = not kernel and not isinstance(op.callee, OperatorName | ConstructorName)
            elif isinstance(op, Function):
                self.calls[op] = False
            else:
                self.calls[op] = any(
                    self.has_calls(inner)
                    for scope in scopes(op)
                    for inner in (*(s.value for s in statements(scope)), result(scope))
                )
        return self.calls[op]


def _bound(local: Local, value: Expression, out: list[Statement]) -> Expression:
    if is_atom(value):
        return value
    out.append(Let(local, value, span=value.span))
    return LocalVar(local, span=value.span)


def _renewed(function: Function) -> Function:
    """A copy of a definition with binders of its own; temporaries stay temporaries."""
    operations = [(None, function), *all_operations(function.body)]
    bound = [local for local, _ in operations if local is not None]
    bound += [local for _, op in operations if isinstance(op, Function | MatchExpr) for local in bound_locals(op)]
    params = {p: replace(p) for _, op in operations if isinstance(op, Function) for p in op.type_params}
    new = renamed(function, {local: replace(local) for local in bound}, params)
    assert isinstance(new, Function)
    return new


def _has_functions(t: object) -> bool:
    """Whether values of a type hold functions, or may."""
    t = prune(t)
    if isinstance(t, ArrowTerm):
        return True
    if isinstance(t, Rigid):
        return False
    return any(map(_has_functions, children(t))) if not isinstance(t, str | int) else False


def _spelled(f: Function, params: Sequence[TypeExpr | None], result: TypeExpr | None) -> tuple[RelationClause, ...]:
    """What is declared of the types of a function, with those that it stands for: its own result is another now."""
    types = (*params, result)
    known = tuple(t for t in types if t is not None and not isinstance(t, Blank))
    whole = known if len(known) == len(types) else None
    spelled = (c if c.args is not None else replace(c, args=whole) for c in f.relations)
    return tuple(c for c in spelled if c.args is not None)
