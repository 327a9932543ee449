"""Narrower interfaces of control operations: what branches and loops take, carry and return.

For `cond`, `while_loop` and `for_loop`, in one walk:

- constants among the operands move inside; an operand given twice is given once; structures are passed as their parts;
- operands that no graph reads are dropped;
- results that are never used are dropped; a result that is the same operand, or the same constant, on both branches is
  replaced by it; one that is a constant integer on each, such as the tag of a union, is selected by the condition;
- a carried value that the body returns unchanged becomes a loop constant; one that only feeds itself, perhaps through
  inner loops, is dropped (so a tape disappears from both loops when what is popped is never read); one that is always another
  one, converted, is that (options of a union that hold the same number);
- a loop that does not run is replaced by its initial values, one that runs once by its body.

Each replacement keeps the types outside: the old result is assembled again from parts, with `undef` for what was
dropped, and taking parts of it folds away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...abstract.types import Scalar, Struct, Type, tuple_of
from ...ir.build import Builder, as_type
from ...ir.node import Apply, Constant, Graph, Node, Parameter, applied
from ...ir.prim import REGISTRY, Primitive
from ...ir.rewrite import Effects, Rewriter, drop_dead, emit_like, lookup
from ..analysis.control import output_parts, read_parameters, taken_parts
from .rules import same_number

Path = tuple[int, ...]


def leaf_paths(t: Type) -> list[Path]:
    """Paths to the leaves of a structure, in order; the empty path for other values."""
    if not isinstance(t, Struct) or t.kind == "dataset":
        return [()]
    return [(i, *rest) for i, e in enumerate(t.elems) for rest in leaf_paths(e)]


def take(b: Builder, node: Node, path: Path) -> Node:
    """The part of a structure at a path."""
    for i in path:
        node = b.emit(REGISTRY["get_item"], (node,), {"index": i})
    return node


def assemble(b: Builder, t: Type, parts: Iterator[Node]) -> Node:
    """A value of a type from its leaves."""
    if not isinstance(t, Struct) or t.kind == "dataset":
        return next(parts)
    return b.emit(REGISTRY["make_struct"], tuple(assemble(b, e, parts) for e in t.elems), {"type": t})


def pack(b: Builder, parts: Sequence[Node]) -> Node:
    """A tuple."""
    return b.emit(REGISTRY["make_struct"], tuple(parts), {"type": tuple_of(*[p.type for p in parts])})


def undef(b: Builder, t: Type) -> Node:
    """A value that is never read."""
    return b.emit(REGISTRY["undef"], (), {"type": t})


class Inputs:
    """New operands of a control application, and the values of the old ones inside graphs.

    Args:
        b: builder of the enclosing graph.
        args: the old operands, in the order of the graphs' parameters.
        read: for each, whether any graph reads it.
    """

    def __init__(self, b: Builder, args: Sequence[Node], read: Sequence[bool], names: Sequence[str]):
        self.args: list[Node] = []
        self.names: list[str] = []
        self.makers: list[Callable[[Builder, list[Node]], Node]] = []
        self.changed = False
        place: dict[Node, int] = {}
        for arg, needed, name in zip(args, read, names, strict=True):
            if not needed:
                self.changed = True
                self.makers.append(lambda inner, params, t=arg.type: undef(inner, t))
            elif isinstance(arg, Constant):
                self.changed = True
                self.makers.append(lambda inner, params, arg=arg: arg)
            elif leaf_paths(arg.type) != [()]:
                self.changed = True
                slots = [self.slot(place, take(b, arg, path), name) for path in leaf_paths(arg.type)]
                self.makers.append(
                    lambda inner, params, slots=slots, t=arg.type: assemble(inner, t, iter([params[s] for s in slots]))
                )
            else:
                self.changed |= arg in place
                slot = self.slot(place, arg, name)
                self.makers.append(lambda inner, params, slot=slot: params[slot])

    def slot(self, place: dict[Node, int], node: Node, name: str) -> int:
        if node not in place:
            place[node] = len(self.args)
            self.args.append(node)
            self.names.append(name)
        return place[node]

    def enter(self, graph: Graph, inner: Builder, params: list[Node]) -> list[Node]:
        """The values of the old parameters inside of a new graph."""
        return [make(inner, params) for make in self.makers]


def new_graph(old: Graph) -> tuple[Graph, Builder]:
    """An empty graph with the name of an old one."""
    graph = Graph(old.name, None, old.origin)
    graph.flags = dict(old.flags)
    return graph, Builder(graph, old.origin)


def copy_into(inner: Builder, graph: Graph, values: Sequence[Node]) -> dict[Node, Node]:
    """Emit a graph's applications for given values of its parameters; returns the map from old nodes to new ones."""
    env: dict[Node, Node] = dict(zip(graph.params, values, strict=True))
    for node in graph.nodes:
        env[node] = emit_like(inner, node, tuple(lookup(env, a) for a in node.args))
    return env


