"""One experiment is one command: it measures the cases that its log lacks, keeps each run, and writes a page.

    EXPERIMENT = Experiment("vp", Run, cases=cases, measure=measure, page=page, progress=progress)
    carry_out(EXPERIMENT, parsed(parser(__doc__, out=Path("docs/results"), seeds=3)))

Runs are lines of OUT/NAME.jsonl, the page is OUT/NAME.md. An interrupted command goes on where it was.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Generic

from harness.machine import commit, machine
from harness.runlog import AnyRun, Run, RunLog


@dataclass(frozen=True)
class Experiment(Generic[AnyRun]):
    """An experiment: its cases, how they are measured, and its page.

    cases: the keys of all runs that the options ask for. measure: the runs of those that are missing, given the ones in
    the log. page: the Markdown of all runs; it draws the pictures into the folder options.out. progress: a run in a
    few words. good: True where a run of the log counts.
    """

    name: str
    run_class: type[AnyRun]
    cases: Callable[[argparse.Namespace], Iterable[Hashable]]
    measure: Callable[[list[Hashable], list[AnyRun], argparse.Namespace], Iterator[AnyRun]]
    page: Callable[[list[AnyRun], argparse.Namespace], str]
    progress: Callable[[AnyRun], str]
    good: Callable[[AnyRun, argparse.Namespace], bool] = lambda run, options: True


def carry_out(experiment: Experiment[AnyRun], options: argparse.Namespace) -> None:
    """Measure what is missing and write the page."""
    log = open_log(experiment.name, experiment.run_class, options)

    def missing(case: Hashable) -> bool:
        run = log.find(case)
        return run is None or not experiment.good(run, options)

    def write() -> None:
        text = experiment.page(log.runs, options)
        log.path.with_suffix(".md").write_text(text.rstrip("\n") + "\n" + commits(log.runs))

    wanted = [] if options.page_only else [case for case in experiment.cases(options) if missing(case)]
    here = {"machine": machine(), "commit": commit()}
    runs = (replace(run, **here) for run in experiment.measure(wanted, log.runs, options)) if wanted else ()
    record(log, runs, write, experiment.progress)


def open_log(name: str, run_class: type[AnyRun], options: argparse.Namespace) -> RunLog[AnyRun]:
    """The log in the folder of the results, emptied by --fresh."""
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"{name}.jsonl"
    if options.fresh and not options.page_only:
        path.unlink(missing_ok=True)
    return RunLog(path, run_class)


def set_by_set(
    missing: list[Any], files: Callable[[str], AbstractContextManager[Any]], fit: Callable[[Any, Any], AnyRun]
) -> Iterator[AnyRun]:
    """Measure the missing runs, set by set.

    Each run is `fit` of its key and of what `files` gives for the set that the key begins with. A run that fails is
    reported on stderr and tried again by the next call.
    """
    for name in dict.fromkeys(name for name, *_ in missing):
        with files(name) as files_of_set:
            for key in (key for key in missing if key[0] == name):
                try:
                    yield fit(key, files_of_set)
                except subprocess.CalledProcessError as failure:
                    print(f"{key}: failed with code {failure.returncode}", file=sys.stderr)


def record(
    log: RunLog[AnyRun], runs: Iterable[AnyRun], write: Callable[[], None], progress: Callable[[AnyRun], str]
) -> None:
    """Keep each run as soon as there is one; write the page at the end, also when it is interrupted."""
    try:
        for run in runs:
            log.append(run)
            print(progress(run), file=sys.stderr, flush=True)
    finally:
        if log.runs:
            write()


def commits(runs: list[Run]) -> str:
    """The last paragraph of a page: of which commits the runs are, as far as the log says."""
    known = ", ".join(dict.fromkeys(run.commit for run in runs if run.commit))
    return f"\nlocalsvm at {known}{'' if all(run.commit for run in runs) else ' and before'}.\n" if known else ""
