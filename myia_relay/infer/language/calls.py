"""Calls: what happens when a value is called.

A callee is looked up in this order: what higher layers registered (`special`), Python operators on numbers and
structures, NumPy and math functions (from a table, or written in Python in `library`), decorated and plain Python
functions (parsed), classes.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
from collections.abc import Hashable
from dataclasses import replace
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from ...abstract.declared import ConstructorAt, declaration_of
from ...abstract.families import family_of
from ...abstract.types import Array, List, Ref, Scalar, is_array_entry
from ...ir.node import Apply, Graph
from ...ir.syntax import call_place
from ...library.complex_numbers import COMPLEX, OF_DTYPE, OF_SEQUENCES, REAL, Complex, number_of, part_dtype
from ...library.index_grids import GRIDS, Points, Stretch
from ...library.joining import LISTED, OF_ANY_SIZES, OF_ARRAYS
from ...library.sources import SOURCES
from ...library.ufunc_methods import GENERAL, OWN
from ...prims.api.numpy_api import IMPLEMENTATIONS, METHODS
from ...prims.api.numpy_elementwise import own
from ...prims.api.operators import OPERATORS
from ...prims.api.promotion import strong
from ...prims.api.random_api import RANDOM
from ...prims.rules.broadcast import as_array
from ...utils.attributes import has_own, own_attribute
from ...utils.errors import CompileError, TypeError_, nearest
from ...utils.source import Origin
from ..engine.cells import frozen
from ..engine.drift import require_numbered
from ..engine.engine import IN_PLACE, Ambient, Engine
from ..engine.frames import Frame, Turn, emit, parameter_key, reach, shares
from ..engine.iterators import refuse_captured
from ..engine.unions import dispatch, first_choice, merged, with_one_value, without_choices
from ..objects import data
from ..objects.advice import SYMBOLS, cannot_be_compiled, has_advice, is_known_foreign, is_of_library
from ..objects.attributes import METHODS_OF_REFS
from ..objects.comparisons import sequence_class
from ..objects.instances import instance_made
from ..objects.iterables import list_of_tuple, unwrapped
from ..objects.leaves import as_new, lift, to_python
from ..objects.list_methods import list_method, list_operator
from ..objects.ranges import range_method, range_operator
from ..objects.sequences import plain
from ..objects.structures import operate, says_dtype, sequence_method, to_argument
from ..objects.truth import truth
from ..values.kinds import class_of, complex_parts, is_data, is_list, is_run_time, python_class
from ..values.protocols import (
    is_dataclass,
    is_named_tuple_class,
    is_record,
    lookup,
    require_plain,
    truth_method,
    user_method,
)
from ..values.sharing import arrays_of
from ..values.treedef import describe
from ..values.values import (
    AtVal,
    Bound,
    Chosen,
    ClosureVal,
    Derived,
    Dyn,
    Iter,
    Raised,
    Seq,
    SliceVal,
    Static,
    TaggedUnion,
    Val,
)
from .functions import call_function
from .item_changes import changed, updated, written_back
from .procedures import received
from .registry import DERIVED, OF_CLASS, SPECIAL
from .signatures import fitted

# Operators that also work on structures and compile-time objects; `structures.structural` implements them.
STRUCTURAL = dict.fromkeys(
    (operator.getitem, operator.not_, operator.is_, operator.is_not, operator.contains, operator.eq, operator.ne), True
)
# Builtins that consume an iterator, or return what it iterates over.
CONSUMERS = (list, tuple, dict, sum, min, max, sorted, any, all, zip, enumerate, map, functools.reduce)


async def call_value(engine: Engine, frame: Frame, fn: Val, args, kwargs, origin: Origin, site: Apply | None) -> Val:
    """Call any value.

    Raises:
        TypeError_: it cannot be called.
    """
    if args and isinstance(args[0], Chosen) and isinstance(fn, Static):
        return await changed(engine, frame, fn.value, args[0], args[1], origin)
    if isinstance(fn, TaggedUnion):

        async def chosen(region: Frame, option: Val) -> Val:
            inner = [reach(frame, region, a) for a in args]
            named = {k: reach(frame, region, a) for k, a in kwargs.items()}
            return await call_value(engine, region, option, inner, named, origin, site)

        return await dispatch(engine, frame, fn, chosen, site, origin)
    if engine.iterators:
        args = [await plain(engine, frame, a, site) for a in args]
        kwargs = {k: await plain(engine, frame, a, site) for k, a in kwargs.items()}
    position = first_choice([*args, *kwargs.values()])
    if position is not None and not kwargs and isinstance(fn, Static) and is_numeric(fn):
        position = first_choice(args := merged(frame, list(args), isinstance(fn.value, np.ufunc)))
        if position is not None and (result := with_one_value(frame, fn.value, args)) is not None:
            return result
    if position is not None and not takes_choices(fn):
        names = list(kwargs)

        async def with_option(region: Frame, option: Val) -> Val:
            inner = [reach(frame, region, a) for a in (*args, *kwargs.values())]
            inner[position] = option
            named = dict(zip(names, inner[len(args) :], strict=True))
            return await call_value(engine, region, reach(frame, region, fn), inner[: len(args)], named, origin, site)

        choice = [*args, *kwargs.values()][position]
        assert isinstance(choice, TaggedUnion)
        return await dispatch(engine, frame, choice, with_option, site, origin)
    if is_data(fn) and fn.type.family.of_functions:
        return await call_function(engine, frame, fn, args, kwargs, origin)
    if isinstance(fn, ClosureVal):
        return await call_closure(engine, frame, fn, args, kwargs, origin, site)
    if isinstance(fn, Derived):
        keys = list(kwargs)

        async def transformed(region: Frame, values: list[Val]) -> Val:
            function = reach(frame, region, fn.function)
            if engine.with_cells:
                function, *values = frozen(region, [function, *values])
            inner = Derived(fn.transform, function, fn.options)
            named = dict(zip(keys, values[len(args) :], strict=True))
            return await DERIVED[fn.transform](engine, region, inner, values[: len(args)], named, origin, site)

        return await without_choices(engine, frame, [*args, *kwargs.values()], transformed)
    if isinstance(fn, Bound):
        return await call_method(engine, frame, fn, args, kwargs, origin, site)
    if isinstance(fn, Static):
        result = await call_static(engine, frame, fn.value, args, kwargs, origin, site)
        if isinstance(fn.value, BuiltinFunctionType) and fn.value in IN_PLACE and args:
            return written_back(frame, fn.value.__name__, args[0], result)
        return result
    if (method := user_method(fn, "__call__")) is not None:
        return await call_value(engine, frame, Static(method), [fn, *args], kwargs, origin, site)
    if is_data(fn) and data.defines(fn, "__call__"):
        return await data.call_method(engine, frame, fn, "__call__", args, kwargs, site)
    if isinstance(fn, Dyn) and isinstance(fn.type, Ref):
        return await METHODS_OF_REFS["__call__"](engine, frame, fn, args, kwargs, origin, site)
    raise TypeError_(f"{describe(fn)} is not callable")


def is_numeric(fn: Static) -> bool:
    """Whether a callable is arithmetic, a comparison or a NumPy function, which do not depend on the class of a number."""
    module = getattr(fn.value, "__module__", None)
    arithmetic = module == "_operator" and fn.value.__name__.strip("_") in SYMBOLS or fn.value is abs
    return arithmetic or (isinstance(fn.value, np.ufunc) and lookup(IMPLEMENTATIONS, fn.value) is not None)


def takes_choices(fn: Val) -> bool:
    """Whether a callable accepts a tagged union: functions with source do, everything else is called option by option."""
    if isinstance(fn, Static):
        value = fn.value
        if lookup(SPECIAL, value) is not None or lookup(OPERATORS, value) is not None:
            return False
        return isinstance(value, types.FunctionType | type) or has_own(value, "__relay_function__")
    return isinstance(fn, ClosureVal)


async def call_static(engine: Engine, frame: Frame, value: Any, args, kwargs, origin: Origin, site) -> Val:
    """Call a Python object.

    Raises:
        TypeError_: it cannot be called, or is a library's function that cannot be compiled.
        CompileError: the function cannot be compiled.
    """
    if isinstance(value, BuiltinFunctionType | type):
        args, kwargs = fitted(value, args, kwargs)
    handler = lookup(SPECIAL, value)
    if handler is not None:
        if value in CONSUMERS:
            args = [unwrapped(a) for a in args]
        return await handler(engine, frame, args, kwargs, origin, site)
    if (
        value is operator.getitem
        and isinstance(args[0], Static)
        and (grid := GRIDS.get(type(args[0].value))) is not None
    ):
        return await call_python(engine, frame, grid, grid_parts(args[1]), {}, origin, site)
    if not kwargs and (lookup(OPERATORS, value) is not None or lookup(STRUCTURAL, value)):
        own = await operator_method(engine, frame, value, args, origin, site) if args else None
        if value in (operator.not_, operator.contains):
            args = [list_of_tuple(args[0]), *args[1:]]
        if own is None and takes_sequences(value, args):
            value = binary(value, args[0])
            args = [await from_sequence(engine, frame, a, origin, site) for a in args]
        extends = value is operator.iadd and is_list(args[0]) and not is_list(args[1])
        if own is None and (extends or any(is_run_time(a) for a in args)):
            own = await list_operator(engine, frame, value, args)
        if own is None and args and isinstance(first := args[0], Iter) and first.kind == "range":
            own = await range_operator(engine, frame, value, args)
        if own is None and not args:
            return frame.constant(value())  # `int()`, `float()`
        return operate(engine, frame, value, args) if own is None else own
    if isinstance(value, Hashable) and value in REAL and (made := with_part_dtype(args, kwargs, True)) is not None:
        # Called here, not in a function: sizes that a value decides are the same in both parts, and known to the caller.
        part = await call_static(engine, frame, value, *made, origin, site)
        zeros = await call_static(engine, frame, np.zeros_like, [part], {}, origin, site)
        return Seq("record", (part, zeros), ("real", "imag"), Complex)
    if (found := complex_function(value, args, kwargs)) is not None:
        made = await call_python(engine, frame, found[0], found[1], found[2], origin, site)
        made = of_numpy(frame, made) if gives_numpys_numbers(value) else made
        return copied(frame, made) if value in (np.array, np.copy) else made
    if isinstance(value, BuiltinFunctionType) and isinstance(ufunc := value.__self__, np.ufunc):
        method = OWN.get((ufunc, value.__name__))
        if method is not None:
            return await call_python(engine, frame, method, args, kwargs, origin, site)
        if (general := GENERAL.get(value.__name__)) is not None and ufunc.nin == 2 and ufunc.nout == 1:
            return await call_python(engine, frame, general, [Static(ufunc), *args], kwargs, origin, site)
    if (
        args
        and isinstance(args[0], Dyn)
        and isinstance(args[0].type, List)
        and not isinstance(args[0].type.elem, Scalar)
    ):
        joined = lookup(OF_ANY_SIZES if is_array_entry(args[0].type.elem) else LISTED, value)
        if joined is not None:
            return await call_python(engine, frame, joined, args, kwargs, origin, site)
        if isinstance(value, Hashable) and value in OF_ARRAYS:
            args = [await call_python(engine, frame, LISTED[np.array], args[:1], {}, origin, site), *args[1:]]
    implementation = lookup(IMPLEMENTATIONS, value)
    if implementation is not None:
        name, keys = getattr(value, "__name__", str(value)), list(kwargs)

        async def apply(region: Frame, values: list[Val]) -> Val:
            named = dict(zip(keys, values[len(args) :], strict=True))
            return numeric(engine, region, implementation, values[: len(args)], named, name)

        return await without_choices(engine, frame, [*args, *kwargs.values()], apply)
    written = lookup(SOURCES, value)
    if written is not None:
        return await call_python(engine, frame, written, args, kwargs, origin, site)
    transformed = own_attribute(value, "__relay_derived__")
    if transformed is not None:
        transform, inner, options = transformed
        fn = Derived(transform, engine.from_python(frame, inner, None), options)
        return await call_value(engine, frame, fn, args, kwargs, origin, site)
    if isinstance(value, ConstructorAt):
        return await data.construct(
            engine, frame, engine.families.instances.of(value.declaration, value.args), value.cls, tuple(args)
        )
    if (handler := OF_CLASS.get(type(value))) is not None:
        return await handler(engine, frame, value, args, kwargs, origin, site)
    function = own_attribute(value, "__relay_function__")
    if function is not None:
        return await call_static(engine, frame, function, args, kwargs, origin, site)
    model = own_attribute(value, "__relay_model__")
    if model is not None:
        return await call_model_function(engine, frame, value, args, kwargs, origin, site)
    if isinstance(value, types.FunctionType):
        try:
            return await call_python(engine, frame, value, args, kwargs, origin, site)
        except CompileError as error:
            if not is_of_library(value):
                raise
            reason = "its source is not part of the language"
            notes = [] if has_advice(value) else [(error.message, error.loc)]
            raise TypeError_(cannot_be_compiled(value, reason), None, *notes) from None
    if isinstance(value, types.MethodType):
        receiver = engine.from_python(frame, value.__self__, None)
        return await call_value(engine, frame, Static(value.__func__), [receiver, *args], kwargs, origin, site)
    if isinstance(value, type):
        return await construct(engine, frame, value, args, kwargs, origin, site)
    if isinstance(value, functools.partial):
        first = [engine.from_python(frame, a, None) for a in value.args]
        named = {k: engine.from_python(frame, a, None) for k, a in value.keywords.items()} | kwargs
        fn = engine.from_python(frame, value.func, None)
        return await call_value(engine, frame, fn, first + args, named, origin, site)
    if isinstance(value, functools._lru_cache_wrapper):  # a pure function needs no cache of its results
        return await call_static(engine, frame, value.__wrapped__, args, kwargs, origin, site)
    method = type(value).__call__ if callable(value) else None
    if isinstance(method, types.FunctionType):
        engine.depend("attribute", type(value), "__call__", method)
        return await call_static(engine, frame, types.MethodType(method, value), args, kwargs, origin, site)
    if not callable(value):
        raise TypeError_(f"'{type(value).__name__}' object is not callable")
    raise TypeError_(cannot_be_compiled(value))


def complex_function(
    value: Any, args: list[Val], kwargs: dict[str, Val]
) -> tuple[Any, list[Val], dict[str, Val]] | None:
    """The function that a call of NumPy means where it is given complex numbers or a complex dtype, and what that is given."""
    if value is complex:
        return number_of, args, kwargs
    if (made := lookup(OF_DTYPE, value)) is not None and (changed := with_part_dtype(args, kwargs)) is not None:
        return made, *changed
    if any(isinstance(a, Seq) and a.cls is Complex for a in args):
        function = lookup(COMPLEX, value)
        return None if function is None else (function, args, kwargs)
    if args and (function := lookup(OF_SEQUENCES, value)) is not None and holds_complex(args[0]):
        return function, args, kwargs
    return None


def with_part_dtype(
    args: list[Val], kwargs: dict[str, Val], like: bool = False
) -> tuple[list[Val], dict[str, Val]] | None:
    """Arguments in which a complex dtype has become that of the parts, by name; None where there is none.

    Args:
        args, kwargs: of a function of NumPy.
        like: whether a complex first argument says that the result is complex; it becomes its real part.
    """
    first = args[0] if args else None
    if like and isinstance(first, Seq) and first.cls is Complex:
        args = [first.elems[0], *args[1:]]
        if len(args) == 1 and "dtype" not in kwargs:
            return args, kwargs
    for position, arg in enumerate(args[1:], 1):
        if isinstance(arg, Static) and (part := part_dtype(arg.value)) is not None:
            return [*args[:position], *args[position + 1 :]], {**kwargs, "dtype": Static(part)}
    dtype = kwargs.get("dtype")
    if isinstance(dtype, Static) and (part := part_dtype(dtype.value)) is not None:
        return args, {**kwargs, "dtype": Static(part)}
    return None


def holds_complex(value: Val) -> bool:
    """Whether a tuple or list, of tuples and lists, has complex entries."""
    if not isinstance(value, Seq) or value.kind not in ("tuple", "list"):
        return False
    return any(isinstance(e, Seq) and (e.cls is Complex or holds_complex(e)) for e in value.elems)


def grid_parts(index: Val) -> list[Val]:
    """The parts of an index of `np.mgrid` and its like, as `library.index_grids` takes them.

    Raises:
        TypeError_: a number of points is not known at compile time.
    """
    parts = index.elems if isinstance(index, Seq) and index.kind == "tuple" else (index,)
    out: list[Val] = []
    for part in parts:
        if not isinstance(part, SliceVal):
            out.append(part)
        elif isinstance(part.step, Seq) and part.step.cls is Complex:
            count = part.step.elems[1]
            if not isinstance(count, Dyn) or not count.known:
                raise TypeError_(
                    "the number of points in start:stop:n * 1j must be known at compile time; write np.linspace"
                )
            number = Static(int(abs(count.known_value)))
            out.append(Seq("record", (part.start, part.stop, number), Points._fields, Points))
        else:
            out.append(Seq("record", (part.start, part.stop, part.step), Stretch._fields, Stretch))
    return out


async def call_python(engine: Engine, frame: Frame, function, args, kwargs, origin: Origin, site) -> Val:
    """Call a plain Python function by its source."""
    graph = engine.source_of(function)
    kwargs, unshared = own_parameters(frame, graph, kwargs)
    values = bind(engine, frame, graph, args, kwargs, None)
    context = callee_context(frame, graph, values, site, unshared)
    result = await engine.call_graph(frame, graph, values, (), origin, context)
    return received(engine, frame, graph, result, (args, kwargs), site)


async def call_closure(engine: Engine, frame: Frame, fn: ClosureVal, args, kwargs, origin: Origin, site) -> Val:
    """Call a nested function."""
    env = frame.captured(fn)
    refuse_captured(fn.graph, [value for _, value in env])
    kwargs, unshared = own_parameters(frame, fn.graph, kwargs)
    values = bind(engine, frame, fn.graph, args, kwargs, dict(env))
    context = callee_context(frame, fn.graph, values, site, unshared)
    result = await engine.call_graph(frame, fn.graph, values, env, origin, context)
    return received(engine, frame, fn.graph, result, (args, kwargs), site)


def own_parameters(frame: Frame, graph: Graph, kwargs: dict[str, Val]) -> tuple[dict[str, Val], bool | None]:
    """The keywords that a function takes, and what a call in a model says of its layers: `block(x, unshared=True)` gives each
    iteration of the loops around parameters of its own, `False` lets them share, None says nothing.

    Raises:
        TypeError_: it is called outside of a model.
    """
    s = graph.signature
    if "unshared" not in kwargs or s is None or s.kwarg is not None or "unshared" in s.names:
        return kwargs, None
    if frame.context.scope is None:
        raise TypeError_(
            f"{graph.name}(..., unshared=...): this gives each iteration of a loop parameters of its own, in a function decorated "
            "with @relay_model"
        )
    kwargs = dict(kwargs)
    unshared = to_python(kwargs.pop("unshared"), f"{graph.name}: unshared")
    if not isinstance(unshared, bool):
        raise TypeError_(f"{graph.name}: unshared is True or False, not {unshared!r}")
    if unshared:
        require_numbered(frame.context.iteration, graph.name)
    return kwargs, unshared


def callee_context(frame: Frame, graph: Graph, values: list[Val], site, unshared: bool | None = None) -> Ambient:
    """The context of a function called from here: inside a model the path is extended by the call site.

    Calls of a recursion over a tree, of which only a run knows how many there are, share the path of the outermost one.
    """
    context = frame.context
    if context.scope is None:
        return context
    if any(map(is_data, values)):
        found, spec = None, frame.spec
        while spec is not None and spec.context.scope is context.scope:
            found, spec = spec if spec.source is graph else found, spec.caller
        if found is not None:
            context.scope.recursive.add(found.context.path)
            return replace(context, path=found.context.path, iteration=found.context.iteration)
    place = call_place(site)
    path = (*context.path, Turn(place, context.iteration) if unshared else place)
    if unshared is None and shares(path, context.iteration):
        context.scope.note_block(path, graph.name, context.iteration)
    return replace(context, path=path)


async def call_model_function(engine: Engine, frame: Frame, model, args, kwargs, origin: Origin, site) -> Val:
    """Call a function with parameters: as a layer of the model being run, or as the root of a bound one.

    Raises:
        TypeError_: it is called without a model.
    """
    context = frame.context
    graph = engine.source_of(model.__relay_model__)
    unshared = None
    if context.scope is not None:
        kwargs, unshared = own_parameters(frame, graph, kwargs)
    values = bind(engine, frame, graph, args, kwargs, None)
    if context.scope is not None:
        context = callee_context(frame, graph, values, site, unshared)
    else:
        scope = dict(context.models).get(model)
        if scope is None:
            raise TypeError_(
                f"{graph.name} has hidden parameters and needs a model: make one with "
                f"model = relay.create_model({graph.name}), then call model(x), or relay.grad(model, loss, args) "
                "on a function that calls it"
            )
        engine.unrolled |= scope.unrolled
        context = Ambient(context.models, scope, (), context.training, cuts=context.cuts)
        if context.draws():
            frame = apart(frame, scope)
    result = await engine.call_graph(frame, graph, values, (), origin, context)
    return received(engine, frame, graph, result, (args, kwargs), None)


def apart(frame: Frame, model: Any) -> Frame:
    """Where one of several calls of a model in a loss is made: each draws from a key of its own."""
    spec = frame.spec
    while spec.caller is not None:
        spec = spec.caller
    number = spec.made["calls of models"] = spec.made.get("calls of models", 0) + 1
    key = parameter_key(model, "key")
    outer = frame.implicit(key, Array("uint64", ()), "key")
    inner = frame.scope()
    own = RANDOM["fold_in"](frame.builder, frame.builder.var(outer), -number)
    inner.providers[key] = as_array(own).node
    return inner


def bind(engine: Engine, frame: Frame, graph: Graph, args, kwargs: dict[str, Val], env: dict | None) -> list[Val]:
    """Arguments in the order of the parameters, as Python binds them.

    Raises:
        TypeError_: CPython's complaint about missing, unexpected or doubled arguments.
    """
    s = graph.signature
    if s is None:
        return list(args)
    values: list[Val | None] = [None] * len(s.names)
    positional = list(args)
    for index in range(min(s.positional, len(positional))):
        values[index] = positional[index]
    extra = positional[s.positional :]
    if s.vararg is not None:
        values[s.vararg] = Seq("tuple", tuple(extra))
    elif extra:
        plural = "s" if s.positional != 1 else ""
        raise TypeError_(
            f"{graph.name}() takes {s.positional} positional argument{plural} but {len(positional)} "
            f"{'was' if len(positional) == 1 else 'were'} given"
        )
    rest: dict[str, Val] = {}
    for name, value in kwargs.items():
        index = s.names.index(name) if name in s.names else -1
        if index < 0 or index < s.posonly or index in (s.vararg, s.kwarg):
            if s.kwarg is None:
                raise TypeError_(f"{graph.name}() got an unexpected keyword argument '{name}'{nearest(name, s.names)}")
            rest[name] = value
        elif values[index] is not None:
            raise TypeError_(f"{graph.name}() got multiple values for argument '{name}'")
        else:
            values[index] = value
    if s.kwarg is not None:
        values[s.kwarg] = Seq("dict", tuple(rest.values()), tuple(rest))
    missing = []
    for index, name in enumerate(s.names):
        if values[index] is None:
            if index in s.defaults:
                default = s.defaults[index]
                known = env.get(default) if env else None
                values[index] = known if known is not None else engine.value(frame, default)
            else:
                missing.append(f"'{name}'")
    if missing:
        names = missing[0] if len(missing) == 1 else ", ".join(missing[:-1]) + " and " + missing[-1]
        raise TypeError_(
            f"{graph.name}() missing {len(missing)} required positional argument{'s' if len(missing) > 1 else ''}: {names}"
        )
    return [v for v in values if v is not None]


async def from_sequence(engine: Engine, frame: Frame, value: Val, origin: Origin, site) -> Val:
    """An operand of NumPy's operators: a list or a tuple as an array, anything else as it is."""
    return await call_static(engine, frame, np.asarray, [value], {}, origin, site) if is_sequence(value) else value


