"""Changes in place of what has several names, or is held by something: refused where CPython would show them, and only there."""
# ruff: noqa: C416, C417

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy import asarray as as_array

from myia_relay import CompileError, grad, relay
from tests.property.oracle import function_of


class Named(NamedTuple):
    held: Any
    k: int = 0

    def itself(self):
        return self


@dataclass(frozen=True)
class Frozen:
    held: Any
    k: int = 0


def ident(x):
    return x


def named(x):
    return Named(x)


def pair(x, y):
    return (x, y)


def rest_of_second(x, y):
    return y[1:]


def copied(xs):
    return [*xs]


def doubled(x):
    return x * 2.0


# Each of these changes an object that it also returns by another way.


def in_a_named_tuple(n):
    xs = [1, 2]
    r = Named(xs)
    xs.append(n)
    return r


def in_a_dataclass(n):
    xs = [i for i in range(n)]
    r = Frozen(xs)
    xs.append(n)
    return r


def in_a_record_that_a_function_makes(n):
    xs = [1, 2]
    r = named(xs)
    xs.append(n)
    return r


def in_a_record_replaced(n):
    xs = [1, 2]
    s = replace(Frozen(xs), k=2)
    ys = s.held
    ys.append(n)
    return xs


def in_a_record_by_a_method(n):
    xs = [1.0, 2.0]
    ys = Named(xs)._replace(k=3).itself().held
    ys.append(2.0)
    return xs


def in_a_record_of_one_branch(n):
    xs = [1, 2]
    if n > 1:
        r = Named(xs)
    else:
        r = Named([1, 2])
    xs.append(1)
    return r


def in_a_record_of_a_turn(n):
    xs = [1, 2]
    r = Named([1, 2])
    for _ in range(n):
        r = Named(xs)
    xs.append(1)
    return r


def in_a_loop_after(n):
    xs = [1, 2]
    r = Named(xs)
    for i in range(n):
        xs.append(i)
    return r


def in_a_sum_of_tuples(n):
    x = np.zeros(3)
    t = (x, 1) + (n,)
    x[0] = 1
    return t


def in_a_tuple_that_a_function_makes(n):
    x = np.zeros(3)
    t = pair(x, n)
    x[0] = 1
    return t


def what_a_function_returns(n):
    x = np.zeros(3)
    y = ident(x)
    x[0] = 1
    return y


def a_view_that_a_function_returns(n):
    x, y = np.zeros(3), np.ones(3)
    z = rest_of_second(x, y)
    y[1] = n
    return z


def what_numpy_hands_on_by_another_name(n):
    x = np.zeros(3)
    y = as_array(x)
    y[0] = n
    return x


def transposed_by_einsum(n):
    x = np.zeros((2, 2))
    y = np.einsum("ij->ji", x)
    y[0, 1] = n
    return x


def cast_without_a_copy(n):
    x = np.zeros(3) + n
    y = x.astype(np.float64, copy=False)
    y[0] = 8
    return x


def in_a_dict(n):
    xs = [1]
    d = {"a": xs}
    ys = d.get("a")
    ys.append(n)
    return xs


def in_a_dict_with_others(n):
    x = np.zeros(3)
    d = {"x": x, "n": 1}
    e = {**d, "k": 2}
    y = e["x"]
    y[0] = n
    return x


def by_default(n):
    xs = [1, 2]
    f = lambda k=xs: k  # noqa: E731
    xs.append(n)
    return f()


def in_a_concatenation(n):
    xs = [[1], [2]]
    ys = xs + [[3]]
    row = ys[0]
    row.append(n)
    return xs


def in_a_run_time_concatenation(n):
    xs = [[0] for _ in range(n)]
    ys = xs + xs
    row = ys[0]
    row.append(1)
    return xs


def in_a_copy(n):
    xs = [[1], [2]]
    ys = xs.copy()
    row = ys[0]
    row.append(n)
    return xs


def in_a_sum_of_lists(n):
    xs = [[1], [2]]
    ys = sum([xs, xs], [])
    row = ys[0]
    row.append(n)
    return xs


def in_a_comprehension(n):
    xs = [[1], [2]]
    ys = [row for row in xs if row[0] < 2]
    row = ys[0]
    row.append(n)
    return xs


def in_a_list_extended(n):
    xs = [[1], [2]]
    ys = [[3]]
    ys.extend(xs)
    row = ys[1]
    row.append(n)
    return xs


