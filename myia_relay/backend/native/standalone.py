"""Programs that run without Python: for which machine, and as which files.

Idea: machine code and a description of it, as two relocatable objects of which the second has only data. A C program links the
archive of both, or opens a shared object that `elf.link` makes of them, and runs it with the functions of
`include/myia_relay.h`.

Input: the object file that LLVM made, and the description. Output: the contents of an archive or a shared object.

Source: System V Application Binary Interface (ELF, archives).
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...utils.errors import LoweringError
from .elf import VERSIONED, link
from .processors import LinkError

INCLUDE = Path(__file__).parent / "include"
"""The folder of the header `myia_relay.h`."""

DESCRIPTION = "myia_relay_library"  # the symbol of the description
MAIN = "__tvm_ffi_main"
END = b"MYIAEND1"  # the mark at the end of a shared object
RUNTIME = (
    *("myia_relay_serve", "myia_relay_realloc", "TVMFFIErrorSetRaisedFromCStrParts", "TVMFFIErrorSetRaisedFromCStr"),
    *(f"scipy_cblas_{letter}{routine}" for letter in "sd" for routine in ("gemm", "gemv")),
)
"""What code calls that the header provides."""

FEATURES = {"aarch64": ["+neon"], "armv7": ["+neon", "+vfp4"], "arm": ["+neon", "+vfp4"]}
SYSTEMS = ("linux", "freebsd", "netbsd", "openbsd")
_TRIPLE = re.compile(r"[a-z0-9_]+(-[a-z0-9_.]+){1,3}")
_OPTION = re.compile(r"-(mcpu|mattr)=(\S+)")


@dataclass(frozen=True)
class TargetMachine:
    """A machine on which a program runs without Python.

    Attributes:
        triple: as LLVM names it: "aarch64-linux-gnu"; empty for this machine.
        cpu: LLVM's name of its processor; empty for any of the kind.
        features: LLVM's names of what it has beyond, with signs.
    """

    triple: str = ""
    cpu: str = ""
    features: tuple[str, ...] = ()

    @staticmethod
    def of(text: str | None) -> TargetMachine:
        """The machine that a user names: "aarch64-linux-gnu", "x86_64-linux-gnu -mcpu=x86-64-v3"; None is this one.

        Raises:
            LoweringError: it is no triple with options.
        """
        if text is None:
            return TargetMachine()
        triple, *options = text.split() or [""]
        found = {str(m[1]): str(m[2]) for o in options if (m := _OPTION.fullmatch(o))}
        if not _TRIPLE.fullmatch(triple) or len(found) != len(options):
            raise LoweringError(
                f'target={text!r} names no machine; write a triple of LLVM, such as "aarch64-linux-gnu" or '
                '"armv7l-linux-gnueabihf", and after it -mcpu=NAME or -mattr=+FEATURE,-FEATURE'
            )
        kind = triple.split("-")[0]
        own = next((f for name, f in FEATURES.items() if kind.startswith(name)), [])
        given = found["mattr"].split(",") if "mattr" in found else own
        return TargetMachine(triple, found.get("mcpu", ""), tuple(given))

    def attributes(self) -> dict[str, Any]:
        """Those of TVM's target; none for this machine."""
        if not self.triple:
            return {}
        kind, *rest = self.triple.split("-")
        if (
            len(rest) == 2 and rest[0] in SYSTEMS
        ):  # LLVM takes the second part for the vendor, and would not see the ABI
            rest.insert(0, "unknown")
        attrs: dict[str, Any] = {"mtriple": "-".join([kind, *rest])}
        if self.cpu:
            attrs["mcpu"] = self.cpu
        if self.features:
            attrs["mattr"] = list(self.features)
        if self.triple.endswith("hf"):
            attrs["mfloat-abi"] = "hard"
        return attrs


@dataclass(frozen=True)
class StandaloneCode:
    """A compiled program that runs without Python.

    Attributes:
        code: an object file.
        signature: what the caller has to know.
    """

    code: bytes
    signature: Any

    def unknown(self) -> list[str]:
        """Functions that it calls and the header has not: those of LAPACK, and rare ones of BLAS."""
        names = {m.group().decode() for m in re.finditer(rb"scipy_\w+", self.code)}
        return sorted(n.removeprefix("scipy_") for n in names - set(RUNTIME))


