"""vmap against a loop over examples: primitives, branches, loops with tapes, transforms in both orders, effects."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.types import FLOAT, INT, Array, Ref, Scalar, Struct, tuple_of
from myia_relay.ad.batch.batch import Batcher
from myia_relay.ad.expand import expand, vmap_graph
from myia_relay.backend.interpreter import run
from myia_relay.ir.axes import Axes, Relation
from myia_relay.ir.build import Builder, Var, as_type
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY, Primitive
from myia_relay.ir.rewrite import all_graphs
from myia_relay.ir.verify import verify
from myia_relay.prims.rules.batching import from_axes
from myia_relay.utils.errors import InternalError, TypeError_
from tests.typed_graphs import (
    P,
    apply,
    build,
    call,
    check_orders,
    cond,
    expanded,
    for_,
    grad,
    run_all,
    staged,
    vag,
    vec,
    while_,
)

sin, exp, reduce_sum = P["sin"], P["exp"], P["reduce_sum"]
N = 4


def vmap(f, *args, batched, size=N) -> Var:
    """A `vmap` node of a staged function."""
    b: Builder = next(a for a in args if isinstance(a, Var)).builder
    types = []
    for a, flag in zip(args, batched):
        t = staged(b, a).type
        types.append(example(t) if flag else t)
    return apply("vmap", *args, graph=build(f, *types, name="one"), batched=tuple(batched), size=size)


def example(t):
    if isinstance(t, Struct):
        return Struct(t.kind, tuple(map(example, t.elems)), t.fields, t.cls)
    return Array(t.dtype, t.shape[1:]) if len(t.shape) > 1 else Scalar(t.dtype)


def stack(values):
    if isinstance(values[0], tuple):
        return tuple(stack([v[i] for v in values]) for i in range(len(values[0])))
    return None if values[0] is None else np.stack([np.asarray(v) for v in values])


def compare(a, b, rtol=1e-12):
    if isinstance(a, tuple):
        for x, y in zip(a, b, strict=True):
            compare(x, y, rtol)
    elif a is None:
        assert b is None
    else:
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-13)


def check(f, types, batched, *args, size=N):
    """The batched graph of `f` against a loop over examples, before and after optimisation."""
    one = expanded(build(f, *types))
    many = verify(vmap_graph(build(f, *types), batched, size), "vmap", transforms=False)

    def pick(value, i, flag, t):
        if not flag:
            return value
        x = value[i]
        return x.item() if isinstance(t, Scalar) and t.weak else x

    expected = stack([run(one, [pick(a, i, b, t) for a, b, t in zip(args, batched, types)]) for i in range(size)])
    compare(expected, run(many, args))
    run_all(many, args)
    return many


X = np.array([0.5, -1.0, 2.0, 0.1])


def test_primitives_and_what_is_the_same_for_all():
    def f(x, w, s):
        return staged(x.builder, (P["tanh"](P["matvec"](w, x)) * s, reduce_sum(x * x, axes=(0,)), s * 2.0, 3))

    xs, w = np.random.default_rng(0).normal(size=(N, 3)), np.arange(6.0).reshape(2, 3)
    many = check(f, (vec(3), Array("float64", (2, 3)), Scalar("float64")), (True, False, False), xs, w, np.float64(0.3))
    # What is the same for all is computed once, and given a batch axis at the end.
    (product,) = [n for n in many.nodes if n.fn.name == "mul" and n.type == Scalar("float64")]
    assert product.fn.name == "mul"


def test_structures_part_by_part():
    t = tuple_of(FLOAT, tuple_of(vec(2), INT))

    def f(p, y):
        return staged(y.builder, (p[1][0] * y, p))

    many = vmap_graph(build(f, t, FLOAT), ((True, (False, True)), True), N)
    verify(many, "vmap")
    out, (a, (b, c)) = run(many, [(X, (np.ones(2), np.arange(4))), X])
    np.testing.assert_array_equal(out, X[:, None] * np.ones(2))
    np.testing.assert_array_equal(a, X)
    assert b.shape == (4, 2) and c.shape == (4,)


COUNTS = (
    ((True, False), False),
    ((False, (True, False)), True),
    ((True, (False, True)), False),
    ((True, (True, True)), True),
)


@pytest.mark.parametrize("flags", [*COUNTS, (False, True)], ids=str)
def test_structures_that_only_some_examples_use(flags):
    """A branch, a loop with different bounds and one with different conditions; the value and all of its derivatives."""
    t = tuple_of(FLOAT, tuple_of(INT, vec(2)), Scalar("float64"))
    flags = ((*flags[0], flags[1]), True) if isinstance(flags[0], tuple) else flags

    def f(p, y):
        def turns(p, y):
            n = P["cast"](y * 2.0, dtype="int64", weak=True)

            def body(i, q, y):
                return staged(y.builder, ((sin(q[0]) + 0.5, (q[1][0] + 1, q[1][1] * y), q[2] + q[0]),))

            return for_((0, n, 1), body, (p,), (y,))[0]

        def until(p, y):
            test = lambda q, y: q[0] > y  # noqa: E731
            body = lambda q, y: staged(y.builder, ((q[0] - 0.75, (q[1][0] - 1, q[1][1] * q[0]), q[2] * q[0]),))  # noqa: E731
            return while_(test, body, (p,), (y,))[0]

        q = cond(y > 0.0, turns, until, p, y)
        return q[0] + reduce_sum(q[1][1] * q[1][1], axes=(0,)) * q[2] * P["cast"](q[1][0], dtype="float64", weak=True)

    def both(p, y):
        return vag(f, p, y, wrt=(0, 1))

    many = verify(expanded(vmap_graph(build(both, t, FLOAT), flags, N)), "vmap")
    one, rng = expanded(build(both, t, FLOAT)), np.random.default_rng(0)

    def draw(t, flag):
        if isinstance(t, Struct):
            return tuple(draw(e, flag if isinstance(flag, bool) else flag[k]) for k, e in enumerate(t.elems))
        shape = (N, *t.shape) if flag else t.shape
        drawn = rng.uniform(0.5, 1.0, shape) if t.is_float else rng.integers(2, 9, shape)
        return drawn if shape else as_type(drawn, t)

    def pick(x, t, flag, k):
        if isinstance(t, Struct):
            return tuple(pick(x[i], e, flag if isinstance(flag, bool) else flag[i], k) for i, e in enumerate(t.elems))
        return x if not flag else as_type(x[k], t)

    p = draw(t, flags[0])
    want = stack([run(one, [pick(p, t, flags[0], k), float(X[k])]) for k in range(N)])
    compare(want, run(many, [p, X]))


def branchy(x, y):
    return cond(x > 0.0, lambda x, y: sin(x) * y, lambda x, y: exp(x) + y * x, x, y)


@pytest.mark.parametrize("f", [branchy, grad(branchy), grad(grad(branchy))])
def test_branches(f):
    check(f, (FLOAT, FLOAT), (True, False), X, 2.0)
    check(f, (FLOAT, FLOAT), (False, True), 0.3, X)
    check(f, (FLOAT, FLOAT), (True, True), X, X[::-1].copy())


def repeat(x, n):
    return for_((0, n, 1), lambda i, a, x: staged(x.builder, (sin(a) * x + a,)), (x,), (x,))[0]


def repeat_indexed(x, n):
    def body(i, a, b, x):
        return staged(x.builder, (a * x + P["cast"](i, dtype="float64", weak=True), sin(b) + a))

    out = for_((n, -1, -2), body, (x, x), (x,))
    return out[0] * out[1]


@pytest.mark.parametrize("f", [repeat, repeat_indexed])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_loops(f, order):
    for _ in range(order):
        f = grad(f)
    check(f, (FLOAT, INT), (True, False), X, 3)
    check(f, (FLOAT, INT), (True, True), X, np.array([3, 0, 1, 5]))
    check(f, (FLOAT, INT), (False, True), 0.7, np.array([3, 0, 1, 5]))


def grow(x, y):
    return while_(lambda a, x, y: a < y, lambda a, x, y: staged(x.builder, (a * a * 0.5 + x * x + 0.6,)), (x,), (x, y))[
        0
    ]


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_while_loops_that_turn_differently(order):
    f = grow
    for _ in range(order):
        f = grad(f)
    check(f, (FLOAT, FLOAT), (True, False), X, 3.0)
    check(f, (FLOAT, FLOAT), (False, True), 0.4, np.array([1.0, 0.0, 5.0, 9.0]))


@pytest.mark.parametrize("order", [0, 1, 2])
def test_loops_in_branches_in_loops(order):
    def f(x, n):
        def body(i, acc, x, n):
            def then(acc, x, n):
                return for_((0, n, 1), lambda j, a, x: staged(x.builder, (a * sin(x) + a,)), (acc,), (x,))[0]

            return staged(x.builder, (cond(acc > 0.5, then, lambda acc, x, n: exp(acc) * x, acc, x, n),))

        return for_((0, n, 1), body, (x,), (x, n))[0]

    for _ in range(order):
        f = grad(f)
    check(f, (FLOAT, INT), (True, False), X, 3)
    check(f, (FLOAT, INT), (True, True), X, np.array([2, 3, 0, 1]))


def test_a_loop_that_would_not_end_where_it_is_not_taken():
    def f(x):
        halve = lambda x: while_(lambda a: a < 1.0, lambda a: staged(a.builder, (a * 2.0,)), (x,))[0]  # noqa: E731
        return cond(x > 0.0, halve, lambda x: x, x)

    check(f, (FLOAT,), (True,), X)


def test_calls():
    inner = build(branchy, FLOAT, FLOAT, name="inner")
    many = check(lambda x, y: call(inner, x, y) + call(inner, y, y), (FLOAT, FLOAT), (True, False), X, 2.0)
    assert sum(isinstance(n.fn, Graph) for n in many.nodes) == 2  # they stay calls


def test_a_chain_of_calls_is_batched_once(monkeypatch):
    built = []
    monkeypatch.setattr(
        Batcher, "build", lambda self, new, g, *rest, _f=Batcher.build: built.append(g) or _f(self, new, g, *rest)
    )
    f = build(branchy, FLOAT, FLOAT, name="f0")
    for k in range(10):
        f = build(lambda x, y, inner=f: call(inner, x, y) * y, FLOAT, FLOAT, name=f"f{k}")
    check(lambda x, y: call(f, x, y), (FLOAT, FLOAT), (True, False), X, 2.0)
    assert len(built) == len(set(built))


# With gradients, in both orders.


def test_gradient_of_a_mean_over_a_batch():
    def loss(w, x):
        return reduce_sum(P["tanh"](P["matvec"](w, x)), axes=(0,))

    def mean(w, xs):
        return reduce_sum(vmap(loss, w, xs, batched=(False, True)), axes=(0,)) * np.float64(1 / N)

    xs, w = np.random.default_rng(0).normal(size=(N, 3)), np.arange(6.0).reshape(2, 3) / 5
    check_orders(mean, w, xs, order=2)


def test_per_example_gradients():
    def loss(w, x):
        return reduce_sum(P["tanh"](w * x), axes=(0,))

    def f(w, xs):
        return vmap(lambda w, x: vag(loss, w, x)[1][0], w, xs, batched=(False, True))

    xs, w = np.random.default_rng(0).normal(size=(N, 3)), np.arange(3.0)
    got = run(expanded(build(f, vec(3), Array("float64", (N, 3)))), [w, xs])
    np.testing.assert_allclose(got, (1 - np.tanh(w * xs) ** 2) * xs)


def test_vmap_of_vmap():
    def f(x, y):
        return vmap(
            lambda x, y: vmap(lambda a, b: a * sin(b), x, y, batched=(False, True), size=3), x, y, batched=(True, False)
        )

    y = np.arange(3.0)
    np.testing.assert_allclose(run(expanded(build(f, vec(4), vec(3))), [X, y]), X[:, None] * np.sin(y))


def test_gradient_through_vmap_of_loops():
    def f(x, n):
        counts = staged(x.builder, np.array([2, 0, 3, 1]))
        ys = vmap(lambda x, k: P["as_scalar"](P["as_array"](repeat_weak(x, k))), x, counts, batched=(True, True))
        return reduce_sum(ys, axes=(0,))

    def repeat_weak(x, k):
        k = P["cast"](k, dtype="int64", weak=True)
        return for_((0, k, 1), lambda i, a, x: staged(x.builder, (sin(a) * x + a,)), (x,), (x,))[0]

    check_orders(f, X, 1, order=2)


# Effects.


def test_checks_hold_for_all_examples():
    def f(x):
        apply("check", x > -0.5, x, exception=ValueError, parts=("bad ", (0, "", "")))
        return x * 2.0

    g = vmap_graph(build(f, FLOAT), (True,), N)
    verify(g, "vmap")
    with pytest.raises(ValueError, match="bad -1.0"):
        run(g, [X])
    np.testing.assert_array_equal(run(g, [np.abs(X)]), np.abs(X) * 2)


def test_checks_where_only_some_examples_run():
    def safe(x):
        apply("check", x > 0.3, x, exception=ValueError, parts=("bad ", (0, "", "")))
        return P["log"](x)

    def f(x):
        return cond(x > 0.0, safe, lambda x: x, x)

    g = verify(vmap_graph(build(f, FLOAT), (True,), N), "vmap")
    with pytest.raises(ValueError, match=r"bad 0\.1"):
        run(g, [X])
    run(g, [np.array([0.5, -1.0, -2.0, 0.4])])

    def h(x, n):
        return for_((0, n, 1), lambda i, a: staged(a.builder, (safe(a) + 2.0,)), (x,))[0]

    check(h, (FLOAT, INT), (True, True), X, np.array([1, 0, 2, 0]))

    def of_what_is_shared(x, y):
        return cond(x > 0.0, lambda x, y: safe(y) * x, lambda x, y: x, x, y)

    g = verify(vmap_graph(build(of_what_is_shared, FLOAT, FLOAT), (True, False), N), "vmap")
    with pytest.raises(ValueError, match=r"bad 0\.25"):
        run(g, [X, 0.25])
    np.testing.assert_array_equal(run(g, [-np.abs(X), 0.25]), -np.abs(X))

    def few(x, n):
        apply("check", n < 3, n, exception=ValueError, parts=("many ", (0, "", "")))
        return x * 2.0

    g = verify(
        vmap_graph(build(lambda x, n: cond(x > 0.0, few, lambda x, n: x, x, n), FLOAT, INT), (True, False), N), "vmap"
    )
    with pytest.raises(ValueError, match="many 4"):
        run(g, [X, 4])
    np.testing.assert_array_equal(run(g, [-np.abs(X), 4]), -np.abs(X))


def test_raise_where_no_example_goes():
    def f(x):
        def wrong(x):
            return apply("raise", x, exception=ValueError, parts=("bad ", (0, "", "")), type=FLOAT)

        return cond(x > 0.0, wrong, lambda x: x * 2.0, x)

    g = verify(vmap_graph(build(f, FLOAT), (True,), N), "vmap")
    with pytest.raises(ValueError, match=r"bad 0\.5"):
        run(g, [X])
    np.testing.assert_array_equal(run(g, [-np.abs(X)]), -np.abs(X) * 2)


def test_a_raise_for_all_examples_shows_the_first():
    def f(x, y):
        def wrong(x, y):
            return apply("raise", x, exception=ValueError, parts=("bad ", (0, "", "")), type=FLOAT)

        return cond(y > 0.0, wrong, lambda x, y: x * 2.0, x, y)

    g = verify(vmap_graph(build(f, FLOAT, FLOAT), (True, False), N), "vmap")
    with pytest.raises(ValueError, match=r"bad 0\.5"):
        run(g, [X, 1.0])
    np.testing.assert_array_equal(run(g, [X, -1.0]), X * 2)


def test_what_would_be_computed_behind_a_raise():
    def f(x, y):
        def wrong(x, y):
            return apply("raise", x, exception=ValueError, parts=("bad ", (0, "", "")), type=FLOAT) * y + x

        return cond(x > 0.0, wrong, lambda x, y: x * 2.0, x, y)

    g = verify(vmap_graph(build(f, FLOAT, FLOAT), (True, False), N), "vmap")
    np.testing.assert_array_equal(run(g, [-np.abs(X), 3.0]), -np.abs(X) * 2)


def test_failures_that_show_structures():
    def f(x, y):
        pair = staged(x.builder, (x, (y, x * y)))
        apply("check", x < 0.25, pair, exception=ValueError, parts=("bad ", (0, "", "")))
        return x

    g = verify(vmap_graph(build(f, FLOAT, FLOAT), (True, False), N), "vmap")
    with pytest.raises(ValueError, match=r"bad \(0\.5, \(3\.0, 1\.5\)\)"):
        run(g, [X, 3.0])


def test_a_batching_rule_that_gives_something_else_is_an_internal_error(monkeypatch):
    monkeypatch.setattr(REGISTRY["sin"], "batch_rule", lambda size, batched, x: reduce_sum(x, axes=(0,)))
    with pytest.raises(InternalError, match="the batching rule of sin gives np.float64 for"):
        vmap_graph(build(lambda x: sin(x), FLOAT), (True,), N)


def test_an_operand_of_whose_batch_axis_the_declared_axes_say_nothing_is_an_internal_error():
    axes = Axes(lambda shapes, out: Relation(((0,), ()), (0,)), leading=(0,))
    prim = Primitive("scaled", "opaque", lambda x, y: x * y, axes=axes)
    del REGISTRY["scaled"]  # it registers itself; the tests of the registry are for the product's
    rule, x, y = from_axes(prim), np.arange(6.0).reshape(2, 3), np.array([2.0, 3.0])
    np.testing.assert_array_equal(rule(2, (True, False), x, 2.0), x * 2.0)
    for batched, args in (((True, True), (x, y)), ((False, True), (x[0], y))):
        with pytest.raises(InternalError, match="the axes of scaled do not say"):
            rule(2, batched, *args)


def test_a_graph_that_uses_what_is_not_there_is_an_internal_error():
    """Never a wrong program, by whichever transform it is first seen."""
    g, other = build(lambda x: sin(x), FLOAT), build(lambda x: x * x, FLOAT)
    g.output = other.output
    for transformed in (
        lambda: vmap_graph(g, (True,), N),
        lambda: expand(build(lambda x: vag(g, x)[0], FLOAT)),
        lambda: expand(build(lambda x: apply("jvp", x, x, graph=g, wrt=(0,))[1][0], FLOAT)),
    ):
        with pytest.raises(InternalError, match="used before it is defined"):
            transformed()


def test_each_example_prints(capsys):
    def f(x):
        apply("print", x, parts=((0, None, ""),), end="\n")
        return x * 2.0

    g = verify(vmap_graph(build(f, FLOAT), (True,), N), "vmap")
    np.testing.assert_array_equal(run(g, [X]), X * 2.0)
    assert capsys.readouterr().out == "".join(f"{x}\n" for x in X.tolist())


# What stands around the values.


def shared_update(x, m):
    apply("ref_write", m, staged(x.builder, np.ones(3)), index=0)
    return x * 2.0


def test_an_update_that_is_the_same_for_all_is_done_once():
    ref = Ref("model", ("w",), (vec(),))
    many = verify(vmap_graph(build(shared_update, FLOAT, ref), (True, False), N), "vmap")
    assert [n.fn.name for n in many.nodes].count("ref_write") == 1

    def own(x, m):
        apply("ref_write", m, P["broadcast_to"](P["as_array"](x), shape=(3,)), index=0)
        return x

    def masked(x, m):
        return cond(x > 0.0, shared_update, lambda x, m: x, x, m)

    for f in (own, masked):
        with pytest.raises(TypeError_, match="update of a model inside of vmap"):
            vmap_graph(build(f, FLOAT, ref), (True, False), N)


def test_calls_where_only_some_examples_run():
    inner = build(branchy, FLOAT, FLOAT, name="inner")
    many = check(
        lambda x, y: cond(x > 0.2, lambda x, y: call(inner, x, y) + 1.0, lambda x, y: x, x, y),
        (FLOAT, FLOAT),
        (True, False),
        X,
        2.0,
    )
    assert not loops(many)  # not example by example


def test_derivatives_of_what_is_masked_are_0_in_tuples_too():
    def one(x, y):
        pair = staged(x.builder, (x, (y, 2.0)))
        return cond(x > 0.0, lambda p: P["log"](p[0]) * p[1][0], lambda p: p[0] * p[1][1], pair)

    def f(x, y):
        return reduce_sum(vmap(one, x, y, batched=(True, False)), axes=(0,))

    g = expanded(build(grad(f), vec(N), FLOAT))
    np.testing.assert_array_equal(run(g, [np.array([0.0, 2.0, -1.0, 4.0]), 3.0]), [2.0, 1.5, 2.0, 0.75])


def test_masked_code_reads_an_array_of_all_examples_as_it_is():
    def f(x, w):
        return cond(x > 0.0, lambda x, w: reduce_sum(sin(w), axes=(0,)) * x, lambda x, w: x, x, w)

    many = verify(vmap_graph(build(f, FLOAT, vec(3)), (True, False), N), "vmap")
    w = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(run(many, [X, w]), np.where(X > 0, np.sum(np.sin(w)) * X, X), rtol=1e-14)
    assert all(getattr(n.type, "shape", ()) != (N, 3) for g in all_graphs(many) for n in g.nodes)


def test_checks_of_what_is_the_same_for_all():
    def f(x, y):
        apply("check", y > 0.0, y, exception=ValueError, parts=("bad ", (0, "", "")))
        return x * y

    many = verify(vmap_graph(build(f, FLOAT, FLOAT), (True, False), N), "vmap")
    assert "reduce_all" not in [n.fn.name for n in many.nodes]
    with pytest.raises(ValueError, match="bad -1.0"):
        run(many, [X, -1.0])
    np.testing.assert_array_equal(run(many, [X, 2.0]), X * 2.0)


def loops(g):
    return [n for h in all_graphs(g) for n in h.nodes if getattr(n.fn, "name", "") in ("for_loop", "while_loop")]


def names(g):
    return [getattr(n.fn, "name", "") for h in all_graphs(g) for n in h.nodes]


def test_a_while_loop_that_turns_as_often_for_all_has_no_mask():
    def f(x, y):
        body = lambda y, a, x: staged(x.builder, (y * 0.5, a * x))  # noqa: E731
        return while_(lambda y, a, x: y > 1.0, body, (y, x), (x,))[1]

    many = check(f, (FLOAT, FLOAT), (True, False), X, 9.0)
    (loop,) = loops(many)
    assert names(loop.attrs["cond"]) == ["gt"] and "where" not in names(many)


def test_only_what_may_have_a_derivative_is_masked_where_it_enters_a_branch():
    def f(x, n, k):
        return cond(
            x > 0.0, lambda x, n, k: x * P["cast"](n + k, dtype="float64", weak=True), lambda x, n, k: x, x, n, k
        )

    many = check(f, (FLOAT, INT, INT), (True, True, False), X, np.array([3, 0, 1, 5]), 2)
    masked = [n.type.dtype for n in many.nodes if n.fn.name == "stop_gradient"]
    assert masked == ["float64", "float64"]  # x, on both sides


@pytest.mark.parametrize(("f", "types", "batched"), [
    (repeat, (FLOAT, INT), (True, False)),
    (repeat, (FLOAT, INT), (True, True)),
    (grow, (FLOAT, FLOAT), (True, False)),
])  # fmt: skip
def test_names_and_types_of_loops_stay(f, types, batched):
    one, many = build(f, *types), vmap_graph(build(f, *types), batched, N)
    assert many.name == f"{one.name}.vmap" and [p.name for p in many.params] == [p.name for p in one.params]
    for old, new in zip(loops(one), loops(many), strict=True):
        for key in ("body", "cond"):
            if key in old.attrs:
                assert new.attrs[key].name == old.attrs[key].name
                names = [p.name for p in old.attrs[key].params]
                assert [p.name for p in new.attrs[key].params][: len(names)] == names
        if old.fn.name == "for_loop":
            assert [a.type for a in new.args[:3]] == [INT] * 3 and new.attrs["body"].params[0].type == INT


def test_undefined_values_and_tapes_get_batch_axes():
    """Each way through a condition saves values of its own; on the other they are undefined, or a tape is empty."""

    def f(x, n):
        def then(x, n):
            return for_((0, n, 1), lambda i, a, x: staged(x.builder, (sin(a) * x,)), (x,), (x,))[0]

        return cond(n > 2, then, lambda x, n: exp(x), x, n)

    for order in (1, 2):
        g = f
        for _ in range(order):
            g = grad(g)
        check(g, (FLOAT, INT), (True, False), X, 3)
        check(g, (FLOAT, INT), (True, True), X, np.array([3, 1, 4, 2]))
        check(g, (FLOAT, INT), (False, True), 0.3, np.array([3, 1, 4, 2]))


def test_a_tape_of_what_is_not_batched():
    def f(x, y):
        tape = Var(x.builder, x.builder.emit(REGISTRY["tape_new"], (), {"elem": FLOAT, "owner": ""}))
        last = P["tape_pop"](P["tape_push"](P["tape_push"](tape, y), y * 3.0))
        return x * last[1] + P["tape_pop"](last[0])[1]

    check(f, (FLOAT, FLOAT), (True, False), X, 2.0)
