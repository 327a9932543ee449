"""The message of a model without the data of its parameters.

An imported model keeps its message, to write its text again for other known values, and to be pickled. The parameters are in
arrays by then, so that their data would be in memory twice.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

from .loading import external


def without_parameters(model: Any, parameters: Container[str], folder: Path | None) -> Any:
    """A copy of a model's message.

    Args:
        model: a `ModelProto`.
        parameters: names of the initialisers whose data are left out.
        folder: of the model; external data of other initialisers becomes part of the copy.

    Returns:
        A `ModelProto`.
    """
    out = type(model)()
    _copy_fields(model, out, "graph")
    _copy_fields(model.graph, out.graph, "initializer")
    for tensor in model.graph.initializer:
        copy = out.graph.initializer.add()
        if tensor.name in parameters:
            copy.name, copy.data_type = tensor.name, tensor.data_type
            copy.dims.extend(tensor.dims)
            continue
        copy.CopyFrom(tensor)
        if tensor.data_location == 1:
            copy.raw_data = external(tensor, folder, f"initializer '{tensor.name}'")
            copy.ClearField("external_data")
            copy.ClearField("data_location")
    return out


def _copy_fields(source: Any, target: Any, but: str) -> None:
    """Copy the fields of a message, except one."""
    for descriptor, value in source.ListFields():
        if descriptor.name == but:
            continue
        held = getattr(target, descriptor.name)
        if hasattr(held, "extend"):
            held.extend(value)
        elif hasattr(held, "CopyFrom"):
            held.CopyFrom(value)
        else:
            setattr(target, descriptor.name, value)
