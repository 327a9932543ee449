"""Changes of items: `x[i] = v`, `x[i] += v`, `relay.at(x)[i].set(v)`. Each makes a new value of x."""

from __future__ import annotations

import operator
import types
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...abstract.types import Array, Scalar
from ...ir import syntax as S
from ...ir.node import Apply
from ...ir.prim import REGISTRY
from ...ir.syntax import Handing
from ...library.complex_numbers import Complex, as_complex
from ...library.in_place import CHANGING, set_shape
from ...library.rows import change_rows, combine_rows, put_rows
from ...prims.api.array_indices import Masked, by_positions, masked, rows_written, without_slices
from ...prims.api.numpy_elementwise import own
from ...prims.api.promotion import fit, operand
from ...prims.api.subscripts import fitted, masks_as_positions
from ...prims.api.subscripts import getitem as get_part
from ...prims.api.subscripts import setitem as set_part
from ...prims.ops.elementwise import neg
from ...prims.ops.indexing import scatter_add
from ...prims.rules.broadcast import reshape
from ...prims.rules.relations import same_size, show_shape
from ...utils.errors import AttributeError_, ParseError, ShapeError, TypeError_
from ...utils.source import Origin
from ..engine.conflicts import holds_mutable, refuse_conflicts, refuse_shared, runs_over_keys
from ..engine.conform import promoted
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..engine.handing import is_none, note_places, reads_of
from ..engine.unions import each_option, without_choices
from ..objects import lists
from ..objects.advice import SYMBOLS
from ..objects.attributes import UPDATES
from ..objects.leaves import index_argument, lift
from ..objects.list_methods import CHANGES
from ..objects.structures import dict_key, get, to_argument
from ..values.kinds import complex_parts, is_any_array, is_list, is_run_time, kind_of
from ..values.sharing import arrays_of, lists_of
from ..values.treedef import describe
from ..values.values import NEVER, NONE_VAL, AtVal, Chosen, Dyn, Seq, SliceVal, Static, TaggedUnion, Val
from .registry import handles


def _is_chosen_by_mask(engine: Engine, frame: Frame, value: Val, index: Val) -> bool:
    """Whether `value` may be an array, and `index` one with a mask."""
    values, indices = ((v.options if isinstance(v, TaggedUnion) else (v,)) for v in (value, index))
    return any(map(is_any_array, values)) and any(map(_has_mask, indices))


def _has_mask(index: Val) -> bool:
    if isinstance(index, TaggedUnion):
        return any(map(_has_mask, index.options))
    if isinstance(index, Seq) and index.kind in ("tuple", "list"):
        return any(map(_has_mask, index.elems))
    return isinstance(index, Dyn) and isinstance(index.type, Array) and index.type.dtype == "bool"


async def changed(engine: Engine, frame: Frame, op: Any, value: Chosen, other: Val, origin: Origin) -> Val:
    """Apply `x[mask] op= other` to the selected part, which changes the whole array."""

    async def change(region: Frame, values: list[Val]) -> Val:
        array, index, given = values
        return await _changed_where(engine, region, op, Chosen(array, index, value.node), given, origin)

    whole = await without_choices(engine, frame, [value.array, value.index, other], change)
    return NEVER if whole is NEVER else replace(value, new=whole)


async def _changed_where(engine: Engine, frame: Frame, op: Any, value: Chosen, other: Val, origin: Origin) -> Val:
    """An array that `x[mask] op= other` has changed; none of the values is a choice.

    Raises:
        TypeError_: `other` is no number or array.
    """
    array, index = value.array, value.index
    parts = [masked_by(engine, frame, part, index) for part in _real_parts(array)]
    given = [v for v in _real_parts(other) or (other,) if isinstance(v, Dyn) and isinstance(v.type, Array | Scalar)]
    if not parts or any(p is None for p in parts):
        old = entry_to_change(engine, frame, value.node, array, index)
        return await set_item(
            engine, frame, array, index, await engine.call(frame, Static(op), [old, other], {}, origin)
        )
    if not given:
        raise TypeError_(f"a part of an array cannot be changed by {describe(other)}")
    chosen = [p for p in parts if p is not None]
    if chosen[0].takes(frame.var(given[0])):
        old = _like(array, [Dyn(p.part.node) for p in chosen])
        new = await engine.call(frame, Static(op), [old, other], {}, origin)
        pairs = zip(chosen, _real_parts(new), strict=True)
        return new if new is NEVER else _like(array, [_replaced(frame, p, v) for p, v in pairs])
    # A value for each chosen element: the elements are taken out, and put back.
    old = _like(array, [lift(engine, frame, get_part(frame.builder, p.x, p.given)) for p in chosen])
    return await set_item(engine, frame, array, index, await engine.call(frame, Static(op), [old, other], {}, origin))


