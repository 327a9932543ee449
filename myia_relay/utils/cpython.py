"""Functions of CPython by address, and machine code as functions of CPython's.

`ctypes` converts each argument of a call, which takes longer than much of the code that we have to call. A function that CPython
itself calls, with an object as its `self` and one argument (`METH_O` of its C API), costs as little as a builtin.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

_METH_O = 8
ARRAY_DATA = 2
"""Words of an array of NumPy's before the address of its data."""
_kept: list[Any] = []


class _MethodDef(ctypes.Structure):
    """CPython's `PyMethodDef`."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def address(name: str) -> int:
    """The address of a function of CPython's."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def methods(name: str, at: int, library: Any) -> Callable[[np.ndarray], Callable[[Any], Any]]:
    """What makes functions of one argument of the machine code at an address.

    Args:
        name: of these functions.
        at: the address of a C function `(self, argument) -> object`.
        library: keeps it in memory, for ever: nobody knows when the last of the functions is gone.

    Returns:
        `words -> function`, where the array is the `self`.
    """
    definition = _MethodDef(name.encode(), at, _METH_O, None)
    _kept.append((definition, library))
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    place = ctypes.addressof(definition)
    return lambda words: new(place, words, None)


__all__ = ["ARRAY_DATA", "address", "methods"]
