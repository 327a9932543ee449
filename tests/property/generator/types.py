"""The types of random programs.

Python's numbers are "int", "float", "bool"; NumPy's scalars are named by their dtype codes: "f8", "f4", "i8", "i4", "b1", "u1".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CODES = {"f8": "float64", "f4": "float32", "i8": "int64", "i4": "int32", "b1": "bool", "u1": "uint8"}
PYTHON = ("int", "float", "bool")
FLOATS, INTS = ("f8", "f4"), ("i8", "i4", "u1")


@dataclass(frozen=True)
class Arr:
    """An array of a dtype code and a shape."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Open:
    """An array whose first size a value decides, of a dtype code; `rest` are its other sizes."""

    dtype: str
    rest: tuple[int, ...] = ()


@dataclass(frozen=True)
class Tup:
    """A tuple of types."""

    elems: tuple


@dataclass(frozen=True)
class Lst:
    """A list of run-time length."""

    elem: object


@dataclass(frozen=True)
class Uni:
    """A value of one of several types, which is known at run time only."""

    options: tuple


@dataclass(frozen=True)
class Dic:
    """A dict with string keys: `items` are pairs of a key and a type."""

    items: tuple


@dataclass(frozen=True)
class Rec:
    """A record class of `records`, by name."""

    name: str


@dataclass(frozen=True)
class Fn:
    """A function of positional arguments."""

    args: tuple
    result: object


KEY = "key"  # of `relay.random`
TREE = "Tree"  # of `records`: Leaf or Node
TERM = "Term"  # of `records`: Number, Sum, Scaled, Choice or Absent
CHAIN = "Chain"  # of `records`: Link or End
FAMILIES = (TREE, TERM, CHAIN)


def constructor(code: str) -> str:
    """How a NumPy scalar of a dtype is made: `np.float64`."""
    return "np.bool_" if code == "b1" else f"np.{CODES[code]}"


def numpy_dtype(code: str) -> np.dtype:
    """The dtype of a code."""
    return np.dtype(CODES[code])


def is_scalar(t) -> bool:
    """Whether a type is a number of Python's or of NumPy's."""
    return t in PYTHON or t in CODES
