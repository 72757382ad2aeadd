"""Texts on a metric: how it was chosen, and how much each feature weighs in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localsvm.features.encoding import Encoding
    from localsvm.representations.metric import Geometry
    from localsvm.store.model import Model

SHOWN = 10  # weights, unless all are asked for
MEASURES = {
    "euclidean": "Euclidean distance",
    "manhattan": "Manhattan distance",
    "laplacian": "Euclidean distance, Laplacian kernel",
}


def geometry_text(learned: Mapping[str, Any]) -> str:
    """Text on what rows are measured by, and how that was chosen.

    learned : the option `learned` of a model's config, or the report of a `runs.preparation.measured.Measured`.
    """
    text = _choice_text(learned) if "best" in learned else str(learned["name"])
    return f"{text}; {learned['note']}" if "note" in learned else text


def _choice_text(learned: Mapping[str, Any]) -> str:
    from localsvm.representations.metric import Geometry

    name, best = learned["name"], learned["best"]
    chosen = _words(Geometry.named(name))
    if best == "none":
        return f"{chosen} ({learned.get('why', 'too few rows to try another')})"
    if name != best:
        return f"{chosen} (nothing else was clearly better{' by itself' if 'members' in learned else ''})"
    if "score" in learned:
        before, after = (f"{value:.4g}" for value in learned["error"])
        score = {"rmse": "RMSE", "root-rmse": "RMSE of square roots", "pinball": "mean pinball loss"}[learned["score"]]
        return f"{chosen} ({score} on fresh rows {before} -> {after})"
    before, after = (f"{100 * value:.3g}" for value in learned["error"])
    return f"{chosen} (error on fresh rows {before} -> {after} %)"


def members_text(learned: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Lines of a table: the geometries of members, with their weights in the mean; none for a single geometry.

    learned : as of `geometry_text`, None where no metric was asked for.
    """
    from localsvm.representations.metric import Geometry

    labels = (learned or {}).get("members", [])
    count = len(labels)
    weights = (learned or {}).get("weights") or [1 / max(1, count)] * count
    shares = [sum(weights[i::count]) for i in range(count)]  # repeats have the geometries in turn
    lines = [f"{share:.2f} {_words(Geometry.named(label))}" for label, share in zip(labels, shares, strict=True)]
    return [("" if i else "members", line) for i, line in enumerate(lines)]


def _words(geometry: Geometry) -> str:
    strength = "" if geometry.strength == 1 else f" to the power {geometry.strength:g}"
    learned = {"diag": f"learned weights{strength}", "full": "learned matrix"}.get(geometry.form)
    parts = [MEASURES[geometry.distance], "rank view" if geometry.ranks else None, learned]
    return ", ".join(part for part in parts if part)


def weights_of(model: Model) -> dict[str, Any] | None:
    """The metric of a checked model by values that JSON can hold; None for a model without.

    Its features are in descending order of their weights. Where the models have a metric each, the weights are the
    means over these.
    """
    from localsvm.features.encoding import Encoding
    from localsvm.features.metric import mean_importance
    from localsvm.runs.preparation.stored import features_of, metrics_of

    metrics = metrics_of(model)
    if not metrics:
        return None
    metric, numbers = metrics[0], features_of(model.columns, model.config)
    weights = mean_importance(metrics)
    table = model.config.get("table")
    encoding = None if table is None else Encoding.from_dict(table)
    ranked: Any = [] if model.ranks is None else model.ranks["columns"]
    return {
        "kind": metric.kind,
        "dimensions": metric.rank,
        "metrics": len(metrics),
        "weights": sorted(named_weights(numbers, ranked, weights, encoding), key=lambda item: -item["weight"]),
    }


def named_weights(numbers: Any, ranked: Any, weights: Any, encoding: Encoding | None) -> list[dict[str, Any]]:
    """Weights of the features and of their ranks: of each the feature's number, the weight, and a name.

    Parameters
    ----------
    numbers : (d,) the numbers of the features in data files; of a table, from 1.
    ranked : (r,) places among them of those that have ranks.
    weights : (d + r,)
    encoding : of a table, whose names features have then; of a column of few levels, the root mean square is told. None
        for features without names.
    """
    d = len(numbers)
    named = _of_features(numbers, weights[:d], encoding)
    named += [
        {**item, "ranks": True, "name": f"ranks of {item.get('name') or _feature(item)}"}
        for item in _of_features(numbers[ranked], weights[d:], encoding)
    ]
    return named


def _of_features(numbers: Any, weights: Any, encoding: Encoding | None) -> list[dict[str, Any]]:
    of = dict(zip(numbers.tolist(), weights.tolist(), strict=True))
    if encoding is None:
        return [{"feature": number, "weight": weight} for number, weight in of.items()]
    named = []
    for name, places in encoding.weighed:
        known = [of[place + 1] for place in places if place + 1 in of]
        if known:
            weight = (sum(weight * weight for weight in known) / len(known)) ** 0.5
            named.append({"feature": places[0] + 1, "weight": weight, "name": name})
    return named


def _feature(item: Mapping[str, Any]) -> str:
    return f"feature {item['feature']}"


def weights_text(weights: Sequence[Mapping[str, Any]], every: bool) -> list[tuple[str, str]]:
    """Lines of a table: the weights, the largest first; the first SHOWN, or every one."""
    shown = weights if every else weights[:SHOWN]
    names = [item.get("name") or _feature(item) for item in shown]
    lines = [f"{item['weight']:<9.4g} {name}" for item, name in zip(shown, names, strict=True)]
    if len(weights) > len(shown):
        lines.append(f"and {len(weights) - len(shown):,} more: --all")
    return [("" if i else "weights", line) for i, line in enumerate(lines)]
