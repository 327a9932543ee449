"""Layers and functions of networks: values against plain NumPy formulas, gradients, batches, parameters, refusals.

Values are looked at in the interpreter; `tests/unit/test_names.py` compares the executors for every operator.
"""

from __future__ import annotations

import importlib
import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from myia_relay import Float, Float32, Float64, Int, Tensor, relay, relay_model
from myia_relay.model.layers import declaration
from myia_relay.utils.errors import CompileError, InternalError, ShapeError, TypeError_, ValueError_

RNG = np.random.default_rng(11)
POSITIONS, OTHERS = Tensor[Float64, ("n", 4)], Tensor[Float64, ("m", 4)]


def run(function, *args, **kwargs):
    """A call in the interpreter."""

    def call(*args):
        return function(*args, **kwargs)

    return relay(call, executor="interpreter")(*args)


def normal(*shape):
    return RNG.standard_normal(shape)


def summed(function, *options):
    """The sum of what a function makes of its arguments, made crooked."""
    return lambda *args: np.sum(np.sin(function(*args, *options)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


X = normal(4, 6) * 2

FORMULAS = {
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "silu": lambda x: x * sigmoid(x),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "glu": lambda x: x[:, :3] * sigmoid(x[:, 3:]),
    "gelu": lambda x: x * np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))))(x),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FORMULAS)
def test_activations(name):
    function = getattr(relay, name)
    np.testing.assert_allclose(run(function, X), FORMULAS[name](X), rtol=1e-12)
    assert run(function, X.astype(np.float32)).dtype == np.float32
    relay.check_grads(relay(lambda x: np.sum(function(x) ** 2), executor="interpreter"), (X,), order=2)
    vmapped = relay.vmap(relay(lambda x: function(x), executor="interpreter"))(X)
    np.testing.assert_allclose(vmapped, FORMULAS[name](X), rtol=1e-12)


def test_activations_of_large_numbers_have_slopes():
    far = np.array([-1000.0, 1000.0])
    for name in ("elu", "selu", "silu", "mish", "hard_swish"):
        slopes = relay.grad(relay(summed(getattr(relay, name)), executor="interpreter"))(far)
        assert np.isfinite(slopes).all() and abs(slopes[1]) >= 0.1, name


def test_options_of_activations():
    np.testing.assert_allclose(run(relay.leaky_relu, X, 0.2), np.where(X > 0, X, 0.2 * X))
    np.testing.assert_allclose(run(relay.elu, X, alpha=2.0), np.where(X > 0, X, 2 * np.expm1(X)))
    tanh = 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(run(relay.gelu, X, approximate=True), tanh, rtol=1e-12)
    np.testing.assert_allclose(run(relay.glu, X, axis=0), X[:2] * sigmoid(X[2:]), rtol=1e-12)
    with pytest.raises(ShapeError, match="halves an axis"):
        run(relay.glu, X[:3], axis=0)


Y = normal(4, 6)
P = np.abs(normal(4, 6))
P /= P.sum(-1, keepdims=True)
LOGS = np.log(np.abs(Y) / np.abs(Y).sum(-1, keepdims=True))

