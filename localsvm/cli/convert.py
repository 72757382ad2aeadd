"""Command `lsvm convert`."""

from __future__ import annotations

import click

from localsvm.cli import options as opt
from localsvm.cli.paths import check_outputs
from localsvm.cli.program import Program, examples
from localsvm.cli.value_types import Group, Names

SCRATCH = 32 << 20  # of learning the scaling, and of rows as text


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm convert raw.txt.gz clean.libsvm",
        "lsvm convert --zero-based from0.txt from1.libsvm",
        "lsvm convert --scale minmax raw.libsvm - | head",
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
@opt.resources
@opt.force
def convert(
    input_file: str, output_file: str, scale: str, zero_based: bool, jobs: int | None, memory: int | None, force: bool
) -> None:  # fmt: skip
    """Rewrite LIBSVM text IN as clean LIBSVM text OUT.

    OUT has indices from 1, no comments and no zeros. IN may be compressed, and OUT is if its name ends in .gz, .bz2,
    .xz or .zst; - is stdin or stdout. A mistake in IN is refused with its line and column.
    """
    from localsvm.data.blocks.dataset import size_of
    from localsvm.data.readers.libsvm import read
    from localsvm.data.readers.origin import from_zero
    from localsvm.data.writers.libsvm import write
    from localsvm.features.scaling import CENTRED, made_bytes, scaling_of
    from localsvm.memory import Budget

    check_outputs(force, [input_file], [output_file])
    budget = Budget.of(memory)
    data = read(input_file, zero_based=zero_based, shifts=True, jobs=opt.job_count(jobs), budget=budget)
    need = size_of(data.X) + 8 * len(data.y) + made_bytes(data.X, scale) + SCRATCH
    budget.check(f"scaling by {scale} needs" if scale != "none" else "writing needs", need, "give more --memory")
    if data.shift is not None and scale not in CENTRED:
        data.X = from_zero(data.X, data.shift)
        count = len(data.shift.columns)
        what = "1 feature is" if count == 1 else f"{count} features are"
        click.echo(
            f"note: {what} so far from 0 that float32 loses digits, and OUT has the rounded values; subtract a number "
            "from them first, or give --scale zscore or minmax",
            err=True,
        )
    scaled = scaling_of(data.X, scale).apply(data.X, in_place=True)
    write(output_file, scaled, data.y)
