"""`compile`: a function's program, kernels, memory and times; its library."""

from __future__ import annotations

from pathlib import Path

import click

from .arguments import ExampleCommand, examples, load_compiled, with_function


@click.command(cls=ExampleCommand)
@with_function
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write it as a library, which relay.load_compiled runs without a compiler.",
)
@click.option(
    "--target",
    metavar="MACHINE",
    help='Write it for C, as NAME.a or NAME.so, for a machine: "aarch64-linux-gnu", "armv7l-linux-gnueabihf", ...',
)
@click.option("--ir", is_flag=True, help="Show the optimised program too.")
def command(function: str, args: tuple[str, ...], output: Path | None, target: str | None, ir: bool) -> None:
    """Compile a function, report on it, write it as a library.

    An ARG is an example of each argument: a Python literal such as 2.0 or '(1, 2)', a type such as float32[3,4], or a .npy
    file.
    """
    values = examples(args)
    compiled = load_compiled(function)
    from myia_relay import relay

    if ir:
        print(compiled.ir(*values))
    print(compiled.explain(*values))
    if output and (target or output.suffix == ".a"):
        relay.export_library(compiled, output, *values, target=target)
        use = "link it to a C program" if output.suffix == ".a" else "open it with myia_relay.h"
        print(f"wrote {output}: {output.stat().st_size:,} bytes; {use}")
    elif output:
        compiled.save(output, *values)
        print(f"wrote {output}: {output.stat().st_size:,} bytes; load it with relay.load_compiled")
