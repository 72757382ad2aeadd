"""Entry points of the programs, `python -m localsvm` (which is `lsvm`) among them: signals and standard streams first.

The command line is imported only then, so that an early Ctrl-C ends the program without a traceback.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from localsvm.blas import ONE_THREAD

INTERRUPTED = 130
GARBAGE = 200_000  # objects, after which cycles are looked for: every 700, it took a twentieth of a run of few rows


def lsvm() -> None:
    """Run `lsvm`."""
    _prepare()
    from localsvm.cli.group import lsvm

    lsvm(prog_name="lsvm")


def train() -> None:
    """Run `lsvm-train`."""
    _prepare()
    from localsvm.cli.train import train

    train()


def predict() -> None:
    """Run `lsvm-predict`."""
    _prepare()
    from localsvm.cli.predict import predict

    predict()


def partition() -> None:
    """Run `lsvm-partition`."""
    _prepare()
    from localsvm.cli.partition import partition

    partition()


def cv() -> None:
    """Run `lsvm-cv`."""
    _prepare()
    from localsvm.cli.cv import cv

    cv()


def _prepare() -> None:
    gc.set_threshold(GARBAGE)
    for variable, value in ONE_THREAD.items():  # before numpy is loaded; what the user has set stays
        os.environ.setdefault(variable, value)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in a shell's background
        signal.signal(signal.SIGINT, _stop)
    for descriptor, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if not _is_open(descriptor):
            _fill(descriptor)
            setattr(sys, name, open(descriptor, mode, closefd=False))  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        _Messages(2, "w", closefd=False), sys.stderr.encoding, "backslashreplace", write_through=True
    )


def _stop(_number: int, _frame: Any) -> None:
    """End at once: nothing has begun, or everything is done."""
    os._exit(INTERRUPTED)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _fill(descriptor: int) -> None:
    """Open a closed standard stream, or a file of ours would get its number, and what is meant for it.

    Messages vanish. Reading stdin, and writing to stdout, fails as it does where they are closed.
    """
    opened = os.open(os.devnull, os.O_RDONLY if descriptor == 1 else os.O_WRONLY)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)


class _Messages(io.FileIO):
    """Stream stderr: a message that cannot be written, such as on a full disk, does not end a run."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            super().write(data)
        return len(data)


if __name__ == "__main__":
    lsvm()
