"""What localsvm raises for a user's mistake. The command line prints its message and exits with its code."""

from __future__ import annotations

from localsvm.naming import fields_in, on_command_line


class LocalSVMError(Exception):
    """Base of all errors that a user can correct; the message says where the mistake is and what to do.

    Options stand in it by their fields (`naming.opt`). As text it has the names of the command line.
    """

    exit_code = 1

    @property
    def message(self) -> str:
        """What was raised, for a face that has names of its own."""
        return super().__str__()

    @property
    def fields(self) -> list[str]:
        """The options that it is about, the first of which is the wrong one where it is about a value."""
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
    """A worker process was killed at the same work unit twice."""


class OptionError(LocalSVMError):
    """A value of an option, or a combination of options, that cannot be used."""

    exit_code = 2


class MethodError(OptionError, TypeError):
    """A file of a learning method, or a folder of such files, that cannot be used."""
