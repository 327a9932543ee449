"""Random calls of functions on shapes, and of those that make arrays."""

from __future__ import annotations

import numpy as np

from .calls import call, calls, dtype, flag, maybe, shape, size
from .values import Draw

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


@calls("np.hsplit", "np.vsplit")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand(), d.one(("1", "2", "3", "0", "[1]", "[1, 2]", "(0, 2)", "[5]", "2.0", "-1", "[]")))


@calls("np.tile")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand(), d.one(("2", "(2, 3)", "0", "()", "(1, 2, 2)", "[2]", "-1", "2.0", "(2, 0)", "True")))


@calls("np.repeat")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(
        name, x, d.one(("2", "0", "3", "-1", "1.5", "[2]", "True")), maybe(d, "axis", lambda: d.axis(x, many=False))
    )


@calls("ndarray.repeat")
def _(d: Draw, name: str) -> str:
    return f"{d.array()}.repeat({d.one(('2', '0', '3', '-1', '1.5', '2, 0', '2, axis=-1', '1, axis=3'))})"


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
