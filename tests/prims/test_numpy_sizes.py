"""NumPy's functions whose results have sizes that values decide, and arguments that are computed, as NumPy's users write them."""

import numpy as np
import pytest

from myia_relay import CompileError, Float64, Tensor, grad, relay
from tests.programs.compare import differences

X = np.array([3.0, -1.0, 2.0, 2.0, 0.0, 5.0, -1.0, 7.0])
I = np.array([3, 1, 2, 2, 0, 5, 1, 7])
J = np.array([1, 2, 9])
M = np.arange(12.0).reshape(3, 4)
CASES = []


def case(*calls):
    """Put a program into the table, with arguments."""

    def put(function):
        CASES.extend((function, args) for args in calls)
        return function

    return put


@case((X, M, 3, 2), (X, M, 0, 1))
def tiles(x, m, n, k):
    return np.tile(x, n), np.tile(m, (n, k)), np.tile(x, (n, 1)), np.tile(x[:n], 2), np.tile(2.5, k)


@case((X, M), (X * 0, M * 0))
def compressed(x, m):
    return x.compress(x > 0), m.compress(m[0] > 1, axis=1), np.compress(m[:, 0] > 3, m, axis=0)


@case((X, I, M, 0.0), (X, I, M, 9.0))
def as_lists(x, i, m, t):
    return x[x > t].tolist(), i.tolist(), (x > t).tolist(), m.tolist(), np.arange(3).tolist()


@case((X, 3), (X, 6))
def parts(x, n):
    a, b = np.split(x, [n])
    c, d, e = np.array_split(x[:n], 3)
    f, g = np.hsplit(x, [n])
    h, i, j = np.split(x[: 2 * n], [n - 1, n])
    return a, b, c, d, e, f, g, h, i, j, *np.vsplit(x.reshape(4, 2), 2), *np.split(x[:n], 3)


@case((I, J), (J, I), (I[:0], J))
def sets(i, j):
    return np.setdiff1d(i, j), np.intersect1d(i, j), np.union1d(i, j), np.setxor1d(i, j), np.setdiff1d(i, j * 0.5)


@case((np.array([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]),), (np.zeros(3),), (X,))
def trimmed(z):
    return np.trim_zeros(z), np.trim_zeros(z, "f"), np.trim_zeros(z, "b")


@case((X, M, 3, 1), (X, M, -1, -2), (X, M, 0, 2))
def deleted(x, m, n, k):
    row = np.delete(m, k, axis=0)
    return np.delete(x, n), np.delete(x, 2), row, np.delete(m, 1, axis=1), np.delete(m, k)


@case((X, M, 3), (X, M, 0))
def several_deleted(x, m, n):
    some = np.delete(x, np.arange(n)), np.delete(x, x > n), np.delete(x, [])
    return np.delete(x, [1, 2, 1]), np.delete(x, np.array([-1, n])), *some, np.delete(m, [0, 3], axis=1)


@case((X, M, 3), (X, M, 0), (X, M, -2))
def inserted(x, m, n):
    flat = np.insert(x, n, 5.0), np.insert(x, 2, [1.0, 2.0]), np.insert(x, [1, 3], 9.0), np.insert(x, [n], [1, 2])
    many = np.insert(x, np.array([0, 2, n]), np.array([1.0, 2.0, 3.0]))
    row = np.insert(m, 1, 0.0, axis=0), np.insert(m, n, [1.0, 2.0, 3.0, 4.0], axis=0)
    return *flat, many, *row, np.insert(m, 1, [1.0, 2.0, 3.0], axis=1), np.insert(m, [0, 2], [[1.0, 2.0]], axis=1)


@case((X, np.array([0.0, 1.0, 2.0])), (X, np.array([5.0, 0.5])), (X, np.array([1.0])))
def intervals(x, bins):
    return np.digitize(x, bins), np.digitize(x, bins, right=True), np.digitize(1.0, bins)


@case((X, 3), (X, 1), (X[:0], 4), (X * 0, 2))
def histograms(x, n):
    edges = np.histogram_bin_edges(x, n)
    return (
        np.histogram(x, n),
        np.histogram(x),
        np.histogram(x, n, range=(0.0, 5.0)),
        np.histogram(x, n, weights=x),
        edges,
    )


@case((X, I, 3), (X, I, 5))
def other_histograms(x, i, n):
    edges = np.linspace(0, 5, n)
    return (
        np.histogram(x, edges),
        np.histogram(x, edges, weights=x),
        np.histogram(x, n, density=True),
        np.histogram(i, n),
    )


@case((X, M, 3), (X, M, 0))
def borders(x, m, n):
    low = np.pad(x, n), np.pad(x, (0, n), constant_values=7), np.pad(m, ((0, n), (0, 0))), np.pad(m, ((1, n), (n, 2)))
    return *low, *[np.pad(x[:5], (n, 2), mode=mode) for mode in ("edge", "wrap", "reflect", "symmetric")]


@case((X, M, 3), (X, M, 2))
def scales(x, m, n):
    return (
        np.logspace(0, 1, n),
        np.geomspace(1, 10, n),
        np.geomspace(-1, -4, n),
        np.gradient(x[: n + 1]),
        np.ediff1d(x[:n]),
    )


@case((X, M))
def differences_and_moments(x, m):
    g = np.gradient(x), np.gradient(x, 0.5), np.gradient(m, axis=0), np.gradient(x, np.cumsum(np.arange(1.0, 9.0)))
    return *g, np.cov(m), np.cov(x), np.cov(m, rowvar=False), np.corrcoef(m + m**2), np.cov(x, x * x, bias=True)


