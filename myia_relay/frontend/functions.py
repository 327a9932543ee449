"""Functions: parameters, closures, annotations.

An inner function becomes a graph nested in the graph where it is defined; its captured variables are pointers to nodes
of the outer graphs. A function may refer to one that is defined further down (mutual recursion). It is then kept
pending and parsed at its first use; the names that it needs must be bound by then.
"""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable, Set

from ..abstract.annotations import TensorAnnotation, hidden_triangle
from ..ir import syntax
from ..ir.node import Apply, Constant, Graph, Node
from ..ir.syntax import FreeName, Signature, new_cell
from ..library.triangles import TRIANGLES
from ..utils.errors import CompileError, NameError_, nearest
from ..utils.source import Origin
from ..utils.trampoline import run
from .blocks import block
from .context import RETURN, BlockState, ParseContext
from .marks import enters, leaves
from .objects import applies, objects
from .ownership import meets
from .refusals import check_kind
from .text import scope as scopes
from .text.source import Source
from .text.tree import FunctionNode, walk


class InnerFunction:
    """An inner function.

    Args:
        p: the function around it.
        node: its `def` or `lambda`.
        graph: its graph.
    """

    def __init__(self, p: ParseContext, node: FunctionNode, graph: Graph):
        self.definer = p
        self.node = node
        self.graph = graph
        self.inner = ParseContext(p.source, node, graph, p)
        self.missing: list[str] = []

    def captured_values(self) -> list[Node]:
        """The nodes that it captures, as far as they are known."""
        return [node for node, _ in self.inner.captures.values() if node is not None]

    def capture(self, name: str, value: Node, flag: Node | None) -> None:
        """Bind a name of the outer functions to a node."""
        self.inner.captures[name] = value, flag
        owner: ParseContext | None = self.definer
        while owner is not None and not owner.is_local(name):
            owner = owner.outer
        if owner is not None:
            uses = [n for n in walk(self.node) if isinstance(n, ast.Name) and n.id == name]
            use = min(uses, key=lambda n: (n.lineno, n.col_offset), default=self.node)
            owner.captured_by.setdefault(name, []).append((self.graph, self.definer.origin(use).loc))

    def resolve(self, user: ParseContext, at: ast.AST | Origin) -> None:
        """Parse it: it is about to be used, so everything that it captures must be bound.

        Raises:
            NameError_: a variable that it captures is not bound yet.
            ParseError: it captures a variable that was bound in a branch after its definition.
        """
        del self.definer.pending[self.graph]
        for name in self.missing:
            value, flag = _value_of(self.definer, name)
            if value is None:
                raise NameError_(
                    f"'{self.graph.name}' is used here, but the variable '{name}' that it reads is not bound yet; "
                    f"bind '{name}' first",
                    user.origin(at),
                )
            if not _visible_from(value, self.graph.parent):
                raise user.refuse(
                    f"'{self.graph.name}' reads '{name}', which is bound in a branch after the function was "
                    f"defined; bind '{name}' before the definition",
                    at,
                )
            self.capture(name, value, flag)
        parse_body(self.inner)


def _value_of(p: ParseContext, name: str) -> tuple[Node | None, Node | None]:
    if p.is_local(name):
        return p.state.env.get(name), p.state.env.get(f"$bound.{name}")
    return p.captures.get(name, (None, None))


def _visible_from(node: Node, graph: Graph | None) -> bool:
    owner = getattr(node, "graph", None)
    while owner is not None and graph is not None:
        if graph is owner:
            return True
        graph = graph.parent
    return owner is None


def closure(
    p: ParseContext, node: ast.FunctionDef | ast.Lambda, own: str | None = None, later: Set[str] = frozenset()
) -> Constant:
    """The constant that holds the graph of an inner function.

    Args:
        p: the function around it.
        node: its `def` or `lambda`.
        own: the variable that it is about to be bound to, by which it may call itself.
        later: names of functions that are defined further down.

    Raises:
        NameError_: it reads a variable that has no value yet.
    """
    name = node.name if isinstance(node, ast.FunctionDef) else "<lambda>"
    graph = Graph(name, parent=p.state.graph, origin=p.origin(node))
    value = Constant(graph, origin=p.origin(node), name=own)
    record = InnerFunction(p, node, graph)
    graph.signature = nested_signature(p, node)
    p.closures[graph] = record
    for free in sorted(scopes.free_names(node)):
        if (not p.is_local(free) and free not in p.captures) or p.cell(free) is not None:
            continue
        if free == own:
            record.capture(free, value, None)
            continue
        captured, flag = (None, None) if free in later else _value_of(p, free)
        if captured is None:
            record.missing.append(free)
        else:
            record.capture(free, captured, flag)
    # A function that calls a pending one waits too: the pending one may need the name that is bound to this one.
    waits = any(
        isinstance(v, Constant) and isinstance(v.value, Graph) and v.value in p.pending
        for v in record.captured_values()
        if v is not value
    )
    if own is not None and (record.missing or waits):
        p.pending[graph] = record
    elif not record.missing:
        parse_body(record.inner)
    else:
        raise NameError_(
            f"this function reads '{record.missing[0]}', which has no value yet where the function is made; bind it before, or "
            f"write it as a 'def', which may call itself and functions that are defined further down",
            p.origin(node),
        )
    return value


