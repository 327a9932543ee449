"""What the partial evaluator knows of a value, and the residual code that it writes.

A value is `Dynamic`, an atom of residual code of which nothing else is known, or *known*: a constant, a tuple or a constructor
applied to values that may be dynamic themselves (partially static), a closure, a reference. A known value exists in residual
code only once something dynamic needs it: then it is *lifted*. Each known value has a slot in the block where it was made, and
is bound there when it is lifted, so it is bound once and in reach of whatever may need it. References, and what holds them,
are bound where they are lifted, as what they hold changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...tree import Expression, Function, Local, LocalVar, Statement, body


@dataclass(eq=False, slots=True)
class Slot:
    """A place in a residual block, where a statement may be put later."""

    block: Residual
    statement: Statement | None = None


@dataclass(eq=False, slots=True)
class Residual:
    """A block of residual code under construction.

    Attributes:
        parent: the block around it.
        depth: how many blocks are around it; whatever is in it is under the control of as many dynamic decisions.
        items: its statements and slots.
    """

    parent: Residual | None = None
    depth: int = 0
    items: list[Statement | Slot] = field(default_factory=list)

    def within(self, other: Residual) -> bool:
        """Whether this is another block or stands in it, so that what is bound there is visible."""
        block: Residual | None = self
        while block is not None and block.depth > other.depth:
            block = block.parent
        return block is other

    def finished(self, last: Expression) -> Expression:
        """The block as an expression, with a result."""
        found = [s.statement if isinstance(s, Slot) else s for s in self.items]
        statements = [s for s in found if s is not None]
        if statements and isinstance(last, LocalVar) and statements[-1].local is last.local:
            value = statements[-1].value
            if not (isinstance(value, Function) and statements[-1].local in _named(value)):
                last = value
                statements.pop()
        return body(statements, last)


def _named(function: Function) -> set[Local]:
    from ..common.normal import all_operations, operands

    return {x.local for _, op in all_operations(function.body) for x in operands(op) if isinstance(x, LocalVar)}


class Environment:
    """The values of the locals of one activation of a function.

    Attributes:
        values: local -> its value.
        parent: that of the activation in which the function was made.
        annotations: whether annotations in the function mean something where its residual code stands.
    """

    __slots__ = ("annotations", "parent", "values")

    def __init__(self, parent: Environment | None, annotations: bool):
        self.values: dict[Local, PartialValue] = {}
        self.parent, self.annotations = parent, annotations

    def __getitem__(self, local: Local) -> PartialValue:
        env: Environment | None = self
        while env is not None:
            found = env.values.get(local)
            if found is not None:
                return found
            env = env.parent
        raise KeyError(local)


class PartialValue:
    """What is known of a value."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class Dynamic(PartialValue):
    """A value of which nothing is known but the atom that stands for it."""

    atom: Expression


@dataclass(eq=False, slots=True)
class KnownName(PartialValue):
    """A definition, an operator or a constructor with fields."""

    atom: Expression


@dataclass(eq=False, slots=True)
class KnownConstant(PartialValue):
    """A tensor of which everything is known.

    Attributes:
        atom: a `Literal` or a `TensorConstant`.
    """

    atom: Expression


@dataclass(eq=False, slots=True)
class Known(PartialValue):
    """What has to be lifted before residual code can use it.

    Attributes:
        slot: where it was made.
        lifted: the atom that stands for it, and the block where that is bound.
        has_cells: whether a reference is reachable from it, once that has been looked up.
    """

    slot: Slot
    lifted: tuple[Expression, Residual] | None = field(default=None, kw_only=True)
    has_cells: bool | None = field(default=None, kw_only=True)


@dataclass(eq=False, slots=True)
class KnownTuple(Known):
    """A tuple."""

    fields: tuple[PartialValue, ...]


@dataclass(eq=False, slots=True)
class KnownData(Known):
    """A value of a data type."""

    constructor: str
    fields: tuple[PartialValue, ...]


@dataclass(eq=False, slots=True)
class KnownClosure(Known):
    """A function and the values of its free variables.

    Attributes:
        function: the function.
        environment: where it was made.
        name: what it is bound to.
    """

    function: Function
    environment: Environment
    name: str = "f"


@dataclass(eq=False, slots=True)
class KnownCell(Known):
    """A reference. Until it is lifted nobody but the evaluator knows it, and nobody else can write to it.

    Attributes:
        initial: what it held first.
        name: what it is bound to.
    """

    initial: PartialValue
    name: str = "r"
