"""Type relations: broadcasting with symbolic sizes, kinds of results, and what errors say."""

from __future__ import annotations

import pytest

from myia_relay.abstract.dims import symbol
from myia_relay.abstract.types import BOOL, FLOAT, INT, Array, Scalar
from myia_relay.ir.prim import REGISTRY
from myia_relay.prims.rules.relations import broadcast_shapes, join_kind, normalise_axes, show_shape
from myia_relay.utils.errors import ShapeError, TypeError_

N, M = symbol("n"), symbol("m")


def infer(name, *types, **attrs):
    prim = REGISTRY[name]
    return prim.infer_rule(*types, **{**prim.attr_defaults, **attrs})


@pytest.mark.parametrize(
    "shapes, result",
    [
        (((2, 3), (3,)), (2, 3)),
        (((2, 1), (1, 5)), (2, 5)),
        (((N, 3), (3,)), (N, 3)),
        (((N, 1), (1, M)), (N, M)),
        (((N,), (N,)), (N,)),
        (((), (4,)), (4,)),
        (((0, 3), (1, 3)), (0, 3)),
        (((N + 1,), (1 + N,)), (N + 1,)),
    ],
)
def test_broadcasting(shapes, result):
    assert broadcast_shapes("add", *shapes) == result


@pytest.mark.parametrize("shapes", [((2, 3), (4,)), ((N,), (3,)), ((N,), (M,)), ((N,), (N + 1,))])
def test_sizes_that_do_not_broadcast_are_named(shapes):
    with pytest.raises(ShapeError) as error:
        broadcast_shapes("add", *shapes)
    for shape in shapes:
        assert show_shape(shape) in str(error.value)


def test_kinds_of_results():
    array, scalar = Array("float64", (2,)), Scalar("float64")
    assert join_kind("float64", (), FLOAT, FLOAT) == FLOAT
    assert join_kind("float64", (), FLOAT, scalar) == scalar
    assert join_kind("float64", (2,), FLOAT, array) == array
    assert infer("lt", INT, INT) == BOOL
    assert infer("lt", scalar, FLOAT) == Scalar("bool")
    assert infer("reduce_sum", array, axes=(0,)) == scalar
    assert infer("reduce_sum", array, axes=(0,), keepdims=True) == Array("float64", (1,))
    assert infer("where", BOOL, FLOAT, FLOAT) == FLOAT


@pytest.mark.parametrize(
    "name, types, text",
    [
        ("add", (FLOAT, INT), "different dtypes: float, int"),
        ("exp", (INT,), "exp takes floats, and this is int"),
        ("bitwise_and", (FLOAT, FLOAT), "integers and booleans"),
        ("logical_not", (INT,), "booleans"),
    ],
)
def test_dtypes_are_strict(name, types, text):
    with pytest.raises(TypeError_, match=text):
        infer(name, *types)


def test_axes():
    assert normalise_axes("sum", None, (2, 3, 4)) == (0, 1, 2)
    assert normalise_axes("sum", (-1, 0), (2, 3, 4)) == (0, 2)
    with pytest.raises(ShapeError, match="out of bounds"):
        normalise_axes("sum", 3, (2, 3, 4))
    with pytest.raises(ShapeError, match="duplicate"):
        normalise_axes("sum", (0, -3), (2, 3, 4))


def test_symbolic_shapes_of_layers():
    images, filters = Array("float32", (N, 1, 28, 28)), Array("float32", (20, 1, 5, 5))
    assert infer("conv2d", images, filters).shape == (N, 20, 24, 24)
    pooled = infer("max_pool", Array("float32", (N, 20, 24, 24)), ksize=(2, 2), strides=(2, 2))
    assert pooled.shape == (N, 20, 12, 12)
    assert infer("reshape", pooled, shape=(N, 2880)).shape == (N, 2880)
    with pytest.raises(ShapeError, match="cannot reshape"):
        infer("reshape", pooled, shape=(N, 2881))
