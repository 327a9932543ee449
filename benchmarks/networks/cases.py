"""The networks: their shapes, and weights and inputs drawn from a seed, the same for every system.

Weights are a tree of dicts and lists, in PyTorch's layouts: convolutions (out, in, height, width), dense layers and the
gates of cells (out, in), gates in the order of `torch.nn.GRU` (reset, update, new) and `torch.nn.LSTM` (input, forget, cell,
output). float32. What normalises at inference is folded into the weights. Needs NumPy only.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROWS = {
    "dqn": "deep Q-network on 4 x 84 x 84, batch 1",
    "mobilenet": "MobileNet v1 1.0 on 3 x 224 x 224, batch 1",
    "resnet18": "ResNet-18 on 3 x 224 x 224, batch 1, scales folded",
    "vgg16": "VGG-16 on 3 x 224 x 224, batch 1",
    "rnn": "one layer, 650 wide, 35 steps, the last state",
    "gru": "one layer, 650 wide, 35 steps, the last state",
    "lstm": "two layers, 650 wide, 35 steps, the last state",
    "charrnn": "greedy generation of 200 letters of 100, 128 wide",
    "treelstm": "child-sum TreeLSTM, 150 wide, on sentiment trees",
    "lstm_step": "loss and gradients, two layers, 650 wide, 35 steps of 20",
    "resnet18_step": "loss and gradients on 8 x 3 x 64 x 64, scale and shift as parameters",
    "gpt_step": "loss and gradients, 6 layers, 256 wide, 8 x 128 letters of 65",
    "vae_step": "loss and gradients, 784-400-20-400-784, 128 images",
    "treelstm_step": "loss, gradients and descent for each of the trees in turn, 17,600 words",
    "reinforce_step": "loss and gradients of a policy, 64 cart-poles for 100 steps",
}
"""name -> what it is; rows whose names end in `_step` are steps of training."""

VISION = ("dqn", "mobilenet", "resnet18", "vgg16")
MOBILENET_STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)
MOBILENET_FILTERS = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
RESNET_STRIDES = (1, 1, 2, 1, 2, 1, 2, 1)
RESNET_FILTERS = (64, 64, 128, 128, 256, 256, 512, 512)
RATE = 0.01
"""Of the descent in `treelstm_step`."""
VGG_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))

Tree = Any
"""A word's number, or a pair of trees."""


@dataclass(frozen=True)
class Sizes:
    """How large the networks are.

    Attributes:
        narrow: by what the numbers of filters are divided.
        image: height and width of images; of training steps `step_image`.
        hidden: the width of recurrent layers.
        steps: of time.
        batch: of the training step of the LSTM.
        letters, letter_width, generated: of CharRNN.
        words, word_width, tree_width, trees: of TreeLSTM.
        layers, width, heads, context, sequences, symbols: of the transformer.
        pixels, middle, latent, images: of the variational autoencoder.
        poles, moves, units: how many cart-poles, for how long, and the policy's hidden units.
    """

    narrow: int = 1
    image: int = 224
    step_image: int = 64
    hidden: int = 650
    steps: int = 35
    batch: int = 20
    letters: int = 100
    letter_width: int = 128
    generated: int = 200
    words: int = 17_600
    word_width: int = 300
    tree_width: int = 150
    trees: int = 20
    layers: int = 6
    width: int = 256
    heads: int = 8
    context: int = 128
    sequences: int = 8
    symbols: int = 65
    pixels: int = 784
    middle: int = 400
    latent: int = 20
    images: int = 128
    poles: int = 64
    moves: int = 100
    units: int = 64


FULL = Sizes()
TINY = Sizes(16, 32, 16, 24, 5, 3, 10, 12, 7, 30, 8, 6, 2, 2, 16, 2, 6, 2, 9, 12, 10, 3, 4, 8, 40, 5)
"""For tests of the benchmark."""


@dataclass(frozen=True)
class Problem:
    """What every system starts from.

    Attributes:
        weights: a tree of dicts, lists and arrays.
        inputs: arrays, or trees of words.
        outputs: how many classes, letters to generate: a number that the row needs.
    """

    weights: Any
    inputs: tuple
    outputs: int = 0


