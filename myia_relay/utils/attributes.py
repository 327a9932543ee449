"""Attributes that an object really has: some answer every name (mocks, proxies), and are none of ours for that."""

from __future__ import annotations

import inspect
from typing import Any

_MISSING = object()


def own_attribute(value: Any, name: str, default: Any = None) -> Any:
    """An attribute that is written in an object or its classes; `default` where only a `__getattr__` would answer."""
    return default if inspect.getattr_static(value, name, _MISSING) is _MISSING else getattr(value, name, default)


def has_own(value: Any, name: str) -> bool:
    """Whether an object or one of its classes has an attribute, whatever a `__getattr__` would answer."""
    return inspect.getattr_static(value, name, _MISSING) is not _MISSING
