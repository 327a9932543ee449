"""The result types of recursive functions, as a least fixpoint.

A recursive call waits for the result of the function that it is in. If a branch has a finished arm, inference continues
with that arm's type (`Engine.break_deadlock`). If there is none, it assumes that the call does not return at all, the
least of all types. Either assumption may be too narrow: `f(n) = 0 if n == 0 else f(n - 1) / 2` returns an int or a
float. Then the whole program is inferred again, with the result types found so far as the assumed ones, until these no
longer change. This is Kleene iteration; the types only get wider. A program whose first assumption is right pays
nothing for this.

Source: P. Cousot and R. Cousot, "Abstract interpretation: a unified lattice model" (POPL 1977).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from ...abstract.types import Scalar
from ...ir.node import Graph, Parameter
from ...ir.walk import graphs_reachable
from ...prims.ops.effects import check, raise_
from ...utils.errors import CompileError, TypeError_
from ...utils.source import Origin
from ..values.functions import FunctionFamilies, nests
from ..values.treedef import Mismatch, TreeDef, join, unknown
from ..values.values import Cell
from .cells import Recaptured
from .dependencies import HIDDEN
from .frames import Specialisation, SpecialisationSource

MAX_PASSES = (
    12  # how often the whole program is inferred until the result types of its recursive functions no longer change
)
MAX_NESTING = 40  # nested specialisations of one function after which its argument types are assumed to grow for ever
MAX_LEAVES = 2000  # the same limit for the leaves in the arguments of a recursive function
MAX_NESTED = 2000  # the same for the nested specialisations of one function, as each may call itself more than once
NESTED = 8  # from this depth on they are counted
MAX_FOLDED = 60  # the same limit where the arguments are functions that hold each other
FOLDED = 3  # from this depth on they are counted

LATE = (HIDDEN, "parameter", "model")
"""How the keys begin of hidden arguments that callers have to know: global arrays, parameters of models, models."""
MAX_UNROLLED = 128  # the same for functions that are specialised for each of the numbers that bound them


class Grows(TypeError_):
    """The types of a recursive function grow from call to call, as where each call wraps a function in another one.

    Where a known number bounds the recursion, the function is inferred again with a specialisation for each number.

    Attributes:
        graph: the function as it was parsed; None where it is something else.
        graphs: all functions whose types grow, callers of that one among them.
        known: whether there are integers among the arguments of its first call, and all are known: one may bound the recursion.
        some: whether some of them are.
    """

    known = some = True

    def __init__(self, message: str, graph: Any, origin: Origin):
        super().__init__(
            f"{message}; if a number bounds the recursion, let it be known when compiling (a constant, or static=...)",
            origin,
        )
        self.graph = graph if isinstance(graph, Graph) else None
        self.graphs: set[Any] = {self.graph}

    def public(self) -> TypeError_:
        """The error as the user gets it."""
        return TypeError_(self.message, self.origin, *self.notes)


class RecursionAssumptions:
    """The assumptions about recursive functions of one compilation.

    Attributes:
        families: the families of functions of the compilation, of which some may end the growth of a type.
        assumed: key of a specialisation -> its result, and the cells that it makes (`infer.engine.cells`), after an earlier pass.
        before: `assumed` at the beginning of the current pass.
        waiting: keys of the functions that waited when a branch went on without them.
        unsettled: whether a branch has continued with a type that was too narrow.
        bottoms: functions that were assumed not to return, so that others could continue.
        failures: graphs of functions in which errors were found, with these.
        folded: the same where functions that hold each other may be the reason.
        nested: functions and how many of their specialisations are nested deeply.
        widens: whether a list that is longer in a recursive call than in the one around it becomes a run-time list.
        widened: whether one has.
        hidden: key of a specialisation -> the hidden arguments that it took in earlier passes. Callers that do not wait until
            it is complete have to know them.
    """

    def __init__(self, families: FunctionFamilies, widens: bool = True):
        self.families, self.widens, self.widened = families, widens, False
        self.assumed: dict[Hashable, tuple[TreeDef, list[Cell]]] = {}
        self.before: dict[Hashable, tuple[TreeDef, list[Cell]]] = {}
        self.waiting: dict[Hashable, None] = {}  # in the order in which they waited, so that runs are alike
        self.unsettled = False
        self.bottoms: list[Specialisation] = []
        self.failures: list[tuple[Graph, Exception]] = []
        self.specs: dict[Hashable, Specialisation] = {}
        self.nested: Counter[Any] = Counter()
        self.folded: Counter[Any] = Counter()
        self.hidden: dict[Hashable, dict[Hashable, Parameter]] = {}

    def start_pass(self) -> None:
        """Forget everything but the assumed results."""
        self.before = dict(self.assumed)
        self.waiting, self.unsettled, self.bottoms, self.failures = {}, False, [], []
        self.nested.clear()
        self.folded.clear()

    def bound(
        self, spec: Specialisation, source: SpecialisationSource, treedefs: tuple[TreeDef, ...], limit: int
    ) -> None:
        """Refuse a new specialisation of a recursive function that seems to have no end of them.

        Args:
            spec: the specialisation.
            source: of what.
            treedefs: the types of its arguments.
            limit: how deeply specialisations of the function may be nested.

        Raises:
            Grows: it is nested too deeply, has too large arguments, or is one of too many.
        """
        depth = spec.depth() if isinstance(source.identity, Graph) else 0
        self.nested[source.identity] += depth > NESTED
        self.folded[source.identity] += depth > FOLDED
        many = depth > FOLDED and limit == MAX_NESTING and self.folded[source.identity] > MAX_FOLDED
        few = (
            depth <= limit and self.nested[source.identity] <= MAX_NESTED and (depth <= 2 or fits(treedefs, MAX_LEAVES))
        )
        if few and not (many and nests(treedefs, FOLDED)):
            return
        self.families.suspect(*treedefs)
        grown = shallow(", ".join(map(str, treedefs)))
        text = f"the argument types of the recursive function {source.name} grow without bound: a call has the types {grown}"
        grows = Grows(text, source.identity, source.origin)
        first: Any = spec.outermost().key  # with the treedefs of the arguments in its third place
        numbers = [t for treedef in first[2] for t in integers(treedef)]
        known = [t.tag == "const" for t in numbers]
        grows.known, grows.some = bool(known) and all(known), any(known)
        raise grows

    def with_run_time_lists(
        self, caller: Specialisation, source: SpecialisationSource, treedefs: tuple[TreeDef, ...]
    ) -> tuple[TreeDef, ...] | None:
        """The types of the arguments of a recursive call in which lists that grow from call to call are run-time lists.

        Otherwise there would be a specialisation for each length (and, where a branch decides what is appended, for more).

        Args:
            caller: the specialisation that calls.
            source: what is called.
            treedefs: the types of its arguments.

        Returns:
            The types, or None where no list has grown.
        """
        active: Specialisation | None = caller
        while active is not None and active.source is not source.identity:
            active = active.caller
        if active is None:
            return None
        key: Any = active.key
        before: tuple[TreeDef, ...] = key[2]
        if key[1] != source.extra or len(before) != len(treedefs):
            return None
        wider = tuple(map(with_growing_lists, before, treedefs))
        if wider == treedefs:
            return None
        self.widened = True
        return wider

    def assume(self, spec: Specialisation) -> bool:
        """Give a new specialisation its assumed result, if there is one, and the hidden arguments that it will take."""
        for key, p in self.hidden.get(spec.key, {}).items():
            spec.implicit[key] = Parameter(spec.graph, p.name, p.type)
        spec.told = len(spec.implicit)
        if spec.key in self.assumed:
            spec.result, spec.escaped = self.assumed[spec.key]
        return spec.key in self.assumed

    def check(self, spec: Specialisation, outcome: TreeDef, source: SpecialisationSource) -> bool:
        """Whether the outcome of a function is the assumed one; if not, a wider result is assumed from now on.

        Raises:
            TypeError_: the two do not join.
        """
        try:
            agreed = join(spec.returns, outcome, grow=True)
        except Mismatch as error:
            self.families.suspect(spec.returns, outcome)
            raise TypeError_(
                f"the results of the recursive function {source.name} differ in type: {spec.result} and {outcome}"
                + (f"; {error.why}" if error.why else ""),
                source.origin,
            ) from None
        _, cells = self.assumed.get(spec.key, (None, []))
        if agreed == spec.result and cells == spec.escaped:
            return True
        self.assumed[spec.key] = unknown(agreed), spec.escaped
        return False

    def revised(self, specs: dict[Hashable, Specialisation]) -> bool:
        """Whether another pass is needed, because results differ from the assumptions of this pass, or because a function turned
        out to take hidden arguments when its callers went on already."""
        self.specs = specs
        late = False
        for spec in specs.values():
            hidden: dict[Hashable, Parameter] = {
                k: p for k, p in spec.implicit.items() if isinstance(k, tuple) and k[0] in LATE
            }
            late |= len(spec.implicit) > spec.told and len(hidden) > len(self.hidden.get(spec.key, ()))
            if hidden:
                self.hidden[spec.key] = hidden
        for key in self.waiting if self.unsettled else ():
            spec = specs.get(key)
            if spec is None or not isinstance(spec.source, Graph):  # requests of transforms are no functions
                continue
            if spec.outcome is not None and key not in self.assumed:
                self.assumed[key] = unknown(spec.outcome), spec.escaped
        return late or self.assumed != self.before

    def lost(self, program: Graph) -> list[Exception]:
        """Errors in called functions that were found after their result types were known, so that no caller received them."""
        reached = set(graphs_reachable(program)) if self.failures else set()
        return [error for graph, error in self.failures if graph in reached]

    def growing(self) -> CompileError:
        """The error for a function whose result type changes in every pass."""
        growing = [k for k, r in self.assumed.items() if self.before.get(k) != r]
        spec, (treedef, _) = self.specs[growing[0]], self.assumed[growing[0]]
        old, _ = self.before.get(growing[0], ("nothing", None))
        self.families.suspect(treedef)
        grows = Grows(
            f"the result types of the recursive function {spec.graph.name} grow without bound: "
            f"{shallow(str(old))}, then {shallow(str(treedef))}",
            spec.source,
            spec.graph.origin,
        )
        grows.graphs = {self.specs[k].source for k in growing}  # callers among them, whose results grow with it
        return grows

    def endless(self) -> CompileError | None:
        """The error for a recursive function that never returns and never raises, if there is one."""
        for spec in self.bottoms:
            if spec.outcome is not None and spec.outcome.tag == "never" and not raises(spec.graph):
                name = spec.graph.name
                error = TypeError_(
                    f"the recursion of {name} has no base case: no path through it returns without calling it again",
                    spec.graph.origin,
                )
                error.notes += [
                    (f"{caller.name.partition('.')[0]} calls {node.fn.name} here", node.origin.loc)
                    for caller in graphs_reachable(spec.graph)
                    for node in caller.nodes
                    if isinstance(node.fn, Graph)
                    and node.origin is not None
                    and spec.graph in graphs_reachable(node.fn)
                ]
                return error
        return None


def another_way(engine: Any, problem: CompileError) -> bool:
    """Whether a program that could not be inferred may be inferred in another way, which the engine then knows."""
    families, first = engine.families, engine.families.instead_of
    if isinstance(problem, Recaptured):
        problem.make_cell()
        return True
    if problem.another is not None and problem.another():
        return True
    if engine.recursion.widened:  # the length of such a list, or a number in it, has to be known
        engine.recursion = RecursionAssumptions(families, widens=False)
        return True
    if isinstance(problem, Grows):
        opened = (graph for graph, closed in engine.undecided.items() if not closed)
        closing = [graph for graph in opened if not problem.graphs.isdisjoint(graphs_reachable(graph))]
        if closing:
            engine.undecided.update(dict.fromkeys(closing, True))
            engine.recursion = RecursionAssumptions(engine.families, engine.recursion.widens)
            return True
    known = isinstance(problem, Grows) and (problem.known or not families.suspects)
    if isinstance(problem, Grows) and known and problem.graph not in engine.unrolled:
        engine.unrolled.add(problem.graph)
        families.tried.add(problem.graph)
    elif families.widen(problem):
        engine.unrolled = {None}
    elif (
        isinstance(first, Grows) and first.some and first.graph not in families.tried
    ):  # a number may bound it after all
        engine.families, engine.unrolled = FunctionFamilies(families.leaf, open=False), {None, first.graph}
    else:
        families.explain(problem)
        return False
    engine.recursion = RecursionAssumptions(engine.families, engine.recursion.widens)
    return True


def with_growing_lists(before: TreeDef, treedef: TreeDef) -> TreeDef:
    """A treedef in which lists that are longer than in another one are run-time lists, if their entries allow that."""
    if before == treedef or before.tag != treedef.tag or before.tag != "seq" or before.info != treedef.info:
        return treedef
    if len(before.parts) == len(treedef.parts):
        parts = tuple(map(with_growing_lists, before.parts, treedef.parts))
        return TreeDef(treedef.tag, treedef.info, parts) if parts != treedef.parts else treedef
    if treedef.info[0] != "list" or len(before.parts) > len(treedef.parts):
        return treedef
    try:
        return join(before, treedef)
    except Mismatch:
        return treedef


def fits(treedefs: Iterable[TreeDef], limit: int) -> bool:
    """Whether treedefs have at most a given number of parts."""
    stack = list(treedefs)
    while stack and limit:
        limit -= 1
        stack.extend(stack.pop().parts)
    return not stack


def integers(treedef: TreeDef) -> Iterator[TreeDef]:
    """The integers in a treedef, but for what functions have captured."""
    if treedef.tag in ("dyn", "const"):
        t = treedef.info if treedef.tag == "dyn" else treedef.info.type
        if isinstance(t, Scalar) and "int" in t.dtype:
            yield treedef
    for part in treedef.parts if treedef.tag == "seq" else ():
        yield from integers(part)


DEEP = 3
"""How deeply nested types are shown."""


def shallow(text: str, length: int = 200) -> str:
    """Types for a message: what is nested more deeply is left out, and so is the end of a long text."""
    found, depth = [], 0
    for c in text:
        if c in ")]}":
            depth -= 1
        if depth < DEEP:
            found.append(c + "..." if c in "([{" and depth == DEEP - 1 else c)
        if c in "([{":
            depth += 1
    short = "".join(found)
    return short if len(short) <= length else short[:length] + " ..."


def raises(graph: Graph) -> bool:
    """Whether a typed graph, or one that it calls, raises somewhere."""
    for node in (n for g in graphs_reachable(graph) for n in g.nodes):
        if node.fn is raise_ or (node.fn is check and node.attrs["exception"] is AssertionError):
            return True
    return False
