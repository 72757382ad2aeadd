"""Draws of rows to learn from, by what a row is or by its number: the same rows on every engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localsvm.data.blocks.numbering import hashed
from localsvm.engines.base import Block, Head
from localsvm.features.ranks import sample_rows
from localsvm.partition.two_step import draw_key
from localsvm.representations.baselines import BASELINE_ROWS, BASELINES
from localsvm.representations.metric_learning import LearningPlan
from localsvm.runs.config import TrainingConfig

LEARN_SHARE, MOST_LEARN = 0.8, 100_000  # rows that a metric is learned from


def learn_rows(rows: int, asked: str) -> int:
    """Number of rows, of so many, that a metric is learned from. asked : the metric."""
    return min(int(LEARN_SHARE * rows), BASELINE_ROWS if asked in BASELINES else MOST_LEARN)


@dataclass(frozen=True)
class MetricDraw:
    """Draw of the rows that a metric is learned from: by their values or groups, so that these go together.

    Attributes
    ----------
    bound, key : of the hashes.
    before : rows from this number on are not drawn.
    """

    bound: int
    key: int
    before: int

    @classmethod
    def of(cls, config: TrainingConfig, rows: int) -> MetricDraw:
        """Draw from so many rows."""
        before = int(LEARN_SHARE * rows) if config.blocks else rows
        bound = min((learn_rows(rows, config.metric_name) << 64) // before, (1 << 64) - 1)
        return cls(bound, draw_key(LearningPlan.rng(config.seed, -1, 10)), before)

    def __call__(self, block: Block) -> NDArray[np.bool_]:
        """Mask (n,) of the rows of a block that are drawn."""
        if block.group is not None:
            return hashed(block.group.view(np.uint64), self.key) < np.uint64(self.bound)
        return (hashed(block.contents, self.key) < np.uint64(self.bound)) & (block.numbers < self.before)


@dataclass(frozen=True)
class RankDraw:
    """Draw of the rows that ranks are found from: about as many as `sample_rows` says, by their numbers.

    Attributes
    ----------
    bound, key : of the hashes.
    """

    bound: int
    key: int

    @classmethod
    def of(cls, config: TrainingConfig, head: Head) -> RankDraw:
        """Draw from the rows of a head."""
        bound = min((sample_rows(head.features) << 64) // head.rows, (1 << 64) - 1)
        return cls(bound, draw_key(LearningPlan.rng(config.seed, -1, 12)))

    def __call__(self, block: Block) -> NDArray[np.bool_]:
        """Mask (n,) of the rows of a block that are drawn."""
        return hashed(block.numbers, self.key) <= np.uint64(self.bound)
