"""The instances: records of NumPy arrays, readers of ADBench's text formats, and its measure of accuracy.

In: the path of a file. Out: a record. A file that is cut short, has a word too many, or names a vertex or bone that is
not there raises FormatError, with the path and what is wrong. Formats: the sources of ADBench (numbers separated by
white space, those of hand models by colons). Bundle adjustment files name one camera, one point, one weight and one
feature, which are replicated; mixture files of more points than rows replicate the one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

TOLERANCE = 1e-8
"""How large ADBench lets `worst_error` be."""


class FormatError(ValueError):
    """A file that is not what its reader expects."""


def worst_error(got: np.ndarray, expected: np.ndarray) -> float:
    """ADBench's measure: the largest |x - y| / max(1, |x| + |y|); infinite for NaN, and for different sizes."""
    got, expected = np.ravel(got), np.ravel(expected)
    if got.shape != expected.shape:
        return np.inf
    if not got.size:
        return 0.0
    error = np.max(np.abs(got - expected) / np.maximum(1.0, np.abs(got) + np.abs(expected)))
    return float(error) if np.isfinite(error) else np.inf


class _Words:
    """The words of a file, taken from the front."""

    def __init__(self, path: Path, separators: str = ""):
        self.path = path
        try:
            text = path.read_text("ascii")
        except UnicodeDecodeError as error:
            raise FormatError(
                f"{path}: not a text of numbers: byte {error.start} is {error.object[error.start]:#x}"
            ) from None
        for separator in separators:
            text = text.replace(separator, " ")
        self.words = text.split()
        self.place = 0

    def wrong(self, what: str) -> FormatError:
        return FormatError(f"{self.path}: {what}")

    def sizes(self, *names: str) -> tuple[int, ...]:
        """Whole numbers from 1."""
        if len(self.words) < self.place + len(names):
            raise self.wrong(f"ends before its sizes ({', '.join(names)})")
        words = self.words[self.place : self.place + len(names)]
        self.place += len(names)
        for name, word in zip(names, words, strict=True):
            if not word.isdigit() or int(word) < 1:
                raise self.wrong(f"{name} is {word!r}, not a whole number from 1")
        return tuple(map(int, words))

    def numbers(self, what: str, *shape: int) -> np.ndarray:
        """The next numbers as a float64 array."""
        count = int(np.prod(shape))
        words = self.words[self.place : self.place + count]
        if len(words) < count:
            raise self.wrong(f"ends in {what}: {count} numbers expected, {len(words)} left")
        try:
            values = np.array(words, np.float64)
        except ValueError as error:
            raise self.wrong(f"in {what}: {error}") from None
        if not np.isfinite(values).all():
            raise self.wrong(f"in {what}: not all numbers are finite")
        self.place += count
        return values.reshape(shape)

    def left(self) -> int:
        return len(self.words) - self.place

    def end(self) -> None:
        if self.left():
            raise self.wrong(f"{self.left()} words too many, beginning with {self.words[self.place]!r}")


@dataclass(frozen=True)
class Mixture:
    """A Gaussian mixture: K components in d dimensions, n points.

    Attributes:
        alphas: logarithms of the weights, (K,).
        means: (K, d).
        icf: inverse covariance factors, (K, d (d + 1) / 2): logarithms of the diagonal, then the strictly lower part
            column by column.
        x: points, (n, d).
        gamma, m: of the Wishart prior.
    """

    alphas: np.ndarray
    means: np.ndarray
    icf: np.ndarray
    x: np.ndarray
    gamma: float
    m: int


