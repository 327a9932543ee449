"""The inference engine: evaluates parsed graphs on abstract values and writes typed graphs as it goes.

`Engine.entry(fn, arguments)` is one compilation. Every function is specialised once per signature (parsed graph,
treedefs of its arguments and captured values, context); calls refer to the specialised graphs. What a Python operation
means for the types at hand is decided by tables: `infer.language.syntax` for the language's own constructs,
`infer.language.builtins` for Python's builtins, `prims.api.operators` and `prims.api.numpy_api` for numbers and arrays,
and `special` for whatever higher layers register. The engine is handed them as a `Language` (`infer.engine.protocol`).
"""

from __future__ import annotations

import operator
import types
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterator
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from ...abstract.families import family_of
from ...abstract.types import Array, Data, Type
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.syntax import UNBOUND, FreeName, Syntax
from ...prims.ops.data_functions import Functions
from ...utils.arrays import require_plain_array
from ...utils.errors import CompileError, InternalError, TypeError_
from ...utils.patience import look
from ...utils.source import NOWHERE, Origin
from ..values.functions import FunctionFamilies
from ..values.kinds import is_any_array, is_run_time
from ..values.protocols import is_named_tuple, starred
from ..values.sharing import Origins, arrays_of, hands_on
from ..values.treedef import TreeDef, tree_structure
from ..values.values import (
    NEVER,
    POISON,
    UNBOUND_VAL,
    Cell,
    ClosureVal,
    Dyn,
    Seq,
    Spread,
    Static,
    TaggedUnion,
    Val,
)
from . import cells as cell_rules
from . import handing
from .annotations import check_arguments, check_result
from .blow_ups import reasons
from .conflicts import refuse_call_in_place, refuse_in_place
from .conform import conform, entering, function_leaf, leaving, widened
from .dependencies import HIDDEN, WHOLE, Dependency, Hidden, code_of, content, refuse_nesting, type_of_hidden
from .drift import Ways
from .endings import require_ends
from .frames import Ambient, Frame, Specialisation, SpecialisationSource, explode, is_active, located, pack, packed_type
from .iterators import note_made, use_up
from .program import Outermost, Program, require_returnable
from .protocol import Language
from .record_classes import is_record_class, watch, watch_arguments
from .recursion import MAX_NESTING, MAX_PASSES, MAX_UNROLLED, RecursionAssumptions, another_way, raises
from .scheduler import Any_, Join, Loop, Task
from .several_errors import LARGEST, poisoned, with_others

# Operations that are evaluated at most where trees have their shapes in their types: shapes multiply in loops.
MOST_OF_SHAPES = 20_000
# `x += y` changes an array itself, where numbers and tuples are bound anew.
IN_PLACE = frozenset(
    getattr(operator, f"i{name}")
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift concat".split()
)


