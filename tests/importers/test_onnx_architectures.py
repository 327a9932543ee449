"""Small networks of the kinds that people export: each for several sizes with one compilation, against ONNX's reference
evaluator, and their gradients by parameters."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import numpy_helper, parser  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from myia_relay import ShapeError, relay  # noqa: E402

UNET = """net (double[n, 2, h, w] x, double[4, 2, 3, 3] w1, double[8, 4, 3, 3] w2, double[8, 4, 2, 2] w3, double[3, 8, 3, 3] w4)
 => (double[n, 3, h, w] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w1)
    s = Relu(a)
    p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (s)
    b = Conv <pads = [1, 1, 1, 1]> (p, w2)
    r = Relu(b)
    u = ConvTranspose <strides = [2, 2]> (r, w3)
    c = Concat <axis = 1> (u, s)
    y = Conv <pads = [1, 1, 1, 1]> (c, w4)
}"""

MOBILE = """net (double[n, 3, 12, 12] x, double[8, 3, 3, 3] w1, double[8, 1, 3, 3] w2, double[4, 8, 1, 1] w3, double[8, 4, 1, 1] w4,
 double[5, 8] w5, double[5] b5) => (double[n, 5] y) {
    a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w1)
    b = HardSwish(a)
    c = Conv <pads = [1, 1, 1, 1], group = 8> (b, w2)
    g = GlobalAveragePool(c)
    d = Conv(g, w3)
    e = Relu(d)
    f = Conv(e, w4)
    h = HardSigmoid <alpha = 0.16666667> (f)
    i = Mul(c, h)
    j = Add(i, b)
    k = GlobalAveragePool(j)
    l = Flatten(k)
    y = Gemm <transB = 1> (l, w5, b5)
}"""

DECODER = """net (int64[batch, length] ids, double[2, batch, 2, past, 4] cache, double[11, 8] words, double[8, 24] qkv,
 double[8, 8] out) => (double[batch, length, 11] logits, double[2, batch, 2, total, 4] kept) {
    x = Gather(words, ids)
    p = MatMul(x, qkv)
    q1, k1, v1 = Split <axis = 2, num_outputs = 3> (p)
    heads = Constant <value = int64[4] {0, 0, 2, 4}> ()
    q2 = Reshape(q1, heads)
    k2 = Reshape(k1, heads)
    v2 = Reshape(v1, heads)
    q = Transpose <perm = [0, 2, 1, 3]> (q2)
    k3 = Transpose <perm = [0, 2, 1, 3]> (k2)
    v3 = Transpose <perm = [0, 2, 1, 3]> (v2)
    first = Constant <value_int = 0> ()
    second = Constant <value_int = 1> ()
    ck = Gather(cache, first)
    cv = Gather(cache, second)
    k = Concat <axis = 2> (ck, k3)
    v = Concat <axis = 2> (cv, v3)
    length = Shape <start = 2, end = 3> (q)
    total = Shape <start = 2, end = 3> (k)
    square = Concat <axis = 0> (length, total)
    one = Constant <value = double[1] {1}> ()
    ones = Expand(one, square)
    past = Sub(total, length)
    axis = Constant <value = int64[1] {0}> ()
    diagonal = Squeeze(past, axis)
    seen = Trilu <upper = 0> (ones, diagonal)
    hidden = Sub(one, seen)
    large = Constant <value = double {-10000}> ()
    bias = Mul(hidden, large)
    kt = Transpose <perm = [0, 1, 3, 2]> (k)
    scores = MatMul(q, kt)
    masked = Add(scores, bias)
    weights = Softmax(masked)
    z1 = MatMul(weights, v)
    z2 = Transpose <perm = [0, 2, 1, 3]> (z1)
    flat = Constant <value = int64[3] {0, 0, 8}> ()
    z3 = Reshape(z2, flat)
    z4 = MatMul(z3, out)
    z = Add(x, z4)
    wt = Transpose(words)
    logits = MatMul(z, wt)
    pair = Constant <value = int64[1] {0}> ()
    ku = Unsqueeze(k, pair)
    vu = Unsqueeze(v, pair)
    kept = Concat <axis = 0> (ku, vu)
}"""

SEQUENCES = """net (double[length, batch, 3] source, double[steps, batch, 3] target, double[2, 12, 3] w1, double[2, 12, 4] r1,
 double[2, 24] b1, double[1, 32, 3] w2, double[1, 32, 8] r2, double[1, 64] b2) => (double[steps, batch, 8] y) {
    h1, last = GRU <hidden_size = 4, direction = "bidirectional", linear_before_reset = 1> (source, w1, r1, b1)
    h2 = Transpose <perm = [0, 2, 1, 3]> (h1)
    joined = Constant <value = int64[3] {0, 0, 8}> ()
    h = Reshape(h2, joined)
    d1, dh, dc = LSTM <hidden_size = 8> (target, w2, r2, b2)
    one = Constant <value = int64[1] {1}> ()
    d2 = Squeeze(d1, one)
    hb = Transpose <perm = [1, 2, 0]> (h)
    db = Transpose <perm = [1, 0, 2]> (d2)
    scores = MatMul(db, hb)
    weights = Softmax(scores)
    values = Transpose <perm = [0, 2, 1]> (hb)
    context = MatMul(weights, values)
    z = Transpose <perm = [1, 0, 2]> (context)
    y = Add(z, d2)
}"""

WAVES = """net (double[n, 1, t] x, double[4, 1, 1] w1, double[8, 4, 2] w2, double[4, 4, 1] w3, double[8, 4, 2] w4)
 => (double[n, 4, t] y) {
    a = Conv(x, w1)
    pads = Constant <value = int64[6] {0, 0, 2, 0, 0, 0}> ()
    b = Pad(a, pads)
    c = Conv <dilations = [2]> (b, w2)
    f, g = Split <axis = 1, num_outputs = 2> (c)
    h = Tanh(f)
    i = Sigmoid(g)
    j = Mul(h, i)
    k = Conv(j, w3)
    l = Add(a, k)
    wide = Constant <value = int64[6] {0, 0, 4, 0, 0, 0}> ()
    m = Pad(l, wide)
    o = Conv <dilations = [4]> (m, w4)
    p, q = Split <axis = 1, num_outputs = 2> (o)
    y = Mul(p, q)
}"""

DETECTOR = """net (float[1, 3, h, w] x, float[8, 3, 3, 3] w1, float[8, 8, 3, 3] w2, float[6, 8, 3, 3] w3)
 => (int64[k, 3] chosen, float[boxes, 4] at) {
    a = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w1)
    b = Relu(a)
    c = Conv <pads = [1, 1, 1, 1]> (b, w2)
    d = Transpose <perm = [0, 2, 3, 1]> (c)
    four = Constant <value = int64[3] {1, -1, 4}> ()
    e = Reshape(d, four)
    boxes = Sigmoid(e)
    f = Conv <pads = [1, 1, 1, 1]> (b, w3)
    three = Constant <value = int64[3] {1, 3, -1}> ()
    g = Reshape(f, three)
    scores = Sigmoid(g)
    most = Constant <value = int64[1] {5}> ()
    overlap = Constant <value = float[1] {0.5}> ()
    chosen = NonMaxSuppression(boxes, scores, most, overlap)
    axis = Constant <value = int64[1] {0}> ()
    at = Squeeze(boxes, axis)
}"""

BY_BATCH = [(1,), (3,)]
NETS = {
    "U-Net": (UNET, "x", lambda n, h, w: [(n, 2, h, w)], [(1, 8, 6), (2, 4, 10)]),
    "MobileNet": (MOBILE, "x", lambda n: [(n, 3, 12, 12)], BY_BATCH),
    "decoder with a cache": (
        DECODER, "ids cache", lambda n, m, p: [(n, m), (2, n, 2, p, 4)], [(1, 5, 0), (3, 1, 4), (2, 3, 2)]),
    "encoder and decoder": (SEQUENCES, "source target", lambda n, m, t: [(m, n, 3), (t, n, 3)], [(1, 5, 2), (3, 2, 6)]),
    "dilated sequences": (WAVES, "x", lambda n, t: [(n, 1, t)], [(1, 9), (2, 30)]),
    "detector": (DETECTOR, "x", lambda h, w: [(1, 3, h, w)], [(8, 12), (16, 6)]),
}  # fmt: skip


def network(text: str, inputs: str, opset: int = 18):
    """A model from text in which all inputs but those named become parameters."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}')
    rng, graph = np.random.default_rng(1), model.graph
    for value in [i for i in graph.input if i.name not in inputs.split()]:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        array = rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:], initial=1))
        dtype = np.float32 if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT else np.float64
        graph.initializer.append(numpy_helper.from_array(array.astype(dtype), value.name))
        graph.input.remove(value)
    return model


