"""Tables on the terminal, drawn with rich. In a pipe or a file there are neither colours nor padding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def show(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Print a table.

    Args:
        columns: the heads of the columns; empty ones are not shown. Numbers stand at the right.
        rows: the cells, which are never cut off.
        title: a line above the table.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    table = Table(box=None, show_header=any(columns), pad_edge=False, padding=(0, 2, 0, 0))
    for k, column in enumerate(columns):
        numbers = bool(rows) and all(isinstance(row[k], (int, float)) for row in rows)
        table.add_column(column, justify="right" if numbers else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else str(cell)) for cell in row))
    console = Console(highlight=False, width=10_000)  # lines that are too long are left to the terminal
    if title:
        console.print(Text(title, style="bold"))
    with console.capture() as text:
        console.print(table)
    indent = "  " if title else ""
    for line in text.get().splitlines():
        print(f"{indent}{line.rstrip()}")
