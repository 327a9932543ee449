"""What ONNX's schemas demand of nodes: which inputs there must be, how many outputs, and which attributes of which types."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from .loading import require_onnx

UNDEFINED = 0
"""The type of an attribute in files of the first version of the format, which did not say it."""


@functools.lru_cache(1024)
def schema_of(name: str, domain: str, version: int) -> Any:
    """The schema of an operator; None if there is none, or none that is in use."""
    onnx = require_onnx()
    try:
        schema = onnx.defs.get_schema(name, version, domain)
    except onnx.defs.SchemaError:
        return None
    return None if schema.deprecated else schema


def misfit(node: Any, domain: str, version: int, attributes: Mapping[str, Any]) -> str | None:
    """Why a node is none that its operator allows; None if it is one, or the operator has no schema.

    Args:
        node: the node.
        domain, version: of the operator set.
        attributes: by name, those of a function's call included.
    """
    schema = schema_of(node.op_type, domain, version)
    if schema is None:
        return None
    required = require_onnx().defs.OpSchema.FormalParameterOption.Single
    count = len(node.input)
    if count > schema.max_input:
        return f"it has {count} inputs, and the operator takes at most {schema.max_input}"
    for k, formal in enumerate(schema.inputs):
        if formal.option == required and (k >= count or not node.input[k]):
            return f"its input {formal.name} is missing"
    if count < schema.min_input:
        return f"it has {count} inputs, and the operator takes at least {schema.min_input}"
    if len(node.output) > schema.max_output:
        return f"it has {len(node.output)} outputs, and the operator has at most {schema.max_output}"
    if not any(node.output):
        return "none of its outputs has a name"
    for name, a in attributes.items():
        known = schema.attributes.get(name)
        if known is None:
            return f"the operator has no attribute '{name}'"
        if a.type not in (UNDEFINED, known.type.value):
            return f"its attribute '{name}' is of another type than {known.type.name}"
    missing = [n for n, known in schema.attributes.items() if known.required and n not in attributes]
    return f"its attribute '{missing[0]}' is missing" if missing else None
