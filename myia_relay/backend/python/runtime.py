"""What generated source calls besides NumPy: a few helpers, under the names that it uses."""

from __future__ import annotations

import base64
import zlib
from types import SimpleNamespace

import numpy as np

from ... import prims  # noqa: F401  registers all primitives
from ...abstract.bind import bind_symbols
from ...abstract.types import numpy_dtype
from ...ir.prim import REGISTRY
from ...prims.ops.registered import call_registered
from ...utils.interrupts import poll
from ...utils.raising import described, raise_at
from ...utils.source import Loc, Origin


class _Meanings:
    """Primitives by name, as their NumPy reference implementations: `ops.conv2d(x, w, ...)`."""

    def __getattr__(self, name: str):
        prim = REGISTRY.get(name)
        if prim is None or prim.reference is None:
            raise AttributeError(name)
        return prim.reference


ops = _Meanings()


def wrap(n: int) -> int:
    """An integer as int64 has it: modulo 2**64."""
    return n if -(1 << 63) <= n < 1 << 63 else (n + (1 << 63)) % (1 << 64) - (1 << 63)


def scalar(dtype: str, value):
    """A NumPy scalar of a dtype that NumPy itself may not have."""
    return numpy_dtype(dtype).type(value)


def as_array(value, dtype: str):
    """An array of exactly this dtype."""
    return np.asarray(value, dtype=numpy_dtype(dtype))


def packed(text: str, dtype: str, shape: tuple[int, ...]):
    """An array from its compressed bytes."""
    data = zlib.decompress(base64.b64decode(text))
    return np.frombuffer(data, dtype=numpy_dtype(dtype)).reshape(shape)


def pack(array: np.ndarray) -> str:
    """The inverse of `packed`."""
    return base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes())).decode()


def at(*locations) -> Origin | None:
    """A place in the user's source and the calls around it, inner first.

    Args:
        *locations: (file, line, column, end line, end column, function).
    """
    origin = None
    for location in reversed(locations):
        origin = Origin(Loc(*location), "inline", origin)
    return origin


def record(cls, **fields):
    """A frozen dataclass put together as it was, without running its `__init__`."""
    out = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(out, name, value)
    return out


def sizes_of(types, values) -> SimpleNamespace:
    """The sizes of symbolic dimensions, from the arguments of a call."""
    return SimpleNamespace(**bind_symbols(types, values))


HELPERS = {
    "ops": ops,
    "wrap": wrap,
    "scalar": scalar,
    "as_array": as_array,
    "packed": packed,
    "at": at,
    "record": record,
    "call_registered": call_registered,
    "raise_at": raise_at,
    "described": described,
    "poll": poll,
}
"""Importable by generated source that stands in a file of its own."""
