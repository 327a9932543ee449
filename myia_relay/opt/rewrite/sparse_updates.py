"""A step of descent changes only the rows of a table that its gradient has.

    g = 0; g[i] += a; g[j] += b; w - rate * g
    =>  g[i] += a; g[j] += b; touched = [i, j]; for k in touched: w[k] -= rate * g[k]; g[k] = 0

The gradient by a table of which a program reads some rows is an array of zeros to which rows are added, through branches,
loops and recursive calls. What is added to is noted in a list that goes the same way, and the update reads only these
rows. A row that is there twice is zero the second time. Afterwards the gradient is zero again everywhere: in a loop one
array serves all iterations, and what an iteration costs does not depend on the size of the table.

What is not read of the table stays as it is to the bit, as it would where zero times the rate is subtracted. That holds
for a finite positive rate; otherwise, and where the list is long, the whole table is updated.

Only an update that uses the gradient for nothing else can do so: not one with momentum, a norm, or weight decay.

Source: sparse gradients of embeddings, as deep-learning libraries offer them under an option.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...abstract.dims import is_known
from ...abstract.types import INT, Array, List, Scalar, Struct, Type, tuple_of
from ...ir.build import Builder, as_type
from ...ir.node import Apply, Graph, Node, Parameter, applied, applies
from ...ir.prim import REGISTRY
from ...ir.rewrite import Env, all_graphs, emit_like, lookup, map_graphs, running, same_interface
from ...prims.ops import list_functions
from ...prims.ops.control import LEAD
from ...prims.ops.data_functions import zero
from ...prims.rules.broadcast import cast
from ..analysis.control import output_parts, read_parameters
from .recursive_sums import Uses
from .rules import filled

LEAST_ROWS = 64  # of a table; of a smaller one, all are updated
TOUCHED = List(INT)


@dataclass(frozen=True)
class SparseUpdates:
    """The pass, for programs without transforms."""

    name: str = "sparse_updates"

    def __call__(self, graph: Graph) -> Graph:
        found = _RowPaths(graph)
        return _RowNoting(found).graph(graph) if found.updates else graph


class RowStep(NamedTuple):
    """An application that adds to rows of an array: itself, or by what it runs.

    Attributes:
        node: the application.
        part: of its result, where it runs something; None for an addition.
    """

    node: Apply
    part: int | None


@dataclass(frozen=True, eq=False)
class RowUpdate:
    """`w - rate * g`, where g is zero but for rows that are added to.

    Attributes:
        node: the subtraction.
        product: its second operand.
        rate, gradient: the factors.
        steps: what makes the gradient.
        start: the zeros that it begins with.
    """

    node: Apply
    product: Apply
    rate: Node
    gradient: Node
    steps: list[RowStep]
    start: Node


class _RowPaths:
    """How arrays are made by adding to rows of others.

    Attributes:
        updates: graph -> those in it.
        noted: graph -> the parts of its result of which it notes the rows, each with the parameter that it adds to.
        affected: the graphs that change.
    """

    def __init__(self, graph: Graph):
        self.graphs = all_graphs(graph)
        self.memo: dict[Graph, Uses] = {}
        self.parameters: dict[tuple[Graph, int], int | None] = {}
        self.updates: dict[Graph, list[RowUpdate]] = {}
        self.noted: dict[Graph, dict[int, int]] = {}
        for g in self.graphs:
            for node in g.nodes:
                update = self.update(g, node) if applied(node) == "sub" else None
                if update is not None:
                    self.updates.setdefault(g, []).append(update)
                    self.note(update.steps)
        if not all(self.agree(n) for g in self.graphs for n in g.nodes if applied(n) == "cond"):
            self.updates = {}
        self.affected = running(self.graphs, {*self.updates, *self.noted})

    def agree(self, node: Apply) -> bool:
        """Whether both branches note the same; one of them may be a branch elsewhere too."""
        then, orelse = (self.noted.get(node.attrs[key], {}) for key in ("then", "orelse"))
        return then == orelse

    def uses(self, graph: Graph) -> Uses:
        if graph not in self.memo:
            self.memo[graph] = Uses(graph)
        return self.memo[graph]

    def update(self, graph: Graph, node: Apply) -> RowUpdate | None:
        """The update that a subtraction is, if it is one."""
        table, product = node.args
        t, count = node.type, self.uses(graph).count
        if not (isinstance(t, Array) and t.is_float and len(t.shape) > 1 and is_known(t.shape) and table.type == t):
            return None
        if applied(table) == "ref_read":  # a model's own array is changed in one pass by what writes it
            return None
        if t.shape[0] < LEAST_ROWS or not applies(product, "mul") or product.type != t or count[product] != 1:
            return None
        for rate, gradient in (product.args, product.args[::-1]):
            if isinstance(rate.type, Scalar) and rate.type.is_float and gradient.type == t:
                steps, start = self.path(graph, gradient)
                if steps and filled(start) == 0:
                    return RowUpdate(node, product, rate, gradient, steps, start)
        return None

    def path(self, graph: Graph, node: Node) -> tuple[list[RowStep], Node]:
        """What adds to rows on the way to a value that is used once, last first, and the value that is added to."""
        uses, steps = self.uses(graph), []
        while isinstance(node, Apply) and uses.count.get(node) == 1:
            if applied(node) == "index_add" and node.attrs["axis"] == 0:
                steps.append(RowStep(node, None))
                node = node.args[0]
                continue
            run, part = (node.args[0], node.attrs["index"]) if applied(node) == "get_item" else (None, 0)
            at = self.operand(graph, run, part) if isinstance(run, Apply) else None
            if at is None:
                break
            assert isinstance(run, Apply)
            steps.append(RowStep(run, part))
            node = run.args[at]
        return steps, node

    def operand(self, graph: Graph, run: Apply, part: int, whole: bool = False) -> int | None:
        """The operand of what runs graphs to whose rows a part of its result is added."""
        if not self.uses(graph).alone(run, part, whole):
            return None
        if isinstance(run.fn, Graph):
            return self.parameter(run.fn, part)
        if applied(run) == "cond":
            then, orelse = (self.parameter(run.attrs[key], part) for key in ("then", "orelse"))
            return None if then is None or then != orelse else 1 + then
        if applied(run) in LEAD:
            lead, first = LEAD[run.fn.name], int(applied(run) == "for_loop")
            condition: Graph | None = run.attrs.get("cond")
            if condition is not None and condition.params[part] in read_parameters(condition):
                return None
            return lead + part if self.parameter(run.attrs["body"], part) == first + part else None
        return None

    def parameter(self, graph: Graph, part: int) -> int | None:
        """The parameter of a graph to whose rows a part of its result is added; the least that fits, assumed for calls
        within."""
        key = (graph, part)
        if key not in self.parameters:
            t = graph.output.type.elems[part] if isinstance(graph.output.type, Struct) else None
            count = self.uses(graph).count
            for k, p in enumerate(graph.params):
                if p.type != t or count.get(p) != 1:
                    continue
                known = dict(self.parameters)
                self.parameters[key] = k
                if self.steps(graph, part)[1] is p:
                    break
                self.parameters = known  # and what was found by the assumption
            self.parameters.setdefault(key, None)
        return self.parameters[key]

    def steps(self, graph: Graph, part: int) -> tuple[list[RowStep], Node | None]:
        """As `path`, for a part of the result of a graph."""
        outs, output = output_parts(graph), graph.output
        if outs is not None:
            return self.path(graph, outs[part])
        at = self.operand(graph, output, part, whole=True) if isinstance(output, Apply) else None
        if at is None:
            return [], None
        more, start = self.path(graph, output.args[at])
        return [RowStep(output, part), *more], start

    def note(self, steps: Iterable[RowStep]) -> None:
        """Have everything that is run note the rows that it adds to."""
        stack = list(steps)
        while stack:
            node, part = stack.pop()
            if part is None:
                continue
            keys = ("body",) if "body" in node.attrs else ("then", "orelse")
            for g in [node.fn] if isinstance(node.fn, Graph) else [node.attrs[key] for key in keys]:
                found = self.parameter(g, part)
                if found is not None and part not in self.noted.setdefault(g, {}):
                    self.noted[g][part] = found
                    stack += self.steps(g, part)[0]


@dataclass(eq=False)
class _RowNotes:
    """The rows that are noted while a graph is rebuilt.

    Attributes:
        steps: what adds to them.
        rows: a list so far; None where nothing has been added yet.
    """

    steps: list[RowStep]
    rows: Node | None = None

    def so_far(self, b: Builder) -> Node:
        """The list."""
        if self.rows is None:
            self.rows = list_functions.new(b, INT)
        return self.rows


@dataclass(frozen=True)
class _NotingGraph:
    """A graph that has changed.

    Attributes:
        graph: the new one; the lists of rows are its last parameters and results (in loops the last of what is carried), and
            before them in loops arrays of zeros.
        parts: the parts of its result for which it has such a list.
        zeros: the types of the arrays that it takes and returns as zeros.
    """

    graph: Graph
    parts: tuple[int, ...]
    zeros: tuple[Array, ...] = ()


@dataclass
class _RowNoting:
    """The program with lists of the rows that are added to."""

    found: _RowPaths
    done: dict[Graph, _NotingGraph] = field(default_factory=dict)

    def graph(self, old: Graph) -> Graph:
        """A graph, as it is or rebuilt."""
        return self.rebuilt(old).graph

    def rebuilt(self, old: Graph, carried: int | None = None, first: int = 0) -> _NotingGraph:
        """A graph rebuilt; with `carried` the body of a loop that carries so many values, behind `first` other parameters."""
        if old not in self.found.affected:
            return _NotingGraph(old, ())
        if old not in self.done:
            parts = tuple(sorted(self.found.noted.get(old, ())))
            updates = self.found.updates.get(old, [])
            zeros = tuple(u.node.type for u in updates) if carried is not None else ()
            new, env = same_interface(old)
            starts = [new.add_parameter(f"zeros{k}", t) for k, t in enumerate(zeros)]
            lists = [new.add_parameter(f"rows{k}", TOUCHED) for k in parts]
            if carried is not None:  # what is carried comes before the constants
                n, own = first + carried, len(old.params)
                new.params = [*new.params[:n], *new.params[own:], *new.params[n:own]]
            self.done[old] = _NotingGraph(new, parts, zeros)
            t = old.output.type
            new.output = Node(tuple_of(*t.elems, *zeros, *(TOUCHED for _ in parts)) if parts or zeros else t)
            self.build(old, new, env, dict(zip(parts, lists, strict=True)), updates, starts)
        return self.done[old]

    def build(
        self,
        old: Graph,
        new: Graph,
        env: Env,
        lists: Mapping[int, Parameter],
        updates: Sequence[RowUpdate],
        starts: Sequence[Parameter],
    ) -> None:
        b = Builder(new)
        notes = {k: _RowNotes(self.found.steps(old, k)[0], node) for k, node in lists.items()}
        found = {u.node: (u, _RowNotes(u.steps)) for u in updates}
        zeros = {u.start: start for u, start in zip(updates, starts)}
        ends: dict[Node, Node] = {}
        events: dict[Node, list[tuple[_RowNotes, RowStep]]] = {}
        for note in (*notes.values(), *(note for _, note in found.values())):
            for step in note.steps:
                events.setdefault(step.node, []).append((note, step))
        begins = {u.steps[-1].node: u.start for u in updates} if starts else {}
        outs = output_parts(old) if lists or starts else None
        products = {u.product for u in updates}
        for node in old.nodes:
            if node in products or (outs is not None and node is old.output):
                continue
            if node in found:
                update, note = found[node]
                b.origin = node.origin
                table, gradient, rate = (lookup(env, x) for x in (node.args[0], update.gradient, update.rate))
                env[node], ends[node] = _emit_update(b, update, table, gradient, rate, note.so_far(b))
                continue
            begin = begins.get(node)
            args = tuple(zeros[a] if a is begin else lookup(env, a) for a in node.args)
            if node in events and events[node][0][1].part is None:
                env[node] = emit_like(b, node, args)
                for note, _ in events[node]:
                    row = cast(b.var(args[2]), dtype="int64", weak=True).node
                    note.rows = list_functions.emit(b, "list_push", note.so_far(b), row)
            else:
                given = {step.part: note for note, step in events.get(node, ())}
                env[node] = self.application(b, node, args, given)
        if not lists and not starts:
            new.output = lookup(env, old.output)
            return
        if outs is None:
            whole, n = lookup(env, old.output), len(old.output.type.elems)
            values = [b.emit(REGISTRY["get_item"], (whole,), {"index": i}) for i in range(n)]
        else:
            values = [lookup(env, out) for out in outs]
        values += [*(ends[u.node] for u in (updates if starts else ())), *(notes[k].so_far(b) for k in lists)]
        new.output = b.emit(REGISTRY["make_struct"], values, {"type": tuple_of(*(v.type for v in values))})

    def application(
        self, b: Builder, node: Apply, args: tuple[Node, ...], given: Mapping[int | None, _RowNotes]
    ) -> Node:
        """An application that runs graphs, or any other; `given`: the notes of parts of its result."""
        name = applied(node)
        b.origin = node.origin
        if isinstance(node.fn, Graph):
            made = self.rebuilt(node.fn)
            lists = [self.start(b, given.get(k)) for k in made.parts]
            new = b.graph.apply(
                made.graph, *args, *lists, type=_longer(node, len(lists)), attrs=node.attrs, origin=node.origin
            )
        elif name in LEAD:
            lead, first, n = LEAD[name], int(name == "for_loop"), node.attrs["carried"]
            made = self.rebuilt(node.attrs["body"], n, first)
            more = [*(zero(b, t) for t in made.zeros), *(self.start(b, given.get(k)) for k in made.parts)]
            attrs = {**node.attrs, "body": made.graph, "carried": n + len(more)}
            if "cond" in attrs:
                attrs["cond"] = _with_more(self.graph(attrs["cond"]), n, [m.type for m in more])
            inputs = (*args[: lead + n], *more, *args[lead + n :])
            t = tuple_of(*node.type.elems, *(m.type for m in more))
            new = b.emit(node.fn, inputs, attrs, t)
        elif name == "cond":
            made = self.rebuilt(node.attrs["then"])
            lists = [self.start(b, given.get(k)) for k in made.parts]
            attrs = {"then": made.graph, "orelse": self.graph(node.attrs["orelse"])}
            new = b.emit(node.fn, (*args, *lists), attrs, _longer(node, len(lists)))
        else:
            return emit_like(b, node, args, map_graphs(node.attrs, self.graph))
        for i, k in enumerate(made.parts):
            if k in given:
                index = len(new.type.elems) - len(made.parts) + i
                given[k].rows = b.emit(REGISTRY["get_item"], (new,), {"index": index})
        if isinstance(new, Apply):
            new.name = node.name
        return new

    def start(self, b: Builder, note: _RowNotes | None) -> Node:
        """The list with which an application goes on."""
        return list_functions.new(b, INT) if note is None else note.so_far(b)


def _longer(node: Apply, lists: int) -> Type:
    """The type of a result with lists at its end."""
    return tuple_of(*node.type.elems, *((TOUCHED,) * lists)) if lists else node.type


def _with_more(old: Graph, at: int, types: Sequence[Type]) -> Graph:
    """The condition of a loop that carries more values, at a place among its parameters; it does not read them."""
    if not types:
        return old
    new, env = same_interface(old)
    own = len(old.params)
    for t in types:
        new.add_parameter(f"more{len(new.params)}", t)
    new.params = [*new.params[:at], *new.params[own:], *new.params[at:own]]
    b = Builder(new)
    for node in old.nodes:
        env[node] = emit_like(b, node, tuple(lookup(env, a) for a in node.args))
    new.output = lookup(env, old.output)
    return new


def _emit_update(
    b: Builder, update: RowUpdate, table: Node, gradient: Node, rate: Node, rows: Node
) -> tuple[Node, Node]:
    """The table after the update, and the gradient with zeros in place of the rows that it has."""
    n = update.node.type.shape[0]

    def scaled(inner: Builder, table: Node, gradient: Node, rate: Node) -> Node:
        factors = (rate, gradient) if update.product.args[0] is update.rate else (gradient, rate)
        return inner.emit(REGISTRY["sub"], (table, inner.emit(REGISTRY["mul"], factors)))

    def sparse(inner: Builder, table: Node, gradient: Node, rate: Node, rows: Node) -> list[Node]:
        body = Graph("rows", None, b.origin)
        index = body.add_parameter("k", INT)
        args = (table, gradient, rate, rows)
        params = [body.add_parameter(name, a.type) for name, a in zip(("table", "gradient", "rate", "rows"), args)]
        deep = Builder(body, b.origin)
        row = list_functions.emit(deep, "list_get", params[3], index)
        old, added = (deep.emit(REGISTRY["dynamic_index"], (x, row), {"axis": 0}) for x in params[:2])
        new = scaled(deep, old, added, params[2])
        values = (new, zero(deep, added.type))
        outs = [deep.emit(REGISTRY["dynamic_update"], (x, v, row), {"axis": 0}) for x, v in zip(params, values)]
        body.output = deep.emit(REGISTRY["make_struct"], outs, {"type": tuple_of(*(o.type for o in outs))})
        count, start, step = list_functions.length(inner, rows), inner.constant(0, INT), inner.constant(1, INT)
        loop = inner.emit(REGISTRY["for_loop"], (start, count, step, *args), {"body": body, "carried": 2})
        return [inner.emit(REGISTRY["get_item"], (loop,), {"index": i}) for i in range(2)]

    def dense(inner: Builder, table: Node, gradient: Node, rate: Node, rows: Node) -> list[Node]:
        return [scaled(inner, table, gradient, rate), zero(inner, gradient.type)]

    graphs = {}
    operands = (table, gradient, rate, rows)
    for key, make in (("then", sparse), ("orelse", dense)):
        graph = Graph(f"update.{key}", None, b.origin)
        params = [graph.add_parameter(name, a.type) for name, a in zip(("table", "gradient", "rate", "rows"), operands)]
        inner = Builder(graph, b.origin)
        outs = make(inner, *params)
        graph.output = inner.emit(REGISTRY["make_struct"], outs, {"type": tuple_of(*(o.type for o in outs))})
        graphs[key] = graph
    few = b.emit(REGISTRY["lt"], (list_functions.length(b, rows), b.constant(n // 2, INT)))
    for name, bound in (("gt", 0.0), ("lt", np.inf)):
        test = b.emit(REGISTRY[name], (rate, b.constant(as_type(bound, rate.type), rate.type)))
        few = b.emit(REGISTRY["logical_and"], (few, cast(b.var(test), dtype="bool", weak=True).node))
    both = b.emit(REGISTRY["cond"], (few, *operands), graphs)
    table, zeros = (b.emit(REGISTRY["get_item"], (both,), {"index": i}) for i in range(2))
    return table, zeros


__all__ = ["SparseUpdates"]
