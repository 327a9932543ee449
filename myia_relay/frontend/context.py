"""The state of parsing one function: where nodes go, what variables are bound to, and the state of control flow.

`BlockState` is one straight-line piece of code: the graph that receives nodes, and the environment. Besides the user's
variables an environment holds pseudo-variables that flow through branches and loops in the same way:

    $status      0 normal, 1 continue, 2 break, 3 return, 4 a `while` whose condition has failed; most often a constant
    $ret         the value to be returned, where $status is 3
    $bound.x     whether x is bound, where that is not certain
    $value       the value of a conditional expression

Handlers of syntax register themselves in `EXPRESSIONS` and `STATEMENTS`, by class of AST node.
"""

from __future__ import annotations

import ast
from typing import Any

from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node
from ..utils.errors import NameError_, ParseError
from ..utils.source import Origin
from .objects import Families
from .procedures import ParameterChange, Procedures
from .procedures import analyse as analyse_procedures
from .text.liveness import Liveness
from .text.scope import analyse
from .text.source import Source
from .text.tree import FunctionNode

NORMAL, CONTINUE, BREAK, RETURN, EXHAUSTED = range(5)

EXPRESSIONS: dict[type, Any] = {}
STATEMENTS: dict[type, Any] = {}


def handles(table: dict[type, Any], *kinds: type):
    """Register the decorated function as the handler of AST classes."""

    def register(handler):
        for kind in kinds:
            table[kind] = handler
        return handler

    return register


class BlockState:
    """One straight-line piece of code.

    Attributes:
        graph: receives the nodes.
        env: variable -> node.
        dead: the `raise_` node after which nothing runs, or None.
        jumped: $status is not a constant, but certainly not `NORMAL`.
    """

    __slots__ = ("dead", "env", "graph", "jumped")

    def __init__(self, graph: Graph, env: dict[str, Node]):
        self.graph = graph
        self.env = env
        self.dead: Node | None = None
        self.jumped = False

    @property
    def status(self) -> int | None:
        """$status where it is known."""
        node = self.env["$status"]
        return node.value if isinstance(node, Constant) else None

    @property
    def reach(self) -> str:
        """Whether the next statement runs: "yes", "no" or "maybe"."""
        if self.dead is not None or self.jumped:
            return "no"
        if self.status is None:
            return "maybe"
        return "yes" if self.status == NORMAL else "no"

    def jump(self, status: int) -> None:
        """Leave: nothing after this runs until something tests the status."""
        self.env["$status"] = Constant(status)


