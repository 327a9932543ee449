"""`check`: find what is wrong with Relay text, and show types."""

from __future__ import annotations

import sys

import click

from ..utils.errors import CompileError
from .environment import show_table as show
from .relay_files import load_relay


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.relay...")
@click.option("--types", is_flag=True, help="Show the types of the definitions.")
@click.option("--prelude", is_flag=True, help="The files use the prelude.")
def command(files: tuple[str, ...], types: bool, prelude: bool) -> int:
    """Check files of Relay text: syntax, names, types, matches.

    For - standard input is read.
    """
    from ..text.module import prelude_tree
    from ..text.terms.show import show as type_text

    wrong = 0
    for file in files:
        try:
            module = load_relay(file, prelude)
        except CompileError as error:
            wrong += 1
            print(f"{type(error).__name__}: {str(error).strip()}", file=sys.stderr)
            continue
        known = prelude_tree().definitions if prelude else {}
        names = [name for name in module if name not in known]
        redundant = [
            arm for arm in module.checked.redundant if arm.span is not None and arm.span.source.name != "<prelude>"
        ]
        for arm in redundant:
            print(f"{arm.span}: this arm is never taken: those above it take all that it fits", file=sys.stderr)
        if types:
            rows = [(f"@{name}", type_text(module.checked.schemes[name].type)) for name in names]
            show(("", ""), rows, file)
        else:
            print(f"{file}: {len(names)} definition{'s' * (len(names) != 1)}, all right")
    return 1 if wrong else 0