def drawn(model, shapes) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    out = []
    for value, shape in zip(model.graph.input, shapes, strict=True):
        kind = value.type.tensor_type.elem_type
        whole = kind == onnx.TensorProto.INT64
        array = rng.integers(0, 11, shape) if whole else rng.standard_normal(shape)
        out.append(array.astype(np.float32) if kind == onnx.TensorProto.FLOAT else array)
    return out


@pytest.mark.parametrize("name", NETS)
@pytest.mark.sampled(6)
def test_one_compilation_serves_all_sizes(name):
    text, inputs, shapes_of, cases = NETS[name]
    model = network(text, inputs)
    f, reference = relay.from_onnx(model), ReferenceEvaluator(model)
    for case in cases:
        values = drawn(model, shapes_of(*case))
        wanted = list(reference.run(None, dict(zip(inputs.split(), values, strict=True))))
        for run in (f, f.interpret):
            got = run(*values)
            got = got if isinstance(got, tuple) else (got,)
            for a, b in zip(got, map(np.asarray, wanted), strict=True):
                assert a.dtype == b.dtype and a.shape == b.shape
                np.testing.assert_allclose(a, b, *((1e-4, 1e-5) if a.dtype == np.float32 else (1e-7, 1e-7)))
    assert f.cache_info().misses == 1


