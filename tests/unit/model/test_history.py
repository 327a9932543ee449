"""The record of a training run, as text and as a picture."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from myia_relay.model.history import History, _smooth


@pytest.fixture
def history() -> History:
    record = History()
    for step in range(200):
        record.record_steps([2.3 * 0.98**step])
    record.record_epoch(loss=1.2345678, seconds=1.5, steps=100)
    record.record_epoch(loss=0.1, seconds=1.0, steps=100, accuracy=np.float32(0.5))
    return record


def test_record(history):
    assert [row["epoch"] for row in history.epochs] == [1, 2]
    assert history["loss"] == [1.2345678, 0.1] and history["accuracy"] == [None, 0.5]
    assert len(history) == 2 and len(history.losses) == 200
    history.record_steps(np.array([1, 2], np.float32))
    assert history.losses[-2:] == [1.0, 2.0] and isinstance(history.losses[-1], float)
    with pytest.raises(KeyError, match="'acc' was not recorded; there are epoch, loss, seconds, steps, accuracy"):
        history["acc"]


def test_losses_of_training_take_four_bytes_each():
    record = History()
    for _ in range(1000):
        record.record_steps(np.array([0.1, np.nan], np.float32))
        record.record_steps([2.5])
    assert record.steps == 3000 and record.step_losses().dtype == np.float32
    assert record._steps.itemsize * len(record._steps) == 12_000 and record._list is None
    assert record.losses[0] == np.float32(0.1) and record.losses[2] == 2.5 and type(record.losses) is list
    np.testing.assert_array_equal(record.step_losses(2998), np.array([np.nan, 2.5], np.float32))
    record.record_steps([0.1])  # no float32: it stays what it is, and so do the others
    record.record_steps([1e300, 3])
    assert record.losses[-3:] == [0.1, 1e300, 3.0] and record.losses[0] == np.float32(0.1)


def test_text(history):
    assert str(history) == (
        "epoch   loss  seconds  steps  accuracy\n"
        "    1  1.235      1.5    100          \n"
        "    2    0.1        1    100       0.5"
    )
    assert repr(history).startswith("<History: 2 epochs, 200 steps, loss 0.04")
    assert str(History(losses=[1])) == "History: no finished epoch, 1 steps"


def test_picture(history):
    pytest.importorskip("matplotlib")
    assert history._repr_png_().startswith(b"\x89PNG")
    page = history._repr_html_()
    assert "data:image/png;base64," in page and "<td>1.235</td>" in page
    axes = history.plot()
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), history.losses)
    assert axes.get_xlabel() == "step" and axes.get_yscale() == "log"
    assert history.plot(axes) is axes


def test_picture_of_validation(history):
    pytest.importorskip("matplotlib")
    for row, value in zip(history.epochs, (0.5, 0.25), strict=True):
        row["val_loss"] = value
    (line,) = [line for line in history.plot().lines if line.get_label() == "validation"]
    np.testing.assert_array_equal(line.get_xydata(), [[100, 0.5], [200, 0.25]])


@pytest.mark.parametrize("losses", [[], [1.0], [float("nan")] * 3, [0.0, -1.0, 2.0], [float("inf"), 1.0]])
@pytest.mark.sampled(2)
def test_odd_losses(losses):
    pytest.importorskip("matplotlib")
    record = History(losses=losses)
    assert record._repr_html_().startswith("<div>")
    assert (record._repr_png_() is None) == (not losses)


def test_without_matplotlib(history, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert history._repr_png_() is None
    page = history._repr_html_()
    assert "<table>" in page and "<img" not in page
    with pytest.raises(ImportError):
        history.plot()


def test_html_is_escaped():
    record = History([{"<b>": "<script>"}])
    assert "<script>" not in record._repr_html_() and "&lt;b&gt;" in record._repr_html_()


def test_smoothing():
    np.testing.assert_allclose(_smooth(np.array([1.0, 3, 5, 7]), 2), [1, 2, 4, 6])
    np.testing.assert_array_equal(_smooth(np.array([1.0, np.nan, 5, 7, 9]), 2), [1, np.nan, np.nan, 6, 8])
