"""Command `lsvm predict`, also as the program `lsvm-predict`."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from localsvm.cli import cluster
from localsvm.cli import options as opt
from localsvm.cli.labels import PredictionLines, TableLines, confusion_text, score_text, seen_text, unknown_text
from localsvm.cli.paths import check_folder, check_outputs, seekable, text_output
from localsvm.cli.program import Program, examples
from localsvm.cli.reporting import names_of, print_json
from localsvm.cli.table_options import check_table, is_delimited
from localsvm.cli.value_lines import TableValueLines, ValueLines, value_score_text
from localsvm.cli.value_types import Group, ZeroOrOne
from localsvm.errors import DataError
from localsvm.naming import on_command_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from localsvm.cli.score_report import Pictures
    from localsvm.runs.predict import LocalModel
    from localsvm.runs.prediction.parts import Collected
    from localsvm.runs.prediction.scores import ProbabilityScores
    from localsvm.runs.prediction.table_rows import TableRows
    from localsvm.runs.prediction.value_report import ValueReport

Asked = tuple[bool, float | None, float | None]  # whether probabilities are, which coverage, which bound


@click.command(
    cls=Program,
    epilog=examples(
        "lsvm-predict test.libsvm train.model.h5 predictions.txt",
        "lsvm-predict --confusion test.libsvm train.model.h5 /dev/null",
        "lsvm-predict -b 1 test.libsvm train.model.h5 probabilities.txt",
        "lsvm-predict new-customers.csv customers.model.h5 predictions.csv",
        "lsvm-predict --decision-values test.libsvm train.model.h5 | head",
        "lsvm-predict --backend spark --master spark://HOST:7077 test/ train.model.h5 predictions/",
    ),
)
@opt.file_argument("test_file", metavar="TEST_FILE")
@opt.file_argument("model_file", metavar="MODEL_FILE")
@opt.file_argument("output", metavar="[OUTPUT]", required=False)
@opt.option(
    "--decision-values",
    is_flag=True,
    help="Write the decision value of each binary problem after the label.",
    group=Group.OUTPUT,
)
@opt.option(
    "--format",
    "output_format",
    type=click.Choice(["csv", "libsvm"]),
    show_default="by the name of OUTPUT",
    help="How the predictions of a table are written: csv: with the columns that name rows and with a header, as into "
    "an OUTPUT whose name ends in .csv or .tsv; libsvm: as svm-predict does.",
    group=Group.OUTPUT,
)
@opt.option(
    "--confusion",
    is_flag=True,
    help="Print on stderr a table with the number of rows of each class by predicted label.",
    group=Group.OUTPUT,
)
@opt.option(
    "-b",
    "--probability",
    type=ZeroOrOne(),
    default=False,
    metavar="0|1",
    show_default="0",
    help="1: write the probability of each class after the label, which is then the most probable one.",
    group=Group.OUTPUT,
)
@opt.option(
    "--coverage",
    type=click.FLOAT,
    metavar="SHARE",
    help="Write what holds the truth of so many rows, as 0.9: of values the ends of an interval after each, of classes "
    "the labels of a set, the most probable first, in place of one label. For models trained with --coverage.",
    group=Group.OUTPUT,
)
@opt.option(
    "--false-alarm",
    type=click.FLOAT,
    metavar="SHARE",
    help="Decide so that at most so many rows that should raise no alarm do, as 0.05, and as few alarms are missed as "
    "can be. For models trained with --roc or --score npl.",
    group=Group.OUTPUT,
)
@opt.option(
    "--report",
    metavar="FOLDER",
    help="Write scores into FOLDER, as JSON and as pictures (needs matplotlib). Of the probabilities of -b 1: log "
    "loss, Brier score, reliability, ROC, precision and recall. Of values: predicted against observed ones, residuals, "
    "and how often quantiles and intervals hold the truth.",
    group=Group.OUTPUT,
)
@opt.option(
    "--zero-based/--one-based",
    default=None,
    show_default="as in training",
    help="Feature indices of TEST_FILE start at 0, or at 1.",
    group=Group.DATA,
)
@opt.resources
@opt.cluster
@opt.force
@opt.as_json
@opt.quiet
def predict(
    test_file: str, model_file: str, output: str | None, decision_values: bool, output_format: str | None,
    probability: bool, coverage: float | None, false_alarm: float | None, report: str | None, confusion: bool,
    zero_based: bool | None, jobs: int | None, memory: int | None, backend: str | None, master: str | None,
    force: bool, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Predict a label for each row of TEST_FILE.

    Labels are written to OUTPUT, or stdout, one a line. The labels that TEST_FILE holds are compared with them and
    the accuracy goes to stderr; put 0 where they are unknown. With --decision-values there is a header line:
    `labels`, then the binary problems, NEGATIVE/POSITIVE each, with `rest` for all other classes; a value above 0
    speaks for POSITIVE. With -b 1, for models trained with it, the header is `labels` and the labels, ascending.
    With --backend spark, an OUTPUT that ends in / is a folder with a file for each part of the input.
    """
    from localsvm.cli import score_report
    from localsvm.runs.predict import LocalModel
    from localsvm.runs.prediction.parts import Collected

    url = cluster.check_prediction(backend, master, test_file, click.get_current_context().params)
    _check_files(test_file, seekable(model_file, "a model"), output, force, as_json, url is not None)
    asked = probability, coverage, false_alarm
    _check_columns(decision_values, asked)
    with LocalModel(model_file, opt.job_count(jobs), memory=memory) as model:
        _check_asked(model, model_file, asked)
        said = Collected.of(model, zero_based)
        table, classes = model.table if url else model.table_rows(test_file), model.file.config.get("classes")
        check_table(table, zero_based)
        of_values = model.target.score_of_values is not None
        lines = _lines(output, output_format, table, decision_values, asked, classes, of_values)
        scores, pictures = _report_of(model, report, asked, force)
        if url:
            cluster.predict(url, test_file, model_file, output, lines, asked, said, zero_based, force, table)
        else:
            _predict_here(model, test_file, (output, force), lines, said, asked, scores)
    if report is not None:
        score_report.write(report, scores, pictures, force)
    if not quiet:
        _print(said, confusion, classes)
    if as_json:
        print_json("predict", _told(said, classes))


