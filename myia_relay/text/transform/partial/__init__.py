"""Partial evaluation."""

from .partial_evaluate import PartialEvaluate

__all__ = ["PartialEvaluate"]
