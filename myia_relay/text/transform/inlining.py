"""Inlining of functions that are marked for it.

    def @f(%x, Inline=1) { e }    @f(a)   =>   e[%x := a]

Definitions and functions that a `let` binds are inlined where they are called, if they carry `Inline=1` and do not call
themselves, through whatever other functions. Arguments are atoms by then, so nothing is computed twice. Copies have binders of
their own. A polymorphic function leaves its annotations behind, as its type parameters mean nothing elsewhere.

The native pipeline inlines typed graphs by their size (`opt.rewrite`); here the program says what is inlined.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..binders import with_new_type_parameters
from ..tree import CallExpr, Expression, Function, GlobalVar, Local, LocalVar, ModuleTree, Statement
from .common.normal import all_operations, operands, recursive_functions
from .common.passes import TreePass
from .common.rewriting import Copier, TreeRewriter, is_marked


@dataclass(frozen=True)
class Inline(TreePass):
    """Puts functions with the attribute `Inline=1` in the place of their calls."""

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with marked functions inlined."""
        marked = {name for name, d in tree.definitions.items() if is_marked(d.function, "Inline")}
        inlining = _Definitions(tree, marked - recursive_definitions(tree))
        return tree.mapped(lambda name, function: inlining.definition(name))


def globals_in(function: Function) -> dict[str, None]:
    """The definitions that a function in A-normal form mentions, in order."""
    return {x.name: None for _, op in all_operations(function.body) for x in operands(op) if isinstance(x, GlobalVar)}


def recursive_definitions(tree: ModuleTree) -> set[str]:
    """The names of definitions that mention themselves, through whatever others."""
    return {
        name
        for group in groups(tree)
        for name in group
        if len(group) > 1 or name in globals_in(tree.definitions[name].function)
    }


def groups(tree: ModuleTree) -> list[list[str]]:
    """The definitions by strongly connected components of the call graph, callees first (R. Tarjan, SIAM J. Comput. 1972)."""
    edges = {name: [g for g in globals_in(d.function) if g in tree.definitions] for name, d in tree.definitions.items()}
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []
    for root in edges:
        if root in number:
            continue
        work = [(root, iter(edges[root]))]
        number[root] = low[root] = len(number)
        open_.append(root)
        while work:
            name, rest = work[-1]
            for other in rest:
                if other not in number:
                    number[other] = low[other] = len(number)
                    open_.append(other)
                    work.append((other, iter(edges[other])))
                    break
                if other in open_:
                    low[name] = min(low[name], number[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == number[name]:
                    at = open_.index(name)
                    found.append(open_[at:])
                    del open_[at:]
    return found


class _Definitions:
    """Definitions with calls inlined, each made once, callees before callers."""

    def __init__(self, tree: ModuleTree, marked: set[str]):
        self.tree, self.marked = tree, marked
        self.done: dict[str, Function] = {}

    def definition(self, name: str) -> Function:
        """A definition with the marked ones inlined in it."""
        if name not in self.done:
            function = self.tree.definitions[name].function
            self.done[name] = _Inlining(self, recursive_functions(function.body)).function(function)
        return self.done[name]


class _Inlining(TreeRewriter):
    def __init__(self, definitions: _Definitions, recursive: set[Local]):
        super().__init__()
        self.definitions, self.recursive = definitions, recursive
        self.local: dict[Local, Function] = {}

    def operation(self, op: Expression, local: Local | None, out: list[Statement]) -> Expression:
        if isinstance(op, Function):
            new = self.function(op)
            if local is not None and is_marked(op, "Inline") and local not in self.recursive:
                self.local[local] = new
            return new
        if isinstance(op, CallExpr):
            function = self.marked(op.callee)
            if function is not None and len(function.params) == len(op.args):
                return inlined(function, op.args)
        return self.with_inner(op)

    def marked(self, callee: Expression) -> Function | None:
        """The function to put in the place of a call."""
        if isinstance(callee, GlobalVar) and callee.name in self.definitions.marked:
            return self.definitions.definition(callee.name)
        return self.local.get(callee.local) if isinstance(callee, LocalVar) else None


def inlined(function: Function, args: tuple[Expression, ...]) -> Expression:
    """The block that stands for a call of a function with atoms as arguments."""
    values = {p.local: a for p, a in zip(function.params, args, strict=True)}
    return with_new_type_parameters(Copier(values, annotations=not function.type_params).block(function.body))
