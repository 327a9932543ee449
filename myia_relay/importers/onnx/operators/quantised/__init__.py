"""Quantised operators: rounding to scales, products of integers, and those that ONNX Runtime adds (`com.microsoft`)."""

from . import contributed, products, scales

__all__ = ["contributed", "products", "scales"]
