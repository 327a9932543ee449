"""Relay text as tokens.

One regular expression finds them. Tokens are kept in columns (kinds, texts, offsets), as a token object for each would take
longer to make than to parse. `match` holds for each bracket where its partner is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..utils.errors import ParseError
from .errors import Errors
from .span import SourceText, Span

WORDS = frozenset({"let", "if", "else", "fn", "match", "def", "True", "False"})
"""Words that are no names."""

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
  | (?P<local>%[A-Za-z_]\w*(?:/[A-Za-z_]\w*){0,99})
  | (?P<graph>%\d+)
  | (?P<global>@[A-Za-z_]\w*(?:/[A-Za-z_]\w*){0,99})
  | (?P<floating>(?:inf|nan)(?:f|f16|f32|f64|bf16)(?![\w.]))
  | (?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){0,99})
  | (?P<projection>\.[ \t]*\d+)
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\w*)
  | (?P<quote>")
  | (?P<comment>/\*)
  | (?P<version>\#\[\s*version\s*=\s*"(?P<format>[^"\n]*)"\s*\])
  | (?P<metadata>\#\[\s*metadata\s*\])
  | (?P<mark>->|=>|:=|==|!=|<=|>=|&&|\|\||[(){}\[\]<>,;:=+\-*/!.?|])
    """,
    re.VERBOSE | re.ASCII,
)
_COMMENT = re.compile(r"/\*|\*/")
_IN_QUOTES = re.compile(r'["\\\n]')
LONGEST = 1000  # characters of a name or a number

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {close: open for open, close in OPENING.items()}

INSTEAD = {
    "$": "names begin with % (local) or @ (global)",
    "^": "there is no such operator; write power(a, b) or bitwise_xor(a, b)",
    "&": "write && for logical_and, or bitwise_and(a, b)",
    "~": "write bitwise_not(a)",
    "'": 'texts stand in double quotes: "nearest"',
    "\\": "functions are written fn (%x) { .. }",
    "λ": "functions are written fn (%x) { .. }",
    "−": "that is no minus sign; write -",
    "–": "that is no minus sign; write -",
    "’": 'texts stand in double quotes: "nearest"',
    "×": "write *",
    "→": "write ->",
    "“": 'write "',
    "”": 'write "',
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write !=",
}
"""What to write instead of a character that begins no token."""


@dataclass
class Tokens:
    """The tokens of a text, in columns; the last ones are of the kind `end`.

    Attributes:
        source: the text.
        kinds: "local", "graph", "global", "name", "number", "string", "projection", "end"; marks and `WORDS` are their own.
        texts: what is written.
        starts: offset of the first character.
        ends: offset behind the last character.
        match: the partner of a bracket by position; lacks those without one.
        depth: how deeply brackets nest at most, and the position of the token that is deepest.
        comments: all comments: where they begin and end.
        errors: of characters and comments.
        strange: offsets of characters that begin no token.
        metadata: what stands behind `#[metadata]`, and its offset; None without it.
    """

    source: SourceText
    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    match: dict[int, int] = field(default_factory=dict)
    depth: tuple[int, int] = (0, 0)
    comments: list[tuple[int, int]] = field(default_factory=list)
    errors: Errors = field(default_factory=Errors)
    metadata: tuple[str, int] | None = None
    strange: list[int] = field(default_factory=list)

    def span(self, first: int, last: int) -> Span:
        """From one token to another."""
        return Span(self.source, self.starts[first], self.ends[last])


