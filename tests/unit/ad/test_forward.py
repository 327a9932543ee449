"""Forward mode on typed graphs: against reverse mode, through control and tapes, under batching, and its refusals."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay.abstract.types import FLOAT, INT, Scalar, tuple_of
from myia_relay.ad.expand import expand
from myia_relay.backend.interpreter import run
from myia_relay.ir.build import Builder, Var
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY
from myia_relay.ir.rewrite import all_graphs
from myia_relay.utils.errors import GradError

from ...typed_graphs import P, apply, build, call, cond, expanded, for_, grad, gradient, run_all, vag, vec, while_


def jv(f, *args):
    """The pair (value, tangents) of a staged function: `args` are its arguments, then a tangent for each."""
    n = len(args) // 2
    graph = f if isinstance(f, Graph) else build(f, *[a.type for a in args[:n]], name="inner")
    return apply("jvp", *args, graph=graph, wrt=tuple(range(n)))


def forward(f, x, direction=1.0):
    """The derivative of a staged function of one float by all executors; verified on the way."""
    types = [FLOAT, FLOAT]
    return run_all(expanded(build(lambda a, t: jv(f, a, t)[1][0], *types, name="jvp")), (x, direction))


def sines(x):
    return for_((0, 5, 1), lambda i, c, k: (P["sin"](c) * k,), (x,), (x,))[0]


def squares(x):
    return while_(lambda c: c < 50.0, lambda c: (c * c,), (x,))[0]


def branches(x):
    return cond(x > 1.0, lambda a: a * a * a, lambda a: P["exp"](a), x)


def nested(x):
    def iteration(i, c, k):
        inner = for_((0, i, 1), lambda j, d, m: (d * m + P["cos"](d),), (c,), (k,))[0]
        return (cond(inner > 0.5, lambda a: P["tanh"](a), lambda a: a * a, inner),)

    return for_((0, 4, 1), iteration, (x,), (x,))[0]


def called(x):
    g = build(lambda a, b: a * b + P["sin"](a), FLOAT, FLOAT, name="g")
    return call(g, x, x * x) * call(g, x * 2.0, x)


def structured(x):
    pair = tuple_of(FLOAT, FLOAT)
    s = P["make_struct"](x * x, P["make_struct"](x, x * 3.0, type=pair), type=tuple_of(FLOAT, pair))
    return s[0] * s[1][1] + s[1][0]


PROGRAMS = [sines, squares, branches, nested, called, structured]


@pytest.mark.parametrize("f, x", [(f, 1.3) for f in PROGRAMS] + [(f, 0.7) for f in PROGRAMS if f is not squares])
def test_forward_is_reverse(f, x):
    assert forward(f, x) == pytest.approx(gradient(f, x), rel=1e-12)
    assert forward(f, x, -2.5) == pytest.approx(-2.5 * gradient(f, x), rel=1e-12)


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.sampled(2)
def test_second_and_third_orders_agree_whichever_way_they_are_made(f):
    x = 1.3
    ff = lambda a: jv(f, a, a * 0.0 + 1.0)[1][0]  # noqa: E731
    second = gradient(grad(f), x)
    assert forward(grad(f), x) == pytest.approx(second, rel=1e-11)  # forward over reverse: through tapes
    assert gradient(ff, x) == pytest.approx(second, rel=1e-11)  # reverse over forward
    assert forward(ff, x) == pytest.approx(second, rel=1e-11)
    third = gradient(grad(grad(f)), x)
    assert forward(grad(ff), x) == pytest.approx(third, rel=1e-9)
    assert gradient(lambda a: jv(grad(f), a, a * 0.0 + 1.0)[1][0], x) == pytest.approx(third, rel=1e-9)


def test_a_loop_carries_tangents_only_where_they_are():
    """One of two carried values depends on the input; the other has no tangent, and neither has the index."""

    def f(x):
        out = for_((0, 3, 1), lambda i, c, n, k: (c * k, n + 1.0), (x, x.const(0.0)), (x,))
        return out[0]

    graph = expanded(build(lambda a, t: jv(f, a, t)[1][0], FLOAT, FLOAT))
    (loop,) = [n for n in graph.nodes if getattr(n.fn, "name", "") == "for_loop"]
    assert loop.attrs["carried"] == 3


def test_names_say_what_graphs_were_made_of():
    graph = expanded(build(lambda a, t: jv(nested, a, t)[1][0], FLOAT, FLOAT))
    assert {g.name for g in all_graphs(graph)} >= {"body.jvp", "then.jvp", "orelse.jvp"}


def test_tangents_are_repeated_only_where_they_lack_axes():
    def names(f):
        g = expanded(build(lambda a, t: jv(f, a, t)[1][0], vec(), vec()))
        return [n.fn.name for n in g.nodes]

    assert "broadcast_to" not in names(lambda a: P["sin"](a) * a)
    assert names(lambda a: a + np.ones((2, 3))).count("broadcast_to") == 1


def test_nothing_is_stored():
    graph = expanded(build(lambda a, t: jv(nested, a, t)[1][0], FLOAT, FLOAT))
    names = {getattr(n.fn, "name", "") for g in all_graphs(graph) for n in g.nodes}
    assert not any("tape" in n for n in names)


def test_a_constant_function_has_tangent_zero():
    assert forward(lambda x: x * 0.0 + P["stop_gradient"](x), 2.0) == 0.0
    assert forward(lambda x: P["floor"](x), 2.5) == 0.0


def test_the_forward_version_of_a_recursion_is_a_recursion():
    """f(n, x) = x if n <= 1 else sin(x) f(n - 1, 1.1 x)"""
    g = Graph("f")
    b = Builder(g)
    n, x = Var(b, g.add_parameter("n", INT)), Var(b, g.add_parameter("x", FLOAT))
    g.output = x.node  # its type, for the calls inside
    again = lambda n, x: P["sin"](x) * call(g, n - 1, x * 1.1)  # noqa: E731
    g.output = cond(n > 1, again, lambda n, x: x, n, x).node

    def f(x):
        return np.prod(np.sin(x * 1.1 ** np.arange(4))) * x * 1.1**4

    wrapper = build(lambda n, x, t: apply("jvp", n, x, t, graph=g, wrt=(1,)), INT, FLOAT, FLOAT)
    value, (got,) = run(expanded(wrapper), (5, 0.7, 2.0))
    assert value == pytest.approx(f(0.7), rel=1e-12)
    assert got == pytest.approx((f(0.7 + 1e-6) - f(0.7 - 1e-6)) / 1e-6, rel=1e-7)


def test_batched_forward_mode_is_a_loop():
    xs = np.array([0.3, 0.9, 1.7])

    def one(a):
        return jv(nested, a, a * 0.0 + 1.0)[1][0]

    graph = build(one, Scalar("float64"), name="one")
    many = expanded(build(lambda v: apply("vmap", v, graph=graph, batched=(True,), size=3), vec(3)))
    got = run_all(many, (xs,))
    np.testing.assert_allclose(got, [forward(nested, float(x)) for x in xs], rtol=1e-12)


def test_perturbations_are_not_confused():
    """d/dx [x d/dy (x + y)] is 1."""

    def outer(x):
        inner = jv(lambda y, c: y + c, x, x, x * 0.0 + 1.0, x * 0.0)
        return x * inner[1][0]

    assert forward(outer, 2.0) == 1.0


def test_tangents_of_integers_and_structures_are_left_out():
    def f(x, n):
        return (x * 2.0, n, (x, n + 1))

    graph = build(f, FLOAT, Scalar("int64", True), name="f")
    wrapper = build(lambda a, n, t: apply("jvp", a, n, t, graph=graph, wrt=(0,)), FLOAT, Scalar("int64", True), FLOAT)
    value, tangents = run_all(expanded(wrapper), (3.0, 4, 0.5))
    assert value == (6.0, 4, (3.0, 5)) and tangents == (1.0, 0.5)


def test_a_primitive_without_a_rule_is_refused(monkeypatch):
    monkeypatch.setattr(REGISTRY["tanh"], "jvp_rule", None)
    with pytest.raises(GradError, match="'tanh' has no derivative"):
        expand(build(lambda a, t: jv(lambda x: P["tanh"](x), a, t), FLOAT, FLOAT))


# Rules and checkpoints.


def scaled(x):
    """x -> x * x with the rule dx = 10 dy x."""
    f = build(lambda a: a * a, x.type, name="f")
    rule = build(lambda a, out, d: (d * a * 10.0,), x.type, x.type, x.type, name="rule")
    return apply("custom_vjp", x, graph=f, rule=rule, wrt=(0,))


def test_a_rule_is_used_at_every_order_and_by_forward_mode():
    assert gradient(scaled, 3.0) == 30.0
    assert gradient(grad(scaled), 3.0) == 10.0
    assert forward(scaled, 3.0, 2.0) == 60.0
    assert forward(grad(scaled), 3.0) == 10.0
    assert run_all(expanded(build(scaled, FLOAT)), (3.0,)) == 9.0


def test_a_batched_rule_sums_over_what_is_shared():
    graph = build(lambda s, a: scaled(s) * a, Scalar("float64"), Scalar("float64"), name="one")

    def loss(s, v):
        many = apply("vmap", s, v, graph=graph, batched=(False, True), size=3)
        return REGISTRY["reduce_sum"](many, axes=(0,))

    types = [Scalar("float64"), vec(3)]
    g = expanded(build(lambda s, v: vag(loss, s, v)[1][0], *types))
    assert run_all(g, (np.float64(2.0), np.array([1.0, 2.0, 3.0]))) == 20.0 * 6.0


def checkpointed(f):
    def g(x):
        return apply("checkpoint", x, graph=build(f, x.type, name="f"))

    return g


@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.sampled(2)
def test_a_checkpoint_changes_no_derivative(f):
    g = checkpointed(f)
    assert gradient(g, 1.3) == pytest.approx(gradient(f, 1.3), rel=1e-12)
    assert gradient(grad(g), 1.3) == pytest.approx(gradient(grad(f), 1.3), rel=1e-11)
    assert forward(grad(g), 1.3) == pytest.approx(gradient(grad(f), 1.3), rel=1e-11)


def test_a_checkpoint_keeps_its_arguments_alone():
    """What the loop keeps for each iteration is the carried value, not the three sines."""

    def three(c):
        return P["sin"](P["sin"](P["sin"](c)))

    def loop(f):
        return lambda x: for_((0, 5, 1), lambda i, c: (f(c),), (x,))[0]

    def pushes(f):
        graph = expanded(build(lambda x: vag(loop(f), x)[1][0], FLOAT))
        return sum(n.fn is REGISTRY["tape_push"] for g in all_graphs(graph) for n in g.nodes)

    assert pushes(three) == 3 and pushes(checkpointed(three)) == 1


def test_types_of_requests():
    g = build(lambda x: (x, x * 2.0), vec(), name="g")
    assert REGISTRY["jvp"].infer_rule(vec(), vec(), graph=g, wrt=(0,)) == tuple_of(
        g.output.type, tuple_of(vec(), vec())
    )
    assert REGISTRY["vjp"].infer_rule(vec(), vec(), vec(), graph=g, wrt=(0,)) == tuple_of(vec())
