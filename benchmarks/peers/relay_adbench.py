"""ADBench's workloads in this compiler; `--variant` names the executor."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.adbench import gmm
from benchmarks.adbench.data import Mixture
from benchmarks.adbench.measure import Work, serve_builders
from benchmarks.workload import prepare_process
from myia_relay import relay

EXECUTOR = sys.argv[sys.argv.index("--variant") + 1] if "--variant" in sys.argv else "native"


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


def mixture(record: Mixture) -> list[Work]:
    """`gmm`"""
    args = (record.alphas, record.means, record.icf, record.x, record.gamma, record.m)
    return work(gmm.objective, gmm.gradient, args, lambda result: [result[0], *result[1]])


BUILDERS = {"gmm": mixture}

if __name__ == "__main__":
    prepare_process(sys.argv)
    relay(executor=EXECUTOR)(lambda x: x * 2.0)(np.ones(3))  # what is loaded once belongs to no instance
    serve_builders(BUILDERS)
