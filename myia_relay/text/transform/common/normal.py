"""A-normal form, in which the passes work, and the way back to nested expressions.

In A-normal form (C. Flanagan et al., "The essence of compiling with continuations", PLDI 1993) every operand is an atom: a
local, a literal, a name. A block is a flat list of statements in the order of evaluation, and its result is an operation or
an atom, so a tail call stays one. Nothing but scopes nests: the branches of `if` and `match`, and functions.

`normalised` takes a placed tree there. What the text nests is bound to a `Temporary`. `nested` goes back: a temporary that is
used once, in the block that it stands in, becomes an operand again where no effect changes its place; one that is used more
often, since a pass has shared it, becomes a graph binding. A program that no pass changes looks as it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from ....utils.trampoline import Steps, run
from ...operators.derived.primitives import FAILING_OPERATORS
from ...span import Span
from ...tree import (
    Body,
    CallExpr,
    ConstructorName,
    Expression,
    Function,
    GlobalVar,
    GraphBinding,
    IfExpr,
    Let,
    Literal,
    Local,
    LocalVar,
    MatchExpr,
    OperatorName,
    RefNew,
    RefRead,
    RefWrite,
    Statement,
    TensorConstant,
    TupleExpr,
    body,
)
from ...walk import expressions, with_expressions


@dataclass(frozen=True, eq=False, slots=True)
class Temporary(Local):
    """A local that stands for an operand, which the text has no name for."""


ATOMS = (LocalVar, Literal, TensorConstant, GlobalVar, OperatorName, ConstructorName)


def is_atom(e: Expression) -> bool:
    """Whether an expression is an operand of A-normal form: evaluated at no cost, and any number of times."""
    return isinstance(e, ATOMS) or (isinstance(e, TupleExpr) and not e.fields)


def statements(block: Expression) -> tuple[Statement, ...]:
    """The statements of a block."""
    return block.statements if isinstance(block, Body) else ()


def result(block: Expression) -> Expression:
    """The result of a block."""
    return block.result if isinstance(block, Body) else block


def operations(block: Expression) -> Iterator[tuple[Local | None, Expression]]:
    """The operations of a block in A-normal form, in order, with what they are bound to; the result's is None."""
    for s in statements(block):
        yield s.local, s.value
    yield None, result(block)


def scopes(operation: Expression) -> tuple[Expression, ...]:
    """The blocks within an operation."""
    match operation:
        case IfExpr():
            return (operation.then, operation.otherwise)
        case MatchExpr():
            return tuple(arm.body for arm in operation.arms)
        case Function():
            return (operation.body,)
    return ()


def operands(operation: Expression) -> tuple[Expression, ...]:
    """The atoms that an operation is applied to, in the order of evaluation; an atom's is itself."""
    match operation:
        case IfExpr():
            return (operation.condition,)
        case MatchExpr():
            return (operation.value,)
        case Function():
            return ()
        case _ if is_atom(operation):
            return (operation,)
    return expressions(operation)


def with_operands(operation: Expression, new: tuple[Expression, ...]) -> Expression:
    """An operation with others in place of `operands(operation)`."""
    if is_atom(operation):
        return new[0]
    if isinstance(operation, Function):
        return operation
    return with_expressions(operation, (*new, *scopes(operation)))


def with_scopes(operation: Expression, new: tuple[Expression, ...]) -> Expression:
    """An operation with others in place of `scopes(operation)`."""
    return with_expressions(operation, (*operands(operation), *new)) if scopes(operation) else operation


def all_operations(block: Expression) -> Iterator[tuple[Local | None, Expression]]:
    """The operations of a block and of all blocks within it, in the order of the text."""
    stack: list[Iterator[tuple[Local | None, Expression]]] = [operations(block)]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            continue
        yield found
        stack.extend(operations(scope) for scope in reversed(scopes(found[1])))


def nesting(block: Expression) -> int:
    """How deep scopes nest within a block."""
    deepest, stack = 0, [(block, 1)]
    while stack:
        top, depth = stack.pop()
        deepest = max(deepest, depth)
        stack.extend((scope, depth + 1) for _, op in operations(top) for scope in scopes(op))
    return deepest


