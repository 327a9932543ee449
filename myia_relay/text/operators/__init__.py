"""The operators of Relay: name, attributes, relation and implementation of each, by family.

`declare.py` says how one is declared, `rules.py` holds relations that many share. `OPERATORS` has all of them, by name.
"""

from __future__ import annotations

from . import (
    convolution,
    creation,
    dynamic,
    elementwise,
    images,
    indexing,
    layouts,
    nn,
    ordering,
    pooling,
    products,
    reductions,
    shapes,
    slicing,
    vision,
)
from .declare import CALLABLES, OPERATORS, Attr, RelayOperator, find
from .derived import gradients, primitives  # noqa: F401  register prefixes

FAMILIES = (
    *(elementwise, reductions, shapes, slicing, creation, indexing, ordering),
    *(products, nn, convolution, pooling, images, layouts, dynamic, vision),
)

__all__ = ["CALLABLES", "FAMILIES", "OPERATORS", "Attr", "RelayOperator", "find"]
