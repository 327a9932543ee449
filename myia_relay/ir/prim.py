"""Primitives: every operation of the typed IR, whole, in one place.

A primitive is declared by its NumPy meaning, and everything else about it is attached to that declaration:

    @primitive(kind="elementwise")
    def mul(a, b):
        '''Product, with broadcasting.'''
        return np.multiply(a, b)              # the one meaning: interpreter, constant folder and tests call it

    @mul.infer                                # result type from argument types and attributes
    def _(a, b): ...                          # (kinds with a generic relation need none)

    @mul.vjp                                  # cotangents of the arguments; None for no dependence
    def _(a, b, out, dout):
        return dout * b, dout * a

    @mul.batch                                # vmap: see `ad.batch.batch`; elementwise kinds need none
    @mul.lower                                # back end: see below

Positional parameters are data, keyword-only ones static attributes. Rules are written in the language itself: calling a
primitive on `Var`s (staged values, `ir.build`) emits applications with their types; calling it on NumPy values computes. So
one rule text serves every order of derivative, and can be tested on numbers.

Kinds, and what their `lower` rule is (the back end's protocol; nothing here imports it):

- "elementwise": `(b, *exprs) -> expr`, one element from one element of each argument; scalars too. Default: the back end's
  method of the same name.
- "injective": `(b, index, *reads, in_types, out_type, **attrs) -> expr`, the element at `index` (list of index expressions),
  each `read(index)` giving an element of an argument: broadcasting, transposing, slicing, padding, gathering, ...
- "reduce": attribute `axes`; the rule is `(b) -> (init, combine)` by dtype: `b.dtype` names it.
- "opaque": a kernel of the back end, named like the primitive: contractions, convolutions, pooling, scatters.
- "struct": building and taking apart of structures; no code of its own.
- "control": takes graphs as attributes (`cond`, `while_loop`, `for_loop`), or transforms one.
- "effect": ordered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

REGISTRY: dict[str, Primitive] = {}
KINDS = ("elementwise", "injective", "reduce", "opaque", "struct", "control", "effect")


class Primitive:
    """One operation with all that is known of it.

    Attributes:
        name: unique name.
        kind: one of `KINDS`.
        meaning: its NumPy implementation; None for control and effects, which the executors implement.
        effect: None, or "raise", "read", "write", "io": ordered with the other effects, never removed (a "read" may be) or
            merged.
        differentiable: False where the derivative is zero or undefined by nature (comparisons, integers, rounding).
        linear_in: positions of arguments in which it is linear (the adjoint needs no primal value there).
        columns: further columns by name ("fusion", "layout", "quantise", ...).
    """

    def __init__(self, name, kind, meaning, effect=None, differentiable=True, **columns):
        if kind not in KINDS:
            raise ValueError(f"primitive {name}: unknown kind {kind!r}")
        self.name = name
        self.kind = kind
        self.meaning = meaning
        self.effect = effect
        self.differentiable = differentiable
        self.columns: dict[str, Any] = columns
        self.infer_rule: Callable | None = None
        self.vjp_rule: Callable | None = None
        self.jvp_rule: Callable | None = None
        self.batch_rule: Callable | None = None
        self.lower_rule: Callable | None = None
        self.__doc__ = meaning.__doc__ if meaning else None
        parameters = inspect.signature(meaning).parameters.values() if meaning else ()
        self.attr_names = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        self.attr_defaults = {
            p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is not p.empty
        }
        if name in REGISTRY:
            raise ValueError(f"primitive {name} is registered twice")
        REGISTRY[name] = self

    # Rule setters, used as decorators.
    def infer(self, rule):
        """Attach the type relation `(*types, **attrs) -> Type`; it raises TypeError_ or ShapeError without an origin."""
        self.infer_rule = rule
        return rule

    def vjp(self, rule):
        """Attach the reverse rule `(*args, out, dout, **attrs) -> tuple of cotangents`."""
        self.vjp_rule = rule
        return rule

    def jvp(self, rule):
        """Attach the forward rule `(*args, out, tangents, **attrs) -> tangent`; `tangents` holds None for constants."""
        self.jvp_rule = rule
        return rule

    def batch(self, rule):
        """Attach the batching rule `(size, batched, *args, **attrs) -> out`, batch axis first; see `ad.batch.batch`."""
        self.batch_rule = rule
        return rule

    def lower(self, rule):
        """Attach the lowering rule; its form depends on `kind`."""
        self.lower_rule = rule
        return rule

    def __call__(self, *args, **attrs):
        for arg in args:
            if hasattr(arg, "apply_primitive"):  # a staged value: `ir.build.Var`
                return arg.apply_primitive(self, args, attrs)
        return self.meaning(*args, **attrs)

    def __repr__(self) -> str:
        return f"P.{self.name}"


def primitive(kind: str, *, name: str | None = None, effect=None, differentiable=True, **columns):
    """Declare a primitive; the decorated function is its NumPy meaning."""

    def declare(meaning) -> Primitive:
        return Primitive(name or meaning.__name__.rstrip("_"), kind, meaning, effect, differentiable, **columns)

    return declare