def binary(op: Any, left: Val) -> Any:
    """The operator that NumPy computes for a list or a tuple on the left: `xs += array` does not change `xs`.

    Raises:
        TypeError_: `xs` is a list. Names are followed as if it were changed.
    """
    name = op.__name__
    if name.strip("_") in BY_ELEMENTS or not is_sequence(left):
        return op
    if is_list(left):
        symbol = SYMBOLS.get(name[1:], name[1:])
        advice = ", or xs.extend(array) for a longer list" if symbol == "+" else ""
        raise TypeError_(
            f"'{symbol}=' of a list and an array makes a new array in NumPy, and changes no list; in compiled code, write "
            f"xs = xs {symbol} array{advice}"
        )
    return getattr(operator, name[1:])


BY_ELEMENTS = frozenset(
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift divmod lt le gt ge eq ne".split()
)
"""Operators that NumPy's arrays have."""


def is_sequence(value: Val) -> bool:
    """Whether NumPy makes an array of an operand: a list or a tuple."""
    if isinstance(value, Seq):
        return value.cls is not Complex and sequence_class(value) in ("tuple", "list")
    return is_list(value)


def takes_sequences(op: Any, args: list[Val]) -> bool:
    """Whether an operator is NumPy's, with an array or a number of its own on one side and a list or a tuple on the other.

    `[1, 2] * np.int64(3)` repeats the list.
    """
    name = op.__name__.strip("_")
    if len(args) != 2 or not (name in BY_ELEMENTS or name.startswith("i") and name[1:] in BY_ELEMENTS):
        return False
    name = name if name in BY_ELEMENTS else name[1:]
    for x, other in (args, args[::-1]):
        if isinstance(x, Dyn) and is_sequence(other):
            if isinstance(x.type, Array):
                return True
            if isinstance(x.type, Scalar) and not x.type.weak and name not in ("mul", "imul"):
                return True
    return False


MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
AUGMENTED = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul")


async def operator_method(engine: Engine, frame: Frame, op, args: list[Val], origin: Origin, site) -> Val | None:
    """An operator that a user's class defines: `__add__`, or `__radd__` of the right operand; None where there is none."""
    base = op.__name__.strip("_")
    plain = base.removeprefix("i") if base in AUGMENTED else base
    mirrored = MIRRORED.get(plain, "r" + plain)
    if any(map(is_data, args)):

        async def again(region: Frame, values: list[Val]) -> Val:
            own = await operator_method(engine, region, op, values, origin, site)
            return operate(engine, region, op, values) if own is None else own

        names = (f"__{base}__", f"__{plain}__", f"__{mirrored}__")
        found = await data.dispatched(engine, frame, args, names, again, site)
        if found is not None:
            return found
    if op is operator.not_ and truth_method(args[0]) is not None:
        found = await truth(engine, frame, args[0])
        return frame.constant(not found) if isinstance(found, bool) else emit(frame, "logical_not", found)
    if op is operator.ne and is_dataclass(args[0]) and user_method(args[0], "__ne__") is None:
        equal = user_method(args[0], "__eq__")  # classes get a default `__ne__`; tuples have their own
        if equal is not None:
            found = await call_value(engine, frame, Static(equal), list(args), {}, origin, None)
            return await call_value(engine, frame, Static(operator.not_), [found], {}, origin, None)
    for name in dict.fromkeys((base, plain)):  # `x += y` is `__iadd__`, or else `__add__`
        method = user_method(args[0], f"__{name}__")
        if method is not None:
            return await call_value(engine, frame, Static(method), list(args), {}, origin, site)
    left, right = args[0], args[-1]
    alike = is_record(left) and is_record(right) and left.cls is right.cls
    if len(args) == 2 and not (alike and plain not in MIRRORED):  # CPython does not ask the same class again
        method = user_method(args[1], f"__{mirrored}__")
        if method is not None:
            left = from_numpy(engine, frame, left, right, plain)
            return await call_value(engine, frame, Static(method), [args[1], left], {}, origin, site)
    return None


