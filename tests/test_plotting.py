"""Pictures of grids: what is drawn for a grid of one, of no and of several parameters beside the cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localsvm.cli import plotting
from localsvm.runs.cross_validate import GridPoint, MeanGrid, mean_grid

COSTS = tuple(float(c) for c in np.geomspace(0.1, 100, 7))
LINES = {
    (): ((),),
    ("lambda",): tuple((float(v),) for v in np.geomspace(0.01, 10, 5)),
    ("clusters", "landmarks", "gamma"): tuple(
        (k, m, g) for k in (1.0, 50.0) for m in (10.0, 20.0) for g in (0.5, 1, 2)
    ),
}


def points(lines: tuple[tuple[float, ...], ...], cells: int = 2) -> list[GridPoint]:
    """A bowl around C = 1 and the middle line; its errors differ a little between cells."""
    table = []
    for cell in range(cells):
        errors = {
            (line, cost): 0.1 + 0.01 * abs(i - len(lines) // 2) + 0.02 * np.log10(cost) ** 2 + 0.001 * cell
            for i, line in enumerate(lines)
            for cost in COSTS
        }
        best = min(errors, key=lambda key: errors[key])
        table += [GridPoint(cell, 100 + cell, *key, error, key == best) for key, error in errors.items()]
    return table


def drawn(names: tuple[str, ...], folder: Path, figures: list[Any]) -> Any:
    path = folder / "grid.png"
    plotting.grid_loss(names, mean_grid(points(LINES[names])), str(path))
    assert path.read_bytes().startswith(b"\x89PNG")
    return figures[-1]


def texts(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_one_parameter_spans_a_plane_with_the_cost(tmp_path: Path, figures: list[Any]) -> None:
    axes = drawn(("lambda",), tmp_path, figures).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("lambda", "cost C")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert texts(axes.get_legend()) == ["best: 10.05 % at lambda 0.3162, C 1"]
    star(axes, LINES["lambda",][2][0], 1.0)


def test_the_cost_alone_is_a_curve(tmp_path: Path, figures: list[Any]) -> None:
    axes = drawn((), tmp_path, figures).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("cost C", "cross-validated error, %")
    np.testing.assert_allclose(axes.lines[0].get_xdata(), COSTS)
    assert axes.lines[0].get_ydata().min() == pytest.approx(10.05, abs=0.001)
    assert texts(axes.get_legend()) == ["best: 10.05 % at C 1"]
    star(axes, 1.0, 10.05)


def test_several_parameters_are_the_curves_of_the_ten_best(tmp_path: Path, figures: list[Any]) -> None:
    figure = drawn(("clusters", "landmarks", "gamma"), tmp_path, figures)
    axes, legend = figure.axes[0], figure.legends[0]
    assert legend.get_title().get_text() == "clusters, landmarks, gamma"
    assert len(LINES["clusters", "landmarks", "gamma"]) == 12 and len(texts(legend)) == 10
    assert texts(legend)[0] == "50, 10, 0.5"
    assert [line.get_ydata().min() for line in axes.lines[:10]] == sorted(
        line.get_ydata().min() for line in axes.lines[:10]
    )
    assert figure.get_suptitle() == "best: 10.05 % at clusters 50, landmarks 10, gamma 0.5, C 1"
    assert axes.get_xlabel() == "cost C"
    star(axes, 1.0, 10.05)


def star(axes: Any, x: float, y: float) -> None:
    """Check where the star is."""
    (line,) = [line for line in axes.lines if line.get_marker() == "*"]
    assert (line.get_xdata()[0], line.get_ydata()[0]) == (pytest.approx(x), pytest.approx(y, abs=0.001))


def test_the_star_is_the_point_that_the_only_cell_chose(tmp_path: Path, figures: list[Any]) -> None:
    """The hinge loss chose one of several equal errors, which need not be the first."""
    table = [GridPoint(0, 50, (g,), c, 0.1, (g, c) == (2.0, 3.0)) for g in (1.0, 2.0) for c in (1.0, 3.0, 9.0)]
    grid = mean_grid(table)
    assert (grid.best, grid.shared) == ((1, 1), True)
    plotting.grid_loss(("gamma",), grid, str(tmp_path / "a.png"))
    star(figures[-1].axes[0], 2.0, 3.0)
    several = mean_grid(table + [replace(point, cell=1) for point in table])
    assert (several.best, several.shared) == ((0, 0), True)  # the smallest cost, and the first setting


@pytest.mark.parametrize(("lines", "costs", "label"), [(5, 1, "lambda"), (1, 7, "cost C"), (1, 1, "cost C")])
def test_an_axis_of_one_value_is_not_drawn(
    lines: int, costs: int, label: str, tmp_path: Path, figures: list[Any]
) -> None:
    values, error = np.geomspace(1, 2, lines)[:, None], np.linspace(0.1, 0.2, lines * costs).reshape(lines, costs)
    grid = MeanGrid(values, np.asarray(COSTS[:costs]), error, (lines // 2, costs // 2), True)
    plotting.grid_loss(("lambda",), grid, str(tmp_path / "grid.png"))
    star(figures[-1].axes[0], (values[2, 0] if lines > 1 else COSTS[costs // 2]), 100 * error[grid.best])
    assert figures[-1].axes[0].get_xlabel() == label


def test_an_axis_shows_the_geometric_mean_of_the_cells_and_what_they_share_as_it_is() -> None:
    grids = [((1.0, 50.0), 2.0), ((4.0, 50.0), 8.0)]
    table = [
        GridPoint(i, 100, line, cost, error, True) for i, (line, cost) in enumerate(grids) for error in [0.1 * (i + 1)]
    ]
    grid = mean_grid(table)
    assert grid.settings.tolist() == [[pytest.approx(2.0), pytest.approx(50.0)]]
    assert grid.costs.tolist() == [pytest.approx(4.0)] and grid.loss.tolist() == [[pytest.approx(0.15)]]
    assert not grid.shared
    assert mean_grid(table[:1]).settings.tolist() == [[1.0, 50.0]]


def test_points_of_levels_are_marked(tmp_path: Path, figures: list[Any]) -> None:
    """The star is at the best point of the mean; levels that chose the same point share a mark."""
    chose = {(1.0, 3.0): (0.1, 0.9), (2.0, 9.0): (0.5,)}
    table = [
        GridPoint(0, 50, (g,), c, 0.1 + abs(g - 1.0) + abs(c - 1.0), (g, c) in chose, chose.get((g, c), ()))
        for g in (1.0, 2.0)
        for c in (1.0, 3.0, 9.0)
    ]
    grid = mean_grid(table)
    assert grid.best == (0, 0) and grid.levels == {(0, 1): (0.1, 0.9), (1, 2): (0.5,)}
    plotting.grid_loss(("gamma",), grid, str(tmp_path / "a.png"), what="mean pinball loss", unit=None)
    axes = figures[-1].axes[0]
    star(axes, 1.0, 1.0)
    assert {text.get_text(): text.xy for text in axes.texts} == {
        "level 0.1, 0.9": (1.0, 3.0), "level 0.5": (2.0, 9.0)
    }  # fmt: skip
    assert not mean_grid(table + [replace(point, cell=1) for point in table]).levels
