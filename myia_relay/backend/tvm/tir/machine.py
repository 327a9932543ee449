"""Machine code of a built module: linked and loaded by our own linker where that is possible, else by TVM's just-in-time
loader.

Input: a module that TVM has built. Output: `backend.native.entry.Code`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import tvm_ffi

from ...native import library
from ...native.elf import link

EXPORTED = (library.PREFIX, "__TVM", "__myia")

library.use_packer(tvm_ffi.Function.__from_extern_c__)


def load(built: Any, guarded: bool = False) -> tuple[Any, bytes | None]:
    """The code of a module, ready to be called, and its object file where that was made.

    Args:
        built: the module.
        guarded: whether its memory shall come from the guarded allocator.
    """
    if not library.supported():
        library.launcher()  # also what happens to its threads after a fork
        return JustInTime(built), None
    code = object_of(built)
    needs = library.needs_of(code)
    return library.Library(linked(code), [*needs, "guards"] if guarded else needs), code


def linked(code: bytes, payload: bytes = b"") -> bytes:
    """An object file as a shared object; see `backend.native.elf`.

    Raises:
        LinkError: the linker does not know something in it.
    """
    return link(code, payload, slots=(library.SERVE,), exported=EXPORTED)


def object_of(built: Any) -> bytes:
    """A module as a relocatable object file."""
    fd, path = tempfile.mkstemp(suffix=".o", prefix="myia_relay.")
    try:
        os.close(fd)
        built.write_to_file(path, "o")
        with open(path, "rb") as file:
            return file.read()
    finally:
        os.unlink(path)


class JustInTime:
    """Code that TVM's loader has put into memory."""

    def __init__(self, built: Any):
        self.built = built
        self.main = built["main"]

    def packed(self, name: str) -> Callable:
        """A function as a callable of numbers."""
        return self.main if name == "main" else self.built[name]

    def invoke(self, name: str, *values: int) -> None:
        """Call a function with integers."""
        self.built[name](*values)


__all__ = ["JustInTime", "linked", "load"]
