"""Attributes that mark this package's objects; they are looked up on classes only.

Some objects answer every name (mocks, proxies), and `functools.wraps` copies the contents of an instance to wrappers.
Neither must be taken for an object of ours. Besides, an instance whose `__dict__` was never asked for is faster to
read, at every call.
"""

from __future__ import annotations

import inspect
import types
from typing import Any, ClassVar


def has_own(value: Any, name: str) -> bool:
    """Whether the class of an object, or one of its bases, has an attribute."""
    return any(name in vars(c) for c in type(value).__mro__)


def own_attribute(value: Any, name: str, default: Any = None) -> Any:
    """An attribute that the class of an object has; `default` where it has none."""
    return getattr(value, name, default) if has_own(value, name) else default


class Advised:
    """Objects that say what to write in place of what the same things have in other libraries.

    Attributes:
        _elsewhere: attributes of other libraries -> what to write.
    """

    _elsewhere: ClassVar[dict[str, str]] = {}

    def __getattr__(self, name: str) -> Any:
        advice = f"; {self._elsewhere[name]}" if name in self._elsewhere else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}", name=name, obj=self)


def is_generated(method: Any) -> bool:
    """Whether `dataclass` or `NamedTuple` made a method of a class: it does what the fields say, and has no source.

    A method of a class that was made by exec or `python -c` has the same file name, "<string>".
    """
    code = getattr(method, "__code__", None)
    if code is None or code.co_filename != "<string>":
        return False
    if code.co_name == "<lambda>":  # `__new__`
        return str(method.__globals__.get("__name__")).startswith("namedtuple_")
    if hasattr(code, "co_qualname"):  # since Python 3.11
        return code.co_qualname.startswith("__create_fn__.<locals>.")
    # dataclass writes a function that returns the method: the second line of its text, inside a function.
    return (
        code.co_firstlineno == 2 and bool(code.co_flags & inspect.CO_NESTED) and isinstance(method, types.FunctionType)
    )
