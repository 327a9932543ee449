"""Converting values to the form of a joined treedef, in which they leave branches, loops and functions.

A list of known length becomes a run-time list (`promoted`), a value becomes one option of a tagged union, a record
becomes a leaf.
"""

from __future__ import annotations

from ...abstract.families import FieldError
from ...abstract.types import INT, NONE, Data, List, NoneT, Scalar, Struct, Type, is_array_entry, tuple_of
from ...abstract.words import constant
from ...ir.node import Constant, Graph, Node
from ...ir.prim import REGISTRY
from ...prims.ops.control import for_loop, undef
from ...prims.ops.data import data_make
from ...prims.ops.structure import get_item, make_struct
from ...utils.errors import InternalError, TypeError_
from ..values.functions import FunctionFamily
from ..values.sizes import hide_sizes, pack_array
from ..values.treedef import (
    WORDS,
    Mismatch,
    TreeDef,
    as_entry,
    entries_of,
    from_type,
    is_function,
    join,
    join_entries,
    tree_structure,
    type_of,
    unknown,
)
from ..values.values import (
    NONE_VAL,
    AtVal,
    Bound,
    ClosureVal,
    Derived,
    Dyn,
    Iter,
    KnownRecord,
    Listed,
    NeverVal,
    PoisonVal,
    Raised,
    Seq,
    SliceVal,
    Static,
    TaggedUnion,
    Text,
    UnboundVal,
    Val,
    elements,
)
from .frames import Frame, emit
from .records import adapt


def parts_of(value: Text | Raised | SliceVal | Iter | AtVal) -> tuple[Val, ...]:
    """The parts of a string, an exception, a slice, an iterator or a `relay.at(x)`, as in its treedef."""
    if isinstance(value, AtVal):
        return (value.array,) if value.index is None else (value.array, value.index)
    if isinstance(value, Text):
        return value.operands
    if isinstance(value, Raised):
        return () if value.message is None else (value.message,)
    return (value.start, value.stop, value.step) if isinstance(value, SliceVal) else value.parts


def conform(frame: Frame, value: Val, treedef: TreeDef) -> list[Node]:
    """The leaf nodes of a value in the form of a joined treedef.

    Known numbers become leaves where the treedef has forgotten them, unbound parts become placeholders.
    """
    nodes: list[Node] = []

    def go(value: Val, treedef: TreeDef) -> None:
        if isinstance(value, UnboundVal | NeverVal | PoisonVal):
            nodes.extend(frame.builder.emit(undef, (), {"type": leaf.info}) for leaf in treedef.leaves())
        elif treedef.tag == "sized":
            assert isinstance(value, Dyn)
            nodes.extend(pack_array(frame.builder, value.node, treedef))
        elif treedef.tag == "choice":
            nodes.extend(conform_choice(frame, value, treedef, conform))
        elif treedef.tag == "dyn":
            nodes.append(
                adapt(frame, value, treedef.info)
                if isinstance(treedef.info, Data)
                else leaf_node(frame, value, treedef.info)
            )
        elif treedef == WORDS:
            nodes.append(code_of_word(frame, value).node)
        elif isinstance(value, Seq):
            for part, part_treedef in zip(value.elems, treedef.parts, strict=True):
                go(part, part_treedef)
        elif isinstance(value, ClosureVal):
            for (_, part), part_treedef in zip(frame.captured(value), treedef.parts, strict=True):
                go(part, part_treedef)
        elif isinstance(value, Bound | Derived):
            go(value.receiver if isinstance(value, Bound) else value.function, treedef.parts[0])
        elif isinstance(value, Text | Raised | SliceVal | Iter | AtVal):
            for part, part_treedef in zip(parts_of(value), treedef.parts, strict=True):
                go(part, part_treedef)
        elif treedef.parts:
            inner: list[Node] = []
            actual = tree_structure(value, inner, keep_constants=True, capture=frame.captured)
            if actual != treedef:
                inner = []
                actual = tree_structure(value, inner, keep_constants=False, capture=frame.captured)
                if actual != unknown(treedef):
                    raise InternalError("infer", f"cannot conform {actual} to {treedef}")
            nodes.extend(inner)

    go(value, treedef)
    return nodes


