"""The benchmark of ONNX models, tiny and without peers: what it prints and writes, never how fast it was."""

from __future__ import annotations

import json

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import parser  # noqa: E402

from benchmarks.onnx import OURS, built_models, found_models, lines, main, parse, right  # noqa: E402
from benchmarks.onnx_measure import arrays  # noqa: E402
from benchmarks.workers import reset_peak_memory  # noqa: E402

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
net (float[n, m, 2] x, int64[n] k) => (float[n, m, 2] y) { f = Cast <to = 1> (k)  s = ReduceSum(f)  y = Add(x, s) }"""


def test_a_model_of_a_folder_is_measured(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", "64")
    (tmp_path / "given").mkdir()
    onnx.save_model(parser.parse_model(MODEL), tmp_path / "given" / "model.onnx")
    cases = {"0/in/x": np.ones((2, 3, 2), np.float32), "0/in/k": np.arange(2)}
    np.savez(tmp_path / "given" / "io.npz", **cases)
    out = tmp_path / "out.json"
    words = ["--models", str(tmp_path), "--peers", "none", "--threads", "1", "--rounds", "2", "--seconds", "0.01"]
    assert main([*words, "--json", str(out)]) == 0
    (row,) = json.loads(out.read_text("utf-8"))["rows"]
    assert row["model"] == "given" and row["system"] == OURS
    assert len(row["rounds"]) == 2 and row["seconds"] > 0 and row["first"] > 0 and row["from a file"] > 0
    if reset_peak_memory():
        assert row["running"] > 0 and row["running from a file"] > 0
    assert "from a file" in capsys.readouterr().out


def test_pytorch_runs_the_module_beside_a_model(tmp_path, capsys, monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", "64")
    for name in ("net", "other"):
        onnx.save_model(parser.parse_model(MODEL), tmp_path / f"{name}.onnx")

    class Net(torch.nn.Module):
        def forward(self, x, k):
            return x + k.float().sum()

    example = torch.ones(1, 4, 2), torch.ones(1, dtype=torch.int64)
    torch.export.save(torch.export.export(Net(), example), tmp_path / "net.pt2")
    out = tmp_path / "out.json"
    words = ["--models", str(tmp_path), "--peers", "torch", "--threads", "1", "--rounds", "2", "--seconds", "0.01"]
    assert main([*words, "--size", "4", "--json", str(out)]) == 0
    rows = json.loads(out.read_text("utf-8"))["rows"]
    assert [(row["model"], row["system"]) for row in rows] == [("net", OURS), ("net", "torch"), ("other", OURS)]
    assert rows[1]["difference"] == 0.0 and len(rows[1]["rounds"]) == 2
    printed = capsys.readouterr().out
    assert printed.index("net                 torch") < printed.index("other               myia_relay")


def test_lines_say_what_went_wrong():
    ours = {"model": "net", "system": OURS, "failed": "why\n"}
    peer = {"model": "net", "system": "ort", "seconds": 1e-3, "rounds": [1e-3], "first": 1.0, "difference": 0.5}
    first, second = lines([ours, peer]).splitlines()
    assert first.endswith("failed: why") and second.endswith("differs by 5.0e-01 WRONG")


def test_inputs_are_drawn_where_there_are_none(tmp_path):
    onnx.save_model(parser.parse_model(MODEL), tmp_path / "net.onnx")
    found = found_models(parse(["--models", str(tmp_path), "--size", "5"]), tmp_path)
    (path, inputs) = found["net"]
    assert path == tmp_path / "net.onnx"
    assert {k: (v.shape, v.dtype.name) for k, v in arrays(str(inputs)).items()} == {
        "x": ((1, 5, 2), "float32"),
        "k": ((1,), "int64"),
    }


def test_networks_are_made_where_there_is_no_folder(tmp_path):
    found = built_models(parse(["--tiny", "--only", "mobilenet,lstm"]), tmp_path)
    assert list(found) == ["mobilenet", "lstm"]
    for path, inputs in found.values():
        model = onnx.load_model(path)
        (declared,) = model.graph.input
        assert arrays(str(inputs))["x"].shape == tuple(d.dim_value for d in declared.type.tensor_type.shape.dim)


def test_a_wrong_output_or_a_folder_without_models_fails_the_run(tmp_path, capsys):
    assert right({"system": "ort", "failed": "not there"}) and not right({"system": OURS, "failed": "why"})
    assert not right({"system": "ort", "difference": 1e-2}) and not right({"system": "ort", "difference": np.nan})
    assert main(["--models", str(tmp_path), "--peers", "none"]) == 1
    assert "there are no such models" in capsys.readouterr().out
