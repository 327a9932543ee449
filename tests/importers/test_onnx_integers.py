"""Integers of ONNX operators are exact and wrap: nothing goes through floats that have not all of them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from myia_relay import relay

RNG = np.random.default_rng(5)
WIDE = ("int32", "int64", "uint64")


def anything(dtype: str, *shape: int) -> np.ndarray:
    """Integers over the whole range of a dtype, its ends among them."""
    info = np.iinfo(dtype)
    out = RNG.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    out.flat[:2] = info.min, info.max
    return out


def imported(operator: str, *inputs: np.ndarray, opset: int = 22, **attributes):
    """A model of one node, whose inputs all have names for sizes."""
    ports = [
        helper.make_tensor_value_info(
            f"x{k}", helper.np_dtype_to_tensor_dtype(v.dtype), [f"d{k}_{a}" for a in range(v.ndim)]
        )
        for k, v in enumerate(inputs)
    ]
    node = helper.make_node(operator, [p.name for p in ports], ["y"], **attributes)
    graph = helper.make_graph([node], "g", ports, [onnx.ValueInfoProto(name="y")])
    return relay.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10))


def check(operator: str, want: np.ndarray, *inputs: np.ndarray, **options) -> None:
    f = imported(operator, *inputs, **options)
    for got in (f(*inputs), f.interpret(*inputs)):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", WIDE)
def test_products_of_matrices(dtype):
    a, b, bias = anything(dtype, 3, 4), anything(dtype, 4, 5), anything(dtype, 5)
    check("MatMul", a @ b, a, b)
    check("Gemm", a @ b + bias, a, b, bias)
    check("Gemm", a @ b * np.array(3, dtype) + bias * np.array(5, dtype), a, b, bias, alpha=3.0, beta=5.0)
    small, more = (RNG.integers(0, 9, s).astype(dtype) for s in ((3, 4), (5, 4)))
    check("Gemm", (small @ more.T * 0.5).astype(dtype), small, more, alpha=0.5, transB=1)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,jk->i", "ij,ij->ij", "ij,kj->", "ij,jk,kl->il"])
@pytest.mark.sampled(3)
def test_einstein_sums(dtype, equation):
    operands = [anything(dtype, 4, 4) for _ in range(equation.count(",") + 1)]
    check("Einsum", np.asarray(np.einsum(equation, *operands)), *operands, equation=equation)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
def test_powers_of_integers(dtype):
    base = anything(dtype, 6)
    base[2:] = 1, 2, 3, 0
    exponent = np.array([3, 2, 200, 130, 0, 0])
    # Python's integers, of which the low bits are kept.
    want = [pow(int(a), int(b)) % (1 << np.iinfo(dtype).bits) for a, b in zip(base, exponent, strict=True)]
    want = np.array(want, f"uint{np.iinfo(dtype).bits}").astype(dtype)
    check("Pow", want, base, exponent)
    check("Pow", want, base, exponent.astype("uint8"))


def test_negative_exponents_of_integers():
    for dtype in ("int32", "int64"):
        base, exponent = np.array([1, -1, -1, 2, -3, 0, 5], dtype), np.array([-2, -3, -2, -1, -2, -1, 2])
        check("Pow", np.array([1, -1, 1, 0, 0, np.iinfo(dtype).min, 25], dtype), base, exponent)


@pytest.mark.parametrize(
    "dtype, start, limit, delta",
    [
        ("int64", 2**53 + 1, 2**53 + 7, 2),
        ("int64", -(2**63), 2**63 - 1, 2**61 + 3),
        ("int64", 2**63 - 1, -(2**63), -(2**62)),
        ("int32", 2**31 - 9, 2**31 - 1, 3),
        ("int64", 5, 5, 1),
        ("int64", 5, 1, 1),
    ],
)
def test_ranges_of_integers(dtype, start, limit, delta):
    want = np.array(list(range(start, limit, delta)), dtype)
    check("Range", want, *(np.array(v, dtype) for v in (start, limit, delta)))


def test_lengths_of_vectors_of_integers():
    x = np.array([[100_000, 3], [-4, 3]], np.int32)
    check("ReduceL2", np.array([[100_000], [5]], np.int32), x, axes=[1], opset=13)
