"""The structure of a value without its nodes: the key of specialisations, and the plan by which values are rebuilt.

`tree_structure(value)` takes a value apart, `rebuild` assembles it from other nodes. Where control flow joins, `join`
finds the structure that both values fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...abstract.dims import is_run_time
from ...abstract.types import (
    INT,
    NONE,
    Array,
    Data,
    List,
    NoneT,
    Ref,
    Scalar,
    Struct,
    Type,
    array_entry,
    element_dtype,
    is_array_entry,
    rank_of,
    union_of,
)
from ...abstract.words import STRING, StringCode
from ...ir.node import Constant, Node
from ...utils.errors import Hole, InternalError
from .uneven import allowed
from .values import (
    NEVER,
    POISON,
    UNBOUND_VAL,
    AtVal,
    Bound,
    Cell,
    ClosureVal,
    Derived,
    Dyn,
    Iter,
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
)


@dataclass(frozen=True)
class TreeDef:
    """A value without its nodes.

    Attributes:
        tag: "dyn" (info: type), "const" (info: (type, repr) with the value in `payload`), "static", "seq", "listed",
            "sized" (see `sized`), "closure", "bound", "derived", "text", "raised", "slice", "iter", "choice" (parts: tag, options),
            "at", "cell" (info: the cell), "unbound", "never", "poison".
        info: what distinguishes treedefs with the same tag; hashable.
        parts: treedefs of the parts.
    """

    tag: str
    info: Any = None
    parts: tuple[TreeDef, ...] = ()

    def __hash__(self) -> int:
        found = self.__dict__.get("hash")  # of a deep treedef it takes long, and it is a key of many tables
        if found is None:
            found = self.__dict__["hash"] = hash((self.tag, self.info, self.parts))
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"tag": self.tag, "info": self.info, "parts": self.parts}

    def leaves(self) -> Iterator[TreeDef]:
        """The "dyn" treedefs, in order."""
        if self.tag == "dyn":
            yield self
        for part in self.parts:
            yield from part.leaves()

    def texts(self) -> int:
        """How many strings that are known at compile time are in it."""
        if self.tag == "static":
            return isinstance(self.info.value, str)
        return sum(part.texts() for part in self.parts)

    def __str__(self) -> str:
        if self.tag == "poison":
            raise Hole("an error that follows from another")
        if self.tag == "dyn":
            return str(self.info)
        if self.tag == "const":
            return str(self.info.type)
        if self.tag == "static":
            value = self.info.value
            return repr(value) if isinstance(value, str | type(None)) else name_of(value)
        if self.tag == "seq":
            kind, fields, cls = self.info
            if cls is StringCode:
                return "str"
            if kind in ("tuple", "list"):
                left, right = "()" if kind == "tuple" else "[]"
                return (
                    left
                    + brief(list(map(str, self.parts)))
                    + ("," if kind == "tuple" and len(self.parts) == 1 else "")
                    + right
                )
            inner = ", ".join(f"{f}: {p}" for f, p in zip(fields, self.parts, strict=False))
            return f"{getattr(cls, '__name__', '')}{{{inner}}}" if kind == "dict" else f"{cls.__name__}({inner})"
        if self.tag == "sized":
            dtype, shape = self.info
            return f"{dtype}[{', '.join('?' if d is None else str(d) for d in shape)}]"
        if self.tag == "closure":
            return f"function {self.info[0].name}"
        if self.tag == "listed":
            return str(List(entry_of(self)))
        if self.tag == "iter":
            return self.info
        if self.tag == "choice":
            return " | ".join(dict.fromkeys(map(str, self.parts[1:])))
        return {"text": "str", "unbound": "nothing", "at": "relay.at"}.get(self.tag, self.tag)


SHOWN = 8
"""Types of a long sequence that a message shows."""


def brief(types: list[str]) -> str:
    """The types of the entries of a sequence; of many the first ones, and how many there are."""
    if len(types) <= SHOWN:
        return ", ".join(types)
    if len(set(types)) == 1:
        return f"{types[0]}, ... {len(types)} times"
    return f"{', '.join(types[:3])}, ... {len(types)} in all"


class Identity:
    """Compares by identity where a value cannot be hashed, by value where it can."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other) -> bool:
        if not isinstance(other, Identity):
            return False
        if self.value is other.value:
            return True
        simple = (str, bytes, int, bool, type(None), tuple)
        return type(self.value) is type(other.value) and isinstance(self.value, simple) and self.value == other.value

    def __hash__(self) -> int:
        simple = (str, bytes, int, bool, type(None))
        return hash(self.value) if isinstance(self.value, simple) else hash(type(self.value))