# ---------------------------------------------------------------- there


def normalised(function: Function) -> Function:
    """A function of a placed tree in A-normal form."""
    return replace(function, body=run(_block(function.body)))


def temporary(value: Expression, out: list[Statement], span: Span | None = None) -> Expression:
    """Bind a value to a temporary at the end of a list of statements, unless it is an atom.

    Returns:
        The atom.
    """
    if is_atom(value):
        return value
    local = Temporary("t", span=span or value.span)
    out.append(Let(local, value, span=local.span))
    return LocalVar(local, span=local.span)


def _block(e: Expression) -> Steps:
    out: list[Statement] = []
    last = yield _operation(e, out)
    return body(out, last, e.span)


def _operation(e: Expression, out: list[Statement]) -> Steps:
    """An expression as an operation on atoms; what is computed before it goes to `out`."""
    match e:
        case Body():
            for s in e.statements:
                value = yield _operation(s.value, out)
                out.append(replace(s, value=value))
            return (yield _operation(e.result, out))
        case Function():
            return replace(e, body=(yield _block(e.body)))
        case CallExpr(callee=ConstructorName(), args=()):
            return e.callee
        case _ if is_atom(e):
            return e
    new = []
    for operand in operands(e):
        if not is_atom(operand):
            value = yield _operation(operand, out)
            operand = temporary(value, out, operand.span)
        new.append(operand)
    inner = []
    for scope in scopes(e):
        inner.append((yield _block(scope)))
    return with_expressions(e, (*new, *inner))


# ---------------------------------------------------------------- and back


def count_uses(block: Expression) -> Counter[Local]:
    """How often the locals are used within a block, inner scopes included."""
    return Counter(x.local for _, op in all_operations(block) for x in operands(op) if isinstance(x, LocalVar))


def nested(function: Function, everything: bool = False, but: Collection[Local] = ()) -> Function:
    """A function in A-normal form with its temporaries as operands again, or as graph bindings.

    Args:
        function: in A-normal form.
        everything: whether all pure bindings are treated as if they were temporaries (`ToGraphNormalForm`).
        but: those that are not.
    """
    new, _ = run(_Nesting(function.body, everything, but).block(function.body))
    return replace(function, body=new)


@dataclass(slots=True)
class _Pending:
    """An expression that waits to become an operand.

    Attributes:
        statement: what binds it otherwise.
        ordered: whether its place among effects matters.
        effect: whether it has an effect of its own.
    """

    statement: Statement
    ordered: bool
    effect: bool


