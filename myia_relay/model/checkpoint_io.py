"""Named arrays in one file: safetensors, written atomically.

The format (https://github.com/huggingface/safetensors) is a length, a JSON header and the arrays' bytes; nothing in it
is ever executed. The format sorts the arrays by type and name. Their order matters for a model's parameters, so it is
stored in the metadata.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping

import ml_dtypes
import numpy as np

from ..utils.arrays import plain_array
from ..utils.errors import TypeError_, ValueError_
from ..utils.files import read_file, write_atomically

_ORDER = "myia_relay.order"
_CHECKSUMS = "myia_relay.crc32"
_OWN = (_ORDER, _CHECKSUMS)
_DTYPES = {
    "BOOL": np.bool_,
    "U8": np.uint8,
    "I8": np.int8,
    "U16": np.uint16,
    "I16": np.int16,
    "U32": np.uint32,
    "I32": np.int32,
    "U64": np.uint64,
    "I64": np.int64,
    "F16": np.float16,
    "F32": np.float32,
    "F64": np.float64,
    "C64": np.complex64,
}


class CheckpointError(OSError, ValueError):
    """A file of parameters that cannot be written, or is damaged; the message says which and why."""


def save_safetensors(
    path: str | os.PathLike, params: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None
) -> None:
    """Write named arrays to a file; an older file of that name is replaced in one step, or stays as it was.

    Args:
        path: the file; missing folders are made.
        params: name -> array of any shape, strides and byte order; booleans, integers, floats, ml_dtypes' bfloat16.
        metadata: text to keep with them.

    Raises:
        TypeError: a name or a piece of metadata is no string, or an array's type is not in the format, or it is masked.
        ValueError: a piece of metadata has a name that is reserved.
        CheckpointError: the file cannot be written.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save

    metadata = dict(metadata or {})
    for what, items in (("parameter", params), ("metadata", metadata)):
        for key in items:
            if not isinstance(key, str):
                raise TypeError(f"a {what} name must be a string, not {key!r}")
    for key, text in metadata.items():
        if not isinstance(text, str):
            raise TypeError(f"metadata {key!r} must be a string, not {text!r}")
        if key in _OWN:
            raise ValueError(f"metadata {key!r} is written by save_safetensors itself")
    arrays = {}
    for name, value in params.items():
        array = np.asarray(plain_array(value), order="C")
        if array.dtype.hasobject or array.dtype.kind in "USMmV" and array.dtype.name != "bfloat16":
            raise TypeError(f"parameter {name!r} of dtype {array.dtype} cannot be stored in safetensors")
        arrays[name] = np.asarray(array.astype(array.dtype.newbyteorder("="), copy=False), order="C")
    metadata[_ORDER] = json.dumps(list(arrays))
    metadata[_CHECKSUMS] = json.dumps(_checksums(arrays, metadata))
    try:
        contents = save(arrays, metadata)
    except (SafetensorError, KeyError) as error:
        raise TypeError(f"these parameters cannot be stored in safetensors: {error}") from error
    try:
        write_atomically(path, contents)
    except OSError as error:
        raise CheckpointError(f"cannot write {os.fspath(path)}: {error.strerror or error}") from error


def load_safetensors(path: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read what `save_safetensors` or any other program has written in this format.

    Args:
        path: the file.

    Returns:
        `(params, metadata)`: name -> array that the caller owns, in the order they were saved (by name where the
        file does not say), and the text kept with them.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: it cannot be read, or is not a whole safetensors file.
    """
    from safetensors import SafetensorError, deserialize

    try:
        contents = read_file(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {os.fspath(path)}") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {os.fspath(path)}: {error.strerror or error}") from error
    try:
        arrays = {name: _array(entry) for name, entry in deserialize(contents)}
        header = json.loads(contents[8 : 8 + int.from_bytes(contents[:8], "little")])
    except KeyError as error:
        raise CheckpointError(f"{os.fspath(path)} holds arrays of type {error}, which NumPy does not have") from error
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{os.fspath(path)} is not a whole safetensors file: {error}") from error
    metadata = dict(header.get("__metadata__") or {})
    _require_intact(path, arrays, metadata)
    order = _order(metadata.pop(_ORDER, None), arrays)
    return {name: arrays[name] for name in order}, metadata


def _array(entry: Mapping) -> np.ndarray:
    """An array of its own from a tensor of the file: its type's name in the format, shape and bytes."""
    name = entry["dtype"]
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "BF16" else _DTYPES[name])
    return np.frombuffer(entry["data"], dtype.newbyteorder("<")).astype(dtype).reshape(entry["shape"])


def _checksums(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> dict[str, int]:
    """CRC-32 of each array, of its dtype and shape; under "" that of the metadata."""
    found = {}
    for name, array in arrays.items():
        kind = zlib.crc32(f"{array.dtype.name}{list(array.shape)}".encode())
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        found[name] = zlib.crc32(little.reshape(-1).view(np.uint8).data, kind)
    found[""] = zlib.crc32(json.dumps(sorted(metadata.items())).encode())
    return found


def _require_intact(path: str | os.PathLike, arrays: Mapping[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Refuse a file whose numbers are not those that were written; those of other programs do not tell.

    Raises:
        CheckpointError: it is damaged.
    """
    stored = metadata.pop(_CHECKSUMS, None)
    if stored is None:
        return
    try:
        expected = json.loads(stored)
    except ValueError:
        expected = None
    have = _checksums(arrays, metadata)
    if not isinstance(expected, dict) or expected.keys() != have.keys():
        what = "its description of the arrays"
    else:
        wrong = [name for name, sum_ in have.items() if expected[name] != sum_]
        if not wrong:
            return
        what = ", ".join(name or "its description of the arrays" for name in wrong[:3]) + (" ..." if wrong[3:] else "")
    raise CheckpointError(f"{os.fspath(path)} was damaged after it was written: {what} does not have its checksum")


def _order(stored: str | None, arrays: Mapping[str, np.ndarray]) -> list[str]:
    """The names in the order they were saved; sorted where that is not known."""
    try:
        order = json.loads(stored or "null")
    except ValueError:
        order = None
    if isinstance(order, list) and sorted(map(str, order)) == sorted(arrays):
        return [str(name) for name in order]
    return sorted(arrays)


def require_floats(name: str, value: np.ndarray, array: np.ndarray | None) -> None:
    """Refuse what a file has for a parameter where it is no float, or none that the parameter's dtype has.

    Raises:
        TypeError_: integers or booleans.
        ValueError_: a finite number that becomes infinite.
    """
    if array is None or value.shape != array.shape:
        return  # told with the names and the shapes
    if not value.dtype.kind == "f" and value.dtype.name != "bfloat16":
        raise TypeError_(f"the file has {value.dtype.name} for the parameter {name}, which is {array.dtype.name}")
    with np.errstate(over="ignore"):
        held = value.astype(array.dtype)
    if np.any(np.isfinite(value) & ~np.isfinite(held)):
        raise ValueError_(f"the file has numbers for the parameter {name} that are beyond {array.dtype.name}")
