"""Small changes of texts: what a slip of the hand makes of them, and worse."""

from __future__ import annotations

import re
from collections.abc import Callable

TOKENS = re.compile(r"[%@]?\w+|\s+|->|=>|:=|.", re.DOTALL)
STRANGE = (
    *(
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "<",
        ">",
        "/*",
        "*/",
        "//",
        '"',
        "\\",
        "%",
        "@",
        "#[metadata]",
        "#[version",
        "\n",
        "\0",
        "é",
        "\ud800",
    ),
    *(
        "let ",
        "fn ",
        "match ",
        "if ",
        "else ",
        "def @main(",
        "type ",
        "extern type T",
        "where ",
        "ref",
        "meta[relay.Constant][0]",
    ),
    *(
        "%0 = ",
        "%0",
        "_",
        "?",
        "1",
        "-1",
        "1.5f",
        "9" * 5000,
        "1e9999",
        "nan",
        ";",
        ",",
        ":",
        ".",
        ".0",
        "=",
        ":=",
        "->",
        "=>",
        "&&",
        "!",
    ),
    *(
        "Tensor[(",
        "Constant(1, (2, 3), float32)",
        "Constant(1, (1000000, 1000000), int8)",
        "((((((((",
        "{{{{{{{{",
        "Grad",
        "forall",
    ),
)


def mutant(text: str, pick: Callable[[int], int]) -> str:
    """A text with one to four changes.

    Args:
        text: a text.
        pick: an index below a number.
    """
    tokens = TOKENS.findall(text)
    for _ in range(1 + pick(4)):
        if not tokens:
            return ""
        at = pick(len(tokens))
        kind = pick(7)
        if kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, STRANGE[pick(len(STRANGE))])
        elif kind == 2:
            tokens[at] = STRANGE[pick(len(STRANGE))]
        elif kind == 3:
            other = pick(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 4:
            tokens.insert(at, tokens[pick(len(tokens))])
        elif kind == 5:
            del tokens[at : at + 1 + pick(20)]
        else:
            start = pick(len(tokens))
            tokens[at:at] = tokens[start : start + pick(30)]
    return "".join(tokens)