def masked_by(engine: Engine, frame: Frame, array: Val, index: Val) -> Masked | None:
    """The part of an array that an index with a mask chooses; None where there is no mask in it."""
    assert isinstance(array, Dyn)
    return masked(frame.builder, frame.var(array), index_argument(engine, frame, index))


def _real_parts(value: Val) -> tuple[Val, ...]:
    """The arrays of real numbers that an array consists of: itself, or the parts of complex ones; nothing of any other value."""
    if isinstance(value, Dyn) and isinstance(value.type, Array):
        return (value,)
    return value.elems if isinstance(value, Seq) and value.cls is Complex else ()


def _like(array: Val, parts: Sequence[Val]) -> Val:
    """An array of the kind of another one, of its real parts."""
    return Seq(array.kind, tuple(parts), array.fields, array.cls) if isinstance(array, Seq) else parts[0]


def _replaced(frame: Frame, part: Masked, new: Val) -> Val:
    """The array with the part that a mask selects taken from `new`."""
    assert isinstance(new, Dyn)
    return Dyn(part.replaced(frame.builder, fit(frame.builder, frame.var(new), part.x.dtype)).node)


async def set_item(engine: Engine, frame: Frame, value: Val, index: Any, new: Val, back: bool = False) -> Val:
    """`x[index] = new` as a new value of `x`; the index of an array may also be in the form that the primitives use.

    Args:
        engine, frame: as everywhere.
        value, index: `x` and the index.
        new: the new value.
        back: whether that is the object that was there before, after it has changed; so it may be in a tuple.

    Raises:
        TypeError_: values of this kind have no items to assign to.
    """
    if is_list(value):
        return lists.with_entry(engine, frame, value, index, new)
    if isinstance(value, Seq) and value.kind == "dict":
        key = dict_key(index)
        fields = value.fields if key in value.fields else (*value.fields, key)
        items = dict(zip(value.fields, value.elems, strict=True)) | {key: new}
        return Seq("dict", tuple(items[f] for f in fields), fields)
    if complex_parts(value) is not None:
        parts = zip(_real_parts(value), _complex_operands(engine, frame, new), strict=True)
        return _like(value, [await set_item(engine, frame, old, index, part) for old, part in parts])
    if back and isinstance(value, Seq) and value.kind in ("tuple", "record") and isinstance(index, Dyn) and index.known:
        elems = list(value.elems)
        elems[operator.index(index.known_value)] = new
        return Seq(value.kind, tuple(elems), value.fields, value.cls)
    if isinstance(value, Dyn) and isinstance(value.type, Array):
        if isinstance(new, Seq) and new.cls is Complex:
            raise TypeError_(f"complex numbers do not fit into an array of {value.type.dtype}; assign their .real")
        new = _numbers(engine, frame, value.type.dtype, new)
    if isinstance(value, Dyn) and isinstance(value.type, Array) and isinstance(new, Dyn):
        i, x = index_argument(engine, frame, index) if isinstance(index, Val) else index, frame.var(value)
        part = masked(frame.builder, x, i)
        if part is not None:
            if part.takes(frame.var(new)):
                return lift(engine, frame, part.assigned(frame.builder, frame.var(new)))
            x, i = masks_as_positions(frame.builder, x, i)
        if part is not None or by_positions(i):
            if (parts := without_slices(i)) is not None:
                outer, inner = parts
                inside = Dyn(get_part(frame.builder, x, outer).node)
                inside = await set_item(engine, frame, inside, inner, new)
                return _reshaped(frame, await set_item(engine, frame, Dyn(x.node), outer, inside), value.type)
            rows, at, values, restore = rows_written(frame.builder, x, i, frame.var(new))
            args: list[Val] = [Dyn(v.node) for v in (rows, at, values)]
            written = await engine.call(frame, Static(put_rows), args, {}, frame.builder.origin)
            assert isinstance(written, Dyn)
            return _reshaped(frame, lift(engine, frame, restore(frame.var(written))), value.type)
        made = set_part(frame.builder, x, i, frame.var(new))
        # `x[:] = y` copies: what else may hold y does not see later changes of x.
        return lift(engine, frame, own(made) if made.node is new.node else made)
    raise TypeError_(f"{describe(value)} does not support item assignment")


