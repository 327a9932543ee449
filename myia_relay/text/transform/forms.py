"""The two forms of Relay: A-normal form, and graph form.

    tanh(exp(%x) + 1f)   <=>   let %t = exp(%x); let %t1 = add(%t, 1f); tanh(%t1)

In A-normal form `let` binds every operand that is no atom, in the order of evaluation, so scopes are explicit. In graph
form there is no `let` in pure code: what is used once is nested, what is used more often is a graph binding. What has
effects keeps its `let`, which is its place in the order of evaluation, and so does a function that calls itself by its
name, or that is used at several types: a graph binding has one.

Typed graphs are in A-normal form throughout and have no counterpart to these passes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..check.module import check
from ..tree import Expression, Let, Local, LocalVar, ModuleTree, Statement
from .common.normal import Temporary, nested
from .common.passes import TreePass
from .common.rewriting import TreeRewriter


@dataclass(frozen=True)
class ToANormalForm(TreePass):
    """Binds every operand that is no atom by `let`."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module in A-normal form, without temporaries."""
        return tree.mapped(lambda name, function: LetBound().function(function))


@dataclass(frozen=True)
class ToGraphNormalForm(TreePass):
    """Replaces `let` in pure code by nesting and graph bindings."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module without other names for atoms."""
        return tree.mapped(lambda name, function: TreeRewriter().function(function))

    def nest(self, tree: ModuleTree) -> ModuleTree:
        """The module in graph form."""
        polymorphic = {local for local, scheme in check(tree).locals.items() if not scheme.is_plain}
        return tree.mapped(lambda name, function: nested(function, True, polymorphic))


class LetBound(TreeRewriter):
    """Binds everything by `let`, temporaries under names of their own."""

    def bind(self, s: Statement, value: Expression, out: list[Statement]) -> None:
        if isinstance(s.local, Temporary):
            local = Local(s.local.name, span=s.local.span)
            self.replaced[s.local] = LocalVar(local, span=s.local.span)
            out.append(Let(local, value, span=s.span))
        elif isinstance(s, Let):
            out.append(s if value is s.value else replace(s, value=value))
        else:
            out.append(Let(s.local, value, span=s.span))
