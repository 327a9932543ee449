"""Libraries for programs without Python: `relay.export_library`.

    relay.export_library(relay.export_model(model), "lenet.so")                              # for this machine
    relay.export_library(f, "f.a", x, y, target="aarch64-linux-gnu")                         # to be linked on another one

Idea: machine code whose arrays are plain memory, and beside it a description that C can read: names, types and shapes of the
arguments and results, the parameters of models, and the messages of errors. `backend/native/include/myia_relay.h` reads it.
The description is a sequence of 64-bit words, in the order in which the header reads them; texts among them are padded.
"""

from __future__ import annotations

import builtins
import inspect
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..abstract.dims import Dim, DimLike
from ..abstract.types import Array, List, NoneT, Ref, Scalar, Str, Struct, Type, Undefined, leaves, numpy_dtype
from ..abstract.words import is_word
from ..backend.native.area import round_up
from ..backend.native.sites import Number, Site, StaticOperand
from ..backend.native.standalone import StandaloneCode, TargetMachine, archive, shared_object
from ..infer.values.treedef import TreeDef
from ..pipeline import Compiled, compile_program
from ..utils.debugging import debugging, memory_checked
from ..utils.errors import LoweringError, TypeError_
from ..utils.files import write_atomically
from ..utils.raising import ITSELF, for_user

MAGIC, VERSION = b"MYIARLY1", 2
INPUT, BOUND, SYMBOL, AREA, OUTPUT = range(5)  # what an argument of the code is
ARRAY, FLOAT, INTEGER, RETURNED_FLOAT, RETURNED_INTEGER, SIZED = range(6)  # where an argument or result is
TEXT, NUMBER, OTHER = range(3)  # kinds of the operands of messages
CODES = (
    *("AssertionError", "ValueError", "ZeroDivisionError", "IndexError", "KeyError", "OverflowError", "TypeError"),
    *("FloatingPointError", "RuntimeError"),
)
FIRST_CODE = 10  # of those: AssertionError has it
OTHER_CODE = FIRST_CODE + len(CODES)


def export_library(function: Any, path: Any, *examples: Any, target: str | None = None) -> None:
    """Write a function or a model as a library for programs in C, or in any language that calls C, without Python.

    The library says itself what its arguments and results are; `myia_relay.h`, in the folder
    `python -m myia_relay include` prints, loads and runs it. See `docs/deployment.md`.

    Args:
        function: a decorated function, or a model, with its parameters as they are now.
        path: the file: a shared object (`.so`), for x86-64, AArch64 and ARM; or a static library (`.a`), for any machine.
        *examples: of the arguments; their types and shapes count. Models need them only where their input is not annotated.
        target: the machine: None for this one, or LLVM's name of one with options: "aarch64-linux-gnu",
            "armv7l-linux-gnueabihf", "x86_64-linux-gnu -mcpu=x86-64-v3".

    Raises:
        TypeError_: no function, no model, or no such file.
        LoweringError: the function takes, returns or needs what C has not: trees, lists, LAPACK.
        CompileError: the function cannot be compiled.
        OSError: the file cannot be written.
        TypeError: the path is none.
    """
    file = os.fsdecode(path)
    try:
        _export(function, file, examples, target)
        return
    except BaseException as error:
        problem = for_user(error, debugging())
    raise problem


def _export(function: Any, path: str, examples: tuple, target: str | None) -> None:
    """See `export_library`.

    Raises:
        TypeError_: no function, no model, or no such file.
        LoweringError: the function takes, returns or needs what C has not.
    """
    machine = TargetMachine.of(target)
    if not path.endswith((".a", ".so")):
        raise TypeError_("export_library writes a shared object, NAME.so, or a static library, NAME.a")
    if memory_checked():
        raise LoweringError("MYIA_RELAY_CHECKED=1 is for code that Python calls; unset it")
    if hasattr(function, "_signature"):
        relay, arguments = function, examples
    elif hasattr(function, "as_function"):
        relay, arguments = function.as_function(*examples)
    else:
        raise TypeError_(f"export_library takes a decorated function or a model, not {type(function).__name__}")
    given: list = []
    _, treedefs, keywords = relay._signature(arguments, {}, given)
    program = relay._infer(treedefs, keywords)
    compiled = compile_program(program, "native", {**relay.options, "standalone": machine, "own_results": True})
    if hasattr(function, "parameter_names"):
        name = relay.__wrapped__.__name__
    else:
        name = (
            getattr(function, "__name__", "") or getattr(getattr(function, "spec", None), "function", function).__name__
        )
    names = _names(function, relay, treedefs)
    try:
        data = _Description(name, compiled, names, given, machine).bytes()
    except LoweringError as error:
        raise error.at(relay._place()) from None
    code: Any = compiled.run
    linked = archive(code.code, data) if path.endswith(".a") else shared_object(code.code, data, machine)
    write_atomically(path, linked)


