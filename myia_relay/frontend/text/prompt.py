"""Source text that is in no file: programs of `python -c` and of the standard input, what was typed at the prompt, and
cells under `%%time`.

From Python 3.13 on, `linecache` knows those of `-c` and of the prompt. Before, the text of `python -c` is among the words
that started the process, and the lines of the prompt are in the history of `readline`. None of these places says which
text a function is from. Whoever reads these texts therefore has to compare them with the function's byte code.
"""

from __future__ import annotations

import linecache
import os
import stat
import sys
import types
from collections.abc import Iterator
from typing import Any

from .bytecode import inner_codes

_LINES_SEARCHED = 5_000
_LINES_AFTER = 50  # of a class or block, after the function that is sought
_CELLS_SEARCHED = 100
_names: dict[str, str] = {}


def texts(code: types.CodeType) -> Iterator[str]:
    """Texts that a code object without a file may come from, the likely ones first.

    Args:
        code: the code object.

    Yields:
        Texts whose first line is line 1 of the code object. They need not parse.
    """
    if code.co_filename == "<string>":
        yield from _command()
    elif code.co_filename == "<stdin>":
        yield from _standard_input()
        yield from _history(code)
    elif code.co_filename == "<timed exec>":
        yield from _timed_cells()


def registered(text: str) -> str:
    """A file name under which `linecache`, and with it every traceback, finds a text."""
    name = _names.setdefault(text, f"<prompt-{len(_names) + 1}>")
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    return name


def _command() -> Iterator[str]:
    """The program of `python -c`."""
    words = sys.orig_argv
    for k, word in enumerate(words[1:], 1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            # The rest of the word, as in -Ic"print(1)", or the next word.
            text = word.partition("c")[2] or "".join(words[k + 1 : k + 2])
            yield text + "\n"


def _standard_input() -> Iterator[str]:
    """The program of `python < file`, which can be read again because it is a file and no pipe."""
    try:
        status = os.fstat(0)
        if stat.S_ISREG(status.st_mode) and hasattr(os, "pread"):
            yield os.pread(0, status.st_size, 0).decode()
    except (OSError, UnicodeDecodeError):
        return


def _history(code: types.CodeType) -> Iterator[str]:
    """Pieces of the prompt's history. Each statement that is typed there begins with line 1."""
    readline = sys.modules.get("readline")
    if readline is None:
        return
    count = readline.get_current_history_length()
    first = max(count - _LINES_SEARCHED, 0)
    lines = [readline.get_history_item(k + 1) or "" for k in range(first, count)]
    before, length = code.co_firstlineno - 1, _last_line(code)
    word = "lambda" if code.co_name == "<lambda>" else "def "
    for start in reversed(range(len(lines) - length + 1)):
        head = lines[start + before].lstrip()
        if word in head or head.startswith("@"):
            for end in range(start + length, min(start + length + _LINES_AFTER, len(lines)) + 1):
                yield "\n".join(lines[start:end]) + "\n"


def _timed_cells() -> Iterator[str]:
    """The cells of a notebook that begin with `%%time`, which IPython runs without a name of their own."""
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    for cell in reversed(shell.history_manager.input_hist_raw[-_CELLS_SEARCHED:] if shell else []):
        head, _, body = cell.lstrip().partition("\n")
        if head.startswith("%%time"):
            yield shell.transform_cell(body)


def _last_line(code: types.CodeType) -> int:
    lines = [line for _, _, line in code.co_lines() if line]
    return max([code.co_firstlineno, *lines, *map(_last_line, inner_codes(code))])