def from_numpy(engine: Engine, frame: Frame, left: Val, right: Val, op: str) -> Val:
    """The operand that a class's `__radd__` gets: a NumPy scalar on the left handles the operator itself, and passes a
    Python number on.

    Raises:
        TypeError_: NumPy would make an array of the object or of the results.
    """
    if (
        not isinstance(left, Dyn)
        or not isinstance(left.type, Array | Scalar)
        or isinstance(left.type, Scalar)
        and left.type.weak
    ):
        return left
    cls = class_of(right) if is_data(right) else python_class(right)
    assert cls is not None  # None has no such method
    if getattr(cls, "__array_ufunc__", 0) is None:  # NumPy defers to the class
        return left
    sequence = any(hasattr(cls, name) for name in ("__array__", "__len__", "__getitem__"))
    if isinstance(left.type, Array) or op in MIRRORED or sequence:
        symbol = SYMBOLS.get(op) or SYMBOLS.get(f"{op}_", op)
        what = "its elements one by one" if isinstance(left.type, Array) else "it as an array would"
        raise TypeError_(
            f"NumPy takes '{symbol}' of {describe(left)} on the left of {cls.__name__} for itself, and combines {what}; write "
            f"{cls.__name__} on the left, or __array_ufunc__ = None in the class, and NumPy leaves the operator to it"
        )
    return numeric(engine, frame, METHODS["item"], [left], {}, "item")


