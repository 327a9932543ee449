"""Operators that users register with `relay.register_op`, and the two primitives that stand for them in typed graphs.

Idea: an operator is a Python object that holds all its rules, and a typed graph refers to it by an attribute. A
registration thus adds nothing to the registry of primitives, and a new operator with the same name does not affect
programs that were compiled for the old one.

- `call_operator` runs the operator's definition in Python (or its C function). It is an effect: the definition may
  raise or print, so it runs exactly where the program says.
- `operator_kernel` is for operators with a lowering of their own, which have no side effects.

Input: `Operator`s. Output: primitives with their relations; the derivative comes from `custom_vjp`
(`infer.transforms.registered`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...abstract.batched import batched_type
from ...abstract.dims import DimLike
from ...abstract.types import FLOATS, Array, Leaf, Scalar, Struct, Type, float_dtype, numpy_dtype, tuple_of
from ...ir.build import as_type, type_of_constant
from ...ir.prim import primitive
from ...utils.arrays import plain_array
from ...utils.errors import CompileError, GradError, TypeError_
from ...utils.raising import raise_again
from ...utils.source import Origin
from ..rules.batching import materialise_all
from ..rules.relations import broadcast_shapes, join_kind, show_shape


class TensorType(NamedTuple):
    """What a type relation sees of an argument and says of a result.

    Attributes:
        shape: sizes; where a size is decided at run time, a symbol that takes part in `+ - * //`.
        dtype: a NumPy name: "float32".
    """

    shape: tuple[DimLike, ...]
    dtype: str

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class Operator:
    """An operator of a user's: its definition and its rules. `relay.register_op` makes it; calling it computes.

    Attributes:
        name: its name in messages and graphs.
        function: the decorated function; its keyword-only parameters are static attributes.
        relation: `(*TensorType, **attrs) -> TensorType` or several; None for elementwise operators.
        elementwise: whether an element of the result comes from one element of each argument, with broadcasting.
        dtype: of an elementwise operator's result: a name, a function of the arguments' dtypes, or None for the promoted one.
        vjp_rule: the reverse rule, in the language.
        batch: "leading", a function, or None for one example after the other.
        lower: makes a TE tensor, or None.
        c_function: the C function that computes it, or None.
    """

    __relay_operator__ = True  # it marks operators, so that they are recognised without importing the primitives

    def __init__(self, name: str, function: Callable, **rules: Any):
        self.name, self.function = name, function
        self.relation: Callable | None = rules.get("relation")
        self.elementwise: bool = rules.get("elementwise", False)
        self.dtype: Any = rules.get("dtype")
        self.vjp_rule: Callable | None = rules.get("vjp")
        self.batch: Any = rules.get("batch")
        self.lower: Callable | None = rules.get("lower")
        self.c_function: Any = rules.get("c_function")
        self.signature = inspect.signature(function)
        parameters = self.signature.parameters.values()
        self.attributes = tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)
        self.parameters = tuple(p.name for p in parameters if p.kind is not p.KEYWORD_ONLY)
        self.results: dict[Any, Any] = {}  # of the relation, by types and attributes
        self.rules: dict[Any, Callable] = {}  # the reverse rule with attributes
        self.__name__, self.__doc__ = name, function.__doc__
        self.__module__, self.__qualname__ = function.__module__, getattr(function, "__qualname__", name)
        self.__wrapped__ = function

    @property
    def is_defined_by_others(self) -> bool:
        """Whether the definition is compiled: it is all in terms of other operators."""
        return self.relation is None and not self.elementwise

    def defvjp(self, rule: Callable) -> Callable:
        """Attach the reverse rule; a decorator.

        Args:
            rule: `(*args, out, dout, **attrs) -> tuple`, a cotangent (or None for zero) for each argument; in the language, so
                that it is compiled and can be differentiated again.

        Returns:
            The rule.

        Raises:
            TypeError_: it is no function.
        """
        if not callable(rule):
            raise TypeError_(f"{self.name}.defvjp takes a function, not {type(rule).__name__}")
        self.vjp_rule = rule
        return rule

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    # What it means.

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.is_defined_by_others:
            return self.function(*args, **kwargs)
        values, attrs = self.bind(args, kwargs)
        values = [v if isinstance(v, bool | int | float | np.generic) else plain_array(v) for v in values]
        types = self.promoted([type_of_constant(v) for v in values])
        return self.compute([_converted(v, t) for v, t in zip(values, types, strict=True)], attrs)

    def bind(self, args: Any, kwargs: dict[str, Any]) -> tuple[list[Any], tuple[tuple[str, Any], ...]]:
        """The arguments in order, defaults filled in, and the static attributes.

        Raises:
            TypeError_: they do not fit the definition's parameters.
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError_(f"{self.name}{self.signature}: {error}") from None
        bound.apply_defaults()
        attrs = tuple((name, bound.kwargs[name]) for name in self.attributes)
        return list(bound.args), attrs

    def promoted(self, types: Sequence[Leaf]) -> Sequence[Leaf]:
        """The types in which an elementwise operator without a dtype of its own gets its arguments: all of one dtype."""
        if not self.elementwise or self.dtype is not None or not types:
            return types
        dtype = common_dtype(types)
        weak = all(isinstance(t, Scalar) and t.weak for t in types)
        return [Array(dtype, t.shape) if isinstance(t, Array) else Scalar(dtype, weak) for t in types]

    def result(self, types: tuple[Type, ...], attrs: tuple[tuple[str, Any], ...]) -> Type:
        """The type of the result, by the type relation; of several results, a tuple's.

        Raises:
            CompileError: the relation refuses the arguments, or says something that is no type.
        """
        key = (types, attrs)
        if key not in self.results:
            if len(self.results) >= 1024:
                self.results.clear()
            self.results[key] = self._result(types, dict(attrs))
        return self.results[key]

    def _result(self, types: tuple[Type, ...], attrs: dict[str, Any]) -> Type:
        given: list[Leaf] = []
        for name, t in zip(self._names(len(types)), types, strict=True):
            if not isinstance(t, Scalar | Array):
                raise TypeError_(f"the operator {self.name} takes numbers and arrays, and '{name}' is {t}")
            given.append(t)
        if self.c_function is not None:
            self.c_function.check(self, given)
        if self.elementwise:
            shape = broadcast_shapes(self.name, *[t.shape for t in given])
            return join_kind(self._dtype(given), shape, *given)
        assert self.relation is not None  # else it is defined by others
        try:
            said = self.relation(*[TensorType(tuple(t.shape), t.dtype) for t in given], **attrs)
        except CompileError:
            raise
        except Exception as error:  # the relation's own words for arguments that it does not take
            raise TypeError_(f"the operator {self.name} does not take these arguments: {error}") from error
        return self._said(said)

    def _dtype(self, types: Sequence[Leaf]) -> str:
        if self.dtype is None:
            return common_dtype(types)
        chosen = self.dtype
        if callable(chosen) and not isinstance(chosen, type):
            chosen = chosen(*[t.dtype for t in types])
        return _dtype_name(chosen, self.name)

    def _said(self, said: Any) -> Type:
        """What a relation returned, as a type.

        Raises:
            TypeError_: it is no type.
        """
        if said in (bool, int, float):
            return Scalar({bool: "bool", int: "int64", float: "float64"}[said], True)
        if isinstance(said, tuple | list) and len(said) == 2 and _is_dtype(said[1]) and _is_shape(said[0]):
            shape, dtype = tuple(said[0]), _dtype_name(said[1], self.name)
            return Array(dtype, shape) if shape else Scalar(dtype)
        if isinstance(said, tuple | list) and said and not _is_shape(said):
            return tuple_of(*map(self._said, said))
        raise TypeError_(
            f"the relation of {self.name} returned {said!r}; it returns relay.TensorType(shape, dtype), a tuple of such for "
            "several results, or float, int or bool for a Python number"
        )

    def _names(self, count: int) -> list[str]:
        return [*self.parameters, *(f"argument {i}" for i in range(len(self.parameters), count))][:count]

    def compute(self, values: list[Any], attrs: tuple[tuple[str, Any], ...]) -> Any:
        """The result for the values of one example: the definition, and a check that it is what the relation says.

        Raises:
            TypeError, ValueError: it is not.
            Whatever the definition raises.
        """
        want = self.result(tuple(map(type_of_constant, values)), attrs)
        if self.c_function is not None:
            return self.c_function(self, values, dict(attrs), want)
        found = self.function(*map(_read_only, values), **dict(attrs))
        return self.fitted(found, want)

    def fitted(self, found: Any, want: Type) -> Any:
        """What the definition returned as what the relation says; always memory of its own.

        Raises:
            TypeError: it does not fit.
        """
        if not isinstance(want, Struct):
            return self._fitted(found, want, "")
        if not isinstance(found, tuple | list) or len(found) != len(want.elems):
            what = f"{len(found)} values" if isinstance(found, tuple | list) else f"a {type(found).__name__}"
            raise TypeError(
                f"the operator {self.name} returned {what}, and its relation says {len(want.elems)} results"
            )
        return tuple(
            self._fitted(f, t, f"result {i}: ") for i, (f, t) in enumerate(zip(found, want.elems, strict=True))
        )

    # `want` is a number's or an array's type, whatever holds it: relations speak of nothing else.
    def _fitted(self, found: Any, want: Any, where: str) -> Any:
        if found is None:
            raise TypeError(f"the operator {self.name}: {where}the definition returned None")
        array = plain_array(found)
        python = isinstance(found, bool | int | float) and not isinstance(found, np.generic)
        dtype = numpy_dtype(want.dtype)
        if array.dtype != dtype and not (python and np.can_cast(array.dtype, dtype, "same_kind")):
            raise TypeError(
                f"the operator {self.name}: {where}the definition returned {array.dtype}, and its relation says {want.dtype}"
            )
        if array.shape != tuple(want.shape):
            raise ValueError(
                f"the operator {self.name}: {where}the definition returned shape {show_shape(array.shape)}, and its relation "
                f"says {show_shape(want.shape)}"
            )
        return as_type(np.array(array, dtype=dtype), want)


