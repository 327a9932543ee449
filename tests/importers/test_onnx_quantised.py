"""Quantised ONNX models: products of integers, to the last one, in all executors; parameters that are part of the program."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from myia_relay import relay  # noqa: E402

RNG = np.random.default_rng(5)
TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "float32": TensorProto.FLOAT, "int32": TensorProto.INT32}


def drawn(dtype, *shape):
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def model_of(nodes, inputs, outputs, initialisers, opset=19):
    def info(name, dtype, shape=None):
        return helper.make_tensor_value_info(name, TYPES[dtype], shape)

    graph = helper.make_graph(
        nodes,
        "net",
        [info(n, a.dtype.name, a.shape) for n, a in inputs.items()],
        [info(n, d) for n, d in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in initialisers.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def results(model, *inputs):
    """Of the executors: native, python, interpreter."""
    f = relay.from_onnx(model)
    g = relay(executor="python")(lambda *xs: f(*xs))
    return f, (f(*inputs), g(*inputs), f.interpret(*inputs))


def integers_of(f, *inputs):
    names = re.findall(r"= (\w+)", str(f.ir(*inputs, stage="optimized")))
    return {n for n in names if n in ("conv2d", "dot", "matvec", "conv2d_integer", "dot_integer")}


def referred(model, x) -> list[Any]:
    """What ONNX's evaluator gives."""
    return list(ReferenceEvaluator(model).run(None, {"x": x}))


def saturated(steps, zero, dtype):
    limits = np.iinfo(dtype)
    return np.clip(np.rint(steps) + zero, limits.min, limits.max).astype(dtype)


def convolution(x, w, strides=1, padding=0, groups=1):
    """Of whole numbers, exactly."""
    x = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::strides, ::strides]
    windows = windows.reshape(len(x), groups, -1, *windows.shape[2:])
    own = w.astype(np.int64).reshape(groups, -1, *w.shape[1:])
    out = np.einsum("ngchwij,gocij->ngohw", windows, own)
    return out.reshape(len(x), -1, *out.shape[3:])


CASES = [
    ("uint8", "int8", 131, 0, 1, True),
    ("int8", "int8", -7, 0, 1, False),
    ("uint8", "uint8", 3, 128, 1, True),  # less than 128 in magnitude
    ("int8", "uint8", 100, 7, 2, False),  # beyond int8
    ("uint8", "int8", 255, -128, 1, True),
    ("uint8", "int8", 9, 0, 4, True),  # one channel in each group
]


@pytest.mark.parametrize("x_dtype, w_dtype, x_zero, w_zero, groups, per_channel", CASES)
@pytest.mark.parametrize("form", ["QLinearConv", "QDQ"])
@pytest.mark.sampled(6)
def test_convolutions(form, x_dtype, w_dtype, x_zero, w_zero, groups, per_channel):
    x, w, b = drawn(x_dtype, 2, 4, 7, 6), drawn(w_dtype, 8, 4 // groups, 3, 3), drawn("int16", 8).astype(np.int32)
    w_scale = RNG.uniform(0.001, 0.01, 8 if per_channel else ()).astype(np.float32)
    x_scale, y_scale = np.float32(0.031), np.float32(0.2)
    zeros = np.full(np.shape(w_scale), w_zero, w_dtype)
    values = dict(
        xs=x_scale, xz=np.array(x_zero, x_dtype), w=w, ws=w_scale, wz=zeros, ys=y_scale, yz=np.uint8(117), b=b
    )
    values["bs"] = np.asarray(x_scale * w_scale, np.float32)
    options = {"group": groups, "pads": [1] * 4, "strides": [2, 2]}
    low = 0
    if form == "QLinearConv":
        nodes = [helper.make_node(form, ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"], **options)]
        values.pop("bs")
    else:
        axis: Any = {"axis": 0} if per_channel else {}
        low = 117
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], **axis),
            helper.make_node("DequantizeLinear", ["b", "bs"], ["bf"], **axis),
            helper.make_node("Conv", ["xf", "wf", "bf"], ["c"], **options),
            helper.make_node("Relu", ["c"], ["r"]),
            helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
        ]
    model = model_of(nodes, {"x": x}, {"y": "uint8"}, values)
    f, found = results(model, x)
    sums = convolution(x.astype(np.int64) - x_zero, w.astype(np.int64) - w_zero, 2, 1, groups) + b.reshape(-1, 1, 1)
    scale = np.asarray(x_scale * w_scale / y_scale).reshape(-1, 1, 1)
    wanted = np.maximum(saturated(sums * scale.astype(np.float64), 117, "uint8"), low)
    for got in found:
        assert got.dtype == np.uint8
        np.testing.assert_array_equal(got, wanted)
    assert integers_of(f, x) == {"conv2d_integer"}
    reference = referred(model, x)[0]  # it rounds sums with the zero added, or partial sums
    assert np.abs(reference.astype(int) - wanted).max() <= 1 and np.mean(reference != wanted) < 0.05


