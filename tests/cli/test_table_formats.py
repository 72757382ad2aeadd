"""Tables in other formats than delimited text: one model for all of them, and damaged files in a line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import FAST, error, invoke

from localsvm.data.readers.libsvm import read
from localsvm.data.readers.tables import is_tab

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.feather")
pytest.importorskip("pyarrow.parquet")

N = 120


def columns(seed: int = 0) -> dict[str, Any]:
    """A table with a column of each type; the label depends on age and plan."""
    rng = np.random.default_rng(seed)
    age, plan = rng.integers(20, 60, N), rng.choice(["basic", "pro"], N)
    day = np.datetime64("2024-01-01") + rng.integers(0, 700, N)
    return {
        "left": [("yes" if (a > 40) == (p == "pro") else "no") for a, p in zip(age, plan, strict=True)],
        "age": [None if i % 11 == 0 else int(a) for i, a in enumerate(age)],
        "spent": rng.normal(size=N).round(3).tolist(),
        "plan": plan.tolist(),
        "member": [bool(flag) for flag in rng.integers(0, 2, N)],
        "since": day.astype(object).tolist(),
    }


def as_csv(table: dict[str, Any], path: Path) -> None:
    rows = zip(*table.values(), strict=True)
    text = "".join(",".join("" if value is None else str(value) for value in row) + "\n" for row in rows)
    path.write_text(",".join(table) + "\n" + text)


def as_parquet(table: dict[str, Any], path: Path) -> None:
    pa.parquet.write_table(pa.table(table), path, row_group_size=50)


def as_feather(table: dict[str, Any], path: Path) -> None:
    dictionary = pa.table(table).set_column(3, "plan", pa.array(table["plan"]).dictionary_encode())
    pa.feather.write_feather(dictionary, str(path))


def as_records(table: dict[str, Any], path: Path) -> None:
    arrays = {name: np.asarray(values) for name, values in table.items() if name not in ("age", "since")}
    arrays["age"] = np.asarray([np.nan if value is None else value for value in table["age"]])
    arrays["since"] = np.asarray(table["since"], "datetime64[D]")
    np.savez(path, **arrays)


WRITERS: dict[str, Callable[[dict[str, Any], Path], None]] = {
    "csv": as_csv, "parquet": as_parquet, "feather": as_feather, "npz": as_records,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("formats")
    for suffix, write in WRITERS.items():
        write(columns(0), path / f"train.{suffix}")
        write(columns(1), path / f"test.{suffix}")
        invoke("train", "-q", *FAST, "--label", "left", path / f"train.{suffix}", path / f"{suffix}.h5")
    return path


@pytest.mark.fast(4)
@pytest.mark.parametrize("trained", list(WRITERS))
@pytest.mark.parametrize("predicted", ["csv", "parquet", "feather"])
def test_a_model_of_one_format_predicts_the_others(trained: str, predicted: str, folder: Path) -> None:
    expected = invoke("predict", "--decision-values", folder / "test.csv", folder / "csv.h5")
    result = invoke("predict", "--decision-values", folder / f"test.{predicted}", folder / f"{trained}.h5")
    if trained == "npz":  # its columns have another order, and sums round differently
        assert result.stderr == expected.stderr
    else:
        assert (result.stdout, result.stderr) == (expected.stdout, expected.stderr)


def test_a_matrix_has_its_labels_first(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 3))
    X[:, 0] = X[:, 1] > 0
    np.save(tmp_path / "t.npy", X)
    result = invoke("train", *FAST, tmp_path / "t.npy", tmp_path / "m.h5")
    assert "the table has no header; its columns are called 1 to 3, and 1 has the labels" in result.stderr
    assert "Accuracy = 9" in invoke("predict", tmp_path / "t.npy", tmp_path / "m.h5").stderr
    np.savez(tmp_path / "both.npz", X=X[:, 1:], y=X[:, 0])
    assert "2 features, 2 classes" in invoke("train", *FAST, tmp_path / "both.npz", tmp_path / "n.h5").stderr


def test_the_format_is_found_in_the_content(folder: Path, tmp_path: Path) -> None:
    for suffix in WRITERS:
        (tmp_path / f"data-{suffix}").write_bytes((folder / f"train.{suffix}").read_bytes())
        assert "plan" in invoke("describe", "--label", "left", tmp_path / f"data-{suffix}").stdout
    (tmp_path / "rows").write_text("1 qid:3 1:0.5 # a, b\n-1 2:1\n" * 10)
    assert "2 features, 2 classes" in invoke("train", *FAST, tmp_path / "rows", tmp_path / "m.h5").stderr


def nested(path: Path) -> None:
    pa.parquet.write_table(pa.table({"label": [0, 1], "places": [[1, 2], [3]]}), path)


def cut(name: str, by: int) -> Callable[[Path, Path], object]:
    """Damage that leaves the last bytes of a file away."""
    return lambda of, to: to.write_bytes((of / name).read_bytes()[:-by])


def renamed(of: Path, to: Path) -> None:
    to.write_bytes((of / "train.csv").read_bytes())


DAMAGES: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "cut.parquet": (cut("train.parquet", 99), "no whole Parquet file"),
    "text.parquet": (renamed, "no whole Parquet file"),
    "text.arrow": (renamed, "no whole Arrow file"),
    "cut.feather": (cut("train.feather", 50), "no whole Arrow file"),
    "cut.npz": (cut("train.npz", 50), "no whole NPY or NPZ file"),
    "cube.npy": (lambda of, to: np.save(to, np.zeros((2, 2, 2))), "an array of shape (2, 2, 2)"),
    "empty.npy": (lambda of, to: np.save(to, np.zeros((0, 2))), "there are no rows"),
    "two.npz": (lambda of, to: np.savez(to, X=np.eye(2), Z=np.eye(2)), "2 matrices"),
    "objects.npy": (lambda of, to: np.save(to, np.asarray([[None, 1]])), "no whole NPY or NPZ file"),
    "nested.parquet": (lambda of, to: nested(to), "'places' has values of the type list<"),
    "none.parquet": (lambda of, to: None, "no such file; check the name"),
    "none.feather": (lambda of, to: None, "no such file; check the name"),
    "none.npy": (lambda of, to: None, "no such file; check the name"),
    "folder.parquet": (lambda of, to: to.mkdir(), "this is a directory; name a file in it"),
}


@pytest.mark.fast(4)
@pytest.mark.parametrize("name", list(DAMAGES))
def test_a_damaged_file_is_refused_in_a_line(name: str, folder: Path, tmp_path: Path) -> None:
    damage, message = DAMAGES[name]
    damage(folder, tmp_path / name)
    told = error("train", "--label", "1", tmp_path / name, tmp_path / "m.h5")
    assert message in told and told.count("\n") == 1 and str(tmp_path / name) in told
    assert not (tmp_path / "m.h5").exists()


def test_a_column_of_another_type_is_refused(folder: Path, tmp_path: Path) -> None:
    other = columns(1) | {"age": ["old"] * N}
    as_parquet(other, tmp_path / "other.parquet")
    message = error("predict", tmp_path / "other.parquet", folder / "csv.h5")
    assert "column 'age' has text, and had numbers in training; write numbers" in message


def test_columns_are_described_as_catboost_has_it(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cd").write_text("0\tLabel\n1\tNum\n3\tCateg\n4\tAuxiliary\n5\tAuxiliary\n")
    result = invoke("train", *FAST, "--columns", tmp_path / "cd", folder / "train.csv", tmp_path / "m.h5")
    assert "data        120 rows, 5 features" in result.stderr
    for text, message in {
        "9\tNum\n": "cd:1: '9' is no number of a column, from 0 to 5",
        "0\tLabel\n1\tText\n": "cd:2: 'Text' is not known here",
        "0\tLabel\n1\tLabel\n": "two columns are of one kind: left, age",
        "0\tLabel\n1\tNum\n3\tNum\n": "train.csv: row 1: column 'plan' has numbers, and here '",
    }.items():
        (tmp_path / "cd").write_text(text)
        assert message in error("train", "--columns", tmp_path / "cd", folder / "train.csv", tmp_path / "n.h5")
    message = error("train", "--columns", tmp_path / "cd", folder / "train.parquet", tmp_path / "n.h5")
    assert "column 'plan' is described as one of numbers, and has text" in message


@pytest.mark.parametrize(
    "more",
    [
        ["--encode", "ordinal"],
        pytest.param(["--dates", "none"], marks=pytest.mark.whole),
        pytest.param(["--categorical", "none"], marks=pytest.mark.whole),
    ],
)
def test_out_of_core_gives_the_same_model(more: list[str], folder: Path, tmp_path: Path) -> None:
    options = [
        "--metric",
        "diag",
        *FAST[:4],
        "-P",
        "voronoi",
        "-c",
        "40",
        "--coarse-size",
        "60",
        "--label",
        "left",
        *more,
    ]
    values = []
    for name, way in {"a": [], "b": ["--out-of-core"]}.items():
        invoke("train", "-q", *options, *way, folder / "train.csv", tmp_path / name)
        values.append(invoke("predict", "--decision-values", folder / "test.csv", tmp_path / name).stdout)
    assert values[0] == values[1]


def test_a_copy_of_the_label_is_noticed(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y, x = rng.integers(0, 2, 200), rng.normal(size=200)
    rows = "".join(f"{a},{b:.3f},{10 - a},{'ab'[a]}\n" for a, b in zip(y, x, strict=True))
    (tmp_path / "t.csv").write_text("label,x,copy,letter\n" + rows)
    notes = invoke("train", *FAST, tmp_path / "t.csv", tmp_path / "m.h5").stderr
    assert "column 'copy' predicts 'label' alone" in notes and "column 'letter' predicts 'label' alone" in notes
    assert "column 'x'" not in notes


@pytest.mark.fast(3)
@pytest.mark.parametrize(
    ("name", "tab"),
    [
        ("a.tsv", True),
        ("A.TAB.gz", True),
        ("tab.csv", False),
        ("tsv.csv.gz", False),
        ("a.tsv.csv", False),
        ("tsv", False),
    ],
)
def test_the_last_ending_says_whether_tabs_delimit(name: str, tab: bool) -> None:
    assert is_tab(name) is tab


@pytest.mark.parametrize("through", ["a.tsv", "a.csv.gz", "a.parquet", "a.feather", "a.arrow", "a.npz"])
def test_a_table_is_converted_and_back(through: str, folder: Path, tmp_path: Path) -> None:
    invoke("convert", folder / "train.parquet", tmp_path / "before.csv")
    invoke("convert", tmp_path / "before.csv", tmp_path / through)
    invoke("convert", tmp_path / through, tmp_path / "after.csv")
    assert (tmp_path / "after.csv").read_text() == (tmp_path / "before.csv").read_text()
    assert (tmp_path / "before.csv").read_text().splitlines()[0] == "left,age,spent,plan,member,since"


def test_encoded_features_are_those_of_a_model(folder: Path, tmp_path: Path) -> None:
    """Other tools get the very same features: as a table, and as LIBSVM text."""
    label = ["--label", "left"]
    invoke("convert", "--encoded", *label, folder / "train.csv", tmp_path / "e.csv")
    head, first, *_ = (tmp_path / "e.csv").read_text().splitlines()
    assert head.startswith("left,age,age is missing,spent,plan=basic,plan=pro,member=False,member=True,since: year")
    assert first.split(",")[0] in ("yes", "no") and len(first.split(",")) == len(head.split(","))
    invoke("convert", *label, folder / "train.csv", tmp_path / "e.libsvm")
    X = read(tmp_path / "e.libsvm").X
    written = np.asarray([row.split(",")[1:] for row in (tmp_path / "e.csv").read_text().splitlines()[1:]], np.float32)
    np.testing.assert_array_equal(X, written)
    invoke("convert", "--encoded", *label, folder / "train.csv", tmp_path / "e.npz")
    assert error("convert", folder / "train.csv", tmp_path / "e.npy").endswith(
        "column 'left' is text, and a matrix has numbers; write .npz, or numbers alone\n"
    )
    invoke("convert", tmp_path / "e.libsvm", tmp_path / "of_text.csv")
    assert (tmp_path / "of_text.csv").read_text().startswith("label,1,2,3,")


def test_a_table_is_described(folder: Path, tmp_path: Path) -> None:
    lines = invoke("describe", "--label", "left", folder / "train.csv").stdout.splitlines()
    assert lines[0] == (
        f"{folder}/train.csv: delimited text, delimiter ',', 120 rows, 6 columns, names in the header, labels in 'left'"
    )
    assert [line.split()[:3] for line in lines[-6:]] == [
        ["left", "label", "text"], ["age", "feature", "number"], ["spent", "feature", "number"],
        ["plan", "feature", "text"], ["member", "feature", "text"], ["since", "feature", "date"],
    ]  # fmt: skip
    assert "9.2%" in lines[-5] and "2 different" in lines[-3]
    assert "which column has the labels?" in invoke("describe", folder / "train.parquet").stdout
    invoke("describe", "--html", tmp_path / "t.html", folder / "train.csv")
    assert "<td>spent</td>" in (tmp_path / "t.html").read_text()


def test_problems_come_first(tmp_path: Path) -> None:
    rows = (
        "".join(f"{i % 2},r{i},1,{'' if i % 4 else i},{5 - i % 2}\n" for i in range(100)) + "2,r100,1,,9\n,r101,1,,9\n"
    )
    (tmp_path / "t.csv").write_text("label,name,one,gaps,copy\n" + rows)
    text = invoke("describe", tmp_path / "t.csv").stdout
    problems = [line[2:] for line in text.splitlines() if line.startswith("- ")]
    assert problems[0] == "0.98% of the rows have no label in 'label'; --drop-unlabelled leaves them out"
    assert problems[1] == "1 of 3 classes has fewer than 5 rows: '2'"
    assert problems[2] == "column 'name' has a text of its own in each row; if it names rows, --id-column name"
    assert problems[3] == "column 'one' has one value only; it will be left out"
    assert problems[4] == "column 'gaps': 75% of the values are missing"


def test_gaps_beside_one_text_are_a_feature(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("label,x\n" + "yes,a\nno,\n" * 30)
    assert "no column is a feature" not in invoke("describe", tmp_path / "t.csv").stdout
    assert "60 rows, 1 feature," in invoke("train", *FAST, tmp_path / "t.csv", tmp_path / "m.h5").stderr


def test_libsvm_text_is_described(tmp_path: Path) -> None:
    (tmp_path / "t.libsvm").write_text("1 1:2 3:1\n-1 2:1\n")
    text = invoke("describe", tmp_path / "t.libsvm").stdout
    assert "LIBSVM text, 2 rows" in text and "3, 50.0% of the values are not 0" in text
    assert "2 classes: -1 (1), 1 (1)" in text


def test_truth_values_are_one_in_all_formats(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    flag = rng.integers(0, 2, 120).astype(bool)
    y, x = flag.astype(int).tolist(), rng.normal(size=120).round(2).tolist()
    as_csv({"y": y, "flag": [str(each).lower() for each in flag], "x": x}, tmp_path / "t.csv")
    as_parquet({"y": y, "flag": flag.tolist(), "x": x}, tmp_path / "t.parquet")
    invoke("train", "-q", *FAST, tmp_path / "t.csv", tmp_path / "m.h5")
    result = invoke("predict", tmp_path / "t.parquet", tmp_path / "m.h5")
    assert result.stderr == "Accuracy = 100% (120/120)\n"


def test_whole_numbers_are_exact_in_all_formats(tmp_path: Path) -> None:
    """Above 2^53 float64 does not hold them, with missing values nor without."""
    rng = np.random.default_rng(0)
    shop, x = 2**60 + rng.integers(0, 5, 120), rng.normal(size=120).round(3)
    y = ((shop % 2 * 2 - 1) * x > 0).astype(int).tolist()
    table = {"y": y, "shop": [None if i == 3 else int(s) for i, s in enumerate(shop)], "x": x.tolist()}
    as_csv(table, tmp_path / "t.csv")
    as_parquet(table, tmp_path / "t.parquet")
    said, ids = set(), set()
    for suffix in ("csv", "parquet"):
        invoke("train", "-q", *FAST, "--categorical", "shop", tmp_path / f"t.{suffix}", tmp_path / "m.h5", "--force")
        said |= {invoke("predict", tmp_path / f"t.{other}", tmp_path / "m.h5").stdout for other in ("csv", "parquet")}
        invoke("train", "-q", *FAST, "--id-column", "shop", tmp_path / f"t.{suffix}", tmp_path / "m.h5", "--force")
        invoke("predict", "--force", tmp_path / f"t.{suffix}", tmp_path / "m.h5", tmp_path / "out.csv")
        ids.add(tuple(row.split(",")[0] for row in (tmp_path / "out.csv").read_text().splitlines()[1:]))
    assert len(said) == 1 and ids == {tuple("" if i == 3 else str(s) for i, s in enumerate(shop))}
    invoke("convert", tmp_path / "t.parquet", tmp_path / "u.csv")
    assert [line.split(",")[1] for line in (tmp_path / "u.csv").read_text().splitlines()[1:]] == list(ids.pop())
    note = "column 'shop' has numbers of more than 15 digits"
    assert note in invoke("convert", tmp_path / "t.csv", tmp_path / "u.parquet").stderr
    kept = invoke("convert", "--categorical", "shop", tmp_path / "t.csv", tmp_path / "v.parquet")
    assert not kept.stderr
    assert set(pa.parquet.read_table(tmp_path / "v.parquet")["shop"].to_pylist()) == {None, *map(str, shop[shop > 0])}


@pytest.mark.parametrize("trained", ["csv", "parquet"])
def test_codes_with_a_point_are_whole_numbers_in_all_formats(trained: str, tmp_path: Path) -> None:
    """A column of codes with gaps is often written as 1.0."""
    table = {"y": ["a", "b", "a"] * 40, "code": [1.0, 2.0, None] * 40, "x": list(range(120))}
    as_csv(table, tmp_path / "t.csv")
    as_parquet(table, tmp_path / "t.parquet")
    invoke("train", "-q", *FAST, "--categorical", "code", tmp_path / f"t.{trained}", tmp_path / "m.h5")
    for suffix in ("csv", "parquet"):
        result = invoke("predict", tmp_path / f"t.{suffix}", tmp_path / "m.h5")
        assert result.stderr == "Accuracy = 100% (120/120)\n"


def test_groups_do_not_depend_on_the_format(tmp_path: Path) -> None:
    table = columns(3) | {"who": [f"p{(7 * i) % 20}" for i in range(N)]}
    as_csv(table, tmp_path / "t.csv")
    as_parquet(table, tmp_path / "t.parquet")
    options = ["--encode", "target", "--label", "left", "--group-column", "who", "-b", "1", "-g", "1", "-C", "1"]
    values = []
    for suffix in ("csv", "parquet"):
        invoke("train", "-q", "--metric", "none", *options, tmp_path / f"t.{suffix}", tmp_path / f"{suffix}.h5")
        values.append(invoke("predict", "-b", "1", tmp_path / "t.csv", tmp_path / f"{suffix}.h5").stdout)
    assert values[0] == values[1]


def test_a_copy_of_a_table_loses_nothing(tmp_path: Path) -> None:
    text = "y,big,zip,word\n1,9007199254740993,00008,NA\n0,-9007199254740993,01234,x\n"
    (tmp_path / "t.csv").write_text(text)
    invoke("convert", tmp_path / "t.csv", tmp_path / "u.csv")
    assert (tmp_path / "u.csv").read_text() == text


def test_numbers_of_any_size_are_described(tmp_path: Path) -> None:
    rows = "".join(f"{i % 2},{1700000000000000000 + i},{(-1) ** i * 1e308},{i}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("y,t,large,n\n" + rows)
    text = invoke("describe", tmp_path / "t.csv").stdout
    assert "-1e+308 to 1e+308" in text and "█      █" in text
    np.save(tmp_path / "i.npy", np.asarray([[1.0, np.inf], [0.0, 1.0]]))
    assert "column '2' has an infinite number" in error("describe", tmp_path / "i.npy")


def test_labels_are_described_as_they_are_trained(tmp_path: Path) -> None:
    """The first column where there is no header; 1 and 1.0 are one label."""
    rows = "".join(f"{('1', '0', '1.0', '0.0')[i % 4]},{i},{i % 7}\n" for i in range(60))
    (tmp_path / "t.csv").write_text(rows)
    text = invoke("describe", tmp_path / "t.csv").stdout
    assert "labels in '1'" in text and "1       label    text    -        2 different" in text
    column = json.loads(invoke("describe", "--json", tmp_path / "t.csv").stdout)["columns"][0]
    assert (column["role"], column["different"], column["common"]) == ("label", 2, [["0", 0.5], ["1", 0.5]])
    (tmp_path / "long.csv").write_text("label,x\n" + "a,1\n" * 20 + "b" * 5000 + ",2\n")
    problems = json.loads(invoke("describe", "--json", tmp_path / "long.csv").stdout)["problems"]
    assert any("classes has fewer than" in each and len(each) < 200 for each in problems)


def test_labels_that_are_values_are_described_as_numbers(tmp_path: Path) -> None:
    prices = [*range(100, 160), 100]
    (tmp_path / "t.csv").write_text("x,price\n" + "".join(f"{i % 7},{price}\n" for i, price in enumerate(prices)))
    (tmp_path / "i.csv").write_text((tmp_path / "t.csv").read_text() + "1,1e400\n")
    assert json.loads(invoke("describe", "--json", "--label", "price", tmp_path / "i.csv").stdout)["rows"] == 62
    text = invoke("describe", "--label", "price", tmp_path / "t.csv").stdout
    assert "- 'price' has 60 different numbers, rather values than classes; --loss least-squares predicts" in text
    column = json.loads(invoke("describe", "--json", "--label", "price", tmp_path / "t.csv").stdout)["columns"][1]
    assert (column["role"], column["kind"], column["least"], column["most"]) == ("label", "number", 100.0, 159.0)
    assert column["histogram"][0] == pytest.approx(9 / 61) and not column["common"]


def test_files_of_rows_go_with_rows_that_are_left_out(tmp_path: Path) -> None:
    rows = "".join(f"{'' if i % 5 == 0 else i % 2},{i % 2 + i / 100}\n" for i in range(100))
    (tmp_path / "t.csv").write_text("label,x\n" + rows)
    (tmp_path / "g").write_text("".join(f"g{i // 4}\n" for i in range(100)))
    (tmp_path / "w").write_text("1\n" * 100)
    given = ["--drop-unlabelled", "--group-file", tmp_path / "g", "--weights", tmp_path / "w"]
    assert "80 rows, 1 feature" in invoke("train", *FAST, *given, tmp_path / "t.csv", tmp_path / "m.h5").stderr


def test_a_finished_run_of_other_columns_is_another(tmp_path: Path) -> None:
    rows = "".join(f"{i % 2},{i % 2 + i / 100}\n" for i in range(60))
    (tmp_path / "t.csv").write_text("y,x\n" + rows)
    (tmp_path / "u.csv").write_text("y,renamed\n" + rows)
    invoke("train", "-q", *FAST, tmp_path / "t.csv", tmp_path / "m.h5")
    assert "exists already" in error("train", *FAST, "--resume", tmp_path / "u.csv", tmp_path / "m.h5")
    assert "is finished" in invoke("train", *FAST, "--resume", tmp_path / "t.csv", tmp_path / "m.h5").stderr
