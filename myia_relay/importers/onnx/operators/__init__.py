"""The rules of ONNX's operators, in the groups of its documentation."""

from . import casts, convolution, elementwise, flow, linear, normalisation, quantised, reductions, shapes

__all__ = [
    "casts",
    "convolution",
    "elementwise",
    "flow",
    "linear",
    "normalisation",
    "quantised",
    "reductions",
    "shapes",
]
