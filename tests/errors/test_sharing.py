"""An array that something else may see is not changed in place: the caller's array, through whatever returned it."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import CompileError, relay
from myia_relay.abstract.types import INT, tuple_of
from myia_relay.infer.values.sharing import Origins
from myia_relay.ir.build import Builder
from myia_relay.ir.node import Graph
from tests.property.oracle import function_of
from tests.typed_graphs import apply, build, call, cond, for_, vec, while_


def ident(a):
    return a


def maybe(a, c):
    return a if c else a * 2.0


def rows(a):
    return a[0], a


def after_no_turn(a, n):
    for _ in range(n):
        a = a * 2.0
    return a


def assigned(p):
    y = ident(p)
    y[0] = 100.0
    return p.sum()


def augmented(p):
    y = ident(p)
    y += 1.0
    return p.sum()


def of_a_local(p):
    z = p * 1.0
    y = ident(z)
    y[0] = 100.0
    return z.sum()


def through_a_branch(p):
    y = maybe(p, p.sum() > 0.0)
    y[0] = 100.0
    return p.sum()


def through_a_loop(p):
    y = ident(p)
    for i in range(2):
        y[i] = 100.0
    return p.sum()


def through_a_loop_that_may_not_run(p):
    y = after_no_turn(p, 0)
    y[0] = 100.0
    return p.sum()


def a_row(p):
    y, _ = rows(p)
    y[0] = 100.0
    return p.sum()


def a_copy(p):
    y = ident(p).copy()
    y[0] = 100.0
    return y.sum() + p.sum()


def a_fresh_result(p):
    y = maybe(p, True) * 1.0
    y[0] = 100.0
    y += 1.0
    return y.sum() + p.sum()


@pytest.mark.parametrize(
    "function", [assigned, augmented, of_a_local, through_a_branch, through_a_loop, through_a_loop_that_may_not_run]
)
def test_refused(function, executor):
    p = np.ones(3)
    with pytest.raises(CompileError) as caught:
        relay(executor=executor)(function)(p)
    assert "copy it first" in str(caught.value) and "relay.at(x)" in str(caught.value) and "^" in str(caught.value)
    assert (p == 1.0).all()


def test_a_row_of_a_matrix_is_refused(executor):
    with pytest.raises(CompileError, match="copy it first"):
        relay(executor=executor)(a_row)(np.ones((2, 3)))


@pytest.mark.parametrize("function", [a_copy, a_fresh_result])
def test_accepted(function, executor):
    p = np.ones(3)
    assert relay(executor=executor)(function)(p) == function(np.ones(3))
    assert (p == 1.0).all()


# A recursion that permutes its arguments returns either of them.


def pick(n, x, y):
    return x if n < 1 else pick(n - 1, y, x)


def pick_of(n, a, b):
    return pick(n, a.copy(), b)


def of_a_recursion(n, p, q):
    p, q = p * 1.0, q * 1.0
    z = pick_of(n, p, q)
    z[0] = 5.0
    return p, q, z


def of_a_recursion_of_lists(n, p, q):
    ps, qs = [1.0, 2.0], [3.0, 4.0]
    for _ in range(n):
        ps.append(1.0)
        qs.append(2.0)
    z = pick_of(n, ps, qs)
    z[0] = 5.0
    return ps, qs, z


def made(n, x):
    return x * 2.0 if n < 1 else made(n - 1, x)


def of_a_fresh_recursion(n, p, q):
    p = p * 1.0
    z = made(n, p)
    z[0] = 5.0
    return p + q, z


@pytest.mark.parametrize("function", [of_a_recursion, of_a_recursion_of_lists])
def test_a_result_of_a_recursion_that_may_be_its_argument_is_refused(function, executor):
    for n in (0, 1):
        with pytest.raises(CompileError, match="may be, or hold, the same object as"):
            relay(executor=executor)(function)(n, np.ones(3), np.ones(3))


def test_a_fresh_result_of_a_recursion_is_changed(executor):
    for n in (0, 1, 2):
        args = n, np.arange(3.0), np.ones(3)
        got, want = relay(executor=executor)(of_a_fresh_recursion)(*args), of_a_fresh_recursion(*args)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


# What the refusals say: which of several reasons, and whose object it is.

CALLER = "'y' may be part of the parameter 'p', which belongs to the caller"
REASONS = {
    "y = q if n > 1 else p; y[0] = n; return y": CALLER,
    "y = p if n > 1 else q; y[0] = n; return y": CALLER,
    "y = either(p, q, n > 1)[1:]; y[0] = n; return y": CALLER,  # which one it is is not known: the first by name
    "y = either(q, p, n > 1)[1:]; y[0] = n; return y": CALLER,
    "y = p[0]; y = either(q, p, n > 1)[1:]; y[0] = n; return y": CALLER,
    "xs = [np.ones(2) * i for i in range(n)]; y = xs[0] if n > 1 else np.zeros(2); y[0] = n; return y":
        "this array came out of a list",
    "xs = [p, q]; xs[0][0] = n; return xs": "'xs' may be part of the parameter 'p', which belongs to the caller",
    "y = np.asarray(g); y[0] = n; return y": "'y' may be part of 'g', which comes from outside of the function",
    "y = g; y[0] = n; return y": "'y' may be part of 'g', which comes from outside of the function",
    "xs = [1, 2]; f = lambda: xs; xs.append(n); return f(), xs": "an inner function captures 'xs'",
    "xs = [1, 2]; #def f(): #    nonlocal xs; #    xs = [3]; f(); xs.append(n); return xs":
        "'xs' changes while an inner function holds it",
    "xs = [[1], [2]]; #def f(): #    nonlocal xs; #    xs = [[3]]; f(); y = xs[0]; y.append(n); return xs":
        "'y' may be part of 'xs', which changes while an inner function holds it",
    "xs = [1, 2]; ys = xs; #def f(): #    return ys; xs.append(n); ys = [n]; return f(), xs":
        "'ys', which changes while an inner function holds it, may be, or hold, the same object as 'xs'",
    "xs = [1, 2]; a = xs if n > 1 else [n]; b = a; xs.append(n); return a, b, xs": "'a' may be, or hold, the same object as 'xs'",
    "xs = [1, 2]; #for x in xs: #    xs.append(x); return xs": "the loop around runs over 'xs'",
    "xs = [[1]] * 2; xs[0].append(n); return xs": "another entry of 'xs' may be, or hold, the same object",
    "ys = [[1], [2]]; xs = [*ys, *ys]; xs[0].append(n); return xs": "another entry of 'xs' may be, or hold, the same object",
    "x = np.zeros(()); y = x if n > 1 else x * 2; x += 1.0; return x, y": "'y' may be, or hold, the same object as 'x'",
    "d = {'a': 1.0}; e = d if n > 1 else {'a': 2.0}; d['a'] = 2.0; return d, e": "'e' may be, or hold, the same object as 'd'",
    "d = {'a': 1.0}; t = (d, 1); d['a'] = 2.0; return t": "'t' may be, or hold, the same object as 'd'",
    "xs = [[np.ones(2) * i, np.ones(2)] for i in range(n)]; #for row in xs: #    pass; row[0] += 1.0; return row":
        "this list came from a function that returns its own argument, or out of another list",
    "row = [1]; zs = [[row, row], [[3]]]; xs = max(zs, key=len); xs[0].append(n); return xs":
        "another entry of 'xs' may be, or hold, the same object",
    "row = [1]; zs = [[[row, row], [[2]]], [[[3]]]]; xs = max(zs[0], key=len); xs[0].append(n); return xs":
        "another entry of 'xs' may be, or hold, the same object",
    "ys = [[1], [2]]; #for x in ys: #    z = sum([[x]], []); #    z[0].append(n); return n": "the loop around runs over 'z'",
    "z = p * 1.0; #def f(): #    y = z; #    y[0] = n; #    return y; return f()":
        "'y' may be part of a value of the function around this one",
}  # fmt: skip


def either(x, y, c):
    return x if c else y


def twice(x):
    return [x, x]


def program_of(text):
    """A function of statements; those behind a # are in lines of their own, indented as they are."""
    lines = [line.removeprefix("#") for part in text.split("; ") for line in part.replace(" #", "\n#").split("\n")]
    source = "def program(n, p, q):\n" + "".join(f"    {line}\n" for line in lines)
    return function_of(source, f"<{text}>", {"g": np.ones(2), "ident": ident, "either": either, "twice": twice})


