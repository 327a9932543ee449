"""Blocks of run-time lists in native code: allocation, release, ownership, and access to their words.

Functions of more than a few instructions are private functions of the module, shared by all lists whose entries hold no
lists. All blocks of a call are chained, so that blocks that a failed call has left are freed by the next one;
`backend/native/blocks.py` has their layout.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PrimType

from ....abstract.dims import DimLike
from ....abstract.types import List, Scalar, Type, leaves
from ...native.area import NO_MEMORY
from ...native.blocks import CAPACITY, COUNT, HEADER, LENGTH, NEXT, PREVIOUS, entry_layout
from ..kernels.kernel import flat_buffer, pointer_at, pointer_type
from ..tir.block import Block, call, idx, load
from ..tir.pipeline import c_function

MANY = 1 << 40  # references to the block that all empty lists share
MOST = 1 << 40  # entries; a larger number must be an error


@functools.lru_cache(maxsize=4096)
def holds_list(t: Type) -> bool:
    """Whether values of a type are, or consist of, lists."""
    return any(isinstance(leaf, List) for leaf in leaves(t))


@dataclass(eq=False)
class Layout:
    """Where the leaves of an entry are.

    Attributes:
        types: of the leaves.
        offsets: of each in an entry, in bytes.
        record: bytes of an entry.
        storage: stands for the entries' memory in the plan.
    """

    types: list[Type]
    offsets: list[DimLike]
    record: DimLike
    storage: Any

    @property
    def nested(self) -> list[tuple[DimLike, List]]:
        """Offsets and types of the leaves that are lists."""
        return [(at, t) for at, t in zip(self.offsets, self.types, strict=True) if isinstance(t, List)]


class Lists:
    """What the lists of a program share: slots of the state area, and functions that make and free blocks.

    Attributes:
        head: the slot with the first block of the chain; `result`: that by which functions return a block.
        empty: the first of the slots that are the block of an empty list.
    """

    def __init__(self, lowering: Any):
        self.root = lowering
        state = lowering.state
        self.head, self.result = state.slot(), state.slot()
        self.empty = state.slot(HEADER // 8 + 2)  # bytes after the entries, which may be read speculatively
        state.needed = True
        self.functions: dict[Any, Any] = {}

    def function(self, key: Any, name: str, params: list[Any], write: Any) -> Any:
        """A private function, written by `write(block, *params)` at first use."""
        if key not in self.functions:
            var = self.functions[key] = tvm.ir.GlobalVar(f"list_{name}{len(self.functions)}")
            block = Block()
            ints = flat_buffer("slots", "int64")
            block.emit(tirx.DeclBuffer(ints, data=call("tirx.reinterpret", pointer_type("int64"), params[0])))
            write(block, ints, *params)
            self.root.functions[var] = tirx.PrimFunc(params, block.stmt(), ret_type=PrimType("int32"))
        return self.functions[key]


def shared(lowering: Any) -> Lists:
    """The program's `Lists`."""
    root = lowering.calls.lowering if lowering.calls is not None else lowering
    if root.lists is None:
        root.lists = Lists(root)
    return root.lists


def layout(lowering: Any, elem: Type) -> Layout:
    """The layout of the entries of a list."""
    if elem not in lowering.layouts:
        lowering.layouts[elem] = Layout(*entry_layout(elem), lowering.storage("list", 0, "list"))
    return lowering.layouts[elem]


def words(block: Block, address: Any, dtype: str = "int64") -> Any:
    """The memory at an address as a buffer."""
    buffer = flat_buffer("list", dtype)
    block.emit(tirx.DeclBuffer(buffer, data=call("tirx.reinterpret", pointer_type(dtype), address)))
    return buffer


def pointer(address: Any, offset: Any = 0) -> Any:
    """An address as a pointer to bytes."""
    return pointer_at(call("tirx.reinterpret", pointer_type("uint8"), address), offset, "uint8")


def run(block: Block, function: Any, *args: Any) -> None:
    """Call a private function."""
    block.emit(tirx.Evaluate(tvm.ir.Call(function, list(args), ret_ty="int32")))


def link(block: Block, ints: Any, head: int, address: Any) -> None:
    """Put a block in front of the chain."""
    own = words(block, address)
    first = block.let(load(ints, head))
    block.store(own, idx(0), PREVIOUS)
    block.store(own, first, NEXT)
    block.store(ints, address, head)
    with block.when(tirx.NE(first, idx(0))):
        block.store(words(block, first), address, PREVIOUS)


