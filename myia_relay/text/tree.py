"""The tree of Relay text: what the parser makes, and what the checker, the passes, lowering and the printer read.

The contract, for whoever reads or makes trees:

*Nodes* are immutable and compared by identity (`equality.equal` compares by meaning). Each has a `span`, the place in the
text, or None where a pass made it; keep the span of what a new node stands for, as errors are shown there.

*Binders are objects.* A name is resolved when it is parsed: a `Local` is bound in exactly one place (a parameter, a `Let`,
a `GraphBinding`, a variable of a pattern), and `LocalVar(local)` uses it. Two locals of one name are two objects, so
shadowing cannot confuse anybody; the printer makes names unique. The same holds of `TypeParam` and `TypeVar`. Whoever copies
an expression renews its binders (`binders.renewed`), as a binder never occurs twice in a module.
Globals, constructors, operators and data types are named by strings, which are looked up in the `ModuleTree`.

*A `Body` is flat.* `let %a = ..; let %b = ..; e` is one `Body` of two statements and a result, not nested nodes, so ten
thousand `let` are a loop and no recursion. A `Body` has a statement at least, and its result is no `Body` (`body` takes care
of both): a block without statements is its result. The scope of a statement's local is the statements after it and the
result; a `Let` whose value is a `Function` is visible in that function, too (no other `Let`, and no `GraphBinding`).
`e; f` is a `Let` of a local named `_`.

*A `GraphBinding`* (`%0 = e;`) is where the text has it. It is visible beyond its block: to the end of its function. Its value
is computed at its place or, where it is named outside of the block that it stands in, in the nearest block that holds all
uses, before the statement with the first of them. `placement.placed(tree)` moves all bindings to where they are computed;
after that they are ordinary statements, visible where a `Let` would be. The checker, lowering and the passes work on placed
trees; only the parser, the printer, JSON and equality see what is written.

*Scopes* are bodies: of functions, of the branches of `IfExpr`, of the arms of `MatchExpr`, and those that are values.

*Types* as written. `float32` is `TensorType_((), "float32")`. Where nothing is written a field is None; `_` is `Blank`. A size is
an int, `ANY_SIZE` (`?`) or a `TypeVar`. The shape variables that a function is the outermost to name are among its
`type_params` with `implicit=True`, behind those that are declared.

*Depth.* Operands nest as deeply as the text does (`a + b + c + ...` is a left spine of any length). Walk with `walk`,
`expressions`, `rewritten` of `walk.py`, which do not recurse, or write steps for `utils.trampoline.run`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import TypeAlias

import numpy as np

from .span import Span

Kind: TypeAlias = OneOf["Type", "Shape", "ShapeVar", "BaseType"]
KINDS: tuple[Kind, ...] = ("Type", "Shape", "ShapeVar", "BaseType")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TreeNode:
    """What all nodes share.

    Attributes:
        span: the place in the text; None for what a pass made from nothing that was written.
    """

    span: Span | None = field(default=None, repr=False)


# ---------------------------------------------------------------- types


@dataclass(frozen=True, eq=False, slots=True)
class TypeParam(TreeNode):
    """A type parameter of a function, a function type, a data type; a binder.

    Attributes:
        name: as written.
        kind: what it stands for: a type, a whole shape, one size, a dtype.
        implicit: a shape variable that was used without a declaration.
    """

    name: str
    kind: Kind = "Type"
    implicit: bool = False


class TypeExpr(TreeNode):
    """A type as written."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class TypeVar(TypeExpr):
    """A use of a type parameter: as a type, a shape, a size or a dtype."""

    param: TypeParam


