"""One call: NumPy's outcome beside ours, and what to say of the two.

The kinds of verdicts:

- same: the same bits (any NaN is one), or within the bound of the function; the same dtype, shape and kind of value; or both raise.
- refused: a located error at compile time where NumPy has an answer. That is allowed.
- differs, dtype, shape, kind: another answer.
- accepts: an answer where NumPy raises.
- raises: an exception at run time, or of another class, where NumPy has an answer or raises something else.
- internal: an internal error, or an exception without a place.
"""

from __future__ import annotations

import linecache
import math
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import myia_relay
from myia_relay import CompileError, relay
from myia_relay.utils.errors import InternalError

from . import elementwise, products, shapes, sizes  # noqa: F401  importing fills the table
from .calls import CALLS
from .values import Draw

PACKAGE = str(Path(myia_relay.__file__).parent)
BOUND = 4  # units in the last place that functions of one element may be off by
SUMS = 64  # and those that add up many, in units of the greatest intermediate value
EXACT = frozenset(
    f"np.{name}"
    for name in (
        *(
            "add",
            "subtract",
            "multiply",
            "divide",
            "true_divide",
            "negative",
            "positive",
            "absolute",
            "abs",
            "sqrt",
            "floor",
        ),
        *(
            "ceil",
            "trunc",
            "rint",
            "sign",
            "maximum",
            "minimum",
            "fmax",
            "fmin",
            "floor_divide",
            "remainder",
            "mod",
            "copysign",
        ),
        *(
            "max",
            "min",
            "sort",
            "where",
            "clip",
            "cumsum",
            "round",
            "around",
            "isclose",
            "linspace",
            "arange",
            "interp",
        ),
        *(
            "median",
            "quantile",
            "percentile",
            "diff",
            "nan_to_num",
            "heaviside",
            "square",
            "full",
            "full_like",
            "array",
            "asarray",
        ),
        *(
            "reshape",
            "ravel",
            "transpose",
            "take",
            "pad",
            "roll",
            "tile",
            "repeat",
            "concatenate",
            "stack",
            "nanmax",
            "nanmin",
        ),
        *("reciprocal", "fabs", "logaddexp2"),
    )
) - {"np.logaddexp2"}


@dataclass
class Verdict:
    """What became of a call.

    Attributes:
        kind: see the module's text.
        call: its text.
        args: its operands.
        detail: both outcomes.
    """

    kind: str
    call: str
    args: list
    detail: str = ""

    def __str__(self) -> str:
        shown = ", ".join(f"a{i}={_show(a)}" for i, a in enumerate(self.args))
        return f"{self.kind}: {self.call} with {shown}\n    {self.detail}"


def _show(value) -> str:
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()!r}, np.{value.dtype.name})" + (
            f".reshape{value.shape}" if value.size == 0 else ""
        )
    return repr(value)


def function_of(text: str, names: list[str], number: int):
    """A Python function that makes a call, with source that inference can read."""
    file = f"<call {number}>"
    source = f"def call({', '.join(names)}):\n    return {text}\n"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope: dict = {"np": np}
    exec(compile(source, file, "exec"), scope)
    return scope["call"]


