"""LeNet on MNIST, figure 4 of the Relay paper; the command line trains it.

This is a user's program that is part of the package: it uses the public names like any other program.

Source: J. Roesch et al., "Relay: A New IR for Machine Learning Frameworks" (MAPL 2018), figure 4.
"""

# No `from __future__ import annotations` here: the annotations are part of the program.
import numpy as np

from myia_relay import Float, Model, Tensor, relay, relay_model


# Shapes in annotations are values, which pyright does not expect there.
@relay_model
def lenet(x: Tensor[Float, (1, 28, 28)]) -> Tensor[Float, 10]:  # pyright: ignore[reportGeneralTypeIssues]
    """Two convolutions and two linear layers: an image -> ten scores."""
    conv1 = relay.conv2d(x, num_filter=20, ksize=[1, 5, 5, 1], no_bias=False)
    tanh1 = relay.tanh(conv1)
    pool1 = relay.max_pool(tanh1, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    conv2 = relay.conv2d(pool1, num_filter=50, ksize=[1, 5, 5, 1], no_bias=False)
    tanh2 = relay.tanh(conv2)
    pool2 = relay.max_pool(tanh2, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    flatten = relay.flatten_layer(pool2)
    fc1 = relay.linear(flatten, num_hidden=500)
    tanh3 = relay.tanh(fc1)
    return relay.linear(tanh3, num_hidden=10)


@relay
def loss(x: Tensor[Float, (1, 28, 28)], y: Tensor[Float, 10]) -> Float:  # pyright: ignore[reportGeneralTypeIssues]
    """The cross entropy of the scores of one image and its one-hot label."""
    return relay.softmax_cross_entropy(lenet(x), y)


@relay
def train_lenet(training_data) -> Model:
    """One epoch of gradient descent, an image at a time: the paper's training loop."""
    model = relay.create_model(lenet)
    for x, y in training_data:
        model_grad = relay.grad(model, loss, (x, y))
        relay.update_model_params(model, model_grad)
    return relay.export_model(model)


def accuracy(model, data) -> float:
    """The share of a dataset's images for which the greatest score is the label's.

    Args:
        model: a trained `lenet`, or anything that maps an image to ten scores.
        data: a `Dataset`.
    """
    hits = sum(int(np.argmax(model(x))) == label for x, label in zip(data.images, data.labels))
    return hits / max(1, len(data))
