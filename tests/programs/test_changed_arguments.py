"""Functions that change their parameters in place: the caller sees it, as in CPython, or the call is refused."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys

import numpy as np
import pytest

from myia_relay import CompileError, ParseError, grad, relay, vmap
from tests.programs.cases import Cases, agree

case = Cases()
NUMBERS = [5, 2, 9, 1, 7, 3, 8]
MATRIX = np.array([[2.0, 1.0, -1.0], [-3.0, -1.0, 2.0], [-2.0, 1.0, 2.0]])
RIGHT = np.array([8.0, -11.0, -3.0])
GRAPH = [[1, 2], [3], [3], [4], []]


def swap(a, i, j):
    a[i], a[j] = a[j], a[i]


def sift_down(a, n, i):
    while True:
        left, m = 2 * i + 1, i
        if left < n and a[left] > a[m]:
            m = left
        if left + 1 < n and a[left + 1] > a[m]:
            m = left + 1
        if m == i:
            return
        swap(a, i, m)
        i = m


def heap_sort(a):
    for i in range(len(a) // 2 - 1, -1, -1):
        sift_down(a, len(a), i)
    for end in range(len(a) - 1, 0, -1):
        swap(a, 0, end)
        sift_down(a, end, 0)


@case((NUMBERS,), (np.array([3.0, 1.0, 2.0]),))
def heap(xs):
    ys = xs.copy()
    heap_sort(ys)
    return ys


@case((3,))
def heap_of_known_length(x):
    ys = [x, 4, 1, 2]
    heap_sort(ys)
    return ys


def partition(a, lo, hi):
    i = lo
    for j in range(lo, hi):
        if a[j] < a[hi]:
            swap(a, i, j)
            i += 1
    swap(a, i, hi)
    return i


def quicksort(a, lo, hi):
    if lo < hi:
        k = partition(a, lo, hi)
        quicksort(a, lo, k - 1)
        quicksort(a, k + 1, hi)


@case((NUMBERS,), (np.array([3.0, 1.0, 2.0]),))
def recursion(xs):
    ys = xs.copy()
    quicksort(ys, 0, len(ys) - 1)
    return ys


def merge_sort(a, tmp, lo, hi):
    if hi - lo < 2:
        return
    mid = (lo + hi) // 2
    merge_sort(a, tmp, lo, mid)
    merge_sort(a, tmp, mid, hi)
    i, j = lo, mid
    for k in range(lo, hi):
        if i < mid and (j >= hi or a[i] <= a[j]):
            tmp[k] = a[i]
            i += 1
        else:
            tmp[k] = a[j]
            j += 1
    for k in range(lo, hi):
        a[k] = tmp[k]


@case((NUMBERS,))
def two_parameters(xs):
    ys, tmp = xs.copy(), [0] * len(xs)
    merge_sort(ys, tmp, 0, len(ys))
    return ys


def find(parent, x):
    if parent[x] != x:
        parent[x] = find(parent, parent[x])
    return parent[x]


@case((5, [(0, 1), (3, 4), (1, 4)]))
def union_find(n, edges):
    parent = list(range(n))
    for a, b in edges:
        ra, rb = find(parent, a), find(parent, b)
        parent[ra] = rb
    return parent


def visit(graph, v, seen, out):
    seen[v] = True
    out.append(v)
    for w in graph[v]:
        if not seen[w]:
            visit(graph, w, seen, out)


@case((GRAPH,))
def search(graph):
    seen, out = [False] * len(graph), []
    visit(graph, 0, seen, out)
    return out


def fib(n, memo):
    if n < 2:
        return n
    if memo[n] < 0:
        memo[n] = fib(n - 1, memo) + fib(n - 2, memo)
    return memo[n]


@case((20,))
def two_calls_in_one_expression(n):
    return fib(n, [-1] * (n + 1))


def permutations(a, k, out):
    if k == len(a):
        out.append(a.copy())
        return
    for i in range(k, len(a)):
        swap(a, k, i)
        permutations(a, k + 1, out)
        swap(a, k, i)


@case((3,))
def lists_in_a_list(n):
    a, out = list(range(n)), []
    permutations(a, 0, out)
    return out


def fill(grid, r, c, new):
    if r < 0 or c < 0 or r >= len(grid) or c >= len(grid[0]) or grid[r][c] != 0:
        return 0
    grid[r][c] = new
    return 1 + fill(grid, r + 1, c, new) + fill(grid, r, c + 1, new) + fill(grid, r - 1, c, new)


@case((4,))
def entries(n):
    grid = [[1 if i * j % 3 == 1 else 0 for j in range(n)] for i in range(n)]
    return fill(grid, 0, 0, 5), grid


def zero(row):
    for j in range(len(row)):
        row[j] = 0


@case((3,))
def an_entry_of_a_list(n):
    rows = [[i + j for j in range(n)] for i in range(n)]
    zero(rows[1])
    return rows


@case((MATRIX,))
def a_row_of_an_array(x):
    y = x.copy()
    zero(y[1])
    return y


def eliminate(a, b):
    for k in range(len(b)):
        for i in range(k + 1, len(b)):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
            b[i] -= f * b[k]


def substitute(a, b, x):
    for i in range(len(b) - 1, -1, -1):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]


@case((MATRIX, RIGHT))
def solve(matrix, right):
    a, b, x = matrix.copy(), right.copy(), np.zeros(3)
    eliminate(a, b)
    substitute(a, b, x)
    return x


def step(x, v, dt):
    v -= dt * x
    x += dt * v


@case((np.ones(2), np.zeros(2)), (1.0, 2.0))
def augmented(x, v):
    y, w = x + 0.0, v + 0.0
    for _ in range(3):
        step(y, w, 0.1)
    return y, w


def positive(a):
    a[a < 0] = 0


@case((RIGHT,))
def a_mask(x):
    y = x.copy()
    positive(y)
    return y, x


def train(params, gradient):
    params["w"] -= 0.1 * gradient
    params["steps"] += 1


@case((np.ones(2),))
def a_dict(g):
    params = {"w": np.zeros(2), "steps": 0}
    for _ in range(3):
        train(params, g)
    return params


def taken(stack, *, count):
    for _ in range(count):
        stack.pop()
    return stack[-1]


@case((NUMBERS,))
def a_keyword(xs):
    ys = xs.copy()
    return taken(count=2, stack=ys), ys


@case((NUMBERS,))
def a_temporary(xs):
    return taken(xs[:3], count=1), xs


@case((4,))
def an_inner_function(n):
    def put(a, i):
        a[i] = i * i

    ys = [0] * n
    for i in range(n):
        put(ys, i)
    return ys


def first_zero(a):
    for i in range(len(a)):
        if a[i] == 0:
            a[i] = -1
            return i
    return -1


@case(([3, 0, 1],), ([1],))
def a_return_in_a_loop(xs):
    ys = xs.copy()
    return first_zero(ys), ys


def checked(a, i):
    a[0] = 1.0
    if i > 1:
        raise ValueError("too large")


@case((0,), (2,))
def an_exception(i):
    a = np.zeros(2)
    checked(a, i)
    return a


def pushed(heap, x):
    heap.append(x)
    return len(heap)


@case((3,))
def in_a_condition(n):
    heap = []
    while pushed(heap, n) < 5 and n:
        n -= 1
    return heap


def deeper(xs, n):
    if n > 0:
        xs[n] = xs[n - 1] + n
        deeper(xs, n - 1)
        deeper(xs, n - 2)


def grown(xs, n):
    if n > 0:
        xs.append(n)
        grown(xs, n - 1)
        if len(xs) > 8:
            xs.pop()
    return len(xs)


@case((6,), (0,))
def lists_in_recursions(n):
    xs = list(range(n + 1))
    before = xs.copy()
    deeper(xs, n)
    first = xs.copy()
    deeper(xs, n // 2)
    many = grown(xs, n)
    one = grown(xs, 1)
    return before, first, xs, many, one


def alternate(xs, ys, n):
    if n > 0:
        ys.append(n)
        xs[0] += ys[-1]
        alternate(ys, xs, n - 1)


@case((5,), (0,))
def lists_that_change_places(n):
    xs, ys = [1], [2, n]
    zs = ys.copy()
    alternate(xs, ys, n)
    return xs, ys, zs


@case.each
@pytest.mark.sampled(8)
def test_the_caller_sees_the_change(function, args, executor):
    agree(function, args, executor)


def test_derivatives_and_batches():
    def loss(a, b):
        return (solve(a, b) ** 2).sum()

    slope, small = np.zeros((3, 3)), 1e-6
    for i in range(3):
        for j in range(3):
            move = np.zeros((3, 3))
            move[i, j] = small
            slope[i, j] = (loss(MATRIX + move, RIGHT) - loss(MATRIX - move, RIGHT)) / (2 * small)
    np.testing.assert_allclose(grad(loss)(MATRIX, RIGHT), slope, rtol=1e-6)
    rights = np.stack([RIGHT, 2 * RIGHT])
    wanted = np.stack([solve(MATRIX, b) for b in rights])
    np.testing.assert_allclose(vmap(solve, in_axes=(None, 0))(MATRIX, rights), wanted, rtol=1e-12)


def put(a, v):
    a[0] = v
    return a


def both(a, b):
    a[0] = b[0] + 1
    return b[0]


def keep(out, a):
    out.append(a)


def same_rows(rows):
    rows[0] = rows[1]


def same_entries(rows):
    rows[0][0] = rows[0][1]
    rows[0][0].append(7)


def collect(x, into=[]):  # noqa: B006
    into.append(x)
    return len(into)


def an_alias(n):
    xs = [n, 2]
    ys = xs if n > 0 else [n]
    put(xs, 5)
    return ys


def a_result_that_is_the_argument(n):
    xs = [n, 2]
    ys = put(xs, 5)
    put(xs, 6)
    return ys


def an_array_that_is_the_argument(n):
    x = np.zeros(2) + n
    y = put(x, 5.0)
    put(x, 6.0)
    return y


def one_list_twice(n):
    xs = [n, 2]
    return both(xs, xs)


def a_list_that_was_kept(n):
    xs, out = [n, 2], [[0]]
    keep(out, xs)
    put(xs, 7)
    return out


def rows_that_became_one(n):
    rows = [[n, 1], [2, 3]]
    same_rows(rows)
    put(rows[0], 7)
    return rows


def entries_that_became_one(n):
    rows = [[[n], [1]]]
    same_entries(rows)
    return rows


def a_default(n):
    return collect(n)


def in_a_comprehension(n):
    xs = [n, 2]
    return [put(xs, i)[0] for i in range(3)], xs


def read_in_the_same_expression(n):
    xs = [n, 2]
    return [xs, put(xs, 5)]


def by_another_function(n):
    xs = [n, 2]
    return sorted([xs], key=lambda v: put(v, 1)[0]), xs


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (an_alias, "'put' changes 'xs' in place: 'ys' may be, or hold, the same object"),
        (a_result_that_is_the_argument, "'ys' may be, or hold, the same object as 'xs'"),
        (an_array_that_is_the_argument, "'y' may be, or hold, the same object as 'x'"),
        (one_list_twice, "'xs' may be, or hold, the same object as 'xs'"),
        (a_list_that_was_kept, "'out' may be, or hold, the same object as 'xs'"),
        (rows_that_became_one, "may be, or hold, the same object"),
        (entries_that_became_one, "the same object"),
        (a_default, "'into' is the parameter 'into'"),
        (in_a_comprehension, "'a' is the parameter 'a'"),
        (read_in_the_same_expression, "two statements"),
        (by_another_function, "belongs to the caller"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_refused(function, message):
    with pytest.raises(CompileError, match=message):
        relay(function)(1)


@pytest.mark.parametrize("transform", [grad, vmap])
def test_an_argument_of_a_transformed_program(transform):
    def changes(x):
        x[0] = 1.0
        return x.sum()

    with pytest.raises(ParseError, match="'x' is the parameter 'x', which belongs to the caller"):
        transform(changes)(MATRIX)


def item_of_parameter(x):
    x[0] = 1
    return x


def append_to_parameter(xs):
    xs.append(1)
    return xs


@pytest.mark.parametrize(
    ("function", "advice"), [(item_of_parameter, r"relay\.at\(x\)"), (append_to_parameter, r"\[\*xs, value\]")]
)
def test_the_place_and_the_advice(function, advice):
    with pytest.raises(ParseError, match=advice) as caught:
        relay(lambda xs: sorted([xs], key=function))([1, 2])
    assert caught.value.loc.line == function.__code__.co_firstlineno + 1


def test_a_function_that_is_defined_again():
    space: dict = {}

    def define(body: str) -> None:
        exec(compile(source := f"def helper(a):\n    {body}\n", name := f"<helper {body}>", "exec"), space)
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)

    define("return a[0]")
    source = "def use(x):\n    y = x.copy()\n    r = helper(y)\n    return y, r\n"
    exec(compile(source, "<use>", "exec"), space)
    linecache.cache["<use>"] = (len(source), None, source.splitlines(True), "<use>")
    use = relay(space["use"])
    assert use([1, 2]) == ([1, 2], 1)
    define("a[0] = 5; return a[0]")
    assert use([1, 2]) == ([5, 2], 5)
    define("return a[1]")
    assert use([1, 2]) == ([1, 2], 2)


def test_a_recursion_changes_an_array_where_it_is():
    def ordered(x):
        y = x.copy()
        quicksort(y, 0, len(y) - 1)
        return y

    text = str(relay(ordered).ir(np.zeros(5)))
    body = text[text.index("\nquicksort(") :].partition("\n\n")[0]
    # The loop that the last call becomes returns the array that it carries, not a copy beside it.
    assert body.count("float64[5]") <= 4, body
    assert "undef" not in body


PROGRAM = """
from myia_relay import relay
from tests.programs.test_changed_arguments import quicksort

