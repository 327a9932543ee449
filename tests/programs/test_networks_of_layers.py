"""Whole networks of layers: a ResNet, a GPT, a classifier with GRUs, a variational autoencoder. They train, are saved, and
compute what NumPy computes."""

# ruff: noqa: F821, UP037

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import Float, Int, Tensor, relay, relay_model

RNG = np.random.default_rng(2)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def trained(function, loss, data, tmp_path, init, steps=6, lr=3e-3):
    """A model after some steps, saved and loaded; its losses."""
    model = relay.create_model(function, seed=1, init=init)
    optimizer = relay.optim.adam(model, lr=lr)
    history = relay.fit(model, loss, data, epochs=steps, batch_size=4, optimizer=optimizer, verbose=False)
    model.save(tmp_path / "model.safetensors")
    again = relay.load_model(function, tmp_path / "model.safetensors")
    for name, array in model.saved().items():
        np.testing.assert_array_equal(array, again.saved()[name])
    return again, history.step_losses()


def falls(losses):
    return np.isfinite(losses).all() and losses[-2:].mean() < losses[:2].mean()


# ResNet-8.


def conv(x, w, stride=1):
    x = np.pad(x, [(0, 0), (1, 1), (1, 1)]) if w.shape[-1] == 3 else x
    views = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(1, 2))[:, ::stride, ::stride]
    return np.einsum("chwij,ocij->ohw", views, w)


@relay_model
def residual(x, filters, stride):
    h = relay.conv2d(x, filters, 3, strides=stride, padding=1, no_bias=True)
    h = relay.relu(relay.batch_norm(h))
    h = relay.batch_norm(relay.conv2d(h, filters, 3, padding=1, no_bias=True))
    if stride != 1:
        x = relay.batch_norm(relay.conv2d(x, filters, 1, strides=stride, no_bias=True))
    return relay.relu(h + x)


@relay_model
def resnet(x: Tensor[Float, (1, 8, 8)]):
    h = relay.relu(relay.batch_norm(relay.conv2d(x, 4, 3, padding=1, no_bias=True)))
    h = residual(h, 4, 1)
    h = residual(h, 8, 2)
    h = residual(h, 16, 2)
    return relay.linear(relay.global_avg_pool(h), 3)


@relay
def resnet_loss(x, y):
    return relay.softmax_cross_entropy(resnet(x), y)


def resnet_by_hand(model, x):
    p = {n: a.astype(np.float64) for n, a in model.saved().items()}
    convs, norms = iter(range(20)), iter(range(20))

    def layer(x, stride=1):
        h = conv(x, p[f"conv2d_{next(convs)}.weight"], stride)
        n = f"batch_norm_{next(norms)}."
        scale = p[n + "weight"] / np.sqrt(p[n + "running_var"] + 1e-5)
        return (h - p[n + "running_mean"][:, None, None]) * scale[:, None, None] + p[n + "bias"][:, None, None]

    h = np.maximum(layer(x), 0)
    for stride in (1, 2, 2):
        out = layer(np.maximum(layer(h, stride), 0))
        h = np.maximum(out + (layer(h, stride) if stride != 1 else h), 0)
    return p["linear_0.weight"] @ h.mean((1, 2)) + p["linear_0.bias"]


def test_resnet(tmp_path):
    x = RNG.standard_normal((12, 1, 8, 8)).astype(np.float32)
    y = RNG.integers(0, 3, 12)
    model, losses = trained(resnet, resnet_loss, (x, y), tmp_path, "kaiming_normal")
    assert falls(losses)
    assert len(model.state) == 2 * 9 and model.state["batch_norm_8.running_var"].std() > 0
    np.testing.assert_allclose(model(x[0]), resnet_by_hand(model, x[0]), rtol=1e-3, atol=1e-4)


# GPT.

WORDS, WIDTH, CONTEXT, HEADS = 11, 8, 6, 2


