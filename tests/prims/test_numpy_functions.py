"""NumPy's functions, methods and subscripts: the values, dtypes, shapes and kinds that NumPy gives."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

from myia_relay.library.sources import SOURCES
from myia_relay.prims.api.array_indices import masked
from myia_relay.prims.api.numpy_api import IMPLEMENTATIONS, METHODS, getitem, setitem
from myia_relay.utils.errors import CompileError, ShapeError, TypeError_

from .staged import run

RNG = np.random.default_rng(3)
A = RNG.uniform(0.1, 0.9, (2, 3))
B = RNG.uniform(0.1, 0.9, (2, 3))
T = RNG.uniform(-1, 1, (2, 3, 4))
V = RNG.uniform(-1, 1, 3)
I = RNG.integers(-5, 5, (2, 3))
SMALL = I.astype(np.int8)
F = A.astype(np.float32)
MASK = np.array([[True, False, True], [False, False, True]])


def same(ours, theirs, what="", rtol=1e-14):
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), what
        for x, y in zip(ours, theirs, strict=True):
            same(x, y, what, rtol)
        return
    assert isinstance(ours, np.ndarray) == isinstance(theirs, np.ndarray), (what, type(ours), type(theirs))
    if isinstance(theirs, np.ndarray | np.generic):
        assert ours.dtype == theirs.dtype, (what, ours.dtype, theirs.dtype)
        assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
        tolerance = {"f": rtol if theirs.dtype == np.float64 else 1e-6 if theirs.dtype == np.float32 else 2e-3}
        np.testing.assert_allclose(
            ours, theirs, rtol=tolerance.get(theirs.dtype.kind, 0), atol=1e-15, err_msg=str(what)
        )
    else:
        assert type(ours) is type(theirs) and ours == theirs, (what, ours, theirs)


def positional(function) -> list[str]:
    """The parameters that may be given by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds]


def test_arguments_have_numpys_positions():
    """What is given by position is what NumPy takes it for."""
    for function in {**IMPLEMENTATIONS, **SOURCES}:
        module = getattr(function, "__module__", None) or ""
        if isinstance(function, np.ufunc | type) or not module.startswith("numpy") or function is np.arange:
            continue
        try:
            theirs = positional(function)
        except ValueError:  # a builtin that does not tell
            continue
        ours = IMPLEMENTATIONS[function].positional if function in IMPLEMENTATIONS else positional(SOURCES[function])
        assert not theirs or list(ours[1:]) == theirs[1 : len(ours)], (function, ours, theirs)


UNARY = (
    *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan"),
    *("sinh", "cosh", "tanh", "rint", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "abs", "square", "sign"),
    *("negative", "cbrt", "exp2", "radians", "degrees", "logical_not", "nan_to_num", "fabs", "positive"),
)


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions(name):
    fn = getattr(np, name)
    for x in (
        A,
        F,
        F.astype(np.float16),
        np.float64(0.3),
        0.3,
        np.array(0.5),
        SMALL * 0 + 1,
        I * 0 + 1,
        1,
        np.zeros((0, 2)),
    ):
        with np.errstate(all="ignore"):
            try:
                wanted = fn(x)
            except TypeError:
                continue
            if name == "fabs" and np.asarray(x).dtype.kind == "i":
                continue  # a float of an int, which np.abs is not
            same(run(IMPLEMENTATIONS[fn], x), wanted, (name, x), 1e-12)


BINARY = (
    *(
        "add",
        "subtract",
        "multiply",
        "true_divide",
        "floor_divide",
        "remainder",
        "maximum",
        "minimum",
        "arctan2",
        "hypot",
    ),
    *("equal", "less", "greater_equal", "logaddexp", "copysign", "logical_and", "power", "float_power", "isclose"),
)
PAIRS = [
    (A, B),
    (A, V),
    (F, 2.0),
    (F, V),
    (SMALL, 3),
    (I, SMALL),
    (A, 2),
    (np.float32(2), 3.0),
    (2.0, 3.0),
    (2, 3),
    (I, 0.5),
    (np.uint8(3), SMALL),
]


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name):
    fn = getattr(np, name)
    for x, y in PAIRS:
        with np.errstate(all="ignore"):
            try:
                wanted = fn(x, y)
            except (TypeError, ValueError):
                continue
            same(run(IMPLEMENTATIONS[fn], x, y), wanted, (name, x, y), 1e-12)


