"""Arrays from outside: NumPy's own class alone.

A subclass may calculate by rules of its own, and `np.asarray` drops what they are: units, the mask of `np.ma`. Whatever takes an
array from a user goes through here, so that this is refused and not lost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import TypeError_


def require_plain_array(value: np.ndarray) -> None:
    """Refuse an array of a class that may compute differently: arrays with units, masked ones, matrices.

    Raises:
        TypeError_: it is of a subclass; those of files (`np.memmap`) are plain.
    """
    kind = type(value)
    if kind is np.ndarray or kind is np.memmap:
        return
    masked = ", which drops the mask, or x.filled(value)" if isinstance(value, np.ma.MaskedArray) else ""
    raise TypeError_(
        f"a {kind.__name__} calculates by rules of its own, which compiled code does not have; pass np.asarray(x){masked}"
    )


def plain_array(value: Any, dtype: Any = None) -> np.ndarray:
    """A value as an array: `np.asarray`, which loses no mask and no units.

    Args:
        value: an array, a number, lists of numbers.
        dtype: of the array; by default its own.

    Raises:
        TypeError_: it is an array of a subclass.
    """
    if isinstance(value, np.ndarray):
        require_plain_array(value)
    return np.asarray(value, dtype)


__all__ = ["plain_array", "require_plain_array"]
