"""Convolutions over one, two and three axes, and their transposes; in any layout, with strides, dilation and groups.

All become the convolution of images of `prims`: one axis is an image one pixel high, the taps along a third axis are further
channels. A transposed convolution is the adjoint of a convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...abstract.dims import DimLike
from ...abstract.types import FLOATS
from ...ir.build import Builder, Var
from ...prims.api.promotion import astype
from ...prims.ops import nn
from ...prims.ops.shape import concatenate, flip
from ...utils.errors import ShapeError, TypeError_
from ..terms.show import shape_text, show
from ..terms.solver import Facts
from ..terms.terms import Unknown, prune
from .declare import Attr, operator
from .layouts import canonical, from_letters, in_letters, letters_of, parse_layout, split_sizes
from .rules import NUMBERS, Rule, accept
from .staged import array, cut, known, padded, permuted, reshaped

Sides = tuple[tuple[int, int], ...]
SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


def spread(values: Any, axes: int, name: str, what: str, least: int = 1) -> tuple[int, ...]:
    """An attribute with a number for each axis, or one for all.

    Raises:
        ShapeError: it is of another length, or a number is too small.
    """
    values = tuple(values)
    out = values * axes if len(values) == 1 else values
    if len(out) != axes or not all(isinstance(v, int) and v >= least for v in out):
        raise ShapeError(f"{name}: {what}={list(values)} is not a number of at least {least} for each of {axes} axes")
    return out


def sides_of(padding: Any, axes: int, name: str) -> Sides:
    """Padding before and after each axis: one number, one for each axis, or all those before and all those after.

    Raises:
        ShapeError: there are others.
    """
    values = tuple(padding)
    if len(values) == 1:
        values = values * axes
    if len(values) == axes:
        values = values * 2
    if len(values) != 2 * axes or not all(isinstance(v, int) and v >= 0 for v in values):
        raise ShapeError(
            f"{name}: padding={list(padding)} is not 1, {axes} or {2 * axes} numbers that are not negative"
        )
    return tuple(zip(values[:axes], values[axes:], strict=True))


def window_count(size: Any, window: int, stride: int, sides: tuple[int, int], name: str) -> Any:
    """How many windows there are along an axis.

    Raises:
        ShapeError: none fits.
    """
    room = size + sides[0] + sides[1] - window
    if isinstance(room, int) and room < 0:
        raise ShapeError(f"{name}: a window of {window} does not fit into a size of {size} with padding {sides}")
    return room // stride + 1


def _channels(facts: Facts, channels: Any, per_group: Any, groups: int, x: Any, w: Any) -> None:
    """Demand that channels and filters fit.

    Raises:
        ShapeError: they do not.
    """
    if groups == 1:
        wanted = per_group
    elif isinstance(prune(per_group), Unknown) and isinstance(prune(channels), int) and prune(channels) % groups == 0:
        facts.equal(per_group, prune(channels) // groups)
        return
    else:
        wanted = facts.compute(lambda n: n * groups, per_group)
    if wanted is not None:
        facts.same_size(
            channels,
            wanted,
            f"{facts.name}: {show(x)} has {show(prune(channels))} channels, and the filters {show(w)} with groups={groups} take "
            f"{show(wanted)}",
        )


def _declared(facts: Facts, name: str, size: Any, w: Any) -> None:
    """Demand what an attribute says of a size of the filters."""
    value = facts.attr(name)
    if value is not None:
        facts.same_size(size, value, f"{facts.name}: {name}={value}, and the filters are {show(w)}")


def _kernel(facts: Facts, sizes: Sequence[Any], w: Any) -> None:
    value = facts.attr("kernel_size")
    if value is not None:
        wanted = spread(value, len(sizes), facts.name, "kernel_size")
        for size, want in zip(sizes, wanted, strict=True):
            facts.same_size(size, want, f"{facts.name}: kernel_size={list(wanted)}, and the filters are {show(w)}")


def _convolution(axes: int) -> Rule:
    letters = f"NC{SPATIAL[axes]}"

    def rule(facts: Facts) -> None:
        x, w = facts.tensor(0), facts.tensor(1)
        dtype = facts.attr("out_dtype") or facts.same_dtype(x, w)
        accept(facts, x, NUMBERS)
        groups = facts.attr("groups")
        (n, c, *size), layout = canonical(facts, x, facts.attr("data_layout"), letters, "the data")
        (o, per_group, *kernel), _ = canonical(
            facts, w, facts.attr("kernel_layout"), f"OI{SPATIAL[axes]}", "the weight"
        )
        _declared(facts, "channels", o, w)
        _kernel(facts, kernel, w)
        _channels(facts, c, per_group, groups, x, w)
        steps = spread(facts.attr("strides"), axes, facts.name, "strides")
        dilation = spread(facts.attr("dilation"), axes, facts.name, "dilation")
        sides = sides_of(facts.attr("padding"), axes, facts.name)
        places = [
            facts.compute(lambda h, k, s=s, d=d, p=p: window_count(h, (k - 1) * d + 1, s, p, facts.name), h, k)
            for h, k, s, d, p in zip(size, kernel, steps, dilation, sides, strict=True)
        ]
        sizes = dict(zip(letters, (n, o, *places), strict=True))
        _result(facts, layout, sizes, dtype, letters)

    return rule


def _result(facts: Facts, layout: Any, sizes: dict[str, Any], dtype: Any, letters: str) -> None:
    out = facts.attr("out_layout")
    target = parse_layout(out, facts.name) if out else layout
    if sorted(letters_of(target)) != sorted(letters):
        raise TypeError_(f"{facts.name}: out_layout='{out}' has not the axes {letters}")
    facts.gives_tensor(tuple(split_sizes(target, sizes, facts.compute, facts.name)), dtype)


def conv_attrs(axes: int) -> dict[str, Attr]:
    """The attributes of a convolution over some axes, with TVM's defaults."""
    return {
        "strides": Attr("ints", (1,) * axes),
        "padding": Attr("ints", (0,) * axes),
        "dilation": Attr("ints", (1,) * axes),
        "groups": Attr("int", 1),
        "channels": Attr("int", None),
        "kernel_size": Attr("ints", None),
        "data_layout": Attr("str", f"NC{SPATIAL[axes]}"),
        "kernel_layout": Attr("str", f"OI{SPATIAL[axes]}"),
        "out_layout": Attr("str", ""),
        "out_dtype": Attr("out_dtype", ""),
    }


