"""Arrays whose sizes values decide: what NumPy makes of such programs, in every executor, by one compilation for all sizes."""

import copy
import linecache

import numpy as np
import pytest

from myia_relay import CompileError, ShapeError, grad, jacfwd, jacrev, relay, vmap
from tests.programs.compare import differences

X = np.linspace(-1.0, 2.0, 10)
PROGRAMS = []
LOSSES = []


def program(*inputs):
    """Put a program into the table, with arguments on which it is run, all by one compilation."""

    def put(function):
        PROGRAMS.append((function, inputs))
        return function

    return put


def loss(function):
    """Put a function of X and a size into the table of those whose gradients are looked at."""
    LOSSES.append(function)
    return function


@program((0,), (3,), (100,), (-1,))
def zeros_of(n):
    return np.zeros(n)


@program((0,), (3,), (1,))
def several_axes(n):
    return np.ones((n, 3)) * 2 + np.arange(3), np.full(n, 3.5), np.empty(n).shape, np.tri(n)


@program((0,), (3,), (-4,))
def counted(n):
    return np.arange(n), np.arange(2, n), np.arange(0, n, 2, dtype=np.float32)


@program((0, 10, 3), (10, 0, -3), (0, -5, 1), (0, 5, 0))
def between(a, b, c):
    return np.arange(a, b, c)


@program((0.0, 1.0, 0.1), (5.0, 4.5, -0.1), (1.0, 1.0, 0.5))
def between_floats(a, b, c):
    return np.arange(a, b, c)


@program((0,), (1,), (7,), (-1,))
def evenly(n):
    return np.linspace(0, 1, n)


@program((X, 3), (X, 0), (X, 20), (X, -3), (X, -30))
def first(x, n):
    return x[:n], len(x[:n]), x[:n].size, x[:n].shape[0]


@program((X, 3, 5), (X, 0, -1), (X, 5, 3), (X, -3, 100))
def part(x, a, b):
    return x[a:b]


@program((X, 3, 9, 2), (X, 9, 3, -2), (X, 0, 100, 3), (X, -1, -100, -1), (X, 0, 5, 0))
def strided(x, a, b, c):
    return x[a:b:c]


@program((X, 3), (X, 0), (X, 9), (X, 10))
def of_parts(x, i):
    return x[i:], x[:i], x[i:][1:], x[i:][:-1], x[::-1][i:], x[i:][::-1], x[i::3]


@program((X, 3), (X, 0), (X, 10))
def computed(x, n):
    y = x[:n]
    return y @ np.ones(n), np.sum(y * np.arange(n)), y + 1, y * y[::-1], np.outer(y, y) @ y, np.max(x[n - 1 :])


@program((3, 3), (0, 0), (3, 4))
def meet(n, m):
    return np.zeros(n) + np.ones(m)


@program((X, 5), (X, 2), (X, 1), (X, 3))
def reshaped(x, n):
    return x.reshape(n, -1), x.reshape((-1, n)).T


def whole(x, k):
    for i in range(k):
        x = x + np.array_equal(x, x * i)
    return k - 1


@program((X, 3), (X, 9))
def sizes_that_calls_return(x, n):
    """What a function returns is a size of its own at each call."""
    return x[: whole(x, n)], x[: whole(x, n + 1)].reshape(-1), np.zeros(whole(x, 2))


@program((X, 4), (X, 2))
def repeated_by_the_method(x, n):
    return x.repeat(n), x[:n].repeat(2), x.reshape(5, 2).repeat(n, axis=1), x.repeat([1, 2] * 5)


@program((X.reshape(2, 5), 2), (X.reshape(2, 5), 0))
def gathered(x, n):
    """Two arrays of positions, whose sizes turn out to be the same."""
    rows, columns = np.arange(n), np.arange(5)[:n]
    y = x.copy()
    y[rows, columns] = 7.0
    order = np.argsort(-x, axis=-1)[..., :n]
    return x[rows, columns], x[rows[:, None], columns], y, np.take_along_axis(x, order, -1)


@program((0, 2), (1, 0), (1, 2), (3, 2))
def looked_at_in_a_loop(n, m):
    """An array that is empty or was never made: what does not change in the loop is computed before its check."""
    for i in range(n):
        s = np.ones(i)
    total = 0
    for _ in range(m):
        total = total + np.argmax(s) + np.argmin(s)
    for _ in range(m):
        total = total + np.take(s, [1])[0]
    return total


