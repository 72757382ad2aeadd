"""Runs the contestants of a job, each in a process of its own with pinned threads, interleaved, and keeps the results.

    job = Job("cell", "One cell", cases=cases, contestants={"localsvm": ours, "liquidSVM": theirs}, page=page)
    main(job)                          # in scripts/bench_cell.py: python scripts/bench_cell.py --sizes 2000

`main` calls the same script again for every contestant (`--contestant NAME --case JSON`); that process prints what the
contestant's function returns as one JSON object. Finished results are lines of OUT/JOB.jsonl and are not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarking.machine import commit, machine

OURS = "localsvm"
REPEATS = 3
LONG = 60.0  # seconds of one run after which a case is not repeated
ANSWER = "benchmark answer: "
QUICK_OUT, FULL_OUT = Path("build/bench/quick"), Path("docs/results/bench")
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One thing to measure, the same for all contestants; `more` are a job's own settings."""

    set: str
    rows: int
    cores: int = 1
    more: tuple[tuple[str, Any], ...] = ()

    def get(self, name: str, otherwise: Any = None) -> Any:
        """A setting of the job."""
        return dict(self.more).get(name, otherwise)

    def key(self) -> str:
        """The same text for the same case."""
        return json.dumps({"set": self.set, "rows": self.rows, "cores": self.cores, **dict(self.more)}, sort_keys=True)

    @classmethod
    def from_key(cls, key: str) -> Case:
        """The case of a key."""
        values = json.loads(key)
        return cls(values.pop("set"), values.pop("rows"), values.pop("cores"), tuple(sorted(values.items())))


@dataclass(frozen=True)
class Job:
    """A table of the benchmark.

    cases: from the options to what is measured. contestants: functions of (case, options) that return the figures of
    one run, `wall` (seconds) among them; those whose names begin with "localsvm" are ours. page: the Markdown of the
    records of one machine. fits: whether a contestant takes part in a case. prepare: makes files before the clocks.
    reuse: jobs whose results of equal cases count here. about: what the page says at its beginning.
    """

    name: str
    title: str
    cases: Callable[[argparse.Namespace], list[Case]]
    contestants: dict[str, Callable[[Case, argparse.Namespace], Record]]
    page: Callable[[list[Record]], list[str]]
    fits: Callable[[str, Case], bool] = lambda contestant, case: True
    prepare: Callable[[Case, argparse.Namespace], None] = lambda case, options: None
    reuse: tuple[str, ...] = ()
    about: list[str] = field(default_factory=list)


def parser(job: Job) -> argparse.ArgumentParser:
    """The options of every job."""
    made = argparse.ArgumentParser(description=job.title)
    made.add_argument("data", type=Path, nargs="?", default=os.environ.get("LOCALSVM_DATA") or None,
                      help="folder of NAME.train.libsvm.xz and NAME.test.libsvm.xz ($LOCALSVM_DATA)")  # fmt: skip
    made.add_argument("--sizes", type=_integers, help="rows, as in 2000,5000")
    made.add_argument("--sets", type=_names, help="data sets, as in higgs_like,covtype")
    made.add_argument("--peers", type=_names, help="peers to run beside ours; 'none' for ours alone")
    made.add_argument("--repeats", type=int, help=f"rounds (default {REPEATS}, 1 with --quick)")
    made.add_argument("--out", type=Path, help=f"folder of the results (default {FULL_OUT}, {QUICK_OUT} with --quick)")
    made.add_argument("--work", type=Path, default=Path("build/bench"), help="folder of generated data and models")
    made.add_argument("--limit", type=float, default=600.0, help="seconds after which a peer is stopped")
    made.add_argument("--train", default="", help="more options for lsvm-train, as in '--grid full'")
    made.add_argument("--quick", action="store_true", help="the small end")
    made.add_argument("--fresh", action="store_true", help="forget earlier results")
    made.add_argument("--contestant", help=argparse.SUPPRESS)
    made.add_argument("--draw", type=int, default=0, help=argparse.SUPPRESS)
    made.add_argument("--case", help=argparse.SUPPRESS)
    return made


def _integers(text: str) -> list[int]:
    return [int(float(value)) for value in text.split(",")]


def _names(text: str) -> list[str]:
    return text.split(",")


def main(job: Job, arguments: list[str] | None = None) -> None:
    """Measure what is missing and write the table; or be one contestant."""
    given = sys.argv[1:] if arguments is None else arguments
    options = parser(job).parse_args(given)
    options.data = Path(options.data).resolve() if options.data else None
    if options.contestant:
        figures = job.contestants[options.contestant](Case.from_key(options.case), options)
        print(ANSWER + json.dumps(figures), flush=True)
        return
    options.repeats = options.repeats or (1 if options.quick else REPEATS)
    options.out = options.out or (QUICK_OUT if options.quick else FULL_OUT)
    options.work.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / f"{job.name}.jsonl"
    if options.fresh:
        log.unlink(missing_ok=True)
    Measuring(job, options, log, given).all()


