"""Typed graphs as Python syntax: real `if`, `while` and `for`, the user's variable names, operators where these mean the
same.

A value is an expression or, for a structure that was just assembled, the list of its parts, so that tuples of carried
values never exist. An arithmetic expression with one user in the same block is written where it is used.

Operators mean the same as primitives except where Python's numbers differ: Python's integers do not wrap (`wrap`), its
float division raises (hence `ops.div`), and NumPy functions of Python numbers return NumPy scalars (hence
`float(np.sin(x))`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from ...abstract.types import Array, Leaf, Scalar, Struct, Type
from ...ir.node import Apply, Constant, Graph, Node
from ...ir.walk import uses
from ...utils.errors import InternalError
from ...utils.source import Origin
from . import literals as lit
from .regions import Region, outline

OPERATORS = {"add": ast.Add, "sub": ast.Sub, "mul": ast.Mult}
COMPARISONS = {"eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE}
NUMPY = {
    **{
        n: n
        for n in ("abs", "sign", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "tanh")
    },
    **{
        n: n
        for n in (
            "arcsin",
            "arccos",
            "arctan",
            "arctan2",
            "sinh",
            "cosh",
            "maximum",
            "minimum",
            "floor",
            "ceil",
            "trunc",
        )
    },
    **{n: n for n in ("rint", "isnan", "isinf", "isfinite", "logical_not", "logical_and", "logical_or", "logical_xor")},
    "div": "true_divide",
}
"""Primitives whose reference implementation is a NumPy function that keeps dtypes."""
INLINE_LIMIT = 8  # operations in one expression at most


@dataclass
class GeneratedModule:
    """A source file being written.

    Attributes:
        functions: definitions, callees before callers.
        names: the function of each called graph.
        taken: these names; variables: those of all functions' variables, none of which may hide a function.
        objects: what the source refers to.
        regions: outlined straight-line groups of array operations, by name.
        calls: calls of these functions, by identity, with where they come from.
    """

    compiled_regions: bool = False
    functions: list[ast.FunctionDef] = field(default_factory=list)
    names: dict[Graph, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    objects: lit.Objects = field(default_factory=lit.Objects)
    regions: dict[str, Region] = field(default_factory=dict)
    calls: dict[int, tuple[ast.expr, Origin]] = field(default_factory=dict)

    def function(self, graph: Graph) -> str:
        """The name of the function that a graph is; defines it at first use."""
        if graph not in self.names:
            base = text = lit.identifier(graph.name, "f")
            count = 1
            while text in self.taken or text in self.variables:
                count += 1
                text = f"{base}_{count}"
            self.taken.add(text)
            self.names[graph] = text
            self.functions.append(FunctionWriter(self).define(graph, text))
        return self.names[graph]


class FunctionWriter:
    """One function being written."""

    def __init__(self, module: GeneratedModule):
        self.module = module
        self.taken: set[str] = set()
        self.env: dict[Node, ast.expr | list] = {}
        self.weight: dict[Node, int] = {}
        self.unnamed = 0  # the last number given to a value without a name
        self.depth = 0  # of blocks within blocks

    def define(self, graph: Graph, text: str) -> ast.FunctionDef:
        """`def` of a graph."""
        params = []
        for p in graph.params:
            fresh = self.fresh(p.name, "x")
            params.append(ast.arg(fresh))
            self.env[p] = lit.name(fresh)
        body: list[ast.stmt] = []
        result = self.block(graph, body)
        body.append(ast.Return(self.whole(result, graph.output.type)))
        arguments = ast.arguments([], params, None, [], [], None, [])
        # Python 3.12 has the field, older ones take it as an attribute.
        return ast.FunctionDef(text, arguments, body, [], None, None, type_params=[])  # pyright: ignore[reportCallIssue]

    def fresh(self, text: str | None, default: str = "t") -> str:
        """A variable name that is not taken."""
        base = lit.identifier(text, default)
        count = 1 if text else self.unnamed + 1
        out = base if text else f"{base}{count}"
        while out in self.taken or out in self.module.taken:
            count += 1
            out = f"{base}_{count}" if text else f"{base}{count}"
        self.taken.add(out)
        self.module.variables.add(out)
        self.unnamed = self.unnamed if text else count
        return out

    def block(self, graph: Graph, body: list[ast.stmt]) -> ast.expr | list:
        """Write a graph's applications as statements; returns its result."""
        users = uses(graph)
        self.depth += 1
        for node in outline(graph) if self.module.compiled_regions else graph.nodes:
            if isinstance(node, Region):
                self.region(node, body)
                continue
            value = self.application(node, body)
            self.env[node] = self.settle(node, value, users.get(node, []), graph, body)
        self.depth -= 1
        return self.value(graph.output)

    def region(self, region: Region, body: list[ast.stmt]) -> None:
        text = f"region_{len(self.module.regions)}"
        self.module.regions[text] = region
        called = lit.call(text, *[self.read(x) for x in region.inputs])
        targets = [self.fresh(x.name) for x in region.outputs]
        names: list[ast.expr] = [ast.Name(t, ast.Store()) for t in targets]
        body.append(ast.Assign([names[0] if len(names) == 1 else ast.Tuple(names, ast.Store())], called, lineno=0))
        for x, t in zip(region.outputs, targets, strict=True):
            self.env[x] = lit.name(t)

    def settle(self, node: Apply, value, users: list[Apply], graph: Graph, body: list[ast.stmt]):
        """A value where it was computed: in a variable, or as an expression that its only user takes in."""
        if isinstance(value, list) or isinstance(value, ast.Name | ast.Constant):
            return value
        weight = 1 + sum(self.weight.get(a, 0) for a in node.args)
        if weight <= INLINE_LIMIT and node.name is None and self.takes_in(node) and self.used_once(node, users, graph):
            self.weight[node] = weight
            return value
        text = self.fresh(node.name)
        body.append(assign(text, value))
        return lit.name(text)

    def used_once(self, node: Apply, users: list[Apply], graph: Graph) -> bool:
        """Whether a value is evaluated just once if it stands where it is used.

        Every variable is assigned once in a run of a block, so it does not matter when.
        """
        if graph.output is node:
            return not users
        if len(users) != 1 or sum(a is node for a in users[0].args) != 1:
            return False
        (user,) = users
        if user is graph.output:
            return True
        return self.takes_in(user) or user.args.index(node) < evaluated_once(user)

    def takes_in(self, node: Apply) -> bool:
        """Whether an application is arithmetic within its block."""
        return not isinstance(node.fn, Graph) and node.fn.kind in ("elementwise", "injective", "reduce", "opaque")

    def value(self, node: Node) -> ast.expr | list:
        """The value of a node.

        Raises:
            InternalError: it is used before it is defined.
        """
        if node not in self.env:
            if not isinstance(node, Constant):
                raise InternalError("python", f"{node!r} is used before it is defined")
            return lit.constant(node.value, node.type, self.module.objects)
        return self.env[node]

    def whole(self, value: ast.expr | list, t: Type) -> ast.expr:
        """A value as one expression."""
        if isinstance(value, list):
            assert isinstance(t, Struct)
            return lit.structure(
                t, [self.whole(v, e) for v, e in zip(value, t.elems, strict=True)], self.module.objects
            )
        return value

    def read(self, node: Node) -> ast.expr:
        """A node as one expression."""
        return self.whole(self.value(node), node.type)

    def store(self, value: ast.expr | list, t: Type, hint: str | None, body: list[ast.stmt]) -> ast.expr | list:
        """Put a value into variables, structures part by part; returns the variables, nested alike."""
        if isinstance(t, Struct):
            parts = self.parts(value, t, body)
            return [self.store(v, e, hint, body) for v, e in zip(parts, t.elems, strict=True)]
        assert not isinstance(value, list)
        text = self.fresh(hint)
        body.append(assign(text, value))
        return lit.name(text)

    def parts(self, value: ast.expr | list, t: Struct, body: list[ast.stmt]) -> list:
        """The parts of a structure."""
        if isinstance(value, list):
            return value
        if not isinstance(value, ast.Name):
            text = self.fresh(None)
            body.append(assign(text, value))
            value = lit.name(text)
        return [lit.part(t, value, i) for i in range(len(t.elems))]

    # Applications.

    def application(self, node: Apply, body: list[ast.stmt]) -> ast.expr | list:
        """The value of an application; what it does before goes to `body`."""
        if isinstance(node.fn, Graph):
            made = lit.call(self.module.function(node.fn), *[self.read(a) for a in node.args])
            self.module.calls[id(made)] = (made, node.origin)
            return made
        special = SPECIAL.get(node.fn.name)
        if special is not None:
            return special(self, node, body)
        return self.arithmetic(node)

    def arithmetic(self, node: Apply) -> ast.expr:
        """An application of a primitive with a reference implementation."""
        prim, t = node.fn.name, node.type
        args = [self.read(a) for a in node.args]
        types = [a.type for a in node.args]
        weak = all(isinstance(x, Scalar) and x.weak for x in types)
        if weak and isinstance(t, Scalar) and t.weak:
            plain = python_number(prim, args, types[0].dtype if types else "")
            if plain is not None:
                return plain
            if prim == "where":
                return ast.IfExp(*args)
        if prim == "stop_gradient":
            return args[0]
        if not weak and prim in (*OPERATORS, *COMPARISONS, "neg"):
            return fit(operator(prim, args), t, True)
        if prim in NUMPY:
            return fit(lit.call(lit.numpy(NUMPY[prim]), *args), t, True)
        if prim == "reshape" and isinstance(types[0], Array):
            return fit(
                lit.call(lit.attribute(args[0], "reshape"), lit.static(node.attrs["shape"], self.module.objects)),
                t,
                True,
            )
        if prim == "cast":
            return converted(args[0], types[0], t)
        if prim == "transpose":
            return lit.call(lit.numpy("transpose"), args[0], lit.static(node.attrs["perm"], self.module.objects))
        attrs = {k: lit.static(v, self.module.objects) for k, v in node.attrs.items()}
        return fit(lit.call(lit.attribute(lit.name("ops"), prim), *args, **attrs), t, False)