def _complex_operands(engine: Engine, frame: Frame, new: Val) -> tuple[Val, ...]:
    """The real and the imaginary part of what is assigned to a part of a complex array.

    Raises:
        TypeError_: it is no number or array.
    """
    if isinstance(new, Seq) and new.cls is Complex:
        return new.elems
    if not isinstance(new, Dyn) or not isinstance(new.type, Array | Scalar):
        raise TypeError_(f"a part of an array of complex numbers cannot be set to {describe(new)}; write np.array(...)")
    return new, frame.constant(0.0)


def _numbers(engine: Engine, frame: Frame, dtype: str, new: Val) -> Val:
    """An assigned tuple or list as an array; any other value as it is."""
    if not isinstance(new, Seq) or new.kind not in ("tuple", "list"):
        return new
    numbers = to_argument(engine, frame, new, False, "an assigned value", None)
    return Dyn(operand(frame.builder, numbers, "an assigned value", dtype).node)


def _reshaped(frame: Frame, value: Val, wanted: Array) -> Val:
    """An array whose axes were merged, with all of them again."""
    assert isinstance(value, Dyn)
    return value if value.type == wanted else Dyn(reshape(frame.var(value), shape=wanted.shape).node)


async def updated(engine: Engine, frame: Frame, value: AtVal, name: str, args: list[Val], origin: Origin) -> Val:
    """`relay.at(x)[i].set(v)`, `.add(v)`, ...: a new array with one part changed."""
    (new,) = args
    assert value.index is not None
    function = UPDATES[name]

    async def update(region: Frame, values: list[Val]) -> Val:
        array, index, new = values
        if function is None or not isinstance(array, Dyn) or not isinstance(array.type, Array):
            if function is not None:
                old = get(engine, region, array, index)
                new = await engine.call(region, Static(function), [old, new], {}, origin)
            return await set_item(engine, region, array, index, new)
        return await combined(engine, region, array, index, function, new, origin)

    return await without_choices(engine, frame, [value.array, value.index, new], update)


