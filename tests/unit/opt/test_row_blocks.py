"""Sums over rows of data, block by block: which programs go so, that they compute the same, and that the others are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay, value_and_grad
from myia_relay.opt.kernels import row_blocks
from tests.property.test_random_row_blocks import is_blocked
from tests.property.thresholds import low
from tests.property.verdicts import leaves

RNG = np.random.default_rng(5)
N, D, K = 42, 3, 4
X = RNG.normal(size=(N, D))
Y = RNG.normal(size=N)
W = RNG.normal(size=(K, D, D))
B = RNG.normal(size=(K, D))


def mixture(w, b, x):
    """As in the mixture of Gaussians: a term for each component, and a logsumexp over these."""
    terms = np.zeros((K, x.shape[0]))
    for k in range(K):
        z = (x - b[k]) @ w[k].T
        terms[k] = b[k, 0] - 0.5 * np.sum(z * z, axis=1)
    top = np.max(terms, axis=0)
    return np.sum(top + np.log(np.sum(np.exp(terms - top), axis=0))) + np.sum(b**2)


def recurrent(w, b, x):
    """Layers, one after the other: each iteration begins with what the last one has made of the rows."""
    h = np.zeros((x.shape[0], D))
    for k in range(K):
        h = np.tanh(x @ w[k] + h * b[k])
    return np.sum(h * h)


def weighted(w, b, x, y):
    """Two arguments with rows."""
    h = y
    for k in range(K):
        h = np.sin(h * y + x @ b[k])
    return np.sum(h)


def by_column(w, b, x):
    """The rows lie along another axis."""
    xt = x.T.copy()
    h = np.ones((D, x.shape[0]))
    for k in range(K):
        h = np.cos(w[k] @ (xt * h) + np.reshape(b[k], (D, 1)))
    return np.sum(h)


def picked(w, b, x, labels):
    """Rows that are picked from what has none, by labels of the rows."""
    h = np.zeros((x.shape[0], D))
    for k in range(K):
        h = np.tanh(h * b[k] + b[labels] * x)
    return np.sum(h)


def convolved(w, b, x):
    """The rows are images, of which a convolution's filters have sums in the end."""
    h = np.zeros((x.shape[0], 1, D, D))
    for k in range(K):
        images = np.reshape(x, (x.shape[0], 1, 1, D)) + h
        h = np.tanh(relay.conv2d(images, np.reshape(w[k], (1, 1, D, D)), padding="same")) * b[k]
    return np.sum(relay.max_pool(h, ksize=D) ** 2)


def stacked(w, b, x):
    """Loops inside of loops, whose tapes are one array."""
    total = 0.0
    for k in range(K):
        h = x
        for j in range(3):
            h = np.sin(h @ w[k] + b[j])
        total = total + np.sum(h)
    return total


LABELS = RNG.integers(0, K, N)
MINED = [(mixture, (W, B, X)), (recurrent, (W, B, X)), (weighted, (W, B, X, Y)), (by_column, (W, B, X)), (stacked, (W, B, X)),
         (picked, (W, B, X, LABELS)), (convolved, (W, B, X))]  # fmt: skip


def centred(w, b, x):
    """Each row needs a sum over all of them."""
    h = x - np.sum(x, axis=0) / x.shape[0]
    for k in range(K):
        h = np.tanh(h @ w[k])
        h = h - np.mean(h, axis=0)
    return np.sum(h * h)


def squared(w, b, x):
    """The adjoint begins with the sum."""
    h = x
    for k in range(K):
        h = np.tanh(h @ w[k] + b[k])
    return np.sum(h) ** 2


def in_order(w, b, x):
    """Rows depend on the rows before."""
    h = x
    for k in range(K):
        h = np.tanh(np.cumsum(h, axis=0) @ w[k])
    return np.sum(h)


def largest(w, b, x):
    h = x
    for k in range(K):
        h = np.tanh(h @ w[k]) * np.max(h)
    return np.sum(h)


def printed(w, b, x):
    h = x
    for k in range(K):
        h = np.tanh(h @ w[k])
        print(k)
    return np.sum(h)


def as_often_as_asked(w, b, x):
    """A tape that grows, of what does not depend on the rows."""
    total, scale, iterations = 0.0, 1.0, np.floor(np.abs(b[0, 0]) + 3.0)
    while iterations > 0.0:
        scale = np.tanh(scale * b[1, 1]) + 1.0
        total = total + np.sum(np.sin(x @ w[0]) * scale)
        iterations = iterations - 1.0
    return total


LEFT = [(f, (W, B, X)) for f in (centred, squared, in_order, largest, printed, as_often_as_asked)]


def same(got, want, tolerance=1e-12):
    for path, (a, b) in leaves((got, want)):
        assert type(a) is type(b) and np.shape(a) == np.shape(b), path
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * 100, err_msg=path)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("rows", [1, 5, 7, 10, 21])
@pytest.mark.parametrize(("f", "args"), MINED, ids=lambda v: getattr(v, "__name__", ""))
def test_gradients_by_row_blocks(f, args, rows, monkeypatch):
    wrt = ("w", "b", "x")
    want = relay(value_and_grad(f, wrt), executor="interpreter")(*args)
    with low():
        monkeypatch.setattr(row_blocks, "block", lambda _, n, *__: rows if n == N else None)
        g = relay(value_and_grad(f, wrt))
        assert is_blocked(g, args)
        same(g(*args), want)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("f", "args"), LEFT, ids=lambda v: getattr(v, "__name__", ""))
def test_what_does_not_go_block_by_block(f, args, capsys):
    want = relay(value_and_grad(f, ("w", "b")), executor="interpreter")(*args)
    printed = capsys.readouterr().out
    with low():
        g = relay(value_and_grad(f, ("w", "b")))
        assert not is_blocked(g, args)
        same(g(*args), want)
    assert capsys.readouterr().out == printed


def test_long_sums_are_reported(monkeypatch):
    """By default: a long tape, and a number of rows that no good block divides."""
    n = 9973
    x = RNG.normal(size=(n, D))
    g = relay(value_and_grad(recurrent, ("w", "b")))
    told = [line for line in str(g.explain(W, B, x)).splitlines() if "row blocks" in line]
    rows = int(told[0].split()[2])
    assert row_blocks.ROWS <= rows < n / 2 and told == [f"  row blocks: {rows} of {n} rows at a time"]
    same(g(W, B, x), relay(value_and_grad(recurrent, ("w", "b")), executor="interpreter")(W, B, x), 1e-9)
    monkeypatch.setenv("MYIA_RELAY_WITHOUT", "row_blocks")
    assert "row blocks" not in str(relay(value_and_grad(recurrent, ("w", "b"))).explain(W, B, x))
