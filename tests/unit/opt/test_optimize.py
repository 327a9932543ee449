"""The optimiser: every rule on awkward numbers, control interfaces, and how much is left of adjoints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from myia_relay.abstract.types import BOOL, FLOAT, INT, Array, Scalar, Tape, tuple_of
from myia_relay.ir.build import Builder, Var
from myia_relay.ir.node import Constant, Graph
from myia_relay.ir.rewrite import all_graphs, count_nodes
from myia_relay.opt.loops.invariants import HoistInvariants
from myia_relay.opt.pipeline import optimize
from myia_relay.opt.rewrite.algebra import ARITHMETIC, INTEGERS, KINDS, LOGIC, PRODUCTS, SHAPES
from myia_relay.opt.rewrite.control import ThinControl
from myia_relay.opt.rewrite.rules import Lit, Op, Rule, Table, Wildcard, X, Y
from myia_relay.opt.rewrite.simplify import Simplify
from myia_relay.utils.errors import InternalError
from tests.typed_graphs import P, apply, build, call, cond, expanded, for_, grad, run, staged, vag, vec, while_
from tests.work import calls_of

sin, exp, tanh = P["sin"], P["exp"], P["tanh"]


def names(g: Graph) -> list[str]:
    return [n.fn.name for h in all_graphs(g) for n in h.nodes]


def same(a, b) -> bool:
    """Equal to the bit, NaN as NaN, zeros with their signs, and of one kind."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if a is None or b is None:
        return a is b
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape or type(a) is not type(b):
        return False
    if x.dtype.kind == "f":
        return bool(np.all((x == y) & (np.signbit(x) == np.signbit(y)) | np.isnan(x) & np.isnan(y)))
    return bool(np.all(x == y))


def both(g: Graph, *args, **options):
    """The results of a graph before and after optimisation, which must be the same; the optimised graph."""
    better = optimize(g, check=True, **options)
    assert same(run(g, args), run(better, args)), (run(g, args), run(better, args))
    return better


AWKWARD = [0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), 1e308, 5e-324]


def instance(b: Builder, pattern, holes: dict) -> Var:
    """The left side of a rule as staged code."""
    if isinstance(pattern, Wildcard):
        return holes[pattern.name]
    lead = next(iter(holes.values()))
    if isinstance(pattern, Lit):
        kind = lead.type if not isinstance(pattern.value, bool) else BOOL
        value = pattern.value if isinstance(pattern.value, bool) else type(1.0 if kind == FLOAT else 1)(pattern.value)
        return Var(b, b.constant(value, kind))
    args = [instance(b, p, holes) for p in pattern.args]
    return Var(b, b.emit(pattern.prim, tuple(a.node for a in args)))


def hole_names(pattern) -> list[str]:
    if isinstance(pattern, Wildcard):
        return [pattern.name]
    return sorted({n for p in getattr(pattern, "args", ()) for n in hole_names(p)})


def left_side(rule, types: dict):
    g = Graph("left")
    b = Builder(g)
    holes = {n: Var(b, g.add_parameter(n, types[n])) for n in hole_names(rule.pattern)}
    g.output = instance(b, rule.pattern, holes).node
    return g


FLOAT_RULES = [r for r in ARITHMETIC if "int" not in r.name and r.name != "drop_floordiv_one"]


@pytest.mark.parametrize("rule", FLOAT_RULES, ids=lambda r: r.name)
def test_arithmetic_on_awkward_floats(rule):
    g = left_side(rule, dict.fromkeys("xyz", FLOAT))
    better = optimize(g, check=True)
    loose = optimize(g, fastmath=True, check=True)
    assert rule.exact == (count_nodes(better) < count_nodes(g) or names(better) != names(g)), "the rule did not fire"
    assert count_nodes(loose) < count_nodes(g) or names(loose) != names(g)
    for values in itertools.product(AWKWARD, repeat=len(g.params)):
        assert same(run(g, values), run(better, values)), values


@pytest.mark.parametrize(
    "rule", [r for r in ARITHMETIC if "int" in r.name or r.name == "drop_floordiv_one"], ids=lambda r: r.name
)
def test_arithmetic_on_integers(rule):
    g = left_side(rule, dict.fromkeys("xyz", INT))
    better = optimize(g, check=True)
    assert count_nodes(better) < count_nodes(g)
    for values in itertools.product([0, 1, -7, 2**63 - 1, -(2**63)], repeat=len(g.params)):
        assert same(run(g, values), run(better, values))


