"""An imported model as text: the function that is compiled, what its names mean, and its inputs and outputs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .table import OnnxOperator
from .values import Fixed

ANNOTATIONS = {
    "float32": "Float32", "float64": "Float64", "float16": "Float16", "bfloat16": "BFloat16", "bool": "Bool",
    **{f"{u}int{n}": f"{'U' if u else ''}Int{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
}  # fmt: skip


MOST_DECIDING = 64
"""Elements of an input that may say sizes or axes."""


@dataclass(frozen=True)
class Port:
    """An input or output of a model.

    Attributes:
        name: its name in the model.
        variable: its name in the text.
        kind: "tensor", "sequence" or "optional".
        dtype: of the elements; None if it is not said.
        shape: numbers, names, and None for sizes that are open; None if it is not said.
    """

    name: str
    variable: str
    kind: str
    dtype: str | None
    shape: tuple | None

    @property
    def annotation(self) -> str:
        """How it is annotated; empty if it cannot be."""
        if self.kind != "tensor" or self.dtype not in ANNOTATIONS or self.shape is None:
            return ""
        sizes = ["Any" if d is None else repr(d) for d in self.shape]
        shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
        return f": Tensor[{ANNOTATIONS[self.dtype]}, {shape}]"


@dataclass
class ModelText:
    """A model as text.

    Attributes:
        name: of the function.
        lines: of the text.
        names: what its free names mean.
        inputs, outputs: of the model.
        parameters: initialiser -> array.
        fixed: those of the parameters whose values are part of the text -> these values.
        counts: operator -> how many nodes there are.
        missing: what cannot be imported: (operator, node, reason).
    """

    name: str
    lines: list[str] = field(default_factory=list)
    names: dict[str, Any] = field(default_factory=dict)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    parameters: dict[str, np.ndarray] = field(default_factory=dict)
    fixed: dict[str, Fixed] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    missing: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text."""
        return "\n".join(self.lines) + "\n"

    @property
    def digest(self) -> str:
        """What tells the program from others: the text, and the constants that its names mean."""
        found = hashlib.blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=12)
        for name, value in sorted(self.names.items()):
            if isinstance(value, Fixed):
                found.update(f"\0{name} {value.dtype} {value.shape}\0".encode())
                found.update(value.data)
            elif isinstance(value, np.ndarray):
                found.update(f"\0{name} {value.dtype.name} {value.shape}\0".encode())
                found.update(np.ascontiguousarray(value).view(np.uint8).data)
            elif isinstance(value, OnnxOperator):
                found.update(f"\0{name} {value.domain} {value.name} {value.version}\0".encode())
        return found.hexdigest()

    def __relay_description__(self) -> list:
        """What code depends on, the same in every process."""
        return ["onnx", self.digest]


def decides(port: Port) -> bool:
    """Whether an input may say sizes or axes: it is an integer, a boolean, or a short vector of them."""
    whole = port.kind == "tensor" and port.dtype is not None and port.dtype.startswith(("int", "uint", "bool"))
    return whole and port.shape is not None and len(port.shape) <= 1 and not any(_is_long(d) for d in port.shape)


def _is_long(size: int | str | None) -> bool:
    return isinstance(size, int) and size > MOST_DECIDING


def shown(shape: tuple) -> str:
    """A declared shape."""
    return "(" + ", ".join("?" if d is None else str(d) for d in shape) + ("," if len(shape) == 1 else "") + ")"