def _names(function: Any, relay: Any, treedefs: list[TreeDef]) -> list[str]:
    """The names of the leaves of the arguments."""
    if hasattr(function, "parameter_names"):
        parameters = function.parameter_names()
    else:
        source = inspect.unwrap(relay.__wrapped__) if relay is function else function.spec.function.__relay_model__
        try:
            parameters = list(inspect.signature(source).parameters)
        except (TypeError, ValueError):
            parameters = []
        if relay is not function:
            parameters = ["model", *parameters]
    found: list[str] = []
    for k, treedef in enumerate(treedefs):
        _paths(treedef, parameters[k] if k < len(parameters) else f"argument_{k}", found)
    return found


def _paths(treedef: TreeDef, name: str, found: list[str]) -> None:
    """The names of the leaves of a value: `x`, `x.0`, `x.weight`, `rows.length`, `rows.lengths`, `rows.entries`."""
    if treedef.tag == "dyn" or treedef.tag == "listed":
        found.append(name)
        return
    if treedef.tag == "columns":
        found.append(f"{name}.length")
        found.extend(_columns(treedef.info.elem, name))
        return
    fields = treedef.info[1] if treedef.tag == "seq" else ()
    for k, part in enumerate(treedef.parts):
        step = fields[k] if k < len(fields) else str(k)
        _paths(part, f"{name}.{step}" if name else str(step), found)


def _columns(t: Type, name: str, entries: str = ".entries") -> Iterator[str]:
    """The names of the columns of the entries of a list: of numbers, of parts of records, of the lengths of lists in it."""
    if isinstance(t, List):
        yield f"{name}.lengths"
        yield from _columns(t.elem, f"{name}.entries" if isinstance(t.elem, List) else name)
    elif is_word(t):
        yield f"{name}.code"
    elif isinstance(t, Struct):
        steps = ("which", *map(str, range(len(t.elems) - 1))) if t.kind == "union" else t.fields
        for k, part in enumerate(t.elems):
            yield from _columns(part, f"{name}.{steps[k] if k < len(steps) else k}", "")
    elif isinstance(t, Scalar):
        yield name + entries


