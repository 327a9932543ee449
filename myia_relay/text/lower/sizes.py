"""Sizes that the checker does not know (`?`): where they meet a declared size, a run checks that they agree.

The checker lets `?` agree with everything. At a parameter, a result or a `let` whose type says more, the value is looked at
when it is known to inference what its sizes are: equal sizes cost nothing, others are compared at run time, and from there on
the value has the sizes that it was declared to have. A name stands for the size that it is first seen as, in each call.

Input: a value and its term. Output: the value, with the sizes of the term.
"""

from __future__ import annotations

from typing import Any

from ...abstract.dims import Dim, may_be_equal
from ...abstract.types import Array
from ...infer.engine.engine import Engine
from ...infer.engine.frames import Frame
from ...infer.language.registry import handles
from ...infer.values.values import Dyn, Seq, Val
from ...ir.node import Apply
from ...ir.prim import REGISTRY
from ...ir.syntax import Syntax
from ...prims.api.promotion import guard, size_value
from ...prims.ops.shape import reshape
from ...utils.errors import ShapeError
from ..terms.show import show
from ..terms.terms import ANY, TensorTerm, TupleTerm, children, prune, rigids_of, substituted

conform = Syntax(
    "conform", "(value), attrs term, what -> the value; ShapeError where its sizes are not those of its type"
)


def says_sizes(t: Any) -> bool:
    """Whether a type says of an array how large it is."""
    t = prune(t)
    if isinstance(t, TupleTerm):
        return any(map(says_sizes, t.elems))
    if not isinstance(t, TensorTerm):
        return False
    shape = prune(t.shape)
    return isinstance(shape, tuple) and any(isinstance(prune(n), int | Dim) for n in shape)


def leaves_open(types: Any) -> bool:
    """Whether a size is left open (`?`) in any of some types."""
    seen: set[int] = set()
    stack = list(types)
    while stack:
        top = prune(stack.pop())
        if top is ANY:
            return True
        if id(top) not in seen:
            seen.add(id(top))
            stack.extend(children(top))
    return False


@handles(conform)
async def _conform(engine: Engine, frame: Frame, node: Apply) -> Val:
    names = frame.spec.graph.flags.setdefault("sizes", {})
    return _conformed(frame, engine.value(frame, node.args[0]), node.attrs["term"], node.attrs["what"], names)


def _conformed(frame: Frame, value: Val, t: Any, what: str, names: dict[int, Any]) -> Val:
    t = prune(t)
    if isinstance(t, TupleTerm) and isinstance(value, Seq) and len(value.elems) == len(t.elems):
        parts = tuple(_conformed(frame, v, e, what, names) for v, e in zip(value.elems, t.elems, strict=True))
        return Seq(value.kind, parts, value.fields, value.cls)
    if not isinstance(t, TensorTerm) or not isinstance(value, Dyn) or not isinstance(value.type, Array):
        return value
    shape = prune(t.shape)
    if not isinstance(shape, tuple) or len(shape) != len(value.type.shape):
        return value
    b, sizes = frame.builder, []
    for axis, (wanted, have) in enumerate(zip(map(prune, shape), value.type.shape, strict=True)):
        size = wanted if isinstance(wanted, int) else _of_names(wanted, have, names)
        sizes.append(have if size is None else size)
        if size is None or size == have:
            continue
        message = f"{what} is {show(t)}, and has the size "
        if not may_be_equal(size, have):
            raise ShapeError(f"{message}{have} along axis {axis}, not {size}")
        x, y = size_value(b, have), size_value(b, size)
        same = b.var(b.emit(REGISTRY["eq"], (x.node, y.node)))
        parts = (message, 0, f" along axis {axis}, not ", 1)
        guard(b, same, ShapeError, *parts, operands=(x, y))
    if tuple(sizes) == value.type.shape:
        return value
    return Dyn(reshape(frame.var(value), shape=tuple(sizes)).node)


def _of_names(wanted: Any, have: Any, names: dict[int, Any]) -> Any:
    """A size in terms of names, each of which stands for what it is first seen as; None where it is open."""
    if not isinstance(wanted, Dim):
        return None
    found = rigids_of(wanted)
    if len(found) == 1 and wanted == found[0].size:
        return names.setdefault(id(found[0]), have)
    if any(id(p) not in names for p in found):
        return None
    value = substituted(wanted, lambda p: names[id(p)])
    return None if value is ANY else value
