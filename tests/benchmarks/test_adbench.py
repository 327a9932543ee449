"""The workloads of ADBench and LAGrad: readers, results against closed forms in NumPy, the command once."""

from __future__ import annotations

import importlib
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.adbench import ba, cases, data, gmm, hand, limit, lstm, mlp, report, trmv
from benchmarks.peers import relay_adbench
from myia_relay import relay

main_module = importlib.import_module("benchmarks.adbench.main")  # the package has a function of that name

ROOT = Path(__file__).resolve().parents[2]
DECORATED = {
    "native": relay(executor="native"),
    "python": relay(executor="python"),
    "interpreter": relay(executor="interpreter"),
}


def write(path: Path, *parts) -> Path:
    """A file of numbers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n".join(" ".join(repr(float(x)) if isinstance(x, float) else str(x) for x in part) for part in parts)
    )
    return path


# Gaussian mixture.


def mixture_gradient(r: data.Mixture) -> list[np.ndarray]:
    """F and its gradient, by hand: ADBench's formulas."""
    (k, d), n = r.means.shape, len(r.x)
    columns, rows = np.triu_indices(d, 1)
    q = r.icf[:, :d]
    factor = np.zeros((k, d, d))
    factor[:, rows, columns] = r.icf[:, d:]
    factor[:, range(d), range(d)] = np.exp(q)
    away = r.x - r.means[:, None]  # (k, n, d)
    y = np.einsum("kij,knj->kni", factor, away)
    terms = r.alphas[:, None] + q.sum(1)[:, None] - 0.5 * (y**2).sum(2)
    value = -0.5 * n * d * math.log(2 * math.pi) + np.logaddexp.reduce(terms, axis=0).sum()
    value -= n * np.logaddexp.reduce(r.alphas)
    value += 0.5 * r.gamma**2 * ((np.exp(q) ** 2).sum() + (r.icf[:, d:] ** 2).sum()) - r.m * q.sum()
    value -= k * limit.wishart_constant(d, r.gamma, r.m)
    share = np.exp(terms - np.logaddexp.reduce(terms, axis=0))
    by_alphas = share.sum(1) - n * np.exp(r.alphas - np.logaddexp.reduce(r.alphas))
    weighted = share[:, :, None] * y
    by_means = np.einsum("kij,kni->kj", factor, weighted)
    by_factor = -np.einsum("kni,knj->kij", weighted, away)
    by_q = share.sum(1)[:, None] + by_factor[:, range(d), range(d)] * np.exp(q) + r.gamma**2 * np.exp(q) ** 2 - r.m
    by_lower = by_factor[:, rows, columns] + r.gamma**2 * r.icf[:, d:]
    return [np.array(value), by_alphas, by_means, np.concatenate([by_q, by_lower], axis=1)]


@pytest.mark.parametrize("d, k, n", [(3, 2, 7), (1, 2, 5)])
@pytest.mark.sampled(6)
def test_mixture(executor, d, k, n):
    record = cases.make_mixture(d, k, n)
    args = (record.alphas, record.means, record.icf, record.x, record.gamma, record.m)
    value, gradient = DECORATED[executor](gmm.gradient)(*args)
    for got, expected in zip([value, *gradient], mixture_gradient(record), strict=True):
        assert data.worst_error(got, expected) < 1e-12
    assert gmm.objective(*args) == pytest.approx(value, rel=1e-13)


def test_mixture_into():
    record = cases.make_mixture(2, 3, 10)
    args = (record.alphas, record.means, record.icf, record.x, record.gamma, record.m)
    out = (np.empty(()), tuple(np.empty_like(a) for a in args[:3]))
    relay(gmm.gradient).into(out)(*args)
    for got, expected in zip([out[0], *out[1]], mixture_gradient(record), strict=True):
        assert data.worst_error(got, expected) < 1e-12


# Bundle adjustment, hand tracking, LSTM: references in NumPy, their derivatives by complex steps, exact to rounding.


