"""Range analysis: bounds of each integer of a typed graph, and the checks that therefore cannot fail.

Idea: the graph is evaluated on intervals (`intervals`). Conditions that are known to hold refine the intervals of their
operands: behind a check, in the branch of a condition, in the body of a `while`. A loop is evaluated on the ranges of
what it carries, first those of the initial values, then wider ones, until the body stays inside. Bounds that still grow
are widened to the limits of their dtype, and a last evaluation narrows what became too wide. The counter of a
`for_loop` lies in its range. Values without numeric bounds are compared symbolically: `i < n` holds in `for i in
range(n)`, whatever `n` is. Inside loops, integers are also polynomials of the indices (`polynomials`,
`scalar_evolution`).

A function is evaluated once, with unknown arguments. Loops that carry no integer are evaluated once; a loop within
three others is widened directly. The analysis is thus linear in the program.

Input: a closed typed graph without transforms. Output: a `Ranges`. Pure analysis.

Source: P. Cousot, R. Cousot, "Abstract interpretation" (POPL 1977); the refinement by conditions as in the e-SSA form
of R. Bodik, R. Gupta and V. Sarkar, "ABCD: eliminating array bounds checks on demand" (PLDI 2000).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...abstract.types import Scalar, Struct, Type
from ...ir.node import Apply, Constant, Graph, Node, Parameter, applied, applies
from ...ir.prim import Primitive
from ...ir.rewrite import inner_graphs
from .intervals import (
    FALSE,
    TRANSFER,
    TRUE,
    Interval,
    add,
    clip,
    compared,
    join,
    limits,
    meet,
    of_value,
    operands_of,
    sub,
    within,
)
from .polynomials import Polynomial
from .scalar_evolution import Forms

MIRROR = {"gt": "lt", "ge": "le"}
OVERFLOWS = ("add_overflows", "sub_overflows", "mul_overflows")
NOT = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
DEEP = 3  # depth of enclosing loops up to which the ranges of a loop are iterated
TRIES = 4  # widenings of a loop

Value = Any  # an interval, a tuple of values for a structure, None for anything else


@dataclass
class Ranges:
    """The result of the analysis.

    Attributes:
        of: application -> its interval, over all runs of the graph it is in.
        parameters: parameter -> the same.
        fails: checks that may fail.
        run: applications that were reached.
        forms: the polynomials that integers are.
    """

    of: dict[Node, Interval] = field(default_factory=dict)
    parameters: dict[Node, Interval] = field(default_factory=dict)
    fails: set[Node] = field(default_factory=set)
    run: set[Node] = field(default_factory=set)
    forms: Forms = field(default_factory=Forms)

    def interval(self, node: Node) -> Interval | None:
        """The bounds of an integer; None for any other value."""
        if isinstance(node, Constant):
            return of_value(node.value)
        return self.parameters.get(node) if isinstance(node, Parameter) else self.of.get(node)


def analyse(graph: Graph) -> Ranges:
    """The ranges of a graph and all graphs inside of it."""
    walk = _Analysis()
    walk.todo.append(graph)
    while walk.todo:
        function = walk.todo.pop()
        walk.run(function, RangeFacts(), [top(p.type) for p in function.params])
    return walk.found


def top(t: Type) -> Value:
    """All values of a type."""
    return tuple(top(e) for e in t.elems) if isinstance(t, Struct) and t.kind != "dataset" else limits(t)


def union(a: Value, b: Value) -> Value:
    """The smallest value that contains both."""
    if a is None or b is None:
        return None
    if a and isinstance(a[0], int):
        return join(a, b)
    return tuple(union(x, y) for x, y in zip(a, b, strict=True))


def inside(a: Value, b: Value) -> bool:
    """Whether all of `a` is in `b`."""
    if a is None or b is None:
        return b is None
    if a and isinstance(a[0], int):
        return within(a, b)
    return all(inside(x, y) for x, y in zip(a, b, strict=True))


def widened(old: Value, new: Value, t: Type) -> Value:
    """A value that contains both; bounds that the new one exceeds are widened to the limit of the dtype (below: first
    to 0).
    """
    if isinstance(t, Struct):
        return tuple(widened(o, n, e) for o, n, e in zip(old, new, t.elems, strict=True)) if old is not None else None
    whole = limits(t)
    if old is None or new is None or whole is None:
        return whole
    low = old[0] if new[0] >= old[0] else 0 if new[0] >= 0 else whole[0]
    return low, old[1] if new[1] <= old[1] else whole[1]


class RangeFacts:
    """What is known during the evaluation of a graph.

    Attributes:
        values: node -> value.
        names: parameter -> the node that it stands for outside, if there is only one.
        below: node -> names of values that it is less than.
        inner: `cond` -> for each branch its graph and what was known at its end, if it was run.
        forms: integer -> its polynomial; see `scalar_evolution`.
    """

    def __init__(self, outer: RangeFacts | None = None):
        self.values: dict[Node | tuple, Value] = dict(outer.values) if outer else {}
        self.names: dict[Node, Any] = {}
        self.below: dict[Node, frozenset] = dict(outer.below) if outer else {}
        self.inner: dict[Node, list[tuple[Graph, RangeFacts] | None]] = {}
        self.forms: dict[Node, Polynomial] = dict(outer.forms) if outer else {}

    def name(self, node: Node) -> Any:
        """An identity of a value that also holds inside loops."""
        if isinstance(node, Apply) and getattr(node.fn, "name", "") == "dim_size":
            return "dim", node.attrs["dim"]
        return self.names.get(node, node)

    def __getitem__(self, node: Node) -> Value:
        if node in self.values:
            return self.values[node]
        return of_value(node.value) if isinstance(node, Constant) else top(node.type)


class LayeredFacts(RangeFacts):
    """Facts in layers: facts in an upper layer are not visible below."""

    def __init__(self, base: RangeFacts):
        self.base, self.values, self.below = base, {}, {}
        self.inner, self.names, self.forms = base.inner, base.names, base.forms

    def __getitem__(self, node: Node) -> Value:
        return self.values[node] if node in self.values else self.base[node]

    def less(self, node: Node) -> frozenset:
        return self.below.get(node, frozenset()) | self.base.below.get(node, frozenset())

    def keep(self) -> None:
        """Make them permanent."""
        self.base.values.update(self.values)
        for node, names in self.below.items():
            self.base.below[node] = self.base.below.get(node, frozenset()) | names


class _Analysis:
    def __init__(self) -> None:
        self.found = Ranges()
        self.todo: list[Graph] = []
        self.called: set[Graph] = set()
        self.active: set[Graph] = set()
        self.silent = 0
        self.loops = 0

    # --- graphs -----------------------------------------------------------------------------------------------------

    def run(self, graph: Graph, facts: RangeFacts, args: Sequence[Value]) -> Value:
        """Evaluate a graph; returns its result, or `DEAD` if it always raises."""
        for param, value in zip(graph.params, args, strict=True):
            facts.values[param] = value
            if not self.silent and limits(param.type) is not None:
                old = self.found.parameters.get(param)
                self.found.parameters[param] = value if old is None else join(old, value)
        if graph in self.active:  # a branch that is its own function
            self.later(graph)
            return top(graph.output.type)
        self.active.add(graph)
        try:
            for node in graph.nodes:
                value = self.node(node, facts)
                if value is DEAD:
                    return DEAD
                if value is not None:
                    facts.values[node] = value
                if not self.silent:
                    self.note(node, value)
            if not self.silent and self.loops:
                self.found.forms.keep(facts.forms)
            return facts[graph.output]
        finally:
            self.active.remove(graph)

    def later(self, graph: Graph) -> None:
        """Evaluate a graph with unknown arguments, once."""
        if graph not in self.called:
            self.called.add(graph)
            self.todo.append(graph)

    def note(self, node: Apply, value: Value) -> None:
        self.found.run.add(node)
        if limits(node.type) is not None:
            old = self.found.of.get(node)
            self.found.of[node] = value if old is None else join(old, value)

    def bind(
        self, graph: Graph, args: Iterable[Node], facts: RangeFacts, carried: range | None = None
    ) -> tuple[RangeFacts, list[Value]]:
        """The facts about the parameters of an inner graph that follow from those about the arguments."""
        inner = RangeFacts()
        values = []
        for k, (param, arg) in enumerate(zip(graph.params, args, strict=True)):
            values.append(facts[arg])
            if carried is None or k not in carried:
                inner.names[param] = facts.name(arg)
                less = facts.less(arg) if isinstance(facts, LayeredFacts) else facts.below.get(arg)
                if less:
                    inner.below[param] = less
                if arg in facts.forms:
                    inner.forms[param] = facts.forms[arg]
        return inner, values

    # --- applications -----------------------------------------------------------------------------------------------

    def node(self, node: Apply, facts: RangeFacts) -> Value:
        """The value of an application; `DEAD` if it always raises."""
        if isinstance(node.fn, Primitive):
            rule = getattr(self, f"_{node.fn.name}", None)
            if rule is not None:
                return rule(node, facts)
            return self.transfer(node, facts)
        return self._other(node, facts)

    def transfer(self, node: Apply, facts: RangeFacts) -> Value:
        whole = limits(node.type)
        if whole is None:
            return self._other(node, facts)
        rule = TRANSFER.get(node.fn.name)
        args = [facts[a] for a in node.args]
        if rule is None or None in args:
            self._other(node, facts)
            return whole
        value = rule(*args)
        if node.fn.name in ("lt", "le", "gt", "ge") and value == (0, 1):
            value = self.by_name(node, facts)
        if value is None:
            return whole
        known = node.fn.name in ("add", "sub", "mul") and facts.values.get(_key(node))
        if self.loops:
            value = self.found.forms.narrowed(node, value, facts, whole, bool(known))
        if known:  # a check has ensured that this does not wrap
            return meet(value, whole) or whole
        return clip(value, node.type)

    def by_name(self, node: Apply, facts: RangeFacts) -> Interval:
        """A symbolic comparison of values whose order is known, whatever they are."""
        a, b = node.args if node.fn.name in ("lt", "le") else reversed(node.args)
        if facts.name(b) in facts.below.get(a, ()):
            return TRUE
        if facts.name(a) in facts.below.get(b, ()):
            return FALSE
        return 0, 1

    def _other(self, node: Apply, facts: RangeFacts) -> Value:
        for graph in inner_graphs(node):
            self.later(graph)
        return top(node.type) if node.type is not None else None

    def _make_struct(self, node: Apply, facts: RangeFacts) -> Value:
        return tuple(facts[a] for a in node.args)

    def _get_item(self, node: Apply, facts: RangeFacts) -> Value:
        whole = facts[node.args[0]]
        return top(node.type) if whole is None else whole[node.attrs["index"]]

    def _cast(self, node: Apply, facts: RangeFacts) -> Value:
        x, whole = facts[node.args[0]], limits(node.type)
        if whole is None or x is None:
            return whole
        if node.type.dtype == "bool":
            return (0 if x[0] <= 0 <= x[1] else 1), (0 if x == (0, 0) else 1)
        return clip(x, node.type)

    def _where(self, node: Apply, facts: RangeFacts) -> Value:
        """Each operand as it is where it is selected: `where(0 > i, 0, i)` is at least 0."""
        value = self.transfer(node, facts)
        condition, *operands = node.args
        if value is None or facts[condition] in (TRUE, FALSE):
            return value
        selected = []
        for operand, holds in zip(operands, (True, False), strict=True):
            view = LayeredFacts(facts)
            self.assume(condition, holds, view)
            selected.append(view[operand])
        x, y = selected
        return value if x is None or y is None else meet(value, join(x, y)) or value

    def _dim_size(self, node: Apply, facts: RangeFacts) -> Value:
        whole = limits(node.type)
        return (0, whole[1]) if whole is not None and str(node.attrs["dim"]).isidentifier() else whole

    def _raise(self, node: Apply, facts: RangeFacts) -> Value:
        return DEAD

    def _check(self, node: Apply, facts: RangeFacts) -> Value:
        if facts[node.args[0]] != TRUE:
            if not self.silent:
                self.found.fails.add(node)
            if facts[node.args[0]] == FALSE:
                return DEAD
            view = LayeredFacts(facts)
            self.assume(node.args[0], True, view)
            view.keep()
        return None

    def _cond(self, node: Apply, facts: RangeFacts) -> Value:
        condition, *args = node.args
        out: Value = DEAD
        facts.inner[node] = ends = []
        dead = []
        for key, taken in (("then", True), ("orelse", False)):
            ends.append(None)
            if facts[condition] == (FALSE if taken else TRUE):
                dead.append(taken)
                continue
            view = LayeredFacts(facts)
            self.assume(condition, taken, view)
            inner, values = self.bind(node.attrs[key], args, view)
            value = self.run(node.attrs[key], inner, values)
            if value is DEAD:
                dead.append(taken)
                continue
            ends[-1] = (node.attrs[key], inner)
            out = value if out is DEAD else union(out, value)
        if len(dead) == 1:  # whatever gets here came through the other branch
            view = LayeredFacts(facts)
            self.assume(condition, not dead[0], view)
            view.keep()
        return out

    # --- loops ------------------------------------------------------------------------------------------------------

    def _for_loop(self, node: Apply, facts: RangeFacts) -> Value:
        start, stop, step = (facts[a] for a in node.args[:3])
        args, carried = node.args[3:], node.attrs["carried"]
        whole = limits(node.args[0].type)
        if step[0] <= 0 <= step[1]:
            iteration: Value = whole
        elif step[0] > 0:
            iteration = (start[0], stop[1] - 1) if start[0] < stop[1] else None
        else:
            iteration = (stop[0] + 1, start[1]) if stop[0] < start[1] else None
        initial = [facts[a] for a in args[:carried]]
        if iteration is None:
            return tuple(initial)
        body = node.attrs["body"]

        def once(values: list[Value]) -> Value:
            inner, bound = self.bind(body, (node.args[0], *args), facts, range(1 + carried))
            if step[0] > 0:
                inner.below[body.params[0]] = frozenset((facts.name(node.args[1]),))
            self.found.forms.enter(node, step, facts, inner, not self.silent)
            return self.run(body, inner, [iteration, *values, *bound[1 + carried :]])

        return self.loop(initial, [a.type for a in args[:carried]], once)[0]

    def _while_loop(self, node: Apply, facts: RangeFacts) -> Value:
        carried, cond, body = node.attrs["carried"], node.attrs["cond"], node.attrs["body"]
        initial = [facts[a] for a in node.args[:carried]]

        def known(values: list[Value], holds: bool) -> tuple[LayeredFacts, list[Value]] | None:
            inner, bound = self.bind(cond, node.args, facts, range(carried))
            found = self.run(cond, inner, [*values, *bound[carried:]])
            if found is DEAD or found == (FALSE if holds else TRUE):
                return None
            view = LayeredFacts(inner)
            self.assume(cond.output, holds, view)
            return view, [view[p] for p in cond.params]

        def once(values: list[Value]) -> Value:
            found = known(values, True)
            if found is None:
                return DEAD
            view, refined = found
            inner, _ = self.bind(body, cond.params, view)
            inner.names = {new: view.names[old] for old, new in zip(cond.params, body.params) if old in view.names}
            names = dict(zip(cond.params, body.params))
            for param in body.params:  # what a carried value is compared with may be carried as well
                less = inner.below.get(param)
                if less:
                    inner.below[param] = frozenset(names.get(n, n) if isinstance(n, Parameter) else n for n in less)
            return self.run(body, inner, refined)

        out, values = self.loop(initial, [a.type for a in node.args[:carried]], once)
        self.silent += 1
        after = known(values, False)
        self.silent -= 1
        return DEAD if after is None else tuple(after[1][:carried])

    def loop(self, initial: list[Value], types: list[Type], once: Any) -> tuple[Value, list[Value]]:
        """The values that a loop carries: its result, and what its body gets."""
        self.loops += 1
        values = initial
        if any(_has_integers(t) for t in types):
            self.silent += 1
            values = self.fixpoint(initial, types, once) if self.loops <= DEEP else [top(t) for t in types]
            self.silent -= 1
        out = once(values)
        self.loops -= 1
        return tuple(initial if out is DEAD else map(union, initial, out)), values

    def fixpoint(self, initial: list[Value], types: list[Type], once: Any) -> list[Value]:
        """Values of the carried variables that are invariant under the body."""
        values = list(initial)
        for _ in range(TRIES):
            out = once(values)
            if out is DEAD:
                return values
            new = [union(a, b) for a, b in zip(initial, out)]
            if all(map(inside, new, values)):
                # They may be too wide: the results are used instead, if the body stays inside them.
                again = once(new)
                if again is DEAD or all(inside(union(a, b), c) for a, b, c in zip(initial, again, new)):
                    return new
                return values
            values = [widened(v, n, t) for v, n, t in zip(values, new, types)]
        return [top(t) for t in types]

    # --- what is known to hold --------------------------------------------------------------------------------------

    def assume(self, node: Node, holds: bool, view: LayeredFacts) -> None:
        """Refine what is known, given that a condition holds or does not hold."""
        if isinstance(node, Constant):
            return
        view.values[node] = TRUE if holds else FALSE
        if not isinstance(node, Apply) or not isinstance(node.fn, Primitive):
            return
        name = node.fn.name
        if name == "logical_not":
            self.assume(node.args[0], not holds, view)
        elif name == "cast" and limits(node.args[0].type) == (0, 1):
            self.assume(node.args[0], holds, view)
        elif (name, holds) in (("logical_and", True), ("logical_or", False)):
            for arg in node.args:
                self.assume(arg, holds, view)
        elif name in NOT and limits(node.args[0].type) not in (None, (0, 1)):
            a, b = node.args
            self.compare(name if holds else NOT[name], a, b, view)
        elif name in OVERFLOWS and not holds:
            self.fits(node, view)
        elif name == "cond":
            self.through(node, holds, view)

    def compare(self, name: str, a: Node, b: Node, view: LayeredFacts) -> None:
        if name in MIRROR:
            name, a, b = MIRROR[name], b, a
        if name == "lt":
            view.below[a] = view.below.get(a, frozenset()) | {view.name(b)}
        for node, value in zip((a, b), compared(name, view[a], view[b])):
            self.refine(node, value, view)

    def fits(self, node: Apply, view: LayeredFacts) -> None:
        """Refine what is known, given that a sum, difference or product does not overflow."""
        view.values[_key(node)] = TRUE
        x, y = (view[a] for a in node.args)
        whole = limits(node.args[0].type)
        assert whole is not None  # of integers
        for arg, value in zip(node.args, operands_of(node.fn.name, x, y, whole)):
            self.refine(arg, value, view)

    def refine(self, node: Node, value: Interval | None, view: LayeredFacts) -> None:
        """Intersect a value with an interval. (Empty intersections are ignored: the following code does not run.)"""
        new = None if value is None else meet(view[node], value)
        if new is None:
            return
        view.values[node] = new
        whole = limits(node.type)
        if whole is None:
            return
        if applies(node, "cast"):
            operand = view[node.args[0]]
            if operand is not None and within(operand, whole):
                self.refine(node.args[0], new, view)
        elif applies(node, "add", "sub") and isinstance(node.args[1], Constant):
            base, number = node.args[0], view[node.args[1]]
            there, back = (add, sub) if applied(node) == "add" else (sub, add)
            if within(there(view[base], number), whole):
                self.refine(base, back(new, number), view)

    def through(self, node: Apply, holds: bool, view: LayeredFacts) -> None:
        """A condition that is computed by branches: if one of them cannot have this outcome, the other one was taken."""
        ends = view.inner.get(node)
        if ends is None:
            return
        wanted = TRUE if holds else FALSE
        able = [end is not None and meet(end[1][end[0].output], wanted) is not None for end in ends]
        if able.count(True) != 1:
            return
        taken = able.index(True)
        self.assume(node.args[0], taken == 0, view)
        end = ends[taken]
        assert end is not None  # it is able
        graph, facts = end
        inner = LayeredFacts(facts)
        self.assume(graph.output, holds, inner)
        for param, arg in zip(graph.params, node.args[1:]):
            if limits(param.type) not in (None, (0, 1)):
                self.refine(arg, inner[param], view)
            names = inner.below.get(param)
            if names:
                view.below[arg] = view.below.get(arg, frozenset()) | {n for n in names if n not in graph.params}


class PathAnalysis(_Analysis):
    """The analysis for a pass that builds code path by path, and keeps the facts of each path."""

    def __init__(self) -> None:
        super().__init__()
        self.silent = 1

    def note(self, node: Apply, facts: RangeFacts) -> None:
        """An application is evaluated on a path: add what follows from the present facts about its operands."""
        value, old = self.node(node, facts), facts.values.get(node)
        if value is not DEAD and value is not None:
            new = meet(old, value) if old is not None and limits(node.type) is not None else value
            facts.values[node] = value if new is None else new

    def learn(self, condition: Node, holds: bool, facts: RangeFacts) -> None:
        """A path continues where a condition holds, or does not."""
        view = LayeredFacts(facts)
        self.assume(condition, holds, view)
        view.keep()


class _Dead:
    """The value of something that always raises."""


DEAD: Any = _Dead()


def _has_integers(t: Type) -> bool:
    return any(map(_has_integers, t.elems)) if isinstance(t, Struct) else limits(t) is not None


def _key(node: Apply) -> tuple:
    """A key that is the same for a sum, difference or product and for its overflow flag."""
    operands = (
        ("constant", a.value) if isinstance(a, Constant) and isinstance(a.type, Scalar) else a for a in node.args
    )
    return node.fn.name.removesuffix("_overflows"), *operands


__all__ = ["RangeFacts", "PathAnalysis", "Ranges", "analyse"]
