"""Derivatives of modules."""

from .gradient import Gradient

__all__ = ["Gradient"]
