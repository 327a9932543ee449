"""Imported ONNX models against ONNX's reference evaluator; parameters, derivatives, sizes, refusals, damaged files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from myia_relay import CompileError, ShapeError, TypeError_, grad, relay

RNG = np.random.default_rng(0)


def parsed(body: str, opset: int = 18) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{body}')


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def compare(model: onnx.ModelProto, *inputs: np.ndarray, rtol: float = 1e-5) -> None:
    names = [i.name for i in model.graph.input]
    want = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    f = relay.from_onnx(model)
    for got in (f(*inputs), f.interpret(*inputs)):
        got = got if isinstance(got, tuple) else (got,)
        for a, b in zip(got, want, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol, 1e-6)


def test_a_convolutional_network():
    compare(
        parsed(
            """f (float[n, 3, 8, 8] x, float[4, 3, 3, 3] w, float[4] s) => (float[n, 4] y) {
            a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w)
            b = BatchNormalization(a, s, s, s, s)
            c = Relu(b)
            d = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
            e = GlobalAveragePool(d)
            y = Flatten(e)
        }"""
        ),
        floats(2, 3, 8, 8),
        floats(4, 3, 3, 3),
        np.abs(floats(4)),
        rtol=1e-4,
    )


def test_recurrent_layers():
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        compare(
            parsed(
                f"f (float[5, 2, 3] x, float[1, {4 * gates}, 3] w, float[1, {4 * gates}, 4] r, float[1, {8 * gates}] b)"
                f" => (float[5, 1, 2, 4] y, float[1, 2, 4] h) {{ y, h = {op} <hidden_size = 4> (x, w, r, b) }}"
            ),
            floats(5, 2, 3),
            floats(1, 4 * gates, 3),
            floats(1, 4 * gates, 4),
            floats(1, 8 * gates),
            rtol=1e-4,
        )


def test_quantised_operators_are_exact():
    compare(
        parsed(
            """f (float[3, 4] x, uint8[4, 2] w) => (int32[3, 2] y, uint8[3, 4] q, float[3, 4] z) {
            q, s, o = DynamicQuantizeLinear(x)
            y = MatMulInteger(q, w, o)
            z = DequantizeLinear(q, s, o)
        }""",
            19,
        ),
        floats(3, 4),
        RNG.integers(0, 256, (4, 2), np.uint8),
    )


def test_control_flow_sees_outer_values():
    model = parsed(
        """f (float[3] x, int64 n) => (float[3] y) {
        yes = Constant <value = bool {1}> ()
        y = Loop (n, yes, x) <body = step (int64 i, bool go, float[3] s) => (bool on, float[3] t)
            { on = Identity(go)  t = Add(s, x) }>
    }"""
    )
    f = relay.from_onnx(model)
    x = floats(3)
    np.testing.assert_allclose(f(x, np.int64(3)), 4 * x, 1e-6)
    np.testing.assert_allclose(f(x, np.int64(0)), x)
    assert f.cache_info().misses == 1


def test_one_compilation_serves_all_sizes():
    model = parsed(
        """f (float[batch, length, 8] x) => (float[batch, length, 2, 4] y) <int64[2] tail = {2, 4}> {
        s = Shape <end = 2> (x)
        t = Concat <axis = 0> (s, tail)
        y = Reshape(x, t)
    }"""
    )
    f = relay.from_onnx(model)
    for shape in ((1, 2, 8), (3, 5, 8), (7, 1, 8)):
        x = floats(*shape)
        np.testing.assert_array_equal(f(x), x.reshape(*shape[:2], 2, 4))
    assert f.cache_info().misses == 1


def test_sizes_that_an_input_says():
    f = relay.from_onnx(parsed("f (float[2, 6] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }"))
    x = floats(2, 6)
    for sizes in ([3, 4], [-1, 2], [0, -1]):
        want = [2 if d == 0 else d for d in sizes]
        np.testing.assert_array_equal(f(x, np.array(sizes)), x.reshape(want))
    assert f.cache_info().misses == 1


def test_axes_that_an_input_says_are_compiled_for():
    f = relay.from_onnx(parsed("f (float[2, 3] x, int64[1] axes) => (float[a, b] y) { y = ReduceSum(x, axes) }"))
    x = floats(2, 3)
    for axis in (0, 1, 0):
        np.testing.assert_allclose(f(x, np.array([axis])), x.sum(axis, keepdims=True), 1e-5)


LINEAR = "f (float[n, 2] x) => (float[n, 3] y) <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[3] b = {0, 1, 2}> { y = Gemm(x, w, b) }"


def test_parameters_are_assigned_without_a_compilation():
    f = relay.from_onnx(parsed(LINEAR))
    x = floats(2, 2)
    f(x)
    f.params["w"] = np.zeros((2, 3), np.float32)
    np.testing.assert_array_equal(f(x), np.broadcast_to([0, 1, 2], (2, 3)))
    assert f.cache_info().misses == 1 and list(f.params) == ["w", "b"]


def test_derivatives_by_inputs_and_parameters():
    f = relay.from_onnx(parsed(LINEAR))
    x = floats(2, 2)

    def loss(x):
        return np.sum(f(x) ** 2)

    w, b = f.params["w"].copy(), f.params["b"].copy()
    out = 2 * (x @ w + b)
    gradient = relay.grad(f, loss, (x,))
    np.testing.assert_allclose(gradient["w"], x.T @ out, 1e-4)
    np.testing.assert_allclose(gradient["b"], out.sum(0), 1e-4)
    np.testing.assert_allclose(grad(loss)(x), out @ w.T, 1e-4)


def test_it_is_an_ordinary_function():
    f = relay.from_onnx(parsed(LINEAR))
    x = floats(4, 2)

    @relay
    def twice(x):
        return f(x) + f(x)

    np.testing.assert_allclose(twice(x), 2 * f(x), 1e-6)
    np.testing.assert_allclose(relay.vmap(f)(x[:, None]), f(x)[:, None], 1e-6)
    for other in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f)):
        other.params["b"] = np.float32([5, 5, 5])
        np.testing.assert_allclose(other(x) - f(x), np.broadcast_to([5, 4, 3], (4, 3)), 1e-5)
    assert "Gemm" in f.text and "f" in str(f.ir(x))


def test_wrong_inputs_are_named():
    f = relay.from_onnx(parsed("f (float[n, 2] left) => (float[n, 2] y) { y = Relu(left) }"))
    with pytest.raises(TypeError_, match="'left' is of float32"):
        f(np.zeros((1, 2)))
    with pytest.raises(ShapeError, match="'left'"):
        f(np.zeros((1, 3), np.float32))


@pytest.mark.parametrize(
    "body, words",
    [
        ("f (float[n] x) => (float[n] y) { y = Frobnicate(x) }", "Frobnicate .node 'Frobnicate_0'"),
        ("f (string[n] x) => (string[n] y) { y = Identity(x) }", "string"),
        ("f (float[n] x) => (float[n] y) { y = Add(x, z) }", "reads 'z'"),
        ("f (float[n] x) => (float[n] y) { z = Add(x, y)  y = Relu(z) }", "reads 'y'"),
        ("f (float[n] x) => (float[n] y) { y = Relu(x)  y = Relu(x) }", "two nodes make the value 'y'"),
        ("f (float[2] x, float[3] z) => (float[2] y) { y = Add(x, z) }", "Add .node 'Add_0'"),
        ("f (float[2] x, double[2] z) => (float[2] y) { y = Add(x, z) }", "Add .node 'Add_0'"),
    ],
)
def test_what_cannot_be_imported_is_said_at_import(body, words):
    with pytest.raises(CompileError, match=words):
        relay.from_onnx(parsed(body))


def with_initializer(tensor: TensorProto) -> onnx.ModelProto:
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["w"], ["y"])], "f", [], [out], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_sizes_are_checked_before_memory_is_taken():
    tensor = numpy_helper.from_array(floats(4), "w")
    tensor.dims[0] = 1 << 50
    with pytest.raises(CompileError, match="16 bytes of data"):
        relay.from_onnx(with_initializer(tensor))


@pytest.mark.parametrize("location", ["/etc/hostname", "../secret", "link", "none"])
def test_external_data_stays_within_the_folder(tmp_path, location):
    (tmp_path / "secret").write_bytes(floats(4).tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    tensor = numpy_helper.from_array(floats(4), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (folder / "m.onnx").write_bytes(with_initializer(tensor).SerializeToString())
    with pytest.raises(CompileError, match="initializer 'w'"):
        relay.from_onnx(folder / "m.onnx")


def mutated(count: int, seed: int) -> None:
    data = parsed(LINEAR).SerializeToString()
    rng = np.random.default_rng(seed)
    for _ in range(count):
        broken = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            broken[rng.integers(len(broken))] = rng.integers(256)
        if rng.random() < 0.3:
            broken = broken[: rng.integers(len(broken))]
        try:
            relay.from_onnx(bytes(broken))
        except CompileError:
            pass


@pytest.mark.parametrize("field", ["doc_string", "producer_name", "graph.name"])
def test_texts_that_are_not_utf8_are_errors(field):
    """protobuf may decode a text when it is read first, not when the file is."""
    model = parsed(LINEAR)
    *path, last = field.split(".")
    setattr(model.graph if path else model, last, "QQQQQQ")
    damaged = model.SerializeToString().replace(b"QQQQQQ", b"\xc2" * 6)
    with pytest.raises(CompileError, match="damaged|no ONNX model"):
        relay.from_onnx(damaged)


def test_damaged_files_are_errors():
    mutated(60, 1)


@pytest.mark.campaign
def test_many_damaged_files_are_errors():
    mutated(10_000, 2)


def test_bytes_that_are_no_model():
    with pytest.raises(CompileError, match="no graph|no ONNX"):
        relay.from_onnx(b"")
