"""`explain`: what the compiler made of a function."""

from __future__ import annotations

import click

from .arguments import ExampleCommand, examples, load_compiled, with_function


@click.command(cls=ExampleCommand)
@with_function
def command(function: str, args: tuple[str, ...]) -> None:
    """Show passes, kernels, memory and the cost of source lines.

    An ARG is an example of each argument: a Python literal, a type such as float32[3,4], or a .npy file.
    """
    values = examples(args)
    print(load_compiled(function).explain(*values))
