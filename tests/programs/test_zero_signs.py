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
    return (
        np.inner(a, a),
        np.inner(u, v),
        np.dot(u, v),
        np.vdot(u, v),
        np.tensordot(a, b, axes=1),
        np.tensordot(u, v, 1),
    )


def multiples(a, x):
    return np.dot(2.0, a), np.dot(a, x), np.dot(a[0], 2.0), np.inner(x, a), np.dot(a[:, None], x), np.outer(a, a)


def outer_products(a, b):
    return np.einsum("i,j->ij", a[0], b[0]), np.einsum("ij,ij->ij", a, a), np.einsum("ij->ji", a), a * a


def sums(a):
    return (
        a.sum(),
        a.sum(0),
        np.sum(a, axis=1),
        np.sum(a, keepdims=True),
        a.mean(),
        np.trace(a),
        np.cumsum(a),
        a.cumsum(1),
    )


def sums_from(a, start):
    return (
        np.sum(a, initial=-0.0),
        np.sum(a, axis=0, initial=start),
        np.sum(a, initial=0.0),
        np.sum(a, axis=1, initial=2.0),
    )


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 1), (2, 3), (5, 4), (20, 20)], ids=str)
@pytest.mark.sampled(18)
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


def ties(x, y):
    return (
        np.maximum(x, y),
        np.minimum(y, x),
        np.maximum(0.0, x),
        np.maximum(x, 0),
        np.minimum(x, -0.0),
        np.minimum(-0.0, x),
    )


def clips(x, y):
    bounds = (
        np.clip(x, 0, 1),
        np.clip(x, -1, -0.0),
        np.clip(x, -0.0, None),
        x.clip(max=0.0),
        x.clip(0.0),
        np.clip(x, 2, 1),
    )
    return *bounds, np.clip(x, -1.0, y), np.clip(x, y, 1.0), np.clip(x, y - 1, y), np.clip(x, np.nan, 0.0)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("function", [ties, clips])
@pytest.mark.sampled(9)
def test_ties_of_zeros(executor, dtype, function):
    for size in (1, 3, 8, 33):
        x = np.resize(np.array([-0.0, 0.0, np.nan, 1, -1]), size).astype(dtype)
        for y in (x[::-1].copy(), np.zeros_like(x), -np.zeros_like(x)):
            assert not differences(relay(function, executor=executor)(x, y), function(x, y))


def clips_of_integers(x):
    return np.clip(x, -5, 300), np.clip(x, 0, True), x.clip(3), np.clip(x, -(2**40), 50), np.clip(x, None, 2**40)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint64", "int64"])
def test_bounds_beyond_the_range_of_integers(executor, dtype):
    x = np.array([0, 1, 2, 3, 100]).astype(dtype)
    try:
        want = clips_of_integers(x)
    except OverflowError as error:
        with pytest.raises(OverflowError, match=str(error)):
            relay(clips_of_integers, executor=executor)(x)
    else:
        assert not differences(relay(clips_of_integers, executor=executor)(x), want)


@pytest.mark.parametrize(
    "function", [lambda x: np.fmax(x, 300), lambda x: np.fmin(x, -1), lambda x: np.clip(x, 0, 300.5)]
)
def test_numbers_that_do_not_fit_into_small_integers(function):
    x = np.arange(4, dtype=np.uint8)
    try:
        want = function(x)
    except OverflowError as error:
        with pytest.raises(OverflowError, match=str(error)):
            relay(function)(x)
    else:
        assert not differences(relay(function)(x), want)


def power(x, y):
    return x**-1, x**y


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_power_of_numbers_is_that_of_the_c_library(executor):
    x, y = np.float32(0.1), np.float32(-1.0)  # the vector code that NumPy has for arrays gives 9.999999
    got = relay(power, executor=executor)(x, y)
    assert [repr(v) for v in got] == [repr(v) for v in power(x, y)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_powers_that_are_complex_and_too_large(executor):
    compiled = relay(lambda x, y: x**y, executor=executor)
    for x, y in ((-1e308, 1.5), (-5e-324, -2.5), (-2.0, 0.5), (-2.0, 1e300), (-2.0, 1025.0)):
        with np.errstate(all="ignore"):
            want = np.float64(x) ** np.float64(y)
        assert not differences(compiled(np.float64(x), np.float64(y)), want)


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
@pytest.mark.parametrize("function", [steps, rest, but_the_last])
def test_slices_of_less_than_they_leave_out_are_empty(executor, function):
    compiled = relay(function, executor=executor)
    for size in (5, 0, 1, 3, 5):
        x = np.arange(float(size))
        assert not differences(compiled(x), function(x))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_parts_beyond_the_size_are_refused(executor):
    compiled = relay(thirds, executor=executor)
    x = np.arange(5.0)
    assert not differences(compiled(x), thirds(x))
    with pytest.raises(IndexError, match="the last bound is 3, and the size 0"):
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
