"""The meaning of the language's own constructs: displays, branches, assertions, formatting.

`SYNTAX` maps each operation of `ir.syntax` to a coroutine `(engine, frame, node) -> Val`. Loops are in `infer.language.loops`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...abstract.types import tuple_of
from ...ir import syntax as S
from ...ir.node import Apply, Constant, Node
from ...prims.api.operators import truth as numeric_truth
from ...prims.ops.control import cond
from ...prims.ops.effects import check, raise_
from ...utils.errors import CompileError, TypeError_, ValueError_
from ...utils.raising import ITSELF
from ..arguments.annotate import check_value
from ..engine.cells import Recaptured, after_branch, changed_in_branch, held, with_contents
from ..engine.engine import Engine, conform
from ..engine.frames import Frame, emit, explode, pack, packed_type
from ..values.kinds import is_data, is_run_time, possible
from ..values.protocols import is_dataclass, starred, truth_method
from ..values.sharing import mark_like
from ..values.treedef import Mismatch, TreeDef, describe, join, tree_structure, unknown
from ..values.values import (
    NEVER,
    NONE_VAL,
    UNBOUND_VAL,
    Bound,
    Cell,
    ClosureVal,
    Dyn,
    Iter,
    NeverVal,
    Raised,
    Seq,
    Spread,
    Static,
    TaggedUnion,
    Text,
    UnboundVal,
    Val,
)
from . import data
from .iterables import plain, unwrapped
from .unions import dispatch, each_option, narrowed, test_of, without_choices
from .variables import MEANINGS, unbound

SYNTAX: dict[S.Syntax, Callable] = dict(MEANINGS)


def meaning(op: S.Syntax):
    """Register the meaning of a construct."""

    def register(fn):
        SYNTAX[op] = fn
        return fn

    return register


def spread(values: list[Val]) -> tuple[Val, ...]:
    """Values with starred ones spread."""
    out: list[Val] = []
    for value in values:
        out.extend(starred(value) if isinstance(value, Spread) else (value,))
    return tuple(out)


@meaning(S.make_tuple)
async def make_tuple(engine: Engine, frame: Frame, node: Apply) -> Val:
    return Seq("tuple", spread([engine.value(frame, a) for a in node.args]))


@meaning(S.make_list)
async def make_list(engine: Engine, frame: Frame, node: Apply) -> Val:
    from .lists import concatenated

    values = [engine.value(frame, a) for a in node.args]
    if not any(isinstance(v, Spread) and is_run_time(v.value) for v in values):
        return Seq("list", spread(values))
    out: Val = Seq("list", ())
    for value in values:
        if not isinstance(value, Spread):
            value = Spread(Seq("list", (value,)))
        elif not is_run_time(value.value):
            value = Spread(Seq("list", starred(value)))
        out = concatenated(engine, frame, out, value.value)
    return out


@meaning(S.make_dict)
async def make_dict(engine: Engine, frame: Frame, node: Apply) -> Val:
    keys = node.attrs["keys"]
    values = dict(zip(keys, [engine.value(frame, a) for a in node.args], strict=True))
    return Seq("dict", tuple(values.values()), tuple(values))


@meaning(S.star)
async def star(engine: Engine, frame: Frame, node: Apply) -> Val:
    from .structures import as_sequence

    value = unwrapped(await plain(engine, frame, engine.value(frame, node.args[0]), node))
    if isinstance(value, Iter):
        value = await engine.call(frame, Static(list), [value], {}, node.origin)
    if not isinstance(value, Seq) and not is_run_time(value):
        raise TypeError_(f"*: cannot spread {describe(value)}; its length must be known at compile time")
    if isinstance(value, Seq) and value.kind not in ("tuple", "list"):
        value = Seq("tuple", tuple(as_sequence(engine, frame, value, "spread")))
    return Spread(value)


@meaning(S.double_star)
async def double_star(engine: Engine, frame: Frame, node: Apply) -> Val:
    value = engine.value(frame, node.args[0])
    if not isinstance(value, Seq) or value.kind != "dict":
        raise TypeError_(f"**: expected a dict with string keys, not {describe(value)}")
    return Spread(value, True)


@meaning(S.unpack)
async def unpack(engine: Engine, frame: Frame, node: Apply) -> Val:
    value = unwrapped(await plain(engine, frame, engine.value(frame, node.args[0]), node))
    if isinstance(value, TaggedUnion):

        async def of_option(region: Frame, option: Val) -> Val:
            return unpacked(engine, region, node, option, ValueError_)

        return await dispatch(engine, frame, value, of_option, node, node.origin)
    return unpacked(engine, frame, node, value)


def unpacked(engine: Engine, frame: Frame, node: Apply, value: Val, wrong: type[CompileError] = TypeError_) -> Val:
    """The parts of a sequence, as its unpacking takes them; `wrong` is the class of the complaint about its length."""
    from .list_methods import unpacked as unpacked_list
    from .structures import as_sequence

    before, starred, after = node.attrs["before"], node.attrs["star"], node.attrs["after"]
    if is_run_time(value):
        return unpacked_list(engine, frame, value, before, starred, after)
    parts = as_sequence(engine, frame, value, "unpack")
    need = before + after
    if len(parts) < need or (len(parts) > need and not starred):
        # CPython's words; a static length makes it a compile-time error.
        detail = (
            f"too many values to unpack (expected {need})"
            if len(parts) > need
            else f"not enough values to unpack (expected {'at least ' if starred else ''}{need}, got {len(parts)})"
        )
        raise wrong(detail)
    if not starred:
        return Seq("tuple", tuple(parts))
    middle = Seq("list", tuple(parts[before : len(parts) - after]))
    return Seq("tuple", (*parts[:before], middle, *parts[len(parts) - after :]))


async def truth(engine: Engine, frame: Frame, value: Val) -> Dyn | bool:
    """Python's truth value: a bool where it is known at compile time, else a bool scalar."""
    from .lists import length

    if isinstance(value, Static):
        return bool(value.value)
    if isinstance(value, Seq):
        if (own := truth_method(value)) is not None:
            from .calls import call_value

            found = await call_value(engine, frame, Static(own), [value], {}, frame.builder.origin, None)
            return await truth(engine, frame, found)
        return is_dataclass(value) or len(value.elems) > 0
    if is_run_time(value):
        count = length(engine, frame, value)
        return count.node.value > 0 if count.known else emit(frame, "ne", count, frame.constant(0))
    if is_data(value):
        for name in ("__bool__", "__len__"):
            if data.defines(value, name):
                raise TypeError_(
                    f"the truth value of {describe(value)} is that of its {name}; call it by a name of its own"
                )
        return data.test(frame, value, [n for n in possible(value) if n])
    if isinstance(value, Dyn):
        if value.known:
            return bool(value.node.value)
        result = numeric_truth(frame.builder, frame.var(value)).node
        return bool(result.value) if isinstance(result, Constant) else Dyn(result)
    if isinstance(value, ClosureVal):
        return True
    if isinstance(value, Iter) and value.kind == "range":
        from .ranges import has_numbers

        found = has_numbers(engine, frame, value)
        return found.node.value if found.known else found
    if isinstance(value, Iter):
        return True if value.is_iterator else await truth(engine, frame, value.parts[0])
    if isinstance(value, TaggedUnion):

        async def of_option(region: Frame, option: Val) -> Val:
            part = await truth(engine, region, option)
            return region.constant(part) if isinstance(part, bool) else part

        return await dispatch(engine, frame, value, of_option, None, frame.builder.origin)
    if isinstance(value, Bound):
        raise TypeError_("a method has no truth value; call it, with () behind its name")
    raise TypeError_(f"{describe(value)} has no truth value")


