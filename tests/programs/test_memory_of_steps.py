"""Steps of training leave nothing behind: the resident memory of a process stays where it is, however many it makes.

Each program runs in a process of its own. A tenth of its steps come first, for whatever is made once.
"""

# ruff: noqa: F821, UP037

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from myia_relay import Float, Int, Tensor, relay, relay_model, value_and_grad

ROOT = Path(__file__).resolve().parents[2]
PARTS = 4
ALLOWED = 1000
"""KiB. A leak of one array of a few numbers at each of 20,000 steps is more."""


@dataclass(frozen=True)
class Leaf:
    word: Int


@dataclass(frozen=True)
class Node:
    left: Leaf | Node
    right: Leaf | Node


def state(t: Leaf | Node, p):
    match t:
        case Leaf(word):
            return np.tanh(p["w"][word])
        case Node(left, right):
            return np.tanh(p["u"] @ (state(left, p) + state(right, p)))


@relay
def tree_step(p, t: Leaf | Node):
    def loss(p):
        return np.sum(state(t, p) ** 2)

    value, g = value_and_grad(loss)(p)
    return value, {k: p[k] - 0.01 * g[k] for k in p}


def trees(rng):
    def tree(depth):
        return Node(tree(depth - 1), tree(depth - 1)) if depth and rng.random() < 0.8 else Leaf(int(rng.integers(20)))

    p, some = {"w": rng.standard_normal((20, 8)), "u": rng.standard_normal((8, 8)) / 4}, [tree(6) for _ in range(100)]

    def step(i):
        nonlocal p
        _, p = tree_step(p, some[i % len(some)])

    return step


@relay_model
def lenet(x: Tensor[Float, (1, 12, 12)]):
    h = relay.max_pool(relay.tanh(relay.conv2d(x, num_filter=4, ksize=3)), ksize=2)
    return relay.linear(relay.flatten_layer(h), num_hidden=5)


@relay
def lenet_loss(x, y):
    return relay.softmax_cross_entropy(lenet(x), y)


@relay
def lenet_step(model, optimizer, x, y):
    value, g = relay.value_and_grad(model, relay.batch_mean(lenet_loss), (x, y))
    optimizer.step(g)
    return value


def digits(rng, count):
    return rng.standard_normal((count, 1, 12, 12)).astype(np.float32), rng.integers(5, size=count)


def images(rng):
    model = relay.create_model(lenet, seed=0)
    optimizer, (x, y) = relay.optim.adam(model), digits(rng, 8)
    return lambda i: lenet_step(model, optimizer, x, y)


def fit(rng):
    """An epoch of 20 steps at every 20th one."""
    model, data = relay.create_model(lenet, seed=0), digits(rng, 160)
    optimizer = relay.optim.adam(model)

    def step(i):
        if i % 20 == 0:
            relay.fit(model, lenet_loss, data, epochs=1, batch_size=8, optimizer=optimizer, verbose=False, seed=i)

    return step


@relay_model
def vae(x: Tensor[Float, 30], key: relay.random.Key):
    h = relay.relu(relay.linear(x, 16))
    mean, log_std = relay.linear(h, 2), relay.linear(h, 2)
    z = mean + np.exp(log_std) * relay.random.normal(key, (2,), dtype=np.float32)
    return relay.linear(relay.relu(relay.linear(z, 16)), 30), mean, log_std


@relay
def vae_loss(x, key):
    logits, mean, log_std = vae(x, key)
    told = 0.5 * np.sum(np.exp(2 * log_std) + mean**2 - 1 - 2 * log_std)
    return relay.sigmoid_cross_entropy(logits, x, reduction="sum") + told


@relay
def vae_step(model, optimizer, x, key):
    keys = relay.random.split(key, len(x))
    value, g = relay.value_and_grad(model, relay.batch_mean(vae_loss), (x, keys))
    optimizer.step(g)
    return value


def random_keys(rng):
    model, x = relay.create_model(vae, seed=0), rng.random((8, 30), np.float32)
    optimizer = relay.optim.adam(model)
    return lambda i: vae_step(model, optimizer, x, relay.random.key(i))


@relay_model
def gpt(ids: Tensor[Int, ("n",)]):
    x = relay.embedding(ids, 20, 16) + relay.parameter("places", (16, 16))[: len(ids)]
    for _ in range(2):
        h = relay.layer_norm(x, unshared=True)
        x = x + relay.dropout(relay.multi_head_attention(h, 2, causal=True, unshared=True), 0.1)
        h = relay.linear(relay.layer_norm(x, unshared=True), 32, unshared=True)
        x = x + relay.linear(relay.gelu(h), 16, unshared=True)
    return relay.linear(x, 20)