@pytest.mark.parametrize("text", REASONS)
def test_the_reason_that_is_given(text):
    with pytest.raises(CompileError) as caught:
        relay(program_of(text), executor="interpreter")(3, np.ones(4), np.ones(4))
    assert REASONS[text] in str(caught.value), str(caught.value)


@pytest.mark.parametrize("names", ["hgfedcba", "dhbfacge"])
def test_of_several_that_it_may_be_part_of_the_first_by_name_is_given(names):
    choice = " else ".join(f"{name} if n > {k}" for k, name in enumerate(names))
    text = f"def program(n, {', '.join(names)}):\n    y = {choice} else a\n    y[0] = n\n    return y\n"
    with pytest.raises(CompileError, match="may be part of the parameter 'a'"):
        relay(function_of(text, f"<{names}>"), executor="interpreter")(3, *[np.ones(2)] * len(names))


ENTRIES = {
    "xs = [[1, 2], [3, 4]]; xs[1] += [n]; return xs": True,
    "row = [1, 2]; xs = [ident(row), ident(row)]; xs[1] += [n]; return xs": False,
    "row = [1, 2]; xs = [ident(row) for _ in range(n)]; xs[1][0] = n; return xs": False,
    "xs = twice([1, 2]); xs[1] += [n]; return xs": False,
    "xs = [*twice([1, 2])]; xs[1] += [n]; return xs": False,
    "xs = list(twice([1, 2])); xs[1] += [n]; return xs": False,
    "xs = [[5, 6]] + twice([1, 2]); xs[1] += [n]; return xs": False,
    "xs = []; #for i in range(n): #    row = [i, i]; #    xs.append(row); xs[1][0] = n; return xs": True,
    "xs = []; #for i in range(n): #    row = [i, i] if i < 1 else row; #    xs.append(row); xs[1][0] = n; return xs": False,
    "zs = [[[i, i] for i in range(n)] for _ in range(n)]; zs[0][1][0] = n; return zs": True,
    "zs = [[[1], [2]], [[3], [4]]]; xs = zs[0]; xs[0].append(n); return xs": True,
    "zs = [[[1], [2]], [[3], [4]]]; #for xs in zs: #    pass; xs[0].append(n); return xs": True,
    "#if n > 1: #    xs = [[i] for i in range(n)]; xs[0][0] = n; return xs": True,
    "xs = []; #for i in range(n): #    row = [i]; #    for j in range(2): #        row = [j, i]; #    xs.append(row); "
    "xs[1].append(n); return xs": True,
    "xs = [[[[0]]]]; #for i in range(n): #    new = [[[[i]]]]; #    xs[0][0][0].append(n); #    xs = new; return xs": True,
    "row = [[[[1]]]]; #for i in range(2): #    row = row[0]; row[0].append(n); return row": False,
    # What a call hands on may be in it already.
    "row = [1]; xs = [ident(row), row]; xs[1].append(n); return xs": False,
    "row = [1]; xs = [(lambda: row)(), row]; xs[1].append(n); return xs": False,
    "ys = [[1], [2]]; xs = [max(ys, key=len), ys[0]]; xs[1].append(n); return xs": False,
    "ys = [[1], [2]]; xs = sum([ys, ys], []); xs[0].append(n); return xs": False,
    "row = [1]; xs = [ident([2]), row]; xs[1].append(n); return xs": True,
    "xs = [n, [1]]; xs[1].append(n); return xs": True,
    "row = [1]; ys = [row, row]; xs = ys[:]; xs[0].append(n); return xs": False,
    # A copy of a list holds the same entries.
    "ys = [[1], [2]]; xs = ys.copy(); xs.extend(ys); xs[0].append(n); return xs": False,
    "ys = [[1], [2]]; xs = ys.copy(); xs.append(ys[0]); xs[0] += [n]; return xs": False,
    "ys = [np.zeros(2), np.ones(2)]; xs = ys.copy(); xs.extend(ys); xs[0][1] = n; return xs": False,
    "row = [1]; ys = [row, row]; xs = ys.copy(); xs[0].append(n); return xs": False,
    "ys = [[1], [2]]; xs = [ys.copy() for _ in range(n)]; xs[0][0][0] = n; return xs": False,
    "ys = [[1], [2]]; row = [3]; xs = ys.copy(); xs[0] = row; row.append(n); return xs": False,
    "ys = [[1], [2]]; row = [3]; xs = ys.copy(); xs[0] = row; xs[1] = row; xs[0].append(n); return xs": False,
    "ys = [[1], [2]]; xs = ys.copy().copy(); xs[0].append(n); return xs": True,
    "ys = [[1], [2]]; xs = ys.copy(); #for i in range(2): #    xs[i].append(n); return xs": True,
    # An entry may hold what another one holds.
    "ys = [[1], [2]]; xs = [[*ys], ys]; xs[0][0].append(n); return xs": False,
    "ys = [[1], [2]]; xs = [list(ys), ys]; xs[0][0].append(n); return xs": False,
    "ys = [[1], [2]]; xs = [[*ys], [[3], [4]]]; xs[0][0].append(n); return xs": True,
    # Arrays copy what is put into them.
    "xs = [np.ones(2) for _ in range(n)]; xs = [x.copy() for x in xs]; xs[0][1] = n; return len(xs)": True,
}  # fmt: skip
"""Whether what is changed is in no other entry: calls may return what they are given, and loops may keep what they have made."""


