"""A small linker: turns the relocatable files that LLVM writes into a shared object.

Idea: a compiled program is one object or a few, so linking is hardly a search for symbols, only layout. Sections are grouped by
the protection of their memory (read, execute, write), relocations are resolved, and symbols of other libraries go
through a global offset table that the system's loader fills. The result can be opened by `dlopen`, linked into C
programs, and inspected with standard tools. It needs no C compiler, which machines that run programs often lack.

Input: ELF relocatable objects, position independent, of a processor that `processors.py` knows. Output: an ELF shared object,
with a payload of ours in a section that is not loaded, and a checksum at the end of the file.

Source: System V Application Binary Interface.
"""

from __future__ import annotations

import hashlib
import platform
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from .processors import ADDRESS, CALL, ENTRY, NOTHING, PROCESSORS, LinkError, Processor

SECTION = ".myia_relay"  # of the payload
DIGEST = 32  # bytes of the checksum

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_PROGBITS, _SYMTAB, _STRTAB, _RELASEC, _HASH, _DYNAMIC, _NOBITS, _RELSEC, _DYNSYM = 1, 2, 3, 4, 5, 6, 8, 9, 11
_WRITE, _ALLOC, _EXEC, _TLS = 1, 2, 4, 0x400
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1


class _FileFormat:
    """The records of a file, of 64 or 32 bits; both have the same fields, in the order of the former."""

    def __init__(self, wide: bool):
        self.wide = wide
        self.header = _HEADER if wide else struct.Struct("<16sHHIIIIIHHHHHH")
        self.section = _SECTION if wide else struct.Struct("<10I")
        self._segment = struct.Struct("<IIQQQQQQ" if wide else "<8I")
        self._symbol = struct.Struct("<IBBHQQ" if wide else "<IIIBBH")
        self.symbol_size, self.segment_size = self._symbol.size, self._segment.size
        self.dynamic = struct.Struct("<QQ" if wide else "<II")
        self.rela = struct.Struct("<QQq" if wide else "<II")  # without an addend in 32 bits: it is in the place
        self.shift = 32 if wide else 8  # of a symbol's number in a relocation

    def symbol(self, data: bytes, at: int) -> tuple[int, int, int, int, int, int]:
        """Name, info, other, section, value, size."""
        f = self._symbol.unpack_from(data, at)
        return f if self.wide else (f[0], f[3], f[4], f[5], f[1], f[2])

    def put_symbol(self, data: bytearray, at: int, name: int, info: int, section: int, value: int, size: int) -> None:
        fields = (name, info, 0, section, value, size) if self.wide else (name, value, size, info, 0, section)
        self._symbol.pack_into(data, at, *fields)

    def put_segment(self, data: bytearray, k: int, type_: int, flags: int, *rest: int) -> None:
        fields = (type_, flags, *rest) if self.wide else (type_, *rest[:-1], flags, rest[-1])
        self._segment.pack_into(data, self.header.size + k * self.segment_size, *fields)


_FORMATS = {wide: _FileFormat(wide) for wide in (True, False)}


# Functions of the C library that have several versions. The loader binds a name without a version to the oldest one, so
# `__got_NAME` is exported, and the code that loads the file stores the default version there.
VERSIONED = tuple(f + kind for f in ("exp", "exp2", "exp10", "log", "log2", "pow", "fmod") for kind in ("", "f"))
# Memory passes from code to Python and back, so both must use one allocator. A library in front of the C library
# (glibc's libc_malloc_debug) may offer a version that the loader binds and `dlsym` does not find: these too are stored
# when the file is loaded.
ALLOCATOR = ("malloc", "realloc", "free")


@dataclass
class _Section:
    name: str
    type: int
    flags: int
    data: bytearray
    size: int
    align: int
    address: int = 0
    relocations: list[tuple[int, int, int, int]] = field(default_factory=list)  # offset, type, symbol, addend


@dataclass
class _Symbol:
    name: str
    info: int
    section: int
    value: int
    size: int


