"""The optimiser's pipeline: a tuple of passes, repeated until nothing changes, a bounded number of times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.node import Graph
from ..ir.prim import Primitive
from ..ir.rewrite import all_graphs
from ..ir.verify import TRANSFORMS, verify
from ..utils.debugging import debugging, report
from ..utils.patience import look
from ..utils.switches import is_left_out
from .kernels.computed_matrices import ComputedMatrices
from .kernels.integer_products import IntegerProducts
from .kernels.integer_words import IntegerWords
from .kernels.join_pads import JoinPads
from .kernels.packed_products import PackedProducts
from .kernels.row_blocks import BlockRows
from .kernels.soa_kernels import SoaKernels
from .kernels.triangular_products import TriangularProducts
from .loops.accumulate import Accumulate
from .loops.batch_products import BatchProducts
from .loops.dead_fills import EliminateDeadFills
from .loops.delay_updates import DelayUpdates
from .loops.exchanged_buffers import ExchangeBuffers
from .loops.induction import SubstituteInductionVariables
from .loops.invariants import HoistInvariants
from .loops.nested_updates import NestUpdates
from .loops.partial_sums import PartialSums
from .loops.preallocate_tapes import PreallocateTapes
from .loops.redundant_loops import EliminateRedundantLoops
from .loops.sum_products import SumProducts
from .loops.unroll_and_jam import UnrollAndJam
from .rewrite.check_elimination import EliminateChecks
from .rewrite.control import ThinControl
from .rewrite.if_conversion import ConvertBranches
from .rewrite.list_columns import ReadColumns
from .rewrite.lower_precision import LowerPrecision
from .rewrite.masked_updates import ChooseMasked
from .rewrite.quotients import ReadQuotients
from .rewrite.recursive_inlining import InlineRecursion
from .rewrite.recursive_sums import CarrySums
from .rewrite.simplify import Simplify
from .rewrite.sparse_updates import SparseUpdates
from .rewrite.tail_calls import LoopTailCalls
from .rewrite.unify_sizes import UnifySizes

Pass = Callable[[Graph], Graph]
ROUNDS = 8


@dataclass(frozen=True)
class Pipeline:
    """Passes in order, to a fixpoint.

    Attributes:
        passes: what runs in each round.
        rounds: at most so many.
        verify: whether the result of each pass is verified, by its name.
    """

    passes: tuple[Pass, ...]  # without those that the environment switches off, see `utils.switches`
    rounds: int = ROUNDS
    verify: bool = False

    def __call__(self, graph: Graph) -> Graph:
        kept: dict[Pass, Graph] = {}  # the last graph that a pass has seen and left unchanged
        passes = [p for p in self.passes if not is_left_out(getattr(p, "name", ""))]
        for _ in range(self.rounds):
            before = graph
            for step in passes:
                if kept.get(step) is graph:
                    continue
                look()
                after = step(graph)
                if after is graph:
                    kept[step] = graph
                else:
                    name = getattr(step, "name", str(step))
                    if self.verify:
                        verify(after, name)
                    report(name, after, step)
                graph = after
            if graph is before:
                break
        return graph


def has_transforms(graph: Graph) -> bool:
    """Whether anything is still to be differentiated or batched."""
    return any(isinstance(n.fn, Primitive) and n.fn.name in TRANSFORMS for g in all_graphs(graph) for n in g.nodes)


def optimize(graph: Graph, fastmath: bool = False, check: bool | None = None) -> Graph:
    """An equivalent graph that computes less.

    Args:
        graph: typed, closed; transforms in it are kept, and what they transform is optimised as well.
        fastmath: whether floats may be treated as reals.
        check: whether each pass is verified; by default the environment variable MYIA_RELAY_DEBUG says.
    """
    final = not has_transforms(graph)
    simplify = Simplify(fastmath=fastmath, final=final)
    passes = (simplify, UnifySizes(), LoopTailCalls(), ThinControl(), simplify, HoistInvariants())
    verified = debugging() if check is None else check
    graph = Pipeline((ReadColumns(),), rounds=1, verify=verified)(Pipeline(passes, verify=verified)(graph))
    if not final:
        graph = Pipeline((*passes, SubstituteInductionVariables()), verify=verified)(graph)
        # Before differentiation: the gradient of one product is two products, that of many a sum of as many.
        distributed = Pipeline((BatchProducts(),), rounds=1, verify=verified)(graph)
        return graph if distributed is graph else Pipeline(passes, verify=verified)(distributed)
    graph = Pipeline(passes, verify=verified)(graph)
    solved = Pipeline((SubstituteInductionVariables(),), rounds=1, verify=verified)(graph)
    if solved is not graph:
        graph = Pipeline(passes, verify=verified)(solved)
    proven = Pipeline((EliminateChecks(),), rounds=1, verify=verified)(graph)
    if proven is not graph:
        graph = Pipeline(passes, verify=verified)(proven)
    distributed = Pipeline((BatchProducts(),), rounds=1, verify=verified)(graph)
    if distributed is not graph:
        graph = Pipeline(passes, verify=verified)(distributed)
    subsumed = Pipeline((EliminateRedundantLoops(), simplify), verify=verified)(
        graph
    )  # what depends on one may then be equal to something else
    if subsumed is not graph:
        graph = Pipeline(passes, verify=verified)(subsumed)
    summed = Pipeline(
        (CarrySums(), SparseUpdates(), Accumulate(), PartialSums(), SumProducts(), NestUpdates()),
        rounds=1,
        verify=verified,
    )(graph)
    if summed is not graph:
        graph = Pipeline(passes, verify=verified)(summed)
    read = Pipeline((ReadQuotients(),), rounds=1, verify=verified)(graph)
    if read is not graph:
        graph = Pipeline(passes, verify=verified)(read)
    unfolded = Pipeline((InlineRecursion(),), rounds=1, verify=verified)(graph)
    if unfolded is not graph:
        graph = Pipeline((*passes, EliminateChecks(), *passes), rounds=1, verify=verified)(unfolded)
    return Pipeline((ConvertBranches(), simplify), rounds=1, verify=verified)(graph)


def lower_precision(graph: Graph, check: bool | None = None) -> Graph:
    """The graph with the operands of its products rounded to bfloat16, outside of loops where they do not change."""
    verified = debugging() if check is None else check
    rounded = Pipeline((LowerPrecision(),), rounds=1, verify=verified)(graph)
    if rounded is graph:
        return graph
    return Pipeline((Simplify(final=True), HoistInvariants()), verify=verified)(rounded)


def plan_memory(graph: Graph, check: bool | None = None, threads: int = 1, seen: bool = False) -> Graph:
    """An equivalent graph, for executors that change arrays in place.

    Cheap changes under a mask are choices, its tapes are arrays where their lengths are known, products of triangles are half the
    work, large sums over rows of data go block by block, matrices that one product with a vector reads are not stored, arrays that
    loops exchange stay where they are, its updates come after what reads the old values, and what loops overwrite is not filled
    before.

    Args:
        graph: optimised, without transforms.
        check: as in `optimize`.
        threads: that will run it.
        seen: whether every number that is computed is looked at (`debug_nans`), also those that nothing needs.
    """
    verified = debugging() if check is None else check
    simplify = Simplify(final=True)
    masks = () if seen else ((ChooseMasked(),),)
    for steps in (
        *masks,
        (PreallocateTapes(),),
        (TriangularProducts(), BlockRows(threads=threads)),
        (ExchangeBuffers(),),
    ):
        planned = Pipeline(steps, rounds=1, verify=verified)(graph)
        if planned is not graph:
            graph = Pipeline((simplify, ThinControl(), simplify, HoistInvariants()), verify=verified)(planned)
    last = (ComputedMatrices(), JoinPads(), EliminateDeadFills(), DelayUpdates())
    return Pipeline(last, rounds=1, verify=verified)(graph)


def plan_lanes(graph: Graph, check: bool | None = None, wide: bool = True) -> Graph:
    """An equivalent graph, for executors with vectors: what is computed in vector lanes gets primitives of its own.

    Args:
        graph: of `plan_memory`.
        check: as in `optimize`.
        wide: whether the vectors have 512 bits, which some of the kernels are for.
    """
    passes = (IntegerProducts(), IntegerWords(), UnrollAndJam(), SoaKernels(), *((PackedProducts(),) if wide else ()))
    return Pipeline(passes, rounds=1, verify=debugging() if check is None else check)(graph)