def read_mixture(path: Path) -> Mixture:
    """An instance of the Gaussian mixture problem.

    Raises:
        FormatError: it is not one.
    """
    words = _Words(path)
    d, k, n = words.sizes("d", "K", "n")
    alphas = words.numbers("the alphas", k)
    means = words.numbers("the means", k, d)
    icf = words.numbers("the inverse covariance factors", k, d * (d + 1) // 2)
    rows = 1 if words.left() == d + 2 else n
    x = np.ascontiguousarray(np.broadcast_to(words.numbers("the points", rows, d), (n, d)))
    gamma, m = words.numbers("gamma and m", 2)
    words.end()
    if gamma <= 0 or m != int(m):
        raise words.wrong(f"gamma and m are {gamma:g} and {m:g}, not a positive number and a whole one")
    return Mixture(alphas, means, icf, x, float(gamma), int(m))


@dataclass(frozen=True)
class Scene:
    """A bundle adjustment problem: n cameras, m points, p observations.

    Attributes:
        cameras: rotation (axis times angle), centre, focal length, principal point, two radial distortions; (n, 11).
        points: (m, 3).
        weights: (p,).
        observations: which camera saw which point, (p, 2) int64.
        features: where, (p, 2).
    """

    cameras: np.ndarray
    points: np.ndarray
    weights: np.ndarray
    observations: np.ndarray
    features: np.ndarray


def read_scene(path: Path) -> Scene:
    """An instance of bundle adjustment.

    Raises:
        FormatError: it is not one.
    """
    words = _Words(path)
    n, m, p = words.sizes("n", "m", "p")
    camera = words.numbers("the camera", 11)
    point = words.numbers("the point", 3)
    weight = words.numbers("the weight", 1)
    feature = words.numbers("the feature", 2)
    words.end()
    index = np.arange(p)
    observations = np.stack([index % n, index % m], axis=1)
    return Scene(
        np.tile(camera, (n, 1)), np.tile(point, (m, 1)), np.tile(weight, p), observations, np.tile(feature, (p, 1))
    )


@dataclass(frozen=True)
class Hand:
    """A hand model and what a camera saw of it: V vertices on B bones, N correspondences.

    Attributes:
        parents: of each bone, -1 for the root; a parent comes before its children.
        base_relative, inverse_base_absolute: (B, 4, 4).
        positions: of the vertices, (V, 3).
        weights: of the bones on each vertex, (V, B); few are not zero.
        corners: the vertex of each correspondence, (N,), or the corners of its triangle, (N, 3); int64.
        points: (N, 3).
        us: places in the triangles, (N, 2); None in the simple variant.
        theta: pose, (26,).
    """

    parents: tuple[int, ...]
    base_relative: np.ndarray
    inverse_base_absolute: np.ndarray
    positions: np.ndarray
    weights: np.ndarray
    corners: np.ndarray
    points: np.ndarray
    us: np.ndarray | None
    theta: np.ndarray


def read_hand(path: Path, model: Path, complicated: bool) -> Hand:
    """An instance of hand tracking.

    Args:
        path: the instance.
        model: the folder of the hand model.
        complicated: whether it has places in triangles.

    Raises:
        FormatError: they are not what they should be.
    """
    parents, relative, absolute = _read_bones(model / "bones.txt")
    positions, weights = _read_vertices(model / "vertices.txt", len(parents))
    words = _Words(path)
    count, size = words.sizes("the number of correspondences", "that of parameters")
    rows = words.numbers("the correspondences", count, 4)
    us = words.numbers("the places in triangles", count, 2) if complicated else None
    theta = words.numbers("the pose", size)
    words.end()
    freedoms = 6 + 4 * ((len(parents) - 2) // 4)
    if size != freedoms:
        raise words.wrong(f"{size} parameters, but {len(parents)} bones have {freedoms}")
    triangles = _read_triangles(model / "triangles.txt", len(positions)) if complicated else np.arange(len(positions))
    corners = rows[:, 0].astype(np.int64)
    if (corners != rows[:, 0]).any() or corners.min() < 0 or corners.max() >= len(triangles):
        raise words.wrong(
            f"a correspondence names none of the {len(triangles)} {'triangles' if complicated else 'vertices'}"
        )
    points = np.ascontiguousarray(rows[:, 1:])
    return Hand(parents, relative, absolute, positions, weights, triangles[corners], points, us, theta)


def _read_bones(path: Path) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    parents, numbers = [], []
    for number, fields in _lines(path):
        try:
            parents.append(int(fields[1]))
            numbers.append([float(word) for word in fields[2:34]])
        except (IndexError, ValueError) as error:
            raise FormatError(f"{path}, line {number}: {error}") from None
        if len(numbers[-1]) != 32 or not -1 <= parents[-1] < max(1, len(parents) - 1):
            raise FormatError(f"{path}, line {number}: a parent before it and 32 numbers expected")
    if not parents:
        raise FormatError(f"{path}: no bones")
    both = np.array(numbers).reshape(-1, 2, 4, 4)
    return tuple(parents), both[:, 0].copy(), both[:, 1].copy()


def _read_vertices(path: Path, bones: int) -> tuple[np.ndarray, np.ndarray]:
    positions, weights = [], []
    for number, fields in _lines(path):
        row = np.zeros(bones)
        try:
            positions.append([float(word) for word in fields[:3]])
            for pair in range(int(fields[8])):
                bone = int(fields[9 + 2 * pair])
                if not 0 <= bone < bones:
                    raise ValueError(f"bone {bone} of {bones}")
                row[bone] = float(fields[10 + 2 * pair])
        except (IndexError, ValueError) as error:
            raise FormatError(f"{path}, line {number}: {error}") from None
        weights.append(row)
    if not positions:
        raise FormatError(f"{path}: no vertices")
    return np.array(positions), np.array(weights)


def _read_triangles(path: Path, vertices: int) -> np.ndarray:
    words = _Words(path, separators=":")
    if not words.left() or words.left() % 3:
        raise words.wrong(f"{words.left()} numbers are no triples")
    corners = words.numbers("the triangles", words.left() // 3, 3)
    if (corners != corners.astype(np.int64)).any() or corners.min() < 0 or corners.max() >= vertices:
        raise words.wrong(f"a triangle names none of the {vertices} vertices")
    return corners.astype(np.int64)


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """The lines of a file of the hand model, with their numbers, taken apart at colons.

    Raises:
        FormatError: it is no text file.
    """
    try:
        lines = path.read_text("ascii").splitlines()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not a text of numbers: byte {error.start}") from None
    return [(number, line.split(":")) for number, line in enumerate(lines, 1) if line.strip()]


@dataclass(frozen=True)
class Lstm:
    """A character model: l layers, c characters of b bits.

    Attributes:
        main: weights and biases of the four gates, (l, 2, 4, b).
        extra: weights of the input, weights and bias of the output, (3, b).
        state: hidden and cell at the beginning, (l, 2, b).
        sequence: (c, b) of 0 and 1.
    """

    main: np.ndarray
    extra: np.ndarray
    state: np.ndarray
    sequence: np.ndarray


def read_lstm(path: Path) -> Lstm:
    """An instance of the LSTM.

    Raises:
        FormatError: it is not one.
    """
    words = _Words(path)
    layers, characters, bits = words.sizes("l", "c", "b")
    main = words.numbers("the main parameters", layers, 2, 4, bits)
    extra = words.numbers("the extra parameters", 3, bits)
    state = words.numbers("the state", layers, 2, bits)
    sequence = words.numbers("the sequence", characters, bits)
    words.end()
    return Lstm(main, extra, state, sequence)


@dataclass(frozen=True)
class Triangle:
    """A product with a strictly lower-triangular matrix: `lower` packed column by column (n (n - 1) / 2,), `x` and a
    cotangent `g` (n,)."""

    lower: np.ndarray
    x: np.ndarray
    g: np.ndarray


@dataclass(frozen=True)
class Perceptron:
    """A multi-layer perceptron and a batch, float32.

    Attributes:
        parameters: of each layer its weights (inputs, outputs) and biases (outputs,), one after the other.
        x: (batch, 784).
        labels: (batch,) int32.
    """

    parameters: tuple[np.ndarray, ...]
    x: np.ndarray
    labels: np.ndarray


Record = Mixture | Scene | Hand | Lstm | Triangle | Perceptron
