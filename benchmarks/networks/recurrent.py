"""Recurrent networks and networks on trees as plain decorated functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from myia_relay import Int, relay, value_and_grad


@relay
def sigmoid(x):
    """Logistic function."""
    return 1.0 / (1.0 + np.exp(-x))


@relay
def rnn(xs, w):
    """The last state, (hidden,)."""
    h = np.zeros(w["w_hh"].shape[1], np.float32)
    for x in xs:
        h = np.tanh(w["w_ih"] @ x + w["b_ih"] + w["w_hh"] @ h + w["b_hh"])
    return h


@relay
def gru(xs, w):
    """The last state, (hidden,)."""
    n = w["w_hh"].shape[1]
    h = np.zeros(n, np.float32)
    for x in xs:
        a = w["w_ih"] @ x + w["b_ih"]
        b = w["w_hh"] @ h + w["b_hh"]
        reset = sigmoid(a[:n] + b[:n])
        update = sigmoid(a[n : 2 * n] + b[n : 2 * n])
        new = np.tanh(a[2 * n :] + reset * b[2 * n :])
        h = (1.0 - update) * new + update * h
    return h


@relay
def lstm_cell(gates, c):
    """The next output and state of a cell, of its gates below or beside each other in the last axis."""
    n = c.shape[-1]
    keep, add = sigmoid(gates[..., n : 2 * n]), sigmoid(gates[..., :n])
    c = keep * c + add * np.tanh(gates[..., 2 * n : 3 * n])
    return sigmoid(gates[..., 3 * n :]) * np.tanh(c), c


@relay
def lstm(xs, weights):
    """The last state of the second layer, (hidden,)."""
    first, second = weights
    h1 = c1 = h2 = c2 = np.zeros(first["w_hh"].shape[1], np.float32)
    for x in xs:
        h1, c1 = lstm_cell(first["w_ih"] @ x + first["b_ih"] + first["w_hh"] @ h1 + first["b_hh"], c1)
        h2, c2 = lstm_cell(second["w_ih"] @ h1 + second["b_ih"] + second["w_hh"] @ h2 + second["b_hh"], c2)
    return h2


@relay
def batched_gates(x, h, w):
    """The gates of a cell for a batch, (batch, 4 hidden)."""
    return x @ w["w_ih"].T + w["b_ih"] + h @ w["w_hh"].T + w["b_hh"]


@relay
def lstm_loss(weights, xs, targets):
    """Mean squared error of the outputs of all steps of a batch."""
    first, second = weights
    h1 = c1 = h2 = c2 = np.zeros(xs.shape[1:], np.float32)
    total = np.float32(0.0)
    for x, target in zip(xs, targets):
        h1, c1 = lstm_cell(batched_gates(x, h1, first), c1)
        h2, c2 = lstm_cell(batched_gates(h1, h2, second), c2)
        total += np.sum((h2 - target) ** 2)
    return total / np.float32(targets.size)


@relay(static=("count",))
def charrnn(letter, w, count):
    """The letters that follow a first one, each the likeliest, (count,)."""
    h = np.zeros(w["w_hh"].shape[1], np.float32)
    letters = np.zeros(count, np.int64)
    for i in range(count):
        h = np.tanh(w["w_ih"] @ w["embedding"][letter] + w["b_ih"] + w["w_hh"] @ h + w["b_hh"])
        letter = np.argmax(w["out"]["weight"] @ h + w["out"]["bias"])
        letters[i] = letter
    return letters


@dataclass(frozen=True)
class Leaf:
    """A word."""

    word: Int


@dataclass(frozen=True)
class Node:
    """A phrase of two parts."""

    left: Tree
    right: Tree


Tree = Leaf | Node


def tree(parts) -> Tree:
    """A tree of pairs and numbers as one of leaves and nodes."""
    return Node(tree(parts[0]), tree(parts[1])) if isinstance(parts, tuple) else Leaf(parts)


@dataclass(frozen=True)
class End:
    """No more examples."""


@dataclass(frozen=True)
class Example:
    """A tree and its class, before further examples."""

    tree: Tree
    label: Int
    rest: Examples


Examples = Example | End


def examples(pairs) -> Examples:
    """Trees of pairs and numbers with their classes, as a chain."""
    found: Examples = End()
    for parts, label in reversed(pairs):
        found = Example(tree(parts), label, found)
    return found


@relay
def treelstm(node: Tree, w):
    """The state of the root, its output and its cell, each (hidden,)."""
    n = w["u_forget"].shape[0]
    match node:
        case Leaf(word):
            gates = w["w"] @ w["embedding"][word] + w["b"]
            kept = np.zeros(n, np.float32)
        case Node(left, right):
            h1, c1 = treelstm(left, w)
            h2, c2 = treelstm(right, w)
            gates = w["u"] @ (h1 + h2) + w["b"]
            forget1 = sigmoid(w["u_forget"] @ h1 + w["b_forget"])
            forget2 = sigmoid(w["u_forget"] @ h2 + w["b_forget"])
            kept = forget1 * c1 + forget2 * c2
    c = sigmoid(gates[:n]) * np.tanh(gates[2 * n :]) + kept
    return sigmoid(gates[n : 2 * n]) * np.tanh(c), c


@relay
def treelstm_loss(w, node: Tree, label):
    """Cross entropy of the class of a tree."""
    h, _ = treelstm(node, w)
    scores = w["out"]["weight"] @ h + w["out"]["bias"]
    largest = np.max(scores)
    return np.log(np.sum(np.exp(scores - largest))) + largest - scores[label]


@relay
def treelstm_train(w, rest: Examples, rate):
    """The sum of the losses, and the weights after a step of descent for each example in turn."""
    total = np.float32(0.0)
    while isinstance(rest, Example):
        loss, g = value_and_grad(treelstm_loss, "w")(w, rest.tree, rest.label)
        total += loss
        w = descended(w, g, rate)
        rest = rest.rest
    return total, w


@relay
def descended(w, g, rate):
    """Weights, arrays in dicts, after a step against their gradients."""
    out = {k: w[k] - rate * g[k] for k in w if k != "out"}
    out["out"] = {k: w["out"][k] - rate * g["out"][k] for k in w["out"]}
    return out
