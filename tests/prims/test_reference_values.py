"""Meanings of primitives against C, Python and NumPy on awkward operands, and what inference refuses."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import math

import numpy as np
import pytest

from myia_relay.abstract.types import BOOL, FLOAT, INT, Array, Scalar, tuple_of
from myia_relay.ir.build import type_of_constant
from myia_relay.ir.prim import REGISTRY
from myia_relay.prims.ops.elementwise import _c_pow
from myia_relay.prims.ops.shape import expand_dims, padded_shape, stack
from myia_relay.prims.rules.broadcast import reduced_shape
from myia_relay.utils.errors import CompileError, InternalError

from .examples import EXAMPLES
from .lowering import Index, NumpyLowering, lower
from .staged import evaluate, stage
from .test_registry import compute

INF, NAN = math.inf, math.nan
M34 = np.arange(12.0).reshape(3, 4)
AWKWARD = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 1e200, -1e200, 1e200 + 1e190, 4.0, -4.0, 2.0**53,
           1001.0, -1001.0, 5e-324, -5e-324, INF, -INF, NAN]  # fmt: skip


def c_pow():
    found = ctypes.CDLL(ctypes.util.find_library("m") or None).pow
    found.restype, found.argtypes = ctypes.c_double, (ctypes.c_double, ctypes.c_double)
    return found


def same(a, b) -> bool:
    return a != a and b != b or a == b and math.copysign(1.0, a) == math.copysign(1.0, b)


def test_powers_of_floats_are_those_of_c():
    pow_ = c_pow()
    for a, b in itertools.product(AWKWARD, AWKWARD):
        assert same(_c_pow(a, b), pow_(a, b)), (a, b)


def reference(name, *args, **attrs):
    with np.errstate(all="ignore"):
        return REGISTRY[name].reference(*args, **attrs)


def test_powers_of_arrays_and_numbers():
    pow_ = c_pow()
    for b in (0.5, 2.0, -1.0, 3.0, 1.0, 0.0):
        for got in (reference("pow", np.array(AWKWARD), b), reference("pow", np.array(AWKWARD), np.float64(b))):
            assert all(same(x, pow_(a, b)) for a, x in zip(AWKWARD, got.tolist()))
        assert same(float(reference("pow", np.float64(-0.0), b)), pow_(-0.0, b))
    single = reference("pow", np.float32(2.0), np.float32(0.5))
    assert type(single) is np.float32 and single == np.float32(2.0) ** np.float32(0.5)
    for a, b in np.random.default_rng(0).uniform(0.5, 4.0, (50, 2)).astype("float32"):  # not as of arrays, to the bit
        assert reference("pow", a, b) == a**b
    assert reference("pow", np.array([[2, -3]]), np.array([[-1], [3]])).tolist() == [[0, 0], [8, -27]]
    assert reference("pow", np.int64(3), np.int64(-2)) == 0 and reference("pow", 3, 4) == 81


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16"])
def test_powers_of_integers(dtype):
    """The low bits of Python's powers, and 0 where these are fractions."""
    bases = np.array([0, 1, 2, 3, 7, 100, -1, -2, -3], "int64").astype(dtype)
    exponents = np.arange(0 if dtype == "uint16" else -3, 9).astype(dtype)
    size = bases.itemsize
    want = [[a**b % 2 ** (8 * size) if b >= 0 else 0 for b in exponents.tolist()] for a in bases.tolist()]
    want = np.array(want, f"uint{8 * size}").astype(dtype)
    got = reference("pow", bases[:, None], exponents)
    assert got.dtype == dtype and got.tolist() == want.tolist()
    for (i, j), x in np.ndenumerate(want):
        assert reference("pow", bases[i], exponents[j]) == x


EDGES = [
    0,
    1,
    -1,
    2,
    2**31,
    2**62,
    -(2**62),
    2**63 - 1,
    2**63 - 2,
    -(2**63),
    -(2**63) + 1,
    3037000499,
    3037000500,
    -3037000500,
]


@pytest.mark.parametrize(("name", "f"), [("add", int.__add__), ("sub", int.__sub__), ("mul", int.__mul__)])
def test_what_overflows_is_what_python_says(name, f):
    a, b = np.array(EDGES)[:, None], np.array(EDGES)
    want = [[not -(2**63) <= f(x, y) < 2**63 for y in EDGES] for x in EDGES]
    got = reference(f"{name}_overflows", a, b)
    assert got.tolist() == want and got.dtype == bool
    assert reference(f"{name}_overflows", 2**62, 2**62) == (name != "sub")


