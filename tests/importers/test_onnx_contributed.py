"""The quantised operators of ONNX Runtime (`com.microsoft`): definitions, its own results, models of its quantiser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from myia_relay import relay  # noqa: E402

RNG = np.random.default_rng(7)
TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "float32": TensorProto.FLOAT, "bool": TensorProto.BOOL}
S, Z = np.float32, np.uint8


def drawn(dtype, *shape):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def floats(q, scale, zero) -> np.ndarray:
    """What integers stand for."""
    return (np.asarray(q, np.float64) - np.float64(zero)) * np.float64(scale)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def windows_mean(x, counted):
    """Of windows of 3 x 2 with strides 2 x 1, after one row and no column of padding above."""
    total = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 0)))
    one = np.pad(np.ones_like(x), ((0, 0), (0, 0), (1, 0), (0, 0)), constant_values=float(counted))
    view = np.lib.stride_tricks.sliding_window_view
    sums, counts = (view(v, (3, 2), (2, 3))[:, :, ::2].sum((-1, -2)) for v in (total, one))
    return sums / counts


A, B = drawn("uint8", 2, 3, 8, 5), drawn("uint8", 3, 1, 5)
I8, J8 = drawn("int8", 2, 3, 8, 5), drawn("int8", 2, 3, 8, 5)
COND = RNG.integers(0, 2, A.shape).astype(bool)
LAST = np.ascontiguousarray(np.moveaxis(A, 1, -1))
POOL: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 0]}
FA, FB, FI, FJ = floats(A, 0.02, 128), floats(B, 0.07, 3), floats(I8, 0.03, -4), floats(J8, 0.05, 9)
MA, MB, MC = drawn("uint8", 5, 24), drawn("int8", 24, 7), RNG.integers(-9999, 9999, 7).astype(np.int32)
BS = RNG.uniform(0.01, 0.03, 7).astype(np.float32)
FM = floats(MA, 0.02, 121) @ floats(MB, BS, 0)
ab = [A, S(0.02), Z(128), B, S(0.07), Z(3)]
ij = [I8, S(0.03), np.int8(-4), J8, S(0.05), np.int8(9)]
a, i = ab[:3], ij[:3]

CASES: dict[str, tuple[str, list, dict, np.ndarray, float, int]] = {
    # name: operator, inputs, attributes, the result in reals, its scale and zero point
    "add": ("QLinearAdd", [*ab, S(0.1137), Z(31)], {}, FA + FB, 0.1137, 31),
    "add without zeros": (
        "QLinearAdd",
        [A, S(0.02), None, B, S(0.07), None, S(0.0931), None],
        {},
        floats(A, 0.02, 0) + floats(B, 0.07, 0),
        0.0931,
        0,
    ),
    "add int8": ("QLinearAdd", [*ij, S(0.0617), np.int8(-7)], {}, FI + FJ, 0.0617, -7),
    "mul": ("QLinearMul", [*ab, S(0.1303), Z(70)], {}, FA * FB, 0.1303, 70),
    "mul int8": ("QLinearMul", [*ij, S(0.1071), np.int8(5)], {}, FI * FJ, 0.1071, 5),
    "sigmoid": ("QLinearSigmoid", [*a, S(1 / 256), Z(0)], {}, sigmoid(FA), 1 / 256, 0),
    "leaky": (
        "QLinearLeakyRelu",
        [*i, S(0.0237), np.int8(-90)],
        {"alpha": 0.3},
        np.where(FI < 0, np.float32(0.3) * FI, FI),
        0.0237,
        -90,
    ),
    "softmax": ("QLinearSoftmax", [*a, S(1 / 256), Z(0)], {"opset": 13, "axis": 1}, softmax(FA, 1), 1 / 256, 0),
    "softmax of axes": (
        "QLinearSoftmax",
        [*a, S(1 / 512), Z(0)],
        {"opset": 12, "axis": 2},
        softmax(FA.reshape(6, 40)).reshape(A.shape),
        1 / 512,
        0,
    ),
    "where": ("QLinearWhere", [COND, *ij, S(0.0617), np.int8(1)], {}, np.where(COND, FI, FJ), 0.0617, 1),
    "concat": (
        "QLinearConcat",
        [S(0.0413), Z(99), A, S(0.02), Z(128), A[:, :1], S(0.05), Z(7)],
        {"axis": 1},
        np.concatenate([FA, floats(A[:, :1], 0.05, 7)], 1),
        0.0413,
        99,
    ),
    "global mean": ("QLinearGlobalAveragePool", [*a, S(0.005), Z(128)], {}, FA.mean((2, 3), keepdims=True), 0.005, 128),
    "global mean, channels last": (
        "QLinearGlobalAveragePool",
        [LAST, *a[1:], S(0.005), Z(128)],
        {"channels_last": 1},
        np.moveaxis(FA.mean((2, 3), keepdims=True), 1, -1),
        0.005,
        128,
    ),
    "mean": (
        "QLinearReduceMean",
        [*i, S(0.01), np.int8(2)],
        {"axes": [-1, 1], "keepdims": 0},
        FI.mean((1, 3)),
        0.01,
        2,
    ),
    "windows": ("QLinearAveragePool", [*a, S(0.01), Z(120)], POOL, windows_mean(FA, False), 0.01, 120),
    "whole windows": (
        "QLinearAveragePool",
        [*a, S(0.01), Z(120)],
        POOL | {"count_include_pad": 1},
        windows_mean(FA, True),
        0.01,
        120,
    ),
    "windows, channels last": (
        "QLinearAveragePool",
        [LAST, *a[1:], S(0.01), Z(120)],
        POOL | {"channels_last": 1},
        np.moveaxis(windows_mean(FA, False), 1, -1),
        0.01,
        120,
    ),
    "gemm": (
        "QGemm",
        [MA, S(0.02), Z(121), MB, BS, np.zeros(7, np.int8), MC, S(0.2), Z(77)],
        {"alpha": 0.5},
        (FM + floats(MC, 0.02 * BS, 0)) * 0.5,
        0.2,
        77,
    ),
    "gemm, turned": (
        "QGemm",
        [MA.T.copy(), S(0.02), Z(121), MB.T.copy(), BS, np.zeros(7, np.int8), None, S(0.2), Z(77)],
        {"transA": 1, "transB": 1},
        FM,
        0.2,
        77,
    ),
    "gemm in floats": (
        "QGemm",
        [MA, S(0.02), Z(121), MB, BS, np.zeros(7, np.int8), MC],
        {},
        FM + floats(MC, 0.02 * BS, 0),
        0,
        0,
    ),
    "product in floats": ("MatMulIntegerToFloat", [MA, MB, S(0.02), BS, Z(121), None, BS], {}, FM + BS, 0, 0),
}
ALONE = ("mean", "add without zeros")
"""Cases that ONNX Runtime does not run."""


def model_of(name, inputs, attributes, variable=(0,), outputs=1):
    """A model of one node; inputs that are not variable are initialisers."""
    names = ["" if v is None else f"i{k}" for k, v in enumerate(inputs)]
    node = helper.make_node(name, names, ["y"], domain="com.microsoft", **attributes)
    ports = [helper.make_tensor_value_info(names[k], TYPES[inputs[k].dtype.name], inputs[k].shape) for k in variable]
    known = [
        numpy_helper.from_array(np.asarray(v), names[k])
        for k, v in enumerate(inputs)
        if v is not None and k not in variable
    ]
    graph = helper.make_graph([node], "net", ports, [helper.make_empty_tensor_value_info("y")], known)
    sets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=9)


def variables(inputs):
    """Which inputs are data."""
    return [k for k, v in enumerate(inputs) if isinstance(v, np.ndarray) and v.ndim > 1 and v is not MB]


def typed(model, dtype):
    """A model whose output says its dtype."""
    model.graph.output[0].type.tensor_type.elem_type = TYPES[dtype.name]
    return model


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_definitions(case):
    """To the last integer, but for values within a rounding error of a half. ONNX Runtime rounds some others otherwise."""
    name, inputs, attributes, reals, scale, zero = CASES[case]
    which = variables(inputs)
    model, given = model_of(name, inputs, attributes, which), [inputs[k] for k in which]
    f = relay.from_onnx(model)
    found = [f(*given), f.interpret(*given)]
    for got in found:
        if not scale:
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, reals, 2e-6, 2e-6)
            continue
        assert got.dtype in (np.uint8, np.int8) and got.dtype == found[0].dtype
        limits = np.iinfo(got.dtype)
        steps = reals / np.float64(np.float32(scale))
        wanted = np.clip(np.rint(steps) + zero, limits.min, limits.max)
        tie = np.abs(np.abs(steps - np.floor(steps)) - 0.5) < 1e-4
        assert np.all((got == wanted) | tie & (np.abs(got - wanted) <= 1)) and len(np.unique(got)) > 3
    if case in ALONE:
        return
    peer = pytest.importorskip("onnxruntime")
    options = peer.SessionOptions()
    options.intra_op_num_threads = 1
    session = peer.InferenceSession(typed(model, found[0].dtype).SerializeToString(), options, ["CPUExecutionProvider"])
    theirs = session.run(None, {f"i{k}": inputs[k] for k in which})[0]
    assert theirs.dtype == found[0].dtype and theirs.shape == found[0].shape
    if scale:
        off = np.abs(theirs.astype(int) - found[0])
        assert off.max() <= 1 and np.mean(off > 0) < 0.02
    else:
        np.testing.assert_allclose(found[0], theirs, 1e-5, 1e-5)


def test_products_of_floats_that_are_quantised_by_their_range():
    x = np.random.default_rng(5).standard_normal((3, 5, 24)).astype(np.float32)
    f = relay.from_onnx(model_of("DynamicQuantizeMatMul", [x, MB, BS, None, BS], {}))
    scale = np.float32((x.max() - x.min()) / 255)
    zero = np.rint(-x.min() / scale)
    wanted = floats(np.clip(np.rint(x / scale) + zero, 0, 255), scale, zero) @ floats(MB, BS, 0) + BS
    for got in (f(x), f.interpret(x)):
        np.testing.assert_allclose(got, wanted, 1e-5, 1e-5)


def test_sums_and_products_of_integers():
    f = relay.from_onnx(model_of("ReduceSumInteger", [A], {"axes": [-1, 0], "keepdims": 0}))
    np.testing.assert_array_equal(f(A), A.sum((0, 3), dtype=np.uint32))
    g = relay.from_onnx(model_of("MulInteger", [I8, np.int8(-4), J8, np.int8(9)], {}))
    np.testing.assert_array_equal(g(I8), (I8.astype(np.int32) + 4) * (J8.astype(np.int32) - 9))


@pytest.mark.parametrize(
    "name, inputs, attributes, message",
    [
        ("QLinearAdd", [np.ones((2, 2), S), S(1), Z(0), A, S(1), Z(0), S(1), Z(0)], {}, "it takes tensors of uint8 and int8"),
        ("QLinearAdd", [A, BS, Z(0), A, S(1), Z(0), S(1), Z(0)], {}, "a tensor has one scale here"),
        ("QLinearAdd", [A, S(1), Z(0), A], {}, "its inputs or attributes are not those of the operator"),
        ("QLinearConcat", [S(1), Z(0), A, S(1)], {"axis": 0}, "in threes, and there are 2 inputs"),
        ("QLinearMystery", [A], {}, "the operator QLinearMystery of domain 'com.microsoft' cannot be imported"),
    ],
)  # fmt: skip
def test_refusals(name, inputs, attributes, message):
    with pytest.raises(relay.CompileError, match=message) as caught:
        relay.from_onnx(model_of(name, inputs, attributes, [k for k, v in enumerate(inputs) if np.ndim(v) > 1]))
    assert name in str(caught.value)


def network() -> Any:
    """A small one in floats, of operators that the quantiser knows."""
    rng = np.random.default_rng(3)
    weights = {
        "w1": rng.normal(0, 0.3, (8, 3, 3, 3)),
        "w2": rng.normal(0, 0.1, (8, 8, 3, 3)),
        "w3": rng.normal(0, 0.4, (8, 1, 3, 3)),
        "w4": rng.normal(0, 0.3, (5, 16)),
        "b1": rng.normal(0, 0.1, 8),
        "b4": rng.normal(0, 0.1, 5),
    }
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        net (float[2, 3, 12, 12] x) => (float[2, 5] y)
        {
            c1 = Conv <pads = [1, 1, 1, 1]> (x, w1, b1)
            r1 = Relu(c1)
            c2 = Conv <pads = [1, 1, 1, 1]> (r1, w2)
            a1 = Add(r1, c2)
            l1 = LeakyRelu <alpha = 0.1> (a1)
            m1 = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (l1)
            c3 = Conv <pads = [1, 1, 1, 1], group = 8> (m1, w3)
            s1 = Sigmoid(c3)
            p1 = Mul(s1, c3)
            v1 = AveragePool <kernel_shape = [2, 2]> (p1)
            v2 = AveragePool <kernel_shape = [2, 2]> (m1)
            j1 = Concat <axis = 1> (v1, v2)
            g1 = GlobalAveragePool(j1)
            f1 = Flatten(g1)
            d1 = Gemm <transB = 1> (f1, w4, b4)
            y = Softmax(d1)
        }
    """
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items())
    return model


