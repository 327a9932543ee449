"""Activity: which values depend, through floating-point paths, on what is differentiated by.

The activity of a value is False, True (a float, an array, a tape that depends) or, for a structure, a tuple with the
activity of each part; a structure without an active part is False. It is found by one forward walk, with a fixpoint
around loops. The adjoint leaves out everything that is not active: integers, comparisons, data, parameters that stay
fixed.

Source: "varied" variables in A. Griewank and A. Walther, Evaluating Derivatives (2nd ed., 2008), section 6.2.
"""

from __future__ import annotations

from ...abstract.types import Data, List, Struct, Tape, Type, has_tangent
from ...ir.node import Apply, Graph, Node
from ...ir.prim import Primitive
from ...ir.rewrite import RecursiveComponents
from ...utils.errors import InternalError

Act = bool | tuple


def full(t: Type, trees: bool = True) -> Act:
    """The activity of a value all of whose floats are active; with `trees` also those in trees."""
    if isinstance(t, Struct):
        return canonical(tuple(full(e, trees) for e in t.elems))
    if isinstance(t, Tape | List):
        return full(t.elem, trees) is not False
    return has_tangent(t) and (trees or not isinstance(t, Data))


def canonical(act: Act) -> Act:
    """False for a structure without an active part."""
    if isinstance(act, tuple) and not any(a is not False for a in act):
        return False
    return act


def join(a: Act, b: Act) -> Act:
    """Active if either is."""
    if a is False or b is False:
        return b if a is False else a
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(join(x, y) for x, y in zip(a, b, strict=True))
    return True


def item(act: Act, index: int) -> Act:
    """The activity of a part of a structure."""
    return act[index] if isinstance(act, tuple) else act


class Activity:
    """Activities of nodes, memoised by graph and activities of its parameters.

    Attributes:
        trees: whether a tree may be active. Where none is, those on the tapes of a recursion are known not to be.
    """

    def __init__(self, recursion: RecursiveComponents, trees: bool = True):
        self.recursion, self.trees = recursion, trees
        self.memo: dict[tuple[Graph, tuple[Act, ...]], dict[Node, Act]] = {}

    def of_nodes(self, graph: Graph, acts: tuple[Act, ...]) -> dict[Node, Act]:
        """The activity of each active node of a graph; nodes that are missing are not active."""
        key = (graph, acts)
        found = self.memo.get(key)
        if found is not None:
            return found
        active: dict[Node, Act] = {p: a for p, a in zip(graph.params, acts, strict=True) if a is not False}
        for node in graph.nodes:
            act = self.of_application(node, tuple(active.get(a, False) for a in node.args))
            if act is not False:
                active[node] = act
        self.memo[key] = active
        return active

    def of_output(self, graph: Graph, acts: tuple[Act, ...]) -> Act:
        """The activity of a graph's result."""
        return self.of_nodes(graph, acts).get(graph.output, False)

    def of_application(self, node: Apply, acts: tuple[Act, ...]) -> Act:
        """The activity of an application, from those of its arguments.

        Raises:
            InternalError: a transform inside has not been expanded.
        """
        if all(a is False for a in acts):
            return False
        if isinstance(node.fn, Graph):
            return self.of_run(node, node.fn, acts)
        prim: Primitive = node.fn
        if prim.name in SPECIAL:
            return canonical(SPECIAL[prim.name](self, node, acts))
        if prim.kind == "control":
            raise InternalError(
                "ad", f"{prim.name} among differentiated operations; inner transforms are expanded first"
            )
        if not prim.differentiable or prim.effect or prim.name == "stop_gradient":
            return False
        return self.full(node.type)

    def full(self, t: Type) -> Act:
        """The activity of a value all of whose floats are active."""
        return full(t, self.trees)

    def of_run(self, node: Apply, graph: Graph, acts: tuple[Act, ...]) -> Act:
        """The activity of the result of `node`, which runs a graph; all floats of the result if the graph is recursive."""
        if self.recursion.component(graph) is None:
            return self.of_output(graph, acts)
        return self.recursive(
            graph, node.type, {a.type for a, act in zip(node.args, acts, strict=True) if act is not False}
        )

    def recursive(self, graph: Graph, t: Type, active: set[Type]) -> Act:
        """All floats, and tapes that had or get active entries."""
        if isinstance(t, Struct):
            return canonical(tuple(self.recursive(graph, e, active) for e in t.elems))
        if isinstance(t, Tape) and t not in active and t not in self.recursion.pushed(graph):
            return False
        return self.full(t)

    def carried(self, node: Apply, acts: tuple[Act, ...]) -> tuple[Act, ...]:
        """The activities of the parameters of a loop's body at the fixpoint: (index,) carried values, constants.

        The least fixpoint of  c = c0 | body(c):  each iteration makes at least one more value active, or is the last.
        """
        body, n = node.attrs["body"], node.attrs["carried"]
        lead = 1 if node.fn.name == "for_loop" else 0
        acts = (False,) * lead + acts[3 * lead :]
        while True:
            out = self.of_output(body, acts)
            new = tuple(join(acts[lead + j], item(out, j)) for j in range(n))
            if new == acts[lead : lead + n]:
                return acts
            acts = acts[:lead] + new + acts[lead + n :]


def _cond(activity: Activity, node: Apply, acts) -> Act:
    then, orelse = node.attrs["then"], node.attrs["orelse"]
    return join(activity.of_output(then, acts[1:]), activity.of_output(orelse, acts[1:]))


def _loop(activity: Activity, node: Apply, acts) -> Act:
    lead = 1 if node.fn.name == "for_loop" else 0
    return activity.carried(node, acts)[lead : lead + node.attrs["carried"]]


SPECIAL = {
    "get_item": lambda activity, node, acts: item(acts[0], node.attrs["index"]),
    "make_struct": lambda activity, node, acts: acts,
    "tape_pop": lambda activity, node, acts: (acts[0], acts[0] and activity.full(node.type.elems[1])),
    "cond": _cond,
    "for_loop": _loop,
    "while_loop": _loop,
}
