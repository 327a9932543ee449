"""Operations on structures: Python's operations on tuples, lists, dicts, records, strings and array attributes."""

from __future__ import annotations

import functools
import math
import operator
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...abstract.dims import is_known
from ...abstract.types import BOOL, Array, NoneT, Scalar
from ...ir.prim import REGISTRY
from ...library.complex_numbers import Complex
from ...prims.api.numpy_elementwise import array as numpy_array
from ...prims.api.subscripts import getitem
from ...prims.ops.effects import check
from ...prims.rules.broadcast import broadcast_to
from ...utils.attributes import has_own
from ...utils.errors import AttributeError_, CompileError, TypeError_, ValueError_, nearest
from ..engine.conform import LONG, has_entry_type, promoted
from ..engine.engine import Engine, conform
from ..engine.frames import Frame, emit, raising
from ..values.kinds import are_leaves, is_data, is_index, is_run_time, is_text, is_word, kind_of, known_range, possible
from ..values.protocols import is_dataclass, items
from ..values.treedef import Mismatch, describe, join_entries, tree_structure, unknown
from ..values.values import NONE_VAL, AtVal, Dyn, Iter, Listed, Seq, SliceVal, Static, Text, Val
from . import lists, words
from .arithmetic import arithmetic
from .comparisons import contains, equality, identical, ordering, sequence_class
from .data import NO_IDENTITY, either
from .data import test as data_test
from .iterables import walk
from .leaves import as_new, first_axis, index_argument, known_key, lift, to_option, to_python
from .lists import array_of, static_items

LARGE = 4096  # elements of an array
ARRAYS = ("array", "asarray", "asanyarray", "ascontiguousarray")
"""NumPy functions that make an array of a list."""


def says_dtype(function: str, positional: Sequence[str], args: Sequence[Val], kwargs: Mapping[str, Val]) -> bool:
    """Whether a call makes an array of a dtype that it names: then the entries of a list do not decide it."""
    if function not in ARRAYS:
        return False
    dtype = {**dict(zip(positional, args, strict=False)), **kwargs}.get("dtype")
    return isinstance(dtype, Static) and dtype.value is not None


def to_argument(
    engine: Engine,
    frame: Frame,
    value: Val,
    static: bool,
    function: str,
    parameter: str | None,
    typed: bool = False,
) -> Any:
    """A value as an argument of an implementation: a plain Python value if the parameter is static, else staged.

    `typed` says that the call makes an array of a dtype that it names.

    Raises:
        TypeError_: the value is no argument for a function of the tables.
    """
    if static:
        known = to_option if function.startswith("relay.") else to_python  # NumPy has rules for its own numbers
        return known(value, f"{function}: {parameter}")
    if is_run_time(value):
        return array_of(frame, value, function, typed)
    if isinstance(value, Dyn):
        return frame.var(value)
    if isinstance(value, Seq) and value.kind != "dict" and (value.kind != "record" or issubclass(value.cls, tuple)):
        parts = [to_argument(engine, frame, e, False, function, parameter) for e in value.elems]
        return parts if value.kind == "list" else tuple(parts)
    if isinstance(value, Static):
        return value.value
    if isinstance(value, Seq) and value.cls is Complex:
        raise TypeError_(
            f"{function} of complex numbers cannot be compiled; compute it by their parts: z.real, z.imag, np.abs(z), np.angle(z)"
        )
    raise TypeError_(f"{function}: it takes numbers and arrays, and this is {describe(value)}")


# Sequences.

MOST_COPIES = 64
"""Copies of a string made at run time in one."""


