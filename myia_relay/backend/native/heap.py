"""The memory of records, and how Python's objects get into it and out.

Idea: a heap is address space, reserved once, of which only what is written becomes memory; heaps are kept for later calls. A tree
is walked once when it is passed, without recursion: objects are taken in the order in which they are found, which is the order of
their records, so a record's fields are known when it is written. An object that is found twice is one record. Results are read back
from the leaves up, as a record is newer than what it refers to; what refers to an argument's record gets that very object.

Input: objects and a `Data` type. Output: references as `records` has them, and objects again.
"""

from __future__ import annotations

import gc
import mmap
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.families import Family, Misfit, Variant, misfit
from ...abstract.types import Data, NoneT, Scalar, Struct, Type, numpy_dtype
from ...prims.structure import rebuild
from ...utils.errors import OverflowError_
from .records import END, LIMIT, TOP, alignment, layout, nbytes

LEAST = 64 << 20  # bytes of a heap that stay memory between calls
MOST = 1 << 38
_CODES = {"float64": "d", "float32": "f", "float16": "e", "bool": "?", "int64": "q", "uint64": "Q", "int32": "i", "uint32": "I"}
_CODES |= {"int16": "h", "uint16": "H", "int8": "b", "uint8": "B"}
_WIDTHS = {"d": 8, "f": 4, "e": 2, "?": 1, "q": 8, "Q": 8, "i": 4, "I": 4, "h": 2, "H": 2, "b": 1, "B": 1}


