"""The matrix products of a perceptron's gradient alone, in OpenBLAS through NumPy, into arrays that exist."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.adbench.data import Perceptron
from benchmarks.adbench.measure import Work, serve_builders
from benchmarks.workload import prepare_process


def perceptron(record: Perceptron) -> list[Work]:
    """Three products forward, five backward: every layer's weights, and the inputs of all but the first."""
    weights = record.parameters[::2]
    values = [record.x, *(np.ones((len(record.x), w.shape[1]), np.float32) for w in weights)]
    forward = [(values[i], w, np.empty_like(values[i + 1])) for i, w in enumerate(weights)]
    by_weights = [(values[i].T, values[i + 1], np.empty_like(w)) for i, w in enumerate(weights)]
    by_inputs = [(values[i + 1], w.T, np.empty_like(values[i])) for i, w in enumerate(weights) if i]

    def run(products: list) -> None:
        for a, b, out in products:
            np.matmul(a, b, out=out)

    return [Work(lambda: run(forward), lambda: run(forward + by_weights + by_inputs), None)]


BUILDERS = {"mlp": perceptron}

if __name__ == "__main__":
    prepare_process(sys.argv)
    serve_builders(BUILDERS)