def _processor(data: bytes) -> tuple[Processor, int]:
    """The processor of a relocatable object, and the flags that it has for it.

    Raises:
        LinkError: it is no relocatable object, or the processor is not known.
    """
    if len(data) < 64 or data[:4] != b"\x7fELF" or data[5] != 1:
        raise LinkError("not a little-endian ELF object")
    kind, number = struct.unpack_from("<HH", data, 16)
    processor = PROCESSORS.get(number)
    if kind != 1 or processor is None or processor.wide != (data[4] == 2):
        raise LinkError(f"not a relocatable object of {', '.join(p.name for p in PROCESSORS.values())}")
    return processor, struct.unpack_from("<I", data, 48 if processor.wide else 36)[0]


def _read(data: bytes, processor: Processor) -> tuple[list[_Section], list[_Symbol]]:
    """The sections and symbols of a relocatable object.

    Raises:
        LinkError: it is none of this processor.
    """
    if _processor(data)[0] is not processor:
        raise LinkError("objects of two processors")
    form = _FORMATS[processor.wide]
    fields = form.header.unpack_from(data)
    start, count, names = fields[6], fields[12], fields[13]
    headers = [form.section.unpack_from(data, start + i * form.section.size) for i in range(count)]

    def text(table: int, at: int) -> str:
        begin = headers[table][4] + at
        return data[begin : data.index(b"\0", begin)].decode()

    sections, symbols = [], []
    for name, type_, flags, _, offset, size, _link, _info, align, _ in headers:
        body = bytearray() if type_ == _NOBITS else bytearray(data[offset : offset + size])
        title = text(names, name)
        if title.startswith((".ARM.exidx", ".ARM.extab")):  # for unwinding, which nobody does through this code
            flags = 0
        sections.append(_Section(title, type_, flags, body, size, max(1, align)))
    for _name, type_, _, _, offset, size, link, target, _, _ in headers:
        if type_ == _SYMTAB:
            for at in range(offset, offset + size, form.symbol_size):
                name, info, _, section, value, length = form.symbol(data, at)
                symbols.append(_Symbol(text(link, name), info, section, value, length))
        elif type_ in (_RELASEC, _RELSEC) and sections[target].flags & _ALLOC:
            body = sections[target]
            for at in range(offset, offset + size, form.rela.size):
                place, info, *rest = form.rela.unpack_from(data, at)
                kind = info & (1 << form.shift) - 1
                addend = rest[0] if rest else processor.addend(body.data, place, kind)
                body.relocations.append((place, kind, info >> form.shift, addend))
    return sections, symbols


def _hash(name: str) -> int:
    """The System V hash of a symbol's name."""
    h = 0
    for c in name.encode():
        h = (h << 4) + c
        h = (h ^ (h & 0xF0000000) >> 24) & 0x0FFFFFFF
    return h


class _Strings:
    """A string table."""

    def __init__(self) -> None:
        self.data = bytearray(1)
        self.known: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = len(self.data)
            self.data += text.encode() + b"\0"
        return self.known[text]


