"""The networks in this compiler; `--variant` names the executor."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.adbench.measure import variant
from benchmarks.networks import losses, recurrent, vision
from benchmarks.networks.cases import RATE, Problem
from benchmarks.networks.measure import Builder, serve_builders
from benchmarks.workload import prepare_process
from myia_relay import relay, value_and_grad

EXECUTOR = variant() or "native"


def inference(function: Callable) -> Builder:
    """The program of a function of an input and weights."""

    def build(problem: Problem) -> Callable[[], Any]:
        run = relay(executor=EXECUTOR)(function)
        (x,) = problem.inputs
        return lambda: run(x, problem.weights)

    return build


def training(loss: Callable) -> Builder:
    """The program of a loss and its gradient by all weights."""

    def build(problem: Problem) -> Callable[[], Any]:
        run = relay(executor=EXECUTOR)(value_and_grad(loss))
        return lambda: run(problem.weights, *problem.inputs)

    return build


def transformer(problem: Problem) -> Callable[[], Any]:
    """`gpt_step`"""
    run = relay(executor=EXECUTOR, static=("heads",))(value_and_grad(losses.gpt_loss))
    return lambda: run(problem.weights, *problem.inputs, problem.outputs)


def letters(problem: Problem) -> Callable[[], Any]:
    """`charrnn`"""
    run = relay(executor=EXECUTOR, static=("count",))(recurrent.charrnn)
    (letter,) = problem.inputs
    return lambda: run(letter, problem.weights, problem.outputs)


def trees(problem: Problem) -> Callable[[], Any]:
    """`treelstm`"""
    run = relay(executor=EXECUTOR)(recurrent.treelstm)
    nodes = [recurrent.tree(parts) for parts in problem.inputs]
    return lambda: [run(node, problem.weights) for node in nodes]


def tree_steps(problem: Problem) -> Callable[[], Any]:
    """`treelstm_step`: weights go from call to call."""
    run, rest = relay(executor=EXECUTOR)(recurrent.treelstm_train), recurrent.examples(problem.inputs)
    weights, rate = problem.weights, np.float32(RATE)

    def call() -> Any:
        nonlocal weights
        total, weights = run(weights, rest, rate)
        return total, weights

    return call


BUILDERS = {
    **{name: inference(getattr(vision, name)) for name in ("dqn", "mobilenet", "resnet18", "vgg16")},
    **{name: inference(getattr(recurrent, name)) for name in ("rnn", "gru", "lstm")},
    "charrnn": letters,
    "treelstm": trees,
    "treelstm_step": tree_steps,
    "lstm_step": training(recurrent.lstm_loss),
    "resnet18_step": training(vision.resnet18_loss),
    "gpt_step": transformer,
    "vae_step": training(losses.vae_loss),
    "reinforce_step": training(losses.reinforce_loss),
}

if __name__ == "__main__":
    prepare_process(sys.argv)
    serve_builders(BUILDERS)