@case((X, I, M, 3), (X, I, M, 1))
def positions(x, i, m, n):
    order = np.lexsort((x[:n], i[:n])), np.lexsort((x, i))
    return (
        *order,
        np.unravel_index(np.argmax(m), m.shape),
        np.unravel_index(i, (3, n + 3)),
        np.triu_indices(n),
        np.tril_indices(n),
    )


@case((X, M, 2))
def of_several_axes(x, m, n):
    at = np.ravel_multi_index((np.array([0, 1]), np.array([n, 3])), (3, 4))
    return (
        at,
        m[np.ix_(x[:3] > 0, np.array([0, n]))],
        m[np.ix_(np.arange(n), np.arange(n))],
        np.resize(x, n),
        np.resize(x, (n, 5)),
    )


@case((X, 3), (X, 0))
def choices(x, n):
    y = x[:n]
    other = np.choose(np.arange(n) % 2, [y, -y]), [y, y * 2][n % 2]
    return np.select([y > 0, y < 0], [1.0, 2.0], 0.5), np.select([x > 0, x < 0], [x, 2], -1), *other, np.dstack((y, y))


@case((X, M, 3), (X, M, 1))
def windows(x, m, n):
    view = np.lib.stride_tricks.sliding_window_view
    return view(x, n), view(x, 3).sum(axis=1), view(m, (2, n)), view(m, n, axis=1), np.broadcast_to(x[:n], (2, n))


@case((X, 3), (X, 8))
def averages(x, n):
    return np.average(x[:n], weights=np.arange(1, n + 1)), np.average(x.reshape(4, 2), axis=0, weights=np.arange(1, 5))


@pytest.mark.sampled(135)
@pytest.mark.parametrize("function, args", CASES, ids=lambda f: getattr(f, "__name__", ""))
def test_as_in_numpy(function, args, executor):
    got = relay(executor=executor)(function)(*args)
    assert not differences(got, function(*args), rtol=1e-12)


RAISING = [
    (lambda x, n: np.delete(x, n), (X, 8)),
    (lambda x, n: np.insert(x, n, 1.0), (X, 9)),
    (lambda x, n: np.insert(x, np.array([n, 0]), 1.0), (X, 9)),
    (lambda x, n: np.split(x[:n], 3), (X, 4)),
    (lambda x, n: np.histogram(x, n), (X, 0)),
    (lambda x, n: np.histogram(x / n, 3), (X, 0)),
    (lambda x, n: np.histogram(x, x[:n]), (X, 4)),
    (lambda x, n: np.digitize(x, x[:n]), (X, 4)),
    (lambda x, n: np.unravel_index(n, (3, 4)), (X, 12)),
    (lambda x, n: np.lib.stride_tricks.sliding_window_view(x, n), (X, 9)),
    (lambda x, n: np.pad(x[:n], 1, mode="edge"), (X, 0)),
    (lambda x, n: np.tile(x, n), (X, -1)),
    (lambda x, n: np.pad(x, n), (X, -1)),
]


@pytest.mark.parametrize("function, args", RAISING)
@pytest.mark.sampled(7)
def test_what_numpy_raises(function, args, executor):
    with np.errstate(all="ignore"), pytest.raises(Exception) as wanted:
        function(*args)
    with pytest.raises(type(wanted.value)):
        relay(executor=executor)(function)(*args)


LOSSES = [
    lambda x, n: np.sum(np.delete(x, n) ** 2),
    lambda x, n: np.sum(np.insert(x, n, x[0] * x[1]) * np.arange(9)),
    lambda x, n: np.sum(np.tile(x[:n], n) * np.arange(n * n)),
    lambda x, n: np.sum(np.pad(x, n, mode="reflect") * np.arange(8 + 2 * n) ** 2),
    lambda x, n: np.sum(np.histogram(np.arange(8.0), n, weights=x**2)[0] * np.arange(n)),
    lambda x, n: np.sum(np.gradient(x[: n + 2]) ** 3),
    lambda x, n: np.sum(np.array_split(x, 3)[1] ** 2) + np.sum(np.split(x, [n, n + 2])[1] ** 3),
    lambda x, n: np.sum(x.compress(x > n + 0.5) ** 2) + sum(x[x > 0.5].tolist()),
]


@pytest.mark.parametrize("function", LOSSES)
@pytest.mark.sampled(2)
def test_gradients(function, executor):
    f = relay(executor=executor)(grad(function))
    for n in (1, 3):
        steps = np.eye(8) * 1e-6
        want = [(function(X + s, n) - function(X - s, n)) / 2e-6 for s in steps]
        assert np.allclose(f(X, n), want, atol=1e-5)


@pytest.mark.parametrize(
    "function, text",
    [
        (lambda x, n: np.split(x, n), "reshape"),
        (lambda x, n: np.delete(x, slice(n)), "np.arange"),
        (lambda x, n: np.insert(x, x > 0, 1.0), "flatnonzero"),
        (lambda x, n: np.pad(x, n, mode="mean"), "concatenate"),
        (lambda x, n: np.histogram(x, "auto"), "number of bins"),
    ],
)
def test_refusals_say_the_way_round(function, text):
    with pytest.raises(CompileError, match=text):
        relay(function)(X, 2)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", [0, 1, 5, 8])
def test_ranges_with_steps_between_sizes(size, executor):
    def named(x: Tensor[Float64, ("n",)]):  # noqa: F821
        n = len(x)
        return (
            np.arange(0, n, 2),
            np.arange(n, 0, -1),
            np.arange(n - 1, -1, -1),
            np.arange(0, n, 2) + x[::2],
            np.arange(n, 2, 3),
        )

    x = np.arange(float(size))
    for function, args in ((named, (x,)), (lambda x, n: named(x[:n]), (np.arange(9.0), size))):
        assert not differences(relay(executor=executor)(function)(*args), function(*args))
