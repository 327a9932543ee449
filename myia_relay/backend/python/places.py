"""Which calls of the user's program an exception came through, from where it passed the generated source.

Idea: the generated functions call each other, and so their frames are in the traceback of an exception. The calls are known in
the order in which they stand in the source; parsed again, the source tells which of them is at a frame's place. All that
happens only where a program has raised.

Input: an exception, the generated source, the origins of its calls in their order. Output: the origins of those in progress.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Sequence
from types import TracebackType

from ...utils.source import Origin

MOST = 24  # as many are told, of the innermost calls, and the outermost


def calls_of(error: BaseException, filename: str, text: str, calls: Sequence[Origin]) -> list[Origin]:
    """The calls that an exception came through, innermost first.

    Args:
        error: what was raised.
        filename: of the generated source.
        text: the source.
        calls: the origins of the calls of its functions, in the order in which `ast.walk` finds them function by function.
    """
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    names = {f.name for f in functions}
    found = [
        node
        for f in functions
        for node in ast.walk(f)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names
    ]
    if len(found) != len(calls):  # the printed source is another tree
        return []
    on_line: dict[int, list[tuple[ast.Call, Origin]]] = {}
    for node, origin in zip(found, calls):
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            on_line.setdefault(line, []).append((node, origin))
    frames: list[TracebackType] = []
    tb = error.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename == filename:
            frames.append(tb)
        tb = tb.tb_next
    passed: list[Origin] = []
    for frame in reversed(frames[:-1]):  # the last one raised it
        here = on_line.get(frame.tb_lineno, [])
        here = [pair for pair in here if _is_at(pair[0], frame)] if len(here) > 1 else here
        if len({id(origin) for _, origin in here}) == 1:
            passed.append(here[0][1])
    return passed if len(passed) <= MOST else [*passed[: MOST - 1], passed[-1]]


def _is_at(node: ast.Call, tb: TracebackType) -> bool:
    """Whether a frame is at a call; from Python 3.11 on code knows the columns of its instructions."""
    positions = getattr(tb.tb_frame.f_code, "co_positions", None)
    if positions is None:
        return False
    place = next(itertools.islice(positions(), tb.tb_lasti // 2, None), None)
    return place == (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


__all__ = ["calls_of"]
