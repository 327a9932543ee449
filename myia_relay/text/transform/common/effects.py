"""What evaluating an expression may do besides giving a value.

An `Effect` is a set of flags (reads, writes, makes a reference, fails) and of parameters: "and whatever calling what this
parameter holds may do". A value has a *latent* effect, that of calling any function that is reachable from it. A call has
the effect of the callee, with the latent effects of its arguments in place of its parameters, so `map(fn (x) { x * x }, l)`
is pure although `map` calls what it is given. This is a type and effect system (J. Lucassen and D. Gifford, "Polymorphic
effect systems", POPL 1988) computed by iteration: effects of recursive functions begin as empty and grow to a fixpoint.

Not to terminate is no effect here: what nobody needs may be dropped though it would run for ever. What a reference holds is
unknown, and so are the functions that are read from it.

Input: a module in A-normal form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...tree import (
    CallExpr,
    ConstructorName,
    Expression,
    Function,
    GlobalVar,
    IfExpr,
    Let,
    Local,
    LocalVar,
    MatchExpr,
    ModuleTree,
    OperatorName,
    Projection,
    RefNew,
    RefRead,
    RefWrite,
    TupleExpr,
)
from .normal import result, statements
from .rewriting import pattern_locals

READ, WRITE, NEW, FAIL = 1, 2, 4, 8


class Effect(NamedTuple):
    """What may happen: flags, and parameters whose values may be called."""

    flags: int = 0
    params: frozenset[Local] = frozenset()

    def __or__(self, other: Effect) -> Effect:  # type: ignore[override]
        if other.flags | self.flags == self.flags and other.params <= self.params:
            return self
        return Effect(self.flags | other.flags, self.params | other.params)

    @property
    def removable(self) -> bool:
        """Whether what has this effect may be dropped where its value is not needed."""
        return not self.flags & (WRITE | FAIL) and not self.params

    @property
    def mergeable(self) -> bool:
        """Whether two evaluations, one of which always follows the other, may be one."""
        return not self.flags & (READ | WRITE | NEW) and not self.params

    @property
    def writes(self) -> bool:
        """Whether references may hold something else afterwards."""
        return bool(self.flags & WRITE or self.params)


PURE = Effect()
UNKNOWN = Effect(READ | WRITE | NEW | FAIL)


@dataclass(frozen=True)
class Summary:
    """A function: the effect of calling it, and the latent effect of its result."""

    effect: Effect = PURE
    result: Effect = PURE


class EffectAnalysis:
    """The effects of a module in A-normal form.

    Args:
        module: the module.
        operator: name -> the effect of applying the operator.
        first_order: whether values of a local hold no functions and no references.
    """

    def __init__(self, module: ModuleTree, operator: Callable[[str], Effect], first_order: Callable[[Local], bool]):
        self.operator, self.first_order = operator, first_order
        self.functions: Mapping[str, Function] = {n: d.function for n, d in module.definitions.items()}
        self.summaries: dict[Function, Summary] = {}
        self.latent: dict[Local, Effect] = {}
        self.known: dict[Local, Function] = {}
        self._effects: dict[Expression, Effect] = {}
        self._changed = True
        while self._changed:
            self._changed = False
            for function in self.functions.values():
                self._function(function)

    def of(self, operation: Expression) -> Effect:
        """The effect of an operation of the module."""
        return self._effects.get(operation, UNKNOWN)

    def copy(self, old: Expression, new: Expression) -> None:
        """Let an operation that stands in another's place have its effect."""
        self._effects[new] = self.of(old)

    def of_callee(self, callee: Expression) -> Effect:
        """The effect of calling a function with arguments that hold no functions."""
        function = self.resolve(callee)
        if function is not None:
            return self.summaries.get(function, Summary(UNKNOWN)).effect
        return self._latent(callee)

    def resolve(self, callee: Expression) -> Function | None:
        """The function that an atom is known to be."""
        if isinstance(callee, GlobalVar):
            return self.functions.get(callee.name)
        return self.known.get(callee.local) if isinstance(callee, LocalVar) else None

    def _grow(self, table: dict, key: object, new: Effect) -> Effect:
        old = table.get(key, PURE)
        joined = old | new
        if joined is not old:
            self._changed = True
            table[key] = joined
        else:
            table.setdefault(key, old)
        return joined

    def _function(self, function: Function) -> Summary:
        for p in function.params:
            self.latent.setdefault(p.local, Effect(0, frozenset((p.local,))))
        effect, latent = self._block(function.body)
        old = self.summaries.get(function, Summary())
        new = Summary(old.effect | effect, old.result | latent)
        if new != old or function not in self.summaries:
            self._changed |= new != old
            self.summaries[function] = new
        return new

    def _block(self, block: Expression) -> tuple[Effect, Effect]:
        effect = PURE
        for s in statements(block):
            if isinstance(s.value, Function) and isinstance(s, Let):
                self.known[s.local] = s.value
            found, latent = self._operation(s.value)
            self._grow(self.latent, s.local, latent)
            effect |= found
        found, latent = self._operation(result(block))
        return effect | found, latent

    def _operation(self, op: Expression) -> tuple[Effect, Effect]:
        effect, latent = self._effect_and_latent(op)
        if not isinstance(op, LocalVar):
            self._grow(self._effects, op, effect)
        else:
            self._effects[op] = PURE
        return effect, latent

    def _effect_and_latent(self, op: Expression) -> tuple[Effect, Effect]:
        match op:
            case CallExpr():
                return self._call(op)
            case Function():
                summary = self._function(op)
                return PURE, _without(summary.effect | summary.result, op)
            case IfExpr():
                (a, x), (b, y) = self._block(op.then), self._block(op.otherwise)
                return a | b, x | y
            case MatchExpr():
                value = self._latent(op.value)
                effect, latent = Effect(0 if op.complete else FAIL), PURE
                for arm in op.arms:
                    for local in pattern_locals(arm.pattern):
                        self._grow(self.latent, local, value)
                    a, x = self._block(arm.body)
                    effect, latent = effect | a, latent | x
                return effect, latent
            case TupleExpr():
                return PURE, self._join(op.fields)
            case Projection():
                return PURE, self._latent(op.tuple)
            case RefNew():
                return Effect(NEW), UNKNOWN
            case RefRead():
                return Effect(READ), UNKNOWN
            case RefWrite():
                return Effect(WRITE), PURE
        return PURE, self._latent(op)

    def _call(self, op: CallExpr) -> tuple[Effect, Effect]:
        callee = op.callee
        if isinstance(callee, OperatorName):
            return self.operator(callee.name), PURE
        if isinstance(callee, ConstructorName):
            return PURE, self._join(op.args)
        function = self.resolve(callee)
        if function is None:
            effect = self._latent(callee) | self._join(op.args)
            return effect, effect
        summary = self.summaries.get(function, Summary())
        given = {p.local: self._latent(a) for p, a in zip(function.params, op.args, strict=False)}
        return _substituted(summary.effect, given), _substituted(summary.result, given)

    def _join(self, atoms: tuple[Expression, ...]) -> Effect:
        out = PURE
        for x in atoms:
            out |= self._latent(x)
        return out

    def _latent(self, atom: Expression) -> Effect:
        match atom:
            case LocalVar():
                if atom.local in self.known:
                    function = self.known[atom.local]
                    summary = self.summaries.get(function, Summary())
                    return _without(summary.effect | summary.result, function)
                return PURE if self.first_order(atom.local) else self.latent.get(atom.local, PURE)
            case GlobalVar():
                function = self.functions.get(atom.name)
                if function is None:
                    return UNKNOWN
                summary = self.summaries.get(function, Summary())
                return _without(summary.effect | summary.result, function)
            case OperatorName():
                return self.operator(atom.name)
        return PURE


def _without(effect: Effect, function: Function) -> Effect:
    """An effect without what the arguments of a function do, which whoever calls it adds."""
    own = frozenset(p.local for p in function.params)
    return Effect(effect.flags, effect.params - own) if own & effect.params else effect


def _substituted(effect: Effect, given: dict[Local, Effect]) -> Effect:
    """An effect with latent effects of arguments in place of parameters."""
    if not effect.params & given.keys():
        return effect
    out = Effect(effect.flags, effect.params - given.keys())
    for param in effect.params & given.keys():
        out |= given[param]
    return out
