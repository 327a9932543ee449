"""Staged operands: static values, run-time checks, promotion to a common dtype.

The implementations of Python's and NumPy's functions (`arithmetic`, `operators`, `numpy_*`) are written with these.
Promotion is that of NumPy 2 (NEP 50): a Python number is weak, its dtype yields to that of arrays and NumPy scalars.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.dims import Dim, DimLike, fresh_size, is_run_time, never_negative, told_by_run
from ...abstract.types import INT, INTS, Array, NoneT, Scalar, Str, Struct, Type, float_dtype, numpy_dtype
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node
from ...utils.errors import CompileError, ShapeError, TypeError_
from ..ops.control import bind_dim, dim_size
from ..ops.effects import check
from ..ops.elementwise import eq, ge, isfinite, isnan, le, logical_and, logical_not, lt
from ..rules.broadcast import as_scalar, cast, reshape

PYTHON_DTYPES = ("bool", "int64", "float64")

# Static values.


def is_static(x) -> bool:
    """Whether the value of an operand is known: a plain Python object, or a constant."""
    if isinstance(x, tuple | list):
        return all(map(is_static, x))
    return not isinstance(x, Var) or isinstance(x.node, Constant)


def static_value(x) -> Any:
    """The known value of an operand (see `is_static`), itself where it is no staged value."""
    if isinstance(x, tuple | list):
        return type(x)(map(static_value, x)) if type(x) in (tuple, list) else x
    if not isinstance(x, Var):
        return x
    assert isinstance(x.node, Constant)
    return x.node.value


def static_int(x) -> DimLike | None:
    """The known value of an int operand: an int, or a symbolic dimension where it is the size of an axis; else None."""
    if isinstance(x, Dim) or (isinstance(x, int | np.integer) and not isinstance(x, bool)):
        return x if isinstance(x, Dim) else int(x)
    if isinstance(x, Var):
        if isinstance(x.node, Constant) and x.dtype != "bool" and isinstance(x.node.value, int | np.integer):
            return int(x.node.value)
        if isinstance(x.node, Apply) and getattr(x.node.fn, "name", "") in ("dim_size", "bind_dim"):
            return x.node.attrs["dim"]
    return None


def plain(value: Any) -> Any:
    """An option of an operator, a layer or a transform, in which numbers of NumPy, such as `labels.max() + 1`, are Python's."""
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return value.item() if isinstance(value, np.generic) else value


def require_static_int(x, what: str) -> DimLike:
    """`static_int`, or an error that says what must be known.

    Raises:
        TypeError_: it is not known at compile time.
    """
    value = static_int(x)
    if value is None:
        kind = str(x.type) if isinstance(x, Var) else type(x).__name__
        kind = f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
        raise TypeError_(
            f"{what} must be an int known at compile time, and this is {kind} computed at run time; write a literal, "
            "take it from x.shape, or name the parameter in @relay(static=...)"
        )
    return value


def static_index(x, what: str) -> int:
    """An int known at compile time where NumPy calls `operator.index`, which takes a bool for 0 or 1.

    Raises:
        TypeError_: it is something else.
    """
    if not isinstance(x, int | np.integer | np.bool_) or isinstance(x, np.bool_):
        raise TypeError_(f"{what} must be an int known at compile time, and this is {x!r}")
    return int(x)


NEGATIVE = "negative dimensions are not allowed"  # what most functions of NumPy say


def size_argument(b: Builder, x, what: str) -> DimLike | Var:
    """A size that an argument says: an int, the size of an axis, or an int that is computed at run time and may be negative.

    Raises:
        TypeError_: it is no int.
    """
    if static_int(x) is None and isinstance(x, Var) and x.type in (INT, *map(Scalar, INTS)):
        size = as_int(b, x, what)
        return b.sizes.get(_value_key(size.node), size)
    return require_static_int(x, what)


def run_time_size(b: Builder, size: Var, negative: str = NEGATIVE) -> Dim:
    """A symbol for a size that is computed at run time; the same one for the same computation. What is negative raises."""
    guard(b, ge(size, size.const(0)), ValueError, negative)
    return bind_size(b, size)


def bind_size(b: Builder, size: Var) -> Dim:
    """A symbol for a size that is computed at run time and not negative; the same one for the same computation."""
    key = _value_key(size.node)
    if key not in b.sizes:
        b.sizes[key] = fresh_size()
        b.emit(bind_dim, (size.node,), {"dim": b.sizes[key]})
    return b.sizes[key]


