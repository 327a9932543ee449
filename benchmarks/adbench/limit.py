"""The near-limit reference: a C++ program of hand-written derivatives, built and run beside the other systems.

It is not part of this repository. What is expected of it: built by `g++ -O3 -march=native -fopenmp -std=c++17 SOURCE -lmvec
-lm`, run as `PROGRAM KIND INPUT THREADS OUTPUT`, where INPUT has an instance as float64 numbers (`write_input`); it prints
a JSON object with `f_ms` and `j_ms`, milliseconds of the objective and of the derivative, and writes what it computed.
"""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path

import numpy as np

from . import cases
from .data import Hand, Lstm, Mixture, Record, Scene, Triangle

FLAGS = ("-O3", "-march=native", "-fopenmp", "-w", "-std=c++17")


class LimitError(RuntimeError):
    """The reference could not be built or run, or does not know an instance."""


def build(source: Path, folder: Path) -> Path:
    """Compile the reference.

    Args:
        source: the C++ file.
        folder: where the program is put.

    Raises:
        LimitError: there is no compiler, or it refuses.
    """
    program = folder / "limit"
    try:
        done = subprocess.run(
            ["g++", *FLAGS, str(source), "-o", str(program), "-lmvec", "-lm"],
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise LimitError("g++ is not installed") from None
    if done.returncode:
        raise LimitError(f"g++ refuses {source.name}: {done.stderr.strip().splitlines()[:3]}")
    return program


def write_input(record: Record, path: Path) -> str:
    """Write an instance for the reference.

    Returns:
        Its KIND.

    Raises:
        LimitError: the reference has no such workload, or is known to be wrong for such sizes.
    """
    parts: list
    match record:
        case Mixture(alphas, means, icf, x, gamma, m):
            (k, d), n = means.shape, len(x)
            constant = -0.5 * n * d * math.log(2 * math.pi) - k * wishart_constant(d, gamma, m)
            kind, parts = "gmm", [[d, k, n, gamma, m, constant], alphas, means, icf, x]
        case Scene(cameras, points, weights, observations, features):
            sizes = [len(cameras), len(points), len(weights)]
            kind, parts = "ba", [sizes, cameras, points, weights, observations, features]
        case Lstm(main, extra, state, sequence):
            layers, bits = len(main), sequence.shape[1]
            if layers not in (2, 4) or not 8 < bits <= 16:
                raise LimitError(f"the reference has no LSTM of {layers} layers and {bits} bits")
            kind, parts = "lstm", [[layers, len(sequence), bits], main, extra, state, sequence]
        case Hand():
            complicated = record.us is not None
            kind = "handc" if complicated else "hand"
            count = len(record.points)
            parts = [[count, len(record.positions), len(record.parents), int(complicated)], record.parents]
            parts += [record.base_relative, record.inverse_base_absolute, record.positions, record.weights]
            # The simple variant reads the vertex of each correspondence, the other one a number that it does not use.
            parts += [np.zeros(count) if complicated else record.corners, record.points]
            parts += [record.corners, record.us] if complicated else []
            parts += [record.theta]
        case Triangle(lower, x, g):
            kind, parts = "trmv", [[len(x)], lower, x, g]
        case _:
            raise LimitError("the reference has no such workload")
    np.concatenate([np.asarray(part, np.float64).ravel() for part in parts]).tofile(path)
    return kind


def wishart_constant(d: int, gamma: float, m: int) -> float:
    """Of one component: what the prior has that depends on sizes only."""
    nu = d + m + 1
    gammas = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * (nu + 1 - j)) for j in range(1, d + 1))
    return nu * d * (math.log(gamma) - 0.5 * math.log(2.0)) - gammas


def run(program: Path, kind: str, path: Path, threads: int, out: Path | None = None) -> dict[str, float]:
    """Seconds of an instance that `write_input` wrote.

    Args:
        program: what `build` made.
        kind, path: of the instance.
        threads: how many it may use.
        out: where it shall write its output.

    Returns:
        `objective` and `gradient`, medians of many runs.

    Raises:
        LimitError: it failed.
    """
    words = [str(program), kind, str(path), str(threads), *([] if out is None else [str(out)])]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LimitError(f"the reference ended with status {done.returncode}: {done.stderr.strip()[:200]}")
    figures = json.loads(done.stdout)
    return {"objective": figures["f_ms"] / 1e3, "gradient": figures["j_ms"] / 1e3}


def error(out: Path, case: cases.Case, record: Record) -> float | None:
    """The error of the output that `run` wrote; None where it is not known (trmv writes a part of it)."""
    output = np.fromfile(out)
    match record:
        case Scene():
            p = len(record.weights)
            errors, weight_errors, blocks, by_weight = np.split(output, np.cumsum([2 * p, p, 30 * p]))
            return cases.output_error(case, record, [errors, weight_errors, blocks.reshape(p, 30), by_weight])
        case Hand():
            n = record.points.size
            return cases.output_error(case, record, [output[:n], output[n:].reshape(-1, n)])
        case Triangle():
            return None
    return cases.output_error(case, record, [output])
