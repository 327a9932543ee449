"""Decorated functions: how Python values become leaves, which compiled program serves them, and what comes back.

The call cache maps an abstract signature (types, shapes, static values) to a compiled program. A call with Python scalars
looks it up by the arguments' classes alone; everything else builds the signature first.
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .abstract.annotations import Rows, TensorAnnotation
from .abstract.dims import symbol
from .abstract.types import Array, Scalar, Type
from .infer.dependencies import checker
from .infer.engine import Context, Engine
from .infer.values import Dyn, Skeleton, Static, Val, rebuild, skeleton
from .ir.node import Graph
from .pipeline import EXECUTORS, Compiled, compile_program, debug_mode
from .prims.structure import rebuild as rebuild_value
from .utils.errors import CompileError, OverflowError_, TypeError_, nearest
from .utils.raising import for_user
from .utils.source import Origin

CACHE_SIZE = 256  # compiled programs per decorated function; the least recently used goes first
BOUND_KEPT = 32  # instances for which a method stays compiled
CacheInfo = namedtuple("CacheInfo", ["hits", "misses", "currsize"])
SCALARS = {int: Scalar("int64", True), float: Scalar("float64", True), bool: Scalar("bool", True)}
PLAIN = frozenset(SCALARS)


def describe_argument(value: Any, annotation: Any, leaves: list, refs: dict[int, int]) -> Skeleton:
    """The skeleton of an argument; its leaf values are appended to `leaves`.

    Args:
        value: any Python value.
        annotation: the parameter's annotation: named dimensions make the compiled program serve every size.
        leaves: receives numbers, arrays and references.
        refs: references seen so far by identity: the same model passed twice is one.

    Raises:
        TypeError_: a value that compiled code cannot take.
        OverflowError_: an int that does not fit into 64 bits.
    """
    kind = type(value)
    if kind in PLAIN:
        if kind is int and not -(2**63) <= value < 2**63:
            raise OverflowError_(f"the integer argument {value} does not fit into 64 bits")
        leaves.append(value)
        return Skeleton("dyn", SCALARS[kind])
    if isinstance(value, np.ndarray):
        return array_skeleton(value, annotation, leaves)
    if isinstance(value, np.generic):
        if not isinstance(value, np.number | np.bool_) and value.dtype.name != "bfloat16":
            raise TypeError_(f"a NumPy scalar of dtype {value.dtype} cannot be passed to compiled code")
        leaves.append(value)
        return Skeleton("dyn", Scalar(value.dtype.name))
    from .infer.values import Identity

    if value is None or isinstance(value, str):
        return Skeleton("static", Identity(value))
    ref = getattr(value, "__relay_ref__", None)
    if ref is not None and not isinstance(value, type):
        if id(value) in refs:
            return Skeleton("again", refs[id(value)])
        refs[id(value)] = len(leaves)
        leaves.append(value)
        return Skeleton("dyn", ref())
    tree = getattr(value, "__relay_tree__", None)
    if tree is not None and not isinstance(value, type):
        # Symbolic sizes are named by position, so that two datasets in one call may differ in length.
        kind, fields, cls, parts = tree(f"{type(value).__name__.lower()}{len(leaves)}")
        skels = tuple(describe_argument(p, a, leaves, refs) for p, a in parts)
        return Skeleton("seq", (kind, fields, cls), skels)

    def parts(values) -> tuple[Skeleton, ...]:
        return tuple(describe_argument(v, None, leaves, refs) for v in values)

    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return Skeleton("seq", ("record", value._fields, type(value)), parts(value))
    if isinstance(value, list | tuple):
        return Skeleton("seq", ("list" if isinstance(value, list) else "tuple", (), None), parts(value))
    if isinstance(value, dict):
        if not all(isinstance(k, str) for k in value):
            raise TypeError_("a dict passed to compiled code must have string keys")
        return Skeleton("seq", ("dict", tuple(value), None), parts(value.values()))
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        if not value.__dataclass_params__.frozen:
            raise TypeError_(f"the dataclass {kind.__name__} is mutable; declare it @dataclass(frozen=True)")
        fields = tuple(value.__dataclass_fields__)
        return Skeleton("seq", ("record", fields, kind), parts(getattr(value, f) for f in fields))
    if isinstance(value, ReturnedFunction):
        leaves.extend(value.leaves)
        return value.skel
    if callable(value):
        return Skeleton("static", Identity(value))
    if hasattr(value, "__dlpack__"):
        return array_skeleton(np.from_dlpack(value), annotation, leaves)
    raise TypeError_(
        f"a value of type {kind.__module__}.{kind.__qualname__} cannot be passed to compiled code; pass numbers, arrays, "
        "tuples, lists, dicts with string keys, NamedTuples, frozen dataclasses, models or functions"
    )


def array_skeleton(value: np.ndarray, annotation: Any, leaves: list) -> Skeleton:
    """The skeleton of an array argument, with the annotation's symbolic dimensions."""
    if value.dtype.kind not in "biuf" and value.dtype.name != "bfloat16":
        raise TypeError_(f"an array of dtype {value.dtype} cannot be passed to compiled code; convert it: .astype(np.float64)")
    leaves.append(value)
    shape: tuple = value.shape
    if isinstance(annotation, Rows) and value.ndim:
        shape = (symbol(annotation.name), *value.shape[1:])
    if isinstance(annotation, TensorAnnotation) and annotation.shape is not None and len(annotation.shape) == value.ndim:
        shape = tuple(symbol(d) if isinstance(d, str) else have for d, have in zip(annotation.shape, value.shape, strict=True))
    return Skeleton("dyn", Array(value.dtype.name, shape))