@pytest.mark.parametrize("text", ENTRIES)
def test_an_entry_is_changed_where_it_is_there_once(text):
    program = program_of(text)
    compiled, args = relay(program, executor="interpreter"), (3, np.ones(4), np.ones(4))
    if ENTRIES[text]:
        assert compiled(*args) == program(*args)
        return
    with pytest.raises(CompileError, match="in place|change"):
        compiled(*args)


def test_an_array_copies_what_is_put_into_it(executor):
    program = program_of("x, row = p.copy(), q[:2] * 2.0; x[1:3] = row; row[0] = n; return x, row")
    args = (3, np.arange(4.0), np.ones(4))
    for got, want in zip(relay(program, executor=executor)(*args), program(*args), strict=True):
        np.testing.assert_array_equal(got, want)


# --- what typed values may be the same as ------------------------------------------------------------------------------


def calls(f):
    return lambda x, y, n: call(build(f, vec(), vec(), INT, name="called"), x, y, n)


def looped(*body):
    """The results of a loop that carries (x, y, x + y)."""
    step = lambda i, *values: tuple(values[k] if k is not None else values[0] * 2.0 for k in body)  # noqa: E731
    return lambda x, y, n: for_((0, n, 1), step, (x, y, x + y))


def waited(x, y, n):
    return while_(lambda k, a, b, n: k < n, lambda k, a, b, n: (k + 1, b, a), (n * 0, x, y), (n,))


