"""Functions that change their parameters in place, and their calls; the idea is in `frontend.procedures`."""

from __future__ import annotations

from typing import Any

from ...abstract.types import Array, List
from ...ir import syntax as S
from ...ir.node import Apply, Constant, Graph
from ...utils.attributes import own_attribute
from ...utils.errors import ParseError, TypeError_
from ..engine.conflicts import holds_mutable, refuse_conflicts
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..engine.handing import FINALS, AfterCall, is_finals, is_none, proper
from ..values.kinds import is_list, is_run_time
from ..values.sharing import require_own
from ..values.values import NEVER, NONE_VAL, Dyn, Listed, Seq, TaggedUnion, Val
from .registry import handles


def kind_of(value: Val) -> str | None:
    """ "array", "list" or "dict" for an object that can be changed in place itself; None for all others."""
    if is_list(value):
        return "list"
    if isinstance(value, Dyn):
        return "array" if isinstance(value.type, Array) else None
    return "dict" if isinstance(value, Seq) and value.kind == "dict" else None


@handles(S.finals)
async def finals(engine: Engine, frame: Frame, node: Apply) -> Val:
    """What a function returns that changes parameters."""
    result, *pairs = (engine.value(frame, a) for a in node.args)
    out = []
    for old, new, rebinds in zip(pairs[::2], pairs[1::2], node.attrs["rebinds"], strict=True):
        mutable = kind_of(old) is not None or not rebinds and holds_mutable(old)
        out.append(new if mutable else NONE_VAL)
    return Seq(FINALS, (result, *out))


def received(
    engine: Engine, frame: Frame, graph: Graph, result: Val, given: tuple[list, dict], site: Apply | None
) -> Val:
    """The result of a call; with the changed arguments, if the call site binds them (`after_call`).

    Args:
        engine: the engine.
        frame: the caller.
        graph: the parsed graph that was called.
        result: what it returned.
        given: the positional and the keyword arguments.
        site: the call as it is written.

    Raises:
        ParseError: an argument was changed, and the call site does not know.
    """
    if result is NEVER or not is_finals(result):
        return result
    assert isinstance(result, Seq)
    kept = graph.flags["kept"]
    changed = {index: final for index, final in zip(kept, result.elems[1:], strict=True) if not is_none(final)}
    if not changed:
        return proper(result)
    args, kwargs = given
    placed: dict[int | None, int] = {}
    parameters: list[int | None] = []
    if site is not None and "changes" in site.attrs and _calls(frame, site, graph):
        names = graph.signature.names
        positional = len(site.args) - len(site.keywords)
        if positional == len(args) and set(site.keywords) == set(kwargs):
            parameters = [k if k < graph.signature.positional else None for k in range(positional)]
            parameters += [names.index(k) if k in names else None for k in site.keywords]
            placed = {parameters[k]: k for k in site.attrs["changes"]}
    for index, final in changed.items():
        if index not in placed:
            _refuse(graph, index, final, site)
    assert site is not None
    others = _others(engine, frame, parameters, site.args)
    engine.kept.append(AfterCall(frame.spec, site, 0, result.cls, None, others))
    out: list[Val] = [NONE_VAL] * len(parameters)
    for index, k in placed.items():
        if index in changed:
            out[k] = changed[index]
    return Seq(FINALS, (proper(result), *out), (), (result.cls, graph, tuple(parameters)))


def _others(engine: Engine, frame: Frame, parameters: list[int | None], nodes: Any) -> tuple:
    """For each argument of a call, which parameter it is, and whether it is a list of numbers; None for what cannot change."""
    values = [engine.value(frame, a) for a in nodes]
    return tuple(
        (parameter, is_list(v) and not _entries(v)) if holds_mutable(v) else None
        for parameter, v in zip(parameters, values, strict=True)
    )


def _calls(frame: Frame, site: Apply, graph: Graph) -> bool:
    """Whether a call as it is written is one of a function itself: not of something that calls it."""
    if not isinstance(site.fn, Constant):
        return False
    value = site.fn.value
    if isinstance(value, S.FreeName):
        value = value.read()
        return (own_attribute(value, "__relay_function__") or value) is graph.signature.function
    return value is graph


def _refuse(graph: Graph, index: int, final: Val, site: Apply | None) -> None:
    """Refuse a change of an argument that nobody would see.

    Raises:
        ParseError: it does.
    """
    name = graph.signature.names[index]
    message, origin = graph.flags["refusals"][name]  # each change notes one
    text = message(kind_of(final) or "list")
    notes = []
    if site is not None and site.origin.loc is not None:
        why = (
            "this call cannot hand the change on: what is called must be a function that is named, outside of a comprehension, "
            "with the arguments one by one"
        )
        notes = [(why, site.origin.loc)]
    raise (TypeError_ if text.startswith("this changes") else ParseError)(text, origin, *notes)


@handles(S.returned)
async def returned(engine: Engine, frame: Frame, node: Apply) -> Val:
    """The result proper of a call that may change arguments."""
    return proper(engine.value(frame, node.args[0]))


@handles(S.after_call)
async def after_call(engine: Engine, frame: Frame, node: Apply) -> Val:
    """An argument after a call that may have changed it.

    Raises:
        ParseError: something else may see the change.
        TypeError_: that is not known.
    """
    old, call = (engine.value(frame, a) for a in node.args[:2])
    if not isinstance(call, Seq) or call.kind != FINALS:
        return old
    position = node.attrs["position"]
    new = call.elems[1 + position]
    if is_none(new):
        return old
    if isinstance(old, TaggedUnion):
        raise TypeError_(f"'{node.attrs['name']}' is changed in place here, and may be an object of several types")
    spec, graph, parameters = call.cls
    others = _others(engine, frame, [parameters[k] for k in node.attrs["positions"]], node.args[2:])
    final = graph.flags["kept"].index(parameters[position])
    engine.kept.append(AfterCall(frame.spec, node, 2, spec, final, others))
    error = lambda reason: ParseError(reason, node.origin)  # noqa: E731
    kind = kind_of(old)
    if kind is not None:
        refuse_conflicts(engine, frame, node, kind != "list", error, whatever=kind == "dict")
        require_own(engine.shared, old)
    within = _entries(old)
    for conflicts in node.attrs["entries"]:
        if not within:
            break
        dicts = any(isinstance(v, Seq) and v.kind == "dict" for v in within)
        for array in (False, True):
            if any(array is isinstance(v, Array) for v in within):
                refuse_conflicts(engine, frame, node, array, error, whatever=dicts, conflicts=conflicts)
        within = [inner for v in within for inner in _entries(v)]
    if _entries(old) and node.attrs["entries"] and is_run_time(old) and not node.attrs["own"]:
        raise TypeError_(
            f"entries of '{node.attrs['name']}' are changed in place here, and whether something else holds them is not known, as "
            "they came out of a call"
        )
    return new


def _entries(value: Any) -> list[Any]:
    """The entries of a list, a dict or a tuple that are, or may hold, arrays or lists, or their types; of a value, or of a type."""
    if isinstance(value, Listed):
        return []
    if isinstance(value, Dyn):
        value = value.type
    if isinstance(value, List):
        return [value.elem] if isinstance(value.elem, Array | List) else []
    if isinstance(value, Seq):
        return [v.type if isinstance(v, Dyn) else v for v in value.elems if holds_mutable(v)]
    return []