def int_param(name: str) -> Any:
    """A parameter of a private function."""
    return tirx.Var(name, "int64")


def plus(a: Any, b: Any) -> Any:
    """A sum that may not be simplified."""
    return tirx.Add(a, b)


def bytes_of(count: Any, record: Any) -> Any:
    """The size of a block."""
    return tirx.Add(tirx.Mul(count, record), idx(HEADER))


def make_function(lists: Lists) -> Any:
    """(area, capacity, bytes of an entry) -> a new block, of no entries; 0 where there is no memory."""

    def write(block: Block, ints: Any, area: Any, capacity: Any, record: Any) -> None:
        size = block.let(tirx.Max(capacity, idx(1)))
        block.store(ints, idx(0), lists.result)
        with block.when(tirx.LT(size, idx(MOST))):
            made = tirx.call_extern(pointer_type("uint8"), "malloc", bytes_of(size, record))
            address = block.let(call("tirx.reinterpret", "int64", made))
            with block.when(tirx.NE(address, idx(0))):
                own = words(block, address)
                block.store(own, idx(1), COUNT)
                block.store(own, idx(0), LENGTH)
                block.store(own, size, CAPACITY)
                link(block, ints, lists.head, address)
                block.store(ints, address, lists.result)

    return lists.function("make", "make", [int_param("area"), int_param("capacity"), int_param("record")], write)


def free_function(lists: Lists, t: List) -> Any:
    """(area, block): give a block back that has no reference left; what its entries hold loses one each."""
    _, offsets, record = entry_layout(t.elem)
    nested = [(at, leaf) for at, leaf in zip(offsets, leaves(t.elem), strict=True) if isinstance(leaf, List)]

    def write(block: Block, ints: Any, area: Any, address: Any) -> None:
        own = words(block, address)
        if nested:
            count = block.let(load(own, LENGTH))
            with block.loop(count) as i:
                for at, leaf in nested:
                    place = plus(plus(address, idx(HEADER + at)), tirx.Mul(i, idx(record)))
                    drop(block, lists, area, block.let(load(words(block, place), 0)), leaf)
        before, after = block.let(load(own, PREVIOUS)), block.let(load(own, NEXT))
        with block.when(tirx.NE(before, idx(0))):
            block.store(words(block, before), after, NEXT)
        with block.otherwise():
            block.store(ints, after, lists.head)
        with block.when(tirx.NE(after, idx(0))):
            block.store(words(block, after), before, PREVIOUS)
        block.emit(tirx.Evaluate(tirx.call_extern("int32", "free", pointer(address))))

    if not nested:
        return lists.function("free", "free", [int_param("area"), int_param("block")], write)
    return lists.function(("free", t), "free", [int_param("area"), int_param("block")], write)


def drop(block: Block, lists: Lists, area: Any, address: Any, t: List) -> None:
    """A reference less."""
    own = words(block, address)
    left = block.let(tirx.Sub(load(own, COUNT), idx(1)))
    block.store(own, left, COUNT)
    with block.when(tirx.EQ(left, idx(0))):
        run(block, free_function(lists, t), area, address)


def dup(block: Block, address: Any) -> None:
    """A reference more."""
    own = words(block, address)
    block.store(own, tirx.Add(load(own, COUNT), idx(1)), COUNT)


def dup_entries(block: Block, t: List, first: Any, count: Any, record: Any) -> None:
    """A reference more for all lists in some entries that were copied."""
    _, offsets, _ = entry_layout(t.elem)
    nested = [at for at, leaf in zip(offsets, leaves(t.elem), strict=True) if isinstance(leaf, List)]
    if nested:
        with block.loop(count) as i:
            for at in nested:
                dup(block, block.let(load(words(block, plus(plus(first, idx(at)), tirx.Mul(i, record))), 0)))


