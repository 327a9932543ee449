"""The text of functions that are pickled by value: it travels with them, because another process cannot find it.

`cloudpickle` sends a function of the main module, or one made inside of another function, as byte code alone; since its
version 3.1.3 not even the name of its file goes with it. The compiler reads source text, on another machine too.

Input: what a decorated function is made of. Output: `SentSource`, which gives the functions their text where they arrive.
"""

from __future__ import annotations

import dis
import functools
import linecache
from collections.abc import Iterable
from hashlib import blake2b
from types import CodeType, FunctionType, MethodType
from typing import Any

from .source import is_ours, register_text

GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME")
MAIN = ("__main__", "__mp_main__")
"""The names of the main module, whose functions are sent by value."""


class SentSource:
    """Functions that are sent by value, and the text of the files they are written in.

    Attributes:
        functions: each with the name of its file.
        texts: file name -> text.
    """

    def __init__(self, functions: list[tuple[FunctionType, str]], texts: dict[str, str]):
        self.functions, self.texts = functions, texts

    @staticmethod
    def of(values: Any) -> SentSource:
        """That of all functions which are reached from values and which their module does not have under their names."""
        functions, texts = [], {}
        for function in _reached(values):
            file = function.__code__.co_filename
            if file not in texts:
                texts[file] = _text(file, "".join(linecache.getlines(file, function.__globals__)))
            if texts[file]:
                functions.append((function, file))
        return SentSource(functions, {file: text for file, text in texts.items() if text})

    def give(self) -> None:
        """Let the functions, which have arrived, be found in their text: in the file if it is the same here."""
        names: dict[str, str] = {}
        for file, text in self.texts.items():
            linecache.checkcache(file)
            if "".join(linecache.getlines(file)) == text:
                names[file] = file
            else:
                digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
                names[file] = register_text(f"<sent {digest} {file}>", file, text)
        for function, file in self.functions:
            function.__code__ = _in_file(function.__code__, names[file])


@functools.lru_cache(maxsize=32)
def _text(file: str, text: str) -> str:
    """The same string object for the same file: a pickle holds it once, however many functions it has."""
    return text


def _in_file(code: CodeType, file: str) -> CodeType:
    """A code object, and those of the functions in it, with another file name."""
    inner = tuple(_in_file(c, file) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=file, co_consts=inner)


def _reached(values: Any) -> list[FunctionType]:
    """The functions to be sent by value that are reached from values through globals, closures, classes and containers."""
    found, seen, waiting = [], {}, [values]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value  # kept, so that its id is not used again
        if isinstance(value, FunctionType):
            if _is_by_value(value) and not is_ours(value.__code__.co_filename):
                found.append(value)
                waiting += _parts_of_function(value)
        elif isinstance(value, type):
            if _is_by_value(value):
                waiting += (*value.__bases__, *vars(value).values())
        else:
            waiting += _parts(value)
    return found


def _is_by_value(value: Any) -> bool:
    return value.__module__ in MAIN or "<locals>" in value.__qualname__ or "<lambda>" in value.__qualname__


def _parts_of_function(function: FunctionType) -> Iterable[Any]:
    """What a function refers to."""
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    yield from vars(function).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += (c for c in code.co_consts if isinstance(c, CodeType))
        for instruction in dis.get_instructions(code):
            if instruction.opname in GLOBAL and instruction.argval in function.__globals__:
                yield function.__globals__[instruction.argval]


def _parts(value: Any) -> Iterable[Any]:
    """What another value refers to that may be or hold a function."""
    if isinstance(value, tuple | list | set | frozenset):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, property):
        return [value.fget, value.fset, value.fdel]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if hasattr(value, "__wrapped__"):
        return [value.__wrapped__]
    return [type(value)]