def resolve_again(skel: Skeleton, nodes: list, position: Iterator) -> Val:
    """The value of an argument skeleton over parameter nodes; "again" is the node of an earlier reference."""
    if skel.tag == "again":
        return Dyn(nodes[skel.info])
    if skel.tag == "dyn":
        return Dyn(nodes[next(position)])
    if skel.tag == "seq":
        from .infer.values import Seq

        return Seq(skel.info[0], tuple(resolve_again(p, nodes, position) for p in skel.parts), skel.info[1], skel.info[2])
    count = sum(1 for _ in skel.leaves())
    return rebuild(skel, iter([nodes[next(position)] for _ in range(count)]))


class Relay:
    """A function compiled on call.

    Args:
        function: the Python function, or a transformed one (see `Derivative`).
        executor: "native", "python" or "interpreter".
        target: the machine, as in `relay(target=...)`.
        static: names of parameters whose values are compile-time constants.
        fastmath: permit contraction and reassociation of floating-point arithmetic.
        debug_nans: raise FloatingPointError at the first operation that makes a NaN.
    """

    def __init__(self, function: Callable, executor=None, target=None, static=(), fastmath=False, debug_nans=False):
        if executor is not None and executor not in EXECUTORS:
            raise ValueError(f"executor={executor!r}: choose one of {', '.join(EXECUTORS)}")
        check_decorated(function)
        functools.update_wrapper(self, function, updated=())
        self.__wrapped__ = function
        self.__relay_function__ = function
        self.options = {"executor": executor or "native", "target": target, "fastmath": fastmath, "debug_nans": debug_nans}
        self.static = (static,) if isinstance(static, str) else tuple(static)
        self._programs: OrderedDict[Any, Compiled] = OrderedDict()
        self._fast: dict[tuple, Callable] = {}
        self._bound: OrderedDict[int, Relay] = OrderedDict()  # holds the instance, so its id stays its own
        self._lock = threading.RLock()
        self._hits = self._misses = 0
        self._annotations: tuple[list[str], list] | None = None
        if isinstance(function, types.FunctionType) and not function.__code__.co_flags & inspect.CO_VARKEYWORDS:
            names = list(inspect.signature(function).parameters) if self.static else []
            for name in self.static:
                if name not in names:
                    raise TypeError_(f"static={name!r}: {function.__name__} has no such parameter{nearest(str(name), names)}")

    # Calling.

    def __call__(self, *args, **kwargs):
        try:
            if not kwargs:
                fast = self._fast.get(tuple(map(type, args)))
                if fast is not None:
                    self._hits += 1
                    return fast(*args)
            return self._call(args, kwargs)
        except BaseException as error:
            problem = for_user(error, debug_mode(), self._place)
        raise problem  # out here, where the compiler's exception is no context of it

    def _call(self, args: tuple, kwargs: dict):
        compiled, leaves = self._compiled(args, kwargs)
        return finish(compiled, leaves)

    def _compiled(self, args: tuple, kwargs: dict) -> tuple[Compiled, list]:
        """The program for these arguments, from the cache or compiled now, and the leaves to call it with."""
        leaves: list = []
        key, args_skels, names = self._signature(args, kwargs, leaves)
        with self._lock:
            compiled = self._programs.get(key)
            if compiled is not None and all(d.holds() for d in compiled.program.dependencies):
                self._programs.move_to_end(key)
                self._hits += 1
                return compiled, leaves
            self._misses += 1
            compiled = self._compile(args_skels, names)
            self._programs[key] = compiled
            if len(self._programs) > CACHE_SIZE:
                self._programs.popitem(last=False)
            self._remember_fast(args, kwargs, compiled)
        return compiled, leaves

    def _remember_fast(self, args, kwargs, compiled: Compiled) -> None:
        """Serve later calls with the same scalar classes without building a signature."""
        types_ = tuple(map(type, args))
        program = compiled.program
        plain = not kwargs and all(t in PLAIN for t in types_) and not program.hidden and not self.static
        scalar_out = program.result.tag == "dyn" and isinstance(program.result.info, Scalar)
        if not (plain and scalar_out):
            return
        run, dependencies = getattr(compiled.run, "call", compiled.run), program.dependencies
        ints = [k for k, t in enumerate(types_) if t is int]
        if not dependencies and not ints:
            self._fast[types_] = run
            return

        def again(*args):
            if not all(d.holds() for d in dependencies):  # else an int does not fit, and the program stays
                self._fast.pop(types_, None)
            return self._call(args, {})

        self._fast[types_] = checker(dependencies, len(args), run, again, ints)

    def _signature(self, args, kwargs, leaves: list):
        if self._annotations is None:
            self._annotations = parameter_annotations(self.__relay_function__)
        names, annotations = self._annotations
        refs: dict[int, int] = {}
        skels = []
        name: str | int = 0
        try:
            for i, arg in enumerate(args):
                name = names[i] if i < len(names) else i
                if name in self.static:
                    skels.append(constant_skeleton(arg))
                else:
                    skels.append(describe_argument(arg, annotations[i] if i < len(annotations) else None, leaves, refs))
            for name, arg in kwargs.items():
                if name in self.static:
                    skels.append(constant_skeleton(arg))
                else:
                    annotation = annotations[names.index(name)] if name in names else None
                    skels.append(describe_argument(arg, annotation, leaves, refs))
        except CompileError as error:
            what = f"argument {name}" if isinstance(name, int) else f"argument '{name}'"
            raise type(error)(f"{what}: {error.message}", self._place(name)) from None
        keywords = tuple(kwargs)
        return (tuple(skels), keywords), skels, keywords

    def _place(self, parameter: str | int | None = None) -> Origin | None:
        """Where the function, or a parameter of it, is defined; None where that cannot be told."""
        from .frontend import parse

        try:
            graph = parse(source_function(self.__relay_function__))
        except Exception:  # its source may be missing, which is for others to say
            return None
        signature = graph.signature
        if parameter is not None and signature is not None and parameter in signature.names:
            return graph.params[signature.names.index(parameter)].origin
        return graph.origin

    def _infer(self, skels: list[Skeleton], keywords: tuple[str, ...]):
        from .frontend import parse
        from .infer import transforms  # noqa: F401  registers grad and its kin

        engine = Engine(parse)
        entry = Graph(getattr(self, "__name__", "f"))
        nodes: list = []
        for skel in skels:
            for leaf in skel.leaves():
                nodes.append(entry.add_parameter(f"a{len(nodes)}", leaf.info))
        position = iter(range(len(nodes)))
        values = [resolve_again(s, nodes, position) for s in skels]
        count = len(values) - len(keywords)
        named = dict(zip(keywords, values[count:], strict=True))
        return engine.entry(Static(self), values[:count], named, entry, Context())

    def _compile(self, skels, keywords, keep: bool = False) -> Compiled:
        program = self._infer(skels, keywords)
        return compile_program(program, self.options["executor"], self.options, keep)

    # Looking inside.

    def cache_info(self) -> CacheInfo:
        """Hits, misses (compilations) and the number of programs held, as `functools.lru_cache` has them."""
        return CacheInfo(self._hits, self._misses, len(self._programs))

    def ir(self, *args, stage: str = "optimized", **kwargs):
        """The program for these arguments after a stage, as an object that prints as text.

        Args:
            *args, **kwargs: as in a call.
            stage: "parsed", "inferred", "differentiated", "optimized".
        """
        from .debug.show import GraphView

        if stage == "parsed":
            from .frontend import parse

            return GraphView(parse(source_function(self.__relay_function__)))
        _, skels, keywords = self._signature(args, kwargs, [])
        compiled = self._compile_for_view(skels, keywords)
        if stage not in compiled.graphs:
            raise ValueError(f"stage={stage!r}: choose one of parsed, {', '.join(compiled.graphs)}")
        return GraphView(compiled.graphs[stage])

    def _compile_for_view(self, skels, keywords) -> Compiled:
        return compile_program(self._infer(skels, keywords), "interpreter", self.options, keep=True)

    def source(self, *args, **kwargs) -> str:
        """Runnable Python source of the optimised program for these arguments."""
        from .backend.python import to_source

        _, skels, keywords = self._signature(args, kwargs, [])
        return to_source(self._compile_for_view(skels, keywords).graphs["final"])

    def interpret(self, *args, **kwargs):
        """Run on the reference interpreter."""
        leaves: list = []
        _, skels, keywords = self._signature(args, kwargs, leaves)
        return finish(compile_program(self._infer(skels, keywords), "interpreter", self.options), leaves)

    def explain(self, *args, **kwargs) -> str:
        """Passes with times, kernels and the memory plan of the native program for these arguments."""
        compiled, _ = self._compiled(args, kwargs)
        lines = [f"{name:>16}: {seconds * 1e3:8.2f} ms" for name, seconds in compiled.seconds.items()]
        detail = getattr(compiled.run, "explain", None)
        return "\n".join(lines + ([detail()] if detail else []))

    # Methods.

    def __get__(self, instance, owner=None):
        """The method of an instance: of a record it takes it as an argument; of any other object it reads attributes."""
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

    def __repr__(self) -> str:
        return f"<relay function {getattr(self, '__name__', '?')}>"


