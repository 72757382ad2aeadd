"""Errors that localsvm raises for a user's mistake; the command line prints their message and exits with their code."""

from __future__ import annotations

from localsvm.naming import fields_in, on_command_line


class LocalSVMError(Exception):
    """Base of all errors that a user can correct; the message says where the mistake is and what to do.

    Options stand in it by their fields (`naming.opt`). As text it has the names of the command line.
    """

    exit_code = 1

    @property
    def message(self) -> str:
        """Text as it was raised, for an interface that has its own names for options."""
        return super().__str__()

    @property
    def fields(self) -> list[str]:
        """Options that the message mentions; the first is the wrong one where the message is about a value."""
        return fields_in(self.message)

    def __str__(self) -> str:
        return on_command_line(self.message)


class DataError(LocalSVMError):
    """A data file that cannot be read or used. The message begins with `file:line:column:` if there is such a place."""


class ModelError(LocalSVMError):
    """A model, partition or journal file that is not from localsvm, damaged, too new, or does not fit the data."""


class RunError(LocalSVMError):
    """A run that cannot continue: too little memory, no space on the disk, an output file that exists."""


class WorkerLost(RunError):
    """A worker process that was killed at the same work unit twice."""


class OptionError(LocalSVMError):
    """A value of an option, or a combination of options, that cannot be used."""

    exit_code = 2


class MethodError(OptionError, TypeError):
    """A file of a learning method, or a folder of such files, that cannot be used."""
