"""Alteration of layouts: the inside of a program works in another layout than its signature says.

    conv2d(conv2d(x, w), v)
    =>  %0 = layout_transform(x, NCHW -> NHWC)
        %1 = conv2d(%0, layout_transform(w, OIHW -> HWIO), data_layout="NHWC", kernel_layout="HWIO")
        %2 = conv2d(%1, layout_transform(v, ..), ..)
        layout_transform(%2, NHWC -> NCHW)

Each convolution is computed in the new layout, between two transformations. Operators that do not mind go on in it, elementwise
ones and those for which layout is an attribute, so that a transformation there and one back meet and cancel; what remains is
at the ends. Parameters and results keep their layouts.

Relay, 2019 paper, section 4.4. The native kernels choose layouts for themselves, tile by tile (`backend/tvm/kernels`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...utils.errors import ValueError_
from ..check.module import check
from ..operators import OPERATORS
from ..tree import (
    CallExpr,
    Expression,
    Let,
    Literal,
    Local,
    LocalVar,
    ModuleTree,
    Projection,
    Statement,
    TupleExpr,
    apply,
)
from .common.convolutions import changed, layer_of
from .common.normal import Temporary, without
from .common.passes import TreePass
from .common.rewriting import TreeRewriter, operator_of
from .common.types_known import Types

POOLS = (
    "nn.max_pool2d",
    "nn.avg_pool2d",
    "nn.global_max_pool2d",
    "nn.global_avg_pool2d",
    "nn.adaptive_avg_pool2d",
    "nn.adaptive_max_pool2d",
)
"""Operators on images whose attribute `layout` says what their axes are."""
OLD, OLD_KERNEL = "NCHW", "OIHW"


@dataclass(frozen=True)
class AlterOpLayout(TreePass):
    """Computes convolutions of images in another layout.

    Attributes:
        layout: the layout of images: N, C, H and W in some order.
        kernel_layout: the layout of weights: O, I, H and W in some order.
    """

    layout: str = "NHWC"
    kernel_layout: str = "HWIO"

    def __post_init__(self):
        if sorted(self.layout) != sorted(OLD) or sorted(self.kernel_layout) != sorted(OLD_KERNEL):
            raise ValueError_(
                f"AlterOpLayout: {self.layout!r} and {self.kernel_layout!r}; "
                f"layouts are the letters of {OLD} and {OLD_KERNEL} in some order"
            )

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with convolutions in the new layout."""
        if self.layout == OLD and self.kernel_layout == OLD_KERNEL:
            return tree
        types = Types(check(tree))

        def alter(name, function):
            alteration = _Alteration(types, self)
            new = alteration.function(function)
            return without(new, lambda s: s.local in alteration.made)

        return tree.mapped(alter)


