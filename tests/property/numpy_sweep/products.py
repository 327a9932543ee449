"""Random calls of products, linear algebra, and arrays' methods."""

from __future__ import annotations

import numpy as np

from .calls import CALLS, call, calls, flag, maybe
from .values import DTYPES, Draw

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
    text, shapes = d.one(
        (
            ("ij,jk->ik", ((n, m), (m, k))),
            ("ij->ji", ((n, m),)),
            ("ii->i", ((n, n),)),
            ("ii", ((n, n),)),
            ("i,i", ((m,), (m,))),
            ("ij,ij->", ((n, m), (n, m))),
            ("ij,j", ((n, m), (m,))),
            ("...i,...i->...", ((2, n, m), (n, m))),
            ("i,j->ij", ((n,), (m,))),
            ("ijk->", ((n, m, k),)),
            ("ij,jk,kl->il", ((n, m), (m, k), (k, 2))),
            ("i->", ((m,),)),
            ("ij->j", ((n, m),)),
            ("ij,jk->iq", ((n, m), (m, k))),
            ("ij,jk->ii", ((n, m), (m, k))),
            ("i,i->i", ((3,), (1,))),
            ("->", ((),)),
            (",i->i", ((), (n,))),
        )
    )
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
    return d.array(shape=square, dtype=kind, edges=False)


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
        d.array(shape=s, edges=False)
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


for _name in (
    "round",
    "clip",
    "copy",
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "all",
    "any",
    "argmax",
    "argmin",
    "reshape",
    "ravel",
    "transpose",
    "swapaxes",
    "squeeze",
    "diagonal",
    "cumsum",
    "cumprod",
    "dot",
    "trace",
    "take",
):
    _method(_name)


for _name in ("T", "mT", "shape", "ndim", "itemsize", "real", "size"):
    CALLS[f"ndarray.{_name}"] = lambda d, name=_name: f"{d.array()}.{name}"

CALLS["ndarray.dtype"] = lambda d: f"{d.array()}.dtype.name"
CALLS["ndarray.flatten"] = lambda d: f"{d.array()}.flatten()"
CALLS["ndarray.nonzero"] = lambda d: f"{d.array()}.nonzero()"
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