class ParseContext:
    """Parsing of one function.

    Attributes:
        source: the top-level function. node: the `def` or `lambda` at hand. scope: its names. live: its liveness
        analysis. captures: for an inner function, what it captures: name -> (node or None where not bound, $bound
        node or None). captured_by: local -> [(graph, place)]: who has captured a value of it so far. pending: inner
        functions that refer to names not bound yet; parsed when they are first used. loops: what is live around each
        enclosing loop, innermost last. iterated: what these run over. hidden: targets of the comprehensions that we are in;
        hidden_cells: cells of such. own_scopes: how many of these are functions to CPython. flows: joined value -> the values
        that may flow into it; entered: the bodies and conditions of loops, numbered in their order;
        items: item of a loop -> the iterable; extended: list -> what was inserted, and what it was extended by; solved,
            marks, families, checks: what `ownership` makes of them.
        here: variables that are live after the current statement. statement: that statement, or the expression of a lambda.
        later: variables that it reads after a change that it makes in the middle.
        marked: whether a debugger is told of statements (`marks`).
        cells: variables with a cell -> its node. held: (name, value) of all that was put
            into cells.
        waiting: the values of expressions that are evaluated and not yet used, while others are, as `a` in `a + f(b)`; innermost
            last. read_again: those that are read again if a variable is changed, where that is an array.
        errors: refusals so far; shared by inner functions.
        procedures: what calls change; shared by inner functions. kept: the parameters that this one changes in place;
        returned: their nodes.
    """

    def __init__(self, source: Source, node: FunctionNode, graph: Graph, outer: ParseContext | None = None):
        self.procedures: Procedures = outer.procedures if outer else analyse_procedures(source)
        self.kept: dict[str, ParameterChange] = self.procedures.kept.get(node, {})
        self.returned: set[Node] = set()
        self.source = source
        self.node = node
        self.name = getattr(node, "name", "<lambda>")
        self.scope = analyse(node)
        marked: Any = node
        live = None if self.kept else getattr(node, "_live", None)
        if live is None:
            live = Liveness(node, self.scope, self.kept)
            if not self.kept:
                marked._live = live
        self.live: Liveness = live
        self.root = graph
        self.outer = outer
        self.captures: dict[str, tuple[Node | None, Node | None]] = {}
        self.captured_by: dict[str, list] = {}
        self.pending: dict[Graph, Any] = outer.pending if outer else {}
        self.closures: dict[Graph, Any] = outer.closures if outer else {}
        self.flows: dict[Node, tuple[Node, ...]] = outer.flows if outer else {}
        self.entered: dict[Graph, int] = outer.entered if outer else {}
        self.errors: list[ParseError] = outer.errors if outer else []
        self.items: dict[Node, Node] = outer.items if outer else {}
        self.solved: syntax.Solved = outer.solved if outer else syntax.Solved()
        self.families = Families()
        self.marks: list[tuple[tuple[int, ...], int]] = []
        self.extended: dict[Node, tuple[tuple[Node, ...], tuple[Node, ...]]] = outer.extended if outer else {}
        self.checks: list[Any] = []
        self.cells: dict[str, Node] = {}
        self.held: list[tuple[str, Node]] = outer.held if outer else []
        self.loops: list[set[str]] = []
        self.iterated: list[Node] = []
        self.waiting: list[tuple[ast.AST, Node]] = []
        self.read_again: set[Node] = set()
        self.hidden: list[str] = []
        self.hidden_cells: dict[str, Node] = {}
        self.own_scopes = 0
        self.here: set[str] = set()
        self.statement: ast.AST = node.body if isinstance(node, ast.Lambda) else node
        self.later: set[str] = set()
        self.marked: bool = outer.marked if outer else False
        self.state = BlockState(graph, {"$status": Constant(NORMAL)})

    # -- places ------------------------------------------------------------------------------------------------------

    def origin(self, node: ast.AST | Origin) -> Origin:
        """Where a part of the tree is written."""
        if isinstance(node, Origin):
            return node
        return Origin(self.source.loc(node, self.name))

    def refuse(self, message: str, node: ast.AST | Origin, *notes) -> ParseError:
        """The error for syntax outside of the language."""
        return ParseError(message, self.origin(node), *notes)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def apply(self, fn: Any, *args: Node, at: ast.AST | Origin, attrs=None, keywords=(), name=None) -> Apply:
        """Append an application of a Python callable, a `Syntax` operation or a node."""
        origin = self.origin(at)
        if not isinstance(fn, Node):
            fn = Constant(fn, origin=origin)
        return self.state.graph.apply(fn, *args, attrs=attrs, keywords=keywords, origin=origin, name=name)

    def constant(self, value: Any, at: ast.AST) -> Constant:
        """A constant of the source."""
        return Constant(value, origin=self.origin(at))

    def expr(self, node: ast.AST) -> Node:
        """The node that computes an expression. Its value waits until the expression or the statement around it is complete, or
        until `used` says so: what is evaluated meanwhile must not change it in place.
        """
        handler = EXPRESSIONS.get(type(node))
        if handler is None:
            raise self.refuse(f"'{type(node).__name__}' is not part of the language", node)
        before = len(self.waiting)
        value = handler(self, node)
        self.used(before, node, value)
        return value

    def used(self, before: int, at: ast.AST | None = None, value: Node | None = None) -> None:
        """The values that wait have been used, but for the first so many; into what waits now, if anything.

        Args:
            before: how many values waited before them.
            at: what has been evaluated.
            value: its value.
        """
        del self.waiting[before:]
        if at is not None and value is not None:
            self.waiting.append((at, value))

    def looked_up(self, node: ast.AST) -> Node:
        """The node that computes an expression; a name from outside is looked up here, even if its value is never used."""
        value = self.expr(node)
        if isinstance(value, Constant) and isinstance(value.value, syntax.FreeName):
            attrs = {"name": value.value.name, "free": True}
            self.apply(syntax.check_bound, Constant(True), value, at=node, attrs=attrs)
        return value

    # -- branches ----------------------------------------------------------------------------------------------------

    def fork(self, label: str, at: Origin) -> BlockState:
        """A state for a branch that starts with what is bound now; its graph is nested in the current one."""
        graph = Graph(f"{self.root.name}.{label}", parent=self.state.graph, origin=at)
        return BlockState(graph, dict(self.state.env))

    def join(self, cond: Node, then: BlockState, other: BlockState, live: set[str] | None, at: Origin) -> None:
        """Append `if_(cond, then, other)` to the current state, and bind what flows out of it.

        Args:
            cond: the condition.
            then: the state at the end of the branch that runs where it holds.
            other: the state at the end of the other branch.
            live: variables that are needed afterwards; None for all.
            at: where the branch is written.
        """
        base, sides = self.state, [s for s in (then, other) if s.dead is None]
        merged, flowing = _merge(base, sides, live)
        for side in (then, other):
            if side.dead is not None:
                side.graph.output = side.dead
            else:
                outs = [_value_in(side, name) for name in flowing]
                self.state = side
                for out in outs:
                    self.settle(out, at)
                self.state = base
                side.graph.output = (
                    outs[0] if len(outs) == 1 else side.graph.apply(Constant(syntax.make_tuple), *outs, origin=at)
                )
        result = self.apply(
            syntax.if_, cond, Constant(then.graph), Constant(other.graph), at=at, attrs={"names": tuple(flowing)}
        )
        if not sides:
            base.dead = result
            return
        for name, value in zip(flowing, self.parts(result, flowing, at), strict=True):
            merged[name] = value
            self.flows[value] = tuple(_value_in(side, name) for side in sides)
        base.env = merged
        base.jumped = base.status is None and all(side.reach == "no" for side in sides)

    def parts(self, result: Apply, names: list[str], at: Origin, single: bool = True) -> list[Node]:
        """The elements of a result that is a tuple; a result that is one value (`single`) is itself the only one."""
        if len(names) == 1 and single:
            result.name = _shown(names[0])
            return [result]
        import operator

        return [
            self.apply(operator.getitem, result, Constant(k), at=at, name=_shown(name)) for k, name in enumerate(names)
        ]

    # -- variables ---------------------------------------------------------------------------------------------------

    def is_local(self, name: str) -> bool:
        """Whether a name is a variable of this function, or of a comprehension that we are in."""
        return name in self.scope.locals or name in self.hidden

    def is_free(self, name: str) -> bool:
        """Whether CPython calls a variable free here: one of an enclosing function, also as seen from comprehensions of
        this one.
        """
        return not self.is_local(name) or (self.own_scopes > 0 and name not in self.hidden)

    def cell(self, name: str) -> Node | None:
        """The cell of a variable (see `Scope.cells`) of this function or of an enclosing one; None if it has none."""
        context: ParseContext | None = self
        while context is not None:
            if name in context.hidden:
                return context.hidden_cells.get(name)
            if name in context.scope.locals:
                return context.cells.get(name)
            context = context.outer
        return None

    def put(self, name: str, value: Node, at: ast.AST) -> None:
        """Put a value into the cell of a variable."""
        self.settle(value, at)
        self.held.append((name, value))
        cell = self.cell(name)
        assert cell is not None
        self.apply(syntax.cell_set, cell, value, at=at, attrs={"name": name})

    def load(self, name: str, at: ast.AST) -> Node:
        """The value of a name."""
        cell = self.cell(name)
        if cell is not None:
            attrs = {"name": name, "free": self.is_free(name)}
            return self.apply(syntax.cell_get, cell, at=at, attrs=attrs, name=name)
        if self.is_local(name):
            node, flag = self.state.env.get(name), self.state.env.get(f"$bound.{name}")
        elif name in self.captures:
            node, flag = self.captures[name]
        else:
            return Constant(syntax.FreeName(name, self.source.function), origin=self.origin(at), name=name)
        if node is None:
            node = self._unbound(name, at)
        elif flag is not None:
            attrs = {"name": name, "free": self.is_free(name)}
            node = self.apply(syntax.check_bound, flag, node, at=at, attrs=attrs, name=name)
            if self.is_local(name):
                # From here on it is bound: checking again would only cost time.
                self.state.env[name] = node
                del self.state.env[f"$bound.{name}"]
        self.settle(node, at)
        return node

    def settle(self, node: Node, at: ast.AST | Origin) -> None:
        """Parse an inner function that waits for names, because its value is about to be used."""
        if isinstance(node, Constant) and isinstance(node.value, Graph) and node.value in self.pending:
            self.pending[node.value].resolve(self, at)

    def _unbound(self, name: str, at: ast.AST) -> Node:
        """A read of a variable that is certainly not bound: an error at compile time if it certainly runs, else at run
        time.

        Raises:
            NameError_: the read certainly runs.
        """
        if self.outer is None and self.state.graph is self.root:
            raise NameError_(f"local variable '{name}' is read before it is bound", self.origin(at))
        return self.apply(
            syntax.check_bound,
            Constant(False),
            Constant(syntax.UNBOUND),
            at=at,
            attrs={"name": name, "free": self.is_free(name)},
            name=name,
        )


