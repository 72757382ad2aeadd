"""Content of a model or a partition file outside of its cells, checked before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.engines.base import Head
from localsvm.errors import DataError, OptionError
from localsvm.features.chain import Chain
from localsvm.features.columns import MOST_FEATURES, KeptColumns
from localsvm.features.joint import Joint
from localsvm.features.learned import learned_metric
from localsvm.features.metric import Metric
from localsvm.features.ranks import Ranks
from localsvm.methods import method_from
from localsvm.partition import REGISTRY
from localsvm.partition.two_step import POINTER
from localsvm.runs.config import MOST_ROWS, TrainingConfig
from localsvm.store.checking import check
from localsvm.store.container import parse, size_of
from localsvm.store.metric_file import MetricFile
from localsvm.store.model import Model, PartitionFile
from localsvm.store.options import check_options
from localsvm.store.pieces import Piece, Unsound, floats32, floats64
from localsvm.targets import novelty, probabilities
from localsvm.targets.base import Observed, Target, ValueRange
from localsvm.targets.classification import Classification
from localsvm.targets.conformal import KIND, Coverage
from localsvm.targets.copies import KIND as COPIES
from localsvm.targets.copies import Copies
from localsvm.targets.detection import KIND as FRONT
from localsvm.targets.detection import Detected, Detection, Front
from localsvm.targets.novelty import Novelty
from localsvm.targets.probabilities import Calibration

# what a model's config says beside the options: the columns that occur, of how many; what the labels stand for;
# how the metric was chosen
ABOUT = {"features": "int", "dense": "bool", "weighted": "bool", "width": "int", "classes": "dict", "learned": "dict"}
ABOUT |= {"table": "dict", "values": "dict"}
OPTIONAL = {"weighted", "width", "classes", "learned", "table", "values"}
USUAL, ENDS, ROOTS = {"usual_mean", "usual_deviation"}, {"lowest", "highest"}, {"root_mean", "root_deviation"}
SHORT = {"root_short"}
VALUES = dict.fromkeys(("mean", "deviation", "low", "high", *USUAL, *ENDS, *ROOTS, *SHORT), "float")
KEPT_ABOUT = {"fingerprint": "str", "learned": "dict"}
# what a partition file's config says
KEPT = {"partition": "str", "cell_size": "int", "scale": "str", "metric": "str", "seed": "Seed", "zero_based": "bool"}
KEPT |= {"coarse_size": "int", "views": "str"}
KEPT |= KEPT_ABOUT
KEPT_LATER = {"metric", "learned", "zero_based", "coarse_size", "views"}
CALIBRATION_PIECES = {
    "sigmoids": floats64("cells", "problems", 2),
    "curve": floats64("knots", 2),
    "powers": floats64(2, low=0),
}
COPIES_PIECES = {
    "signatures": Piece("u8", ("copies",), least=1),
    "classes": Piece("i4", ("copies",), low=0, below="classes"),
    "error": floats64(1, low=0, high=1),
}
FRONT_PIECES = {
    "rows": floats64(2, low=0, high=MOST_ROWS),
    "false_alarms": floats64("places", low=0),
    "missed": floats64("places", low=0),
}
THRESHOLD_PIECES = {"threshold": floats64("cells")}
COVERAGE_PIECES = {
    "levels": floats64("levels", low=0, high=1), "margins": floats64("levels"), "shrink": floats64(1, low=0, high=1),
}  # fmt: skip


def options_of(model: Model) -> tuple[TrainingConfig, int, bool]:
    """The options, the number of features, and whether training rows were dense; labels that fit them."""
    size = size_of(model.path)
    config, features, dense = config_of(model.config, model.columns, size)
    model.check_header()
    if config.partition != model.partition[0]:
        raise Unsound("/@config: the option partition is not that of /partition")
    check_coarse(config.coarse_size, model.partition[1])
    least = 0 if config.of_values else 1 if config.of_one_kind else 2
    check("", {"labels": floats64("classes", least=least)}, {"labels": model.labels}, {})
    classes = len(model.labels)
    if config.of_values != ("values" in model.config) or (config.of_values and classes):
        raise Unsound("/@config: the option loss does not fit the labels or values of the model")
    if config.of_one_kind and model.labels.tolist() != [novelty.NORMAL]:
        raise Unsound("/labels are not those of rows of one kind")
    if np.any(np.diff(model.labels) <= 0):
        raise Unsound("/labels do not ascend")
    if config.multiclass == "ava" and classes * (classes - 1) // 2 > size:
        raise Unsound(f"/labels: a file of {size} bytes does not have models for {classes} classes")
    if config.detects and (classes != 2 or config.alarm not in (None, *model.labels)):
        raise Unsound("/@config: the option alarm is no label, or there are not two")
    if model.report is not None:
        _check_report(model.report, model.n_cells, classes)
    return config, features, dense


def observed_of(model: Model) -> Observed:
    """What training had found of the labels, as far as prediction needs it; Unsound for no sound range of values."""
    if "values" not in model.config:
        return Observed.of_classes(model.labels, [0] * len(model.labels))
    check_options("/@config values", stored := model.config["values"], VALUES, USUAL | ENDS | ROOTS | SHORT)
    known = ValueRange(**{name: float(value) for name, value in stored.items()})
    paired = all(len(pair & stored.keys()) != 1 for pair in (USUAL, ROOTS))
    sound = paired and bool(np.isfinite(list(known.as_dict().values())).all())
    sound = sound and (not known.of_roots or (known.low >= 0.0 and (known.root_deviation or 0.0) > 0.0))
    lowest, highest = known.ends
    if not (sound and 0 < known.unit <= known.deviation and lowest <= known.low < known.high <= highest):
        raise Unsound("/@config: the option values is no range")
    return Observed(0, values=known)


def config_of(stored: Mapping[str, Any], columns: NDArray[Any] | None, size: int) -> tuple[TrainingConfig, int, bool]:
    """Options of a model's config, the number of features, and whether training rows were dense.

    columns : of the model, which have to agree with its config. size : bytes of the file.
    """
    description = {name: value for name, value in stored.items() if name in ABOUT}
    check_options("/@config", description, ABOUT, OPTIONAL)
    config = TrainingConfig.from_dict({name: v for name, v in stored.items() if name not in ABOUT})
    if config.cell_size is None or config.cell_size < 1:
        raise Unsound("/@config: the option cell_size is below 1")
    if config.repeats is None:
        raise Unsound("/@config: the option repeats is no int")
    features = int(description["features"])
    # what is declared must not ask for more memory than is written: dense rows leave a number a feature in some array
    if not 1 <= features <= MOST_FEATURES or (description["dense"] and 4 * features > size):
        raise Unsound(f"/@config: a file of {size} bytes does not have {features} features")
    if columns is None and "width" in description:
        raise Unsound("a piece is missing from the file: /columns")
    if columns is not None and "width" not in description:
        raise Unsound("/@config: the option width is missing")
    return config, features, bool(description["dense"])


def check_kept(config: Mapping[str, Any]) -> None:
    """Raise Unsound unless a partition file's config is as `runs.partition.partition_only` writes it."""
    check_options("/@config", config, KEPT, KEPT_LATER)
    try:
        TrainingConfig(**{name: config[name] for name in KEPT.keys() - KEPT_ABOUT if name in config})
    except OptionError as error:
        raise Unsound(f"/@config: {error.message}") from error
    if config["cell_size"] < 1 or config["partition"] not in REGISTRY:
        raise Unsound("/@config: the options are not those of a partition")


