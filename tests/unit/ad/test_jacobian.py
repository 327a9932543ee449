"""Jacobians that are mostly zero: which entries they have, how few passes give them, and what is returned of them."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import Float64, GradError, Tensor, TypeError_, grad, hessian, jacfwd, jacobian, jacrev, relay, vmap
from myia_relay.ad.jacobian.colouring import colouring
from myia_relay.ad.jacobian.jacobian import MOST_ENTRIES
from myia_relay.ad.jacobian.sparsity import DependenceAnalysis, Pattern

N = 20
X = np.random.default_rng(1).normal(size=N)
PLACES = np.array([3, 3, 0, 19, 7])
MATRIX = np.arange(12.0).reshape(4, 3)


def band(x):
    return np.tanh(x[2:] * x[:-2]) + np.sin(x[1:-1]) ** 2


def arrow(x):
    return x * x[0] + np.cos(x)


def valley(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def laplacian(x):
    u = np.pad(x.reshape(4, 5), 1)
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1]


def pooled(x):
    return relay.avg_pool(x.reshape(5, 1, 2, 2)).reshape(5)


def products(x):
    a = x[:12].reshape(4, 3)
    b = x[8:].reshape(3, 4)
    return a @ b, a.T @ b.T, b[:, 0] @ a[0], MATRIX @ x[:3], np.matmul(np.stack([a, a]), np.stack([b, b]))[1]


def steps(x):
    y = np.zeros(N)
    for i in range(1, N - 1):
        if i % 2 == 0:
            y[i] = x[i - 1] * x[i + 1]
        else:
            y[i] = np.sin(x[i])
    return y


def chain(x):
    s = 0.0
    for i in range(1, N):
        s = s + (x[i] - x[i - 1] ** 2) ** 2
    return s


def moved(x):
    y = x.copy()
    y[2:5] = x[7:10] * x[0]
    y[6] += x[1]
    joined = np.concatenate([y[::-1][:4], np.cumsum(x[:3]), np.roll(x, 1)[:2]])
    return joined, x[np.array([3, 3, 0])], np.max(x[:6].reshape(2, 3), axis=1)


def repeated(x):
    y = x
    k = 0
    while k < 2:
        y = y * np.roll(y, 1)
        k = k + 1
    return y


def until(x):
    y = x
    while np.sum(y) < 1e3:
        y = y * 2.0 + y[::-1]
    return y


def chosen(x):
    return x[::-1] * 2.0 if np.sum(x) > 0.0 else x * x


def guarded(x):
    y = x * 1.0
    for i in range(3):
        if np.sum(x) > 1e9:
            y[6 // (i - 1)] = x[0]
        elif i % 2 == 0:
            y[5 % (i + 1)] = x[i + 4]
    return y


def masked(x):
    return np.where(np.arange(N) < 3, x, x[::-1]) + np.tril(np.ones((N, N)))[0] * 0.0


FUNCTIONS = {  # and how many entries their Jacobians have
    band: 54, arrow: 39, laplacian: 82, pooled: 20, steps: 27, repeated: 60, until: 40, chosen: 40, masked: 20,
}  # fmt: skip


def full(entries, shape):
    """The array of which these are the entries."""
    values, coordinates = entries
    out = np.zeros(shape)
    out[coordinates] = values
    return out


@pytest.mark.sampled(18)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [jacfwd, jacrev])
def test_entries_are_those_that_may_be_other_than_zero(f, transform, monkeypatch, executor):
    x = abs(X)
    sparse = relay(transform(f, sparse=True), executor=executor)(x)
    coloured = relay(transform(f), executor=executor)(x)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "colour_jacobians")
    want = relay(transform(f))(x)
    assert len(sparse[0]) == FUNCTIONS[f]
    flat = np.ravel_multi_index(sparse[1], want.shape)
    assert np.all(np.diff(flat) > 0)  # row after row, each once
    np.testing.assert_allclose(full(sparse, want.shape), want, rtol=1e-13)
    np.testing.assert_allclose(coloured, want, rtol=1e-13)


def test_ways_that_are_not_taken_may_have_no_meaning():
    """There is a division by zero on one."""
    values, (rows, columns) = jacfwd(guarded, sparse=True)(X)
    assert {*zip(rows, columns)} - {(i, i) for i in range(N)} == {(0, 4), (2, 6), (6, 0), (14, 0)}
    np.testing.assert_array_equal(full((values, (rows, columns)), (N, N)), jacrev(guarded)(X))


@pytest.mark.parametrize("transform", [jacfwd, jacrev])
def test_picks_out_of_nothing(transform):
    """The error is the program's, when it runs; arrays without elements are nothing special otherwise."""

    def picks(x):
        return x[:0][np.array([0])] + x[1:3]

    def ends(x):
        return np.sum(x[3:3]) + np.concatenate([x[3:3], x])[:3]

    with pytest.raises(IndexError, match="out of bounds"):
        transform(picks)(X)
    with pytest.raises((GradError, IndexError), match="that has none|out of bounds"):
        transform(picks, sparse=True)(X)
    assert len(transform(ends, sparse=True)(X)[0]) == 3


