"""All options and arguments that several commands have, each with its help.

Options that determine the model have no default here. An option that is not given is left to `TrainingConfig` or to the
method; the help shows their defaults, and a test compares them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from localsvm.cli import method_options, other_tools
from localsvm.cli.given_files import of_partition
from localsvm.cli.reporting import label_text
from localsvm.cli.value_types import (
    Blocks,
    CellSizeType,
    DurationType,
    FileName,
    FoldsType,
    Group,
    Label,
    MemoryType,
    Methods,
    MetricName,
    Names,
    Option,
    WholeNumber,
    ZeroOrOne,
)

if TYPE_CHECKING:
    from localsvm.engines.base import Engine
    from localsvm.runs.config import TrainingConfig
    from localsvm.runs.preparation.given import Given

Callback = TypeVar("Callback", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]

PARTITIONS = ("none", "chunks", "voronoi", "kmeans", "voronoi-manhattan", "kmeans-manhattan")
SCALES = ("std", "none", "zscore", "minmax", "row")
BALANCED = "balanced"  # what --weights takes beside a file
SMALL_CELL = 100  # below this, -c may be meant as LIBSVM's cost
VIEWS = ("none", "ranks", "auto")
ROOTS = COPIES = ("none", "auto")
EFFORTS = ("low", "normal", "high")
METRICS = ("none", "auto", "diag", "full", "nca", "itml", "lmnn", "rank:R")


def together(*decorators: Decorator) -> Decorator:
    """Combine several options into one decorator; the help shows them in this order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def learning(function: Callback) -> Callback:
    """Add -m and the options of all methods to a command; only commands that use this look the methods up."""
    for method_option in reversed(method_options.options()):
        function.__dict__.setdefault("__click_params__", []).append(method_option)
    known = tuple(method_options.methods())
    method = option(
        "-m",
        "--method",
        type=Methods(known),
        metavar="METHOD",  # the names are too many for the first line of an option
        help=f"The learning method: {', '.join(known)}.",
        show_default="svm",
        group=Group.METHOD,
    )
    return method(function)


def loss(function: Callback) -> Callback:
    """Add --loss alone, which says whether labels are classes or values."""
    function.__dict__.setdefault("__click_params__", []).append(method_options.option_of("linear", "loss"))
    return function


def _weights(ctx: click.Context, param: click.Parameter, values: tuple[tuple[float | str, float], ...]) -> Any:
    """Check that all class weights are positive and finite."""
    for label, weight in values:
        if not 0 < weight < math.inf:
            raise click.BadParameter(f"the weight of label {_label(label)} must be a positive number.", ctx, param)
    return values


def _label(label: float | str) -> str:
    return label if isinstance(label, str) else f"{label:g}"


option = partial(click.option, cls=Option)
file_argument = partial(click.argument, type=FileName())

train_file = file_argument("train_file", metavar="TRAIN_FILE")

