"""Scores of probabilities against the labels of a file, in bounded memory: counts by log odds, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localsvm.errors import DataError
from localsvm.naming import opt
from localsvm.runs.predict import Predicted

Floats = NDArray[np.float64]
BINS = 4096  # of log odds, each 1/64 wide; the first and the last hold what is beyond
PER_UNIT = 64.0
RELIABILITY_BINS = 15
SMALLEST = 1e-15  # a probability in the log loss
ELEMENTS = 1 << 16  # probabilities that are counted at once: bounds scratch arrays to some 5 MiB


@dataclass(frozen=True)
class Curves:
    """One class against the rest, by falling probability; all float64.

    Attributes
    ----------
    false_positive, true_positive : of the ROC curve, from none predicted to all.
    precision, recall : of the precision-recall curve, from all to none.
    area, average_precision : under the ROC curve; of the precision-recall curve.
    """

    false_positive: Floats
    true_positive: Floats
    precision: Floats
    recall: Floats
    area: float
    average_precision: float


class ProbabilityScores:
    """Log loss, Brier score, reliability and curves of the rows that were added.

    Parameters
    ----------
    labels : (classes,) float64, ascending, of the model.
    names : what the labels stand for; None where they are numbers themselves.
    """

    of = "label"

    def __init__(self, labels: Floats, names: Sequence[Any] | None = None) -> None:
        self.labels, self.names, self.rows = labels, labels.tolist() if names is None else names, 0
        self._seen = 0  # rows, those without a label among them
        self._log_loss = self._squares = 0.0
        # by log odds: rows that are not of the class and those that are; by those of the most probable label: rows,
        # right ones and summed probability
        self._of_class = np.zeros((2, len(labels), BINS))
        self._top = np.zeros((3, BINS))

    def add(self, block: Predicted) -> None:
        """Count a block; rows without a label do not count. DataError for a label that the model does not know."""
        p, y = block.probabilities, block.y
        assert p is not None
        codes = np.minimum(self.labels.searchsorted(y), len(self.labels) - 1)
        known = ~np.isnan(y)
        if not np.array_equal(self.labels[codes[known]], y[known]):
            row = int(np.argmax(known & (self.labels[codes] != y)))
            label = f"the label {y[row]:g}, which" if np.isfinite(y[row]) else "a label that"  # inf stands for a text
            raise DataError(
                f"row {self._seen + row + 1} has {label} the model does not know: {opt.report} is for files with its "
                "labels; leave it out"
            )
        self._seen += len(y)
        if not known.all():
            p, codes = p[known], codes[known]
        step = max(1, ELEMENTS // len(self.labels))
        for first in range(0, len(codes), step):
            self._count(p[first : first + step], codes[first : first + step])
        self.rows += len(codes)

    def _count(self, p: Floats, codes: NDArray[np.intp]) -> None:
        from sklearn.metrics import log_loss

        rows, truth = np.arange(len(codes)), np.eye(len(self.labels))[codes]
        known = np.arange(len(self.labels))
        self._log_loss += float(log_loss(codes, np.maximum(p, SMALLEST), normalize=False, labels=known))
        self._squares += float(((p - truth) ** 2).sum())
        bins = _bins(p)
        for k in range(len(self.labels)):
            for side in (0, 1):
                self._of_class[side, k] += np.bincount(bins[truth[:, k] == side, k], minlength=BINS)
        top = p.argmax(axis=1)
        for i, weight in enumerate((None, (top == codes).astype(np.float64), p[rows, top])):
            self._top[i] += np.bincount(bins[rows, top], weight, minlength=BINS)

    def reliability(self) -> Floats:
        """Rows, share of right labels and mean probability of the most probable label, (bins, 3) float64.

        The 15 bins have about equal counts. (scikit-learn's calibration_curve takes all rows at once, not counts of
        them.)
        """
        rows = self._top[0].cumsum()
        group = np.minimum((rows - self._top[0] / 2) * RELIABILITY_BINS // max(1.0, rows[-1]), RELIABILITY_BINS - 1)
        sums = np.stack([np.bincount(group.astype(np.intp), x, minlength=RELIABILITY_BINS) for x in self._top], axis=1)
        sums = sums[sums[:, 0] > 0]
        return np.column_stack([sums[:, 0], sums[:, 1:] / sums[:, :1]])

    def curves(self, k: int | None = None) -> Curves | None:
        """Curves of a class, or of all classes' rows together; None where no row, or every one, is of the class."""
        from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

        counts = self._of_class[:, k] if k is not None else self._of_class.sum(axis=1)
        if not counts.any(axis=1).all():
            return None
        side, bins = counts.nonzero()
        weight = counts[side, bins]
        false, true, _ = roc_curve(side, bins, sample_weight=weight, drop_intermediate=False)
        precision, recall, _ = precision_recall_curve(side, bins, sample_weight=weight)
        average = average_precision_score(side, bins, sample_weight=weight)
        return Curves(false, true, precision, recall, float(auc(false, true)), float(average))

    def as_dict(self) -> dict[str, Any]:
        """Entries of report.json.

        With two classes the Brier score is that of one of them, with more the sum over all.
        """
        rows, curves = max(1, self.rows), [self.curves(k) for k in range(len(self.labels))]
        bins = self.reliability()
        share = bins[:, 0] / max(1.0, bins[:, 0].sum())
        known = [c for c in curves if c is not None]
        return {
            "rows": self.rows,
            "log_loss": self._log_loss / rows,
            "brier_score": self._squares / rows / (2 if len(self.labels) == 2 else 1),
            "expected_calibration_error": float(share @ abs(bins[:, 1] - bins[:, 2])),
            "macro_roc_area": float(np.mean([c.area for c in known])) if known else None,
            "macro_average_precision": float(np.mean([c.average_precision for c in known])) if known else None,
            "classes": [
                {
                    "label": name,
                    "roc_area": None if c is None else c.area,
                    "average_precision": None if c is None else c.average_precision,
                }
                for name, c in zip(self.names, curves, strict=True)
            ],
            "reliability": [dict(zip(("rows", "right", "probability"), b, strict=True)) for b in bins.tolist()],
        }


def _bins(p: Floats) -> NDArray[np.intp]:
    """The number of the bin of log odds."""
    p = np.clip(p, 1e-16, 1.0 - 1e-16)
    return np.clip((np.log(p) - np.log1p(-p)) * PER_UNIT + BINS / 2, 0, BINS - 1).astype(np.intp)
