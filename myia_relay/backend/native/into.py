"""Results into arrays of the caller: where native code may write them directly, and what is copied afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.structures import part
from ...abstract.types import Array, NoneT, Ref, Struct, Type, leaves, numpy_dtype
from ...utils.arrays import require_plain_array
from ...utils.errors import ShapeError, TypeError_, ValueError_
from .area import Slots
from .arguments import shape_fits


def _array_leaves(value: Any, t: Type) -> list[Any]:
    if isinstance(t, Struct):
        return [leaf for i, e in enumerate(t.elems) for leaf in _array_leaves(part(value, t, i), e)]
    return [] if isinstance(t, NoneT) else [value]


def _held(values: Any, types: Any) -> list[np.ndarray]:
    """All arrays that arguments consist of."""
    out = []
    for v, t in zip(values, types):
        if isinstance(t, Struct):
            out += _held([part(v, t, i) for i in range(len(t.elems))], t.elems)
        elif isinstance(t, Ref):
            out += list(v.arrays)
        elif isinstance(t, Array):
            out.append(np.asarray(v))
    return out


def lie_apart(own: bool, targets: tuple[np.ndarray, ...], arrays: tuple[np.ndarray, ...]) -> bool:
    """Whether targets overlap neither each other nor other arrays.

    Args:
        own: whether all of them own their memory: then it is enough that they are different ones.
        targets: the arrays that are written.
        arrays: those that are read.
    """
    if own:
        ids = set(map(id, targets))
        return len(ids) == len(targets) and ids.isdisjoint(map(id, arrays))
    return not any(
        np.may_share_memory(one, other) for k, one in enumerate(targets) for other in (*arrays, *targets[:k])
    )


def choose_targets(tree: Any, signature: Any, values: tuple) -> tuple[list, list]:
    """The arrays that results go to, and copies to make afterwards (target, temporary): where a target overlaps an argument.

    Raises:
        TypeError_: a target is no plain array of the result's dtype.
        ShapeError: a target has another shape than the result.
        ValueError_: a target is read-only.
    """
    given = _array_leaves(tree, signature.output)
    types: list[Any] = [t for t in leaves(signature.output) if not isinstance(t, NoneT)]  # `results` says of what class
    kinds = [k for k in signature.results if k != "none"]
    sources = _held(values, signature.params)
    own = all(type(x) is np.ndarray and x.flags.owndata for x in (*given, *sources))
    apart = own and lie_apart(own, tuple(given), tuple(sources))
    outs: list[Any] = []
    late: list[Any] = []
    for target, t, kind in zip(given, types, kinds):
        if not isinstance(target, np.ndarray) or target.dtype != numpy_dtype(t.dtype):
            raise TypeError_(f"into needs an array of {t} for each result")
        require_plain_array(target)
        if not shape_fits(target.shape, t.shape):
            raise ShapeError(f"into is given an array of shape {target.shape} for a result of type {t}")
        if not target.flags.writeable:
            raise ValueError_("into is given a read-only array")
        if kind[0] == "array":
            direct = target.flags.carray and type(target) is np.ndarray and target.dtype.isnative
            overlaps = not apart and any(np.may_share_memory(target, s) for s in (*sources, *outs))
            if direct and not overlaps:
                outs.append(target)
            else:
                outs.append(np.empty(target.shape, numpy_dtype(t.dtype)))
                late.append((target, outs[-1]))
    return outs, late


class Finish:
    """What a call into arrays does afterwards: copies, and numbers to their places."""

    def __init__(self, t: Type, signature: Any):
        self.type, self.signature = t, signature
        self.leaves: list[Any] = leaves(t)  # `results` says of what class each is

    def __call__(self, out: Any, late: Any, returned: Any, area: Any) -> Any:
        for target, source in late:
            target[...] = source
        targets = iter(_array_leaves(out, self.type))
        for t, kind in zip(self.leaves, self.signature.results):
            if kind == "none":
                continue
            target = next(targets)
            if kind == "return":
                target[...] = returned
            elif kind[0] == "sized":
                found = Slots(area[0], self.signature.state_slots).array(kind[1], t.dtype, kind[2])
                if target.shape != found.shape:
                    raise ShapeError(
                        f"into is given an array of shape {target.shape} for a result of shape {found.shape}"
                    )
                target[...] = found
            elif kind[0] == "slot":
                target[...] = Slots(area[0], self.signature.state_slots).scalar(kind[1], t)
        return out
