"""From Python source to parsed graphs: source text, names, statements, expressions.

The front end reads source and never runs the function. Its result is untyped: inference decides what operations mean.
"""

from . import assignments, blocks, comprehensions, expressions, loops, patterns, statements  # noqa: F401  they register their handlers
from .parser import parse, parse_marked
from .text.source import find

__all__ = ["find", "parse", "parse_marked"]
