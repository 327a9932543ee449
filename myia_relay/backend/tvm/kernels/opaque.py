"""Kernels that are not loop nests over one expression: products, convolutions, pooling, searching and scattering.

There is one function for each primitive in `TABLE`. It gets a `Call`, asks it for operands, result and scratch memory,
and emits into its kernel. Products and convolutions go to BLAS by `blas` and `conv`; other element types and unusual
cases are plain loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import tirx

from ....abstract.dims import Dim, DimLike, is_known, product
from ....abstract.types import Array
from ....ir.node import Apply
from ....ir.prim import REGISTRY
from ....opt.analysis.fusion import is_scalar
from ....utils.errors import LoweringError
from ....utils.switches import is_left_out
from ..plan import ITEM, View
from ..tir import threads
from ..tir.block import broadcast, dtype_of, idx, lanes_of, load, ramp, shuffle, vload
from ..tir.expr import Expr, constant
from ..tir.indexing import AxisGroup, Index
from . import blas, conv, joined_conv, user_kernels
from .depthwise_conv import depthwise_conv, is_depthwise
from .direct_conv import direct_conv, is_direct
from .integers import depthwise
from .integers import products as integer_products
from .kernel import Evaluator, Kernel
from .nests import inlined, lanes_for
from .patches import Conv, at, fill
from .plain import plain_conv, plain_product
from .pooling import calls as pooling
from .products.library import by_vector, is_symmetric, matrix_product, on_threads, symmetric_product
from .products.panels import is_by_panels, product_by_panels
from .skinny_products import is_thin, is_vector, pack, packed_product, thin_product, vector_product
from .small_products import is_small, small_product
from .sorting import argsort_rows, sort_rows
from .stacks import fourier, lapack
from .tiles.open_convolution import open_convolution
from .triangular_products import clear, triangular_dot
from .winograd import is_winograd, winograd_conv

BLAS_TYPES = ("float32", "float64")
PARALLEL_FLOPS = 400_000  # about ten microseconds of one core
PARALLEL_BYTES = 400_000


OVERWRITING = ("scatter", "scatter_add")
"""What can be done in the memory of the first operand."""


class Call:
    """One application of an opaque primitive, being emitted.

    Attributes:
        overwrites: whether the result is where the first operand was.
        root: what is computed, from the application's own result and element by element; mostly that itself.
    """

    def __init__(self, lowering: Any, node: Apply, root: Apply):
        self.lowering, self.node, self.root = lowering, node, root
        self.kernel = Kernel(lowering, node.fn.name)
        self.block = self.kernel.block
        self.b = Expr(self.block, self.kernel.dims, array=True)
        self.attrs = node.attrs
        self.types = [a.type for a in node.args]
        self.out_type = node.type
        for arg in node.args:
            if isinstance(arg.type, Array) and not is_scalar(arg.type):
                lowering.flush_writers(lowering.view(arg).storage)
        if root is not node:
            for leaf in lowering.leaves([root]):
                lowering.flush_writers(lowering.view(leaf).storage)
        self.overwrites = node.fn.name in OVERWRITING and lowering.overwrites(node)
        if self.overwrites:
            self.target = lowering.view(node.args[0])
            lowering.flush_users(self.target.storage)
            lowering.scope.env.holders[self.target.storage].clear()
        else:
            self.target = lowering.slot(node.type.dtype) if is_scalar(node.type) else lowering.allocate(root)
            if root is not node:
                lowering.flush_users(self.target.storage)

    @property
    def finish(self) -> Any:
        """(value, sample, channel, position in the plane, lanes) -> the root's value; None where it is the application itself."""
        return None if self.root is self.node else self._finish

    def _finish(self, value: Any, sample: Any, channel: Any, position: Any, lanes: int) -> Any:
        groups = [AxisGroup(0, 1, idx(sample)), AxisGroup(1, 2, idx(channel)), AxisGroup(2, 4, ramp(position, lanes))]
        if len(self.root.type.shape) == 3:  # of one example
            groups = [AxisGroup(0, 1, groups[1].at), AxisGroup(1, 3, groups[2].at)]
        index = Index(self.root.type.shape, groups)
        evaluator = Evaluator(self.kernel)
        evaluator.pinned = {self.root: None}
        evaluator.given = {self.node: value}
        found = evaluator.value(self.root, index)
        return found if lanes_of(dtype_of(found)) == lanes else broadcast(found, lanes)

    def operand(self, k: int) -> tuple[Any, int]:
        """Argument `k` as a flat buffer and an offset."""
        return self.kernel.buffer(self.lowering.view(self.node.args[k])), 0

    def pitch(self, k: int) -> Any:
        """The elements from one row of argument `k` to the next, where it is a part of a matrix; else None."""
        pitch = self.lowering.view(self.node.args[k]).pitch
        return None if pitch is None else self.dim(pitch)

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

    def static(self, *sizes: DimLike, what: str = "images") -> None:
        """Refuse symbolic sizes where kernels need numbers.

        Raises:
            LoweringError: one of the sizes is symbolic.
        """
        if not all(isinstance(s, int) for s in sizes):
            raise LoweringError(
                f"{self.node.fn.name} needs {what} of known size; give the axes numbers instead of names"
            )