class Measuring:
    """The runs of a job, in the order: case by case, round by round, contestant by contestant."""

    def __init__(self, job: Job, options: argparse.Namespace, log: Path, given: list[str]) -> None:
        self.job, self.options, self.log, self.given = job, options, log, given
        self.machine, self.commit = machine(), commit()
        mend(log)
        self.records = [record for name in (*job.reuse, job.name) for record in load(log.parent / f"{name}.jsonl")]
        self.stale = [r for r in self.records if r["status"] in ("failed", "skipped")]  # tried again

    def all(self) -> None:
        """Measure; the table is written anew after every case."""
        for case in self.job.cases(self.options):
            self.case(case)
            self.write()
        self.write()

    def case(self, case: Case) -> None:
        """All rounds of one case."""
        names = [n for n in self.job.contestants if self.wanted(n) and self.job.fits(n, case)]
        missing = [(r, n) for r in range(self.options.repeats) for n in names if not self.done(case, n, r)]
        if missing:
            self.job.prepare(case, self.options)
        for repeat, name in missing:
            if not self.done(case, name, repeat):  # the round before may have been long, or the last
                self.keep(case, name, repeat, self.skip(case, name) or self.measure(case, name, repeat))

    def wanted(self, name: str) -> bool:
        """Ours always runs, peers as asked for."""
        return name.startswith(OURS) or self.options.peers is None or name in self.options.peers

    def done(self, case: Case, name: str, repeat: int) -> bool:
        """Whether this run is in the log, or an earlier one failed, or one round of all contestants was long enough."""
        earlier = [r for r in self.records if self.same(r, case, name) and r not in self.stale]
        return any(r["status"] != "ok" or r["repeat"] == repeat for r in earlier) or (repeat > 0 and self.long(case))

    def long(self, case: Case) -> bool:
        """Whether a contestant took so long that nobody is repeated: errors are of the same draws for all."""
        runs = [r for r in self.records if (r["case"], r["machine"]) == (case.key(), self.machine)]
        return any(r["status"] == "timeout" or r.get("figures", {}).get("process", 0) > LONG for r in runs)

    def same(self, record: Record, case: Case, name: str) -> bool:
        """Whether a result is of this case, contestant and machine."""
        return (record["case"], record["contestant"], record["machine"]) == (case.key(), name, self.machine)

    def skip(self, case: Case, name: str) -> Record | None:
        """Why there is no point in starting; None if there is."""
        if case.cores > len(os.sched_getaffinity(0)):
            return {"status": "skipped", "message": f"this process may not use {case.cores} cores"}
        for record in self.records:
            other = Case.from_key(record["case"])
            smaller = other.rows <= case.rows and self.same(record, other, name) and record["status"] == "timeout"
            if smaller and (other.set, other.cores, other.more) == (case.set, case.cores, case.more):
                return {"status": "skipped", "message": f"over the limit with {other.rows} rows already"}
        return None

    def measure(self, case: Case, name: str, repeat: int) -> Record:
        """One run in a process of its own; each round has its own draw of the data."""
        command = [sys.executable, os.path.abspath(sys.argv[0]), *self.given, "--contestant", name, f"--draw={repeat}"]
        limit = None if name.startswith(OURS) else self.options.limit
        return measure([*command, "--case", case.key()], case.cores, limit)

    def keep(self, case: Case, name: str, repeat: int, result: Record) -> None:
        """Append a result to the log; it replaces an earlier failure."""
        self.records = [r for r in self.records if r not in self.stale or not self.same(r, case, name)]
        head = {"case": case.key(), "contestant": name, "repeat": repeat}
        self.records.append({**head, "machine": self.machine, "commit": self.commit, **result})
        with self.log.open("a") as file:
            file.write(json.dumps(self.records[-1]) + "\n")
        figures = result.get("figures", {})
        told = f"{figures['wall']:.3f} s" if "wall" in figures else result.get("message", "")
        print(f"{self.job.name} {case.key()} {name}: {result['status']} {told}", file=sys.stderr, flush=True)

    def write(self) -> None:
        """The page of all records that there are."""
        from benchmarking.report import page

        self.log.with_suffix(".md").write_text(page(self.job, self.records))


def mend(log: Path) -> None:
    """Cut off a last line that an interruption left unfinished."""
    if log.exists() and not (text := log.read_bytes()).endswith(b"\n"):
        log.write_bytes(text[: text.rfind(b"\n") + 1])


def load(log: Path) -> list[Record]:
    """Results of earlier runs."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def measure(command: list[str], cores: int, limit: float | None) -> Record:
    """Run a contestant's process: its figures; or that it failed and with which words, or that it was stopped."""
    allowed = sorted(os.sched_getaffinity(0))[:cores]
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=pinned(cores), start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return {"status": "timeout", "message": f"stopped after {limit:g} s"}
        finally:  # nothing of the contestant outlives it, also when this program is interrupted
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    answers = [line for line in out.splitlines() if line.startswith(ANSWER)]
    if process.returncode or not answers:
        return {"status": "failed", "message": last_words(err) or f"ended with exit status {process.returncode}"}
    figures = json.loads(answers[-1].removeprefix(ANSWER))
    return {"status": "ok", "figures": {**figures, "process": time.perf_counter() - started}}


def pinned(cores: int) -> dict[str, str]:
    """The environment with so many threads for whatever counts them."""
    names = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB_MAXIMUM")
    return os.environ | {f"{name}_NUM_THREADS": str(cores) for name in names}


def last_words(text: str) -> str:
    """The last line of what a process said, in at most 200 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""
