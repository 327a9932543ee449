"""What says how operators and layers work: numbers of NumPy are taken as Python's, and nonsense is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, Float, Tensor, relay, relay_model

THREE, TWO, ONE = np.int64(3), np.int32(2), np.uint8(1)
IMAGE = np.arange(96, dtype=np.float32).reshape(6, 4, 4) / 96
SEQUENCE = np.arange(30, dtype=np.float32).reshape(5, 6) / 30


@relay_model
def layers(x: Tensor[Float, (6, 4, 4)]):
    y = relay.conv2d(x, THREE, ksize=THREE, strides=ONE, padding=(ONE, ONE), groups=THREE, no_bias=np.bool_(True))
    y = relay.group_norm(y, THREE, eps=np.float32(1e-3))
    y = relay.dropout(relay.max_pool(y, TWO), np.float32(0.25))
    return relay.linear(relay.flatten_layer(y), THREE, init="zeros") + relay.parameter("scale", THREE)


@relay_model
def sequences(x: Tensor[Float, (5, 6)]):
    y, _ = relay.lstm(x, num_hidden=THREE, num_layers=TWO)
    return relay.multi_head_attention(relay.embedding(np.array([1, 2]), THREE, np.int64(4)), TWO), y


@pytest.mark.parametrize("training", [False, True])
def test_numbers_of_numpy_in_layers(training):
    model = relay.create_model(layers, seed=1)
    assert {k: v.shape for k, v in model.params.items()} == {
        "conv2d_0.weight": (3, 2, 3, 3),
        "group_norm_0.weight": (3,),
        "group_norm_0.bias": (3,),
        "linear_0.weight": (3, 12),
        "linear_0.bias": (3,),
        "scale_0": (3,),
    }
    assert model(IMAGE, training=training).shape == (3,)
    attended, outputs = relay.create_model(sequences)(SEQUENCE)
    assert attended.shape == (2, 4) and outputs.shape == (5, 3)


@relay
def operators(x, labels):
    y = relay.upsample(relay.pad(relay.avg_pool(x, TWO, ONE), ONE), TWO)
    return relay.softmax(relay.adaptive_avg_pool(y, (TWO, ONE)), np.int8(-1)), relay.one_hot(labels, THREE)


def test_numbers_of_numpy_in_operators():
    labels = np.array([0, 2])
    for f in (operators, relay(operators.__wrapped__, executor="interpreter")):
        y, vectors = f(IMAGE, labels)
        assert y.shape == (6, 2, 1)
        np.testing.assert_array_equal(vectors, np.eye(3, dtype=np.float32)[labels])
    np.testing.assert_array_equal(relay.one_hot(labels, labels.max() + 1), vectors)


@relay_model
def classifier(x: Tensor[Float, (np.int64(6),)]):
    return relay.linear(x, THREE)


@relay
def loss(x, y):
    return relay.softmax_cross_entropy(classifier(x), y)


def test_numbers_of_numpy_in_training_and_transforms():
    model = relay.create_model(classifier, seed=THREE)
    optimizer = relay.optim.sgd(model, lr=np.float32(0.1), momentum=np.float32(0.5))
    options = {"batch_size": TWO, "accumulate": TWO, "early_stopping": THREE, "optimizer": optimizer, "verbose": False}
    history = relay.fit(model, loss, (SEQUENCE, np.arange(5) % 3), epochs=TWO, **options)
    assert len(history.step_losses()) == 4
    with pytest.raises(TypeError, match="the data are one argument"):
        relay.fit(model, loss, SEQUENCE, np.arange(5))
    x = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(relay.grad(lambda a, b: np.sum(a * b), ONE)(x, x + 1), x)
    rows = relay.vmap(lambda a, b: a @ b, (np.int64(0), None), np.int64(0))(x, np.ones(4))
    np.testing.assert_array_equal(rows, x.sum(1))
    np.testing.assert_array_equal(relay.jacobian(lambda a: 2 * a, np.int64(0))(np.ones(3)), 2 * np.eye(3))


WEIGHT, VECTOR = np.ones((6, 2, 3, 3), np.float32), np.ones(6, np.float32)
NONSENSE = {
    "one_hot": (lambda v: relay.one_hot(np.array([1]), v), (2.5, True, "abc", None, -1, (), 1 << 70)),
    "groups": (lambda v: relay.conv_transpose2d(IMAGE, WEIGHT, groups=v), (2.5, "abc", -1, 0, 4, (1, 2), 1 << 70)),
    "num_groups": (lambda v: relay.group_norm(IMAGE, VECTOR, num_groups=v), (-1, 0, 4, 2.0, "abc")),
    "strides": (lambda v: relay.max_pool(IMAGE, 2, v), (1 << 70, 0, -1, 1.5)),
    "padding": (lambda v: relay.avg_pool(IMAGE, 2, padding=v), (1 << 70, -1, "all", (1 << 70, 1))),
    "value": (lambda v: relay.pad(IMAGE, 1, v), ((1, 2), np.ones(2))),
    "shape": (lambda v: relay.random.normal(relay.random.key(0), v), (1 << 70, 1 << 62, -1)),
}


@pytest.mark.parametrize("name, value", [(name, value) for name, (_, values) in NONSENSE.items() for value in values])
def test_nonsense_is_refused(name, value):
    with pytest.raises(CompileError) as caught:
        NONSENSE[name][0](value)
    assert "internal error" not in str(caught.value)


@pytest.mark.parametrize("rate", [1.0, -0.1, 2, float("nan")])
def test_rates_of_dropout(rate):
    with pytest.raises(ValueError, match="relay.dropout: rate=.* is a number of at least 0 and below 1"):
        relay.dropout(VECTOR, rate, relay.random.key(0))


@relay
def huge(x):
    return np.eye(1 << 32) + x


@relay
def many(x):
    return np.linspace(0.0, 1.0, 1 << 62) + x


def test_arrays_that_fit_into_no_memory():
    with pytest.raises(
        ValueError, match=r"array is too big: .*\[4294967296, 4294967296\] takes more than 2\*\*63 bytes"
    ):
        huge(1.0)
    with pytest.raises(ValueError, match=r"np\.linspace: .*too big"):
        many(1.0)


def test_libraries_have_a_name():
    with pytest.raises(TypeError, match="PathLike"):
        relay.export_library(huge, 3, 1.0)
