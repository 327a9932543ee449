"""Strings among data: at run time a string is a number, its code, by which it is compared.

    [("ab", 3), ("cd", 4)]        list[(str, int)]        int64 [code of "ab", code of "cd"]        int64 [3, 4]

Idea: a string in a list or in a record of a list is a record with one field, `StringCode`, so all that knows records knows strings:
lists of them, joins, derivatives, files. The code is a hash of the characters, and the same in every process, so compiled code
that compares with "ab" has its code as a constant. Two strings with one code are refused where they meet (a matter of 2^-63), so
equal codes are equal strings. Results that are strings are looked up by their codes.

Strings are remembered while calls that were given them may return them, and those of compiled code for ever.

Source: the multipliers are those of SplitMix64 (G. Steele et al., "Fast splittable pseudorandom number generators", OOPSLA 2014).
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..utils.errors import InternalError
from .types import INT, Struct, Type

MOST = 1 << 18  # strings that are remembered although no call has them
MASK = (1 << 64) - 1
FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9  # odd multipliers of the hash


@dataclass(frozen=True, eq=False)
class StringCode:
    """A string in compiled code.

    Attributes:
        code: its code.
    """

    code: int
    __relay_name__: ClassVar[str] = "str"

    def __repr__(self) -> str:
        return repr(text_of(self.code))

    def __str__(self) -> str:
        return text_of(self.code)

    def __format__(self, spec: str) -> str:
        return format(text_of(self.code), spec)

    @staticmethod
    def __relay_rebuild__(code: int | None) -> str | None:
        """The string; None where a derivative by it would be."""
        return None if code is None else text_of(code)

    @staticmethod
    def __relay_outside__(part: type) -> type:
        """The class outside of compiled code."""
        return str


STRING = Struct("record", (INT,), ("code",), StringCode)


def is_word(t: Type) -> bool:
    """Whether values of a type are strings."""
    return isinstance(t, Struct) and t.cls is StringCode


CODES: dict[str, int] = {}  # machine code looks strings up in it, so it stays the same object, as the next one does
TEXTS: dict[int, str] = {}
_before: dict[int, str] = {}  # what was in `TEXTS` before it was emptied
constants: dict[int, str] = {0: ""}  # so 0 may stand where no string is; the strings of compiled code
_lock = threading.Lock()
_live: dict[int, Any] = {}  # weak references to the columns of calls, by their own identities


def code_of(text: str) -> int:
    """The code of a string: a hash of its UTF-8, which is the same in every process. The machine code of `reading` has it too."""
    if not text:
        return 0
    data = text.encode("utf-8", "surrogatepass")
    hashed = len(data) * FIRST & MASK
    for at in range(0, len(data), 8):
        hashed = (hashed ^ int.from_bytes(data[at : at + 8], "little")) * SECOND & MASK
        hashed ^= hashed >> 32
    hashed = hashed * FIRST & MASK
    hashed = (hashed ^ hashed >> 29) * SECOND & MASK
    return (hashed ^ hashed >> 32) >> 1


def intern(texts: Iterable[str]) -> None:
    """Give strings codes.

    Raises:
        InternalError: two strings have the same code.
    """
    for text in texts:
        if text in CODES:
            continue
        code = code_of(text)
        known = TEXTS.setdefault(code, text)
        if known != text or constants.get(code, text) != text:
            raise InternalError("strings", f"the strings {known!r} and {text!r} have the same code")
        CODES[text] = code


def constant(text: str) -> int:
    """The code of a string of compiled code."""
    intern((text,))
    code = CODES[text]
    constants[code] = text
    return code


def text_of(code: int) -> str:
    """The string with a code.

    Raises:
        InternalError: it is not known.
    """
    found = _lookup(int(code))
    if found is None:
        raise InternalError("strings", f"no string is known with the code {code}")
    return found


def _lookup(code: int) -> str | None:
    for table in (TEXTS, constants, _before):
        if code in table:
            return table[code]
    return None


def codes_of(texts: list[str]) -> np.ndarray:
    """The codes of strings, as a column."""
    with _lock:
        intern(set(texts))
        codes = np.fromiter(map(CODES.__getitem__, texts), np.int64, len(texts))
    return held(codes)


def held(codes: np.ndarray) -> np.ndarray:
    """A column of codes, whose strings are remembered as long as it lives."""
    global _before
    if len(CODES) > MOST and not _live:
        with _lock:
            _before = TEXTS.copy()
            TEXTS.clear()
            CODES.clear()
    seen = weakref.ref(codes, _gone)
    _live[id(seen)] = seen
    return codes


def _gone(seen: Any) -> None:
    _live.pop(id(seen), None)


__all__ = ["CODES", "STRING", "TEXTS", "StringCode", "code_of", "codes_of", "constant", "held", "is_word", "text_of"]
