"""Which arrays may be visible under another name, and so must not be changed in place.

In compiled code `x[i] = v` makes a new `x`. CPython does the same, in effect, if nothing else can see the array. The
front end checks names: parameters, aliases, views. It cannot see that a function returns its own argument, so inference
marks the results of such calls, and everything that carries them into branches and loops. It also records which calls
these are (`Specialisation.handing`). When inference is complete, `Engine.seen_changes` asks the front end whether a
change that depends on them is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...abstract.types import Array, Data, List
from ...ir.node import Apply, Graph, Node, Parameter
from ...prims.ops.control import LEAD
from ...utils.errors import ParseError, TypeError_
from .kinds import complex_parts
from .treedef import tree_structure
from .values import Dyn, Listed, Seq, TaggedUnion, Val


def output_leaf(graph: Graph, index: int) -> Node:
    """The node that leaves a graph at a position of its packed result."""
    out = graph.output
    if isinstance(out, Apply) and getattr(out.fn, "name", "") == "make_struct":
        return out.args[index]
    return out


class Origins:
    """Which values arrays and run-time lists of a typed graph may be identical to, or views of.

    The results of recursive functions are a least fixpoint: a call of a function that is being analysed gives what is known so
    far, and the analysis is repeated until the results no longer change. (A recursion may permute its arguments.)

    Attributes:
        known: (graph, leaf of its result) -> the parameters that it may be.
        found: the same, as far as it is known in the current round.
        begun: the graphs that were analysed in this round.
        used: the results that calls used in this round.
    """

    def __init__(self):
        self.known: dict[tuple[Graph, int], frozenset[Parameter]] = {}
        self.found: dict[tuple[Graph, int], frozenset[Parameter]] = {}
        self.begun: set[tuple[Graph, int]] = set()
        self.used: dict[tuple[Graph, int], frozenset[Parameter]] = {}

    def result(self, graph: Graph, index: int) -> frozenset[Parameter]:
        """The parameters that a leaf of a graph's result may be; all parameters if the graph is not complete."""
        if graph.output is None:
            return frozenset(graph.params)
        key = (graph, index)
        if key in self.known:
            return self.known[key]
        if key in self.begun:
            return self.used.setdefault(key, self.found.get(key, frozenset()))
        if self.begun:
            return self.look(key)
        while True:
            self.look(key)
            settled = all(self.found[k] == given for k, given in self.used.items())
            self.begun.clear()
            self.used.clear()
            if settled:
                self.known.update(self.found)
                self.found.clear()
                return self.known[key]

    def look(self, key: tuple[Graph, int]) -> frozenset[Parameter]:
        """The parameters that a leaf of a graph's result may be, given what is known of recursive calls."""
        self.begun.add(key)
        found = frozenset(n for n in self.of(output_leaf(*key)) if isinstance(n, Parameter))
        self.found[key] = found
        return found

    def of(self, node: Node) -> set[Node]:
        """The nodes of its graph that a node may be identical to, or a view of; including itself."""
        found: set[Node] = set()
        seen: set[tuple[Node, int]] = set()
        stack = [node]
        while stack:
            node = stack.pop()
            found.add(node)
            if not isinstance(node, Apply):
                continue
            index = 0
            if getattr(node.fn, "name", "") == "get_item":
                index, node = node.attrs["index"], node.args[0]
                if not isinstance(node, Apply):
                    stack.append(node)
                    continue
            if (node, index) in seen:
                continue
            seen.add((node, index))
            name = getattr(node.fn, "name", "")
            if isinstance(node.fn, Graph):
                stack.extend(self.given(node.fn, index, node.args))
            elif name == "cond":
                for arm in (node.attrs["then"], node.attrs["orelse"]):
                    stack.extend(self.given(arm, index, node.args[1:]))
            elif name in LEAD:
                stack.extend(self.of_loop(node, index))
            elif (
                node.fn.view or name in ("cast", "list_get") or node.attrs.get("same")
            ):  # a cast to the same dtype copies nothing
                stack.append(node.args[0])
            elif name == "make_struct":
                stack.extend(node.args)
        return found

    def given(self, graph: Graph, index: int, args: Sequence[Node]) -> list[Node]:
        """The arguments that a leaf of a call's result may be."""
        # What a recursive function takes from its context is not yet among the arguments; it is not a local variable.
        operands = dict(zip(graph.params, args))
        return [operands[p] for p in self.result(graph, index) if p in operands]

    def of_loop(self, loop: Apply, index: int) -> list[Node]:
        """The operands that a carried value may be: its first value, as there may be no iteration, or the results of
        iterations.
        """
        args, body, lead = loop.args[LEAD[loop.fn.name] :], loop.attrs["body"], len(loop.attrs["body"].params)
        params = body.params[lead - len(args) :]
        places, todo = {index}, [index]
        while todo:
            for p in self.result(body, todo.pop()):
                if p in params and (place := params.index(p)) not in places:
                    places.add(place)
                    if place < loop.attrs["carried"]:
                        todo.append(place)
        return [args[place] for place in places]