def convolved(
    x: Var, w: Var, steps: Sequence[int], sides: Sides, dilation: Sequence[int], groups: int, name: str
) -> Var:
    """A convolution of (N, C, ...) with (O, C / groups, ...).

    Raises:
        ShapeError: the sizes of the filters are not known, or channels do not fit.
        TypeError_: the numbers are no floats.
    """
    axes = x.ndim - 2
    if any(not isinstance(k, int) for k in w.shape[2:]):
        raise ShapeError(f"{name}: the sizes of the filters must be known, and they are {shape_text(w.shape)}")
    if x.shape[1] != w.shape[1] * groups:
        raise ShapeError(
            f"{name}: {x.shape[1]} channels, and the filters with groups={groups} take {w.shape[1] * groups}"
        )
    if x.dtype not in FLOATS:
        raise TypeError_(f'{name} of {x.dtype} is not supported; convert it with cast(.., dtype="float32")')
    if axes == 3:
        return _volumes(x, w, steps, sides, dilation, groups, name)
    gaps = nn.gaps((*(1,) * (2 - axes), *dilation))
    if axes == 2:
        return nn.conv2d(x, w, strides=tuple(steps), padding=sides, groups=groups, **gaps)
    n, c, width = x.shape
    image, filters = reshaped(x, [n, c, 1, width]), reshaped(w, [*w.shape[:2], 1, w.shape[2]])
    out = nn.conv2d(image, filters, strides=(1, *steps), padding=((0, 0), *sides), groups=groups, **gaps)
    return reshaped(out, [n, w.shape[0], out.shape[3]])


