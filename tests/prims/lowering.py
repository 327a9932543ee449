"""The smallest back end: lowering rules evaluated on NumPy numbers, one element at a time.

It proves the rules of `prims.rules.protocol` apart from any compiler. Elementwise methods are the NumPy reference implementations
themselves; index expressions are Python ints.
"""

from __future__ import annotations

import contextlib
import itertools

import numpy as np

from myia_relay.abstract.types import Array, numpy_dtype
from myia_relay.ir.prim import REGISTRY


class Index(int):
    """An int64 index expression: closed under the operators that rules may use, and refusing others."""

    def _op(name):
        def method(self, other):
            assert isinstance(other, int) and not isinstance(other, bool), f"index {name} {type(other)}"
            return Index(getattr(int, name)(int(self), int(other)))

        return method

    __add__, __radd__, __sub__, __rsub__ = _op("__add__"), _op("__radd__"), _op("__sub__"), _op("__rsub__")
    __mul__, __rmul__, __floordiv__, __mod__ = _op("__mul__"), _op("__rmul__"), _op("__floordiv__"), _op("__mod__")

    def __bool__(self):
        raise AssertionError("a rule branches on an index expression")


class NumpyLowering:
    """`b` of the protocol on NumPy scalars."""

    def __init__(self, dtype: str = "float64"):
        self.dtype = dtype

    def const(self, value, dtype):
        return Index(value) if dtype == "int64" else numpy_dtype(dtype).type(value)

    def like(self, value, x):
        return self.const(value, np.asarray(x).dtype.name)

    def cast(self, x, dtype):
        x = np.int64(int(x)) if isinstance(x, Index) else x
        out = np.asarray(x).astype(numpy_dtype(dtype))[()]
        return Index(out) if dtype == "int64" else out

    def bitcast(self, x, dtype):
        return np.asarray(x).view(dtype)[()]

    def iterate(self, state, step, active):
        while active:
            state, active = step(state)
        return state

    def dtype_of(self, x):
        return np.asarray(x).dtype.name

    def let(self, x):
        return x

    def select(self, c, x, y):
        assert isinstance(c, bool | np.bool_)
        return x if c else y

    def dim(self, size):
        return Index(size)

    def reading(self, *sizes):
        self.asked = sizes
        return contextlib.nullcontext()

    def divisor(self, size):
        return max(self.dim(size), 1)

    def within(self, i, size):
        return False  # nothing is known here, so that every index is clamped

    def __getattr__(self, name):
        if name == "int_truediv":
            raise AttributeError(name)
        prim = REGISTRY[name]
        assert prim.kind == "elementwise", name

        def method(*args):
            args = [np.int64(int(a)) if isinstance(a, Index) else a for a in args]
            out = prim.reference(*args)
            return Index(out) if isinstance(out, np.int64) else np.asarray(out)[()]

        return method


def element(prim, b, args):
    rule = prim.lower_rule or (lambda b, *xs, **_: getattr(b, prim.name)(*xs))
    return rule(b, *args)


def lower(prim, args, attrs, in_types, out_type):
    """The value of a primitive by its lowering rule; None where it is a kernel of the back end.

    Reads outside of an array fail the test: rules clamp.
    """
    b = NumpyLowering()
    values = [np.asarray(a, dtype=numpy_dtype(t.dtype)) for a, t in zip(args, in_types, strict=True)]
    shape = out_type.shape
    out = np.zeros(shape, dtype=numpy_dtype(out_type.dtype))
    if prim.kind == "elementwise":
        spread = [np.broadcast_to(v, shape) for v in values]
        rule = prim.lower_rule or (lambda b, *xs, **_: getattr(b, prim.name)(*xs))
        for index in np.ndindex(*shape):
            out[index] = rule(b, *(_wrap(v[index]) for v in spread), **attrs)
        return out
    if prim.kind == "injective":
        reads = [_reader(v) for v in values]
        for index in np.ndindex(*shape):
            exprs = [Index(i) for i in index]
            out[index] = prim.lower_rule(b, exprs, *reads, in_types=in_types, out_type=out_type, **attrs)
        return out
    if prim.kind == "reduce":
        b.dtype = in_types[0].dtype
        init, combine = prim.lower_rule(b)
        (x,), axes = values, attrs["axes"]
        kept = [a for a in range(x.ndim) if a not in axes]
        flat = np.zeros([x.shape[a] for a in kept], dtype=x.dtype)
        for index in itertools.product(*(range(x.shape[a]) for a in kept)):
            total = init
            for inner in itertools.product(*(range(x.shape[a]) for a in axes)):
                at = dict(zip([*kept, *axes], [*index, *inner], strict=True))
                total = combine(total, _wrap(x[tuple(at[a] for a in range(x.ndim))]))
            flat[index] = total
        return flat.reshape(shape)
    return None


def _wrap(value):
    return Index(value) if isinstance(value, np.int64) else value


def _reader(array):
    def read(index):
        assert len(index) == array.ndim, "a read with the wrong number of indices"
        assert all(isinstance(i, Index) for i in index), f"an index that is no index expression: {index}"
        assert all(0 <= int(i) < n for i, n in zip(index, array.shape, strict=True)), (
            f"read of {index} in {array.shape}"
        )
        return _wrap(array[tuple(int(i) for i in index)])

    return read


__all__ = ["Array", "NumpyLowering", "lower"]