class AnySize:
    """The size `?`, which agrees with any other."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"

    def __reduce__(self):
        return "ANY_SIZE"


ANY_SIZE = AnySize()
Size: TypeAlias = "int | AnySize | TypeVar"
"""A size of a shape."""


@dataclass(frozen=True, eq=False, slots=True)
class TensorType_(TypeExpr):
    """`Tensor[shape, dtype]`; a dtype alone has the shape ().

    Attributes:
        shape: the sizes, or a variable of kind Shape.
        dtype: its name ("float32", "bool", ...), or a variable of kind BaseType.
    """

    shape: tuple[Size, ...] | TypeVar
    dtype: str | TypeVar


@dataclass(frozen=True, eq=False, slots=True)
class TupleType(TypeExpr):
    """`(A, B)`; the unit type is `()`."""

    fields: tuple[TypeExpr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class RelationClause(TreeNode):
    """A relation behind `where`.

    Attributes:
        relation: its name.
        args: the types it is about; None for the parameters and the result of the function that it stands at.
    """

    relation: str
    args: tuple[TypeExpr, ...] | None = None


@dataclass(frozen=True, eq=False, slots=True)
class FunctionType(TypeExpr):
    """`fn [A](A) -> A where ...`."""

    params: tuple[TypeExpr, ...]
    result: TypeExpr
    type_params: tuple[TypeParam, ...] = ()
    relations: tuple[RelationClause, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class RefType(TypeExpr):
    """`ref(A)`."""

    content: TypeExpr


@dataclass(frozen=True, eq=False, slots=True)
class DataType(TypeExpr):
    """`List[A]`: an instance of a data type or of an extern type of the module.

    Attributes:
        name: of the `TypeDef` or `ExternType`.
        args: one for each of its parameters; a `TensorType_`, `TypeVar`, ... of whatever kind.
    """

    name: str
    args: tuple[TypeExpr, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class ShapeExpr(TypeExpr):
    """A whole shape as an argument for a parameter of kind Shape or ShapeVar: `@f<(2, 3)>(..)`, `@f<3>(..)`.

    Attributes:
        sizes: the sizes; an int or ANY_SIZE alone, written without parentheses, is one size.
    """

    sizes: tuple[Size, ...] | int | AnySize


@dataclass(frozen=True, eq=False, slots=True)
class Blank(TypeExpr):
    """`_`: to be inferred."""


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, eq=False, slots=True)
class Local(TreeNode):
    """A local variable, or the number of a graph binding; a binder.

    Attributes:
        name: without its `%`.
    """

    name: str


class Expression(TreeNode):
    """What has a value."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class Literal(Expression):
    """A number or a truth value: a tensor of rank 0.

    Attributes:
        value: a bool, int or float that the dtype holds exactly.
        dtype: "int32", "float32", "bool", ...
    """

    value: bool | int | float
    dtype: str


@dataclass(frozen=True, eq=False, slots=True)
class TensorConstant(Expression):
    """A tensor of rank 1 at least (`constant` makes a `Literal` of a smaller one).

    Attributes:
        value: read-only, C-contiguous.
    """

    value: np.ndarray


@dataclass(frozen=True, eq=False, slots=True)
class LocalVar(Expression):
    """`%x` or `%0`."""

    local: Local


@dataclass(frozen=True, eq=False, slots=True)
class GlobalVar(Expression):
    """`@f`: a definition of the module."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class OperatorName(Expression):
    """`nn.conv2d`: an operator, called or as a value."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class ConstructorName(Expression):
    """`Cons`. One without fields is a value as it stands, others are functions; `Nil()` is a `CallExpr` of it."""

    name: str


Attribute: TypeAlias = "bool | int | float | str | None | tuple[Attribute, ...]"
"""An attribute: lists and tuples alike are tuples."""
Attributes: TypeAlias = tuple[tuple[str, Attribute], ...]
"""Names and values in the order of the text."""


