"""Typed graphs as text that is read back as the same: `printer` writes it, `reader` reads it."""

from .printer import exact_text
from .reader import read_graph

__all__ = ["exact_text", "read_graph"]
