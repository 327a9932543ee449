"""Pooling over one, two and three axes: windows, adaptive windows, everything; in any layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...abstract.types import FLOATS
from ...ir.build import Builder, Var
from ...prims.ops import elementwise as P
from ...prims.ops import nn
from ...prims.ops.reduction import reduce_max
from ...prims.ops.shape import concatenate
from ...prims.rules.broadcast import broadcast_to, reduce_sum
from ...utils.errors import ShapeError
from ..terms.solver import Facts
from .convolution import SPATIAL, Sides, sides_of, spread, window_count
from .declare import Attr, operator
from .layouts import canonical, from_letters, in_letters, letters_of, parse_layout, split_sizes
from .reductions import mean_of
from .rules import Rule, accept
from .staged import array, constant, cut, known, reshaped


def _give(facts: Facts, layout: Any, letters: str, sizes: Sequence[Any], dtype: Any) -> None:
    out = facts.attr("out_layout")
    target = parse_layout(out, facts.name) if out else layout
    if sorted(letters_of(target)) != sorted(letters):
        raise ShapeError(f"{facts.name}: out_layout='{out}' has not the axes {letters}")
    named = dict(zip(letters, sizes, strict=True))
    facts.gives_tensor(tuple(split_sizes(target, named, facts.compute, facts.name)), dtype)


def _ceiling(sides: Sides, steps: Sequence[int], ceil_mode: bool) -> Sides:
    """Padding such that rounding the number of windows down rounds it up without."""
    return tuple((a, c + s - 1) for (a, c), s in zip(sides, steps, strict=True)) if ceil_mode else sides


def pool_attrs(axes: int, mean: bool) -> dict[str, Attr]:
    """The attributes of a pooling over some axes, with TVM's defaults."""
    out = {
        "pool_size": Attr("ints"),
        "strides": Attr("ints", (1,) * axes),
        "dilation": Attr("ints", (1,) * axes),
        "padding": Attr("ints", (0,) * axes),
        "layout": Attr("str", f"NC{SPATIAL[axes]}"),
        "out_layout": Attr("str", ""),
        "ceil_mode": Attr("bool", False),
    }
    return {**out, "count_include_pad": Attr("bool", False)} if mean else out


def _pool_rule(axes: int) -> Rule:
    letters = f"NC{SPATIAL[axes]}"

    def rule(facts: Facts) -> None:
        x = facts.tensor(0)
        accept(facts, x, FLOATS)
        (n, c, *size), layout = canonical(facts, x, facts.attr("layout"), letters, "the data")
        window = spread(facts.attr("pool_size"), axes, facts.name, "pool_size")
        steps = spread(facts.attr("strides"), axes, facts.name, "strides")
        dilation = spread(facts.attr("dilation"), axes, facts.name, "dilation")
        sides = _ceiling(sides_of(facts.attr("padding"), axes, facts.name), steps, facts.attr("ceil_mode"))
        places = [
            facts.compute(lambda h, k=k, s=s, d=d, p=p: window_count(h, (k - 1) * d + 1, s, p, facts.name), h)
            for h, k, s, d, p in zip(size, window, steps, dilation, sides, strict=True)
        ]
        _give(facts, layout, letters, (n, c, *places), x.dtype)

    return rule


def pooled(
    x: Var, window: Sequence[int], steps: Sequence[int], sides: Sides, dilation: Sequence[int], mean: bool
) -> Var:
    """The maximum, or the mean with zeros for the padding, of the windows of (N, C, ...)."""
    axes = x.ndim - 2

    def over(y: Var, part: slice, lead: int = 0, rest: int = 0) -> Var:
        """Windows along some axes, with axes of which each element is one before and behind these."""

        def sized(values: Sequence, one: Any) -> tuple:
            return (*(one,) * lead, *values[part], *(one,) * rest)

        around = sized(sides, (0, 0))
        return prim(y, ksize=sized(window, 1), strides=sized(steps, 1), padding=around, **nn.gaps(sized(dilation, 1)))

    prim = nn.avg_pool if mean else nn.max_pool
    if axes == 2:
        return over(x, slice(2))
    if axes == 1:
        n, c, width = x.shape
        out = over(reshaped(x, [n, c, 1, width]), slice(1), lead=1)
        return reshaped(out, [n, c, out.shape[3]])
    # Over three axes: over the last two, then over the first.
    n, c, deep, h, width = x.shape
    flat = over(reshaped(x, [n, c * deep, h, width]), slice(1, 3))
    rows, columns = flat.shape[2:]
    lines = reshaped(flat, [n, c, deep, rows * columns])
    out = over(lines, slice(1), rest=1)
    return reshaped(out, [n, c, out.shape[2], rows, columns])


def _inside(x: Var, window: Sequence[int], steps: Sequence[int], sides: Sides, dilation: Sequence[int]) -> Var:
    """Which part of each window lies within the image: an array that broadcasts with the windows."""
    b = x.builder
    shape = [1, 1, *x.shape[2:]]
    if all(isinstance(s, int) for s in shape):
        out = np.ones([1] * x.ndim)
        for axis, (size, k, s, (low, high), d) in enumerate(
            zip(shape[2:], window, steps, sides, dilation, strict=True), 2
        ):
            assert isinstance(size, int)
            count = window_count(size, (k - 1) * d + 1, s, (low, high), "pooling")
            places = np.arange(count)[:, None] * s - low + np.arange(k) * d
            part = np.maximum(((places >= 0) & (places < size)).sum(1), 1) / k
            out = out * part.reshape([-1 if j == axis else 1 for j in range(x.ndim)])
        return constant(b, out, x.dtype)
    ones = broadcast_to(constant(b, 1, x.dtype), shape=tuple(shape))
    return pooled(ones, window, steps, sides, dilation, True)


