"""Types as text, for errors: as Relay writes them, with `_` for what is not known."""

from __future__ import annotations

import re
from typing import Any

from ...abstract.dims import Dim
from .terms import (
    MARK,
    POISON,
    ArrowTerm,
    CellTerm,
    DataTerm,
    PolyTerm,
    Rigid,
    TensorTerm,
    TupleTerm,
    Unknown,
    prune,
)

LONGEST = 160  # characters of a type in an error


def show(x: Any) -> str:
    """A type, shape, size or dtype as a user would write it, shortened where it is very long."""
    text = _text(x, 8)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def size_text(size: Any) -> str:
    """A size as a user would write it."""
    size = prune(size)
    if isinstance(size, Unknown) or size is None:
        return "_"
    return re.sub(rf"{MARK}\d+", "", str(size)) if isinstance(size, Dim) else str(size)


def shape_text(shape: Any) -> str:
    """A shape as a user would write it: `(2, n)`, `(3)`."""
    shape = prune(shape)
    if isinstance(shape, tuple):
        return f"({', '.join(map(size_text, shape))})"
    return "_" if isinstance(shape, Unknown) else str(shape)


def _text(x: Any, depth: int) -> str:
    x = prune(x)
    if depth == 0:
        return ".."
    match x:
        case Unknown():
            return "_"
        case tuple():
            return shape_text(x)
        case TensorTerm():
            dtype = prune(x.dtype)
            dtype = "_" if isinstance(dtype, Unknown) else str(dtype)
            if prune(x.shape) == ():
                return dtype if dtype != "_" else "Tensor[(), _]"
            return f"Tensor[{shape_text(x.shape)}, {dtype}]"
        case TupleTerm():
            inner = ", ".join(_text(e, depth - 1) for e in x.elems)
            return f"({inner},)" if len(x.elems) == 1 else f"({inner})"
        case ArrowTerm():
            return f"fn ({', '.join(_text(p, depth - 1) for p in x.params)}) -> {_text(x.result, depth - 1)}"
        case PolyTerm():
            names = ", ".join(p.name if p.kind == "Type" else f"{p.name}: {p.kind}" for p in x.params)
            return f"fn <{names}>{_text(x.body, depth)[3:]}"
        case CellTerm():
            return f"ref({_text(x.elem, depth - 1)})"
        case DataTerm():
            return f"{x.name}[{', '.join(_text(a, depth - 1) for a in x.args)}]"
        case Rigid():
            return x.name
    return "_" if x is POISON else size_text(x)
