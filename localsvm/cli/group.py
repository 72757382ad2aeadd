"""`lsvm`: all commands under one name."""

from __future__ import annotations

from importlib import import_module

import click

from localsvm import __version__
from localsvm.cli.program import Guarded, examples

COMMANDS = ("train", "predict", "partition", "cv", "inspect", "convert")


class Programs(Guarded, click.Group):
    """The commands; each is imported, from the file with its name, only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command with this name; None if there is none."""
        if name not in COMMANDS:
            return None
        command = getattr(import_module(f"localsvm.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=Programs, epilog=examples("lsvm train train.libsvm model.h5", "lsvm predict test.libsvm model.h5 out.txt")
)
@click.version_option(__version__, prog_name="localsvm")
def lsvm() -> None:
    """Local support vector machines on data too large for one.

    train, predict, partition and cv are programs too: lsvm-train, lsvm-predict, lsvm-partition, lsvm-cv.
    """
