"""`bisect`: the pass after which a function's answer changes."""

from __future__ import annotations

from pathlib import Path

import click

from .arguments import ExampleCommand, RandomArrays, examples, load_compiled, with_function


@click.command(cls=ExampleCommand)
@with_function
@click.option(
    "--tolerance",
    type=float,
    help="Relative, of floats once derivatives or native code are involved (default: 1e-9, more for less than 64 bits).",
)
@click.option(
    "--dump",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write the graphs before and after the change there.",
)
def command(function: str, args: tuple[str, ...], tolerance: float | None, dump: Path | None) -> int:
    """Find the pass after which a function's answer changes.

    Runs the function by the reference interpreter after each pass of the compiler, then as native code, and names the first
    pass after which the answer is another one. Status 1 where there is one.

    An ARG is a Python literal, the array of a .npy file, or random numbers of a type such as float32[3,4].
    """
    values = examples(args, RandomArrays())
    compiled = load_compiled(function)
    from ..bisect import bisect
    from ..ir.text import to_text

    found = bisect(compiled, values, tolerance)
    if dump:
        dump.mkdir(parents=True, exist_ok=True)
        for name, graph in (("before", found.before), ("after", found.after)):
            if graph is not None:
                path = dump / f"{name}.txt"
                path.write_text(to_text(graph) + "\n")
                print(f"wrote {path}")
    return 0 if found.culprit is None else 1