def _shown(name: str) -> str | None:
    """The name to print for a variable; pseudo-variables have none."""
    return None if name == "$value" else name


def _value_in(side: BlockState, name: str) -> Node:
    """The value of a variable at the end of a branch, for the join."""
    if name.startswith("$bound."):
        if name in side.env:
            return side.env[name]
        return Constant(name.removeprefix("$bound.") in side.env)
    return side.env.get(name) or Constant(syntax.UNBOUND)


def _merge(base: BlockState, sides: list[BlockState], live: set[str] | None) -> tuple[dict[str, Node], list[str]]:
    """The bound variables after a join: (those that need no flag, the names of those that do)."""
    merged: dict[str, Node] = {}
    flowing: list[str] = []
    names = list(dict.fromkeys(name for side in sides for name in side.env if not name.startswith("$bound.")))
    for name in names:
        values = [side.env.get(name) for side in sides]
        first = values[0]
        flags = [_value_in(side, f"$bound.{name}") for side in sides]
        if all(value is first for value in values) and (first is base.env.get(name) or _visible(first, base)):
            assert first is not None  # it is bound on one side
            merged[name] = first
            if f"$bound.{name}" in sides[0].env:
                merged[f"$bound.{name}"] = flags[0]
        elif (
            name == "$status"
            and isinstance(first, Constant)
            and all(isinstance(v, Constant) and v.value == first.value for v in values)
        ):
            merged[name] = first
        elif name.startswith("$") or live is None or name in live:
            flowing.append(name)
            if not name.startswith("$") and not all(isinstance(f, Constant) and f.value for f in flags):
                flowing.append(f"$bound.{name}")
    return merged, flowing


def _visible(node: Node | None, base: BlockState) -> bool:
    """Whether a node may be used in the graph of `base`: it must not be in a graph nested in that one."""
    owner = getattr(node, "graph", None)
    scope: Graph | None = base.graph
    while owner is not None and scope is not None:
        if scope is owner:
            return True
        scope = scope.parent
    return owner is None