def by_complex_step(function, x: np.ndarray) -> np.ndarray:
    """The Jacobian of an analytic function: result's shape, then that of x."""
    columns = []
    for i in range(x.size):
        moved = x.astype(complex)
        moved.flat[i] += 1e-30j
        columns.append(np.imag(function(moved)) / 1e-30)
    return np.stack(columns, axis=-1)


def skew(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def turned(r):
    """The rotation matrix of an axis times an angle."""
    angle = np.sqrt(np.sum(r * r))
    k = skew(r / angle)
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k)


def residual(p, feature):
    """Of one observation, by its 15 parameters: camera, point, weight."""
    seen = turned(p[:3]) @ (p[11:14] - p[3:6])
    flat = seen[:2] / seen[2]
    s = np.sum(flat * flat)
    return p[14] * (flat * (1 + p[9] * s + p[10] * s * s) * p[6] + p[7:9] - feature)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sizes", [(3, 4, 7), (2, 1, 1)])
def test_scene(executor, sizes):
    r = cases.make_scene(*sizes)
    args = (r.cameras, r.points, r.weights, r.observations, r.features)
    errors, weight_errors, blocks, by_weight = DECORATED[executor](ba.jacobian)(*args)
    for i, (camera, point) in enumerate(r.observations):
        p = np.concatenate([r.cameras[camera], r.points[point], r.weights[i : i + 1]])
        assert data.worst_error(errors[i], residual(p, r.features[i])) < 1e-12
        assert data.worst_error(blocks[i], by_complex_step(lambda p, i=i: residual(p, r.features[i]), p)) < 1e-12
    assert data.worst_error(weight_errors, 1 - r.weights**2) < 1e-15
    assert data.worst_error(by_weight, -2 * r.weights) < 1e-15


def test_scene_without_rotation():
    r = cases.make_scene(1, 1, 2)
    r.cameras[:, :3] = 0.0
    _, _, blocks, _ = ba.jacobian(r.cameras, r.points, r.weights, r.observations, r.features)
    # In the limit the rotation is that of a small angle.
    r.cameras[:, :3] = 1e-9
    _, _, near, _ = ba.jacobian(r.cameras, r.points, r.weights, r.observations, r.features)
    assert data.worst_error(blocks, near) < 1e-6


def hand_residuals(r: data.Hand, theta, us=None) -> np.ndarray:
    """ADBench's formulas, a vertex at a time."""

    def around(axis, angle):
        c, s = np.cos(angle), np.sin(angle)
        if axis == 0:
            return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])
        return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])

    absolute = []
    for bone, parent in enumerate(r.parents):
        relative = r.base_relative[bone]
        finger, joint = divmod(bone - 1, 4)
        if 0 < bone < 21 and joint == 1:
            relative = relative @ around(2, theta[7 + 4 * finger]) @ around(0, theta[6 + 4 * finger])
        elif 0 < bone < 21 and joint > 1:
            relative = relative @ around(0, theta[6 + 4 * finger + joint])
        absolute.append(relative if parent < 0 else absolute[parent] @ relative)
    transforms = [a @ b for a, b in zip(absolute, r.inverse_base_absolute, strict=True)]

    def place(v):
        there = sum(r.weights[v, b] * (t @ np.array([*r.positions[v], 1.0]))[:3] for b, t in enumerate(transforms))
        return turned(theta[:3]) @ there + theta[3:6]

    if us is None:
        return np.concatenate([r.points[i] - place(v) for i, v in enumerate(r.corners)])
    mixed = [(*u, 1 - u[0] - u[1]) for u in us]
    rows = zip(r.points, mixed, r.corners, strict=True)
    return np.concatenate([point - sum(m * place(v) for m, v in zip(mix, vs, strict=True)) for point, mix, vs in rows])


