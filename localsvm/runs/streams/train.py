"""Training on a file that does not fit in memory: every pass reads it anew, block by block.

One cell of all rows, a linear method, and stochastic subgradients (solvers/stochastic.py). All folds and binary
problems of a point of the grid go along in the same passes, so that memory holds some blocks of rows, the weights of
these, and a sample of the rows, from which centres and landmarks are made. Rows of a block are visited in random order,
blocks in that of the file: a file that is sorted by its labels is to be shuffled first. Methods that need a single pass
are the business of localsvm/runs/streams/one_pass.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.engines.stream import Stream, StreamBlock
from localsvm.errors import OptionError
from localsvm.features.scaling import off_centre_columns
from localsvm.memory import Budget
from localsvm.methods.base import WHOLE, Fitted, State
from localsvm.methods.streams import Descending
from localsvm.naming import opt
from localsvm.partition.none import NoPartition
from localsvm.representations.kmeans import ROWS_PER_CLUSTER
from localsvm.representations.metric import EUCLIDEAN
from localsvm.runs.cells.schedule import Resources
from localsvm.runs.cells.work import CellReport
from localsvm.runs.config import TrainingConfig, check_features, check_labels
from localsvm.runs.preparation.demand import StreamDemand
from localsvm.runs.preparation.prepare import tell_left_out, tell_off_centre
from localsvm.runs.progress import Clock, Observer
from localsvm.runs.streams import one_pass
from localsvm.runs.streams.survey import StreamSurvey, surveyed
from localsvm.runs.summary import Summary, TrainedCells, TrainingRows, summarise
from localsvm.selection.cross_validation import Kept, Point, finish, score, search_grid
from localsvm.selection.search import Search
from localsvm.selection.tally import Tally
from localsvm.solvers.stochastic import Descended, DescentBlock, descend
from localsvm.store.model import ModelContent, write_model
from localsvm.targets.base import Observed
from localsvm.targets.classification import class_factors

BLOCK_BYTES = 32 << 20  # of text: rows are shuffled within a block, and no further
SAMPLE_ROWS = 20_000  # at least, of which centres and landmarks are made


def train_stream(
    path: str | Path, config: TrainingConfig, output: str | Path, resources: Resources | None = None, *,
    force: bool = False, block_bytes: int = BLOCK_BYTES, weights: str | Path | None = None,
) -> Summary:  # fmt: skip
    """Train on the file and write the model to `output`. weights: their file.

    resources: threads that read, and memory; the model depends on neither.
    Raises OptionError for what streams cannot do, DataError for a file, RunError for the output or the memory.
    """
    _check(config)
    resources = resources or Resources()
    clock = Clock(resources.observer)
    with clock("read"):
        stream = Stream(
            path, config.folds, zero_based=config.zero_based, jobs=resources.jobs, block_bytes=block_bytes,
            shifts=config.shifts, weights=weights, budget=Budget.of(resources.memory),
        )  # fmt: skip
        survey = _survey(stream, config, resources.observer)
    config = config.for_labels(survey.observed).for_rows(stream.rows)
    config = replace(config, views="none")
    with clock("train"):
        if config.method.learning_once is not None:
            demand = StreamDemand(stream, config.scale, one_pass.SAMPLE_ROWS)
            fitted, report = one_pass.OnePassCell(stream, survey, config, demand).fit(resources.jobs)
        else:
            fitted, report = StreamedCell(stream, survey, config).fit()
    with clock("write"):
        content = ModelContent(
            config=config.as_dict() | _described(stream, survey.observed),
            labels=survey.observed.labels,
            **survey.chain.state(),
            partition=("none", NoPartition().state()),
        )
        write_model(output, content, [fitted.state], 1, force)
    return summarise(
        TrainingRows(survey.observed, config.target(survey.observed), stream.features, stream.width),
        TrainedCells("none", np.asarray([stream.rows]), [report]),
        clock.seconds,
        progressive=config.method.learning_once is not None,
    )


def _survey(stream: Stream, config: TrainingConfig, observer: Observer) -> StreamSurvey:
    if stream.left_out:
        tell_left_out(observer, stream.rows, stream.left_out)
    check_features(stream.features, stream.name)
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(0, 0)))
    most = _sampled(stream, config)
    stream.fit_in("learning the scaling block by block needs", StreamDemand(stream, config.scale, most).survey())
    survey = surveyed(stream, config.scale, most, rng, config.value_losses)
    check_labels(survey.observed, config, stream.name)
    if not config.method.shift_invariant:
        tell_off_centre(observer, off_centre_columns(survey.sample))
    return survey


def _sampled(stream: Stream, config: TrainingConfig) -> int:
    """The most rows of the sample."""
    descending = config.method.descending
    if descending is None:
        return one_pass.SAMPLE_ROWS
    return max(SAMPLE_ROWS, ROWS_PER_CLUSTER * descending.sizes(stream.features)[0])


def _described(stream: Stream, observed: Observed) -> dict[str, Any]:
    """Facts about the data that prediction needs, as `PreparedRun.as_dict` has them."""
    known = {"features": stream.features, "dense": stream.dense, "partition": "none", "weighted": stream.weighted}
    if stream.columns is not None:
        known["width"] = stream.width
    return known if observed.values is None else known | {"values": observed.values.as_dict()}


def _check(config: TrainingConfig) -> None:
    name = opt.stream if config.method.learning_once is None else opt.online("full")
    if config.method.learning_once is None and config.method.descending is None:
        others = f"and for {opt.method('mllkm')} {opt.online('full')}"
        raise OptionError(
            f"{opt.stream} is for linear methods with {opt.solver('sgd')}, {others}; try {opt.method('linear')} "
            f"{opt.solver('sgd')}"
        )
    if config.partition not in (None, "none"):
        raise OptionError(
            f"{name} trains on all rows at once, not in cells; leave {opt.partition(config.partition)} out"
        )
    for option, given in ((opt.repeats, (config.repeats or 1) > 1), (opt.coarse_size, config.coarse_size is not None)):
        if given:
            raise OptionError(f"{name} trains on all rows at once, not in cells; leave {option} out")
    if config.metric_name != EUCLIDEAN:
        raise OptionError(f"{name} holds no rows to learn a metric from; leave {opt.metric} or {name} out")
    if config.views == "ranks":
        raise OptionError(f"{name} sees columns as they are; leave {opt.views('ranks')} out")
    if config.select == "vote":
        raise OptionError(f"{name} keeps one model of all rows; leave {opt.select('vote')} out")
    if config.detects:
        asked = opt.roc if config.roc else opt.false_alarm(config.false_alarm)
        raise OptionError(f"{name} keeps no held-out values to count false alarms of; leave {asked} or {name} out")
    if config.copies == "auto":
        raise OptionError(f"{name} keeps no held-out values to judge by; leave {opt.copies('auto')} or {name} out")
    if config.calibrates or config.coverage is not None:
        asked = opt.probability(1) if config.probability else opt.coverage(config.coverage)
        raise OptionError(f"{name} keeps no held-out values, which {asked} is made of; leave {asked} or {name} out")


class StreamedCell:
    """The one cell of all rows of a file: selection as of any cell, but solved and scored block by block."""

    def __init__(self, stream: Stream, survey: StreamSurvey, config: TrainingConfig) -> None:
        method = config.method.descending
        assert method is not None, "checked before the file is read"
        self.stream, self.survey, self.config = stream, survey, config
        self.method: Descending = method
        self.target = config.target(survey.observed)
        demand = StreamDemand(stream, config.scale, _sampled(stream, config))
        needed = demand.training(method, self.target, config.folds)
        stream.fit_in("training block by block needs", needed)
        self.grid = method.grid_for(stream.features)
        self._fold_mass = stream.fold_mass()

    def fit(self) -> tuple[Fitted, CellReport]:
        """Choose a point by cross-validation, where there is a choice, and solve it on all rows."""
        grid, search = self.grid, Search(self.config.grid)
        best, mass, wrong = Point(0.0, 0.0, 0, 0), np.empty(0), np.empty(0)
        if grid.n_points > 1:
            scores = finish(search_grid(grid, search, lambda search, i: score(grid, [i], search, self._path)))
            assert scores.kept is not None
            factors = class_factors(self.config.class_weights, self.survey.y)
            mass = self.target.mass(self.survey.y, factors * self.survey.mass)
            best, wrong = scores.best, scores.kept.wrong
        state = self.represent(best.setting)
        descended = self.solve(best.cost, best.setting, state, [WHOLE])
        cost = float(grid.costs_for(self.stream.mass)[best.cost])
        fitted = self.method.packed(state, cost, descended)
        return fitted, CellReport(
            self.stream.rows, 0.0, fitted.report, tuple(mass.tolist()), tuple(wrong.tolist()), grid.n_points
        )

    def represent(self, setting: int) -> State:
        """State that the method makes of a sample of the rows, at a setting of the grid."""
        random = np.random.SeedSequence(self.config.seed, spawn_key=(0, 1))
        return self.method.represent(self.survey.sample, self.grid.setting(setting), random)

    def solve(self, c: int, setting: int, state: State, left_out: list[int]) -> Descended:
        """Solve all problems without each of some folds, at cost number c of a setting with its state.

        Problem p without left_out[k] is number p * len(left_out) + k of the result.
        """
        seen = self.stream.mass - np.asarray([0 if k == WHOLE else self._fold_mass[k] for k in left_out])
        costs = np.asarray([self.grid.costs_for(float(n) or 1.0)[c] for n in seen])
        of_setting = self.method.row_losses(self.target, self.grid.setting(setting))
        losses = [loss for loss in of_setting for _ in left_out]

        def blocks() -> Iterator[DescentBlock]:
            for part in self.stream.parts(self.survey.scaled):
                Y = np.repeat(self.target.encode(part.y).T, len(left_out), axis=0)
                row_costs = costs[:, None] * self.weight(part) * (part.folds != np.asarray(left_out)[:, None])
                of_problems = np.tile(row_costs, (len(Y) // len(left_out), 1))
                yield DescentBlock(self.method.rows(part.X, state), Y, of_problems, losses)

        return descend(blocks, self.method.passes, np.random.default_rng(self.config.seed))

    def tally(self, descended: Descended, state: State) -> Tally:
        """Tally of one point, each row by the models that did not see it. descended : without each fold."""
        tally, folds = Tally(self.target), self.config.folds
        for part in self.stream.parts(self.survey.scaled):
            rows, edges = self.method.rows(part.X, state), pairwise(np.searchsorted(part.folds, range(folds + 1)))
            held = [(k, *edge) for k, edge in enumerate(edges)]
            models = range(0, len(descended.weights), folds)
            f = [np.concatenate([rows.values(descended.weights[m + k], a, z) for k, a, z in held]) for m in models]
            tally.add(np.asarray(f)[None], part.y, self.target.encode(part.y), self.weight(part))
        return tally

    def weight(self, part: StreamBlock) -> NDArray[np.float64]:
        """Factor (n,) of each row on C and on the loss."""
        return class_factors(self.config.class_weights, part.y) * part.weight

    def _path(self, setting: int, choice: int) -> StreamedPath:
        return StreamedPath(self, setting)


class StreamedPath:
    """The costs at one setting of the grid, each solved in passes over the file that all folds and problems share."""

    costs_at_once = 1

    def __init__(self, cell: StreamedCell, setting: int) -> None:
        self._cell, self._setting, self._state = cell, setting, cell.represent(setting)

    def advance(self, first: int, last: int) -> list[tuple[float, float]]:
        """Solve and score; each cost begins from zero."""
        cell, state, folds = self._cell, self._state, list(range(self._cell.config.folds))
        self._tallies = {c: cell.tally(cell.solve(c, self._setting, state, folds), state) for c in range(first, last)}
        return [point for tally in self._tallies.values() for point in tally.losses()]

    def of_folds(self, cost: int) -> list[tuple[int, float, float]]:
        """No further choices."""
        return []

    def keep(self, cost: int, choice: int) -> Kept:
        """Keep no start and no values.

        The model is solved from zero, and values would take memory of the data's size.
        """
        return Kept([], None, self._tallies[cost].wrong(0))