def as_sequence(engine: Engine, frame: Frame, value: Val, what: str) -> list[Val]:
    """The elements of something of static length: a structure, or an array by its first axis.

    Raises:
        TypeError_: it is no sequence, or its length is not known at compile time.
    """
    if is_run_time(value) and (items := static_items(frame, value)) is not None:
        return items
    if (
        isinstance(value, Dyn)
        and isinstance(value.type, Array)
        and value.type.shape
        and isinstance(value.type.shape[0], int)
    ):
        return [first_axis(frame, value, frame.constant(i)) for i in range(value.type.shape[0])]
    if (numbers := known_range(value)) is not None:
        return [frame.constant(n) for n in numbers]
    if isinstance(value, Seq) or not isinstance(value, Dyn | Listed):
        steps = walk(engine, frame, value)
        if isinstance(steps, list):
            return steps
    if isinstance(value, Dyn) and isinstance(value.type, Scalar | NoneT):
        non = f"cannot unpack non-iterable {describe(value)} object" if what == "unpack" else None
        raise TypeError_(non or f"'{describe(value)}' object is not iterable")
    raise TypeError_(f"cannot {what} {describe(value)}: its length must be known at compile time")


def structural(engine: Engine, frame: Frame, op, args: list[Val]) -> Val | None:
    """A Python operator with a structure or compile-time object as an operand; None if all are numbers or arrays.

    Raises:
        TypeError_: `is` of functions that are made at run time.
    """
    if op is operator.getitem:
        return get(engine, frame, *args)
    if (found := words.operate(frame, op, args)) is not None:
        return found
    if op is operator.not_:
        if is_data(args[0]):
            found = data_test(frame, args[0], (0,))
            return frame.constant(found) if isinstance(found, bool) else found
        if isinstance(args[0], Dyn) and not (args[0].known and np.size(args[0].known_value) == 1):
            return None
        return frame.constant(not _static_truth(args[0]))
    if op in (operator.is_, operator.is_not):
        tree, other = args if is_data(args[0]) else args[::-1]
        if is_data(tree) and isinstance(other, Static) and other.value is None:
            may = [n for n in possible(tree) if (n == 0) is (op is operator.is_)]
            found = data_test(frame, tree, may)
            return frame.constant(found) if isinstance(found, bool) else found
        if are_leaves(args) and all(a.type == BOOL for a in args):  # there is only one True and one False
            if all(a.known for a in args):
                return frame.constant((args[0].known_value is args[1].known_value) is (op is operator.is_))
            same = REGISTRY["eq"](*map(frame.var, args))
            return Dyn(same.node if op is operator.is_ else REGISTRY["logical_not"](same).node)
        if any(is_data(a) and a.type.family.of_functions for a in args):
            raise TypeError_(NO_IDENTITY)
        same = identical(*args)
        return frame.constant(same if op is operator.is_ else not same)
    if op is operator.contains:
        return contains(engine, frame, *args)
    if op in (operator.eq, operator.ne) and any(map(is_data, args)):
        equal = equality(engine, frame, *args)
        return equal if op is operator.eq else emit(frame, "logical_not", equal)
    if op is int and len(args) == 2:
        return _int_of_base(engine, frame, *args)
    if are_leaves(args):
        return None
    if len(args) != 2:
        return _of_strings(engine, frame, op, args)
    a, b = args
    if op in (operator.eq, operator.ne):
        if (found := compared_by_elements(engine, frame, op, a, b)) is not None:
            return found
        equal = equality(engine, frame, a, b)
        if op is operator.eq:
            return equal
        return frame.constant(not equal.known_value) if equal.known else emit(frame, "logical_not", equal)
    if op in (operator.lt, operator.le, operator.gt, operator.ge) and isinstance(a, Seq) and isinstance(b, Seq):
        return ordering(engine, frame, op, a, b)
    if op in (operator.or_, operator.ior) and isinstance(a, Seq) and isinstance(b, Seq):
        if a.kind == b.kind == "dict":
            items = dict(zip(a.fields, a.elems, strict=True)) | dict(zip(b.fields, b.elems, strict=True))
            return Seq("dict", tuple(items.values()), tuple(items))
    if op in (operator.add, operator.iadd):
        if isinstance(a, Seq) and isinstance(b, Seq) and sequence_class(a) == sequence_class(b) in ("tuple", "list"):
            return Seq(sequence_class(a), a.elems + b.elems)
        if isinstance(a, Static) and isinstance(b, Static) and isinstance(a.value, str) and isinstance(b.value, str):
            return Static(a.value + b.value)
        if is_text(a) and is_text(b):
            return concat_text(a, b)
    if op in (operator.mul, operator.imul):
        for seq, count in ((a, b), (b, a)):
            if isinstance(seq, Static) and isinstance(seq.value, str) and is_index(count) and count.known:
                return Static(seq.value * operator.index(count.known_value))
            if isinstance(seq, Text) and is_index(count) and count.known:
                times = min(max(0, operator.index(count.known_value)), MOST_COPIES + 1)
                if times <= MOST_COPIES:
                    return functools.reduce(concat_text, [seq] * times, Static(""))
            if isinstance(seq, Seq) and seq.kind == "list" and is_index(count):
                long = count.known and len(seq.elems) * count.known_value > LONG
                if not count.known or long and has_entry_type(frame, seq) and not lists.keeps_static(engine):
                    return lists.repeated(engine, frame, seq, count)
            if isinstance(seq, Seq) and sequence_class(seq) in ("tuple", "list") and is_index(count) and count.known:
                return Seq(sequence_class(seq), seq.elems * max(0, operator.index(count.known_value)))
    if op is operator.or_ and isinstance(a, Static) and isinstance(b, Static):
        kinds = all(isinstance(x.value, type | types.UnionType | None) for x in (a, b))
        if kinds and not a.value is b.value is None:
            return Static(a.value | b.value)
    return _of_strings(engine, frame, op, args)


