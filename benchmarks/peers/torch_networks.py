"""The networks in PyTorch: its own layers and functions, images channels last; compiled too (`--variant compile`)."""

from __future__ import annotations

import sys

from benchmarks.workload import prepare_process

if __name__ == "__main__":
    prepare_process(sys.argv)

import torch
from torch.nn import functional as F

from benchmarks.adbench.measure import variant
from benchmarks.networks.cases import MOBILENET_STRIDES, RATE, RESNET_STRIDES, mapped
from benchmarks.networks.measure import serve_builders

VARIANT = variant()
if "--threads" in sys.argv:
    torch.set_num_threads(int(sys.argv[sys.argv.index("--threads") + 1]))


def tensor(array):
    """Of an array; images and filters channels last, which is quicker."""
    found = torch.tensor(array)
    return found.contiguous(memory_format=torch.channels_last) if found.ndim == 4 else found


def compiled(function):
    """The function, through torch.compile in that variant."""
    return torch.compile(function, dynamic=False) if VARIANT == "compile" else function


def inference(function):
    """The program of a function of an input and weights."""

    def build(problem):
        run, weights, (x,) = compiled(function), mapped(tensor, problem.weights), map(tensor, problem.inputs)

        def call():
            with torch.inference_mode():
                return run(x, weights).numpy()

        return call

    return build


def training(loss):
    """The program of a loss and its gradient by all weights."""

    def build(problem):
        weights = mapped(lambda array: tensor(array).requires_grad_(), problem.weights)
        leaves, inputs, run = leaves_of(weights), [tensor(a) for a in problem.inputs], compiled(loss)
        inputs += [problem.outputs] if problem.outputs else []

        def call():
            value = run(weights, *inputs)
            return [value.detach().numpy(), *(g.numpy() for g in torch.autograd.grad(value, leaves))]

        return call

    return build


def leaves_of(tree):
    """The tensors of a tree, in the order of `cases.flat`."""
    if isinstance(tree, dict):
        return [t for name in sorted(tree) for t in leaves_of(tree[name])]
    return [t for part in tree for t in leaves_of(part)] if isinstance(tree, (list, tuple)) else [tree]


# Images.


def conv(x, layer, stride=1, padding=0, groups=1):
    """Convolution and bias."""
    return F.conv2d(x, layer["weight"], layer["bias"], stride, padding, groups=groups)


def dense(x, layer):
    """Dense layer."""
    return F.linear(x, layer["weight"], layer["bias"])


def dqn(x, weights):
    """`dqn`"""
    for layer, stride in zip(weights["convs"], (4, 2, 1)):
        x = F.relu(conv(x, layer, stride))
    first, last = weights["dense"]
    return dense(F.relu(dense(x.flatten(1), first)), last)


def mobilenet(x, weights):
    """`mobilenet`"""
    x = F.relu(conv(x, weights["first"], 2, 1))
    for block, stride in zip(weights["blocks"], MOBILENET_STRIDES):
        x = F.relu(conv(x, block["depth"], stride, 1, x.shape[1]))
        x = F.relu(conv(x, block["point"]))
    return dense(x.mean((2, 3)), weights["dense"])


def resnet18(x, weights):
    """`resnet18`"""
    x = F.max_pool2d(F.relu(conv(x, weights["first"], 2, 3)), 3, 2, 1)
    for block, stride in zip(weights["blocks"], RESNET_STRIDES):
        y = conv(F.relu(conv(x, block["a"], stride, 1)), block["b"], 1, 1)
        x = F.relu((conv(x, block["down"], stride) if "down" in block else x) + y)
    return dense(x.mean((2, 3)), weights["dense"])


def vgg16(x, weights):
    """`vgg16`"""
    for stage in weights["stages"]:
        for layer in stage:
            x = F.relu(conv(x, layer, 1, 1))
        x = F.max_pool2d(x, 2)
    first, second, last = weights["dense"]
    return dense(F.relu(dense(F.relu(dense(x.flatten(1), first)), second)), last)