@program((X, 3, 3), (X, 0, 0), (X, 3, 4))
def stacked(x, n, m):
    return np.stack([x[:n], np.arange(m) * 1.0]), np.stack([x[:n], x[:n][::-1]], axis=1)


@program((3,), (0,))
def joined(n):
    return np.concatenate([np.zeros(n), np.ones(2), np.arange(n)]), np.eye(n) + np.zeros((n, n))


@program((X, 3), (X, 0), (X, -2))
def filled(x, n):
    x = x.copy()
    x[:n] = 7.0
    return x


@program((X, 3, 9, 2), (X, 9, 3, -2), (X, 0, 100, 3), (X, -1, -100, -1), (X, 4, 2, 1))
def changed(x, a, b, c):
    x = x.copy()
    x[a:b:c] = 7.0
    y = x.copy()
    y[a:b:c] *= 2.0
    return x, y


@program((X, 1, 5, 2), (X, 4, 0, -2), (X, 4, 2, 1))
def changed_parts(x, a, b, c):
    x = x.reshape(5, 2).copy()
    y = x * 2
    x[a:b:c] = y[a:b:c]
    x[a:b:c, 1] = 3.0
    x[:, :: abs(c)] += 1.0
    return x, y


@program((5,), (0,), (40,))
def in_place(n):
    x = np.zeros(n)
    for i in range(1, n):
        x[i] = x[i - 1] + i
    return x


@program((X, 3, True), (X, 3, False), (X, 0, True))
def of_branches(x, n, c):
    if c:
        y = x[:n]
    else:
        y = x[n:]
    z = np.zeros((n, 2)) if c else np.ones((n + 1, 2))
    return y, np.sum(y), z @ np.ones(2), z.T


def doubled(x, n):
    return x[:n] * 2


def normalised(x):
    return x / np.sum(x)


@program((X, 3), (X, 5), (X, 9))
def of_calls(x, n):
    parts = (doubled(x, n), [doubled(x, 2), n])
    scaled = lambda k: x[:n] * k  # noqa: E731
    return (
        doubled(x, n) + 1,
        np.sum(doubled(x, n + 1)),
        normalised(normalised(doubled(x, n))),
        parts[1][0],
        scaled(2) + scaled(3),
    )


@program((3,), (0,), (50,))
def growing(n):
    out = np.zeros(0)
    for i in range(n):
        out = np.concatenate([out, np.array([i * 1.0])])
    return out


@program((X,), (X[:1],), (X[:0],))
def shrinking(x):
    while len(x) > 1:
        x = x[1:] + x[:-1]
    return x


@program((3,), (0,), (50,))
def growing_and_shrinking(n):
    x = np.arange(2, n)
    out = np.zeros(0, dtype=np.int64)
    while x.size > 0:
        out = np.append(out, x[0])
        x = x[1:]
    return out


@program((X, 3), (X, 0), (X, 10))
def sizes_in_a_loop(x, n):
    s, acc = 0.0, np.zeros(3)
    for i in range(n):
        s += np.sum(x[:i]) * np.mean(x[i:])
        acc = acc + np.sum(np.outer(x[:i], np.arange(3)), axis=0)
    return s, acc


@program((3,), (0,), (50,))
def recursive(n):
    if n == 0:
        return np.zeros(0)
    return np.concatenate([recursive(n - 1), np.array([n * 1.0])])


@program((X,), (X[:1],), (X[:0],), (np.arange(300.0),))
def halves(x):
    """Arrays of one call are looked at after the calls inside it."""
    if len(x) <= 1:
        return x * 2
    m = len(x) // 2
    s = np.zeros(0)
    for i in range(2):
        y = x + i
        s = np.concatenate([s, halves(y[:m]) + 1, y[m:] * i])
    return s


V = np.array([1.0, -2.0, 3.0, 3.0, -2.0, 5.0, 0.0, 1.0])
M = np.arange(12.0).reshape(4, 3)
RUNS = np.array([1, 1, 1, 2, 2, 5, 5, 5, 5, 1])


@program((V, 0.0), (V, 10.0), (-V, 1.0))
def chosen(x, t):
    return x[x > t], x[x > t].sum(), len(x[x > t]) * 2, np.compress(x > t, x), np.extract(x <= t, x), np.sort(x[x > t])


