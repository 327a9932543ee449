"""Typed graphs as functions of a module.

A graph that is called becomes a global function, and one that two branches or loops run, too. A branch is written where it
stands. A loop becomes a function that calls itself, with what it carries as parameters; the rest it sees around it:

    %0 = while_loop{cond, body, carried=2}(a, b, n)      =>     let %loop = fn (%a, %b) {
                                                                  if (cond) { .. %loop(..) } else { (%a, %b) }
                                                                };
                                                                %0 = %loop(a, b);

A branch on the variant of a value becomes a `match`, whose patterns bind the fields that the branches read. Parts of tuples are
read where they are used, and what nobody needs is left out. A model is not a value: its arrays are constants.

Input: a typed graph without transforms. Output: definitions, except that of the entry, which `to_text` makes of `block`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...abstract.family import Family
from ...abstract.types import Struct
from ...ir.node import Apply, Constant, Graph, Node, applies
from ...ir.prim import Primitive
from ...ir.rewrite import Effects, all_graphs, inner_graphs, mark_recursion
from ...prims.ops.effects import check
from ...utils.errors import InternalError, LoweringError
from ..naming import UniqueNames
from ..tree import (
    Arm,
    CallExpr,
    ConstructorName,
    ConstructorPattern,
    Definition,
    Expression,
    Function,
    GlobalVar,
    GraphBinding,
    IfExpr,
    Let,
    Literal,
    Local,
    LocalVar,
    MatchExpr,
    OperatorName,
    Param,
    PatternExpr,
    Projection,
    Statement,
    TupleExpr,
    VariablePattern,
    WildcardPattern,
    apply,
    body,
    constant,
)
from ..walk import walk
from .operations import operation
from .values import Values, constructed, from_leaves, leaf_path

REFUSED = {
    "bind_dim": "makes an array whose size a value decides, and the text is that of known sizes",
    "print": "prints, and Relay text has no effect like that",
    "ref_write": "changes a model, and Relay text has no effect like that",
    "call_operator": "calls an operator that Python registered, which Relay text does not know",
    "operator_kernel": "calls an operator that Python registered, which Relay text does not know",
    "data_same": "asks whether two values are the same object ('is'), which Relay text cannot tell",
}
"""Primitives that users know by other names -> why they are refused."""
SUBTREES = ("checkpoint", "custom_vjp")
"""Primitives that are calls of their graph where nothing differentiates them any more."""


class Held:
    """A model: an object that programs hold and no value of Relay.

    Attributes:
        value: the object, whose `arrays` are read.
    """

    def __init__(self, value: Any):
        self.value = value


Value = Any
"""What a node is: an `Expression`, or `Held`."""


class GraphWriter:
    """The functions that a program needs.

    Args:
        graph: the entry.
        values: its types and constants.
    """

    def __init__(self, graph: Graph, values: Values):
        self.values, self.effects = values, Effects()
        self.recursive = mark_recursion(graph)
        self.names = UniqueNames({"main"})
        self.run_by: Counter[Graph] = Counter()
        for g in all_graphs(graph):
            for node in g.nodes:
                if type(node.fn) is Primitive:
                    self.run_by.update(inner_graphs(node))
        self.definitions: dict[str, Definition] = {}
        self._references: dict[tuple[Graph, tuple], str] = {}
        self._waiting: list[tuple[str, Graph, tuple]] = []
        self._fields: dict[tuple[Local, int], list[Expression]] = {}
        self._uses: Counter[Node] = Counter()
        self._branches: Counter[Node] = Counter()  # how many branches there are on a condition
        self._tests: dict[Node, MatchExpr] = {}  # what asks of which variant a value is

    def finish(self) -> dict[str, Definition]:
        """The definitions of all functions that are called."""
        while self._waiting:
            name, graph, held = self._waiting.pop(0)
            params = [p if h is None else h for p, h in zip(graph.params, held, strict=True)]
            self.definitions[name] = Definition(name, self.function(graph, params))
        return self.definitions

    def reference(self, graph: Graph, args: Sequence[Value]) -> CallExpr:
        """A call of a graph as a global function."""
        held = tuple(a if isinstance(a, Held) else None for a in args)
        key = (graph, tuple(h and id(h.value) for h in held))
        name = self._references.get(key)
        if name is None:
            name = self._references[key] = self.names.give(_plain(graph.name), sizes=True)
            self._waiting.append((name, graph, held))
        return CallExpr(GlobalVar(name), tuple(a for a in args if not isinstance(a, Held)))

    def function(self, graph: Graph, params: Sequence[Any]) -> Function:
        """A graph as a function; `params` are its parameters, or the models that stand for them."""
        given, declared = [], []
        for p in params:
            if isinstance(p, Held):
                given.append(p)
                continue
            local = Local(_plain(p.name))
            given.append(LocalVar(local))
            declared.append(Param(local, self.values.type(p.type, graph.origin)))
        statements, result = self.block(graph, given)
        return Function(
            tuple(declared), block_of(statements, result), self.values.type(graph.output.type, graph.origin)
        )

    # ------------------------------------------------ blocks

    def entry(self, graph: Graph, args: Sequence[Value]) -> tuple[list[Statement], Expression]:
        """The statements and the result of the entry; of the function that it calls, where that is all it does."""
        node = graph.output
        while graph.nodes == [node] and isinstance(node.fn, Graph) and node.fn not in self.recursive:
            env: dict[Node, Value] = dict(zip(graph.params, args, strict=True))
            args, graph = [self.value(env, a) for a in node.args], node.fn
            node = graph.output
        return self.block(graph, args)

    def block(self, graph: Graph, args: Sequence[Value]) -> tuple[list[Statement], Expression]:
        """The statements and the result of a graph for its arguments.

        Raises:
            LoweringError: Relay text has no form for something in it.
        """
        statements, env = self._statements(graph, args)
        result = self.value(env, graph.output)
        if isinstance(result, Held):
            raise LoweringError("to_text: a model is returned, which is no value of Relay text", graph.origin)
        return statements, result

    def parts(self, graph: Graph, args: Sequence[Value]) -> tuple[list[Statement], tuple[Expression, ...]]:
        """The statements of a graph that gives a tuple, and the parts of that."""
        statements, result = self.block(graph, args)
        if isinstance(result, TupleExpr):
            return statements, result.fields
        if not isinstance(result, LocalVar | GlobalVar | Projection):
            local = Local("parts")
            statements.append(GraphBinding(local, result))
            result = LocalVar(local)
        return statements, tuple(Projection(result, k) for k in range(len(graph.output.type.elems)))

    def scope(self, graph: Graph, args: Sequence[Value]) -> Expression:
        """A graph as the expression of a branch."""
        if self.run_by[graph] > 1 and len(graph.nodes) > 1:
            return self.reference(graph, args)
        statements, result = self.block(graph, args)
        return block_of(statements, result)

    def _statements(self, graph: Graph, args: Sequence[Value]) -> tuple[list[Statement], dict[Node, Value]]:
        env: dict[Node, Value] = dict(zip(graph.params, args, strict=True))
        statements: list[Statement] = []
        needed = self._needed(graph)
        self._uses.update(Counter(a for n in graph.nodes if n in needed for a in n.args))
        self._uses[graph.output] += 1
        self._branches.update(Counter(n.args[0] for n in graph.nodes if n in needed and applies(n, "cond")))
        for node in graph.nodes:
            if node in needed:
                self._node(env, statements, node)
        return statements, env

    def _needed(self, graph: Graph) -> set[Node]:
        """The applications whose value is used, or that may do something."""
        needed: set[Node] = {graph.output}
        for node in reversed(graph.nodes):
            if node in needed or self.effects.stays(node):
                needed.add(node)
                needed.update(node.args)
        return needed

    def value(self, env: dict[Node, Value], node: Node) -> Value:
        """What a node is."""
        if isinstance(node, Constant):
            return self.values.constant(node)
        return env[node]

    def _node(self, env: dict[Node, Value], statements: list[Statement], node: Apply) -> None:
        args = [self.value(env, a) for a in node.args]
        if applies(node, "check", "cond"):
            args[0] = self._unbound(statements, args[0], node.args[0])
        found = self.application(statements, node, args)
        if isinstance(found, Held) or _is_atom(found):
            env[node] = found
            return
        if isinstance(found, MatchExpr) and applies(node, "data_is"):
            self._tests[node] = found
            if self._uses[node] == self._branches[node]:
                env[node] = found  # a branch becomes a match of its own
                return
        if applies(node, "make_struct"):
            env[node] = found  # written where it is used
            return
        if isinstance(node.type, Struct) and not node.type.elems or applies(node, "check"):
            statements.append(Let(Local("_"), found))
            env[node] = TupleExpr(())
            return
        local = Local(_plain(node.name) if node.name else "0")
        statements.append(Let(local, found) if node.name else GraphBinding(local, found))
        env[node] = LocalVar(local)

    def _unbound(self, statements: list[Statement], value: Value, node: Node) -> Value:
        """A condition: what was bound just before it for it alone is written in its place."""
        last = statements[-1] if statements else None
        bound = isinstance(value, LocalVar) and isinstance(last, GraphBinding) and last.local is value.local
        if not bound or self._uses[node] != 1 or not isinstance(last, GraphBinding):
            return value
        if not isinstance(last.value, CallExpr) or not isinstance(last.value.callee, OperatorName):
            return value
        statements.pop()
        found = last.value
        if len(found.args) == 1 and isinstance(node, Apply) and len(node.args) == 1:
            found = replace(found, args=(self._unbound(statements, found.args[0], node.args[0]),))
        return found

    def application(self, statements: list[Statement], node: Apply, args: list[Value]) -> Value:
        """An application.

        Raises:
            LoweringError: Relay text has no form for it.
            InternalError: a model is none that the program holds.
        """
        if isinstance(node.fn, Graph):
            return self.reference(node.fn, args)
        name = node.fn.name
        if name in REFUSED:
            raise LoweringError(f"to_text: this {REFUSED[name]}", node.origin)
        if name.startswith("list_"):
            raise LoweringError(
                "to_text: this works on a list whose length is known at run time only, which Relay text has no form for; use an "
                "array, or a data type",
                node.origin,
            )
        if name == "ref_read":
            if not isinstance(args[0], Held):
                raise InternalError("to_text", "a model is computed")
            return self.values.array(np.array(args[0].value.arrays[node.attrs["index"]]), node.origin)
        special = SPECIAL.get(name)
        if special is not None:
            return special(self, statements, node, args)
        if any(isinstance(a, Held) for a in args):
            raise LoweringError("to_text: a model is part of a value, which Relay text has no form for", node.origin)
        return operation(node, tuple(args), self.values.exact(node.attrs))

    # ------------------------------------------------ control

    def cond(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """A branch: `if`, or `match` on the variant of a value."""
        condition, operands = args[0], args[1:]
        test = node.args[0]
        then, orelse = node.attrs["then"], node.attrs["orelse"]
        tested = self._tests.get(test)
        if applies(test, "data_is") and len(test.attrs["variants"]) == 1 and tested is not None:
            value = tested.value
            if isinstance(value, LocalVar):
                family, (number,) = test.attrs["type"].family, test.attrs["variants"]
                others = [n for n in self.values.numbers(family) if n != number]
                possible = others if test.attrs["type"].nullable else [n for n in others if n]
                arms = [self._arm(family, number, value, then, operands)]
                if len(possible) == 1:
                    arms.append(self._arm(family, possible[0], value, orelse, operands))
                elif others:
                    arms.append(Arm(WildcardPattern(), self.scope(orelse, operands)))
                return MatchExpr(value, tuple(arms), len(arms) > len(others) or len(possible) != 1)
        return IfExpr(condition, self.scope(then, operands), self.scope(orelse, operands))

    def _arm(self, family: Family, number: int, value: LocalVar, graph: Graph, operands: list[Value]) -> Arm:
        """An arm of a `match`, in which the fields of the value have names."""
        names = family.variants[number - 1].fields if number else ()
        locals_ = [Local(_plain(n)) for n in names]
        key = (value.local, number)
        before = self._fields.get(key)
        self._fields[key] = [LocalVar(local) for local in locals_]
        inner = self.scope(graph, operands)
        if before is None:
            del self._fields[key]
        else:
            self._fields[key] = before
        used = {e.local for e in walk(inner) if isinstance(e, LocalVar)}
        patterns: list[PatternExpr] = [
            VariablePattern(local) if local in used else WildcardPattern() for local in locals_
        ]
        return Arm(ConstructorPattern(self.values.constructor(family, number), tuple(patterns)), inner)

    def while_loop(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """A loop as a function that calls itself."""
        condition, inner, n = node.attrs["cond"], node.attrs["body"], node.attrs["carried"]
        params, carried = self._carried(inner.params[:n])
        loop = Local(_loop_name(inner))
        before, test = self.block(condition, [*carried, *args[n:]])
        test = self._unbound(before, test, condition.output)
        made, parts = self._body_of(inner, [*carried, *args[n:]])
        again = block_of(made, CallExpr(LocalVar(loop), parts))
        whole = block_of(before, IfExpr(test, again, TupleExpr(tuple(carried))))
        statements.append(Let(loop, Function(params, whole, self.values.type(node.type, node.origin))))
        return CallExpr(LocalVar(loop), tuple(args[:n]))

    def for_loop(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """A loop over a range as a function that calls itself; its first parameter is the index or, if the step may not be 1 or -1,
        the number of iterations so far."""
        start, stop, step, *rest = args
        inner, n = node.attrs["body"], node.attrs["carried"]
        index_type = inner.params[0].type
        one = constant(np.int64(1))
        params, carried = self._carried(inner.params[1 : n + 1])
        (index_param,), (index,) = self._carried(inner.params[:1])
        unit = step.value if isinstance(step, Literal) and step.value in (1, -1) else 0
        if unit:
            first, test = start, apply("less" if unit == 1 else "greater", index, stop)
            following = apply("add", index, step)
            place: Expression = index
        else:
            first, test, place, following = self._counted(statements, start, stop, step, index, one)
        before: list[Statement] = []
        if not _is_atom(place):
            local = Local("i")
            before, place = [GraphBinding(local, place)], LocalVar(local)
        if index_type.dtype != "int64":
            place, index_param = (
                apply("cast", place, dtype=index_type.dtype),
                Param(index_param.local, self.values.type(node.args[0].type, node.origin)),
            )
        loop = Local(_loop_name(inner))
        made, parts = self._body_of(inner, [place, *carried, *rest[n:]])
        again = block_of([*before, *made], CallExpr(LocalVar(loop), (following, *parts)))
        whole = IfExpr(test, again, TupleExpr(tuple(carried)))
        result = self.values.type(node.type, node.origin)
        statements.append(Let(loop, Function((index_param, *params), whole, result)))
        return CallExpr(LocalVar(loop), (first, *rest[:n]))

    def _counted(
        self,
        statements: list[Statement],
        start: Expression,
        stop: Expression,
        step: Expression,
        k: Expression,
        one: Any,
    ) -> tuple[Expression, Expression, Expression, Expression]:
        """A range by the number of its iterations: the first number, the test, the index, the next number."""
        zero, minus = constant(np.int64(0)), constant(np.int64(-1))
        if isinstance(step, Literal):
            sign: Expression = one if step.value > 0 else minus
        else:
            sign = apply("where", apply("greater", step, zero), one, minus)
        count = Local("count")
        span = apply("subtract", apply("add", apply("subtract", stop, start), step), sign)
        statements.append(Let(count, apply("floor_divide", span, step)))
        return (
            zero,
            apply("less", k, LocalVar(count)),
            apply("add", start, apply("multiply", k, step)),
            apply("add", k, one),
        )

    def _body_of(self, graph: Graph, args: list[Value]) -> tuple[list[Statement], tuple[Expression, ...]]:
        """The statements of a loop's body, and the values that the next iteration gets."""
        if self.run_by[graph] > 1 and len(graph.nodes) > 1:
            local = Local("next")
            next_ = LocalVar(local)
            parts = tuple(Projection(next_, k) for k in range(len(graph.output.type.elems)))
            return [GraphBinding(local, self.reference(graph, args))], parts
        return self.parts(graph, args)

    def _carried(self, params: Sequence[Any]) -> tuple[tuple[Param, ...], list[Expression]]:
        locals_ = [Local(_plain(p.name)) for p in params]
        declared = tuple(
            Param(local, self.values.type(p.type, p.origin)) for local, p in zip(locals_, params, strict=True)
        )
        return declared, [LocalVar(local) for local in locals_]

    # ------------------------------------------------ values

    def get_item(self, statements: list[Statement], node: Apply, args: list[Value]) -> Value:
        """A part of a structure."""
        index = node.attrs["index"]
        return args[0].fields[index] if isinstance(args[0], TupleExpr) else Projection(args[0], index)

    def raise_(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """An exception: a check of False, and then any value of the type."""
        attrs = {k: node.attrs[k] for k in ("exception", "parts")}
        failing = Apply(node.graph, check, [Constant(False), *node.args], attrs, origin=node.origin)
        statements.append(Let(Local("_"), operation(failing, (constant(np.bool_(False)), *args), attrs)))
        return self.values.any(node.type, node.origin)

    def data_make(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """A value of a data type, from the leaves of its fields."""
        family, number = node.attrs["type"].family, node.attrs["variant"]
        fields: list[Expression] = []
        if number:
            variant, rest = family.variants[number - 1], iter(args)
            fields = [from_leaves(t, rest) for t in variant.types]
        return constructed(self.values.constructor(family, number), fields)

    def data_is(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """Whether a value is of some variants."""
        family, numbers = node.attrs["type"].family, node.attrs["variants"]
        arms = []
        for number in numbers:
            if number in self.values.numbers(family):
                count = len(family.variants[number - 1].fields) if number else 0
                pattern = ConstructorPattern(
                    self.values.constructor(family, number), tuple(WildcardPattern() for _ in range(count))
                )
                arms.append(Arm(pattern, constant(np.bool_(True))))
        if len(arms) < len(self.values.numbers(family)):
            arms.append(Arm(WildcardPattern(), constant(np.bool_(False))))
        return MatchExpr(args[0], tuple(arms))

    def data_field(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """A leaf of a value that is of a variant: what a pattern around has named, or a `match` of its own."""
        family, number = node.attrs["type"].family, node.attrs["variant"]
        variant = family.variants[number - 1]
        field, path = leaf_path(variant, node.attrs["index"])
        value = args[0]
        known = self._fields.get((value.local, number)) if isinstance(value, LocalVar) else None
        if known is not None:
            found = known[field]
        else:
            local = Local(_plain(variant.fields[field]))
            patterns = [VariablePattern(local) if k == field else WildcardPattern() for k in range(len(variant.fields))]
            pattern = ConstructorPattern(self.values.constructor(family, number), tuple(patterns))
            whole = len(self.values.numbers(family)) == 1
            found = MatchExpr(value, (Arm(pattern, LocalVar(local)),), whole)
        for index in path:
            found = Projection(found, index)
        return found

    def data_as(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """A value as one that may be None, or as one that may not.

        Raises:
            LoweringError: it is the derivative of a value by another name.
        """
        if node.args[0].type.family is not node.attrs["type"].family:
            raise LoweringError("to_text: Relay text has no form for the derivatives of this data type", node.origin)
        return args[0]

    def tape_pop(self, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
        """The rest of a stack and its last entry."""
        rest, entry = Local("rest"), Local("entry")
        pattern = ConstructorPattern("Push", (VariablePattern(rest), VariablePattern(entry)))
        return MatchExpr(args[0], (Arm(pattern, TupleExpr((LocalVar(rest), LocalVar(entry)))),), False)


def _plain(name: str) -> str:
    """A name as one that can be written: `f.then` is `f_then`, `<lambda>` is `lambda`."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "f"


def _loop_name(graph: Graph) -> str:
    return "for" if graph.name.endswith(".for") else "loop"


def _is_atom(e: Expression) -> bool:
    """Whether an expression is written wherever it is used."""
    while isinstance(e, Projection):
        e = e.tuple
    return isinstance(e, LocalVar | GlobalVar | Literal) or isinstance(e, TupleExpr) and not e.fields


def block_of(statements: Sequence[Statement], result: Expression) -> Expression:
    """A block, whose last binding is the result where it is nothing else."""
    statements = list(statements)
    last = statements[-1] if statements else None
    if last is not None and isinstance(result, LocalVar) and last.local is result.local:
        if not isinstance(last.value, Function):
            statements.pop()
            result = last.value
    return body(statements, result)


def _tuple(functions: GraphWriter, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
    if any(isinstance(a, Held) for a in args):
        raise LoweringError("to_text: a model is part of a value, which Relay text has no form for", node.origin)
    return TupleExpr(tuple(args))


def _any(functions: GraphWriter, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
    return functions.values.any(node.type, node.origin)


def _run(functions: GraphWriter, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
    return functions.reference(node.attrs["graph"], args)


def _size(functions: GraphWriter, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
    try:
        return constant(np.int64(functions.values.exact(node.attrs["dim"])))
    except (KeyError, TypeError):
        raise LoweringError(
            "to_text: a value decides a size here; the text is that of known sizes", node.origin
        ) from None


def _push(functions: GraphWriter, statements: list[Statement], node: Apply, args: list[Value]) -> Expression:
    return CallExpr(ConstructorName("Push"), tuple(args))


SPECIAL: dict[str, Any] = {
    "cond": GraphWriter.cond,
    "while_loop": GraphWriter.while_loop,
    "for_loop": GraphWriter.for_loop,
    "get_item": GraphWriter.get_item,
    "make_struct": _tuple,
    "raise": GraphWriter.raise_,
    "data_make": GraphWriter.data_make,
    "data_is": GraphWriter.data_is,
    "data_field": GraphWriter.data_field,
    "data_as": GraphWriter.data_as,
    "tape_pop": GraphWriter.tape_pop,
    "tape_push": _push,
    "none": lambda functions, statements, node, args: functions.values.none(node.type),
    **dict.fromkeys(("undef", "tape_new"), _any),
    **dict.fromkeys(SUBTREES, _run),
    "dim_size": _size,
}
"""Primitive -> how its application is written."""

__all__ = ["GraphWriter", "Held", "block_of"]
