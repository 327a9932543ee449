"""A case of the benchmark: a function, and how its arguments are made for each size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SIZES = ("tiny", "S", "M")


class Case(NamedTuple):
    """One program.

    Attributes:
        function: plain Python and NumPy.
        sizes: size -> the numbers that `make` gets.
        make: (random generator, *numbers) -> the arguments.
        numba: whether Numba compiles the text.
    """

    function: Callable[..., Any]
    sizes: dict[str, tuple]
    make: Callable[..., tuple]
    numba: bool

    def arguments(self, size: str) -> tuple:
        """The same arguments each time."""
        return tuple(self.make(np.random.default_rng(5), *self.sizes[size]))


CASES: dict[str, Case] = {}


def case(
    *, S: tuple, M: tuple, make: Callable[..., tuple], tiny: tuple | None = None, numba: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function as a case.

    Args:
        S: the numbers of the small size. M: of the middle size. tiny: those of a test; by default a tenth of the small ones.
        make: see `Case`.
        numba: see `Case`.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        test = tuple(max(5, n // 16) if isinstance(n, int) else n for n in S) if tiny is None else tiny
        CASES[function.__name__] = Case(function, {"tiny": test, "S": S, "M": M}, make, numba)
        return function

    return enter
