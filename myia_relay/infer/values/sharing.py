"""Which arrays may be seen under another name, and so must not be changed in place.

In compiled code `x[i] = v` makes a new `x`. That is what CPython does as long as nothing else can see the array. The front
end sees names: parameters, aliases, views. What it cannot see is a function that returns its own argument, so inference
marks the results of such calls, and whatever carries them into branches and loops. Which calls those are it also writes down
(`Specialisation.handing`): when all is inferred, `Engine.seen_changes` asks the front end whether what rests on them is a conflict.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

from ...abstract.types import Array, Data, List, Struct, Type
from ...ir.node import Apply, Constant, Graph, Node, Parameter
from ...ir.syntax import VIEWING
from ...library import SOURCES
from ...prims.api.numpy_api import MEANINGS
from ...prims.ops.control import LEAD
from ...utils.errors import ParseError, TypeError_
from .protocols import lookup
from .treedef import skeleton
from .values import At, Bound, Choice, Closure, Derived, Dyn, Iter, Listed, NeverVal, Seq, Static, Text, Val

# NumPy answers these with a view of the first argument.
VIEWS = frozenset(
    ("reshape", "transpose", "slice", "dynamic_index", "dynamic_slice", "broadcast_to", "flip", "cast", "list_get")
)


def output_leaf(graph: Graph, index: int) -> Node:
    """The node that leaves a graph at a position of its packed result."""
    out = graph.output
    if isinstance(out, Apply) and getattr(out.fn, "name", "") == "make_struct":
        return out.args[index]
    return out


class Origins:
    """What arrays and run-time lists of a typed graph may be the same as, or views of.

    Attributes:
        known: (graph, leaf of its result) -> the parameters that it may be.
        busy: those that are being looked at: a recursive call adds nothing to what the others say (a least fixpoint).
        cut: how often that was made use of; an answer found on the way is kept only if it does not rest on it.
    """

    def __init__(self):
        self.known: dict[tuple[Graph, int], frozenset[Parameter]] = {}
        self.busy: set[tuple[Graph, int]] = set()
        self.cut = 0

    def result(self, graph: Graph, index: int) -> frozenset[Parameter]:
        """The parameters that a leaf of a graph's result may be; all of a graph that is not complete."""
        if graph.output is None:
            return frozenset(graph.params)
        key = (graph, index)
        if key in self.busy:
            self.cut += 1
            return frozenset()
        if key not in self.known:
            self.busy.add(key)
            before = self.cut
            found = frozenset(n for n in self.of(output_leaf(graph, index)) if isinstance(n, Parameter))
            self.busy.remove(key)
            if self.cut != before and self.busy:
                return found
            self.known[key] = found
        return self.known[key]

    def of(self, node: Node) -> set[Node]:
        """The nodes of its graph that a node may be, or be a view of; itself among them."""
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
            elif name in VIEWS:
                stack.append(node.args[0])
            elif name == "make_struct":
                stack.extend(node.args)
        return found

    def given(self, graph: Graph, index: int, args: Sequence[Node]) -> list[Node]:
        """The arguments that a leaf of a call's result may be."""
        # What a recursive function takes from its context is not among the arguments yet; it is nobody's local.
        operands = dict(zip(graph.params, args))
        return [operands[p] for p in self.result(graph, index) if p in operands]

    def of_loop(self, loop: Apply, index: int) -> list[Node]:
        """The operands that a value carried by a loop may be: its own first one (there may be no turn), or what turns make it."""
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


def arrays_of(value: Val) -> list[Node]:
    """The leaves of a value that are arrays or run-time lists."""
    nodes: list[Node] = []
    skeleton(value, nodes, capture=lambda closure: ())
    return [n for n in nodes if isinstance(n.type, Array | List)]


def lists_of(value: Val) -> list[Seq]:
    """The lists of known length in a value, itself among them."""
    out, stack = [], [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Seq):
            stack.extend(top.elems)
            if top.kind == "list":
                out.append(top)
        elif isinstance(top, Choice):
            stack.extend(top.options)
    return out


def hands_on(shared: set[Node | Seq], result: Val) -> bool:
    """Whether a function's result is, or holds, a list that it was given: those of known length are marked."""
    return any(v in shared for v in lists_of(result)) or any(
        n in shared and isinstance(n.type, List) for n in arrays_of(result)
    )


def note_handing(engine, frame, node: Apply, fn: Val, result: Val) -> None:
    """Write down which arguments a call may have returned, or put into what it returned; see `ir.syntax.Handing`."""
    if not may_hand_on(fn, result):
        return
    given = [
        fn,
        *(v.value if isinstance(v, engine.syntax.Spread) else v for v in (engine.value(frame, a) for a in node.args)),
    ]
    elsewhere = False
    if isinstance(fn, Closure):
        defaults = [frame.find(d) for d in fn.graph.signature.defaults.values() if not isinstance(d, Constant)]
        elsewhere = None in defaults  # of a function that was made in another one
        captured = [value for _, value in frame.captured(fn)]
        given[0] = Seq("tuple", (*captured, *(v for v in defaults if v is not None)))
    numpy = numpy_name(fn)
    if numpy is None:
        places = hands_on_given(engine.shared, given, result) | ({0} if elsewhere else set())
    else:  # what a function returns in compiled code says nothing of NumPy's
        views = numpy in VIEWING or "copy" in node.keywords  # `x.astype(t, copy=False)`
        places = set(range(len(given))) if views else set()
    if places:
        nodes = (node.fn, *node.args)
        frame.spec.handing.calls.setdefault(node, set()).update(nodes[k] for k in places)