class _Description:
    """The words of a description, and the arrays behind them."""

    def __init__(self, name: str, compiled: Compiled, names: list[str], given: list[Any], machine: TargetMachine):
        code = compiled.run
        assert isinstance(code, StandaloneCode)
        self.name, self.compiled, self.names, self.given = name, compiled, names, list(given)
        self.machine, self.signature = machine, code.signature
        for hidden in compiled.program.hidden:
            if hidden.make is not None:
                raise LoweringError(f"{name} makes a model at every call; pass the model in")
            self.given.append(hidden.fetch(self.given))
        if unknown := code.unknown():
            raise LoweringError(f"{name} needs {', '.join(unknown)} of LAPACK or BLAS, which libraries for C have not")
        if self.signature.heap is not None:
            raise LoweringError(f"{name} has trees of dataclasses, which libraries for C cannot hold")
        self.words = bytearray()
        self.blobs = bytearray()
        self.at: dict[int, int] = {}

    # Elements.

    def word(self, *values: int) -> None:
        for value in values:
            self.words += int(value).to_bytes(8, "little", signed=True)

    def text(self, text: str) -> None:
        data = text.encode() + b"\0"
        data += bytes(-len(data) % 8)
        self.word(len(data))
        self.words += data

    def blob(self, array: np.ndarray) -> int:
        """Where an array is, from the beginning of the arrays."""
        if id(array) not in self.at:
            self.blobs += bytes(-len(self.blobs) % 64)
            self.at[id(array)] = len(self.blobs)
            self.blobs += np.ascontiguousarray(array).tobytes()
        return self.at[id(array)]

    def dim(self, dim: DimLike) -> None:
        """A size: a sum of products of symbols, and of quotients of such sums.

        Raises:
            LoweringError: it is something else.
        """
        if not isinstance(dim, Dim):
            self.word(1, int(dim), 0)
            return
        self.word(len(dim.terms))
        for monomial, coefficient in dim.terms.items():
            self.word(coefficient, len(monomial))
            for name in monomial:
                if name in dim.atoms:
                    self.word(-1)
                    for operand in dim.atoms[name][1]:
                        self.dim(operand)
                elif name in self.signature.symbols:
                    self.word(self.signature.symbols.index(name))
                else:
                    raise LoweringError(f"the size {dim} of {self.name} does not follow from those of its arguments")

    def type(self, t: Scalar | Array) -> None:
        """A dtype, its bytes, and a shape."""
        self.text(t.dtype)
        shape = t.shape if isinstance(t, Array) else ()
        self.word(numpy_dtype(t.dtype).itemsize, len(shape))
        for d in shape:
            self.dim(d)

    # The whole.

    def bytes(self) -> bytes:
        """The description, for the symbol that C finds it under."""
        self.text(self.name)
        self.text(self.machine.triple or "this machine")
        self._arguments()
        self._results()
        s = self.signature
        self.word(round_up(s.state_slots * 8), s.state_slots)
        self.dim(s.arena)
        presets = [(slot, value) for slot, value in s.presets.items()]
        self.word(len(presets))
        for slot, value in presets:
            self.word(slot, self.blob(value))
        self.word(len(s.regions), *s.regions)
        self.word(*(s.frames or (-1, -1, -1, 0)))
        self.word(-1 if s.list_head is None else s.list_head, -1 if s.block is None else s.block)
        self.word(len(s.sites))
        for site in s.sites:
            self._site(site)
        head = len(MAGIC) + 8 * 4
        start = round_up(head + len(self.words))
        body = bytes(self.words).ljust(start - head, b"\0") + bytes(self.blobs)
        prefix = MAGIC + struct.pack("<qqq", VERSION, start, head + len(body))
        return prefix + struct.pack("<II", zlib.crc32(body), zlib.crc32(prefix)) + body

    def _arguments(self) -> None:
        """The symbols, the inputs, the arrays in the library, and the arguments of the code.

        Raises:
            LoweringError: C has no such arguments.
        """
        inputs: list[tuple[str, int, Any]] = []
        bound: list[np.ndarray] = []
        order: list[tuple[int, int]] = []
        symbols: dict[str, tuple[int, int]] = {}
        for k, t in enumerate(self.signature.params):
            value = self.given[k]
            if isinstance(t, NoneT | Str | Undefined):
                continue
            if isinstance(t, Ref):
                for array in value.arrays:
                    order.append((BOUND, len(bound)))
                    bound.append(array)
            elif isinstance(t, Array) and k >= len(self.names):
                order.append((BOUND, len(bound)))
                bound.append(np.asarray(value))
            elif isinstance(t, Array | Scalar) and k < len(self.names):
                if isinstance(t, Scalar) and t.dtype in ("float16", "bfloat16"):
                    raise LoweringError(f"{self.names[k]} is a {t.dtype} number, and C has none; pass an array")
                kind = ARRAY if isinstance(t, Array) else FLOAT if t.dtype.startswith("float") else INTEGER
                if isinstance(t, Array):
                    for axis, d in enumerate(t.shape):
                        if isinstance(d, Dim) and list(d.terms.values()) == [1] and len(next(iter(d.terms))) == 1:
                            symbols.setdefault(next(iter(d.terms))[0], (len(inputs), axis))
                order.append((INPUT, len(inputs)))
                inputs.append((self.names[k], kind, t))
            else:
                raise LoweringError(
                    f"{self.name} takes a value of type {t}, and a library for C arrays and numbers only"
                )
        missing = [s for s in self.signature.symbols if s not in symbols]
        if missing:
            raise LoweringError(f"no array that {self.name} takes has the size {missing[0]!r}")
        order += [(SYMBOL, k) for k in range(len(self.signature.symbols))]
        self.order = order
        self.word(len(self.signature.symbols))
        for name in self.signature.symbols:
            self.word(*symbols[name])
        self.word(len(inputs))
        for name, kind, t in inputs:
            self.text(name)
            self.word(kind)
            self.type(t)
        self.word(len(bound))
        for array in bound:
            self.word(self.blob(array))

    def _results(self) -> None:
        """The outputs, and the rest of the arguments of the code.

        Raises:
            LoweringError: C has no such results.
        """
        names: list[str] = []
        _paths(self.compiled.program.result, "", names)
        if any(kind == "arg" for kind, _ in self.compiled.returned):
            raise LoweringError(f"{self.name} returns a model, and a library for C has none to return")
        outs: list[tuple[str, int, list[int], Any]] = []
        named = iter(names)
        arrays = 0
        for t, result in zip(leaves(self.signature.output), self.signature.results, strict=True):
            if result == "none":
                continue
            name = next(named) or "result"
            floating = getattr(t, "dtype", "").startswith(("float", "bfloat"))
            if result == "return":
                outs.append((name, RETURNED_FLOAT if floating else RETURNED_INTEGER, [0], t))
            elif result[0] == "array":
                outs.append((name, ARRAY, [result[1]], t))
                arrays += 1
            elif result[0] == "slot":
                outs.append((name, FLOAT if floating else INTEGER, [result[1]], t))
            elif result[0] == "sized":
                outs.append((name, SIZED, [result[1], *result[2]], t))
            else:
                if self.compiled.program.changes:
                    change = self.compiled.program.changes[0]
                    raise LoweringError(
                        f"{self.name} changes the list '{change.name}' in place, and a library for C has no lists of the caller's: "
                        f"let it return what is in the list in the end, np.array({change.name})",
                        change.origin,
                    )
                raise LoweringError(
                    f"{self.name} returns {self._shown(t)}, and a library for C arrays and numbers only: return arrays, "
                    "np.array(...) of a list of numbers or of equal rows, and for other rows their numbers and their lengths"
                )
            if kind_of(outs[-1]) != ARRAY and getattr(t, "dtype", "") in ("float16", "bfloat16"):
                raise LoweringError(f"{name} is a {t.dtype} number, and C has none; return an array")  # pyright: ignore[reportAttributeAccessIssue]
        made = [(OUTPUT, k) for k in range(arrays)]
        block, area = self.signature.block is not None, [(AREA, 0)] if self.signature.state_slots else []
        order = [*self.order, *made, *area] if block else [*self.order, *area, *made]
        self.word(len(outs))
        for name, kind, slots, t in outs:
            self.text(name)
            self.word(kind, slots[0])
            self.text(t.dtype)
            shape = t.shape if isinstance(t, Array) else ()
            self.word(numpy_dtype(t.dtype).itemsize, len(shape))
            for k, d in enumerate(shape):
                if kind == SIZED:
                    self.word(slots[k + 1], -1 if isinstance(d, Dim) else int(d))
                else:
                    self.dim(d)
        self.word(len(order))
        for what, index in order:
            self.word(what, index)

    def _shown(self, t: Type) -> str:
        return f"a list of {t.elem}" if isinstance(t, List) else f"a value of type {t}"

    def _site(self, site: Site) -> None:
        """A place where the code fails, or prints.

        Raises:
            LoweringError: Python computes something there.
        """
        if site.call is not None:
            raise LoweringError(f"{self.name} calls a registered operator that is written in Python")
        exception = site.exception
        self.text(exception.__name__ if exception is not None else "")
        self.word(_code(exception))
        loc = site.origin.loc if site.origin is not None else None
        self.text(os.path.basename(loc.file) if loc is not None else "")
        self.word(loc.line if loc is not None else 0)
        self.text(site.end)
        self.word(len(site.text))
        for part in site.text:
            if isinstance(part, str):
                self.word(-1)
                self.text(part)
            else:
                index, conversion, spec = part
                self.word(index)
                self.text(spec if conversion in (None, "", -1, ITSELF) and isinstance(spec, str) else "")
        self.word(len(site.operands))
        for operand in site.operands:
            if isinstance(operand, StaticOperand):
                self.word(TEXT)
                self.text(str(operand.value))
            elif isinstance(operand, Number) and isinstance(operand.type, Scalar | Array):
                self.word(NUMBER, operand.slot)
                self.text(operand.type.dtype)
            else:
                self.word(OTHER)


def kind_of(out: tuple[str, int, list[int], Any]) -> int:
    """The kind of a result."""
    return out[1]


def _code(exception: type[BaseException] | None) -> int:
    """The number that C gets for an exception: of the nearest of its classes that has one."""
    for cls in getattr(exception, "__mro__", ()):
        if cls.__name__ in CODES and getattr(builtins, cls.__name__, None) is cls:
            return FIRST_CODE + CODES.index(cls.__name__)
    return OTHER_CODE


__all__ = ["export_library"]
