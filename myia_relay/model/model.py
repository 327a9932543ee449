"""Models: arrays with a function, the one mutable thing in the language."""

from __future__ import annotations

import functools
import html
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..abstract.annotations import annotated_type
from ..abstract.dims import Dim, is_known, known_size
from ..abstract.types import Array, Ref, numpy_dtype
from ..api import Relay
from ..frontend import parse
from ..infer.engine.dependencies import Hidden
from ..infer.engine.engine import Ambient, Engine
from ..infer.engine.frames import Frame
from ..infer.language.calls import call_model_function
from ..infer.language.registry import special
from ..infer.objects.attributes import METHODS_OF_REFS
from ..infer.objects.leaves import to_python
from ..infer.transforms.model_gradients import provide, read_parameters
from ..infer.values.treedef import describe
from ..infer.values.values import Dyn, Seq, Static, Val
from ..ir.node import Parameter
from ..pipeline import compile_program
from ..prims.rules.relations import show_shape
from ..utils.attributes import Advised
from ..utils.debugging import debugging
from ..utils.errors import LoweringError, ShapeError, TypeError_, nearest
from ..utils.pickling import Remade
from ..utils.raising import for_user
from .arrays import checked, initial_arrays, realigned, take_over
from .checkpoint_io import load_safetensors, require_floats, save_safetensors
from .elsewhere import MODEL
from .hidden import KEY, ModelSpec, discover, move_key


class RelayModel(Remade):
    """A function decorated with `@relay_model`: a layer or a whole model, with parameters.

    It cannot be called by itself from Python; `relay.create_model(f)` makes its parameters.
    """

    def __init__(self, function: Callable):
        functools.update_wrapper(self, function, updated=())
        self._function = function
        self._spec: ModelSpec | None = None
        self._told = False

    @property
    def __relay_model__(self) -> Callable:
        """The decorated function. A property: `functools.wraps` copies what instances hold to wrappers, which are no models."""
        return self._function

    def specification(self) -> ModelSpec:
        """Its parameters; found once, and again after a name that it reads has changed."""
        if self._spec is None or not all(d.holds() for d in self._spec.dependencies):
            try:
                self._spec = discover(self, parse)
                return self._spec
            except BaseException as error:
                problem = for_user(error, debugging())
            raise problem
        return self._spec

    def tell_of_sharing(self, spec: ModelSpec) -> None:
        """Warn, once, of functions with layers that loops call, and whose iterations share these though nothing says so."""
        blocks = [(block, layers) for block, layers in spec.shared if block]
        if not blocks or self._told:
            return
        self._told = True
        block, layers = blocks[0]
        others = f", and those of {', '.join(b for b, _ in blocks[1:])}" if blocks[1:] else ""
        warnings.warn(
            f"{getattr(self, '__name__', 'model')}: the iterations of a loop share the layers of {block} ({', '.join(layers)})"
            f"{others}; "
            f"{block}(..., unshared=True) gives each iteration its own, and unshared=False says that they share",
            UserWarning,
            stacklevel=3,
        )

    def __call__(self, *args, **kwargs):
        name = getattr(self, "__name__", "model")
        raise TypeError_(
            f"{name} has hidden parameters and needs a model: model = relay.create_model({name}), then model(x)"
        )

    def _made_of(self) -> tuple[tuple, dict[str, Any]]:
        return (self._function,), {}

    def _repr_html_(self) -> str:
        """Its source."""
        from ..debug.html import function_html

        return function_html(repr(self)[1:-1], self._function, [])

    def __repr__(self) -> str:
        return f"<relay model function {getattr(self, '__name__', '?')}>"


def relay_model(function: Callable) -> RelayModel:
    """Decorate a function with parameters: a model as in Figure 4 of the Relay paper.

    Args:
        function: its layers (`relay.conv2d`, `relay.linear`, ...) are given no weights; they are its parameters.
            The shapes of its arguments are annotated.
    """
    return RelayModel(function)


