"""Types of functions and of `let`: what is a value is generalised, and only that (A. Wright, "Simple imperative polymorphism",
1995): `ref(..)` and calls are not.
"""

from __future__ import annotations

from typing import Any

from ...utils.errors import CompileError
from ...utils.trampoline import Steps
from ..span import Span, loc
from ..terms.solver import TypeRelation
from ..terms.terms import GENERIC, PolyTerm, Rigid, arrow, parameters, prune, unknowns
from ..terms.unify import replaced
from ..tree import (
    Blank,
    Body,
    ConstructorName,
    DataType,
    Expression,
    Function,
    FunctionType,
    GlobalVar,
    GraphBinding,
    Let,
    Literal,
    LocalVar,
    OperatorName,
    RefType,
    RelationClause,
    TupleExpr,
    TupleType,
    TypeExpr,
)
from .checked import Instance, Scheme
from .clashes import mismatch, result_of
from .general import as_general
from .schemes import generalise, instantiate
from .state import Inference, declared_relation, step

VALUES = (LocalVar, GlobalVar, OperatorName, ConstructorName)
"""Expressions whose evaluation does nothing: what a `let` binds to them is generalised."""


class FunctionHead:
    """What the head of a function says.

    Attributes:
        params: types of the parameters.
        result: the type of the result.
        own: the type parameters.
        relations: those behind `where`: name and types.
    """

    def __init__(self, inference: Inference, function: Function):
        level = inference.solver.level
        self.own = [inference.annotations.declare(p, level) for p in function.type_params]
        self.params = [inference.written(p.annotation) for p in function.params]
        self.result = inference.written(function.result)
        self.relations: list[tuple[str, tuple[Any, ...], Span | None]] = []
        for clause in function.relations:
            try:
                name, types = inference.annotations.relation(clause, (*self.params, self.result))
            except CompileError as error:
                inference.report(error)
                continue
            if name == "Identity":
                self._identify(inference, types, clause)
            else:
                self.relations.append((name, types, clause.span))

    def _identify(self, inference: Inference, types: tuple[Any, ...], clause: RelationClause) -> None:
        """Take types that are declared to be the same for the same: parameters become one."""
        first = types[0]
        for other in types[1:]:
            a, b = prune(first), prune(other)
            if isinstance(a, Rigid) and isinstance(b, Rigid) and a is not b and a.kind == b.kind and b in self.own:
                self.params = [replaced(t, {id(b): a}) for t in self.params]
                self.result = replaced(self.result, {id(b): a})
                self.own.remove(b)
                for param, rigid in inference.annotations.params.items():
                    if rigid is b:
                        inference.annotations.params[param] = a
                continue
            inference.must_be(
                other, first, lambda clash, t=other: mismatch(clash, t, first, "by Identity this is", loc(clause.span))
            )

    @property
    def type(self) -> Any:
        """The function's type."""
        return arrow(self.params, self.result)


def is_annotated(function: Function) -> bool:
    """Whether the head of a function says its whole type, so that it can be used at any instance before its body is known."""
    return _is_whole(function.result) and all(_is_whole(p.annotation) for p in function.params)


def _is_whole(written: TypeExpr | None) -> bool:
    match written:
        case None | Blank():
            return False
        case TupleType(fields=parts) | DataType(args=parts):
            return all(map(_is_whole, parts))
        case FunctionType():
            return all(map(_is_whole, (*written.params, written.result)))
        case RefType():
            return _is_whole(written.content)
    return True


def declared_scheme(signature: FunctionHead) -> Scheme:
    """The scheme of a function whose head says its whole type."""
    relations = [declared_relation(*r) for r in signature.relations]
    for relation in relations:
        relation.done = True
    declared = sum(not p.implicit for p in signature.own)
    return Scheme(signature.type, tuple(signature.own), relations, declared)


def inferred(inference: Inference, function: Function, signature: FunctionHead) -> Steps:
    """Infer the body of a function against its head; a step."""
    solver = inference.solver
    given = len(solver.given)
    for name, types, span in signature.relations:
        if next(parameters(types), None) is not None:
            solver.given.append((name, types))
        else:
            solver.add(declared_relation(name, types, span))
    for p, t in zip(function.params, signature.params, strict=True):
        inference.locals[p.local] = t
    wanted = prune(signature.result)
    if isinstance(wanted, PolyTerm):
        body = yield as_general(inference, function.body, wanted)
    else:
        body = yield inference.infer(function.body)

    def wrong(clash: Any) -> CompileError:
        error = mismatch(clash, body, signature.result, "the result is", loc(result_of(function.body).span))
        if function.result is not None and function.result.span is not None:
            error.notes.append((f"it is declared as {_shown(function.result)}", function.result.span.loc))
        return error

    inference.must_be(body, signature.result, wrong)
    del solver.given[given:]


def _shown(written: TypeExpr) -> str:
    return written.span.text if written.span is not None else "something else"


