"""Running: definitions of a module as functions of Python, constructors as functions that make values.

`Module` asks for them by name.
"""

from __future__ import annotations

from typing import Any

from ..lower.declarations import constructor_class
from ..lower.lower import Lowered
from .function import ModuleFunction


def function(module: Any, name: str) -> ModuleFunction:
    """A definition of a module as a function of Python, on the executor that the module is for."""
    return ModuleFunction(module, name, **module.options)


def constructor(module: Any, name: str) -> type:
    """A constructor of a module: a class of values (`abstract.declared.Constructed`)."""
    lowered = Lowered.of(module)
    return constructor_class(lowered.declaration(module.tree.constructors[name][0].name), name)


__all__ = ["ModuleFunction", "constructor", "function"]
