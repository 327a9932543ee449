"""Checking the annotations of a function where it is specialised: arguments before its body is inferred, the result after."""

from __future__ import annotations

from ...ir.node import Graph
from ...utils.errors import CompileError
from ..arguments.annotate import check_value
from ..values.values import NEVER, Val
from .frames import Frame, located


def check_arguments(frame: Frame, graph: Graph) -> None:
    """Check the arguments of a function against its annotations.

    Raises:
        CompileError: one does not fit, at its parameter.
    """
    signature = graph.signature
    if signature is None:
        return
    names = frame.spec.graph.flags.setdefault("dims", {})
    for index, annotation in signature.annotations.items():
        if index >= 0:
            what = f"argument '{signature.names[index]}' of {graph.name}"
            try:
                check_value(frame.env[graph.params[index]], annotation, names, what)
            except CompileError as error:
                raise error.at(located(graph.params[index].origin, frame.spec)) from None


def check_result(frame: Frame, graph: Graph, result: Val) -> None:
    """Check the result of a function against its annotation.

    Raises:
        CompileError: it does not fit, where it is returned.
    """
    signature = graph.signature
    if signature is None or -1 not in signature.annotations or result is NEVER:
        return
    try:
        names = frame.spec.graph.flags["dims"]
        check_value(result, signature.annotations[-1], names, f"the result of {graph.name}")
    except CompileError as error:
        origin = graph.output.origin if graph.output.origin.loc else graph.origin
        raise error.at(located(origin, frame.spec)) from None
