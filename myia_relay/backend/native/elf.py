"""A small linker: turns the relocatable files that LLVM writes into a shared object.

Idea: a compiled program is one object or a few, so linking is hardly a search for symbols, only layout. Sections are grouped by
the protection of their memory (read, execute, write), relocations are resolved, and symbols of other libraries go
through a global offset table that the system's loader fills. The result can be opened by `dlopen`, linked into C
programs, and inspected with standard tools. It needs no C compiler, which machines that run programs often lack.

Input: ELF relocatable objects of x86-64, position independent. Output: an ELF shared object, with a payload of ours
in a section that is not loaded, and a checksum at the end of the file.

Source: System V Application Binary Interface, and its AMD64 supplement (relocations: section 4.4).
"""

from __future__ import annotations

import hashlib
import platform
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

PAGE = 0x1000
SECTION = ".myia_relay"  # of the payload
DIGEST = 32  # bytes of the checksum

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELA = struct.Struct("<QQq")
_PROGBITS, _SYMTAB, _STRTAB, _RELASEC, _HASH, _DYNAMIC, _NOBITS, _DYNSYM, _UNWIND = 1, 2, 3, 4, 5, 6, 8, 11, 0x70000001
_WRITE, _ALLOC, _EXEC, _TLS = 1, 2, 4, 0x400
_ABS64, _PC32, _PLT32, _GLOB_DAT, _RELATIVE, _GOTPCREL, _PC64, _GOTPCRELX, _REX_GOTPCRELX = 1, 2, 4, 6, 8, 9, 24, 41, 42
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1


# Functions of the C library that have several versions. The loader binds a name without a version to the oldest one, so
# `__got_NAME` is exported, and the code that loads the file stores the default version there.
VERSIONED = tuple(f + kind for f in ("exp", "exp2", "exp10", "log", "log2", "pow", "fmod") for kind in ("", "f"))
# Memory passes from code to Python and back, so both must use one allocator. A library in front of the C library
# (glibc's libc_malloc_debug) may offer a version that the loader binds and `dlsym` does not find: these too are stored
# when the file is loaded.
ALLOCATOR = ("malloc", "realloc", "free")


class LinkError(Exception):
    """An object that this linker does not understand."""


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


