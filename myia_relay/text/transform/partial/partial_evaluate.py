"""Partial evaluation: what is known at compile time is computed at compile time.

    def @power(%x, %n) { if (%n == 0) { 1f } else { %x * @power(%x, %n - 1) } }
    @power(%x, 3)   =>   let %t = %x * 1f; let %t1 = %x * %t; %x * %t1

Input and output: modules; the output is in A-normal form. `evaluator.py` says how it works.

The native pipeline specialises functions for what inference knows of their arguments (`infer.engine`), which unrolls a recursion
over a static number, too; it needs the types of a call, and its results are typed graphs. This pass gives text that people read and
other passes of this folder take.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tree import ModuleTree
from ..common.passes import TreePass, effects_of
from .evaluator import PartialEvaluator


@dataclass(frozen=True)
class PartialEvaluate(TreePass):
    """Evaluates a module on what is known of it.

    Attributes:
        limit: how many calls are unfolded for one definition.
    """

    limit: int = 10_000

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The residual module."""
        evaluator = PartialEvaluator(tree, effects_of(tree), self.limit)
        return tree.mapped(lambda name, function: evaluator.definition(function))
