"""Which arguments a call may return: its result may be one of them, a part of one, or hold one; and which it changes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Array, Data, List, Scalar, Struct, Type
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.syntax import VIEWING, Handing, Solved
from ...library.sources import SOURCES
from ...prims.api.numpy_api import IMPLEMENTATIONS
from ...utils.errors import CompileError, TypeError_
from ..values.kinds import complex_parts, is_list
from ..values.protocols import lookup
from ..values.sharing import Origins, arrays_of, holds_objects, lists_of, mark_result
from ..values.sizes import returned_leaves
from ..values.values import (
    NEVER,
    AtVal,
    Bound,
    ClosureVal,
    Derived,
    Dyn,
    Iter,
    Listed,
    NeverVal,
    Seq,
    SliceVal,
    Spread,
    Static,
    TaggedUnion,
    Text,
    Val,
    elements,
)
from .conform import promoted
from .frames import Frame, is_active


def note_handing(engine, frame, node: Apply, fn: Val, result: Val) -> None:
    """Record which arguments a call may have returned, or put into what it returned; see `ir.syntax.Handing`.

    For inferred functions this is decided later (`Handed`): a recursive function may still lack the arms that wait for it.
    """
    if isinstance(fn, Static) and fn.value is operator.getitem:
        whole, index = (engine.value(frame, a) for a in node.args)
        reads_of(frame.spec.handing, whole, index, result).add(node)
    if not may_hand_on(fn, result):
        return
    given = [
        fn,
        *(v.value if isinstance(v, Spread) else v for v in (engine.value(frame, a) for a in node.args)),
    ]
    elsewhere = False
    if isinstance(fn, ClosureVal):
        defaults = [frame.find(d) for d in fn.graph.signature.defaults.values() if not isinstance(d, Constant)]
        elsewhere = None in defaults  # a function that was made in another one
        captured = [value for _, value in frame.captured(fn)]
        given[0] = Seq("tuple", (*captured, *(v for v in defaults if v is not None)))
    numpy = numpy_name(fn)
    if numpy is None:
        places = {0} if elsewhere else set()
        engine.handed.append(Handed(frame.spec, node, given, result))
    else:  # The results of a function in compiled code do not tell what NumPy's do.
        fixed = is_fixed_view(numpy, given)
        if fixed:
            engine.shared.update(arrays_of(result))
        views = fixed or numpy in VIEWING or "copy" in node.keywords  # `x.astype(t, copy=False)`
        places = set(range(len(given))) if views else set()
    note_places(frame.spec, node, places)


def reads_of(seen: Handing, whole: Val, index: Val, part: Val) -> set[Any]:
    """The reads like `whole[index]`, which gave this part: views, copies, or those of what is fresh or cannot be changed."""
    if isinstance(part, Static | Text | NeverVal) or isinstance(part, Dyn) and isinstance(part.type, Scalar):
        return seen.fresh
    if is_list(whole):
        return seen.copies if isinstance(index, SliceVal) else seen.views
    indices = index.elems if isinstance(index, Seq) and index.kind == "tuple" else (index,)
    chosen = any(is_list(i) or isinstance(i, Dyn) and isinstance(i.type, Array) and i.type.shape for i in indices)
    return seen.fresh if chosen and isinstance(whole, Dyn) and isinstance(whole.type, Array) else seen.views


def is_fixed_view(name: str, given: list[Val]) -> bool:
    """Whether a NumPy function, given these (itself first), returns a view that cannot be written."""
    if name == "diag":  # of a vector it makes a matrix
        array = given[1] if len(given) > 1 else None
        return isinstance(array, Dyn) and isinstance(array.type, Array) and len(array.type.shape) == 2
    return name in ("diagonal", "broadcast_to", "sliding_window_view")


def note_places(spec: Any, node: Apply, places: set[int]) -> None:
    """Record the arguments at some positions; position 0 is the callee."""
    if places:
        nodes = (node.fn, *node.args)
        spec.handing.calls.setdefault(node, set()).update(nodes[k] for k in places)


@dataclass(frozen=True, eq=False)
class Handed:
    """A call whose result may be, or hold, one of its arguments; decided when all graphs are complete.

    Attributes:
        spec: the function in which it is.
        node: the call.
        given: the callee with what it has captured, and the arguments.
        result: what it returned.
    """

    spec: Any
    node: Apply
    given: list[Val]
    result: Val

    def decide(self, shared: set[Node | Seq], origins: Origins) -> None:
        """Record which arguments they are."""
        note_places(self.spec, self.node, hands_on_given(shared, self.given, self.result, origins))


def numpy_name(fn: Val) -> str | None:
    """The name of a NumPy function, or of a method of an array; None for everything else."""
    if isinstance(fn, Bound) and isinstance(fn.receiver, Dyn) and isinstance(fn.receiver.type, Array):
        return fn.function if isinstance(fn.function, str) else None
    if isinstance(fn, Bound) and complex_parts(fn.receiver) is not None:
        return getattr(fn.function, "__name__", None)
    if isinstance(fn, Static) and (lookup(IMPLEMENTATIONS, fn.value) or lookup(SOURCES, fn.value)) is not None:
        return getattr(fn.value, "__name__", "")
    return None


def may_hand_on(fn: Val, result: Val) -> bool:
    """Whether `hands_on_given` must be asked: the front end does not know the callee, and the result can hold something."""
    if isinstance(result, Static | Text | NeverVal) or isinstance(result, Dyn) and not is_mutable(result.type):
        return False
    return not isinstance(fn, Derived) and not (isinstance(fn, Static) and any(fn.value is known for known in KNOWN))


KNOWN = (operator.getitem, list, tuple, dict, sorted, reversed, zip, enumerate, iter)
"""Operations whose results the front end knows."""


def hands_on_given(shared: set[Node | Seq], given: list[Val], result: Val, origins: Origins) -> set[int]:
    """Which of the values given to a call it may have returned, in whole or in part, or put into what it returned.

    What is not taken apart here (run-time lists of lists, data types, functions, iterators) is assumed to hold anything.

    Returns:
        their positions.
    """
    own = {k: leaves for k, value in enumerate(given) if (leaves := set(_mutable(value)))}
    found: set[int] = set()
    for leaf in _mutable(result) if own else ():
        if isinstance(leaf, Node):
            everything = isinstance(leaf.type, Data) or isinstance(leaf.type, List) and is_mutable(leaf.type.elem)
            same = origins.of(leaf)
            constants = {n for leaves in own.values() for n in leaves if isinstance(n, Constant)}
            if any(
                isinstance(n, Constant) and n not in constants for n in same
            ):  # it may be a part of another one, after folding
                same |= constants
        else:
            everything = not isinstance(leaf, Seq) or leaf in shared
            same = {leaf}
        found.update(k for k, leaves in own.items() if everything or not leaves.isdisjoint(same))
    return found


def _mutable(value: Val) -> Iterator[Node | Val]:
    """The arrays and run-time lists of a value, by their nodes; its dicts and lists of known length; what is not taken apart."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Seq | TaggedUnion):
            stack.extend(top.elems if isinstance(top, Seq) else top.options)
            if isinstance(top, Seq) and top.kind in ("list", "dict"):
                yield top
        elif isinstance(top, Dyn):
            if is_mutable(top.type):
                yield top.node
        elif isinstance(top, Bound):
            stack.append(top.receiver)
        elif isinstance(top, AtVal):
            stack.append(top.array)
        elif isinstance(top, Iter):
            stack.extend(top.parts)
            yield top
        elif isinstance(top, ClosureVal | Derived | Listed):
            yield top


