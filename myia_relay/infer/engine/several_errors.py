"""Reporting several independent errors of a program together.

The first error ends inference, wherever it occurs, because attempts at loops and options of unions rely on that. To
find further errors, the program is inferred once more, with a value about which nothing is known in place of the
erroneous operation, and so on until no error is left. Values that are computed from an unknown value are unknown too,
so no error follows from another. Only programs that are refused anyway pay for this.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from ...ir import syntax as S
from ...ir.node import Apply, Constant
from ...ir.walk import operands
from ...utils.errors import CompileError, Hole
from ...utils.source import PACKAGE
from ..values.values import POISON, Seq
from .frames import Frame

MOST = 10  # errors that are reported at most
HOLDING = (S.make_tuple, S.make_list)  # constructs whose results hold their operands as they are
PASSING = (*HOLDING, operator.getitem, S.unpack)  # constructs that do not inspect the elements of a structure
LARGEST = 100  # the largest number of specialisations of a program whose further errors are searched


def poisoned(frame: Frame, node: Apply) -> bool:
    """Whether an operand of an application is, or is a structure that holds, the value of a place with an error."""
    stack = [frame.find(o) for o in operands(node) if not isinstance(o, Constant)]
    deep = not (isinstance(node.fn, Constant) and node.fn.value in PASSING)
    while stack:
        value = stack.pop()
        if value is POISON and not (isinstance(node.fn, Constant) and node.fn.value in HOLDING):
            return True
        if isinstance(value, Seq) and deep:
            stack.extend(value.elems)
    return False


def with_others(first: CompileError, ignored: set, again: Callable[[], CompileError | None]) -> CompileError:
    """An error, with the other errors that are independent of it as notes.

    Args:
        first: the error.
        ignored: the nodes of parsed graphs with errors, extended here.
        again: infers once more and returns the first error outside of what is ignored.
    """
    found: list[CompileError] = []
    error: CompileError | None = first
    while error is not None and len(found) < MOST:
        if error.loc is None or any(error.loc == e.loc for e in found):
            break
        if not isinstance(error, Hole):
            found.append(error)
        if error.node is None or error.node in ignored:
            break
        ignored.add(error.node)
        try:
            error = again()
        except Exception:  # follow-up errors of unknown values are not reported
            break
    # What follows a refusal inside the package's own library is not the user's mistake.
    own = [e for e in found[1:] if e.loc is not None and not e.loc.file.startswith(PACKAGE)]
    first.notes.extend((f"also wrong: {e.message}", e.loc) for e in own)
    return first