LIST_METHODS = ("append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort", "copy", "count", "index")


def numeric(engine: Engine, frame: Frame, implementation, args, kwargs, name: str) -> Val:
    """A NumPy or math function on values: static parameters as Python values, the others staged.

    Raises:
        TypeError_: the arguments do not fit.
    """  # noqa: DOC501 (TypeError_ is one)
    positions = implementation.positional
    staged_args, staged_kwargs = [], {}
    typed = says_dtype(name, positions, args, kwargs)
    for position, arg in enumerate(args):
        parameter = positions[position] if position < len(positions) else None
        staged_args.append(to_argument(engine, frame, arg, parameter in implementation.static, name, parameter, typed))
    for key, arg in kwargs.items():
        staged_kwargs[key] = to_argument(engine, frame, arg, key in implementation.static, name, key)
    try:
        result = implementation(frame.builder, *staged_args, **staged_kwargs)
    except TypeError as error:
        if isinstance(error, CompileError):
            raise
        raise TypeError_(
            f"{name}: {str(error).replace(getattr(implementation.function, '__name__', '') + '()', name + '()')}"
        ) from error
    made = lift(engine, frame, result)
    if name in RETURNING or any(isinstance(v, Dyn) and v.known and not v.known_value for v in [kwargs.get("copy")]):
        return made
    return as_new(frame, made, [*args, *kwargs.values()])