def _lines(
    output: str | None, form: str | None, table: TableRows | None, decision_values: bool,
    asked: Asked, classes: Any, of_values: bool,
) -> Callable[..., Any]:  # fmt: skip
    """Function that makes the writer of a text file for a target; UsageError for CSV without a table."""
    columns: dict[str, Any] = {"coverage": asked[1] is not None}
    if not of_values:
        columns |= {"decision_values": decision_values, "probabilities": asked[0], "classes": classes}
    if table is None and form == "csv":
        raise click.UsageError("--format csv is for models of tables, and this model was trained on LIBSVM text.")
    if table is not None and (form or ("csv" if is_delimited(output) else "libsvm")) == "csv":
        from localsvm.data.readers.tables import is_tab

        ids, label = table.kept["ids"], table.kept["label"]
        form = "\t" if is_tab(str(output)) else ","
        return partial(TableValueLines if of_values else TableLines, ids=ids, label=label, delimiter=form, **columns)
    return partial(ValueLines if of_values else PredictionLines, **columns)


def _told(said: Collected, classes: Any) -> dict[str, Any]:
    """Entries of --json. classes : what the labels stand for; None where they are numbers themselves."""
    params = click.get_current_context().params
    files = {"test": params["test_file"], "model": params["model_file"], "output": params["output"]}
    return files | ({"classes": classes} if classes else {}) | said.score.as_dict()


def _print(said: Collected, confusion: bool, classes: Any) -> None:
    """Print notes on the file, and the scores of its rows, if these have labels. classes : what these stand for."""
    from localsvm.features.encoding import new_levels_text
    from localsvm.runs.prediction.value_scores import ValueScore

    params = click.get_current_context().params
    test_file, model_file = params["test_file"], params["model_file"]
    score, notes = said.score, said.notes
    if warning := said.indices.warning(test_file, model_file):
        click.echo(f"warning: {on_command_line(warning)}", err=True)
    elif note := said.indices.note(test_file, model_file):
        click.echo(f"note: {note}", err=True)
    for column, count in notes.unknown.items():
        click.echo(f"note: {new_levels_text(column, count)}", err=True)
    for column in sorted(notes.absent):
        click.echo(f"note: there is no column {column!r}, which names rows", err=True)
    if isinstance(score, ValueScore):
        text = value_score_text(score)
    else:
        if score.unknown:
            click.echo(f"note: {unknown_text(score)}", err=True)
        if score.copies:
            click.echo(f"note: {seen_text(score)}", err=True)
        name = names_of(score.target.labels.tolist(), classes)
        text = score_text(score, name) + (confusion_text(score, name) if confusion and score.total else "")
    if text:
        click.echo(text, err=True)


