"""Kernels of operators that users lower by themselves, in TVM's tensor expressions.

Idea: the user's function makes a TE tensor from placeholders. TVM makes loops of it, whose buffers become memory of our
plan. TE's buffers are aligned to 64 bytes, which arrays of callers need not be: operands are copied in, and the result
is copied out. With batch axes the loops are nested in loops over the examples.

Input: a `Call` of `operator_kernel`. Output: statements in its kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import tvm
from tvm import te, tirx, topi
from tvm.s_tir import transform

from ....abstract.dims import known_size, product
from ....abstract.types import Array, Leaf, Scalar
from ....utils.errors import CompileError, TypeError_
from ..plan import ITEM
from ..tir.block import idx
from .kernel import address_of

WIDE = 1 << 31  # elements: from here on indices are 64 bits wide


class Namespace:
    """What a user's lowering is given: TVM's `te`, with `topi` and `tir`."""

    topi, tir = topi, tirx

    def __getattr__(self, name: str) -> Any:
        return getattr(te, name)


def emit(c: Any) -> None:
    """Emit an application of `operator_kernel`."""
    attrs, types = c.attrs, list(c.types)
    sizes = []
    for flags in attrs["levels"]:
        sizes.append(next(t.shape[0] for t, flag in zip(types, flags, strict=True) if flag))
        types = [Array(t.dtype, t.shape[1:]) if flag else t for t, flag in zip(types, flags, strict=True)]
    out = Array(c.out_type.dtype, c.out_type.shape[len(sizes) :])
    if 0 in (*sizes, *out.shape):
        return
    body, parameters = loops_of(attrs["op"], dict(attrs["attrs"]), types, out)
    operands = [_scalar(c, k) if isinstance(c.types[k], Scalar) else c.operand(k)[0] for k in range(len(types))]
    result = c.result()[0]
    places = [c.scratch(max(known_size(product(t.shape)), 1), t.dtype)[0] for t in (*types, out)]
    scratch = {}
    for statement in body:
        if isinstance(statement, tirx.AllocBuffer):
            t = _array_type(statement.buffer.ty)
            scratch[statement.buffer] = c.scratch(max(known_size(product(t.shape)), 1), t.dtype)[0]
    with ExitStack() as stack:
        at = [stack.enter_context(c.block.loop(size, name="example")) for size in sizes]
        for k, (t, source, place) in enumerate(zip(types, operands, places)):
            offset = _offset(at, sizes, [flags[k] for flags in attrs["levels"]], t)
            _copy(c, place, 0, source, offset, t)
        for buffer, place in (*zip(parameters, places, strict=True), *scratch.items()):
            c.block.emit(tirx.DeclBuffer(buffer, data=address_of(place, idx(0))))
        for statement in body:
            if not isinstance(statement, tirx.AllocBuffer):
                c.block.emit(statement)
        _copy(c, result, _offset(at, sizes, [True] * len(sizes), out), places[-1], 0, out)


def loops_of(op: Any, attrs: dict[str, Any], types: Sequence[Leaf], out: Array) -> tuple[list[Any], list[Any]]:
    """The statements of an operator's tensor expression, and the buffers of its arguments and its result.

    Raises:
        TypeError_: the user's function fails, or gives something else than the relation says.
        CompileError: the user's function raises one.
    """  # noqa: DOC501 (TypeError does not leave it)
    wide = any(known_size(product(t.shape)) >= WIDE for t in (*types, out))
    tensors = [
        te.placeholder(tuple(tirx.IntImm("int64" if wide else "int32", known_size(d)) for d in t.shape), t.dtype, name)
        for name, t in zip(op._names(len(types)), types)
    ]
    try:
        made = op.lower(Namespace(), *tensors, **attrs)
        if not isinstance(made, te.Tensor):
            raise TypeError(f"it returned a {type(made).__name__}, and one te.Tensor is wanted")
        have = _array_type(made)
    except CompileError:
        raise
    except Exception as error:
        raise TypeError_(f"the lowering of the operator {op.name} fails: {error}") from error
    if have != out:
        raise TypeError_(f"the lowering of the operator {op.name} gives {have}, and its relation says {out}")
    if any(made is t for t in tensors):
        made = topi.identity(made)
    module = tvm.IRModule({"main": te.create_prim_func([*tensors, made])})
    for step in (
        transform.LowerInitBlock(),
        transform.ConvertBlocksToOpaque(),
        transform.LowerMatchBuffer(),
        transform.LowerOpaqueBlock(),
    ):
        module = step(module)
    function = module["main"]
    body = list(function.body.seq) if isinstance(function.body, tirx.SeqStmt) else [function.body]
    return body, list(function.params)


def _array_type(made: Any) -> Array:
    """The type of what is in a tensor or a buffer of TVM's."""
    return Array(str(made.dtype), tuple(int(d) for d in made.shape))


def _scalar(c: Any, k: int) -> Any:
    """A scalar argument as a buffer of one element."""
    buffer = c.scratch(1, c.types[k].dtype)[0]
    c.block.store(buffer, c.scalar(k), 0)
    return buffer


def _offset(at: list[Any], sizes: list[int], flags: list[bool], t: Leaf) -> Any:
    """Where an example begins in memory, in elements."""
    total: Any = 0
    for i, size, flag in zip(at, sizes, flags, strict=True):
        if flag:
            total = i if isinstance(total, int) and total == 0 else tirx.Add(tirx.Mul(idx(total), idx(size)), i)
    return total if isinstance(total, int) else tirx.Mul(total, idx(product(t.shape)))


def _copy(c: Any, target: Any, to: Any, source: Any, at: Any, t: Leaf) -> None:
    """Copy one example's array."""
    nbytes = idx(known_size(product(t.shape)) * ITEM[t.dtype])
    pointers = [address_of(target, idx(to)), address_of(source, idx(at))]
    c.block.emit(tirx.Evaluate(tirx.call_extern("handle", "memmove", *pointers, nbytes)))


__all__ = ["emit", "loops_of"]