def stored_chain(columns: KeptColumns, file: Model | PartitionFile | MetricFile) -> Chain:
    """The chain that a file keeps, for rows in these columns; Unsound if it does not fit, or is not what it says."""
    features = columns.columns(columns.width)
    ranks = None if file.ranks is None else Ranks.from_state(file.ranks, features)
    if (ranks is not None) != (file.config.get("views", "none") == "ranks"):
        raise Unsound("/@config: the option views is not that of /ranks")
    seen = features if ranks is None else ranks.columns(features)
    return Chain.from_state(columns, file.scaling, ranks, learned_metric(file.metric, file.config, seen))


def check_coarse(coarse_size: int | None, partition: Mapping[str, Any]) -> None:
    """Raise Unsound unless a partition has coarse cells where an option asks for them, and nowhere else."""
    if (coarse_size is not None) != any(name.rpartition("/")[2] == POINTER for name in partition):
        raise Unsound("/@config: the option coarse_size is not that of /partition")


def calibration_of(model: Model, problems: int) -> Calibration | None:
    """Calibration of a model, which makes probabilities of its decision values; None where it has none."""
    if model.calibration is None or model.calibration[0] == novelty.KIND:
        return None
    kind, arrays = model.calibration
    if kind != probabilities.KIND:
        raise Unsound(f"/calibration@kind: no calibration of ours is called {kind!r}")
    check("/calibration", CALIBRATION_PIECES, arrays, {"cells": model.n_cells, "problems": problems})
    z, shift = arrays["curve"].T
    if np.any(np.diff(z) <= 0) or np.any(np.diff(z + shift) < -1e-9 * (1 + abs(z[1:]))):
        raise Unsound("/calibration/curve does not ascend")
    return Calibration.from_state(arrays)


def target_of(model: Model, config: TrainingConfig) -> Target:
    """What the labels of a model mean, with the thresholds of its cells where it finds novelties."""
    target = config.target(observed_of(model))
    kind, arrays = model.calibration or ("", {})
    if isinstance(target, Novelty) != (kind == novelty.KIND):
        raise Unsound("/calibration does not fit the method")
    if not isinstance(target, Novelty):
        return target
    check("/calibration", THRESHOLD_PIECES, arrays, {"cells": model.n_cells})
    return replace(target, thresholds=arrays["threshold"])


