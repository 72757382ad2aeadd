"""Command `lsvm cv`, also as the program `lsvm-cv`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from localsvm.cli import options as opt
from localsvm.cli.given_files import given_metric
from localsvm.cli.grid_table import LOSSES, SHARES, best_text, print_points, validation_report
from localsvm.cli.paths import check_outputs
from localsvm.cli.program import Program, examples
from localsvm.cli.progress import Progress
from localsvm.cli.reporting import print_json
from localsvm.cli.table_options import of_table, settled, table_of

if TYPE_CHECKING:
    from localsvm.runs.cross_validate import Validation


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm-cv train.libsvm > grid.csv",
        "lsvm-cv -g 2^-8:2^2:11 -C 2^-2:2^10:13 --plot grid.png train.libsvm > grid.csv",
        "lsvm-cv -g 0.5 -C 1,10,100 -v 10 train.libsvm",
    ),
)
@opt.train_file
@opt.learning
@opt.partitioning
@opt.repeats
@opt.selection
@opt.weights
@opt.groups
@opt.seed
@opt.partition_file
@opt.plot("the error over the grid")
@opt.zero_based
@opt.force_classes
@of_table
@opt.out_of_core
@opt.resources
@opt.force
@opt.as_json
@opt.quiet
def cv(
    train_file: str, partition_file: str | None, metric_file: str | None, plot: str | None, jobs: int | None,
    memory: int | None, out_of_core: bool, force: bool, as_json: bool, quiet: bool, **options: Any,
) -> None:  # fmt: skip
    """Cross-validate a grid of hyper-parameters (for svm, gamma and C) on TRAIN_FILE.

    This is what lsvm-train does in each cell before it trains. The table goes to stdout as CSV: a line for each cell
    and point of the grid, with its held-out error (or what --score says), and whether the point is the best of its
    cell. The best point goes to stderr.
    """
    from localsvm.memory import Budget
    from localsvm.runs.cross_validate import cross_validate
    from localsvm.runs.preparation.engine import engine_for
    from localsvm.runs.progress import Clock

    weights = opt.weights_file(options, train_file)
    check_outputs(force, [train_file, partition_file, metric_file, weights, groups := options["group_file"]], [plot])
    _check(plot, options["scoring"])
    table = table_of(options, train_file, ("metric_file",))
    config = opt.training_config(options, partition_file, given := given_metric(metric_file, options, partition_file))
    with Progress(quiet) as progress:
        clock, budget, count = Clock(progress), Budget.of(memory), opt.job_count(jobs)
        opt.note_cell_size(options, progress.note)
        with clock("read"):
            engine = engine_for(train_file, config, out_of_core, progress.note, weights, count, budget, table, groups)
        config = settled(config, table, engine, options, progress.note)
        extra: dict[str, Any] = {"jobs": count, "memory": memory, "partition_file": partition_file}
        result = cross_validate(engine, config, given=given, observer=progress, **extra)
        result.seconds = clock.seconds | result.seconds
    words = opt.words_given(click.get_current_context(), config.method.name, (*result.names, "cost"))
    if plot:
        _draw(result, plot, force)
    if not quiet:
        click.echo(best_text(result, config.method.name, words), err=True)
    if as_json:
        print_json("cv", validation_report(result, config))
    else:
        print_points(result)


def _check(plot: str | None, scoring: str | None) -> None:
    """Raise an error for a picture that cannot be drawn, or a score that does not choose a point."""
    from localsvm.cli import plotting

    plotting.check(plot)
    if scoring == "npl":
        raise click.UsageError("--score npl chooses among weights, not points of a grid; give it to lsvm-train.")


def _draw(result: Validation, path: str, force: bool) -> None:
    """Draw the loss over the grid: of squares the root, in the unit of the values."""
    from localsvm.cli import plotting
    from localsvm.runs.cross_validate import mean_grid

    name, grid = result.compared, mean_grid(result.points)
    if name == "mse" and result.score is not None:
        grid, name = grid._replace(loss=grid.loss**0.5), "rmse"
    plotting.grid_loss(result.names, grid, path, force, LOSSES[name], "%" if name in SHARES else None)
