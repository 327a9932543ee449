"""More of `relay.random`, on staged values: gamma and truncated normal numbers, permutations."""

from __future__ import annotations

from ...abstract.types import Array
from ...ir.build import Builder, Var
from ...utils.errors import TypeError_
from ..ops import elementwise as P
from ..ops import random as R
from ..ops import special as S
from ..ops.indexing import take
from ..ops.reduction import reduce_all
from ..rules.broadcast import nullary
from ..rules.relations import broadcast_shapes, normalise_axis
from .numpy_shape import sizes_of
from .promotion import astype, guard, operand, static_size, strong, unwrap
from .random_api import drawn, float_name, key_of, open_unit, parameter, words

SMALLEST = 1e-300


@drawn("gamma", static=("dtype",))
def gamma(b: Builder, key, a, shape=None, dtype="float64") -> Var:
    """Gamma numbers of shape `a` and scale 1. Scale them yourself.

    The derivative by `a` is implicit: of the number below which the probability stays what it is. There is no second one.

    Args:
        b: the builder.
        key: a key.
        a: a positive number, or an array that broadcasts to the shape; NaN where it is not positive.
        shape: of the result; by default that of `a`.
        dtype: of the result.

    Example:
        >>> key = relay.random.key(0)
        >>> round(float(relay.random.gamma(key, 2.0, (100_000,)).mean()), 1)
        2.0
    """
    name, key = float_name(dtype, "gamma"), key_of(b, key, "gamma")
    a = operand(b, a, "relay.random.gamma: a")
    shape = a.shape if shape is None else sizes_of(b, shape, "relay.random.gamma")
    a = parameter(b, a, "float64", shape, "relay.random.gamma: a")
    return astype(R.gamma_draw(words(b, key, shape), a), name)


@drawn("truncated_normal", static=("dtype",))
def truncated_normal(b: Builder, key, lower, upper, shape=None, dtype="float64") -> Var:
    """Standard normal numbers between `lower` and `upper`, by the inverse of the distribution function.

    Args:
        b: the builder.
        key: a key.
        lower, upper: numbers, which may be infinite, or arrays that broadcast to the shape. ValueError where lower >= upper.
        shape: of the result; by default that of the bounds.
        dtype: of the result.

    Example:
        >>> key = relay.random.key(0)
        >>> x = relay.random.truncated_normal(key, -1.0, 1.0, (1000,))
        >>> bool(abs(x).max() <= 1)
        True
    """
    name, key = float_name(dtype, "truncated_normal"), key_of(b, key, "truncated_normal")
    what = "relay.random.truncated_normal"
    lower, upper = (strong(operand(b, x, f"{what}: a bound")) for x in (lower, upper))
    shape = broadcast_shapes(what, lower.shape, upper.shape) if shape is None else sizes_of(b, shape, what)
    lower, upper = (parameter(b, x, "float64", shape, f"{what}: a bound") for x in (lower, upper))
    ok = P.lt(lower, upper)
    guard(b, reduce_all(ok, axes=tuple(range(ok.ndim))) if ok.shape else ok, ValueError, f"{what}: lower >= upper")
    zero, half, one = lower.const(0.0), lower.const(0.5), lower.const(1.0)
    # Turned round where most of it is below 0: probabilities of tails are then small numbers, which are exact.
    turned = P.lt(P.add(lower, upper), zero)
    low, high = P.where(turned, P.neg(upper), lower), P.where(turned, P.neg(lower), upper)
    above_low, above_high = (P.mul(S.erfc(P.mul(x, x.const(0.5**0.5))), half) for x in (low, high))
    u = open_unit(words(b, key, shape), "float64")
    p = P.sub(above_low, R.rounded(P.mul(u, P.sub(above_low, above_high))))
    p = P.maximum(p, p.const(SMALLEST))
    inner = P.gt(p, half)
    z = R.normal_upper_quantile(P.where(inner, P.sub(one, p), p))
    z = P.minimum(P.maximum(P.where(inner, P.neg(z), z), low), high)
    return astype(unwrap(P.where(turned, P.neg(z), z)), name)


@drawn("permutation", static=("axis",))
def permutation(b: Builder, key, x, axis=0) -> Var:
    """The numbers 0 ... n - 1, or the parts of an array along an axis, in random order.

    Args:
        b: the builder.
        key: a key.
        x: an int or an array.
        axis: of the array.

    Raises:
        TypeError_: `x` is neither.

    Example:
        >>> key = relay.random.key(0)
        >>> sorted(relay.random.permutation(key, 5))
        [np.int64(0), np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
    """
    key = key_of(b, key, "permutation")
    given = x if isinstance(x, Var) else operand(b, x, "relay.random.permutation: x")
    if isinstance(given.type, Array) and given.shape:
        axis = normalise_axis("relay.random.permutation", axis, given.shape)
        return take(given, positions(b, key, given.shape[axis]), axis=axis)
    if given.dtype != "int64":
        raise TypeError_(f"relay.random.permutation takes an int or an array, and this is {given.type}")
    return positions(b, key, static_size(b, given, "relay.random.permutation: x"))


def positions(b: Builder, key: Var, n) -> Var:
    """The numbers 0 ... n - 1 in random order."""
    return R.shuffled(R.threefry2x32(key, nullary(key, "iota", n=n, dtype="uint64")))


__all__ = ["gamma", "permutation", "truncated_normal"]
