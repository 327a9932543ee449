"""Random programs in every executor: each is inferred and optimised once, as `Relay` does, and run in four ways.

"plain" is the interpreter on the graph as inference left it, before the optimiser; the others run the optimised graph.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from myia_relay import CompileError, ShapeError, relay
from myia_relay.ad.expand import expand
from myia_relay.api import Relay
from myia_relay.ir.verify import verify
from myia_relay.opt.pipeline import optimize
from myia_relay.opt.rewrite.call_paths import tell_callers
from myia_relay.pipeline import Compiled, executor_of, refuse_recursion, without_references
from myia_relay.utils.errors import InternalError

from .generator.writer import Writer
from .oracle import Oracle, Outcome, call
from .verdicts import judge

EXECUTORS = ("plain", "interpreter", "python", "native")
CALLS = 4


@dataclass
class Verdict:
    """What became of a program.

    Attributes:
        kind: "same", "refused", "failed" or "invalid" (a mistake of the generator).
        detail: the message of a refusal, or what is wrong.
        executor: which failed.
        args: the arguments it failed with.
        seen: counts of exceptions and results under CPython.
    """

    kind: str
    detail: str = ""
    executor: str = ""
    args: tuple = ()
    seen: Counter = field(default_factory=Counter)


class Shared(Relay):
    """A decorated function whose inference and optimisation serve several executors.

    Args:
        function: the Python function.
        executor: one of `EXECUTORS`.
        done: what was inferred already, by signature.
        thorough: verify the graph after each pass.
    """

    def __init__(self, function, executor: str, done: dict, thorough: bool = False):
        super().__init__(function, executor="interpreter" if executor == "plain" else executor)
        self.way, self.done, self.thorough = executor, done, thorough

    def _compile(self, treedefs, keywords, keep: bool = False, structural: bool = False) -> Compiled:
        key = (tuple(treedefs), keywords, structural, self._cuts.of((tuple(treedefs), keywords), structural))
        if key not in self.done:
            program = self._infer(treedefs, keywords, structural)
            verify(program.graph, "infer")
            simple = optimize(program.graph, check=self.thorough)
            refuse_recursion(simple)
            final = without_references(tell_callers(optimize(expand(simple), check=self.thorough)))
            self.done[key] = program, final, self._uses_data
        program, (graph, returned), self._uses_data = self.done[key]
        if self.way == "plain":
            graph, returned = without_references(expand(program.graph))
        run = executor_of(graph, self.options["executor"], self.options)
        return Compiled(program, run, {"final": graph}, returned)


def is_refusal(error: BaseException | None) -> bool:
    """Whether an exception says, at compile time, that the language does not have something."""
    return isinstance(error, CompileError) and not isinstance(error, InternalError)


def meets(got: Outcome) -> bool:
    """Whether an exception says, at run time, that sizes do not agree: NumPy would repeat an axis whose size is 1."""
    return isinstance(got.error, ShapeError) and "meet in axis" in str(got.error) and got.line is not None


def check(
    text: str, calls: list[tuple], file: str, executors=None, shared: bool = True, thorough: bool = False
) -> Verdict:
    """Run a program in every executor and compare with CPython.

    Args:
        text: its source.
        calls: tuples of arguments, all of the same types.
        file: a name for the source.
        executors: which to run; by default all, "plain" only where `shared`.
        shared: infer and optimise once for all executors.
        thorough: verify the graph after each pass.
    """
    oracle = Oracle(text, file)
    wants = [oracle.outcome(args) for args in calls]
    seen: Counter = Counter()
    for want, beyond in wants:
        error = want.error if want is not None else None
        seen["beyond 64 bits" if beyond else type(error).__name__ if error else "returned"] += 1
        mistake = isinstance(error, (TypeError, NameError, AttributeError, SyntaxError))
        if mistake and not re.search("associated with a value|referenced before", str(error)):
            return Verdict("invalid", f"{type(error).__name__}: {error}", args=calls[0])
    done: dict = {}
    for executor in executors or EXECUTORS[0 if shared else 1 :]:
        compiled = (
            Shared(oracle.function, executor, done, thorough) if shared else relay(executor=executor)(oracle.function)
        )
        for args, (want, beyond) in zip(calls, wants):
            got: Outcome = call(compiled, args, file)
            if meets(got) and want is not None and isinstance(want.error, ValueError) and got.line == want.line:
                continue  # NumPy raises it too, in other words
            drawn = want is not None and isinstance(want.error, ShapeError) and isinstance(got.error, ValueError)
            if drawn and got.line == want.line:
                continue  # a draw that is a call of its own refuses its shape when it is compiled
            if is_refusal(got.error):
                if meets(got) and not beyond and not re.search(r"sizes (1 and|\d+ and 1\b)", str(got.error)):
                    return Verdict("failed", f"{got.error} instead of {want}", executor, args, seen)
                if not got.error.loc:
                    return Verdict("failed", f"a refusal without a place: {got.error}", executor, args, seen)
                return Verdict("refused", f"{got.error.message}\n{got.error}", executor, args, seen)
            if isinstance(got.error, InternalError):
                return Verdict("failed", str(got.error), executor, args, seen)
            if isinstance(got.error, TypeError) and "the loop ran no iteration, so it kept" in str(got.error):
                return Verdict("refused", str(got.error), executor, args, seen)  # at run time, as only that tells
            if isinstance(got.error, IndexError) and re.match("(a )?slice ", str(got.error)) and not beyond:
                if not isinstance(got.error.__cause__, CompileError) and "print(" not in text:
                    return Verdict("failed", f"a slice is not cut off: {got.error}", executor, args, seen)
                return Verdict("refused", str(got.error), executor, args, seen)
            empty = r"index -?\d+ (is out of bounds for axis \d+ with size 0)$"
            if want is not None and re.sub(empty, r"\1", str(want.error)) == re.sub(empty, r"\1", str(got.error)):
                if isinstance(want.error, IndexError) and got.line == want.line:
                    continue  # no position fits; which of several is named is not specified
            wrong = judge(oracle, args, got, want, beyond)
            if wrong:
                return Verdict("failed", wrong, executor, args, seen)
    return Verdict("same", seen=seen)


def program_of(draw) -> tuple[str, list[tuple]]:
    """A random program and arguments for it."""
    writer = Writer(draw)
    text = writer.text()
    return text, [writer.arguments() for _ in range(CALLS)]