@meaning(S.if_)
async def if_(engine: Engine, frame: Frame, node: Apply) -> Val:
    condition, then, orelse = node.args
    decided = await truth(engine, frame, engine.value(frame, condition))
    if isinstance(decided, bool):
        graph = (then if decided else orelse).value
        scope = frame.scope()
        return scope.leave(await engine.body(scope, graph))
    arms = arms_of(engine, frame, node, lambda graph, facts: _arm(engine, graph, facts))
    return await branch(engine, frame, decided, arms, node)


def arms_of(engine: Engine, frame: Frame, node: Apply, arm: Callable) -> list[Callable]:
    """The two arms of an `if_`, made by `arm(graph, facts)`: `facts` are values that the condition has narrowed there."""
    condition, *graphs = node.args
    known: list[dict] = [{}, {}]
    test = test_of(engine, frame, condition)
    if test is not None and (subject := frame.find(test[0])) is not None:
        sides = data.split(subject, test[1]) or narrowed(engine, frame, subject, test[1])
        if sides is not None:
            known = [{test[0]: part} for part in sides]
    return [arm(graph.value, facts) for graph, facts in zip(graphs, known, strict=True)]


def _arm(engine: Engine, graph, facts: dict):
    """One arm of a branch."""

    async def run(frame: Frame) -> Val:
        for node, value in facts.items():
            frame.env[node] = frame.bring(value)
        return await engine.body(frame, graph)

    return run


