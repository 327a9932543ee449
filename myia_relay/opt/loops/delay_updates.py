"""Updates of arrays are moved behind the reads of the old values, for executors that change arrays in place.

    y = update(x, v, i); z = f(x)    =>    z = f(x); y = update(x, v, i)

An update writes into the array that it changes if the old value is dead (`backend/tvm/host/inplace.py`), and copies it
otherwise. Often the old value is read later for no good reason: the forward pass of a loop saves the old rows of its
state after it has computed the new ones. The applications of a graph are therefore reordered, as far as data and
effects allow, so that updates wait: the next application is always the first, in program order, that is ready and does
not have to wait.

The same with lists: an entry is taken out of a list before it is changed (`rows[i][j] += rows[k][j]`), and an empty one put in its
place. That waits for what reads the list in between, which would otherwise be copied:

    rest = list_set(rows, i, []); a = list_get(rows, k)    =>    a = list_get(rows, k); rest = list_set(rows, i, [])

Input: a closed typed graph without transforms. Output: the same applications in another order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from ...abstract.types import Data, List, Tape, holds
from ...ir.build import Builder
from ...ir.node import Apply, Graph, Node, applies
from ...ir.prim import update_of
from ...ir.rewrite import Effects, Rewriter, lookup
from ...ir.walk import users
from ..analysis.fusion import is_fusable

MOST_READERS = 200  # readers that are searched for, of one array


@dataclass(frozen=True)
class DelayUpdates:
    """The pass."""

    name: str = "delay_updates"

    def __call__(self, graph: Graph) -> Graph:
        return _Delay().rewrite(graph)


class _Delay(Rewriter):
    def __init__(self):
        super().__init__()
        self.effects = Effects()

    def build(self, graph: Graph) -> Graph:
        nodes = taken_late(list(ordered(graph, self.effects)))
        attrs = {node: self.inner(node) for node in graph.nodes}
        self.changed |= nodes != graph.nodes
        new, env = self.interface(graph)
        builder = Builder(new)
        for node in nodes:
            env[node] = self.node(builder, node, tuple(lookup(env, a) for a in node.args), attrs[node])
        new.output = lookup(env, graph.output)
        return new


def ordered(graph: Graph, effects: Effects) -> list[Apply]:
    """The applications of a graph, with updates after the readers of what they change. Linear, up to the number of
    readers.
    """
    used = users(graph)
    position = {node: k for k, node in enumerate(graph.nodes)}
    behind: dict[Apply, set[Apply]] = {}  # an update -> readers that come after it
    for node in graph.nodes:
        if update_of(node):
            late = {r for r in readers(node.args[0], used) if position[r] > position[node]}
            if late:
                behind[node] = late
    if not behind:
        return graph.nodes
    return _scheduled(graph, position, behind, effects)


def taken_late(nodes: list[Apply]) -> list[Apply]:
    """The applications of a graph, where entries are taken out of lists after reads of these lists."""
    gets: dict[Node, set[Node]] = {}
    for node in nodes:
        if applies(node, "list_get"):
            gets.setdefault(node.args[0], set()).add(node)
    for k in reversed([k for k, node in enumerate(nodes) if _takes(node)]):
        whole = nodes[k].args[0]
        takes, entries, last = {nodes[k]}, set(gets.get(whole, ())), k
        for at, node in enumerate(nodes[k + 1 :], k + 1):
            args = set(node.args)
            if takes & args:
                break
            if _takes(node) and node.args[0] in entries:  # an entry of the entry is taken
                takes.add(node)
                entries |= gets.get(node.args[0], set())
            elif entries & args and not applies(node, *_READS):
                break
            elif whole in args:
                last = at
        between = nodes[k : last + 1]
        nodes[k : last + 1] = [n for n in between if n not in takes] + [n for n in between if n in takes]
    return nodes


_READS = ("list_get", "list_len", "get_item")


def _takes(node: Node) -> bool:
    """Whether an application puts an empty list where an entry of a list was."""
    return applies(node, "list_set") and applies(node.args[2], "list_new") and not node.args[2].args


def readers(array: Node, users: dict[Node, list[Apply]]) -> Iterator[Apply]:
    """The applications that read an array, including those that may compute a part of it on the fly."""
    seen, stack = {array}, [array]
    while stack and len(seen) < MOST_READERS:
        for user in users.get(stack.pop(), ()):
            if user not in seen:
                seen.add(user)
                yield user
                if is_fusable(user) and not update_of(user):
                    stack.append(user)


def _scheduled(graph: Graph, position: dict, behind: dict[Apply, set[Apply]], effects: Effects) -> list[Apply]:
    """The order; the edges of data and effects are hard constraints, those of `behind` are soft."""
    followers: dict[Apply, list[Apply]] = {}
    missing: dict[Apply, int] = dict.fromkeys(graph.nodes, 0)
    last: Apply | None = None
    for node in graph.nodes:
        before = {a for a in node.args if a in position}
        if _keeps_its_place(node, effects):
            if last is not None:
                before.add(last)
            last = node
        missing[node] = len(before)
        for b in before:
            followers.setdefault(b, []).append(node)
    waiting = {node: len(late) for node, late in behind.items()}
    waited: dict[Apply, list[Apply]] = {}
    for node, late in behind.items():
        for reader in late:
            waited.setdefault(reader, []).append(node)
    free: list[int] = []
    blocked: list[int] = []

    def ready(node: Apply) -> None:
        heapq.heappush(blocked if waiting.get(node) else free, position[node])

    for node, count in missing.items():
        if not count:
            ready(node)
    out: list[Apply] = []
    done: set[Apply] = set()
    while free or blocked:
        node = graph.nodes[heapq.heappop(free or blocked)]
        if node in done:
            continue
        done.add(node)
        out.append(node)
        for update in waited.get(node, ()):
            waiting[update] -= 1
            if not waiting[update] and not missing[update]:
                heapq.heappush(free, position[update])
        for follower in followers.get(node, ()):
            missing[follower] -= 1
            if not missing[follower]:
                ready(follower)
    return out


def _keeps_its_place(node: Apply, effects: Effects) -> bool:
    """Whether an application keeps its order with others of its kind: effects, and operations on tapes, lists and records."""
    return bool(effects.of_node(node)) or any(
        holds(t, Tape | List | Data) for t in (node.type, *(a.type for a in node.args))
    )
