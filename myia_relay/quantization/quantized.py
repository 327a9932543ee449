"""`relay.quantize`: a model or function in integers, called as it is."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..abstract.dims import Dim
from ..abstract.types import Array
from ..api import Relay
from ..infer.engine.frames import explode
from ..infer.language.registry import of_class
from ..infer.values.treedef import TreeDef
from ..infer.values.values import Val
from ..ir.node import Graph
from ..ir.rewrite import inline
from ..pipeline import finish
from ..utils.debugging import debugging
from ..utils.errors import TypeError_
from ..utils.raising import for_user
from .annotation import Plan, Scales, Simulated, annotate, simulate
from .calibration import calibrate
from .folding import fold_scales
from .graphs import Subject, compiled, signature, subject, with_arrays
from .realisation import realise
from .report import QuantizationReport, compare
from .scales import Grid, scheme
from .training import SimulatedModel, require_calibrated

REPORTED = 16
"""Entries of the calibration data that are pickled, for reports."""


def inputs_of(example: Any) -> tuple:
    """An entry of calibration data as the arguments of a call: a tuple of them, an `Example` of a data set, or one input."""
    if type(example) is tuple:
        return example
    return (getattr(example, "x", example),)


class QuantizedModel:
    """A quantised model: called as the original is, it computes in integers.

    Attributes:
        scheme: how many bits there are.
        method: how it was calibrated.
    """

    def __init__(
        self, target: Any, examples: list[tuple], scheme_name: str, method: str, rules: Any, show: bool, options: dict
    ):
        self._target, self._rules, self.method = target, dict(rules or {}), method
        self.scheme, self._examples = scheme(scheme_name), examples
        self._programs: dict[Any, Any] = {}
        self._of_arrays: dict[tuple, Any] = {}  # dtypes and shapes of arguments that are plain arrays -> their program
        self._of_types: dict[tuple, tuple[Graph, TreeDef]] = {}  # types of inputs in compiled code -> their graph
        self._arrays: tuple | None = None  # in place of the model's own
        key, _ = signature(target, examples[0])
        self._first, self._plan = self._planned(examples[0])
        data = []
        for example in examples:
            own, leaves = signature(target, example)
            if own != key:
                raise TypeError_(
                    "quantize: the entries of calibration_data have different types or shapes; give them one"
                )
            data.append(leaves)
        self._data = data
        self._scales = calibrate(self._plan, self._first.arrays, data, self.scheme, method, show, **options)

    def __getstate__(self) -> dict[str, Any]:
        """What calibration has found, in the order of the graph; graphs and programs are made again from the target."""
        plan, kept = self._plan, ("_target", "_rules", "method", "scheme")
        return {
            **{name: vars(self)[name] for name in kept},
            "_examples": self._examples[:1],
            "_data": self._data[:REPORTED],
            "_arrays": self._first.arrays,
            "values": [self._scales.values[n] for n in plan.rounded],
            "weights": [self._scales.weights[n] for n in plan.contractions],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        values, weights = state.pop("values"), state.pop("weights")
        vars(self).update(state, _programs={}, _of_arrays={}, _of_types={})
        self._first, self._plan = self._planned(self._examples[0])
        plan = self._plan
        if len(plan.rounded) != len(values) or len(plan.contractions) != len(weights):
            raise TypeError_(
                "this quantised model was made of another program than its function is here; quantise it anew"
            )
        self._scales = Scales(dict(zip(plan.rounded, values)))
        self._scales.weights = dict(zip(plan.contractions, weights))

    def _planned(self, args: tuple, types: Sequence[Any] | None = None) -> tuple[Subject, Plan]:
        """The graph for arguments like these, or inputs of these types, and what is rounded in it."""
        found = subject(self._target, args, types)
        if self._arrays is not None:
            found = replace(found, arrays=self._arrays)
        return found, annotate(fold_scales(found.graph, found.count), found.count, self._rules)

    def _scales_of(self, plan: Plan, arrays: Any) -> Scales:
        """The scales of a graph for other shapes: its values are rounded in the same order.

        Raises:
            TypeError_: it has other values.
        """
        if plan is self._plan:
            return self._scales
        if len(plan.rounded) != len(self._plan.rounded) or len(plan.contractions) != len(self._plan.contractions):
            raise TypeError_(
                "a quantised model was called with arguments for which it is another program than in calibration"
            )
        grids: list[Grid] = [self._scales.values[n] for n in self._plan.rounded]
        scales = Scales(dict(zip(plan.rounded, grids)))
        scales.weights = {n: self._scales.weights[o] for n, o in zip(plan.contractions, self._plan.contractions)}
        return scales

    def _simulated(self, args: tuple, exact: bool = True) -> tuple[Subject, Plan, Simulated]:
        found, plan = (
            (self._first, self._plan)
            if signature(self._target, args)[0] == signature(self._target, self._examples[0])[0]
            else self._planned(args)
        )
        return found, plan, simulate(plan, self._scales_of(plan, found.arrays), exact)

    def graph(self, *args: Any, stage: str = "realised") -> Graph:
        """The graph for arguments like these.

        Args:
            args: as of a call; without any, an entry of the calibration data.
            stage: "float" (scales folded), "simulated", or "realised".

        Raises:
            ValueError: there is no such stage.
        """
        found, plan, simulated = self._simulated(args or self._examples[0])
        if stage == "realised":
            return realise(simulated.graph, found.count, found.arrays)
        if stage not in ("float", "simulated"):
            raise ValueError(f'stage={stage!r}: choose "float", "simulated" or "realised"')
        return with_arrays(simulated.graph if stage == "simulated" else plan.graph, found.count, found.arrays)

    def graph_of_types(self, types: tuple) -> tuple[Graph, TreeDef]:
        """The graph for inputs of these types, where compiled code calls the model, and the treedef of its result.

        Raises:
            TypeError_: it is another program for these types.
        """
        found = self._of_types.get(types)
        if found is None:
            own, plan = self._planned(self._examples[0], types)
            simulated = simulate(plan, self._scales_of(plan, own.arrays), True)
            found = self._of_types[types] = realise(simulated.graph, own.count, own.arrays), own.result
        return found

    def as_function(self, *examples: Any) -> tuple[Relay, tuple]:
        """The compiled function that a call is, and its arguments for these inputs, or those of calibration."""

        def quantised(*inputs):
            return self(*inputs)

        quantised.__name__ = quantised.__qualname__ = getattr(self._function(), "__name__", "quantised")
        return Relay(quantised), tuple(getattr(a, "x", a) for a in examples or self._examples[0])

    def _function(self) -> Any:
        """The function that was quantised, of a model its function."""
        return getattr(getattr(self._target, "spec", None), "function", self._target)

    def parameter_names(self) -> list[str]:
        """What the inputs are called."""
        function = self._function()
        try:
            found = inspect.signature(inspect.unwrap(getattr(function, "__relay_model__", function)))
        except (TypeError, ValueError):
            return []
        return list(found.parameters)

    def save(self, path: Any, *examples: Any) -> None:
        """Write it as a library for `relay.load_compiled`.

        Args:
            path: the file.
            examples: an example of each input; by default those of calibration.
        """
        function, arguments = self.as_function(*examples)
        function.save(path, *arguments)

    def _call(self, args: tuple, stage: str, executor: str) -> Any:
        plain = all(type(a) is np.ndarray for a in args)
        shapes = (stage, executor, *((a.dtype, a.shape) for a in args)) if plain else None
        if shapes is not None and (known := self._of_arrays.get(shapes)) is not None:
            return finish(known, list(args))  # without the signature, which takes longer than a small network
        args = tuple(getattr(a, "x", a) for a in args)
        key, leaves = signature(self._target, args)
        program = self._programs.get((key, stage, executor))
        if program is None:
            result = self._first.result if stage == "realised" and not self._programs else None
            graph = self.graph(*args, stage=stage)
            result = result or subject(self._target, args).result
            program = self._programs[key, stage, executor] = compiled(graph, result, executor, {})
        if shapes is not None and len(leaves) == len(args) and all(x is a for x, a in zip(leaves, args)):
            self._of_arrays[shapes] = program
        return finish(program, leaves)

    def __call__(self, *args: Any) -> Any:
        """Run it on inputs as the original takes them."""
        try:
            return self._call(args, "realised", "native")
        except BaseException as error:
            problem = for_user(error, debugging())
        raise problem

    @property
    def result(self) -> TreeDef:
        """The treedef of the result."""
        return self._first.result

    def simulated(self, *args: Any) -> Any:
        """The result of the simulated graph, which rounds floats: that of a call, to the last integer."""
        try:
            return self._call(args, "simulated", "native")
        except BaseException as error:
            problem = for_user(error, debugging())
        raise problem

    def interpret(self, *args: Any) -> Any:
        """Run it on the reference interpreter."""
        return self._call(args, "realised", "interpreter")

    def trainable(self) -> SimulatedModel:
        """The simulated model with the original's parameters, for `relay.fit`; `.quantized()` realises what was trained."""
        found = self._first
        model = getattr(self._target, "state", None)
        state = frozenset(model) if model is not None else frozenset()
        graph = simulate(self._plan, self._scales, exact=False).graph
        return SimulatedModel(self, graph, found.count, found.names, found.arrays, state)

    def with_arrays(self, arrays: Sequence[np.ndarray]) -> QuantizedModel:
        """The same with other values of the arrays, in the order of the model's, and the same scales."""
        other = object.__new__(QuantizedModel)
        vars(other).update(vars(self))
        other._programs, other._of_arrays, other._of_types, other._arrays = {}, {}, {}, tuple(arrays)
        other._first = replace(self._first, arrays=other._arrays)
        return other

    def report(self, count: int = REPORTED) -> QuantizationReport:
        """The error of each layer, on the first entries of the calibration data; prints as a table, draws itself in notebooks.

        Args:
            count: of so many entries.
        """
        simulated = simulate(self._plan, self._scales)
        return compare(
            self._plan, simulated, self._scales, self._first, self._data[:count], self.scheme.name, self.method
        )

    def __repr__(self) -> str:
        name = getattr(self._function(), "__name__", "function")
        return (
            f"<quantised {name}: {self.scheme.name}, {self.method}, {len(self._plan.contractions)} layers in integers>"
        )