@relay_model
def block(x):
    x = x + relay.multi_head_attention(relay.layer_norm(x), HEADS, causal=True)
    h = relay.gelu(relay.linear(relay.layer_norm(x), 4 * WIDTH))
    return x + relay.dropout(relay.linear(h, WIDTH), 0.1)


@relay_model
def gpt(ids: Tensor[Int, CONTEXT]):
    x = relay.embedding(ids, WORDS, WIDTH) + relay.parameter("position", (CONTEXT, WIDTH))
    for _ in range(2):
        x = relay.layer_norm(x, unshared=True)
        x = block(x, unshared=False)
    return relay.linear(relay.layer_norm(x), WORDS, no_bias=True)


@relay
def gpt_loss(ids, labels):
    return np.mean(relay.softmax_cross_entropy(gpt(ids), labels))


IDS = Tensor[Int, "n"]


@relay_model
def generator(ids: IDS, caches=(None, None)):
    """A transformer with a cache for each layer, if there are any."""
    start = 0 if caches[0] is None else caches[0][2]
    x = relay.embedding(ids, WORDS, 8) + relay.parameter("places", (12, 8))[start : start + len(ids)]
    filled = []
    for cache in caches:
        y = relay.multi_head_attention(relay.layer_norm(x, unshared=True), 2, causal=True, cache=cache, unshared=True)
        if cache is not None:
            y, cache = y
            filled.append(cache)
        x = x + y
    scores = relay.linear(relay.layer_norm(x), WORDS)
    return scores if caches[0] is None else (scores, tuple(filled))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_a_model_generates_with_caches_what_it_says_of_the_whole(executor):
    model = relay.create_model(generator, seed=3, init=relay.init.normal(0.5))

    @relay(executor=executor)
    def one_by_one(model, ids):
        empty = np.zeros((2, 12, 4), np.float32)
        caches = ((empty, empty, 0), (empty, empty, 0))
        found = np.zeros((len(ids), WORDS), np.float32)
        for i in range(len(ids)):
            scores, caches = model(ids[i : i + 1], caches)
            found[i] = scores[0]
        return found

    ids = RNG.integers(WORDS, size=10)
    np.testing.assert_allclose(one_by_one(model, ids), model(ids), rtol=2e-4, atol=2e-4)


@relay_model
def with_two_places(x: Tensor[Float, (3, 8)], cache=None):
    for _ in range(2):
        x = relay.layer_norm(x, unshared=True)
        if cache is None:
            x = relay.multi_head_attention(x, 2, causal=True, unshared=True)
        else:
            x, cache = relay.multi_head_attention(x, 2, causal=True, cache=cache, unshared=True)
    return x


def test_a_layer_of_a_branch_that_the_defaults_do_not_take_is_refused_in_its_own_words():
    model = relay.create_model(with_two_places)
    empty = np.zeros((2, 6, 4), np.float32)
    with pytest.raises(TypeError, match="was not part of model with_two_places.*in one place for all branches"):
        relay(lambda model, x: model(x, (empty, empty, 0)))(model, np.ones((3, 8), np.float32))


def norm(x, p, name):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * p[name + ".weight"] + p[
        name + ".bias"
    ]


