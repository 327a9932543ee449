"""NumPy's elementwise functions and dtype constructors."""

from __future__ import annotations

import math

import numpy as np

from ...abstract.types import FLOATS, INTS, Array, Scalar, numpy_dtype
from ...ir.build import Builder, Var
from ...utils.errors import TypeError_
from ..ops import elementwise as P
from ..ops import special as S
from ..ops.control import stop_gradient
from ..rules.broadcast import as_array, as_scalar, broadcast_to, cast, reshape
from ..rules.relations import broadcast_shapes
from . import arithmetic as A
from .array_indices import nonzero
from .implementations import IMPLEMENTATIONS, implements, method
from .promotion import (
    agreeing,
    as_int,
    astype,
    fit,
    floating,
    floating_pair,
    is_static,
    is_weak,
    operand,
    promote,
    result_dtype,
    static_index,
    static_value,
    strong,
    unwrap,
    weak,
)


def dtype_name(dtype) -> str:
    """The name of a dtype as users give it: np.float32, "float32", float, a dtype object.

    Raises:
        TypeError_: it is no dtype, or compiled code does not have it.
    """
    if isinstance(dtype, str) and dtype == "bfloat16":
        return dtype
    try:
        name = np.dtype(dtype).name
    except TypeError:
        advice = "; a shape of several sizes is a tuple: (2, 3)" if isinstance(dtype, int) else ""
        raise TypeError_(f"{dtype!r} is no dtype{advice}") from None
    if name not in (*FLOATS, *INTS, "bool"):
        raise TypeError_(f"dtype {name} is not supported in compiled code; use a float, an integer or bool")
    return name


# One operand, computed in floats.

for _prim in (
    *(P.exp, P.expm1, P.log, P.log1p, P.log2, P.log10, P.sqrt, P.sin, P.cos, P.tan, P.arcsin, P.arccos, P.arctan),
    *(P.sinh, P.cosh, P.tanh, P.rint, S.arcsinh, S.arccosh, S.arctanh, S.cbrt, S.exp2),
):

    @implements(getattr(np, _prim.name))
    def _(b: Builder, x, _prim=_prim) -> Var:
        return unwrap(_prim(floating(operand(b, x, _prim.name))))


# NumPy 2 spells some functions twice.
for _name, _alias in (
    *(("arcsin", "asin"), ("arccos", "acos"), ("arctan", "atan")),
    *(("arcsinh", "asinh"), ("arccosh", "acosh"), ("arctanh", "atanh")),
):
    if hasattr(np, _alias):
        IMPLEMENTATIONS[getattr(np, _alias)] = IMPLEMENTATIONS[getattr(np, _name)]

# From NumPy 2.1 on, rounding keeps integers; before, it converted them to floats.
ROUNDED_INTS_ARE_FLOATS = np.floor(np.int64(1)).dtype.kind == "f"

for _fn, _prim in ((np.floor, P.floor), (np.ceil, P.ceil), (np.trunc, P.trunc)):

    @implements(_fn)
    def _(b: Builder, x, _prim=_prim) -> Var:
        x = strong(operand(b, x))
        if not x.type.is_float and ROUNDED_INTS_ARE_FLOATS:
            x = floating(x)
        return unwrap(_prim(x)) if x.type.is_float else unwrap(x)


for _fn, _prim, _otherwise in ((np.isnan, P.isnan, False), (np.isinf, P.isinf, False), (np.isfinite, P.isfinite, True)):

    @implements(_fn)
    def _(b: Builder, x, _prim=_prim, _otherwise=_otherwise) -> Var:
        x = strong(operand(b, x))
        if not x.type.is_float:
            return unwrap(P.eq(x, x) if _otherwise else P.ne(x, x))
        return unwrap(_prim(x))


@implements(np.negative)
def negative(b: Builder, x) -> Var:
    """np.negative."""
    return A.negative(b, strong(operand(b, x)))


@implements(np.positive)
def positive(b: Builder, x) -> Var:
    """np.positive."""
    return A.positive(b, strong(operand(b, x)))


@implements(np.fabs)
def fabs(b: Builder, x) -> Var:
    """np.fabs: a float, unlike np.abs."""
    return unwrap(P.abs_(floating(operand(b, x))))


@implements(np.abs, np.absolute)
def absolute(b: Builder, x) -> Var:
    """np.abs."""
    return A.absolute(b, strong(operand(b, x)))