@program((M,), (-M,))
def chosen_of_a_matrix(x):
    return x[x[:, 0] > 3], x[x > 3], x[:, x[0] > 1], x[x[:, 0] > 3, 1], np.argwhere(x > 3), np.where(x > 3), x.nonzero()


@program(
    (V, np.array([0, 1, 2, 0, 3, 1, 0, 0]), 3), (V, np.zeros(8, int), 0), (V, np.array([0, 1, 2, 0, 3, 1, 0, -1]), 2)
)
def repeated(x, counts, n):
    return np.repeat(x, counts), np.repeat(x, n), np.repeat(x.reshape(2, -1), n, axis=1)


@program((V,), (RUNS,), (np.array([np.nan, 1.0, np.nan]),))
def once(x):
    return np.unique(x), *np.unique(x, return_index=True, return_inverse=True, return_counts=True)


@program((RUNS,), (RUNS[:1],))
def run_lengths(x):
    change = np.flatnonzero(x[1:] != x[:-1]) + 1
    starts = np.concatenate([np.zeros(1, dtype=np.int64), change])
    lengths = np.concatenate([starts[1:], np.array([len(x)])]) - starts
    return x[starts], lengths, np.repeat(x[starts], lengths)


@program((30,), (2,), (200,))
def primes(n):
    x = np.arange(2, n + 1)
    out = []
    while len(x) > 0:
        p = x[0]
        out.append(int(p))
        x = x[x % p != 0]
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if is_prime[i]:
            is_prime[i * i :: i] = False
    return np.array(out), np.flatnonzero(is_prime)


@program((V, 3), (V, 1), (V, 8))
def windows(x, w):
    total = np.cumsum(np.concatenate([np.zeros(1), x]))
    return (total[w:] - total[:-w]) / w


@program((V[[0, 1, 2, 5]], 3), (V[[0, 1, 2, 5]], 0))
def greatest(x, k):
    return np.sort(x)[::-1][:k], np.argsort(-x, kind="stable")[:k]


@program((np.random.default_rng(0).normal(size=50),), (V,))
def quicksorted(x):
    if len(x) <= 1:
        return x
    p, rest = x[0], x[1:]
    return np.concatenate([quicksorted(rest[rest < p]), np.array([p]), quicksorted(rest[rest >= p])])


@pytest.mark.sampled(60)
@pytest.mark.parametrize(("function", "inputs"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])
def test_programs_do_what_numpy_does(function, inputs, executor):
    compiled = relay(executor=executor)(function)
    for args in inputs:
        try:
            want = function(*copy.deepcopy(args))
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(*copy.deepcopy(args))
            continue
        assert differences(compiled(*copy.deepcopy(args)), want) == [], args
    shapes = {tuple(np.shape(a) for a in args) for args in inputs}
    assert compiled.cache_info().misses == len(shapes)


def test_sizes_that_differ_are_an_error_at_the_line(executor):
    f = relay(executor=executor)(meet)
    with pytest.raises(ShapeError, match="sizes 3 and 4 meet in axis -1") as caught:
        f(3, 4)
    assert "return np.zeros(n) + np.ones(m)" in str(caught.value)


def test_a_size_that_may_be_one_is_not_repeated(executor):
    """NumPy would: it is refused, and nothing else is computed."""
    f = relay(executor=executor)(meet)
    with pytest.raises(ShapeError, match="sizes 1 and 4"):
        f(1, 4)
    assert np.array_equal(relay(executor=executor)(lambda n: np.zeros(n) + np.ones(1))(3), np.ones(3))


@pytest.mark.parametrize(
    "shape", ["2, -1", "-1, 2", "n, 3", "n + 1, -1, 2", "3", "(n + 2)"], ids=lambda s: s.replace(" ", "")
)
def test_shapes_that_do_not_fit_are_refused_as_numpy_does(shape, executor):
    text = f"def f(x, n):\n    return x[:n].reshape({shape})\n"
    linecache.cache["<reshape>"] = (len(text), None, text.splitlines(True), "<reshape>")
    space = {}
    exec(compile(text, "<reshape>", "exec"), space)
    with pytest.raises(ValueError, match="cannot reshape") as wanted:
        space["f"](X, 5)
    with pytest.raises(ValueError, match="cannot reshape") as caught:
        relay(executor=executor)(space["f"])(X, 5)
    assert str(caught.value).splitlines()[-1] == str(wanted.value)