def evaluated_once(node: Apply) -> int:
    """How many leading operands of control stand outside of what it repeats: a condition, bounds, initial values."""
    match getattr(node.fn, "name", None):
        case "cond":
            return 1
        case "for_loop":
            return 3 + node.attrs["carried"]
        case "while_loop":
            return node.attrs["carried"]
    return 0


def assign(text: str, value: ast.expr) -> ast.Assign:
    """`text = value`."""
    return ast.Assign([ast.Name(text, ast.Store())], value, lineno=0)


def converted(value: ast.expr, own: Leaf, t: Leaf) -> ast.expr:
    """A conversion to another dtype."""
    if isinstance(t, Array):
        return (
            lit.call(lit.attribute(value, "astype"), ast.Constant(t.dtype))
            if isinstance(own, Array) and own.shape
            else fit(value, t, False)
        )
    if isinstance(own, Scalar) and own.dtype in ("int64", "bool") and t.dtype == "float64":
        return fit(value, t, False)
    cast = lit.call(lit.attribute(lit.name("ops"), "cast"), value, dtype=ast.Constant(t.dtype))
    return fit(cast, t, False)


def operator(prim: str, args: list[ast.expr]) -> ast.expr:
    """An application as an operator."""
    if prim in OPERATORS:
        return ast.BinOp(args[0], OPERATORS[prim](), args[1])
    if prim in COMPARISONS:
        return ast.Compare(args[0], [COMPARISONS[prim]()], [args[1]])
    return ast.UnaryOp(ast.USub(), args[0])


