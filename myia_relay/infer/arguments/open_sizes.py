"""Sizes of arguments that annotations leave open: `Any`, and the names in the annotations of dataclass fields.

    Tensor[Float, ("n", Any)]        w: Tensor[Float, ("i", "o")] of a dataclass

Such a size is a symbol too, so one compilation serves every size. The sizes of the call decide which symbol it is, by
the first rule that applies:

- a named dimension of the same size gives its symbol;
- the size stays a number if some array of the call has it as a fixed size, or if it is 1 and may broadcast with another
  array;
- otherwise it is a symbol of its own, shared by all open sizes that are equal.

Shapes that fit together in NumPy thus fit together in types. Which sizes are equal is part of the signature.

Names in the annotations of a class belong to the object: two objects of a class may have different sizes.
"""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ...abstract.annotations import TensorAnnotation, no_field, show_shape
from ...abstract.dims import Dim, symbol
from ...abstract.types import Array
from ...utils.errors import ShapeError, TypeError_
from ..values.treedef import TreeDef

OPEN = "?"  # prefix of the size in the name of an open dimension

_HINTS: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()


@dataclass(frozen=True)
class FieldAnnotation:
    """The annotation of an array in a field of an object.

    Attributes:
        annotation: what is written.
        names: the object's names and what they stand for, extended: name -> (size, field).
        field: the field.
    """

    annotation: TensorAnnotation
    names: dict[str, tuple[int, str]]
    field: str

    def shape(self, value) -> tuple:
        """The shape of an array with its open sizes.

        Raises:
            TypeError_: the annotation is of a triangle, or of another dtype.
            ShapeError: the annotation has another shape, or a named size differs from that of another field.
        """  # noqa: DOC501 (a function makes the exception)
        note = self.annotation
        if note.triangle:
            raise no_field(note, f"the field '{self.field}'")
        if value.dtype.name != note.element:
            raise TypeError_(
                f"the field '{self.field}' is annotated {note}, but its elements are {value.dtype.name}; "
                f"convert it: .astype(np.{note.element})"
            )
        if note.shape is None:
            return value.shape
        if len(note.shape) != value.ndim or any(isinstance(d, int) and d != n for d, n in zip(note.shape, value.shape)):
            raise ShapeError(
                f"the field '{self.field}' is annotated {note}, but its shape is {show_shape(value.shape)}"
            )
        for dim, size in zip(note.shape, value.shape):
            before, where = self.names.setdefault(dim, (size, self.field)) if isinstance(dim, str) else (size, "")
            if before != size:
                raise ShapeError(
                    f"the dimension '{dim}' is {before} in the field '{where}', but {size} in the field '{self.field}'"
                )
        return tuple(size if isinstance(dim, int) else open_size(size) for dim, size in zip(note.shape, value.shape))


def open_size(size: int) -> Dim:
    """A size that an annotation leaves open, until `settle` gives it a symbol."""
    return symbol(f"{OPEN}{size}")


def part_annotations(annotation: Any, value: Any, names: typing.Iterable[str | int]) -> list:
    """The annotations of the parts of a structure: None where there is none.

    Args:
        annotation: that of the structure.
        value: a tuple, list, dict, NamedTuple or dataclass.
        names: of its parts.
    """
    names = list(names)
    if hasattr(value, "_fields") or hasattr(value, "__dataclass_fields__"):
        hints, own = _hints(type(value)), {}
        return [
            FieldAnnotation(h, own, n) if isinstance(h := hints.get(n), TensorAnnotation) else h
            for n in map(str, names)
        ]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple and len(args) == len(names) and args[-1:] != (Ellipsis,):
        return list(args)
    if origin in (tuple, list, dict) and args:
        return [args[1 if origin is dict else 0]] * len(names)
    return [None] * len(names)


