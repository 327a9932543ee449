"""Arrays of classes that calculate otherwise (units, masks, matrices) are refused, as arguments and as globals."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import TypeError_, relay


class Metres(np.ndarray):
    """An array whose operators are its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented


class Plain(np.ndarray):
    """A subclass that changes nothing, which nobody can tell from outside."""


BY = np.ones(3)


def scaled(x):
    return x * 2.0


def by_global(x):
    return x * BY


X = np.arange(3.0)


@pytest.mark.parametrize(
    "value", [X.view(Metres), X.view(Plain), X[None].view(np.matrix), np.ma.array(X)], ids=lambda v: type(v).__name__
)
def test_arguments(executor, value):
    f = relay(executor=executor)(scaled)
    with pytest.raises(TypeError_, match=r"calculates by rules of its own.*np\.asarray\(x\)"):
        f(value)
    np.testing.assert_array_equal(f(np.asarray(value)).ravel(), X * 2.0)
    with pytest.raises(TypeError_, match="calculates by rules of its own"):  # after a compilation for plain arrays
        f(value)
    with pytest.raises(TypeError_, match="calculates by rules of its own"):
        relay(executor=executor)(lambda d: d["a"] + 1.0)({"a": value})


def test_globals(executor, monkeypatch):
    f = relay(executor=executor)(by_global)
    np.testing.assert_array_equal(f(2.0), [2.0, 2.0, 2.0])
    monkeypatch.setitem(by_global.__globals__, "BY", BY.view(Metres))
    with pytest.raises(TypeError_, match="a Metres calculates by rules of its own"):
        f(2.0)


def test_arrays_of_files_are_plain(executor, tmp_path):
    np.save(tmp_path / "x.npy", X)
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(relay(executor=executor)(scaled)(x), X * 2.0)
