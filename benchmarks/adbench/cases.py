"""Which instances there are, and what is right for each: files under a folder, and generated ones of any size.

A case is named by its workload and its place in the folder, without suffix (`gmm`, `1k/gmm_d10_K25`); a generated one by
its sizes (`trmv`, `n=1024`). Outputs are compared in one order for all systems, a list of arrays (`gradient`'s result,
put flat by a system):

    gmm, lstm   F, then the gradient by each argument
    ba          residuals (p, 2), those of the weights (p,), blocks (p, 2, 15), derivatives by the weights (p,)
    hand        residuals (N, 3), then the Jacobian column by column: (columns, 3 N)
    trmv        gradient by the packed matrix, by x
    mlp         loss, then the gradient by each parameter

References are ADBench's manual derivatives, in `ref/` under the folder, or digests of them where they are large; those of
the last two workloads are written in NumPy here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .data import (
    TOLERANCE,
    Hand,
    Lstm,
    Mixture,
    Perceptron,
    Record,
    Scene,
    Triangle,
    read_hand,
    read_lstm,
    read_mixture,
    read_scene,
    worst_error,
)

WORKLOADS = {
    "gmm": "Gaussian mixture, gradient",
    "ba": "bundle adjustment, block-sparse Jacobian",
    "hand": "hand tracking, dense Jacobian",
    "lstm": "LSTM, gradient",
    "trmv": "packed triangular matrix by vector, pullback",
    "mlp": "perceptron of three layers, float32, gradient",
}
TRMV_SIZES = (256, 512, 1024, 2048, 4096)
MLP_SIZES = (256, 512, 1024)
SCALING = {
    "gmm": [{"d": 10, "K": 5, "n": n} for n in (1_000, 10_000, 100_000, 1_000_000)],
    "ba": [{"n": 50, "m": 1000, "p": p} for p in (1_000, 10_000, 100_000, 1_000_000)],
    "hand": [{"N": n, "V": n} for n in (100, 1_000, 10_000, 100_000)],
    "lstm": [{"l": 2, "c": c, "b": 14} for c in (100, 1_000, 10_000, 100_000)],
    "trmv": [{"n": n} for n in (128, 400, 1265, 4000)],
    "mlp": [{"h": 64, "batch": batch} for batch in (64, 640, 6400, 64_000)],
}
"""Sizes over three decades of the number of elements, for the scaling table."""


@dataclass(frozen=True)
class Case:
    """An instance, by name.

    Attributes:
        workload: one of `WORKLOADS`.
        name: of the file, or of the sizes.
        folder: where ADBench's instances are; None for a generated one.
        sizes: of a generated one.
    """

    workload: str
    name: str
    folder: str | None = None
    sizes: tuple[tuple[str, int], ...] = ()

    @property
    def path(self) -> Path | None:
        """The file."""
        return None if self.folder is None else Path(self.folder) / self.workload / f"{self.name}.txt"


def generated(workload: str, **sizes: int) -> Case:
    """A case made of random numbers, always the same for the same sizes."""
    return Case(workload, ",".join(f"{name}={size}" for name, size in sizes.items()), None, tuple(sizes.items()))


def find_cases(folder: Path | None, workloads: list[str]) -> list[Case]:
    """Every instance under a folder, and LAGrad's sizes of what has no files.

    Args:
        folder: of ADBench's instances; None where no workload has files.
        workloads: names.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    cases = []
    for workload in workloads:
        if workload == "trmv":
            cases += [generated("trmv", n=n) for n in TRMV_SIZES]
        elif workload == "mlp":
            cases += [generated("mlp", h=h, batch=64) for h in MLP_SIZES]
        elif folder is None or not folder.is_dir():
            raise FileNotFoundError(f"{folder} is not a folder of ADBench's instances; name it with --data")
        else:
            root = folder / workload
            pattern = {"hand": "*/hand*.txt", "gmm": "**/gmm*.txt"}.get(workload, f"**/{workload}*.txt")
            found = [path.relative_to(root).with_suffix("") for path in root.glob(pattern)]
            # By size, as far as the files say.
            found.sort(key=lambda name: ((root / name).with_suffix(".txt").stat().st_size, str(name)))
            if workload == "ba":
                found.sort(key=lambda name: int(name.name.rpartition("_p")[2]) if "_p" in name.name else 0)
            cases += [Case(workload, name.as_posix(), str(folder)) for name in found]
    return cases