@pytest.mark.parametrize("name", ["U-Net", "MobileNet", "encoder and decoder", "dilated sequences"])
@pytest.mark.sampled(4)
def test_gradients_by_parameters(name):
    text, inputs, shapes_of, cases = NETS[name]
    model = network(text, inputs)
    f = relay.from_onnx(model)
    values = tuple(drawn(model, shapes_of(*cases[-1])))

    def loss(*values):
        return np.sum(f(*values) ** 2)

    gradient = relay.grad(f, loss, values)
    rng = np.random.default_rng(4)
    start = {n: np.array(a) for n, a in f.params.items()}
    way = {n: rng.standard_normal(a.shape) for n, a in start.items()}
    ends = []
    for step in (1e-5, -1e-5):
        f.params = {n: a + step * way[n] for n, a in start.items()}
        result = f(*values)
        ends.append(np.sum(result**2))
    slope = sum(np.sum(gradient[n] * way[n]) for n in start)
    np.testing.assert_allclose(slope, (ends[0] - ends[1]) / 2e-5, 1e-6)


def test_sizes_that_were_divided_must_agree_at_run_time():
    f = relay.from_onnx(network(UNET, "x"))
    with pytest.raises(
        ShapeError, match=r"Concat \(node 'Concat_6'\): .*\(1, 4, 6, 6\) and \(1, 4, 7, 6\) differ in axis 2"
    ):
        f(np.ones((1, 2, 7, 6)))
    assert f(np.ones((1, 2, 4, 6))).shape == (1, 3, 4, 6)
    assert f.cache_info().currsize == 1


