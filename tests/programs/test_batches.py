"""vmap of whatever the language has: what the examples have of their own, and the ways that they go, in every executor."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from myia_relay import LoweringError, checkpoint, grad, hessian, hvp, jacfwd, jacrev, jvp, relay, vjp, vmap

pytestmark = pytest.mark.sampled(4)

XS = np.array([0.5, -1.5, 2.0, 1.2, -0.1])


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass(frozen=True)
class Leaf:
    value: float


@dataclass(frozen=True)
class Fork:
    left: "Tree"
    right: "Tree"


Tree = Leaf | Fork


def total(t: Tree) -> float:
    match t:
        case Leaf(v):
            return v
        case Fork(left, right):
            return total(left) + 2.0 * total(right)


def tree_chosen(x):
    t = Fork(Leaf(1.0), Leaf(2.0)) if x > 0 else Leaf(0.25)
    return total(t) * x


def tree_after_a_loop(x):
    t = Fork(Leaf(1.0), Leaf(2.0))
    while x > 0:
        t = Leaf(0.25)
        x = x - 1.0
    return total(t) + x


def tree_grown(x):
    t: Tree = Leaf(1.0)
    y = x
    while y > 0:
        t = Fork(t, Leaf(float(x)))
        y = y - 0.5
    return total(t)


def list_grown(x):
    xs = []
    y = x
    while y > 0:
        xs.append(y)
        y = y - 0.7
    return sum(xs, 0.0) + float(len(xs))


def list_chosen(x):
    xs = [x, 2.0] if x > 0 else [x]
    return sum(xs)


def list_of_all(x):
    xs = []
    for i in range(4):
        xs.append(x * i)
    return sum(xs)


def function_chosen(x):
    k = x * 2.0
    g = (lambda y: y * k) if x > 0 else math.sin
    return g(x) + 1.0


def none_or_number(x):
    a = None
    for i in range(4):
        if x * i > 1.0:
            a = x * i
    return -x if a is None else a


def int_or_float(x):
    a = 1 if x > 0 else 0.5
    return a * 2 + x if isinstance(a, int) else a * x


def tuples(x):
    p = Pair(x, 2.0) if x > 0 else Pair(3.0, x)
    return p.a * p.b


def leaves_early(x):
    for i in range(5):
        if x * i > 2.0:
            return x * i
        elif x < -1.0:
            break
    else:
        return 7.0 * x
    return -x


def recursion(x):
    def go(y, k):
        return y if k <= 0 or y > 2.0 else go(y * 1.5, k - 1)

    return go(x, 5)


def dicts(x):
    d = {"u": x}
    if x > 0:
        d = {"u": x * 2, "v": 1.0}
    return sum(d.values())


def items(x):
    a = np.zeros(4)
    for i in range(4):
        if x > i * 0.4:
            a[i] = x
    return float(np.sum(a * a))


def loops_in_loops(x):
    t = 0.0
    y = x
    while y > 0:
        for i in range(3):
            if y * i > 1.5:
                break
            t += i * x
        y -= 0.6
    return t


FUNCTIONS = [
    tree_chosen, tree_after_a_loop, tree_grown, list_grown, list_chosen, list_of_all, function_chosen, none_or_number, int_or_float,
    tuples, leaves_early, recursion, dicts, items, loops_in_loops,
]  # fmt: skip


def of_float(f):
    """The function of the Python float that an example is: trees hold such."""
    return lambda x: f(float(x))


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_examples_are_computed_as_each_by_itself(f, executor):
    np.testing.assert_allclose(relay(vmap(of_float(f)), executor=executor)(XS), [f(x) for x in XS.tolist()], rtol=1e-14)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.sampled(8)
def test_derivatives_of_batches(f):
    want = [relay(grad(f))(x) for x in XS.tolist()]
    g = of_float(f)
    np.testing.assert_allclose(relay(vmap(grad(g)))(XS), want, rtol=1e-14)
    np.testing.assert_allclose(relay(grad(lambda xs: np.sum(vmap(g)(xs))))(XS), want, rtol=1e-14)
    np.testing.assert_allclose(relay(vmap(lambda x: jvp(g, (x,), (1.0,))[1]))(XS), want, rtol=1e-14)


def prints(x):
    print("begin")
    if x > 0:
        for i in range(2):
            print(i, x * i)
    return x * x


@pytest.mark.parametrize("executor", ["native", "python", "interpreter"])
def test_each_example_prints(executor, capsys):
    want = [prints(x) for x in XS.tolist()]
    printed = capsys.readouterr().out
    np.testing.assert_array_equal(relay(vmap(of_float(prints)), executor=executor)(XS), want)
    assert capsys.readouterr().out == printed
    np.testing.assert_allclose(relay(vmap(grad(of_float(prints))), executor=executor)(XS), 2 * XS)
    assert capsys.readouterr().out == printed


def cubes(x):
    s = 0.0
    for i in range(2):
        print(i, x[i])
        s = s + x[i] ** 3
    return s


DERIVATIVES = {
    "grad": grad,
    "grad of grad": lambda f: grad(lambda x: np.sum(grad(f)(x))),
    "hessian": hessian,
    "hvp": lambda f: lambda x: hvp(f, (x,), (x,)),
    "jvp of grad": lambda f: lambda x: jvp(grad(f), (x,), (x,)),
    "vjp": lambda f: lambda x: vjp(f, x)[1](1.0)[0],
    "checkpoint": lambda f: hessian(checkpoint(f)),
    "jacfwd": lambda f: jacfwd(jacfwd(f)),
    "jacrev": lambda f: jacrev(jacrev(f)),
    "mixed": lambda f: jacrev(jacfwd(f)),
}


@pytest.mark.parametrize("executor", ["native", "interpreter"])
@pytest.mark.parametrize("transform", DERIVATIVES.values(), ids=DERIVATIVES)
def test_a_derivative_prints_what_the_function_prints(transform, executor, capsys):
    x = np.array([0.5, 1.5])
    cubes(x)
    printed = capsys.readouterr().out
    relay(transform(cubes), executor=executor)(x)
    assert capsys.readouterr().out == printed


def test_what_cannot_be_stacked_is_refused():
    with pytest.raises(LoweringError, match="which cannot be stacked; return numbers or arrays"):
        relay(vmap(lambda x: Fork(Leaf(1.0), Leaf(2.0)) if x > 0 else Leaf(float(x))))(XS)


def branching(x, n):
    def g(y, k):
        if k <= 0:
            return y * 0.5
        s = 0.1
        for q in range(k):
            s = math.tanh(s + g(y * 0.9, k - 1 - q) * abs(x))
        return s

    return g(x, 2) - g(x, n)


def test_a_tape_that_only_one_branch_batches():
    np.testing.assert_allclose(
        relay(vmap(grad(branching), (0, None)))(XS, 3), [relay(grad(branching))(x, 3) for x in XS.tolist()], rtol=1e-13
    )


def added(row):
    total = 0.0
    for x in row:
        total += x * x
    return total


def of_two(x, y):
    return np.dot(x, y) + x[0]


LISTS = {
    "numbers": (lambda x: 2 * x, ([1.0, 2.0, -3.0],), 0),
    "ints": (lambda x: 2 * x, ([1, 2, 3],), 0),
    "few mixed": (lambda x: 2 * x, ([1, 2.5, True],), 0),
    "rows": (added, ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],), 0),
    "columns": (added, ([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],), 1),
    "pairs": (lambda p: p[0] * p[1], ([(1.0, 2), (3.0, 4)],), 0),
    "two lists": (of_two, ([[1.0, 2.0], [3.0, 4.0]], [[0.5, 1.5], [2.5, 3.5]]), 0),
    "one for all": (of_two, ([[1.0, 2.0], [3.0, 4.0]], [0.5, 1.5]), (0, None)),
    "an array beside it": (of_two, ([[1.0, 2.0], [3.0, 4.0]], np.ones((2, 2))), 0),
    "gradients": (grad(added), ([[1.0, 2.0], [3.0, 4.0]],), 0),
    "three levels": (lambda m: m[1, 0] + np.sum(m), ([[[1.0], [2.0]], [[3.0], [4.0]]],), 0),
}


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
@pytest.mark.parametrize("name", LISTS)
def test_lists_are_the_arrays_that_numpy_makes_of_them(name, executor):
    function, args, axes = LISTS[name]
    f = relay(vmap(function, in_axes=axes), executor=executor)
    batched = axes if isinstance(axes, tuple) else [axes] * len(args)
    arrays = [x if axis is None else np.asarray(x) for x, axis in zip(args, batched, strict=True)]
    want = f(*arrays)
    got = f(*args)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("executor", ["interpreter", "python", "native"])
def test_lists_in_dicts_and_in_programs_are_batches(executor):
    f = relay(vmap(lambda p, k: p["x"] * p["y"][k], in_axes=(0, None)), executor=executor)
    np.testing.assert_array_equal(f({"x": [1.0, 2.0], "y": [[3.0, 4.0], [5.0, 6.0]]}, 1), [4.0, 12.0])

    @relay(executor=executor)
    def loss(rows):
        return np.sum(vmap(added)(rows)) + np.sum(vmap(added)([[1.0, 2.0], [3.0, 4.0]]))

    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert loss(rows) == 91.0 + 30.0
    assert grad(loss)(rows) == [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]]
    with pytest.raises(ValueError, match="different sizes"):
        loss([[1.0, 2.0], [3.0]])
    with pytest.raises(TypeError, match="trees of a structure known at compile time"):
        relay(vmap(lambda p: p["x"]), executor=executor)([{"x": 1.0}, {"x": 2.0}])
