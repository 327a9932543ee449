"""Non-temporal stores, for results that are larger than the caches.

A processor reads a cache line before it changes a part of it, and a result that fits no cache evicts what is still
needed. A store of whole vectors with LLVM's mark `!nontemporal` does neither: at 64 MiB, a copy takes 0.6 of the time.

TVM has no such store. But it links modules in LLVM's own language, so the store is a function in such a module, which
is always inlined. Its vector has to be aligned to its size, which is not guaranteed for a result: where loops over
vectors begin is therefore chosen at run time.

Input: views of results. Output: statements. Processors order such stores after all others only on request: `finish`.
"""

from __future__ import annotations

import functools
import math
import os
import platform
from typing import Any

import tvm
from tvm import tirx

from ....utils.switches import is_left_out
from ..plan import ITEM, View
from ..tir.block import Block, call, dtype_of, element, expect, idx, lanes_of, load, ramp
from ..tir.pipeline import standalone
from .kernel import address_of

USUAL = 32 << 20  # bytes of the last-level cache, if the system does not tell
_LLVM = {"float32": "float", "float64": "double"}


@functools.cache
def least() -> int:
    """Bytes of results that are worth it: half of the last cache, which other data and processes want too."""
    try:
        size = os.sysconf("SC_LEVEL3_CACHE_SIZE")
    except (AttributeError, ValueError, OSError):
        size = 0
    return (size if size > 0 else USUAL) // 2


def pays(view: View) -> bool:
    """Whether an array is a result, of floats, too large for the caches."""
    nbytes = view.storage.nbytes
    if standalone() is not None:
        return False
    wanted = view.storage.kind == "out" and view.dtype in _LLVM and isinstance(nbytes, int) and nbytes >= least()
    return wanted and not is_left_out("nontemporal_stores")


def store(block: Block, buffer: Any, value: Any, place: Any) -> None:
    """Store a vector at a place that is a multiple of its size in memory; see `until_placed`."""
    name, source = _function(dtype_of(value))
    nothing = tirx.Evaluate(tirx.IntImm("int32", 0))
    block.emit(tirx.AttrStmt(tirx.IntImm("int32", 0), "pragma_import_llvm", tvm.ir.StringImm(source), nothing))
    block.emit(tirx.call_extern("int32", name, address_of(buffer, place), value))


def until_placed(block: Block, buffer: Any, place: Any, lanes: int, step: int = 1) -> Any:
    """How many steps of so many elements lead to a place where a vector may be stored, or as near behind one as they can.

    That is the least r with (place + r * step) % lanes == 0: an inverse of -step, times the place.
    """
    common = math.gcd(step, lanes)
    iteration = lanes // common  # steps after which the alignment repeats
    inverse = pow(-step // common, -1, iteration)
    behind = tirx.Div(_misplaced(block, buffer, place, lanes), idx(common))
    return block.let(tirx.Mod(tirx.Mul(behind, idx(inverse)), idx(iteration)))


def _misplaced(block: Block, buffer: Any, place: Any, lanes: int) -> Any:
    """By how many elements a place in memory is behind one where a vector may be stored."""
    size = ITEM[dtype_of(load(buffer, idx(0)))]
    address = call("tirx.reinterpret", "int64", address_of(buffer, place))
    return block.let(tirx.Div(tirx.bitwise_and(address, idx(size * lanes - 1)), idx(size)))


def copy(block: Block, buffer: Any, place: Any, source: Any, count: int, lanes: int) -> None:
    """Copy `count` vectors from the begin of a buffer to a place, past the caches if it lies well."""
    well = tirx.EQ(_misplaced(block, buffer, place, lanes), idx(0))

    def vectors(put: Any) -> None:
        with block.loop(count) as k:
            at = block.let(tirx.Mul(k, idx(lanes)))
            put(block.let(load(source, ramp(at, lanes))), block.let(tirx.Add(place, at)))

    with block.when(expect(well, True)):
        vectors(lambda value, at: store(block, buffer, value, at))
    with block.otherwise():
        vectors(lambda value, at: block.vstore(buffer, value, at))


def finish(block: Block) -> None:
    """Wait for all such stores: what comes after is after them for other threads too."""
    if platform.machine() in ("x86_64", "AMD64"):
        number = tvm.target.codegen.llvm_lookup_intrinsic_id("llvm.x86.sse.sfence")
        block.emit(tvm.ir.Call(tvm.ir.Op.get("tirx.call_llvm_intrin"), [tirx.IntImm("uint32", number)], ret_ty="void"))


@functools.cache
def _function(dtype: str) -> tuple[str, str]:
    """The name and the source of the function that stores a vector of a dtype."""
    name, lanes = f"myia_relay_stream_{dtype}", lanes_of(dtype)
    vector, align = f"<{lanes} x {_LLVM[element(dtype)]}>", lanes * ITEM[element(dtype)]
    return name, (
        f"define linkonce_odr i32 @{name}(ptr %place, {vector} %value) alwaysinline {{\n"
        f"  store {vector} %value, ptr %place, align {align}, !nontemporal !0\n"
        "  ret i32 0\n}\n"
        "!0 = !{i32 1}\n"
    )


__all__ = ["copy", "finish", "least", "pays", "store", "until_placed"]
