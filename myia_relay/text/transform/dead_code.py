"""Elimination of dead code: what nobody needs is not computed.

    let %a = e1; e2   =>   e2        where e2 does not mention %a, and e1 neither writes nor fails

One walk backwards over each block. Writes to references stay, and calls that may write, and `match?`, which may raise. What
would only run for ever goes. A function that nobody but itself mentions goes. Definitions stay: they may be called from outside.

The native pipeline drops dead nodes when it rebuilds a typed graph (`ir.rewrite`), which has no functions as values left; this
pass works on text, before specialisation.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..tree import Function, ModuleTree
from .common.effects import EffectAnalysis
from .common.normal import without
from .common.passes import TreePass, effects_of


@dataclass(frozen=True)
class DeadCodeElimination(TreePass):
    """Drops pure bindings that nothing uses."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module without dead code."""
        effects = effects_of(tree)
        return tree.mapped(lambda name, function: without_dead_code(function, effects))


def without_dead_code(function: Function, effects: EffectAnalysis) -> Function:
    """A function in A-normal form without bindings that nothing uses."""
    return without(function, lambda s: effects.of(s.value).removable)
