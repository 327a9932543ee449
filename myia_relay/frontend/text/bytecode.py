"""Comparison of byte code: whether a text, compiled again, gives the code that runs.

Byte code tells whether a file was edited after its import, and which of two lambdas on one line is meant. Equal byte
code means the same program. Positions (from Python 3.11 on) say in addition that it is written at the same place.
"""

from __future__ import annotations

import ast
import functools
import sys
import types
import warnings

PARTS = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_exceptiontable")


def place(code: types.CodeType) -> tuple[str, int]:
    """Name and first line of a code object."""
    return code.co_name, code.co_firstlineno


def by_place(module: types.CodeType) -> dict[tuple[str, int], list[types.CodeType]]:
    """All code objects of a module, by name and first line."""
    found: dict[tuple[str, int], list[types.CodeType]] = {}
    stack = [module]
    while stack:
        code = stack.pop()
        found.setdefault(place(code), []).append(code)
        stack.extend(inner_codes(code))
    return found


def inner_codes(code: types.CodeType) -> list[types.CodeType]:
    """The code objects of the functions and classes that are written directly inside another."""
    return [const for const in code.co_consts if isinstance(const, types.CodeType)]


def same_code(new: types.CodeType, code: types.CodeType) -> bool:
    """Whether two code objects do the same, wherever they are written."""
    for part in PARTS:
        if getattr(new, part, None) != getattr(code, part, None):
            return False
    if len(new.co_consts) != len(code.co_consts):
        return False
    return all(map(_same_constant, new.co_consts, code.co_consts))


def _same_constant(a, b) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, types.CodeType):
        return same_code(a, b)
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_same_constant, a, b))
    if isinstance(a, frozenset):  # of `x in {...}`: its order differs between processes
        return sorted(map(repr, a)) == sorted(map(repr, b))
    if isinstance(a, str) and "<locals>" in a:
        return True  # the qualified name of an inner function, a constant before Python 3.11
    return repr(a) == repr(b)


def same_place(new: types.CodeType, code: types.CodeType) -> bool:
    """Whether two code objects of one file are of the same text, which `==` takes 2**depth steps for where functions are nested."""
    if sys.version_info < (3, 11):
        return False
    return same_code(new, code) and list(new.co_positions()) == list(code.co_positions())


def extent_of(code: types.CodeType) -> tuple | None:
    """First and last (line, column) that the instructions of a code object come from; None before Python 3.11."""
    if sys.version_info < (3, 11):
        return None
    spots = [p for p in code.co_positions() if None not in p and p[1:] != (p[0], 0, 0)]
    if not spots:
        return None
    return min((p[0], p[2]) for p in spots), max((p[1], p[3]) for p in spots)


# Modules that pytest imports.


def has_asserts_of_pytest(code: types.CodeType) -> bool:
    """Whether pytest has rewritten asserts of a function or of one inside it."""
    return "@pytest_ar" in code.co_names or any(map(has_asserts_of_pytest, inner_codes(code)))


@functools.lru_cache(maxsize=8)
def rewritten_by_pytest(file: str, text: str) -> tuple[dict[tuple[str, int], list[types.CodeType]], ...]:
    """The code objects of a module as pytest compiles it, by name and first line; with and without its hook for asserts
    that hold. Nothing where pytest is not running.
    """
    pytest = sys.modules.get("_pytest.assertion.rewrite")
    if pytest is None:
        return ()
    found = []
    for hook in (False, True):
        module = ast.parse(text, file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.rewrite_asserts(module, text.encode(), file, _Config(hook))
            found.append(by_place(compile(module, file, "exec", dont_inherit=True)))
    return tuple(found)


class _Config:
    """What `rewrite_asserts` asks of pytest's configuration: the setting `enable_assertion_pass_hook`."""

    def __init__(self, hook: bool):
        self.hook = hook

    def getini(self, name: str) -> bool:
        return self.hook
