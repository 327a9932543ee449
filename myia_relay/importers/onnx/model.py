"""`relay.from_onnx`: an ONNX model as a function of the compiler, with parameters."""

from __future__ import annotations

import linecache
import re
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...abstract.annotations import annotated_type
from ...api import CacheInfo, Relay
from ...frontend import parse
from ...infer.engine.engine import Ambient
from ...infer.entry import new_engine
from ...infer.values.values import Dyn, Static
from ...ir.node import Apply, Graph, Parameter
from ...model.arrays import take_over
from ...model.model import Model, Parameters, RelayModel
from ...pipeline import compress
from ...utils.arrays import plain_array
from ...utils.debugging import debugging
from ...utils.errors import CompileError, ShapeError, TypeError_, nearest
from ...utils.raising import for_user
from . import operators  # noqa: F401  fills the table
from .loading import load
from .parameters import ImportedParameters, ImportedSpec, parameter
from .skeleton import without_parameters
from .text import MOST_DECIDING, ModelText, Port, decides, shown
from .values import CARRIERS, NARROW, Fixed, Undecided, carried, copied, narrow_dtype
from .writing import ModelWriter

MOST_STATIC = 1 << 12
"""Elements of an input that may become part of the program."""
ENTRIES = 64
"""Programs for values of inputs that are kept."""


