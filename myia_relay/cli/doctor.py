"""`doctor`: versions, targets, threads, cache, data."""

from __future__ import annotations

import json

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON: an object for each subject.")
def command(as_json: bool) -> None:
    """Show versions, targets, threads, cache and data.

    Nothing is compiled, downloaded or written.
    """
    from . import environment

    found = environment.sections()
    if as_json:
        print(json.dumps({title: dict(rows) for title, rows in found.items()}, indent=2))
        return
    for title, rows in found.items():
        environment.show_table(("", ""), rows, title)
