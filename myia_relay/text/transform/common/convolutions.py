"""What the passes over convolutions and dense layers share: axes of layouts, channels of operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...operators import OPERATORS
from ...tree import CallExpr, Expression, Literal, TensorConstant
from .rewriting import operator_of
from .types_known import Types

WINDOWS = {"nn.conv1d": ("NCW", "OIW"), "nn.conv2d": ("NCHW", "OIHW"), "nn.conv3d": ("NCDHW", "OIDHW")}
"""Convolutions, with their default layouts."""


@dataclass(frozen=True)
class LinearLayer:
    """An application of a convolution or a dense layer, with what its attributes say.

    Attributes:
        op: the application.
        attributes: all attributes, with their defaults.
        data: the layout of its operand and of its result.
        kernel: the layout of its weights.
    """

    op: CallExpr
    attributes: dict[str, Any]
    data: str
    kernel: str

    @property
    def groups(self) -> int:
        """The number of groups of channels."""
        return self.attributes.get("groups", 1)

    @property
    def channel(self) -> int:
        """The axis of channels of the operand and the result."""
        return self.data.index("C")

    @property
    def out(self) -> int:
        """The axis of output channels of the weights."""
        return self.kernel.index("O")

    @property
    def into(self) -> int:
        """The axis of input channels of the weights."""
        return self.kernel.index("I")


def layer_of(op: Expression | None) -> LinearLayer | None:
    """An operation as a convolution or a dense layer with plain layouts; None if it is none."""
    name = operator_of(op) if op is not None else None
    if name is None or name not in OPERATORS or not isinstance(op, CallExpr):
        return None
    if name == "nn.dense":
        return LinearLayer(op, OPERATORS[name].complete(op.attributes), "NC", "OI")
    if name not in WINDOWS:
        return None
    attributes = OPERATORS[name].complete(op.attributes)
    data = attributes.get("data_layout") or WINDOWS[name][0]
    kernel = attributes.get("kernel_layout") or WINDOWS[name][1]
    if not (data + kernel).isalpha() or attributes.get("out_layout") not in (None, "", data):
        return None  # split axes
    return LinearLayer(op, attributes, data, kernel)


def changed(op: CallExpr, **attributes: Any) -> tuple:
    """The attributes of an application with others in place of some."""
    kept = tuple((name, value) for name, value in op.attributes if name not in attributes)
    return (*kept, *attributes.items())


def channel_shape(x: Expression, rank: int, axis: int, size: int | None, types: Types) -> str | None:
    """How an operand that is broadcast against a tensor varies along its channels.

    Returns:
        "scalar" if it is one number, "channels" if it has one for each channel, None if it varies along other axes, or that is
        not known.
    """
    shape = types.sizes(x)
    if shape is None or len(shape) > rank:
        return None
    padded = (1,) * (rank - len(shape)) + shape
    if all(s == 1 for s in padded):
        return "scalar"
    if all(s == 1 for k, s in enumerate(padded) if k != axis) and padded[axis] == size:
        return "channels"
    return None


def is_positive(x: Expression) -> bool:
    """Whether a constant is greater than zero throughout."""
    if isinstance(x, Literal):
        return bool(x.value > 0)
    return isinstance(x, TensorConstant) and bool(np.all(x.value > 0))
