"""Arguments of declared data types (`abstract.declared`): which instance a Python value is of."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...abstract.declared import EVERYWHERE, Constructed, InstanceOf, declaration_of, instance_args
from ...abstract.types import BOOL, FLOAT, INT, NONE, Array, Data, Scalar, Struct

PYTHON = {int: INT, float: FLOAT, bool: BOOL}


def data_of(value: Constructed, annotation: Any) -> Data | None:
    """The type of a value of a declared type.

    Args:
        value: the value.
        annotation: of the parameter; an `InstanceOf` says which instance it is.

    Returns:
        Its type; None if its fields hold functions, or leave a parameter open, and the annotation does not say either.
    """
    declaration = declaration_of(type(value))
    assert declaration is not None
    if declaration.has_arrows():
        return None
    if isinstance(annotation, InstanceOf) and annotation.declaration is declaration:
        return Data(EVERYWHERE.of(declaration, annotation.args))
    args = instance_args(type(value), value.fields, _view)
    return None if args is None else Data(EVERYWHERE.of(declaration, args))


@functools.lru_cache(256)
def has_one_instance(cls: type[Constructed]) -> bool:
    """Whether all values of a constructor have one type, so that the class alone says which it is."""
    declaration = declaration_of(cls)
    assert declaration is not None
    return not declaration.parameters and not declaration.has_arrows()


def _view(value: Any) -> Any:
    kind = type(value)
    if kind in PYTHON:
        return PYTHON[kind]
    if isinstance(value, np.generic):
        return Scalar(value.dtype.name)
    if kind is np.ndarray:
        return Array(value.dtype.name, value.shape)
    if value is None:
        return NONE
    if isinstance(value, Constructed):
        return kind, value.fields
    return (Struct("tuple", ()), value) if kind is tuple else None