def _of_strings(engine: Engine, frame: Frame, op: Callable, args: list[Val]) -> Val | None:
    """An operator on strings (or None) that are known at compile time; None for other operands.

    Raises:
        TypeError_: it has no meaning for them.
    """
    given = [x.value for x in args if isinstance(x, Static) and isinstance(x.value, str | None)]
    if len(given) < len(args):
        return None
    try:
        return engine.from_python(frame, op(*given), None)
    except TypeError as error:
        raise TypeError_(str(error)) from None
    except ValueError as error:  # `int("x")`
        return raising(frame, ValueError, str(error))


def _int_of_base(engine: Engine, frame: Frame, text: Val, base: Val) -> Val:
    """`int("ff", 16)`.

    Raises:
        TypeError_: the first argument is no string, or the base is no integer.
    """
    if not isinstance(text, Static) or not isinstance(text.value, str):
        raise TypeError_(f"int() can't convert non-string with explicit base; this is {describe(text)}")
    try:
        return engine.from_python(frame, int(text.value, operator.index(to_python(base, "int: base"))), None)
    except TypeError as error:
        raise TypeError_(str(error)) from None
    except ValueError as error:
        return raising(frame, ValueError, str(error))


def concat_text(a: Text | Static, b: Text | Static) -> Text:
    """The concatenation of strings of which at least one is made at run time."""

    def parts(x: Text | Static) -> tuple[tuple, tuple[Val, ...]]:
        return ((str(x.value),), ()) if isinstance(x, Static) else (x.parts, x.operands)

    (pa, oa), (pb, ob) = parts(a), parts(b)
    shifted = tuple(p if isinstance(p, str) else (p[0] + len(oa), *p[1:]) for p in pb)
    return Text(pa + shifted, tuple(oa) + tuple(ob))


def _static_truth(value: Val) -> bool:
    if isinstance(value, Dyn):
        return bool(value.known_value)
    if isinstance(value, Seq):
        return is_dataclass(value) or len(value.elems) > 0
    if isinstance(value, Static):
        return bool(value.value)
    return True