@pytest.mark.parametrize("form", ["MatMul", "Gemm"])
@pytest.mark.parametrize("w_dtype, w_zero", [("int8", 0), ("uint8", 128), ("uint8", 5)])
@pytest.mark.sampled(6)
def test_products_with_limits(form, w_dtype, w_zero):
    x, shape = drawn("uint8", 3, 70), ((6, 70) if form == "Gemm" else (70, 6))
    w, b, scale = drawn(w_dtype, *shape), drawn("int16", 6).astype(np.int32), np.float32(0.01)
    values = dict(
        xs=scale, xz=np.uint8(99), w=w, ws=scale, wz=np.array(w_zero, w_dtype), ys=np.float32(1.5), yz=np.int8(-3)
    )
    values |= {"low": np.float32(-20), "high": np.float32(60)}
    turned: Any = {"transB": 1} if form == "Gemm" else {}
    matrix = w.astype(np.int64) - w_zero
    sums = (x.astype(np.int64) - 99) @ (matrix.T if form == "Gemm" else matrix)
    if form == "Gemm":
        values |= {"b": b, "bs": scale * scale}
        sums = sums + b
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"]),
        *([helper.make_node("DequantizeLinear", ["b", "bs"], ["bf"])] if form == "Gemm" else []),
        helper.make_node(form, ["xf", "wf", *(["bf"] if form == "Gemm" else [])], ["c"], **turned),
        helper.make_node("Clip", ["c", "low", "high"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    f, found = results(model_of(nodes, {"x": x}, {"y": "int8"}, values), x)
    steps = np.clip(np.rint(sums * np.float64(scale * scale / np.float32(1.5))), np.rint(-20 / 1.5), 60 / 1.5)
    for got in found:
        np.testing.assert_array_equal(got, saturated(steps, -3, "int8"))
    assert integers_of(f, x) == {"dot_integer"}


def test_integer_operators_with_zeros_of_a_run():
    x = RNG.standard_normal((5, 40)).astype(np.float32)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z", "wz"], ["y"]),
        helper.make_node("MatMulInteger", ["q", "u", "z", "uz"], ["v"]),
    ]
    values = {"w": drawn("int8", 40, 6), "wz": np.int8(0), "u": drawn("uint8", 40, 6), "uz": drawn("uint8", 6)}
    model = model_of(nodes, {"x": x}, {"y": "int32", "v": "int32"}, values)
    f, found = results(model, x)
    for got in found:
        for a, b in zip(got, referred(model, x), strict=True):
            np.testing.assert_array_equal(a, b)
    assert integers_of(f, x) == {"dot_integer"}


@pytest.mark.parametrize("shape", [(1, 3, 9), (1, 3, 8, 7), (1, 2, 5, 5, 5)])
def test_convolutions_of_integers_over_any_axes(shape):
    axes = len(shape) - 2
    x = drawn("uint8", *shape)
    nodes = [helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], dilations=[2] * axes, pads=[1] * 2 * axes)]
    w = drawn("int8", 4, shape[1], *(3,) * axes if axes < 3 else (2,) * axes)
    model = model_of(nodes, {"x": x}, {"y": "int32"}, {"w": w, "z": np.uint8(200)})
    _, found = results(model, x)
    for got in found:
        np.testing.assert_array_equal(got, referred(model, x)[0])