def is_mutable(t: Type) -> bool:
    """Whether values of a type are, or hold, arrays, lists or dicts."""
    if isinstance(t, Data):
        return holds_objects(t)
    if isinstance(t, Struct):
        return t.kind in ("list", "dict") or any(map(is_mutable, t.elems))
    return isinstance(t, Array | List)


FINALS = "finals"
"""What a function returns that changes its parameters in place is `Seq(FINALS, (result, *finals))`: with the final value of each
parameter that it keeps (`Graph.flags["kept"]`), or None where that is as it was, or no mutable object."""


def is_finals(value: Val) -> bool:
    """Whether a value is what a function returns that has changed parameters."""
    return isinstance(value, Seq) and value.kind == FINALS


def proper(result: Val) -> Val:
    """The result without the changed parameters."""
    return result.elems[0] if isinstance(result, Seq) and result.kind == FINALS else result


def lists_given(graph: Graph, values: list[Val]) -> Iterator[Seq]:
    """The lists of known length that a function is given and must not change."""
    kept = graph.flags.get("changing", ())
    return (v for k, value in enumerate(values) if k not in kept for v in lists_of(value))


def as_kept(frame: Frame, graph: Graph, args: list[Val]) -> list[Val]:
    """The arguments of a call; of a recursive one, and of that by Python, the lists that it may change as lists that can grow."""
    kept = graph.flags.get("changing", ())
    if kept and frame.spec.key == ("entry",):
        return [_growing(frame, v) if k in kept else v for k, v in enumerate(args)]
    if not kept or not is_active(frame.spec, graph):
        return args
    return [_run_time_list(frame, v) if k in kept else v for k, v in enumerate(args)]


