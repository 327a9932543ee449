"""Arrays of classes that calculate otherwise (units, masks, matrices) are refused, as arguments and as globals."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float, Tensor, TypeError_, relay, relay_model


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


@relay_model
def net(x: Tensor[Float, 3]):
    return relay.linear(x, 3)


MASKED = np.ma.array(np.ones(3, np.float32), mask=[0, 1, 0])


def by_parameters():
    relay.create_model(net).params["linear_0.bias"] = MASKED


def by_all_parameters():
    model = relay.create_model(net)
    model.params = {**model.params, "linear_0.bias": MASKED}


def by_init():
    model = relay.create_model(net)
    relay.create_model(net, init={**model.params, "linear_0.bias": MASKED})


def by_an_initialiser():
    relay.create_model(net, init=lambda key, shape, dtype: np.ma.zeros(shape, dtype))


def by_a_dataset():
    relay.datasets.Dataset(np.ma.ones((3, 2)), np.zeros(3, int))


def by_its_labels():
    relay.datasets.Dataset(np.ones((3, 2)), np.ma.zeros(3, int))


def by_batches():
    list(relay.data.batches([MASKED, MASKED], 2))


def by_at():
    relay.at(MASKED)[0].set(2.0)


def by_a_target():
    relay(executor="interpreter")(scaled).into(np.ma.zeros(3))(X)


def by_a_target_of_native_code():
    relay(scaled).into(np.ma.zeros(3))(X)


TAKERS = [f for name, f in list(globals().items()) if name.startswith("by_") and f is not by_global]


@pytest.mark.parametrize("function", TAKERS, ids=lambda f: f.__name__)
def test_masks_are_not_lost(function):
    with pytest.raises(TypeError_, match="a MaskedArray calculates by rules of its own.*which drops the mask"):
        function()


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
