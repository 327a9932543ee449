"""Strip by strip: what a value may be in a strip of rows, and a rule for each primitive.

The rows lie along one axis of some arguments; a strip is a stretch of it. In each strip a value is one of

- `WHOLE`: it does not depend on the rows, and is the same in all strips;
- `Along` an axis: the strip's rows of what it is otherwise;
- `SUM`: the strip's part of a sum over all rows;
- `Added`: something carried from strip to strip, to which each adds a `SUM`;

or a structure of such, a tuple of kinds. A rule says what kind a result has, for the kinds of its operands. What has no rule does
not go strip by strip: the order of rows, maxima over rows, all that a sum over all rows goes into. A sum may be multiplied only
where differentiation has made the product, for which numbers are reals: elsewhere 0 * infinity would be decided in another order.

Used by `opt.kernels.sharding`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ...abstract.types import Array, Type
from ...ir.node import Apply, Constant, Node
from ...ir.rewrite import applied

if TYPE_CHECKING:
    from .sharding import Analysis, Kinds


class Plain(Enum):
    """Kinds without a part."""

    WHOLE = "whole"
    SUM = "sum"


WHOLE, SUM = Plain.WHOLE, Plain.SUM


@dataclass(frozen=True)
class Along:
    """The rows of the strip, along an axis."""

    axis: int


@dataclass(frozen=True)
class Added:
    """What is carried, and the strip's part of a sum.

    Attributes:
        to: what is carried: a parameter of a body; in the whole program a loop and the position of its operand. None in demands.
    """

    to: Any = None


Kind = Plain | Along | Added | tuple


class NoRule(Exception):
    """Something does not go strip by strip."""


def normal(kind: Kind) -> Kind:
    """A structure of whole values is whole."""
    return WHOLE if isinstance(kind, tuple) and all(k is WHOLE for k in kind) else kind


def leaves(kinds: Sequence[Kind]) -> Iterator[Kind]:
    """The kinds inside of structures."""
    for kind in kinds:
        yield from leaves(kind) if isinstance(kind, tuple) else (kind,)


def in_strip(t: Type, kind: Kind, rows: int) -> Type:
    """The type of a value in a strip of some rows."""
    if isinstance(kind, Along):
        return Array(t.dtype, (*t.shape[: kind.axis], rows, *t.shape[kind.axis + 1 :]))
    if isinstance(kind, tuple):
        return replace(t, elems=tuple(in_strip(e, k, rows) for e, k in zip(t.elems, kind)))
    return t


def is_zero(node: Node) -> bool:
    """Whether a value is zero everywhere."""
    if applied(node) == "broadcast_to":
        return is_zero(node.args[0])
    return (
        isinstance(node, Constant)
        and isinstance(node.value, float | int | np.generic | np.ndarray)
        and not np.any(node.value)
    )


def is_filled(node: Node, axis: int) -> bool:
    """Whether an array is the same everywhere along an axis."""
    if isinstance(node, Constant):
        flat = np.asarray(node.value).reshape(-1)
        return flat.tobytes() == flat[:1].tobytes() * flat.size
    if applied(node) == "broadcast_to":
        shape = getattr(node.args[0].type, "shape", ())
        at = axis - len(node.type.shape) + len(shape)
        return at < 0 or shape[at] == 1
    return applied(node) == "undef"


# --- a rule for each primitive: (analysis, application, kinds of its operands, kinds around it) -> kind of its result ----------

Rule = Callable[["Analysis", Apply, "list[Kind]", "Kinds"], Kind]
RULES: dict[str, Rule] = {"for_loop": lambda analysis, node, args, kinds: analysis.loop(node, args, kinds)}
"""By the name of a primitive, or by the kind of many."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of some primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def rank(node: Node) -> int:
    """How many axes a value has."""
    return len(getattr(node.type, "shape", ()))


def is_sum(node: Node, kind: Kind) -> bool:
    """Whether an operand of a sum is a part of a sum: zero is."""
    return kind is SUM or kind is WHOLE and is_zero(node)


def require(condition: bool) -> None:
    """There is no rule otherwise."""
    if not condition:
        raise NoRule


@rule("elementwise")
def _(analysis: Analysis, node: Apply, args: list[Kind], kinds: Kinds) -> Kind:
    if not any(isinstance(k, Along) for k in args):
        return linear(analysis, node, args, kinds)
    axes = {k.axis + rank(node) - rank(a) for a, k in zip(node.args, args) if isinstance(k, Along)}
    require(len(axes) == 1 and all(k is WHOLE or isinstance(k, Along) for k in args))
    (axis,) = axes
    for arg, kind in zip(node.args, args):
        at = axis - rank(node) + rank(arg)
        if kind is WHOLE and at >= 0 and arg.type.shape[at] != 1:
            analysis.demand(arg, Along(at), kinds)
    return Along(axis)


