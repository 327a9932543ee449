"""Derivatives of functions that call themselves and each other: reverse, forward and mixed, of orders 1 to 3, in all executors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from myia_relay import (
    GradError,
    checkpoint,
    custom_vjp,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    relay,
    value_and_grad,
    vmap,
)

EXECUTORS = ["interpreter", "python", "native"]


def power(x, n):
    if n == 0:
        return x * 0.0 + 1.0
    half = power(x, n // 2)
    return half * half * x if n % 2 else half * half


def even(x, n):
    if n == 0:
        return x
    return odd(x * 1.5, n - 1) + x * even(x, n - 1)


def odd(x, n):
    if n == 0:
        return x * x
    return even(x * 0.5, n - 1) * odd(x, n - 1)


def fib_like(x, n):
    """The second call's argument does not depend on x."""
    if n < 2:
        return math.sin(x) * x
    return fib_like(x * 0.9, n - 1) * fib_like(2.0, n - 2) + fib_like(x, n - 2)


def in_a_for_loop(x, n):
    if n == 0:
        return x
    total = 0.1
    for i in range(n):
        total = total + in_a_for_loop(x * total, i) * x
    return total


def in_a_while_loop(x, n):
    if n == 0:
        return x
    t, i = x, 0
    while i < n and abs(t) < 5.0:
        t = t * in_a_while_loop(x * 0.3, i) + in_a_while_loop(t * 0.4, n - 1 - i)
        i += 1
    return t


def tail(x, n):
    return tail_from(x, n, 1.0)


def tail_from(x, n, total):
    if n == 0:
        return total
    return tail_from(x, n - 1, total * x + 1.0)


