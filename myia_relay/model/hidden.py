"""Hidden parameters: which arrays a model function needs, found by inference and named by where they are used.

A parameter belongs to the static call path from the model's root: the chain of call sites in the source. `Collector`
records every request while the model function is inferred once; the resulting `ModelSpec` answers the same requests in
every later compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from ..abstract.annotations import annotated_type
from ..abstract.families import annotation_type
from ..abstract.types import Array, Ref
from ..infer.engine.dependencies import Dependency
from ..infer.engine.drift import require_numbered
from ..infer.engine.engine import Ambient, Engine
from ..infer.engine.frames import KEPT, Frame, Turn, parameter_key
from ..infer.entry import new_engine
from ..infer.transforms.model_gradients import model_key
from ..infer.values.values import Dyn, Static, Val
from ..ir.build import Var
from ..ir.node import Graph
from ..ir.syntax import call_place
from ..opt.analysis.flops import of_nodes
from ..pipeline import compress
from ..prims.api.random_api import RANDOM
from ..prims.ops.effects import ref_read, ref_write
from ..prims.rules.broadcast import as_array
from ..prims.rules.relations import show_shape
from ..utils.errors import TypeError_, nearest
from .init import initialiser

KEY = "key"
"""What the key of a model is called."""


@dataclass(frozen=True)
class Weight:
    """One parameter of a layer: its shape, and how it is drawn.

    Attributes:
        shape: its sizes.
        init: its own initialiser (see `model.init`), which `create_model(init=...)` does not change; None for the model's.
        dtype: its dtype; None for that of the layer's input.
        state: whether it is state, which no gradient changes: running statistics.
    """

    shape: tuple[Any, ...]
    init: Any = None
    dtype: str | None = None
    state: bool = False

    def of(self, dtype: str) -> Weight:
        """The part with a dtype."""
        return replace(self, dtype=dtype)

    @property
    def type(self) -> Array:
        """The type of its array."""
        assert self.dtype is not None
        return Array(self.dtype, self.shape)


@dataclass(eq=False)
class ModelSpec:
    """The parameters of a model function.

    Attributes:
        function: the `RelayModel`.
        names: parameter names in call order: "conv2d_0.weight", ...
        types: their types.
        inits: the initialisers that their layers say; None where they say nothing.
        state: names of its state -> its type and initialiser.
        draws: call path of what draws from the model's key -> its number.
        rows: of each layer its name, the shape of its result, its parameters and its operations, for the table of `Model.summary`.
        flops: the operations of the whole.
        by_path: call path -> {part ("weight", "bias"): name}.
        recursive: call paths of recursions over trees.
        dependencies: the free names that the search read.
        bound: whether it belongs to one model, which is its function too: a loss calls that, not the function.
        unrolled: functions whose recursion has a level for each known number, with layers of its own.
        shared: what runs in loops, and has one set of parameters for all iterations: a block, or "" -> its layers.
    """

    function: Any
    names: list[str] = field(default_factory=list)
    types: list[Array] = field(default_factory=list)
    inits: list[Any] = field(default_factory=list)
    state: dict[str, tuple[Array, Any]] = field(default_factory=dict)
    draws: dict[Hashable, int] = field(default_factory=dict)
    rows: list[tuple[str, tuple, list[str], Any]] = field(default_factory=list)
    flops: Any = 0
    by_path: dict[Hashable, dict[str, str]] = field(default_factory=dict)
    recursive: set[tuple] = field(default_factory=set)
    dependencies: list[Dependency] = field(default_factory=list)
    bound: ClassVar[bool] = False
    unrolled: frozenset[Graph] = frozenset()
    shared: list[tuple[str, list[str]]] = field(default_factory=list)

    def __reduce__(self) -> Any:
        return specification_again, (self.function, [(n, str(t)) for n, t in zip(self.names, self.types)])

    def __deepcopy__(self, memo: Any) -> ModelSpec:
        return self

    @property
    def ref(self) -> Ref:
        """The type of a model with these parameters, then this state, then its key if anything draws from it."""
        key = {KEY: Array("uint64", ())} if self.draws else {}
        types = (*self.types, *[t for t, _ in self.state.values()], *key.values())
        return Ref(self, (*self.names, *self.state, *key), types)

    def draw(self, path: Hashable) -> int:
        """The number of what draws from the model's key at a place.

        Raises:
            TypeError_: it was not there when the model was made.
        """
        if path not in self.draws:
            raise TypeError_(f"this dropout was not part of {self} when the model was made; make the model anew")
        return self.draws[path]

    def start_over(self) -> None:
        """Inference begins anew, in another way."""

    def note_block(self, path: tuple, name: str, iteration: tuple) -> None:
        """Write down that a function is called in loops, whose iterations share its layers."""

    def type_of(self, name: str) -> Array:
        """The type of a parameter, or of state."""
        return self.state[name][0] if name in self.state else self.types[self.names.index(name)]

    def request(self, path: Hashable, kind: str, parts: dict[str, Weight]) -> dict[str, str]:
        """The names of a layer's parameters.

        Raises:
            TypeError_: the layer is new, or has other shapes than when the model was made.
        """
        found = self.by_path.get(path)
        if found is None or set(found) != set(parts):
            raise TypeError_(
                f"this {kind} was not part of {self} when the model was made, which takes the branches that its annotations and "
                "defaults decide; call the layer in one place for all branches, or make the model anew if the function has changed"
            )
        for name, part in parts.items():
            have = self.type_of(found[name])
            if have != part.type:
                raise TypeError_(
                    f"{found[name]} has shape {have.shape} in the model, but {part.shape} is needed here; "
                    "the input of a model must have the shape it was made for"
                )
        return found

    def __repr__(self) -> str:
        return f"model {getattr(self.function, '__name__', '')}"


@dataclass(eq=False)
class Collector(ModelSpec):
    """A specification that grows: new paths get new names, counted by layer kind in call order.

    Attributes:
        counts: how many layers of a kind there are.
        calls: call path -> iterations of the loops around -> the shape of the result, and the operations.
        blocks: call paths of functions that are called in loops, whose iterations share their layers -> name, iterations.
    """

    counts: dict[str, int] = field(default_factory=dict)
    calls: dict[Hashable, dict[tuple, tuple]] = field(default_factory=dict)
    blocks: dict[tuple, tuple[str, set[tuple]]] = field(default_factory=dict)

    def start_over(self) -> None:
        for found in (self.names, self.types, self.inits, self.state, self.draws, self.by_path, self.recursive):
            found.clear()
        self.counts.clear()
        self.calls.clear()
        self.blocks.clear()

    def note_block(self, path: tuple, name: str, iteration: tuple) -> None:
        self.blocks.setdefault(path, (name, set()))[1].add(iteration)

    def sharing(self) -> list[tuple[str, list[str]]]:
        """See `ModelSpec.shared`."""
        found: dict[tuple, tuple[str, list[str]]] = {}
        for path, parts in self.by_path.items():
            iterations = set(self.calls.get(path, ()))
            if not isinstance(path, tuple) or not parts or not _several(path, iterations):
                continue
            layer = next(iter(parts.values())).split(".")[0]
            # Of blocks in blocks the outermost one that is in the loop.
            around = (path[:n] for n in range(1, len(path)) if path[:n] in self.blocks)
            block = next((p for p in around if _several(p, self.blocks[p][1])), ())
            found.setdefault(block, (self.blocks[block][0] if block else "", []))[1].append(layer)
        return list(found.values())

    def note(self, path: Hashable, iteration: tuple, shape: tuple, count: Any) -> None:
        """Write down a call of a layer: the shape of its result and its operations."""
        self.calls.setdefault(path, {})[iteration] = shape, count

    def table(self) -> list[tuple[str, tuple, list[str], Any]]:
        """The rows of `ModelSpec.rows`, in the order of the layers."""
        rows = []
        for path, found in self.by_path.items():
            calls = self.calls.get(path, {})
            # Where a loop was unrolled after all, the attempts that kept it do not count.
            done = [c for i, c in calls.items() if is_numbered(i)] or list(calls.values())
            if done and found:
                parts = [name for name in found.values() if name not in self.state]
                total: Any = 0
                for _, count in done:
                    total = total + count
                rows.append((next(iter(found.values())).split(".")[0], done[-1][0], parts, total))
        return rows

    def draw(self, path):
        return self.draws.setdefault(path, len(self.draws))

    def request(self, path, kind, parts):
        if path in self.by_path:
            found = self.by_path[path]
            for name, part in parts.items():
                have = self.type_of(found[name]) if name in found else None
                if have != part.type:
                    raise TypeError_(
                        f"this {kind} runs several times, and its iterations share one {name}, which has shape "
                        f"{have and have.shape} in one iteration and {part.shape} in another; give every iteration "
                        "its own with unshared=True"
                    )
            return found
        count = self.counts[kind] = self.counts.get(kind, -1) + 1
        found = {}
        for name, part in parts.items():
            if not all(isinstance(d, int) for d in part.shape):
                raise TypeError_(
                    f"{kind}: the shape {show_shape(part.shape)} of its {name} depends on a symbolic dimension; annotate the sizes"
                )
            full = found[name] = f"{kind}_{count}.{name}" if name else f"{kind}_{count}"
            if part.state:
                self.state[full] = part.type, part.init
                continue
            self.names.append(full)
            self.types.append(part.type)
            self.inits.append(part.init)
        self.by_path[path] = found
        return found


def is_numbered(iteration: tuple) -> bool:
    """Whether all loops around are unrolled."""
    return all(turn is not None and turn >= 0 for turn in iteration)


def _several(path: tuple, iterations: set[tuple]) -> bool:
    """Whether several iterations of loops of known length share what is called by a path."""
    numbered = {i for i in iterations if is_numbered(i)} or iterations
    own = max((len(step.iteration) for step in path if isinstance(step, Turn)), default=0)
    rest = {i[own:] for i in numbered}
    return all(None not in i for i in rest) and (len(rest) > 1 or any(KEPT in i for i in rest))


def parameters(
    engine: Engine,
    frame: Frame,
    site: Any,
    kind: str,
    parts: dict[str, Weight],
    *,
    init: Any = None,
    unshared: bool = False,
    what: str = "",
    instead: str = "",
) -> dict[str, Dyn]:
    """The parameters of a layer that is called from `site`.

    Args:
        engine, frame, site: the call.
        kind: what its names begin with.
        parts: what it needs.
        init: initialisers that the call says: one for all parts, or a dict by part.
        unshared: whether each iteration of the loops around has its own.
        what: who asks, for messages; `relay.kind` by default.
        instead: what to write outside of models.

    Raises:
        TypeError_: the layer is called outside of a model, or `init` names no part.
        Unnumbered: `unshared=True` stands in a loop of unknown length.
    """
    what = what or f"relay.{kind}"
    scope = frame.context.scope
    if scope is None:
        raise TypeError_(
            f"{what} has hidden parameters and must be called in a function decorated with @relay_model; "
            f"elsewhere {instead or f'give it its weight: relay.{kind}(x, weight, bias)'}"
        )
    iteration = frame.context.iteration
    if unshared:
        require_numbered(iteration, what)
    given = init if isinstance(init, dict) else dict.fromkeys(parts, init)
    for name in given:
        if name not in parts:
            raise TypeError_(f"{what}: init has '{name}', which is none of {', '.join(parts)}{nearest(name, parts)}")
    for name, chosen in given.items():
        if chosen is not None:
            parts = {**parts, name: replace(parts[name], init=initialiser(chosen, f"{what}: init"))}
    site = call_place(site)
    found = scope.request((*frame.context.path, Turn(site, iteration) if unshared else site), kind, parts)
    return {
        part: Dyn(frame.implicit(parameter_key(scope, name), parts[part].type, name.replace(".", "_")))
        for part, name in found.items()
    }


def model_of(frame: Frame) -> Dyn:
    """The model that layers called from a frame belong to, whose state they write."""
    scope = frame.context.scope
    return Dyn(frame.implicit(model_key(scope), scope.ref, "model"))


def write_state(frame: Frame, site: Any, part: str, value: Var) -> None:
    """Emit the update of a part of the state of the layer that is called from `site`; `parameters` knows it."""
    scope, model = frame.context.scope, model_of(frame)
    name = scope.by_path[(*frame.context.path, call_place(site))][part]
    attrs = {"index": model.type.names.index(name), "state": True}
    frame.builder.emit(ref_write, (model.node, value.node), attrs)


def move_key(frame: Frame, model: Dyn) -> None:
    """Emit the move of a model's key to the next one, as each update does; of a model that draws nothing nothing."""
    if model.type.spec.draws:
        index = {"index": model.type.names.index(KEY)}
        key = frame.builder.var(frame.builder.emit(ref_read, (model.node,), index))
        new = as_array(RANDOM["fold_in"](frame.builder, key, 0))
        frame.builder.emit(ref_write, (model.node, new.node), index)


