"""Checking inferred values against annotations."""

from __future__ import annotations

import types
import typing
from typing import Any

from ...abstract.annotations import ScalarAnnotation, TensorAnnotation, check_annotation, normalise
from ...utils.errors import CompileError, TypeError_
from ..values.kinds import instances_of, is_data, possible
from ..values.treedef import describe
from ..values.values import Dyn, Seq, Static, TaggedUnion, Val


def check_value(value: Val, annotation: Any, names: dict, what: str) -> None:
    """Check a value against an annotation; annotations that say nothing about values of this kind are ignored.

    Args:
        value: the inferred value.
        annotation: a Tensor or scalar annotation, or a class.
        names: symbolic dimension names bound so far.
        what: how messages call the value.

    Raises:
        TypeError_: it does not fit the annotation.
        ShapeError: its shape does not.
    """
    written, annotation = annotation, normalise(annotation)
    alternatives = union_of(annotation)
    if alternatives is not None and not is_data(value):
        check_union(value, annotation, alternatives, names, what)
        return
    if isinstance(value, TaggedUnion):
        for option in value.options:
            check_value(option, written, names, what)
        return
    if isinstance(annotation, TensorAnnotation | ScalarAnnotation):
        if not isinstance(value, Dyn):
            raise TypeError_(f"{what} is annotated {annotation}, but it is {describe(value)}")
        check_annotation(value.type, written, names, what)
    elif is_data(value):
        fits = instances_of(value.type.family, annotation)
        if fits is not None and not set(fits) & set(possible(value)):
            raise TypeError_(
                f"{what} is annotated {getattr(annotation, '__name__', annotation)}, but it is {describe(value)}"
            )
    elif annotation is None:
        if not (isinstance(value, Static) and value.value is None):
            raise TypeError_(f"{what} is annotated None, but it is {describe(value)}")
    elif isinstance(annotation, type) and isinstance(value, Seq) and value.kind == "record":
        if not issubclass(value.cls, annotation):
            raise TypeError_(f"{what} is annotated {annotation.__name__}, but it is {value.cls.__name__}")


def union_of(annotation: Any) -> tuple | None:
    """The alternatives of `int | float`, `Optional[Float]`, `Float | None` and similar; None for other annotations."""
    if isinstance(annotation, tuple):  # unions of myia_relay's own scalar annotations
        return tuple(a for part in annotation for a in (union_of(part) or (part,)))
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(type(None) if a is None else a for a in typing.get_args(annotation))
    return None


def check_union(value: Val, annotation: Any, alternatives: tuple, names: dict, what: str) -> None:
    """Check a value against a union: each possible option must fit one of the alternatives.

    Raises:
        TypeError_: it fits none.
    """
    for option in value.options if isinstance(value, TaggedUnion) else (value,):
        for alternative in alternatives:
            bound = dict(names)
            try:
                check_value(option, None if alternative is type(None) else alternative, bound, what)
            except CompileError:
                continue
            names.update(bound)
            break
        else:
            shown = " | ".join("None" if a is type(None) else getattr(a, "__name__", str(a)) for a in alternatives)
            raise TypeError_(f"{what} is annotated {shown}, but it is {describe(option)}")
