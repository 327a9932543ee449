"""Equality, order, identity and membership of values: of structures element by element."""

from __future__ import annotations

import operator

from ...abstract.types import Array, Scalar
from ...ir.prim import REGISTRY
from ...prims.api.numpy_reductions import any_
from ...prims.api.operators import truth
from ...prims.ops.effects import check
from ...utils.errors import TypeError_
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..values.kinds import is_data, is_run_time, is_word
from ..values.protocols import equal_by_fields, items
from ..values.treedef import describe
from ..values.values import ClosureVal, Dyn, Iter, Seq, Static, TaggedUnion, Text, Val
from . import words
from .arithmetic import arithmetic
from .data import AS_TUPLES, NAN
from .data import equality as data_equality
from .leaves import known_key, to_python


def identical(a: Val, b: Val) -> bool:
    """`a is b`, decided at compile time: for None, classes, functions, strings and booleans.

    Raises:
        TypeError_: the answer depends on how Python stores the values.
    """
    if isinstance(a, Static) and isinstance(b, Static):
        return a.value is b.value or (isinstance(a.value, str) and a.value == b.value)
    if isinstance(a, Static) or isinstance(b, Static):
        return False
    if isinstance(a, ClosureVal) and isinstance(b, ClosureVal):
        return a.graph is b.graph and a.frame is b.frame
    if isinstance(a, Dyn) and isinstance(b, Dyn) and a.known and b.known and isinstance(a.known_value, bool):
        return a.known_value is b.known_value
    raise TypeError_(f"`is` between {describe(a)} and {describe(b)} depends on how Python stores them; compare with ==")


def equality(engine: Engine, frame: Frame, a: Val, b: Val) -> Dyn:
    """`a == b` as a bool scalar.

    Raises:
        TypeError_: iterators, strings made at run time, or lists within other values.
    """
    for choice, other in ((a, b), (b, a)):
        if isinstance(choice, TaggedUnion):
            return _equal_option(engine, frame, choice, other)
    if (found := words.equal(frame, a, b)) is not None:
        return found
    if is_run_time(a) or is_run_time(b):
        raise TypeError_("lists within tuples or records cannot be compared in compiled code; compare them apart")
    if is_data(a) or is_data(b):
        return data_equality(engine, frame, a, b)
    if isinstance(a, Dyn) and isinstance(b, Dyn):
        return arithmetic(frame, operator.eq, a, b)
    equal_by_fields(a)
    equal_by_fields(b)
    if isinstance(a, Seq) and isinstance(b, Seq):
        named = not (_is_tuple(a) and _is_tuple(b)) and (a.cls is not b.cls or set(a.fields) != set(b.fields))
        if sequence_class(a) != sequence_class(b) or len(a.elems) != len(b.elems) or named:
            return frame.constant(False)
        result: Dyn = frame.constant(True)
        order = range(len(a.elems)) if a.kind != "dict" else [b.fields.index(f) for f in a.fields]
        for x, j in zip(a.elems, order, strict=True):
            by_identity = AS_TUPLES or a.kind != "record" or issubclass(a.cls, tuple)
            part = element_equality(engine, frame, x, b.elems[j], result, by_identity)
            if part.known and not part.known_value:
                return frame.constant(False)
            result = _both(frame, result, part)
        return result
    if isinstance(a, Static) and isinstance(b, Static):
        return frame.constant(bool(a.value == b.value))
    if isinstance(a, Iter) and isinstance(b, Iter) and a.kind == b.kind and a.kind in ("dict_keys", "dict_items"):
        return equality(engine, frame, _entries(a), _entries(b))
    if isinstance(a, Iter) or isinstance(b, Iter):
        raise TypeError_(
            f"{describe(a)} == {describe(b)} is not part of the language; compare lists of what they run over"
        )
    if isinstance(a, Text) or isinstance(b, Text):
        raise TypeError_("strings made at run time cannot be compared in compiled code")
    return frame.constant(False)


def _entries(view: Iter) -> Seq:
    """The keys, or the items, of a dict as a dict: they are equal as sets are."""
    (entries,) = view.parts
    assert isinstance(entries, Seq)
    pairs = [e.elems if isinstance(e, Seq) else (e, e) for e in entries.elems]
    keys = [k.value for k, _ in pairs if isinstance(k, Static)]
    return Seq("dict", tuple(v for _, v in pairs), tuple(keys))


def _is_tuple(a: Seq) -> bool:
    """Whether a structure is a tuple; a NamedTuple is one, and equals a tuple with the same elements."""
    return a.kind == "tuple" or (a.kind == "record" and issubclass(a.cls, tuple))


def sequence_class(a: Seq) -> str:
    """The class as which a structure is compared."""
    return "tuple" if _is_tuple(a) else a.kind


