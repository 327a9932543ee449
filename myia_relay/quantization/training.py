"""Quantisation-aware training: the simulated graph as a model with the original's parameters.

It rounds as the integers do, in float32, and its derivative is straight through the roundings. So `relay.fit` moves the weights to
where rounding costs least; scales stay as they were calibrated. Then `.quantized()` realises them.
"""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..abstract.types import Array
from ..infer.engine.frames import parameter_key
from ..infer.language.registry import special
from ..infer.values.values import Dyn, Val
from ..ir.node import Graph
from ..ir.rewrite import inline
from ..model.hidden import ModelSpec
from ..model.model import Model, RelayModel
from ..utils.errors import TypeError_

_numbers = itertools.count()


def simulated_graph(*inputs: Any) -> Any:
    """The simulated graph of the model in whose text this stands.

    Raises:
        TypeError_: outside of such a model.
    """
    raise TypeError_("a simulated graph is run by its model alone")


@special(simulated_graph)
async def _compiled(engine: Any, frame: Any, args: Any, kwargs: Any, origin: Any, site: Any) -> Val:
    """The graph, in place of the call.

    Raises:
        TypeError_: the inputs have other types.
    """
    spec: SimulatedSpec = frame.context.scope
    require_calibrated("a simulated", spec.graph, spec.count, args, origin)
    arrays = [frame.implicit(parameter_key(spec, n), spec.type_of(n), n.replace(".", "_")) for n in spec.order]
    builder = frame.at(origin)
    return Dyn(inline(builder, spec.graph, [*(a.node for a in args), *arrays]))


def require_calibrated(kind: str, graph: Graph, count: int, args: Sequence[Val], origin: Any) -> None:
    """Refuse inputs for which the graph of a model was not made.

    Raises:
        TypeError_: the inputs have other types, or there are more or fewer.
    """
    wanted = [p.type for p in graph.params[:count]]
    given = [getattr(getattr(a, "node", None), "type", None) for a in args]
    if given != wanted:
        shown = ", ".join("no array" if t is None else str(t) for t in given) or "none"
        raise TypeError_(
            f"{kind} model takes inputs as in calibration, {', '.join(map(str, wanted))}, and these are {shown}", origin
        )


class SimulatedSpec(ModelSpec):
    """The parameters of a simulated model.

    Attributes:
        graph: of its inputs and arrays.
        count: of the inputs.
        order: names of the arrays, in the order of the graph's parameters.
    """

    bound = True

    def __init__(self, function: Any, graph: Graph, count: int, names: tuple[str, ...], state: frozenset[str]):
        super().__init__(function)
        self.graph, self.count, self.order = graph, count, names
        for name, param in zip(names, graph.params[count:], strict=True):
            assert isinstance(param.type, Array)
            if name in state:
                self.state[name] = param.type, None
            else:
                self.names.append(name)
                self.types.append(param.type)
                self.inits.append(None)


class SimulatedModel(Model):
    """A model that rounds as a quantised one does, and is trained: what `QuantizedModel.trainable` returns.

    A loss calls it: `relay.fit(model, loss, data)` with `loss(x, y)` of `model(x)`.
    """

    def __init__(
        self, quantized: Any, graph: Graph, count: int, names: tuple[str, ...], arrays: tuple, state: frozenset[str]
    ):
        inputs = ", ".join(f"x{k}" for k in range(count))
        text = f"def simulated({inputs}):\n    return simulated_graph({inputs})\n"
        file = f"<simulated model {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        found: dict[str, Any] = {"simulated_graph": simulated_graph, "__name__": __name__}
        exec(compile(text, file, "exec"), found)
        order = [*(n for n in names if n not in state), *(n for n in names if n in state)]
        spec = SimulatedSpec(RelayModel(found["simulated"]), graph, count, names, state)
        super().__init__(spec, [np.array(arrays[names.index(n)]) for n in order])
        self._quantized, self._order = quantized, names

    def quantized(self) -> Any:
        """The quantised model with the parameters as they are now, and the scales of the original one."""
        known = self.saved()
        return self._quantized.with_arrays([known[n].copy() for n in self._order])


__all__ = ["SimulatedModel", "require_calibrated", "simulated_graph"]