def pair(x, n):
    if n == 0:
        return x, x * x
    a, b = pair(x * 0.5, n - 1)
    c, d = pair(b * 0.1, n // 2)
    return a * d, b + c


def of_pairs(x, n):
    a, b = pair(x, n)
    return a + 2.0 * b


def captured(x, n):
    def go(y, k):
        return y if k == 0 else go(y * x, k - 1) + x * y

    return go(1.0, n)


def called_in_a_loop(x, n):
    total = x
    for i in range(n):
        total = total * 0.5 + power(x, i)
    return total


def in_one_branch(x, n):
    if n % 2 == 0:
        return power(x, n) * x
    return x * x


PROGRAMS = [
    power, even, fib_like, in_a_for_loop, in_a_while_loop, tail, of_pairs, captured, called_in_a_loop, in_one_branch,
]  # fmt: skip


def difference(f, x, n, h=1e-5):
    return (f(x + h, n) - f(x - h, n)) / (2 * h)


def tangent(f):
    return lambda x, n: jvp(lambda y: f(y, n), (x,), (1.0,))[1]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.sampled(6)
def test_reverse_and_forward_mode(f, executor):
    both = relay(lambda x, n: (grad(f)(x, n), tangent(f)(x, n)), executor=executor)
    for n in (0, 1, 4):
        reverse, forward = both(0.8, n)
        assert reverse == pytest.approx(difference(f, 0.8, n), rel=1e-7, abs=1e-9)
        assert forward == pytest.approx(reverse, rel=1e-13, abs=1e-15)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_second_order(f, executor):
    @relay(executor=executor)
    def second(x, n):
        return grad(grad(f))(x, n), tangent(grad(f))(x, n), grad(tangent(f))(x, n), tangent(tangent(f))(x, n)

    first = relay(grad(f), executor="interpreter")
    for n in (0, 3):
        wanted = difference(first, 0.8, n)
        assert second(0.8, n) == pytest.approx([wanted] * 4, rel=1e-7, abs=1e-8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f, executor", [(power, "native"), (even, "interpreter"), (in_a_for_loop, "interpreter")])
def test_third_order(f, executor):
    wanted = difference(relay(grad(grad(f)), executor="interpreter"), 0.8, 3)
    orders = [grad(grad(grad(f)))] + [grad(tangent(grad(f))), tangent(grad(grad(f)))] * (f is power)
    for third in orders:
        assert relay(third, executor=executor)(0.8, 3) == pytest.approx(wanted, rel=1e-6, abs=1e-7)


def weighted(w, x, i):
    """Arrays as arguments: w and x are the same at every depth."""
    if i == x.shape[0]:
        return np.float64(0.0)
    return np.sum(np.tanh(w * x[i])) ** 2 + weighted(w, x, i + 1) * 0.9


def nested(params, n):
    """A dict and a tuple as arguments, an array as the result."""
    w, (a, b) = params["w"], params["ab"]
    if n == 0:
        return w * a
    inner = nested({"w": w * b, "ab": (b, a)}, n - 1)
    return inner + np.sin(inner * a) + w


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_arrays_and_structures(executor):
    rng = np.random.default_rng(0)
    w, x, v = rng.normal(size=3), rng.normal(size=(4, 3)), rng.normal(size=3)
    loss, g = relay(value_and_grad(weighted), executor=executor)(w, x, 0)
    assert loss == pytest.approx(weighted(w, x, 0))
    h = 1e-6
    assert np.sum(g * v) == pytest.approx((weighted(w + h * v, x, 0) - weighted(w - h * v, x, 0)) / (2 * h), rel=1e-7)

    def scalar(params, n):
        return np.sum(nested(params, n) ** 2)

    params, more = {"w": w, "ab": (0.7, 0.4)}, {"w": w + h * v, "ab": (0.7 + 2 * h, 0.4 - h)}
    less = {"w": w - h * v, "ab": (0.7 - 2 * h, 0.4 + h)}
    g = relay(grad(scalar), executor=executor)(params, 3)
    wanted = (scalar(more, 3) - scalar(less, 3)) / (2 * h)
    assert np.sum(g["w"] * v) + 2 * g["ab"][0] - g["ab"][1] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_jacobians(executor):
    def f(w, n):
        return w * w if n == 0 else w * f(w * 0.9, n - 1) + np.sum(w)

    w = np.array([0.3, 0.8, 2.5])
    h = 1e-6
    wanted = np.stack([(f(w + h * e, 3) - f(w - h * e, 3)) / (2 * h) for e in np.eye(3)], axis=1)
    np.testing.assert_allclose(relay(jacfwd(f), executor=executor)(w, 3), wanted, rtol=1e-6)
    np.testing.assert_allclose(relay(jacrev(f), executor=executor)(w, 3), wanted, rtol=1e-6)
    twice = relay(hessian(lambda w: np.sum(f(w, 2) ** 2)), executor=executor)(w)
    other = relay(jacrev(grad(lambda w: np.sum(f(w, 2) ** 2))), executor=executor)(w)
    np.testing.assert_allclose(twice, other, rtol=1e-12)


# Batches.


def counted(x, n):
    """The depth that comes back is the same for all examples, and decides."""
    if n == 0:
        return x, 0
    y, depth = counted(x * 0.5 + 1.0, n - 1)
    if depth > 2:
        return y * x, depth + 1
    return y + x, depth + 1


def halved(x):
    """Each example has a depth of its own."""
    if x < 1.0:
        return x
    return halved(x * 0.5) * x


def each(f, *columns):
    return np.array([f(*[c.item() for c in row]) for row in zip(*columns)])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_vmap(executor):
    xs, ns = np.array([0.3, 0.8, 2.5, 4.5]), np.array([3, 0, 5, 2])

    def run(f, *args):
        return relay(f, executor=executor)(*args)

    def slopes(f, *columns):
        return each(lambda x, *rest: difference(f, x, rest[0] if rest else 0), *columns)

    np.testing.assert_allclose(run(vmap(power, in_axes=(0, None)), xs, 5), xs**5)
    np.testing.assert_allclose(run(vmap(lambda x: counted(x, 5)[0]), xs), each(lambda x: counted(x, 5)[0], xs))
    np.testing.assert_allclose(run(vmap(lambda x: counted(x, 5)[1]), xs), [5] * 4)
    np.testing.assert_allclose(run(vmap(power), xs, ns), xs**ns)
    np.testing.assert_allclose(run(vmap(halved), xs), each(halved, xs))
    np.testing.assert_allclose(run(vmap(vmap(halved)), xs.reshape(2, 2)), each(halved, xs).reshape(2, 2))
    np.testing.assert_allclose(run(vmap(grad(power), in_axes=(0, None)), xs, 5), 5 * xs**4)
    np.testing.assert_allclose(
        run(vmap(grad(even), in_axes=(0, None)), xs, 3), slopes(lambda x, _: even(x, 3), xs), 1e-6
    )
    np.testing.assert_allclose(run(vmap(grad(power)), xs, ns), ns * xs ** (ns - 1.0))
    wanted = slopes(lambda x, _: halved(x), xs)
    np.testing.assert_allclose(run(vmap(grad(halved)), xs), wanted, 1e-6)
    np.testing.assert_allclose(run(grad(lambda x: np.sum(vmap(halved)(x))), xs), wanted, 1e-6)


def test_one_recursion_for_all_examples_where_they_take_the_same_way():
    f = relay(vmap(grad(power), in_axes=(0, None)))
    assert "for_loop" not in str(f.ir(np.ones(4), 5, stage="optimized"))
    assert "for_loop" in str(relay(vmap(grad(power))).ir(np.ones(4), np.arange(4), stage="optimized"))


# What is in the way of a recursion.


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_rules_and_checkpoints(executor):
    tripled = custom_vjp(lambda x: x * x)

    @tripled.defvjp
    def _(x, out, dout):
        return (3.0 * dout,)

    def with_rule(x, n):
        return tripled(x) if n == 0 else with_rule(x, n - 1) * 2.0

    def again(x, n):
        return x if n == 0 else math.sin(checkpoint(again)(x * 1.1, n - 1)) * x

    def around(x, n):
        return checkpoint(power)(x, n) * x

    assert relay(grad(with_rule), executor=executor)(5.0, 3) == 24.0
    assert relay(tangent(with_rule), executor=executor)(5.0, 3) == 24.0

    def unmarked(x, n):
        return x if n == 0 else math.sin(unmarked(x * 1.1, n - 1)) * x

    for f, plain in ((again, unmarked), (around, lambda x, n: power(x, n) * x)):
        for n in (0, 1, 4):
            assert relay(grad(f), executor=executor)(0.8, n) == pytest.approx(difference(plain, 0.8, n), rel=1e-7)
        second = relay(grad(grad(f)), executor=executor)(0.8, 3)
        first = relay(grad(f), executor="interpreter")
        assert second == pytest.approx(difference(first, 0.8, 3), rel=1e-6)


def test_a_hundred_thousand_calls_deep():
    def deep(x, n):
        return x if n == 0 else math.sin(deep(x, n - 1)) + x * 0.5

    slope = relay(grad(deep))
    assert slope(0.7, 100_000) == pytest.approx(difference(deep, 0.7, 100), rel=1e-6)
    assert slope(0.7, 100) == pytest.approx(difference(deep, 0.7, 100), rel=1e-6)


def test_too_deep_is_an_error_and_the_next_call_is_right():
    def endless(x, n):
        return x if n == 0 else math.sin(endless(x, n - 1)) * x

    slope = relay(grad(endless))
    with pytest.raises(RecursionError):
        slope(0.7, 10_000_000)
    assert slope(0.7, 3) == pytest.approx(difference(endless, 0.7, 3), rel=1e-7)


def test_what_never_changes_is_not_kept():
    """Only numbers are on the tape of a recursion over the rows of a matrix, not the matrix."""
    text = str(relay(grad(weighted)).ir(np.ones(3), np.ones((1000, 3)), 0, stage="differentiated"))
    assert "tape<" in text and "[1000, 3], " not in text.split("tape<")[1].split(">")[0]


def test_a_function_that_differentiates_itself_is_refused():
    @relay
    def f(x, n):
        if n == 0:
            return x * x
        return grad(lambda y: f(y, n - 1))(x) * x

    with pytest.raises(GradError, match="differentiates itself"):
        f(2.0, 3)


def lengthened(n, x, xs):
    if n == 0:
        return xs
    return [*lengthened(n - 1, x * 0.9, xs), x * x]


def of_a_list(x, n):
    s = 0.0
    for y in lengthened(n, x, [x * k for k in range(n)]):
        s = s * 0.5 + y * y
    return s


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_recursion_that_returns_a_list(executor):
    """The cotangent of a list is there as that of a float is: it was taken for that of an integer once, and the gradient was 0."""
    wanted = pytest.approx(difference(of_a_list, 0.7, 4), rel=1e-7)
    assert relay(grad(of_a_list), executor=executor)(0.7, 4) == wanted
    assert relay(lambda x, n: jvp(lambda v: of_a_list(v, n), (x,), (1.0,))[1], executor=executor)(0.7, 4) == wanted
