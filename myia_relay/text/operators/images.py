"""Resizing of images, and rearrangement of their pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...abstract.dims import divide
from ...abstract.types import FLOATS
from ...ir.build import Builder, Var
from ...prims.api.promotion import astype
from ...prims.ops.indexing import take
from ...prims.ops.linalg import dot
from ...utils.errors import ShapeError, TypeError_
from ..terms.solver import Facts
from .convolution import SPATIAL, spread
from .declare import Attr, operator
from .layouts import canonical, from_letters, in_letters, split_sizes
from .rules import Rule
from .staged import array, constant, known, permuted, reshaped

METHODS = ("nearest_neighbor", "linear", "cubic")
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn")
ROUNDINGS = ("", "round", "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")

RESIZE = {
    "size": Attr("ints"),
    "roi": Attr("floats", None),
    "layout": Attr("str", "NCHW"),
    "method": Attr(METHODS, "linear"),
    "coordinate_transformation_mode": Attr(MODES, "half_pixel"),
    "rounding_method": Attr(ROUNDINGS, None),
    "cubic_alpha": Attr("float", -0.5),
    "cubic_exclude": Attr("int", 0),
    "extrapolation_value": Attr("float", 0.0),
    "out_dtype": Attr("out_dtype", None),
}


def positions(size: int, wanted: int, mode: str) -> np.ndarray:
    """Where each pixel of the result lies in the original, in pixels."""
    x, scale = np.arange(wanted, dtype=np.float64), size / wanted
    match mode:
        case "half_pixel":
            return (x + 0.5) * scale - 0.5
        case "align_corners":
            return x * (size - 1) / (wanted - 1) if wanted > 1 else x * 0
        case "asymmetric":
            return x * scale
        case "pytorch_half_pixel":
            return (x + 0.5) * scale - 0.5 if wanted > 1 else x * 0
    return (x + 0.5) * scale


def nearest(size: int, wanted: int, mode: str, rounding: str | None) -> np.ndarray:
    """The number of the pixel that each pixel of the result is.

    Args:
        size: of the original.
        wanted: of the result.
        mode: where pixels lie.
        rounding: how; "" is what TVM's Python functions take, None the nearest pixel, where pixels count from their corners the one
            that a place lies in.
    """
    x = positions(size, wanted, mode)
    if rounding is None:
        rounding = "floor" if mode in ("asymmetric", "tf_half_pixel_for_nn") else "round"
    match rounding or ("round" if mode == "align_corners" else "floor"):
        case "round":
            out = np.sign(x) * np.floor(np.abs(x) + 0.5)
        case "round_prefer_floor":
            out = np.ceil(x - 0.5)
        case "round_prefer_ceil":
            out = np.floor(x + 0.5)
        case "floor":
            out = np.floor(x + 1e-5)  # as TVM does, lest rounding of the quotient decides
        case _:
            out = np.ceil(x - 1e-5)
    return np.clip(out, 0, size - 1).astype(np.int64)


def weights(size: int, wanted: int, method: str, mode: str, alpha: float, exclude: bool) -> np.ndarray:
    """The matrix (wanted, size) of an interpolation along one axis."""
    x = positions(size, wanted, mode)
    low = np.floor(x)
    t = x - low
    out = np.zeros((wanted, size))
    if method == "linear":
        taps = [(0, 1 - t), (1, t)]
    else:
        a = alpha
        taps = [
            (-1, a * (t**3 - 2 * t**2 + t)),
            (0, (a + 2) * t**3 - (3 + a) * t**2 + 1),
            (1, -(a + 2) * t**3 + (3 + 2 * a) * t**2 - a * t),
            (2, -a * t**3 + a * t**2),
        ]
    for offset, weight in taps:
        at = low + offset
        if exclude and method == "cubic":
            weight = np.where((at < 0) | (at >= size), 0, weight)
        np.add.at(out, (np.arange(wanted), np.clip(at, 0, size - 1).astype(np.int64)), weight)
    if exclude and method == "cubic":
        out /= out.sum(1, keepdims=True)
    return out


def resized(x: Var, axis: int, wanted: int, attrs: dict[str, Any], name: str) -> Var:
    """A tensor of another size along an axis."""
    (size,) = known(x, [axis], name)
    mode, method = attrs["coordinate_transformation_mode"], attrs["method"]
    if method == "nearest_neighbor":
        at = nearest(size, wanted, mode, attrs["rounding_method"])
        if np.array_equal(at, np.arange(size)):
            return x
        return take(x, constant(x.builder, at, "int64"), axis=axis)
    matrix = weights(size, wanted, method, mode, attrs["cubic_alpha"], bool(attrs["cubic_exclude"]))
    if matrix.shape[0] == matrix.shape[1] and np.array_equal(matrix, np.eye(size)):
        return x
    last = [k for k in range(x.ndim) if k != axis]
    rows = permuted(x, [*last, axis])
    total: Any = 1
    for k in last:
        total = total * x.shape[k]
    flat = dot(reshaped(rows, [total, size]), constant(x.builder, matrix, x.dtype), transpose_b=True)
    wide = reshaped(flat, [*(x.shape[k] for k in last), wanted])
    return permuted(wide, [*range(axis), x.ndim - 1, *range(axis, x.ndim - 1)])


def resize_all(data: Var, layout: str, axes: int, size: Sequence[int], attrs: dict[str, Any], name: str) -> Var:
    """Images of another size along their last axes.

    Raises:
        TypeError_: integers are to be interpolated exactly.
    """
    letters = f"NC{SPATIAL[axes]}"
    x = in_letters(array(data), layout, letters, name)
    dtype = attrs.get("out_dtype") or x.dtype
    if attrs["method"] != "nearest_neighbor" and x.dtype not in FLOATS:
        x = astype(x, "float32")
    for axis, wanted in enumerate(size, 2):
        x = resized(x, axis, wanted, attrs, name)
    return from_letters(x if x.dtype == dtype else astype(x, dtype), letters, layout, name)


def _resize_rule(axes: int) -> Rule:
    letters = f"NC{SPATIAL[axes]}"

    def rule(facts: Facts) -> None:
        x = facts.tensor(0)
        (n, c, *_), layout = canonical(facts, x, facts.attr("layout"), letters, "the data")
        size = spread(facts.attr("size"), axes, facts.name, "size")
        named = dict(zip(letters, (n, c, *size), strict=True))
        facts.gives_tensor(
            tuple(split_sizes(layout, named, facts.compute, facts.name)), facts.attr("out_dtype") or x.dtype
        )

    return rule


def _resize(axes: int) -> None:
    name = f"image.resize{axes}d"
    declared = {**RESIZE, "layout": Attr("str", f"NC{SPATIAL[axes]}")}

    def function(b: Builder, data: Var, **attrs: Any) -> Var:
        get = {k: a.default for k, a in declared.items()} | attrs
        return resize_all(data, get["layout"], axes, spread(get["size"], axes, name, "size"), get, name)

    words = {1: "sequences", 2: "images", 3: "volumes"}[axes]
    operator(
        name,
        ("data",),
        _resize_rule(axes),
        declared,
        doc=f"Of another size: {words}, by the nearest pixel or interpolated.",
    )(function)


for _axes in (1, 2, 3):
    _resize(_axes)


# Upsampling.


def _scaled(size: Any, scale: float, name: str) -> Any:
    if isinstance(size, int):
        return math.floor(size * scale + 0.5)
    if scale != int(scale):
        raise ShapeError(f"{name} by {scale} needs a known size, and this one is {size}")
    return size * int(scale)


def _upsampling_rule(axes: int) -> Rule:
    letters = f"NC{SPATIAL[axes]}"

    def rule(facts: Facts) -> None:
        x = facts.tensor(0)
        (n, c, *size), layout = canonical(facts, x, facts.attr("layout"), letters, "the data")
        scales = [facts.attr(f"scale_{a.lower()}") for a in SPATIAL[axes]]
        wanted = [facts.compute(lambda h, s=s: _scaled(h, s, facts.name), h) for h, s in zip(size, scales, strict=True)]
        named = dict(zip(letters, (n, c, *wanted), strict=True))
        facts.gives_tensor(tuple(split_sizes(layout, named, facts.compute, facts.name)), x.dtype)

    return rule


def _upsampling(axes: int, name: str, methods: tuple[str, ...]) -> None:
    letters = f"NC{SPATIAL[axes]}"
    declared: dict[str, Attr] = {
        **{f"scale_{a.lower()}": Attr("float", 1.0) for a in SPATIAL[axes]},
        "layout": Attr("str", letters),
        "method": Attr(methods, "nearest_neighbor"),
    }
    if axes == 2:
        declared["align_corners"] = Attr("bool", False)
    else:
        declared["coordinate_transformation_mode"] = Attr(MODES, "half_pixel")

    def function(b: Builder, data: Var, **attrs: Any) -> Var:
        get = {k: a.default for k, a in declared.items()} | attrs
        mode = get.get("coordinate_transformation_mode") or ("align_corners" if get["align_corners"] else "asymmetric")
        how = {**{k: a.default for k, a in RESIZE.items()}, "coordinate_transformation_mode": mode}
        how["method"] = get["method"].removeprefix("bi").removeprefix("tri")
        x = in_letters(array(data), get["layout"], letters, name)
        have = known(x, range(2, 2 + axes), name)
        size = [_scaled(h, get[f"scale_{a.lower()}"], name) for h, a in zip(have, SPATIAL[axes], strict=True)]
        return from_letters(resize_all(x, letters, axes, size, how, name), letters, get["layout"], name)

    operator(name, ("data",), _upsampling_rule(axes), declared, doc="Larger by a factor along each axis.")(function)


_upsampling(2, "nn.upsampling", ("nearest_neighbor", "bilinear", "bicubic"))
_upsampling(3, "nn.upsampling3d", ("nearest_neighbor", "trilinear"))


# Between space and depth.


def block_of(n: Any, by: int, name: str) -> Any:
    """How many blocks a size falls into.

    Raises:
        ShapeError: it does not.
    """
    if isinstance(n, int) and n % by:
        raise ShapeError(f"{name}: the size {n} is no multiple of {by}")
    return divide(n, by)


def _depth_to_space_rule(facts: Facts) -> None:
    x, by = facts.tensor(0), facts.attr("block_size")
    (n, c, h, w), layout = canonical(facts, x, facts.attr("layout"), "NCHW", "the data")
    if by < 1:
        raise TypeError_(f"{facts.name}: block_size={by} is not positive")
    deep = facts.compute(lambda m: block_of(m, by * by, facts.name), c)
    high, wide = (facts.compute(lambda m: m * by, s) for s in (h, w))
    named = dict(zip("NCHW", (n, deep, high, wide), strict=True))
    facts.gives_tensor(tuple(split_sizes(layout, named, facts.compute, facts.name)), x.dtype)


DEPTH = {"block_size": Attr("int"), "layout": Attr("str", "NCHW"), "mode": Attr(("DCR", "CRD"), "DCR")}


@operator("nn.depth_to_space", ("data",), _depth_to_space_rule, DEPTH)
def depth_to_space(b: Builder, data: Var, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Var:
    """Channels become blocks of pixels."""
    name = "nn.depth_to_space"
    x = in_letters(array(data), layout, "NCHW", name)
    n, c, h, w = x.shape
    deep = block_of(c, block_size * block_size, name)
    if mode == "DCR":
        out = permuted(reshaped(x, [n, block_size, block_size, deep, h, w]), (0, 3, 4, 1, 5, 2))
    else:
        out = permuted(reshaped(x, [n, deep, block_size, block_size, h, w]), (0, 1, 4, 2, 5, 3))
    return from_letters(reshaped(out, [n, deep, h * block_size, w * block_size]), "NCHW", layout, name)


def _space_to_depth_rule(facts: Facts) -> None:
    x, by = facts.tensor(0), facts.attr("block_size")
    (n, c, h, w), layout = canonical(facts, x, facts.attr("layout"), "NCHW", "the data")
    if by < 1:
        raise TypeError_(f"{facts.name}: block_size={by} is not positive")
    high, wide = (facts.compute(lambda m: block_of(m, by, facts.name), s) for s in (h, w))
    named = dict(zip("NCHW", (n, facts.compute(lambda m: m * by * by, c), high, wide), strict=True))
    facts.gives_tensor(tuple(split_sizes(layout, named, facts.compute, facts.name)), x.dtype)


@operator(
    "nn.space_to_depth", ("data",), _space_to_depth_rule, {"block_size": Attr("int"), "layout": Attr("str", "NCHW")}
)
def space_to_depth(b: Builder, data: Var, block_size: int, layout: str = "NCHW") -> Var:
    """Blocks of pixels become channels."""
    name = "nn.space_to_depth"
    x = in_letters(array(data), layout, "NCHW", name)
    n, c, h, w = x.shape
    high, wide = block_of(h, block_size, name), block_of(w, block_size, name)
    out = permuted(reshaped(x, [n, c, high, block_size, wide, block_size]), (0, 3, 5, 1, 2, 4))
    return from_letters(reshaped(out, [n, c * block_size * block_size, high, wide]), "NCHW", layout, name)
