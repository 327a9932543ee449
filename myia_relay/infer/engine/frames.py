"""Frames: typed graphs under construction, and how values reach them.

A *function frame* builds the typed graph of one specialisation. A *region frame* builds the closed graph of a branch or
of a loop body inside it: a value of the enclosing frame becomes a parameter at its first use (`imports`), and the
control node gets it as an operand. A *scope frame* emits into its parent's graph: it is one iteration of an unrolled
loop, with names of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, overload

from ...abstract.types import INT, Type, tuple_of
from ...ir.build import NO_CUTS, Builder, Cuts, Var
from ...ir.node import Apply, Constant, Graph, Node, Parameter
from ...ir.prim import REGISTRY
from ...ir.syntax import Handing
from ...ir.walk import free_variables
from ...prims.api.promotion import agreeing
from ...prims.ops.effects import raise_
from ...prims.ops.structure import get_item, make_struct
from ...utils.errors import InternalError, TypeError_
from ...utils.source import NOWHERE, Origin
from ..values.functions import FunctionFamilies
from ..values.sharing import mark_like
from ..values.sizes import unpack_array
from ..values.treedef import TreeDef, rebuild, tree_structure
from ..values.values import (
    NEVER,
    Bound,
    Cell,
    ClosureVal,
    Derived,
    Dyn,
    Iter,
    KnownRecord,
    Seq,
    TaggedUnion,
    UnboundVal,
    Val,
)
from .scheduler import Future


@dataclass(frozen=True)
class SpecialisationSource:
    """What a specialisation is made from.

    Attributes:
        identity: a parsed graph, or another hashable that tells functions apart.
        name: the name of the typed graph.
        names: names of the values it takes.
        origin: where it is written.
        extra: more of the identity (which variables are captured).
    """

    identity: Hashable
    name: str
    names: Sequence[str]
    origin: Origin
    extra: Hashable = ()


@dataclass(eq=False)
class Specialisation:
    """One typed graph per parsed graph and signature.

    Attributes:
        key: the memo key.
        source: the parsed graph, or what tells the function apart (see `SpecialisationSource`).
        graph: the typed graph; its parameters are the leaves of the arguments, then of the captured values, then implicits.
        result: treedef of the result, once known (perhaps provisionally, in a recursion).
        outcome: the treedef that its body turned out to have.
        known: completes when `result` is known; `finished` when the graph is complete.
        caller: the specialisation that first called this one, and `call_origin`, from where.
        implicit: values taken from the context (parameters, global arrays): key -> parameter.
        told: how many implicit values there were when the result was known.
        sites: its calls; those that were emitted before the graph was complete are given its implicit arguments later.
        context: the ambient facts it was specialised under (see `Ambient`).
        families: the families of functions of the compilation.
        changed: the caller's cells that it changes.
        made: how many cells were made for each variable here, and how many calls of models there are.
        escaped: cells made inside that the result holds; each call makes them anew.
        shared: the engine's set of arrays and lists that something else may see; see `infer.values.sharing`.
        hands_on: whether its result is, or holds, a list of known length that it was given.
        handing: which of its calls hand on what they are given.
        free: a memo of the free variables of parsed graphs, shared by all.
    """

    key: Hashable
    source: Hashable
    graph: Graph
    context: Ambient
    families: FunctionFamilies
    caller: Specialisation | None = None
    call_origin: Origin | None = None
    result: TreeDef | None = None
    outcome: TreeDef | None = None
    known: Future = field(default_factory=Future)
    finished: Future = field(default_factory=Future)
    implicit: dict[Hashable, Parameter] = field(default_factory=dict)
    told: int = 0
    sites: list[tuple[Frame, Apply]] = field(default_factory=list)
    changed: set[Cell] = field(default_factory=set)
    made: dict[Any, int] = field(default_factory=dict)
    escaped: list[Cell] = field(default_factory=list)
    shared: set[Node | Seq] = field(default_factory=set)
    hands_on: bool = False
    handing: Handing = field(default_factory=Handing)
    free: dict[Graph, list[Node]] = field(default_factory=dict)

    @property
    def returns(self) -> TreeDef:
        """The treedef of the result, of a specialisation of which it is known."""
        assert self.result is not None
        return self.result

    def complete_calls(self) -> None:
        """Give the calls that were emitted early their implicit arguments."""
        todo: list[Specialisation] = [self]
        while todo:
            spec = todo.pop()
            for frame, call in spec.sites:
                missing = list(spec.implicit.items())[len(call.args) - (len(spec.graph.params) - len(spec.implicit)) :]
                if missing:
                    count = len(frame.spec.implicit)
                    call.args += tuple(frame.implicit(key, p.type, p.name) for key, p in missing)
                    if len(frame.spec.implicit) > count:  # its own calls need it too, also if they were complete before
                        todo.append(frame.spec)

    def outermost(self) -> Specialisation:
        """The outermost specialisation of the same parsed graph in progress around this one, or this one."""
        found, spec = self, self.caller
        while spec is not None:
            found, spec = spec if spec.source is self.source else found, spec.caller
        return found

    def depth(self) -> int:
        """How many specialisations of the same parsed graph are in progress around this one."""
        count, spec = 0, self.caller
        while spec is not None:
            count += spec.source is self.source
            spec = spec.caller
        return count


@dataclass(frozen=True)
class Ambient:
    """Ambient facts that a specialisation depends on in addition to its arguments.

    Attributes:
        models: model functions that have parameters here: (function, specification) pairs.
        scope: the model function being run, or None outside of models.
        path: call sites from the model's root to here; names its parameters.
        training: whether layers train (see `model.layers`).
        iteration: the iterations of the loops around here, for layers with `unshared=True`; KEPT or None for a loop that is not
            unrolled, of known or of unknown length.
        cuts: the places of the slices that are cut off where they reach beyond an axis (`ir.build.Cuts`).
    """

    models: tuple[tuple[Any, Any], ...] = ()
    scope: Any = None
    path: tuple = ()
    training: bool = False
    iteration: tuple[int | None, ...] = ()
    cuts: Cuts = NO_CUTS

    def draws(self) -> bool:
        """Whether layers that train draw numbers here, others in each iteration of a loop."""
        return self.training and any(spec.draws for _, spec in self.models)


KEPT = -1
"""In place of the number of an iteration, where a loop of known length stays one."""


class Turn(NamedTuple):
    """A step of a call path that is another one in each iteration of the loops around: of a call with `unshared=True`.

    Attributes:
        place: of the call.
        iteration: see `Ambient.iteration`.
    """

    place: Any
    iteration: tuple[int | None, ...]


def shares(path: tuple, iteration: tuple[int | None, ...]) -> bool:
    """Whether what is called by a path is one for several iterations of the loops around."""
    own = max((len(step.iteration) for step in path if isinstance(step, Turn)), default=0)
    return len(iteration) > own


def parameter_key(spec: Any, name: str) -> Hashable:
    """The implicit key of an array of a model."""
    return ("parameter", spec, name)


TURN = ("turn",)
"""The implicit key of the number of a loop's iteration, where something draws numbers; None where there is no telling."""
TURNS = 1_000_003
"""By which the number of an outer iteration is multiplied."""