partition = option(
    "-P",
    "--partition",
    type=Names(PARTITIONS, other_tools.PARTITIONS),
    show_default="for svm and svml, none up to -c rows and voronoi beyond; else none",
    help="How the rows are divided into cells. none: not at all; chunks: at random; voronoi: by the nearest of centres "
    "that are far apart; kmeans: of k-means centres; -manhattan: in that distance.",
    group=Group.PARTITION,
)
cell_size = option(
    "-c",
    "--cell-size",
    type=CellSizeType(),
    show_default="for svm 10000, with more than 10000 rows 1.6e8 over their number (1e9 beyond 256 columns), but "
    "4000 at least, and up to twice as many where rows have little noise; else 2000",
    help="No cell has more training rows than this. (It is not LIBSVM's -c: the cost is -C.)",
    group=Group.PARTITION,
)
effort = option(
    "--effort",
    type=Names(EFFORTS),
    show_default="normal",
    help="The time that training may take, for a user who leaves the rest alone. low: Euclidean distances and cells of "
    "2000 rows, in about a fifth of the time, with up to twice the errors; high: larger cells, and the mean "
    "of six repeats in different geometries, in two to six times the time, with up to a fifth of the errors less. "
    "What -c, --metric and --repeats say stays.",
    group=Group.PARTITION,
)
coarse_size = option(
    "--coarse-size",
    metavar="ROWS",
    type=WholeNumber(1),
    show_default="one coarse cell up to 131072 rows, or 64 cells; then coarse cells of half as many",
    help="Divide the rows into coarse cells of about this size first, by centres found on a sample, and then each "
    "coarse cell into cells. At least -c.",
    group=Group.PARTITION,
)
scale = option(
    "--scale",
    type=Names(SCALES),
    show_default="std",
    help="Scaling of the data, which the model keeps. std: features are divided by their standard deviations, without "
    "centring; none: nothing changes; zscore: features get mean 0 and deviation 1; minmax: features are mapped to "
    "[-1, 1]; row: each row is divided by its length.",
    group=Group.DATA,
)
metric = option(
    "--metric",
    type=MetricName(METRICS),
    show_default="for svm with a kernel of distances, auto; else none",
    help="Learn a metric before the rows are divided. diag: a weight for each feature; full: a matrix; rank:R: a "
    "matrix onto R dimensions; auto: the Euclidean or the Manhattan distance, ranks or none, weights or a matrix, by "
    "what predicts rows best that were held out from the learning; nca, itml, lmnn: published metrics, to compare "
    "with.",
    group=Group.PARTITION,
)
views = option(
    "--views",
    type=Names(VIEWS),
    show_default="auto",
    help="What columns of dense rows have beside them. none: nothing; ranks: each column of more than 9 values the "
    "normal scores of its values, which say where they stand among those of the training data; auto: ranks, if "
    "--metric auto chooses them, and up to 256 columns.",
    group=Group.PARTITION,
)
roots = option(
    "--roots",
    type=Names(ROOTS),
    show_default="auto",
    help="Whether square roots of values are learned in their place, whose squares are the answers. none: never; "
    "auto: with --loss least-squares, if --metric auto finds that they predict held-out rows better, of at most "
    "10,000 rows, and no value is below 0.",
    group=Group.PARTITION,
)
metric_file = option(
    "--metric-file",
    metavar="FILE",
    type=FileName(),
    help="Use the metric of FILE, a model or a partition file, and the scaling before it; --metric, --views and "
    "--scale are left out then.",
    group=Group.PARTITION,
)
folds = option(
    "-v",
    "--folds",
    type=FoldsType(2, 100),
    metavar="INTEGER|blocks[:INTEGER]",
    show_default="5",
    help="Folds of the cross-validation that chooses the parameters of each cell. blocks: they are stretches of "
    "consecutive rows, so that the error is that of later rows, where rows are in the order of time.",
    group=Group.SELECTION,
)
grid = option(
    "--grid",
    type=Names(("adaptive", "full")),
    show_default="adaptive",
    help="How the grid is searched. adaptive: move towards the best point, and leave most points out; full: score "
    "every point.",
    group=Group.SELECTION,
)
select = option(
    "--select",
    type=Names(("vote", "refit")),
    show_default="for svm and two classes, vote; else refit",
    help="What becomes the model after the selection. vote: the models of the folds, which vote; refit: one model, "
    "trained on all rows of the cell.",
    group=Group.SELECTION,
)
multiclass = option(
    "--multiclass",
    type=Names(("ova", "ava")),
    show_default="ova",
    help="How more than two classes are learned. ova: each class against all others; ava: all pairs of classes.",
    group=Group.SELECTION,
)
score = option(
    "--score",
    "scoring",
    type=Names(("accuracy", "tpr-tnr", "mse", "npl", "mae", "pinball", "r2")),
    show_default="accuracy, mse for squared-error; of values what fits --loss",
    help="What the parameters of each cell are chosen by. accuracy: the share of held-out rows with the right label; "
    "tpr-tnr: the product of the recalls of all classes, in which a rare class counts as much as a frequent one; npl: "
    "of two classes, the fewest missed alarms, with false alarms below --false-alarm (lsvm-train alone); mse: squared "
    "errors of decision values. Of values: mse or r2, squared errors; mae, absolute errors; pinball, the loss of "
    "quantiles.",
    group=Group.SELECTION,
)
class_weights = option(
    "-w",
    "class_weights",
    type=(Label(), float),
    multiple=True,
    callback=_weights,
    metavar="LABEL WEIGHT",
    help="Multiply C by WEIGHT for rows with this label. The option can be repeated; -w1 2.0 works as well.",
    group=Group.SELECTION,
)
false_alarm = option(
    "--false-alarm",
    type=click.FLOAT,
    metavar="SHARE",
    help="With --score npl, the share of the rows of the other label that may be given that of --alarm, as 0.05. "
    "Held-out rows promise it with a probability of 95%.",
    group=Group.SELECTION,
)
roc = option(
    "--roc",
    is_flag=True,
    help="Train two classes with several weights at once, and print on stdout the shares of false alarms and of "
    "detected rows of each, held out. lsvm-predict --false-alarm chooses among them.",
    group=Group.SELECTION,
)
alarm = option(
    "--alarm",
    type=Label(),
    metavar="LABEL",
    show_default="the larger label",
    help="With --score npl or --roc, the label that raises an alarm.",
    group=Group.SELECTION,
)
seed = option(
    "--seed",
    type=WholeNumber(0),
    show_default="0",
    help="Seed of all random choices; the same seed gives the same model.",
    group=Group.SELECTION,
)
weights = option(
    "--weights",
    metavar="FILE|balanced",
    help="Multiply C by a weight for each row. FILE has one number a line for each row of TRAIN_FILE, and a row of "
    "weight 0 is left out; with balanced, all classes weigh the same.",
    group=Group.SELECTION,
)
groups = option(
    "--group-file",
    metavar="FILE",
    help="Hold the rows of a group out together, so that the error is that of new groups. FILE has the name of a group "
    "a line, for each row of TRAIN_FILE.",
    group=Group.SELECTION,
)
probability = option(
    "-b",
    "--probability",
    type=ZeroOrOne(),
    metavar="0|1",
    show_default="0",
    help="1: calibrate probabilities for lsvm-predict -b 1, by the held-out values of the selection. Where -g and -C "
    "leave no choice, their point is cross-validated for this.",
    group=Group.SELECTION,
)
coverage = option(
    "--coverage",
    type=click.FLOAT,
    metavar="SHARE",
    help="Keep what lsvm-predict --coverage needs for intervals (of values) or sets of labels that hold the truth of "
    "so many new rows, as 0.9: quantiles are trained beside values, and probabilities of classes calibrated.",
    group=Group.SELECTION,
)
copies = option(
    "--copies",
    type=Names(COPIES),
    show_default="auto with --metric auto, else none",
    help="What decides for a row that equals training rows in all columns. none: the SVM; auto: the label that these "
    "have, if by cross-validation it is wrong at most a quarter as often as the SVM.",
    group=Group.SELECTION,
)
repeats = option(
    "--repeats",
    type=WholeNumber(1, 1000),
    show_default="2 where --metric auto finds two good geometries, else 1; 6 with --effort high",
    help="Divide the rows this many times, by different seeds, train the cells of all, and average their decision "
    "values. With --metric auto the best geometries take turns, and held-out values say how much each weighs.",
    group=Group.PARTITION,
)
partition_file = option(
    "--partition-file",
    metavar="FILE",
    type=FileName(),
    help="Use the cells, the scaling and the metric of FILE, which lsvm-partition wrote for the same data; -P, -c, "
    "--scale, --metric and --views are left out then.",
    group=Group.PARTITION,
)
zero_based = option(
    "--zero-based", is_flag=True, help="Feature indices of the data start at 0, not at 1.", group=Group.DATA
)
force_classes = option(
    "--force-classes",
    is_flag=True,
    help="Take more than 50 labels for classes, even if they are not all whole numbers. Without this option, such "
    "labels are refused, because they look like the values of a regression.",
    group=Group.DATA,
)
jobs = option(
    "-j",
    "--jobs",
    type=WholeNumber(1),
    show_default="all cores",
    help="Processes or threads that work at once; the result does not change.",
)
memory = option(
    "--memory",
    type=MemoryType(),
    show_default="what is free",
    help="Memory that the whole run may use, as in 500M or 8G: for the rows, the work on them, and 120M for each "
    "process.",
)
stream = option(
    "--stream",
    is_flag=True,
    help="Train in passes over rows in scratch files (in TMPDIR), of which few are in memory. This needs -s sgd.",
    group=Group.DATA,
)
out_of_core = option(
    "--out-of-core",
    is_flag=True,
    help="Keep the rows in scratch files (in TMPDIR), not in memory; the model is the same. A run that makes cells "
    "does so by itself where --memory is too small for the rows.",
    group=Group.DATA,
)
backend = option(
    "--backend",
    type=Names(("local", "spark")),
    show_default="local",
    help="Where the work is done. local: on this machine; spark: on a cluster, by Apache Spark, where a task trains a "
    "coarse cell (see --coarse-size) or predicts a part of a file.",
)
master = option("--master", metavar="URL", help="Address of the Spark cluster: spark://HOST:7077, yarn, local[4].")
time_limit = option(
    "--time-limit",
    type=DurationType(),
    show_default="none",
    help="End the run after this time, as in 90s, 2h or 1:30:00, without a model and with exit code 124; --resume "
    "continues it.",
)
resume = option("--resume", is_flag=True, help="Continue an interrupted run of the same data and options.")
force = option("--force", is_flag=True, help="Overwrite files that exist.")
as_json = option("--json", "as_json", is_flag=True, help="Print one report as JSON on stdout.")
quiet = option("-q", "--quiet", is_flag=True, help="Print nothing but errors on stderr.")


