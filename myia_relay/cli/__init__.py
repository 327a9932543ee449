"""The command line: `python -m myia_relay COMMAND`, or `myia-relay COMMAND`.

Each command is a module of this package and is imported when it is run. It imports the compiler only if it needs it:
`doctor` works where the compiler does not. `docs/command-line.md` lists the commands and the exit statuses.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..utils.errors import CompileError
from .arguments import UsageError

COMPLETION = "_MYIA_RELAY_COMPLETE"
"""The variable by which a shell asks for completions."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the words after the program's name; by default those it was started with.

    Returns:
        The exit status: 0 done, 1 the program or a file is wrong, 2 the command line is wrong, 130 Ctrl-C, 141 nobody reads
        the output.

    Raises:
        CompileError: with `--traceback`, a program does not compile.
        UsageError: with `--traceback`, an argument makes no sense.
        OSError: with `--traceback`, a file cannot be read or written.
    """
    import click

    from .commands import commands

    program = "myia-relay" if os.path.basename(sys.argv[0]).startswith("myia-relay") else "python -m myia_relay"
    if COMPLETION in os.environ:
        return commands.main([], "myia-relay", COMPLETION, standalone_mode=False) or 0
    traceback = False
    try:
        with commands.make_context(program, list(sys.argv[1:] if argv is None else argv)) as context:
            traceback = context.params["traceback"]
            return commands.invoke(context) or 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as stop:
        print(f"\nstopped by Ctrl-C; {str(stop) or 'nothing was written'}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output is gone, as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except CompileError as error:
        if traceback:
            raise
        print(f"{type(error).__name__}: {str(error).strip()}", file=sys.stderr)
    except (UsageError, OSError) as error:
        if traceback:
            raise
        print(f"error: {error}", file=sys.stderr)
    return 1
