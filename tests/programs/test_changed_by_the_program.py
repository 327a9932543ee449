"""Programs that change the arguments that Python gives them: the caller's objects end as in CPython, in all executors."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from myia_relay import CompileError, relay
from tests.programs.cases import EXECUTORS, Cases

case = Cases()
NUMBERS = [5, 2, 9, 1, 7, 3, 8]
VECTOR = np.array([5.0, 2.0, 9.0, 1.0])
MATRIX = np.array([[4.0, 1.0, -1.0], [2.0, 5.0, 2.0], [-2.0, 1.0, 8.0]])
GRAPH = [[1, 2], [3], [3], [4], []]


def swap(a, i, j):
    a[i], a[j] = a[j], a[i]


@case((NUMBERS,), (VECTOR,), ([2.5, 1.5],))
def bubble_sort(a):
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                swap(a, j, j + 1)


def partition(a, lo, hi):
    k = lo
    for j in range(lo, hi):
        if a[j] <= a[hi]:
            swap(a, k, j)
            k += 1
    swap(a, k, hi)
    return k


@case((NUMBERS, 0, 6), (VECTOR, 0, 3))
def quicksort(a, lo, hi):
    if lo < hi:
        k = partition(a, lo, hi)
        quicksort(a, lo, k - 1)
        quicksort(a, k + 1, hi)


@case((MATRIX, np.array([1.0, 2.0, 3.0])))
def solve(a, b):
    n = len(b)
    for k in range(n):
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= f * a[k, j]
            b[i] -= f * b[k]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            b[i] -= a[i, j] * b[j]
        b[i] /= a[i, i]


@case(([[0, 3, 9], [2, 0, 1], [1, 8, 0]],))
def floyd_warshall(d):
    for k in range(len(d)):
        for i in range(len(d)):
            for j in range(len(d)):
                if d[i][k] + d[k][j] < d[i][j]:
                    d[i][j] = d[i][k] + d[k][j]


@case((np.eye(4), np.zeros((4, 4))), (np.eye(4, dtype=np.int64), np.zeros((4, 4), dtype=np.int64)))
def life(src, dst):
    n = len(src)
    for i in range(n):
        for j in range(n):
            k = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    k += src[(i + di) % n, (j + dj) % n] if di or dj else 0
            dst[i, j] = 1 if k == 3 or (k == 2 and src[i, j] == 1) else 0


@case(([0, 0, 1, 2, 3], 4), ([0, 0, 1, 2, 3], 7))
def find(parent, x):
    while parent[x] != x:
        parent[x] = parent[parent[x]]
        x = parent[x]
    return x


@case((GRAPH, 0, [False] * 5, []))
def visit(graph, v, seen, out):
    seen[v] = True
    out.append(v)
    for w in graph[v]:
        if not seen[w]:
            visit(graph, w, seen, out)


@case(([1, 2, 3], 0, []), ([1, 2], 0, [[7, 7]]))
def permutations(a, k, out):
    if k == len(a):
        out.append(a.copy())
        return
    for i in range(k, len(a)):
        swap(a, k, i)
        permutations(a, k + 1, out)
        swap(a, k, i)


@case(([[1, 2], [3, 4]],), ([[1.5]],))
def transpose(m):
    for i in range(len(m)):
        for j in range(i + 1, len(m)):
            m[i][j], m[j][i] = m[j][i], m[i][j]


@case((NUMBERS,), (VECTOR,))
def prefix_sums(a):
    for i in range(1, len(a)):
        a[i] += a[i - 1]


@case(({"w": VECTOR, "n": 0}, 0.5))
def step(d, rate):
    d["w"] -= rate * d["w"]
    d["n"] += 1


@case(({"w": VECTOR, "b": VECTOR + 1}, 0.5))
def assigned(d, rate):
    d["w"] = d["w"] * rate
    d["new"] = rate


@case(([1, 2, 3],), ([],))
def popped(xs):
    xs.append(5)
    xs.insert(0, 7)
    return xs.pop(), len(xs)


@case(
    (VECTOR, 2.0), (VECTOR[::-1], 2.0), (VECTOR.astype(np.float32), 2.0), (np.arange(12.0).reshape(3, 4)[:, 1:3], 3.0)
)
def scale(x, k):
    x *= k
    x[x > 10] = 0


@case((NUMBERS, True), (NUMBERS, False), (VECTOR, True))
def in_a_branch(a, yes):
    if yes:
        a[0] = 1
        return a
    return a


@case((NUMBERS, 3), (NUMBERS, 30), (VECTOR, 30))
def raises_half_way(a, n):
    for i in range(n):
        a[i] = i * i
    return a


@case(([1, 2], [3], 5), ([1, 2], [3], 0))
def raises_between(xs, ys, k):
    xs.append(10 // k)
    ys.append(xs[k - 1])


@case((VECTOR, []), ([1], []))
def raises_always(x, xs):
    x[0] = 8
    xs.pop()


@case((VECTOR, 0), (VECTOR, 1))
def raises_in_the_end(x, n):
    x[0] = n
    if n:
        x[1] = n
    raise ValueError("so")


raising = Cases()


@raising((VECTOR, 1), (VECTOR, -1), (NUMBERS, 1))
def changed_where_it_raises(x, n):
    if n > 0:
        x[0] = 5
        raise ValueError("bad")
    return 3


@raising((VECTOR, 2), (VECTOR, 0), (NUMBERS, 2))
def in_a_loop_that_raises(x, n):
    for i in range(len(x)):
        if i == n:
            x[i] = -1
            x[i - 1] += 7
            raise KeyError("no")


@raising(({"w": VECTOR, "n": 2.0}, 1), ({"w": VECTOR, "n": 2.0}, 0))
def entries_where_it_raises(d, n):
    if n:
        d["n"] = 7.0
        d["w"][1] = 5
        raise RuntimeError("so")
    return d["n"]


def stop(x, n):
    if n > 1:
        x[0] = n
        raise ArithmeticError("end")


@raising((VECTOR, 3), (VECTOR, 1), (NUMBERS, 3))
def helper_that_raises(x, n):
    stop(x, n)
    return n


@raising((VECTOR, 3), (NUMBERS, 2), (VECTOR, 1))
def two_ways_to_raise(x, n):
    if n > 2:
        x[1] = 2
        raise ValueError("large")
    if n > 1:
        stop(x, n)
    return None


@raising(([VECTOR, VECTOR + 1], 1), ([[1, 2], [3]], 1), ([[1, 2], [3]], 0))
def rows_where_it_raises(rows, n):
    if n:
        rows[1][0] = 9
        assert n > 1, "small"
        raise ValueError("rows")
    return len(rows)


@raising((VECTOR, NUMBERS, 1), (VECTOR, NUMBERS, 0))
def one_of_two(x, ys, n):
    if n:
        ys.append(n)
        raise IndexError("grown")
    x[0] = n
    return x


@case((np.zeros((3, 3)),))
def filled(x):
    np.fill_diagonal(x, 1.0)
    np.add.at(x, [0, 0], 1.5)


def outcome(function, args: tuple):
    """What a call returns or raises, and what it leaves of its arguments; arrays by their numbers."""

    def plain(value):
        if isinstance(value, np.ndarray | np.generic):
            return ("array", value.dtype.name, value.tolist())
        if isinstance(value, dict):
            return [(k, plain(v)) for k, v in value.items()]
        if isinstance(value, list | tuple):
            return type(value).__name__, [plain(v) for v in value]
        return type(value).__name__, value

    try:
        result = plain(function(*args))
    except CompileError:
        raise
    except Exception as error:
        result = type(error), str(error)
    return result, [plain(a) for a in args]


@case.each
@pytest.mark.sampled(7)
def test_the_caller_sees_it(function, args, executor):
    compiled = relay(executor=executor)(function)
    assert outcome(compiled, copy.deepcopy(args)) == outcome(function, copy.deepcopy(args))
    assert outcome(compiled, copy.deepcopy(args)) == outcome(function, copy.deepcopy(args))  # out of the call cache


@raising.each
def test_the_caller_sees_what_was_changed_before_an_exception(function, args, executor):
    compiled = relay(executor=executor)(function)
    for _ in range(2):
        assert outcome(compiled, copy.deepcopy(args)) == outcome(function, copy.deepcopy(args))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_objects_stay_themselves(executor):
    rows, row = [[1, 2], [3, 4]], None
    row = rows[1]
    relay(transpose, executor=executor)(rows)
    assert rows[1] is row
    assert rows == [[1, 3], [2, 4]]
    x = VECTOR.copy()
    view = x[1:]
    relay(prefix_sums, executor=executor)(x)
    assert view.tolist() == [7.0, 16.0, 17.0]
    xs = [3]
    assert relay(in_a_branch, executor=executor)(xs, True) is xs
    d = {"w": VECTOR.copy(), "b": VECTOR.copy()}
    w, b = d["w"], d["b"]
    relay(assigned, executor=executor)(d, 0.5)
    assert (w == VECTOR).all()
    assert d["b"] is b
    assert d["w"].tolist() == (VECTOR * 0.5).tolist()


def with_a_copy(a):
    b = a.copy()
    a[0] = 100.0
    return b, a


@pytest.mark.parametrize("executor", EXECUTORS)
def test_results_share_nothing_with_what_is_changed(executor):
    x = VECTOR.copy()
    b, a = relay(with_a_copy, executor=executor)(x)
    assert a is x
    assert b.tolist() == VECTOR.tolist()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_read_only_array(executor):
    x = VECTOR.copy()
    x.flags.writeable = False
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        relay(prefix_sums, executor=executor)(x)
    assert x.tolist() == VECTOR.tolist()
    assert relay(in_a_branch, executor=executor)(x, False) is x


def both(x, y):
    x[0] = 7.0
    return y[0]


GLOBAL = np.zeros(3)
TABLE = [1.0, 2.0]


def reads_a_global(x):
    x[0] = GLOBAL[1]


def reads_a_table(xs):
    xs[0] = TABLE[1]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (both, lambda: (VECTOR.copy(),) * 2),
        (both, lambda: (lambda x: (x[:2], x[1:]))(VECTOR.copy())),
        (both, lambda: ([1.0, 2.0],) * 2),
        (transpose, lambda: ([[1, 2]] * 2,)),
        (reads_a_global, lambda: (GLOBAL[1:],)),
        (reads_a_table, lambda: (TABLE,)),
    ],
)
def test_objects_that_are_one_are_refused(function, args):
    given = args()
    before = copy.deepcopy(given)
    compiled = relay(function, executor="interpreter")
    with pytest.raises(CompileError, match="more than once"):
        compiled(*given)
    assert outcome(lambda *a: None, given) == outcome(lambda *a: None, before)


def test_elements_that_are_one_are_refused():
    x = np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8))
    with pytest.raises(CompileError, match="elements of it share memory"):
        relay(filled, executor="interpreter")(x)


def test_parts_of_an_array_that_are_apart():
    x = np.zeros(6)
    relay(both, executor="interpreter")(x[:3], x[3:])
    assert x.tolist() == [7.0, 0.0, 0.0, 0.0, 0.0, 0.0]


def swaps_rows(m):
    m[0], m[1] = m[1], m[0]


def stores_the_other(xs, out):
    out.append(xs)


def stores_through_a_call(xs, out):
    out.append(itself(xs))


def itself(v):
    return v


def prints(xs, i):
    print(xs[i])
    xs[i] = 0


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (swaps_rows, ([[1], [2]],), "which of them is where afterwards"),
        (stores_the_other, ([1], []), "may hold 'xs' itself"),
        (stores_through_a_call, ([1], []), "may hold 'xs' itself"),
        (prints, ([1, 2], 1), "also prints"),
    ],
)
def test_what_is_refused(function, args, message):
    given = copy.deepcopy(args)
    with pytest.raises(CompileError, match=message) as caught:
        relay(function, executor="interpreter")(*given)
    assert caught.value.loc.line > function.__code__.co_firstlineno
    assert given == args


def test_into_and_save_refuse(tmp_path):
    with pytest.raises(CompileError, match="changes an argument"):
        relay(scale).into(np.zeros(4))(VECTOR.copy(), 2.0)
    with pytest.raises(CompileError, match="in place"):
        relay(scale).save(tmp_path / "scale.so", VECTOR.copy(), 2.0)
