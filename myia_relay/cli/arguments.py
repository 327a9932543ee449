"""What the words of a command line stand for: functions of files, and example arguments."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click


class UsageError(Exception):
    """Something the user can put right; the message says how."""


class ExampleCommand(click.Command):
    """A command with a function and arguments for it: `COMMAND FILE.py:FUNCTION 2.0 -3 'float32[4]'`.

    `--args` may stand before the arguments. A word that begins like a negative number is an argument and no option.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of the command line."""
        words = [word.removeprefix("--args=") for word in args if word != "--args"]
        # The space hides the sign from click; literals may begin with one.
        return super().parse_args(ctx, [f" {word}" if re.match(r"-\.?\d|-inf|-nan", word) else word for word in words])


def with_function(function: Callable) -> Callable:
    """Declare the parameters `function` and `args` of an `ExampleCommand`."""
    arguments = click.argument("args", nargs=-1, metavar="[ARG]...")(function)
    return click.argument("function", metavar="FILE.py:FUNCTION", type=FunctionName())(arguments)


class FunctionName(click.ParamType):
    """A file and a name in it, `FILE.py:NAME`. Shells complete the file."""

    name = "function"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str):
        """Leave it to the shell to complete file names."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


def load(text: str) -> Any:
    """Run a file as a module and take a name from it.

    Args:
        text: ``path/to/module.py:name``.

    Raises:
        UsageError: the text does not name anything of a Python file.
    """
    file, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier():
        raise UsageError(f"{text!r} does not name a function: write FILE.py:FUNCTION")
    return named(load_module(file), file, name)


def load_module(file: str) -> Any:
    """Run a file as a module.

    Raises:
        UsageError: there is no such Python file.
    """
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"there is no file {file}")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module


def named(module: Any, file: str, name: str) -> Any:
    """What a module has under a name.

    Raises:
        UsageError: nothing.
    """
    if not hasattr(module, name):
        from ..utils.errors import nearest

        raise UsageError(f"{file} has no {name!r}{nearest(name, vars(module))}")
    return getattr(module, name)


def load_compiled(text: str, **options: Any) -> Any:
    """A function of a file, compiled on call.

    Args:
        text: ``path/to/module.py:name``.
        options: of `@relay`, for a function that has no decorator or that is to be compiled in another way.

    Raises:
        UsageError: it is no function.
    """
    function = load(text)
    from myia_relay import relay

    if not callable(function):
        raise UsageError(f"{text} is {type(function).__name__}, no function")
    if not hasattr(function, "explain"):
        return relay(function, **options)
    return relay(function.__wrapped__, **{**function.options, **options}) if options else function


def examples(words: Sequence[str], fill: Callable | None = None) -> tuple[Any, ...]:
    """The arguments that words stand for.

    Args:
        words: the words.
        fill: `(shape, dtype) -> array`, for types such as ``float32[3,4]``; by default zeros.

    Raises:
        click.BadParameter: a word stands for nothing.
    """
    found = []
    for word in words:
        try:
            found.append(example(word, fill))
        except (ValueError, OSError) as error:
            raise click.BadParameter(str(error), param_hint="ARG") from None
    return tuple(found)


def example(text: str, fill: Callable | None = None) -> Any:
    """An example argument: a Python literal, an array of a type such as ``float32[3,4]``, or the array of a `.npy` file.

    Raises:
        ValueError: it is none of these.
    """
    text = text.strip()
    if text.endswith(".npy"):
        import numpy as np

        return np.load(text, allow_pickle=False)
    if match := re.fullmatch(r"(bool|u?int\d+|b?float\d+)\s*\[([\d\s,]*)\]", text):
        import numpy as np

        try:
            return (fill or np.zeros)([int(n) for n in match[2].split(",") if n.strip()], _dtype(match[1]))
        except TypeError:
            raise ValueError(f"{match[1]} is no array type") from None
    if re.fullmatch(r"[+-]?(inf|nan)", text):
        return float(text)
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(
            f"{text!r} is neither a Python literal nor a type such as float32[3,4] nor a .npy file"
        ) from None


class RandomArrays:
    """Makes arrays of random numbers, the same in every process."""

    def __init__(self):
        self.generator: Any = None

    def __call__(self, shape: list[int], dtype: Any):
        import numpy as np

        self.generator = self.generator or np.random.default_rng(0)
        if dtype.kind in "bui":
            low, high = {"b": (0, 2), "u": (0, 10), "i": (-9, 10)}[dtype.kind]
            return self.generator.integers(low, high, shape).astype(dtype)
        return self.generator.standard_normal(shape).astype(dtype)


def _dtype(name: str):
    import ml_dtypes
    import numpy as np

    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