def _value_key(node: Node, depth: int = 8) -> Any:
    """What two computations of one number have in common."""
    if isinstance(node, Constant):
        return node.type, repr(node.value)
    if depth and isinstance(node, Apply) and isinstance(node.type, Scalar):
        if isinstance(node.fn, Graph) or node.fn.effect:
            return node
        attrs = tuple((k, v) for k, v in sorted(node.attrs.items()) if isinstance(v, Dim | int | str | bool))
        if len(attrs) == len(node.attrs):
            return node.fn.name, attrs, tuple(_value_key(a, depth - 1) for a in node.args)
    return node


def agreeing(b: Builder, name: str, *operands: Var) -> tuple[Var, ...]:
    """Operands that are to be broadcast, with one symbol for sizes of which only a run tells whether they are equal.

    A ShapeError is raised there where they are not, also where NumPy would repeat the only element of an axis that a value decides.
    """
    if not any(isinstance(d, Dim) and (d.atoms or is_run_time(d)) for x in operands for d in x.shape):
        return operands
    rank = max(len(x.shape) for x in operands)
    shapes = [list(x.shape) for x in operands]
    for axis in range(1, rank + 1):
        sizes = [s[-axis] for s in shapes if len(s) >= axis and s[-axis] != 1]
        chosen = leading(sizes)
        for shape in shapes:
            if len(shape) >= axis and shape[-axis] != 1 and shape[-axis] != chosen:
                if told_by_run(shape[-axis], chosen):
                    require_equal(b, name, chosen, shape[-axis], -axis)
                    shape[-axis] = chosen
    return tuple(
        x if tuple(s) == x.shape else reshape(x, shape=tuple(s)) for x, s in zip(operands, shapes, strict=True)
    )


def leading(sizes: list[DimLike]) -> DimLike:
    """The size among several that must be equal which the others are written as: a number, a name, the oldest symbol."""
    return min(sizes, key=lambda d: (isinstance(d, Dim), is_run_time(d), _age(d)), default=1)


def _age(dim: DimLike) -> tuple:
    names = sorted((len(n), n) for n in dim.symbols()) if isinstance(dim, Dim) else []
    return names[::-1], len(dim.terms) if isinstance(dim, Dim) else 0


def require_equal(b: Builder, name: str, one: DimLike, other: DimLike, axis: int) -> None:
    """Raise ShapeError at run time unless two sizes are equal."""
    if one == other:
        return
    x, y = size_value(b, one), size_value(b, other)
    text = (
        f"{name}: sizes ",
        0,
        " and ",
        1,
        f" meet in axis {axis}; a size that a value decides is not repeated where it is 1",
    )
    guard(b, eq(x, y), ShapeError, *text, operands=(x, y))


def with_size(b: Builder, name: str, x: Var, axis: int, size: DimLike) -> Var:
    """An array that must have a size along an axis, where only a run tells whether it has; that is checked. Else the array."""
    have = x.shape[axis]
    if not told_by_run(have, size):
        return x
    require_equal(b, name, size, have, axis)
    shape = list(x.shape)
    shape[axis] = size
    return reshape(x, shape=tuple(shape))


def meeting(b: Builder, name: str, x: Var, i: int, y: Var, j: int) -> tuple[Var, Var]:
    """Two arrays of which an axis each must have one size: see `with_size`."""
    size = leading([x.shape[i], y.shape[j]])
    return with_size(b, name, x, i, size), with_size(b, name, y, j, size)


def static_size(b: Builder, x, what: str, negative: str = NEGATIVE) -> DimLike:
    """A size that an argument says: an int, the size of an axis, or an int computed at run time, and not negative.

    Args:
        b: the builder.
        x: the argument.
        what: its name.
        negative: what NumPy's function says of a negative size.

    Raises:
        TypeError_: it is no int.
        ShapeError: it is negative. Where only a run tells, that raises ValueError.
    """
    size = size_argument(b, x, what)
    if isinstance(size, Var):
        return run_time_size(b, size, negative)
    if isinstance(size, Dim):
        if not never_negative(size):
            value = size_value(b, size)
            guard(b, ge(value, value.const(0)), ValueError, negative)
    elif size < 0:
        raise ShapeError(f"{negative}: {what} is {size}")
    return size


def size_value(b: Builder, dim: DimLike) -> Var:
    """A dimension as a Python int: a constant, or read at run time."""
    if isinstance(dim, Dim):
        return b.var(b.emit(dim_size, (), {"dim": dim}))
    return python(b, int(dim))


def python(b: Builder, value) -> Var:
    """A Python or NumPy number, or an array, as a constant.

    Raises:
        TypeError_: an int that does not fit into 64 bits.
    """
    if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 63:
        raise TypeError_(
            f"the int {value} does not fit into 64 bits, which is what an int has in compiled code; write it as a float"
        )
    return b.var(b.constant(value))


# Run-time checks.


