"""Texts of random calls: for each function of NumPy that compiled code knows, with each of its keywords.

    CALLS["np.sum"](draw) -> "np.sum(a0, axis=1, keepdims=True)"

What is drawn is right most often and wrong now and then: an axis that is not there, shapes that do not fit, a float for a
size. NumPy says what it means, or raises.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .values import DTYPES, Draw

CALLS: dict[str, Callable[[Draw], str]] = {}


def calls(*names: str):
    """Register how calls of functions are drawn."""

    def register(rule):
        for name in names:
            if _exists(name):
                CALLS[name] = lambda d, name=name: rule(d, name)
        return rule

    return register


def _exists(name: str) -> bool:
    """Whether this NumPy has a function."""
    at = np
    for part in name.split(".")[1:]:
        if not hasattr(at, part):
            return False
        at = getattr(at, part)
    return True


def call(name: str, *parts: str | None) -> str:
    """The text of a call; parts that are None are left out."""
    return f"{name}({', '.join(p for p in parts if p is not None)})"


def maybe(d: Draw, key: str, thunk, p: float = 0.4) -> str | None:
    """`key=...`, or nothing."""
    return f"{key}={thunk()}" if d.chance(p) else None


def flag(d: Draw, key: str, p: float = 0.25) -> str | None:
    return maybe(d, key, lambda: d.one(("True", "True", "False")), p)


def dtype(d: Draw, p: float = 0.3) -> str | None:
    return maybe(
        d, "dtype", lambda: d.one((*(f"np.{t}" if t != "bool" else "bool" for t in DTYPES), "float", "int")), p
    )


def size(d: Draw) -> str:
    """A size, now and then none."""
    return d.one(("0", "1", "2", "3", "4", "5", "3", "2", "-1", "2.0", "True", "np.int64(3)"))


def shape(d: Draw) -> str:
    return d.one(("3", "(2, 3)", "()", "(0, 2)", "[2, 2]", "(1,)", "-1", "(2, -1)", "2.0", "(True, 2)"))


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


@calls("np.copy", "np.ravel", "np.fliplr", "np.flipud", "np.atleast_1d", "np.atleast_2d", "np.atleast_3d", "np.matrix_transpose",
       "np.shape", "np.ndim", "np.flatnonzero", "np.argwhere", "np.nonzero", "np.unique")  # fmt: skip
def _(d: Draw, name: str) -> str:
    return call(name, d.operand())


@calls("np.result_type")
def _(d: Draw, name: str) -> str:
    return call(name, *d.pair()) + ".name"


# Reductions.


@calls("np.sum", "np.prod")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    start = maybe(d, "initial", lambda: d.number() if d.chance(0.5) else d.one(("2", "0", "-0.0", "1.5")), 0.2)
    return call(name, x, maybe(d, "axis", lambda: d.axis(x)), dtype(d), flag(d, "keepdims"), start)


@calls("np.max", "np.min", "np.amax", "np.amin")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    start = maybe(d, "initial", lambda: d.number() if d.chance(0.5) else d.one(("2", "0", "-0.0", "1.5", "300")), 0.2)
    return call(name, x, maybe(d, "axis", lambda: d.axis(x)), flag(d, "keepdims"), start)


@calls("np.all", "np.any", "np.ptp", "np.count_nonzero", "np.nanmax", "np.nanmin", "np.nansum", "np.nanprod", "np.nanmean",
       "np.median", "np.nanmedian")  # fmt: skip
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


# Shapes.


@calls("np.reshape")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    n = int(np.size(d.args[0])) if d.args else 1
    options = [
        f"({n},)",
        "-1",
        f"(-1, {n})",
        f"({n}, 1)",
        f"(1, -1, {n})",
        "(2, -1)",
        "(-1, -1)",
        "(3, 2)",
        "()",
        "2.0",
        f"({n}, 0)",
        "(0, -1)",
    ]
    return call(name, x, d.one(options))


@calls("np.transpose", "np.permute_dims")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    axes = tuple(int(k) for k in d.rng.permutation(d.rank(x)))
    return call(name, x, maybe(d, "axes", lambda: d.one((repr(axes), repr(axes), "(0, 0)", "(0, 3)", "(-1, 0)"))))


@calls("np.swapaxes")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, d.axis(x, many=False, none=False), d.axis(x, many=False, none=False))


@calls("np.moveaxis")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, d.axis(x, none=False), d.axis(x, none=False))


@calls("np.squeeze", "np.expand_dims", "np.flip")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    axis = d.axis(x) if d.chance(0.8) else d.one(("0", "-1", "(0, 1)", "(0, -1)", "2"))
    return call(name, x, f"axis={axis}" if d.chance(0.7) or name == "np.expand_dims" else None)


@calls("np.broadcast_to")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    own = np.shape(d.args[0]) if d.args else ()
    return call(name, x, d.one((repr((2, *own)), repr(own), shape(d), repr(tuple(4 if s == 1 else s for s in own)))))


@calls("np.concatenate", "np.concat", "np.stack", "np.append")
def _(d: Draw, name: str) -> str:
    shape = d.shape()
    parts = []
    for _ in range(2 if name == "np.append" else d.one((1, 2, 2, 3))):
        other = shape if d.chance(0.85) else d.shape()
        parts.append(d.array(shape=other) if d.chance(0.93) else d.number())
    axis = maybe(d, "axis", lambda: d.axis(parts[0], many=False), 0.6)
    return call(name, ", ".join(parts) if name == "np.append" else f"({', '.join(parts)},)", axis)


@calls("np.vstack", "np.hstack", "np.column_stack", "np.dstack")
def _(d: Draw, name: str) -> str:
    shape = d.shape()
    parts = [d.array(shape=shape if d.chance(0.85) else d.shape()) for _ in range(d.one((1, 2, 3)))]
    return call(name, f"({', '.join(parts)},)")


@calls("np.split", "np.array_split")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    parts = d.one(("1", "2", "3", "0", "[1]", "[1, 2]", "(0, 2)", "[2, 1]", "[-1]", "[5]", "2.0", "-1", "True", "[]"))
    return call(name, x, parts, maybe(d, "axis", lambda: d.axis(x, many=False, none=False)))


@calls("np.tile")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand(), d.one(("2", "(2, 3)", "0", "()", "(1, 2, 2)", "[2]", "-1", "2.0", "(2, 0)", "True")))


@calls("np.repeat")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(
        name, x, d.one(("2", "0", "3", "-1", "1.5", "[2]", "True")), maybe(d, "axis", lambda: d.axis(x, many=False))
    )


@calls("np.pad")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    width = d.one(("1", "0", "(1, 2)", "((1, 2),)", "((1, 0), (2, 1))", "-1", "1.5", "[1, 2]", "(1, 2, 3)", "True"))
    value = maybe(d, "constant_values", lambda: d.one(("3", "-1.5", "True", "np.int8(2)", "300")), 0.4)
    return call(name, x, width, maybe(d, "mode", lambda: '"constant"', 0.2), value)


@calls("np.roll")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, d.one(("1", "-1", "0", "7", "1.5", "(1, 2)", "True")), maybe(d, "axis", lambda: d.axis(x)))


@calls("np.rot90")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand(), maybe(d, "k", lambda: d.one(("0", "1", "2", "3", "-1", "5", "1.0"))))


@calls("np.diagonal", "np.trace")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    axes = [f"axis1={d.axis(x, False, False)}", f"axis2={d.axis(x, False, False)}"] if d.chance(0.3) else []
    out = dtype(d, 0.1) if name == "np.trace" else None
    return call(name, x, maybe(d, "offset", lambda: d.one(("1", "-1", "2", "9", "-9", "1.0"))), *axes, out)


@calls("np.diag", "np.tril", "np.triu", "np.diagflat")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand(), maybe(d, "k", lambda: d.one(("1", "-1", "2", "7", "-7", "1.5", "True"))))


@calls("np.diff", "np.ediff1d")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    if name == "np.ediff1d":
        return call(name, x)
    n = maybe(d, "n", lambda: d.one(("0", "1", "2", "5", "-1", "1.0", "True")))
    return call(name, x, n, maybe(d, "axis", lambda: d.axis(x, many=False, none=False)))


@calls("np.size")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, maybe(d, "axis", lambda: d.axis(x, many=False)))


@calls("np.take")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    index = d.one(("0", "1", "-1", "[0, 1]", "[[0], [-1]]", "9", "[]", "True", "1.0", "np.array([1, 0])", "(0, 0)"))
    return call(name, x, index, maybe(d, "axis", lambda: d.axis(x, many=False)))


@calls("np.take_along_axis")
def _(d: Draw, name: str) -> str:
    x = d.array()
    shape = np.shape(d.args[0])
    wide = tuple(2 if d.chance(0.3) else s for s in shape)
    d.args.append(d.rng.integers(-2, 3, wide))
    return call(name, x, "a1", f"axis={d.axis(x, many=False)}" if d.chance(0.8) else None)


# Making arrays.


@calls("np.zeros", "np.ones")
def _(d: Draw, name: str) -> str:
    return call(name, shape(d), dtype(d))


@calls("np.full")
def _(d: Draw, name: str) -> str:
    return call(name, shape(d), d.number() if d.chance(0.8) else d.array((1,)), dtype(d))


@calls("np.zeros_like", "np.ones_like")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand(), dtype(d), maybe(d, "shape", lambda: shape(d), 0.2))


@calls("np.full_like")
def _(d: Draw, name: str) -> str:
    return call(
        name,
        d.operand(),
        d.number() if d.chance(0.8) else d.array((1,)),
        dtype(d),
        maybe(d, "shape", lambda: shape(d), 0.2),
    )


_STEPS = ("0", "1", "3", "-2", "5", "2.5", "-1.5", "0.5", "True", "np.int8(3)", "np.float32(2.5)", "1e3", "np.uint8(4)")


@calls("np.arange")
def _(d: Draw, name: str) -> str:
    return call(name, *[d.one(_STEPS) for _ in range(d.one((1, 2, 3)))], dtype(d))


@calls("np.linspace", "np.logspace", "np.geomspace")
def _(d: Draw, name: str) -> str:
    ends = [d.one(_STEPS), d.one(_STEPS)] if d.chance(0.4) else list(d.pair())
    num = maybe(d, "num", lambda: d.one(("0", "1", "2", "5", "-1", "7", "2.0", "True")), 0.8)
    axis = maybe(d, "axis", lambda: d.one(("0", "-1", "1")), 0.1) if name == "np.linspace" else None
    return call(name, *ends, num, flag(d, "endpoint", 0.3), dtype(d), axis, flag(d, "retstep", 0.05))


@calls("np.eye", "np.tri")
def _(d: Draw, name: str) -> str:
    m = maybe(d, "M", lambda: size(d), 0.5)
    return call(name, size(d), m, maybe(d, "k", lambda: d.one(("0", "1", "-1", "7", "-7", "1.5", "True"))), dtype(d))


@calls("np.identity")
def _(d: Draw, name: str) -> str:
    return call(name, size(d), dtype(d))


@calls("np.vander")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand((1, 1, 2, 0)), maybe(d, "N", lambda: size(d)), flag(d, "increasing"))


@calls("np.meshgrid")
def _(d: Draw, name: str) -> str:
    indexing = maybe(d, "indexing", lambda: d.one(('"ij"', '"xy"', '"ab"')), 0.4)
    return call(name, *[d.operand((0, 1, 1, 2)) for _ in range(d.one((1, 2, 2, 3)))], indexing)


# Products.


def _fitting(d: Draw) -> tuple[str, str]:
    """Two operands whose last and last but one axes fit most often."""
    k = d.one((0, 1, 2, 3, 3))
    first, second = d.dtype(), d.dtype()
    second = first if d.chance(0.5) else second
    lead = d.one(((), (), (2,), (1,), (4,)))
    x = d.array(dtype=first, shape=d.one(((k,), (2, k), (*lead, 3, k), (3, k))))
    y = d.array(dtype=second, shape=d.one(((k,), (k, 2), (*lead, k, 2), (k, 4), (k, k))))
    return x, y


@calls("np.matmul", "np.dot", "np.matvec", "np.vecmat", "np.linalg.matmul")
def _(d: Draw, name: str) -> str:
    return call(name, *(_fitting(d) if d.chance(0.8) else d.pair()))


@calls("np.inner", "np.outer", "np.vdot", "np.kron", "np.linalg.outer")
def _(d: Draw, name: str) -> str:
    if d.chance(0.4):
        shape = d.shape()
        return call(name, d.array(shape=shape), d.array(shape=shape))
    return call(name, *d.pair())


@calls("np.vecdot", "np.linalg.vecdot")
def _(d: Draw, name: str) -> str:
    x, y = d.pair()
    return call(name, x, y, maybe(d, "axis", lambda: d.axis(x, many=False, none=False), 0.3))


@calls("np.tensordot")
def _(d: Draw, name: str) -> str:
    if d.chance(0.4):
        return call(name, *_fitting(d), "1")
    x, y = d.pair()
    return call(
        name,
        x,
        y,
        d.one((None, "1", "0", "2", "3", "-1", "((0,), (0,))", "(0, 1)", "((0, 1), (1, 0))", "((-1,), (0,))")),
    )


@calls("np.cross", "np.linalg.cross")
def _(d: Draw, name: str) -> str:
    lead, other = d.one(((), (2,), (1,))), d.one(((), (2,)))
    n, m = d.one((3, 3, 2)), d.one((3, 3, 3, 2))
    return call(name, d.array(shape=(*lead, n)), d.array(shape=(*other, m)) if d.chance(0.9) else d.number())


@calls("np.einsum")
def _(d: Draw, name: str) -> str:
    n, m, k = d.one((2, 3)), d.one((0, 2, 3)), d.one((1, 3))
    text, shapes = d.one((
        ("ij,jk->ik", ((n, m), (m, k))), ("ij->ji", ((n, m),)), ("ii->i", ((n, n),)), ("ii", ((n, n),)), ("i,i", ((m,), (m,))),
        ("ij,ij->", ((n, m), (n, m))), ("ij,j", ((n, m), (m,))), ("...i,...i->...", ((2, n, m), (n, m))), ("i,j->ij", ((n,), (m,))),
        ("ijk->", ((n, m, k),)), ("ij,jk,kl->il", ((n, m), (m, k), (k, 2))), ("i->", ((m,),)), ("ij->j", ((n, m),)),
        ("ij,jk->iq", ((n, m), (m, k))), ("ij,jk->ii", ((n, m), (m, k))), ("i,i->i", ((3,), (1,))), ("->", ((),)), (",i->i", ((), (n,))),
    ))  # fmt: skip
    first = d.dtype()
    return call(name, repr(text), *[d.array(shape=s, dtype=first if d.chance(0.6) else None) for s in shapes])


@calls("np.convolve", "np.correlate")
def _(d: Draw, name: str) -> str:
    ranks = (1, 1, 1, 1, 1, 0, 2)
    x, y = d.operand(ranks), d.operand(ranks)
    return call(name, x, y, maybe(d, "mode", lambda: d.one(('"full"', '"same"', '"valid"', '"no"')), 0.7))


@calls("np.polyval")
def _(d: Draw, name: str) -> str:
    return call(name, d.array((1,)), d.operand())


@calls("np.trapezoid")
def _(d: Draw, name: str) -> str:
    y = d.array()
    axis = d.axis(y, many=False, none=False)
    x = None
    if d.chance(0.4):
        y_shape = np.shape(d.args[0])
        own = axis.lstrip("-").isdigit() and len(y_shape) > 0 and int(axis) < len(y_shape)
        x = f"x={d.array(shape=(y_shape[int(axis)],) if own else y_shape)}"
    return call(
        name, y, x, maybe(d, "dx", lambda: d.one(("2", "0.5", "-1.0")), 0.3), f"axis={axis}" if d.chance(0.7) else None
    )


# Linear algebra.


@calls("np.linalg.norm")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    order = maybe(
        d, "ord", lambda: d.one(("1", "2", "np.inf", "-np.inf", '"fro"', "3", "0.5", "0", "-1", "None", '"x"')), 0.6
    )
    return call(name, x, order, maybe(d, "axis", lambda: d.axis(x)), flag(d, "keepdims"))


@calls("np.linalg.vector_norm", "np.linalg.matrix_norm")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand(), flag(d, "keepdims"))


def _matrix(d: Draw) -> str:
    n = d.one((1, 2, 3, 4, 0))
    lead = d.one(((), (), (), (2,), (0,)))
    square = (*lead, n, n) if d.chance(0.93) else d.shape()
    kind = d.one(("float64", "float64", "float32", "int64", "int8", "bool", "float16"))
    return d.array(shape=square, dtype=kind, edges=d.chance(0.15))


@calls("np.linalg.det", "np.linalg.inv")
def _(d: Draw, name: str) -> str:
    return call(name, _matrix(d))


@calls("np.linalg.cholesky")
def _(d: Draw, name: str) -> str:
    x = _matrix(d)
    a = d.args[0]
    if a.ndim == 2 and a.shape[0] == a.shape[1] and a.dtype.kind in "fi" and a.dtype != np.float16 and d.chance(0.8):
        with np.errstate(all="ignore"):
            d.args[0] = (a @ a.T + 3 * np.eye(len(a))).astype(a.dtype)
    return call(name, x)


@calls("np.linalg.solve")
def _(d: Draw, name: str) -> str:
    x = _matrix(d)
    n = d.args[0].shape[-1] if d.args[0].ndim else 1
    rows = d.one(((n,), (n, 2), (n, 1), (*d.args[0].shape[:-1], 2), (n + 1,)))
    return call(name, x, d.array(shape=rows, dtype=d.one(("float64", "float32", "int64", "float16")), edges=False))


@calls("np.linalg.matrix_power")
def _(d: Draw, name: str) -> str:
    return call(name, _matrix(d), d.one(("0", "1", "2", "3", "5", "-1", "-2", "1.0", "True")))


@calls("np.linalg.multi_dot")
def _(d: Draw, name: str) -> str:
    a, b, c, e = (d.one((1, 2, 3)) for _ in range(4))
    parts = [
        d.array(shape=s)
        for s in d.one((((a, b), (b, c)), ((a, b), (b, c), (c, e)), ((b,), (b, c)), ((a, b), (b, c), (c,)), ((a, b),)))
    ]
    return call(name, f"[{', '.join(parts)}]")


# Methods.


def _method(name: str, rule: str | None = None):
    """A method drawn like the function of its name."""

    def draw(d: Draw) -> str:
        text = CALLS[rule or f"np.{name}"](d)
        function, rest = text.split("(", 1)
        first, sep, others = rest.partition(", ") if ", " in rest else (rest[:-1], "", ")")
        if not first.startswith("a") or not first[1:].isdigit():
            d.args.clear()
            first, others = d.array(), ")"
        return f"{first}.{name}({others}"

    CALLS[f"ndarray.{name}"] = draw


for _name in ("round", "clip", "copy", "sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "argmax", "argmin",
              "reshape", "ravel", "transpose", "swapaxes", "squeeze", "diagonal", "cumsum", "cumprod", "dot", "trace", "take"):  # fmt: skip
    _method(_name)


def attribute(name: str):
    CALLS[f"ndarray.{name}"] = lambda d: f"{d.array()}.{name}"


for _name in ("T", "mT", "shape", "ndim", "itemsize", "real", "size"):
    attribute(_name)

CALLS["ndarray.dtype"] = lambda d: f"{d.array()}.dtype.name"
CALLS["ndarray.flatten"] = lambda d: f"{d.array()}.flatten()"
CALLS["ndarray.__copy__"] = lambda d: f"{d.array()}.__copy__()"


@calls("np.astype")
def _(d: Draw, name: str) -> str:
    return call(name, d.array(), d.one([f"np.{t}" if t != "bool" else "bool" for t in DTYPES]))


def _astype(d: Draw) -> str:
    return f"{d.array()}.astype({d.one([f'np.{t}' if t != 'bool' else 'bool' for t in DTYPES])})"


def _item(d: Draw) -> str:
    return f"{d.array()}.item({d.one(('', '', '0', '-1', '0, 1', '9', '(0, 0)', '1.0'))})"


CALLS["ndarray.astype"] = _astype
CALLS["ndarray.item"] = _item
