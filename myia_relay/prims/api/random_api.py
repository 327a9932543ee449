"""The functions of `relay.random`, on staged values: keys, and draws from distributions.

A key is an np.uint64. Element i of a draw is made of the word that the generator has for counter i, so all is elementwise, and
batching, fusion and every back end follow. Floats are computed by exactly rounded operations, so a draw has the same bits in all
executors.
"""

from __future__ import annotations

import numpy as np

from ...abstract.dims import DimLike, is_known, product
from ...abstract.types import INTS, Array, Scalar
from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..ops import elementwise as P
from ..ops import random as R
from ..ops.reduction import argmax, reduce_all
from ..rules.broadcast import cast, nullary, reshape
from ..rules.relations import broadcast_shapes, normalise_axis, show_shape
from .implementations import Implementation
from .numpy_elementwise import dtype_name
from .numpy_shape import sizes_of
from .promotion import astype, describe, fit, floating, guard, is_weak, operand, python, strong, unwrap

RANDOM: dict[str, Implementation] = {}
PRECISION = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
"""How many bits the significand of a format has."""


def drawn(name: str, static=()):
    """Register a function of `relay.random`."""

    def register(rule):
        RANDOM[name] = Implementation(f"relay.random.{name}", rule, static)
        return rule

    return register


# Keys.


def key_of(b: Builder, key, what: str) -> Var:
    """A key, which is a number; or an error that says what else it is.

    Raises:
        ShapeError: these are several keys.
        TypeError_: it is no key.
    """
    made = "a key, made by relay.random.key(seed)"
    if not isinstance(key, Var):
        if not isinstance(key, np.generic) or key.dtype != np.uint64:
            raise TypeError_(f"relay.random.{what} takes {made}, and this is {key!r}")
        return python(b, key)
    if not isinstance(key.type, Scalar | Array) or key.dtype != "uint64" or is_weak(key):
        kind = describe(key.type)
        raise TypeError_(f"relay.random.{what} takes {made}, and this is {'an' if kind[0] in 'aeio' else 'a'} {kind}")
    if key.shape:
        raise ShapeError(
            f"relay.random.{what} takes one key, and this is an array of shape {show_shape(key.shape)}; take one of them, "
            f"keys[i], or draw with each: relay.vmap(lambda key: relay.random.{what}(key, ...))(keys)"
        )
    return unwrap(key)


@drawn("key")
def key(b: Builder, seed) -> Var:
    """The key of a seed.

    Args:
        b: the builder.
        seed: an int. Negative ones are taken modulo 2**64.

    Returns:
        An np.uint64.

    Raises:
        TypeError_: the seed is no int of 64 bits.

    Example:
        >>> relay.random.key(0)
        np.uint64(0)
    """
    if not isinstance(seed, Var) and isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        if not -(1 << 63) <= int(seed) < 1 << 64:
            raise TypeError_(f"relay.random.key takes a seed of 64 bits, and this is {seed}")
        return python(b, np.uint64(int(seed) % (1 << 64)))
    x = operand(b, seed, "relay.random.key: the seed")
    if x.shape or x.dtype not in INTS:
        raise TypeError_(f"relay.random.key takes an int for a seed, and this is {describe(x.type)}")
    return astype(strong(unwrap(x)), "uint64")


def words(b: Builder, key: Var, shape: tuple[DimLike, ...]) -> Var:
    """The words of counters 0, 1, 2, ... in an array; of counter 0, where that has no axes."""
    if not shape:
        return R.threefry2x32(key, key.const(0))
    flat = R.threefry2x32(key, nullary(key, "iota", n=product(shape), dtype="uint64"))
    return flat if len(shape) == 1 else reshape(flat, shape=shape)


def draw_words(b: Builder, key, shape, what: str) -> Var:
    """The words of a draw, from the key and the shape that a user gives."""
    return words(b, key_of(b, key, what), sizes_of(b, shape, f"relay.random.{what}"))


def half_words(bits: Var) -> Var:
    """32 bits of each 64: the exclusive or of their halves."""
    return cast(P.bitwise_xor(bits, P.right_shift(bits, bits.const(32))), dtype="uint32")


@drawn("split")
def split(b: Builder, key, n=2) -> Var:
    """New keys from a key, which is not to be used any more.

    Args:
        b: the builder.
        key: a key.
        n: how many, an int or a shape.

    Returns:
        An array of keys, which can be unpacked: `a, b = split(key)`.

    Example:
        >>> key = relay.random.key(0)
        >>> a, b = relay.random.split(key)
        >>> relay.random.split(key, 5).shape
        (5,)
    """
    return draw_words(b, key, n, "split")