@implements(np.invert, np.bitwise_not)
def invert(b: Builder, x) -> Var:
    """np.invert."""
    return A.invert(b, strong(operand(b, x)))


@implements(np.square)
def square(b: Builder, x) -> Var:
    """np.square."""
    x = strong(operand(b, x))
    return A.mul(b, x, x) if x.dtype != "bool" else A.mul(b, *[astype(x, "int8")] * 2)


@implements(np.reciprocal)
def reciprocal(b: Builder, x) -> Var:
    """np.reciprocal of floats.

    Raises:
        TypeError_: the elements are no floats.
    """
    x = operand(b, x)
    if not x.type.is_float:
        raise TypeError_("np.reciprocal of integers is 0 for all but 1 and -1; write 1 / x")
    x = floating(x)
    return unwrap(P.div(x.const(1), x))


@implements(np.sign)
def sign(b: Builder, x) -> Var:
    """np.sign."""
    return unwrap(P.sign(strong(operand(b, x))))


@implements(np.radians, np.deg2rad)
def radians(b: Builder, x) -> Var:
    """np.radians."""
    x = floating(operand(b, x))
    return unwrap(P.mul(x, x.const(math.pi / 180)))


@implements(np.degrees, np.rad2deg)
def degrees(b: Builder, x) -> Var:
    """np.degrees."""
    x = floating(operand(b, x))
    return unwrap(P.mul(x, x.const(180 / math.pi)))


@implements(np.round, np.around, static=("decimals",))
def round_(b: Builder, a, decimals=0) -> Var:
    """np.round: scaled by a power of ten, rounded to even, scaled back.

    Raises:
        TypeError_: booleans to decimals, or integers to negative decimals.
    """
    x, decimals = strong(operand(b, a)), static_index(decimals, "np.round: decimals")
    if x.dtype == "bool":
        if decimals:
            raise TypeError_("np.round rounds no booleans to decimals")
        return unwrap(P.rint(floating(x)))
    if not x.type.is_float:
        if decimals >= 0:
            return unwrap(x)
        raise TypeError_("np.round of integers to negative decimals is not supported; divide, round and multiply")
    if decimals == 0:
        return unwrap(P.rint(x))
    scale = x.const(10.0 ** abs(decimals) if abs(decimals) < 309 else math.inf)
    if decimals > 0:
        return unwrap(P.div(P.rint(P.mul(x, scale)), scale))
    return unwrap(P.mul(P.rint(P.div(x, scale)), scale))


method("round", static=("decimals",))(round_)


@implements(np.logical_not)
def logical_not(b: Builder, x) -> Var:
    """np.logical_not."""
    return unwrap(P.logical_not(astype(operand(b, x), "bool")))


@implements(np.nan_to_num, static=("copy", "nan", "posinf", "neginf"))
def nan_to_num(b: Builder, x, copy=True, nan=0.0, posinf=None, neginf=None) -> Var:
    """np.nan_to_num: finite numbers in place of NaN and infinities.

    Raises:
        TypeError_: `copy` is not True.
    """
    if copy is not True:
        raise TypeError_(f"np.nan_to_num: in compiled code the result is an array of its own: leave out copy={copy!r}")
    x = strong(operand(b, x))
    if not x.type.is_float or x.dtype == "bfloat16":  # which is no float to NumPy: it leaves its NaNs as they are
        return unwrap(x)
    info = np.finfo(numpy_dtype(x.dtype))
    high = posinf if posinf is not None else float(info.max)
    low = neginf if neginf is not None else float(info.min)
    out = P.where(P.isnan(x), x.const(nan), x)
    infinite = P.isinf(x)
    out = P.where(P.logical_and(infinite, P.gt(x, x.const(0))), x.const(high), out)
    return unwrap(P.where(P.logical_and(infinite, P.lt(x, x.const(0))), x.const(low), out))


# Two operands: the operators' rules, on NumPy scalars.

for _fn, _rule in (
    (np.add, A.add),
    (np.subtract, A.sub),
    (np.multiply, A.mul),
    (np.true_divide, A.truediv),
    (np.floor_divide, A.floordiv),
    (np.remainder, A.mod),
    (np.power, A.ufunc_power),
    (np.bitwise_and, A.and_),
    (np.bitwise_or, A.or_),
    (np.bitwise_xor, A.xor),
    (np.left_shift, A.lshift),
    (np.right_shift, A.rshift),
    (np.equal, A.eq),
    (np.not_equal, A.ne),
    (np.less, A.lt),
    (np.less_equal, A.le),
    (np.greater, A.gt),
    (np.greater_equal, A.ge),
):

    @implements(_fn)
    def _(b: Builder, x1, x2, _rule=_rule) -> Var:
        return _rule(b, *numpy_pair(b, x1, x2))


