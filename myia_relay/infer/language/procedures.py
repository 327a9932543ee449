"""Functions that change their parameters in place, and their calls; the idea is in `frontend.procedures`.

A program that changes arguments of its own returns, beside its result, their final values, and a plan for each that says which of
the caller's objects they are written into (`changing`). Names tell how deep in an argument something is changed
(`frontend.procedures.ParameterChange`); nodes tell which entries are as they were. The caller may know each list and array in an
argument by other names, so each must end with what it ends with in CPython. A change is refused where a plan cannot say which
object a final value belongs to: where a list whose entries are lists or arrays has them replaced or moved. What is stored in an
object of the caller's is a new object, as results are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...abstract.types import Array, List, Struct, Type, is_array_entry
from ...ir import syntax as S
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.syntax import Handing
from ...utils.attributes import own_attribute
from ...utils.errors import ParseError, TypeError_
from ..engine.conflicts import holds_mutable, refuse_conflicts, refuse_or
from ..engine.engine import Engine
from ..engine.frames import Frame
from ..engine.handing import FINALS, AfterCall, is_finals, is_mutable, is_none, proper
from ..engine.program import ArgumentChange
from ..values.kinds import is_any_array, is_list, is_run_time, kind_of
from ..values.sharing import require_own
from ..values.treedef import tree_structure
from ..values.values import NEVER, NONE_VAL, Dyn, Listed, Seq, TaggedUnion, Val
from .registry import handles


@handles(S.finals)
async def finals(engine: Engine, frame: Frame, node: Apply) -> Val:
    """What a function returns that changes parameters."""
    result, *pairs = (engine.value(frame, a) for a in node.args)
    out = []
    for old, new, rebinds in zip(pairs[::2], pairs[1::2], node.attrs["rebinds"], strict=True):
        mutable = kind_of(old) is not None or not rebinds and holds_mutable(old)
        out.append(new if mutable else NONE_VAL)
    source = frame.spec.source
    if isinstance(source, Graph) and is_outermost(engine, frame, source, inside=True):
        note_plans(engine, source, list(zip(pairs[::2], out, strict=True)))
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
    outermost = site is None and is_outermost(engine, frame, graph)
    changed: dict[int, Val] = {}
    cls = None
    if isinstance(result, Seq) and is_finals(result):
        cls, finals = result.cls, zip(graph.flags["kept"], result.elems[1:], strict=True)
        changed = {index: final for index, final in finals if not is_none(final)}
    if outermost:
        note_raising(engine, graph, parameters_given(graph, *given), changed, result is NEVER)
    elif result is NEVER and graph.signature is not None:  # what is changed before a raise is seen after it, too
        kept = graph.flags.get("kept", ())
        changed = {k: v for k, v in parameters_given(graph, *given).items() if k in kept and holds_mutable(v)}
    if not changed:
        return proper(result)
    assert graph.signature is not None
    args, kwargs = given
    if outermost:
        known = parameters_given(graph, args, kwargs)
        for index in [index for index in changed if index not in known]:  # a default value
            _refuse(graph, index, changed[index], site)
        return hand_out(engine, graph, cls, proper(result), changed, known)
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
    if result is NEVER:
        _refuse_unseen(engine, frame, site, changed, parameters)
        return result
    others = _others(engine, frame, parameters, site.args)
    engine.kept.append(AfterCall(frame.spec, site, 0, cls, None, others))
    out: list[Val] = [NONE_VAL] * len(parameters)
    for index, k in placed.items():
        if index in changed:
            out[k] = changed[index]
    return Seq(FINALS, (proper(result), *out), (), (cls, graph, tuple(parameters)))


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


def _refuse_unseen(engine: Engine, frame: Frame, site: Apply, changed: dict[int, Val], parameters: list) -> None:
    """Refuse changes by a call that always raises, where the caller of the program would not see them afterwards.

    What would follow the call, where they are refused otherwise, is not inferred.

    Raises:
        ParseError: something else may see the change.
    """
    for node in site.graph.nodes:  # type: ignore[union-attr]
        after = isinstance(node.fn, Constant) and node.fn.value is S.after_call and node.args[1] is site
        if after and parameters[node.attrs["position"]] in changed:
            kind = kind_of(engine.value(frame, node.args[0])) or "dict"
            refuse_conflicts(engine, frame, node, kind, lambda reason, at=node.origin: ParseError(reason, at))


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
        refuse_or(engine, frame, node, kind, error, lambda: require_own(engine.shared, old))
    within = _entries(old)
    for conflicts in node.attrs["entries"]:
        if not within:
            break
        for kind in sorted({_kind_of_entry(v) for v in within}):
            refuse_conflicts(engine, frame, node, kind, error, conflicts=conflicts)
        within = [inner for v in within for inner in _entries(v)]
    if _entries(old) and node.attrs["entries"] and is_run_time(old) and not node.attrs["own"]:
        raise TypeError_(
            f"entries of '{node.attrs['name']}' are changed in place here, and whether something else holds them is not known, as "
            "they came out of a call"
        )
    return new


def _kind_of_entry(value: Any) -> str:
    """What an entry that `_entries` gives is: "array", "list" or "dict"; one that only holds such is like a dict."""
    if isinstance(value, Array | List):
        return "array" if isinstance(value, Array) else "list"
    if isinstance(value, Struct):
        return "list" if value.kind == "list" else "dict"
    return kind_of(value) or "dict"


def _entries(value: Any) -> list[Any]:
    """The entries of a list, a dict or a tuple that are, or may hold, arrays or lists, or their types; of a value, or of a type."""
    if isinstance(value, Listed) or is_any_array(value):
        return []
    if isinstance(value, Dyn):
        value = value.type
    if isinstance(value, List | Struct):
        elems = value.elems if isinstance(value, Struct) else (value.elem,)
        return [e for e in elems if isinstance(e, Array | List | Struct)]
    if isinstance(value, Seq):
        return [v.type if isinstance(v, Dyn) else v for v in value.elems if holds_mutable(v)]
    return []


# Arguments of the program itself.


class _Unclear(Exception):
    """Which objects of the caller's final values belong to cannot be told; the message says why."""


