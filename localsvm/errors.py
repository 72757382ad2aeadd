"""What localsvm raises for a user's mistake. The command line prints its message and exits with its code."""

from __future__ import annotations


class LocalSVMError(Exception):
    """Base of all errors that a user can correct; the message says where the mistake is and what to do."""

    exit_code = 1


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