CALLS = [
    (np.sum, (A,), {}),
    (np.sum, (A, 1), {}),
    (np.sum, (T,), {"axis": (0, -1), "keepdims": True}),
    (np.sum, (SMALL,), {}),
    (np.sum, (MASK,), {}),
    (np.sum, (SMALL, 0), {"dtype": np.float32}),
    (np.sum, (2.5,), {}),
    (np.sum, ([1, 2.5],), {}),
    (np.prod, (A, 0), {}),
    (np.prod, (SMALL,), {}),
    (np.mean, (A,), {}),
    (np.mean, (A, 1), {"keepdims": True}),
    (np.mean, (I,), {}),
    (np.mean, (F,), {}),
    (np.mean, (F.astype(np.float16),), {}),
    (np.max, (A, 0), {}),
    (np.max, (I,), {}),
    (np.min, (T, (1, 2)), {}),
    (np.var, (A,), {}),
    (np.var, (A, 0), {"ddof": 1}),
    (np.std, (F, 1), {}),
    (np.argmax, (T,), {}),
    (np.argmax, (T, 1), {}),
    (np.argmin, (T, -1), {"keepdims": True}),
    (np.all, (MASK, 1), {}),
    (np.any, (I,), {}),
    (np.ptp, (A, 1), {}),
    (np.count_nonzero, (I,), {}),
    (np.cumsum, (A, 1), {}),
    (np.cumsum, (SMALL,), {}),
    (np.cumprod, (A, 0), {}),
    (np.diff, (T,), {}),
    (np.diff, (A, 1, 0), {}),
    (np.reshape, (A, (3, -1)), {}),
    (np.reshape, (A, 6), {}),
    (np.ravel, (T,), {}),
    (np.transpose, (T,), {}),
    (np.transpose, (T, (1, 0, 2)), {}),
    (np.swapaxes, (T, 0, -1), {}),
    (np.moveaxis, (T, 0, -1), {}),
    (np.moveaxis, (T, (0, 1), (1, 2)), {}),
    (np.squeeze, (A[None, :, None],), {}),
    (np.squeeze, (A[None],), {"axis": 0}),
    (np.expand_dims, (A, (0, -1)), {}),
    (np.broadcast_to, (V, (2, 3)), {}),
    (np.flip, (A,), {}),
    (np.flip, (T, 1), {}),
    (np.concatenate, ((A, B),), {}),
    (np.concatenate, ((A, I), 1), {}),
    (np.concatenate, ([A, F], None), {}),
    (np.stack, ((A, B), -1), {}),
    (np.vstack, ((V, A),), {}),
    (np.hstack, ((V, V),), {}),
    (np.hstack, ((A, B),), {}),
    (np.column_stack, ((V, V),), {}),
    (np.split, (T, 2, -1), {}),
    (np.array_split, (T, 3, 2), {}),
    (np.split, (T, [1, 3], 2), {}),
    (np.tile, (A, (2, 1, 2)), {}),
    (np.repeat, (A, 2, 1), {}),
    (np.repeat, (A, 3), {}),
    (np.roll, (A, 1), {}),
    (np.roll, (T, -3, 2), {}),
    (np.roll, (T, (1, -2), (0, 2)), {}),
    (np.roll, (T, 2, (0, 0, 1)), {}),
    (np.roll, (T, (1, 2), 1), {}),
    (np.roll, (A, (1, 2)), {}),
    (np.pad, (A, 1), {}),
    (np.pad, (A, ((1, 2), (0, 1))), {"constant_values": 7.0}),
    (np.zeros, ((2, 3),), {}),
    (np.zeros, (3,), {"dtype": np.int32}),
    (np.ones, ((2,),), {}),
    (np.full, ((2, 2), 3), {}),
    (np.full, ((2,), 2.5), {"dtype": "float32"}),
    (np.zeros_like, (SMALL,), {}),
    (np.ones_like, (F,), {}),
    (np.full_like, (F, 2), {}),
    (np.eye, (3,), {}),
    (np.eye, (2, 4, 1), {}),
    (np.tri, (3, 4, -1), {}),
    (np.tril, (A,), {}),
    (np.triu, (T, 1), {}),
    (np.diag, (A,), {}),
    (np.diag, (V,), {}),
    (np.diag, (V, -1), {}),
    (np.diagonal, (T, 1), {}),
    (np.trace, (A,), {}),
    (np.clip, (T, -0.5, 0.5), {}),
    (np.clip, (SMALL, 0, 3), {}),
    (np.clip, (A, None, 0.5), {}),
    (np.where, (MASK, A, 0.0), {}),
    (np.where, (MASK, F, 1.0), {}),
    (np.where, (MASK, I, SMALL), {}),
    (np.where, (True, 1.0, 2.0), {}),
    (np.dot, (A, B.T), {}),
    (np.dot, (V, V), {}),
    (np.dot, (T, V[[0, 1, 2, 0]]), {}),
    (np.dot, (T, RNG.uniform(size=(3, 4, 2))), {}),
    (np.dot, (2.0, A), {}),
    (np.matmul, (A, B.T), {}),
    (np.matmul, (A, V), {}),
    (np.matmul, (V, A.T), {}),
    (np.matmul, (V, V), {}),
    (np.matmul, (T, RNG.uniform(size=(2, 4, 2))), {}),
    (np.matmul, (T, RNG.uniform(size=(4, 5))), {}),
    (np.matmul, (A, RNG.uniform(size=(4, 3, 2))), {}),
    (np.matmul, (T, RNG.uniform(size=4)), {}),
    (np.matmul, (V, RNG.uniform(size=(2, 3, 4))), {}),
    (np.matmul, (RNG.uniform(size=(5, 1, 2, 3)), RNG.uniform(size=(4, 3, 2))), {}),
    (np.matmul, (I, SMALL.T), {}),
    (np.matmul, (MASK, MASK.T), {}),
    (np.matmul, (F, F.T), {}),
    (np.inner, (A, B), {}),
    (np.inner, (V, V), {}),
    (np.outer, (A, V), {}),
    (np.vdot, (A, B), {}),
    (np.tensordot, (T, A, ([0, 1], [0, 1])), {}),
    (np.tensordot, (A, A.T, 1), {}),
    (np.linalg.norm, (A,), {}),
    (np.linalg.norm, (A,), {"axis": 1}),
    (np.linalg.norm, (V, 1), {}),
    (np.linalg.norm, (A, np.inf), {"axis": 0, "keepdims": True}),
    (np.linalg.norm, (V, 3), {}),
    (np.round, (T * 10, 1), {}),
    (np.round, (T * 10,), {}),
    (np.array, ([1.0, 2.0],), {}),
    (np.array, ([[1, 2], [3, 4]],), {"dtype": np.float32}),
    (np.array, (3.0,), {}),
    (np.asarray, (A,), {}),
    (np.float32, (A,), {}),
    (np.float32, (2.5,), {}),
    (np.int32, (-2.7,), {}),
    (np.int64, (5,), {}),
    (np.bool_, (2,), {}),
    (np.float64, (np.float32(0.1),), {}),
    (np.shape, (T,), {}),
    (np.ndim, (T,), {}),
    (np.size, (T,), {}),
    (np.size, (T, 1), {}),
    (np.fliplr, (A,), {}),
    (np.atleast_2d, (V,), {}),
    (np.identity, (2,), {}),
    (np.take, (A, np.array([0, 2, -1]), 1), {}),
    (np.take, (A, np.array([[5, 0]])), {}),
    (np.cumprod, (V,), {}),
]


