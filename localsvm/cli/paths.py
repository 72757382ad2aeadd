"""Names of files: the default model beside its data, and outputs that may not be in the way."""

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
    """`folder/name.libsvm.xz` -> `folder/name.model.h5`; a usage error for stdin."""
    if train_file == "-":
        raise click.UsageError("MODEL_FILE is needed when the training data come from stdin.")
    path = Path(train_file)
    for suffixes in (COMPRESSED, TEXT):
        if path.suffix in suffixes and path.stem:
            path = path.with_suffix("")
    return str(path.with_name(f"{path.name}.model.h5"))


def check_outputs(force: bool, inputs: list[str | None], outputs: list[str | None]) -> None:
    """Refuse, before a run begins, outputs that could not be written at its end; `-` and None are let pass.

    Raises RunError as `outputs.check_writable` does, and where an output is an input or two outputs are one file.
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
    """A text file that appears complete or not at all; stdout for None and `-`; devices and pipes as they are."""
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
    """Whether the path is a device, a pipe or a socket, as /dev/null is."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
