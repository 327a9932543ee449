"""The annotations that users write: `Tensor[Float32, ("n", 10)]`, `Tensor[Float64, ("n", "n"), Lower]`, `Float`, `Int`,
...

`Float` is float32 inside `Tensor[...]`, as in the Relay paper, and a floating-point scalar of any precision elsewhere.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..utils.errors import ShapeError, TypeError_
from .dims import DimLike, symbol
from .types import FLOATS, INTS, Array, Scalar, Type


class Annotation:
    """What annotations have in common: `Float | None` is the tuple of its alternatives."""

    def __or__(self, other):
        return (self, *other) if isinstance(other, tuple) else (self, other)

    def __ror__(self, other):
        return (*other, self) if isinstance(other, tuple) else (other, self)

    def __call__(self, *args, **kwargs):
        """Refused. Python 3.10 takes an object for an annotation of a NamedTuple's field only where it can be called.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"{self!r} is an annotation, which cannot be called")


@dataclass(frozen=True)
class ScalarAnnotation(Annotation):
    """An annotation for a number.

    Attributes:
        name: how it prints.
        dtypes: the dtypes it accepts as a scalar.
        element: the dtype it means inside `Tensor[...]`.
    """

    name: str
    dtypes: tuple[str, ...]
    element: str

    def __repr__(self) -> str:
        return self.name


Float = ScalarAnnotation("Float", FLOATS, "float32")
Int = ScalarAnnotation("Int", INTS, "int64")
Bool = ScalarAnnotation("Bool", ("bool",), "bool")
SCALARS = {
    name: ScalarAnnotation(name, (name.lower(),), name.lower())
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    + ("Float16", "BFloat16", "Float32", "Float64")
}
Int8, Int16, Int32, Int64 = (SCALARS[f"Int{bits}"] for bits in (8, 16, 32, 64))
UInt8, UInt16, UInt32, UInt64 = (SCALARS[f"UInt{bits}"] for bits in (8, 16, 32, 64))
Float16, Float32, Float64, BFloat16 = (SCALARS[n] for n in ("Float16", "Float32", "Float64", "BFloat16"))


@dataclass(frozen=True)
class Triangle:
    """A declaration that a matrix, or each one of a stack, has only zeros on one side of the diagonal.

    Attributes:
        name: "Lower" or "Upper", the side that is left.
    """

    name: str

    def __repr__(self) -> str:
        return self.name


Lower, Upper = Triangle("Lower"), Triangle("Upper")


@dataclass(frozen=True)
class TensorAnnotation(Annotation):
    """`Tensor[element, shape]`, `Tensor[element, shape, Lower]`. A dimension is an int, a name (symbolic) or `Any`.

    Attributes:
        element: dtype of the elements.
        shape: the dimensions; None where any shape will do.
        triangle: where matrices may have other entries than zeros; None: everywhere.
    """

    element: str
    shape: tuple | None
    triangle: Triangle | None = None

    def __repr__(self) -> str:
        return f"Tensor[{self.element}, {self.shape}{f', {self.triangle}' if self.triangle else ''}]"


@dataclass(frozen=True)
class Rows:
    """An array of any shape whose first axis has a symbolic size: one compilation serves every number of rows."""

    name: str


class Tensor:
    """The annotation of arrays: `Tensor[Float, (1, 28, 28)]`, `Tensor[Float32, ("n", 10)]`, `Tensor[Float, 10]`.

    `Tensor[Float64, ("n", "n"), Lower]` says of a parameter, a variable or a result that it is a lower triangular matrix (or a
    stack of them). Each time it is looked at, which is one pass over the array, and a ValueError says where it is not. Products
    with it are half the work, and its derivative is lower triangular too: the other entries are no variables. `Upper` likewise.
    """

    def __class_getitem__(cls, item) -> TensorAnnotation:
        element, shape, *more = item if isinstance(item, tuple) and len(item) in (2, 3) else (item, None)
        if not isinstance(element, ScalarAnnotation):
            raise TypeError_(
                f"Tensor[{element!r}, ...]: the element type must be Float, Float32, Int64, ... of myia_relay"
            )
        if shape is not None and not isinstance(shape, tuple):
            shape = (shape,)
        if shape is not None:  # NumPy's own integers, such as labels.max() + 1
            shape = tuple(int(dim) if isinstance(dim, np.integer) else dim for dim in shape)
        for dim in shape or ():
            if dim is not Any and not isinstance(dim, int | str):
                raise TypeError_(f"Tensor[..., {shape!r}]: a dimension is an int, a name or Any, not {dim!r}")
        for triangle in more:
            if not isinstance(triangle, Triangle):
                raise TypeError_(f"Tensor[..., {shape!r}, {triangle!r}]: what may follow the shape is Lower or Upper")
            if shape is None or len(shape) < 2 or element.element not in FLOATS:
                raise TypeError_(
                    f"Tensor[{element}, {shape!r}, {triangle}]: only matrices of floats, and stacks of them, are triangular"
                )
        return TensorAnnotation(element.element, shape, *more)


