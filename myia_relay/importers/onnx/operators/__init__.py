"""The rules of ONNX's operators, in the groups of its documentation."""

from . import (
    casts,
    containers,
    convolution,
    dynamic,
    elementwise,
    flow,
    images,
    indexing,
    linear,
    normalisation,
    quantised,
    random,
    recurrent,
    reductions,
    shapes,
)

__all__ = [
    "casts",
    "containers",
    "convolution",
    "dynamic",
    "elementwise",
    "flow",
    "images",
    "indexing",
    "linear",
    "normalisation",
    "quantised",
    "random",
    "recurrent",
    "reductions",
    "shapes",
]
