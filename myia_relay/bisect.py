"""Which pass changes the answer of a program: `python -m myia_relay bisect module.py:function --args ...`.

A program is compiled. The graphs after every stage, and after every pass that changed something, are kept, and the
reference interpreter runs them one after the other. The first graph whose answer differs from that of the inferred
graph names the pass at fault. If that is the simplifier, the rewrite rules that it applied are switched off one by one.
If all graphs agree and native code does not, the optimisations that the environment can switch off (`utils.switches`)
are switched off one by one.

Input: a function and arguments for it. Output: a `Finding`, and a report as lines of text. The interpreter cannot run
transforms: if the inferred graph has some, the graphs before differentiation are differentiated first, each by itself.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import difflib
import io
import os
import reprlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from .api import Relay
from .infer.arguments.arguments import ReturnedFunction, python_value
from .infer.engine.program import Program
from .ir.node import Graph
from .ir.text import to_text
from .opt.pipeline import has_transforms
from .opt.rewrite.rules import Match, Rule, Table
from .opt.rewrite.rules import build as build_pattern
from .opt.rewrite.simplify import Simplify
from .pipeline import Compiled, executor_of
from .pipeline import finish as finish_native
from .utils.debugging import observed
from .utils.errors import CompileError, InternalError, ValueError_
from .utils.files import CACHE_VARIABLE
from .utils.pickling import copied
from .utils.switches import OPTIMISATIONS, VARIABLE

TOLERANCE = 1e-9
DIFF_LINES = 40
_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = 120


@dataclass
class Step:
    """A graph on its way to native code.

    Attributes:
        name: of the stage or the pass that made it.
        graph: as it was then.
        step: the pass; None for a stage.
        source: the graph itself, of which `graph` is a copy.
        derived: whether derivatives have been made, or were there to be made: answers agree but for rounding.
    """

    name: str
    graph: Graph
    step: Any
    source: Graph
    derived: bool = False


@dataclass
class Answer:
    """The outcome of a run.

    Attributes:
        value: the result; the exception, where it raised one.
        raised: whether it did.
        printed: what it printed.
        models: the arrays of the models it was given, after it.
    """

    value: Any
    raised: bool = False
    printed: str = ""
    models: list = field(default_factory=list)

    def __str__(self) -> str:
        if self.raised:
            return f"{type(self.value).__name__}: {str(self.value).splitlines()[0] if str(self.value) else ''}"
        return _SHORT.repr(self.value)


@dataclass
class Finding:
    """The result of a search.

    Attributes:
        culprit: the pass, or stage, after which the answer is another one; None where nothing differs.
        rules: of the rewrite rules that fired, those without which the answer stays (where the culprit is the simplifier).
        switches: the optimisations without which native code is right (where the culprit is native code).
        before, after: the graphs before and after the culprit.
        problem: how the answers differ.
    """

    culprit: str | None = None
    rules: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    before: Graph | None = None
    after: Graph | None = None
    problem: str = ""


def _say(line: str) -> None:
    print(line, flush=True)  # if native code crashes, unwritten output is lost


def bisect(function: Relay, args: tuple, tolerance: float | None = None, tell: Callable = _say) -> Finding:
    """Find the pass after which a program's answer changes.

    Args:
        function: the function.
        args: its arguments.
        tolerance: relative, of floats of derived code and of native code; by default 1e-9, and as much as their precision makes
            necessary for floats of less than 64 bits. Everything else is compared to the last bit.
        tell: what to do with each line of the report.

    Raises:
        ValueError_: the tolerance is negative or NaN.
        CompileError: the function does not compile.
    """
    if tolerance is not None and not tolerance >= 0:
        raise ValueError_(f"tolerance={tolerance}: it must be 0 or more")
    return _Bisection(function, args, tolerance, tell).finding()


class _Bisection:
    """One search for the culprit."""

    def __init__(self, function: Relay, args: tuple, tolerance: float | None, tell: Callable):
        self.function, self.args, self.tolerance, self.tell = function, args, tolerance, tell
        self.steps: list[Step] = []

    def finding(self) -> Finding:
        with observed(self.observe):
            self.compiled, self.leaves = self.compile()
        self.program: Program = self.compiled.program
        first = self.steps[0]
        transforms = has_transforms(first.graph)
        derived = transforms
        for step in self.steps:  # memory planning may change the order of sums
            step.derived = derived
            derived |= step.name == "differentiated" and step.step is None
        self.tell(f"{self.name}: {len(self.steps)} graphs from inference to native code")
        self.reference = self.interpret(first)
        self.tell(f"  inferred: {self.reference}")
        if self.reference.raised and isinstance(self.reference.value, InternalError):
            raise self.reference.value
        found = None if transforms else self.against_python(first)
        found = found or self.among_graphs() or self.against_native() or Finding()
        if found.culprit is None:
            exact = "" if transforms else "to the last bit before differentiation, "
            self.tell(
                f"Nothing differs: all graphs and native code have the same answer, {exact}within the tolerance after it."
            )
        return found

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "the function")

    def compile(self) -> tuple[Compiled, list]:
        """The native program, compiled again, and the leaves to call it with."""
        anew = copy.copy(self.function)
        anew.options = {**self.function.options, "executor": "native"}
        anew._programs, anew._quick, anew._fast = OrderedDict(), {}, {}
        with environment(CACHE_VARIABLE, "0"):
            return anew._compiled(self.args, {})

    def observe(self, name: str, graph: Graph, step: Any) -> None:
        if name == "inferred" and step is None:
            self.steps = []  # what came before was of another attempt, or for the size of a Jacobian
        # Every pass rebuilds the graph; the last step before an executor changes the result of the outermost one in place.
        kept = copy.copy(graph)
        kept.nodes = list(graph.nodes)
        self.steps.append(Step(name, kept, step, graph))

    # Running.

    def answer(self, run: Callable[[list], Any], program: Program | None = None) -> Answer:
        """The outcome of a run with copies of the arguments, including the hidden arguments of a program."""
        values = copied(self.leaves)
        for hidden in program.hidden if program else ():
            values += copied([hidden.fetch(values)])
        models = [v for v in values if hasattr(v, "arrays")]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                value, raised = run(values), False
            except Exception as error:
                value, raised = error, True
        return Answer(value, raised, printed.getvalue(), [m.arrays for m in models])

    def interpret(self, step: Step, graph: Graph | None = None) -> Answer:
        """The outcome of a graph under the reference interpreter."""
        from .ad.expand import expand

        graph = step.graph if graph is None else graph
        if has_transforms(graph):
            graph = expand(graph)
        return self.answer(lambda values: self.result(graph, values), self.program)

    def native(self, compiled: Compiled) -> Answer:
        """The outcome of the program in native code."""
        given = dataclasses.replace(compiled, program=dataclasses.replace(compiled.program, hidden=[]))
        return self.answer(lambda values: finish_native(given, values), compiled.program)

    def result(self, graph: Graph, values: list) -> Any:
        """The value of a graph, assembled as the program's result."""
        out = executor_of(graph, "interpreter", {})(*values)
        leaves = list(self.program.result.leaves())
        if not self.compiled.plain and out_count(out) != len(leaves):
            return python_value(
                self.program.result, iter(self.compiled.results(values, out))
            )  # arguments were taken out
        return python_value(self.program.result, iter([out] if len(leaves) == 1 else out))

    def differ(self, answer: Answer, loose: bool) -> str | None:
        return different(self.reference, answer, (self.tolerance, loose))

    # Comparing.

    def against_python(self, first: Step) -> Finding | None:
        """Compare with Python itself, where the function runs there."""
        run = getattr(self.function, "__wrapped__", None)
        if type(self.function) is not Relay or run is None:
            return None
        args = copied(self.args)
        expected = self.answer(lambda _: run(*args))
        if expected.raised and not self.reference.raised:
            self.tell(
                f"  Python does not run it ({expected}); the inferred program is what the others are compared with"
            )
            return None
        expected.models = self.reference.models  # Python has its own
        problem = different(expected, self.reference, (self.tolerance, False))
        if problem is None:
            self.tell("  Python: the same")
            return None
        if different(expected, self.reference, (self.tolerance, True)) is None:
            self.tell(f"  Python: the same but for rounding ({problem})")
            return None
        self.tell(f"  Python: {expected}")
        self.tell(f"The inferred program is already wrong: {problem}.")
        self.tell(
            "The fault is in the front end, in inference or in a primitive's reference implementation; look at the program with"
        )
        self.tell(f"  print({self.name}.ir(*args, stage='inferred'))")
        return Finding("inferred", after=first.graph, problem=problem)

    def among_graphs(self) -> Finding | None:
        """The first graph whose answer differs."""
        before, stage, passes = self.steps[0], "inferred", 0
        for position, step in enumerate(self.steps[1:], 1):
            passes += step.step is not None
            where = f"{step.name}, after {stage}" if step.step is not None else f"{step.name} ({passes} passes)"
            if step.source is not before.source:
                answer = self.interpret(step)
                if answer.raised and isinstance(answer.value, InternalError):
                    self.tell(f"  {where}: the interpreter cannot run it ({answer})")
                    continue
                problem = self.differ(answer, step.derived or before.derived)
                if problem is not None:
                    self.tell(f"  {where}: {answer}")
                    return self.blame(position, before, step, problem, stage)
            if step.step is None:
                self.tell(f"  {where}: the same")
                stage, passes = step.name, 0
            before = step
        if passes:
            self.tell(f"  after {stage} ({passes} passes): the same")
        return None

    def blame(self, position: int, before: Step, step: Step, problem: str, stage: str) -> Finding:
        found = Finding(step.name, before=before.graph, after=step.graph, problem=problem)
        kind = "the stage" if step.step is None else "the pass"
        self.tell(
            f"The answer changes after {kind} {step.name!r} (graph {position + 1} of {len(self.steps)}, after {stage!r}):"
        )
        self.tell(f"  {problem}")
        if isinstance(step.step, Simplify):
            found.rules = self.rules_at_fault(before, step)
            for name in found.rules:
                self.tell(f"Without the rewrite rule {name!r} the answer stays.")
        self.tell("What it changed:")
        for line in shortened_diff(before.graph, step.graph):
            self.tell(f"  {line}")
        self.tell(
            "To look further: --dump FOLDER writes the graphs before and after it; MYIA_RELAY_DEBUG=1 verifies each graph."
        )
        if step.name in OPTIMISATIONS:
            self.tell(f"{VARIABLE}={step.name} leaves the pass out.")
        elif step.step is None:
            self.tell(f"{self.name}.ir(*args, stage={step.name!r}) is the program after it.")
        return found

    def rules_at_fault(self, before: Step, step: Step) -> list[str]:
        """The rewrite rules without which a simplification keeps the answer."""
        simplify: Simplify = step.step
        rules = simplify.table().rules
        fired: dict[str, None] = {}
        simplify.by(Table(*(recorded(rule, fired) for rule in rules)), before.graph)
        found = []
        for name in fired:
            graph = simplify.by(Table(*(r for r in rules if r.name != name)), before.graph)
            if self.differ(self.interpret(step, graph), step.derived) is None:
                found.append(name)
        return found

    def against_native(self) -> Finding | None:
        """Compare with native code; if it differs, without one optimisation after the other."""
        answer = self.native(self.compiled)
        problem = self.differ(answer, True)
        if problem is None:
            self.tell("  native: the same")
            return None
        self.tell(f"  native: {answer}")
        self.tell("All graphs agree, native code differs:")
        self.tell(f"  {problem}")
        found = Finding("native", before=self.steps[-1].graph, problem=problem)
        outside = os.environ.get(VARIABLE, "")
        for name in OPTIMISATIONS:
            if name in outside.split(","):
                continue
            with environment(VARIABLE, ",".join(filter(None, (outside, name)))):
                try:
                    compiled, _ = self.compile()
                except CompileError:
                    continue
            if self.differ(self.native(compiled), True) is None:
                found.switches.append(name)
                self.tell(f"Native code is right with {VARIABLE}={name} ({OPTIMISATIONS[name]}).")
        if not found.switches:
            self.tell(f"No single optimisation of {VARIABLE} makes it right: the fault is in the lowering itself.")
        self.tell(
            f"To look further: --dump FOLDER writes the graph that is lowered; print({self.name}.tir(*args)) is what it becomes."
        )
        return found


