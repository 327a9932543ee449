"""The table of operators: what a call of an ONNX operator means in compiled code.

A rule is a function `(c, *inputs, **attributes)`, declared with the versions of the operator set that it covers:

    @operator("Conv", 1)
    def conv(c, x, w, bias=None, *, strides=None, ...): ...

Inputs are staged arrays (`Var`), absent ones None, unless the declaration says otherwise:

- `sizes`: inputs that say sizes become lists of numbers and dimensions, bound at run time where values decide them;
- `static`: inputs that must be known become NumPy arrays. If such an input is an input of the model, or a parameter, the model
  is compiled for its value;
- `raw`: `Operand`s, whatever they are; all of them where it is `True`;
- `fixed`: inputs whose values become part of the program where they are integer initialisers, though these are parameters;
- `carries`: the rule moves elements without computing, so it does for narrow dtypes what it does for their carriers.

A rule returns an array, a tuple of them for several outputs, or what `lifted` takes. Rules that are written in the language are
called with `c.call`, which is a coroutine, so those that need it are coroutines too.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...abstract.dims import Dim, DimLike, known_size, product
from ...abstract.types import Array, Scalar
from ...infer.engine.engine import Engine
from ...infer.engine.frames import Frame
from ...infer.engine.unions import without_choices
from ...infer.language.calls import call_python
from ...infer.language.registry import of_class
from ...infer.objects.leaves import to_python
from ...infer.values.treedef import describe
from ...infer.values.values import Dyn, Seq, Static, Val
from ...ir.build import Builder, Var
from ...ir.node import Constant
from ...ir.prim import REGISTRY
from ...prims.api.implementations import IMPLEMENTATIONS
from ...prims.api.promotion import bind_size, python, run_time_size, size_value, static_int, weak
from ...prims.rules.broadcast import as_array, as_scalar, cast, reshape
from ...prims.rules.relations import show_shape
from ...utils.errors import CompileError, ShapeError, TypeError_
from . import folding
from .values import CARRIERS, NARROW, Fixed, Sizes, Undecided

DEMANDS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, AssertionError, MemoryError)
"""What a rule raises where inputs are not what the operator's definition demands, such as the number of axes."""
LATEST = 10_000
MOST_ELEMENTS = 1 << 40
"""Elements of a tensor: more are a damaged model."""
MOST_NUMBERS = 1 << 10
"""Elements of an input that says sizes."""
DOMAINS: dict[str, str] = {"": "", "ai.onnx": ""}
"""Domains that are called otherwise."""


@dataclass(frozen=True)
class OnnxRule:
    """What an operator means in a range of versions.

    Attributes:
        function: the rule.
        since, until: the versions of the operator set.
        sizes, static, raw, fixed, carries: see above.
    """

    function: Callable
    since: int
    until: int
    sizes: frozenset[str]
    static: frozenset[str]
    raw: frozenset[str] | bool
    fixed: frozenset[str]
    carries: bool

    @property
    def inputs(self) -> list[str]:
        """The names of the inputs; the last one begins with a star if it stands for all that are left."""
        found = list(inspect.signature(self.function).parameters.values())[1:]
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [p.name for p in found if p.kind in kinds]


RULES: dict[tuple[str, str], list[OnnxRule]] = {}


def operator(
    *names: str,
    since: int = 1,
    until: int = LATEST,
    sizes=(),
    static=(),
    raw=(),
    fixed=(),
    carries=False,
    domain="",
):
    """Declare a rule: a decorator."""

    def declare(function: Callable) -> Callable:
        kept = raw if isinstance(raw, bool) else frozenset(raw)
        rule = OnnxRule(function, since, until, frozenset(sizes), frozenset(static), kept, frozenset(fixed), carries)
        for name in names:
            RULES.setdefault((domain, name), []).append(rule)
        return function

    return declare


def find_rule(domain: str, name: str, version: int) -> OnnxRule | None:
    """The rule of an operator in a version of its operator set; None if there is none."""
    return next((r for r in RULES.get((domain, name), ()) if r.since <= version <= r.until), None)


@dataclass(frozen=True)
class OnnxOperator:
    """An operator of a version of an operator set, as the text of an imported model calls it."""

    name: str
    domain: str
    version: int

    def __relay_value__(self, engine: Any, frame: Any) -> Val:
        return Static(self)

    def __call__(self, *inputs, **attributes):
        raise NotImplementedError  # never run: compiled code finds what it means

    def __repr__(self) -> str:
        return self.name


