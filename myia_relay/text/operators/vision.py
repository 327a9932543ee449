"""Detection of objects: boxes, and which of them to keep. Written in the language."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.types import FLOATS
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError
from ..terms.show import show
from ..terms.solver import Facts
from ..terms.terms import tensor, tuple_term
from .convolution import spread
from .declare import Attr, operator
from .images import block_of, space_to_depth
from .layouts import canonical
from .rules import accept
from .staged import array, constant


def _prior(facts: Facts) -> None:
    x = facts.tensor(0)
    _, _, h, w = facts.rank(x, 4)
    each = len(facts.attr("sizes")) + len(facts.attr("ratios")) - 1
    facts.gives_tensor((1, facts.compute(lambda a, c: a * c * each, h, w), 4), x.dtype)


PRIOR = {
    "sizes": Attr("floats", (1.0,)),
    "ratios": Attr("floats", (1.0,)),
    "steps": Attr("floats", (-1.0, -1.0)),
    "offsets": Attr("floats", (0.5, 0.5)),
    "clip": Attr("bool", False),
}


@operator("vision.multibox_prior", ("data",), _prior, PRIOR)
def multibox_prior(b: Builder, data: Var, sizes, ratios, steps, offsets, clip) -> Var:
    """Boxes of several sizes and ratios of width to height around each pixel: (1, boxes, 4), as left, top, right, bottom.

    Raises:
        ShapeError: the shapes do not fit.
    """
    x = array(data)
    h, w = x.shape[2:]
    if not isinstance(h, int) or not isinstance(w, int):
        raise ShapeError(f"vision.multibox_prior needs images of known size, and they have {(h, w)}")
    step_y, step_x = (s if s > 0 else 1 / n for s, n in zip(steps, (h, w), strict=True))
    shapes = [(s * h / w / 2, s / 2) for s in sizes]
    shapes += [(sizes[0] * h / w * r**0.5 / 2, sizes[0] / r**0.5 / 2) for r in ratios[1:]]
    boxes = [
        (cx - half_w, cy - half_h, cx + half_w, cy + half_h)
        for cy in ((i + offsets[0]) * step_y for i in range(h))
        for cx in ((j + offsets[1]) * step_x for j in range(w))
        for half_w, half_h in shapes
    ]
    out = np.array(boxes).reshape(1, -1, 4)
    return constant(b, np.clip(out, 0, 1) if clip else out, x.dtype)


def _valid_counts(facts: Facts) -> None:
    x = facts.tensor(0)
    accept(facts, x, FLOATS)
    batch, boxes, _ = facts.rank(x, 3)
    facts.equal(facts.tensor(1).shape, ())
    facts.gives(tuple_term((tensor((batch,), "int32"), x, tensor((batch, boxes), "int32"))))


@operator(
    "vision.get_valid_counts",
    ("data", "score_threshold"),
    _valid_counts,
    {"id_index": Attr("int", 0), "score_index": Attr("int", 1)},
    staged=False,
)
def get_valid_counts(data, score_threshold, id_index=0, score_index=1):
    """How many boxes have a score above a threshold and a class; these boxes first, -1 behind them; which they were."""
    counts = np.zeros(data.shape[0], np.int32)
    out = np.full(data.shape, -1.0, data.dtype)
    which = np.full((data.shape[0], data.shape[1]), -1, np.int32)
    for i in range(data.shape[0]):
        count = 0
        for j in range(data.shape[1]):
            keep = data[i, j, score_index] > score_threshold
            if id_index >= 0:
                keep = keep and data[i, j, id_index] >= 0
            if keep:
                out[i, count] = data[i, j]
                which[i, count] = j
                count += 1
        counts[i] = count
    return counts, out, which


def _nms(facts: Facts) -> None:
    x, counts, indices = facts.tensor(0), facts.tensor(1), facts.tensor(2)
    accept(facts, x, FLOATS)
    batch, boxes, _ = facts.rank(x, 3)
    facts.equal(counts.shape, (batch,))
    facts.equal(indices.shape, (batch, boxes))
    for k in (3, 4):
        facts.equal(facts.tensor(k).shape, ())
    if not facts.attr("return_indices"):
        facts.gives(x)
    else:
        facts.gives(tuple_term((tensor((batch, boxes), "int32"), tensor((batch, 1), "int32"))))


def _overlap(a, b, start):
    """The area that two boxes share over the area that they cover together."""
    left, top = np.maximum(a[start], b[start]), np.maximum(a[start + 1], b[start + 1])
    right, bottom = np.minimum(a[start + 2], b[start + 2]), np.minimum(a[start + 3], b[start + 3])
    shared = np.maximum(right - left, 0.0) * np.maximum(bottom - top, 0.0)
    first = (a[start + 2] - a[start]) * (a[start + 3] - a[start + 1])
    second = (b[start + 2] - b[start]) * (b[start + 3] - b[start + 1])
    union = first + second - shared
    return shared / union if union > 0 else shared * 0


NMS = {
    "force_suppress": Attr("bool", False),
    "top_k": Attr("int", -1),
    "coord_start": Attr("int", 2),
    "score_index": Attr("int", 1),
    "id_index": Attr("int", 0),
    "return_indices": Attr("bool", True),
    "invalid_to_bottom": Attr("bool", False),
}


@operator(
    "vision.non_max_suppression",
    ("data", "valid_count", "indices", "max_output_size", "iou_threshold"),
    _nms,
    NMS,
    staged=False,
)
def non_max_suppression(
    data, valid_count, indices, max_output_size, iou_threshold, force_suppress=False, top_k=-1, coord_start=2, score_index=1,
    id_index=0, return_indices=True, invalid_to_bottom=False,
):  # fmt: skip
    """The boxes in the order of their scores, without those that overlap a better one of their class; or which they were."""
    out = np.full(data.shape, -1.0, data.dtype)
    kept = np.full((data.shape[0], data.shape[1]), -1, np.int32)
    counts = np.zeros((data.shape[0], 1), np.int32)
    for i in range(data.shape[0]):
        valid = int(valid_count[i])
        scores = np.where(np.arange(data.shape[1]) < valid, data[i, :, score_index], -np.inf)
        order = data.shape[1] - 1 - np.flip(np.argsort(np.flip(scores, 0), kind="stable"), 0)
        considered = valid if top_k <= 0 else min(valid, top_k)
        suppressed = np.zeros(data.shape[1], np.bool_)
        count = 0
        for j in range(considered):
            if not suppressed[j] and (max_output_size < 0 or count < max_output_size):
                best = data[i, order[j]]
                if return_indices:
                    kept[i, count] = indices[i, order[j]]
                target = count if invalid_to_bottom else j
                out[i, target] = best
                count += 1
                for k in range(j + 1, considered):
                    other = data[i, order[k]]
                    alike = True
                    if id_index >= 0 and not force_suppress:
                        alike = bool(other[id_index] == best[id_index])
                    if alike and not suppressed[k] and _overlap(best, other, coord_start) >= iou_threshold:
                        suppressed[k] = True
        counts[i, 0] = count
    if return_indices:
        return kept, counts
    return out


def _roi_align(facts: Facts) -> None:
    x, boxes = facts.tensor(0), facts.tensor(1)
    dtype = facts.same_dtype(x, boxes)
    accept(facts, x, FLOATS)
    (_, c, _, _), _ = canonical(facts, x, facts.attr("layout"), "NCHW", "the data")
    count, five = facts.rank(boxes, 2, what="the boxes")
    facts.same_size(five, 5, f"{facts.name}: the boxes {show(boxes)} are (image, left, top, right, bottom)")
    facts.gives_tensor((count, c, *spread(facts.attr("pooled_size"), 2, facts.name, "pooled_size")), dtype)


ROI = {
    "pooled_size": Attr("ints"),
    "spatial_scale": Attr("float"),
    "sample_ratio": Attr("int", -1),
    "layout": Attr(("NCHW",), "NCHW"),
    "mode": Attr(("avg", "max"), "avg"),
}


def _pixel(image, y, x):
    """A value between pixels; 0 more than a pixel outside."""
    h, w = image.shape[1], image.shape[2]
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(int(y), h - 1), min(int(x), w - 1)
    bottom, right = min(top + 1, h - 1), min(left + 1, w - 1)
    ty, tx = (y - top if top < h - 1 else 0.0), (x - left if left < w - 1 else 0.0)
    upper = image[:, top, left] * (1 - tx) + image[:, top, right] * tx
    lower = image[:, bottom, left] * (1 - tx) + image[:, bottom, right] * tx
    return upper * (1 - ty) + lower * ty


@operator("vision.roi_align", ("data", "rois"), _roi_align, ROI, staged=False)
def roi_align(data, rois, pooled_size, spatial_scale, sample_ratio=-1, layout="NCHW", mode="avg"):
    """Parts of images in windows, interpolated at regular places within each window."""
    rows, columns = (pooled_size[0], pooled_size[0]) if len(pooled_size) == 1 else pooled_size
    out = np.zeros((rois.shape[0], data.shape[1], rows, columns), data.dtype)
    h, w = data.shape[2], data.shape[3]
    for r in range(rois.shape[0]):
        image = data[int(rois[r, 0])]
        left, top = float(rois[r, 1]) * spatial_scale, float(rois[r, 2]) * spatial_scale
        width = max(float(rois[r, 3]) * spatial_scale - left, 1.0)
        height = max(float(rois[r, 4]) * spatial_scale - top, 1.0)
        high, wide = height / rows, width / columns
        across = sample_ratio if sample_ratio > 0 else int(np.ceil(wide))
        down = sample_ratio if sample_ratio > 0 else int(np.ceil(high))
        for i in range(rows):
            for j in range(columns):
                total = np.zeros(data.shape[1], data.dtype)
                best = np.full(data.shape[1], -np.inf, data.dtype)
                for p in range(down):
                    y = top + (i + (p + 0.5) / down) * high
                    for q in range(across):
                        x = left + (j + (q + 0.5) / across) * wide
                        if y >= -1.0 and y <= h and x >= -1.0 and x <= w:
                            value = _pixel(image, y, x).astype(data.dtype)
                            total = total + value
                            best = np.maximum(best, value)
                if mode == "avg":
                    out[r, :, i, j] = (total / (down * across)).astype(data.dtype)
                else:
                    out[r, :, i, j] = best
    return out


def _reorg(facts: Facts) -> None:
    x, by = facts.tensor(0), facts.attr("stride")
    n, c, h, w = facts.rank(x, 4)
    down = [facts.compute(lambda m: block_of(m, by, facts.name), s) for s in (h, w)]
    facts.gives_tensor((n, facts.compute(lambda m: m * by * by, c), *down), x.dtype)


@operator("vision.yolo_reorg", ("data",), _reorg, {"stride": Attr("int", 1)})
def yolo_reorg(b: Builder, data: Var, stride: int = 1) -> Any:
    """Blocks of pixels become channels."""
    return space_to_depth(b, data, stride)
