"""Which arrays of a typed graph may be one and the same, or views of each other."""

from __future__ import annotations

from myia_relay.abstract.types import FLOAT, INT, Array, List
from myia_relay.infer.values.sharing import Origins, arrays_of, hands_on, lists_of, mark_like, mark_result, output_leaf
from myia_relay.infer.values.values import Dyn, Seq, TaggedUnion
from myia_relay.ir.build import Builder, Var
from myia_relay.ir.node import Graph
from tests.typed_graphs import apply, build, call, cond, for_, vec, while_

M = Array("float64", (3, 4))


def origins(f, *types, index=0) -> list[int]:
    """Which arguments a result of a staged function may be."""
    graph = build(f, *types)
    return sorted(graph.params.index(p) for p in Origins().result(graph, index))


def same(x, shape):
    return apply("reshape", x, shape=shape)


def test_straight_lines():
    assert origins(lambda x: x, vec()) == [0] and origins(lambda x: x + 1.0, vec()) == []
    assert origins(lambda x, y: (y, x), vec(), vec()) == [1]
    assert origins(lambda x, y: (y, x), vec(), vec(), index=1) == [0]
    assert origins(lambda x, y: (y + 0.0, x), vec(), vec()) == []
    assert origins(lambda x: same(same(x, (3, 1)), (3,)), vec()) == [0]
    assert origins(lambda x: apply("transpose", x, perm=(1, 0)), M) == [0]
    assert origins(lambda x, i: apply("dynamic_index", x, i, axis=0), M, INT) == [0]
    assert origins(lambda x, i: apply("dynamic_update", x, 1.0, i, axis=0), vec(), INT) == []
    assert origins(lambda x: same(x * 2.0, (3, 1)), vec()) == []
    assert origins(lambda x: apply("broadcast_to", x, shape=(2, 3)), vec()) == [0]
    assert origins(lambda xs, i: apply("list_get", xs, i), List(vec()), INT) == [0]


def test_branches():
    either = lambda c, x, y: cond(c > 0, lambda x, y: x, lambda x, y: y, x, y)  # noqa: E731
    assert origins(either, INT, vec(), vec()) == [1, 2]
    assert origins(lambda c, x, y: cond(c > 0, lambda x, y: x, lambda x, y: y + 1.0, x, y), INT, vec(), vec()) == [1]
    pair = lambda c, x, y: cond(c > 0, lambda x, y: (x, y), lambda x, y: (y, y), x, y)[1]  # noqa: E731
    assert origins(pair, INT, vec(), vec()) == [2]
    first = lambda c, x, y: cond(c > 0, lambda x, y: (x, y), lambda x, y: (y, y), x, y)[0]  # noqa: E731
    assert origins(first, INT, vec(), vec()) == [1, 2]


def test_loops():
    assert origins(lambda n, x: for_((0, n, 1), lambda i, a: (a + 1.0,), (x,))[0], INT, vec()) == [1]  # no iteration
    assert origins(lambda n, x: for_((0, n, 1), lambda i, a: (a,), (x + 1.0,))[0], INT, vec()) == []
    swap = lambda n, x, y: for_((0, n, 1), lambda i, a, b: (b, a), (x, y))[0]  # noqa: E731
    assert origins(swap, INT, vec(), vec()) == [1, 2]
    rotate = lambda n, x, y, z: for_((0, n, 1), lambda i, a, b, c: (b, c, a + 1.0), (x, y, z))[0]  # noqa: E731
    assert origins(rotate, INT, vec(), vec(), vec()) == [1, 2, 3]
    last = lambda n, x, y, z: for_((0, n, 1), lambda i, a, b, c: (b, c, a + 1.0), (x, y, z))[2]  # noqa: E731
    assert origins(last, INT, vec(), vec(), vec()) == [3]
    constant = lambda n, x, y: for_((0, n, 1), lambda i, a, c: (c,), (x,), (y,))[0]  # noqa: E731
    assert origins(constant, INT, vec(), vec()) == [1, 2]
    wait = lambda n, x, y: while_(lambda k, a, b: k < 3, lambda k, a, b: (k + 1, b, a + 1.0), (n, x, y))[1]  # noqa: E731
    assert origins(wait, INT, vec(), vec()) == [1, 2]


def test_calls_and_recursion():
    second = build(lambda x, y: (x + y, y), vec(), vec(), name="second")
    assert origins(lambda x, y: call(second, x, y)[1], vec(), vec()) == [1]
    assert origins(lambda x, y: call(second, y, x)[1], vec(), vec()) == [0]
    assert origins(lambda x, y: call(second, x, y)[0], vec(), vec()) == []
    # f(n, x, y) = x if n < 1 else f(n - 1, y, x): both, after enough calls.
    g = Graph("g")
    b = Builder(g)
    n, x, y = (Var(b, g.add_parameter(name, t)) for name, t in (("n", INT), ("x", vec()), ("y", vec())))

    def again(n, x, y):
        return Var(n.builder, n.builder.graph.apply(g, (n - 1).node, y.node, x.node, type=vec()))

    g.output = cond(n < 1, lambda n, x, y: x, again, n, x, y).node
    found = Origins()
    assert sorted(g.params.index(p) for p in found.result(g, 0)) == [1, 2]
    assert sorted(g.params.index(p) for p in found.result(g, 0)) == [1, 2]  # as it was remembered
    unfinished = Graph("unfinished")
    unfinished.add_parameter("x", vec())
    unfinished.output = None
    assert Origins().result(unfinished, 0) == frozenset(unfinished.params)


def test_leaves_of_values():
    g = Graph("g")
    x, i, xs = (Dyn(g.add_parameter(k, t)) for k, t in (("x", vec()), ("i", INT), ("xs", List(FLOAT))))
    inner = Seq("list", (x, i))
    value = Seq("tuple", (inner, TaggedUnion(i, (xs, Seq("list", ())))))
    assert arrays_of(value) == [x.node, xs.node]
    assert {len(s.elems) for s in lists_of(value)} == {0, 2} and all(s.kind == "list" for s in lists_of(value))
    assert not hands_on(set(), value) and hands_on({inner}, value) and hands_on({xs.node}, value)
    assert not hands_on({x.node}, value)  # arrays are another matter
    shared = {x.node}
    mark_like(shared, [x], [xs, inner])
    assert shared == {x.node, xs.node, inner}
    shared = {x.node}
    mark_like(shared, [i, xs], [inner])
    assert shared == {x.node}


def test_results_of_calls_are_marked():
    f = build(lambda x, y: (x, y + 1.0, apply("reduce_sum", x, axes=(0,))), vec(), vec())
    assert output_leaf(f, 1) is f.output.args[1] and output_leaf(build(lambda x: x, vec()), 0).name == "x"
    caller = build(lambda x, y: (x * 1.0, y * 1.0, apply("reduce_sum", x, axes=(0,))), vec(), vec())
    nodes, shared = list(caller.output.args), set()
    mark_result(shared, f, enumerate(nodes))
    assert shared == {nodes[0]}
