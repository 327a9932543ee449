"""The sign of zero, which NumPy's sums and products have rules of their own for, and what there is where nothing is."""

# ruff: noqa: F821

import numpy as np
import pytest

from myia_relay import Float64, Tensor, relay
from tests.programs.compare import differences

EXECUTORS = ["interpreter", "python", "native"]


def products(a, b):
    return a @ b, np.matmul(a, b), np.dot(a, b), a[0] @ b, a @ b[:, 0], a[0] @ b[:, 0], np.einsum("ij,jk->ik", a, b)


def products_in_rows(a, b):
    return np.tanh(a @ b) @ np.ones((b.shape[1], 3)) + a[:, :1] * -0.0, (a + a).sum(1) * 1.0


def products_of_constants(n, a):
    return (n * np.zeros((5, 5))) @ np.ones((5, 2)), a


def numpys_products(a, b):
    u, v = a[0], b[:, 0]
    return np.inner(a, a), np.inner(u, v), np.dot(u, v), np.vdot(u, v), np.tensordot(a, b, axes=1), np.tensordot(u, v, 1)


def multiples(a, x):
    return np.dot(2.0, a), np.dot(a, x), np.dot(a[0], 2.0), np.inner(x, a), np.dot(a[:, None], x), np.outer(a, a)


def outer_products(a, b):
    return np.einsum("i,j->ij", a[0], b[0]), np.einsum("ij,ij->ij", a, a), np.einsum("ij->ji", a), a * a


def sums(a):
    return a.sum(), a.sum(0), np.sum(a, axis=1), np.sum(a, keepdims=True), a.mean(), np.trace(a), np.cumsum(a), a.cumsum(1)


def sums_from(a, start):
    return np.sum(a, initial=-0.0), np.sum(a, axis=0, initial=start), np.sum(a, initial=0.0), np.sum(a, axis=1, initial=2.0)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (2, 3), (5, 4), (20, 20)], ids=str)
def test_sums_and_products_of_negative_zeros(executor, shape):
    n, m = shape
    a, ones = np.full(shape, -0.0), np.ones((m, n))
    for function, args in (
        (products, (a, ones)),
        (products_in_rows, (a, ones)),
        (products_of_constants, (-1, a)),
        (numpys_products, (a, ones)),
        (multiples, (a, 1.5)),
        (outer_products, (a, np.ones_like(a))),
        (sums, (a,)),
        (sums_from, (a, -0.0)),
        (sums_from, (a, 0.0)),
        (sums_from, (-a, -0.0)),
        (sums_from, (a - 5e-324, -0.0)),
    ):
        assert not differences(relay(function, executor=executor)(*args), function(*args)), function.__name__


def power(x, y):
    return x**-1, x**y, np.power(x, y)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_power_of_numbers_is_that_of_the_c_library(executor):
    x, y = np.float32(0.1), np.float32(-1.0)  # the vector code that NumPy has for arrays gives 9.999999
    got = relay(power, executor=executor)(x, y)
    assert [repr(v) for v in got] == [repr(v) for v in power(x, y)]


def greatest(x: Tensor[Float64, ("n", "m")]):
    return x.max(axis=0)


def smallest(x: Tensor[Float64, ("n", "m")]):
    return np.min(x)


def first_of_all(x: Tensor[Float64, ("n", "m")]):
    return np.argmax(x)


def first_of_rows(x: Tensor[Float64, ("n", "m")]):
    return x.argmin(1)


def spread(x: Tensor[Float64, ("n", "m")]):
    return np.ptp(x, axis=1)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", [greatest, smallest, first_of_all, first_of_rows, spread])
def test_nothing_has_no_greatest_element(executor, function):
    compiled = relay(function, executor=executor)
    for shape in ((2, 3), (1, 1), (0, 3), (3, 0), (0, 0)):
        x = np.arange(np.prod(shape), dtype=float).reshape(shape)
        try:
            want = function(x)
        except ValueError as error:
            with pytest.raises(ValueError, match=str(error).partition(":")[0]):
                compiled(x)
        else:
            assert not differences(compiled(x), want)


def steps(x: Tensor[Float64, ("n",)]):
    return np.diff(x)


def rest(x: Tensor[Float64, ("n",)]):
    return x[3:]


def but_the_last(x: Tensor[Float64, ("n",)]):
    return x[:-3] * 2.0, x


def thirds(x: Tensor[Float64, ("n",)]):
    return np.split(x, [1, 3])


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", [steps, rest, but_the_last, thirds])
def test_results_of_less_than_nothing_are_refused(executor, function):
    compiled = relay(function, executor=executor)
    x = np.arange(5.0)
    assert not differences(compiled(x), function(x))
    with pytest.raises((IndexError, ValueError), match="size 0|the size 0"):
        compiled(x[:0])


def bounds_of_all_kinds(x):
    return *np.split(x, [1, 9]), *np.split(x, [3, 1, -2]), *np.array_split(x, [-9, 0])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_bounds_of_split_are_those_of_slices(executor):
    for size in (0, 1, 5):
        x = np.arange(float(size))
        assert not differences(relay(bounds_of_all_kinds, executor=executor)(x), bounds_of_all_kinds(x))
    assert not differences(relay(lambda x: np.diff(x, 2), executor=executor)(np.zeros((3, 0))), np.zeros((3, 0)))


def test_no_parts_are_refused():
    with pytest.raises(ValueError, match="cannot be split into 0 parts"):
        relay(lambda x: np.split(x, 0))(np.arange(3.0))
