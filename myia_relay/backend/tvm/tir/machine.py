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


def load(objects: tuple[bytes, ...], guarded: bool = False) -> library.Library:
    """The code of object files, ready to be called.

    Args:
        objects: the object files of a program.
        guarded: whether its memory shall come from the guarded allocator.
    """
    needs = needs_of(objects)
    return library.Library(linked(objects), [*needs, "guards"] if guarded else needs)


def needs_of(objects: tuple[bytes, ...]) -> list[str]:
    """What they call that is not in them, as `Signature.needs`."""
    return list(dict.fromkeys(need for code in objects for need in library.needs_of(code)))


def linked(objects: tuple[bytes, ...], payload: bytes = b"") -> bytes:
    """Object files as a shared object; see `backend.native.elf`.

    Raises:
        LinkError: the linker does not know something in them.
    """
    return link(objects, payload, slots=(library.SERVE,), exported=EXPORTED)


def object_of(built: Any) -> bytes:
    """A module as a relocatable object file: through memory where the system has that, so that a process which is killed leaves no
    file."""
    if hasattr(os, "memfd_create") and os.path.exists("/proc/self/fd"):
        with open(os.memfd_create("myia_relay.o"), "rb") as file:
            built.write_to_file(f"/proc/self/fd/{file.fileno()}", "o")
            return file.read()
    fd, path = tempfile.mkstemp(suffix=".o", prefix="myia_relay.")
    try:
        os.close(fd)
        built.write_to_file(path, "o")
        with open(path, "rb") as file:
            return file.read()
    finally:
        os.unlink(path)


def object_of_text(text: str) -> bytes:
    """Functions in LLVM's language as a relocatable object file."""
    with tempfile.NamedTemporaryFile("w", suffix=".ll", prefix="myia_relay.") as file:
        file.write(text)
        file.flush()
        return object_of(tvm_ffi.get_global_func("ffi.Module.load_from_file.ll")(file.name, "ll"))


class JustInTime:
    """Code that TVM's loader has put into memory."""

    def __init__(self, built: Any):
        library.launcher()  # also what happens to its threads after a fork
        self.built = built
        self.main = built["main"]

    def packed(self, name: str) -> Callable:
        """A function as a callable of numbers."""
        return self.main if name == "main" else self.built[name]

    def invoke(self, name: str, *values: int) -> None:
        """Call a function with integers."""
        self.built[name](*values)


__all__ = ["JustInTime", "linked", "load", "needs_of", "object_of"]
