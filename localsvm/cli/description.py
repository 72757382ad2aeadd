"""The values and the text that `lsvm inspect` prints of a model."""

from __future__ import annotations

import json
import math
import os
from typing import TYPE_CHECKING, Any

from localsvm.cli.front import front_lines
from localsvm.cli.metric_report import geometry_text, members_text, weights_of, weights_text
from localsvm.cli.reporting import (
    calibration_text,
    features_text,
    labels_text,
    names_of,
    repeated_text,
    spread,
    spread_text,
    table_text,
    values_text,
)

if TYPE_CHECKING:
    from localsvm.store.model import Model
    from localsvm.targets.detection import Detected


def describe(model: Model, detected: Detected | None = None) -> dict[str, Any]:
    """Describe a model by values that JSON can hold; "models" is None for methods without a table of models.

    detected : its front, where it has one.
    """
    from localsvm.targets.probabilities import KIND, Calibration

    kind, arrays = model.calibration or ("", {})
    return {
        "file": os.fspath(model.path),
        "bytes": os.path.getsize(model.path),
        **model.header,
        "config": model.config,
        "labels": model.labels.tolist(),
        "scaling": model.scaling[0],
        "ranks": None if model.ranks is None else len(model.ranks["columns"]),
        "metric": weights_of(model),
        "partition": model.partition[0],
        "repeats": model.config.get("repeats", 1),
        "coarse_cells": _coarse_cells(model),
        "cells": model.n_cells,
        "select": _select(model),
        "models": _models(model) if "model_fold" in model.row_ptr else None,
        "calibration": Calibration.from_state(arrays).describe() if kind == KIND else None,
        "copies": None if model.copies is None else len(model.copies[1]["signatures"]),
        "detection": None if detected is None else detected.describe(),
        "thresholds": spread(arrays["threshold"].tolist()) if "threshold" in arrays else None,
    }


def _coarse_cells(model: Model) -> int | None:
    """Number of coarse cells; None where the rows were divided at once."""
    from localsvm.partition.two_step import POINTER

    pointers = [array for name, array in model.partition[1].items() if name.rpartition("/")[2] == POINTER]
    return sum(len(pointer) - 1 for pointer in pointers) if pointers else None


def _select(model: Model) -> str:
    """Selection of the models: "refit" where only whole cells have a model, whatever --select says."""
    from localsvm.methods.base import WHOLE

    if "model_fold" in model.row_ptr and (model.column("model_fold") == WHOLE).all():
        return "refit"
    return str(model.config["select"])


def _models(model: Model) -> dict[str, Any]:
    from localsvm.methods import method_from

    report: dict[str, Any] = {"models": int(model.row_ptr["model_fold"][-1]), "not_converged": 0}
    if "model_converged" in model.row_ptr:
        report["not_converged"] = int((model.column("model_converged") == 0).sum())
    if "model_gap" in model.row_ptr:
        unit = method_from(dict(model.config["method"])).gap_unit
        report |= {"largest_gap": float(model.column("model_gap").max(initial=0.0)), "gap_unit": unit}
    support = next((name for name in ("support", "support_indptr") if name in model.row_ptr), None)
    if support is not None:
        rows = _rows(model, support) - (support == "support_indptr")
        report |= {"support_vectors": int(rows.sum()), "support_vectors_by_cell": spread(rows.tolist())}
    report |= {what: spread(_rows(model, what).tolist()) for what in ("centres", "landmarks") if what in model.row_ptr}
    if "clusters" in model.row_ptr and len(clusters := model.column("clusters")):  # pairs have their own
        report["centres"] = spread(clusters.tolist())
    chosen = {"gamma": "model_gamma", "cost": "model_cost", "lambda": "lambda"}
    values = {name: model.column(column) for name, column in chosen.items() if column in model.row_ptr}
    # 0: of a class that its cell does not have, nothing was chosen
    report |= {name: spread(kept.tolist()) for name, of in values.items() if len(kept := of[of != 0.0])}
    report |= {"answers": answers} if (answers := _answers(model)) else {}
    chosen_values = _chosen(model)
    return report | {name: chosen_values[name] for name in chosen if name in chosen_values} | {"chosen": chosen_values}


def _answers(model: Model) -> list[dict[str, Any]]:
    """Spreads of what was chosen for each answer of a model of values; nothing where all have one point."""
    from localsvm.methods import method_from

    losses = method_from(dict(model.config["method"])).value_losses
    names = ["value"] if len(losses) == 1 else [f"level {loss.level:g}" for loss in losses]
    names += ["lower end", "upper end"] if losses and model.config.get("coverage") else []
    if len(names) < 2 or "model_problem" not in model.row_ptr:
        return []
    problem, columns = model.column("model_problem"), {"gamma": "model_gamma", "cost": "model_cost"}
    known = {name: model.column(column) for name, column in columns.items() if column in model.row_ptr}
    return [
        {"name": name, **{of: spread(values[problem == p].tolist()) for of, values in known.items()}}
        for p, name in enumerate(names)
    ]


def _chosen(model: Model) -> dict[str, Any]:
    """Spread of the values that the cells chose, by the names of the parameters."""
    if model.report is None or "chosen" not in model.report[1]:
        return {}
    columns = dict(zip(json.loads(model.report[0]), model.report[1]["chosen"].T.tolist(), strict=True))
    return {name: spread(values) for name, values in columns.items() if all(map(math.isfinite, values))}


def _rows(model: Model, column: str) -> Any:
    return model.row_ptr[column][1:] - model.row_ptr[column][:-1]


