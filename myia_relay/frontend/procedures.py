"""Which functions change their parameters in place, and which calls therefore change variables of the caller.

    def swap(a, i, j):                      def swap(a, i, j):
        a[i], a[j] = a[j], a[i]      =>         a = ...; return finals(None, a)

    swap(xs, 0, 1)                   =>     pair = swap(xs, 0, 1);  xs = after_call(xs, pair)

This is decided from syntax, before a function is parsed, for all functions that it may call by name: a parameter is *kept* if the
function changes it by a statement (`a[i] = v`, `a.append(v)`), or gives it to a function that does, and never binds the name to
anything else. Whether something else can see the changed object is then a question for the caller (`ownership`). `a += b` may
bind the name to a new object, as types decide; such a parameter is kept once inference has seen an array or a list there.
"""

from __future__ import annotations

import ast
import types
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..ir.syntax import FreeName
from ..utils.attributes import own_attribute
from ..utils.compiling import session
from ..utils.errors import CompileError
from .captured_changes import lift
from .objects import DEEPEST
from .text import scope as scopes
from .text.source import Source, find
from .text.tree import FunctionNode, children

NEVER = 1 << 30
_ROUNDS = [0]
_NODES: weakref.WeakKeyDictionary[types.FunctionType, tuple[Any, FunctionNode | None]] = weakref.WeakKeyDictionary()
_ANALYSES: weakref.WeakKeyDictionary[types.FunctionType, weakref.ref[Procedures]] = weakref.WeakKeyDictionary()
"""The last analysis of each function, as long as a parsed graph has it."""


@dataclass(frozen=True)
class ParameterChange:
    """How a function changes a parameter.

    Attributes:
        deep: how deep in it something is changed in place: 0 for itself, 1 for entries (`a[i][j] = v`), ...; the most, at most
            `DEEPEST`.
        stored: how deep in it something may be stored: 1 for `a[i] = v`, 2 for `a[i][j] = v`; the least; `NEVER` for never.
        replaced: how deep in it entries may be replaced, moved or taken out: 0 for `a[i] = v` and `a.sort()`; the least. What is
            assigned under a name (`a["k"] = v`) is in `keys` instead.
        grown: how deep in it entries may be added at the end: 0 for `a.append(v)`; the least.
        keys: how deep in it, and under which names, entries of dicts are replaced: (1, "k") for `a[i]["k"] = v`.
    """

    deep: int = 0
    stored: int = NEVER
    replaced: int = NEVER
    grown: int = NEVER
    keys: frozenset[tuple[int, str]] = frozenset()

    def __or__(self, other: ParameterChange) -> ParameterChange:
        return ParameterChange(
            max(self.deep, other.deep),
            min(self.stored, other.stored),
            min(self.replaced, other.replaced),
            min(self.grown, other.grown),
            self.keys | other.keys,
        )

    def below(self, depth: int) -> ParameterChange:
        """The same of what has such a parameter as an entry, so deep."""
        below = [(level + depth, key) for level, key in self.keys]
        replaced = min(self.replaced, *(level - depth for level, _ in below if level > DEEPEST), NEVER)
        stored, replaced, grown = (min(level + depth, NEVER) for level in (self.stored, replaced, self.grown))
        keys = frozenset((level, key) for level, key in below if level <= DEEPEST)
        return ParameterChange(min(self.deep + depth, DEEPEST), stored, replaced, grown, keys)

    def replaces(self, level: int, key: str) -> bool:
        """Whether an entry of a dict that is so deep may be another object afterwards."""
        return self.replaced <= level or (level, key) in self.keys


class ChangedArgument(NamedTuple):
    """An argument that a call changes.

    Attributes:
        position: among the arguments of the call, keywords last.
        change: how it is changed.
    """

    position: int
    change: ParameterChange


