"""Heaps: the contents of references that exist at run time, in lists, fields of data types and results of recursion.

A cell (`infer.engine.cells`) is known at compile time, so it cannot tell apart the references that a recursion makes. Such a
reference is a record of a place (`abstract.references`) in a heap: one list of all contents of a type that the program has made. To
make a reference appends its content, to read one takes an entry, to write one changes it. The list itself is the content of a cell,
which every call takes and gives back, so that all that is known of cells holds for heaps: branches, loops and recursion pass them
on, and derivatives are those of lists. Nothing is freed before the call from Python ends.

A heap is opened where Python, or a function of Python in compiled code, calls a program with references. They do not leave that
call, and do not enter what is differentiated or batched in it, where their heap is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...abstract.references import HeapReference, is_reference, reference_of
from ...abstract.types import Data, List, Struct, Type
from ...ir.node import Node
from ...ir.prim import REGISTRY
from ...utils.errors import TypeError_
from ..engine.cells import Recaptured, held, unseen
from ..engine.conform import entry_node
from ..engine.frames import Frame
from ..values.functions import FunctionFamily, parts_in
from ..values.values import NONE_VAL, Cell, Dyn, Seq, Val
from .lists import entry


def open_heap(engine, frame: Frame, cls: type[HeapReference]) -> None:
    """Make an empty heap for contents of a type, if this frame has none."""
    cell = engine.heaps.setdefault(cls, Cell(f"ref({cls.content})"))
    if not frame.has_cell(cell):
        engine.with_cells = True
        elem = engine.families.instances.type(cls.content)
        frame.new_cell(cell, Dyn(frame.builder.emit(REGISTRY["list_new"], (), {"elem": elem})))


def heap(engine, frame: Frame, cls: type[HeapReference], heaps: Any = None) -> tuple[Cell, Dyn]:
    """The heap of a class of references, and what is in it.

    Args:
        engine, frame: as everywhere.
        cls: the class.
        heaps: those of the module that reads or writes (`text.lower.heaps`), which may be the first to see such a reference.

    Raises:
        MoreHeaps: none was opened.
        TypeError_: it is out of reach.
    """
    cell = engine.heaps.get(cls)
    if cell is None and heaps is not None and heaps.lacks(cls.content):
        raise MoreHeaps(cls.content, heaps.add)
    if cell is None or not frame.has_cell(cell):
        raise TypeError_(
            f"a reference to {cls.content} that was made elsewhere cannot be used here; pass what it refers to"
        )
    found = frame.cell(cell)
    assert isinstance(found, Dyn)
    return cell, found


class MoreHeaps(Recaptured):
    """A reference to contents of a type is made or used, and no heap for them was opened where the program begins.

    Args:
        content: the type.
        note: notes it, for the next pass.
    """

    def __init__(self, content: Type, note: Callable[[Type], None]):
        super().__init__(f"ref({content})", lambda: note(content), None)


def make(engine, frame: Frame, cls: type[HeapReference], content: Val) -> Seq:
    """A new reference to a value."""
    cell, found = heap(engine, frame, cls)
    place = frame.builder.emit(REGISTRY["list_len"], (found.node,))
    node = entry_node(frame, content, found.type.elem)
    _change(frame, cell, frame.builder.emit(REGISTRY["list_push"], (found.node, node)))
    return Seq("record", (Dyn(place),), ("place",), cls)


def read(engine, frame: Frame, cls: type[HeapReference], reference: Seq, heaps: Any = None) -> Val:
    """What a reference refers to now."""
    (place,) = reference.elems
    assert isinstance(place, Dyn)
    return entry(engine, frame, heap(engine, frame, cls, heaps)[1], place)


def write(engine, frame: Frame, cls: type[HeapReference], reference: Seq, content: Val, heaps: Any = None) -> Val:
    """Let a reference refer to another value."""
    (place,) = reference.elems
    assert isinstance(place, Dyn)
    cell, found = heap(engine, frame, cls, heaps)
    node = entry_node(frame, content, found.type.elem)
    _change(frame, cell, frame.builder.emit(REGISTRY["list_set"], (found.node, place.node, node)))
    return NONE_VAL


def _change(frame: Frame, cell: Cell, new: Node) -> None:
    if not frame.may_set(cell):
        raise unseen(cell.name)
    frame.set_cell(cell, Dyn(new))


def refuse(engine, frame: Frame, values: Iterable[Val], where: str) -> None:
    """Refuse references in values, in what functions captured too, that go where their heap is not.

    Raises:
        TypeError_: there is one.
    """
    found = (
        next((c for v in held(frame, values) if (c := _reference_in(v)) is not None), None) if engine.heaps else None
    )
    if found is not None:
        raise TypeError_(f"a reference to {found.content} {where}; use what it refers to")


def _reference_in(value: Val) -> type[HeapReference] | None:
    """The class of a reference that a value is, or holds in its fields or entries."""
    if isinstance(value, Seq):
        return reference_of(value)
    types, seen = [value.type] if isinstance(value, Dyn) else [], set()
    while types:
        t = types.pop()
        if (found := reference_of(t)) is not None:
            return found
        if isinstance(t, Struct):
            types.extend(t.elems)
        elif isinstance(t, List):
            types.append(t.elem)
        elif isinstance(t, Data) and t.family not in seen:
            seen.add(t.family)
            captured = parts_in([t.family]) if isinstance(t.family, FunctionFamily) else ()
            for part in captured:
                if part.tag == "seq" and is_reference(part.info[2]):
                    return part.info[2]
            types.extend(e for v in t.family.variants for e in v.types)
    return None


__all__ = ["MoreHeaps", "make", "open_heap", "read", "refuse", "write"]