def load(row: str, tiny: bool = False, data: str | None = None) -> Problem:
    """The weights and inputs of a row.

    Args:
        row: one of `ROWS`.
        tiny: small sizes, for tests.
        data: a folder with `sst/dev.txt.gz`, of which the trees are taken; by default they are drawn.
    """
    sizes = TINY if tiny else FULL
    # With other numbers two entries of a window of ResNet's pooling are equal in float32: which gets the gradient is chance.
    draw = Draw(np.random.default_rng(12 if row == "resnet18_step" else 7))
    if row in ("treelstm", "treelstm_step"):
        problem = tree_lstm(draw, sizes, data)
        return problem if row == "treelstm" else tree_lstm_step(draw, sizes, problem)
    return _MAKERS[row](draw, sizes)


class Draw:
    """Draws weights, so that activations neither vanish nor grow."""

    def __init__(self, rng: np.random.Generator):
        self.rng = rng

    def normal(self, *shape: int, deviation: float = 1.0) -> np.ndarray:
        """Normal numbers, float32."""
        return (deviation * self.rng.standard_normal(shape)).astype(np.float32)

    def conv(self, out: int, per_group: int, size: int, gain: float = 2.0) -> dict[str, np.ndarray]:
        """A convolution with bias."""
        deviation = (gain / (per_group * size * size)) ** 0.5
        return {
            "weight": self.normal(out, per_group, size, size, deviation=deviation),
            "bias": self.normal(out, deviation=0.1),
        }

    def dense(self, out: int, inputs: int, gain: float = 2.0) -> dict[str, np.ndarray]:
        """A dense layer."""
        return {
            "weight": self.normal(out, inputs, deviation=(gain / inputs) ** 0.5),
            "bias": self.normal(out, deviation=0.1),
        }

    def norm(self, width: int) -> dict[str, np.ndarray]:
        """Scale and shift of a normalisation."""
        return {"weight": 1.0 + self.normal(width, deviation=0.1), "bias": self.normal(width, deviation=0.1)}

    def cell(self, gates: int, inputs: int, hidden: int) -> dict[str, np.ndarray]:
        """A recurrent layer: the weights of all gates below each other."""
        rows, deviation = gates * hidden, hidden**-0.5
        return {
            "w_ih": self.normal(rows, inputs, deviation=deviation),
            "w_hh": self.normal(rows, hidden, deviation=deviation),
            "b_ih": self.normal(rows, deviation=0.1),
            "b_hh": self.normal(rows, deviation=0.1),
        }

    def image(self, channels: int, side: int, batch: int = 1) -> np.ndarray:
        """Images."""
        return self.normal(batch, channels, side, side)