def code_of_word(frame: Frame, value: Val) -> Dyn:
    """The code of a string, known when compiling or not, or of one of several."""
    if isinstance(value, Static):
        return frame.constant(constant(value.value))
    if isinstance(value, TaggedUnion):
        *rest, result = [code_of_word(frame, option) for option in value.options]
        for k in range(len(rest) - 1, -1, -1):
            result = emit(frame, "where", emit(frame, "eq", value.tag, frame.constant(k)), rest[k], result)
        return result
    (code,) = elements(value)
    assert isinstance(code, Dyn)
    return code


def entering(frame: Frame, values: list[Val], treedefs: tuple, nodes: list[Node]) -> tuple[tuple, list[Node]]:
    """Treedefs and leaf nodes of what is given to a function, without dimensions that values decide."""
    hidden = tuple(map(hide_sizes, treedefs))
    if all(h is t for h, t in zip(hidden, treedefs, strict=True)):
        return treedefs, nodes
    return hidden, [n for v, t in zip(values, hidden, strict=True) for n in conform(frame, v, t)]


def leaving(frame: Frame, result: Val, transformed: bool) -> tuple[TreeDef, list[Node]]:
    """Treedef and leaf nodes of what a function returns, without dimensions that it binds.

    Args:
        frame: its frame.
        result: what it returns.
        transformed: whether it is to be transformed: then known numbers are returned at run time too.
    """
    nodes: list[Node] = []
    treedef = tree_structure(result, nodes, not transformed, frame.captured)
    hidden = hide_sizes(treedef, frame.graph)
    return (treedef, nodes) if hidden is treedef else (hidden, conform(frame, result, hidden))


LONG = 32  # number of entries: `[x] * n` with a larger known n is a run-time list from the start


def promoted(frame: Frame, value: Val, elem: Type | None = None) -> Dyn:
    """A list as a run-time list.

    Args:
        frame: where.
        value: any list.
        elem: the type of its entries; needed where it is empty.

    Raises:
        TypeError_: its entries are no entries of a run-time list: they differ in type, or exist at compile time only.
    """
    if isinstance(value, Listed | Dyn):
        made = emit(frame, "list_from_array", value.array) if isinstance(value, Listed) else value
        if elem is not None and made.type.elem != elem:
            if is_wider(elem, made.type.elem):
                return relisted(frame, made, elem)
            raise TypeError_(
                f"a list has entries of one type: this one has {made.type.elem}, and is put together with {elem}"
            )
        return made
    if elem is None:
        elem = entry_type(frame, value)
    elems = elements(value)
    if len(elems) > LONG and all(e is elems[0] for e in elems):
        one = Dyn(frame.builder.emit(REGISTRY["list_new"], (entry_node(frame, elems[0], elem),), {"elem": elem}))
        return emit(frame, "list_repeat", one, frame.constant(len(elems)))
    nodes = tuple(entry_node(frame, e, elem) for e in elems)
    made = frame.builder.emit(REGISTRY["list_new"], nodes, {"elem": elem})
    if value in frame.spec.shared:
        frame.spec.shared.add(made)
    return Dyn(made)


def is_wider(elem: Type, other: Type) -> bool:
    """Whether entries of one type can be made of entries of another: rows of any length of rows of a known one."""
    want = from_type(elem)
    try:
        return join(want, from_type(other)) == want
    except Mismatch:
        return False


def relisted(frame: Frame, value: Dyn, elem: Type) -> Dyn:
    """A run-time list with entries of a wider type, which are made one after the other."""
    empty = frame.builder.emit(REGISTRY["list_new"], (), {"elem": elem})
    size = emit(frame, "list_len", value)
    body = Graph(f"{frame.graph.name}.entries", None, frame.builder.origin)
    inner = Frame(frame.spec, body, frame)
    index, made, source = (body.add_parameter(n, t) for n, t in (("i", INT), ("made", empty.type), ("xs", value.type)))
    inner.at(frame.builder.origin)
    entry = from_node(inner, inner.builder.emit(REGISTRY["list_get"], (source, index)))
    made = inner.builder.emit(REGISTRY["list_push"], (made, entry_node(inner, entry, elem)))
    body.output = inner.builder.emit(make_struct, (made,), {"type": tuple_of(made.type)})
    bounds = [frame.constant(0).node, size.node, frame.constant(1).node]
    loop = frame.graph.apply(
        for_loop,
        *(*bounds, empty, value.node),
        attrs={"body": body, "carried": 1},
        type=tuple_of(empty.type),
        origin=frame.builder.origin,
    )
    return Dyn(frame.builder.emit(get_item, (loop,), {"index": 0}))


