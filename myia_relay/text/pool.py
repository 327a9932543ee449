"""The constants of a module, as `#[metadata]` and JSON hold them: dtype, shape, and the bytes by base64."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import numpy as np

from .dtypes import DTYPES, numpy_dtype

POOL = "relay.Constant"
"""What the metadata calls the list of constants."""


class ConstantPool:
    """The constants of the metadata; equal ones are one entry."""

    def __init__(self):
        self.entries: list[dict[str, Any]] = []
        self._index: dict[tuple, int] = {}

    def index(self, value: np.ndarray) -> int:
        """The number of a constant."""
        key = (value.dtype.name, value.shape, value.tobytes())
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.entries)
            self.entries.append(encoded(value))
        return found


def encoded(array: np.ndarray) -> dict[str, Any]:
    """An array as JSON: dtype, shape, and the bytes (little-endian) by base64."""
    data = np.ascontiguousarray(array)
    if data.dtype.byteorder == ">":
        data = data.astype(data.dtype.newbyteorder("<"))
    text = base64.b64encode(data.tobytes()).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": text}


def decoded(entry: Any) -> np.ndarray:
    """The array that `encoded` describes.

    Raises:
        ValueError: it describes none; the message says why.
    """
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data"}:
        raise ValueError('it has not the form {"dtype": .., "shape": [..], "data": base64}')
    dtype, shape, text = entry["dtype"], entry["shape"], entry["data"]
    if dtype not in DTYPES:
        raise ValueError(f"there is no dtype {dtype!r}")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape) or len(shape) > 32:
        raise ValueError(f"{shape!r} is no shape")
    if not isinstance(text, str):
        raise ValueError("its data are no text")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("its data are not base64") from None
    kind = numpy_dtype(dtype)
    if len(data) != math.prod(shape) * kind.itemsize:
        raise ValueError(
            f"it has {len(data)} bytes; {dtype} of shape {tuple(shape)} takes {math.prod(shape) * kind.itemsize}"
        )
    if dtype == "bool" and any(byte > 1 for byte in data):
        raise ValueError("its truth values are neither 0 nor 1")
    return np.frombuffer(data, kind).reshape(shape)