def in_a_list_added_to(n):
    xs = [[1], [2]]
    ys = [[3]]
    ys += xs
    row = ys[1]
    row.append(n)
    return xs


def the_largest(n):
    xs = [[i] for i in range(n)]
    row = max(xs)
    row.append(1)
    return xs


def the_least_by_a_key(n):
    xs = [[i] for i in range(n)]
    row = min(xs, key=lambda r: -r[0])
    row.append(1)
    return xs


def reduced(n):
    xs = [1]
    ys = functools.reduce(lambda a, b: a, [xs, [2]])
    ys.append(n)
    return xs


def rows_of_a_matrix(n):
    x = np.zeros((2, 3))
    rows = [row for row in x]
    x[0, 0] = n
    return rows


def mapped_rows_of_a_matrix(n):
    x = np.zeros((2, 3))
    rows = list(map(lambda r: r[1:], x))
    x[0, 1] = n
    return rows


def entry_with_a_name(n):
    xs = [[1], [2]]
    row = xs[0]
    xs[0] += [n]
    return row


def entry_that_had_a_name(n):
    row = [1]
    xs = [row]
    xs[0] += [n]
    return row


def array_in_a_list(n):
    x = np.zeros(3)
    xs = [x]
    xs[0] += 1
    return x


def array_in_a_dict(n):
    x = np.zeros(3)
    d = {"w": x}
    d["w"] += 1
    return x


def array_in_a_copy_of_a_dict(n):
    d = {"w": np.zeros(3)}
    e = dict(d)
    e["w"] += 1
    return d


def array_in_a_dict_comprehension(n):
    d = {"w": np.zeros(3)}
    e = {k: v for k, v in d.items()}
    e["w"] += 1
    return d


def entry_that_is_there_twice(n):
    xs = [np.zeros(3)] * 2
    xs[0] += 1
    return xs


def entry_that_was_put_in_twice(n):
    row = [0]
    xs = []
    for _ in range(n):
        xs.append(row)
    xs[0] += [1]
    return xs


def entry_changed_by_a_method(n):
    xs = [[1], [2]]
    row = xs[0] if n > 1 else xs[1]
    xs[0].append(n)
    return row


def entry_of_a_copy(n):
    xs = [[1], [2]]
    ys = xs.copy()
    xs[0][0] = n
    return ys


def one_row_for_all(n):
    row = [0]
    xs = [row for _ in range(n)]
    xs[0][0] = 5
    return xs


def list_extended_by_itself(n):
    xs = [[4], [5]]
    xs.extend(xs)
    xs[0] += [n]
    return xs


def a_run_time_list_that_a_function_returns(n):
    xs = [i for i in range(n)]
    ys = ident(xs)
    ys.append(1)
    return xs


def a_run_time_list_in_what_a_function_returns(n):
    xs = [i for i in range(n)]
    _, ys = pair(n, xs)
    ys.append(1)
    return xs


def a_record_of_a_run_time_list(n):
    xs = [i for i in range(n)]
    ys = named(xs).held
    ys[0] = 7
    return xs


SEEN = [
    f for name, f in list(globals().items()) if getattr(f, "__code__", None) and f.__code__.co_varnames[:1] == ("n",)
]


@pytest.mark.parametrize("function", SEEN, ids=lambda f: f.__name__)
def test_a_change_that_cpython_would_show_is_refused(function):
    with pytest.raises(CompileError, match="in place") as refusal:
        relay(function)(3)
    assert function.__name__ in str(refusal.value)  # where it is written


def params_of_the_caller(params):
    own = dict(params)
    own["w"] -= 1.0
    return own


def params_of_the_caller_in_a_list(params):
    own = list(params.values())
    own[0] -= 1.0
    return own


@pytest.mark.parametrize("function", [params_of_the_caller, params_of_the_caller_in_a_list])
def test_arrays_of_the_caller_are_not_changed_through_a_copy_of_what_holds_them(function):
    given = {"w": np.ones(2)}
    with pytest.raises(CompileError, match="parameter 'params', which belongs to the caller"):
        relay(function)(given)
    assert given["w"].tolist() == [1.0, 1.0]


# Nothing else holds what these change.


def copied_by_a_function(n):
    xs = [1, 2]
    ys = copied(xs)
    ys.append(n)
    return xs, ys


def doubled_by_a_function(n):
    x = np.ones(3)
    y = doubled(x)
    x[0] = n
    y[1] = 7
    return x, y


