"""`import`: what an ONNX model takes and gives, its operators and parameters, and what of it cannot be imported."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--text", is_flag=True, help="Print the function that the model becomes.")
def command(model: Path, text: bool) -> None:
    """Describe an ONNX model, and say what of it cannot be imported.

    MODEL is a file in ONNX's format; external data lies beside it. Inputs, outputs, operators, parameters and the operations of
    a call are printed.

    Raises:
        Exit: it cannot be done.
    """
    from ..importers.onnx.summary import summary

    lines, complete = summary(model, text)
    print("\n".join(lines))
    if not complete:
        raise click.exceptions.Exit(1)
