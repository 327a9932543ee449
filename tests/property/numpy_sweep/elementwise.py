"""Random calls of elementwise functions, conversions and reductions."""

from __future__ import annotations

import numpy as np

from .calls import call, calls, dtype, flag, maybe
from .values import DTYPES, Draw

# Elementwise.

UNARY = (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "rint", "arcsinh", "arccosh", "arctanh", "cbrt", "exp2", "floor", "ceil", "trunc"),
    *(
        "isnan",
        "isinf",
        "isfinite",
        "negative",
        "positive",
        "fabs",
        "absolute",
        "invert",
        "square",
        "reciprocal",
        "sign",
    ),
    *("radians", "deg2rad", "degrees", "rad2deg", "logical_not", "sinc", "signbit", "isneginf", "isposinf", "real"),
    *(
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "abs",
        "bitwise_not",
        "fix",
        "imag",
        "conj",
        "conjugate",
        "i0",
        "angle",
    ),
    *(
        "isreal",
        "iscomplex",
        "isrealobj",
        "iscomplexobj",
        "modf",
        "frexp",
        "spacing",
        "bitwise_count",
        "bitwise_invert",
    ),
)
BINARY = (
    *(
        "add",
        "subtract",
        "multiply",
        "divide",
        "true_divide",
        "floor_divide",
        "remainder",
        "mod",
        "power",
        "float_power",
    ),
    *(
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "left_shift",
        "right_shift",
        "equal",
        "not_equal",
        "less",
        "less_equal",
    ),
    *(
        "greater",
        "greater_equal",
        "maximum",
        "minimum",
        "fmax",
        "fmin",
        "arctan2",
        "atan2",
        "logical_and",
        "logical_or",
    ),
    *(
        "logical_xor",
        "hypot",
        "heaviside",
        "logaddexp",
        "logaddexp2",
        "copysign",
        "fmod",
        "nextafter",
        "gcd",
        "lcm",
        "ldexp",
    ),
    *("pow", "divmod", "bitwise_left_shift", "bitwise_right_shift"),
)


@calls(*(f"np.{name}" for name in UNARY))
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, d.array() if d.chance(0.03) else None)


@calls(*(f"np.{name}" for name in BINARY))
def _(d: Draw, name: str) -> str:
    x, y = d.pair()
    return call(name, x, y, d.array() if d.chance(0.03) else None)


@calls("np.round", "np.around")
def _(d: Draw, name: str) -> str:
    return call(
        name, d.operand(), maybe(d, "decimals", lambda: d.one(("0", "1", "2", "-1", "-2", "3", "20", "400", "1.0")))
    )


@calls("np.nan_to_num")
def _(d: Draw, name: str) -> str:
    keys = [maybe(d, k, lambda: d.one(("0.5", "7", "-2.0", "1e300", "True")), 0.3) for k in ("nan", "posinf", "neginf")]
    return call(name, d.operand(), *keys)


@calls("np.clip")
def _(d: Draw, name: str) -> str:
    x, low = d.pair()
    high = d.one(("None", "2", "1.5", low)) if d.chance(0.5) else d.number()
    low = "None" if d.chance(0.2) else low
    if d.chance(0.3):
        return call(name, x, f"min={low}" if d.chance(0.8) else None, f"max={high}" if d.chance(0.8) else None)
    return call(name, x, low, high)


@calls("np.where")
def _(d: Draw, name: str) -> str:
    x, y = d.pair()
    shape = np.shape(d.args[0])
    condition = d.array(dtype="bool", shape=shape) if d.chance(0.7) else d.operand()
    return call(name, condition, x, y)


@calls("np.isclose", "np.allclose")
def _(d: Draw, name: str) -> str:
    x, y = d.pair()
    y = x if d.chance(0.3) else y
    return call(
        name, x, y, maybe(d, "rtol", lambda: "0.5", 0.3), maybe(d, "atol", lambda: "0.1", 0.3), flag(d, "equal_nan")
    )


@calls("np.array_equal", "np.array_equiv")
def _(d: Draw, name: str) -> str:
    x, y = d.pair()
    return call(name, x, x if d.chance(0.4) else y, flag(d, "equal_nan"))


@calls(*(f"np.{t}" for t in DTYPES if t != "bool"), "np.bool_")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand() if d.chance(0.9) else None)


@calls("np.array", "np.asarray", "np.ascontiguousarray", "np.asanyarray")
def _(d: Draw, name: str) -> str:
    x, y = d.number(), d.number()
    items = d.one((x, f"[{x}, {y}]", f"[[{x}], [{y}]]", f"({x}, 2, 3)", "[]", "[[]]", d.array(), "[[1, 2], [3]]"))
    return call(name, items, dtype(d))