@dataclass
class Procedures:
    """What is known of the functions around a function and of those that it calls.

    Attributes:
        kept: function -> the parameters that it changes.
        calls: call -> the arguments that it changes.
        assumed: the names from outside that were looked up, with what they meant.
        nodes: all these functions, inner ones too.
        functions: the Python functions among them.
        round: the value of `rounds` when they were looked at.
        session: the compilation in which the names were looked up last.
    """

    kept: dict[FunctionNode, dict[str, ParameterChange]] = field(default_factory=dict)
    calls: dict[ast.Call, tuple[ChangedArgument, ...]] = field(default_factory=dict)
    assumed: dict[tuple[types.FunctionType, str], Any] = field(default_factory=dict)
    nodes: set[FunctionNode] = field(default_factory=set)
    functions: list[types.FunctionType] = field(default_factory=list)
    round: int = 0
    session: int = 0

    def holds(self) -> bool:
        """Whether the names still mean what they meant; looked up once in a compilation."""
        if self.session == (now := session()):
            return True
        holds = all(_meaning(*name) is value for name, value in self.assumed.items())
        if holds:
            self.session = now
        return holds

    def added(self, node: FunctionNode) -> set[str]:
        """The parameters of a function to which `a += b` is applied."""
        return _summary(node).added

    def mutated(self, nodes: Sequence[ast.AST]) -> set[str]:
        """Names whose value these nodes change in place: as `scopes.mutated`, and through calls."""
        out = scopes.mutated(nodes)
        if not self.calls:
            return out
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if isinstance(node, scopes.FUNCTIONS):
                continue
            if isinstance(node, scopes.COMPREHENSIONS):
                stack.append(node.generators[0].iter)  # which runs outside of it
                continue
            if isinstance(node, ast.Call):
                for place in self.calls.get(node, ()):
                    base = base_of_argument(arguments_of(node)[place.position])
                    if base is not None:
                        out.add(base)
            stack.extend(children(node))
        return out


