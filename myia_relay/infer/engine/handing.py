"""Which arguments a call may return: its result may be one of them, a part of one, or hold one."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Array, Data, List, Struct, Type
from ...ir.node import Apply, Constant, Node
from ...ir.syntax import VIEWING
from ...library import SOURCES
from ...prims.api.numpy_api import IMPLEMENTATIONS
from ..values.protocols import lookup
from ..values.sharing import Origins
from ..values.values import (
    AtVal,
    Bound,
    ClosureVal,
    Derived,
    Dyn,
    Iter,
    Listed,
    NeverVal,
    Seq,
    Spread,
    Static,
    TaggedUnion,
    Text,
    Val,
)


def note_handing(engine, frame, node: Apply, fn: Val, result: Val) -> None:
    """Record which arguments a call may have returned, or put into what it returned; see `ir.syntax.Handing`.

    For inferred functions this is decided later (`Handed`): a recursive function may still lack the arms that wait for it.
    """
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
        views = numpy in VIEWING or "copy" in node.keywords  # `x.astype(t, copy=False)`
        places = set(range(len(given))) if views else set()
    note_places(frame.spec, node, places)


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
    if isinstance(fn, Static) and (lookup(IMPLEMENTATIONS, fn.value) or lookup(SOURCES, fn.value)) is not None:
        return getattr(fn.value, "__name__", "")
    return None


def may_hand_on(fn: Val, result: Val) -> bool:
    """Whether `hands_on_given` must be asked: the front end does not know the callee, and the result can hold something."""
    if isinstance(result, Static | Text | NeverVal) or isinstance(result, Dyn) and not _holds(result.type):
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
            everything = isinstance(leaf.type, Data) or isinstance(leaf.type, List) and _holds(leaf.type.elem)
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
    """The arrays and run-time lists of a value, by their nodes; its lists of known length; and what is not taken apart."""
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Seq | TaggedUnion):
            stack.extend(top.elems if isinstance(top, Seq) else top.options)
            if isinstance(top, Seq) and top.kind == "list":
                yield top
        elif isinstance(top, Dyn):
            if _holds(top.type):
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


def _holds(t: Type) -> bool:
    """Whether values of a type are or hold arrays or lists."""
    if isinstance(t, Data):
        return any(
            isinstance(leaf, Array | List) for f in t.family.reachable() for v in f.variants for leaf in v.leaves
        )
    return isinstance(t, Array | List) or isinstance(t, Struct) and any(map(_holds, t.elems))