@dataclass(frozen=True)
class ThinControl:
    """The pass."""

    name: str = "thin_control"

    def __call__(self, graph: Graph) -> Graph:
        return _Thin().rewrite(graph)


class _Thin(Rewriter):
    acts_on = ("cond", "for_loop", "while_loop")
    mark = ThinControl

    def __init__(self):
        super().__init__()
        self.effects = Effects()
        self.operands: dict[tuple[Apply, frozenset[int] | None], list[Node]] = {}
        self.used: list[dict[Node, set[int] | None]] = []

    def build(self, graph: Graph) -> Graph:
        self.used.append(taken_parts(graph))
        new, env = self.interface(graph)
        builder = Builder(new)
        for node in graph.nodes:
            args = tuple(lookup(env, a) for a in node.args)
            env[node] = self.node(builder, node, args, self.inner(node))
        new.output = lookup(env, graph.output)
        drop_dead(new, self.effects)
        self.used.pop()
        return new

    def node(self, builder: Builder, node: Apply, args: tuple[Node, ...], attrs: Mapping[str, Any]) -> Node:
        thin = THIN.get(node.fn.name) if isinstance(node.fn, Primitive) else None
        if thin is not None and not any(isinstance(g, Graph) and self.incomplete(g) for g in attrs.values()):
            builder.origin = node.origin
            found = thin(self, builder, node, args, attrs, self.used[-1].get(node, set()))
            if found is not None:
                self.changed = True
                return found
        return super().node(builder, node, args, attrs)


def thin_cond(p: _Thin, b: Builder, node: Apply, args, attrs, used: set[int] | None) -> Node | None:
    """A condition with fewer operands and results; None if nothing can be dropped."""
    branches = [attrs["then"], attrs["orelse"]]
    reads = [read_parameters(g) for g in branches]
    read = [any(g.params[i] in r for g, r in zip(branches, reads)) for i in range(len(args) - 1)]
    inputs = Inputs(b, args[1:], read, [x.name for x in branches[0].params])
    paths = leaf_paths(node.type)
    flat = paths == [(i,) for i in range(len(paths))] and node.type.kind == "tuple" and len(paths) > 1
    keep = [path for path in paths if used is None or path == () or path[0] in used]
    outer: dict[Path, Node] = {}
    if flat:  # parts are at hand: those that need no condition
        both = [o for g in branches if (o := output_parts(g)) is not None]
        if len(both) == len(branches):
            for path in keep:
                same = _same_on_both(branches, [o[path[0]] for o in both], args[1:])
                if same is None:
                    same = _selected(b, args[0], [o[path[0]] for o in both])
                if same is not None:
                    outer[path] = same
    keep = [path for path in keep if path not in outer]
    if not inputs.changed and (paths == [()] or flat) and len(keep) == len(paths):
        return None
    if keep or any(p.effects.of_graph(g) or not p.effects.graph_ends(g) for g in branches):
        new_branches = []
        for graph in branches:
            new, inner = new_graph(graph)
            params: list[Node] = [new.add_parameter(n, a.type) for n, a in zip(inputs.names, inputs.args)]
            env = copy_into(inner, graph, inputs.enter(graph, inner, params))
            outs = [take(inner, lookup(env, graph.output), path) for path in keep]
            new.output = outs[0] if len(outs) == 1 else pack(inner, outs)
            drop_dead(new, p.effects)
            new_branches.append(new)
        operands = (args[0], *inputs.args)
        result = b.emit(REGISTRY["cond"], operands, {"then": new_branches[0], "orelse": new_branches[1]})
        result.name = node.name
        if paths == [()]:
            return result
        for i, path in enumerate(keep):
            outer[path] = result if len(keep) == 1 else take(b, result, (i,))
    types = _leaf_types(node.type)
    return assemble(b, node.type, iter([outer[q] if q in outer else undef(b, t) for q, t in zip(paths, types)]))


