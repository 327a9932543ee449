"""How an operator of Relay is declared: its name, arguments, attributes, relation and implementation, in one place.

The relation says what follows for types (`terms.solver.Facts`). The implementation is a function of staged values
(`prims.api`), or a function in the language itself, which is parsed like a user's.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...prims.api.implementations import IMPLEMENTATIONS, Implementation
from ...utils.errors import InternalError, NameError_, TypeError_, nearest
from ..dtypes import DTYPES
from ..terms.solver import Facts
from ..tree import Attributes


class Needed:
    """The default of an attribute that must be given."""

    def __repr__(self) -> str:
        return "needed"


NEEDED: Any = Needed()


@dataclass(frozen=True)
class Attr:
    """An attribute of an operator.

    Attributes:
        kind: "int", "ints" (one or a list), "sections" (the same, told apart), "float", "floats", "number", "bool", "str",
            "dtype", "out_dtype" (may be empty), or words of which it is one.
        default: TVM's; None says that it may be left out or given as None.
    """

    kind: str | tuple[str, ...]
    default: Any = NEEDED

    def checked(self, value: Any, what: str) -> Any:
        """A value as the operator takes it: lists are tuples, one number for a list is a list of one.

        Raises:
            TypeError_: it is of another kind.
        """
        if value is None and (self.default is None or isinstance(self.default, Needed)):
            if self.default is None:
                return None
        found = self._converted(value)
        if found is NEEDED:
            wanted = " or ".join(map(repr, self.kind)) if isinstance(self.kind, tuple) else _KINDS[self.kind]
            none = ", or None" if self.default is None else ""
            raise TypeError_(f"{what} is {_written(value)}; it is {wanted}{none}")
        return found

    def _converted(self, value: Any) -> Any:
        kind = self.kind
        if isinstance(kind, tuple):
            return value if value in kind else NEEDED
        match kind:
            case "int":
                return int(value) if _is_int(value) else NEEDED
            case "ints":
                if _is_int(value):
                    return (int(value),)
                flat = _flat_ints(value)
                return NEEDED if flat is None else flat
            case "sections":
                return int(value) if _is_int(value) else _flat_ints(value) or NEEDED
            case "float" | "number":
                if isinstance(value, numbers.Real) and not isinstance(value, bool):
                    return float(value) if kind == "float" else value
                return value if kind == "number" and isinstance(value, bool) else NEEDED
            case "floats":
                values = value if isinstance(value, tuple) else (value,)
                return values if all(isinstance(v, numbers.Real) for v in values) else NEEDED
            case "bool":
                return bool(value) if isinstance(value, bool) or value in (0, 1) else NEEDED
            case "str":
                return value if isinstance(value, str) else NEEDED
            case "out_dtype" if value == "":
                return value
            case "dtype" | "out_dtype":
                return value if isinstance(value, str) and value in DTYPES else NEEDED
        return value


_KINDS = {
    "int": "an int",
    "ints": "a list of ints",
    "sections": "an int, or a list of ints",
    "float": "a number",
    "floats": "a list of numbers",
    "number": "a number",
    "bool": "True or False",
    "str": "a text",
    "dtype": 'the name of a dtype, such as "float32"',
    "out_dtype": 'the name of a dtype, or "" for that of the operands',
    "any": "any value",
}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _flat_ints(value: Any) -> tuple | None:
    """A tuple of ints, or of such tuples."""
    if not isinstance(value, tuple):
        return None
    out = []
    for v in value:
        inner = int(v) if _is_int(v) else _flat_ints(v)
        if inner is None:
            return None
        out.append(inner)
    return tuple(out)


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return f'"{value}"' if isinstance(value, str) else repr(value)


@dataclass(frozen=True, eq=False)
class RelayOperator:
    """An operator of Relay.

    Attributes:
        name: as texts have it.
        args: names of the arguments.
        attrs: name -> what it may be.
        relation: finds what follows for types.
        function: the implementation: `(b: Builder, *args, **attrs)` on staged values, or a function in the language with the
            same parameters without the builder.
        staged: which of them it is.
        family: the name by which its relation can be declared: "Broadcast", "Identity".
        optional: how many of the last arguments may be left out.
        variadic: whether the last argument may occur any number of times.
        reads_constants: whether the relation looks at the values of arguments that are literals.
        doc: what it computes, in a line.
    """

    name: str
    args: tuple[str, ...]
    relation: Callable[[Facts], None]
    function: Callable[..., Any]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    staged: bool = True
    family: str = ""
    optional: int = 0
    variadic: bool = False
    reads_constants: bool = False
    doc: str = ""

    def complete(self, given: Attributes) -> dict[str, Any]:
        """All attributes: those given, converted, and the defaults of the others.

        Raises:
            TypeError_: one is not known, is of another kind, or is missing.
        """
        if not given:
            return self._defaults()
        out = {name: attr.default for name, attr in self.attrs.items()}
        for name, value in given:
            attr = self.attrs.get(name)
            if attr is None:
                known = ", ".join(self.attrs) or "none"
                raise TypeError_(
                    f"{self.name} has no attribute '{name}'{nearest(name, self.attrs)}; its attributes: {known}"
                )
            out[name] = attr.checked(value, f"{self.name}: {name}")
        for name, value in out.items():
            if isinstance(value, Needed):
                raise TypeError_(f"{self.name} needs the attribute '{name}': {name}=..")
        return out

    def _defaults(self) -> dict[str, Any]:
        for name, attr in self.attrs.items():
            if isinstance(attr.default, Needed):
                raise TypeError_(f"{self.name} needs the attribute '{name}': {name}=..")
        return {name: attr.default for name, attr in self.attrs.items()}

    def takes(self, count: int) -> bool:
        """Whether it can be applied to so many arguments."""
        return len(self.args) - self.optional <= count and (self.variadic or count <= len(self.args))

    @property
    def arity(self) -> str:
        """How many arguments it takes, in words."""
        low, high = len(self.args) - self.optional, len(self.args)
        names = f" ({', '.join(self.args)})" if self.args else ""
        number = f"{low} or more" if self.variadic else str(high) if low == high else f"{low} to {high}"
        return f"{number} argument{'' if number == '1' else 's'}{names}"


class Callable_:
    """What stands for an operator in a parsed graph; inference finds its implementation in the table of `prims.api`.

    Attributes:
        operator: the operator.
    """

    __slots__ = ("__weakref__", "operator")

    def __init__(self, operator: RelayOperator):
        self.operator = operator

    @property
    def __name__(self) -> str:
        return self.operator.name

    def __repr__(self) -> str:
        return self.operator.name


class OperatorTable(dict[str, Any]):
    """A table by names of operators. Names with a derived prefix (`grad.NAME`) are entries too, made when they are first asked
    for; iteration does not show them.
    """

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and derived(name) is not None)

    def __missing__(self, name: str) -> Any:
        if derived(name) is None:
            raise KeyError(name)
        return (DERIVED_CALLABLES if self is CALLABLES else DERIVED)[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The entry of a name."""
        return self[name] if name in self else default


