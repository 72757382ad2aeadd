"""The measurement behind the table ASCENTS: its problems, one solution with each number of passes, and its page."""

from __future__ import annotations

import argparse
from pathlib import Path

import bench_ascents
import numpy as np
import pytest
from bench_ascents import PASSES, PROBLEMS, Task, Timing, posed, seconds_of
from harness.library import ASCENTS, task_rows

from localsvm.data.synthetic import higgs_like
from localsvm.solvers import linear

TABLE = linear.ASCENTS


def tiny(row: int, cost: float = 1e4, n: int = 400) -> Task:
    """A generated problem, posed as one of this row of the table."""
    X, y = higgs_like(n, np.random.default_rng(0))
    rows, one_task_each = task_rows("kmeans-svm", X, {"clusters": (4.0,)})
    return posed(rows, y, one_task_each, ASCENTS[row].loss == "squared", cost, ASCENTS[row])


def test_every_row_of_the_table_has_a_problem() -> None:
    assert {problem.row for problem in PROBLEMS} == set(range(len(ASCENTS)))
    first = {problem.row: problem for problem in reversed(PROBLEMS)}
    assert all(bench_ascents.QUICK_COST in problem.costs for problem in first.values())
    assert {ascent.passes for ascent in ASCENTS} <= set(PASSES)


def test_every_problem_has_a_loss_of_its_row_and_a_name_of_its_own() -> None:
    assert all(ASCENTS[problem.row].loss in (problem.loss, "any") for problem in PROBLEMS)
    assert len({(problem.row, problem.name, problem.loss) for problem in PROBLEMS}) == len(PROBLEMS)


@pytest.mark.parametrize("row", [0, 1, 3, 8])
def test_a_solution_is_timed_with_each_number_of_passes(row: int) -> None:
    task = tiny(row)
    assert (task.start is not None) == ASCENTS[row].known
    assert all(seconds_of(task, ASCENTS[row], passes, 60.0) is not None for passes in PASSES)
    assert linear.ASCENTS is TABLE


def test_a_solution_over_the_limit_is_stopped() -> None:
    assert seconds_of(tiny(8, n=20_000), ASCENTS[8], None, 0.01) is None
    assert linear.ASCENTS is TABLE


def test_a_problem_of_another_row_is_refused() -> None:
    with pytest.raises(ValueError, match="falls under"):
        tiny(2)


def test_the_page_has_what_was_chosen_in_bold(tmp_path: Path) -> None:
    seconds = {0: 0.5, 8: 0.25, None: None}
    runs = [
        Timing(4, "any loss", 8, "a9a", "hinge", cost, 400, 28, passes, value, 10.0)
        for cost in (1.0, 100.0)
        for passes, value in seconds.items()
    ]
    text = bench_ascents.page(runs, argparse.Namespace())
    assert "| 5 | a9a | hinge | 100 | 400 | 28 | 0.5 | **0.25** |  |  |  | over |" in text
    assert "| 5 | any loss | 2 | 1 | **0.5** |" in text
    assert "| 20 (2 over) |" in text