def get(engine: Engine, frame: Frame, value: Val, index: Val) -> Val:
    """`value[index]`.

    Raises:
        TypeError_: it cannot be indexed, has no such key, or the index is of the wrong type.
    """
    if isinstance(index, SliceVal) and (isinstance(value, Seq | Static) or is_run_time(value)):
        if (wrong := _check_slice(frame, index)) is not None:
            return wrong
    if is_run_time(value):
        return lists.get(engine, frame, value, index)
    if isinstance(value, Iter) and value.kind == "tuple":
        part = get(engine, frame, value.parts[0], index)
        return Iter("tuple", (part,)) if isinstance(index, SliceVal) else part
    if isinstance(value, Seq):
        items(value, "__getitem__")
        if value.kind == "dict" and is_word(index):
            at, there = words.place(frame, value, index)
            words.require_there(frame, there, index)
            return _choose(engine, frame, Seq("tuple", value.elems), at)
        if value.kind == "dict":
            key = dict_key(index)
            if key not in value.fields:
                raise TypeError_(f"KeyError: {key!r}{nearest(str(key), value.fields)}")
            return value.get(key)
        if value.kind == "dataset":
            return _example(engine, frame, value, index)
        if isinstance(index, SliceVal) and lists.slices_statically(frame, value, index):
            try:
                part = value.elems[to_python(index, "the bounds of a slice of a tuple")]
            except TypeError as error:
                raise error if isinstance(error, CompileError) else TypeError_(str(error)) from None
            return Seq(value.kind if value.kind != "record" else "tuple", part)
        if isinstance(index, Dyn) and index.known:
            try:
                return value.elems[operator.index(index.known_value)]
            except IndexError:
                return _out_of_range(engine, frame, value)
            except TypeError:
                pass
        if is_index(index) and (found := lists.of_table(engine, frame, value, index)) is not None:
            return found
        if value.kind == "list" and is_index(index) and len(value.elems) > LONG and has_entry_type(frame, value):
            return lists.get(engine, frame, promoted(frame, value), index)
        if isinstance(index, SliceVal):
            return lists.sliced(engine, frame, value, index)
        if isinstance(index, Dyn) and isinstance(index.type, Scalar) and index.type.dtype.startswith(("int", "uint")):
            return _choose(engine, frame, value, index)
        raise TypeError_(f"{value.kind} indices must be integers or slices, not {describe(index)}")
    if isinstance(value, Dyn) and isinstance(value.type, Array):
        part = lift(engine, frame, getitem(frame.builder, frame.var(value), index_argument(engine, frame, index)))
        return as_new(frame, part, [value])
    if isinstance(value, Dyn) and isinstance(value.type, Scalar) and not value.type.weak and is_empty(index):
        return value  # `x[()]` of an array without axes is the number, of a NumPy number the number itself
    if isinstance(value, Static) and isinstance(value.value, str):
        try:
            return Static(value.value[to_python(index, "a string index")])
        except TypeError as error:
            raise TypeError_(str(error)) from None
        except IndexError as error:
            return raising(frame, IndexError, str(error))
    if isinstance(value, AtVal) and value.index is None:
        return AtVal(value.array, index)
    if isinstance(value, Static) and has_own(value.value, "__relay_item__"):
        try:
            return Static(value.value.__relay_item__(to_python(index, "a name in a module")))
        except KeyError as error:
            raise TypeError_(f"KeyError: {error.args[0]}") from None
    if isinstance(value, Static) and (same := INDEXED.get(type(value.value).__name__)) is not None:
        raise TypeError_(f"{same[0]} cannot be compiled: write {same[1]}")
    raise TypeError_(f"{describe(value)} cannot be indexed")


INDEXED = {
    "MGridClass": ("np.mgrid[...]", "np.meshgrid(np.arange(n), np.arange(m), indexing='ij')"),
    "OGridClass": ("np.ogrid[...]", "np.arange(n)[:, None] and np.arange(m)[None, :]"),
    "RClass": ("np.r_[...]", "np.concatenate((x, y)), or np.arange(a, b, c)"),
    "CClass": ("np.c_[...]", "np.column_stack((x, y))"),
    "IndexExpression": ("np.s_[...]", "the subscript itself, or slice(a, b)"),
}
"""Classes of NumPy's objects that are indexed -> what the user wrote, and what to write instead."""