def best(x, k):
    return relay.top_k(x, k), relay.top_k(x.reshape(2, -1), k, axis=1), relay.top_k(x[x > 0.0], k)[0]


@pytest.mark.sampled(3)
def test_the_greatest_of_a_number_that_a_value_decides(executor):
    f = relay(executor=executor)(best)
    for k in (0, 2, 5):
        (values, places), (rows, at), positive = f(X, k)
        assert np.array_equal(values, np.sort(X)[::-1][:k]) and np.array_equal(X[places], values)
        assert np.array_equal(rows, np.sort(X.reshape(2, 5), axis=1)[:, ::-1][:, :k])
        assert np.array_equal(np.take_along_axis(X.reshape(2, 5), at, 1), rows)
        assert np.array_equal(positive, values)
    for k in (-1, 6):
        with pytest.raises(ValueError, match=f"top_k: k={k} of an axis of"):
            f(X, k)
    with pytest.raises(ValueError, match="top_k: k=3 of an axis of 2"):
        relay(executor=executor)(lambda x: relay.top_k(x, 3))(X[:2])


def positive(x):
    return x[x > 0.0] ** 2


@pytest.mark.parametrize("transform", [
    lambda x: jacrev(positive)(x),
    lambda x: jacfwd(positive)(x),
    lambda x: vmap(positive)(x.reshape(2, 5)),
])  # fmt: skip
def test_transforms_refuse_results_whose_size_a_value_decides(transform):
    for call in (transform, relay(transform)):
        with pytest.raises(CompileError, match=r"returns an array whose size.*np.where\(mask, x, 0.0\)") as caught:
            call(X)
        assert caught.value.loc


def test_vmap_refuses_sizes_that_differ_between_examples(executor):
    f = relay(executor=executor)(vmap(lambda x: np.sum(x[x > 0])))
    with pytest.raises(CompileError, match="the size of this array differs between the examples of vmap"):
        f(np.ones((3, 4)))
    assert np.allclose(
        vmap(changed_in_steps, in_axes=(0, None))(np.stack([X, X * 2]), 3),
        [changed_in_steps(X, 3), changed_in_steps(X * 2, 3)],
    )
    same = relay(executor=executor)(lambda xs, n: vmap(lambda x: np.sum(x[:n] * np.arange(n)))(xs))
    assert np.array_equal(same(np.ones((3, 4)), 3), np.full(3, 3.0))


def test_lists_of_numbers_make_arrays(executor):
    def f(n):
        xs = []
        for i in range(n):
            xs.append(i * 2)
        return np.array(xs)

    compiled = relay(executor=executor)(f)
    assert np.array_equal(compiled(3), f(3))
    with pytest.raises(ValueError, match="an empty list makes an array of floats"):
        compiled(0)


def test_an_empty_list_makes_an_array_of_the_dtype_that_is_said(executor):
    def f(n):
        xs = [0 for _ in range(0)]
        for i in range(n):
            xs.append(i * 2)
        return np.array(xs, np.int64), np.asarray(xs, dtype=np.float32), np.append(np.array(xs, np.int64), 7)

    compiled = relay(executor=executor)(f)
    for n in (3, 0):
        for mine, plain in zip(compiled(n), f(n), strict=True):
            assert mine.dtype == plain.dtype
            assert np.array_equal(mine, plain)


def test_inlined_calls_copy_nothing():
    """What a function takes and returns as a list is the array itself once the call is inlined."""

    def f(x, n):
        return np.sum(doubled(x, n) + doubled(x, n))

    text = str(relay(f).ir(X, 3, stage="optimized"))
    assert "list" not in text
    assert text.count("bind_dim") == text.count("dynamic_slice") == 1


def test_a_size_is_an_int():
    with pytest.raises(CompileError, match="this is a float computed at run time"):
        relay(zeros_of)(2.5)


def test_sizes_without_end_are_memory_errors():
    with pytest.raises(MemoryError):
        relay(zeros_of)(1 << 61)
    with pytest.raises(MemoryError):
        relay(lambda n: np.zeros((n, n)) + 1)(1 << 40)


def test_results_go_into_arrays_of_the_right_size():
    f = relay(zeros_of)
    out = np.ones(3)
    f.into(out)(3)
    assert np.array_equal(out, np.zeros(3))
    with pytest.raises(ShapeError):
        f.into(out)(4)


@loss
def weighted(x, n):
    return np.sum(x[:n] ** 2 * np.arange(n))


