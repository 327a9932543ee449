"""Shape arithmetic: operators on tensors of sizes, element by element.

Where an input of a node holds symbolic dimensions (`Sizes`) and all others are known, the result is computed here, on NumPy
arrays of objects: the polynomials of `abstract.dims` are added, multiplied, gathered, joined. What has no symbolic result (the
quotient of a size by a float, say) is None, and is then computed at run time from the sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.dims import Dim, may_be_equal, never_negative
from .values import Sizes, has_dims

FOLDS: dict[str, Callable] = {}


class NotSymbolic(Exception):
    """There is no symbolic result."""


def fold(*names: str):
    """Declare what an operator means for arrays of objects: `(inputs, attributes, dtype) -> array`; a decorator."""

    def declare(function: Callable) -> Callable:
        FOLDS.update(dict.fromkeys(names, function))
        return function

    return declare


def folded(c: Any, operands: list, attributes: dict[str, Any]) -> Any:
    """The symbolic result of a node, `Sizes` or a tuple of them; None where it is computed at run time."""
    function = FOLDS.get(c.operator.name)
    if function is None or c.operator.domain:
        return None
    known, any_dims, dtype = [], False, None
    for x in operands:
        if x is None:
            known.append(None)
            continue
        array = getattr(x, "known", None)
        if array is None or x.narrow is not None:
            return None
        any_dims |= has_dims(array)
        if has_dims(array) and dtype is None:
            dtype = x.dtype
        known.append(array)
    if not any_dims:
        return None
    try:
        result = function(c, known, attributes, dtype)
    except (NotSymbolic, IndexError, ValueError, TypeError):
        return None
    return result


def _each(function: Callable) -> Callable:
    """A function of numbers, on arrays that broadcast."""

    def apply(c, known, attributes, dtype):
        arrays = np.broadcast_arrays(*[np.asarray(k, dtype=object) for k in known if k is not None])
        out = np.empty(arrays[0].shape, object)
        for index in np.ndindex(*out.shape):
            out[index] = function(*[_whole(a[index], dtype) for a in arrays])
        return Sizes.of(out, dtype)

    return apply


def _whole(value: Any, dtype: str) -> Any:
    """An element as an int or a dimension.

    Raises:
        NotSymbolic: it is a float with a fraction.
    """
    if isinstance(value, Dim):
        return value
    if float(value) != int(value):
        raise NotSymbolic
    return int(value)


def _quotient(a, b):
    if isinstance(b, Dim) and a != b or b == 0 or isinstance(a, int) and isinstance(b, Dim):
        raise NotSymbolic
    if a == b:
        return 1
    if not (never_negative(a) and never_negative(b)):
        raise NotSymbolic
    return a // b


def _exact_quotient(a, b):
    out = _quotient(a, b)
    if out * b != a:
        raise NotSymbolic
    return out


def _divide(c, known, attributes, dtype):
    return _each(_quotient if "int" in dtype else _exact_quotient)(c, known, attributes, dtype)


def _remainder(a, b):
    if isinstance(a, Dim) and isinstance(b, int) and b > 0 and all(v % b == 0 for v in a.terms.values()):
        return 0
    if isinstance(a, Dim) and isinstance(b, int) and b > 0 and never_negative(a):
        return a - (a // b) * b
    raise NotSymbolic


fold("Add")(_each(lambda a, b: a + b))
fold("Sub")(_each(lambda a, b: a - b))
fold("Mul")(_each(lambda a, b: a * b))
fold("Neg")(_each(lambda a: 0 - a))
fold("Div")(_divide)
fold("Mod")(_each(_remainder))
fold("Floor", "Ceil", "Round")(_each(lambda a: a))


@fold("Abs")
def _abs(c, known, attributes, dtype):
    if not all(never_negative(e) for e in known[0].ravel().tolist()):
        raise NotSymbolic
    return Sizes.of(known[0], dtype)


@fold("Equal")
def _equal(c, known, attributes, dtype):
    def same(a, b):
        if a == b:
            return True
        small, dim = (a, b) if isinstance(a, int) else (b, a)
        if isinstance(small, int) and isinstance(dim, Dim) and small < 0 and never_negative(dim):
            return False
        if isinstance(a, Dim) or isinstance(b, Dim):
            if may_be_equal(a, b):
                raise NotSymbolic
        return False

    found = _each(same)(c, known, attributes, dtype)
    return np.asarray(found.array, bool)


@fold("Cast", "CastLike")
def _cast(c, known, attributes, dtype):
    to = attributes.get("to", "int64")
    if to not in ("int32", "int64", "float32", "float64"):
        raise NotSymbolic
    return Sizes.of(known[0], to)


@fold("Identity")
def _identity(c, known, attributes, dtype):
    return Sizes.of(known[0], dtype)


@fold("Gather")
def _gather(c, known, attributes, dtype):
    if has_dims(known[1]):
        raise NotSymbolic
    return Sizes.of(np.take(known[0], known[1].astype(int), axis=attributes.get("axis", 0)), dtype)


@fold("Concat")
def _concat(c, known, attributes, dtype):
    return Sizes.of(np.concatenate([np.asarray(k, object) for k in known], axis=attributes.get("axis", 1)), dtype)


@fold("Squeeze")
def _squeeze(c, known, attributes, dtype):
    axes = known[1] if len(known) > 1 else attributes.get("axes")
    return Sizes.of(np.squeeze(known[0], None if axes is None else tuple(int(a) for a in axes)), dtype)


@fold("Unsqueeze")
def _unsqueeze(c, known, attributes, dtype):
    axes = known[1] if len(known) > 1 else attributes["axes"]
    out, rank = known[0], known[0].ndim + len(axes)
    for axis in sorted(int(a) % rank for a in axes):
        out = np.expand_dims(out, axis)
    return Sizes.of(out, dtype)


@fold("Reshape")
def _reshape(c, known, attributes, dtype):
    if has_dims(known[1]):
        raise NotSymbolic
    return Sizes.of(known[0].reshape(tuple(int(d) for d in known[1])), dtype)


@fold("Transpose")
def _transpose(c, known, attributes, dtype):
    return Sizes.of(np.transpose(known[0], attributes.get("perm")), dtype)


@fold("Expand")
def _expand(c, known, attributes, dtype):
    if has_dims(known[1]):
        raise NotSymbolic
    return Sizes.of(known[0] * np.ones(tuple(int(d) for d in known[1]), object), dtype)


@fold("Slice")
def _slice(c, known, attributes, dtype):
    starts, ends, axes, steps = (list(known[1:]) + [None] * 4)[:4] if len(known) > 1 else (None,) * 4
    starts = attributes.get("starts") if starts is None else starts
    ends = attributes.get("ends") if ends is None else ends
    axes = attributes.get("axes") if axes is None else axes
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index: list[Any] = [slice(None)] * known[0].ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if isinstance(start, Dim) or isinstance(end, Dim):
            raise NotSymbolic
        index[int(axis)] = slice(int(start), int(end) if int(end) > -(2**31) else None, int(step))
    return Sizes.of(known[0][tuple(index)], dtype)


@fold("Split")
def _split(c, known, attributes, dtype):
    sizes = known[1] if len(known) > 1 and known[1] is not None else attributes.get("split")
    axis = attributes.get("axis", 0)
    count = known[0].shape[axis]
    each = -(-count // c.outputs)
    sizes = [each] * (c.outputs - 1) + [count - each * (c.outputs - 1)] if sizes is None else [int(s) for s in sizes]
    parts = np.split(known[0], np.cumsum(sizes)[:-1], axis)
    made = tuple(Sizes.of(p, dtype) for p in parts)
    return made if c.outputs > 1 else made[0]


def _reduction(function: Callable) -> Callable:
    def apply(c, known, attributes, dtype):
        x = known[0]
        axes = known[1] if len(known) > 1 and known[1] is not None else attributes.get("axes")
        if axes is None and attributes.get("noop_with_empty_axes"):
            return Sizes.of(x, dtype)
        axes = tuple(range(x.ndim)) if axes is None else tuple(int(a) for a in axes)
        out = function(x, axis=axes, keepdims=bool(attributes.get("keepdims", 1)))
        return Sizes.of(np.asarray(out, object), dtype)

    return apply


fold("ReduceProd")(_reduction(np.multiply.reduce))
fold("ReduceSum")(_reduction(np.add.reduce))


@fold("Where")
def _where(c, known, attributes, dtype):
    if has_dims(known[0]):
        raise NotSymbolic
    return Sizes.of(np.where(known[0].astype(bool), np.asarray(known[1], object), np.asarray(known[2], object)), dtype)


@fold("Min", "Max")
def _extremum(c, known, attributes, dtype):
    sign = 1 if c.operator.name == "Max" else -1

    def choose(*values):
        best = values[0]
        for v in values[1:]:
            away = (v - best) * sign
            if never_negative(away):
                best = v
            elif not never_negative(0 - away):
                raise NotSymbolic
        return best

    return _each(choose)(c, known, attributes, dtype)
