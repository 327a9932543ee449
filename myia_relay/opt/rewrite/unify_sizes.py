"""One name for dimensions that are known to be equal, and none for those that are known.

    size_1 = bind_dim(n); size_2 = bind_dim(n)         =>   size_1 for both
    size_2 = bind_dim(dim_size(size_1 + 1))            =>   size_1 + 1 in its place
    size_1 = bind_dim(3)                               =>   3 in its place

An array that a function takes or returns has sizes of its own there. Once the call is inlined they are those of the caller, and
nothing needs to be copied, or checked at run time.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...abstract.dims import DimLike, symbols
from ...abstract.types import INT
from ...ir.node import Apply, Constant, Graph, Node, applies
from ...ir.rewrite import Env, Rewriter, lookup
from ...ir.sizes import Renaming, apply_renamed, is_binding


@dataclass(frozen=True)
class UnifySizes:
    """The pass."""

    name: str = "unify_sizes"

    def __call__(self, graph: Graph) -> Graph:
        return _Unify().rewrite(graph)


class _Unify(Rewriter):
    acts_on = ("bind_dim",)
    mark = UnifySizes

    def build(self, graph: Graph) -> Graph:
        sizes: dict[str, DimLike] = {}
        renaming = Renaming(sizes)
        bound: dict[Node, DimLike] = {}  # what is bound to a dimension
        gone: set[Node] = set()
        for node in graph.nodes:
            if not is_binding(node):
                continue
            (size,), (name,) = node.args, symbols(node.attrs["dim"])
            known = renaming.dim(size.attrs["dim"]) if applies(size, "dim_size", "bind_dim") else bound.get(size)
            if isinstance(size, Constant) and size.value >= 0:
                known = int(size.value)
            if known is None:
                bound[size] = node.attrs["dim"]
            else:
                sizes[name] = known
                gone.add(node)
        if not gone:
            return super().build(graph)
        self.changed = True
        new, env = self.interface(graph)
        for node in graph.nodes:
            env[node] = lookup(env, node.args[0]) if node in gone else self.renamed(new, env, node, renaming)
        new.output = lookup(env, graph.output)
        return new

    def renamed(self, new: Graph, env: Env, node: Apply, renaming: Renaming) -> Node:
        """An application with other names for dimensions."""
        attrs = {k: renaming.attribute(v) for k, v in self.inner(node).items()}
        if applies(node, "dim_size") and isinstance(attrs["dim"], int):
            return Constant(attrs["dim"], INT, node.origin)
        fn = self.rewrite(node.fn) if isinstance(node.fn, Graph) else node.fn
        args = tuple(lookup(env, a) for a in node.args)
        return apply_renamed(new, node, fn, args, attrs, renaming.type(node.type))
