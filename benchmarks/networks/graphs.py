"""The networks as ONNX graphs, with their weights; inference only. Needs the package onnx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from .cases import MOBILENET_STRIDES, RESNET_STRIDES, Problem


class Net:
    """A graph under construction, of one input."""

    def __init__(self):
        self.nodes, self.weights = [], []

    def weight(self, array):
        """The name of a constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, *inputs, outputs=1, **attributes):
        """The name of an operator's last output."""
        names = [f"t{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[-1]

    def conv(self, x, layer, stride=1, padding=0, groups=1):
        """Convolution and bias."""
        size = layer["weight"].shape[2]
        return self.op(
            *("Conv", x, self.weight(layer["weight"]), self.weight(layer["bias"])),
            kernel_shape=[size, size],
            strides=[stride, stride],
            pads=[padding] * 4,
            group=groups,
        )

    def relu(self, x):
        """ReLU."""
        return self.op("Relu", x)

    def dense(self, x, layer):
        """Dense layer."""
        return self.op("Gemm", x, self.weight(layer["weight"]), self.weight(layer["bias"]), transB=1)

    def mean(self, x):
        """Of every plane."""
        return self.op("Flatten", self.op("GlobalAveragePool", x))

    def model(self, x, result):
        """The whole as a model of the input `x`."""
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def vision(function):
    """The graph of a network on an image."""

    def build(problem):
        net, (x,) = Net(), problem.inputs
        return net.model(x, function(net, "x", problem.weights))

    return build


def dqn(net, x, weights):
    """`dqn`"""
    for layer, stride in zip(weights["convs"], (4, 2, 1)):
        x = net.relu(net.conv(x, layer, stride))
    first, last = weights["dense"]
    return net.dense(net.relu(net.dense(net.op("Flatten", x), first)), last)


def mobilenet(net, x, weights):
    """`mobilenet`"""
    x = net.relu(net.conv(x, weights["first"], 2, 1))
    for block, stride in zip(weights["blocks"], MOBILENET_STRIDES):
        x = net.relu(net.conv(x, block["depth"], stride, 1, len(block["depth"]["weight"])))
        x = net.relu(net.conv(x, block["point"]))
    return net.dense(net.mean(x), weights["dense"])


def resnet18(net, x, weights):
    """`resnet18`"""
    x = net.relu(net.conv(x, weights["first"], 2, 3))
    x = net.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for block, stride in zip(weights["blocks"], RESNET_STRIDES):
        y = net.conv(net.relu(net.conv(x, block["a"], stride, 1)), block["b"], 1, 1)
        x = net.relu(net.op("Add", net.conv(x, block["down"], stride) if "down" in block else x, y))
    return net.dense(net.mean(x), weights["dense"])


def vgg16(net, x, weights):
    """`vgg16`"""
    for stage in weights["stages"]:
        for layer in stage:
            x = net.relu(net.conv(x, layer, 1, 1))
        x = net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    first, second, last = weights["dense"]
    x = net.relu(net.dense(net.op("Flatten", x), first))
    return net.dense(net.relu(net.dense(x, second)), last)


def recurrent(kind, order, **attributes):
    """The graph of recurrent layers: the last state.

    Args:
        kind: the operator.
        order: where its gates are in PyTorch's order.
        attributes: of the operator.
    """

    def build(problem):
        net, (xs,) = Net(), problem.inputs
        layers = problem.weights if isinstance(problem.weights, list) else [problem.weights]
        x = "x"
        for k, w in enumerate(layers):
            hidden = w["w_hh"].shape[1]
            rows = np.concatenate([np.arange(g * hidden, (g + 1) * hidden) for g in order])
            bias = np.concatenate([w["b_ih"][rows], w["b_hh"][rows]])[None]
            operands = [net.weight(w["w_ih"][rows][None]), net.weight(w["w_hh"][rows][None]), net.weight(bias)]
            if k + 1 < len(layers):
                net.op(kind, x, *operands, hidden_size=hidden, **attributes)
                x = net.op("Squeeze", net.nodes[-1].output[0], net.weight(np.array([1])))
            else:
                x = net.op(kind, x, *operands, outputs=2, hidden_size=hidden, **attributes)
        return net.model(xs[:, None], net.op("Reshape", x, net.weight(np.array([-1]))))

    return build


GRAPHS: dict[str, Callable[[Problem], Any]] = {
    **{f.__name__: vision(f) for f in (dqn, mobilenet, resnet18, vgg16)},
    "rnn": recurrent("RNN", (0,)),
    "gru": recurrent("GRU", (1, 0, 2), linear_before_reset=1),
    "lstm": recurrent("LSTM", (0, 3, 1, 2)),
}
"""Row -> its model, of a `cases.Problem`."""


def input_of(row: str, problem: Problem) -> np.ndarray:
    """The input of a row's model: recurrent ones take a batch."""
    (x,) = problem.inputs
    return x if row in ("dqn", "mobilenet", "resnet18", "vgg16") else x[:, None]