def threads_count() -> int:
    """How many threads loops are split over."""
    return max(1, threads.count())


def lower(lowering: Any, node: Apply, root: Apply | None = None) -> None:
    """Emit an opaque application.

    Args:
        lowering: the state of the walk.
        node: the application.
        root: what its kernel computes from its result; without one, that.

    Raises:
        LoweringError: the native executor cannot compile its primitive.
    """
    emit = TABLE.get(node.fn.name)
    if emit is None:
        raise LoweringError(f"the native executor cannot compile {node.fn.name}", node.origin)
    if not lowering.scope.fusion.users.get(node) or (root is None and lowering.is_inline(node)):
        return
    root = node if root is None else root
    c = Call(lowering, node, root)
    emit(c)
    applied = [node] if root is node else [node, *inlined([root], lowering.is_inline)]
    lowering.emit_kernel(c.kernel, list(dict.fromkeys(applied)))
    lowering.scope.env[root] = lowering.load_slot(c.target) if is_scalar(node.type) else c.target


# --- products ---------------------------------------------------------------------------------------------------------


def _dot(c: Call) -> None:
    a, x = c.types
    ta, tb = c.attrs["transpose_a"], c.attrs["transpose_b"]
    m, n = c.out_type.shape
    k = a.shape[0] if ta else a.shape[1]
    if not _by_blas(a.dtype) or 0 in (m, n, k):
        plain_product(c, 1, m, n, k, ta, tb)
        return
    if is_symmetric(c, m, k, ta, tb, PARALLEL_FLOPS):
        symmetric_product(c, m, k, ta)
        return
    if c.pitch(0) is not None or c.pitch(1) is not None:
        matrix_product(c, m, n, k, ta, tb, PARALLEL_FLOPS, PARALLEL_BYTES)
        return
    if is_small(1, m, n, k):
        small_product(c, 1, m, n, k, ta, tb)
        return
    if tb and not ta and is_vector(m, n, k, a.dtype):
        vector_product(c, (0, 1), m, n, k, threads_count())
        return
    if is_by_panels(m, n, k, ta, a.dtype):
        product_by_panels(c, m, n, k, tb, PARALLEL_FLOPS, PARALLEL_BYTES)
        return
    if is_thin(m, n, k, ta, tb, a.dtype):
        thin_product(c, m, n, k, ta, tb, c.tasks(2 * m * n * k, PARALLEL_FLOPS))
        return
    matrix_product(c, m, n, k, ta, tb, PARALLEL_FLOPS, PARALLEL_BYTES)


def _pack_columns(c: Call) -> None:
    a = c.types[0].shape
    k, n = (a[1], a[0]) if c.attrs["transposed"] else a
    pack(c, n, k, c.attrs["transposed"], c.attrs["width"], c.tasks(n * k, PARALLEL_BYTES))


def _packed_dot(c: Call) -> None:
    (m, k), n = c.types[0].shape, c.attrs["columns"]
    packed_product(c, m, n, k, c.attrs["width"], c.tasks(2 * m * n * k, PARALLEL_FLOPS))


def _triangular_dot(c: Call) -> None:
    if not _by_blas(c.out_type.dtype):
        _dot(c)
        if c.attrs["which"] == "result":
            clear(c)
        return
    (m, n), a = c.out_type.shape, c.types[0].shape
    triangular_dot(c, c.tasks(m * n * a[0 if c.attrs["transpose_a"] else 1], PARALLEL_FLOPS))