class Parameters(Mapping):
    """The parameters of a model, or its state: an ordered mapping from name to array. Assigning copies into the model's own
    array."""

    def __init__(self, names: list[str], arrays: list[np.ndarray]):
        self._names, self._arrays = names, arrays

    def _index(self, name: str) -> int:
        try:
            return self._names.index(name)
        except ValueError:
            raise KeyError(f"no parameter '{name}'{nearest(name, self._names)}") from None

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[self._index(name)]

    def __setitem__(self, name: str, value: Any) -> None:
        array = self[name]
        array[...] = checked(name, array, value)

    def __iter__(self):
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._arrays)

    def _repr_html_(self) -> str:
        """A table of the arrays."""
        from ..debug.html import arrays_html

        return arrays_html(f"{len(self)} arrays", self.items())

    def __repr__(self) -> str:
        return "{" + ", ".join(f"'{n}': {a.dtype}{list(a.shape)}" for n, a in self.items()) + "}"


def show_count(count: Any) -> str:
    """A number of operations; symbolic where sizes are."""
    return str(count) if isinstance(count, Dim) else f"{count:,}"


class Model(Advised):
    """The parameters of a model function, and the function.

    Attributes:
        spec: names, types and places of its parameters.
        arrays: the parameters, in the order of `spec.names`, then the state; compiled code updates them in place.
    """

    _elsewhere = MODEL

    def __init__(self, spec: ModelSpec, arrays: list[np.ndarray]):
        self.spec = spec
        self.arrays = arrays

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, arrays=realigned(state["arrays"]))

    def __relay_ref__(self) -> Ref:
        return self.spec.ref

    def __call__(self, x, *more, training: bool = False, **named):
        """Run the model on an input (or on an `Example`, taking its `x`), and what else its function takes; `training`: as its
        layers do when they train."""
        if training or more or named:
            return (_apply_training_to_all if training else _apply_to_all)(self, getattr(x, "x", x), *more, **named)
        return _apply(self, getattr(x, "x", x))

    @property
    def params(self) -> Parameters:
        """Name -> array, in call order: `"conv2d_0.weight"`, ..."""
        return Parameters(self.spec.names, self.arrays[: len(self.spec.names)])

    @params.setter
    def params(self, values: Mapping) -> None:
        take_over(self.params, values)

    @property
    def state(self) -> Parameters:
        """Name -> array of what layers keep that is no parameter, such as running statistics: `"batch_norm_0.running_mean"`, ..."""
        start = len(self.spec.names)
        return Parameters(list(self.spec.state), self.arrays[start : start + len(self.spec.state)])

    @property
    def key(self) -> Any:
        """The key that dropout draws from, which an update moves on; None where nothing draws."""
        return self.arrays[-1][()] if self.spec.draws else None

    @state.setter
    def state(self, values: Mapping) -> None:
        take_over(self.state, values)

    def saved(self) -> dict[str, np.ndarray]:
        """All that a file holds, by name: the parameters, the state, and the key that layers draw from."""
        return dict(zip(self.spec.ref.names, self.arrays, strict=True))

    def restore(self, values: Mapping) -> None:
        """Take over what `saved` gave.

        Raises:
            KeyError, ShapeError, TypeError_: it is of another model; nothing is written.
        """
        take_over(self.saved(), values)

    @property
    def num_params(self) -> int:
        """How many numbers the model learns."""
        return sum(a.size for a in self.params.values())

    def summary(self) -> str:
        """A table with a row for each layer: the shape of its result, how many numbers it learns, its operations.

        A multiplication and an addition are two operations. They are those of one call, for the annotated shapes of the input; what
        is no layer is in the last row but one. Of a layer in a loop that stays one they are those of one iteration.
        """
        table = self._summary()
        widths = [max(len(row[i]) for row in table) for i in range(4)]
        lines = [
            "  ".join(cell.rjust(w) if i > 1 else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths)))
            for row in table
        ]
        return "\n".join(line.rstrip() for line in (*lines, *self._sharing()))

    def _sharing(self) -> list[str]:
        """The functions that loops call, and whose layers have one set of parameters."""
        return [
            f"{', '.join(layers)} of {block}: one set of parameters for all iterations of a loop; "
            f"{block}(..., unshared=True) gives each its own"
            for block, layers in self.spec.shared
            if block
        ]

    def _summary(self) -> list[list[str]]:
        """The rows of `summary`, and their head."""
        sizes = {name: array.size for name, array in self.params.items()}
        shared = {layer for _, layers in self.spec.shared for layer in layers}
        rows = [
            (
                f"{name} (shared in a loop)" if name in shared else name,
                show_shape(shape),
                f"{sum(sizes[p] for p in parts):,}",
                show_count(count),
            )
            for name, shape, parts, count in self.spec.rows
        ]
        counts = [count for _, _, _, count in self.spec.rows]
        rest = "?" if any(isinstance(c, Dim) for c in (*counts, self.spec.flops)) else self.spec.flops - sum(counts)
        table = [("layer", "output", "parameters", "flops"), *rows]
        if isinstance(rest, int) and rest > 0:
            table.append(("(other)", "", "", f"{rest:,}"))
        table.append(("total", "", f"{self.num_params:,}", show_count(self.spec.flops)))
        return [list(row) for row in table]

    def _repr_html_(self) -> str:
        """The summary, over a table of the parameters and the state."""
        from ..debug.html import arrays_html
        from ..debug.tables import html_table

        arrays = arrays_html("parameters and state", (*self.params.items(), *self.state.items()))
        shared = "".join(f"<p>{html.escape(line)}</p>" for line in self._sharing())
        return f"<p><b>{repr(self)[1:-1]}</b></p>{html_table(self._summary())}{shared}{arrays}"

    def save(self, path) -> None:
        """Write the parameters and the state to a safetensors file, whole or not at all."""
        save_safetensors(path, OrderedDict(self.saved()), {"function": getattr(self.spec.function, "__name__", "")})

    def as_function(self, *examples: Any) -> tuple[Relay, tuple]:
        """The compiled function that a call of the model is, and its arguments for these inputs, or one of the annotated type."""
        return _apply_to_all, (self, *([getattr(x, "x", x) for x in examples] or [self._example()]))

    def _example(self) -> np.ndarray:
        """An input of the annotated type.

        Raises:
            TypeError_: the type is not annotated, or has names for sizes.
        """
        graph = parse(self.spec.function.__relay_model__)
        type_ = annotated_type(graph.signature.annotations.get(0))
        if not isinstance(type_, Array) or not is_known(type_.shape):
            what = f"annotated {type_}, with names for sizes" if isinstance(type_, Array) else "not annotated"
            raise TypeError_(f"save: the type of the model's input is {what}; give an example: save(path, x)")
        return np.zeros(tuple(map(known_size, type_.shape)), numpy_dtype(type_.dtype))

    def copy(self) -> Model:
        """A model with the same function and a copy of the parameters."""
        return Model(self.spec, [a.copy() for a in self.arrays])

    def __repr__(self) -> str:
        name = getattr(self.spec.function, "__name__", "")
        return f"<Model {name}: {len(self.params)} arrays, {self.num_params:,} parameters>"