def test_a_model_with_the_sizes_of_its_example_is_compiled_for_those_of_a_call():
    f = relay.from_onnx(
        network(
            "net (double[n, m, 4] x) => (double[n, 5, 2, 2] y) { s = Constant <value = int64[4] {-1, 5, 2, 2}> ()"
            "  e = Constant <value = double[1, 5, 1] {1, 2, 3, 4, 5}> ()  z = Add(x, e)  y = Reshape(z, s) }",
            "x",
        )
    )
    for batch in (2, 3):
        x = np.arange(batch * 20.0).reshape(batch, 5, 4)
        np.testing.assert_array_equal(f(x), (x + np.arange(1, 6)[:, None]).reshape(batch, 5, 2, 2))
    with pytest.raises(ShapeError, match="Add"):
        f(np.ones((2, 6, 4)))


def test_what_cannot_be_done_for_any_sizes_is_refused_at_import():
    with pytest.raises(TypeError, match=r"Add \(node 'Add_0'\)"):
        relay.from_onnx(network("net (double[n] x, int64[2] k) => (double[n] y) { y = Add(x, k) }", "x k"))


def test_errors_at_run_time_do_not_compile_again():
    f = relay.from_onnx(network("net (double[n] x, int64[2] k) => (double[a, b] y) { y = Reshape(x, k) }", "x k"))
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot reshape"):
            f(np.ones(6), np.array([4, 2]))
        np.testing.assert_array_equal(f(np.ones(6), np.array([2, 3])), np.ones((2, 3)))
    assert f.cache_info().misses == 1


def test_an_axis_of_one_element_repeats_where_a_value_decides_its_size():
    table = (
        "c = Constant <value = double[3] {1, 2, 3}> ()  s = ConstantOfShape(k)  z = Cast <to = 11> (s)  w = Add(z, p)"
    )
    f = relay.from_onnx(
        network(f"net (int64[2] k, double[1] p) => (double[a, b] y) {{ {table}  y = Add(w, c) }}", "k"),
    )
    for shape in ((2, 3), (1, 1), (4, 1), (0, 3)):
        f.params["p"] = np.array([len(shape) + shape[0]], np.float64)
        np.testing.assert_array_equal(f(np.array(shape)), np.zeros(shape) + f.params["p"] + [1, 2, 3])
    with pytest.raises(ShapeError, match=r"Add \(node 'Add_4'\)"):
        f(np.array([2, 2]))


def test_a_branch_that_is_not_taken_may_not_fit():
    f = relay.from_onnx(
        network(
            "net (bool c, double[2] x, double[3] z) => (double[n] y) { y = If (c) <then_branch = t () => (double[n] a)"
            " { a = Add(x, z) }, else_branch = e () => (double[n] b) { b = Mul(x, x) }> }",
            "c x z",
        )
    )
    np.testing.assert_array_equal(f(np.array(False), np.array([2.0, 3.0]), np.ones(3)), [4, 9])
    with pytest.raises(ShapeError, match="sizes 2 and 3"):
        f(np.array(True), np.array([2.0, 3.0]), np.ones(3))


def test_long_inputs_of_integers_are_not_tried():
    with pytest.raises(ShapeError, match=r"Add \(node 'Add_0'\)"):
        relay.from_onnx(
            network(
                "net (int64[1000000000000] k, double[2] x, double[3] z) => (double[n] y) { y = Add(x, z) }", "k x z"
            )
        )


def test_padding_that_depends_on_open_sizes():
    model = network(
        "net (double[n, 1, h, w] x, double[2, 1, 3, 2] f) => (double[n, 2, a, b] y)"
        ' { z = Conv <auto_pad = "SAME_UPPER", strides = [2, 3]> (x, f)'
        "   y = MaxPool <kernel_shape = [2, 2], strides = [3, 2], ceil_mode = 1> (z) }",
        "x",
    )
    f, reference = relay.from_onnx(model), ReferenceEvaluator(model)
    for shape in ((1, 1, 9, 11), (2, 1, 6, 13)):
        (x,) = drawn(model, [shape])
        np.testing.assert_allclose(f(x), np.asarray(list(reference.run(None, {"x": x}))[0]), 1e-12)