def tokenize(source: SourceText) -> Tokens:
    """The tokens of a text; what is wrong is in `errors` of the result."""
    text, out = source.text, Tokens(source)
    kinds, texts, starts, ends = out.kinds, out.texts, out.starts, out.ends
    add_kind, add_text, add_start, add_end = kinds.append, texts.append, starts.append, ends.append
    at, stop, scan = 0, len(text), _TOKEN.match
    while at < stop:
        found = scan(text, at)
        if found is None:
            at = _strange(out, at)
            continue
        kind, begin, at = found.lastgroup, at, found.end()
        if at - begin > LONGEST and kind != "space":
            message = f"this {'number' if kind in ('number', 'graph', 'projection') else 'name'} has more than {LONGEST} characters"
            out.errors.append(ParseError(message, Span(out.source, begin, begin + 1).loc))
            out.strange.append(begin)
        elif kind == "space":
            if text.startswith("//", begin):
                out.comments.append((begin, at))
        elif kind == "mark" or kind == "name":
            word = found[0]
            add_text(word)
            add_kind(word if kind == "mark" or word in WORDS else "name")
            add_start(begin)
            add_end(at)
        elif kind == "quote":
            at = _quoted(text, at)
            if at < 0:
                at = _strange(out, begin)
                continue
            add_text(text[begin:at])
            add_kind("string")
            add_start(begin)
            add_end(at)
        elif kind == "comment":
            at = _comment(out, begin)
        elif kind == "version":
            _version(out, found["format"], begin, at, first=not kinds)
        elif kind == "metadata":
            out.metadata = text[at:], at
            stop = begin
            break
        else:
            add_text(found[0])
            add_kind("number" if kind == "floating" else str(kind))
            add_start(begin)
            add_end(at)
    for _ in range(3):  # the parser looks two tokens ahead
        add_kind("end")
        add_text("")
        add_start(stop)
        add_end(stop)
    _match_brackets(out)
    return out


def _quoted(text: str, at: int) -> int:
    """The end of a text in double quotes, of which the first is read; -1 where it is not closed on its line."""
    while (found := _IN_QUOTES.search(text, at)) is not None and found[0] != "\n":
        at = found.end()
        if found[0] == '"':
            return at
        if text.startswith("\n", at):
            break
        at += 1
    return -1


def _strange(out: Tokens, at: int) -> int:
    """Note a character that begins no token; where to go on."""
    text = out.source.text
    out.strange.append(at)
    end = at + 1
    if text[at] == '"':
        line_end = text.find("\n", at)
        end = len(text) if line_end < 0 else line_end
        message = "this text has no closing quote on its line; a line break within is written \\n"
    elif text[at] in "%@":
        what = "a local is written %name" if text[at] == "%" else "a global is written @name"
        message = f"a name is missing behind {text[at]}: {what}" + ("; the remainder is mod(a, b)" * (text[at] == "%"))
    elif text[at] == "#":
        message = '# begins only #[version = "0.0.5"] and #[metadata]; comments are // .. and /* .. */'
    else:
        advice = INSTEAD.get(text[at])
        message = f"the character {text[at]!r} means nothing here" + (f": {advice}" if advice else "")
    out.errors.append(ParseError(message, Span(out.source, at, end).loc))
    return end


def _comment(out: Tokens, begin: int) -> int:
    """The end of a comment, which may hold others."""
    depth, at = 1, begin + 2
    while depth:
        found = _COMMENT.search(out.source.text, at)
        if found is None:
            place = Span(out.source, begin, begin + 2).loc
            out.errors.append(ParseError("this comment is not closed: each /* needs a */ of its own", place))
            return len(out.source.text)
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    out.comments.append((begin, at))
    return at


def _version(out: Tokens, version: str, begin: int, end: int, first: bool) -> None:
    if not first:
        message = "the version stands before everything else"
    elif not re.fullmatch(r"0\.0\.[0-5]", version):
        message = f'this text is of version {version}; versions up to "0.0.5" can be read'
    else:
        return
    out.errors.append(ParseError(message, Span(out.source, begin, end).loc))


def _match_brackets(out: Tokens) -> None:
    stack: list[int] = []
    kinds = out.kinds
    for i, kind in enumerate(kinds):
        if kind in OPENING:
            stack.append(i)
            if len(stack) > out.depth[0]:
                out.depth = len(stack), i
        elif kind in CLOSING:
            wanted = CLOSING[kind]
            back = next(
                (k for k in range(len(stack) - 1, max(len(stack) - 4, -1), -1) if kinds[stack[k]] == wanted), None
            )
            if back is not None:  # brackets opened since then are without a partner
                out.match[stack[back]] = i
                out.match[i] = stack[back]
                del stack[back:]
        elif kind == "def" and kinds[i + 1] == "global":
            stack.clear()  # definitions do not nest: what is open is not closed
