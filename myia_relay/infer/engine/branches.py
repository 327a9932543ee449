"""Branches: two closed graphs, inferred concurrently, and the common form of their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.node import Apply, Node
from ...prims.ops.control import cond
from ...utils.errors import CompileError, TypeError_
from ..values.sharing import mark_like
from ..values.sizes import hide_sizes
from ..values.treedef import Mismatch, TreeDef, join, tree_structure, unknown
from ..values.values import NEVER, Cell, Dyn, NeverVal, Seq, TaggedUnion, UnboundVal, Val, elements
from .cells import after_branch, changed_in_branch, with_contents
from .conform import conform, widened
from .engine import Engine
from .frames import Frame, explode, pack, packed_type


async def branch(
    engine: Engine, frame: Frame, condition: Dyn, arms: list[Callable], node: Apply, in_order: bool = False
) -> Val:
    """Emit a `cond` whose arms are inferred by coroutines `(frame) -> Val`, concurrently.

    Args:
        engine: the engine.
        frame: the enclosing frame.
        condition: a bool scalar.
        arms: then, else.
        node: the construct, for its origin and the names of its results.
        in_order: infer the first arm before the second, which depends on it.

    Raises:
        TypeError_: the results of the arms differ in structure or type.
        CompileError: an arm cannot be inferred.
    """
    regions = [frame.region("then"), frame.region("else")]
    for region in regions:
        region.at(node.origin)
        region.writes = True
    values: list[Val | None] = [None, None]
    cells: list[Cell] = []

    async def run(i: int) -> None:
        if i and in_order:
            await tasks[0]
        values[i] = widened(regions[i], await arms[i](regions[i]))
        for cell, content in regions[i].cells.items():
            regions[i].cells[cell] = widened(regions[i], content)

    def leaving(i: int) -> Val:
        """What an arm passes on: its value and the cells that the branch changes."""
        value = values[i]
        assert value is not None
        return value if value is NEVER else with_contents(regions[i], value, cells)

    def treedef_of_type(i: int) -> TreeDef:
        return hide_sizes(tree_structure(leaving(i), capture=regions[i].captured), regions[i].graph)

    tasks = engine.start(run(0)), engine.start(run(1))
    await engine.arms(tasks)
    done = [t for t in tasks if t.done]
    for task in done:
        if task.error is not None:
            raise task.error
    if engine.with_cells:
        cells.extend(changed_in_branch(frame, regions, values, len(done) == 2))
    try:
        # One arm still waits for the result of a recursion: that result is assumed to have the other arm's type, with
        # known values forgotten.
        treedef = (
            unknown(treedef_of_type(tasks.index(done[0])))
            if len(done) == 1
            # Where a recursive function returns arrays of other sizes than were assumed in an earlier pass, they grow.
            else join(treedef_of_type(0), treedef_of_type(1), grow=engine.open_sizes or bool(engine.recursion.before))
        )
    except Mismatch as error:
        engine.families.suspect(*(treedef_of_type(i) for i in range(2)), every=error.many)
        raise TypeError_(_differ(error, values, node), node.origin) from None
    result = packed_type(treedef)
    frame.at(node.origin)
    apply = frame.graph.apply(
        cond,
        condition.node,
        attrs={"then": regions[0].graph, "orelse": regions[1].graph},
        type=result,
        origin=node.origin,
    )

    def close() -> None:
        """Complete both graphs: their outputs in the agreed form, the same parameters in the same order."""
        for i, region in enumerate(regions):
            region.at(node.origin)
            region.graph.output = pack(region, conform(region, leaving(i), treedef))
            if values[i] is NEVER:
                engine.unreturning.add(region.graph)
        give_imports(apply, (condition.node,), regions)

    if len(done) == 2:
        close()
    else:

        async def later() -> None:
            try:
                for i, task in enumerate(tasks):
                    await task
                    other = treedef_of_type(i)
                    if join(treedef, other, grow=True) != treedef:
                        engine.recursion.unsettled = True
                        raise Mismatch(treedef, other)
                close()
            except Mismatch:
                engine.families.suspect(treedef, other)
                engine.late_errors.append(
                    TypeError_(f"the two branches differ in type: {treedef} and {other}", node.origin)
                )
            except CompileError as error:
                engine.late_errors.append(error.at(node.origin))
            except Exception as error:  # a bug of ours, which would otherwise be lost
                engine.late_errors.append(error)

        engine.loop.spawn(later())
    if treedef.tag == "never":
        return NEVER
    result = explode(frame, apply, treedef)
    if cells:
        result, *contents = elements(result)
        for cell, content in zip(cells, contents, strict=True):
            mark_like(engine.shared, [r.cell(cell) for r in regions if r.has_cell(cell)], [content])
        after_branch(frame, regions, values, cells, contents)
    parts = [v.elems if isinstance(v, Seq) else (v,) for v in (*values, result) if v is not None and v is not NEVER]
    if isinstance(result, Seq) and len({len(p) for p in parts}) == 1:
        for *arms_part, part in zip(*parts):
            mark_like(engine.shared, arms_part, [part])
    else:
        mark_like(engine.shared, [v for v in values if v is not None], [result])
    if any(v in engine.shared for v in values if isinstance(v, Seq)):
        options = result.options if isinstance(result, TaggedUnion) else (result,)
        engine.shared.update(v.node if isinstance(v, Dyn) else v for v in options if isinstance(v, Dyn | Seq))
    return result


def give_imports(apply: Apply, first: Sequence[Node], regions: list[Frame]) -> None:
    """Add what its graphs use of the enclosing frame to the operands of an application, after its first arguments.

    This is repeated whenever one of the graphs uses more: a branch inside that waits for a recursion is completed later.
    """

    def give() -> None:
        for region in regions:
            region.late = None
        apply.args = (*first, *unify_imports(regions))
        for region in regions:
            region.late = give

    give()


def unify_imports(regions: list[Frame]) -> list[Node]:
    """Give the graphs of sibling regions the same parameters, in the same order; returns the operands."""
    sources = list(dict.fromkeys(n for r in regions for n in r.imports))
    for region in regions:
        extra = [p for p in region.graph.params if p not in set(region.imports.values())]
        for node in sources:
            region.import_node(node)
        region.graph.params = extra + [region.imports[n] for n in sources]
    return sources


def _differ(error: Mismatch, values: Sequence[Val | None], node: Apply) -> str:
    """The message for branches of different types, naming the variable where there is one."""
    names = node.attrs.get("names", ())
    a, b = error.a, error.b
    left, right = values
    if len(names) == 1 and not any(v is None or isinstance(v, UnboundVal | NeverVal) for v in values):
        left, right = (Seq("tuple", (v,)) for v in values if v is not None)
    if names and isinstance(left, Seq) and isinstance(right, Seq) and len(left.elems) == len(right.elems):
        for name, x, y in zip(names, left.elems, right.elems, strict=False):
            if isinstance(x, UnboundVal | NeverVal) or isinstance(y, UnboundVal | NeverVal):
                continue
            try:
                join(tree_structure(x, capture=lambda c: ()), tree_structure(y, capture=lambda c: ()))
            except Mismatch as inner:
                if name == "$ret":
                    return f"the function returns {inner.a} on one path and {inner.b} on another; {inner.why or 'make them alike'}"
                if not name.startswith("$"):
                    advice = inner.why or "make them alike"
                    return f"'{name}' is {inner.a} after one branch and {inner.b} after the other; {advice}"
    if a == b and error.why:  # their common type is what cannot be
        return error.why
    return f"the two branches differ in type: {a} and {b}; {error.why or 'make them alike'}"
