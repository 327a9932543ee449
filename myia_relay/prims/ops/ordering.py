"""Sorting the rows of matrices: the elements in order, and their positions.

The order is that of a stable sort, NaN last; -0.0 and 0.0 are equal. Derivatives move with the elements.
"""

from __future__ import annotations

import numpy as np

from ...abstract.dims import product
from ...abstract.types import Array
from ...ir.axes import Axes
from ...ir.prim import primitive
from ..rules.batching import merge, unmerge
from ..rules.broadcast import reshape, zeros_like
from ..rules.relations import require_array, shape_of
from .indexing import example_rows, scatter, take


@primitive("opaque", differentiable=False, axes=Axes("m.->m."))
def argsort_rows(x):
    """The positions (m, n), int64, of the elements of each row of `x` (m, n), in the order of these."""
    return np.argsort(x, -1, kind="stable")


@primitive("opaque", axes=Axes("m.->m."))
def sort_rows(x):
    """The elements of each row of `x` (m, n) in order."""
    return np.sort(x, -1, kind="stable")


@argsort_rows.infer
def _(x):
    require_array("argsort", x, 2)
    return Array("int64", x.shape)


@sort_rows.infer
def _(x):
    return require_array("sort", x, 2)


def _places(x):
    """Where the elements of the sorted rows are among all elements of `x`."""
    m, n = shape_of(x)
    return reshape(example_rows(x, m, n, argsort_rows(x)), shape=(m * n,))


@sort_rows.vjp
def _(x, out, dout):
    flat = reshape(dout, shape=(product(shape_of(x)),))
    return (reshape(scatter(zeros_like(flat), _places(x), flat, axis=0), shape=shape_of(x)),)


@sort_rows.jvp
def _(x, out, tangents):
    flat = reshape(tangents[0], shape=(product(shape_of(x)),))
    return reshape(take(flat, _places(x), axis=0), shape=shape_of(x))


def _batch(prim):
    def rule(size, batched, x):  # the only operand has the batch axis
        return unmerge(prim(merge(x)), size, shape_of(x)[1])

    return rule


for _prim in (argsort_rows, sort_rows):
    _prim.batch(_batch(_prim))

__all__ = ["argsort_rows", "sort_rows"]
