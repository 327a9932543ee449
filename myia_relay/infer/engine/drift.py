"""Loops whose variables change their types: the ways to infer them, tried in order until the types settle."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager

from ...utils.errors import TypeError_
from ..values.treedef import TreeDef
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


async def settling(frame: Frame, attempts: list[Callable]) -> Val:
    """Run the ways to infer a loop in order until its types settle; if none does, raise the error of the first."""
    first: TypeDrift | None = None
    for attempt in attempts:
        try:
            with undoing(frame):
                return await attempt()
        except TypeDrift as error:
            first = first or error
    assert first is not None
    raise first from None
