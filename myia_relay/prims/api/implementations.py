"""The tables of functions that compiled code may call, and how entries get there.

`IMPLEMENTATIONS` maps a NumPy or `math` function to its `Implementation`; `METHODS` maps the name of an array's method or attribute
to one. An implementation is called as `(b: Builder, *args, **kwargs)` with NumPy's own parameters: arguments whose name is in
`static` are plain Python values, others are staged values (`Var`), numbers, or tuples and lists of them. It returns a
`Var`, a tuple or list of them, or a plain Python value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from ...ir.build import Builder
from ...utils.errors import TypeError_, nearest

IMPLEMENTATIONS: dict[Callable, Implementation] = {}
METHODS: dict[str, Implementation] = {}

ELSEWHERE = {"dim": "axis", "keepdim": "keepdims", "dims": "axes", "other": "y"}
"""Names that arguments have in PyTorch -> those of NumPy."""


class Implementation:
    """What a function means in compiled code.

    Attributes:
        name: how errors call it: "np.sum".
        function: its implementation, `(b, *args, **kwargs)`; a parameter `_name` is its own and no argument of users,
            a parameter `b_` is the user's `b`.
        parameters: names of the parameters by position, without the builder.
        keywords: names that may be given as keywords.
        static: names of parameters that must be known at compile time.
        attribute: whether it is read like an attribute, `x.T`, instead of called.
        ufunc: whether it is that of a universal function, whose operands have no names.
    """

    def __init__(self, name: str, function: Callable, static=(), attribute: bool = False, ufunc: bool = False):
        self.name, self.function = name, function
        self.static, self.attribute, self.ufunc = frozenset(static), attribute, ufunc
        listed = [p for p in inspect.signature(function).parameters.values() if not p.name.startswith("_")][1:]
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in listed)
        self.positional = tuple(
            p.name.rstrip("_") for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        )
        self.keywords = self.positional + tuple(p.name for p in listed if p.kind is p.KEYWORD_ONLY)
        self.own_names = {p.name.rstrip("_"): p.name for p in listed if p.name.endswith("_")}
        # After `*operands` no argument has a name of its own.
        self.parameters = self.positional if self.variadic else self.keywords
        self.required = tuple(
            p.name.rstrip("_") for p in listed if p.default is p.empty and p.kind is not p.VAR_POSITIONAL
        )

    def __call__(self, b: Builder, /, *args, **kwargs):
        for key in kwargs:
            if self.ufunc and key in self.positional:
                raise TypeError_(f"{self.name}: the argument '{key}' has no name in NumPy: write it by position")
            if key not in self.keywords:
                known = ", ".join(self.keywords[1:]) or "none"
                other = ELSEWHERE.get(key)
                advice = f"; write {other}=" if other in self.keywords else nearest(key, self.keywords)
                if key == "out":
                    advice = f": write out = {self.name}(...), or out[:] = ... for a part of a local array"
                raise TypeError_(
                    f"{self.name}: the argument '{key}' is not supported in compiled code{advice}; known: {known}"
                )
        if len(args) > len(self.positional) and not self.variadic:
            plural = "s" if len(self.positional) != 1 else ""
            raise TypeError_(
                f"{self.name} takes {len(self.positional)} positional argument{plural} in compiled code "
                f"({', '.join(self.positional)}), and {len(args)} were given{self._advice_on_out(len(args))}"
            )
        missing = [p for i, p in enumerate(self.required) if p not in kwargs and i >= len(args)]
        if missing:
            raise TypeError_(f"{self.name} is missing its argument '{missing[0]}'")
        return self.function(b, *args, **{self.own_names.get(key, key): value for key, value in kwargs.items()})

    def _advice_on_out(self, given: int) -> str:
        """What to write instead of handing a ufunc the array for its result."""
        if not self.ufunc or given != len(self.positional) + 1:
            return ""
        operands = ", ".join(self.positional)
        return f"; an array for the result (out) is not taken: write out = {self.name}({operands}), or out[:] = ..."

    def __repr__(self) -> str:
        return f"Implementation({self.name})"


def implements(*functions: Callable, static=(), name: str | None = None):
    """Register what calling Python functions means."""

    def register(rule):
        for fn in functions:
            IMPLEMENTATIONS[fn] = Implementation(name or _name_of(fn), rule, static, ufunc=isinstance(fn, np.ufunc))
        return rule

    return register


def method(*names: str, static=(), attribute: bool = False):
    """Register what an array's method or attribute means; the array is the first argument."""

    def register(rule):
        for key in names:
            METHODS[key] = Implementation(f"ndarray.{key}", rule, static, attribute)
        return rule

    return register


def _name_of(fn) -> str:
    module = getattr(fn, "__module__", None) or ("numpy" if hasattr(fn, "nin") else "")
    module = module.replace("numpy", "np")
    return f"{module}.{fn.__name__}" if module not in ("", "builtins") else fn.__name__