class Frame:
    """One typed graph under construction.

    Attributes:
        spec: the specialisation it belongs to.
        graph: the typed graph.
        parent: the enclosing frame of a region or scope.
        shares: whether it emits into its parent's graph (a scope).
        env: parsed node -> value.
        imports: node of the enclosing frame -> parameter here.
        providers: implicit key -> node, or what makes it when it is asked for, for what calls from here find in their context.
        cells: what is in the cells that this frame made, was given or has changed; see `infer.engine.cells`.
        before: what was in the cells of the enclosing frames when this one was opened: as the parent frame sees it.
        writes: whether changes of those come out of this frame.
        late: called when `imports` grows, once the application that gives them is emitted.
        copies: how often what is emitted here is written, as loops around it are unrolled.
    """

    def __init__(self, spec: Specialisation, graph: Graph, parent: Frame | None = None, context: Ambient | None = None):
        self.spec = spec
        self.graph = graph
        self.parent = parent
        self.shares = parent is not None and parent.graph is graph
        self.builder = parent.builder if parent is not None and self.shares else Builder(graph)
        self.builder.agree = agreeing
        self.context = context or (parent.context if parent else spec.context)
        self.builder.cuts = self.context.cuts
        self.env: dict[Node, Val] = {}
        self.imports: dict[Node, Parameter] = {}
        self.late: Callable[[], None] | None = None
        self.copies: int = parent.copies if parent is not None else 1
        self.providers: dict[Hashable, Any] = {}
        self.cells: dict[Cell, Val] = {}
        self.own: set[Cell] = set()
        self.writes = parent is None
        self.before = (
            {c: parent.cell(c) for c in parent.known_cells()} if parent is not None and not self.shares else {}
        )

    # Cells. A scope has none of its own: it changes those of the frame whose graph it emits into.

    def emitting(self) -> Frame:
        """The frame that owns the graph."""
        frame = self
        while frame.parent is not None and frame.shares:
            frame = frame.parent
        return frame

    def known_cells(self) -> list[Cell]:
        """The cells of this frame and of its enclosing frames."""
        frame = self.emitting()
        return list(dict.fromkeys((*frame.before, *frame.cells))) if frame.before or frame.cells else []

    def has_cell(self, cell: Cell) -> bool:
        frame = self.emitting()
        return cell in frame.cells or cell in frame.before

    def cell(self, cell: Cell) -> Val:
        """The present content of a cell."""
        frame = self.emitting()
        if cell in frame.cells:
            return frame.cells[cell]
        value = frame.before[cell]
        return value if isinstance(value, UnboundVal) else frame.bring(value)

    def new_cell(self, cell: Cell, content: Val) -> None:
        frame = self.emitting()
        frame.own.add(cell)
        frame.cells[cell] = content

    def may_set(self, cell: Cell) -> bool:
        """Whether a change of a cell is seen by what comes after this frame."""
        frame = self.emitting()
        return frame.writes or cell in frame.own

    def set_cell(self, cell: Cell, value: Val) -> None:
        frame = self
        while frame.parent is not None and frame.shares:
            value, frame = frame.leave(value), frame.parent
        if not self.has_cell(cell):
            frame.own.add(cell)
        frame.cells[cell] = value

    # Values of enclosing frames.

    def find(self, node: Node) -> Val | None:
        """The value of a parsed node, brought into this frame; None where no enclosing frame has it (yet)."""
        chain, frame = [], self
        while frame is not None and node not in frame.env:
            chain.append(frame)
            frame = frame.parent
        if frame is None:
            return None
        value = frame.env[node]
        for inner in reversed(chain):
            value = inner.env[node] = inner.bring(value)  # the next search is shorter
        return value

    @overload
    def bring(self, value: Dyn) -> Dyn: ...

    @overload
    def bring(self, value: Val) -> Val: ...

    def bring(self, value: Val) -> Val:
        """A value of the parent frame, usable here: its leaves become parameters."""
        if self.shares:
            return value
        if isinstance(value, KnownRecord):
            return KnownRecord(self.import_node(value.node), value.variants)
        if isinstance(value, Bound):
            return Bound(self.bring(value.receiver), value.function)  # a receiver keeps its known class
        nodes: list[Node] = []
        if isinstance(value, ClosureVal) and value.env is None:
            return value  # its free variables are looked up from here when it is called
        treedef = tree_structure(value, nodes, capture=self.resolve_from_parent)
        here = rebuild(treedef, iter([self.import_node(n) for n in nodes]))
        if isinstance(value, Iter) and isinstance(here, Iter):
            return replace(here, once=value.once)
        if isinstance(value, TaggedUnion) and isinstance(here, TaggedUnion):
            pairs = zip(here.options, value.options, strict=True)
            known = [replace(o, once=v.once) for o, v in pairs if isinstance(o, Iter) and isinstance(v, Iter)]
            if len(known) == len(value.options):
                return replace(here, options=tuple(known))
        if isinstance(value, Seq | TaggedUnion):
            mark_like(self.spec.shared, [value], [here])
        return here

    def resolve_from_parent(self, closure: ClosureVal) -> tuple[tuple[Node, Val], ...]:
        assert self.parent is not None
        return self.parent.captured(closure)

    def import_node(self, node: Node) -> Node:
        """The parameter that stands for a node of the parent frame."""
        if isinstance(node, Constant) or self.shares:
            return node
        if node not in self.imports:
            self.imports[node] = self.graph.add_parameter(
                node.name or f"v{len(self.graph.params)}", node.type, node.origin
            )
            if node in self.spec.shared:
                self.spec.shared.add(self.imports[node])
            if self.late is not None:
                self.late()
        return self.imports[node]

    def captured(self, closure: ClosureVal) -> tuple[tuple[Node, Val], ...]:
        """The free variables of a closure with their values, as seen from this frame.

        Raises:
            InternalError: the closure has left the frame that made it, and its captured values were not kept.
        """
        if closure.env is not None:
            return closure.env

        frame, chain = self, []
        while frame is not None and frame is not closure.frame:
            chain.append(frame)
            frame = frame.parent
        if frame is None:
            raise InternalError("infer", f"the closure {closure.graph.name} left its frame without its captured values")
        env = []
        for node in free_variables(closure.graph, self.spec.free):
            value = frame.find(node)
            if value is None:
                continue  # it is bound later; a call that needs it fails
            for inner in reversed(chain):
                value = inner.bring(value)
            env.append((node, value))
        return tuple(env)

    def rebuild(self, treedef: TreeDef, nodes: Iterator[Node]) -> Val:
        """The value with this treedef and these leaf nodes, which are at hand here."""
        return rebuild(treedef, nodes, lambda info, leaves: unpack_array(self.builder, info, leaves))

    # Implicit values.

    def implicit(self, key: Hashable, type: Type, name: str) -> Node:
        """A value that comes from the context: from an enclosing provider, else a parameter that is added to this
        function.

        Raises:
            TypeError_: it is the number of an iteration, and the loop has none.
        """
        if key in self.providers:
            found: Any = self.providers[key]
            if callable(found):
                found = self.providers[key] = found()
            if found is None:
                raise TypeError_(
                    "dropout in a loop of unknown length would draw the same in every iteration; write a `for` over a range, or "
                    "give it a key of its own: relay.dropout(x, rate, key=relay.random.fold_in(key, i))"
                )
            return found
        if self.parent is not None:
            return self.import_node(self.parent.implicit(key, type, name))
        if key not in self.spec.implicit:
            self.spec.implicit[key] = self.graph.add_parameter(name, type)
        return self.spec.implicit[key]

    # Emission.

    def at(self, origin: Origin) -> Builder:
        """The builder, set to a place in the source."""
        self.builder.origin = origin
        return self.builder

    def var(self, value: Dyn) -> Var:
        return Var(self.builder, value.node)

    def constant(self, value: Any, type: Type | None = None) -> Dyn:
        return Dyn(self.builder.constant(value, type))

    def region(self, name: str) -> Frame:
        """A frame for a closed graph inside of this one."""
        return Frame(self.spec, Graph(f"{self.graph.name}.{name}", origin=self.builder.origin or NOWHERE), self)

    def leave(self, value: Val) -> Val:
        """A value that leaves this scope: closures made here keep what they captured."""
        if isinstance(value, ClosureVal) and value.frame is self:
            return ClosureVal(value.graph, None, self.captured(value))
        if isinstance(value, Seq):
            if not value.holds_functions:
                return value
            out = Seq(value.kind, tuple(self.leave(e) for e in value.elems), value.fields, value.cls)
            if value in self.spec.shared:
                self.spec.shared.add(out)
            return out
        if isinstance(value, Derived):
            return Derived(value.transform, self.leave(value.function), value.options)
        if isinstance(value, Bound):
            return Bound(self.leave(value.receiver), value.function)
        return value

    def turn(self, position: int) -> Frame:
        """A scope for one iteration of an unrolled loop."""
        inner = self.scope()
        if self.context.draws():
            inner.providers[TURN] = lambda: inner.next_turn(inner.builder.constant(position))
        if self.context.scope is not None:
            inner.context = replace(self.context, iteration=(*self.context.iteration, position))
        return inner

    def next_turn(self, index: Node) -> Node:
        """A number for an iteration of a loop, of all iterations of the loops around it."""
        assert self.parent is not None
        outer = self.import_node(self.parent.implicit(TURN, INT, "turn"))
        scaled = self.builder.emit(REGISTRY["mul"], (outer, self.builder.constant(TURNS)))
        return self.builder.emit(REGISTRY["add"], (scaled, index))

    def scope(self) -> Frame:
        """A frame with names of its own that emits here."""
        return Frame(self.spec, self.graph, self)