def _batched_dot(c: Call) -> None:
    a, _ = c.types
    ta, tb = c.attrs["transpose_a"], c.attrs["transpose_b"]
    batch, m, n = c.out_type.shape
    k = a.shape[1] if ta else a.shape[2]
    if not _by_blas(a.dtype) or 0 in (batch, m, n, k):
        plain_product(c, batch, m, n, k, ta, tb)
        return
    if is_small(batch, m, n, k):
        small_product(c, batch, m, n, k, ta, tb)
        return
    if is_thin(m, n, k, ta, tb, a.dtype, batch):
        thin_product(c, m, n, k, ta, tb, min(batch, c.tasks(2 * batch * m * n * k, PARALLEL_FLOPS)), batch)
        return
    left, right, out = c.operand(0), c.operand(1), c.result()
    rows, cols, inner = c.dim(m), c.dim(n), c.dim(k)
    sizes = [c.b.dim(m * k), c.b.dim(k * n), c.b.dim(m * n)]

    def run(tasks: int) -> None:
        with c.block.loop(c.dim(batch), "parallel" if tasks > 1 and batch != 1 else "serial") as i:
            places = [(o[0], tirx.Mul(i, s)) for o, s in zip((left, right, out), sizes)]
            blas.gemm(c.block, rows, cols, inner, *places, trans_a=ta, trans_x=tb)

    on_threads(c, 2 * batch * m * n * k, PARALLEL_FLOPS, run)


def _matvec(c: Call) -> None:
    a, _ = c.types
    trans = c.attrs["transpose"]
    rows, cols = a.shape
    m, k = (cols, rows) if trans else (rows, cols)
    if not _by_blas(a.dtype) or 0 in (m, k):
        plain_product(c, 1, m, 1, k, trans, False)
        return
    if is_small(1, m, 1, k):
        small_product(c, 1, m, 1, k, trans, False)
        return
    if c.pitch(0) is None and not trans and is_vector(1, m, k, a.dtype):
        vector_product(c, (1, 0), 1, m, k, threads_count())
        return
    by_vector(c, a.shape, c.operand(0), c.operand(1), c.result(), trans, PARALLEL_BYTES, c.pitch(0))


def takes_part(node: Apply, k: int) -> bool:
    """Whether an application's kernel can read argument `k`, a matrix, where it is a part of another: the BLAS can."""
    if node.fn not in (REGISTRY["dot"], REGISTRY["matvec"]) or not _by_blas(node.type.dtype) or is_left_out("parts"):
        return False
    if node.fn.name == "matvec":
        m, inner = node.args[0].type.shape[:: -1 if node.attrs["transpose"] else 1]
        return k == 0 and 0 not in (m, inner) and not is_small(1, m, 1, inner)
    (m, n), ta, tb = node.type.shape, node.attrs["transpose_a"], node.attrs["transpose_b"]
    inner, dtype = node.args[0].type.shape[0 if ta else 1], node.type.dtype
    own = is_small(1, m, n, inner) or is_by_panels(m, n, inner, ta, dtype) or is_thin(m, n, inner, ta, tb, dtype)
    return 0 not in (m, n, inner) and 1 not in (m, n) and not own and not (tb and is_vector(m, n, inner, dtype))


# --- convolutions -----------------------------------------------------------------------------------------------------


def _conv_shape(c: Call, image: tuple, filters: int, per_group: int, kernel: tuple) -> Conv:
    c.static(filters, per_group, *kernel, what="channels and filters")
    return _shape_of(c.attrs, image, filters, per_group, kernel)


def _shape_of(attrs: Any, image: tuple, filters: int, per_group: int, kernel: tuple) -> Conv:
    (height, width), ((top, bottom), (left, right)) = image, attrs["padding"]
    pads, (down, across) = (top, bottom, left, right), attrs.get("dilations", (1, 1))
    dilations = down if kernel[0] != 1 else 1, across if kernel[1] != 1 else 1
    filters //= attrs["groups"]
    return Conv(per_group, height, width, filters, tuple(kernel), tuple(attrs["strides"]), pads, dilations)


