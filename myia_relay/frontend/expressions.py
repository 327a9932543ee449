"""Expressions: each becomes a node in the current graph, in Python's order of evaluation."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from ..ir import syntax
from ..ir.node import Constant, Node
from ..library.complex_numbers import Complex
from .assignments import bind, change_entry, change_list
from .changed_arguments import call_changing
from .comprehensions import comprehension, search
from .conditionals import condition, conditional
from .context import EXPRESSIONS, ParseContext, handles
from .functions import closure
from .text.order import evaluated_after
from .text.scope import NeedsCell, changed

BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert, ast.Not: operator.not_}
COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


@handles(EXPRESSIONS, ast.Constant)
def constant(p: ParseContext, node: ast.Constant) -> Node:
    """A literal."""
    if isinstance(node.value, complex):
        return p.apply(Complex, Constant(0.0), Constant(node.value.imag), at=node)
    if isinstance(node.value, bytes):
        raise p.refuse("bytes literals are not part of the language; use a string or an array of uint8", node)
    return p.constant(node.value, node)


@handles(EXPRESSIONS, ast.Name)
def name(p: ParseContext, node: ast.Name) -> Node:
    """A variable, a captured variable, or a name from outside."""
    return p.load(node.id, node)


@handles(EXPRESSIONS, ast.BinOp)
def binary(p: ParseContext, node: ast.BinOp) -> Node:
    """`a + b`; a long sum leans to the left, so its spine is walked with a loop."""
    if (whole := whole_number(node)) is not None:
        return p.constant(whole, node)
    spine: list[ast.BinOp] = []
    left: ast.expr = node
    while isinstance(left, ast.BinOp):
        spine.append(left)
        left = left.left
    before = len(p.waiting)
    value = p.expr(left)
    for part in reversed(spine):
        value = p.apply(BINARY[type(part.op)], value, p.expr(part.right), at=part)
        p.used(before, part, value)
    return value


def whole_number(node: ast.expr) -> int | None:
    """An int that literals compute from numbers of more than 64 bits: `2**63 - 1`, `-2**63`; None for all other
    expressions.
    """
    wide = False

    def value(part: ast.expr, depth: int = 0) -> int | None:
        nonlocal wide
        if depth > 8:
            return None
        if isinstance(part, ast.Constant):
            found = part.value if type(part.value) is int else None
        elif isinstance(part, ast.UnaryOp) and type(part.op) in (ast.USub, ast.UAdd, ast.Invert):
            inner = value(part.operand, depth + 1)
            found = None if inner is None else UNARY[type(part.op)](inner)
        elif isinstance(part, ast.BinOp) and type(part.op) in (ast.Add, ast.Sub, ast.Mult, ast.Pow, ast.LShift):
            a, b = value(part.left, depth + 1), value(part.right, depth + 1)
            if a is None or b is None or isinstance(part.op, ast.Pow | ast.LShift) and not 0 <= b <= 128:
                return None
            found = BINARY[type(part.op)](a, b)
        else:
            return None
        wide = wide or found is not None and not -(2**63) <= found < 2**63
        return found if found is not None and abs(found) < 2**128 else None

    outermost = node.operand if isinstance(node, ast.UnaryOp) else node.left if isinstance(node, ast.BinOp) else None
    if not isinstance(outermost, ast.Constant | ast.UnaryOp | ast.BinOp):
        return None
    found = value(node)
    return found if wide and found is not None and -(2**63) <= found < 2**63 else None


@handles(EXPRESSIONS, ast.UnaryOp)
def unary(p: ParseContext, node: ast.UnaryOp) -> Node:
    """`-x`; a negative literal is a constant."""
    operand = node.operand
    literal = operand.value if isinstance(operand, ast.Constant) else None
    if isinstance(node.op, ast.USub) and isinstance(literal, int | float) and not isinstance(literal, bool):
        return p.constant(-literal, node)
    if (whole := whole_number(node)) is not None:
        return p.constant(whole, node)
    value = condition(p, operand) if isinstance(node.op, ast.Not) else p.expr(operand)
    return p.apply(UNARY[type(node.op)], value, at=node)


@handles(EXPRESSIONS, ast.BoolOp)
def boolean(p: ParseContext, node: ast.BoolOp) -> Node:
    """`a and b`  =>  `if_(a, b, a)`; `a or b`  =>  `if_(a, a, b)`: the operands' values, lazily."""
    both = isinstance(node.op, ast.And)

    def operand(v: ast.expr) -> Node:
        before = len(p.waiting)
        value = p.expr(v)
        p.used(before)  # it is the result, or only its truth value counts
        return value

    return _lazily(p, [lambda v=v: operand(v) for v in node.values], both, node)