@calls(
    "np.copy",
    "np.ravel",
    "np.fliplr",
    "np.flipud",
    "np.atleast_1d",
    "np.atleast_2d",
    "np.atleast_3d",
    "np.matrix_transpose",
    "np.shape",
    "np.ndim",
    "np.flatnonzero",
    "np.argwhere",
    "np.nonzero",
    "np.unique",
)
def _(d: Draw, name: str) -> str:
    return call(name, d.operand())


@calls("np.result_type")
def _(d: Draw, name: str) -> str:
    return call(name, *d.pair()) + ".name"


# Reductions.


@calls("np.sum", "np.prod")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    start = maybe(
        d, "initial", lambda: d.number(edges=False) if d.chance(0.5) else d.one(("2", "0", "-0.0", "1.5")), 0.2
    )
    return call(name, x, maybe(d, "axis", lambda: d.axis(x)), dtype(d), flag(d, "keepdims"), start)


@calls("np.max", "np.min", "np.amax", "np.amin")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    start = maybe(
        d, "initial", lambda: d.number(edges=False) if d.chance(0.5) else d.one(("2", "0", "-0.0", "1.5", "300")), 0.2
    )
    return call(name, x, maybe(d, "axis", lambda: d.axis(x)), flag(d, "keepdims"), start)


@calls(
    "np.all",
    "np.any",
    "np.ptp",
    "np.count_nonzero",
    "np.nanmax",
    "np.nanmin",
    "np.nansum",
    "np.nanprod",
    "np.nanmean",
    "np.median",
    "np.nanmedian",
)
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, maybe(d, "axis", lambda: d.axis(x)), flag(d, "keepdims"))


@calls("np.mean")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, maybe(d, "axis", lambda: d.axis(x)), dtype(d), flag(d, "keepdims"))


@calls("np.var", "np.std", "np.nanvar", "np.nanstd")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    ddof = maybe(d, "ddof", lambda: d.one(("1", "0", "0.5", "3", "9")), 0.3)
    return call(name, x, maybe(d, "axis", lambda: d.axis(x)), dtype(d, 0.15), ddof, flag(d, "keepdims"))


@calls("np.argmax", "np.argmin", "np.nanargmax", "np.nanargmin")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, maybe(d, "axis", lambda: d.axis(x, many=False)), flag(d, "keepdims"))


@calls("np.cumsum", "np.cumprod")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, maybe(d, "axis", lambda: d.axis(x, many=False)), dtype(d))


@calls("np.average")
def _(d: Draw, name: str) -> str:
    x = d.array()
    x_shape = np.shape(d.args[0])
    along = d.axis(x, many=False)
    weights = None
    if d.chance(0.6):
        vector = d.chance(0.5) and along.lstrip("-").isdigit() and len(x_shape) > 0 and int(along) < len(x_shape)
        weights = f"weights={d.array(shape=(x_shape[int(along)],) if vector else x_shape)}"
    return call(name, x, f"axis={along}" if d.chance(0.6) else None, weights, flag(d, "keepdims", 0.1))


@calls("np.quantile", "np.percentile")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    q = d.one(("0.5", "0.25", "0", "1", "0.0", "1.0", "0.3", "0.9", "1.5", "np.float32(0.25)", "True", "[0.5]", "-0.5"))
    if name == "np.percentile":
        q = d.one(("50", "25", "0", "100", "30.0", "99.9", "150", "np.float32(25)", "np.int64(50)", "[50]"))
    return call(name, x, q, maybe(d, "axis", lambda: d.axis(x)), flag(d, "keepdims", 0.15))


@calls("np.sort", "np.argsort")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    kind = maybe(d, "kind", lambda: '"stable"', 0.9 if name == "np.argsort" else 0.2)
    return call(name, x, maybe(d, "axis", lambda: d.axis(x, many=False)), kind)


@calls("np.searchsorted")
def _(d: Draw, name: str) -> str:
    d.args.append(np.sort(d.values(d.shape((1,)), d.dtype())))
    return call(name, "a0", d.operand(), maybe(d, "side", lambda: d.one(('"left"', '"right"', '"middle"')), 0.5))


@calls("np.interp")
def _(d: Draw, name: str) -> str:
    n = d.one((1, 2, 3, 4, 5, 6, 9, 12, 0))
    xp = d.values((n,), "float64")
    d.args.append(xp if d.chance(0.2) else np.sort(xp))
    fp = d.array(shape=(n,))
    x = d.array(dtype="float64") if d.chance(0.7) else d.operand()
    if d.chance(0.3) and n:
        d.args.append(xp[: d.one((1, 2, 3))].copy())
        x = f"a{len(d.args) - 1}"
    ends = [maybe(d, k, lambda: d.one(("0.5", "-1", "7.0")), 0.15) for k in ("left", "right")]
    return call(name, x, "a0", fp, *ends)
