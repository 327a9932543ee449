"""C functions as definitions of registered operators: a signature, checked, and calls through `ctypes`.

    "double(double, double)"                                    one element from one of each argument
    "int(const double *x, double *out, int64_t out_size)"       whole arrays, C-contiguous

In the second form parameters are bound by name: an argument `x` (a pointer for an array, a number by value), `x_size`,
`x_ndim` and `x_shape` (`const int64_t *`), the result `out` (or `out0`, `out1`, ...) with the same suffixes, and static
attributes. A function that returns `int` returns 0 for success.

Input: a library's path, a symbol and a signature. Output: `CFunction`.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...abstract.dims import known_size
from ...abstract.types import Array, Leaf, Struct, Type, numpy_dtype
from ...ir.build import as_type
from ...utils.errors import TypeError_, ValueError_

NUMBERS: dict[str, tuple[str, Any]] = {
    "double": ("float64", ctypes.c_double),
    "float": ("float32", ctypes.c_float),
    "int8_t": ("int8", ctypes.c_int8),
    "int16_t": ("int16", ctypes.c_int16),
    "int32_t": ("int32", ctypes.c_int32),
    "int": ("int32", ctypes.c_int),
    "int64_t": ("int64", ctypes.c_int64),
    "uint8_t": ("uint8", ctypes.c_uint8),
    "uint16_t": ("uint16", ctypes.c_uint16),
    "uint32_t": ("uint32", ctypes.c_uint32),
    "uint64_t": ("uint64", ctypes.c_uint64),
    "size_t": ("uint64", ctypes.c_size_t),
    "bool": ("bool", ctypes.c_bool),
}
"""C's names of number types: the dtype, and how `ctypes` passes one."""
ENDINGS = ("_size", "_ndim", "_shape")
_SIGNATURE = re.compile(r"\s*(\w+)\s*(?:\b\w+\s*)?\((.*)\)\s*;?\s*", re.DOTALL)
_QUALIFIERS = ("const", "restrict", "__restrict", "__restrict__")


class CParameter(NamedTuple):
    """A parameter of a C function: its number type, whether it is a pointer, its name (or "")."""

    type: str
    pointer: bool
    name: str

    @property
    def dtype(self) -> str:
        """The dtype of what is passed or pointed to."""
        return NUMBERS[self.type][0]

    def __str__(self) -> str:
        return f"{self.type} {'*' if self.pointer else ''}{self.name}".strip()


def parse_signature(text: str) -> tuple[str, list[CParameter]]:
    """The result type of a C signature, and its parameters.

    Raises:
        ValueError_: it is none, or has a type that is no number.
    """
    match = _SIGNATURE.fullmatch(text)
    if match is None:
        raise ValueError_(f"signature={text!r} is no C signature; write it like 'int(const double *x, double *out)'")
    parameters = []
    for part in match[2].split(","):
        tokens = [t for t in re.findall(r"\w+|\*", part) if t not in _QUALIFIERS]
        if tokens in ([], ["void"]):
            continue
        name = tokens[-1] if len(tokens) > 1 and tokens[-1] != "*" else ""
        parameters.append(CParameter(tokens[0], "*" in tokens, name))
    for name in (*([match[1]] if match[1] != "void" else []), *(p.type for p in parameters)):
        if name not in NUMBERS:
            raise ValueError_(f"signature={text!r}: the type '{name}' is none of {', '.join(NUMBERS)}")
    return match[1], parameters


