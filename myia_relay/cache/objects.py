"""The machine code that reads, makes and changes Python's objects (`abstract.reading`, `backend.native.building`, `writing`), from
the folder of programs or compiled now.

It is the same for all programs, so a process loads it once: when the first program is there that takes or returns lists. It is
compiled where the compiler is at work anyway; without it, lists are taken apart and made by functions of CPython.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
from collections.abc import Iterable

from ..abstract import reading
from ..abstract.types import List
from ..backend.native import building, library, writing
from ..backend.native.elf import whole
from ..infer.values.treedef import TreeDef
from . import store
from .describe import digest
from .key import package_hash, processor, versions

_tried = False


def prepare(treedefs: Iterable[TreeDef]) -> None:
    """Have lists read and made by machine code from now on, if some of these arguments and results have any."""
    global _tried
    if _tried or not any(map(_has_lists, treedefs)):
        return
    if not (library.supported() and reading.supported()):
        _tried = True
        return
    with contextlib.suppress(OSError, ImportError):
        _tried = _found() or "tvm" in sys.modules and _made()


def _has_lists(treedef: TreeDef) -> bool:
    return treedef.tag in ("listed", "columns") or isinstance(treedef.info, List) or any(map(_has_lists, treedef.parts))


def _key() -> str:
    return digest("objects", package_hash(), processor(), versions())


def _found() -> bool:
    """Use the code in the folder, if there is some."""
    if not store.enabled():
        return False
    with contextlib.closing(store.files(_key())) as files:
        for file in files:
            if whole(file.data) and _use(library.Library(file.fd, [])):
                return True
            store.remove(file.path)
    return False


def _made() -> bool:
    """Compile it, and put it into the folder; there is nothing else to try then."""
    from ..backend.tvm.host.objects import compiled

    code = compiled()
    if _use(library.Library(code, [])) and store.enabled():
        store.write(_key(), hashlib.blake2b(code, digest_size=8).hexdigest(), code)
    return True


def _use(code: library.Library) -> bool:
    reads = reading.use(code.address(reading.FUNCTION), code)
    makes = building.use(code.address(building.FUNCTION), code.address(building.RELEASE), code)
    writes = makes and writing.use(code.address(writing.FUNCTION), code.address(writing.SHARED), code)
    return reads and makes and writes
