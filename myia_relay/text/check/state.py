"""What is known while the types of a module are inferred, and the steps of inference.

Inference is that of Hindley and Milner with levels. Expressions are taken in steps (`utils.trampoline`), so neither the depth
of operands nor the number of bindings is the depth of Python's stack. The step of a class of expressions is registered by
`step`: those of applications in `calls.py`, of functions and `let` in `functions.py`, of all others in `expressions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...utils.errors import CompileError, NameError_, nearest
from ...utils.trampoline import Steps
from ..errors import Errors
from ..operators.declare import RelayOperator, find
from ..operators.rules import broadcast
from ..span import Span, loc
from ..terms.show import show
from ..terms.solver import Facts, Solver, TypeRelation
from ..terms.terms import POISON, PolyTerm, arrow, prune, scalar, tensor
from ..terms.unify import Clash
from ..tree import (
    Arm,
    Attribute,
    CallExpr,
    ConstructorName,
    Expression,
    GlobalVar,
    Literal,
    Local,
    LocalVar,
    ModuleTree,
    OperatorName,
    TensorConstant,
)
from .annotations import Annotations
from .checked import Instance, Scheme
from .schemes import instantiate

BROADCAST = broadcast()
"""The relation behind `where Broadcast`: of any dtype."""

STEPS: dict[type, Callable[[Inference, Any], Steps]] = {}
"""A class of expressions -> the step that infers the type of one."""


def step(cls: type) -> Callable[[Callable[[Any, Any], Steps]], Callable[[Any, Any], Steps]]:
    """Register the step for a class of expressions."""

    def register(function: Callable[[Any, Any], Steps]) -> Callable[[Any, Any], Steps]:
        STEPS[cls] = function
        return function

    return register


class Inference:
    """What is known while a module is checked.

    Attributes:
        module: the module.
        errors: what is wrong so far.
        types, locals, instances, attributes, redundant: see `Checked`.
        schemes: of the definitions, as far as they are known; a definition that is being inferred has its one type.
        constructors: schemes of the constructors.
    """

    def __init__(self, module: ModuleTree):
        self.module = module
        self.errors = Errors()
        self.solver = Solver(self.report)
        self.annotations = Annotations(module, self.solver)
        self.types: dict[Expression, Any] = {}
        self.locals: dict[Local, Any] = {}  # a scheme, or the type where it stands for one alone
        self.schemes: dict[str, Any] = {}
        self.constructors: dict[str, Scheme] = {}
        self.instances: dict[Expression, Instance] = {}
        self.redundant: list[Arm] = []
        self.attributes: dict[Any, dict[str, Attribute]] = {}

    def report(self, error: CompileError) -> None:
        """Note an error."""
        self.errors.append(error)

    def wrong(self, error: CompileError) -> Any:
        """Note an error; the type of what is wrong."""
        self.errors.append(error)
        return POISON

    def written(self, annotation: Any) -> Any:
        """A written type, or one that agrees with everything where it is wrong."""
        try:
            return self.annotations.term(annotation)
        except CompileError as error:
            return self.wrong(error)

    def must_be(self, found: Any, wanted: Any, error: Callable[[Clash], CompileError]) -> bool:
        """Demand that two types are equal; note an error where they cannot be."""
        clash = self.solver.unify(found, wanted)
        if clash is not None:
            self.errors.append(error(clash))
        return clash is None

    # Expressions.

    def leaf(self, e: Expression) -> Any:
        """The type of an expression without parts; None of any other."""
        match e:
            case LocalVar():
                out = self._use(e, self.locals.get(e.local, POISON))
            case Literal():
                out = scalar(e.dtype)
            case GlobalVar():
                out = self._global(e)
            case ConstructorName():
                out = self._constructor(e)
            case OperatorName():
                out = self._operator_value(e)
            case TensorConstant():
                out = tensor(e.value.shape, e.value.dtype.name)
            case _:
                return None
        self.types[e] = out
        return out

    def infer(self, e: Expression) -> Steps:
        """The type of an expression; a step."""
        out = self.leaf(e)
        if out is None:
            out = yield STEPS[e.__class__](self, e)
            self.types[e] = out
        return out

    def _use(self, e: Expression, known: Any) -> Any:
        """The type of a use of something that is known by a scheme or a type."""
        if known.__class__ is Scheme:
            return self.instance(e, known)
        known = prune(known)
        if known.__class__ is PolyTerm:
            return self.instance(e, Scheme(known.body, known.params, relations_of(known)))
        return known

    def instance(self, e: Expression, scheme: Scheme, given: tuple[Any, ...] = ()) -> Any:
        t, images = instantiate(self.solver, scheme, e.span, given)
        self.instances[e] = Instance(scheme, images)
        return t

    def _global(self, e: GlobalVar) -> Any:
        known = self.schemes.get(e.name)
        if known is None:
            advice = nearest(e.name, self.module.definitions)
            return self.wrong(NameError_(f"there is no function '@{e.name}' in the module{advice}", loc(e.span)))
        return self._use(e, known)

    def _constructor(self, e: ConstructorName) -> Any:
        known = self.constructors.get(e.name)
        if known is None:
            advice = nearest(e.name, self.constructors)
            return self.wrong(NameError_(f"there is no constructor '{e.name}'{advice}", loc(e.span)))
        return self._use(e, known)

    def operator(self, e: OperatorName) -> RelayOperator | None:
        try:
            return find(e.name)
        except NameError_ as error:
            self.report(error.at(loc(e.span)))
            return None

    def _operator_value(self, e: OperatorName) -> Any:
        """An operator as a function: of its arguments that cannot be left out, with the defaults of its attributes."""
        op = self.operator(e)
        if op is None:
            return POISON
        try:
            self.attributes[e] = op.complete(())
        except CompileError as error:
            return self.wrong(error.at(loc(e.span)))
        params = tuple(self.solver.fresh() for _ in range(len(op.args) - op.optional))
        result = self.solver.fresh()
        self.relate(op, params, result, self.attributes[e], e)
        return arrow(params, result)

    def relate(self, op: RelayOperator, args: tuple[Any, ...], result: Any, attrs: Any, e: Expression) -> None:
        notes = (lambda: self.origins(e.args)) if isinstance(e, CallExpr) else None
        names = op.args if not op.variadic else ()
        relation = TypeRelation(op.name, op.relation, args, result, attrs, e.span, names, op.family or op.name, notes)
        if op.reads_constants and isinstance(e, CallExpr):
            relation.constants = tuple(_constant(a) for a in e.args)
        self.solver.add(relation)

    def origins(self, parts: tuple[Expression, ...]) -> list:
        """Where the types of variables among some expressions come from, as notes of an error."""
        out: list = []
        seen: set[Local] = set()
        for e in parts:
            if isinstance(e, LocalVar) and e.local.span is not None and e in self.types and e.local not in seen:
                seen.add(e.local)
                out.append((f"%{e.local.name} is {show(self.types[e])}; it is bound here", e.local.span.loc))
        return out


def _constant(e: Expression) -> Any:
    """The value of a literal or of a constant tensor; None of any other expression."""
    if isinstance(e, Literal | TensorConstant):
        return e.value
    return None


def relations_of(poly: PolyTerm) -> list[TypeRelation]:
    """The relations that a polymorphic function type declares."""
    return [declared_relation(name, types, None) for name, types in poly.relations]


def declared_relation(name: str, types: tuple[Any, ...], span: Span | None) -> TypeRelation:
    """A relation that stands behind `where`, over types of arguments and of the result."""
    rule = _identity if name == "Identity" else BROADCAST
    return TypeRelation(name, rule, types[:-1], types[-1], None, span, (), name)


def _identity(facts: Facts) -> None:
    for k in range(len(facts.relation.args)):
        facts.gives(facts.relation.args[k])
