"""The parameters of imported models: how their text reads them, and `f.params`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...abstract.types import Array
from ...infer.engine.frames import parameter_key
from ...infer.language.registry import special
from ...infer.objects.leaves import to_python
from ...infer.values.values import Dyn, Val
from ...model.hidden import ModelSpec
from ...model.model import Parameters
from ...utils.errors import TypeError_
from .text import ModelText


def parameter(name: str):
    """A parameter of an imported model, in its text.

    Raises:
        TypeError_: outside of such a model.
    """
    raise TypeError_("a parameter of an imported model is read by the model alone")


@special(parameter)
async def compiled_parameter(engine, frame, args, kwargs, origin, site) -> Val:
    """The array of a parameter."""
    name = to_python(args[0], "parameter: name")
    spec = frame.context.scope
    return Dyn(frame.implicit(parameter_key(spec, name), spec.type_of(name), name.replace(".", "_")))


class ImportedSpec(ModelSpec):
    """The parameters of an imported model; it belongs to one model.

    Attributes:
        written: the model as text.
    """

    bound = True

    def __init__(self, function: Any, written: ModelText):
        super().__init__(function)
        self.written = written
        for name, array in written.parameters.items():
            type_ = Array(array.dtype.name, array.shape)
            if type_.is_float:
                self.names.append(name)
                self.types.append(type_)
                self.inits.append(None)
            else:
                self.state[name] = type_, None


class ImportedParameters(Parameters):
    """The parameters of an imported model. Those whose values are part of the program are read-only arrays; assigning to their
    names makes the program anew."""

    def __init__(self, model: Any, names: Iterable[str]):
        arrays = dict(zip(model.spec.ref.names, model.arrays, strict=True))
        super().__init__(list(names), [arrays[n] for n in names])
        self._model = model

    def __getitem__(self, name: str) -> np.ndarray:
        array = super().__getitem__(name)
        if name in self._model.spec.written.fixed:
            array = array.view()
            array.flags.writeable = False
        return array

    def __setitem__(self, name: str, value: Any) -> None:
        array = np.array(self[name])
        Parameters([name], [array])[name] = value
        self._model.assign({name: array})
