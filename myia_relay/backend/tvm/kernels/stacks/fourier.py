"""The discrete Fourier transform, natively: Stockham's algorithm with mixed radices.

A vector of n = r m numbers is transformed by m small transforms of r numbers each, which are n / r apart, and a multiplication
by roots of one; then the results are r vectors of m numbers, side by side, to be transformed in the same way. Each stage reads
one array and writes another one, in which the next stage finds its operands in order, so nothing is permuted at the end.

Input: a `Call` of `dft`. Output: statements in its kernel. Source: C. Van Loan, "Computational Frameworks for the Fast Fourier
Transform" (1992), 1.7 and 2.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx

from .....abstract.dims import known_size
from .....prims.ops.fourier import factors
from .....utils.errors import LoweringError
from ...tir.block import broadcast, idx, load, ramp
from ...tir.expr import constant
from ...tir.vecmath import elementwise
from ..conv import split
from ..nests import lanes_for

PARALLEL_FLOPS = 400_000  # as in `opaque`


def _add(*terms: Any) -> Any:
    total, *rest = map(idx, terms)
    for term in rest:
        total = tirx.Add(total, term)
    return total


def _mul(x: Any, y: Any) -> Any:
    return tirx.Mul(idx(x), idx(y))


def dft(c: Any) -> None:
    """Emit the transforms of a stack.

    Raises:
        LoweringError: the length has a large prime factor.
    """
    count, _, size = c.out_type.shape
    n, dtype = known_size(size), c.out_type.dtype
    steps = factors(n) if n else ()
    if steps is None:
        raise LoweringError(f"a transform of {n} numbers is not made of small ones")
    x, table, out = c.operand(0)[0], c.operand(1)[0], c.result()[0]
    tasks = 1 if count == 1 else c.tasks(count * n * 5 * max(len(steps), 1), PARALLEL_FLOPS)
    spare = c.scratch(max(1, 2 * n * tasks), dtype)[0]
    with split(c.block, c.dim(count), tasks) as (task, i):
        at = c.block.let(_mul(i, 2 * n))
        free = c.block.let(_mul(task, 2 * n))
        if not steps:
            with c.block.loop(2 * n) as k:
                place = _add(at, k)
                c.block.store(out, load(x, place), place)
            return
        source, done = (x, at), 1
        for k, radix in enumerate(steps):
            target = (out, at) if (len(steps) - k) % 2 else (spare, free)
            _stage(c, n, done, radix, source, target, table)
            source, done = target, done * radix


def _stage(c: Any, n: int, done: int, radix: int, source: tuple, target: tuple, table: Any) -> None:
    """One stage: `done` vectors lie side by side, each with `n / done` numbers."""
    block, b, sign = c.block, c.b, 1.0 if c.attrs["inverse"] else -1.0
    dtype, length = c.out_type.dtype, n // done
    m = length // radix
    lanes = 1
    while 2 * lanes <= min(lanes_for(dtype), done):
        lanes *= 2

    def transform(p: Any, twiddles: list) -> None:
        def butterfly(q: Any, width: int) -> None:
            parts = []
            for j in range(radix):
                place = _add(q, _mul(done, _add(p, m * j)))
                re, im = (load(source[0], ramp(_add(source[1], row * n, place), width)) for row in (0, 1))
                parts.append((block.let(re), block.let(im)))
            for k, (re, im) in enumerate(_small(block, b, parts, sign, dtype, width)):
                if k:
                    cos, sin = (broadcast(t, width) for t in twiddles[k - 1])
                    re, im = (
                        b.sub(b.mul(re, cos), b.mul(im, sin)),
                        b.add(b.mul(re, sin), b.mul(im, cos)),
                    )
                place = _add(q, _mul(done, _add(_mul(radix, p), k)))
                for row, value in ((0, re), (1, im)):
                    block.store(target[0], value, ramp(_add(target[1], row * n, place), width))

        elementwise(block, done, lanes, butterfly)

    with block.loop(m) as p:
        twiddles = []
        for k in range(1, radix):
            place = block.let(_mul(p, k * done))
            cos, sin = load(table, place), load(table, _add(place, n))
            twiddles.append((block.let(cos), block.let(sin if sign > 0 else b.neg(sin))))
        transform(p, twiddles)


def _small(block: Any, b: Any, parts: list, sign: float, dtype: str, lanes: int) -> list:
    """The transform of a few numbers, written out."""
    n = len(parts)
    if n == 4:
        evens, odds = [parts[0], parts[2]], [parts[1], parts[3]]
        (e0, e1), (o0, o1) = (_small(block, b, p, sign, dtype, lanes) for p in (evens, odds))
        turned = (b.neg(o1[1]), o1[0]) if sign > 0 else (o1[1], b.neg(o1[0]))
        pairs = ((e0, o0), (e1, turned))
        sums = [tuple(block.let(b.add(x, y)) for x, y in zip(u, v)) for u, v in pairs]
        return sums + [tuple(block.let(b.sub(x, y)) for x, y in zip(u, v)) for u, v in pairs]
    out = []
    for k in range(n):
        re, im = parts[0]
        for j in range(1, n):
            cos, sin = _root(j * k % n, n)
            x, y = parts[j]
            re = _plus(b, _plus(b, re, x, cos, dtype, lanes), y, -sign * sin, dtype, lanes)
            im = _plus(b, _plus(b, im, x, sign * sin, dtype, lanes), y, cos, dtype, lanes)
        out.append((block.let(re), block.let(im)))
    return out


def _root(k: int, n: int) -> tuple[float, float]:
    """cos and sin of 2 pi k / n; exact where they are 0 or 1."""
    if 4 * k % n == 0:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[4 * k // n]
    return math.cos(2 * math.pi * k / n), math.sin(2 * math.pi * k / n)


def _plus(b: Any, total: Any, x: Any, factor: float, dtype: str, lanes: int) -> Any:
    """total + factor * x."""
    if factor == 0:
        return total
    if abs(factor) == 1:
        return (b.add if factor > 0 else b.sub)(total, x)
    return b.add(total, b.mul(x, broadcast(constant(factor, dtype), lanes)))


__all__ = ["dft"]