@step(Function)
def anonymous(inference: Inference, function: Function) -> Steps:
    """A function that is not bound by a `let`; one with type parameters is used at one instance here."""
    if not function.type_params and not function.relations:
        signature = FunctionHead(inference, function)
        yield inferred(inference, function, signature)
        return signature.type
    scheme = yield scheme_of(inference, function, None)
    t, images = instantiate(inference.solver, scheme, function.span)
    inference.instances[function] = Instance(scheme, images)
    return t


def scheme_of(inference: Inference, function: Function, let: Let | None) -> Steps:
    """The scheme of a function, which sees itself where a `let` binds it; a step."""
    inference.solver.enter()
    signature = FunctionHead(inference, function)
    if let is not None:
        if let.annotation is not None:
            _agree(inference, let, signature.type)
        known = declared_scheme(signature) if is_annotated(function) else signature.type
        inference.locals[let.local] = known
    yield inferred(inference, function, signature)
    inference.types[function] = signature.type
    pending = inference.solver.leave()
    return closed(inference, signature, pending, function.span)


def closed(inference: Inference, signature: FunctionHead, pending: list[TypeRelation], span: Span | None) -> Scheme:
    """The scheme of a function whose body is inferred."""
    params, relations = generalise(inference.solver, pending, [signature.type], signature.own, span)
    declared = sum(not p.implicit for p in signature.own)
    for p in signature.own:
        p.level = GENERIC
    given = declared_scheme(signature).relations if signature.own else []
    return Scheme(signature.type, tuple(params), [*given, *relations], declared)


@step(Body)
def bindings(inference: Inference, e: Body) -> Steps:
    """Statements and a result."""
    for s in e.statements:
        value = s.value
        if isinstance(s, Let):
            if (
                isinstance(value, Function)
                or isinstance(value, VALUES)
                or isinstance(value, TupleExpr)
                and _is_value(inference, value)
            ):
                yield _polymorphic(inference, s)
                continue
            annotation = s.annotation
        else:
            annotation = None
        t = inference.leaf(value)
        if t is None:
            t = yield inference.infer(value)
        if annotation is not None:
            t = _agree(inference, s, t)
        inference.locals[s.local] = t
    return (yield inference.infer(e.result))


def _agree(inference: Inference, s: Let | GraphBinding, t: Any) -> Any:
    """The type that the annotation of a `let` says, which the value's must be."""
    assert isinstance(s, Let)
    wanted = inference.written(s.annotation)
    inference.must_be(t, wanted, lambda clash: _misfit(s, clash, t, wanted))
    return wanted


def _misfit(s: Let, clash: Any, found: Any, wanted: Any) -> CompileError:
    """The error that a value is not of the type that its `let` declares."""
    error = mismatch(clash, found, wanted, f"the value of %{s.local.name} is", loc(result_of(s.value).span))
    if s.annotation is not None and s.annotation.span is not None:
        error.notes.append((f"it is declared as {_shown(s.annotation)}", s.annotation.span.loc))
    return error


def _is_value(inference: Inference, e: Expression) -> bool:
    """Whether an expression is a tuple of functions and names, of which one may be polymorphic."""
    stack: list[Expression] = [e]
    open_ = False
    while stack:
        top = stack.pop()
        if isinstance(top, TupleExpr):
            stack.extend(top.fields)
        elif isinstance(top, LocalVar):
            open_ = open_ or isinstance(inference.locals.get(top.local), Scheme)
        elif isinstance(top, Function | GlobalVar | OperatorName | ConstructorName):
            open_ = True
        elif not isinstance(top, Literal):
            return False
    return open_


def _polymorphic(inference: Inference, s: Let) -> Steps:
    """A `let` of a value."""
    value = s.value
    if isinstance(s.annotation, FunctionType) and (s.annotation.type_params or s.annotation.relations):
        wanted = inference.written(s.annotation)
        inference.locals[s.local] = wanted
        if isinstance(wanted, PolyTerm):
            found = yield as_general(inference, value, wanted)
            inference.must_be(found, wanted, lambda clash: _misfit(s, clash, found, wanted))
        else:
            yield inference.infer(value)
        return
    if isinstance(value, LocalVar):
        known = inference.locals.get(value.local)
        if known.__class__ is not Scheme and not isinstance(known, PolyTerm):
            t = inference.leaf(value)
            inference.locals[s.local] = t if s.annotation is None else _agree(inference, s, t)
            return
    if isinstance(value, Function):
        scheme = yield scheme_of(inference, value, s)
    else:
        inference.solver.enter()
        t = yield inference.infer(value)
        if s.annotation is not None:
            t = _agree(inference, s, t)
        pending = [r for r in inference.solver.leave() if not r.done]
        if pending and isinstance(value, TupleExpr):
            # A use of one part would leave the relations of the others open, so a tuple with some has one type.
            for x in unknowns(t, *((r.args, r.result) for r in pending)):
                x.level = min(x.level, inference.solver.level)
            inference.solver.pending[-1].extend(pending)
            inference.locals[s.local] = t
            return
        params, relations = generalise(inference.solver, pending, [t], (), value.span)
        scheme = Scheme(t, tuple(params), relations)
    if isinstance(scheme.type, PolyTerm) or scheme.is_plain:
        inference.locals[s.local] = scheme.type
    else:
        inference.locals[s.local] = scheme