class ExportedModel(Model):
    """A trained model as a plain callable: what `relay.export_model` returns. It shares the model's arrays."""

    def __init__(self, model: Model):
        self.model = model

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __call__(self, *inputs, **named):
        return self.model(*inputs, **named)

    def as_function(self, *examples: Any) -> tuple[Relay, tuple]:
        """See `Model.as_function`."""
        return self.model.as_function(*examples)

    @property
    def spec(self) -> ModelSpec:
        return self.model.spec

    @property
    def arrays(self) -> list[np.ndarray]:
        return self.model.arrays

    def save(self, path, *examples) -> None:
        """Write the model: as a library, with its function and its parameters, or its parameters to a safetensors file.

        Args:
            path: a library if it ends in `.so`.
            examples: for a library, an example of each input; by default there is one, of the annotated type.

        Raises:
            CompileError: the model cannot be compiled, or not be written.
            OSError: the file cannot be written.
        """
        if not str(path).endswith((".so", ".dylib", ".dll")):
            super().save(path)
            return
        from ..cache.export import write_library

        try:
            leaves: list = []
            function, values = self.model.as_function(*examples)
            _, treedefs, keywords = function._signature(values, {}, leaves)
            compiled = compile_program(
                function._infer(treedefs, keywords), "native", {**function.options, "own_results": True}
            )
            name = getattr(self.spec.function, "__name__", "model")
            write_library(path, name, compiled, treedefs, keywords, leaves, model=True)
            return
        except BaseException as error:
            problem = for_user(error, debugging())
        raise problem

    def __repr__(self) -> str:
        return f"<exported {self.model!r}>"