@pytest.mark.parametrize("complicated", [0, 1])
@pytest.mark.sampled(6)
def test_hand(executor, complicated):
    r = cases.make_hand(3, V=4, complicated=complicated)
    model = hand.Model(r.parents, r.base_relative, r.inverse_base_absolute, r.positions, r.weights)
    expected = by_complex_step(lambda theta: hand_residuals(r, theta, r.us), r.theta).T
    if complicated:
        function, args = hand.complicated_jacobian, (r.theta, r.us, model, r.corners, r.points)
        by_us = by_complex_step(lambda us: hand_residuals(r, r.theta, us), r.us).reshape(9, 3, 2)
        own = np.stack([by_us[i, i // 3] for i in range(9)])
        expected = np.concatenate([own.T, expected])
        assert np.count_nonzero(by_us) == np.count_nonzero(own)  # what lets one direction serve all
    else:
        function, args = hand.simple_jacobian, (r.theta, model, r.corners, r.points)
    errors, columns = DECORATED[executor](function)(*args)
    assert data.worst_error(errors, hand_residuals(r, r.theta, r.us)) < 1e-13
    assert data.worst_error(columns, expected) < 1e-13


def test_hand_that_is_not_turned():
    r = cases.make_hand(2, V=3)
    model = hand.Model(r.parents, r.base_relative, r.inverse_base_absolute, r.positions, r.weights)
    r.theta[:3] = 0.0
    errors, columns = hand.simple_jacobian(r.theta, model, r.corners, r.points)
    r.theta[:3] = 1e-9
    assert data.worst_error(errors, hand_residuals(r, r.theta)) < 1e-8
    assert np.isfinite(columns).all()


def lstm_loss(main, extra, r: data.Lstm):
    hidden, cells = list(r.state[:, 0]), list(r.state[:, 1])
    total = 0.0
    for now, after in zip(r.sequence[:-1], r.sequence[1:], strict=True):
        x = now * extra[0]
        for i, (w, b) in enumerate(main):
            f, g, o = (1 / (1 + np.exp(-(v * w[k] + b[k]))) for k, v in ((0, x), (1, hidden[i]), (2, x)))
            cells[i] = cells[i] * f + g * np.tanh(hidden[i] * w[3] + b[3])
            x = hidden[i] = o * np.tanh(cells[i])
        y = x * extra[1] + extra[2]
        total += np.sum(after * (y - np.log(2 + np.sum(np.exp(y)))))
    return -total / ((len(r.sequence) - 1) * r.sequence.shape[1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("layers, characters, bits", [(2, 4, 3), (1, 2, 1)])
def test_lstm(executor, layers, characters, bits):
    r = cases.make_lstm(layers, characters, bits)
    value, (by_main, by_extra) = DECORATED[executor](lstm.gradient)(r.main, r.extra, r.state, r.sequence)
    assert value == pytest.approx(lstm_loss(r.main, r.extra, r), rel=1e-13)
    expected = by_complex_step(lambda main: lstm_loss(main, r.extra, r), r.main)
    assert data.worst_error(by_main, expected) < 1e-13
    assert data.worst_error(by_extra, by_complex_step(lambda extra: lstm_loss(r.main, extra, r), r.extra)) < 1e-13


@pytest.mark.parametrize("n", [1, 2, 9])
def test_triangle(executor, n):
    r = cases.make_triangle(n)
    by_lower, by_x = DECORATED[executor](trmv.pullback)(r.lower, r.x, r.g)
    for got, expected in zip((by_lower, by_x), cases.triangle_pullback(r), strict=True):
        assert data.worst_error(got, expected) < 1e-14


def test_perceptron(executor):
    r = cases.make_perceptron(6, 5, inputs=7, classes=3)
    value, gradient = DECORATED[executor](mlp.gradient)(r.parameters, r.x, r.labels)
    for got, expected in zip((value, *gradient), cases.perceptron_gradient(r), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7)
    assert {a.dtype for a in gradient} == {np.dtype("float32")}


# Readers.


def test_read_mixture(tmp_path):
    r = cases.make_mixture(2, 3, 4)
    whole = write(
        tmp_path / "a.txt", [2, 3, 4], r.alphas.tolist(), *r.means.tolist(), *r.icf.tolist(), *r.x.tolist(), [1.7, 3]
    )
    read = data.read_mixture(whole)
    for name in ("alphas", "means", "icf", "x", "gamma", "m"):
        np.testing.assert_array_equal(getattr(read, name), getattr(r, name))
    one = write(
        tmp_path / "b.txt", [2, 3, 4], r.alphas.tolist(), *r.means.tolist(), *r.icf.tolist(), r.x[0].tolist(), [1.0, 0]
    )
    np.testing.assert_array_equal(data.read_mixture(one).x, np.tile(r.x[0], (4, 1)))


def test_read_scene(tmp_path):
    path = write(tmp_path / "ba.txt", [2, 3, 4], [float(i) for i in range(11)], [1.0, 2.0, 3.0], [0.5], [7.0, 8.0])
    scene = data.read_scene(path)
    assert scene.cameras.shape == (2, 11) and scene.points.shape == (3, 3) and scene.features.shape == (4, 2)
    assert scene.observations.tolist() == [[0, 0], [1, 1], [0, 2], [1, 0]]
    assert scene.weights.tolist() == [0.5] * 4


def test_read_lstm(tmp_path):
    r = cases.make_lstm(1, 3, 2)
    parts = (a.reshape(-1).tolist() for a in (r.main, r.extra, r.state, r.sequence))
    read = data.read_lstm(write(tmp_path / "lstm.txt", [1, 3, 2], *parts))
    for name in ("main", "extra", "state", "sequence"):
        np.testing.assert_array_equal(getattr(read, name), getattr(r, name))


def write_hand(folder: Path, r: data.Hand, corner: int = 1) -> Path:
    """A hand model with one triangle, and an instance beside it whose correspondences are all the same."""

    def words(*values) -> str:
        return ":".join(map(str, values))

    bones = [
        words("bone", parent, *a.ravel(), *b.ravel())
        for parent, a, b in zip(r.parents, r.base_relative, r.inverse_base_absolute, strict=True)
    ]
    vertices = []
    for position, weights in zip(r.positions, r.weights, strict=True):
        pairs = [(bone, weights[bone]) for bone in np.flatnonzero(weights)]
        vertices.append(words(*position, 0, 0, 1, 0, 0, len(pairs), *(x for pair in pairs for x in pair)))
    model = folder / "model"
    model.mkdir(parents=True)
    for name, lines in (("bones", bones), ("vertices", vertices), ("triangles", ["0:2:1"])):
        (model / f"{name}.txt").write_text("\n".join(lines))
    rows = [[corner, *point] for point in r.points.tolist()]
    us = [] if r.us is None else r.us.tolist()
    return write(folder / "hand1.txt", [len(rows), 26], *rows, *us, r.theta.tolist())


def test_read_hand(tmp_path):
    r = cases.make_hand(3, V=5)
    path = write_hand(tmp_path / "simple", r)
    read = data.read_hand(path, tmp_path / "simple" / "model", False)
    for name in ("parents", "base_relative", "inverse_base_absolute", "positions", "weights", "points", "theta"):
        np.testing.assert_array_equal(getattr(read, name), getattr(r, name))
    assert read.corners.tolist() == [1, 1, 1] and read.us is None
    r = cases.make_hand(3, V=5, complicated=1)
    path = write_hand(tmp_path / "complicated", r, corner=0)
    read = data.read_hand(path, tmp_path / "simple" / "model", True)
    assert read.corners.tolist() == [[0, 2, 1]] * 3
    np.testing.assert_array_equal(read.us, r.us)


CORRUPT = [
    ("", "ends before its sizes"),
    ("2 0 4", "K is '0'"),
    ("2 1 x", "n is 'x'"),
    ("1 1 1 0.5 0.5", "ends in the inverse covariance factors: 1 numbers expected, 0 left"),
    ("1 1 1 0.5 abc 0.5 0.5 1.0 0", "in the means: could not convert string to float: 'abc'"),
    ("1 1 1 0.5 nan 0.5 0.5 1.0 0", "in the means: not all numbers are finite"),
    ("1 1 2 0.5 0.5 0.5 1 2 1.0 0 9", "1 words too many, beginning with '9'"),
    ("1 1 1 0.5 0.5 0.5 1 0.0 0", "not a positive number and a whole one"),
    ("1 1 1 0.5 0.5 0.5 1 1.0 0.5", "not a positive number and a whole one"),
]


@pytest.mark.parametrize("text, message", CORRUPT)
def test_corrupt_mixture(tmp_path, text, message):
    path = tmp_path / "gmm.txt"
    path.write_text(text)
    with pytest.raises(data.FormatError, match=message) as raised:
        data.read_mixture(path)
    assert str(path) in str(raised.value)


def test_corrupt_others(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"\xff\xfe1 2 3")
    for read in (data.read_mixture, data.read_scene, data.read_lstm):
        with pytest.raises(data.FormatError, match="not a text of numbers: byte 0 is 0xff"):
            read(path)
    path.write_text("1 1 1 " + "0.5 " * 16)
    with pytest.raises(data.FormatError, match="ends in the feature"):
        data.read_scene(path)
    path.write_text("1 2 1 " + "0.5 " * 14)
    with pytest.raises(data.FormatError, match="ends in the sequence"):
        data.read_lstm(path)
    with pytest.raises(FileNotFoundError):
        data.read_lstm(tmp_path / "none.txt")


def test_corrupt_hand(tmp_path):
    path = write_hand(tmp_path, cases.make_hand(2, V=4), corner=4)
    model = tmp_path / "model"
    with pytest.raises(data.FormatError, match="names none of the 4 vertices"):
        data.read_hand(path, model, False)
    with pytest.raises(data.FormatError, match="ends in the places in triangles"):
        path.write_text("1 26\n0 1 2 3\n1")
        data.read_hand(path, model, True)
    for name, line, message in (
        ("triangles", "0:1:4", "names none of the 4 vertices"),
        ("triangles", "0:1", "no triples"),
        ("vertices", "1:2:3:0:0:0:0:0:1:22:1.0", "line 1: bone 22 of 22"),
        ("vertices", "1:2:3:0:0:0:0:0:2:1:1.0", "line 1: list index out of range"),
        ("bones", "a:0:1", "line 1: a parent before it and 32 numbers"),
    ):
        folder = tmp_path / f"{name}{len(line)}"
        path = write_hand(folder, cases.make_hand(2, V=4, complicated=1), corner=0)
        (folder / "model" / f"{name}.txt").write_text(line)
        with pytest.raises(data.FormatError, match=message):
            data.read_hand(path, folder / "model", True)


# The rule, the cases, the command.


def test_worst_error():
    assert data.worst_error(np.array([1.0, 2.0]), np.array([1.0, 2.0])) == 0.0
    assert data.worst_error(np.array([100.0]), np.array([101.0])) == pytest.approx(1 / 201)
    assert data.worst_error(np.array([0.0]), np.array([1e-9])) == pytest.approx(1e-9)
    assert data.worst_error(np.array([np.nan]), np.array([1.0])) == math.inf
    assert data.worst_error(np.array([np.nan]), np.array([np.nan])) == math.inf
    assert data.worst_error(np.zeros(2), np.zeros(3)) == math.inf


def test_generated_references():
    """The closed forms that generated cases are compared with, against central differences."""
    r = cases.make_triangle(5)
    dense = np.zeros((5, 5))
    dense.T[np.triu_indices(5, 1)] = r.lower
    by_lower, by_x = cases.triangle_pullback(r)
    np.testing.assert_allclose(by_x, dense.T @ r.g)
    np.testing.assert_allclose(by_lower, np.outer(r.x, r.g)[np.triu_indices(5, 1)])
    p = cases.make_perceptron(4, 3, inputs=5, classes=2)
    loss, *gradient = cases.perceptron_gradient(p)
    for place, by in enumerate(gradient):
        moved = []
        for step in (1e-6, -1e-6):
            parameters = [a.astype(np.float64) for a in p.parameters]
            parameters[place].flat[0] += step
            moved.append(float(cases.perceptron_gradient(replace(p, parameters=tuple(parameters)))[0]))
        assert by.flat[0] == pytest.approx((moved[0] - moved[1]) / 2e-6, abs=1e-7)


def test_a_wrong_output_is_noticed():
    case = cases.generated("trmv", n=6)
    record = cases.load(case)
    output = cases.triangle_pullback(record)
    assert cases.output_error(case, record, output) == 0.0
    output[0][0] += 1e-6
    assert cases.output_error(case, record, output) > 1e-8
    case = cases.generated("mlp", h=4, batch=3)
    record = cases.load(case)
    output = cases.perceptron_gradient(record)
    output[1] = output[1] * 1.001
    assert cases.output_error(case, record, output) > cases.tolerance("mlp")


def test_report(capsys):
    rows = [
        {
            "workload": "gmm",
            "case": "a",
            "system": "myia_relay",
            "threads": 1,
            "objective": 1e-3,
            "gradient": 2e-3,
            "into": 1e-3,
        },
        {"workload": "gmm", "case": "a", "system": "jax", "threads": 1, "objective": 1e-3, "gradient": 4e-3},
        {"workload": "gmm", "case": "a", "system": "torch", "threads": 1, "objective": 1e-3, "gradient": 8e-3},
        {"workload": "gmm", "case": "a", "system": "limit", "threads": 1, "objective": 1e-3, "gradient": 5e-4},
        {"workload": "ba", "case": "b", "system": "myia_relay", "threads": 1, "failed": "why"},
    ]
    rows[0] |= {"peak": 2**20, "error": 1e-9, "compile": 1.0}
    rows[1] |= {"peak": 2**22, "error": 1e-7, "compile": 3.0}
    assert report.failures(rows) == 1 and report.failures(rows[:4]) == 0
    report.show(rows, [], False)
    said = capsys.readouterr().out
    assert "jax: 0 of 1 outputs right" in said and "WRONG: gmm/a" in said and "failed: ba/b" in said
    line = next(line for line in said.splitlines() if line.startswith("gmm  "))
    assert line.split() == ["gmm", "2.00", "2.00", "1.5", "4.00", "4.00", "2.00", "4.00"]
    assert "4.00 x less than jax; never more than jax" in said
    assert "|" in said and "o" in said


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.adbench", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


def small_mixture(folder: Path, **changes) -> Path:
    """A folder with one instance and its reference."""
    r = replace(cases.make_mixture(2, 2, 10), **changes)
    parts = ([2, 2, 10], r.alphas.tolist(), *r.means.tolist(), *r.icf.tolist(), *r.x.tolist(), [r.gamma, r.m])
    write(folder / "gmm" / "1k" / "gmm_d2_K2.txt", *parts)
    (folder / "ref").mkdir()
    np.save(folder / "ref" / "gmm__1k__gmm_d2_K2.npy", np.concatenate([a.ravel() for a in mixture_gradient(r)]))
    return folder


def test_command(tmp_path):
    out = tmp_path / "out.json"
    words = ["--data", str(small_mixture(tmp_path / "data")), "--only", "gmm", "--threads", "1", "--peers", "none"]
    done = run(*words, "--rounds", "1", "--seconds", "0.001", "--no-scaling", "--no-memory", "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = json.loads(out.read_text("utf-8"))["rows"]
    assert (row["workload"], row["case"], row["system"], row["threads"]) == ("gmm", "1k/gmm_d2_K2", "myia_relay", 1)
    assert min(row["objective"], row["gradient"], row["into"]) > 0 and row["error"] < 1e-12 and row["compile"] >= 0
    assert "1 of 1 outputs right" in done.stdout


def test_command_with_a_wrong_reference(tmp_path):
    folder = small_mixture(tmp_path / "data")
    path = folder / "ref" / "gmm__1k__gmm_d2_K2.npy"
    np.save(path, np.load(path) + 1e-6)
    done = run(
        "--data",
        str(folder),
        "--only",
        "gmm",
        "--threads",
        "1",
        "--peers",
        "none",
        "--check",
        "--executor",
        "interpreter",
    )
    assert done.returncode == 1 and "WRONG" in done.stdout, done.stdout + done.stderr
    done = run("--data", str(tmp_path / "nowhere"), "--only", "gmm", "--peers", "limit")
    assert done.returncode == 2 and "not a folder of ADBench's instances" in done.stdout


def test_peers_that_are_not_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(main_module, "find_peer", lambda package, python: None)
    options = main_module.parse(
        ["--only", "trmv", "--peers", "jax,torch,limit", "--limit-source", str(tmp_path / "none.cpp")]
    )
    bench = main_module.Bench(options, tmp_path)
    assert set(bench.runs) == {"myia_relay", "sgemm"} and bench.program is None
    said = capsys.readouterr().out
    assert "jax is not installed" in said and "torch is not installed" in said and "names no file" in said


def test_instances(data_dir):
    """ADBench's own instances, where they are there: the small ones."""
    folder = data_dir / "adbench"
    if not folder.is_dir():
        pytest.skip(f"no instances of ADBench: {folder} does not exist")
    names = {
        "gmm": ["1k/gmm_d2_K5", "1k/gmm_d10_K5"],
        "ba": ["ba1_n49_m7776_p31843"],
        "hand": ["simple_small/hand1_t26_c100", "complicated_small/hand7_t26_c3200"],
        "lstm": ["lstm_l4_c1024"],
    }
    checked = 0
    for workload in names:
        for name in names[workload]:
            case = cases.Case(workload, name, str(folder))
            record = cases.load(case)
            (work,) = relay_adbench.BUILDERS[workload](record)
            error = cases.output_error(case, record, [np.asarray(a) for a in work.flat(work.gradient())])
            assert error < 1e-8, case
            checked += 1
    assert checked == len({c.name for c in cases.find_cases(folder, list(names))} & set(sum(names.values(), [])))


def test_ablation():
    """Without an optimisation the outputs stay right, and the table says how much slower it is."""
    rows = [
        {"workload": "ba", "case": "a", "system": "myia_relay", "threads": 1, "into": 1.0, "gradient": 2.0},
        {"workload": "ba", "case": "a", "system": "without blas", "threads": 1, "into": 4.0, "gradient": 2.0},
        {"workload": "ba", "case": "b", "system": "myia_relay", "threads": 1, "gradient": 2.0},
        {"workload": "ba", "case": "b", "system": "without blas", "threads": 1, "gradient": 2.0},
        {"workload": "mlp", "case": "c", "system": "myia_relay", "threads": 1, "gradient": 2.0},
    ]
    assert report.ablation_table(rows).split("\n")[1].split() == ["without", "blas", "2.00", "-"]


def test_scaling_table_sets_the_reference_beside_ours():
    row = {"workload": "ba", "elements": 1000}
    rows = [
        row | {"case": "p=1000", "seconds": 2e-6, "limit": 1e-6},
        row | {"case": "p=10000", "elements": 10_000, "seconds": 3e-5, "limit": 2e-5},
        {"workload": "ba", "case": "p=1", "system": "myia_relay", "failed": "one\ntwo"},
        {"workload": "mlp", "case": "h=64", "elements": 10, "seconds": 1e-6},
    ]
    text = report.scaling_table(rows)
    assert [line.split() for line in text.splitlines()[1:5]] == [
        ["ba/p=1000", "1,000", "2.000", "1.000"],
        ["ba/p=10000", "10,000", "3.000", "2.000"],
        ["ba/p=1", "failed:", "two"],
        ["mlp/h=64", "10", "100.000"],
    ]
    assert "ba 1.50 (limit 2.00), mlp 1.00  (wanted" in text
