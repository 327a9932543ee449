"""The machine code that reads, makes and changes Python's objects: one shared object, which is the same for all programs."""

from __future__ import annotations

from ..tir import machine
from .object_builder import build
from .object_reader import entry, walk
from .object_writer import shared, write


def compiled() -> bytes:
    """The shared object."""
    return machine.linked((machine.object_of_text(walk() + entry() + build() + write() + shared()),))


__all__ = ["compiled"]
