"""Operator fusion by post-dominators.

    %0 = exp(%x); %1 = %0 + 1f; tanh(%1) * %1
    =>  %0 = fn (%p0, Primitive=1) { %1 = exp(%p0) + 1f; tanh(%1) * %1 }; %0(%x)

Relay's algorithm (2019 paper, section 4.1): in the dataflow graph of a block, an operator whose results all flow to one
operator, its immediate post-dominator, is fused into it if every operator on the way allows it. That takes diamonds whole.
The patterns of operators (`patterns.py`) say what may be fused: elementwise and broadcasting operators into injective ones
and reductions; after a heavy operator elementwise and broadcasting ones; nothing after a reduction; and no two heavy
operators. Every operator is in one group in the end, and each group is a function marked `Primitive=1`.

The native pipeline decides on typed graphs which values never reach memory (`opt.analysis.fusion`), by cost and with
recomputation; its groups are loop nests, not functions, and ignore where a text draws the borders. This pass shows Relay's
groups, for people and for back ends that take them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..check.module import check
from ..tree import (
    CallExpr,
    Expression,
    Function,
    GraphBinding,
    Let,
    Literal,
    Local,
    LocalVar,
    ModuleTree,
    OperatorName,
    Param,
    Projection,
    Statement,
    TupleExpr,
    body,
)
from .common.normal import (
    Temporary,
    all_operations,
    is_atom,
    operands,
    operations,
    scopes,
    statements,
    with_operands,
    with_scopes,
)
from .common.passes import TreePass
from .common.patterns import OperatorPattern, Patterns
from .common.rewriting import is_marked, operator_of
from .common.types_known import Types


@dataclass(frozen=True)
class FuseOps(TreePass):
    """Groups operators into functions marked `Primitive=1`.

    Attributes:
        max_fuse_depth: how many operators a group holds at most.
    """

    max_fuse_depth: int = 256

    def on_tree(self, tree: ModuleTree) -> ModuleTree:
        """The module with operators in groups."""
        types = Types(check(tree))
        fusion = _Fusion(types, Patterns(types), self.max_fuse_depth)
        return tree.mapped(lambda name, function: fusion.function(function))


@dataclass(eq=False)
class DataflowNode:
    """An operation of a block.

    Attributes:
        index: its position.
        op: the operation.
        local: what it is bound to.
        pattern: its own.
        grouped: whether it is an operator whose types are known, as far as they ever are.
        users: who uses its result, with the pattern of that use.
        escapes: whether its result is the block's.
        group: the group that it was merged into; itself for a group of its own.
        size: how many operators are in the group.
        kind: the pattern of the group.
        anchored: whether the group has a heavy operator.
    """

    index: int
    op: Expression
    local: Local | None
    pattern: OperatorPattern
    grouped: bool
    users: list[tuple[DataflowNode, OperatorPattern]] = field(default_factory=list)
    escapes: bool = False
    group: DataflowNode | None = None
    size: int = 1
    kind: OperatorPattern = OperatorPattern.OPAQUE
    anchored: bool = False

    @property
    def root(self) -> DataflowNode:
        """The group that it belongs to."""
        node = self
        while node.group is not None:
            node = node.group
        if node is not self:
            self.group = node
        return node


@dataclass(eq=False)
class Dominator:
    """A place in the post-dominator tree.

    Attributes:
        parent: the node through which all results of this one flow; None if there is none.
        depth: how far from the end.
        pattern: of the uses on the way.
    """

    parent: DataflowNode | None
    depth: int
    pattern: OperatorPattern


class _Fusion:
    def __init__(self, types: Types, patterns: Patterns, limit: int):
        self.types, self.patterns, self.limit = types, patterns, limit

    def function(self, function: Function) -> Function:
        if is_marked(function, "Primitive"):
            return function
        return Function(
            function.params,
            self.block(function.body),
            function.result,
            function.type_params,
            function.attributes,
            function.relations,
            span=function.span,
        )

    def block(self, block: Expression) -> Expression:
        """A block with its operators in groups."""
        nodes = self.dataflow(block)
        dominators = _post_dominators(nodes)
        for phase in (0, 1, 2):
            for node in nodes:
                self.fuse(node, dominators[node.index], phase)
        members: dict[DataflowNode, list[DataflowNode]] = {}
        for node in nodes:
            members.setdefault(node.root, []).append(node)
        out: list[Statement] = []
        last: Expression | None = None
        sources = statements(block)
        for node in nodes:
            if node.root is not node:
                continue
            if any(n.grouped for n in members[node]):
                value = self.call(members[node], out)
            else:
                inner = scopes(node.op)
                value = self.function(node.op) if isinstance(node.op, Function) else node.op
                if inner and not isinstance(node.op, Function):
                    value = with_scopes(node.op, tuple(map(self.block, inner)))
            if node.local is None:
                last = value
            else:
                s = sources[node.index]
                out.append(
                    Let(s.local, value, s.annotation, span=s.span)
                    if isinstance(s, Let)
                    else GraphBinding(s.local, value, span=s.span)
                )
        assert last is not None
        return body(out, last, block.span)

    # ------------------------------------------------------------ groups

    def dataflow(self, block: Expression) -> list[DataflowNode]:
        """The operations of a block, with the uses of their results."""
        nodes: list[DataflowNode] = []
        made: dict[Local, DataflowNode] = {}
        for index, (local, op) in enumerate(operations(block)):
            pattern = OperatorPattern.OPAQUE
            known = operator_of(op) is not None and not any(map(self.types.is_open, (op, *operands(op))))
            if isinstance(op, CallExpr) and known:
                pattern = self.patterns.of(op)
            elif isinstance(op, TupleExpr) and op.fields:
                pattern = OperatorPattern.INJECTIVE
            elif isinstance(op, Projection) and isinstance(op.tuple, LocalVar):
                source = made.get(op.tuple.local)
                if source is not None and operator_of(source.op) is not None:
                    pattern = OperatorPattern.ELEMENTWISE
            node = DataflowNode(
                index, op, local, pattern, known, kind=pattern, anchored=pattern is OperatorPattern.OUT_FUSABLE
            )
            nodes.append(node)
            for x in operands(op):
                if isinstance(x, LocalVar) and x.local in made:
                    use = pattern
                    if pattern is OperatorPattern.BROADCAST and self.types.shape(x) == self.types.shape(op):
                        use = OperatorPattern.ELEMENTWISE
                    made[x.local].users.append((node, use))
            for scope in scopes(op):
                for _, inner in all_operations(scope):
                    for x in operands(inner):
                        if isinstance(x, LocalVar) and x.local in made:
                            made[x.local].users.append((node, OperatorPattern.OPAQUE))
            if local is not None:
                made[local] = node
        last = nodes[-1]
        last.escapes = True
        if is_atom(last.op) and isinstance(last.op, LocalVar) and last.op.local in made:
            made[last.op.local].escapes = True
        return nodes

    def fuse(self, node: DataflowNode, dominator: Dominator, phase: int) -> None:
        """Merge a node into its post-dominator, if the patterns allow it."""
        sink = dominator.parent
        group = node.root
        if (
            sink is None
            or sink.root is group
            or group.kind is OperatorPattern.OPAQUE
            or sink.root.kind is OperatorPattern.OPAQUE
        ):
            return
        allowed: Callable[[OperatorPattern, bool], bool]
        if isinstance(sink.op, TupleExpr) or phase == 2:
            # A tuple is no kernel: it is made within one, once that has been found.
            if (
                phase != 2
                or not isinstance(sink.op, TupleExpr)
                or sink.root is sink
                or group.kind > OperatorPattern.INJECTIVE
            ):
                return
            allowed = _up_to_injective
        elif group.kind is OperatorPattern.OUT_FUSABLE:
            if phase != 0 or dominator.pattern > OperatorPattern.BROADCAST:
                return
            allowed = _up_to_broadcast
        elif group.kind <= OperatorPattern.BROADCAST:
            if dominator.pattern > OperatorPattern.REDUCTION:
                return
            allowed = _into_anything
        elif group.kind is OperatorPattern.INJECTIVE:
            if phase != 1 or dominator.pattern > OperatorPattern.INJECTIVE:
                return
            allowed = _up_to_injective
        else:
            return
        between = self.between(node, sink, allowed)
        if between is None:
            return
        groups = dict.fromkeys(n.root for n in [node, *between])
        if (
            sum(g.size for g in groups) + sink.root.size > self.limit
            or sum(g.anchored for g in [*groups, sink.root]) > 1
        ):
            return
        target = sink.root
        for g in groups:
            if g is not target:
                g.group = target
                target.size += g.size
                target.anchored |= g.anchored
                target.kind = OperatorPattern.OUT_FUSABLE if target.anchored else max(target.kind, g.kind)

    def between(
        self, source: DataflowNode, sink: DataflowNode, allowed: Callable[[OperatorPattern, bool], bool]
    ) -> list[DataflowNode] | None:
        """The nodes on the ways from one node to another; None if one of them does not allow fusion."""
        found: dict[DataflowNode, None] = {}
        stack = [user for user, _ in source.users]
        while stack:
            node = stack.pop()
            if node in found or node is sink:
                continue
            if not allowed(node.root.kind, False) or len(found) > self.limit:
                return None
            found[node] = None
            stack.extend(user for user, _ in node.users)
        return list(found) if allowed(sink.root.kind, True) else None

    def call(self, group: list[DataflowNode], out: list[Statement]) -> Expression:
        """The call of a group; its function goes to `out`."""
        inside = {n.local for n in group if n.local is not None}
        last = group[-1]
        params: dict[Local, Param] = {}
        args: list[Expression] = []
        made: list[Statement] = []
        names: dict[Local, Local] = {}
        results: Expression | None = None
        for node in group:
            atoms = []
            for x in operands(node.op):
                if isinstance(x, LocalVar):
                    if x.local in inside:
                        x = LocalVar(names[x.local], span=x.span)
                    else:
                        if x.local not in params:
                            local = Local(f"p{len(params)}")
                            params[x.local] = Param(local, self.types.annotation(self.types.of(x)))
                            args.append(x)
                        x = LocalVar(params[x.local].local, span=x.span)
                elif not isinstance(x, Literal | OperatorName) and not (isinstance(x, TupleExpr) and not x.fields):
                    local = Local(f"p{len(args)}")
                    params[local] = Param(local, self.types.annotation(self.types.of(x)))
                    args.append(x)
                    x = LocalVar(local)
                atoms.append(x)
            op = with_operands(node.op, tuple(atoms))
            if node is last:
                results = op
            else:
                assert node.local is not None
                names[node.local] = Temporary("t", span=node.op.span)
                made.append(Let(names[node.local], op, span=node.op.span))
        assert results is not None
        function = Function(
            tuple(params.values()),
            body(made, results),
            self.types.annotation(self.types.of(last.op)),
            attributes=(("Primitive", 1),),
            span=last.op.span,
        )
        local = Local("0", span=last.op.span)
        out.append(GraphBinding(local, function, span=last.op.span))
        return CallExpr(LocalVar(local), tuple(args), span=last.op.span)


def _up_to_broadcast(kind: OperatorPattern, sink: bool) -> bool:
    return kind <= OperatorPattern.BROADCAST


def _up_to_injective(kind: OperatorPattern, sink: bool) -> bool:
    return kind <= OperatorPattern.INJECTIVE


def _into_anything(kind: OperatorPattern, sink: bool) -> bool:
    return kind <= (OperatorPattern.OUT_FUSABLE if sink else OperatorPattern.INJECTIVE)


def _post_dominators(nodes: list[DataflowNode]) -> list[Dominator]:
    """The post-dominator tree, from the last node to the first (K. Cooper et al., "A simple, fast dominance algorithm", 2001)."""
    found: dict[DataflowNode, Dominator] = {}
    for node in reversed(nodes):
        if node.escapes or not node.users:
            found[node] = Dominator(None, 1, OperatorPattern.OPAQUE)
            continue
        common: DataflowNode | None = None
        pattern = OperatorPattern.ELEMENTWISE
        for n, (user, use) in enumerate(node.users):
            pattern = max(pattern, use)
            if n == 0:
                common = user
                continue
            a, b = common, user
            while a is not b and a is not None and b is not None:
                if found[a].depth < found[b].depth:
                    pattern = max(pattern, found[b].pattern)
                    b = found[b].parent
                else:
                    pattern = max(pattern, found[a].pattern)
                    a = found[a].parent
            common = a if a is b else None
        depth = found[common].depth + 1 if common is not None else 1
        found[node] = Dominator(common, depth, pattern)
    return [found[node] for node in nodes]
