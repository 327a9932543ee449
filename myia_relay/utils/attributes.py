"""Attributes that mark this package's objects; they are looked up on classes only.

Some objects answer every name (mocks, proxies), and `functools.wraps` copies the contents of an instance to wrappers.
Neither must be taken for an object of ours. Besides, an instance whose `__dict__` was never asked for is faster to
read, at every call.
"""

from __future__ import annotations

from typing import Any


def has_own(value: Any, name: str) -> bool:
    """Whether the class of an object, or one of its bases, has an attribute."""
    return any(name in vars(c) for c in type(value).__mro__)


def own_attribute(value: Any, name: str, default: Any = None) -> Any:
    """An attribute that the class of an object has; `default` where it has none."""
    return getattr(value, name, default) if has_own(value, name) else default
