"""Times reading LIBSVM text, 1 000 000 rows of 28 features, plain and as gzip, on one core and two.

    python scripts/bench/read.py [--sizes 50000] [--peers cat,scikit-learn] [--quick]

Beside our reader: scikit-learn's load_svmlight_file, and what bounds any reader, `cat` and `gzip -dc` to /dev/null.
Megabytes are those of the text (1e6 bytes), also where gzip is read. The files are in the page cache.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.comparison import Case, Comparison, Turn, main
from harness.datasets import GENERATED, available, text
from harness.library import read
from harness.summaries import READING, megabytes, summaries, summary_table
from harness.timing import Figures, timed

SIZES, QUICK_SIZES = [1_000_000], [50_000]
FORMS = ("plain", "gzip")


def cases(options: argparse.Namespace) -> list[Case]:
    """Both forms, both numbers of cores."""
    return [
        Case(name, rows, cores, (("form", form),))
        for name in available(options, [GENERATED])
        for rows in sorted(options.sizes or (QUICK_SIZES if options.quick else SIZES))
        for form in FORMS
        for cores in (1, 2)
    ]


def takes_part(contestant: str, case: Case) -> bool:
    """`cat` for plain text, `gzip` for its own; both and scikit-learn use one core whatever there is."""
    if contestant == "localsvm":
        return True
    return case.cores == 1 and contestant != {"plain": "gzip -dc", "gzip": "cat"}[case.get("form")]


def path(case: Case, options: argparse.Namespace) -> Path:
    """The case's file."""
    return text(options, case.set, case.rows, "train", case.get("form") == "gzip")


def size(case: Case, options: argparse.Namespace) -> Figures:
    """Bytes of the text and of the file."""
    plain = text(options, case.set, case.rows, "train")
    return {"text": plain.stat().st_size, "file": path(case, options).stat().st_size}


def prepare(case: Case, options: argparse.Namespace) -> None:
    """Make the file and have it in the page cache."""
    subprocess.run(["cat", path(case, options)], stdout=subprocess.DEVNULL, check=True)


def ours(case: Case, options: argparse.Namespace) -> Figures:
    """`localsvm.data.readers.libsvm.read`."""
    figures = timed(lambda: read(path(case, options), jobs=case.cores))
    return {**figures, **size(case, options)}


def scikit_learn(case: Case, options: argparse.Namespace) -> Figures:
    """`load_svmlight_file` into float32, the number of features given."""
    import numpy as np
    from sklearn.datasets import load_svmlight_file

    figures = timed(lambda: load_svmlight_file(str(path(case, options)), n_features=28, dtype=np.float32))
    return {**figures, **size(case, options)}


def command(program: list[str], case: Case, options: argparse.Namespace) -> Figures:
    """A program that writes the file to /dev/null, its start included."""
    call = [*program, str(path(case, options))]
    figures = timed(lambda: subprocess.run(call, stdout=subprocess.DEVNULL, check=True))
    return {**figures, "peak": None, **size(case, options)}


def cat(case: Case, options: argparse.Namespace) -> Figures:
    """`cat FILE > /dev/null`."""
    return command(["cat"], case, options)


def gunzip(case: Case, options: argparse.Namespace) -> Figures:
    """`gzip -dc FILE > /dev/null`."""
    return command(["gzip", "-dc"], case, options)


def section(turns: list[Turn]) -> list[str]:
    """The table."""
    more = [*READING, ("peak MiB", megabytes())]
    return summary_table(summaries(turns), more, [("form", lambda s: s.case.get("form"))])


COMPARISON = Comparison(
    "read",
    "Reading LIBSVM text",
    cases,
    {"localsvm": ours, "scikit-learn": scikit_learn, "cat": cat, "gzip -dc": gunzip},
    section,
    takes_part,
    prepare,
    introduction=[
        "`localsvm.data.readers.libsvm.read` and scikit-learn's `load_svmlight_file` (told the number of features), "
        "both into",
        "memory; `cat` and `gzip -dc` write to /dev/null, their start included. MB are 1e6 bytes of text, also of the",
        "gzip file. Files are in the page cache.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
