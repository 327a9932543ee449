"""Values of algebraic data types: construction, tests for variants, attributes, methods, equality.

A value is a leaf (`Dyn`) of type `Data`. What a test has shown about its variant is recorded with the value
(`KnownRecord`). After `isinstance(t, Leaf)`, or in a case of a `match`, a field is therefore read without a test, and
the last case needs none. If the variant is not known, an attribute is a branch on it, and raises CPython's
AttributeError for the variants that lack it.

Constructing a variant checks the fields against the annotations, which are the types of the record. CPython does not
check them: a value that does not fit is refused, and never converted.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...abstract.declared import Constructed
from ...abstract.family import Family, Variant
from ...abstract.types import BOOL, Array, Data, NoneT, Scalar, Struct, Type, is_static_shape, leaves
from ...ir.build import Builder, Var
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.prim import REGISTRY
from ...prims.ops.control import undef
from ...prims.ops.data import data_as, data_field, data_is, data_same
from ...prims.ops.data_functions import choose
from ...prims.ops.effects import check
from ...utils.attributes import has_own, is_generated
from ...utils.compiling import once
from ...utils.errors import AttributeError_, TypeError_, nearest
from ..engine.branches import branch
from ..engine.conform import chosen
from ..engine.frames import raising, reach
from ..engine.records import adapt, record
from ..engine.unions import dispatch
from ..values.kinds import is_data, name_of, possible, restricted
from ..values.protocols import require_plain, written_method
from ..values.values import NONE_VAL, Bound, Dyn, KnownRecord, Seq, Static, TaggedUnion, Val
from .attributes import PropertyVal, class_attribute


@dataclass(frozen=True)
class Method:
    """A method of a value whose variant is not known: looked up when it is called."""

    name: str


@once
def method(name: str) -> Method:
    """The method with a name; there is one object for each, because treedefs compare functions by identity."""
    return Method(name)


# Construction.


async def construct(engine, frame, family: Family, cls: type, values: tuple[Val, ...]) -> Dyn:
    """An instance of a class of a recursive family.

    Raises:
        FieldError: a field is given something else than its annotation says.
    """
    engine.uses_data = True
    variant = family.variant(cls)
    ready = []
    for name, value, t in zip(variant.fields, values, variant.types, strict=True):
        ready.append(await settled(engine, frame, value, t, f"the field '{name}' of {cls.__name__}"))
    return record(frame, family, variant, ready)


async def settled(engine, frame, value: Val, t: Type, what: str) -> Val:
    """A field's value in which unions of variants, or of a variant and None, are replaced by one value."""
    if not isinstance(value, TaggedUnion) or not isinstance(t, Data):
        return value

    async def arm(region, option: Val) -> Val:
        return Dyn(adapt(region, option, t, what))

    return await dispatch(engine, frame, value, arm, None, frame.builder.origin)


def value_of(engine, nodes: list[Node], t: Type) -> Val:
    """The value with these leaves, which are taken from the front of the list."""
    if isinstance(t, Struct):
        return Seq(t.kind, tuple(value_of(engine, nodes, e) for e in t.elems), t.fields, t.cls)
    node = nodes.pop(0)
    if isinstance(t, NoneT):
        return NONE_VAL
    if isinstance(t, Array):
        engine.shared.add(node)  # The record still holds it.
    return Dyn(node)


def field(engine, frame, value: Dyn, variant: Variant, name: str) -> Val:
    """A field of a value whose variant is known."""
    start, t = variant.place(name)
    nodes = []
    for k in range(start, start + len(leaves(t))):
        attrs = {"type": Data(value.type.family), "variant": variant.number, "index": k}
        nodes.append(frame.builder.emit(data_field, (value.node,), attrs))
    return value_of(engine, nodes, t)


# Tests.


def test(frame, value: Dyn, numbers) -> Dyn | bool:
    """Whether a value is one of the given variants: a bool if that is known."""
    may = possible(value)
    hits = tuple(n for n in may if n in numbers)
    if len(hits) in (0, len(may)):
        return bool(hits)
    if isinstance(value.node, Constant):
        return 0 in hits
    attrs = {"type": Data(value.type.family), "variants": hits}
    return Dyn(frame.builder.emit(data_is, (value.node,), attrs))


