"""Training on a file that does not fit in memory: every pass reads it anew, block by block.

One cell of all rows, a linear method, and stochastic subgradients (solvers/stochastic.py). All folds and binary
problems of a point of the grid go along in the same passes, so that memory holds some blocks of rows, the weights of
these, and a sample of the rows, from which centres and landmarks are made. Rows of a block are visited in random order,
blocks in that of the file: a file that is sorted by its labels is to be shuffled first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from localsvm.data.stream import Part, Stream, Survey
from localsvm.errors import OptionError
from localsvm.methods.base import Fitted, Grid, State
from localsvm.methods.linear_base import LinearMethod
from localsvm.partition.none import NoPartition
from localsvm.representations.kmeans import ROWS_PER_CLUSTER
from localsvm.runs.division import TrainingConfig, check_features, check_labels
from localsvm.runs.progress import Clock, Observer, Silent
from localsvm.runs.training import Summary, summarise
from localsvm.selection.search import Search
from localsvm.selection.tally import Tally
from localsvm.solvers.linear import Solution
from localsvm.solvers.stochastic import Block, Descended, descend
from localsvm.store.model import write_model
from localsvm.targets.classification import Scheme

BLOCK_BYTES = 32 << 20  # of text: rows are shuffled within a block, and no further
SAMPLE_ROWS = 20_000  # at least, of which centres and landmarks are made
WHOLE = -1  # no fold is left out


def train_stream(
    path: str | Path,
    config: TrainingConfig,
    output: str | Path,
    *,
    zero_based: bool = False,
    jobs: int = 1,
    force: bool = False,
    observer: Observer | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Summary:
    """Train on the file and write the model to `output`. jobs: threads that read; the model does not depend on them.

    Raises OptionError for what streams cannot do, DataError for the file, RunError.
    """
    method = _check(config)
    clock = Clock(observer or Silent())
    with clock("read"):
        stream = Stream(path, config.folds, zero_based=zero_based, jobs=jobs, block_bytes=block_bytes)
        check_features(stream.features)
        rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(0, 0)))
        most = max(SAMPLE_ROWS, ROWS_PER_CLUSTER * method.sizes(stream.features)[0])
        survey = stream.survey(config.scale, most, rng)
        check_labels(survey.labels, stream.rows, config)
    config = config.for_classes(len(survey.labels))
    with clock("train"):
        fitted = _Run(stream, survey, method, config).fit()
    with clock("write"):
        write_model(
            output,
            config=config.as_dict() | {"features": stream.features, "dense": stream.dense, "partition": "none"},
            labels=survey.labels,
            scaling=(survey.scaling.mode, survey.scaling.state()),
            partition=("none", NoPartition().state()),
            cells=[fitted.state],
            n_cells=1,
            force=force,
        )
    class_rows, sizes = [int(n) for n in survey.class_rows], np.asarray([stream.rows])
    return summarise(survey.labels, class_rows, stream.features, "none", sizes, [fitted.report], clock.seconds)


def _check(config: TrainingConfig) -> LinearMethod:
    method = config.method
    if not isinstance(method, LinearMethod) or method.solver != "sgd":
        raise OptionError("--stream is for linear methods with -s sgd; try -m linear -s sgd")
    if config.partition not in (None, "none"):
        raise OptionError(f"--stream trains on all rows at once, not in cells; leave -P {config.partition} out")
    if config.select == "vote":
        raise OptionError("--stream keeps one model of all rows; leave --select vote out")
    return method


class _Run:
    """The points of the grid one after the other, then the chosen one on all rows."""

    def __init__(self, stream: Stream, survey: Survey, method: LinearMethod, config: TrainingConfig) -> None:
        self.stream, self.survey, self.method, self.config = stream, survey, method, config
        self.scheme = Scheme(survey.labels, config.multiclass)
        self.factors = np.ones(len(survey.labels))  # on the cost, by class
        for label, factor in config.class_weights:
            self.factors[survey.labels == label] = factor
        self.fold_rows = stream.fold_rows()

    def fit(self) -> Fitted:
        """Choose a point by cross-validation, where there is a choice, and solve it."""
        grid = self.method.grid_for(self.stream.features)
        c, g, report = 0, 0, {}
        if grid.n_points > 1:
            loss, c, g = self._choose(grid)
            weight = float(self.factors @ self.survey.class_rows)
            report = {"weight": weight, "wrong": loss * weight}
        state = self._state(grid, g)
        found = self._solve(grid, c, state, [WHOLE])
        models = [
            (p, WHOLE, Solution(w, None, 0.0, reached))
            for p, (w, reached) in enumerate(zip(found.weights, found.reports, strict=True))
        ]
        fitted = self.method.packed(state, float(grid.costs_for(self.stream.rows)[c]), models)
        return Fitted(fitted.state, fitted.report | report | {"support_vectors": found.support})

    def _state(self, grid: Grid, line: int) -> State:
        random = np.random.SeedSequence(self.config.seed, spawn_key=(0, 1))
        return self.method.represent(self.survey.sample, grid.line(line), random)

    def _choose(self, grid: Grid) -> tuple[float, int, int]:
        """Loss, cost index and line index of the best point."""
        search, loss = Search(self.config.grid), np.full((len(grid.lines), grid.n_costs), np.nan)
        best = (np.inf, np.inf, 0, 0)
        while lines := search.next_lines(loss, grid.ordered):
            best = min(best, *(self._line(grid, g, search, loss[g]) for g in lines))
        return best[0], *best[2:]

    def _line(self, grid: Grid, line: int, search: Search, loss: NDArray[np.float64]) -> tuple[float, float, int, int]:
        """(loss, hinge, cost index, line index) of the best point of a line: what points are compared by."""
        state = self._state(grid, line)
        points: list[tuple[float, float, int, int]] = []
        for first, last in search.stretches(grid.n_costs):
            for c in range(first, last):
                found = self._solve(grid, c, state, list(range(self.config.folds)))
                points.append((*self._held_out(found, state), c, line))
                loss[c] = points[-1][0]
            if search.ends(loss[:last]):
                break
        return min(points)

    def _solve(self, grid: Grid, c: int, state: State, left_out: list[int]) -> Descended:
        """All binary problems without each of some folds: problem p without left_out[k] is number p * folds + k."""
        seen = self.stream.rows - np.asarray([0 if k == WHOLE else self.fold_rows[k] for k in left_out])
        costs = np.asarray([grid.costs_for(max(1.0, float(n)))[c] for n in seen])

        def blocks() -> Iterator[Block]:
            for part in self.stream.parts(self.survey.scaling):
                Y = np.repeat(self.scheme.targets(part.y).T, len(left_out), axis=0)
                own = costs[:, None] * self._weight(part) * (part.folds != np.asarray(left_out)[:, None])
                yield Block(self.method.rows(part.X, state), Y, np.tile(own, (len(Y) // len(left_out), 1)))

        return descend(blocks, self.method.passes, np.random.default_rng(self.config.seed))

    def _held_out(self, found: Descended, state: State) -> tuple[float, float]:
        """Share of the rows that the models which did not see them get wrong, and the sum of their hinge losses."""
        tally, folds = Tally(self.scheme, 1), self.config.folds
        for part in self.stream.parts(self.survey.scaling):
            rows, edges = self.method.rows(part.X, state), pairwise(np.searchsorted(part.folds, range(folds + 1)))
            held = [(k, *edge) for k, edge in enumerate(edges)]
            models = range(0, len(found.weights), folds)
            f = [np.concatenate([rows.values(found.weights[m + k], a, z) for k, a, z in held]) for m in models]
            tally.add(np.asarray(f)[None], part.y, self._weight(part))
        return tally.losses()[0]

    def _weight(self, part: Part) -> NDArray[np.float64]:
        return self.factors[np.searchsorted(self.scheme.labels, part.y)]
