"""The tables of this package: which function of ours stands for a function of `math` or NumPy, or for a method of arrays.

They are a module of their own, so that importing one part of the package does not import all of it.
"""

from __future__ import annotations

from collections.abc import Callable

from . import fourier, linear_algebra, math_functions, numpy_functions, numpy_sizes, numpy_statistics

SOURCES: dict[Callable, Callable] = {
    **math_functions.SOURCES,
    **numpy_functions.SOURCES,
    **numpy_statistics.SOURCES,
    **numpy_sizes.SOURCES,
    **linear_algebra.SOURCES,
    **fourier.SOURCES,
}
"""A function of `math` or NumPy -> a Python function that means the same and can be compiled."""

METHODS: dict[str, Callable] = {
    **{name: getattr(numpy_statistics, name) for name in ("argsort", "argpartition", "searchsorted")},
    "tolist": numpy_sizes.tolist,
}
"""A method of arrays -> a function of the array and the method's arguments."""
