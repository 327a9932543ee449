"""The Python side of a native program: state areas, requests of native code, and the handling of failed calls.

Idea: everything that is known at compile time is generated as one Python function (`caller`): where the leaves of the
arguments are, which arrays to allocate, how results are assembled. A call takes a state area from a list (or makes
one), so several threads may call at once and nothing is allocated again.

Native code makes a request to Python (to print, to check for signals) by calling `next` on the generator of its area. A
signal is handled as soon as Python code runs; in a generator this happens inside its `try`, so no exception escapes
into native code.

Input: machine code and its `ProgramSignature`. Output: `call(*values)` and `into(out, *values)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ...abstract.dims import DimLike
from ...abstract.types import Type
from ...utils.errors import InternalError, TypeError_
from ...utils.raising import exception_argument, format_parts, raise_at
from . import building, guards
from .area import (
    ALIGN,
    CALL,
    CALLS,
    DEEPER,
    FAILED,
    FRAME,
    GO_ON,
    INTERRUPTED,
    LARGE_FRAMES,
    LAYOUT,
    OPERAND,
    PRINT,
    REQUEST,
    SERVER,
    SITE,
    Regions,
    Slots,
    free,
    new_frames,
    round_up,
)
from .arguments import conform
from .caller import Writer
from .ending import keep_daemons, watch
from .heap import Heap, heap
from .lists import RELEASE, many_blocks, release
from .memory_checks import HEAP, VIOLATED, MemoryChecks
from .sites import Site
from .stack import continue_deeper, stack_limit

NONE, INT, FLOAT = 0, 1, 3  # types of arguments and results, as TVM numbers them
ARGUMENT = 16  # bytes of one: its type, its value


class Code(Protocol):
    """Machine code in memory. Its functions take an array of typed arguments and a place for a typed result."""

    def packed(self, name: str) -> Callable | None:
        """A function as a callable of numbers, where this process has the means to make one."""

    def bound(self, name: str, arguments: int, count: int, result: int) -> Callable[[], int]:
        """A call of a function with the addresses of its arguments and its result; returns 0 unless it broke down."""
        ...

    def invoke(self, name: str, *values: int) -> None:
        """Call a function with integers."""


@dataclass
class ProgramSignature:
    """What the caller has to know of a program.

    Attributes:
        params: types of the parameters.
        output: type of the result.
        symbols: names of symbolic dimensions, in the order in which they are passed.
        results: for each leaf of the output: ("slot", k), ("array", k), ("list", k), ("sized", k, sizes) with the slots of
            the address and the sizes of an array whose sizes values decide, "return" or "none".
        state_slots: how many slots the state area has; 0 where the program takes none.
        arena: bytes of the arena, maybe symbolic.
        presets: slot -> what it has from the start: an array (its address), a dtype or the class of arrays (their identity).
        sites: effects by number.
        by_object: whether arrays are passed as objects, not addresses.
        regions: slots that hold addresses of memory that the program allocated.
        frames: for recursive functions, the slots of the beginning and the end of the region of frames, of the address that the
            C stack must not grow below, and the size of the region.
        heap: for records, the first of the slots of their heap.
        block: for many arguments, the first of the slots that hold them; None where they are passed.
        list_head: the slot of the first block of lists; None where there are no lists.
        needs: what the code calls that is not in it: "blas", "threads".
        checks: of accesses to memory, where the code was built with some.
        trace: where the program calls functions, the slot of how many calls an error came through; their sites follow, innermost
            first, and from number `CALLS` on the outermost alone.
    """

    params: list[Type]
    output: Type
    symbols: list[str]
    results: list[Any]
    state_slots: int
    arena: DimLike
    presets: dict[int, Any]
    sites: list[Site]
    by_object: bool = True
    regions: list[int] = field(default_factory=list)
    frames: tuple[int, int, int, int] | None = None
    heap: int | None = None
    block: int | None = None
    list_head: int | None = None
    needs: list[str] = field(default_factory=list)
    checks: MemoryChecks | None = None
    trace: int | None = None


def word_of(value: Any) -> int:
    """What a preset slot holds."""
    return value.ctypes.data if isinstance(value, np.ndarray) else id(value)


class Entry:
    """The callers of one program.

    Args:
        code: the machine code, with a function "main", and for each recursive function "again0", ...: what continues it.
        signature: see `ProgramSignature`.
    """

    def __init__(self, code: Code, signature: ProgramSignature):
        self.code, self.signature = code, signature
        self.stopped: set[int] = set()  # state areas of calls that must end
        self.free: list[tuple] = []
        self.waiting: dict[int, BaseException] = {}
        self.heaps: dict[int, Heap] = {}  # heaps of calls in progress, by their state areas
        self.main = code.packed("main")
        guarded = signature.checks is not None and signature.checks.guarded
        self.give_back = guards.free if guarded else free  # of the allocator that the code uses
        self.frees = self.give_back is free and signature.checks is None
        self.has_release = many_blocks(signature.output) and signature.checks is None
        self.kinds: list[str] = []  # types of the arguments of `main`: "d" or "q", as in `struct`
        self.own: int | None = None  # the index of the area's own address among them
        self.call = self.watched(Writer(self, into=False))
        self.into = self.watched(Writer(self, into=True))

    def watched(self, writer: Writer) -> Callable:
        """A caller; the end of the interpreter knows of it."""
        caller = writer.function()
        if self.main is not None:
            watch(caller)
        return caller

    def changing(self, changes: dict[int, Callable]) -> Callable:
        """A caller that writes lists of the result into lists of the caller's; see `Writer`."""
        return self.watched(Writer(self, False, changes))

    def area(self, size: int) -> tuple:
        """A new state area with an arena of at least `size` bytes.

        Returns:
            (address, its slots as floats, as ints, size, memory), and where there is no packed `main` its block of arguments
            (as floats, as ints) and the call of `main` with them.
        """
        signature = self.signature
        head, count = round_up(signature.state_slots * 8), len(self.kinds)
        block = round_up((count + 1) * ARGUMENT) if self.main is None else 0
        raw: Any = np.zeros(block + head + size + ALIGN, np.uint8)  # a buffer; type stubs declare that from 3.12 on
        start = -raw.ctypes.data % ALIGN
        address = raw.ctypes.data + start + block
        memory = memoryview(raw[start + block : start + block + head])
        ints = memory.cast("q")
        holder: list[Any] = [raw]
        if signature.state_slots:
            server = self.serve(address)
            next(server)
            ints[SERVER] = id(server)
            holder.append(server)
        for slot, value in signature.presets.items():
            ints[slot] = word_of(value)
        if signature.regions or signature.list_head is not None:
            holder.append(Regions(raw, ints, signature.regions, signature.list_head, self.give_back))
        if signature.frames is not None and not self.borrows_frames:
            base, end, _, nbytes = signature.frames
            frames = new_frames(nbytes)
            ints[base], ints[end] = frames[0], frames[0] + nbytes
            holder.append(frames)
        area = (address, memory.cast("d"), ints, size, holder)
        if not block:
            return area
        arguments = memoryview(raw[start : start + block])
        words = arguments.cast("q")
        for k, kind in enumerate(self.kinds):
            words[2 * k] = FLOAT if kind == "d" else INT
        if self.own is not None:
            words[2 * self.own + 1] = address
        at = address - block
        return (*area, arguments.cast("d"), words, self.code.bound("main", at, count, at + count * ARGUMENT))

    @property
    def borrows_frames(self) -> bool:
        """Whether each call takes its region of frames from those that all programs share: they are large."""
        return self.signature.frames is not None and self.signature.frames[3] >= LARGE_FRAMES

    def begin(self, area: tuple) -> Heap:
        """The heap for a call's records."""
        first: Any = self.signature.heap  # there is one: else the caller has no `begin`
        self.heaps[area[0]] = found = heap().start(area[2], first)
        if self.signature.checks is not None:
            area[2][self.signature.checks.slot + HEAP] = found.base
        return found

    def leave(self, area: tuple) -> None:
        """A call with records is over."""
        found = self.heaps.pop(area[0], None)
        if found is not None:
            found.finish()

    def release(self, area: tuple) -> None:
        """Put an area back after a call that returned a status."""
        self.leave(area)
        if self.main is None:
            area[6][2 * len(self.kinds)] = NONE
        self.free.append(area)

    def fail(self, status: Any, area: tuple, values: tuple, again: Callable) -> Any:
        """Act on the status of a call that did not succeed; `again` makes the call with other values.

        Raises:
            MemoryError: the program ran out of memory.
            KeyboardInterrupt: it was interrupted; another exception where a signal's handler raised one.
            Exception: the check or `raise` of the user's program that failed, with its place.
        """
        if status == LAYOUT:
            self.release(area)
            return self._convert(values, again)
        if status == INTERRUPTED:  # this area's server may have ended with it
            self.leave(area)
            raise self.waiting.pop(area[0], None) or KeyboardInterrupt
        if status == VIOLATED and self.signature.checks is not None:
            self.leave(area)  # nobody uses the area again
            if self.signature.list_head is not None:
                area[2][self.signature.list_head] = 0  # and nobody goes along what may be no chain
            self.signature.checks.fail(area[2])
        if status != FAILED:
            self.leave(area)
            raise MemoryError("a native program ran out of memory")
        slots = Slots(area[0], self.signature.state_slots, self.heaps.get(area[0]))
        site = self.signature.sites[slots.ints[SITE]]
        operands = [operand(slots) for operand in site.operands]
        calls = []
        if (trace := self.signature.trace) is not None:
            found = slots.ints[trace + 1 : trace + 1 + min(slots.ints[trace], CALLS)]
            calls = [self.signature.sites[k].origin for k in found]
        self.release(area)
        raise_at(site.exception, exception_argument(site.text, operands), site.origin, calls)

    def release_lists(self, area: tuple) -> None:
        """Free the lists of a call whose results have been read."""
        head: Any = self.signature.list_head  # there is one: else the caller has no `release`
        if self.frees and (freed := building.release()) is not None:
            freed(area[0] + 8 * head)
        elif self.has_release:
            self.code.invoke(RELEASE, area[0])
        else:
            release(area[2], head, self.give_back)

    def broken(self, area: tuple) -> None:
        """Native code refused its arguments: a mistake of ours.

        Raises:
            InternalError: always.
        """
        raise InternalError("native", "a native program refused its arguments")

    def _convert(self, values: tuple, again: Callable) -> Any:
        """Call again with arrays as the program needs them: the slow path for strided, foreign or foreign-endian arrays.

        Raises:
            TypeError_: nothing can be converted: the arguments do not fit the program.
        """
        good = tuple(conform(v, t, f"argument {i}") for i, (v, t) in enumerate(zip(values, self.signature.params)))
        if self.signature.symbols:
            from ...abstract.bind import bind_symbols

            bind_symbols(self.signature.params, good)
        if all(a is b for a, b in zip(good, values)):
            raise TypeError_("the arguments do not fit the compiled program")
        return again(*good)

    # Requests of native code.

    def serve(self, address: int) -> Iterator[int]:
        """Serves the requests of calls in an area: each `next` is one, and yields whether to go on.

        What is raised meanwhile waits, whatever it is, and continues in the caller of the program.
        """
        ints = Slots(address, self.signature.state_slots).ints
        answer = 0
        while True:
            try:
                while True:
                    yield answer
                    answer = 0
                    self.request(ints, address)
                    answer = GO_ON
            except GeneratorExit:
                return
            except BaseException as error:
                self.waiting[address] = error
                answer = 0

    def request(self, ints: Any, address: int) -> None:
        """Serve one request. Signals are handled as soon as Python code runs; this is some.

        Raises:
            KeyboardInterrupt: the call was interrupted on another thread.
        """
        keep_daemons()
        if address in self.stopped:  # interrupts of other threads are delivered here
            raise KeyboardInterrupt
        kind = ints[REQUEST]
        if kind == PRINT:
            site = self.signature.sites[ints[OPERAND]]
            slots = Slots(address, self.signature.state_slots, self.heaps.get(address))
            print(format_parts(site.text, [operand(slots) for operand in site.operands]), end=site.end)
        elif kind == CALL:
            from ...prims.ops.registered import call_registered  # most programs run without importing the primitives

            site = self.signature.sites[ints[OPERAND]]
            slots = Slots(address, self.signature.state_slots, self.heaps.get(address))
            found = call_registered(site.origin, [operand(slots) for operand in site.operands], *site.call)
            for result, value in zip(site.results, found if isinstance(found, tuple) else (found,), strict=True):
                result.store(slots, value)
        elif kind == DEEPER:
            self.deeper(ints, address, ints[OPERAND], ints[FRAME])

    def deeper(self, ints: Any, address: int, number: int, frame: int) -> None:
        """Continue a recursive function on a larger C stack, with a server of its own."""
        assert self.signature.frames is not None
        limit = self.signature.frames[2]
        before, server = ints[limit], self.serve(address)
        asking = ints[SERVER]
        next(server)

        def run() -> None:
            ints[limit], ints[SERVER] = stack_limit(), id(server)
            self.code.invoke(f"again{number}", address, frame)

        try:
            continue_deeper(run, lambda: self.stopped.add(address))
        finally:
            self.stopped.discard(address)
            ints[limit], ints[SERVER] = before, asking
