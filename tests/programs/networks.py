"""Networks of any depth and width, as Python text: what `test_deep_networks` compiles, each in a process of its own.

    python -m tests.programs.networks residual 30

compiles the loss and its gradient natively, and exits with an error unless they are what the interpreter says.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HEADER = "import numpy as np\n\nimport myia_relay as relay\nfrom myia_relay import value_and_grad\n\n\n"
FOOTER = """

def step(p, x):
    value, slopes = value_and_grad(loss)(p, x)
    return value, slopes, {key: p[key] - np.float32(0.1) * slopes[key] for key in p}
"""
Network = tuple[list[str], dict[str, Any], np.ndarray]


class Weights(dict):
    """Parameters by name, made as they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(1)

    def add(self, name: str, *shape: int) -> str:
        """Make a parameter; returns the expression that reads it."""
        self[name] = self.array(*shape)
        return f"p[{name!r}]"

    def array(self, *shape: int) -> np.ndarray:
        """Small normal numbers."""
        return (self.rng.standard_normal(shape) * 0.1).astype(np.float32)


def residual(depth: int) -> Network:
    """Residual blocks of two convolutions on small images, which go row by row."""
    w, lines = Weights(), []
    for k in range(depth):
        a, b = w.add(f"a{k}", 8, 8, 3, 3), w.add(f"b{k}", 8, 8, 3, 3)
        lines += [f"y = relay.relu(relay.conv2d(x, {a}, padding=1))"]
        lines += [f"x = relay.relu(x + relay.conv2d(y, {b}, padding=1))"]
    return lines, w, w.array(64, 8, 2, 2)


def resnet(depth: int) -> Network:
    """Four stages of so many basic blocks with batch normalisation, as in ResNet-18, down to images of two by two."""
    w = Weights()
    lines = ["def normal(x, scale, shift):", "    apart = x - np.mean(x, axis=(0, 2, 3), keepdims=True)"]
    lines += ["    spread = np.sqrt(np.mean(apart * apart, axis=(0, 2, 3), keepdims=True) + np.float32(1e-5))"]
    lines += ["    return apart / spread * np.reshape(scale, (1, -1, 1, 1)) + np.reshape(shift, (1, -1, 1, 1))"]

    def convolved(name: str, x: str, old: int, new: int, size: int, stride: int = 1) -> str:
        filters = w.add(name, new, old, size, size)
        scale, shift = w.add(f"{name}_scale", new), w.add(f"{name}_shift", new)
        w[f"{name}_scale"] += np.float32(1)
        return f"normal(relay.conv2d({x}, {filters}, strides={stride}, padding={size // 2}), {scale}, {shift})"

    old = 16
    lines += [f"x = relay.max_pool(relay.relu({convolved('stem', 'x', 3, old, 7, 2)}), 2)"]
    for stage, new in enumerate((16, 32, 64, 128)):
        for k in range(depth):
            name, stride = f"s{stage}_{k}", 2 if stage and not k else 1
            lines += [f"y = relay.relu({convolved(f'{name}_a', 'x', old, new, 3, stride)})"]
            lines += [f"y = {convolved(f'{name}_b', 'y', new, new, 3)}"]
            if new != old:
                lines += [f"x = {convolved(f'{name}_short', 'x', old, new, 1, stride)}"]
            lines, old = [*lines, "x = relay.relu(x + y)"], new
    lines += [f"x = np.mean(x, axis=(2, 3)) @ {w.add('dense', old, 10)} + {w.add('bias', 10)}"]
    lines += ["most = np.max(x, axis=1, keepdims=True)"]
    lines += ["x = x - most - np.log(np.sum(np.exp(x - most), axis=1, keepdims=True))"]
    return [*lines, "return -np.mean(x[np.arange(8), np.arange(8)])"], w, w.array(8, 3, 64, 64)


def residual_rows(depth: int) -> Network:
    """The same of elementwise functions on rows of three numbers."""
    w, lines = Weights(), []
    for k in range(depth):
        a, b, c = (w.add(f"{name}{k}", 3) for name in "abc")
        lines += [f"y = np.sqrt(x * x + {a}) - {b}", f"x = x + y * {c}"]
    return lines, w, w.array(64, 3)


def transformer(depth: int) -> Network:
    """Layers of attention and two dense layers, each with a residual connection."""
    w, lines = Weights(), []
    for k in range(depth):
        q, key, v, o = (w.add(f"{name}{k}", 8, 8) for name in "qkvo")
        a, b = w.add(f"a{k}", 8, 16), w.add(f"b{k}", 16, 8)
        lines += ["m = x - np.mean(x, axis=-1, keepdims=True)"]
        lines += ["m = m / np.sqrt(np.mean(m * m, axis=-1, keepdims=True) + np.float32(1e-5))"]
        lines += [f"s = relay.softmax(np.matmul(m @ {q}, np.swapaxes(m @ {key}, -1, -2)), axis=-1)"]
        lines += [f"x = x + np.matmul(s, m @ {v}) @ {o}"]
        lines += [f"x = x + np.maximum(x @ {a}, np.float32(0.0)) @ {b}"]
    return lines, w, w.array(2, 4, 8)


