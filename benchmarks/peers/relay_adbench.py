"""ADBench's workloads in this compiler; `--variant` names the executor."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.adbench import ba, gmm, hand, lstm, mlp, trmv
from benchmarks.adbench.data import Hand, Lstm, Mixture, Perceptron, Scene, Triangle
from benchmarks.adbench.measure import Work, serve_builders, variant
from benchmarks.workload import prepare_process
from myia_relay import relay

EXECUTOR = variant() or "native"


def work(objective: Callable, gradient: Callable, args: tuple, flat: Callable[[Any], list]) -> list[Work]:
    """One program: its functions with their arguments, and arrays that `into` can write."""
    gradient = relay(executor=EXECUTOR)(gradient)
    state: dict[str, Any] = {}

    def into() -> Any:
        if "call" not in state:
            state["call"] = gradient.into(like(gradient(*args)))
        return state["call"](*args)

    return [Work(lambda: objective(*args), lambda: gradient(*args), flat, into)]


def like(result: Any) -> Any:
    """Arrays for a result: 0-dimensional ones for its numbers."""
    if isinstance(result, tuple):
        return tuple(map(like, result))
    return np.empty_like(result)


def scalar(objective: Callable, gradient: Callable, *args: Any) -> list[Work]:
    """A function with one result, and its value and gradient."""
    return work(objective, gradient, args, lambda result: [result[0], *result[1]])


def mixture(r: Mixture) -> list[Work]:
    """`gmm`"""
    return scalar(gmm.objective, gmm.gradient, r.alphas, r.means, r.icf, r.x, r.gamma, r.m)


def scene(r: Scene) -> list[Work]:
    """`ba`"""
    args = (r.cameras, r.points, r.weights, r.observations, r.features)
    return work(ba.objective, ba.jacobian, args, list)


def tracking(r: Hand) -> list[Work]:
    """`hand`"""
    model = hand.Model(r.parents, r.base_relative, r.inverse_base_absolute, r.positions, r.weights)
    if r.us is None:
        return work(hand.simple, hand.simple_jacobian, (r.theta, model, r.corners, r.points), list)
    args = (r.theta, r.us, model, r.corners, r.points)
    return work(hand.complicated, hand.complicated_jacobian, args, list)


def character_model(r: Lstm) -> list[Work]:
    """`lstm`"""
    return scalar(lstm.objective, lstm.gradient, r.main, r.extra, r.state, r.sequence)


def triangle(r: Triangle) -> list[Work]:
    """`trmv`"""
    return work(lambda lower, x, g: trmv.product(lower, x), trmv.pullback, (r.lower, r.x, r.g), list)


def perceptron(r: Perceptron) -> list[Work]:
    """`mlp`"""
    return scalar(mlp.objective, mlp.gradient, r.parameters, r.x, r.labels)


BUILDERS = {
    "gmm": mixture,
    "ba": scene,
    "hand": tracking,
    "lstm": character_model,
    "trmv": triangle,
    "mlp": perceptron,
}

if __name__ == "__main__":
    prepare_process(sys.argv)
    relay(executor=EXECUTOR)(lambda x: x * 2.0)(np.ones(3))  # what is loaded once belongs to no instance
    serve_builders(BUILDERS)
