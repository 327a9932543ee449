"""Flame pictures: how time divides among calls, lines and kernels, as SVG that needs no library and no script.

Each rectangle is a function, a line or a kernel, as wide as its time; what it calls is below it. The pointer over a rectangle
shows its name, its time and its share.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape

WIDTH, HEIGHT = 1000, 19
COLOURS = {"forward": "#a8c8ec", "backward": "#f4bd9b", "tangent": "#c9b6e4", "": "#dddddd"}
LEAST = 0.4  # pixels that a rectangle is wide at least


@dataclass
class Rectangle:
    """A rectangle: its time, and what is below it by name."""

    name: str
    seconds: float = 0.0
    colour: str = ""
    below: dict[str, Rectangle] = field(default_factory=dict)


def tree(name: str, stacks: Iterable[tuple[tuple[str, ...], str, float]]) -> Rectangle:
    """The frames of stacks: (names outermost first, colour, seconds)."""
    root = Rectangle(name)
    for names, colour, seconds in stacks:
        root.seconds += seconds
        frame = root
        for part in names:
            frame = frame.below.setdefault(part, Rectangle(part, 0.0, colour))
            frame.seconds += seconds
    return root


def draw(root: Rectangle, show_time) -> str:
    """The picture.

    Args:
        root: what is all of the time.
        show_time: seconds -> text.
    """
    scale = WIDTH / root.seconds if root.seconds else 0.0
    boxes: list[str] = []
    depth, todo = 0, [(root, 0.0, 0)]
    while todo:
        frame, x, level = todo.pop()
        width = frame.seconds * scale
        if width < LEAST:
            continue
        depth = max(depth, level + 1)
        share = frame.seconds / root.seconds if root.seconds else 0.0
        title = escape(f"{frame.name}: {show_time(frame.seconds)}, {share:.1%}")
        label, room = frame.name, int(width / 6.6) - 1
        if len(label) > room:
            label = label[: room - 1] + "…" if room > 3 else ""
        y = level * HEIGHT
        boxes.append(
            f'<g><title>{title}</title><rect x="{x:.2f}" y="{y}" width="{max(width - 0.5, LEAST):.2f}" height="{HEIGHT - 1}" '
            f'fill="{COLOURS.get(frame.colour, COLOURS[""])}" rx="2"/>'
            + (f'<text x="{x + 4:.2f}" y="{y + 13}">{escape(label)}</text>' if label else "")
            + "</g>"
        )
        for part in sorted(frame.below.values(), key=lambda f: -f.seconds):
            todo.append((part, x, level + 1))
            x += part.seconds * scale
    body = "\n".join(boxes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {depth * HEIGHT}" width="{WIDTH}" '
        f'style="max-width:100%" font-family="DejaVu Sans Mono, Menlo, monospace" font-size="11">\n{body}\n</svg>'
    )