@pytest.mark.parametrize("rule", LOGIC, ids=lambda r: r.name)
def test_logic(rule):
    where = rule.pattern.prim.name == "where"
    g = left_side(rule, {"x": FLOAT if where else BOOL, "y": FLOAT if where else BOOL, "z": BOOL})
    better = optimize(g, check=True)
    assert count_nodes(better) < count_nodes(g)
    for values in itertools.product(*[AWKWARD if p.type == FLOAT else [True, False] for p in g.params]):
        assert same(run(g, values), run(better, values))


@pytest.mark.parametrize(
    ("x", "wrong"), [(lambda x: x + 0.0, True), (lambda x: x * 0.0, True), (lambda x: x - x, True)]
)
def test_what_is_not_exact_stays(x, wrong):
    assert count_nodes(optimize(build(x, FLOAT))) == 1


def test_a_rule_about_no_primitive_is_an_internal_error():
    with pytest.raises(InternalError, match="a rule matches nonsense, which is no primitive"):
        Op("nonsense", X)


def test_rules_are_looked_up_by_what_their_operands_are():
    """Few rules are tried: for each combination of kinds only those whose patterns may match."""
    table = Table(
        Rule("one", Op("add", X, Lit(0)), X),
        Rule("two", Op("add", Op("neg", X), Y), X),
        Rule("any", Op("add", X, Y), X),
    )
    names = {}
    for name, f in (("x + x", lambda x: x + x), ("x + 0", lambda x: x + 0), ("-x + x", lambda x: -x + x)):
        head = build(f, FLOAT).output
        names[name] = [rule.name for rule, _ in table.candidates(head.fn, head.args)]
    assert names == {"x + x": ["any"], "x + 0": ["one", "any"], "-x + x": ["two", "any"]}
    concatenate = build(lambda x: apply("concatenate", x, x, axis=0), vec()).output
    assert Table(Rule("whole", Op("concatenate", X), X)).candidates(concatenate.fn, concatenate.args) == []


def test_all_rules_say_what_they_mean():
    for rule in (*ARITHMETIC, *INTEGERS, *LOGIC, *KINDS, *SHAPES, *PRODUCTS):
        assert rule.equation and isinstance(rule.pattern, Op)


# Shapes, kinds, products.

reshape, transpose, broadcast_to, cast = P["reshape"], P["transpose"], P["broadcast_to"], P["cast"]
M = Array("float64", (2, 3))


@pytest.mark.parametrize(
    ("f", "left"),
    [
        (lambda x: transpose(transpose(x, perm=(1, 0)), perm=(1, 0)), 0),
        (lambda x: reshape(reshape(x, shape=(6,)), shape=(3, 2)), 1),
        (lambda x: reshape(reshape(x, shape=(6,)), shape=(2, 3)), 0),
        (lambda x: broadcast_to(broadcast_to(x, shape=(1, 2, 3)), shape=(4, 2, 3)), 1),
        (lambda x: transpose(reshape(x, shape=(1, 2, 3)), perm=(1, 0, 2)), 1),
        (lambda x: P["reduce_sum"](reshape(x, shape=(1, 2, 3)), axes=(0,)), 1),  # x + 0.0, which differs at -0.0
        (lambda x: P["reduce_sum"](cast(reshape(x, shape=(1, 2, 3)), dtype="int64"), axes=(0,)), 1),  # the cast
        (lambda x: cast(cast(x, dtype="float64"), dtype="float64"), 0),
        (lambda x: cast(cast(cast(x, dtype="float32"), dtype="float64"), dtype="float32"), 1),
        (lambda x: x * broadcast_to(P["as_array"](staged(x.builder, 2.0)), shape=(2, 3)), 2),
        (lambda x: P["dot"](transpose(x, perm=(1, 0)), x), 1),
        (lambda x: P["dot"](x, transpose(x, perm=(1, 0))), 1),
        (lambda x: P["concatenate"](x, axis=0), 0),
        (lambda x: P["slice"](x, starts=(0, 0), sizes=(2, 3), steps=(1, 1)), 0),
    ],
)
def test_shapes(f, left):
    better = both(build(f, M), np.arange(6.0).reshape(2, 3))
    assert count_nodes(better) <= left