LOSSES = {
    "mse_loss": ((X, Y), lambda x, y: (x - y) ** 2),
    "l1_loss": ((X, Y), lambda x, y: np.abs(x - y)),
    "huber_loss": ((X, Y), lambda x, y: np.where(abs(x - y) <= 1, (x - y) ** 2 / 2, abs(x - y) - 0.5)),
    "sigmoid_cross_entropy": ((X, P), lambda z, y: -(y * np.log(sigmoid(z)) + (1 - y) * np.log(1 - sigmoid(z)))),
    "kl_divergence": ((LOGS, P), lambda q, p: p * (np.log(p) - q)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name):
    args, formula = LOSSES[name]
    function, each = getattr(relay, name), formula(*args)
    np.testing.assert_allclose(run(function, *args), each.mean(), rtol=1e-12)
    np.testing.assert_allclose(run(function, *args, reduction="sum"), each.sum(), rtol=1e-12)
    np.testing.assert_allclose(run(function, *args, reduction="none"), each, rtol=1e-11)
    relay.check_grads(relay(lambda x, y: function(x, y) ** 2, executor="interpreter"), args, order=2)
    mean = relay.batch_mean(relay(lambda x, y: function(x, y), executor="interpreter"))(*args)
    np.testing.assert_allclose(mean, each.mean(), rtol=1e-12)
    with pytest.raises(ValueError_, match="it is 'mean', 'sum' or 'none'"):
        run(function, *args, reduction="median")
    with pytest.raises(ShapeError, match="differ"):
        run(function, args[0], args[1][:1])


def test_more_losses():
    labels = np.array([0, 5, 2, 2])
    np.testing.assert_allclose(run(relay.nll_loss, LOGS, labels), -LOGS[np.arange(4), labels].mean(), rtol=1e-12)
    one = LOGS[0].copy()
    one[1] = -np.inf
    assert run(relay.nll_loss, one, np.int64(3)) == pytest.approx(-one[3])  # other classes may be impossible
    with pytest.raises(TypeError_, match="integer labels"):
        run(relay.nll_loss, LOGS, labels.astype(float))
    with pytest.raises(ShapeError, match=r"need labels of shape \(4,\)"):
        run(relay.nll_loss, LOGS, labels[:3])
    certain = np.array([0.0, 1.0])
    logs = np.log([0.25, 0.75])
    assert run(relay.kl_divergence, logs, certain, reduction="sum") == pytest.approx(-np.log(0.75))
    np.testing.assert_allclose(
        run(relay.kl_divergence, LOGS, P, reduction="batchmean"), (P * (np.log(P) - LOGS)).sum() / 4, rtol=1e-12
    )
    assert run(relay.sigmoid_cross_entropy, np.array([1000.0, -1000.0]), np.array([1, 0])) == 0
    np.testing.assert_allclose(
        run(relay.cosine_similarity, X, Y),
        (X * Y).sum(-1) / (np.linalg.norm(X, axis=-1) * np.linalg.norm(Y, axis=-1)),
        rtol=1e-12,
    )
    assert run(relay.cosine_similarity, np.zeros(3), np.ones(3)) == 0


def test_top_k():
    x = np.array([[3.0, 1.0, 3.0, 2.0], [0.0, np.nan, -np.inf, np.inf]])
    values, places = run(relay.top_k, x, k=2)
    np.testing.assert_array_equal(values, [[3, 3], [np.nan, np.inf]])
    np.testing.assert_array_equal(places, [[0, 2], [1, 3]])
    values, places = run(relay.top_k, x[:1].T.astype(int), k=3, axis=0)
    assert values.dtype == np.int64 and values[:, 0].tolist() == [3, 3, 2] and places[:, 0].tolist() == [0, 2, 3]
    with pytest.raises(ValueError, match="k=5 of an axis of 4"):
        run(relay.top_k, x, k=5)
    slopes = relay.grad(relay(lambda x: np.sum(relay.top_k(x, 2)[0] ** 2), executor="interpreter"))(X[0])
    expected = np.where(np.isin(X[0], np.sort(X[0])[-2:]), 2 * X[0], 0)
    np.testing.assert_allclose(slopes, expected)


# Layers with weights that are given.


def conv(x, w, stride=1, pad=0, dilation=1, groups=1):
    """A convolution over any number of axes, by loops: x (N, C, ...), w (O, C / groups, ...)."""
    axes = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(pad, pad)] * axes)
    reach = [(k - 1) * dilation + 1 for k in w.shape[2:]]
    out = [(n - r) // stride + 1 for n, r in zip(x.shape[2:], reach)]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    per, each = x.shape[1] // groups, w.shape[0] // groups
    for place in np.ndindex(*out):
        window = tuple(slice(p * stride, p * stride + r, dilation) for p, r in zip(place, reach))
        for g in range(groups):
            part = x[(slice(None), slice(g * per, (g + 1) * per), *window)].reshape(x.shape[0], -1)
            filters = w[g * each : (g + 1) * each].reshape(each, -1)
            y[(slice(None), slice(g * each, (g + 1) * each), *place)] = part @ filters.T
    return y


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "pad": 1}, {"dilation": 2, "pad": 2}, {"groups": 2}, {"groups": 4, "stride": 2}]
)
@pytest.mark.sampled(6)
def test_convolutions(axes, options):
    layer = {1: relay.conv1d, 2: relay.conv2d, 3: relay.conv3d}[axes]
    groups = options.get("groups", 1)
    x, w, c = normal(2, 4, *(7, 6, 5)[:axes]), normal(8, 4 // groups, *(3, 2, 2)[:axes]), normal(8)
    given = {{"stride": "strides", "pad": "padding"}.get(k, k): v for k, v in options.items()}
    wanted = conv(x, w, **options) + c.reshape(8, *(1,) * axes)
    np.testing.assert_allclose(run(layer, x, w, c, **given), wanted, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(run(layer, x[0], w, c, **given), wanted[0], rtol=1e-11, atol=1e-12)
    if axes != 2 or "dilation" in options:
        square = relay(lambda x, w: np.mean(layer(x, w, **given) ** 2), executor="interpreter")
        relay.check_grads(square, (x[:1], w), order=1)
        each = relay.vmap(relay(lambda x, w: layer(x, w, **given), executor="interpreter"), (0, None))(x, w)
        np.testing.assert_allclose(each, wanted - c.reshape(8, *(1,) * axes), rtol=1e-11, atol=1e-12)


def test_padding_of_other_numbers_of_axes():
    x, w = normal(1, 2, 9), normal(3, 2, 4)
    assert run(relay.conv1d, x, w, padding="same", strides=2).shape == (1, 3, 5)
    np.testing.assert_allclose(
        run(relay.conv1d, x, w, padding=((3, 0),)), conv(np.pad(x, [(0, 0), (0, 0), (3, 0)]), w), rtol=1e-12
    )
    volume, cubes = normal(1, 2, 4, 5, 6), normal(3, 2, 3, 3, 3)
    assert run(relay.conv3d, volume, cubes, padding="same").shape == (1, 3, 4, 5, 6)
    with pytest.raises(ShapeError, match="one int for each axis"):
        run(relay.conv3d, volume, cubes, padding=(1, 1))
    with pytest.raises(ShapeError, match="window 5 deep does not fit"):
        run(relay.conv3d, volume, cubes, dilation=2)


@pytest.mark.parametrize("stride, pad, extra, dilation, groups", [(1, 0, 0, 1, 1), (2, 1, 1, 1, 1), (3, 1, 0, 2, 2)])
def test_the_transpose_of_a_convolution(stride, pad, extra, dilation, groups):
    x, w, c = normal(2, 4, 5, 4), normal(4, 6 // groups, 3, 2), normal(6)
    options = {"strides": stride, "padding": pad, "output_padding": extra, "dilation": dilation, "groups": groups}
    y = run(relay.conv_transpose2d, x, w, c, **options) - c[:, None, None]
    sizes = [(n - 1) * stride - 2 * pad + dilation * (k - 1) + extra + 1 for n, k in zip((5, 4), (3, 2))]
    assert y.shape == (2, 6, *sizes)
    # <x, conv(g)> = <transpose(x), g>
    g = normal(*y.shape)
    there = conv(g, w, stride, pad, dilation, groups)
    assert np.sum(y * g) == pytest.approx(np.sum(x * there[:, :, :5, :4]), rel=1e-10)
    relay.check_grads(
        relay(lambda x, w: np.sum(relay.conv_transpose2d(x, w, **options) ** 2), executor="interpreter"),
        (x, w),
        order=1,
    )


def test_the_transpose_of_the_same_size():
    x = normal(2, 5, 4)
    for size, stride in ((3, 2), (4, 2), (2, 3), (3, 1)):
        w = normal(2, 3, size, size)
        assert run(relay.conv_transpose2d, x, w, strides=stride, padding="same").shape == (3, 5 * stride, 4 * stride)
    with pytest.raises(TypeError_, match="below the strides"):
        run(relay.conv_transpose2d, x, w, strides=2, output_padding=2)
    with pytest.raises(ShapeError, match="leaves nothing"):
        run(relay.conv_transpose2d, x, w, padding=5)


def test_images():
    x = normal(2, 3, 7, 5)
    pooled = run(relay.adaptive_avg_pool, x, size=(3, 2))
    for i, (top, bottom) in enumerate([(0, 3), (2, 5), (4, 7)]):
        for j, (left, right) in enumerate([(0, 3), (2, 5)]):
            np.testing.assert_allclose(pooled[:, :, i, j], x[:, :, top:bottom, left:right].mean((2, 3)), rtol=1e-12)
    np.testing.assert_allclose(run(relay.adaptive_avg_pool, x, size=1)[..., 0, 0], x.mean((2, 3)), rtol=1e-12)
    np.testing.assert_allclose(run(relay.global_avg_pool, x), x.mean((2, 3)), rtol=1e-12)
    np.testing.assert_allclose(run(relay.global_avg_pool, x[0]), x[0].mean((1, 2)), rtol=1e-12)
    np.testing.assert_array_equal(run(relay.upsample, x, scale=(2, 3)), x.repeat(2, 2).repeat(3, 3))
    padded = run(relay.pad, x, padding=((1, 0), (2, 3)), value=7.0)
    np.testing.assert_array_equal(padded, np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 3)], constant_values=7))
    with pytest.raises(ValueError_, match="'nearest' or 'bilinear'"):
        run(relay.upsample, x, mode="cubic")
    for function in (
        lambda x: relay.adaptive_avg_pool(x, (3, 2)),
        lambda x: relay.upsample(x, 2, mode="bilinear"),
        lambda x: relay.upsample(x, 3),
        lambda x: relay.pad(x, 2),
    ):
        relay.check_grads(relay(summed(function), executor="interpreter"), (x[:1],), order=1)


