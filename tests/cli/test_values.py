"""Regression on the command line: training on values, what is predicted and scored, and what is refused."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import PLAIN, error, invoke, over_after_a_record, usage_error
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, mean_squared_error
from test_train import content

from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from localsvm.runs.cells import schedule as scheduling
from localsvm.targets.loss_names import LOSSES

SQUARES, LEVELS = ("--loss", "least-squares"), ("--loss", "quantile", "--quantile", "0.9,.1,0.5")
LEVEL = ("--trend", "constant")
FEW = ("-g", "0.05,0.2", "-C", "1,20", "-j", 1, *PLAIN)


def values(n: int, seed: int, columns: int = 3, wave: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and values around 100 that depend on the first two columns, mostly on the first."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, columns)).astype(np.float32)
    return X, 100.0 + 6.0 * np.sin(wave * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of 200 rows to train on and of 150 to test, a model of squares and one of three quantiles."""
    path = tmp_path_factory.mktemp("values")
    write(path / "train", *values(200, 0))
    write(path / "test", *values(150, 1))
    invoke("train", "-q", *SQUARES, *FEW, path / "train", path / "squares.h5")
    invoke("train", "-q", *LEVELS, *FEW, path / "train", path / "levels.h5")
    return path


def number(text: str, label: str) -> float:
    """The number that a line gives after `label = `."""
    found = re.search(rf"^{re.escape(label)} = (\S+)", text, re.MULTILINE)
    assert found is not None, text
    return float(found[1])


def rmse(test: Path, model: Path) -> float:
    """Root of the mean squared error that is printed."""
    return float(np.sqrt(number(invoke("predict", test, model, "-").stderr, "Mean squared error")))