def _leaf_types(t: Type) -> list[Type]:
    if not isinstance(t, Struct) or t.kind == "dataset":
        return [t]
    return [leaf for e in t.elems for leaf in _leaf_types(e)]


def _is_undef(node: Node) -> bool:
    return isinstance(node, Apply) and isinstance(node.fn, Primitive) and node.fn.name == "undef"


def _same_on_both(branches, outs: list[Node], operands) -> Node | None:
    """The value of a result that is the same on both branches, seen from outside: an operand or a constant."""
    seen = []
    for graph, out in zip(branches, outs):
        if isinstance(out, Parameter):
            seen.append(operands[graph.params.index(out)])
        elif isinstance(out, Constant):
            seen.append(out)
        elif not _is_undef(out):
            return None
    if len(seen) == 2 and seen[0] is not seen[1]:
        from .simplify import constant_key

        if not all(isinstance(s, Constant) for s in seen) or constant_key(seen[0]) != constant_key(seen[1]):
            return None
    return seen[0] if seen else None


def _selected(b: Builder, condition: Node, outs: list[Node]) -> Node | None:
    """A result that is a constant integer on each branch, without a branch; None for any other."""
    if not all(isinstance(o, Constant) and isinstance(o.type, Scalar) and o.type.dtype == "int64" for o in outs):
        return None
    return b.emit(REGISTRY["where"], (condition, *outs))


def thin_loop(p: _Thin, b: Builder, node: Apply, args, attrs, used: set[int] | None) -> Node | None:
    """A loop with fewer operands; None if nothing can be dropped."""
    counted = node.fn.name == "for_loop"
    lead, n = (3 if counted else 0), attrs["carried"]
    first = 1 if counted else 0
    body: Graph = attrs["body"]
    graphs = [body] if counted else [body, attrs["cond"]]
    bounds, init, constants = args[:lead], args[lead : lead + n], args[lead + n :]
    if counted and all(isinstance(x, Constant) for x in bounds):
        count = len(range(*[int(x.value) for x in bounds]))
        if count == 0:
            return assemble_flat(b, node.type, init)
        if count == 1:
            index = b.constant(as_type(int(bounds[0].value), body.params[0].type), body.params[0].type)
            env = copy_into(b, body, [index, *init, *constants])
            if (
                call := node.origin.call_around()
            ) is not None:  # the body is in the function that the loop was inlined from
                for inner in body.nodes:
                    new = env[inner]
                    if isinstance(new, Apply) and new.origin is inner.origin:
                        new.origin = inner.origin.inlined_at(call)
            return lookup(env, body.output)
    outs = output_parts(body)
    if any(leaf_paths(x.type) != [()] for x in init) or outs is None:
        return _flatten_carried(p, b, node, args, attrs)
    carried = body.params[first : first + n]
    fixed = [i for i in range(n) if outs[i] is carried[i]]
    if counted and used is not None:
        fixed += [
            i for i in range(n) if i not in used and i not in fixed and _own_rows(body, bounds, carried[i], outs[i])
        ]
    live = _live_carried(p, graphs, first, n, outs, used)
    twins = _twins(init, outs, live.difference(fixed))
    moving = [i for i in range(n) if i in live and i not in fixed and i not in twins]
    read = {i for g in graphs for i, x in enumerate(g.params) if x in read_parameters(g, but=body.output)}
    read |= {first + i for i in range(n) if any(outs[j] is carried[i] for j in range(n) if j != i)}
    read |= {i for i, x in enumerate(body.params[first + n :], first + n) if any(o is x for o in outs)}
    given = [*(init[i] for i in fixed), *constants]
    places = [*(first + i for i in fixed), *range(first + n, first + n + len(constants))]
    inputs = Inputs(b, given, [place in read for place in places], [body.params[place].name for place in places])
    if not inputs.changed and len(moving) == n:
        return None
    result: Node | None = None
    if moving or not p.effects.ends(node) or any(p.effects.of_graph(g) for g in graphs):
        new_graphs = []
        for graph in graphs:
            new, inner = new_graph(graph)
            values: dict[int, Node] = {}
            if counted:
                values[0] = new.add_parameter(graph.params[0].name, graph.params[0].type)
            for i in moving:
                param = graph.params[first + i]
                values[first + i] = new.add_parameter(param.name, param.type)
            params: list[Node] = [new.add_parameter(name, a.type) for name, a in zip(inputs.names, inputs.args)]
            values.update(zip(places, inputs.enter(graph, inner, params)))
            for i in range(n):
                if i in twins:
                    values[first + i] = _converted(inner, values[first + twins[i]], outs[i].type)
                elif first + i not in values:
                    values[first + i] = undef(inner, init[i].type)
            env = copy_into(inner, graph, [values[i] for i in range(len(graph.params))])
            if graph is body:
                new.output = pack(inner, [lookup(env, outs[i]) for i in moving])
            else:
                new.output = lookup(env, graph.output)
            drop_dead(new, p.effects)
            new_graphs.append(new)
        new_attrs: dict[str, Any] = {"body": new_graphs[0], "carried": len(moving)}
        if not counted:
            new_attrs["cond"] = new_graphs[1]
        result = b.emit(node.fn, (*bounds, *(init[i] for i in moving), *inputs.args), new_attrs)
        result.name = node.name
    parts: list[Node] = []
    for i in range(n):
        if result is not None and i in moving:
            parts.append(take(b, result, (moving.index(i),)))
        elif result is not None and i in twins:
            parts.append(_converted(b, take(b, result, (moving.index(twins[i]),)), outs[i].type))
        else:
            parts.append(init[i] if i in fixed else undef(b, init[i].type))
    return assemble_flat(b, node.type, parts)