def gpt_by_hand(model, ids):
    p = {n: a.astype(np.float64) for n, a in model.params.items()}
    names = [n for n in p if n.startswith("layer_norm") and n.endswith("weight")]
    x = p["embedding_0.weight"][ids] + p["position_0"]
    # In call order: the first of the loop, the two of the block, the second of the loop, the last one.
    order = ["layer_norm_0", "layer_norm_1", "layer_norm_2", "layer_norm_3", "layer_norm_4"]
    assert len(names) == len(order)
    for outer in (order[0], order[3]):
        x = norm(x, p, outer)
        h = (
            norm(x, p, order[1]) @ p["multi_head_attention_0.in_proj_weight"].T
            + p["multi_head_attention_0.in_proj_bias"]
        )
        q, k, v = (np.swapaxes(a.reshape(CONTEXT, HEADS, -1), 0, 1) for a in np.split(h, 3, -1))
        scores = np.where(np.tri(CONTEXT, dtype=bool), q @ np.swapaxes(k, 1, 2) / np.sqrt(WIDTH / HEADS), -np.inf)
        seen = np.swapaxes(softmax(scores) @ v, 0, 1).reshape(CONTEXT, WIDTH)
        x = x + seen @ p["multi_head_attention_0.out_proj_weight"].T + p["multi_head_attention_0.out_proj_bias"]
        h = norm(x, p, order[2]) @ p["linear_0.weight"].T + p["linear_0.bias"]
        h = h * np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))))(h)
        x = x + h @ p["linear_1.weight"].T + p["linear_1.bias"]
    return norm(x, p, order[4]) @ p["linear_2.weight"].T


def test_gpt(tmp_path):
    text = np.cumsum(RNG.integers(1, 3, (12, CONTEXT + 1)), axis=1) % WORDS
    data = text[:, :-1].astype(np.int64), text[:, 1:].astype(np.int64)
    model, losses = trained(gpt, gpt_loss, data, tmp_path, 0.1, lr=1e-2)
    assert falls(losses)
    np.testing.assert_allclose(model(data[0][0]), gpt_by_hand(model, data[0][0]), rtol=1e-3, atol=1e-4)


# A classifier of sequences.


@relay_model
def classifier(xs: Tensor[Float, (7, 3)]):
    ys, last = relay.gru(xs, 5, bidirectional=True)
    return relay.linear(np.concatenate((last[0], last[1], np.max(ys, axis=0))), 2)


@relay
def classifier_loss(xs, y):
    return relay.softmax_cross_entropy(classifier(xs), y)