def takes_epilogue(node: Apply, root: Apply) -> bool:
    """Whether an application's kernel can compute what follows it element by element, up to a root."""
    if node.fn.name not in ("conv2d", "conv2d_words", "depthwise_words") or is_left_out("fuse_epilogues"):
        return False
    x, w = (a.type for a in node.args)
    if node.fn.name != "conv2d":
        return 0 not in node.type.shape
    if root.type.dtype != x.dtype:
        return False
    if not all(isinstance(size, int) for size in (x.shape[1], *w.shape)):
        return False
    s = _shape_of(node.attrs, x.shape[2:], w.shape[0], w.shape[1], w.shape[2:])
    if not is_known(x.shape[2:]):
        return _is_open_product(s, node.attrs["groups"], x.dtype)
    return x.shape[0] != 0 and _own_kernel(s, node.attrs["groups"], x.dtype) is not None


def _own_kernel(s: Conv, groups: int, dtype: str) -> Any:
    """What computes a convolution of so many groups of a shape without the BLAS, if that is quicker."""
    if any(step != 1 and gap != 1 for step, gap in zip(s.strides, s.dilations)):
        return None
    if is_depthwise(s, groups, dtype):
        return depthwise_conv
    if is_winograd(s, dtype):
        return winograd_conv
    return direct_conv if is_direct(s, dtype) else None


def _of_open_size(c: Call, s: Conv, what: str) -> bool:
    """Emit a convolution of images whose size is not known; False where it is."""
    if is_known((s.height, s.width)):
        return False
    emit = open_convolution if _is_open_product(s, c.attrs["groups"], c.out_type.dtype) else plain_conv
    emit(c, s, what)
    return True


def _is_open_product(s: Conv, groups: int, dtype: str) -> bool:
    """Whether a convolution of images of unknown size, of so many groups of a shape, is computed by products."""
    return _by_blas(dtype) and min(s.weights, groups) > 0


def _conv2d(c: Call) -> None:
    x, w = c.types
    s = _conv_shape(c, x.shape[2:], w.shape[0], w.shape[1], w.shape[2:])
    if _of_open_size(c, s, "forward"):
        return
    groups, n = c.attrs["groups"], x.shape[0]
    if (emit := _own_kernel(s, groups, x.dtype)) is not None and n != 0:
        tasks = c.tasks(2 * n * s.size_out * s.patch * groups, PARALLEL_FLOPS)
        emit(c, s, c.dim(n), groups, tasks, c.finish)
        return
    if not _by_blas(x.dtype) or 0 in c.out_type.shape:
        plain_conv(c, s, "forward")
        return
    tasks = c.tasks(2 * n * s.size_out * s.patch * groups, PARALLEL_FLOPS)
    source, filters, out = c.operand(0), c.operand(1), c.result()
    if groups == 1 and joined_conv.is_joined(s, n):
        scratch = c.scratch(joined_conv.scratch_size(s, n), x.dtype)
        joined_conv.forward(c.block, s, n, source, filters, out, scratch, tasks)
        return
    size = conv.scratch_size(s, n if isinstance(n, int) and groups == 1 else 2, tasks, "forward")
    scratch = c.scratch(max(size, 1), x.dtype)
    if groups == 1:
        conv.conv2d(c.block, s, c.dim(n), source, filters, out, scratch, tasks=tasks)
        return
    with conv.split(c.block, c.dim(n * groups), tasks) as (task, i):
        group = tirx.Mod(i, idx(groups))
        col = at(scratch, tirx.Mul(idx(task), idx(s.col_size)))
        x_at, w_at, y_at = [at(o, tirx.Mul(k, idx(z))) for o, k, z in (
            (source, i, s.size_in), (filters, group, s.weights), (out, i, s.size_out))]  # fmt: skip
        conv.forward_sample(c.block, s, x_at, w_at, y_at, col)


def _conv2d_words(c: Call) -> None:
    x, w = c.types
    c.static(*x.shape[2:])
    s = _conv_shape(c, x.shape[2:], w.shape[0], w.shape[1], w.shape[2:])
    groups, n, eight = c.attrs["groups"], x.shape[0], c.attrs["bits"] == 8
    if 0 in c.out_type.shape:
        return
    fill = np.full(4 if eight else 2, c.attrs["fill"], "uint8" if eight else "int16").view("<i4")[0]
    tasks = c.tasks(2 * n * s.size_out * s.patch * groups, PARALLEL_FLOPS)
    direct_conv(c, s, c.dim(n), groups, tasks, c.finish, "words8" if eight else "words16", int(fill))