@pytest.mark.sampled(2)
@pytest.mark.parametrize("signed", [False, True])
def test_what_the_quantiser_of_onnx_runtime_writes(tmp_path, signed):
    peer = pytest.importorskip("onnxruntime")
    quantization = pytest.importorskip("onnxruntime.quantization")
    kinds = quantization.QuantType

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = [{"x": x} for x in data]

        def get_next(self):
            return self.left.pop() if self.left else None

    rng = np.random.default_rng(4)
    data = [rng.standard_normal((2, 3, 12, 12)).astype(np.float32) for _ in range(4)]
    source, target = tmp_path / "float.onnx", tmp_path / "int8.onnx"
    onnx.save(network(), source)
    quantization.quantize_static(
        source,
        target,
        Reader(),
        quant_format=quantization.QuantFormat.QOperator,
        per_channel=not signed,
        activation_type=kinds.QInt8 if signed else kinds.QUInt8,
        weight_type=kinds.QInt8,
        extra_options={"ActivationSymmetric": signed},
    )
    written = {n.op_type for n in onnx.load(target).graph.node}
    assert {"QLinearConv", "QLinearAdd", "QLinearMul", "QLinearConcat", "QGemm", "QLinearSigmoid"} <= written
    session = peer.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    f, floating = relay.from_onnx(target), relay.from_onnx(source)
    for x in data:
        found, theirs, exact = f(x), session.run(None, {"x": x})[0], floating(x)
        np.testing.assert_allclose(found, theirs, atol=0.02)
        np.testing.assert_allclose(found, exact, atol=0.05)
        np.testing.assert_array_equal(found, f.interpret(x))