@relay
def ordered(n):
    xs = [(k * 7919) % n for k in range(n)]
    quicksort(xs, 0, len(xs) - 1)
    return xs

assert ordered(1_000_000) == list(range(1_000_000))
"""


def test_a_recursion_does_not_copy_its_list_at_each_call(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(
        [sys.executable, file], check=True, timeout=150, env=environment
    )  # else it takes more than 5 minutes


def assign_sums(rows):
    for i in range(len(rows)):
        if rows[i]["x"] > 1.0:
            rows[i]["x"] = sum(rows[i - 1]["row"])


def assign_numbers(rows):
    for r in rows:
        r["x"] = r["y"] * 2
        r["y"] += r["row"][0]


def put_numbers(r, v):
    r["x"] = v


def assign_by_calls(rows):
    for i in range(len(rows)):
        put_numbers(rows[i], 2.0 * rows[i]["y"])


def assign_in_a_dict(rows):
    rows[0]["in"]["u"] = 5.0


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
@pytest.mark.parametrize("function", [assign_sums, assign_numbers, assign_by_calls, assign_in_a_dict])
def test_entries_beside_what_is_assigned_stay_the_objects_that_they_are(function, executor):
    f = relay(function, executor=executor)
    for n in (2, 3, 4, 2):
        mine, theirs = (
            [{"x": 2.0 * k, "y": 0.5, "row": [1.0, 0.25], "in": {"u": 1.0, "v": [k]}} for k in range(n)]
            for _ in range(2)
        )
        kept = [(r, r["row"], r["in"], r["in"]["v"]) for r in mine]
        f(mine)
        function(theirs)
        assert repr(mine) == repr(theirs)
        assert all(
            a is b for old, r in zip(kept, mine, strict=True) for a, b in zip(old, (r, r["row"], r["in"], r["in"]["v"]))
        )


def assign_a_list(rows):
    rows[0]["row"] = [1.0]
    rows[1]["row"][0] = 2.0


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_entries_that_may_be_other_objects_are_refused(executor):
    f = relay(assign_a_list, executor=executor)
    rows = [{"x": 1.0, "row": [0.5]}, {"x": 2.0, "row": [0.25]}]
    with pytest.raises(TypeError, match="is changed in place here|in place, and"):
        f(rows)
    assert rows == [{"x": 1.0, "row": [0.5]}, {"x": 2.0, "row": [0.25]}]


def filled(p):
    p.fill(3.0)
    if len(p) > 1:
        raise ValueError("too long")
    return p


def extended(xs, n):
    xs.append(n)
    raise ValueError("too long")


def bound_to_the_result(p):
    p = filled(p)
    return p


def bound_afterwards(p):
    filled(p)
    p = 7.0
    return p


def bound_in_a_loop(p):
    for _ in [1, 2]:
        p = filled(p)
    return 1.0


def a_list(xs):
    extended(xs, 3.0)
    xs = [1.0]
    return xs


@pytest.mark.parametrize(
    "f", (bound_to_the_result, bound_afterwards, bound_in_a_loop, a_list), ids=lambda f: f.__name__
)
def test_a_call_that_always_raises_is_refused_where_its_changes_are_not_seen(f):
    """The name of the parameter is bound anew, so nobody knows what the caller's object is when it raises."""
    given = [1.0, 2.0] if f is a_list else np.arange(3.0)
    with pytest.raises(CompileError, match="belongs to the caller"):
        relay(executor="interpreter")(f)(given)
    np.testing.assert_array_equal(given, [1.0, 2.0] if f is a_list else np.arange(3.0))