def _twins(init: Sequence[Node], outs: Sequence[Node], live: set[int]) -> dict[int, int]:
    """Carried numbers that differ from other ones in whose they are only, Python's or NumPy's, with the others."""
    twins: dict[int, int] = {}
    first: dict[Node, int] = {}
    for i in sorted(i for i in live if isinstance(outs[i].type, Scalar)):
        j = first.setdefault(_number(outs[i]), i)
        if i != j and _is_same(_number(init[i]), _number(init[j])):
            twins[i] = j
    return twins


def _converted(b: Builder, node: Node, t: Scalar) -> Node:
    return b.emit(REGISTRY["cast"], (node,), {"dtype": t.dtype, "weak": t.weak})


def _number(node: Node) -> Node:
    """What a conversion between Python's and NumPy's numbers of one dtype converts."""
    while (
        isinstance(node, Apply)
        and applied(node) == "cast"
        and isinstance(node.type, Scalar)
        and isinstance(node.args[0].type, Scalar)
        and node.type.dtype == node.args[0].type.dtype
    ):
        node = node.args[0]
    return node


def _is_same(a: Node, b: Node) -> bool:
    if (
        isinstance(a, Constant)
        and isinstance(b, Constant)
        and isinstance(a.type, Scalar)
        and isinstance(b.type, Scalar)
    ):
        return a.type.dtype == b.type.dtype and same_number(a.value, b.value)
    return a is b


def _own_rows(body: Graph, bounds, param: Node, out: Node) -> bool:
    """Whether each iteration only reads and writes its own row of a carried array: what it writes is then never read.

    The adjoint of `x[i] = f(y[i])` leaves zeros in this way.
    """
    if not isinstance(out, Apply) or applied(out) != "dynamic_update" or out.args[0] is not param:
        return False
    if not all(isinstance(x, Constant) for x in bounds):
        return False
    iterations, size = range(*[int(x.value) for x in bounds]), param.type.shape[out.attrs["axis"]]
    if (
        not isinstance(size, int)
        or not iterations
        or min(iterations) < 0
        or max(iterations) >= size
        or out.args[2] is not body.params[0]
    ):
        return False
    if sum(a is out for node in body.nodes for a in node.args) != 1:
        return False
    readers = [node for node in body.nodes if param in node.args and node is not out]
    return param not in out.args[1:] and all(
        applied(node) == "dynamic_index" and node.args == (param, body.params[0]) and node.attrs == out.attrs
        for node in readers
    )


def assemble_flat(b: Builder, t: Struct, parts: Sequence[Node]) -> Node:
    """A tuple of given parts."""
    return b.emit(REGISTRY["make_struct"], tuple(parts), {"type": t})


