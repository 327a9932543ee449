"""What a mask selects of an array is changed by a choice, where computing all of it costs less than picking and putting back.

    at = flat_nonzero(m); for k: x[at[k]] = f(x[at], y[at])[k]      =>      x = where(m, f(x, y), x)

`z[m] = z[m] ** 2 + c[m]` lists the positions, gathers from each array, computes, and scatters, some nanoseconds for each number
and step. A choice reads and writes consecutive memory, in the lanes of vectors. Element by element the same is computed, so
the result is the same to the bit; what is computed for positions that the mask leaves out is not looked at, which holds because the
operations have no effects. They must be cheap, since a mask may select little.

Input: a closed typed graph without transforms: the derivative of a choice would multiply by what is not chosen. Output: the
same; gathers and positions that nobody reads any more are left to dead-code elimination.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Array, Scalar
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, Parameter, applies
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Rewriter
from ..analysis.control import output_parts
from .control import pack

CHEAP = frozenset(
    "add sub mul neg abs minimum maximum where cast lt le gt ge eq ne logical_and logical_or logical_not isnan isinf isfinite "
    "div sqrt bitwise_and bitwise_or bitwise_xor sign floor ceil".split()
)
MOST_OPERATIONS = 24
INDEX, OUT = 0, 1  # the parameters of a loop's body: its index, and the array that it carries


@dataclass(frozen=True)
class ChooseMasked:
    """The pass."""

    name: str = "masked_updates"

    def __call__(self, graph: Graph) -> Graph:
        return _Choose().rewrite(graph)


class _Choose(Rewriter):
    acts_on = ("for_loop",)

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        chosen = _chosen(builder, node, args) if applies(node, "for_loop") else None
        if chosen is None:
            return super().node(builder, node, args, attrs)
        self.changed = True
        return pack(builder, [chosen])


def _chosen(builder: Builder, node: Apply, args: tuple[Node, ...]) -> Node | None:
    """The array that a loop puts values into at the positions of a mask, as a choice; None for other loops."""
    found = _put(node)
    if found is None:
        return None
    x, values, positions = args[3], args[found[0]], args[found[1]]
    if not applies(positions, "flat_nonzero"):
        return None
    mask = positions.args[0]
    if not isinstance(x.type, Array) or x.type.shape != mask.type.shape or args[1].type != args[0].type:
        return None
    if not applies(args[1], "dim_size", "bind_dim") or (args[1].attrs["dim"],) != positions.type.shape:
        return None
    order = _operations(values, positions, x.type.shape)
    if order is None:
        return None
    builder.origin = node.origin
    everywhere: dict[Node, Node] = {}
    for step in order:
        if applies(step, "take"):
            everywhere[step] = step.args[0]
        else:
            operands = tuple(everywhere[a] if a in everywhere else a for a in step.args)
            everywhere[step] = builder.emit(step.fn, operands, step.attrs)
    value = everywhere[values]
    if not isinstance(value.type, Array) or value.type != x.type:
        return None
    return builder.emit(REGISTRY["where"], (mask, value, x))


def _put(loop: Apply) -> tuple[int, int] | None:
    """Which arguments a loop `for k in range(n): out[at[k]] = values[k]` has for the values and the positions, which are its own.

    Positions of a mask are never out of bounds, so checks of theirs do not count.
    """
    body: Graph = loop.attrs["body"]
    outs = output_parts(body)
    if loop.attrs["carried"] != 1 or outs is None or not applies(outs[0], "dynamic_update"):
        return None
    update: Apply = outs[0]  # type: ignore[assignment]
    first = all(isinstance(a, Constant) and a.value == n for a, n in ((loop.args[0], 0), (loop.args[2], 1)))
    if not first or update.args[0] is not body.params[OUT] or update.attrs["axis"]:
        return None
    values = _entry(update.args[1], body)
    if applies(update.args[2], "where"):
        at = _wrapped(update.args[2])
    else:
        at = update.args[2]
    while applies(at, "cast"):
        at = at.args[0]  # type: ignore[union-attr]
    positions = _entry(at, body)
    if values is None or positions is None or values == positions:
        return None
    for inner in body.nodes:
        checks = applies(inner, "check") and inner.attrs["exception"] is IndexError
        if not checks and (not isinstance(inner.fn, Primitive) or inner.fn.effect):
            return None
    return len(loop.args) - len(body.params) + values, len(loop.args) - len(body.params) + positions


def _entry(value: Node | None, body: Graph) -> int | None:
    """The number of the parameter of which a value is the entry at the loop's index."""
    if not applies(value, "dynamic_index") or value.attrs["axis"]:  # type: ignore[union-attr]
        return None
    array, at = value.args  # type: ignore[union-attr]
    constant = isinstance(array, Parameter) and array is not body.params[OUT]
    return body.params.index(array) if constant and at is body.params[INDEX] else None


def _wrapped(at: Node) -> Node | None:
    """The position of which negative numbers count from the end, `where(k < 0, k + n, k)`; those of a mask are never negative."""
    test, _, own = at.args  # type: ignore[attr-defined]
    zero = (
        applies(test, "lt") and test.args[0] is own and isinstance(test.args[1], Constant) and test.args[1].value == 0
    )
    return own if zero else None


def _operations(values: Node, positions: Node, shape: tuple) -> list[Apply] | None:
    """What computes values from those at positions of whole arrays, in order; None where that is not all, or costs much."""
    order: list[Apply] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(values, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)  # type: ignore[arg-type]
            continue
        if (
            node in seen
            or isinstance(node, Constant)
            and not isinstance(node.type, Array)
            or isinstance(node.type, Scalar)
        ):
            continue
        seen.add(node)
        if not isinstance(node, Apply) or not isinstance(node.fn, Primitive) or len(seen) > MOST_OPERATIONS:
            return None
        picks = node.fn.name == "take" and node.args[1] is positions
        if picks and not node.attrs["axis"] and node.args[0].type.shape == shape:
            order.append(node)
            continue
        if node.fn.name not in CHEAP or node.fn.effect or node.type.shape != positions.type.shape:  # type: ignore[union-attr]
            return None
        stack.append((node, True))
        stack += [(a, False) for a in node.args]
    return order


__all__ = ["ChooseMasked"]