@drawn("fold_in")
def fold_in(b: Builder, key, data) -> Var:
    """The key for the i-th of something, such as a step of a loop: element i of `split(key, n)`, for any n.

    Args:
        b: the builder.
        key: a key.
        data: an int, at run time too.

    Returns:
        A key.

    Raises:
        TypeError_: the number is no int.

    Example:
        >>> key = relay.random.key(0)
        >>> relay.random.fold_in(key, 3) == relay.random.split(key, 5)[3]
        np.True_
    """
    key = key_of(b, key, "fold_in")
    x = operand(b, data, "relay.random.fold_in: the number")
    if x.shape or x.dtype not in INTS:
        raise TypeError_(f"relay.random.fold_in takes an int, and this is {describe(x.type)}")
    return R.threefry2x32(key, astype(strong(unwrap(x)), "uint64"))


# Uniform numbers.


def float_name(dtype, what: str) -> str:
    """The float dtype that an argument names.

    Raises:
        TypeError_: it names another dtype.
    """
    name = dtype_name(getattr(dtype, "element", dtype))
    if name not in PRECISION:
        raise TypeError_(f"relay.random.{what} draws floats, and dtype is {name}")
    return name


def wide(name: str) -> str:
    """The dtype that numbers of a dtype are computed in."""
    return name if name == "float64" else "float32"


def unit(bits: Var, name: str) -> Var:
    """k / 2**p, where k is the first p bits and p the precision: all such numbers in [0, 1) are equally likely."""
    return astype(_fraction(bits, name, PRECISION[name], False), name)


def open_unit(bits: Var, name: str) -> Var:
    """(k + 1/2) / 2**(p - 1), where k is the first p - 1 bits of a format's precision p: neither 0 nor 1. In float32 for a half."""
    return _fraction(bits, wide(name), PRECISION[wide(name)] - 1, True)


def _fraction(bits: Var, name: str, kept: int, middle: bool) -> Var:
    width = 64 if name == "float64" else 32
    bits = bits if width == 64 else half_words(bits)
    top = P.right_shift(bits, bits.const(width - kept))
    # AVX2 has an instruction for signed integers of 32 bits, and for 64 bits a short sequence for unsigned ones.
    x = cast(top if width == 64 else cast(top, dtype="int32"), dtype=wide(name))
    if middle:
        x = P.add(x, x.const(0.5))
    return P.mul(x, x.const(0.5**kept))


@drawn("bits", static=("dtype",))
def bits(b: Builder, key, shape=(), dtype="uint64") -> Var:
    """Random bits.

    Args:
        b: the builder.
        key: a key.
        shape: of the result.
        dtype: uint8, uint16, uint32 or uint64.

    Raises:
        TypeError_: `dtype` is not unsigned.

    Example:
        >>> key = relay.random.key(0)
        >>> relay.random.bits(key, (2,)).dtype
        dtype('uint64')
    """
    name = dtype_name(getattr(dtype, "element", dtype))
    if not name.startswith("uint"):
        raise TypeError_(f"relay.random.bits draws unsigned integers, and dtype is {name}")
    out = draw_words(b, key, shape, "bits")
    return out if name == "uint64" else astype(half_words(out), name)


def parameter(b: Builder, x, name: str, shape: tuple[DimLike, ...], what: str) -> Var:
    """A parameter of a distribution: a number, or an array that broadcasts to the result.

    Raises:
        ShapeError: it does not broadcast to the draw's shape.
    """
    x = operand(b, x, what)
    x = fit(b, x, name) if is_weak(x) or x.dtype in INTS else astype(x, name)
    if x.shape and broadcast_shapes(what, x.shape, shape) != shape:
        raise ShapeError(f"{what} has shape {show_shape(x.shape)}, and the draw has shape {show_shape(shape)}")
    return unwrap(x)


