"""Reverse mode against central differences: straight lines, branches, loops, calls, structures; orders 1 to 3."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import grad as differentiate
from myia_relay.abstract.types import FLOAT, INT, Array, Ref, Scalar, Struct, tuple_of
from myia_relay.ad.common.cotangents import add, coerce
from myia_relay.ad.expand import vjp_graph
from myia_relay.backend.interpreter import run
from myia_relay.backend.python import compile_python
from myia_relay.ir.build import Builder, as_type
from myia_relay.ir.node import Constant, Graph
from myia_relay.ir.rewrite import all_graphs
from myia_relay.ir.verify import verify
from myia_relay.opt.pipeline import optimize
from myia_relay.prims.ops.data_functions import Functions
from myia_relay.utils.errors import GradError, InternalError
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
    gradient,
    numeric,
    staged,
    vag,
    vec,
    while_,
)

sin, exp, tanh, reduce_sum = P["sin"], P["exp"], P["tanh"], P["reduce_sum"]


def total(x):
    return reduce_sum(x, axes=tuple(range(x.ndim)))


# Straight lines.


def test_scalar_chain():
    check_orders(lambda x: sin(x * x) / (x + 2.0) + exp(-x), 0.7, order=3, rtol=1e-4, atol=1e-4)


def test_each_argument():
    def f(x, y):
        return x * x * x * y * y * y * y

    assert gradient(f, 2.0, 3.0) == 3 * 2.0**2 * 3.0**4
    assert gradient(f, 2.0, 3.0, wrt=1) == 4 * 2.0**3 * 3.0**3


def test_arrays_and_broadcasting():
    x, s = np.array([0.3, -1.2, 2.0]), 1.5
    check_orders(lambda x, s: total(sin(x * x) * x), x, s, order=2)
    check_orders(lambda s, x: total(tanh(x * P["cast"](s, dtype="float64"))), s, x, order=2)


def test_unused_arguments_have_zeros_of_their_type():
    types = (FLOAT, vec(), tuple_of(FLOAT, INT))
    g = build(lambda x, y, z: vag(lambda x, y, z: x * 2.0, x, y, z, wrt=(0, 1, 2)), *types)
    value, (dx, dy, dz) = run(expanded(g), [3.0, np.ones(3), (1.0, 2)])
    assert value == 6.0 and type(value) is float
    assert dx == 2.0 and type(dx) is float
    np.testing.assert_array_equal(dy, np.zeros(3))
    assert dz == (0.0, None)


def test_perturbations_are_not_confused():
    # d/dx [x * d/dy (x + y)] = 1
    def f(x):
        return x * vag(lambda y, x: x + y, staged(x.builder, 3.0), x, wrt=(0,))[1][0]

    assert gradient(f, 5.0) == 1.0


@pytest.mark.parametrize("t", [FLOAT, Scalar("float64"), Array("float64", ())], ids=str)
def test_a_logistic_function_is_finite_where_its_exponential_is_not(t):
    def at(f, x):
        return float(run(expanded(build(grad(f), t)), [as_type(np.float64(x), t)]))

    with np.errstate(all="ignore"):
        for f in (lambda x: 1.0 / (1.0 + exp(x)), lambda x: 1.0 / (exp(x) + 1.0)):
            assert at(f, 800.0) == at(f, -800.0) == 0.0 and at(f, 0.0) == -0.25


@pytest.mark.parametrize("one", [2.0, 0.5])
def test_what_only_looks_like_a_logistic_function(one):
    e, x = np.exp(0.5), 0.5
    np.testing.assert_allclose(gradient(lambda x: one / (1.0 + exp(x)), x), -one * e / (1 + e) ** 2, rtol=1e-14)
    np.testing.assert_allclose(gradient(lambda x: 1.0 / (one + exp(x)), x), -e / (one + e) ** 2, rtol=1e-14)
    np.testing.assert_allclose(gradient(lambda x: x / (1.0 + exp(x)), x), (1 + e - x * e) / (1 + e) ** 2, rtol=1e-14)
    np.testing.assert_allclose(gradient(lambda x: 1.0 / (1.0 - exp(x)), x), e / (1 - e) ** 2, rtol=1e-14)
    np.testing.assert_allclose(gradient(lambda x: 1.0 * (1.0 + exp(x)), x), e, rtol=1e-14)
    np.testing.assert_allclose(gradient(lambda x: 1.0 / (1.0 * exp(x)), x), -1 / e, rtol=1e-14)
    np.testing.assert_allclose(
        gradient(lambda x: 1.0 / (1.0 + sin(x)), x), -np.cos(x) / (1 + np.sin(x)) ** 2, rtol=1e-14
    )


def test_stop_gradient_and_integers():
    def f(x, n):
        return P["stop_gradient"](x * x) * x + P["cast"](n, dtype="float64", weak=True) * x

    assert gradient(f, 3.0, 4) == 9.0 + 4.0


def test_where_does_not_leak_nan():
    def f(x):
        return P["where"](x > 0.0, P["log"](x), x * 2.0)

    assert gradient(f, -1.0) == 2.0


def test_structures_cost_nothing():
    def f(x):
        pair = staged(x.builder, (x * 2.0, (x, sin(x))))
        return pair[1][1] * pair[0]

    g = expanded(build(grad(f), FLOAT))
    assert not any(n.fn.name in ("make_struct", "get_item") for n in g.nodes)
    check_orders(f, 0.4, order=3, rtol=1e-4, atol=1e-4)


def test_gradient_by_a_structure_argument():
    t = Struct("dict", (FLOAT, vec(2), INT), ("a", "b", "n"))
    g = build(lambda p: vag(lambda p: total(p[1]) * p[0] * p[0], p, wrt=(0,))[1][0], t)
    got = run(expanded(g), [{"a": 3.0, "b": np.array([1.0, 2.0]), "n": 1}])
    assert got["a"] == 18.0 and got["n"] is None
    np.testing.assert_array_equal(got["b"], [9.0, 9.0])


def test_has_aux():
    g = build(lambda x: vag(lambda x: staged(x.builder, (x * x, x + 1.0)), x, has_aux=True), FLOAT)
    assert run(expanded(g), [3.0]) == ((9.0, 4.0), (6.0,))


def test_kinds_of_floats():
    for t, x in [(Scalar("float32"), np.float32(0.5)), (Array("float32", ()), np.array(0.5, "float32"))]:
        got = run(expanded(build(grad(lambda x: x * x * x), t)), [x])
        assert got == np.float32(0.75) and got.dtype == np.float32 and isinstance(got, type(x))


def test_vjp_graph():
    g = verify(vjp_graph(build(lambda x, y: staged(x.builder, (x * y, sin(y))), vec(), vec()), (0, 1)), "vjp")
    x, y, a, b = (np.array(v) for v in ([1.0, 2, 3], [0.1, 0.2, 0.3], [1.0, 0, 2], [0.5, 1, 0]))
    (out, _), (dx, dy) = run(g, [x, y, (a, b)])
    np.testing.assert_allclose(out, x * y)
    np.testing.assert_allclose(dx, a * y)
    np.testing.assert_allclose(dy, a * x + b * np.cos(y))


def test_a_constant_cotangent_takes_the_kind_of_its_argument():
    b = Builder(Graph("f"))
    for have, want in ((np.float64(2.0), FLOAT), (2.0, Scalar("float64")), (2.0, Array("float64", ()))):
        made = coerce(b, b.constant(have), want, "a rule")
        assert isinstance(made, Constant) and made.type == want and made.value == 2.0
        assert isinstance(made.value, float) == (not isinstance(want, Array))
    assert not b.graph.nodes
    with pytest.raises(InternalError, match="vjp rule of a rule gives a float64"):
        coerce(b, b.constant(np.ones(2)), FLOAT, "a rule")
    with pytest.raises(InternalError, match="two cotangents meet"):
        tape = b.emit(P["tape_new"], (), {"elem": FLOAT})
        add(b, Functions(), tape, tape)


# Branches.


def branchy(x, y):
    return cond(x > 0.0, lambda x, y: sin(x) * x * y, lambda x, y: exp(x) + y * y, x, y)


@pytest.mark.parametrize("x", [0.8, -0.8])
def test_branches(x):
    check_orders(branchy, x, 1.3, order=3, rtol=1e-4, atol=1e-4)
    check_orders(branchy, x, 1.3, wrt=1, order=2)


@pytest.mark.parametrize("x", [0.8, -0.8])
def test_branch_that_ignores_its_operand(x):
    check_orders(lambda x: cond(x > 0.0, lambda x: x * x * x, lambda x: staged(x.builder, 5.0), x), x, order=2)


def test_branch_not_taken_is_not_run():
    # log of a negative number: NaN in the branch that is not taken
    assert gradient(lambda x: cond(x > 0.0, lambda x: P["log"](x), lambda x: x * 3.0, x), -2.0) == 3.0


@pytest.mark.parametrize("x", [2.5, 0.5, -1.5])
def test_nested_branches(x):
    def inner(x, y):
        return cond(x > 1.0, lambda x, y: x * x * y, lambda x, y: sin(x * y), x, y)

    check_orders(
        lambda x, y: cond(x > 0.0, lambda x, y: inner(x, y) * x, lambda x, y: exp(x * y), x, y),
        x,
        0.7,
        order=3,
        rtol=1e-3,
        atol=1e-3,
    )


def test_structures_through_branches():
    def f(x):
        pair = cond(
            x > 0.0,
            lambda x: staged(x.builder, (x * x, 3, x)),
            lambda x: staged(x.builder, (x, 4, sin(x))),
            x,
        )
        return pair[0] * pair[2]

    check_orders(f, 0.6, order=2)
    check_orders(f, -0.6, order=2)


# Loops.


def power(x, n):
    """x ** (n + 1) by a counted loop."""
    return for_((0, n, 1), lambda i, acc, x: staged(x.builder, (acc * x,)), (x,), (x,))[0]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_counted_loops(n):
    check_orders(power, 1.3, n, order=3, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("bounds", [(0, 5, 1), (5, 0, -1), (1, 10, 3), (10, 1, -4), (3, 3, 1), (5, 2, 1), (0, 7, 2)])
def test_ranges_run_backwards(bounds):
    def f(x, start, stop, step):
        def body(i, acc, x):
            weight = P["cast"](i, dtype="float64", weak=True)
            return staged(x.builder, (sin(acc * weight) + x,))

        return for_((start, stop, step), body, (x,), (x,))[0]

    check_orders(f, 0.6, *bounds, order=2)  # bounds known at run time only
    check_orders(lambda x: f(x, *bounds), 0.6, order=2)


def newton(x):
    """A square root by a loop whose number of iterations depends on the values."""

    def test(y, x):
        d = y * y - x
        return P["abs"](d) > 1e-12

    return while_(test, lambda y, x: staged(x.builder, ((y + x / y) * 0.5,)), (x,), (x,))[0]


def test_while_loops():
    x = 2.0
    assert gradient(newton, x) == pytest.approx(0.5 / np.sqrt(x), rel=1e-8)
    second = gradient(lambda x: grad(newton)(x), x)
    assert second == pytest.approx(-0.25 * x**-1.5, rel=1e-6)


@pytest.mark.parametrize("x", [0.4, 3.0])
def test_while_loops_that_may_not_run(x):
    def f(x):
        return while_(lambda y, x: y < 2.0, lambda y, x: staged(x.builder, (y * y * x + x + 0.3,)), (x,), (x,))[0]

    check_orders(f, x, order=3, rtol=1e-3, atol=1e-3)


def nested(x, n):
    def outer(i, acc, x, n):
        def inner(j, a, x):
            return staged(x.builder, (sin(a) * x,))

        a = for_((0, n, 1), inner, (acc,), (x,))[0]
        return staged(x.builder, (a + acc * x,))

    return for_((0, n, 1), outer, (x,), (x, n))[0]


@pytest.mark.parametrize("n", [0, 1, 3])
def test_nested_loops(n):
    check_orders(nested, 1.1, n, order=3, rtol=1e-3, atol=1e-3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_branches_and_loops_in_each_other(n):
    def body(i, acc, x, n):
        def then(acc, x, n):
            return for_((0, n, 1), lambda j, a, x: staged(x.builder, (a * sin(x) + a,)), (acc,), (x,))[0]

        def orelse(acc, x, n):
            return cond(acc > 1.0, lambda a, x: exp(-a) * x, lambda a, x: a * a + x, acc, x)

        even = P["eq"](P["mod"](i, 2), 0)
        return staged(x.builder, (cond(even, then, orelse, acc, x, n),))

    check_orders(lambda x, n: for_((0, n, 1), body, (x,), (x, n))[0], 0.7, n, order=3, rtol=1e-3, atol=1e-3)


def test_loop_over_an_array_carried():
    def f(x, w):
        def body(i, h, w):
            return staged(w.builder, (tanh(h * w + h),))

        return total(for_((0, 4, 1), body, (x,), (w,))[0])

    x, w = np.array([0.1, -0.4, 0.9]), np.array([0.5, 0.8, -0.3])
    check_orders(f, x, w, order=2)
    check_orders(f, x, w, wrt=1, order=2)


def test_carried_structures_and_counters():
    def f(x):
        def body(i, s, k):
            return staged(k.builder, ((s[0] * s[1], s[1] + 0.1), P["add"](k, 1)))

        out = for_((0, 3, 1), body, (staged(x.builder, (x, x)), 0))
        return out[0][0] * out[0][1]

    check_orders(f, 0.9, order=3, rtol=1e-3, atol=1e-3)


def test_overwritten_carry():
    def f(x):
        return for_((0, 3, 1), lambda i, a, x: staged(x.builder, (x * x,)), (x,), (x,))[0]

    check_orders(f, 0.9, order=2)


def test_only_what_is_needed_goes_on_tapes():
    """A linear loop needs no tape; a product needs one value an iteration; constants of the loop need none."""

    def tapes(f):
        g = expanded(build(grad(f), FLOAT))
        return sum(n.fn.name == "tape_new" for h in all_graphs(g) for n in h.nodes)

    assert tapes(lambda x: for_((0, 9, 1), lambda i, a, x: staged(x.builder, (a + x,)), (x,), (x,))[0]) == 0
    assert tapes(lambda x: for_((0, 9, 1), lambda i, a, x: staged(x.builder, (a * x,)), (x,), (x,))[0]) == 1
    assert tapes(lambda x: for_((0, 9, 1), lambda i, a, x: staged(x.builder, (a + sin(x) * x,)), (x,), (x,))[0]) == 0


def of_a_pair(make):
    """The second part of a pair does not depend on x; its sine is what is asked for."""

    def f(x, k, n):
        pair = make(x, k, n)
        return pair[0] * sin(pair[1])

    return f


def loop_with_a_branch(x, k, n):
    def body(i, a, c):
        pair = cond(P["eq"](P["mod"](i, 2), 0), lambda a, c: staged(a.builder, (a * a, c + 1.0)),
                    lambda a, c: staged(a.builder, (c * a, c * 2.0)), a, c)  # fmt: skip
        return staged(a.builder, (pair[0], pair[1]))

    return for_((0, n, 1), body, (x, k))


def as_float(n):
    return P["cast"](n, dtype="float64", weak=True)


NOT_ACTIVE = {
    "structure": lambda x, k, n: staged(x.builder, (x * x, k * 2.0)),
    "nested": lambda x, k, n: staged(x.builder, (staged(x.builder, (x, k)), x))[0],
    "branch": lambda x, k, n: cond(
        x > 0.5, lambda x, k: staged(x.builder, (x * x, k * 2.0)), lambda x, k: staged(x.builder, (x, k)), x, k
    ),
    "for loop": lambda x, k, n: for_((0, n, 1), lambda i, a, c: staged(a.builder, (a * c, c + 1.0)), (x, k)),
    "while loop": lambda x, k, n: while_(
        lambda a, c: c < 5.0, lambda a, c: staged(a.builder, (a * c, c + 1.0)), (x, k)
    ),
    "loop with a branch": loop_with_a_branch,
    "call": lambda x, k, n: call(
        build(lambda a, c: staged(a.builder, (a * c, c + 1.0)), FLOAT, FLOAT, name="g"), x, k
    ),
    "stopped": lambda x, k, n: staged(x.builder, (x, P["stop_gradient"](x) * 0.0 + k)),
    "integer": lambda x, k, n: staged(x.builder, (x, as_float(P["cast"](x, dtype="int64", weak=True)))),
    "rounded": lambda x, k, n: staged(x.builder, (x, P["floor"](x * 3.0))),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_ACTIVE)
def test_what_is_not_active_costs_nothing(name):
    """No derivative of the sine is computed, by either mode."""
    f, types, point = of_a_pair(NOT_ACTIVE[name]), (FLOAT, FLOAT, INT), (0.75, 0.5, 3)
    reverse = build(grad(f), *types)
    inner = build(f, *types, name="inner")
    forward = build(lambda x, k, n: apply("jvp", x, k, n, x, graph=inner, wrt=(0,))[1][0], *types)
    for g in (expanded(reverse), expanded(forward)):
        assert "cos" not in {getattr(n.fn, "name", "") for h in all_graphs(g) for n in h.nodes}
    slope = numeric(f, *point)
    assert run(expanded(reverse), point) == pytest.approx(slope, rel=1e-7)
    assert run(expanded(forward), point) == pytest.approx(0.75 * slope, rel=1e-7)


def test_a_reciprocal_is_divided_once():
    """y = 1 / x  =>  dx = -dy y y: divisions are slow."""
    names = [n.fn.name for n in expanded(build(grad(lambda x: 1.0 / x), FLOAT)).nodes]
    assert names.count("div") == 1
    assert gradient(lambda x: 1.0 / x, 4.0) == -1 / 16


def test_backward_branches_keep_the_names_of_what_they_read():
    def f(speed, mass):
        return cond(speed > 0.0, lambda speed, mass: sin(speed) * mass, lambda speed, mass: speed * mass, speed, mass)

    g = expanded(build(lambda speed, mass: vag(f, speed, mass)[1][0], FLOAT, FLOAT))
    branches = [n.attrs[k] for n in g.nodes if n.fn.name == "cond" for k in ("then", "orelse")]
    assert all({"speed", "mass"} <= {p.name for p in b.params} for b in branches)


def test_graphs_of_derivatives_stand_alone_and_have_names():
    def f(x, n):
        y = for_((0, n, 1), lambda i, a, x: staged(x.builder, (sin(a) * x,)), (x,), (x,))[0]
        return cond(y > 2.0, lambda y: exp(y), newton, y)

    g = expanded(build(grad(f), FLOAT, INT))
    for h in all_graphs(g):
        assert h.parent is None and isinstance(h.name, str) and all(isinstance(p.name, str) for p in h.params), h.name


# Calls.


def test_called_graphs():
    inner = build(lambda x, y: sin(x * y) * y, FLOAT, FLOAT, name="inner")
    outer = build(lambda x, y: call(inner, x, y) * call(inner, y, x), FLOAT, FLOAT, name="outer")
    check_orders(lambda x: call(outer, x, x * x), 0.7, order=3, rtol=1e-3, atol=1e-3)


def test_a_function_that_saves_nothing_is_called_as_it_is():
    """Its forward version would hand back a tuple of one."""
    inner = build(lambda x, y: x * 2.0 + y, FLOAT, FLOAT, name="inner")
    g = expanded(build(lambda x: vag(lambda x: call(inner, sin(x), x), x), FLOAT))
    forward, *_ = [n for n in g.nodes if isinstance(n.fn, Graph)]
    assert forward.type == FLOAT and forward.fn.name == "inner"
    assert run(g, [0.5])[1][0] == pytest.approx(2.0 * np.cos(0.5) + 1.0, rel=1e-14)


def test_calls_with_loops_inside():
    g = build(lambda x: power(x, 3), FLOAT, name="cube")
    check_orders(lambda x: call(g, sin(x)), 0.7, order=3, rtol=1e-3, atol=1e-3)


# Transforms in control.


def test_gradients_inside_of_loops_and_branches():
    def f(x):
        def body(i, y):
            step = vag(lambda y: cond(y > 0.5, lambda y: y * y * y, lambda y: exp(y), y), y)[1][0]
            return staged(y.builder, (y - step * 0.1,))

        return for_((0, 4, 1), body, (x,))[0]

    check_orders(f, 0.8, order=2)


# Effects and refusals.


def test_effects_stay_in_order(capsys):
    def f(x):
        apply("print", x, parts=("a ", (0, None, "")), end="\n")
        y = x * x
        apply("print", y, parts=("b ", (0, None, "")), end="\n")
        return y

    g = expanded(build(grad(f), FLOAT))
    for way in (lambda: run(g, [3.0]), lambda: run(optimize(g), [3.0]), lambda: compile_python(g)(3.0)):
        assert way() == 6.0
        assert capsys.readouterr().out == "a 3.0\nb 9.0\n"


def test_checks_stay():
    def f(x):
        apply("check", x > 0.0, x, exception=ValueError, parts=("bad ", (0, "r", "")))
        return x * x

    assert gradient(f, 3.0) == 6.0
    with pytest.raises(ValueError, match="bad -3.0"):
        gradient(f, -3.0)


def test_refusals():
    with pytest.raises(GradError, match=r"\(3,\).*jacobian.*jacrev.*vjp"):
        gradient(lambda x: x * 2.0, np.ones(3))
    with pytest.raises(GradError, match="returns int"):
        gradient(lambda x: staged(x.builder, 3), 1.0)
    with pytest.raises(GradError, match="'n', which is int"):
        gradient(lambda n: P["cast"](n, dtype="float64", weak=True), 1)
    ref = Ref("model", ("w",), (vec(),))

    def update(x, m):
        apply("ref_write", m, staged(x.builder, np.ones(3)), index=0)
        return x

    with pytest.raises(GradError, match="updated inside"):
        gradient(update, 1.0, None, types=[FLOAT, ref])


def test_central_differences_find_a_wrong_gradient():
    assert abs(numeric(lambda x: x * x, 3.0) - 6.0) < 1e-6
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(gradient(lambda x: x * x, 3.0), numeric(lambda x: x * x * x, 3.0), rtol=1e-5)


def hidden_square(x):
    hidden = 3.0 * x
    return hidden * hidden


def test_a_debugger_is_given_the_cotangents():
    session = differentiate(hidden_square).debug(2.0).cont()
    assert session.gradients["hidden"] == 12.0 and session.gradients["x"] == 36.0
