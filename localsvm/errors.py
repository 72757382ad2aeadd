"""What localsvm raises for a user's mistake; the command line turns each into one message and an exit code."""

from __future__ import annotations


class LocalSVMError(Exception):
    """Base of all errors that a user can mend; its message names the place and the remedy."""

    exit_code = 1


class DataError(LocalSVMError):
    """A data file that cannot be read or used; the message begins with `file:line:column:` where it has one."""


class ModelError(LocalSVMError):
    """A model, partition or journal file that is not ours, damaged, too new, or does not fit the data."""


class RunError(LocalSVMError):
    """A run that cannot go on: too little memory, no space on the disk, a file in the way."""


class OptionError(LocalSVMError):
    """An option's value, or a combination of options, that cannot be used."""

    exit_code = 2
