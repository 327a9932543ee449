"""Imported models between processes: programs in files, pickled models, external data."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, external_data_helper, helper, numpy_helper, parser  # noqa: E402

from myia_relay import ShapeError, relay  # noqa: E402

SCALED = """<ir_version: 8, opset_import: ["" : 18]>
scaled (float[n, 3] x) => (float[n, 3] y) <int64[3] c = {%s}, float[3] w = {%s}> {
    i = Cast <to = 1> (c)
    z = Mul(x, i)
    y = Add(z, w)
}"""


def in_files(folder, monkeypatch) -> None:
    """Have programs be kept in files of a folder."""
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(folder))
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", "64")


def scaled(constants: str, weights: str = "0, 0, 0"):
    return relay.from_onnx(parser.parse_model(SCALED % (constants, weights)))


def test_a_fresh_process_finds_the_program_in_a_file(tmp_path, monkeypatch):
    in_files(tmp_path, monkeypatch)
    code = f"""
import sys
import numpy as np
from onnx import parser
from myia_relay import relay
f = relay.from_onnx(parser.parse_model({SCALED % ("1, 2, 3", "4, 5, 6")!r}))
print(f(np.ones((2, 3), np.float32)).tolist(), f.cache_info().misses, "tvm" in sys.modules)
"""
    found = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert found == [f"{[[5.0, 7.0, 9.0]] * 2} 1 True\n", f"{[[5.0, 7.0, 9.0]] * 2} 0 False\n"]


def test_programs_with_functions_of_the_importer_are_kept_in_files(tmp_path, monkeypatch):
    in_files(tmp_path, monkeypatch)
    text = """<ir_version: 8, opset_import: ["" : 18]>
    f (float[n, 1, 2] x, float[1, 12, 2] w, float[1, 12, 3] r) => (float[n, 1, 1, 3] y)
    { y, h = LSTM <hidden_size = 3> (x, w, r) }"""
    inputs = [np.ones(shape, np.float32) for shape in ((2, 1, 2), (1, 12, 2), (1, 12, 3))]
    results = [(f := relay.from_onnx(parser.parse_model(text)))(*inputs) for _ in range(2)]
    np.testing.assert_array_equal(*results)
    assert f.cache_info().misses == 0


def test_files_tell_constants_apart_and_not_parameters(tmp_path, monkeypatch):
    in_files(tmp_path, monkeypatch)
    x = np.ones((1, 3), np.float32)
    first, second, third = scaled("1, 2, 3"), scaled("4, 5, 6"), scaled("1, 2, 3", "7, 7, 7")
    assert [f(x)[0].tolist() for f in (first, second, third)] == [[1, 2, 3], [4, 5, 6], [8, 9, 10]]
    assert [f.cache_info().misses for f in (first, second, third)] == [1, 1, 0]


def test_large_constants_are_told_apart(tmp_path, monkeypatch):
    in_files(tmp_path, monkeypatch)
    for value in (1, 2):
        table = np.full((1 << 16) + 1, value, np.int32)
        graph = helper.make_graph(
            [helper.make_node("Add", ["x", "table"], ["y"])],
            "shifted",
            [helper.make_tensor_value_info("x", TensorProto.INT32, table.shape)],
            [helper.make_tensor_value_info("y", TensorProto.INT32, table.shape)],
            [numpy_helper.from_array(table, "table")],
        )
        f = relay.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
        np.testing.assert_array_equal(f(np.zeros_like(table)), table)


def test_copies_have_parameters_of_their_own():
    f = scaled("1, 2, 3", "4, 5, 6")
    x = np.zeros((1, 3), np.float32)
    for make in (copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))):
        g = make(f)
        g.params["w"] = np.zeros(3, np.float32)
        np.testing.assert_array_equal(g(x), x)
        np.testing.assert_array_equal(f(x), [[4, 5, 6]])


def test_a_model_is_not_changed_by_its_import():
    proto = parser.parse_model(SCALED % ("1, 2, 3", "4, 5, 6"))
    before = proto.SerializeToString(deterministic=True)
    f = relay.from_onnx(proto)
    f.params["w"] = np.zeros(3, np.float32)
    assert proto.SerializeToString(deterministic=True) == before


def test_external_data_are_pickled_with_the_model(tmp_path):
    proto = parser.parse_model(SCALED % ("1, 2, 3", "4, 5, 6"))
    for tensor in proto.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    external_data_helper.convert_model_to_external_data(proto, location="weights.bin", size_threshold=0)
    path = tmp_path / "model.onnx"
    onnx.save_model(proto, path)
    assert (tmp_path / "weights.bin").stat().st_size
    data = pickle.dumps(relay.from_onnx(path))
    path.unlink()
    (tmp_path / "weights.bin").unlink()
    np.testing.assert_array_equal(pickle.loads(data)(np.ones((1, 3), np.float32)), [[5, 7, 9]])


def test_exported_models_take_all_sizes(tmp_path):
    f = scaled("1, 2, 3", "4, 5, 6")
    exported = relay.export_model(f)
    exported.save(tmp_path / "scaled.so")
    loaded = relay.load_compiled(tmp_path / "scaled.so")
    for rows in (1, 3):
        x = np.ones((rows, 3), np.float32)
        for run in (exported, loaded):
            np.testing.assert_array_equal(run(x), f(x))
    relay.export_library(exported, tmp_path / "library.so")
    assert (tmp_path / "library.so").stat().st_size


def test_inputs_that_a_model_has_not_are_refused():
    f, x = scaled("1, 2, 3"), np.ones((1, 3), np.float32)
    for args, named, message in (
        ((), {}, r"takes 1 inputs \(x\), and 0 are given$"),
        ((x, x), {}, "and 2 are given"),
        ((x,), {"x": x}, "'x' is given twice"),
        ((), {"xx": x}, "it has no 'xx'; did you mean 'x'"),
        ((x.astype(np.float64),), {}, "input 'x' is of float32, and this is of float64"),
        ((None,), {}, "argument 'x'"),
    ):
        with pytest.raises(TypeError, match=message):
            f(*args, **named)
    with pytest.raises(ShapeError, match=r"input 'x' has the shape \(n, 3\), and this has \(1, 4\)"):
        f(np.ones((1, 4), np.float32))
