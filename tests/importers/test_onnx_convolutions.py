"""Convolutions of imported models: dilated ones, and images whose sizes are names."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from myia_relay import Float64, ShapeError, Tensor, grad, relay  # noqa: E402

RNG = np.random.default_rng(3)
IMAGES = ("n", 1, "h", "w")


def convolution(x_shape, w_shape, operator: str = "Conv", **attributes):
    w = RNG.standard_normal(w_shape)
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "w"], ["y"], **attributes)],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, x_shape)],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def compare(model, f, x) -> None:
    want, got = np.asarray(list(ReferenceEvaluator(model).run(None, {"x": x}))[0]), f(x)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, 1e-10, 1e-10)


DILATED = {
    "phases": ((1, 3, 24, 28), (4, 3, 3, 3), {"dilations": (2, 2), "pads": (2, 2, 2, 2)}),
    "taps": ((1, 3, 9, 11), (4, 3, 3, 3), {"dilations": (3, 2), "pads": (2, 1, 3, 2)}),
    "taps with strides": ((1, 3, 23, 20), (4, 3, 3, 3), {"dilations": (2, 3), "pads": (2, 1, 0, 3), "strides": (2, 2)}),
    "depthwise": ((2, 4, 12, 16), (4, 1, 5, 5), {"dilations": (4, 4), "pads": (8, 8, 8, 8), "group": 4}),
    "groups with strides": ((1, 4, 15, 16), (6, 2, 3, 3), {"dilations": (2, 3), "strides": (2, 1), "group": 2}),
    "all but one tap in the padding": ((1, 3, 6, 8), (4, 3, 3, 3), {"dilations": (36, 36), "pads": (36, 36, 36, 36)}),
    "taps of one side in the padding": ((1, 3, 6, 8), (4, 3, 3, 3), {"dilations": (6, 6), "pads": (6, 6, 6, 6)}),
    "sequences": ((2, 4, 50), (6, 4, 2), {"dilations": (8,), "pads": (8, 0)}),
}


@pytest.mark.parametrize("name", DILATED)
@pytest.mark.sampled(3)
def test_dilated_convolutions(name):
    x_shape, w_shape, attributes = DILATED[name]
    model = convolution(x_shape, w_shape, **attributes)
    f = relay.from_onnx(model)
    x = RNG.standard_normal(x_shape)
    compare(model, f, x)

    # A convolution is linear in the images and in the filters, so that gradients are its transposes.
    u, v = RNG.standard_normal(x_shape), RNG.standard_normal(f(x).shape)

    def loss(x):
        return np.sum(f(x) * v)

    np.testing.assert_allclose(np.sum(grad(loss)(x) * u), loss(u), 1e-9)
    np.testing.assert_allclose(np.sum(relay.grad(f, loss, (x,))["w"] * f.params["w"]), loss(x), 1e-9)


@pytest.mark.parametrize("steps", [(2, 3), (2,), (1, 2, 1)], ids=str)
def test_transposes_of_windows_side_by_side(steps):
    axes = [f"n{k}" for k in range(len(steps))]
    model = convolution(("n", 3, *axes), (3, 4, *steps), "ConvTranspose", strides=steps)
    f = relay.from_onnx(model)
    for size in [(2, 3, 5, 6, 2), (1, 3, 1, 1, 1), (0, 3, 4, 3, 2)]:
        x = RNG.standard_normal(size[: len(steps) + 2])
        w = f.params["w"]
        taps = np.einsum("ncp,cot->nopt", x.reshape(len(x), 3, np.prod(x.shape[2:], dtype=int)), w.reshape(3, 4, -1))
        y = f(x)
        assert y.shape == (len(x), 4, *(n * s for n, s in zip(x.shape[2:], steps, strict=True)))
        for place in np.ndindex(*steps):
            part = taps[..., np.ravel_multi_index(place, steps)].reshape(len(x), 4, *x.shape[2:])
            np.testing.assert_allclose(y[(..., *(slice(a, None, s) for a, s in zip(place, steps)))], part, 1e-12, 1e-12)
    x, u = RNG.standard_normal((2, 2, 3, *range(3, 3 + len(steps))))
    v = RNG.standard_normal(f(x).shape)
    np.testing.assert_allclose(np.sum(grad(lambda x: np.sum(f(x) * v))(x) * u), np.sum(f(u) * v), 1e-9)


def test_taps_in_the_padding_do_not_make_nan_of_infinities():
    model = convolution((1, 1, 4, 4), (1, 1, 3, 3), dilations=(2, 2), pads=(2, 2, 2, 2))
    x = np.zeros((1, 1, 4, 4))
    x[0, 0, 1, 1] = np.inf
    found = relay.from_onnx(model)(x)[0, 0]
    assert np.isinf(found[1::2, 1::2]).all() and not np.isnan(found).any() and (found[::2] == 0).all()


OPEN = {
    "strides": ((4, 3, 5, 3), {"pads": (2, 1, 0, 1), "strides": (2, 1)}),
    "groups": ((6, 1, 3, 3), {"pads": (1, 1, 1, 1), "group": 3}),
    "pointwise": ((5, 3, 1, 1), {}),
    "many channels": ((2, 20, 3, 3), {"pads": (1, 1, 1, 1), "strides": (1, 2)}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", OPEN)
def test_one_compilation_serves_images_of_all_sizes(name):
    w_shape, attributes = OPEN[name]
    channels = w_shape[1] * attributes.get("group", 1)
    model = convolution(("n", channels, "h", "w"), w_shape, **attributes)
    f = relay.from_onnx(model)

    def loss(x):
        return np.sum(f(x) ** 2) / 2

    loss.__annotations__["x"] = Tensor[Float64, ("n", channels, "h", "w")]

    derivative = grad(loss)
    for shape in ((1, 5, 6), (2, 7, 40), (0, 5, 5), (1, 33, 9)):
        x = RNG.standard_normal((shape[0], channels, *shape[1:]))
        compare(model, f, x)
        u = RNG.standard_normal(x.shape)
        np.testing.assert_allclose(np.sum(derivative(x) * u), np.sum(f(x) * f(u)), 1e-9)
        gradient = relay.grad(f, loss, (x,))["w"]
        np.testing.assert_allclose(np.sum(gradient * f.params["w"]), np.sum(f(x) ** 2), 1e-9)
    assert f.cache_info().misses == 1 and derivative.cache_info().misses == 1


def test_a_window_that_does_not_fit_into_an_image_of_open_size_is_refused():
    f = relay.from_onnx(convolution(("n", 1, "h", "w"), (1, 1, 3, 3), pads=(0, 1, 0, 1)))
    f(np.ones((1, 1, 3, 1)))
    with pytest.raises(ShapeError, match=r"a window of \(3, 3\) does not fit into an image of \(2, 4\)"):
        f(np.ones((1, 1, 2, 4)))

    @relay
    def convolved(x: Tensor[Float64, IMAGES]):
        return relay.conv2d(x, np.ones((1, 1, 3, 3)))

    for run in (convolved, convolved.interpret):
        assert run(np.ones((1, 1, 3, 5))).shape == (1, 1, 1, 3)
        with pytest.raises(ShapeError, match="a window of 3 does not fit into an image of 2"):
            run(np.ones((1, 1, 2, 4)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_pooling_of_images_of_all_sizes(operator, ceil_mode):
    node = helper.make_node(
        operator, ["x"], ["y"], kernel_shape=(3, 2), strides=(2, 2), pads=(1, 0, 1, 0), ceil_mode=ceil_mode
    )
    graph = helper.make_graph(
        [node],
        "pooling",
        [helper.make_tensor_value_info("x", TensorProto.DOUBLE, ("n", 2, "h", "w"))],
        [helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    f = relay.from_onnx(model)
    for shape in ((1, 2, 7, 6), (2, 2, 6, 9), (1, 2, 3, 2), (3, 2, 4, 13)):
        compare(model, f, RNG.standard_normal(shape))
    assert f.cache_info().misses == 1
