"""Derivatives by trees, and of trees: one compilation for every shape, in all executors, of every order."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import pytest

from myia_relay import CompileError, Float64, Tensor, grad, hvp, jvp, relay, stop_gradient, value_and_grad, vjp

EXECUTORS = ("interpreter", "python", "native")


@dataclass(frozen=True)
class Leaf:
    value: float
    label: int = 0


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


@dataclass(frozen=True)
class Cell:
    head: float
    tail: Cell | None


@dataclass(frozen=True)
class Num:
    value: float


@dataclass(frozen=True)
class Var:
    pass


@dataclass(frozen=True)
class Binary:
    a: Expr
    b: Expr
    weights: tuple[float, float]
    add: bool


Expr = Num | Var | Binary


@dataclass(frozen=True)
class Word:
    vector: Tensor[Float64, (3,)]


@dataclass(frozen=True)
class Phrase:
    left: Parse
    right: Parse
    bias: Tensor[Float64, (3,)]


Parse = Word | Phrase


def grown(n: int, x: float) -> Tree:
    return Leaf(x, n) if n <= 0 else Node(grown(n - 1, x * 0.9), grown(n - 2, x + 0.1))


def cells(*values: float):
    out = None
    for v in reversed(values):
        out = Cell(v, out)
    return out


def expression(n: int) -> Expr:
    if n <= 0:
        return Num(0.3 - 0.1 * n) if n % 2 else Var()
    return Binary(expression(n - 1), expression(n - 2), (0.5 + 0.1 * n, -0.7), n % 2 == 0)


def parse(n: int, seed: int = 0) -> Parse:
    rng = np.random.default_rng(seed + n)
    if n <= 0:
        return Word(rng.normal(size=3))
    return Phrase(parse(n - 1, seed + 10), parse(n - 2, seed + 20), rng.normal(size=3))


def heads(c: Cell | None) -> list[float]:
    out = []
    while c is not None:
        out.append(c.head)
        c = c.tail
    return out


# Objectives: (tree, w) -> float.


def total(t: Tree, w: float) -> float:
    match t:
        case Leaf(value, label):
            return math.tanh(value * w) + 0.1 * label * value
        case Node(left, right):
            return math.tanh(total(left, w) + w * total(right, w * 0.9))


def by_attributes(t: Tree, w: float) -> float:
    return math.sin(t.value) * w if isinstance(t, Leaf) else by_attributes(t.left, w) * by_attributes(t.right, w + 0.1)


def twice(t: Tree, w: float) -> float:
    return total(t, w) * by_attributes(t, w) + total(t, 0.5)


def leftmost(t: Tree, w: float) -> float:
    """Of most of the tree nothing is read."""
    while isinstance(t, Node):
        t = t.left
    return t.value * t.value * w


def mapped(t: Tree, w: float) -> Tree:
    match t:
        case Leaf(value, label):
            return Leaf(value * w * value, label + 1)
        case Node(left, right):
            return Node(mapped(right, w), mapped(left, w))


def of_a_new_tree(t: Tree, w: float) -> float:
    return total(mapped(t, w), w) * total(t, w)


def repeated(t: Tree, w: float) -> float:
    for k in range(3):
        t = Node(t, Leaf(w * k, k)) if k % 2 == 0 else mapped(t, w)
    return total(t, w)


def replaced(t: Tree, w: float) -> float:
    match t:
        case Leaf():
            return total(Node(replace(t, value=t.value * w), t), w)
        case Node(left, right):
            return replaced(left, w) + 0.5 * replaced(right, w)


def partly_stopped(t: Tree, w: float) -> float:
    return total(t, w) * stop_gradient(total(t, w)) if w > 10 else total(t, w) + total(stop_gradient(t), 2.0) * w


def with_closure(t: Tree, w: float) -> float:
    def at(v):
        return total(t, v) * w

    return at(w) + at(0.3)


def chosen_function(t: Tree, w: float) -> float:
    f = total if w > 0.5 else by_attributes
    return f(t, w)


def summed(c: Cell | None, w: float) -> float:
    return 0.0 if c is None else math.exp(c.head * w) + w * summed(c.tail, w)


def looped(c: Cell | None, w: float) -> float:
    s = w
    while c is not None:
        s = math.sin(s + c.head * w)
        c = c.tail
    return s


def reversed_cells(c: Cell | None, w: float) -> float:
    out = None
    while c is not None:
        out = Cell(c.head * w, out)
        c = c.tail
    return looped(out, w)


def zipped(c: Cell | None, w: float) -> float:
    d, s = c, 0.0
    while d is not None and d.tail is not None:
        s += d.head * d.tail.head * w
        d = d.tail
    return s + looped(c, w)


def evaluated(e: Expr, x: float) -> float:
    match e:
        case Num(v):
            return v
        case Var():
            return x
        case Binary(a, b, (p, q), add):
            return p * evaluated(a, x) + q * evaluated(b, x) if add else p * evaluated(a, x) * evaluated(b, x * q)


def encoded(t: Parse, w: float):
    match t:
        case Word(v):
            return np.tanh(v * w)
        case Phrase(l, r, bias):
            a, b = encoded(l, w), encoded(r, w * 0.9)
            return np.tanh(a * b + bias) + a * np.sum(b)


def energy(t: Parse, w: float) -> float:
    return float(np.sum(encoded(t, w) ** 2))


TREES = {
    **dict.fromkeys(
        (
            total,
            by_attributes,
            twice,
            leftmost,
            of_a_new_tree,
            repeated,
            replaced,
            partly_stopped,
            with_closure,
            chosen_function,
        ),
        (grown(4, 0.3), grown(0, 0.8), Node(Leaf(0.2, 1), grown(2, -0.4))),
    ),
    **dict.fromkeys((summed, looped, reversed_cells, zipped), (cells(0.3, -0.2, 0.9, 0.4), cells(0.7))),
    evaluated: (expression(4), expression(2)),
    energy: (parse(3), parse(0), parse(2, 5)),
}
STOPPED = (partly_stopped,)


def cases(python: tuple, native: tuple) -> list:
    """Every objective for the interpreter, some for the other executors: what these do differently does not depend on the order."""
    some = {"interpreter": tuple(TREES), "python": python, "native": native}
    return [pytest.param(f, e, id=f"{f.__name__}-{e}") for e, functions in some.items() for f in functions]


# Trees as vectors.


def numbers(tree) -> list[float]:
    """The floats of a tree, in order; None counts as nothing, so that a gradient has those of what it belongs to."""
    if is_dataclass(tree):
        return [x for f in fields(tree) for x in numbers(getattr(tree, f.name))]
    if isinstance(tree, tuple):
        return [x for part in tree for x in numbers(part)]
    if isinstance(tree, np.ndarray):
        return tree.tolist()
    return [tree] if isinstance(tree, float) else []


def with_numbers(tree, values: typing.Iterator[float]):
    """The tree with other floats."""
    if is_dataclass(tree):
        return type(tree)(*[with_numbers(getattr(tree, f.name), values) for f in fields(tree)])
    if isinstance(tree, tuple):
        return tuple(with_numbers(part, values) for part in tree)
    if isinstance(tree, np.ndarray):
        return np.array([next(values) for _ in tree])
    return next(values) if isinstance(tree, float) else tree


def direction(tree, seed: int = 7):
    """A tangent of a tree."""
    rng = np.random.default_rng(seed)
    return with_numbers(tree, iter(lambda: float(rng.normal()), None))


def moved(tree, along, h: float):
    """The tree, further along a tangent."""
    return with_numbers(tree, iter([x + h * d for x, d in zip(numbers(tree), numbers(along), strict=True)]))


def differences(f, tree, h: float = 1e-5) -> list[float]:
    """The gradient by central differences."""
    x = numbers(tree)
    out = []
    for k in range(len(x)):
        up, down = ([v + s * h * (i == k) for i, v in enumerate(x)] for s in (1, -1))
        out.append((f(with_numbers(tree, iter(up))) - f(with_numbers(tree, iter(down)))) / (2 * h))
    return out


def same_shape(gradient, tree) -> bool:
    """Whether a gradient has the structure of a tree, with None for what is no float."""
    if is_dataclass(tree):
        same = [same_shape(getattr(gradient, f.name), getattr(tree, f.name)) for f in fields(tree)]
        return type(gradient) is type(tree) and all(same)
    if isinstance(tree, tuple):
        return type(gradient) is tuple and len(gradient) == len(tree) and all(map(same_shape, gradient, tree))
    if isinstance(tree, float):
        return type(gradient) is float
    return gradient is None if not isinstance(tree, np.ndarray) else gradient.shape == tree.shape


def without_labels(tree):
    """The tree as its gradient has it: None for what is no float."""
    if is_dataclass(tree):
        return type(tree)(*[without_labels(getattr(tree, f.name)) for f in fields(tree)])
    if isinstance(tree, tuple):
        return tuple(map(without_labels, tree))
    return tree if isinstance(tree, float | np.ndarray) else None


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("f", "executor"), cases((total, reversed_cells, evaluated, energy), tuple(TREES)))
def test_gradients(f, executor):
    both = relay(value_and_grad(f, (0, 1)), executor=executor)
    w = 0.7
    for tree in TREES[f]:
        value, (by_tree, by_w) = both(tree, w)
        assert value == pytest.approx(f(tree, w), rel=1e-12)
        assert same_shape(by_tree, tree)
        if f not in STOPPED:
            assert numbers(by_tree) == pytest.approx(differences(lambda t: f(t, w), tree), rel=1e-6, abs=1e-8)
            assert by_w == pytest.approx((f(tree, w + 1e-5) - f(tree, w - 1e-5)) / 2e-5, rel=1e-6, abs=1e-8)
    assert both.cache_info().misses == 1 and not both._structural


@pytest.mark.parametrize("f", [total, twice, leftmost, of_a_new_tree, replaced, looped, evaluated, energy])
@pytest.mark.sampled(4)
def test_as_with_the_structure_in_the_type(f):
    slope, other = relay(grad(f)), relay(grad(f))
    other._structural = True
    for tree in TREES[f]:
        assert numbers(slope(tree, 0.7)) == pytest.approx(numbers(other(tree, 0.7)), rel=1e-12)


def test_programs_for_single_structures_do_not_grow_without_bound(monkeypatch):
    monkeypatch.setattr("myia_relay.infer.engine.engine.MOST_OF_SHAPES", 5)
    slope = relay(grad(total), executor="interpreter")
    slope._structural = True
    with pytest.raises(CompileError, match="grows too large"):
        slope(TREES[total][0], 0.7)


@pytest.mark.parametrize(("f", "executor"), cases((total, energy), (total, of_a_new_tree, looped, evaluated, energy)))
@pytest.mark.sampled(8)
def test_directional_derivatives(f, executor):
    """Forward mode is reverse mode, and forward over reverse what differences of gradients are."""
    along = relay(lambda t, dt, w: jvp(f, (t, w), (dt, 0.5)), executor=executor)
    second = relay(lambda t, dt, w: hvp(lambda u: f(u, w), t, dt), executor=executor)
    slope = relay(grad(f, (0, 1)), executor=executor)
    for tree in TREES[f]:
        dt, w, h = direction(tree), 0.7, 1e-5
        by_tree, by_w = slope(tree, w)
        wanted = float(np.dot(numbers(by_tree), numbers(dt)) + 0.5 * by_w)
        assert along(tree, dt, w) == pytest.approx((f(tree, w), wanted), rel=1e-9, abs=1e-12)
        up, down = (numbers(slope(moved(tree, dt, s * h), w)[0]) for s in (1, -1))
        found = second(tree, dt, w)
        assert same_shape(found, tree)
        assert numbers(found) == pytest.approx((np.array(up) - down) / (2 * h), rel=1e-6, abs=1e-7)
    assert second.cache_info().misses == along.cache_info().misses == 1


@pytest.mark.parametrize(
    ("f", "executor"),
    [(f, "interpreter") for f in (total, of_a_new_tree, looped, evaluated, energy)]
    + [(total, "native"), (looped, "native")],
)
@pytest.mark.sampled(4)
def test_reverse_over_reverse_and_third_order(f, executor):
    def along(t, dt, w):
        return jvp(lambda u: f(u, w), (t,), (dt,))[1]

    second = relay(grad(lambda t, dt, w: along(t, dt, w)), executor=executor)
    third = relay(grad(grad(lambda w, t, dt: along(t, dt, w))), executor=executor)
    slope = relay(grad(f), executor=executor)
    for tree in TREES[f]:
        dt, w, h = direction(tree), 0.7, 1e-5
        up, down = (np.array(numbers(slope(moved(tree, dt, s * h), w))) for s in (1, -1))
        assert numbers(second(tree, dt, w)) == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-7)
        at = [float(np.dot(numbers(slope(tree, w + s * 1e-4)), numbers(dt))) for s in (-1, 0, 1)]
        assert third(w, tree, dt) == pytest.approx((at[0] - 2 * at[1] + at[2]) / 1e-8, rel=1e-4, abs=1e-5)
    assert second.cache_info().misses == third.cache_info().misses == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_gradient_of_a_gradient(executor):
    """The gradient by a tree is a tree, of which a function is differentiated again."""

    def length(c: Cell | None) -> float:
        return 0.0 if c is None else c.head * c.head + length(c.tail)

    def penalty(c, w):
        return length(grad(looped)(c, w))

    slope, run = relay(grad(penalty), executor=executor), relay(penalty)
    for c in (cells(0.3, -0.2, 0.9, 0.4), cells(0.1, 0.2)):
        assert numbers(slope(c, 0.7)) == pytest.approx(differences(lambda d: run(d, 0.7), c), rel=1e-5, abs=1e-7)
    assert slope.cache_info().misses == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_derivatives_of_trees(executor):
    """A tree as a result: its tangent, and cotangents of it."""

    def pulled(t, d, w):
        y, pullback = vjp(mapped, t, w)
        return y, pullback(d)

    push = relay(lambda t, dt, w: jvp(mapped, (t, w), (dt, 1.0)), executor=executor)
    pull = relay(pulled, executor=executor)
    for tree in TREES[total]:
        dt, d, w = direction(tree), direction(mapped(tree, 1.0), 3), 0.7
        y, dy = push(tree, dt, w)
        assert y == mapped(tree, w) and same_shape(dy, mapped(tree, w))
        y, (by_tree, by_w) = pull(tree, d, w)
        assert y == mapped(tree, w) and same_shape(by_tree, tree)
        assert np.dot(numbers(dy), numbers(d)) == pytest.approx(np.dot(numbers(by_tree), numbers(dt)) + by_w, rel=1e-12)
    assert push.cache_info().misses == pull.cache_info().misses == 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_step_of_descent(executor):
    """A gradient goes through the functions that trees go through; where labels are, it has None."""

    def stepped(c: Cell | None, d: Cell | None) -> Cell | None:
        return None if c is None else Cell(c.head - 0.1 * d.head, stepped(c.tail, d.tail))

    def labelled(t: Tree, d: Tree) -> Tree:
        match t:
            case Leaf(value, label):
                return Leaf(value - 0.1 * d.value, label)
            case Node(left, right):
                return Node(labelled(left, d.left), labelled(right, d.right))

    train = relay(lambda c, w: stepped(c, grad(looped)(c, w)), executor=executor)
    other = relay(lambda t, w: labelled(t, grad(total)(t, w)), executor=executor)
    slope, c, t = relay(grad(looped)), TREES[looped][0], TREES[total][0]
    assert numbers(train(c, 0.7)) == pytest.approx(np.array(numbers(c)) - 0.1 * np.array(numbers(slope(c, 0.7))))
    assert numbers(other(t, 0.7)) == pytest.approx(
        np.array(numbers(t)) - 0.1 * np.array(numbers(relay(grad(total))(t, 0.7)))
    )
    assert other(t, 0.7).left.right.right.label == t.left.right.right.label


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_shared_and_deep_trees(executor):
    shared = Node(Leaf(0.3, 1), Leaf(0.2, 2))
    slope = relay(grad(total), executor=executor)
    found = slope(Node(shared, shared), 0.7)  # each place has a derivative of its own
    assert numbers(found) == pytest.approx(differences(lambda t: total(t, 0.7), Node(shared, shared)), rel=1e-7)
    assert found.left != found.right

    def scaled(c: Cell | None, w: float) -> float:
        return 0.0 if c is None else c.head * w + 0.999 * scaled(c.tail, w)

    if executor == "python":  # runs on CPython's stack
        return
    n = 10_000
    deep = cells(*[0.1] * n)
    assert heads(relay(grad(scaled), executor=executor)(deep, 0.7)) == pytest.approx(
        [0.7 * 0.999**k for k in range(n)], rel=1e-9
    )
    assert len(heads(relay(grad(looped), executor=executor)(deep, 0.7))) == n


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_trees_within_structures(executor):
    def f(model, x):
        return total(model["tree"], x) * model["scale"] + looped(model["cells"][0], x) * model["cells"][1]

    slope = relay(grad(f), executor=executor)
    for tree, c in zip(TREES[total], (*TREES[looped], cells(0.2)), strict=True):
        model = {"tree": tree, "scale": 1.5, "cells": (c, 2.0)}
        got = slope(model, 0.7)
        assert list(got) == ["tree", "scale", "cells"] and same_shape(got["tree"], tree)
        assert numbers(got["tree"]) == pytest.approx([1.5 * x for x in numbers(relay(grad(total))(tree, 0.7))])
        assert numbers(got["cells"][0]) == pytest.approx([2.0 * x for x in numbers(relay(grad(looped))(c, 0.7))])
        assert got["scale"] == pytest.approx(total(tree, 0.7)) and got["cells"][1] == pytest.approx(looped(c, 0.7))
    assert slope.cache_info().misses == 1


@pytest.mark.parametrize("executor", EXECUTORS)
def test_tangents_of_another_shape_are_refused(executor):
    along = relay(lambda t, dt: jvp(lambda u: total(u, 0.7), (t,), (dt,))[1], executor=executor)
    tree = Node(Leaf(0.3), Node(Leaf(0.1), Leaf(0.2)))
    assert along(tree, tree) != 0
    with pytest.raises(TypeError, match="has not the shape"):
        along(tree, Node(Leaf(1.0), Leaf(1.0)))
    with pytest.raises(TypeError, match="has not the shape"):
        along(tree, Leaf(1.0))


@dataclass(frozen=True)
class Count:
    number: int
    rest: Count | None


def test_a_tree_without_floats():
    def f(c: Count, w: float) -> float:
        return w * c.number

    assert relay(grad(f, (0, 1)))(Count(3, Count(2, None)), 2.0) == (Count(None, Count(None, None)), 3.0)