@handles(EXPRESSIONS, ast.Compare)
def compare(p: ParseContext, node: ast.Compare) -> Node:
    """`a < b < c`  =>  `if_(a < b, b < c, a < b)`, with b evaluated once and c only if needed."""
    before = len(p.waiting)
    left = p.expr(node.left)

    def step(op: ast.cmpop, part: ast.expr) -> Node:
        nonlocal left
        right = p.expr(part)
        here, left = left, right
        p.used(before, part, right)
        if isinstance(op, (ast.In, ast.NotIn)):
            found = p.apply(operator.contains, right, here, at=node)
            return found if isinstance(op, ast.In) else p.apply(operator.not_, found, at=node)
        return p.apply(COMPARE[type(op)], here, right, at=node)

    steps = [lambda op=op, part=part: step(op, part) for op, part in zip(node.ops, node.comparators, strict=True)]
    return _lazily(p, steps, True, node)


def _lazily(p: ParseContext, thunks: list[Callable[[], Node]], both: bool, at: ast.AST) -> Node:
    """Chain thunks by `and` (`both`) or `or`."""
    first = thunks[0]()
    if len(thunks) == 1:
        return first

    def rest() -> Node:
        return _lazily(p, thunks[1:], both, at)

    def stop() -> Node:
        return first

    return conditional(p, first, rest if both else stop, stop if both else rest, at, "and" if both else "or")


@handles(EXPRESSIONS, ast.IfExp)
def ternary(p: ParseContext, node: ast.IfExp) -> Node:
    """`a if c else b`."""
    return conditional(p, condition(p, node.test), lambda: p.expr(node.body), lambda: p.expr(node.orelse), node, "if")


@handles(EXPRESSIONS, ast.NamedExpr)
def walrus(p: ParseContext, node: ast.NamedExpr) -> Node:
    """`(x := e)`.

    Raises:
        NeedsCell: an inner function captures the name, which must become a cell.
    """
    name = node.target.id
    if (p.hidden or name in p.scope.captured) and name in p.scope.locals and p.cell(name) is None:
        raise NeedsCell(p.scope.cells, name)
    value = p.looked_up(node.value)
    bind(p, name, value, node.target)
    return value


@handles(EXPRESSIONS, ast.Attribute)
def attribute(p: ParseContext, node: ast.Attribute) -> Node:
    """`x.a`  =>  `getattr(x, "a")`."""
    return p.apply(getattr, p.expr(node.value), p.constant(node.attr, node), at=node)


@handles(EXPRESSIONS, ast.Subscript)
def subscript(p: ParseContext, node: ast.Subscript) -> Node:
    """`x[i]`  =>  `getitem(x, i)`."""
    return p.apply(operator.getitem, p.expr(node.value), p.expr(node.slice), at=node)


@handles(EXPRESSIONS, ast.Slice)
def slice_(p: ParseContext, node: ast.Slice) -> Node:
    """`a:b:c`  =>  `slice(a, b, c)`, with None for what is left out."""
    parts = [p.expr(part) if part else p.constant(None, node) for part in (node.lower, node.upper, node.step)]
    return p.apply(slice, *parts, at=node)


def _elements(p: ParseContext, nodes: list[ast.expr]) -> list[Node]:
    out = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            out.append(p.apply(syntax.star, p.expr(node.value), at=node))
        else:
            out.append(p.expr(node))
    return out


@handles(EXPRESSIONS, ast.Tuple)
def tuple_(p: ParseContext, node: ast.Tuple) -> Node:
    """`(a, *b)`."""
    return p.apply(syntax.make_tuple, *_elements(p, node.elts), at=node)


@handles(EXPRESSIONS, ast.List)
def list_(p: ParseContext, node: ast.List) -> Node:
    """`[a, *b]`."""
    return p.apply(syntax.make_list, *_elements(p, node.elts), at=node)


