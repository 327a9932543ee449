"""Building typed graphs by hand, and holding native results against the interpreter's."""

from __future__ import annotations

import math

import numpy as np

import myia_relay.prims  # noqa: F401  (registers the primitives)
from myia_relay.abstract.types import Array, Scalar, Struct
from myia_relay.backend import interpreter
from myia_relay.backend.tvm.program import compile_program
from myia_relay.ir.build import Builder, Var
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY


class Prims:
    """`P.add(x, y)` applies a primitive; a leading Builder of no arguments is found among them."""

    def __getattr__(self, name):
        return REGISTRY[name]


P = Prims()


def graph(types, body, name="f"):
    """The typed graph of a Python function of staged values."""
    g = Graph(name)
    b = Builder(g)
    params = [b.var(g.add_parameter(f"x{i}", t)) for i, t in enumerate(types)]
    g.output = as_node(b, body(*params))
    return g


def as_node(b, out):
    if isinstance(out, Var):
        return out.node
    if isinstance(out, tuple):
        parts = tuple(as_node(b, o) for o in out)
        return b.emit(REGISTRY["make_struct"], parts, {"type": Struct("tuple", tuple(p.type for p in parts))})
    return b.constant(out)


def emit(near, name, *args, **attrs):
    """Apply a primitive that takes graphs or no data."""
    b = near.builder
    return b.var(b.emit(REGISTRY[name], tuple(as_node(b, a) for a in args), attrs))


def sub(types, body, name="sub"):
    """A graph for `then`, `body`, ..."""
    return graph(types, body, name)


def array_type(x):
    return Array(x.dtype.name, x.shape)


def type_of(value):
    if isinstance(value, bool):
        return Scalar("bool", True)
    if isinstance(value, int):
        return Scalar("int64", True)
    if isinstance(value, float):
        return Scalar("float64", True)
    if isinstance(value, np.ndarray):
        return array_type(value)
    if isinstance(value, np.generic):
        return Scalar(value.dtype.name)
    if isinstance(value, tuple):
        return Struct("tuple", tuple(type_of(v) for v in value))
    raise TypeError(type(value))


def compile_(body, *args):
    """(program, graph) of a function for arguments like these."""
    g = graph([type_of(a) for a in args], body)
    return compile_program(g), g


def check(body, *args, rtol=None, atol=None):
    """Compile for the arguments, run natively and by the interpreter, compare; returns the native result."""
    program, g = compile_(body, *args)
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    expected = interpreter.run(g, copies)
    for _ in range(2):  # a second run meets a used workspace
        result = program(*args)
        same(result, expected, rtol, atol)
    for a, c in zip(args, copies):
        same(a, c, 0, 0)  # arguments are not touched
    return result


def same(a, b, rtol=None, atol=None):
    """Equal kinds, equal values; floats within a few units in the last place of their dtype unless said otherwise."""
    assert type(a) is type(b), (type(a), type(b))
    if isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y, rtol, atol)
        return
    if isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()), rtol, atol)
        return
    if isinstance(a, np.ndarray | np.generic):
        assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype, a.shape, b.shape)
        if a.dtype.kind == "f" or a.dtype.name == "bfloat16":
            eps = float(np.finfo(a.dtype).eps) if a.dtype.kind == "f" else 2.0**-7
            r, t = 16 * eps if rtol is None else rtol, 16 * eps if atol is None else atol
            np.testing.assert_allclose(np.asarray(a, "f8"), np.asarray(b, "f8"), rtol=r, atol=t)
        else:
            np.testing.assert_array_equal(a, b)
        return
    if isinstance(a, float) and rtol is None:
        rtol = 1e-14  # NumPy's functions of scalars are not libm's
    assert a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=rtol or 0), (a, b)