class ImportedModel(Model):
    """An ONNX model: a function of its inputs, with parameters. What `relay.from_onnx` returns.

    It is called, differentiated, batched, inspected and trained like other models and functions of the compiler.

    Attributes:
        inputs, outputs: what it takes and gives.
    """

    spec: Any

    def __init__(self, proto: Any, folder: Any, name: str, arrays: Mapping[str, np.ndarray] | None = None):
        self._proto, self._folder, self._name = proto, folder, name
        self._statics: set[str] = set()  # inputs and parameters whose values are part of the program
        self._relays: OrderedDict[Any, Relay] = OrderedDict()
        self._by_sizes = False  # whether the model is compiled for the sizes of a call
        self._exact: ImportedModel | None = None  # this model for the sizes and small integers of each call
        self._values: dict[Fixed, Fixed] = {}
        self._write(arrays)
        self._proto = without_parameters(proto, self.spec.written.parameters, folder)
        if not any(p.kind == "tensor" and p.shape is None for p in self.inputs):
            self._check()

    # Making.

    def _write(self, known: Mapping[str, np.ndarray] | None = None) -> None:
        """Write the text, and make its function.

        Args:
            known: the parameters; None if they are those in the message.

        Raises:
            CompileError: something in the model cannot be imported.
        """
        plain = [p.variable for p in self.inputs] if self._by_sizes else self._static_variables()
        statics = frozenset(plain) | self._statics.intersection(known or ())
        writer = ModelWriter(self._proto, self._folder, self._name, statics, known)
        try:
            written = writer.write()
        except CompileError:
            raise
        except (TypeError, ValueError, AttributeError, IndexError, KeyError) as error:  # names that are no text, say
            raise CompileError(f"{self._name}: the model is damaged: {error}") from None
        if written.missing:
            operator, node, reason = written.missing[0]
            notes = [f"{o} (node '{n}'): {r}" for o, n, r in written.missing[1:20]]
            raise CompileError(f"{operator} (node '{node}'): {reason}", None, *notes)
        self._digest = written.digest
        spec = ImportedSpec(RelayModel(self._function(written)), written)
        super().__init__(spec, [written.parameters[n] for n in spec.ref.names])
        self.inputs, self.outputs = written.inputs, written.outputs
        self._entry = self._entry_function(written)
        self._relays.clear()
        self._exact = None

    def _static_variables(self) -> list[str]:
        """The variables of inputs whose values are part of the program."""
        return [p.variable for p in getattr(self, "inputs", ()) if p.name in self._statics]

    def _file(self, kind: str) -> str:
        suffix = "".join(f"+{s}" for s in sorted(self._statics))
        return f"<onnx {self._name} {self._digest}{suffix}{kind}>"

    def _compile_text(self, text: str, file: str, names: dict[str, Any], name: str) -> Any:
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        names["__name__"] = __name__
        exec(compile(text, file, "exec"), names)
        return names[name]

    def _function(self, written: ModelText) -> Any:
        names = {**written.names, "parameter": parameter}
        return self._compile_text(written.text, self._file(""), names, written.name)

    def _entry_function(self, written: ModelText) -> Any:
        """The function that calls the model on its inputs."""
        variables = [p.variable for p in written.inputs]
        head = ", ".join(
            p.variable + ("" if self._by_sizes or p.name in self._statics else p.annotation) for p in written.inputs
        )
        model = next(n for n in ("model", "model_", "imported_model_") if n not in variables)
        name = written.name
        text = f"def {name}({model}, {head}):\n    return {model}({', '.join(variables)})\n"
        names = {k: v for k, v in written.names.items() if k in ("Any", "Tensor") or "Annotation" in type(v).__name__}
        return self._compile_text(text, self._file(" call"), names, name)

    def _check(self) -> None:
        """Infer the model once, so that what cannot be done is said now.

        Raises:
            Undecided: a value must be known at compile time, and is not.
            CompileError: it cannot be done, whatever a call tells.
        """
        try:
            while True:
                try:
                    self._inferred()
                    return
                except Undecided as error:
                    names = self._deciding(error)
                    if not names:
                        raise
                    self._make_static(names)
                    if any(p.name in self._statics for p in self.inputs):
                        return  # it depends on values of inputs, which a call has
                except CompileError as error:
                    if isinstance(error, ShapeError) and self._needs_sizes(error):
                        self._by_sizes = True
                        self._write(super().saved())
                    elif self._whatever_is_given(error):
                        raise
                    return  # a call tells more
        except BaseException as error:
            problem = for_user(error, debugging())
        raise problem

    def _open_sizes(self) -> set[str | None]:
        """What stands for the sizes that inputs leave open."""
        return {d for p in self.inputs for d in p.shape or () if not isinstance(d, int)}

    def _needs_sizes(self, error: ShapeError) -> bool:
        """Whether a model that is refused may do for some of the sizes that its inputs leave open: exporters write sizes of their
        example into models whose inputs have names there."""
        open_sizes = self._open_sizes()
        told = set(re.findall(r"\w+", error.message))
        return not self._by_sizes and bool(open_sizes) and (None in open_sizes or not told.isdisjoint(open_sizes))

    def _whatever_is_given(self, error: CompileError) -> bool:
        """Whether a model is refused for the same reason where the inputs that may decide sizes and axes have other values."""
        asked = {p.name for p in self.inputs if decides(p)} - self._statics
        if not asked:
            return True
        self._make_static(asked)
        try:
            return all(self._says(trial) == error.message for trial in (0, 1, 2))
        finally:
            self._statics -= asked
            self._write(super().saved())

    def _says(self, trial: int) -> str | None:
        """Why a model is refused for a trial; None where it is not."""
        try:
            self._inferred(trial)
        except CompileError as error:
            return error.message
        return None

    def _inferred(self, trial: int | None = None) -> Any:
        """The typed program for the annotated inputs; None where they are no tensors, or open.

        Args:
            trial: all elements of the inputs whose values are part of the program.
        """
        entry, values = Graph(self._name), []
        graph = parse(self.spec.function.__relay_model__)
        for index, port in enumerate(self.inputs):
            if trial is not None and port.name in self._statics:
                sizes = [d if isinstance(d, int) else 2 for d in port.shape or ()]
                values.append(Static(Fixed.of(np.full(sizes, trial, port.dtype))))
                continue
            type_ = annotated_type(graph.signature.annotations.get(index))
            if type_ is None:
                return None
            values.append(Dyn(entry.add_parameter(port.variable, type_)))
        function = self.spec.function
        engine = new_engine(parse, compress)
        return engine.entry(Static(function), values, {}, entry, Ambient(models=((function, self.spec),)))

    def _deciding(self, error: Undecided) -> set[str]:
        """The inputs and parameters that decide a value that must be known; empty where others do."""
        names = {p.variable: p.name for p in self.inputs}
        names |= {n.replace(".", "_"): n for n in self.spec.ref.names}
        if not isinstance(error.value, Dyn):
            return set()
        found, seen, stack = set(), set(), [error.value.node]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, Parameter) and node.name in names:
                found.add(names[node.name])
            elif isinstance(node, Apply):
                stack.extend(node.args)
        return found - self._statics

    def _make_static(self, names: set[str]) -> None:
        """Have values of inputs and parameters be part of the program."""
        self._statics |= names
        self._write(super().saved())

    # Calls.

    def __call__(self, *args, training: bool = False, **named):
        """Run the model.

        Args:
            *args: its inputs, in order.
            training: ignored: an ONNX model says itself what trains.
            **named: inputs by name.

        Returns:
            An array; a tuple of them if there are several outputs.
        """
        try:
            return self._result(self._of_inputs(self._ordered(args, named)))
        except BaseException as error:
            problem = for_user(error, debugging())
        raise problem

    def _of_inputs(self, given: list[Any], interpreted: bool = False) -> Any:
        """The result of compiled code, or of the interpreter, for inputs in order.

        Raises:
            ShapeError: sizes do not fit.
        """
        values = [self._argument(p, v) for p, v in zip(self.inputs, given, strict=True)]
        try:
            return self._run(values, interpreted)
        except ShapeError as error:
            if getattr(error, "at_compile_time", False):
                raise
            exact = self._exactly(values)
            if exact is None:
                raise
        return exact._of_inputs(given, interpreted)

    def _exactly(self, values: list[Any]) -> ImportedModel | None:
        """This model, compiled for the sizes and small integers of each call; None where no more can be known of these inputs.

        There an axis whose size is 1 is repeated. Where only a run tells that it is, that is refused.
        """
        more = self._small(values)
        if not more and (self._by_sizes or not self._open_sizes()):
            return None
        if self._exact is None:
            arrays = super().saved()
            self._exact = ImportedModel(self._proto, self._folder, self._name, arrays)
            self._exact._by_sizes = True
            self._exact._make_static(self._statics | more)
        elif not more <= self._exact._statics:
            self._exact._make_static(more)
        return self._exact

    def _ordered(self, args: tuple, named: Mapping[str, Any]) -> list[Any]:
        """The inputs in order.

        Raises:
            TypeError_: there are too many, too few, or some that it has not.
        """
        names = [p.name for p in self.inputs]
        values = dict(zip(names, args))
        twice, unknown = values.keys() & named.keys(), named.keys() - set(names)
        values |= named
        if twice or unknown or len(args) > len(names) or len(values) < len(names):
            why = f"; '{min(twice)}' is given twice" if twice else ""
            why = f"; it has no '{min(unknown)}'{nearest(min(unknown), names)}" if unknown else why
            raise TypeError_(
                f"{self._name} takes {len(names)} inputs ({', '.join(names)}), and {len(args) + len(named)} are given{why}"
            )
        return [values[n] for n in names]

    def _argument(self, port: Port, value: Any) -> Any:
        """An input as compiled code takes it.

        Raises:
            TypeError_: it is of another kind or dtype.
            ShapeError: it has another shape.
        """
        if isinstance(value, list):
            return [self._argument(Port(port.name, port.variable, "tensor", None, None), v) for v in value]
        if value is None or not isinstance(value, np.ndarray | np.generic | bool | int | float):
            return value
        array = plain_array(value)
        if port.dtype is not None and array.dtype.name != port.dtype:
            raise TypeError_(
                f"input '{port.name}' is of {port.dtype}, and this is of {array.dtype.name}; convert it: .astype(...)"
            )
        if array.dtype.kind in "OUS":
            raise TypeError_(f"input '{port.name}' is a tensor of strings")
        if port.shape is not None and not (
            len(port.shape) == array.ndim
            and all(not isinstance(want, int) or want == have for want, have in zip(port.shape, array.shape))
        ):
            raise ShapeError(f"input '{port.name}' has the shape {shown(port.shape)}, and this has {array.shape}")
        if port.name in self._statics:
            fixed = Fixed.of(array)
            if len(self._values) > 4 * ENTRIES:
                self._values.clear()
            return self._values.setdefault(fixed, fixed)
        if array.dtype.name in CARRIERS:
            return NARROW[array.dtype.name](carried(array))
        return array

    def _run(self, values: list[Any], interpreted: bool) -> Any:
        """The result of compiled code, or of the interpreter; inputs become part of the program where it must know them.

        Raises:
            CompileError: the model is not what ONNX allows.
        """
        while True:
            relay = self._relay()
            try:
                return relay.interpret(self, *values) if interpreted else relay(self, *values)
            except CompileError as error:
                if not getattr(error, "at_compile_time", False):
                    raise
                names = self._deciding(error) if isinstance(error, Undecided) else set()
                more = names or self._small(values)
                if not more:
                    if not isinstance(error, ShapeError) or not self._needs_sizes(error):
                        raise
                    self._by_sizes = True
                self._make_static(more)
                values = [
                    self._argument(p, v) if p.name in more else v for p, v in zip(self.inputs, values, strict=True)
                ]

    def _small(self, values: list[Any]) -> set[str]:
        """Inputs of few integers and booleans, which may decide shapes, that are not part of the program yet."""
        return {
            p.name
            for p, v in zip(self.inputs, values, strict=True)
            if isinstance(v, np.ndarray)
            and v.dtype.kind in "biu"
            and v.size <= MOST_DECIDING
            and v.ndim <= 1
            and p.name not in self._statics
        }

    def _relay(self) -> Relay:
        """The compiled function."""
        found = self._relays.get("native")
        if found is None:
            found = self._relays["native"] = Quiet(self._entry, static=self._static_variables())
        return found

    def _result(self, value: Any) -> Any:
        """The result of a call, as ONNX has it: arrays, lists of arrays, None."""
        narrow = getattr(type(value), "narrow", None)
        if narrow is not None:
            return np.asarray(value[0]).astype(narrow_dtype(narrow))
        if isinstance(value, tuple):
            return tuple(map(self._result, value))
        if isinstance(value, list):
            return list(map(self._result, value))
        return value if value is None else np.asarray(value)

    # Parameters.

    @property
    def params(self) -> Parameters:
        """Initialiser -> array, in the order of the model."""
        return ImportedParameters(self, self.spec.ref.names)

    @params.setter
    def params(self, values: Mapping) -> None:
        self.restore(values)

    @property
    def state(self) -> Parameters:
        """Those of the parameters that are not learned: integers."""
        return ImportedParameters(self, list(self.spec.state))

    def saved(self) -> dict[str, np.ndarray]:
        """The parameters by name."""
        return dict(self.params)

    def restore(self, values: Mapping) -> None:
        """Take over what `saved` gave.

        Raises:
            KeyError, ShapeError, TypeError_: it is of another model; nothing is written.
        """
        new = {n: np.array(a) for n, a in self.params.items()}
        take_over(new, values)
        self.assign(new)

    def assign(self, values: Mapping[str, np.ndarray]) -> None:
        """Write parameters. If one changes that is part of the program, the program is made anew."""
        fixed, changed = self.spec.written.fixed, False
        for name, array in zip(self.spec.ref.names, self.arrays, strict=True):
            if name in values:
                changed |= name in fixed and Fixed.of(values[name]) != fixed[name]
                array[...] = values[name]
        if changed:
            self._write(super().saved())

    def copy(self) -> ImportedModel:
        """A model with the same function and a copy of the parameters."""
        return ImportedModel(self._proto, self._folder, self._name, {n: copied(a) for n, a in self.saved().items()})

    def __reduce__(self) -> Any:
        return restored, (self._proto.SerializeToString(), self._folder, self._name, self.saved())

    def __deepcopy__(self, memo: dict) -> ImportedModel:
        memo[id(self)] = made = self.copy()
        return made

    # Looking inside.

    @property
    def text(self) -> str:
        """The model as a function in the language."""
        return self.spec.written.text

    def as_function(self, *examples: Any) -> tuple[Relay, tuple]:
        """The compiled function that a call of the model is, and its arguments."""
        given = examples or tuple(self._example_of(p) for p in self.inputs)
        return self._relay(), (self, *[self._argument(p, v) for p, v in zip(self.inputs, given, strict=True)])

    def _example_of(self, port: Port) -> np.ndarray:
        """An input of the type that a port has; open sizes are 1.

        Raises:
            TypeError_: the type is not said.
        """
        if port.kind != "tensor" or port.dtype is None or port.shape is None:
            raise TypeError_(f"the type of the input '{port.name}' is not said; give an example")
        from ...abstract.types import numpy_dtype

        return np.zeros([d if isinstance(d, int) else 1 for d in port.shape], numpy_dtype(port.dtype))

    def cache_info(self) -> CacheInfo:
        """Hits, misses (compilations) and programs held."""
        own = self._relay().cache_info()
        return own if self._exact is None else CacheInfo(*map(sum, zip(own, self._exact.cache_info(), strict=True)))

    def _of_function(self, method: str, args: tuple, kwargs: dict) -> Any:
        function, values = self.as_function(*args)
        return getattr(function, method)(*values, **kwargs)

    def ir(self, *args, **kwargs):
        """The graph after a stage of the compiler; see `Relay.ir`."""
        return self._of_function("ir", args, kwargs)

    def source(self, *args, **kwargs):
        """The optimised program as Python."""
        return self._of_function("source", args, kwargs)

    def tir(self, *args, **kwargs):
        """The program in TVM's tensor IR."""
        return self._of_function("tir", args, kwargs)

    def asm(self, *args, **kwargs):
        """The machine code."""
        return self._of_function("asm", args, kwargs)

    def explain(self, *args, **kwargs):
        """Passes with their times, kernels, the memory plan."""
        return self._of_function("explain", args, kwargs)

    def profile(self, *args, **kwargs):
        """The time of each node and kernel."""
        return self._of_function("profile", args, kwargs)

    def debug(self, *args, **kwargs):
        """A stepper through the nodes."""
        return self._of_function("debug", args, kwargs)

    def interpret(self, *args):
        """Run on the reference interpreter."""
        return self._result(self._of_inputs(self._ordered(args, {}), interpreted=True))

    def __repr__(self) -> str:
        return f"<ONNX model {self._name}: {len(self.inputs)} inputs, {len(self.outputs)} outputs, {self.num_params:,} parameters>"