RETURNING = ("asarray", "asanyarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d")
"""Functions of NumPy that return an array as it is, if it is what they make."""


async def call_method(engine: Engine, frame: Frame, fn: Bound, args, kwargs, origin: Origin, site) -> Val:
    """Call a method of an array, a reference or a record.

    Raises:
        TypeError_: a complex array is converted to a dtype that is not complex.
    """
    receiver = fn.receiver
    if isinstance(fn.function, data.Method):
        assert isinstance(receiver, Dyn)
        return await data.call_method(engine, frame, receiver, fn.function.name, args, kwargs, site)
    if isinstance(receiver, TaggedUnion):

        async def of_option(region: Frame, option: Val) -> Val:
            inner = [reach(frame, region, a) for a in args]
            named = {k: reach(frame, region, a) for k, a in kwargs.items()}
            return await call_method(engine, region, Bound(option, fn.function), inner, named, origin, site)

        return await dispatch(engine, frame, receiver, of_option, site, origin)
    if isinstance(fn.function, str):
        if isinstance(receiver, Dyn) and isinstance(receiver.type, Ref):
            return await METHODS_OF_REFS[fn.function](engine, frame, receiver, args, kwargs, origin, site)
        if isinstance(receiver, Dyn) and isinstance(receiver.type, Array | Scalar):
            if fn.function == "astype" and (changed := with_part_dtype([receiver, *args], kwargs)) is not None:
                part = numeric(engine, frame, METHODS["astype"], [receiver], changed[1], "ndarray.astype")
                zeros = await call_static(engine, frame, np.zeros_like, [part], {}, origin, site)
                if isinstance(receiver.type, Scalar):
                    zeros = numeric(engine, frame, METHODS["item"], [zeros], {}, "item")
                    zeros = numeric(engine, frame, METHODS["astype"], [zeros], changed[1], "ndarray.astype")
                return Seq("record", (part, zeros), ("real", "imag"), Complex)
            return numeric(engine, frame, METHODS[fn.function], [receiver, *args], kwargs, f"ndarray.{fn.function}")
        if is_list(receiver) and (is_run_time(receiver) or fn.function in LIST_METHODS):
            return await list_method(engine, frame, receiver, fn.function, args, kwargs)
        if isinstance(receiver, AtVal):
            return await updated(engine, frame, receiver, fn.function, args, origin)
        if isinstance(receiver, Iter):
            return await range_method(engine, frame, receiver, fn.function, args, kwargs)
        return sequence_method(engine, frame, receiver, fn.function, args, kwargs)
    if fn.function is Complex.astype:
        changed = with_part_dtype([receiver, *args], kwargs)
        if changed is None:
            raise TypeError_("a complex array is converted to complex dtypes; write x.real.astype(...)")
        kwargs = {"dtype": changed[1]["dtype"]}
        args = []
    made = await call_value(engine, frame, Static(fn.function), [receiver, *args], kwargs, origin, site)
    return copied(frame, made) if fn.function in (Complex.copy, Complex.flatten) else made


