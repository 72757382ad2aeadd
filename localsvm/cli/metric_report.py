"""Texts on a metric: how it was chosen, and how much each feature weighs in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localsvm.store.model import Model

SHOWN = 10  # weights, unless all are asked for


def metric_text(learned: Mapping[str, Any]) -> str:
    """Text on how a metric was chosen.

    learned : the option `learned` of a model's config, or the report of a `runs.preparation.metric.Measured`.
    """
    text = _choice_text(learned) if "best" in learned else str(learned["name"])
    return f"{text}; {learned['note']}" if "note" in learned else text


def _choice_text(learned: Mapping[str, Any]) -> str:
    name = learned["name"]
    if learned["best"] == "none":
        return f"auto: none ({learned.get('why', 'too few rows to try one')})"
    if name == "none":
        return f"auto: none (a learned one, {learned['best']}, was tried and is not better)"
    without, error = (f"{100 * value:.3g}" for value in learned["error"])
    return f"auto: {name}; {error} % errors on held-out rows, {without} % with Euclidean distances"


def weights_of(model: Model) -> dict[str, Any] | None:
    """The metric of a checked model by values that JSON can hold; None for a model without.

    Its features are in descending order of their weights. Where the models have a metric each, the weights are the
    means over these.
    """
    from localsvm.features.encoding import Encoding
    from localsvm.runs.preparation.stored import features_of, metrics_of

    metrics = metrics_of(model)
    if not metrics:
        return None
    metric, numbers = metrics[0], features_of(model.columns, model.config)
    weights = sum((each.importance() for each in metrics[1:]), metric.importance()) / len(metrics)
    order = (-weights).argsort(kind="stable")
    table = model.config.get("table")
    names = None if table is None else Encoding.from_dict(table).names
    pairs = zip(numbers[order].tolist(), weights[order].tolist(), strict=True)
    return {
        "kind": metric.kind,
        "dimensions": metric.rank,
        "metrics": len(metrics),
        "weights": [
            {"feature": feature, "weight": weight} | ({} if names is None else {"name": names[feature - 1]})
            for feature, weight in pairs
        ],
    }


def weights_text(weights: Sequence[Mapping[str, Any]], every: bool) -> list[tuple[str, str]]:
    """Lines of a table: the weights, the largest first; the first SHOWN, or every one."""
    shown = weights if every else weights[:SHOWN]
    names = [item.get("name") or f"feature {item['feature']}" for item in shown]
    lines = [f"{item['weight']:<9.4g} {name}" for item, name in zip(shown, names, strict=True)]
    if len(weights) > len(shown):
        lines.append(f"and {len(weights) - len(shown):,} more: --all")
    return [("" if i else "weights", line) for i, line in enumerate(lines)]
