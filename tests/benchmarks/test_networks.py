"""The benchmark of networks, tiny and without peers: what it prints and writes, never how fast it was."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from benchmarks.common import difference
from benchmarks.networks import cases, recurrent
from benchmarks.networks.main import OURS, WITHOUT, main, right
from benchmarks.workers import peak_memory, reset_peak_memory
from myia_relay import relay, value_and_grad


@pytest.mark.campaign
def test_inference_and_a_step_run(tmp_path, capsys):
    out = tmp_path / "out.json"
    words = ["--tiny", "--only", "gru,lstm_step", "--peers", "none", "--threads", "1", "--rounds", "2"]
    assert main([*words, "--seconds", "0.01", "--json", str(out)]) == 0
    rows = json.loads(out.read_text("utf-8"))["rows"]
    assert [(row["row"], row["system"]) for row in rows] == [("gru", "myia_relay"), ("lstm_step", "myia_relay")]
    assert all(len(row["rounds"]) == 2 and row["seconds"] > 0 for row in rows)
    out = capsys.readouterr().out
    assert "gru" in out
    if reset_peak_memory():
        assert "memory" not in rows[0] and 0 < rows[1]["memory"]["growth"] < rows[1]["memory"]["peak"]
        assert "after the imports" in out


@pytest.mark.skipif(not reset_peak_memory(), reason="this system does not tell")
def test_the_peak_of_memory_begins_anew():
    assert np.ones(1 << 25).sum() == 1 << 25  # 256 MB, given back
    before = peak_memory()
    assert reset_peak_memory()
    floor = peak_memory()
    assert floor < before - (1 << 27)
    assert np.ones(1 << 24).sum() == 1 << 24  # 128 MB
    assert peak_memory() > floor + (1 << 26)


def test_a_wrong_output_fails_the_run():
    ours = {"row": "rnn", "system": OURS}
    assert right(ours) and right({**ours, "system": "torch", "difference": 1e-5})
    assert not right({**ours, "failed": "why"})
    assert not right({**ours, "system": "torch", "difference": 1e-3})
    assert not right({**ours, "system": WITHOUT + "blas", "difference": 1e-3})
    assert not right({**ours, "system": WITHOUT + "blas", "failed": "why"})
    assert right({**ours, "system": "torch", "failed": "not installed"})


def test_differences_count_by_the_largest_entry():
    a, b = np.array([1.0, 100.0]), np.array([1.5, 100.0])
    assert difference([a], [b]) == pytest.approx(0.005)
    assert difference([a], [b[:1]]) == np.inf
    assert np.isnan(difference([a * np.nan], [b]))
    assert not right({"row": "rnn", "system": "torch", "difference": np.nan})


def test_rows_have_weights_and_inputs():
    for row in cases.ROWS:
        problem, again = (cases.load(row, tiny=True) for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(cases.flat(problem.weights), cases.flat(again.weights)))
        assert all(a.dtype == np.float32 for a in cases.flat(problem.weights)) and problem.inputs


def test_trees_of_a_file(tmp_path):
    (tmp_path / "sst").mkdir()
    with gzip.open(tmp_path / "sst" / "dev.txt.gz", "wt", encoding="utf-8") as file:
        file.write("(3 (2 It) (4 (4 (2 's) (2 a)) (2 It)))\n(2 no)\n")
    trees = cases.load("treelstm", tiny=True, data=str(tmp_path)).inputs
    assert trees == ((0, ((1, 2), 0)), 3)
    node = recurrent.tree(trees[0])
    assert node == recurrent.Node(
        recurrent.Leaf(0),
        recurrent.Node(recurrent.Node(recurrent.Leaf(1), recurrent.Leaf(2)), recurrent.Leaf(0)),
    )


def test_descent_on_trees():
    """Weights after a step for each tree are those of one program for each step."""
    problem = cases.load("treelstm_step", tiny=True)
    rate = np.float32(cases.RATE)
    total, weights = relay(recurrent.treelstm_train)(problem.weights, recurrent.examples(problem.inputs), rate)
    step = relay(value_and_grad(recurrent.treelstm_loss, "w"))
    want, losses = problem.weights, np.float32(0)
    for parts, label in problem.inputs:
        loss, g = step(want, recurrent.tree(parts), label)
        out = {k: want["out"][k] - rate * g["out"][k] for k in want["out"]}
        want = {**{k: want[k] - rate * g[k] for k in want if k != "out"}, "out": out}
        losses += loss
    assert total == pytest.approx(losses, rel=1e-5)
    assert difference(cases.flat(weights), cases.flat(want)) < 1e-5
    assert difference(cases.flat(weights), cases.flat(problem.weights)) > 1e-5
