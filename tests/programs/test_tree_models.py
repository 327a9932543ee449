"""Models that recurse over trees: all calls of a recursion share their layers; values and gradients of parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from myia_relay import Float32, Tensor, relay, relay_model
from myia_relay.utils.errors import TypeError_


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node
TREE = Node(Node(Leaf(1.0), Leaf(-2.0)), Node(Leaf(0.5), Node(Leaf(3.0), Leaf(1.5))))


@relay_model
def itself(t: Tree):
    match t:
        case Leaf(value):
            return relay.linear(np.ones(3) * value, num_hidden=4)
        case Node(left, right):
            return np.tanh(relay.linear(itself(left) + itself(right), num_hidden=4))


def by_hand(w0, b0, w1, b1, t: Tree):
    match t:
        case Leaf(value):
            return w0 @ (np.ones(3) * value) + b0
        case Node(left, right):
            return np.tanh(w1 @ (by_hand(w0, b0, w1, b1, left) + by_hand(w0, b0, w1, b1, right)) + b1)


@relay_model
def inner(t: Tree):
    def encode(t: Tree):
        match t:
            case Leaf(value):
                return relay.linear(np.ones(3) * value, num_hidden=4)
            case Node(left, right):
                return np.tanh(relay.linear(encode(left) + encode(right), num_hidden=4))

    return relay.linear(encode(t), num_hidden=2)


@pytest.mark.sampled(3)
def test_a_model_that_calls_itself(executor):
    model = relay.create_model(itself, seed=2, init=relay.init.normal(0.5))
    assert list(model.params) == ["linear_0.weight", "linear_0.bias", "linear_1.weight", "linear_1.bias"]
    arrays = [np.asarray(p) for p in model.params.values()]

    @relay(executor=executor)
    def loss(t: Tree):
        return np.sum(itself(t) ** 2)

    def loss_by_hand(w0, b0, w1, b1, t: Tree):
        return np.sum(by_hand(w0, b0, w1, b1, t) ** 2)

    for tree in (TREE, Leaf(2.0), TREE.left):
        np.testing.assert_allclose(model(tree), by_hand(*arrays, tree), rtol=1e-5)
        found = relay.grad(model, loss, (tree,))
        wanted = relay(relay.grad(loss_by_hand, (0, 1, 2, 3)), executor="interpreter")(*arrays, tree)
        for a, b in zip(found.values(), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_a_recursion_inside_of_a_model():
    model = relay.create_model(inner)
    assert {n: p.shape for n, p in model.params.items()} == {
        "linear_0.weight": (4, 3), "linear_0.bias": (4,), "linear_1.weight": (2, 4), "linear_1.bias": (2,),
        "linear_2.weight": (4, 4), "linear_2.bias": (4,),
    }  # fmt: skip
    # What is behind a recursive call is found last.
    w0, b0, w2, b2, w1, b1 = (np.asarray(p) for p in model.params.values())
    np.testing.assert_allclose(model(TREE), w2 @ by_hand(w0, b0, w1, b1, TREE) + b2, rtol=1e-5)
    assert "linear_2" in str(model.summary())


def test_levels_of_a_known_number_have_layers_of_their_own():
    @relay_model
    def levels(x: Tensor[Float32, (3,)]):
        def go(x, n):
            return x if n == 0 else relay.linear(go(x, n - 1), num_hidden=3)

        return go(x, 3)

    assert len(relay.create_model(levels).params) == 6


def test_dropout_in_a_recursion_is_refused_where_layers_train():
    @relay_model
    def dropped(t: Tree):
        match t:
            case Leaf(value):
                return relay.dropout(relay.linear(np.ones(3) * value, num_hidden=3), 0.5)
            case Node(left, right):
                return dropped(left) + dropped(right)

    model = relay.create_model(dropped)
    assert model(TREE).shape == (3,)
    with pytest.raises(TypeError_, match="dropout in a recursion over a tree would draw the same in every call"):
        model(TREE, training=True)


def test_an_input_without_an_annotation():
    @relay_model
    def bare(t):
        return relay.linear(t, num_hidden=3)

    with pytest.raises(TypeError_, match=r"follow from the type of 't'; annotate it, .* the classes of a tree"):
        relay.create_model(bare)