def layer(x, **changed):
    """A product without a rounding behind it, and a layer that reads floats beside."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "xs", "xz"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=1),
        helper.make_node("MatMul", ["xf", "wf"], ["m"]),
        helper.make_node("Add", ["m", "xf"], ["y"]),
    ]
    values = dict(xs=np.float32(0.05), xz=np.uint8(120), w=drawn("int8", 6, 6), wz=np.zeros(6, np.int8))
    values["ws"] = RNG.uniform(0.01, 0.02, 6).astype(np.float32)
    return model_of(nodes, {"x": x}, {"y": "float32"}, values | changed)


def test_sums_that_become_floats_and_their_derivatives():
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    model = layer(x)
    f, found = results(model, x)
    wanted = referred(model, x)[0]
    for got in found:
        np.testing.assert_allclose(got, wanted, 1e-5, 1e-5)
    assert integers_of(f, x) == {"dot_integer"}
    gradient = relay.grad(f, lambda x: np.sum(f(x) ** 2), (x,))
    q = np.clip(np.rint(x / np.float32(0.05)) + 120, 0, 255) - 120
    weights = f.params["w"].astype(np.float64)
    slope = (2 * wanted * 0.05 * (q @ weights)).sum(0)
    np.testing.assert_allclose(gradient["ws"], slope, 1e-4)
    by_scale = 2 * wanted * (q @ (weights * f.params["ws"]) + q)
    np.testing.assert_allclose(gradient["xs"], by_scale.sum(), 1e-4)


def test_parameters_that_are_part_of_the_program():
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    f, other = relay.from_onnx(layer(x)), drawn("int8", 6, 6)

    @relay
    def doubled(x):
        return 2 * f(x)

    before = f(x)
    np.testing.assert_array_equal(doubled(x), 2 * before)
    with pytest.raises(ValueError, match="read-only"):
        f.params["w"][0, 0] = 1
    f.params["xs"] = np.float32(0.07)
    f.params["w"], f.params["xz"] = other, np.uint8(100)
    values = {"w": other, "xz": np.uint8(100), "xs": np.float32(0.07), "ws": np.array(f.params["ws"])}
    wanted = referred(layer(x, **values), x)[0]
    np.testing.assert_allclose(f(x), wanted, 1e-5, 1e-5)
    np.testing.assert_allclose(doubled(x), 2 * wanted, 1e-5, 1e-5)
    again = f.copy()
    np.testing.assert_array_equal(again(x), f(x))
    again.restore({**f.saved(), "w": np.zeros((6, 6), np.int8)})
    assert not np.array_equal(again(x), f(x))


def test_what_is_no_product_of_integers_stays_in_floats():
    x, w = drawn("uint8", 2, 6), drawn("int8", 6, 3)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs"], ["xf"], axis=1),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["wf"], axis=0),
        helper.make_node("MatMul", ["xf", "wf"], ["m"]),
        helper.make_node("Relu", ["m"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    scales = RNG.uniform(0.5, 1, 6).astype(np.float32)
    for xs, ws in ((scales, np.float32(0.1)), (np.float32(0.1), scales)):  # a scale for each term of the sums
        values = {"xs": xs, "w": w, "ws": ws, "ys": np.float32(0.3), "yz": np.uint8(4)}
        model = model_of(nodes, {"x": x}, {"y": "uint8"}, values)
        f, found = results(model, x)
        wanted = referred(model, x)[0].astype(int)
        for got in found:
            assert np.abs(got.astype(int) - wanted).max() <= 1
        assert integers_of(f, x) == {"dot"}


def test_values_that_others_read_stay():
    x, w = drawn("uint8", 2, 6), drawn("int8", 6, 3)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "xs"], ["wf"]),
        helper.make_node("MatMul", ["xf", "wf"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "ys"], ["y"]),
    ]
    values = {"xs": np.float32(0.1), "w": w, "ys": np.float32(2)}
    model = model_of(nodes, {"x": x}, {"m": "float32", "y": "uint8", "xf": "float32"}, values)
    for got in results(model, x)[1]:
        for a, b in zip(got, referred(model, x), strict=True):
            np.testing.assert_allclose(a, b, 1e-5)
