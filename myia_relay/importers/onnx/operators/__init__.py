"""The rules of ONNX's operators, in the groups of its documentation."""

from . import elementwise, flow

__all__ = ["elementwise", "flow"]