def test_axes_of_size_one_sink():
    """tanh(reshape(x) + b) between reshapes that add and remove an axis: no reshape is left but that of b."""

    def f(x, b):
        h = tanh(reshape(x, shape=(4, 1, 2, 3)) + reshape(b, shape=(1, 2, 1)))
        rows = P["reduce_max"](h, axes=(0, 3), keepdims=True)
        return staged(x.builder, (reshape(h, shape=(4, 2, 3)), rows))

    x, b = np.linspace(-1, 1, 24).reshape(4, 2, 3), np.array([0.5, 0.25])
    better = both(build(f, Array("float64", (4, 2, 3)), vec(2)), x, b)
    assert names(better) == ["reshape", "add", "tanh", "reduce_max", "reshape", "make_struct"]


def test_filled_constants_stay_scalars():
    g = build(lambda x: x * staged(x.builder, np.full((2, 3), 0.5)), M)
    (node,) = both(g, np.ones((2, 3))).nodes
    assert node.args[1].type == Scalar("float64")


def test_sums_of_broadcasts_are_products_under_fastmath():
    g = build(lambda x: P["reduce_sum"](broadcast_to(x, shape=(4, 2, 3)), axes=(0, 2)), Array("float64", (2, 1)))
    x = np.array([[0.5], [2.0]])
    assert "reduce_sum" in names(optimize(g))
    better = optimize(g, fastmath=True, check=True)
    assert "reduce_sum" not in names(better)
    np.testing.assert_allclose(run(g, [x]), run(better, [x]))


# Values, structures, dead code.


def test_common_subexpressions():
    better = both(build(lambda x: sin(x) * sin(x) + sin(x), FLOAT), 0.3)
    assert names(better).count("sin") == 1
    # Zeros of different sign, and numbers of different kinds, are different values.
    g = build(lambda x: staged(x.builder, (P["maximum"](x, 0.0), P["maximum"](x, -0.0))), FLOAT)
    assert names(optimize(g)).count("maximum") == 2


def test_constants_fold_and_what_would_raise_does_not():
    g = build(lambda x: x * sin(staged(x.builder, 2.0) * 3.0), FLOAT)
    assert names(both(g, 2.0)) == ["mul"]


def test_effects_stay_in_order_and_unused_reads_go():
    def f(x):
        apply("print", x, parts=((0, None, ""),), end="\n")
        sin(x)
        apply("check", x > 0.0, exception=ValueError, parts=("no",))
        return x

    assert names(optimize(build(f, FLOAT))) == ["print", "gt", "check"]


def test_passes_alone():
    g = build(lambda x: staged(x.builder, (sin(x), exp(x)))[0], FLOAT)
    assert names(Simplify(rules=False, number=False, inline_limit=None)(g)) == ["sin"]
    g = build(lambda x: x * 1.0, FLOAT)
    assert names(Simplify(rules=False)(g)) == ["mul"] and names(Simplify()(g)) == []
    assert Simplify()(build(lambda x: sin(x), FLOAT)).nodes[0].fn.name == "sin"


def test_nothing_to_do_is_the_same_graph():
    g = optimize(build(lambda x: sin(x) * x, FLOAT))
    assert optimize(g) is g


def test_calls_are_inlined_and_say_both_places():
    inner = build(lambda x: sin(x) * 2.0, FLOAT, name="inner")
    better = both(build(lambda x: call(inner, call(inner, x)), FLOAT), 0.4)
    assert "inner" not in names(better) and not any(isinstance(n.fn, Graph) for n in better.nodes)


def test_stop_gradient_outlives_transforms():
    g = build(lambda x: grad(lambda x: P["stop_gradient"](x) * x)(x), FLOAT)
    before = optimize(g)
    assert "stop_gradient" in names(before)
    assert run(expanded(before), [3.0]) == 3.0
    assert "stop_gradient" not in names(optimize(expanded(before)))


# Control.


def test_conditions_known_when_compiling():
    g = build(lambda x: cond(staged(x.builder, 3) > 2, lambda x: sin(x), lambda x: exp(x), x), FLOAT)
    assert names(both(g, 0.3)) == ["sin"]


def test_thin_conditions():
    def f(x, y, z):
        pair = cond(
            x > 0.0,
            lambda x, p, y, y2, k: staged(x.builder, ((x * p[0], exp(x)), y2, 7, x)),
            lambda x, p, y, y2, k: staged(x.builder, ((p[1] * k, sin(x)), y2, 7, y)),
            x, staged(x.builder, (y, z)), y, y, staged(x.builder, 4.0),
        )  # fmt: skip
        return staged(x.builder, (pair[0][0], pair[1], pair[2]))

    better = both(build(f, FLOAT, FLOAT, FLOAT), 0.5, 2.0, 3.0)
    (node,) = [n for n in better.nodes if n.fn.name == "cond"]
    assert len(node.args) == 4 and node.type == FLOAT  # x > 0, x, y, z; the one result that depends on the condition
    assert "exp" not in names(better)