@drawn("uniform", static=("dtype",))
def uniform(b: Builder, key, shape=(), low=0.0, high=1.0, dtype="float64") -> Var:
    """Floats between `low`, included, and `high`, as NumPy has it: `low + u * (high - low)`, u a multiple of 2**-53 (float64).

    Args:
        b: the builder.
        key: a key.
        shape: of the result.
        low: a number, or an array that broadcasts to the shape. The derivative is 1 - u.
        high: likewise; the derivative is u.
        dtype: of the result.

    Example:
        >>> key = relay.random.key(0)
        >>> x = relay.random.uniform(key, (1000,), low=2.0, high=3.0)
        >>> bool(x.min() >= 2), bool(x.max() < 3), round(float(x.mean()), 1)
        (True, True, 2.5)
    """
    name = float_name(dtype, "uniform")
    u = unit(draw_words(b, key, shape, "uniform"), name)
    if not isinstance(low, Var) and not isinstance(high, Var) and (low, high) == (0, 1):
        return u
    u = astype(u, wide(name))
    low, high = (
        parameter(b, x, wide(name), u.shape, f"relay.random.uniform: {end}")
        for x, end in ((low, "low"), (high, "high"))
    )
    return astype(P.add(low, R.rounded(P.mul(u, P.sub(high, low)))), name)


@drawn("normal", static=("dtype",))
def normal(b: Builder, key, shape=(), dtype="float64") -> Var:
    """Standard normal numbers: mean 0, standard deviation 1. Scale them yourself: `mean + std * normal(key, shape)`.

    Args:
        b: the builder.
        key: a key.
        shape: of the result.
        dtype: of the result.

    Example:
        >>> key = relay.random.key(0)
        >>> x = relay.random.normal(key, (3, 4))
        >>> x.shape, x.dtype
        ((3, 4), dtype('float64'))
    """
    name = float_name(dtype, "normal")
    return astype(_normal(draw_words(b, key, shape, "normal"), name), name)


def _normal(bits: Var, name: str) -> Var:
    return R.normal_from_bits(bits if name == "float64" else half_words(bits))


@drawn("exponential", static=("dtype",))
def exponential(b: Builder, key, shape=(), dtype="float64") -> Var:
    """Standard exponential numbers, -log(u): mean 1. Scale them yourself.

    Args:
        b: the builder.
        key: a key.
        shape: of the result.
        dtype: of the result.

    Example:
        >>> key = relay.random.key(0)
        >>> round(float(relay.random.exponential(key, (100_000,)).mean()), 1)
        1.0
    """
    name = float_name(dtype, "exponential")
    return astype(_exponential(draw_words(b, key, shape, "exponential"), name), name)


def _exponential(bits: Var, name: str) -> Var:
    return P.neg(R.portable_log(open_unit(bits, name)))


@drawn("gumbel", static=("dtype",))
def gumbel(b: Builder, key, shape=(), dtype="float64") -> Var:
    """Standard Gumbel numbers, -log(-log(u)).

    Args:
        b: the builder.
        key: a key.
        shape: of the result.
        dtype: of the result.

    Example:
        >>> key = relay.random.key(0)
        >>> round(float(relay.random.gumbel(key, (100_000,)).mean()), 1)
        0.6
    """
    name = float_name(dtype, "gumbel")
    return astype(_gumbel(draw_words(b, key, shape, "gumbel"), name), name)


def _gumbel(bits: Var, name: str) -> Var:
    return P.neg(R.portable_log(_exponential(bits, name)))


# Choices.


@drawn("bernoulli")
def bernoulli(b: Builder, key, p=0.5, shape=None) -> Var:
    """True with probability `p`: where a uniform number is below it. So never for p <= 0 or NaN, and always for p >= 1.

    Args:
        b: the builder.
        key: a key.
        p: a number, or an array that broadcasts to the shape.
        shape: of the result; by default that of `p`.

    Returns:
        Booleans.

    Example:
        >>> key = relay.random.key(0)
        >>> round(float(relay.random.bernoulli(key, 0.25, (100_000,)).mean()), 2)
        0.25
    """
    key, p = key_of(b, key, "bernoulli"), operand(b, p, "relay.random.bernoulli: p")
    shape = p.shape if shape is None else sizes_of(b, shape, "relay.random.bernoulli")
    p = parameter(b, p, "float64", shape, "relay.random.bernoulli: p")
    return P.lt(unit(words(b, key, shape), "float64"), p)


