"""The networks in JAX, jitted: loops over time are `lax.scan`."""

from __future__ import annotations

import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import jax
import jax.numpy as jnp
from jax import lax, nn

from benchmarks.networks.cases import MOBILENET_STRIDES, RESNET_STRIDES
from benchmarks.networks.measure import serve_builders


def inference(function):
    """The program of a function of an input and weights."""

    def build(problem):
        run, weights, (x,) = jax.jit(function), jax.tree.map(jnp.asarray, problem.weights), problem.inputs
        x = jnp.asarray(x)
        return lambda: jax.block_until_ready(run(x, weights))

    return build


def training(loss):
    """The program of a loss and its gradient by all weights."""

    def build(problem):
        run = jax.jit(jax.value_and_grad(loss))
        args = jax.tree.map(jnp.asarray, (problem.weights, *problem.inputs))
        return lambda: jax.block_until_ready(run(*args))

    return build


def conv(x, layer, stride=1, padding=0, groups=1):
    """Convolution, and bias if it has one."""
    sides = ((padding, padding), (padding, padding))
    y = lax.conv_general_dilated(x, layer["weight"], (stride, stride), sides, feature_group_count=groups)
    return y + layer["bias"][:, None, None] if "bias" in layer else y


def dense(x, layer):
    """Dense layer."""
    return x @ layer["weight"].T + layer["bias"]


def pool(x, size, stride, padding=0):
    """Maximum of windows."""
    sides = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride), sides)


def dqn(x, weights):
    """`dqn`"""
    for layer, stride in zip(weights["convs"], (4, 2, 1)):
        x = nn.relu(conv(x, layer, stride))
    first, last = weights["dense"]
    return dense(nn.relu(dense(x.reshape(len(x), -1), first)), last)


def mobilenet(x, weights):
    """`mobilenet`"""
    x = nn.relu(conv(x, weights["first"], 2, 1))
    for block, stride in zip(weights["blocks"], MOBILENET_STRIDES):
        x = nn.relu(conv(x, block["depth"], stride, 1, x.shape[1]))
        x = nn.relu(conv(x, block["point"]))
    return dense(x.mean((2, 3)), weights["dense"])


def resnet18(x, weights):
    """`resnet18`"""
    x = pool(nn.relu(conv(x, weights["first"], 2, 3)), 3, 2, 1)
    for block, stride in zip(weights["blocks"], RESNET_STRIDES):
        y = conv(nn.relu(conv(x, block["a"], stride, 1)), block["b"], 1, 1)
        x = nn.relu((conv(x, block["down"], stride) if "down" in block else x) + y)
    return dense(x.mean((2, 3)), weights["dense"])


def vgg16(x, weights):
    """`vgg16`"""
    for stage in weights["stages"]:
        for layer in stage:
            x = nn.relu(conv(x, layer, 1, 1))
        x = pool(x, 2, 2)
    first, second, last = weights["dense"]
    return dense(nn.relu(dense(nn.relu(dense(x.reshape(len(x), -1), first)), second)), last)


def resnet18_loss(weights, x, targets):
    """`resnet18_step`"""

    def scaled(x, layer, stride=1, padding=0):
        return conv(x, layer, stride, padding) * layer["scale"] + layer["shift"]

    x = pool(nn.relu(scaled(x, weights["first"], 2, 3)), 3, 2, 1)
    for block, stride in zip(weights["blocks"], RESNET_STRIDES):
        y = scaled(nn.relu(scaled(x, block["a"], stride, 1)), block["b"], 1, 1)
        x = nn.relu((scaled(x, block["down"], stride) if "down" in block else x) + y)
    return jnp.mean((dense(x.mean((2, 3)), weights["dense"]) - targets) ** 2)


def rnn(xs, w):
    """`rnn`"""

    def step(h, x):
        return jnp.tanh(w["w_ih"] @ x + w["b_ih"] + w["w_hh"] @ h + w["b_hh"]), None

    return lax.scan(step, jnp.zeros(w["w_hh"].shape[1]), xs)[0]


def gru(xs, w):
    """`gru`"""

    def step(h, x):
        a, b = jnp.split(w["w_ih"] @ x + w["b_ih"], 3), jnp.split(w["w_hh"] @ h + w["b_hh"], 3)
        reset, update = nn.sigmoid(a[0] + b[0]), nn.sigmoid(a[1] + b[1])
        return (1.0 - update) * jnp.tanh(a[2] + reset * b[2]) + update * h, None

    return lax.scan(step, jnp.zeros(w["w_hh"].shape[1]), xs)[0]


def lstm_cell(gates, c):
    """The next output and state."""
    add, keep, new, out = jnp.split(gates, 4, -1)
    c = nn.sigmoid(keep) * c + nn.sigmoid(add) * jnp.tanh(new)
    return nn.sigmoid(out) * jnp.tanh(c), c


def lstm_layer(xs, w, shape):
    """The outputs of all steps; the products with the inputs of all steps are one."""
    inputs = xs @ w["w_ih"].T + w["b_ih"] + w["b_hh"]

    def step(state, x):
        h, c = lstm_cell(x + state[0] @ w["w_hh"].T, state[1])
        return (h, c), h

    start = jnp.zeros(shape)
    return lax.scan(step, (start, start), inputs)[1]


def lstm(xs, weights):
    """`lstm`"""
    for w in weights:
        xs = lstm_layer(xs, w, xs.shape[1:])
    return xs[-1]


def lstm_loss(weights, xs, targets):
    """`lstm_step`"""
    for w in weights:
        xs = lstm_layer(xs, w, xs.shape[1:])
    return jnp.mean((xs - targets) ** 2)


def charrnn(problem):
    """`charrnn`"""
    weights, count = jax.tree.map(jnp.asarray, problem.weights), problem.outputs

    @jax.jit
    def run(letter, w):
        def step(state, _):
            letter, h = state
            h = jnp.tanh(w["w_ih"] @ w["embedding"][letter] + w["b_ih"] + w["w_hh"] @ h + w["b_hh"])
            letter = jnp.argmax(dense(h, w["out"]))
            return (letter, h), letter

        return lax.scan(step, (letter, jnp.zeros_like(w["b_hh"])), None, count)[1]

    first = jnp.asarray(problem.inputs[0], jnp.int32)
    return lambda: jax.block_until_ready(run(first, weights))


BUILDERS = {
    **{f.__name__: inference(f) for f in (dqn, mobilenet, resnet18, vgg16, rnn, gru, lstm)},
    "charrnn": charrnn,
    "lstm_step": training(lstm_loss),
    "resnet18_step": training(resnet18_loss),
}

if __name__ == "__main__":
    serve_builders(BUILDERS)
