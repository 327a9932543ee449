"""Structures, tapes, effects, branches and loops as Python statements."""

from __future__ import annotations

import ast

from ...abstract.dims import symbols
from ...abstract.types import Array, List, Scalar, Struct, Type
from ...ir.build import placeholder
from ...ir.node import Apply, Graph
from ...ir.rewrite import Effects
from . import literals as lit
from .emit import SPECIAL, FunctionWriter, assign


def _make_struct(f: FunctionWriter, node: Apply, body):
    return [f.value(a) for a in node.args]


def _get_item(f: FunctionWriter, node: Apply, body):
    value, index = f.value(node.args[0]), node.attrs["index"]
    if isinstance(value, list):
        return value[index]
    return lit.part(node.args[0].type, value, index)


def _nothing(f: FunctionWriter, node: Apply, body):
    return ast.Constant(None)


def _undef(f: FunctionWriter, node: Apply, body):
    # A zero and not None: operations on it may have been moved to where they run on every path, with unused results.
    t = node.type
    if isinstance(t, List):
        return lit.call(lit.attribute(lit.name("ops"), "list_new"))
    if isinstance(t, Scalar):
        return lit.constant(placeholder(t), t, f.module.objects)
    if isinstance(t, Array):
        value = placeholder(t)
        if value is not None:
            return lit.constant(value, t, f.module.objects)
        entry = Scalar(t.dtype)
        zero = lit.constant(placeholder(entry), entry, f.module.objects)
        return lit.call(lit.numpy("full"), lit.static(t.shape, f.module.objects), zero)
    return ast.Constant(None)


def _tape_push(f: FunctionWriter, node: Apply, body):
    return lit.display([f.read(a) for a in node.args])


def _tape_pop(f: FunctionWriter, node: Apply, body):
    names = [f.fresh("tape"), f.fresh("saved")]
    target = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
    body.append(ast.Assign([target], f.read(node.args[0]), lineno=0))
    return [lit.name(n) for n in names]


def _list_new(f: FunctionWriter, node: Apply, body):
    return lit.call(lit.attribute(lit.name("ops"), "list_new"), *[f.read(a) for a in node.args])


def _dim_size(f: FunctionWriter, node: Apply, body):
    return lit.dimension(node.attrs["dim"])


def _bind_dim(f: FunctionWriter, node: Apply, body):
    (symbol,) = symbols(node.attrs["dim"])
    body.append(assign(symbol, f.read(node.args[0])))
    return lit.name(symbol)


def _raising(f: FunctionWriter, node: Apply, operands) -> ast.stmt:
    exception = f.module.objects.refer(node.attrs["exception"])
    parts = node.attrs["parts"]
    text = lit.message(parts, [f.read(a) for a in operands]) if parts else ast.Constant(None)
    return ast.Expr(lit.call("raise_at", exception, text, lit.place(node.origin)))


def _check(f: FunctionWriter, node: Apply, body):
    test = ast.UnaryOp(ast.Not(), f.read(node.args[0]))
    body.append(ast.If(test, [_raising(f, node, node.args[1:])], []))
    return ast.Constant(None)


def _raise(f: FunctionWriter, node: Apply, body):
    body.append(_raising(f, node, node.args))
    return ast.Constant(None)


def _print(f: FunctionWriter, node: Apply, body):
    text = lit.message(node.attrs["parts"], [f.read(a) for a in node.args])
    end = node.attrs["end"]
    keywords = {} if end == "\n" else {"end": ast.Constant(end)}
    body.append(ast.Expr(lit.call("print", text, **keywords)))
    return ast.Constant(None)


def _call_operator(f: FunctionWriter, node: Apply, body):
    values = ast.List([f.read(a) for a in node.args], ast.Load())
    names = ("op", "attrs", "kinds", "levels")
    attrs = {k: lit.static(node.attrs[k], f.module.objects) for k in names}
    return lit.call("call_registered", lit.place(node.origin), values, **attrs)


def _array(f: FunctionWriter, node: Apply) -> ast.expr:
    return lit.subscript(lit.attribute(f.read(node.args[0]), "arrays"), node.attrs["index"])


def _ref_read(f: FunctionWriter, node: Apply, body):
    copied = lit.call(lit.numpy("array"), _array(f, node))
    return lit.np_scalar(node.type.dtype, copied) if isinstance(node.type, Scalar) else copied


def _ref_write(f: FunctionWriter, node: Apply, body):
    target = ast.Subscript(_array(f, node), ast.Constant(...), ast.Store())
    body.append(ast.Assign([target], f.read(node.args[1]), lineno=0))
    return ast.Constant(None)


DEEPEST = 40  # nested blocks: Python accepts at most a hundred, so the branches of deeper ones are functions


def _cond(f: FunctionWriter, node: Apply, body):
    condition, *operands = node.args
    branches: list[list[ast.stmt]] = []
    result = None
    for key in ("then", "orelse"):
        graph: Graph = node.attrs[key]
        statements: list[ast.stmt] = []
        if f.depth > DEEPEST:
            out = lit.call(f.module.function(graph), *[f.read(o) for o in operands])
        else:
            for param, operand in zip(graph.params, operands, strict=True):
                f.env[param] = f.value(operand)
            out = f.block(graph, statements)
        if result is None:
            result = f.store(out, node.type, node.name, statements)
        else:
            _assign(f, result, out, node.type, statements)
        branches.append(statements)
    body.append(ast.If(f.read(condition), branches[0] or [ast.Pass()], branches[1]))
    return result


