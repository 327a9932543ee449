"""Divided differences of a function that is given as a graph, at all tuples of eigenvalues.

    f[x] = f(x)        f[x, y] = (f(x) - f(y)) / (x - y)        f[x, y, z] = (f[x, y] - f[y, z]) / (x - z)        ...

They are symmetric, and have limits where points are equal: f'(x), f''(x) / 2, ... Each is computed in two ways, and the one with
the smaller estimate of its error is taken:

- by the quotient, whose error is that of the numerator, divided by the distance of the points;
- by Taylor's polynomial about the mean c of the m + 1 points,  f^(m)(c) / m! + f^(m+2)(c) / (m+2)! * s / 2, where s is the sum of
  the squared distances from c. It is taken only where it agrees with the quotient as well as that allows, so not across the kink
  of a function like max(w, 0).

Source: A. McCurdy, K. Ng and B. Parlett, "Accurate computation of divided differences of the exponential function" (1984).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np

from ..abstract.dims import DimLike
from ..abstract.types import Array, numpy_dtype
from ..ir.build import Builder, Var, as_type, type_of_constant
from ..ir.node import Graph, Node
from ..ir.prim import REGISTRY
from ..ir.rewrite import drop_dead, inline, lookup
from ..prims.rules.broadcast import broadcast_to, full, reshape
from .common.cotangents import materialise
from .forward.forward import Forward

SURE = 64.0
"""How many times the estimate of its error a quotient may differ from Taylor's polynomial."""


def at_shape(f: Graph, shape: Sequence[DimLike], params: Sequence[Array] = ()) -> Graph:
    """An elementwise function of (b, n) and parameters as one of an array of another shape.

    Args:
        f: its graph.
        shape: begins with b; parameters for each matrix are repeated along the other axes.
        params: other types of its parameters; without any they keep theirs.
    """
    new = Graph(f.name, None, f.origin)
    b = Builder(new, f.origin)
    dtype = f.params[0].type.dtype
    env: dict[Node, Node] = {f.params[0]: new.add_parameter("w", Array(dtype, tuple(shape)))}
    for k, param in enumerate(f.params[1:]):
        own = new.add_parameter(param.name, params[k] if params else param.type)
        env[param] = own
        if own.type.shape:
            env[param] = reshape(Var(b, own), shape=(own.type.shape[0], *(1,) * (len(shape) - 1))).node
    for node in f.nodes:
        args = tuple(lookup(env, a) for a in node.args)
        b.origin = node.origin
        attrs = {**node.attrs, "shape": tuple(shape)} if node.fn.name == "broadcast_to" else node.attrs
        env[node] = b.emit(node.fn, args, attrs)
    out = lookup(env, f.output)
    if out.type != Array(dtype, tuple(shape)):
        out = broadcast_to(Var(b, out), shape=tuple(shape)).node
    new.output = out
    return new


def differentiated(f: Graph, by: int) -> Graph:
    """The derivative of an elementwise function by its points (0) or by a parameter, with the same parameters."""
    new = Graph(f.name, None, f.origin)
    b = Builder(new, f.origin)
    params = [new.add_parameter(p.name, p.type) for p in f.params]
    one = b.constant(as_type(np.ones(()), params[by].type)) if params[by].type.shape == () else None
    if one is None:
        one = full(Var(b, b.constant(numpy_dtype(params[by].type.dtype).type(1))), shape=params[by].type.shape).node
    tangents = [one if k == by else None for k in range(len(params))]
    _, t = Forward().inline(b, f, params, tangents)
    new.output = materialise(b, t, f.output.type)
    drop_dead(new)
    return new