def is_active(spec: Specialisation | None, graph: Graph) -> bool:
    """Whether a specialisation of this parsed graph is in progress around here."""
    while spec is not None:
        if spec.source is graph:
            return True
        spec = spec.caller
    return False


def located(origin: Origin, spec: Specialisation | None) -> Origin:
    """An origin with the calls that led to its function."""
    if spec is None or spec.call_origin is None or spec.call_origin.loc is None:
        return origin
    return Origin(origin.loc, origin.via, spec.call_origin)


def explode(frame: Frame, node: Node, treedef: TreeDef) -> Val:
    """A value from the packed result of a call or control node: a single leaf unpacked, several as a tuple."""
    leaves = list(treedef.leaves())
    if len(leaves) == 1:
        return frame.rebuild(treedef, iter([node]))

    return frame.rebuild(
        treedef, iter([frame.builder.emit(get_item, (node,), {"index": i}) for i in range(len(leaves))])
    )


def pack(frame: Frame, nodes: list[Node]) -> Node:
    """The node that returns leaves from a graph: a single leaf unpacked, several (or none) as a tuple."""
    if len(nodes) == 1:
        return nodes[0]

    return frame.builder.emit(make_struct, tuple(nodes), {"type": tuple_of(*[n.type for n in nodes])})


def packed_type(treedef: TreeDef) -> Type:
    """The type of what `pack` makes of a value with this treedef."""
    leaves = [leaf.info for leaf in treedef.leaves()]
    return leaves[0] if len(leaves) == 1 else tuple_of(*leaves)


def leaf_nodes(values: Iterator[Val], frame: Frame) -> list[Node]:
    """The leaf nodes of values, constants included."""
    out: list[Node] = []
    for value in values:
        tree_structure(value, out, keep_constants=False, capture=frame.captured)
    return out


@overload
def reach(origin: Frame, frame: Frame, value: Dyn) -> Dyn: ...


@overload
def reach(origin: Frame, frame: Frame, value: Val) -> Val: ...


def reach(origin: Frame, frame: Frame, value: Val) -> Val:
    """A value of `origin` as seen from a frame nested in it at any depth."""
    chain: list[Frame] = []
    while frame is not origin:
        chain.append(frame)
        assert frame.parent is not None
        frame = frame.parent
    for inner in reversed(chain):
        value = inner.bring(value)
    return value


def emit(frame: Frame, name: str, *values: Dyn) -> Dyn:
    """Apply a primitive by name."""
    return Dyn(frame.builder.emit(REGISTRY[name], tuple(v.node for v in values)))


def raising(frame: Frame, exception: type[Exception], message: str) -> Val:
    """Emit something that always raises when it is reached, as in Python."""
    frame.builder.emit(raise_, (), {"exception": exception, "parts": (message,), "type": tuple_of()})
    return NEVER
