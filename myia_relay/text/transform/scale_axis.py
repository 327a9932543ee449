"""Folding of scales of channels into weights.

    conv2d(x, w) * s   =>   conv2d(x, w * s')        conv2d(x * s, w)   =>   conv2d(x, w * s'')

Convolutions and dense layers are linear: a factor for each output channel may be applied to the weights, and so may one for
each input channel. A factor behind a layer goes back to it through sums with what has one number for each channel, which is
scaled too, through other factors, and, if it is a positive constant, through relu and pooling by the maximum; one before a
layer goes forward in the same way. Where weights and factors are constants, `FoldConstant` computes their products, and
nothing is scaled at run time. The result differs by the rounding of other products.

Relay, 2019 paper, section 4.4. Typed graphs have no such pass: the native kernels apply factors to tiles in registers.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..check.module import check
from ..tree import CallExpr, Expression, Let, Literal, Local, LocalVar, ModuleTree, Statement, apply
from .common.convolutions import LinearLayer, channel_shape, is_positive, layer_of
from .common.normal import Temporary, count_uses, without
from .common.passes import TreePass
from .common.rewriting import TreeRewriter, operator_of
from .common.types_known import Types

THROUGH = ("nn.relu", "nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d", "nn.global_max_pool2d")
"""Operators that commute with positive factors of channels; the sums among them with all."""
LINEAR = ("nn.avg_pool2d", "nn.global_avg_pool2d", "negative")


@dataclass(frozen=True)
class FoldScaleAxis(TreePass):
    """Applies factors of channels to the weights of convolutions and dense layers."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with factors folded."""
        types = Types(check(tree))

        def fold(name, function):
            folding = _ScaleFolding(types, count_uses(function.body))
            new = folding.function(function)
            return without(new, lambda s: s.local in folding.left) if folding.left else new

        return tree.mapped(fold)


class Scale(NamedTuple):
    """A factor.

    Attributes:
        atom: the factor.
        channels: whether it has one number for each channel, or is one number.
        positive: whether it is known to be greater than zero.
    """

    atom: Expression
    channels: bool
    positive: bool


