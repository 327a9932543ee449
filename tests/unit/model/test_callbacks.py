"""Logs of a training: what is in them, and that a log which cannot be written ends nothing."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest

from myia_relay import Float, Tensor, relay, relay_model
from myia_relay.model import callbacks


@relay_model
def net(x: Tensor[Float, 4]) -> Tensor[Float, 3]:
    return relay.linear(x, 3)


@relay(executor="python")
def loss(x, y):
    return relay.mse_loss(net(x), y)


DATA = (np.ones((20, 4), np.float32), np.zeros((20, 3), np.float32))


def fitted(*given, epochs=3, **options):
    model = relay.create_model(net)
    return relay.fit(model, loss, DATA, epochs, 5, verbose=False, callbacks=given, **options)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_row_for_each_epoch(tmp_path):
    history = fitted(relay.CSVLogger(tmp_path / "logs" / "log.csv"), metrics={"of_model": lambda model: 2.5})
    found = rows(tmp_path / "logs" / "log.csv")
    assert list(found[0]) == ["epoch", "loss", "seconds", "steps", "of_model"]
    assert [float(row["loss"]) for row in found] == history["loss"] and found[2]["of_model"] == "2.5"


def test_a_log_goes_on_where_a_run_is_taken_up(tmp_path):
    for epochs in (2, 4):
        log = relay.CSVLogger(tmp_path / "log.csv")
        history = fitted(log, epochs=epochs, checkpoint=tmp_path / "run")
    assert [float(row["loss"]) for row in rows(tmp_path / "log.csv")] == history["loss"]
    assert len(history) == 4


class FullDisk:
    """`write_atomically` on a disk that is full for some of its calls."""

    def __init__(self, *full: int):
        self.calls, self.full = 0, full

    def __call__(self, path, data):
        self.calls += 1
        if self.calls in self.full:
            raise OSError(28, "No space left on device")
        path.write_bytes(data)


@pytest.mark.parametrize("full, calls, lines", [((2,), 3, 3), ((2, 3), 4, 3), ((1, 2, 3, 4), 4, 0)])
def test_a_full_disk_loses_no_row(full, calls, lines, tmp_path, monkeypatch):
    disk = FullDisk(*full)
    monkeypatch.setattr(callbacks, "write_atomically", disk)
    with pytest.warns(callbacks.LogWarning, match=r"log\.csv cannot be written \(No space left on device\)") as caught:
        history = fitted(relay.CSVLogger(tmp_path / "log.csv"))
    assert len(caught) == 1 and len(history) == 3 and disk.calls == calls
    assert len(rows(tmp_path / "log.csv") if lines else []) == lines


def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    history = fitted(relay.TensorBoard(tmp_path / "board", every=3), epochs=2, checkpoint=tmp_path / "run")
    history = fitted(relay.TensorBoard(tmp_path / "board", every=3), epochs=3, checkpoint=tmp_path / "run")
    found = EventAccumulator(str(tmp_path / "board"), {"tensors": 0})
    found.Reload()
    assert set(found.Tags()["tensors"]) == {"loss/step", "loss", "seconds", "steps"}
    values = {
        tag: [(e.step, float(e.tensor_proto.float_val[0])) for e in found.Tensors(tag)] for tag in ("loss", "loss/step")
    }
    assert values["loss"] == [(k, np.float32(v)) for k, v in zip((1, 2, 3), history["loss"])]
    steps = history.step_losses()
    ends = [3, 4, 7, 8, 11, 12]  # each epoch has four steps
    starts = [0, 3, 4, 7, 8, 11]
    assert [step for step, _ in values["loss/step"]] == ends
    assert np.allclose([v for _, v in values["loss/step"]], [steps[a:b].mean() for a, b in zip(starts, ends)])


def test_tensorboard_in_a_folder_that_cannot_be_made(tmp_path):
    pytest.importorskip("tensorboard", reason="TensorBoard is not installed")
    (tmp_path / "file").write_text("")
    with pytest.warns(callbacks.LogWarning, match="cannot be written") as caught:
        history = fitted(relay.TensorBoard(tmp_path / "file" / "board"))
    assert len(caught) == 1 and len(history) == 3 and os.path.isfile(tmp_path / "file")
    with pytest.raises(ValueError, match="at least 1"):
        relay.TensorBoard(tmp_path, every=0)
