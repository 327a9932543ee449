"""Variables that inner functions assign to (`nonlocal`), or that are bound again after capture: mutable state turned into
values.

The front end gives each such variable a cell, and reads and writes it by `cell_get` and `cell_set`. The cell itself is
known at compile time. Its content is a value like any other, which the frames keep (`Frame.cells`) while inference
walks the program in its order. A write therefore costs nothing: the next read finds the value that was written. Where
control flow joins, the contents are passed along: a branch returns the cells that it changed, a loop carries them, and
a function takes the cells that its arguments and captured variables reach and returns their new contents (the
state-passing translation of denotational semantics). If a closure leaves the function that made its cell, the cell
becomes a new cell of the caller.

Functions that only read a cell capture its content where they are differentiated, batched or returned to Python
(`frozen`). Some changes cannot be followed and are refused: those inside a differentiated or batched function, those in
the condition of a loop, and a function that is returned to Python and assigns to a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ...ir import syntax as S
from ...ir.node import Constant, Node
from ...ir.walk import graphs_reachable
from ...utils.errors import CompileError, NameError_, TypeError_
from ..values.sharing import arrays_of
from ..values.treedef import TreeDef
from ..values.values import (
    UNBOUND_VAL,
    Bound,
    Cell,
    ClosureVal,
    Derived,
    Iter,
    NeverVal,
    Seq,
    TaggedUnion,
    UnboundVal,
    Val,
)
from .frames import Frame

PERHAPS_UNBOUND = UnboundVal()  # the content of a cell that only one of two branches has set
NOT_IN_THIS_ITERATION = (
    UnboundVal()
)  # the content of a cell that was not set before the enclosing loop, before the iteration sets it
UNCERTAIN = (PERHAPS_UNBOUND, NOT_IN_THIS_ITERATION)


def reachable(frame: Frame, values: Iterable[Val]) -> list[Cell]:
    """The cells that values hold, directly or through other cells, each once, in a fixed order."""
    return [v for v in held(frame, values) if isinstance(v, Cell)]


def taken(engine, frame: Frame, values: Iterable[Val]) -> list[Cell]:
    """The cells that a call takes with these values, as far as the caller has them: those within reach, and all heaps."""
    cells = [*engine.heaps.values(), *reachable(frame, values)]
    return [c for c in dict.fromkeys(cells) if frame.has_cell(c)]


def held(frame: Frame, values: Iterable[Val]) -> Iterator[Val]:
    """Values and all that they hold, directly or through cells: each cell once, in a fixed order."""
    found: set[Cell] = set()
    stack = list(values)[::-1]
    while stack:
        value = stack.pop()
        if isinstance(value, Cell):
            if value in found:
                continue
            found.add(value)
            if frame.has_cell(value):
                stack.append(frame.cell(value))
        elif isinstance(value, Seq):
            stack.extend(reversed(value.elems))
        elif isinstance(value, ClosureVal):
            stack.extend(v for _, v in reversed(frame.captured(value)))
        elif isinstance(value, Bound):
            stack.append(value.receiver)
        elif isinstance(value, Derived):
            stack.append(value.function)
        elif isinstance(value, TaggedUnion):
            stack.extend(reversed(value.options))
        elif isinstance(value, Iter):
            stack.extend(reversed(value.parts))
        yield value


def frozen(frame: Frame, values: list[Val]) -> list[Val]:
    """Replace cells in values by their contents, if none of the functions that they hold assigns to the cells.

    A function that only reads a variable can then be differentiated, batched and returned to Python, like any other.
    """
    parts = list(held(frame, values))
    if not any(isinstance(part, Cell) for part in parts):
        return values
    written: set[Cell] = set()
    for closure in (part for part in parts if isinstance(part, ClosureVal)):
        captured = dict(frame.captured(closure))
        for graph in graphs_reachable(closure.graph):
            for node in graph.nodes:
                if isinstance(node.fn, Constant) and node.fn.value is S.cell_set:
                    cell = captured.get(node.args[0])
                    if isinstance(cell, Cell):
                        written.add(cell)
    within: list[Cell] = []

    def freeze(value: Val) -> Val:
        if isinstance(value, Cell):
            if (
                value in written
                or value in within
                or not frame.has_cell(value)
                or isinstance(frame.cell(value), UnboundVal)
            ):
                return value
            within.append(value)
            content = freeze(frame.cell(value))
            within.pop()
            return Seq("frozen", (content,))
        if isinstance(value, Seq):
            elems = tuple(freeze(e) for e in value.elems)
            same = all(a is b for a, b in zip(elems, value.elems, strict=True))
            return value if same else Seq(value.kind, elems, value.fields, value.cls)
        if isinstance(value, ClosureVal):
            captured = frame.captured(value)
            new = [freeze(v) for _, v in captured]
            if all(a is b for a, (_, b) in zip(new, captured, strict=True)):
                return value
            return ClosureVal(value.graph, None, tuple(zip([n for n, _ in captured], new, strict=True)))
        if isinstance(value, Bound):
            return Bound(freeze(value.receiver), value.function)
        if isinstance(value, Derived):
            return Derived(value.transform, freeze(value.function), value.options)
        if isinstance(value, TaggedUnion):
            return TaggedUnion(value.tag, tuple(freeze(o) for o in value.options))
        return value

    return [freeze(v) for v in values]


def require_bound(frame: Frame, cells: list[Cell], where: str) -> None:
    """Refuse cells that may or may not have a content.

    Raises:
        NameError_: with advice.
    """
    for cell in cells:
        if frame.cell(cell) in UNCERTAIN:
            raise NameError_(f"'{cell.name}' is bound on one path only {where}; bind it before")


def with_contents(frame: Frame, value: Val, cells: list[Cell]) -> Val:
    """A value together with the contents of cells, in the form in which it leaves a graph."""
    if not cells:
        return value
    contents = (frame.cell(c) if frame.has_cell(c) else UNBOUND_VAL for c in cells)
    return Seq("tuple", (value, *contents))


def changed_in_branch(frame: Frame, regions: list[Frame], values: list[Val | None], complete: bool) -> list[Cell]:
    """The cells that a branch returns.

    Args:
        frame: the enclosing frame.
        regions: the frames of the arms.
        values: their results; None where an arm is not done.
        complete: whether all arms are done; if not, every cell may still be changed.
    """
    cells = dict.fromkeys(c for r in regions for c in r.cells if frame.has_cell(c))
    if not complete:
        cells.update(dict.fromkeys(frame.known_cells()))
    if not cells and not any(r.cells for r in regions):
        return []
    for region, value in zip(regions, values, strict=True):
        if value is not None:
            contents = [region.cell(c) for c in cells if region.has_cell(c)]
            cells.update(dict.fromkeys(reachable(region, [value, *contents])))
    return list(cells)


def after_branch(
    frame: Frame, regions: list[Frame], values: list[Val | None], cells: list[Cell], contents: Iterable[Val]
) -> None:
    """Set the cells to the contents that a branch returned; `values` are the arms' results, NEVER where they do not
    return.
    """
    for cell, content in zip(cells, contents, strict=True):
        new = not frame.has_cell(cell)
        found = [
            r.cell(cell)
            for r, v in zip(regions, values, strict=True)
            if v is not None and not isinstance(v, NeverVal) and r.has_cell(cell)
        ]
        unbound = [isinstance(value, UnboundVal) for value in found]
        if not new and (PERHAPS_UNBOUND in found or len(set(unbound)) == 2):
            content = PERHAPS_UNBOUND
        elif not new and all(unbound):
            content = NOT_IN_THIS_ITERATION if NOT_IN_THIS_ITERATION in found else UNBOUND_VAL
        frame.set_cell(cell, content)


def changed_in_loop(frame: Frame, iteration: Frame, cells: list[Cell], results: list[Val]) -> list[Cell]:
    """The cells that a loop must carry in addition to those that it already carries.

    Raises:
        TypeError_: a cell made by one iteration would be found by the next.
    """
    changed = [c for c in iteration.cells if c not in cells and frame.has_cell(c)]
    new = [c for c in changed if not isinstance(frame.cell(c), UnboundVal)]
    for cell in changed:
        if cell not in new and iteration.cell(cell) is not NOT_IN_THIS_ITERATION:
            frame.set_cell(
                cell, PERHAPS_UNBOUND
            )  # it is not read before it is bound in each iteration, so it need not be carried
    if iteration.cells:
        for cell in reachable(iteration, [*results, *[iteration.cell(c) for c in (*cells, *new)]]):
            if not frame.has_cell(cell):
                raise TypeError_(
                    f"a function that changes '{cell.name}', a variable of one iteration of this loop, is kept for later "
                    "iterations; return the new value instead"
                )
    return new


def open_iteration(frame: Frame, iteration: Frame, cells: list[Cell], contents: list[Val]) -> None:
    """Set the cells at the beginning of an iteration: the carried ones, and those that are not bound yet."""
    iteration.cells.update(
        dict.fromkeys((c for c in frame.known_cells() if isinstance(frame.cell(c), UnboundVal)), NOT_IN_THIS_ITERATION)
    )
    iteration.cells.update(zip(cells, contents, strict=True))


class MoreCells(Exception):
    """A loop's body changes cells that the loop does not carry yet."""

    def __init__(self, cells: list[Cell]):
        self.cells = cells
        super().__init__()