class _ScaleFolding(TreeRewriter):
    """Attributes:
    made: local -> its operation.
    behind: local -> the layer that its value comes from.
    here: the locals of the block at hand.
    left: locals whose operations have been replaced by others.
    """

    def __init__(self, types: Types, uses: Counter[Local]):
        super().__init__()
        self.types, self.uses = types, uses
        self.made: dict[Local, Expression] = {}
        self.behind: dict[Local, LinearLayer | None] = {}
        self.here: set[Local] = set()
        self.left: set[Local] = set()

    def block(self, block: Expression) -> Expression:
        around, self.here = self.here, set()
        try:
            return super().block(block)
        finally:
            self.here = around

    def with_replaced(self, op: Expression) -> Expression:
        new = super().with_replaced(op)
        if new is not op:
            self.types.copy(op, new)
        return new

    def bind(self, s: Statement, value: Expression, out: list[Statement]) -> None:
        super().bind(s, value, out)
        self.note(s.local, value)

    def operation(self, op: Expression, local: Local | None, out: list[Statement]) -> Expression:
        name = operator_of(op)
        if name == "multiply" and isinstance(op, CallExpr):
            for x, s in (op.args, op.args[::-1]):
                new = self.backward(op, x, s, out)
                if new is not None:
                    return new
        elif isinstance(op, CallExpr) and layer_of(op) is not None:
            return self.forward(op, out)
        return self.with_inner(op)

    # ------------------------------------------------------------ behind a layer

    def backward(self, op: CallExpr, x: Expression, s: Expression, out: list[Statement]) -> Expression | None:
        """x * s with the factor in the weights of the layer that x comes from; None where it cannot go there."""
        layer = self.layer_behind(x)
        shape = self.types.shape(x)
        if layer is None or shape is None or self.types.shape(op) != shape:
            return None
        size = shape[layer.channel]
        kind = channel_shape(s, len(shape), layer.channel, size if isinstance(size, int) else None, self.types)
        scale = Scale(s, kind == "channels", is_positive(s))
        if kind is None or not self.can_absorb(x, scale):
            return None
        new = self.absorbed(x, scale, out)
        assert isinstance(new, LocalVar)
        last = out.pop()
        assert last.local is new.local
        return last.value

    def layer_behind(self, x: Expression) -> LinearLayer | None:
        """The layer that a value comes from, through operators that factors of channels may pass."""
        return self.behind.get(x.local) if isinstance(x, LocalVar) else None

    def note(self, local: Local, op: Expression) -> None:
        """Note what a local is bound to."""
        self.made[local] = op
        self.here.add(local)
        layer = layer_of(op)
        if layer is None and isinstance(op, CallExpr):
            name = operator_of(op)
            if name in ("add", "subtract", "multiply"):
                layer = next((found for a in op.args if (found := self.layer_behind(a)) is not None), None)
            elif name in (*THROUGH, *LINEAR, "nn.bias_add"):
                layer = self.layer_behind(op.args[0])
        self.behind[local] = layer

    def can_absorb(self, x: Expression, scale: Scale) -> bool:
        """Whether what a local is bound to can be computed with a factor, for nobody but who applies the factor."""
        if not isinstance(x, LocalVar) or self.uses[x.local] != 1 or x.local not in self.here:
            return False
        op = self.made[x.local]
        layer = layer_of(op)
        if layer is not None:
            return self.types.sizes(layer.op.args[1]) is not None
        if not isinstance(op, CallExpr):
            return False
        name = operator_of(op)
        if name in THROUGH and (scale.positive or name in LINEAR) or name in LINEAR:
            return self.can_absorb(op.args[0], scale)
        if name == "nn.bias_add":
            return self.can_absorb(op.args[0], scale)
        if name in ("add", "subtract", "multiply"):
            return self.side(op, scale) is not None
        return False

    def side(self, op: CallExpr, scale: Scale) -> tuple[int, int] | None:
        """Which operand of a sum or a product comes from the layer, and which is the number of each channel."""
        shape = self.types.shape(op)
        for k, other in ((0, 1), (1, 0)):
            layer = self.layer_behind(op.args[k])
            if layer is None or shape is None or self.types.shape(op.args[k]) != shape:
                continue
            size = shape[layer.channel]
            kind = channel_shape(
                op.args[other], len(shape), layer.channel, size if isinstance(size, int) else None, self.types
            )
            if kind is not None and self.can_absorb(op.args[k], scale):
                return k, other
        return None

    def absorbed(self, x: Expression, scale: Scale, out: list[Statement]) -> Expression:
        """What a local is bound to, computed with a factor."""
        assert isinstance(x, LocalVar)
        op = self.made[x.local]
        assert isinstance(op, CallExpr)
        self.left.add(x.local)
        layer = layer_of(op)
        name = operator_of(op)
        if layer is not None:
            factor = self.factor(scale, len(layer.kernel), layer.out, out)
            weights = self.emit(apply("multiply", op.args[1], factor, span=op.span), op.args[1], out, hidden=True)
            return self.emit(replace(op, args=(op.args[0], weights, *op.args[2:])), x, out)
        if name == "nn.bias_add":
            shape = self.types.shape(op.args[1]) or (0,)
            inner = self.absorbed(op.args[0], scale, out)
            factor = self.factor(scale, len(shape), 0, out)
            bias = self.emit(apply("multiply", op.args[1], factor, span=op.span), op.args[1], out, hidden=True)
            return self.emit(replace(op, args=(inner, bias)), x, out)
        if name in ("add", "subtract", "multiply"):
            side = self.side(op, scale)
            assert side is not None
            args = list(op.args)
            args[side[0]] = self.absorbed(op.args[side[0]], scale, out)
            if name != "multiply":
                args[side[1]] = self.emit(apply("multiply", op.args[side[1]], scale.atom, span=op.span), None, out)
            return self.emit(replace(op, args=tuple(args)), x, out)
        return self.emit(replace(op, args=(self.absorbed(op.args[0], scale, out), *op.args[1:])), x, out)

    def factor(self, scale: Scale, rank: int, axis: int, out: list[Statement]) -> Expression:
        """A factor in the shape in which it is broadcast along one axis of a tensor."""
        if isinstance(scale.atom, Literal):
            return scale.atom
        shape = tuple(-1 if k == axis else 1 for k in range(rank)) if scale.channels else (1,) * rank
        if self.types.sizes(scale.atom) in ((), shape):
            return scale.atom
        return self.emit(apply("reshape", scale.atom, newshape=shape), None, out)

    def emit(self, op: Expression, like: Expression | None, out: list[Statement], hidden: bool = False) -> LocalVar:
        """Bind an operation to a local of its own; its type is that of `like`, and its name, unless it is hidden."""
        local = Temporary("t", span=op.span)
        if isinstance(like, LocalVar) and not hidden and not isinstance(like.local, Temporary):
            local = Local(like.local.name, span=op.span)
        out.append(Let(local, op, span=op.span))
        self.note(local, op)
        self.uses[local] = 1
        if like is not None:
            self.types.locals[local] = self.types.of(like)
        return LocalVar(local, span=op.span)

    # ------------------------------------------------------------ before a layer

    def forward(self, op: CallExpr, out: list[Statement]) -> CallExpr:
        """A layer with factors of its operand's channels in its weights."""
        layer = layer_of(op)
        assert layer is not None
        if layer.groups != 1 or self.types.sizes(op.args[1]) is None:
            return op
        found = self.scaled(op.args[0], layer, through=False)
        if found is None:
            return op
        data, scale = found
        factor = self.factor(scale, len(layer.kernel), layer.into, out)
        weights = self.emit(apply("multiply", op.args[1], factor, span=op.span), op.args[1], out, hidden=True)
        new = replace(op, args=(self.unscaled(op.args[0], data, out), weights, *op.args[2:]))
        self.types.copy(op, new)
        return new

    def scaled(self, x: Expression, layer: LinearLayer, through: bool) -> tuple[Expression, Scale] | None:
        """What an operand of a layer is a product of, or the operand of its relu: what is scaled, and the factor."""
        if not isinstance(x, LocalVar) or self.uses[x.local] != 1 or x.local not in self.here:
            return None
        op = self.made[x.local]
        name = operator_of(op)
        if not isinstance(op, CallExpr):
            return None
        if name in ("nn.relu", "nn.max_pool2d", "nn.avg_pool2d"):
            return self.scaled(op.args[0], layer, through or name != "nn.avg_pool2d")
        if name != "multiply":
            return None
        shape = self.types.shape(x)
        for data, s in (op.args, op.args[::-1]):
            if shape is None or self.types.shape(data) != shape:
                continue
            size = shape[layer.channel]
            kind = channel_shape(s, len(shape), layer.channel, size if isinstance(size, int) else None, self.types)
            if kind is not None and (is_positive(s) or not through):
                return data, Scale(s, kind == "channels", is_positive(s))
        return None

    def unscaled(self, x: Expression, data: Expression, out: list[Statement]) -> Expression:
        """An operand of a layer, computed without the factor that `scaled` found."""
        assert isinstance(x, LocalVar)
        op = self.made[x.local]
        assert isinstance(op, CallExpr)
        self.left.add(x.local)
        if operator_of(op) == "multiply":
            return data
        return self.emit(replace(op, args=(self.unscaled(op.args[0], data, out), *op.args[1:])), x, out)
