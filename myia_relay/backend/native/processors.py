"""What the linker knows of processors: the layout of their object files, their relocations, and their stubs.

Idea: a relocation is one of five kinds, whatever the processor. The address of a symbol, which the system's loader adds to;
a distance to it; a call, which may go through a stub where the symbol is elsewhere; the place of its entry in the global
offset table; and nothing. A `Processor` says of each type of relocation which kind it is, and writes it into code.

Input: the type of a relocation, where it is, and what it refers to. Output: bytes.

Source: System V Application Binary Interface, AMD64 supplement (section 4.4); ELF for the Arm 64-bit Architecture (section 5.7);
ELF for the Arm Architecture (section 5.6).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

ADDRESS, DISTANCE, CALL, ENTRY, NOTHING = "address", "distance", "call", "entry", "nothing"


class LinkError(Exception):
    """An object that the linker does not understand."""


@dataclass(frozen=True)
class Processor:
    """A processor, as the linker sees it.

    Attributes:
        name: of it.
        number: its number in the header of a file.
        wide: whether addresses have 64 bits.
        explicit: whether relocations have an addend of their own; otherwise it is in the place.
        page: the largest page of its systems.
        kinds: of each type of relocation that is known.
        address: the type of an address; the loader's types of an entry of the table, and of an address in the file itself.
        entry: see above.
        relative: see above.
        libraries: what code may need of the C library, by the names of glibc.
        write: writes a relocation: the section's bytes, the offset, the type, the target with its addend, and the place.
        addend: reads the addend of a place, where it has one.
        stub: a jump to where an entry of the table points, of the address of the stub and of the entry.
        stub_size: its bytes.
    """

    name: str
    number: int
    wide: bool
    explicit: bool
    page: int
    kinds: dict[int, str]
    address: int
    entry: int
    relative: int
    libraries: tuple[str, ...]
    write: Callable[[bytearray, int, int, int, int], None]
    addend: Callable[[bytearray, int, int], int]
    stub: Callable[[int, int], bytes]
    stub_size: int

    @property
    def pointer(self) -> int:
        """The bytes of an address."""
        return 8 if self.wide else 4


def _fits(value: int, bits: int) -> int:
    """A signed number of so many bits, as the bits.

    Raises:
        LinkError: it has more.
    """
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise LinkError(f"a distance of {value} bytes, which is too far")
    return value & (1 << bits) - 1


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def _patch(data: bytearray, at: int, mask: int, bits: int) -> None:
    """Replace the bits of a word that a mask has."""
    (word,) = struct.unpack_from("<I", data, at)
    struct.pack_into("<I", data, at, word & ~mask | bits & mask)


def _no_addend(data: bytearray, at: int, kind: int) -> int:
    return 0


# x86-64.

_PC64 = 24


def _write_x86(data: bytearray, at: int, kind: int, target: int, place: int) -> None:
    if kind == _PC64:
        struct.pack_into("<q", data, at, target - place)
    else:
        struct.pack_into("<I", data, at, _fits(target - place, 32))


def _stub_x86(at: int, entry: int) -> bytes:
    return struct.pack("<HiH", 0x25FF, entry - (at + 6), 0x9066)  # jmp *distance(%rip); a two-byte no-op


X86_64 = Processor(
    name="x86-64",
    number=62,
    wide=True,
    explicit=True,
    page=0x1000,
    kinds={0: NOTHING, 1: ADDRESS, 2: CALL, 4: CALL, 9: ENTRY, 41: ENTRY, 42: ENTRY, _PC64: DISTANCE},
    address=1,
    entry=6,
    relative=8,
    libraries=("libm.so.6", "libc.so.6"),
    write=_write_x86,
    addend=_no_addend,
    stub=_stub_x86,
    stub_size=8,
)

# AArch64. Loads and stores have the low twelve bits of an address, in units of what they transfer.

_ABS64, _PREL64, _PREL32, _ADR, _PAGE, _LOW, _JUMP26, _CALL26, _GOT_PAGE, _GOT_LOW = (
    *(257, 260, 261, 274, 275, 277, 282, 283, 311, 312),
)
_UNITS = {_LOW: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, _GOT_LOW: 3}


def _write_aarch64(data: bytearray, at: int, kind: int, target: int, place: int) -> None:
    if kind == _PREL64:
        struct.pack_into("<q", data, at, target - place)
    elif kind == _PREL32:
        struct.pack_into("<I", data, at, _fits(target - place, 32))
    elif kind in (_CALL26, _JUMP26):
        _patch(data, at, 0x3FFFFFF, _fits(target - place, 28) >> 2)
    elif kind in _UNITS:
        _patch(data, at, 0xFFF << 10, (target & 0xFFF) >> _UNITS[kind] << 10)
    else:
        distance = target - place if kind == _ADR else (target >> 12) - (place >> 12)
        bits = _fits(distance, 21)
        _patch(data, at, 3 << 29 | 0x7FFFF << 5, (bits & 3) << 29 | bits >> 2 << 5)


def _stub_aarch64(at: int, entry: int) -> bytes:
    code = bytearray(
        struct.pack("<4I", 0x90000010, 0xF9400211, 0xD61F0220, 0xD503201F)
    )  # adrp x16; ldr x17; br x17; nop
    _write_aarch64(code, 0, _GOT_PAGE, entry, at)
    _write_aarch64(code, 4, _GOT_LOW, entry, at + 4)
    return bytes(code)


AARCH64 = Processor(
    name="AArch64",
    number=183,
    wide=True,
    explicit=True,
    page=0x10000,
    kinds={
        **dict.fromkeys((0, 256), NOTHING),
        **dict.fromkeys((_PREL64, _PREL32, _ADR, _PAGE, 276, *_UNITS), DISTANCE),
        **dict.fromkeys((_CALL26, _JUMP26), CALL),
        **dict.fromkeys((_GOT_PAGE, _GOT_LOW), ENTRY),
        _ABS64: ADDRESS,
    },
    address=_ABS64,
    entry=1025,
    relative=1027,
    libraries=("libm.so.6", "libc.so.6"),
    write=_write_aarch64,
    addend=_no_addend,
    stub=_stub_aarch64,
    stub_size=16,
)

# ARM, with 32-bit instructions (A32), whose program counter is two instructions ahead; the addends account for that.

_ABS32, _REL32, _CALL24, _JUMP24, _PREL31, _MOVW, _MOVT, _GOT_PREL = 2, 3, 28, 29, 42, 45, 46, 96


def _write_arm(data: bytearray, at: int, kind: int, target: int, place: int) -> None:
    distance = target - place
    if kind in (_REL32, _GOT_PREL):
        struct.pack_into("<I", data, at, _fits(distance, 32))
    elif kind == _PREL31:
        _patch(data, at, 0x7FFFFFFF, _fits(distance, 31))
    elif kind in (_CALL24, _JUMP24):
        if distance & 3:
            raise LinkError("a call of Thumb code")
        _patch(data, at, 0xFFFFFF, _fits(distance, 26) >> 2)
    else:
        half = distance >> 16 if kind == _MOVT else distance
        _patch(data, at, 0xF0FFF, (half & 0xF000) << 4 | half & 0xFFF)


def _addend_arm(data: bytearray, at: int, kind: int) -> int:
    (word,) = struct.unpack_from("<I", data, at)
    if kind in (_CALL24, _JUMP24):
        return _signed(word, 24) << 2
    if kind in (_MOVW, _MOVT):
        return _signed(word >> 4 & 0xF000 | word & 0xFFF, 16)
    return _signed(word, 31 if kind == _PREL31 else 32)


def _stub_arm(at: int, entry: int) -> bytes:
    # ldr ip, [pc, #4]; add ip, pc, ip; ldr pc, [ip]; the distance from the second instruction's program counter
    return struct.pack("<3Ii", 0xE59FC004, 0xE08FC00C, 0xE59CF000, entry - (at + 12))


ARM = Processor(
    name="ARM",
    number=40,
    wide=False,
    explicit=False,
    page=0x10000,
    kinds={
        **dict.fromkeys((0, 40), NOTHING),
        **dict.fromkeys((_REL32, _PREL31, _MOVW, _MOVT), DISTANCE),
        **dict.fromkeys((_CALL24, _JUMP24), CALL),
        _ABS32: ADDRESS,
        _GOT_PREL: ENTRY,
    },
    address=_ABS32,
    entry=21,
    relative=23,
    libraries=("libm.so.6", "libc.so.6", "libgcc_s.so.1"),
    write=_write_arm,
    addend=_addend_arm,
    stub=_stub_arm,
    stub_size=16,
)

PROCESSORS = {p.number: p for p in (X86_64, AARCH64, ARM)}

__all__ = ["ADDRESS", "CALL", "DISTANCE", "ENTRY", "NOTHING", "PROCESSORS", "X86_64", "LinkError", "Processor"]