def resnet18_loss(weights, x, targets):
    """`resnet18_step`"""

    def scaled(x, layer, stride=1, padding=0):
        return F.conv2d(x, layer["weight"], None, stride, padding) * layer["scale"] + layer["shift"]

    x = F.max_pool2d(F.relu(scaled(x, weights["first"], 2, 3)), 3, 2, 1)
    for block, stride in zip(weights["blocks"], RESNET_STRIDES):
        y = scaled(F.relu(scaled(x, block["a"], stride, 1)), block["b"], 1, 1)
        x = F.relu((scaled(x, block["down"], stride) if "down" in block else x) + y)
    return F.mse_loss(dense(x.mean((2, 3)), weights["dense"]), targets)


# Recurrent networks: the layers of `torch.nn`, the best that it has.


def layer(kind, weights, **options):
    """A layer of `torch.nn` with these weights."""
    stack = weights if isinstance(weights, list) else [weights]
    hidden, inputs = stack[0]["w_hh"].shape[1], stack[0]["w_ih"].shape[1]
    module = kind(inputs, hidden, num_layers=len(stack), **options)
    with torch.no_grad():
        for k, part in enumerate(stack):
            for name, value in part.items():
                what, which = name.split("_")
                getattr(module, f"{ {'w': 'weight', 'b': 'bias'}[what] }_{which}_l{k}").copy_(torch.tensor(value))
    return module


def recurrent(kind):
    """The program of a recurrent layer: its last output."""

    def build(problem):
        run, xs = compiled(layer(kind, problem.weights)), torch.tensor(problem.inputs[0])

        def call():
            with torch.inference_mode():
                return run(xs)[0][-1].numpy()

        return call

    return build


def lstm_step(problem):
    """`lstm_step`"""
    module, (xs, targets) = layer(torch.nn.LSTM, problem.weights), map(torch.tensor, problem.inputs)
    parameters = [
        getattr(module, f"{n}_l{k}") for k in range(2) for n in ("bias_hh", "bias_ih", "weight_hh", "weight_ih")
    ]
    run = compiled(lambda: F.mse_loss(module(xs)[0], targets))

    def call():
        value = run()
        return [value.detach().numpy(), *(g.numpy() for g in torch.autograd.grad(value, parameters))]

    return call


def charrnn(problem):
    """`charrnn`"""
    weights, count = mapped(torch.tensor, problem.weights), problem.outputs

    def step(letter, h):
        x = weights["embedding"][letter]
        h = torch.tanh(F.linear(x, weights["w_ih"], weights["b_ih"]) + F.linear(h, weights["w_hh"], weights["b_hh"]))
        return torch.argmax(dense(h, weights["out"])), h

    step = compiled(step)

    def call():
        with torch.inference_mode():
            letter, h = torch.tensor(problem.inputs[0]), torch.zeros_like(weights["b_hh"])
            letters = torch.empty(count, dtype=torch.int64)
            for i in range(count):
                letter, h = step(letter, h)
                letters[i] = letter
            return letters.numpy()

    return call


def tree_states(w):
    """The state of a tree: a call of a cell for each node, from the leaves up."""
    nothing = torch.zeros_like(w["b_forget"])

    def finish(gates, kept):
        add, out, new = gates.chunk(3)
        c = torch.sigmoid(add) * torch.tanh(new) + kept
        return torch.sigmoid(out) * torch.tanh(c), c

    def leaf(word):
        x = F.embedding(word, w["embedding"], sparse=True)  # the gradient has only the rows that were read
        return finish(F.linear(x, w["w"], w["b"]), nothing)

    def node(h1, c1, h2, c2):
        forget1 = torch.sigmoid(F.linear(h1, w["u_forget"], w["b_forget"]))
        forget2 = torch.sigmoid(F.linear(h2, w["u_forget"], w["b_forget"]))
        return finish(F.linear(h1 + h2, w["u"], w["b"]), forget1 * c1 + forget2 * c2)

    leaf, node = compiled(leaf), compiled(node)

    def state(tree):
        return node(*state(tree[0]), *state(tree[1])) if isinstance(tree, tuple) else leaf(tree)

    return state


def treelstm(problem):
    """`treelstm`"""
    state = tree_states(mapped(torch.tensor, problem.weights))
    # Words as tensors: as numbers, a compiled leaf would be compiled for each of them.
    trees = [words(tree) for tree in problem.inputs]

    def call():
        with torch.inference_mode():
            return [tuple(part.numpy() for part in state(tree)) for tree in trees]

    return call


