"""Exact comparison of results: kinds, dtypes and signs of zero count."""

from __future__ import annotations

import math

import numpy as np


def differences(got, want, rtol: float = 1e-12, path: str = "result") -> list[str]:
    """What differs between two results, as readable lines; empty where nothing does.

    Args:
        got: a compiled program's result.
        want: CPython's.
        rtol: relative tolerance of float arrays and floats; float32 gets 2e-6 at least.
        path: how to call the value.
    """
    if isinstance(want, np.ndarray):
        if not isinstance(got, np.ndarray):
            return [f"{path}: {type(got).__name__} instead of an array"]
        if got.dtype != want.dtype or got.shape != want.shape:
            return [f"{path}: {got.dtype}{got.shape} instead of {want.dtype}{want.shape}"]
        if want.dtype.kind != "f":
            return [] if np.array_equal(got, want) else [f"{path}: {got!r} instead of {want!r}"]
        limit = max(rtol, 2e-6) if want.dtype == np.float32 else rtol
        same = np.allclose(got, want, rtol=limit, atol=limit, equal_nan=True)
        zeros = (want == 0) & (got == 0)
        signs = np.array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))
        return [] if same and signs else [f"{path}: {got!r} instead of {want!r}"]
    if type(got) is not type(want):
        return [f"{path}: {type(got).__name__} {got!r} instead of {type(want).__name__} {want!r}"]
    if isinstance(want, dict):
        if list(got) != list(want):
            return [f"{path}: keys {list(got)} instead of {list(want)}"]
        return [d for k in want for d in differences(got[k], want[k], rtol, f"{path}[{k!r}]")]
    if isinstance(want, list | tuple):
        if len(got) != len(want):
            return [f"{path}: length {len(got)} instead of {len(want)}"]
        return [d for i, w in enumerate(want) for d in differences(got[i], w, rtol, f"{path}[{i}]")]
    if hasattr(want, "__dataclass_fields__"):
        return [
            d
            for name in want.__dataclass_fields__
            for d in differences(getattr(got, name), getattr(want, name), rtol, f"{path}.{name}")
        ]
    if isinstance(want, float | np.floating):
        if math.isnan(want) and math.isnan(got):
            return []
        limit = max(rtol, 2e-6) if isinstance(want, np.float32) else rtol
        close = got == want or math.isclose(got, want, rel_tol=limit, abs_tol=1e-300)
        same_sign = math.copysign(1, got) == math.copysign(1, want)
        return [] if close and same_sign else [f"{path}: {got!r} instead of {want!r}"]
    return [] if got == want else [f"{path}: {got!r} instead of {want!r}"]
