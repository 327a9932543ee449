"""Arguments for every primitive: values away from kinks, shapes that exercise what the primitive does.

`EXAMPLES` maps a primitive's name to a list of `(arguments, attributes)`. `UNTESTED` names the primitives that
only executors implement (control, effects, structures), which the registry test does not cover.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import myia_relay.prims  # noqa: F401  which registers them
from myia_relay.ir.prim import REGISTRY
from myia_relay.prims.ops.fourier import roots
from myia_relay.prims.ops.registered import Operator

_rng = np.random.default_rng(7)


def uniform(*shape, low=-2.0, high=2.0):
    """Floats with no ties and no special values."""
    return _rng.uniform(low, high, shape)


def ints(*shape, low=-9, high=9, dtype=np.int64):
    return _rng.integers(low, high, shape).astype(dtype)


EXAMPLES: dict[str, list[tuple[tuple, dict]]] = {}


NO_GRADIENT: set[tuple[str, int]] = set()
"""Examples, by name and number, at points without a derivative."""


def example(name, *args, **attrs):
    EXAMPLES.setdefault(name, []).append((args, attrs))


def value_example(name, *args, **attrs):
    """An example for values only."""
    NO_GRADIENT.add((name, len(EXAMPLES.get(name, ()))))
    example(name, *args, **attrs)


X = uniform(2, 3)
POSITIVE = uniform(2, 3, low=0.2, high=3.0)
INSIDE = uniform(2, 3, low=-0.9, high=0.9)
ROW = uniform(3)
COLUMN = uniform(2, 1)

for _name in "neg abs sign exp expm1 sin cos tan arctan sinh cosh tanh sigmoid erf floor ceil trunc rint".split():
    example(_name, X)
    example(_name, 0.7)
    example(_name, np.float64(-1.3))
    example(_name, X.astype(np.float32))
example("from_bfloat16", X.astype(ml_dtypes.bfloat16))
for _from, _to in (
    *(("float32", "int32"), ("float64", "uint64"), ("float16", "uint16"), ("int32", "float32"), ("int64", "float64")),
    *(("int16", "float16"), ("int8", "uint8"), ("uint32", "int32"), ("float16", "bfloat16"), ("int16", "bfloat16")),
):
    example("bitcast", (1000 * X).astype(_from), dtype=_to)
    example("bitcast", np.array([0, 1, 77], _from)[2], dtype=_to)
example("bitcast", np.array([-0.0, np.inf, -np.inf, 1e-45, 1], np.float32), dtype="int32")
example("bitcast", X.astype(ml_dtypes.bfloat16), dtype="int16")
for _name in "log log1p log2 log10 sqrt".split():
    example(_name, POSITIVE)
    example(_name, 1.7)
for _name in "arcsin arccos".split():
    example(_name, INSIDE)
KEYS = np.random.default_rng(3).integers(0, 1 << 64, (2, 3), np.uint64)
COUNTERS = np.arange(3, dtype=np.uint64)
for _name in ("threefry2x32", "mul_high"):
    example(_name, KEYS, COUNTERS)
    example(_name, KEYS, KEYS[0, 1])
    example(_name, KEYS[0, 0], KEYS[1, 1])
    example(_name, np.uint64((1 << 64) - 1), KEYS)
example("rounded", X)
example("rounded", X.astype(np.float32))
example("portable_log", POSITIVE)
example("portable_log", POSITIVE.astype(np.float32))
value_example("portable_log", np.array([2.0**-53, 1 - 2.0**-53, 1.0, 1e300]))
example("normal_upper_quantile", uniform(2, 3, low=0.01, high=0.49))
value_example("normal_upper_quantile", np.array([0.5, 0.03, 1e-5, 1e-12], np.float32))
value_example("normal_upper_quantile", np.array([0.5, 1e-5, 1e-12, 1e-300]))
example("normal_from_bits", KEYS)
example("normal_from_bits", np.array([0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1], np.uint64))
example("normal_from_bits", (KEYS >> np.uint64(32)).astype(np.uint32))
example("normal_from_bits", np.array([0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1], np.uint32))
example("shuffled", KEYS)
example("shuffled", KEYS.reshape(3, 2)[:, None])
value_example("gamma_draw", KEYS, np.array([[0.3], [4.0]]))
value_example("gamma_draw", KEYS[0, 0], 2.5)
value_example("gamma_draw", KEYS[0, 0], np.array([-1.0, 0.0, np.nan, np.inf, 1e-3, 1e6]))
value_example("gamma_slope", np.array([0.3, 2.5, 2.5, 30.0]), np.array([2.0, 1.3, 6.0, 25.0]), uniform(4))
value_example("gamma_slope", 2.5, 1.5, 0.7)
for _name in ("arcsinh", "exp2", "erfc"):
    example(_name, X)
    example(_name, 0.7)
    example(_name, X.astype(np.float32))
for _name in ("cbrt", "gamma", "lgamma", "arccosh"):
    example(_name, POSITIVE + 1)
    example(_name, 2.6)
for _name in ("cbrt", "gamma", "lgamma"):
    example(_name, np.array([-0.3, -1.6, 0.2, 3.5]))
value_example("gamma", np.array([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 200.0]))
value_example("lgamma", np.array([0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 1e308]))
example("arctanh", INSIDE)
for _name in ("isnan", "isinf", "isfinite"):
    example(_name, np.array([1.0, np.nan, np.inf, -np.inf, -0.0]))
    example(_name, float("nan"))
for _name in ("neg", "abs", "sign", "bitwise_not"):
    example(_name, ints(4))
    example(_name, ints(4, dtype=np.int8))
    example(_name, -3)
example("neg", np.array([-128, 127], np.int8))
example("logical_not", np.array([True, False]))

for _name in "add sub mul maximum minimum arctan2 eq ne lt le gt ge".split():
    example(_name, X, uniform(2, 3))
    example(_name, COLUMN, ROW)
    example(_name, X, 0.35)
    example(_name, np.float64(0.4), 0.35)
    example(_name, 0.4, 1.25)
    example(_name, X.astype(np.float32), ROW.astype(np.float32))
for _name in ("add", "sub", "mul", "maximum", "minimum", "eq", "lt"):
    example(_name, ints(2, 3), ints(3))
    example(_name, ints(4, dtype=np.uint8, low=200, high=255), ints(4, dtype=np.uint8, low=0, high=255))
for _name in ("maximum", "minimum"):
    value_example(_name, np.array([1.0, np.nan, 3.0]), np.array([np.nan, 2.0, -np.inf]))
    example(_name, np.array([True, False]), np.array([True, True]))
for _name in ("div", "pow"):
    example(_name, POSITIVE, uniform(3, low=0.5))
    example(_name, 1.7, -2.5)
    example(_name, POSITIVE, np.float64(2.0))
value_example("pow", np.array([-2.0, 0.5]), 3.0)
example("pow", ints(5), np.array([0, 1, 2, 3, -1]))
example("floordiv", X, uniform(3))
example("mod", X, uniform(3, low=0.5))
example("mod", X, uniform(3, low=-2, high=-0.5))
for _name in ("floordiv", "mod"):
    example(_name, ints(3, 4), np.array([2, -3, 0, 5]))
    example(_name, -7, 2)
    example(_name, -7.5, 2.0)
    value_example(_name, np.array([1.0, -1.0, 0.0, -0.0]), np.array([0.0, np.inf, 3.0, 3.0]))
for _name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "eq", "ne"):
    example(_name, np.array([True, True, False, False]), np.array([True, False, True, False]))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    example(_name, ints(4), ints(4))
for _name in ("left_shift", "right_shift"):
    example(_name, ints(4), np.array([0, 1, 5, 63]))
    example(_name, -9, 2)
for _name in ("add_overflows", "sub_overflows", "mul_overflows"):
    _edges = np.array([0, 1, -1, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), 3037000500])
    example(_name, _edges[:, None], _edges)
    example(_name, 2**62, 2**62)
example("int_truediv", ints(3, 2), np.array([3, -7]))
example("int_truediv", 7, 2)
example("where", np.array([True, False, True]), X, ROW)
example("where", True, 1.5, 2.5)
example("where", np.array([True, False]), 1.5, 2.5)
example("where", np.array([[True], [False]]), 1.5, ROW)

for _dtype in ("float32", "int64", "bool", "int8"):
    example("cast", X, dtype=_dtype)
    example("cast", ints(3), dtype=_dtype)
example("cast", 3, dtype="float64", weak=True)
example("cast", np.float64(2.5), dtype="float64", weak=True)
example("cast", 2.5, dtype="float64")
example("as_scalar", np.array(1.5))
example("as_array", 1.5)
example("as_array", np.float32(1.5))
example("stop_gradient", X)
for _name in ("mean_over_examples", "example_count", "example_index"):
    example(_name, X)
    example(_name, 0.5)

example("broadcast_to", X, shape=(4, 2, 3))
example("broadcast_to", COLUMN, shape=(2, 5))
example("broadcast_to", 1.5, shape=(2, 2))
example("reshape", X, shape=(3, 2))
example("reshape", uniform(2, 3, 4), shape=(2, 4, 3))
example("reshape", uniform(2, 3, 4), shape=(24,))
example("reshape", uniform(1, 1), shape=())
example("reshape", 1.5, shape=(1, 1))
example("reshape", uniform(0, 3), shape=(3, 2, 0))
example("reshape", uniform(6), shape=(1, 2, 1, 3))
example("reshape", uniform(1, 2, 3), shape=(1, 1, 2, 3))
example("reshape", uniform(2, 3, 2), shape=(2, 6))
example("transpose", uniform(2, 3, 4), perm=(2, 0, 1))
example("slice", uniform(3, 4), starts=(0, 1), sizes=(3, 2), steps=(1, 1))
example("slice", uniform(5, 6), starts=(1, 5), sizes=(3, 3), steps=(1, -2))
example("slice", uniform(7), starts=(6,), sizes=(7,), steps=(-1,))
example("slice", uniform(7), starts=(1,), sizes=(3,), steps=(2,))
example("slice", uniform(7), starts=(0,), sizes=(0,), steps=(1,))
example("pad", X, 0.5, low=(1, 0), high=(2, 1), interior=(0, 2))
example("pad", uniform(3), np.float64(1.0), low=(0,), high=(0,), interior=(0,))
example("flip", uniform(2, 3, 2), axes=(0, 1))
example("concatenate", X, uniform(1, 3), uniform(4, 3), axis=0)
example("concatenate", X, uniform(2, 1), axis=1)
example("iota", n=5, dtype="int64")
example("iota", n=3, dtype="float32")
example("tri_mask", n=3, m=4, k=-1)
example("tri_mask", n=3, m=3, k=1)
example("one_hot", np.array([0, 2, 5]), n=4, dtype="float32")
example("one_hot", 1, n=3, dtype="float64")

for _i in (0, 1, 7, -5):
    example("dynamic_index", X, _i, axis=1)
    example("dynamic_index", ROW, _i, axis=0)
    example("dynamic_slice", uniform(2, 4), _i, axis=1, length=2)
    example("dynamic_update", X, uniform(2), _i, axis=1)
    example("dynamic_update", ROW, np.float64(0.5), _i, axis=0)
    example("index_add", X, uniform(3), _i, axis=0)
    example("index_add", ROW, 0.5, _i, axis=0)
    example("dynamic_update_slice", uniform(4, 2), uniform(2, 2), _i, axis=0)
    example("slice_add", uniform(4, 2), uniform(3, 2), _i, axis=0)
    for _name in ("dynamic_update_slice", "slice_add"):
        example(_name, X, uniform(2, 1), _i, axis=1)
        example(_name, ROW, uniform(0), _i, axis=0)
for _axis, _shape in ((0, (3, 4)), (1, (2, 4)), (2, (2, 3))):
    _x, _i = uniform(2, 3, 4), _axis % 2
    _part = [2, 3, 4]
    _part[_axis] = 2
    example("dynamic_index", _x, _i, axis=_axis)
    example("dynamic_slice", _x, _i, axis=_axis, length=2)
    for _name in ("dynamic_update", "index_add"):
        example(_name, _x, uniform(*_shape), _i, axis=_axis)
    for _name in ("dynamic_update_slice", "slice_add"):
        example(_name, _x, uniform(*_part), _i, axis=_axis)
    example("take", _x, np.array([[1, 0], [1, 1]]), axis=_axis)
    example("scatter_add", _x, np.array([1, 0, 1]), uniform(*_x.shape[:_axis], 3, *_x.shape[_axis + 1 :]), axis=_axis)
    example("scatter", _x, np.array([1, 0]), uniform(*_x.shape[:_axis], 2, *_x.shape[_axis + 1 :]), axis=_axis)
example("take", uniform(4, 3), np.array([[0, 3], [3, 9]]), axis=0)
example("take", uniform(2, 4, 3), np.array([1, 1, -2]), axis=1)
example("take", uniform(4), 2, axis=0)
example("scatter_add", uniform(4, 3), np.array([[0, 3], [3, 9]]), uniform(2, 2, 3), axis=0)
example("scatter_add", uniform(2, 4), np.array([1, 1, -2]), uniform(2, 3), axis=1)

for _name in "reduce_sum reduce_max reduce_min reduce_prod".split():
    example(_name, uniform(2, 3, 4), axes=(0, 2))
    example(_name, uniform(2, 3), axes=(1,), keepdims=True)
    example(_name, uniform(2, 3), axes=(0, 1))
    example(_name, ints(3, 2), axes=(0,))
    value_example(_name, np.array([[1.0, np.nan], [3.0, 4.0]]), axes=(0,))
example("reduce_prod", np.array([[2.0, 0.0, 3.0], [0.0, 5.0, 0.0], [1.0, 2.0, 4.0]]), axes=(1,))
example("reduce_prod", np.array([2.0, 0.0, 3.0]), axes=(0,))
for _name in ("reduce_all", "reduce_any"):
    example(_name, np.array([[True, False], [True, True], [False, False]]), axes=(1,))
    example(_name, np.array([[True, False], [True, True]]), axes=(0, 1), keepdims=True)
for _prim in ("sort_rows", "argsort_rows"):
    example(_prim, uniform(3, 5))
    example(_prim, uniform(2, 4).astype(np.float32))
    example(_prim, np.array([[3, -1, 3, 2], [0, 0, -7, 5]]))
example("cumsum", uniform(2, 4), axis=1)
example("cumsum", uniform(3, 2), axis=0, reverse=True)
for _name in ("argmax", "argmin"):
    example(_name, uniform(2, 4), axis=1)
    example(_name, np.array([1.0, np.nan, 3.0, 3.0]), axis=0)

for _ta in (False, True):
    for _tb in (False, True):
        _flags = {"transpose_a": _ta, "transpose_b": _tb}
        _a, _b = (3, 2) if _ta else (2, 3), (4, 3) if _tb else (3, 4)
        example("dot", uniform(*_a), uniform(*_b), **_flags)
        example("batched_dot", uniform(2, *_a), uniform(2, *_b), **_flags)
    example("matvec", uniform(3, 2) if _ta else uniform(2, 3), uniform(3), transpose=_ta)
example("dot", ints(2, 3), ints(3, 2))
example("triangular_dot", uniform(4, 3), np.tril(uniform(3, 3)), transpose_b=True, which="right", lower=False)
example("triangular_dot", uniform(3, 4), uniform(4, 3), which="result", lower=True)
for _width in (2, 4):
    example("pack_columns", uniform(3, 5), width=_width)
    example("pack_columns", uniform(5, 3), transposed=True, width=_width)
    example("packed_dot", uniform(2, 3), uniform(15), columns=5, width=_width)

_padded = {"strides": (2, 1), "padding": ((1, 0), (1, 2))}
example("conv2d", uniform(2, 2, 5, 4), uniform(3, 2, 3, 2))
example("conv2d", uniform(1, 2, 5, 4), uniform(3, 2, 3, 2), **_padded)
example("conv2d", uniform(1, 4, 4, 4), uniform(2, 2, 2, 2), groups=2, strides=(1, 1), padding=((0, 0), (0, 0)))
for _dtype, _zero in ((np.uint8, 3), (np.int8, -4), (np.int16, 5)):
    _w = np.int16 if _dtype == np.int16 else np.int8
    _x = ints(2, 5, 6, 4, low=0, high=100, dtype=_dtype)
    example("conv2d_integer", _x, ints(3, 5, 3, 2, dtype=_w), zero=_zero)
    example("conv2d_integer", _x[:, :4], ints(4, 2, 3, 2, dtype=_w), **_padded, groups=2)
    example("dot_integer", _x[0, 0], ints(3, 4, dtype=_w), zero=_zero)
    example("dot_shifted", _x[:, :, 0, 0], ints(7, 5, dtype=_w))
    example("pack_words", _x, groups=5)
    example("pack_words", _x, shift=128 if _dtype == np.int8 else 0)
for _x, _scale in ((uniform(2, 3, low=-3, high=3), 0.5), (uniform(2, 3).astype(np.float32), np.float32([0.1, 0.2, 1]))):
    value_example("simulated_quantize", _x, np.asarray(_scale, _x.dtype), low=-3, high=4)  # a staircase has no slope
for _kind in (np.float32, np.float64):
    _ties = np.array([[-1e30, -200, -2.5, -1.5, -0.5, 0], [0.5, 1.5, 2.5, 130.49, 200, np.nan]], _kind)
    example("round_saturated", _ties, zero=3, low=-128, high=127, dtype="int8")
    example("round_saturated", _ties * 300, zero=40001, low=0, high=65535, dtype="uint16")
example(
    "conv2d_words",
    ints(2, 2, 4, 5, low=-(1 << 31), high=1 << 31, dtype=np.int32),
    ints(3, 2, 2, 3, low=-(1 << 31), high=1 << 31, dtype=np.int32),
    fill=7,
)
example("conv2d_words", ints(1, 4, 4, 5, dtype=np.int32), ints(2, 2, 2, 3, dtype=np.int32), groups=2, bits=16, fill=-7)
for _kind in (np.uint8, np.int8):
    _words = ints(4, 1, 2, 1, low=-(1 << 31), high=1 << 31, dtype=np.int32)
    example(
        "depthwise_words", ints(2, 2, 5, 6, low=0, high=100, dtype=_kind), _words, kernel=(2, 3), strides=(1, 2), fill=9
    )
_dilated = {"strides": (1, 2), "padding": ((1, 0), (2, 1)), "groups": 1, "dilations": (2, 3)}
example("conv2d", uniform(2, 2, 5, 6), uniform(2, 2, 2, 3), **_dilated)
example("conv2d_grad_input", uniform(2, 2, 4, 2), uniform(2, 2, 2, 3), in_shape=(5, 6), **_dilated)
example("conv2d_grad_weight", uniform(2, 2, 5, 6), uniform(2, 2, 4, 2), kernel=(2, 3), **_dilated)
example("conv2d_grad_input", uniform(2, 3, 3, 3), uniform(3, 2, 3, 2), in_shape=(5, 4))
example("conv2d_grad_input", uniform(1, 3, 2, 6), uniform(3, 2, 3, 2), in_shape=(5, 4), **_padded)
example("conv2d_grad_weight", uniform(2, 2, 5, 4), uniform(2, 3, 3, 3), kernel=(3, 2))
example("conv2d_grad_weight", uniform(1, 2, 5, 4), uniform(1, 3, 2, 6), kernel=(3, 2), **_padded)
_overlapping = {"ksize": (3, 2), "strides": (2, 1), "padding": ((1, 0), (0, 1))}
_plain = {"ksize": (2, 2), "strides": (2, 2)}
for _attrs, _size, _out in ((_overlapping, (5, 4), (2, 4)), (_plain, (4, 5), (2, 2))):
    example("max_pool", uniform(1, 2, *_size), **_attrs)
    example("avg_pool", uniform(1, 2, *_size), **_attrs)
    example("max_pool_grad", uniform(1, 2, *_size), uniform(1, 2, *_out), **_attrs)
    example("max_pool_gather", uniform(1, 2, *_size), uniform(1, 2, *_size), **_attrs)
    example("avg_pool_grad", uniform(1, 2, *_out), in_shape=_size, **_attrs)

_gaps: dict = {"ksize": (2, 3), "strides": (2, 1), "padding": ((1, 0), (1, 2)), "dilations": (3, 2)}
example("max_pool", uniform(1, 2, 6, 5), **_gaps)
example("avg_pool", uniform(1, 2, 6, 5), **_gaps)
example("max_pool_grad", uniform(1, 2, 6, 5), uniform(1, 2, 2, 4), **_gaps)
example("max_pool_gather", uniform(1, 2, 6, 5), uniform(1, 2, 6, 5), **_gaps)
example("avg_pool_grad", uniform(1, 2, 2, 4), in_shape=(6, 5), **_gaps)

# The executors implement these; they have no NumPy reference implementation to compare with.
_tripled = Operator(
    "tripled",
    lambda x: np.multiply(x, 3.0),
    elementwise=True,
    lower=lambda te, x: te.compute(x.shape, lambda *i: x(*i) * 3.0),
)
value_example("operator_kernel", X, op=_tripled, attrs=(), kinds=("array",), levels=())

UNTESTED = {"struct", "control", "effect"}

# Factorisations. Factors, and a pseudo-inverse, are given beside the matrix that the derivative is by.
_squares = uniform(2, 3, 3) + 3 * np.eye(3)
_symmetric = np.stack([_m @ _m.T + np.diag([1.0, 2.0, 4.0]) for _m in uniform(2, 3, 3, low=-0.5, high=0.5)])
for _a in (_squares, _squares[:1].astype(np.float32)):
    example("lu", _a)
    _factors = REGISTRY["lu"].reference(_a)
    for _transpose in (False, True):
        example("lu_solve", _a, _factors, uniform(len(_a), 3, 2).astype(_a.dtype), transpose=_transpose)
        for _lower in (False, True):
            _right = uniform(len(_a), 3, 2).astype(_a.dtype)
            example("triangular_solve", _a, _right, lower=_lower, transpose=_transpose)
    example("lu_slogdet", _a, _factors)
    value_example("pseudo_inverse", _a, np.linalg.inv(_a))
    value_example("determinant", _a, np.linalg.det(_a)[:, None, None], np.linalg.inv(_a))
value_example("lu", np.array([[[1.0, 2.0], [2.0, 4.0]], [[np.nan, 1.0], [1.0, 0.0]]]))
value_example("lu_slogdet", np.ones((1, 2, 2)), REGISTRY["lu"].reference(np.ones((1, 2, 2))))
for _a in (_symmetric, _symmetric.astype(np.float32)):
    example("cholesky", _a)
    for _vectors in (False, True):
        example("eigh", _a, lower=True, vectors=_vectors)
        example("eigh", _a, lower=False, vectors=_vectors)
value_example("cholesky", np.array([[[1.0, 2.0], [2.0, 1.0]]]))
for _a in (uniform(2, 4, 3), uniform(1, 2, 3), uniform(1, 3, 3)):
    for _vectors in (False, True):
        example("svd", _a, k=min(_a.shape[1:]), vectors=_vectors)
    example("qr", _a, k=min(_a.shape[1:]))
    value_example("pseudo_inverse", _a, np.linalg.pinv(_a))
example("svd", uniform(2, 3, 3), k=3, full=True)
example("qr", uniform(2, 3, 3), k=3, complete=True)

for _n in (1, 2, 6, 8, 35, 48):
    _roots = roots(_n)
    for _inverse in (False, True):
        example("dft", uniform(2, 2, _n), _roots, inverse=_inverse)
example("dft", uniform(3, 2, 20).astype(np.float32), roots(20).astype(np.float32))
