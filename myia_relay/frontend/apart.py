"""Whether a value certainly is not, and is not held by, another one, where each of them may be one of several objects.

    old, new = x.copy(), np.zeros(n)
    for _ in range(steps):
        new[1:-1] = (old[:-2] + old[2:]) / 2
        old, new = new, old

What `old` and `new` may be is the same set of two objects, yet they are never the same one: they are different before the loop, and
if they are different in one iteration, so they are in the next. Values that come from one loop, or from one branch, are followed
together, and a pair of values that is met again on the way around a loop is assumed to be apart (induction over iterations).

A node stands for what it has made last. A pair is therefore only followed back through one of two loops where it is the later one,
as the other value is the same in all of its iterations.
"""

from __future__ import annotations

import operator

from ..ir import syntax
from ..ir.node import Apply, Graph, Node, Parameter
from .objects import ParseFacts, applies, is_literal, is_within, sources_of, through_calls

MOST = 1000
"""So many pairs are looked at; values that have more are taken to share something."""

IS, HOLDS, MADE = "is", "holds", "made"
Side = tuple[Node, str]
"""What a value may be; what it may be or hold; or only the object itself that a node makes."""


def apart(p: ParseFacts, one: Node, other: Node, through: syntax.Handing | None) -> bool:
    """Whether nothing that a value may be (a view of) can be what another one is or holds.

    Args:
        p: the function.
        one: the value.
        other: the other one, that exists at the same time.
        through: the calls that hand on what they are given.
    """
    seen: set[tuple[Side, Side]] = set()
    stack: list[tuple[Side, Side]] = [((one, IS), (other, HOLDS))]
    while stack:
        pair = stack.pop()
        if pair in seen:
            continue
        seen.add(pair)
        more = _step(p, *pair, through) if len(seen) < MOST else None
        if more is None:
            return False
        stack += more
    return True


def _step(p: ParseFacts, one: Side, other: Side, through: syntax.Handing | None) -> list[tuple[Side, Side]] | None:
    """The pairs that must be apart for a pair to be; None if it may not be."""
    if is_literal(one[0]) or is_literal(other[0]):
        return []
    if one[0] is other[0]:
        return None
    together = _together(p, one, other)
    if together is not None:
        return together
    made = [side for side in (one, other) if side[1] != MADE and not _is_carried(p, side[0])]
    if made:  # what branches leave comes last, the latest of it first: sides of one branch are followed together
        joined = [side for side in made if _branch(side[0]) is not None]
        side = made[0] if made[0] not in joined else made[-1]
        if len(joined) == 2 and _is_later(one[0], other[0]):
            side = one
        return [(source, other if side is one else one) for source in _behind(p, *side, through)]
    loops = [n.graph if isinstance(n, Parameter) and what != MADE else None for n, what in (one, other)]
    entered = [-1 if loop is None else p.entered.get(loop, 0) for loop in loops]
    if max(entered) < 0:
        return [] if _are_different(one[0], other[0]) else None
    later = entered.index(max(entered))
    side, rest, loop = (one, other)[later], (one, other)[1 - later], loops[later]
    if rest[1] == MADE and _is_in(rest[0], loop):  # made in the iteration at hand: what is carried is older
        return [] if _is_new(rest[0]) else None
    return [((source, side[1]), rest) for source in p.flows[side[0]]]


def _are_different(one: Node, other: Node) -> bool:
    """Whether two objects, given by the nodes that they come from, are different ones. Parameters are: who calls sees to that."""
    if _is_new(one) or _is_new(other):
        return not any(applies(n, (syntax.cell_get,)) for n in (one, other))
    return isinstance(one, Parameter) and isinstance(other, Parameter)


def _is_new(node: Node) -> bool:
    """Whether a node makes an object whenever it is evaluated."""
    return isinstance(node, Apply) and not applies(node, (syntax.cell_get,))


def _is_carried(p: ParseFacts, node: Node) -> bool:
    """Whether a value is one that the iterations of a loop pass to each other."""
    return isinstance(node, Parameter) and node in p.flows


def _is_in(node: Node, loop: Graph | None) -> bool:
    """Whether a node is in the body of a loop."""
    graph = getattr(node, "graph", None)
    return loop is not None and is_within(graph, loop)


def _together(p: ParseFacts, one: Side, other: Side) -> list[tuple[Side, Side]] | None:
    """The pairs of sources of two values that come from one loop or one branch, which are followed together; None for others."""
    a, b = one[0], other[0]
    if MADE in (one[1], other[1]) or a not in p.flows or b not in p.flows or a in p.extended or b in p.extended:
        return None
    if isinstance(a, Parameter) and isinstance(b, Parameter):
        same = a.graph is b.graph
    else:
        same = _branch(a) is not None and _branch(a) is _branch(b)
    if not same or len(p.flows[a]) != len(p.flows[b]):
        return None
    return [((x, one[1]), (y, other[1])) for x, y in zip(p.flows[a], p.flows[b], strict=True)]


def _branch(node: Node) -> Apply | None:
    """The branch of which a value is a result; None for any other value."""
    whole = node.args[0] if applies(node, (operator.getitem,)) else node
    return whole if applies(whole, (syntax.if_,)) else None


def _is_later(one: Node, other: Node) -> bool:
    """Whether a result of a branch is made after one of another branch, as far as their graphs tell."""
    a, b = _branch(one), _branch(other)
    if a is None or b is None or a.graph is not b.graph:
        return a is not None and b is not None and is_within(a.graph, b.graph)
    return a.graph.nodes.index(a) > a.graph.nodes.index(b)


def _behind(p: ParseFacts, node: Node, what: str, through: syntax.Handing | None) -> list[Side]:
    """What a value may come from, and the object that it is itself where it is a new one."""
    same, part, held, copied, given = through_calls(sources_of(p, node), node, through)
    behind: list[Side] = [*((s, what) for s in same), *((s, HOLDS) for s in (*part, *given))]
    if what == HOLDS:
        behind += [(s, HOLDS) for s in (*held, *copied)]
    return behind if same or part else [*behind, (node, MADE)]
