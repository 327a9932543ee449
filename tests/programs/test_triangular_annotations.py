"""`Tensor[..., Lower]`, `Tensor[..., Upper]`: what is said is looked at, half the work is done, derivatives are triangles too."""

# ruff: noqa: F821, UP037

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from myia_relay import CompileError, Float32, Float64, Int, Lower, Tensor, TypeError_, Upper, grad, hvp, relay, vmap
from myia_relay.ir.node import applied
from myia_relay.ir.rewrite import all_graphs
from myia_relay.opt.pipeline import plan_memory

EXECUTORS = ["native", "python", "interpreter"]
RNG = np.random.default_rng(5)
LOW = np.tril(RNG.normal(size=(64, 64)))
X = RNG.normal(size=(64, 50))
Square = Tensor[Float64, ("n", "n"), Lower]


def squares(a: Square, x: Tensor[Float64, ("n", "m")]) -> Float64:
    return np.sum((a @ x) ** 2)


def products(graph):
    return [n for g in all_graphs(plan_memory(graph)) for n in g.nodes if applied(n) == "triangular_dot"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("executor", EXECUTORS)
def test_values_and_derivatives(executor):
    f = relay(squares, executor=executor)
    full = relay(lambda a, x: np.sum((a @ x) ** 2), executor=executor)
    np.testing.assert_allclose(f(LOW, X), squares(LOW, X), rtol=1e-12)
    np.testing.assert_allclose(grad(f, "a")(LOW, X), np.tril(grad(full, "a")(LOW, X)), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(grad(f, "x")(LOW, X), grad(full, "x")(LOW, X), rtol=1e-10)
    step = np.tril(RNG.normal(size=LOW.shape))
    wanted = np.tril(hvp(lambda a: full(a, X), (LOW,), (step,)))
    np.testing.assert_allclose(hvp(lambda a: f(a, X), (LOW,), (step,)), wanted, rtol=1e-9, atol=1e-9)
    assert products(f.ir(LOW, X).graph)


def test_derivatives_are_those_of_triangles():
    @relay
    def f(a: Tensor[Float64, (3, 3), Lower]):
        return np.sum(np.exp(a) * a.T)

    def packed(v):
        a = np.zeros((3, 3))
        a[np.tril_indices(3)] = v
        return f(a)

    a, v = np.tril(RNG.normal(size=(3, 3))), np.eye(6)
    a_packed = a[np.tril_indices(3)]
    differences = [(packed(a_packed + 1e-6 * v[k]) - packed(a_packed - 1e-6 * v[k])) / 2e-6 for k in range(6)]
    np.testing.assert_allclose(grad(f)(a)[np.tril_indices(3)], differences, rtol=1e-7)
    assert not np.triu(grad(f)(a), 1).any()


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("value", [1.0, -0.0, np.nan, np.inf])
@pytest.mark.sampled(6)
def test_what_is_no_triangle_is_refused(executor, value):
    @relay(executor=executor)
    def lower(a: Square):
        return a * 2.0

    @relay(executor=executor)
    def upper(a: Tensor[Float64, ("n", "n"), Upper]):
        return a * 2.0

    a = LOW.copy()
    a[3, 5] = value
    with pytest.raises(ValueError, match=r"annotated Lower .* above its diagonal; pass np\.tril\(x\)"):
        lower(a)
    with pytest.raises(ValueError, match=r"annotated Upper .* below its diagonal; pass np\.triu\(x\)"):
        upper(a.T.copy())
    a[3, 5], a[5, 3] = 0.0, value
    np.testing.assert_array_equal(lower(a), a * 2.0)
    np.testing.assert_array_equal(upper(a.T), a.T * 2.0)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_variables_results_and_inner_functions(executor):
    @relay(executor=executor)
    def f(a):
        u: Tensor[Float64, ("n", "n"), Upper] = a.T

        def square(q: Tensor[Float64, (Any, Any), Upper]) -> Tensor[Float64, ("n", "n"), Upper]:
            if q[0, 0] > 100.0:
                return q
            return q @ q

        return square(u)

    np.testing.assert_allclose(f(LOW), LOW.T @ LOW.T, rtol=1e-10, atol=1e-12)
    with pytest.raises(ValueError, match="annotated Upper"):
        f(LOW + 1.0)

    @relay(executor=executor)
    def wrong(a) -> Square:
        return a + 1.0

    with pytest.raises(ValueError, match="annotated Lower"):
        wrong(LOW)


def test_stacks_and_shapes_that_are_not_square():
    @relay
    def f(a: Tensor[Float32, (2, "m", "n"), Lower]):
        return a.sum()

    for shape in ((2, 3, 5), (2, 5, 3), (2, 0, 3), (2, 1, 1)):
        a = np.tril(RNG.normal(size=shape)).astype(np.float32)
        np.testing.assert_allclose(f(a), a.sum(), rtol=1e-5)
    batched = vmap(relay(squares), in_axes=(0, None))(np.stack([LOW, 2 * LOW]), X)
    np.testing.assert_allclose(batched, [squares(LOW, X), squares(2 * LOW, X)], rtol=1e-12)


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((Float64, 4, Lower), "only matrices of floats"),
        ((Int, (3, 3), Lower), "only matrices of floats"),
        ((Float64, (3, 3), "lower"), "Lower or Upper"),
    ],
)
def test_annotations_that_say_nothing(item, message):
    with pytest.raises(TypeError_, match=message):
        Tensor[item]


class Pair(NamedTuple):
    a: Tensor[Float64, (2, 2), Lower]
    b: float


@dataclass(frozen=True)
class Fields:
    a: Tensor[Float64, ("n", "n"), Lower]


@dataclass(frozen=True)
class Tree:
    a: Tensor[Float64, (2, 2), Lower]
    rest: "Tree | None"


@pytest.mark.parametrize(
    "value", [Pair(np.eye(2), 1.0), Fields(np.eye(2)), Tree(np.eye(2), None)], ids=lambda v: type(v).__name__
)
def test_fields_are_refused(value):
    with pytest.raises(CompileError, match="only parameters, variables and results may be Lower"):
        relay(lambda x: x.a * 2.0)(value)


def test_parts_of_annotations_are_refused():
    @relay
    def parts(x: tuple[Tensor[Float64, (2, 2), Lower], int]):
        return x[0]

    @relay
    def perhaps(x: Tensor[Float64, (2, 2), Lower] | None = None):
        return x

    for function, value in ((parts, (np.eye(2), 1)), (perhaps, np.eye(2))):
        with pytest.raises(CompileError, match="Lower says something of an array that stands alone"):
            function(value)


def test_how_it_prints():
    assert repr(Square) == "Tensor[float64, ('n', 'n'), Lower]"
    with pytest.raises(TypeError_, match="annotated Tensor.*Lower.*float32"):
        relay(squares)(LOW.astype(np.float32), X)