def test_quotients_of_integers_are_those_of_python():
    for a, b in itertools.product(EDGES, EDGES):
        want = a / b if b else NAN if a == 0 else math.copysign(INF, a)
        assert same(float(reference("int_truediv", a, b)), want), (a, b)


@pytest.mark.parametrize(
    ("name", "args", "attrs", "sizes"),
    [
        ("pad", (M34, 0.0), {"low": (1, 0), "high": (0, 0), "interior": (0, 0)}, (3, 4)),
        ("concatenate", (M34, M34[:, :2]), {"axis": 1}, (2,)),
        ("dynamic_index", (M34, 1), {"axis": 1}, (4,)),
        ("dynamic_slice", (M34, 1), {"axis": 0, "length": 2}, (2,)),
        ("dynamic_update_slice", (M34, M34[:2], 1), {"axis": 0}, (2,)),
        ("take", (M34, np.array([1, 0])), {"axis": 1}, (4,)),
    ],
)
def test_what_may_be_empty_is_said_where_it_is_read(name, args, attrs, sizes):
    prim, b = REGISTRY[name], NumpyLowering()
    types = [type_of_constant(a) for a in args]
    out = prim.infer_rule(*types, **attrs)
    reads = [lambda at, a=a: np.asarray(a)[tuple(map(int, at))] for a in args]
    prim.lower_rule(b, [Index(0)] * len(out.shape), *reads, in_types=types, out_type=out, **attrs)
    assert b.asked == sizes


def test_a_back_end_may_divide_integers_itself():
    class Own:
        def int_truediv(self, x, y):
            return ("own", x, y)

    assert REGISTRY["int_truediv"].lower_rule(Own(), 7, 2) == ("own", 7, 2)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sigmoid_and_rounded_functions(dtype):
    x = np.array([-1e4, -2.0, 0.0, 0.5, 1e4, INF, -INF], dtype)
    got = reference("sigmoid", x)
    assert got.dtype == dtype and got[0] == 0 and got[4] == 1 and got[5] == 1 and got[6] == 0 and got[2] == 0.5
    np.testing.assert_allclose(got[1:4], 1 / (1 + np.exp(-x[1:4])), rtol=1e-6)
    erf = reference("erf", x)
    assert erf.dtype == dtype and erf.tolist() == [np.dtype(dtype).type(math.erf(v)) for v in x.tolist()]


def test_meanings_are_silent():
    """What NumPy warns of is no error in compiled code; the interpreter, which runs these, warns neither."""
    cases = {
        "sigmoid": [(np.array([-1e4, 1e4]),)],
        "floordiv": [(1e300, 1e-300), (1.0, 0.0), (np.array([0.0]), np.array([0.0])), (np.array([3]), np.array([0]))],
        "mod": [(1.0, 0.0), (np.array([INF]), np.array([2.0])), (np.array([3]), np.array([0]))],
    }
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        for name, arguments in cases.items():
            for args in arguments:
                REGISTRY[name].reference(*map(np.asarray, args))


def test_parts_of_empty_arrays():
    assert reference("dynamic_index", np.zeros((2, 0)), 1, axis=1).tolist() == [0, 0]
    assert reference("dynamic_update", np.zeros((2, 0)), np.ones(2), 1, axis=1).shape == (2, 0)
    assert reference("index_add", np.zeros((2, 0)), np.ones(2), 1, axis=1).shape == (2, 0)
    assert reference("slice", np.arange(3.0), starts=(0,), sizes=(0,), steps=(-1,)).shape == (0,)
    assert reference("pad", np.zeros(0), 7.0, low=(1,), high=(2,), interior=(3,)).tolist() == [7, 7, 7]
    assert padded_shape((0, 3), (1, 1), (2, 0), (5, 2)) == (3, 8)


def test_arrays_on_a_new_axis():
    one, two = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    for axis in (0, 1, 2):
        builder, xs = stage((one, two))
        assert np.array_equal(evaluate(builder.graph, (one, two), stack(*xs, axis=axis))[0], np.stack((one, two), axis))
        builder, xs = stage((one,))
        assert np.array_equal(evaluate(builder.graph, (one,), stack(*xs, axis=axis))[0], np.stack((one,), axis))
        assert np.array_equal(evaluate(builder.graph, (one,), expand_dims(xs[0], axis))[0], np.expand_dims(one, axis))


