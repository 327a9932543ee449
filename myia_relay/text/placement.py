"""Where graph bindings are computed.

A graph binding is visible beyond the block that it stands in: to the end of its function, in functions within, and in
sibling branches. It is computed once each time its scope is entered: at its place, or, if it is named outside of its block,
in the nearest block that holds all uses, before the statement with the first of them.

    if (%c) { %0 = f(%x); %0 } else { %0 + 1 }    =>    %0 = f(%x); if (%c) { %0 } else { %0 + 1 }

A binding that moves takes those with it that its value names and that stand in blocks which do not reach so far.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ..utils.errors import CompileError, NameError_
from ..utils.trampoline import Steps, run
from .errors import Enough, Errors, raise_all
from .span import loc
from .tree import (
    Body,
    CallExpr,
    Expression,
    Function,
    GraphBinding,
    IfExpr,
    Local,
    LocalVar,
    MatchExpr,
    ModuleTree,
    Statement,
    body,
)
from .walk import bound_locals, expressions, free_locals, walk, with_expressions


def placed(tree: ModuleTree) -> ModuleTree:
    """A module whose graph bindings stand where they are computed; the same object where none moves.

    Raises:
        NameError_: the value of a binding names a local that is not visible there.
    """
    errors, result = Errors(), tree
    with contextlib.suppress(Enough):
        result = tree.mapped(lambda name, function: placed_function(function, errors))
    if errors:
        raise_all(errors)
    return result


def placed_function(function: Function, errors: list[CompileError]) -> Function:
    """A function whose graph bindings stand where they are computed; what is wrong is added to `errors`."""
    bodies = [e for e in walk(function) if isinstance(e, Body)]
    if not any(isinstance(s, GraphBinding) for b in bodies for s in b.statements):
        return function
    placement = Placement(function)
    with contextlib.suppress(Enough):
        placement.decide()
    errors.extend(placement.errors)
    if not placement.moved or placement.errors:
        return function
    result = run(placement.build(function))
    assert isinstance(result, Function)
    return result


@dataclass(eq=False)
class PlacementScope:
    """A block.

    Attributes:
        root: its expression, mostly a `Body`.
        parent: the block around it.
        at: the statement of the parent in which it is; their number for the result.
    """

    root: Expression
    parent: PlacementScope | None = None
    at: int = 0

    def around(self) -> Iterator[PlacementScope]:
        """This block and those around it, innermost first."""
        scope: PlacementScope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass(eq=False)
class PlacedBinding:
    """A graph binding.

    Attributes:
        statement: the binding as written.
        scope: the block in which it is computed.
        at: the statement of that block before which it is computed; in the block where it stands, its own position.
        uses: where it is used: a block and the statement of it, or another binding, in whose value it is named.
        inner: the outermost blocks within its value.
    """

    statement: GraphBinding
    scope: PlacementScope
    at: int
    uses: list[tuple[PlacementScope, int] | PlacedBinding] = field(default_factory=list)
    inner: list[PlacementScope] = field(default_factory=list)


class Placement:
    """The placement of the graph bindings of a function.

    Attributes:
        bindings: all of them.
        bound_in: the block of which a local is part.
        moved: those that move: by the root of the block to which they move, and the statement before which they go.
        errors: bindings that cannot be computed where they have to be.
    """

    def __init__(self, function: Function):
        self.bindings: dict[Local, PlacedBinding] = {}
        self.bound_in: dict[Local, PlacementScope] = {}
        self.moved: dict[Expression, dict[int, list[PlacedBinding]]] = {}
        self.errors = Errors()
        self._order: list[PlacedBinding] = []  # as in the text
        self._gone: set[Local] = set()
        self._collect(function)

    def _collect(self, function: Function) -> None:
        # What is still to be seen: an expression, its block, the statement of the block, the binding whose value it is in
        # (None within inner blocks of the value).
        stack: list[tuple[Expression, PlacementScope, int, PlacedBinding | None]]
        stack = [(function, PlacementScope(function), 0, None)]
        while stack:
            node, scope, at, owner = stack.pop()
            if owner is not None and node is owner.statement.value:
                self._order.append(owner)
            if isinstance(node, LocalVar):
                binding = self.bindings.get(node.local)
                if binding is not None:
                    binding.uses.append(owner or (scope, at))
                continue
            if isinstance(node, Body):
                stack.extend(reversed(self._statements(node, scope, at, owner)))
                continue
            parts = (node.callee, *node.args) if isinstance(node, CallExpr) else expressions(node)
            for part, bound in reversed(list(zip(parts, _blocks(node, len(parts))))):
                if bound is None:
                    stack.append((part, scope, at, owner))
                    continue
                block = self._entered(part, scope, at, owner)
                self.bound_in.update((local, block) for local in bound)
                stack.append((part, block, 0, None))

    def _entered(
        self, root: Expression, around: PlacementScope, at: int, owner: PlacedBinding | None
    ) -> PlacementScope:
        block = PlacementScope(root, around, at)
        if owner is not None:
            owner.inner.append(block)
        return block

    def _statements(self, node: Body, scope: PlacementScope, at: int, owner: PlacedBinding | None) -> list:
        if scope.root is not node:
            scope, owner = self._entered(node, scope, at, owner), None
        entries = []
        for i, s in enumerate(node.statements):
            self.bound_in[s.local] = scope
            inner = None
            if isinstance(s, GraphBinding):
                inner = self.bindings[s.local] = PlacedBinding(s, scope, i)
            entries.append((s.value, scope, i, inner))
        entries.append((node.result, scope, len(node.statements), None))
        return entries

    def decide(self) -> None:
        """Find where each binding is computed; those that name others go first, as these follow them."""
        for binding in reversed(self._order):
            uses = [(u.scope, u.at) if isinstance(u, PlacedBinding) else u for u in binding.uses]
            if all(binding.scope in block.around() for block, _ in uses):
                continue
            target, at = _nearest(uses)
            binding.scope, binding.at = target, at
            for block in binding.inner:
                block.parent, block.at = target, at
            self._check(binding)
            self.moved.setdefault(target.root, {}).setdefault(at, []).insert(0, binding)
            self._gone.add(binding.statement.local)

    def _check(self, binding: PlacedBinding) -> None:
        visible = set(binding.scope.around())
        statement = binding.statement
        for local in free_locals(statement.value):
            if local in self.bindings or self.bound_in[local] in visible:
                continue
            name = statement.local.name
            notes = [(f"%{local.name} is bound here", loc(local.span))] if local.span is not None else []
            self.errors.append(
                NameError_(
                    f"%{name} is named outside of the block in which it is bound, so it is computed outside, where "
                    f"%{local.name} is not visible; bind %{name} by let where it is used",
                    loc(statement.span),
                    *notes,
                )
            )
            return

    def build(self, node: Expression, alone: bool = True) -> Steps:
        """A step that rebuilds an expression with the bindings where they belong.

        Args:
            node: the expression.
            alone: False for the result of a block that this pass has made around it.
        """
        moved = self.moved.get(node, {}) if alone else {}
        if isinstance(node, Body):
            statements: list[Statement] = []
            for i, s in enumerate(node.statements):
                for binding in moved.get(i, ()):
                    statements.append((yield from self._statement(binding.statement)))
                if s.local not in self._gone:
                    statements.append((yield from self._statement(s)))
            for binding in moved.get(len(node.statements), ()):
                statements.append((yield from self._statement(binding.statement)))
            return body(statements, (yield self.build(node.result)), node.span)
        if moved:
            statements = []
            for binding in moved[0]:
                statements.append((yield from self._statement(binding.statement)))
            return body(statements, (yield self.build(node, alone=False)), node.span)
        new = []
        for part in expressions(node):
            new.append((yield self.build(part)))
        return with_expressions(node, tuple(new))

    def _statement(self, statement: Statement) -> Steps:
        value = yield self.build(statement.value)
        return statement if value is statement.value else replace(statement, value=value)


def _blocks(node: Expression, parts: int) -> list[tuple[Local, ...] | None]:
    """For each part of an expression: the locals that are bound around it where it is a block, else None."""
    if isinstance(node, Function):
        return [bound_locals(node)]
    if isinstance(node, IfExpr):
        return [None, (), ()]
    if isinstance(node, MatchExpr):
        return [None, *(bound_locals(arm) for arm in node.arms)]
    return [None] * parts


def _nearest(uses: list[tuple[PlacementScope, int]]) -> tuple[PlacementScope, int]:
    """The nearest block that holds all uses, and the first of its statements that holds one."""
    common = list(uses[0][0].around())
    for block, _ in uses[1:]:
        around = set(block.around())
        common = [c for c in common if c in around]
    target = common[0]
    positions = []
    for block, at in uses:
        while block is not target:
            assert block.parent is not None
            block, at = block.parent, block.at
        positions.append(at)
    return target, min(positions)