def linear(analysis: Analysis, node: Apply, args: list[Kind], kinds: Kinds) -> Kind:
    """Elementwise operations on sums."""
    name = node.fn.name
    require(node.type.is_float)
    if name in ("add", "sub"):
        others = [k for k, (arg, kind) in enumerate(zip(node.args, args)) if not is_sum(arg, kind)]
        if not others:
            return SUM
        k = others[0]  # to it something is added
        require(len(others) == 1 and not (k and name == "sub") and node.type == node.args[k].type)
        if args[k] is WHOLE:
            analysis.demand(node.args[k], Added(), kinds)
        require(isinstance(args[k], Added))
        return args[k]
    if name in ("neg", "cast", "stop_gradient"):
        require(args == [SUM])
    elif name == "where":
        require(args[0] is WHOLE and all(is_sum(a, k) for a, k in zip(node.args[1:], args[1:])))
    else:
        require((name == "mul" or name == "div" and args[1] is WHOLE) and is_multiple(node, args))
    return SUM


def is_multiple(node: Apply, args: list[Kind]) -> bool:
    """Whether differentiation has multiplied a sum by something whole."""
    return node.origin.made_by in ("jvp", "vjp") and sorted(args, key=str) == sorted((SUM, WHOLE), key=str)


@rule("reduce")
def _(analysis, node, args, kinds):
    (kind,), axes = args, node.attrs["axes"]
    if kind is SUM and node.fn.name == "reduce_sum":
        return SUM
    require(isinstance(kind, Along))
    if kind.axis in axes:
        require(node.fn.name == "reduce_sum")
        return SUM
    return kind if node.attrs["keepdims"] else Along(kind.axis - sum(a < kind.axis for a in axes))


@rule("broadcast_to")
def _(analysis, node, args, kinds):
    (kind,) = args
    return Along(kind.axis + rank(node) - rank(node.args[0])) if isinstance(kind, Along) else only_sum(kind)


def only_sum(kind: Kind) -> Kind:
    """Of what moves elements about."""
    require(kind is SUM)
    return SUM


@rule("reshape")
def _(analysis, node, args, kinds):
    (kind,) = args
    if not isinstance(kind, Along):
        return only_sum(kind)
    before = int(np.prod(node.args[0].type.shape[: kind.axis]))
    for axis, n in enumerate(
        node.type.shape
    ):  # the same elements before it, and as many rows: so each row is what it was
        if n == analysis.size and int(np.prod(node.type.shape[:axis])) == before:
            return Along(axis)
    raise NoRule


@rule("transpose")
def _(analysis, node, args, kinds):
    (kind,) = args
    return Along(node.attrs["perm"].index(kind.axis)) if isinstance(kind, Along) else only_sum(kind)


@rule("slice")
def _(analysis, node, args, kinds):
    (kind,) = args
    if not isinstance(kind, Along):
        return only_sum(kind)
    require([node.attrs[k][kind.axis] for k in ("starts", "sizes", "steps")] == [0, analysis.size, 1])
    return kind


@rule("pad")
def _(analysis, node, args, kinds):
    kind, value = args
    if not isinstance(kind, Along):
        require(is_zero(node.args[1]))
        return only_sum(kind)
    require(value is WHOLE and not any(node.attrs[k][kind.axis] for k in ("low", "high", "interior")))
    return kind


@rule("flip")
def _(analysis, node, args, kinds):
    (kind,) = args
    require(kind is SUM or isinstance(kind, Along) and kind.axis not in node.attrs["axes"])
    return kind


@rule("concatenate")
def _(analysis, node, args, kinds):
    if all(is_sum(a, k) for a, k in zip(node.args, args)):
        return SUM
    kind = next((k for k in args if isinstance(k, Along)), None)
    require(kind is not None and kind.axis != node.attrs["axis"])
    for arg, other in zip(node.args, args):
        same_rows(analysis, arg, other, kind, kinds)
    return kind


def same_rows(analysis: Analysis, node: Node, kind: Kind, wanted: Along, kinds: Kinds) -> None:
    """An operand must have the strip's rows along an axis."""
    if kind is WHOLE:
        analysis.demand(node, wanted, kinds)
    else:
        require(kind == wanted)


@rule("dynamic_index")
def _(analysis, node, args, kinds):
    kind, at = args
    require(at is WHOLE)
    return kind if kind is SUM else removed(kind, node.attrs["axis"])


