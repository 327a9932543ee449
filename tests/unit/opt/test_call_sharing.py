"""Equal calls on a path: which are evaluated once, and which must be evaluated again."""

from __future__ import annotations

import pytest

from myia_relay import relay
from myia_relay.ir.rewrite import recursive_components

EXECUTORS = ("interpreter", "python", "native")


def own_calls(function, *args) -> int:
    """How many calls of itself the optimised recursive function has."""
    graph = relay(function).ir(*args, stage="optimized").graph
    (members,) = recursive_components(graph)
    return sum(n.fn in members for g in members for n in g.nodes)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def backwards(n):
    return n if n < 2 else backwards(n - 2) + backwards(n - 1)


def choose(n, k):
    if k == 0 or k == n:
        return 1
    return choose(n - 1, k - 1) + choose(n - 1, k)


def hanoi(n):
    return 0 if n == 0 else hanoi(n - 1) + 1 + hanoi(n - 1)


def tak(x, y, z):
    return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y)) if y < x else z


def shout(n):
    print(n)
    return n if n < 2 else shout(n - 1) + shout(n - 2)


def test_few_calls_are_left_however_deep():
    assert own_calls(fib, 5) == 2
    assert own_calls(hanoi, 5) == 1
    assert own_calls(backwards, 5) < 8  # two on each of a few paths


def test_pascals_triangle_shares_within_rows():
    assert (
        own_calls(choose, 5, 2) == 5
    )  # two levels: three where neither is at an end, one at each end; plainly unfolded, all four


def test_different_calls_stay():
    assert own_calls(tak, 5, 3, 1) == 3  # the outermost is a tail call, a loop


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_values(executor):
    for f, points in (
        (fib, [(n,) for n in range(-3, 25)]),
        (backwards, [(n,) for n in range(-3, 25)]),
        (hanoi, [(n,) for n in range(12)]),
        (choose, [(n, k) for n in range(10) for k in range(n + 1)]),
        (tak, [(8, 4, 2), (3, 3, 1), (7, 2, 5)]),
    ):
        compiled = relay(executor=executor)(f)
        assert [compiled(*p) for p in points] == [f(*p) for p in points]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_prints_is_called_again(executor, capsys):
    shout(6)
    want = capsys.readouterr().out
    relay(executor=executor)(shout)(6)
    assert capsys.readouterr().out == want


def first(n):
    """Of two calls that raise, the first; behind it, an overflow that is never reached."""
    if n < 2:
        if n == 0:
            raise ValueError("zero")
        return 9223372036854775807
    return first(n - 1) + first(n - 2)


def second(n):
    """The base case of the second call raises; that of the first does not, though both are called with the same values later."""
    if n < 2:
        return 10 // n
    if n == 4:
        raise ValueError(f"four, {n}")
    return second(n - 1) - second(n - 2)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("function", [first, second])
def test_the_first_to_raise_raises(executor, function):
    compiled = relay(executor=executor)(function)
    for n in range(9):
        try:
            want = function(n)
        except Exception as error:
            with pytest.raises(type(error)) as caught:
                compiled(n)
            assert str(caught.value) == str(error)
            assert caught.traceback[-1].lineno == _last_line(error)
        else:
            if want < 2**63:
                assert compiled(n) == want


def _last_line(error: BaseException) -> int:
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return trace.tb_lineno - 1


@pytest.mark.parametrize("executor", EXECUTORS)
def test_overflow_names_the_sum_that_overflows(executor):
    with pytest.raises(OverflowError, match=r"7540113804746346429 \+ 4660046610375530309"):
        relay(executor=executor)(fib)(93)
    assert relay(executor=executor)(fib)(92) == 7540113804746346429


def endless(n):
    return 0 if n == -1 else endless(n + 1) + endless(n + 2) + endless(n + 1)


def test_endless_recursion_ends():
    with pytest.raises(RecursionError):
        relay(endless)(1)
