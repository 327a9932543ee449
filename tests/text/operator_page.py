"""The table of operators for the documentation, made from their declarations."""

from __future__ import annotations

from typing import Any

from myia_relay.text.operators.declare import OPERATORS, Attr, Needed, RelayOperator

HEAD = """# Operators of Relay text

Operators are written by their names, with attributes as keywords: `nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1])`.
Attributes that are left out have the defaults below, which are those of Apache TVM. Nothing is promoted: operands have one
dtype, and `cast(%x, dtype="float32")` converts. Integers wrap; `divide` truncates them, `floor_divide` rounds down, and
division by 0 gives 0.

`%a + %b`, `%a - %b`, `%a * %b`, `%a / %b`, `%a < %b`, ..., `%a && %b`, `%a || %b` and `-%a` stand for `add`, `subtract`,
`multiply`, `divide`, `less`, ..., `logical_and`, `logical_or` and `negative`. An operator without parentheses is a function:
`@map(exp, %l)`.

A size that an attribute gives for each axis may be one number for all. Axes count from the end where they are negative.
"""

TITLES = {
    "elementwise": "Elementwise",
    "reductions": "Reductions",
    "shapes": "Shapes",
    "slicing": "Slices and padding",
    "creation": "Tensors made of numbers",
    "indexing": "Elements at computed places",
    "ordering": "Order",
    "products": "Products",
    "nn": "Layers",
    "convolution": "Convolutions",
    "pooling": "Pooling",
    "images": "Images",
    "layouts": "Layouts",
    "dynamic": "Shapes that are computed",
    "vision": "Detection",
}


def reference() -> str:
    """The page: a table for each family."""
    parts = [HEAD]
    for family, title in TITLES.items():
        own = [o for o in OPERATORS.values() if o.function.__module__.rpartition(".")[2] == family]
        if own:
            rows = [f"| `{o.name}` | {_args(o)} | {_attrs(o)} | {_doc(o)} |" for o in sorted(own, key=lambda o: o.name)]
            parts.append(
                "\n".join([f"## {title}", "", "| operator | arguments | attributes | |", "|---|---|---|---|", *rows])
                + "\n"
            )
    return "\n".join(parts)


def _args(o: RelayOperator) -> str:
    names = list(o.args)
    for k in range(o.optional):
        names[-1 - k] += "?"
    return ", ".join(names) or "-"


def _attrs(o: RelayOperator) -> str:
    return ", ".join(f"`{name}{_default(attr)}`" for name, attr in o.attrs.items()) or "-"


def _default(attr: Attr) -> str:
    return "" if isinstance(attr.default, Needed) else f"={_value(attr.default)}"


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _doc(o: RelayOperator) -> str:
    return o.doc.replace("|", "\\|")
