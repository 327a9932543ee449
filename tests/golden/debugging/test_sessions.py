"""Recorded sessions of the debugger in the terminal: what is typed after each prompt is typed again, and everything is compared.

A new session is written as a file with lines `(relay) command`; `pytest tests/golden --update-golden` fills in the rest.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from tests.golden.debugging.programs import SESSIONS

FOLDER = Path(__file__).parent
PROMPT = "(relay) "


class Keyboard(io.StringIO):
    """Commands that are typed, and seen on the screen."""

    def __init__(self, commands, screen):
        super().__init__("".join(f"{c}\n" for c in commands))
        self.screen = screen

    def readline(self, *args):
        line = super().readline(*args)
        self.screen.write(line)
        return line


def transcript(name: str, commands: list[str]) -> str:
    screen = io.StringIO()
    SESSIONS[name]().interact(stdin=Keyboard(commands, screen), stdout=screen)
    text = screen.getvalue().replace(str(FOLDER), "FOLDER").replace("FOLDER\\", "FOLDER/")
    return re.sub(r"np\.(?:float64|int64)\(([^()]*)\)", r"\1", text)  # NumPy 1 has no class in the repr of a number


@pytest.mark.parametrize("name", SESSIONS)
def test_session(name, updating):
    path = FOLDER / f"{name}.txt"
    expected = path.read_text("utf-8")
    commands = [line[len(PROMPT) :].rstrip("\n") for line in expected.splitlines() if line.startswith(PROMPT)]
    found = transcript(name, commands)
    if updating:
        path.write_text(found, "utf-8")
        expected = found
    assert found.splitlines() == expected.splitlines()


def test_no_session_is_left_over():
    assert {p.stem for p in FOLDER.glob("*.txt")} == set(SESSIONS)