def _predict_here(
    model: LocalModel, file: str, output: tuple[str | None, bool], lines: Callable[..., Any], said: Collected,
    asked: Asked, scores: ProbabilityScores | ValueReport | None,
) -> None:  # fmt: skip
    """Predict a file block by block, on this machine, and write and score each.

    output : the file, and whether it may be there. asked : see `Asked`.
    """
    probability, coverage, _ = asked
    indices = said.indices
    with text_output(*output) as out:
        takers = lines(out, model.target).write, said.score.add, *([scores.add] if scores else [])
        blocks = model.read(file, zero_based=indices.zero_based, tell=indices.count, notes=said.notes)
        for block in model.predict_blocks(indices.seen(blocks), probability, coverage=coverage):
            for take in takers:
                take(block)
        if scores is not None and not scores.rows:
            what = scores.of
            raise DataError(f"{file}: no row has a {what}: --report is for files with {what}s; leave it out")


def _check_files(
    test_file: str, model_file: str, output: str | None, force: bool, as_json: bool, on_cluster: bool
) -> None:  # fmt: skip
    from localsvm.store.container import is_hdf5

    both = os.path.isfile(test_file) and os.path.isfile(model_file)
    if both and is_hdf5(test_file) and not is_hdf5(model_file):
        raise click.UsageError(f"{test_file} is not data, but a model; the order is TEST_FILE MODEL_FILE [OUTPUT].")
    if as_json and output in (None, "-"):
        raise click.UsageError("--json prints its report on stdout, so OUTPUT must be a file.")
    if on_cluster and output is not None and output.endswith("/"):
        check_folder(output, force, [test_file, model_file])
        output = None
    check_outputs(force, [test_file, model_file], [output])


def _report_of(
    model: LocalModel, folder: str | None, asked: Asked, force: bool
) -> tuple[ProbabilityScores | ValueReport | None, Pictures]:  # fmt: skip
    """Scores for --report, and their pictures; None without a folder, whose files are checked."""
    from localsvm.cli import score_report, value_report
    from localsvm.runs.prediction.scores import ProbabilityScores
    from localsvm.runs.prediction.value_report import ValueReport
    from localsvm.targets.regression import Regression

    if folder is None:
        return None, {}
    probability, coverage, _ = asked
    scores: ProbabilityScores | ValueReport
    if isinstance(model.target, Regression):
        scores = ValueReport(model.target, coverage)
        pictures = value_report.pictures(scores)
    elif probability:
        names = (model.file.config.get("classes") or {}).get("values")
        scores, pictures = ProbabilityScores(model.file.labels, names), score_report.PICTURES
    else:
        without = model.detected is not None or model.target.novel_share is not None
        other = "give -b 1 as well" if coverage is None else "give -b 1 in place of --coverage"
        what = "and detections and novelties have none; leave it out" if without else other
        raise click.UsageError(f"--report scores probabilities{',' if without else ';'} {what}.")
    score_report.check(folder, pictures, force)
    return scores, pictures


def _check_asked(model: LocalModel, model_file: str, asked: Asked) -> None:
    """Raise UsageError for an option of classes and a model of values, or for what the model was not trained for.

    The model keeps the bound of false alarms from then on, where one is asked for.
    """
    probability, coverage, false_alarm = asked
    of_values = model.target.score_of_values is not None
    params = click.get_current_context().params
    given = [name for name in ("decision_values", "probability", "confusion") if params[name]]
    if of_values and given:
        flag = "-b 1" if given[0] == "probability" else f"--{given[0].replace('_', '-')}"
        raise click.UsageError(f"{flag} is for classes, and {model_file} predicts values; leave it out.")
    if model.target.novel_share is not None and (probability or coverage is not None):
        flag, kept = (
            "-b 1" if probability else "--coverage",
            "leave it out; --decision-values has how far a row is inside",
        )
        raise click.UsageError(f"{flag} does not go with {model_file}, which finds novelties: {kept}.")
    if probability:
        model.calibrated()
    if coverage is not None:
        model.covering().margin(coverage)
    if false_alarm is not None:
        model.keep(false_alarm)


def _check_columns(decision_values: bool, asked: Asked) -> None:
    probability, coverage, _ = asked
    if coverage is not None and (decision_values or probability):
        other = "-b 1" if probability else "--decision-values"
        raise click.UsageError(f"{other} and --coverage write different columns; give one of the two.")
    if decision_values and probability:
        raise click.UsageError("--decision-values and -b 1 write different columns; give one of the two.")
