"""Values of ONNX in compiled code: tensors, tensors of sizes, constants, and tensors of dtypes that the compiler has not.

A tensor is an array of the compiler. Three more kinds exist during inference:

- `Sizes`: an integer tensor some elements of which are symbolic dimensions, such as what Shape returns. Shape arithmetic on it
  stays symbolic, so that shapes that follow from sizes are known at compile time.
- `Fixed`: a constant.
- `Narrow`: a tensor of a dtype that compiled code does not compute in (float8, float4, integers of 4 and 2 bits). It is carried
  by an array of a wider dtype that has the same values.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.dims import Dim
from ...infer.values.values import Dyn, Seq, Static, Val
from ...utils.errors import TypeError_

CARRIERS = {
    "int4": "int8",
    "uint4": "uint8",
    "int2": "int8",
    "uint2": "uint8",
    "float4_e2m1fn": "float32",
    "float8_e4m3fn": "float32",
    "float8_e4m3fnuz": "float32",
    "float8_e5m2": "float32",
    "float8_e5m2fnuz": "float32",
    "float8_e8m0fnu": "float32",
}
"""A dtype that compiled code does not have -> the one that carries its values."""


def _narrow_class(dtype: str) -> Any:
    """The class of tensors of a narrow dtype: a record with one field, the carrier."""
    made: Any = namedtuple(f"{dtype.title().replace('_', '')}Tensor", ["values"], module=__name__)
    made.narrow = dtype
    return made


NARROW: dict[str, Any] = {dtype: _narrow_class(dtype) for dtype in CARRIERS}
globals().update({cls.__name__: cls for cls in NARROW.values()})


def narrow_dtype(name: str) -> np.dtype:
    """The NumPy dtype of a narrow dtype, from `ml_dtypes`."""
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name))


def carried(array: np.ndarray) -> np.ndarray:
    """The array that carries a narrow one; any other one itself."""
    carrier = CARRIERS.get(array.dtype.name)
    return array if carrier is None else array.astype(carrier)


def copied(array: np.ndarray) -> np.ndarray:
    """A contiguous copy that begins where native code wants the arrays of a model."""
    from ...abstract.types import numpy_dtype
    from ...model.arrays import aligned

    out = aligned(array.shape, numpy_dtype(array.dtype.name))
    out[...] = array
    return out


@dataclass(frozen=True)
class Fixed:
    """A constant tensor. It is hashable, and callable only so that it may be an argument of a compiled function.

    Attributes:
        dtype: the name of its dtype.
        shape: its shape.
        data: its elements; those of a narrow dtype as their carrier has them.
    """

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @classmethod
    def of(cls, array: np.ndarray) -> Fixed:
        """The constant with the values of an array."""
        return cls(array.dtype.name, array.shape, np.ascontiguousarray(carried(array)).tobytes())

    @property
    def array(self) -> np.ndarray:
        """Its values: of a narrow dtype those of the carrier."""
        from ...abstract.types import numpy_dtype

        dtype = numpy_dtype(CARRIERS.get(self.dtype, self.dtype))
        return np.frombuffer(self.data, dtype).reshape(self.shape)

    def __call__(self) -> np.ndarray:
        return self.array

    def __relay_value__(self, engine: Any, frame: Any) -> Val:
        value = frame.constant(self.array)
        return value if self.dtype not in NARROW else Seq("record", (value,), ("values",), NARROW[self.dtype])


@dataclass(frozen=True)
class Sizes:
    """An integer tensor some elements of which are symbolic dimensions.

    Attributes:
        dtype: the name of its dtype; a float one where sizes were cast to floats.
        shape: its shape.
        elements: numbers and dimensions, in row-major order.
    """

    dtype: str
    shape: tuple[int, ...]
    elements: tuple[Any, ...]

    @classmethod
    def of(cls, array: Any, dtype: str) -> Sizes:
        """Of an array of objects."""
        array = np.asarray(array, dtype=object)
        return cls(dtype, array.shape, tuple(array.ravel().tolist()))

    @property
    def array(self) -> np.ndarray:
        """An array of objects."""
        out = np.empty(len(self.elements), object)
        out[:] = self.elements
        return out.reshape(self.shape)


class Absent:
    """The argument of a call for an input that a node leaves out."""

    def __relay_value__(self, engine: Any, frame: Any) -> Val:
        return Static(None)


class Undecided(TypeError_):
    """A value must be known at compile time and is not. The model is compiled again for the value, where it is an input.

    Attributes:
        value: the value, as inference has it.
    """

    def __init__(self, message: str, value: Val):
        super().__init__(message)
        self.value = value

    def public(self) -> TypeError_:
        """The error as the user gets it."""
        error = TypeError_(self.message, self.origin, *self.notes)
        return error


def has_dims(array: np.ndarray) -> bool:
    """Whether there is a symbolic dimension in an array of objects."""
    return array.dtype == object and any(isinstance(e, Dim) for e in array.flat)


def is_tensor(value: Val) -> bool:
    """Whether a value is a tensor of any kind."""
    if isinstance(value, Static):
        return isinstance(value.value, Sizes | Fixed)
    return isinstance(value, Dyn) or (isinstance(value, Seq) and value.cls in NARROW.values())
