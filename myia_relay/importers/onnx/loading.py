"""Reading ONNX files: protobuf messages, the data of tensors, and what must hold of a model before anything is made of it.

A file is untrusted. Sizes are checked before memory is taken, external data is only read from the folder of the model, and what
is wrong is a `CompileError` that says where.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from ...utils.errors import CompileError, TypeError_, ValueError_
from ...utils.files import read_file
from .values import CARRIERS

OPSETS = range(1, 29)
DEEPEST = 40
"""How deep graphs and functions may be nested."""

PLAIN = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16", 17: "float8_e4m3fn", 18: "float8_e4m3fnuz", 19: "float8_e5m2",
    20: "float8_e5m2fnuz", 21: "uint4", 22: "int4", 23: "float4_e2m1fn", 24: "float8_e8m0fnu", 25: "uint2", 26: "int2",
}  # fmt: skip
"""The numbers of element types -> dtypes."""
OTHERS = {0: "undefined", 8: "string", 14: "complex64", 15: "complex128"}
BITS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}


def require_onnx() -> Any:
    """The package `onnx`.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import onnx
    except ImportError:
        raise ImportError(
            "relay.from_onnx reads ONNX models with the package onnx, which is not installed: pip install 'myia_relay[onnx]'"
        ) from None
    return onnx


def load(source: Any) -> tuple[Any, Path | None, str]:
    """A model, the folder of its external data, and a name for it.

    Args:
        source: a path, a `ModelProto`, or its bytes.

    Raises:
        CompileError: the file is no model.
        TypeError_: the argument is none of these.
    """
    onnx = require_onnx()
    folder, name = None, "model"
    if isinstance(source, onnx.ModelProto):
        model = source
    else:
        if isinstance(source, bytes | bytearray | memoryview):
            data = bytes(source)
        elif isinstance(source, str | Path):
            path = Path(source)
            data, folder, name = read_file(path), path.parent, path.stem
        else:
            raise TypeError_(f"from_onnx takes a path, an onnx.ModelProto or its bytes, not {type(source).__name__}")
        model = onnx.ModelProto()
        try:
            model.ParseFromString(data)
        except Exception as error:
            raise CompileError(f"{name}: this is no ONNX model, or a part of one: {error}") from None
    if not model.HasField("graph"):
        raise CompileError(f"{name}: the model has no graph; the file is truncated, or no ONNX model")
    return model, folder, name


def opsets(imports: Any, where: str) -> dict[str, int]:
    """Domain -> version.

    Raises:
        CompileError: an operator set is older or newer than those that are known.
    """
    found = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in imports}
    version = found.get("")
    if version is not None and version not in OPSETS:
        raise CompileError(
            f"{where}: it is written in version {version} of ONNX's operator set; {OPSETS[0]} to {OPSETS[-1]} can be imported"
        )
    return found


def dtype_name(number: int, where: str) -> str:
    """The dtype of an element type.

    Raises:
        TypeError_: compiled code has no such tensors.
    """
    if number not in PLAIN:
        raise TypeError_(f"{where}: tensors of element type {OTHERS.get(number, number)} cannot be imported")
    return PLAIN[number]


def shape_of(tensor: Any, where: str) -> tuple[int, ...]:
    """The shape of a tensor message.

    Raises:
        ValueError_: a size is negative.
    """
    shape = tuple(int(d) for d in tensor.dims)
    if any(d < 0 for d in shape):
        raise ValueError_(f"{where}: its shape {shape} has a negative size")
    return shape


