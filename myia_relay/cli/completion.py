"""`completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that makes a shell complete myia-relay.

    \b
    bash:  eval "$(myia-relay completion bash)"                         in ~/.bashrc
    zsh:   eval "$(myia-relay completion zsh)"                          in ~/.zshrc
    fish:  myia-relay completion fish > ~/.config/fish/completions/myia-relay.fish
    """
    from click.shell_completion import get_completion_class

    from . import COMPLETION
    from .commands import commands

    completer = get_completion_class(shell)
    assert completer is not None
    print(completer(commands, {}, "myia-relay", COMPLETION).source())