def inception(depth: int) -> Network:
    """Wide layers: sixteen convolutions of the same input, put together."""
    w, lines = Weights(), []
    for k in range(depth):
        for j in range(16):
            size = 1 + 2 * (j % 2)
            lines += [f"y{j} = relay.relu(relay.conv2d(x, {w.add(f'w{k}_{j}', 1, 16, size, size)}, padding={j % 2}))"]
        lines += ["x = np.concatenate([" + ", ".join(f"y{j}" for j in range(16)) + "], axis=1)"]
    return lines, w, w.array(2, 16, 4, 4)


def dense(depth: int) -> Network:
    """Every layer reads all layers before it, added up."""
    w, lines = Weights(), ["h0 = x"]
    for k in range(depth):
        before = " + ".join(f"h{j}" for j in range(k + 1))
        lines += [f"h{k + 1} = np.tanh(({before}) @ {w.add(f'w{k}', 4, 4)})"]
    return [*lines, f"x = h{depth}"], w, w.array(8, 4)


def unet(depth: int) -> Network:
    """Down and up again, each level up reading what its level down has made."""
    w, lines = Weights(), []
    for k in range(depth):
        lines += [f"s{k} = relay.relu(relay.conv2d(x, {w.add(f'd{k}', 2, 2, 3, 3)}, padding=1))"]
        lines += [f"x = relay.max_pool(s{k}, 2)"]
    for k in reversed(range(depth)):
        lines += [f"x = np.concatenate([np.repeat(np.repeat(x, 2, axis=2), 2, axis=3), s{k}], axis=1)"]
        lines += [f"x = relay.relu(relay.conv2d(x, {w.add(f'u{k}', 2, 4, 3, 3)}, padding=1))"]
    return lines, w, w.array(2, 2, 2**depth, 2**depth)


def stencil(depth: int) -> Network:
    """Elementwise operations on an array and on itself moved, which fusion could write out again and again."""
    w = Weights()
    lines = [f"x = x * {w.add('a', 33)} + x[::-1] * np.float32(0.5) - np.roll(x, 1)"]
    return lines * depth, w, w.array(33)


def counter(depth: int) -> Network:
    """Integers of a loop, each used twice by the next."""
    w = Weights()
    w.add("a", 4)
    lines = ["n = 0", "for i in range(6):", "    j = i"]
    lines += ["    j = (j + j) - (j - i)"] * depth
    return [*lines, "    n = n + j", "    x = x * p['a'][n % 4]"], w, w.array(5)


def nested(depth: int) -> Network:
    """Functions in functions, each of which reads what all around it have made."""
    w, lines = Weights(), []
    w.add("a", 4)
    for k in range(depth):
        before = f" + y{k - 1}" if k else ""
        lines += ["    " * k + f"def f{k}():", "    " * (k + 1) + f"y{k} = x * p['a'][{k % 4}]{before}"]
    lines += ["    " * depth + "return " + " + ".join(f"y{k}" for k in range(depth))]
    lines += ["    " * k + f"return f{k}()" for k in reversed(range(1, depth))]
    return [*lines, "x = f0()"], w, w.array(5)


NETWORKS: dict[str, Callable[[int], Network]] = {
    f.__name__: f
    for f in (residual, resnet, residual_rows, transformer, inception, dense, unet, stencil, counter, nested)
}


def source(lines: list[str]) -> str:
    """A module with the loss of a network, of mean squares unless it says what, and `step`, one of gradient descent."""
    body = lines if lines[-1].startswith("return ") else [*lines, "return np.mean(x * x)"]
    return HEADER + "\n".join(["def loss(p, x):", *("    " + line for line in body)]) + FOOTER


def main(name: str, depth: int) -> None:
    """Compile a network natively, and compare it with the interpreter."""
    from myia_relay import relay

    lines, weights, x = NETWORKS[name](depth)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"network_{name}.py"
        path.write_text(source(lines))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        args = (dict(weights), x)
        loss, slopes, updated = relay(module.step)(*args)
        wanted, exact, following = relay(module.step, executor="interpreter")(*args)
    np.testing.assert_allclose(loss, wanted, rtol=1e-4)
    for key in weights:
        np.testing.assert_allclose(slopes[key], exact[key], rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(updated[key], following[key], rtol=1e-3, atol=1e-5)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