def _conv2d_grad_input(c: Call) -> None:
    dy, w = c.types
    s = _conv_shape(c, tuple(c.attrs["in_shape"]), w.shape[0], w.shape[1], w.shape[2:])
    if _of_open_size(c, s, "grad_input"):
        return
    if not _by_blas(dy.dtype) or 0 in c.out_type.shape:
        plain_conv(c, s, "grad_input")
        return
    groups, n = c.attrs["groups"], dy.shape[0]
    tasks = c.tasks(2 * n * s.size_out * s.patch * groups, PARALLEL_FLOPS)
    grad, filters, out = c.operand(0), c.operand(1), c.result()
    if groups == 1 and joined_conv.is_joined(s, n):
        scratch = c.scratch(joined_conv.scratch_size(s, n), dy.dtype)
        joined_conv.grad_input(c.block, s, n, filters, grad, out, scratch, tasks)
        return
    size = conv.scratch_size(s, n if isinstance(n, int) and groups == 1 else 2, tasks, "grad_input")
    scratch = c.scratch(max(size, 1), dy.dtype)
    if groups == 1:
        conv.conv2d_grad_input(c.block, s, c.dim(n), filters, grad, out, scratch, tasks=tasks)
        return
    with conv.split(c.block, c.dim(n * groups), tasks) as (task, i):
        group = tirx.Mod(i, idx(groups))
        col = at(scratch, tirx.Mul(idx(task), idx(s.col_size)))
        w_at, dy_at, dx_at = [at(o, tirx.Mul(k, idx(z))) for o, k, z in (
            (filters, group, s.weights), (grad, i, s.size_out), (out, i, s.size_in))]  # fmt: skip
        conv.grad_input_sample(c.block, s, w_at, dy_at, dx_at, col)


def _conv2d_grad_weight(c: Call) -> None:
    x, dy = c.types
    groups, n = c.attrs["groups"], x.shape[0]
    s = _conv_shape(c, x.shape[2:], dy.shape[1], c.out_type.shape[1], tuple(c.attrs["kernel"]))
    if _of_open_size(c, s, "grad_weight"):
        return
    if not _by_blas(x.dtype) or 0 in (*c.out_type.shape, n):
        plain_conv(c, s, "grad_weight")
        return
    tasks = c.tasks(2 * n * s.size_out * s.patch * groups, PARALLEL_FLOPS)
    source, grad, out = c.operand(0), c.operand(1), c.result()
    if groups == 1 and joined_conv.is_joined(s, n):
        scratch = c.scratch(joined_conv.scratch_size(s, n), x.dtype)
        joined_conv.grad_weight(c.block, s, n, source, grad, out, scratch, tasks)
        return
    size = conv.scratch_size(s, n if isinstance(n, int) and groups == 1 else 2, tasks, "grad_weight")
    scratch = c.scratch(max(size, 1), x.dtype)
    if groups == 1:
        conv.conv2d_grad_weight(c.block, s, c.dim(n), source, grad, out, scratch, tasks=tasks)
        return
    with conv.split(c.block, groups, min(tasks, groups)) as (task, g):
        col, dw_at = at(scratch, tirx.Mul(idx(task), idx(s.col_size))), at(out, tirx.Mul(g, idx(s.weights)))
        if not isinstance(n, int):
            fill(c.block, dw_at, s.weights)  # where there is no sample there is no first one
        with c.block.loop(c.dim(n)) as i:
            k = tirx.Add(tirx.Mul(i, idx(groups)), g)
            x_at, dy_at = at(source, tirx.Mul(k, idx(s.size_in))), at(grad, tirx.Mul(k, idx(s.size_out)))
            with c.block.when(tirx.EQ(i, idx(0))):
                conv.grad_weight_sample(c.block, s, x_at, dy_at, dw_at, col, accumulate=False)
            with c.block.otherwise():
                conv.grad_weight_sample(c.block, s, x_at, dy_at, dw_at, col)


def _by_blas(dtype: str) -> bool:
    return dtype in BLAS_TYPES and not is_left_out("blas")


# --- along an axis ----------------------------------------------------------------------------------------------------


def _axis_split(shape: tuple, axis: int) -> tuple[DimLike, DimLike, DimLike]:
    return product(shape[:axis]), shape[axis], product(shape[axis + 1 :])