def own_function(lists: Lists, t: List) -> Any:
    """(area, block, entries, bytes of an entry) -> a block with room for so many, with no other reference; 0: no memory.

    Takes a reference to the block it is given.
    """

    def write(block: Block, ints: Any, area: Any, address: Any, need: Any, record: Any) -> None:
        old = words(block, address)
        count, capacity = block.let(load(old, LENGTH)), block.let(load(old, CAPACITY))
        block.store(ints, address, lists.result)
        with block.when(tirx.EQ(load(old, COUNT), idx(1))):
            with block.when(tirx.GT(need, capacity)):
                size = block.let(tirx.Add(need, tirx.Max(capacity, idx(4))))
                block.store(ints, idx(0), lists.result)
                with block.when(tirx.LT(size, idx(MOST))):
                    grown = tirx.call_extern(
                        pointer_type("uint8"), c_function("realloc"), pointer(address), bytes_of(size, record)
                    )
                    moved = block.let(call("tirx.reinterpret", "int64", grown))
                    with block.when(tirx.NE(moved, idx(0))):
                        new = words(block, moved)
                        block.store(new, size, CAPACITY)
                        before, after = block.let(load(new, PREVIOUS)), block.let(load(new, NEXT))
                        with block.when(tirx.NE(before, idx(0))):
                            block.store(words(block, before), moved, NEXT)
                        with block.otherwise():
                            block.store(ints, moved, lists.head)
                        with block.when(tirx.NE(after, idx(0))):
                            block.store(words(block, after), moved, PREVIOUS)
                        block.store(ints, moved, lists.result)
        with block.otherwise():
            run(block, make_function(lists), area, tirx.Max(need, tirx.Add(count, idx(4))), record)
            made = block.let(load(ints, lists.result))
            with block.when(tirx.NE(made, idx(0))):
                to, source = pointer(made, HEADER), pointer(address, HEADER)
                block.emit(tirx.Evaluate(tirx.call_extern("handle", "memcpy", to, source, tirx.Mul(count, record))))
                block.store(words(block, made), count, LENGTH)
                dup_entries(block, t, plus(made, idx(HEADER)), count, record)
                drop(block, lists, area, address, t)

    key = ("own", t) if any(isinstance(leaf, List) for leaf in leaves(t.elem)) else "own"
    return lists.function(
        key, "own", [int_param("area"), int_param("block"), int_param("need"), int_param("record")], write
    )


class Handle:
    """A list at hand: its address, and its words.

    Args:
        lowering: the walk.
        address: of its block.
        t: its type.
    """

    def __init__(self, lowering: Any, address: Any, t: List):
        self.lowering, self.address, self.type = lowering, address, t
        self.layout = layout(lowering, t.elem)
        self.words = words(lowering.block, address)

    def get(self, word: int) -> Any:
        """A word of the header, now."""
        return self.lowering.block.let(load(self.words, word))

    def set(self, word: int, value: Any) -> None:
        """Change a word of the header."""
        self.lowering.block.store(self.words, value, word)

    def record(self) -> Any:
        """Bytes of an entry."""
        return self.lowering.b.dim(self.layout.record)

    def inside(self, index: Any, further: int = 0) -> None:
        """Check that an index is of an entry, or of one of so many further ones, if accesses to memory are checked."""
        if self.lowering.watch is not None:
            length = plus(self.get(LENGTH), idx(further))
            self.lowering.watch.inside(self.lowering.block, "list", index, length)

    def entry(self, index: Any) -> Any:
        """The address of an entry."""
        b = self.lowering.b
        return b.let(plus(plus(self.address, idx(HEADER)), tirx.Mul(idx(index), self.record())))

    def numbers(self) -> Any:
        """The entries as a buffer, where each is one number; else None."""
        types = self.layout.types
        if len(types) != 1 or not isinstance(types[0], Scalar):
            return None
        dtype = types[0].dtype
        return words(self.lowering.block, plus(self.address, idx(HEADER)), "int8" if dtype == "bool" else dtype)


def made(lowering: Any, capacity: Any, t: List) -> Handle:
    """A new list with room for some entries."""
    lists, record = shared(lowering), lowering.b.dim(layout(lowering, t.elem).record)
    run(lowering.block, make_function(lists), lowering.state.address, idx(capacity), record)
    return result(lowering, t)


def result(lowering: Any, t: List) -> Handle:
    """What a private function has returned; MemoryError where that is nothing."""
    address = lowering.b.let(lowering.state.get(shared(lowering).result))
    with lowering.block.when(tirx.EQ(address, idx(0))):
        lowering.state.leave(NO_MEMORY)
    return Handle(lowering, address, t)