class _Seen(NamedTuple):
    """A suspicion of `Engine.suspected`."""

    confirm: Callable[[Handing, bool], bool]


def is_outermost(engine: Engine, frame: Frame, graph: Graph, inside: bool = False) -> bool:
    """Whether a function is the one that Python calls, called from the entry.

    Args:
        engine: the engine.
        frame: the caller's, or
        graph: what is called.
        inside: whether it is the function's own.
    """
    function = engine.outermost.function
    if function is None or graph.signature is None or graph.signature.function is not function:
        return False
    spec = frame.spec.caller if inside else frame.spec
    return spec is not None and spec.key == ("entry",)


def parameters_given(graph: Graph, args: list[Val], kwargs: dict[str, Val]) -> dict[int, Val]:
    """Parameter -> its argument, for all that a call gives arguments for."""
    assert graph.signature is not None
    names = graph.signature.names
    known = dict(enumerate(args[: graph.signature.positional]))
    return known | {names.index(name): value for name, value in kwargs.items() if name in names}


def note_raising(engine: Engine, graph: Graph, given: dict[int, Val], changed: dict[int, Val], always: bool) -> None:
    """Note arguments that a function may change before it raises, and that are as they were where it returns.

    Args:
        engine: the engine.
        graph: the function.
        given: parameter -> its argument.
        changed: the parameters that have final values.
        always: whether it never returns.
    """
    assert graph.signature is not None
    found = engine.outermost.changes if always else engine.outermost.before_raising
    for name, (_, origin) in graph.flags.get("refusals", {}).items():
        index = graph.signature.names.index(name)
        as_it_was = index not in changed or engine.outermost.plans.get(index) is None
        if index in given and holds_mutable(given[index]) and as_it_was:
            found.append(ArgumentChange(_position(engine, given[index]), name, None, (), origin))


def _position(engine: Engine, value: Val) -> int:
    """Which argument of the program a value is."""
    return next(k for k, v in enumerate(engine.outermost.given) if v is value)


def note_plans(engine: Engine, graph: Graph, pairs: list[tuple[Val, Val]]) -> None:
    """Note how the parameters that a function keeps are written back, given their values before and after."""
    for index, change, (old, new) in zip(graph.flags["kept"], graph.flags["changes"], pairs, strict=True):
        try:
            plan = None if is_none(new) else _plan(old, new, change, 0)
        except _Unclear as why:
            plan = why
        engine.outermost.plans[index] = plan


