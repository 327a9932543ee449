"""Timing of compiled programs by themselves: which readings of the processor's clock are emitted where.

`backend.native.timing` says what a region is. A kernel is one; so is a loop, or a function that is called, that contains no
kernels, since readings inside of it would change what they measure. Everything else that the main function does until the
next kernel is a region of the kind "host".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tvm
from tvm import tirx
from tvm.ir import PrimType

from ....abstract.dims import product
from ....abstract.types import Array
from ....ir.node import Apply, Graph, applies
from ....ir.prim import Primitive, update_of
from ....ir.rewrite import all_graphs, inner_graphs
from ....opt.analysis.fusion import is_scalar
from ...native.timing import BEGIN, COUNT, EVENTS, FIRST_EVENT, FIRST_REGION, LAST, TimedRegion, Timing
from ..kernels.kernel import Kernel, buffer_parameter, pointer_type
from ..plan import ITEM
from ..tir.block import Block, call, idx, llvm, load

UPDATES = ("dynamic_update", "dynamic_update_slice")
CONTROL = ("cond", "for_loop", "while_loop", "vector_while")


class Clock:
    """The readings of a program.

    Attributes:
        regions: what is timed, by number.
        slot: of the state area, with the address of the memory for the times.
    """

    def __init__(self, state: Any):
        self.slot = state.slot()
        state.needed = True
        self.regions: list[TimedRegion] = []
        self.waiting: list[Apply] = []  # what the main function has computed since the last reading
        self.paused = 0

    def timing(self) -> Timing:
        """The memory; all regions are known."""
        return Timing(self.regions)

    def begin(self, lowering: Any, block: Block) -> None:
        """The first reading of a call."""
        memory = call("tirx.reinterpret", pointer_type("int64"), lowering.state.get(self.slot))
        var = _function(lowering, "begin_timing", False)
        block.emit(tirx.Evaluate(lowering.called(var, [memory])))

    def end(self, lowering: Any) -> None:
        """The last reading of a call: what comes after the last kernel."""
        self.reading(lowering, TimedRegion("host", "", self.waiting))

    def reading(self, lowering: Any, region: TimedRegion) -> None:
        """A reading here, where a region ends."""
        number = len(self.regions)
        region.loops = around(lowering)
        self.regions.append(region)
        self.waiting = []
        memory = call("tirx.reinterpret", pointer_type("int64"), lowering.state.get(self.slot))
        var = _function(lowering, "take_time", True)
        lowering.block.emit(tirx.Evaluate(lowering.called(var, [memory, idx(number)])))

    def between(self, lowering: Any, following: list[Apply]) -> None:
        """A reading before a region that begins here: what comes before it is one as well."""
        if not self.paused:
            self.reading(lowering, TimedRegion("host", "", self.waiting or following))

    def kernel(self, lowering: Any, region: TimedRegion) -> None:
        """A reading after a kernel."""
        if not self.paused:
            self.reading(lowering, region)

    def leave(self, lowering: Any, before: int) -> None:
        """A reading at the end of a graph, if there were any in it since there were `before` regions."""
        if not self.paused and len(self.regions) > before and self.waiting:
            self.reading(lowering, TimedRegion("host", "", self.waiting))

    @contextmanager
    def of(self, lowering: Any, node: Apply) -> Iterator[None]:
        """The code of one application."""
        called = isinstance(node.fn, Graph)
        if self.paused or not (called or node.fn.name in CONTROL):
            if not _is_kernel(node):
                self.waiting.append(node)
            yield
        elif any(has_kernels(g) for g in inner_graphs(node)):
            self.between(lowering, [node])
            yield
        elif not called and node.fn.name == "cond":  # too little to be timed by itself
            self.paused += 1
            yield
            self.paused -= 1
            self.waiting.append(node)
        else:
            self.between(lowering, [node])
            self.paused += 1
            yield
            self.paused -= 1
            self.reading(lowering, TimedRegion("call" if called else "loop", node.fn.name, [node]))


def region_of(kernel: Kernel, name: str, nodes: list[Apply]) -> TimedRegion:
    """The region of a kernel."""
    views = {id(view.storage): view for _, view, _ in kernel._buffers.values() if view.storage.name != "scratch"}
    arrays = [(view.storage, product(view.shape) * ITEM[view.dtype]) for view in views.values()]
    part: Any = nodes[0].args[1].type if len(nodes) == 1 and applies(nodes[0], *UPDATES) else None
    if isinstance(part, Array) and len(arrays) == 2:  # in place: of the array it touches as much as it is given
        arrays = [(storage, product(part.shape) * ITEM[part.dtype]) for storage, _ in arrays]
    return TimedRegion("kernel", name, nodes, arrays, around(kernel.lowering), kernel.body.library)


def around(lowering: Any) -> list[Apply]:
    """The applications in whose graphs code is being emitted, outermost first."""
    return [scope.caller for scope in lowering.scopes if scope.caller is not None]


def has_kernels(graph: Graph) -> bool:
    """Whether native code for a graph may call kernels: it computes arrays, not only numbers and elements of arrays."""
    return any(_is_kernel(node) for g in all_graphs(graph) for node in g.nodes)


def _is_kernel(node: Apply) -> bool:
    if not isinstance(node.fn, Primitive) or node.fn.view or update_of(node) is not None:
        return False
    if node.fn.kind in ("reduce", "opaque"):
        return True
    return (
        node.fn.kind in ("elementwise", "injective")
        and getattr(node.type, "shape", ()) != ()
        and not is_scalar(node.type)
    )


def _function(lowering: Any, name: str, adds: bool) -> Any:
    """A function of a program that takes a reading, made where there is none."""
    key = (name,)
    if (var := lowering.helpers.get(key)) is None:
        var = lowering.helpers[key] = tvm.ir.GlobalVar(name)
        memory, buffer, declaration = buffer_parameter("times", "int64")
        region = tirx.Var("region", "int64")
        block = Block()
        now = block.let(llvm("readcyclecounter", "int64"))
        if adds:
            _take(block, buffer, region, now)
        else:
            block.store(buffer, now, BEGIN)
        block.store(buffer, now, LAST)
        params = [memory, region] if adds else [memory]
        lowering.functions[var] = tirx.PrimFunc(
            params, tirx.SeqStmt([declaration, block.stmt()]), ret_type=PrimType("int32")
        )
        lowering.sizes[var] = block.size
    return var


def _take(block: Block, buffer: Any, region: Any, now: Any) -> None:
    """Add what has passed to a region's cycles, and record the reading while there is room."""
    at = block.let(tirx.Add(tirx.Mul(region, idx(2)), idx(FIRST_REGION)))
    cycles = tirx.Sub(now, load(buffer, LAST))
    block.store(buffer, tirx.Add(load(buffer, at), cycles), at)
    block.store(buffer, tirx.Add(load(buffer, tirx.Add(at, idx(1))), idx(1)), tirx.Add(at, idx(1)))
    count = block.let(load(buffer, COUNT))
    block.store(buffer, tirx.Add(count, idx(1)), COUNT)
    with block.when(tirx.LT(count, idx(EVENTS))):
        place = block.let(tirx.Add(tirx.Mul(count, idx(2)), idx(FIRST_EVENT)))
        block.store(buffer, region, place)
        block.store(buffer, now, tirx.Add(place, idx(1)))


__all__ = ["Clock", "has_kernels", "region_of"]