class ConstInfo:
    """A known number: equal if type and value are equal; 0.0 and -0.0 differ, 1 and True differ, and NaN equals itself."""

    __slots__ = ("key", "type", "value")

    def __init__(self, type: Type, value: Any):
        self.type, self.value = type, value
        self.key = (type, repr(value)) if isinstance(type, Scalar) else (type, id(value))

    def __eq__(self, other) -> bool:
        return isinstance(other, ConstInfo) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def tree_structure(
    val: Val, out: list[Node] | None = None, keep_constants: bool = True, capture: Callable | None = None
) -> TreeDef:
    """The treedef of a value; its leaf nodes are appended to `out`.

    Args:
        val: the value.
        out: receives the nodes of the "dyn" leaves, in order.
        keep_constants: whether known numbers stay known ("const") or become leaves.
        capture: `(closure) -> env` resolves the free variables of a closure that still refers to its frame.

    Raises:
        InternalError: the value is a part of a construct, which has no meaning outside of it.
    """
    out = [] if out is None else out

    def go(val: Val) -> TreeDef:
        if isinstance(val, Dyn):
            if val.known and keep_constants and isinstance(val.type, Scalar):
                return TreeDef("const", ConstInfo(val.type, val.known_value))
            out.append(val.node)
            return TreeDef("dyn", val.type)
        if isinstance(val, Static):
            return TreeDef("static", Identity(val.value))
        if isinstance(val, Seq):
            return TreeDef("seq", (val.kind, val.fields, val.cls), tuple(go(e) for e in val.elems))
        if isinstance(val, Listed):
            return TreeDef("listed", None, (go(val.array),))
        if isinstance(val, ClosureVal):
            env = val.env
            if env is None:
                assert capture is not None
                env = capture(val)
            return TreeDef("closure", (val.graph, tuple(n for n, _ in env)), tuple(go(v) for _, v in env))
        if isinstance(val, Bound):
            return TreeDef("bound", Identity(val.function), (go(val.receiver),))
        if isinstance(val, Derived):
            return TreeDef("derived", (val.transform, val.options), (go(val.function),))
        if isinstance(val, Text):
            return TreeDef("text", val.parts, tuple(go(o) for o in val.operands))
        if isinstance(val, Raised):
            return TreeDef("raised", val.cls, (go(val.message),) if val.message is not None else ())
        if isinstance(val, SliceVal):
            return TreeDef("slice", None, (go(val.start), go(val.stop), go(val.step)))
        if isinstance(val, TaggedUnion):
            return TreeDef("choice", None, (go(val.tag), *[go(o) for o in val.options]))
        if isinstance(val, Cell):
            return TreeDef("cell", val)
        if isinstance(val, PoisonVal):
            return TreeDef("poison")
        if isinstance(val, Iter):
            return TreeDef("iter", val.kind, tuple(go(p) for p in val.parts))
        if isinstance(val, AtVal):
            return TreeDef("at", None, (go(val.array),) if val.index is None else (go(val.array), go(val.index)))
        if isinstance(val, UnboundVal | NeverVal):
            return TreeDef("unbound" if isinstance(val, UnboundVal) else "never")
        # Taken for a path that does not return, it would end the program there, without its result.
        raise InternalError("infer", f"a {type(val).__name__} cannot leave the graph that it was made in")

    return go(val)


