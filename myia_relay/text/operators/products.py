"""Products of matrices and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.dims import product as product_of
from ...abstract.types import FLOATS
from ...ir.build import Builder, Var
from ...prims.api.implementations import IMPLEMENTATIONS
from ...prims.api.promotion import astype
from ...prims.ops import elementwise as P
from ...prims.ops.linalg import batched_dot, dot
from ...prims.rules.broadcast import broadcast_to, reduce_sum
from ...prims.rules.relations import NUMBERS
from ...utils.errors import ShapeError, TypeError_
from ..terms.show import show
from ..terms.solver import Facts
from ..terms.terms import ANY, prune
from .declare import Attr, operator
from .rules import accept, axis_of, broadcast_size
from .staged import array, arrays, finished, permuted, require_sizes, reshaped

OUT = Attr("out_dtype", "")


def out_dtype(facts: Facts, dtype: Any) -> Any:
    """The dtype of a product: the attribute `out_dtype`, or that of the operands."""
    return facts.attr("out_dtype") or dtype


def matrix_product(x: Var, y: Var, dtype: str = "") -> Var:
    """The product of two matrices; of integers too."""
    if dtype and dtype != x.dtype:
        x, y = astype(x, dtype), astype(y, dtype)
    if x.dtype in FLOATS:
        return dot(x, y)
    (m, k), (_, n) = x.shape, y.shape
    return reduce_sum(P.mul(reshaped(x, [m, k, 1]), reshaped(y, [1, k, n])), axes=(1,))


def _inner(facts: Facts, x: Any, y: Any, a: Any, c: Any) -> None:
    facts.same_size(
        x, y, f"{facts.name}: {show(a)} and {show(c)} do not fit: the sizes {show(x)} and {show(y)} are summed over"
    )


def _dense(facts: Facts) -> None:
    x, w = facts.tensor(0), facts.tensor(1)
    dtype = out_dtype(facts, facts.same_dtype(x, w))
    accept(facts, x, NUMBERS)
    units, inner = facts.rank(w, 2, what="the weight")
    if facts.attr("units") is not None:
        facts.same_size(
            units, facts.attr("units"), f"nn.dense: units={facts.attr('units')}, and the weight is {show(w)}"
        )
    shape = facts.shape(x)
    if not shape:
        raise ShapeError("nn.dense takes a tensor with at least one axis")
    _inner(facts, shape[-1], inner, x, w)
    facts.gives_tensor((*shape[:-1], units), dtype)


@operator("nn.dense", ("data", "weight"), _dense, {"units": Attr("int", None), "out_dtype": OUT})
def dense(b: Builder, data: Var, weight: Var, units: Any = None, out_dtype: str = "") -> Var:
    """data weight^T, along the last axis of the data; the weight is (units, features)."""
    x, w = array(data), array(weight)
    require_sizes("nn.dense", x.shape[-1:], w.shape[1:], "the last axis of the data")
    flat = reshaped(x, [product_of(x.shape[:-1]), x.shape[-1]])
    if x.dtype in FLOATS and out_dtype in ("", x.dtype):
        out = dot(flat, w, transpose_b=True)
    else:
        out = matrix_product(flat, permuted(w, (1, 0)), out_dtype)
    return reshaped(out, [*x.shape[:-1], w.shape[0]])


def _matmul(facts: Facts) -> None:
    x, y = facts.tensor(0), facts.tensor(1)
    dtype = out_dtype(facts, facts.same_dtype(x, y))
    accept(facts, x, NUMBERS)
    right = facts.rank(y, 2, what="the second factor")
    inner, units = right[::-1] if facts.attr("transpose_b") else right
    shape = facts.shape(x)
    if facts.attr("transpose_a"):
        shape = (*shape[:-2], *shape[:-3:-1])
    if not shape:
        raise ShapeError("nn.matmul takes a tensor with at least one axis")
    _inner(facts, shape[-1], inner, x, y)
    facts.gives_tensor((*shape[:-1], units), dtype)


TRANSPOSED = {"transpose_a": Attr("bool", False), "transpose_b": Attr("bool", False)}


@operator("nn.matmul", ("tensor_a", "tensor_b"), _matmul, {"units": Attr("int", None), "out_dtype": OUT, **TRANSPOSED})
def matmul(b: Builder, tensor_a, tensor_b, units=None, out_dtype="", transpose_a=False, transpose_b=False) -> Var:
    """The product of a tensor, along its last axis, with a matrix; either may be transposed."""
    x, y = array(tensor_a), array(tensor_b)
    if transpose_a:
        x = permuted(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])
    if transpose_b:
        y = permuted(y, (1, 0))
    require_sizes("nn.matmul", x.shape[-1:], y.shape[:1], "the last axis of the first factor")
    flat = reshaped(x, [product_of(x.shape[:-1]), x.shape[-1]])
    return reshaped(matrix_product(flat, y, out_dtype), [*x.shape[:-1], y.shape[1]])


def _batch_matmul(facts: Facts) -> None:
    x, y = facts.tensor(0), facts.tensor(1)
    dtype = out_dtype(facts, facts.same_dtype(x, y))
    accept(facts, x, NUMBERS)
    left, right = facts.rank(x, 3, what="the first factor"), facts.rank(y, 3, what="the second factor")
    m, inner = left[:0:-1] if facts.attr("transpose_a") else left[1:]
    other, n = right[:0:-1] if facts.attr("transpose_b") else right[1:]
    _inner(facts, inner, other, x, y)
    batch = broadcast_size(facts, left[0], right[0], 0, (x, y))
    facts.gives_tensor((batch, m, n), dtype)


@operator("nn.batch_matmul", ("tensor_a", "tensor_b"), _batch_matmul, {"out_dtype": OUT, **TRANSPOSED})
def batch_matmul(b: Builder, tensor_a, tensor_b, out_dtype="", transpose_a=False, transpose_b=False) -> Var:
    """Products of matrices, pair by pair; one matrix goes with all."""
    x, y = array(tensor_a), array(tensor_b)
    if out_dtype and out_dtype != x.dtype:
        x, y = astype(x, out_dtype), astype(y, out_dtype)
    if transpose_a:
        x = permuted(x, (0, 2, 1))
    if transpose_b:
        y = permuted(y, (0, 2, 1))
    if x.shape[0] != y.shape[0]:
        many = y.shape[0] if x.shape[0] == 1 else x.shape[0]
        x, y = (broadcast_to(v, shape=(many, *v.shape[1:])) for v in (x, y))
    require_sizes("nn.batch_matmul", x.shape[2:], y.shape[1:2], "the last axis of the first factor")
    if x.dtype in FLOATS:
        return batched_dot(x, y)
    wide = P.mul(reshaped(x, [*x.shape, 1]), reshaped(y, [y.shape[0], 1, *y.shape[1:]]))
    return reduce_sum(wide, axes=(2,))


def _bias_add(facts: Facts) -> None:
    x, bias = facts.tensor(0), facts.tensor(1)
    facts.same_dtype(x, bias)
    facts.gives(x)
    shape = facts.shape(x)
    axis = axis_of(facts, facts.attr("axis"), len(shape))
    (size,) = facts.rank(bias, 1, what="the bias")
    facts.same_size(
        shape[axis], size, f"nn.bias_add: axis {axis} of {show(x)} has not the size of the bias, which is {show(bias)}"
    )


def along_axis(x: Var, v: Var, axis: int, name: str) -> Var:
    """A vector, shaped so that it broadcasts along an axis of a tensor."""
    at = axis % x.ndim
    require_sizes(name, v.shape, x.shape[at : at + 1], "the vector")
    return reshaped(v, [v.shape[0] if k == at else 1 for k in range(x.ndim)])


@operator("nn.bias_add", ("data", "bias"), _bias_add, {"axis": Attr("int", 1)})
def bias_add(b: Builder, data: Var, bias: Var, axis: int = 1) -> Var:
    """A vector is added along an axis."""
    x = array(data)
    return P.add(x, along_axis(x, array(bias), axis, "nn.bias_add"))


# Einstein's summation.


def parse_equation(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """The subscripts of the operands and of the result; `...` becomes capital letters from the end of the alphabet.

    Raises:
        TypeError_: the equation is of another form, or does not fit.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        raise TypeError_(f"einsum: the equation '{equation}' is about {len(parts)} tensors, and {len(ranks)} are given")
    extra = [r - len(p.replace("...", "")) for p, r in zip(parts, ranks, strict=True)]
    letters = "ZYXWVUTSRQPONMLKJIHGFEDCBA"[
        : max([e for p, e in zip(parts, extra, strict=True) if "..." in p], default=0)
    ][::-1]
    out = []
    for part, more in zip(parts, extra, strict=True):
        if more < 0 or more and "..." not in part:
            raise TypeError_(
                f"einsum: '{part}' in '{equation}' does not fit a tensor with {more + len(part.replace('...', ''))} axes"
            )
        out.append(part.replace("...", letters[len(letters) - more :] if more else ""))
    if not arrow:
        seen = "".join(out)
        right = letters + "".join(sorted(c for c in set(seen) - set(letters) if seen.count(c) == 1))
    else:
        right = right.replace("...", letters)
    if not set(right) <= set("".join(out)) or len(set(right)) != len(right) or not "".join(out).isalpha() and any(out):
        raise TypeError_(f"einsum: the equation '{equation}' is not of the form 'ij,jk->ik'")
    return out, right