def _volumes(
    x: Var, w: Var, steps: Sequence[int], sides: Sides, dilation: Sequence[int], groups: int, name: str
) -> Var:
    """Three axes: the taps along the first become further channels of images."""
    x = padded(x, (sides[0], (0, 0), (0, 0)))
    n, c, deep, h, width = x.shape
    o, per_group, taps, kh, kw = w.shape
    assert isinstance(taps, int)
    depth: DimLike = window_count(deep, (taps - 1) * dilation[0] + 1, steps[0], (0, 0), name)
    layers = []
    for k in range(taps):
        layer = cut(x, 2, k * dilation[0], depth, steps[0])
        layers.append(reshaped(permuted(layer, (0, 2, 1, 3, 4)), [n, depth, c, 1, h, width]))
    stacked = layers[0] if taps == 1 else concatenate(*layers, axis=3)
    images = reshaped(stacked, [n * depth, c * taps, h, width])
    filters = reshaped(w, [o, per_group * taps, kh, kw])
    out = convolved(images, filters, steps[1:], sides[1:], dilation[1:], groups, name)
    return permuted(reshaped(out, [n, depth, *out.shape[1:]]), (0, 2, 1, 3, 4))


def _convolve(axes: int) -> None:
    name, letters, filters = f"nn.conv{axes}d", f"NC{SPATIAL[axes]}", f"OI{SPATIAL[axes]}"

    def function(b: Builder, data: Var, weight: Var, **attrs: Any) -> Var:
        get = {k: a.default for k, a in conv_attrs(axes).items()} | attrs
        x = in_letters(array(data), get["data_layout"], letters, name)
        w = in_letters(array(weight), get["kernel_layout"], filters, name)
        if get["out_dtype"] and get["out_dtype"] != x.dtype:
            x, w = astype(x, get["out_dtype"]), astype(w, get["out_dtype"])
        steps = spread(get["strides"], axes, name, "strides")
        dilation = spread(get["dilation"], axes, name, "dilation")
        out = convolved(x, w, steps, sides_of(get["padding"], axes, name), dilation, get["groups"], name)
        return from_letters(out, letters, get["out_layout"] or get["data_layout"], name)

    words = {1: "sequences", 2: "images", 3: "volumes"}[axes]
    doc = f"A convolution of {words} with filters; no flip, as everywhere in deep learning."
    operator(name, ("data", "weight"), _convolution(axes), conv_attrs(axes), doc=doc)(function)


# Transposed convolutions.


def spread_size(size: Any, window: Any, stride: int, sides: tuple[int, int], extra: int, name: str) -> Any:
    """The size along an axis of what a transposed convolution gives.

    Raises:
        ShapeError: nothing is left.
    """
    out = (size - 1) * stride + window - sides[0] - sides[1] + extra
    if isinstance(size, int) and size < 1 or isinstance(out, int) and out < 1:
        raise ShapeError(f"{name}: of a size of {size}, windows of {window} and padding {sides} nothing is left")
    return out


def _transposed(axes: int) -> Rule:
    letters = f"NC{SPATIAL[axes]}"

    def rule(facts: Facts) -> None:
        x, w = facts.tensor(0), facts.tensor(1)
        dtype = facts.attr("out_dtype") or facts.same_dtype(x, w)
        accept(facts, x, FLOATS)
        groups = facts.attr("groups")
        (n, c, *size), layout = canonical(facts, x, facts.attr("data_layout"), letters, "the data")
        (i, per_group, *kernel), _ = canonical(
            facts, w, facts.attr("kernel_layout"), f"IO{SPATIAL[axes]}", "the weight"
        )
        _kernel(facts, kernel, w)
        facts.same_size(c, i, f"{facts.name}: {show(x)} has other channels than the filters {show(w)} take")
        o = facts.compute(lambda m: m * groups, per_group)
        if facts.attr("channels") is not None and o is not None:
            facts.same_size(
                o, facts.attr("channels"), f"{facts.name}: channels={facts.attr('channels')}, the filters are {show(w)}"
            )
        steps = spread(facts.attr("strides"), axes, facts.name, "strides")
        dilation = spread(facts.attr("dilation"), axes, facts.name, "dilation")
        sides = sides_of(facts.attr("padding"), axes, facts.name)
        extra = spread(facts.attr("output_padding"), axes, facts.name, "output_padding", 0)
        places = [
            facts.compute(lambda h, k, s=s, d=d, p=p, e=e: spread_size(h, (k - 1) * d + 1, s, p, e, facts.name), h, k)
            for h, k, s, d, p, e in zip(size, kernel, steps, dilation, sides, extra, strict=True)
        ]
        _result(facts, layout, dict(zip(letters, (n, o, *places), strict=True)), dtype, letters)

    return rule


