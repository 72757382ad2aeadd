"""A worker process: it does the work units that its parent sends, one after the other, and ends with its parent.

The parent holds the other end of a socket pair, which the kernel closes however the parent ends. A thread waits for
that from the first moment, also while modules are imported and while a work unit runs.
"""

from __future__ import annotations

import errno
import os
import pickle
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NoReturn

from localsvm.pulse import Beat, listening

TOLD, RESULT, ERROR = "told", "result", "error"  # kinds of answers


def main(descriptor: int) -> NoReturn:
    """Serve the parent at the other end of this socket.

    It sends pickled pairs (work, keep): `work` is called with what `keep` made for this process. The answers are
    pickled pairs (kind, content): any number of TOLD, a Beat of a solver among them, then the RESULT or the ERROR, an
    exception.
    """
    parent: Connection[bytes, bytes] = Connection(descriptor)
    waiting: SimpleQueue[bytes] = SimpleQueue()
    try:
        threading.Thread(target=_receive, args=(parent, waiting), daemon=True).start()
    except RuntimeError as error:  # no more threads: the parent ends the run
        parent.recv_bytes()
        parent.send_bytes(_failure(error))
        os._exit(1)
    kept: dict[Callable[[], Any], Any] = {}

    def send(answer: bytes) -> None:
        try:
            parent.send_bytes(answer)
        except OSError:  # the parent is gone
            os._exit(1)

    # only while a work unit runs, and so never beside another answer
    with listening(lambda steps: send(pickle.dumps((TOLD, Beat(steps)), pickle.HIGHEST_PROTOCOL))):
        while True:
            for answer in _answers(waiting.get(), kept):
                send(answer)


def _receive(parent: Connection[bytes, bytes], waiting: SimpleQueue[bytes]) -> None:
    try:
        while True:
            waiting.put(parent.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # no memory for a message: the parent sees a worker that ended, not one that sleeps
        os._exit(errno.ENOMEM)


def done(work: Callable[[Any], Any], kept: Any) -> Iterator[tuple[str, Any]]:
    """Do work: its answers (kind, content), any number of TOLD and then the RESULT."""
    result = work(kept)
    if isinstance(result, Generator):
        result = yield from _telling(result)
    yield RESULT, result


def _telling(steps: Generator[Any, None, Any]) -> Generator[tuple[str, Any], None, Any]:
    while True:
        try:
            told = next(steps)
        except StopIteration as end:
            return end.value
        yield TOLD, told


def _answers(message: bytes, kept: dict[Callable[[], Any], Any]) -> Iterator[bytes]:
    try:
        work, keep = pickle.loads(message)
        if keep not in kept:
            kept[keep] = keep()
        for answer in done(work, kept[keep]):
            yield pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        yield _failure(error)


def _failure(error: BaseException) -> bytes:
    try:
        answer = pickle.dumps((ERROR, error))
        pickle.loads(answer)  # an exception with a constructor of its own may not come out again
        return answer
    except Exception:
        return pickle.dumps((ERROR, RuntimeError("\n".join([repr(error), *getattr(error, "__notes__", ())]))))
