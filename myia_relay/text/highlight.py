"""Relay text in colours: a lexer for Pygments, registered as `relay`, and HTML for notebooks."""

from __future__ import annotations

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
)

from .dtypes import DTYPES


class RelayLexer(RegexLexer):
    """Tokens of Relay text, for Pygments."""

    name = "Relay"
    aliases = ["relay"]
    filenames = ["*.relay"]
    mimetypes = ["text/x-relay"]
    url = "https://arxiv.org/abs/1904.08368"

    tokens = {
        "root": [
            (r"\s+", Text.Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*", Comment.Multiline, "comment"),
            (r"#\[\s*metadata\s*\]", Comment.Preproc, "metadata"),
            (r"#\[[^\]\n]*\]", Comment.Preproc),
            (r'"', String.Double, "string"),
            (r"(def)(\s+)(@[A-Za-z_][\w/]*)", bygroups(Keyword.Declaration, Text.Whitespace, Name.Function)),
            (
                r"(extern)(\s+)(type)\b(\s+)(\w+)",
                bygroups(Keyword, Text.Whitespace, Keyword, Text.Whitespace, Name.Class),
            ),
            (r"(type)(\s+)([A-Za-z_]\w*)", bygroups(Keyword.Declaration, Text.Whitespace, Name.Class)),
            (r"match\?", Keyword),
            (
                words(("let", "if", "else", "fn", "match", "where", "ref", "ref_read", "ref_write"), suffix=r"\b"),
                Keyword,
            ),
            (r"(True|False|None)\b", Keyword.Constant),
            (words(("Type", "Shape", "ShapeVar", "BaseType"), suffix=r"\b"), Keyword.Type),
            (words(("Tensor", *DTYPES), suffix=r"\b"), Keyword.Type),
            (r"%[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*", Name.Variable),
            (r"%\d+", Name.Variable.Magic),
            (r"@[A-Za-z_]\w*(?:/[A-Za-z_]\w*)*", Name.Function),
            (r"(meta)(\[)([\w.]+)(\])", bygroups(Name.Builtin, Punctuation, Name.Class, Punctuation)),
            (r"(inf|nan)(f|f16|f32|f64|bf16)\b", Number.Float),
            (r"\d+\.\d+(?:[eE][+-]?\d+)?\w*|\d+(?:[eE][+-]?\d+)?(?:f\d*|bf16)\b|\d+[eE][+-]?\d+", Number.Float),
            (r"\d+\w*", Number.Integer),
            (r"[A-Z]\w*", Name.Class),
            (r"(\w+)(=)(?!=)", bygroups(Name.Attribute, Operator)),
            (r"[a-z_]\w*(?:\.[A-Za-z_]\w*)*", Name.Builtin),
            (r"->|=>|:=|==|!=|<=|>=|&&|\|\||[<>=+\-*/!?|]", Operator),
            (r"[(){}\[\],;:.]", Punctuation),
        ],
        "comment": [
            (r"[^*/]+", Comment.Multiline),
            (r"/\*", Comment.Multiline, "#push"),
            (r"\*/", Comment.Multiline, "#pop"),
            (r"[*/]", Comment.Multiline),
        ],
        "string": [
            (r"\\.", String.Escape),
            (r'"', String.Double, "#pop"),
            (r'[^"\\\n]+', String.Double),
            (r"\n", Text, "#pop"),
        ],
        "metadata": [(r".+|\n", Comment.Preproc)],
    }


def html(text: str) -> str:
    """Relay text as HTML that needs no style sheet."""
    return highlight(text, RelayLexer(), HtmlFormatter(noclasses=True, nobackground=True))
