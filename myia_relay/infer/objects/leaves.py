"""Between values and nodes: assembling structures, taking them apart, and the Python values of what is known at compile
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...abstract.types import NONE, Array, Scalar, Str, Struct
from ...ir.build import Var
from ...ir.node import Constant, Node
from ...ir.prim import REGISTRY
from ...prims.api.numpy_elementwise import own
from ...prims.api.promotion import plain
from ...prims.ops.control import dim_size
from ...prims.ops.structure import make_struct
from ...utils.errors import TypeError_
from ..engine.conform import from_node, promoted
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..values.functions import families_in
from ..values.kinds import kind_of
from ..values.treedef import describe
from ..values.values import Dyn, Listed, Seq, SliceVal, Static, Val


def to_node(frame: Frame, value: Val) -> Node:
    """A value as one node: structures are assembled; strings and None become constants (for messages only).

    Raises:
        TypeError_: the value exists at compile time only.
    """
    if isinstance(value, Dyn):
        if frame.spec.families.all and families_in(value.type):
            raise TypeError_(f"{describe(value)} is made at run time, and has no text in compiled code")
        return value.node
    if isinstance(value, Listed):
        return promoted(frame, value).node
    if isinstance(value, Seq):
        nodes = tuple(to_node(frame, e) for e in value.elems)
        type_ = Struct(value.kind, tuple(n.type for n in nodes), value.fields, value.cls)
        return frame.builder.emit(make_struct, nodes, {"type": type_})
    if isinstance(value, Static) and (value.value is None or isinstance(value.value, str)):
        return Constant(value.value, NONE if value.value is None else Str())
    raise TypeError_(f"{describe(value)} is not a value that compiled code can hold; it exists at compile time only")


def lift(engine: Engine, frame: Frame, result: Any) -> Val:
    """The result of an implementation in `prims.api`, as a value."""
    if isinstance(result, Var):
        return from_node(frame, result.node)
    if isinstance(result, tuple):
        return Seq("tuple", tuple(lift(engine, frame, r) for r in result))
    if isinstance(result, list):
        return Seq("list", tuple(lift(engine, frame, r) for r in result))
    if isinstance(result, Val):
        return result
    return engine.from_python(frame, result, None)


def as_new(frame: Frame, result: Val, given: Sequence[Val]) -> Val:
    """What an operation has made of values: an array among them as an object of its own, as where there is something to compute."""
    if isinstance(result, Seq) and result.kind in ("tuple", "list"):
        return Seq(result.kind, tuple(as_new(frame, part, given) for part in result.elems))
    if isinstance(result, Dyn) and isinstance(result.type, Array):
        if any(isinstance(v, Dyn) and v.node is result.node for v in given) and not result.known:
            return Dyn(own(frame.var(result)).node)
    return result


def known_key(value: Val) -> Any:
    """A key of a dict, known at compile time.

    Raises:
        TypeError_: it is not, or it is a list, a dict or an array.
    """
    kind = kind_of(value)
    if kind is not None:
        raise TypeError_(f"unhashable type: '{'numpy.ndarray' if kind == 'array' else kind}'")
    key = to_python(value, "a dict key")
    try:
        hash(key)
    except TypeError as error:
        raise TypeError_(str(error)) from None
    return key


def to_python(value: Val, what: str) -> Any:
    """The Python value of something known at compile time.

    Raises:
        TypeError_: it is known at run time only.
    """
    if isinstance(value, Static):
        return value.value
    if isinstance(value, Dyn) and value.known:
        return value.known_value
    if isinstance(value, Seq):
        parts = [to_python(e, what) for e in value.elems]
        if value.kind == "dict":
            return dict(zip(value.fields, parts, strict=True))
        if value.kind == "record":
            return value.cls(*parts)
        return parts if value.kind == "list" else tuple(parts)
    if isinstance(value, SliceVal):
        return slice(*[to_python(p, what) for p in (value.start, value.stop, value.step)])
    raise TypeError_(
        f"{what} must be known at compile time, but it is {describe(value)}; "
        "pass it as a literal, or name the parameter in @relay(static=...)"
    )


def to_option(value: Val, what: str) -> Any:
    """`to_python` for what says how an operator or a layer works: numbers of NumPy, such as `labels.max() + 1`, are Python's.

    Raises:
        TypeError_: it is known at run time only.
    """
    return plain(to_python(value, what))


def index_argument(engine: Engine, frame: Frame, index: Val) -> Any:
    """An array index as `prims.api.numpy_api.getitem` takes it.

    Raises:
        TypeError_: it is no index.
    """
    if isinstance(index, SliceVal):
        return slice(*[index_argument(engine, frame, p) for p in (index.start, index.stop, index.step)])
    if isinstance(index, Seq) and index.kind in ("tuple", "list"):
        parts = [index_argument(engine, frame, e) for e in index.elems]
        return parts if index.kind == "list" else tuple(parts)
    if isinstance(index, Static):
        return index.value
    if isinstance(index, Dyn):
        return index.known_value if index.known and isinstance(index.type, Scalar) else frame.var(index)
    raise TypeError_(f"{describe(index)} is no index")


def array_length(frame: Frame, value: Dyn) -> Dyn:
    """The size of the first axis."""
    size = value.type.shape[0]
    if isinstance(size, int):
        return frame.constant(size)
    return Dyn(frame.builder.emit(dim_size, (), {"dim": size}))


def first_axis(frame: Frame, value: Dyn, index: Dyn) -> Dyn:
    """`value[index]` without a bounds check: the index comes from a loop over the same array."""
    return Dyn(frame.builder.emit(REGISTRY["dynamic_index"], (value.node, index.node), {"axis": 0}))