def load(case: Case) -> Record:
    """Read or make an instance.

    Raises:
        FormatError: the file is corrupt.
        OSError: it cannot be read.
    """
    path = case.path
    if path is None:
        return _MAKERS[case.workload](**dict(case.sizes))
    if case.workload == "hand":
        folder = path.parent
        # The two variants share their models, and some folders have but one copy.
        models = [folder / "model", folder.with_name(folder.name.replace("complicated", "simple")) / "model"]
        model = next((place for place in models if place.is_dir()), models[0])
        return read_hand(path, model, folder.name.startswith("complicated"))
    return {"gmm": read_mixture, "ba": read_scene, "lstm": read_lstm}[case.workload](path)


def elements(record: Record) -> int:
    """What the time is proportional to at best, for the scaling table.

    Raises:
        TypeError: it is no record of a case.
    """
    match record:
        case Mixture():
            return len(record.x) * record.icf.size
        case Scene():
            return len(record.observations)
        case Hand():
            return record.points.size * record.theta.size
        case Lstm():
            return record.sequence.size * len(record.main)
        case Triangle():
            return record.lower.size
        case Perceptron():
            return len(record.x) * sum(p.size for p in record.parameters)
    raise TypeError(type(record).__name__)


def input_arrays(record: Record) -> list[np.ndarray]:
    """All arrays of an instance."""
    values = [value for value in vars(record).values() if value is not None]
    return [
        a for value in values for a in (value if isinstance(value, tuple) else (value,)) if isinstance(a, np.ndarray)
    ]


# Generated instances.