def test_thin_loops():
    def f(x, n):
        def body(i, a, s, k, dead, x):
            return staged(a.builder, (a * k + s[1] * x, (s[0] + 1.0, s[1]), k, dead * 2.0))

        out = for_((0, n, 1), body, (x, staged(x.builder, (x, x)), x, x), (x,))
        return out[0]

    better = both(build(f, FLOAT, INT), 0.5, 4)
    (node,) = [n for n in better.nodes if n.fn.name == "for_loop"]
    assert node.attrs["carried"] == 1 and len(node.args) == 6  # n, a, k, and x * x, which left the loop


def test_swapped_carries_stay():
    def f(x, y, n):
        out = for_((0, n, 1), lambda i, a, b: staged(a.builder, (b, a)), (x, y))
        return out[0]

    g = build(f, FLOAT, FLOAT, INT)
    for n in range(3):
        both(g, 1.0, 2.0, n)


def test_carried_constant_stays_until_the_first_turn():
    def f(x, y, n):
        return for_((0, n, 1), lambda i, a, y: staged(y.builder, (y,)), (x,), (y,))[0]

    g = build(f, FLOAT, FLOAT, INT)
    for n in range(3):
        both(g, 1.0, 2.0, n)


def test_loops_that_turn_not_or_once():
    for iterations, left in ((0, 0), (1, 1)):
        g = build(
            lambda x, iterations=iterations: for_((0, iterations, 1), lambda i, a: staged(a.builder, (sin(a),)), (x,))[
                0
            ],
            FLOAT,
        )
        assert names(both(g, 0.5)) == ["sin"] * left


def test_invariants_leave_loops():
    def f(x, n):
        def outer(i, a, x, n):
            inner = for_((0, n, 1), lambda j, c, a, x: staged(a.builder, (c + sin(x) * exp(a),)), (a,), (a, x))
            return staged(a.builder, (inner[0],))

        return for_((0, n, 1), outer, (x,), (x, n))[0]

    better = both(build(f, FLOAT, INT), 0.5, 3)
    assert "sin" in [n.fn.name for n in better.nodes]
    (outer,) = [n.attrs["body"] for n in better.nodes if n.fn.name == "for_loop"]
    assert "exp" in [n.fn.name for n in outer.nodes]


def test_parts_that_a_product_reads_leave_loops():
    """They are copied in any case; what is only added is read where it is."""

    def f(h, w, x):
        def body(i, h, w, x):
            part = apply("slice", w, starts=(0, 0), sizes=(2, 2), steps=(1, 1))
            added = apply("slice", x, starts=(0, 0), sizes=(1, 2), steps=(1, 1))
            turned = apply("transpose", part, perm=(1, 0))
            return staged(h.builder, (apply("dot", h, turned) + added,))

        return for_((0, 3, 1), body, (h,), (w, x))[0]

    types = [Array("float64", shape) for shape in ((1, 2), (3, 2), (2, 2))]
    rng = np.random.default_rng(0)
    better = both(build(f, *types), *(rng.standard_normal(t.shape) for t in types))
    (loop,) = [n for n in better.nodes if n.fn.name == "for_loop"]
    assert [n.type.shape for n in better.nodes if n.fn.name == "slice"] == [(2, 2)]
    assert [n.type.shape for n in loop.attrs["body"].nodes if n.fn.name == "slice"] == [(1, 2)]


def test_checks_do_not_leave_loops():
    def f(x, n):
        def body(i, a, x):
            apply("check", x > 0.0, exception=ValueError, parts=("no",))
            return staged(a.builder, (a + x,))

        return for_((0, n, 1), body, (x,), (x,))[0]

    g = build(f, FLOAT, INT)
    both(g, -1.0, 0)
    with pytest.raises(ValueError, match="no"):
        run(optimize(g), [-1.0, 1])


def test_while_loops_are_thinned():
    def f(x):
        return while_(
            lambda a, b, c, k: a < k,
            lambda a, b, c, k: staged(a.builder, (a * 2.0, b, c + 1.0)),
            (x, x, x),
            (staged(x.builder, 9.0),),
        )[0]

    better = both(build(f, FLOAT), 0.5)
    (node,) = better.nodes[:1]
    assert node.attrs["carried"] == 1 and len(node.args) == 1


