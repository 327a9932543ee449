"""`ir`: a function's program after a stage of the compiler."""

from __future__ import annotations

from pathlib import Path

import click

from .arguments import ExampleCommand, examples, load_compiled, with_function


@click.command(cls=ExampleCommand)
@with_function
@click.option("--stage", default="optimized", show_default=True, help="After which stage; a wrong one lists them.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "dot", "json", "svg"]),
    default="text",
    show_default=True,
    help="Text, Graphviz, data, or a picture.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write it to a file.")
def command(function: str, args: tuple[str, ...], stage: str, form: str, output: Path | None) -> None:
    """Show a function's program, as text or as a picture.

    An ARG is an example of each argument: a Python literal, a type such as float32[3,4], or a .npy file.
    """
    values = examples(args)
    view = load_compiled(function).ir(*values, stage=stage)
    text = str(view) if form == "text" else getattr(view, f"to_{form}")()
    if output is None:
        print(text)
    else:
        output.write_text(f"{text}\n", "utf-8")
        print(f"wrote {output}")