def numpy_pair(b: Builder, x, y) -> tuple[Var, Var]:
    """Two operands of a NumPy function: of two Python numbers both become NumPy scalars."""
    x, y = operand(b, x), operand(b, y)
    return (strong(x), strong(y)) if is_weak(x) and is_weak(y) else (x, y)


@implements(np.float_power)
def float_power(b: Builder, x1, x2) -> Var:
    """np.float_power: in float64 at least."""
    x, y = (astype(operand(b, v), "float64") for v in (x1, x2))
    return unwrap(P.pow_(x, y))


def _promoted(prim, in_floats: bool):
    def rule(b: Builder, x1, x2) -> Var:
        x, y = operand(b, x1), operand(b, x2)
        if in_floats:
            return unwrap(prim(*floating_pair(b, x, y, prim.name)))
        return unwrap(prim(*(strong(v) for v in promote(b, x, y, what=prim.name))))

    return rule


maximum = implements(np.maximum)(_promoted(P.maximum, False))
minimum = implements(np.minimum)(_promoted(P.minimum, False))
implements(np.arctan2, *([np.atan2] if hasattr(np, "atan2") else []))(_promoted(P.arctan2, True))


def _logical(prim):
    def rule(b: Builder, x1, x2) -> Var:
        return unwrap(prim(astype(operand(b, x1), "bool"), astype(operand(b, x2), "bool")))

    return rule


implements(np.logical_and)(_logical(P.logical_and))
implements(np.logical_or)(_logical(P.logical_or))
implements(np.logical_xor)(_logical(P.logical_xor))


@implements(np.hypot)
def hypot(b: Builder, x1, x2) -> Var:
    """np.hypot: sqrt(x1**2 + x2**2) without overflow; its derivatives at the origin are 0."""
    return unwrap(length_of_two(*floating_pair(b, operand(b, x1), operand(b, x2), "np.hypot")))


def length_of_two(x: Var, y: Var) -> Var:
    """The root of the sum of two squares of floats, without overflow.

    Absolute values and the greater of the two have the derivatives of one side where there is a kink: the whole is the same smooth
    function on either side, so it has its derivatives of all orders, but at the origin.
    """
    zero = x.const(0)
    infinite = P.logical_or(P.isinf(x), P.isinf(y))
    x, y = (P.where(P.lt(v, zero), -v, v) for v in (x, y))
    first = P.ge(x, y)
    large, small = P.where(first, x, y), P.where(first, y, x)
    origin = P.logical_and(P.eq(large, zero), P.eq(small, zero))  # NaN beside 0 is no origin
    ratio = small / P.where(origin, large.const(1), large)
    out = P.where(origin, zero, large * P.sqrt(ratio * ratio + ratio.const(1)))
    return P.where(infinite, large.const(math.inf), out)


def length(*xs: Var) -> Var:
    """The root of the sum of squares of floats, without overflow: m sqrt((x / m)**2 + ...), m the greatest absolute value.

    It does not depend on m, which counts as a constant: so no derivative of any order sees the ties of maxima, or the kinks of
    absolute values.
    """
    largest = P.abs_(xs[0])
    for x in xs[1:]:
        largest = P.maximum(largest, P.abs_(x))
    largest = stop_gradient(largest)
    zero, one = largest.const(0), largest.const(1)
    origin = P.eq(largest, zero)
    scale = P.where(origin, one, largest)
    ratios = [P.where(origin, one, x / scale) for x in xs]
    total = ratios[0] * ratios[0]
    for ratio in ratios[1:]:
        total = total + ratio * ratio
    out = P.where(origin, zero, scale * P.sqrt(total))
    infinite = P.isinf(xs[0])
    for x in xs[1:]:
        infinite = P.logical_or(infinite, P.isinf(x))
    return P.where(infinite, largest.const(math.inf), out)


