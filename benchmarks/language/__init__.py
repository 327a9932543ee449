"""`python -m benchmarks language`: scalar programs beside CPython, C and Numba; see `main`."""

from .main import main

__all__ = ["main"]
