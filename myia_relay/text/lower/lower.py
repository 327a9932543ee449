"""Lowering: a checked module becomes parsed graphs, which inference evaluates as it does those of Python functions.

The order of evaluation is that of the graphs' nodes: arguments from left to right, then the function; statements in order.
A function expression is a constant that holds a graph; what it captures is a pointer to a node outside. The arms of a branch
are graphs without parameters. A `match` becomes a tree of tests (`patterns`). Functions that need to know type parameters
take them first, as compile-time values (`types`, `needs`).

Input: a `Checked` module. Output: `Lowered.graph(name)`, the graph of a definition. A definition is lowered when it is first
asked for, or used by one that is.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from ...abstract.declared import Declaration
from ...abstract.types import numpy_dtype
from ...ir import syntax as S
from ...ir.node import Apply, Constant, Graph, Node
from ...utils.compiling import compiling
from ...utils.errors import InternalError
from ...utils.source import NOWHERE, Origin
from ...utils.trampoline import Steps, run
from ..check.checked import Checked
from ..operators.declare import CALLABLES
from ..terms.terms import TYPE, ArrowTerm, CellTerm, is_ground, resolved, tuple_term, unknowns
from ..terms.unify import replaced
from ..tree import (
    Body,
    CallExpr,
    ConstructorName,
    Expression,
    Function,
    GlobalVar,
    IfExpr,
    Let,
    Literal,
    Local,
    LocalVar,
    MatchExpr,
    OperatorName,
    Projection,
    RefNew,
    RefRead,
    RefWrite,
    TensorConstant,
    TreeNode,
    TupleExpr,
)
from ..walk import walk
from . import constructs as C
from .declarations import constructor_class, declared
from .heaps import Heaps
from .needs import Needs
from .patterns import Decision, Fits, Place, Test, decide, uses
from .sizes import conform, leaves_open, says_sizes
from .types import ground, variables

UNIT = tuple_term(())
FEW_NODES = 12  # an arm that several paths reach is repeated if it has at most so many expressions


class Lowered:
    """The graphs of a module.

    Args:
        checked: the module.

    Attributes:
        heaps: which of its references exist at run time.
        needs: which type parameters its functions take.
    """

    def __init__(self, checked: Checked):
        self.checked = checked
        self.heaps = Heaps(checked, self.declaration)
        self.needs = Needs(checked, bool(self.heaps))
        self._graphs: dict[str, Graph] = {}
        self._waiting: list[str] = []

    @classmethod
    def of(cls, module: Any) -> Lowered:
        """The graphs of a `Module`, once."""
        with compiling():
            found = vars(module).get("lowered")
            return found if found is not None else vars(module).setdefault("lowered", cls(module.checked))

    @functools.cached_property
    def leaves_open(self) -> bool:
        """Whether any size in the module is known at run time only."""
        return leaves_open(self.checked.types.values())

    @functools.cached_property
    def _abstracted(self) -> set[int]:
        """The parameters of all schemes, by `id`."""
        schemes = [*self.checked.schemes.values(), *self.checked.locals.values()]
        return {id(p) for scheme in schemes for p in scheme.params}

    def definite(self, term: Any) -> Any:
        """A type in which nothing is open but parameters: what inference left open, no value is ever of, so it may be `()`."""
        term = resolved(term)
        is_open = [u for u in unknowns(term) if u.kind == TYPE and id(u) not in self._abstracted]
        return replaced(term, dict.fromkeys(map(id, is_open), UNIT)) if is_open else term

    def graph(self, name: str) -> Graph:
        """The graph of a definition: what it needs of its type parameters, then its parameters."""
        with compiling():
            made = self.reference(name)
            while self._waiting:
                _DefinitionLowering(self, self._waiting.pop()).definition()
            return made

    def reference(self, name: str) -> Graph:
        """The graph of a definition, which may be lowered later."""
        if name not in self._graphs:
            function = self.checked.tree.definitions[name].function
            self._graphs[name] = Graph(name, origin=origin(function, name))
            self._waiting.append(name)
        return self._graphs[name]

    def declaration(self, name: str) -> Declaration:
        """The declaration of a data type."""
        return self._declarations(name)

    @functools.cached_property
    def _declarations(self) -> Any:
        return functools.cache(lambda name: declared(self.checked.tree, name))


def origin(node: TreeNode, function: str) -> Origin:
    """The place of a node of the tree in a definition."""
    return Origin(replace(node.span.loc, function=f"@{function}")) if node.span is not None else NOWHERE


class _DefinitionLowering:
    """Lowers one definition, with the functions in it."""

    def __init__(self, module: Lowered, name: str):
        self.module, self.checked, self.name = module, module.checked, name
        self.env: dict[Local, Node] = {}
        self.types: dict[int, Node] = {}  # id of a type parameter -> the node of what stands for it

    def origin(self, node: TreeNode) -> Origin:
        return origin(node, self.name)

    def definition(self) -> None:
        function = self.checked.tree.definitions[self.name].function
        run(self.function(self.module.reference(self.name), function, self.module.needs.of_global(self.name)))

    def function(self, graph: Graph, function: Function, needed: tuple[Any, ...] = ()) -> Steps:
        """Lower a function into its graph."""
        for k, p in enumerate(needed):
            self.types[id(p)] = graph.add_parameter(f"type{k}", origin=graph.origin)
        for p in function.params:
            self.env[p.local] = graph.add_parameter(p.local.name, origin=self.origin(p))
        graph.signature = signature(graph)
        t = self.checked.type_of(function) if self.module.leaves_open else None
        if isinstance(t, ArrowTerm):
            for p, declared_type in zip(function.params, t.params, strict=True):
                what = f"the argument '{p.local.name}' of {graph.name}"
                self.env[p.local] = self.sized(graph, self.env[p.local], declared_type, what, p)
        graph.output = yield self.expression(graph, function.body)
        if isinstance(t, ArrowTerm):
            graph.output = self.sized(graph, graph.output, t.result, f"the result of {graph.name}", function.body)

    def sized(self, graph: Graph, node: Node, t: Any, what: str, at: TreeNode) -> Node:
        """A value whose sizes are checked where the type of a value that leaves some open says more."""
        if not says_sizes(t):
            return node
        return graph.apply(
            Constant(conform), node, attrs={"term": t, "what": what}, origin=self.origin(at), name=node.name
        )

    def closure(self, graph: Graph, e: Function, local: Local | None = None) -> Steps:
        """The constant of a function expression, which may call itself by the local that it is bound to."""
        inner = Graph(local.name if local is not None else f"{self.name}.fn", parent=graph, origin=self.origin(e))
        made = Constant(inner, origin=self.origin(e))
        if local is not None:
            self.env[local] = made
        yield self.function(inner, e, self.module.needs.of_local(local) if local is not None else ())
        return made

    # Expressions.

    def expression(self, graph: Graph, e: Expression) -> Steps:
        """The node of an expression, and what it takes to compute it at the end of a graph.

        Raises:
            InternalError: there is no such expression.
        """
        match e:
            case Literal():
                return Constant(numpy_dtype(e.dtype).type(e.value), origin=self.origin(e))
            case TensorConstant():
                return graph.apply(Constant(C.tensor), attrs={"value": e.value}, origin=self.origin(e))
            case LocalVar():
                return self.variable(graph, e, self.env[e.local])
            case GlobalVar():
                return self.variable(graph, e, Constant(self.module.reference(e.name), origin=self.origin(e)))
            case OperatorName():
                return self.operator_value(graph, e)
            case ConstructorName():
                return self.constructor_value(graph, e)
            case CallExpr():
                return (yield self.call(graph, e))
            case TupleExpr():
                fields = yield self.expressions(graph, e.fields)
                return graph.apply(Constant(S.make_tuple), *fields, origin=self.origin(e))
            case Projection():
                value = yield self.expression(graph, e.tuple)
                return graph.apply(Constant(C.tuple_field), value, attrs={"index": e.index}, origin=self.origin(e))
            case IfExpr():
                condition = yield self.expression(graph, e.condition)
                then = yield self.arm(graph, "then", e.then)
                otherwise = yield self.arm(graph, "else", e.otherwise)
                return graph.apply(
                    Constant(S.if_), condition, Constant(then), Constant(otherwise), origin=self.origin(e)
                )
            case MatchExpr():
                return (yield self.match(graph, e))
            case RefNew():
                value = yield self.expression(graph, e.value)
                if self.module.heaps:
                    return self.reference(graph, e, value)
                cell = graph.apply(Constant(S.new_cell), attrs={"name": "ref"}, origin=self.origin(e))
                graph.apply(Constant(S.cell_set), cell, value, attrs={"name": "ref"}, origin=self.origin(e))
                return cell
            case RefRead():
                ref = yield self.expression(graph, e.ref)
                attrs = {"name": "ref", "free": False, "heaps": self.module.heaps}
                return graph.apply(Constant(S.cell_get), ref, attrs=attrs, origin=self.origin(e))
            case RefWrite():
                ref = yield self.expression(graph, e.ref)
                value = yield self.expression(graph, e.value)
                attrs = {"name": "ref", "heaps": self.module.heaps}
                graph.apply(Constant(S.cell_set), ref, value, attrs=attrs, origin=self.origin(e))
                return graph.apply(Constant(S.make_tuple), origin=self.origin(e))
            case Function():
                return (yield self.closure(graph, e))
            case Body():
                for s in e.statements:
                    if isinstance(s, Let) and isinstance(s.value, Function):
                        yield self.closure(graph, s.value, s.local)
                        continue
                    node = yield self.expression(graph, s.value)
                    if isinstance(s, Let) and s.annotation is not None and self.module.leaves_open:
                        t = self.checked.locals[s.local].type
                        node = self.sized(graph, node, t, f"%{s.local.name}", s)
                    if isinstance(node, Apply) and node.name is None and s.local.name != "_":
                        node.name = s.local.name
                    self.env[s.local] = node
                return (yield self.expression(graph, e.result))
        raise InternalError("text", f"no lowering of {type(e).__name__}")

    def reference(self, graph: Graph, e: RefNew, value: Node) -> Node:
        """A new reference, where a module has some that exist at run time."""
        t = self.checked.type_of(e)
        assert isinstance(t, CellTerm)
        term = self.module.definite(t.elem)
        vs = tuple(v for v in variables(term) if id(v) in self.types)
        attrs = {"name": "ref", "term": term, "variables": vs, "heaps": self.module.heaps}
        return graph.apply(
            Constant(C.new_reference), value, *(self.types[id(v)] for v in vs), attrs=attrs, origin=self.origin(e)
        )

    def expressions(self, graph: Graph, es: tuple[Expression, ...]) -> Steps:
        """The nodes of expressions, evaluated in order."""
        nodes = []
        for e in es:
            nodes.append((yield self.expression(graph, e)))
        return nodes

    def arm(self, graph: Graph, name: str, e: Expression) -> Steps:
        """A graph without parameters for one way of a branch."""
        inner = Graph(f"{graph.name}.{name}", parent=graph, origin=self.origin(e))
        inner.output = yield self.expression(inner, e)
        return inner

    def call(self, graph: Graph, e: CallExpr) -> Steps:
        args = yield self.expressions(graph, e.args)
        match e.callee:
            case OperatorName(name=name):
                attrs = {"operator": CALLABLES[name], "attributes": dict(self.checked.attributes.get(e, {}))}
                return graph.apply(Constant(C.operate), *args, attrs=attrs, origin=self.origin(e))
            case ConstructorName():
                return graph.apply(self.constructor(graph, e.callee), *args, origin=self.origin(e))
            case LocalVar() | GlobalVar():  # a function that takes type parameters is called with them directly
                known = self.module.needs.arguments(e.callee)
                if isinstance(e.callee, LocalVar):
                    callee = self.env[e.callee.local]
                else:
                    callee = Constant(self.module.reference(e.callee.name), origin=self.origin(e.callee))
                types = [self.type(graph, t, e) for t in known]
                return graph.apply(callee, *types, *args, origin=self.origin(e))
        callee = yield self.expression(graph, e.callee)
        return graph.apply(callee, *args, origin=self.origin(e))

    # Values that are functions, and type parameters.

    def variable(self, graph: Graph, e: LocalVar | GlobalVar, node: Node) -> Node:
        """A variable; a function that takes type parameters becomes one that does not."""
        known = self.module.needs.arguments(e)
        if not known:
            return node
        types = [self.type(graph, t, e) for t in known]
        return self.wrapped(graph, e, lambda inner, args: inner.apply(node, *types, *args, origin=self.origin(e)))

    def operator_value(self, graph: Graph, e: OperatorName) -> Node:
        """An operator as a function of as many arguments as it has here."""
        attrs = {"operator": CALLABLES[e.name], "attributes": dict(self.checked.attributes.get(e, {}))}
        return self.wrapped(
            graph, e, lambda inner, args: inner.apply(Constant(C.operate), *args, attrs=attrs, origin=self.origin(e))
        )

    def constructor_value(self, graph: Graph, e: ConstructorName) -> Node:
        """A constructor as a function; the value of one without fields."""
        made = self.constructor(graph, e)
        if not self.checked.tree.constructors[e.name][1].fields:
            return graph.apply(made, origin=self.origin(e))
        return self.wrapped(graph, e, lambda inner, args: inner.apply(made, *args, origin=self.origin(e)))

    def constructor(self, graph: Graph, e: ConstructorName) -> Node:
        """The constructor of the instance that is made here."""
        data_type = self.checked.tree.constructors[e.name][0]
        declaration = self.module.declaration(data_type.name)
        cls = constructor_class(declaration, e.name)
        found = self.checked.instances.get(e)
        terms = tuple(map(self.module.definite, found.images)) if found is not None else ()
        attrs = {"declaration": declaration, "cls": cls, "terms": terms, "declarations": self.module.declaration}
        vs = [v for v in variables(*terms) if id(v) in self.types]
        if not vs:
            args = tuple(ground(t, {}, self.module.declaration) for t in terms)
            return Constant(C.constructor(declaration, cls, args), origin=self.origin(e))
        nodes = [self.types[id(v)] for v in vs]
        return graph.apply(
            Constant(C.constructor_of), *nodes, attrs={**attrs, "variables": tuple(vs)}, origin=self.origin(e)
        )

    def type(self, graph: Graph, term: Any, e: Expression) -> Node:
        """What stands for a type parameter."""
        term = self.module.definite(term)
        if id(term) in self.types:
            return self.types[id(term)]
        vs = [] if is_ground(term) else [v for v in variables(term) if id(v) in self.types]
        attrs = {"term": term, "variables": tuple(vs), "declarations": self.module.declaration}
        return graph.apply(Constant(C.type_value), *(self.types[id(v)] for v in vs), attrs=attrs, origin=self.origin(e))

    def wrapped(self, graph: Graph, e: Expression, output: Any) -> Constant:
        """A function of the arity of an expression: `output(graph, parameters)`."""
        t = self.checked.type_of(e)
        assert isinstance(t, ArrowTerm)
        name = getattr(e, "name", None) or getattr(getattr(e, "local", None), "name", "fn")
        inner = Graph(name, parent=graph, origin=self.origin(e))
        args = [inner.add_parameter(f"x{k}", origin=self.origin(e)) for k, _ in enumerate(t.params)]
        inner.signature = signature(inner)
        inner.output = output(inner, args)
        return Constant(inner, origin=self.origin(e))

    # Matching.

    def match(self, graph: Graph, e: MatchExpr) -> Steps:
        value = yield self.expression(graph, e.value)
        decision = decide(e, self.checked.tree)
        shared: dict[int, tuple[Constant, tuple[Local, ...]]] = {}
        for number, count in uses(decision).items():
            if count > 1 and not is_small(e.arms[number].body):
                shared[number] = yield self.shared_arm(graph, e, number, decision)
        return (yield self.decision(graph, e, decision, {(): value}, shared))

    def shared_arm(self, graph: Graph, e: MatchExpr, number: int, decision: Decision) -> Steps:
        """The body of an arm that several leaves reach, as a function of the variables of its pattern."""
        arm, stack = e.arms[number], [decision]
        bound: tuple[Local, ...] = ()
        while stack:
            top = stack.pop()
            if isinstance(top, Test):
                stack += [top.then, top.otherwise]
            elif isinstance(top, Fits) and top.arm == number:
                bound = tuple(local for local, _ in top.bound)
        inner = Graph(f"{graph.name}.arm{number}", parent=graph, origin=self.origin(arm))
        for local in bound:
            self.env[local] = inner.add_parameter(local.name, origin=self.origin(local))
        inner.signature = signature(inner)
        inner.output = yield self.expression(inner, arm.body)
        return Constant(inner, origin=self.origin(arm)), bound

    def decision(self, graph: Graph, e: MatchExpr, decision: Decision, known: dict[Place, Node], shared) -> Steps:
        """The node of what a decision leads to; `known` has the values whose places were looked at."""
        if isinstance(decision, Test):
            value = self.at_place(graph, decision.place, known, e)
            test = graph.apply(
                Constant(C.data_test), value, attrs={"constructor": decision.constructor}, origin=self.origin(e)
            )
            arms = []
            for name, inner in (("then", decision.then), ("else", decision.otherwise)):
                arm = Graph(f"{graph.name}.{name}", parent=graph, origin=self.origin(e))
                arm.output = yield self.decision(arm, e, inner, dict(known), shared)
                arms.append(Constant(arm))
            return graph.apply(Constant(S.if_), test, *arms, origin=self.origin(e))
        if isinstance(decision, Fits):
            values = {local: self.at_place(graph, place, known, e) for local, place in decision.bound}
            if decision.arm in shared:
                function, bound = shared[decision.arm]
                return graph.apply(function, *(values[b] for b in bound), origin=self.origin(e.arms[decision.arm]))
            self.env.update(values)
            return (yield self.expression(graph, e.arms[decision.arm].body))
        message = Constant("no pattern fits the value of match?")
        error = graph.apply(Constant(ValueError), message, origin=self.origin(e))
        return graph.apply(Constant(S.raise_), error, origin=self.origin(e))

    def at_place(self, graph: Graph, place: Place, known: dict[Place, Node], e: MatchExpr) -> Node:
        """The value in a place, read where it was not read on the way here."""
        depth = len(place)
        while place[:depth] not in known:
            depth -= 1
        while depth < len(place):
            step, within = place[depth], known[place[:depth]]
            if isinstance(step, int):
                made = graph.apply(Constant(C.tuple_field), within, attrs={"index": step}, origin=self.origin(e))
            else:
                attrs = {"constructor": step[0], "index": step[1]}
                made = graph.apply(Constant(C.data_field), within, attrs=attrs, origin=self.origin(e))
            depth += 1
            known[place[:depth]] = made
        return known[place]


def signature(graph: Graph) -> S.Signature:
    """The signature of a graph whose parameters are all given by position or name."""
    names = tuple(p.name for p in graph.params)
    return S.Signature(names, 0, len(names))


def is_small(e: Expression) -> bool:
    """Whether an expression may be repeated rather than made a function."""
    count = 0
    for inner in walk(e):
        count += 1
        if count > FEW_NODES or isinstance(inner, Function | MatchExpr):
            return False
    return True