def wider_elem(frame: Frame, value: Val, new: Val) -> Type:
    """The type of the entries of a list that gets one more, which may be a row of another length than the others.

    Raises:
        TypeError_: its entries have no type in common.
    """
    try:
        common = entries_of(tree_structure(value, capture=frame.captured))
        given = as_entry(tree_structure(new, capture=frame.captured))
        return type_of(given if common is None else unknown(join_entries(common, given)))
    except Mismatch:  # the error is that of the entry
        return entry_type(frame, value)


def from_node(frame: Frame, node: Node) -> Val:
    """A node as a value; structures are taken apart."""
    if node.type == NONE:
        return NONE_VAL
    if isinstance(node.type, Struct):
        t = node.type
        if is_array_entry(t):
            leaves = (frame.builder.emit(get_item, (node,), {"index": i}) for i in range(len(t.elems)))
            return frame.rebuild(from_type(t), leaves)
        parts = tuple(
            from_node(frame, frame.builder.emit(get_item, (node,), {"index": i})) for i in range(len(t.elems))
        )
        if t.kind == "union":
            which, *options = parts
            assert isinstance(which, Dyn)
            return TaggedUnion(which, tuple(options))
        return Seq(t.kind, parts, t.fields, t.cls)
    return Dyn(node)


def leaf_node(frame: Frame, value: Val, t: Type) -> Node:
    """The node of a leaf of a joined type: a list is promoted if necessary."""
    if isinstance(t, List) and not (isinstance(value, Dyn) and value.type == t):
        value = promoted(frame, value, t.elem)
    assert isinstance(value, Dyn)
    return value.node


def entry_type(frame: Frame, value: Val) -> Type:
    """The type of the entries of a list.

    Raises:
        TypeError_: they have none in common, or the list is empty.
    """
    if isinstance(value, Dyn):
        return value.type.elem
    try:
        common = entries_of(tree_structure(value, capture=frame.captured))
        if common is None:
            raise TypeError_("the type of the entries of this list is not known: it is empty")
        return type_of(common)
    except Mismatch as error:
        raise TypeError_(_no_entry(error)) from None


def _no_entry(error: Mismatch) -> str:
    if error.why:
        return error.why
    if error.a == error.b:
        return f"a list whose length is known at run time only cannot hold {error.a}; numbers, arrays, tuples and records it can"
    return f"a list whose length is known at run time only has entries of one type, but this one has {error.a} and {error.b}"


def entry_node(frame: Frame, value: Val, elem: Type) -> Node:
    """A value as an entry of a list.

    Raises:
        TypeError_: it is of another type.
    """
    want = from_type(elem)
    have = as_entry(tree_structure(value, capture=frame.captured))
    try:
        fits = join(want, have) == want
    except Mismatch:
        fits = False
    if not fits:
        hint = "; write 0.0 rather than 0 where floats are meant" if str(want) == "float" and str(have) == "int" else ""
        if str(want) == "float" and str(have).startswith("np.float"):
            hint = "; convert it: float(...)"
        if str(want) == "None":
            hint = "; begin with entries of the type that they will have: [0] * n, or [0.0] * n"
        raise TypeError_(f"a list has entries of one type: this one has {want}, and is given {have}{hint}")
    return _assembled(frame, elem, iter(conform(frame, value, want)))


def _assembled(frame: Frame, t: Type, leaves) -> Node:
    if isinstance(t, Struct):
        return frame.builder.emit(
            REGISTRY["make_struct"], tuple(_assembled(frame, e, leaves) for e in t.elems), {"type": t}
        )
    if isinstance(t, NoneT):
        return frame.builder.emit(REGISTRY["none"], ())
    return next(leaves)


def common_elem(frame: Frame, *lists: Val) -> Type:
    """The type of the entries of several lists, of which some may be empty.

    Raises:
        TypeError_: all of them are empty, or their entries differ in type.
    """
    try:
        common = None
        for value in lists:
            entry = entries_of(tree_structure(value, capture=frame.captured))
            if entry is not None:
                common = entry if common is None else unknown(join_entries(common, entry, True))
        if common is None:
            raise TypeError_("the type of the entries of these lists is not known: they are empty")
        return type_of(common)
    except Mismatch as error:
        raise TypeError_(_no_entry(error)) from None