def rebuild(treedef: TreeDef, nodes: Iterator[Node], unpack: Callable[[Any, list[Node]], Node] | None = None) -> Val:
    """The value with this treedef and these leaf nodes.

    Args:
        treedef: its treedef.
        nodes: its leaf nodes.
        unpack: makes an array of the info and the leaves of a "sized" one.
    """
    tag, info = treedef.tag, treedef.info
    if tag == "dyn":
        return Dyn(next(nodes))
    if tag == "const":
        return Dyn(Constant(info.value, info.type))
    if tag == "static":
        return Static(info.value)
    if tag == "cell":
        return info
    if tag == "poison":
        return POISON
    if tag == "sized":
        assert unpack is not None
        return Dyn(unpack(info, [next(nodes) for _ in treedef.parts]))
    parts = tuple(rebuild(p, nodes, unpack) for p in treedef.parts)
    if tag == "seq":
        return Seq(info[0], parts, info[1], info[2])
    if tag == "listed":
        (array,) = parts
        assert isinstance(array, Dyn)
        return Listed(array)
    if tag == "closure":
        return ClosureVal(info[0], None, tuple(zip(info[1], parts, strict=True)))
    if tag == "bound":
        return Bound(parts[0], info.value)
    if tag == "derived":
        return Derived(info[0], parts[0], info[1])
    if tag == "text":
        return Text(info, parts)
    if tag == "raised":
        return Raised(info, parts[0] if parts else None)
    if tag == "slice":
        return SliceVal(*parts)
    if tag == "iter":
        return Iter(info, parts)
    if tag == "at":
        return AtVal(*parts)
    if tag == "choice":
        which, *options = parts
        assert isinstance(which, Dyn)
        return options[which.known_value] if which.known else TaggedUnion(which, tuple(options))
    return UNBOUND_VAL if tag == "unbound" else NEVER


class Mismatch(Exception):
    """Two treedefs that do not join.

    `why` is a reason other than that they differ, `many` whether that is their number of choices.
    """

    many = False

    def __init__(self, a: TreeDef, b: TreeDef, why: str = ""):
        self.a, self.b, self.why = shown(a), shown(b), why
        super().__init__(f"{a} and {b}")


def shown(treedef: TreeDef, length: int = 200) -> str:
    """A treedef for a message."""
    text = str(treedef)
    return text if len(text) <= length else text[:length] + " ..."


TEXTS = "return the numbers, in a list, and make the string of them outside: ''.join(map(str, numbers))"
UNEVEN = (
    "an array whose size a value decides cannot be in a list whose length is known at run time only; put the numbers of all one "
    "behind the other, and the sizes into a list"
)
MAX_OPTIONS = 8  # options of a union; more are considered a mistake
MAX_CHOICES = 1000  # leaves of one value; compile time grows with them


def join(a: TreeDef, b: TreeDef, wide: bool = True, grow: bool = False) -> TreeDef:
    """The treedef of a value that is one of two values at run time.

    Args:
        a, b: the two.
        wide: whether numbers of different types, and sequences of different lengths, make a union.
        grow: whether arrays of different known sizes make one whose sizes values decide.

    Raises:
        Mismatch: there is none.
    """
    if a == b or b.tag == "never":
        return a
    if "poison" in (a.tag, b.tag):
        return TreeDef("poison")
    if a.tag == "never" or a.tag == "unbound":
        return b if a.tag == "never" else unknown(b)
    if b.tag == "unbound":
        return unknown(a)
    if is_list(a) and is_list(b) and (a.tag != "seq" or b.tag != "seq" or len(a.parts) != len(b.parts)):
        return join_lists(a, b)
    if (both := _join_sizes(a, b, grow)) is not None or (both := join_words(a, b)) is not None:
        return both
    if alike(a, b):
        if a.tag in ("dyn", "const"):
            return TreeDef("dyn", _type(a))
        return TreeDef(a.tag, a.info, tuple(join(x, y, wide, grow) for x, y in zip(a.parts, b.parts, strict=True)))
    return join_data(a, b) or choose(a, b, wide)


def _join_sizes(a: TreeDef, b: TreeDef, grow: bool) -> TreeDef | None:
    """The treedef of one of two arrays of a dtype and a rank, where a value decides sizes in which they differ; else None."""
    s, t = (x.info if x.tag == "sized" else (x.info.dtype, x.info.shape) if _is_array(x) else None for x in (a, b))
    if s is None or t is None or s[0] != t[0] or len(s[1]) != len(t[1]):
        return None
    pairs = list(zip(s[1], t[1], strict=True))
    if "sized" not in (a.tag, b.tag) and (
        a == b or not grow and not all(m == n or is_run_time(m) or is_run_time(n) for m, n in pairs)
    ):
        return None
    shape = tuple(m if m == n else None for m, n in pairs)
    return sized(s[0], shape)


def _is_array(treedef: TreeDef) -> bool:
    return treedef.tag == "dyn" and isinstance(treedef.info, Array)