def test_gru_classifier(tmp_path):
    xs = RNG.standard_normal((12, 7, 3)).astype(np.float32)
    labels = (xs.sum((1, 2)) > 0).astype(np.int64)
    model, losses = trained(classifier, classifier_loss, (xs, labels), tmp_path, "xavier_uniform", lr=1e-2)
    assert falls(losses)
    p = {n: a.astype(np.float64) for n, a in model.params.items()}
    outputs, last = [], []
    for end, sequence in (("", xs[0]), ("_reverse", xs[0][::-1])):
        w, u, b, c = (p[f"gru_0.{n}_l0{end}"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        h, ys = np.zeros(5), []
        for x in sequence:
            a, own = w @ x + b, u @ h + c
            r, z = sigmoid(a[:5] + own[:5]), sigmoid(a[5:10] + own[5:10])
            h = (1 - z) * np.tanh(a[10:] + r * own[10:]) + z * h
            ys.append(h)
        outputs.append(np.stack(ys[::-1] if end else ys))
        last.append(h)
    features = np.concatenate((*last, np.concatenate(outputs, -1).max(0)))
    wanted = p["linear_0.weight"] @ features + p["linear_0.bias"]
    np.testing.assert_allclose(model(xs[0]), wanted, rtol=1e-3, atol=1e-5)


# A variational autoencoder.


@relay_model
def autoencoder(x: Tensor[Float, (1, 8, 8)], noise: Tensor[Float, 3]):
    h = relay.silu(relay.conv2d(x, 4, 3, strides=2, padding=1))
    h = relay.flatten_layer(h)
    mean, logvar = relay.linear(h, 3), relay.linear(h, 3)
    z = mean + np.exp(0.5 * logvar) * noise
    h = relay.relu(relay.linear(z, 4 * 4 * 4)).reshape(4, 4, 4)
    return relay.conv_transpose2d(h, 1, ksize=4, strides=2, padding=1), mean, logvar


@relay
def autoencoder_loss(x, noise):
    logits, mean, logvar = autoencoder(x, noise)
    rebuilt = relay.sigmoid_cross_entropy(logits, x, reduction="sum")
    return rebuilt - 0.5 * np.sum(1 + logvar - mean**2 - np.exp(logvar))


def test_autoencoder(tmp_path):
    x = (RNG.random((12, 1, 8, 8)) < 0.3).astype(np.float32)
    noise = RNG.standard_normal((12, 3)).astype(np.float32)
    model, losses = trained(autoencoder, autoencoder_loss, (x, noise), tmp_path, "xavier_uniform", lr=1e-2)
    assert falls(losses)
    p = {n: a.astype(np.float64) for n, a in model.params.items()}
    h = conv(x[0], p["conv2d_0.weight"], 2) + p["conv2d_0.bias"][:, None, None]
    h = (h * sigmoid(h)).ravel()
    mean, logvar = (p[f"linear_{k}.weight"] @ h + p[f"linear_{k}.bias"] for k in (0, 1))
    z = mean + np.exp(0.5 * logvar) * noise[0]
    h = np.maximum(p["linear_2.weight"] @ z + p["linear_2.bias"], 0).reshape(4, 4, 4)
    out = np.zeros((1, 10, 10))
    for i, j in np.ndindex(4, 4):
        out[0, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4] += np.einsum(
            "c,cohw->hw", h[:, i, j], p["conv_transpose2d_0.weight"]
        )
    wanted = out[:, 1:-1, 1:-1] + p["conv_transpose2d_0.bias"][:, None, None]
    found = relay(lambda model, x, noise: model(x, noise), executor="interpreter")(model, x[0], noise[0])
    for one, other in zip(found, (wanted, mean, logvar)):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("executor", ["interpreter", "python"])
def test_executors_agree_on_a_step(executor):
    """The step of a ResNet, with its statistics."""
    x, y = RNG.standard_normal((4, 1, 8, 8)).astype(np.float32), RNG.integers(0, 3, 4)

    def mean_loss(x, y):
        return relay.batch_mean(resnet_loss)(x, y)

    models = [relay.create_model(resnet, seed=1, init="kaiming_normal") for _ in range(2)]
    results = [
        relay.value_and_grad(model, relay(mean_loss, executor=name), (x, y))
        for model, name in zip(models, (executor, "native"))
    ]
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-4)
    for name, g in results[0][1].items():
        np.testing.assert_allclose(g, results[1][1][name], rtol=1e-2, atol=1e-4, err_msg=name)
    for name, s in models[0].state.items():
        np.testing.assert_allclose(s, models[1].state[name], rtol=1e-3, atol=1e-5, err_msg=name)


@relay_model
def reader(ids: Tensor[Int, ("n",)]):
    x = relay.embedding(ids, 9, 8) + relay.parameter("places", (16, 8))[: len(ids)]
    return relay.linear(x + relay.multi_head_attention(x, 2, causal=True), 9)


@relay
def reader_loss(ids: Tensor[Int, ("n",)]):
    return np.mean(relay.softmax_cross_entropy(reader(ids), ids))


def test_places_of_texts_of_any_length():
    """A gradient is padded to the table of places, by as much as a symbolic length leaves."""

    @relay
    def step(model, ids: Tensor[Int, ("b", "n")]):
        return relay.value_and_grad(model, relay.batch_mean(reader_loss), (ids,))

    model = relay.create_model(reader, seed=0)
    for shape in ((3, 5), (1, 16), (2, 1)):
        ids = RNG.integers(0, 9, shape)
        value, gradients = step(model, ids)
        wanted, same = relay.value_and_grad(model, relay(reader_loss.__wrapped__, executor="interpreter"), (ids[0],))
        if shape[0] == 1:
            assert value == pytest.approx(wanted, rel=1e-5)
            for name, g in gradients.items():
                np.testing.assert_allclose(g, same[name], rtol=1e-3, atol=1e-5, err_msg=name)
        assert np.all(gradients["places_0"][shape[1] :] == 0)
    assert step.cache_info().misses == 1