@relay
def gpt_loss(ids: Tensor[Int, ("n",)], following: Tensor[Int, ("n",)]) -> Float:
    return np.mean(relay.softmax_cross_entropy(gpt(ids), following))


@relay
def gpt_step(model, optimizer, ids: Tensor[Int, ("b", "n")], following: Tensor[Int, ("b", "n")]):
    value, g = relay.value_and_grad(model, relay.batch_mean(gpt_loss), (ids, following))
    optimizer.step(relay.optim.clip_by_global_norm(g, 1.0))
    return value


def texts(rng):
    """Batches of other sizes at every step, for one program."""
    model = relay.create_model(gpt, seed=0)
    optimizer = relay.optim.adamw(model, lr=1e-3)

    def step(i):
        ids = rng.integers(20, size=(1 + i % 3, 5 + i % 12))
        gpt_step(model, optimizer, ids[:, :-1].copy(), ids[:, 1:].copy())

    return step


@relay
def sizes_step(w, x, n, least):
    def loss(w):
        y = w[:n] * x[:n]
        z = y[y > least]
        out = np.zeros(n)
        i = 0
        while i < len(z):
            out[i] = z[i] ** 2
            i += 1
        return np.sum(out) + 0.01 * np.sum(np.repeat(y, 2))

    value, g = value_and_grad(loss)(w)
    return value, w - 0.001 * g, np.unique(np.floor(x[:n] * 4))


def sizes(rng):
    """Arrays whose sizes values decide."""
    w, x = np.ones(400), rng.standard_normal(400)

    def step(i):
        nonlocal w
        _, w, _ = sizes_step(w, x, 50 + i * 37 % 350, 0.1)

    return step


@relay
def positive(n, x):
    out = []
    for i in range(n):
        if x[i] > 0.0:
            out.append(x[i] * 2.0)
    return out


def lists(rng):
    x = rng.standard_normal(300)
    return lambda i: positive(i % 300, x)


def leak(rng):
    """Keeps a few numbers of each step."""
    kept = []
    return lambda i: kept.append(np.arange(10.0))


PROGRAMS = {f.__name__: f for f in (trees, images, fit, random_keys, texts, sizes, lists)}


def resident() -> int:
    """KiB of memory that this process has resident."""
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def measure(name: str, steps: int) -> list[int]:
    """What is resident after a tenth of the steps, and after each quarter of the others."""
    step, found = {**PROGRAMS, "leak": leak}[name](np.random.default_rng(0)), []
    first = steps // 10
    for part in range(PARTS + 1):
        rest = steps - first
        for i in range(0 if part == 0 else first + (part - 1) * rest // PARTS, first + part * rest // PARTS):
            step(i)
        found.append(resident())
    return found


def measured(names: list[str], steps: int) -> dict[str, list[int]]:
    """`measure` of several programs, one after the other in a fresh process."""
    words = [sys.executable, "-m", "tests.programs.test_memory_of_steps", str(steps), *names]
    # More than one arena of malloc would make figures depend on which thread ran first.
    done = subprocess.run(
        words, cwd=ROOT, env={**os.environ, "MALLOC_ARENA_MAX": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {name: list(map(int, figures)) for name, *figures in map(str.split, done.stdout.splitlines())}


linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells what is resident")


@linux
def test_a_few_thousand_steps():
    found = measured(["trees", "sizes", "lists"], 4000)
    assert {name: figures[-1] - figures[1] < ALLOWED for name, figures in found.items()} == dict.fromkeys(
        ("trees", "sizes", "lists"), True
    ), found


@linux
def test_a_leak_would_be_seen():
    """One array of a few numbers for each step is more than what is allowed."""
    (figures,) = measured(["leak"], 20_000).values()
    assert figures[-1] - figures[1] > ALLOWED


@linux
@pytest.mark.campaign
@pytest.mark.parametrize("name", PROGRAMS)
def test_twenty_thousand_steps(name):
    (figures,) = measured([name], 20_000).values()
    assert figures[-1] - figures[1] < ALLOWED, figures


if __name__ == "__main__":
    for each in sys.argv[2:]:
        print(each, *measure(each, int(sys.argv[1])), flush=True)