def _read(data: bytes) -> tuple[list[_Section], list[_Symbol]]:
    """The sections and symbols of a relocatable object.

    Raises:
        LinkError: it is no relocatable object of little-endian ELF64 for x86-64.
    """
    if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise LinkError("not a little-endian ELF64 object")
    fields = _HEADER.unpack_from(data)
    if fields[1] != 1 or fields[2] != 62:
        raise LinkError("not a relocatable object of x86-64")
    start, count, names = fields[6], fields[12], fields[13]
    headers = [_SECTION.unpack_from(data, start + i * _SECTION.size) for i in range(count)]

    def text(table: int, at: int) -> str:
        begin = headers[table][4] + at
        return data[begin : data.index(b"\0", begin)].decode()

    sections, symbols = [], []
    for name, type_, flags, _, offset, size, _link, _info, align, _ in headers:
        body = bytearray() if type_ == _NOBITS else bytearray(data[offset : offset + size])
        sections.append(_Section(text(names, name), type_, flags, body, size, max(1, align)))
    for _name, type_, _, _, offset, size, link, target, _, _ in headers:
        if type_ == _SYMTAB:
            for at in range(offset, offset + size, _SYMBOL.size):
                name, info, _, section, value, length = _SYMBOL.unpack_from(data, at)
                symbols.append(_Symbol(text(link, name), info, section, value, length))
        elif type_ == _RELASEC and sections[target].flags & _ALLOC:
            for at in range(offset, offset + size, _RELA.size):
                place, info, addend = _RELA.unpack_from(data, at)
                sections[target].relocations.append((place, info & 0xFFFFFFFF, info >> 32, addend))
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
    objects: Sequence[bytes], payload: bytes = b"", *, slots: Iterable[str] = (), exported: tuple[str, ...] = ("",)
) -> bytes:
    """Make a shared object of relocatable ones.

    Args:
        objects: the relocatable objects. Of several definitions of a name the first one holds.
        payload: what else the file is to carry; see `payload_of`.
        slots: functions that are not looked up when the code is loaded: each is called through a variable `__name` of the
            shared object, which whoever loads it has to set.
        exported: beginnings of the names of symbols that others see.

    Returns:
        The shared object's bytes.

    Raises:
        LinkError: there is something in an object that this linker does not know.
    """
    return _Linker(*_joined([_read(data) for data in objects]), tuple(slots), exported).run(payload)


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
        self, sections: list[_Section], symbols: list[_Symbol], slots: tuple[str, ...], exported: tuple[str, ...]
    ):
        self.sections, self.symbols, self.slots = sections, symbols, slots
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
        self.pointers = set()  # sections that the loader must write addresses into
        for section in self.kept:
            for _, type_, number, _ in section.relocations:
                if type_ in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):
                    self.got.setdefault(number, len(self.got))
                elif type_ in (_PC32, _PLT32):
                    if self._is_import(number):
                        self.got.setdefault(number, len(self.got))
                        self.plt.setdefault(number, len(self.plt))
                elif type_ == _ABS64:
                    self.pointers.add(id(section))
                elif type_ != _PC64:
                    raise LinkError(f"relocation type {type_} in {section.name} is not supported")
        imports = {n for s in self.kept for _, _, n, _ in s.relocations if self._is_import(n)}
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

        def made(name: str, type_: int, flags: int, size: int, align: int = 8) -> _Section:
            return _Section(name, type_, flags, bytearray(size), size, align)

        self.strings = _Strings()
        names = [self.symbols[n].name for n in self.imports]
        names += [s.name for s in self.exports] + [name for n in self.got if (name := self._variable(n))]
        self.needed = [
            self.strings.add(n) for n in (("libm.so.6", "libc.so.6") if platform.libc_ver()[0] == "glibc" else ())
        ]
        for name in names:
            self.strings.add(name)
        count = 1 + len(names)
        pointers = sum(t == _ABS64 for s in self.kept for _, t, _, _ in s.relocations)
        frames = [s for s in self.kept if s.name == ".eh_frame"]
        self.hash = made(".hash", _HASH, _ALLOC, 4 * (2 + 2 * count))
        self.dynsym = made(".dynsym", _DYNSYM, _ALLOC, _SYMBOL.size * count)
        self.dynstr = made(".dynstr", _STRTAB, _ALLOC, len(self.strings.data), 1)
        entries = sum(not self._is_slot(n) for n in self.got)
        self.rela = made(".rela.dyn", _RELASEC, _ALLOC, _RELA.size * (pointers + entries))
        self.unwind = made(".eh_frame_hdr", _PROGBITS, _ALLOC, 8 if frames else 0, 4)
        self.stubs = made(".plt", _PROGBITS, _ALLOC | _EXEC, 8 * len(self.plt))
        self.table = made(".got", _PROGBITS, _ALLOC | _WRITE, 8 * len(self.got))
        self.dyn = made(".dynamic", _DYNAMIC, _ALLOC | _WRITE, 16 * (len(self.needed) + 9))
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
        address = _HEADER.size + 6 * _SEGMENT.size
        for flags, group in groups:
            begin = _up(address, PAGE) if flags != 4 else 0
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
        place = section.address + offset
        if type_ == _ABS64:
            if self._is_import(number):
                self.dynamic.append((place, _ABS64, number, addend))
            else:
                self.dynamic.append((place, _RELATIVE, 0, self._address(number) + addend))
            return
        if type_ in (_GOTPCREL, _GOTPCRELX, _REX_GOTPCRELX):
            target = self.table.address + 8 * self.got[number]
        elif number in self.plt:
            target = self.stubs.address + 8 * self.plt[number]
        elif self._is_import(number):
            raise LinkError(f"a distance to {self.symbols[number].name!r}, which is elsewhere")
        else:
            target = self._address(number)
        struct.pack_into("<q" if type_ == _PC64 else "<i", section.data, offset, target + addend - place)

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
            at = self.table.address + 8 * slot
            if variable := self._variable(n):
                rows.append((variable, 0x11, numbers[id(self.table)], at, 8))
            if self._is_slot(n):
                continue
            if self._is_import(n):
                self.dynamic.append((at, _GLOB_DAT, n, 0))
            else:
                self.dynamic.append((at, _RELATIVE, 0, self._address(n)))
        count = 1 + len(rows)
        buckets, chains = [0] * count, [0] * count
        for k, (name, info, section, value, size) in enumerate(rows, 1):
            _SYMBOL.pack_into(
                self.dynsym.data, k * _SYMBOL.size, self.strings.known[name], info, 0, section, value, size
            )
            bucket = _hash(name) % count
            buckets[bucket], chains[k] = k, buckets[bucket]
        struct.pack_into(f"<{2 + 2 * count}I", self.hash.data, 0, count, count, *buckets, *chains)
        self.dynstr.data[:] = self.strings.data
        for k, (place, type_, n, addend) in enumerate(self.dynamic):
            _RELA.pack_into(self.rela.data, k * _RELA.size, place, number.get(n, 0) << 32 | type_, addend)

    def _write(self, payload: bytes) -> bytes:
        self._symbols()
        for n, k in self.plt.items():  # jmp *distance(%rip); a two-byte no-op
            at = self.stubs.address + 8 * k
            distance = self.table.address + 8 * self.got[n] - (at + 6)
            struct.pack_into("<HiH", self.stubs.data, 8 * k, 0x25FF, distance, 0x9066)
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
            (11, 24),
        ]
        tags += [(7, self.rela.address), (8, self.rela.size), (9, 24)] if self.rela.size else []
        for k, (tag, value) in enumerate(tags):
            struct.pack_into("<QQ", self.dyn.data, 16 * k, tag, value)

        segments = [
            (1, flags, *(3 * [begin]), filled - begin, end - begin, PAGE) for flags, begin, filled, end in self.segments
        ]
        segments.append((2, 6, *(3 * [self.dyn.address]), self.dyn.size, self.dyn.size, 8))
        segments.append((0x6474E551, 6, 0, 0, 0, 0, 0, 16))
        if self.frames is not None:
            segments.append((0x6474E550, 4, *(3 * [self.unwind.address]), 8, 8, 4))
        out = bytearray(self.segments[-1][2])
        for section in self.placed:
            if section.type != _NOBITS:
                out[section.address : section.address + section.size] = section.data
        for k, (type_, flags, offset, *rest) in enumerate(segments):
            _SEGMENT.pack_into(out, _HEADER.size + k * _SEGMENT.size, type_, flags, offset, *rest)
        names = _Strings()
        out += bytes(-len(out) % 64)
        rows = [bytes(_SECTION.size), *(self._header(names, s) for s in self.placed)]
        rows.append(_SECTION.pack(names.add(SECTION), _PROGBITS, 0, 0, len(out), len(payload), 0, 0, 64, 0))
        names.add(".shstrtab")
        out += payload
        rows.append(_SECTION.pack(names.add(".shstrtab"), _STRTAB, 0, 0, len(out), len(names.data), 0, 0, 1, 0))
        out += names.data
        out += bytes(-len(out) % 8)
        ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
        counts = (_HEADER.size, _SEGMENT.size, len(segments), _SECTION.size, len(rows), len(rows) - 1)
        _HEADER.pack_into(out, 0, ident, 3, 62, 1, 0, _HEADER.size, len(out), 0, *counts)
        out += b"".join(rows)
        return bytes(out) + hashlib.blake2b(out, digest_size=DIGEST).digest()

    def _header(self, names: _Strings, s: _Section) -> bytes:
        """The section header of a loaded section."""
        number = {id(p): k + 1 for k, p in enumerate(self.placed)}
        link, info, size = 0, 0, {_DYNSYM: 24, _RELASEC: 24, _DYNAMIC: 16, _HASH: 4}.get(s.type, 0)
        if s.type in (_HASH, _RELASEC):
            link = number[id(self.dynsym)]
        elif s.type in (_DYNSYM, _DYNAMIC):
            link, info = number[id(self.dynstr)], int(s.type == _DYNSYM)
        return _SECTION.pack(
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