def python_number(prim: str, args: list[ast.expr], dtype: str) -> ast.expr | None:
    """An operation on Python numbers as an operator, where that means the same."""
    if prim in COMPARISONS:
        return operator(prim, args)
    if (prim in OPERATORS or prim == "neg") and dtype in ("float64", "int64"):
        out = operator(prim, args)
        return out if dtype == "float64" else lit.call("wrap", out)
    if prim == "logical_not":
        return ast.UnaryOp(ast.Not(), args[0])
    if prim in ("logical_and", "logical_or"):
        return ast.BoolOp(ast.And() if prim == "logical_and" else ast.Or(), args)
    return None


def fit(value: ast.expr, t: Type, keeps: bool) -> ast.expr:
    """A computed value as exactly the kind that its type says.

    Args:
        keeps: whether the dtype is right for sure, and a NumPy scalar stays one.
    """
    if isinstance(t, Scalar):
        if t.weak:
            return lit.call({"float64": "float", "int64": "int", "bool": "bool"}[t.dtype], value)
        return value if keeps else lit.np_scalar(t.dtype, value)
    if isinstance(t, Array) and (not keeps or t.shape == ()):
        return lit.call("as_array", value, ast.Constant(t.dtype))
    return value


SPECIAL: dict[str, Callable] = {}
"""Structures, tapes, effects and control, by name: (function, node, statements) -> value; filled by `statements`."""