def _converted(value: Any, t: Type) -> Any:
    """A value in its promoted type."""
    return float(value) if t == Scalar("float64", True) else as_type(value, t)


def common_dtype(types: Sequence[Leaf]) -> str:
    """The float dtype that elementwise operands promote to: Python numbers yield, integers count as for `np.sin`."""
    strong = [numpy_dtype(t.dtype) for t in types if not (isinstance(t, Scalar) and t.weak)]
    if not strong:
        return "float64"
    found = np.result_type(*strong).name
    if found in FLOATS:
        return found
    return "float64" if any(t.dtype == "float64" for t in types) else float_dtype(found)


def _read_only(value: Any) -> Any:
    """A value that the definition cannot change, because the program may read it again."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def _is_dtype(value: Any) -> bool:
    try:
        return value is not None and not isinstance(value, tuple | list) and bool(numpy_dtype(_plain_name(value)))
    except (TypeError, ValueError, AttributeError):
        return False


def _plain_name(value: Any) -> str:
    return value if isinstance(value, str) else np.dtype(value).name


def _dtype_name(value: Any, operator: str) -> str:
    if not _is_dtype(value):
        raise TypeError_(f"the operator {operator}: {value!r} is no dtype; write 'float32', np.int64, ...")
    return numpy_dtype(_plain_name(value)).name


def _is_shape(value: Any) -> bool:
    """Whether a value is a tuple of sizes."""
    return isinstance(value, tuple | list) and all(
        not isinstance(d, str | tuple | list | type | np.dtype) and d is not None for d in value
    )


# --- running ----------------------------------------------------------------------------------------------------------


def run(op: Operator, values: list[Any], attrs, kinds: tuple[str, ...], levels: tuple[tuple[bool, ...], ...]) -> Any:
    """The result of an operator, over any number of batch axes.

    Args:
        op: the operator.
        values: arguments; of those that are batched, axis 0 is the outermost batch axis.
        attrs: static attributes.
        kinds: of each argument of one example: "python", "numpy" (scalars) or "array".
        levels: for each batch axis, outermost first, which arguments have it.
    """
    if not levels:
        return op.compute([_as_kind(v, k) for v, k in zip(values, kinds, strict=True)], attrs)
    flags, *inner = levels
    size = next(len(v) for v, flag in zip(values, flags, strict=True) if flag)
    if op.batch is not None and not inner and size:
        return _at_once(op, values, attrs, kinds, flags, size)
    if not size:
        return _nothing(op, values, attrs, kinds, levels)
    rows = [
        run(op, [v[i] if flag else v for v, flag in zip(values, flags, strict=True)], attrs, kinds, tuple(inner))
        for i in range(size)
    ]
    if isinstance(rows[0], tuple):
        return tuple(np.stack(column) for column in zip(*rows, strict=True))
    return np.stack(rows)


def call_registered(origin: Origin | None, values: list[Any], op: Operator, attrs, kinds, levels) -> Any:
    """`run` for the executors: what the definition raises comes out at the user's line."""
    try:
        return run(op, values, attrs, kinds, levels)
    except Exception as error:
        raise_again(error, origin)


