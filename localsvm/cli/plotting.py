"""Pictures of cell sizes and of cross-validated grids. They need matplotlib, which the extra `plot` installs."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import OptionError
from localsvm.store.outputs import replacing

if TYPE_CHECKING:
    from localsvm.runs.cross_validate import MeanGrid

FORMATS = ("png", "pdf", "svg")
SHOWN_SETTINGS = 10  # curves at most if settings have several parameters: as many as there are colours
Floats = NDArray[np.float64]


def check(path: str | None) -> None:
    """Raise OptionError, before a run, if `path` cannot be drawn: no matplotlib, or a format that is not in FORMATS."""
    if path is None:
        return
    if _format(path) not in FORMATS:
        raise OptionError(f"{path}: pictures end in .png, .pdf or .svg")
    if importlib.util.find_spec("matplotlib") is None:
        raise OptionError("pictures need matplotlib, which is not installed: pip install 'localsvm[plot]'")


def cell_sizes(sizes: NDArray[np.int64], cell_size: int, path: str, force: bool = False) -> None:
    """Draw a histogram of the cell sizes (cells,), with their median and the largest size allowed."""
    with figure_in(path, force) as figure:
        axes = figure.subplots()
        axes.hist(sizes, bins=min(40, max(5, len(sizes) // 2)), range=(0, max(cell_size, int(sizes.max()))), color="C0")
        axes.axvline(float(np.median(sizes)), color="C1", label=f"median, {np.median(sizes):,.0f} rows")
        axes.axvline(cell_size, color="0.3", linestyle="--", label=f"at most, {cell_size:,} rows")
        axes.set_xlabel("training rows in a cell")
        axes.set_ylabel("number of cells")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.set_title(f"{len(sizes):,} cells, {sizes.sum():,} rows")
        axes.legend()


def grid_loss(
    names: Sequence[str], grid: MeanGrid, path: str, force: bool = False, what: str = "cross-validated error",
    unit: str | None = "%",
) -> None:  # fmt: skip
    """Draw the cross-validated loss over the grid, with a star at its best point, and the points of several levels.

    One parameter: contours over it and C, both logarithmic, or a curve if one of them has a single value. No parameter:
    a curve over C. Several: curves over C for the best settings.

    Parameters
    ----------
    names : names of the parameters other than the cost.
    what : name of the loss.
    unit : in which it is drawn, "%" or None for its own.
    """
    if unit == "%":
        grid, what, best = grid._replace(loss=100 * grid.loss), f"{what}, %", "{:.2f} %"
    else:
        best = "{:.4g}"
    with figure_in(path, force) as figure:
        axes = figure.subplots()
        if len(names) > 1:
            _curves(figure, axes, names, grid, what, best)
        elif min(grid.loss.shape) > 1:
            _contours(figure, axes, names[0], grid, what, best)
        elif len(grid.settings) > 1:
            _curve(axes, names[0], grid.settings[:, 0], grid, what, best)
        else:
            _curve(axes, "cost C", grid.costs, grid, what, best)


def _best_text(names: Sequence[str], values: Sequence[float], grid: MeanGrid, best: str) -> str:
    """Text on the best point. best : format of its loss."""
    point = ", ".join(f"{name} {value:.4g}" for name, value in zip(names, values, strict=True))
    return f"best: {best.format(grid.loss[grid.best])} at {point}"


def _star(axes: Any, x: float, y: float, label: str | None = None) -> None:
    # markers at the edge of the axes are drawn whole
    axes.plot(x, y, "*", markersize=15, color="red", markeredgecolor="white", label=label, clip_on=False, zorder=3)


def _levels(axes: Any, places: Mapping[tuple[float, float], Sequence[float]]) -> None:
    """Mark points that levels chose. places : levels, by where their points are."""
    for place, levels in places.items():
        axes.plot(*place, "o", markersize=6, color="red", markeredgecolor="white", clip_on=False, zorder=4)
        across = axes.transAxes.inverted().transform(axes.transData.transform(place))[0]
        side = {"xytext": (-8, 7), "ha": "right"} if across > 0.7 else {"xytext": (8, 7)}
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
        text = "level " + ", ".join(f"{level:g}" for level in levels)
        axes.annotate(text, place, **side, textcoords="offset points", fontsize="small", bbox=box, zorder=5)


def _contours(figure: Any, axes: Any, name: str, grid: MeanGrid, what: str, best: str) -> None:
    values, loss = grid.settings[:, 0], grid.loss
    # most points are far from the best, so levels at quantiles show more where it matters
    levels = np.unique(np.quantile(loss, np.linspace(0, 1, 13)))
    if len(levels) < 2:
        levels = loss.min() + np.asarray([-0.5, 0.5]) * (abs(float(loss.min())) or 1.0)
    filled = axes.contourf(values, grid.costs, loss.T, levels, cmap="viridis_r")
    axes.contour(values, grid.costs, loss.T, levels, colors="white", linewidths=0.4)
    point = float(values[grid.best[0]]), float(grid.costs[grid.best[1]])
    _star(axes, *point, _best_text((name, "C"), point, grid, best))
    axes.set(xscale="log", yscale="log", xlabel=name, ylabel="cost C")
    _levels(axes, {(float(values[g]), float(grid.costs[c])): levels for (g, c), levels in grid.levels.items()})
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
    bar = figure.colorbar(filled, format="%.4g" if best == "{:.4g}" else "%.2f", ticks=levels)
    bar.set_label(what)


def _curve(axes: Any, name: str, values: Floats, grid: MeanGrid, what: str, best: str) -> None:
    axes.semilogx(values, grid.loss.ravel(), "o-")
    at = float(values[max(grid.best)])  # one of the two axes has a single value
    _star(axes, at, float(grid.loss[grid.best]), _best_text((name.split()[-1],), (at,), grid, best))
    _levels(axes, {(float(values[max(at)]), float(grid.loss[at])): levels for at, levels in grid.levels.items()})
    axes.set(xlabel=name, ylabel=what)
    axes.legend()


def _curves(figure: Any, axes: Any, names: Sequence[str], grid: MeanGrid, what: str, best: str) -> None:
    g, c = grid.best
    order = [i for i in np.argsort(grid.loss.min(axis=1), kind="stable").tolist() if i != g]
    for i in (g, *order[: SHOWN_SETTINGS - 1]):
        label = ", ".join(f"{value:.4g}" for value in grid.settings[i])
        axes.semilogx(grid.costs, grid.loss[i], "o-", markersize=4, label=label)
    figure.legend(title=", ".join(names), loc="outside right center")
    point = [*grid.settings[g].tolist(), float(grid.costs[c])]
    _star(axes, point[-1], float(grid.loss[g, c]))
    _levels(axes, {(float(grid.costs[at[1]]), float(grid.loss[at])): levels for at, levels in grid.levels.items()})
    figure.suptitle(_best_text([*names, "C"], point, grid, best), fontsize="medium")
    axes.set(xlabel="cost C", ylabel=what)


@contextmanager
def figure_in(path: str, force: bool) -> Iterator[Any]:
    """A figure to draw in, which is written to `path` in the end."""
    os.environ["MPLBACKEND"] = "agg"  # of files; a wrong name in the user's environment would end the command
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    yield figure
    with replacing(path, force) as temporary:
        figure.savefig(temporary, format=_format(path), dpi=150)


def _format(path: str) -> str:
    return Path(path).suffix.lower().removeprefix(".")
