"""File names: the default name of a model, checks before a run, and outputs that appear only when complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from localsvm.errors import RunError

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
TEXT = (".libsvm", ".txt", ".svm")


def default_model(train_file: str) -> str:
    """`folder/name.libsvm.xz` -> `folder/name.model.h5`; UsageError for stdin."""
    if train_file == "-":
        raise click.UsageError("MODEL_FILE is needed when the training data come from stdin.")
    path = Path(train_file)
    for suffixes in (COMPRESSED, TEXT):
        if path.suffix in suffixes and path.stem:
            path = path.with_suffix("")
    return str(path.with_name(f"{path.name}.model.h5"))


def check_outputs(force: bool, inputs: list[str | None], outputs: list[str | None]) -> None:
    """Refuse outputs that could not be written at the end of the run; `-` and None always pass.

    Raises
    ------
    RunError
        As store.outputs.check_writable does, and if an output is also an input, or two outputs are the same file.
    """
    from localsvm.store.outputs import check_writable

    read = {os.path.realpath(path): path for path in inputs if path is not None and path != "-"}
    for path in outputs:
        if path is None or path == "-" or _special(path):
            continue
        target = os.fspath(check_writable(path, force))
        if target in read:
            raise RunError(f"{path}: would replace {read[target]}, which this command uses; name another output")
        read[target] = path


@contextmanager
def text_output(path: str | None, force: bool) -> Iterator[TextIO]:
    """Open a text file that appears only when complete; stdout for None and `-`; devices and pipes directly."""
    from localsvm.store.outputs import replacing

    if path is None or path == "-":
        yield sys.stdout
    elif _special(path):
        with open(path, "w", encoding="utf-8") as device:
            yield device
    else:
        with replacing(path, force) as temporary:
            try:
                with open(temporary, "w", encoding="utf-8") as file:
                    yield file
            except OSError as error:
                error.filename = error.filename or os.fspath(temporary)
                raise


def _special(path: str) -> bool:
    """Whether the path is a device, a pipe or a socket, such as /dev/null."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