class Operand:
    """An input of a node.

    Attributes:
        context: the call.
        value: what inference knows of it.
        narrow: the name of its narrow dtype; None of any other.
    """

    def __init__(self, context: Context, value: Val):
        self.context = context
        self.narrow: str | None = None
        if isinstance(value, Seq) and value.cls in NARROW.values():
            self.narrow, value = value.cls.narrow, value.elems[0]
        if isinstance(value, Static) and isinstance(value.value, Fixed):
            fixed = value.value
            self.narrow = fixed.dtype if fixed.dtype in CARRIERS else None
            value = context.frame.constant(fixed.array)
        if isinstance(value, Dyn) and isinstance(value.type, Scalar):
            x = context.frame.var(value)
            value = Dyn(as_array(cast(x, dtype=x.dtype, weak=False)).node)
        self.value = value

    @property
    def known(self) -> np.ndarray | None:
        """Its elements where all are known, numbers or dimensions; else None."""
        if isinstance(self.value, Static) and isinstance(self.value.value, Sizes):
            return self.value.value.array
        if isinstance(self.value, Dyn) and isinstance(self.value.node, Constant):
            return np.asarray(self.value.node.value)
        return None

    @property
    def number(self) -> Any:
        """Its only element where that is known to be a number; else None."""
        known = self.known
        if known is None or known.size != 1 or known.dtype == object:
            return None
        return known.reshape(())[()]

    @property
    def dtype(self) -> str:
        """The name of its dtype."""
        if self.narrow is not None:
            return self.narrow
        return self.value.value.dtype if isinstance(self.value, Static) else self.var.dtype

    @property
    def shape(self) -> tuple[DimLike, ...]:
        """Its shape."""
        return self.value.value.shape if isinstance(self.value, Static) else self.var.shape

    @property
    def var(self) -> Var:
        """The array; that of a narrow dtype is its carrier.

        Raises:
            TypeError_: it is no tensor.
        """
        if isinstance(self.value, Dyn) and isinstance(self.value.type, Array):
            return self.context.frame.var(self.value)
        if isinstance(self.value, Static) and isinstance(self.value.value, Sizes):
            return self.context.array_of(self.value.value)
        raise TypeError_(f"an input is {describe(self.value)}, and the operator takes a tensor")

    def static(self, what: str) -> np.ndarray:
        """Its elements.

        Raises:
            Undecided: they are not known.
        """
        known = self.known
        if known is None or folding.has_dims(known):
            raise Undecided(
                f"its input {what} must be known at compile time, and it is computed at run time", self.value
            )
        return known.astype(self.dtype) if known.dtype == object else known

    def dims(self, what: str) -> list[DimLike]:
        """Its elements as sizes, in order; those that values decide become symbols. They may be -1.

        Raises:
            Undecided: only a run tells how many there are.
        """
        known = self.known
        if known is not None:
            return [e if isinstance(e, Dim) else int(e) for e in known.ravel().tolist()]
        return [self.context.size(e) for e in self.scalars(what)]

    def scalars(self, what: str) -> list[Var]:
        """Its elements, in order, as Python ints that are known at run time.

        Raises:
            Undecided: only a run tells how many there are.
            TypeError_: there are too many.
        """
        b = self.context.b
        known = self.known
        if known is not None:
            return [size_value(b, e if isinstance(e, Dim) else int(e)) for e in known.ravel().tolist()]
        x = self.var
        if not all(isinstance(d, int) for d in x.shape):
            raise Undecided(f"how many elements its input {what} has must be known at compile time", self.value)
        x = reshape(x, shape=(product(x.shape),))
        count = known_size(x.shape[0])
        if count > MOST_NUMBERS:
            raise TypeError_(f"its input {what} has {count} elements, which are more than a tensor has axes")
        return [weak(element(x, i), "int64") for i in range(count)]


def element(x: Var, index: int) -> Var:
    """A number of a vector."""
    return as_scalar(reshape(REGISTRY["slice"](x, starts=(index,), sizes=(1,), steps=(1,)), shape=()))