class Engine:
    """One compilation.

    Attributes:
        language: what constructs and calls mean.
        parse: `(function) -> Graph`, the front end.
        compress: `(linear graph, seeds, forward) -> Compression`; the type of a sparse Jacobian depends on it.
        dependencies: free names read so far.
        recursion: what is assumed of the results of recursive functions.
        structural: whether values of recursive dataclasses keep their structure in their types.
        uses_data: whether any value was of an algebraic data type.
        undecided: definitions of modules with type parameters that no argument decides (of what a list is that is always
            empty) -> whether these are `()` here. They stay open, for what the result meets, unless a recursion needs them.
    """

    def __init__(
        self,
        language: Language,
        parse: Callable[[types.FunctionType], Graph],
        compress: Callable,
        structural: bool = False,
    ):
        self.language, self.constructs = language, language.constructs
        self.parse, self.compress, self.structural, self.uses_data = parse, compress, structural, False
        self.functions, self.loop = Functions(), Loop(self.break_deadlock)
        self.specs: dict[Hashable, Specialisation] = {}
        self.joins: list[Join] = []
        self.dependencies: dict[tuple, Dependency] = {}
        self.hidden: dict[Hashable, Hidden] = {}
        self.late_errors: list[Exception] = []
        self.families = FunctionFamilies(function_leaf)
        self.recursion = RecursionAssumptions(self.families)
        # Functions that get a specialisation for each known number; never others.
        self.unrolled: set[Graph | None] = {None}
        self.applied, self.large_choices = 0, 0  # operations evaluated; choices at run time among large arrays
        self.ignored: set[Node] = set()  # places with errors that are reported already; see `several_errors`
        self.cells: dict[Hashable, Cell] = {}
        self.heaps: dict[type, Cell] = {}  # class of references -> what holds their contents; see `objects.references`
        self.with_cells = False  # whether the program has variables that inner functions assign to; see `cells`
        self.iterators = False  # whether the program has made any; see `infer.engine.iterators`
        self.tables: dict[Seq, np.ndarray | None] = {}  # long lists of known numbers as arrays; see `lists.of_table`
        self.undecided: dict[Graph, bool] = {}
        self.open_sizes = False  # whether the branches of a choice may give arrays of different known sizes
        self.static_lists = False  # whether long lists of known length stay static
        self.spelt_out = 1  # iterations of the loops around that are unrolled because they cannot stay loops
        self.unrolled_until: int | None = None  # how many operations may be evaluated before the outermost of them ends
        self.promotes: list[bool] = []  # not empty where that was asked for
        self.shared: set[Node | Seq] = set()  # arrays and lists that something else may see; see `infer.values.sharing`
        self.handed: list[
            handing.Handed
        ] = []  # calls that may return their arguments, until it is known whether they do
        self.kept: list[handing.AfterCall] = []  # arguments after calls that have changed them
        self.unreturning: set[Graph] = set()  # graphs that are taken not to return; see `infer.engine.endings`
        self.ways = Ways()
        self.written_out: Counter[Apply] = Counter()  # loops and how many of their iterations are written one by one
        self.leaves = 0  # of the arguments
        self.place: Origin | None = None  # somewhere near what is being inferred
        self.suspected: list[tuple] = []  # changes in place that may be seen; see `infer.engine.conflicts`
        self.prologue = 0  # nodes of the entry graph that make arguments of its parameters
        self.outermost = Outermost()  # the function that Python calls; see `infer.language.procedures`

    def reasons(self) -> list[str]:
        """What makes the program long to compile; see `utils.patience`."""
        return reasons(self.written_out, self.specs.values(), self.leaves, self.place, self.applied)

    # Entry.

    def entry(self, fn: Val, args: list[Val], kwargs: dict[str, Val], params: Graph, context: Ambient) -> Program:
        """Infer a call of `fn`.

        Args:
            fn: the function.
            args, kwargs: its arguments; the leaves are parameters of `params`.
            params: the entry graph under construction.
            context: ambient facts.

        Raises:
            CompileError: the call cannot be inferred, at the user's place.
            TypeError_: a function that it returns exists in compiled code only.
        """
        count = self.leaves = len(params.params)
        self.prologue = len(params.nodes)
        watch_arguments(self.depend, [*args, *kwargs.values()])

        def again() -> CompileError | None:
            self.start_over(params, count)
            return self.passes(fn, args, kwargs, params, context)[0]

        problem, spec, result, frame = self.passes(fn, args, kwargs, params, context)
        while problem is not None and another_way(self, problem):
            self.start_over(params, count)
            for _, scope in context.models:
                scope.start_over()
            problem, spec, result, frame = self.passes(fn, args, kwargs, params, context)
        if problem is not None:
            raise with_others(problem, self.ignored, again) if len(self.specs) <= LARGEST else problem
        for inner in self.specs.values():
            inner.complete_calls()
        nodes: list[Node] = []
        if self.with_cells:
            (result,) = cell_rules.frozen(frame, [result])
        treedef = tree_structure(result, nodes, keep_constants=False, capture=frame.captured)
        require_returnable(treedef)
        params.output = pack(frame, nodes)
        if result is NEVER:
            self.unreturning.add(params)
        require_ends(params, self.unreturning)
        if raises(params):
            self.outermost.changes += self.outermost.before_raising
        # The parameters of a model have none while its specification is being found.
        hidden = [self.hidden[key] for key in spec.implicit if key in self.hidden]
        changes = tuple(self.outermost.changes)
        arrays = self.outermost.arrays_given(params)
        return Program(params, treedef, hidden, list(self.dependencies.values()), changes, arrays)

    def passes(self, fn: Val, args: list[Val], kwargs: dict[str, Val], params: Graph, context: Ambient) -> tuple:
        """Infer a call until the assumptions about recursive functions hold: (the first error or None, its parts)."""
        count, rest = len(params.params), MAX_PASSES
        while rest:
            self.recursion.start_pass()
            spec = Specialisation(("entry",), params, params, context, self.families, shared=self.shared)
            frame = Frame(spec, params, None, context)
            problem, result = None, None
            try:
                result = self.loop.run(self.call(frame, fn, args, kwargs, NOWHERE))
            except Exception as error:  # where families have grown, what was made of them before is of no use
                if not isinstance(error, CompileError) and not self.families.grown:
                    raise
                problem = error
            revised, grown = self.recursion.revised(self.specs), self.families.grow()
            if not revised and not grown:
                break
            rest -= not grown
            if self.families.united:
                self.families.united = False
                self.recursion = RecursionAssumptions(self.families, self.recursion.widens)
            self.start_over(params, count)
        else:
            return self.recursion.growing(), spec, result, frame
        problem = self.recursion.endless() or problem
        late = (*self.late_errors, *self.recursion.lost(params), *self.seen_changes()) if problem is None else ()
        for error in late:
            if not isinstance(error, CompileError):
                raise error
            problem = error
            break
        return problem, spec, result, frame

    def start_over(self, params: Graph, count: int) -> None:
        """Forget everything but what earlier passes have found of recursive functions, and of hidden arguments."""
        del params.params[count:]
        del params.nodes[self.prologue :]
        self.loop = Loop(self.break_deadlock)
        self.specs, self.joins, self.late_errors, self.functions = {}, [], [], Functions()
        self.shared.clear()
        self.unreturning.clear()
        self.ways.found.clear()  # as what is assumed of recursive functions has changed
        self.suspected.clear()
        self.handed.clear()
        self.kept.clear()
        self.outermost.changes.clear()
        self.outermost.before_raising.clear()

    def seen_changes(self) -> Iterator[CompileError]:
        """The in-place changes that something else would see, now that it is known what the calls return."""
        origins = Origins()
        for call in self.handed if self.suspected else ():
            call.decide(self.shared, origins)
        handing.decide(self.kept if self.suspected else [])
        for spec, conflict, kind, error in self.suspected:
            if conflict.confirm(spec.handing, kind):
                yield error

    # Evaluation.

    def value(self, frame: Frame, node: Node) -> Val:
        """The value of an argument node.

        Raises:
            InternalError: it has not been inferred.
        """
        if isinstance(node, Constant):
            return self.constant(frame, node)
        found = frame.find(node)
        if found is None:
            raise InternalError("infer", f"no value for {node!r} in {frame.graph.name}")
        return found

    def constant(self, frame: Frame, node: Constant) -> Val:
        value = node.value
        if isinstance(value, Graph):
            return ClosureVal(value, frame)
        if isinstance(value, FreeName):
            return self.free_name(frame, value, node.origin)
        if value is UNBOUND:
            return UNBOUND_VAL
        return self.from_python(frame, value, None)

    def free_name(self, frame: Frame, free: FreeName, origin: Origin) -> Val:
        """The value of a global, builtin or closure cell of the user's module."""
        try:
            kind, place = free.place()
            value = free.read()
        except CompileError as error:
            raise error.at(origin) from None
        # A builtin: a global with its name would take precedence.
        if place is not free.function.__globals__ and kind == "dict":
            self.depend("absent", free.function.__globals__, free.name, True)
        return self.from_python(frame, value, self.depend(kind, place, free.name, value))

    def depend(self, kind: str, place: Any, name: str, value: Any) -> Dependency:
        """Record that the compiled program is valid only while this name has this value."""
        dependency = Dependency(kind, place, name, value, type_of_hidden(value))
        return self.dependencies.setdefault((kind, id(place), name), dependency)

    def source_of(self, function: types.FunctionType) -> Graph:
        """The parsed graph of a Python function; the result then depends on the function's code and defaults."""
        graph = self.parse(function)
        self.depend("code", function, "", code_of(function))
        return graph

    def from_python(self, frame: Frame, value: Any, dependency: Dependency | None) -> Val:
        """The abstract value of a Python object.

        Raises:
            TypeError_: an integer that does not fit into 64 bits; its `integer`.
        """
        if isinstance(value, bool | int | float):
            if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
                advice = "; write np.uint64(...) of it" if 0 <= value < 2**64 else ""
                problem: Any = TypeError_(f"the integer {value} does not fit into 64 bits{advice}")
                problem.integer = value
                raise problem
            return frame.constant(value)
        if isinstance(value, np.bool_ | np.number):
            return frame.constant(value)
        if isinstance(value, np.ndarray):
            require_plain_array(value)
            name = getattr(dependency, "name", "array")
            return self.hide(frame, Hidden(dependency, value), Array(value.dtype.name, value.shape), name)
        kind = type(value)  # instances may answer every attribute; classes have only what they define
        if kind in WHOLE:  # most free names
            return Static(value)
        if hasattr(kind, "__relay_value__"):
            return value.__relay_value__(self, frame)
        if hasattr(kind, "__relay_ref__"):
            return self.hide(
                frame, Hidden(dependency, value), value.__relay_ref__(), getattr(dependency, "name", "model")
            )
        family = family_of(kind) if not self.structural else None
        if family is not None:
            self.uses_data = True
            watch(self.depend, kind)
            return self.hide(frame, Hidden(dependency, value), Data(family), getattr(dependency, "name", "data"))
        held = content(value)
        refuse_nesting(value, dependency)
        if held is not None:
            self.depend("content", value, "", held)
        if hasattr(kind, "__relay_tree__"):
            form, fields, cls, parts = value.__relay_tree__(f"{getattr(dependency, 'name', 'data')}_n")
            return Seq(form, tuple(self.from_python(frame, part, None) for part, _ in parts), fields, cls)
        if is_record_class(kind) or is_record_class(value):
            watch(self.depend, kind if is_record_class(kind) else value)
        if is_named_tuple(value):
            return Seq("record", tuple(self.from_python(frame, v, None) for v in value), value._fields, kind)
        if isinstance(value, list | tuple):
            return Seq(
                "list" if isinstance(value, list) else "tuple", tuple(self.from_python(frame, v, None) for v in value)
            )
        if isinstance(value, dict) and all(isinstance(k, str) for k in value):
            return Seq("dict", tuple(self.from_python(frame, v, None) for v in value.values()), tuple(value))
        if hasattr(kind, "__dataclass_fields__"):
            fields = tuple(kind.__dataclass_fields__)
            return Seq("record", tuple(self.from_python(frame, getattr(value, f), None) for f in fields), fields, kind)
        return Static(value)

    def hide(self, frame: Frame, hidden: Hidden, type: Type, name: str) -> Dyn:
        """An implicit program argument."""
        d = hidden.dependency
        key = (HIDDEN, d.kind, id(d.place), d.name) if d else (HIDDEN, id(hidden.value))
        self.hidden.setdefault(key, hidden)
        return Dyn(frame.implicit(key, type, name))

    async def body(self, frame: Frame, graph: Graph) -> Val:
        """Evaluate the applications of a parsed graph in order, then its output."""
        for node in graph.nodes:
            value = await self.apply(frame, node)
            if value is NEVER:
                return NEVER
            frame.env[node] = value
        return self.value(frame, graph.output)

    async def apply(self, frame: Frame, node: Apply) -> Val:
        """Evaluate one application.

        Raises:
            CompileError: the application cannot be inferred, at the user's place.
            TypeError_: a program of its own for trees of these shapes grows too large.
        """
        frame.at(node.origin)
        self.applied += 1
        if not self.applied & 63:
            self.place = node.origin
            look(self.reasons)
        if self.structural and self.applied > MOST_OF_SHAPES:
            raise TypeError_(
                "trees of these very shapes take a program of their own, which grows too large; give fields one type"
            )
        if node in self.ignored or (self.ignored and poisoned(frame, node)):
            return POISON
        try:
            use_up(self, frame, node)
            if isinstance(node.fn, Constant) and isinstance(node.fn.value, Syntax):
                return note_made(self, node, await self.constructs[node.fn.value](self, frame, node))
            fn = self.value(frame, node.fn)
            try:
                args, kwargs = self.arguments(frame, node, isinstance(fn, Static) and fn.value is zip)
            except TypeError_ as error:
                large = getattr(error, "integer", -1)
                if isinstance(fn, Static) and fn.value is np.uint64 and len(node.args) == 1 and 0 <= large < 2**64:
                    return frame.constant(np.uint64(large))
                raise
            if isinstance(fn, Static) and isinstance(fn.value, BuiltinFunctionType) and fn.value in IN_PLACE:
                if not isinstance(node.fn, Constant) or node.fn.value is not fn.value:
                    refuse_call_in_place(fn.value.__name__, args)
                for option in args[0].options if isinstance(args[0], TaggedUnion) else args[:1]:
                    refuse_in_place(self, frame, node, option)
            result = await self.call(frame, fn, args, kwargs, node.origin, node)
            if isinstance(fn, Static) and isinstance(fn.value, BuiltinFunctionType) and fn.value in IN_PLACE:
                if is_any_array(args[0]):  # it is the same array as before, which is known to be changeable
                    self.shared.difference_update(arrays_of(result))
            frame.at(node.origin)
            handing.note_handing(self, frame, node, fn, handing.proper(result))
            return note_made(self, node, result)
        except CompileError as error:
            error.node = error.node or node
            raise error.at(located(node.origin, frame.spec)) from None

    def arguments(self, frame: Frame, node: Apply, transposes: bool = False) -> tuple[list[Val], dict[str, Val]]:
        """The evaluated arguments of a call, starred ones spread.

        Args:
            frame: where.
            node: the call.
            transposes: whether a run-time list that is the only argument, and starred, stays so.

        Raises:
            TypeError_: a keyword argument is given twice.
        """
        values = [self.value(frame, a) for a in node.args]
        count = len(values) - len(node.keywords)
        args: list[Val] = []
        named: list[tuple[str, Val]] = []
        for value in values[:count]:
            if isinstance(value, Spread):
                if value.double:
                    assert isinstance(value.value, Seq)
                    named.extend(zip(value.value.fields, value.value.elems, strict=True))
                elif transposes and count == 1 and is_run_time(value.value):
                    args.append(value)
                else:
                    args.extend(starred(value))
            else:
                args.append(value)
        named.extend(zip(node.keywords, values[count:], strict=True))
        kwargs = dict(named)
        if len(kwargs) < len(named):
            twice = next(name for k, (name, _) in enumerate(named) if any(name == other for other, _ in named[:k]))
            raise TypeError_(f"the call has two values for the keyword argument '{twice}'")
        return args, kwargs

    def call(
        self, frame: Frame, fn: Val, args: list[Val], kwargs: dict[str, Val], origin: Origin, site: Apply | None = None
    ) -> Coroutine[Any, Any, Val]:
        """Call a value."""
        return self.language.call(self, frame, fn, args, kwargs, origin, site)

    # Specialisation.

    async def call_graph(
        self,
        frame: Frame,
        graph: Graph,
        args: list[Val],
        env: tuple[tuple[Node, Val], ...],
        origin: Origin,
        context: Ambient,
        keep: bool | None = None,
    ) -> Val:
        """Emit a call of the specialisation of a parsed graph: `args` has a value for each parameter, `env` for each captured
        node, `context` is the callee's, and `keep` says whether known numbers stay known.

        Raises:
            TypeError_: the callee changes a variable that the caller cannot hand on.
        """  # noqa: DOC501 (a function makes the exception)
        captured = [value for _, value in env]
        cells = cell_rules.taken(self, frame, [*args, *captured]) if self.with_cells else []
        cell_rules.require_bound(frame, cells, f"where {graph.name} is called")
        given = len(args) + len(env)
        args = handing.as_kept(frame, graph, args)

        async def run(inner: Frame, values: list[Val]) -> Val:
            inner.env.update(zip(graph.params, values, strict=False))
            inner.env.update(zip([n for n, _ in env], values[len(args) : given], strict=True))
            inner.cells.update(zip(cells, values[given:], strict=True))
            self.shared.update(handing.lists_given(graph, values))
            check_arguments(inner, graph)
            result = await self.body(inner, graph)
            check_result(inner, graph, handing.proper(result))
            inner.spec.hands_on = hands_on(self.shared, result) or handing.hands_back(graph, result)
            if result is NEVER or not inner.cells:
                return result
            contents = [inner.cell(c) for c in cells]
            inner.spec.changed = {c for c, v in zip(cells, values[given:], strict=True) if inner.cells[c] is not v}
            inner.spec.escaped = [c for c in cell_rules.reachable(inner, [result, *contents]) if c not in cells]
            return cell_rules.with_contents(inner, result, [*cells, *inner.spec.escaped])

        names = [p.name for p in graph.params] + [n.name or "captured" for n, _ in env] + [c.name for c in cells]
        keep = (graph in self.unrolled or not is_active(frame.spec, graph)) if keep is None else keep
        source = SpecialisationSource(graph, graph.name, names, graph.origin, tuple(n for n, _ in env))
        contents = [frame.cell(c) for c in cells]
        keeps = (keep,) * given + (False,) * len(cells)
        spec, nodes = self.specialise(frame, source, [*args, *captured, *contents], run, origin, context, keeps)
        await spec.known
        result = self.emit_call(frame, spec, nodes, origin, fresh := {c: self.cell_of(frame, c) for c in spec.escaped})
        result, contents = handing.split(spec, result, bool(cells or fresh))
        if not contents:
            return result
        cell_rules.mark_stored(self, frame, args)
        for cell, value in zip([*cells, *fresh.values()], contents, strict=True):
            changed = spec.outcome is None or cell in spec.changed
            if changed and not frame.may_set(cell):
                raise cell_rules.unseen(cell.name)
            if changed or not frame.has_cell(cell):
                frame.set_cell(cell, value)
        return result

    def cell_of(self, frame: Frame, made: Cell | Apply) -> Cell:
        """A new cell for one of a callee's, or for a variable; the same in every pass, because keys hold cells."""
        count = frame.spec.made[made] = frame.spec.made.get(made, 0) + 1
        name = made.name if isinstance(made, Cell) else made.attrs["name"]
        return self.cells.setdefault((frame.spec.key, made, count), Cell(name))

    def emit_call(
        self,
        frame: Frame,
        spec: Specialisation,
        nodes: list[Node],
        origin: Origin,
        fresh: dict[Cell, Cell] | None = None,
    ) -> Val:
        """Emit the call of a specialisation whose result is known; `fresh` are new cells for those that it makes."""
        builder = frame.at(origin)
        operands = list(nodes) + [frame.implicit(key, p.type, p.name) for key, p in spec.implicit.items()]
        call = builder.graph.apply(spec.graph, *operands, type=packed_type(spec.returns), origin=origin)
        spec.sites.append((frame, call))
        if spec.returns.tag == "never":
            return NEVER
        result = explode(frame, call, cell_rules.refreshed(spec.returns, fresh) if fresh else spec.returns)
        made: list[Node] = []
        tree_structure(result, made, keep_constants=True, capture=frame.captured)
        handing.mark_call(self.shared, spec, result, made)
        return result

    def specialise(
        self,
        frame: Frame,
        source: SpecialisationSource,
        values: list[Val],
        run: Callable,
        origin: Origin,
        context: Ambient,
        keep_constants: bool | tuple[bool, ...] = True,
        leaf_result: bool = False,
    ) -> tuple[Specialisation, list[Node]]:
        """The specialisation of a function for these values (started if it is new).

        Args:
            frame: the caller.
            source: what is specialised.
            values: arguments and captured values.
            run: `(frame, values) -> result`, infers the body.
            origin: the place of the call.
            context: the callee's context.
            keep_constants: whether known numbers stay known in the callee; one flag, or one per value.
            leaf_result: whether a known result is nevertheless returned at run time.

        Returns:
            The specialisation, and the caller's leaf nodes for its parameters.

        Raises:
            Grows: the argument types of a recursive function grow without bound.
        """
        nodes: list[Node] = []
        values = [widened(frame, v) for v in values]
        keep = keep_constants if isinstance(keep_constants, tuple) else (keep_constants,) * len(values)
        treedefs = tuple(tree_structure(v, nodes, k, frame.captured) for v, k in zip(values, keep, strict=True))
        treedefs, nodes = (treedefs, nodes) if leaf_result else entering(frame, values, treedefs, nodes)
        if isinstance(source.identity, Graph) and self.recursion.widens and not leaf_result:
            wider = self.recursion.with_run_time_lists(frame.spec, source, treedefs)
            if wider is not None:
                treedefs, nodes = wider, [n for v, t in zip(values, wider, strict=True) for n in conform(frame, v, t)]
        key = (source.identity, source.extra, treedefs, context, leaf_result)
        spec = self.specs.get(key)
        if spec is None:
            typed = Graph(source.name, origin=source.origin)
            place, free = located(origin, frame.spec), frame.spec.free
            spec = Specialisation(
                key, source.identity, typed, context, self.families, frame.spec, place, shared=self.shared, free=free
            )
            self.recursion.bound(
                spec, source, treedefs, MAX_UNROLLED if source.identity in self.unrolled else MAX_NESTING
            )
            self.specs[key] = spec
            if self.recursion.assume(spec):
                self.loop.resolve(spec.known)
            self.loop.spawn(self.run_spec(spec, source, treedefs, run, leaf_result))
        return spec, nodes

    async def run_spec(
        self, spec: Specialisation, source: SpecialisationSource, treedefs, run: Callable, leaf_result: bool
    ) -> None:
        """Infer the body of a specialisation."""
        try:
            frame = Frame(spec, spec.graph)
            values = []
            for treedef, name in zip(treedefs, source.names, strict=True):
                leaves = list(treedef.leaves())
                made = [
                    spec.graph.add_parameter(name if len(leaves) == 1 else f"{name}_{i}", leaf.info, source.origin)
                    for i, leaf in enumerate(leaves)
                ]
                values.append(frame.rebuild(treedef, iter(made)))
            spec.graph.params += spec.implicit.values()
            result = widened(frame, await run(frame, values))
            treedef, nodes = leaving(frame, result, leaf_result)
            spec.outcome = treedef
            if spec.result is not None:
                agreed = self.recursion.check(spec, treedef, source)
                nodes = conform(frame, result, spec.result) if agreed else []  # if not, this pass is discarded
            else:
                spec.result = treedef
            spec.graph.output = pack(frame, nodes)
            if result is NEVER:
                self.unreturning.add(spec.graph)
            spec.complete_calls()
            spec.told = spec.told if spec.known.done else len(spec.implicit)
            self.loop.resolve(spec.known)
            self.loop.resolve(spec.finished)
        except Exception as error:  # bugs of ours too: callers that wait for ever would look like an endless recursion
            self.recursion.failures.append((spec.graph, error))
            self.loop.resolve(spec.finished, error=error)
            self.loop.resolve(spec.known, error=error)

    # Branches that wait for each other.

    def start(self, coroutine) -> Task:
        """Start a task."""
        return self.loop.spawn(coroutine)

    async def arms(self, tasks: tuple[Task, ...]) -> None:
        """Wait for the arms of a branch; returns when all are done, or, in a deadlock, when at least one is."""
        pending = Join(tasks)
        self.joins.append(pending)
        try:
            for task in tasks:
                while not task.done and not pending.forced.done:
                    await Any_(self.loop, task, pending.forced)
        finally:
            self.joins.remove(pending)

    def break_deadlock(self) -> bool:
        """Let the innermost branch with a finished arm go on without the others."""
        for pending in reversed(self.joins):
            if not pending.forced.done and any(t.done and t.error is None for t in pending.arms):
                self.recursion.waiting.update((key, None) for key, spec in self.specs.items() if not spec.known.done)
                self.loop.resolve(pending.forced)
                return True
        for spec in reversed(self.specs.values()):
            if not spec.known.done:  # No branch can continue: assume that its recursive calls never return.
                spec.result = TreeDef("never")
                self.recursion.bottoms.append(spec)
                self.loop.resolve(spec.known)
                return True
        return False
