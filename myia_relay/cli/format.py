"""`format`: print Relay text as `str(module)` does, with its comments."""

from __future__ import annotations

import difflib
import sys

import click

from .relay_files import STDIN, read


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE.relay...")
@click.option("--check", is_flag=True, help="Write nothing; the status is 1 if a file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.option("--prelude", is_flag=True, help="The files use the prelude.")
def command(files: tuple[str, ...], check: bool, diff: bool, prelude: bool) -> int:
    """Write files of Relay text in the standard layout.

    Comments stay. For - standard input is read, and the text is written to standard output.
    """
    from ..utils.files import write_atomically

    changed = 0
    for file in files:
        before = read(file)
        after = formatted(before, "<stdin>" if file == STDIN else file, prelude)
        changed += before != after
        if diff:
            lines = difflib.unified_diff(before.splitlines(), after.splitlines(), file, file, lineterm="")
            print("".join(f"{line}\n" for line in lines), end="")
        elif check:
            if before != after:
                print(f"{file} would change")
        elif file == STDIN:
            sys.stdout.write(after)
        elif before != after:
            write_atomically(file, after.encode("utf-8"))
            print(f"formatted {file}", file=sys.stderr)
    return 1 if changed and (check or diff) else 0


def formatted(text: str, name: str, prelude: bool) -> str:
    """A module's text in the standard layout, with its comments.

    Raises:
        CompileError: the text is not Relay.
    """
    from ..text.lexer import tokenize
    from ..text.module import prelude_tree
    from ..text.operators import OPERATORS
    from ..text.printer import print_module
    from ..text.span import SourceText
    from ..text.syntax.items import parse
    from ..text.tree import ModuleTree

    source = SourceText(text, name)
    base = prelude_tree() if prelude else ModuleTree()
    tree = parse(source, OPERATORS, base)
    own = ModuleTree(
        {n: t for n, t in tree.types.items() if n not in base.types},
        {n: d for n, d in tree.definitions.items() if n not in base.definitions},
    )
    return print_module(own, tokenize(source).comments, text)
