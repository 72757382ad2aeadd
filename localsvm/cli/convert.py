"""Command `lsvm convert`."""

from __future__ import annotations

from typing import Any

import click

from localsvm.cli import options as opt
from localsvm.cli.paths import check_outputs
from localsvm.cli.program import Program, examples
from localsvm.cli.table_options import of_table, table_of
from localsvm.cli.value_types import Group, Names
from localsvm.naming import on_command_line

SCRATCH = 32 << 20  # of learning the scaling, and of rows as text


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm convert raw.txt.gz clean.libsvm",
        "lsvm convert --zero-based from0.txt from1.libsvm",
        "lsvm convert --scale minmax raw.libsvm - | head",
        "lsvm convert --label churn customers.csv customers.libsvm",
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
@opt.zero_based
@of_table
@opt.resources
@opt.force
def convert(
    input_file: str, output_file: str, scale: str, zero_based: bool, jobs: int | None, memory: int | None, force: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Rewrite LIBSVM text or a table IN as clean LIBSVM text OUT.

    OUT has indices from 1, no comments and no zeros; of a table, the features that lsvm-train makes of it, and labels
    of text as numbers from 0. IN may be compressed, and OUT is if its name ends in .gz, .bz2, .xz or .zst; - is stdin
    or stdout. A mistake in IN is refused with its line and column.
    """
    from localsvm.data.blocks.dataset import size_of
    from localsvm.data.readers.libsvm import read
    from localsvm.data.readers.origin import from_zero
    from localsvm.data.writers.libsvm import write
    from localsvm.features.scaling import CENTRED, made_bytes, scaling_of
    from localsvm.memory import Budget
    from localsvm.runs.preparation.tables import training_rows

    check_outputs(force, [input_file], [output_file])
    budget = Budget.of(memory)
    table, count = table_of(options | {"zero_based": zero_based}, input_file), opt.job_count(jobs)
    if table is not None:
        if table.weight:
            raise click.UsageError("--weight-column: LIBSVM text has no place for weights; leave the option out.")
        data = training_rows(input_file, table, 0, True, note, count, budget)
    else:
        data = read(input_file, zero_based=zero_based, shifts=True, jobs=count, budget=budget)
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
    scaled = scaling_of(data.X, scale).apply(data.X, in_place=True)
    write(output_file, scaled, data.y)


def note(text: str) -> None:
    """Print a note on stderr."""
    click.echo(f"note: {on_command_line(text)}", err=True)
