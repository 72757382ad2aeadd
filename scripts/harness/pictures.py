"""The common parts of the pictures of the experiments: colours, axes with plain numbers, one legend for all panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

BLUE, ORANGE, GREEN, RED, PURPLE, GREY = "#3b5ba5", "#e69f00", "#2a9d8f", "#c6403a", "#7b4ea3", "#666666"
GRID = "0.9"


def empty_figure(width: float, height: float) -> Figure:
    """A figure of so many inches."""
    return Figure(figsize=(width, height), layout="constrained")


def measured_ticks(panel: Any, places: Sequence[float]) -> None:
    """A logarithmic x axis with the measured places as ticks, and a grid."""
    panel.set_xscale("log")
    panel.set_xticks(places, [str(place) for place in places])
    panel.xaxis.set_minor_locator(NullLocator())
    panel.grid(color=GRID)


def tick_texts(axis: Any, text: Any) -> None:
    """Let `text` write the numbers of an axis."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def legend_entries(panels: Any) -> dict[str, Any]:
    """The text and the handle of each curve, once for all panels."""
    return {text: handle for p in panels for handle, text in zip(*p.get_legend_handles_labels(), strict=True)}


def legend_below(figure: Figure, entries: dict[str, Any], columns: int, **more: Any) -> None:
    """One legend under all panels."""
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns, **more)
