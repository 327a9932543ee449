"""Operators of signals, regions, text and bits against ONNX's reference evaluator or NumPy, in native code and the interpreter."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

from myia_relay import CompileError, ShapeError, grad, relay

RNG = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def parsed(body: str, opset: int = 22) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{body}')


def check(f, want, *inputs, rtol=1e-4, atol=1e-5) -> None:
    for got in (f(*inputs), f.interpret(*inputs)):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol, atol)


def compare(model: onnx.ModelProto, *inputs: np.ndarray) -> None:
    names = [i.name for i in model.graph.input]
    (want,) = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    check(relay.from_onnx(model), want, *inputs)


@pytest.mark.parametrize("n", [1, 7, 12])
def test_fourier_transforms(n):
    z = floats(2, n, 3, 2)
    compare(parsed(f"f (float[2, {n}, 3, 2] x) => (float[2, {n}, 3, 2] y) {{ y = DFT <axis = 1> (x) }}", 17), z)
    compare(
        parsed(
            f"f (float[b, {n}, 3, 2] x) => (float[b, {n}, c, 2] y) <int64 n = {{5}}, int64 a = {{-2}}> "
            "{ y = DFT <inverse = 1> (x, n, a) }"
        ),
        z,
    )
    compare(parsed(f"f (float[2, {n}, 1] x) => (float[2, m, 2] y) {{ y = DFT <onesided = 1> (x) }}"), floats(2, n, 1))
    if n > 1:
        w = np.fft.rfft(floats(2, n)).astype(np.complex64)
        both = np.stack([w.real, w.imag], -1)
        model = parsed(
            f"f (float[2, {n // 2 + 1}, 2] x) => (float[2, m, 1] y) <int64 n = {{{n}}}> "
            "{ y = DFT <inverse = 1, onesided = 1> (x, n) }"
        )
        check(relay.from_onnx(model), np.fft.irfft(w, n).astype(np.float32)[..., None], both)


def test_transforms_of_frames_with_a_window_and_their_gradient():
    model = parsed(
        """f (float[batch, length, 1] x) => (float[batch, frames, 6, 2] y) <int64 step = {3}> {
        n = Constant <value_int = 10> ()
        w = HannWindow(n)
        y = STFT(x, step, w)
    }"""
    )
    f = relay.from_onnx(model)
    for length in (10, 25):
        x = floats(2, length, 1)
        (want,) = ReferenceEvaluator(model).run(None, {"x": x})
        check(f, want, x)
    assert f.cache_info().misses == 1
    # The transform is linear: <dy, f(x)> has the gradient of which <gradient, v> = <dy, f(v)>.
    dy, v = floats(*f(x).shape), floats(2, 25, 1)
    gradient = grad(lambda x, dy: np.sum(f(x) * dy))(x, dy)
    np.testing.assert_allclose(np.sum(gradient * v), np.sum(f(v) * dy), 1e-4)


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows_of_sizes_that_an_input_says(op):
    for periodic in (0, 1):
        model = parsed(
            f"f (int64 n) => (double[m] y) {{ y = {op} <output_datatype = 11, periodic = {periodic}> (n) }}", 17
        )
        f = relay.from_onnx(model)
        for n in (2, 9):
            (want,) = ReferenceEvaluator(model).run(None, {"n": np.int64(n)})
            np.testing.assert_allclose(f(np.int64(n)), want.astype(np.float64), 1e-12, 1e-12)
        assert f.cache_info().misses == 1


def test_weights_of_mel_filters():
    compare(
        parsed(
            "f () => (float[a, b] y) <int64 bins = {8}, int64 n = {64}, int64 rate = {8000}, float low = {20}, "
            "float high = {3800}> { y = MelWeightMatrix(bins, n, rate, low, high) }"
        )
    )
    with pytest.raises(CompileError, match="MelWeightMatrix.*beyond the spectrum"):
        relay.from_onnx(
            parsed(
                "f () => (float[a, b] y) <int64 bins = {8}, int64 n = {64}, int64 rate = {8000}, float low = {20}, "
                "float high = {9000}> { y = MelWeightMatrix(bins, n, rate, low, high) }"
            )
        )


@pytest.mark.parametrize(
    "image, block, attributes, count",
    [
        ((5, 6), (2, 3), "", 16),
        ((5, 6), (2, 2), "strides = [2, 3], pads = [1, 0, 2, 1], dilations = [2, 2]", 6),
        ((4, 3, 5), (2, 1, 2), "pads = [0, 1, 0, 0, 0, 1]", 3 * 5 * 4),
        ((6,), (3,), "dilations = [2]", 2),
    ],
)
def test_columns_to_images(image, block, attributes, count):
    sizes = ", ".join(
        f"int64[{len(v)}] {n} = {{{', '.join(map(str, v))}}}" for n, v in (("image", image), ("block", block))
    )
    model = parsed(
        f"f (float[2, {3 * int(np.prod(block))}, {count}] x) => (float[a, b, c] y) <{sizes}>"
        f" {{ y = Col2Im <{attributes}> (x, image, block) }}".replace("<>", "")
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    compare(model, floats(2, 3 * int(np.prod(block)), count))


def test_maxima_put_back():
    x = np.array([[[[5, 6], [7, 8]]]], np.float32)
    at = np.array([[[[5, 7], [13, 15]]]], np.int64)
    head = "f (float[1, 1, 2, 2] x, int64[1, 1, 2, 2] i) => (float[a, b, c, d] y)"
    compare(parsed(head + " { y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i) }"), x, at)
    compare(
        parsed(
            head + " <int64[4] s = {1, 1, 5, 6}> { y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i, s) }"
        ),
        x,
        at,
    )
    f = relay.from_onnx(parsed(head + " { y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i) }"))
    with pytest.raises(IndexError):
        f(x, at + 1)


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio, where", [(0, "half_pixel"), (2, "output_half_pixel")])
@pytest.mark.sampled(4)
def test_regions_aligned(mode, ratio, where):
    rois = np.array([[0, 0, 9, 9], [1.5, 2.25, 6, 11], [3, 3, 3, 3], [-4, 5, 20, 7]], np.float32)
    model = parsed(
        "f (float[2, 3, 8, 9] x, float[r, 4] rois, int64[r] batch) => (float[r, 3, 2, 3] y) { y = RoiAlign <output_height = 2, "
        f'output_width = 3, mode = "{mode}", sampling_ratio = {ratio}, coordinate_transformation_mode = "{where}", '
        "spatial_scale = 0.75> (x, rois, batch) }"
    )
    compare(model, floats(2, 3, 8, 9), rois, np.array([0, 1, 1, 0], np.int64))


def test_maxima_of_regions():
    x = floats(2, 3, 8, 9)
    rois = np.array([[0, 0, 0, 8, 7], [1, 2, 3, 5, 5], [1, 6, 6, 30, 30]], np.float32)
    f = relay.from_onnx(
        parsed(
            "f (float[2, 3, 8, 9] x, float[r, 5] s) => (float[r, 3, 2, 2] y) "
            "{ y = MaxRoiPool <pooled_shape = [2, 2], spatial_scale = 0.9> (x, s) }"
        )
    )
    want = np.zeros((3, 3, 2, 2), np.float32)
    for r, (image, *corners) in enumerate(rois.tolist()):
        left, top, right, bottom = (int(np.floor(np.float32(v) * np.float32(0.9) + np.float32(0.5))) for v in corners)
        high, wide = max(bottom - top + 1, 1) / 2, max(right - left + 1, 1) / 2
        for i in range(2):
            for j in range(2):
                part = x[
                    int(image),
                    :,
                    top + int(i * high) : top + int(np.ceil((i + 1) * high)),
                    left + int(j * wide) : left + int(np.ceil((j + 1) * wide)),
                ]
                want[r, :, i, j] = part.max((1, 2)) if part.size else 0
    check(f, want, x, rois)


def test_a_deformable_convolution():
    model = parsed(
        """f (float[2, 4, 6, 5] x, float[6, 2, 2, 3] w, float[2, 24, 5, 3] o, float[6] b, float[2, 12, 5, 3] m)
        => (float[2, 6, 5, 3] y) {
            y = DeformConv <group = 2, offset_group = 2, pads = [1, 0, 0, 0], dilations = [2, 1]> (x, w, o, b, m)
        }"""
    )
    compare(model, floats(2, 4, 6, 5), floats(6, 2, 2, 3), floats(2, 24, 5, 3), floats(6), floats(2, 12, 5, 3))


def test_sequences_counted():
    for mode, low, high, skip in (("TF", 1, 3, 0), ("IDF", 2, 2, 2), ("TFIDF", 1, 3, 5), ("TF", 3, 3, 1)):
        model = parsed(
            f'f (int64[rows, n] x) => (float[rows, 9] y) {{ y = TfIdfVectorizer <mode = "{mode}", min_gram_length = {low}, '
            f"max_gram_length = {high}, max_skip_count = {skip}, ngram_counts = [0, 3, 11], "
            "ngram_indexes = [8, 0, 2, 1, 4, 3, 5, 6, 7], "
            "pool_int64s = [1, 2, 3, 1, 2, 2, 2, 3, 1, 0, 0, 1, 2, 3, 2, 2, 1], "
            "weights = [1.0, 2.0, 0.5, 3.0, 4.0, 5.0, 0.25, 7.0, 8.0]> (x) }"
        )
        f = relay.from_onnx(model)
        for n in (2, 11):
            x = RNG.integers(0, 4, (3, n))
            (want,) = ReferenceEvaluator(model).run(None, {"x": x})
            check(f, want, x)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "size, kernel, strides, dilations, pads",
    [
        ((40, 30), (12, 9), (2, 3), (2, 3), (3, 0, 4, 5)),  # 108 elements in a window, with gaps
        ((60, 60), (20, 20), (9, 9), (1, 1), (0, 0, 0, 0)),  # 400
        ((9, 8, 7), (5, 4, 4), (2, 2, 2), (1, 2, 1), (1, 0, 0, 0, 1, 0)),
    ],
)
def test_large_windows(size, kernel, strides, dilations, pads):
    rank = len(size)
    attributes = (
        f"kernel_shape = {list(kernel)}, strides = {list(strides)}, dilations = {list(dilations)}, pads = {list(pads)}"
    )
    sizes = ", ".join(map(str, size))
    outer = ", ".join("abcde"[: rank + 2])
    x = RNG.permutation(2 * int(np.prod(size))).reshape(1, 2, *size)

    def windows(values, fill):
        wide = np.pad(values, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)], constant_values=fill)
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        view = np.lib.stride_tricks.sliding_window_view(wide, reach, tuple(range(2, rank + 2)))
        every = (
            slice(None),
            slice(None),
            *(slice(None, None, s) for s in strides),
            *(slice(None, None, d) for d in dilations),
        )
        return view[every].reshape(*view[every].shape[: rank + 2], -1)

    flat = windows(x, -1)
    places = windows(np.arange(x.size).reshape(x.shape), -1)
    where = np.take_along_axis(places, flat.argmax(-1)[..., None], -1)[..., 0]
    for kind, dtype in (("float", np.float32), ("uint8", np.uint8)):
        body = f"f ({kind}[1, 2, {sizes}] x) => ({kind}[{outer}] y, int64[{outer}] i) {{ y, i = MaxPool <{attributes}> (x) }}"
        values = x.astype(dtype) if kind == "float" else x % 256
        got, at = relay.from_onnx(parsed(body))(values.astype(dtype))
        np.testing.assert_array_equal(got, windows(values, -1).max(-1))
        if kind == "float":
            np.testing.assert_array_equal(at, where)
        else:
            np.testing.assert_array_equal(values.ravel()[at], got)
    body = f"f (float[1, 2, {sizes}] x) => (float[{outer}] y) {{ y = MaxPool <{attributes}> (x) }}"
    check(relay.from_onnx(parsed(body)), flat.max(-1).astype(np.float32), x.astype(np.float32))
    body = f"f (float[1, 2, {sizes}] x) => (float[{outer}] y) {{ y = AveragePool <{attributes}> (x) }}"
    want = windows(x, 0).sum(-1) / windows(np.ones(x.shape), 0).sum(-1)
    check(relay.from_onnx(parsed(body)), want.astype(np.float32), x.astype(np.float32))


@pytest.mark.parametrize("backwards", [0, 1])
def test_scans_of_sequences_of_their_own_lengths(backwards):
    model = parsed(
        f"""f (int64[b] lens, float[b, 2] s, float[b, t, 2] x) => (float[b, 2] last, float[b, t, 2] y) {{
        last, y = Scan <num_scan_inputs = 1, directions = [{backwards}],
            body = step (float[2] h, float[2] v) => (float[2] g, float[2] o) {{
            half = Constant <value_float = 0.5> ()  k = Mul(h, half)  g = Add(k, v)  o = Add(g, v) }}> (lens, s, x)
    }}""",
        8,
    )
    for info in (model.graph.node[0].attribute,):
        body = next(a.g for a in info if a.name == "body")
        body.node[0].attribute[0].CopyFrom(
            onnx.helper.make_attribute("value", onnx.helper.make_tensor("", 1, [], [0.5]))
        )
    f = relay.from_onnx(model)
    for lens, t in (([3, 0, 5], 5), ([1, 7, 2], 7)):
        s, x = floats(3, 2), floats(3, t, 2)
        last, y = np.zeros((3, 2), np.float32), np.zeros((3, t, 2), np.float32)
        for b, n in enumerate(lens):
            h = s[b]
            for k in range(n):
                v = x[b, n - 1 - k if backwards else k]
                h = h * np.float32(0.5) + v
                y[b, k] = h + v
            last[b] = h
        for got in (f(np.array(lens), s, x), f.interpret(np.array(lens), s, x)):
            np.testing.assert_allclose(got[0], last, 1e-5)
            np.testing.assert_allclose(got[1], y, 1e-5)
    assert f.cache_info().misses == 1
    with pytest.raises(ValueError, match="sequence_lens"):
        f(np.array([1, 9, 2]), s, x)


def test_bits_of_numbers():
    x = np.array([0.0, -0.0, 1.5, np.inf, -1e-40], np.float32)
    f = relay.from_onnx(parsed("f (float[n] x) => (int32[n] y) { z = Neg(x)  y = BitCast <to = 6> (z) }", 26))
    check(f, (-x).view(np.int32), x)
    g = relay.from_onnx(parsed("f (uint16[n] x) => (bfloat16[n] y) { y = BitCast <to = 16> (x) }", 26))
    bits = np.array([0, 0x3F80, 0xC000], np.uint16)
    np.testing.assert_array_equal(np.asarray(g(bits)).view(np.uint16), bits)
    with pytest.raises(CompileError, match="BitCast.*float32.*int64"):
        relay.from_onnx(parsed("f (float[n] x) => (int64[n] y) { y = BitCast <to = 7> (x) }", 26))


def test_axes_of_a_named_size_that_is_1_are_dropped():
    f = relay.from_onnx(parsed("f (float[n, 3, m] x) => (float[k] y) { y = Squeeze(x) }"))
    for shape in ((2, 3, 4), (1, 3, 4), (2, 3, 1), (1, 3, 1), (5, 3, 6)):
        x = floats(*shape)
        check(f, x.squeeze(), x)
    assert f.cache_info().misses == 4  # one program for all sizes but those of 1

    @relay
    def doubled(x):
        return f(x) * 2.0

    for shape in ((2, 3, 4), (1, 3, 4)):
        x = floats(*shape)
        check(doubled, x.squeeze() * 2, x)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_images_that_keep_their_aspect(policy, mode):
    for axes, sizes in (("", "1, 1, 7, 8"), (", axes = [2, 3]", "7, 8"), (", axes = [3, 2]", "3, 2")):
        count = sizes.count(",") + 1
        head = f"f (float[1, 1, 3, 4] x) => (float[a, b, c, d] y) <int64[{count}] s = {{{sizes}}}>"
        options = f'mode = "{mode}", keep_aspect_ratio_policy = "{policy}"{axes}'
        compare(parsed(f"{head} {{ y = Resize <{options}> (x, , , s) }}"), floats(1, 1, 3, 4))


def test_nearest_elements_before_operator_set_11():
    # Of fewer elements the next one, as ONNX's own tests of operator set 10 have it; of more the one before.
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    text = "f (float[1, 1, 2, 4] x) => (float[a, b, c, d] y) <float[4] s = {1, 1, %s, %s}> { y = Resize(x, s) }"
    check(relay.from_onnx(parsed(text % (0.6, 0.6), 10)), np.array([[[[1, 3]]]], np.float32), x)
    wide = relay.from_onnx(parsed("f (float[10] x) => (float[a] y) <float[1] s = {0.6}> { y = Resize(x, s) }", 10))
    check(wide, np.array([0, 2, 4, 5, 7, 9], np.float32), np.arange(10, dtype=np.float32))
    want = np.array([1, 1, 2, 3, 3, 4], np.float32)
    check(relay.from_onnx(parsed(text % (1.0, 1.5), 10)), np.stack([want, want + 4])[None, None], x)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("size", [(4, 5), (2, 3, 4)])
@pytest.mark.sampled(4)
def test_grids_of_affine_maps(align, n, size):
    rank = len(size)
    theta, sizes = floats(n, rank, rank + 1), np.array([n, 3, *size])
    points = "float[" + ", ".join("abcde"[: rank + 2]) + "]"
    known = f"<int64[{rank + 2}] s = {{{', '.join(map(str, sizes))}}}>"
    for named in ("N", n):
        head = f"f (float[{named}, {rank}, {rank + 1}] t"
        body = f"{{ y = AffineGrid <align_corners = {align}> (t, s) }}"
        compare(parsed(f"{head}) => ({points} y) {known} {body}"), theta)
        compare(parsed(f"{head}, int64[{rank + 2}] s) => ({points} y) {body}"), theta, sizes)
    with pytest.raises(ShapeError, match="AffineGrid"):
        relay.from_onnx(parsed(f"f (float[{n + 1}, {rank}, {rank + 1}] t) => ({points} y) {known} {body}"))


def test_models_that_need_sizes_are_compiled_for_those_of_each_call():
    x = floats(4, 6)
    for body, inputs in (
        ("{ a, b = Split <axis = 0, num_outputs = 2> (x)  y = Concat <axis = 1> (b, a) }", (x,)),
        ("<int64[2] s = {2, 7}> { y = CenterCropPad(x, s) }", (x,)),
        ("{ i = NonZero(x)  j = Transpose(i)  y = GatherND(x, j) }", (x,)),
    ):
        compare(parsed(f"f (float[n, m] x) => (float[k, l] y) {body}"), *inputs)