def beside_a_constant(x, y, n):
    return for_((0, n, 1), lambda i, a, c: (c,), (x + y,), (x,))


ORIGINS = {
    "itself": (lambda x, y, n: x, "x"),
    "a view": (lambda x, y, n: apply("reshape", x, shape=(3, 1)), "x"),
    "a view of a view": (lambda x, y, n: apply("reshape", apply("reshape", x, shape=(3, 1)), shape=(1, 3)), "x"),
    "a cast": (lambda x, y, n: apply("cast", x, dtype="float64", weak=False), "x"),
    "a new array": (lambda x, y, n: x + y, ""),
    "a view of a new array": (lambda x, y, n: apply("reshape", x + y, shape=(3, 1)), ""),
    "a call": (calls(lambda a, b, n: b), "y"),
    "a call that makes one": (calls(lambda a, b, n: b * 2.0), ""),
    "a call that returns two": (lambda x, y, n: calls(lambda a, b, n: (b, a * 2.0))(x, y, n)[0], "y"),
    "the other one of a call": (lambda x, y, n: calls(lambda a, b, n: (b, a))(x, y, n)[1], "x"),
    "branches": (lambda x, y, n: cond(n > 1, lambda a, b: a, lambda a, b: b, x, y), "xy"),
    "one branch": (lambda x, y, n: cond(n > 1, lambda a, b: a * 2.0, lambda a, b: b, x, y), "y"),
    "the other branch": (lambda x, y, n: cond(n > 1, lambda a, b: a, lambda a, b: b * 2.0, x, y), "x"),
    "a loop that keeps them": (lambda x, y, n: looped(0, 1, 2)(x, y, n)[0], "x"),
    "a loop that exchanges them": (lambda x, y, n: looped(1, 0, 2)(x, y, n)[1], "xy"),
    "a loop that passes them on": (lambda x, y, n: looped(1, 2, 2)(x, y, n)[0], "xy"),
    "a loop that passes them back": (lambda x, y, n: looped(None, 0, 1)(x, y, n)[2], "xy"),
    "a loop that may not run": (lambda x, y, n: looped(None, None, None)(x, y, n)[0], "x"),
    "a loop's last one": (lambda x, y, n: looped(None, None, None)(x, y, n)[2], ""),
    "a while loop": (lambda x, y, n: waited(x, y, n)[2], "xy"),
    "a constant of a loop": (lambda x, y, n: beside_a_constant(x, y, n)[0], "x"),
    "a loop's counter": (lambda x, y, n: for_((0, n, 1), lambda i, a, k: (a, i), (x, n))[1], "n"),
}  # fmt: skip


