"""Passes over modules: what they have in common, and sequences of them.

A pass is a frozen dataclass with its options as fields; called on a module, it returns another. `TreePass` brings the module's tree
into A-normal form with graph bindings in their places, has the pass rewrite it, and nests operands again (`normal.py`).

Every pass keeps types, effects and their order, and values. With MYIA_RELAY_DEBUG=1 each result is checked, and an error names
the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ....utils.debugging import debugging
from ....utils.deep import deeply
from ....utils.errors import CompileError, InternalError, TypeError_
from ...check.module import check
from ...module import Module
from ...tree import Expression, Function, Local, ModuleTree
from ...walk import rewritten
from .effects import FAIL, PURE, Effect, EffectAnalysis
from .folding import is_pure
from .normal import count_uses, is_pure_by_form, nested, nesting, normalised, without
from .pinned import pinned
from .types_known import Types

SHALLOW = 40
"""How deep scopes nest where Python's own stack is enough."""


class TreePass:
    """A pass that rewrites trees in A-normal form."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The rewritten module.

        Args:
            tree: placed and in A-normal form.

        Raises:
            NotImplementedError: the pass does not say.
        """
        raise NotImplementedError

    def nest(self, tree: ModuleTree) -> ModuleTree:
        """The module as text has it, from A-normal form."""
        return tree.mapped(lambda name, function: nested(function))

    def __call__(self, module: Module) -> Module:
        """The module after the pass.

        Raises:
            TypeError_: it is no module.
            InternalError: its result is ill-typed (with MYIA_RELAY_DEBUG=1).
        """
        if not isinstance(module, Module):
            raise TypeError_(
                f"{type(self).__name__}()(module) takes a module of relay.parse_text, not {type(module).__name__}"
            )
        try:
            result = self._after(module.placed)
        except CompileError:  # within the pass, as below
            result = None
        if result is None or not _is_well_typed(result):  # a type was inferred from what is gone now
            pins = self._after(pinned(module.checked))
            result = pins if result is None or _is_well_typed(pins) else result
        return finished(self, result)

    def _after(self, tree: ModuleTree) -> Module:
        normal = normal_form(tree)
        result = with_enough_stack(normal, lambda: _without_leftovers(normal, self.on_tree(normal)))
        return Module(unshared(self.nest(result)))


def _is_well_typed(module: Module) -> bool:
    try:
        return module.checked is not None
    except CompileError:
        return False


def _without_leftovers(before: ModuleTree, after: ModuleTree) -> ModuleTree:
    """A module without the pure bindings that were used and no longer are; without their uses, some have no type."""
    used = {local for d in before.definitions.values() for local in count_uses(d.function.body)}
    return after.mapped(
        lambda name, function: without(function, lambda s: s.local in used and is_pure_by_form(s.value))
    )


def finished(step: object, result: ModuleTree | Module) -> Module:
    """The module that a pass has made.

    Raises:
        InternalError: it is ill-typed (with MYIA_RELAY_DEBUG=1).
    """
    module = result if isinstance(result, Module) else Module(unshared(result))
    if debugging():
        try:
            module.checked  # noqa: B018
        except CompileError as error:
            raise InternalError(type(step).__name__, f"the result is ill-typed: {error}\n{module}") from error
    return module


def unshared(tree: ModuleTree) -> ModuleTree:
    """The module with copies of the expressions that stand in several places: types belong to nodes."""
    seen: set[int] = set()

    def change(e: Expression) -> Expression:
        new = replace(e) if id(e) in seen else e
        seen.add(id(new))
        return new

    return tree.mapped(lambda name, function: _rewritten(function, change))


def _rewritten(function: Function, change: Callable[[Expression], Expression]) -> Function:
    out = rewritten(function, change)
    assert isinstance(out, Function)
    return out


def normal_form(tree: ModuleTree) -> ModuleTree:
    """A placed tree in A-normal form."""
    return tree.mapped(lambda name, function: normalised(function))


def with_enough_stack(tree: ModuleTree, work: Callable[[], ModuleTree], shallow: int = SHALLOW) -> ModuleTree:
    """What a function returns, run with a stack that is deep enough for the scopes of a module."""
    deepest = max((nesting(d.function.body) for d in tree.definitions.values()), default=0)
    return work() if deepest <= shallow else deeply(work)


def effects_of(tree: ModuleTree) -> EffectAnalysis:
    """The effects of a module in A-normal form."""
    types = Types(check(tree))
    known: dict[Local, bool] = {}

    def first_order(local: Local) -> bool:
        if local not in known:
            known[local] = types.is_first_order(types.of_local(local))
        return known[local]

    return EffectAnalysis(tree, lambda name: PURE if is_pure(name) else Effect(FAIL), first_order)


@dataclass(frozen=True)
class Sequential:
    """Passes one after another.

    Attributes:
        passes: the passes.
    """

    passes: Sequence[Callable[[Module], Module]]

    def __call__(self, module: Module) -> Module:
        """The module after all passes."""
        for step in self.passes:
            module = step(module)
        return module