def sized(dtype: str, shape: tuple) -> TreeDef:
    """The treedef of an array whose sizes values decide, where it leaves the graph in which they are bound.

    It is its numbers as a run-time list, and its sizes: see `infer.values.sizes`.

    Args:
        dtype: of its elements.
        shape: its shape, in which None stands for such a size.
    """
    count = sum(d is None for d in shape) if len(shape) > 1 else 0  # of a vector the list has the size
    numbers = TreeDef("dyn", List(Scalar(dtype, True)))
    return TreeDef("sized", (dtype, shape), (numbers, *[TreeDef("dyn", INT)] * count))


def is_data(treedef: TreeDef) -> bool:
    """Whether values with a treedef are of an algebraic data type."""
    return treedef.tag == "dyn" and isinstance(treedef.info, Data)


def join_data(a: TreeDef, b: TreeDef) -> TreeDef | None:
    """The join of two treedefs of which at least one is of an algebraic data type, or None."""
    if not is_data(b):
        a, b = b, a
    if not is_data(b):
        return None
    if b.info.family.of_functions and is_function(a):
        return b  # of which it becomes a variant
    if is_data(a) and a.info.family.of_functions and b.info.family.of_functions:
        return TreeDef("dyn", Data(b.info.family.united(a.info.family), a.info.nullable or b.info.nullable))
    if is_data(a) and a.info.family is b.info.family:
        return TreeDef("dyn", Data(b.info.family, a.info.nullable or b.info.nullable))
    if a.tag == "static" and a.info.value is None:
        return TreeDef("dyn", Data(b.info.family, True))
    if a.tag == "seq" and a.info[2] in b.info.family.numbers:
        return b
    return None


WORDS = TreeDef("seq", (STRING.kind, STRING.fields, STRING.cls), (TreeDef("dyn", INT),))
"""Of strings that are known at run time only."""


def join_words(a: TreeDef, b: TreeDef) -> TreeDef | None:
    """The join of a string that is known at run time only and another string, or None."""
    return WORDS if WORDS in (a, b) and is_word(a) and is_word(b) else None


def is_word(treedef: TreeDef) -> bool:
    """Whether all values with a treedef are strings that an entry of a list can be."""
    if treedef.tag == "choice":
        return all(map(is_word, treedef.parts[1:]))
    return treedef == WORDS or treedef.tag == "static" and isinstance(treedef.info.value, str)


def join_entries(a: TreeDef, b: TreeDef, wide: bool = False) -> TreeDef:
    """The treedef of one of two entries of a list, which may be arrays of several sizes; see `infer.values.uneven`.

    Raises:
        Mismatch: there is none.
    """
    try:
        return join(a, b, wide, allowed().known)
    except Mismatch:
        if not allowed().known:
            with suppress(Mismatch):
                join(a, b, wide, True)
                allowed().wanted = True
        raise


def as_entry(treedef: TreeDef) -> TreeDef:
    """A treedef as that of an entry of a list: strings that are known at compile time are among those that are not, and arrays
    of which a value decides a size among those of all sizes.
    """
    if is_word(treedef):
        return WORDS
    if allowed().sizes and (treedef.tag == "sized" or _is_array(treedef) and any(map(is_run_time, treedef.info.shape))):
        return from_type(type_of(treedef))
    if treedef.tag != "seq":
        return unknown(treedef)
    parts = tuple(map(as_entry, treedef.parts))
    return treedef if parts == treedef.parts else TreeDef("seq", treedef.info, parts)


def is_function(treedef: TreeDef) -> bool:
    """Whether values with a treedef are functions that are known at compile time but for what they capture."""
    if treedef.tag == "static":
        return callable(treedef.info.value)
    return treedef.tag in ("closure", "bound", "derived")


def is_list(treedef: TreeDef) -> bool:
    """Whether values of this treedef are lists."""
    if treedef.tag == "dyn":
        return isinstance(treedef.info, List)
    return treedef.tag == "listed" or treedef.tag == "seq" and treedef.info[0] == "list"


def join_lists(a: TreeDef, b: TreeDef) -> TreeDef:
    """The treedef of one of two lists of different lengths: a run-time list.

    Raises:
        Mismatch: their entries differ in type, or cannot be entries of a run-time list.
    """
    first, second = entries_of(a), entries_of(b)
    entry = first if second is None else second if first is None else unknown(join_entries(first, second))
    assert entry is not None  # the largest number of entries of one of two lists of different lengths
    return TreeDef("dyn", List(type_of(entry)))


