"""Pictures of a metric: its weights by feature, and one onto a plane; and of what a model of two features decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localsvm.cli import plotting
from localsvm.cli.metric_report import named_weights
from localsvm.cli.plane_colours import colours_of
from localsvm.errors import OptionError
from localsvm.features.joint import Joint

if TYPE_CHECKING:
    from collections.abc import Callable

    from localsvm.cli.plane_colours import Colours
    from localsvm.runs.prediction.picture import FeaturePlane, Shown

MOST_BARS, MOST_ROWS = 30, 2000
MOST_CHARACTERS = 80  # below the bars, side by side
GRID = 200  # points of the decision surface along each axis
OUTSIDE, MARGIN = 0.5, 0.08  # per cent of the rows beyond each side of a plane; and room, as a share of the side
Floats = NDArray[np.float64]


def weights(shown: Shown, path: str, force: bool) -> None:
    """Draw the weights of the features, the largest first, MOST_BARS at most; of members the plain mean."""
    named = named_weights(shown.numbers, shown.ranked, shown.metric.importance(), shown.encoding)
    names = [item.get("name") or str(item["feature"]) for item in named]
    importance = np.asarray([item["weight"] for item in named])
    order = np.argsort(-importance, kind="stable")[:MOST_BARS]
    wide = max(len(names[i]) for i in order) * len(order) > MOST_CHARACTERS
    with plotting.figure_in(path, force) as figure:
        axes = figure.subplots()
        axes.bar(np.arange(len(order)), importance[order], color="C0")
        small = {"fontsize": "small"} if len(order) > 15 else {}
        turned = {"rotation": 90} if wide else {}
        axes.set_xticks(np.arange(len(order)), [names[i] for i in order], **small, **turned)
        of_members = isinstance(shown.metric, Joint)
        weight = "mean weight in the members' metrics" if of_members else "weight in the metric"
        axes.set(xlabel="feature", ylabel=weight)
        if len(order) < len(importance):
            axes.set_title(f"the largest {len(order)} of {len(importance):,} features")


def planes(shown: Shown, data: str, path: str, force: bool) -> None:
    """Draw rows of a data file in the plane of the metric, and on the two leading principal axes of these rows.

    At most MOST_ROWS rows are drawn. The plane of the metric also has support vectors and decision values, if known.
    Raises OptionError for a metric onto other than 2 dimensions, and what reading raises.
    """
    from localsvm.runs.prediction.picture import principal_plane, sampled

    _check_plane(shown)
    X, y = sampled(shown.rows(data), MOST_ROWS, np.random.default_rng(0))
    Z = np.asarray(shown.metric.apply(X), np.float64)
    pca, share = principal_plane(X)
    colours = colours_of(shown.target, y)
    with plotting.figure_in(path, force) as figure:
        figure.set_size_inches(11.0, 5.2)
        learned, principal = figure.subplots(1, 2)
        _frame(learned, Z)
        if shown.decide is not None:
            _surface(figure, learned, shown.decide, colours)
        colours.rows(learned, Z, y)
        if shown.support is not None:
            style = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.6, "s": 34}
            learned.scatter(*shown.support.T, **style, label="support vectors", zorder=1)
        learned.set(
            title="the learned plane" + _beyond(learned, Z), xlabel="first dimension", ylabel="second dimension"
        )
        _legend(learned)
        _frame(principal, pca)
        colours.rows(principal, pca, y)
        axis = "principal axis {}, {:.0%} of the variance"
        principal.set(
            title="the plane of PCA" + _beyond(principal, pca),
            xlabel=axis.format(1, float(share[0])),
            ylabel=axis.format(2, float(share[1])),
        )
        _legend(principal)


def _check_plane(shown: Shown) -> None:
    if isinstance(shown.metric, Joint):
        raise OptionError("--data draws the plane of one metric, and each member has its own; train with --repeats 1")
    if shown.metric.rank != 2:
        raise OptionError(
            f"--data draws the plane of a metric onto 2 dimensions, and this one has {shown.metric.rank}; learn one "
            "by --metric rank:2 (of svml by --form rank:2)"
        )


def two_features(plane: FeaturePlane, data: str, path: str, force: bool) -> None:
    """Draw rows of a data file, MOST_ROWS at most, over what a model decides, with the borders of its cells."""
    from localsvm.runs.prediction.picture import sampled

    X, y = sampled(plane.rows(data), MOST_ROWS, np.random.default_rng(0))
    colours = colours_of(plane.target, y)
    with plotting.figure_in(path, force) as figure:
        axes = figure.subplots()
        _frame(axes, X, one_scale=False)
        _surface(figure, axes, plane.decide, colours)
        if plane.cells is not None:
            _borders(axes, plane.cells)
        colours.rows(axes, X, y)
        axes.set(xlabel=plane.names[0], ylabel=plane.names[1], title=_beyond(axes, X).removeprefix("; "))
        _legend(axes)


def _legend(axes: Any) -> None:
    """Add the names of what is drawn, if there are some: values have a bar of colours."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best", fontsize="small")


def _frame(axes: Any, plane: Floats, one_scale: bool = True) -> None:
    """Set limits that a few rows far away do not stretch; of one scale where distances are what the plane shows."""
    low, high = np.percentile(plane, [OUTSIDE, 100.0 - OUTSIDE], axis=0)
    centre, half = (low + high) / 2, (0.5 + MARGIN) * (high - low)
    if one_scale:
        half = np.full(2, np.max(half))
        axes.set_box_aspect(1.0)
    least = 1e-3 * np.max(np.abs(centre)) or 1.0  # rows in one point
    (x, y), (wide, tall) = centre.tolist(), np.where(half > 0.0, half, least).tolist()
    axes.set(xlim=(x - wide, x + wide), ylim=(y - tall, y + tall))


def _beyond(axes: Any, plane: Floats) -> str:
    """Part of a title: the number of rows outside the limits."""
    low, high = np.transpose([axes.get_xlim(), axes.get_ylim()])
    outside = int(np.sum(np.any((plane < low) | (plane > high), axis=1)))
    return f"; {outside:,} of {len(plane):,} rows are outside" if outside else ""


def _grid(axes: Any) -> tuple[Floats, Floats, Floats]:
    """Places along both axes, and all points (GRID^2, 2) of the lattice that they span."""
    x, y = (np.linspace(low, high, GRID) for low, high in (axes.get_xlim(), axes.get_ylim()))
    return x, y, np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1)


def _surface(figure: Any, axes: Any, decide: Callable[[Any], Floats], colours: Colours) -> None:
    x, y, points = _grid(axes)
    colours.surface(figure, axes, x, y, decide(points.astype(np.float32)))


def _borders(axes: Any, cells: Callable[[Any], NDArray[np.int32]]) -> None:
    """Draw where the cell that answers changes."""
    x, y, points = _grid(axes)
    number = cells(points).reshape(GRID, GRID)
    for cell in np.unique(number)[1:]:  # the borders of the first one are those of others
        axes.contour(x, y, number == cell, [0.5], colors="0.2", linewidths=0.7, zorder=1)
