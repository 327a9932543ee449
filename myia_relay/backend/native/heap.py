"""The memory of records, and the conversion of Python objects to records and back.

Idea: a heap is address space that is reserved once, and only what is written uses memory; heaps are kept for later
calls. A tree is walked once when it is passed, without recursion: objects are visited in the order in which they are
found, which is the order of their records, so the addresses in a record's fields are known when it is written. An
object that is found twice is one record. Results are read from the leaves up, because a record is newer than what it
refers to. A reference to an argument's record gives the original object.

Input: objects and a `Data` type. Output: references in the form of `records`, and objects again.
"""

from __future__ import annotations

import gc
import mmap
import os
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.families import Misfit, misfit
from ...abstract.family import Family, Variant
from ...abstract.structures import rebuild
from ...abstract.types import Array, Data, NoneT, Scalar, Struct, Type, numpy_dtype
from ...utils.errors import OverflowError_
from .area import address_space
from .records import END, LIMIT, TOP, alignment, layout, nbytes

LEAST = 64 << 20  # bytes of a heap that stay committed between calls
MOST = 1 << 38
_CODES = {
    "float64": "d",
    "float32": "f",
    "float16": "e",
    "bool": "?",
    "int64": "q",
    "uint64": "Q",
    "int32": "i",
    "uint32": "I",
}
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
            return address_space(size)
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
        objects: the arguments' objects by the addresses of their records, when they have been asked for.
    """

    def __init__(self) -> None:
        self.memory = _reserve()
        self.bytes = memoryview(self.memory)
        self.words, self.floats = self.bytes.cast("q"), self.bytes.cast("d")
        self.array = np.frombuffer(self.memory, np.uint8)
        self.base = self.array.ctypes.data
        self.limit = self.base + len(self.memory)
        self.top = self.arguments = self.base
        self.given: list[tuple[int, list, dict[type, tuple[int, int]]]] = []
        self.ints: Any = None  # the slots of the state area of the call in progress
        self.seen: dict[int, int] = {}
        self.objects: dict[int, Any] | None = None
        self.views: dict[str, np.ndarray] = {}

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
        if (
            self.ints[self.first + END] == self.limit
            and self.limit > self.base + LEAST
            and hasattr(self.memory, "madvise")
        ):
            self.memory.madvise(mmap.MADV_DONTNEED, LEAST, self.limit - self.base - LEAST)
        self.ints = None
        self.given.clear()
        self.objects = None
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

    def view(self, dtype: str) -> np.ndarray:
        """The memory as numbers of a dtype."""
        found = self.views.get(dtype)
        if found is None:
            own = numpy_dtype(dtype)
            found = self.views[dtype] = self.array[: self.array.size // own.itemsize * own.itemsize].view(own)
        return found

    def take(self, reference: int, t: Data) -> Any:
        """The object of a reference."""
        # Nothing that is made here is garbage, but the collector would visit it all repeatedly.
        collecting = gc.isenabled()
        gc.disable()
        try:
            return decoder(t.family)(self, reference)
        finally:
            if collecting:
                gc.enable()

    def known(self) -> dict[int, Any]:
        """The arguments' objects by the addresses of their records."""
        if self.objects is not None:
            return self.objects
        self.objects = out = {}
        for at, queue, sizes in self.given:
            for obj in queue:
                size, unit = sizes[type(obj)]
                at = -(-at // unit) * unit
                out[at] = obj
                at += size
        return out


_FREE: list[Heap] = []


def heap() -> Heap:
    """A heap that is not in use."""
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
                    self.lines.append(
                        f"{pad}{inner} = {text}" + (f".{t.fields[i]}" if t.kind == "record" else f"[{i}]")
                    )
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
                assert isinstance(t, Array)
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


def decoder(family: Family) -> Callable:
    """`(heap, reference) -> object`, written for a family; what the object shares with others is shared again."""
    found = _DECODERS.get(family)
    if found is None:
        found = _DECODERS[family] = _Decoder(family).function()
    return found


_DECODERS: dict[Family, Callable] = {}
_ADDRESS = (1 << 56) - 1


class _Decoder:
    """Writes the source of a decoder: it finds what is to be read, and makes objects in the order in which the records were made.

    A key is a reference with the position of its family above the address.
    """

    def __init__(self, family: Family):
        self.families = family.reachable()
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "set": object.__setattr__,
            "rebuild": rebuild,
            "older": self.older,
        }
        self.lines: list[str] = []

    def function(self) -> Callable:
        several = len(self.families) > 1
        self.lines = [
            "def decode(heap, root):",
            "    bytes, words, floats, known = heap.bytes, heap.words, heap.floats, heap.arguments",
            "    if root < known:",
            "        return older(heap, root)",
            "    low, done, stack = heap.base >> 3, {root: None}, [root]",
            "    while stack:",
            "        key = stack.pop()",
        ]
        used = {t.dtype for f in self.families for v in f.variants for t in v.leaves if isinstance(t, Array)}
        self.lines[1:1] = [f"    {dtype}_view = heap.view({dtype!r})" for dtype in sorted(used)]
        self.by_variant(self.find)
        if several:
            self.names["address"] = _ADDRESS.__and__
            self.lines.append("    for key in sorted(done, key=address):")
            self.lines.append(f"        if key & {_ADDRESS} < known:")
        else:
            self.lines += ["    for key in sorted(done):", "        if key < known:"]
        self.lines.append("            continue")
        self.by_variant(self.build)
        self.lines += ["    return done[root]", ""]
        exec(compile("\n".join(self.lines), "<myia_relay records>", "exec"), self.names)
        return self.names["decode"]

    def older(self, heap: Heap, key: int) -> Any:
        """What was there before the call, or has no record."""
        family, reference = self.families[key >> 56], key & _ADDRESS
        number = reference & alignment(family) - 1
        if reference != number:
            return heap.known()[reference - number]
        return self.empty(family, number) if number else None

    def empty(self, family: Family, number: int) -> Any:
        """The object of a variant without leaves."""
        variant = family.variants[number - 1]
        record = object.__new__(variant.cls)
        for name, t in zip(variant.fields, variant.types, strict=True):
            object.__setattr__(record, name, _nothing(t))
        return record

    def by_variant(self, write: Callable[[str, Variant, tuple[int, ...]], None]) -> None:
        """A branch for each variant of each family, in which `at` is the number of its record's first word."""
        several, pad = len(self.families) > 1, " " * 8
        for w, f in enumerate(self.families):
            if several:
                self.lines.append(f"{pad}{'el' if w else ''}if key >> 56 == {w}:")
            inner, address = pad + "    " * several, f"(key & {_ADDRESS})" if several else "key"
            self.lines += [f"{inner}number = key & {alignment(f) - 1}", f"{inner}at = ({address} - number >> 3) - low"]
            for n, variant in enumerate(f.variants):
                self.lines.append(f"{inner}{'el' if n else ''}if number == {variant.number}:")
                write(inner + "    ", variant, layout(f, variant.number)[0])

    def key(self, t: Data, offset: int) -> str:
        high = self.families.index(t.family) << 56
        return f"words[at + {offset >> 3}]" + (f" | {high}" if high else "")

    def find(self, pad: str, variant: Variant, offsets: tuple[int, ...]) -> None:
        """Note what a record refers to."""
        self.lines.append(f"{pad}pass")
        for t, offset in zip(variant.leaves, offsets, strict=True):
            if isinstance(t, Data):
                self.lines += [
                    f"{pad}child = {self.key(t, offset)}",
                    f"{pad}if child not in done:",
                    f"{pad}    done[child] = None",
                    f"{pad}    if child{f' & {_ADDRESS}' if len(self.families) > 1 else ''} >= known:",
                    f"{pad}        stack.append(child)",
                    f"{pad}    else:",
                    f"{pad}        done[child] = older(heap, child)",
                ]

    def build(self, pad: str, variant: Variant, offsets: tuple[int, ...]) -> None:
        """Make the object of a record."""
        leaf = 0

        def name(value: Any) -> str:
            self.names[f"k{len(self.names)}"] = value
            return f"k{len(self.names) - 1}"

        def value(t: Type) -> str:
            nonlocal leaf
            if isinstance(t, Struct):
                return f"rebuild({name(t)}, [{', '.join(value(e) for e in t.elems)}])"
            offset, leaf = offsets[leaf], leaf + 1
            if isinstance(t, Data):
                return f"done[{self.key(t, offset)}]"
            if isinstance(t, NoneT):
                return "None"
            if isinstance(t, Scalar) and t.weak and t.dtype in ("float64", "int64"):
                return f"{'floats' if t.dtype == 'float64' else 'words'}[at + {offset >> 3}]"
            place = f"(bytes, (at << 3) + {offset})"
            if isinstance(t, Scalar) and t.dtype != "bfloat16":
                text = f"{name(struct.Struct('<' + _CODES[t.dtype]).unpack_from)}{place}[0]"
                return text if t.weak else f"{name(numpy_dtype(t.dtype).type)}({text})"
            if isinstance(t, Scalar):
                return name(_read_bfloat16) + place
            assert isinstance(t, Array)
            size = numpy_dtype(t.dtype).itemsize
            first = f"(at << 3) // {size} + {offset // size}"
            text = f"{t.dtype}_view[{first}:{first} + {nbytes(t) // size}].copy()"
            return text if len(t.shape) == 1 else f"{text}.reshape({t.shape!r})"

        self.lines.append(f"{pad}done[key] = x = new({name(variant.cls)})")
        for field, t in zip(variant.fields, variant.types, strict=True):
            self.lines.append(f"{pad}set(x, {field!r}, {value(t)})")


def _nothing(t: Type) -> Any:
    """The value of a type without leaves that are kept."""
    return rebuild(t, [_nothing(e) for e in t.elems]) if isinstance(t, Struct) else None


def _read_bfloat16(bytes_: Any, at: int) -> Any:
    return np.frombuffer(bytes_, numpy_dtype("bfloat16"), 1, at).copy()[0]


__all__ = ["Heap", "decoder", "heap"]
