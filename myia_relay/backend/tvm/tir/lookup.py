"""Functions of code that checks its accesses to memory: writing down what is found, poison, and whose memory is at an address.

Idea: a call's memory that is known by address alone lies in few places: in blocks from the guarded allocator (`native/guards.py`),
whose map leads from an address to the block's ends; in the region of frames; in the heap of records, up to its top; in the block of
the empty list. `look` compares bytes with what is there now, so memory that was given back is found at its next use.

Input: the slots that say where these are. Output: private functions, which write down what they find; callers look for it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PrimType

from ...native.guards import GRANULE
from ...native.memory_checks import FOUND, INDEX, LEAST, MOST, PLACE
from .block import Block, broadcast, call, const, element, idx, lanes_of, load, stored

POISON = 0x7FFB  # sixteen bits: a NaN in each float format, a large odd number in each integer format


@dataclass
class KnownMemory:
    """Where the memory of a call lies, by slots of the state area.

    Attributes:
        blocks: those of the guarded allocator's address and of its map's, and its bytes; None where a program has no blocks.
        heap: those of the first address and of the top of the heap of records.
        frames: those of the ends of the region of frames.
        empty: the first and the number of those that are the block of the empty list.
    """

    blocks: tuple[int, int, int] | None = None
    heap: tuple[int, int] | None = None
    frames: tuple[int, int] | None = None
    empty: tuple[int, int] | None = None


@functools.cache
def slots_type() -> Any:
    """The type of a buffer over slots of the state area."""
    return tirx.decl_buffer((1 << 48,), "int64", data_alignment=8).ty


def _over(address: Any, dtype: str, name: str, block: Block) -> Any:
    """The memory at an address, as a buffer."""
    size = max(1, tvm.DataType(element(dtype)).bits // 8) * lanes_of(dtype)
    dtype = stored(dtype)
    buffer = tirx.Var(name, tirx.decl_buffer((1 << 48,), dtype, data_alignment=size).ty)
    data = call("tirx.reinterpret", tvm.ir.PointerType(PrimType(dtype)), address)
    block.emit(tirx.DeclBuffer(buffer, data=data))
    return buffer


def violate(slot: int) -> Any:
    """A function that writes down what was found, unless something was found before."""
    area, *numbers = (tirx.Var(n, "int64") for n in ("area", "number", "index", "least", "most", "place"))
    block = Block()
    slots = _over(area, "int64", "slots", block)
    with block.when(tirx.EQ(load(slots, slot + FOUND), idx(0))):
        for k, number in zip((FOUND, INDEX, LEAST, MOST, PLACE), numbers, strict=True):
            block.store(slots, number, slot + k)
    return tirx.PrimFunc([area, *numbers], block.stmt(), ret_type=PrimType("int32"))


def poison() -> Any:
    """A function that fills memory with the poison."""
    address, nbytes = tirx.Var("address", "int64"), tirx.Var("nbytes", "int64")
    block = Block()
    pairs = _over(address, "int16", "pairs", block)
    with block.loop(tirx.Div(nbytes, idx(2))) as i:
        block.store(pairs, tirx.IntImm("int16", POISON), i)
    with block.when(tirx.EQ(tirx.Mod(nbytes, idx(2)), idx(1))):
        last = _over(tirx.Add(address, tirx.Sub(nbytes, idx(1))), "int8", "last", block)
        block.store(last, tirx.IntImm("int8", POISON & 0x7F), 0)
    return tirx.PrimFunc([address, nbytes], block.stmt(), ret_type=PrimType("int32"))


def poison_of(dtype: str) -> Any:
    """A poisoned element of a dtype, None for those that hold none."""
    base, lanes = element(dtype), lanes_of(dtype)
    if not base.startswith(("int", "uint", "float")):
        return None
    bits = tvm.DataType(base).bits
    pattern = sum(POISON << k for k in range(0, 64, 16)) & ((1 << (bits - 1)) - 1)
    if base in ("float32", "float64"):
        value = call("tirx.reinterpret", base, tirx.IntImm(f"int{bits}", pattern))
    elif base.startswith("float"):
        value = const(float("nan"), base)
    else:
        value = tirx.IntImm(base, pattern) if bits <= 64 else None
    return broadcast(value, lanes) if value is not None else None


class _MemorySearch:
    """Looks for an address: sets `low` and `high` to the ends of the memory it lies in, both 0 where it lies in none."""

    def __init__(self, known: KnownMemory, block: Block, area: Any, address: Any):
        self.block, self.area, self.address = block, area, address
        self.slots = _over(area, "int64", "slots", block)
        self.low, self.high = block.cell(idx(0), "low"), block.cell(idx(0), "high")
        if known.blocks is not None:
            self.allocated(*known.blocks)
        for pair in (known.heap, known.frames):
            if pair is not None:
                self.between(load(self.slots, pair[0]), load(self.slots, pair[1]))
        if known.empty is not None:
            first, count = known.empty
            self.between(tirx.Add(area, idx(8 * first)), tirx.Add(area, idx(8 * (first + count))))

    def allocated(self, region: int, table: int, nbytes: int) -> None:
        """The guarded allocator's memory: each granule's number in the map is where its block's two ends are written."""
        block = self.block
        at = block.let(tirx.Sub(self.address, load(self.slots, region)))
        with block.when(tirx.And(tirx.GE(at, idx(0)), tirx.LT(at, idx(nbytes)))):
            owners = _over(load(self.slots, table), "int64", "owners", block)
            owner = block.let(load(owners, tirx.Div(at, idx(GRANULE))))
            with block.when(tirx.NE(owner, idx(0))):
                ends = _over(owner, "int64", "ends", block)
                block.store(self.low, load(ends, 0), 0)
                block.store(self.high, load(ends, 1), 0)

    def between(self, low: Any, high: Any) -> None:
        """Memory between two addresses."""
        block = self.block
        low, high = block.let(low), block.let(high)
        with block.when(tirx.And(tirx.GE(self.address, low), tirx.LT(self.address, high))):
            block.store(self.low, low, 0)
            block.store(self.high, high, 0)

    def refuse(self, wrong: Any, last: Any, function: Any, number: Any, place: Any) -> None:
        """Write down a byte that is wrong, counted from where its memory begins; an address where it lies in none."""
        block = self.block
        low, high = load(self.low, 0), load(self.high, 0)
        with block.when(wrong):
            shown = tirx.Select(tirx.LT(self.address, low), self.address, last)
            found = [number, tirx.Sub(shown, low), idx(0), tirx.Sub(high, low), place]
            block.emit(tirx.Evaluate(tvm.ir.Call(function, [self.area, *found], ret_ty="int32")))


