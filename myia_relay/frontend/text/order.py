"""In which order the parts of a statement are evaluated."""

from __future__ import annotations

import ast

from .scope import COMPREHENSIONS
from .tree import children


def in_order(node: ast.AST) -> list[ast.AST]:
    """The parts of a node in the order in which Python evaluates them; of a statement with a block, not those of the block."""
    if isinstance(node, ast.Assign):
        return [node.value, *node.targets]
    if isinstance(node, ast.AnnAssign):
        return [part for part in (node.value, node.target) if part is not None]
    if isinstance(node, ast.IfExp):
        return [node.test, node.body, node.orelse]
    if isinstance(node, ast.comprehension):
        return [node.iter, node.target, *node.ifs]
    if isinstance(node, COMPREHENSIONS):
        return [*node.generators, *([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])]
    if isinstance(node, ast.If | ast.While):
        return [node.test]
    if isinstance(node, ast.For):
        return [node.iter]
    return children(node)


def evaluated_after(root: ast.AST, part: ast.AST) -> list[ast.AST]:
    """The parts of a statement or an expression that are evaluated after a part of it."""
    stack: list[tuple[ast.AST, tuple]] = [(root, ())]
    while stack:
        node, after = stack.pop()
        if node is part:
            out = []
            while after:
                out += after[0]
                after = after[1]
            return out
        parts = in_order(node)
        stack += [(inner, (parts[k + 1 :], after)) for k, inner in enumerate(parts)]
    return []