class _Alteration(TreeRewriter):
    """Attributes:
    altered: local -> the same value in the new layout; for a tuple, of its first field.
    made: the locals that the pass has made, or has made superfluous.
    """

    def __init__(self, types: Types, options: AlterOpLayout):
        super().__init__()
        self.types, self.options = types, options
        self.altered: dict[Local, Expression] = {}
        self.made: set[Local] = set()
        self.tuples: dict[Local, tuple[Expression, ...]] = {}
        self.firsts: dict[Local, Expression] = {}

    @property
    def order(self) -> tuple[int, ...]:
        """Where each axis of the new layout is in the old one."""
        return tuple(OLD.index(x) for x in self.options.layout)

    def axis(self, old: int) -> int:
        """Where an axis of the old layout is in the new one."""
        return self.options.layout.index(OLD[old])

    def block(self, block: Expression) -> Expression:
        before = dict(self.altered)
        try:
            return super().block(block)
        finally:
            self.altered = before  # what was made within is not visible outside

    def with_replaced(self, op: Expression) -> Expression:
        new = super().with_replaced(op)
        if new is not op:
            self.types.copy(op, new)
        return new

    def bind(self, s: Statement, value: Expression, out: list[Statement]) -> None:
        if isinstance(value, TupleExpr):
            self.tuples[s.local] = value.fields
        super().bind(s, value, out)

    def operation(self, op: Expression, local: Local | None, out: list[Statement]) -> Expression:
        new = self.in_new_layout(op, local, out)
        if new is None:
            return self.with_inner(op)
        image = self.emit(new, out, op)
        if local is not None:
            self.altered[local] = image
            self.made.add(local)
        return apply("layout_transform", image, span=op.span, src_layout=self.options.layout, dst_layout=OLD)

    def in_new_layout(self, op: Expression, local: Local | None, out: list[Statement]) -> Expression | None:
        """An operation whose result is in the new layout; None if it does not gain by it."""
        if isinstance(op, Projection) and isinstance(op.tuple, LocalVar) and op.tuple.local in self.firsts:
            return Projection(self.firsts[op.tuple.local], 0, span=op.span) if op.index == 0 else None
        name = operator_of(op)
        if name is None or not isinstance(op, CallExpr) or len(self.types.shape(op) or ()) not in (0, 4):
            return None
        if name == "nn.conv2d":
            return self.convolution(op, out)
        if name == "concatenate":
            return self.concatenation(op, out)
        if not any(isinstance(a, LocalVar) and a.local in self.altered for a in op.args):
            return None
        if name in POOLS and OPERATORS[name].complete(op.attributes)["layout"] == OLD:
            return replace(op, args=(self.image(op.args[0], out),), attributes=changed(op, layout=self.options.layout))
        if name in ("nn.bias_add", "nn.batch_norm"):
            return self.on_channels(op, local, out)
        if name in ("nn.prelu", "nn.layer_norm", "nn.softmax", "nn.log_softmax") or not self.is_pointwise(name):
            return None
        args = [self.operand(a, out) for a in op.args]
        return None if None in args else replace(op, args=tuple(args))

    @staticmethod
    def is_pointwise(name: str) -> bool:
        """Whether an operator works element by element."""
        return OPERATORS[name].family in ("Broadcast", "Identity") or name in (
            "nn.relu",
            "nn.leaky_relu",
            "clip",
            "cast",
            "where",
        )

    def convolution(self, op: CallExpr, out: list[Statement]) -> Expression | None:
        """A convolution in the new layout."""
        layer = layer_of(op)
        if layer is None or (layer.data, layer.kernel) != (OLD, OLD_KERNEL) or len(op.args) != 2:
            return None
        weights = apply(
            "layout_transform", op.args[1], span=op.span, src_layout=OLD_KERNEL, dst_layout=self.options.kernel_layout
        )
        kernel = self.emit(weights, out, None)
        attributes = changed(op, data_layout=self.options.layout, kernel_layout=self.options.kernel_layout)
        return CallExpr(op.callee, (self.image(op.args[0], out), kernel), attributes, span=op.span)

    def concatenation(self, op: CallExpr, out: list[Statement]) -> Expression | None:
        """A concatenation of images in the new layout."""
        fields = self.tuples.get(op.args[0].local) if isinstance(op.args[0], LocalVar) else None
        if not fields or len(self.types.shape(op) or ()) != 4:
            return None
        if not all(isinstance(f, LocalVar) and f.local in self.altered for f in fields):
            return None
        if isinstance(op.args[0], LocalVar):
            self.made.add(op.args[0].local)
        images = self.emit(TupleExpr(tuple(self.image(f, out) for f in fields)), out, None)
        axis = OPERATORS["concatenate"].complete(op.attributes)["axis"] % 4
        return replace(op, args=(images,), attributes=changed(op, axis=self.axis(axis)))

    def on_channels(self, op: CallExpr, local: Local | None, out: list[Statement]) -> Expression | None:
        """An operator with numbers for each channel, whose axis is an attribute."""
        axis = OPERATORS[operator_of(op) or ""].complete(op.attributes)["axis"]
        rank = len(self.types.shape(op.args[0]) or ())
        if rank != 4 or not isinstance(op.args[0], LocalVar) or op.args[0].local not in self.altered:
            return None
        new = replace(
            op, args=(self.image(op.args[0], out), *op.args[1:]), attributes=changed(op, axis=self.axis(axis % 4))
        )
        if operator_of(op) == "nn.bias_add":
            return new
        if local is not None:  # a triple: its first field is an image
            self.firsts[local] = self.emit(new, out, None)
            self.made.add(local)
        return None

    def image(self, x: Expression, out: list[Statement]) -> Expression:
        """An image in the new layout."""
        if isinstance(x, LocalVar) and x.local in self.altered:
            return self.altered[x.local]
        new = self.emit(apply("layout_transform", x, src_layout=OLD, dst_layout=self.options.layout), out, None)
        if isinstance(x, LocalVar):
            self.altered[x.local] = new
        return new

    def operand(self, x: Expression, out: list[Statement]) -> Expression | None:
        """An operand of an elementwise operator, for images in the new layout; None where its shape is not known."""
        if isinstance(x, Literal):
            return x
        if isinstance(x, LocalVar) and x.local in self.altered:
            return self.altered[x.local]
        shape: tuple[Any, ...] | None = self.types.shape(x)
        if shape is None:
            return None
        if len(shape) == 4 and not all(s == 1 for s in shape):
            return self.image(x, out)
        if all(s == 1 for s in shape):
            return x
        if all(isinstance(s, int) for s in shape):
            padded = (1,) * (4 - len(shape)) + shape
            new = tuple(padded[k] for k in self.order)
            moved = [k for k in self.order if padded[k] != 1]
            if moved == sorted(moved):  # the elements stay in order
                return self.emit(apply("reshape", x, newshape=new), out, None)
            full = self.emit(apply("reshape", x, newshape=padded), out, None)
            return self.emit(apply("transpose", full, axes=self.order), out, None)
        return None

    def emit(self, op: Expression, out: list[Statement], like: Expression | None) -> LocalVar:
        """Bind an operation to a temporary."""
        local = Temporary("t", span=op.span)
        self.made.add(local)
        out.append(Let(local, op, span=op.span))
        return LocalVar(local, span=op.span)