def transposed(
    x: Var,
    w: Var,
    steps: Sequence[int],
    sides: Sides,
    dilation: Sequence[int],
    extra: Sequence[int],
    groups: int,
    name: str,
) -> Var:
    """The adjoint of a convolution: of (N, C, ...) with filters (C, O / groups, ...)."""
    axes = x.ndim - 2
    if axes == 1:
        image, filters = reshaped(x, [*x.shape[:2], 1, x.shape[2]]), reshaped(w, [*w.shape[:2], 1, w.shape[2]])
        out = transposed(image, filters, (1, *steps), ((0, 0), *sides), (1, *dilation), (0, *extra), groups, name)
        return reshaped(out, [*out.shape[:2], out.shape[3]])
    if axes == 2:
        window = nn.extents(w.shape[2:], dilation)
        size = tuple(
            (h - 1) * s + k - p[0] - p[1] + e
            for h, s, k, p, e in zip(x.shape[2:], steps, window, sides, extra, strict=True)
        )
        attrs = {"strides": tuple(steps), "padding": sides, "groups": groups, **nn.gaps(dilation)}
        return nn.conv2d_grad_input(x, w, in_shape=size, **attrs)
    # Three axes: zeros between the elements, then a convolution with the filters turned around.
    inputs, per_group = w.shape[0] // groups, w.shape[1]
    turned = reshaped(w, [groups, inputs, per_group, *w.shape[2:]])
    turned = reshaped(permuted(turned, (0, 2, 1, 3, 4, 5)), [groups * per_group, inputs, *w.shape[2:]])
    turned = flip(turned, axes=(2, 3, 4))
    reach = [(k - 1) * d for k, d in zip(known(w, (2, 3, 4), name), dilation, strict=True)]
    around = tuple((r - p[0], r - p[1] + e) for r, p, e in zip(reach, sides, extra, strict=True))
    wide = padded(x, tuple((max(a, 0), max(c, 0)) for a, c in around), 0, [s - 1 for s in steps])
    for k, (low, high) in enumerate(around, 2):
        if low < 0 or high < 0:
            first = max(-low, 0)
            wide = cut(wide, k, first, wide.shape[k] - first - max(-high, 0))
    return convolved(wide, turned, (1,) * 3, ((0, 0),) * 3, dilation, groups, name)


def _transpose(axes: int) -> None:
    name, letters, filters = f"nn.conv{axes}d_transpose", f"NC{SPATIAL[axes]}", f"IO{SPATIAL[axes]}"
    declared = {
        **conv_attrs(axes),
        "output_padding": Attr("ints", (0,) * axes),
        "kernel_layout": Attr("str", filters),
    }

    def function(b: Builder, data: Var, weight: Var, **attrs: Any) -> Var:
        get = {k: a.default for k, a in declared.items()} | attrs
        x = in_letters(array(data), get["data_layout"], letters, name)
        w = in_letters(array(weight), get["kernel_layout"], filters, name)
        steps = spread(get["strides"], axes, name, "strides")
        dilation = spread(get["dilation"], axes, name, "dilation")
        extra = spread(get["output_padding"], axes, name, "output_padding", 0)
        out = transposed(x, w, steps, sides_of(get["padding"], axes, name), dilation, extra, get["groups"], name)
        out = from_letters(out, letters, get["out_layout"] or get["data_layout"], name)
        return astype(out, get["out_dtype"]) if get["out_dtype"] else out

    doc = "The transpose of a convolution: what a convolution with these filters would have summed over is spread out."
    operator(name, ("data", "weight"), _transposed(axes), declared, doc=doc)(function)


for _axes in (1, 2, 3):
    _convolve(_axes)
    _transpose(_axes)
