"""Libraries: compiled programs that are exported as files, and run where there is no compiler.

    f.save("f.so", 2.0, np.ones(3))             # for arguments of these types
    relay.export_model(model).save("m.so")      # with the model's parameters in it
    relay.load_compiled("m.so")(x)              # in any process, with TVM's runtime alone

Unlike a file of the cache, a library is self-contained: free names have the values that they had when it was written.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..abstract.dims import Dim
from ..abstract.types import Array
from ..backend.native import layout
from ..backend.native.format import Unportable
from ..backend.native.library import supported
from ..infer.arguments.arguments import describe_argument, python_value
from ..infer.arguments.open_sizes import exact
from ..infer.arguments.python_numbers import as_declared
from ..infer.values.treedef import TreeDef
from ..pipeline import Compiled
from ..utils.debugging import debugging
from ..utils.errors import LoweringError, TypeError_
from ..utils.files import read_file, write_atomically
from ..utils.raising import for_user
from .key import instruction_sets
from .program import arrays_of, decode_treedef, encode_treedef, pack, program_of, unpack


def write_library(
    path: Any,
    name: str,
    compiled: Compiled,
    treedefs: list[TreeDef],
    keywords: tuple[str, ...],
    leaves: list[Any],
    model: bool = False,
    numbers: bool = False,
) -> None:
    """Write a compiled program as a library.

    Args:
        path: the file.
        name: of the function.
        compiled: made by the native executor, in this process.
        treedefs: of the arguments.
        keywords: names of the last ones.
        leaves: of the arguments; references among them become part of the library.
        model: whether the first argument is a model that is called with the second.
        numbers: whether Python numbers take the dtypes of the arguments, as those of definitions of Relay text do.

    Raises:
        LoweringError: the program cannot be written.
        OSError: the file cannot be.
    """  # noqa: DOC501 (Unportable does not leave it)
    program = compiled.program
    if program.changes:
        raise LoweringError(
            f"{name} changes its argument '{program.changes[0].name}' in place, which a library does not; let it return a copy"
        )
    values = list(leaves)
    for hidden in program.hidden:
        if hidden.make is not None:
            raise LoweringError(
                f"{name} makes a model at every call, and a library has no compiler for it; pass the model in"
            )
        values.append(hidden.fetch(values))
        if not isinstance(values[-1], np.ndarray) and not hasattr(values[-1], "arrays"):
            raise LoweringError(
                f"{name} reads a {type(values[-1]).__name__} in a free name, and a library holds only arrays and models; pass it in"
            )
    if any(kind == "arg" for kind, _ in compiled.returned):
        raise LoweringError(f"{name} returns a model, and a library has none to return; return its parameters")
    blobs: list[np.ndarray] = []
    bound = [
        _bound(v, blobs) if k >= len(leaves) or hasattr(v, "__relay_ref__") else None for k, v in enumerate(values)
    ]
    extra = {
        "arguments": [encode_treedef_of_argument(s) for s in treedefs],
        "keywords": list(keywords),
        "bound": bound,
        "model": model,
        "numbers": numbers,
        "needs": sorted(instruction_sets()),
    }
    try:
        if not supported():
            raise Unportable("machine code of another system than Linux on x86-64")
        data = pack(compiled, name, {**extra, "arrays": blobs}, [], [])
    except Unportable as error:
        raise LoweringError(f"{name} cannot be written as a library: {error}") from None
    write_atomically(path, data)


def encode_treedef_of_argument(treedef: TreeDef) -> list:
    """An argument of a library.

    Raises:
        LoweringError: a function, or another value of this process, as an argument.
    """
    try:
        return encode_treedef(treedef)
    except Unportable as error:
        raise LoweringError(f"a library cannot take {treedef} as an argument: {error}") from None


def _bound(value: Any, blobs: list[np.ndarray]) -> list:
    """A value that is in the library: an array, or the arrays of a reference."""
    arrays = [value] if isinstance(value, np.ndarray) else list(value.arrays)
    blobs += arrays
    return ["array" if isinstance(value, np.ndarray) else "arrays", len(arrays)]


class CompiledFunction:
    """A function out of a library; it converts its arguments, raises and prints as the function that it was made from.

    Attributes:
        path: the file.
    """

    def __init__(self, path: str, description: dict[str, Any], compiled: Compiled, bound: list[Any]):
        self.path, self.__name__ = path, description["name"]
        self._compiled, self._bound = compiled, bound
        self._treedefs = [decode_treedef(s) for s in description["arguments"]]
        self._keywords = tuple(description["keywords"])
        self._model, self._numbers = description["model"], description["numbers"]

    def __call__(self, *args, **kwargs):
        try:
            return self._call(args, kwargs)
        except BaseException as error:
            problem = for_user(error, debugging())
        raise problem

    def _call(self, args: tuple, kwargs: dict) -> Any:
        wanted = self._treedefs
        if self._model:
            args, wanted = tuple(getattr(a, "x", a) for a in args), wanted[1:]
        values = [*args, *(kwargs[k] for k in self._keywords if k in kwargs)]
        if len(values) != len(wanted) or set(kwargs) != set(self._keywords):
            named = f", of which {', '.join(self._keywords)} by name" if self._keywords else ""
            raise TypeError_(
                f"{self.__name__} takes {len(wanted)} arguments{named}, as when it was saved, not {len(values)}"
            )
        leaves: list[Any] = []
        refs: dict[int, int] = {}
        for k, (value, want) in enumerate(zip(values, wanted, strict=True)):
            if self._numbers:
                value = as_declared(value, want, f"argument {k} of {self.__name__}")
            (have,) = exact([describe_argument(value, None, leaves, refs)])
            if not _fits(have, want):
                raise TypeError_(f"argument {k} of {self.__name__} is {have}, but the library was compiled for {want}")
        given = iter(leaves)
        out = self._compiled.run(*(next(given) if b is None else b for b in self._bound))
        count = len(self._compiled.returned)
        return python_value(self._compiled.program.result, iter([out] if count == 1 else out))

    def __reduce__(self) -> Any:
        return load_compiled, (os.path.abspath(self.path),)

    def __repr__(self) -> str:
        return f"<compiled function {self.__name__} of {self.path}>"


def _fits(have: TreeDef, want: TreeDef) -> bool:
    """Whether an argument can be passed where the library was compiled for a given treedef."""
    if have.tag != want.tag or len(have.parts) != len(want.parts):
        return False
    if have.tag == "dyn" and isinstance(have.info, Array) and isinstance(want.info, Array):
        if have.info.dtype != want.info.dtype or len(have.info.shape) != len(want.info.shape):
            return False
        return all(isinstance(w, Dim) or h == w for h, w in zip(have.info.shape, want.info.shape, strict=True))
    return have.info == want.info and all(map(_fits, have.parts, want.parts))


def load_compiled(path: Any) -> CompiledFunction:
    """A function out of a library that `save` wrote.

    Nothing is compiled, and TVM's compiler need not be there.

    Args:
        path: the file.

    Returns:
        A function of the same arguments; of a model's library, of the model's input.

    Raises:
        OSError: the file cannot be read or loaded.
        ValueError: it is no library of this compiler, it is damaged, or made for another processor.
    """
    path = os.fspath(path)
    data = read_file(path)
    try:
        description, rest = unpack(data)
        if "bound" not in description:
            raise ValueError("a file of the cache, which depends on the program it was compiled for")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    missing = set(description["needs"]) - instruction_sets()
    if missing or not supported():
        what = f"this processor lacks {', '.join(sorted(missing))}" if missing else "this system is another"
        raise ValueError(f"{path} was compiled for another machine: {what}; compile it here")
    if description["signature"]["by_object"] and not layout.supported():
        raise ValueError(f"{path} was compiled for CPython; this is another Python")
    arrays = arrays_of(description, rest)
    count = sum(n for b in description["bound"] if b is not None for n in [b[1]])
    parts = iter(arrays[len(arrays) - count :])
    bound: list[Any] = []
    for b in description["bound"]:
        if b is None:
            bound.append(None)
        else:
            taken = [next(parts) for _ in range(b[1])]
            bound.append(taken[0] if b[0] == "array" else SimpleNamespace(arrays=taken))
    try:
        compiled = program_of(description, arrays, data, len(data), [])
    except Unportable as error:
        raise ValueError(f"{path}: {error}") from None
    return CompiledFunction(path, description, compiled, bound)


__all__ = ["CompiledFunction", "load_compiled", "write_library"]