def _as_kind(value: Any, kind: str) -> Any:
    if kind == "python":
        return value.item() if isinstance(value, np.ndarray | np.generic) else value
    return np.asarray(value) if kind == "array" else np.asarray(value)[()]


def _at_once(op: Operator, values, attrs, kinds, flags, size: int) -> Any:
    """One call for all examples: `batch="leading"` or a function."""
    one = [_as_kind(v[0] if flag else v, kind) for v, flag, kind in zip(values, flags, kinds, strict=True)]
    want = op.result(tuple(map(type_of_constant, one)), attrs)
    many = batched_type(want, size)
    if op.batch == "leading":
        full = [v if flag else np.broadcast_to(v, (size, *np.shape(v))) for v, flag in zip(values, flags, strict=True)]
        found = op.function(*map(_read_only, full), **dict(attrs))
    else:
        found = op.batch(flags, *map(_read_only, values), **dict(attrs))
    return op.fitted(found, many)


def _nothing(op: Operator, values, attrs, kinds, levels) -> Any:
    """The result for no examples at all."""
    sizes: list[int] = []
    for flags in levels:
        sizes.append(next(len(v) for v, flag in zip(values, flags, strict=True) if flag))
        values = [np.zeros(np.shape(v)[1:], v.dtype) if flag else v for v, flag in zip(values, flags, strict=True)]
    want = op.result(tuple(type_of_constant(_as_kind(v, k)) for v, k in zip(values, kinds, strict=True)), attrs)

    def empty(t: Any) -> np.ndarray:  # as for `Operator.fitted`
        return np.zeros((*sizes, *t.shape), numpy_dtype(t.dtype))

    return tuple(map(empty, want.elems)) if isinstance(want, Struct) else empty(want)