def out_count(out: Any) -> int:
    """How many leaves a graph has returned."""
    return len(out) if isinstance(out, tuple | list) else 1


def recorded(rule: Rule, fired: dict[str, None]) -> Rule:
    """A rule that records its name when it is applied."""

    def replacement(match: Match) -> Any:
        found = rule.replacement(match) if callable(rule.replacement) else build_pattern(rule.replacement, match)
        if found is not None:
            fired[rule.name] = None
        return found

    return dataclasses.replace(rule, replacement=replacement)


def shortened_diff(before: Graph, after: Graph) -> list[str]:
    """The lines in which the texts of two graphs differ, up to a limit."""
    old, new = to_text(before).splitlines(), to_text(after).splitlines()
    lines = list(difflib.unified_diff(old, new, "before", "after", lineterm="", n=1))
    if len(lines) > DIFF_LINES:
        lines = [*lines[:DIFF_LINES], f"... and {len(lines) - DIFF_LINES} lines more"]
    return lines


@contextlib.contextmanager
def environment(variable: str, value: str) -> Iterator[None]:
    """Set an environment variable temporarily."""
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


# Comparing answers. `how` is (tolerance or None, whether floats are compared by it).


def different(expected: Answer, found: Answer, how: tuple[float | None, bool]) -> str | None:
    """The difference between two answers; None if there is none."""
    if expected.raised or found.raised:
        same = expected.raised and found.raised and type(expected.value) is type(found.value)
        if not same or str(expected.value) != str(found.value):
            return f"{expected} became {found}"
    else:
        problem = unlike(expected.value, found.value, how, "the result")
        if problem is not None:
            return problem
    if expected.printed != found.printed:
        return f"what is printed: {_SHORT.repr(expected.printed)} became {_SHORT.repr(found.printed)}"
    return unlike(expected.models, found.models, how, "the parameters of models")


