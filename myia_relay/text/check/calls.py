"""Types of applications: of functions, constructors and operators."""

from __future__ import annotations

from typing import Any

from ...utils.errors import CompileError, TypeError_
from ...utils.trampoline import Steps
from ..span import loc
from ..terms.show import show
from ..terms.terms import POISON, ArrowTerm, PolyTerm, Unknown, arrow, prune
from ..terms.unify import Clash
from ..tree import CallExpr, ConstructorName, Expression, GlobalVar, LocalVar, OperatorName
from .checked import Scheme
from .clashes import mismatch, result_of
from .general import as_general
from .state import Inference, relations_of, step


@step(CallExpr)
def call(inference: Inference, e: CallExpr) -> Steps:
    """An application."""
    callee = e.callee
    if isinstance(callee, OperatorName):
        return (yield _apply_operator(inference, e, callee))
    if e.attributes:
        name, _ = e.attributes[0]
        inference.report(TypeError_(f"only operators have attributes, and '{name}' is given here", loc(e.span)))
    if e.type_args:
        function = _with_type_args(inference, e, callee)
        if function is None:
            function = yield inference.infer(callee)
    else:
        function = inference.leaf(callee)
        if function is None:
            function = yield inference.infer(callee)
    function = prune(function)
    if function.__class__ is PolyTerm:
        function = inference.instance(callee, Scheme(function.body, function.params, relations_of(function)))
    params = function.params if isinstance(function, ArrowTerm) else ()
    args = []
    for k, a in enumerate(e.args):
        if k < len(params) and isinstance(wanted := prune(params[k]), PolyTerm):
            args.append((yield as_general(inference, a, wanted)))
            continue
        t = inference.leaf(a)
        args.append((yield inference.infer(a)) if t is None else t)
    return applied(inference, e, function, args)


def applied(inference: Inference, e: CallExpr, function: Any, args: list[Any]) -> Any:
    """The type of an application of a function of a type to arguments of types."""
    if function is POISON:
        return POISON
    if isinstance(function, Unknown):
        result = inference.solver.fresh()
        wanted = arrow(args, result)
        clash = inference.solver.unify(function, wanted)
        if clash is None:
            return result
        return inference.wrong(mismatch(clash, function, wanted, "this is called as", loc(e.callee.span)))
    shown = described(e.callee)
    if not isinstance(function, ArrowTerm):
        if isinstance(e.callee, ConstructorName) and not args:
            return function  # `Nil()`
        advice = f"; '{shown}' without parentheses is the value" if isinstance(e.callee, ConstructorName) else ""
        return inference.wrong(
            TypeError_(f"{shown} is {show(function)}, which is no function and cannot be called{advice}", loc(e.span))
        )
    if len(function.params) != len(args):
        return inference.wrong(_arity(inference, e, shown, function, len(args)))
    for k, (param, given, a) in enumerate(zip(function.params, args, e.args, strict=True)):
        clash = inference.solver.unify(given, param)
        if clash is not None:
            _wrong_argument(inference, clash, e, k, shown, param, given, a)
    return function.result


def _wrong_argument(
    inference: Inference, clash: Clash, e: CallExpr, k: int, shown: str, param, given, a: Expression
) -> None:
    which = f"argument {k + 1} of {shown}" if len(e.args) > 1 else f"the argument of {shown}"
    error = mismatch(clash, given, param, f"{which} is", loc(result_of(a).span or e.span))
    error.notes.extend(inference.origins((a,)))
    error.notes.extend(_declared(inference, e.callee, k))
    inference.report(error)


def _declared(inference: Inference, callee: Expression, k: int) -> list:
    """Where the parameter of a definition stands, as a note."""
    if isinstance(callee, GlobalVar) and callee.name in inference.module.definitions:
        params = inference.module.definitions[callee.name].function.params
        if k < len(params) and (span := params[k].span or params[k].local.span):
            return [("the parameter is here", span.loc)]
    return []


def _arity(inference: Inference, e: CallExpr, shown: str, function: ArrowTerm, given: int) -> CompileError:
    takes = len(function.params)
    note: list = []
    if isinstance(e.callee, GlobalVar) and (d := inference.module.definitions.get(e.callee.name)) and d.span:
        note = [(f"{shown} is defined here", (d.function.span or d.span).loc)]
    return TypeError_(
        f"{shown} takes {takes} argument{'' if takes == 1 else 's'} and is given {given}; it is {show(function)}",
        loc(e.span),
        *note,
    )


def _with_type_args(inference: Inference, e: CallExpr, callee: Expression) -> Any:
    """The type of a callee with type arguments; None where they make no sense, which is noted."""
    known: Any = None
    match callee:
        case GlobalVar():
            known = inference.schemes.get(callee.name)
        case LocalVar():
            known = inference.locals.get(callee.local)
        case ConstructorName():
            known = inference.constructors.get(callee.name)
    if isinstance(known, Unknown | ArrowTerm | PolyTerm):
        known = prune(known)
    if isinstance(known, PolyTerm):
        known = Scheme(known.body, known.params, relations_of(known), len(known.params))
    if known is None:
        return None
    declared = known.declared if isinstance(known, Scheme) else 0
    if declared != len(e.type_args):
        has = f"{declared} type parameter{'' if declared == 1 else 's'}"
        inference.report(
            TypeError_(
                f"{described(callee)} declares {has}, and {len(e.type_args)} type argument"
                f"{' is' if len(e.type_args) == 1 else 's are'} given",
                loc(e.span),
            )
        )
        return None
    try:
        given = tuple(
            inference.annotations.of_kind(t, p.kind) for t, p in zip(e.type_args, known.params[:declared], strict=True)
        )
    except CompileError as error:
        inference.report(error)
        return None
    out = inference.types[callee] = inference.instance(callee, known, given)
    return out


def _apply_operator(inference: Inference, e: CallExpr, callee: OperatorName) -> Steps:
    op = inference.operator(callee)
    args = []
    for a in e.args:
        t = inference.leaf(a)
        args.append((yield inference.infer(a)) if t is None else t)
    if op is None:
        return POISON
    if e.type_args:
        inference.report(TypeError_(f"the operator {op.name} takes no type arguments", loc(e.span)))
    if not op.takes(len(args)):
        return inference.wrong(TypeError_(f"{op.name} takes {op.arity}, and is given {len(args)}", loc(e.span)))
    try:
        attrs = inference.attributes[e] = op.complete(e.attributes)
    except CompileError as error:
        return inference.wrong(error.at(loc(e.span)))
    result = Unknown("Type", inference.solver.level)
    inference.relate(op, tuple(args), result, attrs, e)
    inference.types[callee] = arrow(args, result)
    return prune(result)


def described(callee: Expression) -> str:
    """What errors call a function."""
    match callee:
        case GlobalVar():
            return f"@{callee.name}"
        case LocalVar():
            return f"%{callee.local.name}"
        case ConstructorName() | OperatorName():
            return callee.name
    return "this function"