def numpy_name(fn: Val) -> str | None:
    """The name of a NumPy function, or of a method of an array; None for what is neither."""
    if isinstance(fn, Bound) and isinstance(fn.receiver, Dyn) and isinstance(fn.receiver.type, Array):
        return fn.function if isinstance(fn.function, str) else None
    if isinstance(fn, Static) and (lookup(MEANINGS, fn.value) or lookup(SOURCES, fn.value)) is not None:
        return getattr(fn.value, "__name__", "")
    return None


def may_hand_on(fn: Val, result: Val) -> bool:
    """Whether to ask for `hands_on_given`: the front end does not know what is called, and the result can hold something."""
    if isinstance(result, Static | Text | NeverVal) or isinstance(result, Dyn) and not _holds(result.type):
        return False
    return not isinstance(fn, Derived) and not (isinstance(fn, Static) and any(fn.value is known for known in KNOWN))


KNOWN = (operator.getitem, list, tuple, dict, sorted, reversed, zip, enumerate, iter)
"""Of which the front end knows what their results hold."""


def hands_on_given(shared: set[Node | Seq], given: list[Val], result: Val) -> set[int]:
    """Which of the values given to a call it may have returned, in whole or in part, or put into what it returned.

    What is not taken apart here (run-time lists of lists, data types, functions, iterators) is taken to hold what it can.

    Returns:
        their positions.
    """
    own = {k: leaves for k, value in enumerate(given) if (leaves := set(_mutable(value)))}
    found: set[int] = set()
    origins = Origins()
    for leaf in _mutable(result) if own else ():
        if isinstance(leaf, Node):
            everything = isinstance(leaf.type, Data) or isinstance(leaf.type, List) and _holds(leaf.type.elem)
            same = origins.of(leaf)
            constants = {n for leaves in own.values() for n in leaves if isinstance(n, Constant)}
            if any(
                isinstance(n, Constant) and n not in constants for n in same
            ):  # it may be a part of another one, folded
                same |= constants
        else:
            everything = not isinstance(leaf, Seq) or leaf in shared
            same = {leaf}
        found.update(k for k, leaves in own.items() if everything or not leaves.isdisjoint(same))
    return found


def _mutable(value: Val) -> Iterator[Node | Val]:
    """The arrays and run-time lists of a value by their nodes, its lists of known length, and what is not taken apart."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Seq | Choice):
            stack.extend(top.elems if isinstance(top, Seq) else top.options)
            if isinstance(top, Seq) and top.kind == "list":
                yield top
        elif isinstance(top, Dyn):
            if _holds(top.type):
                yield top.node
        elif isinstance(top, Bound):
            stack.append(top.receiver)
        elif isinstance(top, At):
            stack.append(top.array)
        elif isinstance(top, Iter):
            stack.extend(top.parts)
            yield top
        elif isinstance(top, Closure | Derived | Listed):
            yield top


def _holds(t: Type) -> bool:
    """Whether values of a type are or hold arrays or lists."""
    if isinstance(t, Data):
        return any(
            isinstance(leaf, Array | List) for f in t.family.reachable() for v in f.variants for leaf in v.leaves
        )
    return isinstance(t, Array | List) or isinstance(t, Struct) and any(map(_holds, t.elems))


def mark_result(shared: set[Node | Seq], graph: Graph, count: int, nodes: list[Node]) -> None:
    """Mark what a call returned where the function may have returned its argument.

    Args:
        shared: the marked nodes, extended.
        graph: the called graph, complete.
        count: how many leaves it returns.
        nodes: the leaves at the call.
    """
    for index in range(count):
        if isinstance(nodes[index].type, Array | List) and Origins().result(graph, index):
            shared.add(nodes[index])


def mark_like(shared: set[Node | Seq], sources: list[Val], targets: list[Val]) -> None:
    """Mark the arrays and lists of `targets` where one of those that flow into them is marked."""
    if shared and any(n in shared for v in sources for n in (*arrays_of(v), *lists_of(v))):
        shared.update(n for v in targets for n in (*arrays_of(v), *lists_of(v)))


def require_own(shared: set[Node | Seq], value: Val) -> None:
    """Refuse the change of an array that something else may see.

    Raises:
        TypeError_: with advice.
    """
    known = isinstance(value, Seq) and value in shared
    if (
        known
        or isinstance(value, Listed)
        or isinstance(value, Dyn)
        and isinstance(value.type, List)
        and value.node in shared
    ):
        raise ParseError(
            "this list came from a function that returns its own argument, or out of another list, so changing it in place would "
            "change that too; copy it first (xs = xs.copy())"
        )
    if isinstance(value, Dyn) and value.node in shared:
        raise TypeError_(
            "this array came out of a list, or from a function that returns its own argument, so changing it in place would change "
            "that too; copy it first (x = x.copy()), or write x = relay.at(x)[i].set(v)"
        )
