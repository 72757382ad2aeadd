"""Times reading CSV, 1 000 000 rows of 30 columns, beside pyarrow, polars, pandas and duckdb, on one core and two.

    python scripts/bench/read_tables.py [--sizes 50000] [--peers pyarrow,polars] [--quick]

Two tables: numbers alone, of six digits, and a mix of 20 columns of numbers, 8 of few levels and 2 of many. A reader's
result is the columns in memory, numbers as float64. Megabytes are those of the text (1e6 bytes). The files are in the
page cache.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # scripts, whose folders share the harness
from harness.comparison import Case, Comparison, Turn, main
from harness.options import WORK
from harness.summaries import READING, megabytes, summaries, summary_table
from harness.timing import Figures, timed

SIZES, QUICK_SIZES = [1_000_000], [50_000]
FORMS = ("numbers", "mixed")
COLUMNS = 30
PART = 50_000  # rows that are written at once


def cases(options: argparse.Namespace) -> list[Case]:
    """Both tables, both numbers of cores."""
    return [
        Case("csv", rows, cores, (("form", form),))
        for rows in sorted(options.sizes or (QUICK_SIZES if options.quick else SIZES))
        for form in FORMS
        for cores in (1, 2)
    ]


def path(case: Case) -> Path:
    """The case's file."""
    return WORK / f"{case.get('form')}-{case.rows}.csv"


def prepare(case: Case, options: argparse.Namespace) -> None:
    """Make the file and have it in the page cache."""
    file = path(case)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        rng, partial = np.random.default_rng(0), file.with_suffix(".part")
        with partial.open("w") as out:
            out.write(",".join(f"c{i}" for i in range(COLUMNS)) + "\n")
            for first in range(0, case.rows, PART):
                out.writelines(lines(rng, min(PART, case.rows - first), str(case.get("form"))))
        partial.rename(file)
    subprocess.run(["cat", file], stdout=subprocess.DEVNULL, check=True)


def lines(rng: np.random.Generator, rows: int, form: str) -> list[str]:
    """Rows of a table."""
    columns = [[f"{value:.6g}" for value in rng.normal(size=rows).tolist()] for _ in range(COLUMNS)]
    if form == "mixed":
        columns[20:28] = [[f"level {value}" for value in rng.integers(0, 9, rows).tolist()] for _ in range(8)]
        columns[28:] = [[f"city {value}" for value in rng.integers(0, 5000, rows).tolist()] for _ in range(2)]
    return [",".join(row) + "\n" for row in zip(*columns, strict=True)]


def figures(case: Case, call: Any) -> Figures:
    """Figures of a call, with the bytes of the text."""
    return {**timed(call), "text": path(case).stat().st_size}


def ours(case: Case, options: argparse.Namespace) -> Figures:
    """`localsvm.data.readers.tables.open_table`, all blocks together."""
    from localsvm.data.blocks.table import together
    from localsvm.data.readers.delimited import TableForm
    from localsvm.data.readers.tables import open_table

    def call() -> Any:
        with open_table(str(path(case)), TableForm()) as source:
            return together(list(source.blocks(case.cores)))

    return figures(case, call)


def of_pyarrow(case: Case, options: argparse.Namespace) -> Figures:
    """`pyarrow.csv.read_csv`."""
    import pyarrow
    from pyarrow import csv

    pyarrow.set_cpu_count(case.cores)
    read = csv.ReadOptions(use_threads=case.cores > 1)
    return figures(case, lambda: csv.read_csv(path(case), read_options=read))


def of_polars(case: Case, options: argparse.Namespace) -> Figures:
    """`polars.read_csv`."""
    import os

    os.environ["POLARS_MAX_THREADS"] = str(case.cores)
    import polars

    return figures(case, lambda: polars.read_csv(path(case)))


def of_pandas(case: Case, options: argparse.Namespace) -> Figures:
    """`pandas.read_csv`, by its own parser in C."""
    import pandas

    return figures(case, lambda: pandas.read_csv(path(case)))


def of_duckdb(case: Case, options: argparse.Namespace) -> Figures:
    """Duckdb's `read_csv`, into a table in memory."""
    import duckdb

    def call() -> None:
        with duckdb.connect(config={"threads": case.cores}) as database:
            database.execute(f"create table t as select * from read_csv('{path(case)}')")

    return figures(case, call)


def takes_part(contestant: str, case: Case) -> bool:
    """True unless a contestant has one core whatever there is."""
    return contestant != "pandas" or case.cores == 1


def section(turns: list[Turn]) -> list[str]:
    """The table."""
    more = [*READING, ("peak MiB", megabytes())]
    return summary_table(summaries(turns), more, [("table", lambda s: s.case.get("form"))])


COMPARISON = Comparison(
    "read_tables",
    "Reading CSV",
    cases,
    {"localsvm": ours, "pyarrow": of_pyarrow, "polars": of_polars, "pandas": of_pandas, "duckdb": of_duckdb},
    section,
    takes_part,
    prepare,
    introduction=[
        "A million rows of 30 columns: numbers of six digits; and a mix of 20 columns of numbers and 10 of text. All",
        "read into columns in memory, at defaults but for the number of threads. MB are 1e6 bytes of text. Files are",
        "in the page cache.",
    ],
)

if __name__ == "__main__":
    main(COMPARISON, __doc__)
