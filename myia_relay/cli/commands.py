"""The commands, and the options that stand before them."""

from __future__ import annotations

import importlib

import click

from ..utils.errors import nearest
from .environment import version

COMMANDS = (
    "train",
    "run",
    "import",
    "check",
    "format",
    "compile",
    "explain",
    "profile",
    "ir",
    "bisect",
    "include",
    "cache",
    "bench",
    "doctor",
    "completion",
)
"""The commands, in the order of the help. Each is a module of this package with a `command`."""


class Commands(click.Group):
    """The group of all commands, which imports those that it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by its name; None if there is none."""
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"{__package__}.{cmd_name}").command

    def resolve_command(self, ctx: click.Context, args: list[str]):
        """The command that the words name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.command(cls=Commands, no_args_is_help=False, context_settings={"max_content_width": 100})
@click.version_option(version("myia_relay"), message="myia_relay %(version)s")
@click.option("--traceback", is_flag=True, help="Show where in the program an error comes from.")
def commands(traceback: bool) -> None:
    """A compiler for a pure Python subset, with automatic differentiation."""