@rule("dynamic_slice")
def _(analysis, node, args, kinds):
    kind, at = args
    require(at is WHOLE and (kind is SUM or isinstance(kind, Along) and kind.axis != node.attrs["axis"]))
    return kind


def removed(kind: Kind, axis: int) -> Along:
    """Rows, when another axis is gone."""
    require(isinstance(kind, Along) and kind.axis != axis)
    return Along(kind.axis - (axis < kind.axis))


@rule("dynamic_update", "index_add", "dynamic_update_slice", "slice_add")
def _(analysis, node, args, kinds):
    x, v, at = args
    require(at is WHOLE)
    axis, adds = node.attrs["axis"], node.fn.name in ("index_add", "slice_add")
    keeps = node.fn.name in ("dynamic_update_slice", "slice_add")
    if isinstance(x, Along):
        same_rows(analysis, node.args[1], v, x if keeps and x.axis != axis else removed(x, axis), kinds)
        return x
    if isinstance(v, Along):
        require(x is WHOLE and (not keeps or v.axis != axis))
        wanted = v if keeps or v.axis < axis else Along(v.axis + 1)
        analysis.demand(node.args[0], wanted, kinds)
        return wanted
    require(is_sum(node.args[1], v))
    if isinstance(x, Added) and adds:
        return x
    if not is_sum(node.args[0], x):
        require(adds and x is WHOLE)
        analysis.demand(node.args[0], Added(), kinds)
    return SUM


@rule("take")
def _(analysis, node, args, kinds):
    (x, at), axis = args, node.attrs["axis"]
    if isinstance(at, Along):
        require(x is WHOLE)
        return Along(axis + at.axis)
    require(at is WHOLE and isinstance(x, Along) and x.axis != axis)
    return Along(x.axis + (rank(node.args[1]) - 1 if x.axis > axis else 0))


@rule("scatter_add")
def _(analysis, node, args, kinds):
    x, at, updates = args
    require(isinstance(at, Along))
    same_rows(analysis, node.args[2], updates, Along(node.attrs["axis"] + at.axis), kinds)
    if x is WHOLE and not is_zero(node.args[0]):
        analysis.demand(node.args[0], Added(), kinds)
    require(x is WHOLE or x is SUM or isinstance(x, Added))
    return SUM if x is WHOLE else x


@rule("one_hot")
def _(analysis, node, args, kinds):
    require(isinstance(args[0], Along))
    return args[0]


@rule("dot", "triangular_dot", "matvec", "batched_dot")
def _(analysis, node, args, kinds):
    if not any(isinstance(k, Along) for k in args):
        require(is_multiple(node, args))
        return SUM
    labels = _labels(node)
    found = {names[k.axis] for names, k in zip(labels, args) if isinstance(k, Along)}
    require(len(found) == 1)
    (label,) = found
    if node.fn.name == "triangular_dot":  # the rows are none of a triangle's axes
        require(label not in labels[("left", "right", "result").index(node.attrs["which"])])
    for names, arg, kind in zip(labels, node.args, args):
        if label in names:
            same_rows(analysis, arg, kind, Along(names.index(label)), kinds)
        else:
            require(kind is WHOLE)
    return Along(labels[-1].index(label)) if label in labels[-1] else SUM


PRODUCTS = {
    "dot": ("ik", "kj", "ij"),
    "triangular_dot": ("ik", "kj", "ij"),
    "matvec": ("ik", "k", "i"),
    "batched_dot": ("bik", "bkj", "bij"),
}
"""Product -> its operands' axes and its result's, in Einstein's notation, without transposes."""


def _labels(node: Apply) -> tuple[str, str, str]:
    """The axes of a product's operands and of its result."""
    a, b, out = PRODUCTS[node.fn.name]
    if node.fn.name == "matvec":
        return ("ki" if node.attrs["transpose"] else a), b, out
    return (
        (a[:-2] + a[:-3:-1] if node.attrs["transpose_a"] else a),
        (b[:-2] + b[:-3:-1] if node.attrs["transpose_b"] else b),
        out,
    )


@rule("make_struct")
def _(analysis, node, args, kinds):
    return tuple(args)


@rule("get_item")
def _(analysis, node, args, kinds):
    return args[0][node.attrs["index"]]


__all__ = [
    "PRODUCTS",
    "RULES",
    "SUM",
    "WHOLE",
    "Added",
    "Along",
    "Kind",
    "NoRule",
    "in_strip",
    "is_filled",
    "is_zero",
    "leaves",
    "normal",
    "require",
]