def dqn(draw: Draw, s: Sizes) -> Problem:
    """`dqn`; its image is never smaller, since it would not go through."""
    n = s.narrow
    a, b = 32 // n, 64 // n
    convs = [draw.conv(a, 4, 8), draw.conv(b, a, 4), draw.conv(b, b, 3)]
    dense = [draw.dense(512 // n, b * 49), draw.dense(18, 512 // n)]
    return Problem({"convs": convs, "dense": dense}, (draw.image(4, 84),))


def mobilenet(draw: Draw, s: Sizes) -> Problem:
    """`mobilenet`"""
    channels = 32 // s.narrow
    first, blocks = draw.conv(channels, 3, 3), []
    for filters in MOBILENET_FILTERS:
        filters //= s.narrow
        blocks.append({"depth": draw.conv(channels, 1, 3), "point": draw.conv(filters, channels, 1)})
        channels = filters
    weights = {"first": first, "blocks": blocks, "dense": draw.dense(1000 // s.narrow, channels)}
    return Problem(weights, (draw.image(3, s.image),))


def _residual(draw: Draw, s: Sizes, parameters: bool) -> dict[str, Any]:
    """The weights of ResNet-18; with scales and shifts in place of biases, if they are parameters."""

    def conv(out: int, inputs: int, size: int, gain: float = 2.0) -> dict[str, np.ndarray]:
        found = draw.conv(out, inputs, size, gain)
        if not parameters:
            return found
        return {
            "weight": found["weight"],
            "scale": 1.0 + draw.normal(out, 1, 1, deviation=0.1),
            "shift": found["bias"].reshape(-1, 1, 1),
        }

    channels = 64 // s.narrow
    first, blocks = conv(channels, 3, 7), []
    for filters, stride in zip(RESNET_FILTERS, RESNET_STRIDES):
        filters //= s.narrow
        block = {"a": conv(filters, channels, 3), "b": conv(filters, filters, 3, 0.5)}
        if stride != 1 or channels != filters:
            block["down"] = conv(filters, channels, 1, 1.0)
        blocks.append(block)
        channels = filters
    return {"first": first, "blocks": blocks, "dense": draw.dense(1000 // s.narrow, channels)}


def resnet18(draw: Draw, s: Sizes) -> Problem:
    """`resnet18`"""
    return Problem(_residual(draw, s, False), (draw.image(3, s.image),))


def resnet18_step(draw: Draw, s: Sizes) -> Problem:
    """`resnet18_step`: images and what the outputs should be."""
    weights = _residual(draw, s, True)
    return Problem(weights, (draw.image(3, s.step_image, 8), draw.normal(8, 1000 // s.narrow)))


def vgg16(draw: Draw, s: Sizes) -> Problem:
    """`vgg16`"""
    channels, stages = 3, []
    for filters, count in VGG_STAGES:
        stage = []
        for _ in range(count):
            stage.append(draw.conv(filters // s.narrow, channels, 3))
            channels = filters // s.narrow
        stages.append(stage)
    wide, side = 4096 // s.narrow, s.image // 32
    dense = [
        draw.dense(wide, channels * side * side),
        draw.dense(wide, wide),
        draw.dense(1000 // s.narrow, wide),
    ]
    return Problem({"stages": stages, "dense": dense}, (draw.image(3, s.image),))


def _recurrent(gates: int, layers: int):
    def make(draw: Draw, s: Sizes) -> Problem:
        weights = [draw.cell(gates, s.hidden, s.hidden) for _ in range(layers)]
        return Problem(weights if layers > 1 else weights[0], (draw.normal(s.steps, s.hidden),))

    return make


def lstm_step(draw: Draw, s: Sizes) -> Problem:
    """`lstm_step`: inputs and what the outputs of each step should be."""
    weights = [draw.cell(4, s.hidden, s.hidden) for _ in range(2)]
    shape = s.steps, s.batch, s.hidden
    return Problem(weights, (draw.normal(*shape), draw.normal(*shape)))


def gpt_step(draw: Draw, s: Sizes) -> Problem:
    """`gpt_step`: letters, and the letters after them; `outputs` is the number of heads."""
    n = s.width

    def block() -> dict[str, Any]:
        return {
            "norm1": draw.norm(n),
            "qkv": draw.dense(3 * n, n, 1.0),
            "out": draw.dense(n, n, 1.0),
            "norm2": draw.norm(n),
            "up": draw.dense(4 * n, n),
            "down": draw.dense(n, 4 * n, 1.0),
        }

    weights = {
        "letters": draw.normal(s.symbols, n),
        "places": draw.normal(s.context, n, deviation=0.1),
        "blocks": [block() for _ in range(s.layers)],
        "norm": draw.norm(n),
        "head": draw.dense(s.symbols, n, 1.0),
    }
    text = draw.rng.integers(s.symbols, size=(s.sequences, s.context + 1))
    return Problem(weights, (text[:, :-1].copy(), text[:, 1:].copy()), s.heads)


def vae_step(draw: Draw, s: Sizes) -> Problem:
    """`vae_step`: images of numbers in [0, 1), and the noise of the latent variables."""
    weights = {
        "encode": draw.dense(s.middle, s.pixels),
        "mean": draw.dense(s.latent, s.middle, 1.0),
        "spread": draw.dense(s.latent, s.middle, 0.1),
        "decode": draw.dense(s.middle, s.latent),
        "image": draw.dense(s.pixels, s.middle, 1.0),
    }
    return Problem(weights, (draw.rng.random((s.images, s.pixels), np.float32), draw.normal(s.images, s.latent)))


def reinforce_step(draw: Draw, s: Sizes) -> Problem:
    """`reinforce_step`: how the cart-poles start, (4, poles), and the uniform numbers that choose the moves."""
    weights = {"hidden": draw.dense(s.units, 4), "logit": draw.dense(1, s.units, 1.0)}
    return Problem(weights, (draw.normal(4, s.poles, deviation=0.05), draw.rng.random((s.moves, s.poles), np.float32)))


def charrnn(draw: Draw, s: Sizes) -> Problem:
    """`charrnn`: weights, and the first letter."""
    weights = {
        "embedding": draw.normal(s.letters, s.letter_width),
        **draw.cell(1, s.letter_width, s.letter_width),
        "out": draw.dense(s.letters, s.letter_width),
    }
    return Problem(weights, (0,), s.generated)


def tree_lstm(draw: Draw, s: Sizes, data: str | None) -> Problem:
    """`treelstm`: weights of a cell whose inner nodes have no word, and trees."""
    wide = s.tree_width
    deviation = wide**-0.5
    weights = {
        "embedding": draw.normal(s.words, s.word_width),
        "w": draw.normal(3 * wide, s.word_width, deviation=s.word_width**-0.5),  # of the input, output and update gates
        "u": draw.normal(3 * wide, wide, deviation=deviation),
        "b": draw.normal(3 * wide, deviation=0.1),
        "u_forget": draw.normal(wide, wide, deviation=deviation),
        "b_forget": draw.normal(wide, deviation=0.1),
    }
    trees = read_trees(Path(data) / "sst" / "dev.txt.gz", s) if data else draw_trees(draw.rng, s)
    return Problem(weights, tuple(trees))


def tree_lstm_step(draw: Draw, s: Sizes, problem: Problem) -> Problem:
    """`treelstm_step`: the same with a layer that chooses one of 5 classes, and trees with their classes."""
    classes = draw.rng.integers(5, size=len(problem.inputs)).tolist()
    weights = {**problem.weights, "out": draw.dense(5, s.tree_width)}
    return Problem(weights, tuple(zip(problem.inputs, classes)), 5)


def draw_trees(rng: np.random.Generator, s: Sizes) -> list[Tree]:
    """Binary trees of as many leaves as sentences have words, of any shape."""

    def tree(leaves: int) -> Tree:
        if leaves == 1:
            return int(rng.integers(s.words))
        left = int(rng.integers(1, leaves))
        return tree(left), tree(leaves - left)

    return [tree(int(rng.integers(8, 32))) for _ in range(s.trees)]


def read_trees(path: Path, s: Sizes) -> list[Tree]:
    """The first trees of a file in the bracketed form of the Penn treebank, words numbered as they come."""
    numbers: dict[str, int] = {}

    def read(tokens: list[str]) -> Tree:
        tokens.pop()  # (
        tokens.pop()  # the label
        if tokens[-1] == "(":
            parts = read(tokens), read(tokens)
        else:
            parts = numbers.setdefault(tokens.pop(), len(numbers)) % s.words
        tokens.pop()  # )
        return parts

    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [line for _, line in zip(range(s.trees), file)]
    return [read(line.replace("(", " ( ").replace(")", " ) ").split()[::-1]) for line in lines]


_MAKERS = {
    "dqn": dqn,
    "mobilenet": mobilenet,
    "resnet18": resnet18,
    "vgg16": vgg16,
    "rnn": _recurrent(1, 1),
    "gru": _recurrent(3, 1),
    "lstm": _recurrent(4, 2),
    "charrnn": charrnn,
    "lstm_step": lstm_step,
    "resnet18_step": resnet18_step,
    "gpt_step": gpt_step,
    "vae_step": vae_step,
    "reinforce_step": reinforce_step,
}


def flat(tree: Any) -> list[np.ndarray]:
    """The arrays of a tree of dicts, lists and tuples: dicts by their names, sorted."""
    if isinstance(tree, dict):
        return [a for name in sorted(tree) for a in flat(tree[name])]
    if isinstance(tree, (list, tuple)):
        return [a for part in tree for a in flat(part)]
    return [np.asarray(tree)]


def mapped(function: Any, tree: Any) -> Any:
    """The same tree with `function` of every array."""
    if isinstance(tree, dict):
        return {name: mapped(function, part) for name, part in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(mapped(function, part) for part in tree)
    return function(tree)
