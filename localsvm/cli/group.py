"""Command `lsvm`: all commands under one name."""

from __future__ import annotations

from importlib import import_module

import click

from localsvm import __version__
from localsvm.cli.program import Guarded, examples
from localsvm.cli.value_types import meant

COMMANDS = ("train", "predict", "partition", "cv", "inspect", "plot", "describe", "convert", "completion")
PROGRAMS = ("lsvm", "lsvm-train", "lsvm-predict", "lsvm-partition", "lsvm-cv")


class Programs(Guarded, click.Group):
    """The commands; each is imported, from the file with its name, only when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order in which they are used."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command as click does; the error for a misspelt name asks whether another one was meant."""
        name = args[0].removeprefix("lsvm-")
        if name not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}.{meant(name, COMMANDS)}")
        return super().resolve_command(ctx, args)

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