@dataclass
class _Summary:
    """What a function does, by its own text.

    Attributes:
        own: the parameters that may be kept.
        changes: variable -> how it is changed.
        added: parameters that are changed by `a += b` only.
        calls: calls of names, with plain arguments.
    """

    own: set[str]
    changes: dict[str, ParameterChange]
    added: set[str]
    calls: list[ast.Call]


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call, keywords last."""
    return [*call.args, *[k.value for k in call.keywords]]


def base_of_argument(argument: ast.expr) -> str | None:
    """The `x` of an argument `x`, `x[i]`, `x[i][j]`; None for everything else, whose value is no part of a variable by its name."""
    part: ast.AST = argument
    while isinstance(part, ast.Subscript):
        if isinstance(part.slice, ast.Slice | ast.Tuple):
            return None
        part = part.value
    return part.id if isinstance(part, ast.Name) else None


def _summary(node: FunctionNode) -> _Summary:
    """The summary of a function, kept on its node."""
    known = getattr(node, "_procedure", None)
    if known is not None:
        return known
    scope = scopes.analyse(node)
    changes: dict[str, ParameterChange] = {}
    calls: list[ast.Call] = []
    added: set[str] = set()
    rebound: set[str] = set()

    def note(base: ast.AST, change: ParameterChange) -> None:
        if isinstance(base, ast.Name):
            changes[base.id] = changes.get(base.id, ParameterChange()) | change

    stack: list[ast.AST] = list(scopes.body_of(node))
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Name):
            if isinstance(part.ctx, ast.Store):
                rebound.add(part.id)
            continue
        if isinstance(part, ast.Constant):
            continue
        if isinstance(part, scopes.FUNCTIONS) or isinstance(part, scopes.COMPREHENSIONS):
            rebound |= scopes.bindings([part])
            if isinstance(part, scopes.COMPREHENSIONS):
                stack.append(part.generators[0].iter)
            continue
        if isinstance(part, ast.AugAssign):
            stack.append(part.value)
            if isinstance(part.target, ast.Name):
                added.add(part.target.id)
                continue
            depth = _depth(part.target)
            sliced = isinstance(part.target, ast.Subscript) and isinstance(part.target.slice, ast.Slice)
            replaced = depth - 1 if sliced else NEVER
            note(scopes.base_of(part.target), ParameterChange(min(depth, DEEPEST), depth + 1, replaced))
            stack.extend(children(part.target))
            continue
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store | ast.Del):
            depth, stores = _depth(part), isinstance(part.ctx, ast.Store)
            key = part.slice.value if stores and isinstance(part.slice, ast.Constant) else None
            change = ParameterChange(min(depth - 1, DEEPEST), depth if stores else NEVER, depth - 1)
            if isinstance(key, str):
                change = replace(change, replaced=NEVER, keys=frozenset([(depth - 1, key)]))
            note(scopes.base_of(part), change)
        elif isinstance(part, ast.Call):
            if (base := scopes.changed(part)) is not None and isinstance(part.func, ast.Attribute):
                depth, method = _depth(part.func.value) + 1, part.func.attr
                stored = depth if method in ("append", "insert", "extend") else NEVER
                places = (NEVER, depth - 1) if method in ("append", "extend") else (depth - 1, NEVER)
                note(base, ParameterChange(min(depth - 1, DEEPEST), stored, *places))
            plain = not any(isinstance(a, ast.Starred) for a in part.args) and all(k.arg for k in part.keywords)
            if plain and isinstance(part.func, ast.Name) and arguments_of(part):
                calls.append(part)
        elif isinstance(part, ast.Expr) and (target := scopes.updated_array(part)) is not None:
            note(scopes.base_of(target), ParameterChange(min(_depth(target), DEEPEST)))
        rebound |= _bound_here(part)
        stack.extend(children(part))
    a = node.args
    names = {p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]}
    own = set() if isinstance(node, ast.Lambda) else names - rebound - scope.captured - scope.cells - set(scope.outer)
    found = _Summary(own, changes, added & own, calls)
    marked: Any = node
    marked._procedure = found
    return found


def _bound_here(part: ast.AST) -> set[str]:
    """The names that a node binds by itself, other than through a name in its parts."""
    if isinstance(part, ast.MatchAs | ast.MatchStar | ast.ExceptHandler) and part.name:
        return {part.name}
    if isinstance(part, ast.MatchMapping) and part.rest:
        return {part.rest}
    return {(part.asname or part.name).split(".")[0]} if isinstance(part, ast.alias) else set()


def _depth(target: ast.AST) -> int:
    """How many subscripts a target has: 2 for `x[i][j]`."""
    depth = 0
    while isinstance(target, ast.Subscript):
        depth, target = depth + 1, target.value
    return depth


@dataclass(eq=False)
class _Unit:
    """A function in the analysis: its tree, where it is, and the function around it."""

    node: FunctionNode
    function: Any
    outer: _Unit | None = None
    targets: list[tuple[ast.Call, _Unit]] = field(default_factory=list)

    def called(
        self, name: str, inner: dict[FunctionNode, _Unit], outside: dict[Any, _Unit | None], found: Procedures
    ) -> _Unit | None:
        """The function that a name certainly means here."""
        unit: _Unit | None = self
        while unit is not None:
            if name in scopes.analyse(unit.node).locals:
                return inner.get(_definition(unit.node, name))  # type: ignore[arg-type]
            unit = unit.outer
        value = found.assumed[self.function, name] = _meaning(self.function, name)
        return _outside(value, outside)


def _definition(node: FunctionNode, name: str) -> ast.FunctionDef | None:
    """The `def` that alone binds a variable of a function."""
    known = getattr(node, "_definitions", None)
    if known is None:
        known = {}
        stack: list[ast.AST] = list(scopes.body_of(node))
        rest: list[ast.AST] = []
        while stack:
            part = stack.pop()
            if isinstance(part, ast.FunctionDef) and not part.decorator_list:
                known[part.name] = None if part.name in known else part
            elif isinstance(part, scopes.FUNCTIONS):
                continue
            else:
                rest.append(part)
                stack.extend(children(part))
        taken = {p.arg for p in scopes.parameters(node)} | scopes.analyse(node).cells
        taken |= {n.id for n in rest if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        known = {n: d for n, d in known.items() if n not in taken}
        marked: Any = node
        marked._definitions = known
    return known.get(name)


def _meaning(function: types.FunctionType, name: str) -> Any:
    """What a name from outside means at the moment; what a decorated function was made from."""
    try:
        value = FreeName(name, function).read()
    except CompileError:
        return None
    return own_attribute(value, "__relay_function__") or value


def _outside(value: Any, outside: dict[Any, _Unit | None]) -> _Unit | None:
    """The analysis of the user's function that a name means."""
    if not isinstance(value, types.FunctionType) or _is_foreign(value):
        return None
    if value not in outside:
        node = _node_of(value)
        outside[value] = _Unit(node, value) if node is not None else None
    return outside[value]


def rounds() -> int:
    """How often it has changed how functions are parsed."""
    return _ROUNDS[0]


def keep_added(node: FunctionNode, name: str) -> None:
    """From now on keep a parameter that `a += b` changes: it has turned out to be an array, a list or a dict."""
    marked: Any = node
    marked._added = {*getattr(node, "_added", ()), name}
    changed_round()


def changed_round() -> None:
    """What was parsed before is not as it would be parsed now."""
    _ROUNDS[0] += 1