def test_bilinear_interpolation():
    x = np.array([[[0.0, 1.0], [2.0, 3.0]]])
    between = np.array([0, 0.25, 0.75, 1])
    np.testing.assert_allclose(run(relay.upsample, x, mode="bilinear")[0], 2 * between[:, None] + between[None, :])


def test_normalisations():
    x, w, c = normal(2, 4, 3, 5), normal(5), normal(5)

    def standard(x, axes):
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    np.testing.assert_allclose(run(relay.layer_norm, x, w, c), standard(x, -1) * w + c, rtol=1e-10)
    wide, shift = normal(4, 5), normal(4, 5)
    spread = [v.reshape(4, 1, 5) for v in (wide, shift)]
    np.testing.assert_allclose(
        run(relay.layer_norm, x, wide, shift, axes=(3, 1)), standard(x, (1, 3)) * spread[0] + spread[1], rtol=1e-10
    )
    root = np.sqrt((x**2).mean(-1, keepdims=True) + np.finfo(np.float64).eps)
    np.testing.assert_allclose(run(relay.rms_norm, x, w), x / root * w, rtol=1e-12)
    gain, bias = normal(4), normal(4)
    halves = standard(x.reshape(2, 2, -1), 2).reshape(x.shape) * gain[:, None, None] + bias[:, None, None]
    np.testing.assert_allclose(run(relay.group_norm, x, gain, bias, num_groups=2), halves, rtol=1e-10)
    np.testing.assert_allclose(run(relay.group_norm, x[0], gain, bias, num_groups=2), halves[0], rtol=1e-10)
    for function, args in (
        (relay.layer_norm, (x, w, c)),
        (relay.rms_norm, (x, w)),
        (lambda x, w, c: relay.group_norm(x, w, c, num_groups=2), (x, gain, bias)),
    ):
        wrt = tuple(range(len(args)))
        total = relay(summed(function), executor="interpreter")
        slopes = relay.grad(total, wrt)(*args)
        for k in wrt:  # by a central difference along one direction
            direction, h = normal(*args[k].shape), 1e-6
            ends = [total(*[a + s * h * direction if i == k else a for i, a in enumerate(args)]) for s in (1, -1)]
            assert np.sum(slopes[k] * direction) == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-7)
    assert run(relay.layer_norm, x.astype(np.float16), w, c).dtype == np.float16
    with pytest.raises(ShapeError, match=r"the weight has shape \(4,\), and \(5,\) is needed"):
        run(relay.layer_norm, x, gain)
    with pytest.raises(ShapeError, match="num_groups=3"):
        run(relay.group_norm, x, gain, bias, num_groups=3)


def test_linear_along_the_last_axis_and_embedding():
    x, w, c = normal(2, 3, 4, 5), normal(6, 5), normal(6)
    np.testing.assert_allclose(run(relay.linear, x, w, c), x @ w.T + c, rtol=1e-12)
    ids = np.array([[1, 5], [0, -1]])
    np.testing.assert_array_equal(run(relay.embedding, ids, w), w[ids])
    np.testing.assert_array_equal(run(relay.embedding, 3, w), w[3])
    with pytest.raises(IndexError):
        run(relay.embedding, np.array([6]), w)
    slopes = relay.grad(relay(lambda w: np.sum(relay.embedding(ids, w) ** 2), executor="interpreter"))(w)
    expected = np.zeros_like(w)
    np.add.at(expected, ids, 2 * w[ids])
    np.testing.assert_allclose(slopes, expected)


