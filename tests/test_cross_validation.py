"""The loop of cross-validation: what a method sees, what it is asked for, and what is kept of the best point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pytest
from dividing import divide
from hypothesis import given
from hypothesis import strategies as st
from selecting import fit, score

from localsvm.data.blocks.dataset import Dataset, as_examples
from localsvm.data.synthetic import banana
from localsvm.engines.base import CoarseRows, Drawn
from localsvm.errors import RunError
from localsvm.methods.base import ALL, WHOLE, Fit, Fitted, Method, Prepared, Purpose, State, System, View
from localsvm.methods.cell import Cell, Job, fill_held_out
from localsvm.methods.cell_size import CellSize
from localsvm.methods.grids import Grid
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.parallel.local import LocalPool
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.config import TrainingConfig
from localsvm.selection.cross_validation import CellSelection, Point, Scores, cross_validate
from localsvm.selection.folds import stratified
from localsvm.selection.search import Search
from localsvm.targets.base import Target
from localsvm.targets.classification import Classification

CLASSES = 3


@dataclass
class Notes:
    """Views, jobs and starts that the loop asked a method for."""

    views: list[View] = field(default_factory=list)
    solved: list[tuple[View, Job, Any, float]] = field(default_factory=list)
    final: list[tuple[View, Job, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Spy(Method):
    """A method with solutions (setting, problem, fold, cost), whose held-out values are right at one point."""

    name: ClassVar[str] = "spy"
    settings: tuple[float, ...] = (1.0, 2.0)
    costs: tuple[float, ...] = (1.0, 2.0, 4.0)
    notes: Notes = field(default_factory=Notes, compare=False)
    right: tuple[float, float] = (2.0, 4.0)  # the point whose values are those of the target

    def grid(self, cell: Cell, average_rows: float, folds: int) -> Grid:
        return Grid(tuple((s,) for s in self.settings), ("s",), costs=self.costs)

    def prepare(self, cell: Cell, view: View) -> Prepared:
        self.notes.views.append(view)
        return SpyPrepared(self, cell, view)

    def pack(self, cell: Cell, fits: Sequence[Fit]) -> Fitted:
        return Fitted({"model": np.asarray([f.solution for f in fits])})

    def predictor(self, state: State, target: Target, n_features: int) -> Any:
        raise AssertionError("not asked for here")

    def memory(self, size: CellSize) -> int:
        return 0


class SeesFolds(Spy):
    sees = "fold"


class SeesProblems(Spy):
    sees = "problem"


class Joint(Spy):
    joint = True


class SpyPrepared(Prepared):
    def __init__(self, method: Spy, cell: Cell, view: View) -> None:
        self.method, self.cell, self.view = method, cell, view

    def at(self, setting: dict[str, float], purpose: Purpose) -> SpySystem:
        return SpySystem(self, setting["s"], purpose)


class SpySystem(System):
    def __init__(self, prepared: SpyPrepared, setting: float, purpose: Purpose) -> None:
        self.prepared, self.setting, self.purpose = prepared, setting, purpose

    def solve(self, jobs: Sequence[Job], starts: Sequence[Any], roughness: float) -> list[list[Any]]:
        notes, view = self.prepared.method.notes, self.prepared.view
        notes.solved += [(view, job, start, roughness) for job, start in zip(jobs, starts, strict=True)]
        return [[(self.setting, job.problem, job.fold, float(cost)) for cost in job.costs] for job in jobs]

    def held_out(self, jobs: Sequence[Job], solutions: Sequence[Sequence[Any]], out: np.ndarray) -> None:
        cell, right = self.prepared.cell, self.prepared.method.right

        def values(i: int, c: int, rows: slice) -> np.ndarray:
            setting, problem, _, cost = solutions[i][c]
            Y = cell.Y[rows] if problem == ALL else cell.Y[rows, problem]
            return Y if (setting, cost) == right else -Y

        fill_held_out(cell, jobs, out, values)

    def final(self, jobs: Sequence[Job], starts: Sequence[Any]) -> list[Any]:
        notes, view = self.prepared.method.notes, self.prepared.view
        notes.final += [(view, job, start) for job, start in zip(jobs, starts, strict=True)]
        return [(self.setting, job.problem, job.fold, float(job.costs[0])) for job in jobs]

    def start(self, solution: Any) -> Any:
        return ("start", *solution)

    def whole_start(self, starts: Sequence[Any]) -> Any:
        return ("whole", *starts)


def cell_of(folds: int = 3, n: int = 30) -> Cell:
    rng = np.random.default_rng(0)
    y = np.arange(n) % CLASSES + 0.0
    of = stratified(y, folds, rng)
    order = np.argsort(of, kind="stable")
    target = Classification(np.arange(CLASSES) + 0.0)
    return Cell(np.zeros((n, 1), np.float32), y[order], target, np.ones(n), np.ones(n), of[order])


def run(method: Spy, select: str) -> tuple[Cell, Scores, Fitted]:
    cell = cell_of()
    grid = method.grid(cell, 30.0, 3)
    scores = score(method, cell, grid)
    return cell, scores, fit(method, cell, grid, scores, select)


@pytest.mark.parametrize("method", [Spy(), SeesFolds(), SeesProblems(), Joint()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("select", ["vote", "refit"])
def test_the_right_point_is_found_and_fitted_from_its_starts(method: Spy, select: str) -> None:
    notes = Notes()
    method = type(method)(notes=notes)
    cell, scores, fitted = run(method, select)
    assert scores.best[0] == 0.0 and (scores.best.setting, scores.best.cost) == (1, 2)
    np.testing.assert_array_equal(scores.kept.values, cell.Y.T)
    problems = [ALL] if method.joint else list(range(CLASSES))
    folds = range(3) if select == "vote" else [WHOLE]
    assert fitted.state["model"].tolist() == [[2.0, p, k, 4.0] for p in problems for k in folds]
    for _, job, start in notes.final:
        if select == "vote":
            assert start == ("start", 2.0, job.problem, job.fold, 4.0)
        else:
            assert start == ("whole", *(("start", 2.0, job.problem, k, 4.0) for k in range(3)))


@pytest.mark.parametrize("method", [Spy, SeesFolds, SeesProblems], ids=lambda m: m.__name__)
def test_what_is_prepared_never_sees_what_its_jobs_hold_out(method: type[Spy]) -> None:
    notes = Notes()
    run(method(notes=notes), "refit")
    for view, job, *_ in [*notes.solved, *notes.final]:
        if method.sees == "rows":
            assert (view.fold, view.problem) == (WHOLE, ALL)
        else:
            assert view.fold == job.fold
            assert view.problem == (job.problem if method.sees == "problem" else ALL)


def test_rows_are_prepared_once_however_many_rounds() -> None:
    method = Spy(settings=tuple(np.arange(1.0, 8.0)), right=(2.0, 4.0))
    cell = cell_of()
    selection = CellSelection(method, cell, method.grid(cell, 30.0, 3))
    scores = selection.search(Search("adaptive"))
    selection.fit(scores, "vote")
    assert len(method.notes.views) == 1 and method.notes.views[0].settings == 7
    assert scores.best.setting == 1 and np.isnan(scores.loss).any()


def test_a_path_goes_on_from_its_last_solution_and_may_be_rough() -> None:
    method = Spy()
    run(method, "vote")
    for _, job, start, roughness in method.notes.solved:
        assert roughness == 10.0 and len(job.costs) == 1
        before = [cost for cost in method.costs if cost < job.costs[0]]
        assert (start is None) == (not before) and (not before or start[1:] == (job.problem, job.fold, before[-1]))


def test_without_a_choice_the_whole_cell_is_solved_from_nothing() -> None:
    method = Spy(settings=(1.0,), costs=(1.0,))
    cell = cell_of()
    fit(method, cell, method.grid(cell, 30.0, 3), None, "vote")
    assert [(job.fold, start) for _, job, start in method.notes.final] == [(WHOLE, None)] * CLASSES


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5])] * 2, *[st.integers(0, 2)] * 2), min_size=1, unique=True))
def test_merging_scores_gives_the_least_point_in_any_order(points: list[tuple[float, float, int, int]]) -> None:
    scores = [Scores(np.full((3, 3), np.nan), Point(*point)) for point in points]
    forward, backward = scores[0], scores[-1]
    for other in scores[1:]:
        forward = forward.merge(other)
    for other in reversed(scores[:-1]):
        backward = backward.merge(other)
    assert forward.best == backward.best == min(points)


def test_the_function_is_the_whole_search() -> None:
    method, cell = Spy(), cell_of()
    scores = cross_validate(method, cell, method.grid(cell, 30.0, 3), Search("full"))
    assert scores.best[2:] == (2, 1) and not np.isnan(scores.loss).any()


@dataclass(frozen=True)
class KernelOfEachFold(KernelSVM):
    """Prepares for each fold what `svm` prepares once."""

    name: ClassVar[str] = "kernel-of-each-fold"
    sees = "fold"


@dataclass(frozen=True)
class KernelOfEachProblem(KernelSVM):
    """Prepares for each fold and problem what `svm` prepares once."""

    name: ClassVar[str] = "kernel-of-each-problem"
    sees = "problem"


@pytest.mark.parametrize("method", [KernelOfEachFold, KernelOfEachProblem])
@pytest.mark.parametrize("select", ["vote", "refit"])
@pytest.mark.parametrize("scheme", ["ova", "ava"])
def test_systems_of_several_views_do_not_disturb_each_other(method: type[KernelSVM], select: str, scheme: str) -> None:
    X = np.random.default_rng(1).standard_normal((90, 2)).astype(np.float32)
    base = cell_of(folds=2, n=90)  # solutions without one of three folds begin at one without two, if they share a view
    X[:, 0] += base.y.astype(np.float32)
    cell = replace(base, X=X, target=Classification(base.target.labels, scheme))
    results = []
    for kind in (KernelSVM, method):
        grid = kind().grid(cell, 90.0, 3)
        selection = CellSelection(kind(), replace(cell), grid)
        scores = selection.search(Search("adaptive"))
        results.append((scores, selection.fit(scores, select).state))
    (one, state), (other, again) = results
    np.testing.assert_array_equal(one.loss, other.loss)
    assert one.best == other.best
    for name, array in state.items():
        np.testing.assert_array_equal(array, again[name], err_msg=name)


def test_systems_of_several_views_have_their_own_kernel() -> None:
    cell = cell_of()
    method = KernelOfEachFold(gamma=(1.0,), cost=(1.0,))
    selection = CellSelection(method, cell, method.grid(cell, 30.0, 3))
    kernels = [selection.system((fold, ALL), 0, Purpose(1.0), 1).whole for fold in range(3)]
    assert not any(np.shares_memory(a, b) for a, b in combinations(kernels, 2))
    rows = CellSelection(KernelSVM(gamma=(1.0,), cost=(1.0,)), cell, selection.grid)
    again = [rows.system((WHOLE, ALL), 0, Purpose(1.0), 1).whole for _ in range(2)]
    assert np.shares_memory(*again)  # one kernel at a time is all that a worker has memory for


class NoNumber(Classification):
    """A target whose loss is not a number."""

    def loss(self, wrong: Any, mass: Any) -> Any:
        return np.full(len(wrong), np.nan)


def test_a_loss_that_is_no_number_ends_the_run() -> None:
    cell = replace(cell_of(), target=NoNumber(np.arange(CLASSES) + 0.0))
    method = Spy()
    with pytest.raises(RunError, match="a held-out loss is not a number"):
        score(method, cell, method.grid(cell, 30.0, 3))


@pytest.mark.parametrize(("sees", "split"), [("rows", True), ("fold", False)])
def test_cells_are_split_into_settings_where_preparing_again_costs_little(
    sees: str, split: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KernelSVM, "sees", sees)
    X, y = banana(200, np.random.default_rng(0))
    config = TrainingConfig(KernelSVM(gamma=(0.5, 1.0, 2.0), cost=(1.0, 2.0)), "none", metric="none")
    units: set[int] = set()

    class Noted(LocalPool):
        def unordered(self, work: Any) -> Any:
            for unit, result in super().unordered(work):
                units.add(id(unit))
                yield unit, result

    divided = divide(Dataset(as_examples(X), y), config)
    resources = Resources(2, pool=lambda jobs, keep, note: Noted(1, keep, note))
    rows = CoarseRows(0, Drawn(np.arange(200), as_examples(X), y))
    names = [name for _, name, _ in divided.trainer.records([rows], resources)]
    assert [name for name in names if "/" not in name] == ["0", "division"]
    assert (len(units) > 1) == split
