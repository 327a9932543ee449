"""The operators of the `relay` namespace against plain loops and formulas."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.model import layers  # noqa: F401  what layers mean is declared there
from myia_relay.prims.api.nn_api import NN_OPS
from myia_relay.prims.ops import nn
from myia_relay.utils.errors import CompileError, ShapeError

from .staged import run

RNG = np.random.default_rng(9)
IMAGES = RNG.normal(size=(2, 3, 7, 6))
FILTERS = RNG.normal(size=(4, 3, 3, 2))
BIAS = RNG.normal(size=4)


def windows(x, kernel, strides, padding, value=0.0):
    x = np.pad(x, ((0, 0), (0, 0), *padding), constant_values=value)
    (kh, kw), (sh, sw) = kernel, strides
    for i in range((x.shape[2] - kh) // sh + 1):
        for j in range((x.shape[3] - kw) // sw + 1):
            yield i, j, x[:, :, i * sh : i * sh + kh, j * sw : j * sw + kw]


def naive_conv(x, w, strides, padding):
    found = {(i, j): np.einsum("nchw,ochw->no", v, w) for i, j, v in windows(x, w.shape[2:], strides, padding)}
    rows, columns = (max(k) + 1 for k in zip(*found, strict=True))
    return np.stack([np.stack([found[i, j] for j in range(columns)], -1) for i in range(rows)], -2)


@pytest.mark.parametrize(
    "strides, padding, resolved",
    [
        (1, "valid", ((0, 0), (0, 0))),
        ([1, 2, 2, 1], 1, ((1, 1), (1, 1))),
        (1, "same", ((1, 1), (0, 1))),
        ([2, 3], "same", ((1, 1), (0, 0))),
        (1, (2, 0), ((2, 2), (0, 0))),
    ],
)
def test_conv2d(strides, padding, resolved):
    steps = (strides, strides) if isinstance(strides, int) else tuple(strides[-3:-1] if len(strides) == 4 else strides)
    wanted = naive_conv(IMAGES, FILTERS, steps, resolved)
    attrs = {"strides": strides, "padding": padding}
    np.testing.assert_allclose(run(NN_OPS["conv2d"], IMAGES, FILTERS, **attrs), wanted, rtol=1e-12, atol=1e-12)
    single = run(NN_OPS["conv2d"], IMAGES[0], FILTERS, BIAS, **attrs)
    np.testing.assert_allclose(single, wanted[0] + BIAS[:, None, None], rtol=1e-12, atol=1e-12)


def test_groups_do_not_see_each_other():
    x, w = RNG.normal(size=(2, 4, 5, 5)), RNG.normal(size=(6, 2, 3, 3))
    halves = [naive_conv(x[:, 2 * g : 2 * g + 2], w[3 * g : 3 * g + 3], (1, 1), ((0, 0), (0, 0))) for g in (0, 1)]
    np.testing.assert_allclose(run(NN_OPS["conv2d"], x, w, groups=2), np.concatenate(halves, 1), rtol=1e-12, atol=1e-12)


def test_float32_stays_float32():
    out = run(NN_OPS["conv2d"], IMAGES.astype(np.float32), FILTERS.astype(np.float32), BIAS.astype(np.float32))
    assert out.dtype == np.float32


@pytest.mark.parametrize("ksize", [2, [2, 2], [1, 2, 2, 1]])
def test_pooling(ksize):
    plain = ((0, 0), (0, 0))
    for name, reduce in (("max_pool", np.max), ("avg_pool", np.mean)):
        wanted = {(i, j): reduce(v, (2, 3)) for i, j, v in windows(IMAGES, (2, 2), (2, 2), plain)}
        out = run(NN_OPS[name], IMAGES, ksize=ksize)
        assert out.shape == (2, 3, 3, 3)
        for (i, j), value in wanted.items():
            np.testing.assert_allclose(out[:, :, i, j], value, rtol=1e-12)
    assert run(NN_OPS["max_pool"], IMAGES[0], ksize=3, strides=1, padding="same").shape == (3, 7, 6)


def test_the_first_maximum_gets_the_cotangent():
    x = np.array([[[[1.0, 1.0], [1.0, 0.0]]]])
    grad = nn.max_pool_grad(x, np.array([[[[5.0]]]]), ksize=(2, 2), strides=(2, 2))
    np.testing.assert_array_equal(grad, [[[[5.0, 0.0], [0.0, 0.0]]]])


def test_losses_and_activations():
    x, y = RNG.normal(size=(4, 5)) * 50, np.eye(5)[[0, 3, 3, 1]]
    logs = x - np.max(x, 1, keepdims=True)
    logs = logs - np.log(np.sum(np.exp(logs), 1, keepdims=True))
    np.testing.assert_allclose(run(NN_OPS["log_softmax"], x), logs, rtol=1e-12)
    np.testing.assert_allclose(run(NN_OPS["softmax"], x), np.exp(logs), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(run(NN_OPS["softmax_cross_entropy"], x, y), -(y * logs).sum(1), rtol=1e-12)
    labels = np.array([0, 3, 3, 1])
    np.testing.assert_allclose(run(NN_OPS["softmax_cross_entropy"], x, labels), -(y * logs).sum(1), rtol=1e-12)
    one = run(NN_OPS["softmax_cross_entropy"], x[0], y[0])
    assert isinstance(one, np.float64) and one == pytest.approx(-(y[0] * logs[0]).sum())
    np.testing.assert_allclose(run(NN_OPS["logsumexp"], x, axis=1), np.log(np.sum(np.exp(x), 1)), rtol=1e-12)
    assert run(NN_OPS["logsumexp"], np.array([-np.inf, -np.inf])) == -np.inf
    assert run(NN_OPS["logsumexp"], np.array([1000.0, 1000.0])) == pytest.approx(1000 + np.log(2))
    np.testing.assert_array_equal(run(NN_OPS["relu"], np.array([-1.0, 0.0, 2.0, np.nan])), [0, 0, 2, np.nan])
    np.testing.assert_allclose(run(NN_OPS["sigmoid"], np.array([-800.0, 0.0, 800.0])), [0, 0.5, 1])
    np.testing.assert_allclose(run(NN_OPS["softplus"], np.array([-800.0, 0.0, 800.0])), [0, np.log(2), 800])


@pytest.mark.parametrize("label", [5, -1, -100, 2**40])
@pytest.mark.parametrize("name", ["softmax_cross_entropy", "nll_loss"])
def test_a_label_that_is_no_class(name, label):
    for scores, labels in ((np.ones((4, 5)), np.array([0, label, 3, 1])), (np.ones(5), np.int64(label))):
        with pytest.raises(IndexError, match=f"relay.{name}: {label} is no class; they are 0 to 4"):
            run(NN_OPS[name], scores, labels)
    assert run(NN_OPS["softmax_cross_entropy"], np.ones((0, 5)), np.zeros(0, int)).shape == (0,)


def test_dense_layers():
    x, w, b = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=5)
    np.testing.assert_allclose(run(NN_OPS["linear"], x, w, b), x @ w.T + b, rtol=1e-12)
    np.testing.assert_allclose(run(NN_OPS["linear"], x[0], w, b), w @ x[0] + b, rtol=1e-12)
    np.testing.assert_allclose(run(NN_OPS["linear"], x[None], w), (x @ w.T)[None], rtol=1e-12)
    assert run(NN_OPS["flatten_layer"], IMAGES).shape == (2, 126)
    assert run(NN_OPS["flatten_layer"], IMAGES[0]).shape == (126,)
    assert run(NN_OPS["argmax"], x) == np.argmax(x)
    np.testing.assert_array_equal(
        run(NN_OPS["one_hot"], np.array([1, 0]), num_classes=3), np.eye(3, dtype="f4")[[1, 0]]
    )


def test_errors_teach():
    with pytest.raises(ShapeError, match="relay.flatten_layer first"):
        run(NN_OPS["linear"], IMAGES, FILTERS[0, 0])
    with pytest.raises(ShapeError, match=r"has 3 channels.*take 2"):
        run(NN_OPS["conv2d"], IMAGES, RNG.normal(size=(4, 2, 3, 3)))
    with pytest.raises(ShapeError, match=r"\(C, H, W\) or a batch"):
        run(NN_OPS["conv2d"], IMAGES[0, 0], FILTERS)
    with pytest.raises(ShapeError, match="padding='same'"):
        run(NN_OPS["conv2d"], IMAGES[:, :, :2, :2], FILTERS)
    with pytest.raises(ShapeError, match="must be 1"):
        run(NN_OPS["max_pool"], IMAGES, ksize=[2, 2, 2, 1])
    with pytest.raises(CompileError, match="'valid', 'same' or ints"):
        run(NN_OPS["conv2d"], IMAGES, FILTERS, padding="full")
    with pytest.raises(ShapeError, match="one_hot"):
        run(NN_OPS["softmax_cross_entropy"], np.ones((2, 3)), np.ones((2, 4)))
