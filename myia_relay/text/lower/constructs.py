"""The operations of parsed graphs that Relay text has and Python has not, and what they mean to inference."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...abstract.declared import ConstructorAt
from ...abstract.references import reference_class
from ...abstract.types import Array
from ...infer.engine.engine import Engine
from ...infer.engine.frames import Frame
from ...infer.engine.unions import dispatch
from ...infer.language.registry import handles
from ...infer.objects import data, references
from ...infer.values.kinds import is_data
from ...infer.values.treedef import describe
from ...infer.values.values import Dyn, Seq, Static, TaggedUnion, Val, elements
from ...ir.node import Apply
from ...ir.prim import REGISTRY
from ...ir.syntax import Syntax
from ...utils.errors import InternalError, TypeError_
from .types import TypeValue, ground

tensor = Syntax("tensor", "(), attrs value -> a constant array")
type_value = Syntax(
    "type_value", "(*parameters), attrs term, variables, declarations -> a type, with what its parameters stand for"
)
constructor_of = Syntax(
    "constructor_of",
    "(*parameters), attrs declaration, cls, terms, variables, declarations -> the constructor of an instance of a data type",
)
new_reference = Syntax(
    "new_reference",
    "(value, *parameters), attrs name, term, variables, heaps -> a reference to the value: a place in a heap, or a cell",
)
operate = Syntax(
    "operate", "(*args), attrs operator, attributes -> the result of an operator, tensors of rank 0 as numbers"
)
tuple_field = Syntax("tuple_field", "(tuple), attrs index -> a part of a tuple")
data_test = Syntax("data_test", "(value), attrs constructor -> whether a value of a data type is of it")
data_field = Syntax("data_field", "(value), attrs constructor, index -> a field of a value that is of this constructor")


@handles(tensor)
async def _tensor(engine: Engine, frame: Frame, node: Apply) -> Val:
    value: np.ndarray = node.attrs["value"]
    return Dyn(frame.builder.constant(value, Array(value.dtype.name, value.shape)))


@handles(operate)
async def _operate(engine: Engine, frame: Frame, node: Apply) -> Val:
    args = [engine.value(frame, a) for a in node.args]
    attributes = {k: engine.from_python(frame, v, None) for k, v in node.attrs["attributes"].items()}
    result = await engine.call(frame, Static(node.attrs["operator"]), args, attributes, node.origin, node)
    frame.at(node.origin)
    return as_number(frame, result)


@handles(type_value)
async def _type_value(engine: Engine, frame: Frame, node: Apply) -> Val:
    return Static(
        TypeValue.of(ground(node.attrs["term"], _environment(engine, frame, node), node.attrs["declarations"]))
    )


@handles(new_reference)
async def _new_reference(engine: Engine, frame: Frame, node: Apply) -> Val:
    value, heaps = engine.value(frame, node.args[0]), node.attrs["heaps"]
    content = ground(node.attrs["term"], _environment(engine, frame, node, 1), heaps.declarations)
    if content is None and heaps.every:
        raise TypeError_("a reference in data to something whose size is known at run time only is not supported yet")
    if content is not None and heaps.holds(content):
        if content not in heaps.contents:
            raise references.MoreHeaps(content, heaps.add)
        return references.make(engine, frame, reference_class(content), value)
    cell = engine.cell_of(frame, node)
    engine.with_cells = True
    frame.new_cell(cell, value)
    return cell


@handles(constructor_of)
async def _constructor_of(engine: Engine, frame: Frame, node: Apply) -> Val:
    env = _environment(engine, frame, node)
    args = tuple(ground(t, env, node.attrs["declarations"]) for t in node.attrs["terms"])
    return Static(constructor(node.attrs["declaration"], node.attrs["cls"], args))


def constructor(declaration: Any, cls: type, args: tuple) -> Any:
    """The constructor of an instance; the constructor as such, whose fields tell, where an argument is not known."""
    if None in args:
        return cls
    key = (cls, args)
    if key not in _CONSTRUCTORS:
        _CONSTRUCTORS[key] = ConstructorAt(declaration, cls, args)
    return _CONSTRUCTORS[key]


_CONSTRUCTORS: dict[tuple[type, tuple], ConstructorAt] = {}


def _environment(engine: Engine, frame: Frame, node: Apply, first: int = 0) -> dict[int, Any]:
    """What stands for parameters, which the arguments from the first on give: by `id`."""
    values = [engine.value(frame, a) for a in node.args[first:]]
    return {
        id(v): value.value.value
        for v, value in zip(node.attrs["variables"], values, strict=True)
        if isinstance(value, Static)
    }


@handles(data_test)
async def _data_test(engine: Engine, frame: Frame, node: Apply) -> Val:
    name = node.attrs["constructor"]

    async def test(region: Frame, value: Val) -> Val:
        if is_data(value):
            numbers = [v.number for v in value.type.family.variants if v.cls.__name__ == name]
            found = data.test(region, value, numbers)
            return region.constant(found) if isinstance(found, bool) else found
        return region.constant(_record(value).cls.__name__ == name)

    return await _each(engine, frame, node, test)


@handles(data_field)
async def _data_field(engine: Engine, frame: Frame, node: Apply) -> Val:
    name, index = node.attrs["constructor"], node.attrs["index"]

    async def read(region: Frame, value: Val) -> Val:
        if is_data(value):
            variant = next(v for v in value.type.family.variants if v.cls.__name__ == name)
            return data.field(engine, region, value, variant, variant.fields[index])
        return _record(value).elems[index]

    return await _each(engine, frame, node, read)


def _record(value: Val) -> Seq:
    """A value of a data type that is taken apart.

    Raises:
        InternalError: it is none, which the checker has made sure of.
    """
    if not isinstance(value, Seq) or value.kind != "record":
        raise InternalError("text", f"{describe(value)} is matched as a value of a data type")
    return value


@handles(tuple_field)
async def _tuple_field(engine: Engine, frame: Frame, node: Apply) -> Val:
    async def read(region: Frame, value: Val) -> Val:
        return elements(value)[node.attrs["index"]]

    return await _each(engine, frame, node, read)


async def _each(engine: Engine, frame: Frame, node: Apply, run: Any) -> Val:
    """`run(frame, value)` for the operand, or for each of the values that it may be."""
    value = engine.value(frame, node.args[0])
    if isinstance(value, TaggedUnion):
        return await dispatch(engine, frame, value, run, node, node.origin)
    return await run(frame, value)


def as_number(frame: Frame, value: Val) -> Val:
    """A tensor of rank 0 is a number in compiled text, whatever operation made it."""
    if isinstance(value, Dyn) and isinstance(value.type, Array) and not value.type.shape:
        return Dyn(frame.builder.emit(REGISTRY["as_scalar"], (value.node,)))
    if isinstance(value, Seq):
        parts = tuple(as_number(frame, e) for e in value.elems)
        return Seq(value.kind, parts, value.fields, value.cls)
    return value