@pytest.mark.parametrize("fn, args, kwargs", CALLS, ids=lambda v: getattr(v, "__name__", None))
def test_calls(fn, args, kwargs):
    m = IMPLEMENTATIONS[fn]
    static = [i for i, _ in enumerate(args) if i < len(m.positional) and m.positional[i] in m.static]
    if fn in (np.reshape, np.broadcast_to, np.split, np.array_split, np.tile, np.pad):
        static.append(1)
    if fn in (np.zeros, np.ones, np.full, np.eye, np.tri, np.identity):
        static += [0, 1] if fn in (np.eye, np.tri) else [0]
    wanted = fn(*args, **kwargs)
    if fn is np.count_nonzero:
        wanted = np.int64(wanted)  # a Python int in older NumPy
    same(run(m, *args, static=static, **kwargs), wanted, (fn.__name__, kwargs), 1e-12)


@pytest.mark.parametrize(
    "args",
    [(5,), (2, 7), (2, 11, 3), (5, 0, -2), (3.0,), (0.0, 1.0, 0.25), (4, 2)],
)
def test_arange_and_linspace(args):
    same(run(IMPLEMENTATIONS[np.arange], *args, static=(0, 1, 2)), np.arange(*args))
    same(run(IMPLEMENTATIONS[np.linspace], 0.5, 2.5, num=7), np.linspace(0.5, 2.5, 7))
    same(run(IMPLEMENTATIONS[np.linspace], 0.0, 2.0, num=4, endpoint=False), np.linspace(0.0, 2.0, 4, endpoint=False))


