"""Source locations.

`Loc` is a range in a source text. `Origin` is a location together with the history of a node (inlined from a call,
adjoint of a primitive, ...). Both are immutable and are passed explicitly; no pass reads an ambient "current location".
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass

LONGEST = 400  # characters of a source line that are shown
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@dataclass(frozen=True)
class Loc:
    """A range of source text.

    Attributes:
        file: file name as Python knows it (`co_filename`; a notebook cell or the REPL has a pseudo name).
        line: first line, counted from 1.
        col: first column, counted from 0.
        end_line: last line.
        end_col: column after the last character.
        function: name of the enclosing function, for tracebacks.
    """

    file: str
    line: int
    col: int
    end_line: int
    end_col: int
    function: str = "<module>"

    def text(self) -> str:
        """The first source line of the range, without its line break; empty where the source cannot be found."""
        return linecache.getline(self.file, self.line).rstrip("\n")

    @property
    def column(self) -> int:
        """The first column, in characters, counted from 1; `col` counts bytes, as `ast` does."""
        raw = self.text().encode(errors="surrogatepass")
        return (len(raw[: self.col].decode(errors="ignore")) if raw else self.col) + 1

    def render(self) -> str:
        """The location as Python's own traceback shows it: file, line, source line and carets."""
        if self.file in _DISPLAYED:
            head = f"  {self}"
        else:
            file = cell_name(self.file) or f'File "{self.file}"'
            head = f"  {file}, line {self.line}, column {self.column}, in {self.function}"
        source = self.text()
        if not source.strip():
            return head
        indent = len(source) - len(source.lstrip())
        stop = self.end_col if self.end_line == self.line else len(source)
        # Columns of `ast` count UTF-8 bytes; carets must stand under characters.
        raw = source.encode(errors="surrogatepass")
        start, stop = (len(raw[:at].decode(errors="ignore")) for at in (self.col, stop))
        if len(source) > LONGEST:  # a window of it
            begin = max(min(start, len(source)) - LONGEST // 2, indent)
            source, start, stop = f"{source[begin : begin + LONGEST]} ..", start - begin, min(stop - begin, LONGEST)
            if begin > indent:
                source, start, stop = f".. {source}", start + 3, stop + 3
            indent = 0
        carets = " " * max(start - indent, 0) + "^" * max(stop - start, 1)
        return f"{head}\n    {source.strip()}\n    {carets}"

    def __str__(self) -> str:
        return f"{_DISPLAYED.get(self.file) or cell_name(self.file) or self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Origin:
    """How a node came to be: its place in the source, and the chain of transformations that made it.

    Attributes:
        loc: the user's source range.
        via: what derived the node: "parse", "inline", "vjp", "vmap", ...
        parent: for an inlined node the origin of the call; for a derived node the origin of what it derives from.
        inner: for an inlined node its origin in the function that was inlined, where that says more than `loc`.
        of: for an adjoint the name of the operation whose derivative it computes.
    """

    loc: Loc | None
    via: str = "parse"
    parent: Origin | None = None
    inner: Origin | None = None
    of: str = ""

    def derive(self, via: str, of: str = "") -> Origin:
        """This origin, once more transformed: same place, one step further from the source."""
        return Origin(self.loc, via, self, of=of)

    @property
    def made_by(self) -> str:
        """What derived the node, whether or not it was inlined since: "parse" for what the user wrote."""
        origin = self.before_inlining
        return "parse" if origin.via == "inline" else origin.via

    @property
    def before_inlining(self) -> Origin:
        """The origin in the function that was inlined, as far as it is known."""
        origin = self
        while origin.via == "inline" and origin.inner is not None:
            origin = origin.inner
        return origin

    @property
    def is_adjoint(self) -> bool:
        """Whether reverse mode has made it: it follows IEEE arithmetic, but is nothing that the user wrote."""
        return self.made_by == "vjp"

    def inlined_at(self, call: Origin | None) -> Origin:
        """This origin as seen through one more call that was inlined, the outermost."""
        return Origin(self.loc, "inline", call, self if self.parent is not None else None)

    def call_around(self) -> Origin | None:
        """The call through which a node was inlined, as seen through the calls around it; None where it was not."""
        steps: list[Origin] = []
        origin: Origin | None = self
        while origin is not None:
            if origin.via == "inline":
                steps.append(origin)
                origin = origin.inner
            else:
                origin = origin.parent
        calls = [step.parent for step in reversed(steps) if step.parent is not None]
        if not calls:
            return None
        around = calls[0]
        for call in calls[1:]:
            around = around.inlined_at(call)
        return around

    def call_stack(self) -> list[Loc]:
        """Locations from this node outwards through the calls that were inlined around it.

        Functions of this package that are compiled themselves (what `model(x)` runs) are none of the user's.
        """
        stack: list[Loc] = []
        rest: list[Origin] = [self]
        while rest:
            origin = rest.pop()
            if origin.parent is not None:
                rest.append(origin.parent)
            if origin.inner is not None:
                rest.append(origin.inner)  # before the parent, and it says where too
            elif origin.loc is not None and (not stack or stack[-1] != origin.loc) and not is_ours(origin.loc.file):
                stack.append(origin.loc)
        return stack

    def called_from(self, calls: Iterable[Origin | None]) -> Origin:
        """This origin as reached through calls that were not inlined, innermost first."""
        locs = self.call_stack()
        for call in calls:
            for loc in call.call_stack() if call is not None else ():
                if not locs or locs[-1] != loc:
                    locs.append(loc)
        origin: Origin | None = None
        for loc in reversed(locs):
            origin = Origin(loc, "call", origin)
        return origin or self


NOWHERE = Origin(None, "built")

_DISPLAYED: dict[str, str] = {}  # file name in `linecache` -> what it is called in messages, for texts that are no file


def register_text(file: str, name: str, text: str) -> str:
    """Let Python find the lines of a text that is in no file, under the file name `file`; messages call it `name`.

    Returns:
        The file name.
    """
    _DISPLAYED[file] = name
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return file


def cell_name(file: str) -> str | None:
    """What Jupyter and IPython call the cell whose code has this file name: `Cell In[3]`; None for any other file."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    names = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = names(file) if names is not None else None
    return " ".join(found) if found else None


def short_name(file: str) -> str:
    """A file as tables name it: the cell of a notebook, or the last part of the path."""
    return cell_name(file) or file.replace("\\", "/").rsplit("/", 1)[-1]


@functools.lru_cache(maxsize=1024)
def is_ours(file: str) -> bool:
    """Whether a file is part of this package, or code that it generates."""
    return file.startswith((PACKAGE, "<myia_relay ")) or os.path.abspath(file).startswith(PACKAGE)
