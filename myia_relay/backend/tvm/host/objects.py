"""The machine code that reads and makes Python's objects: one shared object, which is the same for all programs."""

from __future__ import annotations

from ..tir import machine
from .object_builder import build
from .object_reader import entry, walk


def compiled() -> bytes:
    """The shared object."""
    return machine.linked((machine.object_of_text(walk() + entry() + build()),))


__all__ = ["compiled"]
