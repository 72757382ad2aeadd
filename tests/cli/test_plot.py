"""lsvm plot draws the weights of a metric, and the plane of one onto two dimensions beside that of PCA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import error, invoke, usage_error
from matplotlib.collections import PathCollection
from sklearn.decomposition import PCA

from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from localsvm.features.joint import Joint
from localsvm.runs.predict import LocalModel
from localsvm.runs.prediction.picture import feature_plane, principal_plane, sampled, shown

POINT = ("-g", 0.5, "-C", 1, "-j", 1, "-q")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file whose classes are the inside and the outside of a disc in two of 34 columns; the third has no value."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 34))
    X[:, 2] = 0.0
    path = tmp_path_factory.mktemp("plot") / "rows.libsvm"
    write(path, X, np.where(np.hypot(X[:, 4], X[:, 32]) < 1.2, 1, -1))
    return path


@pytest.fixture(scope="module")
def plane(rows: Path) -> Path:
    invoke("train", *POINT, "--metric", "rank:2", rows, rows.with_name("plane.h5"))
    return rows.with_name("plane.h5")


def test_bars_are_the_weights_the_largest_first(plane: Path, tmp_path: Path, figures: list[Any]) -> None:
    assert invoke("plot", plane, tmp_path / "w.svg").output == ""
    assert (tmp_path / "w.svg").read_text().startswith("<?xml")
    (axes,) = figures[0].axes
    heights = [bar.get_height() for bar in axes.patches]
    with LocalModel(plane) as model:
        assert model.chain.metric is not None
        importance = model.chain.metric.importance()
        numbers = model.chain.columns.known[np.argsort(-importance)] + 1
    assert heights == sorted(importance, reverse=True)[:30]
    assert [label.get_text() for label in axes.get_xticklabels()] == [str(n) for n in numbers[:30]]
    assert axes.get_title() == "the largest 30 of 33 features"


def test_the_plane_has_rows_support_vectors_and_decision_values(
    rows: Path, plane: Path, tmp_path: Path, figures: list[Any]
) -> None:
    invoke("plot", "--data", rows, plane, tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    learned, principal = figures[0].axes[:2]
    with LocalModel(plane) as model:
        support = model.file.cell(0)["support"]
    places = {part.get_label(): part.get_offsets() for part in learned.collections}
    assert {"-1", "1", "support vectors"} <= places.keys()
    assert len(places["-1"]) + len(places["1"]) == 120
    np.testing.assert_array_equal(places["support vectors"], support)
    every = {tuple(place) for place in np.concatenate([places["-1"], places["1"]]).tolist()}
    assert {tuple(place) for place in support.tolist()} <= every
    assert [text.get_text() for text in principal.get_legend().get_texts()] == ["-1", "1"]


@pytest.mark.parametrize("options", [("--metric", "rank:2"), ("-m", "svml", "--form", "rank:2")])
def test_decision_values_of_the_plane_are_those_of_the_rows(
    options: tuple[str, ...], rows: Path, tmp_path: Path
) -> None:
    invoke("train", *(POINT if "svml" not in options else ("-j", 1, "-q")), *options, rows, tmp_path / "m.h5")
    data = read(rows)
    with shown(tmp_path / "m.h5") as view, LocalModel(tmp_path / "m.h5") as model:
        X, y = sampled(view.rows(rows), 1000, np.random.default_rng(0))
        assert view.decide is not None and view.support is not None
        values = view.decide(np.asarray(view.metric.apply(X)))
        np.testing.assert_allclose(values, model.decision_function(data.X), atol=1e-5)
        assert view.support.shape[1] == view.metric.rank == 2
    np.testing.assert_array_equal(y, data.y)


def test_classes_are_regions_and_cells_have_no_support_vectors(rows: Path, tmp_path: Path, figures: list[Any]) -> None:
    data = read(rows)
    data.y[data.X[:, 0] > 0.8] = 3.0
    write(tmp_path / "three.libsvm", data.X, data.y)
    cells = ("-m", "linear", "-C", 1, "-P", "kmeans", "-c", 60, "-j", 1, "-q")
    invoke("train", *cells, "--metric", "rank:2", tmp_path / "three.libsvm", tmp_path / "m.h5")
    invoke("plot", "--data", rows, tmp_path / "m.h5", tmp_path / "p.pdf")
    names = [text.get_text() for text in figures[0].axes[0].get_legend().get_texts()]
    assert names == ["-1", "1"] and len(figures[0].axes) == 2  # no bar of decision values
    assert len(figures[0].axes[0].collections) == 3


def test_a_partition_file_has_rows_alone(rows: Path, tmp_path: Path, figures: list[Any]) -> None:
    invoke("partition", "--metric", "rank:2", "-q", rows, tmp_path / "cells.h5")
    invoke("plot", "--data", rows, tmp_path / "cells.h5", tmp_path / "p.png")
    names = [text.get_text() for text in figures[0].axes[0].get_legend().get_texts()]
    assert names == ["-1", "1"] and len(figures[0].axes) == 2


def test_weights_of_members_are_their_means(rows: Path, tmp_path: Path, figures: list[Any]) -> None:
    invoke("train", *POINT, "--metric", "auto", "--repeats", 2, rows, tmp_path / "m.h5")
    invoke("plot", tmp_path / "m.h5", tmp_path / "p.png")
    heights = [bar.get_height() for bar in figures[0].axes[0].patches]
    with LocalModel(tmp_path / "m.h5") as model:
        metric = model.chain.metric
    assert isinstance(metric, Joint) and len(metric.parts) == 2
    means = (metric.parts[0].importance() + metric.parts[1].importance()) / 2.0
    np.testing.assert_allclose(heights, np.sort(means)[::-1][: len(heights)])
    message = usage_error("plot", "--data", rows, tmp_path / "m.h5", tmp_path / "q.png")
    assert "train with --repeats 1" in message


def test_what_cannot_be_drawn_is_refused(rows: Path, plane: Path, tmp_path: Path) -> None:
    invoke("train", *POINT, "--metric", "diag", rows, tmp_path / "d.h5")
    message = usage_error("plot", "--data", rows, tmp_path / "d.h5", tmp_path / "p.png")
    assert "a metric onto 2 dimensions, and this one has 33; learn one by --metric rank:2" in message
    invoke("train", *POINT, "--metric", "none", rows, tmp_path / "e.h5")
    assert "no metric in this file" in error("plot", tmp_path / "e.h5", tmp_path / "p.png")
    assert "pictures end in" in usage_error("plot", plane, tmp_path / "p.gif")
    assert "written into a file" in usage_error("plot", plane, "-")
    assert "would replace" in error("plot", "--force", plane, plane)
    (tmp_path / "there.png").touch()
    assert "exists already" in error("plot", plane, tmp_path / "there.png")
    three = read(rows)
    three.y[:40] = 3.0
    write(tmp_path / "three.libsvm", three.X, three.y)
    invoke("train", "-m", "svml", "--form", "diag", "-j", 1, "-q", tmp_path / "three.libsvm", tmp_path / "s.h5")
    assert "several metrics, of problems, folds or cells" in error("plot", tmp_path / "s.h5", tmp_path / "p.png")
    assert not (tmp_path / "p.png").exists()


def test_a_plane_has_one_scale_and_says_what_is_outside(
    rows: Path, plane: Path, tmp_path: Path, figures: list[Any]
) -> None:
    data = read(rows)
    data.X[0] = 1e20
    write(tmp_path / "far.libsvm", data.X, data.y)
    invoke("plot", "--data", tmp_path / "far.libsvm", plane, tmp_path / "p.png")
    for axes in figures[0].axes[:2]:
        assert np.ptp(axes.get_xlim()) == pytest.approx(np.ptp(axes.get_ylim()))
        assert axes.get_box_aspect() == 1.0
        assert axes.get_title().endswith("; 1 of 120 rows are outside")
    data.X[0] = np.finfo(np.float32).max
    write(tmp_path / "beyond.libsvm", data.X, data.y)
    model = tmp_path / "small.h5"
    write(tmp_path / "small.libsvm", 1e-30 * read(rows).X, data.y)
    invoke("train", *POINT, "--metric", "rank:2", tmp_path / "small.libsvm", model)
    message = error("plot", "--data", tmp_path / "beyond.libsvm", model, tmp_path / "q.png")
    assert f"{tmp_path / 'beyond.libsvm'}: some rows have values beyond float32 once they are scaled" in message


def test_rows_are_drawn_at_random_and_in_order() -> None:
    X = np.arange(50, dtype=np.float32)[:, None]
    blocks = [(X[first : first + 7], X[first : first + 7, 0].astype(float)) for first in range(0, 50, 7)]
    sample, y = sampled(iter(blocks), 20, np.random.default_rng(0))
    assert len(y) == 20 and y.tolist() == sorted(set(y.tolist())) and sample[:, 0].tolist() == y.tolist()
    assert y.max() > 30 > 20 > y.min()
    assert len(sampled(iter(blocks), 80, np.random.default_rng(0))[1]) == 50


def test_principal_axes_are_those_of_scikit_learn() -> None:
    X = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32) * [1, 5, 2, 0.5]
    plane, share = principal_plane(X.astype(np.float32))
    known = PCA(2).fit(X)
    np.testing.assert_allclose(np.abs(plane), np.abs(known.transform(X)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(share, known.explained_variance_ratio_, rtol=1e-5)
    plane, share = principal_plane(X[:, :1].astype(np.float32))  # a single feature
    assert share.tolist() == [1.0, 0.0] and not plane[:, 1].any()


def two_columns(path: Path, far: float = 0.0) -> np.ndarray:
    """Write a table of values that follow one of two numbers, and return these."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, (200, 2)) + np.asarray([far, 0.0])
    y = 50.0 + 10.0 * (X[:, 0] - far) + rng.normal(size=200)
    lines = [f"{float(a)!r},{float(b)!r},{float(v)!r}\n" for (a, b), v in zip(X, y, strict=True)]
    path.write_text("east,north,rent\n" + "".join(lines))
    return X