PYTHONS = (np.real, np.imag, np.allclose, np.array_equal, np.iscomplexobj, np.isrealobj, np.ndim, np.shape, np.size)
"""Functions of NumPy that return numbers as they are, or as Python's."""


def gives_numpys_numbers(function: Any) -> bool:
    """Whether numbers that a function returns are NumPy's; operators return Python's where they are given these."""
    own = isinstance(function, np.ufunc) or (getattr(function, "__module__", "") or "").startswith("numpy")
    return own and function not in PYTHONS


def of_numpy(frame: Frame, value: Val) -> Val:
    """A number as one of NumPy's, which its functions return; any other value as it is."""
    if isinstance(value, Dyn) and isinstance(value.type, Scalar):
        return Dyn(strong(frame.var(value)).node)
    if isinstance(value, Seq) and value.cls is Complex:
        return Seq(value.kind, tuple(of_numpy(frame, part) for part in value.elems), value.fields, value.cls)
    return value


def copied(frame: Frame, value: Val) -> Val:
    """An array of complex numbers that nothing else can see; any other value as it is."""
    parts = complex_parts(value)
    if parts is None:
        return value
    assert isinstance(value, Seq)
    return Seq(value.kind, tuple(Dyn(own(frame.var(part)).node) for part in parts), value.fields, value.cls)


