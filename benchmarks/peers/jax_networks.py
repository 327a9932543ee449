"""The networks in JAX, jitted: loops over time are `lax.scan`."""

from __future__ import annotations

import functools
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


def norm(x, layer):
    """Layer normalisation."""
    return nn.standardize(x, epsilon=1e-5) * layer["weight"] + layer["bias"]


def gpt_loss(weights, letters, following, heads):
    """`gpt_step`"""

    def heads_of(x):
        return x.reshape(*x.shape[:2], heads, -1)

    x = weights["letters"][letters] + weights["places"]
    for block in weights["blocks"]:
        q, k, v = map(heads_of, jnp.split(dense(norm(x, block["norm1"]), block["qkv"]), 3, -1))
        y = nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + dense(y.reshape(x.shape), block["out"])
        x = x + dense(nn.gelu(dense(norm(x, block["norm2"]), block["up"]), approximate=False), block["down"])
    scores = nn.log_softmax(dense(norm(x, weights["norm"]), weights["head"]))
    return -jnp.mean(jnp.take_along_axis(scores, following[..., None], -1))


def gpt_step(problem):
    """`gpt_step`"""
    return training(functools.partial(gpt_loss, heads=problem.outputs))(problem)


def vae_loss(weights, images, noise):
    """`vae_step`"""
    h = nn.relu(dense(images, weights["encode"]))
    mean, spread = dense(h, weights["mean"]), dense(h, weights["spread"])
    z = mean + jnp.exp(0.5 * spread) * noise
    scores = dense(nn.relu(dense(z, weights["decode"])), weights["image"])
    error = jnp.sum(nn.softplus(scores) - images * scores)
    return (error - 0.5 * jnp.sum(1.0 + spread - mean**2 - jnp.exp(spread))) / len(images)


def pushed(x, v, angle, spin, right):
    """Cart-poles after 0.02 s."""
    force = jnp.where(right, 10.0, -10.0)
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    push = (force + 0.05 * spin**2 * sine) / 1.1
    turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
    speed = push - 0.05 * turn * cosine / 1.1
    return x + 0.02 * v, v + 0.02 * speed, angle + 0.02 * spin, spin + 0.02 * turn


def reinforce_loss(weights, start, draws):
    """`reinforce_step`"""

    def move(state, draw):
        alive, x, v, angle, spin = state
        h = jnp.tanh(dense(jnp.stack((x, v, angle, spin), 1), weights["hidden"]))
        logit = dense(h, weights["logit"])[:, 0]
        right = draw < nn.sigmoid(logit)
        log = -alive * nn.softplus(jnp.where(right, -logit, logit))
        x, v, angle, spin = pushed(x, v, angle, spin, right)
        after = alive * ((jnp.abs(x) < 2.4) & (jnp.abs(angle) < 0.2095))
        return (after, x, v, angle, spin), (log, alive)

    def back(future, reward):
        future = reward + 0.99 * future
        return future, future - jnp.mean(future)

    alive = jnp.ones_like(start[0])
    _, (logs, rewards) = lax.scan(move, (alive, *start), draws)
    _, advantages = lax.scan(back, jnp.zeros_like(alive), rewards, reverse=True)
    return -jnp.sum(logs * advantages) / len(alive)


BUILDERS = {
    **{f.__name__: inference(f) for f in (dqn, mobilenet, resnet18, vgg16, rnn, gru, lstm)},
    "charrnn": charrnn,
    "lstm_step": training(lstm_loss),
    "resnet18_step": training(resnet18_loss),
    "gpt_step": gpt_step,
    "vae_step": training(vae_loss),
    "reinforce_step": training(reinforce_loss),
}

if __name__ == "__main__":
    serve_builders(BUILDERS)
