"""Where the boxes of a picture go: layers from top to bottom, boxes inside of boxes.

The classic three steps (K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical system
structures", 1981): a layer for each box, by the longest path to it; an order in each layer, by the mean place of what a box
is connected to; then places as near to these as widths permit. A box that contains others is laid out first, and then placed
like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

GAP_X, GAP_Y, MARGIN, LANE = 16.0, 30.0, 10.0, 4.0
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
        lanes: where lines between boxes inside go past others: (from, layer) -> a narrow box.
    """

    key: object
    width: float = 0.0
    height: float = 0.0
    head: float = 0.0
    inside: list[DrawnBox] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    lanes: dict[tuple[object, int], DrawnBox] = field(default_factory=dict)

    def walk(self) -> Iterator[DrawnBox]:
        """This box and all inside, outer ones first."""
        todo: list[DrawnBox] = [self]
        while todo:
            box = todo.pop()
            yield box
            todo.extend(reversed(box.inside))


def arrange(root: DrawnBox, edges: Iterable[tuple[object, object]]) -> dict[tuple[object, object], list[DrawnBox]]:
    """Give all boxes places.

    Args:
        root: the box around everything.
        edges: (from, to) of keys; what they connect should follow from top to bottom.

    Returns:
        For each edge the lanes that its line goes through, from top to bottom.
    """
    routes: dict[tuple[object, object], tuple[DrawnBox, object, object]] = {}
    parents: dict[object, DrawnBox] = {b.key: box for box in root.walk() for b in box.inside}
    depth = {root.key: 0}
    for box in root.walk():
        depth.update((b.key, depth[box.key] + 1) for b in box.inside)
    between: dict[object, list[tuple[object, object]]] = {}
    for edge in edges:
        a, b = edge
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
            routes[edge] = parents[a], a, b
    layers: dict[object, int] = {}
    for box in reversed(list(root.walk())):
        if box.inside:
            layers.update(_place(box, between.get(box.key, [])))
    for box in root.walk():  # from places in the box around to places in the picture
        for inner in (*box.inside, *box.lanes.values()):
            inner.x, inner.y = box.x + inner.x, box.y + inner.y
    return {
        edge: [around.lanes[a, k] for k in range(layers[a] + 1, layers[b])]
        for edge, (around, a, b) in routes.items()
        if layers[a] < layers[b]
    }


def _place(around: DrawnBox, edges: list[tuple[object, object]]) -> dict[object, int]:
    """Give the boxes inside of one, all of known size, places in it; returns their layers."""
    boxes = {b.key: b for b in around.inside}
    boxes_and_lanes: dict[object, DrawnBox] = dict(boxes)
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
    used = {k: n for n, k in enumerate(sorted(set(layer.values())))}
    layer = {key: used[k] for key, k in layer.items()}
    layers: list[list] = [[] for _ in used]
    for key in boxes:
        layers[layer[key]].append(key)
    for a in boxes:
        for b in [b for b in below[a] if layer[b] > layer[a] + 1]:
            below[a].remove(b)
            above[b].remove(a)
            last = a
            for k in range(layer[a] + 1, layer[b]):
                lane = "lane", a, k
                if lane not in boxes_and_lanes:
                    boxes_and_lanes[lane] = around.lanes[a, k] = DrawnBox(lane, LANE)
                    above[lane], below[lane] = [last], []
                    below[last].append(lane)
                    layers[k].append(lane)
                last = lane
            below[last].append(b)
            above[b].append(last)
    centre = {key: float(k) for row in layers for k, key in enumerate(row)}
    for sweep in range(SWEEPS):
        rows, near = (layers, above) if sweep % 2 == 0 else (layers[::-1], below)
        for row in rows:
            wanted = {k: sum(centre[n] for n in near[k]) / len(near[k]) if near[k] else centre[k] for k in row}
            row.sort(key=wanted.__getitem__)
            centre.update((key, float(k)) for k, key in enumerate(row))
    y = around.head + MARGIN
    for row in layers:
        _spread(row, boxes_and_lanes, above)
        height = max(boxes_and_lanes[key].height for key in row)
        for key in row:
            boxes_and_lanes[key].y = y
            if key not in boxes:
                boxes_and_lanes[key].height = height
        y += height + GAP_Y
    left = min(b.x for b in boxes_and_lanes.values())
    for box in boxes_and_lanes.values():
        box.x += MARGIN - left
    around.width = max(around.width, MARGIN + max(b.x + b.width for b in boxes_and_lanes.values()))
    around.height = max(around.height, y - GAP_Y + MARGIN)
    return layer


def _spread(row: list, boxes: dict, above: dict) -> None:
    """Places of a row's boxes: below what they are connected to, as far as they do not overlap.

    The places in the order of the row with the least squares of distances from where boxes should be: neighbours that would overlap
    become a group, which goes to the mean of what its members want (J. Kruskal, "Nonmetric multidimensional scaling", 1964).
    """
    starts: list[float] = []  # of each box, if the row were packed from 0
    groups: list[list[float]] = []  # (sum of wanted shifts, weight, boxes) of each group
    start = shift = 0.0
    for key in row:
        over = [boxes[a].x + boxes[a].width / 2 for a in above[key]]
        if over:
            shift = sum(over) / len(over) - boxes[key].width / 2 - start
        weight = 1.0 if over else 1e-3
        groups.append([shift * weight, weight, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            last = groups.pop()
            groups[-1] = [x + y for x, y in zip(groups[-1], last)]
        starts.append(start)
        start += boxes[key].width + GAP_X
    shifts = [total / weight for total, weight, count in groups for _ in range(int(count))]
    for key, begin, moved in zip(row, starts, shifts):
        boxes[key].x = begin + moved