@pytest.mark.parametrize("f", [products, moved], ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [jacfwd, jacrev])
@pytest.mark.sampled(2)
def test_several_results(f, transform, executor):
    want = relay(transform(f), executor="interpreter")(X)
    entries = relay(transform(f, sparse=True), executor=executor)(X)
    for part, right in zip(entries, want, strict=True):
        np.testing.assert_allclose(full(part, right.shape), right, rtol=1e-13)
        assert len(part[0]) < right.size


@pytest.mark.parametrize(("f", "count"), [(valley, 3 * N - 2), (chain, 3 * N - 2)], ids=["valley", "chain"])
def test_hessians(f, count, executor):
    want = hessian(f)(X)
    values, coordinates = relay(hessian(f, sparse=True), executor=executor)(X)
    assert len(values) == count
    np.testing.assert_allclose(full((values, coordinates), want.shape), want, rtol=1e-12)


@pytest.mark.parametrize(
    ("transform", "f", "passes"), [(jacfwd, band, 3), (jacrev, band, 3), (jacfwd, arrow, 2), (hessian, valley, 3)]
)
def test_passes(transform, f, passes):
    assert f"iota{{n={passes}, " in str(transform(f).ir(X, stage="differentiated"))


def test_sparse_jacobians_take_the_mode_with_fewer_passes():
    """With n - 1 results of n numbers reverse mode seems cheaper, but all rows meet in the first column."""

    def behind(x):
        return arrow(x)[1:]

    def total(x):
        return np.concatenate([x[1:-1] ** 2, x.sum(keepdims=True)])

    assert "iota{n=2, " in str(jacobian(behind, sparse=True).ir(X, stage="differentiated"))
    assert "iota{n=2, " in str(jacobian(total, sparse=True).ir(X, stage="differentiated"))
    for f in (behind, total):
        want = jacobian(f)(X)
        np.testing.assert_allclose(full(jacobian(f, sparse=True)(X), want.shape), want, rtol=1e-13)


def test_what_does_not_compress_is_left_as_it_was():
    """Where each result depends on the first element, all of them meet in reverse mode; a sum depends on everything."""
    assert f"iota{{n={N - 1}, " in str(jacrev(lambda x: x[1:] * x[0]).ir(X, stage="differentiated"))
    assert f"iota{{n={N}, " in str(jacfwd(lambda x: x * np.sum(x)).ir(X, stage="differentiated"))


def test_trees_and_numbers():
    def f(x, p):
        return {"a": x[1:] * p["k"] - x[:-1], "b": np.sum(x), "c": p["k"] ** 2, "d": 2.0 * x[0]}

    p = {"k": 3.0}
    want, got = jacobian(f, (0, 1))(X, p), jacobian(f, (0, 1), sparse=True)(X, p)
    for name, (by_x, by_p) in want.items():
        for right, entries in ((by_x, got[name][0]), (by_p["k"], got[name][1]["k"])):
            np.testing.assert_allclose(full(entries, np.shape(right)), right, rtol=1e-13)
            assert len(entries[1]) == np.ndim(right)
    assert got["c"][0][0].shape == (0,) and got["c"][1]["k"][0].shape == ()