def look(known: KnownMemory, violated: Any) -> Any:
    """A function that finds whether some bytes at an address are memory of the call."""
    params = [tirx.Var(n, "int64") for n in ("area", "address", "nbytes", "number", "place")]
    area, address, nbytes, number, place = params
    block = Block()
    with block.when(tirx.GT(nbytes, idx(0))):
        found = _MemorySearch(known, block, area, address)
        behind = tirx.Add(address, nbytes)
        wrong = tirx.Or(tirx.LT(address, load(found.low, 0)), tirx.GT(behind, load(found.high, 0)))
        found.refuse(wrong, tirx.Sub(behind, idx(1)), violated, number, place)
    return tirx.PrimFunc(params, block.stmt(), ret_type=PrimType("int32"))


def whole(known: KnownMemory, violated: Any) -> Any:
    """A function that finds whether an address is that of a block which may be given back; 0 is."""
    params = [tirx.Var(n, "int64") for n in ("area", "address", "number", "place")]
    area, address, number, place = params
    block = Block()
    with block.when(tirx.NE(address, idx(0))):
        found = _MemorySearch(KnownMemory(known.blocks), block, area, address)
        low, high = load(found.low, 0), load(found.high, 0)
        found.refuse(tirx.Or(tirx.NE(address, low), tirx.GE(low, high)), address, violated, number, place)
    return tirx.PrimFunc(params, block.stmt(), ret_type=PrimType("int32"))


__all__ = ["KnownMemory", "look", "poison", "poison_of", "slots_type", "violate", "whole"]
