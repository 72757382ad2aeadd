"""Output files: refused when they would overwrite, written beside their name, renamed when complete."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from localsvm.errors import RunError
from localsvm.naming import opt

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def special(path: str | os.PathLike[str]) -> bool:
    """True where the path is a device, a pipe or a socket, such as /dev/null."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


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
    if os.fspath(path).endswith("/"):
        raise RunError(f"{path}: this names a folder; name a file")
    if target.exists() and not force:
        raise RunError(f"{path}: exists already; give {opt.force} to overwrite it, or name another output")
    if not target.parent.is_dir():
        raise RunError(f"{path}: the directory {target.parent} does not exist; make it first")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise RunError(f"{path}: no permission to write in the directory {target.parent}")
    return target


@contextmanager
def replacing(path: str | os.PathLike[str], force: bool = False) -> Iterator[Path]:
    """Yield a temporary file in the directory of `path`, to be written by its name and closed within the block.

    The temporary file takes the place of `path` when the block ends, its bytes on the disk first, so that a
    reader finds the old file or the whole new one. If the block raises, it is removed and `path` is
    untouched. What a killed run left of its temporary file for `path` is removed as well.

    Raises
    ------
    RunError : as `check_writable` does, and when the disk is full.
    """
    target = check_writable(path, force)
    try:
        temporary, lock = _temporary(target)
    except OSError as error:
        raise write_error(path, error) from error
    try:
        yield temporary
        _move(temporary, path, force)
    except OSError as error:
        if error.filename in (temporary, os.fspath(temporary)):
            raise write_error(path, error) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)
        os.close(lock)


def _temporary(target: Path) -> tuple[Path, int]:
    """A new file for the content of `target`, and a descriptor that holds its lock.

    The lock ends with the process, however it ends: a file of the same target that can be locked has no owner.
    """
    begin = f".localsvm-{hashlib.sha256(target.name.encode()).hexdigest()[:12]}-"
    for left in target.parent.glob(f"{begin}*.tmp"):
        _remove_abandoned(left)
    while True:
        temporary = target.with_name(f"{begin}{secrets.token_hex(4)}.tmp")
        mode = 0o600 if target.exists() else 0o666  # what takes the place of a file may be as closed as that one
        lock = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with suppress(OSError):  # a file system without locks: then nobody removes the file of another
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock).st_nlink:
            return temporary, lock
        os.close(lock)  # another run took it for abandoned between our two calls


def _remove_abandoned(left: Path) -> None:
    """Remove the file `left` if its owner has ended; a link or a pipe of that name is not ours."""
    with suppress(OSError):
        descriptor = os.open(left, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()
        finally:
            os.close(descriptor)


def _move(temporary: Path, path: str | os.PathLike[str], force: bool) -> None:
    target = check_writable(path, force)  # again: another run may have written it meanwhile
    try:
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
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
    """Hold SIGINT, SIGTERM and SIGALRM back until the block ends, for work that an exception would leave in ruins.

    Only the main thread runs Python's signal handlers, so in any other thread this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []
    previous = {
        number: signal.signal(number, lambda number, _frame: pending.append(number))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            # None: a handler installed outside Python, which Python cannot put back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for held in pending:
            signal.raise_signal(held)
