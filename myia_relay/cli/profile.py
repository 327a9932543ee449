"""`profile`: where a function's time goes."""

from __future__ import annotations

from pathlib import Path

import click

from .arguments import ExampleCommand, RandomArrays, examples, load_compiled, with_function


@click.command(cls=ExampleCommand)
@with_function
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write a trace for Chrome and Perfetto.")
@click.option("--flame", type=click.Path(path_type=Path), metavar="FILE", help="Write a flame picture (SVG).")
def command(function: str, args: tuple[str, ...], trace: Path | None, flame: Path | None) -> None:
    """Run a function and show the time of its lines and kernels.

    An ARG is a Python literal, the array of a .npy file, or random numbers of a type such as float32[3,4].
    """
    values = examples(args, RandomArrays())
    profile = load_compiled(function).profile(*values)
    print(profile)
    if trace is not None:
        profile.to_chrome_trace(trace)
        print(f"wrote {trace}")
    if flame is not None:
        flame.write_text(profile.to_svg(), "utf-8")
        print(f"wrote {flame}")