@handles(EXPRESSIONS, ast.Dict)
def dict_(p: ParseContext, node: ast.Dict) -> Node:
    """`{"a": x, k: y, **d}`  =>  `{"a": x} | dict([(k, y)]) | d`."""
    parts: list = []  # dicts with literal keys, of which the last of equal ones counts, as in Python; nodes of others
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            if not parts or not isinstance(parts[-1], dict):
                parts.append({})
            parts[-1][key.value] = p.expr(value)
        elif key is None:
            parts.append(p.expr(value))
        else:
            pair = p.apply(syntax.make_tuple, p.expr(key), p.expr(value), at=key)
            parts.append(p.apply(dict, p.apply(syntax.make_list, pair, at=key), at=key))
    if not parts or not isinstance(parts[0], dict):
        parts.insert(0, {})

    def made(part: dict | Node) -> Node:
        if not isinstance(part, dict):
            return part
        return p.apply(syntax.make_dict, *part.values(), at=node, attrs={"keys": tuple(part)})

    out = made(parts[0])
    for part in parts[1:]:
        out = p.apply(operator.or_, out, made(part), at=node)
    return out


@handles(EXPRESSIONS, ast.Call)
def call(p: ParseContext, node: ast.Call) -> Node:
    """`f(a, *b, c=d, **e)`."""
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not p.is_local("super"):
        raise p.refuse(
            "'super()' is not part of the language; name the class and call its function: Base.method(self)", node
        )
    changing = None if p.hidden else _changing(p, node)
    if changing is not None:
        later, p.later = p.later, p.live.read_by(evaluated_after(p.statement, node))
        try:
            return changing()
        finally:
            p.later = later
    fn = p.expr(node.func)
    if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp) and not node.keywords:
        found = search(p, node)
        if found is not None:
            return found
        args = [p.apply(iter, comprehension(p, node.args[0]), at=node.args[0])]
    else:
        args = _elements(p, node.args)
    spread: list[Node] = []
    named: dict[str, Node] = {}
    for keyword in node.keywords:
        value = p.expr(keyword.value)
        if keyword.arg is not None:
            named[keyword.arg] = value
            continue
        if named:  # Keyword arguments are in the order in which they are written.
            before = p.apply(syntax.make_dict, *named.values(), at=node, attrs={"keys": tuple(named)})
            spread.append(p.apply(syntax.double_star, before, at=node))
            named = {}
        spread.append(p.apply(syntax.double_star, value, at=keyword))
    return p.apply(fn, *args, *spread, *named.values(), at=node, keywords=tuple(named))


def _changing(p: ParseContext, node: ast.Call) -> Callable[[], Node] | None:
    """What parses a call that changes something in place; None for any other call."""
    base = changed(node)
    if base is not None and isinstance(node.func, ast.Attribute) and base.id in p.scope.locals - p.scope.captured:
        method = node.func
        if not any(isinstance(a, ast.Starred) for a in node.args) and all(k.arg for k in node.keywords):
            if isinstance(method.value, ast.Subscript):
                return lambda: change_entry(p, node, base)
            return lambda: _change_list(p, node, base, method.attr)
    places = p.procedures.calls.get(node)
    return (lambda: call_changing(p, node, places)) if places else None


def _change_list(p: ParseContext, node: ast.Call, base: ast.Name, method: str) -> Node:
    """`xs.pop(i)`."""
    before = len(p.waiting)
    args = [p.expr(a) for a in node.args] + [p.expr(k.value) for k in node.keywords]
    p.used(before)
    return change_list(p, node, base, method, args, tuple(k.arg for k in node.keywords if k.arg is not None))


@handles(EXPRESSIONS, ast.Lambda)
def lambda_(p: ParseContext, node: ast.Lambda) -> Node:
    """`lambda x: e`: a constant that holds a graph."""
    return closure(p, node)


@handles(EXPRESSIONS, ast.JoinedStr)
def formatted(p: ParseContext, node: ast.JoinedStr) -> Node:
    """An f-string: literal parts, and (index of the value, conversion, format specification)."""
    parts: list = []
    values: list[Node] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(part.value)
            continue
        assert isinstance(part, ast.FormattedValue)
        spec = ""
        if part.format_spec is not None:
            assert isinstance(part.format_spec, ast.JoinedStr)
            pieces = part.format_spec.values
            literal = [piece.value for piece in pieces if isinstance(piece, ast.Constant)]
            if len(literal) < len(pieces):
                raise p.refuse("a format specification must be literal text; compute the text of the value apart", node)
            spec = "".join(map(str, literal))
        before = len(p.waiting)
        values.append(p.expr(part.value))
        p.used(before)  # it is text from here on
        parts.append((len(values) - 1, chr(part.conversion) if part.conversion >= 0 else "", spec))
    return p.apply(syntax.format_, *values, at=node, attrs={"parts": tuple(parts)})