async def combined(
    engine: Engine, frame: Frame, array: Dyn, index: Any, function: Any, new: Val | None, origin: Origin, cast=True
) -> Val:
    """`array` with `array[index]` replaced by `function(array[index], new)`; positions that repeat accumulate, one after the other.

    Args:
        engine: the engine.
        frame: where.
        array: an array.
        index: as a value, or in the form that the primitives use.
        function: of one or two operands.
        new: the second operand, or None.
        origin: of the change.
        cast: whether results of another kind are converted to the dtype of the array; otherwise they are refused, as by NumPy.

    Raises:
        TypeError_: the results do not fit into the array.
    """
    assert isinstance(array.type, Array)
    i, x, b = index_argument(engine, frame, index) if isinstance(index, Val) else index, frame.var(array), frame.builder
    dtype = array.type.dtype
    operands = [] if new is None else [_operand(engine, frame, array.type, new)]
    part = masked(b, x, i)
    if part is not None and all(part.takes(frame.var(v)) for v in operands):
        result = await engine.call(frame, Static(function), [Dyn(part.part.node), *operands], {}, origin)
        assert isinstance(result, Dyn)
        _require_fit(result, dtype, cast)
        return _replaced(frame, part, result)
    by_rows = part is None and by_positions(i)
    if by_rows and (parts := without_slices(i)) is not None:
        outer, inner = parts
        inside = Dyn(get_part(b, x, outer).node)
        inside = await combined(engine, frame, inside, inner, function, new, origin, cast)
        return await set_item(engine, frame, array, outer, inside)
    old = lift(engine, frame, get_part(b, x, i))
    result = await engine.call(frame, Static(function), [old, *operands], {}, origin)
    _require_fit(result, dtype, cast)
    if not by_rows:  # no position occurs twice
        return await set_item(engine, frame, array, i, result)
    rows, at, values, restore = rows_written(b, x, i, frame.var(operands[0]) if operands else None, cast=False)
    if function in ADDING and isinstance(result, Dyn) and result.type.dtype == dtype != "bool":
        values = fit(b, values, dtype)
        made = scatter_add(rows, at, neg(values) if ADDING[function] < 0 else values, axis=0)
    else:
        routine = combine_rows if operands else change_rows
        args: list[Val] = [Dyn(v.node) for v in (rows, at, *([values] if operands else ()))]
        written = await engine.call(frame, Static(routine), [Static(function), *args], {}, b.origin)
        assert isinstance(written, Dyn)
        made = frame.var(written)
    return lift(engine, frame, restore(made))


ADDING = {operator.add: 1, np.add: 1, operator.sub: -1, np.subtract: -1}
"""Functions that add, or add the negative of, their second operand."""


def _operand(engine: Engine, frame: Frame, kind: Array, new: Val) -> Dyn:
    """What an array is combined with.

    Raises:
        TypeError_: it is no number or array.
    """
    new = _numbers(engine, frame, kind.dtype, new)
    if not isinstance(new, Dyn) or not isinstance(new.type, Array | Scalar):
        raise TypeError_(f"a part of an array cannot be changed by {describe(new)}")
    return new


def _require_fit(result: Val, dtype: str, cast: bool) -> None:
    """Refuse a result that does not fit into an array of a dtype.

    Raises:
        TypeError_: it does not.
    """
    if not cast and isinstance(result, Dyn) and not can_cast(result.type.dtype, dtype):
        raise TypeError_(
            f"the results are {result.type.dtype}, which does not fit into the array of {dtype}; convert the operand with .astype"
        )


def written_back(frame: Frame, name: str, old: Val, new: Val) -> Val:
    """The value of `x` after `x += y`: an array keeps its dtype and shape, and the result is written into it.

    Raises:
        TypeError_: it would change its dtype.
        ShapeError: it would change its shape.
    """
    is_complex = isinstance(new, Seq) and new.cls is Complex
    if complex_parts(old) is not None and is_complex:
        pairs = zip(_real_parts(old), _real_parts(new), strict=True)
        return _like(old, [written_back(frame, name, *pair) for pair in pairs])
    if not isinstance(old, Dyn) or not isinstance(old.type, Array) or not isinstance(new, Dyn) and not is_complex:
        return new
    was = old.type
    operator_name = name.removeprefix("i")
    symbol = (SYMBOLS.get(operator_name) or SYMBOLS[f"{operator_name}_"]) + "="
    if not isinstance(new, Dyn):
        raise TypeError_(
            f"'{symbol}' writes its result into the array, and complex numbers do not fit into {was.dtype}; "
            f"write x = x {symbol[:-1]} y, which makes a new array"
        )
    now = new.type
    if was.shape == () and isinstance(now, Scalar):
        new = Dyn(reshape(frame.var(new), shape=()).node)
        now = new.type
    if was.dtype != now.dtype and not can_cast(now.dtype, was.dtype):
        raise TypeError_(
            f"'{symbol}' writes its result into the array, and {now.dtype} does not fit into {was.dtype}; "
            f"write x = x {symbol[:-1]} y, which makes a new array, or .astype"
        )
    if isinstance(now, Array) and len(was.shape) == len(now.shape):
        new = Dyn(fitted(frame.builder, frame.var(new), was.shape).node)
        now = new.type
    if len(was.shape) != len(now.shape) or not all(map(same_size, was.shape, now.shape)):
        raise ShapeError(
            f"'{symbol}' writes its result into the array of shape {show_shape(was.shape)}, and the result has shape "
            f"{show_shape(now.shape)}; write x = x {symbol[:-1]} y, which makes a new array"
        )
    return new if was.dtype == now.dtype else Dyn(fit(frame.builder, frame.var(new), was.dtype).node)