class RecordMethod(Relay):
    """A method of a NamedTuple or a frozen dataclass: one compilation serves all instances of a type."""

    def __init__(self, function: Relay, instance: Any):
        super().__init__(functools.partial(function, instance), static=function.static, **function.options)
        self._function, self._instance = function, instance

    def __call__(self, *args, **kwargs):
        return self._function(self._instance, *args, **kwargs)

    def cache_info(self) -> CacheInfo:
        """That of the function."""
        return self._function.cache_info()


def finish(compiled: Compiled, leaves: list):
    """Call a compiled program and rebuild its result."""
    program = compiled.program
    values = leaves
    for hidden in program.hidden:
        values = [*values, hidden.fetch(values)]
    out = compiled.run(*values)
    returned = compiled.returned
    count = sum(1 for _ in program.result.leaves())
    if count == 1:
        kind, index = returned[0]
        parts = iter([values[index] if kind == "arg" else out])
    else:
        parts = iter([values[i] if kind == "arg" else out[i] for kind, i in returned])
    return python_value(program.result, parts)


def constant_skeleton(value: Any) -> Skeleton:
    """The skeleton of a static argument."""
    from .infer.values import ConstInfo, Identity
    from .ir.build import type_of_constant

    if isinstance(value, bool | int | float | np.generic):
        return Skeleton("const", ConstInfo(type_of_constant(value), value))
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        kind = "list" if isinstance(value, list) else "tuple"
        return Skeleton("seq", (kind, (), None), tuple(constant_skeleton(v) for v in value))
    if isinstance(value, tuple):
        return Skeleton("seq", ("record", value._fields, type(value)), tuple(constant_skeleton(v) for v in value))
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return Skeleton("seq", ("dict", tuple(value), None), tuple(constant_skeleton(v) for v in value.values()))
    if isinstance(value, np.ndarray):
        raise TypeError_("an array is no compile-time constant, as its elements may change; take the name out of static=")
    return Skeleton("static", Identity(value))