def make_mixture(d: int, K: int, n: int, gamma: float = 1.7, m: int = 3) -> Mixture:
    """As ADBench's own generator draws them; gamma and m are such that errors in the prior show."""
    rng = np.random.default_rng(1)
    icf = rng.standard_normal((K, d * (d + 1) // 2)) * 0.3
    return Mixture(rng.standard_normal(K), rng.random((K, d)), icf, rng.standard_normal((n, d)), gamma, m)


def make_scene(n: int, m: int, p: int) -> Scene:
    """Every camera and point is different."""
    rng = np.random.default_rng(2)
    cameras = np.array([1.8, 0.6, -0.6, 3.0, -2.0, 1.0, 200.0, -0.3, -15.0, 0.05, 0.01])
    points = np.array([4.2, 5.6, 9.4])
    index = np.arange(p)
    return Scene(
        cameras * (1.0 + 0.1 * rng.standard_normal((n, 11))),
        points * (1.0 + 0.1 * rng.standard_normal((m, 3))),
        rng.random(p),
        np.stack([index % n, rng.permutation(index) % m], axis=1),
        100.0 * rng.standard_normal((p, 2)),
    )


def make_hand(N: int, V: int = 500, complicated: int = 0) -> Hand:
    """A model of ADBench's structure: 22 bones, up to four of them on a vertex, most vertices on one or two."""
    rng = np.random.default_rng(3)
    parents = (-1, *(0 if joint == 0 else 4 * finger + joint for finger in range(5) for joint in range(4)), 0)
    relative = np.tile(np.eye(4), (22, 1, 1))
    relative[:, :3] += 0.2 * rng.standard_normal((22, 3, 4))
    inverse = np.tile(np.eye(4), (22, 1, 1))
    inverse[:, :3] += 0.2 * rng.standard_normal((22, 3, 4))
    weights = np.zeros((V, 22))
    for vertex, count in enumerate(rng.choice([1, 2, 3, 4], V, p=[0.5, 0.35, 0.1, 0.05])):
        weights[vertex, (rng.integers(22) + np.arange(count)) % 22] = 1.0 / count
    corners = rng.integers(0, V, (N, 3) if complicated else N)
    us = rng.random((N, 2)) / 2.0 if complicated else None
    theta = 0.3 * rng.standard_normal(26)
    return Hand(
        parents,
        relative,
        inverse,
        rng.standard_normal((V, 3)),
        weights,
        corners,
        rng.standard_normal((N, 3)),
        us,
        theta,
    )


def make_lstm(l: int, c: int, b: int) -> Lstm:
    """Random weights and bits."""
    rng = np.random.default_rng(4)
    sequence = rng.integers(0, 2, (c, b)).astype(np.float64)
    draw = rng.standard_normal
    return Lstm(0.5 * draw((l, 2, 4, b)), 0.5 * draw((3, b)), 0.5 * draw((l, 2, b)), sequence)


def make_triangle(n: int) -> Triangle:
    """Normal random numbers."""
    draw = np.random.default_rng(5).standard_normal
    return Triangle(draw(n * (n - 1) // 2), draw(n), draw(n))


def make_perceptron(h: int, batch: int, inputs: int = 784, classes: int = 10) -> Perceptron:
    """Images as MNIST has them (numbers from 0 to 1), labels at random, weights as they are at the beginning."""
    rng = np.random.default_rng(6)
    parameters: list[np.ndarray] = []
    for fan_in, fan_out in ((inputs, h), (h, h), (h, classes)):
        parameters.append((rng.standard_normal((fan_in, fan_out)) / np.sqrt(fan_in)).astype(np.float32))
        parameters.append((0.1 * rng.standard_normal(fan_out)).astype(np.float32))
    x = rng.random((batch, inputs), dtype=np.float32)
    return Perceptron(tuple(parameters), x, rng.integers(0, classes, batch).astype(np.int32))


_MAKERS = {
    "gmm": make_mixture,
    "ba": make_scene,
    "hand": make_hand,
    "lstm": make_lstm,
    "trmv": make_triangle,
    "mlp": make_perceptron,
}


# What is right.


def output_error(case: Case, record: Record, output: list[np.ndarray]) -> float | None:
    """ADBench's measure of a system's output.

    Args:
        case: which instance.
        record: its data.
        output: what `gradient` gave, in the order above.

    Returns:
        The worst error, right where it is `tolerance` or less; None where nothing is known to compare with.
    """
    if isinstance(record, Triangle):
        return worst_error(_flat(output), _flat(triangle_pullback(record)))
    if isinstance(record, Perceptron):
        # In single precision, and smaller than 1: each array by its own largest entry.
        expected = perceptron_gradient(record)
        if [np.shape(a) for a in output] != [a.shape for a in expected]:
            return np.inf
        return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(output, expected, strict=True))
    if case.folder is None:
        return None
    name = Path(case.folder) / "ref" / f"{case.workload}__{case.name.replace('/', '__')}"
    whole, digest = name.with_name(name.name + ".npy"), name.with_name(name.name + "__digest.npy")
    if digest.is_file():
        return worst_error(_hand_digest(output), np.load(digest))
    if not whole.is_file():
        return None
    return worst_error(_scene_digest(output) if isinstance(record, Scene) else _flat(output), np.load(whole))


def tolerance(workload: str) -> float:
    """The largest error that is right: ADBench's for double precision."""
    return 1e-4 if workload == "mlp" else TOLERANCE


def _flat(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(a) for a in arrays])


def _hand_digest(output: list[np.ndarray]) -> np.ndarray:
    """The first 300 residuals, and of every column of the Jacobian the sum and that of the squares."""
    errors, columns = (np.asarray(a) for a in output)
    return np.concatenate([errors.ravel()[:300], columns.sum(axis=1), (columns**2).sum(axis=1)])


def _scene_digest(output: list[np.ndarray]) -> np.ndarray:
    """Sums of squares of the residuals, sums of the 30 columns of the blocks, the first and the last observation."""
    errors, weight_errors, blocks, by_weight = (np.asarray(a) for a in output)
    blocks = blocks.reshape(len(blocks), 30)
    sums = [np.sum(errors**2), np.sum(weight_errors**2)]
    return np.concatenate([sums, blocks.sum(axis=0), blocks[0], blocks[-1], by_weight[[0, -1]]])


def triangle_pullback(record: Triangle) -> list[np.ndarray]:
    """Closed form: dL_ij = g_i x_j below the diagonal, dx = L^T g."""
    n = len(record.x)
    by_lower, by_x, place = np.empty_like(record.lower), np.zeros(n), 0
    for j in range(n):
        column = slice(place, place + n - 1 - j)
        by_lower[column] = record.g[j + 1 :] * record.x[j]
        by_x[j] = record.lower[column] @ record.g[j + 1 :]
        place = column.stop
    return [by_lower, by_x]


def perceptron_gradient(record: Perceptron) -> list[np.ndarray]:
    """By hand, in double precision."""
    w1, b1, w2, b2, w3, b3 = (p.astype(np.float64) for p in record.parameters)
    x, rows = record.x.astype(np.float64), np.arange(len(record.x))
    first = np.maximum(x @ w1 + b1, 0.0)
    second = np.maximum(first @ w2 + b2, 0.0)
    scores = second @ w3 + b3
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(axis=1, keepdims=True)
    loss = -np.mean(np.log(chances[rows, record.labels]))
    d3 = chances
    d3[rows, record.labels] -= 1.0
    d3 /= len(x)
    d2 = (d3 @ w3.T) * (second > 0)
    d1 = (d2 @ w2.T) * (first > 0)
    return [np.array(loss), x.T @ d1, d1.sum(0), first.T @ d2, d2.sum(0), second.T @ d3, d3.sum(0)]
