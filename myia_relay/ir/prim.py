"""Primitives: every operation of the typed IR, with all its rules in one place.

A primitive is declared by its NumPy reference implementation, and everything else about it is attached to that
declaration:

    @primitive(kind="elementwise")
    def mul(a, b):
        '''Product, with broadcasting.'''
        return np.multiply(a, b)              # the reference: interpreter, constant folder, tests

    @mul.infer                                # result type from argument types and attributes
    def _(a, b): ...                          # (kinds with a generic relation need none)

    @mul.vjp                                  # cotangents of the arguments; None for no dependence
    def _(a, b, out, dout):
        return dout * b, dout * a

    @mul.batch                                # vmap, where it does not follow from the axes: see `prims.rules.batching`
    @mul.lower                                # back end: see below

The declaration also says how it treats the axes of its operands (`ir.axes`): `@primitive("opaque", axes="nc..->nc..")`.

Positional parameters are data, keyword-only ones are static attributes. Rules are written in the language itself:
calling a primitive on `Var`s (staged values, `ir.build`) emits applications with their types, and calling it on NumPy
values computes. One rule therefore serves every order of derivative, and can be tested on numbers.

The kinds, and the `lower` rule of each (in the back end's protocol; nothing here imports the back end):

- "elementwise": `(b, *exprs) -> expr`, one element from one element of each argument; scalars too. Default: the back
  end's method of the same name.
- "injective": `(b, index, *reads, in_types, out_type, **attrs) -> expr`, the element at `index` (a list of index
  expressions); each `read(index)` gives an element of an argument. Broadcasting, transposing, slicing, padding,
  gathering, ...
- "reduce": attribute `axes`; the rule is `(b) -> (init, combine)`; `b.dtype` is the dtype.
- "opaque": a kernel of the back end with the primitive's name: contractions, convolutions, pooling, scatters.
- "struct": building and taking apart of structures; no code of its own.
- "control": takes graphs as attributes (`cond`, `while_loop`, `for_loop`), or transforms one.
- "effect": ordered.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from .axes import POINTWISE, Axes

REGISTRY: dict[str, Primitive] = {}
KINDS = ("elementwise", "injective", "reduce", "opaque", "struct", "control", "effect")


class PartUpdate(NamedTuple):
    """Says that a result is the first operand with a part changed: operands (x, part, position), attribute `axis`.

    Attributes:
        adds: whether the part is added to what is there, or takes its place.
        window: whether the part is as many neighbours as it is long, or one element or subarray, without the axis.
    """

    adds: bool
    window: bool

    @property
    def reads(self) -> str:
        """The primitive that reads the part."""
        return "dynamic_slice" if self.window else "dynamic_index"

    @property
    def writes(self) -> str:
        """The primitive that puts another part in its place."""
        return "dynamic_update_slice" if self.window else "dynamic_update"

    @property
    def increases(self) -> str:
        """The primitive that adds to the part."""
        return "slice_add" if self.window else "index_add"


class Primitive:
    """One operation with all that is known of it.

    Attributes:
        name: unique name.
        kind: one of `KINDS`.
        reference: its NumPy implementation; None for control and effects, which the executors implement.
        effect: None, or "raise", "read", "write", "io", "mark" (of a debugger): ordered with the other effects, never removed (a
            "read" may be) or merged.
        differentiable: False if the derivative is zero or undefined everywhere (comparisons, integers, rounding).
        axes: how it treats the axes of its operands; None where it has no arrays, or says nothing of them.
        linear_in: positions of the arguments in which it is linear together (`prims.rules.forward.linear`), the others being
            parameters such as positions; None where that is not declared.
        bilinear: whether it is linear in each of its two arguments.
        update: how it changes a part of its first operand; None if it does not.
        view: whether the result is nothing but elements of the first operand, which NumPy has no need to copy: they cost an index.
    """

    def __init__(self, name, kind, reference, effect=None, differentiable=True, axes=None, view=False, update=None):
        if kind not in KINDS:
            raise ValueError(f"primitive {name}: unknown kind {kind!r}")
        self.name = name
        self.kind = kind
        self.reference = reference
        self.effect = effect
        self.differentiable = differentiable
        self.axes: Axes | None = Axes(axes) if isinstance(axes, str) else axes
        if axes is None and kind == "elementwise":
            self.axes = POINTWISE
        self.view = view
        self.update: PartUpdate | None = update
        self.linear_in: tuple[int, ...] | None = None
        self.bilinear = False
        self.infer_rule: Any = None
        self.vjp_rule: Any = None
        self.jvp_rule: Any = None
        self.batch_rule: Any = None
        self.lower_rule: Any = None
        self.__doc__ = reference.__doc__ if reference else None
        parameters = inspect.signature(reference).parameters.values() if reference else ()
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
        """Attach the batching rule `(size, batched, *args, **attrs) -> out`, batch axis first, for what does not follow
        from the declared axes; it returns None for what does.
        """
        self.batch_rule = rule
        return rule

    def lower(self, rule):
        """Attach the lowering rule; its form depends on `kind`."""
        self.lower_rule = rule
        return rule

    # With staged values (`ir.build.Var`) the result is a staged value; otherwise the reference implementation is
    # called.
    def __call__(self, *args: Any, **attrs: Any) -> Any:
        for arg in args:
            if hasattr(arg, "apply_primitive"):  # a staged value: `ir.build.Var`
                return arg.apply_primitive(self, args, attrs)
        return self.reference(*args, **attrs)

    def __repr__(self) -> str:
        return f"P.{self.name}"


def primitive(
    kind: str,
    *,
    name: str | None = None,
    effect=None,
    differentiable=True,
    axes: Axes | str | None = None,
    view=False,
    update: PartUpdate | None = None,
):
    """Declare a primitive; the decorated function is its NumPy reference implementation."""

    def declare(reference) -> Primitive:
        return Primitive(
            name or reference.__name__.rstrip("_"), kind, reference, effect, differentiable, axes, view, update
        )

    return declare


def update_of(node) -> PartUpdate | None:
    """How an application changes its first operand; None for any other node."""
    return getattr(getattr(node, "fn", None), "update", None)


def adds_to_part(node) -> bool:
    """Whether a node adds to a part of its first operand."""
    update = update_of(node)
    return update is not None and update.adds


def updates_one(node) -> bool:
    """Whether a node changes the part at one position of an axis."""
    update = update_of(node)
    return update is not None and not update.window
