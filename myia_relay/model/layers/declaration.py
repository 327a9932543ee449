"""How operators and layers are declared: what `relay.conv2d`, `relay.gru`, `relay.tanh` are, inside of compiled code and outside.

An operator is a function of arrays: a rule on staged values (`prims.api`), or a function written in the language. A layer is an
operator some of whose arguments are weights. Called with weights it is a plain function. Called without, in a model, it takes
parameters of the model, which its declaration lists: what they are called, their shapes, how they are drawn.

    def _linear_parts(x, num_hidden, no_bias=False):
        return {"weight": Weight((num_hidden, x.shape[-1]))} | bias(no_bias, num_hidden)

    @layer(_linear_parts, weights=("weight", "bias"), example="relay.linear(x, num_hidden=10)")
    def linear(b, x, weight, bias=None): ...
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ...abstract.types import FLOATS, Array, Scalar
from ...functions import Sized, users_text
from ...infer.engine.engine import Engine
from ...infer.engine.frames import Frame
from ...infer.language.calls import call_python, numeric
from ...infer.language.registry import special
from ...infer.objects.leaves import to_option
from ...infer.values.treedef import describe
from ...infer.values.values import Dyn, Seq, Static, Val, elements
from ...ir.syntax import call_place
from ...opt.analysis.flops import of_nodes
from ...prims.api.implementations import Implementation
from ...prims.api.nn_api import NN_OPS
from ...utils.errors import InternalError, TypeError_, nearest
from ...utils.names import LAYERS, OPERATORS
from ..hidden import Collector, Weight, parameters, read_state, write_state

COMMON = ("init", "unshared")  # options of every layer that has parameters


class Layer(Sized):
    """An operator with weights: given ones, or parameters of the model it is called in.

    Attributes:
        operator_name: its public name.
        meaning: what it computes: a rule on staged values, or a function in the language.
        parts: `(*types of the data, **options) -> {part: Weight}`, what parameters a call without weights needs. Its parameters are
            what such a call takes.
        data: what such a call takes first: the operator's parameters in front of the weights.
        settings: what such a call takes besides.
        weights: names of the operator's parameters that are weights.
        gathered: the name of its parameter that takes all of them, as a dict; then `weights` is that name.
        accepts: dtypes of the first argument.
        example: a call that is right, for messages.
    """

    def __init__(self, name: str, meaning, doc: str, static, parts, weights, gathered, accepts, example):
        self.operator_name, self.meaning = name, meaning
        own = list(inspect.signature(parts).parameters)
        first = self.positional.index(weights[0]) if weights else len(self.positional)
        self.data = tuple(p for p in self.positional[:first] if p in own)
        self.settings = own[len(self.data) :]
        runtime = set(self.positional) - set(static) - set(weights)
        self.runtime = tuple(o for o in self.settings if o in runtime)
        self.parts, self.weights, self.gathered = parts, weights, gathered
        self.accepts, self.example = accepts, example
        self.defaults = {p.name: p.default for p in inspect.signature(parts).parameters.values()}

        def call(*args, **kwargs):
            raise NotImplementedError  # never run: compiled code finds what it means

        call.__name__ = call.__qualname__ = name
        call.__module__ = __package__ or ""
        call.__doc__ = users_text(doc)
        known = [o for o in (*self.settings, *COMMON) if o not in (*runtime, *static)]
        super().__init__(call, (*static, *known), ())
        special(self)(self.compiled)

    @functools.cached_property
    def positional(self) -> tuple[str, ...]:
        """The names of the parameters that may be given by position."""
        if isinstance(self.meaning, Implementation):
            return self.meaning.positional
        return tuple(inspect.signature(self.meaning).parameters)

    def shown_signature(self) -> inspect.Signature:
        """That of a call in a model; the docstring has the one with weights."""
        keywords = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in COMMON]
        own = inspect.signature(self.parts).parameters.values()
        return inspect.Signature([*(p.replace(annotation=inspect.Parameter.empty) for p in own), *keywords])

    async def compiled(self, engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        """Infer a call in compiled code."""
        at = len(self.data)
        if any(name in kwargs for name in self.weights) or (len(args) > at and not is_size(args[at])):
            return await self.apply(engine, frame, args, kwargs, origin, site)
        values = self.bound(args, dict(kwargs))
        common = {k: to_option(values.pop(k), f"{self.operator_name}: {k}") for k in COMMON if k in values}
        data = [values.pop(name) for name in self.data]
        site_of_state = (site, frame.context.iteration) if common.get("unshared") else site
        options = {
            name: value if name in self.runtime else to_option(value, f"{self.operator_name}: {name}")
            for name, value in values.items()
        }
        parts = self.parts(*[self.type_of(v, i) for i, v in enumerate(data)], **options)
        found = parameters(engine, frame, site, self.operator_name, self.with_dtype(parts, data), **common)
        state = [name for name, part in parts.items() if part.state]
        training = bool(state) and frame.context.training
        if training:
            found |= {name: read_state(frame, site_of_state, name) for name in state}
        if self.gathered is not None:
            found = {self.gathered: Seq("dict", tuple(found.values()), tuple(found))}
        passed = {name: value for name, value in values.items() if name in self.positional}
        if not training:
            start = len(frame.graph.nodes)
            result = await self.apply(engine, frame, data, {**found, **passed}, origin, site)
            note(frame, site_of_state, result, start)
            return result
        passed["training"] = frame.constant(True)
        result, *changed = elements(await self.apply(engine, frame, data, {**found, **passed}, origin, site))
        for name, value in zip(state, changed, strict=True):
            assert isinstance(value, Dyn)
            write_state(frame, site_of_state, name, frame.var(value))
        return result

    async def apply(self, engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
        """Infer a call with weights."""
        if isinstance(self.meaning, Implementation):
            return numeric(engine, frame, self.meaning, args, kwargs, f"relay.{self.operator_name}")
        return await call_python(engine, frame, self.meaning, args, kwargs, origin, site)

    def bound(self, args, kwargs: dict[str, Val]) -> dict[str, Val]:
        """The arguments of a call without weights, by name.

        Raises:
            TypeError_: there is one too many, one too few, or one of another name.
        """
        name = f"relay.{self.operator_name}"
        names = [*self.data, *self.settings]
        if len(args) > len(names):
            raise TypeError_(f"{name} takes {len(names)} arguments ({', '.join(names)}), and {len(args)} were given")
        values = dict(zip(names, args))
        for key, value in kwargs.items():
            if key not in names and key not in COMMON:
                known = [*names, *COMMON]
                raise TypeError_(f"{name}() got an unexpected keyword argument '{key}'{nearest(key, known)}")
            if key in values:
                raise TypeError_(f"{name}() got multiple values for argument '{key}'")
            values[key] = value
        for key in names:
            if key not in values and self.defaults[key] is inspect.Parameter.empty:
                raise TypeError_(f"{name} needs {key}: {self.example}")
        return values

    def type_of(self, value: Val, position: int) -> Any:
        """The type of an argument that is data; the value itself where it is no array.

        Raises:
            TypeError_: it is not what the layer takes.
        """
        if isinstance(value, Dyn) and isinstance(value.type, Array | Scalar):
            if value.type.dtype in self.accepts and (isinstance(value.type, Array) or self.accepts != FLOATS):
                return value.type
        elif position:
            return value
        kind = "a float array" if self.accepts == FLOATS else "an array of integers"
        raise TypeError_(f"relay.{self.operator_name} needs {kind}, not {describe(value)}: {self.example}")

    def with_dtype(self, parts: dict[str, Weight], data: list[Val]) -> dict[str, Weight]:
        """The parts, those without a dtype with that of the first argument."""
        dtype = data[0].type.dtype  # pyright: ignore[reportAttributeAccessIssue]  see `type_of`
        return {name: part if part.dtype else part.of(dtype) for name, part in parts.items()}


class Written(Sized):
    """An operator without weights that is written in the language."""


def note(frame: Frame, site: Any, result: Val, start: int) -> None:
    """Write down a call of a layer where the parameters of a model are being found: what it returns, and what it costs."""
    scope = frame.context.scope
    if isinstance(scope, Collector):
        while isinstance(result, Seq) and result.elems:
            result = result.elems[0]
        shape = result.type.shape if isinstance(result, Dyn) and isinstance(result.type, Array) else ()
        operations = of_nodes(frame.graph.nodes[start:])
        scope.note((*frame.context.path, call_place(site)), frame.context.iteration, shape, operations)


def is_size(value: Val) -> bool:
    """Whether an argument is a known number, or several: no weight."""
    if isinstance(value, Seq):
        return bool(value.elems) and all(map(is_size, value.elems))
    if isinstance(value, Dyn):
        return value.known and isinstance(value.type, Scalar)
    return isinstance(value, Static) and value.value is not None


def layer(
    parts: Callable[..., dict[str, Weight]],
    *,
    weights: tuple[str, ...] = (),
    gathered: str | None = None,
    static: tuple[str, ...] = (),
    accepts: tuple[str, ...] = FLOATS,
    staged: bool = True,
    example: str,
    cls: type[Layer] | None = None,
) -> Callable[[Callable], Any]:
    """Declare a layer: a decorator of its function of arrays. Its name is listed in `utils.names.LAYERS`.

    Args:
        parts: what its parameters are: `(x, num_hidden, ...) -> {"weight": Weight(shape), ...}`, in order, where `x` is the type
            of the data. Its parameters are what a call in a model takes.
        weights: the names of the function's parameters that are weights.
        gathered: instead, the function's one parameter that takes the weights as a dict, where their number varies.
        static: the function's parameters that are known at compile time.
        accepts: dtypes of the data.
        staged: whether the function is a rule `(b, x, ...)` on staged values; else it is written in the language.
        example: a call that is right.
        cls: a class of layers of its own.
    """

    def declare(function: Callable) -> Layer:
        """Make the layer.

        Raises:
            InternalError: its name is not listed.
        """
        name = function.__name__
        if name not in LAYERS:
            raise InternalError("layers", f"the layer {name} is not in utils.names.LAYERS")
        meaning = function
        if staged:
            meaning = NN_OPS[name] = Implementation(f"relay.{name}", function, static)
        given = (gathered,) if gathered is not None else weights
        doc = function.__doc__ or ""
        return (cls or Layer)(name, meaning, doc, static, parts, given, gathered, accepts, example)

    return declare


def written(static: tuple[str, ...] = ()) -> Callable[[Callable], Any]:
    """Declare an operator without weights that is written in the language: a decorator."""

    def declare(function: Callable) -> Written:
        """Make the operator.

        Raises:
            InternalError: its name is not listed.
        """
        name = function.__name__
        if name not in OPERATORS:
            raise InternalError("layers", f"the operator {name} is not in utils.names.OPERATORS")
        return Written(function, static, ())

    return declare


def count(value: Any, what: str, layer_name: str) -> int:
    """A size that a layer is given.

    Raises:
        TypeError_: it is no positive int.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TypeError_(f"relay.{layer_name}: {what} is a positive int, not {value!r}")
    return value


def bias(no_bias: bool, size: int) -> dict[str, Weight]:
    """The part for a bias, unless there is none."""
    return {} if no_bias else {"bias": Weight((size,))}
