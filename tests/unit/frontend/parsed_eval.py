"""A tiny evaluator of parsed graphs on Python values: the oracle that shows that parsing keeps the meaning of a
program.

It knows nothing of types: an operation of Python is called, an operation of `ir.syntax` does what its documentation
says.
"""

from dataclasses import dataclass, field

from myia_relay.frontend import parse
from myia_relay.ir import syntax
from myia_relay.ir.node import Apply, Constant, Graph, Parameter
from myia_relay.ir.syntax import FreeName


class Refused(Exception):
    """What inference must refuse: a closure that survives the rebinding of what it captured."""


@dataclass
class Frame:
    """Values of the nodes of one run of a graph, and the run of the graph around it."""

    graph: Graph
    parent: "Frame | None"
    values: dict = field(default_factory=dict)


class Closure:
    """A graph with the frame that it was made in."""

    def __init__(self, graph, frame, defaults=None):
        self.graph, self.frame, self.defaults = graph, frame, defaults or {}

    def __call__(self, *args, **kwargs):
        sig = self.graph.signature
        if sig is None:
            return run(self.graph, args, self.frame)
        bound = dict(self.defaults)
        args = list(args)
        for k, value in enumerate(args[: sig.positional]):
            bound[k] = value
        if sig.vararg is not None:
            bound[sig.vararg] = tuple(args[sig.positional :])
        elif len(args) > sig.positional:
            raise TypeError("too many arguments")
        extra = {}
        for name, value in kwargs.items():
            if name in sig.names and sig.names.index(name) >= sig.posonly:
                bound[sig.names.index(name)] = value
            elif sig.kwarg is not None:
                extra[name] = value
            else:
                raise TypeError(name)
        if sig.kwarg is not None:
            bound[sig.kwarg] = extra
        return run(self.graph, [bound[k] for k in range(len(sig.names))], self.frame)


def run(graph, args, parent=None):
    while parent is not None and parent.graph is not graph.parent:
        parent = parent.parent
    frame = Frame(graph, parent)
    assert len(args) == len(graph.params), (graph.name, len(args), len(graph.params))
    frame.values.update(zip(graph.params, args))
    for node in graph.nodes:
        frame.values[node] = apply(node, frame)
    return value_of(graph.output, frame)


def value_of(node, frame):
    if isinstance(node, Constant):
        if isinstance(node.value, Graph):
            sig = node.value.signature
            defaults = {}
            if sig is not None:
                defaults = {k: value_of(d, frame) for k, d in sig.defaults.items()}
            return Closure(node.value, frame, defaults)
        if isinstance(node.value, FreeName):
            return node.value.read()
        return node.value
    assert isinstance(node, (Apply, Parameter))
    scope = frame
    while scope is not None and scope.graph is not node.graph:
        scope = scope.parent
    assert scope is not None, f"{node} of {node.graph.name} is not visible in {frame.graph.name}"
    assert node in scope.values, f"{node} ({node.name}) is used before it is computed"
    return scope.values[node]