class Context:
    """The call of an operator.

    Attributes:
        engine, frame: of inference.
        operator: what is called.
        node: the name of the node.
        outputs: how many outputs it has.
        site, origin: of the call.
    """

    def __init__(self, engine: Engine, frame: Frame, called: OnnxOperator, node: str, outputs: int, site, origin):
        self.engine, self.frame, self.operator, self.node, self.outputs = engine, frame, called, node, outputs
        self.site, self.origin = site, origin

    @property
    def b(self) -> Builder:
        """The builder."""
        return self.frame.builder

    @property
    def version(self) -> int:
        """Of the operator set."""
        return self.operator.version

    def constant(self, value: Any, dtype: str | None = None) -> Var:
        """A constant array."""
        from ...abstract.types import numpy_dtype

        array = np.asarray(value) if dtype is None else np.asarray(value, numpy_dtype(dtype))
        return self.b.var(self.b.constant(array))

    def numpy(self, function: Callable, *args, **kwargs) -> Any:
        """What a NumPy function means."""
        return IMPLEMENTATIONS[function](self.b, *args, **kwargs)

    def relay(self, name: str, *args, **kwargs) -> Any:
        """What an operator of `relay` that is no layer means."""
        from ...prims.api.nn_api import NN_OPS

        return NN_OPS[name](self.b, *args, **kwargs)

    def size(self, x: Var) -> DimLike:
        """A Python int as a size."""
        known = static_int(x)
        return run_time_size(self.b, x) if known is None else known

    def bound(self, x: Var) -> DimLike:
        """A Python int that is not negative as a size."""
        known = static_int(x)
        return bind_size(self.b, x) if known is None else known

    def array_of(self, sizes: Sizes) -> Var:
        """A tensor of sizes as an array."""
        elements = [
            as_array(cast(size_value(self.b, e), dtype=sizes.dtype, weak=False))
            if isinstance(e, Dim)
            else self.constant(e, sizes.dtype)
            for e in sizes.elements
        ]
        if sizes.shape == ():
            return elements[0]
        flat = REGISTRY["concatenate"](*[reshape(e, shape=(1,)) for e in elements], axis=0)
        return reshape(flat, shape=sizes.shape)

    def value(self, x: Any) -> Val:
        """An argument of a function that is written in the language."""
        if isinstance(x, Var):
            return Dyn(x.node)
        if isinstance(x, Val):
            return x
        if isinstance(x, tuple | list):
            return Seq("tuple" if isinstance(x, tuple) else "list", tuple(map(self.value, x)))
        if isinstance(x, Dim):
            return Dyn(size_value(self.b, x).node)
        return self.engine.from_python(self.frame, x, None)

    async def call(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        """Call a function that is written in the language: arrays in, an array or a tuple of them out."""
        values, named = [self.value(a) for a in args], {k: self.value(a) for k, a in kwargs.items()}
        return self.staged(await call_python(self.engine, self.frame, function, values, named, self.origin, self.site))

    def staged(self, value: Val) -> Any:
        """The result of a function in the language, as rules compute with it."""
        if isinstance(value, Seq) and value.kind in ("tuple", "list"):
            return tuple(self.staged(e) for e in value.elems)
        if isinstance(value, Dyn) and isinstance(value.type, Array | Scalar):
            return Operand(self, value).var
        return value

    def lifted(self, result: Any) -> Val:
        """The result of a rule as a value."""
        if isinstance(result, Operand):
            value = result.value
            return value if result.narrow is None else Seq("record", (value,), ("values",), NARROW[result.narrow])
        if isinstance(result, Var):
            node = result.node
            require_sizes(result.shape)
            if isinstance(node.type, Scalar):
                node = as_array(cast(result, dtype=result.dtype, weak=False)).node
            return Dyn(node)
        if isinstance(result, Sizes):
            return Static(result)
        if isinstance(result, tuple):
            return Seq("tuple", tuple(map(self.lifted, result)))
        if isinstance(result, list):
            return Seq("list", tuple(map(self.lifted, result)))
        if isinstance(result, Val):
            return result
        if isinstance(result, np.ndarray | np.generic):
            array = np.asarray(result)
            return Static(Sizes.of(array, "int64")) if array.dtype == object else self.frame.constant(array)
        return Static(None) if result is None else self.engine.from_python(self.frame, result, None)

    def narrowed(self, x: Var, dtype: str) -> Operand:
        """The tensor of a narrow dtype that an array carries."""
        out = Operand(self, Dyn(x.node))
        out.narrow = dtype
        return out


def require_sizes(shape: tuple[DimLike, ...]) -> None:
    """Refuse shapes that no tensor can have, as far as they are known.

    Raises:
        ShapeError: a size is negative, or there are too many elements.
    """
    known = [d for d in shape if isinstance(d, int)]
    if any(d < 0 for d in known):
        raise ShapeError(f"its result would have the shape {show_shape(shape)}, with a negative size")
    if 0 not in known and math.prod(known) > MOST_ELEMENTS:
        raise ShapeError(f"its result would have the shape {show_shape(shape)}: more elements than memory holds")


def zero(b: Builder, dtype: str) -> Var:
    """The array 0 without axes."""
    from ...abstract.types import numpy_dtype

    return python(b, np.zeros((), numpy_dtype(dtype)))


@of_class(OnnxOperator)
async def call_operator(engine: Engine, frame: Frame, called: OnnxOperator, args, kwargs, origin, site) -> Val:
    """A call of an ONNX operator.

    Raises:
        CompileError: it cannot be done; the message names the operator and the node.
    """
    options = {name: to_python(value, f"{called.name}: {name}") for name, value in kwargs.items()}
    node, outputs = options.pop("node", ""), options.pop("outputs", 1)

    async def run(region: Frame, values: list[Val]) -> Val:
        context = Context(engine, region, called, node, outputs, site, origin)
        try:
            return await apply_rule(context, values, options)
        except CompileError:
            raise
        except DEMANDS as error:
            reason = f"{error}" or "sizes do not fit"
            raise TypeError_(f"its inputs or attributes are not those of the operator: {reason}") from error

    try:
        return await without_choices(engine, frame, list(args), run)
    except CompileError as error:
        if not getattr(error, "names_node", False) and not error.message.startswith(f"{called.name} "):
            error.message = f"{called.name} (node '{node}'): {error.message}"
            error.args = (error.message,)
        raise


async def apply_rule(c: Context, values: list[Val], attributes: dict[str, Any]) -> Val:
    """The result of a rule for inputs.

    Raises:
        TypeError_: the operator does not take such inputs.
    """
    rule = find_rule(c.operator.domain, c.operator.name, c.version)
    if rule is None:
        raise TypeError_(f"there is no rule for version {c.version} of its operator set")
    absent = [isinstance(v, Static) and v.value is None for v in values]
    operands: list[Any] = [
        None if gone else Operand(c, v) if not is_container(v) else v for gone, v in zip(absent, values)
    ]
    symbolic = folding.folded(c, operands, attributes)
    if symbolic is not None:
        return c.lifted(symbolic)
    names = rule.inputs
    given, carrier = [], None
    for position, x in enumerate(operands):
        name = names[position] if position < len(names) else "*"
        if x is None or not isinstance(x, Operand) or rule.raw is True or (rule.raw and name in rule.raw):
            given.append(x)
        elif name in rule.sizes:
            given.append(x.dims(name))
        elif name in rule.static:
            given.append(x.static(name))
        elif x.narrow is not None and not rule.carries:
            raise TypeError_(f"it has no meaning for tensors of {x.narrow} here")
        else:
            carrier = x.narrow or carrier
            given.append(x.var)
    result = rule.function(c, *given, **attributes)
    if inspect.isawaitable(result):
        result = await result
    if carrier is not None and isinstance(result, Var):
        result = c.narrowed(result, carrier)
    elif carrier is not None and isinstance(result, tuple):
        result = tuple(
            c.narrowed(r, carrier) if isinstance(r, Var) and r.dtype == CARRIERS[carrier] else r for r in result
        )
    lifted = c.lifted(result)
    if c.outputs > 1 and isinstance(lifted, Seq) and lifted.kind == "tuple" and len(lifted.elems) > c.outputs:
        lifted = Seq("tuple", lifted.elems[: c.outputs])
    elif c.outputs == 1 and isinstance(result, tuple):
        lifted = lifted.elems[0] if isinstance(lifted, Seq) else lifted
    return lifted


def is_container(value: Val) -> bool:
    """Whether a value is a sequence, a list or something else that is no tensor."""
    if isinstance(value, Seq):
        return value.cls not in NARROW.values()
    if isinstance(value, Dyn):
        return not isinstance(value.type, Array | Scalar)
    return not (isinstance(value, Static) and isinstance(value.value, Sizes | Fixed))