def can_cast(source: str, target: str) -> bool:
    """Whether NumPy writes results of one dtype into arrays of another: within a kind, or from a lower to a higher kind."""
    order = ("bool", "uint", "int", "float")
    kinds = ["float" if "float" in dtype else dtype.rstrip("0123456789") for dtype in (source, target)]
    return order.index(kinds[0]) <= order.index(kinds[1])


@handles(S.item_to_change)
async def item_to_change(engine: Engine, frame: Frame, node: Apply) -> Val:
    """The `x[i]` of `x[i] += v`."""
    value, index = [engine.value(frame, a) for a in node.args]
    if _is_chosen_by_mask(engine, frame, value, index):
        return Chosen(value, index, node)
    return await _item_to_change(engine, frame, node)


@each_option((1, 0))
async def _item_to_change(engine: Engine, frame: Frame, node: Apply, values: list[Val]) -> Val:
    return entry_to_change(engine, frame, node, *values)


def entry_to_change(engine: Engine, frame: Frame, node: Apply, value: Val, index: Val) -> Val:
    """The `x[i]` of `x[i] += v`, of values that are no choices."""
    if is_any_array(value):
        return _like(value, [get(engine, frame, part, index) for part in _real_parts(value)])
    entry = get(engine, frame, value, index)
    refuse_shared_entry(engine, frame, node, value, entry)
    if node.attrs["own"]:
        engine.shared.difference_update([*arrays_of(entry), *lists_of(entry)])
    return entry


def refuse_shared_entry(engine: Engine, frame: Frame, node: Apply, whole: Val, entry: Val) -> None:
    """Refuse an in-place change of an array or list in a list, a dict or a tuple, if something else may hold it.

    Raises:
        TypeError_: with advice.
    """
    kind, name = kind_of(entry), node.attrs["name"]
    if is_any_array(whole) or kind is None:
        return

    def error(reason: str) -> TypeError_:
        advice = f"put a copy there before, which is a new {kind}: x[i] = x[i].copy()"
        return TypeError_(f"this changes the {kind} {name} in place, and {reason}; {advice}")

    refuse_conflicts(engine, frame, node, kind, error)


@handles(S.take_entry)
@each_option((1, 0))
async def take_entry(engine: Engine, frame: Frame, node: Apply, values: list[Val]) -> Val:
    """The `x[i]` of `x[i][j] = v`, and `x` without it: a view of an array, or an entry of a structure.

    Raises:
        TypeError_: the assignment would change a copy, or perhaps an entry that something else holds.
    """
    whole, index = values
    if is_any_array(whole):
        parts = []
        for part in _real_parts(whole):
            assert isinstance(part, Dyn)
            i = index_argument(engine, frame, index)
            if by_positions(i) or masked(frame.builder, frame.var(part), i) is not None:
                raise TypeError_("x[i][j] = v changes a copy where i is an array, as in NumPy; write x[i, j] = v")
            parts.append(get(engine, frame, part, index))
        return Seq("tuple", (_like(whole, parts), whole))
    if isinstance(index, SliceVal):
        raise TypeError_("this changes a copy, as a slice of a list is one; name the entries by their indices")
    known = isinstance(index, Static) or isinstance(index, Dyn) and index.known
    if isinstance(whole, Seq) and whole.kind == "list" and whole.elems and not known:
        whole = promoted(frame, whole)
    entry = get(engine, frame, whole, index)
    if entry is NEVER:
        return NEVER
    refuse_shared_entry(engine, frame, node, whole, entry)
    if is_run_time(whole):
        if not node.attrs["own"]:
            raise TypeError_(
                f"an entry of {describe(whole)} that came out of a call is changed in place, and whether something else holds that "
                "entry is not known; change a copy of it and put that back: row = x[i].copy(); row[j] = v; x[i] = row"
            )
        engine.shared.difference_update([*arrays_of(entry), *lists_of(entry)])
        if is_run_time(entry):
            assert isinstance(entry, Dyn)
            empty = Dyn(frame.builder.emit(REGISTRY["list_new"], (), {"elem": entry.type.elem}))
            whole = lists.with_entry(engine, frame, whole, index, empty)
    return Seq("tuple", (entry, whole))


