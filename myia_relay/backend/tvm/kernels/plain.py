"""Products, convolutions and pooling by plain loops: element types that BLAS does not have, any padding, empty arrays.

Each takes an `opaque.Call`, which provides operands, the result and sizes, and emits into its kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import tirx

from ....abstract.dims import is_known
from ....prims.ops.nn import extents
from ..tir.block import const, idx, load, shuffle, vload
from ..tir.exact import isnan
from ..tir.expr import constant, is_half
from ..tir.pipeline import lanes as vector_lanes
from .conv import split
from .patches import Conv, times


def plain_product(c: Any, batch, m, n, k, ta: bool, tb: bool) -> None:
    """Products of other element types: loops, vectors along the columns of the result."""
    left, right, out = c.operand(0)[0], c.operand(1)[0], c.result()[0]
    dtype = c.out_type.dtype
    sum_type = "float32" if is_half(dtype) else dtype
    b, rows, cols, inner = c.b, c.b.dim(m), c.b.dim(n), c.b.dim(k)
    with c.block.loop(c.dim(batch)) as i, c.block.loop(rows) as r, c.block.loop(cols) as j:
        total = c.block.cell(constant(0, sum_type))
        with c.block.loop(inner) as t:
            la = tirx.Add(tirx.Mul(t, rows), r) if ta else tirx.Add(tirx.Mul(r, inner), t)
            lb = tirx.Add(tirx.Mul(j, inner), t) if tb else tirx.Add(tirx.Mul(t, cols), j)
            x = b.cast(load(left, tirx.Add(tirx.Mul(i, c.b.dim(m * k)), la)), sum_type)
            y = b.cast(load(right, tirx.Add(tirx.Mul(i, c.b.dim(k * n)), lb)), sum_type)
            c.block.store(total, b.add(load(total, 0), b.mul(x, y)), 0)
        place = tirx.Add(tirx.Mul(tirx.Add(tirx.Mul(i, rows), r), cols), j)
        c.block.store(out, b.cast(load(total, 0), dtype), place)


def plain_conv(c: Any, s: Conv, what: str) -> None:
    """Convolutions of other element types, and empty ones: each element of the result is a sum over taps."""
    first, second, out = c.operand(0)[0], c.operand(1)[0], c.result()[0]
    groups, block, b = c.attrs["groups"], c.block, c.b
    dtype = c.out_type.dtype
    batch = c.types[0].shape[0]
    sum_type = "float32" if is_half(dtype) else dtype
    (kh, kw), (sh, sw), (top, _, left, _), (dh, dw) = s.kernel, s.strides, s.pads, s.dilations
    x_plane, y_plane = s.height * s.width, s.positions

    def row(index, sizes):
        total = index[0]
        for i, n in zip(index[1:], sizes[1:]):
            total = tirx.Add(tirx.Mul(total, c.b.dim(n)), i)
        return total

    # Axes (sample, group, filter, channel, output position, tap); those of the result are the outer loops, the others
    # are summed.
    extents = {"n": batch, "g": groups, "o": s.filters, "c": s.channels, "p": y_plane, "q": x_plane, "t": kh * kw}
    outer = {"forward": "ngop", "grad_input": "ngcq", "grad_weight": "goct"}[what]
    inner = {"forward": "ct", "grad_input": "ot", "grad_weight": "np"}[what]
    at_: dict[str, Any] = {}

    def loops(names, body):
        if not names:
            body()
            return
        with block.loop(c.b.dim(extents[names[0]])) as i:
            at_[names[0]] = i
            loops(names[1:], body)

    def element():
        total = block.cell(constant(0, sum_type))

        def add():
            th, tw = times(tirx.FloorDiv(at_["t"], idx(kw)), dh), times(tirx.FloorMod(at_["t"], idx(kw)), dw)
            if what == "grad_input":
                h = tirx.Sub(tirx.Add(tirx.FloorDiv(at_["q"], c.b.dim(s.width)), idx(top)), th)
                w = tirx.Sub(tirx.Add(tirx.FloorMod(at_["q"], c.b.dim(s.width)), idx(left)), tw)
                oh, ow = tirx.FloorDiv(h, idx(sh)), tirx.FloorDiv(w, idx(sw))
                inside = [tirx.EQ(tirx.FloorMod(h, idx(sh)), idx(0)), tirx.EQ(tirx.FloorMod(w, idx(sw)), idx(0))]
                inside += [
                    tirx.GE(oh, idx(0)),
                    tirx.LT(oh, c.b.dim(s.out_height)),
                    tirx.GE(ow, idx(0)),
                    tirx.LT(ow, c.b.dim(s.out_width)),
                ]
                x_at, y_at = at_["q"], tirx.Add(tirx.Mul(oh, c.b.dim(s.out_width)), ow)
            else:
                oh, ow = tirx.FloorDiv(at_["p"], c.b.dim(s.out_width)), tirx.FloorMod(at_["p"], c.b.dim(s.out_width))
                h = tirx.Sub(tirx.Add(tirx.Mul(oh, idx(sh)), th), idx(top))
                w = tirx.Sub(tirx.Add(tirx.Mul(ow, idx(sw)), tw), idx(left))
                inside = [
                    tirx.GE(h, idx(0)),
                    tirx.LT(h, c.b.dim(s.height)),
                    tirx.GE(w, idx(0)),
                    tirx.LT(w, c.b.dim(s.width)),
                ]
                x_at, y_at = tirx.Add(tirx.Mul(h, c.b.dim(s.width)), w), at_["p"]
            test = inside[0]
            for more in inside[1:]:
                test = tirx.And(test, more)
            with block.when(test):
                if what != "grad_input":
                    x = load(first, row([at_["n"], at_["g"], at_["c"], x_at], [batch, groups, s.channels, x_plane]))
                if what != "forward":
                    grad = first if what == "grad_input" else second
                    y = load(grad, row([at_["n"], at_["g"], at_["o"], y_at], [batch, groups, s.filters, y_plane]))
                if what != "grad_weight":
                    v = load(
                        second, row([at_["g"], at_["o"], at_["c"], at_["t"]], [groups, s.filters, s.channels, kh * kw])
                    )
                pair = {"forward": lambda: (x, v), "grad_input": lambda: (y, v), "grad_weight": lambda: (x, y)}[what]()
                left_, right_ = (b.cast(e, sum_type) for e in pair)
                block.store(total, b.add(load(total, 0), b.mul(left_, right_)), 0)

        loops(inner, add)
        place = row([at_[k] for k in outer], [extents[k] for k in outer])
        block.store(out, b.cast(load(total, 0), dtype), place)

    loops(outer, element)


class PlainPooling:
    """Pooling by plain loops: any type, any padding; means, gathers and their transposes too.

    Maxima and means of windows that lie in the image, with strides of 1 or 2, are taken as vectors of windows.

    Args:
        c: the call.
        what: "max", "max_grad", "gather", "avg" or "avg_grad".
    """

    def __init__(self, c: Any, what: str):
        self.c, self.b, self.block, self.what = c, c.b, c.block, what
        image = tuple(c.attrs["in_shape"]) if what == "avg_grad" else c.types[0].shape[2:]
        self.image, self.kernel, self.strides = image, c.attrs["ksize"], c.attrs["strides"]
        (self.top, bottom), (self.left, right) = c.attrs["padding"]
        self.gaps = c.attrs.get("dilations", (1, 1))
        window = extents(self.kernel, self.gaps)
        oh = (image[0] + self.top + bottom - window[0]) // self.strides[0] + 1
        ow = (image[1] + self.left + right - window[1]) // self.strides[1] + 1
        self.dtype = c.out_type.dtype
        self.x = c.operand(0)[0]
        self.other = c.operand(1)[0] if len(c.types) > 1 else None
        self.out = c.result()[0]
        block, size = self.block, image[0] * image[1]
        lead = c.types[0].shape[:2]
        count = c.dim(lead[0] * lead[1])
        # Those of known size are here because they are small, or rare.
        with split(block, count, 1 if is_known(image) else c.tasks(size, 0)) as (_, p):
            base, base_out = tirx.Mul(p, self.b.dim(size)), tirx.Mul(p, self.b.dim(oh * ow))
            if what.endswith("grad"):
                with block.loop(self.b.dim(size)) as i:
                    block.store(self.out, self.zero(), tirx.Add(base, i))
            columns = self.b.dim(ow)
            low, many = self.inner(columns)
            with block.loop(self.b.dim(oh)) as i:
                row = tirx.Add(base_out, tirx.Mul(i, columns))
                done = self.vectors(base, i, row, low, many)
                with block.loop(columns if done is None else tirx.Sub(columns, done)) as k:
                    j = k if done is None else block.let(tirx.Add(k, tirx.Select(tirx.LT(k, low), idx(0), done)))
                    place = block.let(tirx.Add(row, j))
                    cell = {"avg": self.mean, "avg_grad": self.spread}.get(what, self.extreme)
                    cell(base, i, j, place)

    def zero(self) -> Any:
        return constant(0, self.dtype)

    # Vectors of windows.

    def inner(self, columns: Any) -> tuple[Any, Any]:
        """The first window of a row that lies in the image from left to right, and how many do; none where there are no vectors."""
        step, span = self.strides[1], (self.kernel[1] - 1) * self.gaps[1]
        if self.what not in ("max", "avg") or step > 2 or self.dtype not in ("float32", "float64"):
            return None, None
        let, low = self.block.let, -(-self.left // step)
        low = let(tirx.Min(idx(low), columns))
        last = tirx.Sub(
            self.b.dim(self.image[1]), idx(span + 1 - self.left)
        )  # where the last of these may begin, at most
        high = tirx.Select(tirx.GE(last, idx(0)), tirx.Add(tirx.Div(last, idx(step)), idx(1)), idx(0))
        return low, let(tirx.Sub(tirx.Max(tirx.Min(high, columns), low), low))

    def vectors(self, base: Any, i: Any, row: Any, low: Any, many: Any) -> Any:
        """Windows of a row that lie in the image, as whole vectors; returns how many, None where there never are any."""
        if low is None:
            return None
        block, (height, width), lanes = self.block, self.image, vector_lanes(self.dtype)
        top = block.let(tirx.Sub(tirx.Mul(i, idx(self.strides[0])), idx(self.top)))
        bottom = tirx.Add(top, idx((self.kernel[0] - 1) * self.gaps[0]))
        inside = tirx.And(tirx.GE(top, idx(0)), tirx.LT(bottom, self.b.dim(height)))
        count = block.let(tirx.Select(inside, tirx.Div(many, idx(lanes)), idx(0)))
        with block.loop(count, name="v") as v:
            j = block.let(tirx.Add(low, times(v, lanes)))
            left = tirx.Sub(times(j, self.strides[1]), idx(self.left))
            start = block.let(tirx.Add(base, tirx.Add(tirx.Mul(top, self.b.dim(width)), left)))
            total = const(0.0, f"{self.dtype}x{lanes}") if self.what == "avg" else None
            for a in range(self.kernel[0]):
                line = block.let(tirx.Add(start, tirx.Mul(idx(a * self.gaps[0]), self.b.dim(width))))
                for e in range(self.kernel[1]):
                    total = self.taken(total, self.every(tirx.Add(line, idx(e * self.gaps[1])), lanes))
            if self.what == "avg":
                count_ = const(float(self.kernel[0] * self.kernel[1]), f"{self.dtype}x{lanes}")
                total = self.b.div(total, count_)
            block.vstore(self.out, total, tirx.Add(row, j))
        return block.let(times(count, lanes))

    def every(self, place: Any, lanes: int) -> Any:
        """An element of each window of a vector; reads nothing behind the last of them."""
        block, first = self.block, vload(self.x, place, lanes)
        if self.strides[1] == 1:
            return block.let(first)
        second = block.let(vload(self.x, tirx.Add(place, idx(lanes - 1)), lanes))
        return block.let(shuffle([block.let(first), second], [*range(0, lanes, 2), *range(lanes + 1, 2 * lanes, 2)]))

    def taken(self, total: Any, value: Any) -> Any:
        """The maximum or sum so far, with another element of each window."""
        block = self.block
        if self.what == "avg":
            return block.let(self.b.add(total, value))
        if total is None:
            return value
        better = tirx.Or(tirx.GT(value, total), tirx.And(isnan(value), tirx.EQ(total, total)))
        return block.let(tirx.Select(better, value, total))

    def taps(self, base: Any, i: Any, j: Any, body: Any) -> None:
        """Call `body(inside, position)` in a loop over the elements of a window."""
        block, (height, width) = self.block, self.image
        with block.loop(self.kernel[0]) as a, block.loop(self.kernel[1]) as e:
            h = tirx.Sub(tirx.Add(tirx.Mul(i, idx(self.strides[0])), times(a, self.gaps[0])), idx(self.top))
            w = tirx.Sub(tirx.Add(tirx.Mul(j, idx(self.strides[1])), times(e, self.gaps[1])), idx(self.left))
            rows = tirx.And(tirx.GE(h, idx(0)), tirx.LT(h, self.b.dim(height)))
            inside = tirx.And(rows, tirx.And(tirx.GE(w, idx(0)), tirx.LT(w, self.b.dim(width))))
            body(inside, block.let(tirx.Add(base, tirx.Add(tirx.Mul(h, self.b.dim(width)), w))))

    def mean(self, base: Any, i: Any, j: Any, place: Any) -> None:
        """The mean of a window."""
        total = self.block.cell(self.zero())

        def add(inside, position):
            with self.block.when(inside):
                self.block.store(total, self.b.add(load(total, 0), load(self.x, position)), 0)

        self.taps(base, i, j, add)
        count = constant(self.kernel[0] * self.kernel[1], self.dtype)
        self.block.store(self.out, self.b.div(load(total, 0), count), place)

    def spread(self, base: Any, i: Any, j: Any, place: Any) -> None:
        """The transpose of `mean`."""
        count = constant(self.kernel[0] * self.kernel[1], self.dtype)
        share = self.block.let(self.b.div(load(self.x, place), count))

        def add(inside, position):
            with self.block.when(inside):
                self.block.store(self.out, self.b.add(load(self.out, position), share), position)

        self.taps(base, i, j, add)

    def extreme(self, base: Any, i: Any, j: Any, place: Any) -> None:
        """The first maximum of a window: its value, the other operand there, or its cotangent to there."""
        block, b = self.block, self.b
        best, where, done = map(block.cell, (constant(-np.inf, self.dtype), idx(-1), idx(0)))

        def search(inside, position):
            with block.when(tirx.And(inside, tirx.EQ(load(done, 0), idx(0)))):
                value = block.let(load(self.x, position))
                first = tirx.LT(load(where, 0), idx(0))
                better = block.let(tirx.Or(first, tirx.Or(b.gt(value, load(best, 0)), b.isnan(value))))
                with block.when(better):
                    block.store(best, value, 0)
                    block.store(where, position, 0)
                    with block.when(b.isnan(value)):  # the first NaN is the maximum
                        block.store(done, idx(1), 0)

        self.taps(base, i, j, search)
        found = tirx.GE(load(where, 0), idx(0))
        if self.what == "max":
            block.store(self.out, load(best, 0), place)
        elif self.what == "gather":
            # A window of padding alone has its maximum in the padding: nothing to gather.
            safe = block.let(tirx.Select(found, load(where, 0), idx(0)))
            block.store(self.out, b.where(found, load(self.other, safe), self.zero()), place)
        else:
            with block.when(found):
                position = block.let(load(where, 0))
                block.store(self.out, b.add(load(self.out, position), load(self.other, place)), position)
