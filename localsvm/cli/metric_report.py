"""Texts on a metric: how it was chosen, and how much each feature weighs in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localsvm.features.encoding import Encoding
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
    return f"auto: {name}; {error} % errors on held-out rows, {without} % without it"


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
    table = model.config.get("table")
    if table is None:
        items = [{"feature": number, "weight": w} for number, w in zip(numbers.tolist(), weights.tolist(), strict=True)]
    else:
        weighed = named_weights(Encoding.from_dict(table), numbers - 1, weights)
        items = [{"feature": number + 1, "weight": weight, "name": name} for name, number, weight in weighed]
    return {
        "kind": metric.kind,
        "dimensions": metric.rank,
        "metrics": len(metrics),
        "weights": sorted(items, key=lambda item: -item["weight"]),
    }


def named_weights(encoding: Encoding, columns: Any, weights: Any) -> list[tuple[str, int, float]]:
    """Weights of a table by name: of a column of few levels the root mean square; with the first feature of each.

    columns, weights : (d,) numbers of the features that a metric has, from 0, and their weights.
    """
    of = dict(zip(columns.tolist(), weights.tolist(), strict=True))
    named = []
    for name, numbers in encoding.weighed:
        known = [of[number] for number in numbers if number in of]
        if known:
            named.append((name, numbers[0], (sum(weight * weight for weight in known) / len(known)) ** 0.5))
    return named


def weights_text(weights: Sequence[Mapping[str, Any]], every: bool) -> list[tuple[str, str]]:
    """Lines of a table: the weights, the largest first; the first SHOWN, or every one."""
    shown = weights if every else weights[:SHOWN]
    names = [item.get("name") or f"feature {item['feature']}" for item in shown]
    lines = [f"{item['weight']:<9.4g} {name}" for item, name in zip(shown, names, strict=True)]
    if len(weights) > len(shown):
        lines.append(f"and {len(weights) - len(shown):,} more: --all")
    return [("" if i else "weights", line) for i, line in enumerate(lines)]
