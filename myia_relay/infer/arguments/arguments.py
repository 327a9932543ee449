"""Arguments and results: Python values taken apart into treedefs and leaves, and results assembled from them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from ...abstract.annotations import Rows, TensorAnnotation
from ...abstract.declared import Constructed
from ...abstract.dims import symbol
from ...abstract.disassembly import Uneven, numbers
from ...abstract.families import annotation_type, family_of
from ...abstract.structures import leaving
from ...abstract.structures import rebuild as rebuild_value
from ...abstract.types import NONE, Array, Data, List, Scalar, Struct, is_array_entry
from ...ir.build import Builder, type_of_constant
from ...library.complex_numbers import Complex
from ...utils.arrays import require_plain_array
from ...utils.errors import InternalError, OverflowError_, ShapeError, TypeError_, ValueError_
from ...utils.raising import format_parts
from ..values.protocols import is_named_tuple
from ..values.treedef import ConstInfo, Identity, TreeDef, rebuild
from ..values.values import Dyn, Seq, Val
from .columns import ListsAsData, column_types, columns_of, from_columns
from .declared_data import data_of, has_one_instance
from .dlpack import from_dlpack
from .open_sizes import FieldAnnotation, open_size, part_annotations
from .records import record_fields

SCALARS = {int: Scalar("int64", True), float: Scalar("float64", True), bool: Scalar("bool", True)}
PLAIN = frozenset(SCALARS)
SIZES = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}
DTYPES = frozenset({"bool", "bfloat16", *(f"{kind}{bits}" for kind, all_bits in SIZES.items() for bits in all_bits)})


MOST_LEAVES = 2000  # leaves of a tree whose structure is in its type


class ReturnedFunction:
    """A function that compiled code made and returned: its code, and copies of what it captured.

    A call compiles it for its arguments, once per signature whatever it captured. It can be passed to compiled code and
    to `grad` like any function.

    Attributes:
        treedef: the treedef of the closure.
        leaves: the captured values.
        run: `(function, *args) -> result`: compiles and calls; set by the layer that can.
    """

    run: Callable

    def __init__(self, treedef: TreeDef, leaves: list):
        self.treedef, self.leaves = treedef, leaves
        self.__name__ = treedef.info[0].name if treedef.tag == "closure" else "function"

    def __relay_value__(self, engine: Any, frame: Any) -> Val:
        """The closure, inside compiled code that finds this object in a free name: what it captured never changes."""
        nodes = []
        for leaf in self.leaves:
            nodes.append(engine.from_python(frame, leaf, None).node)
        return rebuild(self.treedef, iter(nodes))

    def __call__(self, *args):
        return self.run(self, *args)

    def __repr__(self) -> str:
        return f"<compiled function {self.__name__}>"


def as_numbers(values: list) -> np.ndarray | None:
    """A list of Python numbers of one type as an array; None for other lists.

    Raises:
        OverflowError: an int that does not fit into 64 bits.
    """
    if not values or type(values[0]) not in PLAIN:
        return None
    try:
        return numbers(values)
    except Uneven as error:
        if error.big:
            raise OverflowError(str(error)) from None
        return None


FEW = 4  # ints in a tuple: fewer are checked faster one by one


def quick_key(values: Any, leaves: list, listed: ListsAsData = ListsAsData.ALL) -> tuple | None:
    """A key that equal argument types share, computed without building treedefs; the leaves are appended.

    Arrays count by dtype and shape, so one program with symbolic sizes has many such keys.

    Args:
        values: a tuple of arguments.
        leaves: receives numbers, arrays and references.
        listed: which lists are data.

    Returns:
        The key, or None for arguments that need a closer look.
    """
    key: list = []
    for v in values:
        kind = type(v)
        if kind is np.ndarray:
            key.append(v.dtype)
            key.append(v.shape)
        elif kind is float or kind is bool:
            key.append(kind)
        elif kind is int:
            if not -0x8000000000000000 <= v <= 0x7FFFFFFFFFFFFFFF:
                return None
            key.append(kind)
        elif kind is dict:
            inner = quick_key(v.values(), leaves, listed)
            if inner is None:
                return None
            key.append(dict)
            key.append(tuple(v))
            key.append(inner)
            continue
        elif kind is tuple or kind is list:
            try:
                numbers = as_numbers(v) if listed and kind is list else None
            except OverflowError:
                return None
            if numbers is not None:
                key.append(list)
                key.append(numbers.dtype)
                leaves.append(numbers)
                continue
            if kind is list and (found := columns_of(v, listed)) is not None:
                key.append(list)
                key.append(found[0])
                leaves.extend(found[1])
                continue
            if kind is tuple and len(v) > FEW and set(map(type, v)) == {int}:
                if min(v) < -0x8000000000000000 or max(v) > 0x7FFFFFFFFFFFFFFF:
                    return None
                key.append(range)  # as no argument is
                key.append(len(v))
                leaves.extend(v)
                continue
            inner = quick_key(v, leaves, listed)
            if inner is None:
                return None
            key.append(kind)
            key.append(inner)
            continue
        elif not (named := issubclass(kind, tuple)) and hasattr(kind, "__relay_ref__"):
            if any(v is leaf for leaf in leaves):
                return None  # the same model twice is one argument
            spec = getattr(v, "spec", None)
            if spec is None:
                return None
            key.append(kind)
            key.append(spec)
        elif not named and (isinstance(v, np.generic) or family_of(kind) is not None):
            key.append(kind)
        elif isinstance(v, Constructed):
            if not has_one_instance(kind):
                return None  # its class does not say which instance it is
            key.append(kind)
        else:
            parts = parts_of(kind)
            inner = None if parts is None else quick_key(parts(v), leaves, listed)
            if inner is None:
                return None
            key.append(kind)
            key.append(inner)
            continue
        leaves.append(v)
    return tuple(key)


@functools.lru_cache(256)
def parts_of(kind: type) -> Callable[[Any], tuple] | None:
    """The function that takes the fields out of a record of a class; None if the class has no such records."""
    fields = record_fields(kind)
    if fields is None or len(fields) > 1:
        return None if fields is None else operator.attrgetter(*fields)
    return lambda record: tuple(getattr(record, f) for f in fields)


def describe_argument(
    value: Any,
    annotation: Any,
    leaves: list,
    refs: dict[int, int],
    structural: bool = False,
    listed: ListsAsData = ListsAsData.ALL,
) -> TreeDef:
    """The treedef of an argument; its leaf values are appended to `leaves`.

    Args:
        value: any Python value.
        annotation: the parameter's annotation: named dimensions make the compiled program serve every size.
        leaves: receives numbers, arrays and references.
        refs: references seen so far by identity: the same model passed twice is one.
        structural: whether recursive dataclasses are told apart by their structure, as other ones are.
        listed: which lists are data.

    Raises:
        TypeError_: a value that compiled code cannot take.
        OverflowError_: an int that does not fit into 64 bits.
    """
    kind = type(value)
    if kind in PLAIN:
        if kind is int and not -(2**63) <= value < 2**63:
            raise OverflowError_(f"the integer argument {value} does not fit into 64 bits")
        leaves.append(value)
        return TreeDef("dyn", SCALARS[kind])
    if kind is complex or isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "c":
        real, imag = (describe_argument(part, None, leaves, refs) for part in (value.real, value.imag))
        return TreeDef("seq", ("record", ("real", "imag"), Complex), (real, imag))
    if isinstance(value, np.ndarray):
        return array_treedef(value, annotation, leaves)
    if isinstance(value, np.generic):
        if value.dtype.name not in DTYPES:
            raise TypeError_(f"a NumPy scalar of dtype {value.dtype} cannot be passed to compiled code")
        leaves.append(value)
        return TreeDef("dyn", Scalar(value.dtype.name))

    if value is None and not structural and (data := annotation_type(annotation)) is not None and data.nullable:
        leaves.append(None)
        return TreeDef("dyn", data)
    if value is None or isinstance(value, str):
        return TreeDef("static", Identity(value))
    if hasattr(kind, "__relay_ref__"):
        if id(value) in refs:
            return TreeDef("again", refs[id(value)])
        refs[id(value)] = len(leaves)
        leaves.append(value)
        return TreeDef("dyn", value.__relay_ref__())
    if hasattr(kind, "__relay_tree__"):
        # Symbolic sizes are named by position, so that two datasets in one call may differ in length.
        form, fields, cls, inner = value.__relay_tree__(f"{kind.__name__.lower()}{len(leaves)}")
        treedefs = tuple(describe_argument(p, a, leaves, refs) for p, a in inner)
        return TreeDef("seq", (form, fields, cls), treedefs)

    def parts(values: Iterable, names: Iterable | None = None) -> tuple[TreeDef, ...]:
        values = list(values)
        notes = part_annotations(annotation, value, range(len(values)) if names is None else names)
        return tuple(
            describe_argument(v, a, leaves, refs, structural, listed) for v, a in zip(values, notes, strict=True)
        )

    if is_named_tuple(value):
        return TreeDef("seq", ("record", value._fields, kind), parts(value, value._fields))
    if kind is list and listed and (found := list_treedef(value, annotation, leaves)) is not None:
        return found
    if kind is list and not structural and (columns := columns_of(value, listed)) is not None:
        return _columns_treedef(*columns, leaves)
    if isinstance(value, list | tuple):
        return TreeDef("seq", ("list" if isinstance(value, list) else "tuple", (), None), parts(value))
    if isinstance(value, dict):
        if not all(isinstance(k, str) for k in value):
            raise TypeError_("a dict passed to compiled code must have string keys")
        return TreeDef("seq", ("dict", tuple(value), None), parts(value.values()))
    if hasattr(kind, "__dataclass_fields__"):
        if not value.__dataclass_params__.frozen:
            raise TypeError_(f"the dataclass {kind.__name__} is mutable; declare it @dataclass(frozen=True)")
        if isinstance(value, Constructed) and not structural and (data := data_of(value, annotation)) is not None:
            leaves.append(value)
            return TreeDef("dyn", data)
        family = None if structural else family_of(kind)
        if family is not None:
            wanted = annotation_type(annotation)
            leaves.append(value)
            return TreeDef("dyn", wanted if wanted is not None and wanted.family is family else Data(family))
        if structural and len(leaves) > MOST_LEAVES and family_of(kind) is not None:
            raise TypeError_(f"this {kind.__name__} has more than {MOST_LEAVES} leaves")
        fields = tuple(value.__dataclass_fields__)
        return TreeDef("seq", ("record", fields, kind), parts([getattr(value, f) for f in fields], fields))
    if isinstance(value, ReturnedFunction):
        leaves.extend(value.leaves)
        return value.treedef
    if callable(value):
        return TreeDef("static", Identity(value))
    if hasattr(value, "__dlpack__"):
        return array_treedef(from_dlpack(value), annotation, leaves)
    raise TypeError_(
        f"a value of type {kind.__module__}.{kind.__qualname__} cannot be passed to compiled code; pass numbers, arrays, "
        "tuples, lists, dicts with string keys, NamedTuples, frozen dataclasses, models or functions"
    )


def list_treedef(value: list, annotation: Any, leaves: list) -> TreeDef | None:
    """The treedef of a list of numbers, which serves every length; None for other lists.

    An empty list says nothing of its type, but its annotation may: `list[float]`.

    Raises:
        OverflowError_: an integer does not fit into 64 bits.
    """
    try:
        numbers = as_numbers(value)
    except OverflowError:
        big = next(v for v in value if not -(2**63) <= v < 2**63)
        raise OverflowError_(f"the integer {big} in a list argument does not fit into 64 bits") from None
    element = getattr(annotation, "__args__", (None,))[0] if getattr(annotation, "__origin__", None) is list else None
    if numbers is None and not value and element in PLAIN:
        numbers = np.zeros(0, SCALARS[element].dtype)
    if numbers is None:
        return None
    leaves.append(numbers)
    return TreeDef("listed", None, (TreeDef("dyn", Array(numbers.dtype.name, (symbol(f"list{len(leaves)}"),))),))


def _columns_treedef(t: List, columns: Sequence[np.ndarray], leaves: list) -> TreeDef:
    """The treedef of a list as columns, which are appended to the leaves."""
    start = len(leaves) + 1  # as `list_treedef` numbers lists
    leaves.extend(columns)
    types = column_types(t, f"list{start}", lambda: f"list{start}_{next(numbers)}")
    numbers = count(1)
    return TreeDef("columns", t, tuple(TreeDef("dyn", column) for column in types))


def array_treedef(value: np.ndarray, annotation: Any, leaves: list) -> TreeDef:
    """The treedef of an array argument, with the annotation's symbolic dimensions; open ones are for `settle`.

    Raises:
        TypeError_: compiled code does not have its dtype, or it is an array of a subclass.
    """
    if value.dtype.name not in DTYPES:
        raise TypeError_(
            f"an array of dtype {value.dtype} cannot be passed to compiled code; convert it: .astype(np.float64)"
        )
    require_plain_array(value)
    leaves.append(value)
    shape: tuple = value.shape
    if isinstance(annotation, Rows) and value.ndim:
        shape = (symbol(annotation.name), *value.shape[1:])
    if (
        isinstance(annotation, TensorAnnotation)
        and annotation.shape is not None
        and len(annotation.shape) == value.ndim
    ):
        shape = tuple(
            symbol(d) if isinstance(d, str) else open_size(have) if d is Any else have
            for d, have in zip(annotation.shape, value.shape, strict=True)
        )
    if isinstance(annotation, FieldAnnotation):
        shape = annotation.shape(value)
    return TreeDef("dyn", Array(value.dtype.name, shape))


def resolve_again(treedef: TreeDef, nodes: list, position: Iterator, b: Builder) -> Val:
    """The value of an argument treedef over parameter nodes; "again" is the node of an earlier reference.

    Args:
        treedef: of the argument.
        nodes: the parameters.
        position: the index of the next of them.
        b: makes lists of columns.
    """
    if treedef.tag == "again":
        return Dyn(nodes[treedef.info])
    if treedef.tag == "dyn":
        return Dyn(nodes[next(position)])
    if treedef.tag == "seq":
        return Seq(
            treedef.info[0],
            tuple(resolve_again(p, nodes, position, b) for p in treedef.parts),
            treedef.info[1],
            treedef.info[2],
        )
    own = iter([nodes[next(position)] for _ in treedef.leaves()])
    return Dyn(from_columns(b, treedef.info, own)) if treedef.tag == "columns" else rebuild(treedef, own)


def result_arrays(treedef: TreeDef, out: Any) -> Iterator[Any]:
    """The arrays of a tree with the shape of a result, in the order of its leaves.

    Raises:
        TypeError_: the tree is no such tree.
    """
    if treedef.tag == "dyn":
        if isinstance(treedef.info, Data):
            raise TypeError_(f"into: a part of the result is {treedef}, which no array can hold")
        if isinstance(out, list) and isinstance(treedef.info, List) and is_array_entry(treedef.info.elem):
            yield from out
        else:
            yield out
    elif treedef.tag == "seq":
        kind, fields, _ = treedef.info
        if kind == "dict" and isinstance(out, dict) and tuple(out) == fields:
            parts = list(out.values())
        elif kind == "record" and all(hasattr(out, f) for f in fields):
            parts = [getattr(out, f) for f in fields]
        elif isinstance(out, list | tuple) and len(out) == len(treedef.parts) and kind != "dict":
            parts = list(out)
        else:
            raise TypeError_(
                f"into: the result is {treedef}, so give arrays in a structure like it, not {type(out).__name__}"
            )
        for part, target in zip(treedef.parts, parts, strict=True):
            yield from result_arrays(part, target)
    else:
        raise TypeError_(f"into: a part of the result is {treedef}, which no array can hold")


def writable_targets(treedef: TreeDef, out: Any) -> list[Any]:
    """The arrays into which a result is written.

    Args:
        treedef: of the result.
        out: a tree of them, like the result.

    Raises:
        TypeError_: it is no such tree.
        ValueError_: one is read-only, or two share memory.
    """
    targets = list(result_arrays(treedef, out))
    refuse_overlaps(targets)
    if any(isinstance(t, np.ndarray) and not t.flags.writeable for t in targets):
        raise ValueError_("into is given a read-only array")
    return targets


def refuse_overlaps(targets: list) -> None:
    """Refuse arrays for several results if they share memory: the last result written would overwrite the others.

    Raises:
        ValueError_: two of them overlap, or one overlaps itself.
    """
    arrays = [t for t in targets if isinstance(t, np.ndarray)]
    if len(set(map(id, arrays))) == len(arrays) and all(a.flags.owndata and a.flags.forc for a in arrays):
        return
    for k, first in enumerate(arrays):
        if any(size > 1 and stride == 0 for size, stride in zip(first.shape, first.strides, strict=True)):
            raise ValueError_(
                "into is given an array whose elements share memory; give one of its own, np.empty(shape)"
            )
        for other in arrays[k + 1 :]:
            if share_memory(first, other):
                raise ValueError_("into is given arrays that share memory for different results; give each its own")


def share_memory(first: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays have an element in common, or may have one if deciding that takes too long."""
    if not np.may_share_memory(first, other):
        return False
    try:
        return np.shares_memory(first, other, max_work=100_000)  # pyright: ignore[reportArgumentType]  # the stub knows 0 and -1
    except RuntimeError:  # np.exceptions.TooHardError
        return True


