"""The table and the report of grids with other parameters than a kernel's gamma."""

from __future__ import annotations

import pytest

from localsvm.cli.grid_table import best_text, print_points, validation_report
from localsvm.runs.config import TrainingConfig
from localsvm.runs.cross_validate import GridPoint, Validation


def validation(names: tuple[str, ...], line: tuple[float, ...], cells: int = 1) -> Validation:
    points = [
        GridPoint(cell, 20, line, cost, error, error == 0.1)
        for cell in range(cells)
        for cost, error in [(1.0, 0.2), (10.0 * (cell + 1), 0.1)]
    ]
    return Validation(names, points, 0.1, cells, 20 * cells, 20 * cells, {"select": 1.0})


@pytest.mark.parametrize(
    ("names", "line", "table"),
    [
        ((), (), "cell,rows,cost,error,best\n0,20,1.0,0.2,0\n0,20,10.0,0.1,1\n"),
        (("lambda",), (0.5,), "cell,rows,lambda,cost,error,best\n0,20,0.5,1.0,0.2,0\n0,20,0.5,10.0,0.1,1\n"),
        (
            ("clusters", "gamma"),
            (50.0, 0.5),
            "cell,rows,clusters,gamma,cost,error,best\n0,20,50.0,0.5,1.0,0.2,0\n0,20,50.0,0.5,10.0,0.1,1\n",
        ),
    ],
)
def test_a_column_a_parameter(
    names: tuple[str, ...], line: tuple[float, ...], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = validation(names, line)
    print_points(result)
    assert capsys.readouterr().out == table
    report = validation_report(result, TrainingConfig())
    assert list(report["points"][0]) == table.partition("\n")[0].split(",")
    assert tuple(report["points"][1][name] for name in names) == line and report["points"][1]["best"] is True


@pytest.mark.parametrize(
    ("method", "names", "line", "best"),
    [
        ("svm", (), (), "-C 10"),
        ("svm", ("gamma",), (0.5,), "-g 0.5 -C 10"),
        ("csvm", ("clusters", "lambda"), (8.0, 0.1 + 0.2), "-K 8 --lambda 0.30000000000000004 -C 10"),
        ("l3", ("clusters", "landmarks_count"), (8.0, 5.0), "-K 8 -L 5 -C 10"),
    ],
)
def test_the_best_point_is_written_as_options(
    method: str, names: tuple[str, ...], line: tuple[float, ...], best: str
) -> None:
    assert best_text(validation(names, line), method).splitlines()[0] == f"best    {best}"
    given = best_text(validation(names, line), method, ["-m", method, "--partition-file", "my cells.h5"])
    assert given.splitlines()[0] == f"best    -m {method} --partition-file 'my cells.h5' {best}"


def test_the_chosen_points_of_several_cells_are_ranges() -> None:
    """Grids of several cells differ, so no point is the best of all cells."""
    lines = best_text(validation(("clusters", "gamma"), (50.0, 0.5), cells=3), "svm").splitlines()
    assert not [line for line in lines if line.startswith("best")]
    assert lines[:4] == [
        "chosen     by each of 3 cells",
        "clusters   50",
        "gamma      0.5",
        "C          10 to 30, median 20",
    ]