def hand_out(
    engine: Engine, graph: Graph, spec: Any, result: Val, changed: dict[int, Val], given: dict[int, Val]
) -> Val:
    """What the program returns: the result proper and the final values of changed arguments; notes the changes.

    Args:
        engine: the engine.
        graph: the function.
        spec: its specialisation.
        result: the result proper.
        changed: parameter -> its final value.
        given: parameter -> the argument, for all that arguments are given for.

    Raises:
        TypeError_: it cannot be told which objects they belong to.
        ParseError: the caller would see copies, or nothing of them.
    """
    assert graph.signature is not None
    names, finals = graph.signature.names, []
    for index, final in changed.items():
        plan, (_, origin) = engine.outermost.plans.get(index), graph.flags["refusals"][names[index]]
        if isinstance(plan, _Unclear):
            raise TypeError_(f"'{names[index]}' is changed in place here, and belongs to the caller: {plan}", origin)
        if plan is None:
            continue
        number = graph.flags["kept"].index(index)
        for k, value in given.items():
            if k != index and holds_mutable(value):
                flat = is_list(value) and not any(map(holds_mutable, _known_entries(value)))
                _refuse_stored(engine, graph, spec, (number, k, flat), f"'{names[index]}'", origin)
        paths = tuple(path for path, which in graph.flags["itself"] if which == number)
        for path in paths:
            result = _without(result, path)
        position = _position(engine, given[index])
        parameter = engine.outermost.parameter(position)
        engine.outermost.changes.append(ArgumentChange(position, names[index], plan, paths, origin, parameter))
        finals.append(final)
    return Seq("tuple", (result, *finals)) if finals else result


def _without(result: Val, path: tuple[int, ...]) -> Val:
    """A result without one of its entries."""
    if not path or not isinstance(result, Seq):
        return NONE_VAL
    return Seq(
        result.kind,
        tuple(NONE_VAL if k == path[0] else v for k, v in enumerate(result.elems)),
        result.fields,
        result.cls,
    )


def _refuse_stored(
    engine: Engine, graph: Graph, spec: Any, where: tuple[int, int, bool], what: str, origin: Any
) -> None:
    """Refuse a function that stores one argument in another: the caller would see a copy.

    Args:
        engine: the engine.
        graph: the function.
        spec: its specialisation.
        where: which of the parameters that it keeps it may store in, which parameter, and whether that is a list of numbers.
        what: the name of the first, as it is called.
        origin: the place of the change.

    Raises:
        ParseError: it does.
    """
    assert graph.signature is not None
    name, holds = graph.signature.names[where[1]], graph.flags["holds"]
    text = f"{what} belongs to the caller, and may hold '{name}' itself after this; store a copy of '{name}'"
    if holds(*where, Handing()):
        raise ParseError(text, origin)
    seen = _Seen(lambda calls, arrays: holds(*where, calls))
    engine.suspected.append((spec, seen, True, ParseError(text, origin)))


def _plan(old: Val, new: Val, change: Any, level: int) -> Any:
    """The plan by which an object of the caller's gets its final value; None if it stays as it is.

    Args:
        old, new: its values before and after.
        change: how the argument is changed that it is part of, and
        level: how deep in that it is.

    Raises:
        _Unclear: there is none.
    """
    if _same(old, new):
        return None
    if is_any_array(old):
        if tree_structure(new, capture=lambda closure: ()) != tree_structure(old):
            raise _Unclear("an array becomes something else")
        return "set"
    if isinstance(old, Dyn) and isinstance(old.type, List):
        if not isinstance(new, Dyn) or new.type != old.type:
            raise _Unclear("a list becomes something else")
        return _plan_of_any(old.type, change, level)
    if is_list(old):
        if not is_list(new):
            raise _Unclear("a list becomes something else")
        entries = _known_entries(old)
        if not any(map(holds_mutable, entries)):
            return "set"
        if change.replaced <= level:
            raise _Unclear(MOVED)
        return ["list", _plans(entries, list(new.elems) if isinstance(new, Seq) else None, change, level)]
    if isinstance(old, Seq) and old.kind in ("tuple", "record"):
        if not isinstance(new, Seq) or new.kind != old.kind or len(new.elems) != len(old.elems):
            raise _Unclear("a tuple becomes something else")
        return parts_plan(old.cls, _plans(list(old.elems), list(new.elems), change, level))
    if not isinstance(old, Seq) or old.kind != "dict":
        raise _Unclear("this is no list, array or dict")
    entries = _known_entries(old)
    if not isinstance(new, Seq) or new.kind != "dict":
        raise _Unclear("what keys a dict has in the end depends on values")
    before, after = dict(zip(old.fields, entries, strict=True)), dict(zip(new.fields, new.elems, strict=True))
    keys = list(after)
    if keys[: len(before)] != list(before):
        raise _Unclear("keys are taken out of a dict, or out of their order")
    plans = {}
    for key, value in after.items():
        entry = before.get(key)
        if entry is None or not holds_mutable(entry):
            plans[key] = None if entry is not None and _same(entry, value) else "new"
        elif not change.replaces(level, key):
            plans[key] = _plan(entry, value, change, level + 1)
        elif _same(entry, value):
            plans[key] = None
        elif change.deep > level:
            raise _Unclear(
                f"entries are assigned, and entries are changed in place, and which happened to '{key}' is not known; do one of "
                "them, or return a new dict"
            )
        else:
            plans[key] = "new"
    return ["dict", plans]