@dataclass(frozen=True, eq=False, slots=True)
class CallExpr(Expression):
    """`f<types>(args, name=attribute)`. The operators `+`, `==`, ... and prefix `-` are calls of an `OperatorName`.

    Attributes:
        callee: what is called: an operator, a constructor, a global, any expression.
        args: evaluated from left to right, then the callee.
        attributes: of operators.
        type_args: empty where none are written.
    """

    callee: Expression
    args: tuple[Expression, ...]
    attributes: Attributes = ()
    type_args: tuple[TypeExpr, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class TupleExpr(Expression):
    """`(a, b)`, `(a,)`, `()`."""

    fields: tuple[Expression, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Projection(Expression):
    """`t.0`."""

    tuple: Expression
    index: int


@dataclass(frozen=True, eq=False, slots=True)
class IfExpr(Expression):
    """`if (condition) { then } else { otherwise }`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, eq=False, slots=True)
class MatchExpr(Expression):
    """`match (value) { pattern => expression, .. }`.

    Attributes:
        value: what is taken apart.
        arms: the first that fits is taken.
        complete: False for `match?`, which raises ValueError where no arm fits.
    """

    value: Expression
    arms: tuple[Arm, ...]
    complete: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class RefNew(Expression):
    """`ref(value)`."""

    value: Expression


@dataclass(frozen=True, eq=False, slots=True)
class RefRead(Expression):
    """`ref_read(ref)`, `!ref`."""

    ref: Expression


@dataclass(frozen=True, eq=False, slots=True)
class RefWrite(Expression):
    """`ref_write(ref, value)`, `ref := value`; the value of it is `()`."""

    ref: Expression
    value: Expression


@dataclass(frozen=True, eq=False, slots=True)
class Param(TreeNode):
    """A parameter of a function."""

    local: Local
    annotation: TypeExpr | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Function(Expression):
    """`fn [A](%x: A, attribute=1) -> A where .. { body }`, and what stands behind `def @f`.

    Attributes:
        params: the parameters.
        body: an expression; a `Body` where it has statements.
        result: the annotation of the result.
        type_params: declared ones, then implicit shape variables.
        attributes: `Primitive=1`, ...
        relations: behind `where`.
    """

    params: tuple[Param, ...]
    body: Expression
    result: TypeExpr | None = None
    type_params: tuple[TypeParam, ...] = ()
    attributes: Attributes = ()
    relations: tuple[RelationClause, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Let(TreeNode):
    """`let %x: annotation = value;`."""

    local: Local
    value: Expression
    annotation: TypeExpr | None = None


@dataclass(frozen=True, eq=False, slots=True)
class GraphBinding(TreeNode):
    """`%0 = value;`."""

    local: Local
    value: Expression


Statement: TypeAlias = "Let | GraphBinding"


@dataclass(frozen=True, eq=False, slots=True)
class Body(Expression):
    """Statements and a result; made by `body`.

    Attributes:
        statements: one at least.
        result: no `Body`.
    """

    statements: tuple[Statement, ...]
    result: Expression


# ---------------------------------------------------------------- patterns


class PatternExpr(TreeNode):
    """What an arm fits."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class WildcardPattern(PatternExpr):
    """`_`."""


@dataclass(frozen=True, eq=False, slots=True)
class VariablePattern(PatternExpr):
    """`%x` or `%x: A`."""

    local: Local
    annotation: TypeExpr | None = None


@dataclass(frozen=True, eq=False, slots=True)
class ConstructorPattern(PatternExpr):
    """`Cons(%head, _)`.

    Attributes:
        constructor: its name.
        fields: one for each field.
    """

    constructor: str
    fields: tuple[PatternExpr, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class TuplePattern(PatternExpr):
    """`(%a, %b)`."""

    fields: tuple[PatternExpr, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Arm(TreeNode):
    """`pattern => body`."""

    pattern: PatternExpr
    body: Expression


# ---------------------------------------------------------------- modules


@dataclass(frozen=True, eq=False, slots=True)
class ConstructorDef(TreeNode):
    """A constructor of a data type; `fields` is empty both for `Nil` and for `Nil()`."""

    name: str
    fields: tuple[TypeExpr, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class TypeDef(TreeNode):
    """`type List[A] { Cons(A, List[A]), Nil, }`."""

    name: str
    type_params: tuple[TypeParam, ...]
    constructors: tuple[ConstructorDef, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ExternType(TreeNode):
    """`extern type Handle[A]`."""

    name: str
    type_params: tuple[TypeParam, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Definition(TreeNode):
    """`def @f(..) { .. }`."""

    name: str
    function: Function


@dataclass(frozen=True, eq=False)
class ModuleTree:
    """A module: types and definitions, in the order of the text. Not to be changed; `with_definitions` makes another.

    Attributes:
        types: by name.
        definitions: by name, without `@`.
        constructors: name -> (its type, itself).
    """

    types: Mapping[str, TypeDef | ExternType] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    constructors: Mapping[str, tuple[TypeDef, ConstructorDef]] = field(init=False)

    def __post_init__(self):
        found = {c.name: (t, c) for t in self.types.values() if isinstance(t, TypeDef) for c in t.constructors}
        object.__setattr__(self, "constructors", found)

    def with_definitions(self, definitions: Mapping[str, Definition]) -> ModuleTree:
        """This module with other definitions."""
        return ModuleTree(self.types, dict(definitions))

    def mapped(self, change: Callable[[str, Function], Function]) -> ModuleTree:
        """This module with `change(name, function)` in place of each function; itself where nothing changes."""
        found = {name: change(name, d.function) for name, d in self.definitions.items()}
        if all(found[name] is d.function for name, d in self.definitions.items()):
            return self
        return self.with_definitions({n: replace(d, function=found[n]) for n, d in self.definitions.items()})


# ---------------------------------------------------------------- making nodes


def body(
    statements: list[Statement] | tuple[Statement, ...], result: Expression, span: Span | None = None
) -> Expression:
    """A block: its result where it has no statements, and one flat `Body` where the result is one."""
    span = span or result.span
    if isinstance(result, Body):
        statements, result = (*statements, *result.statements), result.result
    return Body(tuple(statements), result, span=span) if statements else result


def constant(value: np.ndarray | np.generic, span: Span | None = None) -> Literal | TensorConstant:
    """An array as an expression: a `Literal` where its rank is 0."""
    if value.ndim == 0:
        return Literal(value.item() if value.dtype.kind in "biuf" else float(value), value.dtype.name, span=span)
    array = np.array(value, order="C")
    array.setflags(write=False)
    return TensorConstant(array, span=span)


def scalar(dtype: str | TypeVar, span: Span | None = None) -> TensorType_:
    """The type of a tensor of rank 0."""
    return TensorType_((), dtype, span=span)


UNIT = TupleType(())


def apply(operator: str, *args: Expression, span: Span | None = None, **attributes: Attribute) -> CallExpr:
    """A call of an operator."""
    return CallExpr(OperatorName(operator, span=span), args, tuple(attributes.items()), span=span)
