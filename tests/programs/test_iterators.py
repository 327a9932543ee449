"""Iterators that several places of a program use, of which a run reaches one: the values of CPython, or a refusal."""

import pytest

from myia_relay import relay
from myia_relay.utils.errors import TypeError_

XS, YS = [1.0, -2.0], [3.0, 4.0]


def loops(xs, ys, c):
    pairs = zip(xs, ys)
    total = 0.0
    if c > 0:
        for x, y in pairs:
            total = total + x * y
    else:
        for x, _ in pairs:
            total = total - x
    return total


def returned(xs, ys, c):
    numbered = enumerate(xs)
    if c > 0:
        return list(numbered)
    return [(i, x * 2.0) for i, x in numbered]


def conditional(xs, ys, c):
    back = reversed(xs)
    return list(back) if c > 0 else [0.0, *back]


def nested(xs, ys, c):
    sizes = map(abs, xs)
    if c > 0:
        if c > 5:
            out = list(sizes)
        else:
            out = [x + 1.0 for x in sizes]
    else:
        out = [x + 2.0 for x in sizes]
    return out


@pytest.mark.sampled(3)
@pytest.mark.parametrize("c", [-1, 1, 9])
@pytest.mark.parametrize("program", [loops, returned, conditional, nested])
def test_an_iterator_in_the_arms_of_an_if(program, c, executor):
    assert relay(program, executor=executor)(XS, YS, c) == program(XS, YS, c)


def behind(xs, ys, c):
    pairs = zip(xs, ys)
    out = [(0.0, 0.0)]
    if c > 0:
        out = list(pairs)
    return out + list(pairs)


def before(xs, ys, c):
    pairs = zip(xs, ys)
    out = list(pairs)
    if c > 0:
        out = list(pairs)
    return out


def twice_in_an_arm(xs, ys, c):
    pairs = zip(xs, ys)
    if c > 0:
        return list(pairs)
    return list(pairs) + list(pairs)


def in_a_loop(xs, ys, c):
    pairs = zip(xs, ys)
    total = 0
    for i in range(3):
        if c > i:
            total = total + len(list(pairs))
        else:
            total = total - len(list(pairs))
    return total


def two_branches(xs, ys, c):
    pairs = zip(xs, ys)
    total = 0
    if c > 0:
        total = len(list(pairs))
    if c < 5:
        total = total + len(list(pairs))
    return total


@pytest.mark.parametrize("program", [behind, before, twice_in_an_arm, in_a_loop, two_branches])
def test_a_second_use_is_refused(program):
    with pytest.raises(TypeError_, match=r"zip\(\) makes can be gone over only once"):
        relay(program)(XS, YS, 1)


def first_of_list(xs, ys, c):
    return next(iter(xs)) + next(iter([x * y for x in xs for y in ys if x * y < c]), 0.5)


def first_key(xs, ys, c):
    return next(iter({"a": xs, "b": ys})), next(enumerate(ys)), next(zip(xs, ys)), next(reversed(xs))


def first_of_none(xs, ys, c):
    return next(iter([x for x in xs if x > c]))


def first_of_range(xs, ys, c):
    return next(iter(range(c, 5)), -1), next(iter(range(c, 5)), None)


def first_of_squares(xs, ys, c):
    return next(iter([i * j * c for i in range(200) for j in range(200) if i * j > 7]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("c", [-1, 1, 9])
@pytest.mark.parametrize("program", [first_of_list, first_key, first_of_range, first_of_none, first_of_squares])
def test_the_first_item(program, c, executor):
    f = relay(executor=executor)(program)
    try:
        want = program(XS, YS, c)
    except StopIteration:
        with pytest.raises(StopIteration):
            f(XS, YS, c)
        return
    got = f(XS, YS, c)
    assert got == want and repr(got) == repr(want)


def changed_first(xs, ys, c):
    rows = [[1.0], [2.0, 3.0]]
    row = next(iter(rows))
    row[0] = 9.0
    return rows


def twice(xs, ys, c):
    it = iter(xs)
    return next(it), next(it)


@pytest.mark.parametrize("program", [changed_first, twice])
def test_what_else_it_may_be_is_refused(program, executor):
    with pytest.raises((TypeError_, SyntaxError)):
        relay(executor=executor)(program)(XS, YS, 1)