def _position_of_extreme(c: Call, greatest: bool) -> None:
    x_type = c.types[0]
    outer, n, inner = _axis_split(x_type.shape, c.attrs["axis"])
    (x, out), lanes = (c.operand(0)[0], c.result()[0]), lanes_for("int64")
    block, size, step = c.block, c.block.once(idx(c.b.dim(n))), c.b.dim(inner)
    wide = inner == 1 and ITEM[x_type.dtype] >= 4 and (not isinstance(n, int) or n >= 4 * lanes)
    with block.loop(c.dim(outer)) as o, block.loop(c.dim(inner)) as i:
        base = block.let(tirx.Add(tirx.Mul(tirx.Mul(o, size), step), i))
        best, where = block.cell(load(x, base)), block.cell(idx(0))
        start: Any = idx(0)
        if wide:
            whole = block.let(tirx.Div(size, idx(lanes)))
            start = block.let(tirx.Mul(whole, idx(lanes)))
            with block.when(tirx.GT(whole, idx(0))):
                _extremes_of_lanes(c, greatest, base, whole, lanes, best, where)
        with block.loop(tirx.Sub(size, start)) as k:
            place = block.let(tirx.Add(start, k))
            value = block.let(load(x, tirx.Add(base, tirx.Mul(place, step))))
            better = block.let(_is_better(c, greatest, value, load(best, 0)))
            block.store(best, c.b.where(better, value, load(best, 0)), 0)
            block.store(where, c.b.where(better, place, load(where, 0)), 0)
        block.store(out, load(where, 0), tirx.Add(tirx.Mul(o, step), i))


def _is_better(c: Call, greatest: bool, value: Any, best: Any) -> Any:
    """Whether a number is farther on than the best, or the first NaN."""
    b = c.b
    better = (b.gt if greatest else b.lt)(value, best)
    if not c.types[0].is_float:
        return better
    return b.logical_or(better, b.logical_and(b.isnan(value), b.logical_not(b.isnan(best))))


def _extremes_of_lanes(c: Call, greatest: bool, base: Any, whole: Any, lanes: int, best: Any, where: Any) -> None:
    """The extreme of `whole` vectors and its first position, into cells: of each lane by itself, and then of these."""
    x, b, block = c.operand(0)[0], c.b, c.block
    values, places = block.cell(vload(x, base, lanes), "values"), block.cell(ramp(idx(0), lanes), "places")
    with block.loop(tirx.Sub(whole, idx(1)), name="v") as v:
        first = block.let(tirx.Mul(tirx.Add(v, idx(1)), idx(lanes)))
        value = block.let(vload(x, tirx.Add(base, first), lanes))
        better = block.let(_is_better(c, greatest, value, load(values, 0)))
        block.store(values, b.where(better, value, load(values, 0)), 0)
        block.store(places, b.where(better, ramp(first, lanes), load(places, 0)), 0)
    vector, at_ = block.let(load(values, 0)), block.let(load(places, 0))
    for lane in range(lanes):
        value, place = (block.let(shuffle([w], [lane])) for w in (vector, at_))
        if lane:
            old, known = load(best, 0), load(where, 0)
            worse = _is_better(c, greatest, old, value)
            better = _is_better(c, greatest, value, old)
            first = b.logical_and(b.logical_not(worse), tirx.LT(place, known))
            taken = block.let(b.logical_or(better, first))
            value, place = b.where(taken, value, old), b.where(taken, place, known)
        block.store(best, value, 0)
        block.store(where, place, 0)


def _cumsum(c: Call) -> None:
    x_type = c.types[0]
    outer, n, inner = _axis_split(x_type.shape, c.attrs["axis"])
    x, out = c.operand(0)[0], c.result()[0]
    b, block = c.b, c.block
    size, step = c.b.dim(n), c.b.dim(inner)
    with block.loop(c.dim(outer)) as o, block.loop(c.dim(inner)) as i:
        # -0.0 is the neutral element: 0.0 would change a first -0.0.
        total = block.cell(constant(-0.0 if x_type.is_float else 0, x_type.dtype))
        with block.loop(size) as k:
            iteration = tirx.Sub(tirx.Sub(size, idx(1)), k) if c.attrs["reverse"] else k
            place = block.let(tirx.Add(tirx.Mul(tirx.Add(tirx.Mul(o, size), iteration), step), i))
            block.store(total, b.add(load(total, 0), load(x, place)), 0)
            block.store(out, load(total, 0), place)


