"""Ranges as values in every executor, against CPython; ints that are spelt by way of more than 64 bits."""

from __future__ import annotations

import pytest

from myia_relay import relay

EXECUTORS = ("interpreter", "python", "native")


def reductions(n):
    return min(range(4, 12)), max(range(4, 12, 3)), sum(range(5)), sum(range(n), 5), min(range(n)), max(range(n, 2, -1))


def defaults(n):
    return min(range(n), default=3), max(range(1), default=7), sum(range(2, 8, n)), sorted(range(5, 0, -1))


def quantifiers(n):
    return any(range(3)), all(range(3)), any(range(n)), all(range(1, n)), sorted(range(n), reverse=True)


def sequences(n):
    return (
        tuple(range(3)),
        list(range(2, n)),
        [*range(n)],
        (*range(3),),
        list(reversed(range(n))),
        len(range(0, n * 7, 3)),
    )


def items(n):
    return range(10)[2:5][1], range(n)[-1], range(10)[n], list(range(20)[n:15:2]), list(range(9, 0, -n)[::-1])


def truth(n):
    return bool(range(n)), bool(range(0)), not range(n, 0), 1 if range(n, 1) else 0, bool(range(5, n, -1))


def attributes(n):
    return range(1, n).start, range(n).stop, range(0, n, 2).step, range(9)[n:].start, range(9)[1:n].stop


def methods(n):
    return (
        range(1, n * 10, 2).index(5),
        range(n).count(1),
        range(n).count(50),
        range(9, -9, -3).index(n),
        range(3).count(1.0),
    )


def membership(n):
    wide = 5 in range(-(2**63), 10), n in range(-(2**63), 2**63 - 1, 3), n in range(5, -(2**63), -2)
    return wide, 2.0 in range(n), 2.5 in range(n), n in range(9, 0, -2), True in range(2)


def large(n):
    return 2**63 - 1, -(2**63), n < 2**63 - 1, (1 << 63) - 1, ~(2**63 - 1)


PROGRAMS = (reductions, defaults, quantifiers, sequences, items, truth, attributes, methods, membership, large)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_against_cpython(program, executor):
    f = relay(program, executor=executor)
    for n in (3, 6):
        got, want = f(n), program(n)
        assert got == want and repr(got) == repr(want)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("program", "error", "text"),
    [
        (lambda n: min(range(n, n)), ValueError, "empty"),
        (lambda n: range(1, n * 10, 2).index(4), ValueError, "4 is not in range"),
        (lambda n: range(n)[n], IndexError, "range object index out of range"),
    ],
)
def test_what_raises(program, error, text, executor):
    with pytest.raises(error, match=text):
        relay(program, executor=executor)(3)


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (lambda n: range(n).stopp, "'range' object has no attribute 'stopp'; did you mean 'stop'"),
        (lambda n: range(n).index(), r"range.index\(\) takes exactly one argument \(0 given\)"),
        (lambda n: range(n) + 1, "unsupported operand type"),
    ],
)
def test_what_is_refused(program, text):
    with pytest.raises((AttributeError, TypeError), match=text):
        relay(program)(3)


def test_a_long_spine_of_literals():
    text = "lambda n: n + " + " + ".join(["1"] * 700)
    import linecache

    linecache.cache["<spine>"] = (len(text), None, [text], "<spine>")
    assert relay(eval(compile(text, "<spine>", "eval")))(1) == 701
