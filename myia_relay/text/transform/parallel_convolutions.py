"""Combination of parallel convolutions.

    conv2d(x, w1), conv2d(x, w2), conv2d(x, w3)   =>   %0 = conv2d(x, concatenate((w1, w2, w3))); split(%0)

Convolutions of one tensor that differ in nothing but their weights, and in the number of their output channels, are one convolution
with all output channels (Relay, 2019 paper, section 4.4: the branches of Inception). A convolution that reads what another of them
gives is not one of them, nor is one whose weights are not known where the first of them stands.

The native pipeline makes one product of products with one matrix in loops (`opt.loops.batch_products`); it has no pass for
convolutions.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from ..check.module import check
from ..tree import CallExpr, Expression, Let, Local, LocalVar, ModuleTree, Projection, Statement, TupleExpr, apply, body
from .common.convolutions import LinearLayer, changed, layer_of
from .common.keys import atom_key, attribute_key
from .common.normal import Temporary, operations, result, scopes, statements, with_scopes
from .common.passes import TreePass
from .common.types_known import Types


@dataclass(frozen=True)
class CombineParallelConv2D(TreePass):
    """Makes one convolution of several of the same tensor.

    Attributes:
        min_num_branches: how many there must be at least.
    """

    min_num_branches: int = 3

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with parallel convolutions combined."""
        combination = _Combination(Types(check(tree)), max(2, self.min_num_branches))
        return tree.mapped(lambda name, function: replace(function, body=combination.block(function.body)))


class _Combination:
    def __init__(self, types: Types, least: int):
        self.types, self.least = types, least

    def block(self, block: Expression) -> Expression:
        """A block with its convolutions combined."""
        groups: dict[Hashable, list[tuple[Local, LinearLayer]]] = {}
        position: dict[Local, int] = {}
        for n, (local, op) in enumerate(operations(block)):
            layer = layer_of(op)
            key = self.key(layer) if layer is not None and local is not None else None
            if key is not None and layer is not None and local is not None:
                group = groups.setdefault(key, [])
                weights = layer.op.args[1]
                first = position[group[0][0]] if group else n
                if not isinstance(weights, LocalVar) or position.get(weights.local, -1) < first:
                    group.append((local, layer))
            if local is not None:
                position[local] = n
        combined: dict[Local, list[tuple[Local, LinearLayer]]] = {}
        for group in groups.values():
            if len(group) >= self.least:
                combined[group[0][0]] = group
        written = {s.local: s for s in statements(block)}
        gone = {local for group in combined.values() for local, _ in group}
        out: list[Statement] = []
        for s in statements(block):
            if s.local in combined:
                self.emit(combined[s.local], written, out)
            if s.local not in gone:
                out.append(replace(s, value=self.inner(s.value)) if scopes(s.value) else s)
        return body(out, self.inner(result(block)), block.span)

    def inner(self, op: Expression) -> Expression:
        return with_scopes(op, tuple(map(self.block, scopes(op)))) if scopes(op) else op

    def key(self, layer: LinearLayer) -> Hashable | None:
        """What convolutions must have in common."""
        shape = self.types.sizes(layer.op.args[1])
        if layer.op.callee.name != "nn.conv2d" or layer.groups != 1 or shape is None:  # type: ignore[attr-defined]
            return None
        attributes = tuple(sorted((n, attribute_key(v)) for n, v in layer.attributes.items() if n != "channels"))
        window = tuple(s for k, s in enumerate(shape) if k != layer.out)
        return (atom_key(layer.op.args[0]), window, attributes, self.types.dtype(layer.op.args[1]))

    def emit(
        self, group: list[tuple[Local, LinearLayer]], written: dict[Local, Statement], out: list[Statement]
    ) -> None:
        """Compute all convolutions of a group at once, and take the result apart."""
        first = group[0][1]
        op = first.op

        def bound(value: Expression) -> LocalVar:
            local = Temporary("t", span=op.span)
            out.append(Let(local, value, span=op.span))
            return LocalVar(local, span=op.span)

        weights = bound(TupleExpr(tuple(layer.op.args[1] for _, layer in group), span=op.span))
        joined = bound(apply("concatenate", weights, span=op.span, axis=first.out))
        sizes = [(self.types.sizes(layer.op.args[1]) or ())[first.out] for _, layer in group]
        attributes = changed(op, channels=sum(sizes)) if "channels" in dict(op.attributes) else op.attributes
        whole = bound(CallExpr(op.callee, (op.args[0], joined), attributes, span=op.span))
        ends = tuple(sum(sizes[: k + 1]) for k in range(len(sizes) - 1))
        parts = bound(apply("split", whole, span=op.span, indices_or_sections=ends, axis=first.channel))
        for k, (local, _) in enumerate(group):
            out.append(replace(written[local], value=Projection(parts, k, span=op.span)))
