"""The compiler's pipeline: which passes run, in which order, and what each executor makes of the result.

parsed graph --infer--> typed graph --optimize--> --expand (ad, vmap)--> --optimize--> executor
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .abstract.families import check_tree
from .abstract.structures import leaving
from .abstract.types import Array, Data, List, Ref, Struct, tuple_of
from .infer.arguments.arguments import python_value
from .infer.engine.program import Program
from .infer.values.treedef import TreeDef
from .ir.node import Graph, Parameter
from .ir.prim import REGISTRY, Primitive
from .utils.compiling import compiling
from .utils.debugging import debugging, report
from .utils.errors import GradError, LoweringError

REGION_LEAST = 2  # array operations of a region of the python executor from which compiling it pays
ENDLESS = ("value_and_grad", "jvp", "vjp", "jacobian", "vmap")
EXECUTORS = ("native", "python", "interpreter")
PRECISIONS = (None, "float32", "bfloat16")


def checked_options(executor: Any, target: Any, fastmath: bool, debug_nans: bool, precision: Any) -> dict[str, Any]:
    """The options of a decorator.

    Raises:
        ValueError: there is no such executor or precision.
    """
    if executor is not None and executor not in EXECUTORS:
        raise ValueError(f"executor={executor!r}: choose one of {', '.join(EXECUTORS)}")
    if precision not in PRECISIONS:
        raise ValueError(f'precision={precision!r}: choose "float32" or "bfloat16"')
    return {
        "executor": executor or "native",
        "target": target,
        "fastmath": fastmath,
        "debug_nans": debug_nans,
        "precision": precision,
    }


@dataclass
class Compiled:
    """A compiled program, ready to be called with leaf values.

    Attributes:
        program: what inference made, for the treedef of the result and the hidden arguments.
        run: `(*leaf values) -> value` of the optimised graph's output.
        graphs: the graph after each stage, by stage name.
        returned: for each leaf of the result: an index into what `run` returns, or the argument that is handed back.
        seconds: compile time by stage.
        numbers: leaf of the result that may be an argument -> where in what `run` returns is which, or a negative number.
        unread: the leaf values of which only types and sizes matter: nothing computes with them, and none of them is returned.
        arguments: the treedefs of the arguments, once there was a call.
        in_place: which lists of the caller's machine code writes: a `WrittenLists`, False where there are none; None if that is
            not known yet.
    """

    program: Program
    run: Callable
    graphs: dict[str, Graph]
    returned: list[tuple[str, int]]
    seconds: dict[str, float] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    unread: frozenset[int] = frozenset()
    arguments: Sequence[TreeDef] | None = None
    in_place: Any = None

    @property
    def plain(self) -> bool:
        """Whether `run` returns the leaves of the result and nothing else."""
        return not self.numbers and all(kind == "out" and k == i for k, (kind, i) in enumerate(self.returned))

    def results(self, values: Sequence, out: Any) -> list:
        """The leaves of the result.

        Args:
            values: all arguments of the program.
            out: what `run` has returned for them.
        """
        if len(self.returned) == 1 and not self.numbers:
            ((kind, index),) = self.returned
            return [values[index] if kind == "arg" else out]
        leaves = [values[i] if kind == "arg" else out[i] for kind, i in self.returned]
        for leaf, place in self.numbers.items():
            if (number := out[place]) >= 0:
                leaves[leaf] = values[number]
        return leaves

    @property
    def repeatable(self) -> bool:
        """Whether a call that failed may be made again: it has written and printed nothing."""
        from .ir.rewrite import Effects

        if "final" not in self.graphs:  # it is from a file
            return getattr(self.run, "repeatable", False)
        return Effects().of_graph(self.graphs["final"]) <= {"raise", "read", "mark"}


@compiling()
def compile_program(program: Program, executor: str, options: dict[str, Any], keep: bool = False) -> Compiled:
    """Take an inferred program to an executor; one that is `marked` for the debugger as it is, without optimisation.

    Args:
        program: the inferred program.
        executor: one of `EXECUTORS`.
        options: of the decorator: target, fastmath, debug_nans, precision.
        keep: keep a copy of the graph after every stage (for `f.ir`).

    Raises:
        GradError, LoweringError: at the user's place.
    """
    from .ad.expand import expand
    from .backend.native.library import wanted_threads
    from .ir.verify import verify
    from .opt.pipeline import lower_precision, optimize, plan_memory
    from .opt.rewrite.call_paths import tell_callers
    from .opt.rewrite.returned_arguments import returned_arguments

    graphs: dict[str, Graph] = {}
    seconds: dict[str, float] = {}
    graph = program.graph

    def stage(name: str, pass_: Callable[[Graph], Graph]) -> None:
        nonlocal graph
        start = time.perf_counter()
        graph = pass_(graph)
        seconds[name] = time.perf_counter() - start
        if debugging():
            verify(graph, name)
        report(name, graph)
        if keep:
            graphs[name] = graph

    report("inferred", graph)
    if options.get("marked"):
        refuse_recursion(graph)
        graph, returned = without_references(tell_callers(expand(graph)))
        return Compiled(program, executor_of(graph, executor, options), {"final": graph}, returned)
    if keep:
        graphs["inferred"] = graph
    own = options.get("own_results", False)
    found = None if own else returned_arguments(graph, program.arrays, program.final_arrays())
    graph = graph if found is None else found.graph
    # Passes rebuild, they never change a graph in place, so every stage can be kept.
    stage("simplified", optimize)
    refuse_recursion(graph)
    before, fastmath = graph, options.get("fastmath", False)
    stage("differentiated", expand)

    def optimized(g: Graph) -> Graph:
        if g is not before or fastmath:  # if nothing was differentiated, there is nothing new to optimise
            g = optimize(g, fastmath=fastmath)
        if options.get("precision") == "bfloat16":
            g = lower_precision(g)
        if executor != "native":
            return g
        threads = 1 if options.get("standalone") else wanted_threads()
        return plan_memory(g, threads=threads, seen=bool(options.get("debug_nans")))

    stage("optimized", optimized)
    if options.get("debug_nans"):
        from .opt.rewrite.nan_checks import check_nans

        graph = check_nans(graph, details=not options.get("standalone"))
    graph, returned = without_references(tell_callers(graph))
    numbers: dict[int, int] = {}
    if found is not None:
        numbers = {leaf: returned[place][1] for leaf, place in found.numbers.items()}
        returned = [returned[k] if kind == "out" else (kind, k) for kind, k in found.places]
    start = time.perf_counter()
    run = executor_of(graph, executor, options)
    seconds["lowered"] = time.perf_counter() - start
    graphs["final"] = graph
    if program.changes:
        refuse_effects(program, graph)
    return Compiled(program, run, graphs, returned, seconds, numbers, _unread(graph, returned))


def _unread(graph: Graph, returned: list[tuple[str, int]]) -> frozenset[int]:
    """The parameters of a program that nothing uses."""
    used = {graph.output, *(a for node in graph.nodes for a in node.args)}
    handed_back = {index for kind, index in returned if kind == "arg"}
    return frozenset(k for k, p in enumerate(graph.params) if p not in used) - handed_back


def compress(graph: Graph, seeds: int, forward: bool) -> Any:
    """How the Jacobian of a linear graph in a request is compressed: an `ad.jacobian.jacobian.Compression`.

    Raises:
        GradError: which of its entries may be other than zero cannot be found.
    """
    from .ad.expand import expand
    from .ad.jacobian.jacobian import compression
    from .ad.jacobian.sparsity import NoPattern
    from .opt.pipeline import optimize

    try:
        return compression(expand(optimize(graph)), seeds, forward)
    except NoPattern as reason:
        raise GradError(
            f"which entries of the Jacobian are zero cannot be told: {reason}; leave out sparse=True"
        ) from None


def finish(compiled: Compiled, leaves: list):
    """Call a compiled program and rebuild its result."""
    program = compiled.program
    values = leaves
    for hidden in program.hidden:
        values = [*values, hidden.fetch(values)]
    return assembled(compiled, values, compiled.run(*values))


def assembled(compiled: Compiled, values: list, out: Any) -> Any:
    """The result of a program from what its graph computes, given all its arguments."""
    return python_value(compiled.program.result, iter(compiled.results(values, out)))


def finisher(compiled: Compiled) -> Callable[[list], Any] | None:
    """`finish` for one program, with what is known in advance generated as code: `(leaves) -> result`.

    None where the program changes its arguments, which takes more than the leaves.
    """
    if compiled.program.changes:
        return None
    run = getattr(compiled.run, "call", compiled.run)
    result, plain = compiled.program.result, not compiled.program.hidden
    if plain and not compiled.plain:  # arguments are returned, or one thing twice
        outputs = compiled.run

        def run(*leaves):
            found = compiled.results(leaves, outputs(*leaves))
            return found if len(found) > 1 else found[0]

    if plain:
        if result.tag == "dyn":
            info = result.info
            return (
                (lambda leaves: leaving(run(*leaves), info)) if isinstance(info, List) else lambda leaves: run(*leaves)
            )
        plain = all(p.tag == "dyn" and not isinstance(p.info, List) for p in result.parts)
        if result.tag == "seq" and not isinstance(result.info, List) and plain and len(result.parts) > 1:
            kind, fields, _ = result.info
            if kind == "tuple":
                return (lambda leaves: run(*leaves)) if compiled.plain else lambda leaves: tuple(run(*leaves))
            if kind == "dict":
                return lambda leaves: dict(zip(fields, run(*leaves)))
    return lambda leaves: finish(compiled, leaves)


def refuse_effects(program: Program, graph: Graph) -> None:
    """Refuse a program that changes its arguments, has other effects, and may raise: it could not begin again after an exception.

    Raises:
        LoweringError: it is one.
    """
    from .ir.rewrite import Effects

    effects = Effects().of_graph(graph)
    others = [what for effect, what in (("io", "prints"), ("write", "changes a model")) if effect in effects]
    if others and "raise" in effects:
        change = program.changes[0]
        raise LoweringError(
            f"'{change.name}' is changed in place here, and belongs to the caller, who has to see what changed before an "
            f"exception; but the function may raise, and also {others[0]}, which cannot be done twice: change a copy and return it",
            change.origin,
        )


def refuse_recursion(graph: Graph) -> None:
    """Refuse what has no finite expansion: a function that differentiates or batches itself.

    Raises:
        GradError, LoweringError: at the place of the transform.
    """
    from .ir.rewrite import all_graphs, inner_graphs, mark_recursion

    recursive = mark_recursion(graph)
    for around in (g for g in all_graphs(graph) if g in recursive):
        for node in (n for n in around.nodes if isinstance(n.fn, Primitive) and n.fn.name in ENDLESS):
            for inner in (h for g in inner_graphs(node) for h in all_graphs(g)):
                if recursive.get(inner) == recursive[around]:
                    kind, what = (LoweringError, "batches") if node.fn.name == "vmap" else (GradError, "differentiates")
                    name = inner.name.split(".")[0]
                    raise kind(
                        f"{name} {what} itself, so there is no bound on the number of transforms; call it with a depth that is "
                        "known at compile time (static=...), or write the outer levels as functions of their own",
                        node.origin,
                    )


def executor_of(graph: Graph, executor: str, options: dict[str, Any]) -> Callable:
    """The callable that an executor makes of an optimised graph."""
    if executor == "interpreter":
        from .backend.interpreter import in_native_order, run

        return with_checked_trees(
            graph, in_whole_steps(graph, lambda *values: own_arrays(run(graph, [in_native_order(v) for v in values])))
        )
    if executor == "python":
        from .backend.python import compile_python

        compiled = compile_python(graph, functools.partial(compile_region, options=options))
        run_python = functools.wraps(compiled, updated=("__dict__",))(lambda *values: own_arrays(compiled(*values)))
        return with_checked_trees(graph, in_whole_steps(graph, run_python))
    return native_compiler()(graph, options=options)


def own_arrays(out: Any) -> Any:
    """What a program of a Python executor returns, in memory of its own: NumPy may have returned an argument, a constant of the
    program or a view of one, and what the caller does to a result must not change these.
    """
    if isinstance(out, np.ndarray):
        return out.copy()
    if isinstance(out, tuple | list):
        return type(out)(map(own_arrays, out))
    return out


def native_compiler() -> Callable:
    """What makes native code.

    Raises:
        LoweringError: this system has none.
    """
    try:
        from .backend.tvm.program import compile_program as compile_native
    except (ImportError, OSError) as error:
        raise LoweringError(
            f"native code needs the compiler TVM (apache-tvm 0.27), which does not load here: {error}; "
            "executor='interpreter' and executor='python' do without it"
        ) from None
    return compile_native


def with_checked_trees(graph: Graph, run: Callable) -> Callable:
    """A program of a Python executor that first checks its trees against their annotations, as native code does."""
    trees = [(k, p.type) for k, p in enumerate(graph.params) if isinstance(p.type, Data)]
    if not trees:
        return run

    @functools.wraps(run, updated=("__dict__",))
    def checked(*values):
        for k, t in trees:
            check_tree(values[k], t)
        return run(*values)

    return checked


def in_whole_steps(graph: Graph, run: Callable) -> Callable:
    """A program of a Python executor in which Ctrl-C never takes effect between the writes of one step."""
    from .ir.rewrite import Effects
    from .utils.interrupts import whole_steps

    if "write" not in Effects().of_graph(graph):
        return run

    @functools.wraps(run, updated=("__dict__",))
    def guarded(*values):
        with whole_steps():
            return run(*values)

    return guarded


def compile_region(graph: Graph, options: dict[str, Any]) -> Callable:
    """A straight-line group of array operations as a native function; a single one is left to NumPy, which is as fast."""
    from .backend.interpreter import run

    if sum(isinstance(node.type, Array) for node in graph.nodes) < REGION_LEAST:
        return lambda *values: run(graph, values)
    try:
        compile_native = native_compiler()
    except LoweringError:  # without TVM all of it is left to NumPy
        return lambda *values: run(graph, values)
    native = compile_native(graph, options=options).call
    # A variable that is not bound on this path is None; the region selects another value, and NumPy accepts None.
    return lambda *values: run(graph, values) if any(v is None for v in values) else native(*values)


def without_references(graph: Graph) -> tuple[Graph, list[tuple[str, int]]]:
    """Remove references from the result: a program returns the very model that it was given.

    Returns:
        The graph without them, and for each leaf of the old result where it comes from: ("out", position) or ("arg", index).

    Raises:
        LoweringError: a model in the result was chosen at run time.
    """
    output = graph.output
    single = not isinstance(output.type, Struct)
    if single:
        leaves = [output]
    elif getattr(output, "fn", None) is REGISTRY["make_struct"]:
        leaves = list(output.args)
    else:
        leaves = None
    if leaves is None:
        if any(isinstance(t, Ref) for t in output.type.elems):
            raise LoweringError("a model chosen at run time cannot be returned from compiled code", output.origin)
        return graph, [("out", i) for i in range(len(output.type.elems))]
    if not any(isinstance(leaf.type, Ref) for leaf in leaves):
        return graph, [("out", i) for i in range(len(leaves))]
    returned: list[tuple[str, int]] = []
    kept = []
    for leaf in leaves:
        if isinstance(leaf.type, Ref):
            if not isinstance(leaf, Parameter):
                raise LoweringError("a model chosen at run time cannot be returned from compiled code", leaf.origin)
            returned.append(("arg", graph.params.index(leaf)))
        else:
            returned.append(("out", len(kept)))
            kept.append(leaf)
    if not single:
        graph.nodes.remove(output)
    from .ir.build import Builder

    make = REGISTRY["make_struct"]
    builder = Builder(graph, graph.origin)
    graph.output = builder.emit(make, tuple(kept), {"type": tuple_of(*[k.type for k in kept])})
    return graph, returned
