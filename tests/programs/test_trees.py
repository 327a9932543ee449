"""Algebraic data types: trees, lists and expressions of any shape are values of one type, in all executors as in CPython."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass, replace

import numpy as np
import pytest

from myia_relay import TypeError_, grad, jvp, relay, vmap
from tests.programs import compare
from tests.programs import machine_sources as machine
from tests.programs import tree_sources as trees

CASES = [*trees.CASES, *machine.CASES]
COMPILED: dict = {}


def compiled(function, executor):
    """One decorated function per program and executor, so that its call cache is exercised too."""
    return COMPILED.setdefault((function, executor), relay(executor=executor)(function))


@pytest.mark.sampled(21)
@pytest.mark.parametrize("k", range(len(CASES)), ids=lambda k: f"{CASES[k][0].__name__}-{k}")
def test_program(k, executor):
    function, args = CASES[k]
    want = function(*args)
    f = compiled(function, executor)
    assert compare.differences(f(*args), want) == []
    assert compare.differences(f(*args), want) == [], "the second call differs"


def test_the_comparison_sees_other_trees():
    assert compare.differences(trees.SMALL, trees.TALL) and compare.differences(trees.ONE, trees.Num(-2.5))


@pytest.mark.parametrize("function", [trees.total, trees.mirror, trees.depth, trees.squares])
@pytest.mark.sampled(2)
def test_every_shape_is_one_compilation(function, executor):
    f = relay(executor=executor)(function)
    extra = (1.5,) if function is trees.squares else ()
    for t in [*trees.TREES, trees.build(6, 1.0)]:
        assert compare.differences(f(t, *extra), function(t, *extra)) == []
    assert f.cache_info().misses == 1


def test_an_annotation_makes_the_empty_list_one_of_them(executor):
    f = relay(executor=executor)(trees.length)
    assert [f(c) for c in (trees.LIST, None, trees.LIST.tail)] == [4, 0, 3]
    assert f.cache_info().misses == 1


def chain(n):
    c = None
    for k in range(n):
        c = trees.Cell(k, c)
    return c


@pytest.mark.sampled(3)
def test_deep_lists_pass_in_and_out(executor):
    c = chain(100_000)
    assert relay(executor=executor)(trees.length)(c) == 100_000
    back = relay(executor=executor)(trees.reversed_list)(c)
    assert back.head == 0 and back.tail.head == 1
    count = 0
    while back is not None:
        back, count = back.tail, count + 1
    assert count == 100_000
    while c is not None:  # CPython's own deallocation of a chain may recurse
        c = c.tail


def test_deep_recursion_over_a_list_is_native():
    f = relay(trees.sum_list)
    assert f(chain(50_000)) == sum(range(50_000))
    with pytest.raises(RecursionError):
        f(chain(1_000_000))
    assert f(chain(10)) == 45


def test_shared_nodes_stay_shared(executor):
    t = trees.Leaf(1.0)
    for _ in range(60):  # 2**60 leaves, 61 nodes
        t = trees.Node(t, t)

    @relay(executor=executor)
    def left(t):
        n = 0
        while isinstance(t, trees.Node):
            t = t.left
            n += 1
        return n, t

    assert left(t) == (60, trees.Leaf(1.0))

    @relay(executor=executor)
    def doubled(t, n):
        for _ in range(n):
            t = trees.Node(t, t)
        return t

    out = doubled(t, 60)
    assert out.left is out.right and out.left.left is out.left.right


def test_arguments_come_back_as_themselves():
    @relay
    def parts(t):
        return trees.Node(t.right, trees.Leaf(1.0)), t.left

    made, left = parts(trees.TALL)
    assert made.left is trees.TALL.right and left is trees.TALL.left


def test_memory_is_given_back_in_loops():
    f = relay(trees.build_and_drop)
    f(2, 3)
    from myia_relay.backend.native import heap

    assert f(3000, 8) == trees.build_and_drop(3000, 8)  # 50 MB of records, were they all kept
    used = [h.ints for h in heap._FREE]
    assert used and all(u is None for u in used)


def test_a_full_heap_is_a_memory_error(monkeypatch):
    from myia_relay.backend.native import heap

    monkeypatch.setattr(heap, "_FREE", [])
    monkeypatch.setattr(heap, "_space", lambda: 1 << 21)
    monkeypatch.setattr(heap, "LEAST", 1 << 20)
    f, g = relay(trees.build), relay(trees.total)
    for _ in range(2):
        assert f(3, 1.0) == trees.build(3, 1.0)
        with pytest.raises(MemoryError):
            f(20, 1.0)
    with pytest.raises(MemoryError):
        g(trees.build(17, 1.0))
    assert g(trees.build(14, 1.0)) == trees.total(trees.build(14, 1.0))


def test_threads_have_heaps_of_their_own():
    f = relay(trees.build_and_drop)
    want, got = f(10, 6), []
    threads = [threading.Thread(target=lambda: got.extend(f(10, 6) == want for _ in range(20))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == [True] * 80 and want == trees.build_and_drop(10, 6)


def test_methods_are_decorated_too(executor):
    @relay(executor=executor)
    def twice(self, k):
        return self.scaled(k).total * 2.0

    assert twice(trees.TALL, 3.0) == trees.TALL.scaled(3.0).total * 2.0


def test_returned_functions_hold_trees(executor):
    @relay(executor=executor)
    def maker(t):
        return lambda k: trees.total(t) * k

    assert maker(trees.TALL)(2.0) == trees.total(trees.TALL) * 2.0


GLOBAL_TREE = trees.TALL


def test_trees_in_globals_are_read_at_call_time(executor):
    global GLOBAL_TREE

    @relay(executor=executor)
    def f(x):
        return trees.total(GLOBAL_TREE) * x

    try:
        assert f(2.0) == 2.0 * trees.total(trees.TALL)
        GLOBAL_TREE = trees.SMALL
        assert f(2.0) == 24.0 and f.cache_info().misses == 1
    finally:
        GLOBAL_TREE = trees.TALL


def test_classes_of_a_function(executor):
    @dataclass(frozen=True)
    class Tip:
        value: float

    @dataclass(frozen=True)
    class Fork:
        one: Either
        two: Either

    Either = Tip | Fork

    @relay(executor=executor)
    def total(t):
        return t.value if isinstance(t, Tip) else total(t.one) + total(t.two)

    t = Fork(Tip(1.0), Fork(Tip(2.0), Tip(3.0)))
    assert total(t) == 6.0 and total(t.two) == 5.0 and total(t.one) == 1.0
    assert total.cache_info().misses == 1


# What the annotations do not say.


def test_values_that_the_annotations_do_not_say_keep_their_kind(executor):
    f = relay(executor=executor)(trees.mirror)
    t = trees.Node(trees.Leaf(1), trees.Leaf(2.5))
    assert compare.differences(f(t), trees.mirror(t)) == []
    assert compare.differences(f(trees.TALL), trees.mirror(trees.TALL)) == []
    array = trees.Leaf(np.arange(3.0))
    assert compare.differences(f(array), array) == []


def test_a_large_tree_that_does_not_fit_is_refused(executor):
    t = trees.build(12, 1.0)
    object.__setattr__(t.left.left.right, "left", trees.Leaf(3))
    with pytest.raises(
        TypeError_, match="the field 'value' of Leaf is annotated float, and holds int 3; make it a float"
    ):
        relay(executor=executor)(trees.total)(t)


@dataclass(frozen=True)
class Loose:
    """Its structure is in its type: any array may be in it."""

    x: np.ndarray
    rest: Loose | None


def loose_total(c):
    return np.sum(c.x) + (0.0 if c.rest is None else loose_total(c.rest))


def test_vague_annotations_keep_structure_in_the_type(executor):
    f = relay(executor=executor)(loose_total)
    c = Loose(np.arange(3.0), Loose(np.ones((2, 2)), None))
    assert f(c) == loose_total(c) and f(c.rest) == 4.0
    assert f.cache_info().misses == 2


# Derivatives; `test_tree_gradients` has more.


def weighted(x, t):
    return trees.total(t) * x * x


def through_records(x):
    return trees.total(trees.Node(trees.Leaf(x), trees.Leaf(x * x)))


def through_a_loop(x, n):
    t = trees.Leaf(x)
    for _ in range(n):
        t = trees.Node(t, trees.Leaf(x))
    return trees.leftmost(t)


@pytest.mark.sampled(3)
def test_gradients_keep_the_structure(executor):
    gradient = grad(relay(executor=executor)(trees.total))(trees.SMALL)
    assert gradient == trees.Node(trees.Leaf(1.0), trees.Leaf(1.0))
    assert grad(relay(executor=executor)(weighted))(3.0, trees.TALL) == 6.0 * trees.total(trees.TALL)
    assert grad(relay(executor=executor)(through_records))(3.0) == 7.0
    assert jvp(relay(executor=executor)(through_records), (3.0,), (2.0,)) == (12.0, 14.0)
    np.testing.assert_array_equal(vmap(relay(executor=executor)(through_records))(np.arange(3.0)), [0.0, 2.0, 6.0])
    assert grad(relay(executor=executor)(through_a_loop))(3.0, 4) == 1.0


# Errors.


def shown(error) -> str:
    return "".join(traceback.format_exception(error.value))


def int_in_float_field(t: trees.Tree, k):
    return trees.Node(t, trees.Leaf(k))


def other_class(t: trees.Tree):
    return trees.Node(t, trees.Num(1.0))


def perhaps_none(t: trees.Tree, c):
    return trees.Node(t, None if c > 0 else trees.Leaf(2.0))


def unknown_attribute(t):
    return t.valeu


def unknown_replacement(t):
    return replace(trees.Leaf(1.0), valeu=t)


def method_first(b: trees.Button | None, k):
    return b.follow(1 // k)


def identity(t, u):
    return t is u


def class_of(t):
    return type(t) is trees.Leaf


@pytest.mark.parametrize("function, args, message", [
    (int_in_float_field, (trees.build(11, 1.0), 3), "the field 'value' of Leaf is annotated float, and is given int: write float"),
    (other_class, (trees.build(11, 1.0),), "the field 'right' of Node is annotated Leaf | Node, and is given Num"),
    (perhaps_none, (trees.build(11, 1.0), 1), "the field 'right' of Node is annotated Leaf | Node, and may be None here"),
    (unknown_attribute, (trees.TALL,), "has no field 'valeu'; did you mean 'value'?"),
    (unknown_replacement, (trees.TALL,), "Leaf has no field 'valeu'"),
    (identity, (trees.TALL, trees.SMALL), "compare with =="),
    (class_of, (trees.TALL,), "test it with isinstance"),
])  # fmt: skip
def test_mistakes_are_located(function, args, message, executor):
    with pytest.raises((TypeError, AttributeError)) as error:
        relay(executor=executor)(function)(*args)
    assert message in str(error.value) and function.__name__ in str(error.value) and __file__ in str(error.value)


def filled_later(n):
    x = np.zeros(3, np.float32)
    m = trees.Mixed(True, n, np.float32(1.0), trees.Point(1.0, 2.0), (1.0, 2), x, None)
    x[0] = 5.0
    return m


def filled_before(n):
    x = np.zeros(3, np.float32)
    x[0] = 5.0
    return trees.Mixed(True, n, np.float32(1.0), trees.Point(1.0, 2.0), (1.0, 2), x, None)


def test_an_array_in_a_record_is_not_changed_behind_its_back(executor):
    with pytest.raises(TypeError_, match="in place"):
        relay(executor=executor)(filled_later)(1)
    assert compare.differences(relay(executor=executor)(filled_before)(1), filled_before(1)) == []


def annotated_otherwise(t: trees.Expr):
    return trees.total(t)


def test_annotations_of_functions_are_checked(executor):
    with pytest.raises(
        TypeError_, match="argument 't' of annotated_otherwise is annotated Expr, but it is Leaf . Node"
    ):
        relay(executor=executor)(annotated_otherwise)(trees.TALL)


def test_a_variant_without_the_attribute_raises_when_it_is_reached(executor):
    f = relay(executor=executor)(trees.field_of_either)
    with pytest.raises(AttributeError) as ours:
        f(trees.Num(1.0))
    with pytest.raises(AttributeError) as theirs:
        trees.field_of_either(trees.Num(1.0))
    assert str(ours.value) == str(theirs.value)
    assert "return e.left" in shown(ours) and f.cache_info().misses == 1
    nothing = relay(executor=executor)(trees.nth)
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'head'"):
        nothing(trees.Cell(1), 1)


def test_the_error_that_comes_first_is_pythons(executor):
    f = relay(executor=executor)(trees.clicks)
    for args, problem in [((None, 0), TypeError), ((trees.BUTTON, 0), ZeroDivisionError)]:
        with pytest.raises(problem):
            trees.clicks(*args)
        with pytest.raises(problem):
            f(*args)
    follow = relay(executor=executor)(method_first)
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'follow'"):
        follow(None, 0)
    assert follow(trees.BUTTON, 1) == 3


def test_trees_in_messages(executor, capsys):
    assert relay(executor=executor)(trees.printed)(trees.TALL) == trees.total(trees.TALL)
    assert capsys.readouterr().out == f"{trees.TALL} has {trees.total(trees.TALL)}\n"
    with pytest.raises(AssertionError) as error:
        relay(executor=executor)(trees.refused)(trees.SHARED.right)
    assert str(error.value) == f"too small: {trees.SHARED.right}"


def test_into_takes_no_trees():
    with pytest.raises(TypeError_, match="no array can hold"):
        relay(trees.mirror).into(np.zeros(3))(trees.TALL)
