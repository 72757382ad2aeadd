"""The mean of members with geometries of their own: its weights, and the error that it has on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.dealing import Mates, folds_of_groups
from localsvm.data.blocks.numbering import hashed
from localsvm.runs.cells.records import Record, unpack
from localsvm.runs.config import TrainingConfig
from localsvm.selection.averaging import member_weights
from localsvm.targets.base import Target
from localsvm.targets.classification import class_factors
from localsvm.targets.regression import Regression

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
SAMPLE_VALUES = 1 << 22  # held-out values, from which weights and error are found
HALVES_KEY = (1 << 32) - 3  # begins the names of the random numbers of what is sampled and halved, and of no cell


@dataclass(frozen=True)
class Averaged:
    """The mean of members.

    Attributes
    ----------
    weights : (members,) of their values, whose sum is 1; None where all weigh the same.
    wrong, mass : (parts,) weight of the held-out rows that the mean decides wrongly, and of all; see `Target.wrong`.
    recalls : share of right rows of each class, where they are scored class by class; else None.
    error : of the held-out rows; None where no row counts. See `Target.error`.
    """

    weights: Floats | None
    wrong: Floats
    mass: Floats
    recalls: list[float | None] | None
    error: float | None


def averaged(
    config: TrainingConfig, target: Target, records: Mapping[str, Record], repeats: Sequence[Sequence[str]], rows: int
) -> Averaged:  # fmt: skip
    """Find the weights of members by their held-out values, of a sample of the rows where there are very many.

    Parameters
    ----------
    target : of the run.
    records : of cells, by their names; with `records.held`.
    repeats : names of the records of each member's cells.
    rows : of the run.
    """
    held = held_rows(config, target, records, repeats, np.arange(rows, dtype=np.int64))
    Y, strata = target.encode(held.y), target.strata(held.y)
    rng = np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=(HALVES_KEY,)))
    halves = folds_of_groups(strata, 2, rng, held.mates)
    answers = target.answers

    def wrongly(mean: Floats, rows: Numbers) -> float:
        return float(target.wrong(mean[None], held.y[rows], Y[rows], held.weight[rows])[0].sum())

    loss, counted = (target.total, None) if isinstance(target, Regression) else (None, wrongly)
    weights = member_weights(held.values[:, :answers], Y[:, :answers], held.weight, halves, loss, counted)
    mean = held.mean(weights)
    wrong, mass = target.wrong(mean[None], held.y, Y, held.weight)[0][0], target.mass(held.y, held.weight)
    return Averaged(weights, wrong, mass, target.recalls(wrong, mass), target.error(wrong, mass))


def held_rows(
    config: TrainingConfig, target: Target, records: Mapping[str, Record], repeats: Sequence[Sequence[str]],
    rows: Numbers, chosen: bool = False,
) -> HeldRows:  # fmt: skip
    """Held-out values of the rows with these ascending numbers that count, bounded where several are averaged.

    Of very many rows they are those of a sample.

    chosen : whether rows that chose the metric count, too; other arguments are as of `averaged`.
    """
    sample = _sample(rows, len(repeats) * target.n_problems, config.seed)
    held = HeldRows.of(records, repeats, sample, target.n_problems, chosen)
    held.weight *= class_factors(config.class_weights, held.y)
    if len(repeats) > 1:
        held.values = np.ascontiguousarray(target.bounded(held.values.swapaxes(1, 2)).swapaxes(1, 2))
    return held


def _sample(numbers: Numbers, values: int, seed: int) -> Numbers:
    """The numbers of rows whose held-out values are looked at, all or some of these. values : that a row has."""
    share = max(1, -(-len(numbers) * values // SAMPLE_VALUES))
    if share == 1:
        return numbers
    key = int(np.random.SeedSequence(seed, spawn_key=(HALVES_KEY, 1)).generate_state(1, np.uint64)[0])
    return np.asarray(numbers[hashed(numbers, key) % np.uint64(share) == 0])


@dataclass
class HeldRows:
    """Held-out values of rows that all members have, and that count.

    Attributes
    ----------
    numbers : (n,) int64 ascending, of the rows.
    values : (members, problems, n) float64.
    y, weight : (n,) labels, and weights in the error.
    mates : which rows stay together.
    """

    numbers: Numbers
    values: Floats
    y: Floats
    weight: Floats
    mates: Mates

    @classmethod
    def of(
        cls, records: Mapping[str, Record], repeats: Sequence[Sequence[str]], sample: Numbers, problems: int,
        chosen: bool,
    ) -> Self:  # fmt: skip
        """Values of the rows of a sample; chosen : see `held_rows`."""
        values = np.full((len(repeats), problems, len(sample)), np.nan, np.float32)
        y, weight, mates = np.zeros(len(sample)), np.zeros(len(sample)), sample.copy()
        for member, names in enumerate(repeats):
            for name in names:
                record = records[name]
                place = np.searchsorted(sample, record["held/numbers"])
                mine = np.flatnonzero(sample[np.minimum(place, len(sample) - 1)] == record["held/numbers"])
                place = place[mine]
                values[member][:, place] = unpack(record).values[:, mine]
                y[place], weight[place] = record["held/y"][mine], _weight(record, chosen)[mine]
                if "held/mates" in record:
                    mates[place] = record["held/mates"][mine]
        # rows that some member has merged into copies of them, or whose values count in no error, say nothing
        known = np.flatnonzero((weight > 0) & ~np.isnan(values[:, 0]).any(axis=0))
        kept = values[:, :, known].astype(np.float64)
        return cls(sample[known], kept, y[known], weight[known], Mates(mates[known], whole=True))

    def mean(self, weights: Floats | None) -> Floats:
        """The mean (problems, n) of the members' values; weights : of the members, None where all weigh the same."""
        equal = np.full(len(self.values), 1.0 / len(self.values))
        return np.tensordot(equal if weights is None else weights, self.values, 1)


def _weight(record: Record, chosen: bool) -> Floats:
    fresh = None if chosen else record.get("held/fresh")
    return np.asarray(record["held/mass"] if fresh is None else record["held/mass"] * fresh)
