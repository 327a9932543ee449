"""Compile and differentiate ordinary Python.

    from myia_relay import relay, grad

    @relay
    def f(x, y):
        return x ** 3 * y ** 4

    f(2.0, 3.0)
    grad(f, "x")(2.0, 3.0)

`relay` is both the decorator and the namespace of operators and tools. Importing this package only imports what is
needed to run a compiled program from a file. The compiler, including TVM, is imported when it is first needed.
"""

from __future__ import annotations

import importlib
from typing import Any

from .utils.names import MODULES, PUBLIC

__version__ = "0.1.0"

__all__ = ["relay", *PUBLIC, *MODULES]


class _Namespace:
    """`relay`: the decorator, and every public name as an attribute."""

    def __call__(
        self, function=None, *, target=None, executor=None, static=(), fastmath=False, debug_nans=False, precision=None
    ) -> Any:
        """Compile a function on call.

        Args:
            function: the function; None when the decorator is given options.
            target: "cpu" (default).
            executor: "native" (default), "python" or "interpreter".
            static: names of parameters whose values are compile-time constants.
            fastmath: permit contraction and reassociation of floating-point arithmetic.
            debug_nans: raise FloatingPointError where a NaN is made.
            precision: "bfloat16" rounds operands of matrix products and convolutions to that; they are added up in float32.
        """
        Relay = _api.Relay
        options = {
            "target": target,
            "executor": executor,
            "static": static,
            "fastmath": fastmath,
            "debug_nans": debug_nans,
            "precision": precision,
        }
        return (lambda f: Relay(f, **options)) if function is None else Relay(function, **options)

    __call__.__qualname__ = "relay"  # as errors of its arguments name it

    def __getattr__(self, name: str) -> Any:
        value = _find(name)
        object.__setattr__(self, name, value)
        return value

    def __dir__(self):
        return sorted({*PUBLIC, *MODULES})

    def __repr__(self) -> str:
        return "<relay: decorator and namespace of myia_relay>"


def _find(name: str) -> Any:
    if name in MODULES:
        return importlib.import_module(f".{MODULES[name]}", __name__)
    if name in PUBLIC:
        return getattr(importlib.import_module(f".{PUBLIC[name]}", __name__), name)
    from .utils.errors import nearest

    raise AttributeError(f"myia_relay has no attribute '{name}'{nearest(name, [*PUBLIC, *MODULES])}")


relay = _Namespace()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = _find(name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *PUBLIC, *MODULES})


from . import api as _api  # noqa: E402  now rather than at the first call, which is to be quick