def has_entry_type(frame: Frame, value: Val) -> bool:
    """Whether a list can be promoted."""
    try:
        entry_type(frame, value)
    except TypeError_:
        return False
    return True


def conform_choice(frame, value: Val, treedef: TreeDef, conform) -> list:
    """The leaves of a value in the form of a tagged union: the tag, then the leaves of every option.

    Options that are not given are placeholders. All options of float64 but known numbers hold the same number, so that
    arithmetic on Python's and NumPy's floats needs no selection (`unions.as_one_float`).
    """
    tag_treedef, *option_treedefs = treedef.parts
    nodes: list = []
    if isinstance(value, TaggedUnion):
        places = [place_of(option_treedefs, tree_structure(o, capture=frame.captured)) for o in value.options]
        tag = value.tag
        if places != list(range(len(places))):
            tag = frame.constant(places[0])
            for old, new in list(enumerate(places))[1:]:
                hit = emit(frame, "eq", value.tag, frame.constant(old))
                tag = emit(frame, "where", hit, frame.constant(new), tag)
        given = {}
        for place in dict.fromkeys(places):
            options = [(k, value.options[k]) for k, p in enumerate(places) if p == place]
            # Several are one where they have become values of one data type, of functions for instance.
            form = option_treedefs[place]
            given[place] = options[0][1] if len(options) == 1 else _merged(frame, value.tag, options, form, conform)
    else:
        place = place_of(option_treedefs, tree_structure(value, capture=frame.captured))
        tag, given = frame.constant(place), {place: value}
    nodes.append(tag.node)
    doubles = {k: v.node for k, v in given.items() if isinstance(v, Dyn) and _is_double(option_treedefs[k])}
    number = _one_number(frame, tag, doubles) if doubles else None
    for index, option in enumerate(option_treedefs):
        if number is not None and option.tag == "dyn" and _is_double(option):
            attrs = {"dtype": option.info.dtype, "weak": option.info.weak}
            same = number.type == option.info
            nodes.append(number if same else frame.builder.emit(REGISTRY["cast"], (number,), attrs))
        elif index in given:
            nodes.extend(conform(frame, given[index], option))
        else:
            nodes.extend(frame.builder.emit(undef, (), {"type": leaf.info}) for leaf in option.leaves())
    return nodes


def _is_double(option: TreeDef) -> bool:
    """Whether an option of a union is a number of float64, perhaps one that is known."""
    t = option.info if option.tag == "dyn" else option.info.type if option.tag == "const" else None
    return isinstance(t, Scalar) and t.dtype == "float64"


def _one_number(frame: Frame, tag: Dyn, doubles: dict[int, Node]) -> Node:
    """The number of a union whose options, by their tags, are of float64: they hold the same one, but for known numbers."""
    *others, (_, number) = doubles.items()
    computed = next((n for n in doubles.values() if not isinstance(n, Constant)), None)
    if computed is not None or not others:
        return number if computed is None else computed
    weak = {"dtype": "float64", "weak": True}
    number = frame.builder.emit(REGISTRY["cast"], (number,), weak)
    for place, node in others:
        here = emit(frame, "eq", tag, frame.constant(place)).node
        number = frame.builder.emit(
            REGISTRY["where"], (here, frame.builder.emit(REGISTRY["cast"], (node,), weak), number)
        )
    return number


def _merged(frame: Frame, tag: Dyn, options: list[tuple[int, Val]], treedef: TreeDef, conform) -> Val:
    """The option of a union that its tag says, of those that have one form; each comes with its tag."""
    *rest, (_, last) = options
    nodes = conform(frame, last, treedef)
    for k, option in reversed(rest):
        hit = emit(frame, "eq", tag, frame.constant(k)).node
        nodes = [chosen(frame, hit, a, b) for a, b in zip(conform(frame, option, treedef), nodes, strict=True)]
    return frame.rebuild(treedef, iter(nodes))


def place_of(options: list[TreeDef], have: TreeDef) -> int:
    """The index of the option of a union that a value belongs to.

    Raises:
        Mismatch: it is none of them.
    """
    for index, option in enumerate(options):
        try:
            if join(option, have) == option:
                return index
        except Mismatch:
            continue
    raise Mismatch(options[0], have)