def _node_of(function: types.FunctionType) -> FunctionNode | None:
    """The tree of a function; None where there is none. Kept, because finding it takes time."""
    code, node = _NODES.get(function, (None, None))
    if code is not function.__code__:
        try:
            source = find(function)
            _lift_in(source)
            node = source.node
        except (CompileError, OSError):
            node = None
        _NODES[function] = function.__code__, node
    return node


def _is_foreign(function: types.FunctionType) -> bool:
    """Whether a function is part of this package or of an installed one."""
    module = function.__module__ or ""
    return "site-packages" in function.__code__.co_filename or module.partition(".")[0] in ("myia_relay", "numpy")


def analyse(source: Source) -> Procedures:
    """What a function and the functions that it calls change; where inner functions change its variables, they take them.

    What was found for a function is right for those that it calls, too, so that a chain of calls is analysed once.
    """
    _lift_in(source)
    kept = _ANALYSES.get(source.function)
    known = kept() if kept is not None else None
    if known is None or known.round != rounds() or source.node not in known.nodes or not known.holds():
        known = _analysed(source)
        known.round, known.session = rounds(), session()
        _ANALYSES.update(dict.fromkeys(known.functions, weakref.ref(known)))
    return known


def _lift_in(source: Source) -> None:
    """Let inner functions take the variables around them that they change; once for each tree."""
    marked: Any = source.node
    if not getattr(marked, "_lifted", False) and _functions_in(source.node):
        marked._lifted = True
        lift(source.node, _analysed(source).mutated, _definition)


def _analysed(source: Source) -> Procedures:
    """What a function and the functions that it calls change, to the least fixpoint."""
    found, units = Procedures(), []
    inner: dict[FunctionNode, _Unit] = {}
    entered: set[_Unit] = set()
    first = _Unit(source.node, source.function)
    outside: dict[Any, _Unit | None] = {source.function: first}

    def enter(unit: _Unit) -> None:
        """Add a function and those defined in it."""
        stack = [unit]
        while stack:
            top = stack.pop()
            units.append(top)
            entered.add(top)
            within = [_Unit(n, top.function, top) for n in _functions_in(top.node)]
            inner.update((u.node, u) for u in within)
            stack.extend(within)

    enter(first)
    for unit in units:  # which grows
        for call in _summary(unit.node).calls:
            target = unit.called(call.func.id, inner, outside, found)  # type: ignore[attr-defined]
            if target is not None:
                unit.targets.append((call, target))
                if target not in entered:
                    enter(target)
    for unit in units:
        summary = _summary(unit.node)
        added = getattr(unit.node, "_added", ())
        direct = {n: c for n, c in summary.changes.items() if n in summary.own}
        direct.update(
            {
                n: direct.get(n, ParameterChange()) | ParameterChange(stored=1, grown=0)
                for n in added
                if n in summary.own
            }
        )
        if direct:
            found.kept[unit.node] = direct
    again = True
    while again:
        again = False
        for unit in units:
            own = _summary(unit.node).own
            for call, target in unit.targets:
                for place in _places(call, target.node, found.kept.get(target.node, {})):
                    argument = arguments_of(call)[place.position]
                    base = base_of_argument(argument)
                    if base in own:
                        depth = _depth(argument)
                        change = place.change.below(depth)
                        kept = found.kept.setdefault(unit.node, {})
                        new = kept.get(base, ParameterChange()) | change
                        again |= base not in kept or new != kept[base]
                        kept[base] = new
    for unit in units:
        for call, target in unit.targets:
            places = _places(call, target.node, found.kept.get(target.node, {}))
            if places:
                found.calls[call] = places
    found.nodes.update(unit.node for unit in units)
    found.functions.extend(function for function, unit in outside.items() if unit is not None)
    return found


def _functions_in(node: FunctionNode) -> list[FunctionNode]:
    """The functions defined right inside of a function."""
    return [part for part in scopes.analyse(node).inner if not isinstance(part, ast.AsyncFunctionDef)]


def _places(call: ast.Call, node: FunctionNode, kept: dict[str, ParameterChange]) -> tuple[ChangedArgument, ...]:
    """The arguments of a call that a function changes."""
    if not kept:
        return ()
    a = node.args
    positional = [p.arg for p in [*a.posonlyargs, *a.args]]
    names: list[str | None] = [*positional[: len(call.args)], *[None] * (len(call.args) - len(positional))]
    names += [k.arg for k in call.keywords]
    return tuple(ChangedArgument(k, kept[name]) for k, name in enumerate(names) if name in kept)
