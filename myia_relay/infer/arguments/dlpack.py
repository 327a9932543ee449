"""Arrays of other libraries, by DLPack: they are read where they are, without a copy."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

from ...utils.errors import TypeError_

_CPU = 1  # kDLCPU of DLPack
_HOST = {_CPU, 3, 11, 13}  # with the host memory of CUDA and ROCm, and managed memory


def from_dlpack(value: Any) -> np.ndarray:
    """The array that shares its memory with a value of another library, which it keeps alive.

    Args:
        value: anything with `__dlpack__`.

    Raises:
        TypeError_: it lies on another device, it records gradients, or NumPy has no such dtype.
    """
    name = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    if hasattr(value, "__dlpack_device__") and (device := int(value.__dlpack_device__()[0])) not in _HOST:
        raise TypeError_(
            f"this {name} is not in the memory of the CPU (DLPack device {device}); pass x.cpu(), or a copy in NumPy"
        )
    if getattr(value, "requires_grad", False):
        raise TypeError_(f"this {name} records gradients, which compiled code does not continue; pass x.detach()")
    try:
        if _is_bfloat16_of_torch(value):  # which NumPy does not read; its bits are integers
            return np.from_dlpack(value.view(sys.modules["torch"].int16)).view(ml_dtypes.bfloat16)
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        dtype = getattr(value, "dtype", "an unknown dtype")
        raise TypeError_(f"this {name} of {dtype} cannot be read by NumPy: {error}; pass an array of NumPy") from None


def _is_bfloat16_of_torch(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and getattr(value, "dtype", None) is torch.bfloat16
