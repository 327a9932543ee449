"""Layers and neural-network operators as users call them: `relay.conv2d`, `relay.linear`, `relay.tanh`, ...

A layer that is given no weight takes hidden parameters from the model it is called in. Outside of compiled code every
operator here works on NumPy arrays too: it compiles itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..abstract.types import Array
from ..api import Relay
from ..infer.calls import numeric, special
from ..infer.engine import Engine
from ..infer.frames import Frame
from ..infer.structures import to_python
from ..infer.values import Dyn, Static, Val, describe
from ..prims import nn_api
from ..utils.errors import ShapeError, TypeError_
from .hidden import parameters

OPERATORS: dict[str, Callable] = {}


class Operator(Relay):
    """A public operator. In compiled code it has the meaning registered for it; from Python it compiles itself."""

    def __init__(self, function: Callable):
        super().__init__(function)
        OPERATORS[function.__name__] = self


def operator(function: Callable) -> Operator:
    """Make a public operator of a function whose body calls itself by name: the call inside is the compiled meaning."""
    return Operator(function)
