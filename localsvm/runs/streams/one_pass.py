"""Training in one pass over a file that does not fit in memory: every row is learned once.

Each binary problem has a learner for each cost, with rows of its own. Where there are several costs, each part of the
rows is decided by all learners before they learn it, and the cost with the smallest loss is chosen (progressive
validation: Blum, Kalai, Langford, COLT 1999). Rows of a block are learned in random order, blocks in that of the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from localsvm.blas import one_thread
from localsvm.data.blocks.dataset import Dense, dense_rows
from localsvm.engines.stream import Stream
from localsvm.methods.base import Fitted
from localsvm.methods.streams import Learner, LearningOnce
from localsvm.naming import opt
from localsvm.runs.cells.work import CellReport
from localsvm.runs.config import TrainingConfig
from localsvm.runs.preparation.demand import StreamDemand
from localsvm.runs.streams.survey import StreamSurvey
from localsvm.selection.tally import Tally
from localsvm.targets.classification import class_factors, classes_of
from localsvm.threads import Threads

Floats = NDArray[np.float64]
SHARE = 2  # rows that are kept, over those of a part
LEAST_PARTS = 8  # of all rows
SAMPLE_ROWS = 2000  # from which the mean and the default gammas are


class StreamPart(NamedTuple):
    """Some rows: X (n, d) float64 from the mean, labels y (n,), weights (n,), numbers (n,) of the rows in the file."""

    X: Floats
    y: Floats
    weight: Floats
    number: NDArray[np.int64]


class OnePassCell:
    """The one cell of all rows of a file, whose learners hold some rows each."""

    def __init__(self, stream: Stream, survey: StreamSurvey, config: TrainingConfig, demand: StreamDemand) -> None:
        method = config.method.learning_once
        assert method is not None, "asked for before"
        self.stream, self.survey, self.demand = stream, survey, demand
        self.method: LearningOnce = method
        self.target, self.seed = classes_of(config.target(survey.observed)), config.seed
        self.costs = method.grid_for(stream.features).costs
        self._class_weights = config.class_weights
        self._most = max(1, min(method.kept_rows // SHARE, -(-stream.rows // LEAST_PARTS)))
        rows = dense_rows(survey.sample, np.arange(survey.sample.shape[0]))
        self._centre = rows.mean(axis=0, dtype=np.float64)
        spread = 2.0 * float(np.square(rows - self._centre).sum()) / max(1, len(rows))
        self.gammas = method.gammas_of(spread, stream.features)

    def fit(self, jobs: int) -> tuple[Fitted, CellReport]:
        """Learn all rows, with the cost that decides best."""
        learners, problems, tally = self._learners(), self.target.n_problems, Tally(self.target)
        several, best = len(self.costs) > 1, 0
        with Threads(self._threads(jobs)) as threads, one_thread():  # products of several threads differ
            for i, part in enumerate(self._parts()):
                Y = self.target.encode(part.y)
                if several and i:
                    values = threads.map(lambda k, X=part.X: learners[k].values(X), len(learners))  # type: ignore[misc]
                    tally.add(np.reshape(values, (len(self.costs), problems, -1)), part.y, Y, part.weight)
                new = [self._rows(part, Y, cost, p) for cost in self.costs for p in range(problems)]
                threads.map(lambda k, new=new: learners[k].learn(new[k]), len(learners))  # type: ignore[misc]
            if several:
                losses = tally.losses()
                best = min(range(len(losses)), key=lambda c: losses[c])
            chosen = learners[best * problems : (best + 1) * problems]
            threads.map(lambda p: chosen[p].finish(), problems)
        fitted = self.method.pack_learned(chosen, self.costs[best], self.gammas, self._moved_back)
        mass, wrong = (tally.mass, tally.wrong(best)) if several else (np.empty(0), np.empty(0))
        report = CellReport(
            self.stream.rows, 0.0, fitted.report, tuple(mass.tolist()), tuple(wrong.tolist()), len(self.costs)
        )
        return fitted, report

    def _learners(self) -> list[Learner]:
        """Learners, for each cost one a problem."""
        seeds = np.random.SeedSequence(self.seed, spawn_key=(0, 2)).spawn(len(self.costs) * self.target.n_problems)
        return [self.method.learner(self.gammas, self.stream.features, np.random.default_rng(s)) for s in seeds]

    def _threads(self, jobs: int) -> int:
        """Number of threads that the memory has room for; RunError where it has none for one."""
        count = min(jobs, len(self.costs) * self.target.n_problems)
        needs = [self.demand.one_pass(self.method, self.target, self._most, k + 1) for k in range(count)]
        count = max(1, sum(map(self.stream.fits, needs)))
        self.stream.fit_in(
            f"the rows that {opt.online('full')} keeps need",
            needs[count - 1],
            f"fewer {opt.kept_rows}, or more {opt.memory}",
        )
        return count

    def _parts(self) -> Iterator[StreamPart]:
        """All rows, a block after the other, each in random order and in equal parts."""
        rng, first = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(0, 1))), 0
        for block in self.stream.parts(self.survey.scaled):
            n = len(block.y)
            for rows in np.array_split(rng.permutation(n), -(-n // self._most)):
                y = block.y[rows]
                weight = block.weight[rows] * class_factors(self._class_weights, y)
                yield StreamPart(dense_rows(block.X, rows) - self._centre, y, weight, first + rows)
            first += n

    def _rows(self, part: StreamPart, Y: Floats, cost: float, problem: int) -> Any:
        """Rows of a part that take part in a problem."""
        rows = np.flatnonzero(Y[:, problem])
        return self.method.part(part.X[rows], Y[rows, problem], cost * part.weight[rows], part.number[rows])

    def _moved_back(self, anchors: Floats) -> Dense:
        """Anchors as they were read and scaled."""
        return np.asarray(anchors + self._centre, np.float32)