@implements(np.heaviside)
def heaviside(b: Builder, x1, x2) -> Var:
    """np.heaviside: 0, x2 or 1 for x1 below, at or above 0."""
    x, y = floating_pair(b, operand(b, x1), operand(b, x2), "np.heaviside")
    zero = x.const(0)
    step = P.where(P.lt(x, zero), zero, P.where(P.eq(x, zero), y, x.const(1)))
    return unwrap(P.where(P.isnan(x), x, step))


@implements(np.logaddexp)
def logaddexp(b: Builder, x1, x2) -> Var:
    """np.logaddexp: log(exp(x1) + exp(x2)) without overflow."""
    greater, below = apart(*floating_pair(b, operand(b, x1), operand(b, x2), "np.logaddexp"))
    return unwrap(greater + P.log1p(P.exp(below)))


@implements(np.logaddexp2)
def logaddexp2(b: Builder, x1, x2) -> Var:
    """np.logaddexp2: log2(2**x1 + 2**x2) without overflow."""
    greater, below = apart(*floating_pair(b, operand(b, x1), operand(b, x2), "np.logaddexp2"))
    return unwrap(greater + P.log1p(S.exp2(below)) * greater.const(1 / math.log(2)))


def apart(x: Var, y: Var) -> tuple[Var, Var]:
    """max(x, y) and -|x - y|, with the derivatives of one side where they are equal, not with the mean of both.

    What is made of them as log(exp(x) + exp(y)) is the same smooth function on either side, so all its derivatives are right.
    """
    first = P.ge(x, y)
    # Equal infinities have no difference; their sum is right.
    same = P.logical_and(P.eq(x, y), P.isinf(x))
    gap = P.where(same, x.const(0), P.where(first, y - x, x - y))
    return P.where(first, x, y), gap


@implements(np.copysign)
def copysign(b: Builder, x1, x2) -> Var:
    """np.copysign: |x1| with the sign of x2, that of -0.0 too."""
    x, y = floating_pair(b, operand(b, x1), operand(b, x2), "np.copysign")
    return unwrap(_copysign(x, y))


def _copysign(x: Var, y: Var) -> Var:
    zero = y.const(0)
    negative_zero = P.logical_and(P.eq(y, zero), P.lt(P.div(y.const(1), y), zero))
    size = P.abs_(x)
    return P.where(P.logical_or(P.lt(y, zero), negative_zero), -size, size)


