"""Parts of tensors at places that are known: slices, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...abstract.dims import DimLike
from ...ir.build import Builder, Var
from ...prims.ops.shape import concatenate, flip
from ...prims.ops.shape import slice_ as slice_prim
from ...prims.rules.broadcast import broadcast_to
from ...utils.errors import ShapeError, TypeError_
from ..terms.show import show, size_text
from ..terms.solver import Facts
from ..terms.terms import ANY, prune
from .declare import Attr, operator
from .rules import axis_of, shape_first
from .staged import array, cut, finished, known, padded


def _stretch(size: Any, begin: int | None, end: int | None, step: int) -> tuple[int, Any]:
    """Where a slice begins, and how many elements it has.

    Args:
        size: of the axis: an int; a symbol where the slice depends on nothing else of it than `size_text` can say.
        begin: counted from the end where negative; None for the end that it comes from.
        end: likewise, not included.
        step: not 0.

    Raises:
        TypeError_: it depends on a size that is not known.
    """
    if isinstance(size, int):
        start, stop, _ = slice(begin, end, step).indices(size)
        return start, max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
    if step > 0 and (begin or 0) >= 0 and (end is None or end < 0):
        start = begin or 0
        stop = size if end is None else size + end
        return start, (stop - start + step - 1) // step
    raise TypeError_(f"a slice from {begin} to {end} of an axis of size {size_text(size)} depends on what that is")


LARGE = (1 << 31) - 1


def slices(rank: int, attrs: dict[str, Any], name: str) -> list[tuple[int | None, int | None, int]]:
    """Begin, end and step for each axis, as `strided_slice` has them.

    Raises:
        ShapeError: there are more than axes.
        TypeError_: a step is 0.
    """
    begin, end, strides, axes = attrs["begin"], attrs["end"], attrs["strides"] or (1,), attrs["axes"]
    by_size = attrs["slice_mode"] == "size"
    at = list(range(len(begin))) if axes is None else list(axes)
    if len(at) > rank or any(not -rank <= k < rank for k in at) or len(begin) != len(at) or len(end) != len(at):
        raise ShapeError(f"{name}: begin={list(begin)}, end={list(end)} do not fit {rank} axes")
    out: list[tuple[int | None, int | None, int]] = [(None, None, 1)] * rank
    for k, axis in enumerate(at):
        step = 1 if by_size else strides[k] if k < len(strides) else strides[0] if len(strides) == 1 else 1
        if step == 0:
            raise TypeError_(f"{name}: a stride is 0")
        first, last = begin[k], end[k]
        if by_size:
            stop = None if last == -1 else first + last
            out[axis % rank] = first, None if stop == 0 and first < 0 else stop, 1
            continue
        stop = None if last >= LARGE or step < 0 and last <= -LARGE else last
        out[axis % rank] = first, stop, step
    return out


def _strided_slice(facts: Facts) -> None:
    t = facts.tensor(0)
    shape = shape_first(facts, t)
    attrs = {k: facts.attr(k) for k in SLICE}
    parts = slices(len(shape), attrs, facts.name)
    sizes = []
    for size, part in zip(shape, parts, strict=True):
        if part == (None, None, 1):
            sizes.append(size)
        elif prune(size) is ANY:
            sizes.append(ANY)
        else:
            sizes.append(facts.compute(lambda n, p=part: _symbolic(n, p), size))
    facts.gives_tensor(tuple(sizes), t.dtype)


def _symbolic(size: Any, part: tuple) -> Any:
    """The size of a slice; `ANY` where only a run tells."""
    try:
        return _stretch(size, *part)[1]
    except TypeError_:
        return ANY


SLICE = {
    "begin": Attr("ints"),
    "end": Attr("ints"),
    "strides": Attr("ints", None),
    "slice_mode": Attr(("end", "size"), "end"),
    "axes": Attr("ints", None),
}


def sliced(x: Var, parts: Sequence[tuple[int | None, int | None, int]]) -> Var:
    """A part of an array, with negative steps."""
    starts: list[int] = []
    sizes: list[DimLike] = []
    steps: list[int] = []
    back = []
    for k, (size, (begin, end, step)) in enumerate(zip(x.shape, parts, strict=True)):
        start, count = _stretch(size, begin, end, step)
        if step < 0:
            back.append(k)
            if count:
                start, step = start + (count - 1) * step, -step
            else:
                start, step = 0, 1
        starts.append(start if count != 0 else 0)
        sizes.append(count)
        steps.append(step)
    if tuple(sizes) != x.shape or any(s != 1 for s in steps):
        x = slice_prim(x, starts=tuple(starts), sizes=tuple(sizes), steps=tuple(steps))
    return flip(x, axes=tuple(back)) if back else x


@operator("strided_slice", ("data",), _strided_slice, SLICE)
def strided_slice(b: Builder, data: Var, begin, end, strides=None, slice_mode="end", axes=None) -> Var:
    """A part of a tensor: from `begin` to `end`, or `end` elements with slice_mode="size"; negative numbers count from the end."""
    x = array(data)
    attrs = {"begin": begin, "end": end, "strides": strides, "slice_mode": slice_mode, "axes": axes}
    return finished(sliced(x, slices(x.ndim, attrs, "strided_slice")))


def _slice_like(facts: Facts) -> None:
    t, like = facts.tensor(0), facts.tensor(1)
    shape, other = list(shape_first(facts, t)), facts.shape(like)
    axes = facts.attr("axes")
    over = range(len(other)) if axes is None else [axis_of(facts, a, len(shape)) for a in axes]
    for k in over:
        if k >= len(other) or k >= len(shape):
            raise ShapeError(f"{facts.name}: {show(t)} and {show(like)} do not have an axis {k} both")
        have, want = prune(shape[k]), prune(other[k])
        if isinstance(have, int) and isinstance(want, int) and want > have:
            raise ShapeError(f"{facts.name}: axis {k} of {show(t)} is shorter than that of {show(like)}")
        shape[k] = other[k]
    facts.gives_tensor(tuple(shape), t.dtype)


@operator("slice_like", ("data", "shape_like"), _slice_like, {"axes": Attr("ints", None)})
def slice_like(b: Builder, data: Var, shape_like: Var, axes: Any = None) -> Var:
    """The first elements along each axis, as many as another tensor has."""
    x, like = array(data), array(shape_like)
    for k in range(like.ndim) if axes is None else [a % x.ndim for a in axes]:
        x = cut(x, k, 0, like.shape[k])
    return x


# Padding.


def _pad(facts: Facts) -> None:
    t = facts.tensor(0)
    if facts.count > 1:
        value = facts.tensor(1)
        facts.equal(value.shape, ())
        facts.same_dtype(t, value)
    shape = shape_first(facts, t)
    sides = pad_sides(facts.name, facts.attr("pad_width"), len(shape))
    sizes = []
    for k, (size, (low, high)) in enumerate(zip(shape, sides, strict=True)):
        if facts.attr("pad_mode") == "reflect" and isinstance(size, int) and max(low, high) >= max(size, 1):
            raise ShapeError(
                f"{facts.name}: axis {k} of {show(t)} is too short to be reflected {max(low, high)} elements"
            )
        sizes.append(size if (low, high) == (0, 0) else facts.compute(lambda n, by=low + high: n + by, size))
    facts.gives_tensor(tuple(sizes), t.dtype)


def pad_sides(name: str, widths: Any, rank: int) -> list[tuple[int, int]]:
    """How much is added before and after each axis.

    Raises:
        ShapeError: it is said for another number of axes.
    """
    if len(widths) == 2 * rank and all(isinstance(w, int) for w in widths):
        widths = tuple(zip(widths[::2], widths[1::2], strict=True))
    if len(widths) != rank or not all(isinstance(w, tuple) and len(w) == 2 for w in widths):
        raise ShapeError(f"{name}: pad_width={widths} is not [before, after] for each of {rank} axes")
    return [(a, c) for a, c in widths]


PAD = {
    "pad_width": Attr("ints"),
    "pad_mode": Attr(("constant", "edge", "reflect"), "constant"),
    "pad_value": Attr("number", 0),
}


@operator("nn.pad", ("data", "pad_value"), _pad, PAD, optional=1)
def pad(
    b: Builder, data: Var, value: Any = None, pad_width: Any = (), pad_mode: str = "constant", pad_value: Any = 0
) -> Var:
    """A border of a number, of the outermost elements ("edge"), or of those within, mirrored ("reflect")."""
    x = array(data)
    sides = pad_sides("nn.pad", pad_width, x.ndim)
    if pad_mode == "constant":
        return padded(x, sides, pad_value if value is None else value)
    for axis, (low, high) in enumerate(sides):
        if not low and not high:
            continue
        (size,) = known(x, [axis], "nn.pad")
        inner = 0 if pad_mode == "edge" else 1
        parts = [x]
        if low:
            first = cut(x, axis, inner, 1 if pad_mode == "edge" else low)
            parts.insert(0, _repeated(first, axis, low) if pad_mode == "edge" else flip(first, axes=(axis,)))
        if high:
            last = cut(x, axis, size - 1 - (0 if pad_mode == "edge" else high), 1 if pad_mode == "edge" else high)
            parts.append(_repeated(last, axis, high) if pad_mode == "edge" else flip(last, axes=(axis,)))
        x = concatenate(*parts, axis=axis)
    return x


def _repeated(x: Var, axis: int, times: int) -> Var:
    return broadcast_to(x, shape=tuple(times if k == axis else d for k, d in enumerate(x.shape)))
