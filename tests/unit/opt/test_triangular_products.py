"""Products of triangular matrices: which are found, and that all of them give what NumPy gives, NaN and infinities too."""

import types

import numpy as np
import pytest

from myia_relay import Float64, Tensor, relay, vjp
from myia_relay.ir.node import applied
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.pipeline import plan_memory
from tests.property.thresholds import low

EXECUTORS = ("native", "python", "interpreter")
N = 24
RNG = np.random.default_rng(3)
SQUARE = RNG.normal(size=(N, N))
TALL = RNG.normal(size=(200, N))
WIDE = RNG.normal(size=(N, 200))


def factor(packed):
    """Columns below the diagonal, one after the other."""
    out = np.zeros((N, N))
    at = N
    for j in range(N):
        out[j, j] = np.exp(packed[j])
        for i in range(j + 1, N):
            out[i, j] = packed[at]
            at += 1
    return out


def by_rows(packed):
    out = np.zeros((N, N))
    at = 0
    for i in range(N):
        for j in range(i + 1):
            out[i, j] = packed[at]
            at += 1
    return out


def above(packed):
    out = np.zeros((N, N))
    at = 0
    for i in range(N - 1):
        for j in range(N - 1, i, -1):
            out[i, j] += packed[at]
            at += 1
    return out