def _pool(axes: int, mean: bool) -> None:
    name, letters = f"nn.{'avg' if mean else 'max'}_pool{axes}d", f"NC{SPATIAL[axes]}"
    declared = pool_attrs(axes, mean)

    def function(b: Builder, data: Var, **attrs: Any) -> Var:
        get = {k: a.default for k, a in declared.items()} | attrs
        x = in_letters(array(data), get["layout"], letters, name)
        window = spread(get["pool_size"], axes, name, "pool_size")
        steps = spread(get["strides"], axes, name, "strides")
        dilation = spread(get["dilation"], axes, name, "dilation")
        own = sides_of(get["padding"], axes, name)
        sides = _ceiling(own, steps, get["ceil_mode"])
        out = pooled(x, window, steps, sides, dilation, mean)
        if mean and not get["count_include_pad"] and any(a or c for a, c in sides):
            out = P.div(out, _inside(x, window, steps, sides, dilation))
        return from_letters(out, letters, get["out_layout"] or get["layout"], name)

    doc = (
        "The mean of each window; padding does not count, unless `count_include_pad`."
        if mean
        else "The maximum of each window."
    )
    operator(name, ("data",), _pool_rule(axes), declared, doc=doc)(function)


# Everything, and a number of windows.


def _global_rule(axes: int) -> Rule:
    letters = f"NC{SPATIAL[axes]}"

    def rule(facts: Facts) -> None:
        x = facts.tensor(0)
        accept(facts, x, FLOATS)
        (n, c, *_), layout = canonical(facts, x, facts.attr("layout"), letters, "the data")
        _give(facts, layout, letters, (n, c, *(1,) * axes), x.dtype)

    return rule


def _global(axes: int, mean: bool) -> None:
    name, letters = f"nn.global_{'avg' if mean else 'max'}_pool{axes}d", f"NC{SPATIAL[axes]}"
    declared = {"layout": Attr("str", letters), "out_layout": Attr("str", "")}

    def function(b: Builder, data: Var, layout: str = letters, out_layout: str = "") -> Var:
        x = in_letters(array(data), layout, letters, name)
        over = tuple(range(2, 2 + axes))
        out = mean_of(b, x, over, True) if mean else reduce_max(x, axes=over, keepdims=True)
        return from_letters(out, letters, out_layout or layout, name)

    doc = f"The {'mean' if mean else 'maximum'} of each channel of each example; the axes stay, with size 1."
    operator(name, ("data",), _global_rule(axes), declared, doc=doc)(function)


def _adaptive_sizes(facts: Facts, size: Sequence[Any], axes: int) -> Sequence[Any]:
    wanted = facts.attr("output_size")
    return size if not wanted else spread(wanted, axes, facts.name, "output_size")


def _adaptive_rule(axes: int) -> Rule:
    letters = f"NC{SPATIAL[axes]}"

    def rule(facts: Facts) -> None:
        x = facts.tensor(0)
        accept(facts, x, FLOATS)
        (n, c, *size), layout = canonical(facts, x, facts.attr("layout"), letters, "the data")
        _give(facts, layout, letters, (n, c, *_adaptive_sizes(facts, size, axes)), x.dtype)

    return rule


def _adaptive(axes: int, mean: bool) -> None:
    name, letters = f"nn.adaptive_{'avg' if mean else 'max'}_pool{axes}d", f"NC{SPATIAL[axes]}"
    declared = {"output_size": Attr("ints", None), "layout": Attr("str", letters), "out_layout": Attr("str", "")}

    def function(b: Builder, data: Var, output_size: Any = None, layout: str = letters, out_layout: str = "") -> Var:
        x = in_letters(array(data), layout, letters, name)
        if output_size:
            have = known(x, range(2, 2 + axes), name)
            want = spread(output_size, axes, name, "output_size")
            for axis, (h, w) in enumerate(zip(have, want, strict=True), 2):
                x = _bins(b, x, axis, h, w, mean)
        return from_letters(x, letters, out_layout or layout, name)

    doc = f"{'Means' if mean else 'Maxima'} over as many windows as `output_size` says, which may overlap."
    operator(name, ("data",), _adaptive_rule(axes), declared, doc=doc)(function)


def _bins(b: Builder, x: Var, axis: int, size: int, bins: int, mean: bool) -> Var:
    """Windows from floor(i size / bins) to ceil((i + 1) size / bins) along an axis."""
    if bins == size:
        return x
    parts = []
    for i in range(bins):
        start, stop = i * size // bins, -(-(i + 1) * size // bins)
        part = cut(x, axis, start, stop - start)
        if mean:
            total = reduce_sum(part, axes=(axis,), keepdims=True)
            parts.append(P.div(total, constant(b, stop - start, x.dtype)))
        else:
            parts.append(reduce_max(part, axes=(axis,), keepdims=True))
    return parts[0] if bins == 1 else concatenate(*parts, axis=axis)


for _axes in (1, 2, 3):
    for _mean in (False, True):
        _pool(_axes, _mean)
        _global(_axes, _mean)
        _adaptive(_axes, _mean)
