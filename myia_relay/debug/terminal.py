"""Debugging in the terminal: a session with the commands, the abbreviations and the output of `pdb`."""

from __future__ import annotations

import cmd
import linecache
import pprint
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from ..utils.errors import CompileError
from .frames import Breakpoint, StackFrame

CONTEXT = 11  # lines that `list` shows
WIDTH = 60  # characters of a value that is shown unasked
ENDED = "The program has ended: 'restart' runs it again, 'q' leaves."


class Terminal(cmd.Cmd):
    """The commands of `pdb` on a session.

    Args:
        session: what is debugged: a `debug.session.Session`.
        stdin, stdout: files in place of the terminal.
    """

    prompt = "(relay) "
    doc_header = "Commands (type help <command>)"

    def __init__(self, session: Any, stdin: Any = None, stdout: Any = None):
        super().__init__(completekey="tab", stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.session = session
        self._listed: int | None = None  # the last line that `list` has shown
        self._shown: dict[str, str] = {}  # `display`

    def run(self) -> None:
        """Read and obey commands until one leaves."""
        self.show_place()
        while True:
            try:
                self.cmdloop()
                return
            except KeyboardInterrupt:
                self.say("--KeyboardInterrupt--")

    def say(self, text: str = "") -> None:
        """Write a line."""
        self.stdout.write(text + "\n")

    def error(self, text: str) -> None:
        """Write what is wrong."""
        self.say(f"*** {text}")

    # What the loop asks for.

    def onecmd(self, line: str) -> bool:
        """Obey a command; whatever goes wrong is said, and is no reason to leave."""
        try:
            return bool(super().onecmd(line))
        except KeyboardInterrupt:
            if self.session.finished:
                self.say("\nProgram interrupted: it has ended.")
            else:
                self.say("\nProgram interrupted.")
                self.show_place()
        except CompileError as error:
            self.error(error.message)
        except (Exception, SystemExit) as error:  # an expression may ask to exit
            self.error(_described(error))
        return False

    def parseline(self, line: str) -> tuple[str | None, str | None, str]:
        """`!x` and `x = 1` are expressions, not commands named so."""
        stripped = line.strip()
        if stripped.startswith("!"):
            return None, None, stripped[1:].strip()
        command, rest, whole = super().parseline(line)
        if command and rest and rest.lstrip().startswith(("=", "(", "[", ".")) and command in self.session.locals:
            return None, None, whole  # `n[0]`, where n is a variable
        return command, rest, whole

    def default(self, line: str) -> None:
        """Anything else is an expression."""
        try:
            value = self.session.evaluate(line)
        except SyntaxError as error:
            if _is_statement(line):
                self.error(
                    "this is a statement: the program cannot be changed while it runs; an expression shows its value"
                )
            else:
                self.error(_described(error))
            return
        except (Exception, SystemExit) as error:
            self.error(_described(error))
            return
        if value is not None:
            self.say(repr(value))

    def emptyline(self) -> bool:
        """An empty line repeats the last command."""
        return self.onecmd(self.lastcmd) if self.lastcmd else False

    def completedefault(self, text: str, *ignored: Any) -> list[str]:
        """Names of variables."""
        frame = self.session.frame
        names = [*self.session.locals, *(frame.globals if frame else ())]
        return sorted(n for n in set(names) if n.startswith(text))

    # What is shown.

    def show_place(self) -> None:
        """Where the session stands, as pdb says it; in the backward pass with what arrives and leaves."""
        session, frame = self.session, self.session.frame
        self._listed = None
        if session.event == "exception":
            self.say("".join(traceback.format_exception_only(session.exception)).strip())
        if session.event == "end":
            self.say(f"The program has ended, with {_short(session.value)}")
            return
        if frame is None:
            return
        innermost = frame is session.stack[-1]
        if innermost and session.event in ("call", "return"):
            self.say(f"--{session.event.title()}--")
        value = ""
        if innermost and session.event == "return" and not frame.backward:
            value = f"->{_short(frame.returned)}"
        self.say(f"> {frame}{value}")
        self.say(f"-> {frame.source}")
        if innermost and frame.backward:
            if session.event != "return":
                self.say(f"   arrives: {_cotangents(frame.arrived)}")
            if session.event in ("line", "return"):
                self.say(f"   leaves:  {_cotangents(frame.left)}")
        self.show_displayed()

    def show_displayed(self) -> None:
        """The expressions of `display` that have changed."""
        for expression, old in self._shown.items():
            new = self._value_text(expression)
            if new != old:
                self.say(f"display {expression}: {new}  [old: {old}]")
                self._shown[expression] = new

    def _value_text(self, expression: str) -> str:
        try:
            return repr(self.session.evaluate(expression))
        except (Exception, SystemExit) as error:
            return f"** {_described(error)} **"

    def show_lines(self, first: int, last: int) -> None:
        """Lines of the file, with the one where the session stands and breakpoints marked."""
        frame = self.session.frame
        assert frame is not None
        stops = {b.line for b in self.session.breakpoints.values() if b.file == frame.file and b.enabled}
        for number in range(max(first, 1), last + 1):
            text = linecache.getline(frame.file, number)
            if not text:
                self.say("[EOF]")
                return
            flags = ("B" if number in stops else " ") + ("->" if number == frame.line else "  ")
            self.say(f"{number:>4} {flags}\t{text.rstrip()}".rstrip())
            self._listed = number

    # Going on.

    def going(self, go: Callable[[], Any]) -> None:
        """Let the program go on, and say where it stands."""
        if self.session.finished:
            self.say(ENDED)
            return
        go()
        self.show_place()

    def do_step(self, arg: str) -> None:
        """s(tep) [count]: go to the next line, into calls."""
        self.going(lambda: self.session.step(_count(arg)))

    def do_next(self, arg: str) -> None:
        """n(ext) [count]: go to the next line of this function, or to where it returns."""
        self.going(lambda: self.session.next(_count(arg)))

    def do_return(self, arg: str) -> None:
        """r(eturn): go to where this function returns."""
        self.going(self.session.finish)

    def do_continue(self, arg: str) -> None:
        """c(ont(inue)): go on until a breakpoint, an exception or the end."""
        self.going(self.session.cont)

    def do_until(self, arg: str) -> None:
        """unt(il) [line]: go on in this function to a line after this one, or at or after the given one: out of loops."""
        self.going(lambda: self.session.until(int(arg) if arg else None))

    def do_restart(self, arg: str) -> None:
        """restart, run: begin again, with the same arguments and breakpoints."""
        self.session.restart()
        self.show_place()

    def do_library(self, arg: str) -> None:
        """library: begin again, and step into functions of this package too; once more: over them, as before."""
        self.session.restart(library=not self.session.library)
        self.show_place()

    def do_jump(self, arg: str) -> None:
        """j(ump) is not possible: the program is compiled, and its lines have an order."""
        self.error("the program cannot jump: its control flow is compiled; use 'until', 'tbreak' or 'restart'")

    def do_quit(self, arg: str) -> bool:
        """q(uit), exit: leave; the program is not run to its end."""
        return True

    def do_EOF(self, arg: str) -> bool:
        """The end of the input leaves."""
        self.say()
        return True

    # Breakpoints.

    def do_break(self, arg: str) -> None:
        """b(reak) [[file:]line | function] [, condition]: stop there, in the forward and in the backward pass; without
        arguments: list all breakpoints. A condition that reads a cotangent, d_x, holds in backward passes only.
        """
        self._break(arg, False)

    def do_tbreak(self, arg: str) -> None:
        """tbreak [[file:]line | function] [, condition]: stop there once."""
        self._break(arg, True)

    def _break(self, arg: str, temporary: bool) -> None:
        if not arg:
            for mark in self.session.breakpoints.values():
                self.say(str(mark))
            return
        where, _, condition = (part.strip() for part in arg.partition(","))
        place: Any = int(where) if where.isdigit() else where
        mark = self.session.break_at(place, condition or None, temporary=temporary)
        self.say(f"{'Temporary breakpoint' if temporary else 'Breakpoint'} {mark.number} at {_where(mark)}")

    def do_clear(self, arg: str) -> None:
        """cl(ear) [number ...]: remove breakpoints; without arguments all of them."""
        numbers = [self._mark(number) for number in arg.split()] or list(self.session.breakpoints.values())
        for mark in numbers:
            self.session.clear(mark)
            self.say(f"Deleted breakpoint {mark.number} at {_where(mark)}")

    def do_enable(self, arg: str) -> None:
        """enable number [number ...]: let breakpoints stop again."""
        for number in arg.split():
            self._mark(number).enabled = True
            self.say(f"Enabled breakpoint {number}")

    def do_disable(self, arg: str) -> None:
        """disable number [number ...]: let breakpoints not stop."""
        for number in arg.split():
            self._mark(number).enabled = False
            self.say(f"Disabled breakpoint {number}")

    def do_ignore(self, arg: str) -> None:
        """ignore number [count]: pass over the next hits of a breakpoint."""
        number, _, count = arg.partition(" ")
        times = self._mark(number).ignore = int(count or 0)
        self.say(f"Will ignore the next {times} crossing{'s' * (times != 1)} of breakpoint {number}.")

    def do_condition(self, arg: str) -> None:
        """condition number [expression]: change the condition of a breakpoint, or remove it."""
        number, _, condition = arg.partition(" ")
        mark = self._mark(number)
        if condition:
            compile(condition, "<condition>", "eval")
        mark.condition = condition or None
        self.say(f"{'New condition set' if condition else 'Condition removed'} for breakpoint {number}.")

    def _mark(self, number: str) -> Breakpoint:
        if not number.isdigit() or int(number) not in self.session.breakpoints:
            raise ValueError(f"there is no breakpoint number {number or '(none given)'}")
        return self.session.breakpoints[int(number)]

    # Looking.

    def do_where(self, arg: str) -> None:
        """w(here), bt: the calls in progress, the innermost last."""
        for frame in self.session.stack:
            self.say(f"{'>' if frame is self.session.frame else ' '} {frame}")
            self.say(f"-> {frame.source}")

    def do_up(self, arg: str) -> None:
        """u(p) [count]: look at the caller."""
        before = self.session.frame
        self.session.up(_count(arg))
        self._moved(before, "Oldest frame")

    def do_down(self, arg: str) -> None:
        """d(own) [count]: look at the function that this one has called."""
        before = self.session.frame
        self.session.down(_count(arg))
        self._moved(before, "Newest frame")

    def _moved(self, before: StackFrame | None, end: str) -> None:
        if self.session.frame is before:
            self.error(end)
        else:
            self.show_place()

    def do_list(self, arg: str) -> None:
        """l(ist) [first [, last]]: 11 lines around this one, or further lines; '.' begins anew."""
        frame = self.session.frame
        if frame is None:
            self.say(ENDED)
            return
        if arg and arg != ".":
            first, _, last = arg.partition(",")
            begin = int(first)
            end = int(last) if last else begin + CONTEXT - 1
            self.show_lines(begin, end if end >= begin else begin + end)
        elif self._listed is None or arg == ".":
            begin = max(frame.line - CONTEXT // 2, 1)
            self.show_lines(begin, begin + CONTEXT - 1)
        else:
            self.show_lines(self._listed + 1, self._listed + CONTEXT)

    def do_longlist(self, arg: str) -> None:
        """ll, longlist: the whole function."""
        frame = self.session.frame
        if frame is None:
            self.say(ENDED)
        else:
            self.show_lines(frame.definition.line, frame.definition.end_line)

    def do_p(self, arg: str) -> None:
        """p expression: its value; in the backward pass d_x is the cotangent of x."""
        self.say(repr(self.session.evaluate(arg)))

    def do_pp(self, arg: str) -> None:
        """pp expression: its value, printed over several lines where it is long."""
        self.say(pprint.pformat(self.session.evaluate(arg)))

    def do_whatis(self, arg: str) -> None:
        """whatis expression: its type; of an array also dtype and shape."""
        value = self.session.evaluate(arg)
        more = f", {value.dtype}, shape {value.shape}" if isinstance(value, np.ndarray) else ""
        self.say(f"{type(value)}{more}")

    def do_args(self, arg: str) -> None:
        """a(rgs): the parameters of this function with their values of now."""
        frame = self.session.frame
        for name in (n for n in frame.parameters if n in frame.variables) if frame else ():
            assert frame is not None
            self.say(f"{name} = {frame.variables[name]!r}")

    def do_locals(self, arg: str) -> None:
        """locals: all variables; in the backward pass also their cotangents."""
        for name, value in self.session.locals.items():
            self.say(f"{name} = {value!r}")

    def do_retval(self, arg: str) -> None:
        """retval, rv: what this function is about to return; at the end, what the program has returned."""
        frame = self.session.frame
        if self.session.event == "end":
            self.say(repr(self.session.value))
        elif self.session.event == "return" and frame is not None and not frame.backward:
            self.say(repr(frame.returned))
        else:
            self.error("not yet returned")

    def do_gradients(self, arg: str) -> None:
        """gradients [name ...]: the derivatives by values of variables that the backward pass has found so far."""
        for name in arg.split() or list(self.session.gradients):
            self.say(f"{name}: {self.session.gradients[name]!r}")

    def do_display(self, arg: str) -> None:
        """display [expression]: show its value whenever it has changed; without arguments: all of these."""
        if not arg:
            for expression, value in self._shown.items():
                self.say(f"{expression}: {value}")
            return
        self._shown[arg] = self._value_text(arg)
        self.say(f"display {arg}: {self._shown[arg]}")

    def do_undisplay(self, arg: str) -> None:
        """undisplay [expression]: show it no more; without arguments: none."""
        if not arg:
            self._shown.clear()
        elif self._shown.pop(arg, None) is None:
            self.error("not displaying " + arg)

    def do_help(self, arg: str) -> None:
        """h(elp) [command]: the commands, or what one does."""
        method = getattr(self, f"do_{arg}", None)
        if arg and method is not None:
            self.say(" ".join((method.__doc__ or "").split()))
        else:
            super().do_help(arg)

    def get_names(self) -> list[str]:
        """Commands by their full names, for `help`."""
        return [n for n in dir(type(self)) if n not in _SHORT and n != "do_EOF"]

    do_s, do_n, do_r, do_c, do_cont, do_unt, do_run = (
        do_step,
        do_next,
        do_return,
        do_continue,
        do_continue,
        do_until,
        do_restart,
    )
    do_j, do_q, do_exit, do_b, do_cl = do_jump, do_quit, do_quit, do_break, do_clear
    do_w, do_bt, do_u, do_d, do_l, do_ll, do_a, do_rv, do_h = (
        do_where,
        do_where,
        do_up,
        do_down,
        do_list,
        do_longlist,
        do_args,
        do_retval,
        do_help,
    )


_SHORT = {f"do_{n}" for n in "s n r c cont unt run j q exit b cl w bt u d l ll a rv h".split()}


def _count(arg: str) -> int:
    if arg and not arg.isdigit():
        raise ValueError(f"{arg!r} is no number of times")
    return int(arg or 1)


def _where(mark: Breakpoint) -> str:
    return f"{mark.file}:{mark.line}" if mark.function is None else f"{mark.function}()"


def _described(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")[-1]


def _is_statement(text: str) -> bool:
    try:
        compile(text, "<stdin>", "exec")
    except SyntaxError:
        return False
    return True


def _cotangents(found: dict[str, Any]) -> str:
    return "nothing" if not found else ", ".join(f"d_{name} = {_short(value)}" for name, value in found.items())


def _short(value: Any) -> str:
    """A value on a part of a line: a large array by its type and its range."""
    text = " ".join(repr(value).split())
    if len(text) <= WIDTH:
        return text
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        with np.errstate(all="ignore"):
            return f"{value.dtype} of shape {value.shape}, from {value.min():.6g} to {value.max():.6g}"
    return text[: WIDTH - 4] + " ..."