def array_of(tensor: Any, folder: Path | None, where: str) -> np.ndarray:
    """The values of a tensor message.

    Raises:
        ValueError_: a value is none that is allowed.
        CompileError: its data does not fit its type, or lies outside of the model's folder.
    """
    name = dtype_name(tensor.data_type, where)
    shape = shape_of(tensor, where)
    count = math.prod(shape)
    if tensor.data_location == 1:
        raw = external(tensor, folder, where)
    elif tensor.HasField("raw_data"):
        raw = tensor.raw_data
    else:
        return typed(tensor, name, shape, count, where)
    dtype = np.dtype(name) if name not in CARRIERS and name != "bfloat16" else None
    bits = BITS.get(name) or 8 * (dtype.itemsize if dtype is not None else 2 if name == "bfloat16" else 1)
    if len(raw) != -(-count * bits // 8):
        raise ValueError_(f"{where}: {len(raw)} bytes of data for {count} elements of {name}")
    if dtype is not None:
        little = dtype.newbyteorder("<")
        values = np.frombuffer(raw, little).astype(dtype, copy=False)  # may be read-only
        return values.reshape(shape)
    return unpacked(np.frombuffer(raw, np.uint8), name, count).reshape(shape)


def unpacked(data: np.ndarray, name: str, count: int) -> np.ndarray:
    """Elements of a dtype of `ml_dtypes` from bytes; those of 4 and 2 bits lie from the low bits upwards."""
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, name))
    if name == "bfloat16":
        return data.view("<u2").astype(np.uint16).view(dtype)
    bits = BITS.get(name, 8)
    if bits == 8:
        return data.view(dtype)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = ((data[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)[:count].astype(np.uint8)
    if name.startswith("float"):
        return parts.view(dtype)
    if name.startswith("int"):
        parts = ((parts ^ (1 << (bits - 1))).astype(np.int8) - (1 << (bits - 1))).astype(np.int8)
    return parts.astype(dtype)


FIELDS = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
}


def typed(tensor: Any, name: str, shape: tuple, count: int, where: str) -> np.ndarray:
    """The values of a tensor message whose elements are in a field of their type.

    Raises:
        ValueError_: there are too few, or too many.
    """
    values = getattr(tensor, FIELDS.get(name, "int32_data"))
    bits = BITS.get(name)
    expected = -(-count * bits // 8) if bits else count
    if len(values) != expected:
        raise ValueError_(f"{where}: {len(values)} values for {count} elements of {name}")
    found = np.array(values, np.uint64 if name.startswith("uint") and name in FIELDS else None)
    if bits or name in CARRIERS:
        return unpacked((found.astype(np.int64) & 0xFF).astype(np.uint8), name, count).reshape(shape)
    if name in ("float16", "bfloat16"):
        halves = (found.astype(np.int64) & 0xFFFF).astype(np.uint16)
        if name == "float16":
            return halves.view(np.float16).reshape(shape)
        return unpacked(halves.view(np.uint8), name, count).reshape(shape)
    return found.astype(name).reshape(shape)


def external(tensor: Any, folder: Path | None, where: str) -> bytes:
    """The data of a tensor that lies in a file beside the model.

    Raises:
        ValueError_: the file is outside of the model's folder, or too short.
    """
    entries = {e.key: e.value for e in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ValueError_(
            f"{where}: its data is in the file '{location}', and a model without a path has none beside it"
        )
    if not location or Path(location).is_absolute() or ".." in Path(location).parts or "\0" in location:
        raise ValueError_(f"{where}: its data is in '{location}', which is not within the folder of the model")
    base = folder.resolve()
    path = (base / location).resolve()
    if base not in path.parents:
        raise ValueError_(f"{where}: its data is in '{location}', which leads out of the folder of the model")
    try:
        offset, length = int(entries.get("offset", 0) or 0), int(entries.get("length", -1) or -1)
    except ValueError:
        raise ValueError_(f"{where}: the offset or length of its data is no number") from None
    if not path.is_file():
        raise ValueError_(f"{where}: there is no file '{location}' beside the model")
    size = path.stat().st_size
    length = size - offset if length < 0 else length
    if offset < 0 or offset + length > size:
        raise ValueError_(f"{where}: its data ends at byte {offset + length} of '{location}', which has {size}")
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def dense(sparse: Any, folder: Path | None, where: str) -> np.ndarray:
    """The values of a sparse tensor.

    Raises:
        ValueError_: its indices do not fit.
    """
    shape = tuple(int(d) for d in sparse.dims)
    if any(d < 0 for d in shape) or math.prod(shape) > 1 << 28:
        raise ValueError_(f"{where}: a sparse tensor of shape {shape} is too large to be written out")
    values, indices = array_of(sparse.values, folder, where), array_of(sparse.indices, folder, where)
    out = np.zeros(shape, values.dtype)
    count = values.size
    if indices.ndim == 2 and indices.shape == (count, len(shape)):
        flat = np.zeros(count, np.int64)
        for k, size in enumerate(shape):
            if count and (indices[:, k].min() < 0 or indices[:, k].max() >= size):
                raise ValueError_(f"{where}: an index of a sparse tensor lies outside of its shape {shape}")
            flat = flat * size + indices[:, k]
    elif indices.shape == (count,):
        flat = indices
        if count and (flat.min() < 0 or flat.max() >= out.size):
            raise ValueError_(f"{where}: an index of a sparse tensor lies outside of its shape {shape}")
    else:
        raise ValueError_(f"{where}: {count} values of a sparse tensor with indices of shape {indices.shape}")
    out.reshape(-1)[flat] = values
    return out
