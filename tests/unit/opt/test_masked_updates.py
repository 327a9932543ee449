"""Changes of what a mask selects: which become choices, and that all programs still mean what they say."""

import warnings

import numpy as np
import pytest

from myia_relay import grad, relay
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.pipeline import plan_memory

EXECUTORS = ("native", "python", "interpreter")


def squares(x, y):
    m = x < 2.0
    x[m] = x[m] ** 2 + y[m]
    return x


def inverses(x, y):
    x[x != 0.0] = 1.0 / x[x != 0.0]
    return x


def roots_in_a_loop(x, y):
    for _ in range(3):
        x[x > y] = np.sqrt(x[x > y]) - 0.25
    return x


def of_another_array(x, y):
    x[y > 0.5] = y[y > 0.5]
    return x


def old_values(x, y):
    old = x.copy()
    x[x > 0.0] = -x[x > 0.0]
    return x + 10.0 * old


def computed(x, y):
    m = y > 0.5
    x[m] = np.exp(x[m])
    return x


def of_another_mask(x, y):
    x[x > 0.0] = y[np.flip(x) > 0.0]
    return x


CHOICES = (squares, inverses, roots_in_a_loop, of_another_array, old_values)
OTHERS = (computed, of_another_mask)


def arguments(dtype: type = float):
    x = np.array([[0.0, -1.5, 2.5], [np.inf, np.nan, 0.75], [3.0, -0.0, 1e-320]], dtype)
    return x, np.linspace(0.0, 1.0, 9).reshape(3, 3).astype(dtype)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", (*CHOICES, *OTHERS[:1]), ids=lambda f: f.__name__)
def test_values(f, executor):
    for dtype in (np.float64, np.float32):
        mine, yours = arguments(dtype), arguments(dtype)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected, got = f(*yours), relay(executor=executor)(f)(*mine)
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(got)[~np.isnan(got)], np.signbit(expected)[~np.isnan(got)])
        np.testing.assert_allclose(mine[0], yours[0], rtol=1e-6)


@pytest.mark.parametrize("f", (*CHOICES, *OTHERS), ids=lambda f: f.__name__)
def test_which_become_choices(f):
    graph = plan_memory(relay(f).ir(*arguments(), stage="optimized").graph)
    names = [getattr(n.fn, "name", "") for g in all_graphs(graph) for n in g.nodes]
    assert ("flat_nonzero" in names) == (f in OTHERS)
    assert ("where" in names) or f in OTHERS


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_is_left_out_is_not_looked_at(executor):
    x = np.array([0.0, 4.0, -1.0])

    def quotients(x):
        x = x.copy()
        x[x > 0.0] = x[x > 0.0] / x[x > 0.0]
        return x

    checked = relay(executor=executor, debug_nans=True)(quotients)
    np.testing.assert_array_equal(checked(x), [0.0, 1.0, -1.0])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_derivatives(executor):
    def total(x, w):
        x = x.copy()
        x[x > 0.0] = np.sqrt(x[x > 0.0]) * w[x > 0.0]
        return np.sum(x)

    def slope(x, w):
        return grad(total)(x, w)

    x, w = np.array([0.0, 4.0, -1.0, 0.25]), np.arange(1.0, 5.0)
    np.testing.assert_allclose(relay(executor=executor)(slope)(x, w), [1.0, 0.5, 1.0, 4.0])


def twice(n: int, k: int):
    x, y = np.linspace(-1.0, 3.0, n), np.linspace(0.0, 1.0, n)
    for _ in range(k):
        x[x < 2.0] = x[x < 2.0] ** 2 + y[x < 2.0]
        y[x < 0.5] = 0.5 * y[x < 0.5]
    return x, y


def of_complex_numbers(n: int, k: int):
    c = np.linspace(-2.0, 0.5, n) + np.linspace(-1.0, 1.0, k)[:, None] * 1j
    z = np.zeros(c.shape, complex)
    for _ in range(k):
        m = abs(z) < 2.0
        z[m] = z[m] ** 2 + c[m]
    return z.real, z.imag


def compressed(n: int, k: int):
    at, c = np.arange(n), np.linspace(-2.0, 0.5, n) + 0.25j
    z, steps = np.zeros(n, complex), np.zeros(n, int)
    for i in range(k):
        z = z * z + c
        out = abs(z) > 2.0
        steps[at[out]] = i + 1
        z, c, at = z[~out], c[~out], at[~out]
    return steps


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", (twice, of_complex_numbers, compressed), ids=lambda f: f.__name__)
def test_sizes_that_values_decide(f, executor):
    for n, k in ((7, 4), (0, 3), (30, 12)):
        for got, expected in zip(relay(executor=executor)(f)(n, k), f(n, k), strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "f, lists", ((twice, 0), (of_complex_numbers, 0), (compressed, 2)), ids=lambda f: getattr(f, "__name__", "")
)
def test_positions_are_listed_once(f, lists):
    """Helpers that are given arrays of sizes of their own are inlined, and sizes that a check found equal are one."""
    graph = plan_memory(relay(f).ir(7, 4, stage="optimized").graph)
    names = [getattr(n.fn, "name", "") for g in all_graphs(graph) for n in g.nodes]
    assert names.count("flat_nonzero") == lists
