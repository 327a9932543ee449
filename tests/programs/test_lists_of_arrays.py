"""Lists of arrays as data: one program for every length and all sizes, CPython's answers, and the caller's arrays changed."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, TypeError_, grad, relay, vmap
from myia_relay.utils.errors import ValueError_
from tests.programs.cases import EXECUTORS
from tests.programs.compare import differences

RNG = np.random.default_rng(0)
MANY = 18  # more entries than a list of arrays has that is structure


class Layer(NamedTuple):
    weights: np.ndarray
    scale: float


@dataclass(frozen=True)
class Pair:
    left: dict
    right: tuple


def two(k):
    return {"a": None if k % 2 else k, "b": 0.5 if k % 3 else None}


def vectors(count=MANY, more=0):
    return [np.arange(1.0 + (k + more) % 4) + k for k in range(count)]


def matrices(count=MANY):
    return [RNG.normal(size=(k % 3, 2)) for k in range(count)]


def records(count=MANY):
    return [{"name": "ab"[k % 2], "v": x} for k, x in enumerate(vectors(count))]


def total(xs):
    s = 0.0
    for x in xs:
        s += float(np.sum(x))
    return s


def entry(xs, i, j):
    return xs[i][j], xs[-1], len(xs), len(xs[i]), xs[i].shape


def products(xs, w):
    return [x @ w for x in xs]


def named(rows):
    s = 0.0
    for row in rows:
        if row["name"] == "a":
            s += row["v"].sum() * len(rows)
    return s


def layers(ps):
    return [(p.weights * p.scale, p.scale) for p in ps if len(p.weights) > 1]


def nested(rows):
    out = []
    for xs in rows:
        if len(xs) > 0:
            out.append((len(xs), xs[0] * 2.0, [x.max() for x in xs]))
    return out


def picked(xs, index):
    kept = [xs[i] for i in index]
    kept.append(np.ones(2))
    return kept, xs[2:5], xs[::-1][0], [len(x) for x in xs if x[0] > 3]


def within(xs):
    best = xs[0]
    for x in xs:
        if np.sum(x) > np.sum(best):
            best = x
    return best, helper(xs, 1), helper(xs, 2)


def helper(xs, k):
    return xs[k] + len(xs)


def built(n, x):
    parts = []
    for i in range(n):
        parts.append(x[:i] * i)
    parts[1] = np.ones(3)
    return parts, {"rows": [(p, [p]) for p in parts]}, sum(p.sum() for p in parts)


def of_two_sizes(xs, i):
    ys = [np.zeros(2), np.ones(3)]
    for x in xs:
        ys.append(x)
    return ys[i]


def joined(xs, ms, same):
    return (
        np.concatenate(xs),
        np.concatenate([x[x > 2] for x in xs]),
        np.hstack(xs),
        (np.concatenate(ms), np.vstack(ms), np.concatenate(ms, axis=None), np.hstack([m.T for m in ms])),
        (np.stack(same), np.vstack(same), np.sum(same, axis=0)),
    )


def indexed(xs, n):
    """The entries of lists and tuples of known length, at indices that a run decides."""
    s, few, two = 0.0, [np.zeros(2), np.ones(3), xs[0]], (np.ones(2), np.ones(5))
    for i in range(n):
        s += few[i % 3].sum() + two[i % 2].sum() + xs[i % len(xs)].sum()
    return s


def shrinking(xs):
    s = 0.0
    while len(xs) > 0:
        s += xs[0].sum()
        xs = xs[1:]
    return s


def recursive(xs, k):
    return [] if k == len(xs) else [xs[k] * k] + recursive(xs, k + 1)


def with_none(rows):
    n = 0
    for row in rows[1:]:
        n += row["u"].shape[1]
    return n, [(i, row["v"].right) for i, row in enumerate(rows)]


def copies(xs):
    """Changes of copies, which the entries do not show."""
    s, best, ys = 0.0, xs[0].copy(), [x.copy() for x in xs]
    for x in xs:
        y = x.copy()
        for i in range(len(y)):
            y[i] += i
        s += y.sum() * x.sum()
        if x.sum() > best.sum():
            best = x.copy()
        best[0] += 1.0
    for i in range(len(ys)):
        ys[i][0] = -1.0
    for z in ys:
        z *= 3
    return s, best, ys, xs


READING = {
    "copies": (copies, lambda n: (vectors(n),)),
    "with none": (with_none, lambda n: ([{"u": np.ones((2, k % 3)), "v": Pair(two(k), (True, k))} for k in range(n)],)),
    "joined": (joined, lambda n: (vectors(n), matrices(n), [np.full(3, k) for k in range(n)])),
    "indexed": (indexed, lambda n: (vectors(n), 7)),
    "shrinking": (shrinking, lambda n: (vectors(n),)),
    "recursive": (recursive, lambda n: (vectors(n), 0)),
    "total": (total, lambda n: (vectors(n),)),
    "matrices": (total, lambda n: (matrices(n),)),
    "equal sizes": (total, lambda n: ([np.full((2, 2, 1), k) for k in range(n)],)),
    "entry": (entry, lambda n: (vectors(n), 2, 1)),
    "products": (products, lambda n: (matrices(n), np.ones((2, 3)))),
    "records": (named, lambda n: (records(n),)),
    "named": (layers, lambda n: ([Layer(x, 0.5) for x in vectors(n)],)),
    "nested": (nested, lambda n: ([vectors(n), [], vectors(2)] * n,)),
    "picked": (picked, lambda n: (vectors(n), [3, 1, 1])),
    "within": (within, lambda n: (vectors(n),)),
    "views": (entry, lambda n: ([np.arange(9 * n)[k : 4 * n : k + 1][::-1] for k in range(n)], 1, 2)),
    "columns": (products, lambda n: ([np.arange(12.0).reshape(2, 6).T[k % 3 :] for k in range(n)], np.ones((2, 1)))),
    "the same array": (products, lambda n: (matrices(1) * n, np.ones((2, 1)))),
    "dtypes": (of_two_sizes, lambda n: (vectors(n), 4)),
    "built": (built, lambda n: (n, np.arange(5.0))),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", READING)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_one_program_reads_all_lengths_and_sizes(name, executor):
    function, arguments = READING[name]
    f = relay(function, executor=executor)
    for count in (MANY, MANY + 7):
        args = arguments(count)
        assert not differences(f(*args), function(*args))
    assert len(f._programs) == 1
    if name != "built":
        assert any(t.tag == "columns" for t in f._signature(args, {}, [])[1])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
def test_dtypes(dtype):
    xs = [np.arange(k % 3 + 1).astype(dtype) for k in range(MANY)]
    for executor in EXECUTORS:
        f = relay(lambda xs: ([x[::-1] for x in xs], xs[2], xs), executor=executor)
        got = f(xs)
        wanted = [x[::-1] for x in xs], xs[2], xs
        assert not differences(got, wanted) and structure_of(f, xs) == ["columns"]


# --- changes ----------------------------------------------------------------------------------------------------------


def one_element(xs):
    xs[3][0] = 5.0
    xs[1][1:] = 7.0


def whole_entries(xs):
    for i in range(len(xs)):
        xs[i] *= 2


def in_a_loop(xs):
    for x in xs:
        x += 1.0
    return len(xs)


def in_records(rows):
    for row in rows:
        row["v"] += 1.0


def in_rows(rows):
    for xs in rows:
        for x in xs:
            x *= 2.0


def two_lists(xs, ys):
    for i in range(len(xs)):
        xs[i][0] += ys[i][0]


def appended(xs):
    xs.append(xs[0] * 2)


def by_name(xs):
    a = xs[1]
    a[0] = 7.0
    return a.sum()


CHANGES = {
    one_element: lambda: (vectors(),),
    whole_entries: lambda: (matrices(),),
    in_a_loop: lambda: ([np.arange(6.0)[::2] for _ in range(MANY)],),
    in_records: lambda: (records(),),
    in_rows: lambda: ([vectors(3), vectors(MANY), []],),
    two_lists: lambda: (vectors(), vectors()),
    appended: lambda: (vectors(),),
    by_name: lambda: (vectors(),),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_callers_arrays_change(function, executor):
    f = relay(function, executor=executor)
    wanted, given = CHANGES[function](), CHANGES[function]()
    wanted = copy.deepcopy(given)
    before = list(given[0])
    result = function(*wanted)
    assert not differences(f(*given), result)
    assert not differences(given, wanted)
    assert all(one is other for one, other in zip(before, given[0]))
    assert any(t.tag == "columns" for t in f._signature(given, {}, [])[1])


def test_arrays_that_are_one_are_refused_where_they_change():
    one, base = vectors(), np.arange(40.0)
    again = [*one, one[0]]
    overlapping = [base[k : k + 3] for k in range(MANY)]
    apart = [base[2 * k : 2 * k + 2] for k in range(MANY)]
    for executor in EXECUTORS:
        f, g = relay(whole_entries, executor=executor), relay(two_lists, executor=executor)
        for call, args in ((f, (again,)), (f, (overlapping,)), (g, (one, one[:])), (g, (overlapping, apart))):
            with pytest.raises(ValueError_, match="more than once"):
                call(*args)
        given = copy.deepcopy(apart)
        f(apart)
        assert not differences(apart, [2 * x for x in given])
        assert relay(total, executor=executor)(again) == total(again)


def test_entries_that_are_named_elsewhere_are_not_changed_silently():
    def through_a_call(n):
        xs = [np.zeros(i + 1) for i in range(n)]
        a = helper_first(xs)
        a[0] = 5.0
        return xs

    def through_a_size(x):
        a = x[x > 0]
        b = same(a)
        b[0] = 100.0
        return a.sum()

    for executor in EXECUTORS:
        for f, argument in ((through_a_call, 3), (through_a_size, np.ones(3))):
            with pytest.raises(CompileError):
                relay(f, executor=executor)(argument)


def helper_first(xs):
    return xs[0]


def same(x):
    return x


# --- derivatives ------------------------------------------------------------------------------------------------------


def energy(xs, w):
    s = 0.0
    for k, x in enumerate(xs):
        if len(x) > 0:
            s += np.sum(np.sin(w * x)) * (k + 1)
    return s


@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradients_are_lists_of_arrays_of_the_same_shapes(executor):
    f = grad(relay(energy, executor=executor), (0, 1))
    for xs in ([RNG.normal(size=k % 3) for k in range(MANY)], matrices()):
        by_xs, by_w = f(xs, 0.7)
        wanted = [0.7 * np.cos(0.7 * x) * (k + 1) for k, x in enumerate(xs)]
        assert [x.shape for x in by_xs] == [x.shape for x in xs]
        assert all(map(np.allclose, by_xs, wanted))
        assert np.isclose(by_w, sum(np.sum(x * np.cos(0.7 * x)) * (k + 1) for k, x in enumerate(xs)))
    second = grad(lambda xs, w: grad(energy, 1)(xs, w), 1)(xs, 0.7)
    assert np.isclose(second, -sum(np.sum(x * x * np.sin(0.7 * x)) * (k + 1) for k, x in enumerate(xs)))


def test_gradients_by_records_have_none_for_what_is_no_float():
    def f(rows):
        return sum(np.sum(row["v"] ** 2) for row in rows)

    for executor in EXECUTORS:
        got = grad(relay(f, executor=executor))([{"n": np.arange(2), **row} for row in records()])
        assert all(
            g["n"] is None and g["name"] is None and np.array_equal(g["v"], 2 * r["v"]) for g, r in zip(got, records())
        )


# --- structure --------------------------------------------------------------------------------------------------------


def forward(params, x):
    for w, b in params:
        x = np.tanh(x @ w + b)
    return x.sum()


def structure_of(f, *args):
    return [t.tag for t in f._signature(args, {}, [])[1]]


def by_number(ws, x):
    for i in range(len(ws)):
        x = np.tanh(x @ ws[i])
    made = [np.ones((k + 2, 2)) for k in range(2)]
    return x[:2] @ made[0] + x[:3] @ made[1]


def test_loops_over_parameters_know_their_sizes():
    ws = [np.ones((3, 4)), np.ones((4, 2)), np.ones((2, 5))]
    text = str(relay(by_number).ir(ws, np.ones(3)))
    assert "bind_dim" not in text and "loop" not in text
    f = relay(by_number)
    assert np.allclose(f(ws, np.ones(3)), by_number(ws, np.ones(3)))
    with pytest.raises(CompileError, match=r"shapes \(3, 4\) and \(5,\) do not fit"):
        relay(lambda ws, x: [ws[k] @ x for k in range(2)])(ws, np.ones(5))


def test_parameters_of_a_model_are_structure():
    params = [(RNG.normal(size=(3 + k, 4 + k)), np.zeros(4 + k)) for k in range(3)]
    f = relay(forward)
    assert np.isclose(f(params, np.ones(3)), forward(params, np.ones(3)))
    assert structure_of(f, params, np.ones(3)) == ["seq", "dyn"]
    assert structure_of(f, {"xs": vectors(3)}, np.ones(3)) == ["seq", "dyn"]


def test_short_lists_are_indexed_by_what_a_run_decides():
    xs = vectors(5)
    for executor in EXECUTORS:
        f = relay(indexed, executor=executor)
        assert np.isclose(f(xs, 9), indexed(xs, 9)) and structure_of(f, xs, 9) == ["seq", "dyn"]


def long_enough(xs, most):
    for x in xs:
        if len(x) > most:
            return x
    return xs[0]


def test_short_lists_are_data_where_their_structure_has_no_program():
    xs = vectors(5)
    for executor in EXECUTORS:
        f = relay(long_enough, executor=executor)
        assert not differences(f(xs, 2), long_enough(xs, 2)) and structure_of(f, xs, 2) == ["columns", "dyn"]
        assert not differences(f(xs, 9), long_enough(xs, 9)) and f.cache_info().currsize == 1


def test_short_lists_are_data_once_calls_differ_in_length_or_often_in_sizes():
    f = relay(total)
    for count in (3, 5, 1, 9, 40):
        assert f(vectors(count)) == total(vectors(count))
    assert len(f._programs) == 2 and f.cache_info().misses <= 2
    f = relay(total)
    for more in range(4):
        assert f(vectors(2, more)) == total(vectors(2, more))
    assert len(f._programs) == 3
    assert f([]) == total([])


def test_what_needs_a_length_is_compiled_for_the_structure():
    f = relay(lambda xs: vmap(np.sum)(np.stack([xs[0]] * len(xs))) if len(xs) < 9 else np.einsum("i,j->ij", *xs[:2]))
    for count in (MANY, 3, 4):
        xs = [np.full(2, k) for k in range(count)]
        wanted = np.full(count, 0) if count < 9 else np.outer(xs[0], xs[1])
        assert np.array_equal(f(xs), wanted)


def test_static_lists_are_structure():
    def f(xs, name):
        s = 0.0
        for x in xs:
            s = s + x[0]
        return s if name == "sum" else s / len(xs)

    g = relay(f, static=("xs", "name"))
    for xs in (vectors(), vectors(MANY + 1)):
        assert g(xs, "sum") == f(xs, "sum")
    assert structure_of(g, vectors(), "sum") == ["seq", "static"] and len(g._programs) == 2
    with pytest.raises(TypeError_, match="no compile-time constant"):
        g(np.ones(3), "sum")


def test_mixed_arrays_stay_structure():
    f = relay(total)
    for xs in (
        [x.astype(">f8") for x in vectors()],
        [*vectors(), np.ones((2, 2))],
        [*vectors(), np.ones(2, np.float32)],
        [np.array(1.0)] * MANY,
    ):
        assert f(xs) == total(xs) and structure_of(f, xs) == ["seq"]


# --- a program --------------------------------------------------------------------------------------------------------


def network(features, neighbours, w1, w2):
    """A graph network with ragged lists of neighbours."""
    h = np.tanh(features @ w1)
    out = np.zeros_like(h)
    for i in range(len(neighbours)):
        near = neighbours[i]
        if len(near) > 0:
            out[i] = h[near].mean(axis=0)
    return np.sum(np.tanh((h + out) @ w2) ** 2)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_graph_network_on_ragged_neighbours(executor):
    w1, w2 = RNG.normal(size=(4, 6)), RNG.normal(size=(6, 2))
    f = relay(network, executor=executor)
    for count in (200, 50):
        features = RNG.normal(size=(count, 4))
        neighbours = [RNG.integers(0, count, RNG.integers(0, 9)) for _ in range(count)]
        assert np.isclose(f(features, neighbours, w1, w2), network(features, neighbours, w1, w2))
    assert structure_of(f, features, neighbours, w1, w2)[1] == "columns"
    by_w = grad(f, 2)(features, neighbours, w1, w2)
    step = np.zeros_like(w1)
    step[1, 2] = 1e-6
    both = [network(features, neighbours, w1 + d, w2) for d in (step, -step)]
    assert np.isclose(by_w[1, 2], (both[0] - both[1]) / 2e-6, rtol=1e-5)


def test_into_takes_lists_of_arrays():
    def squares(xs):
        return [x * x for x in xs], xs[0].sum()

    for executor in EXECUTORS:
        f = relay(squares, executor=executor)
        for xs in (vectors(), vectors(MANY + 2)):
            out = [np.zeros_like(x) for x in xs], np.zeros(())
            assert f.into(out)(xs) is out and not differences(out[0], squares(xs)[0]) and out[1] == xs[0].sum()
        for bad, problem in ((vectors(3), "4 arrays for a result of 19"), (vectors(more=1), "an array of shape")):
            with pytest.raises(CompileError, match=problem):
                f.into((bad, np.zeros(())))(vectors())