def test_shapes_of_reductions():
    assert reduced_shape((2, 3, 4), (0, 2), False) == (3,) and reduced_shape((2, 3, 4), (0, 2), True) == (1, 3, 1)
    assert reduced_shape((2, 3), (), False) == (2, 3)
    for axes in ((2,), (-1,), (1, 0), (0, 0)):
        with pytest.raises(InternalError):
            reduced_shape((2, 3), axes, False)


def test_where_a_mask_is_true():
    mask = np.array([False, True, True, False, True])
    assert compute(REGISTRY["flat_nonzero"], (mask,), {"size": 3}).tolist() == [1, 2, 4]
    assert REGISTRY["flat_nonzero"].infer_rule(Array("bool", (5,)), size=3) == Array("int64", (3,))


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min", "reduce_sum", "reduce_prod"])
def test_reductions_over_nothing(name):
    for dtype in ("float64", "int8", "uint16"):
        info = np.iinfo(dtype) if "int" in dtype else None
        least, most = (info.min, info.max) if info else (-INF, INF)
        want = {"reduce_max": least, "reduce_min": most, "reduce_sum": 0, "reduce_prod": 1}[name]
        got = compute(REGISTRY[name], (np.zeros((2, 0), dtype),), {"axes": (1,)})
        assert got.tolist() == [want, want] and got.dtype == dtype


def test_joining_empty_arrays():
    concatenate = REGISTRY["concatenate"]
    for sizes in ((0, 3, 0, 2), (3, 0), (0, 0)):
        args = tuple(np.full((n, 2), float(k)) for k, n in enumerate(sizes))
        types = [type_of_constant(a) for a in args]
        out = concatenate.infer_rule(*types, axis=0)
        assert np.array_equal(lower(concatenate, args, {"axis": 0}, types, out), np.concatenate(args))


# --- what inference refuses -------------------------------------------------------------------------------------------------