def _apply_model(model, x):
    return model(x)


def _apply_model_to_all(model, *inputs, **named):
    return model(*inputs, **named)


def _apply_model_training_to_all(model, *inputs, **named):
    return model(*inputs, training=True, **named)


# A call with one input takes the shorter way.
_apply = Relay(_apply_model)
_apply_to_all = Relay(_apply_model_to_all)
_apply_training_to_all = Relay(_apply_model_training_to_all)


def create_model(fn: RelayModel, *, seed: int = 0, init: Any = None) -> Model:
    """Make a model: draw the parameters of a `@relay_model` function.

    Args:
        fn: the model function; the shapes of its arguments are annotated.
        seed: of the random numbers.
        init: how to draw those of which their layers say nothing: a standard deviation, the name of an initialiser of
            `relay.init`, an initialiser, which is a function `(key, shape, dtype) -> array`; or a mapping from name to array,
            for all. By default normal with mean 0 and standard deviation 0.01, biases too. Scales of normalisations begin as
            ones, their shifts as zeros.

    Raises:
        TypeError_: no model function, or an argument without annotated shape.
    """
    if not isinstance(fn, RelayModel):
        raise TypeError_(f"create_model needs a function decorated with @relay_model, not {fn!r}")
    spec = fn.specification()
    fn.tell_of_sharing(spec)
    return Model(spec, initial_arrays(spec, seed, init))


def load_model(fn: RelayModel, path) -> Model:
    """A model of `fn` with parameters read from a safetensors file.

    Raises:
        OSError: the file cannot be read.
        KeyError, ShapeError, TypeError_: it holds other parameters.
    """
    params, _ = load_safetensors(path)
    model = create_model(fn)
    known = model.saved()
    for name, value in params.items():
        if name != KEY:
            require_floats(name, value, known.get(name))
    model.restore(params)
    return model


def export_model(model: Model) -> ExportedModel:
    """A trained model as a callable for plain Python.

    Raises:
        TypeError_: it is no model.
    """
    if isinstance(model, ExportedModel):
        return model
    if not isinstance(model, Model):
        raise TypeError_(f"export_model needs a model, not {type(model).__name__}")
    return ExportedModel(model)


def update_model_params(model: Model, grads: Mapping, lr: float = 0.01) -> None:
    """Gradient descent, in place: every parameter becomes `p - lr * g`.

    Args:
        model: the model.
        grads: name -> gradient, as `relay.grad(model, loss, args)` returns it.
        lr: the learning rate.
    """
    _update(model, dict(grads), float(lr))


def _update_params(model, grads, lr):
    update_model_params(model, grads, lr)


_update = Relay(_update_params)


# In compiled code.


def entry_frame(engine: Engine, frame: Frame) -> bool:
    """Whether this frame runs exactly once per call: the decorated function itself, outside of branches and loops."""
    top = frame
    while top.parent is not None:
        if not top.shares:
            return False
        top = top.parent
    return top.spec.caller is not None and top.spec.caller.caller is None