def _shuffled(c: Call) -> None:
    *leading, n = c.types[0].shape
    words, out = c.operand(0)[0], c.result()[0]
    b, block, size = c.b, c.block, c.b.dim(n)
    with block.loop(c.dim(product(leading))) as o:
        start = block.let(tirx.Mul(o, size))
        with block.loop(size) as i:
            word = load(words, tirx.Add(start, i))
            count = tirx.Cast("uint64", tirx.Add(i, idx(1)))
            place = block.let(tirx.Add(start, tirx.Cast("int64", REGISTRY["mul_high"].lower_rule(b, word, count))))
            block.store(out, load(out, place), tirx.Add(start, i))
            block.store(out, i, place)


def _flat_nonzero(c: Call) -> None:
    """Every position is written where the next one belongs, and counted if the mask holds: no branch that cannot be foreseen."""
    mask, out, block = c.operand(0)[0], c.result()[0], c.block
    found, size = block.cell(idx(0), "found"), block.once(idx(c.dim(c.out_type.size)))
    with block.loop(c.dim(c.types[0].size)) as i:
        at_ = block.let(load(found, 0))
        with block.when(tirx.LT(at_, size)):
            block.store(out, i, at_)
        block.store(found, tirx.Add(at_, tirx.Cast("int64", load(mask, i))), 0)


def _scatter(c: Call) -> None:
    adds = c.node.fn.name == "scatter_add"
    x_type, indices, updates = c.types
    axis = c.attrs["axis"]
    outer, n, inner = _axis_split(x_type.shape, axis)
    count = product(indices.shape)
    block, b = c.block, c.b
    out, values = c.result()[0], None if is_scalar(updates) else c.operand(2)[0]
    lanes = lanes_for(x_type.dtype)

    from ..tir.vecmath import elementwise

    if not c.overwrites:
        x = c.operand(0)[0]
        elementwise(block, c.dim(x_type.size), lanes, lambda i, k: block.store(out, load(x, ramp(i, k)), ramp(i, k)))
    size, step = c.b.dim(n), c.b.dim(inner)
    with block.loop(c.dim(outer)) as o, block.loop(c.dim(count)) as k:
        raw = c.scalar(1) if is_scalar(indices) else load(c.operand(1)[0], k)
        at_ = block.let(b.cast(raw, "int64"))
        at_ = block.let(b.where(tirx.GE(at_, size), tirx.Sub(size, idx(1)), at_))
        at_ = block.let(b.where(tirx.LT(at_, idx(0)), idx(0), at_))
        target = block.let(tirx.Mul(tirx.Add(tirx.Mul(o, size), at_), step))
        source = block.let(tirx.Mul(tirx.Add(tirx.Mul(o, c.b.dim(count)), k), step))

        def put(i, width):
            place = ramp(tirx.Add(target, i), width)
            value = c.scalar(2) if values is None else load(values, ramp(tirx.Add(source, i), width))
            block.store(out, b.add(load(out, place), value) if adds else value, place)

        elementwise(block, c.dim(inner), lanes if not isinstance(inner, int) or inner >= lanes else 1, put)


TABLE = {
    "dot": _dot,
    "pack_columns": _pack_columns,
    "packed_dot": _packed_dot,
    "triangular_dot": _triangular_dot,
    "batched_dot": _batched_dot,
    "matvec": _matvec,
    "conv2d": _conv2d,
    "conv2d_words": _conv2d_words,
    "depthwise_words": depthwise.emit,
    "dot_shifted": integer_products.dots,
    "pack_words": integer_products.pack,
    "conv2d_grad_input": _conv2d_grad_input,
    "conv2d_grad_weight": _conv2d_grad_weight,
    "max_pool": pooling.max_pool,
    "max_pool_grad": pooling.max_pool_grad,
    "max_pool_gather": pooling.gather,
    "avg_pool": pooling.mean,
    "avg_pool_grad": pooling.mean_grad,
    "argmax": lambda c: _position_of_extreme(c, True),
    "argmin": lambda c: _position_of_extreme(c, False),
    "cumsum": _cumsum,
    "shuffled": _shuffled,
    "flat_nonzero": _flat_nonzero,
    "sort_rows": sort_rows,
    "argsort_rows": argsort_rows,
    "scatter": _scatter,
    "scatter_add": _scatter,
    "operator_kernel": user_kernels.emit,
    **lapack.TABLE,
    "dft": fourier.dft,
}

__all__ = ["TABLE", "Call", "dtype_of", "lower"]
