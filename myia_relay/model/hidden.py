"""Hidden parameters: which arrays a model function needs, found by inference and named by where they are used.

A parameter belongs to the static call path from the model's root: the chain of call sites in the source. `Collector`
records every request while the model function is inferred once; the resulting `ModelSpec` answers the same requests in
every later compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from ..abstract.annotations import annotated_type
from ..abstract.types import Array, Ref
from ..infer.engine.dependencies import Dependency
from ..infer.engine.engine import Ambient, Engine
from ..infer.engine.frames import Frame
from ..infer.entry import new_engine
from ..infer.transforms.model_gradients import parameter_key
from ..infer.values.values import Dyn, Static, Val
from ..ir.node import Graph
from ..pipeline import compress
from ..utils.errors import TypeError_


@dataclass(eq=False)
class ModelSpec:
    """The parameters of a model function.

    Attributes:
        function: the `RelayModel`.
        names: parameter names in call order: "conv2d_0.weight", ...
        types: their types.
        by_path: call path -> {part ("weight", "bias"): index}.
        dependencies: the free names that the search read.
    """

    function: Any
    names: list[str] = field(default_factory=list)
    types: list[Array] = field(default_factory=list)
    by_path: dict[Hashable, dict[str, int]] = field(default_factory=dict)
    dependencies: list[Dependency] = field(default_factory=list)

    @property
    def ref(self) -> Ref:
        """The type of a model with these parameters."""
        return Ref(self, tuple(self.names), tuple(self.types))

    def request(self, path: Hashable, kind: str, parts: dict[str, Array]) -> dict[str, int]:
        """The indices of a layer's parameters.

        Raises:
            TypeError_: the layer is new, or has other shapes than when the model was made.
        """
        found = self.by_path.get(path)
        if found is None or set(found) != set(parts):
            raise TypeError_(f"this {kind} was not part of {self} when the model was made; make the model anew")
        for part, type_ in parts.items():
            have = self.types[found[part]]
            if have != type_:
                raise TypeError_(
                    f"{self.names[found[part]]} has shape {have.shape} in the model, but {type_.shape} is needed here; "
                    "the input of a model must have the shape it was made for"
                )
        return found

    def __repr__(self) -> str:
        return f"model {getattr(self.function, '__name__', '')}"


class Collector(ModelSpec):
    """A specification that grows: new paths get new names, counted by layer kind in call order."""

    def request(self, path, kind, parts):
        if path in self.by_path:
            found = self.by_path[path]
            for part, type_ in parts.items():
                have = self.types[found[part]] if part in found else None
                if have != type_:
                    raise TypeError_(
                        f"this {kind} runs several times, and its iterations share one {part}, which has shape "
                        f"{have and have.shape} in one iteration and {type_.shape} in another; give every iteration "
                        "its own with unshared=True"
                    )
            return found
        count = sum(1 for n in {name.split(".")[0] for name in self.names} if n.rsplit("_", 1)[0] == kind)
        found = {}
        for part, type_ in parts.items():
            if not all(isinstance(d, int) for d in type_.shape):
                raise TypeError_(
                    f"{kind}: the shape {type_.shape} of its {part} depends on a symbolic dimension; annotate the sizes"
                )
            found[part] = len(self.names)
            self.names.append(f"{kind}_{count}.{part}")
            self.types.append(type_)
        self.by_path[path] = found
        return found


def parameters(engine: Engine, frame: Frame, site: Any, kind: str, parts: dict[str, Array]) -> dict[str, Dyn]:
    """The parameters of a layer that is called from `site`.

    Raises:
        TypeError_: the layer is called outside of a model.
    """
    scope = frame.context.scope
    if scope is None:
        raise TypeError_(
            f"relay.{kind} has hidden parameters and must be called in a function decorated with @relay_model; "
            f"elsewhere give it its weight: relay.{kind}(x, weight, bias)"
        )
    found = scope.request((*frame.context.path, site), kind, parts)
    return {
        part: Dyn(
            frame.implicit(parameter_key(scope, scope.names[index]), parts[part], scope.names[index].replace(".", "_"))
        )
        for part, index in found.items()
    }


def discover(model: Any, parse: Callable) -> ModelSpec:
    """Infer a model function for its annotated arguments and write down its parameters.

    Raises:
        TypeError_: an argument's shape is not annotated.
    """
    graph = parse(model.__relay_model__)
    collector = Collector(model)
    types = []
    for index, name in enumerate(graph.signature.names):
        annotation = graph.signature.annotations.get(index)
        type_ = annotated_type(annotation) if annotation is not None else None
        if type_ is None:
            if index in graph.signature.defaults:
                continue
            raise TypeError_(
                f"create_model({graph.name}): the shapes of its parameters follow from the shape of '{name}'; annotate it, "
                f"for example {name}: Tensor[Float, (1, 28, 28)]",
                graph.params[index].origin,
            )
        types.append((name, type_))

    entry = Graph(graph.name)
    values: list[Val] = [Dyn(entry.add_parameter(name, t)) for name, t in types]
    program = new_engine(parse, compress).entry(Static(model), values, {}, entry, Ambient(models=((model, collector),)))
    spec = ModelSpec(model, collector.names, collector.types, collector.by_path)
    spec.dependencies = program.dependencies
    return spec