def parse_body(p: ParseContext) -> None:
    """Parse parameters and body of a function into its graph."""
    check_kind(p)
    graph, state = p.root, p.state
    for name in sorted(p.scope.cells):
        p.cells[name] = p.apply(new_cell, at=p.node, attrs={"name": name}, name=name)
    notes = graph.signature.annotations
    for k, arg in enumerate(scopes.parameters(p.node)):
        param = triangular(p, graph.add_parameter(arg.arg, origin=p.origin(arg)), notes.get(k), arg)
        if arg.arg in p.cells:
            p.put(arg.arg, param, arg)
        else:
            state.env[arg.arg] = param
            if arg.arg in p.kept:
                p.returned.add(param)
    if p.marked:
        enters(p)
    if isinstance(p.node, ast.Lambda):
        p.here = set()
        try:
            graph.output = p.expr(p.node.body)
        except RecursionError:
            raise p.refuse("this expression is nested too deeply; give names to parts of it", p.node) from None
        if p.marked:
            leaves(p, graph.output)
        return
    run(block(p, p.node.body, set(p.kept), "function"))
    end: BlockState = p.state
    for record in [r for r in p.pending.values() if r.definer is p]:
        # It is never used. It is parsed anyway if possible, because it may contain what must be refused.
        if all(_value_of(p, name)[0] is not None for name in record.missing):
            record.resolve(p, record.node)
    graph.output = end.dead if end.dead is not None else triangular(p, end.env["$ret"], notes.get(-1), p.node)
    if p.marked and end.dead is None:
        leaves(p, graph.output)
    if p.kept:
        keep(p)
    assert end.dead is not None or end.jumped or end.status == RETURN


def keep(p: ParseContext) -> None:
    """Let a function return the parameters that it changes in place, as they are when it ends, beside its result.

    Notes in the graph's flags, for `infer.language.procedures`: `kept`: the numbers of these parameters; `changing`: those of
    all that are changed on some path, perhaps only on one that raises; `holds`:
    `(final, parameter, flat, calls) -> bool`, whether what one of them ends as, or the result proper (None), may be or hold (a part
    of) another parameter; `refusals`: why calls are refused that cannot hand the changes on; `changes`: how they are changed;
    `itself`: which of them the result is, or an entry of the result that is a tuple: `((path, number), ...)`.
    """
    graph, env = p.root, p.state.env
    assert graph.signature is not None
    parameters, result = {node.name: node for node in p.returned}, graph.output
    names = [name for name in graph.signature.names if name in p.kept and env[name] is not parameters[name]]
    graph.flags["kept"] = tuple(map(graph.signature.names.index, names))
    graph.flags["changing"] = tuple(map(graph.signature.names.index, p.kept))
    graph.flags["changes"] = tuple(p.kept[name] for name in names)
    if p.state.dead is not None or not names:
        return
    finals = [env[name] for name in names]
    pairs = [node for name, final in zip(names, finals, strict=True) for node in (parameters[name], final)]
    attrs = {"rebinds": tuple(name in p.procedures.added(p.node) for name in names)}
    parts = [((), result)]
    if isinstance(result, Apply) and isinstance(result.fn, Constant) and result.fn.value is syntax.make_tuple:
        parts += [((k,), part) for k, part in enumerate(result.args)]
    graph.flags["itself"] = tuple(
        (path, number) for path, part in parts for number, final in enumerate(finals) if _same(p, part, final)
    )
    graph.output = p.apply(syntax.finals, result, *pairs, at=result.origin, attrs=attrs)

    def holds(final: int | None, parameter: int, flat: bool, calls: syntax.Handing) -> bool:
        node, holder = graph.params[parameter], result if final is None else finals[final]
        if flat:  # nothing of it can be held but itself
            return meets(p, node, holder, calls)[0]
        return node in objects(p, holder, calls)[1]

    graph.flags["holds"] = holds


def _same(p: ParseContext, one: Node, other: Node) -> bool:
    """Whether two values are certainly one object: one node, or in both arms of one branch the same."""
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if not applies(one, (operator.getitem,)) or not applies(other, (operator.getitem,)):
            return False
        branch, first, second = one.args[0], p.flows.get(one), p.flows.get(other)
        if branch is not other.args[0] or not applies(branch, (syntax.if_,)) or first is None or second is None:
            return False
        pairs += zip(first, second, strict=True)
    return True


