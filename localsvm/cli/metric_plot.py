"""Pictures of a metric: its weights by feature, and for one onto a plane this plane beside that of PCA."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localsvm.cli import plotting
from localsvm.cli.metric_report import named_weights
from localsvm.cli.reporting import label_text
from localsvm.errors import OptionError

if TYPE_CHECKING:
    from localsvm.runs.prediction.picture import Shown

MOST_BARS, MOST_ROWS = 30, 2000
MOST_CHARACTERS = 70  # of the names below the bars, side by side
MOST_CLASSES = 8  # with a colour of their own
GRID = 200  # points of the decision surface along each axis
OUTSIDE, MARGIN = 0.5, 0.08  # per cent of the rows beyond each side of a plane; and room, as a share of the side
Floats = NDArray[np.float64]


def weights(shown: Shown, path: str, force: bool) -> None:
    """Draw the weights of the features, the largest first, MOST_BARS at most."""
    named = named_weights(shown.numbers, shown.ranked, shown.metric.importance(), shown.encoding)
    names = [item.get("name") or str(item["feature"]) for item in named]
    importance = np.asarray([item["weight"] for item in named])
    order = np.argsort(-importance, kind="stable")[:MOST_BARS]
    wide = sum(len(names[i]) for i in order) > MOST_CHARACTERS
    with plotting.figure_in(path, force) as figure:
        axes = figure.subplots()
        axes.bar(np.arange(len(order)), importance[order], color="C0")
        small = {"fontsize": "small"} if len(order) > 15 else {}
        turned = {"rotation": 90} if wide else {}
        axes.set_xticks(np.arange(len(order)), [names[i] for i in order], **small, **turned)
        axes.set(xlabel="feature", ylabel="weight in the metric")
        if len(order) < len(importance):
            axes.set_title(f"the largest {len(order)} of {len(importance):,} features")


def planes(shown: Shown, data: str, path: str, force: bool) -> None:
    """Draw rows of a data file in the plane of the metric, and on the two leading principal axes of these rows.

    At most MOST_ROWS rows are drawn. The plane of the metric also has support vectors and decision values, if known.
    Raises OptionError for a metric onto other than 2 dimensions, and what reading raises.
    """
    from localsvm.runs.prediction.picture import principal_plane, sampled

    if shown.metric.rank != 2:
        raise OptionError(
            f"--data draws the plane of a metric onto 2 dimensions, and this one has {shown.metric.rank}; learn one "
            "by --metric rank:2 (of svml by --form rank:2)"
        )
    X, y = sampled(shown.rows(data), MOST_ROWS, np.random.default_rng(0))
    Z = np.asarray(shown.metric.apply(X), np.float64)
    pca, share = principal_plane(X)
    labels = np.unique(y) if shown.target is None else shown.target.labels
    with plotting.figure_in(path, force) as figure:
        figure.set_size_inches(11.0, 5.2)
        learned, principal = figure.subplots(1, 2)
        _frame(learned, Z)
        if shown.decide is not None:
            _surface(figure, learned, shown)
        _rows(learned, Z, y, labels)
        if shown.support is not None:
            style = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.6, "s": 34}
            learned.scatter(*shown.support.T, **style, label="support vectors", zorder=1)
        learned.set(
            title="the learned plane" + _beyond(learned, Z), xlabel="first dimension", ylabel="second dimension"
        )
        learned.legend(loc="best", fontsize="small")
        _frame(principal, pca)
        _rows(principal, pca, y, labels)
        axis = "principal axis {}, {:.0%} of the variance"
        principal.set(
            title="the plane of PCA" + _beyond(principal, pca),
            xlabel=axis.format(1, float(share[0])),
            ylabel=axis.format(2, float(share[1])),
        )
        principal.legend(loc="best", fontsize="small")


def _frame(axes: Any, plane: Floats) -> None:
    """Set limits that a few rows far away do not stretch, of one scale, since distances are what the plane shows."""
    low, high = np.percentile(plane, [OUTSIDE, 100.0 - OUTSIDE], axis=0)
    centre, half = (low + high) / 2, (0.5 + MARGIN) * np.max(high - low)
    half = max(half, 1e-3 * np.max(np.abs(centre))) or 1.0  # rows in one point
    axes.set(xlim=(centre[0] - half, centre[0] + half), ylim=(centre[1] - half, centre[1] + half))
    axes.set_box_aspect(1.0)


def _beyond(axes: Any, plane: Floats) -> str:
    """Part of a title: the number of rows outside the limits."""
    low, high = np.transpose([axes.get_xlim(), axes.get_ylim()])
    outside = int(np.sum(np.any((plane < low) | (plane > high), axis=1)))
    return f"; {outside:,} of {len(plane):,} rows are outside" if outside else ""


def _rows(axes: Any, plane: Floats, y: Floats, labels: Floats) -> None:
    """Draw rows in the colours of their labels, ascending; the first labels have a colour of their own."""
    coloured = labels[:MOST_CLASSES]
    parts = [(y == label, f"C{i}", label_text(float(label))) for i, label in enumerate(coloured)]
    parts.append((~np.isin(y, coloured), "0.5", "others"))
    for part, colour, name in parts:
        if part.any():
            axes.scatter(*plane[part].T, s=9, color=colour, label=name, linewidths=0, zorder=2)


def _surface(figure: Any, axes: Any, shown: Shown) -> None:
    """Draw the decision values of two classes, or the regions of the labels of more classes.

    Decision values are drawn from -1 to 1, with their zero and their margins, if any.
    """
    from matplotlib.colors import LinearSegmentedColormap

    assert shown.decide is not None and shown.target is not None
    x, y = (np.linspace(low, high, GRID) for low, high in (axes.get_xlim(), axes.get_ylim()))
    points = np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1).astype(np.float32)
    values = shown.decide(points)
    if values.shape[1] == 1:
        height = values[:, 0].reshape(GRID, GRID)
        colours = LinearSegmentedColormap.from_list("classes", ["C0", "white", "C1"])
        levels = np.linspace(-1, 1, 21)
        filled = axes.contourf(x, y, np.clip(height, -1.0, 1.0), levels, cmap=colours, alpha=0.4, zorder=0)
        # the mean of models that vote lies between -1 and 1 and has no margin
        styles = {v: style for v, style in ((-1.0, "--"), (0.0, "-"), (1.0, "--")) if height.min() < v < height.max()}
        if styles:
            axes.contour(x, y, height, list(styles), colors="0.2", linestyles=list(styles.values()), linewidths=0.9)
        figure.colorbar(filled, ax=axes, label="decision value", ticks=[-1, 0, 1])
        return
    labels = shown.target.labels.searchsorted(shown.target.decide(values)).reshape(GRID, GRID)
    regions = [f"C{i}" if i < MOST_CLASSES else "0.5" for i in range(len(shown.target.labels))]
    axes.contourf(x, y, labels, np.arange(len(regions) + 1) - 0.5, colors=regions, alpha=0.25, zorder=0)