def _live_carried(p: _Thin, graphs: list[Graph], first: int, n: int, outs, used) -> set[int]:
    """Carried values that something needs: the result, the condition, an effect, another one's next iteration."""
    live = set(range(n)) if used is None else {i for i in used if i < n}
    if len(graphs) == 2:
        condition = graphs[1]
        live |= {i for i in _needed_parameters(p, condition, [condition.output]) if i < n}
    while True:
        needed = _needed_parameters(p, graphs[0], [outs[i] for i in live])
        new = live | {i - first for i in needed if first <= i < first + n}
        if new == live:
            return live
        live = new


def _needed_parameters(p: _Thin, graph: Graph, roots: Sequence[Node]) -> set[int]:
    """Indices of the parameters that some results, and the effects, of a graph depend on."""
    needed: dict[Node, frozenset[int] | None] = dict.fromkeys(roots)  # which parts; None: as a whole
    for node in reversed(graph.nodes):
        if node not in needed and not p.effects.stays(node):
            continue
        name = applied(node)
        if name == "get_item":
            known = needed.get(node.args[0], frozenset())
            needed[node.args[0]] = None if known is None else known | {node.attrs["index"]}
        elif name in ("for_loop", "while_loop"):
            needed.update(dict.fromkeys(_needed_operands(p, node, needed.get(node, frozenset()))))
        else:
            needed.update(dict.fromkeys(node.args))
    return {i for i, x in enumerate(graph.params) if x in needed}


def _needed_operands(p: _Thin, node: Apply, parts: frozenset[int] | None) -> list[Node]:
    """The operands of a loop that some parts of its result, and its effects, depend on."""
    key = (node, parts)
    if key not in p.operands:
        counted = node.fn.name == "for_loop"
        lead, n, first = (3 if counted else 0), node.attrs["carried"], (1 if counted else 0)
        graphs = [node.attrs["body"]] if counted else [node.attrs["body"], node.attrs["cond"]]
        outs = output_parts(graphs[0])
        if outs is None:
            p.operands[key] = list(node.args)
        else:
            live = _live_carried(p, graphs, first, n, outs, parts)
            read = _needed_parameters(p, graphs[0], [outs[i] for i in live])
            if not counted:
                read |= _needed_parameters(p, graphs[1], [graphs[1].output])
            wanted = {*range(lead), *(lead + i for i in live), *(lead - first + i for i in read if i >= first + n)}
            p.operands[key] = [a for i, a in enumerate(node.args) if i in wanted]
    return p.operands[key]


def _flatten_carried(p: _Thin, b: Builder, node: Apply, args, attrs) -> Node | None:
    """The same loop with structures among the carried values carried as their parts."""
    counted = node.fn.name == "for_loop"
    lead, n, first = (3 if counted else 0), attrs["carried"], (1 if counted else 0)
    init = args[lead : lead + n]
    paths = [(i, path) for i, x in enumerate(init) for path in leaf_paths(x.type)]
    leaves = [take(b, init[i], path) for i, path in paths]
    new_attrs: dict[str, Any] = {"carried": len(leaves)}
    for key in ("body",) if counted else ("body", "cond"):
        graph: Graph = attrs[key]
        new, inner = new_graph(graph)
        index = [new.add_parameter(graph.params[0].name, graph.params[0].type)] if counted else []
        parts = [new.add_parameter(graph.params[first + i].name, x.type) for (i, _), x in zip(paths, leaves)]
        rest = [new.add_parameter(q.name, q.type) for q in graph.params[first + n :]]
        source = iter(parts)
        carried = [assemble(inner, x.type, source) for x in init]
        env = copy_into(inner, graph, [*index, *carried, *rest])
        out = lookup(env, graph.output)
        new.output = pack(inner, [take(inner, out, (i, *path)) for i, path in paths]) if key == "body" else out
        drop_dead(new, p.effects)
        new_attrs[key] = new
    result = b.emit(node.fn, (*args[:lead], *leaves, *args[lead + n :]), new_attrs)
    result.name = node.name
    source = iter([take(b, result, (i,)) for i in range(len(leaves))])
    return assemble(b, node.type, source)


THIN = {"cond": thin_cond, "while_loop": thin_loop, "for_loop": thin_loop}