def no_field(note: Any, what: str) -> TypeError_:
    """The error for an annotation of a field that declares a triangle."""
    return TypeError_(f"{what} is annotated {note}: only parameters, variables and results may be {note.triangle}")


def hidden_triangle(annotation: Any) -> Triangle | None:
    """The triangle declared in a part of an annotation, such as a tuple, union or list, where that is not supported."""
    parts = annotation if isinstance(annotation, tuple) else typing.get_args(annotation)
    return next((found for a in parts if (found := getattr(a, "triangle", None) or hidden_triangle(a))), None)


PROMOTED: dict[Any, tuple[str, ...]] = {float: ("int64", "bool"), int: ("bool",)}
"""Which other Python numbers Python's own types accept (PEP 484, and `bool` is a subclass of `int`); nothing is converted."""


def normalise(annotation: Any) -> Any:
    """Python's own types as annotations: float -> Float as a Python float, ..."""
    return {int: Int, float: Float, bool: Bool}.get(annotation, annotation)


def annotated_type(annotation: Any, prefix: str = "") -> Type | None:
    """The type that an annotation alone determines, or None (it leaves something open).

    Args:
        annotation: the annotation.
        prefix: put before symbolic names.
    """
    annotation = normalise(annotation)
    if isinstance(annotation, TensorAnnotation):
        if annotation.shape is None or any(d is Any for d in annotation.shape):
            return None
        return Array(
            annotation.element, tuple(symbol(prefix + d) if isinstance(d, str) else d for d in annotation.shape)
        )
    if annotation is Float:
        return Scalar("float64", True)
    if annotation is Int:
        return Scalar("int64", True)
    if annotation is Bool:
        return Scalar("bool", True)
    if isinstance(annotation, ScalarAnnotation):
        return Scalar(annotation.element)
    return None


def check_annotation(type: Type, annotation: Any, names: dict[str, DimLike], what: str) -> None:
    """Check a type against an annotation.

    Args:
        type: the type of the value.
        annotation: a `TensorAnnotation` or `ScalarAnnotation`; anything else is not checked here.
        names: symbolic names bound so far, extended.
        what: "argument 'x'", "the result", ... for messages.

    Raises:
        TypeError_: another kind of value or dtype.
        ShapeError: another shape; both are named.
    """
    if isinstance(type, Scalar) and type.weak and type.dtype in PROMOTED.get(annotation, ()):
        return
    annotation = normalise(annotation)
    if isinstance(annotation, ScalarAnnotation):
        if not isinstance(type, Scalar | Array) or type.shape != () or type.dtype not in annotation.dtypes:
            raise TypeError_(f"{what} is annotated {annotation}, but it is {type}")
    elif isinstance(annotation, TensorAnnotation):
        if not isinstance(type, Array):
            raise TypeError_(f"{what} is annotated {annotation}, but it is {type}{advice_for(type, annotation)}")
        if type.dtype != annotation.element:
            raise TypeError_(
                f"{what} is annotated {annotation}, but its elements are {type.dtype}; "
                f"convert it: .astype(np.{annotation.element})"
            )
        if annotation.shape is None:
            return
        fits = len(type.shape) == len(annotation.shape)
        for have, want in zip(type.shape, annotation.shape, strict=False):
            if want is Any:
                continue
            if isinstance(want, str):
                want = names.setdefault(want, have)
            fits = fits and have == want
        if not fits:
            bound = {n: v for n, v in names.items() if n in annotation.shape and str(v) != n}
            where = f" (where {', '.join(f'{n} = {v}' for n, v in bound.items())})" if bound else ""
            advice = ""
            rest = type.shape[1:]
            if len(rest) == len(annotation.shape) and all(w is Any or w == h for h, w in zip(rest, annotation.shape)):
                advice = "; for a batch of them map the function over it: relay.vmap(...)"
            raise ShapeError(
                f"{what} is annotated {annotation}{where}, but its shape is {show_shape(type.shape)}{advice}"
            )


def advice_for(type: Type, annotation: TensorAnnotation) -> str:
    """What to write instead of a scalar where an array is wanted."""
    return f"; pass np.asarray(value, np.{annotation.element})" if isinstance(type, Scalar) else ""


def show_shape(shape) -> str:
    """A shape as NumPy prints it: (2, 3), (4,), ()."""
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
