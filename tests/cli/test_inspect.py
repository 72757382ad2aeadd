"""lsvm inspect: a model as a table and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import FAST, error, invoke

from localsvm.store.model import load_model


def test_the_table(model_file: Path) -> None:
    result = invoke("inspect", model_file)
    assert result.stderr == ""
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines())
    assert list(lines) == [
        "file", "format", "method", "selection", "features", "labels", "partition", "models", "support", "gamma", "C",
    ]  # fmt: skip
    assert lines["format"].startswith("localsvm-model 2, by localsvm 0.")
    assert lines["labels"] == "2 classes: -1, 1"
    assert lines["partition"].startswith("voronoi, ")
    assert "all converged" in lines["models"]


def test_without_a_partition_there_is_one_cell_of_any_size(train_file: Path, tmp_path: Path) -> None:
    invoke("train", *FAST, "-P", "none", "-c", 80, "-q", train_file, tmp_path / "m.h5")
    assert "partition   none, 1 cell\n" in invoke("inspect", tmp_path / "m.h5").stdout


def test_the_report(model_file: Path) -> None:
    report = json.loads(invoke("inspect", "--json", model_file).stdout)
    with load_model(model_file) as model:
        gammas, gaps = model.column("model_gamma"), model.column("model_gap")
        rows = len(model.column("support"))
        assert report["config"] == model.config and report["cells"] == model.n_cells
    assert (report["schema_version"], report["command"], report["format"]) == (1, "inspect", "localsvm-model")
    models = report["models"]
    assert models["models"] == len(gammas) and models["support_vectors"] == rows
    assert models["gamma"]["smallest"] == gammas.min() and models["largest_gap"] == gaps.max()


def test_sparse_models_count_their_support_vectors(tmp_path: Path) -> None:
    rare = [" ".join(f"{2000 + 30 * i + k}:0.5" for k in range(30)) for i in range(40)]  # small data are dense else
    (tmp_path / "sparse").write_text("".join(f"{(-1) ** i} {i % 7 + 1}:1 {rare[i]}\n" for i in range(40)))
    invoke("train", *FAST, "-q", tmp_path / "sparse", tmp_path / "m.h5")
    report = json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)
    assert report["config"]["dense"] is False
    with load_model(tmp_path / "m.h5") as model:
        assert report["models"]["support_vectors"] == len(set(model.column("coef_index").tolist()))


def test_class_weights_are_told(train_file: Path, tmp_path: Path) -> None:
    invoke("train", *FAST, "-w", 1, 3, "-q", train_file, tmp_path / "m.h5")
    result = invoke("inspect", tmp_path / "m.h5")
    assert "weight 3 for 1" in result.stdout


def test_other_files_are_refused(train_file: Path, tmp_path: Path) -> None:
    invoke("partition", "-c", 80, train_file, tmp_path / "cells.h5")
    assert "partition" in error("inspect", tmp_path / "cells.h5")
    assert str(train_file) in error("inspect", train_file)


@pytest.mark.whole
def test_linear_local_methods_show_what_was_chosen(train_file: Path, tmp_path: Path) -> None:
    chosen = ["-m", "l3", "-K", "1,3", "-L", "2", "-C", "0.1,1"]
    summary = invoke("train", *chosen, "-s", "sgd", "--passes", 1, train_file, tmp_path / "m.h5").stderr
    assert "of the objective): more --passes" in summary
    lines = dict(line.split(maxsplit=1) for line in invoke("inspect", tmp_path / "m.h5").stdout.splitlines())
    assert list(lines)[-4:] == ["models", "centres", "landmarks", "C"]
    assert lines["centres"] in ("1", "3") and lines["landmarks"] == "2" and lines["C"] in ("0.1", "1")
    assert "1 not converged" in lines["models"] and lines["models"].endswith("of the objective")


@pytest.mark.whole
def test_every_choice_is_shown(train_file: Path, tmp_path: Path) -> None:
    invoke("train", "-q", "-m", "mtl", "-K", 2, "--start", "2,3", "-C", 1, "-v", 2, train_file, tmp_path / "m.h5")
    report = json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)["models"]["chosen"]
    assert list(report) == ["clusters", "start", "shrinkage", "groups", "coupling", "cost"]
    lines = dict(line.split(maxsplit=1) for line in invoke("inspect", tmp_path / "m.h5").stdout.splitlines())
    assert list(lines)[-6:] == ["C", "clusters", "start", "shrinkage", "groups", "coupling"]
    assert lines["start"] in ("2", "3") and lines["clusters"] == "2"


def test_cells_that_were_fitted_whole_are_no_vote(train_file: Path, tmp_path: Path) -> None:
    """A grid of one point leaves nothing to select, whatever --select says."""
    invoke("train", "-g", 1, "-C", 1, "-j", 1, "-q", train_file, tmp_path / "one.h5")
    invoke("train", "-g", 1, "-C", "1,2", "-v", 2, "-j", 1, "-q", train_file, tmp_path / "two.h5")
    for name, select, selection in (
        ("one.h5", "refit", "none (one point)"),
        ("two.h5", "vote", "2 folds, adaptive grid, vote"),
    ):
        assert f"selection   {selection}, seed 0" in invoke("inspect", tmp_path / name).stdout
        report = json.loads(invoke("inspect", "--json", tmp_path / name).stdout)
        assert (report["select"], report["config"]["select"]) == (select, "vote")
