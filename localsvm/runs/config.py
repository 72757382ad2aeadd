"""Options that determine a model, and what they ask of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dealing import Mates
from localsvm.errors import DataError, OptionError
from localsvm.features.ranks import VIEWS
from localsvm.features.scaling import CENTRED, MODES
from localsvm.methods import default_method, method_from
from localsvm.methods.base import Method
from localsvm.methods.grids import LARGEST_COST
from localsvm.methods.value_losses import ValueLosses
from localsvm.naming import opt
from localsvm.representations.metric import AUTO, EUCLIDEAN, check_metric
from localsvm.selection.search import SEARCHES
from localsvm.store.options import SEEDS, Seed, check_options
from localsvm.store.pieces import Unsound
from localsvm.targets import classification, regression
from localsvm.targets.base import Observed, Target, ValueRange
from localsvm.targets.classification import ACCURACY, SCHEMES, TPR_TNR, Classification
from localsvm.targets.conformal import check_rows
from localsvm.targets.detection import NPL, Detection, check_bound, rows_for, too_few, weights_for
from localsvm.targets.loss_names import LEAST_SQUARES, QUANTILE, SQUARED_ERROR
from localsvm.targets.losses import Loss
from localsvm.targets.novelty import Novelty
from localsvm.targets.regression import MSE, R2, Regression

EFFORTS = ("low", "normal", "high")
ROOTS = COPIES = ("none", "auto")
LOW_CELL = 2000  # rows of cells with a low effort
HIGH_TIMES, HIGH_ROWS = 2.0, 1.25  # with a high one: so many times the rows of a cell that 1 / 1.25 of the rows have
HIGH_REPEATS = 6  # with a high effort: as many as there are kinds of geometries for dense rows
USUAL_REPEATS = 2  # where as many good geometries are found
MOST_ROWS = 1 << 40
LARGEST_VALUE = 1e100  # to predict, and of 1 over the deviation
MOST_FRACTIONS = 50  # more labels than this, and not all of them whole numbers, are no classes
WHERE_TRUE = ("zero_based", "probability", "balanced", "blocks", "roc", "false_alarm", "alarm_weights")
# a model without these options has their defaults
LATER = {
    "metric", "repeats", "coarse_size", "balanced", "zero_based", "force_classes", "probability", "scoring", "blocks",
    "views", "roots", "effort", "coverage", "roc", "false_alarm", "alarm_weights", "alarm",
    "copies",
}  # fmt: skip


@dataclass(frozen=True)
class TrainingConfig:
    """Every option that determines the model; see the command line's help for their meaning.

    Attributes
    ----------
    method : with its own options.
    partition : its name; None for one cell up to cell_size rows, and Voronoi cells beyond if the method divides.
    cell_size : the most rows of a cell; None for what the method does by default for the number of rows.
    effort : one of EFFORTS, for what is not given: "low" has no metric and small cells, "high" larger cells
        and repeats.
    scale : how features are scaled, one of `features.scaling.MODES`.
    metric : of the scaled rows, "none" or one of those that `preparation.metric` learns; None for what the method does
        by default.
    views : what columns have beside them: "none", "ranks", or "auto", where a metric that is chosen may have ranks.
    roots : whether square roots of values may be learned in their place: "auto", where `metric` is "auto" and chooses
        them, or "none".
    copies : whether rows that equal training rows get their labels, where that is clearly better: "auto", or "none";
        None for "auto" where `metric` is and there is a point to choose.
    folds : of cross-validation, at least 2.
    blocks : folds are stretches of consecutive rows, as of time; else rows are dealt out at random.
    grid : how a grid is searched, "adaptive" or "full".
    select : "vote" or "refit"; None for what the method does by default for the number of classes.
    multiclass : "ova" or "ava".
    scoring : what selection scores points by: for classes "accuracy" or "tpr-tnr", for values one of
        `targets.regression.SCORES`; None for "accuracy", or what fits the loss of values. With "npl" there are problems
        of several weights, and of these is chosen what keeps a bound of false alarms (`targets.detection`).
    false_alarm : that bound, a share of the quiet rows; None without "npl".
    alarm : the label that raises an alarm, None for the larger one; the rows of the other one are quiet.
    roc : whether the model keeps problems of several weights, with or without a choice.
    alarm_weights : these weights, once `for_labels` has settled them.
    class_weights : (label, factor on C) pairs.
    balanced : further factors, n / (classes x rows of the class), in which all classes weigh the same.
    probability : whether the model is to give probabilities: held-out values are kept, and calibrated.
    coverage : of the intervals or sets of labels that the model is to give, between 0 and 1; None for none. Sets are
        made of probabilities.
    seed : of everything random, from 0, of up to 1000 digits.
    repeats : partitions by different seeds, and of different geometries where these are chosen, which answer together;
        None for what the effort does, or for as many as there are geometries.
    zero_based : indices of data files start at 0.
    force_classes : labels are classes, however little they look like it.
    coarse_size : rows of the coarse cells that are divided into cells, at least cell_size; None to divide at once.

    Raises
    ------
    OptionError : for a value that makes no sense.
    """

    method: Method = field(default_factory=default_method)
    partition: str | None = None
    cell_size: int | None = None
    scale: str = "std"
    metric: str | None = None
    views: str = "auto"
    effort: str = "normal"
    folds: int = 5
    grid: str = "adaptive"
    select: str | None = None
    multiclass: str = "ova"
    class_weights: tuple[tuple[float, float], ...] = ()
    probability: bool = False
    seed: Seed = 0
    repeats: int | None = None
    balanced: bool = False
    zero_based: bool = False
    force_classes: bool = False
    scoring: str | None = None
    coarse_size: int | None = None
    blocks: bool = False
    coverage: float | None = None
    roc: bool = False
    false_alarm: float | None = None
    alarm: float | None = None
    alarm_weights: tuple[float, ...] = ()
    roots: str = "auto"
    copies: str | None = None

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_values()
        self._check_one_kind()
        self._check_numbers()
        self._check_detection()
        self._check_partition()

    def _check_choices(self) -> None:
        for name, value, known in (
            (opt.grid, self.grid, SEARCHES),
            (opt.select, self.select or "vote", ("vote", "refit")),
            (opt.multiclass, self.multiclass, SCHEMES),
            (opt.scoring, self.scoring or self._scores[0], self._scores),
            (opt.scale, self.scale, MODES),
            (opt.views, self.views, VIEWS),
            (opt.roots, self.roots, ROOTS),
            (opt.copies, self.copies or "none", COPIES),
            (opt.effort, self.effort, EFFORTS),
        ):
            if value not in known:
                raise OptionError(f"{name(value)}: choose one of {', '.join(known)}")
        if self.blocks and self.copies == "auto":
            what = (
                f"{opt.copies('auto')} is for new rows that may equal those of training, and with {opt.folds('blocks')}"
            )
            raise OptionError(f"{what} they are later ones; leave one of the two out")
        check_metric(self.metric_name)
        if self.method.learns_metric and self.metric_name != EUCLIDEAN:
            raise OptionError(
                f"{opt.metric(self.metric)}: {self.method.name} learns a metric of its own ({opt.form}); give "
                f"{opt.metric('none')}, no {opt.metric_file}, and cells of lsvm-partition --metric none"
            )
        if self.method.distance == "manhattan" and self.metric_name not in (EUCLIDEAN, "auto", "diag"):
            raise OptionError(
                f"{opt.metric(self.metric)} mixes features, or is learned for the Euclidean distance, and the kernel "
                f"has another one; give {opt.metric('diag')}"
            )

    @property
    def of_values(self) -> bool:
        """True where values are predicted, False for classes: the loss says it."""
        return bool(self.method.value_losses)

    @property
    def value_losses(self) -> tuple[Loss, ...]:
        """Losses of the problems, with the ends of an interval last; () for classes."""
        losses = self.method.value_losses
        if not losses or self.coverage is None:
            return losses
        tail = (1.0 - self.coverage) / 2.0
        return (*losses, Loss(QUANTILE, tail), Loss(QUANTILE, 1.0 - tail))

    @property
    def of_one_kind(self) -> bool:
        """True where all rows are of one kind, and labels say nothing: the method says it."""
        return self.method.novel_share is not None

    @property
    def calibrates(self) -> bool:
        """True where the model has probabilities: they are asked for, or its sets of labels are made of them."""
        return self.probability or (self.coverage is not None and not self.of_values)

    @property
    def _scores(self) -> tuple[str, ...]:
        return regression.SCORES if self.of_values else (*classification.SCORES, NPL)

    @property
    def _usual_score(self) -> str:
        """The score of classes where none is asked for: squares are scored by squares."""
        return classification.MSE if getattr(self.method, "loss", None) == SQUARED_ERROR else ACCURACY

    @property
    def detects(self) -> bool:
        """True where there are problems of several weights."""
        return self.roc or self.scoring == NPL

    def _check_values(self) -> None:
        """Raise OptionError for options of classes beside a loss of values."""
        given = {
            opt.class_weights: self.class_weights, opt.weights("balanced"): self.balanced,
            opt.probability(1): self.probability, opt.force_classes: self.force_classes, opt.roc: self.roc,
            opt.multiclass(self.multiclass): self.multiclass != "ova", opt.false_alarm: self.false_alarm is not None,
            opt.copies("auto"): self.copies == "auto",
        }  # fmt: skip
        for name, value in given.items():
            if self.of_values and value:
                raise OptionError(f"{name} is for classes, and the loss is one of values; leave it out")

    def _check_one_kind(self) -> None:
        """Raise OptionError for options of classes beside a method of rows of one kind."""
        given = {
            opt.class_weights: self.class_weights, opt.weights("balanced"): self.balanced,
            opt.probability(1): self.probability, opt.coverage: self.coverage, opt.force_classes: self.force_classes,
            opt.scoring: self.scoring not in (None, ACCURACY), opt.multiclass("ava"): self.multiclass == "ava",
            opt.copies("auto"): self.copies == "auto",
        }  # fmt: skip
        for name, value in given.items():
            if self.of_one_kind and value:
                raise OptionError(
                    f"{name} does not go with {self.method.name}, whose rows are of one kind; leave it out"
                )
        if self.of_one_kind and self.metric_name not in (EUCLIDEAN, AUTO):
            what = f"a metric is learned from labels, and {self.method.name} has none"
            raise OptionError(f"{what}; give {opt.metric('none')}, and no file of a metric or of cells in one")
        if self.of_one_kind and self.views == "ranks":
            what = f"{opt.views('ranks')} puts columns beside those that they follow from, and {self.method.name}"
            raise OptionError(f"{what} compares rows with combinations of columns; leave it out")

    def _check_numbers(self) -> None:
        if self.folds < 2:
            raise OptionError(f"{opt.folds} must be at least 2, not {self.folds}")
        for label, weight in self.class_weights:
            if not 0.0 < weight <= LARGEST_COST:
                what = f"a positive number up to {LARGEST_COST:g}"
                raise OptionError(f"{opt.class_weights(label)}: the weight of a class must be {what}, not {weight:g}")
        if self.coverage is not None and not 0.0 < self.coverage < 1.0:
            raise OptionError(f"{opt.coverage} must be a number between 0 and 1, as 0.9, not {self.coverage:g}")
        if not 0 <= self.seed < SEEDS:
            raise OptionError(f"{opt.seed} must be a whole number from 0 of up to 1000 digits")

    def _check_detection(self) -> None:
        if (self.false_alarm is None) == (self.scoring == NPL):
            raise OptionError(f"{opt.scoring(NPL)} and {opt.false_alarm} go together, as in {opt.false_alarm(0.05)}")
        if self.false_alarm is not None:
            check_bound(self.false_alarm)
        if not self.detects:
            if self.alarm is not None:
                raise OptionError(f"{opt.alarm} is for {opt.scoring(NPL)} and {opt.roc}; give one of them")
            return
        asked = opt.roc if self.scoring != NPL else opt.scoring(NPL)
        if not self.method.takes_factors:
            raise OptionError(
                f"{asked} weighs classes anew in each problem, which {opt.method(self.method.name)} does not do; try "
                f"{opt.method('svm')}"
            )
        others = {
            opt.probability(1): self.probability, opt.coverage: self.coverage is not None,
            opt.scoring(TPR_TNR): self.scoring == TPR_TNR, opt.copies("auto"): self.copies == "auto",
        }  # fmt: skip
        for other, given in others.items():
            if given:
                raise OptionError(f"{other} and {asked} decide in different ways; leave one of the two out")

    def _check_partition(self) -> None:
        if self.cell_size is not None and self.cell_size >= MOST_ROWS:
            raise OptionError(f"{opt.cell_size(self.cell_size)}: no cell has as many rows; give fewer, or leave it out")
        if self.repeats is not None and self.repeats < 1:
            raise OptionError(f"{opt.repeats} must be a whole number from 1, not {self.repeats}")
        one_cell = self.partition == "none" and self.coarse_size is None
        if (self.repeats or 1) > 1 and one_cell and self.metric_name != AUTO:
            raise OptionError(
                f"{opt.repeats} is for several cells, which {opt.partition('none')} does not make; leave one of the "
                "two out"
            )
        if self.coarse_size is not None and self.coarse_size >= MOST_ROWS:
            raise OptionError(
                f"{opt.coarse_size(self.coarse_size)}: no cell has as many rows; give fewer, or leave it out"
            )
        if self.coarse_size is not None and self.coarse_size < (self.cell_size or 1):
            raise OptionError(
                f"{opt.coarse_size(self.coarse_size)}: a coarse cell is divided into cells of up to {self.cell_size} "
                f"rows ({opt.cell_size}), and has at least as many; give a larger one, or a smaller {opt.cell_size}"
            )

    @property
    def metric_name(self) -> str:
        """The metric that is asked for, or the method's own default, which is for distances alone."""
        if self.metric is not None:
            return self.metric
        if self.effort == "low":
            return EUCLIDEAN
        return self.method.default_metric if self.method.shift_invariant else EUCLIDEAN

    @property
    def times(self) -> int:
        """How often the rows are divided, at most: where repeats are not given, one geometry may have none."""
        if self.repeats or self.metric_name != AUTO:
            return self.repeats or 1
        if self.effort == "high":
            return HIGH_REPEATS
        # what is promised is promised of single members: intervals of their mean would be wider, more alarms missed
        promises = self.coverage is not None or self.detects
        usual = self.method.default_metric == AUTO and not self.method.is_point() and self.effort != "low"
        return USUAL_REPEATS if usual and not promises else 1

    @property
    def known_repeats(self) -> int | None:
        """How often the rows are divided; None where the choice of the geometry says it."""
        return self.times if self.repeats or self.effort == "high" or self.times == 1 else None

    @property
    def most_rows(self) -> int:
        """The most rows of a cell, once `for_rows` has settled them."""
        assert self.cell_size is not None, "settled"
        return self.cell_size

    def for_rows(self, rows: int, columns: int = 1, error: float | None = None) -> TrainingConfig:
        """The options with what depends on the number of rows, and of their columns, decided.

        error : share of fresh rows that the chosen geometry decides wrongly; None where none was chosen, or not yet.
            With a high effort, it is of no influence.
        """
        if self.effort == "high":
            usual = int(HIGH_TIMES * self.method.default_cell_size(int(rows / HIGH_ROWS), columns))
        else:
            usual = self.method.default_cell_size(rows, columns, error)
        size = self.cell_size or min(LOW_CELL if self.effort == "low" else usual, self.coarse_size or MOST_ROWS)
        return replace(self, cell_size=size, metric=self.metric_name, repeats=self.known_repeats, effort="normal")

    @property
    def undivided(self) -> bool:
        """True where all rows are one cell, however many."""
        whole = self.partition == "none" or (self.partition is None and not self.method.divides)
        return whole and self.coarse_size is None

    @property
    def shifts(self) -> bool:
        """True where columns may be read from an origin: a shift of all rows changes nothing after scaling."""
        return self.scale in CENTRED or (self.scale != "row" and self.method.shift_invariant)

    def mates_of(self, numbers: NDArray[np.int64], group: NDArray[np.int64] | None, rows: int) -> Mates | None:
        """Rows that stay together wherever rows are held out: of groups, or of a block; None where the user says none.

        Parameters
        ----------
        numbers, group : (n,) numbers of some rows, and of their groups if they have any.
        rows : how many there are in all.
        """
        if group is not None:
            return Mates(group, whole=True)
        return Mates(numbers * self.folds // rows, whole=True) if self.blocks else None

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> TrainingConfig:
        """The options that `as_dict` gave; Unsound for any that cannot be trained with."""
        check_options("/@config", stored, {f.name: str(f.type) for f in fields(cls)}, LATER)
        pairs = tuple((label, weight) for label, weight in stored["class_weights"])
        decoded = {"method": method_from(stored["method"]), "class_weights": pairs}
        alarm_weights = tuple(map(float, stored.get("alarm_weights", ())))
        decoded["alarm_weights"] = alarm_weights
        try:
            earlier: dict[str, Any] = {"metric": EUCLIDEAN, "views": "none", "repeats": 1}
            config = cls(**{**earlier, **stored, **decoded})
        except OptionError as error:
            raise Unsound(f"/@config: {error.message}") from error
        if config.detects != (1.0 in alarm_weights) or any(np.diff([0.0, *alarm_weights]) <= 0.0):
            raise Unsound("/@config: the option alarm_weights has no weights of a detection")
        return config

    def for_labels(self, observed: Observed) -> TrainingConfig:
        """The options with what depends on the labels decided."""
        weights, labels = self.class_weights, observed.labels
        if self.balanced:
            given, n = dict(weights), observed.rows / len(labels)
            balance = zip(labels.tolist(), observed.class_rows, strict=True)
            weights = tuple((label, given.get(label, 1.0) * n / rows) for label, rows in balance)
        select = self.select or self.method.default_select(len(labels))
        settled = replace(self, select=select, class_weights=weights, balanced=False)
        if self.detects:
            alarm = self._alarm(labels)
            settled = replace(settled, alarm_weights=weights_for(observed, dict(weights), self.false_alarm, alarm))
        return settled

    def as_dict(self) -> dict[str, Any]:
        """The options that determine the model, as JSON can hold them; later ones where they are not the default."""
        unsaid = {field.name: field.default for field in fields(self.method) if field.metadata.get("unsaid")}  # type: ignore[arg-type]
        method = {"name": self.method.name, **asdict(self.method)}  # type: ignore[call-overload]
        method = {name: value for name, value in method.items() if name not in unsaid or value != unsaid[name]}
        # a model that could be made before there were these options stays the same
        left_out = {"force_classes", *(name for name in WHERE_TRUE if not getattr(self, name))}
        left_out |= {"metric"} if self.metric_name == EUCLIDEAN else set()
        left_out |= {"scoring"} if self.scoring in (None, self._usual_score) else set()
        left_out |= {"roots"} if self.roots == "auto" else set()
        left_out |= {"coarse_size"} if self.coarse_size is None else set()
        left_out |= {"views"} if self.views == "none" else set()
        left_out |= {name for name in ("coverage", "alarm", "copies") if getattr(self, name) is None}
        left_out |= {"effort"} if self.effort == "normal" else set()
        decided = {"method": method, "metric": self.metric_name, "repeats": self.known_repeats}
        return {name: value for name, value in {**asdict(self), **decided}.items() if name not in left_out}

    @property
    def tries_copies(self) -> bool:
        """Whether copies of training rows may get their labels: of classes, where new rows are like those held out."""
        usual = "auto" if self.metric_name == AUTO and not self.method.is_point() else "none"
        classes = not (self.of_values or self.of_one_kind or self.detects)
        return (self.copies or usual) == "auto" and classes and not self.blocks

    @property
    def tries_roots(self) -> bool:
        """Whether square roots of values may be learned in their place: for means, by kernels of distances."""
        means = [loss.name for loss in self.method.value_losses] == [LEAST_SQUARES]
        scored = self.scoring in (None, MSE, R2)
        return self.roots == "auto" and means and scored and self.method.shift_invariant

    def target(self, observed: Observed) -> Target:
        """What the labels mean."""
        if self.method.novel_share is not None:
            return Novelty(nu=self.method.novel_share)
        if observed.values is not None:
            return Regression(self.value_losses, observed.values, self.scoring or "", self.coverage is not None)
        if self.detects:
            alarm = self._alarm(observed.labels)
            return Detection(observed.labels, self.multiclass, weights=self.alarm_weights, alarm=alarm)
        return Classification(observed.labels, self.multiclass, self.scoring or self._usual_score)

    def _alarm(self, labels: NDArray[np.float64]) -> int:
        """Number of the label that raises an alarm, one of both."""
        return 1 if self.alarm is None else int(np.searchsorted(labels, self.alarm))


def check_labels(
    observed: Observed, config: TrainingConfig, name: str = "", classes: Mapping[str, Any] | None = None
) -> None:
    """Refuse labels that cannot be trained on.

    name : of the file that they are from, for messages; "" for none.
    classes : what the labels stand for; see `Dataset`.

    Raises
    ------
    DataError : unless there are at least two labels, which can be classes, and those that -w names; or two values. And
        where there are too few rows for the coverage, even if all are held out.
    """
    if config.coverage is not None:
        check_rows(observed.rows, config.coverage)
    if observed.values is not None:
        _check_range(observed.values, observed.rows, name)
    elif not config.of_one_kind:
        _check_classes(observed, config, name, classes or {})


def _check_range(values: ValueRange, rows: int, name: str) -> None:
    if not values.low < values.high:
        what = f"all {rows} rows have the value {values.low:g}"
        raise DataError(f"{_where(name)}{what}; training needs at least two values")
    largest = max(abs(values.low), abs(values.high))
    if largest > LARGEST_VALUE or values.unit < 1.0 / LARGEST_VALUE:
        what = f"values up to {largest:g} with a deviation of {values.deviation:g} cannot be squared"
        raise DataError(f"{_where(name)}{what}; give them in another unit")


def _check_classes(observed: Observed, config: TrainingConfig, name: str, classes: Mapping[str, Any]) -> None:
    labels = observed.labels
    if len(labels) < 2:
        label = (classes.get("values") or [f"{labels[0]:g}"])[0]
        raise DataError(
            f"{_where(name)}all {observed.rows} rows have the label {label}; training needs at least two classes"
        )
    if config.detects:
        _check_detected(observed, config)
    if len(parts := fractions(labels)) and not config.force_classes:
        method = "" if isinstance(config.method, ValueLosses) else f"{opt.method('svm')} "
        raise DataError(
            f"{len(labels)} different labels that are not all whole numbers, as {parts[0]:g}, are rather values than "
            f"classes; predict values by {method}{opt.loss(LEAST_SQUARES)}, or if they are classes, give "
            f"{opt.force_classes}"
        )
    for label, _ in config.class_weights:
        if label not in labels:
            known = ", ".join(f"{v:g}" for v in labels[:10]) + (", ..." if len(labels) > 10 else "")
            raise DataError(f"{opt.class_weights(label)}: no row has that label; the labels are {known}")


def fractions(labels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Labels that are no whole numbers, if there are so many labels that they are rather values; else none."""
    return labels[labels != np.floor(labels)] if len(labels) > MOST_FRACTIONS else labels[:0]


def _check_detected(observed: Observed, config: TrainingConfig) -> None:
    """Raise DataError unless there are two classes, with the alarm among them, and enough quiet rows for a bound."""
    if len(observed.labels) != 2:
        asked = opt.roc if config.scoring != NPL else opt.scoring(NPL)
        raise DataError(f"{asked} is for two classes, and the data have {len(observed.labels)}; leave it out")
    labels, bound = observed.labels.tolist(), config.false_alarm
    if config.alarm is not None and config.alarm not in labels:
        known = " and ".join(f"{label:g}" for label in labels)
        raise DataError(f"{opt.alarm(config.alarm)}: no row has that label; the labels are {known}")
    quiet = observed.class_rows[0 if config.alarm is None else 1 - labels.index(config.alarm)]
    if bound is not None and quiet < rows_for(bound):
        raise too_few(quiet, bound)


def check_features(features: int, name: str = "") -> None:
    """Raise DataError where there is no feature. name : of the file, for the message."""
    if features == 0:
        raise DataError(f"{_where(name)}no row has a feature other than 0 (in float32); training needs at least one")


def _where(name: str) -> str:
    return name and f"{name}: "
