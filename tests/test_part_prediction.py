"""Prediction on a text in parts gives the lines of one machine, byte for byte."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import error, invoke, usage_error
from parts_of_text import Parts
from test_engines import far, many_classes, plain, wide, with_gaps

from localsvm.cli.labels import PredictionLines
from localsvm.cli.paths import parts_output
from localsvm.data.synthetic import banana
from localsvm.data.writers.libsvm import write
from localsvm.errors import DataError, RunError
from localsvm.runs.predict import IndexBase, LocalModel, Score
from localsvm.runs.prediction import parts as part_prediction
from localsvm.runs.prediction.parts import Collected, Prediction, TextRows, predict_parts

OPTIONS = ("-g", "0.5", "-C", "1", "--metric", "none", "-c", "200", "-q")


def path_of(path: Path) -> str:
    return str(path)


def in_parts(text: Parts, model: Path, **how: bool) -> tuple[list[str], Score, IndexBase]:
    """Predictions of each part as text, and the score and the index base of all parts."""
    with LocalModel(model) as local:
        said = Collected.of(local, None)
    lines = partial(PredictionLines, **how)
    task = Prediction(TextRows(text.name, False), partial(path_of, model), lines, None, how.get("probabilities", False))
    return list(predict_parts(text, task, said)), said.score, said.indices  # type: ignore[arg-type]


def trained(make: Callable[[Path], None], folder: Path, *options: str) -> tuple[Path, Path]:
    make(rows := folder / "rows")
    invoke("train", *OPTIONS, *options, rows, model := folder / "m.h5")
    return rows, model


@pytest.mark.fast(1)
@pytest.mark.parametrize(
    ("make", "options", "how"),
    [
        (plain, (), {}),
        (plain, ("--repeats", "2"), {"decision_values": True}),
        (many_classes, ("-b", "1"), {"probabilities": True}),
        (with_gaps, (), {"decision_values": True}),
        (wide, ("-m", "linear"), {"decision_values": True}),
        (far, (), {"decision_values": True}),
    ],
    ids=["plain", "repeats", "probabilities", "gaps", "wide", "far"],
)
def test_lines_are_those_of_one_machine(
    make: Any, options: tuple[str, ...], how: dict[str, bool], tmp_path: Path
) -> None:
    options = tuple(option for option in options if "linear" not in options or option not in ("-g", "0.5"))
    make(rows := tmp_path / "rows")
    base = OPTIONS[2:] if "linear" in options else OPTIONS
    invoke("train", *base, *options, rows, model := tmp_path / "m.h5")
    flags = {"decision_values": ("--decision-values",), "probabilities": ("-b", "1")}
    result = invoke("predict", *(flag for name in how for flag in flags[name]), rows, model, tmp_path / "one")
    for ends, piece in (([], 1 << 30), ([3, 100, 100, 350], 70)):
        texts, score, _ = in_parts(Parts(rows, ends, piece), model, **how)
        assert len(texts) == len(ends) + 1
        assert "".join(texts) == (tmp_path / "one").read_text()
        assert f"({score.right}/{score.total})" in result.stderr


def test_a_mistake_is_told_with_its_place_in_the_whole(tmp_path: Path) -> None:
    rows, model = trained(plain, tmp_path)
    lines = rows.read_text().splitlines()
    lines[611] = "1 1:x"
    rows.write_text("\n".join(["", *lines]) + "\n")
    expected = error("predict", rows, model, tmp_path / "out").removesuffix("\n")
    with pytest.raises(DataError) as caught:
        in_parts(Parts(rows, [300, 500]), model)
    assert str(caught.value) in expected and "rows:613:" in expected
    for text in ("", "\n\n"):
        rows.write_text(text)
        expected = error("predict", rows, model, tmp_path / "out").removesuffix("\n")
        with pytest.raises(DataError) as caught:
            in_parts(Parts(rows, [1]), model)
        assert str(caught.value) == expected


def test_a_row_without_a_label_is_told_with_its_number_in_the_whole(tmp_path: Path) -> None:
    X, y = banana(700, np.random.default_rng(0))
    write(rows := tmp_path / "rows", 0.01 * X, y)
    invoke("train", "-m", "linear", "-C", "1", "-q", rows, model := tmp_path / "m.h5")
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join(["", *lines[:611], "1 1:3e38 2:-3e38", *lines[611:]]) + "\n")
    expected = error("predict", rows, model, tmp_path / "out")
    assert expected.startswith("row 612: no label")
    with pytest.raises(DataError) as caught:
        in_parts(Parts(rows, [300, 500]), model)
    assert f"{caught.value}\n" == expected


def test_what_is_said_of_indices_is_said_of_all_parts(tmp_path: Path) -> None:
    rows, model = trained(plain, tmp_path)
    text = rows.read_text()
    rows.write_text(text.replace("1:", "3:", 1).replace(" 2:", " 4:", 1))
    _, _, indices = in_parts(Parts(rows, [300, 500]), model)
    with LocalModel(model) as local:
        one = IndexBase(local)
        for _ in one.seen(local.read(str(rows), tell=one.count)):
            pass
    assert vars(indices) == vars(one)


def test_a_machine_of_another_simd_level_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, model = trained(plain, tmp_path)
    levels = iter([1, 0])  # of this machine, and of the other
    monkeypatch.setattr(part_prediction, "simd_level", lambda: next(levels))
    with pytest.raises(RunError, match="SIMD level baseline, this machine at avx2"):
        in_parts(Parts(rows, []), model)


def test_options_that_do_not_fit_together(tmp_path: Path) -> None:
    rows, model = trained(plain, tmp_path)
    command = ("predict", "--backend", "spark", "--master", "local[1]")
    assert "give --backend spark as well" in usage_error("predict", "--master", "local[1]", rows, model)
    assert "needs --master URL" in usage_error(*command[:3], rows, model)
    for given, flag in (
        (("-j", 2), "-j"),
        (("--memory", "1G"), "--memory"),
        (("-b", "1", "--report", "r"), "--report"),
    ):
        assert f"{flag} is not for --backend spark" in usage_error(*command, *given, rows, model)
    assert "name TEST_FILE" in usage_error(*command, "-", model)
    (folder := tmp_path / "out").mkdir()
    (folder / "part-00000").touch()
    assert "exists already; give --force" in error(*command, rows, model, f"{folder}/")
    rows.rename(folder / "part-00001")
    for given in (f"{folder}/", folder / "part-00001"):
        assert f"would replace {given}, which this command uses" in error(
            *command, "--force", given, model, f"{folder}/"
        )
    (folder / "part-00001").rename(rows)
    (folder / "letters").touch()
    assert "files that are no predictions" in error(*command, "--force", rows, model, f"{folder}/")
    assert "not a folder" in error(*command, "--force", rows, model, f"{folder}/letters/")
    assert "no folder can be made in" in error(*command, rows, model, f"{tmp_path}/none/out/")


@pytest.mark.parametrize("fails", ["write_text", "rename"])
def test_predictions_of_before_stay_where_new_ones_cannot_be_written(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parts_output(folder := f"{tmp_path}/out/", False) as write:
        write("before\n")
    original = getattr(Path, fails)

    def full(path: Path, *given: Any, **named: Any) -> Any:
        if path.name in ("parts", "part-00001"):  # the new folder, or a file in it
            raise OSError(errno.ENOSPC, "full", str(path))
        return original(path, *given, **named)

    monkeypatch.setattr(Path, fails, full)
    with pytest.raises(RunError, match="no space left to write it"), parts_output(folder, True) as write:
        write("after\n")
        write("after\n")
    assert [each.name for each in tmp_path.iterdir()] == ["out"]
    assert [each.read_text() for each in Path(folder).iterdir()] == ["before\n"]
    monkeypatch.undo()
    with parts_output(folder, True) as write:
        write("after\n")
    assert [each.read_text() for each in Path(folder).iterdir()] == ["after\n"]