def the_other_argument(n):
    x, y = np.zeros(3) + n, np.ones(3) * n
    z = rest_of_second(x, y)
    x[0] = 7
    return x, z


def before_it_is_held(n):
    rows = []
    for i in range(n):
        row = [i]
        row.append(1)
        rows.append(row)
    return rows


def views_of_nothing_else(n):
    x = np.zeros(4) + n
    y = np.reshape(x, (2, 2))
    y[0, 1] = 9
    a, _ = np.split(np.ones(4) * n, 2)
    a[0] = 7
    return y, a


def no_longer_held(n):
    xs = [1, 2]
    r = Named(xs)
    k = len(r.held)
    xs.append(k + n)
    return xs


def held_after_a_copy(n):
    xs = [1, 2]
    r = Named(xs.copy())
    xs.append(n)
    return r, xs


def entries_of_their_own(n):
    xs = [[1], [2]]
    d = {"w": np.zeros(3), "v": np.zeros(3)}
    for i in range(2):
        xs[i] += [n]
        d["w"] += i
    counts = [0] * n
    counts[1] += 2
    return xs, d, counts


def a_dict_copied_then_given_another_entry(n):
    d = {"w": np.zeros(3)}
    e = dict(d)
    e["w"] = e["w"] + n
    return d, e


def lists_of_lists(n):
    xs = [[0], [1]]
    xs[0].append(n)
    xs[1].extend([n, n])
    k = xs[1].pop()
    xs[0].insert(0, 9)
    xs[0][1] += k
    xs[1].sort()
    d = {"a": [1], "w": np.zeros(3)}
    d["a"].append(n)
    d["w"][1] = n
    return xs, d


def run_time_lists_of_lists(n):
    dp = [[0] * (n + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            dp[i][j] = max(dp[i - 1][j], dp[i][j - 1]) + (i * j) % 3
        dp[i].append(i)
        last = dp[i].pop()
        dp[i][0] -= last
    xs = [np.zeros(3) for _ in range(n)]
    for i in range(n):
        xs[i][1] = i
        xs[i] += 1
    return dp, xs


def lists_of_lists_of_lists(n):
    xs = [[[0] * n for _ in range(n)] for _ in range(n)]
    for i in range(n):
        xs[i][n - 1 - i][1] = i
        xs[i][0].append(i)
    return xs


def filled_by_appending(n):
    xs = [[], []]
    xs[0].append(n)
    for i in range(n):
        xs[1].append(i * 0.5)
    return xs


OWN = [
    lists_of_lists,
    run_time_lists_of_lists,
    lists_of_lists_of_lists,
    filled_by_appending,
    copied_by_a_function,
    doubled_by_a_function,
    the_other_argument,
    before_it_is_held,
    views_of_nothing_else,
    no_longer_held,
    held_after_a_copy,
    entries_of_their_own,
    a_dict_copied_then_given_another_entry,
]


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("function", OWN, ids=lambda f: f.__name__)
@pytest.mark.sampled(5)
def test_a_change_that_nothing_shows(function, executor):
    assert repr(relay(function, executor=executor)(3)) == repr(function(3))


def of_rows(x, n):
    m = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            m[i][j] = x * i + j
            m[i][j] *= x
    m[1].append(x * x)
    total = 0.0
    for row in m:
        for v in row:
            total += v * v
    return total + m[0][1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_gradient_through_lists_of_lists(executor):
    assert relay(grad(of_rows), executor=executor)(1.5, 3) == pytest.approx(383.5)
    assert relay(of_rows, executor=executor)(1.5, 3) == of_rows(1.5, 3)


@pytest.mark.parametrize("line", [
    "xs[0] += xs.pop()", "xs += [xs.pop()]", "xs[0] += (xs := [5])[0]",
    "rows[0][0] -= rows[0].pop()", "t = rows[0], rows[0].pop()", "t = rows[0] + [rows[0].pop()]", "rows[0].append(rows.pop()[0])",
])  # fmt: skip
def test_a_change_within_what_reads_it_is_refused(line):
    """CPython reads the object before and after; compiled code has one value or the other."""
    text = f"def program(n):\n    xs, rows = [1, 2, n], [[1, 2], [n]]\n    {line}\n    return xs, rows\n"
    with pytest.raises(CompileError, match="depends on the order"):
        relay(function_of(text, f"<order {line}>"))(3)
