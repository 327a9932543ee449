"""The losses that `train` knows by name."""

# No `from __future__ import annotations` here: the annotations are part of the program.
from myia_relay import relay


def cross_entropy(model):
    """The softmax cross entropy of scores and one-hot labels."""

    @relay
    def loss(x, y):
        return relay.softmax_cross_entropy(model(x), y)

    return loss


def mse(model):
    """The mean squared error."""

    @relay
    def loss(x, y):
        return relay.mse_loss(model(x), y)

    return loss


LOSSES = {"cross_entropy": cross_entropy, "mse": mse}
