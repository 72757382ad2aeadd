"""Detection on the command line: the front that is printed and drawn, bounds in prediction, and what is refused."""

from __future__ import annotations

import csv
import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import PLAIN, error, invoke, over_after_a_record, usage_error
from parts_of_text import Parts
from test_engines import ENGINES, engine
from test_part_prediction import path_of
from test_train import content

from localsvm.cli.labels import PredictionLines
from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from localsvm.methods.kernel.svm import KernelSVM
from localsvm.runs.cells import schedule as scheduling
from localsvm.runs.config import TrainingConfig
from localsvm.runs.predict import LocalModel
from localsvm.runs.prediction.parts import Collected, Prediction, TextRows, predict_parts
from localsvm.runs.train import train

ONE = ("-g", 0.3, "-C", 3, "-v", 3, "-j", 1, *PLAIN)
NPL = ("--score", "npl", "--false-alarm", ".1")


def overlapping(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the classes 3 and 7, of which a quarter is on the wrong side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 2)).astype(np.float32)
    return X, np.where(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n) > 0.0, 7.0, 3.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of 250 rows to train on and of 600 to test; a model with a front, one with a bound, and one of neither."""
    path = tmp_path_factory.mktemp("detection")
    write(path / "train", *overlapping(250, 0))
    write(path / "test", *overlapping(600, 1))
    for name, options in (("front", ("--roc", "--plot", path / "front.png")), ("bound", NPL), ("plain", ())):
        done = invoke("train", *options, *ONE, path / "train", path / f"{name}.h5")
        (path / f"{name}.out").write_text(done.stdout)
        (path / f"{name}.err").write_text(done.stderr)
    return path


def test_the_front_is_printed_and_in_the_report_and_the_file(folder: Path) -> None:
    front = list(csv.DictReader((folder / "front.out").read_text().splitlines()))
    assert list(front[0]) == ["weight", "false_alarms", "limit", "detected"] and len(front) > 5
    columns = {name: np.asarray([float(row[name]) for row in front]) for name in front[0]}
    assert (np.diff(columns["weight"]) > 0).all() and 1.0 in columns["weight"]
    assert (columns["false_alarms"] <= columns["limit"]).all()
    assert columns["detected"][0] < 0.5 < 0.9 < columns["detected"][-1]
    told = json.loads(invoke("inspect", "--json", folder / "front.h5").stdout)["detection"]
    assert [f"{point['weight']:.6g}" for point in told["front"]] == [row["weight"] for row in front]
    assert told["bound"] is None and told["chosen"]["weight"] == 1.0
    found = re.search(
        r"^detection   .* weights from .*; decided at weight 1\nheld out    false alarms [\d.]+%, detected [\d.]+%$",
        (folder / "front.err").read_text(),
        re.MULTILINE,
    )
    assert found is not None and found[0] in invoke("inspect", folder / "front.h5").stdout
    assert (folder / "front.png").read_bytes().startswith(b"\x89PNG")


def test_a_bound_is_kept_and_said(folder: Path, tmp_path: Path) -> None:
    assert (folder / "bound.out").read_text() == ""
    text = (folder / "bound.err").read_text()
    assert "(bound 0.1)\n" in text and re.search(r"\(at most [\d.]+% with 95% confidence\), detected", text)
    report = json.loads(
        invoke("train", "-q", "--json", *NPL, "--roc", "--plot", tmp_path / "a.svg", *ONE, folder / "train",
               tmp_path / "m.h5").stdout
    )  # fmt: skip
    told = report["summary"]["detection"]
    assert told["bound"] == 0.1 and told["chosen"]["limit"] <= 0.1 and len(told["front"]) > 5
    assert "bound 0.1" in (tmp_path / "a.svg").read_text() or (tmp_path / "a.svg").stat().st_size > 5000


def said(text: str) -> tuple[int, int, int, int]:
    """False alarms and missed rows, of how many each."""
    found = re.search(r"False alarms = \S+ \((\d+)/(\d+)\)\nMissed = \S+ \((\d+)/(\d+)\)", text)
    assert found is not None, text
    return int(found[1]), int(found[2]), int(found[3]), int(found[4])


def test_prediction_scores_false_alarms_and_takes_another_bound(folder: Path, tmp_path: Path) -> None:
    y = read(folder / "test").y
    for model, options, most in (("bound", (), 0.1), ("front", ("--false-alarm", 0.1), 0.1), ("front", (), 1.0)):
        files = (folder / "test", folder / f"{model}.h5", tmp_path / "out")
        done = invoke("predict", "--force", *options, *files)
        labels = np.asarray((tmp_path / "out").read_text().split(), np.float64)
        false, missed = int(((labels == 7) & (y == 3)).sum()), int(((labels == 3) & (y == 7)).sum())
        assert said(done.stderr) == (false, (y == 3).sum(), missed, (y == 7).sum())
        assert false <= most * (y == 3).sum()
        report = json.loads(invoke("predict", "--force", "--json", *options, *files).stdout)
        assert report["false_alarms"] == {"wrong": false, "rows": (y == 3).sum()}
        assert report["missed"] == {"wrong": missed, "rows": (y == 7).sum()}
    assert invoke("predict", "-q", folder / "test", folder / "plain.h5", "-").stdout == "".join(
        f"{label:g}\n" for label in labels
    )
    plain = invoke("predict", folder / "test", folder / "plain.h5", "-").stderr
    assert "False alarms" not in plain


def test_there_is_one_decision_value(folder: Path) -> None:
    for options in ((), ("--false-alarm", "0.2")):
        given = ("predict", "-q", "--decision-values", *options, folder / "test", folder / "bound.h5", "-")
        header, *lines = invoke(*given).stdout.splitlines()
        table = np.loadtxt(lines)
        assert header == "labels 3/7" and table.shape == (600, 2)
        np.testing.assert_array_equal(table[:, 0] == 7, table[:, 1] > 0)


def test_the_confident_choice_is_careful_enough_for_a_smaller_bound(folder: Path) -> None:
    with LocalModel(folder / "front.h5") as model:
        places = []
        for bound in (0.05, 0.1, 0.3, 0.6):
            model.keep(bound)
            places.append(model.target.at)  # type: ignore[attr-defined]
    assert places == sorted(places) and places[0] < places[-1]


def test_an_interrupted_run_goes_on_to_the_same_bits(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("--roc", "-g", "0.1,1", "-C", "0.3,3", "-v", "3", *PLAIN)
    monkeypatch.setattr(scheduling, "SMALL_RUN", 0.0)
    whole = invoke("train", "-q", "-j", 1, *given, folder / "train", tmp_path / "whole.h5")
    line = ("train", "-j", 1, *given, folder / "train", tmp_path / "m.h5")

    with over_after_a_record(monkeypatch):
        invoke(*line, "--time-limit", "1h", code=124)
    resumed = invoke(*line, "--resume")
    assert "note: settings scored before, in cells that are not finished: 1\n" in resumed.stderr
    assert content(tmp_path / "m.h5") == content(tmp_path / "whole.h5")
    assert resumed.stdout == whole.stdout


@pytest.mark.parametrize("cells", [(), ("-P", "voronoi", "-c", 60)], ids=["one", "voronoi"])
def test_out_of_core_is_the_same(cells: tuple[Any, ...], folder: Path, tmp_path: Path) -> None:
    for name, more in (("memory", ()), ("disk", ("--out-of-core",))):
        given = (*NPL, "-g", 0.3, "-C", 3, *PLAIN, *cells, *more)
        invoke("train", "-q", "-j", 1, *given, folder / "train", tmp_path / f"{name}.h5")
    assert content(tmp_path / "memory.h5") == content(tmp_path / "disk.h5")


@pytest.mark.parametrize("kind", ENGINES[1:])
def test_whoever_has_the_rows_trains_the_same(kind: str, folder: Path, tmp_path: Path) -> None:
    config = TrainingConfig(
        KernelSVM(gamma=(0.3,), cost=(0.3, 3.0)), "voronoi", 50, coarse_size=120, metric="none", roc=True, folds=3
    )
    for name in (ENGINES[0], kind):
        train(engine(name, folder / "train", config), config, tmp_path / f"{name}.h5")
    assert content(tmp_path / f"{ENGINES[0]}.h5") == content(tmp_path / f"{kind}.h5")


def test_a_text_in_parts_is_predicted_as_on_one_machine(folder: Path, tmp_path: Path) -> None:
    rows, model = folder / "test", folder / "front.h5"
    result = invoke("predict", "--false-alarm", 0.1, rows, model, tmp_path / "one")
    with LocalModel(model) as local:
        local.keep(0.1)
        said_of_all = Collected.of(local, None)
    task = Prediction(TextRows(str(rows), False), partial(path_of, model), PredictionLines, None, False, None, 0.1)
    assert "".join(predict_parts(Parts(rows, [100, 300], 70), task, said_of_all)) == (tmp_path / "one").read_text()
    assert said(result.stderr) == tuple(number for pair in said_of_all.score.alarms for number in pair)  # type: ignore[union-attr]


def test_a_table_names_its_labels(tmp_path: Path) -> None:
    for name, n, seed in (("train", 250, 0), ("test", 100, 1)):
        X, y = overlapping(n, seed)
        with open(tmp_path / f"{name}.csv", "w", newline="") as file:
            rows = [[*map(float, x), "stays" if label == 3 else "well gone"] for x, label in zip(X, y, strict=True)]
            csv.writer(file).writerows([["a", "b", "what"], *rows])
    invoke("train", "-q", *NPL, *ONE, "--label", "what", tmp_path / "train.csv", tmp_path / "m.h5")
    done = invoke("predict", tmp_path / "test.csv", tmp_path / "m.h5", tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert set(lines) == {"what", "stays", "well gone"}
    _, quiet, _, alarms = said(done.stderr)
    for label, other in (("stays", (alarms, quiet)), ("well gone", (quiet, alarms))):
        given = ("--label", "what", "--alarm", label, tmp_path / "train.csv", tmp_path / "m.h5")
        invoke("train", "-q", "--force", *NPL, *ONE, *given)
        turned = said(invoke("predict", tmp_path / "test.csv", tmp_path / "m.h5", "-").stderr)
        assert (turned[1], turned[3]) == other and turned[0] <= 0.2 * turned[1]
    assert turned == said(done.stderr)
    message = error("train", *NPL, "--label", "what", "--alarm", "gone", tmp_path / "train.csv", tmp_path / "x.h5")
    assert "no row has the label 'gone' of --alarm" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--score", "npl"), "--score npl and --false-alarm go together, as in --false-alarm 0.05"),
        (("--false-alarm", ".1"), "--score npl and --false-alarm go together"),
        (("--false-alarm", ".1", "--loss", "absolute"), "--false-alarm is for classes, and the loss is one of values"),
        ((*NPL[:2], "--false-alarm", "1"), "--false-alarm must be a share between 0 and 1, as 0.05, not 1"),
        (("--roc", "-b", 1), "-b/--probability 1 and --roc decide in different ways; leave one of the two out"),
        ((*NPL, "--coverage", ".9"), "--coverage and --score npl decide in different ways; leave one of the two out"),
        (("--alarm", "3"), "--alarm is for --score npl and --roc; give one of them"),
        (("--roc", "--alarm", "4"), "--alarm 4: no row has that label; the labels are 3 and 7"),
        (("--roc", "--score", "tpr-tnr"), "--score tpr-tnr and --roc decide in different ways"),
        (("--roc", "--loss", "absolute"), "--roc is for classes, and the loss is one of values; leave it out"),
        (("--roc", "-m", "ml3"), "--roc weighs classes anew in each problem, which -m ml3 does not do; try -m svm"),
        (("--roc", "--stream", "-m", "linear", "-s", "sgd"), "--stream keeps no held-out values to count false alarms"),
        (
            (*NPL[:2], "--false-alarm", ".001"),
            "held-out rows that should raise no alarm cannot promise --false-alarm 0.001",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
@pytest.mark.fast(12)
def test_what_does_not_fit_is_refused(options: tuple[Any, ...], message: str, folder: Path, tmp_path: Path) -> None:
    plain = () if "--stream" in options else PLAIN
    done = invoke("train", *options, *plain, folder / "train", tmp_path / "m.h5", code=None)
    assert done.exit_code in (1, 2) and done.stdout == "" and done.stderr.count("\n") == 1
    assert message in done.stderr
    assert not (tmp_path / "m.h5").exists()


def test_other_refusals(folder: Path, tmp_path: Path) -> None:
    assert "MODEL_FILE must be a file" in usage_error("train", "--roc", folder / "train", "-")
    assert "give one of them" in usage_error("train", "--plot", tmp_path / "a.png", folder / "train", tmp_path / "m")
    assert "--alarm a: in LIBSVM text, labels are numbers" in usage_error(
        "train", "--roc", "--alarm", "a", folder / "train", tmp_path / "m"
    )
    assert "give it to lsvm-train" in usage_error("cv", "--score", "npl", folder / "train")
    model = folder / "plain.h5"
    message = error("predict", "--false-alarm", ".1", folder / "test", model, tmp_path / "out")
    assert (
        message
        == f"{model}: --false-alarm is for models of several weights; train it again with --roc or --score npl\n"
    )
    message = error("predict", "--false-alarm", ".001", folder / "test", folder / "front.h5", tmp_path / "out")
    assert "cannot promise --false-alarm 0.001, which takes 2,995; give more rows, or a larger bound" in message


def test_a_run_that_had_finished_prints_its_front_again(folder: Path, tmp_path: Path) -> None:
    more = "--resume", "--plot", tmp_path / "again.png"
    done = invoke("train", "-q", "--roc", *more, *ONE, folder / "train", folder / "front.h5")
    assert done.stdout == (folder / "front.out").read_text() and (tmp_path / "again.png").stat().st_size > 10_000
    for name, message in (("bound", "and detections and novelties have none"), ("plain", "give -b 1 as well")):
        options = "--report", tmp_path / "report", folder / "test", folder / f"{name}.h5", tmp_path / "out"
        assert message in usage_error("predict", *options)
