"""Operators that change shapes and leave the elements as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...abstract.dims import DimLike, divide
from ...abstract.dims import product as product_of
from ...ir.build import Builder, Var
from ...prims.ops.shape import concatenate as concatenate_prim
from ...prims.ops.shape import flip
from ...prims.rules.broadcast import broadcast_to as broadcast_prim
from ...prims.rules.broadcast import reduce_sum
from ...utils.errors import ShapeError, TypeError_
from ..terms.show import shape_text, show
from ..terms.solver import Facts
from ..terms.terms import ANY, TensorTerm, Unknown, prune, tensor, tuple_term
from .declare import Attr, operator
from .rules import axes_of, axis_of, shape_first
from .staged import array, arrays, cut, finished, permuted, reshaped

Compute = Callable[..., Any]

# Reshape.


def _product(*sizes: Any) -> Any:
    return product_of(sizes)


def reshaped_sizes(name: str, shape: Sequence[Any], newshape: Sequence[int], compute: Compute) -> list[Any]:
    """The sizes that a `newshape` asks for.

    0 copies a size, -1 is what is left of the elements, -2 all sizes that are left, -3 the product of two, and -4 splits
    one into the two that follow it, of which one may be -1.

    Args:
        name: the operator.
        shape: the sizes that there are.
        newshape: the codes, and sizes.
        compute: `compute(function, *sizes)`, the function of the sizes as far as they are known.

    Raises:
        ShapeError: the codes do not fit the sizes.
    """  # noqa: DOC501
    out: list[Any] = []
    wildcard: int | None = None
    at = 0
    codes = list(newshape)

    def wrong(why: str) -> ShapeError:
        return ShapeError(f"{name}: newshape={codes} does not fit the shape {shape_text(tuple(shape))}: {why}")

    def taken(count: int) -> list[Any]:
        if at + count > len(shape):
            raise wrong(f"there are only {len(shape)} axes")
        return list(shape[at : at + count])

    k = 0
    while k < len(codes):
        code = codes[k]
        if code > 0:
            out.append(code)
            at += 1
        elif code == 0:
            out += taken(1)
            at += 1
        elif code == -1:
            if wildcard is not None:
                raise wrong("-1 occurs twice")
            wildcard = len(out)
            out.append(-1)
            at += 1
        elif code == -2:
            rest = list(shape[at:])
            out += rest
            at += len(rest)
        elif code == -3:
            out.append(compute(_product, *taken(2)))
            at += 2
        elif code == -4:
            if k + 2 >= len(codes):
                raise wrong("-4 is followed by two sizes")
            (whole,) = taken(1)
            first, second = codes[k + 1], codes[k + 2]
            if first == -1 and second == -1 or first < -1 or second < -1:
                raise wrong("-4 is followed by two sizes, of which one may be -1")
            parts = [whole if p == 0 else p for p in (first, second)]
            if first == -1 or second == -1:
                which, other = (0, parts[1]) if first == -1 else (1, parts[0])
                parts[which] = compute(divide, whole, other)
            out += parts
            at += 1
            k += 2
        else:
            raise wrong(f"there is no code {code}")
        k += 1
    if wildcard is not None:
        have, want = list(shape), [d for i, d in enumerate(out) if i != wildcard]
        for size in list(want):
            match = next((h for h in have if h is size or (size is not ANY and h is not ANY and h == size)), None)
            if match is not None:
                have.pop(next(i for i, h in enumerate(have) if h is match))
                want.pop(next(i for i, w in enumerate(want) if w is size))
        out[wildcard] = compute(lambda *sizes: _left(wrong, sizes[: len(have)], sizes[len(have) :]), *have, *want)
    elif all(isinstance(d, int) for d in (*shape, *out)) and _product(*shape) != _product(*out):
        raise wrong(f"{_product(*shape)} elements do not become {_product(*out)}")
    return out


def _left(wrong: Callable[[str], ShapeError], have: Sequence[Any], want: Sequence[Any]) -> Any:
    total, part = _product(*have), _product(*want)
    if isinstance(total, int) and isinstance(part, int) and (part == 0 or total % part):
        raise wrong(f"{total} elements are no multiple of {part}")
    return divide(total, part)


def _directly(function: Callable[..., Any], *sizes: Any) -> Any:
    return function(*sizes)


def _reshape(facts: Facts) -> None:
    t = facts.tensor(0)
    codes = facts.attr("newshape")
    if all(c > 0 for c in codes) and not isinstance(prune(t.shape), tuple):
        facts.gives_tensor(codes, t.dtype)  # whatever the shape is, if it has that many elements
    shape = shape_first(facts, t)
    facts.gives_tensor(tuple(reshaped_sizes(facts.name, shape, codes, facts.compute)), t.dtype)


@operator("reshape", ("data",), _reshape, {"newshape": Attr("ints"), "allowzero": Attr("bool", False)})
def reshape(b: Builder, data: Var, newshape: tuple[int, ...], allowzero: bool = False) -> Var:
    """Another shape: 0 copies a size, -1 is what is left, -2 all sizes left, -3 joins two, -4 splits one into the next two."""
    x = array(data)
    return finished(reshaped(x, reshaped_sizes("reshape", x.shape, newshape, _directly)))


def _span(name: str, rank: int, begin: int, end: int | None) -> tuple[int, int]:
    first = begin + rank if begin < 0 else begin
    last = rank if end is None else end + rank if end < 0 else end
    if not 0 <= first <= last <= rank:
        raise ShapeError(f"{name}: there are no axes {begin} to {end} of {rank}")
    return first, last


def _like_shape(name: str, data: Sequence[Any], like: Sequence[Any], spans: dict[str, Any]) -> tuple[Any, ...]:
    """The sizes of one tensor, with those of a stretch of axes from another."""
    first, last = _span(name, len(data), spans["lhs_begin"], spans["lhs_end"])
    start, stop = _span(name, len(like), spans["rhs_begin"], spans["rhs_end"])
    return (*data[:first], *like[start:stop], *data[last:])


SPANS = {
    "lhs_begin": Attr("int", 0),
    "lhs_end": Attr("int", None),
    "rhs_begin": Attr("int", 0),
    "rhs_end": Attr("int", None),
}


def _reshape_like(facts: Facts) -> None:
    t, like = facts.tensor(0), facts.tensor(1)
    shape, other = shape_first(facts, t), facts.shape(like)
    out = _like_shape(facts.name, shape, other, {k: facts.attr(k) for k in SPANS})
    if all(isinstance(d, int) for d in (*shape, *out)) and _product(*shape) != _product(*out):
        raise ShapeError(f"{facts.name}: {show(t)} has not as many elements as {shape_text(out)}")
    facts.gives_tensor(out, t.dtype)


@operator("reshape_like", ("data", "shape_like"), _reshape_like, SPANS)
def reshape_like(b: Builder, data: Var, shape_like: Var, **spans: Any) -> Var:
    """The shape of another tensor, or of a stretch of its axes."""
    x, like = array(data), array(shape_like)
    return finished(
        reshaped(x, _like_shape("reshape_like", x.shape, like.shape, {**dict.fromkeys(SPANS), **_zeros(spans)}))
    )


def _zeros(spans: dict[str, Any]) -> dict[str, Any]:
    return {"lhs_begin": 0, "rhs_begin": 0, **spans}


def _batch_flatten(facts: Facts) -> None:
    t = facts.tensor(0)
    shape = shape_first(facts, t)
    if not shape:
        raise ShapeError("nn.batch_flatten takes a tensor with at least one axis")
    first, *rest = shape
    facts.gives_tensor((first, facts.compute(_product, *rest)), t.dtype)


@operator("nn.batch_flatten", ("data",), _batch_flatten)
def batch_flatten(b: Builder, data: Var) -> Var:
    """All axes behind the first become one."""
    x = array(data)
    return reshaped(x, [x.shape[0], _product(*x.shape[1:])])


# Axes.


def _expand_dims(facts: Facts) -> None:
    t, new = facts.tensor(0), facts.attr("num_newaxis")
    shape = shape_first(facts, t)
    if new < 0:
        raise ShapeError(f"{facts.name}: num_newaxis is {new}")
    at = axis_of(facts, facts.attr("axis"), len(shape), 1)
    facts.gives_tensor((*shape[:at], *(1,) * new, *shape[at:]), t.dtype)


@operator("expand_dims", ("data",), _expand_dims, {"axis": Attr("int"), "num_newaxis": Attr("int", 1)})
def expand_dims(b: Builder, data: Var, axis: int, num_newaxis: int = 1) -> Var:
    """New axes of size 1, before an axis."""
    x = array(data)
    at = axis % (x.ndim + 1)
    return finished(reshaped(x, [*x.shape[:at], *(1,) * num_newaxis, *x.shape[at:]]))


def _squeeze(facts: Facts) -> None:
    t, axes = facts.tensor(0), facts.attr("axis")
    shape = shape_first(facts, t)
    if axes is None:
        sizes = [facts.size(s) for s in shape]
        if not all(isinstance(s, int) for s in sizes):
            raise TypeError_(f"squeeze of {show(t)} needs the attribute axis: only a run tells which sizes are 1")
        facts.gives_tensor(tuple(s for s in sizes if s != 1), t.dtype)
        return
    over = axes_of(facts, axes, len(shape)) if axes else ()
    for k in over:
        facts.same_size(shape[k], 1, f"squeeze: axis {k} of {show(t)} does not have size 1")
    facts.gives_tensor(tuple(s for k, s in enumerate(shape) if k not in over), t.dtype)


@operator("squeeze", ("data",), _squeeze, {"axis": Attr("ints", None)})
def squeeze(b: Builder, data: Var, axis: Any = None) -> Var:
    """Without axes of size 1: those given, or all.

    Raises:
        ShapeError: the shapes do not fit.
    """
    x = array(data)
    over = [k for k, s in enumerate(x.shape) if s == 1] if axis is None else [a % x.ndim for a in axis]
    for k in over:
        if x.shape[k] != 1:
            raise ShapeError(f"squeeze: axis {k} of a tensor of shape {x.shape} does not have size 1")
    return finished(reshaped(x, [s for k, s in enumerate(x.shape) if k not in over]))


def _transpose(facts: Facts) -> None:
    t, axes = facts.tensor(0), facts.attr("axes")
    shape = shape_first(facts, t)
    order = _order(facts.name, axes, len(shape))
    facts.gives_tensor(tuple(shape[k] for k in order), t.dtype)


def _order(name: str, axes: Any, rank: int) -> tuple[int, ...]:
    if not axes:
        return tuple(reversed(range(rank)))
    if sorted(a % rank if -rank <= a < rank else a for a in axes) != list(range(rank)):
        raise ShapeError(f"{name}: axes={list(axes)} is no order of {rank} axes")
    return tuple(a % rank for a in axes)


@operator("transpose", ("data",), _transpose, {"axes": Attr("ints", None)})
def transpose(b: Builder, data: Var, axes: Any = None) -> Var:
    """The axes in another order; by default in the opposite one."""
    x = array(data)
    return finished(permuted(x, _order("transpose", axes, x.ndim)))


def _reverse(facts: Facts) -> None:
    t = facts.tensor(0)
    facts.gives(t)
    axes_of(facts, facts.attr("axis"), len(facts.shape(t)))


@operator("reverse", ("data",), _reverse, {"axis": Attr("ints")})
def reverse(b: Builder, data: Var, axis: tuple[int, ...]) -> Var:
    """The elements in the opposite order along an axis."""
    x = array(data)
    return flip(x, axes=tuple(sorted(a % x.ndim for a in axis)))


# Joining and splitting.


def joined_shape(facts: Facts, parts: list[TensorTerm], axis: int) -> tuple[Any, ...]:
    """The sizes of tensors one behind the other along an axis.

    Raises:
        ShapeError: the shapes do not fit.
    """
    shapes = [facts.shape(p) for p in parts]
    rank = len(shapes[0])
    if any(len(s) != rank for s in shapes):
        raise ShapeError(f"{facts.name}: tensors with different numbers of axes: {', '.join(map(show, parts))}")
    at = axis_of(facts, axis, rank)
    out: list[Any] = []
    for k in range(rank):
        sizes = [s[k] for s in shapes]
        if k == at:
            out.append(facts.compute(lambda *s: sum(s[1:], s[0]), *sizes))
            continue
        best = next((s for s in sizes if prune(s) is not ANY), sizes[0])
        for size in sizes:
            facts.same_size(
                best,
                size,
                f"{facts.name}: the sizes of axis {k} differ: {', '.join(map(show, parts))}; only those of axis {at} may",
            )
        out.append(best)
    return tuple(out)


def _tuple_of_tensors(facts: Facts) -> list[TensorTerm]:
    parts = facts.tensors(0)
    if not parts:
        raise TypeError_(f"{facts.name} of no tensors")
    facts.same_dtype(*parts)
    return parts


def _concatenate(facts: Facts) -> None:
    parts = _tuple_of_tensors(facts)
    shape_first(facts, parts[0])
    facts.gives_tensor(joined_shape(facts, parts, facts.attr("axis")), parts[0].dtype)


@operator("concatenate", ("data",), _concatenate, {"axis": Attr("int", 0)})
def concatenate(b: Builder, data: Any, axis: int = 0) -> Var:
    """Tensors one behind the other, along an axis."""
    parts = arrays(b, data)
    return parts[0] if len(parts) == 1 else concatenate_prim(*parts, axis=axis % parts[0].ndim)


def _stack(facts: Facts) -> None:
    parts = _tuple_of_tensors(facts)
    shape = shape_first(facts, parts[0])
    for p in parts[1:]:
        facts.equal(parts[0].shape, p.shape)
    at = axis_of(facts, facts.attr("axis"), len(shape), 1)
    facts.gives_tensor((*shape[:at], len(parts), *shape[at:]), parts[0].dtype)


@operator("stack", ("data",), _stack, {"axis": Attr("int", 0)})
def stack(b: Builder, data: Any, axis: int = 0) -> Var:
    """Tensors of one shape, along a new axis."""
    parts = arrays(b, data)
    at = axis % (parts[0].ndim + 1)
    with_axis = [reshaped(p, [*p.shape[:at], 1, *p.shape[at:]]) for p in parts]
    return with_axis[0] if len(parts) == 1 else concatenate_prim(*with_axis, axis=at)


def _split_sizes(facts: Any, size: Any, where: Any, axis: int) -> list[Any]:
    if isinstance(where, int):
        if where < 1:
            raise ShapeError(f"split: indices_or_sections={where} is not positive")

        def part(n: Any) -> Any:
            if isinstance(n, int) and n % where:
                raise ShapeError(f"split: axis {axis} has size {n}, which is no multiple of {where}")
            return divide(n, where)

        return [facts.compute(part, size)] * where
    cuts = [0, *where]
    if any(a > c for a, c in zip(cuts, cuts[1:], strict=False)) or isinstance(size, int) and cuts[-1] > size:
        raise ShapeError(
            f"split: the places {list(where)} do not ascend within axis {axis}, which has size {show(size)}"
        )
    return [*(c - a for a, c in zip(cuts, cuts[1:], strict=False)), facts.compute(lambda n: n - cuts[-1], size)]


def _split(facts: Facts) -> None:
    t, where = facts.tensor(0), facts.attr("indices_or_sections")
    sections = where if isinstance(where, int) else len(where) + 1
    if isinstance(prune(t.shape), Unknown) and isinstance(prune(facts.relation.result), Unknown):
        facts.gives(tuple_term(TensorTerm(Unknown("Shape", facts.solver.level), t.dtype) for _ in range(sections)))
    shape = facts.shape(t)
    at = axis_of(facts, facts.attr("axis"), len(shape))
    sizes = _split_sizes(facts, prune(shape[at]), where, at)
    facts.gives(tuple_term(tensor((*shape[:at], s, *shape[at + 1 :]), t.dtype) for s in sizes))


class _Known:
    """Computes with sizes that are known."""

    compute = staticmethod(_directly)


@operator("split", ("data",), _split, {"indices_or_sections": Attr("sections"), "axis": Attr("int", 0)})
def split(b: Builder, data: Var, indices_or_sections: Any, axis: int = 0) -> tuple[Var, ...]:
    """Equal parts of an axis, or those between given places; a tuple."""
    x = array(data)
    at = axis % x.ndim
    out, start = [], 0
    for size in _split_sizes(_Known, x.shape[at], indices_or_sections, at):
        out.append(cut(x, at, start, size))
        start = start + size
    return tuple(out)


# Repetition.


def _tile(facts: Facts) -> None:
    t, reps = facts.tensor(0), facts.attr("reps")
    shape = list(shape_first(facts, t))
    rank = max(len(shape), len(reps))
    shape, reps = [1] * (rank - len(shape)) + shape, [1] * (rank - len(reps)) + list(reps)
    facts.gives_tensor(tuple(facts.compute(_product, s, r) for s, r in zip(shape, reps, strict=True)), t.dtype)


@operator("tile", ("data",), _tile, {"reps": Attr("ints")})
def tile(b: Builder, data: Var, reps: tuple[int, ...]) -> Var:
    """The tensor repeated along each axis, as a whole."""
    x = array(data)
    rank = max(x.ndim, len(reps))
    shape, times = [1] * (rank - x.ndim) + list(x.shape), [1] * (rank - len(reps)) + list(reps)
    spread = reshaped(x, [d for s in shape for d in (1, s)])
    wide = broadcast_prim(spread, shape=tuple(d for s, r in zip(shape, times, strict=True) for d in (r, s)))
    return finished(reshaped(wide, [s * r for s, r in zip(shape, times, strict=True)]))


def _repeat(facts: Facts) -> None:
    t, times = facts.tensor(0), facts.attr("repeats")
    shape = shape_first(facts, t)
    at = axis_of(facts, facts.attr("axis"), len(shape))
    size = facts.compute(lambda n: n * times, shape[at])
    facts.gives_tensor((*shape[:at], size, *shape[at + 1 :]), t.dtype)


@operator("repeat", ("data",), _repeat, {"repeats": Attr("int"), "axis": Attr("int", 0)})
def repeat(b: Builder, data: Var, repeats: int, axis: int = 0) -> Var:
    """Each element along an axis repeated."""
    x = array(data)
    at = axis % x.ndim
    front, size, rest = x.shape[:at], x.shape[at], x.shape[at + 1 :]
    wide = broadcast_prim(reshaped(x, [*front, size, 1, *rest]), shape=(*front, size, repeats, *rest))
    return reshaped(wide, [*front, size * repeats, *rest])


def _fits(facts: Facts, shape: Sequence[Any], wanted: Sequence[Any], t: TensorTerm) -> None:
    """Demand that a shape broadcasts to another.

    Raises:
        ShapeError: the shapes do not fit.
    """
    if len(shape) > len(wanted):
        raise ShapeError(f"{facts.name}: {show(t)} does not broadcast to {shape_text(tuple(wanted))}: it has more axes")
    for have, want in zip(reversed(shape), reversed(wanted), strict=False):
        have, want = prune(have), prune(want)
        if have is ANY or want is ANY or isinstance(have, int) and have == 1 or have is want:
            continue
        if isinstance(have, Unknown) or isinstance(want, Unknown):
            facts.waits.extend(s for s in (have, want) if isinstance(s, Unknown))
        elif have != want:
            raise ShapeError(f"{facts.name}: {show(t)} does not broadcast to {shape_text(tuple(wanted))}")


def _broadcast_to(facts: Facts) -> None:
    t, shape = facts.tensor(0), facts.attr("shape")
    facts.gives_tensor(shape, t.dtype)
    _fits(facts, facts.shape(t), shape, t)


@operator("broadcast_to", ("data",), _broadcast_to, {"shape": Attr("ints"), "dtype": Attr("dtype", None)})
def broadcast_to(b: Builder, data: Var, shape: tuple[int, ...], dtype: Any = None) -> Var:
    """A larger shape, along whose new axes, and axes of size 1, the elements are repeated."""
    return finished(broadcast_prim(array(data), shape=tuple(shape)))


def _broadcast_to_like(facts: Facts) -> None:
    t, like = facts.tensor(0), facts.tensor(1)
    facts.gives_tensor(like.shape, t.dtype)
    _fits(facts, facts.shape(t), facts.shape(like), t)


@operator("broadcast_to_like", ("data", "broadcast_type"), _broadcast_to_like)
def broadcast_to_like(b: Builder, data: Var, broadcast_type: Var) -> Var:
    """The shape of another tensor; elements are repeated."""
    return finished(broadcast_prim(array(data), shape=array(broadcast_type).shape))


def collapsed(x: Var, shape: Sequence[DimLike]) -> Var:
    """The sum of what broadcasting of a shape would repeat: the transpose of broadcasting."""
    extra = x.ndim - len(shape)
    over = [k for k in range(x.ndim) if k < extra or shape[k - extra] == 1 and x.shape[k] != 1]
    out = reduce_sum(x, axes=tuple(over), keepdims=True) if over else x
    return finished(reshaped(out, shape))


def _collapse_like(facts: Facts) -> None:
    t, like = facts.tensor(0), facts.tensor(1)
    facts.gives_tensor(like.shape, t.dtype)
    _fits(facts, facts.shape(like), facts.shape(t), like)


@operator("collapse_sum_like", ("data", "collapse_type"), _collapse_like)
def collapse_sum_like(b: Builder, data: Var, collapse_type: Var) -> Var:
    """Sums over what broadcasting the other tensor to this one would repeat."""
    return collapsed(array(data), array(collapse_type).shape)


def _collapse_to(facts: Facts) -> None:
    t, shape = facts.tensor(0), facts.attr("shape")
    facts.gives_tensor(shape, t.dtype)
    _fits(facts, shape, facts.shape(t), TensorTerm(shape, t.dtype))


@operator("collapse_sum_to", ("data",), _collapse_to, {"shape": Attr("ints")})
def collapse_sum_to(b: Builder, data: Var, shape: tuple[int, ...]) -> Var:
    """Sums over what broadcasting the shape to that of the tensor would repeat."""
    return collapsed(array(data), shape)