def unlike(a: Any, b: Any, how: tuple[float | None, bool], where: str) -> str | None:
    """Where and how two values differ; None if they do not."""
    numbers = bool | int | float | complex | np.generic | np.ndarray
    if isinstance(a, numbers) and isinstance(b, numbers):
        return unlike_numbers(np.asarray(a), np.asarray(b), how, where)
    if isinstance(a, ReturnedFunction) and isinstance(b, ReturnedFunction):
        return unlike(list(a.leaves), list(b.leaves), how, f"what {where} captured")
    functions = FunctionType | BuiltinFunctionType | MethodType | Relay
    if isinstance(a, functions) and isinstance(b, functions | ReturnedFunction):
        return None  # the captured values of a Python function are not compared
    if type(a) is not type(b):
        return f"{where}: {_SHORT.repr(a)} became {_SHORT.repr(b)}"
    if (arrays := getattr(a, "arrays", None)) is not None:  # a model
        return unlike(arrays, getattr(b, "arrays", None), how, where)
    if isinstance(a, dict):
        if list(a) != list(b):
            return f"{where}: the keys {_SHORT.repr(list(a))} became {_SHORT.repr(list(b))}"
        pairs = [(f"{where}[{k!r}]", a[k], b[k]) for k in a]
    elif isinstance(a, tuple | list):
        if len(a) != len(b):
            return f"{where}: {len(a)} elements became {len(b)}"
        pairs = [(f"{where}[{k}]", x, y) for k, (x, y) in enumerate(zip(a, b))]
    elif dataclasses.is_dataclass(a):
        pairs = [(f"{where}.{f.name}", getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)]
    elif isinstance(a, str | bytes | None) and a != b:
        return f"{where}: {_SHORT.repr(a)} became {_SHORT.repr(b)}"
    else:
        return None
    return next((p for place, x, y in pairs if (p := unlike(x, y, how, place)) is not None), None)


def unlike_numbers(a: np.ndarray, b: np.ndarray, how: tuple[float | None, bool], where: str) -> str | None:
    """`unlike`, of numbers and arrays of numbers."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{where}: {a.dtype}{list(a.shape)} became {b.dtype}{list(b.shape)}"
    tolerance, loose = how
    if a.dtype.kind in "biuO":
        equal = np.asarray(a == b)
    else:
        precision = float(np.finfo(a.dtype).eps) if a.dtype.kind in "fc" else 2.0**-7
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        with np.errstate(all="ignore"):
            equal = (x == y) | (np.isnan(x) & np.isnan(y))
            if loose:
                allowed = max(TOLERANCE, 64 * precision) if tolerance is None else tolerance
                size = np.max(np.where(np.isfinite(x), np.abs(x), 0), initial=0)  # rounding is relative to the largest
                equal |= np.abs(x - y) <= allowed * size
            elif wide is np.float64:
                equal &= (np.signbit(x) == np.signbit(y)) | np.isnan(x)
    if equal.all():
        return None
    at = tuple(int(k) for k in np.argwhere(~equal)[0])
    place = f"{where}[{', '.join(map(str, at))}]" if at else where
    return f"{place}: {a[at].item()!r} became {b[at].item()!r}"
