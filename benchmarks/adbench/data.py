"""The instances of ADBench: readers of its text formats, and the check of its accuracy rule.

Formats (all numbers separated by white space): F. Srajer, Z. Kukelova, A. Fitzgibbon, "A benchmark of selected
algorithmic differentiation tools on some problems in computer vision and machine learning" (2018), and the sources of
ADBench. Bundle adjustment files name one camera, one point, one weight and one feature, which are replicated; mixture
files of more points than rows replicate the one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np


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
    """An instance of the Gaussian mixture problem."""
    words = path.read_text("ascii").split()
    d, k, n = map(int, words[:3])
    packed = d * (d + 1) // 2
    values = np.array(words[3:-2], np.float64)
    sizes = (k, k * d, k * packed)
    if values.size - sum(sizes) not in (d, n * d):
        raise ValueError(f"{path}: {values.size} numbers do not make {k} components and {n} points in {d} dimensions")
    alphas, means, icf, points = np.split(values, np.cumsum(sizes))
    x = np.ascontiguousarray(np.broadcast_to(points.reshape(-1, d), (n, d)))
    return Mixture(alphas, means.reshape(k, d), icf.reshape(k, packed), x, float(words[-2]), int(words[-1]))


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
    """An instance of bundle adjustment."""
    words = path.read_text("ascii").split()
    n, m, p = map(int, words[:3])
    values = np.array(words[3:], np.float64)
    if values.size != 17:
        raise ValueError(f"{path}: 17 numbers belong behind the sizes, not {values.size}")
    camera, point, weight, feature = np.split(values, (11, 14, 15))
    index = np.arange(p)
    return Scene(
        np.tile(camera, (n, 1)),
        np.tile(point, (m, 1)),
        np.full(p, weight[0]),
        np.stack([index % n, index % m], axis=1),
        np.tile(feature, (p, 1)),
    )


@dataclass(frozen=True)
class Hand:
    """A hand model and what a camera saw of it: V vertices on 22 bones, N correspondences.

    Attributes:
        parents: of each bone, -1 for the root.
        base_relative, inverse_base_absolute: (22, 4, 4).
        positions: of the vertices, (V, 3).
        weights: of the bones on each vertex, (V, 22); few are not zero.
        corners: vertices of each correspondence: (N,), or (N, 3) corners of its triangle in the complicated variant.
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
    """
    bones = [line.split(":") for line in (model / "bones.txt").read_text("ascii").splitlines() if line.strip()]
    parents = tuple(int(words[1]) for words in bones)
    numbers = np.array([words[2:34] for words in bones], np.float64).reshape(-1, 2, 4, 4)
    positions, weights = [], []
    for line in (model / "vertices.txt").read_text("ascii").splitlines():
        words = line.split(":")
        if len(words) < 9:
            continue
        positions.append([float(w) for w in words[:3]])
        row = np.zeros(len(bones))
        for j in range(int(words[8])):
            row[int(words[9 + 2 * j])] = float(words[10 + 2 * j])
        weights.append(row)
    words = path.read_text("ascii").split()
    count, size = int(words[0]), int(words[1])
    values = np.array(words[2:], np.float64)
    if values.size != count * (6 if complicated else 4) + size:
        raise ValueError(f"{path}: {values.size} numbers do not make {count} correspondences and {size} parameters")
    rows, us, theta = np.split(values, (4 * count, values.size - size))
    rows = rows.reshape(count, 4)
    corners = rows[:, 0].astype(np.int64)
    if complicated:
        lines = (model / "triangles.txt").read_text("ascii").split()
        corners = np.array([line.split(":") for line in lines], np.int64)[corners]
    return Hand(
        parents,
        numbers[:, 0].copy(),
        numbers[:, 1].copy(),
        np.array(positions),
        np.array(weights),
        corners,
        rows[:, 1:].copy(),
        us.reshape(count, 2) if complicated else None,
        theta,
    )


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
    """An instance of the LSTM."""
    words = path.read_text("ascii").split()
    layers, characters, bits = map(int, words[:3])
    values = np.array(words[3:], np.float64)
    sizes = (8 * layers * bits, 3 * bits, 2 * layers * bits)
    if values.size != sum(sizes) + characters * bits:
        raise ValueError(f"{path}: {values.size} numbers do not make {layers} layers and {characters} characters")
    main, extra, state, sequence = np.split(values, np.cumsum(sizes))
    return Lstm(
        main.reshape(layers, 2, 4, bits),
        extra.reshape(3, bits),
        state.reshape(layers, 2, bits),
        sequence.reshape(characters, bits),
    )


def worst_error(got: np.ndarray, expected: np.ndarray) -> float:
    """ADBench's measure: the largest |x - y| / max(1, |x| + |y|); right means 1e-8 or less."""
    got, expected = np.ravel(got), np.ravel(expected)
    if got.shape != expected.shape:
        return np.inf
    if not got.size:
        return 0.0
    error = np.max(np.abs(got - expected) / np.maximum(1.0, np.abs(got) + np.abs(expected)))
    return float(error) if np.isfinite(error) else np.inf