async def branch(
    engine: Engine, frame: Frame, condition: Dyn, arms: list[Callable], node: Apply, in_order: bool = False
) -> Val:
    """Emit a `cond` whose arms are inferred by coroutines `(frame) -> Val`, concurrently.

    Args:
        engine: the engine.
        frame: the enclosing frame.
        condition: a bool scalar.
        arms: then, else.
        node: the construct, for its origin and the names of its results.
        in_order: infer the first arm before the second, which depends on it.
    """
    regions = [frame.region("then"), frame.region("else")]
    for region in regions:
        region.at(node.origin)
        region.writes = True
    values: list[Val | None] = [None, None]
    cells: list[Cell] = []

    async def run(i: int) -> None:
        if i and in_order:
            await tasks[0]
        values[i] = await arms[i](regions[i])

    def leaving(i: int) -> Val:
        """What leaves an arm: its value and the cells that the branch changes."""
        return values[i] if values[i] is NEVER else with_contents(regions[i], values[i], cells)

    def treedef_of_type(i: int) -> TreeDef:
        return tree_structure(leaving(i), capture=regions[i].captured)

    tasks = engine.start(run(0)), engine.start(run(1))
    await engine.arms(tasks)
    done = [t for t in tasks if t.done]
    for task in done:
        if task.error is not None:
            raise task.error
    if engine.with_cells:
        cells.extend(changed_in_branch(frame, regions, values, len(done) == 2))
    try:
        # One arm still waits for the result of a recursion: the other's type, with its value forgotten, is that result.
        treedef = (
            unknown(treedef_of_type(tasks.index(done[0])))
            if len(done) == 1
            else join(treedef_of_type(0), treedef_of_type(1))
        )
    except Mismatch as error:
        raise TypeError_(_differ(error, values, node), node.origin) from None
    result = packed_type(treedef)
    frame.at(node.origin)
    apply = frame.graph.apply(
        cond,
        condition.node,
        attrs={"then": regions[0].graph, "orelse": regions[1].graph},
        type=result,
        origin=node.origin,
    )

    def close() -> None:
        """Complete both graphs: their outputs in the agreed form, the same parameters in the same order."""
        for i, region in enumerate(regions):
            region.at(node.origin)
            region.graph.output = pack(region, conform(region, leaving(i), treedef))
        give_imports(apply, (condition.node,), regions)

    if len(done) == 2:
        close()
    else:

        async def later() -> None:
            try:
                for i, task in enumerate(tasks):
                    await task
                    other = treedef_of_type(i)
                    if join(treedef, other) != treedef:
                        engine.recursion.unsettled = True
                        raise Mismatch(treedef, other)
                close()
            except Mismatch:
                engine.late_errors.append(
                    TypeError_(f"the two branches differ in type: {treedef} and {other}", node.origin)
                )
            except CompileError as error:
                engine.late_errors.append(error.at(node.origin))
            except Exception as error:  # a bug of ours, which nobody who waits would hear of
                engine.late_errors.append(error)

        engine.loop.spawn(later())
    if treedef.tag == "never":
        return NEVER
    result = explode(frame, apply, treedef)
    if cells:
        result, *contents = result.elems
        for cell, content in zip(cells, contents, strict=True):
            mark_like(engine.shared, [r.cell(cell) for r in regions if r.has_cell(cell)], [content])
        after_branch(frame, regions, values, cells, contents)
    parts = [v.elems if isinstance(v, Seq) else (v,) for v in (*values, result) if v is not None and v is not NEVER]
    if len({len(p) for p in parts}) == 1:
        for *arms_part, part in zip(*parts):
            mark_like(engine.shared, arms_part, [part])
    else:
        mark_like(engine.shared, [v for v in values if v is not None], [result])
    if any(v in engine.shared for v in values if isinstance(v, Seq)):
        options = result.options if isinstance(result, TaggedUnion) else (result,)
        engine.shared.update(v.node if isinstance(v, Dyn) else v for v in options if isinstance(v, Dyn | Seq))
    return result


def give_imports(apply: Apply, first: Sequence[Node], regions: list[Frame]) -> None:
    """Give an application what its graphs take from the enclosing frame, after its first arguments.

    So again whenever one of the graphs takes more: a branch inside that waits for a recursion is completed later.
    """

    def give() -> None:
        for region in regions:
            region.late = None
        apply.args = (*first, *unify_imports(regions))
        for region in regions:
            region.late = give

    give()


def unify_imports(regions: list[Frame]) -> list[Node]:
    """Give the graphs of sibling regions the same parameters, in the same order; returns the operands."""
    sources = list(dict.fromkeys(n for r in regions for n in r.imports))
    for region in regions:
        extra = [p for p in region.graph.params if p not in set(region.imports.values())]
        params = [region.import_node(n) for n in sources]
        region.graph.params = extra + params
    return sources