@pytest.mark.parametrize("name", ORIGINS)
def test_what_a_result_may_be(name):
    f, wanted = ORIGINS[name]
    graph = build(f, vec(), vec(), INT)
    assert sorted(p.name for p in Origins().result(graph, 0)) == sorted(wanted)


def test_a_part_of_a_tuple_may_be_the_tuples():
    graph = build(lambda t, x: (t[1], x), tuple_of(vec(), vec()), vec())
    assert [{p.name for p in Origins().result(graph, k)} for k in (0, 1)] == [{"t"}, {"x"}]


def test_a_graph_that_is_not_complete_may_return_all():
    graph = build(lambda x, y: x, vec(), vec())
    graph.output = None
    assert Origins().result(graph, 0) == set(graph.params)


def test_recursions_that_call_each_other():
    """Each returns what the other one returns of exchanged arguments, or its first."""
    graphs = [Graph(name) for name in "fg"]
    for graph in graphs:
        b = Builder(graph)
        x, y, n = (b.var(graph.add_parameter(name, t)) for name, t in (("x", vec()), ("y", vec()), ("n", INT)))
        graph.output = x.node
    for graph, other in (graphs, graphs[::-1]):
        x, y, n = (Builder(graph).var(p) for p in graph.params)
        again = call(other, y, x, n)
        graph.output = cond(n > 1, lambda a, b: a, lambda a, b: b, x, again).node
    origins = Origins()
    for graph in graphs:
        assert {p.name for p in origins.result(graph, 0)} == {"x", "y"}
        assert origins.result(graph, 0) is origins.result(graph, 0)
