"""Looking up compiled programs in files, and storing them.

`find` looks for the program of a call in the folder of programs; `keep` stores a compiled one. What cannot be
described, read or written is compiled as if there were no files. (Users' objects may do anything when they are
inspected, hence the broad `except`.) The only exceptions are warnings about files that are not trusted, if warnings are
errors.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

from ..backend.native.format import Unportable
from ..infer.values.treedef import TreeDef
from ..pipeline import Compiled
from ..utils.debugging import debugging
from . import store
from .key import key_of
from .program import arrays_of, decode_dependencies, encode_dependencies, pack, program_of, unpack

_why: list[Exception] = []  # the reason why the last program was not kept, for debugging


def _served(options: dict[str, Any]) -> bool:
    if options.get("inspect") or options.get("profile"):
        return False
    return (
        options["executor"] == "native" and options["target"] in (None, "cpu") and store.enabled() and not debugging()
    )


def find(function: Any, treedefs: list[TreeDef], keywords: tuple[str, ...], *how: Any) -> Compiled | None:
    """The program for a call, from a file; None if no file is valid here and now.

    Raises:
        CacheWarning: a file is not trusted, and warnings are errors.
    """
    if not _served(function.options):
        return None
    try:
        return _find(function, treedefs, keywords, how)
    except store.CacheWarning:  # warnings are errors
        raise
    except Exception:
        return None


def _find(function: Any, treedefs: list[TreeDef], keywords: tuple[str, ...], how: tuple) -> Compiled | None:
    key, roots = key_of(function, treedefs, keywords, how)
    with contextlib.closing(store.files(key)) as files:
        for file in files:
            try:
                description, rest = unpack(file.data)
                if description.get("key") != key:
                    raise ValueError("a program for something else, under this name")
            except ValueError:  # damaged, or of another version
                store.remove(file.path)
                continue
            dependencies = decode_dependencies(description["dependencies"], roots)
            if dependencies is None:
                continue
            try:
                return program_of(description, arrays_of(description, rest), file.fd, len(file.data), dependencies)
            except (Unportable, OSError, ImportError):
                continue
    return None


def keep(function: Any, treedefs: list[TreeDef], keywords: tuple[str, ...], compiled: Compiled, *how: Any) -> None:
    """Store a compiled program in a file, if possible."""
    if not _served(function.options) or getattr(compiled.run, "code", None) is None:
        return
    program = compiled.program
    try:
        key, roots = key_of(function, treedefs, keywords, how)
        if not all(d.holds() for d in program.dependencies):
            return
        dependencies = encode_dependencies(program.dependencies, roots)
        hidden = [_number(program.dependencies, h) for h in program.hidden]
        data = pack(compiled, getattr(function, "__name__", "f"), {"key": key}, dependencies, hidden)
    except Exception as error:
        _why.append(error)
        del _why[:-1]
        return
    store.write(key, hashlib.blake2b(data, digest_size=8).hexdigest(), data)


def _number(dependencies: list[Any], hidden: Any) -> int:
    """Which dependency a hidden argument is read from.

    Raises:
        Unportable: it is read from none.
    """
    for number, d in enumerate(dependencies):
        if hidden.make is None and hidden.dependency is d:
            return number
    raise Unportable("a hidden argument that is found in no free name")
