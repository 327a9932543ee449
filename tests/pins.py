"""Files beside the tests that say what the compiler does today, and the flag that writes them anew: `--update-golden`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from myia_relay import CompileError, InternalError

PHRASE = 48  # characters of a message that are pinned, to the end of a word
WORDS = {"1 % 0": "integer modulo by zero", "text['a']": "string indices must be integers, not 'str'"}
"""Expressions that raise -> what Python 3.11 says, by which the files are written. Other versions have other words."""


def in_words_of_3_11(text: str) -> str:
    """A text in which what this Python says is as Python 3.11 says it."""
    for expression, words in WORDS.items():
        try:
            eval(expression, {"text": "a"})
        except Exception as error:
            if str(error) != words and words not in text:
                text = text.replace(str(error), words)
    return text


class Refusals:
    """Which programs of a family are refused, and how each refusal begins.

    What a family of tests may refuse is listed, not decided by the test that meets a refusal: a program that is refused and
    not in the list fails its test, and so does one in the list that works.

    Args:
        path: JSON, program text -> "class of the error: beginning of its message".
        tests: the file of the tests, for messages.
        updating: whether the list is being written anew, and nothing is held against it.
    """

    def __init__(self, path: Path, tests: str, updating: bool):
        self.path = path
        self.tests = tests
        self.updating = updating
        self.listed: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}

    def check(self, program: str, result: object) -> bool:
        """Hold what a program gave against the list; returns whether it was refused."""
        refused = is_refusal(result)
        if refused:
            assert result.loc, "a refusal without a place"
        if self.updating:
            return refused
        again = f"to write it anew: pytest {self.tests} --update-golden"
        if not refused:
            assert program not in self.listed, f"it works now; remove it from {self.path.name}; {again}"
            return False
        assert program in self.listed, f"refused, and not listed in {self.path.name}: {describe(result)}"
        assert describe(result) == self.listed[program], f"refused in other words; {again}"
        return True

    def check_all(self, programs: Iterable[str], results: Callable[[str], object]) -> None:
        """Write the list anew, where that is asked for; else see that it names no program that is gone."""
        programs = list(programs)
        if not self.updating:
            assert not set(self.listed) - set(programs), "listed, and no longer tested"
            return
        found = {p: describe(r) for p in programs if is_refusal(r := results(p))}
        write(self.path, found)


def is_refusal(result: object) -> bool:
    """Whether a result is the compiler's "no", and no fault of its own."""
    return isinstance(result, CompileError) and not isinstance(result, InternalError)


def describe(error: CompileError) -> str:
    """The class of a refusal and the beginning of its message."""
    phrase = in_words_of_3_11(" ".join(error.message.split()))
    if len(phrase) > PHRASE:
        phrase = phrase[:PHRASE].rpartition(" ")[0]
    return f"{type(error).__name__}: {phrase}"


def write(path: Path, entries: Mapping[str, str]) -> None:
    """Write a list, one entry a line."""
    path.write_text(json.dumps(entries, indent=0, ensure_ascii=False) + "\n")
