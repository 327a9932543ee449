"""Lists whose length is known at run time only: what they are in CPython they are in every executor, or they are refused."""

# ruff: noqa: C416

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, grad, jvp, relay, vmap
from tests.programs import compare

CASES: list = []


def program(*inputs):
    """A function that is called with each of these arguments (tuples: several)."""

    def register(function):
        for k, args in enumerate(inputs):
            CASES.append(
                pytest.param(function, args if isinstance(args, tuple) else (args,), id=f"{function.__name__}-{k}")
            )
        return function

    return register


COMPILED: dict = {}


@pytest.mark.sampled(19)
@pytest.mark.parametrize(("function", "args"), CASES)
def test_program(function, args, executor):
    f = COMPILED.setdefault((function, executor), relay(executor=executor)(function))
    before = [list(a) if isinstance(a, list) else a for a in args]
    try:
        want = function(*args)
    except Exception as error:
        with pytest.raises(type(error)) as ours:
            f(*args)
        assert str(ours.value) == str(error) or sys.version_info[:2] != (3, 11)
        return
    assert compare.differences(f(*args), want) == []
    assert compare.differences(f(*args), want) == [], "the second call differs"
    assert [list(a) if isinstance(a, list) else a for a in args] == before


# Collecting.


@program(0, 6, 7)
def odd_squares(n):
    out = []
    for i in range(n):
        if i % 2 == 1:
            out.append(i * i)
    return out


@program(2, 3, 60)
def sieve(n):
    flags = [True] * (n + 1)
    flags[0] = flags[1] = False
    i = 2
    while i * i <= n:
        if flags[i]:
            for j in range(i * i, n + 1, i):
                flags[j] = False
        i += 1
    return [i for i in range(n + 1) if flags[i]]


@program(1, 7, 27)
def collatz(n):
    out = [n]
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        out.append(n)
    return out


