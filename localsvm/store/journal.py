"""The journal of a running training: what is finished, appended piece by piece, so that a killed run loses none.

The file begins with a header (magic, format version, the key of the run, and in JSON what the key was made of), then
come records: a name and arrays, of a finished cell or of a scored setting. What `append` has returned for survives the
end of the process, however it ends. A power cut may lose the last seconds: the disk is waited for at most every
`SYNC_SECONDS`, as doing so for every record would slow small cells down. No pickle: a record is a line of JSON, which
names arrays with their types and shapes, and their bytes. (NumPy's own format parses a Python expression for each
array: half of the time of writing a model.)

SQLite does not lose less: in its mode WAL, which is as durable, it writes each byte twice and takes 1.2 to 1.8 times as
long, leaves a second file after a kill or on a full disk, and holds no record of a gigabyte. A folder of .npz files
takes 2.5 times as long, and reads 4 times as slowly.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import ModelError, RunError
from localsvm.naming import opt
from localsvm.store.outputs import signals_held, write_error

SYNC_SECONDS = 5.0

_MAGIC = b"LSVMJRNL"
_VERSION = 4
_HEADER = struct.Struct("<8sI64sII")  # magic, version, key, bytes of what it was made of, CRC-32 of all before it
_RECORD = struct.Struct("<4sQ32sI")  # mark, bytes of the body, SHA-256 of the body, CRC-32 likewise
_MARK = b"task"
_ALIGN = 16  # bytes, where arrays begin
_NUMBERS = re.compile("[<>|][biuf][1248]")  # their types, as numpy writes them
_SHOWN = 3  # differences between two runs that a message names
_KEPT = f"what was finished is kept: free some space, and run again with {opt.resume}"

_DIFFERS = "differs"  # the problem that the key is another
_DIGEST = re.compile("[0-9a-f]{64,}")

Arrays = Mapping[str, NDArray[Any]]


def journal_path(model: str | os.PathLike[str]) -> Path:
    """Path of the journal of a run that writes `model`: beside the file behind a symbolic link."""
    return Path(f"{os.path.realpath(model)}.journal")


class Journal(Mapping[str, dict[str, NDArray[Any]]]):
    """Records of what a run has finished, by name, in the order of its completion; made by `open_journal`.

    Only the places of the records are in memory; `journal[name]` reads one. For one thread of one process.
    """

    def __init__(self, path: Path, descriptor: int, key_parts: bytes) -> None:
        self.path = path
        self._descriptor = descriptor
        self._key_parts = key_parts
        self._places: dict[str, tuple[int, int]] = {}
        self._end = _HEADER.size
        self._replaces: str | None = None  # the key to begin with, where the first record replaces another journal
        self._synced = time.monotonic()

    def __getitem__(self, name: str) -> dict[str, NDArray[Any]]:
        """The arrays of a record, read-only. ModelError when they have changed since they were read or written."""
        start, size = self._places[name]
        body = self._body(start, size)
        if body is None:
            raise ModelError(f"{self.path}: the record of {name} has changed; run again with {opt.resume}")
        with self.sound():
            return _unpack(body)

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Turn errors in records into a ModelError: the checksum of one agrees, but its content is none of ours."""
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise ModelError(
                f"{self.path}: a record is not as localsvm writes it; give {opt.force} to start afresh"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def append(self, name: str, arrays: Arrays) -> None:
        """Record what is finished; a record of the same name that was there before is superseded.

        Parameters
        ----------
        name : of the record.
        arrays : of numbers, by name; copied to the file before this returns.

        Raises
        ------
        ValueError : arrays of something else. RunError : the file cannot be written; the records before stay.
        """
        body = _pack(name, arrays)
        try:
            if self._replaces is not None:
                self._start(self._replaces)
            head = _sealed(_RECORD, _MARK, len(body), hashlib.sha256(body).digest())
            _write_at(self._descriptor, head + body, self._end)
        except OSError as error:
            raise write_error(self.path, error, _KEPT) from error
        self._places[name] = (self._end, len(body))
        self._end += _RECORD.size + len(body)

    @property
    def empty(self) -> bool:
        """True where it holds no record."""
        return not self._places

    def settle(self) -> None:
        """Wait for the disk, if that was not done in the last `SYNC_SECONDS`; to be called now and then."""
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self._sync()

    def close(self) -> None:
        """Wait for the disk and let the file go; it stays for a later run to resume, unless nothing was finished."""
        if self._descriptor >= 0 and not self._places and self._replaces is None:
            self.delete()
        elif self._descriptor >= 0:
            self._sync()
            os.close(self._descriptor)
            self._descriptor = -1

    def delete(self) -> None:
        """Remove the file: the model is written, or there is nothing to resume."""
        self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _prepare(self, key: str, resume: bool, force: bool) -> None:
        header = os.pread(self._descriptor, _HEADER.size, 0)
        size = os.fstat(self._descriptor).st_size
        self._end = _HEADER.size + (_HEADER.unpack(header)[3] if _intact(_HEADER, header) else 0)
        if size <= self._end and header[: len(_MAGIC)] == _MAGIC[: len(header)]:
            self._start(key)  # new, or its run ended before anything was finished
            return
        problem = _problem(self.path, header.ljust(_HEADER.size, b"\0"), key)
        if problem == _DIFFERS:
            journal_parts = _read_at(self._descriptor, self._end - _HEADER.size, _HEADER.size)
            problem = f"{_differences(journal_parts, self._key_parts)}; give the same, or {opt.force} to start afresh"
        if resume and problem is None:
            self._scan()
        elif force:
            self._replaces = key
        elif resume:
            raise ModelError(f"{self.path}: cannot resume: {problem}")
        else:
            raise RunError(
                f"{self.path}: an interrupted run left what it had finished; give {opt.resume} to continue it, "
                f"or {opt.force} to start afresh"
            )

    def _start(self, key: str) -> None:
        self._replaces = None
        os.ftruncate(self._descriptor, 0)
        head = _sealed(_HEADER, _MAGIC, _VERSION, key.encode(), len(self._key_parts)) + self._key_parts
        _write_at(self._descriptor, head, 0)
        self._end = len(head)
        self._sync()

    def _scan(self) -> None:
        """Find the records; cut off a tail that was torn by the end of the run or of the power."""
        size = os.fstat(self._descriptor).st_size
        while (body_bytes := self._announced(size)) is not None:
            body = self._body(self._end, body_bytes)
            if body is not None:  # a record damaged in place is done again; those behind it are not lost
                with self.sound():
                    self._places[_name_of(body)] = (self._end, body_bytes)
            self._end += _RECORD.size + body_bytes
        os.ftruncate(self._descriptor, self._end)

    def _announced(self, size: int) -> int | None:
        """The length of the body at the end of what is known; None where no whole record follows."""
        head = os.pread(self._descriptor, _RECORD.size, self._end)
        if not _intact(_RECORD, head):
            return None
        body_bytes = int(_RECORD.unpack(head)[1])
        return body_bytes if self._end + _RECORD.size + body_bytes <= size else None

    def _body(self, start: int, size: int) -> bytes | None:
        record = _read_at(self._descriptor, _RECORD.size + size, start)
        body = record[_RECORD.size :]
        digest = _RECORD.unpack_from(record)[2]
        return body if hashlib.sha256(body).digest() == digest else None

    def _sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise write_error(self.path, error, _KEPT) from error
        self._synced = time.monotonic()


def open_journal(
    path: str | os.PathLike[str],
    key: str,
    key_parts: Mapping[str, str] | None = None,
    *,
    resume: bool = False,
    force: bool = False,
) -> Journal:
    """Open the journal of a run, or begin it.

    Parameters
    ----------
    key : 64 hexadecimal digits that stand for the data and the options which determine the model.
    key_parts : what the key was made of, by the names that messages give to it; a value that is a SHA-256 is not shown.
    resume, force : a journal that is there is continued with `resume` if its key is equal, and replaced with
        `force`, once there is something to record; with both, replaced only if it cannot be continued. With neither
        it is in the way, unless it holds nothing.

    Raises
    ------
    ModelError : not a journal, another version, damaged, another key.
    RunError : in use by a running process, in the way, cannot be written.
    """
    with ExitStack() as failed:
        with signals_held():  # so that one that was begun is deleted, as long as it holds nothing
            journal = Journal(Path(path), _locked(path), json.dumps(dict(key_parts or {})).encode())
            failed.callback(os.close, journal._descriptor)
            try:
                journal._prepare(key, resume, force)
            except OSError as error:
                raise write_error(path, error) from error
            failed.pop_all()
            failed.callback(journal.close)
        failed.pop_all()
    return journal


def _locked(path: str | os.PathLike[str]) -> int:
    """A descriptor of the file, made if need be, that no other process holds."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise write_error(path, error) from error
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise RunError(
                    f"{path}: a running process is training this model; wait for it, or name another model"
                ) from error
            raise write_error(path, error) from error
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # its owner finished and deleted it between our two calls


def _problem(path: Path, header: bytes, key: str) -> str | None:
    """Reason why a journal with this header cannot be continued by a run with this key; None when it can."""
    magic, version, journal_key, _, _ = _HEADER.unpack(header)
    if magic != _MAGIC:
        raise ModelError(f"{path}: in the way, and not a journal of localsvm; move it, or name another model")
    if version > _VERSION:
        return f"its version {version} is newer than localsvm; upgrade it, or give {opt.force} to start afresh"
    if version < _VERSION:
        return f"its version {version} is older than localsvm; give {opt.force} to start afresh"
    if not _intact(_HEADER, header):
        return f"its header is damaged; give {opt.force} to start afresh"
    return None if journal_key == key.encode() else _DIFFERS


def _differences(before: bytes, now: bytes) -> str:
    """Differences between the parts of two keys, for a message. before, now : the parts as JSON."""
    try:
        was, is_now = (dict(json.loads(text)) for text in (before, now))
    except ValueError:  # damaged
        was = is_now = {}
    differences = []
    for name in [*is_now, *(set(was) - set(is_now))]:
        old, new = was.get(name, "not given"), is_now.get(name, "not given")
        if old != new:
            differences.append(f"{name} differs" if _DIGEST.fullmatch(old + new) else f"{name} was {old}, is {new}")
    more = f" and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
    return ", ".join(differences[:_SHOWN]) + more or "the data or the options differ from those of the interrupted run"


def _sealed(layout: struct.Struct, *values: Any) -> bytes:
    head = layout.pack(*values, 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head))


def _intact(layout: struct.Struct, head: bytes) -> bool:
    return len(head) == layout.size and zlib.crc32(head[:-4]) == struct.unpack("<I", head[-4:])[0]


def _pack(name: str, arrays: Arrays) -> bytes:
    plain = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    if mixed := [name for name, array in plain.items() if array.dtype.kind not in "biuf"]:
        raise ValueError(f"{', '.join(mixed)}: only numbers can be kept")
    head = json.dumps([name, [(name, array.dtype.str, array.shape) for name, array in plain.items()]]).encode()
    body = [head + b" " * (-(len(head) + 1) % _ALIGN) + b"\n"]
    for array in plain.values():
        body += [array.tobytes(), bytes(-array.nbytes % _ALIGN)]
    return b"".join(body)


def _unpack(body: bytes) -> dict[str, NDArray[Any]]:
    arrays, at = {}, body.index(b"\n") + 1
    for name, dtype, shape in json.loads(body[:at])[1]:
        if not _NUMBERS.fullmatch(str(dtype)) or min(shape, default=0) < 0:  # np.dtype would read it as Python
            raise ValueError(f"{name}: only numbers are kept")
        arrays[name] = np.ndarray(shape, dtype, body, at)
        at += arrays[name].nbytes + -arrays[name].nbytes % _ALIGN
    return arrays


def _name_of(body: bytes) -> str:
    return str(json.loads(body[: body.index(b"\n")])[0])


def _write_at(descriptor: int, data: bytes, offset: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, offset)
        left, offset = left[written:], offset + written


def _read_at(descriptor: int, size: int, offset: int) -> bytes:
    parts = []
    while size > 0 and (part := os.pread(descriptor, size, offset)):
        parts.append(part)
        size, offset = size - len(part), offset + len(part)
    return b"".join(parts)
