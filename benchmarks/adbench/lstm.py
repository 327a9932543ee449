"""A character model of LSTM layers whose products are elementwise, and its gradient. ADBench's objective LSTM."""

import numpy as np

from myia_relay import relay


def sigmoid(x):
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-x))


def layer(weights, biases, x, hidden, cell):
    """One step of one layer: its hidden and its cell state. Gates are in the order forget, ingate, outgate, change."""
    forget = sigmoid(x * weights[0] + biases[0])
    ingate = sigmoid(hidden * weights[1] + biases[1])
    outgate = sigmoid(x * weights[2] + biases[2])
    change = np.tanh(hidden * weights[3] + biases[3])
    cell = cell * forget + ingate * change
    return outgate * np.tanh(cell), cell


@relay
def objective(main, extra, state, sequence):
    """Mean negative log likelihood of each character given those before it.

    Args:
        main: (layers, 2, 4, bits), weights and biases.
        extra: (3, bits), weights of the input, weights and biases of the output.
        state: (layers, 2, bits), hidden and cell states at the beginning.
        sequence: (characters, bits).
    """
    layers, characters, bits = len(main), *sequence.shape
    hidden, cells = state[:, 0].copy(), state[:, 1].copy()
    total = 0.0
    for t in range(characters - 1):
        x = sequence[t] * extra[0]
        for i in range(layers):
            x, cells[i] = layer(main[i, 0], main[i, 1], x, hidden[i], cells[i])
            hidden[i] = x
        y = x * extra[1] + extra[2]
        log_sum = np.log(2.0 + np.sum(np.exp(y)))
        total += np.sum(sequence[t + 1] * (y - log_sum))
    return -total / ((characters - 1) * bits)


gradient = relay.value_and_grad(objective, ("main", "extra"))
