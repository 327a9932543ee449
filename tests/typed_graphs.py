"""Building typed graphs from Python functions on staged values: what inference does, for tests below it."""

from __future__ import annotations

import functools

import numpy as np

import myia_relay.prims  # noqa: F401
from myia_relay.abstract.types import FLOAT, INT, Array, Type, tuple_of
from myia_relay.ad.expand import expand
from myia_relay.backend.interpreter import run
from myia_relay.backend.python import compile_python
from myia_relay.ir.build import Builder, Var
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY
from myia_relay.ir.verify import verify
from myia_relay.opt.pipeline import optimize


class P:
    """Primitives by name: `P.sin(x)`."""

    def __class_getitem__(cls, name):
        return REGISTRY[name]


def vec(n=3, dtype="float64"):
    return Array(dtype, (n,))


def build(f, *types: Type, name: str = "f") -> Graph:
    """The typed graph of `f`, called once with staged parameters of these types."""
    g = Graph(name)
    b = Builder(g)
    code = getattr(f, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code else ()
    names = [*names, *(f"a{i}" for i in range(len(names), len(types)))]
    out = f(*[Var(b, g.add_parameter(n, t)) for n, t in zip(names, types)])
    g.output = staged(b, out).node
    return g


def staged(b: Builder, value) -> Var:
    """A value as a staged one: numbers become constants, tuples structures."""
    if isinstance(value, Var):
        return value
    if isinstance(value, tuple):
        parts = [staged(b, v).node for v in value]
        return Var(b, b.emit(REGISTRY["make_struct"], tuple(parts), {"type": tuple_of(*[p.type for p in parts])}))
    return Var(b, b.constant(value))


def _lead(values) -> Builder:
    return next(v.builder for v in values if isinstance(v, Var))


def apply(prim: str, *args, **attrs) -> Var:
    b = _lead(args)
    nodes = [staged(b, a).node for a in args]
    return Var(b, b.emit(REGISTRY[prim], tuple(nodes), attrs))


def cond(c, then, orelse, *operands) -> Var:
    types = [o.type for o in operands]
    return apply(
        "cond", c, *operands, then=build(then, *types, name="then"), orelse=build(orelse, *types, name="orelse")
    )


def for_(bounds, body, init, consts=(), b=None):
    """`for i in range(*bounds): carry = body(i, *carry, *consts)`."""
    b = b or _lead([*bounds, *init, *consts])
    args = [staged(b, a) for a in (*bounds, *init, *consts)]
    g = build(body, INT, *[a.type for a in args[3:]], name="body")
    return apply("for_loop", *args, body=g, carried=len(init))


def while_(test, body, init, consts=()):
    b = _lead([*init, *consts])
    args = [staged(b, a) for a in (*init, *consts)]
    types = [a.type for a in args]
    cond_g, body_g = build(test, *types, name="test"), build(body, *types, name="body")
    return apply("while_loop", *args, cond=cond_g, body=body_g, carried=len(init))


def call(g: Graph, *args) -> Var:
    b = _lead(args)
    return Var(b, b.call(g, tuple(staged(b, a).node for a in args)))


def vag(f, *args, wrt=(0,), has_aux=False) -> Var:
    """A `value_and_grad` node: (value, gradients)."""
    g = f if isinstance(f, Graph) else build(f, *[a.type for a in args], name="inner")
    return apply("value_and_grad", *args, graph=g, wrt=tuple(wrt), has_aux=has_aux)


def grad(f, wrt=0):
    """A staged function: the gradient of `f` by one argument."""
    return lambda *args: vag(f, *args, wrt=(wrt,))[1][0]


def expanded(g: Graph) -> Graph:
    verify(g, "the test")
    return verify(expand(g), "expand", transforms=False)


def run_all(g: Graph, args):
    """The value of a graph by the interpreter; the python executor must give the same, with and without regions."""
    value = run(g, args)
    for h in (g, optimize(g, check=True)):
        other = run(h, args)
        assert_same(compile_python(h)(*args), other)
        assert_same(compile_python(h, lambda region: lambda *xs: run(verify(region, "outline"), xs))(*args), other)
        assert_close(other, value)
    return value


def assert_same(a, b) -> None:
    """Equal in kind and to the bit."""
    assert type(a) is type(b), (a, b)
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert_same(list(a.items()), list(b.items()))
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert repr(a) == repr(b)


def assert_close(a, b) -> None:
    """Equal but for what optimised derived code may round differently."""
    if isinstance(a, tuple | list):
        for x, y in zip(a, b, strict=True):
            assert_close(x, y)
    elif isinstance(a, dict):
        assert_close(list(a.values()), list(b.values()))
    elif isinstance(a, float | np.generic | np.ndarray):
        assert type(a) is type(b)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    else:
        assert a == b


def gradient(f, *args, wrt=0, types=None):
    """The gradient of `f` at a point, by the interpreter."""
    types = types or [type_of(a) for a in args]

    def wrapper(*xs):
        return vag(f, *xs, wrt=(wrt,))[1][0]

    return run_all(expanded(build(wrapper, *types, name="grad")), args)


def type_of(value) -> Type:
    if isinstance(value, np.ndarray):
        return Array(value.dtype.name, value.shape)
    return FLOAT if isinstance(value, float) else INT


def numeric(f, *args, wrt=0, eps=1e-6, types=None):
    """Central differences of a staged scalar function, by the interpreter."""
    g = expanded(build(f, *(types or [type_of(a) for a in args])))
    x = np.array(args[wrt], dtype=np.float64)
    out = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        values = []
        for sign in (1, -1):
            moved = x.copy()
            moved[index] += sign * eps
            point = list(args)
            point[wrt] = moved if isinstance(args[wrt], np.ndarray) else float(moved)
            values.append(float(run(g, point)))
        out[index] = (values[0] - values[1]) / (2 * eps)
    return out


def check_orders(f, *args, wrt=0, order=2, rtol=1e-5, atol=1e-6):
    """Derivatives of a staged function up to an order, weighted sums of gradients, against central differences."""
    for _ in range(order):
        got, want = gradient(f, *args, wrt=wrt), numeric(f, *args, wrt=wrt)
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
        g = grad(f, wrt)
        f = functools.partial(_of_gradient, g)


def _of_gradient(g, *xs) -> Var:
    return _weighted(g(*xs))


def _weighted(x: Var) -> Var:
    """A scalar of a gradient: a weighted sum, so that no symmetry hides an error."""
    if isinstance(x.type, Array):
        weights = np.linspace(0.5, 1.5, int(x.type.size)).reshape(x.shape)
        total = REGISTRY["reduce_sum"](x * staged(x.builder, weights), axes=tuple(range(x.ndim)))
        return total
    return x