def _check_slice(frame: Frame, index: SliceVal) -> Val | None:
    """What raises if the step of a slice of a sequence is zero; None if it is not zero.

    Raises:
        TypeError_: its parts are no integers.
    """
    for part in (index.start, index.stop, index.step):
        if not (is_index(part) or isinstance(part, Static) and part.value is None):
            raise TypeError_(
                f"slice indices must be integers or None or have an __index__ method, not {describe(part)}"
            )
    step = index.step
    if isinstance(step, Dyn) and step.known and not step.known_value:
        return raising(frame, ValueError, "slice step cannot be zero")
    return None


def dict_key(index: Val) -> Any:
    """A key of a dict.

    Raises:
        TypeError_: it is not known at compile time.
    """
    if isinstance(index, Static) or isinstance(index, Dyn) and index.known or kind_of(index) or isinstance(index, Seq):
        return known_key(index)
    raise TypeError_(
        f"the keys of a dict are strings that are known at compile time, and this one is {describe(index)}; "
        "use a list or an array, indexed by a number"
    )


def is_empty(value: Val) -> bool:
    """Whether a value is the empty tuple."""
    return isinstance(value, Seq) and value.kind == "tuple" and not value.elems


def _out_of_range(engine: Engine, frame: Frame, value: Seq) -> Val:
    """An index that is always out of range."""
    return raising(frame, IndexError, f"{value.kind} index out of range")


def _choose(engine: Engine, frame: Frame, value: Seq, index: Dyn) -> Val:
    """A tuple indexed at run time: its elements must have one type; arrays of several sizes become one whose size a value decides.

    Raises:
        TypeError_: the elements differ in type.
    """
    n = len(value.elems)
    if n == 0:
        return _out_of_range(engine, frame, value)
    try:
        common = unknown(tree_structure(value.elems[0], capture=frame.captured))
        for elem in value.elems[1:]:
            common = join_entries(common, tree_structure(elem, capture=frame.captured), True)
    except Mismatch as error:
        raise TypeError_(
            f"a {value.kind} indexed by a run-time value must have elements of one type, but it has {error.a} and {error.b}"
        ) from None

    i = frame.var(index)
    negative = i < 0
    wrapped = REGISTRY["where"](negative, i + n, i)
    inside = REGISTRY["logical_and"](wrapped >= 0, wrapped < n)
    attrs = {"exception": IndexError, "parts": (f"{value.kind} index out of range",)}
    frame.builder.emit(check, (inside.node,), attrs)
    columns = [conform(frame, elem, common) for elem in value.elems]
    engine.large_choices += any(_is_large(leaf.type) for leaf in columns[0])
    chosen = []
    for leaf in zip(*columns, strict=True):
        result = leaf[-1]
        for position in range(n - 2, -1, -1):
            result = either(frame, REGISTRY["eq"](wrapped, position), leaf[position], result)
        chosen.append(result)
    return frame.rebuild(common, iter(chosen))


def _is_large(t: Any) -> bool:
    """Whether a type is that of arrays that are not copied without need."""
    return isinstance(t, Array) and not (is_known(shape := t.shape) and math.prod(shape) < LARGE)


def _example(engine: Engine, frame: Frame, value: Seq, index: Val) -> Val:
    """`dataset[i]` in compiled code."""
    parts = tuple(get(engine, frame, e, index) for e in value.elems)
    return Seq("record", parts, ("x", "y"), value.cls)


