"""The entry point: a Python function becomes a parsed graph."""

from __future__ import annotations

import types
from collections import OrderedDict

from ..ir.node import Graph
from ..ir.syntax import FUNCTION
from ..utils.compiling import compiling
from ..utils.errors import CompileError, ParseError
from ..utils.source import Origin, is_ours
from .context import ParseContext
from .functions import outer_signature, parse_body
from .procedures import rounds
from .text.scope import NeedsCell
from .text.source import find

_GRAPHS: OrderedDict[tuple[types.FunctionType, bool], tuple] = OrderedDict()
_GRAPHS_KEPT = 1024


@compiling()
def parse(function: types.FunctionType, marked: bool = False) -> Graph:
    """The parsed graph of a function; the same graph as long as the function's code and defaults stay the same.

    Args:
        function: a plain Python function (not a bound method, not a class).
        marked: whether the graph tells where statements begin and end, for a debugger (`frontend.marks`).

    Raises:
        ParseError: syntax outside of the language; all places of one function are reported together.
        NameError_: a local that is read before it is bound, or an undefined name in an annotation.
    """
    version = (function.__code__, function.__defaults__, tuple((function.__kwdefaults__ or {}).items()))
    known = _GRAPHS.get(key := (function, marked))
    if (
        known is not None
        and known[0] is version[0]
        and all(a is b for a, b in zip(_flat(known), _flat(version)))
        and not known[-1].flags.get("stale")
        and known[-1].flags["round"] == rounds()
        and known[-1].flags["procedures"].holds()
    ):
        _GRAPHS.move_to_end(key)
        return known[-1]
    graph = None
    while graph is None:
        try:
            graph = _parse(function, marked)
        except NeedsCell as need:
            need.cells.add(need.name)
    _GRAPHS[key] = (*version, graph)
    if len(_GRAPHS) > _GRAPHS_KEPT:
        _GRAPHS.popitem(last=False)
    return graph


def _flat(version: tuple) -> tuple:
    """Defaults in the form in which they are compared: one by one, by identity."""
    return (version[1], *(value for pair in version[2] for value in pair))


def _parse(function: types.FunctionType, marked: bool) -> Graph | None:
    # None where it is to be parsed again, as the syntax tree has changed.
    source = find(function)
    graph = Graph(function.__name__, origin=Origin(source.loc(source.node)))
    graph.flags["round"] = rounds()
    graph.flags[FUNCTION] = function
    p = ParseContext(source, source.node, graph)
    p.marked = marked
    graph.flags["procedures"] = p.procedures
    try:
        graph.signature = outer_signature(source)
        parse_body(p)
    except ParseError as error:
        p.errors.append(error)
    except CompileError:
        # A name may be missing only because the statement that binds it was refused.
        if not p.errors:
            raise
    except RecursionError:
        raise ParseError("this function is nested too deeply; split it up", Origin(source.loc(source.node))) from None
    if [e for e in p.errors if e.another is not None and e.another()]:  # all of them are asked
        return None
    if p.errors:
        first, *rest = p.errors
        notes = [*first.notes, *[(e.message, e.loc) for e in rest]]
        raise ParseError(first.message, first.origin, *notes) from None
    return graph


def parse_marked(function: types.FunctionType) -> Graph:
    """The parsed graph of a function, with marks for a debugger unless it is one of this package."""
    return parse(function, not is_ours(function.__code__.co_filename))