def guard(b: Builder, ok: Var, exception: type, *parts, operands: tuple = ()) -> None:
    """Raise `exception` at run time unless `ok`; nothing is emitted where it is known to hold.

    Args:
        b: the builder.
        ok: bool scalar.
        exception: exception class.
        *parts: the message: strings, and ints that number the operands.
        operands: staged values shown in the message.
    """
    if isinstance(ok.node, Constant) and bool(ok.node.value):
        return
    formatted = tuple((p, -1, "") if isinstance(p, int) else p for p in parts)
    b.emit(check, (ok.node, *(o.node for o in operands)), {"exception": exception, "parts": formatted})


def message(thunk) -> str:
    """The text of the exception that this CPython raises: texts differ from version to version.

    Raises:
        AssertionError: there was none.
    """
    try:
        thunk()
    except ArithmeticError as error:
        return str(error)
    raise AssertionError("no exception")  # pragma: no cover


# Kinds.


def is_weak(x: Var) -> bool:
    """Whether a staged value is a Python number."""
    return isinstance(x.type, Scalar) and x.type.weak


def is_number(x) -> bool:
    """Whether a staged value is a number or an array of numbers (or booleans)."""
    return isinstance(x, Var) and isinstance(x.type, Scalar | Array)


def describe(t: Type) -> str:
    """A type in the user's words."""
    if isinstance(t, Struct):
        return t.kind if t.kind != "record" else getattr(t.cls, "__name__", "record")
    if isinstance(t, NoneT | Str):
        return str(t)
    return str(t)


def unsupported(symbol: str, *operands: Var) -> CompileError:
    """CPython's words for operands that an operator does not take."""
    kinds = " and ".join(f"'{describe(x.type)}'" for x in operands)
    advice = ""
    if any(isinstance(x.type, Struct) and x.type.kind in ("list", "tuple") for x in operands):
        advice = "; make an array of it first: np.array(...)"
    return TypeError_(f"unsupported operand type(s) for {symbol}: {kinds}{advice}")


def strong(x: Var) -> Var:
    """A Python number as a NumPy scalar; anything else itself."""
    return cast(x, dtype=x.dtype, weak=False) if is_weak(x) else x


def weak(x: Var, dtype: str) -> Var:
    """A Python number as a Python number of another type."""
    return x if x.type == Scalar(dtype, True) else cast(x, dtype=dtype, weak=True)


def astype(x: Var, dtype: str) -> Var:
    """A number or array with another dtype; Python numbers become NumPy scalars."""
    return x if x.dtype == dtype and not is_weak(x) else cast(x, dtype=dtype, weak=False)


def unwrap(x: Var) -> Var:
    """What NumPy returns from operations: a scalar in place of an array without axes."""
    return as_scalar(x) if isinstance(x.type, Array) and x.shape == () else x


# Promotion.


def result_dtype(operands, what: str = "operands") -> str:
    """The dtype that operands promote to; Python numbers among them yield.

    Raises:
        TypeError_: there is none.
    """
    strong_dtypes = {x.dtype for x in operands if not is_weak(x)}
    weak_kinds = {x.dtype for x in operands if is_weak(x)}
    if not strong_dtypes:
        return max(weak_kinds, key=PYTHON_DTYPES.index)
    if "bfloat16" in strong_dtypes and not weak_kinds - set(PYTHON_DTYPES) and len(strong_dtypes) == 1:
        return "bfloat16"
    values = {"bool": False, "int64": 0, "float64": 0.0}
    try:
        common = np.result_type(*map(numpy_dtype, sorted(strong_dtypes)))
        return np.result_type(common, *(values[k] for k in weak_kinds)).name if common.kind in "biuf" else common.name
    except TypeError:
        names = " and ".join(sorted(strong_dtypes))
        raise TypeError_(f"{what} of dtypes {names} have no common dtype; convert one with .astype(...)") from None


def float_to_int(b: Builder, x: Var) -> Var:
    """A whole float scalar as a Python int, checked."""
    guard(b, logical_not(isnan(x)), ValueError, "cannot convert float NaN to integer")
    guard(b, isfinite(x), OverflowError, "cannot convert float infinity to integer")
    limit = float(1 << 63)
    wide = cast(x, dtype="float64")  # 2 ** 63 exists in every float dtype but float16, which stays below it
    inside = logical_and(ge(wide, wide.const(-limit)), lt(wide, wide.const(limit)))
    guard(b, inside, OverflowError, "int too large: int(", 0, ") does not fit into 64 bits", operands=(x,))
    return cast(x, dtype="int64", weak=True)


