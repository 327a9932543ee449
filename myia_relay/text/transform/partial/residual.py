"""Residual code, and what of the partial evaluator's values is in it.

A known value is lifted when residual code first needs it. A tuple, a constructor's application and a function are bound
where they were made, which is in reach of whatever uses them. References, and what holds them, are bound where they are
lifted: a reference with what it holds at that moment. Everything that is noted here is put on the trail, from which an
unfolding is taken back.
"""

from __future__ import annotations

from collections.abc import Callable

from ...tree import (
    CallExpr,
    ConstructorName,
    Expression,
    Function,
    Let,
    Local,
    LocalVar,
    RefNew,
    RefWrite,
    Statement,
    TupleExpr,
)
from ...walk import free_locals
from .values import (
    Dynamic,
    Environment,
    Known,
    KnownCell,
    KnownClosure,
    KnownConstant,
    KnownData,
    KnownName,
    KnownTuple,
    PartialValue,
    Residual,
    Slot,
)

ROOT = Residual()
"""Where what needs no binding is bound."""


class ResidualCode:
    """The residual code of one definition, and what references hold.

    Attributes:
        block: the block that is being written.
        store: what references hold, as far as it is known.
        trail: what undoes what has been noted since.
        cells: how many references there were.
        free: operation -> its free variables.
    """

    def __init__(self):
        self.block = Residual()
        self.store: dict[KnownCell, PartialValue] = {}
        self.trail: list[Callable[[], object]] = []
        self.cells = 0
        self.free: dict[Expression, tuple[Local, ...]] = {}

    def function(self, closure: KnownClosure) -> Function:
        """Residual code for a function.

        Raises:
            NotImplementedError: the evaluator writes it.
        """
        raise NotImplementedError

    def write(self, cell: KnownCell, value: PartialValue) -> None:
        """Let a reference hold a value."""
        store, old = self.store, self.store.get(cell)
        self.trail.append(lambda: store.pop(cell, None) if old is None else store.__setitem__(cell, old))
        store[cell] = value

    def forget(self) -> None:
        """Something unknown may have written to every reference that others know."""
        before = self.store
        if any(c.lifted for c in before):
            self.trail.append(lambda: setattr(self, "store", before))
            self.store = {c: v for c, v in before.items() if c.lifted is None}

    def lift_cells(self, node: Expression, env: Environment) -> None:
        """Lift the references that are reachable from the free variables of code that runs under other control."""
        if not self.cells:
            return
        for cell in self.reachable([env[local] for local in self.free_locals(node)]):
            if cell.lifted is None:
                self.lift(cell)

    def free_locals(self, node: Expression) -> tuple[Local, ...]:
        """The free variables of an operation."""
        found = self.free.get(node)
        if found is None:
            found = self.free[node] = tuple(free_locals(node))
        return found

    def reachable(self, values: list[PartialValue]) -> list[KnownCell]:
        """The references that are reachable from values."""
        found: list[KnownCell] = []
        seen: set[int] = set()
        stack = list(reversed(values))
        while stack:
            value = stack.pop()
            if not isinstance(value, Known) or id(value) in seen or value.has_cells is False:
                continue
            seen.add(id(value))
            if isinstance(value, KnownCell):
                found.append(value)
                if value in self.store:
                    stack.append(self.store[value])
            else:
                stack.extend(self.parts(value))
        return found

    def parts(self, value: Known) -> list[PartialValue]:
        """The values that a known value is made of."""
        match value:
            case KnownTuple() | KnownData():
                return list(value.fields)
            case KnownClosure():
                return [value.environment[x] for x in self.free_locals(value.function)]
        return []

    def holds_cells(self, value: Known) -> bool:
        """Whether references are reachable from a value."""
        if value.has_cells is None:
            value.has_cells = bool(self.cells) and bool(self.reachable([value]))
        return value.has_cells

    def slot(self) -> Slot:
        """A place in residual code for what is made now."""
        slot = Slot(self.block)
        self.block.items.append(slot)
        return slot

    def emit(self, op: Expression, s: Statement | None, env: Environment) -> Dynamic:
        """Bind an operation in residual code."""
        local = Local(s.local.name if s is not None else "t", span=op.span)
        annotation = s.annotation if isinstance(s, Let) and env.annotations else None
        self.block.items.append(Let(local, op, annotation, span=op.span))
        return Dynamic(LocalVar(local, span=op.span))

    def lift(self, value: PartialValue) -> Expression:
        """The atom that stands for a value in residual code."""
        if isinstance(value, Dynamic | KnownName | KnownConstant):
            return value.atom
        assert isinstance(value, Known)
        if value.lifted is not None and (value.lifted[1] is ROOT or self.block.within(value.lifted[1])):
            return value.lifted[0]
        if isinstance(value, KnownCell):
            return self.lift_cell(value)
        if isinstance(value, KnownClosure) and self.cells:
            self.lift_cells(value.function, value.environment)
        if self.holds_cells(value) or not self.block.within(value.slot.block):
            if not isinstance(value, KnownClosure):
                for part in self.parts(value):
                    self.lift(part)  # it is bound in front
            slot = self.slot()
        else:
            slot = value.slot
        outer, self.block = self.block, slot.block
        try:
            self.bind(value, slot)
        finally:
            self.block = outer
        assert value.lifted is not None
        return value.lifted[0]

    def bind(self, value: Known, slot: Slot) -> None:
        """Bind a value in a slot."""
        if isinstance(value, KnownClosure):
            local = Local(value.name)
            self.set_lifted(value, LocalVar(local), slot)  # it may call itself
            slot.statement = Let(local, self.function(value))
            return
        op: Expression
        if isinstance(value, KnownTuple):
            local, op = Local("t"), TupleExpr(tuple(map(self.lift, value.fields)))
        else:
            assert isinstance(value, KnownData)
            callee = ConstructorName(value.constructor)
            local, op = Local("d"), CallExpr(callee, tuple(map(self.lift, value.fields)))
        self.set_lifted(value, LocalVar(local), slot)
        slot.statement = Let(local, op)

    def set_lifted(self, value: Known, atom: Expression, slot: Slot) -> None:
        """Note the atom that stands for a value, until that is taken back."""
        old = value.lifted

        def undo() -> None:
            value.lifted, slot.statement = old, None

        self.trail.append(undo)
        value.lifted = (atom, slot.block)

    def lift_cell(self, cell: KnownCell) -> Expression:
        """Emit a reference, with what it holds."""
        content = self.store.get(cell, cell.initial)
        cyclic = cell in self.reachable([content])
        first = self.lift(cell.initial if cyclic else content)
        slot, local = self.slot(), Local(cell.name)
        self.set_lifted(cell, LocalVar(local), slot)
        slot.statement = Let(local, RefNew(first))
        if cyclic:
            self.block.items.append(Let(Local("_"), RefWrite(LocalVar(local), self.lift(content))))
        return LocalVar(local)
