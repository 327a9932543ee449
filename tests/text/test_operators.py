"""The operators of Relay against NumPy, in the executors, and their relations against what they compute."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import myia_relay as relay
from myia_relay.text.operators import FAMILIES, OPERATORS

from . import references as R
from .operator_calls import agrees, apply, function_of, inferred
from .operator_page import reference

F, I = np.float32, np.int32
RNG = np.random.default_rng(3)


def normal(*shape):
    return RNG.normal(size=shape).astype(F)


X = np.arange(24, dtype=F).reshape(2, 3, 4)
W = normal(5, 4)
IMG = normal(2, 4, 6, 5)
SEQ = normal(2, 4, 9)
VOL = normal(1, 2, 5, 6, 4)
ONE = np.array([1.5, -0.5, 2, 1], F)
TWO = np.array([0.5, 0.25, -1, 3], F)
LINE = np.array([3, -1, 4, 1, -5, 9, 2, 6], F)
TIES = np.array([[2, 1, 2, 0], [1, 1, 1, 2]], F)
INTS = np.array([-7, 7, -8, 0, 5], I)
BY = np.array([2, -2, 3, 5, 0], I)
NUMBERS = np.array([-2.5, -0.5, 0.5, 1.5, 2.5, 0.25], F)

CASES = []


def case(name, *args, expected, **attrs):
    """An application and what it gives: an array, or a tuple."""
    label = f"{name}-{'-'.join(f'{k}={v}' for k, v in attrs.items())}" if attrs else name
    CASES.append(pytest.param(name, args, attrs, expected, id=label.replace(" ", "")))


# Elementwise.

for _name, _of in {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "floor_mod": np.mod,
    "floor_divide": np.floor_divide,
}.items():
    with np.errstate(all="ignore"):
        case(_name, INTS, BY, expected=_of(INTS, BY))
        case(_name, X, TWO, expected=_of(X, TWO))
case("divide", INTS, BY, expected=np.array([-3, -3, -2, 0, 0], I))
case("divide", X, TWO, expected=X / TWO)
case("mod", INTS, BY, expected=np.array([-1, 1, -2, 0, 0], I))
case("mod", NUMBERS, F(2), expected=np.fmod(NUMBERS, F(2)))
case("mod", np.array([5.5, -5.5, 1], F), np.array([-2, 2, np.inf], F), expected=np.array([1.5, -1.5, 1], F))
case("power", np.array([2, -3, 5], I), np.array([3, 2, 0], I), expected=np.array([8, 9, 1], I))
case("power", np.abs(X) + 1, TWO, expected=(np.abs(X) + 1) ** TWO)
for _name, _of in {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}.items():
    case(_name, INTS, BY, expected=_of(INTS, BY))
BITS, MORE = np.array([True, True, False, False]), np.array([True, False, True, False])
for _name in ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"):
    case(_name, BITS, MORE, expected=getattr(np, _name)(BITS, MORE))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
    case(
        _name,
        np.array([12, -7], I),
        np.array([2, 3], I),
        expected=getattr(np, _name)(np.array([12, -7], I), np.array([2, 3], I)),
    )
case("logical_not", BITS, expected=~BITS)
case("bitwise_not", INTS, expected=~INTS)
case("bitwise_not", BITS, expected=~BITS)
for _name, _of in {
    **{n: getattr(np, n) for n in ("exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "abs", "negative", "sign")},
    **{n: getattr(np, n) for n in ("floor", "ceil", "trunc", "isnan", "isinf", "isfinite")},
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "erf": np.vectorize(math.erf, otypes=[F]),
    "copy": lambda x: x,
    "nn.relu": lambda x: np.maximum(x, 0),
    "nn.leaky_relu": lambda x: np.where(x > 0, x, F(0.25) * x),
}.items():
    case(_name, NUMBERS, expected=_of(NUMBERS))
for _name, _of in {
    **{n: getattr(np, n) for n in ("log", "log2", "log10", "sqrt")},
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atanh": np.arctanh,
}.items():
    case(_name, np.array([0.25, 0.5, 0.75], F), expected=_of(np.array([0.25, 0.5, 0.75], F)))
case("acosh", np.array([1.5, 3], F), expected=np.arccosh(np.array([1.5, 3], F)))
case("round", NUMBERS, expected=np.array([-3, -1, 1, 2, 3, 0], F))
case("round", INTS, expected=INTS)
case("isnan", INTS, expected=np.zeros(5, bool))
case("isfinite", INTS, expected=np.ones(5, bool))
case("clip", X, a_min=2.5, a_max=5.0, expected=np.clip(X, 2.5, 5).astype(F))
case("clip", INTS, a_min=-7.0, a_max=5.0, expected=np.clip(INTS, -7, 5))
case("where", X > 3, X, F(0), expected=np.where(X > 3, X, F(0)))
case("cast", NUMBERS, dtype="int8", expected=NUMBERS.astype(np.int8))
case("cast", INTS, dtype="bool", expected=INTS != 0)
case("cast_like", INTS, F(1), expected=INTS.astype(F))
case("squared_difference", X, TWO, expected=(X - TWO) ** 2)

# Reductions.

for _name, _of in {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "std": np.std,
}.items():
    _x = X + 1
    case(_name, _x, axis=[1], keepdims=True, expected=_of(_x, 1, keepdims=True))
    case(_name, _x, axis=[0], exclude=True, expected=_of(_x, (1, 2)))
    case(_name, _x, axis=-1, expected=_of(_x, -1))
    case(_name, _x, expected=F(_of(_x)))
case("sum", X, axis=[], expected=F(X.sum()))
case("sum", X, exclude=True, keepdims=True, expected=X.sum(keepdims=True))
case("sum", INTS, expected=I(INTS.sum()))
case("mean", np.array([-3, -4], I), expected=I(-3))
case("variance", X, axis=[0, 2], expected=X.var((0, 2)))
case("variance", X, axis=[1], unbiased=True, expected=X.var(1, ddof=1))
case("variance", X, X.mean(1, keepdims=True), axis=[1], expected=X.var(1))
case("logsumexp", X, axis=[1], expected=np.log(np.exp(X.astype(float)).sum(1)).astype(F))
case("all", X > 1, axis=1, expected=(X > 1).all(1))
case("any", X > 20, expected=np.bool_(True))
case("argmax", TIES, axis=1, expected=np.array([0, 3], I))
case("argmax", TIES, axis=1, select_last_index=True, keepdims=True, expected=np.array([[2], [3]], I))
case("argmin", X, axis=[0, 1], expected=np.zeros(4, I))
case("argmin", TIES, expected=I(3))
case("cumsum", X, axis=1, expected=X.cumsum(1, dtype=F))
case("cumsum", X, axis=2, exclusive=True, expected=(X.cumsum(2) - X).astype(F))
case("cumsum", INTS, dtype="int64", expected=INTS.cumsum())
case("cumprod", X + 1, axis=2, expected=(X + 1).cumprod(2))
case("cumprod", X + 1, axis=2, exclusive=True, expected=((X + 1).cumprod(2) / (X + 1)).astype(F))

# Shapes.

case("reshape", X, newshape=[4, 0, 2], expected=X.reshape(4, 3, 2))
case("reshape", X, newshape=[-1, 4], expected=X.reshape(6, 4))
case("reshape", X, newshape=[2, -2], expected=X)
case("reshape", X, newshape=[-3, -2], expected=X.reshape(6, 4))
case("reshape", X, newshape=[0, -3], expected=X.reshape(2, 12))
case("reshape", X, newshape=[2, 3, -4, -1, 2], expected=X.reshape(2, 3, 2, 2))
case("reshape", X, newshape=[-4, 1, 2, -2], expected=X.reshape(1, 2, 3, 4))
case("reshape", F(3), newshape=[1, 1], expected=np.full((1, 1), 3, F))
case("reshape_like", X, np.zeros((6, 4), I), expected=X.reshape(6, 4))
case("reshape_like", X, np.zeros((9, 4, 3), F), lhs_begin=1, rhs_begin=1, expected=X.reshape(2, 4, 3))
case("nn.batch_flatten", IMG, expected=IMG.reshape(2, -1))
case("expand_dims", X, axis=1, num_newaxis=2, expected=X[:, None, None])
case("expand_dims", X, axis=-1, expected=X[..., None])
case("squeeze", X[:1, :, :1], expected=X[0, :, 0])
case("squeeze", X[:1, :, :1], axis=[-1], expected=X[:1, :, 0])
case("squeeze", X[:1], axis=[], expected=X[:1])
case("transpose", X, expected=X.T)
case("transpose", X, axes=[1, -1, 0], expected=X.transpose(1, 2, 0))
case("reverse", X, axis=1, expected=X[:, ::-1])
case("concatenate", (X, X + 1), axis=-2, expected=np.concatenate([X, X + 1], 1))
case("stack", (X, X + 1), axis=-1, expected=np.stack([X, X + 1], -1))
case("split", X, indices_or_sections=2, axis=2, expected=tuple(np.split(X, 2, 2)))
case("split", X, indices_or_sections=[1, 3], axis=-1, expected=tuple(np.split(X, [1, 3], -1)))
case("tile", X, reps=[2, 1, 1, 2], expected=np.tile(X, (2, 1, 1, 2)))
case("tile", X, reps=[2], expected=np.tile(X, 2))
case("repeat", X, repeats=2, axis=1, expected=X.repeat(2, 1))
case("broadcast_to", X[:1, :, :1], shape=[2, 2, 3, 4], expected=np.broadcast_to(X[:1, :, :1], (2, 2, 3, 4)))
case("broadcast_to_like", TWO, X, expected=np.broadcast_to(TWO, X.shape))
case("collapse_sum_like", X, np.ones((3, 1), F), expected=X.sum((0, 2)).reshape(3, 1))
case("collapse_sum_to", X, shape=[4], expected=X.sum((0, 1)))
case("strided_slice", X, begin=[0, 2, -1], end=[2, -4, 0], strides=[1, -1, -2], expected=X[0:2, 2:-4:-1, -1:0:-2])
case("strided_slice", X, begin=[1], end=[2147483647], axes=[-1], expected=X[..., 1:])
case("strided_slice", X, begin=[1, 0], end=[2, -1], axes=[2, 1], slice_mode="size", expected=X[:, :, 1:3])
case("strided_slice", X, begin=[5], end=[9], axes=[1], expected=X[:, 5:9])
case("slice_like", X, np.zeros((1, 2), F), expected=X[:1, :2])
case("slice_like", X, np.zeros((1, 2, 2), F), axes=[-1], expected=X[..., :2])
case(
    "nn.pad",
    X,
    F(7),
    pad_width=[[0, 1], [1, 0], [2, 2]],
    expected=np.pad(X, ((0, 1), (1, 0), (2, 2)), constant_values=7),
)
for _mode in ("edge", "reflect"):
    case(
        "nn.pad",
        X,
        pad_width=[[0, 0], [1, 2], [2, 3]],
        pad_mode=_mode,
        expected=np.pad(X, ((0, 0), (1, 2), (2, 3)), _mode),
    )

# Made of nothing, or of indices.

case("zeros", shape=[2, 3], dtype="int8", expected=np.zeros((2, 3), np.int8))
case("ones", shape=[], expected=F(1))
case("ones_like", INTS, expected=np.ones_like(INTS))
case("zeros_like", X, expected=np.zeros_like(X))
case("full", I(3), shape=[2], expected=np.full(2, 3, I))
case("full", I(3), shape=[2], dtype="float32", expected=np.full(2, 3, F))
case("full_like", X, F(2), expected=np.full_like(X, 2))
case("arange", start=1, stop=10, step=3, expected=np.arange(1, 10, 3, I))
case("arange", start=1.0, stop=0.0, step=-0.25, expected=np.arange(1, 0, -0.25, F))
case("arange", F(0), F(1), F(0.3), expected=np.arange(0, 1, 0.3, F))
case("arange", I(4), expected=np.arange(4, dtype=I))
case("shape_of", X, expected=np.array([2, 3, 4], I))
case("shape_of", F(1), dtype="int64", expected=np.zeros(0, np.int64))
case("ndarray_size", X, expected=I(24))
case(
    "one_hot",
    np.array([1, 5, 0], I),
    F(2),
    F(-1),
    depth=3,
    expected=np.array([[-1, 2, -1], [-1, -1, -1], [2, -1, -1]], F),
)
case(
    "one_hot", np.array([1, 0], I), I(1), I(0), depth=3, axis=0, dtype="float32", expected=np.eye(3, dtype=F)[[1, 0]].T
)
_grid = (np.arange(3, dtype=F), np.array([5, 7], F))
for _mode in ("ij", "xy"):
    case("meshgrid", _grid, indexing=_mode, expected=tuple(np.meshgrid(*_grid, indexing=_mode)))
case("trilu", X, I(1), expected=np.triu(X, 1))
case("trilu", X, upper=False, expected=np.tril(X))
case(
    "sequence_mask",
    X,
    np.array([1, 2, 0], I),
    mask_value=-1.0,
    expected=np.where([[[True], [True], [False]], [[False], [True], [False]]], X, F(-1)),
)
case("take", X, np.array([[3, 9], [-1, 0]], I), axis=2, expected=X[:, :, [[3, 3], [0, 0]]])
case("take", X, np.array([5, 100], I), expected=np.array([5, 23], F))
case("take", X, np.array([5, -1], I), axis=2, mode="wrap", expected=X[:, :, [1, 3]])
case(
    "take",
    X,
    np.array([[0, 1], [3, 2]], I),
    axis=2,
    batch_dims=1,
    expected=np.stack([X[0][:, [0, 1]], X[1][:, [3, 2]]]),
)
_at = np.array([[[0, 1, 2, 0]], [[2, 2, 1, 1]]], I)
case("gather", X, _at, axis=1, expected=np.take_along_axis(X, _at, 1))
case("gather_nd", X, np.array([[0, 1], [2, -1]], I), expected=X[[0, 1], [2, -1]])
case("gather_nd", X, np.array([[0, 2]], I), batch_dims=1, expected=X[[0, 1], [0, 2]])
_index, _values = np.array([[0, 0, 1], [1, 1, 0]], I), np.array([[5, 6, 7], [8, 9, 1]], F)
_base = np.zeros((2, 3), F)
for _mode, _of in {
    "update": lambda a, u: u,
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}.items():
    _want = R.scattered(_base + 2, _index, _values, 0, _of)
    case("scatter_elements", _base + 2, _index, _values, axis=0, reduction=_mode, expected=_want)
case(
    "scatter",
    _base,
    _index[:, :1],
    _values[:, :1],
    axis=-1,
    expected=R.scattered(_base, _index[:, :1], _values[:, :1], 1, lambda a, u: u),
)
case("scatter_add", _base, _index, _values, axis=1, expected=R.scattered(_base, _index, _values, 1, np.add))
_rows = np.array([[0, 1, 0], [1, 2, 1]], I)
for _mode, _want in {"update": (9, 2), "add": (10, 2), "max": (9, 4)}.items():
    _out = X.copy()
    _out[0, 1] = _want[0] if _mode != "max" else np.maximum(_out[0, 1], 9)
    _out[1, 2] = _want[1] if _mode != "add" else _out[1, 2] + 2
    if _mode == "add":
        _out[0, 1] = X[0, 1] + 10
    if _mode == "max":
        _out[1, 2] = np.maximum(X[1, 2], 2)
    _given = np.stack([np.full(4, v, F) for v in (1, 2, 9)])
    case("scatter_nd", X, _rows, _given, mode=_mode, expected=_out)
case("invert_permutation", np.array([2, 0, 1, 3], I), expected=np.array([1, 2, 0, 3], I))
case("argwhere", X > 20, expected=np.argwhere(X > 20).astype(I))

# Order.

case("argsort", TIES, axis=1, expected=np.array([[3, 1, 0, 2], [0, 1, 2, 3]], I))
case("argsort", TIES, axis=1, is_ascend=False, dtype="int64", expected=np.array([[0, 2, 1, 3], [3, 0, 1, 2]]))
case("sort", IMG, axis=2, is_ascend=False, expected=-np.sort(-IMG, 2))
case("topk", LINE, k=3, expected=(np.array([9, 6, 4], F), np.array([5, 7, 2], I)))
case("topk", TIES, k=2, axis=0, ret_type="indices", is_ascend=True, expected=np.array([[1, 0, 1, 0], [0, 1, 0, 1]], I))
case("topk", LINE, k=0, ret_type="values", expected=np.sort(LINE)[::-1])
case("searchsorted", np.sort(LINE), LINE + F(0.5), expected=np.searchsorted(np.sort(LINE), LINE + F(0.5)).astype(I))
case(
    "searchsorted",
    np.array([[1, 2, 2], [0, 0, 1]], F),
    np.array([[2], [0]], F),
    right=True,
    expected=np.array([[3], [2]], I),
)
_u = np.array([3, 1, 3, 2], I)
case(
    "unique", _u, expected=(np.array([1, 2, 3], I), np.array([1, 3, 0], I), np.array([2, 0, 2, 1], I), np.array([3], I))
)

# Products.

case("nn.dense", X, W, expected=X @ W.T)
case(
    "nn.dense",
    np.ones((2, 4), np.int8),
    np.full((5, 4), 100, np.int8),
    out_dtype="int32",
    expected=np.full((2, 5), 400, I),
)
case("nn.matmul", X, W, transpose_b=True, expected=X @ W.T)
case("nn.matmul", X[0], X[1], transpose_a=True, expected=X[0].T @ X[1])
case("nn.batch_matmul", X, X, transpose_b=True, expected=X @ X.transpose(0, 2, 1))
case("nn.batch_matmul", X[:1], X.transpose(0, 2, 1).copy(), expected=X[:1] @ X.transpose(0, 2, 1))
case("nn.batch_matmul", np.ones((1, 2, 2), I), np.ones((1, 2, 2), I), expected=np.full((1, 2, 2), 2, I))
case("nn.bias_add", IMG, ONE, expected=IMG + ONE[:, None, None])
case("nn.bias_add", X, TWO, axis=-1, expected=X + TWO)
case("einsum", (X, W), equation="abc,dc->abd", expected=np.einsum("abc,dc->abd", X, W))
case("einsum", (X, W), equation="...c,dc->d...", expected=np.einsum("...c,dc->d...", X, W))

# Layers.

case("nn.softmax", X, axis=1, expected=R.softmax(X, 1))
case("nn.log_softmax", X, expected=np.log(R.softmax(X.astype(float), 2)).astype(F))
_p, _t = R.softmax(X[0], 1), np.eye(4, dtype=F)[[1, 0, 3]]
case("nn.cross_entropy", _p, _t, expected=F(-(np.log(_p) * _t).sum() / 3))
case("nn.cross_entropy_with_logits", _p, _t, expected=F(-(_p * _t).sum() / 3))
case("nn.prelu", IMG, ONE, expected=np.where(IMG > 0, IMG, IMG * ONE[:, None, None]))
case("nn.dropout", X, expected=(X, np.ones_like(X)))
_c = (slice(None), None, None)
case(
    "nn.batch_norm", IMG, ONE, TWO, TWO, np.abs(ONE),
    expected=((IMG - TWO[_c]) / np.sqrt(np.abs(ONE)[_c] + F(1e-5)) * ONE[_c] + TWO[_c], TWO, np.abs(ONE)),
)  # fmt: skip
case(
    "nn.batch_norm", IMG.transpose(0, 2, 3, 1).copy(), ONE, TWO, TWO, np.abs(ONE), axis=-1, center=False, scale=False, epsilon=0.5,
    expected=((IMG.transpose(0, 2, 3, 1) - TWO) / np.sqrt(np.abs(ONE) + F(0.5)), TWO, np.abs(ONE)),
)  # fmt: skip
case("nn.layer_norm", X, ONE, TWO, expected=R.normalised(X, 2) * ONE + TWO)
case("nn.instance_norm", IMG, ONE, TWO, expected=R.normalised(IMG, (2, 3)) * ONE[_c] + TWO[_c])
_g = R.normalised(IMG.reshape(2, 2, 2, 6, 5), (2, 3, 4)).reshape(IMG.shape)
case("nn.group_norm", IMG, ONE, TWO, num_groups=2, expected=_g * ONE[_c] + TWO[_c])
case(
    "nn.l2_normalize", IMG, eps=1e-3, axis=[1], expected=IMG / np.sqrt(np.maximum((IMG**2).sum(1, keepdims=True), 1e-3))
)
case("nn.lrn", IMG, size=3, alpha=0.1, expected=R.local_response(IMG, 3, 2, 0.1, 0.75))

# Convolutions and pooling.

_w = normal(6, 4, 3, 2)
case(
    "nn.conv2d", IMG, _w, padding=[1, 0, 2, 1], strides=[2, 1], dilation=[1, 2],
    expected=R.convolution(IMG, _w, (2, 1), (1, 0, 2, 1), (1, 2)),
)  # fmt: skip
_w = normal(3, 3, 4, 6)
case(
    "nn.conv2d", IMG.transpose(0, 2, 3, 1).copy(), _w, data_layout="NHWC", kernel_layout="HWIO", padding=1,
    expected=R.convolution(IMG, _w.transpose(3, 2, 0, 1), padding=1).transpose(0, 2, 3, 1),
)  # fmt: skip
_w = normal(8, 2, 3, 3)
case("nn.conv2d", IMG, _w, groups=2, channels=8, kernel_size=[3, 3], expected=R.convolution(IMG, _w, groups=2))
_w = normal(4, 1, 3, 3)
case("nn.conv2d", IMG, _w, groups=4, out_layout="NHWC", expected=R.convolution(IMG, _w, groups=4).transpose(0, 2, 3, 1))
_w = normal(6, 4, 3)
case("nn.conv1d", SEQ, _w, padding=1, strides=2, dilation=2, expected=R.convolution(SEQ, _w, 2, 1, 2))
_w = normal(3, 2, 2, 3, 3)
case(
    "nn.conv3d", VOL, _w, padding=[1, 1, 0], dilation=[2, 1, 1], strides=[2, 1, 1],
    expected=R.convolution(VOL, _w, (2, 1, 1), (1, 1, 0), (2, 1, 1)),
)  # fmt: skip
_w = normal(4, 3, 3, 3)
case(
    "nn.conv2d_transpose", IMG, _w, strides=[2, 2], padding=[1, 1], output_padding=[1, 0],
    expected=R.transposed_convolution(IMG, _w, 2, 1, output_padding=(1, 0)),
)  # fmt: skip
case(
    "nn.conv2d_transpose",
    IMG,
    _w,
    groups=2,
    dilation=2,
    expected=R.transposed_convolution(IMG, _w, dilation=2, groups=2),
)
_w = normal(4, 3, 3)
case("nn.conv1d_transpose", SEQ, _w, strides=3, padding=[1, 2], expected=R.transposed_convolution(SEQ, _w, 3, (1, 2)))
_w = normal(2, 3, 2, 2, 2)
case(
    "nn.conv3d_transpose", VOL, _w, strides=2, padding=[1, 0, 0], output_padding=[0, 1, 1],
    expected=R.transposed_convolution(VOL, _w, 2, (1, 0, 0), output_padding=(0, 1, 1)),
)  # fmt: skip
for _attrs in (
    {"pool_size": [2, 2], "strides": [2, 2], "ceil_mode": True},
    {"pool_size": [3, 2], "padding": [1, 0, 2, 1]},
    {"pool_size": [2, 2], "dilation": [2, 3], "padding": 1},
):
    case("nn.max_pool2d", IMG, **_attrs, expected=R.pooling(IMG, **_attrs))
    case("nn.avg_pool2d", IMG, **_attrs, expected=R.pooling(IMG, **_attrs, mean=True))
    case(
        "nn.avg_pool2d",
        IMG,
        **_attrs,
        count_include_pad=True,
        expected=R.pooling(IMG, **_attrs, mean=True, count_include_pad=True),
    )
case("nn.max_pool1d", SEQ, pool_size=3, strides=2, expected=R.pooling(SEQ, 3, 2))
case("nn.avg_pool1d", SEQ, pool_size=3, strides=2, padding=1, expected=R.pooling(SEQ, 3, 2, 1, mean=True))
case("nn.max_pool3d", VOL, pool_size=2, strides=[2, 1, 2], expected=R.pooling(VOL, 2, (2, 1, 2)))
case("nn.avg_pool3d", VOL, pool_size=[2, 3, 2], padding=1, expected=R.pooling(VOL, (2, 3, 2), 1, 1, mean=True))
case(
    "nn.max_pool2d",
    IMG,
    pool_size=2,
    layout="NHWC",
    expected=R.pooling(IMG.transpose(0, 3, 1, 2), 2).transpose(0, 2, 3, 1),
)
case("nn.global_avg_pool2d", IMG, expected=IMG.mean((2, 3), keepdims=True))
case("nn.global_max_pool2d", IMG, layout="NHWC", expected=IMG.max((1, 2), keepdims=True))
case("nn.global_avg_pool1d", SEQ, expected=SEQ.mean(2, keepdims=True))
case("nn.global_avg_pool3d", VOL, expected=VOL.mean((2, 3, 4), keepdims=True))
case("nn.global_max_pool1d", SEQ, expected=SEQ.max(2, keepdims=True))
case("nn.global_max_pool3d", VOL, expected=VOL.max((2, 3, 4), keepdims=True))
for _mean in (False, True):
    _kind = "avg" if _mean else "max"
    case(f"nn.adaptive_{_kind}_pool2d", IMG, output_size=[4, 2], expected=R.adaptive(IMG, (4, 2), _mean))
    case(f"nn.adaptive_{_kind}_pool1d", SEQ, output_size=2, expected=R.adaptive(SEQ, (2,), _mean))
    case(f"nn.adaptive_{_kind}_pool3d", VOL, output_size=[2, 3, 4], expected=R.adaptive(VOL, (2, 3, 4), _mean))

# Images.

case("image.resize2d", IMG, size=[4, 10], expected=R.bilinear(IMG, (4, 10), lambda i, n, m: (i + 0.5) * n / m - 0.5))
case(
    "image.resize2d", IMG, size=[3, 9], coordinate_transformation_mode="align_corners",
    expected=R.bilinear(IMG, (3, 9), lambda i, n, m: i * (n - 1) / (m - 1)),
)  # fmt: skip
case(
    "image.resize2d", IMG, size=[12, 10], method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
    expected=IMG.repeat(2, 2).repeat(2, 3),
)  # fmt: skip
case("image.resize2d", IMG, size=[12, 10], method="nearest_neighbor", expected=IMG.repeat(2, 2).repeat(2, 3))
case("image.resize2d", IMG, size=[6, 5], method="cubic", expected=IMG)
case(
    "image.resize1d",
    SEQ,
    size=[18],
    method="nearest_neighbor",
    coordinate_transformation_mode="asymmetric",
    expected=SEQ.repeat(2, 2),
)
case("nn.upsampling", IMG, scale_h=2.0, scale_w=3.0, expected=IMG.repeat(2, 2).repeat(3, 3))
case(
    "nn.upsampling", IMG, scale_h=2.0, scale_w=1.6, method="bilinear", align_corners=True,
    expected=R.bilinear(IMG, (12, 8), lambda i, n, m: i * (n - 1) / (m - 1)),
)  # fmt: skip
case(
    "image.resize3d",
    VOL,
    size=[10, 6, 4],
    method="nearest_neighbor",
    coordinate_transformation_mode="asymmetric",
    expected=VOL.repeat(2, 2),
)
case(
    "nn.upsampling3d",
    VOL,
    scale_d=2.0,
    coordinate_transformation_mode="asymmetric",
    expected=VOL.repeat(2, 2),
)
_blocks = IMG.reshape(2, 2, 2, 1, 6, 5)
case("nn.depth_to_space", IMG, block_size=2, expected=_blocks.transpose(0, 3, 4, 1, 5, 2).reshape(2, 1, 12, 10))
case(
    "nn.depth_to_space", IMG, block_size=2, mode="CRD",
    expected=IMG.reshape(2, 1, 2, 2, 6, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 1, 12, 10),
)  # fmt: skip
_even = IMG[:, :, :, :4].copy()
case(
    "nn.space_to_depth", _even, block_size=2,
    expected=_even.reshape(2, 4, 3, 2, 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 16, 3, 2),
)  # fmt: skip
case("layout_transform", IMG, src_layout="NCHW", dst_layout="NHWC", expected=IMG.transpose(0, 2, 3, 1))
case(
    "layout_transform", IMG, src_layout="NCHW", dst_layout="NCHW2c",
    expected=IMG.reshape(2, 2, 2, 6, 5).transpose(0, 1, 3, 4, 2),
)  # fmt: skip
case(
    "layout_transform", IMG.reshape(2, 2, 2, 6, 5).transpose(0, 1, 3, 4, 2).copy(), src_layout="NCHW2c", dst_layout="NCHW",
    expected=IMG,
)  # fmt: skip

# Shapes that are computed, and detection.

_shape = np.array([2, 3], I)
case("dyn.zeros", _shape, expected=np.zeros((2, 3), F))
case("dyn.ones", _shape, dtype="int8", expected=np.ones((2, 3), np.int8))
case("dyn.full", I(7), _shape, expected=np.full((2, 3), 7, I))
case("dyn.broadcast_to", TWO, np.array([3, 4], I), expected=np.broadcast_to(TWO, (3, 4)))
case("dyn.reshape", X, np.array([0, -1], I), expected=X.reshape(2, 12))
case("dyn.reshape", X, np.array([4, 6], I), expected=X.reshape(4, 6))
case("dyn.tile", X, np.array([2, 1, 3], I), expected=np.tile(X, (2, 1, 3)))
case("dyn.one_hot", np.array([2, 0], I), F(1), F(0), I(3), expected=np.eye(3, dtype=F)[[2, 0]])
case("dyn.topk", LINE, I(2), expected=(np.array([9, 6], F), np.array([5, 7], I)))
case(
    "vision.multibox_prior", np.zeros((1, 3, 1, 2), F), sizes=[0.5], ratios=[1.0, 4.0], clip=True,
    expected=np.array(
        [[[0.125, 0.25, 0.375, 0.75], [0, 0.375, 0.5, 0.625], [0.625, 0.25, 0.875, 0.75], [0.5, 0.375, 1, 0.625]]], F
    ),
)  # fmt: skip
_boxes = np.array(
    [[[0, 0.8, 0, 0, 2, 2], [0, 0.9, 0, 0, 2, 2.1], [1, 0.7, 0, 0, 2, 2], [-1, 0.9, 0, 0, 1, 1], [0, 0.6, 5, 5, 6, 6]]],
    F,
)
_valid = np.full((1, 5, 6), -1, F)
_valid[0, :4] = _boxes[0, [0, 1, 2, 4]]
_which = np.array([[0, 1, 2, 4, -1]], I)
case("vision.get_valid_counts", _boxes, F(0.5), expected=(np.array([4], I), _valid, _which))
case(
    "vision.non_max_suppression", _valid, np.array([4], I), _which, I(-1), F(0.5),
    expected=(np.array([[1, 2, 4, -1, -1]], I), np.array([[3]], I)),
)  # fmt: skip
_kept = np.full((1, 5, 6), -1, F)
_kept[0, :2] = _boxes[0, [1, 4]]
case(
    "vision.non_max_suppression", _valid, np.array([4], I), _which, I(2), F(0.5), force_suppress=True, return_indices=False,
    invalid_to_bottom=True, expected=_kept,
)  # fmt: skip
_ramp = np.arange(16, dtype=F).reshape(1, 1, 4, 4)
case(
    "vision.roi_align", _ramp, np.array([[0, 0, 0, 4, 4]], F), pooled_size=[2, 2], spatial_scale=1.0, sample_ratio=2,
    expected=np.array([[[[5, 6.75], [12, 13.75]]]], F),
)  # fmt: skip
case(
    "vision.yolo_reorg",
    _even,
    stride=2,
    expected=_even.reshape(2, 4, 3, 2, 2, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 16, 3, 2),
)


def check_value(found, expected):
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            check_value(f, e)
        return
    expected = np.asarray(expected)
    assert np.shape(found) == expected.shape
    assert np.asarray(found).dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "args", "attrs", "expected"), CASES)
def test_values_and_types(name, args, attrs, expected):
    value = apply(name, *args, **attrs)
    check_value(value, expected)
    assert agrees(inferred(name, *args, **attrs), value)


@pytest.mark.sampled(51)
@pytest.mark.parametrize(("name", "args", "attrs", "expected"), CASES)
def test_native_code(name, args, attrs, expected):
    check_value(apply(name, *args, executor="native", **attrs), expected)


def test_every_operator_has_a_case():
    assert set(OPERATORS) == {c.values[0] for c in CASES}


def test_the_page_of_operators_is_up_to_date(request):
    page = Path(__file__).parents[2] / "docs" / "relay-operators.md"
    if request.config.getoption("--update-golden"):
        page.write_text(reference(), "utf-8")
    assert page.read_text("utf-8") == reference()


def test_families_declare_all_operators():
    declared = {o.relation.__module__ for o in OPERATORS.values()} | {o.function.__module__ for o in OPERATORS.values()}
    assert {f.__name__ for f in FAMILIES} <= declared


SMOOTH = (
    ("nn.conv2d", (IMG, normal(3, 4, 3, 3)), {"padding": 1, "dilation": 2}),
    ("nn.conv2d_transpose", (IMG, normal(4, 2, 3, 3)), {"strides": 2}),
    ("nn.conv3d", (VOL, normal(2, 2, 2, 2, 2)), {}),
    ("nn.avg_pool2d", (IMG,), {"pool_size": 3, "padding": 1, "strides": 2}),
    ("image.resize2d", (IMG,), {"size": [4, 9]}),
    ("gather_nd", (X, np.array([[0, 1], [2, 2]], I)), {}),
    ("scatter_nd", (X, _rows, normal(3, 4)), {}),
    ("scatter_elements", (_base, _index, _values), {"axis": 0, "reduction": "update"}),
    ("nn.lrn", (IMG,), {"size": 3, "alpha": 0.1}),
    ("nn.batch_norm", (IMG, ONE, TWO, TWO, np.abs(ONE)), {}),
    ("take", (X, np.array([1, 5], I)), {"axis": 2}),
    ("mod", (NUMBERS + F(0.1), F(2.5)), {}),
    ("sort", (LINE,), {}),
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "args", "attrs"), SMOOTH, ids=[s[0] for s in SMOOTH])
def test_derivatives_against_differences(name, args, attrs):
    """The derivative along a random direction of a random combination of the results' elements."""
    f, leaves = function_of(name, args, attrs)
    first = leaves[0].astype(np.float64)
    rest = [v.astype(np.float64) if v.dtype.kind == "f" else v for v in leaves[1:]]
    weight = np.random.default_rng(1).normal(
        size=np.shape(first_of(relay.relay(executor="interpreter")(f)(first, *rest)))
    )
    alone = isinstance(relay.relay(executor="interpreter")(f)(first, *rest), tuple)

    if alone:

        def loss(x, *more):
            return np.sum(f(x, *more)[0] * weight)
    else:

        def loss(x, *more):
            return np.sum(f(x, *more) * weight)

    compiled = relay.relay(executor="interpreter")(loss)
    gradient = relay.grad(compiled)(first, *rest)
    direction = np.random.default_rng(2).normal(size=first.shape)
    h = 1e-6
    slope = (compiled(first + h * direction, *rest) - compiled(first - h * direction, *rest)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-4, atol=1e-6)


def first_of(value):
    return value[0] if isinstance(value, tuple) else value
