"""Primitives as operators of Relay: the one that means the same, where there is one, else `prim.NAME`.

A call of an operator in the table is lowered to the very primitive that it stands for, so that a program and that of its text
compute the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...abstract.types import FLOATS, INTS, Array, Scalar
from ...ir.node import Apply
from ...ir.prim import Primitive
from ...utils.errors import LoweringError
from ..operators.derived.primitives import FAILING, PREFIX, exception_named, has_operator
from ..tree import Attribute, CallExpr, Expression, OperatorName, TupleExpr, apply

NUMBERS = (*INTS, *FLOATS)
BITS = (*INTS, "bool")
ANY = (*NUMBERS, "bool")

ELEMENTWISE: dict[str, tuple[str, tuple[str, ...]]] = {
    **{p: (r, NUMBERS) for p, r in {"add": "add", "sub": "subtract", "mul": "multiply", "pow": "power"}.items()},
    **{p: (r, NUMBERS) for p, r in {"floordiv": "floor_divide", "mod": "floor_mod"}.items()},
    **{p: (p, NUMBERS) for p in ("maximum", "minimum", "abs", "sign")},
    "neg": ("negative", NUMBERS),
    "div": ("divide", FLOATS),
    "eq": ("equal", ANY),
    "ne": ("not_equal", ANY),
    "lt": ("less", ANY),
    "le": ("less_equal", ANY),
    "gt": ("greater", ANY),
    "ge": ("greater_equal", ANY),
    **{p: (p, ("bool",)) for p in ("logical_and", "logical_or", "logical_xor", "logical_not")},
    **{p: (p, BITS) for p in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{p: (p, INTS) for p in ("bitwise_not", "left_shift", "right_shift")},
    **{p: (p, FLOATS) for p in ("exp", "log", "log2", "log10", "sqrt", "sigmoid", "erf", "floor", "ceil", "trunc")},
    **{p: (p, FLOATS) for p in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "isnan", "isinf", "isfinite")},
    **{f"arc{p}": (f"a{p}", FLOATS) for p in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
"""Primitive -> the operator, and the dtypes that it takes."""

Rule = Callable[[Any, tuple[Expression, ...], dict[str, Any]], "Expression | None"]


def _where(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
    return apply("where", *args) if node.args[1].type.dtype == node.args[2].type.dtype else None


def _cast(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
    return args[0] if node.args[0].type.dtype == attrs["dtype"] else apply("cast", *args, dtype=attrs["dtype"])


def _reshape(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
    shape = attrs["shape"]
    if not shape and not node.args[0].type.shape:
        return args[0]
    return apply("reshape", *args, newshape=shape) if 0 not in shape else None  # 0 copies a size


def _slice(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
    starts, sizes, steps = attrs["starts"], attrs["sizes"], attrs["steps"]
    if any(s < 1 for s in (*sizes, *steps)):
        return None
    end = tuple(a + (n - 1) * s + 1 for a, n, s in zip(starts, sizes, steps, strict=True))
    return apply("strided_slice", *args, begin=starts, end=end, strides=steps)


def _reduction(name: str, *accepted: str) -> Rule:
    def rule(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
        t = node.args[0].type
        if t.dtype not in (accepted or NUMBERS) or 0 in t.shape:
            return None
        keep: dict[str, Any] = {"keepdims": True} if attrs["keepdims"] else {}
        return apply(name, *args, axis=attrs["axes"], **keep)

    return rule


def _dot(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
    a, b = (x.type for x in node.args)
    plain = len(a.shape) == len(b.shape) == 2 and a.dtype == b.dtype and a.dtype in FLOATS
    return apply("nn.matmul", *args) if plain and not attrs["transpose_a"] and not attrs["transpose_b"] else None


def _sides(padding: Any) -> tuple[int, ...]:
    (top, bottom), (left, right) = padding
    return top, left, bottom, right


def _gaps(attrs: dict[str, Any]) -> dict[str, Any]:
    return {"dilation": attrs["dilations"]} if set(attrs.get("dilations", ())) - {1} else {}


def _conv2d(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
    if len(node.args[0].type.shape) != 4 or node.args[0].type.dtype not in FLOATS:
        return None
    groups: dict[str, Any] = {"groups": attrs["groups"]} if attrs["groups"] != 1 else {}
    return apply(
        "nn.conv2d", *args, strides=attrs["strides"], padding=_sides(attrs["padding"]), **groups, **_gaps(attrs)
    )


def _max_pool(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
    if len(node.args[0].type.shape) != 4 or node.args[0].type.dtype not in FLOATS:
        return None
    return apply(
        "nn.max_pool2d",
        *args,
        pool_size=attrs["ksize"],
        strides=attrs["strides"],
        padding=_sides(attrs["padding"]),
        **_gaps(attrs),
    )


def _concatenate(node: Any, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression | None:
    return apply("concatenate", TupleExpr(args), axis=attrs["axis"])


RULES: dict[str, Rule] = {
    "where": _where,
    "cast": _cast,
    "reshape": _reshape,
    "transpose": lambda node, args, attrs: apply("transpose", *args, axes=attrs["perm"]),
    "broadcast_to": lambda node, args, attrs: apply("broadcast_to", *args, shape=attrs["shape"]),
    "concatenate": _concatenate,
    "slice": _slice,
    "reduce_sum": _reduction("sum"),
    "reduce_prod": _reduction("prod"),
    "reduce_max": _reduction("max", *ANY),
    "reduce_min": _reduction("min", *ANY),
    "reduce_all": _reduction("all", "bool"),
    "reduce_any": _reduction("any", "bool"),
    "dot": _dot,
    "conv2d": _conv2d,
    "max_pool": _max_pool,
    "as_scalar": lambda node, args, attrs: args[0],
    "as_array": lambda node, args, attrs: args[0],
}
"""Primitive -> its application as an expression; None where the operator does not mean the same."""


def operation(node: Apply, args: tuple[Expression, ...], attrs: dict[str, Any]) -> Expression:
    """The application of a primitive that computes numbers and arrays, or checks.

    Args:
        node: of a typed graph.
        args: its arguments.
        attrs: its attributes, without symbolic sizes.

    Raises:
        LoweringError: Relay text has no form for it.
    """
    prim: Primitive = node.fn
    found = None
    if prim.name in ELEMENTWISE:
        name, accepted = ELEMENTWISE[prim.name]
        dtypes = {a.type.dtype for a in node.args if isinstance(a.type, Scalar | Array)}
        if len(dtypes) == 1 and dtypes <= {*accepted}:
            found = apply(name, *args)
    elif prim.name in RULES:
        found = RULES[prim.name](node, args, attrs)
    if found is not None:
        return found
    if not has_operator(prim):
        raise LoweringError(f"to_text: Relay text has no form for '{prim.name}'", node.origin)
    given = {k: v for k, v in attrs.items() if k not in prim.attr_defaults or v != prim.attr_defaults[k]}
    if prim.name in FAILING:
        given["exception"] = _exception(given["exception"], node)
    written = tuple((k, _attribute(v, node)) for k, v in given.items())
    return CallExpr(OperatorName(f"{PREFIX}.{prim.name}"), args, written)


def _exception(exception: Any, node: Apply) -> str:
    """The name of an exception.

    Raises:
        LoweringError: it is one of the user's own.
    """
    name = exception if isinstance(exception, str) else exception.__name__  # a name is one of the user's class
    try:
        if exception_named(name) is exception:
            return name
    except TypeError:
        pass
    raise LoweringError(f"to_text: Relay text cannot raise {name}, which is no built-in exception", node.origin)


def _attribute(value: Any, node: Apply) -> Attribute:
    """An attribute of a primitive as one of an operator.

    Raises:
        LoweringError: it cannot be written.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return tuple(_attribute(v, node) for v in value)
    raise LoweringError(f"to_text: Relay text has no attribute like {value!r:.60} ('{node.fn.name}')", node.origin)


__all__ = ["operation"]