EINSUMS = [
    ("ij,jk->ik", A, B.T),
    ("ij,ij->", A, B),
    ("ij->ji", A),
    ("ij->", A),
    ("i,j->ij", V, V),
    ("bij,bjk->bik", T, T.swapaxes(1, 2)),
    ("ij,j", A, V),
    ("ii->i", A[:, :2]),
    ("ii->", A[:, :2]),
    ("...ij,jk->...ik", T, RNG.uniform(size=(4, 2))),
    ("bij,kj->bik", T, RNG.uniform(size=(5, 4))),
    ("ij,jk,kl->il", A, B.T, A),
    ("bij,bij->b", T, T),
    ("ij,kl->ijkl", A, A),
    ("ba", A),
    ("ijk->kj", T),
    ("i,i", V, V),
    ("ijj->i", RNG.uniform(size=(2, 3, 3))),
]


@pytest.mark.parametrize("case", EINSUMS, ids=lambda case: case[0])
def test_einsum(case):
    same(run(IMPLEMENTATIONS[np.einsum], *case, static=(0,)), np.einsum(*case), case[0], 1e-12)


METHOD_CALLS = [
    ("sum", T, (1,), {}),
    ("mean", A, (), {"axis": 0}),
    ("max", A, (), {}),
    ("argmax", A, (1,), {}),
    ("reshape", A, (3, 2), {}),
    ("reshape", A, (-1,), {}),
    ("ravel", A, (), {}),
    ("flatten", T, (), {}),
    ("transpose", T, (2, 0, 1), {}),
    ("transpose", T, (), {}),
    ("astype", A, (np.float32,), {}),
    ("astype", A, ("int64",), {}),
    ("astype", np.float64(2.5), (int,), {}),
    ("copy", A, (), {}),
    ("dot", A, (V,), {}),
    ("clip", A, (0.2, 0.5), {}),
    ("std", A, (), {}),
    ("any", MASK, (), {}),
    ("cumsum", A, (0,), {}),
    ("squeeze", A[None], (), {}),
    ("swapaxes", T, (0, 1), {}),
    ("item", np.array([[2.5]]), (), {}),
    ("item", np.float32(1.5), (), {}),
    ("round", A, (1,), {}),
    ("trace", A, (), {}),
    ("prod", V, (), {}),
    ("min", I, (0,), {}),
]


