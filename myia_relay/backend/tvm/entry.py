"""The Python side of a native program: a caller made for its signature, and what happens when a call fails.

Idea: everything that can be known when compiling is written out as one Python function (`exec`): where the leaves of the
arguments are, which arrays to allocate, how results are put together. A call takes a state area from a list (or makes one), so
several threads may call at once and nothing is allocated again.

Input: a `Signature`. Output: `call(*values)` and `into(out, *values)`.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm_ffi

from ...abstract.dims import Dim, DimLike, evaluate
from ...abstract.types import Array, NoneT, Ref, Scalar, Str, Struct, Type, Undefined, numpy_dtype
from ...prims.structure import part, rebuild
from ...utils.errors import LoweringError, ShapeError, TypeError_
from ...utils.raising import format_parts, raise_at
from . import layout
from .effects import POLL, PRINT, Site
from .plan import ALIGN
from .recursion import DEEPER, continue_deeper, stack_limit
from .state import FAILED, INTERRUPTED, LAYOUT, PROGRAM, SITE

_MASK = (1 << 64) - 1


class Slots:
    """Reads the slots of a state area."""

    def __init__(self, address: int, count: int):
        self.ints = (ctypes.c_int64 * count).from_address(address)
        self.floats = (ctypes.c_double * count).from_address(address)

    def scalar(self, slot: int, t: Type) -> Any:
        """A number, of exactly the kind that its type says."""
        if t.dtype.startswith(("float", "bfloat")):
            value: Any = self.floats[slot]
        else:
            value = self.ints[slot]
            if t.dtype == "bool":
                value = bool(value)
            elif t.dtype == "uint64":
                value &= _MASK
        if isinstance(t, Array):
            return np.asarray(value, numpy_dtype(t.dtype))
        return value if t.weak else numpy_dtype(t.dtype).type(value)

    def array(self, slot: int, dtype: str, sizes: list[int]) -> np.ndarray:
        """A copy of an array whose address is in a slot."""
        shape = [self.ints[at] for at in sizes]
        out = np.empty(shape, numpy_dtype(dtype))
        ctypes.memmove(out.ctypes.data, self.ints[slot], out.nbytes)
        return out


def _c_free() -> Callable:
    if sys.platform == "win32":
        return ctypes.cdll.msvcrt.free
    return ctypes.CDLL(None).free


_free = _c_free()


class _Regions:
    """Owns a state area and what its program allocated for tapes."""

    def __init__(self, memory: np.ndarray, ints: memoryview, slots: list[int]):
        self.memory, self.ints, self.slots = memory, ints, slots

    def __del__(self, free=_free):
        for slot in self.slots:
            if self.ints[slot]:
                free(ctypes.c_void_p(self.ints[slot]))
                self.ints[slot] = 0


@dataclass
class Signature:
    """What the caller has to know of a program.

    Attributes:
        params: types of the parameters.
        output: type of the result.
        symbols: names of symbolic dimensions, in the order in which they are passed.
        results: for each leaf of the output: ("slot", k), ("array", k), "return" or "none".
        state_slots: how many slots the state area has; 0 where the program takes none.
        arena: bytes of the arena, maybe symbolic.
        presets: slot -> value it has from the start.
        sites: effects by number.
        by_object: whether arrays are passed as objects, not addresses.
        regions: slots that hold addresses of memory that the program allocated.
        keep: objects that the presets point to.
        frames: for recursive functions, the slots of the beginning and the end of the region of frames, of the address that the
            C stack must not grow below, and the size of the region.
    """

    params: list[Type]
    output: Type
    symbols: list[str]
    results: list[Any]
    state_slots: int
    arena: DimLike
    presets: dict[int, int]
    sites: list[Site]
    by_object: bool = True
    regions: list[int] = field(default_factory=list)
    keep: list[Any] = field(default_factory=list)
    frames: tuple[int, int, int, int] | None = None


# A signal may be handled as a callback begins, before anything there can catch what it raises: TVM must know the class.
tvm_ffi.register_error("KeyboardInterrupt", KeyboardInterrupt)

_PROGRAMS: weakref.WeakValueDictionary[int, Entry] = weakref.WeakValueDictionary()


class Entry:
    """The callers of one program.

    Args:
        main: the compiled function.
        signature: see `Signature`.
        again: for each recursive function, what continues it; see `recursion`.
    """

    def __init__(self, main: Callable, signature: Signature, again: list[Callable] | None = None):
        self.main = main
        self.again = again or []
        self.stopped: set[int] = set()  # state areas of calls that are to end
        self.signature = signature
        self.free: list[tuple] = []
        self.waiting: dict[int, BaseException] = {}
        _PROGRAMS[id(self)] = self
        self.call = _Writer(self, into=False).function()
        self.into = _Writer(self, into=True).function()

    def area(self, size: int) -> tuple:
        """A new state area with an arena of at least `size` bytes: (address, floats, ints, size, memory)."""
        signature = self.signature
        head = -(-signature.state_slots * 8 // ALIGN) * ALIGN
        raw = np.zeros(head + size + ALIGN, np.uint8)
        start = -raw.ctypes.data % ALIGN
        memory = memoryview(raw[start : start + head])
        ints = memory.cast("q")
        ints[PROGRAM] = id(self)
        for slot, value in signature.presets.items():
            ints[slot] = value
        holder: Any = _Regions(raw, ints, signature.regions) if signature.regions else raw
        if signature.frames is not None:
            base, end, _, nbytes = signature.frames
            frames = np.empty(nbytes + ALIGN, np.uint8)
            ints[base] = frames.ctypes.data + -frames.ctypes.data % ALIGN
            ints[end] = ints[base] + nbytes
            holder = (holder, frames)
        return raw.ctypes.data + start, memory.cast("d"), ints, size, holder

    def fail(self, status: Any, area: tuple | None, values: tuple, out: Any) -> Any:
        """Act on the status of a call that did not succeed."""
        if status == LAYOUT:
            self.free.append(area)
            return self._convert(values, out)
        if status == INTERRUPTED:
            self.free.append(area)
            raise self.waiting.pop(area[0], None) or KeyboardInterrupt
        if status != FAILED:
            raise MemoryError("a native program ran out of memory")
        slots = Slots(area[0], self.signature.state_slots)
        site = self.signature.sites[slots.ints[SITE]]
        operands = [decode(slots) for decode in site.decode]
        self.free.append(area)
        attrs = site.node.attrs
        raise_at(attrs["exception"], format_parts(attrs["parts"], operands), site.node.origin)

    def _convert(self, values: tuple, out: Any) -> Any:
        """Call again with arrays as the program needs them: the slow path for strided, foreign or foreign-endian arrays."""
        ready = tuple(_ready(v, t, f"argument {i}") for i, (v, t) in enumerate(zip(values, self.signature.params)))
        if self.signature.symbols:
            from ...abstract.bind import bind_symbols

            bind_symbols(self.signature.params, ready)
        if all(a is b for a, b in zip(ready, values)):
            raise TypeError_("the arguments do not fit the compiled program")
        return self.call(*ready) if out is None else self.into(out, *ready)

    def deeper(self, number: int, frame: int, address: int) -> None:
        """Continue a recursive function on a larger C stack."""
        ints = Slots(address, self.signature.state_slots).ints
        slot = self.signature.frames[2]
        before = ints[slot]

        def run() -> None:
            ints[slot] = stack_limit()
            self.again[number](address, frame)

        try:
            continue_deeper(run, lambda: self.stopped.add(address))
        finally:
            self.stopped.discard(address)
            ints[slot] = before

    def hear(self, address: int) -> None:
        """Signals are handled as soon as Python code runs; this is some. On other threads, hear of it here."""
        if address in self.stopped:
            raise KeyboardInterrupt

    def print_site(self, number: int, address: int) -> None:
        """Write the line of a print."""
        slots = Slots(address, self.signature.state_slots)
        site = self.signature.sites[number]
        operands = [decode(slots) for decode in site.decode]
        print(format_parts(site.node.attrs["parts"], operands), end=site.node.attrs["end"])


def _ready(value: Any, t: Type, where: str) -> Any:
    """A value with its arrays contiguous, aligned and of canonical dtype; unchanged where it already is."""
    if isinstance(t, Struct):
        old = [part(value, t, i) for i in range(len(t.elems))]
        new = [_ready(v, e, where) for v, e in zip(old, t.elems)]
        return value if all(a is b for a, b in zip(old, new)) else rebuild(t, new)
    if isinstance(t, Ref):
        for name, array, e in zip(t.names, value.arrays, t.elems):
            fits = isinstance(array, np.ndarray) and array.dtype == numpy_dtype(e.dtype) and array.flags.carray
            if not fits or not _shape_fits(array.shape, e.shape):
                raise TypeError_(f"{name} must be a contiguous array of {e} to be updated in place")
        return value
    if not isinstance(t, Array):
        return value
    want = layout.descr(t.dtype)
    array = np.asarray(value)
    if array.dtype.newbyteorder("=") != want:
        raise TypeError_(f"{where} is an array of {array.dtype}, and the program was compiled for {t}")
    if not _shape_fits(array.shape, t.shape):
        raise ShapeError(f"{where} has shape {array.shape}, and the program was compiled for {t}")
    if type(value) is np.ndarray and value.dtype is want and value.flags.c_contiguous and value.flags.aligned:
        return value
    array = np.array(array, dtype=want, order="C", copy=True, subok=False)
    return array if array.dtype is want else array.view(want)


def _shape_fits(shape: tuple[int, ...], declared: tuple[DimLike, ...]) -> bool:
    return len(shape) == len(declared) and all(isinstance(d, Dim) or d == n for n, d in zip(shape, declared))


class _Writer:
    """Writes the source of a caller."""

    def __init__(self, entry: Entry, into: bool):
        self.entry, self.into = entry, into
        self.signature = entry.signature
        self.names: dict[str, Any] = {
            "main": entry.main, "pop": entry.free.pop, "push": entry.free.append, "area": entry.area, "fail": entry.fail,
            "empty": np.empty, "rebuild": rebuild, "asarray": np.asarray, "address": lambda a: a.ctypes.data,
        }  # fmt: skip
        self.lines: list[str] = []
        self.args: list[str] = []
        self.sizes: dict[str, str] = {}

    def constant(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def function(self) -> Callable:
        """The caller."""
        signature = self.signature
        params = [f"a{i}" for i in range(len(signature.params))]
        for name, t in zip(params, signature.params):
            self.leaf(name, t)
        for symbol in signature.symbols:
            if symbol not in self.sizes:
                raise LoweringError(f"nothing tells the size '{symbol}': give the program an argument that has it as a dimension")
            self.args.append(self.sizes[symbol])
        every = f"({''.join(p + ', ' for p in params)})"
        outs = self.allocate(signature.output)
        area = "None"
        if signature.state_slots:
            area = "ws"
            self.args.append("ws[0]")
            need = self.expression(signature.arena)
            self.lines += ["try:", "    ws = pop()", "except IndexError:", f"    ws = area({need})"]
            if isinstance(signature.arena, Dim):
                self.lines += [f"if ws[3] < {need}:", f"    ws = area({need})"]
        if signature.frames is not None:
            self.names["stack_limit"] = stack_limit
            self.lines.append(f"ws[2][{signature.frames[2]}] = stack_limit()")
        direct = "return" in signature.results
        self.lines.append(f"r = main({', '.join(self.args + outs)})")
        if signature.state_slots:
            self.lines += ["if r is not None:", f"    return fail(r, {area}, {every}, {'out' if self.into else 'None'})"]
        result = self.result(signature.output, iter(signature.results), "r" if direct else "")
        if signature.state_slots:
            self.lines += [f"result = {result}", "push(ws)", "return result"]
        else:
            self.lines.append(f"return {result}")
        head = f"def call({', '.join((['out'] if self.into else []) + params)}):"
        source = "\n".join([head, *("    " + line for line in self.lines)]) + "\n"
        exec(compile(source, "<myia_relay native call>", "exec"), self.names)
        self.names["call"].source = source
        return self.names["call"]

    def expression(self, dim: DimLike) -> str:
        """A dimension as Python source."""
        if not isinstance(dim, Dim):
            return str(dim)
        return str(evaluate(dim, lambda name: _Text(self.sizes[name])))

    def leaf(self, text: str, t: Type) -> None:
        """Arguments of `main` for one parameter (or part of one), given the expression that gets at it."""
        if isinstance(t, Struct):
            for i, e in enumerate(t.elems):
                self.leaf(_part(text, t, i), e)
        elif isinstance(t, Scalar):
            if t.weak and t.dtype in ("float64", "int64"):
                self.args.append(text)
            elif t.dtype.startswith(("float", "bfloat")):
                self.args.append(f"float({text})")
            elif t.dtype == "uint64":
                self.args.append(f"(int({text}) ^ {1 << 63}) - {1 << 63}")
            else:
                self.args.append(f"int({text})")
        elif isinstance(t, Array):
            self.array(text, t)
        elif isinstance(t, Ref):
            name = f"r{len(self.lines)}"
            self.lines.append(f"{name} = {text}.arrays")
            for i, e in enumerate(t.elems):
                self.array(f"{name}[{i}]", e)
        elif not isinstance(t, NoneT | Str | Undefined):
            raise LoweringError(f"a native program cannot take an argument of type {t}")

    def array(self, text: str, t: Array) -> None:
        for axis, d in enumerate(t.shape):
            if isinstance(d, Dim) and len(d.terms) == 1 and list(d.terms.values()) == [1]:
                (monomial,) = d.terms
                if len(monomial) == 1 and monomial[0] not in d.atoms and monomial[0] not in self.sizes:
                    name = f"n{len(self.sizes)}"
                    self.sizes[monomial[0]] = name
                    self.lines.append(f"{name} = {text}.shape[{axis}]")
        if self.signature.by_object:
            self.args.append(f"id({text})")
        else:
            ready = self.constant(lambda a, t=t: _ready(a, t, "an argument"))
            name = f"c{len(self.lines)}"
            self.lines.append(f"{name} = {ready}({text})")
            self.args.append(f"address({name})")

    def allocate(self, t: Type) -> list[str]:
        """Allocate the arrays of the result; returns the arguments that pass them."""
        from .control import leaves

        out: list[str] = []
        if self.into:
            targets = self.constant(lambda tree, values: _targets(tree, self.signature, values))
            self.lines.append(f"outs, late = {targets}(out, ({''.join(f'a{i}, ' for i in range(len(self.signature.params)))}))")
        for leaf, kind in zip(leaves(t), self.signature.results):
            if kind[0] != "array":
                continue
            name = f"o{kind[1]}"
            if self.into:
                self.lines.append(f"{name} = outs[{kind[1]}]")
            else:
                shape = ", ".join(self.expression(d) for d in leaf.shape)
                static = self.constant(leaf.shape) if all(isinstance(d, int) for d in leaf.shape) else f"({shape},)"
                self.lines.append(f"{name} = empty({static}, {self.constant(numpy_dtype(leaf.dtype))})")
            out.append(f"id({name})" if self.signature.by_object else f"address({name})")
        return out

    def result(self, t: Type, results: Any, returned: str) -> str:
        """The expression of the result."""
        if self.into:
            finish = self.constant(_Finish(t, self.signature))
            area = "ws" if self.signature.state_slots else "None"
            return f"{finish}(out, outs, late, r, {area})"
        return self.tree(t, results, returned)

    def tree(self, t: Type, results: Any, returned: str) -> str:
        if isinstance(t, Struct):
            parts = [self.tree(e, results, returned) for e in t.elems]
            if t.kind == "list":
                return f"[{', '.join(parts)}]"
            if t.kind == "dict":
                return "{" + ", ".join(f"{k!r}: {p}" for k, p in zip(t.fields, parts)) + "}"
            inner = f"({''.join(p + ', ' for p in parts)})"
            return f"rebuild({self.constant(t)}, {inner})" if t.kind == "record" else inner
        kind = next(results)
        if kind == "none":
            return "None"
        if kind[0] == "array":
            return f"o{kind[1]}"
        return self.number(t, returned if kind == "return" else None, kind[1] if kind != "return" else 0)

    def number(self, t: Type, returned: str | None, slot: int) -> str:
        if t.dtype.startswith(("float", "bfloat")):
            text = returned or f"ws[1][{slot}]"
        else:
            text = returned or f"ws[2][{slot}]"
            if t.dtype == "bool":
                text = f"({text} != 0)"
            elif t.dtype == "uint64":
                text = f"({text} & {_MASK})"
        if isinstance(t, Array):
            return f"asarray({text}, {self.constant(numpy_dtype(t.dtype))})"
        return text if t.weak else f"{self.constant(numpy_dtype(t.dtype).type)}({text})"


class _Text(str):
    """Python source that grows by arithmetic, for `dims.evaluate`."""

    def _op(op, swap=False):
        return lambda self, other: _Text(f"({other} {op} {self})" if swap else f"({self} {op} {other})")

    __add__, __radd__ = _op("+"), _op("+", True)
    __mul__, __rmul__ = _op("*"), _op("*", True)
    __floordiv__, __rfloordiv__ = _op("//"), _op("//", True)


def _part(text: str, t: Struct, i: int) -> str:
    if t.kind == "dict":
        return f"{text}[{t.fields[i]!r}]"
    if t.kind == "record" and not (isinstance(t.cls, type) and issubclass(t.cls, tuple)):
        return f"{text}.{t.fields[i]}"
    return f"{text}[{i}]"


# --- into -------------------------------------------------------------------------------------------------------------


def _array_leaves(value: Any, t: Type) -> list[Any]:
    if isinstance(t, Struct):
        return [leaf for i, e in enumerate(t.elems) for leaf in _array_leaves(part(value, t, i), e)]
    return [] if isinstance(t, NoneT) else [value]


def _held(values: Any, types: Any) -> list[np.ndarray]:
    """All arrays that arguments consist of."""
    out = []
    for v, t in zip(values, types):
        if isinstance(t, Struct):
            out += _held([part(v, t, i) for i in range(len(t.elems))], t.elems)
        elif isinstance(t, Ref):
            out += list(v.arrays)
        elif isinstance(t, Array):
            out.append(np.asarray(v))
    return out


def _targets(tree: Any, signature: Signature, values: tuple) -> tuple[list, list]:
    """The arrays that results go to, and copies to make afterwards (target, temporary): where a target overlaps an argument."""
    from ...abstract.types import leaves

    given = _array_leaves(tree, signature.output)
    types = [t for t in leaves(signature.output) if not isinstance(t, NoneT)]
    kinds = [k for k in signature.results if k != "none"]
    sources = _held(values, signature.params)
    outs: list[Any] = []
    late: list[Any] = []
    for target, t, kind in zip(given, types, kinds):
        if not isinstance(target, np.ndarray) or target.dtype != numpy_dtype(t.dtype):
            raise TypeError_(f"into needs an array of {t} for each result")
        if not _shape_fits(target.shape, t.shape):
            raise ShapeError(f"into is given an array of shape {target.shape} for a result of type {t}")
        if not target.flags.writeable:
            raise ValueError("into is given a read-only array")
        if kind[0] == "array":
            direct = target.flags.carray and type(target) is np.ndarray and target.dtype.isnative
            overlaps = any(np.may_share_memory(target, s) for s in (*sources, *outs))
            if direct and not overlaps:
                outs.append(target)
            else:
                outs.append(np.empty(target.shape, numpy_dtype(t.dtype)))
                late.append((target, outs[-1]))
    return outs, late


class _Finish:
    """What `into` does after the call."""

    def __init__(self, t: Type, signature: Signature):
        self.type, self.signature = t, signature

    def __call__(self, out: Any, outs: list, late: list, returned: Any, area: tuple | None) -> Any:
        from ...abstract.types import leaves

        for target, source in late:
            target[...] = source
        targets = iter(_array_leaves(out, self.type))
        for t, kind in zip(leaves(self.type), self.signature.results):
            if kind == "none":
                continue
            target = next(targets)
            if kind == "return":
                target[...] = returned
            elif kind[0] == "slot":
                target[...] = Slots(area[0], self.signature.state_slots).scalar(kind[1], t)
        return out


# --- callbacks --------------------------------------------------------------------------------------------------------


def _guarded(program: int, address: int, action: Callable) -> int:
    entry = _PROGRAMS.get(program)
    try:
        if entry is not None:
            action(entry)
    except BaseException as error:  # whatever it is, it continues in the caller of the program
        entry.waiting[address] = error
        return 1
    return 0


@tvm_ffi.register_global_func(PRINT)
def _print(program: int, address: int, site: int) -> int:
    return _guarded(program, address, lambda entry: entry.print_site(site, address))


@tvm_ffi.register_global_func(POLL)
def _poll(program: int, address: int) -> int:
    return _guarded(program, address, lambda entry: entry.hear(address))


@tvm_ffi.register_global_func(DEEPER)
def _deeper(program: int, address: int, number: int, frame: int) -> int:
    return _guarded(program, address, lambda entry: entry.deeper(number, frame, address))
