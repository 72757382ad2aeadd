"""lsvm train: the model it writes, what it says, and what it refuses."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import (
    FAST,
    PLAIN,
    POINTS,
    clean_environment,
    command,
    error,
    invoke,
    run,
    run_all,
    usage_error,
    wait_until,
)
from edge_cases import METHODS
from malformed import MALFORMED
from sklearn.svm import SVC

from localsvm.data.readers.libsvm import read
from localsvm.data.writers.libsvm import write
from localsvm.runs.predict import LocalModel
from localsvm.store.journal import journal_path, open_journal
from localsvm.store.model import load_model


def content(path: Path) -> bytes:
    """The manifest of a model: checksums of all that it holds but its creation time."""
    with h5py.File(path) as file:
        return bytes(file.attrs["manifest"])


def test_the_model_is_written_beside_the_data(train_file: Path, tmp_path: Path) -> None:
    data = tmp_path / "higgs.train.libsvm.gz"
    data.write_bytes(gzip.compress(train_file.read_bytes()))
    result = invoke("train", *FAST, data)
    assert result.stdout == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["higgs.train.libsvm.gz", "higgs.train.model.h5"]
    assert f"model       {tmp_path}/higgs.train.model.h5" in result.stderr


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a9a", "a9a.model.h5"),
        ("w8a.txt", "w8a.model.h5"),
        ("x.svm.zst", "x.model.h5"),
        ("dir.txt/a.b.bz2", "dir.txt/a.b.model.h5"),
        (".libsvm", ".libsvm.model.h5"),
    ],
)
def test_default_model_names(given: str, expected: str) -> None:
    from localsvm.cli.paths import default_model

    assert default_model(given) == expected


def test_the_summary_tells_what_was_done(train_file: Path, tmp_path: Path) -> None:
    result = invoke("train", *FAST, "-P", "voronoi", "-c", 80, "-j", 1, train_file, tmp_path / "m.h5")
    words = [line.split()[0] for line in result.stderr.splitlines()]
    assert [word for word in words if word != "note:"] == ["data", "partition", "selection", "models", "time", "model"]
    for part in (
        "300 rows, 2 features, 2 classes: -1 (",
        "voronoi, ",
        "cross-validated error ",
        "all converged",
        "read 0.",
    ):
        assert part in result.stderr


def test_quiet_says_nothing(train_file: Path, tmp_path: Path) -> None:
    result = invoke("train", "-q", *FAST, train_file, tmp_path / "m.h5")
    assert result.output == ""


def test_the_report(train_file: Path, tmp_path: Path) -> None:
    result = invoke("train", "--json", *FAST, "-w-1", 2.5, train_file, tmp_path / "m.h5")
    report = json.loads(result.stdout)
    assert (report["schema_version"], report["command"]) == (1, "train")
    assert report["model"] == str(tmp_path / "m.h5")
    assert report["config"]["class_weights"] == [[-1.0, 2.5]]
    assert report["config"]["method"] == {
        "name": "svm", "kernel": "auto", "gamma": [0.5, 4.0], "cost": [0.3, 3.0], "degree": 3, "coef0": 0.0,
        "offset": False, "tolerance": 0.001,
    }  # fmt: skip
    with load_model(tmp_path / "m.h5") as model:  # where it is decided
        assert model.config["method"] == report["config"]["method"] | {"kernel": "gaussian"}
    summary = report["summary"]
    assert summary["rows"] == 300 and sum(summary["class_rows"]) == 300 and summary["labels"] == [-1.0, 1.0]
    assert 0 < summary["cv_error"] < 0.2 and summary["not_converged"] == 0
    assert set(summary["seconds"]) == {"read", "partition", "train", "write"}


def test_options_reach_the_model(train_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.h5"
    invoke(
        "train", "-t", "polynomial", "--degree", 2, "--coef0", 1, "-g", "0.5", "-C", "2^1", "--offset", "-e", 1e-4,
        "-P", "kmeans", "-c", 150, "--scale", "zscore", "-v", 3, "--grid", "adaptive", "--select", "refit",
        "--multiclass", "ava", "-w", 1, 2, "-w1", 3, "--seed", 7, train_file, model,
    )  # fmt: skip
    with load_model(model) as loaded:
        config = loaded.config
    method = config.pop("method")
    assert method == {
        "name": "svm", "kernel": "polynomial", "gamma": [0.5], "cost": [2.0], "degree": 2, "coef0": 1.0,
        "offset": True, "tolerance": 1e-4,
    }  # fmt: skip
    assert config == {
        "partition": "kmeans", "cell_size": 150, "scale": "zscore", "folds": 3, "grid": "adaptive",
        "select": "refit", "multiclass": "ava",
        "class_weights": [[1.0, 2.0], [1.0, 3.0]], "seed": 7, "features": 2, "dense": True, "repeats": 1,
        "weighted": False,
    }  # fmt: skip


def test_one_gamma_and_one_cost_are_not_cross_validated(train_file: Path, tmp_path: Path) -> None:
    result = invoke("train", "-g", 1, "-C", 1, train_file, tmp_path / "m.h5")
    assert "selection   none" in result.stderr
    with load_model(tmp_path / "m.h5") as model:
        assert model.column("model_fold").tolist() == [-1]


@pytest.mark.fast(1)
@pytest.mark.parametrize("options", [("-P", "voronoi", "-c", "80"), ("-P", "none")], ids=["cells", "one"])
def test_jobs_do_not_change_the_model(options: tuple[str, ...], train_file: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        invoke("train", "-j", jobs, *FAST, *options, "-q", train_file, tmp_path / f"{jobs}.h5")
    assert content(tmp_path / "1.h5") == content(tmp_path / "2.h5")


@pytest.mark.whole
def test_stdin_and_compression_do_not_change_the_model(train_file: Path, tmp_path: Path, model_file: Path) -> None:
    text = train_file.read_bytes()
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(text))
    options = ("-P", "voronoi", "-c", "80", *FAST, "-j", "1", "-q")
    assert run("train", *options, packed, tmp_path / "packed.h5").returncode == 0
    assert run("train", *options, "-", tmp_path / "stdin.h5", input=text).returncode == 0
    assert content(tmp_path / "packed.h5") == content(tmp_path / "stdin.h5") == content(model_file)


@pytest.mark.whole
def test_simd_levels_predict_alike(train_file: Path, test_file: Path, tmp_path: Path) -> None:
    from localsvm.kernels._kernels import LEVELS, simd_level

    decisions = []
    for level in LEVELS[: simd_level() + 1]:
        model, environment = tmp_path / f"{level}.h5", clean_environment(LOCALSVM_SIMD=level)
        learn = ("train", *FAST, "-e", 1e-6, "-j", 1, "-q", train_file, model)
        printed = run_all(learn, ("predict", "-q", "--decision-values", test_file, model), env=environment)
        decisions.append(np.loadtxt(printed.splitlines(), skiprows=1))
    for other in decisions[1:]:
        np.testing.assert_array_equal(other[:, 0], decisions[0][:, 0])
        np.testing.assert_allclose(other[:, 1], decisions[0][:, 1], atol=1e-5)


def test_the_problem_of_libsvm(train_file: Path, test_file: Path, tmp_path: Path) -> None:
    """Options of the page "coming from LIBSVM" give its objective, so its decision values up to the tolerance."""
    options = ("-P", "none", "--scale", "none", "--offset", "-C", 10, "-g", 0.5, "-e", 1e-5, "-w1", 2, *PLAIN)
    invoke("train", "-q", *options, train_file, tmp_path / "m.h5")
    printed = invoke("predict", "--decision-values", test_file, tmp_path / "m.h5").stdout.splitlines()
    data = read(train_file)
    svc = SVC(C=10, gamma=0.5, tol=1e-5, class_weight={1: 2}).fit(data.X, data.y)
    np.testing.assert_allclose(
        np.loadtxt(printed, skiprows=1)[:, 1], svc.decision_function(read(test_file).X), atol=1e-3
    )


def test_partition_files_stand_for_their_options(train_file: Path, tmp_path: Path, model_file: Path) -> None:
    cells = tmp_path / "cells.h5"
    invoke("partition", "-P", "voronoi", "-c", 80, *PLAIN, train_file, cells)
    invoke("train", "--partition-file", cells, *POINTS, "-q", train_file, tmp_path / "m.h5")
    assert content(tmp_path / "m.h5") == content(model_file)
    message = usage_error("train", "--partition-file", cells, "--scale", "row", train_file, tmp_path / "n.h5")
    assert "--scale is fixed by --partition-file" in message


def test_a_partition_of_other_data_is_refused(train_file: Path, test_file: Path, tmp_path: Path) -> None:
    invoke("partition", "-c", 80, test_file, tmp_path / "cells.h5")
    message = error("train", "--partition-file", tmp_path / "cells.h5", train_file, tmp_path / "m.h5")
    assert "made from other data" in message


def test_nothing_is_overwritten(train_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.h5"
    model.write_text("precious")
    # the data are not there: the refusal comes before they are read
    assert "m.h5: exists already; give --force" in error("train", tmp_path / "absent", model)
    assert model.read_text() == "precious"
    invoke("train", "--force", *FAST, train_file, model)
    assert content(model)


def test_the_data_are_never_the_output(train_file: Path) -> None:
    before = train_file.read_bytes()
    assert "would replace" in error("train", "--force", train_file, train_file)
    assert train_file.read_bytes() == before


@pytest.mark.fast(1)
@pytest.mark.parametrize(("text", "message"), [(m[1], m[2]) for m in MALFORMED], ids=[m[0] for m in MALFORMED])
def test_malformed_data(text: bytes, message: str, tmp_path: Path) -> None:
    data = tmp_path / "bad.libsvm"
    data.write_bytes(text)
    assert error("train", "-j", 1, data, tmp_path / "m.h5").startswith(f"{data}{message}")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.libsvm"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-c", "1.0"], "the cost C is -C"),
        (["-c", "1"], "the cost C is -C"),
        (["-c", "0"], "the cost C is -C"),
        (["-s", "0"], "'0' is not a name: LIBSVM's 0, C-SVC, is what -m svm trains"),
        (["-t", "2"], "'2' is not a name: LIBSVM's 2 is -t gaussian"),
        (["-t", "gausian"], "'gausian' is not one of 'auto', 'gaussian'"),
        (["-h", "0"], "LIBSVM's shrinking has no switch here. For help, type --help."),
        (["-d", "3"], "--degree"),
        (["-P", "6"], "-P voronoi -c SIZE"),
        (["-m", "100"], "-m is the method here"),
        (["-g", "0"], "'0' is not a positive number"),
        (["-c", "1e20"], "-c/--cell-size 100000000000000000000: no cell has as many rows"),
        (["-g", "1:2:1"], "the count of a range is a whole number from 2 to 64"),
        (["-g", "1:2:10000000000000"], "the count of a range is a whole number from 2 to 64"),
        (["-g", f"1:2:{'9' * 5000}"], "the count of a range is a whole number from 2 to 64"),
        (["-C", "1;2"], "'1;2' is not a number; write 0.5, 1e-3 or 2^-5"),
        (["-e", "0"], "-e/--tolerance must be a positive number"),
        (["-w", "1", "0"], "the weight of label 1 must be a positive number"),
        (["-w", "1"], "is not a valid float"),
        (["-v", "1"], "1 is not in the range 2<=x<=100"),
        (["--memory", "100"], "write a number with a unit, as in 500M or 8G"),
        (["--cell-sise", "100"], "'--cell-size'"),
    ],
)
def test_wrong_options(args: list[str], message: str, train_file: Path, tmp_path: Path) -> None:
    done = invoke("train", *args, train_file, tmp_path / "m.h5", code=None)
    assert done.exit_code == 2 and message in " ".join(done.stderr.split()), done.stderr
    assert not list(tmp_path.iterdir())


def test_stdin_needs_a_model_name() -> None:
    assert "MODEL_FILE is needed" in usage_error("train", "-")


def test_weights_of_labels_that_are_not_there(train_file: Path, tmp_path: Path) -> None:
    message = error("train", "-w", 7, 2, train_file, tmp_path / "m.h5")
    assert message == "-w 7: no row has that label; the labels are -1, 1\n"
    for label, why in (
        ("9007199254740993", "a whole number that float64 does not hold"),
        ("spam", "labels are numbers"),
    ):
        assert why in " ".join(usage_error("train", "-w", label, 2, train_file, tmp_path / "m.h5").split())


def test_one_class_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1 1:1\n1 1:2\n")
    assert "training needs at least two classes" in error("train", tmp_path / "one")


def test_too_little_memory_is_a_message(train_file: Path, tmp_path: Path) -> None:
    assert "give more --memory" in error("train", "--memory", "1M", train_file, tmp_path / "m.h5")


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    result = invoke("train", "--debug", tmp_path / "absent", tmp_path / "m.h5", code=1)
    assert "Traceback (most recent call last)" in result.stderr and "\nerror: " in result.stderr


def test_a_full_disk_is_a_message(train_file: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands in for a full disk: both end the write with an error."""
    shell = f"ulimit -f 4; exec {' '.join(command('train', *FAST, '-j', 1, train_file, tmp_path / 'm.h5'))}"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60)
    assert done.returncode == 1 and b"no space left" in done.stderr and b"Traceback" not in done.stderr
    assert not (tmp_path / "m.h5").exists()


