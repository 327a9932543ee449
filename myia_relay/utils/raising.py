"""Raising a compiled program's exceptions as if the user's own line had raised them.

All executors share this. A failed check has an exception class, a message and an origin. The user sees a traceback that
ends in frames of the user's file, one for each call that was inlined, without the compiler's own frames.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NoReturn

import numpy as np

from .errors import CompileError, InternalError, SliceBeyond
from .source import NOWHERE, PACKAGE, Loc, Origin, is_ours

# What may come from outside while the compiler runs: a full disk or memory, a missing library, warnings made errors.
OUTSIDE = (OSError, ImportError, MemoryError, RecursionError, Warning, FloatingPointError)
LIBRARIES = (f"{os.sep}tvm{os.sep}", f"{os.sep}tvm_ffi{os.sep}", f"{os.sep}numpy{os.sep}")
ITSELF = (
    "itself"  # the conversion of an operand that is an exception's argument as it is: KeyError(3), not KeyError("3")
)
DESCRIBED = "described"  # the conversion of an operand that may be a large array: `described`
FOREIGN = (".cc", ".cpp", ".h", ".hpp", ".pyx", ".pxi", "<unknown>")


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
            value = {"r": repr, "s": str, "a": ascii, DESCRIBED: described}[conversion](value)
        text.append(format(value, spec or ""))
    return "".join(text)


def described(value: Any) -> str:
    """A number, or what an array is: its dtype and shape, the range of its finite elements, and the first that is none."""
    x = np.asarray(value)
    if x.shape == ():
        return f"{x.item()!r}, a {x.dtype}"
    text, numbers = f"{x.dtype}{list(x.shape)}", x.astype(np.float64)
    finite = np.isfinite(numbers)
    if finite.any():
        text += f", from {numbers[finite].min():.6g} to {numbers[finite].max():.6g}"
    for name, bad in (("NaN", np.isnan(numbers)), ("infinity", np.isinf(numbers))):
        if bad.any():
            first = ", ".join(map(str, np.unravel_index(int(np.argmax(bad)), x.shape)))
            text += f", {name} at [{first}]" + (f" and {int(bad.sum()) - 1} more" if bad.sum() > 1 else "")
    return text


def exception_argument(parts, values) -> Any:
    """What an exception is made with: None for nothing, a value that is no text as it is, else the text."""
    if not parts:
        return None
    if len(parts) == 1 and not isinstance(parts[0], str) and parts[0][1] == ITSELF:
        return values[parts[0][0]]
    return format_parts(parts, values)


def make_exception(exception: type[BaseException], message: Any) -> BaseException:
    """The exception that `raise exception(message)` makes; where the message is None, `raise exception`."""
    if (
        getattr(type(message), "__relay_name__", None) == "str"
    ):  # what stands for a string in an executor written in Python
        message = str(message)
    return exception() if message is None else exception(message)


def raise_at(
    exception: type[BaseException], message: Any, origin: Origin | None, calls: Sequence[Origin | None] = ()
) -> NoReturn:
    """Raise `exception(message)` with traceback frames at the user's lines: calls, then itself.

    Args:
        exception: its class.
        message: its argument, mostly a text; None for none.
        origin: the place, which knows the calls that were inlined.
        calls: further calls that led there, innermost first.
    """
    error = make_exception(exception, message)
    place = origin.called_from(calls) if origin is not None and calls else origin
    if isinstance(error, CompileError):
        error.at(place)
    elif isinstance(error, SliceBeyond):
        error.origin = origin
    raise_again(error, place)


def raise_through(error: Exception, calls: Sequence[Origin | None]) -> NoReturn:
    """Raise an exception of the running program with the calls that it came through in its traceback.

    Args:
        error: what was raised; anything but an exception of the program is raised as it is.
        calls: the calls, innermost first.
    """
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code is not raise_again.__code__:
        tb = tb.tb_next
    if tb is None:
        raise error
    while tb is not None and is_ours(tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    around = NOWHERE.called_from(calls)
    locs = around.call_stack()
    if tb is not None and locs:  # a function of this package shows the line that calls it
        code = tb.tb_frame.f_code
        if (locs[0].file, locs[0].line, locs[0].function) == (code.co_filename, tb.tb_lineno, code.co_name):
            around = around.parent or NOWHERE
    if isinstance(error, CompileError) and error.origin is not None:
        error.origin = error.origin.called_from([around])
    raise_again(error, around)


def raise_again(error: BaseException, origin: Origin | None) -> NoReturn:
    """Raise an exception with traceback frames at the user's lines before its own.

    Args:
        error: the exception; where it was raised before, that stays at the end of its traceback.
        origin: the place.
    """
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
    names: dict[str, Any] = {"co_name": loc.function}
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
        if not is_ours(tb.tb_frame.f_code.co_filename):
            frames.append(tb)
        tb = tb.tb_next
    clean = None
    for tb in reversed(frames):
        clean = TracebackType(clean, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return error.with_traceback(clean)


def for_user(error: BaseException, debug: bool, place: Any = None) -> BaseException:
    """What leaves the package for an exception that reached its boundary.

    The user's mistakes and what a running program raises lose the compiler's frames; anything else is a bug of ours and
    says so, with the exception as its cause.

    Args:
        error: what was raised.
        debug: leave errors of programs as they are, compiler's frames included.
        place: `() -> Origin | None`: where to show a mistake that has no place of its own.
    """
    if isinstance(error, CompileError):
        error = error.public()
        if place is not None and error.loc is None:
            error.at(place())
        if not debug:
            error.__cause__, error.__suppress_context__ = None, True
        return error if debug else error.with_traceback(None)
    if isinstance(error, SliceBeyond):
        error = error.public()
    if not isinstance(error, Exception) or isinstance(error, (InternalError, *OUTSIDE)) or _of_program(error):
        return error if debug else without_our_frames(error)
    internal = InternalError(_module(error), f"{type(error).__name__}: {error}")
    internal.__cause__ = error
    return internal


def _of_program(error: Exception) -> bool:
    """Whether the running program raised it (`raise_again`), or the user's code that it called, not the compiler."""
    tb, after = error.__traceback__, []
    while tb is not None:
        code = tb.tb_frame.f_code
        if code is raise_again.__code__:
            return True
        after = [] if is_ours(code.co_filename) else [*after, code.co_filename]
        tb = tb.tb_next
    # What our innermost frame called: TVM shows the frames of its C++ too. A library may have called a user's function, or
    # have been interrupted by a signal whose handler is the user's: its last frame tells who raised.
    return bool(after) and not any(f.endswith(FOREIGN) for f in after) and not any(p in after[-1] for p in LIBRARIES)


def _module(error: Exception) -> str:
    """The innermost file of ours in the traceback."""
    tb, name = error.__traceback__, "myia_relay"
    while tb is not None:
        file = os.path.abspath(tb.tb_frame.f_code.co_filename)
        if file.startswith(PACKAGE):
            name = file[len(PACKAGE) :].removesuffix(".py").replace(os.sep, ".")
        tb = tb.tb_next
    return name
