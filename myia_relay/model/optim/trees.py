"""Trees of inference's values: their leaves, the leaves at the same places in another tree, and trees of new leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from ...abstract.types import Array, Scalar
from ...infer.objects.lists import refuse_run_time
from ...infer.values.treedef import describe
from ...infer.values.values import Dyn, Seq, Static, Val
from ...utils.errors import TypeError_


def leaves(tree: Val, name: str) -> Iterator[tuple[str, Val]]:
    """The leaves of a tree, None among them, with where they are.

    Raises:
        TypeError_: it holds what is no tree of numbers and arrays.
    """
    refuse_run_time([tree], name)
    if isinstance(tree, Seq):
        for i, part in enumerate(tree.elems):
            yield from leaves(part, f"{name}{_step(tree, i)}")
    elif isinstance(tree, Static) and tree.value is None or isinstance(tree, Dyn) and hasattr(tree.type, "dtype"):
        yield name, tree
    else:
        raise TypeError_(
            f"{name} is {describe(tree)}; a tree of arrays is an array, or dicts, tuples and dataclasses of them"
        )


def _step(tree: Seq, i: int) -> str:
    if tree.kind == "dict":
        return f"[{tree.fields[i]!r}]"
    return f".{tree.fields[i]}" if tree.fields else f"[{i}]"


def beside(tree: Val, other: Val, name: str, other_name: str) -> Iterator[Val]:
    """What another tree has at the places of the leaves of a tree.

    Raises:
        TypeError_: its structure is another.
    """
    if not isinstance(tree, Seq):
        yield other
        return
    if not isinstance(other, Seq) or (other.kind, other.cls, len(other.elems), set(other.fields)) != (
        tree.kind,
        tree.cls,
        len(tree.elems),
        set(tree.fields),
    ):
        odd = (
            set(tree.fields) ^ set(other.fields) if isinstance(other, Seq) and other.kind == tree.kind == "dict" else ()
        )
        keys = f": they differ in {', '.join(map(repr, sorted(odd)))}" if odd else ""
        raise TypeError_(
            f"{other_name} has another structure than {name}{keys}; "
            f"{other_name} is {describe(other)}, and {name} is {describe(tree)}"
        )
    for i, part in enumerate(tree.elems):
        theirs = other.get(tree.fields[i]) if tree.kind == "dict" else other.elems[i]
        yield from beside(part, theirs, f"{name}{_step(tree, i)}", f"{other_name}{_step(tree, i)}")


def replaced(tree: Val, new: Iterator[Val]) -> Val:
    """A tree of the same structure with other leaves."""
    if not isinstance(tree, Seq):
        return next(new)
    return Seq(tree.kind, tuple(replaced(part, new) for part in tree.elems), tree.fields, tree.cls)


def is_float(leaf: Val) -> TypeGuard[Dyn]:
    """Whether a leaf is a number or an array that an optimiser changes."""
    return isinstance(leaf, Dyn) and isinstance(leaf.type, Scalar | Array) and "float" in leaf.type.dtype


__all__ = ["beside", "is_float", "leaves", "replaced"]
