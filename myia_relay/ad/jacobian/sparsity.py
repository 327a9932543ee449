"""Sparsity patterns: which elements of a result depend on which elements of some arguments, without computing either.

A `Pattern` holds the inputs that each element of a value depends on. It is propagated through an application by links,
pairs (element of an operand, element of the result): the pattern of the result is the product of two Boolean matrices.
For primitives that rearrange elements, the links are found by running their NumPy reference implementation on the
numbers of the elements in place of their values. For the other primitives they follow from the declared axes
(`ir.axes`); along axes that are not mapped, everything depends on everything, so a pattern is never too small.

Positions must be known at compile time: integers are evaluated, from constants through arithmetic and through the
iterations of counted loops. Loops whose iterations are not known are iterated to a fixpoint.

Source: A. Griewank and A. Walther, Evaluating Derivatives (2nd ed., 2008), section 7.1 (dependence by index domains).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.dims import is_known
from ...abstract.types import Array, Scalar, Tape, leaves
from ...ir.axes import relation_of
from ...ir.build import as_type
from ...ir.node import Apply, Constant, Graph, Node
from ...prims.ops.control import LEAD

BRIEF, LONG = 100_000, 2_000_000
"""How long a search may take, in units of about 5 us."""
PER_APPLICATION = 10  # units for an application that depends on inputs; any other takes one
PAIRS = 64  # pairs that one unit is enough for
MOST_ROUNDS = 30  # iterations to the fixpoint of a loop at most


class NoPattern(Exception):
    """The pattern cannot be found, or not in reasonable time: the message says why."""


SIZES, STRUCTURES, WORK = (
    "sizes are not known when it is compiled",
    "trees, lists, recursive functions or loops of unknown length depend on what it is differentiated by",
    "it would take too long to find",
)
EMPTY = "an element is picked of an array that has none"


@dataclass(frozen=True, eq=False)
class Pattern:
    """For each element of a value, flat, the inputs that it depends on.

    Attributes:
        starts: int64, shape (elements + 1,): where the inputs of each begin.
        inputs: int64: the numbers of the inputs, ascending for each element.
    """

    starts: np.ndarray
    inputs: np.ndarray

    @property
    def size(self) -> int:
        """How many elements."""
        return len(self.starts) - 1

    def elements(self) -> np.ndarray:
        """For each entry of `inputs` the element that it belongs to."""
        return np.repeat(np.arange(self.size), np.diff(self.starts))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Pattern)
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.inputs, other.inputs)
        )

    @classmethod
    def identity(cls, first: int, size: int) -> Pattern:
        """The pattern of inputs themselves, `size` of them starting with the number `first`."""
        return cls(np.arange(size + 1), np.arange(first, first + size))

    @classmethod
    def of(cls, elements: np.ndarray, inputs: np.ndarray, size: int) -> Pattern:
        """From pairs in order."""
        return cls(np.concatenate([[0], np.cumsum(np.bincount(elements, minlength=size))]), inputs)


@dataclass(frozen=True)
class Value:
    """What is known of a number or an array; for a structure it is a tuple of these.

    Attributes:
        pattern: what it depends on; None for nothing.
        known: its value, where that is known and does not depend on anything.
    """

    pattern: Pattern | None = None
    known: Any = None


FREE = Value()


@dataclass(frozen=True, eq=False)
class TapeValue:
    """A tape with an entry; `FREE` is a tape of any length without known or dependent entries.

    Attributes:
        below: the tape without its last entry.
        entry: the last one.
        depends: whether an entry depends on inputs.
    """

    below: TapeValue | Value
    entry: Known
    depends: bool


# A `Value`, a tuple of `Known`, or a `TapeValue`. Which one follows from the type of the node, which is too dynamic for
# a type checker.
Known = Any
Links = tuple[Pattern, np.ndarray, np.ndarray]
"""A pattern, elements of the value that has it, and for each an element of the result that depends on it."""


def patterns(graph: Graph, first: int, most: int | None = None, patience: int = LONG) -> list[Pattern]:
    """What the parts of a graph's result depend on.

    Args:
        graph: typed, closed, transforms expanded; its result is a tuple of arrays.
        first: the first of the parameters whose elements, numbered one parameter after the other, are the inputs.
        most: on how many inputs an element may depend, those on the way included; None for any number.
        patience: how long it may take.

    Raises:
        NoPattern: sizes are not known, trees or lists depend on the inputs, elements depend on too many, or it takes
        too long.
    """
    args: list[Known] = [FREE] * first
    width = 0
    for p in graph.params[first:]:
        size = elements_of(p)
        args.append(Value(Pattern.identity(width, size)))
        width += size
    out = DependenceAnalysis(width, width if most is None else most, patience).run(graph, args)
    parts = out if isinstance(out, tuple) else (out,) * len(graph.output.type.elems)
    sizes = [elements_of(t) for t in graph.output.type.elems]
    return [
        p.pattern or Pattern(np.zeros(n + 1, np.int64), np.zeros(0, np.int64))
        for p, n in zip(parts, sizes, strict=True)
    ]


def shape_of(what: Any) -> tuple[int, ...]:
    """The shape of a value or type that is an array or a number of known shape.

    Raises:
        NoPattern: it is neither, or its shape is not known.
    """
    t = getattr(what, "type", what)
    if not isinstance(t, Scalar | Array):
        raise NoPattern(STRUCTURES)
    shape = t.shape
    if not is_known(shape):
        raise NoPattern(SIZES)
    return shape


def elements_of(what: Any) -> int:
    """How many elements a value has."""
    return int(np.prod(shape_of(what), dtype=np.int64))


def numbers(shape: tuple[int, ...]) -> np.ndarray:
    """The numbers of the elements of an array, in its shape."""
    return np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)


def depends(value: Known) -> bool:
    """Whether a value depends on the inputs."""
    if isinstance(value, tuple):
        return any(map(depends, value))
    return value.depends if isinstance(value, TapeValue) else value.pattern is not None


class DependenceAnalysis:
    """One walk through a program.

    Attributes:
        width: how many inputs there are.
        most: on how many of them a value may depend.
        left: how much longer it may take.
        open: functions that are being walked through.
        relevant: by graph and by which of its parameters depend on inputs, the applications that matter.
    """

    def __init__(self, width: int, most: int, patience: int):
        self.width, self.most, self.left = width, most, patience
        self.open: set[Graph] = set()
        self.relevant: dict[tuple[Graph, tuple[bool, ...]], list[Apply]] = {}

    def spend(self, units: int) -> None:
        """Note work that is about to be done.

        Raises:
            NoPattern: it is more than is allowed.
        """
        self.left -= units
        if self.left < 0:
            raise NoPattern(WORK)

    def run(self, graph: Graph, args: Sequence[Known]) -> Known:
        """The value of a graph's result."""
        env: dict[Node, Known] = dict(zip(graph.params, args, strict=True))

        def look(node: Node) -> Known:
            if isinstance(node, Constant):
                counts = isinstance(node.type, Scalar | Array) and not node.type.is_float
                return Value(None, as_type(node.value, node.type)) if counts else FREE
            return env.get(node, FREE)

        key = graph, tuple(map(depends, args))
        if key not in self.relevant:
            self.relevant[key] = relevant(graph, key[1])
        self.spend(1 + len(self.relevant[key]))
        for node in self.relevant[key]:
            env[node] = self.application(node, [look(a) for a in node.args])
        return look(graph.output)

    def application(self, node: Apply, args: list[Known]) -> Known:
        """The value of one application.

        Raises:
            NoPattern: it indexes an array without elements.
        """
        if isinstance(node.fn, Graph):
            return self.call(node.fn, args)
        name = node.fn.name
        if name in ("custom_vjp", "checkpoint"):
            return self.call(node.attrs["graph"], args)
        if name == "make_struct":
            return tuple(args)
        if name == "get_item":
            return args[0][node.attrs["index"]] if isinstance(args[0], tuple) else args[0]
        if name in LEAD or name == "cond":
            return getattr(self, name)(node, args)
        if name == "tape_push":
            return TapeValue(args[0], args[1], any(map(depends, args)))
        if name == "tape_pop":
            return (args[0].below, args[0].entry) if isinstance(args[0], TapeValue) else FREE
        if not any(map(depends, args)):
            return Value(None, known(node, args))
        self.spend(PER_APPLICATION)
        links = RULES.get(name) or RULES.get(node.fn.kind) or linked
        try:
            found = links(self, node, args)
        except IndexError:  # indexing an array without elements: a check before it fails at run time
            raise NoPattern(EMPTY) from None
        return Value(self.joined(found, elements_of(node)))

    def joined(self, links: Sequence[Links], size: int) -> Pattern:
        """The pattern of a value of a given size, from everything that its elements are linked to.

        Raises:
            NoPattern: an element depends on too many inputs.
        """
        elements, inputs = [], []
        for pattern, sources, targets in links:
            counts = np.diff(pattern.starts)[sources]
            total = int(counts.sum())
            self.spend(total // PAIRS)
            firsts = pattern.starts[sources] - (np.cumsum(counts) - counts)
            elements.append(np.repeat(targets, counts))
            inputs.append(pattern.inputs[np.repeat(firsts, counts) + np.arange(total)])
        keys = np.concatenate(elements) * self.width + np.concatenate(inputs)
        keys.sort(kind="stable")  # runs that are in order are sorted quickly
        keys = keys[np.diff(keys, prepend=-1) != 0]
        found = Pattern.of(keys // self.width, keys % self.width, size)
        if np.diff(found.starts).max(initial=0) > self.most:
            raise NoPattern(WORK)
        return found

    def join(self, a: Known, b: Known) -> Known:
        """The dependences of a value that is one of two values."""
        if isinstance(a, TapeValue) or isinstance(b, TapeValue):
            return self.join_tapes(a, b)
        if isinstance(a, tuple) or isinstance(b, tuple):
            n = len(a if isinstance(a, tuple) else b)
            pairs = zip(a if isinstance(a, tuple) else (a,) * n, b if isinstance(b, tuple) else (b,) * n, strict=True)
            return tuple(self.join(x, y) for x, y in pairs)
        found = [v.pattern for v in (a, b) if v.pattern is not None]
        if len(found) < 2:
            return Value(found[0]) if found else FREE
        every = np.arange(found[0].size)
        return Value(self.joined([(p, every, every) for p in found], len(every)))

    def join_tapes(self, a: Known, b: Known) -> Known:
        """The same for tapes, entry by entry down to their common part.

        Raises:
            NoPattern: they differ in length.
        """
        entries = []
        while a is not b:
            if not (isinstance(a, TapeValue) and isinstance(b, TapeValue)):
                raise NoPattern(STRUCTURES)
            entries.append(self.join(a.entry, b.entry))
            a, b = a.below, b.below
        for entry in reversed(entries):
            a = TapeValue(a, entry, depends(a) or depends(entry))
        return a

    # Control.

    def call(self, graph: Graph, args: Sequence[Known]) -> Known:
        """A call of a function.

        Raises:
            NoPattern: the function is recursive.
        """
        if graph in self.open:
            raise NoPattern(STRUCTURES)
        self.open.add(graph)
        out = self.run(graph, args)
        self.open.remove(graph)
        return out

    def cond(self, node: Apply, args: list[Known]) -> Known:
        """A branch: one side if the condition is known, otherwise both."""
        which, operands = args[0], args[1:]
        sides = [node.attrs["then"], node.attrs["orelse"]]
        if which.known is not None:
            return self.run(sides[not which.known], operands)
        return self.join(*(self.run(side, operands) for side in sides))

    def for_loop(self, node: Apply, args: list[Known]) -> Known:
        """A counted loop, iteration by iteration if its range is known.

        Raises:
            NoPattern: all its iterations would take too long.
        """
        body, n = node.attrs["body"], node.attrs["carried"]
        carry, constants = args[3 : 3 + n], args[3 + n :]
        bounds = [a.known for a in args[:3]]
        if any(b is None for b in bounds):
            return self.fixpoint(carry, constants, lambda carry: self.run(body, [FREE, *carry, *constants]))
        if not matters(node, args):
            return (FREE,) * n
        iterations = range(*map(int, bounds))
        for iteration, i in enumerate(iterations):
            before = self.left
            carry = self.run(body, [Value(None, as_type(i, body.params[0].type)), *carry, *constants])
            if not iteration and (before - self.left) * len(iterations) > before:
                raise NoPattern(WORK)
        return tuple(carry)

    def while_loop(self, node: Apply, args: list[Known]) -> Known:
        """A loop, iteration by iteration as long as its condition is known."""
        n = node.attrs["carried"]
        carry, constants = args[:n], args[n:]
        if not matters(node, args):
            return (FREE,) * n
        while True:
            going = self.run(node.attrs["cond"], [*carry, *constants]).known
            if going is None:
                return self.fixpoint(carry, constants, lambda carry: self.run(node.attrs["body"], [*carry, *constants]))
            if not going:
                return tuple(carry)
            carry = self.run(node.attrs["body"], [*carry, *constants])

    def fixpoint(
        self, carry: Sequence[Known], constants: Sequence[Known], iteration: Callable[[tuple], Known]
    ) -> Known:
        """The values that a loop with an unknown number of iterations carries.

        Raises:
            NoPattern: it is not reached in a few rounds.
        """
        if not any(map(depends, [*carry, *constants])):
            return (FREE,) * len(carry)
        now = tuple(self.join(c, c) for c in carry)  # values of the first iteration are not those of all iterations
        for _ in range(MOST_ROUNDS):
            after = self.join(now, iteration(now))
            if after == now:
                return now
            now = after
        raise NoPattern(WORK)


def matters(node: Apply, args: Sequence[Known]) -> bool:
    """Whether a loop must be analysed: it depends on inputs, or pushes on a tape which path the adjoint must take."""
    return any(map(depends, args)) or any(isinstance(t, Tape) for t in leaves(node.type))


def relevant(graph: Graph, varying: Sequence[bool]) -> list[Apply]:
    """The applications that a pattern is computed from: those that depend on inputs, and positions and conditions for
    them.
    """
    depend: set[Node] = {p for p, v in zip(graph.params, varying, strict=True) if v}
    for node in graph.nodes:
        if not depend.isdisjoint(node.args):
            depend.add(node)
    wanted = {graph.output}
    for node in reversed(graph.nodes):
        if node in wanted:
            wanted.update(a for a in node.args if a in depend or not getattr(a.type, "is_float", False))
    return [n for n in graph.nodes if n in wanted]


def known(node: Apply, args: Sequence[Known]) -> Any:
    """The value of an application, if it is of integers or truth values and all of its operands are known."""
    fn, t = node.fn, node.type
    if fn.reference is None or fn.kind not in ("elementwise", "injective", "reduce"):
        return None
    if not isinstance(t, Scalar | Array) or t.is_float:
        return None
    if any(not isinstance(a, Value) or a.known is None for a in args) or any(not isinstance(n, int) for n in t.shape):
        return None
    try:
        with np.errstate(all="ignore"):
            return as_type(fn.reference(*[a.known for a in args], **node.attrs), t)
    except (ArithmeticError, ValueError):  # on a path that is never taken
        return None


# --- rules: (analysis, application, values of its operands) -> the links from those that depend on inputs -------------------

Rule = Callable[[DependenceAnalysis, Apply, "list[Known]"], "list[Links]"]
RULES: dict[str, Rule] = {}
"""By the name of a primitive, or by the kind of many; `linked` serves all others."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the rule of some primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def dependent(node: Apply, args: Sequence[Known]) -> list[tuple[int, Pattern, tuple[int, ...]]]:
    """The operands that depend on inputs: positions, patterns, shapes.

    Raises:
        NoPattern: an operand is a structure.
    """
    if not all(isinstance(a, Value) for a in args):
        raise NoPattern(STRUCTURES)
    return [(k, a.pattern, shape_of(node.args[k])) for k, a in enumerate(args) if a.pattern is not None]


def linked(analysis: DependenceAnalysis, node: Apply, args: list[Known]) -> list[Links]:
    """What follows from the declared axes (`ir.axes`): along a mapped axis each position depends on the same one, along
    all others it may depend on every one. Without a declaration everything depends on everything.

    Positions that have to go into the same elements are merged first.
    """
    shape, size, relation = shape_of(node), elements_of(node), relation_of(node)
    links: list[Links] = []
    for k, p, s in dependent(node, args):
        own = relation.operands[k] if relation is not None else (None,) * len(s)
        kept = [x for x in own if relation is not None and x is not None and x in relation.result]
        lines = numbers(tuple(s[own.index(x)] for x in kept))
        if lines.size != p.size:
            places = lines.reshape([n if x in kept else 1 for x, n in zip(own, s, strict=True)])
            p = analysis.joined([(p, np.arange(p.size), np.broadcast_to(places, s).reshape(-1))], lines.size)
        result = relation.result if relation is not None else (None,) * len(shape)
        lines = lines.transpose([kept.index(x) for x in result if x in kept])
        sources = lines.reshape([n if x in kept else 1 for x, n in zip(result, shape, strict=True)])
        links.append((p, np.broadcast_to(sources, shape).reshape(-1), np.arange(size)))
    return links


@rule("where")
def _(analysis: DependenceAnalysis, node: Apply, args: list[Known]) -> list[Links]:
    """What is not selected does not matter."""
    links = linked(analysis, node, args)
    if args[0].known is None:
        return links
    flags = np.broadcast_to(np.asarray(args[0].known), shape_of(node)).reshape(-1)
    taken = [flags if k == 1 else ~flags for k, _, _ in dependent(node, args)]
    return [(p, sources[t], targets[t]) for (p, sources, targets), t in zip(links, taken, strict=True)]


@rule("injective")
def _(analysis: DependenceAnalysis, node: Apply, args: list[Known]) -> list[Links]:
    """Operations that put at most one element of their operands into each place of the result, as their reference
    implementation shows.
    """
    moved = node.fn.linear_in or range(len(args))  # the others are positions
    if node.fn.linear_in is None or any(a.known is None for k, a in enumerate(args) if k not in moved):
        return linked(analysis, node, args)
    links = []
    for k, p, s in dependent(node, args):
        marked = [np.zeros(shape_of(a), np.int64) if j in moved else args[j].known for j, a in enumerate(node.args)]
        marked[k] = 1 + numbers(s)
        found = np.asarray(node.fn.reference(*marked, **node.attrs)).reshape(-1)
        targets = np.flatnonzero(found)
        links.append((p, found[targets] - 1, targets))
    return links


@rule("scatter_add")
def _(analysis: DependenceAnalysis, node: Apply, args: list[Known]) -> list[Links]:
    """Fewer links than the axes imply, if positions are known."""
    where, axis = args[1].known, node.attrs["axis"]
    if where is None:
        return linked(analysis, node, args)
    links = []
    for k, p, _ in dependent(node, args):
        sources = np.arange(p.size)
        places = (
            np.take(numbers(shape_of(node)), np.clip(where, 0, shape_of(node)[axis] - 1), axis) if k == 2 else sources
        )
        links.append((p, sources, np.reshape(places, -1)))
    return links


@rule("cumsum")
def _(analysis: DependenceAnalysis, node: Apply, args: list[Known]) -> list[Links]:
    """Half of the links of an opaque axis: only earlier elements, or only later ones."""
    [(_, p, shape)] = dependent(node, args)
    axis, n = node.attrs["axis"], shape[node.attrs["axis"]]
    analysis.spend(p.size * n // PAIRS)
    lines = np.moveaxis(numbers(shape), axis, -1).reshape(-1, n)
    before, after = np.triu_indices(n) if not node.attrs["reverse"] else np.tril_indices(n)
    return [(p, lines[:, before].reshape(-1), lines[:, after].reshape(-1))]