def description_text(facts: dict[str, Any], every: bool = False) -> str:
    """Table of a description for people. every: whether to list the weights of all features."""
    config, models = facts["config"], facts["models"]
    method = {key: value for key, value in config["method"].items() if value not in ([], ())}
    weights = (
        f", scored by {'TPR x TNR' if config['scoring'] == 'tpr-tnr' else config['scoring']}"
        if config.get("scoring")
        else ""
    )
    weights += ", rows weighted" if config.get("weighted") else ""
    weights += "".join(f", weight {weight:g} for {label:g}" for label, weight in config["class_weights"])
    from_0 = " with indices from 0" if config.get("zero_based") else ""
    ranks = "" if facts["ranks"] is None else f", ranks of {facts['ranks']:,}"
    created = f", {facts['created']}" if facts["created"] else ""
    lines = [
        ("file", f"{facts['file']}, {facts['bytes']:,} bytes, checksums agree"),
        ("format", f"{facts['format']} {facts['format_version']}, by {facts['generator']}{created}"),
        ("method", f"{method.pop('name')}: " + ", ".join(f"{key} {_text(value)}" for key, value in method.items())),
        ("selection", f"{_selection(facts, config)}, seed {config['seed']}{weights}"),
        (
            "features",
            f"{features_text(config['features'], config.get('width'))}{from_0}, scaling {facts['scaling']}{ranks}",
        ),
        *_metric(facts, every),
        ("labels", _labels(facts, config)),
        ("partition", _partition(facts, config)),
    ]
    if facts["calibration"]:
        lines.append(("probabilities", calibration_text(facts["calibration"])))
    if facts["copies"]:
        lines.append(("copies", f"get the labels of {facts['copies']:,} different training rows"))
    lines += front_lines(facts["detection"])
    if facts["thresholds"]:
        lines.append(("thresholds", f"{spread_text(facts['thresholds'])}, up to which rows are novel"))
    return table_text(lines + (_model_lines(models) if models else []))


def _labels(facts: dict[str, Any], config: dict[str, Any]) -> str:
    """Text on what is predicted."""
    if "values" in config:
        return values_text(config["values"])
    if facts["thresholds"]:
        return "of one kind"
    several = f", {config['multiclass']}" if len(facts["labels"]) > 2 else ""
    return labels_text(facts["labels"], name=names_of(facts["labels"], config.get("classes"))) + several


def _selection(facts: dict[str, Any], config: dict[str, Any]) -> str:
    """Text on how the parameters were chosen.

    A list in the options of the method holds the values to choose from; an empty one stands for the default grid.
    """
    lists = [value for value in config["method"].values() if isinstance(value, (list, tuple))]
    if all(len(values) == 1 for values in lists):
        copies = "labels of copies" if facts["copies"] else ""
        members = "weights of the members" if members_text(config.get("learned")) else copies
        what = "probabilities" if facts["calibration"] else "thresholds" if facts["thresholds"] else members
        return "none (one point)" + (f", {config['folds']} folds for the {what}" if what else "")
    return f"{config['folds']} folds, {config['grid']} grid, {facts['select']}"


def _metric(facts: dict[str, Any], every: bool) -> list[tuple[str, str]]:
    learned, metric = facts["config"].get("learned"), facts["metric"]
    lines = [("geometry", geometry_text(learned)), *members_text(learned)] if learned else []
    if metric and metric["metrics"] > 1:
        whose = "members" if members_text(learned) else "problems, folds or cells"
        lines.append(("metric", f"{metric['metrics']:,}, of {whose}; the weights are their means"))
    return lines + (weights_text(metric["weights"], every) if metric else [])


def _model_lines(models: dict[str, Any]) -> list[tuple[str, str]]:
    converged = f"{models['not_converged']:,} not converged" if models["not_converged"] else "all converged"
    gap = f", largest gap {models['largest_gap']:.2g} {models['gap_unit']}" if "largest_gap" in models else ""
    lines = [("models", f"{models['models']:,}, {converged}{gap}")]
    if "support_vectors" in models:
        by_cell = spread_text(models["support_vectors_by_cell"])
        lines.append(("support", f"{models['support_vectors']:,}, by cell {by_cell}"))
    named = {"centres": "centres", "landmarks": "landmarks", "gamma": "gamma", "lambda": "lambda", "cost": "C"}
    answers = models.get("answers", [])  # which have points of their own
    for each in answers:
        chosen = [f"{named[name]} {spread_text(values)}" for name, values in each.items() if name != "name"]
        lines.append((each["name"], "; ".join(chosen)))
    together = [name for name in named if name in models and not (answers and name in answers[0])]
    lines += [(named[name], spread_text(models[name])) for name in together]
    counted = {"clusters": "centres", "landmarks_count": "landmarks"}
    more = {name: values for name, values in models["chosen"].items() if counted.get(name, name) not in models}
    return lines + [(name, spread_text(values)) for name, values in more.items()]


def _partition(facts: dict[str, Any], config: dict[str, Any]) -> str:
    """Text on the partition, the number of cells, and the largest size of a cell where that has a limit."""
    coarse, cells = facts["coarse_cells"], facts["cells"]
    if facts["partition"] == "none" and coarse is None and cells == 1:
        return "none, 1 cell"
    most = "" if facts["partition"] == "none" else f" (at most {config['cell_size']:,} rows each)"
    within = "" if coarse is None else f" in {coarse:,} coarse ones (about {config['coarse_size']:,} rows each)"
    return f"{repeated_text(facts['partition'], facts['repeats'])}, {cells:,} cells{most}{within}"


def _text(value: Any) -> str:
    return " ".join(f"{v:g}" for v in value) if isinstance(value, list) else str(value).lower()
