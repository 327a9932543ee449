"""Damaged ONNX models are imported and run, or refused by an error that a user can read."""

from __future__ import annotations

import numpy as np
import pytest

from .onnx_mutants import GOOD, SOURCES, models, outcome, search


def test_the_models_that_mutants_are_made_of_run():
    for name, model in zip(SOURCES, models(), strict=True):
        assert outcome(model, np.random.default_rng(0), native=False) == "ran", name


def test_an_internal_error_is_seen(monkeypatch):
    monkeypatch.setattr("myia_relay.importers.onnx.model.ModelWriter.write", lambda self: {}[0])
    monkeypatch.setattr("myia_relay.importers.onnx.model.KeyError", ZeroDivisionError, raising=False)
    assert outcome(models()[0], np.random.default_rng(0), native=False) not in GOOD


def test_mutants():
    found, bad = search(300, 47, native_every=1 << 30)
    assert not bad
    assert found["ran"] > 15 and found["refused"] > 150


@pytest.mark.campaign
def test_ten_thousand_mutants():
    found, bad = search(10_000, 1_000_000, native_every=20)
    print(dict(found))
    assert not bad
