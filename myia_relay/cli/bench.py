"""`bench`: the benchmarks of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from .arguments import UsageError


@click.command(add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="...")
def command(rest: tuple[str, ...]) -> int:
    """Run the benchmarks of a checkout, with the words that follow."""
    return subprocess.call([sys.executable, "-m", "benchmarks", *rest], cwd=_checkout())


def _checkout() -> Path:
    """The folder that the benchmarks lie in, beside the package.

    Raises:
        UsageError: the package is installed without them.
    """
    root = Path(__file__).resolve().parents[2]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise UsageError("the benchmarks are not part of an installed package: run this in a checkout of the project")
    return root