@pytest.mark.parametrize("name, x, args, kwargs", METHOD_CALLS, ids=lambda v: v if isinstance(v, str) else None)
def test_methods(name, x, args, kwargs):
    m = METHODS[name]
    every = name in ("reshape", "transpose")
    known = [every or (i + 1 < len(m.positional) and m.positional[i + 1] in m.static) for i in range(len(args))]
    static = [i + 1 for i, flag in enumerate(known) if flag]
    same(run(m, x, *args, static=static, **kwargs), getattr(x, name)(*args, **kwargs), name)


@pytest.mark.parametrize("name", ["T", "shape", "ndim", "size", "dtype", "mT"])
def test_attributes(name):
    ours, theirs = run(METHODS[name], T), getattr(T, name)
    assert METHODS[name].attribute
    if isinstance(theirs, np.ndarray):
        same(ours, theirs)
    else:
        assert ours == theirs


INDICES = [
    0,
    -1,
    slice(None),
    slice(1, None),
    (0, slice(None, None, -1)),
    (slice(None), 1),
    (1, 2),
    (-1, -1, -1),
    Ellipsis,
    (Ellipsis, 0),
    (None, 0),
    (slice(None), None, 2),
    (slice(0, 2, 2), slice(None, None, -2), slice(3, 0, -1)),
    (0, Ellipsis, 1),
    (1, slice(5, 9)),
    (slice(-2, None), slice(-10, 10)),
    (slice(2, 1),),
    np.int64(1),
    (0, 1, 2),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_getitem_with_known_indices(index):
    same(run(lambda b, x: getitem(b, x, index), T), T[index], index)


GATHERS = [
    (np.array([0, 1, 1]),),
    (slice(None), np.array([[2, -1]])),
    (0, np.array([1, 2])),
    (np.array([0, 1]), np.array([2, -3])),
    (np.array([0, 1]), slice(None), np.array([3, 0])),
    (slice(None), np.array([0, 2]), np.array([[1], [3]])),
    (0, slice(None), np.array([0, 3])),
    (np.array([1]), 0, 2),
    (Ellipsis, np.array([1, 0])),
    (None, np.array([1, 0])),
    (slice(0, 1), np.array([2, 0]), slice(None, None, 2)),
    (slice(None), [0, 2]),
]


@pytest.mark.parametrize("index", GATHERS, ids=str)
def test_getitem_with_arrays(index):
    same(
        run(
            lambda b, x, i: getitem(b, x, i),
            T,
            index,
            static=() if not any(isinstance(i, slice) for i in index) else (),
        ),
        T[index],
        index,
    )


def test_getitem_with_run_time_ints():
    for i, j in itertools.product([0, 1, -2], [2, -3, 0]):
        same(run(lambda b, x, i, j: getitem(b, x, (i, slice(None), j)), T, i, j), T[i, :, j])
        same(run(lambda b, x, i, j: getitem(b, x, (i, j)), A, i, j), A[i, j])
        same(run(lambda b, x, i, j: getitem(b, x, (i, j)), A, np.int32(i), j), A[i, j])
    with pytest.raises(IndexError, match="^index 5 is out of bounds for axis 0 with size 3$"):
        run(lambda b, x, i: getitem(b, x, i), V, 5)
    with pytest.raises(IndexError, match="^index -4 is out of bounds for axis 0 with size 3$"):
        run(lambda b, x: getitem(b, x, -4), V)
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
        run(lambda b, x, i: getitem(b, x, i), V, np.array([0, 7]))


def test_getitem_with_a_moving_window():
    def rule(b, x, i):
        from myia_relay.ir.prim import REGISTRY

        return getitem(b, x, (slice(None), slice(i, REGISTRY["add"](i, 2))))

    same(run(rule, T, 1), T[:, 1:3])
    with pytest.raises(IndexError, match="slice 2:4 is out of bounds"):
        run(rule, T, 2)


def test_what_cannot_be_indexed_says_why():
    for index, text in (
        (1.5, "index"),
        ((0, 0, 0), "too many indices"),
        (True, "np.where"),
        (V, "integer type"),
    ):
        with pytest.raises(CompileError, match=text):
            run(lambda b, x, i: getitem(b, x, i), A, index)


SETS = [
    (0, 9.0),
    (slice(None), 1.0),
    ((1, 2), 5),
    ((slice(None), 0), np.array([[1.0], [2.0]])[:, :1].repeat(4, 1)),
    ((0, slice(0, 3, 2)), V[0]),
    ((slice(None), slice(None, None, -2), 1), np.array([[1.0, 2.0]])),
    ((Ellipsis, -1), 3.0),
    ((slice(0, 1), slice(1, 3), slice(1, 4)), 8.0),
    ((1, 1, 1), 4.5),
    ((slice(None), slice(None), slice(1, None, 2)), 0.0),
    ((-1, slice(None), slice(0, 2)), A[:, :1].T[:, :1] * np.ones((3, 2))),
]


@pytest.mark.parametrize("index, value", SETS, ids=str)
def test_setitem(index, value):
    expected = T.copy()
    expected[index] = value
    same(run(lambda b, x, v: setitem(b, x, index, v), T, value), expected, index)


def test_setitem_at_run_time_positions_and_masks():
    for i, j in ((0, 2), (-1, -3)):
        expected = A.copy()
        expected[i, j] = 7
        same(run(lambda b, x, i, j, v: setitem(b, x, (i, j), v), A, i, j, 7), expected)
    expected = I.copy()
    expected[MASK] = 2
    same(run(lambda b, x, m, v: masked(b, x, m).assigned(b, v), I, MASK, 2), expected)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 1 with size 3"):
        run(lambda b, x, i, v: setitem(b, x, (0, i), v), A, 3, 1.0)
    with pytest.raises(ShapeError, match="could not broadcast input array from shape \\(2,\\) into shape \\(3,\\)"):
        run(lambda b, x, v: setitem(b, x, 0, v), A, np.ones(2))
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for int8"):
        run(lambda b, x, v: setitem(b, x, 0, v), SMALL, 300)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ShapeError, match=r"\(2, 3\).*\(4, 5\)"):
        run(IMPLEMENTATIONS[np.matmul], np.ones((2, 3)), np.ones((4, 5)))
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(4,\) do not broadcast"):
        run(IMPLEMENTATIONS[np.add], A, np.ones(4))
    with pytest.raises(ShapeError, match="axis 2 is out of bounds"):
        run(IMPLEMENTATIONS[np.sum], A, static=(), axis=2)
    with pytest.raises(TypeError_, match="'where' is not supported.*axis"):
        run(IMPLEMENTATIONS[np.sum], A, where=MASK)
    with pytest.raises(TypeError_, match="uint8.*"):
        run(IMPLEMENTATIONS[np.bitwise_and], np.uint8(3), 2.5)
    with pytest.raises(OverflowError, match="Python integer 300 out of bounds for int8"):
        run(IMPLEMENTATIONS[np.add], SMALL, 300)


def test_bfloat16_is_a_dtype_like_others():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1.0, 2.5], ml_dtypes.bfloat16)
    for rule, wanted in ((np.add, x + x), (np.multiply, x * x)):
        assert run(IMPLEMENTATIONS[rule], x, x).dtype == wanted.dtype
    assert run(IMPLEMENTATIONS[np.multiply], x, 2.0).dtype == x.dtype
    assert run(IMPLEMENTATIONS[np.add], x, np.float32(1)).dtype == np.float32
    assert run(IMPLEMENTATIONS[np.mean], x).dtype == x.dtype
    assert run(IMPLEMENTATIONS[np.tanh], x).dtype == x.dtype
    with pytest.raises(TypeError_, match="no common dtype"):
        run(IMPLEMENTATIONS[np.add], x, np.float16(1))


def test_nan_to_num_leaves_bfloat16_as_it_is():
    """As NumPy does, to which it is no float."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1.0, np.inf, -np.inf, np.nan], ml_dtypes.bfloat16)
    same(run(IMPLEMENTATIONS[np.nan_to_num], x), np.nan_to_num(x))
