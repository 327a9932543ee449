"""docs/command-line.md says what `--help` says, and knows every command."""

from __future__ import annotations

import re
from pathlib import Path

import click

from myia_relay.cli.commands import COMMANDS, commands

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "command-line.md").read_text("utf-8")


def words(text: str) -> str:
    """A text without its spaces and line breaks, which differ between versions of click."""
    return "".join(text.split())


def helps():
    """Name and help of each command, and of the commands within it."""
    root = click.Context(commands, info_name="python -m myia_relay")
    for name in COMMANDS:
        command = commands.get_command(root, name)
        assert command is not None
        inner = command.commands.items() if isinstance(command, click.Group) else ()
        for title, found in [(name, command), *((f"{name} {sub}", c) for sub, c in inner)]:
            program = f"python -m myia_relay {title}"
            yield (
                title,
                found.get_help(click.Context(found, info_name=program, terminal_width=100, max_content_width=100)),
            )


def test_all_commands_are_there_as_help_shows_them():
    shown = dict(re.findall(r"^####? ([a-z ]+)\n\n```text\n(.*?)```$", PAGE, re.MULTILINE | re.DOTALL))
    assert {title: words(text) for title, text in shown.items()} == {title: words(text) for title, text in helps()}


def test_the_examples_name_commands_and_options():
    options = {title: set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", text)) | {"--args"} for title, text in helps()}
    (block,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines():
        _, _, _, command, *rest = line.split()
        assert command in COMMANDS, line
        known = set().union(*(found for title, found in options.items() if title.split()[0] == command))
        assert {word for word in rest if re.match(r"--?[a-z]", word)} <= known, line