def _space() -> int:
    """How much address space a heap takes: most of what there is of memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 1 << 32
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                memory = min(memory, int(file.read()))
        except (OSError, ValueError):
            continue
    return max(1 << 28, min(MOST, memory // 4 * 3)) & -(1 << 21)


def _reserve() -> mmap.mmap:
    size = _space()
    while True:
        try:
            if not hasattr(mmap, "MAP_ANONYMOUS"):
                return mmap.mmap(-1, min(size, 1 << 30))
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
            return mmap.mmap(-1, size, flags=flags)
        except (OSError, ValueError):
            size //= 2
            if size < 1 << 26:
                raise MemoryError("there is no address space for records") from None


class Heap:
    """Memory for the records of one call.

    Attributes:
        base: its first address.
        limit: its end.
        given: for each argument the address of its first record, its objects in the order of their records, and the sizes and
            alignments of these by class.
        seen: the reference of each object that has a record, by its identity.
    """

    def __init__(self) -> None:
        self.memory = _reserve()
        self.bytes = memoryview(self.memory)
        self.array = np.frombuffer(self.memory, np.uint8)
        self.base = self.array.ctypes.data
        self.limit = self.base + len(self.memory)
        self.top = self.arguments = self.base
        self.given: list[tuple[int, list, dict[type, tuple[int, int]]]] = []
        self.seen: dict[int, int] = {}

    def start(self, ints: Any, first: int) -> Heap:
        """Begin a call: nothing is in the heap.

        Args:
            ints: the slots of the call's state area.
            first: the first of the heap's.
        """
        self.ints, self.first = ints, first
        self.top = self.arguments = ints[first + TOP] = self.base + 64
        ints[first + END] = min(self.base + LEAST, self.limit)
        ints[first + LIMIT] = self.limit
        return self

    def finish(self) -> None:
        """End a call: the heap is for others."""
        if self.ints[self.first + END] == self.limit and self.limit > self.base + LEAST and hasattr(self.memory, "madvise"):
            self.memory.madvise(mmap.MADV_DONTNEED, LEAST, self.limit - self.base - LEAST)
        self.ints = None
        self.given.clear()
        self.seen = {}
        _FREE.append(self)

    def give(self, value: Any, t: Data) -> int:
        """The reference of an argument.

        Raises:
            Misfit: it does not fit the annotations of its family.
        """
        if value is None:
            if not t.nullable:
                raise Misfit("None is passed where a value of " + str(t) + " was")
            return 0
        encode = encoder(t.family)
        reference, queue, top = encode(self, value)
        self.given.append((self.top, queue, encode.sizes))
        self.top = self.arguments = self.ints[self.first + TOP] = top
        return reference

    def take(self, reference: int, t: Data) -> Any:
        """The object of a reference."""
        # None of what is made here is garbage, and the collector would look at all of it again and again.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return decode(self, reference, t.family)
        finally:
            if collecting:
                gc.enable()

    def known(self) -> dict[int, Any]:
        """The arguments' objects by the addresses of their records."""
        out = {}
        for at, queue, sizes in self.given:
            for obj in queue:
                size, unit = sizes[type(obj)]
                at = -(-at // unit) * unit
                out[at] = obj
                at += size
        return out


_FREE: list[Heap] = []


def heap() -> Heap:
    """A heap that nobody uses."""
    try:
        return _FREE.pop()
    except IndexError:
        return Heap()


# --- objects to records -----------------------------------------------------------------------------------------------


def encoder(family: Family) -> Callable:
    """`(heap, object) -> (reference, objects in the order of their records, new top)`, written for a family."""
    found = _ENCODERS.get(family)
    if found is None:
        found = _ENCODERS[family] = _Encoder(family).function()
    return found


_ENCODERS: dict[Family, Callable] = {}


class _Encoder:
    """Writes the source of an encoder."""

    def __init__(self, family: Family):
        self.families = family.reachable()
        self.names: dict[str, Any] = {"Misfit": Misfit, "misfit": misfit, "error": struct.error, "overflow": _overflow}
        for k, f in enumerate(self.families):
            # A class's size and number; a variant without leaves has no record.
            self.names[f"of{k}"] = {v.cls: (layout(f, v.number)[1], v.number) for v in f.variants}
            self.names[f"t{k}"] = Data(f)
        self.lines: list[str] = []
        self.count = 0

    def function(self) -> Callable:
        self.lines = [
            "def encode(heap, root):",
            "    top, limit, base, bytes, seen = heap.top, heap.limit, heap.base, heap.bytes, heap.seen",
            "    queue, at = [], heap.top - base",
        ]
        self.reference("    ", "root", "root_ref", Data(self.families[0]))
        self.lines += ["    for x in queue:", "        cls = type(x)"]
        word = "if"
        for f in self.families:
            for variant in f.variants:
                offsets, size = layout(f, variant.number)
                if size:
                    self.names[f"c{self.count}"] = variant.cls
                    self.lines.append(f"        {word} cls is c{self.count}:")
                    self.count += 1
                    if alignment(f) > 8:
                        self.lines.append(f"            at = at + {alignment(f) - 1} & -{alignment(f)}")
                    self.variant(variant, offsets, size)
                    word = "elif"
        self.lines += ["    return root_ref, queue, top", ""]
        exec(compile("\n".join(self.lines), "<myia_relay records>", "exec"), self.names)
        encode = self.names["encode"]
        encode.sizes = {v.cls: (layout(f, v.number)[1], alignment(f)) for f in self.families for v in f.variants}
        return encode

    def name(self, value: Any) -> str:
        self.count += 1
        self.names[f"k{self.count}"] = value
        return f"k{self.count}"

    def variant(self, variant: Variant, offsets: tuple[int, ...], size: int) -> None:
        """The branch that writes the record of an object `x` at `at`."""
        pad, words, arrays, leaf = " " * 12, [], [], 0

        def require(wrong: str, text: str, t: Type) -> None:
            self.lines.extend([f"{pad}if {wrong}:", f"{pad}    misfit(x, {text}, {self.name(t)})"])

        def walk(text: str, t: Type) -> None:
            nonlocal leaf
            if isinstance(t, Struct):
                kind = f"type({text}) is not {self.name(t.cls if t.kind == 'record' else tuple)}"
                require(kind if t.kind == "record" else f"{kind} or len({text}) != {len(t.elems)}", text, t)
                for i, e in enumerate(t.elems):
                    inner = f"v{self.name(None)}"
                    self.lines.append(f"{pad}{inner} = {text}" + (f".{t.fields[i]}" if t.kind == "record" else f"[{i}]"))
                    walk(inner, e)
                return
            offset, leaf = offsets[leaf], leaf + 1
            if isinstance(t, Data):
                self.reference(pad, text, f"{text}_ref", t)
                words.append((offset, "q", f"{text}_ref"))
            elif isinstance(t, NoneT):
                require(f"{text} is not None", text, t)
            elif isinstance(t, Scalar):
                kind = {"float64": float, "int64": int, "bool": bool}[t.dtype] if t.weak else numpy_dtype(t.dtype).type
                require(f"type({text}) is not {self.name(kind)}", text, t)
                if t.dtype == "bfloat16":
                    words.append((offset, "H", f"int({text}.view('uint16'))"))
                else:
                    words.append((offset, _CODES[t.dtype], text))
            else:
                dtype = numpy_dtype(t.dtype)
                own = self.name(dtype)
                other = f"{text}.dtype != {own} or {text}.shape != {t.shape!r}"
                require(f"type({text}) is not {self.name(np.ndarray)} or {other}", text, t)
                place = f"bytes[at + {offset}:at + {offset + nbytes(t)}]"
                arrays.append(f"{pad}{place} = {text}.astype({own}, copy=False).tobytes()")

        for name, t in zip(variant.fields, variant.types, strict=True):
            text = f"f_{name}"
            self.lines.append(f"{pad}{text} = x.{name}")
            walk(text, t)
        if words:
            code, at = "<", 0
            for offset, letter, _ in words:
                code += "x" * (offset - at) + letter
                at = offset + _WIDTHS[letter]
            pack = self.name(struct.Struct(code).pack_into)
            self.lines += [
                f"{pad}try:",
                f"{pad}    {pack}(bytes, at, {', '.join(w for _, _, w in words)})",
                f"{pad}except error:",
                f"{pad}    overflow(x)",
            ]
        self.lines += [*arrays, f"{pad}at += {size}"]

    def reference(self, pad: str, text: str, target: str, t: Data) -> None:
        """Find the reference of an object, or give it a record."""
        k, unit = self.families.index(t.family), alignment(t.family)
        lines = [
            f"key = id({text})",
            f"{target} = seen.get(key)",
            f"if {target} is None:",
            f"    size, {target} = of{k}.get(type({text})) or misfit(x if queue else None, {text}, t{k})",
            "    if size:",
            *([f"        top = top + {unit - 1} & -{unit}"] if unit > 8 else []),
            f"        {target} += top",
            f"        seen[key] = {target}",
            "        top += size",
            "        if top > limit:",
            "            raise MemoryError('a tree does not fit into memory')",
            f"        queue.append({text})",
        ]
        if t.nullable:
            lines = [f"if {text} is None:", f"    {target} = 0", "else:", *("    " + line for line in lines)]
        self.lines += [pad + line for line in lines]


def _overflow(obj: Any) -> None:
    raise OverflowError_(f"an integer in this {type(obj).__name__} does not fit into 64 bits")


# --- records to objects -----------------------------------------------------------------------------------------------


def decode(h: Heap, root: int, family: Family) -> Any:
    """The object of a reference; what it shares with others is shared again."""
    if root == 0:
        return None
    families = family.reachable()
    readers = [{v.number: _reader(f, v, families) for v in f.variants} for f in families]
    masks = [alignment(f) - 1 for f in families]
    # A key is a reference with the position of its family above the address.
    done: dict[int, Any] = {k << 56: None for k in range(len(families))}
    found: list[tuple[int, int, Any]] = []
    arguments: dict[int, Any] | None = None
    base, bytes_, stack = h.base, h.bytes, [root]
    seen = set(stack)
    while stack:
        key = stack.pop()
        where = key >> 56
        reference = key & 0xFFFFFFFFFFFFFF
        number = reference & masks[where]
        at = reference - number
        reader = readers[where][number]
        if not at:
            done[key] = reader.empty()
            continue
        if at < h.arguments:
            if arguments is None:
                arguments = h.known()
            done[key] = arguments[at]
            continue
        found.append((at, key, reader))
        for child in reader.references(bytes_, at - base):
            if child not in seen and child not in done:
                seen.add(child)
                stack.append(child)
    found.sort(key=lambda item: item[0])
    for at, key, reader in found:
        done[key] = reader.build(bytes_, at - base, done)
    return done[root]


class _Reader:
    """Reads the records of one variant.

    Attributes:
        references: `(bytes, offset) -> keys of what the record refers to`.
        build: `(bytes, offset, objects by key) -> object`.
        empty: makes the object of a variant without leaves.
    """

    def __init__(self, family: Family, variant: Variant, families: list[Family]):
        offsets, _ = layout(family, variant.number)
        places = [(o, families.index(t.family) << 56) for t, o in zip(variant.leaves, offsets) if isinstance(t, Data)]
        names: dict[str, Any] = {"new": object.__new__, "set": object.__setattr__, "cls": variant.cls, "rebuild": rebuild}
        names["word"] = struct.Struct("<q").unpack_from
        keys = [f"word(m, at + {o})[0]" + (f" | {high}" if high else "") for o, high in places]
        lines = ["def references(m, at):", f"    return ({''.join(k + ', ' for k in keys)})", ""]
        lines += ["def build(m, at, done):", "    x = new(cls)"]
        leaf = 0

        def value(t: Type) -> str:
            nonlocal leaf
            if isinstance(t, Struct):
                names[f"k{len(names)}"] = t
                struct_name = f"k{len(names) - 1}"
                return f"rebuild({struct_name}, [{', '.join(value(e) for e in t.elems)}])"
            offset, leaf = offsets[leaf], leaf + 1
            if isinstance(t, Data):
                high = families.index(t.family) << 56
                return f"done[word(m, at + {offset})[0]" + (f" | {high}]" if high else "]")
            if isinstance(t, NoneT):
                return "None"
            name = f"k{len(names)}"
            if isinstance(t, Scalar) and t.dtype != "bfloat16":
                names[name] = struct.Struct("<" + _CODES[t.dtype]).unpack_from
                text = f"{name}(m, at + {offset})[0]"
                if t.weak:
                    return text
                names[f"{name}t"] = numpy_dtype(t.dtype).type
                return f"{name}t({text})"
            names[name] = _array_reader(t)
            return f"{name}(m, at + {offset})"

        for field, t in zip(variant.fields, variant.types, strict=True):
            lines.append(f"    set(x, {field!r}, {value(t)})")
        lines += ["    return x", ""]
        exec(compile("\n".join(lines), "<myia_relay records>", "exec"), names)
        self.references, self.build = names["references"], names["build"]

    def empty(self) -> Any:
        return self.build(b"", 0, {})


def _array_reader(t: Type) -> Callable:
    dtype, shape = numpy_dtype(t.dtype), t.shape
    count = int(np.prod(shape, dtype=int))

    def read(bytes_: Any, at: int) -> Any:
        array = np.frombuffer(bytes_, dtype, count, at).reshape(shape).copy()
        return array[()] if isinstance(t, Scalar) else array

    return read


_READERS: dict[tuple[Family, int, Family], _Reader] = {}


def _reader(family: Family, variant: Variant, families: list[Family]) -> _Reader:
    key = (family, variant.number, families[0])
    found = _READERS.get(key)
    if found is None:
        found = _READERS[key] = _Reader(family, variant, families)
    return found


__all__ = ["Heap", "decode", "heap"]
