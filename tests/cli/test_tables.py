"""Tables at the command line: trained by names, predicted by names, refused in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import FAST, PLAIN, error, invoke, usage_error

from localsvm.data.readers import delimited
from localsvm.data.readers.libsvm import read
from localsvm.errors import ModelError
from localsvm.runs.predict import LocalModel

HEADER = "id,churn,age,city,plan\n"


def rows(n: int, seed: int) -> list[str]:
    """Rows of customers, whose age and plan say whether they leave; 25 cities say nothing."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        age, plan = rng.normal(40, 10), ["basic", "pro"][rng.integers(2)]
        leaves = "yes" if (age > 40) == (plan == "pro") else "no"
        shown = "" if rng.random() < 0.05 else f"{age:.2f}"
        lines.append(f"c{seed}-{i},{leaves},{shown},city {rng.integers(25)},{plan}\n")
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a training table, a test table, and a model."""
    path = tmp_path_factory.mktemp("tables")
    (path / "train.csv").write_text(HEADER + "".join(rows(600, 1)))
    (path / "test.csv").write_text(HEADER + "".join(rows(200, 2)))
    invoke("train", *FAST, "-b", "1", "--label", "churn", "--id-column", "id", path / "train.csv")
    return path


def test_a_table_is_trained_and_predicted_by_names(folder: Path, tmp_path: Path) -> None:
    result = invoke("predict", folder / "test.csv", folder / "train.model.h5", tmp_path / "out.csv")
    words = result.stderr.split()
    assert words[0] == "Accuracy" and float(words[2].rstrip("%")) > 85
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0] == "id,churn" and lines[1].split(",")[0] == "c2-0" and len(lines) == 201
    assert {line.split(",")[1] for line in lines[1:]} == {"yes", "no"}


def test_the_format_of_predictions_can_be_given(folder: Path, tmp_path: Path) -> None:
    model = folder / "train.model.h5"
    invoke("predict", "-q", folder / "test.csv", model, tmp_path / "table.csv")
    invoke("predict", "-q", "--format", "libsvm", folder / "test.csv", model, tmp_path / "text.csv")
    table, text = ((tmp_path / name).read_text().splitlines() for name in ("table.csv", "text.csv"))
    assert invoke("predict", "-q", "--format", "csv", folder / "test.csv", model).stdout.splitlines() == table
    assert [line.split(",")[1] for line in table[1:]] == text


def test_other_orders_and_columns_give_the_same_predictions(folder: Path, tmp_path: Path) -> None:
    """Columns are matched by names: order, further columns, the delimiter and an absent label change nothing."""
    invoke("predict", "-q", folder / "test.csv", folder / "train.model.h5", tmp_path / "one.txt")
    lines = [line.rstrip("\n").split(",") for line in [HEADER, *rows(200, 2)]]
    mixed = "".join(f"{plan};{age};9;{city};{name}\n" for name, _, age, city, plan in lines)
    (tmp_path / "other.csv").write_text(mixed.replace(";9;", ";more;", 1))
    result = invoke("predict", tmp_path / "other.csv", folder / "train.model.h5", tmp_path / "two.txt")
    assert result.stderr == ""  # no labels, no accuracy
    assert (tmp_path / "one.txt").read_text() == (tmp_path / "two.txt").read_text()


def test_probabilities_have_a_column_for_each_class(folder: Path, tmp_path: Path) -> None:
    invoke("predict", "-q", "-b", "1", folder / "test.csv", folder / "train.model.h5", tmp_path / "out.csv")
    header, first, *_ = (tmp_path / "out.csv").read_text().splitlines()
    assert header == "id,churn,no,yes"
    assert sum(map(float, first.split(",")[2:])) == pytest.approx(1.0)


def test_new_levels_are_counted_and_absent_columns_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("age,city,plan\n30,city 1,basic\n31,Atlantis,pro\n")
    result = invoke("predict", tmp_path / "new.csv", folder / "train.model.h5")
    assert result.stderr == (
        "note: column 'city' has 1 value that training did not have\nnote: there is no column 'id', which names rows\n"
    )
    (tmp_path / "less.csv").write_text("age,town,plan\n30,city 1,basic\n")
    message = error("predict", tmp_path / "less.csv", folder / "train.model.h5")
    assert message.startswith(f"{tmp_path}/less.csv: no column is called 'city'; there are age, town, plan")
    (tmp_path / "text.csv").write_text("age,city,plan\nold,city 1,basic\n")
    message = error("predict", tmp_path / "text.csv", folder / "train.model.h5")
    assert message.startswith(f"{tmp_path}/text.csv:2: column 'age' has numbers, and here 'old'")


def test_names_are_shown_where_numbers_were(folder: Path) -> None:
    text = invoke("inspect", folder / "train.model.h5").stdout
    assert "2 classes: no, yes" in text
    confusion = invoke("predict", "--confusion", folder / "test.csv", folder / "train.model.h5", "/dev/null").stderr
    assert "true\\predicted  no  yes" in confusion


@pytest.mark.fast(4)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "which column has the labels? Give --label NAME; there are id, churn, age, city, plan"),
        (["--label", "Churn"], "no column is called 'Churn'; perhaps 'churn' is meant"),
        (["--label", "9"], "no column is called '9'"),
        (["--label", "churn", "--ignore", "towns"], "no column is called 'towns'"),
        (["--label", "churn", "--ignore", "age,city,plan,id"], "no column is a feature"),
    ],
)
def test_what_is_missing_is_told(options: list[str], message: str, folder: Path, tmp_path: Path) -> None:
    assert message in error("train", *FAST, *options, folder / "train.csv", tmp_path / "m.h5")


@pytest.mark.fast(4)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--zero-based"], "--zero-based is for LIBSVM text"),
        (["--stream"], "--stream reads LIBSVM text, no tables"),
        (["--delimiter", "ab"], "one character, or tab"),
        (["--format", "excel"], "'excel' is not one of 'csv', 'parquet', 'arrow', 'npy', 'libsvm'"),
        (["--format", "libsvm"], "--label is for tables"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: list[str], message: str, folder: Path, tmp_path: Path) -> None:
    assert message in usage_error("train", "--label", "churn", *options, folder / "train.csv", tmp_path / "m.h5")


def test_rows_without_a_label_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,x\n1,2\n,3\n2,4\n")
    assert error("train", tmp_path / "t.csv", tmp_path / "m.h5").startswith(
        f"{tmp_path}/t.csv: row 2 has no label in 'label'; if such rows are to be left out, give --drop-unlabelled"
    )
    result = invoke("train", *FAST, "--drop-unlabelled", tmp_path / "t.csv", tmp_path / "m.h5", code=None)
    assert "note: 1 row without a label is left out" in result.stderr


def test_ids_and_constants_are_left_out_with_a_note(folder: Path, tmp_path: Path) -> None:
    result = invoke("train", *FAST, "--label", "churn", folder / "train.csv", tmp_path / "m.h5")
    assert "note: column 'id': a text of its own in each row, as an id has, is left out" in result.stderr


def test_a_table_becomes_libsvm_text(folder: Path, tmp_path: Path) -> None:
    """The features of `lsvm convert` are those of training: the same model, and the same decision values."""
    invoke("convert", "--label", "churn", "--ignore", "id", folder / "test.csv", tmp_path / "t.libsvm")
    data = read(tmp_path / "t.libsvm")
    assert data.X.shape == (200, 6) and set(data.y) == {0.0, 1.0}


def test_a_damaged_table_in_a_model_is_refused(folder: Path, tmp_path: Path) -> None:
    for name, value in (("kinds", {"age": 7}), ("label", 3), ("columns", []), ("delimiter", ",,"), ("ids", ["age"])):
        path = tmp_path / f"{name}.h5"
        path.write_bytes((folder / "train.model.h5").read_bytes())
        with h5py.File(path, "r+") as file:
            config = json.loads(file.attrs["config"])
            config["table"][name] = value
            file.attrs["config"] = np.bytes_(json.dumps(config).encode())
        with pytest.raises(ModelError, match="/@config: the option table"):
            LocalModel(path, verify=False)


@pytest.mark.whole
def test_weights_are_a_column_or_of_labels_by_their_names(folder: Path, tmp_path: Path) -> None:
    """The model of a column of weights is that of the same weights in a file; classes are weighted by their names."""
    lines = (folder / "train.csv").read_text().splitlines()
    weights = [1 + i % 3 for i in range(len(lines) - 1)]
    (tmp_path / "w.txt").write_text("".join(f"{w}\n" for w in weights))
    body = "".join(f"{line},{w}\n" for line, w in zip(lines[1:], weights, strict=True))
    (tmp_path / "w.csv").write_text(f"{lines[0]},w\n{body}")
    common = "-q", *FAST, "--label", "churn", "--id-column", "id", "-w", "yes", "2"
    invoke("train", *common, "--weights", tmp_path / "w.txt", folder / "train.csv", tmp_path / "one.h5")
    invoke("train", *common, "--weight-column", "w", tmp_path / "w.csv", tmp_path / "two.h5")
    values = [
        invoke("predict", "-q", "--decision-values", folder / "test.csv", tmp_path / f"{name}.h5").stdout
        for name in ("one", "two")
    ]
    assert values[0] == values[1]
    with LocalModel(tmp_path / "one.h5") as model:
        assert model.file.config["class_weights"] == [[1.0, 2.0]]
    line = "--ignore", "id", "--label", "churn", "-w", "Yes", "2", folder / "train.csv", tmp_path / "n.h5"
    message = error("train", *FAST, *line)
    assert "no row has the label 'Yes' of -w; perhaps 'yes' is meant" in message
    assert "in LIBSVM text, labels are numbers" in usage_error("train", "-w", "yes", "2", "x.libsvm")


def test_labels_and_ids_are_text_whatever_they_hold(tmp_path: Path) -> None:
    """A few texts among the numbers of these columns are no mistake."""
    body = "".join(f"{i},{i % 2},{i % 7}.5\n" for i in range(60))
    (tmp_path / "t.csv").write_text(f"id,label,x\n{body}last,other,3.5\n")
    result = invoke("train", *FAST, "--id-column", "id", tmp_path / "t.csv", tmp_path / "m.h5")
    assert "3 classes: 0 (30), 1 (30), other (1)" in result.stderr


def test_labels_that_the_model_does_not_know(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("churn,age,city,plan\nperhaps,30,city 1,basic\n")
    out = invoke("predict", "--json", tmp_path / "t.csv", folder / "train.model.h5", tmp_path / "out.csv").stdout
    assert json.loads(out)["confusion"][0]["true"] is None


def test_libsvm_text_is_no_table(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.libsvm").write_text("1 1:0.5 2:3\n-1 1:2 2:4\n")
    message = error("predict", tmp_path / "t.libsvm", folder / "train.model.h5", tmp_path / "out")
    assert "t.libsvm: this is LIBSVM text, and the model was trained on a table" in message


def test_reports_say_what_the_labels_stand_for(folder: Path, tmp_path: Path) -> None:
    files = folder / "test.csv", folder / "train.model.h5", tmp_path / "out.csv"
    told = json.loads(invoke("predict", "--json", "-b", 1, "--report", tmp_path / "report", *files).stdout)
    names = told["classes"]["values"]
    assert names == ["no", "yes"] and {entry["true"] for entry in told["confusion"]} == {0.0, 1.0}
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert [entry["label"] for entry in report["classes"]] == names


def test_one_class_and_numbers_too_large_are_told_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,x\nno,2\nno,3\n")
    assert "t.csv: all 2 rows have the label no; training needs" in error("train", tmp_path / "t.csv", "-")
    (tmp_path / "t.csv").write_text("label,x\nno,2\nyes,-1e300\n")
    message = "t.csv: column 'x' has the value -1e+300, beyond the largest float32, 3.4e38; rescale it, or leave it out"
    assert message in error("train", tmp_path / "t.csv", "-")


def test_rows_that_all_have_no_label_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,x\n,2\n,3\n")
    assert "no row has a label in 'label'" in error("train", "--drop-unlabelled", tmp_path / "t.csv", tmp_path / "m.h5")


def test_an_unusual_delimiter_is_that_of_training(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label:x\n" + "".join(f"{i % 2}:{i}\n" for i in range(20)))
    invoke("train", "-q", *FAST, "--delimiter", ":", tmp_path / "t.csv", tmp_path / "m.h5")
    assert "/20)" in invoke("predict", tmp_path / "t.csv", tmp_path / "m.h5", "/dev/null").stderr


def test_a_header_may_have_numbers(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = "".join(f"{i % 2},{i % 2 + rng.normal():.2f},{rng.normal():.2f}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("label,2019,2020\n" + rows)
    assert "60 rows, 2 features" in invoke("train", *FAST, tmp_path / "t.csv", tmp_path / "m.h5").stderr
    (tmp_path / "plain.csv").write_text(rows)
    invoke("train", *FAST, tmp_path / "plain.csv", tmp_path / "n.h5")
    message = error("predict", tmp_path / "t.csv", tmp_path / "n.h5")
    assert message == f"{tmp_path}/t.csv:1: the first row has names, and the training table had none; remove it\n"


def test_a_column_that_begins_late_is_text_if_its_values_are(tmp_path: Path) -> None:
    """The first MiB has no value of the column."""
    with (tmp_path / "t.csv").open("w") as file:
        file.write("label,code,late,x\n")
        for i in range(60_000):
            file.write(f"{i % 2},{'ab'[i // 7 % 2] if i > 59_000 else '?'},{i if i > 59_900 else ''},{i % 89}.25000\n")
    text = invoke("describe", tmp_path / "t.csv").stdout
    assert "code    feature  text" in text and "late    feature  number" in text
    one = ("-g", "1", "-C", "1", "-P", "chunks", "-c", "500", "--metric", "none")
    assert "60,000 rows, 5 features" in invoke("train", *one, tmp_path / "t.csv", tmp_path / "m.h5").stderr


def test_a_column_of_two_roles_is_refused(folder: Path, tmp_path: Path) -> None:
    message = error("train", "--label", "churn", "--ignore", "churn", folder / "train.csv", tmp_path / "m.h5")
    assert "column 'churn' is named by --label and by --ignore; choose one" in message


def test_ids_and_labels_beyond_float64_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,x\n9007199254740993,1\n9007199254740992,2\n")
    assert "in 'label' has more digits than float64 holds" in error("train", tmp_path / "t.csv", tmp_path / "m.h5")


def test_a_column_that_is_ignored_has_no_labels(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,x,z\n" + "".join(f"{i % 2},{i},{i % 5}\n" for i in range(40)))
    message = error("train", *FAST, "--ignore", "label", tmp_path / "t.csv", tmp_path / "m.h5")
    assert "which column has the labels? Give --label NAME" in message
    one_class = invoke("train", "-m", "one-class", *PLAIN, "--ignore", "label", tmp_path / "t.csv", tmp_path / "m.h5")
    assert "40 rows, 2 features" in one_class.stderr


def test_a_report_is_of_the_rows_that_have_a_label(folder: Path, tmp_path: Path) -> None:
    names, *rows = (folder / "test.csv").read_text().splitlines()
    invoke("train", "-q", "-b", 1, *FAST, "--label", "churn", folder / "train.csv", tmp_path / "m.h5")

    def report(*changed: str) -> tuple[Any, ...]:
        (tmp_path / "t.csv").write_text("\n".join([names, *changed, *rows[len(changed) :]]) + "\n")
        return "predict", "-b", 1, "--force", "--report", tmp_path / "report", tmp_path / "t.csv", tmp_path / "m.h5"

    fields = rows[0].split(",")
    invoke(*report(",".join([fields[0], "", *fields[2:]])), tmp_path / "out")
    assert json.loads((tmp_path / "report/report.json").read_text())["rows"] == len(rows) - 1
    message = error(*report(rows[0], ",".join([fields[0], "Maybe", *fields[2:]])), tmp_path / "out")
    assert "row 2 has a label that the model does not know: --report is for files with its labels" in message
    (tmp_path / "none.csv").write_text("\n".join(",".join(r.split(",")[:1] + r.split(",")[2:]) for r in [names, *rows]))
    given = "predict", "-b", 1, "--force", "--report", tmp_path / "report", tmp_path / "none.csv", tmp_path / "m.h5"
    assert "no row has a label: --report is for files with labels" in error(*given, tmp_path / "out")


def test_a_pipe_says_why_a_column_is_one_of_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read once more, to find a value; a pipe cannot be."""
    monkeypatch.setattr(delimited, "HEAD_BYTES", 500)
    text = ("x,plan,label\n" + "".join(f"{i},,{i % 2}\n" for i in range(200)) + "1,basic,0\n2,pro,1\n").encode()
    message = error("train", *FAST, "--format", "csv", "-", tmp_path / "m.h5", stdin=text)
    assert "'plan' has no value in the first rows, so that a pipe's is taken for numbers, and here 'basic'" in message
    assert "--categorical plan" in message


