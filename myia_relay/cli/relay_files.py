"""Files of Relay text, for the commands: reading them, and arguments for their definitions."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from .arguments import UsageError, example

SUFFIX = ".relay"
STDIN = "-"


def read(file: str) -> str:
    """The text of a file, or of standard input for `-`.

    Raises:
        UsageError: there is no such file, or it is not text.
    """
    try:
        if file == STDIN:
            return sys.stdin.buffer.read().decode("utf-8")
        return Path(file).read_text("utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no file {file}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no text in UTF-8: byte {error.start} is wrong") from None


def load_relay(file: str, prelude: bool) -> Any:
    """The module of a file, checked."""
    from myia_relay import relay

    return relay.parse_text(read(file), prelude=prelude, name="<stdin>" if file == STDIN else file)


def member(module: Any, file: str, name: str) -> Any:
    """A definition of a module.

    Raises:
        UsageError: there is none of the name.
    """
    if name not in list(module):
        from ..utils.errors import nearest

        raise UsageError(f"{file} has no @{name}{nearest(name, list(module))}")
    return module[name]


def relay_examples(words: Sequence[str], module: Any) -> tuple[Any, ...]:
    """The arguments that words stand for: those of other commands, and values of data types such as `Cons(1, Nil)`.

    Raises:
        click.BadParameter: a word stands for nothing.
    """
    found = []
    for word in words:
        try:
            found.append(_constructed(word, module))
        except (ValueError, OSError) as error:
            raise click.BadParameter(str(error), param_hint="ARG") from None
    return tuple(found)


def _constructed(word: str, module: Any) -> Any:
    try:
        node = ast.parse(word.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return example(word)
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    if not names or not all(name in module for name in names):
        return example(word)

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                made = module[name]
                return (
                    made()
                    if name in module.tree.constructors and not module.tree.constructors[name][1].fields
                    else made
                )
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in module.tree.constructors:
                return module[name](*map(value, args))
            case ast.Tuple(elts=parts):
                return tuple(map(value, parts))
        return ast.literal_eval(node)

    return value(node)
