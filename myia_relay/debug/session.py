"""A debugging session: a program that is run line by line. `f.debug(*args)` returns one.

Idea: the program is parsed with marks at its statements and differentiated with counterparts of these marks in the backward pass
(`frontend.marks`, `ad.reverse.reverse`). The reference interpreter is suspended at each mark (`debug.suspended`). A session follows
the marks, keeps the stack of the user's functions with their variables, and decides at which of them to stop: as `bdb` does.

A line of the backward pass is shown when it has been gone through: the cotangents that have arrived at what it assigns, and those
that leave for what it reads.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..utils.debugging import debugging
from ..utils.errors import SliceBeyond, ValueError_, nearest
from ..utils.raising import for_user
from .frames import Breakpoint, StackFrame
from .gradients import RESULT, Gradients
from .suspended import Reached


@dataclass
class MarkedRun:
    """A program that is ready to be run from mark to mark.

    Attributes:
        marks: the run; its value is what the program's graph computes.
        finish: makes the result for the user of that.
        retry: `(SliceBeyond) -> MarkedRun`: the same program, compiled for a slice that reaches beyond its axis.
    """

    marks: Generator[Reached, None, Any]
    finish: Callable[[Any], Any]
    retry: Callable[[SliceBeyond], MarkedRun]


class Session:
    """A program that is run line by line; what `f.debug(*args)` returns.

    It computes what a call computes, by the reference interpreter, and is slow: for looking, not for running. Models and
    arguments stay as they are, whatever the program does to them. `interact()` debugs in the terminal, with the commands of `pdb`.

    Attributes:
        event: "line" (before a line; in the backward pass: after its adjoint), "call", "return", "exception", "end".
        finished: whether the program has ended.
        value: what it has returned.
        exception: what it has raised; the session then stands where that happened.
        stack: the calls in progress, outermost first.
        frame: the one that `line`, `locals` and the others below look at: the innermost, until `up` or `down` chooses another.
        breakpoints: by number.
        gradients: of variables, by name: see `debug.gradients.Gradients`.
    """

    def __init__(self, name: str, begin: Callable[[bool], MarkedRun]):
        self.name = name
        self.library = False
        self.breakpoints: dict[int, Breakpoint] = {}
        self._begin = begin
        self._numbers = 0
        self._home = ""  # the file of the function that is called first
        self.restart()

    # Where it stands.

    @property
    def frame(self) -> StackFrame | None:
        """The call that is looked at; None at the end."""
        return self.stack[self._index] if self.stack else None

    @property
    def line(self) -> int | None:
        """The number of the line; None at the end."""
        return self.frame.line if self.frame else None

    @property
    def file(self) -> str | None:
        """The file; None at the end."""
        return self.frame.file if self.frame else None

    @property
    def function(self) -> str | None:
        """The name of the function; None at the end."""
        return self.frame.function if self.frame else None

    @property
    def source(self) -> str:
        """The text of the line."""
        return self.frame.source if self.frame else ""

    @property
    def backward(self) -> bool:
        """Whether it is in a backward pass."""
        return self.frame is not None and self.frame.backward

    @property
    def locals(self) -> dict[str, Any]:
        """The variables with their values of now. In a backward pass `d_x` is the cotangent of `x`."""
        return self.frame.locals if self.frame else {}

    @property
    def cotangents(self) -> dict[str, Any]:
        """The cotangents of variables that have arrived so far in this call, by the variables' names."""
        return dict(self.frame.cotangents) if self.frame else {}

    @property
    def arrived(self) -> dict[str, Any]:
        """The cotangents that arrived at what this line of the backward pass assigns."""
        return dict(self.frame.arrived) if self.frame else {}

    @property
    def left(self) -> dict[str, Any]:
        """The cotangents of what this line of the backward pass reads, with what it has added."""
        return dict(self.frame.left) if self.frame else {}

    def __repr__(self) -> str:
        if self.event == "end":
            return f"<debugging {self.name}: ended>"
        if self.event == "exception":
            return f"<debugging {self.name}: {type(self.exception).__name__} at {self.frame}>"
        return f"<debugging {self.name}: {self.event} {self.frame}: {self.source}>"

    def evaluate(self, expression: str) -> Any:
        """The value of a Python expression of the variables; computed by Python itself, it cannot change the program."""
        frame = self.frame
        names: dict[str, Any] = {"__builtins__": __builtins__}
        if frame is not None:
            names |= {**frame.globals, **frame.locals}
        return eval(expression, names)  # an expression of the user's own

    # Going on.

    def step(self, count: int = 1) -> Session:
        """Go to the next line, into calls: also where functions begin and return."""
        return self._repeat(count, lambda: lambda: True)

    def next(self, count: int = 1) -> Session:
        """Go to the next line of this function, or to where it returns."""
        return self._repeat(count, self._not_deeper)

    def finish(self) -> Session:
        """Go to where this function returns; in the backward pass to where its backward pass ends."""
        here = self.frame
        return self._go(lambda: self.event == "return" and self.stack[-1] is here)

    def until(self, line: int | None = None) -> Session:
        """Go to a line after this one (or at or after `line`) in this function, or to where it returns: out of loops.

        In the backward pass lines come in the opposite order: before this one, or at or before `line`.
        """
        here, now = self.frame, self.line or 0

        def reached() -> bool:
            top = self.stack[-1]
            if top is not here:
                return self.event != "call" and len(self.stack) < depth
            if line is None:
                return self.event == "return" or (top.line < now if top.backward else top.line > now)
            return self.event == "return" or (top.line <= line if top.backward else top.line >= line)

        depth = len(self.stack)
        return self._go(reached)

    def run_to(self, line: int, file: str | None = None) -> Session:
        """Go on until a line, or a breakpoint."""
        mark = self._breakpoint(line, file)
        return self._go(lambda: self._is_at(mark))

    def cont(self) -> Session:
        """Go on until a breakpoint, an exception or the end."""
        return self._go(lambda: False)

    def restart(self, library: bool | None = None) -> Session:
        """Begin again, with the same arguments and breakpoints.

        Args:
            library: whether functions of this package that are written in the language, such as `np.sort` or a layer, are
                stepped into; None: as before. In a new session they are single steps.
        """
        self.library = self.library if library is None else library
        self.event, self.finished = "call", False
        self.value: Any = None
        self.exception: BaseException | None = None
        self.stack: list[StackFrame] = []
        self.gradients = Gradients()
        self._index = -1
        self._at: StackFrame | None = None  # the call whose line was reached, while nothing else has happened
        self._first = False  # whether this is the first line of a call
        self._count = 0
        self._leaving = False
        self._run = self._begin(self.library)
        return self._go(lambda: self.event == "line")

    def up(self, count: int = 1) -> Session:
        """Look at the caller."""
        self._index = min(max(self._index - count, -len(self.stack)), -1)
        return self

    def down(self, count: int = 1) -> Session:
        """Look at the function that this one has called."""
        return self.up(-count)

    def interact(self, stdin: Any = None, stdout: Any = None) -> None:
        """Debug in the terminal, with the commands of `pdb`; `help` lists them.

        Args:
            stdin, stdout: files to read commands from and to write to, in place of the terminal.
        """
        from .terminal import Terminal

        Terminal(self, stdin, stdout).run()

    # Breakpoints.

    def break_at(
        self, where: int | str | Callable, condition: str | None = None, *, file: str | None = None, temporary=False
    ) -> Breakpoint:
        """Stop before a line, and when the backward pass has gone through it; or where a function begins.

        Args:
            where: the number of a line; "file.py:12"; a function, or the name of one.
            condition: a Python expression of the variables. One that reads a cotangent, `d_x`, holds in backward passes only.
            file: the file of the line; by default the one that the session stands in.
            temporary: whether to stop there once only.

        Raises:
            ValueError_: there is no such line in the program, or the condition is no expression.
        """
        if condition is not None:
            try:
                compile(condition, "<condition>", "eval")
            except SyntaxError as error:
                raise ValueError_(f"condition={condition!r} is no expression: {error.msg}") from None
        mark = self._breakpoint(where, file)
        mark.condition, mark.temporary = condition, temporary
        self._numbers += 1
        mark.number = self._numbers
        self.breakpoints[mark.number] = mark
        return mark

    def clear(self, mark: Breakpoint | int | None = None) -> None:
        """Remove a breakpoint, or all.

        Raises:
            ValueError_: there is no such breakpoint.
        """
        if mark is None:
            self.breakpoints.clear()
            return
        number = mark.number if isinstance(mark, Breakpoint) else mark
        if self.breakpoints.pop(number, None) is None:
            raise ValueError_(f"there is no breakpoint number {number}")

    def _breakpoint(self, where: Any, file: str | None) -> Breakpoint:
        if callable(where) or isinstance(where, str) and where.isidentifier():
            return Breakpoint(0, None, None, where if isinstance(where, str) else getattr(where, "__name__", "?"))
        if isinstance(where, str):
            file, _, number = where.rpartition(":")
            if not number.isdigit():
                raise ValueError_(f"{where!r} is no place: give a line, a function, or file:line")
            where = int(number)
        if not isinstance(where, int):
            raise ValueError_(f"{where!r} is no place: give a line, a function, or file:line")
        file = _found(file, self._files or [self._home]) if file else (self.file or self._home)
        text = linecache.getline(file, where)
        if not text:
            raise ValueError_(f"{file} has no line {where}")
        if not text.strip() or text.strip().startswith("#"):
            raise ValueError_(f"line {where} of {os.path.basename(file)} is blank or a comment")
        return Breakpoint(0, file, where, None)

    @property
    def _files(self) -> list[str]:
        return list(dict.fromkeys(frame.file for frame in reversed(self.stack)))

    def _is_at(self, mark: Breakpoint) -> bool:
        """Whether it stands at a breakpoint, whatever its condition."""
        top = self.stack[-1]
        if mark.function is not None:
            begins = self.event == "call" if top.backward else self.event == "line" and self._first
            return begins and top.function == mark.function
        return self.event == "line" and top.line == mark.line and top.file == mark.file

    def _hit(self) -> bool:
        """Whether to stop at a breakpoint here."""
        for mark in [m for m in self.breakpoints.values() if m.enabled and self._is_at(m)]:
            if mark.condition is not None:
                try:
                    if not self.evaluate(mark.condition):
                        continue
                except NameError as error:
                    if str(getattr(error, "name", "")).startswith("d_") and not self.backward:
                        continue
                except (Exception, SystemExit):
                    pass  # as in pdb: it stops, so that one sees why
            mark.hits += 1
            if mark.ignore > 0:
                mark.ignore -= 1
                continue
            if mark.temporary:
                del self.breakpoints[mark.number]
            return True
        return False

    # Following the marks.

    def _not_deeper(self) -> Callable[[], bool]:
        depth = len(self.stack)
        return lambda: len(self.stack) <= depth

    def _repeat(self, count: int, condition: Callable[[], Callable[[], bool]]) -> Session:
        for _ in range(count):
            if self.finished:
                break
            self._go(condition())
        return self

    def _go(self, stop: Callable[[], bool]) -> Session:
        """Go on until it is to stop, and stand there.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed; the session stands at the next line, and can go on.
        """
        self._index = -1
        with _interrupts() as interrupted:
            while not self.finished:
                self._advance()
                if self.finished or interrupted or stop() or self._hit():
                    break
        if interrupted and not self.finished:
            raise KeyboardInterrupt
        return self

    def _advance(self) -> None:
        """Go to the next event."""
        while not self.finished:
            if self._leaving:
                self._leaving = False
                self.stack.pop()
            mark = self._next_mark()
            if mark is not None and self._follow(mark):
                return

    def _next_mark(self) -> Reached | None:
        try:
            with np.errstate(all="ignore"):
                mark = next(self._run.marks)
        except StopIteration as end:
            self.event, self.finished, self.stack = "end", True, []
            self.value = self._run.finish(end.value)
            return None
        except SliceBeyond as beyond:
            return self._again(beyond)
        except BaseException as error:
            if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
                error = error.__cause__  # generators cannot raise it
            self.event, self.finished, self.exception = "exception", True, for_user(error, debugging())
            if isinstance(error, KeyboardInterrupt):
                raise
            return None
        self._count += 1
        return mark

    def _again(self, beyond: SliceBeyond) -> Reached | None:
        """Run the program for a slice that is cut off, up to where this one stopped."""
        try:
            self._run = self._run.retry(beyond)
        except Exception as error:
            self.event, self.finished, self.exception = "exception", True, for_user(error, debugging())
            return None
        with np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()):
            for _ in range(self._count):
                next(self._run.marks)
        return self._next_mark()

    def _follow(self, mark: Reached) -> bool:
        """Take a mark in; returns whether it is an event."""
        return self._follow_backward(mark) if mark.backward else self._follow_forward(mark)

    def _follow_forward(self, mark: Reached) -> bool:
        place = mark.place
        if place.kind == "call":
            self._enter(mark, place.binds)
            self.stack[-1].variables.update(mark.values)
            self.gradients.note(mark)
            return self._event("call")
        top = self.stack[-1]
        if place.kind == "line":
            again = self._at is top and top.line == mark.loc.line
            top.line = mark.loc.line
            top.variables.update(mark.values)
            if again:  # the head of a loop, which has just been looked at
                return False
            self._at = top
            return self._event("line")
        self._at = None
        if place.kind == "done":
            top.variables.update({n: v for n, v in mark.values.items() if n != RESULT})
            self.gradients.note(mark)
            return False
        top.returned = mark.values.get(RESULT)
        self._leaving = True
        return self._event("return")

    def _follow_backward(self, mark: Reached) -> bool:
        place = mark.place
        if place.kind == "return":
            self._enter(mark, ())
            self._take(mark)
            self.stack[-1].line, self.stack[-1].arrived = mark.loc.end_line, dict(mark.cotangents)
            return self._event("call")
        top = self.stack[-1]
        self._take(mark)
        if place.kind == "done":
            self.gradients.record(mark)
            top.arrived = {n: ct for n, ct in mark.cotangents.items() if n in mark.given and n in place.binds}
            if top.arrived:
                top.line, top.reached, top.left = mark.loc.line, mark.loc, {}
            return False
        if place.kind == "call":
            self.gradients.record(mark)
            top.line, top.arrived = mark.loc.line, {}
            top.left = {n: ct for n, ct in mark.cotangents.items() if n in place.binds}
            self._leaving = True
            return self._event("return")
        if not top.arrived or top.reached != mark.loc:
            return False
        top.line, top.reached = mark.loc.line, None
        top.left = {n: ct for n, ct in mark.cotangents.items() if n in mark.given}
        return self._event("line")

    def _take(self, mark: Reached) -> None:
        top = self.stack[-1]
        top.variables.update({n: v for n, v in mark.values.items() if n != RESULT})
        top.cotangents.update(mark.cotangents)

    def _enter(self, mark: Reached, parameters: tuple[str, ...]) -> None:
        self.stack.append(StackFrame(mark.place, mark.loc, mark.loc.line, mark.backward, parameters=parameters))
        self._at = None
        self._home = self._home or mark.loc.file

    def _event(self, event: str) -> bool:
        self._first = event == "line" and self.event == "call"
        self.event = event
        return True


def _found(file: str, known: list[str]) -> str:
    """A file of the program that is meant by a name: as it is, or the end of its path.

    Raises:
        ValueError_: there is no such file.
    """
    if file in known or os.path.exists(file):
        return file if file in known else os.path.abspath(file)
    for other in known:
        if other.endswith(os.sep + file) or os.path.splitext(os.path.basename(other))[0] == file:
            return other
    raise ValueError_(f"there is no file {file!r}{nearest(file, [os.path.basename(k) for k in known])}")


@contextlib.contextmanager
def _interrupts() -> Iterator[list]:
    """Record Ctrl-C, so that the program stops at its next line; if it is pressed again, it is as always.

    Only the main thread receives signals.
    """
    noted: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.getsignal(signal.SIGINT)
    if not callable(before):
        yield noted
        return

    def note(number: int, frame: Any) -> None:
        if noted:
            before(number, frame)
        noted.append(True)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
