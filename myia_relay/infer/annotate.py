"""Checking inferred values against annotations."""

from __future__ import annotations

from typing import Any

from ..abstract.annotations import ScalarAnnotation, TensorAnnotation, check_annotation, normalise
from ..utils.errors import TypeError_
from .data import instances_of, is_data, possible
from .values import Dyn, Seq, Static, Val, describe


def check_value(value: Val, annotation: Any, names: dict, what: str) -> None:
    """Check a value against an annotation; annotations that say nothing about values of this kind are ignored.

    Args:
        value: the inferred value.
        annotation: a Tensor or scalar annotation, or a class.
        names: symbolic dimension names bound so far.
        what: how messages call the value.

    Raises:
        TypeError_, ShapeError: it does not fit.
    """
    annotation = normalise(annotation)
    if isinstance(annotation, TensorAnnotation | ScalarAnnotation):
        if not isinstance(value, Dyn):
            raise TypeError_(f"{what} is annotated {annotation}, but it is {describe(value)}")
        check_annotation(value.type, annotation, names, what)
    elif is_data(value):
        fits = instances_of(value.type.family, annotation)
        if fits is not None and not set(fits) & set(possible(value)):
            raise TypeError_(f"{what} is annotated {getattr(annotation, '__name__', annotation)}, but it is {describe(value)}")
    elif annotation is None:
        if not (isinstance(value, Static) and value.value is None):
            raise TypeError_(f"{what} is annotated None, but it is {describe(value)}")
    elif isinstance(annotation, type) and isinstance(value, Seq) and value.kind == "record":
        if not issubclass(value.cls, annotation):
            raise TypeError_(f"{what} is annotated {annotation.__name__}, but it is {value.cls.__name__}")
