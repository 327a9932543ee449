"""Errors about types that do not agree, in the words of a user: both types, what is in the way, and what to do."""

from __future__ import annotations

from typing import Any

from ...utils.errors import CompileError, ShapeError, TypeError_
from ...utils.source import Loc
from ..terms.show import show
from ..terms.terms import ArrowTerm, Rigid, TensorTerm, TupleTerm, Unknown, prune, rigids_of
from ..terms.unify import Clash
from ..tree import Body, Expression


def mismatch(clash: Clash, found: Any, wanted: Any, what: str, place: Loc | None) -> CompileError:
    """The error that a type is not the one that is needed.

    Args:
        clash: what unification met.
        found: the type that is there.
        wanted: the one that is needed.
        what: the subject of the sentence, with its verb: "the argument of @f is".
        place: where.
    """
    left, right = prune(clash.left), prune(clash.right)
    kind = ShapeError if clash.of_shapes else TypeError_
    message = f"{what} {show(found)}, and {show(wanted)} is needed here"
    notes: list = []
    match clash.reason:
        case "rigid":
            rigid, other = (left, right) if isinstance(left, Rigid) else (right, left)
            message += (
                f": '{rigid.name}' is declared, so it stands for every {_KIND[rigid.kind]}, and it would have to be "
                f"{show(other)}; use {show(other)} in the declaration, or leave the annotation out"
            )
            notes = declared(rigid)
        case "escape":
            message += (
                f": '{left.name}' stands for a {_KIND[left.kind]} inside of the function that declares it, and does not "
                "exist outside"
            )
            notes = declared(left)
        case "infinite":
            message += ": the type would be a part of itself"
        case "dtype" if isinstance(prune(found), TensorTerm) and isinstance(prune(wanted), TensorTerm):
            message += f"; nothing is converted by itself: {_conversion(left, right)}"
        case "rank":
            message += f": {_axes(left)} and {_axes(right)}"
        case "size":
            message += f": the sizes {show(left)} and {show(right)} differ"
            names = [*rigids_of(left), *rigids_of(right)]
            if names:
                message += "; a named size stands for every size. Write ? where only a run tells"
            for rigid in names[:1]:
                notes = declared(rigid)
        case "arity" if isinstance(left, ArrowTerm) and isinstance(right, ArrowTerm):
            message += f": functions of {len(left.params)} and of {len(right.params)} parameters"
        case "arity" if isinstance(left, TupleTerm) and isinstance(right, TupleTerm):
            message += f": tuples of {len(left.elems)} and of {len(right.elems)} elements"
        case "type" if show(left) != show(found) and not isinstance(left, Unknown):
            message += f": {show(left)} and {show(right)} differ"
    if isinstance(left, TensorTerm) and isinstance(right, ArrowTerm) or isinstance(left, ArrowTerm):
        message += "; is a call missing, or one too many?" if isinstance(right, TensorTerm | ArrowTerm) else ""
    return kind(message, place, *notes)


_KIND = {"Type": "type", "Shape": "shape", "ShapeVar": "size", "BaseType": "dtype"}


def declared(rigid: Rigid) -> list:
    """Where a parameter is declared, as a note."""
    return [(f"'{rigid.name}' is declared here", rigid.span.loc)] if rigid.span is not None else []


def _conversion(left: Any, right: Any) -> str:
    wanted = right if isinstance(right, str) else left
    return f'cast(.., dtype="{wanted}")'


def _axes(shape: Any) -> str:
    if not isinstance(shape, tuple):
        return show(shape)
    n = len(shape)
    return "a scalar" if n == 0 else f"{n} ax{'is' if n == 1 else 'es'}"


def result_of(e: Expression) -> Expression:
    """The expression whose value a block has."""
    while isinstance(e, Body):
        e = e.result
    return e
