"""Progress bars: tqdm with this project's defaults.

On a terminal the bar is redrawn often. In a log or a pipe it prints a line every few seconds, so that the log of a long
run stays readable and still shows progress. Bars go to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from tqdm import tqdm

LOG_INTERVAL = 5.0
"""Seconds between two states of a bar that does not go to a terminal."""


class Progress(tqdm):
    """A tqdm bar without tqdm's monitor thread (a compiled loop may fork or hold the GIL for long)."""

    monitor_interval = 0


def progress(
    iterable: Iterable | None = None,
    *,
    total: int | None = None,
    desc: str | None = None,
    unit: str = "it",
    unit_scale: bool = False,
    leave: bool = True,
    enabled: bool = True,
) -> Progress:
    """A progress bar.

    Args:
        iterable: what to iterate over; without it the caller says `.update(n)`.
        total: number of steps, where the iterable does not know.
        desc: words before the bar.
        unit: name of a step, as in ``12.3 steps/s``.
        unit_scale: write 1,200,000 as 1.20M, for bytes.
        leave: keep the finished bar on the screen.
        enabled: False draws nothing and costs next to nothing.

    Returns:
        A bar: iterable, a context manager, with `.update(n)`, `.set_postfix_str(text)` and `.close()`.
    """
    terminal = bool(getattr(sys.stderr, "isatty", lambda: False)())
    return Progress(
        iterable,
        total=total,
        desc=desc,
        unit=unit,
        unit_scale=unit_scale,
        leave=leave,
        disable=not enabled,
        file=sys.stderr,
        dynamic_ncols=terminal,
        ascii=None if terminal else True,
        mininterval=0.1 if terminal else LOG_INTERVAL,
        miniters=None if terminal else 1,
    )