@loss
def product(x, n):
    return np.sum((x[:n].reshape(n, -1) @ x[:n].reshape(-1, n)) ** 2)


@loss
def pieces(x, n):
    return np.sum(np.concatenate([x[:n], np.zeros(n), x[n:]]) ** 3) + np.sum(x[::n] ** 2)


@loss
def differences_of(x, n):
    return np.sum((x[1:n] - x[: n - 1]) ** 2)


@loss
def filled_in_a_loop(x, n):
    y = np.zeros(n)
    for i in range(n):
        y[i] = x[i] ** 2
    return np.sum(y * y)


@loss
def changed_in_steps(x, n):
    y = x * x
    y[1::n] = x[1::n] * 3.0
    return np.sum(y * np.arange(10.0))


@loss
def of_a_branch(x, n):
    if n > 4:
        y = x[:n] ** 2
    else:
        y = x[n:] ** 3
    return np.sum(np.tanh(y) * y)


@loss
def of_a_loop(x, n):
    s = 0.0
    for i in range(n):
        y = x[: i + 1]
        for j in range(3):
            s += np.sum(np.tanh(y * s) * (j + 1.0)) + x[j]
    return s


@loss
def of_matrices(x, n):
    s = 0.0
    while n > 0:
        m = np.outer(x[:n], x[:n])
        s += np.sum(np.tanh(m @ m))
        n -= 2
    return s


@loss
def of_a_growing_array(x, n):
    y = x[:0]
    for i in range(n):
        y = np.concatenate([y * x[i], np.sin(x[i : i + 1])])
    return np.sum(y**2)


@loss
def of_a_shrinking_array(x, n):
    while len(x) > n:
        x = np.tanh(x[1:] * x[:-1] + 1)
    return np.sum(x**2)


def built(x, n):
    if n == 0:
        return x[:0]
    return np.concatenate([built(x, n - 1) * x[n], np.sin(x[n - 1 : n])])


def of_halves(x, n):
    if len(x) <= n:
        return np.sum(np.sin(x))
    m = len(x) // 2
    return of_halves(x[:m], n) * of_halves(x[m:] * 2, n)


@loss
def of_recursions(x, n):
    return np.sum(built(x, n) ** 2) + of_halves(x, n)


@loss
def of_the_greatest(x, n):
    return np.sum(relay.top_k(x, n)[0] ** 2 * np.arange(n))


@loss
def of_chosen(x, n):
    y = x[x > n * 0.1]
    return np.sum(np.tanh(y) * np.arange(len(y))) + np.sum(np.repeat(x, np.arange(10)) ** 2)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("function", LOSSES, ids=lambda f: f.__name__)
def test_gradients(function, executor):
    f = relay(executor=executor)(grad(function))
    for n in (1, 3, 9):
        want = np.zeros_like(X)
        for k in range(X.size):
            step = np.zeros_like(X)
            step[k] = 1e-6
            want[k] = (function(X + step, n) - function(X - step, n)) / 2e-6
        assert np.allclose(f(X, n), want, atol=1e-6)


def batched(x, start, stop):
    """A mini-batch: NumPy cuts the slice off at the end of the array, so a value decides its size."""
    keys = relay.random.split(relay.random.key(0), 4)
    return relay.vmap(lambda v, key: v + 0.0 * relay.random.uniform(key))(x[start:stop], keys)


def test_a_batch_whose_size_a_value_decides_beside_one_that_is_known(executor):
    f = relay(executor=executor)(batched)
    np.testing.assert_array_equal(f(X, 2, 6), X[2:6])
    with pytest.raises(ShapeError, match="vmap"):
        f(X, 8, 12)
    with pytest.raises(ShapeError, match="vmap: the batch sizes differ: 10 and 4"):
        relay(executor=executor)(lambda x, y: vmap(lambda a, b: a + b)(x, y))(X, X[:4])


def equalised(x, bins):
    counts, edges = np.histogram(x, bins=bins, range=(0, 1))
    return np.interp(x, edges[1:], counts.cumsum() / counts.sum())


@pytest.mark.sampled(3)
def test_groups_of_operations_that_read_an_array_whose_size_does_not_tell_the_symbol_in_it(executor):
    f = relay(executor=executor)(equalised)
    for bins in (3, 5):
        np.testing.assert_allclose(f(X, bins), equalised(X, bins), rtol=1e-12)