def _einsum(facts: Facts) -> None:
    parts = facts.tensors(0)
    dtype = facts.same_dtype(*parts)
    accept(facts, parts[0], NUMBERS)
    shapes = [facts.shape(p) for p in parts]
    subscripts, result = parse_equation(facts.attr("equation"), [len(s) for s in shapes])
    sizes: dict[str, Any] = {}
    for text, shape, part in zip(subscripts, shapes, parts, strict=True):
        for letter, size in zip(text, shape, strict=True):
            have = prune(sizes.get(letter, 1))
            if letter not in sizes or have is ANY or letter.isupper() and isinstance(have, int) and have == 1:
                sizes[letter] = size
            elif not (letter.isupper() and isinstance(prune(size), int) and prune(size) == 1):
                facts.same_size(
                    have,
                    size,
                    f"einsum: '{letter}' stands for the sizes {show(have)} and {show(size)}, of which the last is of {show(part)}",
                )
    facts.gives_tensor(tuple(sizes[c] for c in result), dtype)


@operator("einsum", ("data",), _einsum, {"equation": Attr("str")})
def einsum(b: Builder, data: Any, equation: str) -> Var:
    """Einstein's summation: einsum((%a, %b), equation="ij,jk->ik")."""
    parts = arrays(b, data)
    subscripts, result = parse_equation(equation, [p.ndim for p in parts])
    out = IMPLEMENTATIONS[np.einsum](b, f"{','.join(subscripts)}->{result}", *parts)
    return finished(out if out.dtype == parts[0].dtype else astype(out, parts[0].dtype))
