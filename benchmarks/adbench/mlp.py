"""A perceptron of two hidden layers with ReLU, softmax and cross entropy, float32. From LAGrad's evaluation."""

import numpy as np

from myia_relay import relay


@relay
def objective(parameters, x, labels):
    """Mean cross entropy over a batch.

    Args:
        parameters: of each layer its weights (inputs, outputs) and biases (outputs,), one after the other; float32.
        x: (batch, inputs) float32.
        labels: (batch,) int32.
    """
    w1, b1, w2, b2, w3, b3 = parameters
    hidden = np.maximum(x @ w1 + b1, 0.0)
    hidden = np.maximum(hidden @ w2 + b2, 0.0)
    scores = hidden @ w3 + b3
    top = np.max(scores, axis=1)
    log_sum = top + np.log(np.sum(np.exp(scores - top[:, None]), axis=1))
    return np.mean(log_sum - scores[np.arange(len(x)), labels])


gradient = relay.value_and_grad(objective)
