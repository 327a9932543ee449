"""Parameters in a file: exact, in order, whole or not at all."""

from __future__ import annotations

import os

import ml_dtypes
import numpy as np
import pytest

from myia_relay.model.checkpoint_io import CheckpointError, load_safetensors, save_safetensors
from myia_relay.utils import files

PARAMS = {
    "linear_1.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
    "conv2d_0.bias": np.array([np.nan, -0.0, np.inf, 5e-324]),
    "scalar": np.array(3, np.int64),
    "empty": np.zeros((0, 3), np.float16),
    "flags": np.array([True, False]),
    "a": np.arange(3, dtype=np.uint8),
    "bf16": np.array([1.5, -2.0, 3e38], ml_dtypes.bfloat16),
}


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype.newbyteorder("=") and found[name].shape == array.shape
        assert found[name].tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes(), name
        assert found[name].flags.writeable and found[name].flags.aligned


def test_round_trip(tmp_path):
    path = tmp_path / "runs" / "m.safetensors"
    save_safetensors(path, PARAMS, {"model": "lenet", "note": "ünïcode\n"})
    params, metadata = load_safetensors(str(path))
    assert_same(params, PARAMS)
    assert metadata == {"model": "lenet", "note": "ünïcode\n"}


def test_any_layout(tmp_path):
    base = np.arange(24, dtype=np.float64).reshape(4, 6)
    params = {"t": base.T, "step": base[::2, ::-3], "swapped": base.astype(">f8"), "scalar": np.float32(2.5)}
    save_safetensors(tmp_path / "m", params)
    found, _ = load_safetensors(tmp_path / "m")
    assert_same(found, {k: np.asarray(v) for k, v in params.items()})


def test_files_of_others(tmp_path):
    """What safetensors writes itself can be read, and it can read what we write."""
    from safetensors.numpy import load_file, save_file

    save_file({"b": np.ones(2), "a": np.zeros(3)}, tmp_path / "theirs", {"format": "np"})
    params, metadata = load_safetensors(tmp_path / "theirs")
    assert list(params) == ["a", "b"] and metadata == {"format": "np"}
    save_safetensors(tmp_path / "ours", {"b": np.ones(2), "a": np.zeros(3)})
    assert {k: v.tolist() for k, v in load_file(tmp_path / "ours").items()} == {"a": [0, 0, 0], "b": [1, 1]}
    assert load_safetensors(tmp_path / "ours")[1] == {}


def test_nothing_to_save(tmp_path):
    save_safetensors(tmp_path / "m", {})
    assert load_safetensors(tmp_path / "m") == ({}, {})


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*m\.safetensors"):
        load_safetensors(tmp_path / "m.safetensors")
    with pytest.raises(CheckpointError, match="cannot read"):
        load_safetensors(tmp_path)


@pytest.mark.parametrize("keep", [0, 4, 8, 60, -1])
def test_truncated(tmp_path, keep):
    path = tmp_path / "m.safetensors"
    save_safetensors(path, PARAMS)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(CheckpointError, match="not a whole safetensors file") as caught:
        load_safetensors(path)
    assert isinstance(caught.value, ValueError) and str(path) in str(caught.value)


def test_garbage(tmp_path):
    path = tmp_path / "m.safetensors"
    for contents in (b"PK\x03\x04" + bytes(100), os.urandom(1000), (2**62).to_bytes(8, "little") + b"{}"):
        path.write_bytes(contents)
        with pytest.raises(CheckpointError, match="not a whole safetensors file"):
            load_safetensors(path)


def test_a_type_that_numpy_lacks(tmp_path):
    header = b'{"x": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [0, 2]}}'
    (tmp_path / "m").write_bytes(len(header).to_bytes(8, "little") + header + b"ab")
    with pytest.raises(CheckpointError, match="'F8_E4M3', which NumPy does not have"):
        load_safetensors(tmp_path / "m")


def test_a_damaged_byte_is_seen_wherever_it_is(tmp_path):
    """Each byte of the arrays, and each of the header that leaves it readable; other programs' files have no checksums."""
    from safetensors.numpy import save_file

    path = tmp_path / "m"
    save_safetensors(path, PARAMS, {"position": '{"epoch": 3}'})
    whole, silent = path.read_bytes(), []
    name = whole.index(b"myia_relay.crc32")
    for at in range(len(whole)):
        if name <= at < name + 16:  # without that name it is the file of an older version
            continue
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            params, metadata = load_safetensors(path)
        except CheckpointError:
            continue
        if {n: a.tobytes() for n, a in params.items()} != {n: a.tobytes() for n, a in PARAMS.items()} or metadata != {
            "position": '{"epoch": 3}'
        }:
            silent.append(at)
    assert not silent
    start = 8 + int.from_bytes(whole[:8], "little")
    path.write_bytes(whole[: start + 8] + bytes([whole[start + 8] ^ 1]) + whole[start + 9 :])
    with pytest.raises(CheckpointError, match="m was damaged after it was written: .* does not have its checksum"):
        load_safetensors(path)
    save_file({"a": np.arange(3.0)}, path)
    assert load_safetensors(path)[0]["a"].tolist() == [0, 1, 2]


def test_refused(tmp_path):
    path = tmp_path / "m"
    for params, metadata, message in [
        ({1: np.ones(1)}, {}, "parameter name must be a string, not 1"),
        ({"s": np.array(["text"])}, {}, "parameter 's' of dtype <U4"),
        ({"o": np.array([object()])}, {}, "parameter 'o' of dtype object"),
        ({"m": np.ma.array([1.0, 2.0], mask=[0, 1])}, {}, "a MaskedArray calculates by rules of its own"),
        ({}, {"step": 3}, "metadata 'step' must be a string"),
    ]:
        with pytest.raises(TypeError, match=message):
            save_safetensors(path, params, metadata)
    with pytest.raises(ValueError, match="written by save_safetensors itself"):
        save_safetensors(path, {}, {"myia_relay.order": "[]"})
    assert not path.exists()


def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    save_safetensors(path, {"a": np.zeros(1)})

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(CheckpointError, match=r"cannot write .*m\.safetensors: No space left on device"):
        save_safetensors(path, {"a": np.ones(1)})
    monkeypatch.undo()
    assert load_safetensors(path)[0]["a"].tolist() == [0]
    assert os.listdir(tmp_path) == ["m.safetensors"]