def plot(what: str) -> Decorator:
    """The option --plot of a command that draws `what`."""
    return option(
        "--plot",
        metavar="FILE",
        type=FileName(),
        help=f"Draw {what} into FILE (.png, .pdf or .svg; needs matplotlib).",
        group=Group.OUTPUT,
    )


partitioning = together(partition, cell_size, coarse_size, effort, scale, metric, views, roots, metric_file)
selection = together(folds, multiclass, score, class_weights)
resources = together(jobs, memory)
cluster = together(backend, master)


def training_config(options: dict[str, Any], file: str | None = None, metric: Given | None = None) -> TrainingConfig:
    """The configuration of a run, from the options that were given, and the partition file or the metric, if any."""
    from dataclasses import fields

    from localsvm.runs.config import TrainingConfig

    given = {name: value for name, value in options.items() if value not in (None, ())}
    if given.get("weights") == BALANCED:
        given["balanced"] = True
    given.pop("weights", None)
    given.pop("group_file", None)
    if isinstance(given.get("folds"), Blocks):
        given["blocks"] = True
        given["folds"] = int(given["folds"])
    shared = {name: given.pop(name) for name in [f.name for f in fields(TrainingConfig)] if name in given}
    shared["method"] = method_options.create(shared.get("method", "svm"), given)
    config = TrainingConfig(**(shared | of_partition(shared, file) if file else shared))
    return metric.fix(config) if metric else config