@pytest.mark.sampled(3)
def test_inside_of_compiled_code(executor):
    @relay(executor=executor)
    def square(x):
        values, (rows, columns) = jacobian(band, sparse=True)(x)
        return np.sum(values * values) + 0.0 * np.sum(rows - columns)

    def dense(x):
        return np.sum(jacobian(band)(x) ** 2)

    assert square(X) == pytest.approx(dense(X), rel=1e-12)
    np.testing.assert_allclose(grad(square)(X), grad(dense)(X), rtol=1e-11)
    values, (rows, columns) = vmap(jacobian(band, sparse=True))(np.stack([X, 2.0 * X]))
    np.testing.assert_allclose(values[1], jacobian(band, sparse=True)(2.0 * X)[0], rtol=1e-13)
    assert rows.shape == columns.shape == values.shape


def test_large_ones_need_no_memory_but_for_their_entries():
    x = np.random.default_rng(0).normal(size=30_000)
    values, (rows, columns) = hessian(valley, sparse=True)(x)
    assert len(values) == 3 * len(x) - 2
    inside = x[1:-1]
    diagonal = values[(rows == columns) & (rows > 0) & (rows < len(x) - 1)]
    np.testing.assert_allclose(diagonal, 202.0 + 1200.0 * inside**2 - 400.0 * x[2:])


Vector = Tensor[Float64, ("n",)]


def test_refusals():
    @relay
    def named(x: Vector):
        return jacobian(band, sparse=True)(x)

    def through_a_list(x):
        found = [x[0]]
        while found[-1] < 5.0:
            found.append(found[-1] * 2.0)
        return found[-1] * x

    def dense(x):
        return x * np.sum(x)

    with pytest.raises(GradError, match="sizes are not known"):
        named(X)
    with pytest.raises(GradError, match="lists"):
        jacobian(through_a_list, sparse=True)(abs(X))
    with pytest.raises(GradError, match=f"more than {MOST_ENTRIES:,} entries"):
        jacobian(dense, sparse=True)(np.zeros(1100))
    with pytest.raises(TypeError_, match="True or False"):
        jacobian(band, sparse=1)
    with pytest.raises(TypeError_, match="did you mean 'sparse'"):
        relay(lambda x: jacobian(band, spars=True)(x))(X)


# Colours.


def pattern_of(rows: list[list[int]]) -> Pattern:
    return Pattern(np.cumsum([0, *map(len, rows)]), np.array([j for row in rows for j in sorted(row)], np.int64))


def test_colours_do_not_meet():
    rng = np.random.default_rng(3)
    for _ in range(50):
        n, m = rng.integers(1, 40, 2)
        rows = [list(rng.choice(n, size=rng.integers(0, min(n, 5) + 1), replace=False)) for _ in range(m)]
        colours = colouring(pattern_of(rows), n, n)
        assert len(colours) == n and all(len({*colours[row]}) == len(row) for row in rows)
        used = colours.max() + 1
        assert {*colours} == {*range(used)} and used >= max(map(len, rows))


def test_few_colours():
    assert colouring(pattern_of([[i - 1, i, i + 1] for i in range(1, 99)]), 100, 3).max() == 2
    assert colouring(pattern_of([[0, i] for i in range(1, 50)]), 50, 2).max() == 1
    assert colouring(pattern_of([[0, 1, 2, 3]]), 4, 3) is None
    # The order of the columns matters: neighbours 0-3, 1-2 of a path 0-2-3-1 would take three colours.
    crossed = [[i, n + j] for n in (6,) for i in range(n) for j in range(n) if i != j]
    assert colouring(pattern_of(crossed), 12, 12).max() == 1


def test_the_search_ends_where_too_much_meets(monkeypatch):
    """One element that depends on all of 500 inputs is enough."""
    looked_at = []
    joined = DependenceAnalysis.joined
    monkeypatch.setenv("MYIA_RELAY_CACHE", "0")
    monkeypatch.setattr(
        DependenceAnalysis, "joined", lambda self, links, size: looked_at.append(size) or joined(self, links, size)
    )
    jacfwd(lambda x: np.tanh(np.sin(x * np.sum(x)) * x))(np.zeros(500))
    assert len(looked_at) <= 3