def source_function(function: Any) -> Any:
    """The Python function at the bottom of wrappers and transforms."""
    while True:
        if hasattr(function, "__relay_derived__"):
            function = function.__relay_derived__[1]
        elif hasattr(function, "__relay_function__"):
            function = function.__relay_function__
        elif hasattr(function, "__relay_model__"):
            function = function.__relay_model__
        else:
            return function


def check_decorated(function: Any) -> None:
    """Refuse what has no Python source to compile.

    Raises:
        TypeError_: not a Python function, nor anything made of one.
    """
    wrapped = any(hasattr(function, a) for a in ("__relay_function__", "__relay_derived__", "__relay_model__"))
    known = types.FunctionType | types.MethodType | functools.partial | functools._lru_cache_wrapper
    if wrapped or isinstance(function, known):
        return
    if callable(function) and isinstance(type(function).__call__, types.FunctionType):
        return
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        raise TypeError_(f"@relay stands under @{kind}, not above it: write @{kind} on the line before @relay")
    what = f"the class {function.__name__}" if isinstance(function, type) else repr(function)
    raise TypeError_(f"@relay compiles functions that are written in Python, and this is {what}; wrap it: relay(lambda x: ...)")


def parameter_annotations(function: Any) -> tuple[list[str], list]:
    """Names and evaluated annotations of a function's parameters."""
    target = source_function(function)
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return [], []
    try:
        hints = inspect.get_annotations(target, eval_str=True)
    except Exception:
        hints = {}
    return list(parameters), [hints.get(n) for n in parameters]


