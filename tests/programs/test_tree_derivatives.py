"""Derivatives of recursions over algebraic data types by what is beside the tree, in all executors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from myia_relay import grad, jvp, relay


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Node:
    left: Tree
    right: Tree


Tree = Leaf | Node


def total(t: Tree, w: float) -> float:
    match t:
        case Leaf(value):
            return math.tanh(value * w)
        case Node(left, right):
            return math.tanh(total(left, w) + w * total(right, w * 0.9))


def mirrored(t: Tree) -> Tree:
    match t:
        case Leaf(value):
            return Leaf(value * 0.5)
        case Node(left, right):
            return Node(mirrored(right), mirrored(left))


def of_two(t: Tree, w: float) -> float:
    """The tree of the first factor is made inside, and what is kept of it must last until the backward version is done."""
    return total(mirrored(t), w) * total(t, w)


def grown(n: int, x: float) -> Tree:
    return Leaf(x) if n == 0 else Node(grown(n - 1, x * 0.9), grown(max(n - 2, 0), x + 0.1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("f", [total, of_two])
def test_weights(f, executor):
    tree, h = grown(6, 0.3), 1e-5
    wanted = (f(tree, 0.7 + h) - f(tree, 0.7 - h)) / (2 * h)
    slope = relay(grad(f, "w"), executor=executor)
    assert slope(tree, 0.7) == pytest.approx(wanted, rel=1e-8)
    tangent = relay(lambda t, w: jvp(lambda v: f(t, v), (w,), (1.0,))[1], executor=executor)
    assert tangent(tree, 0.7) == pytest.approx(wanted, rel=1e-8)
    second = (slope(tree, 0.7 + h) - slope(tree, 0.7 - h)) / (2 * h)
    assert relay(grad(grad(f, "w"), "w"), executor=executor)(tree, 0.7) == pytest.approx(second, rel=1e-7)
    assert slope(grown(3, -0.2), 0.7) != slope(tree, 0.7)
