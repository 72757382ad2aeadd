"""Command `lsvm convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from localsvm.cli import options as opt
from localsvm.cli.paths import check_outputs
from localsvm.cli.program import Program, examples
from localsvm.cli.table_options import of_table, table_of
from localsvm.cli.value_types import Group, Names
from localsvm.naming import on_command_line

if TYPE_CHECKING:
    from localsvm.data.blocks.dataset import Dataset
    from localsvm.memory import Budget
    from localsvm.runs.preparation.tables import TableOptions

SCRATCH = 32 << 20  # of learning the scaling, and of rows as text
BLOCK_ROWS = 1 << 13  # that are written at once
KINDS = ("csv", "parquet", "arrow", "npy")  # of tables


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm convert raw.txt.gz clean.libsvm",
        "lsvm convert --scale minmax raw.libsvm - | head",
        "lsvm convert customers.csv customers.parquet",
        "lsvm convert --label churn customers.csv customers.libsvm",
        "lsvm convert --encoded --label churn customers.csv features.csv",
    ),
)
@opt.file_argument("input_file", metavar="IN")
@opt.file_argument("output_file", metavar="OUT")
@opt.option(
    "--scale",
    type=Names(opt.SCALES),
    default="none",
    show_default=True,
    help="Scale the features of IN as lsvm-train would.",
    group=Group.DATA,
)
@opt.option(
    "--encoded",
    is_flag=True,
    help="Write the features that lsvm-train makes of a table, and not its columns. LIBSVM text always has these.",
    group=Group.TABLE,
)
@opt.zero_based
@of_table
@opt.resources
@opt.force
def convert(
    input_file: str, output_file: str, scale: str, encoded: bool, zero_based: bool, jobs: int | None,
    memory: int | None, force: bool, **options: Any,
) -> None:  # fmt: skip
    """Rewrite IN as OUT: LIBSVM text or a table in any format.

    The format of OUT follows from its name: .csv, .tsv, .parquet, .arrow, .feather, .npy and .npz are tables; anything
    else is LIBSVM text, with indices from 1, without comments and zeros, and with labels of text as numbers from 0. IN
    may be compressed, and OUT is if its name ends in .gz, .bz2, .xz or .zst; - is stdin or stdout. A mistake in IN is
    refused with its line and column.
    """
    from localsvm.data.readers.tables import by_suffix
    from localsvm.memory import Budget

    check_outputs(force, [input_file], [output_file])
    budget = Budget.of(memory)
    table, count = table_of(options | {"zero_based": zero_based}, input_file), opt.job_count(jobs)
    to_table = by_suffix(output_file) in KINDS
    if table is not None and to_table and not encoded:
        if scale != "none":
            raise click.UsageError("--scale is for features; give --encoded as well.")
        _copy(input_file, output_file, table, count)
        return
    if encoded and table is None:
        raise click.UsageError("--encoded is for tables; the columns of LIBSVM text are features.")
    data = _scaled(_read(input_file, table, zero_based, count, budget), scale, budget)
    if to_table:
        _write_table(output_file, data)
    else:
        from localsvm.data.writers.libsvm import write

        write(output_file, data.X, data.y)


def _copy(input_file: str, output_file: str, table: TableOptions, jobs: int) -> None:
    """Rewrite the columns of a table as they are."""
    from dataclasses import replace

    from localsvm.data.readers.tables import by_suffix, open_table
    from localsvm.data.writers.tables import columns_of, table_output

    texts = {*table.ids, *(name for name in (table.label, table.group) if name is not None)}
    as_text = by_suffix(output_file) == "csv"  # then nothing is read as a number, and no digit is lost
    form = replace(table.form, missing=()) if as_text else table.form

    def read_as_text(names: tuple[str, ...], header: bool) -> set[str]:
        return set(names) - table.form.ignored if as_text else texts & set(names)

    with (
        open_table(input_file, form, read_as_text) as source,
        table_output(output_file, source.layout.wanted) as write,
    ):
        told: set[str] = set()
        for block in source.blocks(jobs):
            for name, values in block.numbers.items():
                if name not in told and _rounded(values):
                    told.add(name)
                    note(
                        f"column {name!r} has numbers of more than 15 digits, and OUT, in float64, may not have all of "
                        f"them; --categorical {name} keeps them as text"
                    )
            write(columns_of(block))


def _rounded(values: Any) -> bool:
    """Whether there are whole numbers that float64 may have rounded."""
    import numpy as np

    from localsvm.data.readers.columnar import EXACT

    size = np.abs(values)
    return bool(np.any((size >= EXACT) & (size < 2.0**64)))


def _read(file: str, table: TableOptions | None, zero_based: bool, jobs: int, budget: Budget) -> Dataset:
    """Features and labels of a file."""
    from localsvm.data.readers.libsvm import read
    from localsvm.runs.preparation.tables import training_rows

    if table is None:
        return read(file, zero_based=zero_based, shifts=True, jobs=jobs, budget=budget)
    if table.weight:
        raise click.UsageError("--weight-column: OUT has no place for weights; leave the option out.")
    return training_rows(file, table, 0, True, note, jobs, budget)


def _scaled(data: Dataset, scale: str, budget: Budget) -> Dataset:
    from localsvm.data.blocks.dataset import size_of
    from localsvm.data.readers.origin import from_zero
    from localsvm.features.scaling import CENTRED, made_bytes, scaling_of

    need = size_of(data.X) + 8 * len(data.y) + made_bytes(data.X, scale) + SCRATCH
    budget.check(f"scaling by {scale} needs" if scale != "none" else "writing needs", need, "give more --memory")
    if data.shift is not None and scale not in CENTRED:
        data.X = from_zero(data.X, data.shift)
        far = len(data.shift.columns)
        what = "1 feature is" if far == 1 else f"{far} features are"
        note(
            f"{what} so far from 0 that float32 loses digits, and OUT has the rounded values; subtract a number "
            "from them first, or give --scale zscore or minmax"
        )
    data.X = scaling_of(data.X, scale).apply(data.X, in_place=True)
    return data


def _write_table(path: str, data: Dataset) -> None:
    """Write features and labels as a table: the labels first."""
    import numpy as np

    from localsvm.cli.reporting import names_of
    from localsvm.data.blocks.dataset import dense_rows
    from localsvm.data.writers.tables import table_output
    from localsvm.features.encoding import Encoding

    described = data.table or {}
    features = Encoding.from_dict(described).names if described else [str(i + 1) for i in range(data.X.shape[1])]
    label, labels = described.get("label", "label"), np.unique(data.y)
    values = (data.classes or {}).get("values")
    name = names_of(labels.tolist(), data.classes)
    with table_output(path, [label, *features]) as write:
        for first in range(0, len(data.y), BLOCK_ROWS):
            rows = np.arange(first, min(len(data.y), first + BLOCK_ROWS))
            X = dense_rows(data.X, rows)
            y = data.y[rows] if values is None else np.asarray([name(each) for each in data.y[rows].tolist()], object)
            columns = {feature: _short(X[:, i]) for i, feature in enumerate(features)}
            write({label: y, **columns})


def _short(values: Any) -> Any:
    """Values in float64 that are written with as few digits as float32 needs."""
    import numpy as np

    return np.asarray([float(str(value)) for value in values], np.float64)


def note(text: str) -> None:
    """Print a note on stderr."""
    click.echo(f"note: {on_command_line(text)}", err=True)
