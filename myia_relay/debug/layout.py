"""Where the boxes of a picture go: layers from top to bottom, boxes inside of boxes.

The classic three steps (K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical system
structures", 1981): a layer for each box, by the longest path to it; an order in each layer, by the mean place of what a box
is connected to; then places as near to these as widths permit. A box that contains others is laid out first, and then placed
like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

GAP_X, GAP_Y, MARGIN = 16.0, 30.0, 10.0
SWEEPS = 4  # over the layers, to order them


@dataclass(eq=False)
class DrawnBox:
    """A box, perhaps with others inside.

    Attributes:
        key: what it stands for.
        width, height: its size; those of a box with others inside follow from them, but are never smaller.
        head: the height of what is written in it, above the boxes inside.
        inside: the boxes in it, in program order.
        x, y: its upper left corner in the picture.
    """

    key: object
    width: float = 0.0
    height: float = 0.0
    head: float = 0.0
    inside: list[DrawnBox] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    def walk(self) -> Iterator[DrawnBox]:
        """This box and all inside, outer ones first."""
        todo: list[DrawnBox] = [self]
        while todo:
            box = todo.pop()
            yield box
            todo.extend(reversed(box.inside))


def arrange(root: DrawnBox, edges: Iterable[tuple[object, object]]) -> None:
    """Give all boxes places.

    Args:
        root: the box around everything.
        edges: (from, to) of keys; what they connect should follow from top to bottom.
    """
    parents: dict[object, DrawnBox] = {b.key: box for box in root.walk() for b in box.inside}
    depth = {root.key: 0}
    for box in root.walk():
        depth.update((b.key, depth[box.key] + 1) for b in box.inside)
    between: dict[object, list[tuple[object, object]]] = {}
    for a, b in edges:
        if a not in depth or b not in depth:
            continue
        while depth[a] > depth[b]:
            a = parents[a].key
        while depth[b] > depth[a]:
            b = parents[b].key
        while a != b and parents[a] is not parents[b]:
            a, b = parents[a].key, parents[b].key
        if a != b:
            between.setdefault(parents[a].key, []).append((a, b))
    for box in reversed(list(root.walk())):
        if box.inside:
            _place(box, between.get(box.key, []))
    for box in root.walk():  # from places in the box around to places in the picture
        for inner in box.inside:
            inner.x, inner.y = box.x + inner.x, box.y + inner.y


def _place(around: DrawnBox, edges: list[tuple[object, object]]) -> None:
    boxes = {b.key: b for b in around.inside}
    order = {key: k for k, key in enumerate(boxes)}
    above: dict[object, list] = {key: [] for key in boxes}
    below: dict[object, list] = {key: [] for key in boxes}
    for a, b in dict.fromkeys(edges):
        if order[a] < order[b]:  # program order has no cycles
            above[b].append(a)
            below[a].append(b)
    layer: dict[object, int] = {}
    for key in boxes:
        layer[key] = 1 + max((layer[a] for a in above[key]), default=-1)
    early: set[object] = set()  # what follows from nothing but what has nothing above goes to where it is used
    for key in boxes:
        if not above[key] or (len(above[key]) == 1 and above[key][0] in early):
            early.add(key)
    for key in reversed(list(boxes)):
        if key in early and below[key]:
            layer[key] = max(layer[key], min(layer[b] for b in below[key]) - 1)
    layers: list[list] = [[] for _ in range(1 + max(layer.values()))]
    for key in boxes:
        layers[layer[key]].append(key)
    layers = [row for row in layers if row]
    centre = {key: float(k) for row in layers for k, key in enumerate(row)}
    for sweep in range(SWEEPS):
        rows, near = (layers, above) if sweep % 2 == 0 else (layers[::-1], below)
        for row in rows:
            wanted = {k: sum(centre[n] for n in near[k]) / len(near[k]) if near[k] else centre[k] for k in row}
            row.sort(key=wanted.__getitem__)
            centre.update((key, float(k)) for k, key in enumerate(row))
    y = around.head + MARGIN
    for row in layers:
        _spread(row, boxes, above)
        for key in row:
            boxes[key].y = y
        y += max(boxes[key].height for key in row) + GAP_Y
    left = min(b.x for b in around.inside)
    for b in around.inside:
        b.x += MARGIN - left
    around.width = max(around.width, MARGIN + max(b.x + b.width for b in around.inside))
    around.height = max(around.height, y - GAP_Y + MARGIN)


def _spread(row: list, boxes: dict, above: dict) -> None:
    """Places of a row's boxes: below what they are connected to, as far as they do not overlap."""
    wanted = []
    for key in row:
        over = [boxes[a].x + boxes[a].width / 2 for a in above[key]]
        wanted.append(sum(over) / len(over) - boxes[key].width / 2 if over else None)
    known = [w for w in wanted if w is not None]
    start, x = min(known, default=0.0), float("-inf")
    for key, want in zip(row, wanted):
        boxes[key].x = max(x, start if want is None else want)
        x = boxes[key].x + boxes[key].width + GAP_X
    # All were pushed to the right: move the row back by the mean of that.
    moved = [boxes[key].x - want for key, want in zip(row, wanted) if want is not None]
    if moved:
        back = sum(moved) / len(moved)
        for key in row:
            boxes[key].x -= back