def entries_of(treedef: TreeDef) -> TreeDef | None:
    """The common treedef of all entries of a list; None for an empty list.

    Raises:
        Mismatch: there is none.
    """
    if treedef.tag != "seq":
        return from_type(entry_of(treedef))
    common: TreeDef | None = None
    for part in treedef.parts:
        try:
            part = as_entry(part)
            common = part if common is None else unknown(join_entries(common, part))
        except Mismatch as error:
            if error.why:
                raise
            why = f"a list whose length is known at run time only has entries of one type, and these are {error.a} and {error.b}"
            raise Mismatch(part if common is None else common, part, why) from None
    return common


def entry_of(treedef: TreeDef) -> Type:
    """The type of the entries of a run-time list."""
    return Scalar(treedef.parts[0].info.dtype, True) if treedef.tag == "listed" else treedef.info.elem


def type_of(treedef: TreeDef) -> Type:
    """The type of a list entry with this treedef.

    Raises:
        Mismatch: no run-time list has such entries.
    """
    if treedef.tag == "dyn":
        t = treedef.info
        if isinstance(t, Array) and any(map(is_run_time, t.shape)):
            return _uneven(treedef, t.dtype, len(t.shape))
        if not isinstance(t, Ref):
            return t
    if treedef.tag == "listed":
        return List(entry_of(treedef))
    if is_word(treedef):
        return STRING
    if treedef.tag == "static" and treedef.info.value is None:
        return NONE
    if treedef.tag == "seq" and treedef.info[0] in ("tuple", "list", "dict", "record"):
        kind, fields, cls = treedef.info
        return Struct(kind, tuple(type_of(p) for p in treedef.parts), fields, cls)
    if treedef.tag == "choice":
        return union_of(*map(type_of, treedef.parts[1:]))
    if treedef.tag == "sized":
        dtype, shape = treedef.info
        return _uneven(treedef, dtype, len(shape))
    why = ""
    if any(map(is_text, (treedef, *treedef.parts))):
        why = f"strings cannot be in a list whose length is known at run time only: {TEXTS}"
    raise Mismatch(treedef, treedef, why)


def _uneven(treedef: TreeDef, dtype: str, rank: int) -> Type:
    """The type of a list entry that is an array whose sizes values decide.

    Raises:
        Mismatch: this compilation does without.
    """
    if not allowed().sizes:
        allowed().wanted = True
        raise Mismatch(treedef, treedef, UNEVEN)
    return array_entry(dtype, rank)


def from_type(t: Type) -> TreeDef:
    """The treedef of a list entry of a type."""
    if isinstance(t, Struct) and t.kind == "union":
        return TreeDef("choice", None, tuple(map(from_type, t.elems)))
    if is_array_entry(t):
        assert isinstance(t, Struct)
        return sized(element_dtype(t), (None,) * rank_of(t))
    if isinstance(t, Struct):
        return TreeDef("seq", (t.kind, t.fields, t.cls), tuple(from_type(e) for e in t.elems))
    return TreeDef("static", Identity(None)) if isinstance(t, NoneT) else TreeDef("dyn", t)


def alike(a: TreeDef, b: TreeDef) -> bool:
    """Whether two treedefs join to one of the same form: numbers of one type, structures of one form. An equivalence."""
    numbers = ("dyn", "const")
    if a.tag in numbers and b.tag in numbers:
        return _type(a) == _type(b)
    if a.tag == b.tag == "iter" and not all(_one_form(x, y) for x, y in zip(a.parts, b.parts, strict=False)):
        return False  # A union of views, as of dicts with other keys, instead of a view of a union.
    return a.tag == b.tag != "choice" and a.info == b.info and len(a.parts) == len(b.parts) and bool(a.parts)


