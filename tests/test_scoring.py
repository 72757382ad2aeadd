"""The scores of probabilities, against scikit-learn's."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from localsvm.errors import DataError
from localsvm.runs.predict import Predicted
from localsvm.runs.prediction.scores import ProbabilityScores

MIB = 1 << 20


def test_counting_takes_memory_that_does_not_grow() -> None:
    p, codes, labels = drawn(4)
    p, codes = np.repeat(p, 20, axis=0), np.repeat(codes, 20)  # 100 000 rows, 3.2 MB of probabilities
    scores, block = ProbabilityScores(labels), Predicted(labels[codes], np.empty((len(p), 0)), labels[codes], p)
    tracemalloc.start()
    scores.add(block)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MIB, peak


def drawn(classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(classes, 0.3), size=5000)
    codes = (rng.random((5000, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, classes - 1)
    return p, codes, np.arange(classes) * 2.0 + 1.0


def scored(p: np.ndarray, y: np.ndarray, labels: np.ndarray) -> ProbabilityScores:
    scores = ProbabilityScores(labels)
    for part in np.array_split(np.arange(len(y)), 7):
        scores.add(Predicted(labels[p[part].argmax(axis=1)], np.empty((len(part), 0)), y[part], p[part]))
    return scores


@pytest.mark.parametrize("classes", [2, 4])
def test_scores_agree_with_scikit_learn(classes: int) -> None:
    p, codes, labels = drawn(classes)
    scores = scored(p, labels[codes], labels).as_dict()
    assert scores["rows"] == 5000
    assert scores["log_loss"] == pytest.approx(-np.log(p[np.arange(5000), codes].clip(1e-15)).mean())
    squares = ((p - np.eye(classes)[codes]) ** 2).sum(axis=1).mean()
    assert scores["brier_score"] == pytest.approx(squares if classes > 2 else brier_score_loss(codes, p[:, 1]))
    for k, known in enumerate(scores["classes"]):
        assert known["label"] == labels[k]
        assert known["roc_area"] == pytest.approx(roc_auc_score(codes == k, p[:, k]), abs=1e-4)
        assert known["average_precision"] == pytest.approx(average_precision_score(codes == k, p[:, k]), abs=2e-3)
    assert scores["expected_calibration_error"] < 0.03
    assert sum(b["rows"] for b in scores["reliability"]) == 5000


def test_wrong_probabilities_are_seen() -> None:
    p, codes, labels = drawn(2)
    sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    honest, overconfident = (scored(q, labels[codes], labels).as_dict() for q in (p, sharp))
    assert overconfident["expected_calibration_error"] > 0.05 > honest["expected_calibration_error"]


def test_a_class_that_does_not_occur_has_no_curve() -> None:
    p, codes, labels = drawn(3)
    kept = codes < 2
    scores = scored(p[kept], labels[codes[kept]], labels).as_dict()
    assert scores["classes"][2]["roc_area"] is None and scores["macro_roc_area"] is not None


def test_a_label_that_the_model_does_not_know_is_named() -> None:
    p, codes, labels = drawn(2)
    y = labels[codes]
    y[4321] = 0.0
    with pytest.raises(DataError, match="row 4322 has the label 0, which the model does not know"):
        scored(p, y, labels)
