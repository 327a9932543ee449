"""Numbers and tables for people, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

MOST = 60  # characters of a cell of text


def show_time(seconds: float) -> str:
    """A time with its unit: "1.23 ms"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds < 1000 * size else f"{seconds:.0f} s"
    return f"{seconds * 1e9:.3g} ns"


def show_count(n: float) -> str:
    """A number with a prefix: "3.2 M"."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.3g}"


def show_bytes(n: int | None) -> str:
    """A number of bytes: "1.5 MiB"; nothing where it is not known."""
    if n is None:
        return ""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n} B"


def text_table(rows: list[list[str]], right: Iterable[str] = ()) -> list[str]:
    """Rows as lines of equal columns; the first row is the head, and names the columns that are aligned to the right."""
    right = set(right)
    cells = [[c if len(c) <= MOST else c[: MOST - 1] + "…" for c in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return [
        "  "
        + "  ".join(c.rjust(w) if head in right else c.ljust(w) for c, w, head in zip(row, widths, cells[0])).rstrip()
        for row in cells
    ]


def html_table(rows: list[list[str]]) -> str:
    """Rows as a table; the first is the head."""
    head = "".join(f"<th>{escape(c)}</th>" for c in rows[0])
    body = "".join(
        "<tr>" + "".join(f'<td style="text-align:left;white-space:pre">{escape(c)}</td>' for c in row) + "</tr>"
        for row in rows[1:]
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
