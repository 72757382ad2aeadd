"""lsvm predict: labels, decision values, scores, and where they go."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from command_line import FAST, POINTS, command, error, invoke, run, usage_error
from malformed import MALFORMED

from localsvm.cli.labels import confusion_text
from localsvm.data.readers.libsvm import read
from localsvm.runs.predict import LocalModel


@pytest.fixture(scope="module")
def classes_model(tmp_path_factory: pytest.TempPathFactory, classes_file: Path) -> Path:
    """A model of three classes, one against all others."""
    path = tmp_path_factory.mktemp("model") / "classes.h5"
    invoke("train", *FAST, "-q", classes_file, path)
    return path


def test_labels_go_to_stdout_and_the_accuracy_to_stderr(model_file: Path, test_file: Path) -> None:
    result = invoke("predict", test_file, model_file)
    data = read(test_file)
    with LocalModel(model_file) as model:
        expected = model.predict(data.X)
    assert result.stdout == "".join(f"{label:g}\n" for label in expected)
    right = int((expected == data.y).sum())
    assert 150 < right < 200
    assert result.stderr == f"Accuracy = {right / 2:g}% ({right}/200)\n"


def test_a_file_of_fewer_columns_gets_a_note(model_file: Path, tmp_path: Path) -> None:
    (tmp_path / "narrow.libsvm").write_text("1 1:0.5\n-1 1:2\n")
    lines = invoke("predict", tmp_path / "narrow.libsvm", model_file, "/dev/null").stderr.splitlines()
    note = f"note: {tmp_path}/narrow.libsvm has columns up to 1, and {model_file} up to 2; the others count as 0"
    assert lines[0] == note and lines[1].startswith("Accuracy")


def test_a_file_appears_complete(model_file: Path, test_file: Path, tmp_path: Path) -> None:
    printed = invoke("predict", "-q", test_file, model_file).output
    result = invoke("predict", "-q", test_file, model_file, tmp_path / "out.txt")
    assert (result.output, (tmp_path / "out.txt").read_text()) == ("", printed)
    assert "exists already" in error("predict", test_file, model_file, tmp_path / "out.txt")
    invoke("predict", "--force", test_file, model_file, tmp_path / "out.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]


def test_inputs_are_never_replaced(model_file: Path, test_file: Path) -> None:
    assert "would replace" in error("predict", "--force", test_file, model_file, test_file)
    assert "would replace" in error("predict", "--force", test_file, model_file, model_file)


def test_arguments_in_the_other_order(model_file: Path, test_file: Path, tmp_path: Path) -> None:
    assert "the order is TEST_FILE MODEL_FILE [OUTPUT]" in usage_error("predict", model_file, test_file)
    # one of the two may be what is wrong, and then its own message says so
    assert "not a localsvm model" in error("predict", test_file, test_file)
    assert "an HDF5 file, perhaps a model" in error("predict", model_file, model_file)
    assert "No such file" in error("predict", model_file, tmp_path / "absent")


def test_a_device_is_no_file_in_the_way(model_file: Path, test_file: Path) -> None:
    assert invoke("predict", test_file, model_file, "/dev/null").stdout == ""


def test_stdin_and_compression(model_file: Path, test_file: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(lzma.compress(test_file.read_bytes()))
    expected = run("predict", test_file, model_file)
    assert run("predict", packed, model_file).stdout == expected.stdout
    assert run("predict", "-", model_file, "-", input=test_file.read_bytes()).stdout == expected.stdout


def test_labels_are_written_as_the_training_file_has_them(classes_model: Path, classes_file: Path) -> None:
    assert set(invoke("predict", classes_file, classes_model).stdout.split()) == {"0.5", "2", "10"}


def test_decision_values_of_many_classes(classes_model: Path, classes_file: Path) -> None:
    header, *rows = invoke("predict", "--decision-values", classes_file, classes_model).stdout.splitlines()
    assert header == "labels rest/0.5 rest/2 rest/10"
    table = np.loadtxt(rows)
    np.testing.assert_array_equal(np.asarray([0.5, 2.0, 10.0])[table[:, 1:].argmax(axis=1)], table[:, 0])


def test_decision_values_of_pairs(classes_file: Path, tmp_path: Path) -> None:
    invoke("train", *FAST, "--multiclass", "ava", "-q", classes_file, tmp_path / "m.h5")
    result = invoke("predict", "--decision-values", classes_file, tmp_path / "m.h5")
    assert result.stdout.splitlines()[0] == "labels 0.5/2 0.5/10 2/10"


def test_columns_of_the_confusion_are_aligned() -> None:
    score = SimpleNamespace(confusion={(-1.0, -1.0): 2428, (-1.0, 10.0): 8, (10.0, -1.0): 30})
    assert confusion_text(score).splitlines() == [  # type: ignore[arg-type]
        "",
        "true\\predicted    -1  10",
        "            -1  2428   8",
        "            10    30   0",
    ]


def test_the_confusion_is_a_table(classes_model: Path, classes_file: Path) -> None:
    result = invoke("predict", "--confusion", classes_file, classes_model)
    accuracy, header, *rows = result.stderr.splitlines()
    assert header.split() == ["true\\predicted", "0.5", "2", "10"]
    table = np.asarray([[int(n) for n in row.split()[1:]] for row in rows])
    assert [row.split()[0] for row in rows] == ["0.5", "2", "10"]
    true, given = read(classes_file).y, np.asarray(result.stdout.split(), dtype=float)
    for i, t in enumerate([0.5, 2, 10]):
        for j, g in enumerate([0.5, 2, 10]):
            assert table[i, j] == ((true == t) & (given == g)).sum()
    assert accuracy == f"Accuracy = {100 * table.trace() / 300:g}% ({table.trace()}/300)"


def test_the_report(model_file: Path, test_file: Path, tmp_path: Path) -> None:
    result = invoke("predict", "--json", "-q", test_file, model_file, tmp_path / "out")
    report = json.loads(result.stdout)
    assert (report["schema_version"], report["command"]) == (1, "predict")
    assert (report["test"], report["model"], report["output"]) == (
        str(test_file),
        str(model_file),
        str(tmp_path / "out"),
    )
    assert report["total"] == 200 and report["accuracy"] == report["right"] / 200
    assert sum(entry["rows"] for entry in report["confusion"]) == 200
    assert "OUTPUT must be a file" in usage_error("predict", "--json", test_file, model_file)
    assert "is for models of tables" in usage_error("predict", "--format", "csv", test_file, model_file)


def test_features_and_labels_that_training_did_not_see(model_file: Path, tmp_path: Path) -> None:
    (tmp_path / "known").write_text("0 1:1 2:-1\n0\n")
    (tmp_path / "more").write_text("0 1:1 2:-1 3:5 99:7\n0 4:1\n")
    known, more = (invoke("predict", "--decision-values", tmp_path / name, model_file) for name in ("known", "more"))
    assert known.stdout == more.stdout
    note = "note: 2 of 2 rows have labels that the model does not know, and count as wrong\n"
    assert known.stderr == note + "Accuracy = 0% (0/2)\n"


def test_zero_based_indices(model_file: Path, test_file: Path, tmp_path: Path) -> None:
    shifted = test_file.read_text().replace(" 1:", " 0:").replace(" 2:", " 1:")
    (tmp_path / "zero").write_text(shifted)
    result = invoke("predict", "--zero-based", tmp_path / "zero", model_file)
    assert result.stdout == invoke("predict", test_file, model_file).stdout
    assert "give --zero-based" in error("predict", tmp_path / "zero", model_file)


@pytest.mark.fast(1)
@pytest.mark.parametrize(("text", "message"), [(m[1], m[2]) for m in MALFORMED], ids=[m[0] for m in MALFORMED])
def test_malformed_data(text: bytes, message: str, model_file: Path, tmp_path: Path) -> None:
    data = tmp_path / "bad.libsvm"
    data.write_bytes(text)
    result = invoke("predict", "-j", 1, data, model_file, tmp_path / "out", code=1)
    assert result.stderr.startswith(f"error: {data}{message}")
    assert [p.name for p in tmp_path.iterdir()] == ["bad.libsvm"]


def test_a_damaged_model_is_refused(model_file: Path, test_file: Path, tmp_path: Path) -> None:
    (tmp_path / "m.h5").write_bytes(model_file.read_bytes())
    with h5py.File(tmp_path / "m.h5", "r+") as file:
        file["cells/coef"][0] += 1e-9
    assert error("predict", test_file, tmp_path / "m.h5").startswith(f"{tmp_path}/m.h5: the content has changed")
    (tmp_path / "m.h5").write_bytes(model_file.read_bytes()[:-100])
    assert error("predict", test_file, tmp_path / "m.h5").startswith(f"{tmp_path}/m.h5: the file is truncated")
    assert "No such file" in error("predict", test_file, tmp_path / "absent.h5")
    assert "not" in error("predict", test_file, test_file)


def test_a_reader_that_leaves_is_no_error_to_speak_of(model_file: Path, test_file: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        command("predict", "-q", test_file, model_file), stdout=theirs, stderr=subprocess.PIPE, timeout=60
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_full_disk_is_a_message(model_file: Path, test_file: Path, tmp_path: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command("predict", "-q", test_file, model_file), stdout=full, stderr=subprocess.PIPE, timeout=60
        )
    assert done.returncode == 1 and done.stderr == b"error: output: No space left on device\n"
    assert "No space left on device" in error("predict", test_file, model_file, "/dev/full")


@pytest.fixture
def from_0(tmp_path: Path) -> Path:
    """Twelve rows with the features 0, 1 and 2, of which 0 tells the label."""
    path = tmp_path / "from0"
    path.write_text("".join(f"{y} 0:{y * (1 + i)} 1:{i * i % 5} 2:{i % 3}\n" for i in range(6) for y in (-1, 1)))
    return path


@pytest.mark.parametrize("extra", [(), ("-s", "sgd", "--stream")])
def test_the_model_knows_that_indices_start_at_0(from_0: Path, tmp_path: Path, extra: tuple[str, ...]) -> None:
    model = tmp_path / "m.h5"
    invoke("train", "-m", "linear", "-C", 1, "--zero-based", "-q", *extra, from_0, model)
    result = invoke("predict", from_0, model)
    assert result.stderr == "Accuracy = 100% (12/12)\n"
    assert invoke("predict", "--zero-based", from_0, model).output == result.output
    assert "3 with indices from 0, scaling std" in invoke("inspect", model).stdout


def test_a_file_that_contradicts_a_zero_based_model(from_0: Path, tmp_path: Path) -> None:
    model, from_1 = tmp_path / "m.h5", tmp_path / "from1"
    invoke("train", "-m", "linear", "-C", 1, "--zero-based", "-q", from_0, model)
    text = from_0.read_text()
    from_1.write_text(text.replace(" 2:", " 3:").replace(" 1:", " 2:").replace(" 0:", " 1:"))
    warning, accuracy = invoke("predict", from_1, model).stderr.splitlines()
    assert warning == (
        f"warning: {model} has indices 0 to 2, but {from_1} has no index 0 and an index 3; "
        "if it counts from 1, give --one-based"
    )
    assert accuracy != "Accuracy = 100% (12/12)"
    assert invoke("predict", "-q", from_1, model).stderr == ""
    warning, accuracy = invoke("predict", "--one-based", from_1, model).stderr.splitlines()
    assert warning.startswith(f"warning: --one-based, but {model} was trained with --zero-based; if both")
    assert accuracy == "Accuracy = 100% (12/12)"
    (tmp_path / "more").write_text("1 0:3 3:1\n")  # a feature that training did not see
    assert "warning" not in invoke("predict", tmp_path / "more", model).stderr


def test_the_option_contradicts_a_one_based_model(model_file: Path, test_file: Path, tmp_path: Path) -> None:
    (tmp_path / "zero").write_text(test_file.read_text().replace(" 1:", " 0:").replace(" 2:", " 1:"))
    first = invoke("predict", "--zero-based", tmp_path / "zero", model_file).stderr.splitlines()[0]
    assert first.startswith(
        f"warning: --zero-based, but {model_file} was trained without it; if both files count from 0"
    )
    assert (
        invoke("predict", "--one-based", test_file, model_file).output
        == invoke("predict", test_file, model_file).output
    )


def test_a_partition_of_zero_based_rows(from_0: Path, tmp_path: Path) -> None:
    cells, model = tmp_path / "cells.h5", tmp_path / "m.h5"
    invoke("partition", "-P", "voronoi", "-c", 10, "--zero-based", "-q", from_0, cells)
    invoke("train", *POINTS, "--partition-file", cells, "-q", from_0, model)
    assert json.loads(invoke("inspect", "--json", model).stdout)["config"]["zero_based"] is True
    (tmp_path / "one").write_text("".join(f"{(-1) ** i} 1:{i} 2:{i * i % 5}\n" for i in range(12)))
    invoke("partition", "-P", "voronoi", "-c", 10, "-q", tmp_path / "one", tmp_path / "one.h5")
    message = usage_error("train", "--zero-based", "--partition-file", tmp_path / "one.h5", tmp_path / "one")
    assert "the partition file was made without it" in message


@pytest.fixture(scope="module")
def probable_model(tmp_path_factory: pytest.TempPathFactory, classes_file: Path) -> Path:
    """A model of three classes that gives probabilities."""
    path = tmp_path_factory.mktemp("model") / "probable.h5"
    invoke("train", "-b", 1, *FAST, "-q", classes_file, path)
    return path


def test_probabilities_have_libsvms_form_and_the_label_is_the_most_probable(
    probable_model: Path, classes_file: Path
) -> None:
    result = invoke("predict", "-b", 1, classes_file, probable_model)
    header, *lines = result.stdout.splitlines()
    assert header == "labels 0.5 2 10"
    rows = np.asarray([[float(x) for x in line.split()] for line in lines])
    np.testing.assert_allclose(rows[:, 1:].sum(axis=1), 1.0)
    np.testing.assert_array_equal(rows[:, 0], np.asarray([0.5, 2.0, 10.0])[rows[:, 1:].argmax(axis=1)])
    with LocalModel(probable_model) as model:
        np.testing.assert_array_equal(model.probabilities(read(classes_file).X), rows[:, 1:])
    right = int((rows[:, 0] == read(classes_file).y).sum())
    assert result.stderr == f"Accuracy = {right / 3:g}% ({right}/300)\n"


def test_without_b_the_labels_follow_decision_values(
    probable_model: Path, classes_model: Path, classes_file: Path
) -> None:
    plain = invoke("predict", classes_file, classes_model).stdout
    assert invoke("predict", "-b", 0, classes_file, probable_model).stdout == plain
    assert invoke("predict", classes_file, probable_model).stdout == plain


def test_probabilities_need_a_model_with_them(classes_model: Path, classes_file: Path) -> None:
    message = error("predict", "-b", 1, classes_file, classes_model)
    assert message == f"{classes_model}: no probabilities in this model; train it again with -b 1\n"


def test_probabilities_and_decision_values_exclude_each_other(probable_model: Path, classes_file: Path) -> None:
    message = usage_error("predict", "-b", 1, "--decision-values", classes_file, probable_model)
    assert "give one of the two" in message


def test_the_report_has_scores_and_pictures(probable_model: Path, classes_file: Path, tmp_path: Path) -> None:
    arguments = "predict", "-b", 1, "--report", tmp_path / "report", classes_file, probable_model, "/dev/null"
    invoke(*arguments)
    names = {"report.json", "reliability.png", "roc.png", "precision-recall.png"}
    assert {path.name for path in (tmp_path / "report").iterdir()} == names
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report["rows"] == 300 and 0 < report["log_loss"] < 0.5 and len(report["classes"]) == 3
    assert "exists already" in error(*arguments)
    invoke(*arguments, "--force")
    assert "give -b 1 as well" in usage_error("predict", "--report", tmp_path, classes_file, probable_model)


def test_a_report_on_rows_of_one_class_has_no_curves(train_file: Path, tmp_path: Path) -> None:
    rows = train_file.read_text().splitlines(keepends=True)
    data, model = tmp_path / "one.libsvm", tmp_path / "model.h5"
    data.write_text("".join(row for row in rows if row.split()[0] == rows[0].split()[0]))
    invoke("train", "-b", 1, *FAST, "-q", train_file, model)
    invoke("predict", "-b", 1, "--report", tmp_path / "report", data, model, "/dev/null")
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report["macro_roc_area"] is None and (tmp_path / "report" / "roc.png").stat().st_size > 0


def test_probability_is_0_or_1(test_file: Path, model_file: Path) -> None:
    message = usage_error("predict", "-b", 2, test_file, model_file)
    assert message.endswith("Invalid value for '-b' / '--probability': '2' is neither 0 nor 1.")


def test_a_missing_model_gets_a_remedy(test_file: Path) -> None:
    message = error("predict", test_file, "absent.h5")
    assert (
        message == "absent.h5: cannot read the model: No such file or directory; check the name and the permissions\n"
    )


def test_a_report_needs_labels(probable_model: Path, test_file: Path, tmp_path: Path) -> None:
    message = error("predict", "-b", 1, "--report", tmp_path / "report", test_file, probable_model, tmp_path / "out")
    assert "which the model does not know" in message and not (tmp_path / "out").exists()
