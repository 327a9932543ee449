"""Python's builtins and a few library functions in compiled code."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import operator
import sys

from ...abstract.types import Array, List, Scalar, Struct
from ...ir import syntax as S
from ...ir.node import Apply
from ...ir.prim import REGISTRY
from ...library import lists as prelude
from ...prims.api.numpy_api import IMPLEMENTATIONS
from ...prims.api.operators import OPERATORS
from ...prims.api.promotion import guard
from ...prims.ops.control import undef
from ...prims.ops.effects import check, print_
from ...utils.errors import AttributeError_, TypeError_, ValueError_
from ..engine.branches import branch
from ..engine.conflicts import refuse_shared
from ..engine.conform import entry_type
from ..engine.engine import Engine
from ..engine.frames import Frame, raising, reach
from ..engine.unions import each_option, either_float, nested_choice, without_choices
from ..objects import data, list_methods, lists
from ..objects.advice import cannot_be_compiled
from ..objects.arithmetic import arithmetic
from ..objects.attributes import PropertyVal, attribute
from ..objects.iterables import item_count, walk
from ..objects.leaves import array_length, to_node, to_python
from ..objects.lists import call, length, pushed
from ..objects.sequences import needs_loop
from ..objects.structures import as_sequence
from ..objects.truth import truth
from ..values.kinds import (
    are_leaves,
    class_of,
    classes_in,
    instances,
    is_data,
    is_instance,
    is_list,
    is_run_time,
    is_word,
    known_range,
    possible,
    python_class,
)
from ..values.protocols import is_dataclass, require_plain, user_method
from ..values.treedef import describe
from ..values.values import (
    NONE_VAL,
    Dyn,
    Iter,
    Seq,
    SliceVal,
    Spread,
    Static,
    TaggedUnion,
    Text,
    Val,
)
from .calls import call_value, from_sequence, numeric, takes_sequences
from .registry import handles, special
from .syntax import text_parts


@special(builtins.getattr)
async def getattr_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    if len(args) > 2:
        raise TypeError_("getattr() with a default is not part of the language; name the attribute")
    if is_data(args[0]):
        name = attribute_name(args[1])
        result = await data.attribute(engine, frame, args[0], name, site)
        before = frame.find(site.args[0]) if site is not None and site.args else None
        if site is not None and is_data(before) and before.node is args[0].node:
            # It has the attribute, or an error was raised: what follows need not test again.
            frame.env[site.args[0]] = data.having(args[0], name)
        return result
    value = attribute(engine, frame, args[0], attribute_name(args[1]))
    if isinstance(value, PropertyVal):
        return await call_value(engine, frame, Static(value.function), [value.receiver], {}, origin, site)
    return value


def attribute_name(value: Val) -> str:
    """The name of an attribute, known at compile time.

    Raises:
        TypeError_: it is not known, or no string.
    """
    name = to_python(value, "an attribute name")
    if not isinstance(name, str):
        raise TypeError_(f"attribute name must be string, not '{type(name).__name__}'")
    return name


@special(builtins.slice)
async def slice_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    if len(args) == 1:
        args = [NONE_VAL, *args]
    return SliceVal(*args, *[NONE_VAL] * (3 - len(args)))


@special(builtins.zip)
async def zip_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    strict = kwargs.get("strict")
    if args and isinstance(args[0], Spread):
        return await _transposed(engine, frame, args[0].value, strict)
    if strict is not None and to_python(strict, "zip: strict"):
        lengths = {len(as_sequence(engine, frame, a, "zip strictly")) for a in args}
        if len(lengths) > 1:
            raise TypeError_(f"zip(strict=True) of different lengths {sorted(lengths)}")
    return Iter("zip", tuple(args))


async def _transposed(engine: Engine, frame: Frame, rows: Val, strict: Val | None) -> Val:
    """`zip(*rows)` of a run-time list: the columns.

    Raises:
        TypeError_: its entries are no rows, or are to have one length, which is known at run time only.
    """
    elem = entry_type(frame, rows)
    if isinstance(elem, Struct) and (elem.kind == "tuple" or elem.kind == "record" and issubclass(elem.cls, tuple)):
        some = arithmetic(frame, operator.gt, length(engine, frame, rows), frame.constant(0))
        text = "zip(*rows): there are no columns without rows, and compiled code has one for each entry of a row; test len(rows)"
        guard(frame.builder, frame.var(some), ValueError_, text)
        places = map(frame.constant, range(len(elem.elems)))
        columns = [await call(engine, frame, prelude.column, rows, k) for k in places]
        return Iter("iterator", (Seq("tuple", tuple(Iter("tuple", (c,)) for c in columns)),))
    if not isinstance(elem, List) or strict is not None and to_python(strict, "zip: strict"):
        raise TypeError_(f"*: cannot spread {describe(rows)} here; its length must be known at compile time")
    return Iter("columns", (await call(engine, frame, prelude.transposed, rows),))


@special(builtins.enumerate)
async def enumerate_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    start = arithmetic(frame, operator.index, args[1]) if len(args) > 1 else frame.constant(0)
    return Iter("enumerate", (args[0], start))


@special(builtins.reversed)
async def reversed_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    (value,) = args
    if isinstance(value, Iter) and value.is_iterator:
        raise TypeError_(f"'{value.kind}' object is not reversible; make a list of it first")
    return Iter("reversed", (value,))


@special(builtins.iter)
async def iter_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    if len(args) > 1:
        raise TypeError_("iter(function, sentinel) is not part of the language; write a loop")
    (value,) = args
    return value if isinstance(value, Iter) and value.is_iterator else Iter("iterator", (value,))


@special(builtins.next)
async def next_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """`next(iterator)` and `next(iterator, default)`: its first item, as this is the only use of an iterator.

    Raises:
        TypeError_: it is no iterator, or the call has other arguments.
    """
    if not 1 <= len(args) <= 2 or kwargs:
        raise TypeError_(f"next expected 1 or 2 arguments, got {len(args) + len(kwargs)}")
    iterator, *default = args
    if not isinstance(iterator, Iter) or not iterator.is_iterator:
        raise TypeError_(
            f"next takes an iterator, and this is {describe(iterator)}; write next(iter([...])), or a `for` loop that breaks"
        )
    steps = walk(engine, frame, iterator)
    size = frame.constant(len(steps)) if isinstance(steps, list) else item_count(engine, frame, steps)

    async def first(region: Frame) -> Val:
        if isinstance(steps, list):
            return reach(frame, region, steps[0])
        return steps.item(region, reach(frame, region, steps.start))

    async def none(region: Frame) -> Val:
        return reach(frame, region, default[0]) if default else raising(region, StopIteration, "")

    if size.known:
        return await (first if size.known_value else none)(frame)
    some = arithmetic(frame, operator.gt, size, frame.constant(0))
    return await branch(engine, frame, some, [first, none], site or Apply(frame.graph, undef, origin=origin))


@special(builtins.len)
async def len_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    (value,) = args
    if isinstance(value, Seq):
        if value.kind == "dataset":
            assert are_leaves(value.elems)
            return array_length(frame, value.elems[0])
        if (own := user_method(value, "__len__")) is not None:
            return await call_value(engine, frame, Static(own), args, {}, origin, site)
        if is_dataclass(value):
            raise TypeError_(f"object of type {describe(value)} has no len()")
        return frame.constant(len(value.elems))
    if is_run_time(value):
        return lists.length(engine, frame, value)
    if isinstance(value, Dyn) and isinstance(value.type, Array):
        if not value.type.shape:
            raise TypeError_("len() of unsized object")
        return array_length(frame, value)
    if isinstance(value, Static) and isinstance(value.value, str):
        return frame.constant(len(value.value))
    if isinstance(value, Iter) and not value.is_iterator:
        steps = walk(engine, frame, value)
        if isinstance(steps, list):
            return frame.constant(len(steps))
        return item_count(engine, frame, steps)
    raise TypeError_(f"object of type {describe(value)} has no len()")


@special(builtins.isinstance)
async def isinstance_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    value, classes = args
    known = classes_in(to_python(classes, "isinstance: the class"))
    if is_data(value):
        found = data.test(frame, value, instances(value.type.family, known))
        return frame.constant(found) if isinstance(found, bool) else found
    return frame.constant(is_instance(value, known))


@special(builtins.type)
async def type_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    if is_data(args[0]):
        if args[0].type.family.of_functions:
            raise TypeError_("type(f): the class of a function that is made at run time is not known in compiled code")
        if len(possible(args[0])) > 1:
            raise TypeError_(
                "type(x): the class of x is known at run time only; test it with isinstance(x, ...), or match it"
            )
        return Static(class_of(args[0]) or type(None))
    return Static(python_class(args[0]))


@special(builtins.print)
async def print_call(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    unknown = set(kwargs) - {"sep", "end"}
    if unknown:
        raise TypeError_(f"print: {', '.join(sorted(unknown))} cannot be used in compiled code")
    given = {"sep": " ", "end": "\n"}
    for name, value in kwargs.items():
        found = to_python(value, f"print: {name}")
        if found is not None and not isinstance(found, str):
            raise TypeError_(f"{name} must be None or a string, not {type(found).__name__}")
        given[name] = given[name] if found is None else found
    separator, end = given["sep"], given["end"]

    async def show(region: Frame, values: list[Val]) -> Val:
        parts: list = []
        operands: list = []
        for i, value in enumerate(values):
            if i:
                parts.append(separator)
            more, nodes = text_parts(engine, region, value)
            parts.extend(p if isinstance(p, str) else (p[0] + len(operands), *p[1:]) for p in more)
            operands.extend(nodes)
        region.builder.emit(print_, tuple(operands), {"parts": tuple(parts), "end": end})
        return NONE_VAL

    return await without_choices(engine, frame, list(args), show)


@special(builtins.str)
async def str_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    if len(args) > 1 or kwargs:
        raise TypeError_(
            "str() decodes bytes where it is given an encoding, and compiled code has no bytes; write str(x)"
        )
    if not args:
        return Static("")
    (value,) = args
    if isinstance(value, Static):
        return Static(str(value.value))
    return value if isinstance(value, Text) or is_word(value) else Text(((0, "s", ""),), (value,))


def _of_known(function):
    """A function of values that are known at compile time; others are refused with what to write instead.

    Raises:
        TypeError_: a value is known at run time only, or is none that the function takes.
    """

    async def apply(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        known = []
        for value in args:
            plain = (
                isinstance(value.value, str | None)
                if isinstance(value, Static)
                else isinstance(value, Dyn) and value.known
            )
            if not plain:
                raise TypeError_(cannot_be_compiled(function))
            known.append(value.value if isinstance(value, Static) else value.known_value)
        try:
            return engine.from_python(frame, function(*known, **kwargs), None)
        except (ValueError, OverflowError) as error:
            return raising(frame, type(error), str(error))
        except TypeError as error:
            raise TypeError_(str(error)) from None

    return apply


for _function in (builtins.ord, builtins.chr, builtins.hex, builtins.oct, builtins.bin, builtins.ascii, builtins.repr):
    special(_function)(_of_known(_function))


@special(builtins.divmod)
async def divmod_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    if takes_sequences(divmod, args):
        args = [await from_sequence(engine, frame, a, origin, site) for a in args]
    if not all(isinstance(a, Dyn) and isinstance(a.type, Scalar | Array) for a in args):
        raise TypeError_(f"unsupported operand type(s) for divmod(): {' and '.join(map(describe, args))}")
    return numeric(engine, frame, IMPLEMENTATIONS[divmod], args, {}, "divmod")


def _sequence(kind: str):
    async def make(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        if not args:
            return Seq(kind, ())
        value = args[0]
        if kind == "list" and needs_loop(engine, frame, value):
            return await list_methods.copied(engine, frame, value)
        if (numbers := known_range(value)) is not None:
            return Seq(kind, tuple(frame.constant(n) for n in numbers))
        return Seq(kind, tuple(as_sequence(engine, frame, value, f"make a {kind} of")))

    return make


special(builtins.tuple)(_sequence("tuple"))
special(builtins.list)(_sequence("list"))


def _pair(engine: Engine, frame: Frame, value: Val) -> tuple[str, Val]:
    """A key and what belongs to it.

    Raises:
        TypeError_: it is no pair, or the key is no string that is known at compile time.
    """
    parts = as_sequence(engine, frame, value, "dict")
    if len(parts) != 2:
        raise TypeError_(f"dict: an entry is a pair (key, value), and this one is {describe(value)}")
    key, entry = parts
    if not isinstance(key, Static) or not isinstance(key.value, str):
        raise TypeError_(
            f"dict: the keys are strings that are known at compile time, and this one is {describe(key)}; use a list"
        )
    return key.value, entry


@special(builtins.dict)
async def dict_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    items: dict[str, Val] = {}
    if args:
        if isinstance(args[0], Seq) and args[0].kind == "dict":
            items.update(zip(args[0].fields, args[0].elems, strict=True))
        else:
            items.update(_pair(engine, frame, part) for part in as_sequence(engine, frame, args[0], "make a dict of"))
    items.update(kwargs)
    return Seq("dict", tuple(items.values()), tuple(items))


@special(builtins.bool)
async def bool_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    if not args:
        return frame.constant(False)
    decided = await truth(engine, frame, args[0])
    return frame.constant(decided) if isinstance(decided, bool) else decided


async def _fold(engine, frame, fn, values, origin):
    result = values[0]
    for value in values[1:]:
        result = await call_value(engine, frame, fn, [result, value], {}, origin, None)
    return result


def _quantifier(stop_at: bool):
    async def run(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        if needs_loop(engine, frame, args[0]):
            return await call(engine, frame, prelude.any_of if stop_at else prelude.all_of, args[0])
        name = "logical_or" if stop_at else "logical_and"
        result: Dyn | None = None
        for item in as_sequence(engine, frame, args[0], "any" if stop_at else "all"):
            decided = await truth(engine, frame, item)
            if isinstance(decided, bool):
                if decided is stop_at:
                    return frame.constant(stop_at)
                continue
            result = decided if result is None else Dyn(frame.builder.emit(REGISTRY[name], (result.node, decided.node)))
        return result if result is not None else frame.constant(not stop_at)

    return run


special(builtins.any)(_quantifier(True))
special(builtins.all)(_quantifier(False))


@special(builtins.map)
async def map_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    return Iter("map", tuple(args))


@special(functools.reduce)
async def reduce_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    fn, sequence, *start = args
    if start and needs_loop(engine, frame, sequence):
        return await call(engine, frame, prelude.reduced, fn, sequence, start[0], site=site)
    items = [*start, *as_sequence(engine, frame, sequence, "reduce")]
    if not items:
        raise TypeError_("reduce() of empty iterable with no initial value")
    return await _fold(engine, frame, fn, items, origin)


def _extreme(name: str):
    fn = getattr(builtins, name)
    empty = (
        f"{name}() arg is an empty sequence" if sys.version_info < (3, 12) else f"{name}() iterable argument is empty"
    )

    async def run(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        if not args:
            raise TypeError_(f"{name} expected at least 1 argument, got 0")
        if kwargs:
            return await with_options(engine, frame, args, kwargs)
        if (
            len(args) == 1
            and needs_loop(engine, frame, args[0])
            and not isinstance(getattr(args[0], "type", None), Array)
        ):
            return await list_methods.extreme(engine, frame, name, args[0])
        items = args if len(args) > 1 else as_sequence(engine, frame, args[0], f"take the {name} of")
        if not items:
            return raising(frame, ValueError, empty)
        result = items[0]
        for item in items[1:]:
            result = await larger(engine, frame, [result, item])
        return result

    async def with_options(engine: Engine, frame: Frame, args, kwargs) -> Val:
        """`min(xs, key=f, default=x)`.

        Raises:
            TypeError_: an unknown keyword argument, or a default for several positional arguments.
        """
        if unknown := set(kwargs) - {"key", "default"}:
            raise TypeError_(f"{name}() got an unexpected keyword argument '{min(unknown)}'")
        if len(args) > 1 and "default" in kwargs:
            raise TypeError_(f"Cannot specify a default for {name}() with multiple positional arguments")
        given = args[0] if len(args) == 1 else Seq("tuple", tuple(args))
        xs = given if isinstance(given, Seq) else await list_methods.as_list(engine, frame, given)
        function = prelude.least if name == "min" else prelude.greatest

        async def some(region: Frame) -> Val:
            values = reach(frame, region, xs)
            if getattr(kwargs.get("key", NONE_VAL), "value", 0) is None:
                return await run(engine, region, [values], {}, region.builder.origin, None)
            found = await call(engine, region, function, values, reach(frame, region, kwargs["key"]))
            list_methods.mark_entries(engine, found)
            return found

        async def none(region: Frame) -> Val:
            if "default" in kwargs:
                return reach(frame, region, kwargs["default"])
            return raising(region, ValueError, empty)

        count = length(engine, frame, xs)
        if count.known:
            return await (some if count.known_value else none)(frame)
        decided = arithmetic(frame, operator.gt, count, frame.constant(0))
        return await branch(
            engine, frame, decided, [some, none], Apply(frame.graph, undef, origin=frame.builder.origin)
        )

    async def larger(engine: Engine, frame: Frame, values: list[Val]) -> Val:
        """The second value if it is larger (or, for `min`, smaller), else the first: the operand itself, unconverted.

        Raises:
            TypeError_: they cannot be compared.
        """
        path = nested_choice(values)
        if path is not None:
            return await without_choices(engine, frame, values, lambda region, plain: larger(engine, region, plain))
        a, b = values
        if not isinstance(a, Dyn) or not isinstance(b, Dyn):
            raise TypeError_(f"{name}: {describe(a)} and {describe(b)} cannot be compared")
        if a.type == b.type or not isinstance(a.type, Scalar) or not isinstance(b.type, Scalar):
            return Dyn(OPERATORS[fn](frame.builder, frame.var(a), frame.var(b)).node)
        takes_second = arithmetic(frame, operator.gt if name == "max" else operator.lt, b, a)
        if takes_second.known:
            return b if takes_second.known_value else a

        if a.type.dtype == b.type.dtype == "float64":
            plain = [
                frame.builder.emit(REGISTRY["cast"], (v.node,), {"dtype": "float64", "weak": True}) for v in (b, a)
            ]
            value = frame.builder.emit(REGISTRY["where"], (takes_second.node, *plain))
            whose = [frame.constant(int(not v.type.weak)).node for v in (b, a)]
            return either_float(frame, frame.builder.emit(REGISTRY["where"], (takes_second.node, *whose)), value)
        one, zero = frame.constant(1), frame.constant(0)
        tag = frame.builder.emit(REGISTRY["where"], (takes_second.node, one.node, zero.node))
        return TaggedUnion(Dyn(tag), (a, b))

    return run


special(builtins.min)(_extreme("min"))
special(builtins.max)(_extreme("max"))


@special(builtins.sorted)
async def sorted_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    (value,) = args
    return await list_methods.ordered(engine, frame, value, dict(kwargs))


@special(dataclasses.replace)
async def replace_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    (value,) = args
    if is_data(value):
        return await data.replaced(engine, frame, value, kwargs, site)
    if not isinstance(value, Seq) or value.kind != "record":
        raise TypeError_(f"dataclasses.replace: {describe(value)} is no dataclass")
    require_plain(value.cls)
    for key in kwargs:
        if key not in value.fields:
            raise TypeError_(f"{value.cls.__name__} has no field '{key}'")
    elems = tuple(kwargs.get(f, e) for f, e in zip(value.fields, value.elems, strict=True))
    return Seq("record", elems, value.fields, value.cls)


MATCHES_ITSELF = 1 << 22
"""The flag of `int`, `str`, `tuple` and similar classes: `int(x)` as a pattern captures the whole subject."""


async def _match_class(engine: Engine, frame: Frame, subject: Val, cls: Static, node) -> Val:
    names, position = getattr(cls.value, "__match_args__", None), node.attrs["position"]
    itself = names is None and cls.value.__flags__ & MATCHES_ITSELF
    if itself and not position:
        return subject
    names = names or ("itself",) * bool(itself)
    if position >= len(names):
        raise TypeError_(f"{cls.value.__name__}() accepts {len(names)} positional sub-patterns ({position + 1} given)")
    if is_data(subject):
        return await data.attribute(engine, frame, subject, names[position], node)
    return attribute(engine, frame, subject, names[position])


if hasattr(S, "match_field"):

    @handles(S.match_field)
    @each_option()
    async def match_field(engine: Engine, frame: Frame, node, values: list[Val]) -> Val:
        subject, cls = values
        assert isinstance(cls, Static)
        return await _match_class(engine, frame, subject, cls, node)


if hasattr(S, "match_sequence"):

    @handles(S.match_sequence)
    @each_option()
    async def match_sequence(engine: Engine, frame: Frame, node, values: list[Val]) -> Val:
        (subject,) = values
        if is_run_time(subject):
            compare = operator.ge if node.attrs.get("star") else operator.eq
            return arithmetic(
                frame, compare, lists.length(engine, frame, subject), frame.constant(node.attrs["length"])
            )
        if not isinstance(subject, Seq) or subject.kind not in ("tuple", "list", "record"):
            return frame.constant(False)
        if subject.kind == "record" and not issubclass(subject.cls, tuple):
            return frame.constant(False)
        length, starred = node.attrs["length"], node.attrs.get("star")
        n = len(subject.elems)
        return frame.constant(n >= length if starred else n == length)


if hasattr(S, "list_append"):

    @handles(S.list_append)
    @each_option()
    async def list_append(engine: Engine, frame: Frame, node, values: list[Val]) -> Val:
        xs, x = values
        if is_list(xs):
            refuse_shared(engine, frame, node, xs)
            return pushed(engine, frame, xs, x)
        raise AttributeError_(f"{describe(xs)} is no list, and has no attribute 'append'")


@special(builtins.range)
async def range_(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """`range(stop)`, `range(start, stop)`, `range(start, stop, step)`.

    Raises:
        TypeError_: an argument is no integer, or the step is known to be 0.
    """
    for arg in args:
        ok = (
            isinstance(arg, Dyn)
            and isinstance(arg.type, Scalar)
            and arg.type.dtype.lstrip("u").startswith(("int", "bool"))
        )
        if not ok:
            raise TypeError_(f"range: {describe(arg)} cannot be interpreted as an integer")
    parts = [arithmetic(frame, operator.index, a) for a in args]
    zero, one = frame.constant(0), frame.constant(1)
    start, stop, step = (zero, parts[0], one) if len(parts) == 1 else (*parts, one) if len(parts) == 2 else parts
    if step.known:
        if step.known_value == 0:
            raise TypeError_("range() arg 3 must not be zero")
    else:
        ok = arithmetic(frame, operator.ne, step, zero)
        attrs = {"exception": ValueError, "parts": ("range() arg 3 must not be zero",)}
        frame.builder.emit(check, (ok.node,), attrs)
    return Iter("range", (start, stop, step))


__all__ = ["Iter", "Text", "to_node"]