def copy_results(targets: list, results: Any) -> None:
    """Copy what an executor without `into` returned.

    Raises:
        TypeError_: a target is no plain array, or of another dtype than its result.
        ShapeError: a target has another shape than its result.
    """
    for target, result in zip(targets, results, strict=True):
        value = np.asarray(result)
        if not isinstance(target, np.ndarray) or target.dtype != value.dtype:
            raise TypeError_(f"into needs an array of {value.dtype} with shape {value.shape} for each result")
        require_plain_array(target)
        if target.shape != value.shape:
            raise ShapeError(f"into is given an array of shape {target.shape} for a result of shape {value.shape}")
        target[...] = value


def copy_listed(treedef: TreeDef, leaves: Iterable, targets: list) -> None:
    """Copy results of which some are lists of arrays.

    Args:
        treedef: of the result.
        leaves: what it consists of.
        targets: the arrays for it, one for each entry of a list.

    Raises:
        TypeError_: a list has another length, or see `copy_results`.
    """
    values: list = []
    for leaf, part in zip(leaves, treedef.leaves(), strict=True):
        values += leaving(leaf, part.info) if isinstance(part.info, List) else [leaf]
    if len(values) != len(targets):
        raise TypeError_(f"into is given {len(targets)} arrays for a result of {len(values)}")
    copy_results(targets, values)