async def construct(engine: Engine, frame: Frame, cls: type, args, kwargs, origin: Origin, site) -> Val:
    """Make an instance of a class: an exception, a NamedTuple or a frozen dataclass.

    Raises:
        TypeError_: the class has no instances in compiled code, or the arguments do not fit.
    """
    if issubclass(cls, BaseException):
        if kwargs or len(args) > 1:
            raise TypeError_(f"{cls.__name__} takes one message in compiled code")
        return Raised(cls, args[0] if args else None)
    if cls is np.ndarray:  # what is in it is undefined, as in np.empty
        return await call_static(engine, frame, np.empty, args, kwargs, origin, site)
    if is_known_foreign(cls):
        raise TypeError_(cannot_be_compiled(cls))
    require_plain(cls)
    if is_named_tuple_class(cls):
        values = fields_of(cls, cls._fields, cls._field_defaults, args, kwargs, engine, frame)
        return Seq("record", values, cls._fields, cls)
    if hasattr(cls, "__dataclass_fields__"):
        if not cls.__dataclass_params__.frozen:
            raise TypeError_(f"the dataclass {cls.__name__} is mutable; declare it @dataclass(frozen=True)")
        fields = dataclasses.fields(cls)
        defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
        names = tuple(f.name for f in fields)
        positional = [f.name for f in fields if not f.kw_only]
        if len(args) > len(positional):
            raise TypeError_(f"{cls.__name__}() takes {len(positional)} positional fields but {len(args)} were given")
        for name, arg in zip(positional, args):
            if name in kwargs:
                raise TypeError_(f"{cls.__name__}() got multiple values for field '{name}'")
            kwargs = {**kwargs, name: arg}
        for f in fields:
            if f.default_factory is not dataclasses.MISSING and f.name not in kwargs:
                kwargs = {
                    **kwargs,
                    f.name: await call_value(engine, frame, Static(f.default_factory), [], {}, origin, site),
                }
        values = fields_of(cls, names, defaults, (), kwargs, engine, frame)
        for value in values if cls is not Complex else ():  # the record would show later writes to such an array
            engine.shared.update(arrays_of(value))
        family = None
        if not engine.structural:
            declaration = declaration_of(cls)
            family = family_of(cls) if declaration is None else instance_made(engine, frame, declaration, cls, values)
        if family is not None:
            return await data.construct(engine, frame, family, cls, values)
        return Seq("record", values, names, cls)
    raise TypeError_(
        f"instances of {cls.__name__} cannot be made in compiled code; use a NamedTuple or a frozen dataclass"
    )


def fields_of(cls, names, defaults, args, kwargs, engine, frame) -> tuple[Val, ...]:
    """Constructor arguments as field values.

    Raises:
        TypeError_: the arguments do not fit the fields.
    """
    if len(args) > len(names):
        raise TypeError_(f"{cls.__name__}() takes {len(names)} fields but {len(args)} were given")
    values = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key not in names:
            raise TypeError_(f"{cls.__name__}() has no field '{key}'{nearest(key, names)}")
        if key in values:
            raise TypeError_(f"{cls.__name__}() got multiple values for field '{key}'")
        values[key] = value
    for name in names:
        if name not in values:
            if name not in defaults:
                raise TypeError_(f"{cls.__name__}() misses the field '{name}'")
            values[name] = engine.from_python(frame, defaults[name], None)
    return tuple(values[n] for n in names)
