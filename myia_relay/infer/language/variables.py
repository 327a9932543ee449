"""Variables that inner functions assign to: reading and writing their cells.

How cells pass through branches, loops and calls is in `infer.engine.cells`.
"""

from __future__ import annotations

import sys

from ...abstract.references import reference_of
from ...ir import syntax as S
from ...ir.node import Apply
from ...utils.errors import NameError_
from ..engine.cells import UNCERTAIN, out_of_reach, unseen
from ..engine.frames import Frame, raising, reach
from ..engine.unions import dispatch
from ..objects import references
from ..values.values import NONE_VAL, UNBOUND_VAL, Cell, Seq, TaggedUnion, UnboundVal, Val
from .registry import handles


@handles(S.new_cell)
async def new_cell(engine, frame: Frame, node: Apply) -> Val:
    """A cell with nothing in it."""
    cell = engine.cell_of(frame, node)
    frame.new_cell(cell, UNBOUND_VAL)
    engine.with_cells = True
    return cell


@handles(S.cell_get)
async def cell_get(engine, frame: Frame, node: Apply) -> Val:
    """Read the cell of a variable."""
    return await read(engine, frame, engine.value(frame, node.args[0]), node)


async def read(engine, frame: Frame, cell: Val, node: Apply) -> Val:
    """The content of a cell.

    Raises:
        NameError_: it may not be bound.
        TypeError_: the cell is out of reach.
    """  # noqa: DOC501 (a function makes the exception)
    if isinstance(cell, TaggedUnion):
        return await dispatch(
            engine, frame, cell, lambda region, option: read(engine, region, option, node), node, node.origin
        )
    if isinstance(cell, Seq):
        cls = reference_of(cell)
        if cls is None:
            return cell.elems[0]  # frozen
        return references.read(engine, frame, cls, cell, node.attrs.get("heaps"))
    name = node.attrs["name"]
    assert isinstance(cell, Cell)
    if not frame.has_cell(cell):
        raise out_of_reach(name)
    value = frame.cell(cell)
    if value in UNCERTAIN:
        raise NameError_(f"'{name}' may not be bound here; bind it before the branch")
    if isinstance(value, UnboundVal):
        kind, message = unbound(name, node.attrs["free"])
        return raising(frame, kind, message)
    return value


@handles(S.cell_set)
async def cell_set(engine, frame: Frame, node: Apply) -> Val:
    """An assignment to the variable of a cell."""
    cell, value = (engine.value(frame, a) for a in node.args)
    return await write(engine, frame, cell, value, node)


async def write(engine, frame: Frame, cell: Val, value: Val, node: Apply) -> Val:
    """Put a value into a cell.

    Raises:
        TypeError_: the cell is out of reach, or nothing after it would see the change.
    """  # noqa: DOC501 (a function makes the exception)
    if isinstance(cell, TaggedUnion):

        async def into(region: Frame, option: Val) -> Val:
            return await write(engine, region, option, reach(frame, region, value), node)

        return await dispatch(engine, frame, cell, into, node, node.origin)
    if isinstance(cell, Seq) and (cls := reference_of(cell)) is not None:
        return references.write(engine, frame, cls, cell, value, node.attrs.get("heaps"))
    name = node.attrs["name"]
    assert isinstance(cell, Cell)
    if not frame.has_cell(cell):
        raise out_of_reach(name)
    if not frame.may_set(cell):
        raise unseen(name)
    frame.set_cell(cell, value)
    return NONE_VAL


def unbound(name: str, free: bool) -> tuple[type[NameError], str]:
    """The error that CPython raises if a variable has no value: one of the function itself, or of an enclosing function
    (`free`).
    """
    what, where = ("free", " in enclosing scope") if free else ("local", "")
    kind = NameError if free else UnboundLocalError
    if sys.version_info < (3, 11):
        return kind, f"{what} variable '{name}' referenced before assignment{where}"
    return kind, f"cannot access {what} variable '{name}' where it is not associated with a value{where}"