def _up(n: int, align: int) -> int:
    return -(-n // align) * align


def link(
    objects: Sequence[bytes],
    payload: bytes = b"",
    *,
    slots: Iterable[str] = (),
    exported: tuple[str, ...] = ("",),
    glibc: bool | None = None,
) -> bytes:
    """Make a shared object of relocatable ones.

    Args:
        objects: the relocatable objects. Of several definitions of a name the first one holds.
        payload: what else the file is to carry; see `payload_of`.
        slots: functions that are not looked up when the code is loaded: each is called through a variable `__name` of the
            shared object, which whoever loads it has to set.
        exported: beginnings of the names of symbols that others see.
        glibc: whether the C library of the machine is glibc; None: of this one.

    Returns:
        The shared object's bytes.

    Raises:
        LinkError: there is something in an object that this linker does not know.
    """
    if not objects:
        raise LinkError("nothing to link")
    if glibc is None:
        glibc = platform.libc_ver()[0] == "glibc"
    processor, flags = _processor(objects[0])
    sections, symbols = _joined([_read(data, processor) for data in objects])
    return _Linker(processor, flags, sections, symbols, tuple(slots), exported, glibc).run(payload)


def _joined(objects: list[tuple[list[_Section], list[_Symbol]]]) -> tuple[list[_Section], list[_Symbol]]:
    """Objects as one: their sections behind each other, and one symbol for each name that they share."""
    sections, symbols = objects[0]
    known = {s.name: k for k, s in enumerate(symbols) if s.info >> 4 and s.name}
    frames = next((s for s in sections if s.name == ".eh_frame"), None)
    for more, others in objects[1:]:
        places = {k: (k + len(sections), 0) for k in range(len(more))}
        for k, section in enumerate(more):
            if frames is not None and section.name == frames.name:  # unwinders know one table of frames
                places[k] = sections.index(frames), frames.size
        numbers: list[int] = []
        for symbol in others:
            if 0 < symbol.section < 0xFF00:
                home, offset = places[symbol.section]
                symbol = replace(symbol, section=home, value=symbol.value + offset)
            number = known.get(symbol.name) if symbol.info >> 4 else None
            if number is None:
                number = len(symbols)
                symbols.append(symbol)
                if symbol.info >> 4 and symbol.name:
                    known[symbol.name] = number
            elif symbols[number].section == _UNDEFINED:
                symbols[number] = symbol
            numbers.append(number)
        for k, section in enumerate(more):
            section.relocations = [(at, kind, numbers[n], add) for at, kind, n, add in section.relocations]
            if frames is not None and places[k][0] != k + len(sections):
                offset = frames.size
                frames.relocations += [(at + offset, kind, n, add) for at, kind, n, add in section.relocations]
                frames.data += section.data
                frames.size += section.size
                more[k] = replace(section, name="", size=0, flags=0, relocations=[])
        sections += more
    return sections, symbols


class _Linker:
    """The linking of what was joined: layout, then relocation, then writing."""

    def __init__(
        self,
        processor: Processor,
        flags: int,
        sections: list[_Section],
        symbols: list[_Symbol],
        slots: tuple[str, ...],
        exported: tuple[str, ...],
        glibc: bool,
    ):
        self.processor, self.flags, self.form = processor, flags, _FORMATS[processor.wide]
        self.sections, self.symbols, self.slots, self.glibc = sections, symbols, slots, glibc
        self.kept = [s for s in sections if s.flags & _ALLOC and s.size]
        if any(s.flags & _TLS for s in self.kept):
            raise LinkError("thread-local data is not supported")
        self.exports = [
            s
            for s in symbols
            if s.info >> 4 and s.section not in (_UNDEFINED, _ABSOLUTE) and s.name.startswith(exported)
        ]
        if any(s.section >= 0xFF00 for s in self.exports):
            raise LinkError("common symbols are not supported")
        self.got: dict[int, int] = {}  # symbol -> slot of the global offset table
        self.plt: dict[int, int] = {}  # symbol -> stub
        self.dynamic: list[tuple[int, int, int, int]] = []  # relocations for the loader: place, type, symbol, addend
        self._needs()

    def _is_import(self, number: int) -> bool:
        return self.symbols[number].section == _UNDEFINED and number != 0

    def _needs(self) -> None:
        """Find out which symbols need places in the tables.

        Raises:
            LinkError: there is a relocation of an unknown type.
        """
        kinds = self.processor.kinds
        self.pointers = set()  # sections that the loader must write addresses into
        for section in self.kept:
            for _, type_, number, _ in section.relocations:
                kind = kinds.get(type_)
                if kind is ENTRY:
                    self.got.setdefault(number, len(self.got))
                elif kind is CALL:
                    if self._is_import(number):
                        self.got.setdefault(number, len(self.got))
                        self.plt.setdefault(number, len(self.plt))
                elif kind is ADDRESS:
                    self.pointers.add(id(section))
                elif kind is None:
                    raise LinkError(f"relocation type {type_} in {section.name} is not supported")
        imports = {
            n for s in self.kept for _, t, n, _ in s.relocations if self._is_import(n) and kinds[t] is not NOTHING
        }
        self.imports = sorted(n for n in imports if self.symbols[n].name not in self.slots)

    # Layout.

    def run(self, payload: bytes) -> bytes:
        """Everything."""
        self._tables()
        self._place()
        for section in self.kept:
            for relocation in section.relocations:
                self._relocate(section, *relocation)
        return self._write(payload)

    def _tables(self) -> None:
        """The sections that are made here, of their final sizes."""

        wide, form = self.processor.pointer, self.form

        def made(name: str, type_: int, flags: int, size: int, align: int = 8) -> _Section:
            return _Section(name, type_, flags, bytearray(size), size, align)

        self.strings = _Strings()
        names = [self.symbols[n].name for n in self.imports]
        names += [s.name for s in self.exports] + [name for n in self.got if (name := self._variable(n))]
        self.needed = [self.strings.add(n) for n in (self.processor.libraries if self.glibc else ())]
        for name in names:
            self.strings.add(name)
        count = 1 + len(names)
        pointers = sum(t == self.processor.address for s in self.kept for _, t, _, _ in s.relocations)
        frames = [s for s in self.kept if s.name == ".eh_frame"]
        self.hash = made(".hash", _HASH, _ALLOC, 4 * (2 + 2 * count))
        self.dynsym = made(".dynsym", _DYNSYM, _ALLOC, form.symbol_size * count)
        self.dynstr = made(".dynstr", _STRTAB, _ALLOC, len(self.strings.data), 1)
        entries = sum(not self._is_slot(n) for n in self.got)
        explicit = self.processor.explicit
        self.rela = made(
            ".rela.dyn" if explicit else ".rel.dyn",
            _RELASEC if explicit else _RELSEC,
            _ALLOC,
            form.rela.size * (pointers + entries),
        )
        self.unwind = made(".eh_frame_hdr", _PROGBITS, _ALLOC, 8 if frames else 0, 4)
        self.stubs = made(".plt", _PROGBITS, _ALLOC | _EXEC, self.processor.stub_size * len(self.plt))
        self.table = made(".got", _PROGBITS, _ALLOC | _WRITE, wide * len(self.got))
        self.dyn = made(".dynamic", _DYNAMIC, _ALLOC | _WRITE, 2 * wide * (len(self.needed) + 9))
        self.frames = frames[0] if frames else None

    def _is_slot(self, number: int) -> bool:
        return self._is_import(number) and self.symbols[number].name in self.slots

    def _variable(self, number: int) -> str | None:
        """The name under which the loading code finds an entry of the table."""
        if self._is_slot(number):
            return f"__{self.symbols[number].name}"
        chosen = self._is_import(number) and self.symbols[number].name in (*VERSIONED, *ALLOCATOR)
        return f"__got_{self.symbols[number].name}" if chosen else None

    def _place(self) -> None:
        """Addresses, which are offsets in the file too.

        Raises:
            LinkError: a section is both executable and writable.
        """
        write = [s for s in self.kept if s.flags & _WRITE or id(s) in self.pointers]
        run = [s for s in self.kept if s.flags & _EXEC]
        read = [s for s in self.kept if not s.flags & _EXEC and s not in write]
        if any(s in run for s in write):
            raise LinkError("code that is written to is not supported")
        groups = [
            (4, [self.hash, self.dynsym, self.dynstr, self.rela, self.unwind, *read]),
            (5, [*run, self.stubs]),
            (6, [self.dyn, self.table, *sorted(write, key=lambda s: s.type == _NOBITS)]),
        ]
        self.segments = []
        address = self.form.header.size + 6 * self.form.segment_size
        for flags, group in groups:
            begin = _up(address, self.processor.page) if flags != 4 else 0
            address = begin if flags != 4 else address
            filled = address
            for section in group:
                section.address = address = _up(address, section.align)
                address += section.size
                if section.type != _NOBITS:
                    filled = address
            self.segments.append((flags, begin, filled, address))
        self.placed = [s for _, group in groups for s in group if s.size]

    # Relocation.

    def _address(self, number: int) -> int:
        """The address of a symbol that the object defines.

        Raises:
            LinkError: the symbol is in no section that is loaded.
        """
        symbol = self.symbols[number]
        if symbol.section == _ABSOLUTE or symbol.section >= len(self.sections):
            raise LinkError(f"the symbol {symbol.name!r} has no section")
        section = self.sections[symbol.section]
        if section not in self.kept and section.size:
            raise LinkError(f"the symbol {symbol.name!r} is in {section.name}, which is not loaded")
        return section.address + symbol.value

    def _relocate(self, section: _Section, offset: int, type_: int, number: int, addend: int) -> None:
        p, place = self.processor, section.address + offset
        kind = p.kinds[type_]
        if kind is NOTHING:
            return
        if kind is ADDRESS:
            if self._is_import(number):
                self.dynamic.append((place, p.address, number, addend))
            else:
                target = self._address(number) + addend
                self.dynamic.append((place, p.relative, 0, target))
                if not p.explicit:
                    struct.pack_into("<I", section.data, offset, target)
            return
        if kind is ENTRY:
            target = self.table.address + p.pointer * self.got[number]
        elif number in self.plt:
            target = self.stubs.address + p.stub_size * self.plt[number]
        elif self._is_import(number):
            raise LinkError(f"a distance to {self.symbols[number].name!r}, which is elsewhere")
        else:
            target = self._address(number)
        p.write(section.data, offset, type_, target + addend, place)

    # Writing.

    def _symbols(self) -> None:
        """The symbol table that others see, its hash table, and the tables' relocations."""
        rows = [(self.symbols[n].name, self.symbols[n].info, 0, 0, 0) for n in self.imports]
        number = {n: k + 1 for k, n in enumerate(self.imports)}
        numbers = {id(s): k + 1 for k, s in enumerate(self.placed)}
        for s in self.exports:
            home = self.sections[s.section]
            rows.append((s.name, s.info, numbers[id(home)], home.address + s.value, s.size))
        for n, slot in self.got.items():
            wide = self.processor.pointer
            at = self.table.address + wide * slot
            if variable := self._variable(n):
                rows.append((variable, 0x11, numbers[id(self.table)], at, wide))
            if self._is_slot(n):
                continue
            if self._is_import(n):
                self.dynamic.append((at, self.processor.entry, n, 0))
            else:
                self.dynamic.append((at, self.processor.relative, 0, self._address(n)))
                if not self.processor.explicit:
                    struct.pack_into("<I", self.table.data, at - self.table.address, self._address(n))
        count = 1 + len(rows)
        buckets, chains = [0] * count, [0] * count
        for k, (name, info, section, value, size) in enumerate(rows, 1):
            at = k * self.form.symbol_size
            self.form.put_symbol(self.dynsym.data, at, self.strings.known[name], info, section, value, size)
            bucket = _hash(name) % count
            buckets[bucket], chains[k] = k, buckets[bucket]
        struct.pack_into(f"<{2 + 2 * count}I", self.hash.data, 0, count, count, *buckets, *chains)
        self.dynstr.data[:] = self.strings.data
        for k, (place, type_, n, addend) in enumerate(self.dynamic):
            fields = (place, number.get(n, 0) << self.form.shift | type_, addend)
            rela = self.form.rela
            rela.pack_into(self.rela.data, k * rela.size, *fields[: 3 if self.processor.explicit else 2])

    def _write(self, payload: bytes) -> bytes:
        self._symbols()
        p, form = self.processor, self.form
        for n, k in self.plt.items():
            entry = self.table.address + p.pointer * self.got[n]
            begin = p.stub_size * k
            self.stubs.data[begin : begin + p.stub_size] = p.stub(self.stubs.address + begin, entry)
        if self.frames is not None:  # without a table: the unwinder searches
            struct.pack_into(
                "<4Bi", self.unwind.data, 0, 1, 0x1B, 0xFF, 0xFF, self.frames.address - self.unwind.address - 4
            )
        tags = [(1, n) for n in self.needed]
        tags += [
            (4, self.hash.address),
            (5, self.dynstr.address),
            (6, self.dynsym.address),
            (10, self.dynstr.size),
            (11, form.symbol_size),
        ]
        first = 7 if p.explicit else 17
        if self.rela.size:
            tags += [(first, self.rela.address), (first + 1, self.rela.size), (first + 2, form.rela.size)]
        for k, tag in enumerate(tags):
            form.dynamic.pack_into(self.dyn.data, form.dynamic.size * k, *tag)

        segments = [
            (1, flags, *(3 * [begin]), filled - begin, end - begin, p.page)
            for flags, begin, filled, end in self.segments
        ]
        segments.append((2, 6, *(3 * [self.dyn.address]), self.dyn.size, self.dyn.size, p.pointer))
        segments.append((0x6474E551, 6, 0, 0, 0, 0, 0, 16))
        if self.frames is not None:
            segments.append((0x6474E550, 4, *(3 * [self.unwind.address]), 8, 8, 4))
        out = bytearray(self.segments[-1][2])
        for section in self.placed:
            if section.type != _NOBITS:
                out[section.address : section.address + section.size] = section.data
        for k, (type_, flags, offset, *rest) in enumerate(segments):
            form.put_segment(out, k, type_, flags, offset, *rest)
        names = _Strings()
        out += bytes(-len(out) % 64)
        rows = [bytes(form.section.size), *(self._header(names, s) for s in self.placed)]
        rows.append(form.section.pack(names.add(SECTION), _PROGBITS, 0, 0, len(out), len(payload), 0, 0, 64, 0))
        names.add(".shstrtab")
        out += payload
        rows.append(form.section.pack(names.add(".shstrtab"), _STRTAB, 0, 0, len(out), len(names.data), 0, 0, 1, 0))
        out += names.data
        out += bytes(-len(out) % 8)
        ident = (b"\x7fELF" + bytes([2 if p.wide else 1, 1, 1])).ljust(16, b"\0")
        head = form.header.size
        counts = (head, form.segment_size, len(segments), form.section.size, len(rows), len(rows) - 1)
        form.header.pack_into(out, 0, ident, 3, p.number, 1, 0, head, len(out), self.flags, *counts)
        out += b"".join(rows)
        return bytes(out) + hashlib.blake2b(out, digest_size=DIGEST).digest()

    def _header(self, names: _Strings, s: _Section) -> bytes:
        """The section header of a loaded section."""
        number = {id(p): k + 1 for k, p in enumerate(self.placed)}
        form, link, info = self.form, 0, 0
        records = {_DYNSYM: form.symbol_size, _DYNAMIC: form.dynamic.size, _HASH: 4}
        size = records.get(s.type, form.rela.size if s is self.rela else 0)
        if s.type == _HASH or s is self.rela:
            link = number[id(self.dynsym)]
        elif s.type in (_DYNSYM, _DYNAMIC):
            link, info = number[id(self.dynstr)], int(s.type == _DYNSYM)
        return form.section.pack(
            names.add(s.name), s.type, s.flags, s.address, s.address, s.size, link, info, s.align, size
        )


def whole(data: bytes | memoryview) -> bool:
    """Whether a file of ours is as it was written."""
    data = memoryview(data)
    return len(data) > DIGEST and hashlib.blake2b(data[:-DIGEST], digest_size=DIGEST).digest() == bytes(data[-DIGEST:])


def payload_of(data: bytes | memoryview) -> memoryview:
    """The payload of a shared object that `link` made.

    Raises:
        ValueError: it is none, or not whole.
    """
    data = memoryview(data)
    if bytes(data[:5]) != b"\x7fELF\x02" or not whole(data):
        raise ValueError("not a library of this compiler, or a damaged one")
    fields = _HEADER.unpack_from(data)
    row = _SECTION.unpack_from(data, fields[6] + (fields[12] - 2) * _SECTION.size)
    return data[row[4] : row[4] + row[5]]