MOVED = (
    "it holds lists, arrays or dicts, and which of them is where afterwards is not known in compiled code; change what "
    "is in them, or return a new list"
)


def _plan_of_any(t: Type, change: Any, level: int) -> Any:
    """The plan for each of the entries of a list of run-time length, and for such a list: they have only their type in common.

    Args:
        t: the type of the object.
        change: how the argument is changed that it is part of, and
        level: how deep in that it is.

    Raises:
        _Unclear: there is none.
    """
    if isinstance(t, List):
        if not is_mutable(t.elem):
            return "set"
        if change.replaced <= level:
            raise _Unclear(MOVED)
        return ["every", _plan_of_any(t.elem, change, level + 1)]
    if isinstance(t, Array) or is_array_entry(t):
        return "set"
    if isinstance(t, Struct) and t.kind == "dict":
        entries = list(zip(t.fields, t.elems, strict=True))
        if any(is_mutable(e) and change.replaces(level, k) for k, e in entries):
            raise _Unclear(MOVED)
        return ["dict", {k: _plan_of_any(e, change, level + 1) if is_mutable(e) else "new" for k, e in entries}]
    if isinstance(t, Struct) and t.kind in ("tuple", "record"):
        return parts_plan(t.cls, [_plan_of_any(e, change, level + 1) if is_mutable(e) else None for e in t.elems])
    if isinstance(t, Struct) and t.kind == "list" and (change.replaced > level or not any(map(is_mutable, t.elems))):
        return ["list", [_plan_of_any(e, change, level + 1) if is_mutable(e) else "new" for e in t.elems]]
    raise _Unclear("which of its entries change is not known in compiled code")


def parts_plan(cls: Any, plans: list[Any]) -> Any:
    """The plan of a tuple or of an instance of a dataclass, of which the parts that are objects may change."""
    plans = [None if plan == "new" else plan for plan in plans]
    names = None if cls is None or issubclass(cls, tuple) else tuple(cls.__dataclass_fields__)
    return ["parts", names, plans]


def _plans(old: list[Any], new: list[Any] | None, change: Any, level: int) -> list[Any]:
    """The plans of entries; `new` is None where they are in a run-time list."""
    if new is None:
        return [_blind(entry) for entry in old]
    out = []
    for before, after in zip(old, new, strict=False):
        if holds_mutable(before):
            out.append(_plan(before, after, change, level + 1))
        else:
            out.append(None if _same(before, after) else "new")
    return out


def _blind(old: Val) -> Any:
    """The plan of an object of which it is not known whether it has changed.

    Raises:
        _Unclear: there is none.
    """
    if not holds_mutable(old):
        return "new"
    if is_any_array(old):
        return "set"
    entries = _known_entries(old)
    if is_list(old):
        return ["list", [_blind(entry) for entry in entries]] if any(map(holds_mutable, entries)) else "set"
    raise _Unclear("which of its entries change is not known in compiled code")


def _known_entries(value: Val) -> list[Val]:
    """The entries of a structure of known length, and none of a list of numbers."""
    return list(value.elems) if isinstance(value, Seq) else []


def _same(one: Val, other: Val) -> bool:
    """Whether two values are one, by their nodes."""
    if one is other:
        return True
    if isinstance(one, Seq) and not one.elems or isinstance(other, Seq) and not other.elems:
        return isinstance(one, Seq) and isinstance(other, Seq) and one.kind == other.kind and one.elems == other.elems
    first: list[Node] = []
    second: list[Node] = []
    structures = [tree_structure(v, nodes, capture=lambda closure: ()) for v, nodes in ((one, first), (other, second))]
    return structures[0] == structures[1] and first == second