@special(create_model)
async def compiled_create_model(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    """The model is made anew by the caller for every call of the program, and passed in.

    Raises:
        TypeError_: the argument is no model function.
        LoweringError: the call is not at the top of the decorated function.
    """
    fn = args[0].value if isinstance(args[0], Static) else None
    if not isinstance(fn, RelayModel):
        raise TypeError_(f"create_model needs a function decorated with @relay_model, not {describe(args[0])}")
    options = {k: to_python(v, f"create_model: {k}") for k, v in kwargs.items()}
    if not entry_frame(engine, frame):
        raise LoweringError(
            "a model is created at the top of the decorated function, not in a branch, a loop or a function that it calls; "
            "create it there, or outside, and pass it in"
        )
    spec = fn.specification()
    for d in spec.dependencies:
        engine.dependencies.setdefault((d.kind, id(d.place), d.name), d)
    key = ("created", site)
    engine.hidden[key] = Hidden(None, None, lambda values: create_model(fn, **options))
    return Dyn(frame.implicit(key, spec.ref, "model"))


@special(export_model)
async def compiled_export_model(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    (model,) = args
    if not (isinstance(model, Dyn) and isinstance(model.type, Ref)):
        raise TypeError_(f"export_model needs a model, not {describe(model)}")
    return Seq("record", (model,), ("model",), ExportedModel)


def model_argument(value: Val, what: str) -> Dyn:
    """A model among the arguments of a compiled call.

    Raises:
        TypeError_: it is none.
    """
    if isinstance(value, Dyn) and isinstance(value.type, Ref) and isinstance(value.type.spec, ModelSpec):
        return value
    raise TypeError_(f"{what} needs a model, not {describe(value)}")


def gradient_argument(model: Dyn, grads: Val) -> list[Dyn]:
    """Gradients in the order of the model's parameters.

    Raises:
        TypeError_: they are no dict with the names of the parameters.
        ShapeError: a gradient is not of its parameter's type.
    """
    names = model.type.spec.names
    if not isinstance(grads, Seq) or grads.kind != "dict":
        raise TypeError_(f"the gradients of a model are a dict from parameter name to array, not {describe(grads)}")
    missing = set(names) ^ set(grads.fields)
    if missing:
        raise TypeError_(
            f"the gradients and the parameters of {model.type.spec} differ in {', '.join(sorted(missing))}"
        )
    out = []
    for name, want in zip(names, model.type.spec.types, strict=True):
        value = grads.get(name)
        if not isinstance(value, Dyn) or value.type != want:
            raise ShapeError(f"the gradient of {name} is {describe(value)}, but the parameter is {want}")
        out.append(value)
    return out


def scalar_of(frame: Frame, value: Val, dtype: str, what: str):
    """A number as a staged NumPy scalar of a dtype.

    Raises:
        TypeError_: it is no number.
    """
    from ..abstract.types import Array, Scalar
    from ..ir.prim import REGISTRY

    if not (isinstance(value, Dyn) and isinstance(value.type, Scalar | Array) and value.type.shape == ()):
        raise TypeError_(f"{what} must be a number, not {describe(value)}")
    return REGISTRY["cast"](frame.var(value), dtype=dtype, weak=False)


def write(frame: Frame, ref: Dyn, index: int, value) -> None:
    """Emit the update of an array of a reference."""
    from ..prims.ops.effects import ref_write

    frame.builder.emit(ref_write, (ref.node, value.node), {"index": index})


@special(update_model_params)
async def compiled_update(engine: Engine, frame: Frame, args, kwargs, origin, site) -> Val:
    from ..infer.values.values import NONE_VAL

    values = dict(zip(("model", "grads", "lr"), args, strict=False)) | kwargs
    model = model_argument(values["model"], "update_model_params")
    lr = values.get("lr", frame.constant(0.01))
    grads = gradient_argument(model, values["grads"])
    old = read_parameters(frame, model, origin)
    new = []
    for node, grad in zip(old, grads, strict=True):
        rate = scalar_of(frame, lr, node.type.dtype, "the learning rate")
        new.append(frame.builder.var(node) - rate * frame.var(grad))
    for index, value in enumerate(new):
        write(frame, model, index, value)
    move_key(frame, model)
    return NONE_VAL


async def call_model(engine: Engine, frame: Frame, model: Dyn, args, kwargs, origin, site) -> Val:
    """`model(x)` in compiled code.

    Raises:
        TypeError_: the reference is to something else.
    """
    spec = model.type.spec
    if not isinstance(spec, ModelSpec):
        raise TypeError_(f"{spec} cannot be called")
    args = [a.get("x") if isinstance(a, Seq) and a.fields == ("x", "y") else a for a in args]
    kwargs = dict(kwargs)
    training = bool(to_python(kwargs.pop("training"), "model(x): training")) if "training" in kwargs else False
    scope, models = frame.scope(), frame.context.models
    given = spec.bound and dict(models).get(spec.function) is spec
    if not given:  # else its gradient is taken, and its parameters are in scope
        provide(scope, model, origin)
        models = ((spec.function, spec),)
    scope.context = Ambient(models, None, (), training, cuts=scope.context.cuts)
    return await call_model_function(engine, scope, spec.function, args, kwargs, origin, site)


METHODS_OF_REFS["__call__"] = call_model

__all__ = [
    "ExportedModel",
    "Model",
    "Parameter",
    "RelayModel",
    "create_model",
    "export_model",
    "load_model",
    "relay_model",
    "update_model_params",
]
