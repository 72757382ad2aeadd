"""MLLKM's online forms beside training on all rows with the whole bank.

    python scripts/bench_mllkm_online.py DATA [--quick] [--out docs/results/mllkm] [--sets ijcnn1,cod-rna]

Test accuracy, certified gap, processor time of training and peak memory: `--online kernels` on a few thousand random
rows, `--online full` on more. Every run is a whole `lsvm-train` and `lsvm-predict` process, one after the other. DATA
is a folder with NAME.train.libsvm.xz and NAME.test.libsvm.xz. Finished runs are kept in OUT/online.jsonl and not
repeated; the page is OUT/online.md. --quick: one set, fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.commands import lsvm
from harness.datasets import Files, text_files
from harness.experiment import Experiment, carry_out, set_by_set
from harness.machine import processors
from harness.options import parsed, parser
from harness.runlog import Run
from harness.tables import number, table, thousands
from reproduce_mllkm_large import part

SETS = ("ijcnn1", "cod-rna")
ALWAYS = ["-m", "mllkm", "-j", "1", "--seed", "0", "--scale", "minmax"]
WHOLE = ["-P", "none"]
KERNELS, FULL = "--online kernels", "--online full"
ROWS = {KERNELS: 5000, FULL: 20_000}
COMMON = {
    KERNELS: ["--bank-gammas", "0.01:10:10", "-C", "10"],
    FULL: ["--bank-gammas", "0.01:10:7", "-C", "100", "-e", "0.02"],
}
FORMS = {
    KERNELS: (WHOLE, [*WHOLE, *KERNELS.split()]),
    FULL: (WHOLE, *([*FULL.split(), "--kept-rows", str(kept)] for kept in (5000, 2000))),
}
QUICK = 10  # so many times fewer rows
ABOUT = """\
# MLLKM's online forms

`python scripts/bench_mllkm_online.py DATA`: random training rows of each set, all test rows, one run each. Processor
seconds and peak memory are those of whole `lsvm-train` commands, one after the other; {processor}, with other work
beside. The gap is that of the last problem: with `--online full` it is over the rows that are kept.
"""
TITLES = {
    KERNELS: "Each kernel is seen once, in random order.",
    FULL: "Each row is seen once, too, and so many are kept.",
}
Key = tuple[str, str, str, int]  # set, what is compared, options of the form, rows


@dataclass(frozen=True)
class Online(Run):
    """One training and its test."""

    name: str
    compared: str
    options: str
    rows: int
    accuracy: float  # per cent, on the test file
    gap: float
    cpu: float
    peak: int  # bytes
    command: str

    @property
    def key(self) -> Key:
        """What was run."""
        return self.name, self.compared, self.options, self.rows


def main() -> None:
    """Run what is missing, then write the page."""
    given = parser(__doc__, out=Path("docs/results/mllkm"), sets=SETS, quick="one set, fewer rows")
    carry_out(Experiment("online", Online, cases, measure, page, progress), parsed(given))


def cases(options: Any) -> list[Key]:
    """Set by set."""
    sets, fewer = (options.sets[:1], QUICK) if options.quick else (options.sets, 1)
    return [
        (name, compared, " ".join(form), ROWS[compared] // fewer)
        for name in sets
        for compared, forms in FORMS.items()
        for form in forms
    ]


def measure(missing: list[Key], _: list[Online], options: Any) -> Iterator[Online]:
    """The missing runs, set by set."""
    return set_by_set(missing, lambda name: text_files(options.data, name), fit)


def fit(key: Key, files: Files) -> Online:
    """One run through the command line."""
    _, compared, form, rows = key
    given = [*ALWAYS, *COMMON[compared], *form.split()]
    report, spent = lsvm("train", [*given, str(part(files, files.train, rows)), str(files.model)])
    score, _ = lsvm("predict", ["-j", "1", str(files.test), str(files.model), str(files.predictions)])
    gap = report["summary"]["largest_gap"]
    return Online(*key, 100 * score["accuracy"], gap, spent["cpu"], spent["peak"], " ".join(given))


def progress(run: Online) -> str:
    """What the terminal shows of a run."""
    return f"{run.name} {run.options}: {run.accuracy:.2f} %, {run.cpu:.1f} s, {run.peak / 1e6:.0f} MB"


def page(runs: list[Online], _: Any) -> str:
    """A table for each form."""
    lines = [ABOUT.format(processor=processors(run.machine for run in runs))]
    head = ("set", "options", "test accuracy %", "gap", "processor s", "peak memory, MB")
    for compared, title in TITLES.items():
        found = [run for run in runs if run.compared == compared]
        if found:
            given = " ".join([*ALWAYS, *COMMON[compared]])
            sizes = " or ".join(sorted({thousands(run.rows) for run in found}))
            lines += [f"## `{compared}`, {sizes} rows", "", f"{title} `lsvm-train {given} OPTIONS FILE MODEL`", ""]
            lines += [*table(head, [entries(run) for run in found]), ""]
    return "\n".join(lines)


def entries(run: Online) -> tuple[str, ...]:
    """A line."""
    memory = number(run.peak / 1e6)
    return run.name, f"`{run.options}`", f"{run.accuracy:.2f}", f"{run.gap:.4f}", number(run.cpu), memory


if __name__ == "__main__":
    main()
