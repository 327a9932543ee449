"""What is made by indexing in NumPy: `np.mgrid[0:3, 0:4]`, `np.ogrid[...]`, `np.r_[...]`, `np.c_[...]`.

A slice comes as a `Stretch`; with an imaginary step, which is a number of points with both ends, as `Points`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .refusals import unsupported


class Stretch(NamedTuple):
    """A slice."""

    start: Any
    stop: Any
    step: Any


class Points(NamedTuple):
    """A slice `start:stop:count * 1j`."""

    start: Any
    stop: Any
    count: Any


def _range(part):
    """The numbers of one slice."""
    start = 0 if part.start is None else part.start
    if isinstance(part, Points):
        return np.linspace(start, part.stop, part.count)
    return np.arange(start, part.stop, 1 if part.step is None else part.step)


def mgrid(*parts):
    """np.mgrid[...]: the coordinates of all points of a grid, of one dtype."""
    if len(parts) == 1:
        return _range(parts[0])
    return np.stack(np.meshgrid(*[_range(part) for part in parts], indexing="ij"))


def ogrid(*parts):
    """np.ogrid[...]: the coordinates along each axis, which broadcast to a grid."""
    if len(parts) == 1:
        return _range(parts[0])
    axes = [_range(part) for part in parts]
    kind = np.result_type(*axes)
    return tuple(
        [np.reshape(x.astype(kind), [len(x) if j == k else 1 for j in range(len(axes))]) for k, x in enumerate(axes)]
    )


def r_(*parts):
    """np.r_[...]: numbers, arrays and ranges one behind the other."""
    return np.concatenate([_piece(part) for part in parts])


def _piece(part):
    if isinstance(part, str):
        unsupported("np.r_ with a string is not part of compiled code: write np.concatenate or np.stack")
    if isinstance(part, Stretch | Points):
        return _range(part)
    return np.atleast_1d(np.asarray(part))


def c_(*parts):
    """np.c_[...]: arrays side by side."""
    return np.concatenate([_columns(_piece(part)) for part in parts], axis=-1)


def _columns(x):
    return np.reshape(x, (-1, 1)) if x.ndim == 1 else x


GRIDS: dict[type, Callable] = {type(np.mgrid): mgrid, type(np.ogrid): ogrid, type(np.r_): r_, type(np.c_): c_}
"""The class of what is indexed -> the function that is called with the parts of the index."""