def weights_file(options: dict[str, Any], train_file: str) -> str | None:
    """The file of --weights, if one was given; UsageError where it and another file are stdin."""
    file: str | None = options["weights"]
    names = {"TRAIN_FILE": train_file, "--weights": file, "--group-file": options["group_file"]}
    from_stdin = [name for name, value in names.items() if value == "-"]
    if len(from_stdin) > 1:
        raise click.UsageError(f"{' and '.join(from_stdin)} cannot both come from stdin.")
    if options["group_file"] and isinstance(options["folds"], Blocks):
        raise click.UsageError("--group-file and --folds blocks both say what is held out together; leave one out.")
    return None if file == BALANCED else file


def words_given(ctx: click.Context, method: str, names: Sequence[str]) -> list[str]:
    """Words of a command line that say what lsvm-train does at one point of the grid.

    Options of the parameters of the point, `names`, are left out; costs are those of a sum of losses.
    """
    chosen = [option.name for name in names if (option := method_options.parameter(method, name))]
    words: list[str] = []
    for param in ctx.command.params:
        name = str(param.name)
        if not isinstance(param, Option) or ctx.get_parameter_source(name) != ParameterSource.COMMANDLINE:
            continue
        if param.group not in (Group.OUTPUT, Group.RUNNING) and name not in ("folds", *chosen):
            words += _words(param, False if name == "mean_loss" else ctx.params[name])
    return words


def _words(param: click.Option, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [(param.opts if value else param.secondary_opts)[0]]
    values = value if param.multiple else [value if param.nargs > 1 else (value,)]
    return [word for parts in values for word in (param.opts[0], *map(_word, parts))]


def _word(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_word, value))
    return label_text(value) if isinstance(value, float) else str(value)


def note_cell_size(options: dict[str, Any], tell: Callable[[str], None]) -> None:
    """Note a -c that was probably meant as LIBSVM's cost: with neither -C nor -P, and small or beside one gamma.

    `tell` prints the note.
    """
    size = options["cell_size"]
    meant = size is not None and (size < SMALL_CELL or len(options["gamma"] or ()) == 1)
    if meant and options["cost"] is None and options["partition"] is None:
        tell(f"-c {size} is the number of rows in a cell; LIBSVM's cost of {size} is -C {size} here")


def note_undivided(
    options: dict[str, Any], config: TrainingConfig, engine: Engine, tell: Callable[[str], None]
) -> None:  # fmt: skip
    """Note a -c that has no effect, as all rows, which are in memory, are one cell. `tell` prints the note."""
    size, data = options["cell_size"], getattr(engine, "data", None)
    rows = 0 if data is None else len(data.y)
    if size is not None and size < rows and config.undivided:
        tell(f"-c {size} has no effect without a partition: one cell has all {rows:,} rows; -P voronoi divides them")


def job_count(jobs: int | None) -> int:
    """The value of -j; all cores if it is not given."""
    from localsvm.parallel.local import cpu_count

    return jobs or cpu_count()
