"""Command `lsvm completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from localsvm.cli.group import PROGRAMS, lsvm
from localsvm.cli.program import Program, examples

SHELLS = ("bash", "zsh", "fish")


@click.command(
    cls=Program,
    epilog=examples(
        'eval "$(lsvm completion bash)"          # in ~/.bashrc',
        'eval "$(lsvm completion zsh)"           # in ~/.zshrc, after compinit',
        "lsvm completion fish | source           # in ~/.config/fish/config.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes SHELL complete commands, options, their values and file names, for all programs."""
    kind = get_completion_class(shell)
    assert kind is not None
    for program in PROGRAMS:
        variable = f"_{program.replace('-', '_').upper()}_COMPLETE"  # click's own name for it
        click.echo(kind(lsvm, {}, program, variable).source())