# Functions that exist at run time: see `infer.values.functions`.


def widened(frame: Frame, value: Val) -> Val:
    """A value that is handed on, in which functions that exist at run time are values of their families.

    Raises:
        TypeError_: such a function captures something that it cannot.
    """
    families = frame.spec.families
    if not families.sites or isinstance(value, Dyn):
        return value
    if isinstance(value, Seq):
        elems = tuple(widened(frame, e) for e in value.elems)
        if all(a is b for a, b in zip(elems, value.elems, strict=True)):
            return value
        out = Seq(value.kind, elems, value.fields, value.cls)
        if value in frame.spec.shared:
            frame.spec.shared.add(out)
        return out
    if isinstance(value, TaggedUnion):
        options = tuple(widened(frame, o) for o in value.options)
        if all(a is b for a, b in zip(options, value.options, strict=True)):
            return value
        made = TaggedUnion(value.tag, options)
        whole = tree_structure(options[0], capture=frame.captured)
        for option in options[1:]:
            whole = join(whole, tree_structure(option, capture=frame.captured))
        return frame.rebuild(whole, iter(conform(frame, made, whole)))
    if not isinstance(value, ClosureVal | Bound | Derived | Static):
        return value
    value = _capturing_widened(frame, value)
    family = families.family(tree_structure(value, capture=frame.captured))
    return value if family is None else _record_of(frame, family, value)


def _capturing_widened(frame: Frame, function: Val) -> Val:
    """A function of which what it has captured is widened."""
    if isinstance(function, ClosureVal):
        captured = frame.captured(function)
        new = [widened(frame, v) for _, v in captured]
        if any(a is not b for a, (_, b) in zip(new, captured, strict=True)):
            return ClosureVal(function.graph, None, tuple(zip([n for n, _ in captured], new, strict=True)))
    elif isinstance(function, Bound):
        receiver = widened(frame, function.receiver)
        return function if receiver is function.receiver else Bound(receiver, function.function)
    elif isinstance(function, Derived):
        inner = widened(frame, function.function)
        return function if inner is function.function else Derived(function.transform, inner, function.options)
    return function


def _record_of(frame: Frame, family: FunctionFamily, function: Val) -> KnownRecord:
    """A function as a value of a family."""
    number = family.number(tree_structure(function, keep_constants=False, capture=frame.captured))
    nodes = conform(frame, function, family.forms[number - 1])
    made = frame.builder.emit(data_make, tuple(nodes), {"type": Data(family), "variant": number})
    return KnownRecord(made, (number,))


def function_leaf(frame: Frame, value: Val, t: Data) -> Node:
    """A function, or a choice among functions, as a node of a family.

    Raises:
        FieldError: it is something else.
    """
    if isinstance(value, TaggedUnion):
        return _one_of(frame, value.tag, list(enumerate(value.options)), t)
    value = _capturing_widened(frame, value)
    if not is_function(treedef := tree_structure(value, capture=frame.captured)):
        raise FieldError(f"a function is expected here, and it is given {treedef}")
    return adapt(frame, _record_of(frame, t.family.root, value), Data(t.family.root, t.nullable))


def _one_of(frame: Frame, tag: Dyn, options: list[tuple[int, Val]], t: Data) -> Node:
    """One of several functions as a node of a family, by a tag.

    Args:
        frame: where.
        tag: says which.
        options: the functions, each with its tag.
        t: the type.
    """
    *rest, last = [(k, adapt(frame, o, t)) for k, o in options]
    node = last[1]
    for k, other in reversed(rest):
        node = chosen(frame, emit(frame, "eq", tag, frame.constant(k)).node, other, node)
    return node


def chosen(frame: Frame, condition: Node, a: Node, b: Node) -> Node:
    """`a if condition else b` of two leaves of one type."""
    branches = {}
    for name, index in (("then", 0), ("orelse", 1)):
        graph = Graph(f"{frame.graph.name}.{name}", None, frame.builder.origin)
        graph.output = [graph.add_parameter(n, a.type) for n in ("a", "b")][index]
        branches[name] = graph
    return frame.builder.emit(REGISTRY["cond"], (condition, a, b), branches)