@of_class(QuantizedModel)
async def _in_compiled_code(
    engine: Any, frame: Any, model: QuantizedModel, args: Any, kwargs: Any, origin: Any, site: Any
) -> Val:
    """A call in compiled code: the integer graph, in place of the call.

    Raises:
        TypeError_: the inputs have other types than in calibration, or a keyword.
    """
    if kwargs:
        raise TypeError_("a quantised model takes its inputs by position", origin)
    graph, result = model.graph(), model.result
    types = tuple(getattr(getattr(a, "node", None), "type", None) for a in args)
    if types != tuple(p.type for p in graph.params) and len(types) == len(graph.params):
        if all(is_alike(t, p.type) for t, p in zip(types, graph.params)):
            graph, result = model.graph_of_types(types)
    require_calibrated("a quantised", graph, len(graph.params), args, origin)
    return explode(frame, inline(frame.at(origin), graph, [a.node for a in args]), result)


def is_alike(given: Any, wanted: Any) -> bool:
    """Whether an input has the dtype and the sizes of calibration, but for sizes that the model leaves open."""
    if not isinstance(given, Array) or not isinstance(wanted, Array):
        return given == wanted
    if given.dtype != wanted.dtype or len(given.shape) != len(wanted.shape):
        return False
    return all(isinstance(w, Dim) or g == w for g, w in zip(given.shape, wanted.shape))