def _growing(frame: Frame, value: Val) -> Val:
    """A value whose lists of numbers that come from Python are run-time lists."""
    if isinstance(value, Listed):
        return promoted(frame, value)
    if isinstance(value, Seq) and any(isinstance(part, Listed | Seq) for part in value.elems):
        return Seq(value.kind, tuple(_growing(frame, part) for part in value.elems), value.fields, value.cls)
    return value


def _run_time_list(frame: Frame, value: Val) -> Val:
    """A list of numbers, or of such lists, as a run-time list; any other value as it is."""
    if not isinstance(value, Seq) or value.kind != "list" or not value.elems:
        return value
    parts = tuple(_run_time_list(frame, part) for part in value.elems)
    if not all(isinstance(part, Dyn) and isinstance(part.type, Scalar | List) for part in parts):
        return value
    try:
        return promoted(frame, value if parts == value.elems else Seq("list", parts))
    except CompileError:  # its entries have no type in common
        return value


def hands_back(graph: Graph, result: Val) -> bool:
    """Whether the result proper may be, or hold, a list of known length that the function has changed."""
    return bool(graph.flags.get("kept")) and bool(lists_of(proper(result)))


def mark_call(shared: set[Node | Seq], spec: Any, result: Val, made: list[Node]) -> None:
    """Mark what a call has returned that it may have been given.

    Args:
        shared: what something else may see, extended.
        spec: the called specialisation.
        result: what it returned, and
        made: the leaves of that.
    """
    if done := spec.finished.done:
        mark_result(shared, spec.graph, returned_leaves(spec.returns, made))
    if spec.hands_on or not done:
        shared.update([*lists_of(result), *(n for n in made if isinstance(n.type, List if done else Array | List))])
    finals = result.elems[0] if isinstance(result, Seq) and result.kind == "tuple" and result.elems else result
    for found in (result, finals):
        if isinstance(found, Seq) and found.kind == FINALS:  # they are the caller's own, who knows what it gave
            shared.difference_update(
                v.node if isinstance(v, Dyn) else v for v in found.elems[1:] if isinstance(v, Dyn | Seq)
            )


def split(spec: Any, result: Val, with_cells: bool) -> tuple[Val, list[Val]]:
    """What a call returns, and the contents of cells after it; with changed parameters it says what was called.

    Raises:
        TypeError_: how many cells there are is known at run time only.
    """
    if result is NEVER:
        return result, []
    if with_cells and isinstance(result, TaggedUnion):
        raise TypeError_(
            f"{spec.graph.name} returns functions of which each has variables of its own that are assigned again, and how many is "
            "known at run time only; give such a variable one value"
        )
    result, *contents = elements(result) if with_cells else [result]
    if isinstance(result, Seq) and result.kind == FINALS:
        result = Seq(FINALS, result.elems, (), spec)
    return result, contents


@dataclass(frozen=True, eq=False)
class AfterCall:
    """An argument after a call that has changed it, or the result of such a call: which other arguments it may hold.

    That is decided when all graphs are complete.

    Attributes:
        spec: the function in which the call is.
        node: `after_call`, or the call.
        first: the place of the first of the other arguments in the arguments of that.
        callee: the called specialisation.
        final: which of the parameters that it keeps the argument is; None for the result proper.
        others: for each of the other arguments, which parameter it is (None for what is in `*args` or `**kwargs`), and whether it
            is a list of numbers; or None for what is no object that can change.
    """

    spec: Any
    node: Apply
    first: int
    callee: Any
    final: int | None
    others: tuple[tuple[int | None, bool] | None, ...]

    def decide(self) -> bool:
        """Record which arguments it holds; whether these are more than were known."""
        known = self.spec.handing.calls.get(self.node, set())
        holds = self.callee.source.flags.get("holds")
        more = {
            self.first + k
            for k, other in enumerate(self.others)
            if other is not None
            and self.node.args[self.first + k] not in known
            and (other[0] is None or holds is not None and holds(self.final, *other, self.callee.handing))
        }
        note_places(self.spec, self.node, {1 + k for k in more})
        if more:
            self.spec.handing.solved, self.spec.handing.rest = Solved(), None
        return bool(more)


def decide(kept: list[AfterCall]) -> None:
    """Decide all to the least fixpoint: what a recursive function stores, its own calls may store."""
    while sum(call.decide() for call in kept):
        pass


def is_none(value: Val) -> bool:
    """Whether a value is None."""
    return isinstance(value, Static) and value.value is None
