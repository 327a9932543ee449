"""What the checker found: the type of every expression, the schemes of functions, and their instances at each use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..terms.solver import TypeRelation
from ..terms.terms import Rigid, Unknown, prune, resolved
from ..tree import Arm, Attribute, CallExpr, Expression, Local, ModuleTree, OperatorName, TypeParam


@dataclass(eq=False)
class Scheme:
    """A type that stands for many: `fn <A>(A) -> A`, and what must hold of its parameters.

    Attributes:
        type: the type.
        params: what it abstracts over: declared parameters (`Rigid`), in the order of their declaration, then what inference
            left open (`Unknown`).
        relations: the relations that every instance must fulfil.
        declared: how many parameters can be given at a call, `f<int32>(..)`: the first ones.
    """

    type: Any
    params: tuple[Rigid | Unknown, ...] = ()
    relations: list[TypeRelation] = field(default_factory=list)
    declared: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it stands for one type alone."""
        return not self.params and not self.relations


@dataclass(frozen=True, eq=False)
class Instance:
    """A use of something polymorphic.

    Attributes:
        scheme: what is used.
        images: the types that stand for its parameters here, in their order.
    """

    scheme: Scheme
    images: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Checked:
    """A module with its types.

    Within a polymorphic function types are in terms of the parameters of its scheme (and of the schemes around it). Whoever
    specialises a function replaces them by the `images` of the use at hand.

    Attributes:
        tree: the module; graph bindings are placed in it, so these are the nodes that the types belong to.
        types: expression -> its type; see `type_of`.
        locals: local -> its scheme.
        schemes: name of a definition -> its scheme.
        constructors: name of a constructor -> its scheme, a function's if it has fields.
        instances: a use (`LocalVar`, `GlobalVar`, `ConstructorName`) of something polymorphic -> its instance.
        attributes: an application of an operator, or an operator as a value -> all its attributes, with the defaults of those
            left out.
        parameters: a declared parameter -> its declaration in the tree.
        redundant: arms of matches that no value gets to, as those above them take all that they would match.
    """

    tree: ModuleTree
    types: Mapping[Expression, Any]
    locals: Mapping[Local, Scheme]
    schemes: Mapping[str, Scheme]
    constructors: Mapping[str, Scheme]
    instances: Mapping[Expression, Instance]
    attributes: Mapping[CallExpr | OperatorName, Mapping[str, Attribute]]
    parameters: Mapping[Rigid, TypeParam]
    redundant: Sequence[Arm]

    def type_of(self, expression: Expression) -> Any:
        """The type of an expression: one of the classes of `text.terms.terms`, without links."""
        return resolved(self.types[expression])

    def images(self, use: Expression) -> dict[int, Any]:
        """The types that stand for the parameters of a scheme at a use: by `id` of the parameter, as `terms.unify.replaced` takes
        them; empty where what is used is not polymorphic.
        """
        found = self.instances.get(use)
        if found is None:
            return {}
        return {id(p): resolved(t) for p, t in zip(found.scheme.params, found.images, strict=True)}

    def is_known(self, t: Any) -> bool:
        """Whether inference found what a part of a type is."""
        return not isinstance(prune(t), Unknown)
