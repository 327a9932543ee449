"""Linear algebra; Einstein sums, of diagonals, transposes, products of two operands at a time, and sums."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ....abstract.types import INTS
from ....ir.build import Var
from ....library import linear_algebra
from ....prims.ops import elementwise as P
from ....prims.ops.shape import transpose
from ....prims.rules.broadcast import as_array, broadcast_to, cast, reduce_sum, reshape
from ....utils.errors import ShapeError, ValueError_
from ..table import Context, operator


def product(c: Context, a: Var, b: Var) -> Var:
    """np.matmul; an array also without axes."""
    out = c.numpy(np.matmul, a, b)
    return out if out.shape else as_array(out)


@operator("MatMul")
def mat_mul(c: Context, a, b):
    """The product of matrices, and of stacks of them; vectors are rows on the left and columns on the right."""
    return product(c, a, b)


@operator("Gemm")
def gemm(c: Context, a, b, bias=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, broadcast=0):
    """alpha * A @ B + beta * C. Integers wrap, but are scaled by fractions in float64, and truncated."""
    a = transpose(a, perm=(1, 0)) if transA else a
    b = transpose(b, perm=(1, 0)) if transB else b
    out, whole = product(c, a, b), a.dtype
    more: Var | None = None if beta == 0 else bias
    if whole in INTS and not (float(alpha).is_integer() and (more is None or float(beta).is_integer())):
        out, more = cast(out, dtype="float64"), None if more is None else cast(more, dtype="float64")
    elif whole in INTS:
        alpha, beta = int(alpha), int(beta)
    out = out if alpha == 1 else scaled(out, alpha)
    if more is not None:
        out = out + (more if beta == 1 else scaled(more, beta))
    return cast(out, dtype=whole)


def scaled(x: Var, factor: float) -> Var:
    """A multiple; that of integers wraps, also for a factor that their dtype has not."""
    if x.dtype not in INTS:
        return x * x.const(factor)
    bits = np.iinfo(x.dtype).bits
    return x * x.builder.var(x.builder.constant(np.array(int(factor) % (1 << bits), f"uint{bits}").astype(x.dtype)))


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
    return contracted(c, terms, right if arrow else None, arrays, equation)


DOTS = "..."


def contracted(c: Context, terms: list[str], result: str | None, arrays: list[Var], equation: str) -> Var:
    """The value of an Einstein sum.

    Raises:
        ValueError_: the equation does not fit the operands.
        ShapeError: sizes of one letter differ.
    """
    labels, most = [], 0
    for term, x in zip(terms, arrays, strict=True):
        hidden = len(x.shape) - (len(term.replace(DOTS, "")))
        if hidden < 0 or (hidden and DOTS not in term):
            raise ValueError_(f"the term '{term}' of '{equation}' does not fit an operand of {len(x.shape)} axes")
        most = max(most, hidden if DOTS in term else 0)
        labels.append((term, hidden))
    names = [[*_expanded(term, hidden)] for term, hidden in labels]
    if result is None:
        counts = Counter(k for own in names for k in own)
        out = [f"~{k}" for k in range(most, 0, -1)] if any(DOTS in t for t in terms) else []
        out += sorted(k for k, n in counts.items() if n == 1 and not k.startswith("~"))
    else:
        out = _expanded(result, most)
    operands = [_without_repeats(c, x, own) for x, own in zip(arrays, names, strict=True)]
    sizes: dict = {}
    for x, own in operands:
        for name, d in zip(own, x.shape, strict=True):
            if name in sizes and sizes[name] != d and d != 1 and sizes[name] != 1:
                raise ShapeError(f"the index '{name}' of '{equation}' has the sizes {sizes[name]} and {d}")
            sizes[name] = d if sizes.get(name, 1) == 1 else sizes[name]
    if any(k not in sizes for k in out):
        raise ValueError_(f"the result of '{equation}' has an index that no operand has")
    total, own = operands[0]
    for k, (x, other) in enumerate(operands[1:], 1):
        needed = set(out).union(*(o for _, o in operands[k + 1 :]))
        total, own = _product(c, total, own, x, other, needed, sizes)
    gone = tuple(k for k, name in enumerate(own) if name not in out)
    if gone:
        total = as_array(reduce_sum(total, axes=gone))
        own = [name for name in own if name in out]
    total = transpose(total, perm=tuple(own.index(name) for name in out)) if own else total
    return broadcast_to(total, shape=tuple(sizes[k] for k in out))


def _expanded(term: str, hidden: int) -> list[str]:
    """The letters of a term, with names for the axes of its ellipsis, counted from the last one."""
    if DOTS not in term:
        return list(term)
    before, _, after = term.partition(DOTS)
    return [*before, *(f"~{k}" for k in range(hidden, 0, -1)), *after]


def _without_repeats(c: Context, x: Var, names: list[str]) -> tuple[Var, list[str]]:
    """An operand without repeated letters: its diagonals."""
    while len(set(names)) < len(names):
        name = next(k for k in names if names.count(k) > 1)
        i = names.index(name)
        j = names.index(name, i + 1)
        x = as_array(c.numpy(np.diagonal, x, 0, i, j))
        names = [k for p, k in enumerate(names) if p not in (i, j)] + [name]
    return x, names


def _product(c: Context, x: Var, own: list[str], y: Var, other: list[str], needed: set, sizes: dict):
    """The product of two operands, summed over the letters that are needed no more: a stack of matrix products."""
    both = [k for k in own if k in other and k in needed]
    inner = [k for k in own if k in other and k not in needed]
    left, right = [k for k in own if k not in other], [k for k in other if k not in own]

    def matrix(v: Var, names: list[str], order: list[list[str]]) -> Var:
        shape = tuple(sizes[k] for k in names)
        v = broadcast_to(v, shape=shape)
        flat = [k for part in order for k in part]
        v = transpose(v, perm=tuple(names.index(k) for k in flat))
        from ....abstract.dims import product

        return reshape(v, shape=tuple(product(sizes[k] for k in part) for part in order))

    if not inner:
        wide_x = _spread(x, own, [*both, *left, *right])
        wide_y = _spread(y, other, [*both, *left, *right])
        out = P.mul(wide_x, wide_y)
    else:
        a, b = matrix(x, own, [both, left, inner]), matrix(y, other, [both, inner, right])
        out = c.numpy(np.matmul, a, b)
        out = reshape(out, shape=tuple(sizes[k] for k in (*both, *left, *right)))
    return out, [*both, *left, *right]


def _spread(x: Var, names: list[str], order: list[str]) -> Var:
    """An operand with its axes in an order, and axes of size 1 for letters that it has not."""
    kept = [k for k in order if k in names]
    x = transpose(x, perm=tuple(names.index(k) for k in kept)) if kept else x
    sizes = dict(zip(kept, x.shape))
    return reshape(x, shape=tuple(sizes.get(k, 1) for k in order))