def note_refusal(p: ParseContext, name: str, node: Apply, message: Callable[[str], str], at: ast.AST) -> None:
    """Note why a change of a parameter is refused where nobody can see it: `message(kind)`, of an "array", a "list" or a "dict"."""
    if name in p.kept:
        node.attrs["refusal"] = message
        p.root.flags.setdefault("refusals", {}).setdefault(name, (message, p.origin(at)))


def triangular(p: ParseContext, value: Node, note, at: ast.AST) -> Node:
    """A value with the zeros that its annotation declares; they are checked here and known from here on."""
    if isinstance(note, TensorAnnotation):
        return p.apply(TRIANGLES[note.triangle.name], value, at=at) if note.triangle else value
    hidden = hidden_triangle(note)
    if hidden is not None:
        raise p.refuse(
            f"{hidden} says something of an array that stands alone; give the array a variable of its own with it", at
        )
    return value


def _shape(node: FunctionNode) -> dict:
    """The parts of a signature that follow from the names alone."""
    a = node.args
    names = [p.arg for p in scopes.parameters(node)]
    positional = len(a.posonlyargs) + len(a.args)
    first = positional + bool(a.vararg)
    return {
        "names": tuple(names),
        "posonly": len(a.posonlyargs),
        "positional": positional,
        "vararg": positional if a.vararg else None,
        "kwonly": tuple(range(first, first + len(a.kwonlyargs))),
        "kwarg": len(names) - 1 if a.kwarg else None,
    }


def nested_signature(p: ParseContext, node: ast.FunctionDef | ast.Lambda) -> Signature:
    """The signature of an inner function; its defaults are evaluated here, where it is defined."""
    shape = _shape(node)
    defaults = {}
    for k, default in enumerate(node.args.defaults, shape["positional"] - len(node.args.defaults)):
        defaults[k] = p.looked_up(default)
    for k, default in zip(shape["kwonly"], node.args.kw_defaults, strict=True):
        if default is not None:
            defaults[k] = p.looked_up(default)
    annotations = {}
    for k, arg in enumerate(scopes.parameters(node)):
        if arg.annotation is not None:
            annotations[k] = annotation(p, arg.annotation)
    if not isinstance(node, ast.Lambda) and node.returns is not None:
        annotations[-1] = annotation(p, node.returns)
    return Signature(**shape, defaults=defaults, annotations=annotations)


def outer_signature(source: Source) -> Signature:
    """The signature of a top-level function, whose defaults and annotations Python has evaluated."""
    fn, node = source.function, source.node
    shape = _shape(node)
    values = fn.__defaults__ or ()
    defaults = {k: Constant(v) for k, v in enumerate(values, shape["positional"] - len(values))}
    for k in shape["kwonly"]:
        name = shape["names"][k]
        if fn.__kwdefaults__ and name in fn.__kwdefaults__:
            defaults[k] = Constant(fn.__kwdefaults__[name])
    annotations = {}
    places = {arg.arg: (k, arg.annotation) for k, arg in enumerate(scopes.parameters(node))}
    places["return"] = (-1, getattr(node, "returns", None))
    for name, value in getattr(fn, "__annotations__", {}).items():
        k, at = places.get(name, (None, None))
        if k is not None:
            annotations[k] = _evaluated(source, value, at if at is not None else node)
    return Signature(**shape, defaults=defaults, annotations=annotations, function=fn)


def annotation(p: ParseContext, node: ast.expr):
    """The value of an annotation inside a function; it may only use names from outside the functions."""
    for name in sorted(scopes.loads([node])):
        if p.is_local(name) or name in p.captures:
            raise p.refuse(
                f"this annotation uses the local variable '{name}'; annotations are evaluated when the function is "
                "compiled, so use names of the module",
                node,
            )
    if isinstance(node, ast.Constant):
        return _evaluated(p.source, node.value, node)
    return _evaluated(p.source, ast.unparse(node), node)


def _evaluated(source: Source, value, at: ast.AST):
    """An annotation that may be a string, as an object.

    Raises:
        NameError_: it uses a name that is not defined.
        CompileError: it cannot be evaluated.
    """
    rounds = 0
    while isinstance(value, str) and rounds < 3:
        rounds += 1
        names = _Names(source.function)
        try:
            value = eval(value, names)  # an annotation of the user's own program
        except CompileError as error:
            raise error.at(source.loc(at)) from None
        except NameError as error:
            missing = getattr(error, "name", None) or str(error)
            advice = nearest(missing, source.function.__globals__)
            raise NameError_(
                f"annotation uses the name '{missing}', which is not defined{advice}",
                source.loc(at),
            ) from None
        except Exception as error:
            raise CompileError(
                f"this annotation cannot be evaluated: {type(error).__name__}: {error}", source.loc(at)
            ) from None
    return value


class _Names(dict):
    """The names that a function sees from outside, as the globals of `eval`."""

    def __init__(self, function: types.FunctionType):
        super().__init__(function.__globals__)
        for name in function.__code__.co_freevars:
            try:
                self[name] = FreeName(name, function).read()
            except NameError_:
                continue
