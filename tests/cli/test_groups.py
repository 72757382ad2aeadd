"""Groups and blocks of rows that are held out together: the error is that of new groups, or of later rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import error, invoke, usage_error

ONE = ["-g", "2", "-C", "10", "-b", "1"]  # one point, which is cross-validated


def grouped(n: int = 300, size: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in groups that share a place and a random label: who has seen one of a group knows the others."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(n // size), size)
    X = rng.uniform(-1, 1, (n // size, 2))[group] + 0.01 * rng.normal(size=(n, 2))
    return X, rng.permutation(np.arange(n // size) % 2)[group], group


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("groups")
    X, y, group = grouped()
    text = [f"{label} 1:{a:.6f} 2:{b:.6f}\n" for label, (a, b) in zip(y, X, strict=True)]
    (path / "t.libsvm").write_text("".join(text))
    (path / "groups.txt").write_text("".join(f"patient {number}\n" for number in group))
    rows = [f"{label},{a:.6f},{b:.6f},p{number}\n" for label, (a, b), number in zip(y, X, group, strict=True)]
    (path / "t.csv").write_text("label,a,b,patient\n" + "".join(rows))
    return path


def cv_error(*args: object) -> float:
    return float(json.loads(invoke("train", "--json", *args).stdout)["summary"]["cv_error"])


@pytest.mark.parametrize("metric", ["none", "auto"])
def test_the_error_is_that_of_new_groups(metric: str, folder: Path, tmp_path: Path) -> None:
    to = [tmp_path / "m.h5", "--force", *ONE, "--metric", metric]
    assert cv_error(folder / "t.libsvm", *to) < 0.1
    assert cv_error(folder / "t.libsvm", "--group-file", folder / "groups.txt", *to) > 0.3
    assert cv_error(folder / "t.csv", "--group-column", "patient", *to) > 0.3
    # the rows are in the order of their groups, so that few of these are in two blocks
    assert cv_error(folder / "t.libsvm", "-v", "blocks", *to) > 0.3


@pytest.mark.parametrize("way", [["-j", "2"], ["--out-of-core"], ["-P", "voronoi", "-c", "100"]])
def test_groups_are_held_out_in_every_way(way: list[str], folder: Path, tmp_path: Path) -> None:
    to = [tmp_path / "m.h5", *ONE, "--metric", "none", *way]
    assert cv_error(folder / "t.csv", "--group-column", "patient", *to) > 0.3


@pytest.mark.whole
@pytest.mark.parametrize("way", [["--group-file", "groups.txt"], ["-v", "blocks:4"]])
def test_coarse_cells_and_a_metric_know_groups(way: list[str], folder: Path, tmp_path: Path) -> None:
    """In several coarse cells, and out of core, the model is that of the memory."""
    way = [str(folder / word) if word.endswith("txt") else word for word in way]
    options = [*way, *ONE, "-P", "voronoi", "-c", "60", "--coarse-size", "150", "--metric", "diag"]
    models = []
    for name, more in {"a": [], "b": ["--out-of-core"]}.items():
        invoke("train", folder / "t.libsvm", tmp_path / f"{name}.h5", *options, *more)
        models.append(invoke("predict", "--decision-values", folder / "t.libsvm", tmp_path / f"{name}.h5").stdout)
    assert models[0] == models[1]


def test_a_metric_is_not_praised_by_rows_of_its_own_groups(folder: Path, tmp_path: Path) -> None:
    summary = json.loads(
        invoke(
            "train",
            "--json",
            "--metric",
            "diag",
            *ONE,
            "--group-file",
            folder / "groups.txt",
            folder / "t.libsvm",
            tmp_path / "m.h5",
        ).stdout
    )["summary"]
    assert summary["cv_error"] > 0.2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("a\n" * 299, "ends after line 299; the training file has 300 rows"),
        ("a\nb\n" * 151, "301: the training file has only 300 rows; write a line a row"),
        ("a\n\n" * 150, "2: the line is empty"),
        ("a\n" * 300, "all 300 rows are of one group; cross-validation needs two"),
    ],
)
def test_a_file_of_groups_that_does_not_fit_is_refused(
    lines: str, message: str, folder: Path, tmp_path: Path
) -> None:  # fmt: skip
    (tmp_path / "g.txt").write_text(lines)
    assert message in error("train", "--group-file", tmp_path / "g.txt", folder / "t.libsvm", tmp_path / "m.h5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--group-file", "g", "-v", "blocks"], "--group-file and --folds blocks both say what is held out together"),
        (["-v", "blocks:1"], "1 is not in the range 2<=x<=100"),
        (["-v", "block"], "'block' is not a whole number"),
        (["--stream", "-s", "sgd", "-m", "linear", "-v", "blocks"], "--stream deals rows out to folds at random"),
        (["--stream", "-s", "sgd", "-m", "linear", "--group-file", "g"], "--stream reads a file several times"),
    ],
)
def test_options_of_groups_that_do_not_fit_are_refused(
    options: list[str], message: str, folder: Path, tmp_path: Path
) -> None:  # fmt: skip
    assert message in usage_error("train", *options, folder / "t.libsvm", tmp_path / "m.h5")


@pytest.mark.whole
def test_one_group_to_a_cell_says_nothing_of_the_error(tmp_path: Path) -> None:
    """Cells that are groups: each is trained with folds of single rows, and no error is told."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0], [100.0, 100.0]], 40, axis=0) + rng.normal(size=(80, 2))
    y = (X[:, 0] % 100 > X[:, 1] % 100).astype(int)
    text = "".join(f"{label} 1:{a:.4f} 2:{b:.4f}\n" for label, (a, b) in zip(y, X, strict=True))
    (tmp_path / "t.libsvm").write_text(text)
    (tmp_path / "g.txt").write_text("a\n" * 40 + "b\n" * 40)
    cells = ("-P", "voronoi", "-c", 40, "--metric", "none", "--group-file", tmp_path / "g.txt", tmp_path / "t.libsvm")
    report = json.loads(invoke("train", "--json", *cells, tmp_path / "m.h5").stdout)
    assert report["summary"]["cv_error"] is None and report["summary"]["cells"] == 2
    for loss in ((), ("--loss", "least-squares")):
        few = (*loss, "-g", "1,2", "-C", 1, *cells)
        assert json.loads(invoke("cv", "--json", *few).stdout)["error"] is None
        assert "unknown, as each cell has the rows of one group alone\n" in invoke("cv", *few).stderr
        assert "by folds at random, as each cell has" in invoke("train", "--force", *few, tmp_path / "m.h5").stderr
    for wish in (("-b", 1), ("--coverage", 0.9, "--loss", "least-squares")):
        message = error("train", *wish, "-g", 1, "-C", 1, *cells, tmp_path / f"{wish[0]}.h5")
        assert message.startswith("each cell has the rows of one group alone, and none is held out: there is nothing")