def fit(b: Builder, x: Var, dtype: str) -> Var:
    """An operand in another dtype; a Python number that an integer dtype cannot hold raises, as in NumPy 2."""
    if is_weak(x) and x.dtype == "float64" and dtype in INTS:
        x = float_to_int(b, x)
    if is_weak(x) and x.dtype == "int64" and dtype in INTS and dtype != "int64":
        info = np.iinfo(dtype)
        inside = ge(x, x.const(int(info.min)))
        if info.max < (1 << 63) - 1:
            inside = logical_and(inside, le(x, x.const(int(info.max))))
        guard(b, inside, OverflowError, "Python integer ", 0, f" out of bounds for {dtype}", operands=(x,))
    return astype(x, dtype)


def promote(b: Builder, *operands: Var, what: str = "operands") -> list[Var]:
    """Operands in their common dtype. If all are Python numbers they stay so."""
    dtype = result_dtype(operands, what)
    if all(is_weak(x) for x in operands):
        return [weak(x, dtype) for x in operands]
    return [fit(b, x, dtype) for x in operands]


def floating(x: Var) -> Var:
    """An operand of a NumPy function that computes in floats."""
    if is_weak(x) and x.dtype != "bool":  # a bool of Python's is one of NumPy's
        return astype(x, "float64")
    return astype(x, float_dtype(x.dtype))


def floating_pair(b: Builder, x: Var, y: Var, what: str) -> list[Var]:
    """Two operands of a NumPy function that computes in floats, in its common float dtype."""
    firm = [v for v in (x, y) if not is_weak(v) or v.dtype == "bool"]
    # A Python float is float64 beside integers, a Python int beside booleans.
    wider = any(
        (v.dtype == "float64" and not any(f.type.is_float for f in firm))
        or (v.dtype == "int64" and all(f.dtype == "bool" for f in firm))
        for v in (x, y)
        if is_weak(v)
    )
    if wider:
        return [astype(v, "float64") for v in (x, y)]
    dtype = result_dtype([astype(v, float_dtype(v.dtype)) for v in firm], what)
    return [astype(v, dtype) for v in (x, y)]


# Operands of NumPy functions.


def operand(b: Builder, x, what: str = "an operand", dtype: str | None = None) -> Var:
    """A number, array or nested list or tuple of them as a staged number or array.

    Args:
        b: the builder.
        x: the operand.
        what: it is, for messages.
        dtype: that each number is converted to; by default that of a list is what NumPy finds for its numbers.

    Raises:
        TypeError_: it is none of these.
        ShapeError: the elements of a list differ in shape.
    """
    if isinstance(x, Var):
        if isinstance(x.type, Scalar | Array):
            return x if dtype is None else fit(b, x, dtype)
        if isinstance(x.type, Struct) and x.type.kind in ("tuple", "list"):
            return operand(b, tuple(x), what, dtype)
        raise TypeError_(f"{what} {_wants(what)} a number or an array, and this is {describe(x.type)}")
    if isinstance(x, tuple | list):
        from ..ops.shape import stack

        if not x:
            return python(b, np.zeros((0,), numpy_dtype(dtype or "float64")))
        parts = [strong(operand(b, e, what, dtype)) for e in x]  # NumPy takes a Python float for a float64 there
        if len({len(p.shape) for p in parts}) == 1:
            parts = list(agreeing(b, what, *parts))
        shapes = {p.shape for p in parts}
        if len(shapes) > 1:
            raise ShapeError(f"{what}: elements of shapes {', '.join(sorted(map(str, shapes)))} make no array")
        return stack(*promote(b, *parts), axis=0)
    if isinstance(x, bool | int | float | np.generic | np.ndarray):
        return python(b, x) if dtype is None else fit(b, python(b, x), dtype)
    raise TypeError_(f"{what} {_wants(what)} a number or an array, and this is {x!r}")


def _wants(what: str) -> str:
    """The verb for a value, "an operand", or for a function, "math.sqrt"."""
    return "must be" if " " in what else "takes"


def as_int(b: Builder, x, what: str) -> Var:
    """An operand that Python accepts as an index (`__index__`), as a Python int.

    Raises:
        TypeError_: it is not.
    """
    x = operand(b, x, what)
    if x.shape != () or x.dtype not in INTS:
        raise TypeError_(f"{what} must be an int, and this is {describe(x.type)}; convert it with int(...)")
    if x.dtype == "uint64":
        top = x.const((1 << 63) - 1)
        guard(b, le(unwrap(x), top), OverflowError, "the index ", 0, " does not fit into 64 bits", operands=(x,))
    return weak(unwrap(x), "int64")


__all__ = [
    "INT",
    "as_int",
    "astype",
    "fit",
    "floating",
    "guard",
    "is_weak",
    "lt",
    "operand",
    "promote",
    "python",
    "result_dtype",
    "size_value",
    "static_int",
    "strong",
    "unwrap",
    "weak",
]
