"""What the lowering knows of one graph while it walks through it: values of nodes, and kernels that are held back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ....abstract.dims import DimLike
from ....abstract.types import Ref
from ....ir.node import Apply, Graph, Node
from ....opt.analysis.fusion import Fusion, fuse
from ..kernels import opaque
from ..kernels.updates import find as find_updates
from ..plan import Storage, View
from . import control, inplace


@dataclass(eq=False)
class RefValue:
    """A reference: the memory of its arrays."""

    views: list[View]
    type: Ref


@dataclass(eq=False)
class Pending:
    """An elementwise kernel that has not been emitted yet.

    Attributes:
        shape: of its loops.
        targets: node -> where it goes, possibly to several places.
        leaves: memory it reads -> whether only ever at the index that is written.
    """

    shape: tuple[DimLike, ...]
    targets: dict[Apply, list[View]] = field(default_factory=dict)
    leaves: dict[Node, bool] = field(default_factory=dict)
    count: int = 0

    def writes(self, storage: Storage) -> bool:
        return any(v.storage is storage for views in self.targets.values() for v in views)


class GraphScope:
    """One graph being lowered: its values and what is known of its nodes."""

    def __init__(self, graph: Graph, values: list[Any]):
        self.graph = graph
        self.env = inplace.Env()
        for param, value in zip(graph.params, values, strict=True):
            self.env[param] = value
        self.given: set[Node] = set()  # parameters whose memory is this graph's to overwrite; see `inplace`
        self.last_uses: dict[Node, int] = {}
        self.fusion: Fusion = fuse(graph, opaque.takes_epilogue, opaque.takes_part)
        self.position = {node: i for i, node in enumerate(graph.nodes)}
        self.dest: dict[Node, View] = {}
        self.loop_dest: dict[tuple[Node, int], View] = {}  # where what a loop carries is wanted
        self.joined: dict[Node, control.Joined] = {}
        self.rows: dict[Node, View] = {}  # updates whose value is computed where it goes
        self.pending: list[Pending] = []
        self.caller: Apply | None = None  # the application in the scope around it that this graph belongs to
        self.ref_writes: list[Any] | None = None  # see `effects`
        self.done: set[Node] = set()  # lowered ahead of their iteration
        self.updates = find_updates(self)
        self.references: Any = None  # to lists; see `references`
        self.tests = control.tests_of(graph)
        self.tape_runs: dict[Node, Any] = {}  # see `tapes`
