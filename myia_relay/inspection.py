"""Looking inside a decorated function: its graphs, its code, what compiling and running it costs.

`Inspectable` is what `api.Relay` inherits; docs/looking-inside.md shows all of it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from .decorated import at_boundary, parameter_annotations, source_function
from .pipeline import assembled, finisher
from .utils.debugging import observed
from .utils.errors import SliceBeyond, ValueError_
from .utils.pickling import copied

if TYPE_CHECKING:
    from .cache.cutting import SliceCuts
    from .debug.explanation import Explanation
    from .debug.profile import Profile
    from .debug.session import MarkedRun, Session
    from .debug.show import GraphView
    from .ir.node import Graph
    from .pipeline import Compiled
    from .utils.source import Origin

STAGES = ("parsed", "inferred", "simplified", "differentiated", "optimized", "lowered")


class Inspectable:
    """The methods that look inside of a function."""

    options: dict[str, Any]
    static: Any
    _cuts: SliceCuts
    __relay_function__: Any
    __wrapped__: Any

    def _signature(self, args: Any, kwargs: Any, leaves: list) -> tuple[Any, Any, Any]:
        raise NotImplementedError

    def _compile(self, treedefs: Any, keywords: Any, keep: bool = False, *, executor: str = "") -> Compiled:
        raise NotImplementedError

    def _compiled(self, args: tuple, kwargs: dict) -> tuple[Compiled, list]:
        raise NotImplementedError

    def _place(self) -> Origin | None:
        raise NotImplementedError

    def cache_info(self) -> tuple[int, int, int]:
        """Hits, misses, programs held."""
        raise NotImplementedError

    def _forget(self) -> None:
        raise NotImplementedError

    @at_boundary
    def ir(self, *args, stage: str = "optimized", **kwargs) -> GraphView:
        """The program for these arguments after a stage, as an object that prints as text and shows as a picture in a notebook.

        Args:
            *args, **kwargs: as in a call.
            stage: "parsed", "inferred", "simplified" (before gradients are made), "differentiated", "optimized", or "lowered":
                what executors get.

        Raises:
            ValueError_: there is no such stage.
            CompileError: the program cannot be compiled.
        """
        from .debug.show import GraphView

        if stage not in STAGES:
            raise ValueError_(f"stage={stage!r}: choose one of {', '.join(STAGES)}")
        if stage == "parsed":
            return GraphView(self._parsed())
        _, treedefs, keywords = self._signature(args, kwargs, [])
        compiled = self._compile_for_view(treedefs, keywords)
        return GraphView(compiled.graphs["final" if stage == "lowered" else stage])

    def _parsed(self) -> Graph:
        """The parsed graph of the function."""
        from .frontend import parse

        return parse(source_function(self.__relay_function__))

    def _compile_for_view(self, treedefs, keywords) -> Compiled:
        return self._compile(treedefs, keywords, keep=True, executor="interpreter")

    @at_boundary
    def source(self, *args, **kwargs) -> str:
        """Runnable Python source of the optimised program for these arguments."""
        from .backend.python import to_source

        _, treedefs, keywords = self._signature(args, kwargs, [])
        return to_source(self._compile_for_view(treedefs, keywords).graphs["final"])

    @at_boundary
    def explain(self, *args, **kwargs) -> Explanation:
        """What compiling for these arguments does, and what the native program costs; prints as text.

        Which arguments are structure and which are data, and why; passes with times and sizes of the graph, kernels with their
        operations and bytes, the memory plan, source lines with their share of the work. The function is compiled anew for it.

        Raises:
            CompileError: the program cannot be compiled.
        """
        from .debug.arguments import argument_rows
        from .debug.explanation import Passes, explanation

        passes = Passes()
        with observed(passes):
            compiled, values = self._anew(inspect=True)._compiled(args, kwargs)
        given, treedefs = [*args, *kwargs.values()], compiled.arguments or ()
        rows: list[list[str]] = []
        if len(treedefs) == len(given):
            known = parameter_annotations(self.__relay_function__)[0][: len(args)]
            names = [*known, *(f"argument {k}" for k in range(len(known), len(args))), *kwargs]
            rows = argument_rows(names, treedefs, given, compiled.unread, self.static)
        return explanation(
            getattr(self, "__name__", "f"), compiled.run, compiled.seconds, passes, self._given(compiled, values), rows
        )

    @at_boundary
    def profile(self, *args, **kwargs) -> Profile:
        """Run the native program for these arguments, and say which source lines and kernels its time goes to.

        The program is compiled anew, with a reading of the processor's clock at each kernel. It runs for a fraction of a
        second, but once only if it prints. Models among the arguments are left as they were.

        Raises:
            CompileError: the program cannot be compiled.
        """
        timed = self._anew(profile=True)
        try:
            return self._measured(timed, args, kwargs)
        except SliceBeyond as beyond:
            return self._cuts.cut_off(timed, args, kwargs, beyond, lambda a, k: self._measured(timed, a, k))

    @at_boundary
    def debug(self, *args, **kwargs) -> Session:
        """A session that runs the program for these arguments line by line, and the backward pass of a gradient too.

        `f.debug(*args).interact()` debugs in the terminal, with the commands of `pdb`. See docs/debugging.md.

        Returns:
            A `debug.session.Session`, which stands before the first line.

        Raises:
            CompileError: the program cannot be compiled.
        """
        from .debug.session import Session

        marked: dict[bool, Any] = {}

        def begin(library: bool) -> MarkedRun:
            if library not in marked:
                marked[library] = self._anew(marked="library" if library else True, executor="interpreter")
            return self._run_of(marked[library], args, kwargs)

        return Session(getattr(self, "__name__", "f"), begin)

    def _run_of(self, marked: Any, args: tuple, kwargs: dict) -> MarkedRun:
        """A program that is suspended at marks, with copies of the arguments."""
        from .abstract.families import Misfit, check_tree
        from .abstract.types import Data, Ref
        from .backend.interpreter import in_native_order
        from .debug.session import MarkedRun
        from .debug.suspended import suspended

        compiled, leaves = marked._compiled(args, kwargs)
        graph = compiled.graphs["final"]
        try:
            for value, param in zip(leaves, graph.params, strict=False):
                if isinstance(param.type, Data):
                    check_tree(value, param.type)
        except Misfit as misfit:
            compiled, leaves = marked._of_structure(args, kwargs, misfit)
            graph = compiled.graphs["final"]
        given = self._given(compiled, leaves)
        models = copied(v for v, p in zip(given, graph.params) if isinstance(p.type, Ref))
        left = iter(models)
        own = [next(left) if isinstance(p.type, Ref) else in_native_order(v) for v, p in zip(given, graph.params)]

        def retry(beyond: SliceBeyond) -> MarkedRun:
            return marked._cuts.cut_off(marked, args, kwargs, beyond, lambda a, k: self._run_of(marked, a, k))

        def result(out: Any) -> Any:
            value = assembled(compiled, given, out)
            return value[0] if compiled.program.written else value

        return MarkedRun(suspended(graph, own), result, retry)

    def _measured(self, timed: Any, args: tuple, kwargs: dict) -> Profile:
        from .debug.profile import measure

        compiled, values = timed._compiled(args, kwargs)
        program: Any = compiled.run
        result, given = finisher(compiled), self._given(compiled, values)
        # A program that changes its arguments returns their new values, which are not written back here.
        run = functools.partial(program, *given) if result is None else functools.partial(result, values)
        return measure(getattr(self, "__name__", "f"), program.graph, program.timing, given, run)

    @staticmethod
    def _given(compiled: Compiled, values: list) -> list:
        """The arguments of a program with its hidden ones."""
        for hidden in compiled.program.hidden:
            values = [*values, hidden.fetch(values)]
        return values

    def _repr_html_(self) -> str:
        """Its source, and what has been compiled of it."""
        from .debug.html import function_html

        info = self.cache_info()
        rows = [["calls of compiled programs", "compilations", "programs"], [str(n) for n in info]]
        return function_html(repr(self)[1:-1], self.__wrapped__, rows if any(info) else [])

    def _anew(self, **options: Any) -> Any:
        """This function without its compiled programs, for the native executor unless the options say another."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.options = {**self.options, "executor": "native", **options}
        out._forget()
        return out

    @at_boundary
    def tir(self, *args, **kwargs) -> Any:
        """The native program for these arguments as TVM's tensor IR: an IRModule, which prints as TVMScript."""
        return self._native(args, kwargs).tir

    @at_boundary
    def asm(self, *args, **kwargs) -> str:
        """The native program for these arguments as assembly."""
        return self._native(args, kwargs).asm()

    def _native(self, args, kwargs) -> Any:
        """The native program, from the cache if it is what calls run."""
        if self.options["executor"] == "native":
            run = self._compiled(args, kwargs)[0].run
            if hasattr(run, "tir"):
                return run
        _, treedefs, keywords = self._signature(args, kwargs, [])
        return self._compile(treedefs, keywords, executor="native").run