def constant_treedef(value: Any, leaves: list | None = None) -> TreeDef:
    """The treedef of a static argument.

    Args:
        value: the argument.
        leaves: receives the arrays in it, of which only dtypes and shapes are known at compile time.

    Raises:
        TypeError_: it is an array, whose elements may change, or holds one and there are no leaves.
    """
    if isinstance(value, np.ndarray) and leaves is not None:
        return array_treedef(value, None, leaves)
    if isinstance(value, np.ndarray):
        raise TypeError_(
            "an array is no compile-time constant, as its elements may change; take the name out of static="
        )
    if isinstance(value, bool | int | float | np.generic):
        return TreeDef("const", ConstInfo(type_of_constant(value), value))
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        kind = "list" if isinstance(value, list) else "tuple"
        return TreeDef("seq", (kind, (), None), tuple(constant_treedef(v, leaves) for v in value))
    if is_named_tuple(value):
        return TreeDef("seq", ("record", value._fields, type(value)), tuple(constant_treedef(v, leaves) for v in value))
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return TreeDef("seq", ("dict", tuple(value), None), tuple(constant_treedef(v, leaves) for v in value.values()))
    return TreeDef("static", Identity(value))


def python_value(treedef: TreeDef, leaves: Iterator):
    """The Python value of a result.

    Raises:
        TypeError_: it exists in compiled code only.
        InternalError: there is none.
    """
    tag, info = treedef.tag, treedef.info
    if tag == "dyn":
        return leaving(next(leaves), info) if isinstance(info, List) else next(leaves)
    if tag == "listed":
        return next(leaves).tolist()
    if tag == "static":
        return info.value
    if tag == "const":
        return info.value
    if tag == "seq":
        parts = [python_value(p, leaves) for p in treedef.parts]

        return rebuild_value(Struct(info[0], (NONE,) * len(parts), info[1], info[2]), parts)
    if tag == "never":  # a program that ends without its result, which must not be taken for None
        raise InternalError("the backend", "the program has ended, and is one that does not return")
    if tag == "choice":
        which, *options = treedef.parts
        place = next(leaves)
        values = [[next(leaves) for _ in option.leaves()] for option in options]
        return python_value(options[place], iter(values[place]))
    if tag == "text":
        return format_parts(info, [python_value(p, leaves) for p in treedef.parts])
    if tag in ("closure", "derived", "bound"):
        return ReturnedFunction(treedef, [next(leaves) for _ in treedef.leaves()])
    if tag == "iter":
        raise TypeError_(f"compiled code cannot return {info} to Python; return a list or a tuple of it: list(...)")
    raise TypeError_(f"compiled code cannot return {treedef} to Python")
