"""Inference, written down.

    def @f(%x, %y: int32) { %x + %y }   =>   def @f(%x: int32, %y: int32) -> int32 { %x + %y }

The signatures of definitions, and of functions within them, get the types that the checker found (`text.check.annotate`). What
inference left open becomes a type parameter, and what must hold of it a clause behind `where`.

Inference of Python programs specialises (`infer`), so there is nothing polymorphic left to write.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..check.annotate import annotated
from ..module import Module
from .common.passes import TreePass, finished


@dataclass(frozen=True)
class InferType(TreePass):
    """Writes the types of signatures."""

    def __call__(self, module: Module) -> Module:
        """The module with its signatures annotated."""
        return finished(self, annotated(module.checked))
