"""Loops whose variables change their types: the ways to infer them, tried in order until the types settle."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import contextmanager, suppress

from ...ir.node import Apply, Graph
from ...ir.walk import free_variables
from ...utils.errors import TypeError_
from ..values.treedef import TreeDef, tree_structure, unknown
from ..values.values import Val
from .frames import Frame


class TypeDrift(TypeError_):
    """A carried variable has another type after an iteration than before it.

    Attributes:
        index: of the variable; None where the types of several keep growing.
        after: its form after the iteration.
    """

    index: int | None = None
    after: TreeDef | None = None

    def public(self) -> TypeError_:
        """The error as the user gets it."""
        return TypeError_(self.message, self.origin, *self.notes)


class Exhausted(TypeError_):
    """A loop is too long to be unrolled; it has notes if the error is complete."""

    def public(self) -> TypeError_:
        """The error as the user gets it."""
        return TypeError_(self.message, self.origin, *self.notes)


class Unnumbered(TypeError_):
    """Something depends on the number of its iteration, which is not known in a loop that stays one."""

    def public(self) -> TypeError_:
        """The error as the user gets it."""
        return TypeError_(self.message, self.origin, *self.notes)


def require_numbered(iteration: tuple[int | None, ...], what: str) -> None:
    """Demand that the iterations of the loops around a call with `unshared=True` are known one by one.

    Raises:
        Unnumbered: one of them stays a loop. A `for` over a known range is unrolled then.
    """
    if any(turn is None or turn < 0 for turn in iteration):
        raise Unnumbered(
            f"{what}: unshared=True gives each iteration a set of its own, and how many this loop has is not known at "
            "compile time; loop over range(n) with a known n of at most 1,024, or over a tuple"
        )


@contextmanager
def undoing(frame: Frame, kind: type[Exception] = TypeDrift):
    """Undo what was emitted and written to cells inside, if the block is left by such an exception."""
    nodes, cells = frame.graph.nodes, frame.emitting().cells
    count, before, sizes = len(nodes), dict(cells), dict(frame.builder.sizes)
    try:
        yield
    except kind:
        del nodes[count:]
        frame.builder.sizes = sizes
        cells.clear()
        cells.update(before)
        raise


class Ways:
    """The ways in which loops whose variables change their types were inferred, so that they are not searched for again.

    The body of a loop is inferred several times: the loops inside it are met again in each of them, mostly with variables of
    the same types. If each of these searched anew, the work would double with each level of nesting. Which way is tried first
    decides nothing but that: every way is right, and if it fails, all are tried in order.

    Attributes:
        found: loop -> (types of its variables and of what it uses from around it) -> the way, the error of the first one, and
            the types that the variables have got. Where no way was right, the types that are given are those with known
            numbers, and there is no way.
    """

    def __init__(self):
        self.found: dict[Apply, dict[tuple[TreeDef, ...], tuple[int | None, TypeDrift, list[TreeDef]]]] = {}


def given(frame: Frame, values: list[Val], graphs: tuple[Graph, ...], at: Hashable) -> tuple[TreeDef, ...] | None:
    """The types of all that decides how a loop is inferred; None where there is no telling.

    Args:
        frame: where the loop is.
        values: the initial values of its variables, and what it iterates over.
        graphs: its parsed graphs, whose free variables count too.
        at: what else decides.
    """
    if frame.known_cells():
        return None
    known = [TreeDef("static", at), *(tree_structure(v, capture=frame.captured) for v in values)]
    for node in dict.fromkeys(n for g in graphs for n in free_variables(g, frame.spec.free)):
        outer: Frame | None = frame  # it is left there: what is brought here becomes a parameter
        while outer is not None and node not in outer.env:
            outer = outer.parent
        if outer is not None:
            known.append(tree_structure(outer.env[node], capture=outer.captured))
    return tuple(known)


async def settling(
    ways: Ways,
    frame: Frame,
    node: Apply,
    graphs: tuple[Graph | None, ...],
    values: list[Val],
    attempts: list[Callable],
    drift: list[TypeDrift],
    types: list[TreeDef],
) -> Val:
    """Run the ways to infer a loop in order until its types settle; if none does, raise the error of the first.

    Args:
        ways: what is known of loops that were inferred before.
        frame: where the loop is.
        node: the loop.
        graphs: its parsed graphs; None where it is not the user's.
        values: the initial values of its variables, and what it iterates over.
        attempts: the ways.
        drift: receives the error of the first way, which others look at.
        types: receives the types of the variables, if they may be of several types, from the way or from an earlier run of it.
    """
    own = [g for g in graphs if g is not None]

    def around() -> tuple[TreeDef, ...] | None:
        return given(frame, values, tuple(own), (len(attempts), frame.context)) if len(own) == len(graphs) else None

    if node in ways.found and (exact := around()) is not None:
        before = ways.found[node].get(exact) or ways.found[node].get(tuple(map(unknown, exact)))
        if before is not None:
            place, error, types[:] = before
            if place is None:
                raise error
            drift.append(error)
            with suppress(TypeDrift), undoing(frame):
                return await attempts[place]()
            drift.clear()
            types.clear()
    for place, attempt in enumerate(attempts):
        try:
            with undoing(frame):
                result = await attempt()
        except TypeDrift as error:
            if not drift:
                drift.append(error)
            continue
        if drift and (exact := around()) is not None:
            ways.found.setdefault(node, {})[tuple(map(unknown, exact))] = place, drift[0], list(types)
        return result
    if (exact := around()) is not None:
        ways.found.setdefault(node, {})[exact] = None, drift[0], []
    raise drift[0] from None
