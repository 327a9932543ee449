"""Layouts: which axis of a tensor means what, "NCHW", "NHWC", "NCHW16c".

A capital letter is an axis. A small letter with a number in front is a part of the axis of that letter: of `NCHW16c` the
channels are split into blocks of 16, and the last axis is the place within a block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...ir.build import Builder, Var
from ...utils.errors import ShapeError, TypeError_
from ..terms.show import show
from ..terms.solver import Facts
from .declare import Attr, operator
from .rules import shape_first
from .staged import array, permuted, reshaped


class LayoutAxis(NamedTuple):
    """An axis of a layout.

    Attributes:
        letter: which axis it is, or is a part of, as a capital.
        factor: the size of a part; 0 for the axis itself.
    """

    letter: str
    factor: int


def parse_layout(text: str, name: str) -> tuple[LayoutAxis, ...]:
    """The axes of a layout.

    Raises:
        TypeError_: it is none.
    """
    found = re.findall(r"([A-Z])|(\d+)([a-z])", text)
    if "".join(f"{a}{n}{c}" for a, n, c in found) != text or not text:
        raise TypeError_(f"{name}: '{text}' is no layout; it is one as 'NCHW', 'NHWC' or 'NCHW16c'")
    axes = tuple(LayoutAxis(a or c.upper(), int(n or 0)) for a, n, c in found)
    capitals = [a.letter for a in axes if not a.factor]
    if len(set(capitals)) < len(capitals) or len(set(axes)) < len(axes) or any(a.letter not in capitals for a in axes):
        raise TypeError_(f"{name}: '{text}' is no layout: each letter occurs once as a capital")
    return axes


def letters_of(layout: Sequence[LayoutAxis]) -> str:
    """The axes of a layout without their parts, in order."""
    return "".join(a.letter for a in layout if not a.factor)


def merged_sizes(layout: Sequence[LayoutAxis], shape: Sequence[Any], compute: Callable[..., Any]) -> dict[str, Any]:
    """The sizes of the axes, each with its parts."""
    sizes: dict[str, Any] = {}
    for axis, size in zip(layout, shape, strict=True):
        factor = axis.factor
        if axis.letter in sizes:
            sizes[axis.letter] = compute(lambda x, y: x * y, sizes[axis.letter], factor or size)
        else:
            sizes[axis.letter] = factor or size
    return sizes


def split_sizes(
    layout: Sequence[LayoutAxis], sizes: dict[str, Any], compute: Callable[..., Any], name: str
) -> list[Any]:
    """The sizes of a tensor in a layout, given those of its axes with their parts."""
    out = []
    for axis in layout:
        if axis.factor:
            out.append(axis.factor)
            continue
        parts = 1
        for other in layout:
            if other.letter == axis.letter and other.factor:
                parts *= other.factor
        out.append(
            sizes[axis.letter]
            if parts == 1
            else compute(lambda n, by=parts: _quotient(n, by, name), sizes[axis.letter])
        )
    return out


def _quotient(n: Any, by: int, name: str) -> Any:
    if isinstance(n, int) and n % by:
        raise ShapeError(f"{name}: the size {n} does not fall into blocks of {by}")
    return n // by


def _directly(function: Callable[..., Any], *sizes: Any) -> Any:
    return function(*sizes)


def moved(x: Var, source: Sequence[LayoutAxis], target: Sequence[LayoutAxis], name: str) -> Var:
    """A tensor in another layout of the same axes.

    Raises:
        TypeError_: the layouts have other axes.
    """
    if list(source) == list(target):
        return x
    if sorted(letters_of(source)) != sorted(letters_of(target)):
        raise TypeError_(f"{name}: the layouts {letters_of(source)} and {letters_of(target)} have different axes")
    # Each axis with its parts behind it, then as one; then split and ordered anew.
    order = [k for letter in letters_of(source) for k, a in enumerate(source) if a.letter == letter]
    sizes = merged_sizes(source, x.shape, _directly)
    x = reshaped(permuted(x, order), [sizes[letter] for letter in letters_of(source)])
    parts = [a for letter in letters_of(source) for a in target if a.letter == letter]
    whole = split_sizes(target, sizes, _directly, name)
    x = reshaped(x, [whole[list(target).index(a)] for a in parts])
    return permuted(x, [parts.index(a) for a in target])


def _layout_transform(facts: Facts) -> None:
    t = facts.tensor(0)
    source = parse_layout(facts.attr("src_layout"), facts.name)
    target = parse_layout(facts.attr("dst_layout"), facts.name)
    if sorted(letters_of(source)) != sorted(letters_of(target)):
        raise TypeError_(f"{facts.name}: {facts.attr('src_layout')} and {facts.attr('dst_layout')} have different axes")
    shape = shape_first(facts, t)
    if len(shape) != len(source):
        raise ShapeError(f"{facts.name}: {show(t)} does not have the axes of {facts.attr('src_layout')}")
    sizes = merged_sizes(source, shape, facts.compute)
    facts.gives_tensor(tuple(split_sizes(target, sizes, facts.compute, facts.name)), t.dtype)


@operator("layout_transform", ("data",), _layout_transform, {"src_layout": Attr("str"), "dst_layout": Attr("str")})
def layout_transform(b: Builder, data: Var, src_layout: str, dst_layout: str) -> Var:
    """The tensor in another layout."""
    name = "layout_transform"
    return moved(array(data), parse_layout(src_layout, name), parse_layout(dst_layout, name), name)


def canonical(facts: Facts, t: Any, layout: str, letters: str, what: str) -> tuple[list[Any], tuple[LayoutAxis, ...]]:
    """The sizes of a tensor in a layout, in the order of `letters`, and the layout.

    Raises:
        ShapeError: it has another number of axes.
        TypeError_: the layout has other axes.
    """
    axes = parse_layout(layout, facts.name)
    if sorted(letters_of(axes)) != sorted(letters):
        raise TypeError_(
            f"{facts.name}: the layout of {what} has the axes {', '.join(letters)}, and '{layout}' has not"
        )
    shape = facts.rank(t, len(axes), what=what)
    sizes = merged_sizes(axes, shape, facts.compute)
    return [sizes[letter] for letter in letters], axes


def in_letters(x: Var, layout: str, letters: str, name: str) -> Var:
    """A tensor of a layout with its axes in the order of `letters`."""
    return moved(x, parse_layout(layout, name), parse_layout(letters, name), name)


def from_letters(x: Var, letters: str, layout: str, name: str) -> Var:
    """A tensor with its axes in the order of `letters`, in a layout."""
    return moved(x, parse_layout(letters, name), parse_layout(layout, name), name)