# --- primitives -------------------------------------------------------------------------------------------------------


def kind_of(t: Leaf) -> str:
    """How the definition gets an argument of this type."""
    return "array" if isinstance(t, Array) else "python" if t.weak else "numpy"


def _inferred(types, op: Operator, attrs, kinds, levels) -> Type:
    """The type of a (batched) application."""
    sizes = []
    for flags in levels:
        sizes.append(next(t.shape[0] for t, flag in zip(types, flags, strict=True) if flag))
        types = tuple(Array(t.dtype, t.shape[1:]) if flag else t for t, flag in zip(types, flags, strict=True))
    one = []
    for t, kind in zip(types, kinds, strict=True):
        one.append(t if kind == "array" or isinstance(t, Scalar) else Scalar(t.dtype, kind == "python"))
    out = op.result(tuple(one), attrs)
    for size in reversed(sizes):
        out = batched_type(out, size)
    return out


@primitive("effect", effect="io")
def call_operator(*args, op, attrs, kinds, levels):
    """The result of a registered operator, by its definition in Python or C."""
    return run(op, list(args), attrs, kinds, levels)


@call_operator.infer
def _(*args, op, attrs, kinds, levels):
    return _inferred(args, op, attrs, kinds, levels)


@primitive("opaque")
def operator_kernel(*args, op, attrs, kinds, levels):
    """The result of a registered operator with a lowering: native code computes it by that, the others by its definition."""
    return run(op, list(args), attrs, kinds, levels)


@operator_kernel.infer
def _(*args, op, attrs, kinds, levels):
    return _inferred(args, op, attrs, kinds, levels)


@operator_kernel.batch
def _(size, batched, *args, op, attrs, kinds, levels):
    if op.elementwise and not levels:
        every = materialise_all(size, batched, args)
        return operator_kernel(*every, op=op, attrs=attrs, kinds=("array",) * len(every), levels=())
    levels = (tuple(batched), *levels)
    return operator_kernel(*args, op=op, attrs=attrs, kinds=kinds, levels=levels)


def refuse_derivative(*args, op, **attrs):
    """Every derivative of an operator without a rule.

    Raises:
        GradError: with how to add one.
    """
    parameters = ", ".join([*op.parameters, "out", "dout", *op.attributes])
    raise GradError(
        f"the operator {op.name} has no derivative; add one: @{op.name}.defvjp on a function ({parameters}) that returns a tuple "
        f"with a cotangent for each argument, or wrap the call in relay.stop_gradient(...) if none is meant"
    )


for _prim in (call_operator, operator_kernel):
    _prim.vjp(refuse_derivative)
    _prim.jvp(refuse_derivative)
