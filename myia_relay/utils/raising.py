"""Raising a compiled program's exceptions as if the user's own line had raised them.

Shared by all executors: a failed check has an exception class, a message and an origin; what the user sees is a
traceback that ends in frames of the user's file, one for each call that was inlined, with the compiler's own frames
gone.
"""

from __future__ import annotations

import ast
import os
from types import TracebackType
from typing import Any, NoReturn

from .source import Loc, Origin

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def format_parts(parts, values) -> str:
    """An f-string: `parts` are strings and `(index, conversion, format spec)`.

    A conversion is None or "" (or -1, as in `ast`) for none, else "r", "s" or "a" (or its code).
    """
    text = []
    for part in parts:
        if isinstance(part, str):
            text.append(part)
            continue
        index, conversion, spec = part
        value = values[index]
        if isinstance(conversion, int):
            conversion = chr(conversion) if conversion > 0 else ""
        if conversion:
            value = {"r": repr, "s": str, "a": ascii}[conversion](value)
        text.append(format(value, spec or ""))
    return "".join(text)


def make_exception(exception: type[BaseException], message: str) -> BaseException:
    """The exception that `raise exception(message)` makes; without a message, `raise exception`."""
    return exception(message) if message else exception()


def raise_at(exception: type[BaseException], message: str, origin: Origin | None) -> NoReturn:
    """Raise `exception(message)` with traceback frames at the user's lines: inlined calls, then itself."""
    error = make_exception(exception, message)
    stack = origin.call_stack() if origin is not None else []
    if not stack:
        raise error

    def innermost():
        raise error

    action = innermost
    for i, loc in enumerate(stack):
        action = _frame(loc, action, error if i == 0 else None)
    action()
    raise error  # not reached: the frames raise


def _frame(loc: Loc, action, error: BaseException | None):
    """A function that runs a code object whose only line is the user's, which raises `error` or calls `action`."""
    place: dict[str, Any] = {
        "lineno": loc.line,
        "end_lineno": loc.end_line,
        "col_offset": loc.col,
        "end_col_offset": loc.end_col,
    }
    name = ast.Name("__myia_relay__", ast.Load(), **place)
    statement = (
        ast.Raise(name, None, **place) if error is not None else ast.Expr(ast.Call(name, [], [], **place), **place)
    )
    code = compile(ast.Module([statement], []), loc.file, "exec")
    names = {"co_name": loc.function}
    if hasattr(code, "co_qualname"):
        names["co_qualname"] = loc.function
    code = code.replace(**names)
    return lambda: exec(code, {"__name__": "__myia_relay__", "__myia_relay__": error if error is not None else action})


def without_our_frames(error: BaseException) -> BaseException:
    """The exception with the compiler's own frames taken out of its traceback.

    For the outermost call: `raise without_our_frames(error) from None`.
    """
    frames = []
    tb = error.__traceback__
    while tb is not None:
        if not os.path.abspath(tb.tb_frame.f_code.co_filename).startswith(PACKAGE):
            frames.append(tb)
        tb = tb.tb_next
    clean = None
    for tb in reversed(frames):
        clean = TracebackType(clean, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return error.with_traceback(clean)