def read_state(frame: Frame, site: Any, part: str) -> Dyn:
    """The state of the layer that is called from `site` as it is now, which an earlier call may have written."""
    scope, model = frame.context.scope, model_of(frame)
    name = scope.by_path[(*frame.context.path, call_place(site))][part]
    return Dyn(frame.builder.emit(ref_read, (model.node,), {"index": model.type.names.index(name)}))


def discover(model: Any, parse: Callable) -> ModelSpec:
    """Infer a model function for its annotated arguments and record its parameters.

    Raises:
        TypeError_: an argument's shape is not annotated.
    """
    graph = parse(model.__relay_model__)
    collector = Collector(model)
    types = []
    for index, name in enumerate(graph.signature.names):
        annotation = graph.signature.annotations.get(index)
        type_ = annotated_type(annotation) or annotation_type(annotation)
        if type_ is None:
            if index in graph.signature.defaults:
                continue
            raise TypeError_(
                f"create_model({graph.name}): the shapes of its parameters follow from the type of '{name}'; annotate it, for "
                f"example {name}: Tensor[Float, (1, 28, 28)], or with the classes of a tree whose fields are annotated",
                graph.params[index].origin,
            )
        types.append((name, type_))

    entry = Graph(graph.name)
    values: list[Val] = [Dyn(entry.add_parameter(name, t)) for name, t in types]
    engine = new_engine(parse, compress)
    program = engine.entry(Static(model), values, {}, entry, Ambient(models=((model, collector),)))
    spec = ModelSpec(model, collector.names, collector.types, collector.inits, collector.state, collector.draws)
    spec.by_path, spec.rows, spec.flops = collector.by_path, collector.table(), of_nodes(entry.nodes)
    spec.unrolled, spec.shared = frozenset(g for g in engine.unrolled if g is not None), collector.sharing()
    spec.dependencies, spec.recursive = program.dependencies, collector.recursive
    return spec


def specification_again(function: Any, parameters: list[tuple[str, str]]) -> ModelSpec:
    """The specification of a model that was pickled, found anew where it is unpickled.

    Raises:
        TypeError_: its function has other parameters here.
    """
    spec = function.specification()
    found = [(name, str(type_)) for name, type_ in zip(spec.names, spec.types)]
    if found != parameters:
        raise TypeError_(f"{function!r} has other parameters here than where the model was pickled")
    return spec
