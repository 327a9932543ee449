"""The `python` executor: typed graphs as readable Python source, run by CPython and NumPy, with compiled regions."""

from .executor import compile_python, to_source

__all__ = ["compile_python", "to_source"]