def python_value(skel: Skeleton, leaves: Iterator):
    """The Python value of a result."""
    tag, info = skel.tag, skel.info
    if tag == "dyn":
        return next(leaves)
    if tag == "static":
        return info.value
    if tag == "const":
        return info.value
    if tag == "seq":
        parts = [python_value(p, leaves) for p in skel.parts]
        from .abstract.types import Struct

        return rebuild_value(Struct(info[0], (None,) * len(parts), info[1], info[2]), parts)
    if tag == "never":
        return None
    if tag == "choice":
        which, *options = skel.parts
        place = next(leaves)
        values = [[next(leaves) for _ in option.leaves()] for option in options]
        return python_value(options[place], iter(values[place]))
    if tag == "text":
        from .utils.raising import format_parts

        return format_parts(info, [python_value(p, leaves) for p in skel.parts])
    if tag in ("closure", "derived", "bound"):
        return ReturnedFunction(skel, [next(leaves) for _ in skel.leaves()])
    raise TypeError_(f"compiled code cannot return {skel} to Python")


class ReturnedFunction:
    """A function that compiled code made and returned: its code, and copies of what it captured.

    Calling it compiles it for its arguments, once per signature whatever it captured; it can be passed to compiled code and
    to `grad` like any function.

    Attributes:
        skel: the skeleton of the closure.
        leaves: the captured values.
    """

    def __init__(self, skel: Skeleton, leaves: list):
        self.skel, self.leaves = skel, leaves
        self.__name__ = skel.info[0].name if skel.tag == "closure" else "function"

    def __relay_value__(self, engine: Engine, frame) -> Val:
        """The closure inside of compiled code that finds this object in a free name: what it captured never changes."""
        nodes = []
        for leaf in self.leaves:
            nodes.append(engine.from_python(frame, leaf, None).node)
        return rebuild(self.skel, iter(nodes))

    def __call__(self, *args):
        return _call_returned(self, *args)

    def __repr__(self) -> str:
        return f"<compiled function {self.__name__}>"


def _apply_returned(function, *args):
    return function(*args)


_call_returned = Relay(_apply_returned)


__all__ = ["Relay", "Type", "Val", "describe_argument", "finish", "skeleton"]
