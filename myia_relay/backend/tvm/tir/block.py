"""A collector of tirx statements, and a few helpers that keep expressions small.

Idea: TVM's mutators do not memoise, so an expression used twice is walked (and printed, and compiled) twice, and a
chain of `x = x * x + x` grows exponentially. `Block.let` names a value at little cost: by a one-element buffer in local
memory, which LLVM promotes to a register. Statement and expression builders of this package take a Block as their first
argument and emit into it.

Input: expressions and statements. Output: `Block.stmt()`, one statement.

    b = Block()
    with b.loop(n) as i:
        x = b.let(load(A, i))
        b.store(B, exact.mul(b, x, x), i)
    func = prim_func([A, B], b.stmt())

Expressions may be scalars or vectors (`float32x16`); everything here works on both. A local made inside a loop of kind
`"vectorized"` is one per lane, as it should be.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import tvm
from tvm import tirx
from tvm.ir import is_prim_expr
from tvm.target import codegen
from tvm.tirx.stmt import ForKind

from . import threads

_KINDS = {
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorized": ForKind.VECTORIZED,
    "unrolled": ForKind.UNROLLED,
}
_FLOAT_FORMAT = {"float32": ("<f", "<i", "int32"), "float64": ("<d", "<q", "int64")}


def stored(dtype: str) -> str:
    """The dtype of memory and registers for a dtype, lanes included: numbers of bfloat16 are words with their bits."""
    return dtype.replace("bfloat16", "uint16")


def dtype_of(expr: Any) -> str:
    """The dtype of an expression as text, lanes included ("float32x16")."""
    return str(expr.ty.dtype)


def element(dtype: str) -> str:
    """The dtype without its lanes: "float32x16" -> "float32"."""
    return dtype.split("x")[0]


def lanes_of(dtype: str) -> int:
    """The number of lanes of a dtype: "float32x16" -> 16, "float32" -> 1."""
    return int(dtype.split("x")[1]) if "x" in dtype else 1


def with_lanes(dtype: str, lanes: int) -> str:
    """`with_lanes("bool", 8)` -> "boolx8"."""
    return element(dtype) if lanes == 1 else f"{element(dtype)}x{lanes}"


# Nodes are immutable, and making one calls into C++: equal constants, types and operators are made once.


@functools.lru_cache(4096)
def integer(dtype: str, value: int) -> Any:
    """An integer constant."""
    return tirx.IntImm(dtype, value)


_operator = functools.cache(tvm.ir.Op.get)


@functools.lru_cache(256)
def _local_type(dtype: str, size: int) -> Any:
    """The type of a buffer on the stack."""
    return tirx.decl_buffer((size,), stored(dtype), scope="local").ty


@functools.cache
def _intrinsic(name: str) -> Any:
    """The number of an LLVM intrinsic.

    Raises:
        ValueError: LLVM has none of this name.
    """
    number = codegen.llvm_lookup_intrinsic_id(name)
    if number == 0:
        raise ValueError(f"LLVM has no intrinsic {name}")
    return tirx.IntImm("uint32", number)


def idx(value: Any) -> Any:
    """An int64 index: Python ints become constants, int32 expressions are widened."""
    if isinstance(value, int):
        return integer("int64", value)
    return value if dtype_of(value).startswith("int64") else tirx.Cast("int64", value)


def const(value: Any, dtype: str) -> Any:
    """A constant that TVM cannot fold, exact to the bit: NaN, infinities, -0.0, int64's minimum.

    Args:
        value: a Python or NumPy number or bool.
        dtype: its dtype; lanes broadcast it.

    Returns:
        For floats a `reinterpret` of the bit pattern (LLVM sees the plain constant; TVM's constructors, which fold
        `x * 0` to 0 and `x + 0.0` to x, see none). Else an integer constant.
    """
    base, lanes = element(dtype), lanes_of(dtype)
    scalar = _bits(value, base) if base in _FLOAT_FORMAT else _constant(value, base)
    return broadcast(scalar, lanes)


def _bits(value: Any, base: str) -> Any:
    """A float constant, by its bits."""
    as_float, as_int, int_dtype = _FLOAT_FORMAT[base]
    try:
        bits = struct.pack(as_float, value)
    except OverflowError:  # a float64 beyond float32's range rounds to infinity, as NumPy's cast does
        bits = struct.pack(as_float, float("inf") if value > 0 else float("-inf"))
    return _float(base, int_dtype, struct.unpack(as_int, bits)[0])


@functools.lru_cache(4096)
def _float(base: str, int_dtype: str, bits: int) -> Any:
    # TVM takes a reinterpreted zero for a null pointer.
    if not bits:
        return tirx.Cast(base, tirx.IntImm(int_dtype, 0))
    return call("tirx.reinterpret", base, tirx.IntImm(int_dtype, bits))


def _constant(value: Any, base: str) -> Any:
    """A constant that is no float of LLVM's own."""
    if base == "float16":
        return tirx.Cast(base, const(float(value), "float32"))
    if base == "bfloat16":
        with np.errstate(over="ignore"):
            return integer("uint16", int(np.asarray(value, ml_dtypes.bfloat16).view(np.uint16)))
    if base.startswith("uint") and int(value) >= 1 << 63:
        return tirx.Cast(base, integer("int64", int(value) - (1 << 64)))
    return integer(base, int(value))


