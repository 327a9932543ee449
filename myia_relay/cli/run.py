"""`run`: compile a function of a file, or a definition of Relay text, call it, show its result."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..utils.errors import CompileError
from ..utils.raising import without_our_frames
from .arguments import ExampleCommand, UsageError, examples, load_compiled, with_function
from .relay_files import SUFFIX, load_relay, member, relay_examples


@click.command(cls=ExampleCommand)
@with_function
@click.option(
    "--export", type=click.Path(dir_okay=False, path_type=Path), help="Write the result: .npy, or .npz of several."
)
@click.option(
    "--executor",
    type=click.Choice(["native", "python", "interpreter"]),
    help="What runs the program (default: what its decorator says, else native).",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An input of an ONNX model, a .npy file; one for each, in order.",
)
@click.option("--entry", metavar="NAME", help="The definition of a file of Relay text (default: main).")
@click.option("--prelude", is_flag=True, help="The file of Relay text uses the prelude.")
def command(
    function: str,
    args: tuple[str, ...],
    export: Path | None,
    executor: str | None,
    inputs: tuple[Path, ...],
    entry: str | None,
    prelude: bool,
) -> None:
    """Call a function of a file, compiled, and print its result.

    An ARG is a Python literal such as 2.0 or '(1, 2)', the array of a .npy file, or zeros of a type such as float32[3,4].
    FILE.onnx is an ONNX model; FILE.relay is Relay text; its ARGs may be values of data types, such as 'Cons(1, Nil)'.
    """  # noqa: DOC501 (the help says nothing of it)
    if function.endswith(".onnx"):
        from ..importers.onnx.model import from_onnx

        compiled = from_onnx(function)
        values = (*examples(args), *examples(tuple(map(str, inputs))))
    elif inputs:
        raise UsageError("--input is for ONNX models: FILE.onnx")
    elif function.endswith(SUFFIX):
        module = load_relay(function, prelude)
        compiled = member(module, function, entry or "main")
        if executor:
            compiled = compiled.with_executor(executor)
        values = relay_examples(args, module)
    elif entry or prelude:
        raise UsageError("--entry and --prelude are for files of Relay text: FILE.relay")
    else:
        values = examples(args)
        compiled = load_compiled(function, **({"executor": executor} if executor else {}))
    result = _called(compiled, values)
    print(result if hasattr(result, "shape") else repr(result))
    if export is not None:
        _write(result, export)
        print(f"wrote {export}", file=sys.stderr)


def _called(compiled: Callable, values: tuple[Any, ...]) -> Any:
    """The result of a call. An exception of the program ends the command, with the traceback of the program's lines.

    Raises:
        CompileError: the program cannot be compiled.
    """
    try:
        return compiled(*values)
    except CompileError:
        raise
    except Exception as error:
        clean = without_our_frames(error)
        traceback.print_exception(type(clean), clean, clean.__traceback__)
        sys.exit(1)


def _write(result: Any, path: Path) -> None:
    """Write a number, an array, or a tuple or dict of them.

    Raises:
        UsageError: the result is something else, or the file's name is of another format.
    """
    import numpy as np

    several = isinstance(result, (tuple, list, dict))
    arrays: Any = {"arr": result} if not several else result if isinstance(result, dict) else dict(enumerate(result))
    arrays = {str(name): np.asarray(value) for name, value in arrays.items()}
    if any(array.dtype.kind not in "biufcV" for array in arrays.values()):
        raise UsageError(f"the result has parts that are no arrays or numbers: it cannot be written to {path}")
    wanted = ".npz" if several else ".npy"
    if path.suffix != wanted:
        raise UsageError(f"{path}: the result is written as {wanted}")
    if several:
        np.savez(path, **arrays)
    else:
        np.save(path, arrays["arr"])
