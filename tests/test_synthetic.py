"""Synthetic sets: their best error against a simulation and a quadrature; the quick start's files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import norm

from localsvm.data import synthetic
from localsvm.data.readers.libsvm import read

ROOT = Path(__file__).parent.parent
SETS = {
    "higgs_like": (synthetic.higgs_like, synthetic.higgs_like_score, synthetic.higgs_like_bayes_error, 28),
    "banana": (synthetic.banana, synthetic.banana_score, synthetic.banana_bayes_error, 2),
    "ellipse": (synthetic.ellipse, synthetic.ellipse_score, synthetic.ellipse_bayes_error, 2),
    "xor": (synthetic.xor, synthetic.xor_score, synthetic.xor_bayes_error, 2),
    "two_sines": (synthetic.two_sines, synthetic.two_sines_score, synthetic.two_sines_bayes_error, 2),
    "swiss_roll": (synthetic.swiss_roll, synthetic.swiss_roll_score, synthetic.swiss_roll_bayes_error, 2),
}
ELLIPSE = [((0.5, 0.0), (1.0, 0.6)), ((0.0, 0.0), (2.0, 1.5))]  # mean and deviation of each class


@pytest.mark.fast(20)
@pytest.mark.parametrize("name", SETS)
def test_rows(name: str) -> None:
    draw, _, _, columns = SETS[name]
    X, y = draw(5000, np.random.default_rng(3))
    assert (X.shape, X.dtype, y.shape, y.dtype) == ((5000, columns), np.float32, (5000,), np.float64)
    assert set(y) == {-1.0, 1.0}
    assert 0.3 < np.mean(y == 1) < 0.7
    again, _ = draw(5000, np.random.default_rng(3))
    assert np.array_equal(X, again)


@pytest.mark.fast(20)
@pytest.mark.parametrize("name", SETS)
def test_the_bayes_rule_errs_as_computed(name: str) -> None:
    draw, score, bayes_error, _ = SETS[name]
    X, y = draw(100_000, np.random.default_rng(4))
    simulated = np.mean(np.sign(score(X)) != y)
    assert simulated == pytest.approx(bayes_error(), abs=0.005)  # more than 4 standard errors


def test_the_error_of_banana_is_the_integral() -> None:
    def risk(x2: float, x1: float) -> float:
        return 1 / (1 + np.exp(np.abs(10 * (0.8 - abs(x2 - 0.8 * x1**2 + 1.2))))) / 16

    integral, _ = dblquad(risk, -2, 2, -2, 2, epsabs=1e-5)
    assert synthetic.banana_bayes_error() == pytest.approx(integral, abs=1e-4)


def test_the_error_of_ellipse_is_the_integral() -> None:
    side = np.arange(-12, 12, 0.02) + 0.01
    X = np.stack(np.meshgrid(side, side), axis=-1)
    densities = [np.prod(norm.pdf(X, mean, deviation), axis=-1) for mean, deviation in ELLIPSE]
    integral = np.minimum(*densities).sum() * 0.02**2 / 2
    assert synthetic.ellipse_bayes_error() == pytest.approx(integral, abs=1e-6)


def test_the_error_of_ellipse_is_exact() -> None:
    assert synthetic.ellipse_bayes_error(32) == pytest.approx(synthetic.ellipse_bayes_error(256), abs=1e-13)


def test_the_score_of_ellipse() -> None:
    X = np.random.default_rng(7).standard_normal((10, 2)).astype(np.float32)
    narrow, wide = (norm.logpdf(X.astype(np.float64), mean, deviation).sum(axis=1) for mean, deviation in ELLIPSE)
    np.testing.assert_allclose(synthetic.ellipse_score(X), narrow - wide, rtol=1e-9, atol=1e-12)


def test_the_score_of_xor() -> None:
    X = np.random.default_rng(8).standard_normal((10, 2)).astype(np.float32)
    density = {m: norm.pdf(X.astype(np.float64), m, 0.4).prod(axis=1) for m in [(1, 1), (-1, -1), (1, -1), (-1, 1)]}
    expected = np.log((density[1, 1] + density[-1, -1]) / (density[1, -1] + density[-1, 1]))
    np.testing.assert_allclose(synthetic.xor_score(X), expected, rtol=1e-9, atol=1e-12)
    far = np.array([[3e4, 3e4], [-3e4, 3e4]], np.float32)
    assert np.isfinite(synthetic.xor_score(far)).all()


def test_the_arms_of_swiss_roll_are_each_other_turned_by_half() -> None:
    X, _ = synthetic.swiss_roll(1000, np.random.default_rng(9))
    assert np.hypot(*X.T).max() <= 1 + 1e-6
    np.testing.assert_allclose(synthetic.swiss_roll_score(-X), -synthetic.swiss_roll_score(X), atol=1e-9)


def test_the_score_of_higgs_like() -> None:
    X = np.random.default_rng(5).standard_normal((10, 28)).astype(np.float32)
    W = np.random.default_rng(synthetic.HIGGS_SEED).standard_normal((28, 6)) / np.sqrt(28)
    z = X.astype(np.float64) @ W
    s = 1.5 * np.tanh(2 * z[:, 0] * z[:, 1]) + z[:, 2] ** 2 - 1 + 0.8 * np.sin(3 * z[:, 3]) + 0.5 * z[:, 4]
    np.testing.assert_allclose(synthetic.higgs_like_score(X), 2 * s, rtol=1e-9)


def test_scores_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = synthetic.higgs_like(1000, np.random.default_rng(6))
    expected = synthetic.higgs_like_score(X)
    monkeypatch.setattr(synthetic, "BLOCK_ROWS", 37)
    np.testing.assert_allclose(synthetic.higgs_like_score(X), expected, rtol=1e-12)


def test_the_files_of_the_quick_start(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "develop" / "make_demo_data.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True, cwd=ROOT)
    total = 0
    for part in ("train", "test"):
        path = ROOT / "data" / f"banana.{part}.libsvm"
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()
        assert read(path).X.shape == (4000, 2)
        total += path.stat().st_size
    assert total < 500_000