def either(frame, condition: Var, a: Node, b: Node) -> Node:
    """`a if condition else b` of two leaves of one type, one of which may be undefined."""
    t = a.type
    if isinstance(t, Scalar) or (isinstance(t, Array) and is_static_shape(t)):
        return REGISTRY["where"](condition, frame.builder.var(a), frame.builder.var(b)).node
    return chosen(frame, condition.node, a, b)


async def by_variant(
    engine, frame, value: Dyn, groups: list[tuple[int, ...]], run: Callable, site: Apply | None
) -> Val:
    """`run(frame, narrowed value)` for the group of variants that the value belongs to at run time.

    Args:
        engine, frame: as everywhere.
        value: the value.
        groups: groups of variants, which together are all possible variants.
        run: coroutine.
        site: the construct, for its place.
    """
    if len(groups) == 1:
        return await run(frame, restricted(value, groups[0]))
    origin = frame.builder.origin
    node = site if site is not None else Apply(frame.graph, undef, origin=origin)
    here = test(frame, value, groups[0])
    rest = restricted(value, [n for g in groups[1:] for n in g])
    if isinstance(here, bool):  # a constant None
        if here:
            return await run(frame, restricted(value, groups[0]))
        return await by_variant(engine, frame, rest, groups[1:], run, site)

    async def this(region) -> Val:
        return await run(region, region.bring(restricted(value, groups[0])))

    async def others(region) -> Val:
        return await by_variant(engine, region, region.bring(rest), groups[1:], run, site)

    return await branch(engine, frame, here, [this, others], node)


# Attributes.


def found_in(family: Family, number: int, name: str) -> Any:
    """What an attribute of a variant is: "field", a member of its class, or `MISSING`."""
    if number == 0:
        return MISSING
    variant = family.variants[number - 1]
    if name in variant.fields:
        return "field"
    return inspect.getattr_static(variant.cls, name, MISSING)


def having(value: Dyn, name: str) -> Dyn:
    """A value narrowed to the variants that have an attribute."""
    numbers = [n for n in possible(value) if found_in(value.type.family, n, name) is not MISSING]
    return restricted(value, numbers) if numbers else value


MISSING = object()
NO_IDENTITY = (
    "whether two functions that are made at run time are one object is not known in compiled code; give them numbers, and compare "
    "those"
)


def is_method(found: Any) -> bool:
    """Whether a member of a class is a function that its objects have as a method."""
    return isinstance(found, types.FunctionType) or has_own(found, "__relay_function__")


async def attribute(engine, frame, value: Dyn, name: str, site) -> Val:
    """`value.name`.

    Raises:
        AttributeError_: no variant that the value may be of has it.
    """
    family, may = value.type.family, possible(value)
    if family.of_functions:
        raise AttributeError_(
            f"a function that is made at run time has no attribute '{name}' in compiled code; it can be called"
        )
    found = {n: found_in(family, n, name) for n in may}
    having = [n for n in may if found[n] is not MISSING]
    if not having:
        names = [f for v in family.variants for f in v.fields]
        if may == (0,):
            raise AttributeError_(f"'NoneType' object has no attribute '{name}'")
        if name in names:  # another variant: CPython would only raise when it gets here
            message = f"'{name_of(family, may[0])}' object has no attribute '{name}'"
            return raising(frame, AttributeError, message)
        raise AttributeError_(
            f"{' | '.join(name_of(family, n) for n in may)} has no field '{name}'{nearest(name, names)}"
        )
    if len(may) > 1 and all(is_method(found[n]) for n in having):
        for n in [n for n in may if n not in having]:
            other = test(frame, value, [k for k in may if k != n])
            message = f"'{name_of(family, n)}' object has no attribute '{name}'"
            if other is True:  # a constant None is not of this variant
                continue
            if other is False:
                return raising(frame, AttributeError, message)
            frame.builder.emit(check, (other.node,), {"exception": AttributeError, "parts": (message,)})
        return Bound(restricted(value, having), method(name))

    async def one(region, narrowed: KnownRecord) -> Val:
        number = narrowed.variants[0]
        if found[number] is MISSING:
            message = f"'{name_of(family, number)}' object has no attribute '{name}'"
            return raising(region, AttributeError, message)
        variant = family.variants[number - 1]
        if found[number] == "field":
            return field(engine, region, narrowed, variant, name)
        if issubclass(variant.cls, Constructed) and name in ("constructor", "fields"):
            if name == "constructor":
                return Static(variant.cls.__name__)
            return Seq("tuple", tuple(field(engine, region, narrowed, variant, f) for f in variant.fields))
        result = class_attribute(engine, region, narrowed, variant.cls, variant.fields, name)
        if isinstance(result, PropertyVal):
            return await engine.call(
                region, Static(result.function), [result.receiver], {}, region.builder.origin, site
            )
        return result

    having += [n for n in may if n not in having]
    return await by_variant(engine, frame, value, [(n,) for n in having], one, site)


