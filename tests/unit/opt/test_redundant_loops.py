"""Loops and branches of which everything is a part of others are not run a second time, and the others are."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import relay
from myia_relay.ir.rewrite import all_graphs

CONTROL = ("cond", "for_loop", "while_loop")


def control(function, *args) -> int:
    """How many loops and branches the outermost graph of the optimised program has."""
    graph = relay(function).ir(*args, stage="optimized").graph
    return sum(getattr(n.fn, "name", "") in CONTROL for n in graph.nodes)


def agree(function, *args):
    got, want = relay(function)(*args), relay(executor="interpreter")(function)(*args)
    plain = relay(executor="python")(function)(*args)
    for g, w, p in zip(got, want, plain, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(p, w, rtol=1e-12, atol=1e-12)


def chain(x, n):
    """A loop of a branch."""
    y = x * 1.0
    for k in range(n):
        y = np.sin(y) * y if y[0] > 0.5 else y * x[k % len(x)] + 0.5
    return y


def settling(x):
    y, count = x, 0
    while np.sum(y * y) > 0.1 and count < 50:
        y, count = y * 0.5 + 0.01 * x, count + 1
    return y * 3.0


X = np.array([0.7, 1.9, -0.4])


def test_a_function_before_and_after_its_derivative():
    def after(x, n):
        return relay.jacobian(chain)(x, n), chain(x, n)

    def before(x, n):
        return chain(x, n), relay.jacobian(chain)(x, n)

    for f in (after, before):
        assert control(f, X, 5) == control(lambda x, n: relay.jacobian(chain)(x, n), X, 5)
        for n in (0, 1, 5):
            agree(f, X, n)


def test_beside_a_gradient():
    def both(x, n):
        return relay.grad(lambda x: np.sum(chain(x, n)))(x), np.sum(chain(x, n))

    assert control(both, X, 5) == control(lambda x, n: relay.grad(lambda x: np.sum(chain(x, n)))(x), X, 5)
    agree(both, X, 5)


def test_while_loops():
    def both(x):
        return relay.jvp(settling, (x,), (np.ones(3),))[1], settling(x)

    assert control(both, X) == 1
    agree(both, X)


def test_what_differs_stays():
    def other_start(x, n):
        return relay.jacobian(chain)(x, n), chain(x + 1.0, n)

    def other_bounds(x, n):
        return relay.jacobian(chain)(x, n), chain(x, n + 1)

    def other_body(x, n):
        def almost(x, n):
            y = x * 1.0
            for k in range(n):
                y = np.sin(y) * y if y[0] >= 0.5 else y * x[k % len(x)] + 0.5
            return y

        return relay.jacobian(chain)(x, n), almost(x, n)

    alone = control(lambda x, n: relay.jacobian(chain)(x, n), X, 5)
    for f in (other_start, other_bounds, other_body):
        assert control(f, X, 5) > alone
        agree(f, X, 4)


def test_results_in_another_order():
    def swapped(x, n):
        a, b = x, x * 2.0
        for k in range(n):
            a, b = a * np.sin(b), b * a + k
        return a, b

    def both(x, n):
        a, b = swapped(x, n)
        tangents = relay.jvp(lambda x: swapped(x, n), (x,), (np.ones(3),))[1]
        return b, tangents[0], a, tangents[1]

    assert control(both, X, 3) == 1
    agree(both, X, 3)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_errors_keep_their_order(executor):
    """What would be raised between the two is raised before what only the larger one raises, and printing stays."""

    def strict(x, n):
        y = x * 1.0
        for _ in range(n):
            if y[0] > 9.0:
                raise ValueError("too large")
            y = y * x
        return y

    def f(x, n, i):
        y = strict(x, n)
        z = x[i]
        print("between", i)
        return y * z, relay.jacobian(strict)(x, n)

    run = relay(executor=executor)(f)
    with pytest.raises(ValueError, match="too large"):
        run(np.array([2.0, 3.0]), 9, 7)
    with pytest.raises(IndexError, match="index 7"):
        run(np.array([2.0, 3.0]), 2, 7)
    for got, want in zip(
        run(np.array([1.5, 3.0]), 2, 1), (np.array([10.125, 81.0]), np.diag([6.75, 27.0])), strict=True
    ):
        np.testing.assert_allclose(got, want)


def one_raises_first(xs, n, k):
    for _ in range(n):
        xs[k]
    total = 0.0
    for _ in range(n):
        total += 1 % n + xs[k] / (n - 3)
        xs[k]
    return total


def each_turn_raises(xs, n, k):
    for i in range(n):
        xs[i + k]
    for i in range(n):
        1.0 / xs[i]
        xs[i + k]
    return 0.0


def two_loops_in_one(xs, n, k):
    for _ in range(2):
        for i in range(n):
            1.0 / xs[i]
        for i in range(n):
            xs[i + k]
    for _ in range(2):
        for i in range(n):
            1.0 / xs[i]
            xs[i + k]
        for i in range(n):
            xs[i + k] + k
    return 0.0


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("f", [one_raises_first, each_turn_raises, two_loops_in_one], ids=lambda f: f.__name__)
def test_a_larger_loop_that_comes_later_does_not_raise_before(f, executor):
    compiled = relay(f, executor=executor)
    for xs in ([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 3.0, 0.0], [1.0, 2.0, 3.0, 0.0]):
        for n, k in ((3, 1), (3, 2), (4, 1), (2, 5), (0, 9)):
            try:
                want = f(xs, n, k)
            except (IndexError, ZeroDivisionError) as error:
                with pytest.raises(type(error), match=str(error).replace("(", r"\(")):
                    compiled(xs, n, k)
            else:
                assert compiled(xs, n, k) == want


def test_recursion_is_left_alone():
    def walk(x, n):
        y = x
        for _ in range(2):
            y = y * x if y[0] < 3.0 else y
        return y if n == 0 else walk(y, n - 1) + relay.jvp(lambda x: x * x, (y,), (x,))[1]

    def both(x, n):
        return walk(x, n), relay.jvp(lambda x: walk(x, n), (x,), (np.ones(3),))[1]

    agree(both, X, 3)
    assert all_graphs(relay(both).ir(X, 3, stage="optimized").graph)


def test_what_moves_may_be_dropped_itself():
    """Loops and branches that depend on each other, each before and beside its derivative."""

    def first(x, n):
        y = x * 1.0
        for k in range(n):
            y = np.sin(y) + 0.25 * k
        return y

    def second(x, y, n):
        z = y * 1.0
        for k in range(n):
            z = np.cos(z * x) if z[0] > 0.1 * k else z * z + y
        return z

    def whole(x, n):
        y = first(x, n)
        return second(x, y, n)

    def f(x, n):
        a = first(x, n)
        b = second(x, a, n)
        gradient = relay.grad(lambda x: np.sum(whole(x, n)))(x)
        return relay.jacobian(whole)(x, n), a, b, relay.jacobian(first)(x, n), whole(x, n), gradient

    def derivatives(x, n):
        return relay.jacobian(whole)(x, n), relay.grad(lambda x: np.sum(whole(x, n)))(x)

    alone = control(derivatives, X, 3)
    assert control(f, X, 3) <= alone + 1
    for n in (0, 1, 4):
        agree(f, X, n)
