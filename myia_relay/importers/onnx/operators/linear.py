"""Linear algebra."""

from __future__ import annotations

import numpy as np

from ....abstract.types import FLOATS, INTS
from ....ir.build import Var
from ....library import linear_algebra
from ....prims.ops.shape import transpose
from ....prims.rules.broadcast import as_array, cast
from ....utils.errors import ValueError_
from ..table import Context, operator


def product(c: Context, a: Var, b: Var) -> Var:
    """np.matmul; an array also without axes."""
    out = c.numpy(np.matmul, a, b)
    return out if out.shape else as_array(out)


@operator("MatMul")
def mat_mul(c: Context, a, b):
    """The product of matrices, and of stacks of them; vectors are rows on the left and columns on the right."""
    if a.dtype in INTS:
        wide = "float64" if a.dtype in ("int32", "uint32") else a.dtype
        return cast(product(c, cast(a, dtype=wide), cast(b, dtype=wide)), dtype=a.dtype)
    return product(c, a, b)


@operator("Gemm")
def gemm(c: Context, a, b, bias=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, broadcast=0):
    """alpha * A @ B + beta * C."""
    whole = a.dtype
    if whole not in FLOATS:
        a, b = (cast(v, dtype="float64") for v in (a, b))
        bias = None if bias is None else cast(bias, dtype="float64")
    a = transpose(a, perm=(1, 0)) if transA else a
    b = transpose(b, perm=(1, 0)) if transB else b
    out = product(c, a, b)
    out = out if alpha == 1 else out * out.const(alpha)
    if bias is not None and beta != 0:
        out = out + (bias if beta == 1 else bias * bias.const(beta))
    return out if whole in FLOATS else cast(out, dtype=whole)


@operator("Det")
async def det(c: Context, x):
    """The determinant of matrices."""
    if x.dtype in ("float16", "bfloat16"):
        return cast(await det(c, cast(x, dtype="float32")), dtype=x.dtype)
    return await c.call(linear_algebra.det, x)


@operator("Einsum", raw=True)
async def einsum(c: Context, *xs, equation):
    """A sum of products by Einstein's convention, with ellipses and repeated letters.

    Raises:
        ValueError_: the equation does not fit the inputs.
    """
    text = equation.replace(" ", "")
    arrays = [x.var for x in xs]
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError_(f"the equation '{equation}' is for {len(terms)} inputs, and there are {len(arrays)}")
    from .einsum import contracted

    return contracted(c, terms, right if arrow else None, arrays, equation)
