"""Command `lsvm inspect`."""

from __future__ import annotations

import click

from localsvm.cli import options as opt
from localsvm.cli.description import describe, description_text
from localsvm.cli.paths import seekable
from localsvm.cli.program import Program, examples
from localsvm.cli.reporting import print_json


@click.command(cls=Program, epilog=examples("lsvm inspect model.h5", "lsvm inspect --json model.h5 | jq .models"))
@opt.file_argument("model_file", metavar="MODEL_FILE")
@opt.option(
    "--all",
    "every",
    is_flag=True,
    help="List the weights of all features in the metric, not only the ten largest.",
)
@opt.as_json
def inspect(model_file: str, every: bool, as_json: bool) -> None:
    """Print what a model is and how well it converged.

    Its options, classes, cells and support vectors, the gamma and C that its cells chose, and how much the features
    weigh in its metric, if it has one. The whole file is read, compared with its checksums and checked first.
    """
    from localsvm.runs.predict import LocalModel

    with LocalModel(seekable(model_file, "a model")) as model:
        description = describe(model.file, model.detected)
    if as_json:
        print_json("inspect", description)
    else:
        click.echo(description_text(description, every))