@implements(np.clip)
def clip(b: Builder, a, a_min=None, a_max=None, *, min=None, max=None) -> Var:
    """np.clip: min(max(a, a_min), a_max), and `a` itself where it equals a bound that is a number (so 0.0 or -0.0)."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    x = strong(operand(b, a))
    if x.dtype in INTS:  # NumPy ignores bounds beyond the range here, which it refuses elsewhere
        low = None if _is_python_int(b, low) and static_value(low) <= np.iinfo(x.dtype).min else low
        high = None if _is_python_int(b, high) and static_value(high) >= np.iinfo(x.dtype).max else high
    if low is None and high is None:
        return positive(b, x)
    if low is None or high is None:
        return maximum(b, x, low) if high is None else minimum(b, x, high)
    x, low, high = (strong(v) for v in promote(b, x, operand(b, low), operand(b, high), what="np.clip"))
    if low.ndim or high.ndim or x.dtype == "float16":  # whose maximum is the first of equals, not the second
        return unwrap(P.minimum(P.maximum(x, low), high))
    return unwrap(P.minimum(high, P.maximum(low, x)))


def _is_python_int(b: Builder, x) -> bool:
    """Whether an operand is a known number that Python would call an int, and no bool."""
    if x is None or not is_static(x):
        return False
    x = operand(b, x)
    return is_weak(x) and x.dtype == "int64"


method("clip")(lambda b, a, min=None, max=None: clip(b, a, min, max))


def _where_wraps() -> bool:
    """Whether np.where takes Python ints that do not fit, as it did before NumPy 2.5."""
    try:
        return bool(np.where(True, 300, np.int8(0)) == 44)
    except OverflowError:
        return False


WHERE_WRAPS = _where_wraps()


@implements(np.where)
def where(b: Builder, condition, x=None, y=None) -> Var | tuple[Var, ...]:
    """np.where; of a condition alone np.nonzero.

    Raises:
        TypeError_: only one of x and y is given.
    """
    if x is None and y is None:
        return nonzero(b, condition)
    if x is None or y is None:
        raise TypeError_("np.where takes both values, or none: np.where(c, x, y)")
    c = astype(operand(b, condition), "bool")
    x, y = operand(b, x), operand(b, y)
    dtype = result_dtype((x, y), "np.where")
    x, y = (astype(v, dtype) if WHERE_WRAPS else fit(b, v, dtype) for v in (x, y))
    c, x, y = agreeing(b, "np.where", c, x, y)
    shape = broadcast_shapes("np.where", c.shape, x.shape, y.shape)
    out = P.where(c, x, y)
    return out if isinstance(out.type, Array) and shape else (as_array(unwrap(out)))


@implements(np.isclose, static=("rtol", "atol", "equal_nan"))
def isclose(b: Builder, a, b_, rtol=1e-05, atol=1e-08, equal_nan=False) -> Var:
    """np.isclose."""
    x, y = floating_pair(b, operand(b, a), operand(b, b_), "np.isclose")
    near = P.le(P.abs_(x - y), P.abs_(y) * y.const(rtol) + y.const(atol))
    near = P.logical_or(P.logical_and(near, P.isfinite(y)), P.eq(x, y))
    if equal_nan:
        near = P.logical_or(near, P.logical_and(P.isnan(x), P.isnan(y)))
    return unwrap(near)


# Conversions.


def _constructor(dtype: str):
    def construct(b: Builder, x=0) -> Var:
        x = operand(b, x)
        if dtype in INTS and is_weak(x):
            from .operators import int_
            from .promotion import fit

            return fit(b, int_(b, x), dtype)
        if isinstance(x.type, Array):
            return unwrap(cast(x, dtype=dtype))
        return cast(x, dtype=dtype, weak=False)

    return construct


for _dtype in ("bool", *INTS, "float16", "float32", "float64"):
    implements(np.dtype(_dtype).type, name=f"np.{_dtype}")(_constructor(_dtype))


@method("astype", static=("dtype", "copy"))
def _(b: Builder, x, dtype, *, copy=True) -> Var:
    x = operand(b, x)
    return cast(x, dtype=dtype_name(dtype), weak=False)


@method("item")
def item(b: Builder, x, *args) -> Var:
    """`x.item()`: the Python number."""
    from .operators import single
    from .subscripts import getitem

    x = operand(b, x)
    if args:
        x = getitem(b, x, tuple(args))
    if isinstance(x.type, Array):
        x = single(x, lambda v: TypeError_(f"only an array of size 1 is a Python scalar, not {v.type}; index it"))
    kind = "bool" if x.dtype == "bool" else "int64" if x.dtype in INTS else "float64"
    return weak(x, kind)


@implements(np.ascontiguousarray, static=("dtype",))
def ascontiguousarray(b: Builder, a, dtype=None) -> Var:
    """np.ascontiguousarray: an array with at least one axis."""
    x = array(b, a, dtype)
    return x if x.shape else reshape(x, shape=(1,))


@implements(np.array, np.asarray, np.asanyarray, static=("dtype", "copy"))
def array(b: Builder, a, dtype=None, *, copy=None) -> Var:
    """np.array: numbers, arrays, and nested lists of them."""
    x = strong(operand(b, a, "np.array", None if dtype is None else dtype_name(dtype)))
    return as_array(x) if isinstance(x.type, Scalar) else x


@implements(np.copy)
def copy(b: Builder, a) -> Var:
    """np.copy: the same values in an array of its own."""
    return own(array(b, a))


def own(x: Var) -> Var:
    """An array that nothing else can see: another node, which costs nothing if the array is not changed in place."""
    from ..rules.broadcast import reshape

    return reshape(x, shape=x.shape) if isinstance(x.type, Array) else x


method("copy", "__copy__")(lambda b, x: own(operand(b, x)))


@implements(np.result_type)
def result_type(b: Builder, *arrays):
    """np.result_type."""
    return numpy_dtype(result_dtype([operand(b, a) for a in arrays]))


@implements(np.conjugate)
def conjugate(b: Builder, x) -> Var:
    """np.conj of a real number: itself."""
    return strong(operand(b, x, "np.conj"))


@implements(np.real)
def real(b: Builder, val) -> Var:
    """np.real of a real number: itself; a bool of Python's is an int."""
    x = operand(b, val)
    return weak(x, "int64") if is_weak(x) and x.dtype == "bool" else x


__all__ = ["as_int", "as_scalar", "broadcast_to", "dtype_name", "numpy_pair", "reshape"]
