"""How an operator treats the axes of its operands: declared once for each primitive, used wherever axes matter.

A `Relation` labels each axis of the operands and of the result of one application, as `np.einsum` does: a product of
matrices is `mk,kn->mn`. The meaning of a label follows from where it occurs:

- *mapped*: in an operand and in the result. Position p of the result needs position p of the operands that have the
  label, and no other position. Rows may be computed separately and joined.
- *contracted*: in operands only. Positions are combined, in a product by addition. The result can be computed from
  parts whose results are combined in the same way.
- *repeated*: in the result but not in this operand. The operand is used at all positions.
- *opaque* (`None`; "." in text): nothing is known, or the dependence differs from position to position. Examples are
  the axis of a running sum, an image under a convolution, and an axis that is sliced or reversed.

A mapped or contracted axis may be *located*: then the positions themselves matter, as for `x[i] = v` along the axis of
i, and the axis cannot be renumbered.

`Axes` is the declaration. It gives the relation of each application, and says what attributes mean; from these follow
the attributes for an operator with one more axis, or with other sizes. It is written in one of three ways:

    @primitive("opaque", axes="nc..->nc..")                     # the same for every application
    @primitive("opaque", axes=Axes("mk,kn->mn", swapped=...))   # except for flags that transpose operands
    @primitive("injective", axes=Axes(function, perm=ORDER))    # (shapes, shape of the result, **attributes) -> Relation

Elementwise primitives need no declaration: theirs is `POINTWISE`. The registry test compares every declaration with the
NumPy reference implementation.

Used for batching (`prims.rules.batching`), row blocks (`opt.kernels.sharding_rules`), rows of structures of arrays
(`opt.analysis.row_axes`), sparsity patterns (`ad.jacobian.sparsity`), fusion and loop nests.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from ..abstract.dims import DimLike

Label = Hashable | None
Labels = tuple[Label, ...]
Shape = Sequence[DimLike]


@dataclass(frozen=True)
class Relation:
    """The axes of one application.

    Attributes:
        operands: the labels of each operand's axes.
        result: the labels of the result's axes.
        combine: the elementwise primitive that combines positions of contracted axes: "add", "maximum", ...
        located: labels of axes where it matters which position is which.
        base: the operand to which a contraction is added, if there is one.
    """

    operands: tuple[Labels, ...]
    result: Labels
    combine: str | None = None
    located: frozenset[Label] = frozenset()
    base: int | None = None

    def axis_of(self, label: Label, operand: int | None = None) -> int | None:
        """The position of a label in an operand (None: in the result); None if it does not occur."""
        labels = self.result if operand is None else self.operands[operand]
        return labels.index(label) if label is not None and label in labels else None

    def mapped(self) -> list[Label]:
        """The labels of mapped axes, in the order of the result."""
        return [x for x in self.result if x is not None and any(x in labels for labels in self.operands)]

    def contracted(self) -> list[Label]:
        """The labels of contracted axes."""
        found = dict.fromkeys(x for labels in self.operands for x in labels if x is not None)
        return [x for x in found if x not in self.result]

    def repeats(self, operand: int) -> bool:
        """Whether elements of an operand are used at several positions of the result."""
        return any(x is not None and x not in self.operands[operand] for x in self.result)


class Role(Enum):
    """What an attribute says about axes.

    A tuple with an entry for each axis has the entry of an axis of which nothing is said as its role instead: (0,) for
    `low` of a padding.
    """

    AXIS = "the number of an axis"
    AXES = "numbers of axes"
    ORDER = "all axes in another order"
    SHAPE = "the shape of the result"


AXIS, AXES, ORDER, SHAPE = Role
Rule = Callable[..., Relation]


class Axes:
    """The declaration of a primitive.

    Args:
        rule: the relation: a text, or a function of the operands' shapes, the result's shape and the attributes.
        swapped: for a text, flags that transpose the last two axes of an operand: flag -> operand.
        leading: operands that get a new leading axis together; None for all.
        combine: of a text, by default addition.
        any_rank: whether operands may have more axes in front, all mapped; by default those of a function may.
        roles: attribute -> its role; a tuple for an entry for each axis.
    """

    def __init__(
        self,
        rule: str | Rule,
        *,
        swapped: Mapping[str, int] | None = None,
        leading: tuple[int, ...] | None = None,
        combine: str = "add",
        any_rank: bool | None = None,
        **roles: Role | tuple,
    ):
        self.any_rank = callable(rule) if any_rank is None else any_rank
        self.rule = rule if callable(rule) else _fixed(rule, swapped or {}, combine)
        self.leading = leading
        self.roles = roles

    def relation(self, shapes: Sequence[Shape], shape: Shape, attrs: Mapping[str, Any]) -> Relation:
        """The relation of an application, from the shapes of its operands and its result."""
        return self.rule(shapes, shape, **attrs)

    def grown(self, attrs: Mapping[str, Any], size: DimLike) -> dict[str, Any]:
        """The attributes for the same operation with one more mapped axis of a given size, in front."""
        out = dict(attrs)
        for name, role in self.roles.items():
            value = attrs[name]
            if role is AXIS:
                out[name] = value + 1
            elif role is AXES:
                out[name] = tuple(k + 1 for k in value)
            elif role is ORDER:
                out[name] = (0, *(k + 1 for k in value))
            else:
                out[name] = (*(role if isinstance(role, tuple) else (size,)), *value)
        return out

    def resized(self, attrs: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
        """The attributes of the same operation on blocks of rows, whose result has the given shape."""
        return {**attrs, **{name: tuple(shape) for name, role in self.roles.items() if role is SHAPE}}


def labels(text: str) -> Labels:
    """The labels of "nc..": letters, and None for dots."""
    return tuple(None if c == "." else c for c in text)


def _fixed(text: str, swapped: Mapping[str, int], combine: str) -> Rule:
    """The rule of a text."""
    left, right = text.split("->")
    operands, result = tuple(map(labels, left.split(",") if left else ())), labels(right)

    def rule(shapes, out, **attrs):
        found = list(operands)
        for flag, k in swapped.items():
            if attrs[flag]:
                found[k] = (*found[k][:-2], found[k][-1], found[k][-2])
        return Relation(tuple(found), result, combine)

    return rule


def pointwise(shapes: Sequence[Shape], out: Shape, **attrs: Any) -> Relation:
    """Each element depends on those that broadcasting aligns with it: axes correspond from the last one on."""
    rank = len(out)
    operands = tuple(
        tuple(None if n == 1 and out[axis] != 1 else axis for axis, n in enumerate(operand, rank - len(operand)))
        for operand in shapes
    )
    return Relation(operands, tuple(range(rank)))


POINTWISE = Axes(pointwise)
"""The axes of elementwise operations."""
BROADCAST = Axes(pointwise, shape=SHAPE)


def is_pointwise(axes: Axes | None) -> bool:
    """Whether operands broadcast to the result, and nothing is rearranged."""
    return axes is not None and axes.rule is pointwise


def reduction(combine: str) -> Axes:
    """The axes of a reduction over `axes`, which stay with size 1 if `keepdims` is set."""

    def rule(shapes, out, *, axes, keepdims=False):
        (operand,) = shapes
        every = tuple(range(len(operand)))
        if keepdims:
            return Relation((every,), tuple(None if k in axes else k for k in every), combine)
        return Relation((every,), tuple(k for k in every if k not in axes), combine)

    return Axes(rule, axes=AXES)


class Application(Protocol):
    """What this module uses of an application: `ir.node.Apply`, whose primitive declares its axes."""

    fn: Any
    args: tuple[Any, ...]
    attrs: dict[str, Any]
    type: Any


def relation_of(node: Application) -> Relation | None:
    """The relation of an application; None where nothing is declared."""
    axes = getattr(node.fn, "axes", None)
    if axes is None:
        return None
    return axes.relation([getattr(a.type, "shape", ()) for a in node.args], getattr(node.type, "shape", ()), node.attrs)


def without(axes: Labels, axis: int, *inserted: Label) -> Labels:
    """Labels in which that of an axis is replaced."""
    return (*axes[:axis], *inserted, *axes[axis + 1 :])


def along(rule: Callable[[Labels, int], Relation], **options: Any) -> Axes:
    """The axes of an operation on one axis: `rule` gets the labels of the first operand's axes, numbers, and the axis."""

    def relation(shapes, out, *, axis, **attrs):
        return rule(tuple(range(len(shapes[0]))), axis)

    return Axes(relation, axis=AXIS, **options)


__all__ = [
    "AXES",
    "AXIS",
    "BROADCAST",
    "ORDER",
    "POINTWISE",
    "SHAPE",
    "Axes",
    "Labels",
    "Relation",
    "Role",
    "along",
    "is_pointwise",
    "labels",
    "pointwise",
    "reduction",
    "relation_of",
    "without",
]
