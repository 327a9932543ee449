"""The `b` of lowering rules: one method for each elementwise primitive, on tirx expressions.

One class has two modes. In the main function, scalars are exact: products are fenced, and transcendentals are libm's,
as in CPython. In array kernels (`array=True`) products may fuse into FMAs, and transcendentals are vector polynomials
(`vecmath`). Operands may be vectors; a scalar among vectors is broadcast.

Input: a `Block`, into which temporaries go, and expressions. Output: expressions. Protocol:
`prims.rules.protocol.Lowering`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm import tirx

from ....abstract.dims import Dim, evaluate
from ....opt.analysis.intervals import Interval
from . import exact, random_bits, vecmath
from .block import (
    Block,
    broadcast,
    call,
    const,
    dtype_of,
    element,
    idx,
    is_leaf,
    lanes_of,
    llvm,
    load,
    ramp,
    stored,
    with_lanes,
)
from .indexing import at_least_one

_VECMATH = ("exp", "expm1", "tanh", "sigmoid", "log", "log1p", "sin", "cos", "erf")
_LIBM = {
    "exp": "exp", "expm1": "expm1", "log": "log", "log1p": "log1p", "log2": "log2", "log10": "log10", "erf": "erf",
    "sin": "sin", "cos": "cos", "tan": "tan", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh", "cbrt": "cbrt",
    "exp2": "exp2", "erfc": "erfc", "lgamma": "lgamma", "gammaln": "lgamma", "gamma": "tgamma",
}  # fmt: skip
_LIBM2 = {"arctan2": "atan2", "hypot": "hypot", "copysign": "copysign", "fmod": "fmod", "nextafter": "nextafter"}


def is_half(dtype: str) -> bool:
    """Whether arithmetic on a dtype is done in float32. (On bfloat16 there is none, see `opt.kernels.widen_bfloat16`.)"""
    return element(dtype) == "float16"


def constant(value: Any, dtype: str) -> Any:
    """A constant of any dtype; see `block.const`."""
    if element(dtype) == "float16":
        return tirx.Cast(dtype, const(float(value), with_lanes("float32", lanes_of(dtype))))
    return const(value, dtype)


class Expr:
    """The protocol object.

    Attributes:
        block: where temporaries go; the caller swaps it as it enters and leaves loops.
        dims: name of a symbolic dimension -> its int64 expression.
        array: whether contraction and polynomial transcendentals are allowed.
        dtype: in the rule of a reduction, the dtype that it accumulates in.
        guards: conditions under which memory is read.
        bounds: what range analysis knows of integers, by the identities of their expressions, which are kept alive. A place
            that is read as another node (narrower in a branch) has the bounds of the node that was read last.
    """

    def __init__(self, block: Block, dims: dict[str, Any], array: bool):
        self.block = block
        self.dims = dims
        self.array = array
        self.dtype = ""
        self.guards: tuple[Any, ...] = ()
        self.bounds: dict[int, tuple[Any, Interval]] = {}

    # --- shapes of expressions --------------------------------------------------------------------------------------

    def widen(self, *xs: Any) -> list[Any]:
        """The operands with one number of lanes, Python numbers as int64 indices."""
        xs = tuple(idx(int(x)) if isinstance(x, int | bool) else x for x in xs)
        lanes = max(lanes_of(dtype_of(x)) for x in xs)
        return [x if lanes == lanes_of(dtype_of(x)) else broadcast(x, lanes) for x in xs]

    def const(self, value: Any, dtype: str) -> Any:
        return constant(value, dtype)

    def like(self, value: Any, x: Any) -> Any:
        return self.const(value, element(dtype_of(x)))

    def dim(self, size: Any) -> Any:
        return evaluate(size, self.dims.__getitem__) if isinstance(size, Dim) else idx(int(size))

    def divisor(self, size: Any) -> Any:
        return at_least_one(self.dim(size))

    def know(self, value: Any, bounds: Interval | None) -> None:
        """An expression that is about to be used has these bounds."""
        if bounds is not None:
            self.bounds[id(value)] = (value, bounds)

    def within(self, i: Any, size: Any) -> bool:
        _, (low, high) = self.bounds.get(id(i), (i, (-1, -1)))
        return isinstance(size, int) and 0 <= low and high < size

    @contextmanager
    def reading(self, *sizes: Any) -> Iterator[None]:
        before = self.guards
        self.guards += tuple(tirx.GT(self.dim(size), idx(0)) for size in sizes if not isinstance(size, int))
        try:
            yield
        finally:
            self.guards = before

    def let(self, x: Any) -> Any:
        """`x`, evaluated here once."""
        return x if is_leaf(x) else self.block.let(x)

    # --- arithmetic -------------------------------------------------------------------------------------------------

    def add(self, x, y):
        x, y = self.widen(x, y)
        return exact.add(x, y) if exact.is_float(x) else exact.wrapping_add(x, y)

    def sub(self, x, y):
        x, y = self.widen(x, y)
        return exact.sub(x, y) if exact.is_float(x) else exact.wrapping_sub(x, y)

    def mul(self, x, y):
        x, y = self.widen(x, y)
        return exact.mul(x, y, contract=self.array) if exact.is_float(x) else exact.wrapping_mul(x, y)

    def div(self, x, y):
        return exact.div(*self.widen(x, y))

    def neg(self, x):
        return exact.neg(x)

    def abs(self, x):
        return x if dtype_of(x).startswith("uint") else exact.absolute(self.block, x)

    def sign(self, x):
        if dtype_of(x).startswith("uint"):
            return tirx.Cast(dtype_of(x), exact.ne(x, exact.like(0, x)))
        return exact.sign(self.block, x)

    def _divmod(self, x, y, which):
        x, y = self.widen(x, y)
        if exact.is_float(x):
            return exact.float_divmod(self.block, x, y)[which]
        if dtype_of(x).startswith("uint"):
            y = self.let(y)
            zero, one = exact.like(0, y), exact.like(1, y)
            by_zero = self.let(tirx.EQ(exact.ordered(y), exact.ordered(zero)))
            safe = self.let(tirx.Select(by_zero, one, y))
            return tirx.Select(by_zero, zero, (tirx.Mod if which else tirx.Div)(x, safe))
        return exact.int_divmod(self.block, x, y)[which]

    def floordiv(self, x, y):
        return self._divmod(x, y, 0)

    def mod(self, x, y):
        return self._divmod(x, y, 1)

    def int_truediv(self, x, y):
        x, y = self.widen(x, y)
        if lanes_of(dtype_of(x)) == 1:
            return exact.int_truediv(self.block, x, y)
        return self.div(self.cast(x, "float64"), self.cast(y, "float64"))

    def pow(self, x, y):
        x, y = self.widen(x, y)
        return (
            self._via_float32(lambda a, c: exact.libm("pow", a, c), x, y) if exact.is_float(x) else self._int_pow(x, y)
        )

    def _int_pow(self, x, y):
        """Square and multiply; a negative exponent gives 0."""
        b, dtype = self.block, dtype_of(x)
        zero, one = exact.like(0, x), exact.like(1, x)
        negative = exact.like(False, tirx.EQ(x, x)) if dtype.startswith("uint") else tirx.LT(y, zero)
        base = b.cell(x)
        left, out = (b.cell(tirx.Select(negative, zero, value)) for value in (y, one))
        bits = int("".join(c for c in element(dtype) if c.isdigit()))

        def step():
            odd = exact.ne(tirx.BitwiseAnd(load(left, 0), one), zero)
            b.store(out, tirx.Select(odd, exact.wrapping_mul(load(out, 0), load(base, 0)), load(out, 0)), 0)
            b.store(base, exact.wrapping_mul(load(base, 0), load(base, 0)), 0)
            b.store(left, exact.shift_right(b, load(left, 0), one), 0)

        if lanes_of(dtype) == 1:
            with b.while_(exact.ne(load(left, 0), zero)):
                step()
        else:
            with b.loop(bits):
                step()
        return b.let(load(out, 0))

    def maximum(self, x, y):
        return self._extremum(exact.maximum, self.logical_or, x, y)

    def minimum(self, x, y):
        return self._extremum(exact.minimum, self.logical_and, x, y)

    def _extremum(self, of_numbers, of_bools, x, y):
        x, y = self.widen(x, y)
        return of_bools(x, y) if element(dtype_of(x)) == "bool" else of_numbers(self.block, x, y)

    # --- functions --------------------------------------------------------------------------------------------------

    def _via_float32(self, f, *xs):
        dtype = dtype_of(xs[0])
        if not is_half(dtype):
            return f(*xs)
        wide = with_lanes("float32", lanes_of(dtype))
        return tirx.Cast(dtype, f(*[self.block.let(tirx.Cast(wide, x)) for x in xs]))

    def _libm(self, name, *xs):
        """A libm function, lane by lane where it has no vector form."""
        lanes = lanes_of(dtype_of(xs[0]))
        if lanes == 1 or name in exact._INTRINSIC:
            return exact.libm(name, *xs)
        b, scalar = self.block, element(dtype_of(xs[0]))
        spills = [b.local(scalar, lanes) for _ in xs]
        for spill, x in zip(spills, xs):
            b.vstore(spill, x, 0)
        into = b.local(scalar, lanes)
        with b.loop(lanes, name="lane") as lane:
            b.store(into, exact.libm(name, *[load(s, lane) for s in spills]), lane)
        return load(into, ramp(0, lanes))

    def _function(self, name, x):
        x = self.let(x)
        if self.array and name in _VECMATH and hasattr(vecmath, name):
            return self._via_float32(lambda v: getattr(vecmath, name)(self.block, v), x)
        if name == "sigmoid":
            one = exact.like(1.0, x)
            return exact.div(one, exact.add(one, self._function("exp", exact.neg(x))))
        return self._via_float32(lambda v: self._libm(_LIBM[name], v), x)

    def __getattr__(self, name):
        if name in _LIBM or name == "sigmoid":
            return lambda x: self._function(name, x)
        if name in _LIBM2:
            return lambda x, y: self._via_float32(lambda a, c: self._libm(_LIBM2[name], a, c), *self.widen(x, y))
        raise AttributeError(name)

    def sqrt(self, x):
        return exact.sqrt(x)

    def floor(self, x):
        return exact.floor(x)

    def ceil(self, x):
        return exact.ceil(x)

    def trunc(self, x):
        return exact.trunc(x)

    def rint(self, x):
        return exact.rint(x)

    # --- tests and logic --------------------------------------------------------------------------------------------

    def isnan(self, x):
        return exact.isnan(self.let(x))

    def isinf(self, x):
        return tirx.EQ(exact.absolute(self.block, x), exact.like(math.inf, x))

    def isfinite(self, x):
        return tirx.LT(exact.absolute(self.block, x), exact.like(math.inf, x))

    def _compare(self, node, x, y):
        x, y = self.widen(x, y)
        if element(dtype_of(x)) == "bool":
            as_int = with_lanes("int8", lanes_of(dtype_of(x)))
            x, y = tirx.Cast(as_int, x), tirx.Cast(as_int, y)
        return node(exact.ordered(x), exact.ordered(y))

    def eq(self, x, y):
        return self._compare(tirx.EQ, x, y)

    def ne(self, x, y):
        return self._compare(exact.ne, x, y)

    def lt(self, x, y):
        return self._compare(tirx.LT, x, y)

    def le(self, x, y):
        return self._compare(tirx.LE, x, y)

    def gt(self, x, y):
        return self._compare(tirx.GT, x, y)

    def ge(self, x, y):
        return self._compare(tirx.GE, x, y)

    def logical_not(self, x):
        return tirx.Not(x)

    def logical_and(self, x, y):
        return tirx.And(*self.widen(x, y))

    def logical_or(self, x, y):
        return tirx.Or(*self.widen(x, y))

    def logical_xor(self, x, y):
        return self._compare(exact.ne, x, y)

    def where(self, c, x, y):
        return tirx.Select(*self.widen(c, x, y))

    select = where

    def _bitwise(self, node, logic, x, y):
        x, y = self.widen(x, y)
        return logic(x, y) if element(dtype_of(x)) == "bool" else node(x, y)

    def bitwise_and(self, x, y):
        return self._bitwise(tirx.BitwiseAnd, self.logical_and, x, y)

    def bitwise_or(self, x, y):
        return self._bitwise(tirx.BitwiseOr, self.logical_or, x, y)

    def bitwise_xor(self, x, y):
        return self._bitwise(tirx.BitwiseXor, self.logical_xor, x, y)

    def bitwise_not(self, x):
        return tirx.BitwiseXor(
            x, constant(-1, dtype_of(x)) if dtype_of(x).startswith("int") else _all_ones(dtype_of(x))
        )

    def left_shift(self, x, y):
        return exact.shift_left(self.block, *self.widen(x, y))

    def right_shift(self, x, y):
        return exact.shift_right(self.block, *self.widen(x, y))

    def add_overflows(self, x, y):
        if isinstance(y, tirx.IntImm) and y.value:  # one comparison, while the sum itself may stay elsewhere
            return exact.beyond(x, y.value)
        return exact.checked_add(self.block, *self.widen(x, y))[1]

    def sub_overflows(self, x, y):
        if isinstance(y, tirx.IntImm) and y.value:
            return exact.beyond(x, -y.value)
        return exact.checked_sub(self.block, *self.widen(x, y))[1]

    def mul_overflows(self, x, y):
        return exact.checked_mul(self.block, *self.widen(x, y))[1]

    def stop_gradient(self, x):
        return x

    # --- random numbers ---------------------------------------------------------------------------------------------

    def threefry2x32(self, x, y):
        return random_bits.threefry2x32(self.block, x, y)

    def rounded(self, x):
        return exact.fence(x)

    def from_bfloat16(self, x):
        return exact.from_bfloat16(x)

    def bitcast(self, x, dtype: str):
        dtype = with_lanes(stored(dtype), lanes_of(dtype_of(x)))
        return x if dtype == dtype_of(x) else call("tirx.reinterpret", dtype, x)

    def iterate(self, state, step, active):
        """A loop over vectors: as long as there is a lane that goes on."""
        block, lanes = self.block, max(lanes_of(dtype_of(x)) for x in (*state, active))
        cells = [block.cell(broadcast(x, lanes) if lanes_of(dtype_of(x)) < lanes else x) for x in state]
        flags = with_lanes("int32", lanes)
        active = active if lanes_of(dtype_of(active)) == lanes else broadcast(active, lanes)
        going = block.cell(tirx.Cast(flags, active))
        zero = tirx.IntImm("int32", 0)

        def some():
            return load(going, 0) if lanes == 1 else llvm("vector.reduce.or", "int32", load(going, 0))

        with block.while_(tirx.NE(some(), zero)):
            new, go_on = step(tuple(block.let(load(cell, 0)) for cell in cells))
            here = block.let(exact.ne(load(going, 0), exact.like(0, load(going, 0))))
            for cell, x in zip(cells, new, strict=True):
                block.store(cell, tirx.Select(here, x, load(cell, 0)), 0)
            block.store(going, tirx.Cast(flags, self.logical_and(here, go_on)), 0)
        return tuple(block.let(load(cell, 0)) for cell in cells)

    def dtype_of(self, x) -> str:
        return element(dtype_of(x))

    # --- conversion -------------------------------------------------------------------------------------------------

    def cast(self, x, dtype: str):
        """As NumPy's `astype` on this architecture: see `exact.float_to_int` for what does not fit."""
        source, lanes = dtype_of(x), lanes_of(dtype_of(x))
        if element(source) == dtype:
            return x
        if dtype == "bfloat16":
            return exact.to_bfloat16(self.block, x)
        if not exact.is_float(x) or dtype == "bool" or dtype.startswith("float"):
            return exact.cast(dtype, x)
        x = self.let(tirx.Cast(with_lanes("float32", lanes), x) if is_half(source) else x)
        if dtype == "uint64":
            limit = exact.like(2.0**63, x)
            high = self.let(tirx.GE(x, limit))
            low, _ = exact.float_to_int(self.block, tirx.Select(high, tirx.Sub(x, limit), x))
            bits = exact.wrapping_add(low, tirx.Select(high, exact.like(-(1 << 63), low), exact.like(0, low)))
            return tirx.Cast(with_lanes("uint64", lanes), bits)
        if dtype == "uint32":
            return tirx.Cast(with_lanes(dtype, lanes), exact.float_to_int(self.block, x)[0])
        if dtype in (
            "int8",
            "int16",
            "uint8",
            "uint16",
        ):  # what is beyond 32 bits is 0: the low bits of int32's minimum
            return tirx.Cast(with_lanes(dtype, lanes), exact.float_to_int(self.block, x, "int32")[0])
        return exact.float_to_int(self.block, x, dtype)[0]


def _all_ones(dtype: str) -> Any:
    bits = int("".join(c for c in element(dtype) if c.isdigit()))
    return call("tirx.reinterpret", dtype, constant(-1, with_lanes(f"int{bits}", lanes_of(dtype))))