def choose(a: TreeDef, b: TreeDef, wide: bool = True) -> TreeDef:
    """The treedef of a union of values of different forms.

    Two arrays of one dtype and rank but different known sizes do not make one: nearly always that is a mistake, which should
    be reported rather than compiled. Where values decide sizes, they are one option.

    Raises:
        Mismatch: for those, for too many options, and for types that grow from iteration to iteration.
    """
    options = list(a.parts[1:]) if a.tag == "choice" else [a]
    added = list(b.parts[1:]) if b.tag == "choice" else [b]
    if (family := next((o for o in (*options, *added) if is_data(o) and o.info.family.of_functions), None)) is not None:
        options, added = _with_functions(options, family), _with_functions(added, family)
        if len(options) == len(added) == 1 and (both := join_data(options[0], added[0])) is not None:
            return both
    for new in added:
        for index, old in enumerate(options):
            joins = join_data(old, new) is not None or join_words(old, new) is not None
            if _one_form(old, new) or joins or (is_list(old) and is_list(new)):
                options[index] = join(old, new, wide)
                break
            if _conflict(old, new, wide):
                raise Mismatch(old, new)
        else:
            if any(_within(old, new) for old in options):
                raise Mismatch(a, b, "the type grows without bound")
            options.append(new)
    if len(options) > MAX_OPTIONS and all(map(is_text, options)):
        raise Mismatch(a, b, f"a string that grows from step to step cannot be made in compiled code: {TEXTS}")
    if len(options) > MAX_OPTIONS:
        raise Mismatch(a, b, f"a value may be of {MAX_OPTIONS} types at most")
    if sum(map(_choices, options)) >= MAX_CHOICES:
        why = f"what is chosen at run time holds what was chosen before, {MAX_CHOICES} choices at most; a list of numbers, and one"
        error = Mismatch(a, b, f"{why} function that branches on them, has no such limit")
        error.many = True
        raise error
    return TreeDef("choice", None, (TreeDef("dyn", INT), *options))


def _one_form(a: TreeDef, b: TreeDef) -> bool:
    """Whether values of two treedefs join without a union."""
    return a == b or alike(a, b) or _join_sizes(a, b, False) is not None


def _with_functions(options: list[TreeDef], family: TreeDef) -> list[TreeDef]:
    """Options of which all functions have become one of a family of functions."""
    joined, others = family, []
    for option in options:
        both = join_data(option, family) if is_function(option) or is_data(option) else None
        if both is None or not both.info.family.of_functions:
            others.append(option)
        else:
            joined = join_data(joined, both) or joined
    return others if len(others) == len(options) else [joined, *others]


def is_text(treedef: TreeDef) -> bool:
    """Whether values of this form are strings."""
    return treedef.tag == "text" or treedef.tag == "static" and isinstance(treedef.info.value, str)


def _choices(treedef: TreeDef) -> int:
    """How many options there are in a value; in a chain of functions each of which holds the previous one, they double."""
    return (treedef.tag == "choice") + sum(map(_choices, treedef.parts))


def _type(number: TreeDef) -> Type:
    return number.info if number.tag == "dyn" else number.info.type


def _conflict(a: TreeDef, b: TreeDef, wide: bool) -> bool:
    """Whether two options that are not alike are considered a mistake."""
    if is_data(a) or is_data(b):
        return False
    if a.tag in ("dyn", "const") and b.tag in ("dyn", "const"):
        s, t = _type(a), _type(b)
        if not isinstance(s, Scalar | Array) or not isinstance(t, Scalar | Array) or not wide:
            return True
        return isinstance(s, Array) and isinstance(t, Array) and s.dtype == t.dtype and len(s.shape) == len(t.shape)
    return not wide and a.tag == b.tag == "seq" and a.info == b.info and a.info[0] == "tuple"


def _within(a: TreeDef, b: TreeDef) -> bool:
    """Whether a structure is a proper part of another."""
    if not a.parts:
        return False
    whole, stack = unknown(a), list(b.parts)
    while stack:
        part = stack.pop()
        if unknown(part) == whole:
            return True
        stack.extend(part.parts)
    return False


def unknown(treedef: TreeDef) -> TreeDef:
    """A treedef in which every known number is replaced by its type."""
    if treedef.tag == "const":
        return TreeDef("dyn", treedef.info.type)
    return TreeDef(treedef.tag, treedef.info, tuple(unknown(p) for p in treedef.parts)) if treedef.parts else treedef


def name_of(value: Any) -> str:
    """The name by which an object is called in messages: its own, if it has one, or that of its class."""
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else type(value).__name__  # some objects answer every attribute


def describe(val: Val) -> str:
    """The value's type in the user's words."""
    if isinstance(val, Dyn):
        t = val.type
        if isinstance(t, Array):
            return f"array of {t.dtype} with shape ({', '.join(map(str, t.shape))}{',' if len(t.shape) == 1 else ''})"
        return "model" if isinstance(t, Ref) else str(t)
    if isinstance(val, Static):
        if val.value is None:
            return "None"
        return f"'{val.value}'" if isinstance(val.value, str) else name_of(val.value)
    if isinstance(val, ClosureVal):
        return f"function {val.graph.name}"
    if isinstance(val, Text):
        return "str made at run time"
    return str(tree_structure(val, capture=lambda c: ()))
