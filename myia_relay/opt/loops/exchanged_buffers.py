"""Loops that exchange arrays run several iterations as one, after which each array is where it was.

    for i in range(n):                       for i in range(0, n, 2):
        new = f(new, old)            =>          new = f(new, old)
        old, new = new, old                      if i + 1 < n: old = f(old, new)
                                                 else: old, new = new, old

What a loop carries has fixed places, so iterations that exchange arrays copy them. After as many iterations as the exchange has
arrays (two for a double buffer, three for a wave equation) every array is in its own place again, changed there; only a rest of
iterations copies, once.

Input: an optimised graph. Output: the same program, for the native executor only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...abstract.dims import product
from ...abstract.types import Array, Scalar
from ...ir.build import Builder
from ...ir.node import Apply, Constant, Graph, Node, Parameter, applied
from ...ir.prim import REGISTRY, update_of
from ...ir.rewrite import Rewriter, all_graphs, count_nodes, inline, same_interface
from ...prims.ops.control import LEAD
from ..analysis.control import output_parts
from ..rewrite.control import pack, take

MOST = 400  # nodes of a body that is written out again
LONGEST = 4  # arrays of an exchange
LEAST = 64  # elements of an array that is worth it


@dataclass(frozen=True)
class ExchangeBuffers:
    """The pass."""

    name: str = "exchanged_buffers"

    def __call__(self, graph: Graph) -> Graph:
        if not any(applied(n) in LEAD for g in all_graphs(graph) for n in g.nodes):
            return graph
        return _Exchange().rewrite(graph)


class _Exchange(Rewriter):
    acts_on = tuple(LEAD)

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        if applied(node) in LEAD and not self.incomplete(attrs["body"]):
            times = period(node)
            if times > 1:
                self.changed = True
                builder.origin = node.origin
                return repeated_loop(builder, node, args, attrs, times)
        return super().node(builder, node, args, attrs)


def period(loop: Apply) -> int:
    """After how many iterations each array that a loop exchanges is where it was; 1 where there is nothing to gain."""
    body, carried = loop.attrs["body"], loop.attrs["carried"]
    parts = output_parts(body)
    if applied(loop) == "for_loop" and not (isinstance(loop.args[2], Constant) and loop.args[2].value == 1):
        return 1
    if parts is None or any(not isinstance(p.type, Array | Scalar) for p in parts):
        return 1
    first = len(body.params) - (len(loop.args) - LEAD[loop.fn.name])
    own = list(body.params[first : first + carried])
    sources = [source(part) if isinstance(part.type, Array) else None for part in parts]
    moves = {k: own.index(s) for k, s in enumerate(sources) if s in own}
    times = 1
    for k in moves:
        length, at = 1, moves[k]
        while at != k and at in moves and length <= LONGEST:
            length, at = length + 1, moves[at]
        if at == k and length > 1 and _is_large(parts[k].type):
            times = math.lcm(times, length)
    return times if times <= LONGEST and times * count_nodes(body) <= MOST else 1


def _is_large(t: Array) -> bool:
    """Whether copying an array takes time."""
    size = product(t.shape)
    return not isinstance(size, int) or size >= LEAST


def source(node: Node) -> Node | None:
    """The parameter that an array was before updates, as far as these are in place; None for an array that is made anew."""
    while not isinstance(node, Parameter):
        if not isinstance(node, Apply):
            return None
        if update_of(node) is not None:
            node = node.args[0]
            continue
        index, whole = 0, node
        if applied(node) == "get_item":
            index, whole = node.attrs["index"], node.args[0]
        operand = _operand(whole, index) if isinstance(whole, Apply) else None
        if operand is None:
            return None
        node = operand
    return node


def _operand(run: Apply, index: int) -> Node | None:
    """The operand that a part of the result of a loop or a branch was, where that is the same on every path."""
    if applied(run) in LEAD:
        lead, body = LEAD[run.fn.name], run.attrs["body"]
        parts = output_parts(body)
        first = len(body.params) - (len(run.args) - lead)
        if parts is None or index >= run.attrs["carried"] or source(parts[index]) is not body.params[first + index]:
            return None
        return run.args[lead + index]
    if applied(run) == "cond":
        found = []
        for arm in (run.attrs["then"], run.attrs["orelse"]):
            parts = output_parts(arm)
            made = source(parts[index] if parts is not None else arm.output)
            found.append(run.args[1 + arm.params.index(made)] if made in arm.params else None)
        return found[0] if found[0] is found[1] else None
    return None


def repeated_loop(b: Builder, loop: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any], times: int) -> Node:
    """A loop whose iterations are several of another one."""
    name, carried, body = loop.fn.name, attrs["carried"], attrs["body"]
    lead = LEAD[name]
    if name == "for_loop":
        start, stop, _ = args[:3]
        inner = _with_stop(body, stop)

        def again(b: Builder, values: list[Node]) -> tuple[Node, list[Node]]:
            index = b.emit(REGISTRY["add"], (values[0], b.constant(1, values[0].type)))
            return b.emit(REGISTRY["lt"], (index, values[-1])), [index, *values[1:]]

        new = repeated(inner, carried, 1, times, again)
        made = b.emit(loop.fn, (start, stop, b.constant(times), *args[lead:], stop), {**attrs, "body": new}, loop.type)
    else:

        def again(b: Builder, values: list[Node]) -> tuple[Node, list[Node]]:
            return inline(b, attrs["cond"], values), values

        made = b.emit(loop.fn, args, {**attrs, "body": repeated(body, carried, 0, times, again)}, loop.type)
    made.name = loop.name
    return made


def _with_stop(body: Graph, stop: Node) -> Graph:
    """The body of a `for_loop` that takes the loop's end as one more value that does not change."""
    new, env = same_interface(body)
    new.add_parameter("stop", stop.type, body.origin)
    b = Builder(new, body.origin)
    new.output = inline(b, body, [env[p] for p in body.params])
    return new


def repeated(body: Graph, carried: int, first: int, times: int, again: Any) -> Graph:
    """A body that runs up to so many iterations.

    Args:
        body: of one iteration; returns what is carried.
        carried: how many values that are.
        first: the parameter that holds the first of them.
        times: how many iterations.
        again: `(builder, parameters) -> (whether there is another iteration, its parameters)`.
    """
    if times == 1:
        return body
    new, env = same_interface(body)
    b = Builder(new, body.origin)
    values = [env[p] for p in body.params]
    out = inline(b, body, values)
    assert isinstance(out, Apply)
    values[first : first + carried] = out.args
    more, values = again(b, values)
    rest, kept = same_interface(body)
    ended = Builder(rest, body.origin)
    rest.output = pack(ended, [kept[p] for p in body.params[first : first + carried]])
    then = repeated(body, carried, first, times - 1, again)
    result = b.emit(REGISTRY["cond"], (more, *values), {"then": then, "orelse": rest})
    new.output = pack(b, [take(b, result, (k,)) for k in range(carried)])
    return new


__all__ = ["ExchangeBuffers"]