async def call_method(engine, frame, value: Dyn, name: str, args, kwargs, site) -> Val:
    """A call of a method that depends on the variant: variants that share the method are one case.

    The attribute was looked up before, except `__call__`, which has no explicit name in the call.
    """

    family = value.type.family
    groups: dict[Any, list[int]] = {}
    for n in possible(value):
        groups.setdefault(id(found_in(family, n, name)), []).append(n)
    origin = frame.builder.origin

    async def one(region, narrowed: KnownRecord) -> Val:
        number = narrowed.variants[0]
        found = found_in(family, number, name)
        if found is MISSING:
            message = f"'{name_of(family, number)}' object is not callable"
            return raising(region, TypeError, message)
        inner = [reach(frame, region, a) for a in args]
        named = {k: reach(frame, region, a) for k, a in kwargs.items()}
        return await engine.call(region, Static(found), [narrowed, *inner], named, origin, site)

    return await by_variant(engine, frame, value, [tuple(g) for g in groups.values()], one, site)


def defines(value: Dyn, name: str) -> bool:
    """Whether the class of a variant that a value may be of defines a special method itself."""
    family = value.type.family
    return any(n and written_method(family.variants[n - 1].cls, name) is not None for n in possible(value))


async def dispatched(engine, frame, args: list[Val], names, run: Callable, site) -> Val | None:
    """`run(frame, args)` with the first argument narrowed to one variant whose class defines one of the given special
    methods.

    Returns:
        The result, or None where no class defines one, or all that is to be known about variants is known.
    """

    for position, arg in enumerate(args):
        if not is_data(arg) or len(possible(arg)) == 1 or not any(defines(arg, name) for name in names):
            continue

        async def one(region, narrowed: KnownRecord, position=position) -> Val:
            inner = [reach(frame, region, a) for a in args]
            inner[position] = narrowed
            try:
                return await run(region, inner)
            except TypeError_ as error:  # CPython would only raise when it gets here with this variant.
                return raising(region, TypeError, error.message)

        return await by_variant(engine, frame, arg, [(n,) for n in possible(arg)], one, site)
    return None


async def replaced(engine, frame, value: Dyn, changes: dict[str, Val], site) -> Val:
    """`dataclasses.replace(value, **changes)`.

    Raises:
        TypeError_: the value is a function.
    """
    family = value.type.family
    if family.of_functions:
        raise TypeError_("replace() should be called on dataclass instances")

    async def one(region, narrowed: KnownRecord) -> Val:
        number = narrowed.variants[0]
        if number == 0:
            raise TypeError_("replace() should be called on dataclass instances, and this may be None")
        variant = family.variants[number - 1]
        require_plain(variant.cls)
        for name in changes:
            if name not in variant.fields:
                raise TypeError_(f"{variant.cls.__name__} has no field '{name}'{nearest(name, variant.fields)}")
        new = {k: reach(frame, region, v) for k, v in changes.items()}
        values = [new[f] if f in new else field(engine, region, narrowed, variant, f) for f in variant.fields]
        return await construct(engine, region, family, variant.cls, tuple(values))

    return await by_variant(engine, frame, value, [(n,) for n in possible(value)], one, site)


# Equality.


AS_TUPLES = sys.version_info < (3, 13)
"""Whether dataclasses compare their fields as tuples, where identical objects are equal, even NaN; newer versions of
Python do not.
"""
NAN = "NaN met NaN: whether they are equal in a container depends on whether they are one object; ask math.isnan first"