def treelstm_step(problem):
    """`treelstm_step`: plain descent, which touches only the rows of words that a tree has."""
    w = mapped(lambda array: torch.tensor(array).requires_grad_(), problem.weights)
    state, leaves = tree_states(w), leaves_of(w)
    optimiser = torch.optim.SGD(leaves, RATE)
    examples = [(words(tree), torch.tensor([label])) for tree, label in problem.inputs]

    def call():
        total = 0.0
        for tree, label in examples:
            loss = F.cross_entropy(dense(state(tree)[0], w["out"])[None], label)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            total += loss.item()
        return [total, *(leaf.detach().numpy() for leaf in leaves)]

    return call


def words(tree):
    """The tree with tensors for its words."""
    return tuple(map(words, tree)) if isinstance(tree, tuple) else torch.tensor(tree)


def norm(x, layer):
    """Layer normalisation."""
    return F.layer_norm(x, x.shape[-1:], layer["weight"], layer["bias"])


def gpt_loss(weights, letters, following, heads):
    """`gpt_step`"""

    def heads_of(x):
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    x = F.embedding(letters, weights["letters"]) + weights["places"]
    for block in weights["blocks"]:
        q, k, v = map(heads_of, dense(norm(x, block["norm1"]), block["qkv"]).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + dense(y.transpose(1, 2).flatten(2), block["out"])
        x = x + dense(F.gelu(dense(norm(x, block["norm2"]), block["up"])), block["down"])
    scores = dense(norm(x, weights["norm"]), weights["head"])
    return F.cross_entropy(scores.flatten(0, 1), following.flatten())


def vae_loss(weights, images, noise):
    """`vae_step`"""
    h = F.relu(dense(images, weights["encode"]))
    mean, spread = dense(h, weights["mean"]), dense(h, weights["spread"])
    z = mean + torch.exp(0.5 * spread) * noise
    scores = dense(F.relu(dense(z, weights["decode"])), weights["image"])
    error = F.binary_cross_entropy_with_logits(scores, images, reduction="sum")
    return (error - 0.5 * torch.sum(1.0 + spread - mean**2 - torch.exp(spread))) / len(images)


def pushed(x, v, angle, spin, right):
    """Cart-poles after 0.02 s."""
    force = torch.where(right, 10.0, -10.0)
    sine, cosine = torch.sin(angle), torch.cos(angle)
    push = (force + 0.05 * spin**2 * sine) / 1.1
    turn = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine**2 / 1.1))
    speed = push - 0.05 * turn * cosine / 1.1
    return x + 0.02 * v, v + 0.02 * speed, angle + 0.02 * spin, spin + 0.02 * turn


def reinforce_loss(weights, start, draws):
    """`reinforce_step`"""
    x, v, angle, spin = start
    alive = torch.ones_like(x)
    logs, rewards = [], []
    for draw in draws:
        h = torch.tanh(dense(torch.stack((x, v, angle, spin), 1), weights["hidden"]))
        logit = dense(h, weights["logit"])[:, 0]
        right = draw < torch.sigmoid(logit)
        logs.append(-alive * F.softplus(torch.where(right, -logit, logit)))
        rewards.append(alive)
        x, v, angle, spin = pushed(x, v, angle, spin, right)
        alive = alive * ((x.abs() < 2.4) & (angle.abs() < 0.2095))
    future, advantages = torch.zeros_like(alive), []
    for reward in reversed(rewards):
        future = reward + 0.99 * future
        advantages.append(future - future.mean())
    return -torch.sum(torch.stack(logs) * torch.stack(advantages[::-1])) / len(alive)


BUILDERS = {
    **{f.__name__: inference(f) for f in (dqn, mobilenet, resnet18, vgg16)},
    "rnn": recurrent(torch.nn.RNN),
    "gru": recurrent(torch.nn.GRU),
    "lstm": recurrent(torch.nn.LSTM),
    "charrnn": charrnn,
    "treelstm": treelstm,
    "treelstm_step": treelstm_step,
    "lstm_step": lstm_step,
    "resnet18_step": training(resnet18_loss),
    "gpt_step": training(gpt_loss),
    "vae_step": training(vae_loss),
    "reinforce_step": training(reinforce_loss),
}

if __name__ == "__main__":
    serve_builders(BUILDERS)