def _differ(error: Mismatch, values: list, node: Apply) -> str:
    """The message for branches of different types, naming the variable where there is one."""
    names = node.attrs.get("names", ())
    a, b = error.a, error.b
    left, right = values
    if len(names) == 1 and not isinstance(left, UnboundVal | NeverVal) and not isinstance(right, UnboundVal | NeverVal):
        left, right = Seq("tuple", (left,)), Seq("tuple", (right,))
    if names and isinstance(left, Seq) and isinstance(right, Seq) and len(left.elems) == len(right.elems):
        for name, x, y in zip(names, left.elems, right.elems, strict=False):
            if isinstance(x, UnboundVal | NeverVal) or isinstance(y, UnboundVal | NeverVal):
                continue
            try:
                join(tree_structure(x, capture=lambda c: ()), tree_structure(y, capture=lambda c: ()))
            except Mismatch as inner:
                if name == "$ret":
                    return f"the function returns {inner.a} on one path and {inner.b} on another; {inner.why or 'make them alike'}"
                if not name.startswith("$"):
                    advice = inner.why or "make them alike"
                    return f"'{name}' is {inner.a} after one branch and {inner.b} after the other; {advice}"
    return f"the two branches differ in type: {a} and {b}; {error.why or 'make them alike'}"


@meaning(S.check_bound)
async def check_bound(engine: Engine, frame: Frame, node: Apply) -> Val:
    flag, value = (engine.value(frame, a) for a in node.args)
    name = node.attrs["name"]
    exception, message = unbound(name, node.attrs["free"])
    # A loop is first tried with what is bound before it: a variable that only its iterations bind has no value there, nor a type.
    if value is UNBOUND_VAL or (isinstance(flag, Dyn) and flag.known):
        if value is not UNBOUND_VAL and flag.node.value:
            return value
        return await emit_raise(engine, frame, Raised(exception, Static(message)))
    frame.builder.emit(check, (flag.node,), {"exception": exception, "parts": (message,)})
    return value


@meaning(S.assert_)
async def assert_(engine: Engine, frame: Frame, node: Apply) -> Val:
    condition, message = node.args
    decided = await truth(engine, frame, engine.value(frame, condition))
    if decided is True:
        return NONE_VAL
    graph = message.value

    async def fail(inner: Frame) -> Val:
        text = await engine.body(inner, graph) if graph is not None else None
        return await emit_raise(engine, inner, Raised(AssertionError, text))

    if decided is False:
        return await fail(frame)
    if graph is None:
        frame.builder.emit(check, (decided.node,), {"exception": AssertionError, "parts": ()})
        return NONE_VAL

    async def nothing(inner: Frame) -> Val:
        return NONE_VAL

    return await branch(engine, frame, decided, [nothing, fail], node)


@meaning(S.raise_)
@each_option()
async def raise_statement(engine: Engine, frame: Frame, node: Apply, values: list[Val]) -> Val:
    (value,) = values
    if isinstance(value, Static) and isinstance(value.value, type) and issubclass(value.value, BaseException):
        value = Raised(value.value, None)
    if not isinstance(value, Raised):
        raise TypeError_(f"raise: exceptions must derive from BaseException, not {describe(value)}")
    return await emit_raise(engine, frame, value)


async def emit_raise(engine: Engine, frame: Frame, value: Raised) -> Val:
    """Emit the raising of an exception."""

    async def run(region: Frame, messages: list[Val]) -> Val:
        parts, operands = text_parts(engine, region, messages[0] if messages else None)
        if messages and not isinstance(messages[0], Static | Text):
            parts = ((0, ITSELF, ""),)
        region.builder.emit(raise_, tuple(operands), {"exception": value.cls, "parts": parts, "type": tuple_of()})
        return NEVER

    return await without_choices(engine, frame, [] if value.message is None else [value.message], run)


def text_parts(engine: Engine, frame: Frame, message: Val | None) -> tuple[tuple, list]:
    """A message as parts and operand nodes."""
    from .structures import to_node

    if message is None:
        return (), []
    if isinstance(message, Static):
        return (str(message.value),), []
    if isinstance(message, Text):
        return message.parts, [to_node(frame, o) for o in message.operands]
    return ((0, "s", ""),), [to_node(frame, message)]  # str(x), which is not always format(x): np.float32


@meaning(S.annotate)
async def annotate(engine: Engine, frame: Frame, node: Apply) -> Val:
    value = engine.value(frame, node.args[0])
    annotation = node.args[1].value
    if isinstance(annotation, S.FreeName):
        annotation = engine.free_name(frame, annotation, node.origin)
        annotation = annotation.value if isinstance(annotation, Static) else None
    check_value(value, annotation, frame.spec.graph.flags.setdefault("dims", {}), "the value")
    return value


@meaning(S.recapture)
async def recapture(engine: Engine, frame: Frame, node: Apply) -> Val:
    graphs = {graph for graph, _ in node.attrs["graphs"]}
    cells = frame.known_cells() if engine.with_cells else []
    for value in held(frame, [*[engine.value(frame, a) for a in node.args], *cells]):
        if isinstance(value, ClosureVal) and value.graph in graphs:
            raise Recaptured(node.attrs["name"], node.attrs["again"].make_cell, node.origin)
    return NONE_VAL