async def carrying(engine, frame: Frame, init: list[Val], names: tuple[str, ...], loop):
    """Run `loop(init, names, cells)`; the cells that its body turns out to change become further carried values."""
    cells: list[Cell] = []
    while True:
        contents = [frame.cell(c) for c in cells]
        try:
            result = await loop([*init, *contents], (*names, *[c.name for c in cells]), cells)
        except MoreCells as more:
            cells = [*cells, *more.cells]
            continue
        if cells and isinstance(result, Seq):
            for cell, content in zip(cells, result.elems[len(init) :], strict=True):
                frame.set_cell(cell, content)
            result = Seq("tuple", result.elems[: len(init)])
        return result


def refreshed(treedef: TreeDef, fresh: dict[Cell, Cell]) -> TreeDef:
    """A treedef with other cells: each call of a function makes new cells."""
    if treedef.tag == "cell":
        return TreeDef("cell", fresh.get(treedef.info, treedef.info))
    if not treedef.parts:
        return treedef
    return TreeDef(treedef.tag, treedef.info, tuple(refreshed(p, fresh) for p in treedef.parts))


def mark_stored(engine, frame: Frame, args: list[Val]) -> None:
    """Mark arrays that a called function may have stored in a cell, here and in the frames they come from."""
    for node in (n for a in args for n in arrays_of(a)):
        engine.shared.add(node)
        inner: Frame | None = frame
        found: Node | None = node
        while inner is not None and found is not None:
            found = next((source for source, param in inner.imports.items() if param is found), None)
            if found is not None:
                engine.shared.add(found)
            inner = inner.parent


def unseen(name: str) -> CompileError:
    """The error for a change that nothing after it would see."""
    return TypeError_(
        f"'{name}' cannot be assigned to from here: the condition of a loop, and a function given to relay.scan, change no "
        "variables around them; return the new value"
    )


def out_of_reach(name: str) -> CompileError:
    """The error for a cell that a transformed function reaches from outside the transform."""
    return TypeError_(
        f"'{name}', which changes while an inner function holds it, cannot be used inside of a function that is differentiated or "
        "batched; pass its value as an argument"
    )


class Recaptured(CompileError):
    """A variable is bound again while a function that captured it still exists: it must become a cell.

    Attributes:
        make_cell: makes it a cell, for the next parsing of the function.
    """

    def __init__(self, name: str, make_cell: Callable[[], None], origin):
        super().__init__(
            f"'{name}' is assigned again after an inner function captured it; give the new value another name", origin
        )
        self.make_cell = make_cell
