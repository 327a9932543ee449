"""Operators whose results have sizes that values decide, and sorting."""

from __future__ import annotations

import numpy as np

from ....abstract.dims import product
from ....ir.build import Var
from ....ir.prim import REGISTRY
from ....prims.rules.broadcast import cast, reshape
from ....prims.rules.relations import normalise_axis
from ..table import Context, operator


@operator("NonZero")
def non_zero(c: Context, x):
    """The positions of all elements that are not 0: a row for each axis."""
    if not x.shape:
        x = reshape(x, shape=(1,))
        found = c.numpy(np.nonzero, x)[0]
        return REGISTRY["slice"](
            reshape(found, shape=(1, found.shape[0])), starts=(0, 0), sizes=(0, found.shape[0]), steps=(1, 1)
        )
    found = c.numpy(np.nonzero, x)
    return c.numpy(np.stack, list(found))


@operator("Compress")
def compress(c: Context, x, condition, *, axis=None):
    """The parts along an axis of which a condition holds; without an axis the elements."""
    if axis is None:
        x, axis = reshape(x, shape=(product(x.shape),)), 0
    at = normalise_axis("Compress", axis, x.shape)
    places = c.numpy(np.flatnonzero, condition)
    return c.numpy(np.take, x, places, axis=at)


def _largest(x, largest):
    """Positions in order of the values along the last axis, equal ones in order of their positions."""
    if largest:
        n = x.shape[-1]
        back = np.flip(np.argsort(np.flip(x, -1), -1, kind="stable"), -1)
        return n - 1 - back
    return np.argsort(x, -1, kind="stable")


@operator("TopK", until=9, carries=False)
async def top_k_1(c: Context, x, *, k, axis=-1):
    """The greatest elements along an axis, and where they are."""
    return await chosen(c, x, k, axis, 1)


@operator("TopK", since=10, sizes=("k",))
async def top_k(c: Context, x, k, *, axis=-1, largest=1, sorted=1):
    """The greatest or least elements along an axis, and where they are."""
    return await chosen(c, x, k[0], axis, largest)


async def chosen(c: Context, x: Var, k, axis: int, largest: int) -> tuple[Var, Var]:
    """The k greatest or least elements along an axis, and where they are."""
    at = normalise_axis("TopK", axis, x.shape)
    last = c.numpy(np.moveaxis, x, at, -1)
    wide = cast(last, dtype="float32") if last.dtype in ("float16", "bfloat16") else last
    order = await c.call(_largest, wide, bool(largest))
    from .shapes import cut_axis

    places = cut_axis(c, order, 0, k, len(order.shape) - 1, 1)
    values = c.numpy(np.take_along_axis, last, places, axis=-1)
    return c.numpy(np.moveaxis, values, -1, at), c.numpy(np.moveaxis, places, -1, at)


def _first_positions(flat):
    """Values in order, where each first occurs, which value each element is, and how often each occurs."""
    return np.unique(flat, return_index=True, return_inverse=True, return_counts=True)


def _by_appearance(values, first, inverse, counts):
    """The same in the order in which the values first occur."""
    order = np.argsort(first, kind="stable")
    rank = np.argsort(order, kind="stable")
    return values[order], first[order], rank[np.ravel(inverse)], counts[order]


def _same_row(flat, i, j):
    """-1, 0 or 1: the order of two rows."""
    for k in range(flat.shape[1]):
        if flat[i, k] < flat[j, k]:
            return -1
        if flat[i, k] > flat[j, k]:
            return 1
    return 0


def _unique_rows(flat):
    """The positions of the first of equal rows, in order of the rows, which of them each row is, and how often each occurs."""
    n = flat.shape[0]
    first = []
    inverse = np.zeros(n, np.int64)
    for i in range(n):
        at = -1
        for j in range(len(first)):
            if _same_row(flat, i, first[j]) == 0:
                at = j
        if at < 0:
            at = len(first)
            first.append(i)
        inverse[i] = at
    m = len(first)
    place = np.zeros(m, np.int64)
    for i in range(m):
        for j in range(m):
            if _same_row(flat, first[j], first[i]) < 0:
                place[i] += 1
    rows = np.zeros(m, np.int64)
    early = np.zeros(m, np.int64)
    for i in range(m):
        rows[place[i]] = first[i]
        early[i] = first[i]
    counts = np.zeros(m, np.int64)
    unordered = np.zeros(m, np.int64)
    for i in range(n):
        counts[place[inverse[i]]] += 1
        unordered[inverse[i]] += 1
    return rows, place[inverse], counts, early, inverse, unordered


