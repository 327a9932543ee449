"""Places in a text: a range of characters of a `SourceText`, cheap to make, with lines and columns worked out on demand."""

from __future__ import annotations

import bisect
import functools
import hashlib

from ..utils.source import Loc, register_text


class SourceText:
    """A text and what it is called in errors.

    Attributes:
        text: all of it.
        name: of a file, or `<text>`.
    """

    def __init__(self, text: str, name: str = "<text>"):
        self.text, self.name = text, name

    @functools.cached_property
    def starts(self) -> list[int]:
        """Where the lines begin."""
        starts = [0]
        at = self.text.find("\n")
        while at >= 0:
            starts.append(at + 1)
            at = self.text.find("\n", at + 1)
        return starts

    @functools.cached_property
    def file(self) -> str:
        """The file name by which Python finds the lines: a real file, or an entry of `linecache` for this very text."""
        if not self.name.startswith("<"):
            return self.name
        digest = hashlib.blake2s(self.text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        return register_text(f"{self.name[:-1]} {digest}>", self.name, self.text)

    def place(self, offset: int) -> tuple[int, int]:
        """Line, counted from 1, and column, counted from 0, of an offset."""
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1]


class Span:
    """A range of a text.

    Attributes:
        source: the text.
        start: offset of the first character.
        end: offset behind the last character.
    """

    __slots__ = ("end", "source", "start")

    def __init__(self, source: SourceText, start: int, end: int):
        self.source, self.start, self.end = source, start, end

    @property
    def line(self) -> int:
        """The first line, counted from 1."""
        return self.source.place(self.start)[0]

    @property
    def column(self) -> int:
        """The first column, counted from 1."""
        return self.source.place(self.start)[1] + 1

    @property
    def text(self) -> str:
        """What is written there."""
        return self.source.text[self.start : self.end]

    @property
    def loc(self) -> Loc:
        """The range as the rest of the compiler knows places; its columns count bytes, as those of `ast` do."""
        line, col = self.source.place(self.start)
        end_line, end_col = self.source.place(self.end)

        def in_bytes(line: int, col: int) -> int:
            start = self.source.starts[line - 1]
            return len(self.source.text[start : start + col].encode("utf-8", "surrogatepass"))

        return Loc(self.source.file, line, in_bytes(line, col), end_line, in_bytes(end_line, end_col))

    def to(self, other: Span) -> Span:
        """From the start of this one to the end of another."""
        return Span(self.source, self.start, other.end)

    def __repr__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"


def loc(span: Span | None) -> Loc | None:
    """The place for a `CompileError`."""
    return span.loc if span is not None else None
