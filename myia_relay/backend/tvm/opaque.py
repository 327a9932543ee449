"""Kernels that are not loop nests over one expression: products, convolutions, pooling, and what is searched or scattered.

One function for each primitive in `TABLE`; it gets a `Call`, asks it for operands, result and scratch, and emits into its
kernel. Products and convolutions go to BLAS by `blas` and `conv`; other element types and odd cases are plain loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import tirx

from ...abstract.dims import Dim, DimLike, product
from ...abstract.types import Array
from ...ir.node import Apply
from ...opt.fusion import is_scalar
from ...utils.errors import LoweringError
from . import blas, conv, pool, threads
from .block import dtype_of, idx, load, ramp
from .expr import Expr, constant, is_half
from .kernel import Kernel
from .nests import lanes_for
from .patches import Conv, at
from .plan import ITEM, View

BLAS_TYPES = ("float32", "float64")
BLAS_LIMIT = 1 << 31
PARALLEL_FLOPS = 400_000  # about ten microseconds of one core
PARALLEL_BYTES = 400_000


class Call:
    """One application of an opaque primitive, being emitted."""

    def __init__(self, lowering: Any, node: Apply):
        self.lowering, self.node = lowering, node
        self.kernel = Kernel(lowering, node.fn.name)
        self.block = self.kernel.block
        self.b = Expr(self.block, self.kernel.dims, array=True)
        self.attrs = node.attrs
        self.types = [a.type for a in node.args]
        self.out_type = node.type
        for arg in node.args:
            if isinstance(arg.type, Array) and not is_scalar(arg.type):
                lowering.flush_writers(lowering.view(arg).storage)
        self.target = lowering.slot(node.type.dtype) if is_scalar(node.type) else lowering.allocate(node)

    def operand(self, k: int) -> tuple[Any, int]:
        """Argument `k` as a flat buffer and an offset."""
        return self.kernel.buffer(self.lowering.view(self.node.args[k])), 0

    def scalar(self, k: int) -> Any:
        """Scalar argument `k`."""
        return self.kernel.scalar(self.node.args[k])

    def result(self) -> tuple[Any, int]:
        """The result as a flat buffer and an offset."""
        return self.kernel.buffer(self.target, write=True), 0

    def scratch(self, elements: DimLike, dtype: str) -> tuple[Any, int]:
        """Memory for the time of the call."""
        storage = self.lowering.storage("arena", elements * ITEM[dtype], "scratch")
        return self.kernel.buffer(View(storage, dtype, (elements,)), write=True), 0

    def dim(self, size: DimLike) -> Any:
        """A size: an int where it is known, else an expression."""
        return size if isinstance(size, int) else self.b.dim(size)

    def tasks(self, work: DimLike, limit: float) -> int:
        """How many threads are worth it; symbolic work counts as large."""
        return threads_count() if isinstance(work, Dim) or work >= limit else 1

    def static(self, *sizes: DimLike) -> None:
        """Refuse symbolic sizes where kernels need numbers."""
        if not all(isinstance(s, int) for s in sizes):
            raise LoweringError(f"{self.node.fn.name} needs images of known size; give the axes numbers instead of names")


def threads_count() -> int:
    """How many threads loops are split over."""
    return max(1, threads.count())


def lower(lowering: Any, node: Apply) -> None:
    """Emit an opaque application."""
    emit = TABLE.get(node.fn.name)
    if emit is None:
        raise LoweringError(f"the native executor cannot compile {node.fn.name}", node.origin)
    if not lowering.scope.fusion.users.get(node):
        return
    c = Call(lowering, node)
    emit(c)
    lowering.emit_kernel(c.kernel)
    lowering.scope.env[node] = lowering.load_slot(c.target) if is_scalar(node.type) else c.target


# --- products ---------------------------------------------------------------------------------------------------------


def _chunk(c: Call, n: Any, tasks: int, task: Any) -> tuple[Any, Any]:
    """The part (first, count) of `n` items that a task does; whole multiples of 8, so that cache lines are not shared."""
    if isinstance(n, int):
        size: Any = idx(-(-(-(-n // tasks)) // 8) * 8)
    else:
        size = c.block.let(tirx.Mul(tirx.Div(tirx.Add(n, idx(8 * tasks - 1)), idx(8 * tasks)), idx(8)))
    first = c.block.let(tirx.Mul(task, size))
    rest = c.block.let(tirx.Sub(idx(n), first))
    return first, c.block.let(tirx.Select(tirx.LT(rest, size), rest, size))


def _dot(c: Call) -> None:
    a, x = c.types
    ta, tb = c.attrs["transpose_a"], c.attrs["transpose_b"]
    m, n = c.out_type.shape
    k = a.shape[0] if ta else a.shape[1]
    if a.dtype not in BLAS_TYPES or 0 in (m, n, k):
        _plain_product(c, 1, m, n, k, ta, tb)
        return
    left, right, out = c.operand(0), c.operand(1), c.result()
    rows, cols, inner = c.dim(m), c.dim(n), c.dim(k)
    strides = {"lda": rows if ta else inner, "ldx": inner if tb else cols, "ldc": cols, "trans_a": ta, "trans_x": tb}
    tasks = c.tasks(2 * m * n * k, PARALLEL_FLOPS)
    if tasks == 1:
        blas.gemm(c.block, rows, cols, inner, left, right, out, **strides)
        return
    by_rows = not (isinstance(m, int) and isinstance(n, int)) or m >= n
    with c.block.loop(tasks, "parallel", "task") as task:
        first, count = _chunk(c, rows if by_rows else cols, tasks, task)
        with c.block.when(tirx.GT(count, idx(0))):
            if by_rows:
                part = (left[0], first if ta else tirx.Mul(first, idx(inner)))
                into = (out[0], tirx.Mul(first, idx(cols)))
                blas.gemm(c.block, count, cols, inner, part, right, into, **strides)
            else:
                part = (right[0], tirx.Mul(first, idx(inner)) if tb else first)
                blas.gemm(c.block, rows, count, inner, left, part, (out[0], first), **strides)


def _batched_dot(c: Call) -> None:
    a, _ = c.types
    ta, tb = c.attrs["transpose_a"], c.attrs["transpose_b"]
    batch, m, n = c.out_type.shape
    k = a.shape[1] if ta else a.shape[2]
    if a.dtype not in BLAS_TYPES or 0 in (batch, m, n, k):
        _plain_product(c, batch, m, n, k, ta, tb)
        return
    left, right, out = c.operand(0), c.operand(1), c.result()
    rows, cols, inner = c.dim(m), c.dim(n), c.dim(k)
    sizes = [c.b.dim(m * k), c.b.dim(k * n), c.b.dim(m * n)]
    kind = "parallel" if c.tasks(2 * batch * m * n * k, PARALLEL_FLOPS) > 1 and batch != 1 else "serial"
    with c.block.loop(c.dim(batch), kind) as i:
        places = [(o[0], tirx.Mul(i, s)) for o, s in zip((left, right, out), sizes)]
        blas.gemm(c.block, rows, cols, inner, *places, trans_a=ta, trans_x=tb)


def _plain_product(c: Call, batch, m, n, k, ta: bool, tb: bool) -> None:
    """Products of other element types: loops, vectors along the columns of the result."""
    left, right, out = c.operand(0)[0], c.operand(1)[0], c.result()[0]
    dtype = c.out_type.dtype
    sum_type = "float32" if is_half(dtype) else dtype
    b, rows, cols, inner = c.b, c.b.dim(m), c.b.dim(n), c.b.dim(k)
    with c.block.loop(c.dim(batch)) as i, c.block.loop(rows) as r, c.block.loop(cols) as j:
        total = c.block.local(sum_type)
        c.block.store(total, constant(0, sum_type), 0)
        with c.block.loop(inner) as t:
            la = tirx.Add(tirx.Mul(t, rows), r) if ta else tirx.Add(tirx.Mul(r, inner), t)
            lb = tirx.Add(tirx.Mul(j, inner), t) if tb else tirx.Add(tirx.Mul(t, cols), j)
            x = b.cast(load(left, tirx.Add(tirx.Mul(i, c.b.dim(m * k)), la)), sum_type)
            y = b.cast(load(right, tirx.Add(tirx.Mul(i, c.b.dim(k * n)), lb)), sum_type)
            c.block.store(total, b.add(load(total, 0), b.mul(x, y)), 0)
        place = tirx.Add(tirx.Mul(tirx.Add(tirx.Mul(i, rows), r), cols), j)
        c.block.store(out, b.cast(load(total, 0), dtype), place)


def _matvec(c: Call) -> None:
    a, _ = c.types
    trans = c.attrs["transpose"]
    rows, cols = a.shape
    m, k = (cols, rows) if trans else (rows, cols)
    if a.dtype not in BLAS_TYPES or 0 in (m, k):
        _plain_product(c, 1, m, 1, k, trans, False)
        return
    matrix, vector, out = c.operand(0), c.operand(1), c.result()
    r, w = c.dim(rows), c.dim(cols)
    tasks = c.tasks(rows * cols * ITEM[a.dtype], PARALLEL_BYTES)
    if tasks == 1:
        blas.gemv(c.block, r, w, matrix, vector, out, trans=trans)
        return
    with c.block.loop(tasks, "parallel", "task") as task:
        first, count = _chunk(c, c.dim(m), tasks, task)
        with c.block.when(tirx.GT(count, idx(0))):
            if trans:
                blas.gemv(c.block, r, count, (matrix[0], first), vector, (out[0], first), trans=True, lda=w)
            else:
                part = (matrix[0], tirx.Mul(first, idx(w)))
                blas.gemv(c.block, count, w, part, vector, (out[0], first), lda=w)


# --- convolutions -----------------------------------------------------------------------------------------------------


def _conv_shape(c: Call, image: tuple, filters: int, per_group: int, kernel: tuple) -> Conv:
    c.static(*image, filters, per_group, *kernel)
    (top, bottom), (left, right) = c.attrs["padding"]
    groups = c.attrs["groups"]
    strides = tuple(c.attrs["strides"])
    return Conv(per_group, *image, filters // groups, tuple(kernel), strides, (top, bottom, left, right))


def _conv2d(c: Call) -> None:
    x, w = c.types
    s = _conv_shape(c, x.shape[2:], w.shape[0], w.shape[1], w.shape[2:])
    if _no_blas(c, x.dtype) or 0 in c.out_type.shape:
        _plain_conv(c, s, "forward")
        return
    groups, n = c.attrs["groups"], x.shape[0]
    tasks = c.tasks(2 * n * s.size_out * s.patch * groups, PARALLEL_FLOPS)
    source, filters, out = c.operand(0), c.operand(1), c.result()
    size = conv.scratch_size(s, n if isinstance(n, int) and groups == 1 else 2, tasks, "forward")
    scratch = c.scratch(max(size, 1), x.dtype)
    if groups == 1:
        conv.conv2d(c.block, s, c.dim(n), source, filters, out, scratch, tasks=tasks)
        return
    with conv.split(c.block, c.dim(n * groups), tasks) as (task, i):
        group = tirx.Mod(i, idx(groups))
        col = at(scratch, tirx.Mul(idx(task), idx(s.col_size)))
        places = [at(o, tirx.Mul(k, idx(z))) for o, k, z in (
            (source, i, s.size_in), (filters, group, s.weights), (out, i, s.size_out))]  # fmt: skip
        conv.forward_sample(c.block, s, *places, col)


def _conv2d_grad_input(c: Call) -> None:
    dy, w = c.types
    s = _conv_shape(c, tuple(c.attrs["in_shape"]), w.shape[0], w.shape[1], w.shape[2:])
    if _no_blas(c, dy.dtype) or 0 in c.out_type.shape:
        _plain_conv(c, s, "grad_input")
        return
    groups, n = c.attrs["groups"], dy.shape[0]
    tasks = c.tasks(2 * n * s.size_out * s.patch * groups, PARALLEL_FLOPS)
    grad, filters, out = c.operand(0), c.operand(1), c.result()
    size = conv.scratch_size(s, n if isinstance(n, int) and groups == 1 else 2, tasks, "grad_input")
    scratch = c.scratch(max(size, 1), dy.dtype)
    if groups == 1:
        conv.conv2d_grad_input(c.block, s, c.dim(n), filters, grad, out, scratch, tasks=tasks)
        return
    with conv.split(c.block, c.dim(n * groups), tasks) as (task, i):
        group = tirx.Mod(i, idx(groups))
        col = at(scratch, tirx.Mul(idx(task), idx(s.col_size)))
        places = [at(o, tirx.Mul(k, idx(z))) for o, k, z in (
            (filters, group, s.weights), (grad, i, s.size_out), (out, i, s.size_in))]  # fmt: skip
        conv.grad_input_sample(c.block, s, *places, col)


def _conv2d_grad_weight(c: Call) -> None:
    x, dy = c.types
    groups, n = c.attrs["groups"], x.shape[0]
    s = _conv_shape(c, x.shape[2:], dy.shape[1], c.out_type.shape[1], tuple(c.attrs["kernel"]))
    if _no_blas(c, x.dtype) or 0 in (*c.out_type.shape, n):
        _plain_conv(c, s, "grad_weight")
        return
    tasks = c.tasks(2 * n * s.size_out * s.patch * groups, PARALLEL_FLOPS)
    source, grad, out = c.operand(0), c.operand(1), c.result()
    size = conv.scratch_size(s, n if isinstance(n, int) and groups == 1 else 2, tasks, "grad_weight")
    scratch = c.scratch(max(size, 1), x.dtype)
    if groups == 1:
        conv.conv2d_grad_weight(c.block, s, c.dim(n), source, grad, out, scratch, tasks=tasks)
        return
    with conv.split(c.block, groups, min(tasks, groups)) as (task, g), c.block.loop(c.dim(n)) as i:
        col = at(scratch, tirx.Mul(idx(task), idx(s.col_size)))
        k = tirx.Add(tirx.Mul(i, idx(groups)), g)
        places = [at(o, tirx.Mul(j, idx(z))) for o, j, z in (
            (source, k, s.size_in), (grad, k, s.size_out), (out, g, s.weights))]  # fmt: skip
        with c.block.when(tirx.EQ(i, idx(0))):
            conv.grad_weight_sample(c.block, s, *places, col, accumulate=False)
        with c.block.otherwise():
            conv.grad_weight_sample(c.block, s, *places, col)


def _no_blas(c: Call, dtype: str) -> bool:
    return dtype not in BLAS_TYPES


def _plain_conv(c: Call, s: Conv, what: str) -> None:
    """Convolutions of other element types, and empty ones: each element of the result is a sum over taps."""
    first, second, out = c.operand(0)[0], c.operand(1)[0], c.result()[0]
    groups, block, b = c.attrs["groups"], c.block, c.b
    dtype = c.out_type.dtype
    batch = c.types[0].shape[0]
    sum_type = "float32" if is_half(dtype) else dtype
    (kh, kw), (sh, sw), (top, _, left, _) = s.kernel, s.strides, s.pads
    x_plane, y_plane = s.height * s.width, s.positions

    def row(index, sizes):
        total = index[0]
        for i, n in zip(index[1:], sizes[1:]):
            total = tirx.Add(tirx.Mul(total, c.b.dim(n)), i)
        return total

    # All (sample, group, filter, channel, output position, tap); those of the result outside, the others summed.
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
        total = block.local(sum_type)
        block.store(total, constant(0, sum_type), 0)

        def add():
            th, tw = tirx.FloorDiv(at_["t"], idx(kw)), tirx.FloorMod(at_["t"], idx(kw))
            if what == "grad_input":
                h = tirx.Sub(tirx.Add(tirx.FloorDiv(at_["q"], idx(s.width)), idx(top)), th)
                w = tirx.Sub(tirx.Add(tirx.FloorMod(at_["q"], idx(s.width)), idx(left)), tw)
                oh, ow = tirx.FloorDiv(h, idx(sh)), tirx.FloorDiv(w, idx(sw))
                inside = [tirx.EQ(tirx.FloorMod(h, idx(sh)), idx(0)), tirx.EQ(tirx.FloorMod(w, idx(sw)), idx(0))]
                inside += [tirx.GE(oh, idx(0)), tirx.LT(oh, idx(s.out_height)), tirx.GE(ow, idx(0)), tirx.LT(ow, idx(s.out_width))]
                x_at, y_at = at_["q"], tirx.Add(tirx.Mul(oh, idx(s.out_width)), ow)
            else:
                oh, ow = tirx.FloorDiv(at_["p"], idx(s.out_width)), tirx.FloorMod(at_["p"], idx(s.out_width))
                h = tirx.Sub(tirx.Add(tirx.Mul(oh, idx(sh)), th), idx(top))
                w = tirx.Sub(tirx.Add(tirx.Mul(ow, idx(sw)), tw), idx(left))
                inside = [tirx.GE(h, idx(0)), tirx.LT(h, idx(s.height)), tirx.GE(w, idx(0)), tirx.LT(w, idx(s.width))]
                x_at, y_at = tirx.Add(tirx.Mul(h, idx(s.width)), w), at_["p"]
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
                    v = load(second, row([at_["g"], at_["o"], at_["c"], at_["t"]], [groups, s.filters, s.channels, kh * kw]))
                pair = {"forward": lambda: (x, v), "grad_input": lambda: (y, v), "grad_weight": lambda: (x, y)}[what]()
                left_, right_ = (b.cast(e, sum_type) for e in pair)
                block.store(total, b.add(load(total, 0), b.mul(left_, right_)), 0)

        loops(inner, add)
        place = row([at_[k] for k in outer], [extents[k] for k in outer])
        block.store(out, b.cast(load(total, 0), dtype), place)

    loops(outer, element)


# --- pooling ----------------------------------------------------------------------------------------------------------


def _pool_shape(c: Call, image: tuple) -> pool.Pool | None:
    """The shape of a pooling, or None where the fast kernels do not take it."""
    c.static(*image)
    (top, bottom), (left, right) = c.attrs["padding"]
    try:
        return pool.Pool(*image, tuple(c.attrs["ksize"]), tuple(c.attrs["strides"]), (top, bottom, left, right))
    except ValueError:
        return None


def _planes(c: Call, planes: DimLike, work: DimLike, emit: Any) -> None:
    """Run `emit(first plane, number of planes)` over all planes, on all cores if that is worth it."""
    tasks = c.tasks(work, 60_000)
    total = c.dim(planes)
    if tasks == 1:
        emit(idx(0), total)
        return
    with c.block.loop(tasks, "parallel", "task") as task:
        size = -(-total // tasks) if isinstance(total, int) else tirx.Div(tirx.Add(total, idx(tasks - 1)), idx(tasks))
        first = c.block.let(tirx.Mul(task, idx(size)))
        rest = c.block.let(tirx.Sub(idx(total), first))
        emit(first, c.block.let(tirx.Select(tirx.LT(rest, idx(size)), rest, idx(size))))


def _max_pool(c: Call) -> None:
    shape = c.types[0].shape
    s = _pool_shape(c, shape[2:])
    if s is None or is_half(c.types[0].dtype):
        _Windows(c, "max")
        return
    x, y = c.operand(0), c.result()

    def part(first, count):
        pool.max_pool(c.block, s, count, at(x, tirx.Mul(first, idx(s.size_in))), at(y, tirx.Mul(first, idx(s.size_out))))

    _planes(c, shape[0] * shape[1], product(shape), part)


def _max_pool_grad(c: Call) -> None:
    shape = c.types[0].shape
    s = _pool_shape(c, shape[2:])
    if s is None or is_half(c.types[0].dtype):
        _Windows(c, "max_grad")
        return
    x, dy, dx = c.operand(0), c.operand(1), c.result()

    def part(first, count):
        inside, outside = tirx.Mul(first, idx(s.size_in)), tirx.Mul(first, idx(s.size_out))
        pool.max_pool_grad(c.block, s, count, at(x, inside), at(dy, outside), at(dx, inside))

    _planes(c, shape[0] * shape[1], product(shape), part)


class _Windows:
    """Pooling by plain loops: any type, any padding; means, gathers and their transposes too.

    Args:
        c: the call.
        what: "max", "max_grad", "gather", "avg" or "avg_grad".
    """

    def __init__(self, c: Call, what: str):
        self.c, self.b, self.block, self.what = c, c.b, c.block, what
        image = tuple(c.attrs["in_shape"]) if what == "avg_grad" else c.types[0].shape[2:]
        c.static(*image)
        self.image, self.kernel, self.strides = image, c.attrs["ksize"], c.attrs["strides"]
        (self.top, bottom), (self.left, right) = c.attrs["padding"]
        oh = (image[0] + self.top + bottom - self.kernel[0]) // self.strides[0] + 1
        ow = (image[1] + self.left + right - self.kernel[1]) // self.strides[1] + 1
        self.dtype = c.out_type.dtype
        self.x = c.operand(0)[0]
        self.other = c.operand(1)[0] if len(c.types) > 1 else None
        self.out = c.result()[0]
        block, size = self.block, image[0] * image[1]
        lead = c.types[0].shape[:2]
        with block.loop(c.dim(lead[0] * lead[1])) as p:
            base, base_out = tirx.Mul(p, idx(size)), tirx.Mul(p, idx(oh * ow))
            if what.endswith("grad"):
                with block.loop(size) as i:
                    block.store(self.out, self.zero(), tirx.Add(base, i))
            with block.loop(oh) as i, block.loop(ow) as j:
                place = block.let(tirx.Add(base_out, tirx.Add(tirx.Mul(i, idx(ow)), j)))
                cell = {"avg": self.mean, "avg_grad": self.spread}.get(what, self.extreme)
                cell(base, i, j, place)

    def zero(self) -> Any:
        return constant(0, self.dtype)

    def taps(self, base: Any, i: Any, j: Any, body: Any) -> None:
        """Call `body(inside, position)` in a loop over the elements of a window."""
        block, (height, width) = self.block, self.image
        with block.loop(self.kernel[0]) as a, block.loop(self.kernel[1]) as e:
            h = tirx.Sub(tirx.Add(tirx.Mul(i, idx(self.strides[0])), a), idx(self.top))
            w = tirx.Sub(tirx.Add(tirx.Mul(j, idx(self.strides[1])), e), idx(self.left))
            rows = tirx.And(tirx.GE(h, idx(0)), tirx.LT(h, idx(height)))
            inside = tirx.And(rows, tirx.And(tirx.GE(w, idx(0)), tirx.LT(w, idx(width))))
            body(inside, block.let(tirx.Add(base, tirx.Add(tirx.Mul(h, idx(width)), w))))

    def mean(self, base: Any, i: Any, j: Any, place: Any) -> None:
        """The mean of a window."""
        total = self.block.local(self.dtype)
        self.block.store(total, self.zero(), 0)

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
        best, where, done = block.local(self.dtype), block.local("int64"), block.local("int64")
        block.store(best, constant(-np.inf, self.dtype), 0)
        block.store(where, idx(-1), 0)
        block.store(done, idx(0), 0)

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
            # A window of padding alone has its maximum there: nothing to gather.
            safe = block.let(tirx.Select(found, load(where, 0), idx(0)))
            block.store(self.out, b.where(found, load(self.other, safe), self.zero()), place)
        else:
            with block.when(found):
                position = block.let(load(where, 0))
                block.store(self.out, b.add(load(self.out, position), load(self.other, place)), position)


# --- along an axis ----------------------------------------------------------------------------------------------------


def _axis_split(shape: tuple, axis: int) -> tuple[DimLike, DimLike, DimLike]:
    return product(shape[:axis]), shape[axis], product(shape[axis + 1 :])


def _position_of_extreme(c: Call, greatest: bool) -> None:
    x_type = c.types[0]
    outer, n, inner = _axis_split(x_type.shape, c.attrs["axis"])
    x, out = c.operand(0)[0], c.result()[0]
    b, block = c.b, c.block
    size, step = c.b.dim(n), c.b.dim(inner)
    floating = x_type.is_float
    with block.loop(c.dim(outer)) as o, block.loop(c.dim(inner)) as i:
        best, where = block.local(x_type.dtype), block.local("int64")
        base = block.let(tirx.Add(tirx.Mul(tirx.Mul(o, size), step), i))
        block.store(best, load(x, base), 0)
        block.store(where, idx(0), 0)
        with block.loop(size) as k:
            value = block.let(load(x, tirx.Add(base, tirx.Mul(k, step))))
            better = (b.gt if greatest else b.lt)(value, load(best, 0))
            if floating:
                better = tirx.Or(better, tirx.And(b.isnan(value), tirx.Not(b.isnan(load(best, 0)))))
            better = block.let(better)
            block.store(best, b.where(better, value, load(best, 0)), 0)
            block.store(where, b.where(better, k, load(where, 0)), 0)
        block.store(out, load(where, 0), tirx.Add(tirx.Mul(o, step), i))


def _cumsum(c: Call) -> None:
    x_type = c.types[0]
    outer, n, inner = _axis_split(x_type.shape, c.attrs["axis"])
    x, out = c.operand(0)[0], c.result()[0]
    b, block = c.b, c.block
    size, step = c.b.dim(n), c.b.dim(inner)
    with block.loop(c.dim(outer)) as o, block.loop(c.dim(inner)) as i:
        total = block.local(x_type.dtype)
        block.store(total, constant(0, x_type.dtype), 0)
        with block.loop(size) as k:
            turn = tirx.Sub(tirx.Sub(size, idx(1)), k) if c.attrs["reverse"] else k
            place = block.let(tirx.Add(tirx.Mul(tirx.Add(tirx.Mul(o, size), turn), step), i))
            block.store(total, b.add(load(total, 0), load(x, place)), 0)
            block.store(out, load(total, 0), place)


def _scatter_add(c: Call) -> None:
    x_type, indices, updates = c.types
    axis = c.attrs["axis"]
    outer, n, inner = _axis_split(x_type.shape, axis)
    count = product(indices.shape)
    block, b = c.block, c.b
    x, out, values = c.operand(0)[0], c.result()[0], c.operand(2)[0]
    lanes = lanes_for(x_type.dtype)
    total = x_type.size

    def copy(i, k):
        block.store(out, load(x, ramp(i, k)), ramp(i, k))

    from .vecmath import elementwise

    elementwise(block, c.dim(total), lanes, copy)
    size, step = c.b.dim(n), c.b.dim(inner)
    with block.loop(c.dim(outer)) as o, block.loop(c.dim(count)) as k:
        raw = c.scalar(1) if is_scalar(indices) else load(c.operand(1)[0], k)
        at_ = block.let(b.cast(raw, "int64"))
        at_ = block.let(b.where(tirx.GE(at_, size), tirx.Sub(size, idx(1)), at_))
        at_ = block.let(b.where(tirx.LT(at_, idx(0)), idx(0), at_))
        target = block.let(tirx.Mul(tirx.Add(tirx.Mul(o, size), at_), step))
        source = block.let(tirx.Mul(tirx.Add(tirx.Mul(o, c.b.dim(count)), k), step))

        def add(i, width):
            place = ramp(tirx.Add(target, i), width)  # noqa: B023
            block.store(out, b.add(load(out, place), load(values, ramp(tirx.Add(source, i), width))), place)  # noqa: B023

        elementwise(block, c.dim(inner), lanes if not isinstance(inner, int) or inner >= lanes else 1, add)


TABLE = {
    "dot": _dot,
    "batched_dot": _batched_dot,
    "matvec": _matvec,
    "conv2d": _conv2d,
    "conv2d_grad_input": _conv2d_grad_input,
    "conv2d_grad_weight": _conv2d_grad_weight,
    "max_pool": _max_pool,
    "max_pool_grad": _max_pool_grad,
    "max_pool_gather": lambda c: _Windows(c, "gather"),
    "avg_pool": lambda c: _Windows(c, "avg"),
    "avg_pool_grad": lambda c: _Windows(c, "avg_grad"),
    "argmax": lambda c: _position_of_extreme(c, True),
    "argmin": lambda c: _position_of_extreme(c, False),
    "cumsum": _cumsum,
    "scatter_add": _scatter_add,
}

__all__ = ["TABLE", "Call", "dtype_of", "lower"]
