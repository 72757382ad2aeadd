"""The front of a detection as a table, as text and as a picture; see `targets.detection.Detected.describe`."""

from __future__ import annotations

import csv
import math
import sys
from typing import Any

COLUMNS = ("weight", "false_alarms", "limit", "detected")
APART = 0.04  # of the length of an axis, between points of a picture that have a text


def print_front(detection: dict[str, Any]) -> None:
    """Print the front as CSV on stdout, a line for each weight."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([f"{point[name]:.6g}" for name in COLUMNS] for point in detection["front"])


def front_lines(detection: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Lines of a table about what decides, and how well it does on held-out rows; none without a detection."""
    if not detection:
        return []
    chosen, bound, weights = detection["chosen"], detection["bound"], [p["weight"] for p in detection["front"]]
    where = f"at weight {chosen['weight']:.3g}" if chosen["weight"] else "below the smallest weight"
    asked = "" if bound is None else f" (bound {bound:g})"
    of = f"{len(weights)} weights from {weights[0]:.3g} to {weights[-1]:.3g}; decided {where}{asked}"
    promised = "" if bound is None else f" (at most {chosen['limit']:.2%} with 95% confidence)"
    held_out = f"false alarms {chosen['false_alarms']:.2%}{promised}, detected {chosen['detected']:.2%}"
    return [("detection", of), ("held out", held_out)]


def draw(detection: dict[str, Any], path: str, force: bool = False) -> None:
    """Draw detected rows over false alarms: the weights, the line through them, and what decides."""
    from localsvm.cli.plotting import figure_in

    front, chosen, bound = detection["front"], detection["chosen"], detection["bound"]
    x, y = ([point[name] for point in front] for name in ("false_alarms", "detected"))
    with figure_in(path, force) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="by chance")
        axes.plot([0, *x, 1], [0, *y, 1], color="C0", linewidth=1)
        axes.plot(x, y, "o", color="C0", label="weights of the alarm")
        last = -1.0, -1.0
        for point in front:
            place = point["false_alarms"], point["detected"]
            if math.dist(place, last) > APART:
                axes.annotate(f"{point['weight']:.3g}", place, (6, -4), textcoords="offset points", fontsize="small")
                last = place
        label = f"decides: weight {chosen['weight']:.3g}"
        # markers at the edge of the axes are drawn whole
        axes.plot(
            chosen["false_alarms"], chosen["detected"], "*", markersize=15, color="red", markeredgecolor="white",
            label=label, clip_on=False, zorder=3,
        )  # fmt: skip
        if bound is not None:
            axes.axvline(bound, color="C1", linewidth=1, label=f"bound {bound:g}")
        axes.set(
            xlabel="false alarms, share of held-out rows", ylabel="detected, share of held-out rows", xlim=(0, 1),
            ylim=(0, 1), aspect="equal",
        )  # fmt: skip
        axes.legend(loc="lower right")