def sequence_method(engine: Engine, frame: Frame, value: Val, name: str, args, kwargs) -> Val:
    """Methods of dicts, tuples, lists and strings.

    Raises:
        AttributeError_: the method is not part of the language.
        TypeError_: the arguments do not fit, or `tuple.index` depends on values of run time.
        ValueError_: `_replace` is given a field that does not exist.
    """
    if isinstance(value, Seq) and value.kind == "dict" and not kwargs:
        least, most = {"get": (1, 2)}.get(name, (0, 0))
        if not least <= len(args) <= most:
            raise TypeError_(f"dict.{name}() is given {len(args)} arguments")
        if name == "keys":
            return Iter("dict_keys", (Seq("tuple", tuple(Static(f) for f in value.fields)),))
        if name == "values":
            return Iter("dict_values", (Seq("tuple", value.elems),))
        if name == "items":
            pairs = zip(value.fields, value.elems, strict=True)
            return Iter("dict_items", (Seq("tuple", tuple(Seq("tuple", (Static(f), e)) for f, e in pairs)),))
        if name == "get" and is_word(args[0]):
            at, there = words.place(frame, value, args[0])
            last = args[1] if len(args) > 1 else NONE_VAL
            at = emit(frame, "where", there, at, frame.constant(len(value.elems)))
            return _choose(engine, frame, Seq("tuple", (*value.elems, last)), at)
        if name == "get":
            key = dict_key(args[0])
            return value.get(key) if key in value.fields else (args[1] if len(args) > 1 else NONE_VAL)
    if isinstance(value, Seq) and name in ("_asdict", "_replace") and (args or kwargs and name == "_asdict"):
        raise TypeError_(f"{name}() is given {len(args) + len(kwargs)} arguments")
    if isinstance(value, Seq) and name == "_asdict":
        return Seq("dict", value.elems, value.fields)
    if isinstance(value, Seq) and name == "_replace":
        if misfits := [k for k in kwargs if k not in value.fields]:
            raise ValueError_(f"Got unexpected field names: {misfits!r}")
        return Seq(
            value.kind, tuple(kwargs.get(f, e) for f, e in zip(value.fields, value.elems)), value.fields, value.cls
        )
    if isinstance(value, Static) and isinstance(value.value, str):
        args = [Seq("list", tuple(as_sequence(engine, frame, a, name))) if isinstance(a, Iter) else a for a in args]
        plain = [to_python(a, f"str.{name}") for a in args]
        try:
            found = getattr(value.value, name)(*plain, **{k: to_python(a, f"str.{name}") for k, a in kwargs.items()})
        except TypeError as error:
            raise TypeError_(str(error)) from None
        except Exception as error:
            return raising(frame, type(error), str(error))
        return engine.from_python(frame, found, None)
    if isinstance(value, Seq) and name == "index" and len(args) == 1 and not kwargs:
        for i, elem in enumerate(value.elems):
            same = equality(engine, frame, elem, args[0])
            if not same.known:
                raise TypeError_(
                    "tuple.index() finds what is known at compile time; make a list of it first: list(...)"
                )
            if same.known_value:
                return frame.constant(i)
        return raising(frame, ValueError, "tuple.index(x): x not in tuple")
    raise AttributeError_(f"the method '{name}' of {describe(value)} is not part of the language")


# Attributes.


def compared_by_elements(engine: Engine, frame: Frame, op, a: Val, b: Val) -> Val | None:
    """`a == b` or `a != b` where one of them is an array or a number of NumPy's, and the other no number; None elsewhere.

    NumPy makes an array of a list or a tuple. Each element differs from anything else. A number gives one of Python's bools,
    but for strings.
    """
    x, other = (a, b) if isinstance(a, Dyn) and not is_run_time(a) else (b, a)
    if (
        not isinstance(x, Dyn)
        or not isinstance(x.type, Array | Scalar)
        or isinstance(other, Dyn)
        and not is_run_time(other)
    ):
        return None
    if isinstance(x.type, Scalar) and x.type.weak or isinstance(other, Seq) and other.cls is Complex:
        return None
    numbers = is_run_time(other) or isinstance(other, Seq) and sequence_class(other) in ("tuple", "list")
    if numbers:
        made = Dyn(numpy_array(frame.builder, to_argument(engine, frame, other, False, "==", None)).node)
        return arithmetic(frame, op, *((x, made) if x is a else (made, x)))
    differ = op is operator.ne
    if isinstance(x.type, Scalar) and not is_text(other) and not is_word(other):
        return frame.constant(differ)
    flag = frame.constant(np.bool_(differ))
    return Dyn(broadcast_to(frame.var(flag), shape=x.type.shape).node) if x.type.shape else flag


def operate(engine: Engine, frame: Frame, op, args: list[Val]) -> Val:
    """A Python operator on values."""
    result = structural(engine, frame, op, args)
    return result if result is not None else arithmetic(frame, op, *args)
