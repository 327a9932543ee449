"""`include`: where the header for C programs is."""

import click


@click.command()
def command() -> None:
    """Show the folder of myia_relay.h, for C programs."""
    from ..backend.native.standalone import INCLUDE

    print(INCLUDE)
