"""Colours of rows in a plane, and of what a model decides there: of classes, and of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from localsvm.cli.reporting import label_text
from localsvm.targets.base import Target
from localsvm.targets.classification import Classification
from localsvm.targets.regression import Regression

MOST_CLASSES = 8  # with a colour of their own
OUTSIDE = 0.5  # per cent of the values beyond each end of their colours
SHADES = 20  # of values, about
Floats = NDArray[np.float64]


class Colours(Protocol):
    """Colours of what rows have, and of what is decided."""

    def rows(self, axes: Any, plane: Floats, y: Floats) -> None:
        """Draw rows (n, 2) that have y (n,)."""

    def surface(self, figure: Any, axes: Any, x: Floats, y: Floats, values: Floats) -> None:
        """Draw decision values (len(y) * len(x), problems) of a lattice."""


def colours_of(target: Target | None, y: Floats) -> Colours:
    """Colours for rows that have y (n,). target : of the model; None for a partition file."""
    if isinstance(target, Regression):
        from matplotlib.ticker import MaxNLocator

        known = y[~np.isnan(y)]
        ends = np.percentile(known, [OUTSIDE, 100.0 - OUTSIDE]) if len(known) else np.zeros(2)
        low, high = ends.tolist() if ends[0] < ends[1] else (target.training.low, target.training.high)
        return _OfValues(target, np.asarray(MaxNLocator(SHADES).tick_values(low, high)))
    classes = target if isinstance(target, Classification) else None
    return _OfClasses(classes, np.unique(y) if classes is None else classes.labels)


@dataclass(frozen=True)
class _OfClasses:
    target: Classification | None
    labels: Floats

    def rows(self, axes: Any, plane: Floats, y: Floats) -> None:
        """Draw rows in the colours of their labels, ascending; the first labels have a colour of their own."""
        coloured = self.labels[:MOST_CLASSES]
        parts = [(y == label, f"C{i}", label_text(float(label))) for i, label in enumerate(coloured)]
        parts.append((~np.isin(y, coloured), "0.5", "others"))
        for part, colour, name in parts:
            if part.any():
                axes.scatter(*plane[part].T, s=9, color=colour, label=name, linewidths=0, zorder=2)

    def surface(self, figure: Any, axes: Any, x: Floats, y: Floats, values: Floats) -> None:
        """Draw the decision values of two classes, or the regions of the labels of more classes.

        Decision values are drawn from -1 to 1, with their zero and their margins, if any.
        """
        from matplotlib.colors import LinearSegmentedColormap

        assert self.target is not None, "a model decides"
        if values.shape[1] == 1:
            height = values[:, 0].reshape(len(y), len(x))
            colours = LinearSegmentedColormap.from_list("classes", ["C0", "white", "C1"])
            levels = np.linspace(-1, 1, 21)
            filled = axes.contourf(x, y, np.clip(height, -1.0, 1.0), levels, cmap=colours, alpha=0.4, zorder=0)
            # the mean of models that vote lies between -1 and 1 and has no margin
            lines = ((-1.0, "--"), (0.0, "-"), (1.0, "--"))
            styles = {v: style for v, style in lines if height.min() < v < height.max()}
            if styles:
                axes.contour(x, y, height, list(styles), colors="0.2", linestyles=list(styles.values()), linewidths=0.9)
            figure.colorbar(filled, ax=axes, label="decision value", ticks=[-1, 0, 1])
            return
        labels = self.labels.searchsorted(self.target.decide(values)).reshape(len(y), len(x))
        regions = [f"C{i}" if i < MOST_CLASSES else "0.5" for i in range(len(self.labels))]
        axes.contourf(x, y, labels, np.arange(len(regions) + 1) - 0.5, colors=regions, alpha=0.25, zorder=0)


@dataclass(frozen=True)
class _OfValues:
    """Shades between levels, ascending, of rows and of predictions alike."""

    target: Regression
    levels: Floats

    def rows(self, axes: Any, plane: Floats, y: Floats) -> None:
        """Draw rows in the shades of their values; those without one grey."""
        known = ~np.isnan(y)
        style = {"s": 14, "edgecolors": "white", "linewidths": 0.4, "zorder": 2}
        axes.scatter(*plane[known].T, c=y[known], cmap="viridis", vmin=self.levels[0], vmax=self.levels[-1], **style)
        if not known.all():
            axes.scatter(*plane[~known].T, color="0.5", label="no value", **style)

    def surface(self, figure: Any, axes: Any, x: Floats, y: Floats, values: Floats) -> None:
        """Draw the predicted values; of several levels those of the level nearest to 0.5."""
        answers = self.target.decide(values).reshape(len(y), len(x), -1)[:, :, self.target.middle]
        filled = axes.contourf(x, y, answers, self.levels, cmap="viridis", extend="both", zorder=0)
        level = self.target.losses[self.target.middle].level
        what = f"predicted value at level {level:g}" if self.target.answers > 1 else "predicted value"
        figure.colorbar(filled, ax=axes, label=f"{what}; points: value of a row")
