"""Random calls of functions whose results have sizes that values decide: sets, histograms, positions, choices."""

from __future__ import annotations

import numpy as np

from .calls import CALLS, call, calls, flag, maybe
from .values import Draw

# Sets.


@calls("np.setdiff1d", "np.intersect1d", "np.union1d", "np.setxor1d")
def _(d: Draw, name: str) -> str:
    first = d.dtype()
    x = d.array(dtype=first)
    other = d.array(dtype=first if d.chance(0.7) else None) if d.chance(0.9) else d.number()
    for k, arg in enumerate(d.args):
        if np.asarray(arg).dtype.kind == "f":
            d.args[k] = arg + 0  # which of two zeros stays depends on NumPy's sort
    return call(name, x, other)


@calls("np.ediff1d")
def _(d: Draw, name: str) -> str:
    return call(name, d.array())


@calls("np.trim_zeros")
def _(d: Draw, name: str) -> str:
    return call(name, d.array((1, 1, 1, 2)), maybe(d, "trim", lambda: d.one(('"f"', '"b"', '"fb"', '"F"'))))


# Parts taken out and put in.


def _places(d: Draw, n: int, masks: bool = True) -> str:
    """Positions along an axis of n elements."""
    dtype = d.one(("int64", "int64", "int8", "int32"))
    some = d.rng.integers(0 if dtype == "uint8" else -max(n, 1), max(n, 1), d.one((0, 1, 2, 3))).astype(dtype)
    kind = d.one(("one", "one", "many", "many", "list", "mask" if masks else "many"))
    if kind == "one":
        return d.one((str(int(d.rng.integers(-n - 1, n + 2))), d.give(int(d.rng.integers(-max(n, 1), max(n, 1))))))
    if kind == "list":
        return repr(some.tolist())
    return d.give(d.rng.random(n if d.chance(0.9) else n + 1) < 0.5 if kind == "mask" else some)


def _along(d: Draw, x: str) -> tuple[str, int]:
    """An axis of an operand, and its length."""
    axis = d.axis(x, many=False)
    shape = np.shape(d.args[0])
    if axis == "None" or not axis.lstrip("-").isdigit() or not -len(shape) <= int(axis) < len(shape):
        return axis, int(np.prod(shape))
    return axis, shape[int(axis)]


@calls("np.delete")
def _(d: Draw, name: str) -> str:
    x = d.array()
    axis, n = _along(d, x)
    return call(name, x, _places(d, n), f"axis={axis}")


@calls("np.compress", "np.extract")
def _(d: Draw, name: str) -> str:
    x = d.array()
    axis, n = _along(d, x) if name == "np.compress" else ("None", int(np.size(d.args[0])))
    mask = d.give(d.rng.random(d.one((n, n, n, max(n - 1, 0), n + 1))) < 0.5)
    return call(name, mask, x, f"axis={axis}" if name == "np.compress" else None)


CALLS["ndarray.compress"] = lambda d: "a0.compress(a1, axis=0)" if d.array((1, 2)) and d.array((1,), "bool") else ""


@calls("np.insert")
def _(d: Draw, name: str) -> str:
    x = d.array()
    axis, n = _along(d, x)
    places = _places(d, n, masks=False)
    return call(name, x, places, d.number() if d.chance(0.6) else d.array((0, 1, 1, 2)), f"axis={axis}")


@calls("np.resize")
def _(d: Draw, name: str) -> str:
    return call(name, d.operand(), d.one(("3", "(2, 3)", "()", "(0, 2)", "7", "(1,)", "-1", "(2, -1)")))


# Intervals.


def _bins(d: Draw) -> str:
    edges = np.sort(d.values((d.one((1, 2, 4)),), d.dtype(), edges=False))
    return d.give(edges[::-1].copy() if d.chance(0.2) else edges)


@calls("np.digitize")
def _(d: Draw, name: str) -> str:
    x = d.operand()
    return call(name, x, _bins(d) if d.chance(0.9) else d.array(), flag(d, "right"))


@calls("np.histogram", "np.histogram_bin_edges")
def _(d: Draw, name: str) -> str:
    x = d.array(edges=False if d.chance(0.8) else None)
    bins = d.one((None, "3", "1", "5", "0", d.give(int(d.rng.integers(1, 6)))))
    limits = d.one((None, None, "(0, 2)", "(-1.5, 2.5)", "(1, 1)", "(2, 0)", "(0, np.inf)"))
    weights = None
    if name == "np.histogram" and d.chance(0.25):
        kind = d.one(("float64", "float32", "int64", "int8"))
        weights = f"weights={d.array(shape=np.shape(d.args[0]), dtype=kind, edges=False)}"
    density = flag(d, "density") if name == "np.histogram" else None
    return call(
        name,
        x,
        f"bins={_bins(d)}" if d.chance(0.3) else bins and f"bins={bins}",
        limits and f"range={limits}",
        density,
        weights,
    )


@calls("np.logspace", "np.geomspace")
def _(d: Draw, name: str) -> str:
    base = maybe(d, "base", lambda: d.one(("2", "2.0", "10", "0.5")), 0.3) if name == "np.logspace" else None
    few = (
        d.one(("3", "2.5", "-1.0", "1", "0", "4", d.number(edges=False))),
        d.one(("2", "10", "-3.5", d.number(edges=False))),
    )
    return call(name, *few, maybe(d, "num", lambda: d.one(("0", "1", "2", "5")), 0.8), flag(d, "endpoint"), base)