def test_names_of_repeated_options_add_up(tmp_path: Path) -> None:
    """The last one alone would train with columns that were to be left out."""
    rows = "".join(f"{i},{i % 3},{'-' if i % 7 else 'none'},{i % 2 + i / 100},{i % 2}\n" for i in range(40))
    (tmp_path / "t.csv").write_text("id,code,x,z,label\n" + rows)

    def table(*options: str) -> tuple[list[str], dict[str, Any]]:
        invoke("train", *FAST, *options, tmp_path / "t.csv", tmp_path / "m.h5", "--force")
        with LocalModel(tmp_path / "m.h5") as model:
            assert model.table is not None
            return model.table.encoding.names, dict(model.table.kept)

    repeated = table("--ignore", "id", "--ignore", "code,x")
    assert repeated == table("--ignore", "id,code,x") and repeated[0] == ["z"]
    repeated = table("--id-column", "id", "--id-column", "z", "--categorical", "code", "--categorical", "x")
    assert repeated == table("--id-column", "id,z", "--categorical", "code,x") and repeated[1]["ids"] == ["id", "z"]
    repeated = table("--missing", "-", "--missing", "none")
    assert repeated == table("--missing", "-,none") and repeated[1]["missing"] == ["-", "none"]


@pytest.mark.whole
def test_a_column_without_a_name_is_ignored_by_none(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i % 2},{i % 2 + i / 100}\n" for i in range(40))
    (tmp_path / "t.csv").write_text(",label,x\n" + rows)
    given = (tmp_path / "t.csv", tmp_path / "m.h5", "--force")
    assert "40 rows, 2 features" in invoke("train", *FAST, *given).stderr
    assert "40 rows, 1 feature" in invoke("train", *FAST, "--ignore", "", *given).stderr


def test_a_metric_is_shown_by_columns(folder: Path, tmp_path: Path) -> None:
    """One weight for the levels of a column, by its name, in inspect and in a picture."""
    options = ["-g", "1", "-C", "1", "--metric", "diag", "--label", "churn", "--ignore", "id"]
    invoke("train", "-q", *options, folder / "train.csv", tmp_path / "m.h5")
    weights = json.loads(invoke("inspect", "--json", tmp_path / "m.h5").stdout)["metric"]["weights"]
    assert {item["name"] for item in weights} == {
        "age", "age is missing", "city: share of class 1", "city: frequency", "plan",
    }  # fmt: skip
    assert weights[0]["weight"] >= weights[-1]["weight"]
    pytest.importorskip("matplotlib")
    invoke("plot", tmp_path / "m.h5", tmp_path / "m.svg")
    assert (tmp_path / "m.svg").stat().st_size > 1000
