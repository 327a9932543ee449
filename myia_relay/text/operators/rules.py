"""Relations that many operators share: broadcasting, identity, axes.

A rule finds the same again each time it is tried. It says what it knows as early as it can, the dtype before the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...abstract.types import FLOATS, INTS
from ...prims.rules.relations import BITS, NUMBERS
from ...utils.errors import ShapeError, TypeError_
from ..terms.show import shape_text, show, size_text
from ..terms.solver import Facts, Waiting
from ..terms.terms import ANY, TensorTerm, Unknown, prune, tuple_term

EVERY = (*NUMBERS, "bool")
WORDS = {FLOATS: "floats", INTS: "integers", NUMBERS: "numbers", BITS: "integers and booleans", ("bool",): "booleans"}

Rule = Callable[[Facts], None]


def accept(facts: Facts, t: TensorTerm, accepted: tuple[str, ...]) -> None:
    """Demand one of some dtypes."""
    if accepted is not EVERY:
        facts.require_dtype(t, accepted, WORDS.get(accepted) or ", ".join(accepted))


# Elementwise.


def identity(accepted: tuple[str, ...] = EVERY, count: int = 1) -> Rule:
    """The result has the type of the arguments, which are equal."""

    def rule(facts: Facts) -> None:
        first = facts.tensor(0)
        for k in range(1, count):
            facts.equal(first, facts.tensor(k))
        facts.gives(first)
        accept(facts, first, accepted)

    return rule


def same_shape(dtype: str, accepted: tuple[str, ...] = EVERY) -> Rule:
    """The result has the shape of the argument, and a dtype of its own."""

    def rule(facts: Facts) -> None:
        t = facts.tensor(0)
        facts.gives_tensor(t.shape, dtype)
        accept(facts, t, accepted)

    return rule


def broadcast(accepted: tuple[str, ...] = EVERY, result: str | None = None) -> Rule:
    """Two operands of one dtype, whose shapes broadcast."""

    def rule(facts: Facts) -> None:
        a, b = facts.tensor(0), facts.tensor(1)
        dtype = facts.same_dtype(a, b)
        accept(facts, a, accepted)
        try:
            shape = broadcast_of(facts, a, b)
        except Waiting:
            facts.gives_tensor(_open(facts), result or dtype)
            return
        facts.gives_tensor(shape, result or dtype)

    return rule


def _open(facts: Facts) -> Any:
    """The shape of the result as far as it is known already, to say its dtype before its shape."""
    wanted = prune(facts.relation.result)
    return wanted.shape if isinstance(wanted, TensorTerm) else Unknown("Shape", facts.solver.level)


def broadcast_of(facts: Facts, *tensors: TensorTerm) -> tuple[Any, ...]:
    """The shape that the shapes of tensors broadcast to; None for a size that is not known yet.

    Raises:
        Waiting: a number of axes is not known.
        ShapeError: they do not broadcast.
    """
    shapes = [prune(t.shape) for t in tensors]
    known = [s for s in shapes if isinstance(s, tuple)]
    if all(s is shapes[0] for s in shapes):
        return shapes[0]
    if len(known) < len(shapes):
        rest = [s for s in shapes if not isinstance(s, tuple)]
        if all(s == () for s in known) and all(s is rest[0] for s in rest):
            return rest[0]  # a scalar and a shape that is not known, or twice the same shape
        raise facts.wait(next((s for s in rest if isinstance(s, Unknown)), rest[0]))
    out: Any = known[0]
    for k, shape in enumerate(known[1:], 1):
        out = _pair(facts, out, shape, tensors[: k + 1])
    return out


def _pair(facts: Facts, a: tuple, b: tuple, tensors: Sequence[TensorTerm]) -> tuple[Any, ...]:
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    return tuple(broadcast_size(facts, x, y, k - rank, tensors) for k, (x, y) in enumerate(zip(a, b, strict=True)))


def broadcast_size(facts: Facts, x: Any, y: Any, axis: int, tensors: Sequence[TensorTerm]) -> Any:
    """The size that two sizes of one axis broadcast to.

    Raises:
        ShapeError: they do not.
    """
    if x is None or y is None:
        return None
    x, y = prune(x), prune(y)
    if _is_one(x):
        return y
    if _is_one(y) or x is y:
        return x
    if isinstance(x, Unknown) or isinstance(y, Unknown):
        for s in (x, y):
            if isinstance(s, Unknown):
                facts.waits.append(s)
        return next((s for s in (x, y) if isinstance(s, int)), None)
    if x is ANY or y is ANY:
        other = y if x is ANY else x
        return other if isinstance(other, int) else ANY
    if x == y:
        return x
    shapes = " and ".join(shape_text(t.shape) for t in tensors)
    named = not (isinstance(x, int) and isinstance(y, int))
    advice = "; sizes with different names are different sizes: use one name for both, or write ?" if named else ""
    raise ShapeError(
        f"{facts.name}: the shapes {shapes} do not broadcast: the sizes {size_text(x)} and {size_text(y)} meet in axis "
        f"{axis}{advice}"
    )


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


# Axes.


def axis_of(facts: Facts, axis: int, rank: int, new: int = 0, what: str = "axis") -> int:
    """An axis, counted from the front.

    Raises:
        ShapeError: there is no such axis.
    """
    if not -(rank + new) <= axis < rank + new:
        raise ShapeError(
            f"{facts.name}: there is no {what} {axis} of a tensor with {rank} ax{'is' if rank == 1 else 'es'}"
            f"{' and a new one' if new else ''}; {what} is from {-(rank + new)} to {rank + new - 1}"
        )
    return axis % (rank + new)


def axes_of(facts: Facts, axes: tuple[int, ...] | None, rank: int, exclude: bool = False) -> tuple[int, ...]:
    """Axes, counted from the front, sorted; None and no axes are all, with `exclude` too, as TVM has it.

    Raises:
        ShapeError: there is no such axis, or one occurs twice.
    """
    if not axes:
        return tuple(range(rank))
    found = sorted(axis_of(facts, a, rank) for a in axes)
    if len(set(found)) < len(found):
        raise ShapeError(f"{facts.name}: an axis occurs twice in {list(axes)}")
    return tuple(k for k in range(rank) if k not in found) if exclude else tuple(found)


def reduced(result: str | None = None, accepted: tuple[str, ...] = EVERY) -> Rule:
    """A reduction over the attribute `axis`: a list, all where it is None, or all others with `exclude`."""

    def rule(facts: Facts) -> None:
        t = facts.tensor(0)
        accept(facts, t, accepted)
        dtype = result or t.dtype
        axes, keepdims, exclude = facts.attr("axis"), facts.attr("keepdims"), facts.attr("exclude")
        if not axes and not keepdims:
            facts.gives_tensor((), dtype)
            return
        shape = shape_first(facts, t, dtype)
        over = axes_of(facts, axes, len(shape), bool(exclude))
        if keepdims:
            sizes = tuple(1 if k in over else s for k, s in enumerate(shape))
        else:
            sizes = tuple(s for k, s in enumerate(shape) if k not in over)
        facts.gives_tensor(sizes, dtype)

    return rule


def shape_first(facts: Facts, t: TensorTerm, dtype: Any = None) -> tuple[Any, ...]:
    """The shape of a tensor; where it is not known the dtype of the result is said at least.

    Raises:
        Waiting: the number of axes is not known.
    """
    try:
        return facts.shape(t)
    except Waiting:
        facts.gives_tensor(_open(facts), t.dtype if dtype is None else dtype)
        raise


def require_rank(facts: Facts, t: TensorTerm, ranks: Sequence[int], what: str) -> tuple[Any, ...]:
    """The shape of a tensor that must have one of some numbers of axes."""
    return facts.rank(t, *ranks, what=what)


def integers(facts: Facts, t: TensorTerm, what: str) -> None:
    """Demand integers.

    Raises:
        TypeError_: there are others.
    """
    dtype = prune(t.dtype)
    if isinstance(dtype, str):
        if dtype not in INTS:
            raise TypeError_(f"{facts.name}: {what} are integers, and this is {show(t)}")
    else:
        facts.waits.append(dtype)


def tuples_of(types: Sequence[Any]) -> Any:
    """A result that is a tuple."""
    return tuple_term(types)


__all__ = ["ANY", "BITS", "EVERY", "FLOATS", "INTS", "NUMBERS", "Facts", "Rule", "TensorTerm", "Waiting"]
