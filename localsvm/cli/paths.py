"""File names: the default name of a model, checks before a run, and outputs that appear only when complete."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TextIO

import click

from localsvm.errors import RunError

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
COPIED = 1 << 20  # bytes at once
PART = "part-"  # begins the names of files of a folder with parts, as Spark's do
TEXT = (".libsvm", ".txt", ".svm", ".csv", ".tsv", ".tab", ".parquet", ".pq", ".arrow", ".feather", ".npy", ".npz")


def default_model(train_file: str) -> str:
    """Default name of a model: `folder/name.libsvm.xz` gives `folder/name.model.h5`; UsageError for stdin."""
    if train_file == "-":
        raise click.UsageError("MODEL_FILE is needed when the training data come from stdin.")
    path = Path(train_file)
    if path.is_dir():
        raise click.UsageError(f"TRAIN_FILE {train_file} is a directory; name a file in it.")
    for suffixes in (COMPRESSED, TEXT):
        if path.suffix in suffixes and path.stem:
            path = path.with_suffix("")
    return str(path.with_name(f"{path.name}.model.h5"))


def seekable(path: str, what: str) -> str:
    """The path of a model or partition; UsageError for stdin and pipes, as HDF5 is not read from front to back."""
    if passes_through(path):
        raise click.UsageError(f"{path}: {what} is not read from front to back, so it must be a file; write one first.")
    return path


@contextmanager
def model_output(path: str) -> Iterator[str]:
    """Give the path to write a model to.

    For what `passes_through`, this is a temporary file, which is copied when it is complete.
    """
    from localsvm.store.outputs import write_error

    if not passes_through(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="localsvm-") as folder:
        yield (model := os.path.join(folder, "model.h5"))
        with open(model, "rb") as file:
            if path == "-":
                shutil.copyfileobj(file, sys.stdout.buffer, COPIED)
                return
            try:
                with open(path, "wb") as device:
                    shutil.copyfileobj(file, device, COPIED)
            except OSError as error:
                raise write_error(path, error) from error


def passes_through(path: str) -> bool:
    """True for stdout, a device or a pipe: it cannot be replaced at once, and nothing lies beside it."""
    from localsvm.store.outputs import special

    return path == "-" or special(path)


def check_model_output(path: str, resume: bool, time_limit: float | None, as_json: bool) -> None:
    """Raise UsageError where the model cannot go to stdout, a device or a pipe."""
    if not passes_through(path):
        return
    if resume or time_limit:
        name, where = "--resume" if resume else "--time-limit", "stdout" if path == "-" else path
        raise click.UsageError(f"{name} needs a MODEL_FILE: a model for {where} has no journal that stays.")
    if path != "-":
        return
    if as_json or sys.stdout.isatty():
        taken = "--json prints its report there" if as_json else "a terminal cannot show it"
        raise click.UsageError(f"the model cannot go to stdout: {taken}; name a MODEL_FILE.")


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
        if path is None or passes_through(path):
            continue
        target = os.fspath(check_writable(path, force))
        if target in read:
            raise RunError(f"{path}: would replace {read[target]}, which this command uses; name another output")
        read[target] = path


@contextmanager
def text_output(path: str | None, force: bool) -> Iterator[TextIO]:
    """Open a text file that appears only when complete; stdout for None and `-`; devices and pipes directly."""
    from localsvm.store.outputs import replacing, special

    if path is None or path == "-":
        yield sys.stdout
    elif special(path):
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


@contextmanager
def parts_output(path: str, force: bool) -> Iterator[Callable[[str], None]]:
    """Write texts, one by one, to files part-00000, part-00001, ... of a folder that appears only when complete.

    Raises
    ------
    RunError : as `check_folder` does, and when the disk is full; the folder that was there is untouched then.
    """
    from localsvm.store.outputs import signals_held, write_error

    target = check_folder(path, force)
    with tempfile.TemporaryDirectory(prefix=".localsvm-", dir=target.parent) as scratch:
        (folder := Path(scratch, "parts")).mkdir()
        numbers = count()

        def write(text: str) -> None:
            try:
                Path(folder, f"{PART}{next(numbers):05d}").write_text(text, encoding="utf-8")
            except OSError as error:
                raise write_error(path, error) from error

        yield write
        check_folder(path, force)  # again: another run may have written it meanwhile
        with signals_held():
            try:
                _exchange(folder, target, Path(scratch, "before"))
            except OSError as error:
                raise write_error(path, error) from error


def _exchange(folder: Path, target: Path, aside: Path) -> None:
    """Give a folder the place of another one, which goes aside if there is one, and comes back where this fails."""
    if there := target.exists():
        target.rename(aside)
    try:
        folder.rename(target)
    except OSError:
        if there:
            aside.rename(target)
        raise


def check_folder(path: str, force: bool, inputs: Sequence[str] = ()) -> Path:
    """The real path of a folder of parts; RunError where it cannot be written, has other files, or holds an input."""
    target = Path(os.path.realpath(path))
    for used in inputs:
        real = Path(os.path.realpath(used))
        if target in (real, *real.parents):
            raise RunError(f"{path}: would replace {used}, which this command uses; name another output")
    if target.exists():
        if not target.is_dir():
            raise RunError(f"{path}: not a folder; name another output")
        if any(not each.name.startswith(PART) for each in target.iterdir()):
            raise RunError(f"{path}: the folder has files that are no predictions; name a new one")
        if not force:
            raise RunError(f"{path}: exists already; give --force to overwrite it, or name another output")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise RunError(f"{path}: no folder can be made in {target.parent}; name another output")
    return target
