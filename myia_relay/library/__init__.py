"""Functions of `math` and NumPy that are written in the language itself.

A function here is plain Python over other functions of the language: it is parsed, inferred, differentiated, batched
and compiled like a user's helper, and needs no rules of its own. `SOURCES` maps the library's function to ours. Frames
of this package never occur in a traceback: the user sees the line of the call.
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
