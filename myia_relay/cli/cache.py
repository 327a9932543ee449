"""`cache`: the compiled programs that are kept between processes."""

from __future__ import annotations

import time
from pathlib import Path

import click


@click.group()
def command() -> None:
    """List or remove the compiled programs that are kept."""


@command.command("info")
def info() -> None:
    """Show where programs are kept, how many there are, and how much room they take."""
    from . import environment

    environment.show_table(("", ""), environment.cache())


@command.command("list")
@click.option("--paths", is_flag=True, help="Show the paths of the files too.")
def list_(paths: bool) -> None:
    """List the programs, the last used ones first."""
    from . import environment

    found = sorted(_programs(), reverse=True)
    if not found:
        print("no compiled programs are kept")
        return
    rows = [(_name(path), size, _age(time.time() - used), *([str(path)] * paths)) for used, size, path in found]
    environment.show_table(("function", "bytes", "last used", *(["file"] * paths)), rows)


@command.command("clear")
@click.argument("names", nargs=-1, metavar="[FUNCTION]...")
def clear(names: tuple[str, ...]) -> None:
    """Remove the programs of functions with these names, or all programs.

    Processes that run a program go on with it. The next call of the function in a new process compiles it again. Data sets that
    were downloaded stay.
    """
    from ..cache import store

    found = [(size, path) for _, size, path in _programs() if not names or _name(path) in names]
    for _, path in found:
        store.remove(str(path))
    print(f"removed {len(found)} compiled programs, {sum(size for size, _ in found) / 1e6:,.1f} MB")


def _programs() -> list[tuple[float, int, Path]]:
    """Time of last use, size and path of each program."""
    from ..cache import store
    from ..utils.files import cache_root

    found = store.contents(cache_root() / "programs")
    return [(used, size, Path(path)) for used, size, path in found if path.endswith((".so", ".tmp"))]


def _name(path: Path) -> str:
    """The name of a program's function, which its file says."""
    from ..cache.program import unpack

    try:
        return unpack(path.read_bytes())[0]["name"]
    except (OSError, ValueError, KeyError):
        return "(not readable)"


def _age(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return "just now" if seconds < 60 else "a minute ago"