def call(op: str, dtype: str | tvm.ir.Type, *args: Any) -> Any:
    """A call of a tirx builtin by its full name, with no rewriting by Python wrappers."""
    return tvm.ir.Call(_operator(op), list(args), ret_ty=dtype)


def llvm(name: str, dtype: str, *args: Any) -> Any:
    """A call of the LLVM intrinsic `llvm.<name>`; LLVM resolves its overload from `dtype` and the arguments."""
    return call("tirx.call_llvm_pure_intrin", dtype, _intrinsic(f"llvm.{name}"), *args)


def expect(condition: Any, value: bool) -> Any:
    """`condition`, a scalar, of which LLVM shall expect that it is `value`: the other way is cold code."""
    return llvm("expect", "bool", condition, tirx.IntImm("bool", int(value)))


def load(buffer: Any, *indices: Any) -> Any:
    """`buffer[indices]`."""
    return tirx.BufferLoad(buffer, [idx(i) for i in indices])


def vload(buffer: Any, offset: Any, lanes: int) -> Any:
    """`lanes` consecutive elements of a one-dimensional buffer from `offset` on (a scalar load for one lane)."""
    return load(buffer, ramp(offset, lanes))


def ramp(offset: Any, lanes: int, stride: int = 1) -> Any:
    """The index of `lanes` elements: consecutive ones, or each `stride` behind the one before."""
    if lanes == 1:
        return idx(offset)
    return tirx.Ramp(idx(offset), integer("int64", stride), integer("int32", lanes))


def broadcast(value: Any, lanes: int) -> Any:
    """A vector of `lanes` times the same scalar (the scalar itself for one lane)."""
    return value if lanes == 1 else tirx.Broadcast(value, integer("int32", lanes))


def shuffle(vectors: list[Any], picked: Iterable[int]) -> Any:
    """A vector of elements of vectors, which are counted as if they stood one behind the other."""
    return tirx.Shuffle(vectors, [integer("int32", k) for k in picked])


def is_leaf(expr: Any) -> bool:
    """Whether an expression is so small that writing it twice costs nothing: a var, a constant."""
    if isinstance(expr, tirx.Broadcast):
        return is_leaf(expr.value)
    if isinstance(expr, (tirx.Var, tirx.IntImm, tirx.FloatImm)):
        return True
    if isinstance(expr, tirx.Cast):
        return isinstance(expr.value, tirx.IntImm)
    if isinstance(expr, tvm.ir.Call):
        return expr.op.same_as(_operator("tirx.reinterpret")) and isinstance(expr.args[0], tirx.IntImm)
    return False


