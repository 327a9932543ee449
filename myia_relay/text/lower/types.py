"""Types as compile-time values: what stands for the type parameters of a polymorphic function where it is specialised.

The checker knows the type of everything, in terms of parameters. Which data type a constructor without fields makes (`Nil`)
is decided by these alone. A function that needs to know a parameter, because such a constructor is in it or because it
calls a function that needs it, gets it as an argument: a compile-time value, which costs nothing at run time and tells
specialisations apart (intensional type passing; R. Harper and G. Morrisett, POPL 1995, at compile time only).

Input: terms of the checker, and what stands for their parameters. Output: types of the core; None where a part is known at
run time only (sizes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...abstract.declared import Arrow, Declaration, InstanceOf
from ...abstract.dims import Dim
from ...abstract.references import RefTo
from ...abstract.types import Array, Scalar, Struct
from ..terms.terms import (
    ANY,
    ArrowTerm,
    CellTerm,
    DataTerm,
    Rigid,
    TensorTerm,
    TupleTerm,
    Unknown,
    parameters,
    prune,
    substituted,
    unknowns,
)


class TypeValue:
    """A type, shape, size or dtype as a compile-time value of inference. There is one object for each, as it compares objects.

    Attributes:
        value: a type of the core, a tuple of sizes, a size, the name of a dtype; None where it is not known.
    """

    def __init__(self, value: Any):
        self.value = value

    @staticmethod
    def of(value: Any) -> TypeValue:
        """The object for a value."""
        found = _VALUES.get(value)
        if found is None:
            found = _VALUES[value] = TypeValue(value)
        return found

    def __repr__(self) -> str:
        return f"<{self.value}>"


_VALUES: dict[Any, TypeValue] = {}


def variables(*terms: Any) -> list[Any]:
    """The parameters in terms: `Rigid`, and `Unknown` that a scheme abstracts over; each once."""
    return [*parameters(*terms), *unknowns(*terms)]


def ground(term: Any, env: Mapping[int, Any], declarations: Callable[[str], Declaration]) -> Any:
    """A term as a type of the core, a shape, a size or a dtype.

    Args:
        term: a term.
        env: `id` of a parameter -> what stands for it, None if that is not known.
        declarations: name of a data type -> its declaration.

    Returns:
        None where a part is not known.
    """
    term = prune(term)
    match term:
        case Rigid() | Unknown():
            return env.get(id(term))
        case int() | str():
            return term
        case Dim():
            value = substituted(term, lambda p: _known(env.get(id(p))))
            return value if isinstance(value, int) else None
        case tuple():
            sizes = tuple(ground(n, env, declarations) for n in term)
            return None if None in sizes else sizes
        case TensorTerm():
            shape, dtype = ground(term.shape, env, declarations), ground(term.dtype, env, declarations)
            if shape is None or dtype is None:
                return None
            return Array(dtype, shape) if shape else Scalar(dtype)
        case TupleTerm():
            parts = tuple(ground(e, env, declarations) for e in term.elems)
            return None if None in parts else Struct("tuple", parts)
        case ArrowTerm():
            parts = tuple(ground(e, env, declarations) for e in (*term.params, term.result))
            return None if None in parts else Arrow(parts[:-1], parts[-1])
        case CellTerm():
            content = ground(term.elem, env, declarations)
            return None if content is None else RefTo(content)
        case DataTerm():
            parts = tuple(ground(a, env, declarations) for a in term.args)
            return None if None in parts else InstanceOf(declarations(term.name), parts)
    return None


def _known(size: Any) -> Any:
    return ANY if size is None else size