OPERATORS: dict[str, RelayOperator] = OperatorTable()
CALLABLES: dict[str, Callable[..., Any]] = OperatorTable()
"""Name of an operator -> the callable that a parsed graph applies, with the attributes as keyword arguments."""
DERIVED: dict[str, RelayOperator] = {}
DERIVED_CALLABLES: dict[str, Callable[..., Any]] = {}
DERIVATIONS: dict[str, Callable[[str], RelayOperator | None]] = {}
"""Prefix of a name -> the operator that follows from the rest of the name; None if none does."""


def derived(name: str) -> RelayOperator | None:
    """The operator that a name with a prefix of `DERIVATIONS` means; None if there is none."""
    if name in DERIVED:
        return DERIVED[name]
    prefix, _, rest = name.partition(".")
    found = DERIVATIONS[prefix](rest) if prefix in DERIVATIONS else None
    if found is None:
        return None
    DERIVED[name] = found
    DERIVED_CALLABLES[name] = _registered(found)
    return found


def _registered(declared: RelayOperator) -> Callable[..., Any]:
    """What a parsed graph applies for an operator that is staged."""
    target: Any = Callable_(declared)
    implementation = IMPLEMENTATIONS[target] = Implementation(declared.name, declared.function, tuple(declared.attrs))
    implementation.keywords = (*implementation.positional, *declared.attrs)
    implementation.required = ()  # the checker has seen to that
    return target


def operator(
    name: str,
    args: tuple[str, ...],
    relation: Callable[[Facts], None],
    attrs: Mapping[str, Attr] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an operator; decorates its implementation, whose docstring says what it computes.

    Args:
        name: of the operator.
        args: names of its arguments.
        relation: of its types.
        attrs: its attributes.
        options: further attributes of `RelayOperator`.

    Raises:
        InternalError: it is declared twice.
    """
    if name in OPERATORS:
        raise InternalError("operators", f"{name} is declared twice")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        options.setdefault("doc", (function.__doc__ or "").strip().split("\n")[0])
        declared = OPERATORS[name] = RelayOperator(name, args, relation, function, attrs or {}, **options)
        CALLABLES[name] = _registered(declared) if declared.staged else function
        return function

    return register


def find(name: str) -> RelayOperator:
    """The operator of a name.

    Raises:
        NameError_: there is none.
    """
    found = OPERATORS.get(name)
    if found is None:
        raise NameError_(f"there is no operator '{name}'{nearest(name, OPERATORS)}")
    return found