def row_by_row(packed):
    out = np.zeros((N, N))
    for i in range(N):
        row = np.zeros(N)
        for j in range(i + 1):
            row[j] = packed[i * (i + 1) // 2 + j]
        out[i] = row
    return out


PACKED = RNG.normal(size=N * (N + 1) // 2) * 0.3


def tril(a, x, y):
    return np.tril(a) @ y


def strictly(a, x, y):
    return x @ np.tril(a, -1)


def triu(a, x, y):
    return np.triu(a) @ y


def from_the_right(a, x, y):
    return x @ np.triu(a, 2)


def transposed(a, x, y):
    return x @ np.tril(a).T


def both_transposed(a, x, y):
    return (y.T @ np.tril(a)) @ -np.triu(a).T


def stored_transposed(a, x, y):
    return np.dot(np.triu(a).T, x.T)


def cut_result(a, x, y):
    return np.tril(x.T @ x)


def cut_and_scaled(a, x, y):
    return np.triu(2.0 * (y @ x), -1)[0] + np.triu(np.sin(y @ y.T))[1]


FOUND = [tril, strictly, triu, from_the_right, transposed, both_transposed, stored_transposed, cut_result]


def one_above(a, x, y):
    return x @ np.tril(a, 1)


def one_below(a, x, y):
    return x @ np.triu(a, -1)


def plus_one(a, x, y):
    return x @ (np.tril(a) + 1.0)


def other_value(a, x, y):
    return x @ np.where(np.tri(N, dtype=bool), a, 0.5)


def result_is_used(a, x, y):
    z = x.T @ x
    return np.tril(z) + z[0]


NOT_FOUND = [one_above, one_below, plus_one, other_value, result_is_used]


def triangular(f, *args):
    """The products of a triangle in what is compiled."""
    return [n for g in all_graphs(plan_memory(f.ir(*args).graph)) for n in g.nodes if applied(n) == "triangular_dot"]


@pytest.mark.parametrize("f", [*FOUND, cut_and_scaled, *NOT_FOUND], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.sampled(7)
def test_products_of_triangles(f, dtype, executor):
    args = [v.astype(dtype) for v in (SQUARE, TALL, WIDE)]
    got = relay(f, executor=executor)(*args)
    tolerance = 1e-4 if dtype == "float32" else 1e-11
    np.testing.assert_allclose(got, f(*args), rtol=tolerance, atol=tolerance)
    assert got.dtype == dtype


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_they_are_found(f):
    assert triangular(relay(f), SQUARE, TALL, WIDE)


@pytest.mark.parametrize("f", NOT_FOUND, ids=lambda f: f.__name__)
def test_what_is_no_triangle_is_not(f):
    assert not triangular(relay(f), SQUARE, TALL, WIDE)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
def test_named_sizes(f):
    named = types.FunctionType(f.__code__, f.__globals__)
    named.__annotations__ = dict(zip("axy", (Tensor[Float64, size] for size in (("n", "n"), ("m", "n"), ("n", "k")))))
    compiled = relay(named)
    assert triangular(compiled, SQUARE, TALL, WIDE)
    for n, m, k in (
        (0, 2, 3),
        (1, 1, 1),
        (7, 300, 2),
        (70, 1, 9),
        (129, 40, 40),
        (200, 0, 3),
        (200, 65, 0),
        (300, 31, 33),
    ):
        args = [RNG.normal(size=size) for size in ((n, n), (m, n), (n, k))]
        np.testing.assert_allclose(compiled(*args), f(*args), rtol=1e-11, atol=1e-11)
        if f is not cut_result and n * m * k:
            args[1][m // 2, n - 1] = args[2][n // 3, 0] = np.inf
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(np.isfinite(compiled(*args)), np.isfinite(f(*args)))


def test_the_environment_leaves_them_out(monkeypatch):
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "triangular_products")
    assert not triangular(relay(tril), SQUARE, TALL, WIDE)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
@pytest.mark.parametrize("f", [*FOUND, cut_and_scaled], ids=lambda f: f.__name__)
@pytest.mark.sampled(4)
def test_zero_times_what_is_not_finite(f, value):
    compiled = relay(f)
    for at in (0, 7, N - 1):
        x, y = TALL.copy(), WIDE.copy()
        x[3, at] = value
        y[at, 199] = -value
        with np.errstate(all="ignore"):
            want = f(SQUARE, x, y)
        got = compiled(SQUARE, x, y)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("make", [factor, by_rows, above, row_by_row])
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.sampled(6)
def test_triangles_that_loops_write(make, executor):
    def product(packed, x):
        return x @ make(packed).T

    def pullback(packed, x, g):
        value, back = vjp(product, packed, x)
        return value, back(g)

    g = RNG.normal(size=(200, N))
    value, (dpacked, dx) = relay(pullback, executor=executor)(PACKED, TALL, g)
    np.testing.assert_allclose(value, product(PACKED, TALL), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(dx, g @ make(PACKED), rtol=1e-11, atol=1e-11)
    matrix, step = g.T @ TALL, 1e-6
    for k in (0, 1, N - 1, N, N + 1, len(PACKED) - 1):
        moved = PACKED.copy()
        moved[k] += step
        change = (make(moved) - make(PACKED)) / step
        np.testing.assert_allclose(dpacked[k], np.sum(change * matrix), rtol=1e-4, atol=1e-4)
    if executor == "native":
        found = triangular(relay(pullback), PACKED, TALL, g)
        assert {n.attrs["which"] for n in found} == {"right", "result"}


def test_an_entry_on_the_other_side():
    def product(packed, x):
        m = np.zeros((N, N))
        for j in range(N):
            for i in range(j, N):
                m[i, j] = packed[i] + j
        m[2, 3] = 1.0
        return x @ m

    f = relay(product)
    assert not triangular(f, PACKED[:N], TALL)
    np.testing.assert_allclose(f(PACKED[:N], TALL), product(PACKED[:N], TALL), rtol=1e-11)


def turned_in_a_loop(a, x):
    m = np.tril(a)
    for _ in range(3):
        m = m.T
    return x @ m


def turned_after_a_product(a, x):
    m = x.T @ x
    total = 0.0
    for _ in range(2):
        for j in range(N):
            for i in range(j, N):
                total += m[i, j] * a[i, j]
        m = m.T * a
    return total


def row_is_kept(a, x):
    m = np.zeros((N, N))
    row = np.zeros(N)
    for i in range(N - 1, -1, -1):
        row[i] = a[i, 0]
        m[i] = row
    return x @ m


def row_is_read_later(a, x):
    m = x.T @ x
    row, total = np.zeros(N), 0.0
    for i in range(N):
        total += row[i]
        row = m[i]
        total += row[0] * a[i, i]
    return total


def with_its_transpose(a, x):
    m = x.T @ (x * 1.5 + a[0])
    both = m.T + m
    total = 0.0
    for i in range(N):
        for j in range(i, N):
            total += both[i, j] * a[i, j]
    return total


@pytest.mark.parametrize(
    "f", [with_its_transpose, turned_in_a_loop, turned_after_a_product, row_is_kept, row_is_read_later]
)
def test_what_the_turns_of_a_loop_change(f):
    np.testing.assert_allclose(relay(f)(SQUARE, TALL), f(SQUARE, TALL), rtol=1e-10)


def test_a_triangle_that_loops_around_are_given():
    def product(packed, xs):
        m = by_rows(packed)
        total = np.zeros((200, N))
        for k in range(3):
            total = total + xs[k] @ m
        return total

    xs = np.stack([TALL, TALL * 2, TALL - 1])
    f = relay(product)
    assert triangular(f, PACKED, xs)
    np.testing.assert_allclose(f(PACKED, xs), product(PACKED, xs), rtol=1e-11)


@pytest.mark.parametrize("f", FOUND, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [20, 33, 150, 300])
@pytest.mark.sampled(7)
def test_other_sizes_and_two_threads(f, size, monkeypatch):
    a, x, y = RNG.normal(size=(size, size)), RNG.normal(size=(size + 3, size)), RNG.normal(size=(size, 2 * size))
    if f.__name__ == "both_transposed":
        x = x[:size]
    with low():
        got = relay(f)(a, x, y)
    np.testing.assert_allclose(got, f(a, x, y), rtol=1e-10, atol=1e-9)
