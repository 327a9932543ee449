"""Objectives to differentiate, and arguments for them: ADBench's GMM and LSTM, LeNet's loss, recursions over trees, loops in place.

Sources: R. Socher et al., "Semantic compositionality through recursive matrix-vector spaces" (EMNLP 2012) for networks over parse
trees; F. Srajer, Z. Kukelova and A. Fitzgibbon, "A benchmark of selected algorithmic differentiation tools" (OMS 2018);
LeNet as in Figure 4 of the Relay paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from myia_relay import Float64, Tensor, relay

from .loops.linear_algebra import cholesky, trisolv


class Objective(NamedTuple):
    """A scalar function.

    Attributes:
        what: in words.
        function: the function.
        wrt: what it is differentiated by.
        args: its arguments.
        plain: the arguments of its C version; None where there is none.
    """

    what: str
    function: Callable
    wrt: tuple[int, ...]
    args: tuple[Any, ...]
    plain: tuple[Any, ...] | None


def gmm(alphas, means, icf, x, gamma, m, constant):
    """Minus the log posterior of a mixture of Gaussians under a Wishart prior."""
    n, d = x.shape
    k = alphas.shape[0]
    q = icf[:, :d]
    strict = icf[:, d:]
    sumq = np.sum(q, axis=1)
    eq = np.exp(q)
    total = np.float64(0.0)
    for p in range(n):
        t = np.zeros(k)
        for j in range(k):
            s = np.float64(0.0)
            for r in range(d):
                y = eq[j, r] * (x[p, r] - means[j, r])
                for i in range(r):
                    y = y + strict[j, i * (d - 1) - i * (i - 1) // 2 + r - i - 1] * (x[p, i] - means[j, i])
                s = s + y * y
            t[j] = alphas[j] + sumq[j] - 0.5 * s
        most = np.max(t)
        total = total + most + np.log(np.sum(np.exp(t - most)))
    most = np.max(alphas)
    normal = most + np.log(np.sum(np.exp(alphas - most)))
    prior = 0.5 * gamma * gamma * (np.sum(eq * eq) + np.sum(strict * strict)) - m * np.sum(sumq)
    return constant + total - n * normal + prior


def sigmoid(x):
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-x))


def lstm(main, extra, state, seq):
    """The loss of an LSTM whose products are elementwise, over a sequence."""
    layers = main.shape[0]
    c, b = seq.shape
    h = state[:, 0] * 1.0
    cell = state[:, 1] * 1.0
    total = np.float64(0.0)
    for t in range(c - 1):
        inp = seq[t] * extra[0]
        for k in range(layers):
            w, bias = main[k, 0], main[k, 1]
            forget = sigmoid(inp * w[0] + bias[0])
            ingate = sigmoid(h[k] * w[1] + bias[1])
            outgate = sigmoid(inp * w[2] + bias[2])
            change = np.tanh(h[k] * w[3] + bias[3])
            new = cell[k] * forget + ingate * change
            inp = outgate * np.tanh(new)
            h[k] = inp
            cell[k] = new
        y = inp * extra[1] + extra[2]
        total = total + np.sum(seq[t + 1] * (y - np.log(2.0 + np.sum(np.exp(y)))))
    return -total / ((c - 1) * b)


def tree(x, w, depth):
    """A recursion over a complete binary tree."""
    if depth == 0:
        return x
    return math.tanh(w * tree(x * 0.9 + 0.1, w, depth - 1) + tree(x - 0.05, w, depth - 1) * 0.5)


@dataclass(frozen=True)
class Word:
    """The end of a parse tree."""

    vector: Tensor[Float64, (16,)]


@dataclass(frozen=True)
class Phrase:
    """Two phrases or words."""

    left: Parse
    right: Parse


Parse = Word | Phrase


def encoded(t: Parse, w, u, bias):
    """A recursive network over a parse tree."""
    match t:
        case Word(vector):
            return np.tanh(vector)
        case Phrase(left, right):
            return np.tanh(w @ encoded(left, w, u, bias) + u @ encoded(right, w, u, bias) + bias)


def parsed(t: Parse, w, u, bias):
    """The loss of a recursive network, whose tree is a value of an algebraic data type."""
    return np.sum(encoded(t, w, u, bias) ** 2)


def solved(matrix, b):
    """A function of the solution of a triangular system, entry by entry."""
    return np.sum(trisolv(matrix, b) ** 2)


def factorised(matrix):
    """A function of a Cholesky factor, entry by entry in place."""
    return np.sum(cholesky(matrix.copy()) ** 2)


def relaxed(u):
    """A function of a grid after sweeps of a relaxation in place."""
    u = u.copy()
    for _ in range(5):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] * u[i + 1, j] + np.sin(u[i, j - 1]) + u[i, j + 1])
    return np.sum(u * u)


def sentence(words: int, rng: np.random.Generator) -> Parse:
    """A random parse tree."""
    if words == 1:
        return Word(rng.normal(size=16))
    left = int(rng.integers(1, words))
    return Phrase(sentence(left, rng), sentence(words - left, rng))


def lenet(params, x, y):
    """The loss of LeNet for one image, its parameters as a dict."""
    h = relay.tanh(relay.conv2d(x, params["w1"], params["b1"]))
    h = relay.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    h = relay.tanh(relay.conv2d(h, params["w2"], params["b2"]))
    h = relay.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    h = np.tanh(params["w3"] @ h.reshape(800) + params["b3"])
    return relay.softmax_cross_entropy(params["w4"] @ h + params["b4"], y)


def objectives(small: bool = False) -> dict[str, Objective]:
    """The objectives with random arguments of ADBench's sizes; `small`: of sizes that show only that they run."""
    rng = np.random.default_rng(0)
    n, k, d = (20, 3, 4) if small else (1000, 25, 10)
    alphas, means, x = rng.normal(size=k), rng.normal(size=(k, d)), rng.normal(size=(n, d))
    icf = rng.normal(size=(k, d * (d + 1) // 2)) * 0.3
    layers, c, b = 2, 10 if small else 1024, 14
    main, extra = rng.normal(size=(layers, 2, 4, b)), rng.normal(size=(3, b))
    state, seq = rng.normal(size=(layers, 2, b)), (rng.random((c, b)) < 0.5) * 1.0
    depth = 4 if small else 16
    shapes = {"w1": (20, 1, 5, 5), "b1": (20,), "w2": (50, 20, 5, 5), "b2": (50,), "w3": (500, 800), "b3": (500,)}
    shapes |= {"w4": (10, 500), "b4": (10,)}
    params = {name: rng.normal(size=s).astype(np.float32) * np.float32(0.05) for name, s in shapes.items()}
    image, label = rng.random((1, 28, 28), np.float32), np.eye(10, dtype=np.float32)[3]
    words = 8 if small else 100
    phrase, weights = (
        sentence(words, rng),
        (rng.normal(size=(16, 16)) * 0.3, rng.normal(size=(16, 16)) * 0.3, rng.normal(size=16)),
    )
    system, side = (10, 8) if small else (400, 100)
    lower = np.tril(rng.random((system, system))) + system * np.eye(system)
    positive = rng.random((side, side)) + side * np.eye(side)
    positive = positive @ positive.T
    mixture = (alphas, means, icf, x, 1.7, 3, -1.0)
    return {
        "gmm": Objective(f"GMM, n {n}, d {d}, K {k}", gmm, (0, 1, 2), mixture, (*mixture, n, k, d)),
        "lstm": Objective(
            f"LSTM, {layers} layers, {c} steps",
            lstm,
            (0, 1),
            (main, extra, state, seq),
            (main, extra, state, seq, layers, c, b),
        ),
        "tree": Objective(f"recursion over a tree, depth {depth}", tree, (0, 1), (0.7, 0.8, depth), (0.7, 0.8, depth)),
        "parsed": Objective(
            f"network over a parse tree, {words} words", parsed, (0, 1, 2, 3), (phrase, *weights), None
        ),
        "lenet": Objective("LeNet's loss, one image", lenet, (0,), (params, image, label), None),
        "solved": Objective(f"triangular system, n {system}", solved, (0, 1), (lower, rng.random(system)), None),
        "factorised": Objective(f"Cholesky factor, n {side}", factorised, (0,), (positive,), None),
        "relaxed": Objective(f"relaxation in place, n {side}", relaxed, (0,), (rng.random((side, side)),), None),
    }


def banded(x):
    """R^n -> R^n, each entry of three neighbours."""
    zero = np.zeros(1)
    left = np.concatenate([zero, x[:-1]])
    right = np.concatenate([x[1:], zero])
    return np.sin(x) * right + left * left * x


def twenty_lines(x, n):
    """A function of twenty lines with a loop, to be differentiated three times."""
    a = math.sin(x)
    b = math.cos(x) * a
    c = math.exp(-a * b)
    total = a + b * c
    state = x
    for i in range(n):
        state = math.tanh(state * a + b / (i + 1))
        if state > c:
            total = total + state * c
        else:
            total = total - state * b
        c = c * 0.9 + math.sin(total) * 0.1
        d = state * c
        e = d * d + 1.0
        total = total + math.log(e)
        state = state + d / e
    f = total * a
    g = f + math.sqrt(total * total + 1.0)
    h = g * b + c
    return h * 0.5 + state


def mlp_loss(params, x, y):
    """The loss of a network of three layers."""
    h = np.tanh(x @ params["w1"] + params["b1"])
    h = np.tanh(h @ params["w2"] + params["b2"])
    return np.mean((h @ params["w3"] + params["b3"] - y) ** 2)


def mlp_arguments() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Arguments of `mlp_loss`."""
    rng = np.random.default_rng(0)
    sizes = [64, 128, 128, 10]
    params = {}
    for i, (m, n) in enumerate(zip(sizes, sizes[1:]), 1):
        params[f"w{i}"] = rng.normal(size=(m, n)) * 0.1
        params[f"b{i}"] = np.zeros(n)
    return params, rng.normal(size=(32, 64)), rng.normal(size=(32, 10))