@drawn("categorical", static=("axis",))
def categorical(b: Builder, key, logits, axis=-1, shape=None) -> Var:
    """Class numbers with probabilities softmax(logits): where logits plus Gumbel numbers are greatest.

    Args:
        b: the builder.
        key: a key.
        logits: (..., classes), floats.
        axis: of the classes.
        shape: of the result; by default that of the logits without the axis, and that must be its end.

    Returns:
        int64 numbers.

    Raises:
        ShapeError: there are no classes, or the shape does not end with that of the distributions.

    Example:
        >>> key = relay.random.key(0)
        >>> relay.random.categorical(key, np.array([0.0, 100.0, 0.0]))
        np.int64(1)
    """
    key = key_of(b, key, "categorical")
    x = floating(operand(b, logits, "relay.random.categorical: logits"))
    if not x.shape:
        raise ShapeError("relay.random.categorical takes an array of logits, and this is a number")
    axis = normalise_axis("relay.random.categorical", axis, x.shape)
    classes = x.shape[axis]
    if is_known((classes,)) and classes == 0:
        raise ShapeError("relay.random.categorical takes logits of at least one class, and these are empty")
    name, batch = x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :])
    shape = batch if shape is None else sizes_of(b, shape, "relay.random.categorical")
    if broadcast_shapes("relay.random.categorical", batch, shape) != shape:
        raise ShapeError(
            f"relay.random.categorical: logits of {show_shape(batch)} distributions, and the draw has shape {show_shape(shape)}"
        )
    # The axis of the classes stays where it is, counted from the end.
    place = len(shape) - (len(batch) - axis)
    x = astype(x, wide(name))
    noise = _gumbel(words(b, key, (*shape[:place], classes, *shape[place:])), name)
    return unwrap(argmax(P.add(x, noise), axis=place))


def _ordered(b: Builder, low: Var, high: Var) -> None:
    """Raise where `low` is not below `high`."""
    ok = P.lt(low, high)
    if ok.shape:
        ok = reduce_all(ok, axes=tuple(range(len(ok.shape))))
    guard(b, ok, ValueError, "relay.random.randint: low >= high")


@drawn("randint", static=("dtype",))
def randint(b: Builder, key, shape, low, high, dtype="int64") -> Var:
    """Integers from `low` to `high - 1`: low + floor(k (high - low) / 2**64), k 64 random bits.

    Probabilities differ by less than 2**-64; where `high - low` is beyond 2**32, k has 128 bits.

    Args:
        b: the builder.
        key: a key.
        shape: of the result.
        low, high: ints, or arrays that broadcast to the shape. ValueError where low >= high.
        dtype: of the result, an integer.

    Raises:
        TypeError_: a bound is no int, or `dtype` no integer dtype.

    Example:
        >>> key = relay.random.key(0)
        >>> np.unique(relay.random.randint(key, (1000,), 1, 7))
        array([1, 2, 3, 4, 5, 6])
    """
    name = dtype_name(getattr(dtype, "element", dtype))
    if name not in INTS or name == "uint64":
        raise TypeError_(f"relay.random.randint draws integers of at most 63 bits and a sign, and dtype is {name}")
    key, shape = key_of(b, key, "randint"), sizes_of(b, shape, "relay.random.randint")
    ends = []
    for x, end in ((low, "low"), (high, "high")):
        x = operand(b, x, f"relay.random.randint: {end}")
        if x.dtype not in INTS or x.dtype == "uint64":
            raise TypeError_(f"relay.random.randint: {end} is an int, and this is {describe(x.type)}")
        ends.append(parameter(b, x, "int64", shape, f"relay.random.randint: {end}"))
    low, high = ends
    _ordered(b, low, high)
    if name != "int64":
        info = np.iinfo(name)
        for ok in (P.ge(low, low.const(int(info.min))), P.le(high, high.const(int(info.max) + 1))):
            ok = reduce_all(ok, axes=tuple(range(len(ok.shape)))) if ok.shape else ok
            guard(b, ok, ValueError, f"relay.random.randint: a bound is out of range for {name}")
    span = P.sub(astype(high, "uint64"), astype(low, "uint64"))
    first = words(b, key, shape)
    out = R.mul_high(first, span)
    large = P.gt(span, span.const(1 << 32))
    if not _never(large):
        second = words(b, R.threefry2x32(key, key.const((1 << 64) - 1)), shape)
        part = P.mul(first, span)
        carried = P.lt(P.add(part, R.mul_high(second, span)), part)
        out = P.where(large, P.add(out, cast(carried, dtype="uint64")), out)
    return astype(P.add(astype(out, "int64"), low), name)


def _never(condition: Var) -> bool:
    value = getattr(condition.node, "value", None)
    return value is not None and not np.any(value)


__all__ = ["RANDOM"]
