"""Data types that a program declares, with type parameters: one family of records for each instance."""

from __future__ import annotations

import numpy as np
import pytest

from myia_relay import TypeError_, grad, relay
from myia_relay.abstract.declared import Declaration, InstanceOf, TypeParameter, declaration_of
from myia_relay.abstract.types import FLOAT, INT, Array, Data, tuple_of

A, B = TypeParameter("a"), TypeParameter("b")
LIST, OPTION, EITHER, ROSE = (
    Declaration("List", ("a",)),
    Declaration("Option", ("a",)),
    Declaration("Either", ("a", "b")),
    Declaration("Rose", ("a",)),
)
Nil, Cons = LIST.constructor("Nil"), LIST.constructor("Cons", A, InstanceOf(LIST, (A,)), fields=("head", "tail"))
Nothing, Some = OPTION.constructor("Nothing"), OPTION.constructor("Some", A)
Left, Right = EITHER.constructor("Left", A), EITHER.constructor("Right", B)
Branch = ROSE.constructor("Branch", A, InstanceOf(LIST, (InstanceOf(ROSE, (A,)),)))
IntNil = LIST.at(Nil, INT)


def listed(*values):
    out = Nil()
    for value in reversed(values):
        out = Cons(value, out)
    return out


def fold(f, first, xs):
    match xs:
        case Nil():
            return first
        case Cons(head, tail):
            return f(head, fold(f, first, tail))


def mapped(f, xs):
    return Nil() if isinstance(xs, Nil) else Cons(f(xs.head), mapped(f, xs.tail))


def up_to(n):
    return Nil() if n == 0 else Cons(n, up_to(n - 1))


def first_above(bound, xs):
    if isinstance(xs, Nil):
        return Nothing()
    return Some(xs.head) if xs.head > bound else first_above(bound, xs.tail)


def of_two_types(n, x):
    """One program with a list of ints, one of floats, one of pairs and an option."""
    numbers = up_to(n)
    scaled = mapped(lambda k: k * x, numbers)
    pairs = mapped(lambda v: (v, n), scaled)
    found = first_above(2.0, scaled)
    total = fold(lambda v, rest: v + rest, 0.0, scaled) + fold(lambda p, rest: p[0] * p[1] + rest, 0.0, pairs)
    return total + found.f0 if isinstance(found, Some) else total


def either(n):
    return Left(n) if n > 2 else Right(n * 0.5)


def rose(n):
    return Branch(n, Nil()) if n == 0 else Branch(n, Cons(rose(n - 1), Cons(rose(n - 1), Nil())))


def size(tree):
    return 1 + fold(lambda inner, rest: size(inner) + rest, 0, tree.f1)


def nested(n):
    return fold(lambda xs, rest: fold(lambda k, r: k + r, 0, xs) + rest, 0, mapped(up_to, up_to(n)))


def of_a_tree(n):
    return size(rose(n))


PROGRAMS = [
    (of_two_types, (5, 2.0)),
    (of_two_types, (1, 0.5)),
    (nested, (4,)),
    (of_a_tree, (4,)),
    (up_to, (3,)),
    (rose, (1,)),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("function", "args"), PROGRAMS)
def test_programs(function, args, executor):
    got, want = relay(executor=executor)(function)(*args), function(*args)
    assert type(got) is type(want) and got == want


def test_a_value_of_two_parameters(executor):
    @relay(executor=executor)
    def f(n):
        found = either(n)
        return found.f0 * 1.0 if isinstance(found, Left) else found.f0 + 0.25

    assert f(3) == 3.0 and f(1) == 0.75


@pytest.mark.sampled(3)
def test_arguments_and_gradients(executor):
    @relay(executor=executor)
    def total(xs, w):
        return fold(lambda a, b: a + b, 0.0, mapped(lambda v: v * v * w, xs))

    xs = listed(1.0, 2.0, 3.0)
    assert total(xs, 2.0) == 28.0 and total(Nil(), 2.0) == 0.0
    assert grad(total)(xs, 2.0) == listed(4.0, 8.0, 12.0)
    assert grad(grad(lambda xs, w: total(xs, w * w), "w"), "w")(xs, 2.0) == 28.0
    assert total.cache_info().misses == 2, "one program for lists of floats, one for a list of which nothing is known"


def test_lists_of_arrays(executor):
    @relay(executor=executor)
    def added(xs):
        return mapped(lambda v: v + 1.0, xs)

    assert added(listed(np.zeros((2, 3)), np.ones((2, 3)))) == listed(np.ones((2, 3)), np.full((2, 3), 2.0))


def test_a_constructor_of_a_certain_instance(executor):
    @relay(executor=executor)
    def made(n):
        return IntNil() if n == 0 else Cons(n, IntNil())

    assert made(0) == Nil() and made(2) == listed(2)


def test_long_values():
    xs = listed(*range(20_000))
    assert xs == listed(*range(20_000)) and xs != listed(*range(1, 20_001))
    assert repr(xs).startswith("Cons(0, Cons(1, ") and xs.constructor == "Cons" and xs.fields[0] == 0


def test_instances():
    assert LIST.instance(INT) is LIST.instance(INT) and LIST.instance(INT) is not LIST.instance(FLOAT)
    assert LIST.instance(INT).name == "List[int]" and declaration_of(Cons) is LIST
    inner = LIST.instance(tuple_of(INT, Array("float32", (2, 3))))
    assert inner.variant(Cons).leaves == (INT, Array("float32", (2, 3)), Data(inner))
    with pytest.raises(TypeError_, match="Either has 2 type parameters, and is given 1"):
        EITHER.instance(INT)


def test_an_instance_that_refers_to_ever_larger_ones_is_refused():
    nested = Declaration("Nested", ("a",))
    nested.constructor("Flat")
    nested.constructor("Deeper", A, InstanceOf(nested, (tuple_of(A, A),)))
    with pytest.raises(TypeError_, match="refers to ever larger instances"):
        nested.instance(INT)
