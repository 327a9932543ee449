"""Decorated functions: how Python values become leaves, which compiled program serves a call, and how its results are
returned.

The call cache maps an abstract signature (types, shapes, static values) to a compiled program. A call with Python
scalars is looked up by the classes of its arguments alone; for all others the signature is built first.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
import types
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from .abstract.families import FieldError, Misfit
from .abstract.types import Array, Data, List, Scalar, Type, holds_array_entries
from .backend.native.writing import shared
from .cache.cutting import SliceCuts
from .cache.objects import prepare
from .cache.programs import find
from .cache.programs import keep as keep_in_file
from .changing import call_program
from .decorated import at_boundary, check_decorated, note_local_classes, parameter_annotations, place_of
from .infer.arguments.arguments import (
    MOST_LEAVES,
    PLAIN,
    ReturnedFunction,
    constant_treedef,
    copy_listed,
    copy_results,
    describe_argument,
    quick_key,
    resolve_again,
    writable_targets,
)
from .infer.arguments.columns import ListsAsData, ShortLists, gives_arrays
from .infer.arguments.list_calls import direct
from .infer.arguments.open_sizes import exact, numbered, settle
from .infer.engine.dependencies import checker
from .infer.engine.program import Outermost
from .infer.values.treedef import UNEVEN, TreeDef, tree_structure
from .infer.values.uneven import UnevenLists, allowing
from .infer.values.values import Static, Val
from .inspection import Inspectable
from .ir.build import Builder
from .ir.node import Graph
from .pipeline import Compiled, checked_options, compile_program, finish, finisher
from .utils.collector import resting
from .utils.compiling import compiling, unlock_in_child
from .utils.debugging import debugging
from .utils.deep import deeply
from .utils.errors import (
    CompileError,
    GradError,
    LoweringError,
    ParseError,
    ShapeError,
    SizeInRecord,
    SliceBeyond,
    TypeError_,
    ValueError_,
    nearest,
)
from .utils.nesting import nesting_problem
from .utils.patience import waiting
from .utils.pickling import Remade
from .utils.raising import for_user
from .utils.source import Origin
from .written_lists import direct_result

CACHE_SIZE = 256  # compiled programs per decorated function; the least recently used is dropped first
BOUND_KEPT = 32  # instances for which a method stays compiled
CacheInfo = namedtuple("CacheInfo", ["hits", "misses", "currsize"])


class Relay(Inspectable, Remade):
    """A function compiled on call.

    Args:
        function: the Python function, or a transformed one (see `Derivative`).
        executor: "native", "python" or "interpreter".
        target: the machine, as in `relay(target=...)`.
        static: names of parameters whose values are compile-time constants.
        fastmath: permit contraction and reassociation of floating-point arithmetic.
        debug_nans: raise FloatingPointError at the first operation that makes a NaN.
        precision: "bfloat16" rounds the operands of products of matrices and of convolutions to that, in derivatives too; they
            are added up in float32, and all else is float32 as it is written.
    """

    def __init__(
        self,
        function: Callable,
        executor=None,
        target=None,
        static=(),
        fastmath=False,
        debug_nans=False,
        precision=None,
    ):
        check_decorated(function)
        note_local_classes()
        if isinstance(function, Relay):
            static = static or function.static
        functools.update_wrapper(self, function, updated=())
        self.__wrapped__ = function
        self._begin(function, executor, target, static, fastmath, debug_nans, precision)
        if isinstance(function, Relay):
            self.taken = function.taken
        if isinstance(function, types.FunctionType) and not function.__code__.co_flags & inspect.CO_VARKEYWORDS:
            names = list(inspect.signature(function).parameters) if self.static else []
            for name in self.static:
                if name not in names:
                    raise TypeError_(
                        f"static={name!r}: {function.__name__} has no such parameter{nearest(str(name), names)}"
                    )

    def _begin(
        self, function, executor=None, target=None, static=(), fastmath=False, debug_nans=False, precision=None
    ) -> None:
        """Begin as a function that compiled code calls, whatever that is."""
        self._decorated = function
        self.options = checked_options(executor, target, fastmath, debug_nans, precision)
        self.static = (static,) if isinstance(static, str) else tuple(static)
        self._cuts = SliceCuts()
        self._forget()
        self._annotations: tuple[list[str], list] | None = None

    taken: Callable[[tuple, dict], tuple[tuple, dict]] | None = None
    """`(args, kwargs)` -> the arguments as the function declares them; None where they are taken as they are."""

    def _forget(self) -> None:
        """Begin with no compiled programs."""
        self._programs: OrderedDict[Any, Compiled] = OrderedDict()
        self._fast: dict[
            tuple, Callable
        ] = {}  # classes of Python numbers, or of them and lists -> what calls a program
        # `quick_key` -> program, maker of its result, whether dependencies hold, what calls it with lists (None: not known yet)
        self._quick: dict[tuple, tuple] = {}
        self._bound: OrderedDict[int, Relay] = OrderedDict()  # holds the instance, so its id stays its own
        self._listed = ListsAsData.MANY_ARRAYS  # which lists are data, of whatever length
        self._short = ShortLists()
        self._open = True  # whether sizes that annotations leave open are symbols
        self._named = True  # whether sizes that annotations name are symbols
        self._lock = threading.RLock()
        unlock_in_child(self)
        self._hits = self._misses = 0
        # Whether recursive dataclasses keep their structure in their types; see `_of_structure`.
        self._structural = False
        self._uses_data = False
        self._interpreted: Relay | None = None  # see `interpret`

    @property
    def __relay_function__(self) -> Any:
        """The decorated function. A property, since `functools.wraps` copies the contents of instances to wrappers,
        which are not ours.
        """
        return self._decorated

    def __call__(self, *args, **kwargs):
        try:
            try:
                if not kwargs:
                    fast = self._fast.get(tuple(map(type, args)))
                    if fast is not None:
                        self._hits += 1
                        return fast(*args)
                return self._call(args, kwargs)
            except SliceBeyond as beyond:
                return self._cuts.cut_off(self, args, kwargs, beyond, self._call)
        except BaseException as error:
            problem = for_user(error, debugging(), self._place)
        raise problem  # raised here, so that the compiler's exception is not its context

    def _call(self, args: tuple, kwargs: dict):
        try:
            return self._run(args, kwargs)
        except Misfit as misfit:
            compiled, given = self._of_structure(args, kwargs, misfit)
        return call_program(self, compiled, given, args, kwargs)

    def _run(self, args: tuple, kwargs: dict):
        found = self._quickly(args, kwargs)
        if found is None:
            return call_program(self, *self._compiled(args, kwargs), args, kwargs)
        compiled, result, leaves = found
        return call_program(self, compiled, leaves, args, kwargs) if result is None else result(leaves)

    def _quickly(self, args: tuple, kwargs: dict) -> tuple[Compiled, Callable | None, list] | None:
        """The program for these arguments, what makes its result, and the leaves to call it with; looked up without treedefs.

        Returns:
            None where the arguments need a closer look; without what makes the result where they had it.
        """
        leaves: list = []
        if self._structural:
            return None
        try:
            key = self._quick_key(args, kwargs, leaves)
        except RecursionError:
            return None
        if key is None:
            return None
        found = self._quick.get(key)
        if found is not None:
            compiled, result, holds, directly = found
            if holds():
                self._hits += 1
                if (
                    directly is None and not kwargs
                ):  # at the first call the lists were of types that nobody had seen before
                    directly = self._directly(args, compiled, result) or False
                    self._quick[key] = compiled, result, holds, directly
                if directly and not kwargs:
                    self._fast[tuple(map(type, args))] = directly
                return compiled, result, leaves
            self._quick.pop(key, None)
        compiled, given = self._compiled(args, kwargs)
        if len(given) == len(leaves):
            if len(self._quick) >= 4 * CACHE_SIZE:
                self._quick.clear()
            holds = checker(compiled.program.dependencies, 0, lambda: True, lambda: False, [])
            self._quick[key] = compiled, finisher(compiled), holds, None
        return compiled, None, given

    def _quick_key(self, args: tuple, kwargs: dict, leaves: list) -> tuple | None:
        """What finds the program without treedefs; the leaves are appended. None where that takes a closer look."""
        if self.taken is not None:
            args, kwargs = self.taken(args, kwargs)
        return None if kwargs or self.static else quick_key(args, leaves, self._listed)

    def _directly(self, args: tuple, compiled: Compiled, result: Callable | None) -> Callable | None:
        """What calls a program with lists like these, without a look at their types first; None where that does not work."""
        if self.taken is not None or self.static or self.options["executor"] != "native":
            return None
        changes = [c.position for c in compiled.program.changes]
        if changes:
            result = direct_result(compiled)
        if result is None:
            return None

        def again(*args):
            self._hits -= 1  # it is counted where the program is found
            return self._call(args, {})

        call = direct(args, self._listed, result, again, compiled.unread, changes, shared)
        if call is None:
            return None
        ints = [k for k, arg in enumerate(args) if type(arg) is int]
        dependencies = compiled.program.dependencies
        return checker(dependencies, len(args), call, again, ints) if ints or dependencies else call

    def _of_structure(self, args: tuple, kwargs: dict, problem: CompileError) -> tuple[Compiled, list]:
        """The program for these trees alone, with their structure in its types, if their values do not fit their
        annotations.

        Raises:
            CompileError: `problem`, where there is no such program.
        """
        try:
            return self._compiled(args, kwargs, True)
        except (CompileError, RecursionError):
            raise problem from None

    def _compiled(self, args: tuple, kwargs: dict, structural: bool = False) -> tuple[Compiled, list]:
        """The program for these arguments, from the cache or compiled now, and the leaves to call it with.

        Raises:
            CompileError: there is no program for these arguments.
        """  # noqa: DOC501 (three kinds of CompileError)
        structural |= self._structural
        try:
            return self._lookup(args, kwargs, structural)
        except (FieldError, GradError, LoweringError) as error:
            if structural or not self._uses_data:
                raise
            found = self._of_structure(args, kwargs, error)
            self._structural = True
            return found

    def _lookup(self, args: tuple, kwargs: dict, structural: bool) -> tuple[Compiled, list]:
        leaves: list = []
        key, args_treedefs, names = self._signature(args, kwargs, leaves, structural)
        key = (key, how := (structural, *self._cuts.of(key, structural).key()))
        compiled = self._held(key)
        if compiled is not None:
            return compiled, leaves
        if self._listed is ListsAsData.MANY_ARRAYS and not structural and self._short.open:
            wide, _, _ = self._signature(args, kwargs, [], structural, ListsAsData.ALL)
            if wide != key[0] and self._short.are_data(wide, key[0]):
                self._listed = ListsAsData.ALL
                return self._lookup(args, kwargs, structural)
        with compiling():
            compiled = self._held(key)  # another thread may have compiled it
            if compiled is not None:
                return compiled, leaves
            compiled = find(self, args_treedefs, names, *how)
            if compiled is not None:
                self._hits += 1
            else:
                self._misses += 1
                try:
                    compiled = self._compile(args_treedefs, names, structural=structural)
                except CompileError as error:
                    if isinstance(error, ParseError):
                        raise  # whatever the sizes
                    return self._compiled_by_sizes(args, kwargs, error, structural, key[0])
                keep_in_file(self, args_treedefs, names, compiled, *how)
            compiled.arguments = args_treedefs
            with self._lock:
                self._programs[key] = compiled
                if len(self._programs) > CACHE_SIZE:
                    _, dropped = self._programs.popitem(last=False)
                    self._quick = {k: v for k, v in self._quick.items() if v[0] is not dropped}
            self._remember_fast(args, kwargs, compiled)
            if self.options["executor"] == "native":
                prepare([*args_treedefs, compiled.program.result])
        return compiled, leaves

    def _held(self, key: Any) -> Compiled | None:
        """The program with a key, if there is one and what it depends on is as it was."""
        compiled = self._programs.get(key)
        if compiled is None or not all(d.holds() for d in compiled.program.dependencies):
            return None
        with self._lock:  # not while anything is compiled, which may want this lock
            if key in self._programs:
                self._programs.move_to_end(key)
            self._hits += 1
        return compiled

    def _compiled_by_sizes(
        self, args: tuple, kwargs: dict, error: CompileError, structural: bool, key
    ) -> tuple[Compiled, list]:
        """The program for exactly these open sizes, or lists of these lengths, which something in the function needs to
        know; or for short lists of arrays as data, if their structure has no program.
        """
        if self._listed is ListsAsData.MANY_ARRAYS and self._short.open and not structural:
            wide, _, _ = self._signature(args, kwargs, [], structural, ListsAsData.ALL)
            if wide != key and not isinstance(error, ShapeError):
                self._listed, self._short.open = ListsAsData.ALL, False
                self._misses -= 1  # it is still one compilation
                with suppress(CompileError):
                    return self._compiled(args, kwargs)
                self._listed = ListsAsData.MANY_ARRAYS
                self._misses += 1
        # Modules of Relay text are checked: what is wrong with their functions may only be that a size is not known.
        numbers = [("_named", False)] if self.taken is not None or isinstance(error, SizeInRecord) else []
        levels = (ListsAsData.MANY_ARRAYS, ListsAsData.NO_ARRAYS, ListsAsData.NUMBERS)
        lists = [("_listed", level) for level in levels]
        for choice, less in (*lists, ("_open", False), ("_listed", ListsAsData.NONE), *numbers):
            before = getattr(self, choice)
            if before > less:
                setattr(self, choice, less)
                try:
                    leaves: list = []
                    new, treedefs, _ = self._signature(args, kwargs, leaves, structural)
                    if new != key and len(leaves) + sum(t.texts() for t in treedefs) <= MOST_LEAVES:
                        self._misses -= 1  # it is still one compilation
                        return self._compiled(args, kwargs, structural)
                except CompileError:
                    pass
                setattr(self, choice, before)
        raise error

    def _remember_fast(self, args, kwargs, compiled: Compiled) -> None:
        """Serve later calls with the same scalar classes without building a signature."""
        types_ = tuple(map(type, args))
        program = compiled.program
        plain = (
            self.taken is None
            and not kwargs
            and all(t in PLAIN for t in types_)
            and not program.hidden
            and not self.static
        )
        # What native code returns is what the caller gets; the other executors have lists that keep their versions.
        whole = Scalar | Array | List if self.options["executor"] == "native" else Scalar
        if not (plain and program.result.tag == "dyn" and isinstance(program.result.info, whole)):
            return
        run, dependencies = getattr(compiled.run, "call", compiled.run), program.dependencies
        ints = [k for k, t in enumerate(types_) if t is int]
        if not dependencies and not ints:
            self._fast[types_] = run
            return

        def again(*args):
            if not all(d.holds() for d in dependencies):  # otherwise an int does not fit, and the program stays
                self._fast.pop(types_, None)
            return self._call(args, {})

        self._fast[types_] = checker(dependencies, len(args), run, again, ints)

    def _signature(self, args, kwargs, leaves: list, structural: bool = False, listed: ListsAsData | None = None):
        if self.taken is not None:
            args, kwargs = self.taken(args, kwargs)
        if self._annotations is None:
            self._annotations = parameter_annotations(self.__relay_function__)
        names, annotations = self._annotations
        refs: dict[int, int] = {}
        treedefs, listed = [], self._listed if listed is None else listed
        name: str | int = 0
        arg: Any = None
        given = [(names[i] if i < len(names) else i, arg) for i, arg in enumerate(args)] + list(kwargs.items())
        try:
            for name, arg in given:
                if self._is_static(name, arg):
                    treedefs.append(constant_treedef(arg, None if isinstance(arg, np.ndarray) else leaves))
                    continue
                annotation = annotations[names.index(name)] if name in names else None

                def describe(part, annotation=annotation) -> TreeDef:
                    return describe_argument(part, annotation, leaves, refs, structural, listed)

                treedefs.append(self._with_constants(len(treedefs), arg, describe) or describe(arg))
        except (CompileError, RecursionError) as error:
            what = f"argument {name}" if isinstance(name, int) else f"argument '{name}'"
            if isinstance(error, RecursionError):
                error = TypeError_(nesting_problem(arg) or "it is nested too deeply")
            raise type(error)(f"{what}: {error.message}", self._place(name)) from None
        try:
            settled = settle(treedefs, [name for name, _ in given], leaves)  # which checks the sizes that have names
            treedefs = settled if self._open else exact(treedefs)
            if not self._named:
                treedefs = numbered(treedefs, leaves)
        except CompileError as error:
            raise error.at(self._place()) from None
        keywords = tuple(kwargs)
        return (tuple(treedefs), keywords), treedefs, keywords

    def _with_constants(self, position: int, value: Any, describe: Callable[[Any], TreeDef]) -> TreeDef | None:
        """The treedef of an argument that is a tuple of arguments of a function, of which some are compile-time constants.

        Args:
            position: of the argument.
            value: the argument.
            describe: what gives the treedef of any other value.

        Returns:
            None where there are none.
        """
        return None

    def _is_static(self, name: str | int, value: Any) -> bool:
        """Whether an argument is a compile-time constant."""
        return name in self.static

    def _place(self, parameter: str | int | None = None) -> Origin | None:
        """The place where the function, or a parameter of it, is defined; None if it is not known."""
        return place_of(self.__relay_function__, parameter)

    def _infer(self, treedefs: list[TreeDef], keywords: tuple[str, ...], structural: bool = False):
        """Infer the function; lists stay static if the program needs to know their lengths."""
        return self._attempt(treedefs, keywords, structural, lambda program: program)

    def _attempt(self, treedefs: list[TreeDef], keywords: tuple[str, ...], structural: bool, then: Callable):
        """`then(program)`; a second time with static lists, if the first fails and made a list a run-time list by choice; and last
        with lists of arrays of any sizes, if that might help.

        Raises:
            CompileError: of the first attempt.
        """
        chosen: list[bool] = []
        origin = self._place()
        uneven = UnevenLists(sizes=any(map(gives_arrays, treedefs)))

        def attempt(static: bool, uneven: UnevenLists):
            with allowing(uneven):
                return then(self._program(treedefs, keywords, structural, static, chosen))

        with compiling(), waiting(getattr(self, "__name__", "a function"), None if origin is None else origin.loc):
            try:
                return attempt(False, uneven)
            except CompileError as error:
                inferred = not isinstance(error, ParseError)
                if not (chosen and inferred or uneven.wanted):
                    raise
                problem = error
            if chosen and inferred:
                with suppress(CompileError):
                    return attempt(True, uneven)
            if uneven.wanted and not isinstance(problem, ShapeError):  # known sizes do not fit
                try:
                    return attempt(False, UnevenLists(True, True))
                except CompileError as error:
                    if UNEVEN in problem.message:
                        raise error from None
            raise problem from None

    def _program(
        self, treedefs: list[TreeDef], keywords: tuple[str, ...], structural: bool, static: bool, chosen: list[bool]
    ):
        from .frontend import parse, parse_marked
        from .infer.entry import new_engine
        from .pipeline import compress

        parsed = {None: parse, True: parse_marked, "library": functools.partial(parse, marked=True)}
        engine = new_engine(parsed[self.options.get("marked")], compress, structural)
        engine.static_lists, engine.promotes = static, chosen
        try:
            return self._inferred(engine, treedefs, keywords)
        finally:
            self._uses_data = engine.uses_data or any(isinstance(t.info, Data) for s in treedefs for t in s.leaves())

    def _inferred(self, engine: Any, treedefs: list[TreeDef], keywords: tuple[str, ...]):
        from .infer.engine.frames import Ambient

        entry = Graph(getattr(self, "__name__", "f"))
        nodes: list = []
        for treedef in treedefs:
            for leaf in treedef.leaves():
                nodes.append(entry.add_parameter(f"a{len(nodes)}", leaf.info))
        position = iter(range(len(nodes)))
        builder = Builder(entry)
        values = [resolve_again(s, nodes, position, builder) for s in treedefs]
        count = len(values) - len(keywords)
        named = dict(zip(keywords, values[count:], strict=True))
        cuts = self._cuts.of((tuple(treedefs), keywords), engine.structural)
        engine.outermost = Outermost(self.__relay_function__, tuple(values))
        return engine.entry(Static(self), values[:count], named, entry, Ambient(cuts=cuts))

    def _compile(
        self, treedefs, keywords, keep: bool = False, structural: bool = False, executor: str = ""
    ) -> Compiled:
        start, executor = time.perf_counter(), executor or self.options["executor"]

        def then(program) -> Compiled:
            inferred = time.perf_counter() - start
            compiled = compile_program(program, executor, self.options, keep)
            compiled.seconds = {"inferred": inferred, **compiled.seconds}
            return compiled

        with compiling(), resting():
            try:
                return self._attempt(treedefs, keywords, structural, then)
            except RecursionError:
                pass
            try:
                return deeply(lambda: self._attempt(treedefs, keywords, structural, then))
            except RecursionError:
                name = getattr(self, "__name__", "this function")
                raise ParseError(f"{name} is nested too deeply; split it up", self._place()) from None

    # Inspection.

    def cache_info(self) -> CacheInfo:
        """Hits, misses (compilations) and the number of programs held, as `functools.lru_cache` has them."""
        return CacheInfo(self._hits, self._misses, len(self._programs))

    @at_boundary
    def interpret(self, *args, **kwargs):
        """Run on the reference interpreter."""
        interpreted = self._interpreted = self._interpreted or self._anew(executor="interpreter")
        return interpreted(*args, **kwargs)

    def into(self, out: Any) -> Callable:
        """A function of the same arguments that writes its result into arrays of the caller's, and returns them.

        Args:
            out: a writable array of the result's dtype and shape; for several results a tree of them, like the result.

        Raises:
            TypeError_, ShapeError: when called: `out` does not fit the result.
        """

        last: tuple = (None, None, None)
        fixed = type(out) is np.ndarray or (type(out) is tuple and all(type(o) is np.ndarray for o in out))

        def write(self: Relay, args: tuple, kwargs: dict):
            nonlocal last
            found = self._quickly(args, kwargs)
            compiled, values = self._compiled(args, kwargs) if found is None else (found[0], found[2])
            if compiled.program.changes:
                raise ValueError_("into: the function changes an argument in place; call it, or let it change a copy")
            for hidden in compiled.program.hidden:
                values = [*values, hidden.fetch(values)]
            if any(holds_array_entries(leaf.info) for leaf in compiled.program.result.leaves()):
                targets = writable_targets(compiled.program.result, out)
                leaves = compiled.results(values, compiled.run(*values))
                copy_listed(compiled.program.result, leaves, targets)
                return out
            known, into, given = last
            if compiled is not known:
                targets = writable_targets(compiled.program.result, out)
                into, given = getattr(compiled.run, "into", None), tuple(targets) if len(targets) != 1 else targets[0]
                if into is None or not compiled.plain:
                    copy_results(targets, compiled.results(values, compiled.run(*values)))
                    return out
                if fixed:  # a list may hold other arrays by the next call
                    last = compiled, into, given
            into(given, *values)
            return out

        @at_boundary
        def call(self: Relay, *args, **kwargs):
            try:
                return write(self, args, kwargs)
            except SliceBeyond as beyond:
                return self._cuts.cut_off(self, args, kwargs, beyond, functools.partial(write, self))

        return functools.partial(call, self)

    @at_boundary
    def save(self, path: Any, *args, **kwargs) -> None:
        """Write the program for these arguments as a library, which `relay.load_compiled` loads where there is no compiler.

        Free names keep the values that they have now.

        Args:
            path: the file, a shared object.
            *args, **kwargs: examples of the arguments; their types count.

        Raises:
            CompileError: the function cannot be compiled, or not be written.
            OSError: the file cannot be written.
        """
        from .cache.export import write_library

        leaves: list = []
        _, treedefs, keywords = self._signature(args, kwargs, leaves)
        options = {**self.options, "own_results": True}
        compiled = compile_program(self._infer(treedefs, keywords), "native", options)
        name, numbers = getattr(self, "__name__", "f"), self.taken is not None
        write_library(path, name, compiled, treedefs, keywords, leaves, numbers=numbers)

    def __get__(self, instance, owner=None):
        """The method of an instance: a record is passed as an argument; of any other object the attributes are read."""
        if instance is None:
            return self
        if hasattr(instance, "__dataclass_fields__") or isinstance(instance, tuple):
            return RecordMethod(self, instance)
        with self._lock:
            known = self._bound.get(id(instance))
            if known is None:
                method = types.MethodType(self.__relay_function__, instance)
                known = self._bound[id(instance)] = Relay(method, static=self.static, **self.options)
                if len(self._bound) > BOUND_KEPT:
                    self._bound.popitem(last=False)
            self._bound.move_to_end(id(instance))
        return known

    def _made_of(self) -> tuple[tuple, dict[str, Any]]:
        return (self.__wrapped__,), {"static": self.static, **self.options}

    def __repr__(self) -> str:
        return f"<relay function {getattr(self, '__name__', '?')}>"


class RecordMethod(Relay):
    """A method of a NamedTuple or a frozen dataclass: one compilation serves all instances of a type."""

    def __init__(self, function: Relay, instance: Any):
        super().__init__(functools.partial(function, instance), static=function.static, **function.options)
        self._function, self._instance = function, instance

    def __call__(self, *args, **kwargs):
        return self._function(self._instance, *args, **kwargs)

    def _made_of(self) -> tuple[tuple, dict[str, Any]]:
        return (self._function, self._instance), {}

    def interpret(self, *args, **kwargs):
        """Run on the reference interpreter."""
        return self._function.interpret(self._instance, *args, **kwargs)

    def cache_info(self) -> CacheInfo:
        """That of the function."""
        return self._function.cache_info()


def _apply_returned(function, *args):
    return function(*args)


ReturnedFunction.run = staticmethod(Relay(_apply_returned))


__all__ = ["Relay", "Type", "Val", "describe_argument", "finish", "tree_structure"]
