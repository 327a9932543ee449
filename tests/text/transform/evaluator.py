"""A direct evaluator of trees: Relay's semantics on one page, as the oracle of tests of passes.

It knows nothing of types, graphs or compilation. Operators are computed by their reference implementations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from myia_relay.text.operators import OPERATORS
from myia_relay.text.placement import placed
from myia_relay.text.transform.common.folding import applied, value_of
from myia_relay.text.tree import (
    Body,
    CallExpr,
    ConstructorName,
    ConstructorPattern,
    Function,
    GlobalVar,
    IfExpr,
    Literal,
    LocalVar,
    MatchExpr,
    OperatorName,
    Projection,
    RefNew,
    RefRead,
    RefWrite,
    TensorConstant,
    TupleExpr,
    TuplePattern,
    VariablePattern,
)
from myia_relay.utils.deep import deeply


class NoArm(Exception):
    """No arm of a `match?` fits."""


@dataclass
class Cell:
    """A reference."""

    content: Any


@dataclass(frozen=True)
class Made:
    """A value of a data type."""

    constructor: str
    fields: tuple[Any, ...]


@dataclass(eq=False)
class Closure:
    """A function with the values of its free variables."""

    function: Function
    env: dict


def evaluate(module, name: str, *args: Any) -> Any:
    """The value of a call of a definition."""
    return deeply(lambda: _Evaluator(placed(module.tree)).call(GlobalVar(name), list(args)))


class _Evaluator:
    def __init__(self, tree):
        self.tree = tree

    def call(self, callee: Any, args: list) -> Any:
        match callee:
            case GlobalVar():
                return self.run(Closure(self.tree.definitions[callee.name].function, {}), args)
            case OperatorName():
                return applied(OPERATORS[callee.name], args, OPERATORS[callee.name].complete(()))
            case ConstructorName():
                return Made(callee.name, tuple(args))
        return self.run(callee, args)

    def run(self, closure: Closure, args: list) -> Any:
        params = [p.local for p in closure.function.params]
        assert len(params) == len(args)
        return self.value(closure.function.body, {**closure.env, **dict(zip(params, args))})

    def value(self, e: Any, env: dict) -> Any:
        match e:
            case Literal() | TensorConstant():
                return value_of(e)
            case LocalVar():
                return env[e.local]
            case ConstructorName() if not self.tree.constructors[e.name][1].fields:
                return Made(e.name, ())
            case GlobalVar() | OperatorName() | ConstructorName():
                return e
            case Function():
                return Closure(e, env)
            case TupleExpr():
                return tuple(self.value(f, env) for f in e.fields)
            case Projection():
                return self.value(e.tuple, env)[e.index]
            case Body():
                env = dict(env)
                for s in e.statements:
                    made = self.value(s.value, env)
                    if isinstance(made, Closure) and made.function is s.value:
                        made.env = env  # it sees itself, and nothing that comes later has a name that it uses
                    env[s.local] = made
                return self.value(e.result, env)
            case IfExpr():
                return self.value(e.then if self.value(e.condition, env) else e.otherwise, env)
            case MatchExpr():
                return self.match(e, env)
            case RefNew():
                return Cell(self.value(e.value, env))
            case RefRead():
                return self.value(e.ref, env).content
            case RefWrite():
                cell = self.value(e.ref, env)
                cell.content = self.value(e.value, env)
                return ()
            case CallExpr():
                args = [self.value(a, env) for a in e.args]
                if isinstance(e.callee, OperatorName):
                    operator = OPERATORS[e.callee.name]
                    return applied(operator, args, operator.complete(e.attributes))
                callee = self.value(e.callee, env)
                return callee if isinstance(callee, Made) else self.call(callee, args)  # Nil()
        raise AssertionError(e)

    def match(self, e: MatchExpr, env: dict) -> Any:
        value = self.value(e.value, env)
        for arm in e.arms:
            bound: dict = {}
            if self.fits(arm.pattern, value, bound):
                return self.value(arm.body, {**env, **bound})
        raise NoArm

    def fits(self, pattern: Any, value: Any, bound: dict) -> bool:
        match pattern:
            case VariablePattern():
                bound[pattern.local] = value
            case ConstructorPattern():
                if value.constructor != pattern.constructor:
                    return False
                return all(self.fits(p, v, bound) for p, v in zip(pattern.fields, value.fields))
            case TuplePattern():
                return all(self.fits(p, v, bound) for p, v in zip(pattern.fields, value))
        return True


def same(a: Any, b: Any, rtol: float = 0.0) -> bool:
    """Whether two values are equal: to the bit, or up to rounding."""
    if isinstance(a, Made):
        return isinstance(b, Made) and a.constructor == b.constructor and same(a.fields, b.fields, rtol)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(same(x, y, rtol) for x, y in zip(a, b))
    if isinstance(a, Closure | GlobalVar | OperatorName | ConstructorName):
        return isinstance(b, Closure | GlobalVar | OperatorName | ConstructorName)
    if isinstance(a, Cell):
        return isinstance(b, Cell) and same(a.content, b.content, rtol)
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    if rtol and x.dtype.kind == "f":
        return bool(np.allclose(x, y, rtol=rtol, atol=rtol, equal_nan=True))
    return bool(np.array_equal(x, y, equal_nan=x.dtype.kind == "f"))
