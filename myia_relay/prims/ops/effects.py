"""Effects, which happen in program order: raising, printing, reading and writing a model's arrays.

`check` is the one primitive that raises conditionally. Python's arithmetic errors, index errors and assertions are a
check followed by a pure operation. A native function stores the number of the site and the operands of a failed check,
and returns a status; the caller formats the message and raises with the user's file and line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...abstract.types import INT, NONE, Ref
from ...ir.prim import primitive
from ...utils.errors import InternalError


@primitive("effect", effect="raise")
def check(ok, *operands, exception, parts):
    """Raise `exception` unless `ok`.

    Args:
        ok: a bool scalar.
        *operands: values that the message shows.
        exception: an exception class.
        parts: the message, as a tuple of `str` and `(operand index, conversion, format spec)`: an f-string.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("effects", "check is implemented by the executors")


@check.infer
def _(ok, *operands, exception, parts):
    return NONE


@primitive("effect", effect="raise")
def raise_(*operands, exception, parts, type):
    """Raise `exception`; as an expression it has the type `type` that its context needs.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("effects", "raise is implemented by the executors")


@raise_.infer
def _(*operands, exception, parts, type):
    return type


@primitive("effect", effect="io")
def print_(*operands, parts, end):
    """Write a line to `sys.stdout`, formatted by `parts` as in `check`.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("effects", "print is implemented by the executors")


@print_.infer
def _(*operands, parts, end):
    return NONE


@primitive("effect", effect="read")
def ref_read(ref, *, index):
    """Array `index` of a reference (a model's parameter, an optimiser's state), as it is now.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("effects", "ref_read is implemented by the executors")


@ref_read.infer
def _(ref, *, index):
    assert isinstance(ref, Ref)
    return ref.elems[index]


@primitive("effect", effect="write")
def ref_write(ref, value, *, index, state=False):
    """Replace array `index` of a reference; in place, seen through every alias and by the caller.

    Raises:
        InternalError: always; the executors implement it.
    """
    raise InternalError("effects", "ref_write is implemented by the executors")


@ref_write.infer
def _(ref, value, *, index, state=False):
    assert isinstance(ref, Ref)
    if value != ref.elems[index]:
        raise InternalError("ref_write", f"{value} into {ref.elems[index]}")
    return NONE


@dataclass(frozen=True, eq=False)
class MarkedPlace:
    """A place in the source where a debugger may stop.

    Attributes:
        kind: "call" (a function begins), "line" (before a statement), "done" (after it), "return" (a function ends).
        function: the name of the function.
        owner: the Python function that it is in, for the names that it sees from outside.
        binds: the names that are bound here: parameters, targets.
        variables: `(name, treedef)` of what is shown there: for "line" what the statement reads, for "done" also what it has bound.
            The leaves of the treedefs are the operands of the mark.
    """

    kind: str
    function: str
    owner: Any
    binds: tuple[str, ...]
    variables: tuple[tuple[str, Any], ...]


@primitive("effect", effect="mark")
def mark(*operands, place, backward=False, moved=(), given=()):
    """A place where a debugger may stop; only in programs that are made for one.

    Its value is the number of the visit. The mark in the backward pass takes the number of the one that it belongs to.

    Args:
        *operands: the leaves of the variables of `place`; in a backward pass the number of the visit, then cotangents.
        place: the `MarkedPlace`.
        backward: whether it is the place as the backward pass comes through it.
        moved: backward: indices of the leaves that are differentiated through; the operands are their cotangents.
        given: backward: for each of these whether anything has arrived; else the cotangent is zero.

    Raises:
        InternalError: always; the debugger implements it.
    """
    raise InternalError("effects", "mark is implemented by the debugger")


@mark.infer
def _(*operands, place, backward=False, moved=(), given=()):
    return INT
