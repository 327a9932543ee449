"""Gradients: `@main` returns its value, and the gradients by its parameters.

    def @main(%x: float32) -> float32 { %x * %x }   =>   def @main(%x: float32) { (%x * %x, (%x + %x,)) }

Reverse mode by references (`duals.py`). The module is partially evaluated before, so that polymorphic helpers are
specialised, and afterwards, so that the references and closures of straight-line code are gone: what is left are those of
control that depends on run-time values, which backpropagates through closures in references at run time. A result of
several floats is differentiated as the sum of all of them. `order=n` differentiates n times: the gradient by a parameter is
that of the sum of the entries of the gradient of order n - 1 by the same parameter.

`relay.grad(module["f"])` differentiates the typed graph (`ad`), which is specialised, has tapes for loops and is not
printed; this pass gives well-typed text of the same derivatives, which other passes can take.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ....utils.errors import GradError, ValueError_
from ...check.module import check
from ...module import Module
from ...span import loc
from ...terms.terms import ArrowTerm, TensorTerm, TupleTerm, prune
from ...tree import (
    CallExpr,
    Definition,
    Expression,
    Function,
    GlobalVar,
    Let,
    Local,
    LocalVar,
    ModuleTree,
    Param,
    Projection,
    RefNew,
    RefRead,
    RefType,
    Statement,
    TupleExpr,
    apply,
    body,
)
from ...walk import rewritten, walk
from ..common.normal import normalised
from ..common.passes import TreePass, finished
from ..common.types_known import Types
from ..dead_code import DeadCodeElimination
from ..partial import PartialEvaluate
from ..simplification import SimplifyExpr
from .duals import BACK, Duals, DualTypes, is_active


@dataclass(frozen=True)
class Gradient(TreePass):
    """Makes `@main` return its value and its gradients: `(value, (gradients..))`.

    Attributes:
        order: how often it is differentiated.
    """

    order: int = 1

    def __post_init__(self):
        if not isinstance(self.order, int) or self.order < 1:
            raise ValueError_(f"Gradient: order={self.order!r} is not a positive number")

    def __call__(self, module: Module) -> Module:
        """The module with derivatives in `@main`.

        Raises:
            GradError: there is no `@main`, or it has a parameter or a result that cannot be differentiated.
            InternalError: the result is ill-typed (with MYIA_RELAY_DEBUG=1).
        """
        if "main" not in module.tree.definitions:
            raise GradError("Gradient differentiates @main, and the module has none")
        value = _unused("main_value", module.tree)
        tree = _renamed(module.placed, "main", value)
        main = tree.definitions[value].function
        if self.order == 1:
            new = differentiated(tree, value, "main", None)
        else:
            new, found = tree, []
            for k in range(len(main.params)):
                source = value
                for n in range(1, self.order + 1):
                    target = _unused(f"main_gradient{n}_{k}", new)
                    new = differentiated(new, source, target, k)
                    source = target
                found.append(source)
            new = _with(new, "main", _gathered(main, value, found))
            new = simplified(new)
        kept = _kept(tree, new, value)
        # Definitions that the module had stay as they were.
        definitions = {n: (tree if n in tree.definitions else new).definitions[n] for n in kept}
        order = [*(n for n in module.tree.definitions if n in definitions), *definitions]
        return finished(self, ModuleTree(new.types, {n: definitions[n] for n in dict.fromkeys(order)}))


def simplified(tree: ModuleTree) -> ModuleTree:
    """A module partially evaluated, and without what that leaves over."""
    module = Module(tree)
    for step in (PartialEvaluate(), SimplifyExpr(), DeadCodeElimination()):
        module = step(module)
    return module.placed


def differentiated(tree: ModuleTree, name: str, target: str, wrt: int | None) -> ModuleTree:
    """A module with a definition more.

    Args:
        tree: placed.
        name: of the definition that is differentiated.
        target: of the new one.
        wrt: the parameter whose gradient it returns; None for the value and the gradients by all.

    Raises:
        GradError: a parameter or the result cannot be differentiated.
    """
    tree = simplified(tree)
    tree = tree.mapped(lambda n, function: normalised(function))
    checked = check(tree)
    types = Types(checked)
    duals = DualTypes(tree)
    names: dict[str, str] = {}
    made: dict[str, Definition] = {}
    function = tree.definitions[name].function
    arrow = prune(checked.schemes[name].type)
    assert isinstance(arrow, ArrowTerm)
    driver = Duals(types, duals, names, Local("bp"))
    made[target] = Definition(target, _driver(driver, function, arrow, name, wrt), span=function.span)
    waiting = list(names)
    while waiting:
        source = waiting.pop()
        back = Local("bp")
        worker = Duals(types, duals, names, back)
        known = set(names)
        dual = worker.function(tree.definitions[source].function)
        dual = replace(dual, params=(*dual.params, Param(back, RefType(BACK))))
        names[source] = names[source] if names[source] not in tree.definitions else _unused(names[source], tree)
        made[names[source]] = Definition(names[source], dual, span=dual.span)
        waiting += [n for n in names if n not in known]
    types_with_duals = {**tree.types, **duals.defs}
    return simplified(ModuleTree(types_with_duals, {**tree.definitions, **made}))


def _driver(driver: Duals, function: Function, arrow: ArrowTerm, name: str, wrt: int | None) -> Function:
    """The definition that makes duals of its arguments, runs both passes, and returns cotangents.

    Raises:
        GradError: a parameter or the result cannot be differentiated.
    """
    out: list[Statement] = []
    params = [Param(Local(p.local.name, span=p.span), p.annotation, span=p.span) for p in function.params]
    for p, t in zip(function.params, arrow.params, strict=True):
        _require(t, f"the parameter %{p.local.name}", p)
    _require(arrow.result, "the result", function)
    if not _has_float(arrow.result):
        raise GradError("Gradient: the result of @main has no float in it", loc(function.span))
    assert isinstance(driver.back, LocalVar)
    nothing = Function((), TupleExpr(()))
    first = Local("t")
    out.append(Let(first, nothing))
    out.append(Let(driver.back.local, RefNew(LocalVar(first)), RefType(BACK)))
    args = [driver.with_cotangents(LocalVar(p.local), t, out) for p, t in zip(params, arrow.params, strict=True)]
    y = Local("y")
    out.append(Let(y, CallExpr(GlobalVar(driver.definition(name)), (*args, driver.back))))
    value = driver.primal(LocalVar(y), arrow.result, out)
    _seed(driver, LocalVar(y), arrow.result, out)
    back = Local("back")
    out.append(Let(back, RefRead(driver.back)))
    out.append(Let(Local("_"), CallExpr(LocalVar(back), ())))
    chosen = range(len(params)) if wrt is None else (wrt,)
    gradients = [driver.cotangent(args[k], LocalVar(params[k].local), arrow.params[k], out) for k in chosen]
    if wrt is not None:
        last: Expression = gradients[0]
    else:
        grads = Local("gradients")
        out.append(Let(grads, TupleExpr(tuple(gradients))))
        last = TupleExpr((value, LocalVar(grads)))
    return Function(tuple(params), body(out, last), None, function.type_params, function.attributes, span=function.span)


def _seed(driver: Duals, y: Expression, t: Any, out: list[Statement]) -> None:
    """Let the cotangents of a result be one."""
    t = prune(t)
    if isinstance(t, TupleTerm):
        for k, e in enumerate(t.elems):
            part = Local("t")
            out.append(Let(part, Projection(y, k)))
            _seed(driver, LocalVar(part), e, out)
    elif _has_float(t):
        value, one = Local("t"), Local("t")
        out.append(Let(value, Projection(y, 0)))
        out.append(Let(one, apply("ones_like", LocalVar(value))))
        driver.accumulate(y, t, LocalVar(one), out)


def _has_float(t: Any) -> bool:
    t = prune(t)
    if isinstance(t, TupleTerm):
        return any(map(_has_float, t.elems))
    return isinstance(t, TensorTerm) and is_active(prune(t.dtype))


def _require(t: Any, what: str, node: Any) -> None:
    """Demand that a type can be differentiated by.

    Raises:
        GradError: it cannot.
    """
    t = prune(t)
    if isinstance(t, TupleTerm):
        for e in t.elems:
            _require(e, what, node)
    elif not isinstance(t, TensorTerm):
        raise GradError(
            f"Gradient: {what} of @main is neither a tensor nor a tuple of tensors; "
            "relay.grad(module[..]) differentiates by data types",
            loc(node.span),
        )


def _gathered(main: Function, value: str, gradients: list[str]) -> Function:
    """The definition that calls the others."""
    params = [Param(Local(p.local.name, span=p.span), p.annotation, span=p.span) for p in main.params]
    args = tuple(LocalVar(p.local) for p in params)
    out: list[Statement] = []
    results = []
    for name in (value, *gradients):
        local = Local("t")
        out.append(Let(local, CallExpr(GlobalVar(name), args)))
        results.append(LocalVar(local))
    grads = Local("gradients")
    out.append(Let(grads, TupleExpr(tuple(results[1:]))))
    last = TupleExpr((results[0], LocalVar(grads)))
    return Function(tuple(params), body(out, last), None, main.type_params, main.attributes, span=main.span)


def _with(tree: ModuleTree, name: str, function: Function) -> ModuleTree:
    return tree.with_definitions({**tree.definitions, name: Definition(name, function, span=function.span)})


def _unused(name: str, tree: ModuleTree) -> str:
    names = (f"{name}{n or ''}" for n in range(len(tree.definitions) + 1))
    return next(n for n in names if n not in tree.definitions)


def _renamed(tree: ModuleTree, old: str, new: str) -> ModuleTree:
    """A module with a definition under another name."""

    def change(e: Expression) -> Expression:
        return replace(e, name=new) if isinstance(e, GlobalVar) and e.name == old else e

    found = {}
    for name, d in tree.definitions.items():
        function = rewritten(d.function, change)
        assert isinstance(function, Function)
        name = new if name == old else name
        found[name] = replace(d, name=name, function=function)
    return tree.with_definitions(found)


def _kept(before: ModuleTree, after: ModuleTree, value: str) -> list[str]:
    """The definitions that the module had, and those that they and `@main` need."""
    found: dict[str, None] = {}
    stack = ["main", *(n for n in before.definitions if n != value)]
    while stack:
        name = stack.pop()
        if name not in found:
            found[name] = None
            source = before if name in before.definitions else after
            stack.extend(e.name for e in walk(source.definitions[name].function) if isinstance(e, GlobalVar))
    return [n for n in after.definitions if n in found]
