"""Sizes with names: one staging serves every size, and what cannot be known is refused or checked at run time."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import INT, Array
from myia_relay.ir.build import Builder
from myia_relay.ir.node import Graph
from myia_relay.ir.prim import REGISTRY
from myia_relay.model import layers  # noqa: F401  what layers mean is declared there
from myia_relay.prims.api.nn_api import NN_OPS
from myia_relay.prims.api.numpy_api import IMPLEMENTATIONS, METHODS, getitem, setitem
from myia_relay.prims.api.operators import OPERATORS
from myia_relay.utils.errors import ShapeError

from .staged import execute, reverse
from .test_numpy_functions import same

N = symbol("n")


def stage(rule, dtype="float64", shape=(N, 3)):
    """A graph of a function of one array with symbolic sizes; called with a real one."""
    graph = Graph("test")
    builder = Builder(graph)
    out = rule(builder, builder.var(graph.add_parameter("x", Array(dtype, shape))))

    def call(x):
        sizes = {str(d): n for d, n in zip(shape, x.shape, strict=True) if not isinstance(d, int)}
        return execute(graph, [x], out, sizes)

    return call


def plus(b, x, y):
    return OPERATORS[operator.add](b, x, y)


CASES = {
    "rows to one": (
        lambda b, x: OPERATORS[operator.truediv](b, x, IMPLEMENTATIONS[np.sum](b, x, axis=1, keepdims=True)),
        lambda x: x / np.sum(x, axis=1, keepdims=True),
    ),
    "mean": (lambda b, x: METHODS["mean"](b, x), np.mean),
    "mean of columns": (lambda b, x: IMPLEMENTATIONS[np.mean](b, x, 0), lambda x: np.mean(x, 0)),
    "variance": (lambda b, x: IMPLEMENTATIONS[np.var](b, x), np.var),
    "flat": (lambda b, x: IMPLEMENTATIONS[np.reshape](b, x, -1), lambda x: x.reshape(-1)),
    "flat by size": (lambda b, x: METHODS["reshape"](b, x, METHODS["size"](b, x)), lambda x: x.reshape(x.size)),
    "reshape by shape": (
        lambda b, x: METHODS["reshape"](b, x, 3, METHODS["shape"](b, x)[0]),
        lambda x: x.reshape(3, -1),
    ),
    "gram": (lambda b, x: IMPLEMENTATIONS[np.matmul](b, x, METHODS["T"](b, x)), lambda x: x @ x.T),
    "first": (lambda b, x: getitem(b, x, 0), lambda x: x[0]),
    "last": (lambda b, x: getitem(b, x, -1), lambda x: x[-1]),
    "tail": (lambda b, x: getitem(b, x, slice(1, None)), lambda x: x[1:]),
    "but last": (lambda b, x: getitem(b, x, slice(None, -1)), lambda x: x[:-1]),
    "backwards": (lambda b, x: getitem(b, x, slice(None, None, -1)), lambda x: x[::-1]),
    "every other": (lambda b, x: getitem(b, x, slice(None, None, 2)), lambda x: x[::2]),
    "two rows": (lambda b, x: getitem(b, x, slice(None, 2)), lambda x: x[:2]),
    "differences": (lambda b, x: IMPLEMENTATIONS[np.diff](b, x, axis=0), lambda x: np.diff(x, axis=0)),
    "stacked": (lambda b, x: IMPLEMENTATIONS[np.concatenate](b, [x, x]), lambda x: np.concatenate([x, x])),
    "zeros": (
        lambda b, x: plus(b, IMPLEMENTATIONS[np.zeros_like](b, x), IMPLEMENTATIONS[np.ones](b, METHODS["shape"](b, x))),
        lambda x: np.ones_like(x),
    ),
    "arange": (lambda b, x: IMPLEMENTATIONS[np.arange](b, METHODS["shape"](b, x)[0]), lambda x: np.arange(x.shape[0])),
    "set row": (lambda b, x: setitem(b, x, 1, 5.0), lambda x: np.concatenate([x[:1], np.full((1, 3), 5.0), x[2:]])),
    "product": (lambda b, x: IMPLEMENTATIONS[np.prod](b, x, 0), lambda x: np.prod(x, 0)),
    "einsum": (lambda b, x: IMPLEMENTATIONS[np.einsum](b, "ni,nj->ij", x, x), lambda x: x.T @ x),
    "softmax": (lambda b, x: NN_OPS["softmax"](b, x), lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
    "tril of gram": (
        lambda b, x: IMPLEMENTATIONS[np.tril](b, IMPLEMENTATIONS[np.matmul](b, x, METHODS["T"](b, x))),
        lambda x: np.tril(x @ x.T),
    ),
    "diagonal": (
        lambda b, x: IMPLEMENTATIONS[np.diagonal](b, IMPLEMENTATIONS[np.matmul](b, x, METHODS["T"](b, x))),
        lambda x: np.diagonal(x @ x.T),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_staging_serves_every_size(name):
    rule, reference = CASES[name]
    staged = stage(rule)
    for n in (2, 3, 7):
        x = np.random.default_rng(n).uniform(0.1, 1, (n, 3))
        same(staged(x), np.asarray(reference(x))[()], name, 1e-12)


def test_derivatives_of_a_product_of_any_number_of_factors():
    """Each factor's cofactor, where some are 0, too: n is not known when the rule is run."""
    product, weights = REGISTRY["reduce_prod"], np.array([0.5, 2.0, -1.0])

    def backward(b, x):
        return reverse(product(x, axes=(0,)), x.const(weights), [x])[0]

    def forward(b, x):
        return product.jvp_rule(x, product(x, axes=(0,)), (x * x,), axes=(0,))

    back, fore = stage(backward), stage(forward)
    for n in (1, 2, 5):
        x = np.random.default_rng(n).uniform(0.5, 2.0, (n, 3))
        x[n // 2, 0] = 0.0
        cofactors = np.stack([np.prod(np.delete(x, k, 0), 0) for k in range(n)])
        np.testing.assert_allclose(back(x), weights * cofactors, rtol=1e-14)
        np.testing.assert_allclose(fore(x), np.sum(x * x * cofactors, 0), rtol=1e-14)


def test_what_depends_on_the_size_is_checked_at_run_time():
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 3"):
        stage(lambda b, x: getitem(b, x, 4))(np.ones((3, 3)))
    with pytest.raises(IndexError, match="beyond axis 0, of size 3"):
        stage(lambda b, x: getitem(b, x, slice(None, 5)))(np.ones((3, 3)))


def test_slices_of_an_axis_of_any_size():
    infer = REGISTRY["dynamic_slice"].infer_rule
    assert infer(Array("float64", (N, 3)), INT, axis=0, length=5) == Array("float64", (5, 3))
    assert infer(Array("float64", (N, 3)), INT, axis=1, length=N) == Array("float64", (N, N))


def test_arithmetic_of_sizes_stays_symbolic():
    staged = stage(
        lambda b, x: IMPLEMENTATIONS[np.zeros](b, (plus(b, METHODS["shape"](b, x)[0], b.var(b.constant(1))), 2))
    )
    assert staged(np.ones((4, 3))).shape == (5, 2)


def test_different_names_do_not_broadcast():
    with pytest.raises(ShapeError, match=r"\(n, 3\) and \(4, 3\) do not broadcast"):
        stage(lambda b, x: plus(b, x, b.var(b.constant(np.ones((4, 3))))))
    with pytest.raises(ShapeError, match=r"\(n, 3\) and \(n, 3\) do not fit"):
        stage(lambda b, x: OPERATORS[operator.matmul](b, x, x))


def test_filters_of_a_symbolic_size_are_refused():
    images = np.ones((1, 2, 8, 8))
    with pytest.raises(ShapeError, match=r"must be known when compiling, and these have shape \(4, 2, n, 3\)"):
        stage(lambda b, w: NN_OPS["conv2d"](b, b.var(b.constant(images)), w), shape=(4, 2, N, 3))
