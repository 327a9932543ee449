"""Symbolic dimensions: one compilation serves every size, and means what NumPy means at each of them."""

# ruff: noqa: F821

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, Float32, Float64, ShapeError, Tensor, grad, relay
from tests.programs.compare import differences

N = Tensor[Float64, ("n",)]
NM = Tensor[Float64, ("n", "m")]
CASES = []
SIZES = (0, 1, 7, 1000)


def vec(n, k=0):
    return np.sin(np.arange(n) * 1.3 + k)


def mat(n, m, k=0):
    return np.sin(np.arange(n * m) * 0.7 + k).reshape(n, m)


def case(make, sizes=SIZES, misses=1):
    """Put a program into the table: its arguments by size, the sizes, and how often it is compiled for them."""

    def put(function):
        CASES.append((function, make, sizes, misses))
        return function

    return put


def V(n):
    return (vec(n),)


def VV(n):
    return (vec(n), vec(n, 1))


def M(n):
    return (mat(n, 3),)


def MM(n):
    return (mat(n, n // 8 + 1),)


@case(V)
def total(x: N):
    return np.sum(x), np.sum(x * 2) + x.shape[0], len(x)


@case(VV)
def dot(x: N, y: N):
    return x @ y, x + y, np.dot(x, y)


@case(MM)
def flat(x: NM):
    return x.reshape(-1), x.ravel(), x.reshape(x.shape[0] * x.shape[1]), x.T, x.T.reshape(x.shape[1], x.shape[0])


@case(MM)
def rows(x: NM):
    return np.sum(x, axis=0), x.sum(axis=1), np.concatenate([x, x], axis=0), np.concatenate([x, x], axis=1)


@case(VV)
def cat(x: N, y: N):
    return np.concatenate([x, y]), np.stack([x, y]), np.stack([x, y], axis=1), np.hstack([x, y, x])


@case(lambda n: (vec(n), vec(n + 2)))
def cat2(x: Tensor[Float64, ("n",)], y: Tensor[Float64, ("m",)]):
    z = np.concatenate([x, y])
    return z, z.shape, z.shape[0] - x.shape[0]


@case(V, (1, 7, 1000))
def slices(x: N):
    return x[1:], x[:-1], x[1:] - x[:-1], x[::-1], x[-1], x[0]


@case(V)
def slices2(x: N):
    return x[::2], x[::-1], x[:], x[None], x[:, None]


@case(MM, (0, 1, 7, 40))
def outer(x: NM):
    return x[:, :, None] * x[:, None, :], x @ x.T, x.T @ x


@case(V)
def loops(x: N):
    s = 0.0
    for v in x:
        s += v * v
    t = 0.0
    for i in range(x.shape[0]):
        t += x[i] * i
    k = 0
    while k < len(x):
        k += 2
    return s, t, k


@case(V)
def update(x: N):
    y = np.zeros(x.shape[0])
    for i in range(len(x)):
        y[i] = x[i] * 2
    z = np.zeros_like(x)
    z[:] = 3.0
    w = np.ones(x.shape)
    w[0 : x.shape[0]] += x
    return y, z, w, np.full(x.shape, 2.0), np.arange(x.shape[0]), np.arange(len(x)) * 2.0


@case(MM)
def reductions(x: NM):
    return np.prod(x), np.any(x > 0), np.all(x > 0)


@case(V, (1, 7, 50))
def red2(x: N):
    return x.max(), x.min(), np.argmax(x), np.mean(x), np.var(x), np.cumsum(x), np.sort(x), np.argsort(x, kind="stable")


@case(V)
def where(x: N):
    return np.where(x > 0, x, -x), np.clip(x, -0.5, 0.5), np.maximum(x, 0.0), np.tanh(x)


@case(lambda n: (mat(n, 4), mat(3, 4), vec(3)))
def linear(
    x: Tensor[Float64, ("b", 4)], w: Tensor[Float64, (3, 4)], b: Tensor[Float64, 3]
) -> Tensor[Float64, ("b", 3)]:
    return np.tanh(x @ w.T + b)


@case(lambda n: (mat(n, 4), mat(5, 4)))
def mm(x: Tensor[Float64, ("n", "k")], w: Tensor[Float64, ("m", "k")]) -> Tensor[Float64, ("n", "m")]:
    return x @ w.T


@case(lambda n: (mat(n, 4).astype(np.float32),))
def f32(x: Tensor[Float32, ("n", 4)]) -> Tensor[Float32, "n"]:
    return np.sum(x * 2, axis=1)


@case(lambda n: (mat(n, 4),), misses=1)
def anyd(x: Tensor[Float64, (Any, Any)]):
    return x * 2, x.shape, x.sum(axis=0), x.reshape(-1)


@case(lambda n: (vec(n), vec(n)))
def anyd2(x: Tensor[Float64, (Any,)], y: Tensor[Float64, (Any,)]):
    return x + y


@case(lambda n: (vec(n), vec(3)), misses=2)
def anyd3(x: Tensor[Float64, (Any,)], y: Tensor[Float64, 3]):
    return np.concatenate([x, y]), x[:, None] + y


@case(V)
def cond(x: N):
    if x.shape[0] > 5:
        return x * 2
    return x + 1


@case(V)
def cond2(x: N):
    y = x
    if np.sum(x) > 0:
        y = x * 2
    for _ in range(3):
        y = y + x
    return y


@case(V)
def helper(x: N):
    def f(a: Tensor[Float64, ("k",)]) -> Tensor[Float64, ("k",)]:
        return a * 2

    return f(x) + f(f(x))


@dataclass(frozen=True)
class Pt:
    w: Tensor[Float64, ("n", "m")]
    b: Tensor[Float64, ("m",)]

    def __call__(self, x: Tensor[Float64, ("n",)]):
        return x @ self.w + self.b


@case(lambda n: (Pt(mat(n, 3), vec(3)), vec(n)))
def record(p: Pt, x: Tensor[Float64, ("n",)]):
    return p(x), p.w * 2


class NT(NamedTuple):
    a: Tensor[Float64, ("n",)]
    b: Tensor[Float64, ("n",)]


@case(lambda n: (NT(vec(n), vec(n)),))
def ntuple(t: NT):
    return t.a + t.b, t


@case(lambda n: ((vec(n), vec(n)),))
def tup(t: tuple[N, N]):
    return t[0] + t[1]


@case(V)
def comp(x: N):
    return [v * 2 for v in x], sum([v * 1 for v in x], 0.0), sum(x[i] for i in range(len(x)))


@case(lambda n: (mat(n, 3),))
def looprow(x: Tensor[Float64, ("n", 3)]):
    s = np.zeros(3)
    for r in x:
        s = s + r
    return s, [r.sum() for r in x]


@case(MM)
def bcast(x: NM):
    return x * np.ones(x.shape[1]), x - x.mean(axis=1, keepdims=True), np.broadcast_to(np.ones(x.shape[1]), x.shape)


@case(MM)
def transposed(x: NM):
    return np.transpose(x), x.swapaxes(0, 1), np.expand_dims(x, 1), x[..., None], np.squeeze(x[None], axis=0)


@case(V)
def rev(x: N):
    return np.flip(x), np.roll(x, 1), np.repeat(x, 2), np.tile(x, 2), np.pad(x, 1)


@case(V)
def eye(x: N):
    return np.eye(x.shape[0]), np.diag(x), np.outer(x, x)


@case(V, (1, 7, 1000))
def lin(x: N):
    return np.linspace(0.0, 1.0, x.shape[0]), np.ones((x.shape[0], 2)), np.zeros((2, len(x), 1))


@case(V)
def fstr(x: N):
    assert x.shape[0] < 10000, f"too long: {x.shape[0]}"
    return x.size, x.ndim, x.shape[0] // 2, x.shape[0] % 3, -x.shape[0], x.shape[0] / 2


@case(lambda n: (mat(n, n),))
def square(x: Tensor[Float64, ("n", "n")]):
    return x @ x, np.trace(x), x + x.T, np.diagonal(x)


@case(lambda n: (mat(2 * n, 3),))
def half(x: Tensor[Float64, ("n", 3)]):
    return x.reshape(-1, 3, 2), x.reshape(2, -1)


@case(lambda n: (vec(n * 6),))
def resh(x: N):
    return x.reshape(-1, 6), x.reshape(6, -1).T, x.reshape(-1, 2, 3)


@case(V)
def ifeq(x: N):
    if len(x) == 0:
        return 0.0
    return x[0] + x[len(x) - 1] + x[len(x) // 2]


@case(V)
def dtype(x: N):
    return x.astype(np.float32), x > 0, (x > 0).astype(int), np.round(x), x.copy(), np.count_nonzero(x)


@case(V)
def lst(x: N):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    return out, len(out)


@case(V)
def zips(x: N):
    s = 0.0
    for i, (a, b) in enumerate(zip(x, x[::-1])):
        s += i * a * b
    return s


@case(V, (0, 1, 7))
def rec(x: N):
    def go(i: int) -> float:
        return 0.0 if i >= x.shape[0] else float(x[i]) + go(i + 1)

    return go(0)


@case(V, (3, 7, 1000))
def splits(x: N):
    a, b, c = np.split(x, [1, 3])
    return a, b, c


@case(V)
def rolls(x: N):
    return np.roll(x, 3), np.roll(x, -1), np.roll(x[None], 1, axis=1), np.roll(x[:, None] * np.ones(2), 1)


@case(lambda n: (vec(2 * n),))
def reshapes(x: N):
    return x.reshape(-1, 2), x.reshape(x.shape[0] // 2, 2).sum(axis=1), x.reshape(2, -1) @ np.ones((x.shape[0] // 2, 3))


@case(V)
def repeats(x: N):
    return np.repeat(x, 3), np.tile(x, (2, 1)), np.pad(x, (2, 1)), np.append(x, 1.0)


@case(VV)
def gradients(x: N, y: N):
    return np.meshgrid(x, y), np.vstack([x, y]), np.column_stack([x, y]), np.array([x, y])


@case(V, misses=1)
def r1(x: N):
    return x.reshape(-1, 6) * 2


@case(V, misses=1)
def r2(x: N):
    return x.reshape(2, 3) + 1


@case(V, misses=1)
def r3(x: N):
    return (x * 2).reshape(x.shape[0] // 2, 2).sum(axis=0)


@case(MM, misses=1)
def r4(x: NM):
    return x.reshape(x.shape[1], -1) + 1


@case(MM, misses=1)
def r5(x: NM):
    return x.reshape(-1, x.shape[1]) + 1


@case(lambda n: (mat(n, 3), vec(3)))
def r8(x: Tensor[Float64, ("n", Any)], y: Tensor[Float64, (Any,)]):
    return x @ y, x + y


@case(lambda n: ([vec(n), vec(n)],))
def r9(xs: list[N]):
    return xs[0] + xs[1]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize(("function", "make", "sizes", "misses"), CASES, ids=[c[0].__name__ for c in CASES])
def test_every_size(function, make, sizes, misses, executor):
    compiled = relay(executor=executor)(function)
    for n in sizes:
        args = make(n)
        try:
            want = function(*copy.deepcopy(args))
        except ValueError as error:
            with pytest.raises(ValueError) as caught:
                compiled(*args)
            assert str(caught.value) == str(error) or "shape" in function.__code__.co_names
            continue
        assert differences(compiled(*args), want, 1e-9) == [], n
    assert compiled.cache_info().misses == misses


def of_two(x: N, y: N):
    return x + y


def of_pairs(t: tuple[N, N]):
    return t[0] + t[1]


def of_fields(p: Pt):
    return p.w + p.b


def of_result(x: N) -> Tensor[Float64, ("n", "n")]:
    return x


def of_inner(x: N):
    def f(a: Tensor[Float64, ("k",)], b: Tensor[Float64, ("k",)]):
        return a + b

    return f(x, x[1:])


REFUSED = [
    (of_two, VV(3)[:1] + VV(4)[1:], ["'n' is 3 in axis 0 of argument 'x', but 4 in axis 0 of argument 'y'"]),
    (of_pairs, ((vec(3), vec(4)),), ["'n' is 3", "but 4"]),
    (of_fields, (Pt(mat(3, 4), vec(5)),), ["'m' is 4 in the field 'w', but 5 in the field 'b'"]),
    (of_fields, (Pt(mat(3, 4), mat(4, 1)),), ["the field 'b' is annotated", "(4, 1)"]),
    (of_fields, (Pt(mat(3, 4), vec(4).astype(np.float32)),), ["the field 'b'", "float32", "astype"]),
    (of_result, (vec(3),), ["the result of of_result", "('n', 'n')", "(n,)"]),
    (of_inner, (vec(3),), ["argument 'b' of f", "k = n", "(n - 1,)"]),
]


@pytest.mark.parametrize(
    ("function", "args", "words"), REFUSED, ids=[f"{r[0].__name__}-{k}" for k, r in enumerate(REFUSED)]
)
def test_refused(function, args, words):
    with pytest.raises(CompileError) as caught:
        relay(function)(*args)
    assert all(word in caught.value.message for word in words), caught.value
    assert caught.value.loc is not None
    assert isinstance(caught.value, ShapeError) or "float32" in words


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_gradient(executor):
    def f(x: N):
        return np.sum(x.reshape(-1, 2).sum(axis=1) ** 2) + np.sum(np.roll(x, 1) * x)

    compiled = grad(relay(executor=executor)(f))
    for n in (2, 4, 10):
        x = vec(n)
        pairs = np.repeat(x.reshape(-1, 2).sum(axis=1), 2)
        np.testing.assert_allclose(compiled(x), 2 * pairs + np.roll(x, 1) + np.roll(x, -1), rtol=1e-12)


def test_fixed_sizes_where_something_needs_them():
    def f(x: Tensor[Float64, (Any,)], y: Tensor[Float64, (Any,)]):
        out = []
        for size in x.shape:
            out.append(np.zeros(size * 0 + 2))
        return np.squeeze(x[None]) + np.squeeze(y[None]), out

    compiled = relay(executor="interpreter")(f)
    for n in (3, 5):
        assert compiled(vec(n), vec(n))[0].tolist() == (2 * vec(n)).tolist()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_slices_stay_behind_their_checks(executor):
    """What a loop computes again and again is computed before it, but nothing of an array that may be too short."""

    @relay(executor=executor)
    def f(x: N, entries, iterations):
        total = 0.0
        while iterations > 0:
            total += np.sum(np.exp(x[3:]) * np.exp(x[:-3])) + np.sqrt(x)[::-1][len(entries)] + np.cos(x[2])
            iterations -= 1
        return total

    for size in (7, 3):
        x = vec(size) ** 2
        assert f(x, [1.0, 2.0], 2) == pytest.approx(f.__wrapped__(x, [1.0, 2.0], 2), rel=1e-12)
    for size, entries, text in (
        (2, 0, "index 2 is out of bounds for axis 0 with size 2"),  # the slices are cut off
        (0, 0, "index 0 is out of bounds for axis 0 with size 0"),
        (7, 7, "index 7 is out of bounds"),
    ):
        x, entries = vec(size) ** 2, [1.0] * entries
        assert f(x, entries, 0) == 0.0
        with pytest.raises(IndexError, match=text):
            f(x, entries, 3)


def one_before_the_last(x: N, p):
    y = x.copy()
    y[len(x) - 2] += 10.0
    return x[len(x) - 2], y


def from_lengths(x: N, p):
    return x[-1 - len(p)], x[len(p) - 3], x[-len(p)], x[-len(p) - 1 :], x[: -1 - len(p)]


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("function", [one_before_the_last, from_lengths])
def test_positions_that_may_be_counted_from_the_end(function, executor):
    """A position that sizes make, which is negative for some of them, is what NumPy makes of it."""
    f = relay(executor=executor)(function)
    for size in (6, 3, 1, 0):
        for length in (0, 1, 2, 4):
            x, p = vec(size), [1.0] * length
            try:
                want = function(x, p)
            except IndexError as error:
                with pytest.raises(IndexError) as caught:
                    f(x, p)
                assert str(caught.value) == str(error)
                continue
            if function is from_lengths and length >= size:
                continue  # parts of arrays that are too short are refused where NumPy clips
            for a, b in zip(f(x, p), want, strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_sizes_a_known_distance_apart_are_compared_when_compiling(executor):
    """So what only one branch could do is no mistake in the other."""

    @relay(executor=executor)
    def compared(x: N, y: N):
        n, m = x.shape[0], y.shape[0] + 1
        z = (np.add(x, y, 3.0) if n != y.shape[0] else x + y) + (0.0 if n < m else x @ "none")
        return z, n == m, n != m, n < m, n <= m, n > m, n >= m, n == m - 1, m >= m

    for size in (0, 3):
        z, *rest = compared(vec(size), vec(size))
        np.testing.assert_array_equal(z, 2 * vec(size))
        assert rest == [False, True, True, True, False, False, True, True]
