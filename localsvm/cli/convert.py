"""`lsvm convert`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from localsvm.cli import options as opt
from localsvm.cli.paths import check_outputs
from localsvm.cli.program import Program, examples
from localsvm.cli.value_types import Group, Names

if TYPE_CHECKING:
    from localsvm.memory import Budget

ANY_WIDTH = (1 << 31) - 1  # columns: as many as indices can name
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
    .xz or .zst; - is stdin or stdout. A mistake in IN is refused with its line and column. Without --scale,
    memory holds a few blocks of rows, however large IN is; with it all of them.
    """
    from localsvm.memory import Budget

    check_outputs(force, [input_file], [output_file])
    jobs, budget = opt.job_count(jobs), Budget.of(memory)
    if scale == "none":
        _rewrite(input_file, output_file, zero_based, jobs, budget)
    else:
        _scale(input_file, output_file, scale, zero_based, jobs, budget)


def _rewrite(source: str, target: str, zero_based: bool, jobs: int, budget: Budget) -> None:
    from localsvm.data.faults import LONGEST_LINE
    from localsvm.data.pieces import BLOCK_BYTES
    from localsvm.data.reading import read_blocks
    from localsvm.data.writing import write_blocks

    blocks = read_blocks(
        source, n_features=ANY_WIDTH, dense=False, zero_based=zero_based, jobs=jobs,
        block_bytes=budget.block_bytes(BLOCK_BYTES, 3 * jobs), longest=budget.text_bytes(LONGEST_LINE),
    )  # fmt: skip
    write_blocks(target, ((block.X, block.y) for block in blocks))


def _scale(source: str, target: str, scale: str, zero_based: bool, jobs: int, budget: Budget) -> None:
    from localsvm.data.dataset import size_of
    from localsvm.data.reading import read
    from localsvm.data.scaling import Scaling, made_bytes
    from localsvm.data.writing import write

    data = read(source, zero_based=zero_based, jobs=jobs, budget=budget)
    need = size_of(data.X) + 8 * len(data.y) + made_bytes(data.X, scale) + SCRATCH
    budget.check(f"scaling by {scale} needs", need, "give more --memory")
    scaled = Scaling.fit(data.X, scale).apply(data.X, in_place=True)
    write(target, scaled, data.y)