def _hints(cls: type) -> dict[str, Any]:
    """The evaluated annotations of a class, as far as they can be."""
    known = _HINTS.get(cls)
    if known is None:
        known = {}
        for base in reversed(cls.__mro__):
            try:
                known.update(inspect.get_annotations(base, eval_str=True))
            except Exception:  # a name that is not defined (yet) says nothing about sizes
                continue
        _HINTS[cls] = known
    return known


def settle(treedefs: list[TreeDef], names: list, leaves: list) -> list[TreeDef]:
    """Give every open size its symbol or number, and check that each named dimension has one size.

    Args:
        treedefs: the arguments.
        names: what they are called.
        leaves: their leaf values.

    Raises:
        ShapeError: a named dimension has two sizes.
    """
    named: dict[str, tuple[int, int, Any]] = {}
    fixed: set[int] = set()
    opened: list[int] = []
    shapes: list[tuple] = []
    position = 0
    for treedef, name in zip(treedefs, names, strict=True):
        for leaf in treedef.leaves():
            value, position = leaves[position], position + 1
            if not isinstance(leaf.info, Array):
                continue
            shapes.append(value.shape)
            for axis, (dim, size) in enumerate(zip(leaf.info.shape, value.shape, strict=True)):
                if not isinstance(dim, Dim):
                    fixed.add(dim)
                elif (text := str(dim)).startswith(OPEN):
                    opened.append(size)
                else:
                    before = named.setdefault(text, (size, axis, name))
                    if before[0] != size:
                        raise ShapeError(
                            f"the dimension '{text}' is {before[0]} in axis {before[1]} of {_called(before[2])}, but {size} in "
                            f"axis {axis} of {_called(name)}"
                        )
    if not opened:
        return treedefs
    if len(shapes) > 1 and any(size != 1 for shape in shapes for size in shape):
        fixed.add(1)
    sizes: dict[int, int | Dim] = {size: symbol(name) for name, (size, *_) in reversed(named.items())}
    free = (symbol(f"any{k}") for k in range(len(opened) + len(named)) if f"any{k}" not in named)
    for size in opened:
        if size not in sizes:
            sizes[size] = size if size in fixed else next(free)

    def settled(treedef: TreeDef) -> TreeDef:
        if treedef.tag == "dyn" and isinstance(treedef.info, Array):
            shape = tuple(sizes[int(str(d)[1:])] if str(d).startswith(OPEN) else d for d in treedef.info.shape)
            return TreeDef("dyn", Array(treedef.info.dtype, shape))
        return (
            TreeDef(treedef.tag, treedef.info, tuple(settled(p) for p in treedef.parts)) if treedef.parts else treedef
        )

    return [settled(s) for s in treedefs]


def exact(treedefs: list[TreeDef]) -> list[TreeDef]:
    """The arguments with every open size replaced by its number."""

    def closed(treedef: TreeDef) -> TreeDef:
        if treedef.tag == "dyn" and isinstance(treedef.info, Array):
            shape = tuple(int(str(d)[1:]) if str(d).startswith(OPEN) else d for d in treedef.info.shape)
            return TreeDef("dyn", Array(treedef.info.dtype, shape))
        return TreeDef(treedef.tag, treedef.info, tuple(closed(p) for p in treedef.parts)) if treedef.parts else treedef

    return [closed(s) for s in treedefs]


def numbered(treedefs: list[TreeDef], leaves: list) -> list[TreeDef]:
    """The arguments with the sizes of their arrays in place of all symbols."""
    values = iter(leaves)

    def closed(treedef: TreeDef) -> TreeDef:
        if treedef.parts:
            return TreeDef(treedef.tag, treedef.info, tuple([closed(p) for p in treedef.parts]))
        for _ in treedef.leaves():
            value = next(values)
            if isinstance(treedef.info, Array):
                return TreeDef(treedef.tag, Array(treedef.info.dtype, value.shape))
        return treedef

    return [closed(s) for s in treedefs]


def _called(name: str | int) -> str:
    return f"argument {name}" if isinstance(name, int) else f"argument '{name}'"
