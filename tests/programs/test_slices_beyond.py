"""Slices that reach beyond an axis of unknown size: NumPy cuts them off, and so does compiled code, by a second compilation."""

import numpy as np
import pytest

from myia_relay import CompileError, Float64, Tensor, grad, jvp, relay, vmap

Vector = Tensor[Float64, ("n",)]


def up_to(n):
    return np.arange(1.0, n + 1)


def beginning(x: Vector):
    return x[:4], x[2:5]


def end(x: Vector):
    return x[-3:]


def rest(x: Vector):
    return x[3:], x[:-2]


def steps(x: Vector):
    return x[1:6:2], x[5::-1], x[-2:0:-1]


def differences(x: Vector):
    return x[1:] - x[:-1]


def window(x: Vector, i):
    return x[i : i + 3]


def windows(x: Vector):
    total = 0.0
    for i in range(len(x)):
        total += x[i : i + 3].sum() * i
    return total


def written(x: Vector):
    y = x.copy()
    y[:4] = 0.0
    y[2:9] += 1.0
    return y


def of_numbers(n, i):
    return float(np.arange(10)[i : i + 3].sum()) * n


def two_axes(x: Tensor[Float64, ("n", "m")]):  # noqa: F821
    return x[:3, :2].sum(axis=0), x[:2]


SIZES = [(up_to(n),) for n in (9, 3, 1, 0, 12)]
CASES = [
    *((f, SIZES) for f in (beginning, end, rest, steps, differences, windows, written)),
    (window, [(up_to(9), i) for i in (2, 7, 9, 20, -2, -1, 0)]),
    (of_numbers, [(2.0, i) for i in (0, 8, 12, -2, 7)]),
    (two_axes, [(np.ones((4, 5)),), (np.ones((2, 5)),), (np.ones((0, 1)),)]),
]


@pytest.mark.parametrize("function, calls", CASES, ids=lambda f: getattr(f, "__name__", ""))
@pytest.mark.sampled(6)
def test_it_is_cut_off(function, calls, executor):
    f = relay(executor=executor)(function)
    for args in calls:
        np.testing.assert_equal(f(*args), function(*args))
    compiled = f.cache_info().misses
    for args in calls:
        np.testing.assert_equal(f(*args), function(*args))
    assert f.cache_info().misses == compiled <= 4


def test_where_it_ends_within_the_axis_its_size_stays_known():
    for function in (beginning, differences, window):
        assert "bind_dim" not in str(relay(function).ir(up_to(9), *(2,) * (function is window)))
    f = relay(executor="interpreter")(beginning)
    f(up_to(9))
    assert f.cache_info().misses == 1
    f(up_to(2))
    assert f.cache_info().misses == 3  # one for each slice
    assert "bind_dim" in str(f.ir(up_to(9)))  # which later calls run too


def test_derivatives_and_batches(executor):
    def loss(x: Vector):
        return np.sum(x[:4] ** 2)

    f = relay(executor=executor)(grad(loss))
    for n in (6, 2, 0):
        x = up_to(n)
        np.testing.assert_array_equal(f(x), np.where(x <= 4, 2 * x, 0.0))

    def along(x: Vector):
        return jvp(loss, (x,), (x,))

    f = relay(executor=executor)(along)
    for n in (6, 2):
        value = loss(up_to(n))
        assert f(up_to(n)) == (value, 2 * value)

    def rows(x: Tensor[Float64, ("b", "n")]):  # noqa: F821
        return vmap(lambda row: np.sum(row[:4] * 2))(x)

    f = relay(executor=executor)(rows)
    for n in (6, 2):
        assert f(np.ones((3, n))).tolist() == [2.0 * min(n, 4)] * 3


def test_what_needs_the_size_says_so(executor):
    def pair(x: Vector):
        a, b = x[:2]
        return a + b

    f = relay(executor=executor)(pair)
    assert f(up_to(3)) == 3.0
    for _ in range(2):
        with pytest.raises(IndexError, match="a slice reaches beyond axis 0, of size 1") as caught:
            f(up_to(1))
        assert type(caught.value) is IndexError and isinstance(caught.value.__cause__, CompileError)
        assert "its length must be known" in str(caught.value.__cause__)
    assert f(up_to(3)) == 3.0


def test_nothing_is_printed_twice(executor, capsys):
    def shown(x: Vector):
        print("once")
        return x[:4]

    f = relay(executor=executor)(shown)
    assert f(up_to(5)).size == 4
    with pytest.raises(IndexError, match="a slice reaches beyond"):
        f(up_to(3))
    assert capsys.readouterr().out == "once\nonce\n"


def test_results_written_into_arrays(executor):
    def first(x: Vector):
        return np.sum(x[:4]) + np.zeros(3)

    f, out = relay(executor=executor)(first), np.empty(3)
    assert f.into(out)(up_to(9))[0] == 10.0
    assert f.into(out)(up_to(2))[0] == 3.0


def test_programs_from_files(tmp_path, monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_CACHE", str(tmp_path))
    monkeypatch.setenv("MYIA_RELAY_CACHE_SIZE", "64")
    for _ in range(2):
        f = relay(end)
        for args in SIZES:
            np.testing.assert_equal(f(*args), end(*args))
    assert f.cache_info().misses == 0