def outcome(function, args):
    """What a function gives: ("value", x) or ("raises", error)."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return "value", function(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
        except Exception as error:
            return "raises", error


def compare(name: str, seed: int, executor: str = "interpreter") -> Verdict:
    """Draw a call of a function by a seed, make it, and judge."""
    draw = Draw(seed)
    text = CALLS[name](draw)
    return judge(name, text, draw.args, executor)


_number = 0


def judge(name: str, text: str, args: list, executor: str = "interpreter") -> Verdict:
    """Judge one call with operands `a0`, `a1`, ..."""
    global _number
    _number += 1
    function = function_of(text, [f"a{i}" for i in range(len(args))], _number)
    theirs, ours = outcome(function, args), outcome(relay(executor=executor)(function), args)
    linecache.cache.pop(f"<call {_number}>", None)
    return Verdict(*_verdict(name, theirs, ours, args, text))


def _verdict(name, theirs, ours, args, text):
    detail = f"NumPy: {_outcome(theirs)}\n    ours:  {_outcome(ours)}"
    if ours[0] == "raises":
        error = ours[1]
        if isinstance(error, InternalError) or not isinstance(error, CompileError) and not _of_a_program(error):
            return "internal", text, args, detail
        if isinstance(error, CompileError):
            if PACKAGE in str(error):  # what the library itself cannot say
                return "internal", text, args, detail
            return "same" if theirs[0] == "raises" else "refused", text, args, detail
        if theirs[0] == "raises" and isinstance(theirs[1], type(error)):
            return "same", text, args, detail
        return "raises", text, args, detail
    if theirs[0] == "raises":
        return "accepts", text, args, detail
    return different(name, theirs[1], ours[1], args), text, args, detail


def _of_a_program(error: BaseException) -> bool:
    return isinstance(error, ValueError | TypeError | IndexError | ArithmeticError)


def _outcome(result) -> str:
    kind, value = result
    if kind == "raises":
        return f"{type(value).__name__}: {str(value).strip().splitlines()[-1] if str(value).strip() else ''}"
    return f"{type(value).__name__} {getattr(value, 'dtype', '')} {getattr(value, 'shape', '')} {str(value)!s}".replace(
        "\n", " "
    )


def different(name: str, theirs, ours, args) -> str:
    """How two values differ, or "same"."""
    if isinstance(theirs, tuple | list):
        if not isinstance(ours, tuple | list) or len(ours) != len(theirs):
            return "kind"
        found = [different(name, t, o, args) for t, o in zip(theirs, ours, strict=True)]
        return next((f for f in found if f != "same"), "same")
    if isinstance(theirs, np.ndarray) != isinstance(ours, np.ndarray):
        return "kind"
    if isinstance(theirs, np.ndarray | np.generic) and isinstance(ours, np.ndarray | np.generic):
        if theirs.dtype != ours.dtype:
            return "dtype"
        if theirs.shape != ours.shape:
            return "shape"
        return "same" if _same_values(name, theirs, ours, args) else "differs"
    if type(theirs) is not type(ours):
        return "kind"
    return "same" if theirs == ours or (theirs != theirs and ours != ours) else "differs"


def _same_values(name: str, theirs, ours, args) -> bool:
    t, o = np.asarray(theirs), np.asarray(ours)
    if t.dtype.kind != "f":
        return bool(np.all(t == o))
    if not np.array_equal(np.isnan(t), np.isnan(o)):
        return False
    equal = np.isnan(t) | ((t == o) & (np.signbit(t) == np.signbit(o)))
    if name in EXACT:
        return bool(np.all(equal))
    if np.any(((t == 0) | (o == 0)) & (t == o) & ~equal):
        return False
    return bool(np.all(equal | _near(t, o, args)))


def _near(t, o, args):
    """Within the bound: of the results themselves, or of what sums of products of the operands reach."""
    with np.errstate(all="ignore"):
        eps = float(np.finfo(t.dtype).eps)
        wide, other = t.astype(np.longdouble), o.astype(np.longdouble)
        near = np.abs(wide - other) <= BOUND * eps * np.abs(wide)
        tiny = float(np.finfo(t.dtype).smallest_subnormal)
        near |= np.abs(wide - other) <= BOUND * tiny
        reach = 1.0
        for a in args:
            x = np.asarray(a, np.longdouble)
            x = np.abs(x[np.isfinite(x)])
            reach *= max(1.0, min(float(np.max(x, initial=0)), 1e60) ** 2)
        if reach < 1e8:
            near |= np.abs(wide - other) <= SUMS * eps * reach
    return near & np.isfinite(t) & np.isfinite(o)


__all__ = ["CALLS", "Verdict", "compare", "judge", "math"]