@operator("Unique")
async def unique_(c: Context, x, *, axis=None, sorted=1):
    """Every value, or every part along an axis, once; where each first occurs, which one each is, how often each occurs."""
    wide = (
        cast(x, dtype="float32")
        if x.dtype in ("float16", "bfloat16")
        else cast(x, dtype="uint8")
        if x.dtype == "bool"
        else x
    )
    if axis is None or len(x.shape) == 1:
        flat = reshape(wide, shape=(product(x.shape),))
        values, first, inverse, counts = await c.call(_first_positions, flat)
        if not sorted:
            values, first, inverse, counts = await c.call(_by_appearance, values, first, inverse, counts)
        inverse = c.numpy(np.ravel, inverse)
    else:
        at = normalise_axis("Unique", axis, x.shape)
        front = c.numpy(np.moveaxis, wide, at, 0)
        flat = reshape(front, shape=(front.shape[0], product(front.shape[1:])))
        found = await c.call(_unique_rows, flat)
        first, inverse, counts = found[:3] if sorted else found[3:]
        values = c.numpy(np.moveaxis, c.numpy(np.take, front, first, axis=0), 0, at)
    out = (cast(values, dtype=x.dtype), *(cast(v, dtype="int64") for v in (first, inverse, counts)))
    return out if c.outputs > 1 else out[0]


def _overlap(a, b, center):
    """The area of the intersection of two boxes over that of their union."""
    if center:
        ax1, ax2, ay1, ay2 = a[0] - a[2] / 2, a[0] + a[2] / 2, a[1] - a[3] / 2, a[1] + a[3] / 2
        bx1, bx2, by1, by2 = b[0] - b[2] / 2, b[0] + b[2] / 2, b[1] - b[3] / 2, b[1] + b[3] / 2
    else:
        ay1, ay2, ax1, ax2 = min(a[0], a[2]), max(a[0], a[2]), min(a[1], a[3]), max(a[1], a[3])
        by1, by2, bx1, bx2 = min(b[0], b[2]), max(b[0], b[2]), min(b[1], b[3]), max(b[1], b[3])
    width = max(min(ax2, bx2) - max(ax1, bx1), np.float32(0))
    height = max(min(ay2, by2) - max(ay1, by1), np.float32(0))
    both = width * height
    either = (ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - both
    return both / either if either > 0 else np.float32(0)


def _suppressed(boxes, scores, most, overlap, least, center):
    """Greedily the boxes of the best scores of each class, without those that overlap one that was taken."""
    batches, classes, n = scores.shape
    out = np.zeros((batches * classes * n, 3), np.int64)
    count = 0
    for i in range(batches):
        for j in range(classes):
            order = np.argsort(-scores[i, j], kind="stable")
            begin = count
            for k in range(n):
                at = order[k]
                keep = count - begin < most and scores[i, j, at] > least
                for m in range(begin, count):
                    if keep and _overlap(boxes[i, out[m, 2]], boxes[i, at], center) > overlap:
                        keep = False
                if keep:
                    out[count, 0] = i
                    out[count, 1] = j
                    out[count, 2] = at
                    count += 1
    return out[:count]


@operator("NonMaxSuppression", raw=("max_output_boxes_per_class", "iou_threshold", "score_threshold"))
async def non_max_suppression(
    c: Context,
    boxes,
    scores,
    max_output_boxes_per_class=None,
    iou_threshold=None,
    score_threshold=None,
    *,
    center_point_box=0,
):
    """Boxes of good scores that do not overlap much: rows of batch, class and box."""
    from ....prims.rules.broadcast import as_scalar

    def number(x, default, dtype):
        if x is None:
            return np.asarray(default, dtype)[()]
        return as_scalar(cast(reshape(x.var, shape=()), dtype=dtype))

    most = number(max_output_boxes_per_class, 0, "int64")
    overlap = number(iou_threshold, 0, "float32")
    least = number(score_threshold, -np.inf, "float32")
    return await c.call(_suppressed, boxes, scores, most, overlap, least, bool(center_point_box))
