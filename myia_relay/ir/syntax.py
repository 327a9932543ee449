"""The operations of parsed graphs: Python syntax before types are known.

In a parsed graph `Apply.fn` is a `Constant` that holds a Python callable (`operator.add` for `+`, `operator.getitem`
for subscripts, the builtin `getattr` for `x.a`, `slice`) or one of the `Syntax` operations below; or it is any node
that computes a function. Inference interprets each of them by the types of its operands.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..utils.errors import NameError_, nearest
from .node import Apply, Graph
from .walk import graphs_reachable


class Syntax:
    """An operation that only parsed graphs contain."""

    def __init__(self, name: str, doc: str):
        self.name = name
        self.__doc__ = doc

    def __repr__(self) -> str:
        return f"syntax.{self.name}"


make_tuple = Syntax("make_tuple", "(*elements) -> tuple")
make_list = Syntax("make_list", "(*elements) -> list of static length")
make_dict = Syntax("make_dict", "(*values), attrs keys: tuple[str, ...] -> dict")
unpack = Syntax(
    "unpack",
    "(sequence), attrs before, star: bool, after -> tuple of before + [list] + after elements; ValueError where the "
    "length does not fit",
)
star = Syntax("star", "(sequence): as an argument of a call, make_tuple or make_list its elements take its place")
double_star = Syntax("double_star", "(dict): as an argument of a call its items become keyword arguments")
if_ = Syntax("if_", "(condition, Constant(then), Constant(else)): both graphs take no parameters; lazily evaluated")
while_ = Syntax(
    "while_",
    "(Constant(condition), Constant(body), *initial): both graphs take the carried values; condition -> anything that has "
    "a truth value, body -> tuple of carried; attrs names. Result: tuple of carried. In names, here and in `for_`, "
    "'$status' (an int), '$ret' (initially UNBOUND) and '$bound.x' (a bool) are variables of the front end's own",
)
for_ = Syntax(
    "for_",
    "(iterable, Constant(body), *initial): body(item, *carried) -> tuple of carried, and, with attrs stops=True, a last "
    "element that is False where the loop must stop; attrs names: names of the carried variables. Result: tuple of carried",
)
comprehension = Syntax("comprehension", "(iterable, Constant(body)): body(item) -> list of the elements it contributes")
check_bound = Syntax("check_bound", "(flag, value), attrs name: value, or UnboundLocalError where flag is False")
assert_ = Syntax(
    "assert_", "(condition, Constant(message graph) or Constant(None)): AssertionError, message built lazily"
)
raise_ = Syntax("raise_", "(exception): raises; its result joins with anything")
format_ = Syntax("format", "(*values), attrs parts: tuple of str | (index, conversion, format_spec): an f-string")
setitem = Syntax(
    "setitem",
    "(x, index, value), attrs shared -> x with x[index] = value; x is a local that nothing else can see. Here, and in the "
    "operations on lists below, `shared` has (message, node) for each variable that may show the change, if its type can",
)
item_to_change = Syntax(
    "item_to_change", "(x, index) -> the x[index] of `x[index] += v`, for the operation and setitem"
)
update_at = Syntax(
    "update_at",
    "(x, index, value, ufunc), attrs shared -> x after `ufunc.at(x, index, value)`, or, where the value is None, after "
    "`ufunc.at(x, index)`; a local that nothing else sees. Of anything that is no ufunc the method is called, and x stays as it is",
)
change_array = Syntax(
    "change_array",
    "(x, function, *arguments), attrs shared, keywords -> x after a NumPy function that changes its first argument, or is given x "
    "for its result (attrs out: 'keyword' or 'positional'); a local that nothing else sees. Any other function is called, "
    "and x stays as it is",
)
take_entry = Syntax(
    "take_entry",
    "(x, index) -> the x[index] of `x[index][i] = v` and what is left of x; attrs shared: what else may hold it, own: whether all "
    "entries were made in this function",
)
read_again = Syntax(
    "read_again",
    "(value, x, index) -> what the value, which was x[index] before x was changed, is now: the part of x where x is an array and "
    "the value a view of it",
)
place_of = Syntax(
    "place_of",
    "(x, index, arrays): that x[index] is a list, a dict or an array that x holds, or a view of the array x, as only that is where "
    "`arrays`; the index, from the beginning. Where it is None: that x is a list, a dict or an array",
)
annotate = Syntax("annotate", "(value, Constant(annotation)) -> value, checked against the annotation")
list_append = Syntax(
    "list_append", "(list, value), attrs name -> list with the value appended; a local that nothing else sees"
)
list_change = Syntax(
    "list_change",
    "(list, *arguments), attrs name, method -> (the list after a method that changes it, what the method returns); the list is a "
    "local that nothing else sees. Of anything that is no list the method is called, and it stays as it is",
)
finals = Syntax(
    "finals",
    "(result, *(parameter, value)): what a function gives back that changes parameters in place, each now of the given value",
)
returned = Syntax("returned", "(call) -> the result proper of a call that changes arguments")
after_call = Syntax(
    "after_call",
    "(x, call, *others), attrs index, positions, name, shared, entries, own, stored -> x after a call that may have changed it in "
    "place: the argument number `index` of those that it changes. others: what else the call was given, at these positions; "
    "entries: as `shared`, of its entries, their entries, ..., if these change; stored: how deep something may be stored in it",
)
recapture = Syntax(
    "recapture",
    "(*values), attrs name, graphs: list of (Graph, Loc), the functions that captured an earlier value of the variable "
    "`name`, which is about to be rebound, again: Again -> None. Where the type of a value holds a closure of one of the "
    "graphs, which in Python would see the new value, the function must be parsed again, after `again()`. No effect otherwise",
)
new_cell = Syntax(
    "new_cell", "(), attrs name -> a place for a variable that inner functions assign to; nothing is in it yet"
)
call_variant = Syntax("call_variant", "(function, *args), keywords -> a call of a function that exists at run time")
cell_get = Syntax("cell_get", "(cell), attrs name, free: bool -> what is in it now, or a NameError where nothing is")
cell_set = Syntax("cell_set", "(cell, value), attrs name -> None; from here on the value is in it")
mark = Syntax(
    "mark",
    "(*values), attrs kind, function, owner, binds (as in `prims.ops.effects.MarkedPlace`), names, functions: where a debugger "
    "may stop, and the variables to show there: of these names and values, and (name, function's name) for functions; only in "
    "graphs that are parsed for a debugger",
)
match_field = Syntax(
    "match_field", "(subject, class), attrs position -> the attribute named by class.__match_args__[position]"
)
match_sequence = Syntax(
    "match_sequence",
    "(subject), attrs length, star: bool -> whether it is a tuple or list of (with star: at least) that length",
)


def call_place(site: Any) -> Any:
    """Where a call is written, by which models know their layers: the same however often its function is parsed.

    A function is parsed again when what it calls has changed, when many others were parsed since, and for a debugger. Two
    functions made by one `def` are different places.

    Args:
        site: an application of a parsed graph, or a tuple of it and the iterations of loops.

    Returns:
        (Python function, source range, callee, number among the calls of it there); `site` itself where it is
        in no parsed Python function.
    """
    if isinstance(site, tuple):
        return tuple(map(call_place, site))
    if not isinstance(site, Apply):
        return site
    root = site.graph
    while root.parent is not None:
        root = root.parent
    if FUNCTION not in root.flags:
        return site
    places = root.flags.get("places")
    if places is None:
        places = root.flags["places"] = _places(root)
    return places.get(site, site)


FUNCTION = "function"
"""The flag of a parsed graph that holds the Python function it was parsed from."""


def _places(root: Graph) -> dict[Apply, tuple]:
    """The place of each application of a parsed function, and of the functions written in it."""
    places: dict[Apply, tuple] = {}
    counts: dict[tuple, int] = {}
    for graph in graphs_reachable(root):
        for node in graph.nodes:
            callee = getattr(node.fn, "value", node.fn)
            place = (root.flags[FUNCTION], node.origin.loc, getattr(callee, "name", type(callee).__name__))
            counts[place] = number = counts.get(place, -1) + 1
            places[node] = (*place, number)
    return places


@dataclass(frozen=True, eq=False)
class Again:
    """Makes a variable a cell when its function is parsed again."""

    make_cell: Callable[[], None] = field(repr=False)


@dataclass(frozen=True)
class _UnboundType:
    """The value of a variable that is not bound yet; `UNBOUND` is its only instance."""

    def __repr__(self) -> str:
        return "UNBOUND"


UNBOUND = _UnboundType()


VIEWING = frozenset(
    "asarray asanyarray ascontiguousarray require reshape ravel transpose permute_dims matrix_transpose swapaxes squeeze view "
    "diagonal expand_dims atleast_1d atleast_2d atleast_3d moveaxis rollaxis broadcast_to broadcast_arrays flip fliplr flipud "
    "rot90 split hsplit vsplit dsplit array_split unstack einsum trim_zeros real imag".split()
)
"""NumPy functions and methods that may return their argument, a view of it, or its elements."""


class Solved:
    """What is known of values; for `frontend.objects`.

    Attributes:
        origin: value -> the one before which it surely is the same object as.
        objects: value -> the objects that it may be, and that it may be or hold.
        levels: how deep inside of which objects it may lie.
        arrays: whether it is an array that a NumPy function made; and whether it is one if each `x.copy()` is.
    """

    def __init__(self):
        self.origin: dict[Any, Any] = {}
        self.objects: dict[Any, tuple] = {}
        self.levels: dict[tuple, dict] = {}
        self.arrays: dict[tuple[Any, bool], bool] = {}

    def _all(self) -> tuple[dict[Any, Any], ...]:
        return self.origin, self.objects, self.levels, self.arrays

    def mark(self) -> tuple[int, ...]:
        """How much is known."""
        return tuple(map(len, self._all()))

    def forget(self, mark: tuple[int, ...]) -> None:
        """Forget what has become known since `mark`."""
        for known, size in zip(self._all(), mark, strict=True):
            forget(known, size)


def forget(known: dict[Any, Any], size: int) -> None:
    """Take the latest entries out of a dict, but for so many."""
    while len(known) > size:
        known.popitem()


@dataclass(eq=False)
class Handing:
    """What the calls of a function do with their arguments, as far as inference has seen it; for `frontend.ownership`.

    Attributes:
        calls: parsed call -> which of its arguments (or what is called) it may return, or put into what it returns.
        views: reads `x[i]` that gave a view or an element that can be changed. copies: those that gave a slice of a list, which is
            new and holds what the list holds. fresh: those that gave what holds nothing of it: a number, the elements at positions.
        makes: calls that are known to make something new of these arguments, which holds what they hold; see `without`.
        solved: what the front end has found out with that; good as long as `calls` does not change.
        rest: what `without` has returned; good as long.
    """

    calls: dict[Any, set[Any]] = field(default_factory=dict)
    views: set[Any] = field(default_factory=set)
    copies: set[Any] = field(default_factory=set)
    fresh: set[Any] = field(default_factory=set)
    makes: dict[Any, set[Any]] = field(default_factory=dict)
    solved: Solved = field(default_factory=Solved)
    rest: Handing | None = None

    def without(self, known: Callable[[Any], bool]) -> Handing:
        """The same, but some of the calls are known to make something new."""
        if self.rest is None:
            rest, makes = (
                {c: given for c, given in self.calls.items() if known(c) is which} for which in (False, True)
            )
            self.rest = Handing(rest, self.views, self.copies, self.fresh, makes)
        return self.rest


@dataclass(frozen=True, eq=False)
class FreeName:
    """A name that a function takes from outside: a closure cell, a global or a builtin, read at call time.

    Attributes:
        name: the name.
        function: the Python function whose cells and globals are meant.
    """

    name: str
    function: Any

    def place(self) -> tuple[str, Any]:
        """The place where the name is bound now: ("cell", cell) or ("dict", dictionary).

        Raises:
            NameError_: it is bound nowhere.
        """
        code = self.function.__code__
        if self.name in code.co_freevars:
            cell = self.function.__closure__[code.co_freevars.index(self.name)]
            try:
                cell.cell_contents  # noqa: B018  raises where the cell is empty
            except ValueError:
                raise NameError_(f"'{self.name}' is not bound yet where this function captures it") from None
            return "cell", cell
        if self.name in self.function.__globals__:
            return "dict", self.function.__globals__
        if hasattr(builtins, self.name):
            return "dict", vars(builtins)
        known = [*code.co_varnames, *code.co_cellvars, *code.co_freevars, *self.function.__globals__, *dir(builtins)]
        raise NameError_(f"name '{self.name}' is not defined{nearest(self.name, known)}")

    def read(self) -> Any:
        """The present value of the name.

        Raises:
            NameError_: it has none; the nearest name is offered.
        """
        kind, place = self.place()
        return place.cell_contents if kind == "cell" else place[self.name]


@dataclass(frozen=True, eq=False)
class Signature:
    """The parameters of a parsed function.

    Attributes:
        names: parameter names in the order of `Graph.params` (positional-only, positional, *args, keyword-only, **kwargs).
        posonly: how many are positional only.
        positional: how many may be given by position (the positional-only ones included).
        vararg: index of `*args` in `names`, or None.
        kwonly: indices of keyword-only parameters.
        kwarg: index of `**kwargs`, or None.
        defaults: index -> `Constant`, or, for a nested function, a node of the enclosing graph, evaluated at the `def`.
        annotations: index -> annotation object; -1 for the result.
        function: the Python function, for a top-level one; None for a nested one.
    """

    names: tuple[str, ...]
    posonly: int
    positional: int
    vararg: int | None = None
    kwonly: tuple[int, ...] = ()
    kwarg: int | None = None
    defaults: dict = field(default_factory=dict)
    annotations: dict = field(default_factory=dict)
    function: Any = None