class CFunction:
    """A function of a shared library.

    Args:
        symbol: its name.
        library: the path of the library, or the name that the loader finds it by; None for what the process has loaded.
        signature: see the module's docstring.

    Raises:
        ValueError_: there is no such library, or symbol in it, or the signature is none.
    """

    def __init__(self, symbol: str, library: str | os.PathLike | None, signature: str):
        self.symbol, self.signature = symbol, signature
        self.library = None if library is None else os.fspath(library)
        self.result, self.parameters = parse_signature(signature)
        self.scalar = not any(p.pointer for p in self.parameters)
        if self.scalar and self.result == "void":
            raise ValueError_(f"signature={signature!r} returns nothing and is given no place for a result")
        if not self.scalar and self.result not in ("void", "int"):
            raise ValueError_(
                f"signature={signature!r}: a function of arrays returns void, or int: 0 where all is well"
            )
        try:
            self.function = getattr(_opened(self.library), symbol)
        except OSError as error:
            raise ValueError_(f"library={self.library!r} cannot be loaded: {error}") from None
        except AttributeError:
            raise ValueError_(f"the library {self.library or 'of this process'} has no symbol '{symbol}'") from None
        self.function.restype = None if self.result == "void" else NUMBERS[self.result][1]
        self.function.argtypes = [ctypes.c_void_p if p.pointer else NUMBERS[p.type][1] for p in self.parameters]

    @property
    def returned(self) -> str:
        """The dtype of what a function of numbers returns."""
        return NUMBERS[self.result][0]

    def describe(self) -> list[str] | None:
        """What it is, with the contents of its library; None where there is no telling."""
        path = self.library
        if path is None or not os.path.isfile(path):
            return None
        status = os.stat(path)
        contents = _contents(os.path.realpath(path), status.st_mtime_ns, status.st_size)
        return [self.symbol, os.path.realpath(path), contents, self.signature]

    def refuse_unknown(self, parameters: tuple[str, ...], attributes: tuple[str, ...]) -> None:
        """Refuse parameters that nothing is bound to.

        Raises:
            ValueError_: there is one.
        """
        if self.scalar:
            if len(self.parameters) != len(parameters):
                raise ValueError_(
                    f"signature={self.signature!r} has {len(self.parameters)} parameters, and the operator takes {len(parameters)}"
                )
            return
        for p in self.parameters:
            base = next((p.name.removesuffix(e) for e in ENDINGS if p.name.endswith(e)), p.name)
            if p.name not in (*parameters, *attributes) and base not in parameters and not _is_result(base):
                known = ", ".join([*parameters, "out", *attributes])
                raise ValueError_(
                    f"signature={self.signature!r}: '{p.name}' is none of {known}, nor one of them with _size, _ndim or _shape"
                )

    def check(self, op: Any, types: Sequence[Leaf]) -> None:
        """Refuse arguments of other types than the function takes.

        Raises:
            TypeError_: with what to convert.
        """
        if self.scalar:
            pairs = list(zip(op.parameters, types, self.parameters, strict=False))
        else:
            by_name = dict(zip(op.parameters, types))
            pairs = [(p.name, by_name[p.name], p) for p in self.parameters if p.name in by_name]
        for name, t, p in pairs:
            if p.pointer and not isinstance(t, Array):
                raise TypeError_(f"the C function {self.symbol} takes an array '{p}', and '{name}' is {t}")
            if not p.pointer and not self.scalar and isinstance(t, Array):
                raise TypeError_(f"the C function {self.symbol} takes a number '{p}', and '{name}' is {t}")
            fits = t.dtype == p.dtype if p.pointer else _casts(t.dtype, p.dtype)
            if not fits:
                raise TypeError_(
                    f"the C function {self.symbol} takes '{p}', and '{name}' is {t}; convert it with .astype(np.{p.dtype})"
                )

    def __call__(self, op: Any, values: list[Any], attrs: dict[str, Any], want: Type) -> Any:
        """The result for the values of one example.

        Raises:
            RuntimeError: the function returns a status other than 0.
        """
        if self.scalar:
            return self._elementwise(values, want)
        types: tuple[Any, ...] = want.elems if isinstance(want, Struct) else (want,)  # numbers and arrays
        outs = [np.zeros(t.shape, numpy_dtype(t.dtype)) for t in types]
        arrays = dict(zip(op.parameters, values)) | {f"out{i}": out for i, out in enumerate(outs)} | {"out": outs[0]}
        kept: list[Any] = []  # keeps alive what the addresses point to
        status = self.function(*[self._bound(p, arrays, attrs, kept) for p in self.parameters])
        if status:
            raise RuntimeError(f"the C function {self.symbol} of the operator {op.name} returned {status}")
        found = [as_type(out if out.shape else out[()], t) for out, t in zip(outs, types)]
        return tuple(found) if isinstance(want, Struct) else found[0]

    def _bound(self, p: CParameter, arrays: dict[str, Any], attrs: dict[str, Any], kept: list[Any]) -> Any:
        if p.name in arrays:
            if not p.pointer:
                return arrays[p.name].item() if isinstance(arrays[p.name], np.generic) else arrays[p.name]
            out = p.name == "out" or p.name.startswith("out") and p.name[3:].isdigit()
            array = arrays[p.name] if out else np.ascontiguousarray(arrays[p.name])
            kept.append(array)
            return array.ctypes.data
        if p.name in attrs:
            return attrs[p.name]
        array = np.asarray(arrays[next(p.name.removesuffix(e) for e in ENDINGS if p.name.endswith(e))])
        if p.name.endswith("_size"):
            return array.size
        if p.name.endswith("_ndim"):
            return array.ndim
        kept.append(np.array(array.shape, np.int64))
        return kept[-1].ctypes.data

    def _elementwise(self, values: list[Any], want: Type) -> Any:
        dtypes = [numpy_dtype(p.dtype) for p in self.parameters]
        if not isinstance(want, Array):
            return as_type(
                self.function(*[dtype.type(v).item() for v, dtype in zip(values, dtypes, strict=True)]), want
            )
        columns = np.broadcast_arrays(*[np.asarray(v).astype(dtype) for v, dtype in zip(values, dtypes, strict=True)])
        rows = zip(*[c.ravel().tolist() for c in columns], strict=True)
        found = np.fromiter((self.function(*row) for row in rows), numpy_dtype(want.dtype), columns[0].size)
        return found.reshape(tuple(map(known_size, want.shape)))


def _casts(source: str, target: str) -> bool:
    """Whether a number of a dtype is passed as another one without losing its kind."""
    return np.can_cast(numpy_dtype(source), numpy_dtype(target), "same_kind")


def _is_result(name: str) -> bool:
    return name.startswith("out") and (name == "out" or name[3:].isdigit())


@functools.cache
def _opened(library: str | None) -> ctypes.CDLL:
    return ctypes.CDLL(library)


@functools.lru_cache(maxsize=64)
def _contents(path: str, changed: int, size: int) -> str:
    """A hash of a file's contents."""
    with open(path, "rb") as file:
        return hashlib.blake2b(file.read(), digest_size=16).hexdigest()
