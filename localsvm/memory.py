"""Memory that a run may use: `--memory`, what is free, control groups, and the limit of the shell (ulimit -v)."""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localsvm.errors import RunError
from localsvm.naming import opt

# a thread reserves its stack and a pool of malloc's, 8 and 64 MiB, and needs some of them
THREAD_BYTES = 96 << 20
PROCESS_BYTES = 120 << 20  # of each process as such: Python with numpy and scipy, and its part of scikit-learn
# addresses that a worker process takes before it has any work: the interpreter, numpy, scipy, scikit-learn
WORKER_ADDRESSES = 512 << 20
IN_TEXT = 8  # times its bytes that text takes while it is parsed
LEAST_BLOCK = 1 << 16  # of text
MORE = f"give more {opt.memory}"
LEAST_ADDRESSES = 256 << 20  # of a process that reads a small file and trains on it

# what CPython, numpy and OpenSSL say in place of MemoryError
_LIBRARIES = ("can't allocate", "returned NULL without setting an exception", "digital envelope routines")


@dataclass(frozen=True)
class Budget:
    """The memory of a run: of all its processes with their libraries, and the data.

    Attributes
    ----------
    bytes : that it may use; of which PROCESS_BYTES are for the main process as such.
    given : whether by --memory, or as what the machine has free.
    remedy : what to do where the rows do not fit.
    """

    bytes: int
    given: bool = True
    remedy: str = MORE

    @classmethod
    def of(cls, memory: int | None, held: int = 0) -> Budget:
        """Budget of --memory; for None, of what is free beside the `held` bytes that the run has already."""
        free = memory is None
        return cls(available_memory() + held + PROCESS_BYTES, False) if free else cls(memory or 0)

    @property
    def room(self) -> int:
        """Bytes for data and work."""
        return max(0, self.bytes - PROCESS_BYTES)

    def text_bytes(self, most: int) -> int:
        """Bytes of text that may be worked on at once."""
        return min(most, self.room // IN_TEXT)

    def block_bytes(self, most: int, jobs: int) -> int:
        """Bytes of text in the block of each of so many threads."""
        return max(min(most, LEAST_BLOCK), self.text_bytes(most * jobs) // jobs)

    def check(self, what: str, need: int, remedy: str = "") -> None:
        """Raise RunError if a phase needs more room than there is.

        what : the phase and a verb, as "the rows take". need : bytes. remedy : in place of that of the budget.
        """
        if need <= self.room:
            return
        beside = "" if need > PROCESS_BYTES else f" ({shown(PROCESS_BYTES)} of it the program itself)"
        allowed = f"{opt.memory} allows {shown(self.bytes)}" if self.given else f"{shown(self.bytes)} are free"
        raise RunError(f"{what} {shown(need + PROCESS_BYTES)}{beside}, and {allowed}; {remedy or self.remedy}")


UNBOUNDED = Budget(1 << 62)


def shown(size: int) -> str:
    """A size for people, such as 1.50 GiB, 300.0 MiB or 12 bytes."""
    if size >= 1 << 30:
        return f"{size / 2**30:.2f} GiB"
    if size >= 1 << 20:
        return f"{size / 2**20:,.1f} MiB"
    return f"{size / 2**10:,.1f} KiB" if size >= 1 << 10 else f"{size} bytes"


def available_memory() -> int:
    """Bytes that all processes together can have without swapping, as the kernel estimates them.

    They are within the limits of the control group. `addresses_left` bounds each process.
    """
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return min(int(line.split()[1]) << 10, *_group_limits(), 1 << 62)
    raise RunError(f"/proc/meminfo does not say how much memory is available; give {opt.memory}")


def address_limit() -> int | None:
    """Bytes of address space that a process may have (ulimit -v), None for any number."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def addresses_left() -> int | None:
    """Bytes that are left of `address_limit`, None for any number."""
    limit = address_limit()
    if limit is None:
        return None
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return max(0, limit - used)


def affordable_threads(count: int) -> int:
    """Number of threads, `count` at most: so many that they leave half of the address space for the work.

    A thread that cannot be started is not only an error: Python may wait for it for ever.
    """
    left = addresses_left()
    return count if left is None else min(count, max(1, left // (2 * THREAD_BYTES)))


def affordable_workers(count: int) -> int:
    """Number of workers: `count` processes, or only this one where the address space has no room for others."""
    limit = address_limit()
    few = limit is not None and (limit < 2 * WORKER_ADDRESSES or affordable_threads(4) < 4)
    return 1 if few else count


def check_addresses() -> None:
    """Raise RunError where the shell leaves too few addresses even for the libraries, which would fail in odd ways.

    To be called before numpy is loaded.
    """
    limit = address_limit()
    if limit is not None and limit < LEAST_ADDRESSES:
        what = f"the shell allows a process {shown(limit)} of addresses"
        raise RunError(f"{what}, and {shown(LEAST_ADDRESSES)} are the least; raise the limit (ulimit -v)")


def shortage(error: BaseException) -> str | None:
    """Message on an exception where memory, addresses that the shell allows, or threads have run out, else None."""
    limit, threads = address_limit(), "can't start new thread" in str(error)
    if threads and limit is None:
        what = "a thread cannot be started"
        return (
            f"{what}; use fewer jobs ({opt.jobs}), or raise the limits on processes (ulimit -u, pids.max of the "
            "control group)"
        )
    plain = isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
    plain = plain or any(text in str(error) for text in _LIBRARIES)
    if not plain and (limit is None or not (threads or isinstance(error, ImportError | SystemError))):
        return None
    what = ": ".join(filter(None, ["out of memory", str(error)]))
    if limit is None:
        return f"{what}; free some memory, or use smaller cells ({opt.cell_size}) or fewer jobs ({opt.jobs})"
    return (
        f"{what}; the shell allows a process {shown(limit)} (ulimit -v); raise that limit, or use smaller cells "
        f"({opt.cell_size})"
    )


def _group_limits() -> Iterator[int]:
    """Bytes that the control groups of a batch system or a container leave (version 2)."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    group = next((line[3:] for line in lines if line.startswith("0::")), "/")
    here = Path("/sys/fs/cgroup") / group.lstrip("/")
    for folder in (here, *here.parents):
        limit, used = folder / "memory.max", folder / "memory.current"
        if limit.exists() and used.exists() and (text := limit.read_text().strip()) != "max":
            yield max(0, int(text) - int(used.read_text()))