def coverage_of(model: Model) -> Coverage | None:
    """What makes intervals or sets of labels of a model's answers; None where it has none."""
    if (model.coverage is None) != (model.config.get("coverage") is None):
        raise Unsound("/coverage is not what the option coverage says")
    if model.coverage is None:
        return None
    kind, arrays = model.coverage
    arrays = {"shrink": np.ones(1)} | arrays  # which a model without a learning curve has not
    if kind != KIND:
        raise Unsound(f"/coverage@kind: no coverage of ours is called {kind!r}")
    check("/coverage", COVERAGE_PIECES, arrays, {})
    if not len(arrays["levels"]) or np.any(np.diff(arrays["levels"]) <= 0):
        raise Unsound("/coverage/levels do not ascend")
    return Coverage.from_state(arrays)


def copies_of(model: Model, target: Target) -> Copies | None:
    """Labels that copies of training rows get; None where the model answers for them, too."""
    if model.copies is None:
        return None
    kind, arrays = model.copies
    if kind != COPIES or not isinstance(target, Classification):
        raise Unsound(f"/copies@kind: {kind!r} is nothing that copies get from such a model")
    check("/copies", COPIES_PIECES, arrays, {"classes": len(target.labels)})
    if np.any(arrays["signatures"][1:] <= arrays["signatures"][:-1]):
        raise Unsound("/copies/signatures do not ascend")
    return Copies.from_state(arrays)


def front_of(model: Model, config: TrainingConfig, target: Target) -> Detected | None:
    """The front of a detection, and what was chosen in training; None for another model."""
    if (model.front is not None) != isinstance(target, Detection):
        raise Unsound("/front is not what the options score and roc say")
    if model.front is None or not isinstance(target, Detection):
        return None
    kind, arrays = model.front
    if kind != FRONT:
        raise Unsound(f"/front@kind: no front of ours is called {kind!r}")
    check("/front", FRONT_PIECES, arrays, {"places": len(Front.places(len(target.weights)))})
    most = arrays["rows"] * (1.0 + 1e-9)
    if (arrays["false_alarms"] > most[0]).any() or (arrays["missed"] > most[1]).any():
        raise Unsound("/front counts more rows than there are")
    try:
        return Detected.of(target, Front.from_state(arrays), config.false_alarm)
    except DataError as error:
        raise Unsound(f"/front: {error.message}") from error


def metrics_of(model: Model) -> list[Metric]:
    """The metric of a checked model, or those of its models where the method learns them; none if it is Euclidean."""
    ranked = 0 if model.ranks is None else len(model.ranks["columns"])
    common = learned_metric(model.metric, model.config, int(model.config["features"]) + ranked)
    method = method_from(dict(model.config["method"]))
    if method.learns_metric:
        return method.metrics(model.column, int(model.row_ptr["model_fold"][-1]))
    return [] if common is None else list(common.parts) if isinstance(common, Joint) else [common]


def features_of(columns: NDArray[Any] | None, config: Mapping[str, Any]) -> NDArray[np.int64]:
    """The numbers (features,) that a data file gives to the features of a checked file."""
    known = np.arange(config["features"]) if columns is None else columns
    return np.asarray(known + (0 if config.get("zero_based") else 1), np.int64)


def _check_report(report: tuple[str, dict[str, NDArray[Any]]], n_cells: int, classes: int) -> None:
    names = parse("/report@names", report[0], list)
    if not all(isinstance(name, str) and name.isidentifier() for name in names):
        raise Unsound("/report@names are no names of parameters")
    pieces = {"chosen": floats64("cells", len(names), nan=True), "support": Piece("i8", ("cells", "classes"), low=0)}
    expected = {name: piece for name, piece in pieces.items() if name == "chosen" or name in report[1]}
    check("/report", expected, report[1], {"cells": n_cells, "classes": classes})


def check_partition(file: PartitionFile, head: Head, mapped: int) -> None:
    """Raise Unsound unless a partition file gives training cells to all rows.

    mapped: columns of the rows after the metric.
    """
    rows = head.rows
    if file.columns is not None and not np.array_equal(file.columns, head.columns.known):
        raise Unsound("/columns are not those of the data")
    pieces = {
        "assignment": Piece(file.assignment.dtype.str, ("rows",), low=-1, below="cells"),
        "weight": floats64("rows", low=0, high=rows),
        "sizes": Piece("i8", ("cells",), least=1, low=1),
    }
    arrays: dict[str, NDArray[Any]] = {name: getattr(file, name) for name in pieces}
    if file.centres is not None:
        pieces["centres"], arrays["centres"] = floats32("cells", "features"), file.centres
    if file.assignment.dtype not in (np.int32, np.int64):
        raise Unsound(f"/assignment is of {file.assignment.dtype}")
    check("", pieces, arrays, {"rows": rows, "features": mapped})
    inside = file.assignment >= 0
    if not np.array_equal(np.bincount(file.assignment[inside], minlength=len(file.sizes)), file.sizes):
        raise Unsound("/sizes are not those of /assignment")
    if np.any((file.weight >= 1) != inside) or np.any(file.weight % 1) or file.weight.sum() != rows:
        raise Unsound("/weight does not count every row once")