@handles(S.place_of)
@each_option((0, 1))
async def place_of(engine: Engine, frame: Frame, node: Apply, values: list[Val]) -> Val:
    """The index of an entry that is changed under another name, from the beginning.

    Raises:
        TypeError_: it is no entry, but a number or a copy, so that the name would be bound anew.
    """
    whole, index, arrays = values
    if is_none(index):
        part, copied = whole, False
    else:
        part, seen = get(engine, frame, whole, index), Handing()
        copied = part is not NEVER and reads_of(seen, whole, index, part) is not seen.views
    if part is NEVER:
        return NEVER
    kind = kind_of(part)
    if kind is None or copied:
        raise TypeError_(
            "a name is bound here to what is changed in place below, in another call of this function as an entry of something "
            f"else; here it is {describe(part)}, which would be bound anew; write two functions"
        )
    if isinstance(arrays, Dyn) and arrays.known and arrays.known_value and not is_any_array(whole):
        raise TypeError_(
            "an entry of this is changed in place below under another name, and meanwhile entries are replaced, so which one it is "
            "depends on values; write x[i] instead of the name"
        )
    if not isinstance(index, Dyn) or not isinstance(index.type, Scalar) or is_any_array(whole) and index.known:
        return index
    if index.known and index.known_value >= 0:
        return index

    async def calls(function: Any, *args: Val) -> Val:
        return await engine.call(frame, Static(function), list(args), {}, node.origin)

    below = await calls(operator.lt, index, frame.constant(0))
    return await calls(operator.add, index, await calls(operator.mul, below, await calls(len, whole)))


@handles(S.read_again)
async def read_again(engine: Engine, frame: Frame, node: Apply) -> Val:
    """What `x[i]`, which was read before x was changed, is now.

    Raises:
        TypeError_: x may be an array or something else.
    """
    value, x, index = (engine.value(frame, a) for a in node.args)
    if isinstance(x, TaggedUnion) and any(map(is_any_array, x.options)):
        raise TypeError_(
            "this is read before something is changed of which it may be a view, and used afterwards; copy it before"
        )
    if not is_any_array(value) or not is_any_array(x):
        return value
    i, part = index_argument(engine, frame, index), _real_parts(x)[0]
    assert isinstance(part, Dyn)
    copied = by_positions(i) or masked(frame.builder, frame.var(part), i) is not None
    return value if copied else _like(x, [get(engine, frame, part, index) for part in _real_parts(x)])


@handles(S.update_at)
@each_option((0, 1, 2))
async def update_at(engine: Engine, frame: Frame, node: Apply, values: list[Val]) -> Val:
    """`np.add.at(x, i, v)`, `np.negative.at(x, i)`.

    Raises:
        TypeError_: x is no array, or the ufunc has another number of operands.
    """
    value, index, new, ufunc = values
    operands = [] if isinstance(new, Static) and new.value is None else [new]
    if not isinstance(ufunc, Static) or not isinstance(ufunc.value, np.ufunc):
        method = await engine.call(frame, Static(getattr), [ufunc, Static("at")], {}, node.origin, node)
        await engine.call(frame, method, [value, index, *operands], {}, node.origin, node)
        return value
    name = f"np.{ufunc.value.__name__}"
    refuse_shared(engine, frame, node, value)
    if not isinstance(value, Dyn) or not isinstance(value.type, Array):
        raise TypeError_(f"{name}.at changes an array in place, and this is {describe(value)}")
    if ufunc.value.nin != 1 + len(operands) or ufunc.value.nout != 1:
        raise TypeError_(
            f"{name}.at is given {len(operands)} operands beside the array, and takes {ufunc.value.nin - 1}"
        )
    return await combined(
        engine, frame, value, index, ufunc.value, operands[0] if operands else None, node.origin, False
    )


