"""Every benchmark runs once, tiny and without peers: what it prints and writes, never how fast it was."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks import common, lenet
from benchmarks.workers import Worker, WorkerError, find_peer

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str) -> subprocess.CompletedProcess:
    """Run the benchmarks as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.campaign
def test_lenet(tmp_path):
    out = tmp_path / "lenet.json"
    words = [
        "--data",
        "synthetic",
        "--steps",
        "10",
        "--batches",
        "2",
        "--rounds",
        "2",
        "--agree",
        "3",
        "--peers",
        "none",
    ]
    done = run("lenet", *words, "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(out.read_text("utf-8"))
    for case in ("batch1", "batch64"):
        ours = figures[case]["myia_relay"]
        assert len(ours["rounds"]) == 2 and min(ours["rounds"]) > 0
        assert ours["losses"][0] == pytest.approx(2.303, abs=0.05)  # ten equally likely digits
        assert figures["cold"][case] > 0
    assert figures["memory"]["bytes_after_10x"] >= figures["memory"]["bytes"] > 0


def test_accuracy(tmp_path):
    out = tmp_path / "accuracy.json"
    done = run("accuracy", "--data", "digits", "--examples", "64", "--epochs", "1", "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(out.read_text("utf-8"))
    assert figures["figure4"]["steps"] == 64 and figures["fit"]["steps"] == 1
    assert 0 <= figures["fit"]["accuracy"] <= 100


@pytest.mark.campaign
def test_resnet_mnist():
    done = run("resnet_mnist", "--data", "digits", "--examples", "96", "--epochs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "batch_norm_8" in done.stdout and "of 96 images" in done.stdout


def test_calls(tmp_path):
    out = tmp_path / "calls.json"
    done = run("calls", "--rounds", "1", "--seconds", "0.01", "--peers", "none", "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads(out.read_text("utf-8"))["cases"]
    assert set(cases) == {"scalar", "arrays", "tree"}
    assert all(case["myia_relay"]["call"]["median"] > 0 for case in cases.values())


def test_loops(tmp_path):
    out = tmp_path / "loops.json"
    names = "trisolv,cholesky,heat_3d,nussinov_slices,self_energies,resnet_block,mvt"
    words = ["--sizes", "tiny", "--cases", names, "--peers", "numpy", "--rounds", "1"]
    done = run("loops", *words, "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads(out.read_text("utf-8"))["cases"]
    assert set(cases) == {f"{name}/tiny" for name in names.split(",")}
    assert all(case["myia_relay"] > 0 and case["numpy/ours"] > 0 for case in cases.values())


@pytest.mark.campaign
def test_all_loops(tmp_path):
    done = run("loops", "--sizes", "tiny", "--rounds", "1", "--json", str(tmp_path / "loops.json"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_random_numbers(tmp_path):
    out = tmp_path / "random_numbers.json"
    words = ["--count", "1000", "--rounds", "1", "--seconds", "0.001", "--peers", "numpy"]
    done = run("random_numbers", *words, "--only", "normal float64,metropolis", "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    cases = json.loads(out.read_text("utf-8"))["cases"]
    assert set(cases) == {"normal float64", "metropolis"}
    assert all(case["ns"][name]["median"] > 0 for case in cases.values() for name in ("myia_relay", "numpy"))


def test_convolutions(tmp_path):
    out = tmp_path / "convolutions.json"
    done = run("convolutions", "--rounds", "1", "--seconds", "0.001", "--only", "mobilenet 1x1 14", "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    (layer,) = json.loads(out.read_text("utf-8"))["layers"].values()
    assert layer["error"] < 1e-5 and all(speed["median"] > 0 for speed in layer["gflops"].values())


def test_compile(tmp_path):
    out = tmp_path / "compile.json"
    done = run("compile", "--rounds", "1", "--only", "scalar", "--sizes", "5,6", "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(out.read_text("utf-8"))
    assert set(figures["imports"]) == {"import myia_relay", "import tvm", "import the compiler"}
    assert set(figures["families"]) == {"scalar"}
    for sizes in figures["families"].values():
        assert set(sizes) == {"5", "6"}
        assert all(
            f["first"]["wall"] > 0 and set(f["stages"]) >= {"inferred", "lowered", "generated"} for f in sizes.values()
        )


def test_help_names_every_benchmark(capsys):
    assert benchmarks.main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in benchmarks.NAMES)
    assert benchmarks.main(["nonsense"]) == 2


def test_a_missing_peer_is_said_and_left_out(monkeypatch, capsys, tmp_path):
    started = []

    class Fake:
        def __init__(self, module, words, python, threads):
            started.append(module)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    monkeypatch.setattr(lenet, "find_peer", lambda package, python: None)
    monkeypatch.setattr(lenet, "Worker", Fake)
    import contextlib

    with contextlib.ExitStack() as stack:
        workers = lenet.start_workers(lenet.parse(["--peers", "torch,jax"]), tmp_path, stack)
    assert list(workers) == ["myia_relay"] and started == ["benchmarks.peers.relay_lenet"]
    said = capsys.readouterr().out
    assert "torch is not installed" in said and "jax is not installed" in said and "--peer-python" in said


def test_find_peer():
    assert find_peer("json", None) == sys.executable
    assert find_peer("no_such_package_at_all", None) is None


def test_a_worker_that_fails_says_why(tmp_path):
    with pytest.raises(WorkerError, match="ended with status"):
        with Worker("benchmarks.peers.relay_lenet", [str(tmp_path / "nowhere")]) as worker:
            worker("versions")


def test_losses_that_differ_fail_the_run(monkeypatch, capsys):
    class Fake:
        def __init__(self, losses):
            self.values = {"first": 0.1, "measure": 100.0, "losses": losses}

        def __call__(self, name, **arguments):
            return self.values[name]

    options = lenet.parse(["--rounds", "1", "--agree", "2"])
    good = {"myia_relay": Fake([2.3, 2.2]), "peer": Fake([2.3, 2.20001])}
    assert lenet.run_case(good, "batch1", options)[1]
    bad = {"myia_relay": Fake([2.3, 2.2]), "peer": Fake([2.3, 2.21])}
    assert not lenet.run_case(bad, "batch1", options)[1]
    assert "NOT WITHIN" in capsys.readouterr().out
    # Three systems that differ as much from each other as rounding makes them: ours is but one of them.
    noisy = {"myia_relay": Fake([2.3, 2.2]), "one": Fake([2.3, 2.2003]), "two": Fake([2.3, 2.1999])}
    assert lenet.run_case(noisy, "batch1", options)[1]
    nan = {"myia_relay": Fake([2.3, 2.2]), "peer": Fake([2.3, float("nan")])}
    assert not lenet.run_case(nan, "batch1", options)[1]


def test_every_system_is_measured_once_a_round():
    order = []
    systems = {name: lambda name=name: order.append(name) or 1.0 for name in "abc"}
    figures = common.interleave(systems, rounds=3, rest=0)
    assert figures == {"a": [1.0] * 3, "b": [1.0] * 3, "c": [1.0] * 3}
    assert [sorted(order[i : i + 3]) for i in (0, 3, 6)] == [["a", "b", "c"]] * 3
    assert order[0] != order[3]  # no system is always first


def test_ratios_are_taken_within_a_round():
    # The second round ran on a machine half as fast; the ratio does not see it.
    assert common.ratio([100.0, 50.0, 100.0], [50.0, 25.0, 50.0]) == 2.0
    assert common.spread([3.0, 1.0, 2.0]) == {"median": 2.0, "best": 3.0, "worst": 1.0}
    assert common.spread([3.0, 1.0, 2.0], higher_is_better=False)["best"] == 1.0


def test_table_lines_up():
    assert common.table([["", "a"], ["name", "10"]]) == "       a\nname  10"


@pytest.mark.campaign
def test_derivatives(tmp_path):
    out = tmp_path / "derivatives.json"
    words = ["--small", "--rounds", "2", "--seconds", "0.001", "--peers", "none", "--threads", "1", "--json", str(out)]
    done = run("derivatives", *words)
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text())
    names = {"gmm", "lstm", "tree", "parsed", "lenet", "solved", "factorised", "relaxed"}
    assert set(results["objectives"]) == names
    assert all(case["ratio"] > 0 for case in results["objectives"].values())
    assert "gradient / objective" in done.stdout and results["jacobian"]["n = 200, array"]["myia_relay"]["best"] > 0


def test_language(tmp_path):
    out = tmp_path / "language.json"
    words = ["--programs", "fib,edit_distance,nbody", "--scale", "1e-5", "--rounds", "1", "--peers", "cpython,c"]
    done = run("language", *words, "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    programs = json.loads(out.read_text("utf-8"))["programs"]
    assert set(programs) == {"fib", "edit_distance", "nbody"}
    for figures in programs.values():
        assert not figures["differ"] and figures["work"] > 0 and figures["memory"]["peak"] > 0
        assert figures["seconds"]["myia_relay"]["median"] > 0


def test_a_result_that_differs_is_noticed():
    from benchmarks.language.programs import equal

    assert equal((1, 2.0), (1, 2.0)) and not equal((1, 2.0), (1, 2.5)) and not equal(1, 1.0)


def test_notebooks(tmp_path):
    """Every row's cells are there and train; the smallest is measured."""
    from benchmarks.notebooks import FILES
    from benchmarks.peers import relay_notebooks

    assert set(relay_notebooks.BUILDERS) == set(FILES)
    for name in set(FILES.values()):
        notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text("utf-8"))
        assert any("program" in cell["metadata"].get("tags", ()) for cell in notebook["cells"])
    out = tmp_path / "notebooks.json"
    done = run("notebooks", "--only", "kalman", "--rounds", "1", "--json", str(out))
    assert done.returncode == 0, done.stdout + done.stderr
    ours = json.loads(out.read_text("utf-8"))["rows"][0]
    assert ours["system"] == "relay" and ours["seconds"] > 0 and ours["first"][0] < 0


def test_text():
    done = run("text", "--rounds", "1", "--n", "2", "--length", "20", "--depth", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "quicksort of 20" in done.stdout and "TreeLSTM of 4 words" in done.stdout


def test_containers(tmp_path):
    figures, plot = tmp_path / "containers.json", tmp_path / "containers.png"
    done = run("containers", "--only", "pairs", "--lengths", "3,5", "--json", str(figures), "--plot", str(plot))
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(json.loads(figures.read_text("utf-8"))["pairs"]) == {"3", "5"}
    assert "list of tuples" in done.stdout and plot.stat().st_size > 1000


def test_lists(tmp_path):
    figures = tmp_path / "lists.json"
    done = run(
        "lists", "--only", "pairs,ragged", "--lengths", "3,20", "--rounds", "1", "--no-numba", "--json", str(figures)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text("utf-8"))["kinds"]
    assert all(found[kind][n]["loop/cpython"] > 0 for kind in ("pairs", "ragged") for n in ("3", "20"))