# Recurrent layers, by PyTorch's formulas.


def rnn_step(x, h, w):
    return np.tanh(x @ w[0].T + w[2] + h @ w[1].T + w[3])


def gru_step(x, h, w):
    a, u = x @ w[0].T + w[2], h @ w[1].T + w[3]
    n = h.shape[-1]
    r, z = sigmoid(a[..., :n] + u[..., :n]), sigmoid(a[..., n : 2 * n] + u[..., n : 2 * n])
    new = np.tanh(a[..., 2 * n :] + r * u[..., 2 * n :])
    return (1 - z) * new + z * h


def lstm_step(x, state, w):
    h, c = state
    i, f, g, o = np.split(x @ w[0].T + w[2] + h @ w[1].T + w[3], 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


CELLS = {"rnn": (1, rnn_step), "gru": (3, gru_step), "lstm": (4, lstm_step)}


def recurrent_weights(gates, inputs, hidden, layers, both):
    parts = {}
    for k in range(layers):
        for end in ("", "_reverse") if both else ("",):
            parts[f"weight_ih_l{k}{end}"] = normal(gates * hidden, inputs)
            parts[f"weight_hh_l{k}{end}"] = normal(gates * hidden, hidden)
            parts[f"bias_ih_l{k}{end}"], parts[f"bias_hh_l{k}{end}"] = normal(gates * hidden), normal(gates * hidden)
        inputs = hidden * (1 + both)
    return parts


def recurrent(name, xs, weights, layers, both, state):
    step, values, last = CELLS[name][1], list(weights.values()), []
    for k in range(layers):
        outputs = []
        for d in range(1 + both):
            place = k * (1 + both) + d
            h = tuple(s[place] for s in state) if name == "lstm" else state[place]
            ys = []
            for x in xs[::-1] if d else xs:
                h = step(x, h, values[4 * place : 4 * place + 4])
                ys.append(h[0] if name == "lstm" else h)
            outputs.append(np.stack(ys[::-1] if d else ys))
            last.append(h)
        xs = np.concatenate(outputs, -1)
    if name == "lstm":
        return xs, tuple(np.stack([s[i] for s in last]) for i in (0, 1))
    return xs, np.stack(last)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("layers, both, batch", [(1, False, ()), (2, True, (2,))])
@pytest.mark.sampled(2)
def test_recurrent_layers(name, layers, both, batch):
    gates, _ = CELLS[name]
    xs = normal(5, *batch, 3)
    weights = recurrent_weights(gates, 3, 4, layers, both)
    layer, options = getattr(relay, name), {"num_layers": layers, "bidirectional": both}
    first = normal(layers * (1 + both), *batch, 4)
    for state in (None, (first, -first) if name == "lstm" else first):
        start = state if state is not None else np.zeros_like(first)
        start = start if state is not None or name != "lstm" else (start, start)
        given = {} if state is None else {"state": state}
        ys, last = run(layer, xs, weights, **options, **given)
        wanted, end = recurrent(name, xs, weights, layers, both, start)
        np.testing.assert_allclose(ys, wanted, rtol=1e-10)
        for one, other in zip(last if name == "lstm" else [last], end if name == "lstm" else [end]):
            np.testing.assert_allclose(one, other, rtol=1e-10)
    if not batch:
        loss = relay(lambda xs, w: np.sum(layer(xs, w, **options)[0] ** 2), executor="interpreter")
        relay.check_grads(loss, (xs, weights), order=1)
        many = normal(3, 5, 3)
        each = relay.vmap(relay(lambda xs, w: layer(xs, w)[0], executor="interpreter"), (0, None))(many, weights)
        np.testing.assert_allclose(each[2], run(layer, many[2], weights)[0], rtol=1e-10)


@pytest.mark.parametrize("name", CELLS)
def test_cells(name):
    gates, step = CELLS[name]
    x, h, w = (
        normal(2, 3),
        normal(2, 4),
        [normal(gates * 4, 3), normal(gates * 4, 4), normal(gates * 4), normal(gates * 4)],
    )
    state = (h, -h) if name == "lstm" else h
    out = run(getattr(relay, f"{name}_cell"), x, state, *w)
    for one, other in zip(np.atleast_2d(out), np.atleast_2d(step(x, state, w))):
        np.testing.assert_allclose(one, other, rtol=1e-10)


# Attention.


def attend(q, k, v, seen):
    scores = np.where(seen, q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def test_attention():
    q, k, v = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6)
    np.testing.assert_allclose(run(relay.attention, q, k, v), attend(q, k, v, True), rtol=1e-11)
    causal = np.tri(3, 5, dtype=bool)
    np.testing.assert_allclose(run(relay.attention, q, k, v, causal=True), attend(q, k, v, causal), rtol=1e-11)
    mask = RNG.random((2, 3, 5)) < 0.7
    mask[..., 0] = True
    np.testing.assert_allclose(run(relay.attention, q, k, v, mask=mask), attend(q, k, v, mask), rtol=1e-11)
    bias = np.where(mask, 0, -np.inf)
    np.testing.assert_allclose(run(relay.attention, q, k, v, mask=bias), attend(q, k, v, mask), rtol=1e-11)
    relay.check_grads(
        relay(lambda q, k, v: np.sum(relay.attention(q, k, v, causal=True) ** 2), executor="interpreter"),
        (q, k, v),
        order=2,
    )
    with pytest.raises(ValueError, match="the same last axis"):
        run(relay.attention, q, k[..., :3], v)


def test_heads():
    x, w, o, bw, bo = normal(2, 5, 6), normal(18, 6), normal(6, 6), normal(18), normal(6)
    q, k, v = (np.swapaxes(a.reshape(2, 5, 3, 2), 1, 2) for a in np.split(x @ w.T + bw, 3, -1))
    for causal, seen in ((False, True), (True, np.tri(5, dtype=bool))):
        wanted = np.swapaxes(attend(q, k, v, seen), 1, 2).reshape(2, 5, 6) @ o.T + bo
        args = (x, w, o, bw, bo)
        np.testing.assert_allclose(
            run(relay.multi_head_attention, *args, num_heads=3, causal=causal), wanted, rtol=1e-10
        )
        one = run(relay.multi_head_attention, x[1], w, o, bw, bo, num_heads=3, causal=causal)
        np.testing.assert_allclose(one, wanted[1], rtol=1e-10)


@pytest.mark.parametrize("executor", ["interpreter", "native"])
def test_generation_with_a_cache_is_attention_of_the_whole(executor):
    x, w, o = normal(6, 4), normal(12, 4), normal(4, 4)

    @relay(executor=executor)
    def generate(x, w, o):
        cache = (np.zeros((2, 8, 2)), np.zeros((2, 8, 2)), 0)
        ys = np.zeros((6, 4))
        for i in range(6):
            y, cache = relay.multi_head_attention(x[i : i + 1], w, o, num_heads=2, causal=True, cache=cache)
            ys[i] = y[0]
        return ys

    whole = run(relay.multi_head_attention, x, w, o, num_heads=2, causal=True)
    np.testing.assert_allclose(generate(x, w, o), whole, rtol=1e-10)

    def full(x, w, o):
        cache = (np.zeros((2, 8, 2)), np.zeros((2, 8, 2)), 3)
        return relay.multi_head_attention(x, w, o, num_heads=2, causal=True, cache=cache)

    with pytest.raises(IndexError, match="cache of multi_head_attention is full"):
        relay(full, executor=executor)(x, w, o)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_attention_of_a_symbolic_number_of_positions(executor):
    x, w, o = normal(6, 4), normal(12, 4), normal(4, 4)

    @relay(executor=executor)
    def seen(x: POSITIONS, y: OTHERS, w, o):
        return relay.multi_head_attention(x, w, o, num_heads=2, causal=True), relay.attention(x, y, y)

    for n, m in ((6, 6), (3, 5), (1, 2)):
        whole, crossed = seen(x[:n], x[:m], w, o)
        wanted = run(relay.multi_head_attention, x[:n], w, o, num_heads=2, causal=True)
        np.testing.assert_allclose(whole, wanted, rtol=1e-10)
        np.testing.assert_allclose(crossed, attend(x[:n], x[:m], x[:m], True), rtol=1e-10)
    assert seen.cache_info().misses == 1


# In models.


@relay_model
def everything(x: Tensor[Float, (2, 8, 8)], ids: Tensor[Int, 3]):
    h = relay.conv2d(x, 4, 3, padding=1, groups=2, no_bias=True)
    h = relay.silu(relay.group_norm(h, 2))
    h = relay.conv_transpose2d(h, 3, ksize=4, strides=2, padding=1)
    row = relay.conv1d(relay.upsample(h)[:, 0], num_filter=2, ksize=5, dilation=2)
    cube = relay.conv3d(np.stack((h, h, h), axis=1), 2)
    rows = relay.embedding(ids, 7, 6)
    rows = relay.rms_norm(rows + relay.multi_head_attention(relay.layer_norm(rows), 2, causal=True))
    ys, _ = relay.gru(rows, 5, num_layers=2, bidirectional=True)
    h1, _ = relay.lstm_cell(ys[0], (ys[1, :5], ys[2, :5]))
    scale = relay.parameter("scale", (5,), init="ones")
    shift = relay.parameter("scale", 5, Float32, init=relay.init.uniform(2.0, 3.0))
    return relay.linear(h1 * scale + shift, 2) + np.mean(row) + np.mean(cube)


@pytest.fixture(scope="module")
def model():
    return relay.create_model(everything, seed=3)


def test_names_and_shapes_of_parameters(model):
    shapes = {n: p.shape for n, p in model.params.items()}
    some = {
        "conv2d_0.weight": (4, 1, 3, 3),
        "group_norm_0.weight": (4,),
        "conv_transpose2d_0.weight": (4, 3, 4, 4),
        "conv1d_0.weight": (2, 3, 5),
        "conv3d_0.weight": (2, 3, 3, 3, 3),
        "embedding_0.weight": (7, 6),
        "layer_norm_0.bias": (6,),
        "multi_head_attention_0.in_proj_weight": (18, 6),
        "multi_head_attention_0.out_proj_bias": (6,),
        "rms_norm_0.weight": (6,),
        "gru_0.weight_ih_l1_reverse": (15, 10),
        "lstm_cell_0.weight_hh": (20, 5),
        "scale_0": (5,),
        "scale_1": (5,),
    }
    assert {n: shapes[n] for n in some} == some
    assert "conv2d_0.bias" not in shapes
    assert all(p.dtype == np.float32 for p in model.params.values())


def test_scales_begin_as_ones_and_shifts_as_zeros(model):
    for name in ("group_norm_0", "layer_norm_0", "rms_norm_0"):
        assert (model.params[f"{name}.weight"] == 1).all()
        assert name == "rms_norm_0" or not model.params[f"{name}.bias"].any()
    assert (model.params["scale_0"] == 1).all()
    assert ((model.params["scale_1"] >= 2) & (model.params["scale_1"] < 3)).all()
    assert 0 < abs(model.params["embedding_0.weight"]).max() < 0.05  # normal, 0.01
    again = relay.create_model(everything, seed=3, init="xavier_uniform")
    assert (again.params["group_norm_0.weight"] == 1).all()  # what a layer says is not the model's to change
    assert abs(again.params["embedding_0.weight"]).max() > 0.1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("executor", ["interpreter", "native"])
def test_a_model_learns_with_all_of_them(executor):
    model = relay.create_model(everything, seed=1, init=0.3)
    ids = np.array([1, 2, 6])
    images = normal(6, 2, 8, 8).astype(np.float32)
    targets = normal(6, 2).astype(np.float32)

    @relay(executor=executor)
    def loss(x, y):
        return relay.mse_loss(everything(x, ids), y)

    history = relay.fit(model, loss, (images, targets), epochs=5, batch_size=3, verbose=False)
    losses = history.step_losses()
    assert losses[-2:].mean() < 0.9 * losses[:2].mean()
    grads = relay.grad(model, loss, (images[0], targets[0]))
    moved = [n for n, g in grads.items() if np.any(g)]
    assert len(moved) > len(grads) - 4, sorted(set(grads) - set(moved))


def test_what_is_no_layer_call():
    def refused(function, error, match, shape=(4, 6)):
        def body(x):
            return function(x)

        body.__annotations__["x"] = Tensor[Float, shape]
        with pytest.raises(error, match=match) as caught:
            relay.create_model(relay_model(body))
        assert isinstance(caught.value, CompileError)
        assert "test_layers.py" in str(caught.value) and "^" in str(caught.value)

    for shape, name in (((4,), "conv2d"), ((4,), "conv1d"), ((2, 3, 4), "conv3d")):
        layer = getattr(relay, name)
        refused(lambda x, layer=layer: layer(x, 4), ShapeError, "or a batch", shape)
    refused(lambda x: relay.linear(x), TypeError_, r"needs num_hidden: relay\.linear\(x, num_hidden=10\)")
    refused(lambda x: relay.linear(x, 0), TypeError_, "num_hidden is a positive int, not 0")
    refused(lambda x: relay.linear(x, num_hiden=3), TypeError_, "num_hidden")
    refused(lambda x: relay.linear(x, 3, num_hidden=3), TypeError_, "multiple values for argument 'num_hidden'")
    refused(lambda x: relay.embedding(x, 3, 4), TypeError_, "needs an array of integers")
    refused(lambda x: relay.multi_head_attention(x, 4), ValueError, "num_heads=4 does not divide the 6 features")
    refused(lambda x: relay.conv2d(x[None], 4, groups=3), ShapeError, "groups=3")
    refused(lambda x: relay.gru(x[0], 4), ShapeError, "time first")
    refused(lambda x: relay.gru(x, 4, state=x), ValueError, r"num_layers \* directions is 1 and num_hidden 4")
    refused(lambda x: relay.lstm(x, 4, state=x), TypeError, r"the state is \(h, c\)")
    refused(lambda x: relay.lstm(x, 4, state=(x, x)), ValueError, "lstm: a state has the shape")
    refused(lambda x: relay.multi_head_attention(x, 2, True, cache=x), TypeError, r"\(keys, values, length\)")
    refused(lambda x: relay.attention(x, x, x[:2]), ValueError, "as many values as keys")
    refused(lambda x: relay.upsample(x[None], 1.5), ShapeError, "scale=1.5 must be")
    refused(lambda x: relay.gru_cell(x, 0.5), (ShapeError, TypeError_), "gru_cell")
    refused(lambda x: relay.lstm_cell(x, x), ShapeError, r"the state is \(h, c\)")
    refused(lambda x: relay.layer_norm(x, axes=2), ShapeError, "axis")
    refused(lambda x: relay.linear(x, 3, init="xavyer_uniform"), ValueError, "xavier_uniform")
    refused(lambda x: relay.linear(x, 3, init={"wait": "ones"}), TypeError_, "weight")
    refused(lambda x: relay.parameter("linear", 3), TypeError_, "choose another name")
    refused(lambda x: relay.parameter("a.b", 3), TypeError_, "no identifier")
    refused(lambda x: relay.parameter("a", (3, -1)), ShapeError, "shape")
    refused(lambda x: relay.parameter("a", 3, int), TypeError_, "made of floats")
    refused(lambda x: relay.parameter("a"), TypeError_, "needs shape")


def test_layers_outside_of_a_model():
    for call in (
        lambda x: relay.linear(x, 3),
        lambda x: relay.layer_norm(x),
        lambda x: relay.gru(x, 3),
        lambda x: relay.parameter("a", 3),
    ):
        with pytest.raises(TypeError_, match=r"must be called in a function decorated with @relay_model"):
            run(call, X)
    with pytest.raises(TypeError_, match="relay_model"):
        relay.parameter("a", 3)
    with pytest.raises(ValueError, match="time first, and this has 1 axes"):
        run(relay.gru, X[0], recurrent_weights(3, 6, 4, 1, False))


N, H, W = "n", "h", "w"


def test_symbolic_sizes():
    def pooled(x: Tensor[Float, (N, 3, H, W)], w: Tensor[Float, (4, 3)], c: Tensor[Float, 4]):
        return relay.linear(relay.global_avg_pool(relay.upsample(x)), w, c)

    function = relay(pooled, executor="interpreter")
    for shape in ((2, 3, 4, 5), (1, 3, 2, 2)):
        x, w, c = (normal(*s).astype(np.float32) for s in (shape, (4, 3), (4,)))
        np.testing.assert_allclose(function(x, w, c), x.mean((2, 3)) @ w.T + c, rtol=1e-4, atol=1e-6)
    assert function.cache_info().misses == 1


class TestUnshared:
    def names(self, function):
        return list(relay.create_model(relay_model(function)).params)

    def test_a_loop_over_a_range(self):
        def three(x: Tensor[Float, 4]):
            for _ in range(3):
                x = relay.tanh(relay.linear(x, 4, unshared=True))
            return x

        function = relay_model(three)
        model = relay.create_model(function, init=0.5)
        x = wanted = normal(4).astype(np.float32)
        for k in range(3):
            wanted = np.tanh(model.params[f"linear_{k}.weight"] @ wanted + model.params[f"linear_{k}.bias"])
        np.testing.assert_allclose(model(x), wanted, rtol=1e-5)
        assert model.num_params == 60

    def test_every_loop_of_known_length(self):
        def breaks(x: Tensor[Float, 4]):
            for _ in range(3):
                if np.sum(x) > 3:
                    break
                x = relay.linear(x, 4, unshared=True, no_bias=True)
            return x

        def nested(x: Tensor[Float, 4]):
            for _ in range(2):
                for size in (4, 5):
                    x = relay.linear(x, size, unshared=True, no_bias=True)
                x = relay.linear(x, 4, no_bias=True)
            return x

        def listed(x: Tensor[Float, 4]):
            return np.concatenate([relay.linear(x, k + 1, unshared=True, no_bias=True) for k in range(3)])

        def own(x: Tensor[Float, 4]):
            for _ in range(2):
                x = x * relay.parameter("scale", 4, unshared=True)
            return x

        @relay_model
        def block(x):
            return relay.linear(x, 4, unshared=True, no_bias=True)

        def called(x: Tensor[Float, 4]):
            for _ in range(2):
                x = block(x)
            return x

        assert self.names(breaks) == [f"linear_{k}.weight" for k in range(3)]
        assert self.names(nested) == [f"linear_{k}.weight" for k in range(5)]
        assert self.names(listed) == [f"linear_{k}.weight" for k in range(3)]
        assert self.names(own) == ["scale_0", "scale_1"]
        assert self.names(called) == ["linear_0.weight", "linear_1.weight"]

    def test_a_loop_of_unknown_length(self):
        def while_(x: Tensor[Float, 4]):
            while np.sum(x) > 0:
                x = relay.linear(x, 4, unshared=True)
            return x

        with pytest.raises(TypeError_, match="how many this loop has is not known"):
            self.names(while_)


def stack(x, n):
    return x if n == 0 else stack(relay.linear(x, 4), n - 1)


def behind(x, n):
    return x if n == 0 else relay.tanh(relay.linear(behind(x, n - 1), 4))


@relay_model
def stacked(x: Tensor[Float, 4]):
    return stack(x, 3)


@relay_model
def stacked_behind(x: Tensor[Float, 4]):
    return behind(x, 3)


class TestRecursionOfKnownDepth:
    @pytest.mark.parametrize("function", [stacked, stacked_behind])
    def test_it_has_the_layers_that_it_calls(self, function, executor):
        model = relay.create_model(function, init=0.5)
        assert list(model.params) == [f"linear_{k}.{p}" for k in range(3) for p in ("weight", "bias")]
        assert model.num_params == 60 and len(model.summary().splitlines()) == 5 + (function is stacked_behind)
        x = wanted = normal(4).astype(np.float32)
        for k in range(3):
            wanted = model.params[f"linear_{k}.weight"] @ wanted + model.params[f"linear_{k}.bias"]
            wanted = np.tanh(wanted) if function is stacked_behind else wanted
        np.testing.assert_allclose(relay(executor=executor)(lambda m, x: m(x))(model, x), wanted, rtol=1e-5)

        @relay(executor=executor)
        def loss(x):
            return np.sum(function(x) ** 2)

        gradients = relay.grad(model, loss, (x,))
        assert list(gradients) == list(model.params) and all(np.any(g != 0) for g in gradients.values())
        batch = relay(executor=executor)(lambda m, xs: relay.vmap(m)(xs))(model, np.stack([x, x]))
        np.testing.assert_allclose(batch, np.stack([wanted, wanted]), rtol=1e-5)

    def test_it_trains(self):
        model = relay.create_model(stacked, init="xavier_uniform", seed=1)

        @relay(executor="interpreter")
        def loss(x, y):
            return relay.mse_loss(stacked(x), y)

        x = normal(8, 4).astype(np.float32)
        history = relay.fit(model, loss, (x, 0.5 * x), epochs=3, batch_size=4, verbose=False)
        assert history["loss"][-1] < history["loss"][0]


def dense(x):
    return relay.relu(relay.linear(x, 4))


@relay_model
def normed(x):
    return relay.batch_norm(relay.linear(x, 4, no_bias=True), axis=0)


class TestBlocks:
    """Functions with layers that a loop calls."""

    def model(self, function):
        return relay.create_model(relay_model(function), init=0.5)

    def test_they_share_and_say_so(self):
        def shared(x: Tensor[Float, 4]):
            for _ in range(3):
                x = dense(x)
            return x

        function = relay_model(shared)
        message = (
            r"shared: the iterations of a loop share the layers of dense \(linear_0\); dense\(\.\.\., unshared=True\)"
        )
        with pytest.warns(UserWarning, match=message) as caught:
            model = relay.create_model(function)
        assert [w.filename for w in caught] == [__file__] and model.num_params == 20
        relay.create_model(function)  # once is enough
        line = "linear_0 of dense: one set of parameters for all iterations of a loop; dense(..., unshared=True) gives each its own"
        assert model.summary().splitlines()[-1] == line and "unshared=True" in model._repr_html_()

    def test_the_warning_is_answered(self):
        def meant(x: Tensor[Float, 4]):
            for _ in range(3):
                x = dense(x, unshared=False)
            return x

        model = self.model(meant)
        assert model.num_params == 20 and "linear_0 (shared in a loop)  (4,)" in model.summary()

    def test_layers_and_loops_of_unknown_length_share_without_a_warning(self):
        def direct(x: Tensor[Float, 4]):
            for _ in range(3):
                x = relay.linear(x, 4)
            return x

        def unknown(x: Tensor[Float, 4]):
            while np.sum(x) > 9:
                x = dense(x)
            return x

        def once(x: Tensor[Float, 4]):
            for f in (dense, normed):
                x = f(x)
            for _ in range(1):
                x = dense(x)
            return x

        assert "linear_0 (shared in a loop)  (4,)" in self.model(direct).summary()
        assert "shared" not in self.model(unknown).summary()
        assert self.model(once).num_params == 20 + 16 + 8 + 20

    def test_unshared(self, executor):
        def loop(x: Tensor[Float, 4]):
            for _ in range(3):
                x = dense(x, unshared=True)
            return x

        model = self.model(loop)
        assert list(model.params) == [f"linear_{k}.{p}" for k in range(3) for p in ("weight", "bias")]
        x = wanted = normal(4).astype(np.float32)
        for k in range(3):
            wanted = np.maximum(model.params[f"linear_{k}.weight"] @ wanted + model.params[f"linear_{k}.bias"], 0)
        np.testing.assert_allclose(relay(executor=executor)(lambda m, x: m(x))(model, x), wanted, rtol=1e-5)
        assert "shared" not in model.summary()

    def test_unshared_of_all_kinds(self):
        def nested(x: Tensor[Float, 4]):
            def inner(y):
                for _ in range(2):
                    y = dense(y, unshared=True)
                return relay.linear(y, 4, no_bias=True)

            for _ in range(3):
                x = inner(x, unshared=True)
            return x

        def listed(x: Tensor[Float, 4]):
            block = lambda y: relay.linear(y, 2, no_bias=True)  # noqa: E731
            return np.concatenate([block(x, unshared=True) for _ in range(3)])

        def sizes(x: Tensor[Float, 4]):
            def widened(y, n):
                return relay.linear(y, n, no_bias=True)

            for n in (3, 5, 2):
                x = widened(x, n, unshared=True)
            return x

        assert self.model(nested).num_params == 3 * (2 * 20 + 16)
        assert self.model(listed).num_params == 3 * 8
        assert self.model(sizes).num_params == 12 + 15 + 10

    def test_state_and_drawing(self):
        def net(x: Tensor[Float, (8, 4)]):
            for _ in range(2):
                x = relay.dropout(normed(x, unshared=True), 0.5)
            return x

        function = relay_model(net)
        model = relay.create_model(function)
        assert list(model.state) == [f"batch_norm_{k}.running_{p}" for k in range(2) for p in ("mean", "var")]
        model(normal(8, 4).astype(np.float32), training=True)
        first, second = (model.state[f"batch_norm_{k}.running_mean"] for k in range(2))
        assert np.any(first != 0) and not np.array_equal(first, second)

    def test_refused(self):
        def unknown(x: Tensor[Float, 4]):
            while np.sum(x) > 0:
                x = dense(x, unshared=True)
            return x

        def no_bool(x: Tensor[Float, 4]):
            return dense(x, unshared=3)

        with pytest.raises(TypeError_, match="dense: unshared=True gives each iteration .* not known"):
            self.model(unknown)
        with pytest.raises(TypeError_, match="dense: unshared is True or False, not 3"):
            self.model(no_bool)
        with pytest.raises(TypeError_, match=r"this gives each iteration of a loop .* @relay_model"):
            relay(executor="interpreter")(lambda x: dense(x, unshared=True))(np.ones(4))

        def own(x, unshared):
            return x * unshared

        assert relay(executor="interpreter")(lambda x: own(x, unshared=3.0))(2.0) == 6.0


IMPORTS = """
from myia_relay.model.hidden import Weight
from myia_relay.model.init import ones
from myia_relay.model.layers.declaration import layer

"""


def test_a_layer_is_added_as_the_documentation_says(tmp_path, monkeypatch):
    text = (Path(__file__).parents[3] / "docs" / "layers.md").read_text("utf-8")
    (block,) = [b for b in re.findall(r"```python no-run\n(.*?)```", text, re.S) if "def scaled" in b]
    file = tmp_path / "layer_of_a_test.py"
    file.write_text(IMPORTS + block)
    with pytest.raises(InternalError, match=r"scaled is not in utils\.names\.LAYERS"):
        runpy.run_path(str(file))
    monkeypatch.setattr(declaration, "LAYERS", (*declaration.LAYERS, "scaled"))
    monkeypatch.syspath_prepend(tmp_path)
    scaled = importlib.import_module(file.stem).scaled

    @relay_model
    def net(x: Tensor[Float, (2, 3)]):
        return scaled(scaled(x), gain=3.0)

    model = relay.create_model(net)
    assert {n: p.shape for n, p in model.params.items()} == {"scaled_0.weight": (3,), "scaled_1.weight": (3,)}
    model.params["scaled_0.weight"] = np.array([1, 2, 3])
    x = normal(2, 3).astype(np.float32)
    np.testing.assert_allclose(model(x), x * [3, 6, 9], rtol=1e-6)
    np.testing.assert_allclose(scaled(x, x[0], gain=2.0), 2 * x * x[0], rtol=1e-6)
    slopes = relay.grad(model, relay(lambda x: np.sum(net(x)), executor="interpreter"), (x,))
    np.testing.assert_allclose(slopes["scaled_1.weight"], 3 * (x * [1, 2, 3]).sum(0), rtol=1e-5)