@handles(S.change_array)
async def change_array(engine: Engine, frame: Frame, node: Apply) -> Val:
    """`np.copyto(x, y)`, `np.put_along_axis(x, i, v, axis)`, `x.fill(v)`.

    Raises:
        TypeError_: x is no array.
    """
    value, function, *args = [engine.value(frame, a) for a in node.args]
    count = len(args) - len(node.keywords)
    args, kwargs = args[:count], dict(zip(node.keywords, args[count:], strict=True))
    found: Any = function.value if isinstance(function, Static) else None
    method = isinstance(found, types.MethodDescriptorType)
    if method and not any(map(is_any_array, value.options if isinstance(value, TaggedUnion) else (value,))):
        own = await engine.call(frame, Static(getattr), [value, Static(found.__name__)], {}, node.origin, node)
        await engine.call(frame, own, args, kwargs, node.origin, node)
        return value
    into = isinstance(found, Hashable) and found in WITH_OUT
    if not into and (not isinstance(found, Hashable) or found not in CHANGING):
        if node.attrs.get("out"):
            args, kwargs = (
                (args, {**kwargs, "out": value}) if node.attrs["out"] == "keyword" else ([*args, value], kwargs)
            )
        else:
            args = [value, *args]
        await engine.call(frame, function, args, kwargs, node.origin, node)
        return value
    name, count = getattr(found, "__name__", ""), len(args)

    async def change(region: Frame, values: list[Val]) -> Val:
        value, *given = values
        refuse_shared(engine, region, node, value)
        if not is_any_array(value):
            if found is set_shape:
                raise TypeError_(
                    f"'.shape' is assigned to of arrays only, and this is {describe(value)}: objects do not change"
                )
            if method:
                raise AttributeError_(f"{describe(value)} has no attribute '{name}'")
            raise TypeError_(f"np.{name} changes an array in place, and this is {describe(value)}")
        named = dict(zip(kwargs, given[count:], strict=True))
        if into:
            result = await engine.call(region, function, given[:count], named, node.origin, node)
            return await written_into(engine, region, f"np.{name}(out=...)", value, result)
        own: Any = found  # a key of the table, as it is none of WITH_OUT
        return await engine.call(region, Static(CHANGING[own]), [value, *given[:count]], named, node.origin, node)

    new = await without_choices(engine, frame, [value, *args, *kwargs.values()], change)
    engine.shared.difference_update(arrays_of(new))  # `value` is not used again
    return new


WITH_OUT = frozenset(
    (*(f for f in vars(np).values() if isinstance(f, np.ufunc) and f.nout == 1),
     np.clip, np.cumprod, np.cumsum, np.dot, np.max, np.mean, np.min, np.prod, np.std, np.sum, np.take, np.trace, np.var)
)  # fmt: skip
"""Functions that write their result into the array that is given as `out`."""


def is_complex(value: Val) -> bool:
    """Whether a value is a complex number or array."""
    return isinstance(value, Seq) and value.cls is Complex