def holds(value, graphs, seen=None):
    """Whether a value holds a closure of one of the graphs."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return False
    seen.add(id(value))
    if isinstance(value, Closure):
        return value.graph in graphs
    if isinstance(value, dict):
        return any(holds(v, graphs, seen) for v in value.values())
    return isinstance(value, (list, tuple)) and any(holds(v, graphs, seen) for v in value)


def apply(node, frame):
    fn = value_of(node.fn, frame)
    plain = len(node.args) - len(node.keywords)
    args, kwargs = [], {}
    for k, arg in enumerate(node.args):
        value = value_of(arg, frame)
        op = arg.fn.value if isinstance(arg, Apply) and isinstance(arg.fn, Constant) else None
        if k >= plain:
            kwargs[node.keywords[k - plain]] = value
        elif op is syntax.star:
            args.extend(value)
        elif op is syntax.double_star:
            kwargs.update(value)
        else:
            args.append(value)
    if not isinstance(fn, syntax.Syntax):
        return fn(*args, **kwargs)
    return SYNTAX[fn.name](node.attrs, *args)


def if_(attrs, cond, then, other):
    return then() if cond else other()


def while_(attrs, cond, body, *carried):
    assert len(attrs["names"]) == len(carried)
    while cond(*carried):
        carried = body(*carried)
    return tuple(carried)


def for_(attrs, iterable, body, *carried):
    assert len(attrs["names"]) == len(carried)
    for item in iterable:
        carried = body(item, *carried)
        if attrs.get("stops"):
            carried, go_on = carried[:-1], carried[-1]
            if not go_on:
                break
    return tuple(carried)


def unpack(attrs, value):
    before, star, after = attrs["before"], attrs["star"], attrs["after"]
    items = list(value)
    if not star:
        if len(items) != before:
            raise ValueError("unpack")
        return tuple(items)
    if len(items) < before + after:
        raise ValueError("unpack")
    return (*items[:before], items[before : len(items) - after], *items[len(items) - after :])


def check_bound(attrs, flag, value):
    if not flag:
        raise UnboundLocalError(attrs["name"])
    assert value is not syntax.UNBOUND
    return value


def assert_(attrs, cond, message):
    if not cond:
        raise AssertionError(*([message()] if message is not None else []))


def raise_(attrs, error):
    raise error


def format_(attrs, *values):
    out = []
    for part in attrs["parts"]:
        if isinstance(part, str):
            out.append(part)
            continue
        k, conversion, spec = part
        value = {"": lambda v: v, "r": repr, "s": str, "a": ascii}[conversion](values[k])
        out.append(format(value, spec))
    return "".join(out)


def setitem(attrs, x, index, value):
    out = x.copy()
    out[index] = value
    return out


def recapture(attrs, *values):
    if holds(values, {graph for graph, _ in attrs["graphs"]}):
        raise Refused(attrs["name"])


def cell_get(attrs, cell):
    if not cell:
        raise UnboundLocalError(attrs["name"])
    return cell[0]


def cell_set(attrs, cell, value):
    cell[:] = [value]


def match_field(attrs, subject, cls):
    if cls in (int, float, str, bool, tuple, list, dict):
        return subject
    return getattr(subject, cls.__match_args__[attrs["position"]])


def match_sequence(attrs, subject):
    if not isinstance(subject, (tuple, list)):
        return False
    return len(subject) >= attrs["length"] if attrs["star"] else len(subject) == attrs["length"]


SYNTAX = {
    "make_tuple": lambda attrs, *xs: xs,
    "make_list": lambda attrs, *xs: list(xs),
    "make_dict": lambda attrs, *xs: dict(zip(attrs["keys"], xs, strict=True)),
    "unpack": unpack,
    "star": lambda attrs, x: x,
    "double_star": lambda attrs, x: x,
    "if_": if_,
    "while_": while_,
    "for_": for_,
    "comprehension": lambda attrs, xs, body: [y for x in xs for y in body(x)],
    "check_bound": check_bound,
    "assert_": assert_,
    "raise_": raise_,
    "format": format_,
    "item_to_change": lambda attrs, x, index: x[index],
    "setitem": setitem,
    "annotate": lambda attrs, x, _: x,
    "list_append": lambda attrs, xs, x: [*xs, x],
    "recapture": recapture,
    "new_cell": lambda attrs: [],
    "cell_get": cell_get,
    "cell_set": cell_set,
    "match_field": match_field,
    "match_sequence": match_sequence,
}


def evaluate(fn, *args, **kwargs):
    """Parse a Python function and evaluate its graph."""
    graph = parse(fn)
    defaults = {k: d.value for k, d in graph.signature.defaults.items()}
    return Closure(graph, None, defaults)(*args, **kwargs)


def outcome(call, *args):
    """The result of a call, or the kind and text of its exception."""
    try:
        return call(*args)
    except Refused:
        raise
    except NameError:
        return "NameError"
    except Exception as error:
        return type(error).__name__, str(error) if not isinstance(error, (ValueError, TypeError)) else ""