def test_tapes_that_nobody_reads_disappear():
    """The value alone of `value_and_grad`: the forward loop without its tapes."""

    def f(x, n):
        return vag(lambda x, n: for_((0, n, 1), lambda i, a, x: staged(x.builder, (sin(a) * x,)), (x,), (x,))[0], x, n)[
            0
        ]

    better = both(expanded(build(f, FLOAT, INT)), 0.7, 3)
    assert not any(n.startswith("tape") for n in names(better))
    assert not any(isinstance(n.type, Tape) for g in all_graphs(better) for n in g.nodes)


def test_element_updates_in_adjoints_of_loops():
    """sum(x[i] ** 2): the adjoint updates elements instead of adding whole arrays."""

    def f(x):
        def body(i, a, x):
            e = P["dynamic_index"](x, i, axis=0)
            return staged(a.builder, (a + e * e,))

        return for_((0, 5, 1), body, (staged(x.builder, np.float64(0)),), (x,))[0]

    g = expanded(build(grad(f), vec(5)))
    better = optimize(g, check=True)
    (body,) = {n.attrs["body"] for n in better.nodes if n.fn.name == "for_loop"}
    inside = [n for n in body.nodes if n.fn.name in ("index_add", "add", "broadcast_to")]
    assert not any(n.fn.name == "add" and isinstance(n.type, Array) for n in inside)
    x = np.arange(5.0)
    np.testing.assert_allclose(run(better, [x]), 2 * x)


# How much is left of adjoints.


def hand_written(f, *types):
    return count_nodes(build(f, *types))


def test_adjoints_of_straight_lines_are_nearly_as_small_as_by_hand():
    def f(x, w, b):
        return P["reduce_sum"](tanh(P["matvec"](w, x) + b), axes=(0,))

    def by_hand(x, w, b):
        h = tanh(P["matvec"](w, x) + b)
        one = staged(x.builder, np.float64(1.0))
        d = one - h * h
        dw = reshape(d, shape=(4, 1)) * reshape(x, shape=(1, 3))
        return staged(x.builder, (P["reduce_sum"](h, axes=(0,)), (dw, d)))

    types = (vec(3), Array("float64", (4, 3)), vec(4))
    got = optimize(expanded(build(lambda x, w, b: vag(f, x, w, b, wrt=(1, 2)), *types)), check=True)
    assert count_nodes(got) <= 1.2 * hand_written(by_hand, *types)

    got = optimize(expanded(build(grad(lambda x: sin(x * x) * exp(x)), FLOAT)))
    hand = hand_written(lambda x: P["cos"](x * x) * exp(x) * (x + x) + sin(x * x) * exp(x), FLOAT)
    assert count_nodes(got) <= 1.2 * hand + 1


def test_optimising_is_linear():
    def iterations(n):
        def f(x):
            y = x
            for i in range(n):
                y = sin(y) * 1.0 + x if i % 2 else y * x - 0.0
            return y

        return build(f, FLOAT)

    small, large = iterations(250), iterations(1000)
    assert count_nodes(large) > 2000
    (few, _), (many, better) = calls_of(optimize, small), calls_of(optimize, large)
    assert many <= 4.2 * few
    assert same(run(large, [0.3]), run(better, [0.3]))


def test_third_derivatives_optimised():
    def f(x):
        def body(i, a, x):
            return staged(a.builder, (cond(a > 1.0, lambda a, x: exp(-a) * x, lambda a, x: a * a + x, a, x),))

        return for_((0, 4, 1), body, (x,), (x,))[0]

    for g in (f, grad(f), grad(grad(f)), grad(grad(grad(f)))):
        plain = expanded(build(g, FLOAT))
        np.testing.assert_allclose(run(plain, [0.7]), run(optimize(plain, check=True), [0.7]), rtol=1e-12)


def test_control_passes_keep_the_meaning_of_each_alone():
    t = tuple_of(FLOAT, Scalar("float32"))

    def f(s, n):
        out = for_((0, n, 1), lambda i, s: staged(s.builder, ((s[0] * 0.5, s[1]),)), (s,))
        return out[0][0]

    g = build(f, t, INT)
    for step in (ThinControl(), HoistInvariants(), Simplify()):
        assert same(run(g, [(3.0, np.float32(1)), 2]), run(step(g), [(3.0, np.float32(1)), 2]))
    assert isinstance(Constant(1).value, int)