def shared_object(code: bytes, description: bytes, machine: TargetMachine) -> bytes:
    """A shared object; whoever loads it sets the variables `__NAME` of what it calls.

    At its end are a mark, the length of the rest and its CRC-32, which the header looks at before the system's loader, or anything
    else, follows what is in the file. The loader reads no further than the headers of the file say.

    Raises:
        LoweringError: the machine's processor is none that the linker knows.
    """
    exported = ("__tvm_ffi_", "__TVM", "__myia", "__scipy", "myia_relay_")
    objects = [code, data_object(code, description)]
    try:
        data = link(
            objects, slots=RUNTIME, exported=exported, glibc="gnu" in machine.triple if machine.triple else None
        )
        return data + struct.pack("<8sQQ", END, len(data), zlib.crc32(data))
    except LinkError as error:
        where = machine.triple or "this machine"
        raise LoweringError(
            f"shared objects are made for x86-64, AArch64 and ARM, not for {where} ({error}); write a static library, NAME.a"
        ) from None


def archive(code: bytes, description: bytes) -> bytes:
    """A static library."""
    members = [("program.o/", code, [MAIN]), ("library.o/", data_object(code, description), [DESCRIPTION])]
    names = b"".join(name.encode() + b"\0" for *_, symbols in members for name in symbols)
    names += b"\0" * (len(names) % 2)
    count = sum(len(symbols) for *_, symbols in members)
    at = 8 + 60 + 4 * (count + 1) + len(names)
    offsets, body = [], b""
    for name, data, symbols in members:
        offsets += [at + len(body)] * len(symbols)
        body += _member(name, data)
    return b"!<arch>\n" + _member("/", struct.pack(f">{count + 1}I", count, *offsets) + names) + body


def _member(name: str, data: bytes) -> bytes:
    header = f"{name:<16}{0:<12}{0:<6}{0:<6}{'644':<8}{len(data):<10}`\n"
    return header.encode() + data + b"\n" * (len(data) % 2)


def data_object(like: bytes, data: bytes) -> bytes:
    """A relocatable object that has nothing but data, under the name `DESCRIPTION`.

    Args:
        like: an object for the same machine.
        data: what it has; it begins at a multiple of 64.

    Raises:
        LoweringError: `like` is no object of ELF, so this machine is of another kind.
    """
    if like[:4] != b"\x7fELF" or like[5] != 1:
        raise LoweringError(
            "libraries for C are made for little-endian machines with ELF: Linux, and most without a system"
        )
    wide = like[4] == 2
    machine = struct.unpack_from("<H", like, 18)[0]
    (flags,) = struct.unpack_from("<I", like, 48 if wide else 36)
    head, row = (64, 64) if wide else (52, 40)
    names = b"\0.data\0.symtab\0.strtab\0.shstrtab\0.note.GNU-stack\0"
    strings = b"\0" + DESCRIPTION.encode() + b"\0"
    if wide:
        symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x11, 0, 1, 0, len(data))
    else:
        symbols = bytes(16) + struct.pack("<IIIBBH", 1, 0, len(data), 0x11, 0, 1)
    out, places = bytearray(head), []
    for part, align in ((data, 64), (symbols, 8), (strings, 1), (names, 1)):
        out += bytes(-len(out) % align)
        places.append(len(out))
        out += part
    out += bytes(-len(out) % 8)

    def section(
        name: str, kind: int, flags: int, at: int, size: int, link: int, info: int, align: int, each: int
    ) -> bytes:
        where = names.index(name.encode() + b"\0") if name else 0
        return struct.pack("<IIQQQQIIQQ" if wide else "<10I", where, kind, flags, 0, at, size, link, info, align, each)

    table = [
        section("", 0, 0, 0, 0, 0, 0, 0, 0),
        section(".data", 1, 3, places[0], len(data), 0, 0, 64, 0),
        section(".symtab", 2, 0, places[1], len(symbols), 3, 1, 8, 24 if wide else 16),
        section(".strtab", 3, 0, places[2], len(strings), 0, 0, 1, 0),
        section(".shstrtab", 3, 0, places[3], len(names), 0, 0, 1, 0),
        section(".note.GNU-stack", 1, 0, places[3], 0, 0, 0, 1, 0),
    ]
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1])
    struct.pack_into(
        "<16sHHIQQQIHHHHHH" if wide else "<16sHHIIIIIHHHHHH",
        *(out, 0, ident.ljust(16, b"\0"), 1, machine, 1, 0, 0, len(out), flags, head, 0, 0, row, len(table), 4),
    )
    return bytes(out) + b"".join(table)


__all__ = ["DESCRIPTION", "INCLUDE", "VERSIONED", "TargetMachine", "StandaloneCode", "archive", "shared_object"]