@program(0, 1, 11)
def run_lengths(n):
    xs = [(i // 3) % 2 for i in range(n)]
    runs = []
    for x in xs:
        if runs and runs[-1][0] == x:
            runs[-1] = (x, runs[-1][1] + 1)
        else:
            runs.append((x, 1))
    return runs


@program(3, 20, 1)
def stack_machine(n):
    stack = []
    for i in range(n):
        if i % 3 < 2:
            stack.append(float(i))
        else:
            b = stack.pop()
            a = stack.pop()
            stack.append(a * b + 1.0)
    return stack


@program(1)
def pop_from_empty_stack(n):
    stack = [i for i in range(n)]
    stack.pop()
    return stack.pop()


@program(([1, 3, 5, 7], [2, 3, 4]), ([1], [2, 3]))
def merge(a, b):
    out = []
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i] <= b[j]:
            out.append(a[i])
            i += 1
        else:
            out.append(b[j])
            j += 1
    return out + a[i:] + b[j:]


@program(0, 1, 5)
def prefix_sums(n):
    sums = [0.0]
    for i in range(n):
        sums.append(sums[-1] + i * 0.5)
    return sums


@program([3, 1, 2, 5, 4, 1], [1], [2, 1])
def quicksort(xs):
    if len(xs) <= 1:
        return xs
    pivot = xs[0]
    return quicksort([x for x in xs[1:] if x < pivot]) + [pivot] + quicksort([x for x in xs[1:] if x >= pivot])


@program(3, 9)
def early_return(n):
    out = []
    for i in range(n):
        if i == 5:
            return out
        out.append(i)
    return [-1]


@program(3, 1)
def lengths_that_differ(n):
    a = [1, 2, 3]
    return a if n > 2 else [n]


class Event(NamedTuple):
    time: float
    kind: int


@program(4)
def records(n):
    events = []
    for i in range(n):
        events.append(Event(i * 0.5, i % 2))
    late = [e for e in events if e.time > 0.7]
    return late, [e.kind for e in events], events[0].time


@program(4)
def arrays_as_entries(n):
    xs = []
    for i in range(n):
        xs.append(np.ones(3) * i)
    total = np.zeros(3)
    for x in xs:
        total = total + x
    return xs, total, xs[-1]


@program(0, 1, 4)
def lists_of_lists(n):
    rows = [[i * j for j in range(i)] for i in range(n)]
    total = 0
    for row in rows:
        for x in row:
            total += x
    rows.append([n])
    rows.pop(0)
    return rows, total, [len(row) for row in rows]


@program(10, 1)
def breadth_first(n):
    queue, seen, order = [0], [False] * n, []
    seen[0] = True
    while queue:
        v = queue.pop(0)
        order.append(v)
        for w in [(v * 2 + 1) % n, (v * 3 + 2) % n]:
            if not seen[w]:
                seen[w] = True
                queue.append(w)
    return order


@program(5)
def a_list_for_each_turn(n):
    total = 0
    for i in range(n):
        xs = []
        for j in range(i):
            xs.append(i + j)
        ys = xs
        total += sum(ys) + len(xs)
    return total


@program(0, 3)
def rows_built_in_a_loop(n):
    rows = []
    for i in range(n):
        row = []
        for j in range(i):
            row.append(i * j)
        row.append(-1)
        rows.append(row)
    return rows


@program(4)
def branches_that_change_or_not(n):
    xs = [1.0]
    for i in range(n):
        if i == 2:
            xs = [x * 2.0 for x in xs]
        elif i == 3:
            xs.pop()
        else:
            xs.append(float(i))
    return xs


# Methods, operators and builtins.


@program(12)
def methods(n):
    xs = [i % 7 for i in range(n)]
    xs.reverse()
    xs.insert(2, 100)
    xs.insert(-1, 50)
    xs.insert(99, 7)
    xs.extend([5, 6])
    xs.extend(range(n - 10))
    xs += [1]
    xs.remove(3)
    last, second = xs.pop(), xs.pop(1)
    del xs[0]
    del xs[1:3]
    ys = xs.copy()
    ys.sort()
    zs = sorted(xs, reverse=True)
    xs[1] += 10
    return xs, ys, zs, last, second, xs.index(5), xs.count(5), 100 in xs, 77 in xs, 77 not in xs


@program(1, 5)
def reading(n):
    xs = [i * 0.5 for i in range(n)]
    ys = xs[:]
    ys.append(9.0)
    return (
        xs[0],
        xs[-1],
        xs[1:],
        xs[::-1],
        xs[1:-1:2],
        xs[-2:],
        len(xs),
        xs * 2,
        2 * xs,
        [*xs, 1.0],
        xs + ys,
        xs == ys,
        xs != ys,
    )


@program([3.0, -1.0, 2.0])
def builtins_on_lists(xs):
    return (
        sum(xs),
        min(xs),
        max(xs),
        any(xs),
        all(xs),
        sorted(xs),
        list(reversed(xs)),
        list(map(abs, xs)),
        bool(xs),
        not xs,
    )


@program(9)
def sorting_by_keys(n):
    pairs = [(i, (i * 7) % 5) for i in range(n)]
    return sorted(pairs, key=lambda pair: pair[1]), sorted(pairs, key=lambda pair: -pair[1] + 0.0, reverse=True)


@program([1.0, 2.0], [1.0, 2.0, 3.0, 4.0])
def iterating(xs):
    total = 0.0
    for i, (a, b) in enumerate(zip(xs, reversed(xs), strict=False)):
        total += a * b * i
    for a, b in zip([1.0, 2.0, 3.0], xs, strict=False):
        total += a * b
    return total, [a - b for a, b in zip(xs, xs[1:], strict=False)]


@program([1, 2], [1, 2, 3], [1])
def unpacking(xs):
    a, b = xs
    return a + b


@program([1, 2], [1, 2, 3, 4], [1])
def unpacking_with_a_star(xs):
    a, *middle, b = xs
    return a, middle, b


@program(([1, 2, 3], 2), ([1, 2, 3], -3), ([1, 2, 3], 3), ([1, 2, 3], -4))
def indexing(xs, i):
    return xs[i]


@program((3, 2), (3, 3), (3, -4))
def assigning(n, i):
    xs = [0] * n
    xs[i] = 5
    return xs


@program((3, 1), (3, 7))
def popping_at(n, i):
    xs = [j for j in range(n)]
    return xs.pop(i), xs


@program((3, 1), (3, 7))
def index_of_entry(n, x):
    return [j for j in range(n)].index(x)


@program((3, 1), (3, 7))
def removing(n, x):
    xs = [j for j in range(n)]
    xs.remove(x)
    return xs


@program(0, 3)
def maximum(n):
    return max([j for j in range(n)])


@program([1, 2, 2, 9])
def histogram(xs):
    counts = [0] * 10
    for x in xs:
        counts[x] += 1
    return counts


def long_displays():
    xs = [0] * 100
    for i in range(100):
        xs[i] = i * i
    return xs, np.array([1.0] * 50).sum(), list(range(80))[-1], [i for i in range(70)][3]


CASES.append(pytest.param(long_displays, (), id="long_displays"))


@program([1.0, 2.0, 4.0])
def lists_as_arrays(xs):
    return np.sum(np.array(xs)), np.array(xs) * 2.0, np.mean(xs)


@program([1, 2, 3])
def spread_as_arguments(xs):
    return max(*xs)


@program(([True, False],), ([False],))
def booleans(xs):
    return [not x for x in xs], any(xs), all(xs)


@program(3)
def truth_of_lists_in_conditions(n):
    xs = [i for i in range(n)]
    ys = xs[n:]
    return 1 if xs or ys else 2, 5 if xs and not ys else 6, 7 if not (ys or n > 5) else 8


def test_prints(executor, capsys):
    def f(n):
        xs = [i for i in range(n)]
        print(xs, f"{xs}")
        return len(xs)

    assert relay(executor=executor)(f)(3) == 3
    assert capsys.readouterr().out == "[0, 1, 2] [0, 1, 2]\n"


# One compilation.


def test_one_compilation_serves_every_length(executor):
    @relay(executor=executor)
    def f(xs):
        return sum([x * x for x in xs])

    assert [f([1.0] * n) for n in (1, 2, 3, 1000)] == [1.0, 2.0, 3.0, 1000.0]
    assert f.cache_info().misses == 1
    assert f([1, 2]) == 5 and f.cache_info().misses == 2


def test_where_lengths_must_be_known_each_has_a_compilation(executor):
    @relay(executor=executor)
    def f(xs):
        return max(*xs)

    assert [f([1, 2, 3]), f([5, 1]), f([1, 2, 4])] == [3, 5, 4]
    assert f.cache_info().misses == 2


def test_an_annotation_tells_the_type_of_an_empty_list(executor):
    @relay(executor=executor)
    def f(xs: list[float]):
        total = 0.0
        for x in xs:
            total += x
        return total, xs

    assert f([]) == (0.0, []) and f([1.5, 2.0]) == (3.5, [1.5, 2.0])
    assert f.cache_info().misses == 1


def test_integers_beyond_64_bits_are_refused(executor):
    with pytest.raises(OverflowError, match="does not fit into 64 bits"):
        relay(executor=executor)(quicksort)([1, 2**70])


def test_gradient_of_a_list_argument(executor):
    def f(xs):
        total = 0.0
        for i, x in enumerate(xs):
            total += x * x * i
        return total

    g = relay(executor=executor)(grad(f))
    assert g([1.0, 2.0, 3.0]) == [0.0, 4.0, 12.0] and g([1.0]) == [0.0]
    assert g.cache_info().misses == 1


def test_memory_of_lists_is_given_back():
    from myia_relay.backend.native import blocks, lists

    @relay
    def f(n, bad):
        xs = []
        for i in range(n):
            ys = [i, i]
            ys.append(i)
            xs.append(ys)
        while len(xs) > 1:
            xs.pop()
        if bad:
            raise ValueError("no")
        return xs

    assert f(1000, False) == [[0, 0, 0]]
    run = next(iter(f._programs.values())).run
    head = run.entry.signature.list_head
    with pytest.raises(ValueError, match="no"):
        f(1000, True)
    area = run.entry.free[-1]
    count, address = 0, area[2][head]
    while address:
        count, address = count + 1, lists.word(address, blocks.NEXT)
    assert count < 5, "lists that nobody looks at any more are kept"
    assert f(3, False) == [[0, 0, 0]] and area[2][head] == 0


# Refused: what would be visible elsewhere, and what has no type.


def alias(n):
    xs = [0]
    ys = xs if n > 1 else [n]
    for i in range(n):
        xs.append(i)
    return ys


def change_while_iterating(n):
    xs = [i for i in range(n)]
    for x in xs:
        if x == 2:
            xs.append(9)
    return xs


def read_and_changed_in_one_expression(n):
    xs = [i for i in range(n)]
    return xs, xs.pop()


def returned_argument(n):
    a = [i for i in range(n)]
    b = same(a)
    b.append(3)
    return len(a)


def same(x):
    return x


def returned_static_list(n):
    a = [1, 2]
    b = same(a)
    b.append(n)
    return a


def returned_on_one_way(n):
    a = [1, 2]
    b = first_or([3], a, n > 0)
    for i in range(n):
        b.append(i)
    return a


def first_or(xs, ys, condition):
    if condition:
        return ys
    return xs


def returned_in_a_tuple(n):
    a = [1, 2]
    b, _ = same((a, n))
    if n > 2:
        b.append(n)
    return a


def row_kept_for_the_next_turn(n):
    rows = []
    row = [0]
    for i in range(n):
        row.append(i)
        rows.append(row)
    return rows


def row_of_the_turn_before(n):
    rows = []
    last = [0]
    for i in range(n):
        last.append(i)
        row = [i]
        rows.append(row)
        last = row
    return rows


def held_in_a_tuple(n):
    xs = [i for i in range(n)]
    pair = (xs, 1)
    xs.append(1)
    return pair


def captured(n):
    xs = [i for i in range(n)]

    def count():
        return len(xs)

    xs.append(1)
    return count()


def of_two_types(n):
    xs = [1]
    for i in range(n):
        xs.append(i * 0.5)
    return xs


def the_same_row(n):
    return [[0] * n] * n


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (alias, "'ys' may be, or hold, the same object as 'xs'"),
        (change_while_iterating, "the loop around runs over 'xs'"),
        (read_and_changed_in_one_expression, "two statements"),
        (returned_argument, "returns its own argument"),
        (returned_static_list, "returns its own argument"),
        (returned_on_one_way, "returns its own argument"),
        (returned_in_a_tuple, "returns its own argument"),
        (row_kept_for_the_next_turn, "'rows' may be, or hold"),
        (row_of_the_turn_before, "'rows' may be, or hold"),
        (held_in_a_tuple, "'pair' may be, or hold"),
        (captured, "captures 'xs'"),
        (of_two_types, "list of|one type|list\\[int\\]"),
        (the_same_row, "the same list"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_refused(function, message, executor):
    with pytest.raises(CompileError, match=message):
        relay(executor=executor)(function)(4)


def test_an_argument_that_came_back_is_not_changed(executor):
    @relay(executor=executor)
    def f(xs):
        ys = same(xs)
        ys.append(1.0)
        return xs

    with pytest.raises(CompileError, match="returns its own argument"):
        f([1.0])


def test_argument_is_not_changed(executor):
    @relay(executor=executor)
    def f(xs):
        ys = list(xs)
        ys.append(1.0)
        zs = xs.copy()
        zs[0] = 5.0
        ws = xs[:]
        ws.pop()
        return ys, zs, ws, xs

    given = [1.0, 2.0]
    assert f(given) == ([1.0, 2.0, 1.0], [5.0, 2.0], [1.0], [1.0, 2.0]) and given == [1.0, 2.0]


# Derivatives.


def collected(x, n):
    xs = []
    for i in range(n):
        xs.append(x * i)
        if i % 3 == 2:
            xs.append(xs[-1] * xs[0] + x)
    total = 0.0
    for v in xs:
        total += v * v
    return total


def read_in_branches_and_loops(x, n):
    xs = [x * i for i in range(n)]
    total = 0.0
    for i in range(n):
        if i % 2 == 0:
            total += xs[i] * xs[i]
        else:
            for j in range(i):
                total += xs[j] * 0.1
    return total


def pushed_and_popped(x, n):
    stack = [x]
    for i in range(n):
        stack.append(stack[-1] * x + i)
        if i % 2:
            b = stack.pop()
            a = stack.pop()
            stack.append(a * b)
    return sum(stack, 0.0)


def every_operation(x, n):
    xs = [x] * n
    for i in range(n):
        xs[i] = xs[i - 1] * x + xs[i]
    ys = xs[1:] + xs[::-1]
    ys.insert(1, x * 2.0)
    del ys[2]
    ys.reverse()
    ys.extend([x])
    total = 0.0
    for i, y in enumerate(ys * 2):
        total += y * i
    return total + max(ys)


def of_pairs(x, n):
    total = 0.0
    for v, k in [(x * i, i) for i in range(n)]:
        total += v * v * k
    return total


def of_arrays(x, n):
    xs = [x * np.ones(2) * i for i in range(n)]
    total = np.zeros(2)
    for v in xs:
        total = total + v * v
    return np.sum(total)


def in_order(x, n):
    total = 0.0
    for i, v in enumerate(sorted([x * ((i * 7) % 5) for i in range(n)])):
        total += v * i
    return total


def until(x, n):
    xs = [x]
    while len(xs) < n:
        xs.append(xs[-1] * 1.1)
    return sum([v * v for v in xs], 0.0)


FUNCTIONS = [
    collected,
    read_in_branches_and_loops,
    pushed_and_popped,
    every_operation,
    of_pairs,
    of_arrays,
    in_order,
    until,
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_derivatives(function, executor):
    x, n, h = 0.7, 6, 1e-5
    slope = (function(x + h, n) - function(x - h, n)) / (2 * h)
    curvature = (function(x + 1e-3, n) - 2 * function(x, n) + function(x - 1e-3, n)) / 1e-6
    reverse = relay(executor=executor)(grad(function))(x, n)
    forward = relay(executor=executor)(lambda x, n: jvp(lambda y: function(y, n), (x,), (1.0,))[1])(x, n)
    second = relay(executor=executor)(grad(grad(function)))(x, n)
    assert reverse == pytest.approx(slope, rel=1e-6) and forward == pytest.approx(reverse, rel=1e-12)
    assert second == pytest.approx(curvature, rel=1e-3, abs=1e-4)


def test_backward_reads_in_linear_memory_and_time():
    """The sum of a list's cotangents is no new list in every iteration: memory does not grow with the square of the length."""

    def f(x, n):
        xs = [x * i for i in range(n)]
        total = 0.0
        for i in range(n):
            if i % 2 == 0:
                total += xs[i] * xs[i]
        return total

    text = str(relay(grad(f)).ir(1.0, 5))
    assert text.count("list_accumulate") == 1 and "list_at" in text


def test_vmap_of_lists_that_differ():
    def f(x):
        xs = []
        for i in range(3):
            if x > i:
                xs.append(x)
        return sum(xs, 0.0)

    np.testing.assert_array_equal(relay(vmap(f))(np.array([1.0, 2.0, 2.5])), [1.0, 4.0, 7.5])


def test_lists_of_run_time_length_are_no_results_of_vmap():
    with pytest.raises(CompileError, match="known at run time only"):
        relay(vmap(lambda x, n: [x for _ in range(n)], in_axes=(0, None)))(np.ones(3), 4)
