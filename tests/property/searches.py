"""Campaigns of random programs, each found again by its seed."""

from __future__ import annotations

import functools
import multiprocessing
import time
from collections.abc import Callable


def verdict_of(check: Callable[[int], object], seed: int) -> tuple[int, str]:
    """The seed, and what `check` raised; "" if nothing."""
    try:
        check(seed)
    except Exception as error:
        return seed, f"{type(error).__name__}: {error}"
    return seed, ""


def checking(check: Callable[[int], object]) -> Callable[[int], tuple[int, str]]:
    """What `campaign` asks for, of a function that raises where a program is wrong."""
    return functools.partial(verdict_of, check)


def campaign(one: Callable[[int], tuple[int, str]], first: int, count: int, processes: int = 2) -> int:
    """Check programs, print what is wrong; returns how many are.

    Args:
        one: seed -> the seed, and what is wrong with its program; "" if nothing is.
        first: the first seed.
        count: how many.
        processes: which share the work.
    """
    start, failed = time.monotonic(), 0
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=50) as pool:
        for done, (seed, wrong) in enumerate(pool.imap_unordered(one, range(first, first + count)), 1):
            if wrong:
                failed += 1
                print(f"seed {seed}: {wrong[:600]}", flush=True)
            if done % 100 == 0 or done == count:
                print(f"{done} programs, {failed} failed, {time.monotonic() - start:.0f} s", flush=True)
    return failed