VALUES = ("--label", "rent", "--loss", "least-squares", "--repeats", 1, *POINT)


@pytest.mark.parametrize("far", [0.0, 1e7])
def test_two_features_have_predictions_rows_and_borders(far: float, tmp_path: Path, figures: list[Any]) -> None:
    X = two_columns(tmp_path / "rows.csv", far)
    invoke("train", *VALUES, "-P", "voronoi", "-c", 100, tmp_path / "rows.csv", tmp_path / "m.h5")
    (tmp_path / "new.csv").write_text((tmp_path / "rows.csv").read_text() + f"{far},0.5,\n")
    invoke("plot", "--data", tmp_path / "new.csv", tmp_path / "m.h5", tmp_path / "p.png")
    axes, bar = figures[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("east", "north")
    assert bar.get_ylabel() == "predicted value; points: value of a row"
    known, missing = (part for part in axes.collections if isinstance(part, PathCollection))
    np.testing.assert_allclose(known.get_offsets(), X)
    assert missing.get_label() == "no value" and missing.get_offsets().tolist() == [[far, 0.5]]
    with feature_plane(tmp_path / "m.h5") as plane, LocalModel(tmp_path / "m.h5") as model:
        assert plane is not None and plane.cells is not None
        np.testing.assert_allclose(plane.decide(X), model.decision_function(X), atol=1e-6)
        assert len(np.unique(plane.cells(X))) == model.file.n_cells >= 2


@pytest.mark.parametrize("cells", [("-P", "none"), ("-P", "chunks", "-c", 60)])
@pytest.mark.fast(2)
def test_two_features_of_classes_have_decision_values(
    cells: tuple[Any, ...], rows: Path, tmp_path: Path, figures: list[Any]
) -> None:
    data = read(rows)
    write(tmp_path / "two.libsvm", data.X[:, 30:32], data.y)
    invoke("train", *POINT, *cells, tmp_path / "two.libsvm", tmp_path / "m.h5")
    invoke("plot", "--data", tmp_path / "two.libsvm", tmp_path / "m.h5", tmp_path / "p.png")
    axes, bar = figures[0].axes
    assert (axes.get_xlabel(), bar.get_ylabel()) == ("feature 1", "decision value")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["-1", "1"]


def test_values_of_a_table_are_shades_in_the_learned_plane(tmp_path: Path, figures: list[Any]) -> None:
    X = two_columns(tmp_path / "two.csv")
    lines = (tmp_path / "two.csv").read_text().splitlines()
    more = ["south", *map(str, (X[:, 0] * X[:, 1]).tolist())]
    (tmp_path / "rows.csv").write_text("".join(f"{m},{line}\n" for m, line in zip(more, lines, strict=True)))
    levels = ("--label", "rent", "--loss", "quantile", "--quantile", "0.2,0.6")
    invoke("train", *levels, *POINT, "--metric", "rank:2", tmp_path / "rows.csv", tmp_path / "m.h5")
    invoke("plot", tmp_path / "m.h5", tmp_path / "w.png")
    invoke("plot", "--data", tmp_path / "rows.csv", tmp_path / "m.h5", tmp_path / "p.png")
    names = [label.get_text() for label in figures[0].axes[0].get_xticklabels()]
    assert sorted(names) == ["east", "north", "south"]
    assert figures[1].axes[2].get_ylabel() == "predicted value at level 0.6; points: value of a row"
    with shown(tmp_path / "m.h5") as view, LocalModel(tmp_path / "m.h5") as model:
        Z, _ = sampled(view.rows(tmp_path / "rows.csv"), 1000, np.random.default_rng(0))
        assert view.decide is not None
        data = np.column_stack([np.asarray(more[1:], np.float64), X])
        np.testing.assert_allclose(
            view.decide(np.asarray(view.metric.apply(Z))), model.decision_function(data), atol=1e-6
        )
