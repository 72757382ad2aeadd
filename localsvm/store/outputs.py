"""Output files: refused when they would overwrite, written beside their name, renamed when complete."""

from __future__ import annotations

import errno
import os
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localsvm.errors import RunError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def check_writable(path: str | os.PathLike[str], force: bool = False) -> Path:
    """The real path (links followed) under which `path` would be written.

    Commands call it before a long run.

    Raises
    ------
    RunError : the file exists and `force` is not given, it is not a regular file, or its directory does not exist or
        cannot be written to.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise RunError(f"{path}: not a regular file; name another output")
    if target.exists() and not force:
        raise RunError(f"{path}: exists already; give --force to overwrite it, or name another output")
    if not target.parent.is_dir():
        raise RunError(f"{path}: the directory {target.parent} does not exist; make it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise RunError(f"{path}: no permission to write in the directory {target.parent}")
    return target


@contextmanager
def replacing(path: str | os.PathLike[str], force: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the directory of `path`, to be written and closed within the block.

    The temporary file takes the place of `path` when the block ends, its bytes on the disk first, so that a
    reader finds the old file or the whole new one. If the block raises, it is removed and `path` is
    untouched.

    Raises
    ------
    RunError : as `check_writable` does, and when the disk is full.
    """
    target = check_writable(path, force)
    temporary = target.with_name(f".localsvm-{secrets.token_hex(6)}.tmp")
    try:
        yield temporary
        _move(temporary, path, force)
    except OSError as error:
        if error.filename in (temporary, os.fspath(temporary)):
            raise write_error(path, error) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _move(temporary: Path, path: str | os.PathLike[str], force: bool) -> None:
    target = check_writable(path, force)  # again: another run may have written it meanwhile
    try:
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise write_error(path, error) from error


def write_error(
    path: str | os.PathLike[str],
    error: OSError,
    remedy: str = "nothing was overwritten: free some space, or name another disk, and run again",
) -> RunError:
    """The RunError for an OSError met while writing `path`; `remedy` is what is said of a full disk."""
    if error.errno in _FULL:
        return RunError(f"{path}: no space left to write it ({os.strerror(error.errno)}); {remedy}")
    return RunError(f"{path}: cannot be written: {error.strerror or error}")


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the block ends, for work that an exception would leave in ruins.

    Only the main thread runs Python's signal handlers, so in any other thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, _frame: pending.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            # None: a handler installed outside Python, which Python cannot put back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for held in pending:
            signal.raise_signal(held)
