"""Binding symbolic dimensions to sizes: the value of `n` in a call, from the shapes of its arguments."""

from __future__ import annotations

from typing import Any

from ..utils.errors import ShapeError
from .dims import Dim, evaluate, symbols
from .types import Array, Ref, Struct


def parts(value: Any, type: Struct) -> list:
    """The parts of a Python value that has a structure type."""
    if type.kind == "dict":
        return [value[name] for name in type.fields]
    if type.kind == "record" and not isinstance(value, tuple):
        return [getattr(value, name) for name in type.fields]
    return list(value)


def bind_symbols(types, values) -> dict[str, int]:
    """The sizes that the arguments of a call give to the symbolic dimensions of its types.

    Args:
        types: types of the arguments.
        values: the arguments, as Python and NumPy values.

    Returns:
        Symbol -> size.

    Raises:
        ShapeError: two arguments give a symbol different sizes, or a size does not fit its expression.
    """
    bound: dict[str, tuple[int, str]] = {}
    later: list[tuple[Dim, int, str]] = []
    stack = [(t, v, f"argument {i}") for i, (t, v) in enumerate(zip(types, values, strict=True))]
    stack.reverse()
    while stack:
        t, value, where = stack.pop()
        if isinstance(t, Struct):
            names = t.fields or range(len(t.elems))
            inner = zip(t.elems, parts(value, t), names, strict=True)
            stack.extend([(e, v, f"{where}[{name!r}]") for e, v, name in inner][::-1])
        elif isinstance(t, Ref):
            stack.extend((e, a, f"{where}.{name}") for e, a, name in zip(t.elems, value.arrays, t.names, strict=True))
        elif isinstance(t, Array) and value is not None:  # None: a variable of a region that is not bound on this path
            for axis, (dim, size) in enumerate(zip(t.shape, value.shape, strict=True)):
                if isinstance(dim, Dim):
                    _bind(dim, int(size), f"axis {axis} of {where}", bound, later)
    sizes = {name: size for name, (size, _) in bound.items()}
    for dim, size, where in later:
        missing = dim.symbols() - sizes.keys()
        if missing:
            raise ShapeError(
                f"{where}: the size {dim} does not tell what '{min(missing)}' is; give it an argument of its own"
            )
        expected = evaluate(dim, sizes.__getitem__)
        if expected != size:
            given = ", ".join(f"{name} = {sizes[name]}" for name in sorted(dim.symbols()))
            raise ShapeError(f"{where} has size {size}, but {dim} is {expected} with {given}")
    return sizes


def _bind(dim: Dim, size: int, where: str, bound: dict, later: list) -> None:
    ((monomial, coefficient), *rest) = dim.terms.items()
    if rest or len(monomial) != 1 or coefficient != 1 or monomial[0] in dim.atoms:
        later.append((dim, size, where))
        return
    name = monomial[0]
    before = bound.setdefault(name, (size, where))
    if before[0] != size:
        raise ShapeError(f"the dimension '{name}' is {before[0]} in {before[1]}, but {size} in {where}")


def substitute(value: Any, sizes: dict[str, int]) -> Any:
    """A static attribute with its symbolic dimensions replaced by sizes (through tuples)."""
    if isinstance(value, Dim):
        return evaluate(value, sizes.__getitem__)
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(substitute(v, sizes) for v in value)
    return value


def has_dims(value: Any) -> bool:
    """Whether a static attribute mentions symbolic dimensions."""
    return isinstance(value, Dim) or (isinstance(value, tuple) and any(has_dims(v) for v in value))


def dims_in(value: Any) -> set[str]:
    """The symbols that a static attribute mentions."""
    if isinstance(value, tuple):
        return set().union(*map(dims_in, value)) if value else set()
    return symbols(value) if isinstance(value, Dim) else set()