class Differences:
    """The divided differences of a function at eigenvalues.

    Args:
        f: closed graph of (b, n) and parameters, elementwise.
        w: (b, n).
        params: of f.
        count: how many points.
    """

    def __init__(self, f: Graph, w: Var, params: Sequence[Var], count: int):
        self.f, self.w, self.params, self.count = f, w, params, count
        self.builder = w.builder
        size, n = w.shape
        shapes = [(size, *(n if j == k else 1 for j in range(count))) for k in range(count)]
        self.points = [reshape(w, shape=shape) for shape in shapes]

    def constant(self, value: float) -> Var:
        """A number of the dtype of the eigenvalues."""
        number = numpy_dtype(self.w.dtype).type(value)
        return Var(self.builder, self.builder.constant(number, type_of_constant(number)))

    def derivative(self, order: int, at: Var) -> Var:
        """A derivative of the function, at points."""
        graph = at_shape(self.f, at.shape)
        for _ in range(order):
            graph = differentiated(graph, 0)
        return Var(self.builder, inline(self.builder, graph, [at.node, *(p.node for p in self.params)]))

    @functools.cache  # noqa: B019 (it lives as long as one emission)
    def of(self, subset: tuple[int, ...]) -> tuple[Var, Var]:
        """The divided difference of the points of some axes, and an estimate of its error."""
        eps = self.constant(float(np.finfo(numpy_dtype(self.w.dtype)).eps))
        if len(subset) == 1:
            value = self.derivative(0, self.points[subset[0]])
            return value, REGISTRY["abs"](value) * eps
        quotient, rough = self.quotient(subset[0], subset[-1], subset)
        for p, q in itertools.combinations(subset, 2):
            if (p, q) != (subset[0], subset[-1]):
                other, error = self.quotient(p, q, subset)
                better = REGISTRY["lt"](error, rough)
                quotient = REGISTRY["where"](better, other, quotient)
                rough = REGISTRY["where"](better, error, rough)
        series, fine = self.series(subset)
        isfinite, below = REGISTRY["isfinite"], REGISTRY["lt"]
        near = below(REGISTRY["abs"](series - quotient), rough * self.constant(SURE) + fine)
        better = REGISTRY["logical_and"](REGISTRY["le"](fine, rough), near)
        # At equal points there is no quotient.
        taken = REGISTRY["logical_or"](better, REGISTRY["logical_not"](isfinite(rough)))
        where = REGISTRY["where"]
        return where(taken, series, quotient), where(taken, fine + REGISTRY["abs"](series) * eps, rough)

    def quotient(self, p: int, q: int, subset: tuple[int, ...]) -> tuple[Var, Var]:
        """By the difference of two points; its error is infinite where they are equal."""
        left, left_error = self.of(tuple(k for k in subset if k != q))
        right, right_error = self.of(tuple(k for k in subset if k != p))
        gap = self.points[p] - self.points[q]
        equal = REGISTRY["eq"](gap, self.constant(0.0))
        divisor = REGISTRY["where"](equal, self.constant(1.0), gap)
        error = (left_error + right_error) / REGISTRY["abs"](divisor)
        return (left - right) / divisor, REGISTRY["where"](equal, self.constant(math.inf), error)

    def series(self, subset: tuple[int, ...]) -> tuple[Var, Var]:
        """By Taylor's polynomial; the error is estimated by its last term."""
        m = len(subset) - 1
        points = [self.points[k] for k in subset]
        mean = functools.reduce(Var.__add__, points) * self.constant(1 / len(points))
        # Of equal points exactly that point.
        low, high = (
            functools.reduce(lambda x, y, name=name: REGISTRY[name](x, y), points) for name in ("minimum", "maximum")
        )
        mean = REGISTRY["minimum"](REGISTRY["maximum"](mean, low), high)
        spread = functools.reduce(Var.__add__, [(x - mean) * (x - mean) for x in points])
        first = self.derivative(m, mean) * self.constant(1 / math.factorial(m))
        last = self.derivative(m + 2, mean) * spread * self.constant(0.5 / math.factorial(m + 2))
        none = self.constant(0.0)
        last = REGISTRY["where"](REGISTRY["eq"](spread, none), none, last)
        size, whole = REGISTRY["abs"](last), REGISTRY["abs"](first)
        part = REGISTRY["where"](REGISTRY["lt"](size, whole), size / whole, self.constant(1.0))
        return first + last, size * part