def holds_objects(t: Data, kinds: Any = Array | List) -> bool:
    """Whether values of a data type hold arrays or run-time lists."""
    return any(isinstance(leaf, kinds) for f in t.family.reachable() for v in f.variants for leaf in v.leaves)


def arrays_of(value: Val) -> list[Node]:
    """The leaves of a value that are arrays or run-time lists."""
    nodes: list[Node] = []
    tree_structure(value, nodes, capture=lambda closure: ())
    return [n for n in nodes if isinstance(n.type, Array | List)]


def lists_of(value: Val) -> list[Seq]:
    """The lists of known length and the dicts in a value, itself among them."""
    out, stack = [], [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Seq):
            stack.extend(top.elems)
            if top.kind in ("list", "dict"):
                out.append(top)
        elif isinstance(top, TaggedUnion):
            stack.extend(top.options)
    return out


def hands_on(shared: set[Node | Seq], result: Val) -> bool:
    """Whether a function's result is, or holds, a list that was passed to it; lists of known length are marked."""
    return any(v in shared for v in lists_of(result)) or any(
        n in shared and isinstance(n.type, List) for n in arrays_of(result)
    )


def mark_result(shared: set[Node | Seq], graph: Graph, leaves: Iterable[tuple[int, Node]]) -> None:
    """Mark the result of a call if the function may have returned its argument, or what something else holds.

    Args:
        shared: the marked nodes, extended.
        graph: the called graph, complete.
        leaves: the leaves that it returns, by number, and what they are at the call.
    """
    for index, node in leaves:
        if isinstance(node.type, Array | List):
            origins = Origins()
            if origins.result(graph, index) or not shared.isdisjoint(origins.of(output_leaf(graph, index))):
                shared.add(node)


def mark_like(shared: set[Node | Seq], sources: list[Val], targets: list[Val]) -> None:
    """Mark the arrays and lists of `targets` if one of those that flow into them is marked; the lists, if one is Python's.

    A run-time list is marked if one of the lists that it may be is: what is in it is marked where it is taken out.
    """
    target = targets[0] if len(targets) == 1 else None
    if isinstance(target, Dyn) and isinstance(target.type, List):
        if all(isinstance(v, Dyn) or isinstance(v, Seq) and v.kind == "list" for v in sources):
            if any((v.node if isinstance(v, Dyn) else v) in shared for v in sources):
                shared.add(target.node)
            return
    if any(isinstance(v, Listed) for v in sources):
        shared.update(n for v in targets for n in arrays_of(v) if isinstance(n.type, List))
    if shared and any(n in shared for v in sources for n in (*arrays_of(v), *lists_of(v))):
        shared.update(n for v in targets for n in (*arrays_of(v), *lists_of(v)))


def require_own(shared: set[Node | Seq], value: Val) -> None:
    """Refuse the change of an array that something else may see.

    Raises:
        ParseError: something else may see a list, with advice.
        TypeError_: something else may see an array, with advice.
    """
    known = isinstance(value, Seq) and value in shared
    if (
        known
        or isinstance(value, Listed)
        or isinstance(value, Dyn)
        and isinstance(value.type, List)
        and value.node in shared
    ):
        kind = value.kind if isinstance(value, Seq) else "list"
        raise ParseError(
            f"this {kind} came from a function that returns its own argument, or out of another {kind}, so changing it in place "
            "would change that too; copy it first (xs = xs.copy())"
        )
    if any(part.node in shared for part in complex_parts(value) or (value,) if isinstance(part, Dyn)):
        raise TypeError_(
            "this array came out of a list, from a function that returns its own argument, or is a view that cannot be written, as "
            "that of np.diag is, so changing it in place is an error or would change that too; copy it first "
            "(x = x.copy()), or write x = relay.at(x)[i].set(v)"
        )