def test_progress_shows_on_a_terminal_only(train_file: Path, tmp_path: Path) -> None:
    arguments = ("train", "-P", "voronoi", "-c", 60, "-j", 1, *PLAIN, train_file)
    plain = run(*arguments, tmp_path / "plain.h5").stderr
    assert b"\r" not in plain and b"\033" not in plain
    shown = on_a_terminal(command(*arguments, tmp_path / "shown.h5"))
    assert "read ..." in shown and "train ..." in shown and re.search(r"0%\|.*\|", shown)


def on_a_terminal(arguments: list[str]) -> str:
    """Text that a command writes to stderr when that is a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    process = subprocess.Popen(arguments, stderr=theirs)
    os.close(theirs)
    text: list[bytes] = []

    def ended() -> bool:
        try:
            text.append(os.read(ours, 1 << 16))
        except OSError:  # the other side is closed
            return True
        return False

    wait_until(ended)
    os.close(ours)
    assert process.wait() == 0
    return b"".join(text).decode()


def test_the_model_predicts_what_the_library_predicts(model_file: Path, test_file: Path) -> None:
    done = run("predict", "--decision-values", test_file, model_file)
    with LocalModel(model_file) as model:
        expected: Any = model.decision_function(read(test_file).X)
    printed = np.loadtxt(done.stdout.splitlines(), skiprows=1)[:, 1:]
    np.testing.assert_array_equal(printed, expected)


@pytest.mark.fast(1)
@pytest.mark.parametrize("method", METHODS)
def test_rows_without_any_feature_are_refused(method: str, tmp_path: Path) -> None:
    (tmp_path / "zero").write_text("1\n-1\n" * 10)
    assert "no row has a feature" in error("train", "-m", method, tmp_path / "zero", tmp_path / "m.h5")
    assert not (tmp_path / "m.h5").exists()


def test_options_that_would_do_nothing_are_refused(train_file: Path, tmp_path: Path) -> None:
    assert "--lambda is not an option of the method l3" in usage_error("train", "-m", "l3", "--lambda", 3, train_file)
    assert "--projection rbf" in usage_error("train", "-m", "l3", "-g", 1, train_file, tmp_path / "m.h5")
    assert "-e/--tolerance" in usage_error("train", "-m", "linear", "-e", 1e-14, train_file, tmp_path / "m.h5")


def test_whole_numbers_may_have_an_exponent(train_file: Path, tmp_path: Path) -> None:
    invoke("train", *FAST, "-c", "1e2", "--coarse-size", "1.5e2", "--seed", "0e0", train_file, tmp_path / "m.h5")
    with h5py.File(tmp_path / "m.h5") as file:
        config = json.loads(file.attrs["config"])
    assert (config["cell_size"], config["coarse_size"], config["seed"]) == (100, 150, 0)
    for value in ("1.5", "15e-1", "1.55e1", "-2e3", "x", "1e", "1e400", "9" * 5000):
        assert "is not a whole number from 1" in usage_error("train", "--coarse-size", value, train_file)
        assert "a whole number from 10" in usage_error("train", "-c", value, train_file)
    assert "is not a whole number" in usage_error("train", "-m", "lasvm", "--epochs", "1.5", train_file)


def test_without_shared_memory_there_is_one_message(train_file: Path, tmp_path: Path) -> None:
    train = " ".join(command("train", "-q", "-j", 1, *FAST, train_file, tmp_path / "m.h5"))
    done = subprocess.run(["bash", "-c", f"ulimit -f 1; exec {train}"], capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr.startswith("error: no ") and done.stderr.count("\n") == 1


@pytest.mark.whole
def test_repeats_are_told(train_file: Path, test_file: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.h5"
    result = invoke("train", *FAST, "-P", "voronoi", "-c", 80, "--repeats", 3, "--json", train_file, model)
    assert (
        "partition   voronoi, 3 repeats, " in result.stderr
        and " of one repeat, in the mean (guessing: 40.33%)\n" in result.stderr
    )
    report = json.loads(result.stdout)
    assert report["config"]["repeats"] == report["summary"]["repeats"] == 3 and report["summary"]["rows"] == 300
    cells = report["summary"]["cells"]
    assert cells >= 12
    assert f"partition   voronoi, 3 repeats, {cells} cells (at most 80 rows each)\n" in invoke("inspect", model).stdout
    assert json.loads(invoke("inspect", "--json", model).stdout)["repeats"] == 3
    assert "Accuracy = 9" in invoke("predict", test_file, model, tmp_path / "labels").stderr
    table = invoke("cv", *FAST, "-P", "voronoi", "-c", 80, "--repeats", 3, train_file).stdout.splitlines()
    assert len(table) == 1 + 4 * cells


def test_repeats_need_several_partitions(train_file: Path, tmp_path: Path) -> None:
    model, cells, two = tmp_path / "m.h5", tmp_path / "cells.h5", ("--repeats", 2)
    assert "leave one of the two out" in usage_error("train", "--metric", "none", *two, "-P", "none", train_file, model)
    assert "300 rows are in one cell" in usage_error("train", "--metric", "none", *two, train_file, model)
    invoke("partition", "-P", "voronoi", "-c", 80, train_file, cells)
    message = usage_error("train", "--repeats", 2, "--partition-file", cells, train_file, model)
    assert "--repeats makes several partitions" in message
    assert "--repeats" in usage_error(
        "train", "--repeats", 2, "--stream", "-m", "linear", "-s", "sgd", train_file, model
    )
    assert "No such option" in usage_error("partition", "--repeats", 2, train_file, tmp_path / "p.h5")
    assert not model.exists()


@pytest.fixture
def values_file(tmp_path: Path) -> Path:
    """Sixty rows with as many labels."""
    path = tmp_path / "values"
    path.write_text("".join(f"{i / 7!r} 1:{i} 2:{i % 4}\n" for i in range(60)))
    return path


@pytest.mark.parametrize("command", [("train",), ("cv",), ("train", "-s", "sgd", "--stream")])
def test_values_are_no_classes(values_file: Path, tmp_path: Path, command: tuple[str, ...]) -> None:
    given = (*command, "-m", "linear", "-C", "1", "-v", 2, "-q")
    message = error(*given, values_file)
    assert message.startswith("60 different labels that are not all whole numbers, as 0.142857, ")
    assert "--force-classes" in message and message.count("\n") == 1
    outputs = (tmp_path / "m.h5",) if command[0] == "train" else ()
    invoke(*given, "--force-classes", values_file, *outputs)


def test_many_whole_labels_and_few_fractions_are_classes(tmp_path: Path) -> None:
    fast = ("train", "-m", "linear", "-C", "1", "-q")
    for name, labels in (("whole", range(60)), ("few", [i % 50 / 7 for i in range(60)])):
        (tmp_path / name).write_text("".join(f"{y} 1:{i} 2:{i % 4}\n" for i, y in enumerate(labels)))
        invoke(*fast, tmp_path / name, tmp_path / f"{name}.h5")


@pytest.mark.whole
def test_rows_are_weighted_by_a_file_or_by_class(train_file: Path, tmp_path: Path) -> None:
    weights, model = tmp_path / "weights.gz", tmp_path / "m.h5"
    weights.write_bytes(gzip.compress(b"".join(b"%g\n" % ((i % 5) / 2) for i in range(300))))
    result = invoke("train", *FAST, "--weights", weights, "--json", train_file, model)
    assert "60 of 300 rows have the weight 0 and are left out" in result.stderr
    report = json.loads(result.stdout)
    assert report["summary"]["rows"] == 240
    assert "rows weighted\n" in invoke("inspect", model).stdout
    table = invoke("cv", *FAST, "--weights", weights, train_file).stdout.splitlines()
    assert len(table) == 5 and table[1].split(",")[1] == "240"
    report = json.loads(invoke("train", *FAST, "--json", "--force", train_file, model).stdout)
    negative, positive = (150 / rows for rows in report["summary"]["class_rows"])
    by_hand, balanced = tmp_path / "hand.h5", tmp_path / "balanced.h5"
    invoke("train", *FAST, "-w", -1, negative, "-w", 1, positive, train_file, by_hand)
    invoke("train", *FAST, "--weights", "balanced", train_file, balanced)
    assert content(by_hand) == content(balanced)


def test_weights_that_do_not_fit_are_refused(train_file: Path, tmp_path: Path) -> None:
    weights, model = tmp_path / "w", tmp_path / "m.h5"
    weights.write_text("1\n" * 299)
    assert f"{weights}: ends after line 299; the training file has 300 rows" in error(
        "train", "--weights", weights, train_file, model
    )
    weights.write_text("1\n" * 200 + "-3\n" + "1\n" * 99)
    for command_name in (("train",), ("cv",), ("train", "--stream", "-m", "linear", "-s", "sgd")):
        output = [model] if command_name[0] == "train" else []
        message = error(*command_name, "--weights", weights, train_file, *output)
        assert message.startswith(f"{weights}:201: '-3' is no weight; a weight is a finite number from 0")
    assert "no such file" in error("train", "--weights", tmp_path / "none", train_file, model)
    assert "both come from stdin" in usage_error("train", "--weights", "-", "-", model)
    assert "would replace" in error("train", "--force", "--weights", weights, train_file, weights)
    assert not model.exists()


def test_a_model_goes_to_stdout(train_file: Path, model_file: Path, tmp_path: Path) -> None:
    common = ("-P", "voronoi", "-c", 80, *FAST, "-j", 1)
    done = invoke("train", *common, train_file, "-")
    assert "model       stdout" in done.stderr
    (tmp_path / "m.h5").write_bytes(done.stdout_bytes)
    assert content(tmp_path / "m.h5") == content(model_file)
    assert not (Path.cwd() / "-").exists() and not (Path.cwd() / "-.journal").exists()


def test_a_model_goes_to_a_device_with_nothing_beside_it(train_file: Path) -> None:
    beside = set(Path("/dev").iterdir())
    done = invoke("train", *FAST, "-j", 1, train_file, "/dev/null")
    assert "model       /dev/null" in done.stderr and set(Path("/dev").iterdir()) == beside
    assert "No space left on device" in error("train", *FAST, "-q", "-j", 1, train_file, "/dev/full")
    assert "--resume needs a MODEL_FILE" in usage_error("train", "--resume", train_file, "/dev/null")


def test_where_stdout_cannot_have_the_model(train_file: Path, tmp_path: Path) -> None:
    assert "--json prints its report there" in usage_error("train", "--json", train_file, "-")
    assert "--resume needs a MODEL_FILE" in usage_error("train", "--resume", train_file, "-")
    assert "must be a file" in usage_error("predict", train_file, "-")
    assert "must be a file" in usage_error("inspect", "-")
    assert "must be a file" in usage_error("partition", train_file, "-")
    os.mkfifo(tmp_path / "pipe")
    assert "must be a file" in usage_error("predict", train_file, tmp_path / "pipe")
    assert "must be a file" in usage_error("train", "--partition-file", tmp_path / "pipe", train_file, tmp_path / "m")


@pytest.mark.fast(1)
@pytest.mark.parametrize("command", ["train", "cv"])
@pytest.mark.parametrize(
    ("options", "noted"),
    [
        (("-P", "none", "-c", 100), True), (("-m", "linear", "-c", 100), True), (("-P", "none"), False),
        (("-P", "none", "-c", 5000), False), (("-P", "chunks", "-c", 100), False),
    ],
)  # fmt: skip
def test_a_cell_size_without_effect_is_noted(
    command: str, options: tuple[object, ...], noted: bool, train_file: Path, tmp_path: Path
) -> None:
    output = (tmp_path / "m.h5",) if command == "train" else ()
    done = invoke(command, *options, *(() if "linear" in options else ("-g", 1)), "-C", "1", train_file, *output)
    assert ("note: -c 100 has no effect without a partition: one cell has all " in done.stderr) == noted


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        (("-c", 10, "-g", "1,2"), True),
        (("-c", 99, "-g", "1,2"), True),
        (("-c", 100, "-g", "1,2"), False),
        (("-c", 128, "-g", 1), True),
        (("-c", 10, "-g", 1, "-P", "voronoi"), False),
    ],
)
def test_a_cell_size_that_may_be_a_cost_is_noted(options: tuple[object, ...], noted: bool, train_file: Path) -> None:
    note = f"LIBSVM's cost of {options[1]} is -C {options[1]} here"
    assert (note in invoke("train", "-j", 1, "-v", 2, *options, train_file, "-").stderr) == noted


@pytest.mark.parametrize(
    ("options", "noted"),
    [
        (("-t", "linear"), True),
        (("-t", "polynomial", "-g", 1), True),
        (("-t", "polynomial", "-g", 1, "--coef0", 1), False),
        (("-t", "linear", "--offset"), False),
        (("-t", "linear", "-m", "rbf"), False),
        (("-t", "linear", "--loss", "least-squares"), False),
        (("-t", "gaussian", "-g", 1), False),
    ],
)
def test_a_kernel_without_a_constant_is_noted(options: tuple[object, ...], noted: bool, train_file: Path) -> None:
    note = "note: a decision by this kernel is 0 where all scaled features are 0; --offset adds a constant"
    assert (note in invoke("train", "-j", 1, "-v", 2, "-C", 1, *options, train_file, "-").stderr) == noted


def test_a_source_date_that_is_no_number_is_refused_before_training(
    train_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for date in ("abc", "1e9", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", date)
        message = error("train", *FAST, "-j", 1, train_file, tmp_path / "m.h5")
        assert message.startswith(f"the variable SOURCE_DATE_EPOCH is '{date}'") and len(message.splitlines()) == 1
        assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_not_streamed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    message = error("train", "--stream", "-m", "linear", "-s", "sgd", tmp_path / "pipe", tmp_path / "m.h5")
    assert "not a regular file, and --stream reads it several times" in message


def test_two_runs_on_one_model_meet_at_the_start(train_file: Path, tmp_path: Path) -> None:
    (tmp_path / "link.h5").symlink_to("m.h5")
    with open_journal(journal_path(tmp_path / "m.h5"), "0" * 64):
        done = run("train", *FAST, "-j", 1, train_file, tmp_path / "link.h5")
    assert done.returncode == 1 and b"a running process is training this model" in done.stderr


def test_one_point_is_cross_validated_for_probabilities_and_the_summary_says_so(
    train_file: Path, tmp_path: Path
) -> None:
    result = invoke("train", "-b", 1, "-g", 1, "-C", 1, "-j", 1, train_file, tmp_path / "model.h5")
    assert "one point, cross-validated for the probabilities: error" in result.stderr
    assert "probabilities   by a sigmoid, a curve of" in result.stderr
    assert "probabilities   by a sigmoid, a curve of" in invoke("inspect", tmp_path / "model.h5").stdout


@pytest.mark.whole
def test_decision_values_beyond_float32_are_calibrated(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    write(tmp_path / "rows", rng.standard_normal((60, 3)).astype(np.float32), rng.choice([-1.0, 1.0], 60))
    (tmp_path / "weights").write_text("1e38\n" * 60)
    given = ("-q", "-j", 1, "-b", 1, "-g", 0.001, "-C", "1e50", "--metric", "none")
    invoke("train", *given, "--weights", tmp_path / "weights", tmp_path / "rows", tmp_path / "m.h5")
    printed = invoke("predict", "-q", "-b", 1, tmp_path / "rows", tmp_path / "m.h5", "-").stdout
    assert np.isfinite(np.loadtxt(printed.splitlines()[1:])).all()


def test_a_stream_has_no_held_out_values_for_probabilities(train_file: Path, tmp_path: Path) -> None:
    result = invoke("train", "--stream", "-m", "linear", "-s", "sgd", "-b", 1, train_file, tmp_path / "m.h5", code=2)
    assert "leave -b 1 or --stream out" in result.stderr


@pytest.mark.parametrize("more", [(), ("-m", "linear", "-s", "sgd", "--stream")])
def test_rows_of_one_class_name_the_file(more: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "one").write_text("1 1:1\n1 1:2\n")
    message = error("train", *more, tmp_path / "one", tmp_path / "m.h5")
    assert message == f"{tmp_path / 'one'}: all 2 rows have the label 1; training needs at least two classes\n"


def test_one_feature_and_a_resume_without_a_journal(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("".join(f"{i % 2} 1:{i % 2 + 0.01 * i}\n" for i in range(40)))
    given = ("train", "-g", 1, "-C", 1, tmp_path / "rows", tmp_path / "m.h5", "--force")
    plain, resumed = invoke(*given), invoke(*given, "--resume")
    assert "40 rows, 1 feature, 2 classes" in plain.stderr and "nothing to resume" not in plain.stderr
    assert f"note: nothing to resume at {tmp_path / 'm.h5'}" in resumed.stderr
    assert "nothing to resume" not in invoke(*given, "--resume", "-q").stderr


def test_a_finished_run_is_not_resumed_but_told(train_file: Path, tmp_path: Path) -> None:
    given = ("train", *FAST, train_file, tmp_path / "m.h5", "--resume")
    invoke(*given)
    before = (tmp_path / "m.h5").read_bytes()
    done = invoke(*given)
    assert f"note: {tmp_path / 'm.h5'} is finished: it is the model of these rows and options" in done.stderr
    assert (tmp_path / "m.h5").read_bytes() == before and "selection" not in done.stderr
    assert "exists already" in error(*given, "-v", 4)
    assert (tmp_path / "m.h5").read_bytes() == before


def test_equal_models_are_equal_files(train_file: Path, tmp_path: Path) -> None:
    for name, jobs in (("a", 1), ("b", 2)):
        invoke("train", *FAST, "-j", jobs, train_file, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_classes_of_few_rows_are_told(tmp_path: Path) -> None:
    (tmp_path / "rows").write_text("".join(f"{i % 3} 1:{i % 3 + 0.01 * i}\n" for i in range(30)) + "7 1:9\n")
    notes = invoke("train", *FAST, tmp_path / "rows", tmp_path / "m.h5").stderr
    assert "note: 1 of 4 classes has fewer rows than there are folds (5) and can hardly be learned" in notes
    assert "(guessing: 67.74%)" in notes


def test_many_numbers_as_labels_may_be_values(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,price\n" + "".join(f"{i * 37 % 41},{100 + i % 25}\n" for i in range(60)))
    given = ("-g", 1, "-C", 1, "--metric", "none", "--label", "price", tmp_path / "t.csv", tmp_path / "m.h5")
    assert "or if labels are values, give --loss least-squares" in invoke("train", *given).stderr
    assert "fewer rows than there are folds" not in invoke("train", "--force", "-m", "one-class", *given).stderr


@pytest.mark.whole
def test_ends_of_the_grid_and_classes_that_are_mostly_wrong_are_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, rare = rng.normal(size=(300, 2)), rng.random(300) < 0.1
    rows = [f"{int(r)} 1:{a:.3f} 2:{b:.3f}\n" for r, (a, b) in zip(rare, x, strict=True)]
    (tmp_path / "rows").write_text("".join(rows))
    given = ("train", "-g", "0.001,0.002", "-C", "0.01,0.02", *PLAIN, tmp_path / "rows", tmp_path / "m.h5", "--force")
    notes = invoke(*given).stderr
    assert "note: 1 of 2 classes is mostly wrong on held-out rows: 1 (100%); --score tpr-tnr or" in notes
    labels = np.where(x[:, 0] * x[:, 1] > 0, 1, 0)
    rows = [f"{label} 1:{a:.3f} 2:{b:.3f}\n" for label, (a, b) in zip(labels, x, strict=True)]
    (tmp_path / "rows").write_text("".join(rows))
    given = ("train", "-g", "0.01,0.05", "-C", "0.1,1", *PLAIN, tmp_path / "rows", tmp_path / "m.h5", "--force")
    notes = invoke(*given).stderr
    assert "note: the choice is the largest C of the grid; add larger ones (-C)" in notes
    assert "note: the choice is the largest gamma of the grid; add larger ones (-g)" in notes


def test_a_directory_is_no_training_file(tmp_path: Path) -> None:
    assert "TRAIN_FILE . is a directory; name a file in it." in usage_error("train", ".")