class _Nesting:
    def __init__(self, block: Expression, everything: bool, but: Collection[Local]):
        self.everything = everything
        self.uses = count_uses(block)
        self.stay = recursive_functions(block) | {local for local in but if self.uses[local] > 1}
        self.unused = {local for local in but if self.uses[local] == 0}

    def block(self, block: Expression) -> Steps:
        """A block with operands in their places, and whether it has an effect."""
        out: list[Statement] = []
        here = Counter(x.local for _, op in operations(block) for x in operands(op) if isinstance(x, LocalVar))
        pending: dict[Local, _Pending] = {}
        ordered: list[Local] = []  # those of `pending` whose place among effects matters, in order
        effects = False

        def flush() -> None:
            for local in ordered:
                waiting = pending.pop(local)
                out.append(self.bound(waiting.statement, waiting.effect))
            ordered.clear()

        def with_pending(op: Expression) -> tuple[Expression, bool]:
            """An operation with what waits put in its place, and whether some of that is ordered."""
            names = [x.local if isinstance(x, LocalVar) else None for x in operands(op)]
            wanted = [x for x in names if x is not None and x in pending and pending[x].ordered]
            if wanted and ordered[len(ordered) - len(wanted) :] != wanted:
                flush()
                wanted = []
            del ordered[len(ordered) - len(wanted) :]
            new = tuple(
                pending.pop(name).statement.value if name is not None and name in pending else operand
                for name, operand in zip(names, operands(op), strict=True)
            )
            return with_operands(op, new), bool(wanted)

        for s in statements(block):
            value, has_ordered = with_pending(s.value)
            inner, effect = yield self.inner(s.value)
            if inner:
                value = with_expressions(value, (*operands(value), *inner))
            ordering = effect or has_ordered
            effects |= effect
            treated = isinstance(s.local, Temporary)
            treated |= self.everything and not ordering and s.local not in self.stay
            if isinstance(s.local, Temporary) and self.uses[s.local] == 0 and not ordering:
                continue
            if self.everything and s.local in self.unused and not ordering:
                continue  # a graph binding has one type, and nothing says which
            if treated and self.uses[s.local] == here[s.local] == 1:
                pending[s.local] = _Pending(replace(s, value=value), ordering, effect)
                if ordering:
                    ordered.append(s.local)
                continue
            if ordering:
                flush()
            out.append(self.bound(replace(s, value=value), ordering))
        last = result(block)
        value, _ = with_pending(last)
        flush()
        inner, effect = yield self.inner(last)
        if inner:
            value = with_expressions(value, (*operands(value), *inner))
        return body(out, value, block.span), effects or effect

    def inner(self, operation: Expression) -> Steps:
        """The scopes of an operation, and whether the operation has an effect."""
        new, effect = [], _own_effect(operation)
        for scope in scopes(operation):
            block, within = yield self.block(scope)
            new.append(block)
            effect |= within and not isinstance(operation, Function)
        return new, effect

    def bound(self, s: Statement, effect: bool) -> Statement:
        """The statement that binds what is no operand."""
        if isinstance(s.local, Temporary) or (self.everything and isinstance(s, Let)):
            if effect or s.local in self.stay:
                return s if isinstance(s, Let) else Let(s.local, s.value, span=s.span)
            return GraphBinding(s.local, s.value, span=s.span)
        return s


def _own_effect(operation: Expression) -> bool:
    """Whether the place of an operation in the order of evaluation may matter, its scopes aside."""
    match operation:
        case CallExpr(callee=OperatorName(name=name)):
            return name in FAILING_OPERATORS
        case CallExpr():
            return not isinstance(operation.callee, ConstructorName)
        case RefNew() | RefRead() | RefWrite():
            return True
        case MatchExpr():
            return not operation.complete
    return False


def is_pure_by_form(operation: Expression) -> bool:
    """Whether an operation certainly does nothing but give a value."""
    return isinstance(operation, Function) or not (_own_effect(operation) or scopes(operation))


def recursive_functions(block: Expression) -> set[Local]:
    """The locals within a block whose functions use them."""
    found: set[Local] = set()
    stack: list[tuple[Iterator[tuple[Local | None, Expression]], Local | None]] = [(operations(block), None)]
    around: set[Local] = set()  # the functions that the walk is in
    while stack:
        inner, of = stack[-1]
        local, op = next(inner, (None, None))
        if op is None:
            stack.pop()
            around.discard(of)  # type: ignore[arg-type]
            continue
        found.update(x.local for x in operands(op) if isinstance(x, LocalVar) and x.local in around)
        for i, scope in enumerate(scopes(op)):
            name = local if isinstance(op, Function) and i == 0 else None
            if name is not None:
                around.add(name)
            stack.append((operations(scope), name))
    return found


# ---------------------------------------------------------------- dead statements


def without(function: Function, droppable: Callable[[Statement], bool]) -> Function:
    """A function in A-normal form without those statements that nothing uses and that may be dropped."""
    return replace(function, body=_kept(function.body, set(), droppable))


def _kept(block: Expression, live: set[Local], droppable: Callable[[Statement], bool]) -> Expression:
    """A block without dead code; what it uses is added to `live`."""
    last = _kept_in(result(block), live, droppable)
    kept = []
    for s in reversed(statements(block)):
        if s.local in live or not droppable(s):
            value = _kept_in(s.value, live, droppable)
            kept.append(s if value is s.value else replace(s, value=value))
    return body(kept[::-1], last, block.span)


def _kept_in(op: Expression, live: set[Local], droppable: Callable[[Statement], bool]) -> Expression:
    live.update(x.local for x in operands(op) if isinstance(x, LocalVar))
    if not scopes(op):
        return op
    return with_scopes(op, tuple(_kept(scope, live, droppable) for scope in scopes(op)))
