"""Image networks as plain decorated functions: loops over blocks, dicts of weights."""

import numpy as np

from myia_relay import relay

from .cases import MOBILENET_STRIDES, RESNET_STRIDES


@relay
def conv(x, layer, strides=1, padding=0, groups=1):
    """Convolution, bias and ReLU."""
    y = relay.conv2d(x, layer["weight"], layer["bias"], strides=strides, padding=padding, groups=groups)
    return relay.relu(y)


@relay
def dense(x, layer):
    """Dense layer."""
    return x @ layer["weight"].T + layer["bias"]


@relay
def dqn(x, weights):
    """Values of the actions, (1, 18)."""
    for layer, stride in zip(weights["convs"], (4, 2, 1)):
        x = conv(x, layer, strides=stride)
    first, last = weights["dense"]
    return dense(relay.relu(dense(x.reshape(len(x), -1), first)), last)


@relay
def mobilenet(x, weights):
    """Scores of the classes, (1, classes)."""
    x = conv(x, weights["first"], strides=2, padding=1)
    for block, stride in zip(weights["blocks"], MOBILENET_STRIDES):
        x = conv(x, block["depth"], strides=stride, padding=1, groups=x.shape[1])
        x = conv(x, block["point"])
    return dense(np.mean(x, axis=(2, 3)), weights["dense"])


@relay
def resnet18(x, weights):
    """Scores of the classes, (1, classes)."""
    x = relay.max_pool(conv(x, weights["first"], strides=2, padding=3), 3, strides=2, padding=1)
    for block, stride in zip(weights["blocks"], RESNET_STRIDES):
        y = conv(x, block["a"], strides=stride, padding=1)
        y = relay.conv2d(y, block["b"]["weight"], block["b"]["bias"], padding=1)
        if "down" in block:
            x = relay.conv2d(x, block["down"]["weight"], block["down"]["bias"], strides=stride)
        x = relay.relu(x + y)
    return dense(np.mean(x, axis=(2, 3)), weights["dense"])


@relay
def vgg16(x, weights):
    """Scores of the classes, (1, classes)."""
    for stage in weights["stages"]:
        for layer in stage:
            x = conv(x, layer, padding=1)
        x = relay.max_pool(x, 2, strides=2)
    first, second, last = weights["dense"]
    x = relay.relu(dense(x.reshape(len(x), -1), first))
    return dense(relay.relu(dense(x, second)), last)


@relay
def scaled(x, layer, strides=1, padding=0):
    """Convolution, scale and shift."""
    return relay.conv2d(x, layer["weight"], strides=strides, padding=padding) * layer["scale"] + layer["shift"]


@relay
def resnet18_loss(weights, x, targets):
    """Mean squared error of a batch."""
    x = relay.max_pool(relay.relu(scaled(x, weights["first"], 2, 3)), 3, strides=2, padding=1)
    for block, stride in zip(weights["blocks"], RESNET_STRIDES):
        y = scaled(relay.relu(scaled(x, block["a"], stride, 1)), block["b"], 1, 1)
        if "down" in block:
            x = scaled(x, block["down"], stride)
        x = relay.relu(x + y)
    return np.mean((dense(np.mean(x, axis=(2, 3)), weights["dense"]) - targets) ** 2)
