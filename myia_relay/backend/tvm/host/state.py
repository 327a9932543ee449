"""The state area in compiled code: allocation of slots, and their reads and writes; see `backend.native.area`."""

from __future__ import annotations

from typing import Any

from tvm import tirx

from ...native.area import FAILED, FIRST_FREE, SITE
from ..kernels.kernel import flat_buffer, pointer_type
from ..tir import exact
from ..tir.block import Block, call, dtype_of, idx, load


def to_float64(value: Any, dtype: str) -> Any:
    """A float of a dtype as float64, which is how it leaves a program."""
    if dtype == "bfloat16":
        value = exact.from_bfloat16(value)
    return value if dtype == "float64" else tirx.Cast("float64", value)


def from_float64(b: Block, value: Any, dtype: str) -> Any:
    """The inverse of `to_float64`."""
    if dtype == "bfloat16":
        return exact.to_bfloat16(b, tirx.Cast("float32", value))
    return value if dtype == "float64" else tirx.Cast(dtype, value)


class StateArea:
    """Access to the slots from the main function.

    Attributes:
        address: the parameter that is the area's address.
        count: slots given out so far.
        used: whether anything needs the area at all.
    """

    def __init__(self, block: Block):
        self.block = block
        self.address = tirx.Var("ws", "int64")
        self.ints = flat_buffer("slots_i", "int64")
        self.floats = flat_buffer("slots_f", "float64")
        self.count = FIRST_FREE
        self.used = False
        self.needed = False  # for more than results

    def declarations(self) -> list[Any]:
        """What goes to the top of the main function."""
        at = {d: call("tirx.reinterpret", pointer_type(d), self.address) for d in ("int64", "float64")}
        return [tirx.DeclBuffer(self.ints, data=at["int64"]), tirx.DeclBuffer(self.floats, data=at["float64"])]

    def slot(self, count: int = 1) -> int:
        """The index of a new slot (of the first of several)."""
        self.used = True
        self.count += count
        return self.count - count

    def get(self, slot: int) -> Any:
        """A slot's 64 bits as an int64 expression."""
        self.used = True
        return load(self.ints, slot)

    def number(self, slot: int, dtype: str) -> Any:
        """A slot as a number of a dtype; the inverse of `put`."""
        self.used = True
        if dtype.startswith(("float", "bfloat")):
            return from_float64(self.block, load(self.floats, slot), dtype)
        value = load(self.ints, slot)
        return tirx.NE(value, idx(0)) if dtype == "bool" else value if dtype == "int64" else tirx.Cast(dtype, value)

    def put(self, slot: int, value: Any, number: str = "") -> None:
        """Store a number: floats as float64, anything else as the int64 with its bits.

        Args:
            slot: where.
            value: an expression.
            number: the dtype of the number; by default that of the expression.
        """
        self.used = True
        dtype = number or dtype_of(value)
        if dtype.startswith(("float", "bfloat")):
            self.block.store(self.floats, to_float64(value, dtype), slot)
        else:
            self.block.store(self.ints, value if dtype == "int64" else tirx.Cast("int64", value), slot)

    def fail(self, site: int, status: int = FAILED) -> None:
        """Leave the program: it failed at a site."""
        self.put(SITE, idx(site))
        self.leave(status)

    def leave(self, status: int) -> None:
        """Return a status from the main function."""
        self.used = self.needed = True
        self.block.emit(tirx.Return(tirx.IntImm("int64", status)))
