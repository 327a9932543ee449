"""Programs that are debugged in the recorded sessions; their numbers are exact on every machine."""

from __future__ import annotations

import numpy as np

from myia_relay import grad, relay


def power(x, n):
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


@relay
def series(x, steps):
    """A `while` loop that calls a recursive function."""
    total = 0.0
    k = 1
    while k <= steps:
        term = power(x, k)
        total = total + 0.5 * term
        k = k + 1
    return total


@relay
def hidden_layer(w, x):
    hidden = w @ x
    positive = np.maximum(hidden, 0.0)
    return np.sum(positive)


@relay
def checked(values, limit):
    seen = []
    for value in values:
        if value > limit:
            raise ValueError(f"{value} is beyond {limit}")
        seen.append(value * 2)
    return len(seen)


SESSIONS = {
    "forward": lambda: series.debug(2.0, 2),
    "backward": lambda: grad(series).debug(2.0, 2),
    "breakpoints": lambda: grad(series).debug(2.0, 3),
    "mistakes": lambda: series.debug(2.0, 2),
    "arrays": lambda: grad(hidden_layer).debug(np.array([[1.0, -2.0], [0.5, 0.25]]), np.array([2.0, 3.0])),
    "exception": lambda: checked.debug([1, 5, 2], 3),
}
