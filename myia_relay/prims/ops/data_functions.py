"""Functions over the trees of a family that compiled programs call: equality, sums of cotangents, whole gradients.

Each is a recursive typed graph, generated once for a family:

    a + b          (a) if b is None else (b) if a is None else Node(a.left + b.left, a.right + b.right)
    whole(t, d)    zero(t) if d is None else Node(whole(t.left, d.left), whole(t.right, d.right))
    zero(t)        Leaf(0.0) for Leaf(x), Node(zero(t.left), zero(t.right)) for Node
    like(t, d)     d as a tangent, checked to have the shape of t, with None where all is zero

A sum goes only as deep as both of its operands do, so adding a cotangent of a small part of a tree costs no more than
that part.

Input: a family. Output: graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...abstract.family import Family, Variant
from ...abstract.types import NONE, Array, Data, NoneT, Scalar, Type, tuple_of
from ...ir.build import Builder, Var, as_type
from ...ir.node import Constant, Graph, Node
from ...ir.prim import REGISTRY
from ..rules.broadcast import broadcast_to
from .data import data_as, data_field, data_is, data_make
from .effects import check

Arm = Callable[[Builder, Sequence[Node]], Node]


def choose(b: Builder, condition: Node, then: Arm, orelse: Arm, operands: Sequence[Node]) -> Node:
    """`cond` with branches `(builder, operands) -> Node`."""
    graphs = []
    for name, make in (("then", then), ("orelse", orelse)):
        inner = Graph(f"{b.graph.name}.{name}", None, b.origin)
        params = [inner.add_parameter(f"x{i}", x.type) for i, x in enumerate(operands)]
        inner.output = make(Builder(inner, b.origin), params)
        graphs.append(inner)
    return b.emit(REGISTRY["cond"], (condition, *operands), {"then": graphs[0], "orelse": graphs[1]})


def is_one_of(b: Builder, x: Node, *numbers: int) -> Node:
    """Whether a value is of one of some variants; 0 is None."""
    return b.emit(data_is, (x,), {"type": x.type, "variants": numbers})


def field(b: Builder, x: Node, variant: Variant, index: int) -> Node:
    """A leaf of a record."""
    return b.emit(data_field, (x,), {"type": x.type, "variant": variant.number, "index": index})


def make(b: Builder, t: Data, variant: Variant, leaves: Sequence[Node]) -> Node:
    """A record."""
    return b.emit(data_make, tuple(leaves), {"type": t, "variant": variant.number})


def cast(b: Builder, x: Node, t: Data) -> Node:
    """The same value as one of another type."""
    if x.type == t:
        return x
    return b.constant(None, t) if isinstance(x, Constant) else b.emit(data_as, (x,), {"type": t})


def zero(b: Builder, t: Type) -> Node:
    """Zero of the tangent type of a leaf."""
    if isinstance(t, Scalar):
        return b.constant(as_type(0.0, t), t)
    if isinstance(t, Array):
        scalar = Scalar(t.dtype)
        return broadcast_to(Var(b, b.constant(as_type(0.0, scalar), scalar)), shape=t.shape).node
    return b.constant(None, t if isinstance(t, Data) else NONE)


def parts_or_zeros(b: Builder, d: Node, variant: int, indices: Sequence[int]) -> list[Node]:
    """Some leaves of a tangent that is a record of a variant, or None: their zeros then."""
    own = d.type.family.variants[variant - 1]
    types = [own.leaves[k] for k in indices]

    def pack(b: Builder, nodes: list[Node]) -> Node:
        return b.emit(REGISTRY["make_struct"], tuple(nodes), {"type": tuple_of(*types)})

    both = choose(
        b,
        is_one_of(b, d, 0),
        lambda b, _: pack(b, [zero(b, t) for t in types]),
        lambda b, x: pack(b, [field(b, x[0], own, k) for k in indices]),
        [d],
    )
    return [b.emit(REGISTRY["get_item"], (both,), {"index": i}) for i in range(len(types))]


class Functions:
    """The functions of families that one program needs, each made once."""

    def __init__(self) -> None:
        self.made: dict[tuple, Graph] = {}

    def function(self, name: str, family: Family, types: Sequence[Type], result: Type, body: Arm, *rest: Any) -> Graph:
        """A graph `types -> result`, which may call itself; made when it is first asked for by its name, family and `rest`."""
        key = (name, family, *rest)
        graph = self.made.get(key)
        if graph is None:
            graph = self.made[key] = Graph(f"{name}_{'_'.join(v.cls.__name__ for v in family.variants)}")
            params = [graph.add_parameter(f"x{i}", t) for i, t in enumerate(types)]
            graph.output = Node(result)  # its type, for calls of itself
            graph.output = body(Builder(graph), params)
        return graph

    def call(self, b: Builder, graph: Graph, args: Sequence[Node]) -> Node:
        """A call, of a graph that may not be complete yet."""
        given = tuple(
            cast(b, a, p.type) if isinstance(p.type, Data) else a for a, p in zip(args, graph.params, strict=True)
        )
        return b.graph.apply(graph, *given, type=graph.output.type, origin=b.origin)

    def by_variant(self, family: Family, run: Callable[[Builder, Sequence[Node], Variant], Node]) -> Arm:
        """A branch for each variant of the first operand, which is not None."""

        def from_variant(k: int) -> Arm:
            def arm(b: Builder, x: Sequence[Node]) -> Node:
                variant = family.variants[k]
                if k == len(family.variants) - 1:
                    return run(b, x, variant)
                here = is_one_of(b, x[0], variant.number)
                return choose(b, here, lambda b, x: run(b, x, variant), from_variant(k + 1), x)

            return arm

        return from_variant(0)

    def add(self, b: Builder, x: Node, y: Node) -> Node:
        """The sum of two tangents of one value."""
        family: Family = x.type.family
        t = Data(family, True)

        def each(b: Builder, x: Sequence[Node], variant: Variant) -> Node:
            leaves = []
            for k, leaf in enumerate(variant.leaves):
                pair = [field(b, a, variant, k) for a in x] if not isinstance(leaf, NoneT) else []
                if not pair:
                    leaves.append(zero(b, leaf))
                else:
                    leaves.append(
                        self.add(b, *pair) if isinstance(leaf, Data) else b.emit(REGISTRY["add"], tuple(pair))
                    )
            return make(b, t, variant, leaves)

        def unless_zero(k: int, then: Arm) -> Arm:
            return lambda b, x: choose(b, is_one_of(b, x[k], 0), lambda _, x: x[1 - k], then, x)

        body = unless_zero(1, unless_zero(0, self.by_variant(family, each)))
        return self.call(b, self.function("add", family, (t, t), t, body), (x, y))

    def zero(self, b: Builder, x: Node) -> Node:
        """The gradient of a tree where nothing depends on it."""
        family: Family = x.type.family
        t = Data(family.gradient, True)

        def each(b: Builder, x: Sequence[Node], variant: Variant) -> Node:
            own = family.gradient.variants[variant.number - 1]
            leaves = []
            for k, leaf in enumerate(own.leaves):
                if isinstance(leaf, Data):
                    leaves.append(cast(b, self.zero(b, field(b, x[0], variant, k)), leaf))
                else:
                    leaves.append(zero(b, leaf))
            return make(b, t, own, leaves)

        def body(b: Builder, x: Sequence[Node]) -> Node:
            none = b.constant(None, t)
            return choose(b, is_one_of(b, x[0], 0), lambda b, _: none, self.by_variant(family, each), x)

        return cast(
            b, self.call(b, self.function("zero", family, (Data(family, True),), t, body), (x,)), _gradient_of(x)
        )

    def whole(self, b: Builder, x: Node, d: Node) -> Node:
        """The gradient by a tree, from its cotangent: with zeros where that has none."""
        if isinstance(d, Constant):
            return self.zero(b, x)
        family: Family = x.type.family
        tangents = family.tangent
        assert tangents is not None  # `d` is of them
        t = Data(family.gradient, True)

        def each(b: Builder, x: Sequence[Node], variant: Variant) -> Node:
            own = family.gradient.variants[variant.number - 1]
            ds = tangents.variants[variant.number - 1]
            leaves = []
            for k, leaf in enumerate(own.leaves):
                if isinstance(leaf, Data):
                    inner = self.whole(b, field(b, x[0], variant, k), field(b, x[1], ds, k))
                    leaves.append(cast(b, inner, leaf))
                else:
                    leaves.append(zero(b, leaf) if isinstance(leaf, NoneT) else field(b, x[1], ds, k))
            return make(b, t, own, leaves)

        def body(b: Builder, x: Sequence[Node]) -> Node:
            none = is_one_of(b, x[1], 0)
            return choose(b, none, lambda b, x: cast(b, self.zero(b, x[0]), t), self.by_variant(family, each), x)

        types = (Data(family, True), Data(family.tangent, True))
        return cast(b, self.call(b, self.function("whole", family, types, t, body), (x, d)), _gradient_of(x))

    def like(self, b: Builder, x: Node, d: Node, what: str) -> Node:
        """A tangent of a tree that a user gave, checked to have the tree's shape.

        Args:
            x: the tree.
            d: of its family, or of that of its gradients; None for zero.
            what: how errors call it.
        """
        family, given = x.type.family, d.type.family
        t = Data(family.tangent, True)
        message = f"{what} has not the shape of the {family.name} that it belongs to"

        def each(b: Builder, x: Sequence[Node], variant: Variant) -> Node:
            own = given.variants[variant.number - 1]
            b.emit(check, (is_one_of(b, x[1], variant.number),), {"exception": TypeError, "parts": (message,)})
            leaves = []
            for k, leaf in enumerate(family.tangent.variants[variant.number - 1].leaves):
                if isinstance(leaf, Data):
                    leaves.append(self.like(b, field(b, x[0], variant, k), field(b, x[1], own, k), what))
                else:
                    leaves.append(zero(b, leaf) if isinstance(leaf, NoneT) else field(b, x[1], own, k))
            return make(b, t, variant, leaves)

        def present(b: Builder, x: Sequence[Node]) -> Node:
            if not x[0].type.nullable:
                return self.by_variant(family, each)(b, x)
            numbers = tuple(v.number for v in family.variants)
            b.emit(check, (is_one_of(b, x[0], *numbers),), {"exception": TypeError, "parts": (message,)})
            return self.by_variant(family, each)(b, x)

        def body(b: Builder, x: Sequence[Node]) -> Node:
            none = b.constant(None, t)
            return choose(b, is_one_of(b, x[1], 0), lambda b, _: none, present, x)

        types = (Data(family, True), Data(given, True))
        return self.call(b, self.function("like", family, types, t, body, given, what), (x, d))


def _gradient_of(x: Node) -> Data:
    return Data(x.type.family.gradient, x.type.nullable)


__all__ = ["Functions", "choose", "parts_or_zeros", "zero"]
