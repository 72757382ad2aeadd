"""Worker processes on this machine.

Each worker is a fresh Python process at the end of a socket pair, and nothing else: no semaphores, no files, no
further process. So it works where shared memory has no file system, and nothing is left of a run that was killed.
"""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from queue import LifoQueue, SimpleQueue
from typing import Any

from threadpoolctl import threadpool_limits

from localsvm.errors import RunError, WorkerLost
from localsvm.parallel.worker import ERROR, TOLD, done
from localsvm.store.outputs import signals_held

NO_MEMORY = errno.ENOMEM  # the exit code of a worker that had too little to begin, or to receive a message
_CODE = f"""
import os, sys
sys.path[:] = {{path!r}}
try:
    from localsvm.parallel.worker import main
except MemoryError:
    os._exit({NO_MEMORY})
main({{socket}})
"""
THREAD_LIMITS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def cpu_count() -> int:
    """The number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


Work = Callable[[Any], Any]  # a work unit, called with the object that its worker keeps


class LocalPool:
    """Runs work units in `jobs` processes, or in this one if jobs is 1. A context manager.

    Parameters
    ----------
    jobs : int
    keep : callable
        Makes an object that a worker keeps from one work unit to the next, such as its buffers. Each work unit is
        called with it.
    note : callable, optional
        Is told of a work unit that is tried once more.
    """

    def __init__(self, jobs: int, keep: Callable[[], Any] = dict, note: Callable[[str], None] | None = None) -> None:
        self.jobs, self._keep, self._note = jobs, keep, note
        self._workers: list[_Worker] = []
        self._idle: LifoQueue[_Worker | None] = LifoQueue()  # the newest is taken first; None: the pool ends
        self._threads: Any = None  # each speaks with one worker, so that none waits while this thread does other things

    def __enter__(self) -> LocalPool:
        if self.jobs > 1:
            try:
                for _ in range(self.jobs):
                    self._start()
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
            self._threads = ThreadPoolExecutor(self.jobs)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.end(kill=kind is not None)
        if self._threads is not None:
            for _ in range(self.jobs):
                self._idle.put(None)
            self._threads.shutdown(wait=True)

    def unordered(self, work: deque[Work]) -> Iterator[tuple[Work, Any]]:
        """Pairs (work unit, result), as they finish. The caller may append to `work` meanwhile.

        What a unit tells comes before its result. If its worker was killed it is tried once more, with nothing beside
        it, and tells all of it again.

        Raises
        ------
        WorkerLost
            That worker was killed, too.
        RunError
            No process can be started.
        """
        if self._threads is None:
            yield from self._done_here(work)
            return
        pending: dict[Future[Any], Work] = {}
        again: deque[Work] = deque()  # their workers were killed
        news: SimpleQueue[Future[Any] | tuple[Work, Any]] = SimpleQueue()
        while work or pending or again:
            while work and not again and len(pending) < 2 * self.jobs:
                self._submit(work.popleft(), pending, news)
            if again and not pending:
                self._renew()
                self._submit(again[0], pending, news)
            new = news.get()
            if isinstance(new, tuple):
                yield new
            elif not self._killed(piece := pending.pop(new), new, again):
                yield piece, new.result()

    def _done_here(self, work: deque[Work]) -> Iterator[tuple[Work, Any]]:
        kept = self._keep()
        while work:
            piece = work.popleft()
            answers, kind = done(piece, kept), TOLD
            while kind == TOLD:
                with threadpool_limits(1):  # as in workers: sums by several threads round differently
                    kind, content = next(answers)
                yield piece, content

    def _submit(self, piece: Work, pending: dict[Future[Any], Work], news: SimpleQueue[Any]) -> None:
        future = self._threads.submit(self._do, piece, news)
        pending[future] = piece
        future.add_done_callback(news.put)

    def _killed(self, piece: Work, done: Future[Any], again: deque[Work]) -> bool:
        """Whether the worker of the piece was killed for the first time: it waits in `again` then."""
        second = bool(again) and again[0] is piece
        if not isinstance(killed := done.exception(), _Killed):
            if second:
                again.popleft()
            return False
        if second:
            raise WorkerLost(_explained(piece, killed.how))
        again.append(piece)
        if self._note is not None:
            self._note(f"{piece}: the worker process ended by {killed.how}; it is tried once more")
        self._start()
        return True

    def _renew(self) -> None:
        """Replace workers that ended while they were idle, where all are: a second try is to meet none of them.

        One whose end is under way is not seen as such, so the try is given to the newest worker, which began after the
        first one.
        """
        for worker in [self._idle.get() for _ in range(self._idle.qsize())][::-1]:
            if worker is not None and worker.ended():
                self._start()
            else:
                self._idle.put(worker)

    def _start(self) -> None:
        try:
            with signals_held(), _signals_blocked():  # no signal may interrupt the start of a worker
                worker = _Worker()
        except OSError as error:
            what = f"a worker process cannot be started ({error.strerror or error})"
            raise RunError(f"{what}; use fewer jobs (-j 1 needs none), or raise the limits of the shell") from error
        self._workers.append(worker)
        self._idle.put(worker)

    def _do(self, piece: Work, news: SimpleQueue[Any]) -> Any:
        """Have a piece of work done by an idle worker; there is one for each thread. news: for what it tells."""
        message = pickle.dumps((piece, self._keep), pickle.HIGHEST_PROTOCOL)
        worker = self._idle.get()
        if worker is None:
            raise _Killed("the end of the pool")
        worker.send(message)
        while (answer := worker.answer())[0] == TOLD:
            news.put((piece, answer[1]))
        self._idle.put(worker)
        if answer[0] == ERROR:
            raise answer[1]
        return answer[1]


class _Killed(Exception):
    """A worker ended without an answer."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class _Worker:
    """A worker process; see parallel.worker."""

    def __init__(self) -> None:
        self._connection: Connection[bytes, bytes]
        self._connection, theirs = Pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, *_interpreter_flags(), "-c", _CODE.format(path=sys.path, socket=theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                env=os.environ | THREAD_LIMITS,
            )  # fmt: skip
        except BaseException:
            self._connection.close()
            raise
        finally:
            theirs.close()  # so that the end of the process is the end of what can be read

    def send(self, message: bytes) -> None:
        """Send a piece of work; _Killed if the process has ended."""
        try:
            self._connection.send_bytes(message)
        except OSError:
            raise self._ended() from None

    def answer(self) -> tuple[str, Any]:
        """Wait for the next answer, and what kind of answer it is; _Killed if the process ends before."""
        try:
            kind, content = pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise self._ended() from None
        return kind, content

    def _ended(self) -> _Killed:
        code = self._process.wait()
        if code == NO_MEMORY:
            return _Killed("lack of memory")
        return _Killed(signal.Signals(-code).name if code < 0 else f"exit code {code}")

    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def end(self, kill: bool) -> None:
        """End an idle process, or kill it."""
        if kill:
            self._process.kill()
            self._process.wait()  # before the connection is closed: a thread may still read from it
        else:
            self._connection.close()
            self._process.wait()


def _interpreter_flags() -> list[str]:
    """Those that this interpreter was started with, such as -X dev; as multiprocessing hands them on."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return flags


def _explained(piece: Work, how: str) -> str:
    what = f"{piece}: the worker process ended twice by {how}"
    if how in (signal.SIGKILL.name, "lack of memory"):
        return f"{what}, most likely because the memory ran out; use smaller cells (-c), fewer jobs (-j) or --memory"
    return f"{what}, a mistake of localsvm or of a library; please report it"


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Start processes that ignore Ctrl-C, SIGTERM and SIGALRM: they inherit the mask. Only the parent ends a run."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
