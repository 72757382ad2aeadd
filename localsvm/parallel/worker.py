"""Code that runs in a worker process: its beginning, and the work units that it is given."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterator
from typing import Any

from localsvm.parallel.messages import End, LogWriter
from localsvm.pulse import Beat, listening

PR_SET_PDEATHSIG = 1  # of linux/prctl.h

_kept: dict[Callable[[], Any], Any] = {}


def begin(parent: int) -> None:
    """Prepare this process: it ends with its parent, reads nothing and prints nothing on stdout.

    Signals that end a run are blocked from the start; see `local`.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)
    with open(os.devnull, "r+b") as null:
        os.dup2(null.fileno(), 0)
        os.dup2(null.fileno(), 1)
    # loky ends workers that have grown by 300 MB, where psutil is there; ours keep buffers on purpose
    sys.modules["joblib.externals.loky.process_executor"]._USE_PSUTIL = False  # type: ignore[attr-defined]


def do(log: str) -> None:
    """Do the work unit of a log: call it with what `keep` made for this process.

    What the work yields, the steps of solvers, and the result or error go to the log. Of an error that would not
    survive pickle, a RuntimeError has the text.
    """
    with LogWriter(log) as writer:
        try:
            piece, keep = writer.work()
            with listening(lambda steps: writer.write(Beat(steps))):
                if keep not in _kept:
                    _kept[keep] = keep()
                for content, more in steps(piece, _kept[keep]):
                    writer.write(content if more else End(result=content))
        except BaseException as error:
            error.add_note(f"in a worker process:\n{traceback.format_exc()}")
            writer.write(End(error=_picklable(error)))


def steps(piece: Callable[[Any], Any], kept: Any) -> Iterator[tuple[Any, bool]]:
    """Do a work unit: pairs of what it yields and True, and then its result and False."""
    result = piece(kept)
    while isinstance(result, Generator):
        try:
            yield next(result), True
        except StopIteration as end:
            result = end.value
    yield result, False


def _picklable(error: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(error))  # an exception with a constructor of its own may not come out again
        return error
    except Exception:
        return RuntimeError("\n".join([repr(error), *getattr(error, "__notes__", ())]))
