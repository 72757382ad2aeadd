"""`lsvm`: all commands under one name."""

from __future__ import annotations

from importlib import import_module

import click

from localsvm import __version__
from localsvm.cli.program import Guarded, examples

COMMANDS = ("train", "predict", "partition", "cv", "inspect", "convert")


class Programs(Guarded, click.Group):
    """The commands, each imported from the file of its name when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of their use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
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