class Block:
    """Statements in order, with structured control opened by `with`.

    Attributes:
        size: how many statements, those inside of others included.
        library: whether it calls a function of a library (BLAS, LAPACK).
    """

    def __init__(self) -> None:
        self._stmts: list[Any] = []
        self.size = 0
        self.library = False
        # Loads returned by let(), by identity: safe to use repeatedly, since nothing else can write to their buffers.
        self._named: dict[int, Any] = {}
        # Inside a vectorized loop: its variable, its extent, and the allocations to be put in front of it.
        self._lane: tuple[Any, int, list[Any]] | None = None

    @property
    def in_vectorized_loop(self) -> bool:
        """Whether statements go into a loop of kind "vectorized", which control flow would undo."""
        return self._lane is not None

    def emit(self, stmt: Any) -> None:
        """Appends a statement, or an expression evaluated for its effect."""
        self.size += 1
        self._stmts.append(tirx.Evaluate(stmt) if is_prim_expr(stmt) else stmt)

    def local(self, dtype: str, size: int = 1, name: str = "t") -> Any:
        """Allocates `size` elements (of a vector dtype too) on the stack, in registers where LLVM can.

        Args:
            dtype: element dtype, possibly with lanes.
            size: how many; a constant, since the stack frame is laid out at compile time.
            name: for reading dumps.

        Returns:
            A one-dimensional buffer, uninitialised, alive to the end of the enclosing scope.
        """
        buffer = tirx.Var(name, _local_type(dtype, size))
        # Without the annotation, LowerTVMBuiltin turns it into a call of TVMBackendAllocWorkspace.
        alloc = tirx.AllocBuffer(buffer, annotations={"disable_lower_builtin": integer("bool", 1)})
        if self._lane is None:
            self.emit(alloc)
        else:
            self._lane[2].append(alloc)
        return buffer

    def cell(self, value: Any, name: str = "t") -> Any:
        """Allocates one element on the stack, which holds `value` until another is stored; see `local`."""
        buffer = self.local(dtype_of(value), name=name)
        self.store(buffer, value, 0)
        return buffer

    def let(self, value: Any, name: str = "t") -> Any:
        """Evaluates `value` here, once, and returns an expression for the result: itself where it comes from here."""
        if id(value) in self._named:
            return value
        dtype = dtype_of(value)
        is_bool = element(dtype) == "bool"
        # Vectors of bool do not survive TVM's flattening of buffers: keep bytes.
        kept = with_lanes("int8", lanes_of(dtype)) if is_bool else dtype
        # VectorizeLoop does not give a local one place per lane, so give it an array and index it by the lane.
        size, place = (1, 0) if self._lane is None else (self._lane[1], self._lane[0])
        buffer = self.local(kept, size, name)
        self.store(buffer, tirx.Cast(kept, value) if is_bool else value, place)
        named = load(buffer, place)
        if is_bool:
            named = tirx.NE(named, const(0, kept))
        self._named[id(named)] = named
        return named

    def once(self, value: Any) -> Any:
        """`value` itself if it is a leaf or comes from `let`, else `let(value)`."""
        return value if is_leaf(value) else self.let(value)

    def folded(self, vector: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """All lanes of a vector, whose number is a power of two, combined: one half with the other, and so on."""
        lanes = lanes_of(dtype_of(vector))
        while lanes > 1:
            lanes //= 2
            vector = self.let(combine(shuffle([vector], range(lanes)), shuffle([vector], range(lanes, 2 * lanes))))
        return vector

    def store(self, buffer: Any, value: Any, *indices: Any) -> None:
        """`buffer[indices] = value`."""
        self.emit(tirx.BufferStore(buffer, value, [idx(i) for i in indices]))

    def vstore(self, buffer: Any, value: Any, offset: Any) -> None:
        """Stores a vector (or scalar) to consecutive elements of a one-dimensional buffer."""
        self.store(buffer, value, ramp(offset, lanes_of(dtype_of(value))))

    def prefetch(self, buffer: Any, offset: Any, write: bool = True, near: int = 3) -> None:
        """Asks for the memory around an element of a one-dimensional buffer, which is about to be written or read.

        Args:
            near: how near it shall be brought, from 0 to 3, the first cache.
        """
        address = call("tirx.address_of", "handle", load(buffer, offset))
        numbers = [tirx.IntImm("int32", k) for k in (int(write), near, 1)]
        self.emit(tirx.Evaluate(call("tirx.prefetch", "void", address, *numbers)))

    def stmt(self) -> Any:
        """Everything collected so far, as one statement."""
        if not self._stmts:
            return tirx.Evaluate(tirx.IntImm("int32", 0))
        return self._stmts[0] if len(self._stmts) == 1 else tirx.SeqStmt(list(self._stmts))

    @contextmanager
    def _nested(self) -> Iterator[Block]:
        """Collects into an inner list; yields a Block that holds it afterwards."""
        inner, saved = Block(), self._stmts
        self._stmts = inner._stmts
        try:
            yield inner
        finally:
            self._stmts = saved

    @contextmanager
    def loop(self, extent: Any, kind: str = "serial", name: str = "i", begin: Any = 0) -> Iterator[Any]:
        """A counted loop; yields its int64 variable.

        Args:
            extent: trip count, an int or an expression.
            kind: "serial", "parallel" (serial too where there is one thread: programs then need no pool of them), "vectorized" or
                "unrolled" (the last two need a constant extent).
            name: of the variable.
            begin: first value.

        Raises:
            ValueError: a vectorized loop is inside of another one, does not start at 0, or has no constant extent.
        """
        var, outer = tirx.Var(name, "int64"), self._lane
        allocations: list[Any] = []
        if kind == "vectorized":
            if outer is not None or not isinstance(extent, int) or begin != 0:
                raise ValueError("a vectorized loop starts at 0, has a constant extent and no other inside")
            self._lane = (var, extent, allocations)
        with self._nested() as inner:
            yield var
        for alloc in allocations:
            self.emit(alloc)
        self._lane = outer
        if kind == "parallel" and threads.count() == 1:
            kind = "serial"
        self.emit(tirx.For(var, idx(begin), idx(extent), _KINDS[kind], inner.stmt()))

    @contextmanager
    def when(self, condition: Any) -> Iterator[None]:
        """Runs what is emitted inside if a scalar condition holds."""
        with self._nested() as inner:
            yield
        self.emit(tirx.stmt.IfThenElse(condition, inner.stmt(), None))

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """The else branch of the `when` just closed.

        Raises:
            ValueError: no `when` has just been closed.
        """
        last = self._stmts.pop()
        if not isinstance(last, tirx.stmt.IfThenElse) or last.else_case is not None:
            raise ValueError("otherwise() must follow when()")
        with self._nested() as inner:
            yield
        self.emit(tirx.stmt.IfThenElse(last.condition, last.then_case, inner.stmt()))

    @contextmanager
    def while_(self, condition: Any) -> Iterator[None]:
        """Repeats what is emitted inside while a condition (re-evaluated each time) holds."""
        with self._nested() as inner:
            yield
        self.emit(tirx.stmt.While(condition, inner.stmt()))
