"""`module["f"]`: a definition of a module as a function of Python, of the same kind as a decorated one.

It compiles on call, keeps programs, looks inside, pickles, and can be differentiated, batched and called in compiled code. What is
different from a decorated function is where its types come from: the checker has them (`run.arguments`).
"""

from __future__ import annotations

import inspect
from typing import Any

from ...api import Relay
from ...infer.arguments.arguments import ReturnedFunction
from ...ir.node import Graph
from ...utils.errors import CompileError
from ...utils.source import Origin
from ..lower.lower import Lowered
from ..span import loc
from ..terms.terms import ArrowTerm, TupleTerm, prune
from .arguments import Converter, annotation
from .code import ModuleEntry, positional

POSITIONAL = inspect.Parameter.POSITIONAL_OR_KEYWORD


class ModuleFunction(Relay):
    """A definition of a module.

    Args:
        module: the `Module`.
        name: of the definition.
        options: as of `relay`: executor, target, fastmath, ...
    """

    def __init__(self, module: Any, name: str, **options: Any):
        self._module = module
        lowered = Lowered.of(module)
        entry = ModuleEntry(lowered, name, module)
        self.__name__ = self.__qualname__ = name
        self.__doc__ = None
        self.__signature__ = inspect.Signature([inspect.Parameter(n, POSITIONAL) for n in entry.names])
        self.__wrapped__ = entry
        self._begin(entry, **options)
        t = entry.scheme.type
        assert isinstance(t, ArrowTerm)
        self._type = t
        self._converter = Converter(entry.checked, lowered.declaration)
        self._gives_functions = holds_functions(t.result)
        notes = [annotation(p, lowered.declaration) for p in t.params]
        self._annotations = (list(entry.names), notes)

    @property
    def _entry(self) -> ModuleEntry:
        return self._decorated

    def taken(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments as the definition takes them, all by position.

        Raises:
            CompileError: one does not fit.
        """
        try:
            entry = self._entry
            values = positional(entry, list(args), dict(kwargs))
            convert = self._converter.convert
            what = f"argument '{{}}' of @{entry.name}"
            return tuple(
                [convert(v, t, what.format(n)) for v, t, n in zip(values, self._type.params, entry.names, strict=True)]
            ), {}
        except CompileError as error:
            raise error.at(self._place()) from None

    def __call__(self, *args, **kwargs):
        result = super().__call__(*args, **kwargs)
        return self._given_back(result, self._type.result) if self._gives_functions else result

    def _given_back(self, value: Any, t: Any) -> Any:
        """A result whose functions convert their arguments, too."""
        t = prune(t)
        if isinstance(value, ReturnedFunction) and isinstance(t, ArrowTerm):
            return TypedFunction(value.treedef, value.leaves, t, self._converter, self._given_back)
        if isinstance(value, tuple) and isinstance(t, TupleTerm):
            return tuple(self._given_back(v, e) for v, e in zip(value, t.elems, strict=True))
        return value

    def _place(self, parameter: str | int | None = None) -> Origin | None:
        definition = self._entry.checked.tree.definitions[self._entry.name]
        span = definition.span or definition.function.span
        for p in definition.function.params:
            if p.local.name == parameter and p.span is not None:
                span = p.span
        return Origin(loc(span))

    def _parsed(self) -> Graph:
        return self._entry.lowered.graph(self._entry.name)

    def _made_of(self) -> tuple[tuple, dict[str, Any]]:
        return (self._module, self._entry.name), dict(self.options)

    def with_executor(self, executor: str) -> ModuleFunction:
        """The same function on another executor: "native", "python" or "interpreter"."""
        return ModuleFunction(self._module, self._entry.name, **{**self.options, "executor": executor})

    def __repr__(self) -> str:
        return f"<relay function @{self.__name__}>"


def holds_functions(t: Any) -> bool:
    """Whether there are functions in a result."""
    t = prune(t)
    if isinstance(t, TupleTerm):
        return any(map(holds_functions, t.elems))
    return isinstance(t, ArrowTerm)


class TypedFunction(ReturnedFunction):
    """A function that a definition returned; its arguments are converted as those of a definition are."""

    def __init__(self, treedef: Any, leaves: list, t: ArrowTerm, converter: Converter, given_back: Any):
        super().__init__(treedef, leaves)
        self._type, self._converter, self._given_back = t, converter, given_back

    def __reduce__(self):
        raise TypeError(f"{self!r} cannot be pickled: it holds what it captured; pickle the module, and call it again")

    def __call__(self, *args):
        if len(args) == len(self._type.params):
            pairs = enumerate(zip(args, self._type.params, strict=True))
            args = tuple([self._converter.convert(v, t, f"argument {k} of {self.__name__}") for k, (v, t) in pairs])
        result = super().__call__(*args)
        return self._given_back(result, self._type.result)