def _assign(f: FunctionWriter, target, value, t: Type, body) -> None:
    """Assign to variables, structures part by part, all at once where there are several."""
    pairs: list[tuple[ast.Name, ast.expr]] = []
    stack = [(target, value, t)]
    while stack:
        to, new, kind = stack.pop()
        if isinstance(kind, Struct):
            stack.extend(zip(to, f.parts(new, kind, body), kind.elems, strict=True))
        elif not (isinstance(new, ast.Name) and new.id == to.id):
            pairs.append((to, new))
    pairs.reverse()
    if not pairs:
        return
    values = [new for _, new in pairs]
    if len(pairs) == 1:
        body.append(assign(pairs[0][0].id, values[0]))
    else:
        names: list[ast.expr] = [ast.Name(to.id, ast.Store()) for to, _ in pairs]
        body.append(ast.Assign([ast.Tuple(names, ast.Store())], lit.display(values), lineno=0))


def _carry(f: FunctionWriter, node: Apply, init, params, body) -> list:
    """Variables for the carried values of a loop, with their initial values."""
    return [f.store(f.value(x), x.type, p.name, body) for x, p in zip(init, params, strict=True)]


def _bind(f: FunctionWriter, graph: Graph, first: int, carried: list, constants) -> None:
    """The parameters of a loop's graph: the carried variables, and the loop's constants as they are outside."""
    values = [*carried, *(f.value(k) for k in constants)]
    for param, value in zip(graph.params[first:], values, strict=True):
        f.env[param] = value


def _while(f: FunctionWriter, node: Apply, body):
    n, test, inner = node.attrs["carried"], node.attrs["cond"], node.attrs["body"]
    carried = _carry(f, node, node.args[:n], inner.params[:n], body)
    _bind(f, test, 0, carried, node.args[n:])
    _bind(f, inner, 0, carried, node.args[n:])
    before: list[ast.stmt] = []
    going = f.whole(f.block(test, before), test.output.type)
    statements: list[ast.stmt] = []
    only = before[0] if len(before) == 1 else None
    if isinstance(only, ast.Assign) and _is_name(going, only):
        going, before = only.value, []
    if before:
        statements = [*before, ast.If(ast.UnaryOp(ast.Not(), going), [ast.Break()], [])]
        going = ast.Constant(True)
    out = f.block(inner, statements)
    _assign(f, carried, out, inner.output.type, statements)
    _poll(inner, statements)
    body.append(ast.While(going, statements or [ast.Pass()], []))
    return carried


def _is_name(value: ast.expr, statement: ast.Assign) -> bool:
    return (
        isinstance(value, ast.Name)
        and isinstance(statement.targets[0], ast.Name)
        and value.id == statement.targets[0].id
    )


def _poll(inner: Graph, statements: list[ast.stmt]) -> None:
    """The end of an iteration that writes references is a place for Ctrl-C."""
    if "write" in Effects().of_graph(inner):
        statements.append(ast.Expr(lit.call("poll")))


def _for(f: FunctionWriter, node: Apply, body):
    n, inner = node.attrs["carried"], node.attrs["body"]
    bounds, init, constants = node.args[:3], node.args[3 : 3 + n], node.args[3 + n :]
    carried = _carry(f, node, init, inner.params[1 : 1 + n], body)
    index = f.fresh(inner.params[0].name, "i")
    f.env[inner.params[0]] = lit.name(index)
    _bind(f, inner, 1, carried, constants)
    statements: list[ast.stmt] = []
    t = inner.params[0].type
    if not t.weak:
        statements.append(assign(index, lit.np_scalar(t.dtype, lit.name(index))))
    out = f.block(inner, statements)
    _assign(f, carried, out, inner.output.type, statements)
    _poll(inner, statements)
    limits = [f.read(x) for x in bounds]
    if isinstance(limits[2], ast.Constant) and limits[2].value == 1:
        limits.pop()
        if isinstance(limits[0], ast.Constant) and limits[0].value == 0:
            limits.pop(0)
    loop = ast.For(
        ast.Name(index, ast.Store()), lit.call("range", *limits), statements or [ast.Pass()], [], None, lineno=0
    )
    body.append(loop)
    return carried


SPECIAL.update(
    {
        "make_struct": _make_struct,
        "get_item": _get_item,
        "undef": _undef,
        "none": _nothing,
        "list_new": _list_new,
        "tape_new": _nothing,
        "tape_push": _tape_push,
        "tape_pop": _tape_pop,
        "dim_size": _dim_size,
        "bind_dim": _bind_dim,
        "check": _check,
        "raise": _raise,
        "print": _print,
        "call_operator": _call_operator,
        "operator_kernel": _call_operator,
        "ref_read": _ref_read,
        "ref_write": _ref_write,
        "cond": _cond,
        "while_loop": _while,
        "for_loop": _for,
    }
)