def equality(engine, frame, a: Val, b: Val) -> Dyn:
    """`a == b` where one of them is of a data type, as dataclasses compare: same class and equal fields.

    Raises:
        TypeError_: it is a function.
    """
    if not is_data(a):
        a, b = b, a
    assert is_data(a)
    if isinstance(b, Static) and b.value is None:
        found = test(frame, a, (0,))
        return frame.constant(found) if isinstance(found, bool) else found
    family = a.type.family
    if family.of_functions:
        raise TypeError_(NO_IDENTITY)
    if isinstance(b, Seq) and b.kind == "record" and b.cls in family.numbers:
        b = Dyn(adapt(frame, b, Data(family)))
    if not is_data(b) or b.type.family is not family:
        return frame.constant(False)
    graph = equality_graph(engine, family)
    args = tuple(adapt(frame, x, Data(family, True)) for x in (a, b))
    return Dyn(frame.builder.graph.apply(graph, *args, type=BOOL, origin=frame.builder.origin))


def equality_graph(engine, family: Family) -> Graph:
    """The typed function `(a, b) -> bool` that compares two values of a family; it is recursive.

    Raises:
        TypeError_: a class compares in a way of its own, or holds arrays.
    """
    made = engine.functions.made
    if ("equal", family) in made:
        return made["equal", family]
    for variant in family.variants:
        if not _generated(variant.cls):
            raise TypeError_(
                f"{variant.cls.__name__} compares in a way of its own; compare {family.name} by a function"
            )
        if any(isinstance(t, Array) for t in variant.leaves):
            name = variant.cls.__name__
            raise TypeError_(f"{name} holds an array, so == has no truth value; compare {family.name} by a function")
    graph = Graph(f"equal_{'_'.join(v.cls.__name__ for v in family.variants)}")
    made["equal", family] = graph
    t = Data(family, True)
    pair = tuple(graph.add_parameter(n, t) for n in ("a", "b"))
    b = Builder(graph)

    def no(b: Builder, _) -> Node:
        return b.constant(False)

    def is_one(b: Builder, x: Node, number: int) -> Node:
        return b.emit(data_is, (x,), {"type": t, "variants": (number,)})

    def fields_equal(variant: Variant):
        def make(b: Builder, pair) -> Node:
            result: Node = b.constant(True)
            deeper: list[int] = []
            attrs = [{"type": t, "variant": variant.number, "index": k} for k in range(len(variant.leaves))]
            for k, leaf in enumerate(variant.leaves):
                if isinstance(leaf, Data):
                    deeper.append(k)
                elif not isinstance(leaf, NoneT):
                    fields = tuple(b.emit(data_field, (x,), attrs[k]) for x in pair)
                    if leaf.is_float:
                        nans = tuple(b.emit(REGISTRY["ne"], (x, x)) for x in fields)
                        met = b.emit(REGISTRY["logical_and"], (result, b.emit(REGISTRY["logical_and"], nans)))
                        fine = b.emit(REGISTRY["logical_not"], (met,))
                        b.emit(check, (fine,), {"exception": ValueError, "parts": (NAN,)})
                    same = b.emit(REGISTRY["eq"], fields)
                    result = same if isinstance(result, Constant) else b.emit(REGISTRY["logical_and"], (result, same))

            def rest(ks: list[int]):
                def go_on(b: Builder, pair) -> Node:
                    leaf = variant.leaves[ks[0]]
                    assert isinstance(leaf, Data)
                    parts = tuple(b.emit(data_field, (x,), attrs[ks[0]]) for x in pair)
                    wide = tuple(b.emit(data_as, (x,), {"type": Data(leaf.family, True)}) for x in parts)
                    same = b.graph.apply(equality_graph(engine, leaf.family), *wide, type=BOOL, origin=b.origin)
                    return choose(b, same, rest(ks[1:]), no, pair) if ks[1:] else same

                return go_on

            return choose(b, result, rest(deeper), no, pair) if deeper else result

        return make

    def from_variant(k: int):
        def make(b: Builder, pair) -> Node:
            if k == len(family.variants):
                return is_one(b, pair[1], 0)
            variant = family.variants[k]

            def then(b: Builder, pair) -> Node:
                return choose(b, is_one(b, pair[1], variant.number), fields_equal(variant), no, pair)

            return choose(b, is_one(b, pair[0], variant.number), then, from_variant(k + 1), pair)

        return make

    if AS_TUPLES:  # where identical objects are equal
        same = b.emit(data_same, pair)
        graph.output = choose(b, same, lambda b, _: b.constant(True), from_variant(0), pair)
    else:
        graph.output = from_variant(0)(b, pair)
    return graph


def _generated(cls: type) -> bool:
    """Whether the comparison of a class is the one that `dataclass` made."""
    return cls.__dataclass_params__.eq and is_generated(getattr(cls, "__eq__", None))
