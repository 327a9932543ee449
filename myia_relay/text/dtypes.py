"""Data types by name: which there are, and which numbers they hold."""

from __future__ import annotations

import functools
import re

import numpy as np

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
SUFFIXES = {
    **{f"{kind[0]}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "f": "float32",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "bf16": "bfloat16",
}
"""What stands behind a number -> its dtype."""
_NUMBER = re.compile(r"(inf|nan|\d+(\.\d+)?([eE][+-]?\d+)?)(\w*)", re.ASCII)
LONGEST = 1000  # characters of a number: far more than any dtype holds


@functools.lru_cache
def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a name in `DTYPES`."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def is_float(dtype: str) -> bool:
    """Whether a dtype is one of floats."""
    return "float" in dtype


def rounded(value: float, dtype: str) -> float:
    """The number of a float dtype that is nearest."""
    if dtype == "float64":
        return float(value)
    with np.errstate(over="ignore"):
        return float(np.asarray(value, np.float64).astype(numpy_dtype(dtype)))


def integer_range(dtype: str) -> tuple[int, int]:
    """The least and the largest integer of a dtype."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


@functools.lru_cache(4096)
def read_number(text: str, negative: bool) -> tuple[int | float, str]:
    """What a number with its suffix stands for, and its dtype.

    Args:
        text: as the lexer finds it, without a sign.
        negative: whether a minus sign belongs to it.

    Raises:
        ValueError: there is no such number; the message says why.
    """
    found = _NUMBER.fullmatch(text)
    if found is None or len(text) > LONGEST:
        raise ValueError(f"the number {text[:20]}.. is too long" if len(text) > LONGEST else f"{text} is no number")
    mantissa, fraction, exponent, suffix = found.groups()
    whole = fraction is None and exponent is None and mantissa not in ("inf", "nan")
    shown = ("-" if negative else "") + text
    if suffix and suffix not in SUFFIXES:
        raise ValueError(f"{text}: there is no suffix {suffix}; those of numbers are {', '.join(SUFFIXES)}")
    if whole and (not suffix or not is_float(SUFFIXES[suffix])):
        value = -int(mantissa) if negative else int(mantissa)
        dtypes = [SUFFIXES[suffix]] if suffix else ["int32", "int64"]
        for dtype in dtypes:
            least, largest = integer_range(dtype)
            if least <= value <= largest:
                return value, dtype
        raise ValueError(f"{shown} does not fit in {dtypes[-1]}, which ends at {least if negative else largest}")
    dtype = SUFFIXES[suffix] if suffix else "float32"
    if not is_float(dtype):
        raise ValueError(f"{shown} is no integer, so it has no suffix {suffix}")
    exact = float(mantissa)
    value = rounded(exact, dtype)
    if value == float("inf") and mantissa != "inf":
        raise ValueError(f"{shown} is too large for {dtype}; infinity is written inf{suffix or 'f'}")
    return (-value if negative else value), dtype


def spelled(value: bool | int | float, dtype: str) -> str:
    """A number as text that `read_number` reads as the same one."""
    if dtype == "bool":
        return "True" if value else "False"
    if dtype == "int32":
        return str(value)
    if not is_float(dtype):
        suffix = next(s for s, d in SUFFIXES.items() if d == dtype)
        return f"{value}{suffix}"
    suffix = "f" if dtype == "float32" else next(s for s, d in SUFFIXES.items() if d == dtype)
    return f"{shortest(float(value), dtype)}{suffix}"


def shortest(value: float, dtype: str = "float64") -> str:
    """The shortest decimal number that is read as a float of a dtype; `1` for 1.0."""
    if value != value:
        return "nan"
    if dtype in ("float64", "bfloat16"):
        text = repr(value)
    else:
        text = str(numpy_dtype(dtype).type(value))
        if rounded(float(text), dtype) != value:  # two roundings are not always one
            text = repr(value)
    return text.removesuffix(".0").replace("+", "")
