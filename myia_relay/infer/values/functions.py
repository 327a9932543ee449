"""Functions that exist at run time: families of functions, as algebraic data types.

Inference knows which function a value is, and keeps what it captured in its treedef. That has an end where a recursion or a
loop makes functions that hold functions it made before, or fills a list with functions: then a function becomes a value of a
*family*, a recursive data type (`abstract.family`). Its variants are the places where its functions are written, the fields of a
variant what such a function has captured, and a call is a call of one function for the whole family that branches on the
variant: this is defunctionalisation (Reynolds 1972). Derivatives, batches and executors have nothing to do with functions: they
see data types and recursion.

Which functions are of one family follows from where they meet: in a variable, a list, the result of a branch. A family and the
types of its fields grow while a program is inferred; the program is then inferred again, until they no longer do.

Input: treedefs. Output: `FunctionFamily`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...abstract.declared import EVERYWHERE, Arrow, Instances
from ...abstract.dims import is_run_time
from ...abstract.family import Family, Variant
from ...abstract.types import Array, Data, List, Scalar, Struct, Tape, Type
from ...utils.errors import TypeError_
from .treedef import Mismatch, TreeDef, is_function, join, name_of, unknown

MOST_VARIANTS = 100  # places where the functions of one family are written; more are considered a mistake


class FunctionRecord:
    """Base class of the records of functions, one for each place where a function is written."""

    def __repr__(self) -> str:
        return f"<function {type(self).__name__}>"


class FunctionFamily(Family):
    """A family of functions.

    Attributes:
        families: all families of the compilation.
        arrow: the type in the declaration of a data type that is this family.
        forms: for each variant the treedef of its functions, whose leaves are the fields of the variant.
        calls: the parsed functions that call a function of the family; see `infer.language.functions`.
    """

    of_functions = True

    def __init__(self, families: FunctionFamilies):
        super().__init__([], True, "function")
        self.local, self.families = True, families
        self.arrow: Arrow | None = None
        self.forms: list[TreeDef] = []
        self.calls: dict[tuple, Any] = {}
        self._united: FunctionFamily | None = None
        families.all.append(self)

    @property
    def root(self) -> FunctionFamily:
        """The family that it has become a part of."""
        family = self
        while family._united is not None:
            family = family._united
        return family

    def united(self, other: FunctionFamily) -> FunctionFamily:
        """The family of the functions of both."""
        mine, theirs = self.root, other.root
        if theirs.arrow is not None:
            mine, theirs = theirs, mine  # the types of fields say which one it is
        if mine is not theirs:
            theirs._united = mine
            self.families.united = self.families.grown = True
            for form in theirs.forms:
                mine.number(form)
            for family in self.families.all:
                for k, form in enumerate(family.forms):
                    family._set(k, _resolved(form))
        return mine

    def number(self, form: TreeDef) -> int:
        """The number of the variant of functions with a treedef, whose fields are widened where they must be.

        Raises:
            TypeError_: such a function cannot exist at run time, with the reason.
        """
        form = _resolved(unknown(form))
        at = next((k for k, f in enumerate(self.forms) if (f.tag, f.info) == (form.tag, form.info)), None)
        if at is not None:
            form = self._joined(self.forms[at], form)
            if form == self.forms[at]:
                return at + 1
        form = self.families.absorbed(form)
        _check(form)
        if at is None:
            at = len(self.forms)
            if at == MOST_VARIANTS:
                raise TypeError_(f"functions that are made at run time come from {MOST_VARIANTS} places at most")
            self.forms.append(form)
            variant = Variant(type(written(form), (FunctionRecord,), {}), at + 1)
            self.variants += (variant,)
            self.numbers[variant.cls] = at + 1
            if self.arrow is None:
                self.name = f"function {' | '.join(dict.fromkeys(map(written, self.forms)))}"
        self._set(at, form)
        self.families.grown = True
        return at + 1

    def _set(self, at: int, form: TreeDef) -> None:
        """Let the functions of a variant have a treedef."""
        self.forms[at], variant = form, self.variants[at]
        variant.types = tuple(leaf.info for leaf in form.leaves())
        variant.fields = tuple(f"captured{k}" for k in range(len(variant.types)))
        variant.place_leaves()

    def _joined(self, old: TreeDef, new: TreeDef) -> TreeDef:
        """The treedef of a variant that captures what either of two functions does.

        Raises:
            TypeError_: these have no common type.
        """
        parts = []
        for name, a, b in zip(captured_names(old), old.parts, new.parts, strict=True):
            try:
                parts.append(unknown(join(a, b)))
            except Mismatch as error:
                raise TypeError_(
                    f"{written(old)} is made at run time, so what it captures has one type: '{name}' is {error.a} in one place "
                    f"and {error.b} in another" + (f"; {error.why}" if error.why else "")
                ) from None
        return TreeDef(old.tag, old.info, tuple(parts))


class FunctionFamilies:
    """The families of functions of one compilation.

    Attributes:
        leaf: `(frame, value, type) -> Node`, makes a value of a family of a function; see `infer.engine.functions`.
        open: whether functions that are suspected may become values of families.
        tried: recursive functions of which a known number might have bounded the recursion.
        sites: where the functions are written that become values of a family as soon as they are handed on.
        arrows: the families of function types in the declarations of data types.
        instances: those of declared data types, of which the fields may be functions.
        suspects: those that would, if the program cannot be inferred otherwise.
        instead_of: the error because of which there are any.
        grown: whether a family has changed in this pass.
        all: all families, those too that have become parts of others.
        united: whether two have become one, so that types of the last pass mean nothing any more.
    """

    def __init__(self, leaf: Callable, open: bool = True):
        self.leaf, self.open = leaf, open
        self.tried: set[Any] = set()
        self.sites: dict[tuple, FunctionFamily] = {}
        self.arrows: dict[Arrow, FunctionFamily] = {}
        self.instances = Instances(self.of_arrow, EVERYWHERE)
        self.suspects: dict[tuple, None] = {}
        self.all: list[FunctionFamily] = []
        self.instead_of: Any = None
        self.grown = self.united = False

    def of_arrow(self, arrow: Arrow) -> Data:
        """The type of the values of a function type in the declaration of a data type."""
        arrow = Arrow(tuple(map(self.instances.type, arrow.params)), self.instances.type(arrow.result))
        if arrow not in self.arrows:
            family = self.arrows[arrow] = FunctionFamily(self)
            family.arrow, family.name = arrow, str(arrow)
        return Data(self.arrows[arrow].root)

    def suspect(self, *treedefs: TreeDef, every: bool = False) -> None:
        """Note the functions in treedefs that hold functions of the same place or one another, those in lists, or all of them."""
        for treedef in treedefs if every else ():
            closures = (part for part in _parts(treedef) if part.tag == "closure")
            self.suspects.update(dict.fromkeys(map(site_of, closures)))
        for treedef in treedefs:
            self.suspects.update(dict.fromkeys(_growing(treedef)))
        met = [f for treedef in treedefs for f in _outermost(unknown(treedef))]
        for inner, outer in ((a, b) for a in met for b in met if a.parts and b.parts and a != b):
            if any(part == inner for part in _parts(outer)):
                self.suspects.update(dict.fromkeys((site_of(inner), site_of(outer))))

    def widen(self, problem: Any) -> bool:
        """Let the functions that are suspected become values of families; whether there are more of them.

        Args:
            problem: why the program cannot be inferred otherwise.
        """
        new = [site for site in self.suspects if site not in self.sites] if self.open else []
        self.instead_of = self.instead_of or (problem if new else None)
        self.suspects.clear()
        for site in new:
            self.sites[site] = FunctionFamily(self)
        return bool(new)

    def explain(self, problem: Any) -> None:
        """Add a note to an error that may come from functions of several types in one family."""
        if self.sites and type(problem) is TypeError_ and "made at run time" not in problem.message:
            names = dict.fromkeys(written(form) for f in self.all for form in f.root.forms)
            text = f"functions that are made at run time and meet in one place have one type: here {', '.join(names)}"
            problem.notes.append(text[:200])

    def grow(self) -> bool:
        """Whether the families have grown since the last pass, so that another one is needed."""
        grown, self.grown = self.grown, False
        if grown:
            for family in (*self.all, *self.instances.made.values()):  # their derivatives are those of what they were
                for derived in ("tangent", "gradient"):
                    self.united |= family.__dict__.pop(derived, None) is not None
        return grown

    def family(self, treedef: TreeDef) -> FunctionFamily | None:
        """The family of functions with a treedef, if these are known to exist at run time."""
        if not self.sites or treedef.tag == "static" and not callable(treedef.info.value):
            return None
        found = self.sites.get(site_of(treedef))
        return found.root if found is not None else None

    def absorbed(self, treedef: TreeDef) -> TreeDef:
        """What a function of a family captures, without choices among functions, and functions within functions of the same place:
        they become values of families too."""
        for site in _growing(treedef):
            if site not in self.sites:
                self.sites[site] = FunctionFamily(self)
                self.grown = True

        def go(treedef: TreeDef) -> TreeDef:
            parts = tuple(map(go, treedef.parts))
            if treedef.tag == "choice" and sum(map(is_function, parts[1:])) > 1:
                family = next((f for p in parts[1:] if (f := self.family(p)) is not None), None) or FunctionFamily(self)
                for part in filter(is_function, parts[1:]):
                    known = self.sites.get(site_of(part))
                    self.sites[site_of(part)] = family if known is None else family.united(known)
                self.grown = True
                others = [p for p in parts[1:] if not is_function(p)]
                made = TreeDef("dyn", Data(family.root))
                for other in others:
                    made = join(made, other)
                return made
            return TreeDef(treedef.tag, treedef.info, parts) if parts else treedef

        return TreeDef(treedef.tag, treedef.info, tuple(map(go, treedef.parts)))


def families_in(t: Type) -> list[FunctionFamily]:
    """The families of the functions that values of a type are or hold, in what functions captured too."""
    found: dict[Any, None] = {}
    todo = [t]
    while todo:
        top = todo.pop()
        if isinstance(top, Struct):
            todo.extend(top.elems)
        elif isinstance(top, List | Tape):
            todo.append(top.elem)
        elif isinstance(top, Data) and top.family not in found:
            found[top.family] = None
            todo.extend(leaf for v in top.family.variants for leaf in v.leaves)
    return [family for family in found if isinstance(family, FunctionFamily)]


def parts_in(families: Iterable[FunctionFamily]) -> Iterator[TreeDef]:
    """The functions of families, and all that they have captured."""
    return (part for family in families for form in family.forms for part in _parts(form))


def _parts(treedef: TreeDef) -> Iterator[TreeDef]:
    """A treedef and all that is in it."""
    stack = [treedef]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(top.parts)


def _outermost(treedef: TreeDef) -> Iterator[TreeDef]:
    """The functions in a treedef that are not held by other functions."""
    if is_function(treedef):
        yield treedef
    else:
        for part in treedef.parts:
            yield from _outermost(part)


def site_of(function: TreeDef) -> tuple:
    """Where a function is written: its parsed graph, or the Python function that it is."""
    return (function.tag, function.info[0] if function.tag in ("closure", "derived") else function.info)


def written(form: TreeDef) -> str:
    """The name of the functions with a treedef."""
    if form.tag == "closure":
        return form.info[0].name
    if form.tag == "derived":
        return f"{form.info[0]}({written(form.parts[0]) if is_function(form.parts[0]) else form.parts[0]})"
    return name_of(form.info.value) if not isinstance(form.info.value, str) else form.info.value


def captured_names(form: TreeDef) -> Iterable[str]:
    """What a function has captured, by name."""
    if form.tag == "closure":
        return [n.name or "a value" for n in form.info[1]]
    return ["self" if form.tag == "bound" else "function"] * len(form.parts)


def nests(treedefs: Iterable[TreeDef], limit: int) -> bool:
    """Whether functions of one place hold each other more than some number of levels deep."""
    stack: list[tuple[TreeDef, Counter]] = [(t, Counter()) for t in treedefs]
    while stack:
        top, around = stack.pop()
        if top.tag == "closure":
            around = around + Counter((site_of(top),))
            if around[site_of(top)] > limit:
                return True
        if top.parts:
            stack.extend((part, around) for part in top.parts)
    return False


def _resolved(treedef: TreeDef) -> TreeDef:
    """A treedef with families that have not become a part of others."""
    if treedef.tag == "dyn" and isinstance(treedef.info, Data) and treedef.info.family.of_functions:
        return TreeDef("dyn", Data(treedef.info.family.root, treedef.info.nullable))
    parts = tuple(map(_resolved, treedef.parts))
    return TreeDef(treedef.tag, treedef.info, parts) if parts else treedef


def _growing(treedef: TreeDef) -> Iterator[tuple]:
    """The places of functions that hold functions of the same place, and of functions in lists."""
    stack: list[tuple[TreeDef, frozenset, bool]] = [(treedef, frozenset(), False)]
    while stack:
        top, around, listed = stack.pop()
        if is_function(top):
            site = site_of(top)
            if site in around or listed:
                yield site
            around, listed = around | {site}, False
        listed |= top.tag == "seq" and top.info[0] == "list"
        stack.extend((part, around, listed) for part in top.parts)


def _check(form: TreeDef) -> None:
    """Refuse a function that cannot exist at run time.

    Raises:
        TypeError_: it captures something that a record cannot hold.
    """
    name = written(form)
    made = f"{name} is made at run time (in a recursion, a loop or a list of functions)"
    if form.tag == "derived":
        raise TypeError_(
            f"{made}, and a derivative or batch of a function is known when compiling; write a function that calls it"
        )
    for label, part in zip(captured_names(form), form.parts, strict=True):
        stack = [part]
        while stack:
            top = stack.pop()
            if top.tag == "cell" and top.info.name == "ref":
                raise TypeError_(
                    f"{made}, and captures a reference; such a function can be given it, or hold it in a data type"
                )
            if top.tag == "cell":
                raise TypeError_(
                    f"{made}, and '{top.info.name}', which it uses, is assigned again after that; give each function its own "
                    f"value, by a default ({top.info.name}={top.info.name}) or an argument of a function that makes it"
                )
            changes = top.tag == "seq" and top.info[0] in ("list", "dict")
            if changes or top.tag in OTHERS or top.tag == "dyn" and not _is_field(top.info):
                raise TypeError_(
                    f"{made}, and captures '{label}', which is {_described(top)}; such a function can capture numbers, arrays of "
                    "sizes that no value decides, trees, functions, and tuples of these"
                )
            stack.extend(top.parts)


def _is_field(t: Any) -> bool:
    return isinstance(t, Scalar | Data) or isinstance(t, Array) and not any(map(is_run_time, t.shape))


OTHERS = {"sized": "an array", "listed": "a list", "iter": "an iterator", "raised": "an exception"}
"""What a record cannot hold, by the tags of treedefs."""


def _described(treedef: TreeDef) -> str:
    if treedef.tag == "seq":
        return f"a {treedef.info[0]}"
    if treedef.tag in OTHERS:
        return OTHERS[treedef.tag]
    return f"an array {treedef}" if isinstance(treedef.info, Array) else f"a {treedef}"


__all__ = [
    "FunctionFamilies",
    "FunctionFamily",
    "FunctionRecord",
    "captured_names",
    "families_in",
    "nests",
    "parts_in",
    "site_of",
    "written",
]
