"""The other ways to make probabilities, against which scripts/compare_calibrations.py holds that of -b 1."""

from __future__ import annotations

import sys
from pathlib import Path

import compare_calibrations as script
import numpy as np
import pytest
from scipy.special import expit
from shelf import put
from sklearn.isotonic import IsotonicRegression

from localsvm.data.synthetic import banana
from localsvm.targets.calibrating import Examples, softened
from localsvm.targets.classification import Classification
from localsvm.targets.probabilities import bent, coupled


def test_the_isotonic_curve_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    f = rng.normal(size=(1, 400))
    positive = rng.uniform(size=f.shape) < expit(3 * f)
    rows = Examples(f, positive, np.ones_like(f), positive[0].astype(np.intp), np.ones(400))
    p = expit(bent(script.isotonic([rows]), f[0]))
    expected = IsotonicRegression(out_of_bounds="clip").fit(f[0], softened(rows)[0])
    np.testing.assert_allclose(p, expected.predict(f[0]), atol=1e-12)
    far = np.array([-50.0, 50.0])
    np.testing.assert_allclose(expit(bent(script.isotonic([rows]), far)), expected.predict(far), atol=1e-8)


def test_pairs_that_agree_are_coupled_exactly_and_only_averaged_otherwise() -> None:
    target = Classification(np.arange(3.0), "ava")
    p = np.array([0.2, 0.3, 0.5])
    low, high = np.asarray(target.pairs).T
    pairs = (p[high] / (p[low] + p[high]))[None]
    np.testing.assert_allclose(coupled(target, pairs)[0], p)
    mean = script.mean_of_pairs(target, pairs)[0]
    assert mean.sum() == pytest.approx(1.0) and mean.max() < 0.45


@pytest.mark.parametrize(("classes", "lines"), [("two", 1), ("many", 2), ("repeats", 1), ("votes", 1)])
def test_tables_of_ratios_and_calibration_errors(
    classes: str, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    X, y = banana(300, np.random.default_rng(0))
    y = np.where((X[:, 0] > 1) & (classes == "many"), 5.0, y)
    put(tmp_path, "toy", "train", X, y)
    arguments = [str(tmp_path), classes, "--sets", "toy", "--seeds", "1", "--cell-size", "150", "-j", "1"]
    monkeypatch.setattr(sys, "argv", ["compare_calibrations.py", *arguments])
    script.main()
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| toy")]
    assert len(rows) == 2 * lines
    for losses, errors in zip(rows[::2], rows[1::2], strict=True):
        loss, *ratios = map(float, losses.split("|")[3:-1])
        assert 0.05 < loss < 0.6 and all(0.8 < ratio < 3 and ratio != 1.0 for ratio in ratios[:1])
        assert all(0.0 < float(error) < 0.5 for error in errors.split("|")[3:-1])