class Quiet(Relay):
    """The compiled function of an imported model, which handles errors itself."""

    def __call__(self, *args, **kwargs):
        return self._call(args, kwargs)

    def _lookup(self, args: tuple, kwargs: dict, structural: bool) -> Any:
        try:
            return super()._lookup(args, kwargs, structural)
        except CompileError as error:
            error.at_compile_time = True  # type: ignore[attr-defined]  # programs raise ShapeErrors too
            raise


def graph_name(proto: Any) -> str:
    """The name of a model's graph; empty if it is no text."""
    return proto.graph.name if isinstance(proto.graph.name, str) else ""


def restored(data: bytes, folder: Path | None, name: str, arrays: Mapping[str, np.ndarray]) -> ImportedModel:
    """A model that was pickled."""
    return ImportedModel(load(data)[0], folder, name, {n: copied(a) for n, a in arrays.items()})


def from_onnx(source: Any) -> ImportedModel:
    """Import an ONNX model.

    Args:
        source: a path, an `onnx.ModelProto`, or its bytes. External data is looked up in the folder of the path.

    Returns:
        A function of the model's inputs, in order, with `.params`.

    Raises:
        CompileError: the file is no model, or something in it cannot be imported; the operator and the node are named.
        ImportError: the package `onnx` is not installed.
        OSError: the file cannot be read.

    Example:
        >>> from onnx import parser
        >>> f = relay.from_onnx(parser.parse_model('''
        ...     <ir_version: 8, opset_import: ["" : 18]>
        ...     double_relu (float[n] x) => (float[n] y) { s = Add(x, x)  y = Relu(s) }
        ... '''))
        >>> f(np.array([-1, 2], np.float32))
        array([0., 4.], dtype=float32)
    """
    try:
        proto, folder, name = load(source)
        try:
            return ImportedModel(proto, folder, graph_name(proto) or name)
        except UnicodeDecodeError as error:  # protobuf decodes a text when it is read first
            raise CompileError(f"{name}: the model is damaged, a text in it is not UTF-8: {error}") from None
    except BaseException as error:
        problem = for_user(error, debugging())
    raise problem


__all__ = ["ImportedModel", "from_onnx"]
