"""Branches and loops of the main function.

Values that leave an iteration or a branch are in fixed places: scalars in one-element locals, arrays in storages of
their own, or in those of the initial values if these are dead. New carried values are written directly into the place
of the old ones if the old ones are dead, and through a copy otherwise.

Long loops poll for signals at intervals, at the end of an iteration, and only where no update of a model is in progress
around them: Ctrl-C leaves whole steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from ....abstract.dims import product
from ....abstract.types import Array, List, NoneT, Ref, Struct, Tape, Type, Undefined, is_static_shape, leaves
from ....ir.node import Apply, Constant, Graph, Node, applied, applies
from ....ir.prim import Primitive
from ....opt.analysis.fusion import is_scalar
from ....prims.ops.control import LEAD
from ....utils.errors import LoweringError
from ..plan import ITEM, View
from ..tir import exact
from ..tir.block import idx, load
from . import data, vector_loops
from .inplace import donated, is_fresh, source, source_of_part

LOGIC = ("logical_not", "logical_and", "logical_or")
TESTS = ("lt", "le", "gt", "ge", "eq", "ne", "isnan", "isinf", "isfinite", *LOGIC)


def leaf_nodes(node: Node, scope: Any) -> list[Node | None]:
    """For each leaf of a value the node that makes it, where that can be seen."""
    if isinstance(node, Apply) and getattr(node.fn, "name", "") == "make_struct":
        out: list[Node | None] = []
        for arg in node.args:
            out += leaf_nodes(arg, scope)
        return out
    if isinstance(node.type, Struct):
        return [None] * len(leaves(node.type))
    return [node]


def flatten(value: Any, type: Type) -> list[Any]:
    """The leaves of a lowered value."""
    if isinstance(type, Struct):
        return [leaf for v, t in zip(value, type.elems, strict=True) for leaf in flatten(v, t)]
    return [value]


def unflatten(values: list[Any], type: Type) -> Any:
    """The lowered value that has these leaves; consumes the list from its front."""
    if isinstance(type, Struct):
        return tuple(unflatten(values, t) for t in type.elems)
    return values.pop(0)


def carry_in_place(lowering: Any, scope: Any, dest: list[View | None]) -> None:
    """Let the arrays that a graph returns, and loops and calls make, live where they are wanted all the while, from their
    beginnings on.

    Args:
        lowering: the walk.
        scope: of the graph.
        dest: for each leaf of its result, where it is wanted.
    """
    output, users = scope.graph.output, scope.fusion.users
    if applied(output) in LEAD and not any(isinstance(t, Struct) for t in output.type.elems):
        results: list[Any] = [(output, k) for k in range(len(output.type.elems))]
    else:
        nodes = [_updated(n, users) for n in leaf_nodes(output, scope)]
        results = [(n.args[0], n.attrs["index"]) if applies(n, "get_item") else None for n in nodes]
    for result, view in zip(results, dest, strict=True):
        if result is not None and view is not None and lowering.calls is not None:
            start = lowering.calls.start(*result)
            if start is not None and users[start] == [result[0]] and is_fresh(start, scope):
                scope.dest.setdefault(start, view)
        while result is not None and view is not None and applied(result[0]) in LEAD and result not in scope.loop_dest:
            loop, k = result
            scope.loop_dest[result] = view
            start = loop.args[LEAD[loop.fn.name] + k]
            result = None
            if (
                not isinstance(start, Apply)
                or users[start] != [loop]
                or loop.args.count(start) != 1
                or start in scope.dest
            ):
                continue
            if applied(start) == "get_item" and applied(start.args[0]) in LEAD:
                if _taken_once(start, users):
                    result = (start.args[0], start.attrs["index"])
            elif applied(start) == "undef" or is_fresh(start, scope):
                scope.dest[start] = view


def _taken_once(part: Apply, users: Any) -> bool:
    """Whether nothing else looks at what is a part of a tuple here."""
    others = users[part.args[0]]
    made = [n for n in others if getattr(n, "attrs", {}).get("index") == part.attrs["index"]]
    return made == [part] and all(applied(n) == "get_item" for n in others)


def _updated(node: Node | None, users: Any) -> Node | None:
    """What an array was before updates that are all that looks at it."""
    last = node
    while (
        isinstance(node, Apply) and isinstance(node.fn, Primitive) and node.fn.update and users[node.args[0]] == [node]
    ):
        node = node.args[0]
    if node is not last and applies(node, "get_item") and not _taken_once(node, users):
        return last
    return node


@dataclass
class Joined:
    """A concatenation whose parts are made where they belong: its memory, and that of each part."""

    whole: View
    parts: list[View]


def join_in_place(lowering: Any, scope: Any) -> None:
    """Let arrays that are only made to be joined lie one behind the other from the beginning, so that joining them is nothing."""
    users = scope.fusion.users
    for node in scope.graph.nodes:
        if applied(node) != "concatenate" or scope.fusion.role.get(node) != "root" or node in scope.fusion.updates:
            continue
        parts, wanted = node.args, scope.dest.get(node)
        if not is_static_shape(node.type) or product(node.type.shape[: node.attrs["axis"]]) != 1:
            continue
        if not all(is_fresh(p, scope) and users[p] == [node] and p not in scope.dest for p in parts):
            continue
        if len(set(parts)) < len(parts) or any(p.type.dtype != node.type.dtype for p in parts):
            continue
        # If a loop wants the whole array there, something may read the present contents after a part has been written.
        if wanted is not None and (wanted.storage.kind != "out" or len(lowering.scopes) > 1):
            continue
        whole = scope.dest.pop(node, None) or lowering.new_view(node.type)
        joined = scope.joined[node] = Joined(whole, [])
        offset = 0
        for part in parts:
            joined.parts.append(View(whole.storage, whole.dtype, part.type.shape, whole.offset + offset, whole.pointer))
            scope.dest[part] = joined.parts[-1]
            offset += product(part.type.shape) * ITEM[whole.dtype]


def is_joined(lowering: Any, node: Apply) -> bool:
    """Whether all parts of a concatenation have got where they were wanted; where not, the whole is wanted there."""
    joined = lowering.scope.joined.get(node)
    if joined is None:
        return False
    if all(lowering.view(p) is view for p, view in zip(node.args, joined.parts, strict=True)):
        return True
    lowering.scope.dest[node] = joined.whole
    return False


class Cells:
    """The fixed places of the leaves of a value that control flow carries.

    Attributes:
        types: of the leaves.
        places: for each a one-element local (scalars, tapes' heights), a `View`, or a value that never changes.

    Args:
        lowering: the walk.
        types: of the leaves.
        taken: for some leaves the memory that they are to live in.
    """

    def __init__(self, lowering: Any, types: list[Type], taken: dict[int, View] | None = None):
        self.lowering = lowering
        self.types = types
        self.places: list[Any] = []
        for k, t in enumerate(types):
            if taken and k in taken:
                self.places.append(taken[k])
            elif is_scalar(t):
                self.places.append(lowering.block.local(t.dtype, name="c"))
            elif isinstance(t, Tape | List):
                self.places.append(lowering.block.local("int64", name="tape"))
            elif isinstance(t, Array):
                self.places.append(lowering.new_view(t))
            elif isinstance(t, NoneT | Undefined | Ref):
                self.places.append(None)
            else:
                raise LoweringError(f"the native executor cannot carry a value of type {t} through control flow")

    def store(self, values: list[Any]) -> None:
        """Write new values, all at once: none of them may depend on a cell that is written before it is read."""
        block = self.lowering.block
        scalars = []
        for k, (t, place, value) in enumerate(zip(self.types, self.places, values, strict=True)):
            if is_scalar(t) or isinstance(t, Tape | List):
                # Through a temporary: the value may be a load of another cell.
                scalars.append((place, block.let(value)))
            elif isinstance(t, Ref):
                self.places[k] = value
        for place, value in scalars:
            block.store(place, value, 0)

    def values(self) -> list[Any]:
        """The values in the cells, as of now."""
        out = []
        for t, place in zip(self.types, self.places, strict=True):
            out.append(self.lowering.block.let(load(place, 0)) if is_scalar(t) or isinstance(t, Tape | List) else place)
        return out


def same_place(a: Any, b: Any) -> bool:
    """Whether two views are the same memory."""
    return a is b or (
        isinstance(a, View)
        and isinstance(b, View)
        and a.storage is b.storage
        and a.offset is b.offset
        and a.pointer is b.pointer
    )


def settle(lowering: Any, places: list[Any], output: Node) -> list[Any]:
    """Put the arrays of a graph's result in their places, all at once; returns the values of all leaves.

    Places may be what other results still live in, or are computed from.
    """
    nodes = leaf_nodes(output, lowering.scope)
    moves: list[tuple[View, View]] = []
    values = flatten(lowering.value(output), output.type)
    for k, (place, value, node) in enumerate(zip(places, values, nodes, strict=True)):
        if not isinstance(place, View) or same_place(place, value):
            continue
        # Another result that still is this cell's old content must be moved out first.
        wanted = any(isinstance(v, View) and v.storage is place.storage for j, v in enumerate(values) if j != k)
        if wanted or node is None or nodes.count(node) > 1 or not lowering.retarget(node, place, keep=False):
            moves.append((value, place))
    lowering.flush_all()
    targets = [place.storage for _, place in moves]
    for k, (value, place) in enumerate(moves):
        if value.storage in targets and (value.storage is not place.storage or isinstance(value.offset, int)):
            # The value comes from a cell that another move overwrites, or overlaps its own target: it goes through a
            # temporary.
            spare = lowering.new_view(Array(value.dtype, value.shape))
            lowering.copy(value, spare)
            moves[k] = (spare, place)
    for value, place in moves:
        lowering.copy(value, place)
    return values


def _cond(lowering: Any, node: Apply) -> None:
    from .references import donate

    condition = lowering.scalar(node.args[0])
    operands = [lowering.value(a) for a in node.args[1:]]
    given = donate(lowering, node, donated(lowering.scope, node))[1:]
    lowering.flush_all()
    types = leaves(node.type)
    branches = (node.attrs["then"], node.attrs["orelse"])
    cells = Cells(lowering, types, _kept_places(lowering, node, branches, operands, given))
    fresh = [p if isinstance(p, View) and all(p is not o for o in operands) else None for p in cells.places]

    def branch(graph: Graph) -> None:
        lowering.run(graph, operands, fresh, lambda output: cells.store(settle(lowering, cells.places, output)), given)

    condition = lowering.b.let(condition)
    with lowering.block.when(condition):
        branch(branches[0])
    with lowering.block.otherwise():
        branch(branches[1])
    lowering.scope.env[node] = unflatten(cells.values(), node.type)


def _kept_places(
    lowering: Any, node: Apply, branches: tuple[Graph, ...], operands: list[Any], given
) -> dict[int, View]:
    """Results that live on in the memory of an operand: those that the branches made of it."""
    out: dict[int, View] = {}
    for graph in branches:
        nodes, types = leaf_nodes(graph.output, lowering.scope), leaves(graph.output.type)
        flat = isinstance(graph.output.type, Struct) and len(graph.output.type.elems) == len(types)
        for k, (leaf, t) in enumerate(zip(nodes, types, strict=True)):
            if k in out or not isinstance(t, Array) or is_scalar(t):
                continue
            if leaf is not None:
                param = source(graph, leaf)
            else:
                param = source_of_part(graph, k) if flat else None
            if param is None:
                continue
            at = graph.params.index(param)
            place = operands[at]
            if given[at] and all(place is not p for p in out.values()):
                out[k] = place
    return out


class _Loop:
    """What `while_loop` and `for_loop` share: carried cells, the body, the step."""

    def __init__(self, lowering: Any, node: Apply, args: tuple[Node, ...]):
        from .references import take_initial

        self.lowering, self.node = lowering, node
        carried = node.attrs["carried"]
        self.carry_types = [a.type for a in args[:carried]]
        values = [lowering.value(a) for a in args]
        take_initial(lowering, node, args[:carried])
        given = donated(lowering.scope, node)[len(node.args) - len(args) :]
        lowering.flush_all()
        self.constants = values[carried:]
        initial = [leaf for v, t in zip(values[:carried], self.carry_types) for leaf in flatten(v, t)]
        yours = [g for g, t in zip(given, self.carry_types) for _ in leaves(t)]
        taken = {
            k: v
            for k, (v, g) in enumerate(zip(initial, yours))
            if g and isinstance(v, View) and isinstance(v.offset, int)
        }
        if len(initial) == carried:
            wanted = ((k, lowering.scope.loop_dest.get((node, k))) for k in range(carried))
            taken = {**{k: view for k, view in wanted if view is not None}, **taken}
        self.cells = Cells(lowering, [leaf for t in self.carry_types for leaf in leaves(t)], _distinct(taken))
        self.cells.store(initial)
        for place, value in zip(self.cells.places, initial):
            if isinstance(place, View) and place is not value:
                lowering.copy(value, place)
        self.body: Graph = node.attrs["body"]
        self.begin = lowering.plan.clock + 1

    def carry(self) -> list[Any]:
        """The carried values as they are now, one for each carried argument."""
        values = self.cells.values()
        return [unflatten(values, t) for t in self.carry_types]

    def step(self, head: list[Any]) -> None:
        """One iteration: run the body and put the new carried values in place."""
        given = [False] * len(head) + [True] * len(self.carry_types)
        top = data.mark(self.lowering, self.body, self.body.output.type)
        self.lowering.run(self.body, [*head, *self.carry(), *self.constants], None, self.write_back, given)
        data.release(self.lowering, top)

    def write_back(self, output: Node) -> None:
        """Put the body's results in the carried cells; see the module's docstring."""
        self.cells.store(settle(self.lowering, self.cells.places, output))

    def finish(self) -> None:
        """After the loop: its value."""
        lowering = self.lowering
        lowering.plan.tick()
        for place in self.cells.places:
            if isinstance(place, View):
                lowering.plan.touch(place.storage)
        lowering.plan.loops.append((self.begin, lowering.plan.clock))
        lowering.scope.env[self.node] = tuple(self.carry())


def _distinct(taken: dict[int, View]) -> dict[int, View]:
    """Of places in the same memory only the first."""
    storages: set[Any] = set()
    out = {}
    for k, view in taken.items():
        if view.storage not in storages:
            out[k] = view
        storages.add(view.storage)
    return out


def _while_loop(lowering: Any, node: Apply) -> None:
    loop = _Loop(lowering, node, node.args)

    def condition() -> Any:
        top = data.mark(lowering, node.attrs["cond"], node.attrs["cond"].output.type)
        value = tirx.Cast("int32", lowering.run(node.attrs["cond"], [*loop.carry(), *loop.constants]))
        return value, lambda: data.release(lowering, top)

    iterate_while(lowering, node, condition, lambda: loop.step([]))
    loop.finish()


def iterate_while(lowering: Any, node: Apply, condition: Callable[[], Any], step: Callable[[], None]) -> None:
    """Emit the iterations of a loop, which asks for signals now and then.

    Args:
        lowering: the walk.
        node: the loop.
        condition: emits the condition; returns it as an int32, and what is to be emitted when it has been stored.
        step: emits one iteration.
    """
    from .effects import Poll

    poll = Poll(lowering, node)
    # The code generator has no `break`: a flag is used, so that the condition's code exists only once.
    block = lowering.block
    flag = block.local("int32", name="go")
    yes, no = tirx.IntImm("int32", 1), tirx.IntImm("int32", 0)
    going = tirx.NE(load(flag, 0), no)

    def iterations() -> None:
        """Iteration until the condition fails, or the budget is used up."""
        block.store(flag, yes, 0)
        with block.while_(going):
            holds, after = condition()
            block.store(flag, holds, 0)
            after()
            with block.when(going):
                step()
                if poll.needed:
                    poll.spend()
                    with block.when(poll.due()):
                        block.store(more, yes, 0)
                        block.store(flag, no, 0)

    if not poll.needed:
        iterations()
    else:
        more = block.cell(yes, "more")
        with block.while_(tirx.NE(load(more, 0), no)):
            block.store(more, no, 0)
            iterations()
            poll.emit()


def _for_loop(lowering: Any, node: Apply) -> None:
    from .effects import Poll

    b, block = lowering.b, lowering.block
    start, stop, step = (b.let(lowering.scalar(a)) for a in node.args[:3])
    loop = _Loop(lowering, node, node.args[3:])
    sizes: list[Any] = [a.value if isinstance(a, Constant) else None for a in node.args[:3]]
    if None not in sizes:
        trips: Any = len(range(*sizes))
    else:
        trips = b.let(trip_count(lowering, start, stop, step, sizes[2]))
    most = trips if isinstance(trips, int) else _most_trips(lowering, node)
    poll = Poll(lowering, node, most)
    in_lanes = vector_loops.find(lowering, node, most)

    def iterations(first: Any, count: Any) -> None:
        if in_lanes is not None:
            values = [*loop.cells.places, *loop.constants]
            vector_loops.emit(lowering, in_lanes, values, loop.cells.places, start if first is None else first, count)
            return
        with block.loop(count) as i:
            far = i if sizes[2] == 1 else exact.wrapping_mul(i, step)
            index = far if first is None else exact.wrapping_add(first, far)
            around, lowering.turn = lowering.turn, i if index is i else b.let(index)
            loop.step([lowering.turn])
            lowering.turn = around

    if not poll.needed:
        iterations(None if sizes[0] == 0 else start, trips)
    else:
        done = block.cell(idx(0), "done")
        with block.while_(tirx.LT(load(done, 0), idx(trips))):
            rest = b.let(b.sub(idx(trips), load(done, 0)))
            count = b.let(b.minimum(rest, idx(poll.iterations)))
            iterations(b.let(b.add(start, b.mul(load(done, 0), step))), count)
            block.store(done, b.add(load(done, 0), count), 0)
            poll.spend(count)
            poll.emit()
    loop.finish()


def _most_trips(lowering: Any, node: Apply) -> int | None:
    """How often a loop runs at most, if its bounds have ranges and its step is known."""
    start, stop = (lowering.ranges.interval(a) for a in node.args[:2])
    step = node.args[2].value if isinstance(node.args[2], Constant) else 0
    if start is None or stop is None or step == 0:
        return None
    most = range(start[0], stop[1], step) if step > 0 else range(start[1], stop[0], step)
    return len(most) if abs(most.stop - most.start) < 1 << 62 else None


def trip_count(lowering: Any, start: Any, stop: Any, step: Any, known_step: int | None) -> Any:
    """`len(range(start, stop, step))`, wrapping where the distance does not fit into 64 bits."""
    b = lowering.b
    if known_step in (1, -1):
        first, last = (start, stop) if known_step == 1 else (stop, start)
        return b.where(b.gt(last, first), b.sub(last, first), idx(0))
    up = b.let(b.gt(step, idx(0)))
    distance = b.let(b.where(up, b.sub(stop, start), b.sub(start, stop)))
    size = b.let(b.where(up, step, b.neg(step)))
    iterations = b.add(b.floordiv(b.sub(distance, idx(1)), size), idx(1))
    return b.where(b.gt(distance, idx(0)), b.let(iterations), idx(0))


def tests_of(graph: Graph) -> set[Apply]:
    """Truth values that are used in one place, by a check, by a condition or by a part of one: they need no local."""
    found = {n for n in graph.nodes if getattr(n.fn, "name", "") in TESTS and is_scalar(n.type)}
    if not found:
        return found
    seen: set[Node] = set()
    for node in graph.nodes:
        name = getattr(node.fn, "name", "")
        for k, arg in enumerate(node.args):
            if arg in found and (arg in seen or not (name in LOGIC or (k == 0 and name in ("check", "cond")))):
                found.discard(arg)
            seen.add(arg)
    found.discard(graph.output)
    return found


RULES = {"cond": _cond, "while_loop": _while_loop, "for_loop": _for_loop}