def ordering(engine: Engine, frame: Frame, op, a: Seq, b: Seq) -> Dyn | None:
    """`a < b` of tuples or lists of Python numbers: decided by the first elements that differ. None for what has no order."""
    pairs = list(zip(a.elems, b.elems))
    plain = all(isinstance(x, Dyn) and isinstance(x.type, Scalar) and x.type.weak for pair in pairs for x in pair)
    if sequence_class(a) != sequence_class(b) or sequence_class(a) not in ("tuple", "list") or not plain:
        return None
    result = frame.constant(op(len(a.elems), len(b.elems)))
    equal, reached = [], frame.constant(True)
    for x, y in pairs:
        equal.append(element_equality(engine, frame, x, y, reached))
        reached = _both(frame, reached, equal[-1])
    for (x, y), same in zip(reversed(pairs), reversed(equal)):
        here = arithmetic(frame, op, x, y)
        result = Dyn(frame.builder.emit(REGISTRY["where"], (same.node, result.node, here.node)))
    return result


def _both(frame: Frame, a: Dyn, b: Dyn) -> Dyn:
    """`a and b` of bools."""
    for one, other in ((a, b), (b, a)):
        if one.known:
            return other if one.known_value else one
    return Dyn(frame.builder.emit(REGISTRY["logical_and"], (a.node, b.node)))


def element_equality(engine: Engine, frame: Frame, a: Val, b: Val, reached: Dyn, by_identity: bool = True) -> Dyn:
    """Whether elements of containers count as equal, as a Python bool: identical objects do (`by_identity`), even NaN.

    The identity of a NaN does not follow from its value, so comparing two of them raises ValueError, if it is `reached`.
    """
    if by_identity and isinstance(a, Dyn) and isinstance(b, Dyn) and a.node is b.node and isinstance(a.type, Scalar):
        return frame.constant(True)
    unsure = [x for x in (a, b) if isinstance(x, Dyn) and isinstance(x.type, Scalar) and x.type.is_float]
    unsure = [x for x in unsure if not _is_number(x)]
    if len(unsure) == 2:
        emit = frame.builder.emit
        nans = [emit(REGISTRY["ne"], (x.node, x.node)) for x in unsure]
        met = _both(frame, reached, Dyn(emit(REGISTRY["logical_and"], tuple(nans))))
        fine = Dyn(emit(REGISTRY["logical_not"], (met.node,)))
        frame.builder.emit(check, (fine.node,), {"exception": ValueError, "parts": (NAN,)})
    same = equality(engine, frame, a, b)
    return frame.constant(bool(same.known_value)) if same.known else Dyn(truth(frame.builder, frame.var(same)).node)


def _is_number(x: Dyn) -> bool:
    """Whether a value is known not to be NaN."""
    return x.known and x.known_value == x.known_value


def _equal_option(engine: Engine, frame: Frame, choice: TaggedUnion, other: Val) -> Dyn:
    """Whether a tagged union equals another value: whether its option does. Comparing the placeholders of the others is
    harmless.
    """

    def emit(name: str, *values: Dyn) -> Dyn:
        return Dyn(frame.builder.emit(REGISTRY[name], tuple(v.node for v in values)))

    result: Dyn = frame.constant(False)
    for tag, option in enumerate(choice.options):
        same = equality(engine, frame, option, other)
        if not (same.known and not same.known_value):
            here = emit("logical_and", emit("eq", choice.tag, frame.constant(tag)), same)
            result = here if result.known else emit("logical_or", result, here)
    return result


def contains(engine: Engine, frame: Frame, container: Val, item: Val) -> Val:
    """`item in container`.

    Raises:
        TypeError_: the container is none, or a string is searched for something else.
    """
    if isinstance(container, Iter) and container.kind.startswith("dict_"):
        (container,) = container.parts
    if isinstance(container, Seq):
        if container.kind == "dict" and is_word(item):
            return words.place(frame, container, item)[1]
        if container.kind == "dict":
            return frame.constant(known_key(item) in container.fields)

        result: Dyn = frame.constant(False)
        for elem in items(container, "__iter__", "__contains__"):
            not_yet = (
                frame.constant(True)
                if result.known
                else Dyn(frame.builder.emit(REGISTRY["logical_not"], (result.node,)))
            )
            same = element_equality(engine, frame, elem, item, not_yet)
            if same.known:
                if same.known_value:
                    return frame.constant(True)
                continue
            result = same if result.known else Dyn(frame.builder.emit(REGISTRY["logical_or"], (result.node, same.node)))
        return result
    if isinstance(container, Dyn) and isinstance(container.type, Array) and isinstance(item, Dyn):
        same = arithmetic(frame, operator.eq, container, item)
        return Dyn(truth(frame.builder, any_(frame.builder, frame.var(same))).node)
    if isinstance(container, Static) and isinstance(container.value, str):
        if not isinstance(item, Text) and not (isinstance(item, Static) and isinstance(item.value, str)):
            raise TypeError_(f"'in <string>' requires string as left operand, not {describe(item)}")
        return frame.constant(to_python(item, "the string searched for") in container.value)
    raise TypeError_(f"`in` needs a tuple, list, dict, array or string on the right, not {describe(container)}")
