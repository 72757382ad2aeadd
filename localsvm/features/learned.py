"""Record that a file has of its metric: how it was chosen, and whether that fits the metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.features.joint import JOINT, Joint
from localsvm.features.metric import MATRIX, WEIGHTS, Metric
from localsvm.partition.members import Members
from localsvm.representations.metric import EUCLIDEAN, METRICS, RANK, Geometry, check_metric
from localsvm.store.options import check_options
from localsvm.store.pieces import Unsound

UNTRIED = ("one class", "too many columns to try one", "too many classes to try one")  # not even by auto
TESTED = ("loss", "error", "z", "bound")
LEARNED = {"name": "str"}  # what the option `learned` says, ...
CHOICE = {"best": "str", "why": "str"} | dict.fromkeys(TESTED, "tuple[float, ...]")  # ... and of a choice, ...
VALUES = {"score": "str", "root": "tuple[float, ...]"}  # ... of values, what the error is; mean and deviation of roots
MEMBERS = {"members": "tuple[str, ...]", "weights": "tuple[float, ...]"}  # ... of members with geometries of their own
# what earlier versions wrote as well: the data that it was learned from, and which of their rows; it is passed over
EARLIER = {"fingerprint", "rows", "taken", "key"}
EARLIER_ARRAY = "fresh"

State = tuple[str, Mapping[str, NDArray[Any]]]


def about_metric(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """Record of a config of how the metric was chosen; None where none was asked for. Unsound for no such record."""
    learned = config.get("learned")
    if not isinstance(learned, dict | None):
        raise Unsound("/@config: the option learned is no dict")
    return None if learned is None else {name: learned[name] for name in learned if name not in EARLIER}


def metric_arrays(state: State) -> dict[str, NDArray[Any]]:
    """The arrays of a metric."""
    return {name: array for name, array in state[1].items() if name != EARLIER_ARRAY}


def members_of(metric: Metric | Joint | None, record: Mapping[str, Any] | None) -> Members | None:
    """Members with different geometries, of a checked record; None where all have the same."""
    if not isinstance(metric, Joint) or record is None:
        return None
    return Members(tuple(Geometry.named(label).distance for label in record["members"]), metric.width)


def learned_metric(state: State | None, config: Mapping[str, Any], features: int) -> Metric | Joint | None:
    """The metric of a file, for so many features; Unsound if it does not fit, or is not what the config says of it.

    state : its kind and arrays.
    """
    asked, record = config.get("metric", EUCLIDEAN), about_metric(config)
    name = None if record is None else _check_record(record, asked)
    if (record is None) != (asked == EUCLIDEAN):
        raise Unsound("/@config: the option metric does not fit the option learned")
    if record is not None and "members" in record:
        if state is None or state[0] != JOINT:
            raise Unsound("/metric is not of several members")
        forms = [Geometry.named(label).form for label in record["members"]]
        return Joint.from_state([MATRIX if form == "full" else WEIGHTS for form in forms], state[1], features)
    if (state is None) != (name in (None, "")):
        raise Unsound("/metric is not what the option learned says")
    if state is None:
        return None
    metric = Metric.from_state(state[0], metric_arrays(state), features)
    expected = {"diag": WEIGHTS}.get(str(name), MATRIX), check_metric(str(name)) or features
    if (metric.kind, metric.rank) != expected:
        raise Unsound(f"/metric is not of the kind {name}")
    return metric


def _check_record(record: dict[str, Any], asked: Any) -> str:
    """The form of the metric, "" for none; Unsound unless it was learned as the option `metric` asked for."""
    kinds = LEARNED | (CHOICE | MEMBERS | VALUES if "best" in record else {})
    check_options("/@config learned", record, kinds, {"why", *MEMBERS, *VALUES})
    name, best = record["name"], record.get("best")
    if best is None:
        if name != asked or name in ("auto", EUCLIDEAN) or not (name in METRICS or RANK.fullmatch(name)):
            raise Unsound("/@config: the option metric does not fit the option learned")
        return str(name)
    chosen = Geometry.of(name)
    if asked != "auto" or chosen is None or Geometry.of(best) is None or (name != best and chosen.form):
        raise Unsound("/@config: the option learned is no choice of a metric")
    if any(len(record[each]) != (0 if best == EUCLIDEAN else 2) for each in TESTED):
        raise Unsound("/@config: the option learned has not two values for each test")
    _check_members(record)
    root = record.get("root", (0.0, 1.0))
    if len(root) != 2 or not (np.isfinite(root).all() and root[1] > 0.0):
        raise Unsound("/@config: the option learned has no mean and deviation of roots")
    if "why" in record and (best != EUCLIDEAN or record["why"] not in UNTRIED):
        raise Unsound("/@config: the option learned has no reason of ours")
    return chosen.form


def _check_members(record: dict[str, Any]) -> None:
    """Raise Unsound unless members have two geometries at least, the chosen one first, and weights whose sum is 1."""
    members, weights = record.get("members"), record.get("weights")
    sound = members is None or (len(members) > 1 and members[0] == record["name"])
    sound = sound and all(Geometry.of(label) is not None for label in members or ())
    if weights is not None:
        sound = sound and members is not None and min(weights, default=-1) >= 0 and abs(sum(weights) - 1) < 1e-9
    if not sound:
        raise Unsound("/@config: the option learned has no sound members")