# Positions.


@calls("np.lexsort")
def _(d: Draw, name: str) -> str:
    n = d.one((0, 1, 3, 6))
    return call(name, f"({', '.join(d.array(shape=(n,)) for _ in range(d.one((1, 2, 3))))},)")


@calls("np.unravel_index")
def _(d: Draw, name: str) -> str:
    few = d.rng.integers(-1 if d.chance(0.1) else 0, 12, d.shape((0, 1, 2))).astype(
        d.one(("int64", "int32", "uint8", "int8"))
    )
    at = d.give(few) if d.chance(0.7) else d.one(("5", "0", "11", "-1", "2.0", d.give(3)))
    return call(name, at, d.one(("(3, 4)", "(2, 2, 3)", "(12,)", "12", "(3, 3)", "(0, 3)", "(13, 1)")))


@calls("np.ravel_multi_index")
def _(d: Draw, name: str) -> str:
    shape = d.shape((0, 1, 1, 2))
    kinds = ("int64", "int64", "int32", "uint8")
    parts = [d.give(d.rng.integers(0, 3, shape).astype(d.one(kinds))) for _ in range(d.one((1, 2, 2, 3)))]
    return call(name, f"({', '.join(parts)},)", d.one(("(3, 4)", "(3, 3)", "(2, 3)", "(3, 3, 3)", "(3,)")))


@calls("np.ix_")
def _(d: Draw, name: str) -> str:
    kinds = ("int64", "int64", "bool", "int8", "float64")
    return call(
        name,
        *[
            d.array(d.one(((1,), (1,), (1,), (2,)))) if d.chance(0.1) else d.array((1,), d.one(kinds))
            for _ in range(d.one((1, 2, 3)))
        ],
    )


@calls("np.tril_indices", "np.triu_indices")
def _(d: Draw, name: str) -> str:
    n = d.one(("3", "0", "1", "4", d.give(int(d.rng.integers(0, 4)))))
    return call(
        name,
        n,
        maybe(d, "k", lambda: d.one(("1", "-1", "2", "-4", "5"))),
        maybe(d, "m", lambda: d.one(("2", "5", "0"))),
    )


# Choices.


@calls("np.select")
def _(d: Draw, name: str) -> str:
    shape, count = d.shape(), d.one((1, 2, 3))
    masks = [d.array(shape=shape, dtype="bool" if d.chance(0.95) else None) for _ in range(count)]
    first = d.dtype()
    kinds = [
        d.array(shape=shape, dtype=first if d.chance(0.6) else None) if d.chance(0.8) else d.number()
        for _ in range(count)
    ]
    return call(name, f"[{', '.join(masks)}]", f"[{', '.join(kinds)}]", maybe(d, "default", d.number))


@calls("np.choose")
def _(d: Draw, name: str) -> str:
    shape, count = d.shape(), d.one((1, 2, 3))
    at = d.give(d.rng.integers(0, count + d.chance(0.1), shape).astype(d.one(("int64", "int64", "int8", "uint8"))))
    first = d.dtype()
    kinds = [
        d.array(shape=shape, dtype=first if d.chance(0.6) else None) if d.chance(0.8) else d.number()
        for _ in range(count)
    ]
    return call(name, at, f"[{', '.join(kinds)}]")


# Differences, moments, windows.


@calls("np.gradient")
def _(d: Draw, name: str) -> str:
    x = d.array(edges=False if d.chance(0.7) else None)
    shape = np.shape(d.args[0])
    axis = None if d.chance(0.4) else d.axis(x, none=False)
    kind = d.one(("none", "none", "number", "places"))
    steps = []
    if kind == "number":
        steps = [d.one(("2", "0.5", d.number(edges=False))) for _ in range(d.one((1, len(shape))))]
    elif kind == "places" and min(shape, default=0) > 2:
        own = axis is not None and axis.lstrip("-").isdigit() and -len(shape) <= int(axis) < len(shape)
        sizes = (shape[int(axis)],) if own else shape
        steps = [
            d.give(np.cumsum(1 + d.rng.integers(0, 3, n)).astype(d.one(("float64", "float32", "int64")))) for n in sizes
        ]
    order = maybe(d, "edge_order", lambda: d.one(("1", "2", "3")), 0.3)
    return call(name, x, *steps, axis and f"axis={axis}", order)


@calls("np.cov", "np.corrcoef")
def _(d: Draw, name: str) -> str:
    x = d.array((1, 2, 2, 2, 3), edges=False, empty=d.chance(0.2))
    y = d.array(shape=np.shape(d.args[0])) if d.chance(0.3) else None
    more = [flag(d, "bias"), maybe(d, "ddof", lambda: d.one(("0", "1", "2")), 0.2)] if name == "np.cov" else []
    return call(name, x, y, flag(d, "rowvar"), *more)


@calls("np.lib.stride_tricks.sliding_window_view")
def _(d: Draw, name: str) -> str:
    x = d.array((1, 2, 3))
    rank = d.rank(x)
    if d.chance(0.5):
        return call(name, x, d.one(("1", "2", "3", "(2,)")), f"axis={d.axis(x, many=False, none=False)}")
    return call(name, x, repr(tuple(int(n) for n in d.rng.integers(1, 3, rank if d.chance(0.9) else 1))))