V, M, T = Array("float64", (3,)), Array("float64", (2, 3)), Array("float64", (4, 2, 3))
INTS = Array("int64", (3,))
REFUSED = [
    ("sin", (INT,), {}),
    ("add", (FLOAT, INT), {}),
    ("add", (V, Array("float64", (4,))), {}),
    ("add", (BOOL, BOOL), {}),
    ("div", (INT, INT), {}),
    ("bitwise_and", (FLOAT, FLOAT), {}),
    ("left_shift", (BOOL, BOOL), {}),
    ("logical_and", (INT, BOOL), {}),
    ("logical_not", (INT,), {}),
    ("where", (INT, FLOAT, FLOAT), {}),
    ("where", (BOOL, FLOAT, INT), {}),
    ("where", (BOOL, V, Array("float64", (4,))), {}),
    ("add_overflows", (INT, Scalar("int32")), {}),
    ("add_overflows", (Scalar("int32"), INT), {}),
    ("int_truediv", (FLOAT, INT), {}),
    ("int_truediv", (INT, FLOAT), {}),
    ("cast", (INT,), {"dtype": "int8", "weak": True}),
    ("as_scalar", (V,), {}),
    ("broadcast_to", (V,), {"shape": (4,)}),
    ("broadcast_to", (V,), {"shape": ()}),
    ("reshape", (V,), {"shape": (2, 2)}),
    ("reduce_sum", (FLOAT,), {"axes": ()}),
    ("reduce_sum", (Array("bool", (3,)),), {"axes": (0,)}),
    ("reduce_prod", (Array("bool", (3,)),), {"axes": (0,)}),
    ("reduce_all", (INTS,), {"axes": (0,)}),
    ("reduce_max", (FLOAT,), {"axes": ()}),
    ("cumsum", (Array("bool", (3,)),), {"axis": 0}),
    ("argmax", (FLOAT,), {"axis": 0}),
    ("flat_nonzero", (INTS,), {"size": 2}),
    ("flat_nonzero", (Array("bool", (2, 3)),), {"size": 2}),
    ("transpose", (FLOAT,), {"perm": ()}),
    ("transpose", (M,), {"perm": (0, 0)}),
    ("transpose", (M,), {"perm": (0, 1, 2)}),
    ("slice", (M,), {"starts": (0,), "sizes": (2,), "steps": (1,)}),
    ("slice", (V,), {"starts": (1,), "sizes": (3,), "steps": (1,)}),
    ("slice", (V,), {"starts": (3,), "sizes": (1,), "steps": (1,)}),
    ("slice", (V,), {"starts": (-1,), "sizes": (1,), "steps": (1,)}),
    ("slice", (V,), {"starts": (1,), "sizes": (3,), "steps": (-1,)}),
    ("pad", (M, FLOAT), {"low": (0,), "high": (0,), "interior": (0,)}),
    ("pad", (V, INT), {"low": (0,), "high": (0,), "interior": (0,)}),
    *(
        ("pad", (V, Scalar("float64")), {"low": (0,), "high": (0,), "interior": (0,), k: (-1,)})
        for k in ("low", "high", "interior")
    ),
    ("flip", (FLOAT,), {"axes": ()}),
    ("concatenate", (FLOAT,), {"axis": 0}),
    ("concatenate", (M, V), {"axis": 0}),
    ("concatenate", (M, Array("float64", (2, 4))), {"axis": 0}),
    ("concatenate", (V, INTS), {"axis": 0}),
    ("one_hot", (FLOAT,), {"n": 3, "dtype": "float64"}),
    ("dynamic_index", (FLOAT, INT), {"axis": 0}),
    ("dynamic_index", (V, FLOAT), {"axis": 0}),
    ("dynamic_index", (V, INTS), {"axis": 0}),
    ("dynamic_slice", (FLOAT, INT), {"axis": 0, "length": 1}),
    ("dynamic_slice", (V, INTS), {"axis": 0, "length": 1}),
    ("dynamic_slice", (V, INT), {"axis": 0, "length": 4}),
    *((name, (M, V, FLOAT), {"axis": 0}) for name in ("dynamic_update", "index_add")),
    *((name, (M, V, INT), {"axis": 1}) for name in ("dynamic_update", "index_add")),
    *((name, (M, INTS, INT), {"axis": 0}) for name in ("dynamic_update", "index_add")),
    *((name, (FLOAT, FLOAT, INT), {"axis": 0}) for name in ("dynamic_update", "index_add")),
    *((name, (M, V, INT), {"axis": 0}) for name in ("dynamic_update_slice", "slice_add")),
    *((name, (M, FLOAT, INT), {"axis": 0}) for name in ("dynamic_update_slice", "slice_add")),
    *((name, (M, M, FLOAT), {"axis": 0}) for name in ("dynamic_update_slice", "slice_add")),
    *((name, (M, Array("float64", (1, 4)), INT), {"axis": 0}) for name in ("dynamic_update_slice", "slice_add")),
    ("take", (FLOAT, INT), {"axis": 0}),
    ("take", (V, FLOAT), {"axis": 0}),
    ("scatter_add", (V, INTS, Array("float64", (4,))), {"axis": 0}),
    ("scatter_add", (V, INTS, INTS), {"axis": 0}),
    ("dot", (V, M), {}),
    ("dot", (M, V), {}),
    ("dot", (M, M), {}),
    ("dot", (M, Array("float32", (3, 2))), {}),
    ("dot", (Array("bool", (2, 3)), Array("bool", (3, 2))), {}),
    ("matvec", (V, V), {}),
    ("matvec", (M, M), {}),
    ("matvec", (M, Array("float64", (2,))), {}),
    ("matvec", (M, Array("float32", (3,))), {}),
    ("batched_dot", (M, T), {}),
    ("batched_dot", (T, M), {}),
    ("batched_dot", (T, T), {}),
    ("batched_dot", (T, Array("float64", (3, 3, 2))), {}),
    ("batched_dot", (T, Array("float32", (4, 3, 2))), {}),
]


@pytest.mark.parametrize(
    ("name", "types", "attrs"), [pytest.param(*c, id=f"{c[0]}-{k}") for k, c in enumerate(REFUSED)]
)
def test_what_inference_refuses(name, types, attrs):
    prim = REGISTRY[name]
    with pytest.raises((CompileError, InternalError)):
        prim.infer_rule(*types, **{**prim.attr_defaults, **attrs})


UNCHECKED = ("as_scalar", "stop_gradient")  # rules alone make the one, and the other takes anything
ARITHMETIC = [name for name in EXAMPLES if REGISTRY[name].kind == "elementwise" and name not in UNCHECKED]


@pytest.mark.parametrize("name", ARITHMETIC)
def test_elementwise_primitives_refuse_tuples(name):
    prim = REGISTRY[name]
    for args, attrs in EXAMPLES[name]:
        types = [type_of_constant(a) for a in args]
        for k, t in enumerate(types):
            with pytest.raises((CompileError, InternalError)):
                prim.infer_rule(*types[:k], tuple_of(t), *types[k + 1 :], **{**prim.attr_defaults, **attrs})
