"""Reports of metrics: in the summary and by lsvm inspect, as text and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from command_line import error, invoke, usage_error
from selecting import observed_of
from strangers import Damage

from localsvm.cli.metric_report import geometry_text
from localsvm.data.writers.libsvm import write
from localsvm.representations.metric import Geometry
from localsvm.runs.preparation.measured import ALL_ROWS
from localsvm.store.model import load_model, load_partition

POINT = ("-m", "svm", "-g", 1, "-C", 1, "-j", 1)
CHOICE = {"best": "full", "loss": [0.81, 0.4949], "error": [0.3071, 0.1739], "bound": [-2.776, -2.132]}


def columns_file(path: Path, columns: int = 12, places: tuple[int, ...] = (3, 8), rows: int = 240) -> Path:
    """Rows whose label is that of the columns at `places`, counted from 1; the column 5 does not occur."""
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(rows, columns))
    X[:, 4] = 0.0
    y = np.where(X[:, places[0] - 1] + 0.5 * X[:, places[1] - 1] > 0, 1, -1)
    write(path, X, y)
    return path


def manifest(path: Path) -> bytes:
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return columns_file(tmp_path_factory.mktemp("metric") / "train.libsvm")


@pytest.fixture(scope="module")
def diag(rows: Path) -> Path:
    """A model with weights."""
    path = rows.with_name("diag.h5")
    invoke("train", *POINT, "--metric", "diag", "-q", rows, path)
    return path


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"name": "rank:2"}, "rank:2"),
        (CHOICE | {"name": "full"}, "Euclidean distance, learned matrix (error on fresh rows 30.7 -> 17.4 %)"),
        (
            CHOICE | {"name": "manhattan+ranks+diag^0.5", "best": "manhattan+ranks+diag^0.5"},
            "Manhattan distance, rank view, learned weights to the power 0.5 (error on fresh rows 30.7 -> 17.4 %)",
        ),
        (
            CHOICE | {"name": "ranks", "best": "ranks", "error": [0.5, 0.0]},
            "Euclidean distance, rank view (error on fresh rows 50 -> 0 %)",
        ),
        ({"name": "none", "best": "none"}, "Euclidean distance (too few rows to try another)"),
        ({"name": "none", "best": "none", "why": "one class"}, "Euclidean distance (one class)"),
        (CHOICE | {"name": "none"}, "Euclidean distance (nothing else was clearly better)"),
        (CHOICE | {"name": "manhattan+ranks"}, "Manhattan distance, rank view (nothing else was clearly better)"),
    ],
)
def test_the_geometry_in_words(choice: dict[str, object], text: str) -> None:
    assert geometry_text(choice) == text


def test_the_summary_says_which_geometry(rows: Path, tmp_path: Path) -> None:
    result = invoke("train", *POINT, "--metric", "auto", "--json", rows, tmp_path / "m.h5")
    metric = json.loads(result.stdout)["summary"]["metric"]
    chosen = Geometry.of(metric["name"])
    assert chosen is not None and chosen.form and len(metric["z"]) == 2
    assert f"\ngeometry    {geometry_text(metric)}\n" in result.stderr
    shown = invoke("inspect", tmp_path / "m.h5").stdout
    assert f"\ngeometry    {geometry_text(metric)}\n" in shown
    result = invoke("train", *POINT, "--metric", "none", rows, tmp_path / "e.h5")
    for text in (result.stderr, invoke("inspect", tmp_path / "e.h5").stdout):
        assert "metric" not in text and "geometry" not in text
    assert json.loads(invoke("inspect", "--json", tmp_path / "e.h5").stdout)["metric"] is None
    done = invoke("partition", "--metric", "auto", "-j", 1, rows, tmp_path / "cells.h5")
    learned = load_partition(tmp_path / "cells.h5").config["learned"]  # for a kernel of either distance
    assert done.stderr == f"geometry    {geometry_text(learned)}\n"
    done = invoke("partition", "--metric", "diag", "-j", 1, "--force", "--json", rows, tmp_path / "cells.h5")
    assert json.loads(done.stdout)["metric"] == {"name": "diag"}


@pytest.mark.parametrize("command", ["train", "cv", "partition"])
def test_too_little_memory_for_the_metric_is_refused_in_one_line(command: str, tmp_path: Path) -> None:
    file, output = columns_file(tmp_path / "rows.libsvm", 40, rows=6000), tmp_path / "out.h5"
    line = (command, "--metric", "auto", "-j", 1, "-q", "--memory", "128M", file)
    message = error(*line, *([] if command == "cv" else [output]))
    assert re.fullmatch(
        r"learning the metric needs [\d.]+ MiB \(120.0 MiB of it the program itself\), and --memory allows 128.0 MiB; "
        r"give more --memory, or --metric none\n",
        message,
    ), message
    assert not output.exists()


@pytest.mark.whole
@pytest.mark.parametrize("metric", ["auto", "diag"])
def test_cross_validation_tells_the_metric_and_its_error_is_that_of_rows_new_to_it(metric: str, tmp_path: Path) -> None:
    """The labels of the rows that do not learn are thrown anew: which rows these are does not depend on labels."""
    from localsvm.data.readers.libsvm import read
    from localsvm.runs.config import TrainingConfig
    from localsvm.runs.preparation.metric import measure
    from localsvm.threads import ALONE

    data = read(columns_file(tmp_path / "rows.libsvm", rows=1000))
    fresh = measure(data, observed_of(data.y), TrainingConfig(metric="diag"), ALONE).fresh
    assert fresh is not None and np.count_nonzero(fresh) == 200
    data.y[fresh] = np.random.default_rng(0).choice([-1.0, 1.0], 200)
    write(tmp_path / "thrown.libsvm", data.X, data.y)
    line = ("-m", "svm", "-g", 0.1, "-C", "1,3", "-j", 1, "--metric", metric, tmp_path / "thrown.libsvm")
    result = invoke("cv", "--json", *line)
    report = json.loads(result.stdout)
    reported = report["metric"]
    chosen = Geometry.of(reported["name"])
    assert chosen is not None and chosen.form in (("diag",) if metric == "diag" else ("diag", "full"))
    assert result.stderr.startswith(f"geometry   {geometry_text(reported)}\n")
    assert (
        f"\nerror      {report['error']:.2%} cross-validated, over 200 rows that are new to the metric\n"
        in result.stderr
    )
    assert max(point["error"] for point in report["points"]) < 0.25 and 0.4 < report["error"] < 0.6
    trained = json.loads(invoke("train", "--json", *line, tmp_path / "m.h5").stdout)
    assert trained["summary"]["cv_error"] == report["error"]
    divided = invoke("cv", "-P", "voronoi", "-c", 300, *line).stderr
    assert "over 200 rows that are new" in divided and "in all cells" not in divided
    given = invoke(
        "cv", "-g", 0.1, "-C", "1,3", "-j", 1, "--metric-file", tmp_path / "m.h5", tmp_path / "thrown.libsvm"
    )
    assert "cross-validated, over 1,000 rows\n" in given.stderr and f"; {ALL_ROWS}\n" in given.stderr


def test_weights_are_listed_by_feature_the_largest_first(diag: Path) -> None:
    metric = json.loads(invoke("inspect", "--json", diag).stdout)["metric"]
    assert (metric["kind"], metric["dimensions"]) == ("weights", 11)
    weights = [item["weight"] for item in metric["weights"]]
    features = [item["feature"] for item in metric["weights"]]
    assert weights == sorted(weights, reverse=True)
    assert sorted(features) == [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12]  # as in the file, which has no 5
    assert features[0] == 3
    with load_model(diag) as model:
        assert model.metric is not None and model.columns is not None
        kept = np.abs(model.metric[1]["weights"].astype(float))
        by_feature = dict(zip((model.columns + 1).tolist(), kept.tolist(), strict=True))
    assert {item["feature"]: item["weight"] for item in metric["weights"]} == by_feature


def test_the_table_shows_ten_weights_unless_asked_for_all(diag: Path) -> None:
    lines = invoke("inspect", diag).stdout.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("weights "))
    assert lines[first].split()[2:] == ["feature", "3"]
    assert lines[first + 9].split()[1] == "feature" and lines[first + 10].split() == ["and", "1", "more:", "--all"]
    every = invoke("inspect", "--all", diag).stdout
    assert every.count(" feature ") == 11 and "--all" not in every


@pytest.mark.parametrize("options", [(), ("--form", "diag"), ("--form", "rank:2"), ("-t", "manhattan")])
def test_a_metric_that_its_svm_learned_has_weights_too(options: tuple[str, ...], rows: Path, tmp_path: Path) -> None:
    invoke("train", "-m", "svml", *options, "-j", 1, "-q", rows, tmp_path / "m.h5")
    metric = json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)["metric"]
    assert (metric["kind"], metric["metrics"]) == ("weights" if {"diag", "manhattan"} & {*options} else "matrix", 1)
    with load_model(tmp_path / "m.h5") as model:
        assert model.columns is not None
        L = model.cell(0)["map"].astype(float)
        by_feature = dict(zip((model.columns + 1).tolist(), np.linalg.norm(L, axis=0), strict=True))
    assert {item["feature"]: item["weight"] for item in metric["weights"]} == pytest.approx(by_feature)
    first = f"\nweights     {metric['weights'][0]['weight']:<9.4g} feature {metric['weights'][0]['feature']}\n"
    assert first in invoke("inspect", tmp_path / "m.h5").stdout


def test_weights_of_several_metrics_are_means(rows: Path, tmp_path: Path) -> None:
    invoke("train", "-m", "svml", "--form", "diag", "-P", "kmeans", "-c", 80, "-j", 1, "-q", rows, tmp_path / "m.h5")
    metric = json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)["metric"]
    with load_model(tmp_path / "m.h5") as model:
        maps = [np.abs(model.cell(i)["map"][0].astype(float)) for i in range(model.n_cells)]
    assert len(maps) > 1 and metric["metrics"] == len(maps)
    weights = [item["weight"] for item in metric["weights"]]
    assert weights == pytest.approx(sorted(np.mean(maps, axis=0), reverse=True))
    line = f"\nmetric      {len(maps)}, of problems, folds or cells; the weights are their means\n"
    assert line in invoke("inspect", tmp_path / "m.h5").stdout


def test_features_count_from_zero_where_the_file_does(rows: Path, tmp_path: Path) -> None:
    invoke("train", *POINT, "--metric", "rank:2", "--zero-based", "-q", rows, tmp_path / "m.h5")
    report = json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)
    assert (report["metric"]["kind"], report["metric"]["dimensions"]) == ("matrix", 2)
    assert report["metric"]["weights"][0]["feature"] == 3  # the number in the file
    assert report["config"]["features"] == 11  # before they are mapped
    assert invoke("predict", rows, tmp_path / "m.h5", tmp_path / "out").stderr.startswith("Accuracy")


def test_a_metric_that_was_learned_once_is_given_to_all_commands(rows: Path, diag: Path, tmp_path: Path) -> None:
    cells, other = tmp_path / "cells.h5", columns_file(tmp_path / "other.libsvm", places=(1, 2))
    invoke("partition", "--metric-file", diag, "-c", 100, "-P", "kmeans", "-j", 1, "-q", rows, cells)
    result = invoke("train", *POINT, "--metric-file", cells, "--json", rows, tmp_path / "m.h5")
    report = json.loads(result.stdout)
    assert report["summary"]["metric"] == {"name": "diag", "note": ALL_ROWS} and report["config"]["metric"] == "diag"
    with load_model(tmp_path / "m.h5") as given, load_model(diag) as learned:
        assert given.config == learned.config
        np.testing.assert_array_equal(given.column("support"), learned.column("support"))
    result = invoke("train", *POINT, "--partition-file", cells, rows, tmp_path / "p.h5")
    assert f"\ngeometry    diag; {ALL_ROWS}\n" in result.stderr and "kmeans" in result.stderr
    result = invoke("train", *POINT, "--metric-file", tmp_path / "p.h5", other, tmp_path / "o.h5")
    assert f"\ngeometry    diag; {ALL_ROWS}\n" in result.stderr
    result = invoke("cv", "-g", 1, "-C", "1,2", "-j", 1, "--metric-file", diag, other)
    assert f"\nbest       --metric-file {diag} -g 1" in result.stderr
    assert "\nerror      " in result.stderr and "over 240 rows\n" in result.stderr and result.stdout.count("\n") == 3


def test_a_metric_of_features_that_do_not_occur_is_noted(rows: Path, diag: Path, tmp_path: Path) -> None:
    (tmp_path / "two").write_text("".join(f"{(-1) ** i} 1:{i % 7} 2:{i % 5}\n" for i in range(60)))
    note = f"note: 9 of the 11 features of the metric {diag} occur in no row\n"
    assert note in invoke("train", *POINT, "--metric-file", diag, tmp_path / "two", tmp_path / "m.h5").stderr
    assert "occur in no row" not in invoke("train", *POINT, "--metric-file", diag, rows, tmp_path / "same.h5").stderr


def test_a_metric_is_given_or_learned(rows: Path, diag: Path, tmp_path: Path) -> None:
    for options, flag in ((("--metric", "full"), "--metric"), (("--scale", "std"), "--scale")):
        for command in ("train", "partition"):
            message = usage_error(command, "--metric-file", diag, *options, rows, tmp_path / "m.h5")
            assert f"Error: {flag} is fixed by --metric-file; give one of the two." in message
    message = usage_error("train", "--metric-file", diag, "--partition-file", diag, rows, tmp_path / "m.h5")
    assert "--partition-file has a metric of its own; give one of the two." in message
    message = usage_error("train", "--metric-file", diag, "--zero-based", rows, tmp_path / "m.h5")
    assert "--zero-based, but the file of the metric was made without it" in message
    message = usage_error(
        "train", "--metric-file", diag, "-m", "linear", "-s", "sgd", "--stream", rows, tmp_path / "m.h5"
    )
    assert "goes without --metric-file; leave one of the two out" in message
    message = usage_error("train", "--metric-file", "-", rows, tmp_path / "m.h5")
    assert "a file with a metric is not read from front to back" in message
    invoke("train", *POINT, "--metric", "none", "-q", rows, tmp_path / "e.h5")
    assert "no metric in this file" in error("train", "--metric-file", tmp_path / "e.h5", rows, tmp_path / "m.h5")
    invoke("train", "-m", "svml", "-q", "-j", 1, rows, tmp_path / "svml.h5")
    message = error("train", "--metric-file", tmp_path / "svml.h5", rows, tmp_path / "m.h5")
    assert "no metric in this file but that of svml, which belongs to its kernel; lsvm-partition" in message
    invoke("partition", "--metric", "rank:1", "-q", rows, full := tmp_path / "full.h5")
    assert (
        invoke("train", *POINT, "-t", "manhattan", "--metric-file", diag, rows, tmp_path / "weights.h5").exit_code == 0
    )
    message = usage_error("train", *POINT, "-t", "manhattan", "--metric-file", full, rows, tmp_path / "m.h5")
    assert "full.h5 mixes features, and the Manhattan distance has weights alone; give one of --metric diag" in message
    message = error("train", "--force", "--metric-file", diag, rows, diag)
    assert f"would replace {diag}, which this command uses" in message
    assert not (tmp_path / "m.h5").exists()


def test_the_first_index_of_the_file_is_that_of_the_metric(tmp_path: Path) -> None:
    rows = columns_file(tmp_path / "rows.libsvm")
    invoke("train", *POINT, "--metric", "diag", "--zero-based", "-q", rows, tmp_path / "m.h5")
    invoke("train", *POINT, "--metric-file", tmp_path / "m.h5", "-q", rows, tmp_path / "n.h5")
    with load_model(tmp_path / "m.h5") as learned, load_model(tmp_path / "n.h5") as given:
        assert given.config == learned.config and given.config["zero_based"] is True


def test_a_partition_file_with_strange_options_is_refused(rows: Path, tmp_path: Path) -> None:
    invoke("partition", "-q", rows, tmp_path / "cells.h5")
    for key, value in (("cell_size", "x"), ("scale", "x"), ("metric", 3), ("partition", "x"), ("new", 1)):
        with h5py.File(tmp_path / "cells.h5") as file:
            config = json.loads(file.attrs["config"])
        source = np.bytes_(json.dumps(config | {key: value}))
        damage = Damage("/@config", "", lambda f, s=source: f.attrs.__setitem__("config", s))  # type: ignore[misc]
        damage.make(tmp_path / "cells.h5", tmp_path / "p.h5")
        message = error("train", "--partition-file", tmp_path / "p.h5", rows, tmp_path / "m.h5")
        assert message.startswith(f"{tmp_path}/p.h5: not as localsvm writes it: /@config")


# --- ranks

RANKED = (*POINT, "--views", "ranks", "--metric", "diag")


@pytest.fixture(scope="module")
def ranked(rows: Path) -> Path:
    """A model with weights of columns and of their ranks."""
    path = rows.with_name("ranked.h5")
    invoke("train", *RANKED, "-q", rows, path)
    return path


def test_ranks_are_listed_beside_their_features(ranked: Path, rows: Path, tmp_path: Path) -> None:
    report = json.loads(invoke("inspect", "--json", ranked).stdout)
    assert report["config"]["views"] == "ranks" and report["metric"]["dimensions"] == 22
    items = report["metric"]["weights"]
    plain = {item["feature"] for item in items if "ranks" not in item}
    of_ranks = {item["feature"]: item for item in items if item.get("ranks") is True}
    assert plain == set(of_ranks) == {1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12} and len(items) == 22
    assert all(item["name"] == f"ranks of feature {number}" for number, item in of_ranks.items())
    with load_model(ranked) as model:
        assert model.metric is not None
        kept = np.abs(model.metric[1]["weights"].astype(float))
    assert of_ranks[6]["weight"] == kept[11 + 4]
    assert "ranks of feature 3\n" in invoke("inspect", ranked).stdout
    invoke("predict", "-q", rows, ranked, tmp_path / "all")
    lines = rows.read_text().splitlines(keepends=True)
    (tmp_path / "some.libsvm").write_text("".join(lines[100:103]))
    invoke("predict", "-q", tmp_path / "some.libsvm", ranked, tmp_path / "some")
    assert (tmp_path / "all").read_text().splitlines()[100:103] == (tmp_path / "some").read_text().splitlines()


def test_ranks_without_a_metric_are_told_by_the_options(rows: Path, tmp_path: Path) -> None:
    done = invoke("train", *POINT, "--views", "ranks", "--metric", "none", rows, tmp_path / "m.h5")
    assert "geometry" not in done.stderr
    with load_model(tmp_path / "m.h5") as model:
        assert model.metric is None and model.ranks is not None and model.config["views"] == "ranks"
        assert model.column("support").shape[1] == 22
    assert json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)["metric"] is None
    invoke("train", *POINT, "--views", "none", "--metric", "none", "-q", rows, tmp_path / "n.h5")
    invoke("train", *POINT, "--metric", "none", "-q", rows, tmp_path / "d.h5")
    with load_model(tmp_path / "n.h5") as none, load_model(tmp_path / "d.h5") as default:
        assert none.config == default.config and "views" not in none.config and none.ranks is None


def test_ranks_of_a_file_give_the_same_model(ranked: Path, rows: Path, tmp_path: Path) -> None:
    manifests = {ranked: manifest(ranked)}
    invoke("train", *POINT, "--metric-file", ranked, "-q", rows, tmp_path / "given.h5")
    invoke("partition", *RANKED[-4:], "-q", rows, tmp_path / "cells.h5")
    for options in (("--metric-file", tmp_path / "cells.h5"), ("--partition-file", tmp_path / "cells.h5")):
        invoke("train", *POINT, *options, "-q", rows, tmp_path / f"{options[0]}.h5")
        manifests[tmp_path / f"{options[0]}.h5"] = manifest(tmp_path / f"{options[0]}.h5")
    manifests[tmp_path / "given.h5"] = manifest(tmp_path / "given.h5")
    assert len(set(manifests.values())) == 1
    message = usage_error("train", *POINT, "--metric-file", ranked, "--views", "none", rows, tmp_path / "m.h5")
    assert "--views is fixed by --metric-file; give one of the two" in message
    message = usage_error(
        "train", "--partition-file", tmp_path / "cells.h5", "--views", "none", rows, tmp_path / "m.h5"
    )
    assert "--views is fixed by --partition-file; give one of the two" in message


def test_a_geometry_without_a_metric_comes_with_its_cells(tmp_path: Path) -> None:
    """Cells that were made by the Manhattan distance alone are trained on with its kernel."""
    X = np.random.default_rng(0).standard_normal((400, 12))
    write(tmp_path / "rows", X, np.where(np.sign(np.sin(3 * X)).sum(axis=1) > 0, 1, -1))
    cells, costs = ("-P", "voronoi", "-c", 100, "--views", "none"), ("-C", "1,3", "-v", 2, "-j", 1)
    invoke("partition", *cells, "-q", tmp_path / "rows", tmp_path / "cells.h5")
    assert load_partition(tmp_path / "cells.h5").config["learned"]["name"] == "manhattan"
    invoke("train", *costs, *cells, "-q", tmp_path / "rows", tmp_path / "m.h5")
    invoke("train", *costs, "--partition-file", tmp_path / "cells.h5", "-q", tmp_path / "rows", tmp_path / "n.h5")
    assert manifest(tmp_path / "m.h5") == manifest(tmp_path / "n.h5")
    with load_model(tmp_path / "n.h5") as model:
        assert model.config["method"]["kernel"] == "manhattan" and model.metric is None
    shown = invoke("inspect", tmp_path / "n.h5").stdout
    assert re.search(r"\ngeometry    Manhattan distance \(error on fresh rows [\d.]+ -> [\d.]+ %\)\n", shown)
    message = error("train", "--metric-file", tmp_path / "m.h5", tmp_path / "rows", tmp_path / "o.h5")
    assert "no metric in this file, as --metric auto chose none; " in message


def test_ranks_are_for_dense_rows(tmp_path: Path) -> None:
    rare = [" ".join(f"{30 * i + k + 10}:0.5" for k in range(30)) for i in range(60)]  # small data are dense else
    (tmp_path / "sparse").write_text("".join(f"{(-1) ** i} {i % 7 + 1}:1 {rare[i]}\n" for i in range(60)))
    for command in ("train", "partition"):
        message = usage_error(command, "--views", "ranks", "--metric", "none", tmp_path / "sparse", tmp_path / "m.h5")
        assert (
            "--views ranks needs dense rows, and these are sparse; give --views none, or --scale zscore, which makes "
            "them dense" in message
        )


def test_a_stream_has_no_ranks(rows: Path, tmp_path: Path) -> None:
    line = ("train", "-m", "linear", "-s", "sgd", "--stream", "-C", 1, "-q")
    message = usage_error(*line, "--views", "ranks", rows, tmp_path / "m.h5")
    assert "--stream sees columns as they are; leave --views ranks out" in message
    invoke(*line, rows, tmp_path / "m.h5")


def test_a_table_names_its_ranks(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{a!r},{rng.integers(3)},{'yes' if a > 0 else 'no'}\n" for a in rng.standard_normal(80).tolist()]
    (tmp_path / "t.csv").write_text("age,ward,label\n" + "".join(lines))
    invoke("train", *RANKED, "-q", tmp_path / "t.csv", tmp_path / "m.h5")
    weights = json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)["metric"]["weights"]
    assert {item["name"] for item in weights} == {"age", "ward", "ranks of age"}
    assert [item["feature"] for item in weights if item.get("ranks")] == [1]
