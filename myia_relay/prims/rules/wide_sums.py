"""Sums of bfloat16 in the reference implementations: in float32, rounded once.

Native code has the same meaning from `opt.kernels.widen_bfloat16`.

NumPy would round after every addition, so that a sum of many numbers no longer grows once it is 256 times as large as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def sums_in_float32(reference: Callable) -> Callable:
    """A reference implementation whose operands of bfloat16 are float32 while it computes."""

    @functools.wraps(reference)
    def compute(*args: Any, **attrs: Any) -> Any:
        if not any(getattr(a, "dtype", None) == BFLOAT16 for a in args):
            return reference(*args, **attrs)
        wide = [a.astype(np.float32) if getattr(a, "dtype", None) == BFLOAT16 else a for a in args]
        return np.asarray(reference(*wide, **attrs)).astype(BFLOAT16)[()]

    return compute


__all__ = ["sums_in_float32"]
