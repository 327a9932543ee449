"""The tables of functions that have a meaning in compiled code, and how entries get there.

`MEANINGS` maps a NumPy or `math` function to its `Meaning`; `METHODS` maps the name of an array's method or attribute
to one. A meaning is called as `(b: Builder, *args, **kwargs)` with NumPy's own parameters: arguments whose name is in
`static` are plain Python values, others are staged values (`Var`), numbers, or tuples and lists of them. It returns a
`Var`, a tuple or list of them, or a plain Python value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ...ir.build import Builder
from ...utils.errors import TypeError_, nearest

MEANINGS: dict[Callable, Meaning] = {}
METHODS: dict[str, Meaning] = {}


class Meaning:
    """What a function means in compiled code.

    Attributes:
        name: how errors call it: "np.sum".
        function: its implementation, `(b, *args, **kwargs)`.
        parameters: names of the parameters by position, without the builder.
        keywords: names that may be given as keywords.
        static: names of parameters that must be known at compile time.
        attribute: whether it is read like an attribute, `x.T`, instead of called.
    """

    def __init__(self, name: str, function: Callable, static=(), attribute: bool = False):
        self.name, self.function = name, function
        self.static, self.attribute = frozenset(static), attribute
        listed = list(inspect.signature(function).parameters.values())[1:]
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in listed)
        self.positional = tuple(p.name for p in listed if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
        self.keywords = self.positional + tuple(p.name for p in listed if p.kind is p.KEYWORD_ONLY)
        # Behind `*operands` no argument has a name of its own.
        self.parameters = self.positional if self.variadic else self.keywords
        self.required = tuple(p.name for p in listed if p.default is p.empty and p.kind is not p.VAR_POSITIONAL)

    def __call__(self, b: Builder, *args, **kwargs):
        for key in kwargs:
            if key not in self.keywords:
                known = ", ".join(self.keywords[1:]) or "none"
                advice = nearest(key, self.keywords)
                raise TypeError_(
                    f"{self.name}: the argument '{key}' is not supported in compiled code{advice}; known: {known}"
                )
        if len(args) > len(self.positional) and not self.variadic:
            raise TypeError_(
                f"{self.name} takes {len(self.positional)} positional arguments in compiled code "
                f"({', '.join(self.positional)}), and {len(args)} were given"
            )
        missing = [p for i, p in enumerate(self.required) if p not in kwargs and i >= len(args)]
        if missing:
            raise TypeError_(f"{self.name} is missing its argument '{missing[0]}'")
        return self.function(b, *args, **kwargs)

    def __repr__(self) -> str:
        return f"Meaning({self.name})"


def meaning(*functions: Callable, static=(), name: str | None = None):
    """Register what calling Python functions means."""

    def register(rule):
        for fn in functions:
            MEANINGS[fn] = Meaning(name or _name_of(fn), rule, static)
        return rule

    return register


def method(*names: str, static=(), attribute: bool = False):
    """Register what an array's method or attribute means; the array is the first argument."""

    def register(rule):
        for key in names:
            METHODS[key] = Meaning(f"ndarray.{key}", rule, static, attribute)
        return rule

    return register


def _name_of(fn) -> str:
    module = getattr(fn, "__module__", None) or ("numpy" if hasattr(fn, "nin") else "")
    module = module.replace("numpy", "np")
    return f"{module}.{fn.__name__}" if module not in ("", "builtins") else fn.__name__
