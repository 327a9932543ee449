"""Sorting the rows of matrices."""

from __future__ import annotations

from ....ir.build import Builder, Var
from ....library import kernels
from ...ops import ordering as O
from ..implementations import implements


@implements(kernels.sort_rows)
def sort_rows(b: Builder, x) -> Var:
    """The elements of each row in order."""
    return O.sort_rows(x)


@implements(kernels.argsort_rows)
def argsort_rows(b: Builder, x) -> Var:
    """Their positions."""
    return O.argsort_rows(x)


__all__ = ["argsort_rows", "sort_rows"]
