"""Whether what a compiled program did is what CPython did."""

from __future__ import annotations

import math

import numpy as np

from .oracle import EPS, Oracle, Outcome


def parts(value) -> tuple:
    """What a container is, and its parts by name; (None, {}) of a leaf."""
    if isinstance(value, dict):
        return ("dict", tuple(value)), {f"[{k!r}]": v for k, v in value.items()}
    if isinstance(value, list | tuple):
        return (type(value), len(value)), {f"[{i}]": v for i, v in enumerate(value)}
    if hasattr(value, "__dataclass_fields__"):
        return type(value), {f".{name}": getattr(value, name) for name in value.__dataclass_fields__}
    return None, {}


def leaves(values: tuple, path: str = "result", seen: set | None = None):
    """The leaves of several results side by side, with their paths; where their structure differs, what they have there.

    Trees may share their parts, so that they have 2**n paths: the same objects side by side are looked at once.
    """
    seen = set() if seen is None else seen
    key = tuple(map(id, values))
    if key in seen:
        return
    seen.add(key)
    kinds, inside = zip(*map(parts, values))
    if kinds[0] is None or any(kind != kinds[0] for kind in kinds):
        yield path, values
        return
    for name in inside[0]:
        yield from leaves(tuple(found[name] for found in inside), path + name, seen)


def same_leaf(a, b) -> bool:
    """Equal in kind, dtype, shape and every bit, NaNs aside."""
    if type(a) is not type(b) or parts(a)[0] is not None:
        return False
    if isinstance(a, np.ndarray | np.generic):
        if a.dtype != b.dtype.newbyteorder("=") and a.dtype != b.dtype or a.shape != b.shape:
            return False  # an argument of foreign byte order comes back as it was or in this machine's order
        if a.dtype.kind != "f":
            return bool(np.array_equal(a, b))
        nans = np.isnan(a) & np.isnan(b)
        return bool(np.all(nans | ((a == b) & (np.signbit(a) == np.signbit(b)))))
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def difference(got: Outcome, want: Outcome) -> str:
    """What differs between two outcomes; empty where nothing does."""
    if got.printed != want.printed:
        return f"printed {got.printed!r} instead of {want.printed!r}"
    if (got.error is None) != (want.error is None):
        return f"{got} instead of {want}"
    if want.error is not None:
        if type(got.error) is not type(want.error) or str(got.error) != str(want.error):
            return f"{got.error!r} instead of {want.error!r}"
        if isinstance(want.error, RecursionError):
            return ""  # where a stack ends is an implementation's own
        return f"line {got.line} instead of {want.line} of {want.error!r}" if got.line != want.line else ""
    for path, (a, b) in leaves((got.value, want.value)):
        if not same_leaf(a, b):
            return f"{path}: {show(a)} instead of {show(b)}"
    return ""


def show(x) -> str:
    """A leaf with its kind."""
    return f"{type(x).__name__} {x.dtype}{x.shape} {x!r}" if isinstance(x, np.ndarray) else f"{type(x).__name__} {x!r}"


def excused(got: Outcome, want: Outcome, variants: list[Outcome]) -> bool:
    """Whether a difference is within what varies under CPython when inexact operations are off by a little."""
    every = [want, *variants]
    if (
        len({(type(v.error), v.line, v.printed if v.error is None else "") for v in every}) > 1
        or want.error is not None
    ):
        # Another branch, another exception, other text: as unstable as this the program has no one answer.
        return len({(type(v.error), v.line, str(v.error), v.printed) for v in every}) > 1
    if got.error is not None:
        return False
    for _, (mine, *theirs) in leaves(tuple(v.value for v in (got, *every))):
        if any(parts(v)[0] is not None for v in (mine, *theirs)):
            return False
        if same_leaf(mine, theirs[0]):
            continue
        alike = [t for t in theirs if type(t) is type(mine)]  # a branch may decide on the type of a number
        if not alike:
            return False
        if not isinstance(mine, float | np.floating) and getattr(getattr(mine, "dtype", None), "kind", "") != "f":
            if all(same_leaf(t, theirs[0]) for t in theirs):
                return False
            continue
        if isinstance(mine, np.ndarray) and any(mine.shape != t.shape or mine.dtype != t.dtype for t in alike):
            return False
        if not within(np.asarray(mine), [np.asarray(t) for t in alike]):
            return False
    return True


def within(got: np.ndarray, variants: list[np.ndarray]) -> bool:
    """Whether every element lies in the widened range of its variants; NaN, infinities and signs of zeros as in one of them."""
    stack = np.stack(variants)
    eps = EPS.get(got.dtype, 2.0**-52)
    with np.errstate(all="ignore"):
        low, high = np.nanmin(stack, axis=0), np.nanmax(stack, axis=0)
        margin = 2 * (high - low) + 2 * eps * np.maximum(np.abs(low), np.abs(high))
        moved = (high > low) | np.any(np.signbit(stack) != np.signbit(stack[0]), axis=0)
        near = (got >= low - margin) & (got <= high + margin) & moved
        nans = np.isnan(got) & np.any(np.isnan(stack), axis=0)
        same = np.any((got == stack) & (np.signbit(got) == np.signbit(stack)), axis=0)  # the others may be NaN
    return bool(np.all(near | nans | same))


def judge(oracle: Oracle, args: tuple, got: Outcome, want: Outcome | None, beyond: bool) -> str:
    """What is wrong with an outcome; empty where nothing is.

    Args:
        oracle: the program under CPython.
        args: the arguments.
        got: what compiled code did.
        want: what CPython did; None where its ints grew too large to know.
        beyond: whether an int left 64 bits there, which compiled code may answer with OverflowError.
    """
    if beyond and isinstance(got.error, OverflowError):
        return ""
    if isinstance(got.error, ValueError) and str(got.error).startswith(("NaN among", "NaN met NaN")):
        return ""  # what CPython does depends on the order of objects, or on which are one
    if want is None:
        return "no OverflowError, where an int leaves 64 bits"
    wrong = difference(got, want)
    if wrong and not beyond and excused(got, want, oracle.variants(args)):
        return ""
    return wrong