async def written_into(engine: Engine, frame: Frame, what: str, old: Val, new: Val) -> Val:
    """What an array is after a result has been written into it: it keeps its dtype and shape.

    Raises:
        TypeError_: the result does not fit into its dtype.
        ShapeError: it has another shape.
    """
    if isinstance(old, Seq):
        if not is_complex(new):
            new = await engine.call(frame, Static(as_complex), [new, old], {}, frame.builder.origin)
        parts = zip(old.elems, new.elems if isinstance(new, Seq) else (), strict=True)
        return Seq("record", tuple([await written_into(engine, frame, what, *p) for p in parts]), old.fields, old.cls)
    if is_complex(new):
        raise TypeError_(f"{what} has a complex result, which does not fit into the array of {describe(old)}")
    if not isinstance(old, Dyn) or not isinstance(old.type, Array) or not isinstance(new, Dyn):
        raise TypeError_(f"{what}: {describe(new)} cannot be written into {describe(old)}")
    was, now = old.type, new.type
    if not isinstance(now, Array | Scalar) or not can_cast(now.dtype, was.dtype):
        raise TypeError_(
            f"{what} writes its result into the array, and {now} does not fit into {was.dtype}; write .astype"
        )
    x = fit(frame.builder, frame.var(new), was.dtype)
    if was.shape == () and isinstance(x.type, Scalar):
        x = reshape(x, shape=())
    if isinstance(x.type, Array) and len(was.shape) == len(x.shape):
        x = fitted(frame.builder, x, was.shape)
    if len(was.shape) != len(x.shape) or not all(map(same_size, was.shape, x.shape)):
        raise ShapeError(
            f"{what} writes its result into the array of shape {show_shape(was.shape)}, and the result has shape "
            f"{show_shape(x.shape)}"
        )
    return Dyn(x.node)


@handles(S.setitem)
async def setitem(engine: Engine, frame: Frame, node: Apply) -> Val:
    """`x[i] = v`."""
    value, _, new = [engine.value(frame, a) for a in node.args]
    if isinstance(new, Chosen):
        assert new.new is not None
        for option in value.options if isinstance(value, TaggedUnion) else (value,):
            refuse_shared(engine, frame, node, option)
        return new.new
    return await _setitem(engine, frame, node)


@each_option((1, 0, 2))
async def _setitem(engine: Engine, frame: Frame, node: Apply, values: list[Val]) -> Val:
    value, index, new = values
    refuse_shared(engine, frame, node, value)
    if isinstance(value, Seq) and value.kind == "dict" and dict_key(index) not in value.fields:
        for conflict in node.attrs["shared"]:
            if runs_over_keys(frame, conflict):  # CPython raises, as the dict changes its size
                raise ParseError(conflict.reason, node.origin)
    if not is_any_array(value) and holds_mutable(new):
        note_places(frame.spec, node, {3})
    return await set_item(engine, frame, value, index, new, bool(node.attrs.get("back")))


COUNTS = {"insert": (2,), "pop": (0, 1), "clear": (0,), "reverse": (0,), "sort": (0,)}  # arguments; of the others, one


@handles(S.list_change)
async def list_change(engine: Engine, frame: Frame, node: Apply) -> Val:
    """A method that changes a list: the list afterwards, and the method's result.

    Raises:
        TypeError_: `del` of something else, or a wrong number of arguments.
    """
    name = node.attrs["method"]
    _, xs, *args = [None, *[engine.value(frame, a) for a in node.args]]
    count = len(args) - len(node.keywords)
    args, kwargs = args[:count], dict(zip(node.keywords, args[count:], strict=True))
    if is_any_array(xs) and name == "sort":
        refuse_shared(engine, frame, node, xs)
        new = await engine.call(frame, Static(CHANGING[np.ndarray.sort]), [xs, *args], kwargs, node.origin, node)
        engine.shared.difference_update(arrays_of(new))  # `xs` is not used again
        return Seq("tuple", (new, NONE_VAL))
    if not is_list(xs):
        if name == "__delitem__":
            raise TypeError_(f"del x[i] is for lists, and this is {describe(xs)}")
        method = await engine.call(frame, Static(getattr), [xs, Static(name)], {}, node.origin, node)
        return Seq("tuple", (xs, await engine.call(frame, method, args, kwargs, node.origin, node)))
    refuse_shared(engine, frame, node, xs)
    if len(args) not in COUNTS.get(name, (1,)) or kwargs and name != "sort":
        raise TypeError_(f"list.{name}() is given {len(args) + len(kwargs)} arguments")
    after, result = await CHANGES[name](engine, frame, xs, args, kwargs)
    return NEVER if after is NEVER or result is NEVER else Seq("tuple", (after, result))
