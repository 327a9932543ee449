"""Errors.

`CompileError` and its subclasses are the user's mistakes: they carry a source location and advice. `InternalError` is
ours: it names the pass that broke an invariant and carries the IR.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from .source import Loc, Origin

_RUN_TIME = re.compile(r"\b_size\d+\b")
"""The names of sizes that only a run tells (`abstract.dims.RUN_TIME`)."""


_LIMIT = re.compile(
    r"compile time|compiled code|the language|run time only|run-time|entries of one type|not supported|in place"
)
"""The words in which messages speak of what compiled code cannot do, and Python can."""


def in_words(message: str) -> str:
    """A message in which sizes that only a run tells are `?`, or `?1`, `?2` where there are several."""
    names = list(dict.fromkeys(_RUN_TIME.findall(message)))
    if not names:
        return message
    marks = {name: f"?{k}" if len(names) > 1 else "?" for k, name in enumerate(names, 1)}
    text = _RUN_TIME.sub(lambda found: marks[found.group()], message)
    many = " and ".join(marks.values())
    return f"{text} ({many}: {'sizes' if len(names) > 1 else 'a size'} that only a run tells)"


class CompileError(Exception):
    """A program that cannot be compiled, and why.

    Args:
        message: what is wrong, in the user's words, ending with what to write instead.
        origin: the place, as an `Origin` or `Loc`; None where there is none (a bad argument, say).
        notes: further lines; a note may be a `(text, Loc)` pair, rendered with its own source line.
    """

    def __init__(self, message: str, origin: Origin | Loc | None = None, *notes):
        self.message = message = in_words(message)
        self.origin = Origin(origin) if isinstance(origin, Loc) else origin
        self.notes = list(notes)
        self.in_python = False  # whether CPython, too, raises here, whatever the words
        self.node: Any = None  # the node of a parsed graph that it is about, where inference has found it
        self.another: Any = None  # () -> whether the program is now parsed in another way, which may be accepted
        super().__init__(message)

    @property
    def loc(self) -> Loc | None:
        return self.origin.loc if self.origin else None

    @property
    def is_limit(self) -> bool:
        """Whether it speaks of compiled code: CPython, which has no such limit, would not raise here."""
        return not self.in_python and _LIMIT.search(self.message) is not None

    def at(self, origin: Origin | Loc | None) -> CompileError:
        """This error, placed at `origin` unless it already has a place of its own, outside of the package's library."""
        if self.origin is None or self.origin.loc is None or not self.origin.call_stack():
            self.origin = Origin(origin) if isinstance(origin, Loc) else origin
        return self

    def public(self) -> CompileError:
        """The error as the user gets it; kinds that passes use among themselves become one of those below."""
        return self

    def __str__(self) -> str:
        lines = []
        stack = self.origin.call_stack() if self.origin else []
        if stack:
            lines.append("")
            for caller in reversed(stack):
                lines.append(caller.render())
        lines.append(f"{self.message}" if not lines else f"{type(self).__name__}: {self.message}")
        return "\n".join(lines + self._note_lines())

    def _repr_html_(self) -> str:
        """What it prints, with the places in the source and the carets set off; for notebooks."""
        from html import escape

        lines = []
        for line in str(self).strip("\n").split("\n"):
            text = escape(line)
            if line.strip() and not line.strip("^ "):
                text = f'<b style="color:#c62828">{text}</b>'
            elif line.startswith('  File "'):
                text = f'<span style="color:#777">{text}</span>'
            elif line.startswith(f"{type(self).__name__}:"):
                text = f"<b>{text}</b>"
            lines.append(text)
        return "<pre>" + "\n".join(lines) + "</pre>"

    def _note_lines(self) -> list[str]:
        lines = []
        for note in self.notes:
            if isinstance(note, tuple):
                text, loc = note
                lines.append(f"note: {text}\n{loc.render()}" if loc else f"note: {text}")
            else:
                lines.append(f"note: {note}")
        return lines


class ParseError(CompileError, SyntaxError):
    """Syntax outside of the language."""

    def __init__(self, message: str, origin: Origin | Loc | None = None, *notes):
        super().__init__(message, origin, *notes)
        self._tell_traceback()

    def at(self, origin: Origin | Loc | None) -> CompileError:
        super().at(origin)
        self._tell_traceback()
        return self

    def _tell_traceback(self) -> None:
        """Fill the fields from which Python prints a SyntaxError in a traceback."""
        self.msg = "\n".join([self.message, *self._note_lines()])
        if self.loc is not None:
            self.filename, self.lineno, self.text = self.loc.file, self.loc.line, self.loc.text() or None
            if self.text:  # else there is nothing for carets to stand under
                self.offset, self.end_lineno, self.end_offset = (
                    self.loc.col + 1,
                    self.loc.end_line,
                    self.loc.end_col + 1,
                )

    # SyntaxError has its own __str__ that looks at .msg and .lineno; ours shows the source itself.
    __str__ = CompileError.__str__


class TypeError_(CompileError, TypeError):
    """A value of a type that does not fit."""


class ShapeError(CompileError, ValueError):
    """Shapes that do not fit."""


class NameError_(CompileError, NameError):
    """A name that is not bound."""


class AttributeError_(CompileError, AttributeError):
    """A field or method that does not exist."""


class GradError(CompileError, TypeError):
    """A derivative that does not exist or makes no sense."""


class LoweringError(CompileError, NotImplementedError):
    """A program that a back end cannot compile."""


class ValueError_(CompileError, ValueError):
    """An option that has no such value."""


class OverflowError_(CompileError, OverflowError):
    """A Python integer that compiled code, whose integers have 64 bits, cannot take."""


class SizeInRecord(LoweringError):
    """A record whose size is known at run time only; with the sizes of the call the program may be valid."""

    def public(self) -> LoweringError:
        """The error as the user gets it."""
        return LoweringError(self.message, self.origin, *self.notes)


class SliceBeyond(IndexError):
    """A slice whose size was taken for known reaches beyond its axis, where NumPy cuts it off.

    The call is compiled again with that slice cut off (`Relay._cut_off`). Where it cannot be, the user gets an IndexError.

    Attributes:
        origin: the place.
    """

    origin: Origin | None = None

    def public(self) -> IndexError:
        """The error as the user gets it."""
        error = IndexError(*self.args).with_traceback(self.__traceback__)
        error.__cause__, error.__suppress_context__ = self.__cause__, True
        return error


REPORT = (
    "This is a bug in myia_relay, not in your program. Please report it with the function, its arguments and the traceback "
    'that MYIA_RELAY_DEBUG=1 shows. Until it is mended, @relay(executor="interpreter") may run the program.'
)


class Hole(CompileError):
    """What would be said of the value of a place with an error, which is not said: see `infer.engine.several_errors`."""


class InternalError(Exception):
    """A bug in the compiler: a pass broke an invariant.

    Args:
        where: the pass.
        message: what is broken.
        ir: the text of the graph, for the report.
    """

    def __init__(self, where: str, message: str, ir: str = ""):
        self.where, self.ir = where, ir
        super().__init__(f"internal error in {where}: {message}\n{REPORT}" + (f"\n{ir}" if ir else ""))


MOST_NAMES = 2000
"""Names among which the nearest is looked for."""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Advice for a misspelt name: ``; did you mean 'radius'?`` or nothing."""
    among = list(candidates)
    if len(among) > MOST_NAMES:  # generated text, where advice is worth less than the time
        among = [c for c in among if c[:2] == name[:2] and abs(len(c) - len(name)) < 3][:MOST_NAMES]
    close = difflib.get_close_matches(name, among, n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
