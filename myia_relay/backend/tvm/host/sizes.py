"""Run-time sizes: dimensions that values decide, and the memory of arrays that have them.

Idea: a dimension is a local of the main function from where it is bound on. An array of such a size cannot be part of the arena,
which is there before the program runs: it lives in memory of its own, as large as was ever needed where it is made, and kept
between iterations and calls, so that the steady state allocates nothing. Calls of a function that are under way at once must not
share memory: in functions that call themselves it is a block as lists have (`list_blocks`), given back when the function returns.
"""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ....abstract.dims import Dim, evaluate, is_run_time, symbols
from ....abstract.types import List, Scalar
from ....ir.node import Apply
from ....utils.errors import LoweringError
from ...native.area import NO_MEMORY
from ...native.blocks import CAPACITY, HEADER
from ..kernels import opaque
from ..kernels.kernel import pointer_type
from ..plan import LEAST, Storage
from ..tir.block import call, expect, idx, load
from .list_blocks import drop, made, pointer, shared, words

BYTES = List(Scalar("int8"))
LARGEST = 1 << 46  # bytes, or elements along an axis; more cannot be meant


class Dims(dict):
    """Symbolic dimension -> expression in a function."""

    def __missing__(self, name: str) -> Any:
        raise LoweringError(
            "the native executor cannot compile this use of an array whose size a value decides: its size is not known here; use "
            '@relay(executor="interpreter")'
        )


def _bind(lowering: Any, node: Apply) -> None:
    """A local that holds the size of a dimension from here on."""
    (name,) = symbols(node.attrs["dim"])
    size = lowering.b.let(lowering.scalar(node.args[0]))
    with lowering.block.when(expect(tirx.GT(size, idx(LARGEST)), False)):
        lowering.state.leave(NO_MEMORY)
    var = tirx.Var(f"dim{name}", "int64")
    lowering.block.emit(tirx.Bind(var, size))
    lowering.dims[name] = lowering.scope.env[node] = var


def reserved(lowering: Any, storage: Storage) -> Storage:
    """A new storage; where a value decides its size, with memory: what was there before, where that is large enough."""
    if storage.kind != "arena" or not is_run_time(storage.nbytes):
        return storage
    storage.own = True
    block, b, state = lowering.block, lowering.b, lowering.state
    state.needed = True
    need = b.let(tirx.Max(b.dim(storage.nbytes), idx(LEAST)))  # of no elements the first may be read, for nothing
    assert isinstance(storage.nbytes, Dim)
    about = evaluate(storage.nbytes, lambda name: _Float(lowering.dims[name])).value
    with block.when(expect(tirx.GT(about, tirx.FloatImm("float64", float(LARGEST))), False)):
        state.leave(NO_MEMORY)
    if lowering.held is not None:
        _in_block(lowering, storage, need)
        return storage
    base = state.slot(2)
    lowering.sized.append(base)
    with block.when(expect(tirx.GT(need, state.get(base + 1)), False)):
        size = b.let(tirx.Add(need, tirx.Add(tirx.Div(need, idx(4)), idx(64))))
        old = call("tirx.reinterpret", pointer_type("uint8"), state.get(base))
        block.emit(tirx.Evaluate(tirx.call_extern("int32", "free", old)))
        state.put(base, idx(0))
        state.put(base + 1, idx(0))
        made = tirx.call_extern(pointer_type("uint8"), "malloc", size)
        address = b.let(call("tirx.reinterpret", "int64", made))
        with block.when(tirx.EQ(address, idx(0))):
            state.leave(NO_MEMORY)
        state.put(base, address)
        state.put(base + 1, size)
    block.emit(tirx.Bind(storage.var, call("tirx.reinterpret", pointer_type("uint8"), state.get(base))))
    return storage


def _in_block(lowering: Any, storage: Storage, need: Any) -> None:
    """Memory for an array of a function of which several calls may be under way at once."""
    block, b, lists = lowering.block, lowering.b, shared(lowering)
    held = lowering.cells.cell(idx(0), "held")
    lowering.held.append(held)
    before = b.let(load(held, 0))
    room = block.cell(idx(0), "room")
    with block.when(tirx.NE(before, idx(0))):
        block.store(room, load(words(block, before), CAPACITY), 0)
    with block.when(expect(tirx.GT(need, load(room, 0)), False)):
        with block.when(tirx.NE(before, idx(0))):
            drop(block, lists, lowering.state.address, before, BYTES)
        block.store(held, idx(0), 0)
        block.store(held, made(lowering, need, BYTES).address, 0)
    block.emit(tirx.Bind(storage.var, pointer(b.let(load(held, 0)), HEADER)))


def give_back(lowering: Any) -> None:
    """The end of such a function: the memory of its arrays."""
    block = lowering.block
    for held in lowering.held or ():
        address = block.let(load(held, 0))
        with block.when(tirx.NE(address, idx(0))):
            drop(block, shared(lowering), lowering.state.address, address, BYTES)


class _Float:
    """A size as a float, whose products do not wrap, for `dims.evaluate`."""

    def __init__(self, value: Any):
        self.value = value if str(value.ty.dtype) == "float64" else tirx.Cast("float64", value)

    def _with(self, other: Any, operation: Any) -> _Float:
        other = tirx.FloatImm("float64", float(other)) if isinstance(other, int) else other.value
        return _Float(operation(self.value, other))

    def __add__(self, other: Any) -> _Float:
        return self._with(other, tirx.Add)

    def __mul__(self, other: Any) -> _Float:
        return self._with(other, tirx.Mul)

    def __floordiv__(self, other: Any) -> _Float:
        return self._with(other, tirx.Div)

    __radd__, __rmul__ = __add__, __mul__


RULES = {"bind_dim": _bind, "flat_nonzero": opaque.lower}

__all__ = ["RULES", "Dims", "give_back", "reserved"]