def quantize(
    model_or_fn: Any,
    calibration_data: Iterable[Any],
    scheme: str = "int8/int32",
    calibrate: str = "kl",
    *,
    rules: Mapping[str, Any] | None = None,
    show_progress: bool = True,
    **options: Any,
) -> QuantizedModel:
    """A model or function in integers.

    Args:
        model_or_fn: a model, a decorated or plain function, an imported one. Weights are its parameters, or arrays that it reads.
        calibration_data: inputs, each an array, or a tuple as it is called with; a data set.
        scheme: bits of data and of sums: "int8/int32", "int8/int16" or "int16/int32".
        calibrate: how ranges are found: "kl", "mse", "percentile" or "global_scale".
        rules: operator -> an annotation (`relay.quantization`), in place of the registered one.
        show_progress: whether a bar shows how far calibration is.
        options: `percentile=99.99` of that method; `global_scale=` the one range of all data, by default the greatest there is.

    Returns:
        A function that is called like the model, with `.simulated(x)`, `.report()` and `.graph()`.

    Raises:
        TypeError_: it is neither a model nor a function, or inputs have different shapes.
        ValueError_: there is no such scheme or method, or no data.
        CompileError: it cannot be compiled.

    Example:
        >>> @relay
        ... def layer(x):
        ...     return np.maximum(x @ np.array([[1.0, -2.0], [0.5, 0.25]], np.float32), 0)
        >>> data = [np.array([[1.0, 2.0]], np.float32), np.array([[-1.0, 1.0]], np.float32)]
        >>> quantised = relay.quantize(layer, data, show_progress=False)
        >>> bool(np.all(np.abs(quantised(data[0]) - layer(data[0])) < 0.05))
        True
    """
    try:
        examples = [inputs_of(example) for example in calibration_data]
        return QuantizedModel(model_or_fn, _given(examples), scheme, calibrate, rules, show_progress, options)
    except BaseException as error:
        problem = for_user(error, debugging())
    raise problem


def _given(examples: list[tuple]) -> list[tuple]:
    """The examples.

    Raises:
        ValueError_: there are none.
    """
    from ..utils.errors import ValueError_

    if not examples:
        raise ValueError_("quantize: calibration_data is empty")
    return examples


__all__ = ["QuantizedModel", "inputs_of", "quantize"]