def test_one_value_a_line_and_its_scores(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "values.txt"
    done = invoke("predict", folder / "test", folder / "squares.h5", output)
    y, answers = read(folder / "test").y, np.loadtxt(output)
    assert done.stdout == "" and answers.shape == y.shape
    assert number(done.stderr, "Mean squared error") == pytest.approx(mean_squared_error(y, answers), rel=1e-5)
    correlation = np.corrcoef(y, answers)[0, 1] ** 2
    assert number(done.stderr, "Squared correlation coefficient") == pytest.approx(correlation, rel=1e-5)
    assert done.stderr.count("\n") == 2 and done.stderr.count("(regression)\n") == 2
    assert mean_squared_error(y, answers) < 0.5
    quiet = invoke("predict", "-q", folder / "test", folder / "squares.h5", "-")
    assert quiet.stdout == output.read_text() and quiet.stderr == ""
    report = json.loads(invoke("predict", "--json", "--force", folder / "test", folder / "squares.h5", output).stdout)
    assert report["total"] == 150 and report["score"] == "mse" and report["levels"] == [0.5]
    assert report["loss"] == report["mean_squared_error"] == pytest.approx([mean_squared_error(y, answers)])
    assert report["squared_correlation"] == pytest.approx([correlation])
    assert report["below"] == [np.mean(y <= answers)]


def test_means_over_no_rows_are_null_and_equal_values_have_no_r2(tmp_path: Path) -> None:
    rows = [f"{a:.3f},{b:.3f}" for a, b in values(60, 5)[0][:, :2]]
    (tmp_path / "train.csv").write_text("a,b,y\n" + "".join(f"{row},{i % 7}\n" for i, row in enumerate(rows)))
    (tmp_path / "unknown.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    (tmp_path / "equal.csv").write_text("a,b,y\n" + "".join(f"{row},2.1\n" for row in rows))
    (tmp_path / "classes.csv").write_text("a,b,y\n" + "".join(f"{row},{i % 2}\n" for i, row in enumerate(rows)))
    invoke("train", "-q", *SQUARES, *FEW, tmp_path / "train.csv", tmp_path / "m.h5")
    invoke("train", "-q", *FEW, tmp_path / "classes.csv", tmp_path / "c.h5")
    report = json.loads(invoke("predict", "--json", tmp_path / "unknown.csv", tmp_path / "m.h5", tmp_path / "p").stdout)
    assert report["total"] == 0
    assert report["loss"] == report["mean_squared_error"] == report["below"] == report["squared_correlation"] == [None]
    report = json.loads(invoke("predict", "--json", tmp_path / "unknown.csv", tmp_path / "c.h5", tmp_path / "c").stdout)
    assert report["total"] == 0 and report["accuracy"] is None
    invoke("predict", "-q", "--report", tmp_path / "report", tmp_path / "equal.csv", tmp_path / "m.h5", tmp_path / "e")
    assert '"r2": null' in (tmp_path / "report" / "report.json").read_text()


def test_one_point_is_kernel_ridge_regression(tmp_path: Path) -> None:
    """Rows of one place may have several values; rows that are equal are one of their weights."""
    X, y = values(120, 2)
    X, y = np.concatenate([X, X[:40], X[:20]]), np.concatenate([y, y[:40] + 1.0, y[:20]])
    test, _ = values(50, 3)
    write(tmp_path / "train", X, y)
    write(tmp_path / "test", test, np.zeros(50))
    given = ("-g", 0.3, "-C", 2, "-e", "1e-6", "--scale", "none", *LEVEL, *PLAIN)
    invoke("train", "-q", *SQUARES, *given, tmp_path / "train", tmp_path / "m.h5")
    invoke("predict", "-q", tmp_path / "test", tmp_path / "m.h5", tmp_path / "values")
    ridge = KernelRidge(kernel="rbf", gamma=0.3, alpha=0.25).fit(X, y - y.mean())
    np.testing.assert_allclose(np.loadtxt(tmp_path / "values"), y.mean() + ridge.predict(test), atol=0.01)


def test_weights_of_rows_are_numbers_of_rows(tmp_path: Path) -> None:
    X, y = values(100, 4)
    times = np.arange(100) % 4
    write(tmp_path / "weighted", X, y)
    (tmp_path / "weights").write_text("".join(f"{count}\n" for count in times))
    write(tmp_path / "repeated", np.repeat(X, times, axis=0), np.repeat(y, times))
    for loss in (SQUARES, LEVELS):
        found = []
        for name, more in (("weighted", ("--weights", tmp_path / "weights")), ("repeated", ())):
            given = ("train", "-q", *loss, "-g", 0.3, "-C", 2, "-e", "1e-6", "--scale", "none", *PLAIN, *more)
            invoke(*given, "--force", tmp_path / name, tmp_path / "m.h5")
            lines = invoke("predict", "-q", tmp_path / "weighted", tmp_path / "m.h5", "-").stdout.splitlines()
            found.append(np.loadtxt(lines[len(loss) // 4 :]))
        np.testing.assert_allclose(found[0], found[1], atol=0.02)


def test_several_levels_are_ascending_columns(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "levels.txt"
    done = invoke("predict", folder / "test", folder / "levels.h5", output)
    assert output.read_text().splitlines()[0] == "0.1 0.5 0.9"
    y, answers = read(folder / "test").y, np.loadtxt(output, skiprows=1)
    assert answers.shape == (150, 3) and (np.diff(answers, axis=1) >= 0.0).all()
    assert (answers[:, 2] > answers[:, 0]).mean() > 0.9
    for k, level in enumerate((0.1, 0.5, 0.9)):
        loss, below = mean_pinball_loss(y, answers[:, k], alpha=level), np.mean(y <= answers[:, k])
        assert number(done.stderr, f"Mean pinball loss at {level}") == pytest.approx(loss, rel=1e-5)
        assert f" ({below:.2%} of 150 values are not above)\n" in done.stderr
        assert below == pytest.approx(level, abs=0.15)
    assert done.stderr.count("\n") == 3


def test_expectiles_have_levels_too(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.h5"
    invoke("train", "-q", "--loss", "expectile", "--quantile", ".2,.8", *FEW, folder / "train", model)
    done = invoke("predict", folder / "test", model, tmp_path / "out")
    y, answers = read(folder / "test").y, np.loadtxt(tmp_path / "out", skiprows=1)
    for k, level in enumerate((0.2, 0.8)):
        r = y - answers[:, k]
        loss = np.mean(np.where(r > 0.0, level, 1.0 - level) * r * r)
        assert number(done.stderr, f"Mean expectile loss at {level}") == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.fast(len(LOSSES))
def test_every_loss_learns(loss: str, folder: Path, tmp_path: Path) -> None:
    model, output = tmp_path / "m.h5", tmp_path / "out"
    done = invoke("train", "--loss", loss, *FEW, *LEVEL, folder / "train", model)
    assert "200 rows, 3 features, values from " in done.stderr and "1 with " in done.stderr
    assert "all converged" in done.stderr
    said = invoke("predict", folder / "test", model, output).stderr
    y, answers = read(folder / "test").y, np.loadtxt(output)
    assert mean_squared_error(y, answers) < 0.05 * y.var()
    if loss in ("absolute", "epsilon-insensitive", "huber"):
        assert number(said, "Mean absolute error") == pytest.approx(mean_absolute_error(y, answers), rel=1e-5)
        assert "cross-validated mean absolute error " in done.stderr


def test_the_range_of_the_training_values_is_kept(folder: Path, tmp_path: Path) -> None:
    """No answer is outside of the range; without a trend, those far from all rows are the constant."""
    y = read(folder / "train").y
    X = np.concatenate([values(100, 5)[0], np.full((1, 3), 1e4, np.float32)])
    write(tmp_path / "new", X, np.zeros(101))
    lines = invoke("predict", "-q", tmp_path / "new", folder / "squares.h5", "-").stdout.splitlines()
    answers = np.asarray(lines, np.float64)
    assert y.min() <= answers.min() and answers.max() <= y.max()
    assert answers[-1] in (pytest.approx(y.min(), rel=1e-9), pytest.approx(y.max(), rel=1e-9))
    invoke("train", "-q", *SQUARES, *FEW, *LEVEL, folder / "train", tmp_path / "m.h5")
    answer = invoke("predict", "-q", tmp_path / "new", tmp_path / "m.h5", "-").stdout.splitlines()[-1]
    assert float(answer) == pytest.approx(y.mean(), rel=1e-9)
    shown = invoke("inspect", folder / "squares.h5").stdout
    assert f"values from {y.min():.5g} to {y.max():.5g} (mean {y.mean():.5g}, deviation {y.std():.5g})\n" in shown
    assert "loss least-squares" in shown and "models      1, all converged" in shown
    assert "quantile 0.1 0.5 0.9" in invoke("inspect", folder / "levels.h5").stdout


@pytest.mark.parametrize("model", ["squares.h5", "levels.h5"])
@pytest.mark.parametrize("flag", [("-b", 1), ("--decision-values",), ("--confusion",)])
@pytest.mark.fast(6)
def test_a_model_of_values_has_no_classes(flag: tuple[Any, ...], model: str, folder: Path) -> None:
    message = usage_error("predict", *flag, folder / "test", folder / model)
    name = " ".join(map(str, flag))
    assert message.endswith(f"Error: {name} is for classes, and {folder / model} predicts values; leave it out.")


CLASSES_ALONE = [
    ("-w", "1", "2"), ("--weights", "balanced"), ("-b", "1"), ("--force-classes",), ("--multiclass", "ava")
]  # fmt: skip


@pytest.mark.parametrize("command", ["train", "cv"])
@pytest.mark.parametrize("option", CLASSES_ALONE, ids=" ".join)
@pytest.mark.fast(10)
def test_options_of_classes_are_refused(option: tuple[str, ...], command: str, folder: Path, tmp_path: Path) -> None:
    if command == "cv" and option[0] == "-b":
        option = ("--offset",)
    output = [tmp_path / "m.h5"] if command == "train" else []
    message = usage_error(command, *SQUARES, *option, folder / "train", *output)
    assert message.startswith(f"error: {option[0]}") and " is for classes" in message and "leave it out" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ((*SQUARES, "--quantile", "0.5"), "--quantile is for --loss quantile and --loss expectile; give one of them"),
        (
            (*SQUARES, "-p", "0.5"),
            "-p/--epsilon is for --loss epsilon-insensitive, --loss squared-epsilon-insensitive, --loss",
        ),
        (("--loss", "huber", "-p", "0"), "--loss huber takes -p above 0; --loss absolute is near to it"),
        ((*LEVELS[:3], "0.5,1"), "between 0 and 1"),
        ((*SQUARES, "--score", "tpr-tnr"), "--score tpr-tnr: choose one of mse, mae, pinball, r2"),
        (("--score", "mae"), "--score mae: choose one of accuracy, tpr-tnr"),
        ((*SQUARES, "--metric", "lmnn"), "--metric lmnn is learned from classes, and the loss is one of values"),
    ],
)
@pytest.mark.fast(6)
def test_options_that_do_not_fit_the_loss_are_refused(
    given: tuple[str, ...], remedy: str, folder: Path, tmp_path: Path
) -> None:
    message = invoke("train", *given, folder / "train", tmp_path / "m.h5", code=2).stderr
    assert remedy in " ".join(message.split())
    assert not list(tmp_path.iterdir())


def test_values_without_a_loss_of_values_are_refused_with_the_remedy(folder: Path, tmp_path: Path) -> None:
    for command, output in (("train", [tmp_path / "m.h5"]), ("cv", [])):
        message = error(command, *FEW, folder / "train", *output)
        assert message.startswith("200 different labels that are not all whole numbers, as ")
        assert "predict values by --loss least-squares, or if they are classes, give --force-classes" in message
    assert not list(tmp_path.iterdir())


def test_equal_values_are_refused(tmp_path: Path) -> None:
    (tmp_path / "same").write_text("".join(f"2.5 1:{i}\n" for i in range(20)))
    message = error("train", *SQUARES, *FEW, tmp_path / "same", tmp_path / "m.h5")
    assert message == f"{tmp_path / 'same'}: all 20 rows have the value 2.5; training needs at least two values\n"


def test_a_grid_is_scored_by_squares(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "grid.svg"  # whose texts are comments
    done = invoke("cv", *SQUARES, *FEW, folder / "train")
    header, *rows = csv.reader(done.stdout.splitlines())
    assert header == ["cell", "rows", "gamma", "cost", "mse", "best"] and len(rows) == 4
    (best,) = (float(row[4]) for row in rows if row[5] == "1")
    assert best == min(float(row[4]) for row in rows)
    deviation = read(folder / "train").y.std()
    found = re.search(r"RMSE (\S+), R\^2 (\S+) cross-validated, over 200 rows", done.stderr)
    assert found is not None
    assert float(found[1]) == pytest.approx(np.sqrt(best), rel=1e-4)
    assert float(found[2]) == pytest.approx(1.0 - best / deviation**2, abs=2e-4)
    assert f"selection   cross-validated RMSE {found[1]}, R^2 {found[2]}\n" in (
        invoke("train", *SQUARES, *FEW, folder / "train", "-").stderr
    )
    report = json.loads(invoke("cv", "--json", *SQUARES, *FEW, "--plot", picture, folder / "train").stdout)
    assert "RMSE, cross-validated" in picture.read_text() and f"best: {np.sqrt(best):.4g} at" in picture.read_text()
    assert report["error"] == pytest.approx(best, rel=1e-5)
    assert [point["mse"] for point in report["points"] if point["best"]] == [report["error"]]


@pytest.mark.parametrize(
    ("given", "column", "text"),
    [
        ((*SQUARES, "--score", "mae"), "mae", "mean absolute error"),
        ((*SQUARES, "--score", "pinball"), "pinball", "mean pinball loss"),
        (("--loss", "expectile"), "expectile", "mean expectile loss"),
        (("--loss", "huber", "-p", "0.5,2"), "mae", "mean absolute error"),
    ],
)
@pytest.mark.fast(4)
def test_a_grid_is_scored_as_asked(given: tuple[str, ...], column: str, text: str, folder: Path) -> None:
    done = invoke("cv", *given, *FEW, folder / "train")
    names, *rows = csv.reader(done.stdout.splitlines())
    assert names[-2:] == [column, "best"] and ("epsilon" in names) == ("-p" in given)
    assert len(rows) == (8 if "-p" in given else 4)
    best = min(float(row[-2]) for row in rows)
    found = re.search(rf"{text} (\S+) cross-validated, over 200 rows", done.stderr)
    assert found is not None and float(found[1]) == pytest.approx(best, rel=1e-3)


def test_each_of_several_levels_has_its_own_best_point(folder: Path) -> None:
    """Their error is the mean of those of runs with one level, and the table says where each of these would be."""
    found = []
    for levels in ("0.1,0.5,0.9", "0.1", "0.5", "0.9"):
        done = invoke("cv", "--loss", "quantile", "--quantile", levels, *FEW, *LEVEL, folder / "train")
        rows = csv.DictReader(done.stdout.splitlines())
        error = re.search(r"mean pinball loss (\S+) cross-validated", done.stderr)
        assert error is not None
        text = done.stderr
        found.append((float(error[1]), {(row["gamma"], row["cost"]) for row in rows if row["best"] == "1"}))
        if levels == "0.1,0.5,0.9":
            told = re.findall(r"^level (\S+) +-g (\S+) -C (\S+)$", text, re.MULTILINE)
        else:
            assert "level" not in text.replace("--loss quantile", "")
    (error_of_all, points), *alone = found
    assert error_of_all == pytest.approx(np.mean([error for error, _ in alone]), rel=1e-3)
    assert points == set.union(*(point for _, point in alone)) and len(points) == 2
    named = [(float(gamma), float(cost)) for _, gamma, cost in told]
    assert [level for level, *_ in told] == ["0.1", "0.5", "0.9"]
    assert [{point} for point in named] == [{tuple(map(float, p)) for p in points} for _, points in alone]


def test_a_description_has_the_point_of_each_answer(folder: Path, tmp_path: Path) -> None:
    found = {}
    for level in ("0.1", "0.5", "0.9"):
        invoke("train", "-q", "--force", *LEVELS[:3], level, *FEW, *LEVEL, folder / "train", tmp_path / "m.h5")
        shown = invoke("inspect", tmp_path / "m.h5").stdout
        gamma, cost = (re.search(rf"^{name} +(\S+)$", shown, re.MULTILINE) for name in ("gamma", "C"))
        assert gamma is not None and cost is not None
        found[level] = (gamma[1], cost[1])
    invoke("train", "-q", "--force", *LEVELS, *FEW, *LEVEL, folder / "train", tmp_path / "m.h5")
    shown = invoke("inspect", tmp_path / "m.h5").stdout
    assert re.findall(r"^level (\S+) +gamma (\S+); C (\S+)$", shown, re.MULTILINE) == [
        (level, *point) for level, point in found.items()
    ]
    assert len(set(found.values())) == 2 and "\ngamma" not in shown
    invoke("train", "-q", "--force", *SQUARES, *FEW, "--coverage", 0.8, folder / "train", tmp_path / "m.h5")
    answers = json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)["models"]["answers"]
    assert [each["name"] for each in answers] == ["value", "lower end", "upper end"]


def test_cells_tell_what_each_level_chose(folder: Path, tmp_path: Path) -> None:
    cells = ("-P", "chunks", "-c", 100, "--plot", tmp_path / "grid.png")
    done = invoke("cv", *LEVELS, *FEW, *cells, folder / "train")
    assert "chosen   by each of 3 levels in each of 2 cells\n".replace("   ", "      ") in done.stderr
    assert len(re.findall(r"^level 0\.[159] +gamma \S+.*; C \S+", done.stderr, re.MULTILINE)) == 3
    report = json.loads(invoke("cv", "--json", *LEVELS, *FEW, folder / "train").stdout)
    assert sorted(level for point in report["points"] for level in point.get("levels", [])) == [0.1, 0.5, 0.9]


@pytest.mark.parametrize("loss", [SQUARES, LEVELS], ids=["squares", "levels"])
@pytest.mark.parametrize(
    "cells",
    [("-P", "voronoi", "-c", 200), ("-P", "chunks", "-c", 150), ("-P", "voronoi", "-c", 150, "--repeats", 2)],
    ids=["voronoi", "chunks", "repeats"],
)
@pytest.mark.fast(6)
def test_cells_learn_their_own_values(cells: tuple[Any, ...], loss: tuple[str, ...], tmp_path: Path) -> None:
    for name, seed in (("train", 6), ("test", 7)):
        write(tmp_path / name, *values(400, seed))
    done = invoke("train", *loss, *FEW, *cells, tmp_path / "train", tmp_path / "m.h5")
    count = re.search(r"(\d+) cells of", done.stderr) or re.search(r"(\d+) cells \(", done.stderr)
    assert count is not None and int(count[1]) >= 2
    assert ", 2 repeats, " in done.stderr if "--repeats" in cells else "repeats" not in done.stderr
    lines = invoke("predict", "-q", tmp_path / "test", tmp_path / "m.h5", "-").stdout.splitlines()
    answers = np.asarray([line.split() for line in lines[-400:]], np.float64)
    y = read(tmp_path / "test").y
    assert (np.diff(answers, axis=1) >= 0.0).all()
    assert mean_squared_error(y, answers[:, answers.shape[1] // 2]) < 0.1 * y.var()


@pytest.mark.fast(1)
@pytest.mark.parametrize("loss", [SQUARES, LEVELS], ids=["squares", "levels"])
def test_neither_jobs_nor_where_rows_lie_change_a_bit(loss: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    given = ("train", "-q", *loss, *FEW[:4], *PLAIN, "-P", "chunks", "-c", 60, folder / "train")
    for name, more in (("one", ("-j", 1)), ("two", ("-j", 2)), ("disk", ("-j", 1, "--out-of-core"))):
        invoke(*given, *more, tmp_path / name)
    assert content(tmp_path / "one") == content(tmp_path / "two") == content(tmp_path / "disk")
    text = {invoke("predict", "-q", "-j", j, folder / "test", tmp_path / "one", "-").stdout for j in (1, 2)}
    assert len(text) == 1


@pytest.mark.parametrize("loss", [SQUARES, LEVELS], ids=["squares", "levels"])
def test_an_interrupted_run_goes_on_to_the_same_bits(
    loss: tuple[str, ...], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was scored before is not scored again, and each level finds its own point in it."""
    given = (*loss, "-g", "0.02,0.2,2", "-C", "0.3,3", "-v", "3", *PLAIN)
    monkeypatch.setattr(scheduling, "SMALL_RUN", 0.0)
    invoke("train", "-q", "-j", 1, *given, folder / "train", tmp_path / "whole.h5")
    line = ("train", "-j", 1, *given, folder / "train", tmp_path / "m.h5")

    with over_after_a_record(monkeypatch):
        ended = invoke(*line, "--time-limit", "1h", code=124)
    assert "the time limit is over with 1 settings scored and 0 of 1 cells finished" in ended.stderr
    resumed = invoke(*line, "--resume")
    assert "note: settings scored before, in cells that are not finished: 1\n" in resumed.stderr
    assert content(tmp_path / "m.h5") == content(tmp_path / "whole.h5")


@pytest.mark.parametrize("cells", [(), ("-P", "voronoi", "-c", 120)], ids=["one", "voronoi"])
@pytest.mark.parametrize("loss", [SQUARES, LEVELS], ids=["squares", "levels"])
@pytest.mark.fast(4)
def test_sparse_rows_have_values(loss: tuple[str, ...], cells: tuple[Any, ...], tmp_path: Path) -> None:
    """Each row has 3 of 400 columns, of which the first ten count most."""
    rng = np.random.default_rng(8)
    effect = rng.normal(0.0, 3.0, 10)
    for name in ("train", "test"):
        lines = []
        for _ in range(300):
            one, others = int(rng.integers(10)), sorted(rng.choice(np.arange(11, 401), 2, replace=False).tolist())
            y = 50.0 + effect[one] + 0.1 * rng.normal()
            lines.append(f"{float(y)!r} {one + 1}:1 {others[0]}:1 {others[1]}:1\n")
        (tmp_path / name).write_text("".join(lines))
    given = ("-g", "0.1", "-C", "10,100", "--scale", "none", *PLAIN, "-j", 1)
    done = invoke("train", *loss, *given, *cells, tmp_path / "train", tmp_path / "m.h5")
    assert "300 rows, 400 features, " in done.stderr or "300 rows, 3" in done.stderr
    lines = invoke("predict", "-q", tmp_path / "test", tmp_path / "m.h5", "-").stdout.splitlines()
    answers = np.asarray([line.split() for line in lines[-300:]], np.float64)
    y = read(tmp_path / "test").y
    assert mean_squared_error(y, answers[:, answers.shape[1] // 2]) < 0.5 * y.var()


def test_a_metric_is_learned_where_one_column_matters(tmp_path: Path) -> None:
    for name, seed in (("train", 9), ("test", 10)):
        write(tmp_path / name, *values(300, seed, columns=8, wave=2.0))
    given = ("train", *SQUARES, "-j", 1)
    found = {}
    for metric in ("none", "auto"):
        model = tmp_path / f"{metric}.h5"
        invoke(*given, "--metric", metric, tmp_path / "train", model)
        found[metric] = rmse(tmp_path / "test", model)
    assert found["auto"] < 0.4 * found["none"]
    shown = invoke("inspect", tmp_path / "auto.h5").stdout
    assert re.search(r"^weights     \S+ +feature 1$", shown, re.MULTILINE)


def test_a_report_has_scores_and_pictures(folder: Path, tmp_path: Path) -> None:
    """The pictures of shares are of models with levels; the scores are those of the lines."""
    given = ("predict", "--report", tmp_path / "a", folder / "test")
    done = invoke(*given, folder / "squares.h5", tmp_path / "out")
    pictures = {"predicted-observed.png", "residuals.png"}
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"report.json", *pictures}
    report = json.loads((tmp_path / "a" / "report.json").read_text())
    (answer,) = report["answers"]
    assert report["rows"] == 150 and answer["mean_squared_error"] == pytest.approx(
        number(done.stderr, "Mean squared error"), rel=1e-5
    )
    assert "exists already" in error(*given, folder / "squares.h5", tmp_path / "new")
    invoke(*given, "--force", folder / "levels.h5", tmp_path / "levels")
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"report.json", *pictures, "reliability.png"}
    report = json.loads((tmp_path / "a" / "report.json").read_text())
    assert [answer["level"] for answer in report["answers"]] == [0.1, 0.5, 0.9]
    assert not (tmp_path / "new").exists()


# tables


def table(path: Path, n: int, seed: int, price: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Write a table of prices that depend on the town, one of 25, and on a number; the prices, and the towns."""
    rng = np.random.default_rng(seed)
    town, size = rng.integers(0, 25, n), rng.standard_normal(n)
    y = 100.0 + np.random.default_rng(99).normal(0.0, 5.0, 25)[town] + 2.0 * np.sin(size) + 0.3 * rng.standard_normal(n)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["id", *(["price"] if price else []), "size", "town"])
        for i in range(n):
            out.writerow([f"r{i}", *([repr(float(y[i]))] if price else []), f"{size[i]:.5f}", f"town {town[i]}"])
    return y, town


TABLE = ("--label", "price", "--id-column", "id")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tables")
    table(path / "train.csv", 300, 0)
    table(path / "test.csv", 200, 1)
    invoke("train", "-q", *SQUARES, *TABLE, *FEW, path / "train.csv", path / "squares.h5")
    return path


def test_a_text_column_of_many_levels_says_the_mean_of_its_values(tables: Path, tmp_path: Path) -> None:
    done = invoke("predict", tables / "test.csv", tables / "squares.h5", tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    with open(tables / "test.csv") as file:
        truth = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "price"] and [row["id"] for row in rows] == [row["id"] for row in truth]
    y, answers = (np.asarray([float(row["price"]) for row in each]) for each in (truth, rows))
    assert number(done.stderr, "Mean squared error") == pytest.approx(mean_squared_error(y, answers), rel=1e-5)
    correlation = np.corrcoef(y, answers)[0, 1] ** 2
    assert number(done.stderr, "Squared correlation coefficient") == pytest.approx(correlation, rel=1e-5)
    assert mean_squared_error(y, answers) < 0.1 * y.var()
    lines = invoke("predict", "-q", "--format", "libsvm", tables / "test.csv", tables / "squares.h5", "-").stdout
    assert np.array_equal(np.asarray(lines.split(), np.float64), answers)


def test_towns_that_training_did_not_have_are_noted(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,price,size,town\na,,0,town 3\nb,101.5,0,nowhere\nc,99.5,1,\n")
    done = invoke("predict", tmp_path / "new.csv", tables / "squares.h5", tmp_path / "out.csv")
    assert "note: column 'town' has 1 value that training did not have\n" in done.stderr
    answers = [float(row["price"]) for row in csv.DictReader((tmp_path / "out.csv").read_text().splitlines())]
    mse = mean_squared_error([101.5, 99.5], answers[1:])
    assert len(answers) == 3 and number(done.stderr, "Mean squared error") == pytest.approx(mse, rel=1e-5)


def test_a_table_without_values_is_predicted_and_not_scored(tables: Path, tmp_path: Path) -> None:
    table(tmp_path / "new.csv", 200, 1, price=False)
    done = invoke("predict", tmp_path / "new.csv", tables / "squares.h5", tmp_path / "out.csv")
    assert done.stderr == ""
    invoke("predict", "-q", tables / "test.csv", tables / "squares.h5", tmp_path / "scored.csv")
    assert (tmp_path / "out.csv").read_text() == (tmp_path / "scored.csv").read_text()


def test_a_report_needs_values(tables: Path, tmp_path: Path) -> None:
    table(tmp_path / "new.csv", 20, 1, price=False)
    message = error(
        "predict", "--report", tmp_path / "r", tmp_path / "new.csv", tables / "squares.h5", tmp_path / "out"
    )
    assert message == f"{tmp_path / 'new.csv'}: no row has a value: --report is for files with values; leave it out\n"
    assert not (tmp_path / "out").exists()


def test_cells_of_a_partition_file_are_those_of_values(tables: Path, tmp_path: Path) -> None:
    """The metric is learned of values, and a text column says their mean: both as in training without the file."""
    cells = ("-P", "chunks", "-c", 150, "--metric", "diag")
    invoke("partition", "-q", *SQUARES, *TABLE, *cells, tables / "train.csv", tmp_path / "cells.h5")
    given = ("train", "-q", *SQUARES, *TABLE, *FEW[:6])
    invoke(*given, "--partition-file", tmp_path / "cells.h5", tables / "train.csv", tmp_path / "a.h5")
    invoke(*given, *cells, tables / "train.csv", tmp_path / "b.h5")
    found = [invoke("predict", "-q", tables / "test.csv", tmp_path / name, "-").stdout for name in ("a.h5", "b.h5")]
    assert found[0] == found[1]


def test_levels_of_a_table_are_columns(tables: Path, tmp_path: Path) -> None:
    invoke("train", "-q", *LEVELS, *TABLE, *FEW, tables / "train.csv", tmp_path / "m.h5")
    invoke("predict", "-q", tables / "test.csv", tmp_path / "m.h5", tmp_path / "out.tsv")
    header, *lines = (tmp_path / "out.tsv").read_text().splitlines()
    assert header.split("\t") == ["id", "price 0.1", "price 0.5", "price 0.9"]
    assert lines[3].split("\t")[0] == "r3" and len(lines) == 200
    answers = np.asarray([line.split("\t")[1:] for line in lines], np.float64)
    assert (np.diff(answers, axis=1) >= 0.0).all()
    text = invoke("predict", "-q", tables / "test.csv", tmp_path / "m.h5", "-").stdout.splitlines()
    assert text[0] == "0.1 0.5 0.9" and np.array_equal(np.loadtxt(text[1:]), answers)


def test_text_is_no_value(tables: Path, tmp_path: Path) -> None:
    message = error("train", *SQUARES, *FEW, "--label", "town", tables / "train.csv", tmp_path / "m.h5")
    assert "' in row 1), and values to predict are numbers; name another column by --label NAME" in message
    assert "column 'town' has text ('" in message and "leave --loss out" in message


def test_the_first_text_among_values_is_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,3\n2,\n3,n/a!\n4,5\n5,x\n")
    message = error("train", *SQUARES, *FEW, "--label", "y", tmp_path / "t.csv", tmp_path / "m.h5")
    assert "column 'y' has text ('n/a!' in row 3), and values to predict are numbers" in message


def test_rows_without_a_value_are_left_out_on_request(tables: Path, tmp_path: Path) -> None:
    gaps = tmp_path / "gaps.csv"
    gaps.write_text((tables / "train.csv").read_text() + "x,,0.5,town 3\n")
    given = ("train", *SQUARES, *TABLE, *FEW)
    assert "row 301 has no label in 'price'" in error(*given, gaps, tmp_path / "m.h5")
    done = invoke(*given, "--drop-unlabelled", gaps, tmp_path / "m.h5")
    assert "note: 1 row without a label is left out\n" in done.stderr and "300 rows, " in done.stderr
    found = [invoke("predict", "-q", tables / "test.csv", each / name, "-").stdout for each, name in (
        (tmp_path, "m.h5"), (tables, "squares.h5")
    )]  # fmt: skip
    assert found[0] == found[1]
